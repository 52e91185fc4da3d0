/* SPDX-License-Identifier: MIT
 *
 * Reads the pictures of a folder once: decoding, transforms, batches.
 *
 *   bench/data FOLDER TRANSFORMS [WORKERS [BATCH [PICTURES]]]
 *
 * Prints one line for bench/data.py: pictures, seconds, seconds of the processor in user mode and
 * in the system. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include <tenon/tenon.h>

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int fail(void)
{
    fprintf(stderr, "%s\n", tn_error_text());
    return 1;
}

int main(int argc, char **argv)
{
    const char *workers = argc > 3 ? argv[3] : "2", *batch = argc > 4 ? argv[4] : "64";
    int64_t most = argc > 5 ? atoll(argv[5]) : INT64_MAX, pictures = 0;
    struct rusage before, after;
    tn_dataset *files, *dataset;
    tn_loader *loader;
    tn_pack *pack;
    double start, wall;

    if (argc < 3) {
        fprintf(stderr, "usage: data FOLDER TRANSFORMS [WORKERS [BATCH [PICTURES]]]\n");
        return 2;
    }
    tn_set_default_device("cpu");
    files = tn_dataset_new("ImageFolder(%q)", argv[1]);
    dataset = tn_dataset_transform(files, argv[2]);
    loader = tn_loader_new(dataset, "shuffle=True, seed=1, workers=%s, batch_size=%s", workers,
                           batch);
    if (loader == NULL)
        return fail();
    getrusage(RUSAGE_SELF, &before);
    start = now();
    while (pictures < most && (pack = tn_loader_next(loader)) != NULL)
        pictures += tn_tensor_size(tn_pack_tensor(pack, 0), 0);
    wall = now() - start;
    if (tn_failed())
        return fail();
    tn_loader_drop(loader);
    getrusage(RUSAGE_SELF, &after);
    printf("%lld %.6f %.6f %.6f\n", (long long)pictures, wall,
           seconds_of(after.ru_utime) - seconds_of(before.ru_utime),
           seconds_of(after.ru_stime) - seconds_of(before.ru_stime));
    tn_dataset_drop(dataset);
    tn_dataset_drop(files);
    return 0;
}
