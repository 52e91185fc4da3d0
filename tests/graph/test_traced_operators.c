/* SPDX-License-Identifier: MIT
 *
 * Every case of tests/oracle as a module that calls one operator: its traced graph, the graph that
 * is read back from the text, the plan of the graph after the exact passes, and a plan of training
 * give the bits of the eager call, with the gradients of all inputs. What is refused eagerly is
 * refused by each of them. */
#include "tests/graph/suite.h"
#include "tests/oracle/case.h"

/* The passes that keep every bit. */
#define EXACT "constants, cse, dead"

enum { TRACE, PLAN, TRAINING, STAGES };
static const char *const stages[STAGES] = { "graph", "plan", "training plan" };

static reading r;
static int checked, made[STAGES], refused;

/* ---- what cannot be captured ----------------------------------------------------------------- */

/* Code of the operator reads values, or the shape of a result depends on values. */
#define READS(op_, words)                                                                          \
    { TRACE, op_, words, 0 },                                                                      \
    {                                                                                              \
        TRAINING, op_, words, 0                                                                    \
    }

#define SIZES(op_) READS(op_, "the shape of y depends on values")

/* It draws random numbers: a plan of a graph is for evaluation. */
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
    READS("embedding_bag", "tn_tensor_copy_out"),   /* the offsets of the bags */
    READS("grouped_mm", "tn_tensor_copy_out"),      /* the ends of the groups */
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
    /* the moments in training: a plan of a graph is for evaluation */
    { PLAN, "batch_norm", "it writes into a slot", 0 },
    { PLAN, "batch_norm_relu", "it writes into a slot", 0 },
    { PLAN, "instance_norm", "it writes into a slot", 0 },
};

/* A graph or plan of the case is refused with this message. */
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

/* ---- the module ------------------------------------------------------------------------------ */

/* The results are copied: a training plan returns no views of inputs. */
static bool copies;

/* An input that the operator updates is a buffer of the module, with this name. */
static const char *buffer_name(int64_t i)
{
    static char name[16];
    const tn_op_def *def = tn_op_definition(r.op);

    snprintf(name, sizeof name, "in%d", (int)i);
    return i < def->n_inputs && (def->inputs[i].flags & TN_OPERAND_UPDATED) != 0 &&
                   r.in[i] != TN_NONE
               ? name
               : NULL;
}

/* Calls the operator of the case with the tensors of the pack; absent inputs are not in it. */
static tn_status call_case(tn_module *self, const tn_pack *input, tn_pack *output)
{
    int64_t count = tn_op_definition(r.op)->n_outputs, at = 0;
    tn_tensor *in[MOST], *out[MOST] = { NULL };
    tn_status status;

    for (int64_t i = 0; i < r.n_in; i++)
        in[i] = r.in[i] == TN_NONE       ? TN_NONE
                : buffer_name(i) != NULL ? tn_module_get(self, buffer_name(i))
                                         : tn_pack_tensor(input, at++);
    status = count == 0 ? write_into(&r, in, out)
                        : tn_op_call(r.op, in, r.n_in, r.options, out, count);
    for (int64_t i = 0; i < MOST && status == TN_OK; i++) {
        if (out[i] != NULL && copies && (out[i] = tn_clone(out[i])) == NULL)
            status = tn_error_last_code();
        if (status == TN_OK && out[i] != NULL)
            status = tn_pack_add(output, NULL, tn_value_tensor(out[i]));
    }
    return status;
}

static tn_module *new_module(void)
{
    tn_module *module = tn_module_plain("Case");

    ck_made(module);
    ck_ok(tn_module_set_call(module, call_case, NULL, NULL));
    for (int64_t i = 0; i < r.n_in; i++)
        if (buffer_name(i) != NULL)
            ck_ok(tn_module_add_buffer(module, buffer_name(i), tn_clone(r.in[i]), 0));
    return module;
}

/* The inputs that are in the pack. */
static int64_t present(tn_tensor **in)
{
    int64_t count = 0;

    for (int64_t i = 0; i < r.n_in; i++)
        if (r.in[i] != TN_NONE && buffer_name(i) == NULL)
            in[count++] = r.in[i];
    return count;
}

static tn_pack *packed(void)
{
    tn_pack *pack = tn_pack_new();
    tn_tensor *in[MOST];
    int64_t count = present(in);

    for (int64_t i = 0; i < count; i++)
        ck_ok(tn_pack_add(pack, NULL, tn_value_tensor(in[i])));
    return pack;
}

/* ---- results --------------------------------------------------------------------------------- */

/* The results of a call, and the gradients of the inputs. The scope owns the tensors. */
struct results {
    bool well;
    int64_t n_out;
    tn_tensor *out[2 * MOST], *gradients[MOST];
};

/* The gradients for outputs of which each has itself as cotangent. */
static tn_status backward(struct results *results)
{
    tn_tensor *from[2 * MOST], *cotangents[2 * MOST];
    int64_t count = 0;

    for (int64_t i = 0; i < results->n_out; i++)
        if (tn_tensor_requires_grad(results->out[i])) {
            from[count] = results->out[i];
            cotangents[count++] = tn_copy(tn_detach(results->out[i]));
        }
    return count > 0 ? tn_backward_from(from, cotangents, count, NULL) : TN_OK;
}

