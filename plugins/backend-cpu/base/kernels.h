/* SPDX-License-Identifier: MIT
 *
 * The kernels of the CPU backend, which plugin.c lists and their files define; some call one another. */
#ifndef TN_BACKEND_CPU_KERNELS_H
#define TN_BACKEND_CPU_KERNELS_H

#include "base/cpu.h"

tn_status tn__copy(const tn_call *call);
/* y[j][i] = x[i][j] of elements of 4 or 8 bytes; rows of y sy bytes apart, of x sx. */
void tn__transpose_4(int64_t rows, int64_t columns, char *y, int64_t sy, const char *x, int64_t sx);
void tn__transpose_8(int64_t rows, int64_t columns, char *y, int64_t sy, const char *x, int64_t sx);
tn_status tn__flip(const tn_call *call);
tn_status tn__fill(const tn_call *call);
tn_status tn__narrow_grad(const tn_call *call);
/* Writes one value everywhere. */
tn_status tn__copy_value(const tn_view *to, double value);
/* Writes zeros. */
tn_status tn__copy_zero(const tn_view *to);
/* The values of `from`, which may broadcast, in the dtype of `to`. */
tn_status tn__copy_views(const tn_view *to, const tn_view *from);

/* By their row (kernel->data). */
tn_status tn__elementwise(const tn_call *call);
/* out[0] = op(in[0], in[1]) of one or two inputs, which may be out[0] itself. */
tn_status tn__elementwise_run(const tn_call *call, enum tn__ew op, int32_t inputs);
tn_status tn__add(const tn_call *call);
tn_status tn__sub(const tn_call *call);
tn_status tn__div(const tn_call *call);
/* Remainders: whole numbers are not divided by zero. */
tn_status tn__rest(const tn_call *call);
tn_status tn__bitwise_not(const tn_call *call);

/* bitwise.c */
tn_status tn__bits_and(const tn_call *call);
tn_status tn__bits_or(const tn_call *call);
tn_status tn__bits_xor(const tn_call *call);
tn_status tn__bits_not(const tn_call *call);
tn_status tn__gelu(const tn_call *call);
tn_status tn__gelu_grad(const tn_call *call);
tn_status tn__nan_to_num(const tn_call *call);
/* in[0] sigmoid(in[1]) */
tn_status tn__gate(const tn_call *call);
tn_status tn__prelu(const tn_call *call);
/* x^3; other powers come apart. */
tn_status tn__pow_scalar(const tn_call *call);
bool tn__pow_scalar_takes(const tn_call *call, char *reason, size_t size);

/* ternary.c */
tn_status tn__glu(const tn_call *call);
tn_status tn__eye(const tn_call *call);
tn_status tn__tril(const tn_call *call);
tn_status tn__triu(const tn_call *call);
tn_status tn__clamp_tensor(const tn_call *call);
bool tn__mixtures_take(const tn_call *call, char *reason, size_t size);
tn_status tn__lerp(const tn_call *call);
tn_status tn__lerp_scalar(const tn_call *call);
tn_status tn__addcmul(const tn_call *call);
tn_status tn__addcdiv(const tn_call *call);

/* Whether the runs of a span of narrow floats lie in a row or stand still, the result's in a row. */
static inline bool tn__narrow_lies(const struct tn__span *span)
{
    bool lies = true;
    for (int32_t k = 0; span->ndim > 0 && k < span->operands; k++) {
        int64_t step = span->stride[k][span->ndim - 1];
        lies = lies && (step == 2 || (step == 0 && k > 0));
    }
    return lies;
}

tn_status tn__where(const tn_call *call);
/* Of complex numbers. */
tn_status tn__abs_complex(const tn_call *call);
tn_status tn__complex(const tn_call *call);

