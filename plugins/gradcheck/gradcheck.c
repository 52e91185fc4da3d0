/* SPDX-License-Identifier: MIT
 *
 * The plugin tenon.gradcheck, which provides the functions of <tenon/gradcheck.h>: compares
 * gradients with central differences, in float64 and complex128. All outputs are multiplied by
 * fixed weights and added up. Therefore one backward is enough, and two forwards for each real
 * number of an input. */
#include <tenon/plugin.h>

#include <tenon/gradcheck.h>

#include <math.h>
#include <string.h>

typedef struct check {
    tn_status (*code)(void *user, tn_tensor *const *in, tn_tensor **out);
    void *user;
    tn_tensor *const *in;
    int64_t n_in, n_out;
    tn_tensor **leaves; /* owned by the scope, as the others */
    tn_tensor **out;
    tn_tensor **gradients;
    bool constants; /* outputs without a graph are constants, not an error */
} check;

/* ---- arguments ------------------------------------------------------------------------------- */

static bool given(bool given, const char *what)
{
    return given || tn_fail(TN_ERR_VALUE, "%s: it is NULL; expected a pointer", what) == TN_OK;
}

static bool is_tensor(const tn_tensor *tensor)
{
    return tensor != NULL && tensor != TN_NONE;
}

/* Fails for element `i` of an array, which is no tensor. NULL is the result of an earlier failure,
 * whose code is returned. */
static tn_status no_tensor(const tn_tensor *tensor, const char *what, int64_t i)
{
    char element[128];

    if (tensor != NULL)
        return tn_fail(TN_ERR_TYPE, "%s[%lld]: no tensor, got TN_NONE; expected a tensor", what,
                       (long long)i);
    tn_snprint(element, sizeof element, "%s[%lld]: tensor", what, (long long)i);
    return tn_error_null(element);
}

/* ---- first derivatives ----------------------------------------------------------------------- */

/* Returns a weight between 0.5 and 1.5. The weights have no pattern that could hide a transposed
 * gradient. */
static double weight(int64_t output, int64_t element)
{
    uint64_t x = ((uint64_t)output << 40) + (uint64_t)element + 1;

    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return 0.5 + (double)(x >> 11) * 0x1p-53;
}

/* Returns how many real numbers a tensor has: one per element in float64, two in complex128.
 * Weights, gradients and differences are taken for each real number. */
static int64_t parts_of(const tn_tensor *tensor)
{
    return tn_tensor_dtype(tensor) == TN_C128 ? 2 * tn_tensor_numel(tensor)
                                              : tn_tensor_numel(tensor);
}

static bool is_precise(const tn_tensor *tensor)
{
    return tn_tensor_dtype(tensor) == TN_F64 || tn_tensor_dtype(tensor) == TN_C128;
}

static double *values_of(const tn_tensor *tensor)
{
    size_t bytes = (size_t)parts_of(tensor) * sizeof(double);
    double *values = tn_malloc(bytes > 0 ? bytes : 1);

    if (values != NULL && tn_tensor_copy_out(tensor, values, bytes) != TN_OK) {
        tn_free(values);
        return NULL;
    }
    return values;
}

static tn_status forward(check *c)
{
    uint64_t mark = tn_error_mark();
    tn_status status;

    for (int64_t i = 0; i < c->n_out; i++)
        c->out[i] = NULL;
    status = tn_error_returned(c->code(c->user, c->leaves, c->out), mark, "tn_gradcheck: the code");
    for (int64_t i = 0; i < c->n_out && status == TN_OK; i++) {
        if (!is_tensor(c->out[i]))
            return no_tensor(c->out[i], "tn_gradcheck: the code: out", i);
        if (!is_precise(c->out[i]))
            return tn_fail(
                TN_ERR_TYPE,
                "tn_gradcheck: output %lld: not precise enough, got %s; expected float64 or "
                "complex128",
                (long long)i, tn_dtype_name(tn_tensor_dtype(c->out[i])));
    }
    return status;
}

/* Computes the weighted sum of all outputs. */
static tn_status number(check *c, double *sum)
{
    uint64_t scope = tn_scope_begin();
    tn_status status;

    tn_grad_begin(false);
    status = forward(c);
    tn_grad_end();
    *sum = 0;
    for (int64_t i = 0; i < c->n_out && status == TN_OK; i++) {
        double *values = values_of(c->out[i]);

        if (values == NULL) {
            status = tn_error_last_code();
            break;
        }
        for (int64_t k = 0; k < parts_of(c->out[i]); k++)
            *sum += values[k] * weight(i, k);
        tn_free(values);
    }
    tn_scope_end(scope);
    return status;
}

