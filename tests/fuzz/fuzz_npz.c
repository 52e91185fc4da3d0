/* SPDX-License-Identifier: MIT
 *
 * npz files; file.h describes the test.
 *
 *     configure --enable-fuzzers CC=clang && make fuzzers
 *     tests/fuzz/fuzz_npz new/ tests/fuzz/corpus/npz */
#include "tests/fuzz/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_file("npz", data, size);
}
