/* SPDX-License-Identifier: MIT
 *
 * Option tables. A provider declares the options of its layer, optimizer etc. as rows of a table.
 * Arguments are matched with these rows and stored in the provider's struct. */
#include "core/base/internal.h"

#include <math.h>
#include "core/base/dtype.h"

/* A copy of an argument that the provider's struct holds as a value; it holds references to the
 * tensors and modules in it. */
struct held {
    tn_value value;
    void *block;
    struct held *next;
};

struct tn__option_block {
    _Atomic int32_t refs; /* the number of owners minus one */
    tn__arena *arena;
    struct held *held;
};

/* The arguments of one call of tn__options_fill(). */
struct filling {
    const tn_option *table;
    char *data;
    const char *what;
    const char *text; /* the text of the spec, or NULL */
    const tn_value *values;
    const char *const *names;
    const int32_t *columns;
    int64_t count;
    tn__option_block *block;
};

/* ---- the table ------------------------------------------------------------------------------- */

static int64_t row_count(const tn_option *table)
{
    int64_t count = 0;

    while (table && table[count].kind != TN_OPTION_KIND_END)
        count++;
    return count;
}

const tn_option *tn__options_find(const tn_option *table, const char *name)
{
    for (; table && table->kind != TN_OPTION_KIND_END; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

const tn_option *tn__options_many(const tn_option *table)
{
    for (; table && table->kind != TN_OPTION_KIND_END; table++)
        if (table->flags & TN_OPTION_MANY)
            return table;
    return NULL;
}

static size_t row_size(const tn_option *row)
{
    static const size_t sizes[] = {
        [TN_OPTION_KIND_BOOL] = sizeof(bool),        [TN_OPTION_KIND_INT] = sizeof(int64_t),
        [TN_OPTION_KIND_FLOAT] = sizeof(double),     [TN_OPTION_KIND_STRING] = sizeof(const char *),
        [TN_OPTION_KIND_INTS] = sizeof(tn_ints),     [TN_OPTION_KIND_FLOATS] = sizeof(tn_floats),
        [TN_OPTION_KIND_DTYPE] = sizeof(tn_dtype),   [TN_OPTION_KIND_VALUE] = sizeof(tn_value),
        [TN_OPTION_KIND_SCALAR] = sizeof(tn_scalar),
    };

    if (row->flags & TN_OPTION_MANY)
        return sizeof(tn_values);
    if (row->flags & TN_OPTION_LISTS)
        return sizeof(tn_ints_given);
    return row->kind < tn__countof(sizes) ? sizes[row->kind] : 0;
}

static const char *kind_words(const tn_option *row)
{
    static const char *const words[] = {
        [TN_OPTION_KIND_BOOL] = "True or False",
        [TN_OPTION_KIND_INT] = "an integer",
        [TN_OPTION_KIND_FLOAT] = "a number",
        [TN_OPTION_KIND_STRING] = "a string",
        [TN_OPTION_KIND_INTS] = "an integer or a list of integers",
        [TN_OPTION_KIND_FLOATS] = "a number or a list of numbers",
        [TN_OPTION_KIND_DTYPE] = "the name of a dtype",
        [TN_OPTION_KIND_VALUE] = "a value",
        [TN_OPTION_KIND_SCALAR] = "a number, True or False",
    };

    return row->kind < tn__countof(words) && words[row->kind] ? words[row->kind]
                                                              : "a value of an unknown kind";
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Prefixes the message of the last failure with its place: the position in the spec, the spec
 * itself if it is short, or `what`. */
static tn_status at_argument(const struct filling *f, int64_t argument)
{
    char place[256];

    if (f->text && f->columns && argument >= 0) {
        tn__spec_place(f->text, f->columns[argument], place, sizeof place);
        return tn_error_prefix("%s", place);
    }
    if (f->text && strlen(f->text) < 80 && !strchr(f->text, '\n'))
        return tn_error_prefix("%s: ", f->text);
    return tn_error_prefix("%s: ", f->what);
}

/* Appends "; accepted: in_features, out_features, bias", without the semicolon if the text ends
 * with a question mark. */
static void add_accepted(const struct filling *f, tn__text *text)
{
    bool asked = text->length > 0 && text->at[text->length - 1] == '?';
    const char *comma = asked ? " accepted: " : "; accepted: ";

    if (row_count(f->table) == 0)
        tn__text_add(text, "; %s has no options", f->what);
    for (const tn_option *row = f->table; row && row->kind != TN_OPTION_KIND_END; row++) {
        if (row->flags & TN_OPTION_MANY)
            continue;
        tn__text_add(text, "%s%s", comma, row->name);
        comma = ", ";
    }
}

static tn_status unknown_name(const struct filling *f, int64_t argument)
{
    const char *name = f->names[argument], *rows[64], *nearest;
    int64_t count = 0;
    tn__text text = { 0 };

    for (const tn_option *row = f->table;
         row && row->kind != TN_OPTION_KIND_END && count < tn__countof(rows); row++)
        if (!(row->flags & TN_OPTION_MANY))
            rows[count++] = row->name;
    nearest = tn__name_nearest(name, rows, count);
    tn__text_add(&text, "no option %q", name);
    if (nearest)
        tn__text_add(&text, "; did you mean %q?", nearest);
    add_accepted(f, &text);
    tn_fail(TN_ERR_KEY, "%s", text.at ? text.at : "no such option");
    tn__text_free(&text);
    at_argument(f, argument);
    return TN_ERR_KEY;
}

static tn_status too_many(const struct filling *f, int64_t argument)
{
    int64_t accepted = 0;
    tn__text text = { 0 };

    for (const tn_option *row = f->table; row && row->kind != TN_OPTION_KIND_END; row++)
        accepted += !(row->flags & (TN_OPTION_KEYWORD | TN_OPTION_MANY));
    tn__text_add(&text, "too many positional arguments; expected at most %lld",
                 (long long)accepted);
    add_accepted(f, &text);
    tn_fail(TN_ERR_VALUE, "%s", text.at ? text.at : "too many positional arguments");
    tn__text_free(&text);
    at_argument(f, argument);
    return TN_ERR_VALUE;
}

static tn_status missing(const struct filling *f, const tn_option *row)
{
    tn__text text = { 0 };

    tn__text_add(&text, "option %q: missing (%s)", row->name,
                 row->help ? row->help : kind_words(row));
    add_accepted(f, &text);
    tn_fail(TN_ERR_VALUE, "%s", text.at ? text.at : "an option is missing");
    tn__text_free(&text);
    at_argument(f, -1);
    return TN_ERR_VALUE;
}

static tn_status wrong_kind(const tn_option *row, const tn_value *value)
{
    tn__text text = { 0 };

    tn__value_print(value, &text);
    tn_fail(TN_ERR_TYPE, "option %q: wrong type, got %.80s (%s); expected %s%s", row->name,
            text.at ? text.at : "this", tn__value_kind_name(value->kind), kind_words(row),
            row->flags & TN_OPTION_OPTIONAL ? " or None" : "");
    tn__text_free(&text);
    return TN_ERR_TYPE;
}

/* ---- storing --------------------------------------------------------------------------------- */

static tn_status store_none(const tn_option *row, void *to)
{
    static const tn_value none = { .kind = TN_VALUE_NONE };

    if (row->kind == TN_OPTION_KIND_VALUE) {
        memcpy(to, &none, sizeof none);
        return TN_OK;
    }
    if (!(row->flags & TN_OPTION_OPTIONAL))
        return wrong_kind(row, &none);
    switch (row->kind) {
    case TN_OPTION_KIND_INT: *(int64_t *)to = INT64_MIN; return TN_OK;
    case TN_OPTION_KIND_FLOAT: *(double *)to = (double)NAN; return TN_OK;
    case TN_OPTION_KIND_STRING: *(const char **)to = NULL; return TN_OK;
    case TN_OPTION_KIND_INTS: *(tn_ints *)to = (tn_ints){ NULL, -1 }; return TN_OK;
    case TN_OPTION_KIND_FLOATS: *(tn_floats *)to = (tn_floats){ NULL, -1 }; return TN_OK;
    case TN_OPTION_KIND_DTYPE: *(tn_dtype *)to = TN_DTYPE_AUTO; return TN_OK;
    case TN_OPTION_KIND_SCALAR: *(tn_scalar *)to = tn_scalar_none(); return TN_OK;
    default: return wrong_kind(row, &none);
    }
}

static bool is_number(const tn_value *value)
{
    return value->kind == TN_VALUE_INT || value->kind == TN_VALUE_FLOAT ||
           value->kind == TN_VALUE_UINT;
}

static double number_of(const tn_value *value)
{
    return value->kind == TN_VALUE_INT    ? (double)value->as.i
           : value->kind == TN_VALUE_UINT ? (double)value->as.u
                                          : value->as.f;
}

/* Returns whether `value` may be an element of the list: also None in an optional list of floats,
 * stored as NaN. */
static bool is_element(const tn_option *row, const tn_value *value)
{
    if (row->kind == TN_OPTION_KIND_INTS)
        return value->kind == TN_VALUE_INT;
    return is_number(value) ||
           (value->kind == TN_VALUE_NONE && (row->flags & TN_OPTION_OPTIONAL) != 0);
}

/* Stores a list of numbers. A single number becomes a list with one element. */
static tn_status store_row(tn__option_block *block, const tn_option *row, const tn_value *value,
                           void *to)
{
    bool is_row = value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE,
         ints = row->kind == TN_OPTION_KIND_INTS;
    const tn_value *at = is_row ? value->as.list : value;
    size_t count = is_row ? value->count : 1;

    for (size_t i = 0; i < count; i++)
        if (!is_element(row, &at[i]))
            return wrong_kind(row, value);
    int64_t *whole = tn__arena_alloc(block->arena, (count ? count : 1) * sizeof(int64_t));
    double *numbers = (double *)whole;
    if (!whole)
        return TN_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (ints)
            whole[i] = at[i].as.i;
        else
            numbers[i] = at[i].kind == TN_VALUE_NONE ? NAN : number_of(&at[i]);
    }
    if (ints)
        *(tn_ints *)to = (tn_ints){ whole, (int64_t)count };
    else
        *(tn_floats *)to = (tn_floats){ numbers, (int64_t)count };
    if (row->flags & TN_OPTION_LISTS)
        ((tn_ints_given *)to)->list = value->kind == TN_VALUE_LIST;
    return TN_OK;
}

static tn_status store_dtype(const tn_value *value, const tn_option *row, void *to)
{
    const char *name = value->as.s;
    tn_dtype dtype;

    if (strncmp(name, "torch.", 6) == 0)
        name += 6;
    tn_status status = tn_dtype_parse(name, &dtype);
    if (status != TN_OK)
        return tn_error_prefix("option %q: ", row->name);
    *(tn_dtype *)to = dtype;
    return TN_OK;
}

static tn_status store_scalar(const tn_value *value, const tn_option *row, tn_scalar *to)
{
    switch (value->kind) {
    case TN_VALUE_BOOL: *to = tn_scalar_bool(value->as.i != 0); return TN_OK;
    case TN_VALUE_INT: *to = tn_scalar_int(value->as.i); return TN_OK;
    case TN_VALUE_UINT: *to = tn_scalar_uint(value->as.u); return TN_OK;
    case TN_VALUE_FLOAT: *to = tn_scalar_float(value->as.f); return TN_OK;
    case TN_VALUE_COMPLEX:
        if (!tn__value_complex_ok(value))
            return wrong_kind(row, value);
        *to = tn_scalar_complex(value->as.list[0].as.f, value->as.list[1].as.f);
        return TN_OK;
    default: return wrong_kind(row, value);
    }
}

/* Copies a value that the struct holds as tn_value. The copy belongs to `block`. */
static tn_status hold(tn__option_block *block, const tn_value *value, tn_value *to)
{
    struct held *held = tn__arena_alloc(block->arena, sizeof *held);

    if (!held)
        return TN_ERR_MEMORY;
    tn_status status = tn__value_copy(value, &held->value, &held->block);
    if (status != TN_OK)
        return status;
    held->next = block->held;
    block->held = held;
    *to = held->value;
    return TN_OK;
}

static tn_status store(tn__option_block *block, const tn_option *row, const tn_value *value,
                       void *to)
{
    if (value->kind == TN_VALUE_NONE)
        return store_none(row, to);
    switch (row->kind) {
    case TN_OPTION_KIND_BOOL:
        if (value->kind != TN_VALUE_BOOL)
            return wrong_kind(row, value);
        *(bool *)to = value->as.i != 0;
        return TN_OK;
    case TN_OPTION_KIND_INT:
        if (value->kind != TN_VALUE_INT)
            return wrong_kind(row, value);
        if (value->as.i == INT64_MIN && row->flags & TN_OPTION_OPTIONAL)
            return tn_fail(TN_ERR_VALUE,
                           "option %q: -2^63 means None in option structs; expected None, or a "
                           "larger number",
                           row->name);
        *(int64_t *)to = value->as.i;
        return TN_OK;
    case TN_OPTION_KIND_FLOAT:
        if (!is_number(value))
            return wrong_kind(row, value);
        *(double *)to = number_of(value);
        return TN_OK;
    case TN_OPTION_KIND_STRING:
        if (value->kind != TN_VALUE_STRING)
            return wrong_kind(row, value);
        *(const char **)to = tn__arena_text(block->arena, value->as.s, strlen(value->as.s));
        return *(const char **)to ? TN_OK : TN_ERR_MEMORY;
    case TN_OPTION_KIND_INTS:
    case TN_OPTION_KIND_FLOATS: return store_row(block, row, value, to);
    case TN_OPTION_KIND_DTYPE:
        return value->kind == TN_VALUE_STRING ? store_dtype(value, row, to)
                                              : wrong_kind(row, value);
    case TN_OPTION_KIND_VALUE: return hold(block, value, to);
    case TN_OPTION_KIND_SCALAR: return store_scalar(value, row, to);
    default:
        return tn_fail(TN_ERR_TYPE, "option %q: unknown kind, got %u; expected TN_OPTION_KIND_*",
                       row->name, row->kind);
    }
}

/* ---- filling --------------------------------------------------------------------------------- */

static tn_status store_default(const struct filling *f, const tn_option *row, void *to)
{
    tn_value value = { .kind = TN_VALUE_NONE };
    tn_status status;

    if (!row->def)
        return row->flags & TN_OPTION_OPTIONAL || row->kind == TN_OPTION_KIND_VALUE
                   ? store_none(row, to)
                   : TN_OK;
    status = tn__spec_parse_value(row->def, f->block->arena, &value);
    if (status == TN_OK)
        status = store(f->block, row, &value, to);
    return status == TN_OK ? status : tn_error_prefix("%s: default of %q: ", f->what, row->name);
}

/* Finds the row for argument `i` and sets *row; NULL if the argument is one of the further
 * arguments (TN_OPTION_MANY). *position is the row for the next positional argument. */
static tn_status match(const struct filling *f, int64_t i, const tn_option **position,
                       const tn_option **row)
{
    const tn_option *many = tn__options_many(f->table);

    if (f->names && f->names[i]) {
        *row = tn__options_find(f->table, f->names[i]);
        if (*row && (*row)->flags & TN_OPTION_MANY)
            *row = NULL;
        return *row || many ? TN_OK : unknown_name(f, i);
    }
    while (*position && (*position)->kind != TN_OPTION_KIND_END &&
           (*position)->flags & (TN_OPTION_KEYWORD | TN_OPTION_MANY))
        (*position)++;
    bool left = *position && (*position)->kind != TN_OPTION_KIND_END;
    *row = left ? (*position)++ : NULL;
    return left || many ? TN_OK : too_many(f, i);
}

/* Stores the further arguments (TN_OPTION_MANY) in their order. */
static tn_status store_many(const struct filling *f, const bool *further, int64_t count)
{
    const tn_option *many = tn__options_many(f->table);
    size_t room = count ? (size_t)count : 1;

    if (!many)
        return TN_OK;
    tn_value *at = tn__arena_alloc(f->block->arena, room * sizeof *at);
    const char **names = tn__arena_alloc(f->block->arena, room * sizeof *names);
    if (!at || !names)
        return TN_ERR_MEMORY;
    int64_t n = 0;
    for (int64_t i = 0; i < f->count; i++) {
        const char *name = f->names ? f->names[i] : NULL;
        if (!further[i])
            continue;
        tn_status status = hold(f->block, &f->values[i], &at[n]);
        if (status != TN_OK)
            return status;
        names[n] = NULL;
        if (name) {
            names[n] = tn__arena_text(f->block->arena, name, strlen(name));
            if (!names[n])
                return TN_ERR_MEMORY;
        }
        n++;
    }
    *(tn_values *)(f->data + many->offset) = (tn_values){ at, names, n };
    return TN_OK;
}

static tn_status fill_arguments(const struct filling *f)
{
    int64_t rows = row_count(f->table), n_further = 0;
    const tn_option *position = f->table;
    bool *given = tn__arena_alloc(f->block->arena, (size_t)(rows + f->count) + 1), *further;

    if (!given)
        return TN_ERR_MEMORY;
    further = given + rows;
    memset(given, 0, (size_t)(rows + f->count));
    for (int64_t i = 0; i < f->count; i++) {
        const tn_option *row = NULL;
        tn_status status = match(f, i, &position, &row);
        if (status != TN_OK)
            return status;
        if (!row) {
            further[i] = true;
            n_further++;
            continue;
        }
        if (given[row - f->table]) {
            tn_fail(TN_ERR_VALUE, "option %q: given twice; expected once", row->name);
            return at_argument(f, i);
        }
        given[row - f->table] = true;
        status = store(f->block, row, &f->values[i], f->data + row->offset);
        if (status != TN_OK)
            return at_argument(f, i);
    }
    for (int64_t i = 0; i < rows; i++) {
        const tn_option *row = &f->table[i];
        if (given[i] || row->flags & TN_OPTION_MANY)
            continue;
        if (row->flags & TN_OPTION_REQUIRED)
            return missing(f, row);
        tn_status status = store_default(f, row, f->data + row->offset);
        if (status != TN_OK)
            return status;
    }
    return store_many(f, further, n_further);
}

tn_status tn__options_fill(const tn_option *table, void *data, const char *what,
                           const char *spec_text, const tn_value *values, const char *const *names,
                           const int32_t *columns, int64_t count, tn__option_block **block)
{
    struct filling f = { table, data, what, spec_text, values, names, columns, count, NULL };
    tn_status status;

    *block = NULL;
    f.block = tn_calloc(1, sizeof *f.block);
    if (!f.block)
        return TN_ERR_MEMORY;
    f.block->arena = tn__arena_new();
    status = f.block->arena ? fill_arguments(&f) : TN_ERR_MEMORY;
    if (status != TN_OK) {
        for (const tn_option *row = table; row && row->kind != TN_OPTION_KIND_END; row++)
            memset(f.data + row->offset, 0, row_size(row));
        tn__options_release(f.block);
        return status;
    }
    *block = f.block;
    return TN_OK;
}

tn__option_block *tn__options_share(tn__option_block *block)
{
    if (block)
        atomic_fetch_add_explicit(&block->refs, 1, memory_order_relaxed);
    return block;
}

void tn__options_release(tn__option_block *block)
{
    if (!block || atomic_fetch_sub_explicit(&block->refs, 1, memory_order_acq_rel) > 0)
        return;
    for (const struct held *held = block->held; held; held = held->next)
        tn__value_free(&held->value, held->block);
    tn__arena_free(block->arena);
    tn_free(block);
}
