/* SPDX-License-Identifier: MIT
 *
 * Files of scripts: what was saved is loaded to the bit, trained further and saved again with the
 * same bytes; damaged and wrong files are refused. tests/tools/script.sh loads one in a process
 * without the plugin of the layers. */
#include "tests/graph/suite.h"
#include "tests/graph/traced.h"
#include "tests/spec/proves.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/tenon-script-XXXXXX";

static const char *file(const char *name)
{
    static char paths[4][128];
    static int next;

    next = (next + 1) % 4;
    snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
    return paths[next];
}

static char *slurp(const char *path, size_t *size)
{
    FILE *from = fopen(path, "rb");
    char *bytes = malloc(1 << 20);

    ck_assert_msg(from != NULL, "%s", path);
    *size = fread(bytes, 1, 1 << 20, from);
    fclose(from);
    return bytes;
}

static void spill(const char *path, const char *bytes, size_t size)
{
    FILE *to = fopen(path, "wb");

    ck_assert_ptr_nonnull(to);
    ck_assert_uint_eq(fwrite(bytes, 1, size, to), size);
    fclose(to);
}

static void same_files(const char *a, const char *b)
{
    size_t n = 0, m = 0;
    char *x = slurp(a, &n), *y = slurp(b, &m);

    ck_assert_uint_eq(n, m);
    ck_assert_int_eq(memcmp(x, y, n), 0);
    free(x);
    free(y);
}

/* Saves a script, and loads it. */
static tn_module *saved(tn_module *script)
{
    tn_module *loaded;

    ck_ok(tn_module_save(script, file("net.script")));
    loaded = tn_module_from_file(file("net.script"));
    ck_made(loaded);
    ck_ok(tn_module_save(loaded, file("again.script")));
    same_files(file("net.script"), file("again.script"));
    return loaded;
}

static tn_module *scripted(tn_module *net, tn_tensor *x)
{
    tn_module *script = script_of(net, x), *loaded = saved(script);

    tn_module_drop(script);
    return loaded;
}

START_TEST(a_loaded_script_computes_and_trains_as_the_module)
{
    static const char *const nets[] = {
        "Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(), Dropout(0.25), Flatten(), "
        "Linear(288, 4))",
        "Sequential(Conv2d(3, 4, 3, groups=1, padding='same', bias=False), GroupNorm(2, 4), "
        "GELU(), "
        "MaxPool2d(2), Flatten(), Linear(64, 3), Softmax(dim=1))",
    };
    for (int i = 0; i < 2; i++) {
        TN_SCOPE;
        tn_random_seed(5);
        tn_module *net = tn_module_new(nets[i]), *loaded;
        tn_tensor *x = tn_randn(TN_SHAPE(2, 3, 8, 8));
        ck_made(net);
        loaded = scripted(net, x);
        ck_assert(tn_module_is_training(loaded));
        same_states_in_order(loaded, net);
        train_by("AdamW(lr=0.01)", net, x, 10);
        train_by("AdamW(lr=0.01)", loaded, x, 10);
        same_states_in_order(loaded, net);
        ck_ok(tn_module_eval(net));
        ck_ok(tn_module_eval(loaded));
        ck_same(tn_module_call(loaded, x), tn_module_call(net, x));
        tn_module_drop(loaded);
        loaded = scripted(net, x); /* in evaluation mode now */
        ck_assert(!tn_module_is_training(loaded));
        ck_same(tn_module_call(loaded, x), tn_module_call(net, x));
        tn_module_drop(loaded);
        tn_module_drop(net);
    }
    TN_PROVES("SCR-019", "SCR-020");
}
END_TEST

/* Calls a module with the same tensor several times. Returns result `index`. */
static tn_tensor *call_with(tn_module *module, tn_tensor *x, int times, int64_t index)
{
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_tensor *result;

    for (int i = 0; i < times; i++)
        ck_ok(tn_pack_add(in, NULL, tn_value_tensor(x)));
    ck_ok(tn_module_call_pack(module, in, out));
    result = tn_pack_at(out, index).as.tensor;
    ck_assert_int_eq(tn_pack_at(out, index).kind, TN_VALUE_TENSOR);
    tn_tensor_to_scope(tn_tensor_keep(result));
    tn_pack_drop(in);
    tn_pack_drop(out);
    return result;
}

