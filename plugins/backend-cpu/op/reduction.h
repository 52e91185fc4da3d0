/* SPDX-License-Identifier: MIT
 *
 * A reduction, between reduction_strided.c, which reads the elements, and reduction.c, which says
 * what is done with them. */
#ifndef TN_BACKEND_CPU_REDUCE_H
#define TN_BACKEND_CPU_REDUCE_H

enum tn__fold {
    TN__FOLD_SUM,
    TN__FOLD_SQUARES, /* the sum of the squares */
    TN__FOLD_PROD,
    TN__FOLD_MAX,
    TN__FOLD_MIN,
    TN__FOLD_ARGMAX,
    TN__FOLD_ARGMIN
};

/* How each element is changed before it is reduced. */
enum tn__before {
    TN__AS_IT_IS,
    TN__APART,    /* x - from */
    TN__EXP_FROM, /* e^(x - from) */
    TN__SIZE,     /* |x| */
    TN__POWER,    /* |x|^p */
    TN__TRUTH     /* 0 or 1 */
};

struct tn__reduction {
    enum tn__fold what;
    enum tn__before before;
    double p;
    const double *from; /* one for each result, or NULL */
    double *into;       /* NULL, or the results' destination instead of y */
    /* How a result is finished (NULL: not at all); `from` is its own. */
    double (*finish)(const struct tn__reduction *r, double value, double from);
    double factor; /* for finish */
};

/* y = the reduction of x over the dimensions marked in `goes`. */
tn_status tn__reduction_strided(const struct tn__reduction *r, const tn_view *x, const tn_view *y,
                                const bool *goes);

#endif
