/* SPDX-License-Identifier: MIT
 *
 * The order of the samples: a permutation, or draws by weights. It depends on the seed and the
 * epoch alone, so every rank has the same order and takes its share of it.
 *
 * Weights are the leaves of a binary tree, in which every node is the sum of its two children. A
 * draw walks from the root to a leaf; without replacement, the leaf becomes 0 and the sums above it
 * are computed again, so that no rounding errors accumulate. */
#include "lib/data/loader.h"

#include <math.h>

/* `place` of the keys of random numbers. Their index is -1, which no sample has. */
enum { SHUFFLE = 1, WEIGHTS = 2 };

/* ---- weights --------------------------------------------------------------------------------- */

static void tree_set(tn__order *order, int64_t leaf, double weight)
{
    double *tree = order->tree;
    int64_t node = order->leaves + leaf;

    tree[node] = weight;
    for (node /= 2; node >= 1; node /= 2)
        tree[node] = tree[2 * node] + tree[2 * node + 1];
}

/* Returns a leaf, each with a probability proportional to its weight. */
static int64_t tree_draw(const double *tree, int64_t leaves, tn_random_key *key)
{
    double at = tn_random_between(key, 0, 1) * tree[1];
    int64_t node = 1;

    while (node < leaves) {
        double left = tree[2 * node];

        node *= 2;
        /* Rounding may lead to a side whose sum is 0; the sum of the other side is positive. */
        if ((at >= left && tree[node + 1] > 0) || left <= 0) {
            at -= left;
            node++;
        }
    }
    return node - leaves;
}

static tn_status draw_by_weights(tn_loader *loader, tn_random_key key)
{
    tn__order *order = &loader->order;
    size_t size = (size_t)order->leaves * sizeof *order->tree;
    double *before = order->replacement ? NULL : tn_malloc(size);

    if (!order->replacement && before == NULL)
        return TN_ERR_MEMORY;
    if (before != NULL)
        memcpy(before, order->tree + order->leaves, size);
    for (int64_t i = 0; i < order->draws; i++) {
        order->at[i] = tree_draw(order->tree, order->leaves, &key);
        if (!order->replacement)
            tree_set(order, order->at[i], 0);
    }
    if (before != NULL)
        for (int64_t i = 0; i < order->draws; i++)
            tree_set(order, order->at[i], before[order->at[i]]);
    tn_free(before);
    return TN_OK;
}

/* Makes a tree of the weights in order->tree. */
static tn_status tree_new(tn__order *order, const double *weights, int64_t count)
{
    int64_t leaves = 1;

    while (leaves < count)
        leaves *= 2;
    order->tree = tn_calloc((size_t)leaves * 2, sizeof *order->tree);
    if (order->tree == NULL)
        return TN_ERR_MEMORY;
    order->leaves = leaves;
    memcpy(order->tree + leaves, weights, (size_t)count * sizeof *weights);
    for (int64_t i = leaves - 1; i >= 1; i--)
        order->tree[i] = order->tree[2 * i] + order->tree[2 * i + 1];
    return TN_OK;
}

static tn_status check_weights(const tn_loader *loader, const double *weights, int64_t count,
                               int64_t draws, bool replacement)
{
    int64_t usable = 0;
    double sum = 0;

    if (count != loader->dataset->count)
        return tn_fail(TN_ERR_VALUE,
                       "tn_loader_set_weights: count: wrong, got %lld; expected %lld, the number "
                       "of samples",
                       (long long)count, (long long)loader->dataset->count);
    for (int64_t i = 0; i < count; i++) {
        if (!(weights[i] >= 0) || isinf(weights[i]))
            return tn_fail(TN_ERR_VALUE,
                           "tn_loader_set_weights: weight %lld: wrong, got %g; expected a finite "
                           "number of at least 0",
                           (long long)i, weights[i]);
        usable += weights[i] > 0;
        sum += weights[i];
    }
    if (draws < 1 || (size_t)draws > SIZE_MAX / sizeof(int64_t))
        return tn_fail(TN_ERR_VALUE,
                       "tn_loader_set_weights: draws: wrong, got %lld; expected 1 to %lld",
                       (long long)draws, (long long)(SIZE_MAX / sizeof(int64_t)));
    if (!(sum > 0) || isinf(sum))
        return tn_fail(TN_ERR_VALUE,
                       "tn_loader_set_weights: weights: wrong sum, got %g; expected a positive "
                       "finite number",
                       sum);
    if (!replacement && draws > usable)
        return tn_fail(TN_ERR_VALUE,
                       "tn_loader_set_weights: draws: too many without replacement, got %lld; "
                       "expected at most %lld, the number of weights above 0",
                       (long long)draws, (long long)usable);
    return TN_OK;
}

