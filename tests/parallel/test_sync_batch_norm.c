/* SPDX-License-Identifier: MIT
 *
 * SyncBatchNorm on 2 and 3 ranks beside PyTorch's BatchNorm2d on the whole batch: values, gradients
 * and running statistics (sync_batch_norm.txt, made by make_sync_batch_norm.py). */
#include "tests/parallel/suite.h"

enum { BATCH = 6, CHANNELS = 3, PIXELS = 4, ALL = BATCH * CHANNELS * PIXELS };

/* The results of PyTorch: those of two steps in training, then of one in evaluation. */
static struct expected {
    double y[2][ALL], gx[2][ALL], weight[2][CHANNELS], bias[2][CHANNELS], mean[CHANNELS],
        var[CHANNELS], evaluated[ALL];
} expected;

static double momentum;
static int64_t counts[RANKS]; /* samples of each rank */

static void read_expected(const char *name)
{
    char path[512], word[64];
    FILE *file;
    bool found_name = false;

    snprintf(path, sizeof path, "%s/tests/parallel/sync_batch_norm.txt", getenv("abs_srcdir"));
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (!found_name && fscanf(file, "%63s", word) == 1)
        found_name = strcmp(word, name) == 0;
    ck_assert(found_name);
    for (size_t i = 0; i < sizeof expected / sizeof(double); i++)
        ck_assert_int_eq(fscanf(file, "%lf", (double *)&expected + i), 1);
    fclose(file);
}

static int64_t first_of(int rank)
{
    int64_t first = 0;

    for (int r = 0; r < rank; r++)
        first += counts[r];
    return first;
}

/* The samples of this rank, in float64. */
static tn_tensor *part(int seed)
{
    tn_tensor *all = tn_cast(numbers(TN_SHAPE(BATCH, CHANNELS, 2, 2), seed), TN_F64);

    return tn_narrow(all, 0, first_of(rank_), counts[rank_]);
}

static void normalize(void)
{
    tn_module *module = tn_module_new("Sequential(BatchNorm2d(3, momentum=%s))",
                                      isnan(momentum) ? "None" : "0.3"),
              *net;
    tn_tensor *mean;

    NEED(module != NULL);
    NEED_OK(tn_module_cast(module, TN_F64));
    mean = tn_module_find_tensor(module, "0.running_mean");
    net = tn_sync_batch_norm_convert(module, group_);
    NEED(net == module && strcmp(tn_module_type(tn_module_child(net, "0")), "SyncBatchNorm") == 0);
    NEED(tn_module_find_tensor(net, "0.running_mean") == mean);
    for (int step = 0; step < 2; step++) {
        tn_tensor *x = tn_clone(part(step)), *y;

        NEED_OK(tn_tensor_set_requires_grad(x, true));
        y = tn_module_call(net, x);
        tell(y);
        NEED_OK(tn_backward_with(y, part(step + 10), false));
        tell(tn_tensor_grad(x));
        tell(tn_tensor_grad(tn_module_find_tensor(net, "0.weight")));
        tell(tn_tensor_grad(tn_module_find_tensor(net, "0.bias")));
        NEED_OK(tn_module_zero_grad(net));
    }
    tell(mean);
    tell(tn_module_find_tensor(net, "0.running_var"));
    tn_module_eval(net);
    if (counts[rank_] > 0 || rank_ == 0) /* no exchange in evaluation: a rank may be absent */
        tell(tn_module_call(net, part(5)));
    tn_module_drop(net);
    tn_module_drop(module);
}

static void near(const double *a, const double *b, int64_t count, double scale)
{
    for (int64_t i = 0; i < count; i++)
        ck_assert_double_eq_tol(a[i] * scale, b[i], 1e-10);
}

/* Compares what all ranks have told with the results of the whole batch. */
static void compare(int size)
{
    double sums[2][2][CHANNELS] = { { { 0 } } };

    on_ranks(size, normalize);
    for (int r = 0; r < size; r++) {
        const double *at = found[r].numbers;
        int64_t mine = counts[r] * CHANNELS * PIXELS, first = first_of(r) * CHANNELS * PIXELS;

        for (int step = 0; step < 2; step++) {
            near(at, expected.y[step] + first, mine, 1);
            near(at + mine, expected.gx[step] + first, mine, 1);
            at += 2 * mine;
            for (int c = 0; c < 2 * CHANNELS; c++)
                sums[step][c / CHANNELS][c % CHANNELS] += *at++;
        }
        near(at, expected.mean, CHANNELS, 1);
        near(at + CHANNELS, expected.var, CHANNELS, 1);
        near(at + 2 * CHANNELS, expected.evaluated + first, mine, 1);
    }
    for (int step = 0; step < 2; step++) {
        near(sums[step][0], expected.weight[step], CHANNELS, 1);
        near(sums[step][1], expected.bias[step], CHANNELS, 1);
    }
}

START_TEST(statistics_are_those_of_the_whole_batch)
{
    momentum = 0.3;
    read_expected("momentum");
    memcpy(counts, (int64_t[RANKS]){ 3, 3 }, sizeof counts);
    compare(2);
    memcpy(counts, (int64_t[RANKS]){ 1, 5 }, sizeof counts);
    compare(2);
    memcpy(counts, (int64_t[RANKS]){ 2, 0, 4 }, sizeof counts);
    compare(3);
    memcpy(counts, (int64_t[RANKS]){ 6 }, sizeof counts);
    compare(1);
    momentum = NAN;
    read_expected("cumulative");
    memcpy(counts, (int64_t[RANKS]){ 4, 2 }, sizeof counts);
    compare(2);
    TN_PROVES("DST-014");
}
END_TEST

