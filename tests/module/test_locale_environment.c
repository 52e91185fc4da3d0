/* SPDX-License-Identifier: MIT
 *
 * The locale and the environment must not change results: building, training, printing, saving,
 * loading and failing give the same texts and the same bytes under a locale with a decimal comma
 * and with hostile environment variables. A `%` in a name has no special meaning. Law 6. */
#include "tests/base/suite.h"

#include <locale.h>
#include <sys/wait.h>
#include <unistd.h>

static const float xs[4][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } };
static const int64_t ys[4] = { 0, 1, 1, 0 };

/* A locale with a decimal comma: an installed one, else one made by localedef for this test. */
static bool use_comma_locale(void)
{
    static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE" };
    char folder[] = "/tmp/tenon-locale-XXXXXX", command[256];

    for (int64_t i = 0; i < tn__countof(names); i++)
        if (setlocale(LC_ALL, names[i]) && *localeconv()->decimal_point == ',')
            return true;
    if (!mkdtemp(folder))
        return false;
    tn_snprint(command, sizeof command,
               "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >/dev/null 2>&1", folder);
    bool good = system(command) != -1;
    setenv("LOCPATH", folder, 1);
    good = good && setlocale(LC_ALL, "de_DE.UTF-8") && *localeconv()->decimal_point == ',';
    unsetenv("LOCPATH");
    tn_snprint(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 && good;
}

/* ---- the transcript -------------------------------------------------------------------------- */

static void say_failure(tn__text *all)
{
    tn__text_add(all, "%s: %s\n", tn_status_name(tn_error_last_code()), tn_error_last()->message);
    tn_error_clear();
}

static void say_file(tn__text *all, const char *path)
{
    unsigned char bytes[8192];
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t i = 0; i < count; i++)
        tn__text_add(all, "%02x", bytes[i]);
    tn__text_add(all, "\n");
}

/* All that a small program does and prints, as one text. */
static char *transcript(void)
{
    tn__text all = { 0 };
    char text[4096], path[64];
    TN_SCOPE;
    tn_snprint(path, sizeof path, "place-%d.safetensors", (int)getpid());
    tn_random_seed(3);
    tn_module *net = tn_module_new("Sequential(Linear(2, %d), ReLU(), Linear(4, 2))", 4);
    tn_optimizer *opt = tn_optimizer_new(net, "SGD(lr=%g, momentum=0.5, weight_decay=1e-4)", 0.1);
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    for (int step = 0; step < 5; step++) {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_from(xs, TN_F32, TN_SHAPE(4, 2));
        tn_tensor *y = tn_tensor_from(ys, TN_I64, TN_SHAPE(4));
        tn_tensor *loss = tn_cross_entropy(tn_module_call(net, x), y);
        tn_module_zero_grad(net);
        tn_backward(loss);
        tn_optimizer_step(opt);
        tn__text_add(&all, "%g\n", tn_item(loss));
    }
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    tn_module_spec(net, text, sizeof text);
    tn__text_add(&all, "%s\n", text);
    tn_module_repr(net, text, sizeof text);
    tn__text_add(&all, "%s\n", text);
    tn_optimizer_spec(opt, text, sizeof text);
    tn__text_add(&all, "%s\n", text);
    tn_tensor_text(tn_module_find_tensor(net, "0.weight"), text, sizeof text);
    tn__text_add(&all, "%s\n", text);
    tn_tensor_text(tn_tensor_full(TN_SHAPE(2), 1234567.5, TN_F64, NULL), text, sizeof text);
    tn__text_add(&all, "%s\n", text);
    ck_assert_int_eq(tn_module_save(net, path), TN_OK);
    say_file(&all, path);
    ck_assert_int_eq(tn_module_load(net, path), TN_OK);
    unlink(path);
    ck_assert_ptr_null(tn_optimizer_new(net, "SGD(lr=0,1)"));
    say_failure(&all);
    ck_assert_ptr_null(tn_optimizer_new(net, "SGD(lr=-1.5)"));
    say_failure(&all);
    ck_assert_ptr_null(tn_module_call(net, tn_tensor_full(TN_SHAPE(1, 3), 0.5, TN_F32, NULL)));
    say_failure(&all);
    tn_optimizer_drop(opt);
    tn_module_drop(net);
    ck_assert(!all.failed && all.at);
    ck_assert_ptr_nonnull(strstr(all.at, "lr=0.1, momentum=0.5"));
    return all.at;
}

