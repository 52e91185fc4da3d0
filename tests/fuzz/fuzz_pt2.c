/* SPDX-License-Identifier: MIT
 *
 * PyTorch's `.pt2` files: whatever the bytes, a module is made of them or they are refused with a
 * message, and the same with their tensors alone. Bytes that are no zip archive are the JSON of a
 * program, which is put into an archive without checksums. The programs do not run: a changed one
 * can ask for any amount of memory and time.
 *
 *     configure --enable-fuzzers CC=clang && make fuzzers
 *     tests/fuzz/fuzz_pt2 new/ tests/fuzz/corpus/pt2 */
#include "tests/fuzz/file.h"

#define MEMBER "serialized_exported_program.json"
enum { NAME = sizeof MEMBER - 1, LOCAL = 30 + NAME, ENTRY = 46 + NAME, END = 22 };

static void put(uint8_t *at, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* An archive with one stored member. */
static struct bytes archive(const uint8_t *data, size_t size)
{
    struct bytes made = { calloc(1, LOCAL + size + ENTRY + END), LOCAL + size + ENTRY + END };
    uint8_t *local = made.at, *entry = made.at + LOCAL + size, *end = entry + ENTRY;

    fuzz_require(made.at != NULL);
    memcpy(local, "PK\3\4", 4);
    put(local + 18, size, 4);
    put(local + 22, size, 4);
    put(local + 26, NAME, 2);
    memcpy(local + 30, MEMBER, NAME);
    if (size > 0)
        memcpy(local + LOCAL, data, size);
    memcpy(entry, "PK\1\2", 4);
    put(entry + 20, size, 4);
    put(entry + 24, size, 4);
    put(entry + 28, NAME, 2);
    memcpy(entry + 46, MEMBER, NAME);
    memcpy(end, "PK\5\6", 4);
    put(end + 8, 1, 2);
    put(end + 10, 1, 2);
    put(end + 12, ENTRY, 4);
    put(end + 16, LOCAL + size, 4);
    return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TN_SCOPE;
    const tn_format_def *format = find_format("pt2");
    bool whole = size >= 2 && memcmp(data, "PK", 2) == 0;
    struct bytes input = whole ? (struct bytes){ (uint8_t *)fuzz_text(data, size), size }
                               : archive(data, size);
    tn_source source = { &input, input.size, "input", read_bytes };
    tn_module *module;

    module = format->load_module(format, &source);
    fuzz_require(module != NULL || (tn_failed() && *tn_error_text()));
    tn_error_clear();
    tn_module_drop(module);
    if (whole)
        fuzz_file("pt2", data, size);
    free(input.at);
    return 0;
}
