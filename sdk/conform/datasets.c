/* SPDX-License-Identifier: MIT
 *
 * Checks datasets and transforms, for tenon check: a seed, an epoch and an index always give the
 * same sample, in every thread and while other datasets are opened and closed. The specs come from
 * lines `dataset SPEC` and `transform SPEC` of the cases. */
#include "conform.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SAMPLES = 64, THREADS = 4, EPOCHS = 8 };

/* ---- samples --------------------------------------------------------------------------------- */

/* The dataset of a spec, and samples of it as they were first read. */
typedef struct reading {
    conform *c;
    const char *spec;
    tn_dataset *dataset;
    int64_t index[SAMPLES], count;
    tn_pack *sample[SAMPLES];
} reading;

/* Reports a failure and names the spec. Returns false. */
static bool wrong(const reading *r, const char *format, ...) TN_ATTR(format(printf, 2, 3));
static bool wrong(const reading *r, const char *format, ...)
{
    char words[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    return conform_fail(r->c, "%s: %s", r->spec, words);
}

static bool same_pack(const tn_pack *a, const tn_pack *b)
{
    int64_t count = tn_pack_count(a);
    bool same = count == tn_pack_count(b) && tn_pack_positional(a) == tn_pack_positional(b);

    for (int64_t i = 0; same && i < count; i++) {
        const char *one = tn_pack_name(a, i), *other = tn_pack_name(b, i);

        same = (one == NULL) == (other == NULL) && (one == NULL || strcmp(one, other) == 0) &&
               conform_same_value(tn_pack_at(a, i), tn_pack_at(b, i));
    }
    return same;
}

/* Returns a sample, NULL on failure. */
static tn_pack *get(tn_dataset *dataset, int64_t index, uint64_t seed, int64_t epoch)
{
    tn_pack *pack = tn_pack_new();

    if (pack != NULL && tn_dataset_get(dataset, index, seed, epoch, pack) == TN_OK)
        return pack;
    tn_pack_drop(pack);
    return NULL;
}

/* Reads the sample again and compares it. `when` is for the message. */
static bool again(const reading *r, tn_dataset *dataset, int64_t i, int64_t index, const char *when)
{
    tn_pack *pack = get(dataset, index, 1, 0);
    bool same = pack != NULL && same_pack(pack, r->sample[i]);

    r->c->checks++;
    if (pack == NULL)
        return wrong(r, "sample %lld: fails %s: %s", (long long)index, when, tn_error_text());
    tn_pack_drop(pack);
    return same || wrong(r, "sample %lld: other values %s", (long long)index, when);
}

/* Chooses indices: all of them, or the first, the last and some between. */
static void choose(reading *r)
{
    int64_t all = tn_dataset_count(r->dataset);

    r->count = all < SAMPLES ? all : SAMPLES;
    for (int64_t i = 0; i < r->count; i++)
        r->index[i] = all <= SAMPLES ? i : (int64_t)((double)i * (double)(all - 1) / (SAMPLES - 1));
}

static bool read_first(reading *r)
{
    choose(r);
    for (int64_t i = 0; i < r->count; i++) {
        r->sample[i] = get(r->dataset, r->index[i], 1, 0);
        r->c->checks++;
        if (r->sample[i] == NULL)
            return wrong(r, "sample %lld: fails: %s", (long long)r->index[i], tn_error_text());
    }
    return true;
}

static void forget(reading *r)
{
    for (int64_t i = 0; i < r->count; i++)
        tn_pack_drop(r->sample[i]);
    tn_dataset_drop(r->dataset);
    r->dataset = NULL;
    r->count = 0;
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct reader {
    const reading *r;
    pthread_t thread;
    int64_t first, differs; /* differs: the sample that was not equal, -1: all were equal */
    char words[256];
} reader;

static void *read_all(void *user)
{
    reader *self = user;
    const reading *r = self->r;

    for (int64_t k = 0; k < 2 * r->count && self->differs < 0; k++) {
        int64_t i = (k + self->first) % r->count;
        tn_pack *pack = get(r->dataset, r->index[i], 1, 0);

        if (pack == NULL || !same_pack(pack, r->sample[i])) {
            self->differs = r->index[i];
            snprintf(self->words, sizeof self->words, "%s",
                     pack != NULL ? "other values" : tn_error_text());
        }
        tn_pack_drop(pack);
    }
    return NULL;
}

static bool read_in_threads(const reading *r)
{
    reader readers[THREADS];
    int started = 0;
    bool well = true;

    for (; started < THREADS; started++) {
        readers[started] = (reader){ .r = r, .first = started * r->count / THREADS, .differs = -1 };
        if (pthread_create(&readers[started].thread, NULL, read_all, &readers[started]) != 0)
            break;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(readers[i].thread, NULL);
        r->c->checks += 2 * r->count;
        if (well && readers[i].differs >= 0)
            well = wrong(r, "sample %lld: read by %d threads at the same time: %s",
                         (long long)readers[i].differs, started, readers[i].words);
    }
    return well;
}

/* Checks what every dataset must fulfil, with or without transforms. */
static bool check_samples(reading *r)
{
    bool well = read_first(r);
    int64_t last = r->count - 1;

    for (int64_t i = last; well && i >= 0; i--)
        well = again(r, r->dataset, i, r->index[i], "when it is read again");
    if (well && r->count > 0)
        well = again(r, r->dataset, last, -1, "when it is read as sample -1");
    return well && (r->count == 0 || read_in_threads(r));
}

/* ---- specs ----------------------------------------------------------------------------------- */

static bool needs_options(const tn_option *options)
{
    for (; options != NULL && options->kind != TN_OPTION_KIND_END; options++)
        if (options->flags & TN_OPTION_REQUIRED)
            return true;
    return false;
}

/* Calls check(c, spec) for each line "WORD SPEC" of a file whose spec has the name of the test's
 * subject. Returns the number of calls, -1 after a failure. */
static int64_t specs_of_file(conform *c, const char *path, const char *word,
                             bool (*check)(conform *c, const char *spec))
{
    const char *reason = NULL, *at;
    conform_lines lines = { .file = conform_open(path, &reason) };
    char *line, why[256];
    size_t length = strlen(c->subject), skip = strlen(word);
    int64_t found = 0;
    bool well = lines.file != NULL || conform_fail(c, "%s: %s", path, reason);

    while (well && conform_next_line(&lines, &line, &reason)) {
        at = line + skip;
        if (!conform_line_begins(line, CONFORM_LINES, why, sizeof why))
            well = conform_fail(c, "%s: %s", path, why);
        else if (strncmp(line, word, skip) == 0 && strncmp(at, c->subject, length) == 0 &&
                 (at[length] == '(' || at[length] == '\0')) {
            found++;
            well = check(c, at);
        }
    }
    if (well && reason != NULL)
        well = conform_fail(c, "%s: %s", path, reason);
    conform_lines_end(&lines);
    return well ? found : -1;
}

void conform_check_specs(conform *c, const char *word, const tn_option *options,
                         bool (*check)(conform *c, const char *spec))
{
    const char *path = c->plugin->options->cases;
    struct dirent **entries = NULL;
    struct stat about;
    int64_t found = 0, here;
    int count = 0;

    if (path != NULL && stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
        count = scandir(path, &entries, conform_is_text, alphasort);
        for (int i = 0; i < count; i++) {
            char full[4096];

            snprintf(full, sizeof full, "%s/%s", path, entries[i]->d_name);
            here = found >= 0 ? specs_of_file(c, full, word, check) : -1;
            found = here < 0 ? -1 : found + here;
            free(entries[i]);
        }
        free(entries);
    } else if (path != NULL) {
        found = specs_of_file(c, path, word, check);
    }
    if (found == 0 && needs_options(options))
        conform_skip(c, "options without a default, and no line `%s%s(...)` in the cases", word,
                     c->subject);
    else if (found == 0)
        (void)check(c, c->subject);
    tn_error_clear();
}

/* ---- datasets -------------------------------------------------------------------------------- */

/* Opens the dataset a second time while it is open, compares the samples, then closes the first one
 * and compares again. */
static bool check_two(reading *r)
{
    tn_dataset *other = tn_dataset_parse(r->spec);
    bool well = other != NULL || wrong(r, "opened again while it is open: %s", tn_error_text());

    if (well && tn_dataset_count(other) != tn_dataset_count(r->dataset))
        well = wrong(r, "opened again: %lld samples instead of %lld",
                     (long long)tn_dataset_count(other), (long long)tn_dataset_count(r->dataset));
    for (int64_t i = 0; well && i < r->count; i++)
        well = again(r, other, i, r->index[i], "in a dataset that was opened again");
    if (well) {
        tn_dataset_drop(r->dataset);
        r->dataset = other;
        other = NULL;
    }
    for (int64_t i = 0; well && i < r->count; i++)
        well = again(r, r->dataset, i, r->index[i], "after the first of two datasets was closed");
    tn_dataset_drop(other);
    return well;
}

static bool check_dataset(conform *c, const char *spec)
{
    reading r = { .c = c, .spec = spec };
    bool well;

    tn_error_clear();
    r.dataset = tn_dataset_parse(spec);
    c->checks++;
    if (r.dataset == NULL && tn_error_code() == TN_ERR_UNAVAILABLE) {
        conform_skip(c, "%s", tn_error_text());
        return true;
    }
    well = r.dataset != NULL || wrong(&r, "does not open: %s", tn_error_text());
    well = well && check_samples(&r) && check_two(&r);
    forget(&r);
    return well;
}

void conform_dataset(conform *c)
{
    const tn_dataset_def *def;

    def = (const tn_dataset_def *)tn_registry_find(TN_KIND_tn_dataset_def, c->subject);
    conform_check_specs(c, "dataset ", def->options, check_dataset);
}

/* ---- transforms ------------------------------------------------------------------------------ */

/* The datasets that a transform gets: images of floats and of bytes, gray ones, vectors. Every
 * sample is (tensor, class). */
static const struct form {
    const char *name;
    tn_dtype dtype;
    int64_t shape[3];
    int64_t ndim;
} forms[] = {
    { "float32[3, 12, 10]", TN_F32, { 3, 12, 10 }, 3 },
    { "uint8[3, 12, 10]", TN_U8, { 3, 12, 10 }, 3 },
    { "float32[1, 12, 10]", TN_F32, { 1, 12, 10 }, 3 },
    { "uint8[12, 10, 3]", TN_U8, { 12, 10, 3 }, 3 },
    { "float32[16]", TN_F32, { 16, 0, 0 }, 1 },
};
enum { FORMS = sizeof forms / sizeof *forms, EACH = 4 };

/* The samples belong to the dataset, as those of tn_dataset_of_tensors do. */
static tn_tensor *given[EACH];
static const struct form *given_form;

static tn_status given_open(tn_dataset_open *args)
{
    args->count = EACH;
    args->classes = 10;
    return TN_OK;
}

static tn_status given_get(const tn_sample_args *args)
{
    tn_status status = tn_pack_add(args->out, NULL, tn_value_tensor(given[args->index]));

    return status == TN_OK ? tn_pack_add(args->out, NULL, tn_value_int(args->index + 3)) : status;
}

static const tn_dataset_def given_def = { TN_HEAD(tn_dataset_def), .name = "tenon.check.Given",
                                          .open = given_open, .get = given_get };

static tn_tensor *given_make(const struct form *form, int64_t which)
{
    uint8_t bytes[3 * 12 * 10];
    float values[3 * 12 * 10];
    int64_t count = 1;

    for (int64_t d = 0; d < form->ndim; d++)
        count *= form->shape[d];
    for (int64_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(which * 41 + i * 7);
        values[i] = (float)bytes[i] / 255;
    }
    return tn_tensor_from(form->dtype == TN_U8 ? (const void *)bytes : values, form->dtype,
                          (tn_ints){ form->shape, form->ndim });
}

/* Checks that the samples which the transform got are as they were. */
static bool given_same(const reading *r)
{
    bool same = true;

    for (int64_t i = 0; i < EACH; i++) {
        tn_tensor *fresh = given_make(given_form, i);

        r->c->checks++;
        same = same && fresh != NULL &&
               conform_same_value(tn_value_tensor(fresh), tn_value_tensor(given[i]));
    }
    return same || wrong(r, "samples of %s: the transform changes the sample that it got",
                         given_form->name);
}

/* Checks that the sample of an epoch does not depend on the epochs that were read before it. */
static bool epochs_same(const reading *r)
{
    tn_pack *epoch[EPOCHS] = { NULL };
    bool well = true;

    for (int e = 0; e < EPOCHS && well; e++) {
        epoch[e] = get(r->dataset, 0, 1, e);
        well = epoch[e] != NULL || wrong(r, "epoch %d: fails: %s", e, tn_error_text());
    }
    for (int e = EPOCHS - 1; e >= 0 && well; e--) {
        tn_pack *pack = get(r->dataset, 0, 1, e);

        r->c->checks++;
        well = (pack != NULL && same_pack(pack, epoch[e])) ||
               wrong(r, "sample 0 of epoch %d: other values when it is read again", e);
        tn_pack_drop(pack);
    }
    for (int e = 0; e < EPOCHS; e++)
        tn_pack_drop(epoch[e]);
    return well;
}

/* Checks the transform with samples of one form. *taken counts the forms that it accepts. */
static bool check_form(reading *r, const struct form *form, int *taken)
{
    tn_dataset *source = tn_dataset_parse(given_def.name);
    tn_pack *first;
    bool well = true;

    given_form = form;
    for (int64_t i = 0; i < EACH; i++)
        given[i] = given_make(form, i);
    r->dataset = tn_dataset_transform(source, r->spec);
    tn_dataset_drop(source);
    if (r->dataset == NULL)
        return wrong(r, "is refused: %s", tn_error_text());
    first = get(r->dataset, 0, 1, 0);
    r->c->checks++;
    if (first != NULL) {
        ++*taken;
        well = check_samples(r) && epochs_same(r);
    }
    tn_pack_drop(first);
    well = well && given_same(r);
    forget(r);
    return well;
}

/* ---- transforms of batches ------------------------------------------------------------------- */

/* Tensors that transforms got, and copies of them. */
enum { WATCHED = 64 };
static struct watched {
    tn_tensor *tensor, *copy;
} watched[WATCHED];
static int64_t watched_count;
static pthread_mutex_t watched_lock = PTHREAD_MUTEX_INITIALIZER;

/* A transform that comes before the one under test, and records the batch that it gets. */
static tn_status watch_apply(tn_transform_args *args)
{
    const tn_value first = tn_pack_at(args->in, 0);
    tn_tensor *copy = first.kind == TN_VALUE_TENSOR ? tn_copy(first.as.tensor) : NULL;
    tn_status status = TN_OK;

    pthread_mutex_lock(&watched_lock);
    if (copy != NULL && watched_count < WATCHED)
        watched[watched_count++] = (struct watched){ tn_tensor_keep(first.as.tensor),
                                                     tn_tensor_keep(copy) };
    pthread_mutex_unlock(&watched_lock);
    for (int64_t i = 0; i < tn_pack_count(args->in) && status == TN_OK; i++)
        status = tn_pack_add(args->out, tn_pack_name(args->in, i), tn_pack_at(args->in, i));
    return status;
}

static const tn_transform_def watch_def = { TN_HEAD(tn_transform_def), .name = "tenon.check.Watch",
                                            .flags = TN_TRANSFORM_BATCH, .apply = watch_apply };

/* Checks that the batches which the transform got are as they were. */
static bool watched_same(const reading *r)
{
    bool same = true;

    for (int64_t i = 0; i < watched_count; i++) {
        r->c->checks++;
        same = same && conform_same_value(tn_value_tensor(watched[i].tensor),
                                          tn_value_tensor(watched[i].copy));
        tn_tensor_drop(watched[i].tensor);
        tn_tensor_drop(watched[i].copy);
    }
    watched_count = 0;
    return same ||
           wrong(r, "batches of %s: the transform changes the batch that it got", given_form->name);
}

static tn_loader *loader_for(const reading *r, int workers)
{
    return tn_loader_new(r->dataset,
                         "batch_size=2, seed=1, device='cpu', workers=%d, "
                         "batch_transform=[tenon.check.Watch, %s]",
                         workers, r->spec);
}

/* Reads two epochs from both loaders, which must return the same batches. */
static bool go_on_equally(const reading *r, tn_loader *a, tn_loader *b, const char *when)
{
    bool well = a != NULL && b != NULL;

    if (!well)
        return wrong(r, "is refused: %s", tn_error_text());
    for (int i = 0; well && i < 2 * (EACH / 2 + 1); i++) {
        tn_pack *one = tn_loader_next(a), *other = tn_loader_next(b);

        r->c->checks++;
        if (tn_failed())
            return wrong(r, "a batch of %s fails %s: %s", given_form->name, when, tn_error_text());
        well = (one == NULL) == (other == NULL) && (one == NULL || same_pack(one, other));
    }
    return well || wrong(r, "a batch of %s: other values %s", given_form->name, when);
}

/* Whether the batches of a form are accepted. */
static bool is_accepted(const reading *r)
{
    tn_loader *loader = loader_for(r, 0);
    bool accepted = loader != NULL && tn_loader_next(loader) != NULL;

    tn_loader_drop(loader);
    return accepted;
}

static bool check_batches(const reading *r)
{
    tn_loader *plain = loader_for(r, 0), *threads = loader_for(r, 3), *late = loader_for(r, 0);
    char state[512];
    bool well = go_on_equally(r, plain, threads, "when several threads read");

    if (well) {
        (void)tn_loader_next(plain);
        tn_loader_state_text(plain, state, sizeof state);
        well = (late != NULL && tn_loader_set_state(late, state) == TN_OK) ||
               wrong(r, "cannot continue: %s", tn_error_text());
    }
    well = well &&
           go_on_equally(r, plain, late, "when a loader continues in the middle of an epoch");
    tn_loader_drop(plain);
    tn_loader_drop(threads);
    tn_loader_drop(late);
    return well;
}

static bool check_batch_form(reading *r, const struct form *form, int *taken)
{
    bool well = true;

    given_form = form;
    for (int64_t i = 0; i < EACH; i++)
        given[i] = given_make(form, i);
    r->dataset = tn_dataset_parse(given_def.name);
    if (is_accepted(r)) {
        tn_error_clear(); /* the error of a form that was refused before */
        ++*taken;
        well = check_batches(r);
    }
    well = watched_same(r) && well;
    forget(r);
    return well;
}

/* ---- transforms of either kind --------------------------------------------------------------- */

static bool check_transform(conform *c, const char *spec)
{
    reading r = { .c = c, .spec = spec };
    const tn_device *host = tn_device_find("cpu");
    const tn_transform_def *def;
    int taken = 0;
    bool well = true;

    def = (const tn_transform_def *)tn_registry_find(TN_KIND_tn_transform_def, c->subject);
    tn_error_clear();
    tn_device_begin(host);
    for (int i = 0; i < FORMS && well; i++) {
        uint64_t scope = tn_scope_begin();

        well = def->flags & TN_TRANSFORM_BATCH ? check_batch_form(&r, &forms[i], &taken)
                                               : check_form(&r, &forms[i], &taken);
        tn_scope_end(scope);
    }
    tn_device_end();
    if (well && taken == 0)
        well = wrong(&r, "refuses every %s: %s",
                     def->flags & TN_TRANSFORM_BATCH ? "batch" : "sample", tn_error_text());
    tn_error_clear();
    return well;
}

void conform_transform(conform *c)
{
    const tn_transform_def *def;

    def = (const tn_transform_def *)tn_registry_find(TN_KIND_tn_transform_def, c->subject);
    if (tn_register(&given_def) != TN_OK || tn_register(&watch_def) != TN_OK)
        conform_fail(c, "%s", tn_error_text());
    else
        conform_check_specs(c, "transform ", def->options, check_transform);
}
