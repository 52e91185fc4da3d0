/* SPDX-License-Identifier: MIT
 *
 * Datasets: those of plugins, of tensors, parts of them, and transforms of their samples. */
#include "toy.h"

static tn_pack *sample(tn_dataset *dataset, int64_t index, uint64_t seed, int64_t epoch)
{
    tn_pack *pack = tn_pack_new();

    ck_assert_msg(tn_dataset_get(dataset, index, seed, epoch, pack) == TN_OK, "%s",
                  tn_error_text());
    return pack;
}

static void expect_sample(tn_dataset *dataset, int64_t index, int64_t number)
{
    tn_pack *pack = sample(dataset, index, 0, 0);
    float at[6];

    ck_assert_int_eq(tn_tensor_copy_out(tn_pack_tensor(pack, 0), at, sizeof at), TN_OK);
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(at[i], (float)(10 * number + i));
    ck_assert_int_eq(tn_pack_at(pack, 1).as.i, number);
    tn_pack_drop(pack);
}

static double random_of(tn_dataset *dataset, int64_t index, uint64_t seed, int64_t epoch)
{
    tn_pack *pack = sample(dataset, index, seed, epoch);
    double number = tn_pack_at(pack, 2).as.f;

    ck_assert_uint_eq(tn_pack_at(pack, 2).kind, TN_VALUE_FLOAT);
    tn_pack_drop(pack);
    return number;
}

