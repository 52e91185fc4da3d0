/* SPDX-License-Identifier: MIT
 *
 * Which module reads the channels that another one computes. No operator is known by name here:
 * the network is called with NaN in some channels of the results of one module, and the modules
 * that read NaN read these channels. To tell the channels apart, each has a word of its own with as
 * many ones as all others, and in call k those channels are NaN whose word has bit k. The calls in
 * which a channel of a module reads NaN make a word again: that of the channel that it is, or, with
 * more ones, of several channels that are mixed.
 */
#include "network_hooks.h"

#include <math.h>
#include <string.h>

/* ---- groups ---------------------------------------------------------------------------------- */

int64_t network_root(const network *n, int64_t element)
{
    while (n->elements[element].parent != element)
        element = n->elements[element].parent;
    return element;
}

void network_lock(network *n, int64_t element, uint8_t lock, int64_t because)
{
    network_element *root = &n->elements[network_root(n, element)];

    if (lock > root->lock) {
        root->lock = lock;
        root->because = because;
    }
}

void network_join(network *n, int64_t a, int64_t b)
{
    int64_t one = network_root(n, a), other = network_root(n, b);
    const network_element *gone = &n->elements[other];

    if (one == other)
        return;
    n->elements[other].parent = one;
    network_lock(n, one, gone->lock, gone->because);
    /* shorter ways for the next searches */
    n->elements[a].parent = one;
    n->elements[b].parent = one;
}

tn_status network_not_known(const network *n, int64_t element, const char *what)
{
    const network_element *root = &n->elements[network_root(n, element)];
    const network_leaf *own = &n->leaves[n->elements[element].leaf];
    const network_leaf *other = &n->leaves[root->because];

    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   "\"%s\" (%s): channel %lld cannot be %s, because \"%s\" (%s) uses it in a way "
                   "that is not known: %s",
                   own->path, tn_module_type(own->module), (long long)(element - own->out_at), what,
                   other->path, tn_module_type(other->module),
                   other->known ? "it mixes the channels, or reads them in another dimension"
                                : other->why);
}

/* ---- probes ---------------------------------------------------------------------------------- */

/* What all probes of one module have found. */
struct findings {
    uint32_t *word; /* for each element: bits of the calls in which it read NaN */
    uint32_t *code; /* for each channel of the module: its word; in ascending order */
    uint8_t *hit, *read, *chosen;
    bool output; /* NaN reached the results of the network */
};

static void free_findings(struct findings *f)
{
    tn_free(f->word);
    tn_free(f->code);
    tn_free(f->hit);
    tn_free(f->read);
    tn_free(f->chosen);
}

static tn_status make_findings(const network *n, struct findings *f)
{
    int64_t most = 1;

    for (int64_t i = 0; i < n->n_leaves; i++)
        most = n->leaves[i].out > most ? n->leaves[i].out : most;
    f->word = tn_calloc((size_t)n->n_elements + 1, sizeof *f->word);
    f->code = tn_calloc((size_t)most, sizeof *f->code);
    f->hit = tn_calloc((size_t)n->n_elements + 1, 1);
    f->read = tn_calloc((size_t)n->n_leaves + 1, 1);
    f->chosen = tn_calloc((size_t)most, 1);
    return f->word != NULL && f->code != NULL && f->hit != NULL && f->read != NULL &&
                   f->chosen != NULL
               ? TN_OK
               : TN_ERR_MEMORY;
}

static void clear_findings(const network *n, struct findings *f)
{
    memset(f->word, 0, (size_t)n->n_elements * sizeof *f->word);
    memset(f->read, 0, (size_t)n->n_leaves);
    f->output = false;
}

/* Calls the network once with NaN. f->hit has what this call found. */
static tn_status probe(network *n, struct findings *f, int64_t from, const uint8_t *chosen,
                       tn_tensor *const *inputs)
{
    network_probe now = { from, chosen, f->hit, f->read };
    uint64_t scope = tn_scope_begin();
    tn_tensor **outputs = NULL;
    int64_t count = 0;
    uint8_t any;
    tn_status status;

    memset(f->hit, 0, (size_t)n->n_elements);
    n->probe = &now;
    status = network_call(n, inputs, &outputs, &count);
    n->probe = NULL;
    for (int64_t i = 0; i < count && status == TN_OK && !f->output; i++) {
        double *values = network_read(outputs[i]);

        any = 0;
        for (int64_t k = 0; values != NULL && k < tn_tensor_numel(outputs[i]) && !any; k++)
            any = isnan(values[k]);
        f->output |= any;
        status = values != NULL ? TN_OK : tn_error_last_code();
        tn_free(values);
    }
    tn_free(outputs);
    tn_scope_end(scope);
    return status;
}

/* Writes a word for each channel, all with the same number of ones, in ascending order. Returns the
 * number of bits of the words. */
static int make_code(uint32_t *code, int64_t count)
{
    int bits = 1;
    uint64_t choices = 1; /* bits over bits / 2 */

    while (choices < (uint64_t)count && bits < 31) {
        bits++;
        choices = bits % 2 == 0 ? choices * 2 : choices * (uint64_t)bits / (uint64_t)(bits / 2 + 1);
    }
    uint32_t word = (UINT32_C(1) << (bits > 1 ? bits / 2 : 1)) - 1;
    for (int64_t i = 0; i < count; i++) {
        uint32_t lowest = word & (~word + 1), carried = word + lowest;

        code[i] = word;
        word = carried | ((word ^ carried) / lowest >> 2); /* the next one with as many ones */
    }
    return bits;
}

