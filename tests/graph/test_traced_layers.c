/* SPDX-License-Identifier: MIT
 *
 * Every layer and every network of tests/conform: the traced graph computes what eager calls
 * compute, bit by bit, with gradients and updated buffers, as one node for each layer and as
 * operators; a trace changes nothing; text and code read back as the same graph. */
#include "tests/graph/conform_cases.h"
#include "tests/graph/other_passes.h"
#include "tests/spec/proves.h"

static int cases, traced, refused, sized, unsized, planned, unplanned;

/* Layers whose code asks for values, so that they can only be one node of a graph. */
static const char *const by_values[] = { "EmbeddingBag",       "CTCLoss",
                                         "AdaptiveLogSoftmax", "momentum=None",
                                         "matrix_exp",         "MinMaxRange",
                                         "MovingAverageRange", "HistogramRange",
                                         "FakeQuantize",       NULL };

/* Layers that exchange gradients in functions of their own, which a graph cannot record. */
static const char *const by_functions[] = { "DistributedDataParallel", NULL };

static bool is_one_of(const char *const *list, const char *text)
{
    for (int i = 0; list[i] != NULL; i++)
        if (strstr(text, list[i]) != NULL)
            return true;
    return false;
}

static bool is_listed(const char *text)
{
    return is_one_of(by_values, text) || is_one_of(by_functions, text);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void same_bits(tn_tensor *a, tn_tensor *b, const char *what)
{
    size_t bytes;
    char *x, *y;

    if (a == NULL || b == NULL || a == TN_NONE || b == TN_NONE) {
        ck_assert_msg(a == b, "%s: %s: one is missing", spec, what);
        return;
    }
    ck_assert_msg(tn_tensor_dtype(a) == tn_tensor_dtype(b) &&
                      tn_tensor_numel(a) == tn_tensor_numel(b),
                  "%s: %s: other types or shapes", spec, what);
    bytes = (size_t)tn_tensor_numel(a) * tn_dtype_size(tn_tensor_dtype(a));
    x = malloc(bytes + 1);
    y = malloc(bytes + 1);
    ck_ok(tn_tensor_copy_out(tn_detach(a), x, bytes));
    ck_ok(tn_tensor_copy_out(tn_detach(b), y, bytes));
    ck_assert_msg(memcmp(x, y, bytes) == 0, "%s: %s: other values", spec, what);
    free(x);
    free(y);
}

static void same_states(tn_module *a, tn_module *b, const char *what)
{
    tn_state *x = tn_module_state(a), *y = tn_module_state(b);

    ck_assert_int_eq(tn_state_count(x), tn_state_count(y));
    for (int64_t i = 0; i < tn_state_count(x); i++) {
        ck_assert_str_eq(tn_state_name(x, i), tn_state_name(y, i));
        if (tn_state_tensor(x, i) != NULL)
            same_bits(tn_state_tensor(x, i), tn_state_tensor(y, i), what);
    }
    tn_error_clear();
    tn_state_drop(x);
    tn_state_drop(y);
}

static void same_gradients(tn_module *a, tn_module *b)
{
    tn_walk *x = tn_walk_begin(a, TN_SLOT_PARAMETER, NULL);
    tn_walk *y = tn_walk_begin(b, TN_SLOT_PARAMETER, NULL);

    for (const tn_visit *at = tn_walk_next(x); at != NULL; at = tn_walk_next(x))
        same_bits(tn_tensor_grad(at->tensor), tn_tensor_grad(tn_walk_next(y)->tensor), "gradient");
    tn_walk_end(x);
    tn_walk_end(y);
}

static tn_pack *packed(void)
{
    tn_pack *pack = tn_pack_new();

    for (int64_t i = 0; i < n_in; i++)
        ck_ok(tn_pack_add(pack, NULL, tn_value_tensor(in[i])));
    return pack;
}

/* The tensors of a result, at any depth. */
static int64_t tensors_of(const tn_value *value, tn_tensor **out, int64_t at)
{
    if (value->kind == TN_VALUE_TENSOR && at < 64)
        out[at++] = value->as.tensor;
    if (value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE)
        for (uint32_t i = 0; i < value->count; i++)
            at = tensors_of(&value->as.list[i], out, at);
    return at;
}

/* Calls a module, always with the same random numbers, and runs backward. */
static int64_t run(tn_module *module, tn_tensor **out)
{
    tn_pack *given = packed(), *results = tn_pack_new();
    tn_tensor *loss = NULL;
    int64_t count = 0;

    tn_random_seed(7);
    for (int64_t i = 0; i < n_in; i++)
        ck_ok(tn_tensor_set_grad(in[i], TN_NONE));
    ck_assert_msg(tn_module_call_pack(module, given, results) == TN_OK, "%s: %s", spec,
                  tn_error_last()->message);
    for (int64_t i = 0; i < tn_pack_count(results); i++) {
        tn_value value = tn_pack_at(results, i);
        count = tensors_of(&value, out, count);
    }
    for (int64_t i = 0; i < count; i++) {
        tn_keep(out[i]);
        if (tn_tensor_requires_grad(out[i])) {
            tn_tensor *square = tn_sum(tn_mul(out[i], out[i]));
            loss = loss == NULL ? square : tn_add(loss, square);
        }
    }
    if (loss != NULL)
        ck_ok(tn_backward(loss));
    for (int64_t i = 0; i < n_in; i++) {
        tn_tensor *grad = tn_tensor_grad(in[i]);
        out[count + i] = grad != NULL && grad != TN_NONE ? tn_keep(tn_copy(tn_detach(grad))) : NULL;
    }
    tn_error_clear();
    tn_pack_drop(given);
    tn_pack_drop(results);
    return count;
}

/* ---- one case -------------------------------------------------------------------------------- */

/* Fails with the first line that differs. */
static void differ(const char *a, const char *b)
{
    int64_t line = 0;

    for (int64_t i = 0; a[i] == b[i]; i++)
        line = a[i] == '\n' ? i + 1 : line;
    ck_abort_msg("%s: read back: %.400s; expected %.400s", spec, a + line, b + line);
}

static void same_text(const tn_graph *graph, tn_module *root)
{
    static const char *const forms[] = { "text", "code" };
    tn_state *constants = tn_graph_constants(graph);
    char *text = printed(graph, "text");

    ck_made(constants);
    for (int i = 0; i < 2; i++) {
        char *form = printed(graph, forms[i]), *again;
        tn_graph *read = tn_graph_parse(form, root, constants);
        ck_assert_msg(read != NULL, "%s: %s\n%s", spec, tn_error_last()->message, form);
        again = printed(read, "text");
        if (strcmp(again, text) != 0)
            differ(again, text);
        tn_graph_drop(read);
        free(form);
        free(again);
    }
    tn_state_drop(constants);
    free(text);
}

/* Why a plan of a layer may be refused. */
static const char *const unplannable[] = { "it writes into", "a plan would repeat the same",
                                           "only a run has", "no kernel", NULL };

/* A plan computes what the module computes, twice, and writes into nothing else. */
static void compare_plan(const tn_graph *graph, tn_module *module)
{
    TN_SCOPE;
    tn_tensor *expected[64], *got[64];
    tn_pack *given = packed();
    tn_plan *plan = tn_plan_new(graph, NULL);

    ck_ok(tn_grad_begin(false));
    ck_assert_msg(plan != NULL || is_one_of(unplannable, tn_error_last()->message), "%s: %s", spec,
                  tn_error_last()->message);
    tn_error_clear();
    for (int times = 0; times < 2 && plan != NULL; times++) {
        TN_SCOPE;
        tn_pack *results = tn_pack_new();
        int64_t count = 0;
        ck_ok(tn_module_call_pack(module, given, results));
        for (int64_t i = 0; i < tn_pack_count(results); i++) {
            tn_value value = tn_pack_at(results, i);
            count = tensors_of(&value, expected, count);
        }
        ck_assert_msg(tn_plan_run(plan, in, n_in, got, count) == TN_OK, "%s: %s", spec,
                      tn_error_last()->message);
        for (int64_t i = 0; i < count; i++)
            same_bits(got[i], expected[i], "result of a plan");
        tn_pack_drop(results);
    }
    planned += plan != NULL;
    unplanned += plan == NULL;
    tn_grad_end();
    tn_plan_drop(plan);
    tn_pack_drop(given);
}

/* Passes, in one row with a compiler, whose results may differ by rounding. They are tried on all
 * graphs for evaluation: those of calls of layers and those of operators. */
static struct other_pass others[] = {
    { "dropout", NULL, 0 },   { "conv_bn, linear_bn", NULL, 0 },
    { "epilogue", NULL, 0 },  { "conv_bn, linear_bn, dropout, epilogue, dead", NULL, 0 },
    { "decompose", NULL, 0 }, { "dropout, conv_bn, linear_bn, decompose", "fuse", 0 },
};
#define OTHERS ((int64_t)(sizeof others / sizeof *others))

static int64_t call_layer(tn_module *module, tn_tensor **out, void *user)
{
    tn_pack *given = packed(), *results = tn_pack_new();
    int64_t count = -1;

    (void)user;
    tn_random_seed(7);
    if (tn_module_call_pack(module, given, results) == TN_OK)
        count = 0;
    for (int64_t i = 0; count >= 0 && i < tn_pack_count(results); i++) {
        tn_value value = tn_pack_at(results, i);
        count = tensors_of(&value, out, count);
    }
    for (int64_t i = 0; i < count; i++)
        tn_tensor_to_scope(tn_tensor_keep(out[i]));
    tn_pack_drop(given);
    tn_pack_drop(results);
    return count;
}

static void check_passes(tn_graph *graph)
{
    ck_ok(tn_grad_begin(false));
    try_passes(graph, others, OTHERS, call_layer, NULL, spec);
    tn_grad_end();
}

/* Fails unless each row of `others` has changed a graph; the passes `none` need not. */
static void check_changes(const char *none)
{
    for (int64_t i = 0; i < OTHERS; i++) {
        printf("  %s%s%s: %d graphs changed\n", others[i].passes, others[i].compiler ? ", " : "",
               others[i].compiler ? others[i].compiler : "", others[i].changed);
        ck_assert(others[i].changed > 0 || strcmp(others[i].passes, none) == 0);
    }
    ck_assert_int_eq(failed_passes, 0);
}

static void compare(tn_module *module, bool training, uint32_t flags)
{
    TN_SCOPE;
    tn_module *eager = tn_module_copy(module), *other = tn_module_copy(module), *made;
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_tensor *a[128], *b[128];
    tn_pack *given = packed();
    tn_graph *graph;
    uint64_t before[3], after[3];
    char why[1024];
    int64_t count;

    how.flags = flags;
    ck_made(eager);
    ck_ok(tn_module_train(eager, training));
    ck_ok(tn_module_train(other, training));
    tn_random_seed(3);
    ck_ok(tn_random_get_state(before));
    graph = tn_module_trace_pack(other, given, &how);
    snprintf(why, sizeof why, "%s", graph == NULL ? tn_error_last()->message : "");
    ck_ok(tn_random_get_state(after));
    ck_assert_uint_eq(before[1], after[1]);
    same_states(other, eager, "state after the trace");
    if (graph == NULL) {
        ck_assert_msg(is_listed(spec), "%s: %s", spec, why);
        ck_assert_msg(strstr(why, is_one_of(by_functions, spec) ? "cannot be recorded in a graph"
                                                                : "while tracing") != NULL,
                      "%s: %s", spec, why);
        tn_error_clear();
        refused++;
    } else {
        ck_ok(tn_graph_lint(graph));
        made = tn_graph_module(graph);
        ck_made(made);
        same_text(graph, other);
        count = run(eager, a);
        ck_assert_int_eq(run(made, b), count);
        for (int64_t i = 0; i < count + n_in; i++)
            same_bits(b[i], a[i], i < count ? "result" : "gradient of the input");
        same_gradients(eager, other);
        same_states(eager, other, "state after the call");
        for (int64_t i = 0; i < count + n_in; i++) {
            tn_tensor_drop(a[i]);
            tn_tensor_drop(b[i]);
        }
        compare_plan(graph, eager);
        if (!training)
            check_passes(graph);
        tn_module_drop(made);
        tn_graph_drop(graph);
        traced++;
    }
    tn_pack_drop(given);
    tn_module_drop(eager);
    tn_module_drop(other);
}

/* Appends the first row to an input once more. */
static tn_tensor *longer(tn_tensor *x)
{
    tn_tensor *parts[2] = { tn_detach(x), NULL };

    parts[1] = tn_narrow(parts[0], 0, 0, 1);
    return tn_copy(tn_cat(parts, 2, 0));
}

/* The same with a size that may vary: the first size of the first input, and of all inputs that
 * have the same first size. */
static void compare_sizes(tn_module *module, bool training)
{
    TN_SCOPE;
    tn_module *eager = tn_module_copy(module), *other = tn_module_copy(module), *made;
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_pack *given = packed();
    tn_tensor *a[128], *b[128], *before[MOST];
    char text[1024] = "";
    tn_graph *graph;
    int64_t count;

    for (int64_t i = 0; i < n_in; i++) {
        tn_ints shape = tn_tensor_shape(in[i]);
        snprintf(text + strlen(text), sizeof text - strlen(text), i > 0 ? ", [" : "[");
        for (int64_t d = 0; d < shape.count; d++)
            snprintf(text + strlen(text), sizeof text - strlen(text),
                     d == 0 && shape.at[0] == tn_tensor_size(in[0], 0) ? "%sN" : "%s%lld",
                     d > 0 ? ", " : "", (long long)shape.at[d]);
        strcat(text, "]");
    }
    how.dynamic = text;
    how.flags = TN_TRACE_THROUGH;
    ck_ok(tn_module_train(eager, training));
    ck_ok(tn_module_train(other, training));
    graph = tn_tensor_ndim(in[0]) > 0 ? tn_module_trace_pack(other, given, &how) : NULL;
    if (graph != NULL) {
        char *form = printed(graph, "text");
        ck_assert_msg(strstr(form, "[N") != NULL, "%s", form);
        free(form);
        same_text(graph, other);
        made = tn_graph_module(graph);
        ck_made(made);
        for (int64_t i = 0; i < n_in; i++) {
            before[i] = in[i];
            if (tn_tensor_size(in[i], 0) == tn_tensor_size(before[0], 0)) {
                in[i] = longer(in[i]);
                ck_made(in[i]);
                if (tn_tensor_requires_grad(before[i]))
                    ck_ok(tn_tensor_set_requires_grad(in[i], true));
            }
        }
        count = run(eager, a);
        ck_assert_int_eq(run(made, b), count);
        for (int64_t i = 0; i < count + n_in; i++)
            same_bits(b[i], a[i], "result of another size");
        same_gradients(eager, other);
        same_states(eager, other, "state after another size");
        for (int64_t i = 0; i < count + n_in; i++) {
            tn_tensor_drop(a[i]);
            tn_tensor_drop(b[i]);
        }
        for (int64_t i = 0; i < n_in; i++)
            in[i] = before[i];
        tn_module_drop(made);
        tn_graph_drop(graph);
        sized++;
    } else {
        if (getenv("TN_SHOW") != NULL)
            printf("%s: %s: %s\n", spec, text, tn_error_last()->message);
        unsized++;
    }
    tn_error_clear();
    tn_pack_drop(given);
    tn_module_drop(eager);
    tn_module_drop(other);
}

static void check_case(void)
{
    tn_module *module;

    tn_random_seed(1);
    module = tn_module_parse(spec);
    ck_assert_msg(module != NULL, "%s: %s", spec, tn_error_last()->message);
    { /* shapes of lazy layers */
        TN_SCOPE;
        tn_pack *given = packed(), *results = tn_pack_new();
        ck_ok(tn_module_to(module, NULL, TN_F64));
        ck_assert_msg(tn_module_call_pack(module, given, results) == TN_OK, "%s: %s", spec,
                      tn_error_last()->message);
        tn_pack_drop(given);
        tn_pack_drop(results);
    }
    for (int training = only_eval ? 0 : 1; training >= 0; training--)
        for (int through = 0; through < 2; through++)
            compare(module, training, through ? TN_TRACE_THROUGH : 0);
    for (int training = only_eval ? 0 : 1; training >= 0; training--)
        compare_sizes(module, training);
    tn_module_drop(module);
    cases++;
}

START_TEST(every_layer_is_traced_and_computes_the_same_bits)
{
    each_conform_case("layers.txt", check_case);
    printf("layers: %d cases, %d graphs, %d refused; sizes: %d graphs, %d refused; plans: %d, "
           "%d refused\n",
           cases, traced, refused, sized, unsized, planned, unplanned);
    check_changes("conv_bn, linear_bn"); /* a layer is not followed by a norm */
    ck_assert_int_gt(planned, 2 * unplanned);
    ck_assert_int_gt(cases, 100);
}
END_TEST

START_TEST(every_network_is_traced_and_computes_the_same_bits)
{
    each_conform_case("models.txt", check_case);
    printf("models: %d cases, %d graphs, %d refused; sizes: %d graphs, %d refused; plans: %d, "
           "%d refused\n",
           cases, traced, refused, sized, unsized, planned, unplanned);
    check_changes("");
    ck_assert_int_gt(planned, unplanned);
    ck_assert_int_gt(cases, 15);
    ck_assert_int_eq(refused, 0);
    TN_PROVES("FX-004");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { every_layer_is_traced_and_computes_the_same_bits,
                                   every_network_is_traced_and_computes_the_same_bits, NULL };
    return suite_run("traced_layers", tests);
}
