/* SPDX-License-Identifier: MIT
 *
 * Law 4: every allocation of optimizers and averaged models, except those of plain steps, is made
 * to fail in turn. Each time the call fails with an error, no memory leaks, and no object is
 * changed in part. */
#include "whole.h"

/* ---- a ledger of the library's memory -------------------------------------------------------- */

static _Atomic int64_t ledger;

static void *ledger_alloc(void *user, size_t size, size_t alignment)
{
    void *memory;

    (void)user;
    if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment,
                       size > 0 ? size : 1))
        return NULL;
    ledger += (int64_t)size;
    return memory;
}

static void ledger_free(void *user, void *memory, size_t size, size_t alignment)
{
    (void)user, (void)alignment;
    if (memory != NULL)
        ledger -= (int64_t)size;
    free(memory);
}

static void *ledger_resize(void *user, void *memory, size_t old_size, size_t size, size_t alignment)
{
    void *fresh = ledger_alloc(user, size, alignment);

    if (fresh != NULL && memory != NULL) {
        memcpy(fresh, memory, old_size < size ? old_size : size);
        ledger_free(user, memory, old_size, alignment);
    }
    return fresh;
}

/* ---- what there is to do --------------------------------------------------------------------- */

static tn_module *net;
static int registered, released; /* hooks and functions with a release */

static void release(void *user)
{
    (void)user;
    released++;
}

static tn_status pass(void *user, tn_optimizer *optimizer)
{
    (void)user, (void)optimizer;
    return TN_OK;
}

static tn_status pass_state(void *user, tn_optimizer *optimizer, tn_state *state,
                            const char *prefix)
{
    (void)user, (void)optimizer, (void)state, (void)prefix;
    return TN_OK;
}

static tn_tensor *loss_of(void *user)
{
    tn_tensor *x = tn_tensor_full(TN_SHAPE(4, 2), 0.5, TN_F32, NULL), *loss;

    (void)user;
    loss = tn_sum(tn_square(tn_module_call(net, x)));
    return loss != NULL && tn_backward(loss) == TN_OK ? loss : NULL;
}

static tn_tensor *mean_of(void *user, tn_tensor *average, tn_tensor *value, int64_t count)
{
    (void)user, (void)count;
    return tn_mul_scalar(tn_add(average, value), 0.5);
}

static tn_tensor *next_batch(void *user)
{
    int *left = user;

    return (*left)-- > 0 ? tn_tensor_full(TN_SHAPE(4, 2), *left, TN_F32, NULL) : TN_NONE;
}

static void use_optimizer(void)
{
    TN_SCOPE;
    const char *names[1] = { "more" };
    tn_tensor *more = tn_parameter(tn_tensor_full(TN_SHAPE(3), 1, TN_F32, NULL), true);
    tn_optimizer *optimizer = more != NULL ? tn_optimizer_new(net, "Adam(lr=0.1)") : NULL;
    tn_optimizer *other = optimizer != NULL ? tn_optimizer_new(net, "Adam(lr=0.2)") : NULL;
    tn_state *state = NULL, *whole = NULL;
    char text[512];

    if (!tn_failed())
        registered += tn_optimizer_hook_step_pre(optimizer, pass, 0, NULL, release) != 0;
    if (!tn_failed())
        registered += tn_optimizer_hook_load_pre(optimizer, pass_state, 0, NULL, release) != 0;
    for (int i = 0; i < 9 && !tn_failed(); i++)
        registered += tn_optimizer_hook_step(optimizer, pass, TN_HOOK_PREPEND, NULL, release) != 0;
    if (!tn_failed())
        tn_optimizer_add_group_named(optimizer, &more, names, 1, "betas=(0.5, 0.75)");
    if (!tn_failed())
        tn_optimizer_add_group_named(other, &more, names, 1, NULL);
    if (!tn_failed())
        tn_optimizer_step_with(optimizer, loss_of, NULL);
    if (!tn_failed())
        tn_optimizer_zero_grad_in_place(optimizer);
    if (!tn_failed())
        tn_optimizer_repr(optimizer, text, sizeof text);
    if (!tn_failed())
        whole = tn_state_new();
    if (!tn_failed())
        tn_optimizer_save_state_into(optimizer, whole, "optimizer.");
    if (!tn_failed())
        state = tn_state_part(whole, "optimizer.");
    if (!tn_failed() && tn_optimizer_load_state(other, state) != TN_OK) {
        /* A load that fails has changed nothing. */
        double rate = 0;
        uint64_t mark = tn_error_mark();

        tn_optimizer_get(other, 0, "lr", &rate);
        tn_error_restore(mark);
        ck_assert_double_eq(rate, 0.2);
        ck_assert_int_eq(tn_optimizer_steps(other, 0), 0);
        ck_assert_int_eq(tn_optimizer_state_count(other, 0), 0);
    }
    tn_state_drop(state);
    tn_state_drop(whole);
    tn_optimizer_drop(other);
    tn_optimizer_drop(optimizer);
}

