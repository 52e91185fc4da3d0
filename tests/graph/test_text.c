/* SPDX-License-Identifier: MIT
 *
 * Graphs as text: every form, reading back, texts that are wrong. */
#include "tests/graph/suite.h"
#include "tests/spec/proves.h"

static tn_module *holder(void)
{
    tn_module *module = tn_module_plain("Net");

    ck_ok(tn_module_add_parameter(module, "w", tn_parameter(numbers(-4), false)));
    return module;
}

/* A graph with every kind of node that has a text. */
static tn_graph *rich(tn_module *module)
{
    tn_graph *graph = small(tn_module_get(module, "w"));
    tn_node *mul = tn_graph_find(graph, "mul"), *in[2] = { mul, tn_graph_find(graph, "x") };
    tn_node *sum = tn_graph_add_inplace(graph, NULL, "add(alpha=3)", mul, in, 2), *sort, *out[3];
    tn_node *copy = tn_graph_add_inplace(graph, NULL, "copy()", tn_graph_find(graph, "relu"),
                                         (tn_node *[]){ in[1] }, 1);
    tn_node *into = tn_graph_add_inplace(graph, NULL, "mul()", sum,
                                         (tn_node *[]){ copy, tn_graph_find(graph, "w") }, 2);
    ck_made(into);
    sort = step(graph, "sort(dim=1)", into, NULL);
    out[0] = tn_node_item(sort, 0);
    out[1] = tn_node_item(sort, 1);
    out[2] = tn_graph_add_op(graph, NULL, "layer_norm(normalized_shape=(3,))",
                             (tn_node *[]){ out[0], TN_NODE_NONE, TN_NODE_NONE }, 3);
    ck_made(out[2]);
    ck_ok(tn_graph_output(graph, out, 3));
    return graph;
}

/* Fails unless the rich graph, printed in this form, contains each of these parts. */
static void ck_parts(const char *form, const char *const *parts, size_t count)
{
    TN_SCOPE;
    tn_module *module = holder();
    tn_graph *graph = rich(module);
    char *text = printed(graph, form);

    for (size_t i = 0; i < count; i++)
        ck_assert_msg(strstr(text, parts[i]) != NULL, "%s is not in\n%s", parts[i], text);
    free(text);
    tn_graph_drop(graph);
    tn_module_drop(module);
}

START_TEST(a_graph_prints_as_text_in_ssa_form)
{
    TN_SCOPE;
    tn_module *module = holder();
    tn_graph *graph = small(tn_module_get(module, "w"));
    char *text = printed(graph, "text");
    ck_assert_str_eq(text, "graph(%self : Module, %x : float32[2, 3]):  # tenon.graph 1\n"
                           "  %w : float32[2, 3] = prim::GetAttr[name=\"w\"](%self)\n"
                           "  %add : float32[2, 3] = add[alpha=2](%x, %w)\n"
                           "  %relu : float32[2, 3] = relu(%add)\n"
                           "  %mul : float32[2, 3] = mul(%relu, %x)\n"
                           "  return (%mul)\n");
    free(text);
    text = printed(graph, "code");
    ck_assert_str_eq(text, "def forward(self : Module, x : float32[2, 3]):  # tenon.graph 1\n"
                           "    add = add(x, self.w, alpha=2)\n"
                           "    relu = relu(add)\n"
                           "    mul = mul(relu, x)\n"
                           "    return (mul)\n");
    free(text);
    tn_graph_drop(graph);
    tn_module_drop(module);
}
END_TEST

START_TEST(text_and_code_read_back_as_the_same_graph)
{
    static const char *const forms[] = { "text", "code" };
    TN_SCOPE;
    tn_module *module = holder();
    tn_graph *graph = rich(module);
    char *text = printed(graph, "text");
    ck_assert_ptr_nonnull(strstr(text, "%add_ : float32[2, 3] = add_[alpha=3](%mul!, %x)\n"));
    ck_assert_ptr_nonnull(strstr(text, "%copy_ : float32[2, 3] = copy_(%relu!, %x)\n"));
    ck_assert_ptr_nonnull(strstr(text, "%mul_ : float32[2, 3] = mul(%copy_, %w, out=%add_!)\n"));
    ck_assert_ptr_nonnull(strstr(
        text, "%sort_values : float32[2, 3], %sort_indices : int64[2, 3] = prim::TupleUnpack("));
    for (int i = 0; i < 2; i++) {
        char *form = printed(graph, forms[i]), *again;
        tn_graph *read = tn_graph_parse(form, module, NULL);
        tn_tensor *x = numbers(-2), *a[3], *b[3];
        ck_made(read);
        again = printed(read, "text");
        /* the type of the module is not part of a graph that was built by hand */
        ck_assert_str_eq(strchr(again, ','), strchr(text, ','));
        ck_ok(tn_graph_lint(read));
        ck_ok(tn_graph_run(graph, &x, 1, a, 3));
        ck_ok(tn_graph_run(read, &x, 1, b, 3));
        for (int k = 0; k < 3; k++)
            ck_same(b[k], a[k]);
        free(form);
        free(again);
        tn_graph_drop(read);
    }
    free(text);
    tn_graph_drop(graph);
    tn_module_drop(module);
    TN_PROVES("SCR-006");
}
END_TEST

