/* SPDX-License-Identifier: MIT
 *
 * The compiler `fuse` of the cpu: regions of elementwise operators have the bits of the operators,
 * for all operators that it takes, shapes, layouts and threads; with gradients, in plans, and when
 * memory runs out. */
#include "tests/graph/suite.h"

/* Numbers from about -2 to about 2, none of them 0. */
static tn_tensor *values(tn_ints shape, int from, tn_dtype dtype)
{
    int64_t count = 1;
    double *at;
    tn_tensor *tensor;

    for (int64_t d = 0; d < shape.count; d++)
        count *= shape.at[d];
    at = malloc((size_t)(count + 1) * sizeof *at);
    for (int64_t i = 0; i < count; i++)
        at[i] = (double)((i * 37 + from * 11) % 401 - 200) / 100 + 0.001;
    tensor = tn_cast(tn_tensor_from(at, TN_F64, shape), dtype);
    free(at);
    return tensor;
}

static int64_t regions_of(const tn_graph *graph)
{
    int64_t count = 0;

    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node))
        count += tn_node_kind_of(node) == TN_NODE_REGION;
    return count;
}

/* The sign and the payload of a NaN are not promised: they depend on the loop that the compiler
 * made for these strides. */
static tn_tensor *one_nan(tn_tensor *x)
{
    return tn_where(tn_isnan(x), tn_fill(tn_clone(x), NAN), x);
}

/* Fails unless the graph, the compiled graph and a plan of the compiled graph have the same result
 * for these inputs. Returns the number of regions. */
static int64_t same(tn_graph *graph, tn_tensor *const *in, int64_t n_in, const char *what)
{
    tn_graph *compiled = tn_graph_copy(graph);
    tn_tensor *expected = NULL, *got = NULL;
    tn_plan *plan;
    int64_t regions;

    ck_assert_msg(tn_graph_run(graph, in, n_in, &expected, 1) == TN_OK, "%s: %s", what,
                  tn_error_last()->message);
    ck_ok(tn_graph_compile(compiled, tn_default_device(), "fuse"));
    regions = regions_of(compiled);
    ck_assert_msg(tn_graph_run(compiled, in, n_in, &got, 1) == TN_OK, "%s: %s", what,
                  tn_error_last()->message);
    ck_same(one_nan(got), one_nan(expected));
    plan = tn_plan_new(compiled, NULL);
    ck_made(plan);
    for (int i = 0; i < 2; i++) {
        ck_ok(tn_plan_run(plan, in, n_in, &got, 1));
        ck_same(one_nan(got), one_nan(expected));
    }
    tn_plan_drop(plan);
    tn_graph_drop(compiled);
    return regions;
}

/* ---- operators ------------------------------------------------------------------------------- */

static const char *const unary[] = { "relu()",
                                     "sigmoid()",
                                     "tanh()",
                                     "exp()",
                                     "log()",
                                     "sqrt()",
                                     "abs()",
                                     "neg()",
                                     "sign()",
                                     "floor()",
                                     "ceil()",
                                     "trunc()",
                                     "round()",
                                     "frac()",
                                     "square()",
                                     "reciprocal()",
                                     "rsqrt()",
                                     "expm1()",
                                     "log1p()",
                                     "log2()",
                                     "log10()",
                                     "sin()",
                                     "cos()",
                                     "tan()",
                                     "asin()",
                                     "acos()",
                                     "atan()",
                                     "sinh()",
                                     "cosh()",
                                     "erf()",
                                     "erfc()",
                                     "erfinv()",
                                     "asinh()",
                                     "acosh()",
                                     "atanh()",
                                     "exp2()",
                                     "lgamma()",
                                     "silu()",
                                     "mish()",
                                     "gelu()",
                                     "gelu(approximate='tanh')",
                                     "relu6()",
                                     "hardtanh(min_val=-0.5, max_val=0.7)",
                                     "leaky_relu(negative_slope=0.2)",
                                     "elu(alpha=0.7)",
                                     "selu()",
                                     "celu(alpha=0.9)",
                                     "softplus(beta=1.5)",
                                     "softsign()",
                                     "hardswish()",
                                     "hardsigmoid()",
                                     "hardshrink(lambd=0.3)",
                                     "softshrink(lambd=0.4)",
                                     "tanhshrink()",
                                     "logsigmoid()",
                                     "threshold(threshold=0.3, value=2)",
                                     "add_scalar(value=1.7)",
                                     "add_scalar(value=3)",
                                     "mul_scalar(value=-0.3)",
                                     "clamp(min=-0.5, max=1)",
                                     "clamp(max=0.3)" };

