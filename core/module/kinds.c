/* SPDX-License-Identifier: MIT
 *
 * The kinds of contributions that core/module uses: layers and initializations. */
#include "core/module/internal.h"
#include "core/plugin/kind.h"

static tn_status layer_names(const tn_head *copy)
{
    const tn_layer_def *layer = (const tn_layer_def *)copy;
    tn_status status = tn__name_check_type(layer->name, "tn_layer_def");

    if (status == TN_OK && layer->printed != NULL)
        status = tn__name_check(layer->printed, "", "tn_layer_def %s: printed", layer->name);
    return status;
}

static tn_status layer_complete(const tn_head *copy, const char **missing)
{
    const tn_layer_def *layer = (const tn_layer_def *)copy;

    /* A container (list or dictionary) need not be callable. */
    if (layer->forward == NULL && layer->call == NULL &&
        !(layer->flags & (TN_LAYER_LIST | TN_LAYER_DICT)))
        *missing = "forward or call";
    else if ((layer->infer == NULL) != (layer->becomes == NULL))
        *missing = "infer or becomes (set both or neither)";
    else if ((layer->flags & TN_LAYER_LEAF) && (layer->flags & TN_LAYER_THROUGH))
        return tn_fail(TN_ERR_VALUE,
                       "tn_layer_def %q: flags: both TN_LAYER_LEAF and TN_LAYER_THROUGH; "
                       "expected at most one of them",
                       layer->name);
    return TN_OK;
}

static const tn__kind_member layer_members[] = {
    TN__KIND_MEMBER(tn_layer_def, flags,
                    TN_LAYER_LIST | TN_LAYER_DICT | TN_LAYER_PARAMETERS | TN_LAYER_KEEP_KEYS |
                        TN_LAYER_COLLAPSE | TN_LAYER_LEAF | TN_LAYER_THROUGH |
                        TN_LAYER_FUSE_NO_GRAD | TN_LAYER_READS_INPUT),
    { 0 },
};

const tn__kind tn__kind_layer = {
    TN__KIND(tn_layer_def, name, forward),
    .word = "layer",
    .pass = TN__PASS_NAMED,
    .help = offsetof(tn_layer_def, help),
    .options = offsetof(tn_layer_def, options),
    .data_size = offsetof(tn_layer_def, data_size),
    .members = layer_members,
    .names = layer_names,
    .complete = layer_complete,
};

static const tn__kind_need init_needs[] = {
    TN__KIND_NEED(tn_init_def, fill),
    { 0 },
};

const tn__kind tn__kind_init = {
    TN__KIND(tn_init_def, name, fill),
    .word = "init",
    .pass = TN__PASS_NAMED,
    .help = offsetof(tn_init_def, help),
    .options = offsetof(tn_init_def, options),
    .data_size = offsetof(tn_init_def, data_size),
    .needs = init_needs,
};
