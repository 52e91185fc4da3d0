/* SPDX-License-Identifier: MIT
 *
 * The state after tn_shutdown: only the current copy of the registries remains allocated, and
 * objects live until the program drops them. An allocator of the program counts the bytes. */
#include "tests/base/suite.h"

#include <stdlib.h>

static _Atomic int64_t bytes;

static void *counted_alloc(void *user, size_t size, size_t alignment)
{
    size_t whole = (size + alignment - 1) / alignment * alignment;
    void *block = aligned_alloc(alignment, whole > 0 ? whole : alignment);

    (void)user;
    if (block != NULL)
        atomic_fetch_add(&bytes, (int64_t)size);
    return block;
}

static void counted_free(void *user, void *block, size_t size, size_t alignment)
{
    (void)user;
    (void)alignment;
    if (block != NULL)
        atomic_fetch_sub(&bytes, (int64_t)size);
    free(block);
}

static void *counted_resize(void *user, void *block, size_t old_size, size_t size, size_t alignment)
{
    void *moved = counted_alloc(user, size, alignment);

    if (moved == NULL)
        return NULL;
    if (block != NULL)
        memcpy(moved, block, old_size < size ? old_size : size);
    counted_free(user, block, old_size, alignment);
    return moved;
}

/* A step of training, which uses operators, layers, an optimizer and the thread pool. */
static double work(void)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(64, 64), ReLU(), Linear(64, 2))");
    tn_optimizer *optimizer = tn_optimizer_new(net, "Adam()");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(512, 64), 1, TN_F32, NULL);
    tn_tensor *loss = tn_mean(tn_module_call(net, x));
    double value;

    ck_assert_msg(loss != NULL && tn_backward(loss) == TN_OK &&
                      tn_optimizer_step(optimizer) == TN_OK,
                  "%s", tn_error_text());
    value = tn_item(loss);
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
    return value;
}

START_TEST(one_copy_of_the_registries_stays)
{
    const tn_allocator counted = { .alloc = counted_alloc,
                                   .resize = counted_resize,
                                   .free = counted_free };
    int64_t contributions = 0, once, again;

    ck_assert_int_eq(tn_set_allocator(&counted), TN_OK);
    work();
    for (uint32_t kind = TN_KIND_tn_backend_def; kind < TN_KIND_END; kind++) {
        int64_t count = tn_registry_count(kind);

        contributions += count > 0 ? count : 0;
    }
    tn_error_clear();
    ck_assert_int_gt(contributions, 500);
    tn_shutdown();
    once = bytes;
    /* A copy of the list of operators at each registration would need 1.5 MB for 430 operators. */
    ck_assert_msg(once < 1024 * contributions, "%lld bytes, %lld contributions", (long long)once,
                  (long long)contributions);
    tn_shutdown();
    again = bytes;
    ck_assert_msg(again == once, "%lld bytes, then %lld", (long long)once, (long long)again);
}
END_TEST

/* An object from before tn_shutdown can be read and dropped; a call fails and says why. */
START_TEST(objects_stay_until_they_are_dropped)
{
    tn_module *net = tn_module_new("Linear(3, 2)");
    /* A reference of its own, because tn_shutdown ends the scopes of the thread. */
    tn_tensor *x = tn_tensor_keep(tn_tensor_full(TN_SHAPE(4, 3), 1, TN_F32, NULL));

    ck_assert_ptr_nonnull(tn_module_call(net, x));
    tn_shutdown();
    ck_assert_int_eq(tn_tensor_size(tn_module_get(net, "weight"), 1), 3);
    ck_assert_ptr_null(tn_module_call(net, x));
    expect_failure(TN_ERR_RUNTIME, "call tn_shutdown last");
    ck_assert_int_ge(tn_op_count(), 400);
    tn_module_drop(net);
    tn_tensor_drop(x);
    tn_shutdown();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        one_copy_of_the_registries_stays,
        objects_stay_until_they_are_dropped,
        NULL,
    };
    return suite_run("shutdown", tests);
}
