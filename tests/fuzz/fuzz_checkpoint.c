/* SPDX-License-Identifier: MIT
 *
 * Checkpoints; file.h describes the test. The checksum of the header is corrected first, so that
 * the code after its check is reached.
 *
 *     configure --enable-fuzzers CC=clang && make fuzzers
 *     tests/fuzz/fuzz_checkpoint new/ tests/fuzz/corpus/checkpoint */
#include "tests/fuzz/file.h"

#include "tests/io/checkpoint_sum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t length, sum;
    if (size < 32)
        return fuzz_file("checkpoint", data, size);
    uint8_t *copy = (uint8_t *)fuzz_text(data, size);
    memcpy(&length, copy + 16, 8);
    if (length <= size - 32) {
        sum = sum_of(copy + 32, (size_t)length);
        memcpy(copy + 24, &sum, 8);
    }
    fuzz_file("checkpoint", copy, size);
    free(copy);
    return 0;
}
