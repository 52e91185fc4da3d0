/* SPDX-License-Identifier: MIT
 *
 * Checks passes and compilers of regions, for tenon check. They get small graphs of common
 * operators and must not change the results. */
#include "conform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPHS = 7, MOST = 3 };
static const double tolerance = 2e-5;

/* ---- graphs ---------------------------------------------------------------------------------- */

/* A graph under construction. After a failure, put() and slot() add nothing and return NULL. */
typedef struct sketch {
    tn_graph *graph;
    const tn_device *device;
    bool failed;
} sketch;

/* Creates a tensor of numbers between -1 and 1, which differ between tensors and elements. */
static tn_tensor *numbers(int which, tn_ints shape, const tn_device *device)
{
    float values[512];
    int64_t count = 1;
    tn_tensor *tensor;

    for (int64_t d = 0; d < shape.count; d++)
        count *= shape.at[d];
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)sin(1.0 + 7 * which + 2.7 * (double)i);
    tensor = tn_tensor_empty(shape, TN_F32, device);
    return tensor != NULL &&
                   tn_tensor_copy_in(tensor, values, (size_t)count * sizeof *values) == TN_OK
               ? tensor
               : NULL;
}

/* Adds an operator with one to three inputs; unused inputs are NULL. */
static tn_node *put(sketch *s, const char *spec, tn_node *a, tn_node *b, tn_node *c)
{
    tn_node *const in[] = { a, b, c };
    int64_t count = c != NULL ? 3 : b != NULL ? 2 : 1;
    tn_node *node = s->failed || a == NULL ? NULL
                                           : tn_graph_add_op(s->graph, NULL, spec, in, count);

    s->failed = s->failed || node == NULL;
    return node;
}

static tn_node *slot(sketch *s, const char *name, int which, tn_ints shape)
{
    tn_node *node = tn_graph_slot(s->graph, name, numbers(which, shape, s->device));

    s->failed = s->failed || node == NULL;
    return node;
}

/* relu(x + 2 w) x: a value is used twice */
static tn_node *products(sketch *s, tn_node *x)
{
    tn_node *w = slot(s, "w", 1, TN_SHAPE(4, 6));

    return put(s, "mul()", put(s, "relu()", put(s, "add(alpha=2)", x, w, NULL), NULL, NULL), x,
               NULL);
}

static tn_node *perceptron(sketch *s, tn_node *x)
{
    tn_node *hidden = put(s, "linear()", x, slot(s, "w1", 1, TN_SHAPE(5, 6)),
                          slot(s, "b1", 2, TN_SHAPE(5)));

    hidden = put(s, "linear()", put(s, "relu()", hidden, NULL, NULL),
                 slot(s, "w2", 3, TN_SHAPE(3, 5)), TN_NODE_NONE);
    return put(s, "softmax(dim=1)", hidden, NULL, NULL);
}

/* views, broadcasting, a reduction */
static tn_node *turned(sketch *s, tn_node *x)
{
    tn_node *sum = put(s, "add()", put(s, "transpose(dim0=0, dim1=1)", x, NULL, NULL),
                       slot(s, "row", 1, TN_SHAPE(4)), NULL);

    return put(s, "sum(dims=[0])", put(s, "exp()", put(s, "relu()", sum, NULL, NULL), NULL, NULL),
               NULL, NULL);
}

/* several outputs */
static tn_node *sorted(sketch *s, tn_node *x)
{
    tn_node *sort = put(s, "sort()", x, NULL, NULL);

    return put(s, "mul()", sort != NULL ? tn_node_item(sort, 0) : NULL, put(s, "add()", x, x, NULL),
               NULL);
}

static tn_node *diamond(sketch *s, tn_node *x)
{
    tn_node *sum = put(s, "add()", x, slot(s, "w", 1, TN_SHAPE(4, 6)), NULL);

    return put(s, "mul()", put(s, "exp()", sum, NULL, NULL), put(s, "relu()", sum, NULL, NULL),
               NULL);
}

