/* SPDX-License-Identifier: MIT
 *
 * safetensors files; file.h describes the test.
 *
 *     configure --enable-fuzzers CC=clang && make fuzzers
 *     tests/fuzz/fuzz_safetensors new/ tests/fuzz/corpus/safetensors */
#include "tests/fuzz/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_file("safetensors", data, size);
}
