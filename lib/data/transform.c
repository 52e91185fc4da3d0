/* SPDX-License-Identifier: MIT
 *
 * Datasets whose samples pass through transforms when they are read. */
#include "lib/data/private.h"

struct transformed {
    tn_dataset dataset;
    tn__steps steps;
};

/* Returns a copy of `sample` that asks for the form that the first transform needs: encoded or not.
 */
static tn__sample sample_for(const tn__steps *steps, const tn__sample *sample)
{
    tn__sample inner = *sample;

    inner.encoded = (steps->at[0].def->flags & TN_TRANSFORM_ENCODED) != 0;
    return inner;
}

static tn_status transformed_get(tn_dataset *dataset, const tn__sample *sample, tn_pack *out)
{
    const struct transformed *own = (const struct transformed *)(const void *)dataset;
    const tn__steps *steps = &own->steps;
    const tn__work work = { sample->seed, sample->epoch, sample->index,
                            tn_dataset_classes(dataset) };
    int64_t before = dataset->source->transforms;
    tn__sample inner;
    tn_pack *in = NULL, *next;
    tn_status status;

    if (steps->count == 0)
        return tn__dataset_read(dataset->source, sample, out);
    if ((in = tn_pack_new()) == NULL)
        return TN_ERR_MEMORY;
    inner = sample_for(steps, sample);
    status = tn__dataset_read(dataset->source, &inner, in);
    for (int64_t i = 0; i < steps->count && status == TN_OK; i++) {
        next = i + 1 < steps->count ? tn_pack_new() : out;
        status = next == NULL
                     ? TN_ERR_MEMORY
                     : tn__transform_list_apply(&steps->at[i], &work, before + i, in, next);
        if (status != TN_OK)
            tn__dataset_prefix(dataset, sample->index);
        tn_pack_drop(in);
        in = next != out ? next : NULL;
    }
    tn_pack_drop(in);
    return status;
}

static void transformed_close(tn_dataset *dataset)
{
    tn__transform_list_free(&((struct transformed *)(void *)dataset)->steps);
}

tn_dataset *tn_dataset_transform(tn_dataset *dataset, const char *text)
{
    static const tn__dataset_kind kind = { transformed_get, transformed_close };
    struct transformed *own;

    if (!tn__not_null(dataset, "tn_dataset_transform: dataset") ||
        !tn__given(text != NULL, "tn_dataset_transform: text"))
        return NULL;
    own = (struct transformed *)(void *)tn__dataset_make(&kind, sizeof *own);
    if (own == NULL)
        return NULL;
    own->dataset.source = tn_dataset_keep(dataset);
    own->dataset.count = dataset->count;
    if (tn__transform_list_open(&own->steps, text, false) == TN_OK) {
        own->dataset.transforms = dataset->transforms + own->steps.count;
        return &own->dataset;
    }
    tn_dataset_drop(&own->dataset);
    return NULL;
}
