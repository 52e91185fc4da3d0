/* SPDX-License-Identifier: MIT
 *
 * Kinds of contributions. The folder that uses a kind has its row tn__kind_NAME, in a file kinds.c,
 * for the number TN_KIND_tn_NAME_def in <tenon/abi.h>. lib/library/kind_list.c, which is generated
 * from these numbers, lists the rows. Nothing else has to know a kind. */
#ifndef TN_CORE_PLUGIN_KIND_H
#define TN_CORE_PLUGIN_KIND_H

#include "core/plugin/internal.h"

/* The order in which contributions are registered. */
enum { TN__PASS_OPS, TN__PASS_BACKENDS, TN__PASS_NAMED, TN__PASS_KERNELS, TN__PASS_COUNT };

/* A member that contains flags, whose `known` bits are accepted, or a reserved member, which must
 * be 0 (`known` is 0). */
typedef struct tn__kind_member {
    const char *name;
    uint32_t offset;
    uint8_t width; /* bytes: 4 or 8 */
    bool dtypes;   /* the member is a mask of dtypes */
    uint64_t known;
} tn__kind_member;

/* A member that must not be NULL. */
typedef struct tn__kind_need {
    const char *name;
    uint32_t offset;
} tn__kind_need;

typedef struct tn__kind tn__kind;
struct tn__kind {
    const char *type; /* "tn_layer_def" */
    const char *word; /* "format", for lists */
    const char *what; /* "file format", for messages; NULL: the same */
    uint32_t kind;    /* TN_KIND_tn_layer_def */
    int32_t pass;     /* TN__PASS_*; most are NAMED */
    uint32_t size;
    uint32_t least; /* the smallest size that a descriptor may have */
    /* Offsets of members; 0: the descriptor has none. */
    uint32_t name, help, options;
    uint32_t data_size; /* the size of the struct that options are stored in, a uint64_t */
    bool stays;         /* cannot be removed by tn_unregister */
    /* Characters that a name may have besides letters, digits and `_`. NULL: names are types, as
     * specs have them. */
    const char *signs;
    /* The last element of both has no name. May be NULL. */
    const tn__kind_member *members;
    const tn__kind_need *needs;
    /* Checks the names in a descriptor in place of `signs`. May be NULL. */
    tn_status (*names)(const tn_head *copy);
    /* Checks whatever else is particular to the kind. If a member that is required is NULL, sets
     * *missing to its name and returns TN_OK: the caller fails. Fails itself if anything else is
     * wrong. May be NULL. */
    tn_status (*complete)(const tn_head *copy, const char **missing);
    /* Returns the size of the struct that options are stored in; NULL: `data_size` says it. */
    size_t (*options_size)(const tn_head *copy, size_t *begin);
    /* Takes a descriptor, which lives as long as the plugin. NULL: the registry of the kind. */
    tn_status (*add)(const tn__kind *kind, tn_head *copy, tn__plugin *plugin);
    /* Called after a descriptor was added or removed. May be NULL. */
    void (*changed)(void);
    /* Calls `tell` for every contribution that can never run, under the lock of the registry;
     * `words` names it and what is missing. May be NULL. */
    void (*unused)(void (*tell)(tn__plugin *plugin, const char *words));
    /* Of a kind that has a registry of its own; otherwise NULL. */
    int64_t (*count)(void);
    const char *(*name_at)(int64_t index);
    /* Returns a descriptor and sets *plugin. Returns NULL and sets the error if there is none. */
    const tn_head *(*find)(const char *name, tn__plugin **plugin);
};

/* Fails if a member of a struct at `at` means something that this host does not know. `copy` is the
 * descriptor, or that of which the struct is a part; `what` begins the message. */
tn_status tn__reserved_member(const tn_head *copy, const void *at, const tn__kind_member *member,
                              const char *what);

/* All rows. The last element is NULL. */
extern TN_HIDDEN const tn__kind *const tn__kinds[];

/* Returns the row of a kind (TN_KIND_*), NULL if there is none. */
const tn__kind *tn__kind_of(uint32_t kind);
/* Returns the pointer that a descriptor has at an offset, such as that of its name. */
const void *tn__kind_pointer(const tn_head *copy, uint32_t offset);

/* The members of a row that follow from the type of the descriptor; `last_` is the last member of
 * the smallest descriptor. */
#define TN__KIND(type_, name_, last_)                                                              \
    .type = #type_, .kind = TN_KIND_##type_, .size = sizeof(type_),                                \
    .least = offsetof(type_, last_) + sizeof(((type_ *)0)->last_), .name = offsetof(type_, name_)

/* An element of `needs`, and of `members`. */
#define TN__KIND_NEED(type_, member_)                                                              \
    {                                                                                              \
#member_, offsetof(type_, member_)                                                         \
    }
#define TN__KIND_MEMBER(type_, member_, known_)                                                    \
    {                                                                                              \
#member_, offsetof(type_, member_), sizeof(((type_ *)0)->member_), false, known_           \
    }
#define TN__KIND_DTYPES(type_, member_)                                                            \
    {                                                                                              \
#member_, offsetof(type_, member_), sizeof(((type_ *)0)->member_), true, TN_MASK_ALL       \
    }

#endif
