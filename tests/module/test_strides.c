/* SPDX-License-Identifier: MIT
 *
 * Layers and operators keep channels last wherever PyTorch does (tests/oracle/strides.txt, which
 * make_strides.py there writes), and compute the same numbers as with channels first. */
#include "tests/module/suite.h"

#include <stdio.h>

enum { LINE = 256 };

static tn_tensor *add_channels(tn_tensor *x)
{
    int64_t sizes[5] = { 0, 1, 1, 1, 1 };
    tn_ints shape = tn_tensor_shape(x);

    sizes[0] = shape.at[1];
    return tn_add(x, tn_ones((tn_ints){ sizes, shape.count - 1 }));
}

static tn_tensor *twice(tn_tensor *x, int64_t dim)
{
    return tn_cat((tn_tensor *[]){ x, x }, 2, dim);
}

static tn_tensor *limited(tn_tensor *x)
{
    return tn_clamp(x, 0.0, 1.0);
}

static tn_tensor *zero_of(void)
{
    return tn_tensor_full(TN_SCALAR_SHAPE, 0, TN_F32, NULL);
}

static tn_tensor *operate(const char *name, tn_tensor *x)
{
    const int64_t three[] = { 3 };

    if (strcmp(name, "neg") == 0)
        return tn_neg(x);
    if (strcmp(name, "exp") == 0)
        return tn_exp(x);
    if (strcmp(name, "add") == 0)
        return tn_add(x, x);
    if (strcmp(name, "add_number") == 0)
        return tn_add_scalar(x, 1);
    if (strcmp(name, "add_channels") == 0)
        return add_channels(x);
    if (strcmp(name, "mul") == 0)
        return tn_mul(x, x);
    if (strcmp(name, "clone") == 0)
        return tn_clone(x);
    if (strcmp(name, "cast") == 0)
        return tn_cast(x, TN_F64);
    if (strcmp(name, "clamp") == 0)
        return limited(x);
    if (strcmp(name, "where") == 0)
        return tn_where(tn_gt(x, zero_of()), x, tn_add_scalar(x, 1));
    if (strcmp(name, "less") == 0)
        return tn_lt(x, zero_of());
    if (strcmp(name, "cat") == 0)
        return twice(x, 1);
    if (strcmp(name, "cat_rows") == 0)
        return twice(x, 2);
    if (strcmp(name, "full_like") == 0)
        return tn_fill(x, 2);
    if (strcmp(name, "flip") == 0)
        return tn_flip(x, (tn_ints){ three, 1 });
    if (strcmp(name, "detach") == 0)
        return tn_detach(x);
    ck_abort_msg("strides.txt has the operator %s, which this test does not know", name);
    return NULL;
}

/* Numbers of both signs. */
static tn_tensor *numbers(tn_ints shape)
{
    return tn_normal(tn_tensor_empty(shape, TN_F32, tn_device_find("cpu")));
}

static tn_tensor *channels_last(tn_tensor *x)
{
    int64_t strides[5];
    tn_ints shape = tn_tensor_shape(x);
    int64_t step = shape.at[1];

    strides[1] = 1;
    for (int64_t d = shape.count - 1; d > 1; d--) {
        strides[d] = step;
        step *= shape.at[d];
    }
    strides[0] = step;
    return tn_copy_(tn_tensor_empty_strided(shape, (tn_ints){ strides, shape.count }, TN_F32,
                                            tn_device_find("cpu")),
                    x);
}

static bool has_channels_last(const tn_tensor *y)
{
    tn_ints shape = tn_tensor_shape(y), strides = tn_tensor_strides(y);
    int64_t step = shape.at[1];

    if (shape.at[1] != 1 && strides.at[1] != 1)
        return false;
    for (int64_t d = shape.count - 1; d > 1; d--) {
        if (shape.at[d] != 1 && strides.at[d] != step)
            return false;
        step *= shape.at[d];
    }
    return shape.at[0] == 1 || strides.at[0] == step;
}

/* Returns the result for x. Random layers draw the same numbers in each call. */
static tn_tensor *result(const char *kind, const char *mode, const char *what, tn_tensor *x,
                         bool last)
{
    const tn_memory_format format = tn_tensor_ndim(x) == 4 ? TN_MEMORY_FORMAT_CHANNELS_LAST
                                                           : TN_MEMORY_FORMAT_CHANNELS_LAST_3D;
    tn_module *module;
    tn_tensor *y;

    if (strcmp(kind, "op") == 0)
        return operate(what, x);
    tn_random_seed(7);
    module = parsed(what);
    tn_module_train(module, strcmp(mode, "train") == 0);
    if (last)
        ck_assert_int_eq(tn_module_convert(module, NULL, TN_DTYPE_AUTO, format, 0), TN_OK);
    y = tn_module_call(module, x);
    tn_module_drop(module);
    return y;
}

static tn_ints sizes_of(const char *text, int64_t sizes[5])
{
    int64_t count = 0;

    for (char *end = (char *)(uintptr_t)text; count < 5 && *end != '\0'; text = end + 1)
        sizes[count++] = strtoll(text, &end, 10);
    return (tn_ints){ sizes, count };
}

/* Splits "layer MODE SIZES SPEC" or "op NAME SIZES". */
static bool read_line(FILE *file, char line[LINE], char *parts[4])
{
    while (fgets(line, LINE, file) != NULL) {
        if (line[0] == '#')
            continue;
        line[strcspn(line, "\n")] = '\0';
        for (int i = 0; i < 4; i++) {
            parts[i] = line;
            line += strcspn(line, i < 3 ? " " : "");
            if (*line != '\0' && i < 3)
                *line++ = '\0';
        }
        return true;
    }
    return false;
}

START_TEST(channels_stay_last_where_pytorch_keeps_them)
{
    FILE *file = fopen(STRIDES_FILE, "r");
    char line[LINE], *parts[4];
    int count = 0, wrong = 0;

    ck_assert_ptr_nonnull(file);
    for (; read_line(file, line, parts); count++) {
        TN_SCOPE;
        bool is_op = strcmp(parts[0], "op") == 0;
        const char *what = parts[is_op ? 1 : 3];
        int64_t sizes[5];
        tn_tensor *x = numbers(sizes_of(parts[2], sizes)), *y, *first;

        y = result(parts[0], parts[1], what, channels_last(x), true);
        ck_assert_msg(y != NULL, "%s: %s", what, tn_error_text());
        if (!has_channels_last(y)) {
            fprintf(stderr, "%s %s %s: not channels last\n", parts[0], parts[1], what);
            wrong++;
        }
        first = result(parts[0], parts[1], what, x, false);
        ck_assert_msg(tn_allclose(y, first, 1e-4, 1e-5) == 1, "%s %s: other numbers", parts[1],
                      what);
    }
    fclose(file);
    ck_assert_int_gt(count, 180);
    ck_assert_msg(wrong == 0, "%d of %d lose the order", wrong, count);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { channels_stay_last_where_pytorch_keeps_them, NULL };

    return suite_run("strides", tests);
}