/* unused nodes, two equal nodes, operators that have no effect */
static tn_node *wasteful(sketch *s, tn_node *x)
{
    tn_node *a = put(s, "tanh()", x, NULL, NULL), *b = put(s, "tanh()", x, NULL, NULL);

    put(s, "exp()", put(s, "relu()", a, NULL, NULL), NULL, NULL);
    a = put(s, "transpose(dim0=0, dim1=1)", a, NULL, NULL);
    a = put(s, "transpose(dim0=0, dim1=1)", a, NULL, NULL);
    return put(s, "add(alpha=0)", put(s, "relu()", put(s, "relu()", a, NULL, NULL), NULL, NULL), b,
               NULL);
}

/* a constant, and an operator whose inputs are all constant */
static tn_node *constants(sketch *s, tn_node *x)
{
    tn_node *c = tn_graph_constant(s->graph, "c", numbers(1, TN_SHAPE(4, 6), s->device));

    s->failed = s->failed || c == NULL;
    return put(s, "relu()", put(s, "add()", x, put(s, "exp()", c, NULL, NULL), NULL), NULL, NULL);
}

static tn_node *(*const sketches[GRAPHS])(sketch *s, tn_node *x) = { products, perceptron, turned,
                                                                     sorted,   diamond,    wasteful,
                                                                     constants };
static const char *const titles[GRAPHS] = { "mul(relu(x + 2 w), x)",
                                            "two linear layers",
                                            "sum(exp(relu(x^T + row)))",
                                            "sort(x) (x + x)",
                                            "exp(s) relu(s)",
                                            "unused and repeated nodes",
                                            "a constant" };

/* Whether each element of the result is computed independently. If not, a compiled graph may differ
 * by rounding: a region's output is always row-major, while an operator may keep the strides of its
 * input, so that a later sum adds in another order. */
static const bool elementwise[GRAPHS] = { true, false, false, true, true, true, true };

static tn_graph *graph_of(conform *c, int which)
{
    sketch s = { tn_graph_new(), c->plugin->device, false };
    tn_node *x = tn_graph_input(s.graph, "x", TN_SHAPE(4, 6), TN_F32);
    tn_node *out = x != NULL ? sketches[which](&s, x) : NULL;

    if (out != NULL && !s.failed && tn_graph_output(s.graph, &out, 1) == TN_OK)
        return s.graph;
    conform_fail(c, "graph %s: cannot be built: %s", titles[which], tn_error_text());
    tn_graph_drop(s.graph);
    return NULL;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* The result of a graph and the gradient of its input. The caller owns both; forget() drops
 * them. */
typedef struct results {
    tn_tensor *all[MOST];
    int count;
} results;

static void forget(results *r)
{
    for (int i = 0; i < r->count; i++)
        tn_tensor_drop(r->all[i]);
    r->count = 0;
}

/* The inputs with which graphs run. */
enum { CONTIGUOUS, BACKWARD, SPECIAL, INPUTS };

/* Creates the input: contiguous, with the first dimension innermost in memory, or contiguous with
 * NaN, infinities and zeros. */
static tn_tensor *input_of(conform *c, int kind)
{
    static const float special[] = { NAN, INFINITY, -INFINITY, -0.0F, 0 };
    tn_tensor *x = numbers(0, TN_SHAPE(4, 6), c->plugin->device), *other;

    if (x != NULL && kind == SPECIAL &&
        tn_tensor_copy_in(tn_narrow(tn_narrow(x, 0, 1, 1), 1, 0, 5), special, sizeof special) !=
            TN_OK)
        return NULL;
    if (x == NULL || kind != BACKWARD)
        return x;
    other = tn_tensor_empty_strided(TN_SHAPE(4, 6), TN_INTS(1, 4), TN_F32, c->plugin->device);
    return other != NULL ? tn_copy_(other, x) : NULL;
}

/* Runs a graph and, with `grad`, the backward pass. Returns false and sets the error on failure. */
static bool run(conform *c, tn_graph *graph, int kind, bool grad, results *out)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *x = input_of(c, kind), *y = NULL, *sum, *gradient = NULL;
    bool well = x != NULL && (!grad || tn_tensor_set_requires_grad(x, true) == TN_OK) &&
                tn_graph_run(graph, &x, 1, &y, 1) == TN_OK;

    out->count = 0;
    c->checks++;
    if (well) {
        out->all[out->count++] = tn_tensor_keep(tn_detach(y));
        sum = grad ? tn_sum(y) : NULL;
        well = !grad || (sum != NULL && tn_grad(&sum, NULL, 1, &x, &gradient, 1, NULL) == TN_OK);
    }
    if (well && grad)
        out->all[out->count++] = tn_tensor_keep(gradient);
    tn_scope_end(scope);
    return well;
}

