/* SPDX-License-Identifier: MIT
 *
 * The kind of contributions that lib/io uses: file formats. */
#include "core/plugin/kind.h"

#include <tenon/format.h>

static const tn__kind_member members[] = {
    TN__KIND_MEMBER(tn_format_def, flags, TN_FORMAT_TEXTS | TN_FORMAT_VALUES | TN_FORMAT_INDEX),
    { 0 },
};

const tn__kind tn__kind_format = {
    TN__KIND(tn_format_def, name, extensions),
    .word = "format",
    .what = "file format",
    .pass = TN__PASS_NAMED,
    .help = offsetof(tn_format_def, help),
    .signs = ".-",
    .members = members,
};
