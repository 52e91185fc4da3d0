/* SPDX-License-Identifier: MIT
 *
 * Operators of several float inputs, called with inputs of different float types: promoted, or
 * refused with a message. The operators come from the registry and their inputs from tests/oracle;
 * the expected results are those of the same call in float64 on the same, rounded numbers. */
#include <stdio.h>

#include <tenon/contrib.h>

#include "sdk/conform/conform.h"
#include "sdk/conform/reference.h"
#include "tests/op/suite.h"

enum { MOST = 32, ELEMENTS = 2000, TYPES = 4 };

static const tn_dtype types[TYPES] = { TN_F16, TN_BF16, TN_F32, TN_F64 };

/* The tolerances of tests/oracle. */
static double step_of(tn_dtype dtype)
{
    return dtype == TN_F64 ? 1e-10 : dtype == TN_F32 ? 1e-5 : dtype == TN_F16 ? 2e-3 : 1.6e-2;
}

static double largest_of(tn_dtype dtype)
{
    return dtype == TN_F16 ? 6e4 : dtype == TN_F64 ? 1e300 : 1e38;
}

/* ---- operators ---- */

static const tn_operand *operand_of(const tn_op_def *def, int64_t i)
{
    return &def->inputs[i < def->n_inputs ? i : def->n_inputs - 1];
}

/* Whether an input may have each of the types. */
static bool takes_floats(const tn_operand *operand)
{
    uint64_t mask = operand->dtypes != 0 ? operand->dtypes : TN_MASK_ARITH;

    for (int i = 0; i < TYPES; i++)
        if ((mask & TN_BIT(types[i])) == 0)
            return false;
    return true;
}

static bool is_subject(const tn_op_def *def)
{
    int count = 0;

    for (int32_t i = 0; i < def->n_inputs; i++) {
        if ((def->inputs[i].flags & TN_OPERAND_WRITTEN) != 0)
            return false;
        if (takes_floats(&def->inputs[i]))
            count += (def->inputs[i].flags & TN_OPERAND_LIST) != 0 ? 2 : 1;
    }
    return count >= 2 && def->n_outputs > 0;
}

/* ---- one call ---- */

typedef struct attempt {
    tn_tensor *in[MOST], *out[8], *grad[MOST];
    tn_status status;
} attempt;

typedef struct subject {
    const tn_op_def *def;
    uint32_t seen; /* bit n: a case with n float inputs was tested */
    int64_t cases, calls, refused;
} subject;

/* Only cases of float32 or float64 are used: others would have rounded numbers already. */
static bool is_wide(tn_dtype dtype)
{
    return dtype == TN_F32 || dtype == TN_F64;
}

static tn_tensor *tensor_of(const conform_tensor *from, tn_dtype rounded, tn_dtype dtype)
{
    tn_ints shape = { from->shape, from->ndim };
    tn_tensor *wide;

    if (!from->there)
        return TN_NONE;
    wide = tn_tensor_from(from->values, TN_F64, shape);
    return tn_cast(tn_cast(wide, rounded), dtype);
}

/* False for operands that may require gradients but have no derivative: backward fails. */
static bool is_differentiable(const conform_case *one, int64_t operand)
{
    return strncmp(one->def->name, "igamma", strlen("igamma")) != 0 || operand != 0;
}

static void call(attempt *a, const conform_case *one, const tn_dtype *dtypes, bool exact)
{
    tn_tensor *leaves[MOST], *gradients[MOST], *cotangent = NULL;
    static const tn_backward_options unused = { .size = sizeof unused, .allow_unused = 1 };
    int64_t n_leaves = 0;

    for (int64_t i = 0; i < one->n_in; i++) {
        bool one_of_them = dtypes[i] != TN_DTYPE_AUTO;
        tn_dtype dtype = one_of_them ? dtypes[i] : one->in[i].dtype;

        a->grad[i] = TN_NONE;
        a->in[i] = tensor_of(&one->in[i], dtype, exact && one_of_them ? TN_F64 : dtype);
        ck_assert_msg(a->in[i] != NULL, "%s", tn_error_text());
        if (one_of_them && (operand_of(one->def, i)->flags & TN_OPERAND_NO_GRAD) == 0 &&
            is_differentiable(one, i))
            leaves[n_leaves++] = with_grad(a->in[i]);
    }
    a->status = tn_op_call(one->op, a->in, one->n_in, one->options, a->out, one->def->n_outputs);
    if (a->status != TN_OK || n_leaves == 0 || !tn_tensor_requires_grad(a->out[0]))
        return;
    /* a number that every type represents exactly, so that both calls get the same */
    cotangent = tn_tensor_full(tn_tensor_shape(a->out[0]), 0.625, tn_tensor_dtype(a->out[0]), NULL);
    a->status = tn_grad(a->out, &cotangent, 1, leaves, gradients, n_leaves, &unused);
    for (int64_t i = 0, k = 0; i < one->n_in && a->status == TN_OK; i++)
        if (k < n_leaves && a->in[i] == leaves[k])
            a->grad[i] = gradients[k++];
}