static const char *const binary[] = {
    "add()",       "add(alpha=2.5)", "sub()",       "sub(alpha=-3)",  "mul()",
    "div()",       "maximum()",      "minimum()",   "fmax()",         "fmin()",
    "pow()",       "atan2()",        "hypot()",     "copysign()",     "xlogy()",
    "logaddexp()", "relu_grad()",    "tanh_grad()", "sigmoid_grad()", "silu_grad()"
};

/* y * op(-op(x)), where op is the operator of `spec`; with `two`, y is its second input. */
static tn_graph *chain_of(const char *spec, bool two, tn_ints shape, tn_dtype dtype)
{
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", shape, dtype);
    tn_node *y = tn_graph_input(graph, "y", shape, dtype);
    tn_node *out = step(graph, "neg()", step(graph, spec, x, two ? y : NULL), NULL);

    out = step(graph, spec, out, two ? y : NULL);
    out = step(graph, "mul()", out, y);
    ck_ok(tn_graph_output(graph, &out, 1));
    return graph;
}

START_TEST(each_operator_has_the_same_bits)
{
    const tn_dtype dtypes[] = { TN_F32, TN_F64 };
    int64_t sizes[] = { 1, 7, 1500 }, fused = 0, count = 0;
    size_t n_unary = sizeof unary / sizeof *unary, n_binary = sizeof binary / sizeof *binary;

    ck_ok(tn_grad_begin(false));
    for (size_t i = 0; i < n_unary + n_binary; i++)
        for (int k = 0; k < 6; k++) {
            TN_SCOPE;
            bool two = i >= n_unary;
            const char *spec = two ? binary[i - n_unary] : unary[i];
            tn_ints shape = { &sizes[k % 3], 1 };
            tn_graph *graph = chain_of(spec, two, shape, dtypes[k / 3]);
            tn_tensor *in[] = { values(shape, 1, dtypes[k / 3]), values(shape, 5, dtypes[k / 3]) };

            fused += same(graph, in, 2, spec) == 1;
            count++;
            tn_graph_drop(graph);
        }
    tn_grad_end();
    ck_assert_msg(fused == count, "%d of %d", (int)fused, (int)count);
}
END_TEST

/* ---- chains ---------------------------------------------------------------------------------- */

/* Steps of which each uses the result of the step before it. `turned`: the result is the second
 * input. exp() ends a chain. */
static const struct {
    const char *spec;
    bool other, turned;
} links[] = {
    { "mul()", true, false },
    { "add()", true, false },
    { "sub()", true, false },
    { "sub()", true, true },
    { "add()", true, true },
    { "mul_scalar(value=-0.7)", false, false },
    { "add_scalar(value=0.3)", false, false },
    { "relu()", false, false },
    { "exp()", false, false },
};

static tn_node *add_link(tn_graph *graph, uint32_t *state, tn_node *out, tn_node *const *in)
{
    size_t link;
    tn_node *other;

    *state = *state * 1664525u + 1013904223u;
    link = (*state >> 8) % (sizeof links / sizeof *links);
    other = in[(*state >> 16) % 3];
    if ((*state >> 24) % 4 == 0)
        other = step(graph, "neg()", other, NULL); /* is in a buffer */
    if (!links[link].other)
        return step(graph, links[link].spec, out, NULL);
    return links[link].turned ? step(graph, links[link].spec, other, out)
                              : step(graph, links[link].spec, out, other);
}

enum { CHAIN_SIZES = 14 };

/* The sizes are next to multiples of vectors and of blocks; the last two are for several threads.
 */
