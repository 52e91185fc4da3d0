/* SPDX-License-Identifier: MIT
 *
 * Cases that are generated, because they are too long for a file: reductions over more elements
 * than an accumulator of 16 bits can add, elementwise operators on 6004 elements, cases of other
 * pointwise operators with their numbers repeated to 5003 elements, and integers beyond 2^53. */
#include "ops.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, LONG = 1501 };

static void add_input(FILE *to, const char *dtype, const char *shape, const char *strides,
                      int64_t count)
{
    fprintf(to, "in %s %s %s 0 g :", dtype, shape, strides);
    for (int64_t i = 0; i < count; i++)
        fprintf(to, " %g", 1 + 0.1 * (double)(i * 5 % 7));
    fputc('\n', to);
}

/* A case that reduces rows of 1501 numbers from 1 to 1.6. */
static void add_reduction(FILE *to, const char *op, const char *dtype)
{
    fprintf(to, "case %s/long-%s\nop %s\n%s\n", op, dtype, op,
            strcmp(op, "cumsum") == 0 ? "opt dim 1" : "opt dims 1");
    add_input(to, dtype, "4,1501", "1501,1", (int64_t)ROWS * LONG);
}

/* A case that is so long that calls from several threads overlap. */
static void add_elementwise(FILE *to, const char *op, int inputs)
{
    fprintf(to, "case %s/long\nop %s\n", op, op);
    for (int i = 0; i < inputs; i++)
        add_input(to, "f32", "4,1501", "1501,1", (int64_t)ROWS * LONG);
}

static void add_product(FILE *to, const char *dtype)
{
    fprintf(to, "case bmm/long-%s\nop bmm\n", dtype);
    add_input(to, dtype, "1,2,1501", "3002,1501,1", (int64_t)2 * LONG);
    add_input(to, dtype, "1,1501,2", "3002,2,1", (int64_t)2 * LONG);
}

/* Each result is odd. Two of the three results are beyond 2^53, where all doubles are even
 * numbers. */
static void add_whole(FILE *to, const char *op)
{
    fprintf(to,
            "case %s/beyond-double\nop %s\n"
            "in i64 3 1 0 - : 9007199254740992 -9007199254740992 4611686018427387904\n"
            "in i64 3 1 0 - : %s\n",
            op, op, strcmp(op, "mul") == 0 ? "1 1 1" : "1 3 5");
}

/* Odd numbers beyond 2^53, which change when they are converted to double and back. */
static void add_moved(FILE *to, const char *op)
{
    fprintf(to,
            "case %s/beyond-double\nop %s\n"
            "in i64 2,3 3,1 0 - : 9007199254740993 -9007199254740993 4611686018427387905 "
            "9223372036854775807 -9223372036854775807 1\n",
            op, op);
}

/* Numbers between two numbers of the narrow dtype. A cast must round to the nearest one, and to the
 * even one if both are equally near. */
static void add_rounding(FILE *to, const char *dtype)
{
    fprintf(
        to,
        "case cast/round-%s\nop cast\nopt dtype %s\n"
        "in f32 8 1 0 - : 1.00390625 1.01171875 1.0063 -1.0117 1.00048828125 1.00146484375 3.14159 "
        "-2.71828\n",
        dtype, dtype);
}

int64_t conform_long_cases(const char *op, bool (*take)(void *user, conform_case *one), void *user,
                           char *words, size_t size)
{
    static const char *const dtypes[] = { "f32", "bf16", "f16", NULL };
    static const struct {
        const char *op;
        int inputs;
    } elementwise[] = { { "add", 2 }, { "mul", 2 }, { "relu", 1 }, { "exp", 1 }, { NULL, 0 } };
    static const char *const moved[] = {
        "copy", "clone", "contiguous", "neg", "abs", "sign", NULL
    };
    FILE *file = tmpfile();
    char path[64];
    int64_t count = 0;

    if (file == NULL)
        return 0;
    for (int i = 0; dtypes[i] != NULL; i++) {
        if (strcmp(op, "sum") == 0 || strcmp(op, "mean") == 0)
            add_reduction(file, op, dtypes[i]);
        if (strcmp(op, "bmm") == 0)
            add_product(file, dtypes[i]);
    }
    for (int i = 0; elementwise[i].op != NULL; i++)
        if (strcmp(op, elementwise[i].op) == 0)
            add_elementwise(file, op, elementwise[i].inputs);
    for (int i = 1; dtypes[i] != NULL && strcmp(op, "cast") == 0; i++)
        add_rounding(file, strcmp(dtypes[i], "bf16") == 0 ? "bfloat16" : "float16");
    if (strcmp(op, "add") == 0 || strcmp(op, "sub") == 0)
        add_whole(file, op);
    for (int i = 0; moved[i] != NULL; i++)
        if (strcmp(op, moved[i]) == 0)
            add_moved(file, op);
    fprintf(file, "end\n");
    fflush(file);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(file));
    count = conform_cases(path, op, take, user, words, size);
    fclose(file);
    return count < 0 ? 0 : count;
}

