/* SPDX-License-Identifier: MIT
 *
 * A process of tenon check: it loads the plugin, finds what each of its tests is about (an
 * operator, a layer, ...), runs the tests, and reports their outcomes. */

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "reference.h"

/* ---- reporting ---- */

bool conform_fail(conform *c, const char *format, ...)
{
    va_list args;

    if (c->verdict == CONFORM_FAIL)
        return false;
    c->verdict = CONFORM_FAIL;
    fprintf(c->to, "fail ");
    {
        char words[2000];

        va_start(args, format);
        vsnprintf(words, sizeof words, format, args);
        va_end(args);
        for (char *p = words; *p != '\0'; p++)
            fputc(*p == '\n' ? ' ' : *p, c->to);
    }
    fputc('\n', c->to);
    fflush(c->to);
    return false;
}

void conform_skip(conform *c, const char *format, ...)
{
    va_list args;
    char words[1000];

    if (c->verdict != CONFORM_PASS)
        return;
    c->verdict = CONFORM_SKIP;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    for (char *p = words; *p != '\0'; p++)
        *p = *p == '\n' ? ' ' : *p;
    fprintf(c->to, "skip %s\n", words);
    fflush(c->to);
}

void conform_row(conform *c, const char *op, const char *dtype, const char *route, int64_t cases,
                 int64_t failed, double worst)
{
    fprintf(c->to, "row %s %s %lld %lld %.3g %s\n", op, dtype, (long long)cases, (long long)failed,
            worst, route);
}

/* ---- the process of a test ---- */

/* Returns the first device of a type, NULL if there is none. */
static const tn_device *first_of(const char *type)
{
    int64_t count = tn_device_count();

    for (int64_t i = 0; i < count; i++)
        if (strcmp(tn_device_type(tn_device_at(i)), type) == 0)
            return tn_device_at(i);
    return NULL;
}

/* Finds the load report of a plugin by its file. Returns false if there is none. */
static bool find_plugin(const char *file, tn_plugin_report *report)
{
    int64_t count = tn_plugin_count();
    char own[4096], other[4096];

    if (realpath(file, own) == NULL)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (tn_plugin_report_at(i, report) == TN_OK && realpath(report->file, other) != NULL &&
            strcmp(own, other) == 0)
            return true;
    return false;
}

/* Loads the plugin and finds out whether it provides operators. Returns false after reporting a
 * failure or a skipped test. */
static bool load(conform *c, conform_plugin *plugin)
{
    const conform_options *o = plugin->options;
    tn_plugin_report report;
    tn_status status = tn_plugin_load(o->file);

    if (status != TN_OK && !(find_plugin(o->file, &report) && report.outcome == TN_OUTCOME_OK))
        return conform_fail(c, "plugin: does not load: %s", tn_error_text());
    tn_error_clear();
    if (!find_plugin(o->file, &report))
        return conform_fail(c, "load report: does not list the file of the plugin");
    if (report.outcome == TN_OUTCOME_NOT_APPLICABLE) {
        conform_skip(c, "%s", report.reason);
        return false;
    }
    if (report.outcome != TN_OUTCOME_OK)
        return conform_fail(c, "plugin: does not load: %s", report.reason);
    plugin->id = report.id;
    plugin->version = report.version;
    for (int64_t i = 0; i < tn_registry_count(TN_KIND_tn_op_def) && !plugin->ops; i++) {
        const char *owner = tn_registry_plugin(TN_KIND_tn_op_def,
                                               tn_registry_name(TN_KIND_tn_op_def, i));

        plugin->ops = owner != NULL && strcmp(owner, plugin->id) == 0;
    }
    return true;
}

/* Reports that the plugin's device cannot be used. The test is skipped if there is no such device,
 * and also while the tests are listed, so that the list has at least the contract; otherwise the
 * test fails. Returns false. */
static bool no_device(conform *c, const char *type)
{
    tn_error_clear();
    if (tn_device_find(type) != NULL || tn_error_code() == TN_ERR_UNAVAILABLE ||
        strcmp(c->name, "plan") == 0)
        conform_skip(c, "no device of type %s: %s", type, tn_error_text());
    else
        conform_fail(c, "device: cannot be used: %s", tn_error_text());
    return false;
}

/* Chooses the device on which operators are called: the first of the plugin's own type, else the
 * first that --device names, else cpu. Returns false after reporting a failure or a skipped
 * test. */
