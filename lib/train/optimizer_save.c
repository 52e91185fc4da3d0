/* SPDX-License-Identifier: MIT
 *
 * Saves the state of an optimizer, under the names that PyTorch's state_dict has in a file, and
 * prints an optimizer as PyTorch does. */
#include "lib/train/private.h"

#include <math.h>

/* ---- saving ---------------------------------------------------------------------------------- */

/* Where the entries go. */
struct saver {
    tn_optimizer *optimizer;
    tn_state *state;
    const char *prefix;
};

/* Adds an entry "PREFIX KIND.INDEX.NAME". */
static tn_status put(const struct saver *saver, const char *kind, int64_t index, const char *name,
                     tn_value value)
{
    tn__text text = { 0 };
    tn_status status;
    char *whole;

    tn__text_add(&text, "%s%s.%lld.%s", saver->prefix, kind, (long long)index, name);
    whole = tn__text_take(&text);
    status = whole != NULL ? tn_state_set_value(saver->state, whole, value) : TN_ERR_MEMORY;
    tn_free(whole);
    return status;
}

/* Adds the number of steps as a tensor: float32, as in PyTorch, if that is exact. */
static tn_status save_steps(const struct saver *saver, int64_t index, int64_t steps)
{
    const float single = (float)steps;
    const double exact = (double)steps;
    const bool fits = steps <= 1 << 24;
    uint64_t scope = tn_scope_begin();
    tn_tensor *tensor = fits ? tn_tensor_from(&single, TN_F32, TN_SCALAR_SHAPE)
                             : tn_tensor_from(&exact, TN_F64, TN_SCALAR_SHAPE);
    tn_status status = tensor != NULL ? put(saver, "state", index, "step", tn_value_tensor(tensor))
                                      : tn_error_last_code();

    tn_scope_end(scope);
    return status;
}

static tn_status save_parameter(const struct saver *saver, int64_t index)
{
    const tn__param *param = &saver->optimizer->params[index];
    bool counted = false;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < param->count; i++)
        counted |= strcmp(param->states[i].name, "step") == 0;
    if (param->steps > 0 && !counted)
        status = save_steps(saver, index, param->steps);
    for (int64_t i = 0; i < param->count && status == TN_OK; i++)
        status = put(saver, "state", index, param->states[i].name,
                     tn_value_tensor(param->states[i].tensor));
    return status;
}

static tn_status save_options(const struct saver *saver, int64_t group)
{
    const tn__group *at = &saver->optimizer->groups[group];
    tn_status status = TN_OK;

    for (const tn_option *row = saver->optimizer->def->options;
         row != NULL && row->kind != TN_OPTION_KIND_END && status == TN_OK; row++) {
        tn_pack *pack = tn_pack_new();

        status = pack != NULL ? tn__options_get(row, at->data, pack) : TN_ERR_MEMORY;
        if (status == TN_OK)
            status = put(saver, "param_groups", group, row->name, tn_pack_at(pack, 0));
        tn_pack_drop(pack);
    }
    if (status == TN_OK && !isnan(at->initial_rate))
        status = put(saver, "param_groups", group, "initial_lr", tn_value_float(at->initial_rate));
    return status;
}

/* Adds the indices of the parameters of a group and, if all have one, their names. */
static tn_status save_members(const struct saver *saver, int64_t group)
{
    const tn_optimizer *optimizer = saver->optimizer;
    tn_value *list = tn_malloc((size_t)optimizer->count * 2 * sizeof *list);
    tn_value *names = list + optimizer->count;
    uint32_t count = 0, named = 0;
    tn_status status;

    if (list == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < optimizer->count; i++) {
        if (optimizer->params[i].group != group)
            continue;
        if (optimizer->params[i].name != NULL)
            names[named++] = tn_value_string(optimizer->params[i].name);
        list[count++] = tn_value_int(i);
    }
    status = put(saver, "param_groups", group, "params", tn_value_list(list, count));
    if (status == TN_OK && named == count)
        status = put(saver, "param_groups", group, "param_names", tn_value_list(names, count));
    tn_free(list);
    return status;
}

