/* SPDX-License-Identifier: MIT
 *
 * Masks channels of a network, with everything that computes them. Channels of the same modules
 * are a family, in which a structured method chooses. */
#include "network.h"

#include <string.h>

typedef struct masking {
    network n;
    uint64_t *family; /* for each group: the modules that compute it; 0: it stays */
    uint8_t *off;     /* for each group: it is masked */
} masking;

static bool is_computed(const network_leaf *leaf, int64_t element)
{
    return !leaf->same && element >= leaf->out_at && element < leaf->out_at + leaf->out;
}

/* Groups of the same modules get the same number. */
static tn_status find_families(masking *m)
{
    const network *n = &m->n;

    m->family = tn_calloc((size_t)n->n_elements + 1, sizeof *m->family);
    m->off = tn_calloc((size_t)n->n_elements + 1, 1);
    if (m->family == NULL || m->off == NULL)
        return TN_ERR_MEMORY;
    for (int64_t e = 0; e < n->n_elements; e++) {
        int64_t root = network_root(n, e);

        if (n->elements[root].lock != NETWORK_FREE ||
            !is_computed(&n->leaves[n->elements[e].leaf], e))
            continue;
        m->family[root] = (m->family[root] ^ (uint64_t)(n->elements[e].leaf + 1)) *
                          UINT64_C(0x9e3779b97f4a7c15);
        m->family[root] |= m->family[root] == 0;
    }
    return TN_OK;
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* Appends slice `slice` of each parameter that computes an element to a row. Returns the number of
 * values; if `row` is NULL, only counts them. -1 on failure. */
static int64_t slice_values(const network *n, int64_t element, double *row)
{
    network_leaf *leaf = &n->leaves[n->elements[element].leaf];
    int64_t count = 0, slice = element - leaf->out_at;

    for (int64_t i = 0; i < leaf->channels.n_rows; i++) {
        const tn_channel_row *r = &leaf->channels.rows[i];
        tn_tensor *tensor = r->role == TN_CHANNELS_OUT && r->slot != NULL
                                ? tn_module_get(leaf->module, r->slot)
                                : TN_NONE;
        tn_tensor *part;
        double *values;

        if (tensor == TN_NONE)
            continue;
        part = tensor != NULL ? tn_narrow(tensor, r->dim, slice, 1) : NULL;
        if (part == NULL)
            return -1;
        if (row != NULL) {
            values = network_read(part);
            if (values == NULL)
                return -1;
            memcpy(row + count, values, (size_t)tn_tensor_numel(part) * sizeof *values);
            tn_free(values);
        }
        count += tn_tensor_numel(part);
    }
    return count;
}

/* Returns a matrix with a row for each group of the family, in the order of their roots; the other
 * values of shorter rows are 0. */
static tn_tensor *matrix(masking *m, const int64_t *roots, int64_t count)
{
    const network *n = &m->n;
    int64_t width = 0, *used = tn_calloc((size_t)count, sizeof *used);
    int64_t *place = tn_malloc(((size_t)n->n_elements + 1) * sizeof *place);
    double *data = NULL;
    tn_tensor *made = NULL;
    bool well = used != NULL && place != NULL;

    for (int64_t e = 0; well && e < n->n_elements; e++)
        place[e] = -1;
    for (int64_t i = 0; well && i < count; i++)
        place[roots[i]] = i;
    /* The first pass measures the rows, the second fills them. */
    for (int pass = 0; pass < 2 && well; pass++) {
        if (pass == 1) {
            data = tn_calloc((size_t)count * (size_t)(width > 0 ? width : 1), sizeof *data);
            well = data != NULL;
            memset(used, 0, (size_t)count * sizeof *used);
        }
        for (int64_t e = 0; e < n->n_elements && well; e++) {
            int64_t row = place[network_root(n, e)], own;
            uint64_t scope;

            if (row < 0 || !is_computed(&n->leaves[n->elements[e].leaf], e))
                continue;
            scope = tn_scope_begin();
            own = slice_values(n, e, pass == 1 ? data + row * width + used[row] : NULL);
            tn_scope_end(scope);
            well = own >= 0;
            used[row] += own;
            width = pass == 0 && used[row] > width ? used[row] : width;
        }
    }
    if (well) {
        made = tn_tensor_empty(TN_SHAPE(count, width), TN_F64, NULL);
        if (made != NULL &&
            tn_tensor_copy_in(made, data, (size_t)(count * width) * sizeof *data) != TN_OK)
            made = NULL;
    }
    tn_free(used);
    tn_free(place);
    tn_free(data);
    return made;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static tn_status take_rows(masking *m, const int64_t *roots, int64_t count, tn_tensor *mask,
                           const char *method)
{
    double *values = network_read(mask);
    int64_t width = count > 0 ? tn_tensor_numel(mask) / count : 0;
    tn_status status = values != NULL ? TN_OK : tn_error_last_code();

    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        int64_t zeros = 0;

        for (int64_t k = 0; k < width; k++)
            zeros += values[i * width + k] == 0;
        if (zeros != 0 && zeros != width)
            status = tn_fail(TN_ERR_VALUE,
                             "method: it masks parts of channels, got %s; expected a structured "
                             "method with dim=0",
                             method);
        m->off[roots[i]] = zeros != 0;
    }
    tn_free(values);
    return status;
}

static tn_status choose_in(masking *m, uint64_t family, int64_t *roots, const char *method)
{
    const network *n = &m->n;
    uint64_t scope = tn_scope_begin();
    int64_t count = 0;
    tn_tensor *scores, *mask;
    tn_status status;

    for (int64_t e = 0; e < n->n_elements; e++)
        if (n->elements[e].parent == e && m->family[e] == family)
            roots[count++] = e;
    scores = matrix(m, roots, count);
    mask = scores != NULL ? tn_prune_mask(scores, TN_NONE, TN_NONE, method) : NULL;
    status = mask != NULL ? take_rows(m, roots, count, mask, method) : tn_error_last_code();
    tn_scope_end(scope);
    return status;
}

static tn_status choose(masking *m, const char *method)
{
    const network *n = &m->n;
    int64_t *roots = tn_malloc(((size_t)n->n_elements + 1) * sizeof *roots);
    tn_status status = roots != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t e = 0; e < n->n_elements && status == TN_OK; e++) {
        bool first = n->elements[e].parent == e && m->family[e] != 0;

        for (int64_t k = 0; first && k < e; k++)
            first = n->elements[k].parent != k || m->family[k] != m->family[e];
        if (first)
            status = choose_in(m, m->family[e], roots, method);
    }
    tn_free(roots);
    return status;
}

