/* SPDX-License-Identifier: MIT
 *
 * The processes that were started together with this one, by `tenon run` or another launcher. */
#ifndef TN_COMM_LOCAL_WORLD_H
#define TN_COMM_LOCAL_WORLD_H

#include <tenon/plugin.h>

/* The options of the plugin: the environment variables TENON_COMM_RANK, TENON_COMM_SIZE and so
 * on. */
struct world {
    int64_t rank, size;
    const char *address, *token;
    double timeout;
};

extern struct world world_given;
extern const tn_option world_options[];

/* `world` of tn_comm_def. */
tn_status world_find(const tn_comm_def *self, tn_comm_args *args);

#endif