START_TEST(packs_keep_their_form)
{
    static const struct {
        const char *net;
        int inputs;
    } cases[] = { { "LSTM(4, 5, batch_first=True)", 1 }, { "MultiheadAttention(4, 2)", 3 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TN_SCOPE;
        tn_random_seed(6);
        tn_module *net = tn_module_new(cases[i].net), *script, *loaded;
        tn_tensor *x = tn_randn(TN_SHAPE(2, 3, 4));
        tn_pack *in = tn_pack_new();
        ck_made(net);
        for (int k = 0; k < cases[i].inputs; k++)
            ck_ok(tn_pack_add(in, NULL, tn_value_tensor(x)));
        script = tn_module_script_pack(net, in, NULL);
        ck_made(script);
        loaded = saved(script);
        same_states_in_order(loaded, net);
        ck_same(call_with(loaded, x, cases[i].inputs, 0), call_with(net, x, cases[i].inputs, 0));
        ck_ok(tn_module_eval(net));
        ck_ok(tn_module_eval(loaded));
        ck_same(call_with(loaded, x, cases[i].inputs, 0), call_with(net, x, cases[i].inputs, 0));
        tn_pack_drop(in);
        tn_module_drop(loaded);
        tn_module_drop(script);
        tn_module_drop(net);
    }
}
END_TEST

START_TEST(parameters_keep_their_order_kind_and_gradients)
{
    TN_SCOPE;
    tn_module *net = tn_module_plain("Net"), *fc = tn_module_new("Linear(3, 3)"), *loaded;
    tn_tensor *w = tn_parameter(numbers(1), false);
    tn_state *state;
    ck_ok(tn_module_add_parameter(net, "scale", tn_parameter(numbers(1), true)));
    ck_ok(tn_module_add_parameter(net, "frozen", w));
    ck_ok(tn_module_add_parameter(net, "a", tn_parameter(numbers(4), true)));
    ck_ok(tn_module_add_buffer(net, "mean", numbers(2), 0));
    ck_ok(tn_module_add_buffer(net, "cache", numbers(3), TN_SLOT_FLAG_NOT_PERSISTENT));
    ck_ok(tn_module_add_child(net, "fc", fc));
    ck_ok(tn_module_set_forward(net, mixed_forward, NULL, NULL));
    loaded = scripted(net, numbers(0));
    same_states_in_order(loaded, net);
    ck_assert(!tn_tensor_requires_grad(tn_module_find_parameter(loaded, "frozen")));
    ck_assert(tn_tensor_requires_grad(tn_module_find_parameter(loaded, "scale")));
    ck_same(tn_module_find_parameter(loaded, "a"), numbers(4)); /* not in the graph */
    TN_PROVES("SCR-016");
    /* a buffer that is not in the state is in the file */
    ck_same(tn_module_find_buffer(loaded, "cache"), numbers(3));
    state = tn_module_state(loaded);
    ck_assert_int_lt(tn_state_find(state, "cache"), 0);
    ck_assert_int_ge(tn_state_find(state, "mean"), 0);
    tn_state_drop(state);
    TN_PROVES("SCR-009");
    ck_same(tn_module_call(loaded, numbers(5)), tn_module_call(net, numbers(5)));
    tn_module_drop(loaded);
    tn_module_drop(fc);
    tn_module_drop(net);
}
END_TEST

static tn_tensor *tied_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_module_call_child(self, "again", tn_module_call_child(self, "fc", x));
    return tn_add(tn_mul(y, tn_module_get(self, "row")), tn_module_get(self, "all"));
}