static tn_status analytic(check *c)
{
    tn_tensor **cotangents = tn_calloc((size_t)c->n_out, sizeof *cotangents);
    tn_backward_options options = { .size = sizeof options, .allow_unused = 1 };
    tn_status status;
    int64_t n = 0;

    if (cotangents == NULL)
        return TN_ERR_MEMORY;
    status = forward(c);
    for (int64_t i = 0; i < c->n_out && status == TN_OK; i++) {
        int64_t count = parts_of(c->out[i]);

        if (c->constants && !tn_tensor_requires_grad(c->out[i]))
            continue;
        double *values = tn_malloc((size_t)count * sizeof *values + 1);

        c->out[n] = c->out[i];
        cotangents[n] = tn_tensor_empty(tn_tensor_shape(c->out[i]), tn_tensor_dtype(c->out[i]),
                                        tn_tensor_device(c->out[i]));
        if (values == NULL || cotangents[n] == NULL) {
            tn_free(values);
            status = tn_error_last_code();
            break;
        }
        for (int64_t k = 0; k < count; k++)
            values[k] = weight(i, k);
        status = tn_tensor_copy_in(cotangents[n++], values, (size_t)count * sizeof *values);
        tn_free(values);
    }
    for (int64_t i = 0; i < c->n_in; i++)
        c->gradients[i] = TN_NONE;
    if (status == TN_OK && n > 0)
        status = tn_grad(c->out, cotangents, n, c->leaves, c->gradients, c->n_in, &options);
    tn_free(cotangents);
    return status;
}

static tn_status compare(check *c, int64_t i, double step, double tolerance)
{
    tn_tensor *leaf = c->leaves[i];
    size_t bytes = (size_t)parts_of(leaf) * sizeof(double);
    int64_t each = tn_tensor_dtype(leaf) == TN_C128 ? 2 : 1;
    double *x = values_of(leaf), *g = NULL;
    tn_status status = TN_OK;

    if (c->gradients[i] != TN_NONE)
        g = values_of(c->gradients[i]);
    if (x == NULL || (g == NULL && c->gradients[i] != TN_NONE))
        status = tn_error_last_code();
    for (int64_t k = 0; k < parts_of(leaf) && status == TN_OK; k++) {
        double at = x[k], above = 0, below = 0, numeric, found = g != NULL ? g[k] : 0;

        x[k] = at + step;
        status = tn_tensor_copy_in(leaf, x, bytes);
        if (status == TN_OK)
            status = number(c, &above);
        x[k] = at - step;
        if (status == TN_OK)
            status = tn_tensor_copy_in(leaf, x, bytes);
        if (status == TN_OK)
            status = number(c, &below);
        x[k] = at;
        if (status != TN_OK)
            break;
        numeric = (above - below) / (2 * step);
        if (!(fabs(numeric - found) <= tolerance * (1 + fabs(numeric))))
            status = tn_fail(
                TN_ERR_ASSERT,
                "tn_gradcheck: input %lld, element %lld%s: wrong derivative, got %g; expected %g "
                "within %g (central differences)",
                (long long)i, (long long)(k / each),
                each == 1    ? ""
                : k % 2 == 0 ? ", real part"
                             : ", imaginary part",
                found, numeric, tolerance * (1 + fabs(numeric)));
    }
    if (status == TN_OK)
        status = tn_tensor_copy_in(leaf, x, bytes);
    tn_free(x);
    tn_free(g);
    return status;
}

static tn_status check_input(tn_tensor *input, int64_t i, const char *who)
{
    char what[64];

    tn_snprint(what, sizeof what, "%s: in", who);
    if (!is_tensor(input))
        return no_tensor(input, what, i);
    return is_precise(input)
               ? TN_OK
               : tn_fail(TN_ERR_TYPE,
                         "%s: input %lld: not precise enough, got %s; expected float64 or "
                         "complex128",
                         who, (long long)i, tn_dtype_name(tn_tensor_dtype(input)));
}

