/* SPDX-License-Identifier: MIT
 *
 * Every case of tests/oracle as a module that calls one operator: its traced graph, the graph that
 * is read back from the text, the plan of the graph after the exact passes, and a plan of training
 * give the bits of the eager call, with the gradients of all inputs. What is refused eagerly is
 * refused by each of them. */
#include "tests/graph/operator_case.h"

/* The passes that keep every bit. */
#define EXACT "constants, cse, dead"

enum { TRACE, PLAN, TRAINING, STAGES };
static const char *const stages[STAGES] = { "graph", "plan", "training plan" };

static int checked, made[STAGES], refused;

/* ---- what cannot be captured ----------------------------------------------------------------- */

/* Code of the operator reads values, or the shape of a result depends on values. */
#define READS(op_, words)                                                                          \
    { TRACE, op_, words, 0 },                                                                      \
    {                                                                                              \
        TRAINING, op_, words, 0                                                                    \
    }

#define SIZES(op_) READS(op_, "the shape of y depends on values")

/* The operator draws random numbers: a plan of a graph is for evaluation. */
#define DRAWS(op_)                                                                                 \
    {                                                                                              \
        PLAN, op_, "tn_random_take", 0                                                             \
    }

/* All refusals of calls that succeed eagerly, with words of the message. */
static struct {
    int stage;
    const char *op, *why;
    int seen;
} listed[] = {
    READS("bincount", "tn_tensor_scalar"),   /* the length of the result is the largest value */
    READS("cov", "tn_tensor_scalar"),        /* the sum of the weights must be positive */
    READS("ctc_loss", "tn_tensor_copy_out"), /* the lengths of the sequences */
    READS("embedding_bag", "tn_tensor_copy_out"), /* the offsets of the bags */
    READS("grouped_mm", "tn_tensor_copy_out"),    /* the ends of the groups */
    SIZES("index"),                               /* with masks */
    SIZES("index_put"),
    READS("histc", "tn_tensor_scalar"),             /* the smallest and the largest value */
    READS("istft", "tn_tensor_scalar"),             /* the sum of the windows must not be 0 */
    READS("linalg_matrix_exp", "tn_tensor_scalar"), /* the norm, for the number of squarings */
    SIZES("masked_select"),
    READS("multinomial", "tn_tensor_scalar"), /* the sum must be positive */
    SIZES("nonzero"),
    SIZES("one_hot"),                         /* the number of classes is the largest value */
    READS("nanquantile", "tn_tensor_scalar"), /* the numbers must be between 0 and 1 */
    READS("quantile", "tn_tensor_scalar"),    /* the numbers must be between 0 and 1 */
    READS("repeat_interleave",
          "tn_tensor_scalar"), /* the length of the result is the sum of the repeats */
    READS("rnn_sequence", "tn_tensor_copy_out"), /* the lengths of the sequences */
    READS("gru_sequence", "tn_tensor_copy_out"),
    READS("lstm_sequence", "tn_tensor_copy_out"),
    SIZES("unique"),
    SIZES("unique_consecutive"),
    /* the largest pivot, of a matrix that may be singular, in the derivative only */
    { TRAINING, "linalg_det", "tn_tensor_scalar", 0 },
    DRAWS("alpha_dropout"),
    DRAWS("bernoulli"),
    DRAWS("cauchy"),
    DRAWS("dropout"),
    DRAWS("exponential"),
    DRAWS("feature_alpha_dropout"),
    DRAWS("feature_dropout"),
    DRAWS("geometric"),
    DRAWS("gumbel_softmax"),
    DRAWS("log_normal"),
    DRAWS("multi_head_attention"),
    DRAWS("multi_head_attention_with_weights"),
    DRAWS("normal"),
    DRAWS("randint"),
    DRAWS("randperm"),
    DRAWS("rrelu"),
    DRAWS("scaled_dot_product_attention"),
    DRAWS("truncated_normal"),
    DRAWS("uniform"),
    /* in training they update running statistics: a plan of a graph is for evaluation */
    { PLAN, "batch_norm", "it writes into a slot", 0 },
    { PLAN, "batch_norm_relu", "it writes into a slot", 0 },
    { PLAN, "instance_norm", "it writes into a slot", 0 },
};

/* Counts a refusal of the case's graph or plan; fails if `listed` has no row for this message. */
static void note(int stage, const char *message)
{
    const char *op = tn_op_definition(r.op)->name;

    for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++)
        if (listed[i].stage == stage && strcmp(listed[i].op, op) == 0 &&
            strstr(message, listed[i].why) != NULL) {
            listed[i].seen++;
            return;
        }
    ck_abort_msg("%s: no %s: %s", r.name, stages[stage], message);
}

/* ---- one case -------------------------------------------------------------------------------- */

