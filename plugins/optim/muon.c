/* SPDX-License-Identifier: MIT
 *
 * Muon, as torch.optim.Muon documents it, for parameters with two dimensions:
 *   b = b + (1 - momentum) * (gradient - b)
 *   u = nesterov: gradient + momentum * (b - gradient), else b
 *   u is made nearly orthogonal by ns_steps iterations of Newton-Schulz:
 *     u = u / max(norm of u, eps); A = u u^T; u = a * u + (b * A + c * A A) u
 *   p = p * (1 - lr * weight_decay) - lr * factor * u, with the factor that adjust_lr_fn names
 * As in torch.optim.Muon, the iterations round to bfloat16; a device without bfloat16 computes them
 * in float32. Products are those of bfloat16 where the device adds to them before it rounds
 * (a kernel for addmm), otherwise products of the rounded numbers in float32. */
#include "optim.h"

#include <math.h>
#include <string.h>

struct muon {
    double lr;
    double weight_decay;
    double momentum;
    bool nesterov;
    tn_floats ns_coefficients;
    double eps;
    int64_t ns_steps;
    const char *adjust_lr_fn;
};

static const tn_option table[] = {
    TN_OPTION_FLOAT(struct muon, lr, "0.001", "learning rate"),
    TN_OPTION_FLOAT(struct muon, weight_decay, "0.1", "decoupled weight decay"),
    TN_OPTION_FLOAT(struct muon, momentum, "0.95", "momentum factor"),
    TN_OPTION_BOOL(struct muon, nesterov, "True", "Nesterov momentum"),
    TN_OPTION_FLOATS(struct muon, ns_coefficients, "(3.4445, -4.775, 2.0315)",
                     "the polynomial of the Newton-Schulz iterations"),
    TN_OPTION_FLOAT(struct muon, eps, "1e-07", "lower bound of the norm of a step"),
    TN_OPTION_INT(struct muon, ns_steps, "5", "number of Newton-Schulz iterations"),
    TN_OPTION_ROW(struct muon, adjust_lr_fn, "None",
                  "how the rate depends on the shape: 'original' (also None), 'match_rms_adamw' or "
                  "'spectral_unclamped'",
                  TN_OPTION_KIND_STRING, TN_OPTION_OPTIONAL),
    TN_OPTION_END
};

enum adjust { ORIGINAL, MATCH_RMS_ADAMW, SPECTRAL_UNCLAMPED, ADJUSTS };

/* Returns which function `name` is, ADJUSTS if it is none of them. */
static enum adjust adjust_of(const char *name)
{
    static const char *const names[] = { "original", "match_rms_adamw", "spectral_unclamped" };
    int i = 0;

    while (name != NULL && i < ADJUSTS && strcmp(name, names[i]) != 0)
        i++;
    return (enum adjust)i;
}

static tn_status check(tn_optimizer *self, const void *options)
{
    const struct muon *s = options;
    const char *name = tn_optimizer_type(self);
    tn_status status = optim_check_least(self, "Learning rate should be >= 0 but is", s->lr, 0);

    if (status == TN_OK)
        status = optim_check_least(self, "momentum should be >= 0 but is", s->momentum, 0);
    if (status == TN_OK)
        status = optim_check_least(self, "weight decay should be >= 0 but is", s->weight_decay, 0);
    if (status == TN_OK && adjust_of(s->adjust_lr_fn) == ADJUSTS)
        status = tn_fail(TN_ERR_VALUE,
                         "%s: Adjust learning rate function %s is not supported; expected "
                         "original, match_rms_adamw, spectral_unclamped or None",
                         name, s->adjust_lr_fn);
    if (status == TN_OK && (s->ns_steps < 0 || s->ns_steps >= 100))
        status = tn_fail(TN_ERR_VALUE,
                         "%s: ns_steps: out of range, got %lld; expected 0 or more and less than "
                         "100 for computational efficiency",
                         name, (long long)s->ns_steps);
    return status == TN_OK ? optim_check_count(self, "ns_coefficients", &s->ns_coefficients, 3)
                           : status;
}

