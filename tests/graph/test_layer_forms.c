/* SPDX-License-Identifier: MIT
 *
 * Every layer of the registry, below a module whose children, tensors, inputs and results have odd
 * names, through each form in which a module is printed or stored: text and code of its graph,
 * JSON, repr, spec, script, and its state in each format. What is read back has the same form,
 * names and numbers. */
#include "core/module/internal.h"
#include "tests/graph/conform_cases.h"
#include "tests/graph/json_skip.h"
#include "tests/io/registered_formats.h"

#include <unistd.h>

enum { OUTS = 16 };

/* Names that PyTorch accepts, too: all that are not empty and have no dot. */
static const char *const odd[] = {
    "a-b",
    "a b",
    "\xc3\xa9",
    "1",
    "it's",
    "\"q\"",
    "a\"b",
    "'",
    "(x)",
    "a, b = 3",
    "a\nb",
    "\\n",
    "None",
    "self",
    "b[0]",
    "x) -> (y",
    "# tenon",
    "x, N = 3 >= 1",
    "{0:2}",
    "0-2",
    "a=\tb",
    "%s",
    "3 x",
    "a: int",
    "//",
    "C:\\x",
    /* Inputs and results may have these names, too. */
    "a.b",
    ".",
    "a b.c",
    "1.5",
    "# tenon.graph 1, N = 3 >= 1",
};
enum { DOTTED = 5, ALL = sizeof odd / sizeof *odd, ODD = ALL - DOTTED };

static char folder[] = "/tmp/tenon-forms-XXXXXX";
static int turn; /* of the odd names; another one in each case */
static int cases, graphs, scripts, states, silent;

