/* SPDX-License-Identifier: MIT
 *
 * The parser of specs between its two files: spec_token.c reads letters, numbers and strings,
 * spec.c what is made of them. */
#ifndef TN_CORE_BASE_SPEC_H
#define TN_CORE_BASE_SPEC_H

#include "core/base/internal.h"

struct tn__item {
    tn_value value;
    const char *name;
    int32_t column;
    bool child;
};

struct tn__parser {
    const char *text;
    size_t at, length;
    tn__arena *arena;
    int depth;
    int dry; /* inside a nested call: check only */
    int64_t values;
    int64_t work;           /* letters of all nested calls: what building from them will read */
    struct tn__item *stack; /* of the calls and lists that are open */
    int64_t count, capacity;
};

/* Records TN_ERR_FORMAT with the place of byte `at` in front. */
tn_status tn__spec_fail(const struct tn__parser *p, size_t at, const char *format, ...);
/* The place behind spaces and newlines, behind a word. */
size_t tn__spec_after_space(const struct tn__parser *p, size_t at);
size_t tn__spec_after_word(const struct tn__parser *p, size_t at);
bool tn__spec_starts_word(char c);
static inline bool tn__spec_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
/* Whether the text at `at` is this word and `length` long. */
bool tn__spec_is(const struct tn__parser *p, size_t at, size_t length, const char *word);
/* A number with its sign, a string with its quotes: p->at is at the first letter, then behind the
 * last. */
tn_status tn__spec_number(struct tn__parser *p, tn_value *out);
tn_status tn__spec_string(struct tn__parser *p, tn_value *out);
/* What PyTorch prints for a parameter in a list or dictionary, "Parameter containing:
 * [torch.float32 of size 2x3]": as the value (2, 3, 'torch.float32'). Whether it begins here;
 * reading it. */
bool tn__spec_at_parameter(const struct tn__parser *p);
tn_status tn__spec_parameter(struct tn__parser *p, tn_value *out);

#endif