/* Returns the channel with a word; -1 if there is none. */
static int64_t channel_of(const uint32_t *code, int64_t count, uint32_t word)
{
    int64_t low = 0, high = count;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (code[middle] < word)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && code[low] == word ? low : -1;
}

static tn_status probe_channels(network *n, struct findings *f, int64_t from)
{
    const network_leaf *leaf = &n->leaves[from];
    int bits = make_code(f->code, leaf->out);
    tn_status status = TN_OK;

    clear_findings(n, f);
    for (int bit = 0; bit < bits && status == TN_OK; bit++) {
        for (int64_t c = 0; c < leaf->out; c++)
            f->chosen[c] = f->code[c] >> bit & 1;
        status = probe(n, f, from, f->chosen, n->inputs);
        for (int64_t e = 0; e < n->n_elements && status == TN_OK; e++)
            f->word[e] |= (uint32_t)f->hit[e] << bit;
    }
    return status;
}

/* ---- conclusions ----------------------------------------------------------------------------- */

static void lock_all(network *n, const network_leaf *leaf, uint8_t lock, int64_t because)
{
    for (int64_t c = 0; c < leaf->out; c++)
        network_lock(n, leaf->out_at + c, lock, because);
}

/* Joins each channel that a module read with the channel that it is, or locks both. */
static void conclude(network *n, const struct findings *f, int64_t from)
{
    const network_leaf *leaf = &n->leaves[from];

    for (int64_t e = 0; e < n->n_elements; e++) {
        int64_t reader = n->elements[e].leaf, channel;

        if (f->word[e] == 0)
            continue;
        channel = channel_of(f->code, leaf->out, f->word[e]);
        if (channel >= 0) {
            network_join(n, leaf->out_at + channel, e);
        } else {
            network_lock(n, e, NETWORK_UNKNOWN, reader);
            lock_all(n, leaf, NETWORK_UNKNOWN, reader);
        }
    }
    for (int64_t i = 0; i < n->n_leaves; i++)
        if (f->read[i] == 2 || (f->read[i] != 0 && !n->leaves[i].known))
            lock_all(n, leaf, NETWORK_UNKNOWN, i);
    if (f->output)
        lock_all(n, leaf, NETWORK_OUTPUT, from);
}

/* Locks what reads a module whose channels are not known or, from -1, the inputs. */
static tn_status probe_whole(network *n, struct findings *f, int64_t from, tn_tensor *const *inputs)
{
    tn_status status = probe(n, f, from, NULL, inputs);

    for (int64_t e = 0; e < n->n_elements && status == TN_OK; e++)
        if (f->hit[e])
            network_lock(n, e, from < 0 ? NETWORK_INPUT : NETWORK_UNKNOWN, from < 0 ? 0 : from);
    return status;
}

static tn_status probe_inputs(network *n, struct findings *f)
{
    tn_tensor **inputs = tn_calloc((size_t)n->n_inputs + 1, sizeof *inputs);
    tn_status status = inputs != NULL ? TN_OK : TN_ERR_MEMORY;
    uint64_t scope = tn_scope_begin();

    for (int64_t i = 0; i < n->n_inputs && status == TN_OK; i++) {
        inputs[i] = n->inputs[i];
        if (inputs[i] == TN_NONE || (TN_BIT(tn_tensor_dtype(inputs[i])) & TN_MASK_FLOAT) == 0)
            continue;
        inputs[i] = tn_tensor_full(tn_tensor_shape(inputs[i]), NAN, tn_tensor_dtype(inputs[i]),
                                   tn_tensor_device(inputs[i]));
        status = inputs[i] != NULL ? TN_OK : tn_error_last_code();
    }
    if (status == TN_OK)
        status = probe_whole(n, f, -1, inputs);
    tn_scope_end(scope);
    tn_free(inputs);
    return status;
}

/* Locks channels that nothing computes, or nothing reads. */
static tn_status lock_ends(network *n)
{
    uint8_t *ends = tn_calloc((size_t)n->n_elements + 1, 1);

    if (ends == NULL)
        return TN_ERR_MEMORY;
    for (int64_t e = 0; e < n->n_elements; e++) {
        const network_leaf *leaf = &n->leaves[n->elements[e].leaf];

        if (!leaf->same)
            ends[network_root(n, e)] |= e >= leaf->in_at && e < leaf->in_at + leaf->in ? 1 : 2;
    }
    for (int64_t e = 0; e < n->n_elements; e++)
        if (n->elements[e].parent == e && ends[e] != 3)
            network_lock(n, e, (ends[e] & 2) != 0 ? NETWORK_UNREAD : NETWORK_INPUT, 0);
    tn_free(ends);
    return TN_OK;
}

tn_status network_flow(network *n)
{
    struct findings f = { 0 };
    tn_status status = make_findings(n, &f);

    if (status == TN_OK)
        status = probe_inputs(n, &f);
    for (int64_t i = 0; i < n->n_leaves && status == TN_OK; i++) {
        const network_leaf *leaf = &n->leaves[i];

        if (!leaf->known) {
            status = probe_whole(n, &f, i, n->inputs);
        } else if (!leaf->same && leaf->out > 0) {
            status = probe_channels(n, &f, i);
            if (status == TN_OK)
                conclude(n, &f, i);
        }
    }
    if (status == TN_OK)
        status = lock_ends(n);
    free_findings(&f);
    return status;
}