tn_status tn_optimizer_save_state_into(tn_optimizer *optimizer, tn_state *state, const char *prefix)
{
    const struct saver saver = { optimizer, state, prefix };
    tn_status status;

    if (optimizer == NULL || state == NULL || prefix == NULL)
        return tn__error_null_of("tn_optimizer_save_state", "optimizer, state, prefix", optimizer,
                                 state, prefix);
    status = tn__step_hooks_run(optimizer, TN__STEP_STATE_PRE, NULL, NULL);
    for (int64_t i = 0; i < optimizer->count && status == TN_OK; i++)
        status = save_parameter(&saver, i);
    for (int64_t i = 0; i < optimizer->n_groups && status == TN_OK; i++) {
        status = save_options(&saver, i);
        if (status == TN_OK)
            status = save_members(&saver, i);
    }
    return status == TN_OK ? tn__step_hooks_run(optimizer, TN__STEP_STATE, state, prefix) : status;
}

tn_state *tn_optimizer_save_state(tn_optimizer *optimizer)
{
    tn_state *state;

    if (optimizer == NULL) {
        tn_error_null("tn_optimizer_save_state: optimizer");
        return NULL;
    }
    state = tn_state_new();
    if (state == NULL || tn_optimizer_save_state_into(optimizer, state, "") == TN_OK)
        return state;
    tn_state_drop(state);
    return NULL;
}

/* ---- printing -------------------------------------------------------------------------------- */

/* Returns the option whose name is the next one after `name` in the order of bytes; NULL if there
 * is none. */
static const tn_option *next_option(const tn_optimizer *optimizer, const char *name)
{
    const tn_option *next = NULL;

    for (const tn_option *row = optimizer->def->options;
         row != NULL && row->kind != TN_OPTION_KIND_END; row++)
        if (strcmp(row->name, name) > 0 && (next == NULL || strcmp(row->name, next->name) < 0))
            next = row;
    return next;
}

static tn_status print_option(const tn_option *row, const void *data, tn__text *text)
{
    tn_pack *pack = tn_pack_new();
    tn_status status = pack != NULL ? tn__options_get(row, data, pack) : TN_ERR_MEMORY;

    if (status == TN_OK) {
        tn_value value = tn_pack_at(pack, 0);

        tn__text_add(text, "    %s: ", row->name);
        if (value.kind == TN_VALUE_STRING)
            tn__text_add(text, "%s", value.as.s);
        else
            tn__value_print(&value, text);
        tn__text_put(text, "\n", 1);
    }
    tn_pack_drop(pack);
    return status;
}

static tn_status print_group(const tn_optimizer *optimizer, int64_t group, tn__text *text)
{
    static const char initial[] = "initial_lr";
    const tn__group *at = &optimizer->groups[group];
    bool waits = !isnan(at->initial_rate);
    const tn_option *row = next_option(optimizer, "");
    tn_status status = TN_OK;

    tn__text_add(text, "\nParameter Group %lld\n", (long long)group);
    for (; (row != NULL || waits) && status == TN_OK;) {
        if (waits && (row == NULL || strcmp(row->name, initial) > 0)) {
            tn__text_add(text, "    %s: %g\n", initial, at->initial_rate);
            waits = false;
            continue;
        }
        status = print_option(row, at->data, text);
        row = next_option(optimizer, row->name);
    }
    return status;
}

int64_t tn_optimizer_repr(const tn_optimizer *optimizer, char *out, size_t size)
{
    tn__text text = { 0 };
    tn_status status = TN_OK;

    if (optimizer == NULL) {
        tn_error_null("tn_optimizer_repr: optimizer");
        return -1;
    }
    tn__text_add(&text, "%s (", optimizer->def->name);
    for (int64_t i = 0; i < optimizer->n_groups && status == TN_OK; i++)
        status = print_group(optimizer, i, &text);
    tn__text_put(&text, ")", 1);
    if (status == TN_OK)
        return tn__text_give(&text, out, size);
    tn__text_free(&text);
    return -1;
}
