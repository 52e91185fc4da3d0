/* SPDX-License-Identifier: MIT
 *
 * Law 4: every allocation of building, calling, training, saving and loading a small network is
 * made to fail in turn: each time the call fails with an error, no memory leaks, and the file on
 * the disk is the old one or the new one. */
#include "tests/module/toy_layers.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

/* ---- a ledger of the library's memory, so that a leak shows without a sanitizer, too --------- */

static _Atomic int64_t ledger;

/* The header before each piece of memory. After the requested bytes are AFTER bytes with MARK. */
struct piece {
    struct piece *next, *before;
    size_t size, room; /* the requested bytes; the bytes of the header, with its padding */
};
enum { AFTER = 64, MARK = 0xa5 };
static struct piece *pieces;
static int64_t overrun;
static pthread_mutex_t pieces_lock = PTHREAD_MUTEX_INITIALIZER;

static void check_piece(const struct piece *piece)
{
    const unsigned char *end = (const unsigned char *)piece + piece->room + piece->size;
    for (int i = 0; i < AFTER; i++)
        overrun += end[i] != MARK;
}

/* Returns how many bytes after requested ones have been overwritten since the program began. */
static int64_t written_behind(void)
{
    pthread_mutex_lock(&pieces_lock);
    for (const struct piece *piece = pieces; piece != NULL; piece = piece->next)
        check_piece(piece);
    int64_t found = overrun;
    pthread_mutex_unlock(&pieces_lock);
    return found;
}

static size_t room_before(size_t alignment)
{
    return alignment > sizeof(struct piece) ? alignment : sizeof(struct piece);
}

static void *ledger_alloc(void *user, size_t size, size_t alignment)
{
    size_t room = room_before(alignment);
    void *memory;
    (void)user;
    if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment,
                       room + size + AFTER))
        return NULL;
    struct piece *piece = memory;
    memset((char *)memory + room + size, MARK, AFTER);
    pthread_mutex_lock(&pieces_lock);
    *piece = (struct piece){ .next = pieces, .size = size, .room = room };
    if (pieces != NULL)
        pieces->before = piece;
    pieces = piece;
    pthread_mutex_unlock(&pieces_lock);
    ledger += (int64_t)size;
    return (char *)memory + room;
}

static void ledger_free(void *user, void *memory, size_t size, size_t alignment)
{
    (void)user;
    if (memory == NULL)
        return;
    struct piece *piece = (struct piece *)(void *)((char *)memory - room_before(alignment));
    pthread_mutex_lock(&pieces_lock);
    check_piece(piece);
    *(piece->before != NULL ? &piece->before->next : &pieces) = piece->next;
    if (piece->next != NULL)
        piece->next->before = piece->before;
    pthread_mutex_unlock(&pieces_lock);
    ledger -= (int64_t)size;
    free(piece);
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

/* Caches fill up and then keep their size; memory that grows in every round is a leak. */
enum { ROUNDS = 4 };
static bool grows(const int64_t after[ROUNDS])
{
    bool more = true;
    for (int i = 1; i < ROUNDS; i++)
        more = more && after[i] > after[i - 1];
    return more;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static const float xs[4][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } };
static const int64_t ys[4] = { 0, 1, 1, 0 };
static char file[128];

static bool has_safetensors(void)
{
    bool found = false;
    for (int64_t i = 0; i < tn_registry_count(TN_KIND_tn_format_def); i++)
        found = found || strcmp(tn_registry_name(TN_KIND_tn_format_def, i), "safetensors") == 0;
    return found;
}

/* All that a small program does; whatever fails, what was made is dropped. */
static void use(void)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(fc=Linear(2, %d), act=ReLU(), out=Linear(3, 2))", 3);
    tn_module *copy = tn_module_parse("Sequential(fc=Linear(2, 3), act=ReLU(), out=Linear(3, 2))");
    tn_optimizer *optimizer = tn_optimizer_new(net, "Adam(lr=0.1, weight_decay=0.1, amsgrad=True)");
    tn_scheduler *scheduler = tn_scheduler_new(optimizer, "StepLR(step_size=%d)", 1);
    tn_tensor *more = tn_module_find_parameter(copy, "fc.weight");
    if (!tn_failed())
        tn_optimizer_add_group(optimizer, &more, 1, "lr=0.2, betas=(0.5, 0.75)");
    if (!tn_failed())
        tn_optimizer_set(optimizer, -1, "betas[0]", 0.25);
    for (int step = 0; step < 2 && !tn_failed(); step++) {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_from(xs, TN_F32, TN_SHAPE(4, 2));
        tn_tensor *y = tn_tensor_from(ys, TN_I64, TN_SHAPE(4));
        tn_tensor *loss = tn_cross_entropy(tn_module_call(net, x), y);
        tn_module_zero_grad(net);
        tn_backward(loss);
        tn_optimizer_step(optimizer);
        tn_scheduler_step(scheduler);
    }
    char text[256];
    if (!tn_failed())
        tn_scheduler_state_text(scheduler, text, sizeof text);
    if (!tn_failed())
        tn_scheduler_set_state(scheduler, text);
    if (!tn_failed())
        tn_module_spec(net, text, sizeof text);
    if (!tn_failed())
        tn_module_repr(net, text, sizeof text);
    if (!tn_failed())
        tn_module_to(net, NULL, TN_F64);
    if (has_safetensors()) {
        tn_module_save(net, file);
        if (!tn_failed())
            tn_module_load(copy, file);
    }
    if (!tn_failed())
        tn_module_to(net, NULL, TN_F32);
    tn_scheduler_drop(scheduler);
    tn_optimizer_drop(optimizer);
    tn_module_drop(copy);
    tn_module_drop(net);
}

