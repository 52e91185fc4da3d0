/* SPDX-License-Identifier: MIT
 *
 * Scripts with operators of other plugins. This process never has them: another process, which
 * registers them, writes the scripts, and here their decompositions run and train. */
#include "tests/graph/traced.h"

#include <tenon/contrib.h>

#include <unistd.h>

static char folder[] = "/tmp/tenon-operators-XXXXXX";
static char program[512];

static const char *file(const char *name)
{
    static char paths[4][128];
    static int next;

    next = (next + 1) % 4;
    snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
    return paths[next];
}

/* ---- the operators, in the other process ----------------------------------------------------- */

struct swish {
    uint32_t size;
    double beta;
};

static const struct swish swish_defaults = { sizeof(struct swish), 1.0 };
static const tn_option swish_options[] = { TN_OPTION_FLOAT(struct swish, beta, "1.0", "slope"),
                                           TN_OPTION_END };

static tn_status like(tn_infer *infer)
{
    for (int32_t i = 0; i < infer->n_out; i++) {
        infer->out[i].dtype = tn_view_dtype(infer->in[0]);
        infer->out[i].ndim = infer->in[0]->ndim;
        for (int32_t d = 0; d < infer->in[0]->ndim; d++)
            infer->out[i].shape[d] = infer->in[0]->shape[d];
    }
    return TN_OK;
}

/* x sigmoid(beta x) */
static tn_status swish_decompose(const tn_decompose *call)
{
    const struct swish *o = call->options;
    tn_tensor *x = call->in[0];

    call->out[0] = tn_mul(x, tn_sigmoid(tn_mul_scalar(x, TN_SCALAR(o->beta))));
    return call->out[0] != NULL ? TN_OK : tn_error_last()->code;
}

/* swish(x, beta=2), and x */
static tn_status pair_decompose(const tn_decompose *call)
{
    struct swish two = { sizeof two, 2.0 };

    call->out[1] = call->in[0];
    return tn_op_call(tn_op_find("org.test.swish", 0), call->in, 1, &two, call->out, 1);
}

static tn_status line_infer(tn_infer *infer)
{
    infer->out[0].dtype = tn_view_dtype(infer->in[0]);
    infer->out[0].ndim = 1;
    infer->out[0].shape[0] = infer->in[0]->shape[0] * infer->in[0]->shape[1];
    return TN_OK;
}

/* The negated elements of a matrix, in one dimension. */
static tn_status line_decompose(const tn_decompose *call)
{
    tn_tensor *x = call->in[0];

    call->out[0] = tn_reshape(tn_neg(x), TN_SHAPE(tn_tensor_size(x, 0) * tn_tensor_size(x, 1)));
    return call->out[0] != NULL ? TN_OK : tn_error_last()->code;
}

static tn_status opaque_run(const tn_call *call)
{
    (void)call;
    return TN_OK;
}

static const tn_operand one_in[] = { { "x", 0, TN_MASK_FLOAT } };
static const tn_operand outs[] = { { "y", 0, 0 }, { "z", 0, 0 } };

static tn_op_def swish, swish_2, pair, line, opaque;
static const tn_kernel_def opaque_kernel = TN_KERNEL("org.test.opaque", "cpu", "opaque",
                                                     TN_BIT(TN_F32), opaque_run);

/* line(swish_(d + d)), where d = swish(a scale, beta=0.5) + b, and a, b = pair(x). */
static tn_tensor *net_forward(tn_module *self, tn_tensor *x)
{
    const tn_op *op = tn_op_find("org.test.swish", 1);
    struct swish half = { sizeof half, 0.5 };
    tn_tensor *both[2], *c, *d;

    if (tn_op_call(tn_op_find("org.test.pair", 0), &x, 1, NULL, both, 2) != TN_OK)
        return NULL;
    c = tn_mul(both[0], tn_module_get(self, "scale"));
    if (tn_op_call(op, &c, 1, &half, &both[0], 1) != TN_OK)
        return NULL;
    c = tn_add(both[0], both[1]);
    d = tn_add(c, c);
    if (tn_op_call_into(op, &d, 1, NULL, d) != TN_OK ||
        tn_op_call(tn_op_find("org.test.line", 0), &d, 1, NULL, &c, 1) != TN_OK)
        return NULL;
    return c;
}

