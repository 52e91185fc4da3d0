/* SPDX-License-Identifier: MIT
 *
 * Which module reads the channels that another one computes. This file knows no operator by name.
 * It calls the network with NaN in the results of modules: a module that reads NaN reads these
 * results. In the first calls, all results of one module are NaN, which shows which modules read
 * it. Later calls find the single channels, for several modules at once if no module reads two of
 * them. Each channel of a module gets its own code word; all code words have the same number of
 * ones. In call k, the channels are NaN whose code word has bit k. For a channel of a reader, the
 * calls in which it is NaN form a word again. If it is a code word, the reader reads that channel;
 * if it has more ones, the reader mixes several channels. */
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
    /* makes the paths to the root shorter for the next searches */
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

/* What the probes have found. */
struct findings {
    uint8_t *from;   /* for each leaf: how its results are spoiled in the next call */
    uint8_t *chosen; /* for each element of a result: it is NaN in the next call */
    uint8_t *hit;    /* for each element of an argument: it read NaN in the last call */
    uint8_t *read;   /* for each leaf: it read NaN in the last call; 2: where no channel is */
    bool output;     /* NaN reached the results of the network in the last call */
    uint64_t **who;  /* for each leaf: bits of the elements that read its results, or NULL */
    uint32_t *code;  /* for each element of a result: its word; in ascending order of the leaf */
    uint32_t *word;  /* for each element of an argument: bits of the calls in which it read NaN */
};

static void free_findings(const network *n, struct findings *f)
{
    for (int64_t i = 0; f->who != NULL && i < n->n_leaves; i++)
        tn_free(f->who[i]);
    tn_free(f->who);
    tn_free(f->word);
    tn_free(f->code);
    tn_free(f->hit);
    tn_free(f->read);
    tn_free(f->from);
    tn_free(f->chosen);
}

static tn_status make_findings(const network *n, struct findings *f)
{
    size_t elements = (size_t)n->n_elements + 1, leaves = (size_t)n->n_leaves + 1;

    f->word = tn_calloc(elements, sizeof *f->word);
    f->code = tn_calloc(elements, sizeof *f->code);
    f->who = tn_calloc(leaves, sizeof *f->who);
    f->hit = tn_calloc(elements, 1);
    f->chosen = tn_calloc(elements, 1);
    f->read = tn_calloc(leaves, 1);
    f->from = tn_calloc(leaves, 1);
    return f->word != NULL && f->code != NULL && f->who != NULL && f->hit != NULL &&
                   f->chosen != NULL && f->read != NULL && f->from != NULL
               ? TN_OK
               : TN_ERR_MEMORY;
}

static bool is_read_by(const struct findings *f, int64_t leaf, int64_t element)
{
    return (f->who[leaf][element / 64] >> (element % 64) & 1) != 0;
}

static tn_status has_nan(tn_tensor *tensor, bool *has)
{
    double *values = network_read(tensor);

    for (int64_t i = 0; values != NULL && i < tn_tensor_numel(tensor) && !*has; i++)
        *has = isnan(values[i]);
    tn_free(values);
    return values != NULL ? TN_OK : tn_error_last_code();
}

/* Calls the network once with NaN, and records which channels each module reads. */
static tn_status probe(network *n, struct findings *f, tn_tensor *const *inputs)
{
    network_probe now = { f->from, f->chosen, f->hit, f->read };
    uint64_t scope = tn_scope_begin();
    tn_tensor **outputs = NULL;
    int64_t count = 0;
    tn_status status;

    memset(f->hit, 0, (size_t)n->n_elements);
    memset(f->read, 0, (size_t)n->n_leaves);
    f->output = false;
    n->probe = &now;
    status = network_call(n, inputs, &outputs, &count);
    n->probe = NULL;
    for (int64_t i = 0; i < count && status == TN_OK && !f->output; i++)
        status = has_nan(outputs[i], &f->output);
    tn_free(outputs);
    tn_scope_end(scope);
    return status;
}

/* Writes a word for each channel, all with the same number of ones, in ascending order. Returns the
 * number of bits of the words. */
