/* SPDX-License-Identifier: MIT
 *
 * Files of scripts that Tenon did not write: wrong trees are refused and named, also those that
 * would take forever; and trees of unusual tensors and names, which are saved and loaded as they
 * are. */
#include "tests/graph/suite.h"
#include "tests/graph/traced.h"
#include "tests/spec/proves.h"

#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/tenon-trees-XXXXXX";

static const char *file(const char *name)
{
    static char paths[2][128];
    static int next;

    next = !next;
    snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
    return paths[next];
}

/* ---- files that Tenon did not write ---------------------------------------------------------- */

#define HEAD "graph(%self : N, %x : float32[2, 3]):  # tenon.graph 1"
#define BODY "\n  %y : float32[2, 3] = relu(%x)\n  return (%y)\n"

/* Loads a file with this tree and graph. It has the tensors w [2, 3], v [6] and _constants.c. */
static tn_module *load(const char *tree, const char *graph)
{
    tn_state *state = tn_state_new();

    ck_ok(tn_state_set_meta(state, "tenon.script", tree));
    ck_ok(tn_state_set_meta(state, "tenon.graph", graph));
    ck_ok(tn_state_set_meta(state, "tenon.requires",
                            "{\"operators\":{\"relu\":[1,\"tenon.ops\"]},\"plugins\":{}}"));
    ck_ok(tn_state_set(state, "w", numbers(1)));
    ck_ok(tn_state_set(state, "v", tn_tensor_full(TN_SHAPE(6), 2.0, TN_F32, NULL)));
    ck_ok(tn_state_set(state, "_constants.c", numbers(2)));
    ck_ok(tn_state_save(state, file("made.safetensors")));
    tn_state_drop(state);
    return tn_module_from_file(file("made.safetensors"));
}

#define TREE(modules, slots, constants, files)                                                     \
    "{\"version\":1,\"training\":false,\"modules\":[" modules "],\"slots\":[" slots                \
    "],\"constants\":[" constants "],\"files\":[" files "]}"
#define ROOT "[\"\",\"N\"]"
#define SLOT(more) TREE(ROOT, "{\"path\":\"w\"" more "}", "", "")
#define VIEW(more) SLOT(",\"data\":\"v\"" more)

