/* SPDX-License-Identifier: MIT
 *
 * The dataset object, and datasets of plugins: opening one from a spec, reading samples. */
#include "lib/data/private.h"

struct provided {
    tn_dataset dataset;
    const tn_dataset_def *def;
    tn__plugin *plugin;
    void *options, *handle;
    tn__option_block *option_block;
    bool open;
};

/* ---- what all kinds share -------------------------------------------------------------------- */

tn_dataset *tn__dataset_make(const tn__dataset_kind *kind, size_t size)
{
    tn_dataset *dataset = tn_calloc(1, size);

    if (dataset == NULL)
        return NULL;
    atomic_init(&dataset->refs, 1);
    dataset->kind = kind;
    return dataset;
}

tn_dataset *tn_dataset_keep(tn_dataset *dataset)
{
    if (tn__not_null(dataset, "tn_dataset_keep: dataset"))
        atomic_fetch_add_explicit(&dataset->refs, 1, memory_order_relaxed);
    return dataset;
}

void tn_dataset_drop(tn_dataset *dataset)
{
    while (dataset != NULL &&
           atomic_fetch_sub_explicit(&dataset->refs, 1, memory_order_acq_rel) == 1) {
        tn_dataset *source = dataset->source;

        dataset->kind->close(dataset);
        tn_free(dataset);
        dataset = source;
    }
}

static const tn_dataset *origin_of(const tn_dataset *dataset)
{
    while (dataset->source != NULL)
        dataset = dataset->source;
    return dataset;
}

tn_status tn__dataset_prefix(const tn_dataset *dataset, int64_t index)
{
    for (; dataset->source != NULL; dataset = dataset->source)
        if (dataset->indices != NULL)
            index = dataset->indices[index];
    return tn_error_prefix("dataset %s: sample %lld: ", dataset->name, (long long)index);
}

void tn__data_cut(const char *name)
{
    char words[TN__NAME_LONGEST + 3];

    tn_snprint(words, sizeof words, "%s: ", name);
    tn__error_cut(words);
}

tn_status tn__dataset_begin(void)
{
    const tn_device *host = tn_device_find(TN__HOST_DEVICE_TYPE);
    tn_status status = host != NULL ? TN_OK : tn_error_last_code();
    tn_status begun = tn_device_begin(host);

    if (status == TN_OK)
        status = begun;
    begun = tn_inference_begin(false);
    if (status == TN_OK)
        status = begun;
    begun = tn_grad_begin(false);
    return status == TN_OK ? begun : status;
}

void tn__dataset_end(void)
{
    tn_grad_end();
    tn_inference_end();
    tn_device_end();
}

int64_t tn_dataset_count(const tn_dataset *dataset)
{
    return tn__not_null(dataset, "tn_dataset_count: dataset") ? dataset->count : -1;
}

int64_t tn_dataset_classes(const tn_dataset *dataset)
{
    return tn__not_null(dataset, "tn_dataset_classes: dataset") ? origin_of(dataset)->classes : -1;
}

const char *tn_dataset_class_name(const tn_dataset *dataset, int64_t index)
{
    if (!tn__not_null(dataset, "tn_dataset_class_name: dataset"))
        return NULL;
    dataset = origin_of(dataset);
    return dataset->class_names != NULL && index >= 0 && index < dataset->classes
               ? dataset->class_names[index]
               : NULL;
}

static tn_status read_sample(tn_dataset *dataset, const tn__sample *sample, tn_pack *out)
{
    tn_status status = tn__dataset_begin();

    if (status == TN_OK)
        status = tn__dataset_read(dataset, sample, out);
    tn__dataset_end();
    return status;
}

/* Reads a sample to a pack of its own, and appends its entries to `out`. */
static tn_status append_sample(tn_dataset *dataset, const tn__sample *sample, tn_pack *out)
{
    tn_pack *own = tn_pack_new();
    tn_status status = own != NULL ? read_sample(dataset, sample, own) : TN_ERR_MEMORY;

    for (int64_t i = 0; status == TN_OK && i < tn_pack_count(own); i++)
        status = tn_pack_add(out, tn_pack_name(own, i), tn_pack_at(own, i));
    tn_pack_drop(own);
    return status;
}

