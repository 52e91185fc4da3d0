/* SPDX-License-Identifier: MIT
 *
 * The kinds of contributions that lib/graph uses: passes and compilers. */
#include "core/plugin/kind.h"
#include "lib/graph/private.h"

/* Checks the name of a pass, and the names in its member `after`. */
static tn_status pass_names(const tn_head *copy)
{
    const tn_pass_def *pass = (const tn_pass_def *)copy;
    tn_status status = tn__name_check_type(pass->name, "tn_pass_def");
    const char *at = pass->after != NULL ? pass->after : "";
    char name[TN__NAME_LONGEST + 2];

    while (status == TN_OK && *at != '\0') {
        size_t length = strcspn(at, " ");
        tn_snprint(name, sizeof name, "%.*s", (int)(length < 1000 ? length : 1000), at);
        if (length > 0)
            status = tn__name_check_type(name, "tn_pass_def: after");
        at += length + strspn(at + length, " ");
    }
    return status;
}

static const tn__kind_need pass_needs[] = {
    TN__KIND_NEED(tn_pass_def, run),
    { 0 },
};

static const tn__kind_member pass_members[] = {
    TN__KIND_MEMBER(tn_pass_def, flags,
                    TN_PASS_EXACT | TN_PASS_INFERENCE | TN_PASS_WEIGHTS | TN_PASS_SHAPES),
    { 0 },
};

const tn__kind tn__kind_pass = {
    TN__KIND(tn_pass_def, name, run),
    .word = "pass",
    .pass = TN__PASS_NAMED,
    .help = offsetof(tn_pass_def, help),
    .options = offsetof(tn_pass_def, options),
    .data_size = offsetof(tn_pass_def, data_size),
    .members = pass_members,
    .names = pass_names,
    .needs = pass_needs,
};

static tn_status compiler_names(const tn_head *copy)
{
    const tn_compiler_def *compiler = (const tn_compiler_def *)copy;
    tn_status status = tn__name_check(compiler->name, ".-", "tn_compiler_def: name");

    if (status == TN_OK && compiler->device != NULL && compiler->device[0] != '\0')
        status = tn__name_check(compiler->device, "", "tn_compiler_def %s: device", compiler->name);
    return status;
}

static const tn__kind_need compiler_needs[] = {
    TN__KIND_NEED(tn_compiler_def, claim),
    TN__KIND_NEED(tn_compiler_def, compile),
    TN__KIND_NEED(tn_compiler_def, run),
    { 0 },
};

static tn_status compiler_complete(const tn_head *copy, const char **missing)
{
    const char *device = ((const tn_compiler_def *)copy)->device;

    *missing = device == NULL || device[0] == '\0' ? "device" : NULL;
    return TN_OK;
}

static const tn__kind_member compiler_members[] = {
    TN__KIND_MEMBER(tn_compiler_def, flags,
                    TN_COMPILER_EXACT | TN_COMPILER_TRAINS | TN_COMPILER_CAPTURE_SAFE),
    TN__KIND_MEMBER(tn_compiler_def, reserved, 0),
    { 0 },
};

const tn__kind tn__kind_compiler = {
    TN__KIND(tn_compiler_def, name, run),
    .word = "compiler",
    .pass = TN__PASS_NAMED,
    .help = offsetof(tn_compiler_def, help),
    .members = compiler_members,
    .names = compiler_names,
    .needs = compiler_needs,
    .complete = compiler_complete,
};