/* ---- orthogonal steps ------------------------------------------------------------------------ */

static bool has_bfloat16(const tn_device *device)
{
    tn_device_info info = { .head.size = sizeof info };

    return tn_device_describe(device, &info) == TN_OK && (info.dtypes & TN_BIT(TN_BF16)) != 0;
}

/* Returns x in float32, rounded to bfloat16 if `shorter`. Sums of products are computed in float32
 * and rounded once, as in a product of bfloat16 matrices with a float32 accumulator. */
static tn_tensor *rounded(tn_tensor *x, bool shorter)
{
    return shorter ? tn_cast(tn_cast(x, TN_BF16), TN_F32) : tn_cast(x, TN_F32);
}

static tn_tensor *turned(tn_tensor *x)
{
    return tn_transpose(x, 0, 1);
}

/* Returns scale * x + by * a . b, rounded. */
static tn_tensor *combined(tn_tensor *x, double scale, tn_tensor *a, tn_tensor *b, double by,
                           bool shorter)
{
    return rounded(tn_add(tn_mul_scalar(x, scale), tn_matmul(a, b), tn_scalar_float(by)), shorter);
}

/* Returns the result of the iterations in bfloat16 that start with u, if the device has a kernel
 * for addmm that rounds once, as `combined` does. Returns NULL if it has none or if there are no
 * iterations; also on failure, which sets *failed. */
static tn_tensor *iterated_short(const struct muon *s, tn_tensor *u, bool *failed)
{
    const double *k = s->ns_coefficients.at;
    const tn_op *op = tn_op_find("addmm", 0);
    uint64_t mark = tn_error_mark();
    tn_addmm_options square = TN_ADDMM_OPTIONS, last = TN_ADDMM_OPTIONS;
    tn_tensor *y = tn_copy(tn_cast(u, TN_BF16)), *gram = tn_matmul(y, turned(y));
    tn_tensor *in[3] = { gram, gram, gram };
    tn_prepared *first, *second = NULL;
    tn_status status = gram != NULL && op != NULL ? TN_OK : tn_error_last_code();

    *failed = status != TN_OK;
    if (*failed || s->ns_steps == 0)
        return NULL;
    square.beta = tn_scalar_float(k[1]);
    square.alpha = tn_scalar_float(k[2]);
    last.beta = tn_scalar_float(k[0]);
    first = tn_op_prepare(op, in, 3, &square, 0);
    in[0] = in[2] = y;
    if (first != NULL)
        second = tn_op_prepare(op, in, 3, &last, 0);
    if (first == NULL || second == NULL)
        tn_error_restore(mark);
    for (int64_t i = 0; first != NULL && second != NULL && i < s->ns_steps && y != NULL; i++) {
        tn_tensor *polynomial = NULL;

        if (i > 0)
            gram = tn_matmul(y, turned(y));
        in[0] = in[1] = in[2] = gram;
        if (gram == NULL || tn_prepared_run(first, in, 3, &polynomial, 1) != TN_OK)
            polynomial = NULL;
        in[0] = in[2] = y;
        in[1] = polynomial;
        if (polynomial == NULL || tn_prepared_run(second, in, 3, &y, 1) != TN_OK)
            y = NULL;
        *failed = y == NULL;
    }
    if (first == NULL || second == NULL)
        y = NULL;
    tn_prepared_drop(first);
    tn_prepared_drop(second);
    return y;
}

static tn_tensor *orthogonal(const struct muon *s, tn_tensor *update)
{
    const double *k = s->ns_coefficients.at;
    tn_ints shape = tn_tensor_shape(update);
    bool tall = shape.at[0] > shape.at[1], shorter = has_bfloat16(tn_tensor_device(update));
    bool failed = false;
    tn_tensor *u = rounded(update, shorter), *y = NULL;
    tn_clamp_options least = TN_CLAMP_OPTIONS;

    least.min = tn_scalar_float(s->eps);
    if (tall)
        u = turned(u);
    u = rounded(tn_div(u, rounded(tn_clamp(rounded(tn_norm(u), shorter), least.min), shorter)),
                shorter);
    if (shorter && u != NULL)
        y = iterated_short(s, u, &failed);
    if (y != NULL || failed)
        return tall && y != NULL ? turned(y) : y;
    for (int64_t i = 0; i < s->ns_steps; i++) {
        tn_tensor *gram = rounded(tn_matmul(u, turned(u)), shorter);

        u = combined(u, k[0], combined(gram, k[1], gram, gram, k[2], shorter), u, 1, shorter);
    }
    return tall ? turned(u) : u;
}

