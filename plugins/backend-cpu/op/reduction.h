/* SPDX-License-Identifier: MIT
 *
 * The description of a reduction: reduction.c fills it for each operator, reduction_strided.c
 * computes it. */
#ifndef TN_BACKEND_CPU_OP_REDUCTION_H
#define TN_BACKEND_CPU_OP_REDUCTION_H

/* How elements are combined. */
enum tn__fold {
    TN__FOLD_SUM,
    TN__FOLD_SQUARES, /* the sum of the squares */
    TN__FOLD_PROD,
    TN__FOLD_MAX,
    TN__FOLD_MIN,
    TN__FOLD_ARGMAX,
    TN__FOLD_ARGMIN
};

/* How each element x is changed before it is combined. */
enum tn__before {
    TN__AS_IT_IS,
    TN__APART,    /* x - from */
    TN__EXP_FROM, /* e^(x - from) */
    TN__SIZE,     /* |x| */
    TN__POWER,    /* |x|^p */
    TN__NO_NAN,   /* 0 if x is NaN, otherwise x */
    TN__TRUTH     /* 1 if x is not 0, otherwise 0 */
};

struct tn__reduction {
    enum tn__fold what;
    enum tn__before before;
    double p;           /* the exponent of TN__POWER */
    const double *from; /* a number for each result, which `before` and `finish` use; or NULL */
    double *into;       /* the destination of the results; NULL: y */
    /* Computes a result from the combined elements, `value`, and the result's `from`. NULL: `value`
     * is the result. */
    double (*finish)(const struct tn__reduction *r, double value, double from);
    double factor; /* for `finish` */
};

/* Reduces x over the dimensions marked in `goes`, into y or r->into. */
tn_status tn__reduction_strided(const struct tn__reduction *r, const tn_view *x, const tn_view *y,
                                const bool *goes);

#endif