START_TEST(a_comma_locale_changes_nothing_in_the_whole_slice)
{
    char *before = transcript();
    if (!use_comma_locale()) {
        printf("SKIP %s: there is no locale with a decimal comma\n", __func__);
        tn_free(before);
        return;
    }
    char *after = transcript();
    ck_assert_str_eq(before, after);
    ck_assert_int_eq(*localeconv()->decimal_point, ','); /* and nobody has changed it */
    tn_free(before);
    tn_free(after);
}
END_TEST

/* The transcript of a child, which looks at the environment for itself. */
static void from_a_child(char *text, size_t size)
{
    int ends[2], status;
    size_t length = 0;
    ssize_t got;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        char *all = transcript();
        close(ends[0]);
        _exit(write(ends[1], all, strlen(all)) != (ssize_t)strlen(all));
    }
    close(ends[1]);
    while ((got = read(ends[0], text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = 0;
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert(length > 200 && length < size - 1);
}

START_TEST(an_environment_that_means_harm_changes_nothing)
{
    static const char *const harm[][2] = {
        { "LTDL_LIBRARY_PATH", "/nowhere:%s%n" },
        { "LC_ALL", "%n" },
        { "LANG", "xx_XX.%s" },
        { "TMPDIR", "/nowhere" },
        { "HOME", "%s%n" },
        { "TENON_", "%n" },
        { "TENON_NO_SUCH", "100%n" },
        { "OMP_NUM_THREADS", "-%d" },
        { "OPENBLAS_NUM_THREADS", "many" },
        { "POSIXLY_CORRECT", "1" },
        { "TENON_LINEAR_%n", "%n" },
    };
    char before[16384], after[16384];
    from_a_child(before, sizeof before);
    for (int64_t i = 0; i < tn__countof(harm); i++)
        setenv(harm[i][0], harm[i][1], 1);
    from_a_child(after, sizeof after);
    ck_assert_str_eq(before, after);
}
END_TEST

/* ---- per cent signs -------------------------------------------------------------------------- */

#define ODD "100%s%n%q%%"

START_TEST(a_per_cent_sign_in_a_name_is_a_letter_like_any_other)
{
    char text[4096], path[128];
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential()"), *part = tn_module_new("Linear(2, 1)");
    ck_assert_int_eq(tn_module_add_child(net, ODD, part), TN_OK);
    tn_module_drop(part);
    ck_assert_int_eq(
        tn_module_add_buffer(net, "b" ODD, tn_tensor_full(TN_SHAPE(1), 2, TN_F32, NULL), 0), TN_OK);
    ck_assert_ptr_nonnull(tn_module_find_tensor(net, ODD ".weight"));
    tn_module_repr(net, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "(" ODD "): Linear("));
    tn_module_spec(net, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, ODD));

    /* errors that name it */
    ck_assert_int_ne(tn_module_add_buffer(net, ODD, TN_NONE, 0), TN_OK);
    expect_failure(tn_error_last_code(), ODD);
    ck_assert_ptr_null(tn_module_find_tensor(net, ODD ".weighty%d"));
    expect_failure(tn_error_last_code(), "weighty%d");
    ck_assert_ptr_null(tn_module_call(net, tn_tensor_full(TN_SHAPE(1, 3), 1, TN_F32, NULL)));
    expect_failure(tn_error_last_code(), "module \"" ODD "\" (Linear)");
    ck_assert_ptr_null(tn_module_parse("No%sSuch(1)"));
    expect_failure(tn_error_last_code(), "%s");
    ck_assert_ptr_null(tn_optimizer_new(net, "SGD(lr%%n=1)"));
    tn_error_clear();
    ck_assert_ptr_null(tn_device_find("%s%n:0"));
    expect_failure(tn_error_last_code(), "%s%n");
    ck_assert_ptr_null(tn_op_find("add%n", 0));
    expect_failure(tn_error_last_code(), "add%n");
    ck_assert_int_ne(tn_plugin_load("/nowhere/" ODD ".so"), TN_OK);
    expect_failure(TN_ERR_IO, "/nowhere/" ODD ".so");
    ck_assert_int_ne(tn_plugin_activate("org." ODD), TN_OK);
    expect_failure(TN_ERR_KEY, ODD);

    /* files */
    ck_assert_int_ne(tn_module_load(net, "/nowhere/" ODD ".safetensors"), TN_OK);
    expect_failure(tn_error_last_code(), "/nowhere/" ODD ".safetensors");
    ck_assert_int_ne(tn_module_save(net, "/nowhere/" ODD ".safetensors"), TN_OK);
    expect_failure(tn_error_last_code(), "/nowhere/" ODD ".safetensors");
    ck_assert_int_ne(tn_module_save(net, "place." ODD), TN_OK);
    expect_failure(tn_error_last_code(), ODD);
    tn_snprint(path, sizeof path, "place-%d-%s.safetensors", (int)getpid(), ODD);
    ck_assert_int_eq(tn_module_save(net, path), TN_OK);
    ck_assert_int_eq(tn_module_load(net, path), TN_OK);
    tn_module *other = tn_module_new("Sequential(Linear(2, 1))");
    ck_assert_int_ne(tn_module_load(other, path), TN_OK);
    expect_failure(tn_error_last_code(), ODD ".weight");
    unlink(path);
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    tn_module_drop(other);
    tn_module_drop(net);
}
END_TEST

