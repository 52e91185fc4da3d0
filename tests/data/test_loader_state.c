/* SPDX-License-Identifier: MIT
 *
 * Loaders: continuing from a state, and the device of the batches. */
#include "loaders.h"

START_TEST(a_loader_continues_from_every_position)
{
    char state[512];
    const double weights[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };

    toys_register();
    tn_dataset *source = toys("Toy(11)"), *dataset = tn_dataset_transform(source, "Noise()");
    for (int kind = 0; kind < 4; kind++) { /* bits: workers, weights */
        const char *options = kind & 1 ? "3, shuffle=True, seed=4, workers=2"
                                       : "3, shuffle=True, seed=4";
        /* 2 epochs have 8 batches; the two ends of epochs count as well */
        for (int stop = 0; stop < 11; stop++) {
            tn_loader *one = loader_of(dataset, options);
            tn_loader *two = loader_of(dataset, "3, shuffle=True, seed=99, workers=1");
            tn__text ignored = { 0 };
            if (kind & 2) {
                ck_assert_int_eq(tn_loader_set_weights(one, weights, 11, 11, true), TN_OK);
                ck_assert_int_eq(tn_loader_set_weights(two, weights, 11, 11, true), TN_OK);
            }
            for (int i = 0; i < stop; i++)
                add_next(one, &ignored);
            ck_assert_int_gt(tn_loader_state_text(one, state, sizeof state), 0);
            add_next(two, &ignored); /* its threads then read further batches ahead */
            ck_assert_msg(tn_loader_set_state(two, state) == TN_OK, "%s", tn_error_text());
            ck_assert_int_eq(tn_loader_epoch(two), stop / 5);
            ck_assert_int_eq(tn_loader_position(two), stop % 5);
            char *rest = batches_of(one, 2), *again = batches_of(two, 2);
            ck_assert_str_eq(again, rest);
            tn_free(rest);
            tn_free(again);
            tn__text_free(&ignored);
            tn_loader_drop(one);
            tn_loader_drop(two);
        }
    }
    tn_dataset_drop(dataset);
    tn_dataset_drop(source);
    toys_unregister();
}
END_TEST

START_TEST(the_state_of_another_loader_is_refused)
{
    char state[512], small[8];
    static const char first[] = "seed=4, epoch=0, position=0, samples=11, batch_size=3, ranks=1, "
                                "shuffle=False, drop_last=False, weights=False";

    toys_register();
    tn_dataset *dataset = toys("Toy(11)");
    tn_loader *loader = loader_of(dataset, "3, seed=4");
    ck_assert_int_eq(tn_loader_state_text(loader, state, sizeof state), sizeof first - 1);
    ck_assert_str_eq(state, first);
    ck_assert_int_eq(tn_loader_state_text(loader, NULL, 0), sizeof first - 1);
    ck_assert_int_eq(tn_loader_state_text(loader, small, sizeof small), sizeof first - 1);
    ck_assert_str_eq(small, "seed=4,");
    ck_assert_int_eq(tn_loader_state_text(NULL, small, sizeof small), -1);
    tn_error_clear();
    tn_loader *other = loader_of(dataset, "4, seed=4, shuffle=True, ranks=2");
    ck_assert_int_eq(tn_loader_set_state(other, state), TN_ERR_VALUE);
    failed(TN_ERR_VALUE, "tn_loader_set_state: the state of another loader, got batch_size 3 "
                         "(here 4), ranks 1 (here 2), shuffle False (here True); expected");
    tn_loader_drop(other);
    static const char *const wrong[] = {
        "",
        "seed=4",
        "seed=4, epoch=-1, position=0, samples=11, batch_size=3, ranks=1, "
        "shuffle=False, drop_last=False, weights=False",
        "seed=4, epoch=0, position=5, samples=11, batch_size=3, ranks=1, "
        "shuffle=False, drop_last=False, weights=False",
        "seed=4, epoch=0, position=-1, samples=11, batch_size=3, ranks=1, "
        "shuffle=False, drop_last=False, weights=False",
        "seed=4, epoch=0, position=0, samples=11, batch_size=3, ranks=1, "
        "shuffle=False, drop_last=False, weights=False, more=1",
        "seed=4, epoch=0, position=0, sam",
        "\xff",
        "((",
        "0, 0, 0",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(tn_loader_set_state(loader, wrong[i]) != TN_OK, "%s", wrong[i]);
        tn_error_clear();
    }
    ck_assert_int_eq(tn_loader_set_state(loader, NULL), TN_ERR_VALUE);
    tn_error_clear();
    ck_assert_int_eq(tn_loader_set_state(NULL, state), TN_ERR_RUNTIME);
    tn_error_clear();
    ck_assert_int_eq(tn_loader_set_state(loader, state), TN_OK);
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

START_TEST(the_loader_remembers_its_device_and_the_default_dtype)
{
    toys_register();
    tn_dataset *dataset = toys("Toy(5)");
    for (int workers = 0; workers < 2; workers++) {
        tn_loader *loader = tn_loader_new(dataset, "2, device='meta', workers=%d", workers);
        tn_pack *batch = tn_loader_next(loader);
        ck_assert_msg(batch != NULL, "%s", tn_error_text());
        ck_assert_str_eq(tn_device_name(tn_tensor_device(tn_pack_tensor(batch, 0))), "meta:0");
        ck_assert_int_eq(tn_tensor_size(tn_pack_tensor(batch, 0), 0), 2);
        tn_loader_drop(loader);
    }
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

START_TEST(batches_reach_every_device_and_stay_as_they_are)
{
    toys_register();
    tn_dataset *dataset = toys("Toy(90)");
    for (int64_t d = 0; d < tn_device_count(); d++)
        for (int workers = 0; workers < 3; workers += 2) {
            const char *name = tn_device_name(tn_device_at(d));
            tn_tensor *kept[45];
            if (strncmp(name, "meta", 4) == 0)
                continue;
            tn_loader *loader = tn_loader_new(dataset, "2, device=%q, workers=%d", name, workers);
            ck_assert_msg(loader != NULL, "%s: %s", name, tn_error_text());
            for (int i = 0; i < 45; i++) {
                tn_pack *batch = tn_loader_next(loader);
                ck_assert_msg(batch != NULL, "%s: %s", name, tn_error_text());
                kept[i] = tn_tensor_keep(tn_pack_tensor(batch, 0));
                ck_assert_str_eq(tn_device_name(tn_tensor_device(kept[i])), name);
            }
            for (int i = 0; i < 45; i++) {
                float at[12];
                ck_assert_int_eq(tn_tensor_copy_out(kept[i], at, sizeof at), TN_OK);
                for (int k = 0; k < 12; k++)
                    ck_assert_float_eq(at[k], (float)(10 * (2 * i + k / 6) + k % 6));
                tn_tensor_drop(kept[i]);
            }
            tn_loader_drop(loader);
        }
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_loader_continues_from_every_position,
        the_state_of_another_loader_is_refused,
        the_loader_remembers_its_device_and_the_default_dtype,
        batches_reach_every_device_and_stay_as_they_are,
        NULL,
    };
    return suite_run("state of loaders", tests);
}