static const char *file(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Name number `i` of this case: 0 for the child, 1 for the parameter, then inputs and results. */
static const char *name_of(int64_t i)
{
    return odd[(turn + i) % (i < 2 ? ODD : ALL)];
}

/* ---- the module around a layer ----------------------------------------------------------------
 */

static bool has_gradients(const tn_tensor *x)
{
    return tn_tensor_dtype(x) == TN_F64 || tn_tensor_dtype(x) == TN_F32;
}

/* Calls the child with the inputs by position, and gives the results odd names. A parameter with an
 * odd name is added to the first result. */
static tn_status call(tn_module *self, const tn_pack *given, tn_pack *output)
{
    tn_pack *input = tn_pack_new(), *results = tn_pack_new();
    tn_status status = TN_OK;

    for (int64_t i = 0; i < tn_pack_count(given) && status == TN_OK; i++)
        status = tn_pack_add(input, NULL, tn_pack_at(given, i));
    if (status == TN_OK)
        status = tn_module_call_pack(tn_module_child(self, name_of(0)), input, results);
    for (int64_t i = 0; i < tn_pack_count(results) && status == TN_OK; i++) {
        tn_value value = tn_pack_at(results, i);

        if (value.kind == TN_VALUE_TENSOR && has_gradients(value.as.tensor))
            value = tn_value_tensor(tn_mul(value.as.tensor, tn_module_get(self, name_of(1))));
        status = tn_pack_add(output, name_of(2 + i), value);
    }
    tn_pack_drop(input);
    tn_pack_drop(results);
    return status;
}

static tn_module *hosting(tn_module *layer)
{
    tn_module *host = tn_module_plain("Host");

    ck_made(host);
    ck_ok(tn_module_add_child(host, name_of(0), layer));
    ck_ok(tn_module_add_parameter(
        host, name_of(1), tn_parameter(tn_tensor_full(TN_SCALAR_SHAPE, 1.5, TN_F64, NULL), true)));
    ck_ok(tn_module_set_call(host, call, NULL, NULL));
    return host;
}

static tn_pack *inputs(void)
{
    tn_pack *pack = tn_pack_new();

    for (int64_t i = 0; i < n_in; i++)
        ck_ok(tn_pack_add(pack, name_of(3 + i), tn_value_tensor(in[i])));
    return pack;
}

/* The tensors of a result, at any depth. */
static int64_t tensors_of(const tn_value *value, tn_tensor **out, int64_t at)
{
    if (value->kind == TN_VALUE_TENSOR && at < OUTS)
        out[at++] = value->as.tensor;
    if (value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE)
        for (uint32_t i = 0; i < value->count; i++)
            at = tensors_of(&value->as.list[i], out, at);
    return at;
}

static tn_pack *called(tn_module *module)
{
    tn_pack *given = inputs(), *results = tn_pack_new();

    tn_random_seed(7);
    ck_assert_msg(tn_module_call_pack(module, given, results) == TN_OK, "%s: %s", spec,
                  tn_error_last()->message);
    tn_pack_drop(given);
    return results;
}

/* A module that was read computes the same numbers under the same names. */
static void same_results(tn_module *module, const tn_pack *expected, const char *form)
{
    tn_pack *got = called(module);

    ck_assert_int_eq(tn_pack_count(got), tn_pack_count(expected));
    for (int64_t i = 0; i < tn_pack_count(got); i++) {
        tn_value a = tn_pack_at(got, i), b = tn_pack_at(expected, i);
        tn_tensor *x[OUTS], *y[OUTS];
        int64_t count = tensors_of(&a, x, 0);

        ck_assert_msg(strcmp(tn_pack_name(got, i), tn_pack_name(expected, i)) == 0,
                      "%s: %s: result %s is not %s", spec, form, tn_pack_name(got, i),
                      tn_pack_name(expected, i));
        ck_assert_int_eq(tensors_of(&b, y, 0), count);
        for (int64_t k = 0; k < count; k++)
            ck_same(tn_detach(x[k]), tn_detach(y[k]));
    }
    tn_pack_drop(got);
}

static void same_states(const tn_state *got, const tn_state *expected, const char *form)
{
    ck_assert_msg(tn_state_count(got) == tn_state_count(expected), "%s: %s: %d entries, not %d",
                  spec, form, (int)tn_state_count(got), (int)tn_state_count(expected));
    for (int64_t i = 0; i < tn_state_count(expected); i++) {
        const char *name = tn_state_name(expected, i);
        int64_t at = tn_state_find(got, name);

        ck_assert_msg(at >= 0, "%s: %s: lacks %s", spec, form, name);
        if (tn_state_value(expected, i).kind == TN_VALUE_TENSOR)
            ck_same(tn_state_tensor(got, at), tn_state_tensor(expected, i));
    }
}

/* ---- the forms --------------------------------------------------------------------------------
 */

/* The graph as JSON is valid, and has a string that begins as JSON has to write `text`. */
static void check_json(const tn_graph *graph, const char *text)
{
    char *json = printed(graph, "json"), wanted[256], *to = wanted;

    *to++ = '"';
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20)
            to += snprintf(to, 8, "\\u%04x", *at);
        else if (*at == '"' || *at == '\\')
            to += snprintf(to, 8, "\\%c", *at);
        else
            *to++ = *at;
    }
    *to = '\0';
    ck_assert_str_eq(json_space(json_value(json_space(json))), "");
    ck_assert_msg(strstr(json, wanted) != NULL, "%s: JSON lacks %s", spec, wanted);
    free(json);
}

static bool is_refusal(const char *message)
{
    return strstr(message, "while tracing") != NULL ||
           strstr(message, "cannot be recorded in a graph") != NULL ||
           (strstr(spec, "Range") != NULL && strstr(message, "computed tensor") != NULL);
}

/* Text and code of a graph read back as the same graph. */
static void check_graph(tn_module *host, uint32_t flags, const tn_pack *expected)
{
    static const char *const forms[] = { "text", "code" };
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_pack *given = inputs();
    tn_graph *graph;
    char *text;

    how.flags = flags;
    graph = tn_module_trace_pack(host, given, &how);
    tn_pack_drop(given);
    if (graph == NULL) { /* test_traced_layers has the list of those that cannot be traced */
        ck_assert_msg(is_refusal(tn_error_last()->message), "%s: %s", spec,
                      tn_error_last()->message);
        tn_error_clear();
        return;
    }
    text = printed(graph, "text");
    for (int i = 0; i < 2; i++) {
        char *form = printed(graph, forms[i]), *again;
        tn_state *constants = tn_graph_constants(graph);
        tn_graph *read = tn_graph_parse(form, host, constants);
        tn_module *made;

        ck_assert_msg(read != NULL, "%s: %s\n%s", spec, tn_error_last()->message, form);
        again = printed(read, "text");
        ck_assert_str_eq(again, text);
        made = tn_graph_module(read);
        ck_made(made);
        same_results(made, expected, forms[i]);
        tn_module_drop(made);
        tn_graph_drop(read);
        tn_state_drop(constants);
        free(again);
        free(form);
    }
    if (flags != TN_TRACE_THROUGH)
        check_json(graph, name_of(0));
    check_json(graph, name_of(1));
    tn_graph_drop(graph);
    free(text);
    graphs++;
}

