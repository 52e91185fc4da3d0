/* SPDX-License-Identifier: MIT
 *
 * L-BFGS, as torch.optim.LBFGS documents it: a step calls the closure several times. The direction
 * of an iteration is minus the gradient, multiplied by an approximation of the inverse Hessian from
 * the last `history_size` changes of the gradient and of the parameters. The parameters are one
 * vector; its states are states of the first parameter. */
#include "lbfgs.h"

#include <math.h>
#include <string.h>

struct lbfgs {
    double lr;
    int64_t max_iter;
    int64_t max_eval;
    double tolerance_grad;
    double tolerance_change;
    int64_t history_size;
    const char *line_search_fn;
    bool maximize;
};

static const tn_option table[] = {
    TN_OPTION_FLOAT(struct lbfgs, lr, "1.0", "learning rate"),
    TN_OPTION_INT(struct lbfgs, max_iter, "20", "most iterations of a step"),
    TN_OPTION_ROW(struct lbfgs, max_eval, "None",
                  "most calls of the closure in a step; None: 1.25 * max_iter", TN_OPTION_KIND_INT,
                  TN_OPTION_OPTIONAL),
    TN_OPTION_FLOAT(struct lbfgs, tolerance_grad, "1e-07",
                    "ends the step if no element of the gradient is larger"),
    TN_OPTION_FLOAT(struct lbfgs, tolerance_change, "1e-09",
                    "ends the step if loss and parameters change less"),
    TN_OPTION_INT(struct lbfgs, history_size, "100", "number of changes that are kept"),
    TN_OPTION_ROW(struct lbfgs, line_search_fn, "None", "'strong_wolfe', or None for steps of lr",
                  TN_OPTION_KIND_STRING, TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(struct lbfgs, maximize, "False", "maximizes the objective", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static tn_status check(tn_optimizer *self, const void *options)
{
    const struct lbfgs *s = options;
    tn_status status = optim_check_least(self, "Invalid learning rate", s->lr, 0);

    if (status == TN_OK && s->history_size < 1)
        status = tn_fail(TN_ERR_VALUE,
                         "%s: history_size: out of range, got %lld; expected 1 or more",
                         tn_optimizer_type(self), (long long)s->history_size);
    if (status == TN_OK && s->line_search_fn != NULL &&
        strcmp(s->line_search_fn, "strong_wolfe") != 0)
        status = tn_fail(TN_ERR_VALUE,
                         "%s: line_search_fn: only 'strong_wolfe' is supported, got %s; expected "
                         "'strong_wolfe' or None",
                         tn_optimizer_type(self), s->line_search_fn);
    return status;
}

/* ---- vectors --------------------------------------------------------------------------------- */

void lbfgs_hold(tn_tensor **slot, tn_tensor *value)
{
    tn_tensor *before = *slot;

    *slot = value != NULL ? tn_tensor_keep(value) : NULL;
    tn_tensor_drop(before);
}

/* Sets *out to the element of the tensor, NaN on failure. `tensor` is NULL after an error. */
static tn_status item_of(tn_tensor *tensor, double *out)
{
    uint64_t mark = tn_error_mark();

    *out = NAN;
    if (tensor == NULL)
        return tn_error_last_code();
    *out = tn_tensor_item(tensor);
    return tn_error_mark() == mark ? TN_OK : tn_error_last_code();
}

tn_status lbfgs_dot(tn_tensor *a, tn_tensor *b, double *out)
{
    return item_of(tn_dot(a, b), out);
}

static tn_status norm_of(tn_tensor *x, double p, double *out)
{
    return item_of(tn_norm(x, p), out);
}

/* Returns the gradients of all parameters as one vector; a parameter without a gradient counts as
 * one with zeros. */
static tn_tensor *gather(const struct lbfgs_step *step)
{
    const tn_step_args *args = step->args;
    tn_tensor **list = tn_malloc((size_t)args->count * sizeof *list), *flat = NULL;
    int64_t n = 0;

    if (list == NULL)
        return NULL;
    while (n < args->count) {
        tn_tensor *p = optim_real(args->parameters[n]), *g = args->gradients[n];
        int64_t count = p != NULL ? tn_tensor_numel(p) : 0;

        if (p == NULL)
            list[n] = NULL;
        else if (g != NULL)
            list[n] = tn_reshape(optim_real(g), TN_SHAPE(count));
        else
            list[n] = tn_tensor_full(TN_SHAPE(count), 0, tn_tensor_dtype(p), tn_tensor_device(p));
        if (list[n++] == NULL)
            break;
    }
    if (list[n - 1] != NULL)
        flat = n == 1 ? tn_clone(list[0]) : tn_cat(list, n, 0);
    tn_free(list);
    return step->maximize ? tn_neg(flat) : flat;
}

tn_status lbfgs_evaluate(struct lbfgs_step *step, struct lbfgs_point *point)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *loss = step->args->closure(step->args->closure_user);
    tn_status status = item_of(loss, &point->loss);

    step->evaluations++;
    if (step->maximize)
        point->loss = -point->loss;
    if (status == TN_OK) {
        tn_tensor *gradient = gather(step);

        if (gradient == NULL)
            status = tn_error_last_code();
        else
            lbfgs_hold(&point->gradient, gradient);
    }
    tn_scope_end(scope);
    return status;
}

tn_status lbfgs_move(const struct lbfgs_step *step, double t, tn_tensor *direction)
{
    const tn_step_args *args = step->args;
    int64_t at = 0;

    for (int64_t i = 0; i < args->count; i++) {
        tn_tensor *p = optim_real(args->parameters[i]);
        int64_t count = p != NULL ? tn_tensor_numel(p) : 0;

        if (p == NULL ||
            tn_add_(p, tn_reshape(tn_narrow(direction, 0, at, count), tn_tensor_shape(p)),
                    tn_scalar_float(t)) == NULL)
            return tn_error_last_code();
        at += count;
    }
    return TN_OK;
}

/* ---- what is kept between steps -------------------------------------------------------------- */

struct memory {
    tn_optimizer *self;
    int64_t index;                   /* of the first parameter, which has the states */
    tn_tensor *like;                 /* the first parameter, as a real tensor */
    int64_t iterations, evaluations; /* in all steps */
    tn_tensor *direction, *gradient; /* of the last iteration; references */
    double t, loss, scale;           /* scale: the inverse Hessian without history is this number */
    int64_t count, room;             /* of the changes */
    tn_tensor **changes, **moves;    /* of the gradient and of the parameters; references */
    double *inverse;                 /* 1 / (change . move) */
};

static void forget(struct memory *m)
{
    for (int64_t i = 0; i < m->count; i++) {
        tn_tensor_drop(m->changes[i]);
        tn_tensor_drop(m->moves[i]);
    }
    lbfgs_hold(&m->direction, NULL);
    lbfgs_hold(&m->gradient, NULL);
    tn_free(m->changes);
}

static tn_status get_state(const struct memory *m, const char *name, tn_tensor **out)
{
    *out = tn_optimizer_state(m->self, m->index, name);
    if (*out != NULL)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "state %s: missing; expected all states of the last step", name);
}

static tn_status get_number(const struct memory *m, const char *name, double *out)
{
    tn_tensor *state;
    tn_status status = get_state(m, name, &state);

    return status == TN_OK ? item_of(state, out) : status;
}

/* Returns a state of the dtype of the parameters, with the given shape. */
static tn_status get_tensor(const struct memory *m, const char *name, tn_ints shape,
                            tn_tensor **out)
{
    tn_status status = get_state(m, name, out);
    tn_ints got = status == TN_OK ? tn_tensor_shape(*out) : shape;

    if (status == TN_OK && (got.count != shape.count ||
                            memcmp(got.at, shape.at, (size_t)shape.count * sizeof *got.at) != 0))
        return tn_fail(
            TN_ERR_VALUE,
            "state %s: wrong shape, got %lld dimensions, the last of %lld elements; expected %lld "
            "dimensions, the last of %lld elements",
            name, (long long)got.count, (long long)(got.count > 0 ? got.at[got.count - 1] : 1),
            (long long)shape.count, (long long)shape.at[shape.count - 1]);
    if (status == TN_OK)
        *out = tn_cast(*out, tn_tensor_dtype(m->like));
    return *out != NULL ? status : tn_error_last_code();
}

/* Reads the changes: the states old_dirs and old_stps have one in each row. */
static tn_status get_changes(struct memory *m, int64_t total)
{
    tn_tensor *numbers, *changes = NULL, *moves = NULL, *host;
    tn_status status = get_state(m, "ro", &numbers);
    int64_t count = status == TN_OK ? tn_tensor_numel(numbers) : 0, skip;

    if (count == 0)
        return status;
    status = get_tensor(m, "old_dirs", TN_SHAPE(count, total), &changes);
    if (status == TN_OK)
        status = get_tensor(m, "old_stps", TN_SHAPE(count, total), &moves);
    if (status != TN_OK)
        return status;
    skip = count > m->room ? count - m->room : 0; /* history_size became smaller */
    numbers = tn_narrow(tn_reshape(numbers, TN_SHAPE(count)), 0, skip, count - skip);
    host = tn_tensor_empty(TN_SHAPE(count - skip), TN_F64, tn_device_find("cpu"));
    host = numbers != NULL && host != NULL ? tn_copy_(host, numbers) : NULL;
    if (host == NULL ||
        tn_tensor_copy_out(host, m->inverse, (size_t)(count - skip) * sizeof(double)) != TN_OK)
        return tn_error_last_code();
    for (int64_t i = skip; i < count; i++) {
        tn_tensor *change = tn_select(changes, 0, i), *move = tn_select(moves, 0, i);

        if (change == NULL || move == NULL)
            return tn_error_last_code();
        m->changes[m->count] = tn_tensor_keep(change);
        m->moves[m->count++] = tn_tensor_keep(move);
    }
    return TN_OK;
}

static tn_status remember(struct memory *m, int64_t total)
{
    double number = 0;
    tn_tensor *direction = NULL, *gradient = NULL;
    tn_status status = TN_OK;

    m->changes = tn_calloc((size_t)m->room, 2 * sizeof(tn_tensor *) + sizeof(double));
    if (m->changes == NULL)
        return TN_ERR_MEMORY;
    m->moves = m->changes + m->room;
    m->inverse = (double *)(void *)(m->moves + m->room);
    if (tn_optimizer_state(m->self, m->index, "n_iter") == NULL)
        return TN_OK;
    status = get_number(m, "func_evals", &number);
    m->evaluations = (int64_t)number;
    if (status == TN_OK)
        status = get_number(m, "n_iter", &number);
    m->iterations = (int64_t)number;
    if (status != TN_OK || m->iterations == 0)
        return status;
    status = get_tensor(m, "d", TN_SHAPE(total), &direction);
    if (status == TN_OK)
        status = get_tensor(m, "prev_flat_grad", TN_SHAPE(total), &gradient);
    if (status == TN_OK)
        status = get_number(m, "t", &m->t);
    if (status == TN_OK)
        status = get_number(m, "H_diag", &m->scale);
    if (status == TN_OK)
        status = get_number(m, "prev_loss", &m->loss);
    if (status != TN_OK)
        return status;
    lbfgs_hold(&m->direction, direction);
    lbfgs_hold(&m->gradient, gradient);
    return get_changes(m, total);
}

static tn_tensor *number_of(const struct memory *m, double value, tn_dtype dtype)
{
    return tn_tensor_full(TN_SCALAR_SHAPE, value, dtype, tn_tensor_device(m->like));
}

/* Returns `count` vectors as the rows of a matrix. */
static tn_tensor *rows_of(const struct memory *m, tn_tensor *const *rows, int64_t total)
{
    if (m->count > 0)
        return tn_stack(rows, m->count, 0);
    return tn_tensor_full(TN_SHAPE(0, total), 0, tn_tensor_dtype(m->like),
                          tn_tensor_device(m->like));
}

static tn_tensor *inverse_of(const struct memory *m)
{
    tn_tensor *to = tn_tensor_empty(TN_SHAPE(m->count), optim_number_type(m->like),
                                    tn_tensor_device(m->like));

    if (to == NULL || m->count == 0)
        return to;
    return tn_copy_(to, tn_tensor_from(m->inverse, TN_F64, TN_SHAPE(m->count)));
}

/* Makes all tensors before it sets the first state. n_iter, which says that the others are there,
 * comes last, because setting a new state may fail. */
static tn_status save(const struct memory *m, int64_t total)
{
    tn_dtype dtype = optim_number_type(m->like);
    bool whole = m->iterations > 0;
    const struct {
        const char *name;
        tn_tensor *state;
    } all[] = {
        { "d", whole ? m->direction : TN_NONE },
        { "t", whole ? number_of(m, m->t, dtype) : TN_NONE },
        { "old_dirs", whole ? rows_of(m, m->changes, total) : TN_NONE },
        { "old_stps", whole ? rows_of(m, m->moves, total) : TN_NONE },
        { "ro", whole ? inverse_of(m) : TN_NONE },
        { "H_diag", whole ? number_of(m, m->scale, dtype) : TN_NONE },
        { "prev_flat_grad", whole ? m->gradient : TN_NONE },
        { "prev_loss", whole ? number_of(m, m->loss, dtype) : TN_NONE },
        { "func_evals", number_of(m, (double)m->evaluations, TN_I64) },
        { "n_iter", number_of(m, (double)m->iterations, TN_I64) },
    };
    const size_t n = sizeof all / sizeof *all;

    for (size_t i = 0; i < n; i++)
        if (all[i].state == NULL)
            return tn_error_last_code();
    for (size_t i = 0; i < n; i++) {
        tn_status status = TN_OK;

        if (all[i].state != TN_NONE)
            status = tn_optimizer_set_state(m->self, m->index, all[i].name, all[i].state);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* ---- the direction --------------------------------------------------------------------------- */

/* Appends the change of the gradient and of the parameters in the last iteration, unless their
 * product, the curvature, is at most 1e-10. Removes the oldest changes if there is no room. */
static tn_status learn(struct memory *m, tn_tensor *gradient)
{
    tn_tensor *change = tn_sub(gradient, m->gradient);
    tn_tensor *move = tn_mul_scalar(m->direction, m->t);
    double product = 0, square = 0;
    tn_status status = lbfgs_dot(change, move, &product);

    if (status == TN_OK && product > 1e-10)
        status = lbfgs_dot(change, change, &square);
    if (status != TN_OK || !(product > 1e-10))
        return status;
    if (m->count == m->room) {
        tn_tensor_drop(m->changes[0]);
        tn_tensor_drop(m->moves[0]);
        m->count--;
        memmove(m->changes, m->changes + 1, (size_t)m->count * sizeof(tn_tensor *));
        memmove(m->moves, m->moves + 1, (size_t)m->count * sizeof(tn_tensor *));
        memmove(m->inverse, m->inverse + 1, (size_t)m->count * sizeof(double));
    }
    m->changes[m->count] = tn_tensor_keep(change);
    m->moves[m->count] = tn_tensor_keep(move);
    m->inverse[m->count++] = 1 / product;
    m->scale = product / square;
    return TN_OK;
}

/* Returns the gradient times minus the approximated inverse Hessian. The numbers stay on the
 * device. */
static tn_tensor *direction_of(const struct memory *m, tn_tensor *gradient, tn_tensor **weights)
{
    tn_tensor *q = tn_neg(gradient), *r;

    for (int64_t i = m->count - 1; i >= 0; i--) {
        weights[i] = tn_mul_scalar(tn_dot(m->moves[i], q), m->inverse[i]);
        q = tn_sub_(q, tn_mul(m->changes[i], weights[i]));
    }
    r = tn_mul_scalar_(q, m->scale);
    for (int64_t i = 0; i < m->count; i++) {
        tn_tensor *back = tn_mul_scalar(tn_dot(m->changes[i], r), m->inverse[i]);

        r = tn_add_(r, tn_mul(m->moves[i], tn_sub(weights[i], back)));
    }
    return r;
}

static tn_status next_direction(struct memory *m, tn_tensor *gradient)
{
    tn_tensor **weights, *direction;
    tn_status status;

    if (m->iterations == 1) {
        direction = tn_neg(gradient);
        m->scale = 1;
    } else {
        status = learn(m, gradient);
        if (status != TN_OK)
            return status;
        weights = tn_malloc((size_t)(m->count + 1) * sizeof *weights);
        if (weights == NULL)
            return TN_ERR_MEMORY;
        direction = direction_of(m, gradient, weights);
        tn_free(weights);
    }
    if (direction == NULL)
        return tn_error_last_code();
    lbfgs_hold(&m->direction, direction);
    return TN_OK;
}

/* ---- the step -------------------------------------------------------------------------------- */

/* The state of a step's loop. */
struct loop {
    const struct lbfgs *s;
    struct lbfgs_step *step;
    struct memory *memory;
    struct lbfgs_point at;
    int64_t iteration, most_evaluations;
    bool flat; /* the gradient is below tolerance_grad */
    bool ends;
};

static tn_status is_flat(const struct loop *loop, bool *flat)
{
    double largest;
    tn_status status = norm_of(loop->at.gradient, INFINITY, &largest);

    *flat = largest <= loop->s->tolerance_grad;
    return status;
}

/* Moves the parameters along the direction. */
static tn_status go(struct loop *loop)
{
    const struct lbfgs *s = loop->s;
    struct memory *m = loop->memory;
    tn_status status = TN_OK;

    if (s->line_search_fn != NULL) {
        status = lbfgs_search(loop->step, m->direction, m->t,
                              loop->most_evaluations - loop->step->evaluations, &loop->at);
        m->t = loop->at.t;
    }
    if (status == TN_OK)
        status = lbfgs_move(loop->step, m->t, m->direction);
    if (status == TN_OK && s->line_search_fn == NULL && loop->iteration != s->max_iter)
        status = lbfgs_evaluate(loop->step, &loop->at);
    else if (status == TN_OK && s->line_search_fn == NULL)
        return TN_OK; /* the last iteration needs no new gradient */
    return status == TN_OK ? is_flat(loop, &loop->flat) : status;
}

static tn_status iterate(struct loop *loop)
{
    const struct lbfgs *s = loop->s;
    struct memory *m = loop->memory;
    double sum = 0, largest = 0;
    tn_status status;

    loop->iteration++;
    m->iterations++;
    status = next_direction(m, loop->at.gradient);
    if (status != TN_OK)
        return status;
    lbfgs_hold(&m->gradient, loop->at.gradient);
    m->loss = loop->at.loss;
    m->t = s->lr;
    if (m->iterations == 1) {
        status = norm_of(loop->at.gradient, 1, &sum);
        m->t = (1 / sum < 1 ? 1 / sum : 1) * s->lr;
    }
    if (status == TN_OK)
        status = lbfgs_dot(loop->at.gradient, m->direction, &loop->at.slope);
    loop->at.t = 0;
    if (status != TN_OK || loop->at.slope > -s->tolerance_change) {
        loop->ends = true;
        return status;
    }
    status = go(loop);
    if (status == TN_OK)
        status = norm_of(m->direction, INFINITY, &largest);
    loop->ends = loop->iteration == s->max_iter ||
                 loop->step->evaluations >= loop->most_evaluations || loop->flat ||
                 largest * fabs(m->t) <= s->tolerance_change ||
                 fabs(loop->at.loss - m->loss) < s->tolerance_change;
    return status;
}

static tn_status run(struct loop *loop)
{
    tn_status status = lbfgs_evaluate(loop->step, &loop->at);

    if (status == TN_OK && loop->step->total == 0)
        return TN_OK;
    if (status == TN_OK)
        status = is_flat(loop, &loop->ends);
    while (status == TN_OK && !loop->ends && loop->iteration < loop->s->max_iter) {
        uint64_t scope = tn_scope_begin();

        status = iterate(loop);
        tn_scope_end(scope);
    }
    loop->memory->evaluations += loop->step->evaluations;
    return status == TN_OK ? save(loop->memory, loop->step->total) : status;
}

/* Complex parameters count as their real views: complex128 goes with float64. */
static tn_status check_parameters(tn_optimizer *self, const tn_step_args *args, int64_t *total)
{
    tn_tensor *first = optim_real(args->parameters[0]);

    if (tn_optimizer_group_count(self) != 1)
        return tn_fail(TN_ERR_VALUE,
                       "LBFGS doesn't support per-parameter options (parameter groups), got %lld "
                       "groups; expected one",
                       (long long)tn_optimizer_group_count(self));
    for (int64_t i = 0; i < args->count; i++) {
        tn_tensor *p = optim_real(args->parameters[i]);

        if (first == NULL || p == NULL)
            return tn_error_last_code();
        *total += tn_tensor_numel(p);
        if (tn_tensor_device(p) != tn_tensor_device(first) ||
            tn_tensor_dtype(p) != tn_tensor_dtype(first))
            return tn_fail(TN_ERR_VALUE,
                           "parameter %lld: it is %s on %s; expected the dtype and the device of "
                           "the first, %s on %s",
                           (long long)args->index[i],
                           tn_dtype_name(tn_tensor_dtype(args->parameters[i])),
                           tn_device_name(tn_tensor_device(p)),
                           tn_dtype_name(tn_tensor_dtype(args->parameters[0])),
                           tn_device_name(tn_tensor_device(first)));
    }
    return TN_OK;
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    const struct lbfgs *s = args->options;
    struct lbfgs_step one = { .args = args, .maximize = s->maximize };
    struct memory memory = { .self = self,
                             .index = args->index[0],
                             .like = optim_real(args->parameters[0]),
                             .room = s->history_size };
    struct loop loop = { .s = s, .step = &one, .memory = &memory };
    tn_status status = check_parameters(self, args, &one.total);

    loop.most_evaluations = s->max_eval == INT64_MIN ? s->max_iter / 4 * 5 + s->max_iter % 4 * 5 / 4
                                                     : s->max_eval;
    if (status != TN_OK)
        return status;
    status = remember(&memory, one.total);
    if (status == TN_OK)
        status = run(&loop);
    lbfgs_hold(&loop.at.gradient, NULL);
    forget(&memory);
    return status;
}

const tn_optimizer_def optim_lbfgs = {
    TN_HEAD(tn_optimizer_def),
    .name = "LBFGS",
    .help = "quasi-Newton steps from a history of gradients; needs a closure",
    .options = table,
    .data_size = sizeof(struct lbfgs),
    .check = check,
    .flags = TN_OPTIMIZER_CLOSURE,
    .step = step,
};
