/* SPDX-License-Identifier: MIT
 *
 * The grammar of specs: Name(arguments), as people write it and as PyTorch prints modules.
 *
 *   spec      = name [ "(" [ argument { separator argument } [ "," ] ] ")" ] | value
 *   argument  = value | name "=" value | "(" child-name ")" ":" [ count "x" ] ( call | "None" )
 *   separator = "," | nothing, before and after a child
 *   value     = number | string | "True" | "False" | "None" | "inf" | "nan" | word | call | list | tuple
 *   list      = "[" { value "," } "]"        tuple = "(" { value "," } ")", one value in it without comma is that value
 *
 * A nested call is checked and kept as text: whoever builds the argument parses it then. Texts come from files and
 * users: length, depth and number of values are bounded. */
#include "core/base/internal.h"
#include "core/base/number.h"

#define LENGTH_MAX (1 << 20)
#define DEPTH_MAX 64
#define VALUES_MAX 65536
#define CHILD_NAME_MAX 255

struct item {
    tn_value value;
    const char *name;
    int32_t column;
    bool child;
};

struct parser {
    const char *text;
    size_t at, length;
    tn__arena *arena;
    int depth;
    int dry;                    /* inside a nested call: check only */
    int64_t values;
    struct item *stack;         /* of the calls and lists that are open */
    int64_t count, capacity;
};

/* ---- messages ---------------------------------------------------------------------------------- */

void tn__spec_place(const char *text, int32_t column, char *out, size_t size)
{
    enum { SHOWN = 72 };
    char excerpt[SHOWN + 1];
    size_t place = column > 0 ? (size_t)column - 1 : 0, start = 0, end, from, count;
    int line = 1, letters = 1;
    bool lines = strchr(text, '\n') != NULL;

    for (size_t i = 0; i < place && text[i]; i++)
        if (text[i] == '\n') {
            line++;
            start = i + 1;
        }
    for (size_t i = start; i < place && text[i]; i++)
        letters += ((unsigned char)text[i] & 0xc0) != 0x80;
    while (text[start] == ' ' && start < place)
        start++;
    end = start + strcspn(text + start, "\n");
    from = end - start > SHOWN && place > start + SHOWN / 2 ? place - SHOWN / 2 : start;
    while (from > start && ((unsigned char)text[from] & 0xc0) == 0x80)
        from--;
    count = end - from > SHOWN ? SHOWN : end - from;
    while (count > 0 && count < end - from && ((unsigned char)text[from + count] & 0xc0) == 0x80)
        count--;
    for (size_t i = 0; i < count; i++) {
        unsigned char c = (unsigned char)text[from + i];
        excerpt[i] = (char)(c < 0x20 || c == 0x7f ? ' ' : c);
    }
    excerpt[count] = 0;
    const char *before = from > start ? "..." : "", *after = from + count < end ? "..." : "";
    if (lines)
        tn_snprint(out, size, "%s%s%s: line %d, column %d: ", before, excerpt, after, line, letters);
    else
        tn_snprint(out, size, "%s%s%s: column %d: ", before, excerpt, after, letters);
}

static tn_status fail(const struct parser *p, size_t at, const char *format, ...)
{
    char place[256];
    va_list args;

    va_start(args, format);
    tn_failv(TN_ERR_FORMAT, format, args);
    va_end(args);
    tn__spec_place(p->text, (int32_t)at + 1, place, sizeof place);
    return tn_error_prefix("%s", place);
}

/* ---- letters ----------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool starts_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool in_word(char c)
{
    return starts_word(c) || is_digit(c) || c == '.';
}

static size_t after_space(const struct parser *p, size_t at)
{
    while (p->text[at] == ' ' || p->text[at] == '\t' || p->text[at] == '\n' || p->text[at] == '\r')
        at++;
    return at;
}

static size_t after_word(const struct parser *p, size_t at)
{
    while (in_word(p->text[at]))
        at++;
    return at;
}

static void skip_space(struct parser *p)
{
    p->at = after_space(p, p->at);
}

/* Takes the character if it comes next. */
static bool take(struct parser *p, char c)
{
    skip_space(p);
    if (p->text[p->at] != c)
        return false;
    p->at++;
    return true;
}

static bool is(const struct parser *p, size_t at, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(p->text + at, word, length) == 0;
}