START_TEST(each_allocation_of_a_small_network_fails_in_turn_law_4)
{
    tn_snprint(file, sizeof file, "memory-%d.safetensors", (int)getpid());
    use();
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    int64_t live = live_bytes(), nodes = tn_grad_node_count();
    int64_t after[ROUNDS] = { 0 };
    uint64_t failures = 0;
    for (uint64_t n = 1; n < 100000; n++) {
        tn__memory_fail(n);
        use();
        bool reached = tn__memory_fail(0) >= n;
        for (int i = 0; i < ROUNDS && reached && n % 3 == 0; i++) {
            tn_error_clear();
            tn__memory_fail(n);
            use();
            tn__memory_fail(0);
            after[i] = ledger;
        }
        ck_assert_msg(n % 3 != 0 || !grows(after), "allocation %d: something is lost", (int)n);
        ck_assert_msg(!tn_failed() || tn_error_code() == TN_ERR_MEMORY, "allocation %d: %s", (int)n,
                      tn_error_text());
        failures += tn_failed();
        tn_error_clear();
        ck_assert_int_eq(live_bytes(), live);
        ck_assert_int_eq(tn_grad_node_count(), nodes);
        if (!reached)
            break;
    }
    ck_assert_uint_gt(failures, 50);
    unlink(file);
}
END_TEST

