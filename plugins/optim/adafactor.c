/* SPDX-License-Identifier: MIT
 *
 * Adafactor, as torch.optim.Adafactor documents it. With t the number of this step and
 * f = t^beta2_decay:
 *   a = max(eps[1], rms(p)) * min(lr, 1 / sqrt(t))
 *   p = p * (1 - lr * weight_decay)
 *   for two dimensions or more:
 *     r = r + f * (mean of g^2 along rows - r)
 *     c = c + f * (mean of g^2 along columns - c)
 *     v = r * c / max(mean of r, eps[0])
 *   otherwise:
 *     v = v + f * (g^2 - v)
 *   u = g / sqrt(max(v, eps[0]^2))
 *   p = p - a / max(1, rms(u) / d) * u
 * So the averages of a matrix need only the memory of a row and a column. Sums over a parameter
 * stay on the device. */
#include "optim.h"

#include <math.h>

struct adafactor {
    double lr;
    double beta2_decay;
    tn_floats eps;
    double d;
    double weight_decay;
    bool maximize;
};

static const tn_option table[] = {
    TN_OPTION_FLOAT(struct adafactor, lr, "0.01", "largest relative step size"),
    TN_OPTION_FLOAT(struct adafactor, beta2_decay, "-0.8",
                    "power of the step that is the weight of new squares"),
    TN_OPTION_ROW(struct adafactor, eps, "(None, 0.001)",
                  "lower bounds of the variance (None: epsilon of the dtype) and of the size of p",
                  TN_OPTION_KIND_FLOATS, TN_OPTION_OPTIONAL),
    TN_OPTION_FLOAT(struct adafactor, d, "1.0", "bound of the size of a step"),
    TN_OPTION_FLOAT(struct adafactor, weight_decay, "0.0", "decoupled weight decay"),
    TN_OPTION_ROW(struct adafactor, maximize, "False", "maximizes the objective",
                  TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static tn_status check(tn_optimizer *self, const void *options)
{
    const struct adafactor *s = options;
    tn_status status = optim_check_least(self, "Learning rate should be >= 0 but is", s->lr, 0);

    if (status == TN_OK && !(s->beta2_decay <= 0.0))
        status = tn_fail(TN_ERR_VALUE,
                         "%s: beta2_decay should be <= 0 but is: %g; expected 0 or less",
                         tn_optimizer_type(self), s->beta2_decay);
    if (status == TN_OK)
        status = optim_check_count(self, "eps", &s->eps, 2);
    if (status == TN_OK && !isnan(s->eps.at[0]))
        status = optim_check_least(self, "epsilon1 should be >= 0 but is", s->eps.at[0], 0);
    if (status == TN_OK)
        status = optim_check_least(self, "epsilon2 should be >= 0 but is", s->eps.at[1], 0);
    if (status == TN_OK)
        status = optim_check_least(self, "Clipping threshold d should be >= 1 but is", s->d, 1);
    if (status == TN_OK)
        status = optim_check_least(self, "weight_decay should be >= 0 but is", s->weight_decay, 0);
    return status;
}

/* The parameter of a step, and its number of steps. */
struct one {
    const struct adafactor *s;
    tn_optimizer *self;
    int64_t index;
    tn_tensor *p, *g;
    int64_t steps;
};

static double epsilon_of(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F64: return 0x1p-52;
    case TN_F16: return 0x1p-10;
    case TN_BF16: return 0x1p-7;
    default: return 0x1p-23;
    }
}

/* Returns the state `name` of a parameter: zeros of the parameter's shape, but with size 1 in the
 * dimension `dim`, unless it is -1. A state of another dtype is converted. */
static tn_tensor *state_of(const struct one *one, const char *name, int64_t dim)
{
    tn_tensor *state = tn_optimizer_state(one->self, one->index, name);
    tn_dtype dtype = tn_tensor_dtype(one->p);
    tn_ints shape = tn_tensor_shape(one->p);
    int64_t sizes[TN_MAX_DIMS];

    if (state != NULL && tn_tensor_dtype(state) == dtype)
        return state;
    for (int64_t i = 0; i < shape.count; i++)
        sizes[i] = i == dim ? 1 : shape.at[i];
    state = state != NULL ? tn_cast(state, dtype)
                          : tn_tensor_full((tn_ints){ sizes, shape.count }, 0, dtype,
                                           tn_tensor_device(one->p));
    if (state == NULL || tn_optimizer_set_state(one->self, one->index, name, state) != TN_OK)
        return NULL;
    return state;
}

/* state = state + weight * (mean of g^2 along dim - state) */
static tn_tensor *average(tn_tensor *state, tn_tensor *squares, int64_t dim, double weight)
{
    return state == NULL
               ? NULL
               : tn_copy_(state,
                          tn_lerp_scalar(state, tn_mean(squares, TN_INTS(dim), true), weight));
}

static tn_tensor *at_least(tn_tensor *x, double least)
{
    return tn_clamp(x, tn_scalar_float(least));
}

/* Updates the averages, and returns the estimate of the variance from them. */
static tn_tensor *variance(const struct one *one, tn_tensor *g, double least)
{
    double weight = pow((double)one->steps, one->s->beta2_decay);
    int64_t dims = tn_tensor_ndim(one->p), dim = dims - 2;
    tn_tensor *squares = tn_mul(g, g), *row, *column;

    if (squares == NULL)
        return NULL;
    if (dims < 2) {
        tn_tensor *state = state_of(one, "variance", -1);

        return state == NULL ? NULL : tn_copy_(state, tn_lerp_scalar(state, squares, weight));
    }
    row = average(state_of(one, "row_var", dims - 1), squares, dims - 1, weight);
    column = average(state_of(one, "col_var", dim), squares, dim, weight);
    if (row == NULL || column == NULL)
        return NULL;
    return tn_div(tn_mul(row, column), at_least(tn_mean(row, TN_INTS(dim), true), least));
}

/* Returns the root of the mean of squares, a 0-d tensor of float32 or float64. */
static tn_tensor *rms(tn_tensor *x)
{
    if (x == NULL)
        return NULL;
    return tn_mul_scalar(
        tn_norm(x, 2.0, tn_no_ints(), false, tn_tensor_dtype(x) == TN_F64 ? TN_F64 : TN_F32),
        1 / sqrt((double)tn_tensor_numel(x)));
}

static tn_status step_one(const struct one *one)
{
    const struct adafactor *s = one->s;
    double first = s->eps.at[0], rate = 1 / sqrt((double)one->steps);
    double least = isnan(first) ? epsilon_of(tn_tensor_dtype(one->p)) : first;
    tn_tensor *g = s->maximize ? tn_neg(one->g) : one->g, *a, *u;

    a = tn_mul_scalar(at_least(rms(one->p), s->eps.at[1]), rate < s->lr ? rate : s->lr);
    if (s->weight_decay != 0 && tn_mul_scalar_(one->p, 1 - s->lr * s->weight_decay) == NULL)
        return tn_error_last_code();
    u = tn_mul(tn_rsqrt(at_least(variance(one, g, least), least * least)), g);
    a = tn_div(a, at_least(tn_mul_scalar(rms(u), 1 / s->d), 1));
    if (a == NULL || tn_sub_(one->p, tn_mul(u, tn_cast(a, tn_tensor_dtype(u)))) == NULL)
        return tn_error_last_code();
    return TN_OK;
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    tn_status status = optim_check_real(self, args);

    for (int64_t i = 0; i < args->count && status == TN_OK; i++) {
        const struct one one = { args->options,      self,
                                 args->index[i],     args->parameters[i],
                                 args->gradients[i], tn_optimizer_steps(self, args->index[i]) };
        uint64_t scope = tn_scope_begin();

        if (tn_tensor_numel(one.p) > 0)
            status = step_one(&one);
        tn_scope_end(scope);
    }
    return status;
}

const tn_optimizer_def optim_adafactor = {
    TN_HEAD(tn_optimizer_def),
    .name = "Adafactor",
    .help = "Adam with averages of rows and columns, which need little memory",
    .options = table,
    .data_size = sizeof(struct adafactor),
    .check = check,
    .step = step,
};