START_TEST(numbers_keep_their_kind_in_text_and_code)
{
    static const struct {
        const char *spec, *in_text, *in_code;
        tn_dtype dtype;
    } rows[] = {
        { "mul_scalar(value=2.0)", "mul_scalar[value=2.0](", "value=2.0)", TN_F32 },
        { "mul_scalar(value=2)", "mul_scalar[value=2](", "value=2)", TN_I64 },
        { "add_scalar(value=-1e20)", "add_scalar[value=-1e+20](", "value=-1e+20)", TN_F32 },
        { "pow_scalar(exponent=-0.0)", "pow_scalar[exponent=-0.0](", "exponent=-0.0)", TN_F32 },
        { "clamp(min=1.0, max=3)", "clamp[min=1.0, max=3](", "min=1.0, max=3)", TN_F32 },
        { "add_scalar(value=True)", "add_scalar[value=True](", "value=True)", TN_I64 },
        { "mul_scalar(value=inf)", "mul_scalar[value=inf](", "value=inf)", TN_F32 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TN_SCOPE;
        tn_graph *graph = tn_graph_new();
        tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 3), 3, TN_I64, NULL), *y;
        tn_node *out = step(graph, rows[i].spec, tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_I64),
                            NULL);

        ck_ok(tn_graph_output(graph, &out, 1));
        ck_ok(tn_graph_run(graph, &x, 1, &y, 1));
        ck_assert_int_eq(tn_tensor_dtype(y), rows[i].dtype);
        for (int k = 0; k < 2; k++) {
            char *form = printed(graph, k == 0 ? "text" : "code");
            tn_graph *read = tn_graph_parse(form, NULL, NULL);
            tn_tensor *again;

            ck_assert_msg(strstr(form, k == 0 ? rows[i].in_text : rows[i].in_code) != NULL, "%s",
                          form);
            ck_made(read);
            ck_ok(tn_graph_run(read, &x, 1, &again, 1));
            ck_same(again, y);
            free(form);
            tn_graph_drop(read);
        }
        tn_graph_drop(graph);
    }
}
END_TEST

START_TEST(constants_are_named_in_the_code_and_found_by_name)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *out = step(graph, "add()", x, tn_graph_constant(graph, "c0", numbers(3)));
    ck_ok(tn_graph_output(graph, &out, 1));
    char *code = printed(graph, "code");
    ck_assert_ptr_nonnull(strstr(code, "add = add(x, CONSTANTS.c0, alpha=1)"));
    ck_assert_ptr_null(tn_graph_parse(code, NULL, NULL));
    ck_error(TN_ERR_KEY, "line 2", "\"c0\": not found among the given constants");
    tn_graph_drop(graph);
    free(code);
}
END_TEST

START_TEST(the_table_has_the_words_of_pytorch)
{
    static const char *const rows[] = { "opcode",
                                        "placeholder    x ",
                                        "get_attr       w ",
                                        "call_function  relu",
                                        "call_method    add_",
                                        "output         output",
                                        "{dim=1, ",
                                        "float32[2, 3]" };
    ck_parts("table", rows, sizeof rows / sizeof *rows);
}
END_TEST

START_TEST(graphviz_has_edges_and_other_forms_are_refused)
{
    static const char *const edge[] = { "\"relu\" -> \"mul\";" };
    TN_SCOPE;
    tn_graph *graph = small(numbers(0));
    ck_parts("graphviz", edge, 1);
    ck_assert_int_eq(tn_graph_print(graph, "xml", NULL, 0), -1);
    ck_error(TN_ERR_VALUE, "form: unknown", "json or graphviz");
    tn_graph_drop(graph);
}
END_TEST