/* Copies the inputs, so that the tensors of the caller are not changed. */
static tn_status copy_inputs(check *c)
{
    for (int64_t i = 0; i < c->n_in; i++) {
        tn_tensor *from = c->in[i];
        tn_status status = check_input(from, i, "tn_gradcheck");

        if (status != TN_OK)
            return status;
        tn_grad_begin(false);
        c->leaves[i] = tn_clone(from);
        tn_grad_end();
        if (c->leaves[i] == NULL)
            return tn_error_last_code();
        status = tn_tensor_set_requires_grad(c->leaves[i], true);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status run_check(check c, double step, double tolerance)
{
    int64_t n_in = c.n_in, n_out = c.n_out;
    uint64_t scope;
    tn_status status;

    if (n_in < 1 || n_out < 1)
        return tn_fail(TN_ERR_VALUE,
                       "tn_gradcheck: no inputs or no outputs, got %lld and %lld; expected at "
                       "least one of each",
                       (long long)n_in, (long long)n_out);
    c.leaves = tn_calloc((size_t)(2 * n_in + n_out), sizeof *c.leaves);
    if (c.leaves == NULL)
        return TN_ERR_MEMORY;
    c.gradients = c.leaves + n_in;
    c.out = c.gradients + n_in;
    scope = tn_scope_begin();
    tn_grad_begin(true);
    status = copy_inputs(&c);
    if (status == TN_OK)
        status = analytic(&c);
    for (int64_t i = 0; i < n_in && status == TN_OK; i++)
        status = compare(&c, i, step > 0 ? step : 1e-6, tolerance > 0 ? tolerance : 1e-6);
    tn_grad_end();
    tn_scope_end(scope);
    tn_free(c.leaves);
    return status;
}

static tn_status first_derivatives(tn_status (*code)(void *user, tn_tensor *const *in,
                                                     tn_tensor **out),
                                   void *user, tn_tensor *const *in, int64_t n_in, int64_t n_out,
                                   double step, double tolerance)
{
    if (!given(code != NULL, "tn_gradcheck: code") ||
        !given(in != NULL || n_in <= 0, "tn_gradcheck: in"))
        return TN_ERR_VALUE;
    return run_check((check){ .code = code, .user = user, .in = in, .n_in = n_in, .n_out = n_out },
                     step, tolerance);
}

/* ---- second derivatives ---------------------------------------------------------------------- */

typedef struct second {
    tn_status (*code)(void *user, tn_tensor *const *in, tn_tensor **out);
    void *user;
    int64_t n_in, n_out;
    tn_tensor **out; /* space for n_out */
} second;

/* Computes the gradients of the code's outputs with respect to its inputs. In `in` the cotangents
 * come after the inputs. */
static tn_status gradients_of(void *user, tn_tensor *const *in, tn_tensor **out)
{
    second *s = user;
    tn_backward_options options = { .size = sizeof options, .create_graph = 1, .allow_unused = 1 };
    uint64_t mark = tn_error_mark();
    tn_status status;

    tn_grad_begin(true);
    for (int64_t i = 0; i < s->n_out; i++)
        s->out[i] = NULL;
    status = tn_error_returned(s->code(s->user, in, s->out), mark, "tn_gradgradcheck: the code");
    if (status == TN_OK)
        status = tn_grad(s->out, in + s->n_in, s->n_out, in, out, s->n_in, &options);
    for (int64_t i = 0; i < s->n_in && status == TN_OK; i++)
        if (out[i] == TN_NONE) {
            out[i] = tn_tensor_full(tn_tensor_shape(in[i]), 0, tn_tensor_dtype(in[i]),
                                    tn_tensor_device(in[i]));
            if (out[i] == NULL)
                status = tn_error_last_code();
        }
    tn_grad_end();
    return status;
}

static tn_status second_derivatives(tn_status (*code)(void *user, tn_tensor *const *in,
                                                      tn_tensor **out),
                                    void *user, tn_tensor *const *in, int64_t n_in, int64_t n_out,
                                    double step, double tolerance)
{
    second s = { code, user, n_in, n_out, NULL };
    tn_tensor **all;
    uint64_t scope;
    tn_status status;

    if (!given(code != NULL, "tn_gradgradcheck: code") ||
        !given(in != NULL || n_in <= 0, "tn_gradgradcheck: in"))
        return TN_ERR_VALUE;
    if (n_in < 1 || n_out < 1)
        return tn_fail(TN_ERR_VALUE,
                       "tn_gradgradcheck: no inputs or no outputs, got %lld and %lld; expected at "
                       "least one of each",
                       (long long)n_in, (long long)n_out);
    for (int64_t i = 0; i < n_in; i++) {
        status = check_input(in[i], i, "tn_gradgradcheck");
        if (status != TN_OK)
            return status;
    }
    all = tn_calloc((size_t)(n_in + 2 * n_out), sizeof(tn_tensor *));
    if (all == NULL)
        return TN_ERR_MEMORY;
    s.out = all + n_in + n_out;
    scope = tn_scope_begin();
    tn_grad_begin(false);
    uint64_t mark = tn_error_mark();
    status = tn_error_returned(code(user, in, s.out), mark, "tn_gradgradcheck: the code");
    tn_grad_end();
    memcpy(all, in, (size_t)n_in * sizeof(tn_tensor *));
    for (int64_t i = 0; i < n_out && status == TN_OK; i++) {
        if (!is_tensor(s.out[i])) {
            status = no_tensor(s.out[i], "tn_gradgradcheck: the code: out", i);
            break;
        }
        /* Cotangents of 0.75: neither 0 nor 1, so that each term of a derivative affects the
         * result. */
        all[n_in + i] = tn_tensor_full(tn_tensor_shape(s.out[i]), 0.75, tn_tensor_dtype(s.out[i]),
                                       tn_tensor_device(s.out[i]));
        if (all[n_in + i] == NULL)
            status = tn_error_last_code();
    }
    if (status == TN_OK)
        status = run_check((check){ .code = gradients_of,
                                    .user = &s,
                                    .in = all,
                                    .n_in = n_in + n_out,
                                    .n_out = n_in,
                                    .constants = true },
                           step, tolerance);
    tn_scope_end(scope);
    tn_free(all);
    return status;
}

/* ---- the plugin ------------------------------------------------------------------------------ */

static const tn_gradcheck_api api = { first_derivatives, second_derivatives };

static const tn_interface_row interfaces[] = {
    { "tenon.gradcheck.api", 0, sizeof api, &api, NULL },
    { NULL, 0, 0, NULL, NULL },
};

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin), .id = "tenon.gradcheck",
    .version = "0.1.0", .help = "compares gradients with central differences",
    .license = "MIT",   .interfaces = interfaces,
};
TN_PLUGIN_EXPORT(plugin);
