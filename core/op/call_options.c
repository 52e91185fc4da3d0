/* SPDX-License-Identifier: MIT
 *
 * The option struct of a call: structs of another size, and what is checked of the values for all
 * operators. */
#include "core/op/private.h"

tn_status tn__call_options_missing(const tn_op_def *def, uint32_t size)
{
    for (const tn_option *row = def->options; row->kind != TN_OPTION_KIND_END; row++)
        if ((row->flags & TN_OPTION_REQUIRED) != 0 && row->offset >= size)
            return tn_fail(TN_ERR_VALUE, "%s: %s (%s): it is missing, and has no default",
                           def->name, row->name, row->help);
    return TN_OK;
}

/* No header has a struct that ends inside a member: of such a size, the bytes that are there are
 * half a pointer or number. */
static tn_status check_end(const tn_op_def *def, uint32_t size)
{
    for (const tn_option *row = def->options; row->kind != TN_OPTION_KIND_END; row++) {
        size_t end = row->offset + tn__option_size(row);

        if (row->offset < size && size < end)
            return tn_fail(TN_ERR_VALUE,
                           "%s: options.size: it ends inside the option %s, got %u; expected at "
                           "most %u or at least %zu",
                           def->name, row->name, size, row->offset, end);
    }
    return tn__call_options_missing(def, size);
}

/* Whether the operator knows NULL as a text, or -1 as the count of a list: None. */
static bool takes_none(const tn_op_def *def, const tn_option *row)
{
    const void *own = (const uint8_t *)def->defaults + row->offset;

    if ((row->flags & (TN_OPTION_OPTIONAL | TN_OPTION_REQUIRED)) != 0)
        return (row->flags & TN_OPTION_OPTIONAL) != 0;
    return row->kind == TN_OPTION_KIND_STRING ? *(const char *const *)own == NULL
                                              : ((const tn_ints *)own)->count == -1;
}

static tn_status check_list(const tn_op_def *def, const tn_option *row, const tn_ints *list,
                            bool *none)
{
    if (list->count > 0 && list->at == NULL)
        return tn_fail(TN_ERR_VALUE,
                       "%s: %s: no numbers, got NULL with count %lld; expected an array of them",
                       def->name, row->name, (long long)list->count);
    if (list->count < -1)
        return tn_fail(TN_ERR_VALUE,
                       "%s: %s: wrong count, got %lld; expected 0 or more, or -1 for None",
                       def->name, row->name, (long long)list->count);
    *none |= list->count == -1 && !takes_none(def, row);
    return TN_OK;
}

tn_status tn__call_options_pointers(const tn_op_def *def, const void *options, bool *none)
{
    tn_status status = TN_OK;

    *none = false;
    for (const tn_option *row = def->options; row->kind != TN_OPTION_KIND_END && status == TN_OK;
         row++) {
        const void *at = (const uint8_t *)options + row->offset;

        if (row->kind == TN_OPTION_KIND_INTS || row->kind == TN_OPTION_KIND_FLOATS)
            status = check_list(def, row, at, none); /* tn_floats has the same layout */
        else if (row->kind == TN_OPTION_KIND_STRING && *(const char *const *)at == NULL &&
                 !takes_none(def, row))
            status = tn_fail(TN_ERR_VALUE, "%s: %s: no text, got NULL; expected %s", def->name,
                             row->name, row->help);
    }
    return status;
}

/* Makes lists that are None empty, where the operator knows no None. */
static void empty_lists(const tn_op_def *def, uint8_t *whole)
{
    for (const tn_option *row = def->options; row->kind != TN_OPTION_KIND_END; row++) {
        tn_ints *list = (tn_ints *)(void *)(whole + row->offset);

        if ((row->kind == TN_OPTION_KIND_INTS || row->kind == TN_OPTION_KIND_FLOATS) &&
            list->count == -1 && !takes_none(def, row))
            list->count = 0;
    }
}

/* Checks the size of a caller's option struct: that of an operator that has `own` bytes. */
static tn_status check_size(const tn_op_def *def, uint32_t size, uint32_t own)
{
    if (size < sizeof size)
        return tn_fail(TN_ERR_VALUE,
                       "%s: options.size: too small, got %u; initialize the struct with the "
                       "operator's TN_..._OPTIONS",
                       def->name, size);
    /* An option that the operator lacks begins at a multiple of 8. A caller that knows it and
     * leaves it at its default does not count it in `size` (<tenon/ops.h>). */
    if (size <= ((own + 7) & ~7u))
        return TN_OK;
    return tn_fail(TN_ERR_VERSION,
                   "%s: options.size: too large, got %u bytes; expected at most %u: the call "
                   "sets an option that this version of the operator lacks",
                   def->name, size, own);
}

tn_status tn__call_options_none(const tn_op_def *def, const void *options)
{
    uint32_t size;

    memcpy(&size, options, sizeof size);
    return check_size(def, size, sizeof size);
}

tn_status tn__call_options_whole(const tn_op_def *def, const void *options, void *whole)
{
    uint32_t size;
    bool none;
    tn_status status;

    memcpy(&size, options, sizeof size);
    status = check_size(def, size, def->options_size);
    if (status == TN_OK)
        status = check_end(def, size);
    if (status != TN_OK)
        return status;
    memcpy(whole, def->defaults, def->options_size);
    memcpy(whole, options, size < def->options_size ? size : def->options_size);
    memcpy(whole, &def->options_size, sizeof def->options_size);
    status = tn__call_options_pointers(def, whole, &none);
    if (status == TN_OK && none)
        empty_lists(def, whole);
    return status;
}

tn_status tn__call_options_other(tn__work *work, const void *options)
{
    const tn_op_def *def = &work->op->def;
    void *space = work->option_space;

    if (def->options_size > sizeof work->option_space) {
        space = work->option_heap = tn_malloc(def->options_size);
        if (space == NULL)
            return TN_ERR_MEMORY;
    }
    work->options = space;
    return tn__call_options_whole(def, options, space);
}

tn_status tn__call_options_dtype(const tn__work *work)
{
    const tn_option *row = work->op->dtype_option;
    tn_dtype dtype;

    memcpy(&dtype, (const uint8_t *)work->options + row->offset, sizeof dtype);
    if ((unsigned)dtype < TN_DTYPE_COUNT || dtype == TN_DTYPE_AUTO)
        return TN_OK;
    return tn_fail(TN_ERR_TYPE,
                   "%s: %s: unknown dtype, got %d; expected one of tn_dtype, or TN_DTYPE_AUTO",
                   work->op->def.name, row->name, (int)dtype);
}
