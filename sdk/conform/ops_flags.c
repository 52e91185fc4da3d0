/* SPDX-License-Identifier: MIT
 *
 * Checks by calls that the flags of an operator are right: TN_OP_POINTWISE, TN_OP_READS,
 * TN_OP_RANDOM, TN_OPERAND_UPDATED. Programs that reorder, merge and capture calls rely on these
 * flags. The calls run on the reference, which computes every element in the same way, and on the
 * device "counted", which counts how often the host reads values. */
#include "ops.h"

#include <stdlib.h>
#include <string.h>

#include "reference.h"

/* ---- reads ----------------------------------------------------------------------------------- */

/* Runs backward from all outputs that require a gradient. */
static void go_back(const conform_case *one, tn_tensor *const *out)
{
    tn_tensor *roots[OPERANDS], *cotangents[OPERANDS];
    int64_t n = 0;

    for (int32_t i = 0; i < one->def->n_outputs; i++) {
        if (!tn_tensor_requires_grad(out[i]))
            continue;
        cotangents[n] = tn_tensor_full(tn_tensor_shape(out[i]), 0.5, tn_tensor_dtype(out[i]),
                                       tn_tensor_device(out[i]));
        roots[n] = out[i];
        if (cotangents[n++] == NULL)
            return;
    }
    if (n > 0)
        (void)tn_backward_from(roots, cotangents, n, NULL);
}

/* Runs a call and its backward pass on the device that counts reads by the host. */
static bool check_reads(subject *s, const conform_case *one, tn_dtype dtype)
{
    const tn_device *device = reference_counted();
    int64_t before;
    attempt a;

    if (device == NULL)
        return conform_fail(s->c, "the device \"counted\": %s", tn_error_text());
    if (conform_inputs(one, dtype, dtype, false, device, CONFORM_AS_GIVEN, true, &a) != TN_OK) {
        tn_error_clear();
        return true;
    }
    before = reference_reads();
    tn_device_begin(device);
    if (conform_operator(one, a.in, a.out) == TN_OK) {
        s->flags.counted = true;
        go_back(one, a.out);
    }
    tn_device_end();
    tn_error_clear();
    s->c->checks++;
    if (reference_reads() == before)
        return true;
    s->flags.reads = true;
    return (one->def->flags & TN_OP_READS) != 0 ||
           conform_fail(s->c,
                        "case %s: it reads values of tensors on the host; expected the flag "
                        "TN_OP_READS",
                        one->name);
}

/* ---- random ---------------------------------------------------------------------------------- */

bool conform_draws(const conform_case *one, tn_dtype dtype)
{
    uint64_t scope = tn_scope_begin(), before[3], after[3];
    const tn_device *reference = tn_device_find("reference");
    attempt a;
    bool draws;

    tn_random_seed(7);
    draws = tn_random_get_state(before) == TN_OK &&
            conform_inputs(one, dtype, dtype, false, reference, CONFORM_AS_GIVEN, false, &a) ==
                TN_OK &&
            conform_call(one, reference, 7, &a) == TN_OK && tn_random_get_state(after) == TN_OK &&
            memcmp(before, after, sizeof before) != 0;
    tn_error_clear();
    tn_scope_end(scope);
    return draws;
}

static bool check_random(subject *s, const conform_case *one)
{
    s->c->checks++;
    s->flags.draws |= one->draws;
    if (one->draws && !(one->def->flags & TN_OP_RANDOM))
        return conform_fail(s->c,
                            "case %s: it draws from the generator; expected the flag TN_OP_RANDOM",
                            one->name);
    return true;
}

/* ---- pointwise ------------------------------------------------------------------------------- */

/* A call whose inputs are broadcast to one shape, except inputs without dimensions. */
typedef struct points {
    const conform_case *one;
    int64_t shape[TN_MAX_DIMS];
    int32_t ndim;
    int64_t count;
    char *bytes[OPERANDS]; /* the elements of each input in row-major order */
    size_t size[OPERANDS]; /* bytes of an element; 0: this input is passed unchanged */
    tn_tensor *in[OPERANDS];
    char *out[OPERANDS];       /* bytes of the outputs */
    size_t out_size[OPERANDS]; /* bytes of an element of an output */
} points;

/* Computes the shape to which the inputs are broadcast. Returns false if it has fewer than two
 * elements. */
static bool find_shape(points *p, const attempt *a)
{
    for (int64_t i = 0; i < p->one->n_in; i++)
        if (a->in[i] != TN_NONE && tn_tensor_ndim(a->in[i]) > p->ndim)
            p->ndim = tn_tensor_ndim(a->in[i]);
    for (int32_t d = 0; d < p->ndim; d++)
        p->shape[d] = 1;
    for (int64_t i = 0; i < p->one->n_in; i++)
        for (int32_t d = 0; a->in[i] != TN_NONE && d < tn_tensor_ndim(a->in[i]); d++) {
            int64_t size = tn_tensor_size(a->in[i], d);

            if (size != 1)
                p->shape[p->ndim - tn_tensor_ndim(a->in[i]) + d] = size;
        }
    p->count = 1;
    for (int32_t d = 0; d < p->ndim; d++)
        p->count *= p->shape[d];
    return p->count >= 2;
}

