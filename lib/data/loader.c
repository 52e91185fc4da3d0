/* SPDX-License-Identifier: MIT
 *
 * The loader object: its options, and reading the batches of an epoch in the calling thread. */
#include "lib/data/loader.h"

enum { WORKERS_MOST = 1024, PREFETCH_MOST = 1024 };
/* Buffers that are kept, besides four for each batch that is read ahead. */
enum { BUFFERS_MOST = 8 };

#define ROW(member, def, help, kind, flags)                                                        \
    TN_OPTION_ROW(tn__loader_options, member, def, help, kind, flags)

static const tn_option table[] = {
    TN_OPTION_INT(tn__loader_options, batch_size, "1", "samples in a batch"),
    TN_OPTION_BOOL(tn__loader_options, shuffle, "False", "takes the samples in a random order"),
    TN_OPTION_BOOL(tn__loader_options, drop_last, "False", "leaves out a smaller last batch"),
    ROW(seed, "None", "seed of the order and of transforms", TN_OPTION_KIND_INT,
        TN_OPTION_OPTIONAL),
    TN_OPTION_INT(tn__loader_options, workers, "0", "threads that read batches ahead"),
    TN_OPTION_INT(tn__loader_options, prefetch, "2", "batches that each thread reads ahead"),
    TN_OPTION_INT(tn__loader_options, rank, "0", "number of this process"),
    TN_OPTION_INT(tn__loader_options, ranks, "1", "number of processes"),
    ROW(device, "None", "device of the batches", TN_OPTION_KIND_STRING, TN_OPTION_OPTIONAL),
    TN_OPTION_BOOL(tn__loader_options, skip_damaged, "False",
                   "leaves out samples that cannot be read"),
    ROW(batch_transform, "None", "transform of batches, or a list of them", TN_OPTION_KIND_VALUE,
        0),
    TN_OPTION_END
};

/* ---- options --------------------------------------------------------------------------------- */

tn_status tn__loader_parse(const tn_option *options, const char *name, const char *text, void *data,
                           tn__option_block **block)
{
    tn__text whole = { 0 };
    tn__spec *spec = NULL;
    tn_status status;
    char *joined;

    *block = NULL;
    tn__text_add(&whole, "loader(%s)", text);
    joined = tn__text_take(&whole);
    spec = joined != NULL ? tn__spec_parse(joined) : NULL;
    status = spec == NULL ? tn_error_last_code()
                          : tn__options_fill(options, data, name, spec->text, spec->values,
                                             spec->names, spec->columns, spec->count, block);
    tn__spec_free(spec);
    tn_free(joined);
    return status;
}

static tn_status check_range(const char *name, int64_t value, int64_t least, int64_t most)
{
    if (value >= least && value <= most)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "loader: %s: out of range, got %lld; expected %lld to %lld", name,
                   (long long)value, (long long)least, (long long)most);
}

static tn_status check_options(const tn__loader_options *options)
{
    tn_status status = check_range("batch_size", options->batch_size, 1, INT32_MAX);

    if (status == TN_OK)
        status = check_range("workers", options->workers, 0, WORKERS_MOST);
    if (status == TN_OK)
        status = check_range("prefetch", options->prefetch, 1, PREFETCH_MOST);
    if (status == TN_OK)
        status = check_range("ranks", options->ranks, 1, INT32_MAX);
    if (status == TN_OK)
        status = check_range("rank", options->rank, 0, options->ranks - 1);
    return status;
}

void tn__loader_measure(tn_loader *loader)
{
    const tn__loader_options *o = &loader->options;
    int64_t draws = loader->order.draws, batches;

    loader->samples = draws / o->ranks + (!o->drop_last && draws % o->ranks != 0);
    batches = loader->samples / o->batch_size;
    if (!o->drop_last && loader->samples % o->batch_size != 0)
        batches++;
    atomic_store(&loader->batches, batches);
}

static tn_status choose_seed(tn_loader *loader)
{
    uint64_t seed, block;
    tn_status status;

    if (loader->options.seed != INT64_MIN) {
        loader->seed = (uint64_t)loader->options.seed;
        return TN_OK;
    }
    status = tn_random_take(1, 4, &seed, &block);
    if (status == TN_OK)
        loader->seed = tn__data_key(seed, (int64_t)block, -1, 0).seed;
    return status;
}

