/* SPDX-License-Identifier: MIT
 *
 * Internal interface of the spec parser: spec_token.c reads characters, numbers and strings; spec.c
 * reads calls, lists and whole specs. */
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
    bool lines; /* arguments on lines of their own need no comma */
    int dry;    /* > 0 inside a nested call: its arguments are only checked, not stored */
    int64_t values;
    int64_t work; /* sum of the lengths of all nested calls: the cost of parsing them again later */
    struct tn__item *stack; /* values of the calls and lists that are not closed yet */
    int64_t count, capacity;
};

/* Fails with TN_ERR_FORMAT; the message begins with the place of byte `at`. */
tn_status tn__spec_fail(const struct tn__parser *p, size_t at, const char *format, ...);
/* Like tn__spec_fail(), with the message `words`. If a path, or a word with a minus, seems to be at
 * that place, the message also says that it needs quotes. */
tn_status tn__spec_fail_text(const struct tn__parser *p, size_t at, const char *words);
/* Returns the position after the white space, or after the word, that begins at `at`. */
size_t tn__spec_after_space(const struct tn__parser *p, size_t at);
size_t tn__spec_after_word(const struct tn__parser *p, size_t at);
/* Returns the position after the string in quotes that begins at `at`; `at` if there is none, or if
 * it does not end on its line. */
size_t tn__spec_after_string(const struct tn__parser *p, size_t at);
static inline bool tn__spec_starts_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static inline bool tn__spec_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
/* Returns whether the `length` bytes at `at` are exactly this word. */
bool tn__spec_is(const struct tn__parser *p, size_t at, size_t length, const char *word);
/* Reads a number with its sign, or a string with its quotes. p->at is at its first character before
 * the call, and after its last character when the function returns. */
tn_status tn__spec_number(struct tn__parser *p, tn_value *out);
tn_status tn__spec_string(struct tn__parser *p, tn_value *out);
/* PyTorch prints a parameter in a list or dictionary as "Parameter containing: [torch.float32 of
 * size 2x3]". tn__spec_at_parameter() returns whether such a text begins at p->at;
 * tn__spec_parameter() reads it as the tuple (2, 3, 'torch.float32'). */
bool tn__spec_at_parameter(const struct tn__parser *p);
tn_status tn__spec_parameter(struct tn__parser *p, tn_value *out);

#endif
