/* SPDX-License-Identifier: MIT
 *
 * Reads the cases of tests/oracle (cases.py describes the lines): an operator, its options and
 * inputs. A test calls the operator, and reads the other lines itself. */
#ifndef TN_TESTS_ORACLE_CASE_H
#define TN_TESTS_ORACLE_CASE_H

#include "tests/libcheck.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

#include "tests/oracle/rows.h"

enum { LINE = 1 << 16, MOST = 2 * TN_MAX_OPERANDS, VALUES = 4096 };

/* The files of cases with results. */
static const char *const case_files[] = {
    "basic.txt",   "elementwise.txt",     "reduction_shape_index.txt",
    "linalg.txt",  "conv_pool_norm.txt",  "loss.txt",
    "opinfo.txt",  "primitives.txt",      "optimizer.txt",
    "fused.txt",   "reduction_order.txt", "elementwise_special.txt",
    "index.txt",   "unique.txt",          "fft.txt",
    "refused.txt", "index_several.txt",   "quantize.txt",
};
enum { CASE_FILES = sizeof case_files / sizeof case_files[0] };

typedef struct reading {
    char line[LINE];
    char name[128];
    const tn_op *op;
    uint8_t *options; /* the operator's struct */
    int64_t rows[MOST][TN_MAX_DIMS];
    double numbers[MOST][TN_MAX_DIMS];
    char texts[MOST][32]; /* strings among the options */
    int n_rows, n_texts;
    tn_tensor *in[MOST], *out[MOST];
    int64_t n_in;
    int n_out; /* compared so far */
    bool called, skipped;
    bool exact;   /* the file has results of float64, rounded, and the tolerances of the operators'
                     contract hold */
    double loose; /* the tolerance of a case in which PyTorch's own error is larger */
    int cases, skips;
} reading;

static double values[VALUES];

static bool is_complex(tn_dtype dtype)
{
    return dtype == TN_C64 || dtype == TN_C128;
}

static tn_dtype dtype_of(const char *name)
{
    tn_dtype dtype = TN_F32;

    ck_assert_int_eq(tn_dtype_parse(name, &dtype), TN_OK);
    return dtype;
}

static int64_t read_values(const char *text)
{
    int64_t count = 0;

    while (*text == ' ')
        text++;
    for (char *end; *text != '\0' && *text != '\n'; text = end) {
        ck_assert(count < VALUES);
        values[count++] = strtod(text, &end);
        while (*end == ' ')
            end++;
    }
    return count;
}

/* The same tensor on another device. Conversions are done on the cpu: not every device has them
 * all. */
static tn_tensor *moved(tn_tensor *from, const tn_device *device)
{
    size_t bytes = (size_t)tn_tensor_numel(from) * tn_dtype_size(tn_tensor_dtype(from));
    tn_tensor *to = tn_tensor_empty(tn_tensor_shape(from), tn_tensor_dtype(from), device);
    char *buffer = malloc(bytes + 1);

    ck_assert_msg(to != NULL && tn_tensor_copy_out(from, buffer, bytes) == TN_OK &&
                      tn_tensor_copy_in(to, buffer, bytes) == TN_OK,
                  "%s", tn_error_text());
    free(buffer);
    return to;
}

/* A tensor of `dtype` with values[0..count), as a row; complex numbers are two values each. */
static tn_tensor *memory_of(tn_dtype dtype, int64_t count)
{
    const tn_device *cpu = tn_device_find("cpu");
    tn_dtype widest = is_complex(dtype) ? TN_C128 : TN_F64;
    tn_tensor *wide;

    count /= is_complex(dtype) ? 2 : 1;
    wide = tn_tensor_empty(TN_SHAPE(count), widest, cpu);
    tn_tensor_copy_in(wide, values, (size_t)count * tn_dtype_size(widest));
    if (dtype != widest)
        wide = tn_copy_(tn_tensor_empty(TN_SHAPE(count), dtype, cpu), wide);
    return moved(wide, tn_default_device());
}

