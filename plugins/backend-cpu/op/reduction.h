/* SPDX-License-Identifier: MIT
 *
 * What a reduction is made of, between reduction_strided.c, which goes through the numbers, and
 * reduction.c, which says what is done with them. */
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

/* What is done with each number before it is folded. */
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
    double *into;       /* NULL, or where results go in place of y */
    /* What becomes of a result (NULL: nothing); `from` is its own. */
    double (*finish)(const struct tn__reduction *r, double value, double from);
    double factor; /* for finish */
};

/* y = the reduction of x over the dimensions that go. */
tn_status tn__reduce(const struct tn__reduction *r, const tn_view *x, const tn_view *y,
                     const bool *goes);

#endif
