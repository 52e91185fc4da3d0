/* SPDX-License-Identifier: MIT
 *
 * A format of whole modules whose values are in other files next to it, and names of files that
 * lead elsewhere. The file has one line: a spec, `|`, the name of the file with the values, and
 * offset and length of them. */
#include "tests/base/suite.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static const char *sibling_to_write = "values.bin", *second_to_write;
static tn_status after_save;

static bool recognize(const tn_format_def *self, const tn_source *source)
{
    char magic[4];
    (void)self;
    return source->size >= 4 && source->read(source->user, 0, magic, 4) == TN_OK &&
           memcmp(magic, "MOD ", 4) == 0;
}

static tn_status fill_weight(const tn_source *source, tn_module *module, char *rest)
{
    char *name = rest, *offset = strchr(rest, '|'),
         *length = offset ? strchr(offset + 1, '|') : NULL;
    if (length == NULL)
        return tn_fail(TN_ERR_FORMAT, "%s: no numbers", source->path);
    *offset++ = *length++ = '\0';
    const tn_source *values = tn_source_sibling(source, name, strtoull(offset, NULL, 10),
                                                strtoull(length, NULL, 10));
    if (values == NULL)
        return tn_error_last_code();
    ck_assert_int_eq(tn_source_is_mapped(values), tn_source_is_mapped(source));
    ck_assert_ptr_null(tn_source_sibling(values, name, 0, 1)); /* a sibling has no siblings */
    tn_error_clear();
    tn_tensor *weight = tn_source_tensor(values, 0, TN_F32, TN_SHAPE(2, 2));
    return weight != NULL ? tn_module_set(module, "weight", tn_parameter(weight, true))
                          : tn_error_last_code();
}

static tn_module *load_module(const tn_format_def *self, const tn_source *source)
{
    char text[512] = "";
    (void)self;
    if (source->size >= sizeof text ||
        source->read(source->user, 0, text, (size_t)source->size) != TN_OK)
        return NULL;
    char *bar = strchr(text, '|');
    if (bar == NULL)
        return NULL; /* without a message */
    *bar = '\0';
    tn_module *module = tn_module_parse(text + 4);
    if (module != NULL && fill_weight(source, module, bar + 1) != TN_OK) {
        tn_module_drop(module);
        return NULL;
    }
    return module;
}

static tn_status save_module(const tn_format_def *self, const tn_sink *sink, tn_module *module)
{
    char text[512];
    float values[4];
    (void)self;
    tn_snprint(text, sizeof text, "MOD Linear(2, 2, bias=False)|%s|0|16", sibling_to_write);
    tn_status status = sink->write(sink->user, text, strlen(text));
    const tn_sink *other = status == TN_OK ? tn_sink_sibling(sink, sibling_to_write) : NULL;
    if (other == NULL)
        return tn_error_last_code();
    if (second_to_write != NULL && tn_sink_sibling(sink, second_to_write) == NULL)
        return tn_error_last_code();
    tn_tensor_copy_out(tn_module_get(module, "weight"), values, sizeof values);
    status = other->write(other->user, values, sizeof values);
    return status == TN_OK ? after_save : status;
}

static const tn_format_def modules = { TN_HEAD(tn_format_def),     .name = "test.modules",
                                       .extensions = ".mod",       .recognize = recognize,
                                       .load_module = load_module, .save_module = save_module };

/* ---- the folder ------------------------------------------------------------------------------ */