tn_status tn__sum(const tn_call *call);
tn_status tn__amax(const tn_call *call);
tn_status tn__argmax(const tn_call *call);
tn_status tn__mean(const tn_call *call);
tn_status tn__var(const tn_call *call);
tn_status tn__std(const tn_call *call);
tn_status tn__norm(const tn_call *call);
tn_status tn__logsumexp(const tn_call *call);
tn_status tn__any(const tn_call *call);
tn_status tn__all(const tn_call *call);
tn_status tn__prod(const tn_call *call);
tn_status tn__amin(const tn_call *call);
tn_status tn__argmin(const tn_call *call);
tn_status tn__cumsum(const tn_call *call);
tn_status tn__cumprod(const tn_call *call);
tn_status tn__sort(const tn_call *call);
tn_status tn__topk(const tn_call *call);

tn_status tn__gather(const tn_call *call);
tn_status tn__index_select(const tn_call *call);
tn_status tn__scatter(const tn_call *call);
tn_status tn__scatter_add(const tn_call *call);
tn_status tn__nonzero(const tn_call *call);

tn_status tn__arange(const tn_call *call);
tn_status tn__linspace(const tn_call *call);
tn_status tn__one_hot(const tn_call *call);
bool tn__one_hot_takes(const tn_call *call, char *reason, size_t size);

tn_status tn__bmm(const tn_call *call);
tn_status tn__linear(const tn_call *call);
tn_status tn__linear_activation(const tn_call *call);

tn_status tn__attend(const tn_call *call);
tn_status tn__attend_grad(const tn_call *call);
tn_status tn__softmax(const tn_call *call);
tn_status tn__log_softmax(const tn_call *call);
tn_status tn__softmax_grad(const tn_call *call);
tn_status tn__log_softmax_grad(const tn_call *call);

tn_status tn__nll_loss(const tn_call *call);
tn_status tn__nll_loss_grad(const tn_call *call);
tn_status tn__mse_loss(const tn_call *call);
tn_status tn__l1_loss(const tn_call *call);
tn_status tn__smooth_l1_loss(const tn_call *call);
tn_status tn__huber_loss(const tn_call *call);
tn_status tn__soft_margin_loss(const tn_call *call);
tn_status tn__margin_ranking_loss(const tn_call *call);
tn_status tn__poisson_nll_loss(const tn_call *call);
bool tn__poisson_nll_loss_takes(const tn_call *call, char *reason, size_t size);

tn_status tn__philox_uniform(const tn_call *call);
tn_status tn__philox_normal(const tn_call *call);
tn_status tn__philox_permutation(const tn_call *call);

tn_status tn__sgd_step(const tn_call *call);
tn_status tn__adam_step(const tn_call *call);
tn_status tn__total_norm(const tn_call *call);
bool tn__total_norm_takes(const tn_call *call, char *reason, size_t size);
bool tn__sgd_step_takes(const tn_call *call, char *reason, size_t size);
bool tn__adam_step_takes(const tn_call *call, char *reason, size_t size);
tn_status tn__convolution(const tn_call *call);
tn_status tn__convolution_grad_input(const tn_call *call);
tn_status tn__convolution_grad_weight(const tn_call *call);
bool tn__convolution_plain(const tn_call *call, char *reason, size_t size);
tn_status tn__max_pool(const tn_call *call);
tn_status tn__max_pool_grad(const tn_call *call);
tn_status tn__avg_pool(const tn_call *call);
tn_status tn__avg_pool_grad(const tn_call *call);
tn_status tn__standardize(const tn_call *call);
tn_status tn__standardize_grad(const tn_call *call);
tn_status tn__standardize_relu(const tn_call *call);
tn_status tn__standardize_relu_grad(const tn_call *call);
bool tn__standardize_relu_takes(const tn_call *call, char *reason, size_t size);
bool tn__standardize_relu_grad_takes(const tn_call *call, char *reason, size_t size);
bool tn__standardize_takes(const tn_call *call, char *reason, size_t size);
bool tn__standardize_grad_takes(const tn_call *call, char *reason, size_t size);

/* The device type, in device.c. */
extern const tn_backend tn__backend_cpu;

#endif