START_TEST(json_has_nodes_with_their_types_and_users)
{
    static const char *const parts[] = {
        "\"format\": \"tenon.graph\", \"version\": 1",
        "{\"name\": \"add\", \"op\": \"call_function\", \"target\": \"add\", \"args\": [\"x\", "
        "\"w\"], \"options\": \"alpha=2\", \"outputs\": [{\"dtype\": \"float32\", \"shape\": [2, "
        "3], \"strides\": [3, 1]}], \"users\": [\"relu\"]}",
        "\"args\": [\"mul\", \"x\", \"mul\"], \"options\": \"alpha=3\"",
        "\"writes\": [2]",
        "\"args\": [\"sort_values\", null, null]",
    };
    ck_parts("json", parts, sizeof parts / sizeof *parts);
}
END_TEST

#define HEAD "graph(%self : Net, %x : float32[2, 3]):  # tenon.graph 1\n"

START_TEST(wrong_texts_are_refused_with_the_line)
{
    static const struct {
        const char *text;
        tn_status code;
        const char *part, *more;
    } rows[] = {
        { "", TN_ERR_FORMAT, "line 1, column 1", "graph(%self" },
        { "graph(%self : Net, %x : float32[2, 3]):\n", TN_ERR_FORMAT, "line 1", "tenon.graph 1" },
        { "graph(%self : Net, %x : float32[2, 3]):  # tenon.graph 2\n", TN_ERR_VERSION, "got 2",
          "expected 1" },
        { "graph(%self : Net, %x):  # tenon.graph 1\n", TN_ERR_FORMAT, "line 1", "a type" },
        { "graph(%self : Net, %x : float32[2, -3]):  # tenon.graph 1\n", TN_ERR_FORMAT, "line 1",
          "a size" },
        { "graph(%self : Net, %x : float99[2]):  # tenon.graph 1\n", TN_ERR_FORMAT, "line 1",
          "dtype" },
        { "graph(%self : Net, %x : float32[9223372036854775807, 9]):  # tenon.graph 1\n",
          TN_ERR_VALUE, "line 1", "too many elements" },
        { "graph(%self : Net, %x : float32[2], %x : float32[2]):  # tenon.graph 1\n", TN_ERR_VALUE,
          "line 1", "taken" },
        { HEAD, TN_ERR_FORMAT, "line 2", "return" },
        { HEAD "  %y : float32[2, 3] = relu(%z)\n", TN_ERR_KEY, "line 2", "\"z\"" },
        { HEAD "  %y : float32[2, 4] = relu(%x)\n", TN_ERR_VALUE, "line 2", "float32[2, 3]" },
        { HEAD "  %y = relu(%x, %x)\n", TN_ERR_VALUE, "line 2", "wrong number" },
        { HEAD "  %y = relu(none)\n", TN_ERR_TYPE, "line 2", "expected a node" },
        { HEAD "  %y = relux(%x)\n", TN_ERR_NOT_IMPLEMENTED, "line 2", "relux" },
        { HEAD "  %y = relu[alpha=1](%x)\n", TN_ERR_VALUE, "line 2", "options" },
        { HEAD "  %y = add[alpha=1(%x, %x)\n", TN_ERR_FORMAT, "line 2", "ends on this line" },
        { HEAD "  %y = relu(%x\n", TN_ERR_FORMAT, "line 2", "comma" },
        { HEAD "  %x = relu(%x)\n", TN_ERR_VALUE, "line 2", "taken" },
        { HEAD "  %a, %b = relu(%x)\n", TN_ERR_FORMAT, "line 2", "one name" },
        { HEAD "  %a, %b = prim::TupleUnpack(%x)\n", TN_ERR_VALUE, "line 2", "has 1 outputs" },
        { HEAD "  %w : float32[2, 3] = prim::GetAttr[name=\"q\"](%self)\n", TN_ERR_KEY, "line 2",
          "\"q\"" },
        { HEAD "  %y = prim::Frob(%x)\n", TN_ERR_NOT_IMPLEMENTED, "line 2", "prim::Frob" },
        { HEAD "  %m : Net = prim::GetAttr[name=\"m\"](%self)\n  %y : float32[2] = "
               "prim::CallMethod[name=\"forward\"](%m, %x)\n",
          TN_ERR_KEY, "line 3", "not installed as a submodule" },
        { HEAD "  return (%x)\nmore", TN_ERR_FORMAT, "line 3", "end of the text" },
        { HEAD "  return (%x, ((((((((((((((((((((((((((((((((((%x))))))))))))))))))))))))))))))))",
          TN_ERR_FORMAT, "line 2", "at most 32 levels" },
        { HEAD "  return (%x) oops\n", TN_ERR_FORMAT, "line 2", "end of the line" },
    };
    TN_SCOPE;
    tn_module *module = holder();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(tn_graph_parse(rows[i].text, module, NULL) == NULL, "%s", rows[i].text);
        ck_assert_msg(tn_error_code() == rows[i].code, "%s: %s", rows[i].text,
                      tn_error_last()->message);
        ck_error(rows[i].code, rows[i].part, rows[i].more);
    }
    tn_module_drop(module);
}
END_TEST

