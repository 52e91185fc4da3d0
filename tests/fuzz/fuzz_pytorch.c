/* SPDX-License-Identifier: MIT
 *
 * Files of the format "pytorch"; file.h describes the test.
 *
 *     configure --enable-fuzzers CC=clang && make fuzzers
 *     tests/fuzz/fuzz_pytorch new/ tests/fuzz/corpus/pytorch */
#include "tests/fuzz/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_file("pytorch", data, size);
}
