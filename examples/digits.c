/* SPDX-License-Identifier: MIT
 *
 * Trains a small network on handwritten digits, on every device found or on the devices that the
 * command line names: prints loss and accuracy by epoch, draws the curves, saves the weights, loads
 * them into a new network and checks that this network has the same accuracy. */
#include <tenon/tenon.h>

#include "chart.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PIXELS 64
#define CLASSES 10
#define WANTED 0.95 /* a training must reach a higher accuracy */

/* Images [count, 64] and their labels [count], on the host. */
struct samples {
    int64_t count;
    float *images;
    int64_t *labels;
};

struct settings {
    const char *file;
    const char *net;
    const char *optimizer;
    int epochs;
    int batch;
    unsigned long seed;
};

static const char help[] =
    "usage: digits [OPTIONS] DIGITS.csv [DEVICE...]\n"
    "\n"
    "Trains a small network on handwritten digits: each line of the file has 64 pixels\n"
    "(0 to 16) and the label (0 to 9). Without a DEVICE it trains on every device found.\n"
    "\n"
    "  --epochs N       passes through the training set, 1 to 10000 (20)\n"
    "  --batch N        images in a step, 1 to 100000 (32)\n"
    "  --net SPEC       the network\n"
    "                   (Sequential(Linear(64, 64), ReLU(), Linear(64, 10)))\n"
    "  --optimizer SPEC the optimizer (Adam(lr=0.003))\n"
    "  --seed N         seed of the weights and of the order of images,\n"
    "                   0 to 1000000000 (1)\n"
    "  --help           this text\n"
    "\n"
    "Writes into the current folder: digits-loss.svg, digits-DEVICE.safetensors.\n"
    "Exit status: 0 if every device reached an accuracy of more than 0.95, 1 if one did\n"
    "not or failed, 2 for a wrong command line.\n";

/* ---- data ------------------------------------------------------------------------------------ */

static void samples_free(struct samples *samples)
{
    free(samples->images);
    free(samples->labels);
    *samples = (struct samples){ 0, NULL, NULL };
}

static bool samples_make(struct samples *samples, int64_t room)
{
    samples->count = 0;
    samples->images = malloc((size_t)room * PIXELS * sizeof *samples->images);
    samples->labels = malloc((size_t)room * sizeof *samples->labels);
    if (samples->images != NULL && samples->labels != NULL)
        return true;
    samples_free(samples);
    return false;
}

/* Reads a line "p,p,...,p,label". Returns false if the line has another form. */
static bool read_line(const char *line, float *image, int64_t *label)
{
    for (int i = 0; i <= PIXELS; i++) {
        char *end;
        long value = strtol(line, &end, 10);
        if (end == line || value < 0 || value > (i < PIXELS ? 16 : CLASSES - 1))
            return false;
        if (i < PIXELS)
            image[i] = (float)value;
        else
            *label = value;
        if (*end != (i < PIXELS ? ',' : '\n') && !(i == PIXELS && (*end == '\0' || *end == '\r')))
            return false;
        line = end + 1;
    }
    return true;
}

static bool read_file(const char *path, struct samples *samples)
{
    const int64_t most = 100000;
    FILE *file = fopen(path, "r");
    if (file == NULL || !samples_make(samples, most)) {
        fprintf(stderr, "digits: %s: %s\n", path, strerror(errno));
        if (file != NULL)
            fclose(file);
        return false;
    }
    char line[1024];
    bool good = true;
    while (good && samples->count < most && fgets(line, sizeof line, file) != NULL) {
        good = read_line(line, samples->images + samples->count * PIXELS,
                         samples->labels + samples->count);
        samples->count++;
    }
    if (!good)
        fprintf(stderr,
                "digits: %s, line %lld: malformed; expected 64 pixels from 0 to 16 and a label "
                "from 0 to 9\n",
                path, (long long)samples->count);
    if (good && samples->count < 10) {
        fprintf(stderr, "digits: %s: too few images, got %lld; expected 10 or more\n", path,
                (long long)samples->count);
        good = false;
    }
    fclose(file);
    if (!good)
        samples_free(samples);
    return good;
}

/* Returns a random number for the order of images. Unlike rand(), gives the same order with every C
 * library. */
static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void shuffle(int64_t *order, int64_t count, uint64_t *state)
{
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)(next_random(state) % (uint64_t)(i + 1));
        int64_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* Copies the samples order[0..count) of `from` to `to`. */
