/* SPDX-License-Identifier: MIT
 *
 * Loaders: batches, their order, ranks and weights. */
#include "loaders.h"

#include <math.h>

static void expect_batches(const char *dataset_spec, const char *options, const char *expected)
{
    tn_dataset *dataset = toys(dataset_spec);
    tn_loader *loader = loader_of(dataset, options);
    char *got = batches_of(loader, 1);

    ck_assert_str_eq(got, expected);
    tn_free(got);
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
}

START_TEST(batches_are_the_samples_in_order)
{
    toys_register();
    expect_batches("Toy(5)", "batch_size=2", "0 1;2 3;4;|");
    expect_batches("Toy(5)", "batch_size=2, drop_last=True", "0 1;2 3;|");
    expect_batches("Toy(4)", "batch_size=2, workers=1", "0 1;2 3;|");
    expect_batches("Toy(3)", "", "0;1;2;|");
    expect_batches("Toy(3)", "10", "0 1 2;|");
    expect_batches("Toy(3)", "batch_size=10, drop_last=True", "|");
    expect_batches("Toy(0)", "batch_size=10, workers=2", "|");
    tn_dataset *dataset = toys("Toy(5, form='strided')");
    tn_loader *loader = tn_loader_new(dataset, "batch_size=%d", 4);
    tn_pack *batch = tn_loader_next(loader);
    const float *at = tn_tensor_data(tn_pack_tensor(batch, 0));
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 6; k++)
            ck_assert_float_eq(at[6 * i + k], (float)(10 * i + k / 2 + 3 * (k % 2)));
    ck_assert_int_eq(tn_loader_count(loader), 2);
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

START_TEST(epoch_and_position_follow_the_batches)
{
    toys_register();
    for (int workers = 0; workers < 3; workers++) {
        tn_dataset *dataset = toys("Toy(5)");
        tn_loader *loader = tn_loader_new(dataset, "batch_size=2, workers=%d", workers);
        tn_dataset_drop(dataset);
        for (int epoch = 0; epoch < 3; epoch++) {
            for (int i = 0; i < 3; i++) {
                ck_assert_int_eq(tn_loader_epoch(loader), epoch);
                ck_assert_int_eq(tn_loader_position(loader), i);
                ck_assert_ptr_nonnull(tn_loader_next(loader));
            }
            ck_assert_int_eq(tn_loader_position(loader), 3);
            ck_assert_ptr_null(tn_loader_next(loader));
            ck_assert(!tn_failed());
        }
        ck_assert_int_eq(tn_loader_epoch(loader), 3);
        ck_assert_int_eq(tn_loader_position(loader), 0);
        ck_assert_int_eq(tn_loader_skipped(loader), 0);
        tn_loader_drop(loader);
    }
    ck_assert_int_eq(tn_loader_count(NULL), -1);
    ck_assert_int_eq(tn_loader_epoch(NULL), -1);
    ck_assert_int_eq(tn_loader_position(NULL), -1);
    ck_assert_int_eq(tn_loader_skipped(NULL), -1);
    ck_assert_ptr_null(tn_loader_next(NULL));
    tn_error_clear();
    tn_loader_drop(NULL);
    toys_unregister();
}
END_TEST

