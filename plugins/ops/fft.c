/* SPDX-License-Identifier: MIT
 *
 * Discrete Fourier transforms along one or several dimensions: complex (fft), of real numbers
 * (rfft) and to real numbers (irfft), and the same for signals with a Hermitian symmetry (hfft,
 * ihfft). All are composed of the transforms along one dimension in fft_steps.c. */
#include "fft.h"

/* ---- what a call asks for -------------------------------------------------------------------- */

enum kind { COMPLEX, FROM_REAL, TO_REAL };

/* A transform: its kind, and whether the exponent of its mathematical definition is negative
 * (`forward`). */
struct form {
    const char *op;
    enum kind kind;
    bool forward;
    /* SINGLE: the one of the option `dim`. Else the dimensions if the option `dims` is absent: the
     * last two, or all (the last ones if only the sizes `s` are given). */
    enum { SINGLE, LAST_TWO, ALL } dims;
};

static const struct form forms[] = {
    { "fft_fft", COMPLEX, true, SINGLE },       { "fft_ifft", COMPLEX, false, SINGLE },
    { "fft_rfft", FROM_REAL, true, SINGLE },    { "fft_irfft", TO_REAL, false, SINGLE },
    { "fft_hfft", TO_REAL, true, SINGLE },      { "fft_ihfft", FROM_REAL, false, SINGLE },
    { "fft_fft2", COMPLEX, true, LAST_TWO },    { "fft_ifft2", COMPLEX, false, LAST_TWO },
    { "fft_rfft2", FROM_REAL, true, LAST_TWO }, { "fft_irfft2", TO_REAL, false, LAST_TWO },
    { "fft_hfft2", TO_REAL, true, LAST_TWO },   { "fft_ihfft2", FROM_REAL, false, LAST_TWO },
    { "fft_fftn", COMPLEX, true, ALL },         { "fft_ifftn", COMPLEX, false, ALL },
    { "fft_rfftn", FROM_REAL, true, ALL },      { "fft_irfftn", TO_REAL, false, ALL },
    { "fft_hfftn", TO_REAL, true, ALL },        { "fft_ihfftn", FROM_REAL, false, ALL },
};

/* The options of the operators of one dimension and of several dimensions. Their option structs
 * have names of their own but the same members at the same places, so a copy of the bytes of each
 * can be read as one of these two. */
