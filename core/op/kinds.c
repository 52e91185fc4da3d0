/* SPDX-License-Identifier: MIT
 *
 * The kinds of contributions that core/op uses: operators, kernels and observers. */
#include "core/op/internal.h"
#include "core/plugin/kind.h"

/* ---- operators ------------------------------------------------------------------------------- */

static tn_status operand_names(const tn_operand *rows, int32_t count, const char *what)
{
    tn_status status = TN_OK;

    for (int32_t i = 0; rows != NULL && i < count && i < TN_MAX_OPERANDS && status == TN_OK; i++)
        if (rows[i].name != NULL)
            status = tn__name_check(rows[i].name, "", "%s %d", what, i + 1);
    return status;
}

static tn_status op_names(const tn_head *copy)
{
    const tn_op_def *def = (const tn_op_def *)copy;
    char side[128];
    tn_status status = tn__name_check(def->name, ".", "tn_op_def: name");

    if (status != TN_OK)
        return status;
    tn_snprint(side, sizeof side, "tn_op_def %s: input", def->name);
    status = operand_names(def->inputs, def->n_inputs, side);
    if (status != TN_OK)
        return status;
    tn_snprint(side, sizeof side, "tn_op_def %s: output", def->name);
    return operand_names(def->outputs, def->n_outputs, side);
}

static tn_status operands_known(const tn_head *copy, const tn_operand *rows, int64_t count,
                                const char *which)
{
    static const tn__kind_member flags = TN__KIND_MEMBER(
                                     tn_operand, flags,
                                     TN_OPERAND_OPTIONAL | TN_OPERAND_NO_GRAD |
                                         TN_OPERAND_NO_PROMOTE | TN_OPERAND_LIST |
                                         TN_OPERAND_ANY_DEVICE | TN_OPERAND_APART |
                                         TN_OPERAND_WRITTEN | TN_OPERAND_UPDATED |
                                         TN_OPERAND_FROM_I32 | TN_OPERAND_FROM_U8 |
                                         TN_OPERAND_SINCE(UINT16_MAX)),
                                 dtypes = TN__KIND_DTYPES(tn_operand, dtypes);
    tn_status status = TN_OK;
    char name[160];

    for (int64_t i = 0; rows != NULL && i < count && i < TN_MAX_OPERANDS && status == TN_OK; i++) {
        tn_snprint(name, sizeof name, "tn_op_def %s: %s %lld", ((const tn_op_def *)copy)->name,
                   which, (long long)i + 1);
        status = tn__reserved_member(copy, &rows[i], &flags, name);
        if (status == TN_OK)
            status = tn__reserved_member(copy, &rows[i], &dtypes, name);
    }
    return status;
}

static const tn__kind_need op_needs[] = {
    TN__KIND_NEED(tn_op_def, infer),
    { 0 },
};

static tn_status op_complete(const tn_head *copy, const char **missing)
{
    const tn_op_def *def = (const tn_op_def *)copy;
    tn_status status = operands_known(copy, def->inputs, def->n_inputs, "input");

    (void)missing;
    if (status == TN_OK)
        status = operands_known(copy, def->outputs, def->n_outputs, "output");
    return status;
}

/* The option struct of an operator begins with its size, which no option may overlap. */
static size_t op_options_size(const tn_head *copy, size_t *begin)
{
    *begin = sizeof(uint32_t);
    return ((const tn_op_def *)copy)->options_size;
}

static tn_status op_add(const tn__kind *kind, tn_head *copy, tn__plugin *plugin)
{
    (void)kind;
    return tn__op_add((const tn_op_def *)copy, plugin);
}

static const tn_head *op_find(const char *name, tn__plugin **plugin)
{
    const tn_op *op = tn_op_find(name, 0);

    *plugin = op != NULL ? op->plugin : NULL;
    return op != NULL ? &op->def.head : NULL;
}

static const tn__kind_member op_members[] = {
    TN__KIND_MEMBER(tn_op_def, flags,
                    TN_OP_PRIMITIVE | TN_OP_VIEW | TN_OP_PROMOTE | TN_OP_PROMOTE_FLOAT |
                        TN_OP_INPLACE | TN_OP_RANDOM | TN_OP_INTO | TN_OP_BASIC |
                        TN_OP_STRAIGHT_THROUGH | TN_OP_POINTWISE | TN_OP_READS | TN_OP_ORDERED |
                        TN__OP_AUTOCAST),
    TN__KIND_DTYPES(tn_op_def, decompose_dtypes),
    { 0 },
};

