/* SPDX-License-Identifier: MIT
 *
 * The entry point of a plugin: its only exported symbol, the arguments of this function, and the
 * macros that define it. */
#ifndef TENON_QUERY_H
#define TENON_QUERY_H

#include <tenon/kernel.h>

TN_BEGIN_DECLS

/* Facts about how the plugin was built, recorded by the compiler and not by the author. The layout
 * never changes. */
typedef struct tn_build_facts {
    const char *compiler;
    uint32_t pointer_bits;
    /* Mask: 1 address, 2 thread, 4 undefined, 8 memory. TN_BUILD_FACTS finds only the first two. */
    uint32_t sanitizers;
    uint32_t openmp;        /* the value of _OPENMP; 0: built without OpenMP */
    uint32_t blas_int_bits; /* TN_BLAS_INT_BITS, which the author defines; 0: no BLAS */
    const char *reserved[4];
} tn_build_facts;

/* An interface of the host, or of another plugin (tn_interface_find), that the code was compiled
 * against: its id, the revisions from `min` to `max` that the code accepts, and the size of the
 * function table. For a draft (revision 0) the size must match exactly. The layout of the struct
 * never changes. */
typedef struct tn_interface_need {
    const char *id;
    uint32_t min;
    uint32_t max;
    uint32_t size;
    uint32_t reserved;
} tn_interface_need;

/* Another plugin that this plugin requires, in a version from `min` up to but not including `max`;
 * "" means no limit. The layout never changes. */
typedef struct tn_requirement {
    const char *id;
    const char *min;
    const char *max;
    void *reserved;
} tn_requirement;

/* An interface that a plugin offers to other plugins: a table of functions with an id that begins
 * with the id of the plugin ("org.example.rules.table"). The rules of the host's interfaces apply:
 * a released revision may grow at its end, which its size shows; revision 0 is a draft with a fixed
 * size. A plugin may offer several revisions of one interface. The layout of the struct never
 * changes. */
typedef struct tn_interface_row {
    const char *id;
    uint32_t revision;
    uint32_t size;     /* size of the table */
    const void *table; /* must be valid until the process ends */
    void *reserved;
} tn_interface_row;

/* The description of a plugin, written by its author. `activate` and `deactivate` may be called by
 * any thread, but only by one at a time. */
typedef struct tn_plugin {
    tn_head head;
    const char *id;                   /* in reverse domain notation: "org.example.swish" */
    const char *version;              /* "1.0.0" */
    const char *help;                 /* one line */
    const char *license;              /* SPDX identifier */
    const void *const *contributions; /* array of n_contributions pointers to descriptors */
    int64_t n_contributions;
    /* Table of n_kernels kernels, in addition to the contributions. kernel_size is the size of one
     * row: sizeof(tn_kernel_def). */
    const tn_kernel_def *kernels;
    int64_t n_kernels;
    uint64_t kernel_size;
    uint64_t flags;                  /* TN_PLUGIN_* */
    const tn_requirement *requires_; /* required plugins; the list ends with a NULL id */
    /* Option table of the plugin for the struct options_data. A user sets an option with the
     * environment variable TENON_<LAST PART OF ID>_<OPTION>. */
    const tn_option *options;
    void *options_data;
    void *user; /* for the plugin; the core does not read it */
    /* Called when the first contribution is needed, to load libraries and select code. Not called
     * again after a failure. `self` points to the core's copy of this struct. */
    tn_status (*activate)(const struct tn_plugin *self);
    void (*deactivate)(const struct tn_plugin *self);
    /* Interfaces for other plugins; the list ends with a NULL id. */
    const tn_interface_row *interfaces;
} tn_plugin;

enum { TN_PLUGIN_OWN_THREADS = 1 }; /* the plugin uses a thread pool of its own (OpenMP, BLAS) */

/* The result of the query. The host sets head.size to the size of the struct that it knows; the
 * plugin sets head.size to the size that it has filled in. */
typedef struct tn_plugin_info {
    tn_head head;
    const tn_plugin *plugin;
    const tn_build_facts *build;
    const tn_interface_need *needs; /* the list ends with a NULL id */
    const void *reserved[4];
} tn_plugin_info;