/* ---- the stack of values ------------------------------------------------------------------------- */

static tn_status push(struct parser *p, const struct item *item)
{
    if (++p->values > VALUES_MAX)
        return fail(p, p->at, "more than %d values", VALUES_MAX);
    if (p->dry)
        return TN_OK;
    if (p->count == p->capacity) {
        int64_t capacity = p->capacity ? 2 * p->capacity : 32;
        struct item *stack = tn_realloc(p->stack, (size_t)capacity * sizeof *stack);
        if (!stack)
            return TN_ERR_MEMORY;
        p->stack = stack;
        p->capacity = capacity;
    }
    p->stack[p->count++] = *item;
    return TN_OK;
}

static const char *keep_text(struct parser *p, size_t at, size_t length, tn_status *status)
{
    const char *text = p->dry ? "" : tn__arena_text(p->arena, p->text + at, length);

    *status = text ? TN_OK : TN_ERR_MEMORY;
    return text;
}

/* ---- numbers and strings ------------------------------------------------------------------------- */

static tn_status parse_number(struct parser *p, tn_value *out)
{
    size_t start = p->at, at = start, used = 0;
    bool minus = p->text[at] == '-', whole;
    double value = 0.0;

    if (p->text[at] == '-' || p->text[at] == '+')
        at++;
    size_t word = after_word(p, at) - at;
    if (is(p, at, word, "inf") || is(p, at, word, "nan")) {
        value = p->text[at] == 'i' ? __builtin_inf() : __builtin_nan("");
        p->at = at + word;
        *out = tn_value_float(minus ? -value : value);
        return TN_OK;
    }
    bool good = tn__number_read(p->text + at, p->length - at, &value, &used);
    if (used == 0 || in_word(p->text[at + used]))
        return fail(p, start, "this is no number");
    whole = true;
    for (size_t i = 0; i < used; i++)
        whole = whole && is_digit(p->text[at + i]);
    p->at = at + used;
    if (whole) {
        int64_t number = 0;
        for (size_t i = 0; i < used; i++) {
            int digit = p->text[at + i] - '0';
            if (tn__mul_overflow(number, 10, &number)
                || (minus ? __builtin_sub_overflow(number, digit, &number) : tn__add_overflow(number, digit, &number)))
                return fail(p, start, "a whole number has to lie between -2^63 and 2^63 - 1");
        }
        *out = tn_value_int(number);
        return TN_OK;
    }
    if (!good)
        return fail(p, start, "the number is too large for a float64; inf is written so");
    *out = tn_value_float(minus ? -value : value);
    return TN_OK;
}

