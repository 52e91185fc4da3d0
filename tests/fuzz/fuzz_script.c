/* SPDX-License-Identifier: MIT
 *
 * Scripts: whatever the bytes, a module is made of them or they are refused with a message; and a
 * script that was read is written as a file that reads as the same, and is written again with the
 * same bytes.
 *
 *     configure --enable-fuzzers CC=clang && make fuzzers
 *     tests/fuzz/fuzz_script new/ tests/fuzz/corpus/script */
#include "tests/fuzz/file.h"

static tn_module *load_script(const tn_format_def *format, struct bytes *bytes)
{
    tn_source source = { bytes, bytes->size, "input", read_bytes };
    tn_module *script;

    format->recognize(format, &source);
    script = format->load_module(format, &source);
    fuzz_require(script != NULL || tn_error_text()[0] != '\0');
    tn_error_clear();
    return script;
}

static bool save_script(const tn_format_def *format, tn_module *script, struct bytes *bytes)
{
    tn_sink sink = { bytes, "output", write_bytes };
    bool saved = format->save_module(format, &sink, script) == TN_OK;

    fuzz_require(saved || tn_error_text()[0] != '\0');
    tn_error_clear();
    return saved;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TN_SCOPE;
    const tn_format_def *format = (const tn_format_def *)tn_registry_find(TN_KIND_tn_format_def,
                                                                          "script");
    struct bytes input = { (uint8_t *)fuzz_text(data, size), size };
    struct bytes first = { NULL, 0 }, second = { NULL, 0 };
    tn_module *script, *again;

    fuzz_require(format != NULL);
    script = load_script(format, &input);
    if (script != NULL && save_script(format, script, &first)) {
        again = load_script(format, &first);
        fuzz_require(again != NULL);
        fuzz_require(save_script(format, again, &second));
        fuzz_require(first.size == second.size && memcmp(first.at, second.at, first.size) == 0);
        tn_module_drop(again);
    }
    if (script != NULL)
        tn_module_drop(script);
    free(input.at);
    free(first.at);
    free(second.at);
    return 0;
}
