/* SPDX-License-Identifier: MIT
 *
 * Law 4: every allocation that tests/module/test_memory.c does not reach is made to fail in turn:
 * those of registering and opening plugins, operators, kernels and devices, and those of rare code
 * paths of operators, gradients, modules and states. Each time the call fails with an error, and
 * later calls work. */
#include "tests/base/suite.h"
#include "tests/op/toy_device.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what there is to do --------------------------------------------------------------------- */

static tn_status infer_same(tn_infer *infer)
{
    infer->out[0].dtype = TN_F32;
    infer->out[0].ndim = infer->in[0]->ndim;
    for (int32_t d = 0; d < infer->in[0]->ndim; d++)
        infer->out[0].shape[d] = infer->in[0]->shape[d];
    return TN_OK;
}

static tn_status run_nothing(const tn_call *call)
{
    memset(toy_floats(call->out[0]), 0, (size_t)toy_count(call->out[0]) * sizeof(float));
    return TN_OK;
}

static tn_tensor *forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    return input;
}

static const tn_operand operand[] = { { "x", 0, 0 } };
static const tn_op_def op = { TN_HEAD(tn_op_def), .name = "test_memory",    .revision = 1,
                              .inputs = operand,  .outputs = operand,       .n_inputs = 1,
                              .n_outputs = 1,     .flags = TN_OP_PRIMITIVE, .infer = infer_same };
static const tn_kernel_def kernel = { TN_HEAD(tn_kernel_def), .op = "test_memory",
                                      .device = "toy",        .name = "tn_nothing",
                                      .revision = 1,          .dtypes = TN_MASK_ALL,
                                      .run = run_nothing };
static const tn_layer_def layer = { TN_HEAD(tn_layer_def), .name = "TestMemory",
                                    .forward = forward };

static tn_status hook(void *user, tn_tensor *gradient, tn_tensor **replacement)
{
    (void)user;
    *replacement = tn_mul_scalar(gradient, 2.0);
    return *replacement != NULL ? TN_OK : tn_error_last_code();
}

static tn_status squares(tn_function_ctx *ctx, void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)user;
    for (int i = 0; i < 9; i++) {
        tn_status status = tn_function_save(ctx, in[0]);
        if (status != TN_OK)
            return status;
    }
    out[0] = tn_mul(in[0], in[0]);
    return out[0] != NULL ? TN_OK : tn_error_last_code();
}

static tn_status squares_back(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                              tn_tensor **gin)
{
    (void)user;
    gin[0] = tn_mul(gout[0], tn_mul_scalar(tn_function_saved(ctx, 8), 2.0));
    return gin[0] != NULL ? TN_OK : tn_error_last_code();
}

static const tn_function function = { .name = "squares",
                                      .forward = squares,
                                      .backward = squares_back };

/* Calls functions that a training step does not need. Stops at the first failure. */
static void rare(void)
{
    static const float values[6] = { 1, 2, 3, 4, 5, 6 };
    const tn_backward_options again = { sizeof again, .create_graph = 1 };
    const char *tree = "Mine(\n  (fc): Linear(2, 3)\n  (act): ReLU()\n)";
    char text[256];
    tn_tensor *first = NULL, *second = NULL, *y = NULL;
    TN_SCOPE;
    tn_tensor *x = tn_tensor_from(values, TN_F32, TN_SHAPE(6));
    if (x == NULL || tn_tensor_set_requires_grad(x, true) != TN_OK)
        return;
    if (tn_tensor_hook(x, hook, NULL, NULL) == 0)
        return;
    tn_tensor *cube = tn_sum(tn_mul(tn_mul(x, x), x));
    if (cube == NULL || tn_grad(&cube, NULL, 1, &x, &first, 1, &again) != TN_OK)
        return;
    tn_tensor *total = tn_sum(first);
    if (total == NULL || tn_grad(&total, NULL, 1, &x, &second, 1, NULL) != TN_OK)
        return;
    if (tn_function_call(&function, NULL, &x, 1, &y, 1) != TN_OK || tn_backward(tn_sum(y)) != TN_OK)
        return;
    tn_module *module = tn_module_parse(tree);
    if (module != NULL)
        tn_module_spec(module, text, sizeof text);
    tn_module_drop(module);
    tn_state *state = tn_failed() ? NULL : tn_state_new();
    for (int i = 0; state != NULL && i < 20; i++) {
        tn_snprint(text, sizeof text, "key %d", i);
        if (tn_state_set_meta(state, text, "value") != TN_OK ||
            tn_state_set(state, text, x) != TN_OK)
            break;
    }
    tn_state_drop(state);
    if (tn_failed())
        return;
    const tn_device *device = tn_device_find("toy");
    tn_tensor *there = device != NULL ? tn_tensor_empty(TN_SHAPE(2, 3), TN_F32, device) : NULL;
    if (there == NULL || tn_tensor_copy_in(there, values, sizeof values) != TN_OK)
        return;
    const tn_op *own = tn_op_find("test_memory", 0);
    if (own != NULL && tn_op_call(own, &there, 1, NULL, &y, 1) == TN_OK &&
        tn_set_fallback("cpu") == TN_OK)
        tn_relu(there);
}

static void register_all(void)
{
    if (tn_plugin_count() < 0 || tn_register(&toy) != TN_OK || tn_register(&op) != TN_OK ||
        tn_register(&kernel) != TN_OK)
        return;
    tn_register(&layer);
}

/* The second attempt registers what the first attempt could not register; everything else is
 * registered already. */
static bool register_rest(void)
{
    const void *const all[] = { &toy, &op, &kernel, &layer };

    for (int i = 0; i < 4; i++) {
        tn_status status = tn_register_contribution(all[i]);
        if (status != TN_OK && status != TN_ERR_REFUSED) /* refused: registered already */
            return false;
        tn_error_clear();
    }
    return true;
}

