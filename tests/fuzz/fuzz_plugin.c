/* SPDX-License-Identifier: MIT
 *
 * What the loader reads before a file is mapped: the file's ELF headers, the list TENON_PLUGINS,
 * versions. The input is the file; its first line is the list and a version, the next a name and
 * another version.
 *
 *     configure --enable-fuzzers CC=clang && make fuzzers
 *     tests/fuzz/fuzz_plugin new/ tests/fuzz/corpus/plugin */
#include "tests/fuzz/fuzz.h"

#include "core/plugin/private.h"

#include <sys/mman.h>
#include <unistd.h>

static void try_file(const uint8_t *data, size_t size)
{
    char path[64], words[200] = "";
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    fuzz_require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    /* A reason is written exactly when the file is refused. */
    tn_outcome outcome = tn__file_check_elf(path, words, sizeof words);
    fuzz_require((outcome == TN_OUTCOME_OK) == (words[0] == 0));
    close(fd);
}

static void try_texts(const char *a, const char *b)
{
    int order = tn__plugin_compare_versions(a, b);

    fuzz_require(order == -tn__plugin_compare_versions(b, a));
    fuzz_require(tn__plugin_compare_versions(a, a) == 0);
    /* One more pattern, which denies everything or allows everything, decides. */
    char *list = malloc(strlen(a) + 4);
    fuzz_require(list);
    (void)tn__filter_allows(a, b, NULL);
    (void)tn__filter_allows(a, b, a);
    sprintf(list, "%s,!*", a);
    fuzz_require(!tn__filter_allows(list, b, a));
    sprintf(list, "%s,*", a);
    fuzz_require(tn__filter_allows(list, b, a));
    free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *first = fuzz_text(data, size), *second = strchr(first, '\n');

    if (second)
        *second++ = 0;
    try_file(data, size);
    try_texts(first, second ? second : "");
    free(first);
    return 0;
}
