/* SPDX-License-Identifier: MIT
 *
 * The checks of the definition of an operator, before it is registered. */
#include "core/op/private.h"

static bool has_operand(const tn_op_def *def, uint64_t flag)
{
    for (int32_t i = 0; i < def->n_inputs; i++)
        if (def->inputs[i].flags & flag)
            return true;
    return false;
}

/* Returns what is wrong with the inputs that are updated, or NULL. They must not be promoted,
 * because then a cast copy would be updated instead. */
static const char *wrong_updates(const tn_op_def *def, bool effect)
{
    uint64_t needs = TN_OPERAND_NO_GRAD;

    if (def->flags & (TN_OP_PROMOTE | TN_OP_PROMOTE_FLOAT))
        needs |= TN_OPERAND_NO_PROMOTE;
    if (effect)
        return "inputs: some are written and some updated; expected TN_OPERAND_WRITTEN or "
               "TN_OPERAND_UPDATED, not both";
    if ((def->flags & (TN_OP_VIEW | TN_OP_INPLACE | TN_OP_INTO)) != 0)
        return "flags: an operator that updates inputs cannot be a view or have an in-place form";
    for (int32_t i = 0; i < def->n_inputs; i++)
        if ((def->inputs[i].flags & TN_OPERAND_UPDATED) != 0 &&
            (def->inputs[i].flags & needs) != needs)
            return "inputs: an updated input lacks a flag; expected TN_OPERAND_NO_GRAD, and "
                   "TN_OPERAND_NO_PROMOTE if the operator promotes its inputs";
    return NULL;
}

/* Returns what is wrong with an input that has indices and accepts other dtypes than int64, or has
 * conditions and accepts uint8; NULL if nothing is. */
static const char *wrong_indices(const tn_op_def *def)
{
    for (int32_t i = 0; i < def->n_inputs; i++) {
        const tn_operand *operand = &def->inputs[i];

        if ((operand->flags & (TN_OPERAND_FROM_I32 | TN_OPERAND_FROM_U8)) == 0)
            continue;
        if (operand->dtypes != TN_BIT(TN_I64) &&
            (operand->dtypes != TN_BIT(TN_BOOL) || (operand->flags & TN_OPERAND_FROM_I32) != 0))
            return "inputs: TN_OPERAND_FROM_*; expected dtypes TN_BIT(TN_I64), or TN_BIT(TN_BOOL) "
                   "with TN_OPERAND_FROM_U8";
        if ((operand->flags & TN_OPERAND_NO_PROMOTE) == 0 &&
            (def->flags & (TN_OP_PROMOTE | TN_OP_PROMOTE_FLOAT)) != 0)
            return "inputs: TN_OPERAND_FROM_*; expected TN_OPERAND_NO_PROMOTE with it";
        if ((operand->flags & (TN_OPERAND_WRITTEN | TN_OPERAND_UPDATED)) != 0)
            return "inputs: TN_OPERAND_FROM_*; expected an input that is only read";
    }
    return NULL;
}

/* Returns what is wrong with the operands that later versions added, or NULL: calls of older
 * versions lack them. */
static const char *wrong_additions(const tn_op_def *def)
{
    for (int32_t i = 0; i < def->n_inputs; i++) {
        uint32_t since = tn__operand_since(&def->inputs[i]);

        if (i > 0 && since < tn__operand_since(&def->inputs[i - 1]))
            return "inputs: TN_OPERAND_SINCE; expected later versions after earlier ones";
        if (since > 0 && ((def->inputs[i].flags & TN_OPERAND_OPTIONAL) == 0 ||
                          (def->inputs[i].flags & TN_OPERAND_LIST) != 0))
            return "inputs: TN_OPERAND_SINCE; expected TN_OPERAND_OPTIONAL with it, and no list";
    }
    for (int32_t i = 1; i < def->n_outputs; i++)
        if (tn__operand_since(&def->outputs[i]) < tn__operand_since(&def->outputs[i - 1]))
            return "outputs: TN_OPERAND_SINCE; expected later versions after earlier ones";
    return NULL;
}

