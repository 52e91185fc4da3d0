/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of pruned networks. */
#ifndef TN_TESTS_MODULE_PRUNE_NETWORK_H
#define TN_TESTS_MODULE_PRUNE_NETWORK_H

#include <math.h>

#include "tests/module/prune.h"

static inline tn_tensor *random_tensor(tn_ints shape)
{
    tn_tensor *x = tn_tensor_empty(shape, TN_F32, NULL);

    x = x != NULL ? tn_normal_(x) : NULL;
    ck_assert_msg(x != NULL, "%s", tn_error_text());
    return x;
}

/* Gives a tensor with one dimension, such as statistics, scales and biases, random values. */
static inline tn_status stir(void *user, const char *path, tn_tensor *tensor)
{
    (void)user, (void)path;
    if (tn_tensor_ndim(tensor) != 1 || tn_tensor_dtype(tensor) != TN_F32)
        return TN_OK;
    tn_grad_begin(false);
    tn_status status = tn_uniform_(tensor, 0.5, 1.5) != NULL ? TN_OK : tn_error_last_code();
    tn_grad_end();
    return status;
}

static inline tn_module *network(const char *text)
{
    tn_module *net = parsed(text);

    ok(tn_module_each_tensor(net, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, false, stir, NULL));
    ok(tn_module_eval(net));
    return net;
}

static inline void result(tn_module *net, tn_tensor *x, double *out, int64_t count)
{
    uint64_t scope = tn_scope_begin();

    ok(tn_grad_begin(false));
    values_of(tn_module_call(net, x), out, count);
    tn_grad_end();
    tn_scope_end(scope);
}

static inline void expect_close(tn_module *net, tn_tensor *x, const double *wanted, int64_t count)
{
    double got[MOST_VALUES], most = 0;

    result(net, x, got, count);
    for (int64_t i = 0; i < count; i++)
        most = fabs(wanted[i]) > most ? fabs(wanted[i]) : most;
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(got[i] - wanted[i]) <= 2e-5 * most, "[%d]: %.9g, not %.9g", (int)i,
                      got[i], wanted[i]);
}

/* Prunes half of the channels, removes them, and compares the results. */
static inline tn_prune_report halve(tn_module *net, tn_tensor *x, int64_t results)
{
    double before[MOST_VALUES];
    tn_prune_report masked, removed;

    ok(tn_prune_channels(net, &x, 1, "LnStructured(amount=0.5, n=2, dim=0)", &masked));
    ck_assert(tn_is_pruned(net));
    result(net, x, before, results);
    ok(tn_prune_compact(net, &x, 1, NULL, &removed));
    ck_assert_int_eq(removed.channels_removed, masked.channels_removed);
    ck_assert_int_eq(removed.channels_kept, 0);
    ck_assert_int_lt(removed.parameters_after, removed.parameters_before);
    ck_assert_int_eq(removed.parameters_after, tn_module_parameter_count(net));
    ck_assert(!tn_is_pruned(net));
    expect_close(net, x, before, results);
    return removed;
}

#endif