tn_status tn_dataset_get(tn_dataset *dataset, int64_t index, uint64_t seed, int64_t epoch,
                         tn_pack *out)
{
    tn__sample sample = { index, seed, epoch, false };
    tn_status status;
    int64_t before;

    if (!tn__not_null(dataset, "tn_dataset_get: dataset"))
        return tn_error_last_code();
    if (!tn__given(out != NULL, "tn_dataset_get: out"))
        return TN_ERR_VALUE;
    if (index < -dataset->count || index >= dataset->count)
        return tn_fail(TN_ERR_INDEX,
                       "tn_dataset_get: index: out of range, got %lld; expected %lld to %lld, a "
                       "sample of dataset %s",
                       (long long)index, -(long long)dataset->count, (long long)dataset->count - 1,
                       origin_of(dataset)->name);
    if (index < 0)
        sample.index += dataset->count;
    before = tn_pack_count(out);
    status = before == 0 ? read_sample(dataset, &sample, out)
                         : append_sample(dataset, &sample, out);
    if (status != TN_OK)
        tn__pack_shorten(out, before);
    return status;
}

/* ---- datasets of plugins --------------------------------------------------------------------- */

static tn_status provided_get(tn_dataset *dataset, const tn__sample *sample, tn_pack *out)
{
    const struct provided *own = (const struct provided *)(const void *)dataset;
    const tn_dataset_def *def = own->def;
    const tn_sample_args args = { TN_HEAD(tn_sample_args),
                                  .def = def,
                                  .handle = own->handle,
                                  .index = sample->index,
                                  .seed = sample->seed,
                                  .epoch = sample->epoch,
                                  .out = out,
                                  .flags = sample->encoded ? TN_SAMPLE_ENCODED : 0 };
    tn_status status = tn__plugin_use(own->plugin);
    const char *before;
    tn__boundary_thread thread;
    uint64_t scope;

    if (status != TN_OK)
        return status;
    before = tn__error_plugin(tn__data_plugin(own->plugin));
    scope = tn_scope_begin();
    tn__boundary_enter(&thread);
    status = tn__error_status_of(def->get(&args), def->name);
    status = tn__boundary_leave(&thread, tn__data_plugin(own->plugin), def->name, status);
    tn_scope_end(scope);
    tn__error_plugin(before);
    if (status == TN_OK && tn_pack_count(out) == 0)
        status = tn_fail(TN_ERR_VALUE, "no entries; expected `get` to add at least one");
    if (status == TN_OK)
        return TN_OK;
    tn__data_cut(def->name);
    return tn__dataset_prefix(dataset, sample->index);
}

static void provided_close(tn_dataset *dataset)
{
    struct provided *own = (struct provided *)(void *)dataset;
    const char *before;

    if (own->open && own->def->close != NULL) {
        before = tn__error_plugin(tn__data_plugin(own->plugin));
        own->def->close(own->handle);
        tn__error_plugin(before);
    }
    tn__options_release(own->option_block);
    tn_free(own->options);
}

static const tn__dataset_kind provided_kind = { provided_get, provided_close };

void *tn__data_options(const tn_option *table, uint64_t size, const char *what,
                       const tn__spec *spec, tn__option_block **block)
{
    void *options = tn_calloc(1, size > 0 ? size : 1);
    tn_status status = TN_OK;

    *block = NULL;
    if (options == NULL)
        return NULL;
    if (table == NULL && spec->count > 0)
        status = tn_fail(TN_ERR_VALUE, "%s: options: unknown, got %q; expected none", what,
                         spec->text);
    else if (table != NULL)
        status = tn__options_fill(table, options, what, spec->text, spec->values, spec->names,
                                  spec->columns, spec->count, block);
    if (status == TN_OK)
        return options;
    tn_free(options);
    return NULL;
}

