/* SPDX-License-Identifier: MIT
 *
 * The samples of ranks: each one once in an epoch, repetitions found, and states of loaders for
 * another number of ranks. */
#include "tests/parallel/suite.h"

static tn_dataset *dataset(int64_t count)
{
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(count), TN_I64, NULL);
    int64_t *values = malloc((size_t)count * sizeof *values);

    for (int64_t i = 0; i < count; i++)
        values[i] = i;
    NEED_OK(tn_tensor_copy_in(x, values, (size_t)count * sizeof *values));
    free(values);
    return tn_dataset_of_tensors(&x, 1);
}

static tn_loader *loader(tn_dataset *data, int64_t batch, int rank, int ranks)
{
    tn_loader *made = tn_loader_new(data,
                                    "batch_size=%lld, shuffle=True, seed=5, rank=%d, ranks=%d",
                                    (long long)batch, rank, ranks);

    NEED(made != NULL);
    return made;
}

/* Counts in `seen` the samples of a loader, from now to the end of the epoch, that are no
 * repetitions. Returns the number of batches. */
static int64_t count_samples(tn_loader *from, int64_t samples, int64_t batch, int rank, int ranks,
                             int *seen, int64_t most)
{
    int64_t batches = 0;

    for (;; batches++) {
        TN_SCOPE;
        int64_t position = tn_loader_position(from), got, real, values[64];
        tn_pack *pack = batches < most ? tn_loader_next(from) : NULL;
        tn_tensor *x;

        if (pack == NULL)
            return batches;
        x = tn_pack_tensor(pack, 0);
        got = tn_tensor_numel(x);
        real = tn_ddp_real_samples(samples, position, batch, rank, ranks);
        NEED(real <= got);
        NEED_OK(tn_tensor_copy_out(x, values, (size_t)got * sizeof *values));
        for (int64_t i = 0; i < real; i++)
            seen[values[i]]++;
    }
}

static void read_all(void)
{
    for (int64_t samples = 1; samples <= 23; samples++)
        for (int ranks = 1; ranks <= 4; ranks++) {
            tn_dataset *data = dataset(samples);
            int seen[64] = { 0 };

            for (int rank = 0; rank < ranks; rank++) {
                tn_loader *from = loader(data, 3, rank, ranks);

                count_samples(from, samples, 3, rank, ranks, seen, INT64_MAX);
                tn_loader_drop(from);
            }
            for (int64_t i = 0; i < samples; i++)
                NEED(seen[i] == 1);
            tn_dataset_drop(data);
        }
}

START_TEST(each_sample_is_counted_once)
{
    on_ranks(1, read_all);
}
END_TEST

/* Two ranks read two batches; three ranks, then one, read the rest. */
static void continue_on(void)
{
    enum { SAMPLES = 50 };
    tn_dataset *data = dataset(SAMPLES);
    int seen[64] = { 0 };
    char text[512], other[512];

    for (int rank = 0; rank < 2; rank++) {
        tn_loader *from = loader(data, 6, rank, 2);

        NEED(count_samples(from, SAMPLES, 6, rank, 2, seen, 2) == 2);
        tn_loader_state_text(from, text, sizeof text);
        tn_loader_drop(from);
    }
    for (int rank = 0; rank < 3; rank++) {
        tn_loader *from = loader(data, 4, rank, 3);

        NEED(tn_loader_set_state(from, text) != TN_OK);
        tn_error_clear();
        NEED_OK(tn_ddp_loader_state(text, 3, other, sizeof other));
        NEED_OK(tn_loader_set_state(from, other));
        NEED(count_samples(from, SAMPLES, 4, rank, 3, seen, 1) == 1);
        tn_loader_state_text(from, other, sizeof other);
        tn_loader_drop(from);
    }
    tn_loader *last = loader(data, 12, 0, 1);
    NEED_OK(tn_ddp_loader_state(other, 1, text, sizeof text));
    NEED_OK(tn_loader_set_state(last, text));
    count_samples(last, SAMPLES, 12, 0, 1, seen, INT64_MAX);
    for (int i = 0; i < SAMPLES; i++)
        NEED(seen[i] == 1);
    tn_loader_drop(last);
    tn_dataset_drop(data);
    NEED(tn_ddp_loader_state(text, 5, other, sizeof other) != TN_OK);
    NEED_ERROR(TN_ERR_VALUE, "ranks: wrong, got 5 for 12 samples in the batches of all ranks");
    NEED(tn_ddp_loader_state("seed=1", 2, other, sizeof other) != TN_OK);
    NEED_ERROR(TN_ERR_VALUE, "the text of tn_loader_state_text");
    NEED(tn_ddp_loader_state(" batch_size=9223372036854775807 ranks=2", 2, other, sizeof other) !=
         TN_OK);
    NEED_ERROR(TN_ERR_VALUE, "got 2 for 0 samples");
    NEED(tn_ddp_loader_state(text, 2, other, 10) != TN_OK);
    NEED_ERROR(TN_ERR_VALUE, "too small");
}

START_TEST(a_state_continues_on_another_number_of_ranks)
{
    on_ranks(1, continue_on);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ddp samples");
    TCase *tcase = tcase_create("ddp samples");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, each_sample_is_counted_once);
    tcase_add_test(tcase, a_state_continues_on_another_number_of_ranks);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