/* ---- pointwise operators --------------------------------------------------------------------- */

/* More than a kernel computes in one block or in one part of tn_parallel_for, and a prime number,
 * so that a rest is left after blocks of any size. */
enum { REPEATED = 5003 };

/* Returns the number of elements that the inputs have in common; inputs of one element may be
 * broadcast. 0: there is no such number, or none of the inputs has more than one. */
static int64_t common_count(const conform_case *one)
{
    int64_t count = 0;

    for (int64_t i = 0; i < one->n_in; i++) {
        const conform_tensor *t = &one->in[i];

        if (!t->there || (t->count == 1 && t->ndim == 0))
            continue;
        if (t->count < 2 || (count > 0 && t->count != count))
            return 0;
        count = t->count;
    }
    return count;
}

/* Makes `to` a vector of REPEATED elements: the numbers of `from`, again and again. */
static bool repeat(conform_tensor *to, const conform_tensor *from)
{
    size_t parts = is_complex(from->dtype) ? 2 : 1;

    *to = *from;
    if (!from->there || from->ndim == 0)
        return true;
    to->ndim = 1;
    to->shape[0] = to->count = REPEATED;
    to->strides[0] = 1;
    to->offset = 0;
    to->values = malloc(REPEATED * parts * sizeof *to->values);
    to->whole = from->whole != NULL ? malloc(REPEATED * sizeof *to->whole) : NULL;
    for (int64_t k = 0; k < REPEATED && to->values != NULL; k++)
        memcpy(to->values + (size_t)k * parts, from->values + (size_t)(k % from->count) * parts,
               parts * sizeof *to->values);
    for (int64_t k = 0; k < REPEATED && to->whole != NULL; k++)
        to->whole[k] = from->whole[k % from->count];
    return to->values != NULL && (from->whole == NULL) == (to->whole == NULL);
}

/* Compares a call of the repeated case with the reference. A case that only its repetition makes
 * impossible passes. */
static bool compare_repeated(subject *s, const conform_case *one, tn_dtype from, tn_dtype dtype)
{
    static attempt ref, a;
    where_from w = { one, dtype, "repeated to 5003 elements", "output", 0 };
    const tn_device *reference = tn_device_find("reference");
    bool well = true;

    if (conform_inputs(one, from, dtype, !conform_jumps(one), reference, CONFORM_AS_GIVEN, false,
                       &ref) != TN_OK ||
        conform_call(one, reference, 7, &ref) != TN_OK ||
        conform_inputs(one, from, dtype, false, s->device, CONFORM_AS_GIVEN, false, &a) != TN_OK) {
        tn_error_clear();
        return true;
    }
    if (conform_call(one, s->device, 7, &a) != TN_OK)
        return conform_missing(s, one, dtype);
    for (; w.index < one->def->n_outputs && well; w.index++)
        well = conform_compare(s, &w, a.out[w.index], ref.out[w.index]);
    return well;
}

bool conform_repeated(subject *s, const conform_case *one, tn_dtype from, tn_dtype dtype)
{
    conform_case longer = *one;
    conform_tensor in[OPERANDS];
    bool well = true;

    if (!(one->def->flags & TN_OP_POINTWISE) || s->row[dtype].lengthened || one->draws ||
        common_count(one) == 0)
        return true;
    s->row[dtype].lengthened = true;
    longer.in = in;
    for (int64_t i = 0; i < one->n_in; i++)
        well = repeat(&in[i], &one->in[i]) && well;
    well = !well || compare_repeated(s, &longer, from, dtype);
    for (int64_t i = 0; i < one->n_in; i++) {
        if (in[i].values != one->in[i].values)
            free(in[i].values);
        if (in[i].whole != one->in[i].whole)
            free(in[i].whole);
    }
    return well;
}