static void describe(char *text, size_t size, const conform_case *one, const tn_dtype *dtypes)
{
    size_t used = (size_t)snprintf(text, size, "%s (case %s,", one->def->name, one->name);

    for (int64_t i = 0; i < one->n_in && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, " %s",
                                 dtypes[i] != TN_DTYPE_AUTO ? tn_dtype_name(dtypes[i]) : "-");
    if (used < size)
        snprintf(text + used, size - used, ")");
}

/* ---- what is expected ---- */

/* PyTorch's rule for floats: inputs with dimensions decide, those without only among themselves. */
static tn_dtype promoted(const conform_case *one, const tn_dtype *dtypes)
{
    tn_dtype wide = TN_DTYPE_AUTO, scalar = TN_DTYPE_AUTO;

    for (int64_t i = 0; i < one->n_in; i++) {
        tn_dtype *side = one->in[i].ndim > 0 ? &wide : &scalar;

        if (dtypes[i] == TN_DTYPE_AUTO ||
            (operand_of(one->def, i)->flags & TN_OPERAND_NO_PROMOTE) != 0)
            continue;
        *side = *side == TN_DTYPE_AUTO ? dtypes[i] : tn_dtype_promote(*side, dtypes[i]);
    }
    return wide != TN_DTYPE_AUTO ? wide : scalar;
}

/* Operators whose inference promotes an operand that the core does not promote, as PyTorch does: a
 * loss promotes probabilities but not indices, a covariance the weights of the observations. */
static const struct {
    const char *op;
    int64_t operand;
} by_inference[] = { { "cross_entropy_weighted", 1 }, { "cov", 2 } };

/* Operators on integers whose floats are scales: the arithmetic is float32. */
static const char *const in_float32[] = { "linear_int8", "convolution_int8", "dequantize",
                                          "dequantize_packed" };

/* The dtype of the result. */
static tn_dtype expected_of(const conform_case *one, const tn_dtype *dtypes)
{
    for (size_t i = 0; i < sizeof by_inference / sizeof by_inference[0]; i++) {
        int64_t operand = by_inference[i].operand;

        if (strcmp(one->def->name, by_inference[i].op) == 0 && operand < one->n_in &&
            dtypes[operand] != TN_DTYPE_AUTO)
            return tn_dtype_promote(promoted(one, dtypes), dtypes[operand]);
    }
    for (size_t i = 0; i < sizeof in_float32 / sizeof in_float32[0]; i++)
        if (strcmp(one->def->name, in_float32[i]) == 0)
            return TN_F32;
    if ((one->def->flags & (TN_OP_PROMOTE | TN_OP_PROMOTE_FLOAT)) != 0)
        return promoted(one, dtypes);
    return dtypes[0];
}

static void same(tn_tensor *found, tn_tensor *expected, tn_dtype dtype, double limit,
                 const char *what, const char *title)
{
    double scale = 0;
    int64_t count = tn_tensor_numel(expected), other;
    double *a = conform_values(tn_detach(found), &other);
    double *b = conform_values(tn_detach(expected), &count);

    ck_assert_msg(a != NULL && b != NULL && count == other, "%s: %s", title, what);
    for (int64_t i = 0; i < count; i++)
        scale = isfinite(b[i]) ? fmax(scale, fabs(b[i])) : scale;
    for (int64_t i = 0; i < count && scale < limit; i++)
        ck_assert_msg(
            isnan(b[i]) ? isnan(a[i])
                        : a[i] == b[i] || fabs(a[i] - b[i]) <= step_of(dtype) * (1 + scale),
            "%s: %s, element %lld: %.9g, float64 says %.9g", title, what, (long long)i, a[i], b[i]);
    free(a);
    free(b);
}

/* Whichever type has fewer digits. */
static tn_dtype coarser(tn_dtype a, tn_dtype b)
{
    return step_of(a) > step_of(b) ? a : b;
}

/* Operators whose derivatives use a stored result of the call: those of attention use the result,
 * that of convolution_activation uses the result of the convolution. */
static const char *const keep_the_result[] = { "attend", "scaled_dot_product_attention",
                                               "multi_head_attention",
                                               "multi_head_attention_with_weights",
                                               "convolution_activation" };

/* Returns the dtype that limits the accuracy of a gradient: the dtype of the result, to which the
 * inputs are promoted. Sums of narrow dtypes are computed in float32. */
static tn_dtype precision_of(const tn_op_def *def, tn_dtype result)
{
    bool stored = (def->flags & (TN_OP_PROMOTE | TN_OP_PROMOTE_FLOAT)) != 0;

    for (size_t i = 0; i < sizeof keep_the_result / sizeof keep_the_result[0]; i++)
        stored |= strcmp(keep_the_result[i], def->name) == 0;
    return !stored && tn_dtype_size(result) < 4 ? TN_F32 : result;
}

