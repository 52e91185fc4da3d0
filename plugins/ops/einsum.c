/* SPDX-License-Identifier: MIT
 *
 * Sums of products that an equation describes. Operands are combined one after another, each time
 * with one batched matrix product. */
#include "common.h"

/* A dimension is identified by the number of its letter. Dimensions under "..." have the numbers
 * after all letters, counted from the last dimension, so that they are aligned at the right for
 * broadcasting. */
enum { LETTERS = 52, NAMES = LETTERS + TN_MAX_DIMS, OPERANDS = 64 };

typedef struct equation {
    int32_t count[OPERANDS]; /* number of dimensions of each operand */
    int8_t of[OPERANDS][TN_MAX_DIMS];
    int32_t dots[OPERANDS]; /* position of "..." in each operand, -1 if absent */
    int32_t open;           /* the largest number of dimensions that "..." has in an operand */
    int64_t n;
    int8_t result[TN_MAX_DIMS];
    int32_t n_result;
    int64_t size[NAMES]; /* size of each dimension, -1 if its letter does not occur */
} equation;

static int letter_of(char c)
{
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
}

static tn_status malformed(const char *text, const char *why)
{
    return tn_fail(TN_ERR_RUNTIME, "equation %q: %s", text, why);
}

static tn_status add_to_result(const char *text, equation *e, int name)
{
    if (e->n_result == TN_MAX_DIMS)
        return malformed(text, "too many dimensions in the result; expected at most 16");
    e->result[e->n_result++] = (int8_t)name;
    return TN_OK;
}

static tn_status add_open(const char *text, equation *e)
{
    tn_status status = TN_OK;

    for (int32_t k = e->open; k-- > 0 && status == TN_OK;)
        status = add_to_result(text, e, LETTERS + k);
    return status;
}

static bool is_dots(const char *at)
{
    return at[0] == '.' && at[1] == '.' && at[2] == '.';
}

static tn_status implied(const char *text, equation *e)
{
    int times[NAMES] = { 0 };
    tn_status status = add_open(text, e);

    for (int64_t i = 0; i < e->n; i++)
        for (int32_t d = 0; d < e->count[i]; d++)
            times[e->of[i][d]]++;
    /* Capitals come before small letters, as in PyTorch. */
    for (int k = 0; k < LETTERS && status == TN_OK; k++) {
        int letter = k < 26 ? k + 26 : k - 26;

        if (times[letter] == 1)
            status = add_to_result(text, e, letter);
    }
    return status;
}

/* Numbers the dimensions under "...": those that an operand has beyond its letters. */
static void open_dots(equation *e, const int32_t *ndim)
{
    for (int64_t i = 0; i < e->n; i++) {
        int32_t more = ndim[i] - e->count[i], at = e->dots[i];

        if (at < 0 || more <= 0)
            continue;
        memmove(e->of[i] + at + more, e->of[i] + at, (size_t)(e->count[i] - at));
        for (int32_t k = 0; k < more; k++)
            e->of[i][at + k] = (int8_t)(LETTERS + more - 1 - k);
        e->count[i] += more;
        if (e->open < more)
            e->open = more;
    }
}

static tn_status parse_result(const char *text, const char *at, bool *seen, equation *e)
{
    tn_status status = TN_OK;
    bool dots = false;

    for (; *at != '\0' && status == TN_OK; at++) {
        int letter = letter_of(*at);

        if (*at == ' ')
            continue;
        if (is_dots(at) && !dots) {
            dots = true;
            at += 2;
            status = add_open(text, e);
            continue;
        }
        if (letter < 0 || !seen[letter])
            return malformed(text, "wrong result; expected letters of the operands and ..., each "
                                   "once");
        seen[letter] = false;
        status = add_to_result(text, e, letter);
    }
    return status;
}

/* Parses the equation. `ndim` has the number of dimensions of each operand, at most of the first
 * 64. */