START_TEST(shared_tensors_stay_shared)
{
    TN_SCOPE;
    tn_module *net = tn_module_plain("Tied"), *fc = tn_module_new("Linear(3, 3)");
    tn_module *other = tn_module_new("Linear(3, 3)"), *loaded;
    tn_tensor *all = numbers(1), *row;
    tn_state *state;
    row = tn_tensor_as_strided(all, TN_SHAPE(3), TN_SHAPE(1), 3);
    ck_ok(tn_module_set(other, "weight", tn_module_get(fc, "weight")));
    ck_ok(tn_module_add_child(net, "fc", fc));
    ck_ok(tn_module_add_child(net, "again", fc));
    ck_ok(tn_module_add_child(net, "other", other));
    ck_ok(tn_module_add_buffer(net, "all", all, 0));
    ck_ok(tn_module_add_buffer(net, "row", row, 0));
    ck_ok(tn_module_add_buffer(
        net, "turned", tn_tensor_as_strided(numbers(7), TN_SHAPE(3, 2), TN_SHAPE(1, 3), 0), 0));
    ck_ok(tn_module_add_buffer(net, "turned_too", tn_detach(tn_module_get(net, "turned")), 0));
    ck_ok(tn_module_set_forward(net, tied_forward, NULL, NULL));
    loaded = scripted(net, numbers(0));
    same_states_in_order(loaded, net);
    ck_assert_ptr_eq(tn_module_child(loaded, "fc"), tn_module_child(loaded, "again"));
    ck_assert_ptr_eq(tn_module_find_tensor(loaded, "fc.weight"),
                     tn_module_find_tensor(loaded, "other.weight"));
    ck_assert(tn_tensor_shares_storage(tn_module_get(loaded, "all"), tn_module_get(loaded, "row")));
    ck_assert_int_eq(tn_tensor_strides(tn_module_get(loaded, "turned")).at[1], 3);
    ck_assert(tn_tensor_shares_storage(tn_module_get(loaded, "turned"),
                                       tn_module_get(loaded, "turned_too")));
    ck_same(tn_module_call(loaded, numbers(5)), tn_module_call(net, numbers(5)));
    state = tn_state_load(
        file("net.script")); /* shared weights and shared memory are stored once */
    ck_made(state);
    ck_assert_int_eq(tn_state_count(state), 5);
    ck_same(tn_state_get(state, "fc.weight"), tn_module_get(fc, "weight"));
    TN_PROVES("SCR-015");
    tn_state_drop(state);
    tn_module_drop(loaded);
    tn_module_drop(other);
    tn_module_drop(fc);
    tn_module_drop(net);
}
END_TEST

static tn_tensor *constant_forward(tn_module *self, tn_tensor *x)
{
    return tn_mul(tn_module_call_child(self, "fc", x), numbers(3));
}

START_TEST(the_file_has_everything_and_other_files)
{
    TN_SCOPE;
    tn_module *net = own(constant_forward), *script = script_of(net, numbers(0)), *loaded;
    tn_state *files = tn_script_files(script), *state;
    tn_value value;
    const char bytes[] = { 1, 0, 2 };
    ck_made(files);
    ck_ok(tn_state_set_value(files, "notes.txt", tn_value_string("trained on \xc3\xa9t\xc3\xa9")));
    ck_ok(tn_state_set_value(files, "raw", tn_value_bytes(bytes, 3)));
    ck_ok(tn_state_set_value(files, "none", tn_value_bytes(bytes, 0)));
    loaded = saved(script);
    files = tn_script_files(loaded);
    ck_assert_int_eq(tn_state_count(files), 3);
    value = tn_state_value(files, 0);
    ck_assert_int_eq(value.kind, TN_VALUE_STRING);
    ck_assert_str_eq(value.as.s, "trained on \xc3\xa9t\xc3\xa9");
    value = tn_state_value(files, 1);
    ck_assert_int_eq(value.kind, TN_VALUE_BYTES);
    ck_assert_uint_eq(value.count, 3);
    ck_assert_int_eq(memcmp(value.as.s, bytes, 3), 0);
    ck_assert_uint_eq(tn_state_value(files, 2).count, 0);
    ck_same(tn_module_call(loaded, numbers(5)), tn_module_call(net, numbers(5)));
    state = tn_state_load(file("net.script"));
    ck_made(state);
    ck_assert_ptr_nonnull(strstr(tn_state_meta(state, "tenon.script"), "{\"version\":1,"));
    ck_assert_ptr_nonnull(strstr(tn_state_meta(state, "tenon.graph"), "linear"));
    ck_assert_ptr_nonnull(
        strstr(tn_state_meta(state, "tenon.requires"), "\"linear\":[1,\"tenon.ops\"]"));
    ck_made(tn_state_get(state, "scale"));
    ck_made(tn_state_get(state, "fc.weight"));
    ck_made(tn_state_get(state, "_constants.c0"));
    ck_made(tn_state_get(state, "_files/raw"));
    TN_PROVES("SCR-014");
    ck_ok(tn_state_set_value(files, "number", tn_value_int(3)));
    ck_assert_int_ne(tn_module_save(loaded, file("net.script")), TN_OK);
    ck_error(TN_ERR_TYPE, "file \"number\": wrong kind", "expected a string or bytes");
    tn_state_drop(state);
    tn_module_drop(loaded);
    tn_module_drop(script);
    tn_module_drop(net);
}
END_TEST

