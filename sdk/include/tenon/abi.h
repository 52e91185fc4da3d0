/* SPDX-License-Identifier: MIT
 *
 * The base of the binary interface: the macros that declare a function for programs and for
 * plugins, the frozen prefix of every shared struct, and the version of the ABI. The layout of the
 * types in this header never changes. */
#ifndef TENON_ABI_H
#define TENON_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define TN_BEGIN_DECLS extern "C" {
#define TN_END_DECLS }
#else
#define TN_BEGIN_DECLS
#define TN_END_DECLS
#endif

#if defined(__GNUC__) || defined(__clang__)
#define TN_ATTR(...) __attribute__((__VA_ARGS__))
#else
#define TN_ATTR(...)
#endif

/* A program links libtenon and calls the functions that it exports. A plugin (<tenon/plugin.h>)
 * does not link libtenon: when a plugin is compiled, the same prototypes declare static inline
 * functions. <tenon/host.h>, which is generated from these headers, defines them as calls through
 * tables of function pointers that the host passes to the plugin. TN_PROGRAM marks the few
 * functions that only a program may call. */
#ifdef TN_BUILD_PLUGIN
#define TN_API TN_ATTR(unused) static inline
#define TN_HIDDEN TN_ATTR(visibility("hidden"))
#else
#define TN_API TN_ATTR(visibility("default"))
#define TN_PROGRAM TN_ATTR(visibility("default"))
#define TN_HIDDEN TN_ATTR(visibility("hidden"))
#endif

/* All interfaces are drafts until docs/abi.md declares revision 1. With major version 0, host and
 * plugin must have equal versions; from major version 1 on, either side may have a newer minor
 * version. */
#define TN_ABI_MAJOR 0
#define TN_ABI_MINOR 1

/* The minor version of the ABI that a plugin is written for. A plugin compiled with -DTN_TARGET=1
 * against newer headers cannot use functions that were added after minor version 1 (the compiler
 * rejects their names), and it loads in every host from minor version 1 on. <tenon/ops.h> then
 * declares the operators, options and inputs that minor version 1 had. */
#ifndef TN_TARGET
#define TN_TARGET TN_ABI_MINOR
#endif

TN_BEGIN_DECLS

/* The kind of the struct that begins with a tn_head. Numbers are never reused. */
typedef uint32_t tn_kind;
enum {
    TN_KIND_tn_host_info = 1,
    TN_KIND_tn_plugin_info = 2,
    TN_KIND_tn_plugin = 3,
    TN_KIND_tn_device_info = 4,
    TN_KIND_tn_call = 5,
    TN_KIND_tn_derive = 6,
    TN_KIND_tn_infer = 7,
    TN_KIND_tn_loading = 8,
    TN_KIND_tn_decompose = 9,
    TN_KIND_tn_op_event = 10,
    TN_KIND_tn_module_event = 11,
    TN_KIND_tn_memory_event = 12,
    TN_KIND_tn_memory = 13,
    TN_KIND_tn_copy_args = 14,
    TN_KIND_tn_fill_args = 15,
    TN_KIND_tn_stream_args = 16,
    TN_KIND_tn_event_args = 17,
    TN_KIND_tn_step_args = 18,
    TN_KIND_tn_schedule_args = 19,
    TN_KIND_tn_prepared_data = 20,
    TN_KIND_tn_capture_args = 21,
    TN_KIND_tn_dataset_open = 22,
    TN_KIND_tn_sample_args = 23,
    TN_KIND_tn_pass_args = 24,
    TN_KIND_tn_region = 25,
    TN_KIND_tn_claims = 26,
    TN_KIND_tn_program = 27,
    TN_KIND_tn_region_call = 28,
    TN_KIND_tn_comm_args = 29,
    TN_KIND_tn_comm_call = 30,
    TN_KIND_tn_transform_args = 31,
    TN_KIND_tn_range_event = 32,
    TN_KIND_tn_prune_net = 33,
    TN_KIND_tn_share_args = 34,
    TN_KIND_tn_channel_norm = 35,
    /* contributions of plugins */
    TN_KIND_tn_backend_def = 64,
    TN_KIND_tn_op_def = 65,
    TN_KIND_tn_kernel_def = 66,
    TN_KIND_tn_layer_def = 67,
    TN_KIND_tn_optimizer_def = 68,
    TN_KIND_tn_scheduler_def = 69,
    TN_KIND_tn_init_def = 70,
    TN_KIND_tn_format_def = 71,
    TN_KIND_tn_observer_def = 72,
    TN_KIND_tn_pass_def = 73,
    TN_KIND_tn_compiler_def = 74,
    TN_KIND_tn_comm_def = 75,
    /* 76 and 77 are reserved: quantizer, quantized mapping */
    TN_KIND_tn_dataset_def = 78,
    TN_KIND_tn_transform_def = 79,
    TN_KIND_tn_prune_def = 80,
    TN_KIND_END = 96,
    /* Tenon uses no number from here on: they are for structs that plugins exchange among
     * themselves. */
    TN_KIND_PRIVATE = 32768
};

/* The frozen prefix of every struct that crosses the boundary between host and plugin. Code that
 * knows only this prefix can still determine the kind, the size and the ABI version of a struct,
 * and free the struct with `destroy`. */
typedef struct tn_head {
    uint32_t size;  /* sizeof the whole struct in the code that built it */
    uint16_t kind;  /* a tn_kind */
    uint16_t flags; /* 0 */
    uint16_t abi_major;
    uint16_t abi_minor;
    /* The minor version of the ABI whose operators the code knows (TN_TARGET). */
    uint32_t target;
    void (*destroy)(void *self); /* NULL for static data */
} tn_head;

/* The value of the head of a struct. C++17 has no designated initializers: there a plugin fills a
 * descriptor in a function, `d.head = TN_HEAD_INIT(tn_layer_def); d.name = "Swish"; ...`. */
#define TN_HEAD_INIT(type)                                                                         \
    {                                                                                              \
        (uint32_t)sizeof(type), TN_KIND_##type, 0, TN_ABI_MAJOR, TN_ABI_MINOR, TN_TARGET, NULL     \
    }
/* The first initializer of a descriptor: `static const tn_layer_def swish = {
 * TN_HEAD(tn_layer_def), ... }`. */
#define TN_HEAD(type) .head = TN_HEAD_INIT(type)

/* True if the struct at `p`, which other code has built, is long enough to contain `member`. */
#define TN_HAS(p, type, member)                                                                    \
    ((p)->head.size >= offsetof(type, member) + sizeof(((type *)0)->member))

TN_END_DECLS
#endif