static tn_status set_up(tn_loader *loader, const char *text)
{
    tn__loader_options *options = &loader->options;
    tn_status status = tn__loader_parse(table, "loader", text, options, &loader->option_block);

    if (status == TN_OK)
        status = check_options(options);
    if (status != TN_OK)
        return status;
    loader->device = options->device != NULL ? tn_device_find(options->device)
                                             : tn_default_device();
    if (loader->device == NULL)
        return options->device != NULL ? tn_error_prefix("loader: device: ") : tn_error_last_code();
    if (options->batch_transform.kind != TN_VALUE_NONE)
        status = tn__transform_list_open_value(&loader->steps, &options->batch_transform, true);
    if (status != TN_OK)
        return tn_error_prefix("loader: ");
    loader->dtype = tn_default_dtype();
    loader->buffers.most = BUFFERS_MOST + 4 * options->workers * options->prefetch;
    loader->order.draws = loader->dataset->count;
    tn__loader_measure(loader);
    return choose_seed(loader);
}

tn_loader *tn_loader_parse(tn_dataset *dataset, const char *text)
{
    tn_loader *loader;

    if (!tn__not_null(dataset, "tn_loader_parse: dataset") ||
        !tn__given(text != NULL, "tn_loader_parse: text"))
        return NULL;
    loader = tn_calloc(1, sizeof *loader);
    if (loader == NULL)
        return NULL;
    if (tn__loader_crew_init(&loader->crew) != TN_OK) {
        tn_free(loader);
        return NULL;
    }
    pthread_mutex_init(&loader->gate, NULL);
    pthread_mutex_init(&loader->buffers.lock, NULL);
    loader->dataset = tn_dataset_keep(dataset);
    if (set_up(loader, text) == TN_OK)
        return loader;
    tn_loader_drop(loader);
    return NULL;
}

tn_loader *tn_loader_newv(tn_dataset *dataset, const char *format, va_list args)
{
    tn_loader *loader = NULL;
    char *text;

    if (!tn__not_null(dataset, "tn_loader_new: dataset") ||
        !tn__given(format != NULL, "tn_loader_new: format"))
        return NULL;
    text = tn__text_from_format(format, args);
    if (text != NULL)
        loader = tn_loader_parse(dataset, text);
    tn_free(text);
    return loader;
}

tn_loader *tn_loader_new(tn_dataset *dataset, const char *format, ...)
{
    va_list args;
    tn_loader *loader;

    va_start(args, format);
    loader = tn_loader_newv(dataset, format, args);
    va_end(args);
    return loader;
}

void tn_loader_drop(tn_loader *loader)
{
    if (loader == NULL)
        return;
    tn__loader_crew_free(loader);
    tn__batch_buffers_free(&loader->buffers);
    tn_pack_drop(loader->batch);
    tn__loader_order_free(&loader->order);
    tn__transform_list_free(&loader->steps);
    tn__options_release(loader->option_block);
    tn_dataset_drop(loader->dataset);
    pthread_mutex_destroy(&loader->gate);
    tn_free(loader);
}

/* ---- reading a batch ------------------------------------------------------------------------- */

/* Whether a sample cannot be used: also a kind of file that is not read, or a wrong size. */
static bool is_damage(tn_status status)
{
    return status == TN_ERR_FORMAT || status == TN_ERR_IO || status == TN_ERR_NOT_IMPLEMENTED ||
           status == TN_ERR_REFUSED || status == TN_ERR_VALUE;
}

/* Counts a sample that cannot be read, and keeps its message. */
static tn_status skip_sample(tn__batch *batch)
{
    const char *words = tn_error_last()->message;
    size_t before = batch->skipped_size, size = strlen(words) + 1;
    char *grown = tn_realloc(batch->skipped_words, before + size);

    if (grown == NULL)
        return TN_ERR_MEMORY;
    memcpy(grown + before, words, size);
    batch->skipped_words = grown;
    batch->skipped_size = before + size;
    batch->skipped++;
    return TN_OK;
}

static tn_status read_one(tn_loader *loader, int64_t number, tn_pack *pack, tn__batch *batch)
{
    const tn__sample sample = { tn__loader_index(loader, number), loader->seed,
                                atomic_load_explicit(&loader->epoch, memory_order_relaxed), false };
    uint64_t mark = tn_error_mark();
    tn_status status = tn__dataset_read(loader->dataset, &sample, pack);

    if (status == TN_OK)
        return tn__batch_add(batch, pack, sample.index);
    if (!loader->options.skip_damaged || !is_damage(status))
        return status;
    status = skip_sample(batch);
    if (status == TN_OK)
        tn_error_restore(mark);
    return status;
}