START_TEST(a_plugin_opens_a_dataset_and_its_samples_are_read)
{
    toys_register();
    tn_dataset *dataset = tn_dataset_new("Toy(%d, classes=%d)", 4, 3);
    ck_assert_ptr_nonnull(dataset);
    ck_assert_int_eq(toys_open, 1);
    ck_assert_int_eq(tn_dataset_count(dataset), 4);
    ck_assert_int_eq(tn_dataset_classes(dataset), 3);
    ck_assert_str_eq(tn_dataset_class_name(dataset, 1), "green");
    ck_assert_ptr_null(tn_dataset_class_name(dataset, 3));
    ck_assert_ptr_null(tn_dataset_class_name(dataset, -1));
    ck_assert(!tn_failed());
    for (int i = 0; i < 4; i++) {
        expect_sample(dataset, i, i);
        expect_sample(dataset, i - 4, i);
    }
    ck_assert_ptr_eq(tn_dataset_keep(dataset), dataset);
    tn_dataset_drop(dataset);
    ck_assert_int_eq(toys_open, 1);
    expect_sample(dataset, 2, 2);
    tn_dataset_drop(dataset);
    dataset = toys("Toy(0, classes=0)");
    ck_assert_int_eq(tn_dataset_count(dataset), 0);
    ck_assert_int_eq(tn_dataset_classes(dataset), 0);
    ck_assert_ptr_null(tn_dataset_class_name(dataset, 0));
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

START_TEST(wrong_specs_are_refused)
{
    toys_register();
    ck_assert_ptr_null(tn_dataset_parse("Toy"));
    failed(TN_ERR_VALUE, "option \"count\": missing");
    ck_assert_ptr_null(tn_dataset_parse("Toy(3, classe=3)"));
    failed(TN_ERR_KEY, "classes");
    ck_assert_ptr_null(tn_dataset_parse("Toy(13)"));
    failed(TN_ERR_VALUE, "dataset Toy: count: unlucky, got 13; expected another number");
    ck_assert_ptr_null(tn_dataset_parse("Toy(-3)"));
    failed(TN_ERR_VALUE, "dataset Toy: `open` set a wrong number, got -3 samples and 3 classes");
    ck_assert_int_eq(toys_open, 0);
    ck_assert_ptr_null(tn_dataset_parse("Tomato(3)"));
    failed(TN_ERR_KEY, "no plugin provides a dataset \"Tomato\"; known: CIFAR10");
    ck_assert_ptr_null(tn_dataset_parse("[1, 2]"));
    failed(TN_ERR_FORMAT, "dataset: wrong form, got \"[1, 2]\"");
    ck_assert_ptr_null(tn_dataset_parse("Toy(3"));
    failed(TN_ERR_FORMAT, "Toy(3");
    ck_assert_ptr_null(tn_dataset_parse(NULL));
    failed(TN_ERR_VALUE, "tn_dataset_parse: text");
    ck_assert_int_eq(tn_dataset_count(NULL), -1);
    failed(TN_ERR_RUNTIME, "tn_dataset_count: dataset");
    toys_unregister();
}
END_TEST

START_TEST(the_message_of_a_failure_names_dataset_and_sample)
{
    tn_pack *pack = tn_pack_new();
    toys_register();
    tn_dataset *dataset = toys("Toy(9, bad=7)");
    ck_assert_int_eq(tn_dataset_get(dataset, 7, 0, 0, pack), TN_ERR_VALUE);
    failed(TN_ERR_VALUE, "dataset Toy: sample 7: it is bad");
    ck_assert_int_eq(tn_dataset_get(dataset, 9, 0, 0, pack), TN_ERR_INDEX);
    failed(TN_ERR_INDEX, "index: out of range, got 9; expected -9 to 8");
    ck_assert_int_eq(tn_dataset_get(dataset, -10, 0, 0, pack), TN_ERR_INDEX);
    failed(TN_ERR_INDEX, "got -10");
    ck_assert_int_eq(tn_dataset_get(dataset, 0, 0, 0, NULL), TN_ERR_VALUE);
    failed(TN_ERR_VALUE, "tn_dataset_get: out");
    ck_assert_int_eq(tn_dataset_get(NULL, 0, 0, 0, pack), TN_ERR_RUNTIME);
    tn_error_clear();
    /* The index is that of the dataset which has the sample. */
    tn_dataset *part = tn_dataset_subset(dataset, TN_INTS(5, 7, -1));
    tn_dataset *changed = tn_dataset_transform(part, "[Noise(), Picky]");
    ck_assert_int_eq(tn_dataset_get(changed, 1, 0, 0, pack), TN_ERR_VALUE);
    failed(TN_ERR_VALUE, "dataset Toy: sample 7: it is bad");
    ck_assert_int_eq(tn_dataset_get(changed, 0, 0, 0, pack), TN_ERR_VALUE);
    failed(TN_ERR_VALUE, "dataset Toy: sample 5: transform Picky: does not like it");
    ck_assert_int_eq(tn_pack_count(pack), 0);
    ck_assert_int_eq(tn_dataset_get(changed, 2, 0, 0, pack), TN_OK);
    ck_assert_int_eq(tn_pack_count(pack), 4);
    /* A failure does not change the pack. */
    ck_assert_int_eq(tn_dataset_get(changed, 1, 0, 0, pack), TN_ERR_VALUE);
    tn_error_clear();
    ck_assert_int_eq(tn_pack_count(pack), 4);
    ck_assert_int_eq(tn_dataset_get(part, 0, 0, 0, pack), TN_OK);
    ck_assert_int_eq(tn_pack_count(pack), 6);
    ck_assert_int_eq(tn_pack_at(pack, 5).as.i, 5);
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    tn_dataset_drop(part);
    tn_dataset_drop(changed);
    dataset = toys("Toy(2, form='empty')");
    pack = tn_pack_new();
    ck_assert_int_eq(tn_dataset_get(dataset, 1, 0, 0, pack), TN_ERR_VALUE);
    failed(TN_ERR_VALUE, "dataset Toy: sample 1: no entries");
    tn_dataset_drop(dataset);
    dataset = toys("Toy(2, form='silent')");
    ck_assert_int_eq(tn_dataset_get(dataset, 1, 0, 0, pack), TN_ERR_IO);
    failed(TN_ERR_IO, "dataset Toy: sample 1: ");
    tn_dataset_drop(dataset);
    tn_pack_drop(pack);
    toys_unregister();
}
END_TEST

START_TEST(a_dataset_of_tensors_has_their_elements)
{
    TN_SCOPE;
    const double values[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
    const int64_t labels[] = { 7, 8, 9 };
    tn_tensor *x = tn_tensor_from(values, TN_F64, TN_SHAPE(4, 3));
    x = tn_tensor_as_strided(x, TN_SHAPE(3, 4), TN_INTS(1, 3), 0); /* transposed */
    tn_tensor *y = tn_tensor_from(labels, TN_I64, TN_SHAPE(3));
    tn_tensor *two[] = { x, y };
    tn_dataset *dataset = tn_dataset_of_tensors(two, 2);
    ck_assert_ptr_nonnull(dataset);
    ck_assert_int_eq(tn_dataset_count(dataset), 3);
    ck_assert_int_eq(tn_dataset_classes(dataset), 0);
    for (int i = 0; i < 3; i++) {
        tn_pack *pack = sample(dataset, i, 0, 0);
        double at[4];
        ck_assert_int_eq(tn_pack_count(pack), 2);
        ck_assert_int_eq(tn_tensor_copy_out(tn_pack_tensor(pack, 0), at, sizeof at), TN_OK);
        for (int k = 0; k < 4; k++)
            ck_assert_double_eq(at[k], values[3 * k + i]);
        ck_assert_int_eq(tn_tensor_ndim(tn_pack_tensor(pack, 1)), 0);
        ck_assert_double_eq(tn_item(tn_pack_tensor(pack, 1)), (double)labels[i]);
        tn_pack_drop(pack);
    }
    tn_dataset_drop(dataset);
    ck_assert_ptr_null(tn_dataset_of_tensors(two, 0));
    failed(TN_ERR_VALUE, "expected at least one tensor");
    two[1] = tn_tensor_from(labels, TN_I64, TN_SHAPE(2));
    ck_assert_ptr_null(tn_dataset_of_tensors(two, 2));
    failed(TN_ERR_VALUE, "tensor 1: wrong size of dimension 0, got 2; expected 3");
    two[1] = tn_tensor_from(labels, TN_I64, TN_SCALAR_SHAPE);
    ck_assert_ptr_null(tn_dataset_of_tensors(two, 2));
    failed(TN_ERR_VALUE, "tensor 1: no dimensions");
    two[1] = TN_NONE;
    ck_assert_ptr_null(tn_dataset_of_tensors(two, 2));
    failed(TN_ERR_TYPE, "tn_dataset_of_tensors");
    two[1] = tn_tensor_empty(TN_SHAPE(3), TN_F32, tn_device_find("meta"));
    ck_assert_ptr_null(tn_dataset_of_tensors(two, 2));
    failed(TN_ERR_VALUE, "tensor 1: wrong device, got meta:0");
}
END_TEST

START_TEST(a_part_of_a_dataset_has_the_samples_of_its_indices)
{
    toys_register();
    tn_dataset *dataset = toys("Toy(10)");
    tn_dataset *part = tn_dataset_subset(dataset, TN_INTS(9, 0, -2, 9));
    tn_dataset *inner = tn_dataset_subset(part, TN_INTS(-2, 1));
    tn_dataset_drop(dataset);
    ck_assert_int_eq(tn_dataset_count(part), 4);
    ck_assert_int_eq(tn_dataset_classes(inner), 3);
    ck_assert_str_eq(tn_dataset_class_name(inner, 0), "red");
    expect_sample(part, 0, 9);
    expect_sample(part, 1, 0);
    expect_sample(part, 2, 8);
    expect_sample(part, -1, 9);
    expect_sample(inner, 0, 8);
    expect_sample(inner, 1, 0);
    ck_assert_ptr_null(tn_dataset_subset(part, TN_INTS(0, 4)));
    failed(TN_ERR_INDEX, "indices: index 1: out of range, got 4; expected -4 to 3");
    ck_assert_ptr_null(tn_dataset_subset(part, TN_INTS(-5)));
    failed(TN_ERR_INDEX, "got -5");
    ck_assert_ptr_null(tn_dataset_subset(part, (tn_ints){ NULL, 3 }));
    failed(TN_ERR_VALUE, "indices: wrong list");
    ck_assert_ptr_null(tn_dataset_subset(NULL, TN_INTS(0)));
    tn_error_clear();
    tn_dataset *none = tn_dataset_subset(part, tn_no_ints());
    ck_assert_int_eq(tn_dataset_count(none), 0);
    tn_dataset_drop(none);
    tn_dataset_drop(part);
    expect_sample(inner, 0, 8);
    tn_dataset_drop(inner);
    toys_unregister();
}
END_TEST

START_TEST(random_numbers_of_a_transform_follow_from_seed_epoch_index_and_place)
{
    double seen[3 * 3 * 3 * 3];
    int count = 0;
    toys_register();
    tn_dataset *dataset = toys("Toy(3)");
    tn_dataset *twice = tn_dataset_transform(dataset, "[Noise, Noise()]");
    tn_dataset *third = tn_dataset_transform(twice, "Noise()");
    tn_dataset_drop(dataset);
    tn_dataset_drop(twice);
    for (uint64_t seed = 0; seed < 3; seed++)
        for (int64_t epoch = 0; epoch < 3; epoch++)
            for (int64_t index = 0; index < 3; index++)
                for (int64_t place = 0; place < 3; place++) {
                    tn_pack *pack = sample(third, index, seed, epoch);
                    double number = tn_pack_at(pack, 2 + place).as.f;
                    ck_assert(number >= 0 && number < 1);
                    for (int i = 0; i < count; i++)
                        ck_assert(seen[i] != number);
                    seen[count++] = number;
                    tn_pack_drop(pack);
                }
    ck_assert_int_eq(count, 81);
    for (int again = 0; again < 2; again++)
        ck_assert_double_eq(random_of(third, 2, 1, 2), seen[1 * 27 + 2 * 9 + 2 * 3]);
    tn_dataset_drop(third);
    toys_unregister();
}
END_TEST

START_TEST(the_numbers_of_a_key_are_even)
{
    tn_random_key key = { 1, 0 }, same = { 1, 0 };
    int64_t counts[6] = { 0 };
    double sum = 0;

    for (int i = 0; i < 60000; i++) {
        int64_t face = tn_random_below(&key, 6);
        ck_assert(face >= 0 && face < 6);
        ck_assert_int_eq(face, tn_random_below(&same, 6));
        counts[face]++;
    }
    for (int i = 0; i < 6; i++) /* the standard deviation is 91 */
        ck_assert(counts[i] > 9600 && counts[i] < 10400);
    for (int i = 0; i < 10000; i++)
        sum += tn_random_between(&key, -1, 3);
    ck_assert(sum / 10000 > 0.95 && sum / 10000 < 1.05);
    ck_assert_int_eq(tn_random_below(&key, 0), 0);
    ck_assert_int_eq(tn_random_below(&key, 1), 0);
}
END_TEST

START_TEST(wrong_transforms_are_refused)
{
    toys_register();
    tn_dataset *dataset = toys("Toy(3)");
    ck_assert_ptr_null(tn_dataset_transform(dataset, "Noise(high=0.0)"));
    failed(TN_ERR_VALUE, "transform Noise: high: wrong, got 0.0; expected more than 0");
    ck_assert_ptr_null(tn_dataset_transform(dataset, "[Noise(), Noise(height=1)]"));
    failed(TN_ERR_KEY, "did you mean \"high\"?");
    ck_assert_ptr_null(tn_dataset_transform(dataset, "[Noise(), Noize()]"));
    failed(TN_ERR_KEY, "Noise");
    ck_assert_ptr_null(tn_dataset_transform(dataset, "[Noise(), 3]"));
    failed(TN_ERR_TYPE, "transform: wrong kind, got int");
    ck_assert_ptr_null(tn_dataset_transform(dataset, "3"));
    failed(TN_ERR_FORMAT, "transform: wrong form, got \"3\"");
    ck_assert_ptr_null(tn_dataset_transform(dataset, "[[Noise()]]"));
    failed(TN_ERR_TYPE, "transform: wrong kind, got list");
    ck_assert_ptr_null(tn_dataset_transform(dataset, NULL));
    failed(TN_ERR_VALUE, "tn_dataset_transform: text");
    ck_assert_ptr_null(tn_dataset_transform(NULL, "Noise"));
    tn_error_clear();
    tn_dataset *same = tn_dataset_transform(dataset, "[]");
    expect_sample(same, 1, 1);
    tn_dataset_drop(same);
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

START_TEST(samples_are_on_the_host_and_without_gradients)
{
    TN_SCOPE;
    toys_register();
    tn_dataset *dataset = toys("Toy(3)");
    ck_assert_int_eq(tn_device_begin(tn_device_find("meta")), TN_OK);
    expect_sample(dataset, 1, 1);
    tn_pack *pack = sample(dataset, 1, 0, 0);
    ck_assert_ptr_eq(tn_tensor_device(tn_pack_tensor(pack, 0)), tn_device_find("cpu"));
    ck_assert_str_eq(tn_device_name(tn_default_device()), "meta:0");
    tn_device_end();
    ck_assert(tn_grad_enabled());
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 2), 1, TN_F32, NULL);
    ck_assert_int_eq(tn_tensor_set_requires_grad(x, true), TN_OK);
    dataset = tn_dataset_of_tensors(&x, 1);
    pack = sample(dataset, 0, 0, 0);
    ck_assert(!tn_tensor_requires_grad(tn_pack_tensor(pack, 0)));
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

START_TEST(memory_that_fails_anywhere_is_an_error)
{
    toys_register();
    tn_dataset_drop(toys("Toy(1)"));
    for (uint64_t n = 1;; n++) {
        tn__memory_fail(n);
        tn_dataset *dataset = tn_dataset_parse("Toy(6)");
        tn_dataset *part = tn_dataset_subset(dataset, TN_INTS(1, 5));
        tn_dataset *changed = tn_dataset_transform(part, "[Noise(2), Noise()]");
        tn_pack *pack = tn_pack_new();
        tn_status status = pack != NULL ? tn_dataset_get(changed, 1, 0, 0, pack) : TN_ERR_MEMORY;
        bool reached = tn__memory_fail(0) >= n;
        ck_assert_msg(status == TN_OK || status == TN_ERR_MEMORY, "%s", tn_error_text());
        ck_assert((status == TN_OK) == !tn_failed());
        if (pack != NULL)
            ck_assert_int_eq(tn_pack_count(pack), status == TN_OK ? 4 : 0);
        tn_error_clear();
        tn_pack_drop(pack);
        tn_dataset_drop(changed);
        tn_dataset_drop(part);
        tn_dataset_drop(dataset);
        ck_assert_int_eq(toys_open, 0);
        if (!reached)
            break;
    }
    toys_unregister();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_plugin_opens_a_dataset_and_its_samples_are_read,
        wrong_specs_are_refused,
        the_message_of_a_failure_names_dataset_and_sample,
        a_dataset_of_tensors_has_their_elements,
        a_part_of_a_dataset_has_the_samples_of_its_indices,
        random_numbers_of_a_transform_follow_from_seed_epoch_index_and_place,
        the_numbers_of_a_key_are_even,
        wrong_transforms_are_refused,
        samples_are_on_the_host_and_without_gradients,
        memory_that_fails_anywhere_is_an_error,
        NULL,
    };
    return suite_run("dataset", tests);
}