static void convert_and_print(void)
{
    tn_module *norm = tn_module_parse("BatchNorm1d(4, affine=False)"), *made, *net;
    char text[200];

    tn_module_eval(norm);
    made = tn_sync_batch_norm_convert(norm, NULL);
    NEED(made != NULL && made != norm && !tn_module_is_training(made));
    tn_module_repr(made, text, sizeof text);
    NEED(strcmp(text, "SyncBatchNorm(4, eps=1e-05, momentum=0.1, affine=False, bias=False, "
                      "track_running_stats=True)") == 0);
    tn_module_drop(made);
    tn_module_drop(norm);
    /* one norm at two places stays one */
    net = tn_module_parse("Sequential(BatchNorm1d(4), ReLU())");
    NEED_OK(tn_module_add_child(net, "again", tn_module_child(net, "0")));
    made = tn_sync_batch_norm_convert(net, NULL);
    NEED(made == net && tn_module_child(net, "0") == tn_module_child(net, "again"));
    NEED(strcmp(tn_module_type(tn_module_child(net, "0")), "SyncBatchNorm") == 0);
    tn_module_drop(made);
    tn_module_drop(net);
    net = tn_module_parse("SyncBatchNorm(4)");
    NEED(tn_module_call(net, numbers(TN_SHAPE(4), 1)) == NULL);
    NEED_ERROR(TN_ERR_VALUE, "expected at least 2D input (got 1D input)");
    NEED(tn_module_call(net, numbers(TN_SHAPE(2, 3), 1)) == NULL);
    NEED_ERROR(TN_ERR_VALUE, "input: wrong channels, got 3; expected 4, num_features");
    NEED(tn_module_call(net, numbers(TN_SHAPE(1, 4), 1)) == NULL);
    NEED_ERROR(TN_ERR_VALUE, "Expected more than 1 value per channel when training");
    tn_module_drop(net);
    NEED(tn_module_parse("SyncBatchNorm(-1)") == NULL);
    NEED_ERROR(TN_ERR_VALUE, "num_features: negative, got -1");
}

START_TEST(conversion_keeps_options_modes_and_sharing)
{
    on_ranks(1, convert_and_print);
}
END_TEST

/* One value of all ranks has no variance. */
static void normalize_one(void)
{
    tn_module *module = tn_module_parse("Sequential(BatchNorm1d(3))"),
              *net = tn_sync_batch_norm_convert(module, group_);

    for (int64_t count = 0; count < 2; count++) {
        NEED(tn_module_call(net, numbers(TN_SHAPE(rank_ == 0 ? count : 0, 3), 1)) == NULL);
        NEED_ERROR(TN_ERR_VALUE, "of all ranks; expected more than 1 value per channel");
    }
    tell(tn_module_find_tensor(net, "0.running_var"));
    NEED(found[rank_].numbers[0] == 1);
    NEED(tn_module_call(net, numbers(TN_SHAPE(1, 3), 1)) != NULL);
    tn_module_drop(net);
    tn_module_drop(module);
}

START_TEST(one_value_of_all_ranks_is_refused)
{
    on_ranks(2, normalize_one);
}
END_TEST

/* Networks with a SyncBatchNorm train like one with BatchNorm on the whole batch. */
static void train(void)
{
    tn_module *module = tn_module_parse("Sequential(Conv2d(3, 4, 1), BatchNorm2d(4), ReLU(), "
                                        "Conv2d(4, 2, 1), BatchNorm2d(2))");
    tn_module *net = tn_ddp_new(tn_sync_batch_norm_convert(module, group_), group_, NULL);
    tn_optimizer *opt;

    NEED(net != NULL);
    opt = tn_optimizer_new(net, "SGD(lr=0.1)");
    for (int step = 0; step < 4; step++) {
        tn_tensor *x = tn_narrow(numbers(TN_SHAPE(BATCH, 3, 2, 2), step), 0, first_of(rank_),
                                 counts[rank_]);

        NEED_OK(tn_module_zero_grad(net));
        NEED_OK(tn_backward(tn_mean(tn_square(tn_add_scalar(tn_module_call(net, x), -0.3)))));
        NEED_OK(tn_optimizer_step(opt));
    }
    tell_state(net, false);
    tn_optimizer_drop(opt);
    tn_module_drop(net);
    tn_module_drop(module);
    tn_module_drop(module);
}

START_TEST(networks_train_like_one_process)
{
    static struct found one;

    memcpy(counts, (int64_t[RANKS]){ 6 }, sizeof counts);
    on_ranks(1, train);
    one = found[0];
    memcpy(counts, (int64_t[RANKS]){ 3, 3 }, sizeof counts);
    on_ranks(2, train);
    same_numbers(&found[0], &found[1], 0);
    same_numbers(&found[0], &one, 1e-5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sync batch norm");
    TCase *tcase = tcase_create("sync batch norm");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, statistics_are_those_of_the_whole_batch);
    tcase_add_test(tcase, one_value_of_all_ranks_is_refused);
    tcase_add_test(tcase, conversion_keeps_options_modes_and_sharing);
    tcase_add_test(tcase, networks_train_like_one_process);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
