/* SPDX-License-Identifier: MIT
 *
 * The parametrizations of Tenon compared with PyTorch's: the printed form, the names of the state,
 * the value, gradients, and the value after a step of an optimizer. make_parametrize.py wrote the
 * numbers. */
#include "tests/op/suite.h"
#include "tests/module/suite.h"
#include "tests/spec/proves.h"

#include <stdio.h>
#include <stdlib.h>

#include "parametrize_values.h"

#define CLOSE 1e-12

static void same(tn_tensor *got, const double *expected, const char *what, int index)
{
    ck_assert_msg(got != NULL, "case %d, %s: %s", index, what, tn_error_text());
    tn_tensor *flat = tn_reshape(got, TN_SHAPE(-1));
    for (int64_t i = 0; i < tn_tensor_numel(got); i++) {
        double value = tn_tensor_item(tn_select(flat, 0, i));
        ck_assert_msg(fabs(value - expected[i]) < CLOSE, "case %d, %s [%d]: %.17g, expected %.17g",
                      index, what, (int)i, value, expected[i]);
    }
}

static void set_values(tn_tensor *tensor, const double *values)
{
    ck_assert_msg(tensor != NULL, "%s", tn_error_text());
    tn_tensor *from = tn_tensor_from(values, TN_F64, tn_tensor_shape(tensor));
    tn_grad_begin(false);
    ck_assert_msg(from != NULL && tn_copy_(tensor, from) != NULL, "%s", tn_error_text());
    tn_grad_end();
}

/* The module of a case, with its parametrizations. */
static tn_module *made(const struct parametrize_case *c)
{
    char specs[256], *next = specs;
    tn_dtype_begin(TN_F64);
    tn_module *module = parsed(c->layer);
    tn_dtype_end();

    set_values(tn_module_get(module, c->name), c->weight);
    snprintf(specs, sizeof specs, "%s", c->specs);
    for (char *spec = strtok_r(specs, " ", &next); spec != NULL; spec = strtok_r(NULL, " ", &next))
        ck_assert_msg(tn_parametrize_parse(module, c->name, spec) == TN_OK, "%s: %s", spec,
                      tn_error_text());
    return module;
}

/* Whether a case draws random numbers: then the state is PyTorch's from here on. */
static bool draws(const struct parametrize_case *c)
{
    return strstr(c->specs, "SpectralNorm") != NULL || strstr(c->keys, ".base") != NULL;
}

/* With `compare`, compares the entries of the state with `values`; else sets them. */
static void each_key(const struct parametrize_case *c, tn_module *module, int index,
                     const double *values, bool compare)
{
    char keys[512], *next = keys;
    int64_t count = 0;
    tn_state *state = tn_module_state(module);

    snprintf(keys, sizeof keys, "%s", c->keys);
    for (char *key = strtok_r(keys, " ", &next); key != NULL; key = strtok_r(NULL, " ", &next)) {
        tn_tensor *tensor = tn_module_find_tensor(module, key);
        if (compare)
            same(tensor, values, key, index);
        else
            set_values(tensor, values);
        ck_assert_msg(tn_state_find(state, key) >= 0, "case %d: %s", index, key);
        values += tn_tensor_numel(tensor);
        count++;
    }
    for (int64_t i = 0; i < tn_state_count(state); i++)
        count -= strncmp(tn_state_name(state, i), "parametrizations.", 17) == 0;
    ck_assert_int_eq(count, 0); /* no other names */
    tn_state_drop(state);
}

static tn_status step(void *user, const char *path, tn_tensor *tensor)
{
    const double **expected = user;
    tn_tensor *gradient = tn_tensor_grad(tensor);

    if (strncmp(path, "parametrizations.", 17) != 0)
        return TN_OK;
    same(gradient, *expected, path, -1);
    *expected += tn_tensor_numel(tensor);
    tn_grad_begin(false);
    ck_assert(tn_sub_(tensor, tn_mul_scalar(gradient, 0.1)) != NULL);
    tn_grad_end();
    return TN_OK;
}

static void check_case(const struct parametrize_case *c, int index)
{
    TN_SCOPE;
    tn_module *module = made(c);
    const double *gradients = c->gradients;
    char text[2048];

    tn_module_repr(module, text, sizeof text);
    ck_assert_str_eq(text, c->printed);
    each_key(c, module, index, c->state, !draws(c));
    tn_tensor *value = tn_module_get(module, c->name);
    same(value, c->value, "value", index);
    tn_tensor *factor = tn_tensor_from(c->factor, TN_F64, tn_tensor_shape(value));
    ck_assert_msg(tn_backward(tn_sum(tn_mul(value, factor))) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_module_each_tensor(module, TN_SLOT_PARAMETER, false, step, &gradients),
                     TN_OK);
    same(tn_module_get(module, c->name), c->after, "value after a step", index);
    tn_module_drop(module);
}

START_TEST(values_and_gradients_are_those_of_pytorch)
{
    for (int i = 0; i < (int)(sizeof parametrize_cases / sizeof *parametrize_cases); i++)
        check_case(&parametrize_cases[i], i);
    TN_PROVES("PRM-003", "PRM-015", "PRM-017", "PRM-019", "REP-007");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { values_and_gradients_are_those_of_pytorch, NULL };

    return suite_run("values of parametrizations", tests);
}