static void run(tn_module *module, struct results *results)
{
    tn_pack *in = packed(), *out = tn_pack_new();
    tn_status status;

    memset(results, 0, sizeof *results);
    tn_random_seed(7);
    for (int64_t i = 0; i < r.n_in; i++)
        if (r.in[i] != TN_NONE)
            ck_ok(tn_tensor_set_grad(r.in[i], TN_NONE));
    for (int64_t i = 0; i < r.n_in; i++)
        if (buffer_name(i) != NULL)
            ck_made(tn_copy_(tn_module_get(module, buffer_name(i)), r.in[i]));
    status = tn_module_call_pack(module, in, out);
    for (int64_t i = 0; i < tn_pack_count(out) && status == TN_OK; i++) {
        results->out[i] = tn_tensor_to_scope(tn_tensor_keep(tn_pack_tensor(out, i)));
        results->n_out++;
    }
    if (status == TN_OK && tn_grad_enabled())
        status = backward(results);
    for (int64_t i = 0; i < r.n_in && status == TN_OK; i++) {
        results->gradients[i] = r.in[i] == TN_NONE ? TN_NONE : tn_tensor_grad(r.in[i]);
        if (results->gradients[i] != TN_NONE)
            results->gradients[i] = tn_copy(results->gradients[i]);
    }
    results->well = status == TN_OK;
    for (int64_t i = 0; i < r.n_in && status == TN_OK; i++)
        if (buffer_name(i) != NULL)
            results->out[results->n_out++] = tn_clone(tn_module_get(module, buffer_name(i)));
    tn_pack_drop(in);
    tn_pack_drop(out);
}

static void same_bits(tn_tensor *a, tn_tensor *b, const char *what)
{
    size_t bytes;
    char *x, *y;

    if (a == TN_NONE || b == TN_NONE) {
        ck_assert_msg(a == b, "%s: %s: one is missing", r.name, what);
        return;
    }
    ck_assert_msg(tn_tensor_dtype(a) == tn_tensor_dtype(b) &&
                      tn_tensor_numel(a) == tn_tensor_numel(b) &&
                      tn_tensor_ndim(a) == tn_tensor_ndim(b),
                  "%s: %s: other types or shapes", r.name, what);
    for (int64_t d = 0; d < tn_tensor_ndim(a); d++)
        ck_assert_msg(tn_tensor_size(a, d) == tn_tensor_size(b, d), "%s: %s: other sizes", r.name,
                      what);
    bytes = (size_t)tn_tensor_numel(a) * tn_dtype_size(tn_tensor_dtype(a));
    x = malloc(2 * bytes + 1);
    y = x + bytes;
    ck_ok(tn_tensor_copy_out(tn_detach(a), x, bytes));
    ck_ok(tn_tensor_copy_out(tn_detach(b), y, bytes));
    ck_assert_msg(memcmp(x, y, bytes) == 0, "%s: %s: other values", r.name, what);
    free(x);
}

static void compare(const struct results *got, const struct results *expected, const char *what)
{
    char text[64];

    ck_assert_msg(got->well == expected->well, "%s: %s: %s", r.name, what, tn_error_text());
    tn_error_clear();
    if (!got->well)
        return;
    ck_assert_int_eq(got->n_out, expected->n_out);
    for (int64_t i = 0; i < got->n_out; i++) {
        snprintf(text, sizeof text, "%s: output %d", what, (int)i);
        same_bits(got->out[i], expected->out[i], text);
    }
    for (int64_t i = 0; i < r.n_in; i++) {
        snprintf(text, sizeof text, "%s: gradient %d", what, (int)i);
        same_bits(got->gradients[i], expected->gradients[i], text);
    }
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

/* Runs a plan twice: the memory of the second run is that of the first. Without gradients some
 * operators call a kernel in place of their decomposition, so eager calls are made so, too. */
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
    r.called = true;
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

static void replay(const char *name)
{
    FILE *file = open_cases(name);
    uint64_t scope = tn_scope_begin();
    bool more = true;

    while (more) {
        more = fgets(r.line, LINE, file) != NULL;
        r.line[strcspn(r.line, "\n")] = '\0';
        if (more && strncmp(r.line, "case ", 5) != 0 && strcmp(r.line, "end") != 0) {
            if (!read_call(&r) && !r.called)
                check_case();
            continue;
        }
        if (r.op != NULL && !r.called) /* a case without results */
            check_case();
        tn_scope_end(scope);
        scope = tn_scope_begin();
        begin_case(&r);
    }
    fclose(file);
    tn_scope_end(scope);
}

START_TEST(every_case_of_an_operator_is_traced_and_gives_the_same_bits)
{
    for (int i = 0; i < CASE_FILES; i++)
        replay(case_files[i]);
    replay("without_results.txt");
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
    Suite *suite = suite_create("traced_operators");
    TCase *tests = tcase_create("traced_operators");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tests, 600);
    tcase_add_test(tests, every_case_of_an_operator_is_traced_and_gives_the_same_bits);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