static tn_status parse(const char *text, int64_t n, const int32_t *ndim, equation *e)
{
    const char *at = text != NULL ? text : "";
    bool seen[LETTERS] = { false };

    memset(e, 0, sizeof *e);
    for (int k = 0; k < NAMES; k++)
        e->size[k] = -1;
    for (int i = 0; i < OPERANDS; i++)
        e->dots[i] = -1;
    e->n = 1;
    for (; *at != '\0' && *at != '-'; at++) {
        int64_t i = e->n - 1;

        if (*at == ' ')
            continue;
        if (*at == ',') {
            if (e->n++ == OPERANDS)
                return malformed(text, "too many operands; expected at most 64");
            continue;
        }
        if (is_dots(at)) {
            if (e->dots[i] >= 0)
                return malformed(text, "... occurs twice in an operand; expected it once");
            e->dots[i] = e->count[i];
            at += 2;
            continue;
        }
        if (letter_of(*at) < 0)
            return tn_fail(
                TN_ERR_RUNTIME,
                "equation %q: unknown character, got %q; expected letters, commas, ... and "
                "->",
                text, (char[]){ *at, '\0' });
        if (e->count[i] == TN_MAX_DIMS)
            return malformed(text, "too many dimensions in an operand; expected at most 16");
        e->of[i][e->count[i]++] = (int8_t)letter_of(*at);
        seen[letter_of(*at)] = true;
    }
    if (e->n != n)
        return tn_fail(TN_ERR_RUNTIME,
                       "equation %q: wrong number of operands, got %lld; expected %lld", text,
                       (long long)n, (long long)e->n);
    open_dots(e, ndim);
    if (*at == '\0')
        return implied(text, e);
    if (at[1] != '>')
        return malformed(text, "'-' without '>'; expected ->");
    return parse_result(text, at + 2, seen, e);
}

static tn_status differs(const char *text, int name, int64_t a, int64_t b, int64_t operand)
{
    char letter[4] = { 0 };

    if (name >= LETTERS)
        memset(letter, '.', 3);
    else
        letter[0] = (char)(name < 26 ? 'a' + name : 'A' + name - 26);
    return tn_fail(
        TN_ERR_RUNTIME,
        "equation %q: %s: different sizes, got %lld and %lld (operand %lld); expected one size",
        text, letter, (long long)a, (long long)b, (long long)operand);
}

static tn_status measure(const char *text, equation *e, int64_t i, tn_ints shape)
{
    if (shape.count != e->count[i])
        return tn_fail(
            TN_ERR_RUNTIME,
            "equation %q: operand %lld: wrong number of letters, got %d; expected %lld, one for "
            "each dimension",
            text, (long long)i, (int)e->count[i], (long long)shape.count);
    for (int32_t d = 0; d < e->count[i]; d++) {
        int name = e->of[i][d];
        int64_t *size = &e->size[name];

        for (int32_t k = 0; k < d; k++) /* the same letter twice: a diagonal */
            if (e->of[i][k] == name && shape.at[k] != shape.at[d])
                return differs(text, name, shape.at[k], shape.at[d], i);
        if (*size >= 0 && *size != 1 && shape.at[d] != 1 && *size != shape.at[d])
            return differs(text, name, *size, shape.at[d], i);
        if (*size < 0 || *size == 1)
            *size = shape.at[d];
    }
    return TN_OK;
}

static tn_status einsum_infer(tn_infer *infer)
{
    const tn_einsum_options *o = infer->options;
    int32_t ndim[OPERANDS] = { 0 };
    equation e;
    tn_status status;

    for (int64_t i = 0; i < infer->n_in && i < OPERANDS; i++)
        ndim[i] = infer->in[i]->ndim;
    status = parse(o->equation, infer->n_in, ndim, &e);
    for (int64_t i = 0; i < infer->n_in && status == TN_OK; i++) {
        status = measure(o->equation, &e, i, tn__common_shape(infer->in[i]));
        if (tn_view_dtype(infer->in[i]) != tn_view_dtype(infer->in[0]))
            return tn_fail(
                TN_ERR_RUNTIME,
                "operand %lld: wrong dtype, got %s; expected %s as in operand 0: tn_cast one of "
                "them",
                (long long)i, tn_dtype_name(tn_view_dtype(infer->in[i])),
                tn_dtype_name(tn_view_dtype(infer->in[0])));
    }
    infer->out[0].dtype = tn_view_dtype(infer->in[0]);
    infer->out[0].ndim = e.n_result;
    for (int32_t d = 0; d < e.n_result && status == TN_OK; d++)
        infer->out[0].shape[d] = e.size[e.result[d]];
    return status;
}