static int hex(char c)
{
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int put_utf8(char *to, unsigned letter)
{
    if (letter < 0x80) {
        to[0] = (char)letter;
        return 1;
    }
    if (letter < 0x800) {
        to[0] = (char)(0xc0 | letter >> 6);
        to[1] = (char)(0x80 | (letter & 0x3f));
        return 2;
    }
    to[0] = (char)(0xe0 | letter >> 12);
    to[1] = (char)(0x80 | (letter >> 6 & 0x3f));
    to[2] = (char)(0x80 | (letter & 0x3f));
    return 3;
}

/* One escape, p->at behind the backslash; the bytes that it stands for. */
static tn_status parse_escape(struct parser *p, char bytes[4], int *count)
{
    static const char letters[] = "ntr\\'\"", meanings[] = "\n\t\r\\'\"";
    size_t start = p->at - 1;
    char c = p->text[p->at++];
    const char *found = c ? strchr(letters, c) : NULL;
    unsigned value = 0;

    *count = 1;
    if (found) {
        bytes[0] = meanings[found - letters];
        return TN_OK;
    }
    if (c != 'x' && c != 'u')
        return fail(p, start, "no such escape in a string: there are \\n \\t \\r \\\\ \\' \\\" \\xHH and \\uHHHH");
    for (int digits = c == 'x' ? 2 : 4; digits > 0; digits--) {
        int digit = hex(p->text[p->at]);
        if (digit < 0)
            return fail(p, start, "\\%c needs %d hexadecimal digits", c, c == 'x' ? 2 : 4);
        value = value * 16 + (unsigned)digit;
        p->at++;
    }
    if (value == 0 || (value >= 0xd800 && value < 0xe000))
        return fail(p, start, "this is no character that a string can hold");
    if (c == 'x')
        bytes[0] = (char)value;
    else
        *count = put_utf8(bytes, value);
    return TN_OK;
}

static tn_status parse_string(struct parser *p, tn_value *out)
{
    size_t start = p->at, longest;
    char mark = p->text[p->at++], *to = NULL;
    size_t count = 0;

    for (longest = 0; p->text[p->at + longest] && p->text[p->at + longest] != mark; longest++)
        longest += p->text[p->at + longest] == '\\' && p->text[p->at + longest + 1];
    if (!p->dry) {
        to = tn__arena_alloc(p->arena, longest + 1);
        if (!to)
            return TN_ERR_MEMORY;
    }
    while (p->text[p->at] != mark) {
        char bytes[4] = { p->text[p->at] };
        int length = 1;

        if (!bytes[0] || bytes[0] == '\n')
            return fail(p, start, "the string has no closing %c", mark);
        p->at++;
        if (bytes[0] == '\\') {
            tn_status status = parse_escape(p, bytes, &length);
            if (status != TN_OK)
                return status;
        }
        if (to)
            memcpy(to + count, bytes, (size_t)length);
        count += (size_t)length;
    }
    p->at++;
    if (to)
        to[count] = 0;
    *out = tn_value_string(to ? to : "");
    return TN_OK;
}

/* ---- rows, calls, words -------------------------------------------------------------------------- */

static tn_status parse_value(struct parser *p, tn_value *out);

/* [a, b] and (a, b). */
static tn_status parse_row(struct parser *p, tn_value *out)
{
    size_t start = p->at;
    char open = p->text[p->at++], close = open == '[' ? ']' : ')';
    int64_t base = p->count, count = 0;
    bool comma = true;
    struct item item = { .name = NULL };

    while (!take(p, close)) {
        if (!p->text[p->at])
            return fail(p, start, "this %c has no closing %c", open, close);
        if (!comma)
            return fail(p, p->at, "a comma or %c was expected", close);
        tn_status status = parse_value(p, &item.value);
        if (status == TN_OK)
            status = push(p, &item);
        if (status != TN_OK)
            return status;
        count++;
        comma = take(p, ',');
    }
    if (open == '(' && count == 1 && !comma) {  /* parentheses around one value */
        *out = item.value;
        p->count = p->dry ? p->count : base;
        return TN_OK;
    }
    *out = (tn_value){ .kind = open == '[' ? TN_VALUE_LIST : TN_VALUE_TUPLE, .count = (uint32_t)count };
    if (p->dry)
        return TN_OK;
    tn_value *list = tn__arena_alloc(p->arena, (size_t)(count ? count : 1) * sizeof *list);
    if (!list)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        list[i] = p->stack[base + i].value;
    out->as.list = list;
    p->count = base;
    return TN_OK;
}

/* Whether "(name):" begins here; its name lies in [*from, *from + *length). */
static bool at_child(const struct parser *p, size_t *from, size_t *length)
{
    size_t at = p->at;

    if (p->text[at] != '(')
        return false;
    *from = ++at;
    *length = strcspn(p->text + at, "()\n'\"=,");
    at += *length;
    return *length > 0 && p->text[at] == ')' && p->text[after_space(p, at + 1)] == ':';
}

/* The range of a repeated child: "0-2" is 0 and 2. */
static bool read_range(const char *text, size_t length, int64_t *first, int64_t *last)
{
    int64_t number = 0;
    bool digits = false, dash = false;

    for (size_t i = 0; i <= length; i++) {
        if (i < length && is_digit(text[i])) {
            number = number * 10 + (text[i] - '0');
            if (number > 100000000)
                return false;
            digits = true;
        } else if (i == length || (text[i] == '-' && !dash)) {
            if (!digits || (i == length && !dash))
                return false;
            *(dash ? last : first) = number;
            dash = true;
            digits = false;
            number = 0;
        } else {
            return false;
        }
    }
    return true;
}

/* `(fc1): Linear(...)`, `(0-2): 3 x Linear(...)`. */
static tn_status parse_child(struct parser *p, size_t from, size_t length)
{
    struct item item = { .child = true, .column = (int32_t)p->at + 1 };
    int64_t repeat = 1, first = 0, last = 0;
    bool repeated = false;
    tn_status status;

    if (length > CHILD_NAME_MAX)
        return fail(p, from, "a child's name has at most %d letters", CHILD_NAME_MAX);
    p->at = after_space(p, from + length + 1) + 1;
    skip_space(p);
    size_t value_at = p->at;
    if (is_digit(p->text[p->at])) {
        for (repeat = 0; is_digit(p->text[p->at]) && repeat <= VALUES_MAX; p->at++)
            repeat = repeat * 10 + (p->text[p->at] - '0');
        repeated = true;
        if (!take(p, 'x') || !read_range(p->text + from, length, &first, &last) || last - first + 1 != repeat)
            return fail(p, value_at, "a repeated child reads `(0-2): 3 x Type(...)`, with a count that fits the range");
        skip_space(p);
        value_at = p->at;
    }
    status = parse_value(p, &item.value);
    if (status != TN_OK)
        return status;
    if (item.value.kind != TN_VALUE_SPEC && item.value.kind != TN_VALUE_NONE)
        return fail(p, value_at, "a child is a module, Type(...), or None");
    for (int64_t i = 0; i < repeat && status == TN_OK; i++) {
        char number[24];
        if (repeated && !p->dry) {
            int64_t digits = tn_snprint(number, sizeof number, "%lld", (long long)(first + i));
            item.name = tn__arena_text(p->arena, number, (size_t)digits);
            status = item.name ? TN_OK : TN_ERR_MEMORY;
        } else if (!repeated) {
            item.name = keep_text(p, from, length, &status);
        }
        if (status == TN_OK)
            status = push(p, &item);
    }
    return status;
}

/* What stands between the parentheses of a call, p->at behind the opening one; the items stay on the stack. */
static tn_status parse_arguments(struct parser *p, size_t open)
{
    bool named = false, comma = true, child = false;

    while (!take(p, ')')) {
        struct item item = { .column = (int32_t)p->at + 1 };
        size_t from, length;
        tn_status status;

        if (!p->text[p->at])
            return fail(p, open, "this ( has no closing )");
        if (at_child(p, &from, &length)) {
            status = parse_child(p, from, length);
            if (status != TN_OK)
                return status;
            child = true;
            comma = take(p, ',');
            continue;
        }
        if (!comma && !child)
            return fail(p, p->at, "a comma or ) was expected");
        child = false;

        size_t word = starts_word(p->text[p->at]) ? after_word(p, p->at) - p->at : 0;
        size_t equals = after_space(p, p->at + word);
        if (word && p->text[equals] == '=') {
            item.name = keep_text(p, p->at, word, &status);
            if (status != TN_OK)
                return status;
            p->at = equals + 1;
            named = true;
        } else if (named) {
            return fail(p, p->at, "a positional argument cannot follow a named one");
        }
        status = parse_value(p, &item.value);
        if (status == TN_OK)
            status = push(p, &item);
        if (status != TN_OK)
            return status;
        comma = take(p, ',');
    }
    return TN_OK;
}

/* True, None, inf, a bare word, a nested call. */
static tn_status parse_word(struct parser *p, tn_value *out)
{
    size_t start = p->at, end = after_word(p, start), length = end - start, open = after_space(p, end);
    tn_status status = TN_OK;

    if (p->text[open] == '(') {
        p->at = open + 1;
        p->dry++;
        status = parse_arguments(p, open);
        p->dry--;
        if (status != TN_OK)
            return status;
        *out = (tn_value){ .kind = TN_VALUE_SPEC };
        out->as.s = keep_text(p, start, p->at - start, &status);
        return status;
    }
    if (is(p, start, length, "inf") || is(p, start, length, "nan"))
        return parse_number(p, out);
    p->at = end;
    if (is(p, start, length, "None")) {
        *out = (tn_value){ .kind = TN_VALUE_NONE };
    } else if (is(p, start, length, "True") || is(p, start, length, "False")) {
        *out = tn_value_bool(p->text[start] == 'T');
    } else {
        *out = tn_value_string(keep_text(p, start, length, &status));
    }
    return status;
}

static tn_status parse_value(struct parser *p, tn_value *out)
{
    tn_status status;

    skip_space(p);
    if (p->depth == DEPTH_MAX)
        return fail(p, p->at, "more than %d levels deep", DEPTH_MAX);
    p->depth++;
    char c = p->text[p->at];
    if (c == '"' || c == '\'')
        status = parse_string(p, out);
    else if (c == '[' || c == '(')
        status = parse_row(p, out);
    else if (is_digit(c) || c == '.' || c == '-' || c == '+')
        status = parse_number(p, out);
    else if (starts_word(c))
        status = parse_word(p, out);
    else if (!c)
        status = fail(p, p->at, "the text ends where a value was expected");
    else
        status = fail(p, p->at, "a value was expected");
    p->depth--;
    return status;
}

/* ---- whole texts --------------------------------------------------------------------------------- */

static tn_status begin(struct parser *p, const char *text, tn__arena *arena)
{
    *p = (struct parser){ .text = text, .length = strnlen(text, LENGTH_MAX + 1), .arena = arena };
    if (p->length > LENGTH_MAX)
        return tn_fail(TN_ERR_FORMAT, "a spec has at most %d bytes", LENGTH_MAX);
    skip_space(p);
    return TN_OK;
}

static tn_status expect_end(struct parser *p)
{
    skip_space(p);
    return p->text[p->at] ? fail(p, p->at, "the text goes on where it should end") : TN_OK;
}

tn_status tn__value_parse(const char *text, tn__arena *arena, tn_value *out)
{
    struct parser p;
    tn_status status = begin(&p, text, arena);

    if (status == TN_OK)
        status = parse_value(&p, out);
    if (status == TN_OK)
        status = expect_end(&p);
    tn_free(p.stack);
    return status;
}

/* The top of a spec: its type, the items on the stack. */
static tn_status parse_top(struct parser *p, const char **type)
{
    size_t start = p->at, end = starts_word(p->text[start]) ? after_word(p, start) : start;
    size_t length = end - start, next = after_space(p, end);
    bool call = length > 0 && p->text[next] == '(';
    static const char *const words[] = { "True", "False", "None", "inf", "nan" };
    bool value = length == 0;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < tn__countof(words); i++)
        value = value || is(p, start, length, words[i]);
    *type = "";
    if (call || !value) {
        *type = keep_text(p, start, length, &status);
        p->at = call ? next + 1 : end;
        if (status == TN_OK && call) {
            p->depth++;
            status = parse_arguments(p, next);
        }
    } else {
        struct item item = { .column = (int32_t)p->at + 1 };
        status = parse_value(p, &item.value);
        if (status == TN_OK)
            status = push(p, &item);
    }
    return status == TN_OK ? expect_end(p) : status;
}

