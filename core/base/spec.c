/* SPDX-License-Identifier: MIT
 *
 * The grammar of specs: Name(arguments), as people write it and as PyTorch prints modules.
 *
 *   spec      = name [ "(" [ argument { separator argument } [ "," ] ] ")" ] | value
 *   argument  = value | name "=" value | child
 *   name      = letters, digits, `_`; it may contain one range, "{" first ".." last "}":
 *               layer_{0..2} means the names layer_0, layer_1 and layer_2
 *   child     = "(" child-name ")" ":" [ count "x" ] ( call | "None" | tuple | parameter )
 *   parameter = "Parameter containing: [" dtype "of size" sizes "]"
 *   separator = ",", or nothing before and after a child
 *   value     = number | string | "True" | "False" | "None" | word | call | list | tuple | dict
 *   list      = "[" { value "," } "]"
 *   tuple     = "(" { value "," } ")", but (value) without a comma is the value itself
 *   dict      = "{" { value ":" value "," } "}"; the last comma may be left out, as in a list
 *
 * A nested call is checked and stored as text. The caller that builds the argument parses the text
 * again, so a character is read once for each call around it. Specs come from files and users:
 * their length, depth, number of values and the total length of nested calls are limited. */
#include "core/base/spec.h"
#include "core/base/stack.h"
#include "core/base/vector.h"

#define LENGTH_MAX (1 << 20)
#define DEPTH_MAX (TN__NESTING + 64) /* the innermost module's arguments may nest further */
#define WORK_MAX (64 * (int64_t)LENGTH_MAX)
#define VALUES_MAX 65536
#define CHILD_NAME_MAX 255

/* ---- letters --------------------------------------------------------------------------------- */

static void skip_space(struct tn__parser *p)
{
    p->at = tn__spec_after_space(p, p->at);
}

/* Skips white space; if `c` follows, skips it and returns true. */
static bool take(struct tn__parser *p, char c)
{
    skip_space(p);
    if (p->text[p->at] != c)
        return false;
    p->at++;
    return true;
}

/* ---- the stack of values --------------------------------------------------------------------- */

static tn_status push(struct tn__parser *p, const struct tn__item *item)
{
    if (++p->values > VALUES_MAX)
        return tn__spec_fail(p, p->at, "too many values; expected at most %d", VALUES_MAX);
    if (p->dry)
        return TN_OK;
    if (!tn__vector_room(&p->stack, &p->capacity, p->count + 1, sizeof *p->stack))
        return TN_ERR_MEMORY;
    p->stack[p->count++] = *item;
    return TN_OK;
}

static const char *keep_text(struct tn__parser *p, size_t at, size_t length, tn_status *status)
{
    const char *text = p->dry ? "" : tn__arena_text(p->arena, p->text + at, length);

    *status = text ? TN_OK : TN_ERR_MEMORY;
    return text;
}

/* ---- rows, calls, words ---------------------------------------------------------------------- */

static tn_status parse_value(struct tn__parser *p, tn_value *out);

