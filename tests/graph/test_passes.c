/* SPDX-License-Identifier: MIT
 *
 * Passes: pipelines, changes that a pass may make, the effect of its flags, failures. */
#include "tests/graph/grown_op.h"

/* ---- passes of this program ------------------------------------------------------------------ */

typedef enum deed {
    FAIL,
    FAIL_QUIETLY,
    ADD_INPUT,
    DROP_OUTPUT,
    CIRCLE,
    KEEP,
    DROP,
    REPORT,
    GROW,
    OPEN,
    SILU
} deed;
struct options {
    int64_t times;
};
static const tn_option options[] = { TN_OPTION_INT(struct options, times, "1", "how often"),
                                     TN_OPTION_END };
static tn_graph *kept;

static tn_status act(const tn_pass_def *self, const tn_pass_args *args)
{
    tn_node *relu = tn_graph_find(args->graph, "relu"), *add = tn_graph_find(args->graph, "add"),
            *in;
    char text[32];

    tn_error_clear();
    switch (*(const deed *)self->user) {
    case FAIL: return tn_fail(TN_ERR_IO, "no file");
    case FAIL_QUIETLY: return TN_ERR_IO;
    case ADD_INPUT:
        return tn_graph_input(args->graph, "more", TN_SHAPE(1), TN_F32) != NULL ? TN_OK : TN_ERR_IO;
    case DROP_OUTPUT: return tn_graph_output(args->graph, NULL, 0);
    case CIRCLE: return tn_node_set_input(add, 0, relu);
    case DROP: tn_graph_drop(args->graph); return TN_OK;
    case KEEP: kept = tn_graph_keep(args->graph); return TN_OK;
    case REPORT:
        for (int64_t i = 0; i < ((const struct options *)args->data)->times; i++) {
            tn_snprint(text, sizeof text, "time %lld", (long long)i);
            if (args->report(args, text) != TN_OK)
                return tn_error_last_code();
        }
        return TN_OK;
    case OPEN: tn_scope_begin(); return TN_OK;
    case GROW:
        return tn_graph_add_op(args->graph, NULL, "exp()", &add, 1) != NULL ? TN_OK : TN_ERR_IO;
    default: break;
    }
    if (relu == NULL)
        return TN_OK;
    in = tn_node_input(relu, 0);
    in = tn_graph_add_op(args->graph, relu, "silu()", &in, 1);
    if (in == NULL || tn_node_replace_uses(relu, in) < 0)
        return tn_error_last_code();
    return tn_node_erase(relu);
}

static deed deeds[] = { FAIL, FAIL_QUIETLY, ADD_INPUT, DROP_OUTPUT, CIRCLE, KEEP,
                        DROP, REPORT,       GROW,      OPEN,        SILU };

static void put(const char *name, deed what, uint64_t flags, const char *after)
{
    static tn_pass_def defs[16];
    static int count;
    tn_pass_def *def = &defs[count++];

    *def = (tn_pass_def){ TN_HEAD(tn_pass_def),
                          .name = name,
                          .help = "for this test",
                          .user = &deeds[what],
                          .flags = flags,
                          .after = after,
                          .run = act };
    if (what == REPORT) {
        def->options = options;
        def->data_size = sizeof(struct options);
    }
    ck_ok(tn_register(def));
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(the_example_changes_nothing_and_removes_what_is_unused)
{
    use_example();
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2);
    tn_graph *graph = small(w);
    char text[128];
    tn_node *relu = tn_graph_find(graph, "relu");
    step(graph, "exp()", step(graph, "sort()", relu, NULL) != NULL ? relu : NULL, NULL);
    step(graph, "dropout(p=0.5)", relu, NULL);
    ck_assert_str_eq(names_of(graph),
                     "x w add relu mul sort sort_values sort_indices exp dropout output");
    ck_ok(tn_graph_pass(graph, "nothing, unused()"));
    ck_assert_str_eq(names_of(graph), "x w add relu mul dropout output"); /* it draws */
    tn_graph_report(graph, text, sizeof text);
    ck_assert_str_eq(text, "nothing: nothing to do\nunused: 2 removed\n");
    ck_same(run1(graph, x), small_eager(x, w));
    /* what was there before can be looked at, as erased nodes */
    ck_assert(tn_node_is_erased(relu));
    ck_assert_str_eq(tn_node_name(relu), "relu");
    ck_assert(!tn_node_is_erased(tn_graph_find(graph, "relu")));
    ck_assert_str_eq(tn_registry_plugin(TN_KIND_tn_pass_def, "unused"),
                     "org.example.graph_contributions");
    tn_graph_drop(graph);
}
END_TEST