static tn_tensor *opaque_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = NULL;

    (void)self;
    tn_op_call(tn_op_find("org.test.opaque", 0), &x, 1, NULL, &y, 1);
    return y;
}

static tn_module *net_with(tn_tensor *(*forward)(tn_module *, tn_tensor *))
{
    const float values[] = { 0.5f, -1.0f, 2.0f };
    tn_module *net = tn_module_plain("Net");

    tn_module_add_parameter(net, "scale",
                            tn_parameter(tn_tensor_from(values, TN_F32, TN_SHAPE(3)), true));
    tn_module_set_forward(net, forward, NULL, NULL);
    return net;
}

static tn_op_def op_of(const char *name, const char *math, tn_status (*infer)(tn_infer *),
                       tn_status (*decompose)(const tn_decompose *))
{
    return (tn_op_def){ TN_HEAD(tn_op_def), .name = name,     .math = math,          .help = "",
                        .revision = 1,      .inputs = one_in, .outputs = outs,       .n_inputs = 1,
                        .n_outputs = 1,     .infer = infer,   .decompose = decompose };
}

static void define_operators(void)
{
    swish = op_of("org.test.swish", "y = x sigmoid(beta x)", like, swish_decompose);
    swish.options = swish_options;
    swish.defaults = &swish_defaults;
    swish.options_size = sizeof(struct swish);
    swish.flags = TN_OP_INPLACE;
    swish_2 = swish;
    swish_2.revision = 2;
    pair = op_of("org.test.pair", "y = swish(x), z = x", like, pair_decompose);
    pair.n_outputs = 2;
    line = op_of("org.test.line", "y = -x", line_infer, line_decompose);
    opaque = op_of("org.test.opaque", "y = x", like, NULL);
}

static bool write_script(tn_module *net, const char *path, const char *dynamic)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_module *script;
    bool done;

    how.dynamic = dynamic;
    script = tn_module_script(net, numbers(-2), &how);
    done = script != NULL && tn_module_save(script, path) == TN_OK;
    if (script != NULL)
        tn_module_drop(script);
    return done;
}

/* Writes the scripts, and what the network computes. */
static int write_all(void)
{
    TN_SCOPE;
    tn_module *net = net_with(net_forward), *other = net_with(opaque_forward);
    tn_state *state = tn_state_new();
    tn_tensor *y = tn_module_call(net, numbers(-2));
    bool done = y != NULL && tn_backward(tn_sum(y)) == TN_OK &&
                tn_state_set(state, "y", y) == TN_OK &&
                tn_state_set(state, "g", tn_tensor_grad(tn_module_get(net, "scale"))) == TN_OK &&
                tn_state_save(state, file("values.safetensors")) == TN_OK &&
                write_script(net, file("fixed.script"), NULL) &&
                write_script(net, file("sizes.script"), "[N, 3]") &&
                write_script(other, file("opaque.script"), NULL);

    tn_state_drop(state);
    tn_module_drop(net);
    tn_module_drop(other);
    return done ? 0 : 4;
}

/* Loads a script, saves it again, and prints its graph. */
static int read_one(const char *from, const char *to)
{
    tn_module *script = tn_module_from_file(from);
    char text[4096];

    if (script == NULL || tn_module_save(script, to) != TN_OK ||
        tn_graph_print(tn_script_graph(script, false), "text", text, sizeof text) < 0)
        return 5;
    printf("%s", text);
    tn_module_drop(script);
    return 0;
}

