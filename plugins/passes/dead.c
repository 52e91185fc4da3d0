/* SPDX-License-Identifier: MIT
 *
 * The pass dead: removes nodes whose values are not used. */
#include "passes.h"

static tn_status dead(const tn_pass_def *self, const tn_pass_args *args)
{
    int64_t removed = tn_graph_dead_code(args->graph);

    (void)self;
    return removed < 0 ? tn_error_last_code() : passes_report(args, removed, "nodes removed");
}

const tn_pass_def pass_dead = { TN_HEAD(tn_pass_def), .name = "dead",
                                .help = "removes nodes whose values are not used",
                                .flags = TN_PASS_EXACT, .run = dead };
