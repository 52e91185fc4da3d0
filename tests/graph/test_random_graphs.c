/* SPDX-License-Identifier: MIT
 *
 * Random compositions of operators, some with several results, some that draw random numbers, in
 * any order and layout: what passes and compilers make of them has the same results and leaves the
 * generator of random numbers in the same state. Plans of random modules that were traced with
 * sizes that vary have the bits of eager calls at every size; plans of training and scripts of such
 * modules have them forward and backward, in bfloat16, too. */
#include "tests/graph/other_passes.h"
#include "tests/graph/plan_training.h"

enum { GRAPHS = 400, MODULES = 80, VALUES = 24 };

/* xorshift64*, so that graphs are the same everywhere. */
static uint64_t seed;

static int64_t below(int64_t bound)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return (int64_t)((seed * 0x2545F4914F6CDD1DU >> 33) % (uint64_t)bound);
}

static tn_tensor *values(tn_ints shape, tn_dtype dtype)
{
    int64_t count = 1;
    double numbers[128];

    for (int64_t d = 0; d < shape.count; d++)
        count *= shape.at[d];
    ck_assert_int_le(count, 128);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (double)below(2001) / 1000 - 1;
    return tn_cast(tn_tensor_from(numbers, TN_F64, shape), dtype);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* A graph in the making. Its values are [2, 4, 6], or [2, 6, 4] where `turned`. */
struct making {
    tn_graph *graph;
    tn_dtype dtype;
    tn_node *at[VALUES];
    bool turned[VALUES];
    int64_t count;
    bool writes; /* some operators write into a copy; compilers leave such graphs alone */
};

static tn_node *call(const struct making *m, const char *spec, tn_node *const *in, int64_t n_in)
{
    tn_node *node = tn_graph_add_op(m->graph, NULL, spec, in, n_in);

    ck_assert_msg(node != NULL, "%s: %s", spec, tn_error_text());
    return node;
}

static tn_node *slot(const struct making *m, tn_ints shape)
{
    char name[32];

    snprintf(name, sizeof name, "w%lld", (long long)below(1000000000));
    return tn_graph_slot(m->graph, name, values(shape, m->dtype));
}

static tn_node *elementwise(const struct making *m, tn_node *x, bool turned)
{
    static const char *const specs[] = { "elu()",  "relu()",    "tanh()", "mul_scalar(0.75)",
                                         "neg()",  "sigmoid()", "gelu()", "add_scalar(0.25)",
                                         "copy()", "clone()",   "silu()", "hardtanh(-0.5, 2.0)" };

    (void)turned;
    return call(m, specs[below(sizeof specs / sizeof *specs)], &x, 1);
}

static tn_node *draws(const struct making *m, tn_node *x, bool turned)
{
    static const char *const specs[] = { "dropout(p=0.3)", "rrelu(0.1, 0.4, training=True)",
                                         "dropout(p=0.3, training=False)", "feature_dropout(p=0.5)",
                                         "alpha_dropout(p=0.25)" };

    (void)turned;
    return call(m, specs[below(sizeof specs / sizeof *specs)], &x, 1);
}

static tn_node *along_rows(const struct making *m, tn_node *x, bool turned)
{
    static const char *const specs[] = { "softmax(dim=-1)", "cumsum(dim=1)", "log_softmax(dim=1)",
                                         "flip(dims=[2])", "softmax(dim=1)" };

    if (below(3) == 0)
        return call(
            m, turned ? "layer_norm(normalized_shape=[4])" : "layer_norm(normalized_shape=[6])",
            (tn_node *[]){ x, TN_NODE_NONE, TN_NODE_NONE }, 3);
    return call(m, specs[below(sizeof specs / sizeof *specs)], &x, 1);
}

static tn_node *of_dtype(const struct making *m, tn_node *x)
{
    char spec[64];

    snprintf(spec, sizeof spec, "cast(dtype=%s)", tn_dtype_name(m->dtype));
    return call(m, spec, &x, 1);
}

/* Casts, which keep the layout of what they get. */
static tn_node *casts(const struct making *m, tn_node *x, bool turned)
{
    static const char *const wide[] = { "cast(dtype=float64)", "cast(dtype=bfloat16)" };
    tn_node *y = call(m, "transpose(1, 2)", &x, 1);

    (void)turned;
    y = call(m, wide[m->dtype == TN_F32 || m->dtype == TN_F64 ? below(2) : 0], &y, 1);
    y = of_dtype(m, y);
    return call(m, "transpose(1, 2)", &y, 1);
}

/* Operators with several results, of which one or more are used. */
static tn_node *several(const struct making *m, tn_node *x, bool turned)
{
    static const char *const whole[] = { "sort(dim=1)", "cummax(dim=1)", "cummin(dim=2)",
                                         "sort(dim=2, descending=True)" };
    static const char *const reduced[] = { "max_dim(dim=1, keepdim=True)",
                                           "min_dim(dim=2, keepdim=True)",
                                           "aminmax(dim=1, keepdim=True)" };
    int64_t kind = below(3);
    tn_node *both[2], *node;

    (void)turned;
    if (kind == 0)
        return tn_node_item(call(m, whole[below(4)], &x, 1), 0);
    if (kind == 1) {
        both[0] = x;
        both[1] = tn_node_item(call(m, reduced[below(3)], &x, 1), 0);
        return call(m, "sub()", both, 2);
    }
    node = call(m, "standardize(dims=[-1])", (tn_node *[]){ x, TN_NODE_NONE, TN_NODE_NONE }, 3);
    both[0] = tn_node_item(node, 0);
    both[1] = tn_node_item(node, 1 + below(2)); /* float32 beside 16-bit dtypes */
    return of_dtype(m, call(m, "add()", both, 2));
}

/* Attention: drawn or not, with one result or two. */
static tn_node *attends(const struct making *m, tn_node *x, bool turned)
{
    const int64_t e = turned ? 4 : 6;
    tn_node *in[14] = { x, x, x };

    if (below(2) == 0) {
        in[3] = TN_NODE_NONE;
        return call(m,
                    below(2) == 0 ? "scaled_dot_product_attention()"
                                  : "scaled_dot_product_attention(dropout_p=0.2)",
                    in, 4);
    }
    for (int i = 3; i < 14; i++)
        in[i] = TN_NODE_NONE;
    in[3] = slot(m, TN_SHAPE(3 * e, e));
    in[10] = slot(m, TN_SHAPE(e, e));
    return tn_node_item(call(m,
                             below(2) == 0 ? "multi_head_attention_with_weights(2)"
                                           : "multi_head_attention_with_weights(2, dropout_p=0.2)",
                             in, 14),
                        0);
}

static tn_node *projects(const struct making *m, tn_node *x, bool turned)
{
    const int64_t e = turned ? 4 : 6;

    return call(
        m, "linear()",
        (tn_node *[]){ x, slot(m, TN_SHAPE(e, e)), below(2) ? slot(m, TN_SHAPE(e)) : TN_NODE_NONE },
        3);
}

static void add_binary(struct making *m)
{
    static const char *const specs[] = { "add()", "sub()", "mul()", "maximum()", "add(alpha=0.5)" };
    int64_t a = below(m->count), b = below(m->count);
    tn_node *in[2] = { m->at[a], m->at[b] };

    if (m->turned[a] != m->turned[b])
        in[1] = call(m, "transpose(1, 2)", &in[1], 1);
    m->turned[m->count] = m->turned[a];
    m->at[m->count++] = call(m, specs[below(5)], in, 2);
}

static tn_node *write(const struct making *m, tn_node *x)
{
    static const char *const specs[] = { "relu()", "mul_scalar(0.5)", "tanh()", "neg()" };
    tn_node *into = call(m, below(2) ? "copy()" : "sigmoid()", &x, 1);

    into = tn_graph_add_inplace(m->graph, NULL, specs[below(4)], into, &into, 1);
    ck_made(into);
    return into;
}

static void add_value(struct making *m)
{
    tn_node *(*const kinds[])(const struct making *, tn_node *,
                              bool) = { elementwise, elementwise, elementwise, draws,   along_rows,
                                        casts,       several,     attends,     projects };
    int64_t from = below(m->count), kind = below(16);

    if (kind < 5) {
        add_binary(m);
        return;
    }
    m->turned[m->count] = m->turned[from] != (kind == 5);
    m->at[m->count] = kind == 5                ? call(m, "transpose(1, 2)", &m->at[from], 1)
                      : kind == 6 && m->writes ? write(m, m->at[from])
                                               : kinds[kind % 9](m, m->at[from], m->turned[from]);
    m->count++;
}

static tn_graph *random_graph(tn_dtype dtype, bool writes)
{
    struct making m = { .graph = tn_graph_new(), .dtype = dtype, .count = 2, .writes = writes };
    int64_t last = 4 + below(VALUES - 4), n_out = 1 + below(3);
    tn_node *out[3];

    m.at[0] = tn_graph_input(m.graph, "x", TN_SHAPE(2, 4, 6), dtype);
    m.at[1] = tn_graph_input(m.graph, "y", TN_SHAPE(2, 6, 4), dtype);
    m.turned[1] = true;
    while (m.count < last)
        add_value(&m);
    for (int64_t i = 0; i < n_out; i++)
        out[i] = m.at[i == 0 ? m.count - 1 : below(m.count - 2) + 2];
    ck_ok(tn_graph_output(m.graph, out, n_out));
    return m.graph;
}

/* ---- what passes and compilers make of them -------------------------------------------------- */

/* Runs a graph, or a plan of it. The last tensor is drawn afterwards: it tells whether as many
 * numbers were drawn. Returns the number of tensors, -1 on failure. */
static int64_t run_graph(tn_graph *graph, bool planned, tn_tensor *const *in, tn_tensor **out)
{
    int64_t count = tn_graph_output_count(graph);
    tn_plan *plan = planned ? tn_plan_new(graph, NULL) : NULL;
    tn_status status;

    tn_random_seed(11);
    if (planned)
        status = plan != NULL ? tn_plan_run(plan, in, 2, out, count) : tn_error_code();
    else
        status = tn_graph_run(graph, in, 2, out, count);
    tn_plan_drop(plan);
    out[count] = tn_rand(TN_SHAPE(4));
    return status == TN_OK ? count + 1 : -1;
}

static bool has_draws(const tn_graph *graph)
{
    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node))
        if (tn_node_kind_of(node) == TN_NODE_OP &&
            (tn_op_definition(tn_node_op(node))->flags & TN_OP_RANDOM) != 0)
            return true;
    return false;
}

