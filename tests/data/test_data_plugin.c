/* SPDX-License-Identifier: MIT
 *
 * The datasets of plugins/data: values, options, damaged files. */
#include "tests/base/suite.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/tenon-data-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[96];

    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static const char *path_of(const char *name)
{
    static char path[2][128];
    static int turn;

    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void write_file(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(path_of(name), "wb");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static tn_dataset *opened(const char *format, const char *path)
{
    tn_dataset *dataset = tn_dataset_new(format, path);

    ck_assert_msg(dataset != NULL, "%s", tn_error_text());
    return dataset;
}

/* Reads a sample into a new pack. */
static tn_pack *sample_of(tn_dataset *dataset, int64_t index)
{
    tn_pack *pack = tn_pack_new();

    ck_assert_msg(tn_dataset_get(dataset, index, 1, 0, pack) == TN_OK, "%s", tn_error_text());
    return pack;
}

/* The next failure must have this text. */
static void refused(tn_dataset *dataset, const char *text)
{
    ck_assert_ptr_null(dataset);
    ck_assert_msg(strstr(tn_error_text(), text) != NULL, "\"%s\" is not in \"%s\"", text,
                  tn_error_text());
    tn_error_clear();
}

/* ---- IDX ------------------------------------------------------------------------------------- */

enum { IMAGES = 5, HEIGHT = 3, WIDTH = 4 };

/* Five images of 3 x 4: pixel k of image i is 10 * i + k; class (3 * i) % 10. */
static void write_mnist(const char *images, const char *labels)
{
    uint8_t pixels[16 + IMAGES * HEIGHT * WIDTH] = { 0, 0, 8, 3,      0, 0, 0, IMAGES,
                                                     0, 0, 0, HEIGHT, 0, 0, 0, WIDTH };
    uint8_t classes[8 + IMAGES] = { 0, 0, 8, 1, 0, 0, 0, IMAGES };

    for (int i = 0; i < IMAGES; i++) {
        classes[8 + i] = (uint8_t)(3 * i % 10);
        for (int k = 0; k < HEIGHT * WIDTH; k++)
            pixels[16 + i * HEIGHT * WIDTH + k] = (uint8_t)(10 * i + k);
    }
    write_file(images, pixels, sizeof pixels);
    write_file(labels, classes, sizeof classes);
}

static void check_mnist(tn_dataset *dataset)
{
    ck_assert_int_eq(tn_dataset_count(dataset), IMAGES);
    for (int i = 0; i < IMAGES; i++) {
        TN_SCOPE;
        tn_pack *pack = sample_of(dataset, i);
        tn_tensor *image = tn_pack_tensor(pack, 0);
        const uint8_t *pixels = tn_tensor_data(image);

        ck_assert_int_eq(tn_tensor_dtype(image), TN_U8);
        ck_assert_int_eq(tn_tensor_ndim(image), 3);
        ck_assert_int_eq(tn_tensor_size(image, 0), 1);
        ck_assert_int_eq(tn_tensor_size(image, 1), HEIGHT);
        ck_assert_int_eq(tn_tensor_size(image, 2), WIDTH);
        for (int k = 0; k < HEIGHT * WIDTH; k++)
            ck_assert_int_eq(pixels[k], 10 * i + k);
        ck_assert_int_eq(tn_pack_at(pack, 1).as.i, 3 * i % 10);
        tn_pack_drop(pack);
    }
}

START_TEST(mnist_reads_images_and_classes)
{
    tn_dataset *dataset;

    make_folder();
    write_mnist("train-images-idx3-ubyte", "train-labels-idx1-ubyte");
    dataset = opened("MNIST(%q)", folder);
    check_mnist(dataset);
    ck_assert_int_eq(tn_dataset_classes(dataset), 10);
    ck_assert_str_eq(tn_dataset_class_name(dataset, 7), "7");
    tn_dataset_drop(dataset);
    dataset = opened("FashionMNIST(%q)", folder);
    ck_assert_str_eq(tn_dataset_class_name(dataset, 9), "Ankle boot");
    tn_dataset_drop(dataset);
    refused(tn_dataset_new("MNIST(%q, train=False)", folder), "t10k-images-idx3-ubyte");
    remove_folder();
}
END_TEST

START_TEST(idx_files_may_be_compressed)
{
    char command[512];
    tn_dataset *dataset;

    make_folder();
    write_mnist("images", "labels");
    snprintf(command, sizeof command, "gzip %s/images", folder);
    ck_assert_int_eq(system(command), 0);
    dataset = tn_dataset_new("IDX(%q, %q)", path_of("images.gz"), path_of("labels"));
    if (dataset == NULL) { /* built without zlib */
        ck_assert_int_eq(tn_error_code(), TN_ERR_NOT_IMPLEMENTED);
        tn_error_clear();
    } else {
        check_mnist(dataset);
        ck_assert_int_eq(tn_dataset_classes(dataset), 10);
    }
    tn_dataset_drop(dataset);
    remove_folder();
}
END_TEST

START_TEST(values_of_idx_files_are_big_endian)
{
    static const uint8_t bytes[] = {
        0, 0, 0x0D, 2,    0, 0, 0,    2, 0, 0, 0,    2,    0x3F, 0x80,
        0, 0, 0xC0, 0x00, 0, 0, 0x3F, 0, 0, 0, 0x42, 0xF6, 0xE9, 0x79
    };
    static const float expected[] = { 1.0f, -2.0f, 0.5f, 123.456f };
    tn_dataset *dataset;

    make_folder();
    write_file("values", bytes, sizeof bytes);
    dataset = opened("IDX(%q)", path_of("values"));
    ck_assert_int_eq(tn_dataset_count(dataset), 2);
    for (int i = 0; i < 2; i++) {
        TN_SCOPE;
        tn_pack *pack = sample_of(dataset, i);
        const float *values = tn_tensor_data(tn_pack_tensor(pack, 0));

        ck_assert_int_eq(tn_pack_count(pack), 1);
        for (int k = 0; k < 2; k++)
            ck_assert_msg(values[k] == expected[2 * i + k], "%g", (double)values[k]);
        tn_pack_drop(pack);
    }
    tn_dataset_drop(dataset);
    remove_folder();
}
END_TEST

START_TEST(damaged_idx_files_are_refused)
{
    static const uint8_t magic[] = { 1, 0, 8, 3, 0, 0, 0, 1 },
                         type[] = { 0, 0, 7, 1, 0, 0, 0, 1, 0 }, dims[] = { 0, 0, 8, 200 },
                         none[] = { 0, 0, 8, 0 },
                         large[] = { 0,    0,    0x0E, 3,    0xFF, 0xFF, 0xFF, 0xFF,
                                     0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF },
                         wide[] = { 0, 0, 8, 2, 0, 0xFF, 0xFF, 0xFF, 0, 0xFF, 0xFF, 0xFF, 1 },
                         more[] = { 0, 0, 8, 1, 0, 0, 0, 1, 5, 6 },
                         few[] = { 0, 0, 8, 1, 0, 0, 0, 4, 1, 2, 3, 4 },
                         high[] = { 0, 0, 8, 1, 0, 0, 0, IMAGES, 1, 2, 10, 4, 5 };

    make_folder();
    write_file("bad", magic, sizeof magic);
    refused(tn_dataset_new("IDX(%q)", path_of("bad")), "no IDX file, it begins with 1 0 8 3");
    write_file("bad", type, sizeof type);
    refused(tn_dataset_new("IDX(%q)", path_of("bad")), "no IDX file");
    write_file("bad", dims, sizeof dims);
    refused(tn_dataset_new("IDX(%q)", path_of("bad")), "wrong number of dimensions, got 200");
    write_file("bad", none, sizeof none);
    refused(tn_dataset_new("IDX(%q)", path_of("bad")), "wrong number of dimensions, got 0");
    write_file("bad", large, sizeof large);
    refused(tn_dataset_new("IDX(%q)", path_of("bad")), "the sizes are too large");
    write_file("bad", wide, sizeof wide);
    refused(tn_dataset_new("IDX(%q)", path_of("bad")), "too short, got 1 bytes");
    write_file("bad", more, sizeof more);
    refused(tn_dataset_new("IDX(%q)", path_of("bad")), "more data than its header says");
    write_file("bad", "", 0);
    refused(tn_dataset_new("IDX(%q)", path_of("bad")), "header: the file is too short");
    refused(tn_dataset_new("IDX(%q)", folder), "not a regular file");
    refused(tn_dataset_new("IDX(%q)", path_of("absent")), "No such file");
    write_mnist("images", "labels");
    write_file("labels", few, sizeof few);
    refused(tn_dataset_new("IDX(%q, %q)", path_of("images"), path_of("labels")),
            "wrong number of labels, got 4; expected 5");
    refused(tn_dataset_new("IDX(%q, %q)", path_of("images"), path_of("images")),
            "got 3 dimensions of uint8");
    write_mnist("train-images-idx3-ubyte", "train-labels-idx1-ubyte");
    write_file("train-labels-idx1-ubyte", high, sizeof high);
    refused(tn_dataset_new("MNIST(%q)", folder), "sample 2: class: out of range, got 10");
    remove_folder();
}
END_TEST

/* Every cut of the file is an error, and no cut a crash. */
START_TEST(an_idx_file_that_is_cut_is_refused)
{
    uint8_t bytes[256];
    size_t size;
    FILE *file;

    make_folder();
    write_mnist("images", "labels");
    file = fopen(path_of("images"), "rb");
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t cut = 0; cut < size; cut++) {
        write_file("cut", bytes, cut);
        refused(tn_dataset_new("IDX(%q)", path_of("cut")), "too short");
    }
    remove_folder();
}
END_TEST

/* ---- CIFAR ----------------------------------------------------------------------------------- */

static void write_cifar(const char *name, int labels, int records, int first)
{
    size_t record = (size_t)labels + 3072;
    uint8_t *bytes = calloc((size_t)records, record);

    for (int i = 0; i < records; i++) {
        uint8_t *at = bytes + (size_t)i * record;

        at[labels - 1] = (uint8_t)((first + i) % 10);
        for (int k = 0; k < 3072; k++)
            at[labels + k] = (uint8_t)(first + i + k);
    }
    write_file(name, bytes, (size_t)records * record);
    free(bytes);
}

static void check_cifar(tn_dataset *dataset, int64_t count)
{
    ck_assert_int_eq(tn_dataset_count(dataset), count);
    for (int64_t i = 0; i < count; i++) {
        TN_SCOPE;
        tn_pack *pack = sample_of(dataset, i);
        tn_tensor *image = tn_pack_tensor(pack, 0);
        const uint8_t *pixels = tn_tensor_data(image);

        ck_assert_int_eq(tn_tensor_size(image, 0), 3);
        ck_assert_int_eq(tn_tensor_size(image, 1), 32);
        ck_assert_int_eq(tn_tensor_size(image, 2), 32);
        for (int k = 0; k < 3072; k++)
            ck_assert_int_eq(pixels[k], (uint8_t)(i + k));
        ck_assert_int_eq(tn_pack_at(pack, 1).as.i, i % 10);
        tn_pack_drop(pack);
    }
}

START_TEST(cifar_reads_all_batches_in_order)
{
    static const char names[] = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\n"
                                "truck\n\n";
    char name[32];
    tn_dataset *dataset;

    make_folder();
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", i + 1);
        write_cifar(name, 1, 3, 3 * i);
    }
    write_cifar("test_batch.bin", 1, 2, 0);
    dataset = opened("CIFAR10(%q)", folder);
    check_cifar(dataset, 15);
    ck_assert_int_eq(tn_dataset_classes(dataset), 10);
    ck_assert_ptr_null(tn_dataset_class_name(dataset, 0));
    ck_assert(!tn_failed());
    tn_dataset_drop(dataset);
    write_file("batches.meta.txt", names, sizeof names - 1);
    dataset = opened("CIFAR10(%q, train=False)", folder);
    check_cifar(dataset, 2);
    ck_assert_str_eq(tn_dataset_class_name(dataset, 9), "truck");
    tn_dataset_drop(dataset);
    write_cifar("train.bin", 2, 12, 0);
    dataset = opened("CIFAR100(%q)", folder);
    check_cifar(dataset, 12);
    ck_assert_int_eq(tn_dataset_classes(dataset), 100);
    tn_dataset_drop(dataset);
    remove_folder();
}
END_TEST