/* Creates a tensor like input i, with these elements, on the reference. */
static tn_tensor *from_bytes(const points *p, int64_t i, const char *bytes)
{
    tn_ints shape = { p->shape, p->ndim };
    tn_dtype dtype = tn_tensor_dtype(p->in[i]);

    return tn_copy_(tn_tensor_empty(shape, dtype, tn_device_find("reference")),
                    tn_tensor_from(bytes, dtype, shape));
}

/* Calls the operator and stores the bytes of its outputs and the size of an element of each. Every
 * output has p->count elements. */
static bool call_points(const points *p, tn_tensor *const *in, char **out, size_t *size)
{
    tn_tensor *results[OPERANDS] = { NULL };
    bool fits = tn_op_call(p->one->op, in, p->one->n_in, p->one->options, results,
                           p->one->def->n_outputs) == TN_OK;

    for (int32_t k = 0; k < p->one->def->n_outputs && fits; k++) {
        out[k] = conform_bytes(results[k], &size[k]);
        fits = out[k] != NULL;
        size[k] /= (size_t)p->count;
    }
    tn_error_clear();
    return fits;
}

static void release(char **bytes)
{
    for (int64_t i = 0; i < OPERANDS; i++) {
        free(bytes[i]);
        bytes[i] = NULL;
    }
}

/* Broadcasts the inputs of a call to the common shape. */
static bool broadcast_inputs(points *p, const attempt *a)
{
    for (int64_t i = 0; i < p->one->n_in; i++) {
        size_t size = 0;

        p->in[i] = a->in[i];
        if (a->in[i] == TN_NONE || tn_tensor_ndim(a->in[i]) == 0)
            continue;
        p->bytes[i] = conform_bytes(tn_expand(a->in[i], (tn_ints){ p->shape, p->ndim }), &size);
        if (p->bytes[i] == NULL)
            return false;
        p->size[i] = size / (size_t)p->count;
        p->in[i] = from_bytes(p, i, p->bytes[i]);
        if (p->in[i] == NULL)
            return false;
    }
    return true;
}

/* Returns true if output k has the same elements in p->out and in `now`: in the opposite order if
 * `backward`; element `but` may differ. */
static bool same_points(const points *p, char *const *now, int32_t k, bool backward, int64_t but)
{
    size_t size = p->out_size[k];

    for (int64_t i = 0; i < p->count; i++) {
        int64_t to = backward ? p->count - 1 - i : i;

        if (i != but && memcmp(p->out[k] + (size_t)i * size, now[k] + (size_t)to * size, size) != 0)
            return false;
    }
    return true;
}

static bool not_pointwise(subject *s, const points *p, const char *words)
{
    return conform_fail(s->c, "case %s: TN_OP_POINTWISE: %s", p->one->name, words);
}

/* Inputs with their elements in the opposite order must give the results in the opposite order. */
static bool check_order(subject *s, const points *p)
{
    tn_tensor *in[OPERANDS];
    char *now[OPERANDS] = { NULL };
    size_t size[OPERANDS];
    bool well = true;

    for (int64_t i = 0; i < p->one->n_in; i++) {
        size_t each = p->size[i];
        char *turned = each > 0 ? malloc(each * (size_t)p->count) : NULL;

        in[i] = p->in[i];
        for (int64_t e = 0; turned != NULL && e < p->count; e++)
            memcpy(turned + (size_t)(p->count - 1 - e) * each, p->bytes[i] + (size_t)e * each,
                   each);
        if (each > 0)
            in[i] = turned != NULL ? from_bytes(p, i, turned) : NULL;
        free(turned);
        if (in[i] == NULL)
            return true;
    }
    if (call_points(p, in, now, size))
        for (int32_t k = 0; k < p->one->def->n_outputs && well; k++)
            well = same_points(p, now, k, true, -1) ||
                   not_pointwise(s, p,
                                 "the results depend on the places of the elements; expected the "
                                 "same results in the order of the inputs");
    release(now);
    return well;
}

/* Sets one element of input i to the value of another element. Only that element of the results may
 * change. */
static bool check_change(subject *s, const points *p, int64_t i)
{
    size_t each = p->size[i];
    char *bytes = malloc(each * (size_t)p->count), *now[OPERANDS] = { NULL };
    int64_t at = p->count / 2, other = 0;
    tn_tensor *in[OPERANDS];
    size_t size[OPERANDS];
    bool well = true;

    if (bytes == NULL)
        return conform_fail(s->c, "out of memory");
    memcpy(bytes, p->bytes[i], each * (size_t)p->count);
    while (other < p->count &&
           memcmp(bytes + (size_t)other * each, bytes + (size_t)at * each, each) == 0)
        other++;
    if (other < p->count) {
        memcpy(bytes + (size_t)at * each, p->bytes[i] + (size_t)other * each, each);
        memcpy(in, p->in, sizeof in);
        in[i] = from_bytes(p, i, bytes);
        if (in[i] != NULL && call_points(p, in, now, size))
            for (int32_t k = 0; k < p->one->def->n_outputs && well; k++)
                well = same_points(p, now, k, false, at) ||
                       not_pointwise(s, p,
                                     "an element of the inputs changed, and the results in other "
                                     "places, too");
    }
    free(bytes);
    release(now);
    return well;
}