/* ---- masks of parameters --------------------------------------------------------------------- */

/* Returns a tensor like the parameter, 0 in the slices that are masked and 1 elsewhere. Adds the
 * number of its zeros that the parameter's current mask does not have to *fresh. */
static tn_tensor *scores_of(const masking *m, network_leaf *leaf, const tn_channel_row *row,
                            tn_tensor *tensor, int64_t *fresh)
{
    tn_ints shape = tn_tensor_shape(tensor);
    int64_t numel = tn_tensor_numel(tensor), inner = 1;
    double *now = NULL, *scores = tn_malloc((size_t)(numel > 0 ? numel : 1) * sizeof *scores);
    tn_tensor *made = NULL;

    if (network_is_pruned(leaf->module, row->slot)) {
        tn_tensor *mask = network_beside(leaf->module, row->slot, "_mask");

        now = mask != NULL ? network_read(mask) : NULL;
        if (now == NULL) {
            tn_free(scores);
            return NULL;
        }
    }
    for (int64_t i = row->dim + 1; i < shape.count; i++)
        inner *= shape.at[i];
    for (int64_t i = 0; scores != NULL && i < numel; i++) {
        int64_t slice = i / inner % shape.at[row->dim];
        bool off = m->off[network_root(&m->n, leaf->out_at + slice)] != 0;

        scores[i] = off ? 0 : 1;
        *fresh += off && (now == NULL || now[i] != 0);
    }
    if (scores != NULL)
        made = tn_tensor_empty(shape, TN_F64, NULL);
    if (made != NULL && tn_tensor_copy_in(made, scores, (size_t)numel * sizeof *scores) != TN_OK)
        made = NULL;
    tn_free(now);
    tn_free(scores);
    return made;
}

/* Masks all parameters or none: the entries to mask are those with the smallest scores. */
static tn_status mask_all(masking *m)
{
    tn_prune_target *targets = NULL;
    int64_t count = 0, room = 0, fresh = 0;
    char method[64];
    tn_status status = TN_OK;

    for (int64_t i = 0; i < m->n.n_leaves; i++)
        room += m->n.leaves[i].known ? m->n.leaves[i].channels.n_rows : 0;
    targets = tn_calloc((size_t)room + 1, sizeof *targets);
    if (targets == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < m->n.n_leaves && status == TN_OK; i++) {
        network_leaf *leaf = &m->n.leaves[i];

        for (int64_t r = 0; leaf->known && r < leaf->channels.n_rows && status == TN_OK; r++) {
            const tn_channel_row *row = &leaf->channels.rows[r];
            tn_prune_target *target = &targets[count];
            int64_t before = fresh;
            tn_tensor *tensor;

            if (row->slot == NULL || row->role == TN_CHANNELS_IN ||
                tn_module_slot_kind(leaf->module, row->slot) == TN_SLOT_BUFFER)
                continue;
            tensor = tn_module_get(leaf->module, row->slot);
            if (tensor == TN_NONE)
                continue;
            *target = (tn_prune_target){ leaf->module, row->slot, NULL };
            target->scores = tensor != NULL ? scores_of(m, leaf, row, tensor, &fresh) : NULL;
            status = target->scores != NULL ? TN_OK : tn_error_last_code();
            count += fresh > before; /* a parameter without masked channels is left alone */
        }
    }
    tn_snprint(method, sizeof method, "L1Unstructured(amount=%lld)", (long long)fresh);
    if (status == TN_OK && fresh > 0)
        status = tn_prune_global(targets, count, method);
    tn_free(targets);
    return status;
}

static void count_channels(const masking *m, tn_prune_report *report)
{
    for (int64_t e = 0; e < m->n.n_elements; e++)
        if (is_computed(&m->n.leaves[m->n.elements[e].leaf], e)) {
            report->channels_before++;
            report->channels_removed += m->off[network_root(&m->n, e)];
        }
}

tn_status network_channels(const tn_prune_net *args)
{
    masking m = { 0 };
    tn_status status = network_open(&m.n, args->net, args->inputs, args->n_inputs);

    if (status == TN_OK)
        status = network_flow(&m.n);
    if (status == TN_OK)
        status = find_families(&m);
    if (status == TN_OK)
        status = choose(&m, args->method);
    if (status == TN_OK)
        status = mask_all(&m);
    if (status == TN_OK)
        count_channels(&m, args->report);
    tn_free(m.family);
    tn_free(m.off);
    network_close(&m.n);
    args->report->parameters_before = args->report->parameters_after = tn_module_parameter_count(
        args->net);
    return status;
}
