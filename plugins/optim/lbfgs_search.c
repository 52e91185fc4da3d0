/* SPDX-License-Identifier: MIT
 *
 * The line search of LBFGS for a point that fulfils the strong Wolfe conditions: the length grows
 * until an interval contains such a point, and the interval is then narrowed. New lengths are
 * minima of cubic polynomials. Method and constants are those of torch.optim.LBFGS. */
#include "lbfgs.h"

#include <math.h>

static const double decrease = 1e-4, curvature = 0.9, smallest = 1e-9;

struct line {
    struct lbfgs_step *step;
    tn_tensor *direction;
    tn_tensor **start; /* copies of the parameters where the line begins */
};

static void point_set(struct lbfgs_point *to, const struct lbfgs_point *from)
{
    lbfgs_hold(&to->gradient, from->gradient);
    to->t = from->t;
    to->loss = from->loss;
    to->slope = from->slope;
}

static tn_status go_back(const struct line *line)
{
    const tn_step_args *args = line->step->args;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < args->count && status == TN_OK; i++)
        if (tn_copy_(args->parameters[i], line->start[i]) == NULL)
            status = tn_error_last_code();
    return status;
}

/* Evaluates the loss at length t. */
static tn_status try_length(const struct line *line, double t, struct lbfgs_point *out)
{
    uint64_t scope = tn_scope_begin();
    tn_status status = lbfgs_move(line->step, t, line->direction), back;

    if (status == TN_OK)
        status = lbfgs_evaluate(line->step, out);
    back = go_back(line);
    if (status == TN_OK)
        status = back;
    if (status == TN_OK)
        status = lbfgs_dot(out->gradient, line->direction, &out->slope);
    out->t = t;
    tn_scope_end(scope);
    return status;
}

/* Returns the minimum, between `least` and `most`, of the cubic polynomial with the losses and
 * slopes of two points; the middle if there is none. */
static double cubic_minimum(const struct lbfgs_point *a, const struct lbfgs_point *b, double least,
                            double most)
{
    const struct lbfgs_point *low = a->t <= b->t ? a : b, *high = a->t <= b->t ? b : a;
    double first = a->slope + b->slope - 3 * (a->loss - b->loss) / (a->t - b->t);
    double square = first * first - a->slope * b->slope, second, at;

    if (!(square >= 0))
        return (least + most) / 2;
    second = sqrt(square);
    at = high->t - (high->t - low->t) *
                       ((high->slope + second - first) / (high->slope - low->slope + 2 * second));
    at = least > at ? least : at;
    return most < at ? most : at;
}

/* Increases the length until pair[0] and pair[1] are the ends of an interval that contains a point
 * which fulfils the conditions. If a length that is tried fulfils them itself, sets *done, and both
 * elements of `pair` are its point. After `most` iterations, pair[0] is the start. */
static tn_status enclose(const struct line *line, double t, int64_t most,
                         const struct lbfgs_point *start, struct lbfgs_point *pair, int64_t *used,
                         bool *done)
{
    struct lbfgs_point *before = &pair[0], *now = &pair[1];
    tn_status status;

    point_set(before, start);
    status = try_length(line, t, now);
    while (status == TN_OK && *used < most) {
        double least = now->t + 0.01 * (now->t - before->t);

        if (now->loss > start->loss + decrease * now->t * start->slope ||
            (*used > 1 && now->loss >= before->loss))
            return TN_OK;
        if (fabs(now->slope) <= -curvature * start->slope) {
            point_set(before, now);
            *done = true;
            return TN_OK;
        }
        if (now->slope >= 0)
            return TN_OK;
        t = cubic_minimum(before, now, least, now->t * 10);
        point_set(before, now);
        status = try_length(line, t, now);
        ++*used;
    }
    point_set(before, start);
    return status;
}

/* Returns a length inside the interval, not too near to its ends twice in a row. */
static double length_between(const struct lbfgs_point *pair, bool *near_end)
{
    double least = pair[0].t < pair[1].t ? pair[0].t : pair[1].t;
    double most = pair[0].t < pair[1].t ? pair[1].t : pair[0].t, margin = 0.1 * (most - least);
    double t = cubic_minimum(&pair[0], &pair[1], least, most);
    bool close = (most - t < t - least ? most - t : t - least) < margin;

    if (close && (*near_end || t >= most || t <= least)) {
        t = fabs(t - most) < fabs(t - least) ? most - margin : least + margin;
        close = false;
    }
    *near_end = close;
    return t;
}

/* Narrows the interval until a point fulfils the conditions, the interval is too short, or `used`
 * reaches `most`. Sets *low to the index of the better end in `pair`. */
static tn_status narrow(const struct line *line, int64_t most, const struct lbfgs_point *start,
                        struct lbfgs_point *pair, double size, int64_t used, int *low)
{
    struct lbfgs_point now = { 0 };
    tn_status status = TN_OK;
    bool done = false, near_end = false;

    while (!done && used < most && status == TN_OK &&
           !(fabs(pair[1].t - pair[0].t) * size < smallest)) {
        struct lbfgs_point *better = &pair[*low], *worse = &pair[1 - *low];

        status = try_length(line, length_between(pair, &near_end), &now);
        used++;
        if (status != TN_OK)
            break;
        if (now.loss > start->loss + decrease * now.t * start->slope || now.loss >= better->loss) {
            point_set(worse, &now);
            *low = pair[0].loss <= pair[1].loss ? 0 : 1;
            continue;
        }
        if (fabs(now.slope) <= -curvature * start->slope)
            done = true;
        else if (now.slope * (worse->t - better->t) >= 0)
            point_set(worse, better);
        point_set(better, &now);
    }
    lbfgs_hold(&now.gradient, NULL);
    return status;
}

static tn_status search(const struct line *line, double t, int64_t most, struct lbfgs_point *at)
{
    struct lbfgs_point pair[2] = { { 0 } };
    int64_t used = 0;
    bool done = false;
    int low;
    double size;
    tn_status status = enclose(line, t, most, at, pair, &used, &done);

    low = pair[0].loss <= pair[1].loss ? 0 : 1;
    if (status == TN_OK && !done && used < most) {
        uint64_t mark = tn_error_mark();

        size = tn_tensor_item(tn_norm(line->direction, INFINITY));
        status = tn_error_mark() == mark ? narrow(line, most, at, pair, size, used, &low)
                                         : tn_error_last_code();
    }
    if (status == TN_OK)
        point_set(at, &pair[low]);
    lbfgs_hold(&pair[0].gradient, NULL);
    lbfgs_hold(&pair[1].gradient, NULL);
    return status;
}

tn_status lbfgs_search(struct lbfgs_step *step, tn_tensor *direction, double t, int64_t most,
                       struct lbfgs_point *at)
{
    const tn_step_args *args = step->args;
    struct line line = { step, direction, tn_malloc((size_t)args->count * sizeof(tn_tensor *)) };
    tn_status status = TN_OK;

    if (line.start == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < args->count && status == TN_OK; i++) {
        line.start[i] = tn_clone(args->parameters[i]);
        if (line.start[i] == NULL)
            status = tn_error_last_code();
    }
    if (status == TN_OK)
        status = search(&line, t, most, at);
    tn_free(line.start);
    return status;
}