/* Calls that fail halfway: a wrong spec, a shape that does not fit, a file of another kind. */
static void refuse(int which)
{
    static const char *const specs[] = {
        "Linaer(4, 3)",
        "Linear(-4, 3)",
        "Sequential(Linear(4, 3), Sequential(Linear(3, 3), Linaer(3, 2)))",
        "Sequential(a=Linear(4, 3), a=ReLU())",
        "Probe(100, fail=True)",
        "Sequential(\n  (0): Linear(4, 3)\n  (1): Linear(4)\n)",
        "MyNet(\n  (fc1): Linear(in_features=4, out_features=3, bias=True)\n  (fc1): ReLU()\n)",
        "Linear(4, 3",
        "[1, [2, (3, 'four']",
    };
    TN_SCOPE;
    tn_module *net = NULL;
    tn_optimizer *optimizer = NULL;
    if (which < (int)tn__countof(specs)) {
        tn_module_drop(tn_module_parse(specs[which]));
        return;
    }
    net = tn_module_new("Sequential(Linear(2, 3), ReLU(), Probe(3), Linear(4, 2))");
    optimizer = tn_optimizer_new(net, "SGD(lr=0.1)");
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    tn_tensor *x = tn_tensor_from(xs, TN_F32, TN_SHAPE(4, 2));
    switch (which - (int)tn__countof(specs)) {
    case 0: tn_module_call(net, x); break;
    case 1: tn_backward(tn_relu(tn_matmul(x, tn_module_find_tensor(net, "0.weight")))); break;
    case 2: tn_optimizer_drop(tn_optimizer_new(net, "SGD(lr=0.1, momentun=1)")); break;
    case 3: tn_optimizer_drop(tn_optimizer_new(net, "SGD(lr=-1)")); break;
    case 4: tn_scheduler_drop(tn_scheduler_new(optimizer, "StepLR()")); break;
    case 5: tn_module_load(net, "/dev/null"); break;
    case 6: tn_module_save(net, "/nowhere/x.safetensors"); break;
    case 7: tn_module_add_child(net, "a.b", net); break;
    case 8: tn_module_add_parameter(net, "p", tn_relu(tn_module_find_tensor(net, "0.bias"))); break;
    case 9: tn_init(tn_module_find_tensor(net, "0.weight"), "kaiming_uniform(a='x')"); break;
    }
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
}

START_TEST(what_is_refused_half_way_loses_nothing_law_4)
{
    register_probes();
    for (int which = 0; which < 19; which++) {
        int64_t after[ROUNDS];
        for (int i = 0; i < ROUNDS; i++) {
            refuse(which);
            ck_assert_msg(tn_failed(), "case %d went well", which);
            tn_error_clear();
            after[i] = ledger;
        }
        ck_assert_msg(!grows(after), "case %d loses %d bytes every time", which,
                      (int)(after[ROUNDS - 1] - after[ROUNDS - 2]));
    }
}
END_TEST

START_TEST(a_value_of_a_state_that_is_replaced_is_given_back)
{
    int64_t after[ROUNDS] = { 0 };
    for (int i = 0; i < ROUNDS; i++) {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_full(TN_SHAPE(100), 1, TN_F32, NULL);
        tn_state *state = tn_state_new();
        for (int k = 0; k < 5; k++) {
            ck_assert_int_eq(tn_state_set(state, "a", tn_add(x, x)), TN_OK);
            ck_assert_int_eq(
                tn_state_set_value(state, "b", tn_value_string("a text of some length")), TN_OK);
        }
        ck_assert_int_eq(tn_state_count(state), 2);
        tn_state_drop(state);
        after[i] = ledger;
    }
    ck_assert(!grows(after));
}
END_TEST

/* The inits that compute a matrix in float64 and copy it to the tensor. */
START_TEST(each_allocation_of_an_init_of_a_matrix_fails_in_turn_law_4)
{
    static const char *const inits[] = { "orthogonal()", "sparse(sparsity=0.5)", "dirac()",
                                         "eye()" };
    static const tn_dtype types[] = { TN_F32, TN_F64 };
    for (int k = 0; k < 8; k++) {
        TN_SCOPE;
        tn_tensor *t = tn_tensor_full(k / 2 == 2 ? TN_SHAPE(3, 2, 2) : TN_SHAPE(3, 2), 7,
                                      types[k % 2], NULL);
        uint64_t failures = 0;
        for (uint64_t n = 1; n < 1000; n++) {
            tn__memory_fail(n);
            tn_status status = tn_init(t, inits[k / 2]);
            bool reached = tn__memory_fail(0) >= n;
            ck_assert_msg(status == (reached ? TN_ERR_MEMORY : TN_OK) ||
                              (reached && status == TN_OK),
                          "%s, allocation %d: %s", inits[k / 2], (int)n, tn_error_text());
            failures += status != TN_OK;
            tn_error_clear();
            if (!reached)
                break;
        }
        ck_assert_int_gt((int)failures, 0);
    }
}
END_TEST

/* Returns the loss of AdaptiveLogSoftmaxWithLoss, whose forward pass loops over clusters; NaN after
 * a failure. */
