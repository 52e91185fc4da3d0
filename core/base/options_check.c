/* SPDX-License-Identifier: MIT
 *
 * Checks of the option tables that plugins declare, before values are stored through them: each
 * option must be inside the struct, be aligned, not overlap another option, have a known kind and
 * a default that parses. */
#include "core/base/internal.h"
#include "core/base/dtype.h"

/* The largest number of rows. A table that lacks TN_OPTION_END would have no end. */
enum { MOST_ROWS = 256 };

struct place {
    size_t size, alignment;
};

#define PLACE(type)                                                                                \
    {                                                                                              \
        sizeof(type), _Alignof(type)                                                               \
    }

static struct place place_of(const tn_option *row)
{
    static const struct place places[] = {
        [TN_OPTION_KIND_BOOL] = PLACE(bool),        [TN_OPTION_KIND_INT] = PLACE(int64_t),
        [TN_OPTION_KIND_FLOAT] = PLACE(double),     [TN_OPTION_KIND_STRING] = PLACE(const char *),
        [TN_OPTION_KIND_INTS] = PLACE(tn_ints),     [TN_OPTION_KIND_FLOATS] = PLACE(tn_floats),
        [TN_OPTION_KIND_DTYPE] = PLACE(tn_dtype),   [TN_OPTION_KIND_VALUE] = PLACE(tn_value),
        [TN_OPTION_KIND_SCALAR] = PLACE(tn_scalar),
    };
    static const struct place many = PLACE(tn_values), given = PLACE(tn_ints_given),
                              unknown = { 0, 1 };

    if (row->flags & TN_OPTION_MANY)
        return many;
    if (row->flags & TN_OPTION_LISTS)
        return given;
    return row->kind < tn__countof(places) ? places[row->kind] : unknown;
}

size_t tn__option_size(const tn_option *row)
{
    return place_of(row).size;
}

static tn_status form_fits(const tn_option *row, int64_t index, const char *what)
{
    const uint32_t known = TN_OPTION_REQUIRED | TN_OPTION_KEYWORD | TN_OPTION_MANY |
                           TN_OPTION_OPTIONAL | TN_OPTION_REPR_KEYWORD | TN_OPTION_LISTS;

    if (index == MOST_ROWS)
        return tn_fail(TN_ERR_VALUE,
                       "%s: options: too many rows; expected TN_OPTION_END within %d rows", what,
                       MOST_ROWS);
    /* Names of options occur in specs as NAME=VALUE and in the environment as TENON_PLUGIN_NAME.
     * The name of a TN_OPTION_MANY row occurs nowhere, so it is not checked. */
    tn_status status = row->flags & TN_OPTION_MANY && row->name
                           ? TN_OK
                           : tn__name_check(row->name, "", "%s: option %d", what, (int)index + 1);
    if (status != TN_OK)
        return status;
    if (row->kind > TN_OPTION_KIND_SCALAR)
        return tn_fail(
            TN_ERR_VALUE,
            "%s: option %q: unknown kind, got %u; expected 0 to %d, which Tenon %s knows", what,
            row->name, row->kind, TN_OPTION_KIND_SCALAR, tn_version());
    if (row->flags & ~known || row->reserved[0] || row->reserved[1])
        return tn_fail(TN_ERR_VALUE,
                       "%s: option %q: unknown flags or nonzero reserved words, got 0x%x and %u, "
                       "%u; expected flags of 0x%x, which Tenon %s knows, and 0",
                       what, row->name, row->flags, row->reserved[0], row->reserved[1], known,
                       tn_version());
    if (row->flags & TN_OPTION_MANY &&
        (row->kind != TN_OPTION_KIND_VALUE || row[1].kind != TN_OPTION_KIND_END))
        return tn_fail(TN_ERR_VALUE,
                       "%s: option %q: TN_OPTION_MANY at the wrong place; expected this flag only "
                       "in the last row, of kind TN_OPTION_KIND_VALUE",
                       what, row->name);
    if (row->flags & TN_OPTION_LISTS && row->kind != TN_OPTION_KIND_INTS)
        return tn_fail(TN_ERR_VALUE,
                       "%s: option %q: TN_OPTION_LISTS with a wrong kind, got %u; expected "
                       "TN_OPTION_KIND_INTS (%d)",
                       what, row->name, row->kind, TN_OPTION_KIND_INTS);
    return TN_OK;
}