static void check_module(tn_module *module, const struct results *expected, const char *what)
{
    struct results results;

    ck_made(module);
    run(module, &results);
    compare(&results, expected, what);
    tn_module_drop(module);
}

/* The text of a graph reads back as a graph with the same text, which computes the same. */
static void check_text(const tn_graph *graph, tn_module *root, const struct results *expected)
{
    tn_state *constants = tn_graph_constants(graph);
    char *text = printed(graph, "text"), *again;
    tn_graph *read = tn_graph_parse(text, root, constants);

    ck_assert_msg(read != NULL, "%s: %s\n%s", r.name, tn_error_text(), text);
    again = printed(read, "text");
    ck_assert_msg(strcmp(again, text) == 0, "%s: %s", text, again);
    check_module(tn_graph_module(read), expected, "graph read back");
    tn_graph_drop(read);
    tn_state_drop(constants);
    free(again);
    free(text);
}

/* Returns false if a training plan is refused because of a view. */
static bool check_training(tn_module *module, const struct results *expected)
{
    static char text[1 << 16];
    struct results results;
    const char *why;
    bool view = false;

    ck_ok(tn_module_compile(module, "plan(train=True)"));
    for (int times = 0; times < 2; times++) {
        run(module, &results);
        if (results.well || !expected->well) {
            compare(&results, expected, "training plan");
            continue;
        }
        view = !copies && strstr(tn_error_text(), "it is a view of ") != NULL;
        if (!view)
            note(TRAINING, tn_error_text());
        break;
    }
    tn_error_clear();
    ck_assert_int_ge(tn_module_compile_print(module, false, text, sizeof text), 0);
    why = strstr(text, "calls run eagerly: ");
    made[TRAINING] += why == NULL && results.well;
    if (why != NULL && expected->well)
        note(TRAINING, why);
    ck_ok(tn_module_compile(module, "eager()"));
    return !view;
}

/* Runs a plan twice: the second run uses the memory of the first. The eager call that it is
 * compared with records no gradients either, because some operators then run a kernel in place of
 * their decomposition. */
static void check_plan(const tn_graph *graph, tn_module *module)
{
    tn_plan_options how = TN_PLAN_OPTIONS;
    struct results results, expected;
    tn_tensor *in[MOST];
    int64_t count = present(in);
    tn_plan *plan;

    how.passes = EXACT;
    ck_ok(tn_grad_begin(false));
    run(module, &expected);
    tn_error_clear();
    results = expected; /* with the buffers, which a plan cannot change */
    plan = tn_plan_new(graph, &how);
    if (plan == NULL && expected.well) {
        note(PLAN, tn_error_text());
        tn_error_clear();
    }
    for (int times = 0; times < 2 && plan != NULL; times++) {
        results.well = tn_plan_run(plan, in, count, results.out, tn_graph_output_count(graph)) ==
                       TN_OK;
        compare(&results, &expected, "plan");
    }
    made[PLAN] += plan != NULL;
    check_training(module, &expected);
    tn_grad_end();
    tn_plan_drop(plan);
    tn_error_clear();
}

static void check_case(void)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_module *module = new_module();
    tn_pack *in = packed();
    struct results expected;
    tn_graph *graph;

    how.flags = TN_TRACE_THROUGH;
    run(module, &expected);
    refused += !expected.well;
    tn_error_clear();
    graph = tn_module_trace_pack(module, in, &how);
    if (graph == NULL && expected.well)
        note(TRACE, tn_error_text());
    tn_error_clear();
    if (graph != NULL) {
        made[TRACE]++;
        check_module(tn_graph_module(graph), &expected, "graph");
        check_text(graph, module, &expected);
        check_plan(graph, module);
    }
    if (!check_training(module, &expected)) {
        copies = true;
        run(module, &expected);
        check_training(module, &expected);
        copies = false;
    }
    tn_graph_drop(graph);
    tn_pack_drop(in);
    tn_module_drop(module);
    checked++;
}

START_TEST(every_case_of_an_operator_is_traced_and_gives_the_same_bits)
{
    each_case(check_case);
    printf("operators: %d cases, %d refused by eager calls, %d graphs, %d plans, "
           "%d training plans\n",
           checked, refused, made[TRACE], made[PLAN], made[TRAINING]);
    for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++) {
        printf("  no %s of %s: %d cases: %s\n", stages[listed[i].stage], listed[i].op,
               listed[i].seen, listed[i].why);
        ck_assert_msg(listed[i].seen > 0, "no case: the row is not needed any more");
    }
    ck_assert_int_gt(checked, 13000);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { every_case_of_an_operator_is_traced_and_gives_the_same_bits,
                                   NULL };
    return suite_run_for("traced_operators", tests, 600);
}
