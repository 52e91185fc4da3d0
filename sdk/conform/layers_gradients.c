/* SPDX-License-Identifier: MIT
 *
 * Compares the gradients of the inputs and parameters of a layer with finite differences. */
#include "layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 4 }; /* maximum number of elements of a tensor that are compared */

/* Computes the weighted sum of all floating-point results. Weights differ between neighbours, so
 * that errors do not cancel out. */
static bool weighted(const conform_subject *s, const conform_results *out, double *sum)
{
    *sum = 0;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t count;
        double *values = is_float(tn_tensor_dtype(out->at[i])) ? conform_values(out->at[i], &count)
                                                               : NULL;

        if (values == NULL && is_float(tn_tensor_dtype(out->at[i])))
            return conform_layer_say(s, "a result cannot be read: %s", tn_error_text());
        for (int64_t k = 0; values != NULL && k < count; k++)
            *sum += values[k] * (1 + 0.25 * (double)((k + i) % 5));
        free(values);
    }
    return true;
}

/* Runs backward from the sum that weighted() computes: the cotangents are the weights. */
static tn_status backward_weighted(const conform_results *out)
{
    tn_tensor *roots[CONFORM_LAYER_RESULTS], *weights[CONFORM_LAYER_RESULTS];
    int64_t count = 0;

    for (int64_t i = 0; i < out->count; i++) {
        int64_t n = tn_tensor_numel(out->at[i]);
        double *values;

        if (!is_float(tn_tensor_dtype(out->at[i])) || !tn_tensor_requires_grad(out->at[i]))
            continue;
        values = malloc((size_t)(n + 1) * sizeof *values);
        if (values == NULL)
            return tn_fail(TN_ERR_MEMORY, "gradients: out of memory");
        for (int64_t k = 0; k < n; k++)
            values[k] = 1 + 0.25 * (double)((k + i) % 5);
        weights[count] = tn_tensor_empty(tn_tensor_shape(out->at[i]), TN_F64,
                                         tn_tensor_device(out->at[i]));
        if (weights[count] == NULL ||
            tn_tensor_copy_in(weights[count], values, (size_t)n * sizeof *values) != TN_OK) {
            free(values);
            return tn_error_last_code();
        }
        free(values);
        roots[count++] = out->at[i];
    }
    return count > 0 ? tn_backward_from(roots, weights, count, NULL) : TN_OK;
}

/* Compares the gradient of one tensor with central differences, for a few of its elements. `state`,
 * if not NULL, is loaded before each call. */
static bool slope(const conform_subject *s, tn_module *module, tn_tensor *const *in,
                  tn_tensor *variable, const tn_state *state, const char *name)
{
    static const double step = 1e-6;
    int64_t count = tn_tensor_numel(variable), given = 0;
    size_t size = (size_t)count * sizeof(double);
    double *values = malloc(size + 1), *gradient = NULL;
    bool well = values != NULL && tn_tensor_copy_out(tn_detach(variable), values, size) == TN_OK;

    if (tn_tensor_grad(variable) != TN_NONE)
        gradient = conform_values(tn_tensor_grad(variable), &given);
    for (int64_t i = 0; well && i < MOST_ELEMENTS && i < count; i++) {
        int64_t k = i * (count - 1) / (MOST_ELEMENTS - 1);
        double before = values[k], sums[2], slopes, expected;
        conform_results out;

        for (int side = 0; well && side < 2; side++) {
            uint64_t scope = tn_scope_begin();

            values[k] = before + (side ? step : -step);
            tn_grad_begin(false);
            /* an earlier call may have changed buffers */
            well = (state == NULL || tn_module_load_state(module, state, true) == TN_OK) &&
                   tn_tensor_copy_in(variable, values, size) == TN_OK &&
                   conform_layer_called(s, module, in, &out, "after one element changed by 1e-6") &&
                   weighted(s, &out, &sums[side]);
            tn_grad_end();
            tn_scope_end(scope);
        }
        values[k] = before;
        tn_tensor_copy_in(variable, values, size);
        if (!well)
            break;
        expected = (sums[1] - sums[0]) / (2 * step);
        slopes = gradient != NULL ? gradient[k] : 0;
        s->c->checks++;
        if (!(fabs(slopes - expected) <= 1e-4 * (1 + fabs(expected))))
            well = conform_layer_say(
                s,
                "gradient of %s, element %lld: wrong value, got %.6g; expected %.6g from "
                "differences",
                name, (long long)k, slopes, expected);
    }
    free(values);
    free(gradient);
    return well;
}

bool conform_layer_gradients(const conform_subject *s, tn_module *module)
{
    tn_tensor *in[CONFORM_LAYER_INPUTS];
    tn_state *parameters = tn_state_new(), *buffers = tn_state_new(), *before = NULL;
    conform_results out;
    bool well = conform_layer_inputs(s, TN_F64, in);

    for (int64_t i = 0; well && i < s->one->n_in; i++)
        if (s->one->in[i].grad && tn_tensor_set_requires_grad(in[i], true) != TN_OK)
            well = conform_layer_say(s, "input %d: %s", (int)i, tn_error_text());
    tn_module_each_tensor(module, TN_SLOT_PARAMETER, false, conform_layer_remember, parameters);
    tn_module_each_tensor(module, TN_SLOT_BUFFER, false, conform_layer_remember, buffers);
    if (tn_state_count(buffers) > 0)
        before = conform_layer_state_times(module, 1);
    well = well && conform_layer_called(s, module, in, &out, "");
    if (well && backward_weighted(&out) != TN_OK)
        well = conform_layer_say(s, "backward: %s", tn_error_text());
    for (int64_t i = 0; well && i < s->one->n_in; i++) {
        char name[32];

        snprintf(name, sizeof name, "input %d", (int)i);
        well = !s->one->in[i].grad || slope(s, module, in, in[i], before, name);
    }
    for (int64_t i = 0; well && i < tn_state_count(parameters); i++) {
        tn_tensor *parameter = tn_module_find_tensor(module, tn_state_name(parameters, i));

        well = !tn_tensor_requires_grad(parameter) ||
               slope(s, module, in, parameter, before, tn_state_name(parameters, i));
    }
    tn_state_drop(parameters);
    tn_state_drop(buffers);
    tn_state_drop(before);
    tn_module_zero_grad(module);
    return well;
}