static void use_average(void)
{
    TN_SCOPE;
    tn_average_options options = TN_AVERAGE_OPTIONS;
    tn_module *equal = tn_average_new(net, NULL), *own = NULL;
    int batches_left = 2;

    options.one = mean_of;
    options.release = release;
    options.use_buffers = true;
    if (!tn_failed()) {
        own = tn_average_new(net, &options);
        registered += own != NULL;
    }
    for (int i = 0; i < 2 && !tn_failed(); i++) {
        int64_t before = tn_average_count(equal);

        if (!tn_failed() && tn_average_update(equal, net) != TN_OK) {
            uint64_t mark = tn_error_mark();

            ck_assert_int_eq(tn_average_count(equal), before);
            tn_error_restore(mark);
        }
        if (!tn_failed())
            tn_average_update(own, net);
    }
    if (!tn_failed()) {
        tn_module_update_statistics(equal, next_batch, &batches_left, NULL);
        ck_assert(tn_module_is_training(equal));
    }
    tn_module_drop(own);
    tn_module_drop(equal);
}

/* ---- the walk -------------------------------------------------------------------------------- */

enum { ROUNDS = 4 };
static bool grows(const int64_t after[ROUNDS])
{
    bool more = true;

    for (int i = 1; i < ROUNDS; i++)
        more = more && after[i] > after[i - 1];
    return more;
}

static void walk(void (*use)(void))
{
    int64_t failures = 0;
    bool reached = true;

    use();
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    for (uint64_t n = 1; reached; n++) {
        int64_t after[ROUNDS] = { 0 };

        ck_assert_uint_lt(n, 100000);
        for (int i = 0; i < ROUNDS && reached; i++) {
            tn_error_clear();
            tn__memory_fail(n);
            use();
            reached = tn__memory_fail(0) >= n;
            after[i] = ledger;
            ck_assert_msg(!tn_failed() || tn_error_code() == TN_ERR_MEMORY, "allocation %d: %s",
                          (int)n, tn_error_text());
            failures += tn_failed();
        }
        ck_assert_msg(!grows(after), "allocation %d: something is lost", (int)n);
        ck_assert_int_eq(released, registered);
    }
    tn_error_clear();
    ck_assert_int_gt(failures, 50);
}

START_TEST(each_allocation_of_an_optimizer_as_a_whole_fails_in_turn_law_4)
{
    net = tn_module_new("Sequential(Linear(2, 3), BatchNorm1d(3))");
    walk(use_optimizer);
    tn_module_drop(net);
}
END_TEST

START_TEST(each_allocation_of_an_averaged_model_fails_in_turn_law_4)
{
    net = tn_module_new("Sequential(Linear(2, 3), BatchNorm1d(3))");
    walk(use_average);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const tn_allocator own = { ledger_alloc, ledger_resize, ledger_free, NULL, { NULL } };
    const TTest *const tests[] = { each_allocation_of_an_optimizer_as_a_whole_fails_in_turn_law_4,
                                   each_allocation_of_an_averaged_model_fails_in_turn_law_4, NULL };

    if (tn_set_allocator(&own) != TN_OK)
        return EXIT_FAILURE;
    return suite_run("train memory", tests);
}
