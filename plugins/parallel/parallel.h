/* SPDX-License-Identifier: MIT
 *
 * What the files of this plugin share: exchanges with the other ranks. */
#ifndef TN_PARALLEL_PARALLEL_H
#define TN_PARALLEL_PARALLEL_H

#include <tenon/plugin.h>

#include <tenon/parallel.h>

/* group.c: in all functions, NULL is a group of one rank, with which nothing is exchanged. */
TN_HIDDEN tn_status group_set(tn_comm *group);
TN_HIDDEN tn_comm *group_default(void);
TN_HIDDEN int32_t group_rank(tn_comm *group);
TN_HIDDEN int32_t group_size(tn_comm *group);
/* Makes the calls of the other ranks fail, because this rank has failed and will not call. Keeps
 * the failure of this rank, and returns its status. */
TN_HIDDEN tn_status group_abort(tn_comm *group);
/* Replaces `count` numbers by their sums over all ranks. */
TN_HIDDEN tn_status group_sum(tn_comm *group, double *numbers, int64_t count);
/* Replaces integers by those of rank 0. */
TN_HIDDEN tn_status group_integers(tn_comm *group, int64_t *numbers, int64_t count);
/* Returns the texts of all ranks one after the other, each followed by zeros up to *stride bytes;
 * at least one zero. The caller frees it with tn_free. NULL on failure. */
TN_HIDDEN char *group_texts(tn_comm *group, const char *text, int64_t length, int64_t *stride);
/* Copies the tensors of rank 0 to those of all ranks. */
TN_HIDDEN tn_status group_copy(tn_comm *group, tn_tensor *const *tensors, int64_t count);

/* Returns the module that an option has as a spec or as a module. The caller owns it. */
TN_HIDDEN tn_module *parallel_module(const tn_value *value);

TN_HIDDEN extern const tn_layer_def layer_ddp;
TN_HIDDEN extern const tn_layer_def layer_sync_batch_norm;

/* The functions of the interface. */
TN_HIDDEN tn_module *ddp_wrap(tn_module *module, tn_comm *group, const tn_ddp_options *options);
TN_HIDDEN tn_status ddp_no_sync(tn_module *net, bool begin);
TN_HIDDEN tn_status ddp_weight(tn_module *net, double weight);
TN_HIDDEN tn_status ddp_skip(tn_module *net);
TN_HIDDEN tn_status ddp_join(tn_module *net);
TN_HIDDEN tn_status ddp_set_hook(tn_module *net, tn_ddp_bucket_hook hook, void *user);
TN_HIDDEN tn_status ddp_buffers(tn_module *net);
TN_HIDDEN tn_module *sync_norms(tn_module *module, tn_comm *group);

#endif