typedef tn_fft_fft_options single_options;
typedef tn_fft_fft2_options several_options;
#define SAME(a, b, member) (offsetof(a, member) == offsetof(b, member))
#define SAME_SINGLE(name)                                                                          \
    _Static_assert(sizeof(single_options) == sizeof(tn_fft_##name##_options) &&                    \
                       SAME(single_options, tn_fft_##name##_options, n) &&                         \
                       SAME(single_options, tn_fft_##name##_options, dim) &&                       \
                       SAME(single_options, tn_fft_##name##_options, norm),                        \
                   "the options of fft_" #name " differ from those of fft_fft")
#define SAME_SEVERAL(name)                                                                         \
    _Static_assert(sizeof(several_options) == sizeof(tn_fft_##name##_options) &&                   \
                       SAME(several_options, tn_fft_##name##_options, s) &&                        \
                       SAME(several_options, tn_fft_##name##_options, dims) &&                     \
                       SAME(several_options, tn_fft_##name##_options, norm),                       \
                   "the options of fft_" #name " differ from those of fft_fft2")
SAME_SINGLE(ifft);
SAME_SINGLE(rfft);
SAME_SINGLE(irfft);
SAME_SINGLE(hfft);
SAME_SINGLE(ihfft);
SAME_SEVERAL(ifft2);
SAME_SEVERAL(rfft2);
SAME_SEVERAL(irfft2);
SAME_SEVERAL(hfft2);
SAME_SEVERAL(ihfft2);
SAME_SEVERAL(fftn);
SAME_SEVERAL(ifftn);
SAME_SEVERAL(rfftn);
SAME_SEVERAL(irfftn);
SAME_SEVERAL(hfftn);
SAME_SEVERAL(ihfftn);

/* The options of a call. `sizes` and `dims` have the count -1 if they were not given. */
struct request {
    const struct form *form;
    tn_ints sizes, dims;
    const char *norm;
    union {
        single_options single; /* `sizes` and `dims` refer to its members */
        several_options several;
    } options;
};

/* The transforms along single dimensions. `size` is the number of elements of the signal, of which
 * the kinds FROM_REAL and TO_REAL have only about half in the last dimension of their complex
 * side. */
struct plan {
    int32_t count;
    int32_t dim[TN_MAX_DIMS];
    int64_t size[TN_MAX_DIMS];
    double scale;
};

/* Fills in the request of a call of `op`. */
static void make_request(const tn_op_def *op, const void *options, struct request *r)
{
    static const int64_t last_two[2] = { -2, -1 };
    const struct form *form = forms;

    while (strcmp(form->op, op->name) != 0)
        form++;
    r->form = form;
    if (form->dims == SINGLE) {
        single_options *o = memcpy(&r->options.single, options, sizeof *o);

        r->sizes = (tn_ints){ &o->n, o->n == INT64_MIN ? -1 : 1 };
        r->dims = (tn_ints){ &o->dim, 1 };
        r->norm = o->norm;
    } else {
        several_options *o = memcpy(&r->options.several, options, sizeof *o);

        r->sizes = o->s;
        r->dims = o->dims.count < 0 && form->dims == LAST_TWO ? (tn_ints){ last_two, 2 } : o->dims;
        r->norm = o->norm;
    }
}

/* ---- checks ---------------------------------------------------------------------------------- */

static tn_status too_many(int64_t count, int32_t ndim)
{
    return tn_fail(TN_ERR_RUNTIME,
                   /* PyTorch's wording */
                   "Got shape with %lld values but input tensor only has %d dimensions.",
                   (long long)count, (int)ndim);
}

/* Sets the dimensions of the plan: those of `dims`, the last ones if only sizes were given, or
 * all. */
static tn_status choose_dims(const struct request *r, int32_t ndim, struct plan *plan)
{
    bool used[TN_MAX_DIMS] = { false };
    int64_t count = r->dims.count >= 0    ? r->dims.count
                    : r->sizes.count >= 0 ? r->sizes.count
                                          : ndim;
    tn_status status = TN_OK;

    if (r->dims.count >= 0 && r->sizes.count >= 0 && r->dims.count != r->sizes.count)
        return tn_fail(
            TN_ERR_RUNTIME, /* PyTorch's wording */
            "When given, dim and shape arguments must have the same length; dim has %lld, "
            "shape %lld",
            (long long)r->dims.count, (long long)r->sizes.count);
    if (count > ndim && r->dims.count < 0)
        return too_many(count, ndim);
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        int64_t dim = r->dims.count >= 0 ? r->dims.at[i] : ndim - count + i;
        int32_t at = 0;

        if (ndim == 0)
            return tn_fail(TN_ERR_INDEX, /* PyTorch's wording */
                           "Dimension specified as %lld but tensor has no dimensions",
                           (long long)dim);
        status = tn__common_dim(dim, ndim, &at);
        if (status == TN_OK && used[at])
            status = tn_fail(TN_ERR_RUNTIME, "FFT dims must be unique"); /* PyTorch's wording */
        used[at] = true;
        if (status == TN_OK)
            plan->dim[i] = at;
    }
    plan->count = (int32_t)count;
    return status;
}

/* Sets the factor of the whole transform. */
static tn_status choose_scale(const struct request *r, struct plan *plan)
{
    const char *norm = r->norm != NULL ? r->norm : "backward";
    double count = 1;

    for (int32_t i = 0; i < plan->count; i++)
        count *= (double)plan->size[i];
    if (is(norm, "ortho"))
        plan->scale = 1 / sqrt(count);
    else if (is(norm, "forward"))
        plan->scale = r->form->forward ? 1 / count : 1;
    else if (is(norm, "backward"))
        plan->scale = r->form->forward ? 1 : 1 / count;
    else
        return tn_fail(TN_ERR_RUNTIME, /* PyTorch's wording */
                       "norm: Invalid normalization mode: %q; expected backward, forward or ortho",
                       norm);
    return TN_OK;
}

/* Writes the plan of a call with an input of this shape. */
static tn_status make_plan(const struct request *r, tn_ints shape, struct plan *plan)
{
    tn_status status = choose_dims(r, (int32_t)shape.count, plan);

    if (status != TN_OK)
        return status;
    if (plan->count == 0 && r->form->kind != COMPLEX)
        return tn_fail(TN_ERR_RUNTIME, /* PyTorch's wording */
                       "%s must transform at least one axis", r->form->op + strlen("fft_"));
    for (int32_t i = 0; i < plan->count; i++) {
        int64_t size = shape.at[plan->dim[i]];
        bool half = r->form->kind == TO_REAL && i == plan->count - 1;
        /* PyTorch accepts the size -1 only for several dimensions. */
        bool given = r->sizes.count >= 0 && (r->form->dims == SINGLE || r->sizes.at[i] != -1);

        plan->size[i] = given ? r->sizes.at[i] : half ? tn__common_times(2, size - 1) : size;
        if (plan->size[i] < 1)
            return tn_fail(TN_ERR_RUNTIME, /* PyTorch's wording */
                           "Invalid number of data points (%lld) specified",
                           (long long)plan->size[i]);
    }
    return choose_scale(r, plan);
}

static tn_status transform_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];
    tn_meta *out = &infer->out[0];
    tn_dtype dtype = infer->dtype, complex = tn__fft_dtype(dtype);
    struct request r;
    struct plan plan;
    tn_status status;

    make_request(infer->op, infer->options, &r);
    if (complex == TN_DTYPE_AUTO)
        return tn_fail(TN_ERR_TYPE,
                       "x: wrong dtype, got %s; expected float32 or float64, or a "
                       "complex dtype",
                       tn_dtype_name(dtype));
    status = make_plan(&r, tn__common_shape(x), &plan);
    if (status != TN_OK)
        return status;
    infer->dtype = r.form->kind == FROM_REAL ? dtype : complex;
    tn__common_plain(out, r.form->kind == TO_REAL ? tn__common_part(complex) : complex,
                     tn__common_shape(x));
    for (int32_t i = 0; i < plan.count; i++)
        out->shape[plan.dim[i]] = plan.size[i];
    if (r.form->kind == FROM_REAL)
        out->shape[plan.dim[plan.count - 1]] = plan.size[plan.count - 1] / 2 + 1;
    return TN_OK;
}

/* ---- computation ----------------------------------------------------------------------------- */

/* Transforms the first `count` dimensions of the plan; multiplies by `scale`. */
static tn_tensor *along(tn_tensor *x, const struct plan *plan, int32_t count, bool forward,
                        double scale)
{
    for (int32_t i = count - 1; i >= 0; i--)
        x = tn__fft_c2c(x, plan->dim[i], !forward, i == count - 1 ? scale : 1);
    return x;
}

static tn_status transform_decompose(const tn_decompose *call)
{
    const struct form *form;
    tn_tensor *x = call->in[0];
    struct request r;
    struct plan plan;
    tn_status status;
    int32_t last;

    make_request(call->op, call->options, &r);
    status = make_plan(&r, tn_tensor_shape(x), &plan);
    if (status != TN_OK)
        return status;
    form = r.form;
    last = plan.count - 1;
    for (int32_t i = 0; i < plan.count; i++)
        x = tn__fft_resized(x, plan.dim[i],
                            form->kind == TO_REAL && i == last ? plan.size[i] / 2 + 1
                                                               : plan.size[i]);
    switch (form->kind) {
    case COMPLEX: /* without dimensions x stays as it is */
        x = along(x, &plan, plan.count, form->forward, plan.scale);
        return tn__common_given(call->out, tn__common_apart(x, call->in[0]));
    case FROM_REAL:
        x = tn__fft_r2c(x, plan.dim[last], plan.scale);
        if (!form->forward)
            x = tn__common_conj(x);
        return tn__common_given(call->out, along(x, &plan, last, form->forward, 1));
    default:
        x = along(x, &plan, last, form->forward, 1);
        if (form->forward)
            x = tn__common_conj(x);
        return tn__common_given(call->out,
                                tn__fft_c2r(x, plan.size[last], plan.dim[last], plan.scale));
    }
}

/* ---- operators ------------------------------------------------------------------------------- */

#define FUNCTIONS .infer = transform_infer, .decompose = transform_decompose
TN__OP(fft_fft, FUNCTIONS);
TN__OP(fft_ifft, FUNCTIONS);
TN__OP(fft_rfft, FUNCTIONS);
TN__OP(fft_irfft, FUNCTIONS);
TN__OP(fft_hfft, FUNCTIONS);
TN__OP(fft_ihfft, FUNCTIONS);
TN__OP(fft_fft2, FUNCTIONS);
TN__OP(fft_ifft2, FUNCTIONS);
TN__OP(fft_rfft2, FUNCTIONS);
TN__OP(fft_irfft2, FUNCTIONS);
TN__OP(fft_hfft2, FUNCTIONS);
TN__OP(fft_ihfft2, FUNCTIONS);
TN__OP(fft_fftn, FUNCTIONS);
TN__OP(fft_ifftn, FUNCTIONS);
TN__OP(fft_rfftn, FUNCTIONS);
TN__OP(fft_irfftn, FUNCTIONS);
TN__OP(fft_hfftn, FUNCTIONS);
TN__OP(fft_ihfftn, FUNCTIONS);