/* Describes the host to the plugin. */
typedef struct tn_host_info {
    tn_head head;
    const char *version;
    /* Returns the function table of an interface, in a revision from `min` to `max`, and stores its
     * revision and size. The table is never freed. Returns NULL if the host has no such
     * interface. */
    const void *(*interface_find)(const char *id, uint32_t min, uint32_t max, uint32_t *revision,
                                  uint32_t *size);
} tn_host_info;

#define TN_PLUGIN_SYMBOL "tn_plugin_query"
/* The type of the function that a plugin exports. It may be called several times and must not use
 * devices or start threads. It fills `out`; if it refuses the host, it returns an error status and
 * fills `error`. */
typedef tn_status tn_plugin_query_fn(const tn_host_info *host, tn_plugin_info *out,
                                     tn_error *error);
#ifdef TN_BUILD_PLUGIN
TN_ATTR(visibility("default"))
tn_status tn_plugin_query(const tn_host_info *host, tn_plugin_info *out, tn_error *error);
#endif

#ifdef __has_feature
#define TN_HAS_FEATURE(x) __has_feature(x)
#else
#define TN_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TN_HAS_FEATURE(address_sanitizer)
#define TN_BUILD_ASAN 1u
#else
#define TN_BUILD_ASAN 0u
#endif
#if defined(__SANITIZE_THREAD__) || TN_HAS_FEATURE(thread_sanitizer)
#define TN_BUILD_TSAN 2u
#else
#define TN_BUILD_TSAN 0u
#endif
#ifdef _OPENMP
#define TN_BUILD_OPENMP _OPENMP
#else
#define TN_BUILD_OPENMP 0
#endif
#ifndef TN_BLAS_INT_BITS
#define TN_BLAS_INT_BITS 0
#endif

#define TN_LIST(...) ((const void *const[]){ __VA_ARGS__ })
#define TN_LIST_LENGTH(...) ((int64_t)(sizeof(TN_LIST(__VA_ARGS__)) / sizeof(void *)))

/* Initializer with the facts of this build. */
#define TN_BUILD_FACTS                                                                             \
    {                                                                                              \
        __VERSION__, (uint32_t)(sizeof(void *) * 8), TN_BUILD_ASAN | TN_BUILD_TSAN,                \
            TN_BUILD_OPENMP, TN_BLAS_INT_BITS,                                                     \
        {                                                                                          \
            NULL, NULL, NULL, NULL                                                                 \
        }                                                                                          \
    }

/* Defines the exported function of a plugin. tn_plugin_export, in <tenon/host.h>, fetches the
 * function tables of the host. */
#define TN_PLUGIN_EXPORT(plugin_)                                                                  \
    TN_HIDDEN struct tn_host_links tn_host_links;                                                  \
    tn_status tn_plugin_query(const tn_host_info *host, tn_plugin_info *out, tn_error *error)      \
    {                                                                                              \
        static const tn_build_facts build = TN_BUILD_FACTS;                                        \
        return tn_plugin_export(&(plugin_), &build, host, out, error);                             \
    }                                                                                              \
    struct tn_plugin_export_ends_here

/* Defines a simple plugin with its contributions: TN_PLUGIN("org.example.swish", "1.0.0", &swish,
 * &another). It is a macro because it defines static objects and an exported function. All other
 * members are NULL or 0. */
#define TN_PLUGIN(id_, version_, ...)                                                              \
    static const void *const tn_plugin_contributions_[] = { __VA_ARGS__ };                         \
    static const tn_plugin tn_plugin_self_ = { TN_HEAD_INIT(tn_plugin),                            \
                                               id_,                                                \
                                               version_,                                           \
                                               NULL,                                               \
                                               NULL,                                               \
                                               tn_plugin_contributions_,                           \
                                               (int64_t)(sizeof tn_plugin_contributions_ /         \
                                                         sizeof *tn_plugin_contributions_),        \
                                               NULL,                                               \
                                               0,                                                  \
                                               0,                                                  \
                                               0,                                                  \
                                               NULL,                                               \
                                               NULL,                                               \
                                               NULL,                                               \
                                               NULL,                                               \
                                               NULL,                                               \
                                               NULL,                                               \
                                               NULL };                                             \
    TN_PLUGIN_EXPORT(tn_plugin_self_)

TN_END_DECLS
#endif
