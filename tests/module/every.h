/* SPDX-License-Identifier: MIT
 *
 * The layers of the plugin as tests/oracle/layers.txt builds and calls them, one after the other. */
#ifndef TN_TESTS_MODULE_EVERY_H
#define TN_TESTS_MODULE_EVERY_H

#include <ctype.h>

#include "tests/base/suite.h"

enum { LINE = 1 << 16, MOST = 6, VALUES = 4096 };

static char spec[512];

/* The inputs of a call; none: the layer is built only. */
struct subject {
    tn_tensor *in[MOST];
    int64_t n_in;
};

static tn_tensor *read_input(const char *text)
{
    static double numbers[VALUES];
    char dtype_name[16], shape_text[128];
    int64_t sizes[TN_MAX_DIMS], ndim = 0, count = 0;
    const char *values = strstr(text, " : "), *shape = shape_text;
    tn_dtype dtype;
    ck_assert_ptr_nonnull(values);
    ck_assert_int_eq(sscanf(text, "%15s %127s", dtype_name, shape_text), 2);
    ck_assert_int_eq(tn_dtype_parse(dtype_name, &dtype), TN_OK);
    for (char *end; isdigit((unsigned char)*shape); shape = *end == ',' ? end + 1 : end)
        sizes[ndim++] = strtoll(shape, &end, 10);
    values += 3;
    for (char *end; *values != '\0'; values = end) {
        numbers[count++] = strtod(values, &end);
        while (isspace((unsigned char)*end))
            end++;
    }
    tn_tensor *wide = tn_tensor_from(numbers, TN_F64, (tn_ints){ sizes, ndim });
    return tn_tensor_keep(dtype == TN_F64 ? wide : tn_cast(wide, dtype));
}

/* Asks about each layer, whose spec is in `spec`; returns how many there were. */
static int each_layer(void (*ask)(const struct subject *s))
{
    static char line[LINE];
    FILE *file = fopen(TN_TEST_SRCDIR "/tests/oracle/layers.txt", "r");
    struct subject s = { .n_in = 0 };
    int seen = 0;
    ck_assert_ptr_nonnull(file);
    while (fgets(line, LINE, file) != NULL) {
        TN_SCOPE;
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "layer ", 6) == 0 || strcmp(line, "end") == 0) {
            if (spec[0] != '\0') {
                ask(&s);
                seen++;
            }
            for (int64_t i = 0; i < s.n_in; i++)
                tn_tensor_drop(s.in[i]);
            s.n_in = 0;
            tn_snprint(spec, sizeof spec, "%s", line[0] == 'l' ? line + 6 : "");
        } else if (strncmp(line, "in ", 3) == 0) {
            s.in[s.n_in++] = read_input(line + 3);
        }
    }
    fclose(file);
    return seen;
}

#endif