START_TEST(a_text_that_is_cut_anywhere_is_refused)
{
    TN_SCOPE;
    tn_module *module = holder();
    tn_graph *graph = rich(module);
    static const char *const forms[] = { "text", "code" };
    for (int form = 0; form < 2; form++) {
        char *text = printed(graph, forms[form]);
        size_t length = strlen(text);
        for (size_t cut = 0; cut + 2 < length; cut++) {
            char after = text[cut];
            text[cut] = '\0';
            tn_graph *read = tn_graph_parse(text, module, NULL);
            text[cut] = after;
            ck_assert_msg(read == NULL, "read %zu of %zu bytes", cut, length);
            tn_error_clear();
        }
        for (size_t at = 0; at < length; at++) { /* one byte is another: no crash */
            char before = text[at];
            text[at] = (char)(before ^ (1 << at % 7));
            if (text[at] != '\0')
                tn_graph_drop(tn_graph_parse(text, module, NULL));
            text[at] = before;
            tn_error_clear();
        }
        free(text);
    }
    tn_graph_drop(graph);
    tn_module_drop(module);
}
END_TEST

START_TEST(dead_code_goes_and_writes_stay)
{
    TN_SCOPE;
    tn_module *module = holder();
    tn_graph *graph = rich(module);
    tn_node *out = tn_graph_find(graph, "add");
    ck_ok(tn_graph_output(graph, &out, 1));
    /* layer_norm and sort are not needed; the chain of writes is kept, with what it reads */
    ck_assert_int_eq(tn_graph_dead_code(graph), 2);
    ck_assert_str_eq(names_of(graph), "x w add relu mul add_ copy_ mul_ output");
    ck_ok(tn_graph_lint(graph));
    ck_assert_int_eq(tn_node_writes(tn_graph_find(graph, "add_")), 4);
    ck_assert_int_eq(tn_node_writes(out), 0);
    tn_graph_drop(graph);
    tn_module_drop(module);
}
END_TEST

/* Counts the nodes, and computes something else for relu. */
static tn_status count_and_negate(void *user, tn_node *node, tn_tensor *const *in, int64_t n_in,
                                  tn_tensor **out, int64_t n_out)
{
    ++*(int *)user;
    if (strcmp(tn_node_target(node), "relu") == 0)
        return (out[0] = tn_neg(in[0])) != NULL ? TN_OK : tn_error_last_code();
    return tn_node_run(node, in, n_in, out, n_out);
}

/* Says that it computed the node, but leaves out the result. */
static tn_status forgets_the_result(void *user, tn_node *node, tn_tensor *const *in, int64_t n_in,
                                    tn_tensor **out, int64_t n_out)
{
    (void)user, (void)node, (void)in, (void)n_in, (void)out, (void)n_out;
    return TN_OK;
}

START_TEST(a_handler_takes_the_place_of_the_interpreter)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2), *out;
    tn_graph *graph = small(w);
    int count = 0;
    ck_ok(tn_graph_run_with(graph, &x, 1, &out, 1, count_and_negate, &count));
    ck_assert_int_eq(count, 3);
    ck_same(out, tn_mul(tn_neg(tn_add(x, w, 2.0)), x));
    ck_assert_int_ne(tn_graph_run_with(graph, &x, 1, &out, 1, forgets_the_result, NULL), TN_OK);
    ck_assert_msg(strstr(tn_error_text(), "node add: handler: out") != NULL, "%s", tn_error_text());
    ck_assert_ptr_null(out);
    tn_graph_drop(graph);
    TN_PROVES("FX-008");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_graph_prints_as_text_in_ssa_form,
                                   text_and_code_read_back_as_the_same_graph,
                                   numbers_keep_their_kind_in_text_and_code,
                                   constants_are_named_in_the_code_and_found_by_name,
                                   the_table_has_the_words_of_pytorch,
                                   graphviz_has_edges_and_other_forms_are_refused,
                                   json_has_nodes_with_their_types_and_users,
                                   wrong_texts_are_refused_with_the_line,
                                   a_text_that_is_cut_anywhere_is_refused,
                                   dead_code_goes_and_writes_stay,
                                   a_handler_takes_the_place_of_the_interpreter,
                                   NULL };
    return suite_run("graph_text", tests);
}
