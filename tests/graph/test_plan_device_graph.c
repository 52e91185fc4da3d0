/* SPDX-License-Identifier: MIT
 *
 * Plans that the strict device records (`plan(device_graph=True)`): each allocation of the host and
 * of the device that fails is an error, after which the module works. */
#include <tenon/tenon.h>

#include "examples/strict-device/strict.h"
#include "tests/graph/plan_module.h"

static struct planning {
    tn_module *net;
    tn_tensor *x, *expected;
} p;

static const struct strict_api *api(void)
{
    const tn_device *device = tn_device_find("strict");

    ck_made(device);
    return tn_device_native(device, STRICT_API_ID);
}

static void begin(const char *spec, tn_tensor *x)
{
    const tn_device *device = tn_device_find("strict");

    ck_made(device);
    tn_random_seed(1);
    p.net = tn_module_new("%s", spec);
    ck_made(p.net);
    ck_ok(tn_module_eval(p.net));
    ck_ok(tn_module_to(p.net, device, TN_F32));
    p.x = tn_copy_(tn_tensor_empty(tn_tensor_shape(x), TN_F32, device), x);
    ck_made(p.x);
    ck_ok(tn_grad_begin(false));
    p.expected = tn_module_call(p.net, p.x);
    ck_made(p.expected);
}

static void end(void)
{
    tn_grad_end();
    tn_module_drop(p.net);
}

/* Makes a plan and its record, launches it twice, and drops both. */
static bool make_and_launch(void *user)
{
    TN_SCOPE;
    bool well = tn_module_compile(p.net, "plan(device_graph=True)") == TN_OK;

    (void)user;
    for (int i = 0; i < 2 && well; i++)
        well = tn_module_call(p.net, p.x) != NULL;
    return well;
}

/* The module runs as before, eagerly and by a plan. */
static void check_results(void)
{
    TN_SCOPE;

    for (int i = 0; i < 3; i++) {
        if (i == 1)
            ck_ok(tn_module_compile(p.net, "plan(device_graph=True)"));
        ck_same(tn_module_call(p.net, p.x), p.expected);
        if (i == 2)
            ck_ok(tn_module_compile(p.net, "eager()"));
    }
}

START_TEST(each_allocation_of_the_host_that_fails_is_an_error)
{
    TN_SCOPE;
    begin("Sequential(Linear(3, 8), ReLU(), Linear(8, 4), Softmax(1))", numbers(1));
    ck_assert(make_and_launch(NULL));
    ck_ok(tn_module_compile(p.net, "eager()"));
    ck_assert_int_gt(fail_each_allocation(make_and_launch, NULL), 100);
    ck_ok(tn_module_compile(p.net, "eager()"));
    check_results();
    end();
}
END_TEST

START_TEST(each_allocation_of_the_device_that_fails_is_an_error)
{
    TN_SCOPE;
    tn_memory_stats before, after;
    int failures = 0;

    begin("Sequential(ReLU(), Sigmoid())", numbered(TN_SHAPE(800, 1000), 1)); /* not from a pool */
    ck_ok(tn_device_memory(tn_device_find("strict"), &before));
    for (int n = 1;; n++) {
        char text[32];
        bool well;

        ck_ok(tn_device_trim(tn_device_find("strict")));
        snprintf(text, sizeof text, "alloc:%d+", n); /* the core tries again after the first */
        ck_ok(api()->inject(text));
        well = make_and_launch(NULL);
        ck_ok(api()->inject(""));
        ck_assert_msg(well || tn_error_code() == TN_ERR_MEMORY, "allocation %d: %s", n,
                      tn_error_text());
        tn_error_clear();
        ck_ok(tn_module_compile(p.net, "eager()"));
        check_results();
        if (well)
            break;
        failures++;
    }
    ck_assert_int_ge(failures, 1); /* the slab; results may get memory that is cached */
    ck_ok(tn_device_memory(tn_device_find("strict"), &after));
    ck_assert_int_eq(after.live, before.live);
    end();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { each_allocation_of_the_host_that_fails_is_an_error,
                                   each_allocation_of_the_device_that_fails_is_an_error, NULL };
    char folder[TEST_PATH];

    setenv("TENON_PLUGIN_PATH_ADD", built_path(folder, "examples/strict-device/.libs"), 1);
    return suite_run("plan device graph", tests);
}