/* Reads a list, [a, b], a tuple, (a, b), or a dictionary, {key: a}. */
static tn_status parse_row(struct tn__parser *p, tn_value *out)
{
    size_t start = p->at;
    char open = p->text[p->at++], close = open == '[' ? ']' : open == '{' ? '}' : ')';
    int64_t base = p->count, count = 0;
    bool comma = true;
    struct tn__item item = { .name = NULL };

    while (!take(p, close)) {
        if (!p->text[p->at])
            return tn__spec_fail(p, start, "bracket %c: not closed; expected %c", open, close);
        if (!comma) {
            char words[] = "expected a comma or )";

            words[sizeof words - 2] = close;
            return tn__spec_fail_text(p, p->at, words);
        }
        tn_status status = parse_value(p, &item.value);
        if (status == TN_OK)
            status = push(p, &item);
        if (status != TN_OK)
            return status;
        count++;
        if (open == '{' && count % 2 != 0) {
            if (!take(p, ':'))
                return tn__spec_fail(p, p->at, "expected a colon after the key of a dictionary");
            if (take(p, close))
                return tn__spec_fail(p, p->at - 1, "expected a value after the colon");
            comma = true;
        } else {
            comma = take(p, ',');
        }
    }
    if (open == '(' && count == 1 && !comma) { /* (a) without a comma is the value itself */
        *out = item.value;
        p->count = p->dry ? p->count : base;
        return TN_OK;
    }
    *out = (tn_value){ .kind = open == '['   ? TN_VALUE_LIST
                               : open == '{' ? TN_VALUE_DICT
                                             : TN_VALUE_TUPLE,
                       .count = (uint32_t)count };
    if (p->dry)
        return TN_OK;
    tn_value *list = tn__arena_alloc(p->arena, (size_t)(count ? count : 1) * sizeof *list);
    if (!list)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        list[i] = p->stack[base + i].value;
    out->as.list = list;
    p->count = base;
    uint64_t mark = tn_error_mark();
    if (open == '{' && tn__value_check_dict(out) != TN_OK) {
        tn_error_restore(mark);
        return tn__spec_fail(p, start,
                             "dictionary: wrong key; expected strings, numbers, True, False or "
                             "None");
    }
    return TN_OK;
}

/* Returns whether "(name):" or "("name"):" begins at p->at; the name, with its quotes, is the
 * *length bytes at *from. */
static bool at_child(const struct tn__parser *p, size_t *from, size_t *length)
{
    size_t at = p->at;

    if (p->text[at] != '(')
        return false;
    *from = ++at;
    *length = tn__spec_after_string(p, at) - at;
    if (p->text[at + *length] != ')')
        *length = strcspn(p->text + at, "()\n");
    at += *length;
    return *length > 0 && p->text[at] == ')' && p->text[tn__spec_after_space(p, at + 1)] == ':';
}

/* Reads the name of a child, which at_child() has found. */
static const char *child_name(struct tn__parser *p, size_t from, size_t length, tn_status *status)
{
    struct tn__parser there = *p;
    tn_value name;

    if (tn__spec_after_string(p, from) != from + length)
        return keep_text(p, from, length, status);
    there.at = from;
    *status = tn__spec_string(&there, &name);
    return *status == TN_OK ? name.as.s : NULL;
}

/* Reads the range of a repeated child: "0-2" gives *first 0 and *last 2. Returns false if the text
 * is not a range. */
