/* SPDX-License-Identifier: MIT
 *
 * The descriptor of a file format, which a plugin (or a program, with tn_register) can contribute.
 * The rules for descriptors in <tenon/contrib.h> apply to it.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_FORMAT_H
#define TENON_FORMAT_H

#include <tenon/state.h>

TN_BEGIN_DECLS

/* A file that is read, at any offset. The layout of the struct never changes. `read` is a
 * [callback]: only recognize and load of a format may call it. */
typedef struct tn_source {
    void *user;
    uint64_t size;
    const char *path; /* the path of the file, for messages */
    tn_status (*read)(void *user, uint64_t offset, void *to, size_t bytes);
} tn_source;
/* A file that is written, from its start to its end. The layout of the struct never changes.
 * `write` is a [callback]: only save of a format may call it. */
typedef struct tn_sink {
    void *user;
    const char *path;
    tn_status (*write)(void *user, const void *from, size_t bytes);
} tn_sink;
/* What a format can store besides tensors. If a state contains anything else, the core stores it as
 * texts, or fails if the format has no texts. */
enum {
    /* Texts with keys. The core then stores versions, values and ties as texts with the keys
     * "tenon.versions", "tenon.values" and "tenon.ties". */
    TN_FORMAT_TEXTS = 1,
    TN_FORMAT_VALUES = 2, /* values of any kind, versions, and tensors that share a storage */
    /* The format stores no tensors, but their names and the names of the files that contain them,
     * as text values. The core reads and writes those files. */
    TN_FORMAT_INDEX = 4
};
/* A file format. Any thread may call its functions, for several files at the same time. */
typedef struct tn_format_def {
    tn_head head;
    const char *name; /* "safetensors" */
    const char *help;
    void *user;             /* for the plugin; the core does not read it */
    const char *extensions; /* such as ".safetensors"; several are separated by spaces */
    /* Returns whether the content of the file has this format. */
    bool (*recognize)(const struct tn_format_def *self, const tn_source *source);
    tn_status (*load)(const struct tn_format_def *self, const tn_source *source, tn_state *state);
    tn_status (*save)(const struct tn_format_def *self, const tn_sink *sink, const tn_state *state);
    uint64_t flags; /* TN_FORMAT_* */
    /* All members that follow may be NULL. They are for formats that store whole modules:
     * load_module creates a module from the file, and the caller owns the module; save_module
     * writes a module. tn_module_from_file and tn_module_save call them. If `load` or `save` are
     * defined too, they are used for states. */
    tn_module *(*load_module)(const struct tn_format_def *self, const tn_source *source);
    tn_status (*save_module)(const struct tn_format_def *self, const tn_sink *sink,
                             tn_module *module);
} tn_format_def;

TN_END_DECLS
#endif
