/* SPDX-License-Identifier: MIT
 *
 * The entry point of a plugin: the one exported symbol, its arguments, and the macros that define
 * it. */
#ifndef TENON_QUERY_H
#define TENON_QUERY_H

#include <tenon/contrib.h>

TN_BEGIN_DECLS

/* Facts recorded by the compiler, not by the author. Frozen. */
typedef struct tn_build_facts {
    const char *compiler;
    uint32_t pointer_bits;
    uint32_t sanitizers;    /* 1 address, 2 thread, 4 undefined, 8 memory */
    uint32_t openmp;        /* _OPENMP, 0 without */
    uint32_t blas_int_bits; /* TN_BLAS_INT_BITS as the author set it, 0: no BLAS */
    const char *reserved[4];
} tn_build_facts;

/* An interface that the plugin was compiled against: revisions it accepts and, for drafts (revision
 * 0), the exact size of the table. Frozen. */
typedef struct tn_interface_need {
    const char *id;
    uint32_t min;
    uint32_t max;
    uint32_t size;
    uint32_t reserved;
} tn_interface_need;

/* Another plugin that is required: versions in [min, max), "" for no bound. Frozen. */
typedef struct tn_requirement {
    const char *id;
    const char *min;
    const char *max;
    void *reserved;
} tn_requirement;

/* An interface that a plugin gives to other plugins: a table of functions, by an id that begins
 * with the id of the plugin ("org.example.rules.table"). The rules are those of the host's
 * interfaces: a released revision grows at its end, and its size shows that; revision 0 is a draft,
 * of one size. Several revisions of one id may be given. Frozen. */
typedef struct tn_interface_row {
    const char *id;
    uint32_t revision;
    uint32_t size;     /* of the table */
    const void *table; /* valid until the process ends */
    void *reserved;
} tn_interface_row;

/* A plugin, as its author writes it. activate, deactivate: any thread, one at a time. */
typedef struct tn_plugin {
    tn_head head;
    const char *id;                   /* reverse domain: "org.example.swish" */
    const char *version;              /* "1.0.0" */
    const char *help;                 /* one line */
    const char *license;              /* SPDX */
    const void *const *contributions; /* n_contributions pointers to descriptors */
    int64_t n_contributions;
    const tn_kernel_def
        *kernels; /* and a table of kernels, n_kernels long; its stride is kernel_size */
    int64_t n_kernels;
    uint32_t kernel_size;
    uint32_t flags;                  /* TN_PLUGIN_* */
    const tn_requirement *requires_; /* ends with a NULL id */
    const tn_option *options; /* settable as TENON_<LAST PART OF ID>_<OPTION>; over options_data */
    void *options_data;
    void *user; /* the plugin's own */
    /* When the first contribution is needed: opens libraries, selects code. It is not called again
     * after a failure. `self` is the core's copy. */
    tn_status (*activate)(const struct tn_plugin *self);
    void (*deactivate)(const struct tn_plugin *self);
    const tn_interface_row *interfaces; /* what it gives to other plugins; ends with a NULL id */
} tn_plugin;

enum { TN_PLUGIN_OWN_THREADS = 1 }; /* brings a thread pool (OpenMP, BLAS): rule 13 */

/* What the query writes; head.size comes in as the host's limit and goes out as what was written.
 */
typedef struct tn_plugin_info {
    tn_head head;
    const tn_plugin *plugin;
    const tn_build_facts *build;
    const tn_interface_need *needs; /* ends with a NULL id */
    const void *reserved[4];
} tn_plugin_info;

/* What the host is. What interface_find gives is never freed. */
typedef struct tn_host_info {
    tn_head head;
    const char *version;
    /* The table of an interface whose revision is in [min, max], NULL if there is none; its
     * revision and size. */
    const void *(*interface_find)(const char *id, uint32_t min, uint32_t max, uint32_t *revision,
                                  uint32_t *size);
} tn_host_info;

#define TN_PLUGIN_SYMBOL "tn_plugin_query"
/* Pure: no device work, no thread; may be called many times. Fills `out` and, when it refuses,
 * `error`. */
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

/* How the plugin that is being compiled is built. */
#define TN_BUILD_FACTS                                                                             \
    {                                                                                              \
        __VERSION__, (uint32_t)(sizeof(void *) * 8), TN_BUILD_ASAN | TN_BUILD_TSAN,                \
            TN_BUILD_OPENMP, TN_BLAS_INT_BITS,                                                     \
        {                                                                                          \
            NULL, NULL, NULL, NULL                                                                 \
        }                                                                                          \
    }

/* tn_plugin_export is in host.h: it fetches the tables. */
#define TN_PLUGIN_EXPORT(plugin_)                                                                  \
    TN_HIDDEN struct tn_host_links tn_host_links;                                                  \
    tn_status tn_plugin_query(const tn_host_info *host, tn_plugin_info *out, tn_error *error)      \
    {                                                                                              \
        static const tn_build_facts build = TN_BUILD_FACTS;                                        \
        return tn_plugin_export(&(plugin_), &build, host, out, error);                             \
    }                                                                                              \
    struct tn_plugin_export_ends_here

/* The whole of a simple plugin: TN_PLUGIN("org.example.swish", "1.0.0", &swish, &another); */
#define TN_PLUGIN(id_, version_, ...)                                                              \
    static const void *const tn_plugin_contributions_[] = { __VA_ARGS__ };                         \
    static const tn_plugin tn_plugin_self_ = {                                                     \
        TN_HEAD(tn_plugin),                                                                        \
        .id = id_,                                                                                 \
        .version = version_,                                                                       \
        .help = NULL,                                                                              \
        .license = NULL,                                                                           \
        .contributions = tn_plugin_contributions_,                                                 \
        .n_contributions = (int64_t)(sizeof tn_plugin_contributions_ /                             \
                                     sizeof *tn_plugin_contributions_),                            \
        .kernels = NULL,                                                                           \
        .n_kernels = 0,                                                                            \
        .kernel_size = 0,                                                                          \
        .flags = 0,                                                                                \
        .requires_ = NULL,                                                                         \
        .options = NULL,                                                                           \
        .options_data = NULL,                                                                      \
        .activate = NULL,                                                                          \
        .deactivate = NULL                                                                         \
    };                                                                                             \
    TN_PLUGIN_EXPORT(tn_plugin_self_)

TN_END_DECLS
#endif