static bool read_range(const char *text, size_t length, int64_t *first, int64_t *last)
{
    int64_t number = 0;
    bool digits = false, dash = false;

    for (size_t i = 0; i <= length; i++) {
        if (i < length && tn__spec_is_digit(text[i])) {
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

/* Reads a child: `(fc1): Linear(...)`, or a repeated one: `(0-2): 3 x Linear(...)`. */
static tn_status parse_child(struct tn__parser *p, size_t from, size_t length)
{
    struct tn__item item = { .child = true, .column = (int32_t)p->at + 1 };
    int64_t repeat = 1, first = 0, last = 0;
    bool repeated = false;
    tn_status status;

    if (length > CHILD_NAME_MAX)
        return tn__spec_fail(p, from, "name of a child: too long; expected at most %d characters",
                             CHILD_NAME_MAX);
    p->at = tn__spec_after_space(p, from + length + 1) + 1;
    skip_space(p);
    size_t value_at = p->at;
    if (tn__spec_is_digit(p->text[p->at])) {
        for (repeat = 0; tn__spec_is_digit(p->text[p->at]) && repeat <= VALUES_MAX; p->at++)
            repeat = repeat * 10 + (p->text[p->at] - '0');
        repeated = true;
        if (!take(p, 'x') || !read_range(p->text + from, length, &first, &last) ||
            last - first + 1 != repeat)
            return tn__spec_fail(
                p, value_at,
                "repeated child: cannot be read; expected `(0-2): 3 x Type(...)`, with a count "
                "that fits the range");
        skip_space(p);
        value_at = p->at;
    }
    status = tn__spec_at_parameter(p) ? tn__spec_parameter(p, &item.value)
                                      : parse_value(p, &item.value);
    if (status != TN_OK)
        return status;
    if (item.value.kind != TN_VALUE_SPEC && item.value.kind != TN_VALUE_NONE &&
        item.value.kind != TN_VALUE_TUPLE)
        return tn__spec_fail(p, value_at,
                             "not a child; expected a module such as Type(...), a parameter such "
                             "as (2, 3, float32), or None");
    for (int64_t i = 0; i < repeat && status == TN_OK; i++) {
        char number[24];
        if (repeated && !p->dry) {
            int64_t digits = tn_snprint(number, sizeof number, "%lld", (long long)(first + i));
            item.name = tn__arena_text(p->arena, number, (size_t)digits);
            status = item.name ? TN_OK : TN_ERR_MEMORY;
        } else if (!repeated) {
            item.name = child_name(p, from, length, &status);
        }
        if (status == TN_OK)
            status = push(p, &item);
    }
    return status;
}

/* Returns the length of the word at p->at, which may be the name of an argument. The name of a
 * child may begin with a digit: 0=Linear(4, 3). */
static size_t name_length(const struct tn__parser *p)
{
    size_t at = p->at;

    if (tn__spec_starts_word(p->text[at]))
        return tn__spec_after_word(p, at) - at;
    while (tn__spec_is_digit(p->text[at]) || (at > p->at && tn__spec_starts_word(p->text[at])))
        at++;
    return at - p->at;
}

/* A name that may contain a range: `layer_{0..11}` means twelve names. */
struct names {
    size_t at;            /* where the name begins */
    size_t before, after; /* number of bytes before the range and after the range */
    size_t behind;        /* where the bytes after the range begin */
    int64_t first, last;
    bool range;
};

/* Reads "{0..11}" at p->text[*at]. */
static bool at_range(const struct tn__parser *p, size_t *at, int64_t *first, int64_t *last)
{
    const char *text = p->text + *at;
    int64_t bound[2] = { 0, 0 };

    for (int i = 0; i < 2; i++) {
        const char *mark = i == 0 ? "{" : "..";

        if (strncmp(text, mark, strlen(mark)) != 0)
            return false;
        text += strlen(mark);
        if (!tn__spec_is_digit(*text))
            return false;
        for (; tn__spec_is_digit(*text) && bound[i] <= VALUES_MAX; text++)
            bound[i] = bound[i] * 10 + (*text - '0');
    }
    if (*text != '}' || bound[1] < bound[0] || bound[1] > VALUES_MAX)
        return false;
    *first = bound[0];
    *last = bound[1];
    *at = (size_t)(text + 1 - p->text);
    return true;
}

/* Reads the name of an argument at p->at, and sets *value_at to the place after its `=`. Returns
 * false if no name with `=` begins at p->at. */
static bool at_name(const struct tn__parser *p, struct names *names, size_t *value_at)
{
    size_t at;

    *names = (struct names){ .at = p->at, .before = name_length(p) };
    at = p->at + names->before;
    if (p->text[at] == '{') {
        if (!at_range(p, &at, &names->first, &names->last))
            return false;
        names->range = true;
        names->behind = at;
        while (tn__spec_is_digit(p->text[at]) || tn__spec_starts_word(p->text[at]))
            at++;
        names->after = at - names->behind;
    }
    at = tn__spec_after_space(p, at);
    *value_at = at + 1;
    return (names->before > 0 || names->range) && p->text[at] == '=';
}

/* Pushes the item once for each name. */
static tn_status push_named(struct tn__parser *p, struct tn__item *item, const struct names *names)
{
    tn_status status = TN_OK;

    for (int64_t i = names->first; i <= names->last && status == TN_OK; i++) {
        if (names->range && !p->dry) {
            tn__text text = { 0 };

            tn__text_add(&text, "%.*s%lld%.*s", (int)names->before, p->text + names->at,
                         (long long)i, (int)names->after, p->text + names->behind);
            char *name = tn__text_take(&text);
            item->name = name != NULL ? tn__arena_text(p->arena, name, strlen(name)) : NULL;
            tn_free(name);
            status = item->name != NULL ? TN_OK : TN_ERR_MEMORY;
        } else if (!names->range) {
            item->name = keep_text(p, names->at, names->before, &status);
        }
        if (status == TN_OK)
            status = push(p, item);
    }
    return status;
}

/* Returns the position after the last character before `at` that is not white space. */
static size_t before_space(const char *text, size_t at, bool *crossed)
{
    *crossed = false;
    for (; at > 0 && strchr(" \t\r\n", text[at - 1]) != NULL; at--)
        *crossed = *crossed || text[at - 1] == '\n';
    return at;
}

bool tn__spec_own_line(const char *text, int32_t column)
{
    bool crossed;
    size_t at = before_space(text, column > 0 ? (size_t)column - 1 : 0, &crossed);

    return crossed && at > 0 && text[at - 1] != ',' && text[at - 1] != '(';
}

/* Reads the arguments of a call: the text after the opening parenthesis (which is at byte `open`)
 * up to and including the closing one. The arguments stay on the stack. */
static tn_status parse_arguments(struct tn__parser *p, size_t open)
{
    bool named = false, comma = true, child = false;

    while (!take(p, ')')) {
        struct tn__item item = { .column = (int32_t)p->at + 1 };
        size_t from, length;
        tn_status status;

        if (!p->text[p->at])
            return tn__spec_fail(p, open, "bracket (: not closed; expected )");
        if (at_child(p, &from, &length)) {
            status = parse_child(p, from, length);
            if (status != TN_OK)
                return status;
            child = true;
            comma = take(p, ',');
            continue;
        }
        if (!comma && !child && !(p->lines && tn__spec_own_line(p->text, (int32_t)p->at + 1)))
            return tn__spec_fail_text(p, p->at, "expected a comma or )");
        child = false;

        struct names names;
        size_t value_at;
        bool here = at_name(p, &names, &value_at);
        if (here) {
            p->at = value_at;
            named = true;
        } else if (named) {
            return tn__spec_fail(p, p->at,
                                 "argument: positional after a named one; expected name=value");
        }
        status = parse_value(p, &item.value);
        if (status == TN_OK)
            status = here ? push_named(p, &item, &names) : push(p, &item);
        if (status != TN_OK)
            return status;
        comma = take(p, ',');
    }
    return TN_OK;
}

/* Returns whether the parenthesis at `open` calls the word that ends at `end`. It does not if it
 * begins a child on another line: "64, mode=row" newline "(norm): LayerNorm(...)". */
static bool is_call(const struct tn__parser *p, size_t end, size_t open)
{
    struct tn__parser there = *p;
    size_t from, length;

    there.at = open;
    return p->text[open] == '(' &&
           (memchr(p->text + end, '\n', open - end) == NULL || !at_child(&there, &from, &length));
}

/* Reads a value that begins with a word: True, None, inf, a bare word, a nested call. */
static tn_status parse_word(struct tn__parser *p, tn_value *out)
{
    size_t start = p->at, end = tn__spec_after_word(p, start), length = end - start,
           open = tn__spec_after_space(p, end);
    tn_status status = TN_OK;

    if (is_call(p, end, open)) {
        p->at = open + 1;
        p->dry++;
        status = parse_arguments(p, open);
        p->dry--;
        if (status != TN_OK)
            return status;
        p->work += (int64_t)(p->at - start);
        if (p->work > WORK_MAX)
            return tn__spec_fail(p, start,
                                 "spec: too many long nested calls; expected fewer calls in calls");
        *out = (tn_value){ .kind = TN_VALUE_SPEC };
        out->as.s = keep_text(p, start, p->at - start, &status);
        return status;
    }
    if (tn__spec_is(p, start, length, "inf") || tn__spec_is(p, start, length, "nan"))
        return tn__spec_number(p, out);
    p->at = end;
    if (tn__spec_is(p, start, length, "None")) {
        *out = (tn_value){ .kind = TN_VALUE_NONE };
    } else if (tn__spec_is(p, start, length, "True") || tn__spec_is(p, start, length, "False")) {
        *out = tn_value_bool(p->text[start] == 'T');
    } else {
        *out = tn_value_string(keep_text(p, start, length, &status));
    }
    return status;
}

static tn_status parse_value(struct tn__parser *p, tn_value *out)
{
    tn_status status;

    skip_space(p);
    if (p->depth == DEPTH_MAX)
        return tn__spec_fail(p, p->at, "nested too deep; expected at most %d levels", DEPTH_MAX);
    if (tn__stack_is_low())
        return tn__stack_fail("spec", p->depth);
    p->depth++;
    char c = p->text[p->at];
    if (c == '"' || c == '\'')
        status = tn__spec_string(p, out);
    else if (c == '[' || c == '(' || c == '{')
        status = parse_row(p, out);
    else if (tn__spec_is_digit(c) || c == '.' || c == '-' || c == '+')
        status = tn__spec_number(p, out);
    else if (tn__spec_starts_word(c))
        status = parse_word(p, out);
    else if (!c)
        status = tn__spec_fail(p, p->at, "the text ends; expected a value");
    else
        status = tn__spec_fail_text(p, p->at, "expected a value");
    p->depth--;
    return status;
}

/* ---- whole texts ----------------------------------------------------------------------------- */

static tn_status begin(struct tn__parser *p, const char *text, tn__arena *arena)
{
    *p = (struct tn__parser){ .text = text, .arena = arena };
    p->length = strnlen(text, LENGTH_MAX + 1);
    if (p->length > LENGTH_MAX)
        return tn_fail(TN_ERR_FORMAT, "spec: too long, got more than %d bytes; expected at most %d",
                       LENGTH_MAX, LENGTH_MAX);
    skip_space(p);
    return TN_OK;
}

static tn_status expect_end(struct tn__parser *p)
{
    skip_space(p);
    return p->text[p->at]
               ? tn__spec_fail(p, p->at, "text after the end of the spec; expected nothing more")
               : TN_OK;
}

tn_status tn__spec_parse_value(const char *text, tn__arena *arena, tn_value *out)
{
    struct tn__parser p;
    tn_status status = begin(&p, text, arena);

    if (status == TN_OK)
        status = parse_value(&p, out);
    if (status == TN_OK)
        status = expect_end(&p);
    tn_free(p.stack);
    return status;
}

/* Reads a whole spec: sets *type and leaves the arguments on the stack. */
static tn_status parse_top(struct tn__parser *p, const char **type)
{
    size_t start = p->at,
           end = tn__spec_starts_word(p->text[start]) ? tn__spec_after_word(p, start) : start;
    size_t length = end - start, next = tn__spec_after_space(p, end);
    bool call = length > 0 && p->text[next] == '(';
    static const char *const words[] = { "True", "False", "None", "inf", "nan" };
    bool value = length == 0;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < tn__countof(words); i++)
        value = value || tn__spec_is(p, start, length, words[i]);
    *type = "";
    if (call || !value) {
        *type = keep_text(p, start, length, &status);
        p->at = call ? next + 1 : end;
        if (status == TN_OK && call) {
            p->depth++;
            status = parse_arguments(p, next);
        }
    } else {
        struct tn__item item = { .column = (int32_t)p->at + 1 };
        status = parse_value(p, &item.value);
        if (status == TN_OK)
            status = push(p, &item);
    }
    return status == TN_OK ? expect_end(p) : status;
}

/* Copies the items of the stack to the arrays of the spec. */
static tn_status lay_out(struct tn__parser *p, tn__spec *spec)
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

static tn__spec *parse(const char *text, bool lines)
{
    struct tn__parser p = { .stack = NULL };
    tn__arena *arena = tn__arena_new();
    tn__spec *spec = NULL;
    tn_status status;

    if (!arena)
        return NULL;
    status = begin(&p, text, arena);
    p.lines = lines;
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

tn__spec *tn__spec_parse(const char *text)
{
    return parse(text, false);
}

tn__spec *tn__spec_parse_printed(const char *text)
{
    return parse(text, true);
}

void tn__spec_free(tn__spec *spec)
{
    if (spec)
        tn__arena_free(spec->arena);
}
