/* SPDX-License-Identifier: MIT
 *
 * Comparing values of any kind, for tenon check: extra state of layers, entries of files. */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

static bool same_tensor(tn_tensor *a, tn_tensor *b)
{
    const tn_ints x = tn_tensor_shape(a), y = tn_tensor_shape(b);
    size_t n = 0, m = 0;
    void *p, *q;
    bool same;

    if (tn_tensor_dtype(a) != tn_tensor_dtype(b) || x.count != y.count ||
        (x.count > 0 && memcmp(x.at, y.at, (size_t)x.count * sizeof *x.at) != 0))
        return false;
    p = conform_bytes(a, &n);
    q = conform_bytes(b, &m);
    same = p != NULL && q != NULL && n == m && memcmp(p, q, n) == 0;
    free(p);
    free(q);
    return same;
}

bool conform_same_value(tn_value a, tn_value b)
{
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case TN_VALUE_NONE: return true;
    case TN_VALUE_TENSOR: return same_tensor(a.as.tensor, b.as.tensor);
    case TN_VALUE_STRING:
    case TN_VALUE_SPEC: return strcmp(a.as.s, b.as.s) == 0;
    case TN_VALUE_BYTES: return a.count == b.count && memcmp(a.as.s, b.as.s, a.count) == 0;
    case TN_VALUE_LIST:
    case TN_VALUE_TUPLE:
    case TN_VALUE_DICT:
    case TN_VALUE_COMPLEX:
        for (uint32_t i = 0; i < a.count && a.count == b.count; i++)
            if (!conform_same_value(a.as.list[i], b.as.list[i]))
                return false;
        return a.count == b.count;
    default: return a.as.i == b.as.i; /* floats are compared by their bits */
    }
}

bool conform_same_state(const tn_state *a, const tn_state *b)
{
    bool same = tn_state_count(a) == tn_state_count(b);

    for (int64_t i = 0; same && i < tn_state_count(a); i++)
        same = strcmp(tn_state_name(a, i), tn_state_name(b, i)) == 0 &&
               conform_same_value(tn_state_value(a, i), tn_state_value(b, i));
    return same;
}