const tn__kind tn__kind_op = {
    TN__KIND(tn_op_def, name, infer),
    .word = "operator",
    .help = offsetof(tn_op_def, help),
    .options = offsetof(tn_op_def, options),
    .pass = TN__PASS_OPS,
    .stays = true,
    .members = op_members,
    .names = op_names,
    .needs = op_needs,
    .complete = op_complete,
    .options_size = op_options_size,
    .add = op_add,
    .count = tn_op_count,
    .name_at = tn_op_name_at,
    .find = op_find,
};

/* ---- kernels --------------------------------------------------------------------------------- */

/* The name of a kernel is used in reports only and may be absent. */
static tn_status kernel_names(const tn_head *copy)
{
    const tn_kernel_def *kernel = (const tn_kernel_def *)copy;
    tn_status status = tn__name_check(kernel->op, ".", "tn_kernel_def: op");

    if (status == TN_OK && kernel->name != NULL)
        status = tn__name_check(kernel->name, ".-", "tn_kernel_def for %s: name", kernel->op);
    if (status == TN_OK && kernel->device != NULL && kernel->device[0] != '\0')
        status = tn__name_check(kernel->device, "", "tn_kernel_def for %s: device", kernel->op);
    return status;
}

static tn_status kernel_complete(const tn_head *copy, const char **missing)
{
    const tn_kernel_def *kernel = (const tn_kernel_def *)copy;

    *missing = kernel->run != NULL || (kernel->flags & TN_KERNEL_DECOMPOSE) ? NULL : "run";
    return TN_OK;
}

static tn_status kernel_add(const tn__kind *kind, tn_head *copy, tn__plugin *plugin)
{
    tn_kernel_def *kernel = (tn_kernel_def *)copy;

    (void)kind;
    if (kernel->device == NULL || kernel->device[0] == '\0')
        return tn_fail(TN_ERR_VALUE,
                       "kernel %q for operator %q: device: it is missing; expected a device type",
                       kernel->name != NULL ? kernel->name : "", kernel->op);
    return tn__op_kernel_add(kernel, plugin);
}

static const tn__kind_member kernel_members[] = {
    TN__KIND_MEMBER(tn_kernel_def, flags,
                    TN_KERNEL_OVERRIDE | TN_KERNEL_DETERMINISTIC | TN_KERNEL_CAPTURE_SAFE |
                        TN_KERNEL_CHANNELS_LAST | TN_KERNEL_CHANNELS_FIRST | TN_KERNEL_DECOMPOSE),
    TN__KIND_MEMBER(tn_kernel_def, reserved, 0),
    TN__KIND_DTYPES(tn_kernel_def, dtypes),
    { 0 },
};

const tn__kind tn__kind_kernel = {
    TN__KIND(tn_kernel_def, op, run), .word = "kernel",
    .pass = TN__PASS_KERNELS,         .stays = true,
    .members = kernel_members,        .names = kernel_names,
    .complete = kernel_complete,      .add = kernel_add,
    .unused = tn__op_kernels_unused,
};

/* ---- observers ------------------------------------------------------------------------------- */

static tn_status observer_add(const tn__kind *kind, tn_head *copy, tn__plugin *plugin)
{
    const tn_observer_def *observer = (const tn_observer_def *)copy;

    if (tn__registry_all(kind->kind, NULL) >= TN__OBSERVERS)
        return tn_fail(TN_ERR_REFUSED, "observer %q: too many observers; expected at most %d",
                       observer->name, TN__OBSERVERS);
    return tn__registry_add(kind->kind, observer->name, copy, plugin);
}

static const tn__kind_member observer_members[] = {
    TN__KIND_MEMBER(tn_observer_def, flags, TN_OBSERVER_PROFILER),
    { 0 },
};

const tn__kind tn__kind_observer = {
    TN__KIND(tn_observer_def, name, user),
    .word = "observer",
    .pass = TN__PASS_NAMED,
    .signs = ".-",
    .members = observer_members,
    .add = observer_add,
    .changed = tn__observers_changed,
};