typedef int64_t printer(tn_module *module, char *out, size_t size);

static char *text_of(tn_module *module, printer *print)
{
    int64_t size = print(module, NULL, 0);
    char *text = malloc((size_t)size + 1);

    ck_assert_int_ge(size, 0);
    print(module, text, (size_t)size + 1);
    return text;
}

/* A layer whose printed form has no options is read as a module that can be loaded and saved. A
 * call says what is missing. */
static void check_silent(tn_module *read)
{
    tn_pack *given = inputs(), *results = tn_pack_new();

    ck_assert_int_ne(tn_module_call_pack(read, given, results), TN_OK);
    ck_error(TN_ERR_NOT_IMPLEMENTED, read->type, "does not have the options of this layer");
    tn_pack_drop(given);
    tn_pack_drop(results);
    silent++;
}

/* The printed form is that of the module which is read from it, and that module takes the state. */
static void check_printed(tn_module *host, const tn_pack *expected, printer *print,
                          const char *form)
{
    char *text = text_of(host, print), *again;
    tn_module *read = tn_module_parse(text), *part;
    tn_state *state = tn_module_state(host), *got;
    const tn_layer_def *layer = tn_module_child(host, name_of(0))->layer;

    ck_assert_msg(read != NULL, "%s: %s: %s\n%s", spec, form, tn_error_last()->message, text);
    again = text_of(read, print);
    ck_assert_msg(strcmp(again, text) == 0, "%s: %s:\n%s\nreads back as\n%s", spec, form, text,
                  again);
    ck_ok(tn_module_to(read, NULL, TN_F64));
    ck_assert_msg(tn_module_load_state(read, state, true) == TN_OK, "%s: %s: %s", spec, form,
                  tn_error_last()->message);
    got = tn_module_state(read);
    same_states(got, state, form);
    part = tn_module_child(read, name_of(0));
    ck_made(part);
    ck_assert_int_eq(tn_module_child_count(read), 1);
    if (print == tn_module_spec) {
        ck_assert_ptr_eq(part->layer, layer);
        ck_ok(tn_module_eval(read));
        ck_ok(tn_module_set_call(read, call, NULL, NULL));
        same_results(read, expected, form);
    } else if (layer->printed == NULL && part->layer != layer) {
        check_silent(part);
    }
    tn_state_drop(got);
    tn_state_drop(state);
    tn_module_drop(read);
    free(text);
    free(again);
}

static void check_script(tn_module *host, const tn_pack *expected)
{
    tn_pack *given = inputs();
    tn_module *script = tn_module_script_pack(host, given, NULL), *read;
    tn_state *before, *after;

    tn_pack_drop(given);
    if (script == NULL) {
        ck_assert_msg(only_eval || is_refusal(tn_error_last()->message), "%s: %s", spec,
                      tn_error_last()->message);
        tn_error_clear();
        return;
    }
    ck_assert_msg(tn_module_save(script, file("net.script")) == TN_OK, "%s: %s", spec,
                  tn_error_last()->message);
    read = tn_module_from_file(file("net.script"));
    ck_assert_msg(read != NULL, "%s: %s", spec, tn_error_last()->message);
    same_results(read, expected, "script");
    before = tn_module_state(host);
    after = tn_module_state(read);
    same_states(after, before, "state of the script");
    tn_state_drop(before);
    tn_state_drop(after);
    tn_module_drop(script);
    tn_module_drop(read);
    scripts++;
}

/* The state in each format that can hold any state: npy holds one tensor. */
static void check_state(tn_module *host)
{
    tn_state *state = tn_module_state(host), *read;

    for (int i = 0, count = saving_count(); i < count; i++) {
        const char *path = file(saving_paths[i]);
        if (strcmp(saving_paths[i], "w.npy") == 0)
            continue;
        ck_assert_msg(save_as(state, path) == TN_OK, "%s: %s: %s", spec, path,
                      tn_error_last()->message);
        read = tn_state_load(path);
        ck_assert_msg(read != NULL, "%s: %s: %s", spec, path, tn_error_last()->message);
        same_states(read, state, path);
        tn_state_drop(read);
        states++;
    }
    tn_state_drop(state);
}