/* ---- packs of objects ------------------------------------------------------------------------ */

static int64_t live_on_host(void)
{
    tn_memory_stats stats;
    ck_assert_int_eq(tn_device_memory(tn_default_device(), &stats), TN_OK);
    return stats.live;
}

START_TEST(a_pack_keeps_the_tensors_and_modules_in_it)
{
    int64_t before = live_on_host();
    tn_pack *pack = tn_pack_new();
    tn_module *module = tn_module_new("Linear(2, 2)");
    {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_full(TN_SHAPE(1, 2), 3.0, TN_F32, NULL);
        tn_value held = { .kind = TN_VALUE_MODULE, .as.module = module };
        tn_value both[2] = { tn_value_tensor(x), held };
        tn_value list = { .kind = TN_VALUE_LIST, .count = 2, .as.list = both };
        ck_assert_int_eq(tn_pack_add(pack, NULL, tn_value_tensor(x)), TN_OK);
        ck_assert_int_eq(tn_pack_add(pack, NULL, list), TN_OK);
        ck_assert_int_eq(tn_pack_add(pack, "m", held), TN_OK);
        tn_module_drop(module);
    }
    /* Neither the scope nor the caller holds anything any more. */
    {
        TN_SCOPE;
        ck_assert_double_eq(tn_item(tn_sum(tn_pack_tensor(pack, 0))), 6.0);
        tn_value list = tn_pack_at(pack, 1);
        ck_assert_int_eq(list.count, 2);
        ck_assert_ptr_eq(list.as.list[0].as.tensor, tn_pack_tensor(pack, 0));
        tn_module *held = tn_pack_at(pack, tn_pack_find(pack, "m")).as.module;
        ck_assert_ptr_nonnull(tn_module_call(held, tn_pack_tensor(pack, 0)));
    }
    ck_assert_int_eq(tn_pack_set(pack, 0, tn_value_int(1)), TN_OK);
    ck_assert_ptr_null(tn_pack_tensor(pack, 0));
    expect_failure(TN_ERR_TYPE, "expected a tensor");
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    ck_assert_int_gt(live_on_host(), before);
    tn_pack_drop(pack);
    ck_assert_int_eq(live_on_host(), before);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_comma_locale_changes_nothing_in_the_whole_slice,
                                   an_environment_that_means_harm_changes_nothing,
                                   a_per_cent_sign_in_a_name_is_a_letter_like_any_other,
                                   a_pack_keeps_the_tensors_and_modules_in_it, NULL };
    return suite_run("surroundings", tests);
}