static tn_status pass_on(void *user, tn_module *module, const tn_pack *input, const tn_pack *output,
                         tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)user, (void)module, (void)input, (void)output, (void)replacement, (void)outcome;
    return TN_OK;
}

START_TEST(what_a_file_cannot_hold_is_refused)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), ReLU())"), *script;
    tn_state *state;
    ck_assert_int_ne(tn_module_save(net, file("eager.script")), TN_OK);
    ck_error(TN_ERR_TYPE, "eager.script: ", "got Sequential; expected a script (tn_module_script)");
    ck_assert_int_ne(access(file("eager.script"), F_OK), 0);
    script = script_of(net, numbers(0));
    ck_assert(tn_module_hook_forward(tn_module_child(script, "1"), pass_on, 0, NULL, NULL) != 0);
    ck_assert_int_ne(tn_module_save(script, file("hooked.script")), TN_OK);
    ck_error(TN_ERR_REFUSED, "module \"1\" has hooks", "tn_module_unhook");
    tn_module_unhook(tn_module_child(script, "1"));
    ck_ok(tn_module_save(script, file("hooked.script")));
    TN_PROVES("SCR-021");
    state = tn_module_state(net);
    ck_assert_int_ne(tn_state_save(state, file("state.script")), TN_OK);
    ck_error(TN_ERR_NOT_IMPLEMENTED, "state.script", "stores modules, not states");
    /* in another format, the weights alone */
    ck_ok(tn_module_save(script, file("weights.safetensors")));
    ck_assert_ptr_null(tn_module_from_file(file("weights.safetensors")));
    ck_error(TN_ERR_FORMAT, "stores a state, not a module", "safetensors");
    tn_state_drop(state);
    tn_module_drop(script);
    tn_module_drop(net);
}
END_TEST

/* Replaces a text of the file by one of the same length. */
static void edit(const char *path, const char *from, const char *to)
{
    size_t size, length = strlen(from);
    char *bytes = slurp(file("net.script"), &size);
    bool found = false;

    ck_assert_uint_eq(length, strlen(to));
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(bytes + i, from, length) == 0) {
            memcpy(bytes + i, to, length);
            found = true;
        }
    ck_assert_msg(found, "%s is not in the file", from);
    spill(path, bytes, size);
    free(bytes);
}

#define refused(code, from, to, part, more)                                                        \
    do {                                                                                           \
        edit(file("bad.script"), from, to);                                                        \
        ck_assert_ptr_null(tn_module_from_file(file("bad.script")));                               \
        ck_error(code, part, more);                                                                \
    } while (0)