/* The printed form of a module reads back from inside of another one. */
static void reads_back(tn_module *module, printer *print)
{
    tn_module *host = tn_module_plain("Host"), *read;
    char *text, *again;

    ck_ok(tn_module_add_child(host, "a b", module));
    text = text_of(host, print);
    read = tn_module_parse(text);
    ck_assert_msg(read != NULL, "%s: %s\n%s", spec, tn_error_last()->message, text);
    again = text_of(read, print);
    ck_assert_msg(strcmp(again, text) == 0, "%s:\n%s\nreads back as\n%s", spec, text, again);
    free(text);
    free(again);
    tn_module_drop(read);
    tn_module_drop(host);
}

/* A container is not called: entries with odd names, if it has names, or two entries. */
static void check_container(const tn_layer_def *layer)
{
    tn_module *module = tn_module_new("%s()", layer->name), *child = tn_module_new("Linear(2, 2)");
    tn_tensor *parameter = tn_parameter(numbers(1), true);
    bool named = (layer->flags & TN_LAYER_DICT) != 0;

    ck_made(module);
    snprintf(spec, sizeof spec, "%s()", layer->name);
    for (int i = 0; i < (named ? ODD : 2); i++) {
        char number[8];
        const char *name = named ? odd[i] : number;
        snprintf(number, sizeof number, "%d", i);
        ck_ok((layer->flags & TN_LAYER_PARAMETERS) != 0
                  ? tn_module_add_parameter(module, name, parameter)
                  : tn_module_add_child(module, name, child));
    }
    reads_back(module, tn_module_spec);
    reads_back(module, tn_module_repr);
    tn_module_drop(child);
    tn_module_drop(module);
    spec[0] = '\0';
}

/* ---- the cases --------------------------------------------------------------------------------
 */

static void check_forms(tn_module *layer)
{
    TN_SCOPE;
    tn_module *host = hosting(layer);
    tn_pack *expected;

    ck_ok(tn_module_to(host, NULL, TN_F64));
    ck_ok(tn_module_eval(host));
    tn_pack_drop(called(host)); /* lazy layers get their shapes */
    expected = called(host);
    check_graph(host, 0, expected);
    check_graph(host, TN_TRACE_THROUGH, expected);
    check_printed(host, expected, tn_module_repr, "repr");
    check_printed(host, expected, tn_module_spec, "spec");
    check_script(host, expected);
    check_state(host);
    tn_pack_drop(expected);
    tn_module_drop(host);
    turn++;
    cases++;
}

/* The layers of the registry that have had a case. */
static bool *had;

static void check_case(void)
{
    size_t length = strcspn(spec, "(");
    tn_module *layer;

    tn_random_seed(1);
    layer = tn_module_parse(spec);
    ck_assert_msg(layer != NULL, "%s: %s", spec, tn_error_last()->message);
    for (int64_t i = 0; i < tn_registry_count(TN_KIND_tn_layer_def); i++) {
        const char *name = tn_registry_name(TN_KIND_tn_layer_def, i);
        had[i] = had[i] || (strlen(name) == length && strncmp(name, spec, length) == 0);
    }
    check_forms(layer);
    tn_module_drop(layer);
}

START_TEST(every_layer_with_odd_names_reads_back_from_every_form)
{
    int64_t count;

    ck_ok(tn__plugins_discover());
    count = tn_registry_count(TN_KIND_tn_layer_def);
    had = calloc((size_t)count, sizeof *had);
    each_conform_case("layers.txt", check_case);
    each_conform_case("models.txt", check_case);
    for (int64_t i = 0; i < count; i++) {
        TN_SCOPE;
        char text[] = "f64 2,3 g";
        const char *name = tn_registry_name(TN_KIND_tn_layer_def, i);
        const tn_layer_def *layer = (const void *)tn_registry_find(TN_KIND_tn_layer_def, name);
        ck_made(layer);
        if (!had[i] && (layer->flags & (TN_LAYER_LIST | TN_LAYER_DICT)) != 0) {
            check_container(layer);
            continue;
        }
        if (had[i])
            continue;
        snprintf(spec, sizeof spec, "%s()", name);
        read_input(text);
        end_case(check_case);
    }
    free(had);
    printf("%d cases of %d layers: %d graphs, %d scripts, %d files of states, %d printed without "
           "options\n",
           cases, (int)count, graphs, scripts, states, silent);
    ck_assert_int_gt(cases, ODD * 8);
    ck_assert_int_gt(scripts, cases / 2);
}
END_TEST

