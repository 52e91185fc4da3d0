/* SPDX-License-Identifier: MIT
 *
 * The cases of layers in tests/conform, one after the other. */
#ifndef TN_TESTS_GRAPH_CONFORM_CASES_H
#define TN_TESTS_GRAPH_CONFORM_CASES_H

#include "tests/graph/suite.h"

enum { LINE = 1 << 16, MOST = 8 };

/* One case of the file: a module and its inputs. */
static char spec[LINE];
static tn_tensor *in[MOST];
static int64_t n_in;
static bool only_eval;

/* "f64 2,3 g : 1 2 3": dtype, shape, g for a gradient, numbers. */
static void read_input(char *text)
{
    char dtype[16], *at;
    int64_t shape[TN_MAX_DIMS], ndim = 0, count = 1;
    bool gradient = false;
    tn_dtype type;
    double *values;
    int used;

    ck_assert_int_eq(sscanf(text, "%15s %n", dtype, &used), 1);
    ck_ok(tn_dtype_parse(dtype, &type));
    for (at = text + used; *at >= '0' && *at <= '9'; at += *at == ',') {
        shape[ndim] = strtoll(at, &at, 10);
        count *= shape[ndim++];
    }
    at += *at == '-';
    if (strncmp(at, " g", 2) == 0) {
        gradient = true;
        at += 2;
    }
    at += strcspn(at, ":");
    values = malloc((size_t)(count + 1) * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = type == TN_I64 ? (double)(i % 2) : (double)((i * 37) % 23) / 23 - 0.4;
    for (int64_t i = 0; *at != '\0' && i < count; i++)
        values[i] = strtod(at + (i == 0), &at);
    ck_assert_int_lt(n_in, MOST);
    in[n_in] = tn_keep(
        tn_copy(tn_cast(tn_tensor_from(values, TN_F64, (tn_ints){ shape, ndim }), type)));
    if (gradient)
        ck_ok(tn_tensor_set_requires_grad(in[n_in], true));
    n_in++;
    free(values);
}

static void end_case(void (*check)(void))
{
    if (spec[0] == '\0' || n_in == 0)
        return;
    check();
    for (int64_t i = 0; i < n_in; i++)
        tn_tensor_drop(in[i]);
    n_in = 0;
    spec[0] = '\0';
}

static void each_conform_case(const char *name, void (*check)(void))
{
    static char line[LINE];
    char path[TEST_PATH], part[128];
    FILE *file;

    snprintf(part, sizeof part, "tests/conform/%s", name);
    source_path(path, part);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        TN_SCOPE;
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "layer ", 6) == 0) {
            end_case(check);
            snprintf(spec, sizeof spec, "%s", line + 6);
            only_eval = false;
        } else if (strncmp(line, "in ", 3) == 0) {
            read_input(line + 3);
        } else if (strcmp(line, "eval") == 0) {
            only_eval = true;
        }
    }
    end_case(check);
    fclose(file);
}

#endif
