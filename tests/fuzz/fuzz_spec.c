/* SPDX-License-Identifier: MIT
 *
 * The parser of specs, the filling of options and the printing of both: a text must be read or
 * refused with a message. The result of reading is printed, and must be the same when it is read
 * from the printed text.
 *
 *     configure --enable-fuzzers CC=clang && make fuzzers
 *     tests/fuzz/fuzz_spec new/ tests/fuzz/corpus/spec */
#include "tests/fuzz/fuzz.h"

#include "core/base/internal.h"

#include <tenon/tenon.h>

struct options {
    bool flag;
    int64_t number;
    double real;
    const char *mode;
    tn_ints size;
    tn_floats betas;
    tn_dtype dtype;
    tn_value any;
    tn_values more;
};

static const tn_option table[] = {
    TN_OPTION_BOOL(struct options, flag, "False", ""),
    TN_OPTION_ROW(struct options, number, "None", "", TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_FLOAT(struct options, real, "1e-3", ""),
    TN_OPTION_STRING(struct options, mode, "mean", ""),
    TN_OPTION_INTS(struct options, size, "(1, 1)", ""),
    TN_OPTION_ROW(struct options, betas, "(0.9, 0.999)", "", TN_OPTION_KIND_FLOATS,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct options, dtype, "float32", "", TN_OPTION_KIND_DTYPE, 0),
    TN_OPTION_ROW(struct options, any, "None", "", TN_OPTION_KIND_VALUE, 0),
    TN_OPTION_ROW(struct options, more, NULL, "", TN_OPTION_KIND_VALUE, TN_OPTION_MANY),
    TN_OPTION_END,
};

static char *print(const tn__spec *spec)
{
    tn__text text = { 0 };

    tn__text_add(&text, "%s(", *spec->type ? spec->type : "f");
    for (int64_t i = 0; i < spec->count; i++) {
        if (i > 0)
            tn__text_add(&text, ", ");
        if (spec->names[i])
            tn__text_add(&text, spec->children[i] ? "(%s): " : "%s=", spec->names[i]);
        tn__value_print(&spec->values[i], &text);
    }
    tn__text_add(&text, ")");
    return tn__text_take(&text);
}

static void fill(const tn__spec *spec)
{
    struct options options = { 0 };
    tn__option_block *keep;
    tn_status status = tn__options_fill(table, &options, "fuzz", spec->text, spec->values,
                                        spec->names, spec->columns, spec->count, &keep);

    if (status == TN_OK) {
        tn__text text = { 0 };
        tn__options_print(table, &options, true, &text);
        tn__options_print(table, &options, false, &text);
        tn__text_free(&text);
    } else {
        fuzz_require(tn_failed() && *tn_error_text() && keep == NULL);
        tn_error_clear();
    }
    tn__options_release(keep);
}

static void try_text(const char *text, int depth)
{
    tn__spec *spec = tn__spec_parse(text);

    if (!spec) {
        fuzz_require(depth == 0 && tn_error_code() == TN_ERR_FORMAT);
        tn_error_clear();
        return;
    }
    fuzz_require(!tn_failed());
    char *printed = print(spec);
    tn__spec *again = tn__spec_parse(printed);
    fuzz_require(again && again->count == spec->count);
    char *twice = print(again);
    fuzz_require(strcmp(printed, twice) == 0);
    tn_free(printed);
    tn_free(twice);
    tn__spec_free(again);
    fill(spec);
    /* A nested call that was accepted is a spec by itself; a few levels are enough. */
    for (int64_t i = 0; depth < 3 && i < spec->count && i < 100; i++)
        if (spec->values[i].kind == TN_VALUE_SPEC)
            try_text(spec->values[i].as.s, depth + 1);
    tn__spec_free(spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    try_text(text, 0);
    free(text);
    return 0;
}
