/* SPDX-License-Identifier: MIT
 *
 * Shared by the fuzz targets. A target is one file, fuzz_NAME.c, with LLVMFuzzerTestOneInput, and
 * a folder corpus/NAME with small inputs. `configure --enable-fuzzers CC=clang && make fuzzers`
 * links it to libFuzzer:
 *
 *   tests/fuzz/fuzz_NAME new-inputs/ tests/fuzz/corpus/NAME
 *
 * Any other build links it to fuzz_main.c instead, which runs the files and folders that it is
 * given; `make check` does so with the corpus. To add a target: the file, the folder, rows in
 * local.mk. */
#ifndef TN_TESTS_FUZZ_FUZZ_H
#define TN_TESTS_FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tries one input. Returns 0; a wrong result ends the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_require(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The input as a text with a NUL, of its exact length, so that a sanitizer sees what reads beyond
 * it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    return text;
}

#endif
