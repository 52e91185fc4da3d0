/* SPDX-License-Identifier: MIT
 *
 * The communicator object, shared by the files of this folder. */
#ifndef TN_LIB_COMM_INTERNAL_H
#define TN_LIB_COMM_INTERNAL_H

#include "core/op/internal.h"
#include "core/tensor/boundary.h"
#include "core/tensor/thread.h"

#include <tenon/comm.h>

struct tn_comm {
    const tn_comm_def *def;
    tn__plugin *plugin;
    const tn_device *device;
    void *handle; /* the plugin's handle of the group */
    int32_t rank, size;
    int64_t users; /* the program, and works */
    _Atomic bool aborted;
    tn_comm_stats stats[TN_EXCHANGE_COUNT + 1]; /* the last: tn_comm_progress */
};

static inline const char *tn__comm_plugin_id(const tn_comm *comm)
{
    return comm->plugin->id != NULL ? comm->plugin->id : "";
}

#endif
