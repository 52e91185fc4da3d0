/* SPDX-License-Identifier: MIT
 *
 * A plugin with pruning methods, as it would be written outside of the tree: EveryNth masks each
 * n-th entry, Broken fails in several ways, Rows is structured. */
#include <tenon/plugin.h>

#include <string.h>

struct every {
    int64_t n;
};

static const tn_option every_options[] = {
    TN_OPTION_INT(struct every, n, "2", "which entries are masked"), TN_OPTION_END
};

static tn_status every_check(const tn_prune_def *self, const void *options)
{
    const struct every *s = options;

    return s->n >= 1 ? TN_OK
                     : tn_fail(TN_ERR_VALUE, "%s: n: too small, got %lld; expected 1 or more",
                               self->name, (long long)s->n);
}

static tn_tensor *every_mask(const tn_prune_def *self, const void *options, tn_tensor *scores,
                             tn_tensor *mask)
{
    const struct every *s = options;
    int64_t count = tn_tensor_numel(mask), *index = tn_malloc((size_t)(count + 1) * sizeof *index);
    int64_t used = 0;
    tn_tensor *flat, *indices;

    (void)self, (void)scores;
    if (index == NULL)
        return NULL;
    for (int64_t i = s->n - 1; i < count; i += s->n)
        index[used++] = i;
    indices = tn_tensor_from(index, TN_I64, TN_SHAPE(used));
    tn_free(index);
    flat = indices != NULL ? tn_reshape(mask, TN_INTS(-1)) : NULL;
    flat = flat != NULL ? tn_index_fill(flat, indices, 0, 0) : NULL;
    return flat != NULL ? tn_reshape(flat, tn_tensor_shape(mask)) : NULL;
}

static const tn_prune_def every = {
    TN_HEAD(tn_prune_def),
    .name = "EveryNth",
    .help = "masks each n-th entry",
    .options = every_options,
    .data_size = sizeof(struct every),
    .type = TN_PRUNE_UNSTRUCTURED,
    .mask = every_mask,
    .check = every_check,
};

/* ---- a structured method: the first slice along `dim` ---------------------------------------- */

struct first {
    int64_t dim;
};

static const tn_option first_options[] = { TN_OPTION_INT(struct first, dim, "0", "the dimension"),
                                           TN_OPTION_END };

static int64_t first_dim(const tn_prune_def *self, const void *options)
{
    (void)self;
    return ((const struct first *)options)->dim;
}

static tn_tensor *first_mask(const tn_prune_def *self, const void *options, tn_tensor *scores,
                             tn_tensor *mask)
{
    tn_tensor *zero = tn_tensor_full(TN_SHAPE(1), 0, TN_I64, NULL);

    (void)scores;
    return zero != NULL ? tn_index_fill(mask, zero, first_dim(self, options), 0) : NULL;
}

static const tn_prune_def first = {
    TN_HEAD(tn_prune_def),
    .name = "FirstSlice",
    .help = "masks the first slice that is left",
    .options = first_options,
    .data_size = sizeof(struct first),
    .type = TN_PRUNE_STRUCTURED,
    .mask = first_mask,
    .dim = first_dim,
};

/* ---- a method that fails --------------------------------------------------------------------- */

struct broken {
    const char *how;
};

static const tn_option broken_options[] = { TN_OPTION_STRING(struct broken, how, "'message'",
                                                             "message, silent, none or shape"),
                                            TN_OPTION_END };

static tn_tensor *broken_mask(const tn_prune_def *self, const void *options, tn_tensor *scores,
                              tn_tensor *mask)
{
    const struct broken *s = options;

    (void)scores;
    if (strcmp(s->how, "none") == 0)
        return TN_NONE;
    if (strcmp(s->how, "shape") == 0)
        return tn_reshape(mask, TN_INTS(1, -1, 1));
    if (strcmp(s->how, "message") == 0)
        tn_fail(TN_ERR_RUNTIME, "%s: what went wrong", self->name);
    return NULL;
}

static const tn_prune_def broken = {
    TN_HEAD(tn_prune_def),
    .name = "Broken",
    .help = "fails",
    .options = broken_options,
    .data_size = sizeof(struct broken),
    .type = TN_PRUNE_UNSTRUCTURED,
    .mask = broken_mask,
};

static const void *const contributions[] = { &every, &first, &broken };

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),           .id = "org.example.prune", .version = "1.0",
    .help = "methods for a test", .license = "MIT",          .contributions = contributions,
    .n_contributions = 3,
};

TN_PLUGIN_EXPORT(plugin);