static void check_one(tn_graph *graph, struct other_pass *pass, tn_tensor *const *in,
                      const char *text, const char *what)
{
    TN_SCOPE;
    tn_graph *changed = pass->passes == NULL && pass->compiler == NULL
                            ? tn_graph_copy(graph)
                            : changed_graph(graph, text, pass, what);
    tn_tensor *got[4], *expected[4];
    int64_t count;

    if (changed == NULL)
        return;
    pass->changed++;
    count = run_graph(graph, false, in, expected);
    ck_assert_msg(count > 0, "%s: %s", what, tn_error_text());
    for (int planned = 0; planned < 2 && !(planned == 1 && has_draws(graph)); planned++) {
        if (run_graph(changed, planned == 1, in, got) != count) {
            pass_failed(what, pass, tn_error_text());
            break;
        }
        for (int64_t i = 0; i < count; i++)
            near_result(got[i], expected[i], what, pass);
    }
    tn_graph_drop(changed);
}

static struct other_pass passes[] = {
    { NULL, NULL, 0 },         { NULL, "fuse", 0 },
    { "decompose", NULL, 0 },  { "cse", NULL, 0 },
    { "inplace", NULL, 0 },    { "decompose, cse", "fuse", 0 },
    { "dead", NULL, 0 },       { "constants, cse", "fuse", 0 },
    { "epilogue", "fuse", 0 },
};

