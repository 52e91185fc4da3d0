/* SPDX-License-Identifier: MIT
 *
 * LBFGS: what the step and its line search share. */
#ifndef TN_OPTIM_LBFGS_H
#define TN_OPTIM_LBFGS_H

#include "optim.h"

/* A step of LBFGS. All parameters together are one vector of `total` elements. */
struct lbfgs_step {
    const tn_step_args *args;
    bool maximize;
    int64_t total;
    int64_t evaluations; /* of the closure, in this step */
};

/* A point on the line x + t * direction: the loss, its gradient as a vector (a reference that the
 * point owns, or NULL), and the slope along the line. */
struct lbfgs_point {
    double t, loss, slope;
    tn_tensor *gradient;
};

/* Replaces the reference in *slot by one to `value`, which may be NULL. */
TN_HIDDEN void lbfgs_hold(tn_tensor **slot, tn_tensor *value);
/* Sets *out to the scalar product, NaN on failure. */
TN_HIDDEN tn_status lbfgs_dot(tn_tensor *a, tn_tensor *b, double *out);
/* Calls the closure and sets loss and gradient of the point. */
TN_HIDDEN tn_status lbfgs_evaluate(struct lbfgs_step *step, struct lbfgs_point *point);
/* Adds t * direction to the parameters. */
TN_HIDDEN tn_status lbfgs_move(const struct lbfgs_step *step, double t, tn_tensor *direction);

/* lbfgs_search.c: searches the line from the point `at`, beginning with length t, for a point that
 * fulfils the strong Wolfe conditions, by at most `most` iterations. Afterwards the
 * parameters have the values from before the call, and *at is the point that was found. */
TN_HIDDEN tn_status lbfgs_search(struct lbfgs_step *step, tn_tensor *direction, double t,
                                 int64_t most, struct lbfgs_point *at);

#endif