static int child(char **argv)
{
    const char *revisions = argv[2];
    int code;

    snprintf(folder, sizeof folder, "%s", argv[3]);
    define_operators();
    if ((strchr(revisions, '1') != NULL && tn_register(&swish) != TN_OK) ||
        (strchr(revisions, '2') != NULL && tn_register(&swish_2) != TN_OK) ||
        tn_register(&pair) != TN_OK || tn_register(&line) != TN_OK ||
        tn_register(&opaque) != TN_OK || tn_register(&opaque_kernel) != TN_OK)
        code = 3;
    else
        code = argv[4] != NULL ? read_one(file(argv[4]), file("again.script")) : write_all();
    if (code != 0)
        fprintf(stderr, "%s\n", tn_error_text());
    return code;
}

/* Runs this program with the operators; `revisions` are those of swish. Returns what it prints. */
static const char *with_operators(const char *revisions, const char *script)
{
    static char text[8192];
    char command[1024];
    FILE *from;
    size_t length;

    snprintf(command, sizeof command, "%s child %s %s %s", program, revisions, folder, script);
    from = popen(command, "r");
    ck_assert_ptr_nonnull(from);
    length = fread(text, 1, sizeof text - 1, from);
    text[length] = '\0';
    ck_assert_int_eq(pclose(from), 0);
    return text;
}

static bool same_files(const char *a, const char *b)
{
    char command[512];

    snprintf(command, sizeof command, "cmp -s %s %s", a, b);
    return system(command) == 0;
}

/* ---- without the operators ------------------------------------------------------------------- */

static void check_text(tn_module *script)
{
    char *text = printed(tn_script_graph(script, false), "text");

    ck_assert_msg(strstr(text, "org.test") == NULL, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "sigmoid"));
    /* nodes of a decomposition are of the module that made the call */
    ck_assert_ptr_nonnull(strstr(text, "= sigmoid(%mul_scalar)  # (Net)"));
    free(text);
}

/* Saves a script twice, through a module that is loaded: same results, same bytes. */
static void check_saving(tn_module *script)
{
    tn_tensor *y = tn_module_call(script, numbers(-2));
    tn_module *again;

    ck_ok(tn_module_save(script, file("again.script")));
    again = tn_module_from_file(file("again.script"));
    ck_made(again);
    ck_same(tn_module_call(again, numbers(-2)), y);
    ck_ok(tn_module_save(again, file("third.script")));
    ck_assert(same_files(file("again.script"), file("third.script")));
    tn_module_drop(again);
}

/* Loads a script without the operators, runs it, and trains it. The caller drops it. */
static tn_module *check_script(const char *name, const tn_state *values)
{
    tn_module *script = tn_module_from_file(file(name));
    tn_tensor *y;

    ck_made(script);
    ck_assert_ptr_null(tn_op_find("org.test.swish", 0));
    tn_error_clear();
    check_text(script);
    y = tn_module_call(script, numbers(-2));
    ck_same(y, tn_state_get(values, "y"));
    ck_ok(tn_backward(tn_sum(y)));
    ck_assert_int_eq(tn_allclose(tn_tensor_grad(tn_module_get(script, "scale")),
                                 tn_state_get(values, "g"), 1e-6, 1e-6),
                     1);
    train_by("SGD(lr=0.01)", script, numbers(-2), 5);
    check_saving(script);
    return script;
}

START_TEST(decompositions_run_and_train_where_the_plugin_is_missing)
{
    TN_SCOPE;
    tn_module *fixed, *sizes;
    tn_state *values;
    tn_tensor *y, *more = tn_cat((tn_tensor *[]){ numbers(-2), numbers(-2) }, 2, 0);
    with_operators("1", "");
    values = tn_state_load(file("values.safetensors"));
    ck_made(values);
    fixed = check_script("fixed.script", values);
    ck_assert_ptr_null(tn_module_call(fixed, more));
    tn_error_clear();
    tn_module_drop(fixed);
    tn_module_drop(check_script("sizes.script", values));
    sizes = tn_module_from_file(file("sizes.script"));
    y = tn_module_call(sizes, more);
    ck_made(y);
    ck_assert_int_eq(tn_tensor_numel(y), 12);
    ck_same(tn_narrow(y, 0, 6, 6), tn_state_get(values, "y"));
    tn_module_drop(sizes);
    tn_state_drop(values);
}
END_TEST

