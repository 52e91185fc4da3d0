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
typedef struct reference_number {
    long double re, im;
} reference_number;

/* Elements of a tensor in row-major order. */
typedef struct reference_row {
    reference_number *at;
    int64_t count;
    tn_dtype dtype;
} reference_row;

/* All elements of a view, as if it were broadcast to `shape` (NULL: its own). */
tn_status reference_load(const tn_view *view, const tn_view *shape, reference_row *out);
/* Writes all elements of a view, rounded to its dtype. */
void reference_store(const tn_view *view, const reference_number *from);
void reference_drop(reference_row *row);
int64_t reference_count(const tn_view *view);

/* A tensor as outer x size x inner around one dimension. */
typedef struct reference_cut {
    int64_t outer, size, inner;
} reference_cut;
reference_cut reference_cut_at(const tn_view *view, int64_t dim);

static inline bool reference_is_float(tn_dtype dtype)
{
    return (TN_MASK_FLOAT & TN_BIT(dtype)) != 0;
}
static inline bool reference_is_complex(tn_dtype dtype)
{
    return (TN_MASK_COMPLEX & TN_BIT(dtype)) != 0;
}

/* The kernels of the three files. */
tn_status reference_each(const tn_call *call); /* element by element */
tn_status reference_fold(const tn_call *call); /* sums and the like */
tn_status reference_move(const tn_call *call); /* copies, indices, products, random numbers */
extern const char *const reference_each_names[], *const reference_fold_names[],
                                                     *const reference_move_names[];

/* TN_BIT mask of the dtypes in which a new device needs a basic kernel, for a network of float32.
 */
uint64_t conform_basic_dtypes(const char *op);
/* Registers the device type "reference" in this process, with kernels for the operators that have
 * all of these flags: TN_OP_PRIMITIVE, or TN_OP_BASIC: in no more dtypes than a network needs. */
tn_status conform_reference(uint64_t flags);
/* The device "counted": the reference as a device whose memory the host cannot address. NULL and an
 * error on failure. */
const tn_device *reference_counted(void);
/* How often the host copied values from it. */
int64_t reference_reads(void);

#endif