static void set_option(reading *r, const char *name, const char *text)
{
    const tn_op_def *def = tn_op_definition(r->op);
    const tn_option *row = def->options;

    while (row->kind != TN_OPTION_KIND_END && strcmp(row->name, name) != 0)
        row++;
    ck_assert_msg(row->kind != TN_OPTION_KIND_END, "%s: no option %s", r->name, name);
    if (r->options == NULL) {
        r->options = malloc(def->options_size);
        memcpy(r->options, def->defaults, def->options_size);
    }
    switch (row->kind) {
    case TN_OPTION_KIND_BOOL:
        *(bool *)(r->options + row->offset) = strcmp(text, "True") == 0;
        break;
    case TN_OPTION_KIND_INT:
        *(int64_t *)(void *)(r->options + row->offset) = strtoll(text, NULL, 10);
        break;
    case TN_OPTION_KIND_FLOAT:
        *(double *)(void *)(r->options + row->offset) = strtod(text, NULL);
        break;
    case TN_OPTION_KIND_SCALAR:
        *(tn_scalar *)(void *)(r->options + row->offset) = read_scalar(text);
        break;
    case TN_OPTION_KIND_STRING:
        ck_assert_int_lt(r->n_texts, MOST);
        snprintf(r->texts[r->n_texts], sizeof r->texts[0], "%.31s", text);
        *(const char **)(void *)(r->options + row->offset) = r->texts[r->n_texts++];
        break;
    case TN_OPTION_KIND_INTS:
        *(tn_ints *)(void *)(r->options + row->offset) = (tn_ints){
            r->rows[r->n_rows], read_row(text, r->rows[r->n_rows])
        };
        r->n_rows++;
        break;
    case TN_OPTION_KIND_FLOATS:
        *(tn_floats *)(void *)(r->options + row->offset) = (tn_floats){
            r->numbers[r->n_rows], read_numbers(text, r->numbers[r->n_rows])
        };
        r->n_rows++;
        break;
    case TN_OPTION_KIND_DTYPE:
        *(tn_dtype *)(void *)(r->options + row->offset) = dtype_of(text);
        break;
    default: ck_abort_msg("%s: option %s of a kind that this test does not set", r->name, name);
    }
}

static void read_input(reading *r, char *text)
{
    char dtype[16], shape[128], strides[128], grad;
    int64_t sizes[TN_MAX_DIMS], steps[TN_MAX_DIMS], ndim;
    long long offset;
    int used = 0;

    ck_assert_msg(r->n_in < MOST, "%s has too many inputs", r->name);
    if (strncmp(text, "none", 4) == 0) {
        r->in[r->n_in++] = TN_NONE;
        return;
    }
    ck_assert_int_eq(
        sscanf(text, "%15s %127s %127s %lld %c :%n", dtype, shape, strides, &offset, &grad, &used),
        5);
    ndim = read_row(shape, sizes);
    read_row(strides, steps);
    r->in[r->n_in] = tn_tensor_as_strided(memory_of(dtype_of(dtype), read_values(text + used)),
                                          (tn_ints){ sizes, ndim }, (tn_ints){ steps, ndim },
                                          offset);
    ck_assert_msg(r->in[r->n_in] != NULL, "%s: %s", r->name, tn_error_text());
    if (grad == 'g')
        ck_assert_int_eq(tn_tensor_set_requires_grad(r->in[r->n_in], true), TN_OK);
    r->n_in++;
}

/* Calls an operator without outputs, which writes into its inputs. The results are copies of these
 * inputs: the first input with the flag for this, and all after it. */
TN_ATTR(unused)
static tn_status write_into(const reading *r, tn_tensor *const *given, tn_tensor **out)
{
    const tn_op_def *def = tn_op_definition(r->op);
    tn_tensor *in[MOST];
    int64_t first = 0;

    while (first < def->n_inputs - 1 && (def->inputs[first].flags & TN_OPERAND_WRITTEN) == 0)
        first++;
    for (int64_t i = 0; i < r->n_in; i++) {
        in[i] = i < first ? given[i] : tn_clone(given[i]);
        if (in[i] == NULL)
            return tn_error_last_code();
        if (i >= first)
            out[i - first] = in[i];
    }
    return tn_op_call(r->op, in, r->n_in, r->options, NULL, 0);
}

/* A line that is part of the call; returns whether it is one. */
static bool read_call(reading *r)
{
    char *text = strchr(r->line, ' ');
    char first[160], second[160];

    text = text != NULL ? text + 1 : r->line + strlen(r->line);
    if (strncmp(r->line, "op ", 3) == 0) {
        sscanf(text, "%127s", first);
        r->op = tn_op_find(first, 0);
        ck_assert_msg(r->op != NULL, "%s", tn_error_text());
    } else if (strncmp(r->line, "opt ", 4) == 0) {
        ck_assert_int_eq(sscanf(text, "%159s %159s", first, second), 2);
        set_option(r, first, second);
    } else if (strncmp(r->line, "in ", 3) == 0) {
        read_input(r, text);
    } else {
        return false;
    }
    return true;
}

/* Begins the next case: its line, or the line "end". */
static void begin_case(reading *r)
{
    free(r->options);
    r->options = NULL;
    r->op = NULL;
    r->n_rows = r->n_texts = r->n_out = 0;
    r->n_in = 0;
    r->loose = 0;
    r->called = r->skipped = false;
    snprintf(r->name, sizeof r->name, "%.127s", r->line + (r->line[0] == 'c' ? 5 : 0));
    r->cases += r->line[0] == 'c';
}

static FILE *open_cases(const char *name)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/tests/oracle/%s", TN_TEST_SRCDIR, name);
    file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    return file;
}

#endif
