/* SPDX-License-Identifier: MIT
 *
 * The kind of contributions that lib/prune uses: pruning methods. */
#include "core/plugin/kind.h"

#include <tenon/prune.h>

static tn_status complete(const tn_head *copy, const char **missing)
{
    const tn_prune_def *p = (const tn_prune_def *)copy;

    if (p->type < TN_PRUNE_UNSTRUCTURED || p->type > TN_PRUNE_NETWORK)
        return tn_fail(TN_ERR_VALUE,
                       "tn_prune_def %q: type: unknown, got %u; expected TN_PRUNE_UNSTRUCTURED "
                       "(1), STRUCTURED (2), GLOBAL (3) or NETWORK (4)",
                       p->name, p->type);
    if (p->type == TN_PRUNE_NETWORK)
        *missing = p->channels == NULL ? "channels" : p->compact == NULL ? "compact" : NULL;
    else if (p->mask == NULL)
        *missing = "mask";
    else if (p->type == TN_PRUNE_STRUCTURED && p->dim == NULL)
        *missing = "dim";
    return TN_OK;
}

static const tn__kind_member members[] = {
    TN__KIND_MEMBER(tn_prune_def, reserved, 0),
    { 0 },
};

const tn__kind tn__kind_prune = {
    TN__KIND(tn_prune_def, name, mask),
    .word = "pruning method",
    .pass = TN__PASS_NAMED,
    .help = offsetof(tn_prune_def, help),
    .options = offsetof(tn_prune_def, options),
    .data_size = offsetof(tn_prune_def, data_size),
    .members = members,
    .complete = complete,
};