static const char *in(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text, size_t size)
{
    FILE *file = fopen(in(name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fwrite(text, 1, size, file), size);
    fclose(file);
}

static tn_module *start(void)
{
    snprintf(folder, sizeof folder, "/tmp/tenon-siblings-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(tn_register(&modules), TN_OK);
    tn_module *m = tn_module_parse("Linear(2, 2, bias=False)");
    float values[4] = { 1, 2, 3, 4 };
    ck_assert_int_eq(tn_tensor_copy_in(tn_module_get(m, "weight"), values, sizeof values), TN_OK);
    return m;
}

static void finish(tn_module *m)
{
    char command[128];
    tn_module_drop(m);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static void expect_values(tn_module *m, float first)
{
    float values[4];
    ck_assert_msg(m != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_copy_out(tn_module_get(m, "weight"), values, sizeof values), TN_OK);
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(values[i], first + (float)i);
}

static bool there(const char *name)
{
    struct stat info;
    return lstat(in(name), &info) == 0;
}

START_TEST(a_module_is_saved_and_loaded_with_its_values_in_another_file)
{
    TN_SCOPE;
    tn_module *m = start();
    ck_assert_msg(tn_module_save(m, in("net.mod")) == TN_OK, "%s", tn_error_text());
    ck_assert(there("values.bin"));
    tn_module *back = tn_module_from_file(in("net.mod"));
    expect_values(back, 1);
    ck_assert_str_eq(tn_module_type(back), "Linear");
    tn_module_drop(back);
    /* again: both are replaced */
    float values[4] = { 5, 6, 7, 8 };
    tn_tensor_copy_in(tn_module_get(m, "weight"), values, sizeof values);
    ck_assert_int_eq(tn_module_save(m, in("net.mod")), TN_OK);
    back = tn_module_from_file(in("net.mod"));
    expect_values(back, 5);
    tn_module_drop(back);
    /* a file of modules is no state, a file of a state is no module */
    ck_assert_ptr_null(tn_state_load(in("net.mod")));
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "stores modules, not states; use tn_module_from_file");
    tn_state *state = tn_module_state(m);
    ck_assert_int_eq(tn_state_save(state, in("x.mod")), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "stores modules, not states; use tn_module_save");
    tn_state_drop(state);
    ck_assert_int_eq(tn_module_save(m, in("net.safetensors")), TN_OK);
    ck_assert_ptr_null(tn_module_from_file(in("net.safetensors")));
    expect_failure(TN_ERR_FORMAT, "stores a state, not a module; make the module");
    write_file("bad.mod", "MOD x", 5);
    ck_assert_ptr_null(tn_module_from_file(in("bad.mod")));
    expect_failure(TN_ERR_RUNTIME, "load_module returned NULL and recorded no message");
    finish(m);
}
END_TEST

START_TEST(a_save_that_fails_leaves_all_old_files)
{
    TN_SCOPE;
    tn_module *m = start();
    ck_assert_int_eq(tn_module_save(m, in("net.mod")), TN_OK);
    float values[4] = { 0 };
    tn_tensor_copy_in(tn_module_get(m, "weight"), values, sizeof values);
    second_to_write = "new.bin";
    after_save = TN_ERR_DEVICE;
    ck_assert_int_ne(tn_module_save(m, in("net.mod")), TN_OK);
    tn_error_clear();
    after_save = TN_OK;
    second_to_write = NULL;
    ck_assert(!there("new.bin"));
    tn_module *back = tn_module_from_file(in("net.mod"));
    expect_values(back, 1);
    tn_module_drop(back);
    finish(m);
}
END_TEST

static const struct {
    const char *name, *words;
} hostile[] = {
    { "/etc/passwd", "it is absolute" },
    { "../values.bin", "a part of it is `..`" },
    { "sub/../values.bin", "a part of it is `..`" },
    { "./values.bin", "a part of it is `.`" },
    { "sub//values.bin", "a part of it is empty" },
    { "sub/", "a part of it is empty" },
    { "", "it is empty" },
    { "..\\values.bin", "it has a `\\`" },
    { "link.bin", "links are not followed" },
    { "linked/values.bin", "links are not followed" },
    { "sub", "Is a directory" },
    { "pipe", "not a regular file" },
    { "absent.bin", "No such file" },
};

START_TEST(names_that_lead_elsewhere_are_refused_when_read)
{
    TN_SCOPE;
    tn_module *m = start();
    char text[512];
    ck_assert_int_eq(mkdir(in("sub"), 0755), 0);
    ck_assert_int_eq(tn_module_save(m, in("net.mod")), TN_OK);
    ck_assert_int_eq(symlink("values.bin", in("link.bin")), 0);
    ck_assert_int_eq(symlink("sub", in("linked")), 0);
    ck_assert_int_eq(mkfifo(in("pipe"), 0600), 0);
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        tn_snprint(text, sizeof text, "MOD Linear(2, 2, bias=False)|%s|0|16", hostile[i].name);
        write_file("hostile.mod", text, strlen(text));
        ck_assert_ptr_null(tn_module_from_file(in("hostile.mod")));
        ck_assert_msg(strstr(tn_error_text(), hostile[i].words) != NULL, "%s: %s", hostile[i].name,
                      tn_error_text());
        ck_assert_ptr_nonnull(strstr(tn_error_text(), "hostile.mod"));
        tn_error_clear();
    }
    ck_assert_int_eq(rename(in("values.bin"), in("sub/values.bin")), 0);
    tn_snprint(text, sizeof text, "MOD Linear(2, 2, bias=False)|sub/values.bin|0|16");
    write_file("good.mod", text, strlen(text));
    tn_module *back = tn_module_from_file(in("good.mod"));
    expect_values(back, 1);
    tn_module_drop(back);
    finish(m);
}
END_TEST

static const struct {
    const char *range;
    const char *words; /* NULL: works */
} ranges[] = {
    { "4|16", NULL },
    { "4|18446744073709551615", NULL },
    { "8|16", "names 16 bytes at offset 8" },
    { "21|18446744073709551615", "beyond the end of that file (20 bytes)" },
    { "18446744073709551615|2", "beyond the end of that file (20 bytes)" },
    { "4|15",
      "beyond the end of the file, got 16 bytes at offset 0; expected at most 15 bytes in all" },
};

START_TEST(ranges_stay_inside_the_file)
{
    TN_SCOPE;
    tn_module *m = start();
    char text[512];
    float values[5] = { 9, 1, 2, 3, 4 };
    write_file("five.bin", (const char *)values, sizeof values);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        tn_snprint(text, sizeof text, "MOD Linear(2, 2, bias=False)|five.bin|%s", ranges[i].range);
        write_file("range.mod", text, strlen(text));
        tn_module *back = tn_module_from_file(in("range.mod"));
        if (ranges[i].words == NULL) {
            expect_values(back, 1);
            tn_module_drop(back);
            continue;
        }
        ck_assert_ptr_null(back);
        ck_assert_msg(strstr(tn_error_text(), ranges[i].words) != NULL, "%s: %s", ranges[i].range,
                      tn_error_text());
        tn_error_clear();
    }
    finish(m);
}
END_TEST

