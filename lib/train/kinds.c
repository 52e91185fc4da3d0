/* SPDX-License-Identifier: MIT
 *
 * The kinds of contributions that lib/train uses: optimizers and schedulers. */
#include "core/plugin/kind.h"
#include "lib/train/internal.h"

static const tn__kind_need optimizer_needs[] = {
    TN__KIND_NEED(tn_optimizer_def, step),
    { 0 },
};

static const tn__kind_member optimizer_members[] = {
    TN__KIND_MEMBER(tn_optimizer_def, flags,
                    TN_OPTIMIZER_ELEMENTWISE | TN_OPTIMIZER_CLOSURE | TN_OPTIMIZER_MATRICES),
    { 0 },
};

const tn__kind tn__kind_optimizer = {
    TN__KIND(tn_optimizer_def, name, step),
    .word = "optimizer",
    .pass = TN__PASS_NAMED,
    .help = offsetof(tn_optimizer_def, help),
    .options = offsetof(tn_optimizer_def, options),
    .data_size = offsetof(tn_optimizer_def, data_size),
    .members = optimizer_members,
    .needs = optimizer_needs,
};

static const tn__kind_need scheduler_needs[] = {
    TN__KIND_NEED(tn_scheduler_def, step),
    { 0 },
};

/* A scheduler has a second table, of its state. */
static tn_status scheduler_complete(const tn_head *copy, const char **missing)
{
    const tn_scheduler_def *def = (const tn_scheduler_def *)copy;
    char what[128];

    (void)missing;
    tn_snprint(what, sizeof what, "tn_scheduler_def %s: state", def->name);
    return tn__options_check(def->state, 0, def->state_size, what);
}

static const tn__kind_member scheduler_members[] = {
    TN__KIND_MEMBER(tn_scheduler_def, flags, TN_SCHEDULER_METRIC),
    { 0 },
};

const tn__kind tn__kind_scheduler = {
    TN__KIND(tn_scheduler_def, name, step),
    .word = "scheduler",
    .pass = TN__PASS_NAMED,
    .help = offsetof(tn_scheduler_def, help),
    .options = offsetof(tn_scheduler_def, options),
    .data_size = offsetof(tn_scheduler_def, data_size),
    .members = scheduler_members,
    .needs = scheduler_needs,
    .complete = scheduler_complete,
};