static double adaptive_loss(tn_module *layer, tn_tensor *x, tn_tensor *target)
{
    tn_pack *input = tn_pack_new(), *output = tn_pack_new();
    double loss = NAN;
    if (input != NULL && output != NULL && tn_pack_add(input, NULL, tn_value_tensor(x)) == TN_OK &&
        tn_pack_add(input, NULL, tn_value_tensor(target)) == TN_OK &&
        tn_module_call_pack(layer, input, output) == TN_OK)
        loss = tn_item(tn_pack_tensor(output, 1));
    tn_pack_drop(input);
    tn_pack_drop(output);
    return loss;
}

START_TEST(a_failure_of_memory_in_a_loop_over_clusters_is_no_other_loss)
{
    TN_SCOPE;
    const int64_t classes[] = { 0, 2, 4, 5, 7, 3 };
    tn_module *layer = tn_module_new("AdaptiveLogSoftmaxWithLoss(4, 8, (2, 4, 6))");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(6, 4), 0.1, TN_F32, NULL);
    tn_tensor *target = tn_tensor_from(classes, TN_I64, TN_SHAPE(6));
    int failures = 0;
    bool reached = true;
    x = tn_cumsum(x, 0);
    double expected = adaptive_loss(layer, x, target);
    ck_assert_msg(!tn_failed() && expected > 0, "%s", tn_error_text());
    for (uint64_t n = 1; reached; n++) {
        TN_SCOPE;
        ck_assert_uint_lt(n, 10000);
        tn__memory_fail(n);
        double loss = adaptive_loss(layer, x, target);
        reached = tn__memory_fail(0) >= n;
        ck_assert_msg(!tn_failed() || tn_error_code() == TN_ERR_MEMORY, "allocation %d: %s", (int)n,
                      tn_error_text());
        ck_assert_msg(isnan(loss) ? tn_failed() : loss == expected,
                      "allocation %d: loss %g, expected %g", (int)n, loss, expected);
        failures += tn_failed();
        tn_error_clear();
    }
    ck_assert_int_gt(failures, 20);
    tn_module_drop(layer);
}
END_TEST

/* More channels than the smallest piece of scratch memory can hold. */
START_TEST(a_convolution_of_many_channels_writes_only_into_its_memory)
{
    enum { CHANNELS = 20000 };
    int64_t before = written_behind();
    {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_full(TN_SHAPE(1, CHANNELS, 2, 2), 2, TN_F32, NULL);
        tn_tensor *weight = tn_tensor_full(TN_SHAPE(CHANNELS, 1, 2, 2), 3, TN_F32, NULL);
        tn_tensor *bias = tn_tensor_full(TN_SHAPE(CHANNELS), 1, TN_F32, NULL);
        tn_tensor *y = tn_conv2d(x, weight, bias, tn_no_ints(), tn_no_ints(), tn_no_ints(),
                                 CHANNELS);
        ck_assert_msg(y != NULL, "%s", tn_error_text());
        ck_assert_double_eq(tn_item(tn_amin(y)), 25);
        ck_assert_double_eq(tn_item(tn_amax(y)), 25);
    }
    ck_assert_int_eq(written_behind(), before);
    ck_assert_int_eq(before, 0);
}
END_TEST

int main(void)
{
    const tn_allocator own = { ledger_alloc, ledger_resize, ledger_free, NULL, { NULL } };
    const TTest *const tests[] = { each_allocation_of_a_small_network_fails_in_turn_law_4,
                                   what_is_refused_half_way_loses_nothing_law_4,
                                   a_value_of_a_state_that_is_replaced_is_given_back,
                                   each_allocation_of_an_init_of_a_matrix_fails_in_turn_law_4,
                                   a_failure_of_memory_in_a_loop_over_clusters_is_no_other_loss,
                                   a_convolution_of_many_channels_writes_only_into_its_memory,
                                   NULL };
    if (tn_set_allocator(&own) != TN_OK)
        return EXIT_FAILURE;
    return suite_run("memory", tests);
}