START_TEST(the_operator_of_the_revision_is_used_if_there_is_one)
{
    const char *text;
    with_operators("1", "");
    text = with_operators("1", "fixed.script");
    ck_assert_ptr_nonnull(strstr(text, "= org.test.swish[beta=0.5](%"));
    ck_assert_ptr_nonnull(strstr(text, "= org.test.swish_[beta=1.0](%"));
    ck_assert(same_files(file("fixed.script"), file("again.script")));
    text = with_operators("12", "fixed.script");
    ck_assert_ptr_nonnull(strstr(text, "= org.test.swish@1[beta=0.5](%"));
    text = with_operators("2", "fixed.script");
    ck_assert_msg(strstr(text, "org.test.swish") == NULL, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "org.test.line("));
}
END_TEST

START_TEST(an_operator_without_a_decomposition_needs_its_plugin)
{
    with_operators("1", "");
    ck_assert_ptr_null(tn_module_from_file(file("opaque.script")));
    ck_error(TN_ERR_KEY, "operator \"org.test.opaque\": no plugin provides it",
             "expected plugin \"program\"");
}
END_TEST

/* ---- texts that are not trusted -------------------------------------------------------------- */

#define CALL                                                                                       \
    "graph(%self : Net, %x : float32[2, 3]):  # tenon.graph 1\n"                                   \
    "  %y : float32[2, 3] = org.a[by=2](%x)\n"                                                     \
    "  return (%y)\n"
#define KEY "org.a[by=2](float32[2, 3])"
/* The text of a decomposition: its inputs, and all of its lines or one statement. */
#define TEXT(inputs, lines) "graph(%self : A, " inputs "):  # tenon.graph 1\n" lines
#define BODY(statement) TEXT("%x : float32[2, 3]", statement "  return (%y)\n")

/* The state of a script: the revisions of org.a, org.b and sigmoid, and decompositions. `functions`
 * has their keys and texts, then NULL. */
static tn_state *operators_with(const char *const *functions)
{
    tn_state *state = tn_state_new();

    ck_ok(tn_state_set_value(state, "org.a", tn_value_int(1)));
    ck_ok(tn_state_set_value(state, "org.b", tn_value_int(3)));
    ck_ok(tn_state_set_value(state, "sigmoid", tn_value_int(2)));
    for (; *functions != NULL; functions += 2)
        ck_ok(tn_state_set_value(state, functions[0], tn_value_string(functions[1])));
    return state;
}

static tn_graph *parse_call(const tn_state *operators)
{
    return tn_graph_parse_with(CALL, NULL, NULL, operators);
}

static void refused(const char *const *functions, const char *part, const char *more)
{
    tn_state *state = operators_with(functions);
    tn_graph *graph = parse_call(state);

    ck_assert_ptr_null(graph);
    ck_error(tn_error_last()->code, part, more);
    tn_state_drop(state);
}