START_TEST(passes_and_compilers_keep_the_results)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_F64, TN_F32, TN_BF16, TN_F16 };
    const int64_t n_passes = (int64_t)(sizeof passes / sizeof *passes);

    ck_ok(tn_grad_begin(false));
    for (int i = 0; i < GRAPHS; i++) {
        TN_SCOPE;
        tn_dtype dtype = dtypes[i % 5];
        tn_graph *graph;
        tn_tensor *in[2];
        char what[32], *text;

        seed = 0x9E3779B97F4A7C15U * (uint64_t)(i + 1);
        graph = random_graph(dtype, i % 6 == 0);
        in[0] = values(TN_SHAPE(2, 4, 6), dtype);
        in[1] = values(TN_SHAPE(2, 6, 4), dtype);
        snprintf(what, sizeof what, "graph %d", i);
        text = printed(graph, "table");
        for (int64_t k = 0; k < n_passes; k++)
            check_one(graph, &passes[k], in, text, what);
        free(text);
        tn_graph_drop(graph);
    }
    tn_grad_end();
    for (int64_t k = 0; k < n_passes; k++) {
        printf("  %s %s: %d\n", passes[k].passes != NULL ? passes[k].passes : "",
               passes[k].compiler != NULL ? passes[k].compiler : "", passes[k].changed);
        ck_assert_int_gt(passes[k].changed, 0);
    }
    ck_assert_int_eq(failed_passes, 0);
}
END_TEST