/* Returns what is wrong with the flags for autocast, or NULL. */
static const char *wrong_autocast(uint64_t flags)
{
    uint64_t each = flags & TN__OP_AUTOCAST;
    uint64_t host = each / TN_OP_AUTOCAST_HOST_LOW, other = each % TN_OP_AUTOCAST_HOST_LOW;

    if ((host & (host - 1)) != 0 || (other & (other - 1)) != 0)
        return "flags: TN_OP_AUTOCAST_*; expected at most one with HOST and one without";
    if (each != 0 && (flags & TN_OP_VIEW) != 0)
        return "flags: TN_OP_AUTOCAST_*; expected no view with it, because a cast copies";
    return NULL;
}

tn_status tn__definition_check(const tn_op_def *def)
{
    const char *wrong = NULL;
    bool effect = def->inputs != NULL && def->n_inputs <= TN_MAX_OPERANDS &&
                  has_operand(def, TN_OPERAND_WRITTEN);

    if (def->name == NULL || def->name[0] == '\0')
        return tn_fail(TN_ERR_VALUE, "operator: name: it is missing");
    if (def->n_inputs < 0 || def->n_inputs > TN_MAX_OPERANDS ||
        (def->n_inputs > 0 && def->inputs == NULL))
        wrong = "inputs; expected 0 to 16 rows, and their number in n_inputs";
    else if (def->n_outputs < (effect ? 0 : 1) || def->n_outputs > TN_MAX_OPERANDS ||
             (def->n_outputs > 0 && def->outputs == NULL))
        wrong =
            "outputs; expected 1 to 16 rows, and their number in n_outputs; 0 only if inputs are "
            "written";
    else if (effect &&
             (def->derive != NULL || (def->flags & (TN_OP_VIEW | TN_OP_INPLACE | TN_OP_INTO)) != 0))
        wrong =
            "inputs: an operator that writes into them cannot have a derivative or another form";
    else if (def->n_outputs == 0 && def->dispatch_input < 0)
        wrong = "dispatch_input; expected the number of an input, since there are no outputs";
    else if (def->infer == NULL)
        wrong = "infer: it is NULL; expected a function that describes the outputs";
    else if (def->revision == 0)
        wrong = "revision, got 0; expected 1 or more";
    else if ((def->flags & TN_OP_VIEW) && (def->n_inputs < 1 || def->n_outputs != 1))
        wrong = "flags: a view must have one output and at least one input";
    else if (def->options != NULL &&
             (def->defaults == NULL || def->options_size < sizeof(uint32_t)))
        wrong = "defaults; expected a struct and its size, since there are options";
    else if (def->dispatch_input < -1 || def->dispatch_input >= def->n_inputs)
        wrong = "dispatch_input; expected the number of an input, or -1 for output 0";
    else if ((def->flags & TN_OP_POINTWISE) != 0 && (def->flags & (TN_OP_VIEW | TN_OP_RANDOM)) != 0)
        wrong = "flags: pointwise; expected neither a view nor random numbers with it";
    else if (def->result_suffices != NULL &&
             (def->derive == NULL || (def->flags & TN_OP_INPLACE) == 0 || (def->save_in & 1) == 0 ||
              def->n_outputs != 1))
        wrong = "result_suffices; expected one output, an in-place form, and a derivative that "
                "saves input 0";
    else if (has_operand(def, TN_OPERAND_UPDATED))
        wrong = wrong_updates(def, effect);
    if (wrong == NULL)
        wrong = wrong_autocast(def->flags);
    if (wrong == NULL)
        wrong = wrong_indices(def);
    if (wrong == NULL)
        wrong = wrong_additions(def);
    if (wrong != NULL)
        return tn_fail(TN_ERR_VALUE, "operator %q: wrong %s", def->name, wrong);
    return TN_OK;
}
