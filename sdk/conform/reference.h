/* SPDX-License-Identifier: MIT
 *
 * The reference: a device type that computes every primitive in the widest types of the host, one
 * element after the other. It is not fast, and shares no code with a backend. This header has what
 * its kernels share. */
#ifndef TENON_CONFORM_REFERENCE_H
#define TENON_CONFORM_REFERENCE_H

#include <complex.h>

#include <tenon/tenon.h>

#undef I /* <complex.h>'s */

/* An element of any dtype: whole numbers of 64 bits fit into `re` without loss where long double
 * has 64 bits. */
typedef struct ref_number {
    long double re, im;
} ref_number;

/* Elements of a tensor in row-major order. */
typedef struct ref_row {
    ref_number *at;
    int64_t count;
    tn_dtype dtype;
} ref_row;

/* All elements of a view, as if it were broadcast to `shape` (NULL: its own). */
tn_status ref_load(const tn_view *view, const tn_view *shape, ref_row *out);
/* Writes all elements of a view, rounded to its dtype. */
void ref_store(const tn_view *view, const ref_number *from);
void ref_drop(ref_row *row);
int64_t ref_count(const tn_view *view);

/* A tensor as outer x size x inner around one dimension. */
typedef struct ref_cut {
    int64_t outer, size, inner;
} ref_cut;
ref_cut ref_cut_at(const tn_view *view, int64_t dim);

static inline bool ref_is_float(tn_dtype dtype)
{
    return (TN_MASK_FLOAT & TN_BIT(dtype)) != 0;
}
static inline bool ref_is_complex(tn_dtype dtype)
{
    return (TN_MASK_COMPLEX & TN_BIT(dtype)) != 0;
}

/* The kernels of the two files. */
tn_status ref_each(const tn_call *call); /* element by element */
tn_status ref_fold(const tn_call *call); /* sums and the like */
tn_status ref_move(const tn_call *call); /* copies, indices, products, random numbers */
extern const char *const ref_each_names[], *const ref_fold_names[], *const ref_move_names[];

/* Registers the device type "reference" in this process. */
tn_status conform_reference(void);

#endif
