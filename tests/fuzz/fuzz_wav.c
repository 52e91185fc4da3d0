/* SPDX-License-Identifier: MIT
 *
 * WAV files, with any bytes: WAVFolder must read a file or refuse it with a message. The input is a
 * file in memory (memfd), which a link of the dataset's folder names. */
#include "tests/fuzz/fuzz.h"

#include <tenon/tenon.h>

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[128];

static void remove_folder(void)
{
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    rmdir(folder);
}

/* Makes FOLDER/class/x.wav, a link to the file. */
static int make_folder(void)
{
    int file = memfd_create("fuzz", 0);
    char target[64];

    fuzz_require(file >= 0);
    snprintf(folder, sizeof folder, "/tmp/tenon-fuzz-XXXXXX");
    fuzz_require(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/class", folder);
    fuzz_require(mkdir(path, 0700) == 0);
    snprintf(path, sizeof path, "%s/class/x.wav", folder);
    snprintf(target, sizeof target, "/proc/%d/fd/%d", (int)getpid(), file);
    fuzz_require(symlink(target, path) == 0);
    fuzz_require(atexit(remove_folder) == 0);
    return file;
}

static void read_with(const char *options)
{
    TN_SCOPE;
    tn_dataset *dataset = tn_dataset_new("WAVFolder(%q%s)", folder, options);
    tn_pack *pack = tn_pack_new();

    fuzz_require(dataset != NULL && pack != NULL);
    if (tn_dataset_get(dataset, 0, 1, 0, pack) == TN_OK)
        fuzz_require(tn_pack_count(pack) == 2);
    else
        fuzz_require(tn_failed() && *tn_error_text());
    tn_error_clear();
    tn_pack_drop(pack);
    tn_dataset_drop(dataset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1;

    if (file < 0)
        file = make_folder();
    fuzz_require(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size);
    read_with("");
    read_with(", length=5, crop='random', mono=True");
    return 0;
}