static tn_status set_weights(tn_loader *loader, const double *weights, int64_t count, int64_t draws,
                             bool replacement)
{
    tn__order order = { .draws = draws, .replacement = replacement };
    tn_status status;

    if (atomic_load(&loader->position) != 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "tn_loader_set_weights: the epoch has begun, got position %lld; expected "
                       "the call at the start of an epoch",
                       (long long)atomic_load(&loader->position));
    status = check_weights(loader, weights, count, draws, replacement);
    if (status == TN_OK)
        status = tree_new(&order, weights, count);
    if (status != TN_OK)
        return status;
    tn__loader_rewind(loader, 0);
    tn__loader_order_free(&loader->order);
    loader->order = order;
    tn__loader_measure(loader);
    return TN_OK;
}

tn_status tn_loader_set_weights(tn_loader *loader, const double *weights, int64_t count,
                                int64_t draws, bool replacement)
{
    tn_status status;

    if (!tn__not_null(loader, "tn_loader_set_weights: loader"))
        return tn_error_last_code();
    if (!tn__given(weights != NULL || count == 0, "tn_loader_set_weights: weights"))
        return TN_ERR_VALUE;
    if (tn__loader_is_lost(loader))
        return tn_fail(TN_ERR_RUNTIME, "tn_loader_set_weights: the process was forked after the "
                                       "loader had started its threads; create a loader in the "
                                       "child");
    pthread_mutex_lock(&loader->gate);
    status = set_weights(loader, weights, count, draws, replacement);
    pthread_mutex_unlock(&loader->gate);
    return status;
}

/* ---- the order of an epoch ------------------------------------------------------------------- */

static void shuffle(int64_t *at, int64_t count, tn_random_key key)
{
    for (int64_t i = 0; i < count; i++)
        at[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t other = tn_random_below(&key, i + 1), kept = at[i];

        at[i] = at[other];
        at[other] = kept;
    }
}

tn_status tn__loader_order(tn_loader *loader)
{
    tn__order *order = &loader->order;
    int64_t epoch = atomic_load(&loader->epoch);
    tn_status status = TN_OK;

    if (order->ready)
        return TN_OK;
    if (order->tree != NULL || loader->options.shuffle) {
        if (order->at == NULL)
            order->at = tn_malloc(((size_t)order->draws + 1) * sizeof *order->at);
        if (order->at == NULL)
            return TN_ERR_MEMORY;
    }
    if (order->tree != NULL)
        status = draw_by_weights(loader, tn__data_key(loader->seed, epoch, -1, WEIGHTS));
    else if (order->at != NULL)
        shuffle(order->at, order->draws, tn__data_key(loader->seed, epoch, -1, SHUFFLE));
    order->ready = status == TN_OK;
    return status;
}

int64_t tn__loader_index(const tn_loader *loader, int64_t number)
{
    const tn__order *order = &loader->order;
    int64_t place = (loader->options.rank + number * loader->options.ranks) % order->draws;

    return order->at != NULL ? order->at[place] : place;
}

void tn__loader_order_free(tn__order *order)
{
    tn_free(order->tree);
    tn_free(order->at);
    *order = (tn__order){ 0 };
}