static const struct {
    const char *tree, *part, *more;
} wrong_trees[] = {
    { VIEW(",\"offset\":9223372036854775807,\"shape\":[2],\"strides\":[1]"), "slot \"w\"",
      "too large" },
    { VIEW(",\"offset\":5,\"shape\":[2],\"strides\":[1]"), "slot \"w\"", "beyond its storage" },
    { VIEW(",\"offset\":0,\"shape\":[2],\"strides\":[4611686018427387904]"), "w", "too large" },
    { VIEW(",\"offset\":0,\"shape\":[4611686018427387904,4611686018427387904],\"strides\":[0,0]"),
      "slot \"w\"", "too many elements" },
    { VIEW(",\"offset\":1.5,\"shape\":[2],\"strides\":[1]"), "slots", "Expected integer" },
    { VIEW(",\"shape\":[2],\"strides\":[1]"), "slot \"w\"", "shape only with offset" },
    { SLOT(",\"offset\":4"), "slot \"w\": strides", "shape only with offset" },
    { SLOT(",\"strides\":[-1,1]"), "slot \"w\": strides", "integers from 0" },
    { SLOT(",\"strides\":[1]"), "slot \"w\": strides", "for each dimension" },
    { SLOT(",\"strides\":[10,1]"), "slot \"w\"", "beyond its storage" },
    { SLOT(",\"strides\":\"3,1\""), "slot \"w\": strides", "integers from 0" },
    { SLOT(",\"flags\":4294967297"), "slot \"w\": flags", "got 4294967297" },
    { SLOT(",\"flags\":-1"), "slot \"w\": flags", "got -1" },
    { SLOT(",\"flags\":\"1\""), "slots", "Expected integer, got string" },
    { SLOT(",\"flags\":255"), "slot \"w\"", "flags: unknown" },
    { SLOT(",\"parameter\":true,\"flags\":255"), "slot \"w\": flags", "for a parameter" },
    { SLOT(",\"parameter\":1"), "slots", "Expected true or false" },
    { SLOT(",\"data\":7"), "slots", "Expected string" },
    { SLOT(",\"more\":7"), "slots", "more" },
    { SLOT(",\"same\":\"w\""), "slot \"w\"", "no parameter or buffer 'w'" },
    { TREE(ROOT, "{\"path\":\"..\"}", "", ""), "slot \"..\"", "no attribute" },
    { TREE(ROOT, "{\"path\":\"\",\"data\":\"w\"}", "", ""), "slot \"\"", "empty" },
    { TREE(ROOT, "{\"path\":\"a.w\"}", "", ""), "slot \"a.w\"", "no attribute `a`" },
    { TREE(ROOT, "{\"path\":\"w\"},{\"path\":\"w\"}", "", ""), "slot \"w\"",
      "given twice; expected once" },
    { TREE(ROOT, "null", "", ""), "slots", "Expected object" },
    { TREE(ROOT, "", "{\"path\":\"c\"},{\"path\":\"c\"}", ""), "slot \"c\"",
      "given twice; expected once" },
    { TREE("", "", "", ""), "modules", "a list" },
    { TREE("3", "", "", ""), "modules", "Expected array" },
    { TREE("[\"\",\"N\",\"\"]", "", "", ""), "modules", "the root" },
    { TREE(ROOT ",[\"a\",\"N\",7]", "", "", ""), "modules", "Expected string" },
    { TREE(ROOT ",[\"a\",\"N\",\"\"]", "", "", ""), "module \"a\"", "form a tree" },
    { TREE(ROOT ",[\"a\",\"N\"],[\"a.b\",\"N\",\"a\"]", "", "", ""), "\"a.b\"", "form a tree" },
    { TREE(ROOT ",[\"a\",\"N\"],[\"a..b\",\"N\"]", "", "", ""), "\"a..b\"", "no attribute" },
    { TREE(ROOT ",[\"_constants\",\"N\"]", "", "", ""), "\"_constants\"", "another name" },
    { TREE("[\"\",\"N(3)\"]", "", "", ""), "module \"\"", "not a name" },
    { TREE(ROOT, "", "", "[\"../w\",true]"), "file \"../w\"", "no entry \"_files/../w\"" },
    { TREE(ROOT, "", "", "[\"w\"]"), "files", "Array index 1 out of range" },
    { "{\"version\":1,\"training\":1}", "tenon.script", "Expected true or false" },
    { "{\"version\":100000000000000000000000000}", "tenon.script", "too big integer" },
    { "{\"version\":1,\"version\":2}", "tenon.script", "duplicate object key" },
    { "[]", "version", "an integer from 1" },
};

START_TEST(wrong_trees_are_refused_by_name)
{
    for (size_t i = 0; i < sizeof wrong_trees / sizeof *wrong_trees; i++) {
        TN_SCOPE;
        const char *found;

        ck_assert_msg(load(wrong_trees[i].tree, HEAD BODY) == NULL, "%s", wrong_trees[i].tree);
        ck_assert_msg(strstr(tn_error_text(), wrong_trees[i].part) != NULL &&
                          strstr(tn_error_text(), wrong_trees[i].more) != NULL,
                      "%s: %s", wrong_trees[i].tree, tn_error_text());
        found = strstr(tn_error_text(), "made.safetensors"); /* once */
        ck_assert_ptr_nonnull(found);
        ck_assert_ptr_null(strstr(found + 1, "made.safetensors"));
        tn_error_clear();
    }
}
END_TEST

/* Each level doubles the number of paths, but not the number of modules. */
START_TEST(modules_with_endless_paths_are_refused)
{
    TN_SCOPE;
    char path[400] = "a", *tree = malloc(1 << 16);
    size_t length = (size_t)sprintf(tree, "{\"version\":1,\"training\":false,\"modules\":[" ROOT);
    for (int i = 0; i < 40; i++) {
        length += (size_t)sprintf(tree + length,
                                  ",[\"%s\",\"N\"],[\"%s.b\",\"N\"],[\"%s.c\",\"N\"],"
                                  "[\"%s.b.d\",\"N\"],[\"%s.c.d\",\"N\",\"%s.b.d\"]",
                                  path, path, path, path, path, path);
        strcat(path, ".b.d.a");
    }
    strcpy(tree + length, "],\"slots\":[],\"constants\":[],\"files\":[]}");
    ck_assert_ptr_null(load(tree, HEAD BODY));
    ck_error(TN_ERR_FORMAT, "script: modules: too many paths", "expected at most 1048576");
    free(tree);
}
END_TEST

