/* SPDX-License-Identifier: MIT
 *
 * Scripts of modules with tn_cond and tn_loop: saved, loaded by a process that has no layers,
 * trained there, and saved again. */
#include "tests/graph/control.h"

#include <unistd.h>

static char folder[] = "/tmp/tenon-control-XXXXXX";
static char program[512];

typedef tn_tensor *(*forward_fn)(tn_module *, tn_tensor *);
static const forward_fn forwards[] = { cond_forward, loop_forward, nested_forward };

static const char *file(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* As train_by(), which only works in a test. */
static tn_status train(tn_module *net)
{
    TN_SCOPE;
    const float values[] = { 0.25f, 1.25f, 2.25f, 3.25f, 4.25f, 5.25f };
    tn_tensor *x = tn_tensor_from(values, TN_F32, TN_SHAPE(2, 3));
    tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=0.001)");
    tn_status status = optimizer != NULL ? tn_module_train(net, true) : TN_ERR_RUNTIME;

    for (int i = 0; i < 20 && status == TN_OK; i++) {
        TN_SCOPE;
        status = tn_module_zero_grad(net);
        if (status == TN_OK)
            status = tn_backward(tn_mean(tn_square(tn_module_call(net, x))));
        if (status == TN_OK)
            status = tn_optimizer_step(optimizer);
    }
    tn_optimizer_drop(optimizer);
    return status;
}

/* The other process: loads a script, trains it, and saves it. */
static int child(const char *in, const char *out)
{
    tn_module *script = tn_module_from_file(in), *layer;

    if (script == NULL) {
        fprintf(stderr, "%s\n", tn_error_text());
        return 1;
    }
    layer = tn_module_new("Linear(3, 3)");
    if (layer != NULL) /* it must not have layers */
        return 2;
    tn_error_clear();
    if (train(script) != TN_OK || tn_module_save(script, out) != TN_OK) {
        fprintf(stderr, "%s\n", tn_error_text());
        return 3;
    }
    tn_module_drop(script);
    return 0;
}

START_TEST(scripts_run_and_train_where_there_are_no_layers)
{
    TN_SCOPE;
    for (int f = 0; f < 3; f++) {
        tn_module *module = own(forwards[f]), *script = script_of(module, numbers(1)), *loaded;
        char command[1024], from[128];
        ck_ok(tn_module_save(script, file("net.script")));
        tn_module_drop(script);
        snprintf(from, sizeof from, "%s", file("net.script"));
        snprintf(command, sizeof command,
                 "TENON_PLUGINS=backend-cpu,ops,formats,optim %s child %s %s", program, from,
                 file("trained.script"));
        ck_assert_int_eq(system(command), 0);
        loaded = tn_module_from_file(file("trained.script"));
        ck_made(loaded);
        train_by("SGD(lr=0.001)", module, numbers(0.25f), 20);
        ck_same(tn_module_get(loaded, "scale"), tn_module_get(module, "scale"));
        for (int i = -3; i < 5; i++)
            ck_same(tn_module_call(loaded, numbers((float)i)),
                    tn_module_call(module, numbers((float)i)));
        tn_module_drop(loaded);
        tn_module_drop(module);
    }
    unlink(file("net.script"));
    unlink(file("trained.script"));
}
END_TEST

START_TEST(scripts_may_be_converted)
{
    TN_SCOPE;
    tn_module *module = own(cond_forward), *script = script_of(module, numbers(1)), *loaded;
    tn_tensor *x = tn_cast(numbers(4), TN_F64), *y;
    ck_ok(tn_module_to(script, NULL, TN_F64));
    y = tn_module_call(script, x);
    ck_made(y);
    ck_assert_int_eq(tn_tensor_dtype(y), TN_F64);
    ck_ok(tn_module_save(script, file("net.script")));
    loaded = tn_module_from_file(file("net.script"));
    ck_made(loaded);
    ck_same(tn_module_call(loaded, x), y);
    unlink(file("net.script"));
    tn_module_drop(loaded);
    tn_module_drop(script);
    tn_module_drop(module);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = { scripts_run_and_train_where_there_are_no_layers,
                                   scripts_may_be_converted, NULL };
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    int failed;

    if (argc == 4 && strcmp(argv[1], "child") == 0)
        return child(argv[2], argv[3]);
    if (length <= 0 || mkdtemp(folder) == NULL)
        return 1;
    failed = suite_run("control_scripts", tests);
    rmdir(folder);
    return failed;
}
