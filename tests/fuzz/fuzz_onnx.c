/* SPDX-License-Identifier: MIT
 *
 * Files of ONNX: whatever the bytes, a module is made of them or they are refused with a message,
 * and the same with their tensors alone. The models do not run: a changed one can ask for any
 * amount of memory and time.
 *
 *     configure --enable-fuzzers CC=clang && make fuzzers
 *     tests/fuzz/fuzz_onnx new/ tests/fuzz/corpus/onnx */
#include "tests/fuzz/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TN_SCOPE;
    const tn_format_def *format = find_format("onnx");
    struct bytes input = { (uint8_t *)fuzz_text(data, size), size };
    tn_source source = { &input, input.size, "input", read_bytes };
    tn_module *module = format->load_module(format, &source);

    fuzz_require(module != NULL || (tn_failed() && *tn_error_text()));
    tn_error_clear();
    tn_module_drop(module);
    fuzz_file("onnx", data, size);
    free(input.at);
    return 0;
}
