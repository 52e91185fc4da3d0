/* SPDX-License-Identifier: MIT
 *
 * The transform FileName: the name of the file of a sample, for lists of samples. Datasets give it
 * to a transform that takes encoded files (TN_SAMPLE_ENCODED). */
#include "data.h"

static tn_status apply(tn_transform_args *args)
{
    const tn_value first = tn_pack_count(args->in) > 0 ? tn_pack_at(args->in, 0) : tn_value_none();
    bool named = first.kind == TN_VALUE_TUPLE && first.count >= 2 &&
                 first.as.list[0].kind == TN_VALUE_STRING &&
                 first.as.list[1].kind == TN_VALUE_BYTES;
    tn_status status = tn_pack_add(
        args->out, NULL, named ? tn_value_string(first.as.list[0].as.s) : tn_value_none());

    return status == TN_OK ? data_rest(args, 1) : status;
}

const tn_transform_def data_file_name = {
    TN_HEAD(tn_transform_def),
    .name = "FileName",
    .help = "the path of the file of a picture or a sound in place of it; None: no file",
    .flags = TN_TRANSFORM_ENCODED,
    .apply = apply,
};