START_TEST(damaged_cifar_files_are_refused)
{
    static uint8_t bytes[3073] = { 10 };

    make_folder();
    write_file("test_batch.bin", bytes, sizeof bytes);
    refused(tn_dataset_new("CIFAR10(%q, train=False)", folder),
            "record 0: class: out of range, got 10");
    write_file("test_batch.bin", bytes, sizeof bytes - 1);
    refused(tn_dataset_new("CIFAR10(%q, train=False)", folder), "wrong size, got 3072 bytes");
    write_file("test_batch.bin", bytes, 0);
    refused(tn_dataset_new("CIFAR10(%q, train=False)", folder), "wrong size, got 0 bytes");
    refused(tn_dataset_new("CIFAR10(%q)", folder), "data_batch_1.bin");
    remove_folder();
}
END_TEST

/* ---- CSV and Digits -------------------------------------------------------------------------- */

/* Sample `index` must have these values and, if `label` is 0 or more, this class. */
static void has(tn_dataset *dataset, int64_t index, int count, const float *values, int64_t label)
{
    TN_SCOPE;
    tn_pack *pack = sample_of(dataset, index);
    tn_tensor *x = tn_pack_tensor(pack, 0);
    const float *got = tn_tensor_data(x);

    ck_assert_int_eq(tn_tensor_dtype(x), TN_F32);
    ck_assert_int_eq(tn_tensor_numel(x), count);
    for (int i = 0; i < count; i++)
        ck_assert_msg(got[i] == values[i], "sample %lld, value %d: %g is not %g", (long long)index,
                      i, (double)got[i], (double)values[i]);
    ck_assert_int_eq(tn_pack_count(pack), label >= 0 ? 2 : 1);
    if (label >= 0)
        ck_assert_int_eq(tn_pack_at(pack, 1).as.i, label);
    tn_pack_drop(pack);
}