static bool same_number(double got, double expected, bool exact)
{
    if (isnan(got) || isnan(expected))
        return isnan(got) && isnan(expected);
    return got == expected || (!exact && fabs(got - expected) <= tolerance * (1 + fabs(expected)));
}

/* Compares the results of two runs: bit by bit if `exact`, else within the tolerance. */
static bool same(conform *c, const results *got, const results *expected, bool exact,
                 const char *where)
{
    bool well = got->count == expected->count;

    for (int i = 0; well && i < got->count; i++) {
        const char *what = i == 0 ? "result" : "gradient";
        int64_t n = 0, m = 0;
        double *a = conform_values(got->all[i], &n), *b = conform_values(expected->all[i], &m);

        c->checks++;
        if (a == NULL || b == NULL || n != m)
            well = conform_fail(c, "%s: %s: wrong shape, got %lld elements; expected %lld", where,
                                what, (long long)n, (long long)m);
        for (int64_t k = 0; well && k < n; k++)
            if (!same_number(a[k], b[k], exact))
                well = conform_fail(c, "%s: %s: element %lld: wrong value, got %.9g; expected %.9g",
                                    where, what, (long long)k, a[k], b[k]);
        free(a);
        free(b);
    }
    return well;
}

/* Checks that the changed graph gives the results of the original graph, for inputs of two layouts
 * and for special numbers, and that two runs give the same bits. */