static int make_code(uint32_t *code, int64_t count)
{
    int bits = 1;
    uint64_t choices = 1; /* the number of words of `bits` bits, bits / 2 of which are ones */

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

/* ---- readers of a module --------------------------------------------------------------------- */

static void lock_all(network *n, const network_leaf *leaf, uint8_t lock, int64_t because)
{
    for (int64_t c = 0; c < leaf->out; c++)
        network_lock(n, leaf->out_at + c, lock, because);
}

static bool has_channels(const network_leaf *leaf)
{
    return leaf->known && !leaf->same && leaf->out > 0;
}

/* Calls the network with NaN in all results of a module, and locks the channels that must stay
 * because of what this shows. */
static tn_status probe_whole(network *n, struct findings *f, int64_t from)
{
    const network_leaf *leaf = &n->leaves[from];
    tn_status status;

    f->from[from] = NETWORK_WHOLE;
    status = probe(n, f, n->inputs);
    f->from[from] = NETWORK_CLEAN;
    if (status != TN_OK)
        return status;
    if (!has_channels(leaf)) {
        for (int64_t e = 0; e < n->n_elements; e++)
            if (f->hit[e])
                network_lock(n, e, NETWORK_UNKNOWN, from);
        return TN_OK;
    }
    f->who[from] = tn_calloc((size_t)n->n_elements / 64 + 1, sizeof **f->who);
    if (f->who[from] == NULL)
        return TN_ERR_MEMORY;
    for (int64_t e = 0; e < n->n_elements; e++)
        f->who[from][e / 64] |= (uint64_t)(f->hit[e] != 0) << (e % 64);
    for (int64_t i = 0; i < n->n_leaves; i++)
        if (f->read[i] == 2 || (f->read[i] != 0 && !n->leaves[i].known))
            lock_all(n, leaf, NETWORK_UNKNOWN, i);
    if (f->output)
        lock_all(n, leaf, NETWORK_OUTPUT, from);
    return TN_OK;
}

/* ---- channels -------------------------------------------------------------------------------- */

/* Modules that are tested in the same calls: no module reads two of them. */
struct together {
    int64_t *leaves; /* all that have channels, the ones with most channels first */
    int64_t n_leaves, n_left;
    uint8_t *done;
    uint64_t *who; /* the elements that read one of the modules of the current group */
};

static bool disjoint(const uint64_t *a, const uint64_t *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if ((a[i] & b[i]) != 0)
            return false;
    return true;
}

/* Marks the modules of the next group in f->from. */
static void next_group(const network *n, struct findings *f, struct together *t)
{
    int64_t words = n->n_elements / 64 + 1;

    memset(t->who, 0, (size_t)words * sizeof *t->who);
    for (int64_t i = 0; i < t->n_leaves; i++) {
        int64_t leaf = t->leaves[i];

        f->from[leaf] = NETWORK_CLEAN;
        if (t->done[leaf] || !disjoint(t->who, f->who[leaf], words))
            continue;
        for (int64_t k = 0; k < words; k++)
            t->who[k] |= f->who[leaf][k];
        f->from[leaf] = NETWORK_CHOSEN;
        t->done[leaf] = 1;
        t->n_left--;
    }
}

/* Joins each channel that a module read with the channel that it is, or locks both. */
static void conclude(network *n, const struct findings *f, int64_t from)
{
    const network_leaf *leaf = &n->leaves[from];

    for (int64_t e = 0; e < n->n_elements; e++) {
        int64_t channel;

        if (!is_read_by(f, from, e))
            continue;
        channel = channel_of(f->code + leaf->out_at, leaf->out, f->word[e]);
        if (channel >= 0) {
            network_join(n, leaf->out_at + channel, e);
        } else {
            network_lock(n, e, NETWORK_UNKNOWN, n->elements[e].leaf);
            lock_all(n, leaf, NETWORK_UNKNOWN, n->elements[e].leaf);
        }
    }
}

static tn_status probe_group(network *n, struct findings *f, const struct together *t)
{
    tn_status status = TN_OK;
    int bits = 0;

    memset(f->word, 0, (size_t)n->n_elements * sizeof *f->word);
    for (int64_t i = 0; i < t->n_leaves; i++) {
        const network_leaf *leaf = &n->leaves[t->leaves[i]];

        if (f->from[t->leaves[i]] == NETWORK_CHOSEN) {
            int own = make_code(f->code + leaf->out_at, leaf->out);
            bits = own > bits ? own : bits;
        }
    }
    for (int bit = 0; bit < bits && status == TN_OK; bit++) {
        for (int64_t e = 0; e < n->n_elements; e++)
            f->chosen[e] = f->code[e] >> bit & 1;
        status = probe(n, f, n->inputs);
        for (int64_t e = 0; e < n->n_elements && status == TN_OK; e++)
            f->word[e] |= (uint32_t)f->hit[e] << bit;
    }
    for (int64_t i = 0; i < t->n_leaves && status == TN_OK; i++)
        if (f->from[t->leaves[i]] == NETWORK_CHOSEN)
            conclude(n, f, t->leaves[i]);
    return status;
}

static tn_status probe_channels(network *n, struct findings *f)
{
    struct together t = { tn_calloc((size_t)n->n_leaves + 1, sizeof *t.leaves), 0, 0,
                          tn_calloc((size_t)n->n_leaves + 1, 1),
                          tn_calloc((size_t)n->n_elements / 64 + 1, sizeof *t.who) };
    tn_status status = t.leaves != NULL && t.done != NULL && t.who != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < n->n_leaves && status == TN_OK; i++)
        if (f->who[i] != NULL) {
            int64_t at = t.n_leaves++;

            for (; at > 0 && n->leaves[t.leaves[at - 1]].out < n->leaves[i].out; at--)
                t.leaves[at] = t.leaves[at - 1];
            t.leaves[at] = i;
        }
    t.n_left = t.n_leaves;
    while (t.n_left > 0 && status == TN_OK) {
        next_group(n, f, &t);
        status = probe_group(n, f, &t);
    }
    memset(f->from, NETWORK_CLEAN, (size_t)n->n_leaves);
    tn_free(t.leaves);
    tn_free(t.done);
    tn_free(t.who);
    return status;
}

/* ---- the network ----------------------------------------------------------------------------- */

/* Locks what reads the inputs. */
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
        status = probe(n, f, inputs);
    for (int64_t e = 0; e < n->n_elements && status == TN_OK; e++)
        if (f->hit[e])
            network_lock(n, e, NETWORK_INPUT, 0);
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
    for (int64_t i = 0; i < n->n_leaves && status == TN_OK; i++)
        if (!n->leaves[i].known || has_channels(&n->leaves[i]))
            status = probe_whole(n, &f, i);
    if (status == TN_OK)
        status = probe_channels(n, &f);
    if (status == TN_OK)
        status = lock_ends(n);
    free_findings(n, &f);
    return status;
}
