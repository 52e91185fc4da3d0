/* SPDX-License-Identifier: MIT
 *
 * The kinds of contributions that lib/data uses: datasets and transforms. */
#include "core/plugin/kind.h"

#include <tenon/data.h>

static const tn__kind_need dataset_needs[] = {
    TN__KIND_NEED(tn_dataset_def, open),
    TN__KIND_NEED(tn_dataset_def, get),
    { 0 },
};

static const tn__kind_member dataset_members[] = {
    TN__KIND_MEMBER(tn_dataset_def, flags, 0),
    { 0 },
};

const tn__kind tn__kind_dataset = {
    TN__KIND(tn_dataset_def, name, get),
    .word = "dataset",
    .pass = TN__PASS_NAMED,
    .help = offsetof(tn_dataset_def, help),
    .options = offsetof(tn_dataset_def, options),
    .data_size = offsetof(tn_dataset_def, data_size),
    .members = dataset_members,
    .needs = dataset_needs,
};

static const tn__kind_need transform_needs[] = {
    TN__KIND_NEED(tn_transform_def, apply),
    { 0 },
};

static const tn__kind_member transform_members[] = {
    TN__KIND_MEMBER(tn_transform_def, flags, TN_TRANSFORM_BATCH | TN_TRANSFORM_ENCODED),
    { 0 },
};

const tn__kind tn__kind_transform = {
    TN__KIND(tn_transform_def, name, apply),
    .word = "transform",
    .pass = TN__PASS_NAMED,
    .help = offsetof(tn_transform_def, help),
    .options = offsetof(tn_transform_def, options),
    .data_size = offsetof(tn_transform_def, data_size),
    .members = transform_members,
    .needs = transform_needs,
};