static tn_status read_samples(tn_loader *loader, int64_t number, tn__batch *batch)
{
    int64_t first = number * loader->options.batch_size;
    tn_pack *pack = tn_pack_new();
    tn_status status = pack != NULL ? TN_OK : TN_ERR_MEMORY;

    /* transforms get the batch on the host */
    batch->device = loader->steps.count == 0 ? loader->device : tn_default_device();
    batch->buffers = &loader->buffers;
    batch->most = loader->samples - first < loader->options.batch_size ? loader->samples - first
                                                                       : loader->options.batch_size;
    for (int64_t i = 0; i < batch->most && status == TN_OK; i++) {
        if (atomic_load_explicit(&loader->crew.halt, memory_order_relaxed))
            break;
        status = read_one(loader, first + i, pack, batch);
        tn__pack_shorten(pack, 0);
    }
    tn_pack_drop(pack);
    return status;
}

void tn__loader_read(tn_loader *loader, int64_t number, tn__batch *batch)
{
    uint64_t mark = tn_error_mark(), scope = tn_scope_begin();
    tn_status status = tn__dataset_begin();

    *batch = (tn__batch){ 0 };
    tn_dtype_begin(loader->dtype);
    if (status == TN_OK)
        status = read_samples(loader, number, batch);
    if (status == TN_OK && loader->steps.count > 0 && batch->samples > 0)
        status = tn__loader_transform(loader, number, batch);
    tn_dtype_end();
    tn__dataset_end();
    tn_scope_end(scope);
    if (status == TN_OK)
        return;
    tn__batch_clear(batch);
    batch->error = *tn_error_last();
    tn_error_restore(mark);
}

/* ---- the next batch -------------------------------------------------------------------------- */

static tn_status read_next(tn_loader *loader, int64_t number, tn__batch *batch)
{
    tn_status status = TN_OK;

    if (loader->options.workers > 0)
        status = tn__loader_take(loader, number, batch);
    else
        tn__loader_read(loader, number, batch);
    if (status == TN_OK && batch->error.code != TN_OK) {
        tn__error_put(&batch->error);
        status = batch->error.code;
    }
    return status;
}

static void note_skipped(tn_loader *loader, const tn__batch *batch)
{
    const char *words = batch->skipped_words;

    atomic_fetch_add(&loader->skipped, batch->skipped);
    for (int64_t i = 0; i < batch->skipped; i++, words += strlen(words) + 1)
        tn__log(TN_LOG_WARNING, "loader: sample left out: %s", words);
}

static void end_epoch(tn_loader *loader)
{
    tn__loader_rewind(loader, 0);
    atomic_store(&loader->position, 0);
    atomic_fetch_add(&loader->epoch, 1);
    loader->order.ready = false;
}

/* Reads batches until one has samples. Leaves loader->batch NULL at the end of the epoch and on
 * failures. After a failure the same batch is the next one again. */
static tn_status advance(tn_loader *loader)
{
    tn_status status = tn__loader_order(loader);

    while (status == TN_OK && loader->batch == NULL) {
        int64_t number = atomic_load(&loader->position);
        tn__batch batch = { 0 };

        if (number >= atomic_load(&loader->batches)) {
            end_epoch(loader);
            return TN_OK;
        }
        status = read_next(loader, number, &batch);
        if (status == TN_OK && batch.samples > 0) {
            loader->batch = tn__loader_pack(loader, &batch);
            status = loader->batch != NULL ? TN_OK : tn_error_last_code();
        }
        if (status == TN_OK) {
            note_skipped(loader, &batch);
            atomic_store(&loader->position, number + 1);
        } else {
            tn__loader_rewind(loader, number);
        }
        tn__batch_clear(&batch);
    }
    return status;
}

tn_pack *tn_loader_next(tn_loader *loader)
{
    tn_pack *batch;

    if (!tn__not_null(loader, "tn_loader_next: loader"))
        return NULL;
    if (tn__loader_is_lost(loader)) {
        tn_fail(TN_ERR_RUNTIME,
                "tn_loader_next: the process was forked after the loader had started its threads, "
                "which the child does not have; create a loader in the child");
        return NULL;
    }
    pthread_mutex_lock(&loader->gate);
    tn_pack_drop(loader->batch);
    loader->batch = NULL;
    (void)advance(loader);
    batch = loader->batch;
    pthread_mutex_unlock(&loader->gate);
    return batch;
}

int64_t tn_loader_count(const tn_loader *loader)
{
    return tn__not_null(loader, "tn_loader_count: loader") ? atomic_load(&loader->batches) : -1;
}

int64_t tn_loader_epoch(const tn_loader *loader)
{
    return tn__not_null(loader, "tn_loader_epoch: loader") ? atomic_load(&loader->epoch) : -1;
}

int64_t tn_loader_position(const tn_loader *loader)
{
    return tn__not_null(loader, "tn_loader_position: loader") ? atomic_load(&loader->position) : -1;
}

int64_t tn_loader_skipped(const tn_loader *loader)
{
    return tn__not_null(loader, "tn_loader_skipped: loader") ? atomic_load(&loader->skipped) : -1;
}