/* Moves the items to the arrays of the spec. */
static tn_status lay_out(struct parser *p, tn__spec *spec)
{
    size_t count = (size_t)p->count, room = count ? count : 1;

    spec->values = tn__arena_alloc(p->arena, room * sizeof *spec->values);
    spec->names = tn__arena_alloc(p->arena, room * sizeof *spec->names);
    spec->children = tn__arena_alloc(p->arena, room);
    spec->columns = tn__arena_alloc(p->arena, room * sizeof *spec->columns);
    if (!spec->values || !spec->names || !spec->children || !spec->columns)
        return TN_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        spec->values[i] = p->stack[i].value;
        spec->names[i] = p->stack[i].name;
        spec->children[i] = p->stack[i].child;
        spec->columns[i] = p->stack[i].column;
    }
    spec->count = p->count;
    return TN_OK;
}

tn__spec *tn__spec_parse(const char *text)
{
    struct parser p = { .stack = NULL };
    tn__arena *arena = tn__arena_new();
    tn__spec *spec = NULL;
    tn_status status;

    if (!arena)
        return NULL;
    status = begin(&p, text, arena);
    if (status == TN_OK) {
        spec = tn__arena_alloc(arena, sizeof *spec);
        status = spec ? TN_OK : TN_ERR_MEMORY;
    }
    if (status == TN_OK) {
        spec->arena = arena;
        spec->text = tn__arena_text(arena, text, p.length);
        status = spec->text ? parse_top(&p, &spec->type) : TN_ERR_MEMORY;
    }
    if (status == TN_OK)
        status = lay_out(&p, spec);
    tn_free(p.stack);
    if (status != TN_OK) {
        tn__arena_free(arena);
        return NULL;
    }
    return spec;
}

void tn__spec_free(tn__spec *spec)
{
    if (spec)
        tn__arena_free(spec->arena);
}