/* ---- dynamic traces that call modules -------------------------------------------------------- */

static tn_module *random_module(void)
{
    static const char *const layers[] = {
        "Linear(6, 6)",
        "LayerNorm([6])",
        "ReLU()",
        "GELU()",
        "Softmax(-1)",
        "BatchNorm1d(4)",
        "GroupNorm(2, 4)",
        "InstanceNorm1d(4)",
        "Conv1d(4, 4, 3, padding=1)",
        "MaxPool1d(3, 1, 1)",
        "AdaptiveAvgPool1d(6)",
        "Dropout(0.5)",
        "TransformerEncoderLayer(6, 2, 8, batch_first=True)",
        "Sequential(Flatten(1), Linear(24, 24), Unflatten(1, [4, 6]))",
        "Sequential(Flatten(0, 1), Linear(6, 6), Unflatten(0, [-1, 4]))",
    };
    char spec[1024] = "Sequential(Linear(6, 6)";
    int64_t count = 1 + below(4);

    for (int64_t i = 0; i < count; i++) {
        size_t length = strlen(spec);

        snprintf(spec + length, sizeof spec - length, ", %s",
                 layers[below(sizeof layers / sizeof *layers)]);
    }
    strcat(spec, ")");
    return tn_module_new(spec);
}

static int calls_of(const tn_graph *graph)
{
    int count = 0;

    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node))
        count += tn_node_kind_of(node) == TN_NODE_CALL;
    return count;
}

static void check_sizes(tn_module *module, tn_graph *graph, int number)
{
    tn_plan *plan = tn_plan_new(graph, NULL);

    ck_assert_msg(plan != NULL, "module %d: %s", number, tn_error_text());
    for (int64_t n = 6; n >= 2; n--) {
        tn_tensor *x = values(TN_SHAPE(n < 5 ? n : 5, 4, 6), TN_F32), *y;

        ck_assert_msg(tn_plan_run(plan, &x, 1, &y, 1) == TN_OK, "module %d: %s", number,
                      tn_error_text());
        ck_same(y, tn_module_call(module, x));
    }
    tn_plan_drop(plan);
}