START_TEST(wrong_decompositions_are_refused)
{
    TN_SCOPE;
    static const char *const good[] = { KEY, BODY("  %y = relu(%x)\n"), NULL };
    static const struct {
        const char *functions[5], *part, *more;
    } wrong[] = {
        { { NULL }, "operator \"org.a\": no", "line 2" },
        { { "org.a[by=3](float32[2, 3])", BODY("  %y = relu(%x)\n") },
          "no plugin provides its revision 1",
          "for org.a[by=2](float32[2, 3])" },
        { { KEY, BODY("  %y = org.a[by=2](%x)\n") }, "decomposition \"" KEY, "org.a" },
        { { KEY, BODY("  %y = org.b(%x)\n"), "org.b(float32[2, 3])",
            BODY("  %y = org.a[by=2](%x)\n") },
          "decomposition \"" KEY,
          "org.b" },
        { { "sigmoid(float32[2, 3])", BODY("  %y = neg(%x)\n") },
          "is an operator of tenon.ops",
          "expected one of another plugin" },
        { { "org.c(float32[2, 3])", BODY("  %y = neg(%x)\n") }, "there is no revision", "org.c" },
        { { "(float32[2, 3])", BODY("  %y = neg(%x)\n") },
          "wrong form",
          "operator[options](types)" },
        { { KEY, TEXT("%x : float32[2, 3], %z : float32[3]", "  return (%x)\n") },
          "wrong number of inputs, got 2; expected 1",
          KEY },
        { { KEY, TEXT("%x : float32[6]", "  return (%x)\n") },
          "input x: wrong type, got float32[6]; expected float32[2, 3]",
          KEY },
        { { KEY, TEXT("%x : float32[2, 3]", "  return (%x, %x)\n") }, "no node \"y\"", "line 3" },
        { { KEY, BODY("  %y : float32[3] = sum[dims=(0,)](%x)\n") },
          "y: wrong type",
          "float32[3]" },
        { { KEY, BODY("  %y = prim::GetAttr[name=\"w\"](%self)\n") }, "not found among", "\"w\"" },
        { { KEY, BODY("  %y = prim::Constant[name=\"c0\"]()\n") }, "not found among", "\"c0\"" },
        { { KEY, "graph(%self : A, %x : float32[N, 3]):  # tenon.graph 1, N = 2 >= 1\n"
                 "  return (%x)\n" },
          "wrong sizes that vary",
          KEY },
        { { KEY, "graph(%self : A, %x : float32[2, 3]):  # tenon.graph 1, train\n"
                 "  return (%x)\n" },
          "expected results, and a graph for all modes",
          KEY },
        { { KEY, "graph(%self : A, %x : float32[2, 3]):  # tenon.graph 2\n  return (%x)\n" },
          "decomposition \"" KEY,
          "version" },
        { { KEY, "nonsense" }, "decomposition \"" KEY, "line 1" },
    };
    tn_state *state = operators_with(good);
    tn_graph *graph = parse_call(state);
    ck_made(graph);
    ck_same(run1(graph, numbers(-2)), tn_relu(numbers(-2)));
    tn_graph_drop(graph);
    tn_state_drop(state);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(wrong[i].functions, wrong[i].part, wrong[i].more);
}
END_TEST

/* Each function calls the one before it twice. */
START_TEST(decompositions_that_grow_are_refused)
{
    TN_SCOPE;
    tn_state *state = operators_with((const char *const[]){ NULL });
    char key[64], text[512], before[64] = "relu(%x)";
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "org.b[n=%d](float32[2, 3])", i);
        snprintf(text, sizeof text,
                 "graph(%%self : B, %%x : float32[2, 3]):  # tenon.graph 1\n"
                 "  %%z = %s\n  %%y = %s\n  return (%%y)\n",
                 before, before);
        ck_ok(tn_state_set_value(state, key, tn_value_string(text)));
        snprintf(before, sizeof before, "org.b[n=%d](%%x)", i);
    }
    ck_assert_ptr_null(parse_call(state));
    ck_error(TN_ERR_FORMAT, "too many nodes", "expected at most 262144");
    tn_state_drop(state);
}
END_TEST

/* A node of a decomposition is renamed if the text has a node with its name. Decompositions may
 * have blocks. */