START_TEST(pipelines_run_in_order_with_options)
{
    TN_SCOPE;
    tn_graph *graph = small(numbers(0));
    char text[128];
    put("report", REPORT, TN_PASS_EXACT, NULL);
    put("silu", SILU, 0, "report other");
    ck_ok(tn_graph_pass(graph, "report(2), silu, report(times=1)"));
    ck_assert_str_eq(names_of(graph), "x w add silu mul output");
    ck_assert_int_eq(tn_graph_report(graph, text, sizeof text), 45);
    ck_assert_str_eq(text, "report: time 0\nreport: time 1\nreport: time 0\n");
    ck_ok(tn_graph_pass(graph, "")); /* no pass, no report */
    ck_assert_int_eq(tn_graph_report(graph, NULL, 0), 0);
    ck_assert_int_eq(tn_graph_pass(graph, "silu, report"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "pass silu: wrong order; expected it after pass report");
    ck_assert_int_eq(tn_graph_pass(graph, "reprt"), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "no plugin provides a pass \"reprt\"; did you mean \"report\"?");
    ck_assert_int_ne(tn_graph_pass(graph, "report(x=1)"), TN_OK);
    expect_failure(TN_ERR_KEY, "no option \"x\"");
    ck_assert_int_eq(tn_graph_pass(graph, "silu(1)"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "pass silu: options: unknown, got \"silu(1)\"; expected none");
    ck_assert_int_eq(tn_graph_pass(graph, "a=report"), TN_ERR_FORMAT);
    expect_failure(TN_ERR_FORMAT, "expected names of passes");
    ck_assert_int_eq(tn_graph_pass(graph, "report,"), TN_OK);
    ck_assert_int_eq(tn_graph_pass(graph, "3"), TN_ERR_FORMAT);
    expect_failure(TN_ERR_FORMAT, "expected names of passes");
    ck_assert_int_eq(tn_graph_pass(graph, "report) x("), TN_ERR_FORMAT);
    tn_error_clear();
    tn_graph_drop(graph);
}
END_TEST

START_TEST(where_a_pass_fails_nothing_has_changed)
{
    static const struct {
        const char *name;
        deed what;
        tn_status code;
        const char *words;
    } rows[] = {
        { "fails", FAIL, TN_ERR_IO, "pass fails: no file" },
        { "quiet", FAIL_QUIETLY, TN_ERR_IO, "pass quiet: quiet" },
        { "adds", ADD_INPUT, TN_ERR_REFUSED, "pass adds: it changed the number of inputs" },
        { "drops", DROP_OUTPUT, TN_ERR_REFUSED, "pass drops: it changed the number of inputs" },
        { "circles", CIRCLE, TN_ERR_VALUE,
          "pass circles: tn_graph_lint: node add: input 0: node "
          "relu does not come before this node" },
        { "drops_it", DROP, TN_ERR_REFUSED, "pass drops_it: it dropped the graph" },
        { "keeps", KEEP, TN_ERR_REFUSED, "pass keeps: it kept a reference to the graph" },
    };
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2);
    tn_graph *graph = small(w);
    tn_node *relu = tn_graph_find(graph, "relu");
    put("grow", GROW, TN_PASS_SHAPES | TN_PASS_WEIGHTS | TN_PASS_INFERENCE, NULL);
    for (int i = 0; i < 7; i++) {
        char pipeline[64];
        put(rows[i].name, rows[i].what, 0, NULL);
        snprintf(pipeline, sizeof pipeline, "grow, %s", rows[i].name);
        ck_assert_int_eq(tn_graph_pass(graph, pipeline), rows[i].code);
        ck_assert_msg(strncmp(tn_error_text(), rows[i].words, strlen(rows[i].words)) == 0, "%s",
                      tn_error_text());
        tn_error_clear();
        ck_assert(!tn_node_is_erased(relu));
        ck_assert_str_eq(names_of(graph), "x w add relu mul output");
    }
    tn_graph_drop(kept);
    ck_same(run1(graph, x), small_eager(x, w));
    tn_graph_drop(graph);
}
END_TEST

START_TEST(a_run_refuses_what_a_pass_did_not_rely_on)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2);
    tn_tensor *wide = tn_tensor_full(TN_SHAPE(4, 2, 3), 1.5, TN_F32, NULL);
    tn_graph *shapes = small(w), *weights = small(w), *inference = small(w), *copy;
    put("shapes", SILU, TN_PASS_SHAPES, NULL);
    put("weights", SILU, TN_PASS_WEIGHTS, NULL);
    put("inference", SILU, TN_PASS_INFERENCE, NULL);
    ck_ok(tn_graph_pass(shapes, "shapes"));
    ck_made(run1(shapes, x));
    ck_assert_ptr_null(run1(shapes, wide));
    expect_failure(TN_ERR_VALUE, "input x: wrong dtype or shape, got float32[4, 2, 3]");
    ck_assert_ptr_null(run1(shapes, wide));
    expect_failure(TN_ERR_VALUE, "expected float32[2, 3], which shapes relied on");

    ck_ok(tn_graph_pass(inference, "inference"));
    ck_made(run1(inference, x));
    ck_ok(tn_tensor_set_requires_grad(w, true));
    ck_assert_ptr_null(run1(inference, x));
    expect_failure(TN_ERR_RUNTIME, "pass inference made this graph for inference");
    ck_ok(tn_grad_begin(false));
    ck_made(run1(inference, x));
    tn_grad_end();
    ck_ok(tn_tensor_set_requires_grad(w, false));

    ck_ok(tn_graph_pass(weights, "weights"));
    copy = tn_graph_copy(weights);
    ck_made(run1(weights, wide));
    ck_ok(tn_tensor_copy_in(w, (float[6]){ 1, 1, 1, 1, 1, 1 }, 24));
    ck_assert_ptr_null(run1(weights, x));
    expect_failure(TN_ERR_RUNTIME,
                   "a slot whose values pass weights has used: the tensor has changed");
    ck_assert_ptr_null(run1(copy, x));
    tn_error_clear();
    tn_graph_drop(copy);
    tn_graph_drop(shapes);
    tn_graph_drop(weights);
    tn_graph_drop(inference);
}
END_TEST