START_TEST(plans_of_dynamic_traces_take_every_size)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    int calls = 0;

    how.dynamic = "[N, 4, 6]";
    ck_ok(tn_grad_begin(false));
    for (int i = 0; i < MODULES; i++) {
        TN_SCOPE;
        tn_module *module;
        tn_graph *graph;

        seed = 0x9E3779B97F4A7C15U * (uint64_t)(i + 1);
        tn_random_seed((uint64_t)i);
        module = random_module();
        ck_made(module);
        ck_ok(tn_module_eval(module));
        how.flags = i % 2 == 0 ? 0 : TN_TRACE_LEAVES;
        graph = tn_module_trace(module, values(TN_SHAPE(2 + below(2), 4, 6), TN_F32), &how);
        ck_assert_msg(graph != NULL, "module %d: %s", i, tn_error_text());
        calls += calls_of(graph);
        check_sizes(module, graph, i);
        tn_graph_drop(graph);
        tn_module_drop(module);
    }
    tn_grad_end();
    ck_assert_int_gt(calls, MODULES);
}
END_TEST

/* ---- training and 16-bit numbers ------------------------------------------------------------- */

/* The script has the results and the gradient of the input that eager calls have. */
static void check_script(tn_module *module, tn_tensor *x)
{
    tn_module *script = tn_module_script(module, x, NULL);
    tn_tensor *y[2], *gradients[2];

    ck_made(script);
    for (int k = 0; k < 2; k++) {
        tn_tensor *in = tn_parameter(tn_clone(x), true);

        tn_random_seed(5);
        y[k] = tn_module_call(k == 0 ? module : script, in);
        ck_made(y[k]);
        ck_ok(tn_backward(loss_of(y[k])));
        gradients[k] = tn_tensor_grad(in);
    }
    ck_same(y[1], y[0]);
    ck_same(gradients[1], gradients[0]);
    tn_module_drop(script);
}

static void check_training(tn_module *module, tn_dtype dtype)
{
    struct pair p;

    ck_ok(tn_module_to(module, NULL, dtype));
    ck_ok(tn_module_train(module, true));
    p = pair_of(tn_module_copy(module));
    for (int64_t n = 2; n < 4; n++)
        ck_pair(&p, tn_parameter(values(TN_SHAPE(n, 4, 6), dtype), true));
    ck_assert_int_gt(plans_made(p.net), 0);
    drop_pair(&p);
    check_script(module, values(TN_SHAPE(3, 4, 6), dtype));
}

/* In evaluation mode, bfloat16 is as near to float32 as its 8 bits allow after a few layers. */
static void check_rounding(tn_module *module)
{
    tn_module *low = tn_module_copy(module);
    tn_tensor *x = values(TN_SHAPE(3, 4, 6), TN_F32), *high, *y;
    double *a, *b, unit = 1;
    int64_t count;

    ck_made(low);
    ck_ok(tn_module_eval(module));
    ck_ok(tn_module_eval(low));
    ck_ok(tn_module_to(low, NULL, TN_BF16));
    high = tn_module_call(module, x);
    y = tn_module_call(low, tn_cast(x, TN_BF16));
    a = doubles_of(high, &count);
    b = doubles_of(y, &count);
    for (int64_t i = 0; i < count; i++)
        unit = fmax(unit, fabs(a[i]));
    for (int64_t i = 0; i < count; i++)
        ck_assert_double_eq_tol(b[i], a[i], 0.1 * unit);
    free(a);
    free(b);
    tn_module_drop(low);
}

START_TEST(random_modules_train_as_plans_and_scripts)
{
    for (int i = 0; i < MODULES; i++) {
        TN_SCOPE;
        tn_module *module;

        seed = 0xBF58476D1CE4E5B9U * (uint64_t)(i + 1);
        tn_random_seed((uint64_t)i);
        module = random_module();
        ck_made(module);
        check_rounding(module);
        check_training(module, TN_F32);
        check_training(module, TN_BF16);
        tn_module_drop(module);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { passes_and_compilers_keep_the_results,
                                   random_modules_train_as_plans_and_scripts,
                                   plans_of_dynamic_traces_take_every_size, NULL };
    return suite_run_for("random_graphs", tests, 120);
}