START_TEST(csv_reads_numbers_and_classes)
{
    static const char plain[] = "1,2,3,0\n4,5,6.5,2\n\n-7,1e2,.5,1";
    static const char texts[] = "kind;a;b\r\n\"dog; \"\"old\"\"\"; 1 ;2\r\ncat;3;4\r\ncat;5;6\r\n";
    tn_dataset *dataset;

    make_folder();
    write_file("plain.csv", plain, sizeof plain - 1);
    write_file("texts.csv", texts, sizeof texts - 1);
    dataset = opened("CSV(%q)", path_of("plain.csv"));
    ck_assert_int_eq(tn_dataset_count(dataset), 3);
    ck_assert_int_eq(tn_dataset_classes(dataset), 3);
    has(dataset, 0, 3, (float[]){ 1, 2, 3 }, 0);
    has(dataset, 1, 3, (float[]){ 4, 5, 6.5f }, 2);
    has(dataset, -1, 3, (float[]){ -7, 100, 0.5f }, 1);
    tn_dataset_drop(dataset);
    dataset = opened("CSV(%q, label=None, scale=2, shape=(2, 2))", path_of("plain.csv"));
    has(dataset, 1, 4, (float[]){ 8, 10, 13, 4 }, -1);
    ck_assert_int_eq(tn_dataset_classes(dataset), 0);
    tn_dataset_drop(dataset);
    dataset = opened("CSV(%q, label=0, header=True, separator=';')", path_of("texts.csv"));
    ck_assert_int_eq(tn_dataset_classes(dataset), 2);
    ck_assert_str_eq(tn_dataset_class_name(dataset, 0), "cat");
    ck_assert_str_eq(tn_dataset_class_name(dataset, 1), "dog; \"old\"");
    has(dataset, 0, 2, (float[]){ 1, 2 }, 1);
    has(dataset, 2, 2, (float[]){ 5, 6 }, 0);
    tn_dataset_drop(dataset);
    remove_folder();
}
END_TEST

