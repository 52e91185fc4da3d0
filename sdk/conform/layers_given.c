/* SPDX-License-Identifier: MIT
 *
 * Compares the results of a layer with the numbers that the author writes in a case. The other
 * checks compare a layer only with itself, so they cannot find that it computes a wrong formula. */
#include "layers.h"

#include <stdio.h>

/* Creates a tensor of the case; floats get the dtype under test. Returns NULL after reporting a
 * failure. */
static tn_tensor *made(const conform_subject *s, const conform_tensor *from, const char *what)
{
    tn_dtype dtype = is_float(from->dtype) ? s->dtype : from->dtype;
    tn_tensor *tensor = conform_tensor_make(from, dtype, s->device, CONFORM_PLAIN, NULL);

    if (tensor == NULL)
        conform_layer_say(s, "%s cannot be created: %s", what, tn_error_text());
    return tensor;
}

/* Loads the lines `state` of the case into the module. */
static bool set_state(const conform_subject *s, tn_module *module)
{
    tn_state *state = tn_module_state(module);
    bool well = state != NULL;

    if (!well)
        conform_layer_say(s, "its state cannot be read: %s", tn_error_text());
    for (int64_t i = 0; well && i < s->one->n_state; i++) {
        const conform_layer_state *given = &s->one->state[i];
        tn_tensor *tensor = NULL;

        if (tn_state_find(state, given->name) < 0)
            well = conform_layer_say(s, "state %s: in the case, but the layer has no such entry",
                                     given->name);
        else
            tensor = made(s, &given->tensor, given->name);
        well = tensor != NULL;
        if (well && tn_state_set(state, given->name, tensor) != TN_OK)
            well = conform_layer_say(s, "state %s: %s", given->name, tn_error_text());
    }
    if (well && tn_module_load_state(module, state, true) != TN_OK)
        well = conform_layer_say(s, "the module does not load the state of the case: %s",
                                 tn_error_text());
    tn_state_drop(state);
    return well;
}

static bool results_are(const conform_subject *s, const conform_results *got)
{
    double tolerance = s->dtype == TN_F64 ? 1e-10 : 1e-5;

    if (got->count != s->one->n_out)
        return conform_layer_say(s, "wrong number of results, got %lld; expected %lld",
                                 (long long)got->count, (long long)s->one->n_out);
    for (int64_t i = 0; i < got->count; i++) {
        char what[64];
        tn_tensor *expected;
        tn_ints shape = tn_tensor_shape(got->at[i]);
        bool same;

        snprintf(what, sizeof what, "result %lld of the case", (long long)i);
        expected = made(s, &s->one->out[i], what);
        if (expected == NULL)
            return false;
        same = shape.count == s->one->out[i].ndim;
        for (int64_t d = 0; same && d < shape.count; d++)
            same = shape.at[d] == s->one->out[i].shape[d];
        if (!same) {
            char a[128], b[128];

            conform_shape_text(shape.at, shape.count, a, sizeof a);
            conform_shape_text(s->one->out[i].shape, s->one->out[i].ndim, b, sizeof b);
            return conform_layer_say(s, "%s: wrong shape, got %s; expected %s", what, a, b);
        }
        if (tn_tensor_dtype(got->at[i]) != tn_tensor_dtype(expected))
            return conform_layer_say(s, "%s: wrong dtype, got %s; expected %s", what,
                                     tn_dtype_name(tn_tensor_dtype(got->at[i])),
                                     tn_dtype_name(tn_tensor_dtype(expected)));
        if (!conform_layer_near(s, got->at[i], expected, tolerance, what))
            return false;
    }
    return true;
}

bool conform_layer_as_given(const conform_subject *s)
{
    tn_tensor *in[CONFORM_LAYER_INPUTS];
    tn_module *module;
    conform_results got;
    bool well;

    if (s->one->n_out == 0)
        return s->one->n_state == 0 ||
               conform_layer_say(s, "the case has lines `state`, but no line `out`");
    module = conform_layer_build(s);
    well = module != NULL && set_state(s, module);
    if (well)
        tn_module_train(module, !s->one->eval && !s->one->given_eval);
    well = well && conform_layer_inputs(s, s->dtype, in) &&
           conform_layer_called(s, module, in, &got, "with the state of the case") &&
           results_are(s, &got);
    tn_module_drop(module);
    return well;
}