/* A tensor and, for each dimension, the number of its letter as in struct equation. */
typedef struct named {
    tn_tensor *x;
    int8_t of[TN_MAX_DIMS];
    int32_t count;
} named;

static int32_t where_is(const named *x, int letter)
{
    for (int32_t d = 0; d < x->count; d++)
        if (x->of[d] == letter)
            return d;
    return -1;
}

/* Replaces dimensions with the same letter by their diagonal. */
static void single(named *x)
{
    for (int32_t a = 0; a < x->count; a++)
        for (int32_t b = a + 1; b < x->count; b++) {
            int8_t letter = x->of[a];

            if (x->of[b] != letter)
                continue;
            x->x = tn_diagonal(x->x, 0, a, b);
            memmove(x->of + b, x->of + b + 1, (size_t)(x->count - b - 1));
            memmove(x->of + a, x->of + a + 1, (size_t)(x->count - a - 1));
            x->count--;
            x->of[x->count - 1] = letter;
            a = -1;
            break;
        }
}

/* Sums over the dimensions whose letters are not needed. */
static void forget(named *x, const bool *needed)
{
    int64_t dims[TN_MAX_DIMS];
    int32_t kept = 0, gone = 0, count = x->count;

    for (int32_t d = 0; d < count; d++) {
        if (needed[x->of[d]])
            x->of[kept++] = x->of[d];
        else
            dims[gone++] = d;
    }
    x->count = kept;
    if (gone > 0 && x->x != NULL) {
        tn_dtype dtype = tn_tensor_dtype(x->x);

        x->x = tn_cast(tn_sum(x->x, ((tn_ints){ dims, gone })), dtype);
    }
}

/* Permutes the dimensions of x into three groups of letters and merges each group into one
 * dimension. */
static tn_tensor *grouped(const named *x, const named *groups, const int64_t *size)
{
    int64_t order[TN_MAX_DIMS], shape[3] = { 1, 1, 1 };
    int32_t at = 0;

    for (int g = 0; g < 3; g++)
        for (int32_t k = 0; k < groups[g].count; k++) {
            order[at++] = where_is(x, groups[g].of[k]);
            shape[g] = tn__common_times(shape[g], size[groups[g].of[k]]);
        }
    return tn_reshape(tn_permute(x->x, (tn_ints){ order, at }), (tn_ints){ shape, 3 });
}

static void add_letter(named *to, int8_t letter)
{
    to->of[to->count++] = letter;
}

/* Replaces a by the product of a and b. Letters that occur in both become batch dimensions if they
 * are needed later; if not, the matrix product sums over them. */
