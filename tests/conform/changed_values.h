/* SPDX-License-Identifier: MIT
 *
 * Changes one option or input of a case at random, or one option to a given end of its range. All
 * memory of a changed case has exactly the size that the case states, so that AddressSanitizer sees
 * what reads or writes beyond it. */
#ifndef TN_TESTS_CONFORM_CHANGED_VALUES_H
#define TN_TESTS_CONFORM_CHANGED_VALUES_H

#include "sdk/conform/conform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGED_BLOCKS = 256, CHANGED_ELEMENTS = 1 << 16 };

/* A case with its changes; `said` describes them. */
typedef struct changed {
    conform_case one;
    uint64_t random;
    bool huge; /* the inputs have no memory, and may have any size */
    bool null_input[64];
    char said[600];
    void *blocks[CHANGED_BLOCKS];
    int n_blocks;
} changed;

static uint64_t changed_random(changed *c)
{
    uint64_t x = c->random += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static int64_t changed_below(changed *c, int64_t count)
{
    return (int64_t)(changed_random(c) % (uint64_t)count);
}

static void *changed_keep(changed *c, size_t size)
{
    void *block = c->n_blocks < CHANGED_BLOCKS ? calloc(1, size > 0 ? size : 1) : NULL;

    if (block == NULL)
        abort();
    return c->blocks[c->n_blocks++] = block;
}

static void changed_drop(changed *c)
{
    while (c->n_blocks > 0)
        free(c->blocks[--c->n_blocks]);
}

static void changed_say(changed *c, const char *format, ...) TN_ATTR(format(printf, 2, 3));
static void changed_say(changed *c, const char *format, ...)
{
    size_t used = strlen(c->said);
    va_list list;

    va_start(list, format);
    vsnprintf(c->said + used, sizeof c->said - used, format, list);
    va_end(list);
}

/* ---- numbers ---- */

static const int64_t changed_int_ends[] = { INT64_MIN,
                                            INT64_MAX,
                                            -1,
                                            0,
                                            (int64_t)1 << 62,
                                            INT32_MAX,
                                            -((int64_t)1 << 62),
                                            INT64_MAX - 1,
                                            INT64_MIN + 1,
                                            INT32_MIN,
                                            (int64_t)INT32_MAX + 1,
                                            (int64_t)1 << 32,
                                            (int64_t)1 << 40,
                                            (int64_t)1 << 61,
                                            1,
                                            2,
                                            -2,
                                            3,
                                            7,
                                            15,
                                            16,
                                            17,
                                            64 };

static const double changed_float_ends[] = { NAN,       1e308,  -1e308,  INFINITY,  0x1p63,
                                             -INFINITY, 0.0,    -1.0,    -0.0,      1.0,
                                             0.5,       1e-3,   5e-324,  1e19,      -1e19,
                                             -0x1p63,   0x1p31, -0x1p31, 16777217.0 };

enum {
    CHANGED_INT_ENDS = sizeof changed_int_ends / sizeof *changed_int_ends,
    CHANGED_FLOAT_ENDS = sizeof changed_float_ends / sizeof *changed_float_ends,
    CHANGED_FIRST_ENDS = 6 /* the first of both tables, which every option is tried with */
};

static int64_t changed_int(changed *c, int64_t was)
{
    int64_t near = changed_below(c, 7) - 3;

    switch (changed_below(c, 4)) {
    case 0: return (int64_t)((uint64_t)was + (uint64_t)near);
    case 1: return changed_below(c, 41) - 20;
    default: return changed_int_ends[changed_below(c, CHANGED_INT_ENDS)];
    }
}

static double changed_float(changed *c)
{
    return changed_float_ends[changed_below(c, CHANGED_FLOAT_ENDS)];
}

/* The size of a dimension, of which there are `count` elements so far. */
static int64_t changed_size(changed *c, int64_t count)
{
    int64_t size;

    if (!c->huge || changed_below(c, 2) == 0)
        return changed_below(c, count < 1024 ? 5 : 2);
    size = changed_int(c, 1);
    return size < 0 ? ~size : size;
}

/* ---- options ---- */

static void changed_text(changed *c, const char **text)
{
    static const char *const words[] = {
        "",         "none",      "mean",      "sum",       "same",    "valid", "reflect",
        "circular", "replicate", "nearest",   "bilinear",  "bicubic", "area",  "ortho",
        "tanh",     "relu",      "lstm",      "gru",       "fro",     "nuc",   "-inf",
        "amax",     "prod",      "ij,jk->ik", "...i->...", "ii->",    "%s%n",  "None"
    };

    if (changed_below(c, 4) == 0) {
        *text = NULL;
    } else if (changed_below(c, 6) == 0) {
        char *word = changed_keep(c, 3001);

        memset(word, 'i' + (int)changed_below(c, 3), 3000);
        *text = word;
    } else {
        *text = words[changed_below(c, (int64_t)(sizeof words / sizeof *words))];
    }
    changed_say(c, "%.20s", *text != NULL ? *text : "NULL");
}

/* Another length, other elements, or both; ints, or floats. */
static void changed_list(changed *c, tn_ints *list, bool floats)
{
    static const int64_t counts[] = { 0, 1, 2, 3, 4, 5, 6, 8, 15, 16, 17, 20, 32, 33, 64, 65, 300 };
    int64_t was = list->count > 0 && list->at != NULL ? list->count : 0, count = was, *at;
    bool same = count > 0 && changed_below(c, 2) == 0;

    if (changed_below(c, 8) == 0) { /* a count of none or without numbers */
        list->count = changed_below(c, 2) == 0 ? changed_int(c, was) : -1;
        list->at = list->count > 0 || changed_below(c, 2) == 0 ? NULL : list->at;
        changed_say(c, "NULL of %lld", (long long)list->count);
        return;
    }
    if (!same)
        count = changed_below(c, 3) == 0
                    ? counts[changed_below(c, (int64_t)(sizeof counts / sizeof *counts))]
                    : was + changed_below(c, 5) - 2;
    count = count < 0 ? 0 : count;
    at = changed_keep(c, (size_t)count * sizeof *at);
    for (int64_t i = 0; i < count; i++) {
        double number = floats ? changed_float(c) : 0;

        at[i] = was > 0 ? list->at[i % was] : changed_below(c, 3);
        if (!floats && (changed_below(c, count) == 0 || was == 0))
            at[i] = changed_int(c, at[i]);
        else if (floats && changed_below(c, count) == 0)
            memcpy(&at[i], &number, sizeof number);
        if (i < 20)
            changed_say(c, "%s%lld", i > 0 ? "," : "", (long long)at[i]);
    }
    changed_say(c, " (%lld)", (long long)count);
    *list = (tn_ints){ at, count };
}

static tn_scalar changed_scalar(changed *c)
{
    int64_t whole = changed_int(c, 1);
    double number = changed_float(c);

    switch (changed_below(c, 6)) {
    case 0: changed_say(c, "none"); return tn_scalar_none();
    case 1: changed_say(c, "bool"); return tn_scalar_bool(changed_below(c, 2) == 0);
    case 2:
        changed_say(c, "complex %g", number);
        return tn_scalar_complex(number, changed_float(c));
    case 3:
        changed_say(c, "uint %llx", (unsigned long long)whole);
        return tn_scalar_uint((uint64_t)whole);
    case 4: changed_say(c, "%g", number); return tn_scalar_float(number);
    default: changed_say(c, "%lld", (long long)whole); return tn_scalar_int(whole);
    }
}

static void changed_option(changed *c)
{
    const tn_option *row = c->one.def->options;
    int64_t count = 0;
    uint8_t *at = c->one.options;
    int64_t *whole;

    while (row[count].kind != TN_OPTION_KIND_END)
        count++;
    row += changed_below(c, count);
    at += row->offset;
    whole = (int64_t *)(void *)at;
    changed_say(c, " opt %s=", row->name);
    switch (row->kind) {
    case TN_OPTION_KIND_BOOL: *(bool *)at = !*(bool *)at; break;
    case TN_OPTION_KIND_INT:
        *whole = changed_int(c, *whole);
        changed_say(c, "%lld", (long long)*whole);
        break;
    case TN_OPTION_KIND_FLOAT:
        *(double *)(void *)at = changed_float(c);
        changed_say(c, "%g", *(double *)(void *)at);
        break;
    case TN_OPTION_KIND_STRING: changed_text(c, (const char **)(void *)at); break;
    case TN_OPTION_KIND_INTS: changed_list(c, (tn_ints *)(void *)at, false); break;
    case TN_OPTION_KIND_FLOATS: changed_list(c, (tn_ints *)(void *)at, true); break;
    case TN_OPTION_KIND_SCALAR: *(tn_scalar *)(void *)at = changed_scalar(c); break;
    case TN_OPTION_KIND_DTYPE: {
        int32_t dtype = (int32_t)changed_below(c, TN_DTYPE_COUNT + 3) - 1;

        memcpy(at, &dtype, sizeof dtype);
        changed_say(c, "%d", dtype);
        break;
    }
    default: break;
    }
}

/* How many ends an option has. In a list, one element or all of them are an end. */
static int64_t changed_ends(const tn_option *row)
{
    switch (row->kind) {
    case TN_OPTION_KIND_INT:
    case TN_OPTION_KIND_FLOAT: return CHANGED_FIRST_ENDS;
    case TN_OPTION_KIND_INTS:
    case TN_OPTION_KIND_FLOATS:
    case TN_OPTION_KIND_SCALAR: return 2 * CHANGED_FIRST_ENDS;
    default: return 0;
    }
}

/* Sets an option to its end number `end`, or one element of a list or all of them. */
static void changed_end(changed *c, const tn_option *row, int64_t end)
{
    uint8_t *at = (uint8_t *)c->one.options + row->offset;
    bool all = end >= CHANGED_FIRST_ENDS;
    int64_t whole = changed_int_ends[end % CHANGED_FIRST_ENDS];
    double number = changed_float_ends[end % CHANGED_FIRST_ENDS];
    bool floats = row->kind == TN_OPTION_KIND_FLOAT || row->kind == TN_OPTION_KIND_FLOATS;

    if (row->kind == TN_OPTION_KIND_SCALAR) {
        *(tn_scalar *)(void *)at = all ? tn_scalar_float(number) : tn_scalar_int(whole);
    } else if (row->kind == TN_OPTION_KIND_INT || row->kind == TN_OPTION_KIND_FLOAT) {
        memcpy(at, floats ? (void *)&number : (void *)&whole, sizeof whole);
    } else {
        tn_ints *list = (tn_ints *)(void *)at;
        int64_t count = list->at != NULL && list->count > 0 ? list->count : 1;
        int64_t *own = changed_keep(c, (size_t)count * sizeof *own);
        int64_t one = changed_below(c, count);

        for (int64_t i = 0; i < count; i++) {
            own[i] = list->at != NULL && list->count > 0 ? list->at[i] : 1;
            if (all || i == one)
                memcpy(&own[i], floats ? (void *)&number : (void *)&whole, sizeof whole);
        }
        *list = (tn_ints){ own, count };
    }
    changed_say(c, " opt %s, end %lld", row->name, (long long)end);
}

/* The case with options of its own, in memory of exactly their size. */
static void changed_own_options(changed *c)
{
    const tn_op_def *def = c->one.def;
    void *own;

    if (def->options == NULL)
        return;
    own = changed_keep(c, def->options_size);
    memcpy(own, c->one.options != NULL ? c->one.options : def->defaults, def->options_size);
    c->one.options = own;
}

static void changed_options_size(changed *c)
{
    uint32_t size = (uint32_t)changed_below(c, c->one.def->options_size + 9);
    uint8_t *other = changed_keep(c, size < sizeof size ? sizeof size : size);
    uint32_t both = size < c->one.def->options_size ? size : c->one.def->options_size;

    memcpy(other, c->one.options, both);
    memcpy(other, &size, sizeof size);
    c->one.options = other;
    changed_say(c, " options.size=%u", size);
}

/* ---- inputs ---- */

/* Gives an input new elements for its shape, row-major, taken from those that it has. */
static void changed_fill(changed *c, conform_tensor *t)
{
    int64_t parts = is_complex(t->dtype) ? 2 : 1, was = t->count, step = 1;
    double *values;

    for (int32_t d = t->ndim - 1; d >= 0; d--) {
        t->strides[d] = step;
        if (t->shape[d] > 0 && __builtin_mul_overflow(step, t->shape[d], &step))
            step = 1;
    }
    t->offset = 0;
    t->count = c->huge ? 0 : 1;
    for (int32_t d = 0; d < t->ndim; d++)
        t->count *= c->huge ? 0 : t->shape[d];
    values = changed_keep(c, (size_t)(t->count * parts) * sizeof *values);
    for (int64_t i = 0; i < t->count * parts; i++)
        values[i] = was > 0 ? t->values[i % was] : 0;
    t->values = values;
    if (t->whole != NULL) {
        int64_t *whole = changed_keep(c, (size_t)t->count * sizeof *whole);

        for (int64_t i = 0; i < t->count; i++)
            whole[i] = was > 0 ? t->whole[i % was] : 0;
        t->whole = whole;
    }
}

static void changed_rank(changed *c, conform_tensor *t)
{
    int64_t shape[TN_MAX_DIMS], kept = t->ndim;
    int32_t ndim = (int32_t)changed_below(c, TN_MAX_DIMS + 1), shift;

    if (changed_below(c, 2) == 0)
        ndim = t->ndim + (int32_t)changed_below(c, 3) - 1;
    ndim = ndim < 0 ? 0 : ndim > TN_MAX_DIMS ? TN_MAX_DIMS : ndim;
    shift = changed_below(c, 2) == 0 ? ndim - t->ndim : 0;
    memcpy(shape, t->shape, sizeof shape);
    for (int32_t d = 0; d < ndim; d++)
        t->shape[d] = d - shift >= 0 && d - shift < kept ? shape[d - shift] : 1;
    t->ndim = ndim;
}

static void changed_element(changed *c, conform_tensor *t)
{
    int64_t i = t->count > 0 ? changed_below(c, t->count) : 0;

    if (t->count == 0)
        return;
    if (t->whole != NULL) {
        t->whole[i] = changed_int(c, t->whole[i]);
        t->values[i] = (double)t->whole[i];
    } else if (is_float(t->dtype) || is_complex(t->dtype)) {
        t->values[i] = changed_float(c);
    } else {
        t->values[i] = (double)changed_below(c, 2);
    }
    changed_say(c, " element %lld = %g", (long long)i, t->values[i]);
}

static void changed_dtype(changed *c, conform_tensor *t)
{
    bool pairs = is_complex(t->dtype);
    double *values;

    t->dtype = (tn_dtype)changed_below(c, TN_DTYPE_COUNT);
    t->whole = NULL;
    values = changed_keep(c, (size_t)t->count * 2 * sizeof *values);
    for (int64_t i = 0; i < t->count; i++) {
        double value = t->values[pairs ? 2 * i : i];
        bool whole = !is_float(t->dtype) && !is_complex(t->dtype);

        value = whole ? (value > 1 ? 1 : 0) : value;
        values[is_complex(t->dtype) ? 2 * i : i] = value;
    }
    t->values = values;
}

static void changed_input(changed *c)
{
    int64_t i = changed_below(c, c->one.n_in);
    conform_tensor *t = &c->one.in[i];
    int kind = (int)changed_below(c, c->huge ? 4 : 8);

    changed_say(c, " in %lld", (long long)i);
    if (changed_below(c, 16) == 0) {
        c->null_input[i] = changed_below(c, 4) == 0;
        t->there = false;
        changed_say(c, " absent");
    }
    if (!t->there)
        return;
    if (kind < 4) {
        if (kind < 2)
            changed_rank(c, t);
        for (int32_t d = 0; kind > 0 && d < t->ndim; d++)
            if (kind == 3 || changed_below(c, t->ndim) == 0)
                t->shape[d] = changed_size(c, t->count);
        for (int64_t d = 0, all = 1; !c->huge && d < t->ndim; d++) {
            if (t->shape[d] > 0 && all * t->shape[d] > CHANGED_ELEMENTS)
                t->shape[d] = 1;
            all *= t->shape[d] > 0 ? t->shape[d] : 1;
        }
        changed_fill(c, t);
        for (int32_t d = 0; d < t->ndim; d++)
            changed_say(c, "%s%lld", d > 0 ? "," : " ", (long long)t->shape[d]);
        if (t->ndim == 0)
            changed_say(c, " -");
    } else if (kind == 4) {
        changed_dtype(c, t);
        changed_say(c, " %s", tn_dtype_name(t->dtype));
    } else {
        changed_element(c, t);
    }
}

/* Another number of inputs. */
static void changed_count(changed *c)
{
    int64_t count = changed_below(c, c->one.n_in + 4);
    conform_tensor *in = changed_keep(c, (size_t)(count + 1) * sizeof *in);

    for (int64_t i = 0; i < count && c->one.n_in > 0; i++)
        in[i] = c->one.in[i % c->one.n_in];
    c->one.in = in;
    c->one.n_in = count;
    changed_say(c, " %lld inputs", (long long)count);
}

/* Makes one change, sometimes two. `c` has the case, the seed and `huge`. */
static void changed_make(changed *c)
{
    int changes = changed_below(c, 4) == 0 ? 2 : 1;
    conform_tensor *in = changed_keep(c, (size_t)(c->one.n_in + 1) * sizeof *in);

    memcpy(in, c->one.in, (size_t)c->one.n_in * sizeof *in);
    c->one.in = in;
    changed_own_options(c);
    while (changes-- > 0) {
        bool options = c->one.def->options != NULL &&
                       c->one.def->options->kind != TN_OPTION_KIND_END;

        if (options && changed_below(c, 2) == 0)
            changed_option(c);
        else if (options && changed_below(c, 20) == 0 && changes == 0)
            changed_options_size(c);
        else if (changed_below(c, 20) == 0)
            changed_count(c);
        else if (c->one.n_in > 0)
            changed_input(c);
    }
}

#endif