START_TEST(entries_are_collected_as_pytorch_collects_them)
{
    toys_register();
    tn_dataset *dataset = toys("Toy(3, form='nested')");
    tn_loader *loader = loader_of(dataset, "batch_size=3");
    tn_pack *batch = tn_loader_next(loader);
    ck_assert_msg(batch != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_pack_count(batch), 3);
    tn_value dict = tn_pack_at(batch, 0);
    ck_assert_uint_eq(dict.kind, TN_VALUE_DICT);
    const tn_value *x = tn_value_get(&dict, "x"), *more = tn_value_get(&dict, "more");
    ck_assert_uint_eq(tn_tensor_dtype(x->as.tensor), TN_F64);
    ck_assert_uint_eq(more->kind, TN_VALUE_TUPLE);
    ck_assert_uint_eq(tn_tensor_dtype(more->as.list[0].as.tensor), TN_I64);
    ck_assert_uint_eq(more->as.list[1].kind, TN_VALUE_LIST);
    tn_value row = tn_pack_at(batch, 1), raw = tn_pack_at(batch, tn_pack_find(batch, "raw"));
    ck_assert_uint_eq(row.kind, TN_VALUE_LIST);
    ck_assert_uint_eq(tn_tensor_dtype(row.as.list[0].as.tensor), TN_BOOL);
    ck_assert_uint_eq(raw.kind, TN_VALUE_LIST);
    for (int i = 0; i < 3; i++) {
        char name[8];
        tn_snprint(name, sizeof name, "n%d", i);
        ck_assert_double_eq(((double *)tn_tensor_data(x->as.tensor))[i], i / 2.0);
        ck_assert_int_eq(((int64_t *)tn_tensor_data(more->as.list[0].as.tensor))[i], i);
        ck_assert_str_eq(more->as.list[1].as.list[i].as.s, name);
        ck_assert_int_eq(((bool *)tn_tensor_data(row.as.list[0].as.tensor))[i], i == 0);
        ck_assert_double_eq(((double *)tn_tensor_data(row.as.list[1].as.tensor))[i], 0.5);
        ck_assert_uint_eq(raw.as.list[i].kind, TN_VALUE_BYTES);
        ck_assert_uint_eq(raw.as.list[i].count, 2);
        ck_assert_int_eq(raw.as.list[i].as.s[1], i);
    }
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

START_TEST(samples_that_do_not_fit_are_named)
{
    static const struct {
        const char *dataset;
        tn_status code;
        const char *words;
    } rows[] = {
        { "Toy(6, other=4, form='shape')", TN_ERR_VALUE,
          "loader: sample 4: entry 0: sizes differ, got [3, 2]; expected [2, 3], those of "
          "sample 3" },
        { "Toy(6, other=4, form='dtype')", TN_ERR_TYPE,
          "loader: sample 4: entry 0: types differ, got float64; expected float32, that of "
          "sample 3" },
        { "Toy(6, other=4, form='kind')", TN_ERR_TYPE,
          "loader: sample 4: entry 1: kinds differ, got float; expected int, that of sample 3" },
        { "Toy(6, other=4, form='fewer')", TN_ERR_VALUE,
          "loader: sample 4: wrong number of entries, got 1; expected 2, that of sample 3" },
        { "Toy(6, other=4, form='nested')", TN_ERR_KEY,
          "loader: sample 4: entry 0[\"more\"]: missing; sample 3 has this key" },
        { "Toy(6, bad=4)", TN_ERR_VALUE, "dataset Toy: sample 4: it is bad" },
    };

    toys_register();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int workers = 0; workers < 4; workers += workers + 1) {
            tn_dataset *dataset = toys(rows[i].dataset);
            tn_loader *loader = tn_loader_new(dataset, "batch_size=3, workers=%d", workers);
            tn_dataset_drop(dataset);
            for (int again = 0; again < 2; again++) {
                if (again == 0) /* the batch before the failure is returned */
                    ck_assert_msg(tn_loader_next(loader) != NULL, "%s", tn_error_text());
                ck_assert_ptr_null(tn_loader_next(loader));
                failed(rows[i].code, rows[i].words);
                ck_assert_int_eq(tn_loader_position(loader), 1);
            }
            tn_loader_drop(loader);
        }
    tn_dataset *dataset = toys("Toy(6, form='none')");
    tn_loader *loader = loader_of(dataset, "batch_size=3");
    ck_assert_ptr_null(tn_loader_next(loader));
    failed(
        TN_ERR_TYPE,
        "loader: sample 0: entry 0: cannot be collected in a batch, got None; expected a tensor");
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

START_TEST(damaged_samples_are_left_out_if_asked)
{
    toys_register();
    tn_dataset *dataset = toys("Toy(7, damaged=3)");
    tn_loader *loader = loader_of(dataset, "batch_size=3");
    ck_assert_ptr_null(tn_loader_next(loader));
    failed(TN_ERR_FORMAT, "dataset Toy: sample 0: it is damaged");
    tn_loader_drop(loader);
    for (int workers = 0; workers < 3; workers++) {
        loader = tn_loader_new(dataset, "batch_size=3, skip_damaged=True, workers=%d", workers);
        char *got = batches_of(loader, 2);
        ck_assert_str_eq(got, "1 2;4 5;|1 2;4 5;|");
        ck_assert_int_eq(tn_loader_skipped(loader), 6);
        tn_free(got);
        tn_loader_drop(loader);
    }
    tn_dataset_drop(dataset);
    dataset = toys("Toy(7, bad=3)"); /* a sample that a transform does not take */
    loader = loader_of(dataset, "batch_size=4");
    ck_assert_ptr_null(tn_loader_next(loader));
    failed(TN_ERR_VALUE, "dataset Toy: sample 3: it is bad");
    tn_loader_drop(loader);
    loader = loader_of(dataset, "batch_size=4, skip_damaged=True");
    char *rest = batches_of(loader, 1);
    ck_assert_str_eq(rest, "0 1 2;4 5 6;|");
    ck_assert_int_eq(tn_loader_skipped(loader), 1);
    tn_free(rest);
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    dataset = toys("Toy(6, form='none')"); /* other failures are not skipped */
    loader = loader_of(dataset, "batch_size=4, skip_damaged=True");
    ck_assert_ptr_null(tn_loader_next(loader));
    failed(
        TN_ERR_TYPE,
        "loader: sample 0: entry 0: cannot be collected in a batch, got None; expected a tensor");
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

START_TEST(wrong_options_are_refused)
{
    static const struct {
        const char *options, *words;
    } rows[] = {
        { "batch_size=0", "loader: batch_size: out of range, got 0; expected 1 to" },
        { "batch_size=-4", "got -4" },
        { "batch_size=9223372036854775807", "batch_size: out of range" },
        { "batch_size='x'", "batch_size" },
        { "batch_size=1, workers=-1", "loader: workers: out of range, got -1" },
        { "workers=99999999", "workers: out of range" },
        { "prefetch=0", "loader: prefetch: out of range, got 0" },
        { "ranks=0", "loader: ranks: out of range" },
        { "rank=2, ranks=2", "loader: rank: out of range, got 2; expected 0 to 1" },
        { "rank=-1", "rank: out of range" },
        { "batchsize=4", "did you mean \"batch_size\"" },
        { "shufle=True", "did you mean \"shuffle\"" },
        { "shuffle=3.5", "shuffle" },
        { "device='nowhere'", "loader: device: " },
        { "batch_size=4, batch_size=5", "batch_size" },
        { "batch_size=4)", "" },
        { "(((((((", "" },
        { "1, True, True, 3, 0, 2, 0, 1, None, False, 11", "" },
        { "seed=nan", "seed" },
        { "{'a': 1}", "batch_size" },
        { ",", "" },
        { "=", "" },
        { "\xff\xfe", "" },
    };

    toys_register();
    tn_dataset *dataset = toys("Toy(7)");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_loader *loader = tn_loader_parse(dataset, rows[i].options);
        ck_assert_msg(loader == NULL, "%s", rows[i].options);
        ck_assert_msg(tn_failed() && strstr(tn_error_text(), rows[i].words) != NULL, "%s: %s",
                      rows[i].options, tn_error_text());
        tn_error_clear();
    }
    ck_assert_ptr_null(tn_loader_parse(dataset, NULL));
    failed(TN_ERR_VALUE, "tn_loader_parse: text");
    ck_assert_ptr_null(tn_loader_parse(NULL, ""));
    tn_error_clear();
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

/* ---- order ----------------------------------------------------------------------------------- */

START_TEST(a_random_order_has_every_sample_once_and_differs_by_epoch)
{
    toys_register();
    tn_dataset *dataset = toys("Toy(50)");
    tn_loader *loader = loader_of(dataset, "batch_size=50, shuffle=True, seed=3");
    int64_t before[50];
    for (int epoch = 0; epoch < 20; epoch++) {
        bool seen[50] = { false };
        int64_t fixed = 0, same = 0;
        tn_pack *batch = tn_loader_next(loader);
        const int64_t *at = tn_tensor_data(tn_pack_tensor(batch, 1));
        check_pair(batch);
        for (int i = 0; i < 50; i++) {
            ck_assert(at[i] >= 0 && at[i] < 50 && !seen[at[i]]);
            seen[at[i]] = true;
            fixed += at[i] == i;
            same += epoch > 0 && at[i] == before[i];
            before[i] = at[i];
        }
        ck_assert(fixed < 10 && same < 10);
        ck_assert_ptr_null(tn_loader_next(loader));
    }
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

static char *epochs_of(const char *options)
{
    tn_dataset *source = toys("Toy(23)"), *dataset = tn_dataset_transform(source, "Noise()");
    tn_loader *loader = loader_of(dataset, options);
    char *got = batches_of(loader, 3);

    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    tn_dataset_drop(source);
    return got;
}

START_TEST(the_batches_do_not_depend_on_the_number_of_threads)
{
    static const char *const more[] = { "",
                                        ", workers=1",
                                        ", workers=2",
                                        ", workers=4",
                                        ", workers=8",
                                        ", workers=2, prefetch=1",
                                        ", workers=3, prefetch=9" };
    char options[128];

    toys_register();
    char *first = epochs_of("batch_size=4, shuffle=True, seed=11");
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        tn_snprint(options, sizeof options, "batch_size=4, shuffle=True, seed=11%s", more[i]);
        char *got = epochs_of(options);
        ck_assert_str_eq(got, first);
        tn_free(got);
    }
    char *other = epochs_of("batch_size=4, shuffle=True, seed=12");
    ck_assert_str_ne(other, first);
    tn_free(other);
    tn_free(first);
    /* Without a seed, the generator of the process decides. */
    tn_random_seed(5);
    first = epochs_of("batch_size=4, shuffle=True");
    other = epochs_of("batch_size=4, shuffle=True");
    ck_assert_str_ne(other, first);
    tn_free(other);
    tn_random_seed(5);
    other = epochs_of("batch_size=4, shuffle=True, workers=2");
    ck_assert_str_eq(other, first);
    tn_free(first);
    tn_free(other);
    toys_unregister();
}
END_TEST

START_TEST(ranks_share_the_samples)
{
    toys_register();
    expect_batches("Toy(7)", "batch_size=2, rank=0, ranks=3", "0 3;6;|");
    expect_batches("Toy(7)", "batch_size=2, rank=1, ranks=3", "1 4;0;|");
    expect_batches("Toy(7)", "batch_size=2, rank=2, ranks=3", "2 5;1;|");
    expect_batches("Toy(7)", "batch_size=2, rank=0, ranks=3, drop_last=True", "0 3;|");
    expect_batches("Toy(7)", "batch_size=2, rank=2, ranks=3, drop_last=True", "2 5;|");
    expect_batches("Toy(2)", "batch_size=2, rank=4, ranks=5", "0;|");
    expect_batches("Toy(2)", "batch_size=2, rank=4, ranks=5, drop_last=True", "|");
    tn_dataset *dataset = toys("Toy(12)");
    bool seen[12] = { false };
    for (int rank = 0; rank < 4; rank++) {
        tn_loader *loader = tn_loader_new(dataset, "3, shuffle=True, seed=1, rank=%d, ranks=4",
                                          rank);
        tn_pack *batch = tn_loader_next(loader);
        const int64_t *at = tn_tensor_data(tn_pack_tensor(batch, 1));
        ck_assert_int_eq(tn_loader_count(loader), 1);
        for (int i = 0; i < 3; i++) {
            ck_assert(!seen[at[i]]);
            seen[at[i]] = true;
        }
        tn_loader_drop(loader);
    }
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

START_TEST(samples_are_drawn_by_their_weights)
{
    const double weights[] = { 1, 0, 2, 5 };
    int64_t counts[4] = { 0 };

    toys_register();
    tn_dataset *dataset = toys("Toy(4)");
    tn_loader *loader = loader_of(dataset, "batch_size=100, seed=1, workers=2");
    ck_assert_int_eq(tn_loader_set_weights(loader, weights, 4, 8000, true), TN_OK);
    ck_assert_int_eq(tn_loader_count(loader), 80);
    for (tn_pack *batch; (batch = tn_loader_next(loader)) != NULL;)
        for (int i = 0; i < 100; i++)
            counts[((const int64_t *)tn_tensor_data(tn_pack_tensor(batch, 1)))[i]]++;
    ck_assert_int_eq(counts[0] + counts[2] + counts[3], 8000);
    ck_assert(counts[0] > 880 && counts[0] < 1120); /* the standard deviation is 30 */
    ck_assert(counts[2] > 1840 && counts[2] < 2160);
    /* Without replacement: each of the three once, the heavy one mostly first. */
    memset(counts, 0, sizeof counts);
    ck_assert_int_eq(tn_loader_set_weights(loader, weights, 4, 3, false), TN_OK);
    ck_assert_int_eq(tn_loader_count(loader), 1);
    for (int epoch = 0; epoch < 2000; epoch++) {
        tn_pack *batch = tn_loader_next(loader);
        const int64_t *at = tn_tensor_data(tn_pack_tensor(batch, 1));
        ck_assert_int_eq(at[0] + at[1] + at[2], 5);
        ck_assert(at[0] != at[1] && at[1] != at[2] && at[0] != at[2]);
        counts[at[0]]++;
        ck_assert_ptr_null(tn_loader_next(loader));
    }
    ck_assert_int_eq(counts[1], 0);
    ck_assert(counts[3] > 1160 && counts[3] < 1340); /* of 2000 with 5/8: 1250, deviation 22 */
    ck_assert(counts[0] > 190 && counts[0] < 310);
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

START_TEST(wrong_weights_are_refused)
{
    double weights[] = { 1, 0, 2, 5 };

    toys_register();
    tn_dataset *dataset = toys("Toy(4)");
    tn_loader *loader = loader_of(dataset, "");
    ck_assert_int_eq(tn_loader_set_weights(loader, weights, 3, 4, true), TN_ERR_VALUE);
    failed(TN_ERR_VALUE, "count: wrong, got 3; expected 4, the number of samples");
    ck_assert_int_eq(tn_loader_set_weights(loader, weights, 4, 0, true), TN_ERR_VALUE);
    failed(TN_ERR_VALUE, "draws: wrong, got 0");
    ck_assert_int_eq(tn_loader_set_weights(loader, weights, 4, INT64_MAX, true), TN_ERR_VALUE);
    failed(TN_ERR_VALUE, "draws: wrong");
    ck_assert_int_eq(tn_loader_set_weights(loader, weights, 4, 4, false), TN_ERR_VALUE);
    failed(TN_ERR_VALUE, "too many without replacement, got 4; expected at most 3");
    for (int i = 0; i < 3; i++) {
        weights[2] = i == 0 ? -1 : i == 1 ? (double)NAN : (double)INFINITY;
        ck_assert_int_eq(tn_loader_set_weights(loader, weights, 4, 1, true), TN_ERR_VALUE);
        failed(TN_ERR_VALUE, "weight 2: wrong, got");
    }
    weights[0] = weights[2] = weights[3] = 0;
    ck_assert_int_eq(tn_loader_set_weights(loader, weights, 4, 1, true), TN_ERR_VALUE);
    failed(TN_ERR_VALUE, "weights: wrong sum, got 0.0");
    weights[0] = weights[2] = 1e308;
    ck_assert_int_eq(tn_loader_set_weights(loader, weights, 4, 1, true), TN_ERR_VALUE);
    failed(TN_ERR_VALUE, "weights: wrong sum, got inf");
    ck_assert_int_eq(tn_loader_set_weights(loader, NULL, 4, 1, true), TN_ERR_VALUE);
    failed(TN_ERR_VALUE, "tn_loader_set_weights: weights");
    ck_assert_ptr_nonnull(tn_loader_next(loader));
    weights[0] = weights[2] = 1;
    ck_assert_int_eq(tn_loader_set_weights(loader, weights, 4, 1, true), TN_ERR_RUNTIME);
    failed(TN_ERR_RUNTIME, "the epoch has begun, got position 1");
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

START_TEST(memory_that_fails_anywhere_is_an_error)
{
    char state[512];

    toys_register();
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t n = 1;; n++) {
            tn_dataset *dataset = toys(kind == 0 ? "Toy(5, form='nested')" : "Toy(5, damaged=4)");
            const double weights[] = { 1, 2, 3, 4, 5 };
            int64_t batches = 0;
            tn_status status = TN_ERR_MEMORY;
            tn__memory_fail(n);
            tn_loader *loader = tn_loader_parse(
                dataset, "2, shuffle=True, seed=1, skip_damaged=True, device='cpu'");
            if (loader != NULL)
                status = kind == 0 ? TN_OK : tn_loader_set_weights(loader, weights, 5, 4, false);
            if (status == TN_OK && tn_loader_state_text(loader, state, sizeof state) < 0)
                status = TN_ERR_MEMORY;
            if (status == TN_OK)
                status = tn_loader_set_state(loader, state);
            while (status == TN_OK && tn_loader_next(loader) != NULL)
                batches++;
            bool reached = tn__memory_fail(0) >= n;
            ck_assert_msg(!tn_failed() || tn_error_code() == TN_ERR_MEMORY, "%s", tn_error_text());
            bool failed_here = tn_failed();
            tn_error_clear();
            if (loader != NULL && status == TN_OK && failed_here) /* continues where it was */
                while (tn_loader_next(loader) != NULL)
                    batches++;
            ck_assert(!tn_failed());
            if (status == TN_OK && kind == 0)
                ck_assert_int_eq(batches, 3);
            tn_loader_drop(loader);
            tn_dataset_drop(dataset);
            if (!reached)
                break;
        }
    toys_unregister();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        batches_are_the_samples_in_order,
        epoch_and_position_follow_the_batches,
        entries_are_collected_as_pytorch_collects_them,
        samples_that_do_not_fit_are_named,
        damaged_samples_are_left_out_if_asked,
        wrong_options_are_refused,
        a_random_order_has_every_sample_once_and_differs_by_epoch,
        the_batches_do_not_depend_on_the_number_of_threads,
        ranks_share_the_samples,
        samples_are_drawn_by_their_weights,
        wrong_weights_are_refused,
        memory_that_fails_anywhere_is_an_error,
        NULL,
    };
    return suite_run("loader", tests);
}