/* Checks offset and size of an option. Options may use the bytes [first, data_size) of the
 * struct. */
static tn_status place_fits(const tn_option *row, size_t first, size_t data_size, const char *what)
{
    struct place place = place_of(row);

    if (row->offset < first || row->offset > data_size || place.size > data_size - row->offset)
        return tn_fail(TN_ERR_VALUE,
                       "%s: option %q: outside the struct, got offset %u and size %zu; expected "
                       "bytes %zu to %zu",
                       what, row->name, row->offset, place.size, first, data_size);
    if (row->offset % place.alignment)
        return tn_fail(TN_ERR_VALUE,
                       "%s: option %q: wrong offset, got %u; expected a multiple of %zu", what,
                       row->name, row->offset, place.alignment);
    return TN_OK;
}

/* Checks an option that a later version of an operator has added: a caller of an older version must
 * not set it, by its padding or by leaving out an option without a default. */
static tn_status addition_fits(const tn_option *table, const tn_option *row, const char *what)
{
    size_t end = 0;

    for (const tn_option *other = table; other < row; other++) {
        if (other->since > row->since)
            return tn_fail(TN_ERR_VALUE,
                           "%s: option %q: since %u comes after since %u of %q; expected a later "
                           "version",
                           what, row->name, row->since, other->since, other->name);
        if (other->since < row->since && other->offset + place_of(other).size > end)
            end = other->offset + place_of(other).size;
    }
    if (row->since == 0)
        return TN_OK;
    if ((row->flags & TN_OPTION_REQUIRED) != 0)
        return tn_fail(TN_ERR_VALUE, "%s: option %q: it was added and has no default", what,
                       row->name);
    end = (end + 7) & ~(size_t)7;
    if (row->offset < end)
        return tn_fail(TN_ERR_VALUE,
                       "%s: option %q: it may be in the padding of the struct without it, got "
                       "offset %u; expected %zu or more (TN_OPTION_ADDED)",
                       what, row->name, row->offset, end);
    return TN_OK;
}

static tn_status apart(const tn_option *table, const tn_option *row, const char *what)
{
    for (const tn_option *other = table; other < row; other++) {
        if (strcmp(other->name, row->name) == 0)
            return tn_fail(TN_ERR_VALUE, "%s: option %q: declared twice", what, row->name);
        if (other->offset < row->offset + place_of(row).size &&
            row->offset < other->offset + place_of(other).size)
            return tn_fail(TN_ERR_VALUE,
                           "%s: options %q and %q overlap: offsets %u and %u, sizes %zu and %zu",
                           what, other->name, row->name, other->offset, row->offset,
                           place_of(other).size, place_of(row).size);
    }
    return TN_OK;
}

/* Checks the default of an option: stores it as tn__options_fill() does later, but in a separate
 * struct. */
static tn_status default_fits(const tn_option *row, const char *what)
{
    tn_option table[2] = { *row, TN_OPTION_END };
    tn_value room[2]; /* as large as an option of any kind */
    tn__option_block *block;

    if (!row->def || row->flags & TN_OPTION_MANY)
        return TN_OK;
    table[0].offset = 0;
    table[0].flags &= ~(uint32_t)TN_OPTION_REQUIRED;
    memset(room, 0, sizeof room);
    tn_status status = tn__options_fill(table, room, what, NULL, NULL, NULL, NULL, 0, &block);
    if (status == TN_OK)
        tn__options_release(block);
    return status;
}

tn_status tn__options_check(const tn_option *table, size_t first, size_t data_size,
                            const char *what)
{
    tn_status status = TN_OK;

    for (const tn_option *row = table; row && row->kind != TN_OPTION_KIND_END && status == TN_OK;
         row++) {
        status = form_fits(row, row - table, what);
        if (status == TN_OK)
            status = place_fits(row, first, data_size, what);
        if (status == TN_OK)
            status = apart(table, row, what);
        if (status == TN_OK)
            status = addition_fits(table, row, what);
        if (status == TN_OK)
            status = default_fits(row, what);
    }
    return status;
}
