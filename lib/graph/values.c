/* SPDX-License-Identifier: MIT
 *
 * Packs of arguments and results: the tensors in them, in order, and everything else, which is
 * their form. A graph has inputs and outputs for the tensors, and keeps the form. */
#include "lib/graph/private.h"

#include <math.h>

enum { DEEPEST = 64 };

static bool is_row(const tn_value *value)
{
    return value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE ||
           value->kind == TN_VALUE_DICT;
}

/* Returns the number of tensors in a value, and writes them unless `out` is NULL. Returns -1 and
 * sets the error if a graph cannot have the value. */
static int64_t list(const tn_value *value, tn_tensor **out, int depth, const char *what)
{
    int64_t count = 0;

    if (value->kind == TN_VALUE_TENSOR) {
        if (out != NULL)
            *out = value->as.tensor;
        return 1;
    }
    if (depth > DEEPEST) {
        tn_fail(TN_ERR_TYPE, "%s: lists nested too deep; expected at most %d levels", what,
                (int)DEEPEST);
        return -1;
    }
    if (value->kind == TN_VALUE_MODULE || value->kind == TN_VALUE_OPAQUE) {
        tn_fail(TN_ERR_TYPE,
                "%s: wrong value, got %s; expected tensors, numbers, texts, and lists of them",
                what, tn__value_kind_name(value->kind));
        return -1;
    }
    for (uint32_t i = 0; is_row(value) && i < value->count; i++) {
        int64_t here = list(&value->as.list[i], out != NULL ? out + count : NULL, depth + 1, what);

        if (here < 0)
            return -1;
        count += here;
    }
    return count;
}

int64_t tn__values_count(const tn_pack *pack, const char *what)
{
    int64_t count = 0;

    for (int64_t i = 0; i < tn_pack_count(pack); i++) {
        tn_value value = tn_pack_at(pack, i);
        int64_t here = list(&value, NULL, 0, what);

        if (here < 0)
            return -1;
        count += here;
    }
    return count;
}

void tn__values_list(const tn_pack *pack, tn_tensor **out)
{
    for (int64_t i = 0; i < tn_pack_count(pack); i++) {
        tn_value value = tn_pack_at(pack, i);

        out += list(&value, out, 0, "");
    }
}

/* Replaces the tensors in a value. Lists are copied to the arena. */
static bool put(tn_value *value, tn_tensor *const **next, tn__arena *arena)
{
    tn_value *copy;

    if (value->kind == TN_VALUE_TENSOR) {
        tn_tensor *tensor = *(*next)++;

        if (tn__is_none(tensor))
            *value = tn_value_none();
        else
            value->as.tensor = tensor;
        return true;
    }
    if (!is_row(value) || value->count == 0)
        return true;
    copy = tn__arena_alloc(arena, value->count * sizeof *copy);
    if (copy == NULL)
        return false;
    memcpy(copy, value->as.list, value->count * sizeof *copy);
    value->as.list = copy;
    for (uint32_t i = 0; i < value->count; i++)
        if (!put(&copy[i], next, arena))
            return false;
    return true;
}

tn_pack *tn__values_with(const tn_pack *form, tn_tensor *const *tensors)
{
    tn__arena *arena = tn__arena_new();
    tn_pack *pack = arena != NULL ? tn_pack_new() : NULL;
    tn_status status = pack != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < tn_pack_count(form) && status == TN_OK; i++) {
        tn_value value = tn_pack_at(form, i);

        if (tensors != NULL && !put(&value, &tensors, arena))
            status = TN_ERR_MEMORY;
        else
            status = tn_pack_add(pack, tn_pack_name(form, i), value);
    }
    tn__arena_free(arena);
    if (status == TN_OK)
        return pack;
    tn_pack_drop(pack);
    return NULL;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool same(const tn_value *a, const tn_value *b, int depth)
{
    if (a->kind != b->kind || depth > DEEPEST)
        return false;
    switch (a->kind) {
    case TN_VALUE_NONE:
    case TN_VALUE_TENSOR: return true;
    case TN_VALUE_FLOAT: return a->as.f == b->as.f || (isnan(a->as.f) && isnan(b->as.f));
    case TN_VALUE_STRING:
    case TN_VALUE_SPEC: return strcmp(a->as.s, b->as.s) == 0;
    case TN_VALUE_BYTES: return a->count == b->count && memcmp(a->as.s, b->as.s, a->count) == 0;
    case TN_VALUE_LIST:
    case TN_VALUE_TUPLE:
    case TN_VALUE_COMPLEX:
    case TN_VALUE_DICT:
        if (a->count != b->count)
            return false;
        for (uint32_t i = 0; i < a->count; i++)
            if (!same(&a->as.list[i], &b->as.list[i], depth + 1))
                return false;
        return true;
    default: return a->as.i == b->as.i;
    }
}

static tn_status differs(const char *what, int64_t i, const tn_value *form, const tn_value *got)
{
    tn__text a = { 0 }, b = { 0 };
    tn_status status;

    tn__value_print(got, &a);
    tn__value_print(form, &b);
    tn__text_put(&a, "", 1);
    tn__text_put(&b, "", 1);
    status = tn_fail(TN_ERR_TYPE,
                     "%s: argument %lld: the graph was not made for it, got %.80s; expected %.80s",
                     what, (long long)i, a.failed ? "another value" : a.at,
                     b.failed ? "the value of the trace" : b.at);
    tn__text_free(&a);
    tn__text_free(&b);
    return status;
}

tn_status tn__values_match(const tn_pack *form, const tn_pack *pack, const char *what)
{
    if (tn_pack_count(form) != tn_pack_count(pack) ||
        tn_pack_positional(form) != tn_pack_positional(pack))
        return tn_fail(
            TN_ERR_TYPE,
            "%s: wrong arguments, got %lld positional and %lld named; the graph was made "
            "for %lld positional and %lld named",
            what, (long long)tn_pack_positional(pack),
            (long long)(tn_pack_count(pack) - tn_pack_positional(pack)),
            (long long)tn_pack_positional(form),
            (long long)(tn_pack_count(form) - tn_pack_positional(form)));
    for (int64_t i = 0; i < tn_pack_count(form); i++) {
        const char *name = tn_pack_name(form, i);
        tn_value a = tn_pack_at(form, i), b;
        int64_t at = name != NULL ? tn_pack_find(pack, name) : i;

        if (at != i)
            return tn_fail(
                TN_ERR_TYPE,
                "%s: argument %s: missing, or not in the order for which the graph was made; "
                "expected the named arguments of the trace",
                what, name);
        b = tn_pack_at(pack, at);
        if (!same(&a, &b, 0))
            return differs(what, i, &a, &b);
    }
    return TN_OK;
}