START_TEST(csv_labels_may_be_numbers)
{
    static const char text[] = "1,2,0.5\n3,4,-1.25\n";
    tn_dataset *dataset;
    tn_pack *pack;

    make_folder();
    write_file("t.csv", text, sizeof text - 1);
    dataset = opened("CSV(%q, target='number')", path_of("t.csv"));
    pack = sample_of(dataset, 1);
    ck_assert_int_eq(tn_pack_count(pack), 2);
    ck_assert_int_eq(tn_tensor_ndim(tn_pack_tensor(pack, 1)), 0);
    ck_assert(*(const float *)tn_tensor_data(tn_pack_tensor(pack, 1)) == -1.25f);
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    remove_folder();
}
END_TEST

START_TEST(wrong_csv_files_are_refused)
{
    static const struct {
        const char *text, *spec, *words;
    } wrong[] = {
        { "1,2,3\n4,5\n", "CSV(%q)", "line 2: wrong number of columns, got 2; expected 3" },
        { "1,x,3\n", "CSV(%q)", "line 1, column 1: wrong value, got \"x\"" },
        { "1,,3\n", "CSV(%q)", "column 1: missing value, got \"\"" },
        { "", "CSV(%q)", "no samples" },
        { "\n\n", "CSV(%q)", "no samples" },
        { "a,b\n", "CSV(%q, header=True)", "no samples" },
        { "1,2\n", "CSV(%q, label=2)", "label: out of range, got column 2" },
        { "1,2\n", "CSV(%q, label=-3)", "label: out of range, got column -3" },
        { "1,x\n", "CSV(%q, target='number')", "label: wrong value, got \"x\"" },
        { "1,2\n", "CSV(%q, target='numbers')", "target: unknown, got \"numbers\"" },
        { "1,2\n", "CSV(%q, separator=';;')", "separator: wrong" },
        { "1,2,3\n", "CSV(%q, shape=(3, 1))", "shape: wrong number of elements" },
        { "1,\"2\n3\n", "CSV(%q, label=None)", "a quote that does not end" },
    };

    make_folder();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_file("wrong.csv", wrong[i].text, strlen(wrong[i].text));
        refused(tn_dataset_new(wrong[i].spec, path_of("wrong.csv")), wrong[i].words);
    }
    write_file("wrong.csv", "1,2\0\n", 5);
    refused(tn_dataset_new("CSV(%q)", path_of("wrong.csv")), "not a text file: byte 3 is 0");
    remove_folder();
}
END_TEST