START_TEST(wrong_files_are_refused_by_name)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), ReLU())"), *script;
    script = script_of(net, numbers(0));
    ck_ok(tn_module_save(script, file("net.script")));
    ck_assert_ptr_null(tn_module_from_file(file("absent.script")));
    ck_error(TN_ERR_IO, "absent.script", "No such file");
    ck_assert_int_eq(mkdir(file("empty"), 0777), 0);
    ck_assert_ptr_null(tn_module_from_file(file("empty")));
    ck_error(TN_ERR_IO, "empty: ", "this folder has no file of tensors");
    ck_assert_int_eq(rmdir(file("empty")), 0);
    TN_PROVES("SCR-017");
    refused(TN_ERR_VERSION, "{\\\"version\\\":1,", "{\\\"version\\\":9,", "version: newer",
            "got 9; expected 1");
    refused(TN_ERR_KEY, "\\\"relu\\\":[", "\\\"rely\\\":[",
            "operator \"rely\": no plugin provides it", "expected plugin \"tenon.ops\" 0.1");
    refused(TN_ERR_VERSION, "\\\"relu\\\":[1,", "\\\"relu\\\":[7,",
            "operator \"relu\": wrong revision", "expected 7, of plugin \"tenon.ops\"");
    refused(TN_ERR_VERSION, "# tenon.graph 1", "# tenon.graph 4", "tenon.graph",
            "got 4; expected 1");
    refused(TN_ERR_NOT_IMPLEMENTED, "= relu(", "= rely(", "script: tenon.graph: ", "rely");
    refused(TN_ERR_FORMAT, "\\\"modules\\\":", "\\\"modulos\\\":", "script: tenon.script",
            "modulos");
    refused(TN_ERR_FORMAT, "\\\"slots\\\":", "\\\"slits\\\":", "script: tenon.script", "slits");
    refused(TN_ERR_FORMAT, "[\\\"1\\\",\\\"ReLU", "[\\\"0\\\",\\\"ReLU", "module \"0\"",
            "given twice; expected once");
    refused(TN_ERR_ATTR, "[\\\"1\\\",\\\"ReLU\\\"]", "[\\\"9.1\\\",\\\"Re\\\"]", "module \"9.1\"",
            "bad.script");
    TN_PROVES("PLG-006");
    tn_module_drop(script);
    tn_module_drop(net);
}
END_TEST

/* A file that is cut or changed anywhere is refused with a message or makes a module that can be
 * called and saved. */
START_TEST(damaged_files_do_no_harm)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 2), Dropout())"), *script;
    size_t size;
    char *bytes;
    int refusals = 0;
    script = script_of(net, numbers(0));
    ck_ok(tn_module_save(script, file("net.script")));
    bytes = slurp(file("net.script"), &size);
    for (size_t cut = 0; cut < size; cut += 7) {
        spill(file("bad.script"), bytes, cut);
        ck_assert_ptr_null(tn_module_from_file(file("bad.script")));
        ck_assert(tn_error_text()[0] != '\0');
        tn_error_clear();
    }
    for (size_t at = 0; at < size; at += 3)
        for (int bit = 1; bit < 256; bit *= 8) {
            TN_SCOPE;
            tn_module *loaded;
            bytes[at] = (char)(bytes[at] ^ bit);
            spill(file("bad.script"), bytes, size);
            loaded = tn_module_from_file(file("bad.script"));
            if (loaded != NULL) {
                tn_module_call(loaded, numbers(0));
                tn_module_save(loaded, file("again.script"));
                tn_module_drop(loaded);
            } else {
                ck_assert(tn_error_text()[0] != '\0');
                refusals++;
            }
            tn_error_clear();
            bytes[at] = (char)(bytes[at] ^ bit);
        }
    ck_assert_int_gt(refusals, 200);
    TN_PROVES("SCR-018");
    free(bytes);
    tn_module_drop(script);
    tn_module_drop(net);
}
END_TEST

static bool save_and_load(void *user)
{
    TN_SCOPE;
    tn_module *loaded = NULL;
    bool well = tn_module_save(user, file("memory.script")) == TN_OK &&
                (loaded = tn_module_from_file(file("memory.script"))) != NULL;

    if (loaded != NULL)
        tn_module_drop(loaded);
    return well;
}

START_TEST(every_failed_allocation_is_reported)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 2), Dropout())"), *script;
    script = script_of(net, numbers(0));
    ck_ok(tn_state_set_value(tn_script_files(script), "notes", tn_value_string("words")));
    ck_assert(save_and_load(script));
    ck_assert_int_gt(fail_each_allocation(save_and_load, script), 100);
    tn_module_drop(script);
    tn_module_drop(net);
}
END_TEST

