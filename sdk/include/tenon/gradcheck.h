/* SPDX-License-Identifier: MIT
 *
 * Tests of gradients. The functions call the plugin tenon.gradcheck, which provides the interface
 * tenon.gradcheck.api; without the plugin they fail and name the interface. */
#ifndef TENON_GRADCHECK_H
#define TENON_GRADCHECK_H

#ifndef TENON_PLUGIN_H
#include <tenon/grad.h>
#include <tenon/query.h>
#include <tenon/runtime.h>
#endif

TN_BEGIN_DECLS

/* The code whose gradients are compared: any function that computes with operators. It stores its
 * results in `out`. */
typedef tn_status (*tn_gradcheck_code)(void *user, tn_tensor *const *in, tn_tensor **out);

/* The table of the interface. Programs call the functions below. */
typedef struct tn_gradcheck_api {
    tn_status (*first)(tn_gradcheck_code code, void *user, tn_tensor *const *in, int64_t n_in,
                       int64_t n_out, double step, double tolerance);
    tn_status (*second)(tn_gradcheck_code code, void *user, tn_tensor *const *in, int64_t n_in,
                        int64_t n_out, double step, double tolerance);
} tn_gradcheck_api;

/* Returns the functions of the plugin; NULL and sets the error on failure. */
TN_ATTR(unused) static inline const tn_gradcheck_api *tn_gradcheck_find(void)
{
    const struct tn_interface_need need = { "tenon.gradcheck.api", 0, 0,
                                            (uint32_t)sizeof(tn_gradcheck_api), 0 };
    return (const tn_gradcheck_api *)tn_interface_find(NULL, &need, NULL);
}

/* Compares the gradients of `code` at the inputs `in` with central differences of width `step`. The
 * inputs must be float64 or complex128; of complex inputs, both parts are varied. Fails with
 * TN_ERR_ASSERT, naming the input, the element and both numbers, if they differ by more than
 * `tolerance`. A `step` or `tolerance` of 0 is 1e-6. */
TN_ATTR(unused)
static inline tn_status tn_gradcheck(tn_gradcheck_code code, void *user, tn_tensor *const *in,
                                     int64_t n_in, int64_t n_out, double step, double tolerance)
{
    const tn_gradcheck_api *api = tn_gradcheck_find();
    return api != NULL ? api->first(code, user, in, n_in, n_out, step, tolerance)
                       : tn_error_last_code();
}

/* Like tn_gradcheck, for second derivatives: checks the gradients of `code` as a function of its
 * inputs and of the cotangents of its outputs. */
TN_ATTR(unused)
static inline tn_status tn_gradgradcheck(tn_gradcheck_code code, void *user, tn_tensor *const *in,
                                         int64_t n_in, int64_t n_out, double step, double tolerance)
{
    const tn_gradcheck_api *api = tn_gradcheck_find();
    return api != NULL ? api->second(code, user, in, n_in, n_out, step, tolerance)
                       : tn_error_last_code();
}

TN_END_DECLS
#endif