static void chains_of(int64_t number)
{
    static const int64_t sizes[CHAIN_SIZES] = { 2,    15,   16,   17,   127,  128,   129,
                                                1023, 1024, 1025, 1157, 5000, 40000, 100003 };
    const tn_dtype dtype = number % 2 == 0 ? TN_F32 : TN_F64;
    const int64_t one = 1, *size = &sizes[number / 2];
    uint32_t state = (uint32_t)number * 77;

    ck_ok(tn_grad_begin(false));
    for (int round = 0; round < 12; round++) {
        TN_SCOPE;
        const tn_ints shape = { size, 1 }, last = { round % 3 == 0 ? &one : size, 1 };
        tn_graph *graph = tn_graph_new();
        tn_node *nodes[] = { tn_graph_input(graph, "x", shape, dtype),
                             tn_graph_input(graph, "y", shape, dtype),
                             tn_graph_input(graph, "z", last, dtype) };
        tn_tensor *in[] = { values(shape, 1, dtype), values(shape, 5, dtype),
                            values(last, 9, dtype) };
        tn_node *out = nodes[0];

        tn_copy_(tn_slice(in[1], 0, 1, 2),
                 tn_tensor_full(TN_SHAPE(1), round % 2 == 0 ? NAN : -INFINITY, TN_F32, NULL));
        for (int k = 0; k < 2 + round; k++)
            out = add_link(graph, &state, out, nodes);
        ck_ok(tn_graph_output(graph, &out, 1));
        same(graph, in, 3, "chain");
        tn_graph_drop(graph);
    }
    tn_grad_end();
}

START_TEST(chains_have_the_bits_of_their_steps)
{
    for (int64_t i = 0; i < 2 * CHAIN_SIZES; i++)
        chains_of(i);
}
END_TEST

/* ---- shapes and layouts ---------------------------------------------------------------------- */

/* sigmoid(x * w + b) * (x - r) with inputs that are broadcast. */
static tn_graph *wide(tn_ints x, tn_ints w, tn_ints b, tn_ints r)
{
    tn_graph *graph = tn_graph_new();
    tn_node *in[4], *y, *z;
    const tn_ints shapes[] = { x, w, b, r };
    const char *const names[] = { "x", "w", "b", "r" };

    for (int i = 0; i < 4; i++)
        in[i] = tn_graph_input(graph, names[i], shapes[i], TN_F32);
    y = step(graph, "sigmoid()", step(graph, "add()", step(graph, "mul()", in[0], in[1]), in[2]),
             NULL);
    z = step(graph, "sub(alpha=0.5)", in[0], in[3]);
    y = step(graph, "mul()", y, z);
    ck_ok(tn_graph_output(graph, &y, 1));
    return graph;
}

START_TEST(inputs_may_be_broadcast_or_strided)
{
    const tn_ints full = TN_SHAPE(3, 50, 70), none = TN_SHAPE(3, 0, 70);
    const struct {
        tn_ints x, w, b, r;
    } rows[] = {
        { full, full, full, full },
        { full, TN_SHAPE(70), TN_SHAPE(50, 1), TN_SHAPE(1) },
        { full, TN_SHAPE(3, 1, 1), TN_SHAPE(1, 50, 70), TN_SHAPE(1, 1, 70) },
        { none, TN_SHAPE(70), TN_SHAPE(1), none },
        { TN_SHAPE(200000), TN_SHAPE(1), TN_SHAPE(200000), TN_SHAPE(200000) }, /* threads */
    };

    ck_ok(tn_grad_begin(false));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TN_SCOPE;
        tn_graph *graph = wide(rows[i].x, rows[i].w, rows[i].b, rows[i].r);
        tn_tensor *in[] = { values(rows[i].x, 1, TN_F32), values(rows[i].w, 2, TN_F32),
                            values(rows[i].b, 3, TN_F32), values(rows[i].r, 4, TN_F32) };

        /* without elements there is nothing to gain */
        ck_assert_int_eq(same(graph, in, 4, "wide"), tn_tensor_numel(in[0]) > 0);
        tn_graph_drop(graph);
    }
    { /* the graph is for these shapes, with any strides */
        TN_SCOPE;
        tn_graph *graph = wide(full, full, full, full), *compiled = tn_graph_copy(graph);
        tn_tensor *in[4], *expected, *got;

        for (int i = 0; i < 4; i++)
            in[i] = i % 2 == 0 ? tn_transpose(values(TN_SHAPE(3, 70, 50), i, TN_F32), 1, 2)
                               : tn_expand(values(TN_SHAPE(50, 1), i, TN_F32), full);
        ck_ok(tn_graph_compile(compiled, tn_default_device(), "fuse"));
        ck_ok(tn_graph_run(graph, in, 4, &expected, 1));
        ck_ok(tn_graph_run(compiled, in, 4, &got, 1));
        ck_same(one_nan(got), one_nan(expected));
        tn_graph_drop(graph);
        tn_graph_drop(compiled);
    }
    tn_grad_end();
}
END_TEST

