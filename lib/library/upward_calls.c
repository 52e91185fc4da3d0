/* SPDX-License-Identifier: MIT
 *
 * Calls from lower to higher folders of core/ and lib/. A folder may include headers of lower
 * folders only (tests/house/folders.sh). So each lower folder declares a table of the functions
 * that it needs from higher folders, and this file, which includes all folders, fills these tables.
 */
#include "core/boundary/boundary.h"
#include "core/tensor/boundary.h"
#include "core/grad/internal.h"
#include "core/module/internal.h"
#include "lib/parametrize/parametrize.h"
#include "lib/prune/prune.h"

const tn__base_calls tn__base_up = {
    .tensor_keep = tn_tensor_keep,
    .tensor_drop = tn_tensor_drop,
    .module_keep = tn_module_keep,
    .module_drop = tn_module_drop,
};

/* ---- core/plugin ----------------------------------------------------------------------------- */

const tn__plugin_calls tn__plugin_up = {
    .host_interface = tn__host_interface,
    .check = tn__boundary_contribution,
    .activate = tn__boundary_activate,
};

/* ---- core/tensor ----------------------------------------------------------------------------- */

const tn__tensor_calls tn__tensor_up = {
    .autograd_free = tn__grad_free,
    .requires_grad = tn_tensor_requires_grad,
    .copy = tn__op_copy,
    .fill = tn__op_fill,
};

/* ---- core/op --------------------------------------------------------------------------------- */

const tn__op_calls tn__op_up = {
    .grad_stale = tn__grad_stale,
    .is_leaf = tn_tensor_is_leaf,
    .grad_record = tn__grad_record,
    .grad_before_inplace = tn__grad_before_inplace,
    .grad_after_inplace = tn__grad_after_inplace,
    .grad_alone = tn__grad_alone,
    .grad_view = tn__grad_view,
    .grad_sequence = tn__grad_sequence,
};

/* ---- core/module ----------------------------------------------------------------------------- */

const tn__module_calls tn__module_up = {
    .is_parametrized = tn_is_parametrized,
    .renames = tn__parametrize_renames,
    .rename = tn__parametrize_rename,
    .printed = tn__parametrize_printed,
};

/* ---- lib/parametrize ------------------------------------------------------------------------- */

const tn__parametrize_calls tn__parametrize_up = {
    .is_pruned = tn__prune_is,
    .prune_owns = tn__prune_owns,
};