/* Each name as that of a child, a parameter, an input and a result. */
START_TEST(every_odd_name_reads_back_in_every_place)
{
    for (int i = 0; i < ALL; i++) {
        TN_SCOPE;
        char text[] = "f64 2,3 g";
        tn_module *layer = tn_module_new("Linear(3, 3)");
        turn = i;
        snprintf(spec, sizeof spec, "Linear(3, 3) below %s", odd[i]);
        read_input(text);
        check_forms(layer);
        tn_tensor_drop(in[0]);
        n_in = 0;
        tn_module_drop(layer);
    }
}
END_TEST

/* The file has each option of each layer at its limits, as PyTorch takes it. */
START_TEST(every_option_reads_back_from_spec_and_repr)
{
    static char line[LINE];
    char path[TEST_PATH];
    int read = 0;
    FILE *file;

    source_path(path, "tests/oracle/layer_options.txt");
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        TN_SCOPE;
        const char *at = strstr(line, " : ");
        tn_module *module;
        if (strncmp(line, "try ", 4) != 0 || at == NULL || strstr(line, " taken ") == NULL)
            continue;
        snprintf(spec, sizeof spec, "%.*s", (int)strcspn(at + 3, "\n"), at + 3);
        /* PyTorch prints these with a first argument, 0, which they do not take. */
        if (strncmp(spec, "Lazy", 4) == 0 && strncmp(spec, "LazyLinear", 10) != 0)
            continue;
        module = tn_module_parse(spec);
        if (module == NULL) { /* tests/module/test_layer_options.c says why */
            tn_error_clear();
            continue;
        }
        reads_back(module, tn_module_spec);
        reads_back(module, tn_module_repr);
        tn_module_drop(module);
        read++;
    }
    fclose(file);
    ck_assert_int_gt(read, 400);
}
END_TEST

/* What PyTorch prints, though it is no option that may be chosen. */
START_TEST(a_printed_word_that_does_not_fit_is_refused)
{
    static const char *const specs[] = { "UpsamplingNearest2d(scale_factor=2, mode='bilinear')",
                                         "UpsamplingBilinear2d(scale_factor=2, mode='nearest')",
                                         "LinearCrossEntropyLoss(4, 5, options=3)" };
    static const char *const words[] = { "mode: wrong value, got \"bilinear\"",
                                         "mode: wrong value, got \"nearest\"",
                                         "options: not supported, got int; expected None" };

    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(tn_module_parse(specs[i]));
        ck_assert_msg(strstr(tn_error_last()->message, words[i]) != NULL, "%s",
                      tn_error_last()->message);
        tn_error_clear();
    }
}
END_TEST

START_TEST(names_that_are_empty_or_have_dots_are_refused)
{
    static const char *const wrong[] = { "", "a.b", "." };
    tn_module *module = tn_module_plain("Host"), *child = tn_module_new("ReLU()");

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        TN_SCOPE;
        tn_tensor *tensor = tn_parameter(numbers(1), true);
        ck_assert_int_eq(tn_module_add_child(module, wrong[i], child), TN_ERR_KEY);
        ck_assert_int_eq(tn_module_add_parameter(module, wrong[i], tensor), TN_ERR_KEY);
        tn_error_clear();
    }
    tn_module_drop(child);
    tn_module_drop(module);
}
END_TEST

static void remove_folder(void)
{
    DIR *dir = opendir(folder);

    for (const struct dirent *at; (at = readdir(dir)) != NULL;)
        unlink(file(at->d_name));
    closedir(dir);
    rmdir(folder);
}

int main(void)
{
    const TTest *const tests[] = { every_layer_with_odd_names_reads_back_from_every_form,
                                   every_odd_name_reads_back_in_every_place,
                                   every_option_reads_back_from_spec_and_repr,
                                   a_printed_word_that_does_not_fit_is_refused,
                                   names_that_are_empty_or_have_dots_are_refused,
                                   NULL };
    int code;

    if (mkdtemp(folder) == NULL)
        return EXIT_FAILURE;
    code = suite_run("layer_forms", tests);
    remove_folder();
    return code;
}