START_TEST(a_converted_script_is_saved_as_it_is)
{
    TN_SCOPE;
    tn_module *net = convolutional(), *script, *copy, *loaded;
    tn_tensor *x = images(), *wide = tn_tensor_full(TN_SHAPE(2, 3, 8, 8), 0.5, TN_F64, NULL);
    char *text;
    script = script_of(net, x);
    copy = tn_module_copy(script);
    ck_ok(tn_module_to(copy, NULL, TN_F64));
    loaded = saved(copy);
    text = printed(tn_script_graph(loaded, true), "text");
    ck_assert_ptr_nonnull(strstr(text, "%input : float64[2, 3, 8, 8])"));
    ck_assert_ptr_null(strstr(text, "float32"));
    ck_ok(tn_module_eval(copy));
    ck_ok(tn_module_eval(loaded));
    ck_same(tn_module_call(loaded, wide), tn_module_call(copy, wide));
    ck_assert_ptr_eq(tn_script_graph(copy, true), tn_script_graph(copy, true));
    free(text);
    tn_module_drop(loaded);
    tn_module_drop(copy);
    loaded = saved(script); /* as before */
    ck_ok(tn_module_eval(loaded));
    ck_ok(tn_module_eval(net));
    ck_same(tn_module_call(loaded, x), tn_module_call(net, x));
    ck_ok(tn_module_to(loaded, NULL, TN_F64));
    copy = saved(loaded);
    ck_same(tn_module_call(copy, wide), tn_module_call(loaded, wide));
    tn_module_drop(copy);
    tn_module_drop(loaded);
    tn_module_drop(script);
    tn_module_drop(net);
}
END_TEST

START_TEST(a_folded_script_stays_folded)
{
    TN_SCOPE;
    tn_module *net = convolutional(), *made, *script, *loaded;
    tn_tensor *x = images();
    tn_graph *graph;
    ck_ok(tn_module_eval(net));
    graph = traced(net, x, TN_TRACE_THROUGH);
    ck_ok(tn_graph_pass(graph, "conv_bn, dropout, constants, dead"));
    made = tn_graph_module(graph);
    script = tn_script_new(made, &graph, 1);
    ck_made(script);
    loaded = saved(script);
    ck_ok(tn_inference_begin(true));
    ck_same(tn_module_call(loaded, x), run1(graph, x));
    tn_inference_end();
    ck_assert_ptr_null(tn_module_call(loaded, x));
    ck_error(TN_ERR_RUNTIME, "for inference", "gradient");
    ck_assert_ptr_null(tn_script_graph(loaded, true));
    ck_assert_ptr_null(tn_module_call(loaded, numbers(0)));
    tn_error_clear();
    TN_PROVES("SCR-025");
    tn_graph_drop(graph);
    tn_module_drop(loaded);
    tn_module_drop(script);
    tn_module_drop(made);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_loaded_script_computes_and_trains_as_the_module,
                                   packs_keep_their_form,
                                   parameters_keep_their_order_kind_and_gradients,
                                   shared_tensors_stay_shared,
                                   the_file_has_everything_and_other_files,
                                   what_a_file_cannot_hold_is_refused,
                                   wrong_files_are_refused_by_name,
                                   damaged_files_do_no_harm,
                                   every_failed_allocation_is_reported,
                                   a_converted_script_is_saved_as_it_is,
                                   a_folded_script_stays_folded,
                                   NULL };
    int code;

    if (mkdtemp(folder) == NULL)
        return EXIT_FAILURE;
    code = suite_run("script_files", tests);
    for (int i = 0; i < 9; i++) {
        static const char *const names[] = {
            "net.script",          "again.script", "eager.script",  "hooked.script", "state.script",
            "weights.safetensors", "bad.script",   "memory.script", "absent.script"
        };

        unlink(file(names[i]));
    }
    rmdir(folder);
    return code;
}
