/* SPDX-License-Identifier: MIT
 *
 * Lists of transforms: opening them from a spec, and applying them to a sample or a batch. */
#include "lib/data/private.h"

/* ---- applying -------------------------------------------------------------------------------- */

static tn_status fail_in(const tn__step *step)
{
    tn__data_cut(step->def->name);
    return tn_error_prefix("transform %s: ", step->def->name);
}

tn_status tn__transform_list_apply(const tn__step *step, const tn__work *work, int64_t place,
                                   const tn_pack *in, tn_pack *out)
{
    tn_transform_args args = { TN_HEAD(tn_transform_args),
                               .def = step->def,
                               .options = step->options,
                               .in = in,
                               .out = out,
                               .random = tn__data_key(work->seed, work->epoch, work->index, place),
                               .classes = work->classes };
    const char *plugin = tn__data_plugin(step->plugin), *before;
    tn_status status = tn__plugin_use(step->plugin);
    tn__boundary_thread thread;
    uint64_t scope;

    if (status != TN_OK)
        return status;
    before = tn__error_plugin(plugin);
    scope = tn_scope_begin();
    tn__boundary_enter(&thread);
    status = tn__error_status_of(step->def->apply(&args), step->def->name);
    status = tn__boundary_leave(&thread, plugin, step->def->name, status);
    tn_scope_end(scope);
    tn__error_plugin(before);
    if (status == TN_OK && tn_pack_count(out) == 0)
        status = tn_fail(TN_ERR_VALUE, "no entries; expected `apply` to add at least one");
    return status == TN_OK ? TN_OK : fail_in(step);
}

/* ---- opening --------------------------------------------------------------------------------- */

static tn_status check_options(const tn__step *step)
{
    const char *before;
    tn_status status;

    if (step->def->check == NULL)
        return TN_OK;
    before = tn__error_plugin(tn__data_plugin(step->plugin));
    status = tn__error_status_of(step->def->check(step->def, step->options), step->def->name);
    tn__error_plugin(before);
    return status == TN_OK ? TN_OK : fail_in(step);
}

/* Fails if a transform of batches is used for samples, or a transform of samples for batches. */
static tn_status check_use(const tn__step *step, bool batches)
{
    bool its = (step->def->flags & TN_TRANSFORM_BATCH) != 0;

    if (its == batches)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   its ? "transform %s: changes whole batches; expected it in the option "
                         "batch_transform of a loader"
                       : "batch_transform: transform %s changes samples, not batches; expected it "
                         "in tn_dataset_transform",
                   step->def->name);
}

static tn_status open_step(tn__step *step, const tn__spec *spec, bool batches)
{
    const tn__entry *entry;
    char what[128];
    tn_status status;

    if (spec->type[0] == '\0')
        return tn_fail(TN_ERR_FORMAT,
                       "transform: wrong form, got %q; expected Name(name=value, "
                       "...), or a list of them",
                       spec->text);
    entry = tn__registry_use(TN_KIND_tn_transform_def, spec->type);
    if (entry == NULL)
        return tn_error_last_code();
    step->def = (const tn_transform_def *)entry->contribution;
    step->plugin = entry->plugin;
    status = check_use(step, batches);
    if (status != TN_OK)
        return status;
    tn_snprint(what, sizeof what, "transform %s", step->def->name);
    step->options = tn__data_options(step->def->options, step->def->data_size, what, spec,
                                     &step->option_block);
    return step->options != NULL ? check_options(step) : tn_error_last_code();
}

/* Opens the transform in an element of a list. */
static tn_status open_element(tn__step *step, const tn_value *value, bool batches)
{
    tn__spec *spec;
    tn_status status;

    if (value->kind != TN_VALUE_SPEC && value->kind != TN_VALUE_STRING)
        return tn_fail(TN_ERR_TYPE, "transform: wrong kind, got %s; expected a spec in the list",
                       tn__value_kind_name(value->kind));
    spec = tn__spec_parse(value->as.s);
    status = spec != NULL ? open_step(step, spec, batches) : tn_error_last_code();
    tn__spec_free(spec);
    return status;
}

static tn_status make_room(tn__steps *steps, int64_t count)
{
    steps->at = tn_calloc((size_t)count + 1, sizeof *steps->at);
    steps->count = steps->at != NULL ? count : 0;
    return steps->at != NULL ? TN_OK : TN_ERR_MEMORY;
}

static tn_status open_list(tn__steps *steps, const tn_value *list, bool batches)
{
    tn_status status = make_room(steps, list->count);

    for (int64_t i = 0; i < steps->count && status == TN_OK; i++)
        status = open_element(&steps->at[i], &list->as.list[i], batches);
    return status;
}

static bool is_list(const tn_value *value)
{
    return value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE;
}

tn_status tn__transform_list_open(tn__steps *steps, const char *text, bool batches)
{
    tn__spec *spec = tn__spec_parse(text);
    tn_status status;

    if (spec == NULL)
        return tn_error_last_code();
    if (spec->type[0] == '\0' && spec->count == 1 && is_list(&spec->values[0])) {
        status = open_list(steps, &spec->values[0], batches);
    } else {
        status = make_room(steps, 1);
        if (status == TN_OK)
            status = open_step(steps->at, spec, batches);
    }
    tn__spec_free(spec);
    return status;
}

tn_status tn__transform_list_open_value(tn__steps *steps, const tn_value *value, bool batches)
{
    if (is_list(value))
        return open_list(steps, value, batches);
    if (value->kind == TN_VALUE_SPEC || value->kind == TN_VALUE_STRING)
        return tn__transform_list_open(steps, value->as.s, batches);
    return tn_fail(TN_ERR_TYPE, "transform: wrong kind, got %s; expected a spec, or a list of them",
                   tn__value_kind_name(value->kind));
}

void tn__transform_list_free(tn__steps *steps)
{
    for (int64_t i = 0; i < steps->count; i++) {
        tn__options_release(steps->at[i].option_block);
        tn_free(steps->at[i].options);
    }
    tn_free(steps->at);
    *steps = (tn__steps){ 0 };
}
