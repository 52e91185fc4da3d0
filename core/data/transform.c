/* SPDX-License-Identifier: MIT
 *
 * Datasets whose samples pass through transforms when they are read. */
#include "core/data/private.h"

struct step {
    const tn_transform_def *def;
    tn__plugin *plugin;
    void *options;
    tn__keep *keep;
};

struct transformed {
    tn_dataset dataset;
    int64_t steps;
    struct step at[];
};

/* ---- reading --------------------------------------------------------------------------------- */

static tn_status fail_in(const struct step *step)
{
    tn__data_cut(step->def->name);
    return tn_error_prefix("transform %s: ", step->def->name);
}

static tn_status apply(const struct step *step, const tn__sample *sample, int64_t place,
                       const tn_pack *in, tn_pack *out)
{
    tn_transform_args args = { TN_HEAD(tn_transform_args),
                               .def = step->def,
                               .options = step->options,
                               .in = in,
                               .out = out,
                               .random = tn__data_key(sample->seed, sample->epoch, sample->index,
                                                      place) };
    const char *plugin = tn__data_plugin(step->plugin), *before;
    tn_status status = tn__plugin_use(step->plugin);
    tn__check_thread thread;
    uint64_t scope;

    if (status != TN_OK)
        return status;
    before = tn__error_plugin(plugin);
    scope = tn_scope_begin();
    tn__check_enter(&thread);
    status = tn__error_status_of(step->def->apply(&args), step->def->name);
    status = tn__check_leave(&thread, plugin, step->def->name, status);
    tn_scope_end(scope);
    tn__error_plugin(before);
    if (status == TN_OK && tn_pack_count(out) == 0)
        status = tn_fail(TN_ERR_VALUE, "no entries; expected `apply` to add at least one");
    return status == TN_OK ? TN_OK : fail_in(step);
}

static tn_status transformed_get(tn_dataset *dataset, const tn__sample *sample, tn_pack *out)
{
    const struct transformed *own = (const struct transformed *)(const void *)dataset;
    int64_t before = dataset->source->transforms;
    tn_pack *in = NULL, *next;
    tn_status status;

    if (own->steps == 0)
        return tn__dataset_read(dataset->source, sample, out);
    if ((in = tn_pack_new()) == NULL)
        return TN_ERR_MEMORY;
    status = tn__dataset_read(dataset->source, sample, in);
    for (int64_t i = 0; i < own->steps && status == TN_OK; i++) {
        next = i + 1 < own->steps ? tn_pack_new() : out;
        status = next == NULL ? TN_ERR_MEMORY : apply(&own->at[i], sample, before + i, in, next);
        if (status != TN_OK)
            tn__dataset_prefix(dataset, sample->index);
        tn_pack_drop(in);
        in = next != out ? next : NULL;
    }
    tn_pack_drop(in);
    return status;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void transformed_close(tn_dataset *dataset)
{
    struct transformed *own = (struct transformed *)(void *)dataset;

    for (int64_t i = 0; i < own->steps; i++) {
        tn__options_release(own->at[i].keep);
        tn_free(own->at[i].options);
    }
}

static tn_status check_options(const struct step *step)
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

static tn_status open_step(struct step *step, const tn__spec *spec)
{
    const tn__entry *entry;
    char what[128];

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
    tn_snprint(what, sizeof what, "transform %s", step->def->name);
    step->options = tn__data_options(step->def->options, step->def->data_size, what, spec,
                                     &step->keep);
    return step->options != NULL ? check_options(step) : tn_error_last_code();
}

/* Opens the transform in an element of a list. */
static tn_status open_element(struct step *step, const tn_value *value)
{
    tn__spec *spec;
    tn_status status;

    if (value->kind != TN_VALUE_SPEC && value->kind != TN_VALUE_STRING)
        return tn_fail(TN_ERR_TYPE, "transform: wrong kind, got %s; expected a spec in the list",
                       tn__value_kind_name(value->kind));
    spec = tn__spec_parse(value->as.s);
    status = spec != NULL ? open_step(step, spec) : tn_error_last_code();
    tn__spec_free(spec);
    return status;
}

static tn_dataset *from_spec(tn_dataset *source, const tn__spec *spec)
{
    static const tn__dataset_kind kind = { transformed_get, transformed_close };
    const tn_value *list = spec->type[0] == '\0' && spec->count == 1 ? &spec->values[0] : NULL;
    bool many = list != NULL && (list->kind == TN_VALUE_LIST || list->kind == TN_VALUE_TUPLE);
    int64_t count = many ? list->count : 1;
    struct transformed *own;
    tn_status status = TN_OK;

    own = (struct transformed *)(void *)tn__dataset_make(
        &kind, sizeof *own + (size_t)count * sizeof own->at[0]);
    if (own == NULL)
        return NULL;
    own->dataset.source = tn_dataset_keep(source);
    own->dataset.count = source->count;
    own->dataset.transforms = source->transforms + count;
    own->steps = count;
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = many ? open_element(&own->at[i], &list->as.list[i]) : open_step(own->at, spec);
    if (status == TN_OK)
        return &own->dataset;
    tn_dataset_drop(&own->dataset);
    return NULL;
}

tn_dataset *tn_dataset_transform(tn_dataset *dataset, const char *text)
{
    tn__spec *spec;
    tn_dataset *own;

    if (!tn__not_null(dataset, "tn_dataset_transform: dataset") ||
        !tn__given(text != NULL, "tn_dataset_transform: text") ||
        (spec = tn__spec_parse(text)) == NULL)
        return NULL;
    own = from_spec(dataset, spec);
    tn__spec_free(spec);
    return own;
}
