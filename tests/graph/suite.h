/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of graphs: tensors of known values, graphs of a few nodes, comparisons. */
#ifndef TN_TESTS_GRAPH_SUITE_H
#define TN_TESTS_GRAPH_SUITE_H

#include "tests/base/suite.h"
#include "tests/folders.h"

#include <tenon/tenon.h>

#define ck_ok(call) ck_assert_msg((call) == TN_OK, "%s", tn_error_last()->message)
#define ck_made(object) ck_assert_msg((object) != NULL, "%s", tn_error_last()->message)

/* The last error of this thread has this code, and its message has both parts. */
static TN_ATTR(unused) void ck_error(tn_status code, const char *part, const char *more)
{
    const char *message = tn_error_last()->message;

    ck_assert_msg(tn_error_last()->code == code, "%s: %s", tn_status_name(tn_error_last()->code),
                  message);
    ck_assert_msg(strstr(message, part) != NULL, "%s is not in %s", part, message);
    ck_assert_msg(strstr(message, more) != NULL, "%s is not in %s", more, message);
    tn_error_clear();
}

/* 2 x 3 numbers, the first of them `from`, one apart. */
static TN_ATTR(unused) tn_tensor *numbers(float from)
{
    float values[6];

    for (int i = 0; i < 6; i++)
        values[i] = from + (float)i;
    return tn_tensor_from(values, TN_F32, TN_SHAPE(2, 3));
}

/* Type, shape and bits are the same. */
static TN_ATTR(unused) void ck_same(tn_tensor *got, tn_tensor *expected)
{
    char a[512], b[512];
    size_t size;
    void *x, *y;

    ck_made(got);
    ck_made(expected);
    ck_assert_int_eq(tn_tensor_dtype(got), tn_tensor_dtype(expected));
    ck_assert_int_eq(tn_tensor_shape(got).count, tn_tensor_shape(expected).count);
    for (int64_t d = 0; d < tn_tensor_shape(got).count; d++)
        ck_assert_int_eq(tn_tensor_size(got, d), tn_tensor_size(expected, d));
    size = (size_t)tn_tensor_numel(got) * tn_dtype_size(tn_tensor_dtype(got));
    x = malloc(size + 1);
    y = malloc(size + 1);
    ck_ok(tn_tensor_copy_out(got, x, size));
    ck_ok(tn_tensor_copy_out(expected, y, size));
    tn_tensor_text(got, a, sizeof a);
    tn_tensor_text(expected, b, sizeof b);
    ck_assert_msg(memcmp(x, y, size) == 0, "%s\nhas not the bits of\n%s", a, b);
    free(x);
    free(y);
}

static TN_ATTR(unused) tn_node *step(tn_graph *graph, const char *spec, tn_node *a, tn_node *b)
{
    tn_node *const in[] = { a, b };
    tn_node *node = tn_graph_add_op(graph, NULL, spec, in, b != NULL ? 2 : 1);

    ck_made(node);
    return node;
}

/* relu(x + 2 w) * x, with a slot w. */
static TN_ATTR(unused) tn_graph *small(tn_tensor *w)
{
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *slot = tn_graph_slot(graph, "w", w);
    tn_node *out = step(graph, "mul()",
                        step(graph, "relu()", step(graph, "add(alpha=2)", x, slot), NULL), x);

    ck_ok(tn_graph_output(graph, &out, 1));
    return graph;
}

static TN_ATTR(unused) tn_tensor *small_eager(tn_tensor *x, tn_tensor *w)
{
    return tn_mul(tn_relu(tn_add(x, w, 2.0)), x);
}

static TN_ATTR(unused) tn_tensor *run1(tn_graph *graph, tn_tensor *in)
{
    tn_tensor *out = NULL;

    return tn_graph_run(graph, &in, 1, &out, 1) == TN_OK ? out : NULL;
}

/* Finds examples/graph_contributions.c, which has passes, a compiler and a communicator. */
static TN_ATTR(unused) void use_example(void)
{
    char folder[TEST_PATH];

    setenv("TENON_PLUGIN_PATH_ADD", built_path(folder, "examples/.libs"), 1);
}

/* The names of the nodes, with spaces between. */
static TN_ATTR(unused) const char *names_of(const tn_graph *graph)
{
    static char text[1024];

    text[0] = '\0';
    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node)) {
        size_t length = strlen(text);

        snprintf(text + length, sizeof text - length, "%s%s", length > 0 ? " " : "",
                 tn_node_name(node));
    }
    return text;
}

/* The text of a graph in one form; the caller frees it. */
static TN_ATTR(unused) char *printed(const tn_graph *graph, const char *form)
{
    int64_t length = tn_graph_print(graph, form, NULL, 0);
    char *text;

    ck_assert_msg(length >= 0, "%s", tn_error_last()->message);
    text = malloc((size_t)length + 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(tn_graph_print(graph, form, text, (size_t)length + 1), length);
    return text;
}

/* Does `work` again and again, each time with one allocation that fails, until it needs fewer
 * allocations. Each time it must succeed or fail with TN_ERR_MEMORY. Returns the number of
 * failures. */
static TN_ATTR(unused) int fail_each_allocation(bool (*work)(void *user), void *user)
{
    for (uint64_t n = 1;; n++) {
        tn__memory_fail(n);
        bool well = work(user);
        uint64_t made = tn__memory_fail(0);
        if (made < n) {
            ck_assert(well);
            return (int)n - 1;
        }
        ck_assert_msg(well || tn_error_code() == TN_ERR_MEMORY, "allocation %d: %s", (int)n,
                      tn_error_text());
        tn_error_clear();
    }
}

#endif