/* ---- the step -------------------------------------------------------------------------------- */

static double factor_of(const struct muon *s, tn_ints shape)
{
    double rows = (double)shape.at[0], columns = (double)shape.at[1];

    switch (adjust_of(s->adjust_lr_fn)) {
    case MATCH_RMS_ADAMW: return 0.2 * sqrt(rows > columns ? rows : columns);
    case SPECTRAL_UNCLAMPED: return sqrt(rows / columns);
    default: return rows > columns ? sqrt(rows / columns) : 1;
    }
}

static tn_tensor *buffer_of(tn_optimizer *self, int64_t index, tn_tensor *parameter)
{
    static const char name[] = "momentum_buffer";
    tn_tensor *buffer = tn_optimizer_state(self, index, name);
    tn_dtype dtype = tn_tensor_dtype(parameter);

    if (buffer != NULL && tn_tensor_dtype(buffer) == dtype)
        return buffer;
    buffer = buffer != NULL ? tn_cast(buffer, dtype)
                            : tn_tensor_full(tn_tensor_shape(parameter), 0, dtype,
                                             tn_tensor_device(parameter));
    if (buffer == NULL || tn_optimizer_set_state(self, index, name, buffer) != TN_OK)
        return NULL;
    return buffer;
}

static tn_status step_one(tn_optimizer *self, const struct muon *s, int64_t index, tn_tensor *p,
                          tn_tensor *gradient)
{
    tn_ints shape = tn_tensor_shape(p);
    tn_tensor *buffer, *update;

    if (tn_tensor_numel(p) == 0)
        return TN_OK;
    buffer = buffer_of(self, index, p);
    buffer = tn_lerp_scalar_(buffer, gradient, 1 - s->momentum);
    update = s->nesterov ? tn_lerp_scalar(gradient, buffer, s->momentum) : buffer;
    update = update != NULL ? orthogonal(s, update) : NULL;
    update = tn_mul_scalar(tn_cast(update, tn_tensor_dtype(p)), s->lr * factor_of(s, shape));
    if (update == NULL || tn_mul_scalar_(p, 1 - s->lr * s->weight_decay) == NULL ||
        tn_sub_(p, update) == NULL)
        return tn_error_last_code();
    return TN_OK;
}

static tn_status step(tn_optimizer *self, const tn_step_args *args)
{
    tn_status status = optim_check_real(self, args);

    for (int64_t i = 0; i < args->count && status == TN_OK; i++)
        if (tn_tensor_ndim(args->parameters[i]) != 2)
            status = tn_fail(TN_ERR_VALUE,
                             "%s only supports 2D parameters: parameter %lld: wrong number of "
                             "dimensions, got %lld; expected 2",
                             tn_optimizer_type(self), (long long)args->index[i],
                             (long long)tn_tensor_ndim(args->parameters[i]));
    for (int64_t i = 0; i < args->count && status == TN_OK; i++) {
        uint64_t scope = tn_scope_begin();

        status = step_one(self, args->options, args->index[i], args->parameters[i],
                          args->gradients[i]);
        tn_scope_end(scope);
    }
    return status;
}

const tn_optimizer_def optim_muon = {
    TN_HEAD(tn_optimizer_def),
    .name = "Muon",
    .help = "momentum, made nearly orthogonal; for parameters with two dimensions",
    .options = table,
    .data_size = sizeof(struct muon),
    .check = check,
    .flags = TN_OPTIMIZER_MATRICES,
    .step = step,
};
