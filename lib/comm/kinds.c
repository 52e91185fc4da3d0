/* SPDX-License-Identifier: MIT
 *
 * The kind of contributions that lib/comm uses: communicators. */
#include "core/plugin/kind.h"

#include <tenon/comm.h>

static const tn__kind_need needs[] = {
    TN__KIND_NEED(tn_comm_def, open),
    TN__KIND_NEED(tn_comm_def, close),
    { 0 },
};

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
    .needs = needs,
};