START_TEST(the_digits_come_with_the_plugin)
{
    static const struct {
        const char *spec;
        int64_t count;
    } splits[] = { { "Digits()", 1797 },
                   { "Digits(split='train')", 1438 },
                   { "Digits(split='test')", 359 } };
    double sum = 0;

    for (int i = 0; i < 3; i++) {
        tn_dataset *dataset = tn_dataset_parse(splits[i].spec);
        int64_t classes[10] = { 0 };

        ck_assert_msg(dataset != NULL, "%s", tn_error_text());
        ck_assert_int_eq(tn_dataset_count(dataset), splits[i].count);
        ck_assert_int_eq(tn_dataset_classes(dataset), 10);
        for (int64_t k = 0; k < splits[i].count; k++) {
            TN_SCOPE;
            tn_pack *pack = sample_of(dataset, k);
            const float *pixels = tn_tensor_data(tn_pack_tensor(pack, 0));

            classes[tn_pack_at(pack, 1).as.i]++;
            for (int p = 0; p < 64 && i == 0; p++)
                sum += (double)pixels[p] * 16;
            tn_pack_drop(pack);
        }
        /* 178 zeros, 182 ones ... of the file, counted by awk */
        if (i == 0) {
            ck_assert_int_eq(classes[0], 178);
            ck_assert_int_eq(classes[1], 182);
            ck_assert_int_eq(classes[8], 174);
        }
        tn_dataset_drop(dataset);
    }
    ck_assert_msg(sum == 561718, "%.17g", sum);
    refused(tn_dataset_parse("Digits(split='valid')"), "split: unknown, got \"valid\"");
}
END_TEST

