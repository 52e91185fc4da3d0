/* SPDX-License-Identifier: MIT
 *
 * The kind of contributions that lib/comm uses: communicators. */
#include "core/plugin/kind.h"

static tn_status complete(const tn_head *copy, const char **missing)
{
    const tn_comm_def *comm = (const tn_comm_def *)copy;

    *missing = comm->open == NULL ? "open" : comm->close == NULL ? "close" : NULL;
    return TN_OK;
}

static const tn__kind_member members[] = {
    TN__KIND_MEMBER(tn_comm_def, flags, 0),
    TN__KIND_DTYPES(tn_comm_def, dtypes),
    { 0 },
};

const tn__kind tn__kind_comm = {
    TN__KIND(tn_comm_def, name, close),
    .word = "communicator",
    .pass = TN__PASS_NAMED,
    .help = offsetof(tn_comm_def, help),
    .options = offsetof(tn_comm_def, options),
    .data_size = offsetof(tn_comm_def, data_size),
    .members = members,
    .complete = complete,
};
