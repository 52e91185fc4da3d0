/* SPDX-License-Identifier: MIT
 *
 * Compiled by tests/tools/graph_c.sh beside what `tenon graph --format c` has written: the module
 * of the written file has the paths of the original, computes the same bits and gradients, and its
 * graph is that of the original. Arguments: the original, train or eval, dtype:shape of each input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

extern tn_module *WRITTEN(void);

static int fail(const char *what)
{
    printf("%s: %s\n", what, tn_error_code() != TN_OK ? tn_error_text() : "differs");
    return 1;
}

/* Makes an input of a text such as float32:1,3,8,8. */
static tn_tensor *input_of(const char *text)
{
    int64_t shape[TN_MAX_DIMS], count = 0;
    const char *at = strchr(text, ':');
    char name[32];
    tn_dtype dtype;

    snprintf(name, sizeof name, "%.*s", (int)(at - text), text);
    if (tn_dtype_parse(name, &dtype) != TN_OK)
        return NULL;
    while (*at != '\0')
        shape[count++] = strtoll(at + 1, (char **)&at, 10);
    if (dtype != TN_F32)
        return tn_tensor_full((tn_ints){ shape, count }, 3, dtype, NULL);
    return tn_randn((tn_ints){ shape, count });
}

static bool same_bits(tn_tensor *a, tn_tensor *b)
{
    size_t bytes = (size_t)tn_tensor_numel(a) * tn_dtype_size(tn_tensor_dtype(a));
    void *x = malloc(bytes + 1), *y = malloc(bytes + 1);
    bool same = tn_tensor_numel(a) == tn_tensor_numel(b) &&
                tn_tensor_dtype(a) == tn_tensor_dtype(b) &&
                tn_tensor_copy_out(a, x, bytes) == TN_OK &&
                tn_tensor_copy_out(b, y, bytes) == TN_OK && memcmp(x, y, bytes) == 0;

    free(x);
    free(y);
    return same;
}

static tn_tensor *first_tensor(tn_pack *pack, int64_t index)
{
    tn_value value = tn_pack_at(pack, index);

    while (value.kind == TN_VALUE_LIST || value.kind == TN_VALUE_TUPLE)
        value = *tn_value_item(&value, 0);
    return value.kind == TN_VALUE_TENSOR ? value.as.tensor : NULL;
}

/* Calls a module, and backward of the sum of its first result if that has a gradient. */
static tn_tensor *call(tn_module *module, tn_pack *in)
{
    tn_pack *out = tn_pack_new();
    tn_tensor *y = NULL;

    tn_random_seed(7);
    if (tn_module_call_pack(module, in, out) == TN_OK)
        y = tn_tensor_to_scope(tn_tensor_keep(first_tensor(out, 0)));
    if (y != NULL && tn_tensor_requires_grad(y) && tn_backward(tn_sum(y)) != TN_OK)
        y = NULL;
    tn_pack_drop(out);
    return y;
}

static int compare_slots(tn_module *a, tn_module *b)
{
    tn_walk *walk = tn_walk_begin(a, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, NULL);
    int bad = 0;

    for (const tn_visit *at = tn_walk_next(walk); at != NULL; at = tn_walk_next(walk)) {
        tn_tensor *other = tn_module_find_tensor(b, at->path);
        tn_tensor *g = tn_tensor_is_parameter(at->tensor) ? tn_tensor_grad(at->tensor) : NULL;

        if (other == NULL || !same_bits(at->tensor, other))
            bad += fail(at->path);
        else if (g != NULL &&
                 (tn_tensor_grad(other) == NULL || !same_bits(g, tn_tensor_grad(other))))
            bad += fail("gradient");
    }
    tn_walk_end(walk);
    return bad;
}

/* Returns the graph of a module as code. */
static char *code_of(tn_module *module, const tn_pack *in)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_graph *graph;
    int64_t length;
    char *text;

    how.flags = TN_TRACE_THROUGH;
    graph = tn_module_trace_pack(module, in, &how);
    length = graph != NULL ? tn_graph_print(graph, "code", NULL, 0) : -1;
    text = length >= 0 ? calloc(1, (size_t)length + 1) : NULL;
    if (text != NULL)
        tn_graph_print(graph, "code", text, (size_t)length + 1);
    tn_graph_drop(graph);
    return text;
}

/* A file of a script, or a text such as Linear(3, 2). */
static tn_module *original_of(const char *text)
{
    size_t length = strlen(text);

    return length > 7 && strcmp(text + length - 7, ".script") == 0 ? tn_module_from_file(text)
                                                                   : tn_module_new("%s", text);
}

int main(int count, char **arguments)
{
    TN_SCOPE;
    bool train = count > 2 && strcmp(arguments[2], "train") == 0;
    tn_module *net = count > 3 ? original_of(arguments[1]) : NULL, *written = WRITTEN();
    tn_state *state = net != NULL ? tn_module_state(net) : NULL;
    tn_pack *in = tn_pack_new();
    int bad = 0;
    tn_tensor *x, *y;
    char *a, *b;

    if (net == NULL || written == NULL || state == NULL)
        return fail("not made");
    if (tn_module_train(net, train) != TN_OK || tn_module_load_state(written, state, true) != TN_OK)
        return fail("load");
    for (int i = 3; i < count; i++)
        if (tn_pack_add(in, NULL, tn_value_tensor(input_of(arguments[i]))) != TN_OK)
            return fail("input");
    a = code_of(net, in);
    b = code_of(written, in);
    if (a == NULL || b == NULL)
        return fail("trace");
    printf("---- original\n%s---- written\n%s", a, b);
    free(a);
    free(b);
    x = call(net, in);
    y = call(written, in);
    if (x == NULL || y == NULL || !same_bits(x, y))
        bad += fail("result");
    bad += compare_slots(net, written);
    tn_pack_drop(in);
    tn_state_drop(state);
    tn_module_drop(net);
    tn_module_drop(written);
    return bad != 0;
}