START_TEST(the_checked_boundary_sees_what_a_pass_leaves)
{
    setenv("TENON_CHECK", "1", 1);
    TN_SCOPE;
    tn_graph *graph = small(numbers(-4));
    put("opens", OPEN, 0, NULL);
    ck_assert_int_eq(tn_graph_pass(graph, "opens"), TN_ERR_REFUSED);
    expect_failure(TN_ERR_REFUSED, "opens left a scope open");
    tn_graph_drop(graph);
}
END_TEST

START_TEST(a_pass_that_is_taken_back_leaves_its_graphs)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2);
    tn_graph *graph = small(w);
    put("silu", SILU, TN_PASS_SHAPES, NULL);
    ck_ok(tn_graph_pass(graph, "silu"));
    ck_ok(tn_unregister(TN_KIND_tn_pass_def, "silu"));
    ck_made(run1(graph, x));
    ck_assert_int_eq(tn_graph_pass(graph, "silu"), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "no plugin provides a pass \"silu\"");
    ck_assert_ptr_null(run1(graph, tn_tensor_full(TN_SHAPE(5), 1, TN_F32, NULL)));
    expect_failure(TN_ERR_VALUE, "which silu relied on");
    tn_graph_drop(graph);
}
END_TEST

START_TEST(memory_that_fails_in_a_pipeline_leaves_the_graph)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2);
    put("silu", SILU, TN_PASS_WEIGHTS, NULL);
    put("report", REPORT, 0, NULL);
    for (uint64_t n = 1;; n++) {
        tn_graph *graph = small(w);
        tn__memory_fail(n);
        tn_status status = tn_graph_pass(graph, "report(times=3), silu");
        uint64_t made = tn__memory_fail(0);
        ck_assert_msg(status == TN_OK || status == TN_ERR_MEMORY, "%s", tn_error_text());
        tn_error_clear();
        ck_assert_str_eq(names_of(graph),
                         status == TN_OK ? "x w add silu mul output" : "x w add relu mul output");
        if (status != TN_OK)
            ck_same(run1(graph, x), small_eager(x, w));
        tn_graph_drop(graph);
        if (made < n)
            break;
    }
}
END_TEST