static tn_status together(named *a, const named *b, const bool *needed, const int64_t *size)
{
    named batch = { .count = 0 }, summed = { .count = 0 }, left = { .count = 0 },
          right = { .count = 0 };
    int64_t shape[TN_MAX_DIMS];
    int32_t at = 0;
    tn_tensor *y;

    for (int32_t d = 0; d < a->count; d++)
        add_letter(where_is(b, a->of[d]) < 0 ? &left
                   : needed[a->of[d]]        ? &batch
                                             : &summed,
                   a->of[d]);
    for (int32_t d = 0; d < b->count; d++)
        if (where_is(a, b->of[d]) < 0)
            add_letter(&right, b->of[d]);
    if (batch.count + left.count + right.count > TN_MAX_DIMS)
        return tn_fail(
            TN_ERR_NOT_IMPLEMENTED,
            "einsum: intermediate product: too many dimensions, got %d; expected at most %d; "
            "another order of the operands may help",
            (int)(batch.count + left.count + right.count), TN_MAX_DIMS);
    y = tn_bmm(grouped(a, (named[]){ batch, left, summed }, size),
               grouped(b, (named[]){ batch, summed, right }, size));
    a->count = 0;
    for (int g = 0; g < 3; g++) {
        const named *group = g == 0 ? &batch : g == 1 ? &left : &right;

        for (int32_t k = 0; k < group->count; k++) {
            a->of[a->count++] = group->of[k];
            shape[at++] = size[group->of[k]];
        }
    }
    a->x = tn_reshape(y, (tn_ints){ shape, at });
    return a->x != NULL ? TN_OK : tn_error_last_code();
}

/* Removes dimensions of size 1 that broadcast to a larger size. */
static tn_tensor *narrowed(tn_tensor *x, equation *e, int64_t i)
{
    for (int32_t d = e->count[i]; d-- > 0 && x != NULL;) {
        if (tn_tensor_shape(x).at[d] != 1 || e->size[e->of[i][d]] == 1)
            continue;
        x = tn_select(x, d, 0);
        memmove(e->of[i] + d, e->of[i] + d + 1, (size_t)(e->count[i] - d - 1));
        e->count[i]--;
    }
    return x;
}

static tn_status einsum_decompose(const tn_decompose *call)
{
    const char *text = ((const tn_einsum_options *)call->options)->equation;
    named all = { .x = NULL }, next = { .x = NULL };
    int64_t order[TN_MAX_DIMS];
    int32_t ndim[OPERANDS] = { 0 };
    tn_tensor *operand[OPERANDS];
    equation e;
    tn_status status;

    for (int64_t i = 0; i < call->n_in && i < OPERANDS; i++)
        ndim[i] = tn_tensor_ndim(call->in[i]);
    status = parse(text, call->n_in, ndim, &e);
    for (int64_t i = 0; i < call->n_in && status == TN_OK; i++)
        status = measure(text, &e, i, tn_tensor_shape(call->in[i]));
    for (int64_t i = 0; i < call->n_in && status == TN_OK; i++) {
        operand[i] = narrowed(call->in[i], &e, i);
        status = operand[i] != NULL ? TN_OK : tn_error_last_code();
    }
    for (int64_t i = 0; i < call->n_in && status == TN_OK; i++) {
        bool needed[NAMES] = { false };

        for (int32_t d = 0; d < e.n_result; d++)
            needed[e.result[d]] = true;
        for (int64_t k = i + 1; k < call->n_in; k++)
            for (int32_t d = 0; d < e.count[k]; d++)
                needed[e.of[k][d]] = true;
        next = (named){ .x = operand[i], .count = e.count[i] };
        memcpy(next.of, e.of[i], sizeof next.of);
        single(&next);
        /* Letters of both operands are kept until the product. */
        for (int32_t d = 0; d < all.count; d++)
            needed[all.of[d]] |= where_is(&next, all.of[d]) >= 0 && i > 0;
        forget(&next, needed);
        if (i == 0) {
            all = next;
            continue;
        }
        memset(needed, 0, sizeof needed);
        for (int32_t d = 0; d < e.n_result; d++)
            needed[e.result[d]] = true;
        for (int64_t k = i + 1; k < call->n_in; k++)
            for (int32_t d = 0; d < e.count[k]; d++)
                needed[e.of[k][d]] = true;
        status = together(&all, &next, needed, e.size);
    }
    if (status != TN_OK)
        return status;
    for (int32_t d = 0; d < e.n_result; d++)
        order[d] = where_is(&all, e.result[d]);
    return tn__common_given(call->out, tn_permute(all.x, (tn_ints){ order, e.n_result }));
}

TN__OP(einsum, .infer = einsum_infer, .decompose = einsum_decompose);
