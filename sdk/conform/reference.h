/* SPDX-License-Identifier: MIT
 *
 * The reference: a device type that computes every primitive in the widest types of the host, one
 * element after the other. The reference is slow and shares no code with a backend. This header
 * declares what its kernels share. */
#ifndef TN_CONFORM_REFERENCE_H
#define TN_CONFORM_REFERENCE_H

#include <complex.h>

#include <tenon/tenon.h>

#undef I /* defined by <complex.h> */

/* An element of any dtype. Integers of 64 bits fit `re` without loss if the mantissa of long double
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

/* Reads all elements of a view, broadcast to the shape of `shape` unless that is NULL. The caller
 * frees them with reference_drop(). */
tn_status reference_load(const tn_view *view, const tn_view *shape, reference_row *out);
/* Writes all elements of a view, rounded to its dtype. */
void reference_store(const tn_view *view, const reference_number *from);
void reference_drop(reference_row *row);
int64_t reference_count(const tn_view *view);

/* The shape of a tensor as three sizes: the product of the dimensions before `dim`, dimension
 * `dim`, and the product of the dimensions after `dim`. */
typedef struct reference_cut {
    int64_t outer, size, inner;
} reference_cut;
reference_cut reference_cut_at(const tn_view *view, int64_t dim);

/* Returns a whole number as 64 bits: those of a uint64 from 2^63 on, -2^63 for any other number
 * that an int64 does not hold. */
static inline int64_t reference_whole(long double number)
{
    if (number >= -0x1p63L && number < 0x1p63L)
        return (int64_t)number;
    return number >= 0x1p63L && number < 0x1p64L ? (int64_t)(uint64_t)number : INT64_MIN;
}

static inline bool reference_is_float(tn_dtype dtype)
{
    return (TN_MASK_FLOAT & TN_BIT(dtype)) != 0;
}
static inline bool reference_is_complex(tn_dtype dtype)
{
    return (TN_MASK_COMPLEX & TN_BIT(dtype)) != 0;
}

/* The kernels of the three files reference_*.c, and the operators that each implements. */
tn_status reference_elementwise(const tn_call *call); /* elementwise operators */
tn_status reference_reduction(const tn_call *call);   /* sums, sorting, products */
tn_status reference_index(const tn_call *call);       /* copies, indexing, random numbers */
extern const char *const reference_elementwise_names[], *const reference_reduction_names[],
                                                            *const reference_index_names[];

/* Returns the dtypes (TN_BIT mask) in which a device needs the kernel of a basic operator to train
 * a float32 network. */
uint64_t conform_basic_dtypes(const char *op);
/* Registers the device type "reference" in this process, with kernels for the operators that have
 * all of `flags` (TN_OP_PRIMITIVE or TN_OP_BASIC). With TN_OP_BASIC, kernels are registered only
 * for conform_basic_dtypes(). */
tn_status conform_reference(uint64_t flags);
/* Returns the device "counted": the reference, but as a device whose memory the host cannot
 * address. Returns NULL and sets the error on failure. */
const tn_device *reference_counted(void);
/* Returns how often the host has copied values from the device "counted". */
int64_t reference_reads(void);

#endif