static const struct {
    const char *name, *words;
} unwritable[] = {
    { "../x.bin", "it has a folder in it" },
    { "/tmp/x.bin", "it has a folder in it" },
    { "..", "it is a folder" },
    { "", "it is empty" },
    { "net.mod", "it is in use" },
    { "link.bin", "a link; only a regular file can be replaced" },
    { "sub", "a folder; only a regular file can be replaced" },
    { "pipe", "not a regular file; only a regular file can be replaced" },
};

START_TEST(names_that_lead_elsewhere_are_refused_when_written)
{
    TN_SCOPE;
    tn_module *m = start();
    ck_assert_int_eq(mkdir(in("sub"), 0755), 0);
    ck_assert_int_eq(symlink("sub/target.bin", in("link.bin")), 0);
    ck_assert_int_eq(mkfifo(in("pipe"), 0600), 0);
    for (size_t i = 0; i < sizeof unwritable / sizeof *unwritable; i++) {
        sibling_to_write = unwritable[i].name;
        ck_assert_int_ne(tn_module_save(m, in("net.mod")), TN_OK);
        ck_assert_msg(strstr(tn_error_text(), unwritable[i].words) != NULL, "%s: %s",
                      unwritable[i].name, tn_error_text());
        tn_error_clear();
        ck_assert(!there("net.mod") && !there("sub/target.bin"));
    }
    sibling_to_write = "values.bin";
    second_to_write = "values.bin";
    ck_assert_int_ne(tn_module_save(m, in("net.mod")), TN_OK);
    expect_failure(TN_ERR_VALUE, "file \"values.bin\": wrong name: it is in use");
    second_to_write = NULL;
    finish(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_module_is_saved_and_loaded_with_its_values_in_another_file,
        a_save_that_fails_leaves_all_old_files,
        names_that_lead_elsewhere_are_refused_when_read,
        ranges_stay_inside_the_file,
        names_that_lead_elsewhere_are_refused_when_written,
        NULL,
    };
    return suite_run("siblings", tests);
}