/* The text of a graph that an older version wrote has a call without the input. */
START_TEST(a_text_without_an_added_input_is_read)
{
    TN_SCOPE;
    tn_graph *graph = grown_graph(), *read;
    char text[1024], *added;

    tn_graph_print(graph, "text", text, sizeof text);
    added = strstr(text, ", none)"); /* of the first call */
    ck_assert_msg(added != NULL, "%s", text);
    memmove(added, added + 6, strlen(added + 6) + 1);
    read = tn_graph_parse(text, NULL, NULL);
    ck_made(read);
    ck_assert_str_eq(names_of(read), "x relu test_grown test_grown_1 output");
    ck_assert_ptr_eq(tn_node_input(tn_graph_find(read, "test_grown"), 1), TN_NODE_NONE);
    tn_graph_drop(graph);
    tn_graph_drop(read);
}
END_TEST

/* A pass of version 1 would lose the input that version 9 has added: it is left out, and said. */
START_TEST(a_pass_that_does_not_know_a_call_is_not_run)
{
    TN_SCOPE;
    static tn_pass_def newer = { TN_HEAD(tn_pass_def), .name = "silu_9", .help = "for this test",
                                 .user = &deeds[SILU], .run = act };
    tn_graph *graph = grown_graph();
    char text[256];

    put("silu", SILU, 0, NULL);
    ck_ok(tn_graph_pass(graph, "silu"));
    ck_assert_str_eq(names_of(graph), "x relu test_grown test_grown_1 output");
    tn_graph_report(graph, text, sizeof text);
    ck_assert_str_eq(text, "silu: not run, because it does not know the input more, which version "
                           "9 of test_grown added\n");
    newer.head.target = 9;
    ck_ok(tn_register(&newer));
    ck_ok(tn_graph_pass(graph, "silu_9"));
    ck_assert_str_eq(names_of(graph), "x silu test_grown test_grown_1 output");
    tn_graph_drop(graph);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { the_example_changes_nothing_and_removes_what_is_unused,
                                   pipelines_run_in_order_with_options,
                                   where_a_pass_fails_nothing_has_changed,
                                   a_run_refuses_what_a_pass_did_not_rely_on,
                                   a_text_without_an_added_input_is_read,
                                   a_pass_that_does_not_know_a_call_is_not_run,
                                   the_checked_boundary_sees_what_a_pass_leaves,
                                   a_pass_that_is_taken_back_leaves_its_graphs,
                                   memory_that_fails_in_a_pipeline_leaves_the_graph,
                                   NULL };
    return suite_run("passes", tests);
}