START_TEST(words_of_the_first_line_are_known)
{
    static const char *const heads[] = { HEAD ", training" BODY, HEAD ", eval, fixes" BODY,
                                         HEAD ", x" BODY };
    static const char tree[] = TREE(ROOT, "{\"path\":\"w\"}", "", "");
    static const char folded[] = HEAD ", folded\n  %w : float32[2, 3] = "
                                      "prim::GetAttr[name=\"w\"](%self)\n  %y : float32[2, 3] = "
                                      "relu(%w)\n  return (%y)\n";
    TN_SCOPE;
    tn_module *script;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        ck_assert_ptr_null(load(tree, heads[i]));
        ck_error(TN_ERR_FORMAT, "tenon.graph", "expected eval, train, fixed, typed, inference");
    }
    script = load(tree, HEAD ", eval, fixed, inference" BODY);
    ck_made(script);
    ck_assert_ptr_null(tn_script_graph(script, true));
    tn_module_drop(script);
    /* a graph that is folded without being for inference */
    script = load(tree, folded);
    ck_made(script);
    ck_made(tn_module_call(script, numbers(0)));
    ck_made(tn_fill_(tn_module_get(script, "w"), TN_SCALAR(3.0)));
    ck_assert_ptr_null(tn_module_call(script, numbers(0)));
    ck_error(TN_ERR_RUNTIME, "has changed", "pass (of the text)");
    tn_module_drop(script);
}
END_TEST

/* ---- trees of unusual tensors and names ------------------------------------------------------ */

static char *slurp(const char *path, size_t *size)
{
    FILE *from = fopen(path, "rb");
    char *bytes = malloc(1 << 16);

    ck_assert_ptr_nonnull(from);
    *size = fread(bytes, 1, 1 << 16, from);
    fclose(from);
    return bytes;
}

/* Saves a script, loads it and saves it again, as the same bytes. */
static tn_module *saved(tn_module *net)
{
    tn_module *script = tn_module_script(net, numbers(0), NULL), *loaded;
    size_t n, m;
    char *a, *b;

    ck_made(script);
    ck_ok(tn_module_save(script, file("net.script")));
    loaded = tn_module_from_file(file("net.script"));
    ck_made(loaded);
    ck_ok(tn_module_save(loaded, file("again.script")));
    a = slurp(file("net.script"), &n);
    b = slurp(file("again.script"), &m);
    ck_assert_uint_eq(n, m);
    ck_assert_int_eq(memcmp(a, b, n), 0);
    free(a);
    free(b);
    tn_module_drop(script);
    return loaded;
}

START_TEST(tensors_of_one_memory_stay_different_tensors)
{
    TN_SCOPE;
    tn_module *net = own(mixed_forward), *loaded;
    tn_tensor *a, *b;
    ck_ok(tn_module_add_buffer(net, "a", numbers(4), 0));
    ck_ok(tn_module_add_buffer(net, "b", tn_detach(tn_module_get(net, "a")), 0));
    ck_ok(tn_module_add_buffer(net, "raw", tn_detach(tn_module_get(net, "scale")), 0));
    loaded = saved(net);
    a = tn_module_get(loaded, "a");
    b = tn_module_get(loaded, "b");
    ck_assert_ptr_ne(a, b);
    ck_assert(tn_tensor_shares_storage(a, b));
    ck_same(b, numbers(4));
    ck_assert(
        tn_tensor_shares_storage(tn_module_get(loaded, "raw"), tn_module_get(loaded, "scale")));
    ck_assert(!tn_tensor_requires_grad(tn_module_get(loaded, "raw")));
    tn_module_drop(loaded);
    tn_module_drop(net);
}
END_TEST