static void take(const struct samples *from, const int64_t *order, int64_t count,
                 struct samples *to)
{
    for (int64_t i = 0; i < count; i++) {
        memcpy(to->images + i * PIXELS, from->images + order[i] * PIXELS, PIXELS * sizeof(float));
        to->labels[i] = from->labels[order[i]];
    }
    to->count = count;
}

/* Splits the samples at random: four fifths for training, the rest for testing. */
static bool split(const struct samples *all, uint64_t seed, struct samples *train,
                  struct samples *test)
{
    int64_t *order = malloc((size_t)all->count * sizeof *order);
    int64_t count = all->count * 4 / 5;
    if (order == NULL || !samples_make(train, count) || !samples_make(test, all->count - count)) {
        fprintf(stderr, "digits: out of memory\n");
        free(order);
        return false;
    }
    for (int64_t i = 0; i < all->count; i++)
        order[i] = i;
    shuffle(order, all->count, &seed);
    take(all, order, count, train);
    take(all, order + count, all->count - count, test);
    free(order);
    return true;
}

/* Scales the pixels of both sets by mean and standard deviation of the training set, which then has
 * mean 0 and deviation 1. */
static void normalize(struct samples *train, struct samples *test)
{
    double sum = 0, squares = 0;
    int64_t count = train->count * PIXELS;
    for (int64_t i = 0; i < count; i++) {
        sum += train->images[i];
        squares += (double)train->images[i] * train->images[i];
    }
    double mean = sum / (double)count, variance = squares / (double)count - mean * mean;
    double scale = variance > 0 ? sqrt(variance) : 1.0;
    struct samples *sets[] = { train, test };
    for (int s = 0; s < 2; s++)
        for (int64_t i = 0; i < sets[s]->count * PIXELS; i++)
            sets[s]->images[i] = (float)((sets[s]->images[i] - mean) / scale);
}

/* ---- training -------------------------------------------------------------------------------- */

/* Returns the fraction of samples that the network classifies correctly; a negative number on
 * failure. */
static double accuracy_of(tn_module *net, const struct samples *samples)
{
    TN_SCOPE;
    int64_t *guesses = malloc((size_t)samples->count * sizeof *guesses);
    if (guesses == NULL)
        return -1.0;
    tn_module_eval(net);
    tn_grad_begin(false);
    tn_tensor *x = tn_tensor_from(samples->images, TN_F32, TN_SHAPE(samples->count, PIXELS));
    tn_tensor *best = tn_argmax(tn_module_call(net, x), 1);
    tn_grad_end();
    tn_module_train(net, true);
    int64_t right = -1;
    if (best != NULL &&
        tn_tensor_copy_out(best, guesses, (size_t)samples->count * sizeof *guesses) == TN_OK) {
        right = 0;
        for (int64_t i = 0; i < samples->count; i++)
            right += guesses[i] == samples->labels[i];
    }
    free(guesses);
    return right >= 0 ? (double)right / (double)samples->count : -1.0;
}

/* Runs one step on the images order[0..count) and returns the loss. On failure, returns NaN and
 * sets the error. */