/* A number that changes when an operator, a kernel, a layer ... or a device is missing. */
static uint64_t sum_of_all(void)
{
    static const uint32_t kinds[] = { TN_KIND_tn_op_def,        TN_KIND_tn_layer_def,
                                      TN_KIND_tn_backend_def,   TN_KIND_tn_optimizer_def,
                                      TN_KIND_tn_scheduler_def, TN_KIND_tn_init_def,
                                      TN_KIND_tn_format_def };
    tn_plugin_report report;
    uint64_t sum = 1;

    for (int64_t i = 0; i < tn_plugin_count() && tn_plugin_report_at(i, &report) == TN_OK; i++)
        if (strcmp(report.id, "program") != 0) /* its count grows with what is tried again */
            sum = sum * 31 + (uint64_t)report.contributions * 1000 + (uint64_t)report.refused * 10 +
                  (uint64_t)report.outcome;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int64_t i = 0; i < tn_registry_count(kinds[k]); i++)
            for (const char *at = tn_registry_name(kinds[k], i); at != NULL && *at; at++)
                sum = sum * 31 + (unsigned char)*at;
    return sum;
}

/* ---- in the steady state --------------------------------------------------------------------- */

static int64_t live(void)
{
    tn_memory_stats stats;
    ck_assert_int_eq(tn_device_memory(tn_default_device(), &stats), TN_OK);
    return stats.live;
}

START_TEST(each_allocation_on_rare_ways_fails_in_turn_law_4)
{
    register_all();
    rare();
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    int64_t before = live(), nodes = tn_grad_node_count(), failures = 0;
    bool reached = true;
    for (uint64_t n = 1; reached; n++) {
        ck_assert_uint_lt(n, 10000);
        tn__memory_fail(n);
        rare();
        reached = tn__memory_fail(0) >= n;
        ck_assert_msg(!tn_failed() || tn_error_code() == TN_ERR_MEMORY, "allocation %d: %s", (int)n,
                      tn_error_text());
        failures += tn_failed();
        tn_error_clear();
        ck_assert_int_eq(live(), before);
        ck_assert_int_eq(tn_grad_node_count(), nodes);
    }
    ck_assert_int_gt(failures, 20);
}
END_TEST

/* ---- at the first use ------------------------------------------------------------------------ */

enum {
    ALL_WENT_WELL = 3,
    WITHOUT_WORDS = 4,
    SILENT = 5,
    NOT_AGAIN = 6,
    SECOND_FAILED = 7,
    LESS = 8,
    NOT_OF_MEMORY = 9
};

static uint64_t *all_there; /* shared with the children */

/* Runs in its own process: registers the contributions of all plugins of this tree, and opens their
 * devices. The first attempt fails with TN_ERR_MEMORY; the second attempt succeeds and finds
 * everything. */
static int first_use(uint64_t n)
{
    tn__memory_fail(n);
    register_all();
    if (!tn_failed())
        rare();
    bool reached = tn__memory_fail(0) >= n, failed = tn_failed();
    if (failed && !tn_error_text()[0])
        return WITHOUT_WORDS;
    if (failed && !reached)
        return SILENT;
    if (failed && tn_error_code() != TN_ERR_MEMORY) {
        fprintf(stderr, "%s\n", tn_error_text());
        return NOT_OF_MEMORY;
    }
    tn_error_clear();
    if (!register_rest())
        return NOT_AGAIN;
    rare();
    if (tn_failed()) {
        fprintf(stderr, "%s\n", tn_error_text());
        return SECOND_FAILED;
    }
    if (*all_there == 0)
        *all_there = sum_of_all();
    if (sum_of_all() != *all_there)
        return LESS;
    tn_shutdown();
    return reached ? 0 : ALL_WENT_WELL;
}

static void walk_first_use(void)
{
    setenv("TENON_LOG", "off", 1);
    all_there = mmap(NULL, sizeof *all_there, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                     -1, 0);
    ck_assert(all_there != MAP_FAILED);
    pid_t first = fork();
    if (first == 0)
        _exit(first_use(UINT64_MAX) == ALL_WENT_WELL ? 0 : 1);
    int good;
    ck_assert_int_eq(waitpid(first, &good, 0), first);
    ck_assert(WIFEXITED(good) && WEXITSTATUS(good) == 0 && *all_there != 0);
    /* After the first hundred, allocations are alike, in loops over contributions: only every 23rd
     * is made to fail. */
    for (uint64_t n = 1, turn = 0;; n += n < 100 ? 1 : 23, turn++) {
        int status;
        ck_assert_uint_lt(turn, 2000);
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0)
            exit(first_use(n)); /* not _exit, so that LeakSanitizer checks this process */
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status), "allocation %d: killed by signal %d", (int)n,
                      WTERMSIG(status));
        if (WEXITSTATUS(status) == ALL_WENT_WELL)
            return;
        ck_assert_msg(WEXITSTATUS(status) == 0, "allocation %d: check %d failed", (int)n,
                      WEXITSTATUS(status));
    }
}

START_TEST(allocations_of_the_first_use_fail_in_turn_law_4)
{
    walk_first_use();
}
END_TEST

START_TEST(allocations_of_the_first_use_fail_in_turn_when_all_is_checked_law_4)
{
    setenv("TENON_CHECK", "1", 1);
    walk_first_use();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_allocation_on_rare_ways_fails_in_turn_law_4,
        allocations_of_the_first_use_fail_in_turn_law_4,
        allocations_of_the_first_use_fail_in_turn_when_all_is_checked_law_4, NULL
    };
    return suite_run("memory of operators", tests);
}