static bool find_device(conform *c, conform_plugin *plugin)
{
    char name[64] = "cpu";

    for (int64_t i = 0; i < tn_registry_count(TN_KIND_tn_backend_def); i++) {
        const char *type = tn_registry_name(TN_KIND_tn_backend_def, i);
        const char *owner = tn_registry_plugin(TN_KIND_tn_backend_def, type);

        if (owner != NULL && strcmp(owner, plugin->id) == 0) {
            plugin->backend = true;
            plugin->device = first_of(type);
            if (plugin->device == NULL)
                return no_device(c, type);
            if (!tn_device_has_memory(plugin->device)) {
                conform_skip(c, "devices of type %s have no memory to compute in", type);
                return false;
            }
            return true;
        }
    }
    if (plugin->options->device != NULL)
        snprintf(name, sizeof name, "%.*s", (int)strcspn(plugin->options->device, ","),
                 plugin->options->device);
    plugin->device = tn_device_find(name);
    if (plugin->device == NULL)
        return conform_fail(c, "--device: %s", tn_error_text());
    return true;
}

/* Returns true if all tested devices use host memory, where TENON_CHECK=1 costs little. */
static bool all_on_host(const conform_plugin *plugin)
{
    const char *names = plugin->options->device;
    bool host = tn_device_is_host(plugin->device);

    for (size_t length; names != NULL && *names != '\0'; names += length + (names[length] == ',')) {
        char name[64];
        const tn_device *device;

        length = strcspn(names, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        device = tn_device_find(name);
        host = host && device != NULL && tn_device_is_host(device);
    }
    tn_error_clear(); /* the tests report names of devices that do not exist */
    return host;
}

/* The kinds of contributions that have one test for each contribution. The name of the test begins
 * with `folder`. */
static const struct named_kind {
    uint32_t kind;
    int level;
    const char *folder;
    void (*run)(conform *c);
} kinds[] = { { TN_KIND_tn_layer_def, CONFORM_LAYERS, "layers/", conform_layer },
              { TN_KIND_tn_optimizer_def, CONFORM_ALL, "optimizers/", conform_optimizer },
              { TN_KIND_tn_format_def, CONFORM_ALL, "formats/", conform_format },
              { TN_KIND_tn_pass_def, CONFORM_ALL, "passes/", conform_pass },
              { TN_KIND_tn_compiler_def, CONFORM_ALL, "compilers/", conform_compiler },
              { TN_KIND_tn_comm_def, CONFORM_ALL, "comms/", conform_comm },
              { TN_KIND_tn_dataset_def, CONFORM_ALL, "datasets/", conform_dataset },
              { TN_KIND_tn_transform_def, CONFORM_ALL, "transforms/", conform_transform },
              { TN_KIND_tn_prune_def, CONFORM_ALL, "pruning/", conform_pruning } };

static void plan_kind(conform *c, const conform_plugin *plugin, const struct named_kind *kind)
{
    for (int64_t i = 0; i < tn_registry_count(kind->kind); i++) {
        const char *name = tn_registry_name(kind->kind, i);
        const char *owner = tn_registry_plugin(kind->kind, name);

        if (owner != NULL && strcmp(owner, plugin->id) == 0)
            fprintf(c->to, "test %s%s\n", kind->folder, name);
    }
}

/* Writes the names of all tests for this plugin. */
static void plan(conform *c, conform_plugin *plugin)
{
    bool backend = false;
    int64_t ops;

    for (int64_t i = 0; i < tn_registry_count(TN_KIND_tn_backend_def); i++) {
        const char *owner = tn_registry_plugin(TN_KIND_tn_backend_def,
                                               tn_registry_name(TN_KIND_tn_backend_def, i));

        backend = backend || (owner != NULL && strcmp(owner, plugin->id) == 0);
    }
    for (const conform_test *t = conform_contract_tests; t->name != NULL; t++)
        fprintf(c->to, "test contract/%s\n", t->name);
    for (const conform_test *t = conform_device_tests; backend && t->name != NULL; t++)
        fprintf(c->to, "test contract/%s\n", t->name);
    if (plugin->options->level < CONFORM_OPS || !find_device(c, plugin))
        return;
    fprintf(c->to, "device %s\n%s", tn_device_name(plugin->device),
            all_on_host(plugin) ? "host\n" : "");
    ops = tn_op_count();
    for (int level = CONFORM_OPS; level <= plugin->options->level && level <= CONFORM_GRAD; level++)
        for (int64_t i = 0; i < ops; i++) {
            const char *name = tn_op_name_at(i);
            const tn_op_def *def = tn_op_definition(tn_op_find(name, 0));

            if (!conform_concerns(plugin, name))
                continue;
            if (level == CONFORM_GRAD && def->derive == NULL && def->decompose == NULL &&
                !(def->flags & TN_OP_VIEW))
                continue;
            fprintf(c->to, "test %s/%s\n", level == CONFORM_OPS ? "ops" : "grad", name);
        }
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (plugin->options->level >= kinds[k].level)
            plan_kind(c, plugin, &kinds[k]);
}

static const conform_test *test_named(const conform_test *tests, const char *name)
{
    while (tests->name != NULL && strcmp(tests->name, name) != 0)
        tests++;
    return tests->name != NULL ? tests : NULL;
}

static void perform(conform *c, conform_plugin *plugin)
{
    const conform_test *t = NULL;

    if (strncmp(c->name, "contract/", 9) == 0) {
        t = test_named(conform_contract_tests, c->subject);
        if (t == NULL)
            t = test_named(conform_device_tests, c->subject);
        if (t == NULL) {
            conform_fail(c, "test %s: unknown name; expected one that tenon check --list prints",
                         c->name);
            return;
        }
        if ((t->for_backends || strcmp(c->subject, "scarce-memory") == 0 ||
             strcmp(c->subject, "kernels-run") == 0) &&
            !find_device(c, plugin))
            return;
        t->run(c);
        return;
    }
    if (!plugin->reference && conform_reference(TN_OP_PRIMITIVE) != TN_OK) {
        conform_fail(c, "reference: %s", tn_error_text());
        return;
    }
    plugin->reference = true;
    if (!find_device(c, plugin))
        return;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strncmp(c->name, kinds[k].folder, strlen(kinds[k].folder)) == 0) {
            kinds[k].run(c);
            return;
        }
    if (strncmp(c->name, "ops/", 4) == 0)
        conform_op(c);
    else
        conform_gradient(c);
}