START_TEST(names_of_the_text_come_first)
{
    TN_SCOPE;
    static const char *const functions[] = { "org.a(float32[2, 3])",
                                             BODY("  %mul = mul(%x, %x)\n"
                                                  "  %any = any(%mul)\n"
                                                  "  %y = prim::If(%any, %mul)\n"
                                                  "    block then(%m : float32[2, 3]):\n"
                                                  "      %mul = org.b(%m)\n"
                                                  "      return (%mul)\n"
                                                  "    block else(%m : float32[2, 3]):\n"
                                                  "      %neg = neg(%m)\n"
                                                  "      return (%neg)\n"),
                                             NULL };
    static const char *const inner[] = { "org.b(float32[2, 3])", BODY("  %y = relu(%x)\n"), NULL };
    tn_state *state = operators_with(inner);
    tn_graph *graph, *again;
    tn_tensor *x = numbers(-2);
    char *text;
    ck_ok(tn_state_set_value(state, functions[0], tn_value_string(functions[1])));
    graph = tn_graph_parse_with("def forward(self : Net, x : float32[2, 3]):  # tenon.graph 1\n"
                                "    any = org.a(x)  # sub (Part)\n"
                                "    mul = add(any, x)\n"
                                "    mul_1 = org.a(mul)\n"
                                "    return (mul_1, any)\n",
                                NULL, NULL, state);
    ck_made(graph);
    ck_ok(tn_graph_lint(graph));
    tn_tensor *out[2];
    ck_ok(tn_graph_run(graph, &x, 1, out, 2));
    ck_same(out[1], tn_mul(x, x));
    ck_same(out[0], tn_square(tn_add(out[1], x)));
    ck_made(tn_graph_find(graph, "mul_1"));
    ck_assert_str_eq(tn_node_path(tn_graph_find(graph, "any")), "sub");
    text = printed(graph, "text");
    again = tn_graph_parse(text, NULL, NULL);
    ck_made(again);
    free(text);
    tn_graph_drop(again);
    tn_graph_drop(graph);
    tn_state_drop(state);
}
END_TEST

/* A file that is changed anywhere is refused with a message or makes a module. */
START_TEST(damaged_files_do_no_harm)
{
    char bytes[1 << 14];
    FILE *at;
    size_t size;
    int refusals = 0;
    with_operators("1", "");
    at = fopen(file("sizes.script"), "rb");
    size = fread(bytes, 1, sizeof bytes, at);
    fclose(at);
    ck_assert_uint_lt(size, sizeof bytes);
    for (size_t i = 8; i < size; i += 5) {
        TN_SCOPE;
        tn_module *loaded;
        bytes[i] = (char)(bytes[i] ^ 8);
        at = fopen(file("bad.script"), "wb");
        fwrite(bytes, 1, size, at);
        fclose(at);
        loaded = tn_module_from_file(file("bad.script"));
        ck_assert(loaded != NULL || tn_error_text()[0] != '\0');
        refusals += loaded == NULL;
        if (loaded != NULL) {
            tn_module_call(loaded, numbers(0));
            tn_module_drop(loaded);
        }
        tn_error_clear();
        bytes[i] = (char)(bytes[i] ^ 8);
    }
    ck_assert_int_gt(refusals, 200);
}
END_TEST

static bool parse_with(void *user)
{
    tn_graph *graph = parse_call(user);

    tn_graph_drop(graph);
    return graph != NULL;
}

START_TEST(every_failed_allocation_is_reported)
{
    TN_SCOPE;
    static const char *const functions[] = { "org.b(float32[2, 3])", BODY("  %y = relu(%x)\n"), KEY,
                                             BODY("  %z = org.b(%x)\n  %y = neg(%z)\n"), NULL };
    tn_state *state = operators_with(functions);
    ck_assert(parse_with(state));
    ck_assert_int_gt(fail_each_allocation(parse_with, state), 30);
    tn_state_drop(state);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = { decompositions_run_and_train_where_the_plugin_is_missing,
                                   the_operator_of_the_revision_is_used_if_there_is_one,
                                   an_operator_without_a_decomposition_needs_its_plugin,
                                   wrong_decompositions_are_refused,
                                   decompositions_that_grow_are_refused,
                                   names_of_the_text_come_first,
                                   damaged_files_do_no_harm,
                                   every_failed_allocation_is_reported,
                                   NULL };
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    int failed;

    if (argc >= 4 && strcmp(argv[1], "child") == 0)
        return child(argv);
    if (length <= 0 || mkdtemp(folder) == NULL)
        return 1;
    failed = suite_run("script_operators", tests);
    for (int i = 0; i < 7; i++) {
        static const char *const names[] = { "bad.script",   "values.safetensors", "fixed.script",
                                             "sizes.script", "opaque.script",      "again.script",
                                             "third.script" };

        unlink(file(names[i]));
    }
    rmdir(folder);
    return failed;
}