START_TEST(slots_may_have_the_names_of_the_format)
{
    TN_SCOPE;
    tn_module *net = own(mixed_forward), *child = tn_module_plain("Child"), *script, *loaded;
    tn_tensor *wide = tn_tensor_full(TN_SHAPE(5), 3.0, TN_F32, NULL);
    ck_ok(tn_module_add_child(net, "_storages", child));
    ck_ok(tn_module_add_buffer(net, "left", tn_narrow(wide, 0, 0, 3), 0));
    ck_ok(tn_module_add_buffer(net, "right", tn_narrow(wide, 0, 2, 3), 0));
    ck_ok(tn_module_add_buffer(child, "0", numbers(5), 0));
    ck_ok(tn_module_add_buffer(net, "_files/notes", numbers(6), 0));
    loaded = saved(net);
    ck_same(tn_module_find_buffer(loaded, "_storages.0"), numbers(5));
    ck_same(tn_module_find_buffer(loaded, "_files/notes"), numbers(6));
    ck_same(tn_module_get(loaded, "right"), tn_module_get(net, "right"));
    ck_assert(
        tn_tensor_shares_storage(tn_module_get(loaded, "left"), tn_module_get(loaded, "right")));
    script = tn_module_script(net, numbers(0), NULL);
    ck_ok(tn_state_set_value(tn_script_files(script), "notes", tn_value_string("words")));
    ck_assert_int_ne(tn_module_save(script, file("net.script")), TN_OK);
    ck_error(TN_ERR_KEY, "file \"notes\"", "expected another name");
    tn_module_drop(script);
    tn_module_drop(loaded);
    tn_module_drop(child);
    tn_module_drop(net);
}
END_TEST

/* A tensor of the program that is no slot, and has a gradient. */
static tn_tensor *outside;

static tn_tensor *outside_forward(tn_module *self, tn_tensor *x)
{
    return tn_mul(tn_module_call_child(self, "fc", x), outside);
}

START_TEST(constants_keep_their_gradients)
{
    TN_SCOPE;
    tn_module *net = own(outside_forward), *loaded;
    tn_tensor *y;
    outside = numbers(3);
    ck_ok(tn_tensor_set_requires_grad(outside, true));
    ck_ok(tn_module_set_requires_grad(net, false));
    loaded = saved(net);
    y = tn_module_call(loaded, numbers(1));
    ck_same(y, tn_module_call(net, numbers(1)));
    ck_assert(tn_tensor_requires_grad(y));
    tn_module_drop(loaded);
    tn_module_drop(net);
}
END_TEST

/* The time grows with the number of tensors, not with its square: that took 12 s. */
START_TEST(many_tensors_are_saved_soon)
{
    enum { COUNT = 10000 };
    TN_SCOPE;
    tn_module *net = own(mixed_forward), *script;
    clock_t start;
    tn_state *state;
    char name[20];
    for (int i = 0; i < COUNT; i++) {
        TN_SCOPE;
        snprintf(name, sizeof name, "b%d", i);
        ck_ok(tn_module_add_buffer(net, name, tn_tensor_full(TN_SHAPE(2), (double)i, TN_F32, NULL),
                                   0));
    }
    script = tn_module_script(net, numbers(0), NULL);
    ck_made(script);
    start = clock();
    ck_ok(tn_module_save(script, file("net.script")));
    ck_assert_int_lt((clock() - start) / CLOCKS_PER_SEC, 8);
    state = tn_state_load(file("net.script"));
    ck_made(state);
    ck_assert_int_eq(tn_state_count(state), COUNT + 3);
    tn_state_drop(state);
    tn_module_drop(script);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { wrong_trees_are_refused_by_name,
                                   modules_with_endless_paths_are_refused,
                                   words_of_the_first_line_are_known,
                                   tensors_of_one_memory_stay_different_tensors,
                                   slots_may_have_the_names_of_the_format,
                                   constants_keep_their_gradients,
                                   many_tensors_are_saved_soon,
                                   NULL };
    int code;

    if (mkdtemp(folder) == NULL)
        return EXIT_FAILURE;
    code = suite_run("script_trees", tests);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = { "made.safetensors", "net.script", "again.script" };

        unlink(file(names[i]));
    }
    rmdir(folder);
    return code;
}
