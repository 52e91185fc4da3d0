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

const void *tn__kind_pointer(const tn_head *copy, uint32_t offset)
{
    const void *found;
    memcpy(&found, (const char *)copy + offset, sizeof found);
    return found;
}

const tn_option *tn_contribution_options(const tn_head *contribution)
{
    const tn__kind *row = contribution ? tn__kind_of(contribution->kind) : NULL;
    return row && row->options ? tn__kind_pointer(contribution, row->options) : NULL;
}

const char *tn_contribution_help(const tn_head *contribution)
{
    const tn__kind *row = contribution ? tn__kind_of(contribution->kind) : NULL;
    const char *help = row && row->help ? tn__kind_pointer(contribution, row->help) : NULL;
    return help ? help : "";
}