static bool agrees(conform *c, tn_graph *changed, tn_graph *graph, bool exact, bool grad,
                   const char *where)
{
    bool well = true;

    for (int kind = 0; kind < (grad ? SPECIAL : INPUTS) && well; kind++) {
        results expected = { .count = 0 }, got = { .count = 0 }, again = { .count = 0 };

        if (!run(c, graph, kind, grad, &expected))
            well = conform_fail(c, "%s: the original graph cannot run: %s", where, tn_error_text());
        else if (!run(c, changed, kind, grad, &got) || !run(c, changed, kind, grad, &again))
            well = conform_fail(c, "%s: the changed graph cannot run: %s", where, tn_error_text());
        well = well && same(c, &got, &expected, exact, where) &&
               (same(c, &again, &got, true, where) ||
                conform_fail(c, "%s: a second run gives another result", where));
        forget(&expected);
        forget(&got);
        forget(&again);
    }
    return well;
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Returns the graph as text, which the caller frees; NULL on failure. */
static char *text_of(const tn_graph *graph)
{
    int64_t length = tn_graph_print(graph, "text", NULL, 0);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;

    if (text != NULL)
        tn_graph_print(graph, "text", text, (size_t)length + 1);
    return text;
}

/* Returns whether the texts of two graphs differ. */
static bool has_changed(const tn_graph *changed, const tn_graph *graph)
{
    char *now = text_of(changed), *before = text_of(graph);
    bool differ = now == NULL || before == NULL || strcmp(now, before) != 0;

    free(now);
    free(before);
    return differ;
}

static bool check_pass(conform *c, const tn_pass_def *def, int which, int64_t *changes)
{
    bool exact = (def->flags & TN_PASS_EXACT) != 0, grad = !(def->flags & TN_PASS_INFERENCE);
    tn_graph *graph = graph_of(c, which), *changed = graph != NULL ? tn_graph_copy(graph) : NULL;
    char where[160];
    bool well = changed != NULL;

    snprintf(where, sizeof where, "graph %s", titles[which]);
    if (well && tn_graph_pass(changed, c->subject) != TN_OK)
        well = conform_fail(c, "%s: the pass fails: %s", where, tn_error_text());
    *changes += well && has_changed(changed, graph);
    well = well && agrees(c, changed, graph, exact, grad, where);
    snprintf(where, sizeof where, "graph %s, after a second time", titles[which]);
    if (well && tn_graph_pass(changed, c->subject) != TN_OK)
        well = conform_fail(c, "%s: the pass fails: %s", where, tn_error_text());
    well = well && agrees(c, changed, graph, exact, grad, where);
    tn_graph_drop(changed);
    tn_graph_drop(graph);
    tn_error_clear();
    return well;
}

void conform_pass(conform *c)
{
    const tn_pass_def *def = (const tn_pass_def *)tn_registry_find(TN_KIND_tn_pass_def, c->subject);
    int64_t changes = 0;
    bool well = true;

    if (conform_needs_options(def->options)) {
        conform_skip(c, "the pass has options without a default");
        return;
    }
    for (int i = 0; i < GRAPHS && well; i++)
        well = check_pass(c, def, i, &changes);
    if (well && changes == 0)
        conform_skip(c, "the pass changes none of the %d graphs: it was not tested", GRAPHS);
}

/* ---- compilers ------------------------------------------------------------------------------- */

static int64_t regions_of(const tn_graph *graph)
{
    int64_t count = 0;

    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node))
        count += tn_node_kind_of(node) == TN_NODE_REGION;
    return count;
}

static bool check_compiler(conform *c, const tn_compiler_def *def, int which, int64_t *regions)
{
    tn_graph *graph = graph_of(c, which), *changed = graph != NULL ? tn_graph_copy(graph) : NULL;
    tn_graph *copy = NULL;
    char where[160];
    bool exact = (def->flags & TN_COMPILER_EXACT) && elementwise[which], well = changed != NULL;

    snprintf(where, sizeof where, "graph %s", titles[which]);
    if (well && tn_graph_compile(changed, c->plugin->device, c->subject) != TN_OK)
        well = conform_fail(c, "%s: compiling fails: %s", where, tn_error_text());
    if (well) {
        *regions += regions_of(changed);
        well = agrees(c, changed, graph, exact, false, where) &&
               (!(def->flags & TN_COMPILER_TRAINS) ||
                agrees(c, changed, graph, exact, true, where));
    }
    /* a copy of the compiled graph must work after the graph is dropped */
    if (well)
        copy = tn_graph_copy(changed);
    tn_graph_drop(changed);
    well = well && (copy != NULL || conform_fail(c, "%s: %s", where, tn_error_text())) &&
           agrees(c, copy, graph, exact, false, where);
    tn_graph_drop(copy);
    tn_graph_drop(graph);
    tn_error_clear();
    return well;
}

void conform_compiler(conform *c)
{
    const tn_compiler_def *def = (const tn_compiler_def *)tn_registry_find(TN_KIND_tn_compiler_def,
                                                                           c->subject);
    int64_t regions = 0;
    bool well = true;

    if (strcmp(def->device, tn_device_type(c->plugin->device)) != 0) {
        conform_skip(c, "the compiler is for %s; name a device of this type with --device",
                     def->device);
        return;
    }
    for (int i = 0; i < GRAPHS && well; i++)
        well = check_compiler(c, def, i, &regions);
    if (well && regions == 0)
        conform_skip(c, "the compiler takes over no nodes of the %d graphs", GRAPHS);
}