static bool check_pointwise(subject *s, const conform_case *one, const attempt *a)
{
    points *p = calloc(1, sizeof *p);
    char *plain[OPERANDS] = { NULL };
    size_t size[OPERANDS];
    bool well = true;

    if (p == NULL)
        return conform_fail(s->c, "out of memory");
    p->one = one;
    for (int32_t k = 0; k < one->def->n_outputs && find_shape(p, a) && well; k++)
        well = tn_tensor_numel(a->out[k]) == p->count ||
               not_pointwise(s, p,
                             "an output does not have the shape to which the inputs are broadcast");
    if (well && p->count >= 2 && broadcast_inputs(p, a) &&
        call_points(p, p->in, p->out, p->out_size) && call_points(p, a->in, plain, size)) {
        s->c->checks++;
        for (int32_t k = 0; k < one->def->n_outputs && well; k++)
            well = (size[k] == p->out_size[k] && same_points(p, plain, k, false, -1)) ||
                   not_pointwise(s, p,
                                 "inputs that were broadcast before the call give other results");
        well = well && check_order(s, p);
        for (int64_t i = 0; i < one->n_in && well; i++)
            well = p->size[i] == 0 || check_change(s, p, i);
    }
    tn_error_clear();
    release(plain);
    release(p->bytes);
    release(p->out);
    free(p);
    return well;
}

/* ---- all flags ------------------------------------------------------------------------------- */

bool conform_flags_case(subject *s, const conform_case *one, tn_dtype dtype)
{
    const tn_device *reference = tn_device_find("reference");
    attempt a;
    bool well;

    if (!conform_is_own(s->c, one->def->name))
        return true;
    s->flags.cases++;
    well = check_random(s, one) && conform_autocast_case(s, one, dtype);
    if (well && (one->def->flags & TN_OP_POINTWISE) &&
        conform_inputs(one, dtype, dtype, false, reference, CONFORM_AS_GIVEN, false, &a) == TN_OK &&
        conform_call(one, reference, 7, &a) == TN_OK)
        well = check_pointwise(s, one, &a);
    tn_error_clear();
    return well && check_reads(s, one, dtype);
}

static bool has_updated(const tn_op_def *def)
{
    for (int32_t i = 0; i < def->n_inputs; i++)
        if (def->inputs[i].flags & TN_OPERAND_UPDATED)
            return true;
    return false;
}

/* Returns true if the operator's infer function says that this call only reads input i. */
static bool is_only_read(const conform_case *one, tn_tensor *const *in, int64_t i)
{
    const tn_view *views[OPERANDS] = { NULL };
    tn_meta out[OPERANDS];
    tn_infer ask = { TN_HEAD(tn_infer),
                     .op = one->def,
                     .in = views,
                     .n_in = one->n_in,
                     .options = one->options != NULL ? one->options : one->def->defaults,
                     .dtype = TN_DTYPE_AUTO,
                     .n_out = one->def->n_outputs,
                     .out = out };

    memset(out, 0, sizeof out);
    for (int64_t k = 0; k < one->n_in; k++)
        views[k] = in[k] != TN_NONE ? tn_tensor_view(in[k]) : NULL;
    if (one->def->infer(&ask) == TN_OK)
        return i < 64 && (ask.only_read >> i & 1) != 0;
    tn_error_clear();
    return false;
}

bool conform_updated(subject *s, const where_from *w, const attempt *a, int64_t i, bool changed)
{
    s->flags.updates |= changed;
    s->c->checks++;
    if (changed && is_only_read(w->one, a->in, i))
        return conform_fail(s->c,
                            "case %s: input %lld is updated, but infer says in only_read that this "
                            "call only reads it",
                            w->one->name, (long long)i);
    return true;
}

void conform_flags_end(subject *s, const tn_op_def *def)
{
    const struct conform_seen *seen = &s->flags;

    if (seen->cases == 0 || s->c->verdict != CONFORM_PASS)
        return;
    if ((def->flags & TN_OP_READS) && seen->counted && !seen->reads)
        conform_fail(s->c,
                     "TN_OP_READS: none of the %lld cases reads values on the host; expected "
                     "one that does, or no such flag",
                     (long long)seen->cases);
    else if ((def->flags & TN_OP_RANDOM) && !seen->draws)
        conform_fail(s->c,
                     "TN_OP_RANDOM: none of the %lld cases draws from the generator; expected "
                     "one that does, or no such flag",
                     (long long)seen->cases);
    else if (has_updated(def) && !seen->updates)
        conform_fail(s->c,
                     "TN_OPERAND_UPDATED: none of the %lld cases updates an input; expected "
                     "one that does, or no such flag",
                     (long long)seen->cases);
}
