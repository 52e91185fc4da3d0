/* SPDX-License-Identifier: MIT
 *
 * The oneDNN functions that this plugin uses. Types come from the headers of oneDNN, functions from
 * the library, which is opened when the plugin is activated. The plugin is not linked with the
 * library, because that would load the OpenMP runtime whenever the plugin is loaded; rule 1 of
 * docs/abi.md forbids this. */
#ifndef TN_KERNELS_ONEDNN_DNNL_API_H
#define TN_KERNELS_ONEDNN_DNNL_API_H

#include <oneapi/dnnl/dnnl.h>
#include <tenon/plugin.h>

/* clang-format off */
#define DNNL_FUNCTIONS(X) \
    X(dnnl_version) X(dnnl_engine_create) X(dnnl_engine_destroy) X(dnnl_stream_create) \
    X(dnnl_stream_destroy) X(dnnl_stream_wait) X(dnnl_memory_desc_init_by_tag) \
    X(dnnl_memory_desc_get_size) X(dnnl_memory_create) X(dnnl_memory_destroy) \
    X(dnnl_dilated_convolution_forward_desc_init) \
    X(dnnl_dilated_convolution_backward_data_desc_init) \
    X(dnnl_dilated_convolution_backward_weights_desc_init) X(dnnl_reorder_primitive_desc_create) \
    X(dnnl_primitive_attr_create) X(dnnl_primitive_attr_destroy) \
    X(dnnl_primitive_attr_set_scratchpad_mode) X(dnnl_primitive_desc_create) \
    X(dnnl_primitive_desc_destroy) X(dnnl_primitive_desc_query_md) X(dnnl_primitive_create) \
    X(dnnl_primitive_destroy) X(dnnl_primitive_execute) X(dnnl_sgemm)
/* clang-format on */

struct dnnl_api {
    void *library;
    dnnl_engine_t engine;
#define DNNL_MEMBER_(name) __typeof__(name) *name;
    DNNL_FUNCTIONS(DNNL_MEMBER_)
#undef DNNL_MEMBER_
    int (*omp_get_max_threads)(void);
    void (*omp_set_num_threads)(int);
};

/* Filled by dnnl_api_open(). */
extern struct dnnl_api dnnl;

/* Opens the library (a name or a path). Returns TN_ERR_UNAVAILABLE if the library is missing, or if
 * its version does not fit the headers with which this plugin was compiled. */
tn_status dnnl_api_open(const char *library);
void dnnl_api_close(void);
/* Sets the error "oneDNN: WHAT failed: ..." and returns TN_ERR_MEMORY or TN_ERR_RUNTIME. */
tn_status dnnl_api_fail(dnnl_status_t error, const char *what);

/* dnnl_api_enter() makes OpenMP use one thread, so that oneDNN computes in the calling thread, and
 * returns the previous number of threads. dnnl_api_leave() restores that number, because it is a
 * setting of the program. */
int dnnl_api_enter(void);
void dnnl_api_leave(int before);

#endif