/* ---- which nodes ----------------------------------------------------------------------------- */

START_TEST(a_value_that_others_use_ends_a_region)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(4, 4), TN_F32), *y, *z, *out[2];
    tn_tensor *in = values(TN_SHAPE(4, 4), 1, TN_F32), *a[2], *b[2];

    y = step(graph, "exp()", step(graph, "neg()", x, NULL), NULL);
    z = step(graph, "matmul()", y, y);
    z = step(graph, "add()", step(graph, "relu()", z, NULL), y);
    out[0] = z;
    out[1] = y;
    ck_ok(tn_graph_output(graph, out, 2));
    ck_ok(tn_graph_run(graph, &in, 1, a, 2));
    ck_ok(tn_graph_compile(graph, tn_default_device(), "fuse"));
    ck_assert_int_eq(regions_of(graph), 2);
    ck_ok(tn_graph_run(graph, &in, 1, b, 2));
    ck_same(b[0], a[0]);
    ck_same(b[1], a[1]);
    tn_graph_drop(graph);
}
END_TEST

START_TEST(gradients_are_those_of_the_operators)
{
    TN_SCOPE;
    tn_graph *graph = chain_of("tanh()", false, TN_SHAPE(2, 3), TN_F32);
    tn_tensor *gradients[2];

    for (int i = 0; i < 2; i++) {
        tn_tensor *in[] = { tn_parameter(numbers(-2), true), numbers(1) }, *y;

        ck_ok(tn_graph_run(graph, in, 2, &y, 1));
        ck_ok(tn_backward(tn_sum(tn_square(y))));
        gradients[i] = tn_tensor_grad(in[0]);
        ck_ok(tn_graph_compile(graph, tn_default_device(), "fuse"));
    }
    ck_assert_int_eq(regions_of(graph), 1);
    ck_same(gradients[1], gradients[0]);
    tn_graph_drop(graph);
}
END_TEST

static bool compile_and_run(void *user)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_copy(user);
    tn_tensor *in[] = { tn_transpose(values(TN_SHAPE(3, 2), 1, TN_F32), 0, 1),
                        values(TN_SHAPE(2, 3), 2, TN_F32) };
    tn_tensor *y = NULL;
    bool well = graph != NULL && in[0] != NULL && in[1] != NULL &&
                tn_graph_compile(graph, tn_default_device(), "fuse") == TN_OK &&
                tn_graph_run(graph, in, 2, &y, 1) == TN_OK;

    tn_graph_drop(graph);
    return well;
}

START_TEST(each_allocation_that_fails_is_an_error)
{
    tn_graph *graph = chain_of("tanh()", false, TN_SHAPE(2, 3), TN_F32);

    ck_assert(compile_and_run(graph));
    ck_assert_int_gt(fail_each_allocation(compile_and_run, graph), 30);
    tn_graph_drop(graph);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { each_operator_has_the_same_bits,
                                   chains_have_the_bits_of_their_steps,
                                   inputs_may_be_broadcast_or_strided,
                                   a_value_that_others_use_ends_a_region,
                                   gradients_are_those_of_the_operators,
                                   each_allocation_that_fails_is_an_error,
                                   NULL };
    return suite_run("fuse", tests);
}