static double train_batch(tn_module *net, tn_optimizer *optimizer, const struct samples *train,
                          const int64_t *order, int64_t count, struct samples *batch)
{
    TN_SCOPE;
    take(train, order, count, batch);
    tn_tensor *x = tn_tensor_from(batch->images, TN_F32, TN_SHAPE(count, PIXELS));
    tn_tensor *y = tn_tensor_from(batch->labels, TN_I64, TN_SHAPE(count));
    tn_tensor *loss = tn_cross_entropy(tn_module_call(net, x), y);
    tn_module_zero_grad(net);
    tn_backward(loss);
    tn_optimizer_step(optimizer);
    return tn_item(loss);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool train_epochs(tn_module *net, tn_optimizer *optimizer, const struct settings *settings,
                         const struct samples *train, const struct samples *test, int64_t *order,
                         struct samples *batch, struct curve *curve)
{
    uint64_t random = settings->seed;
    for (int64_t i = 0; i < train->count; i++)
        order[i] = i;
    for (int epoch = 0; epoch < settings->epochs && !tn_failed(); epoch++) {
        double began = seconds(), sum = 0;
        shuffle(order, train->count, &random);
        for (int64_t at = 0; at < train->count && !tn_failed(); at += settings->batch) {
            int64_t left = train->count - at,
                    count = left < settings->batch ? left : settings->batch;
            sum += train_batch(net, optimizer, train, order + at, count, batch) * (double)count;
        }
        curve->loss[epoch] = sum / (double)train->count;
        curve->accuracy[epoch] = accuracy_of(net, test);
        curve->epochs = epoch + 1;
        if (!tn_failed())
            printf("  epoch %3d/%d   loss %.4f   test accuracy %.4f   %.2f s\n", epoch + 1,
                   settings->epochs, curve->loss[epoch], curve->accuracy[epoch], seconds() - began);
        fflush(stdout);
    }
    return !tn_failed();
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* Saves the weights and loads them into a new network, which must have the same accuracy. */
static bool save_and_check(tn_module *net, const struct settings *settings, const char *device,
                           const struct samples *test, double accuracy)
{
    char path[96];
    if (tn_registry_count(TN_KIND_tn_format_def) == 0) {
        printf("  weights not saved: no loaded plugin provides a file format\n");
        return true;
    }
    snprintf(path, sizeof path, "digits-%.47s.safetensors", device);
    for (char *at = path; *at != '\0'; at++)
        if (*at == ':')
            *at = '-';
    tn_module *fresh = tn_module_parse(settings->net);
    tn_module_save(net, path);
    tn_module_load(fresh, path);
    double again = tn_failed() ? -1.0 : accuracy_of(fresh, test);
    tn_module_drop(fresh);
    if (tn_failed())
        return false;
    printf("  saved %s; loaded into a new network, accuracy %.4f\n", path, again);
    if (again == accuracy)
        return true;
    fprintf(stderr, "digits: %s: the loaded network has another accuracy\n", device);
    return false;
}

static bool train_network(const struct settings *settings, const struct samples *train,
                          const struct samples *test, struct curve *curve)
{
    struct samples batch;
    int64_t *order = malloc((size_t)train->count * sizeof *order);
    if (order == NULL || !samples_make(&batch, settings->batch)) {
        fprintf(stderr, "digits: out of memory\n");
        free(order);
        return false;
    }
    tn_random_seed(settings->seed);
    tn_module *net = tn_module_parse(settings->net);
    tn_optimizer *optimizer = tn_optimizer_new(net, "%s", settings->optimizer);
    bool good = optimizer != NULL &&
                train_epochs(net, optimizer, settings, train, test, order, &batch, curve);
    if (good) {
        double last = curve->accuracy[curve->epochs - 1];
        good = save_and_check(net, settings, curve->name, test, last);
        if (good && last <= WANTED) {
            fprintf(stderr, "digits: %s: accuracy %.4f is not above %.2f\n", curve->name, last,
                    WANTED);
            good = false;
        }
    }
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
    samples_free(&batch);
    free(order);
    return good;
}

static bool train_on(const tn_device *device, const struct settings *settings,
                     const struct samples *train, const struct samples *test, struct curve *curve)
{
    snprintf(curve->name, sizeof curve->name, "%s", tn_device_name(device));
    tn_device_info info = { TN_HEAD(tn_device_info), .name = "" };
    tn_device_describe(device, &info);
    printf("%s (%s): %s, %s\n", curve->name, info.name, settings->net, settings->optimizer);
    uint64_t scope = tn_scope_begin();
    tn_device_begin(device);
    bool good = train_network(settings, train, test, curve);
    tn_device_end();
    tn_scope_end(scope);
    if (tn_failed()) {
        fprintf(stderr, "digits: %s: %s\n", curve->name, tn_error_text());
        tn_error_clear();
        good = false;
    }
    if (curve->epochs > 0)
        chart_text(curve, CHART_HEIGHT);
    return good;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Chooses the devices to train on: those named, or else all devices with memory, cpu first. Returns
 * their number; a negative number after a message on standard error. */
static int choose_devices(char **names, int count, const tn_device **devices, int room)
{
    int chosen = 0;
    for (int i = 0; i < count && chosen < room; i++) {
        devices[chosen] = tn_device_find(names[i]);
        if (devices[chosen++] == NULL) {
            fprintf(stderr, "digits: %s\n", tn_error_text());
            return -1;
        }
    }
    for (int pass = 0; pass < 2 && count == 0; pass++) {
        for (int64_t i = 0; i < tn_device_count() && chosen < room; i++) {
            const tn_device *device = tn_device_at(i);
            bool is_cpu = strcmp(tn_device_type(device), "cpu") == 0;
            if (is_cpu == (pass == 0) && tn_device_has_memory(device))
                devices[chosen++] = device;
        }
    }
    tn_error_clear();
    if (chosen == 0)
        fprintf(stderr, "digits: no device was found; `tenon devices` prints the reasons\n");
    return chosen > 0 ? chosen : -1;
}

#define DEVICES 16

static int train_all(const struct settings *settings, char **names, int count)
{
    const tn_device *devices[DEVICES];
    struct curve curves[DEVICES];
    struct samples all = { 0 }, train = { 0 }, test = { 0 };
    int result = 1, drawn = 0;
    int chosen = choose_devices(names, count, devices, DEVICES);
    if (chosen > 0 && read_file(settings->file, &all) &&
        split(&all, settings->seed, &train, &test)) {
        normalize(&train, &test);
        printf("%lld images for training, %lld for testing\n\n", (long long)train.count,
               (long long)test.count);
        result = 0;
        for (int i = 0; i < chosen; i++) {
            struct curve *curve = &curves[drawn];
            *curve = (struct curve){ .loss = calloc((size_t)settings->epochs, sizeof(double)),
                                     .accuracy = calloc((size_t)settings->epochs, sizeof(double)) };
            if (curve->loss == NULL || curve->accuracy == NULL ||
                !train_on(devices[i], settings, &train, &test, curve))
                result = 1;
            drawn++;
        }
        if (!chart_svg("digits-loss.svg", "Handwritten digits: loss and accuracy", curves, drawn)) {
            fprintf(stderr, "digits: digits-loss.svg: %s\n", strerror(errno));
            result = 1;
        } else {
            printf("wrote digits-loss.svg\n");
        }
    }
    for (int i = 0; i < drawn; i++) {
        free(curves[i].loss);
        free(curves[i].accuracy);
    }
    samples_free(&all);
    samples_free(&train);
    samples_free(&test);
    return result;
}

/* ---- command line ---------------------------------------------------------------------------- */

static bool read_count(const char *text, long low, long high, long *out)
{
    int64_t value;
    if (text == NULL || !tn_read_int(text, &value) || value < low || value > high)
        return false;
    *out = (long)value;
    return true;
}

static int wrong(const char *what, const char *text)
{
    fprintf(stderr, "digits: %s%s%s\nTry: digits --help\n", what, text != NULL ? ": " : "",
            text != NULL ? text : "");
    return 2;
}

int main(int argc, char **argv)
{
    struct settings settings = { .net = "Sequential(Linear(64, 64), ReLU(), Linear(64, 10))",
                                 .optimizer = "Adam(lr=0.003)",
                                 .epochs = 20,
                                 .batch = 32,
                                 .seed = 1 };
    int words = 0; /* the arguments that are not options are moved to the front of argv */
    for (int at = 1; at < argc; at++) {
        const char *option = argv[at], *value = at + 1 < argc ? argv[at + 1] : NULL;
        long number = 0;
        if (strncmp(option, "--", 2) != 0) {
            argv[words++] = argv[at];
            continue;
        }
        if (strcmp(option, "--help") == 0) {
            fputs(help, stdout);
            return 0;
        }
        if (strcmp(option, "--epochs") == 0 && read_count(value, 1, 10000, &number))
            settings.epochs = (int)number;
        else if (strcmp(option, "--batch") == 0 && read_count(value, 1, 100000, &number))
            settings.batch = (int)number;
        else if (strcmp(option, "--seed") == 0 && read_count(value, 0, 1000000000, &number))
            settings.seed = (unsigned long)number;
        else if (strcmp(option, "--net") == 0 && value != NULL)
            settings.net = value;
        else if (strcmp(option, "--optimizer") == 0 && value != NULL)
            settings.optimizer = value;
        else
            return wrong("unknown option, or missing or wrong value", option);
        at++;
    }
    if (words == 0)
        return wrong("the file with the digits is missing", NULL);
    settings.file = argv[0];
    int result = train_all(&settings, argv + 1, words - 1);
    tn_shutdown();
    return result;
}
