/* SPDX-License-Identifier: MIT
 *
 * The option structs of functions, in every size, each in memory of exactly its size: a struct that
 * is shorter than the function's is refused, because a part of it would be silently ignored, or
 * half a pointer would be read. tests/op/test_option_structs.c is about those of operators. */
#include "tests/op/suite.h"

static tn_module *module;
static tn_tensor *input;

static bool try_backward(const void *options)
{
    tn_tensor *leaf = LEAF(2), *y = tn_mul(leaf, leaf);

    return tn_backward_from(&y, NULL, 1, options) == TN_OK;
}

static bool try_grad(const void *options)
{
    tn_tensor *leaf = LEAF(2), *y = tn_mul(leaf, leaf), *slope;

    return tn_grad(&y, NULL, 1, &leaf, &slope, 1, options) == TN_OK;
}

static bool try_trace(const void *options)
{
    tn_graph *graph = tn_module_trace(module, input, options);

    tn_graph_drop(graph);
    return graph != NULL;
}

static bool try_script(const void *options)
{
    tn_module *script = tn_module_script(module, input, options);

    tn_module_drop(script);
    return script != NULL;
}

static bool try_plan(const void *options)
{
    tn_graph *graph = tn_module_trace(module, input, NULL);
    tn_plan *plan = tn_plan_new(graph, options);

    ck_assert_ptr_nonnull(graph);
    tn_plan_drop(plan);
    tn_graph_drop(graph);
    return plan != NULL;
}

static bool try_walk(const void *options)
{
    tn_walk *walk = tn_walk_begin(module, TN_SLOT_PARAMETER, options);

    tn_walk_end(walk);
    return walk != NULL;
}

static bool try_average(const void *options)
{
    tn_module *average = tn_average_new(module, options);

    tn_module_drop(average);
    return average != NULL;
}

static bool try_step(const void *options)
{
    tn_tensor *parameters[2];
    tn_optimizer *optimizer;
    tn_step *step;

    ck_assert_int_eq(tn_module_parameters(module, parameters, 2), 2);
    optimizer = tn_optimizer_parse(parameters, 2, "SGD(lr=0.1)");
    ck_assert_msg(optimizer != NULL, "%s", tn_error_text());
    step = tn_step_new(module, NULL, optimizer, options);
    tn_step_drop(step);
    tn_optimizer_drop(optimizer);
    return step != NULL;
}

static bool try_stream(const void *options)
{
    tn_stream *stream = tn_stream_new(tn_device_find("cpu"), options);

    tn_stream_drop(stream);
    return stream != NULL;
}

static const struct row {
    const char *name;
    bool (*call)(const void *options);
    size_t size;
    const void *whole; /* with its defaults */
    bool head;         /* may end after any member; others are whole */
} rows[] = {
    { "tn_backward_from", try_backward, sizeof(tn_backward_options),
      &(const tn_backward_options){ sizeof(tn_backward_options), 0, 0, 0, 0 }, false },
    { "tn_grad", try_grad, sizeof(tn_backward_options),
      &(const tn_backward_options){ sizeof(tn_backward_options), 0, 0, 0, 0 }, false },
    { "tn_module_trace", try_trace, sizeof(tn_tracing_options),
      &(const tn_tracing_options)TN_TRACING_OPTIONS, false },
    { "tn_module_script", try_script, sizeof(tn_tracing_options),
      &(const tn_tracing_options)TN_TRACING_OPTIONS, false },
    { "tn_plan_new", try_plan, sizeof(tn_plan_options), &(const tn_plan_options)TN_PLAN_OPTIONS,
      false },
    { "tn_walk_begin", try_walk, sizeof(tn_walk_options),
      &(const tn_walk_options){ sizeof(tn_walk_options), 0, NULL, NULL }, false },
    { "tn_average_new", try_average, sizeof(tn_average_options),
      &(const tn_average_options)TN_AVERAGE_OPTIONS, false },
    { "tn_step_new", try_step, sizeof(tn_step_options), &(const tn_step_options)TN_STEP_OPTIONS,
      false },
    { "tn_stream_new", try_stream, sizeof(tn_stream_args),
      &(const tn_stream_args){ TN_HEAD(tn_stream_args) }, true },
};

/* Whether the function takes a struct of this size, whose first four bytes say so. */
static bool takes(const struct row *row, uint32_t size)
{
    TN_SCOPE;
    size_t room = size < sizeof(tn_head) && row->head ? sizeof(tn_head) : size < 4 ? 4 : size;
    uint8_t *own = calloc(1, room);
    bool taken;

    memcpy(own, row->whole, room < row->size ? room : row->size);
    memcpy(own, &size, sizeof size);
    tn_error_clear();
    taken = row->call(own);
    ck_assert_msg(taken || tn_error_text()[0] != '\0', "%s refuses without a message", row->name);
    tn_error_clear();
    free(own);
    return taken;
}

START_TEST(an_option_struct_that_is_shorter_than_it_was_ever_declared_is_refused)
{
    TN_SCOPE;
    module = tn_module_new("Linear(3, 2)");
    ck_assert_msg(module != NULL, "%s", tn_error_text());
    input = VEC(1, 2, 3);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];

        ck_assert_msg(takes(row, (uint32_t)row->size), "%s: %s", row->name, tn_error_text());
        for (uint32_t size = 0; size < row->size; size++) {
            bool ends = row->head && size >= sizeof(tn_head) && size % 8 == 0;

            ck_assert_msg(takes(row, size) == ends, "%s, %u bytes: %s", row->name, size,
                          ends ? "refused" : "taken");
        }
        for (uint32_t more = 1; more <= 8; more++)
            (void)takes(row, (uint32_t)row->size + more);
    }
    tn_module_drop(module);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("option sizes");
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, an_option_struct_that_is_shorter_than_it_was_ever_declared_is_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
