/* SPDX-License-Identifier: MIT
 *
 * npy files; file.h describes the test.
 *
 *     configure --enable-fuzzers CC=clang && make fuzzers
 *     tests/fuzz/fuzz_npy new/ tests/fuzz/corpus/npy */
#include "tests/fuzz/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_file("npy", data, size);
}