/* Returns true if a test needs the allocator of failing_memory.c, because it makes allocations fail
 * or counts them. */
static bool needs_scarce_memory(const char *test)
{
    return strcmp(test, "contract/scarce-memory") == 0 || strncmp(test, "ops/", 4) == 0 ||
           strncmp(test, "grad/", 5) == 0 || strncmp(test, "layers/", 7) == 0 ||
           strncmp(test, "formats/", 8) == 0;
}

/* Runs one of the tests of the process. `loaded`: whether the plugin was loaded. */
static void run_one(conform *c, conform_plugin *plugin, const char *test, bool loaded)
{
    double began = conform_now();

    c->name = test;
    c->subject = strchr(test, '/') != NULL ? strchr(test, '/') + 1 : test;
    if (loaded && strcmp(test, "plan") == 0) {
        fprintf(c->to, "id %s\nversion %s\n", plugin->id, plugin->version);
        plan(c, plugin);
    } else if (loaded) {
        perform(c, plugin);
    }
    fprintf(c->to, "checks %lld\ntook %.3f\n", (long long)c->checks, conform_now() - began);
    c->checks = 0;
    c->verdict = CONFORM_PASS;
}

int conform_child(const conform_options *options, const char *tests, int fd)
{
    conform_plugin plugin = { .options = options };
    conform c = { .plugin = &plugin, .to = fdopen(fd, "w") };
    char *copy = strdup(tests), *rest = NULL;
    const char *test = copy != NULL ? strtok_r(copy, ",", &rest) : NULL;
    bool loaded;

    if (c.to == NULL || test == NULL)
        return 3;
    conform_remember_process();
    if (needs_scarce_memory(test))
        conform_scarce_memory();
    c.name = test;
    fprintf(c.to, "begin %s\n", test);
    loaded = load(&c, &plugin);
    run_one(&c, &plugin, test, loaded);
    while ((test = strtok_r(NULL, ",", &rest)) != NULL) {
        fprintf(c.to, "begin %s\n", test);
        fflush(c.to);
        run_one(&c, &plugin, test, loaded);
    }
    fputs("done\n", c.to);
    fflush(c.to);
    tn_shutdown();
    fprintf(c.to, "ended\n");
    fclose(c.to);
    free(copy);
    return 0;
}
