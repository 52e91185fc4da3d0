/* SPDX-License-Identifier: MIT
 *
 * What all kinds of contributions have. */
#include "core/plugin/kind.h"

const tn__kind *tn__kind_of(uint32_t kind)
{
    for (const tn__kind *const *all = tn__kinds; *all; all++)
        if ((*all)->kind == kind)
            return *all;
    return NULL;
}

const char *tn_kind_name(uint32_t kind)
{
    const tn__kind *row = tn__kind_of(kind);
    return row ? row->word : NULL;
}

/* Returns the pointer in a descriptor at an offset of its row; NULL if the row has 0. */
static const void *pointer_in(const tn_head *head, size_t offset_in_row)
{
    const tn__kind *row = head ? tn__kind_of(head->kind) : NULL;
    const void *found = NULL;
    uint32_t offset = 0;
    if (row)
        memcpy(&offset, (const char *)row + offset_in_row, sizeof offset);
    if (offset)
        memcpy(&found, (const char *)head + offset, sizeof found);
    return found;
}

const tn_option *tn_contribution_options(const tn_head *contribution)
{
    return pointer_in(contribution, offsetof(tn__kind, options));
}

const char *tn_contribution_help(const tn_head *contribution)
{
    const char *help = pointer_in(contribution, offsetof(tn__kind, help));
    return help ? help : "";
}