/* Checks what the plugin's `open` has set. */
static tn_status check_opened(const tn_dataset_open *args)
{
    if (args->count < 0 || args->classes < 0)
        return tn_fail(TN_ERR_VALUE,
                       "`open` set a wrong number, got %lld samples and %lld classes; expected 0 "
                       "or more",
                       (long long)args->count, (long long)args->classes);
    for (int64_t i = 0; args->class_names != NULL && i < args->classes; i++)
        if (args->class_names[i] == NULL)
            return tn_fail(TN_ERR_VALUE,
                           "`open` set no name for class %lld of %lld; expected a "
                           "name for each",
                           (long long)i, (long long)args->classes);
    return TN_OK;
}

static tn_status call_open(struct provided *own, tn_dataset_open *args)
{
    const char *name = own->def->name, *before = tn__error_plugin(tn__data_plugin(own->plugin));
    uint64_t scope = tn_scope_begin();
    tn_status status = tn__dataset_begin();
    tn__boundary_thread thread;

    if (status == TN_OK) {
        tn__boundary_enter(&thread);
        status = tn__error_status_of(own->def->open(args), name);
        own->open = status == TN_OK;
        status = tn__boundary_leave(&thread, tn__data_plugin(own->plugin), name, status);
    }
    tn__dataset_end();
    tn_scope_end(scope);
    tn__error_plugin(before);
    return status;
}

static tn_status open_provided(struct provided *own, const tn__spec *spec)
{
    tn_dataset_open args = { TN_HEAD(tn_dataset_open), .def = own->def };
    char what[128];
    tn_status status;

    tn_snprint(what, sizeof what, "dataset %s", own->def->name);
    own->options = tn__data_options(own->def->options, own->def->data_size, what, spec,
                                    &own->option_block);
    if (own->options == NULL)
        return tn_error_last_code();
    args.options = own->options;
    status = call_open(own, &args);
    own->handle = args.handle;
    if (status == TN_OK)
        status = check_opened(&args);
    if (status != TN_OK) {
        tn__data_cut(own->def->name);
        return tn_error_prefix("%s: ", what);
    }
    own->dataset.count = args.count;
    own->dataset.classes = args.classes;
    own->dataset.class_names = args.class_names;
    return TN_OK;
}

static tn_dataset *from_spec(const tn__spec *spec)
{
    const tn__entry *entry;
    struct provided *own;

    if (spec->type[0] == '\0') {
        tn_fail(TN_ERR_FORMAT, "dataset: wrong form, got %q; expected Name(name=value, ...)",
                spec->text);
        return NULL;
    }
    entry = tn__registry_use(TN_KIND_tn_dataset_def, spec->type);
    own = entry != NULL ? (struct provided *)(void *)tn__dataset_make(&provided_kind, sizeof *own)
                        : NULL;
    if (own == NULL)
        return NULL;
    own->def = (const tn_dataset_def *)entry->contribution;
    own->plugin = entry->plugin;
    own->dataset.name = own->def->name;
    if (open_provided(own, spec) == TN_OK)
        return &own->dataset;
    tn_dataset_drop(&own->dataset);
    return NULL;
}

tn_dataset *tn_dataset_parse(const char *text)
{
    tn__spec *spec = tn__given(text != NULL, "tn_dataset_parse: text") ? tn__spec_parse(text)
                                                                       : NULL;
    tn_dataset *dataset = spec != NULL ? from_spec(spec) : NULL;

    tn__spec_free(spec);
    return dataset;
}

tn_dataset *tn_dataset_newv(const char *format, va_list args)
{
    char *text = tn__given(format != NULL, "tn_dataset_new: format")
                     ? tn__text_from_format(format, args)
                     : NULL;
    tn_dataset *dataset = text != NULL ? tn_dataset_parse(text) : NULL;

    tn_free(text);
    return dataset;
}

tn_dataset *tn_dataset_new(const char *format, ...)
{
    va_list args;
    tn_dataset *dataset;

    va_start(args, format);
    dataset = tn_dataset_newv(format, args);
    va_end(args);
    return dataset;
}