/* ---- TensorFile ------------------------------------------------------------------------------ */

START_TEST(tensors_of_a_file_are_a_dataset)
{
    static const float x[6] = { 1, 2, 3, 4, 5, 6 };
    static const int64_t y[3] = { 7, 8, 9 }, short_one[2] = { 1, 2 };
    tn_dataset *dataset;
    tn_state *state = tn_state_new();
    tn_pack *pack;

    make_folder();
    {
        TN_SCOPE;
        tn_state_set(state, "x", tn_tensor_from(x, TN_F32, TN_SHAPE(3, 2)));
        tn_state_set(state, "y", tn_tensor_from(y, TN_I64, TN_SHAPE(3)));
        ck_assert_int_eq(tn_state_save(state, path_of("t.npz")), TN_OK);
        tn_state_set(state, "z", tn_tensor_from(short_one, TN_I64, TN_SHAPE(2)));
        ck_assert_int_eq(tn_state_save(state, path_of("z.npz")), TN_OK);
    }
    tn_state_drop(state);
    dataset = opened("TensorFile(%q)", path_of("t.npz"));
    ck_assert_int_eq(tn_dataset_count(dataset), 3);
    ck_assert_int_eq(tn_dataset_classes(dataset), 10); /* y is a row of integers, up to 9 */
    pack = sample_of(dataset, 1);
    ck_assert_int_eq(tn_pack_count(pack), 2);
    ck_assert(((const float *)tn_tensor_data(tn_pack_tensor(pack, 0)))[1] == 4);
    ck_assert_int_eq(*(const int64_t *)tn_tensor_data(tn_pack_tensor(pack, 1)), 8);
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    dataset = opened("TensorFile(%q, names=['y'])", path_of("z.npz"));
    pack = sample_of(dataset, 2);
    ck_assert_int_eq(tn_pack_count(pack), 1);
    ck_assert_int_eq(*(const int64_t *)tn_tensor_data(tn_pack_tensor(pack, 0)), 9);
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    dataset = opened("TensorFile(%q, target='number')", path_of("t.npz"));
    pack = sample_of(dataset, 2);
    ck_assert(*(const float *)tn_tensor_data(tn_pack_tensor(pack, 1)) == 9);
    ck_assert_int_eq(tn_dataset_classes(dataset), 0);
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
    refused(tn_dataset_new("TensorFile(%q, target='numbers')", path_of("t.npz")),
            "target: unknown, got \"numbers\"");
    refused(tn_dataset_new("TensorFile(%q, names=['y', 'x'], target='class')", path_of("t.npz")),
            "the last tensor is no row of labels");
    refused(tn_dataset_new("TensorFile(%q)", path_of("z.npz")),
            "has 2 samples, the first tensor has 3");
    refused(tn_dataset_new("TensorFile(%q, names=['w'])", path_of("z.npz")), "w");
    refused(tn_dataset_new("TensorFile(%q, names=[1])", path_of("z.npz")), "entry 0: wrong type");
    refused(tn_dataset_new("TensorFile(%q, names=[])", path_of("z.npz")), "no tensors");
    remove_folder();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        mnist_reads_images_and_classes,
        idx_files_may_be_compressed,
        values_of_idx_files_are_big_endian,
        damaged_idx_files_are_refused,
        an_idx_file_that_is_cut_is_refused,
        cifar_reads_all_batches_in_order,
        damaged_cifar_files_are_refused,
        csv_reads_numbers_and_classes,
        csv_labels_may_be_numbers,
        wrong_csv_files_are_refused,
        the_digits_come_with_the_plugin,
        tensors_of_a_file_are_a_dataset,
        NULL,
    };
    return suite_run("data-plugin", tests);
}