static void check(subject *s, const conform_case *one, const tn_dtype *dtypes)
{
    TN_SCOPE;
    attempt mixed = { 0 }, exact = { 0 };
    char title[512];
    tn_dtype result, inner;

    describe(title, sizeof title, one, dtypes);
    call(&mixed, one, dtypes, false);
    s->calls++;
    if (mixed.status != TN_OK) {
        ck_assert_msg(tn_error_code() != TN_ERR_ASSERT && strstr(tn_error_text(), "a bug") == NULL,
                      "%s: %s", title, tn_error_text());
        ck_assert_msg(strstr(tn_error_text(), one->def->name) != NULL &&
                          strstr(tn_error_text(), "float") != NULL,
                      "%s: refused without a message for the types: %s", title, tn_error_text());
        tn_error_clear();
        s->refused++;
        return;
    }
    call(&exact, one, dtypes, true);
    ck_assert_msg(exact.status == TN_OK, "%s in float64: %s", title, tn_error_text());
    result = tn_tensor_dtype(mixed.out[0]);
    if (!is_float(result) || one->def->n_outputs < 1)
        return;
    ck_assert_msg(result == expected_of(one, dtypes), "%s: the result is %s, expected %s", title,
                  tn_dtype_name(result), tn_dtype_name(expected_of(one, dtypes)));
    same(mixed.out[0], exact.out[0], result, largest_of(result), "the result", title);
    inner = precision_of(one->def, result);
    for (int64_t i = 0; i < one->n_in; i++) {
        tn_tensor *g = mixed.grad[i];
        char what[32];

        if (g == TN_NONE || exact.grad[i] == TN_NONE)
            continue;
        snprintf(what, sizeof what, "gradient %lld", (long long)i);
        ck_assert_msg(tn_tensor_dtype(g) == dtypes[i], "%s: %s is %s", title, what,
                      tn_dtype_name(tn_tensor_dtype(g)));
        same(g, exact.grad[i], coarser(inner, dtypes[i]),
             fmin(largest_of(result), largest_of(dtypes[i])), what, title);
    }
}

/* One input at a time has another type than the others, in every pair of types. */
static bool take(void *user, conform_case *one)
{
    subject *s = user;
    tn_dtype dtypes[MOST];
    int64_t places[MOST], count = 0, elements = 0;

    for (int64_t i = 0; i < one->n_in && i < MOST; i++) {
        const conform_tensor *t = &one->in[i];

        dtypes[i] = TN_DTYPE_AUTO;
        elements += t->count;
        if (t->there && is_float(t->dtype) && takes_floats(operand_of(one->def, i))) {
            if (!is_wide(t->dtype))
                return true;
            places[count++] = i;
        }
    }
    if (one->refused || count < 2 || one->n_in > MOST || elements > ELEMENTS ||
        (s->seen >> count & 1) != 0)
        return true;
    s->seen |= UINT32_C(1) << count;
    s->cases++;
    for (int odd = 0; odd < TYPES; odd++)
        for (int others = 0; others < TYPES; others++)
            for (int64_t k = 0; k < (count == 2 ? 1 : count) && odd != others; k++) {
                for (int64_t i = 0; i < count; i++)
                    dtypes[places[i]] = types[i == k ? odd : others];
                check(s, one, dtypes);
            }
    return true;
}

START_TEST(inputs_of_different_float_types_are_promoted_or_refused_with_words)
{
    int64_t subjects = 0, calls = 0, refused = 0;

    ck_assert_msg(conform_reference(TN_OP_PRIMITIVE) == TN_OK, "%s", tn_error_text());
    for (int64_t i = 0; i < tn_op_count(); i++) {
        subject s = { .def = tn_op_definition(tn_op_find(tn_op_name_at(i), 0)) };
        char words[512];

        if (!is_subject(s.def))
            continue;
        ck_assert_msg(conform_cases(TN_TEST_SRCDIR "/tests/oracle", s.def->name, take, &s, words,
                                    sizeof words) >= 0,
                      "%s", words);
        ck_assert_msg(s.cases > 0,
                      "%s takes several float inputs, and tests/oracle has no case of float32 or "
                      "float64 for it",
                      s.def->name);
        subjects++;
        calls += s.calls;
        refused += s.refused;
    }
    printf("%lld operators, %lld calls of mixed types, %lld refused\n", (long long)subjects,
           (long long)calls, (long long)refused);
    ck_assert_int_gt(subjects, 60);
    ck_assert_int_gt(calls - refused, 1000);
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mixed float types");
    TCase *t = tcase_create("mixed");

    tcase_set_timeout(t, 120);
    tcase_add_test(t, inputs_of_different_float_types_are_promoted_or_refused_with_words);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
