# SPDX-License-Identifier: MIT
#
# Cases of function_cases.py. Products, recurrent networks, convolutions, norms, dropout.
import torch

from function_case import (
    A,
    F32,
    F64,
    INF,
    real,
    positive,
    cplx,
    ints,
    call,
    program,
    picked,
    first,
)


def linear():
    m = lambda: real(2, 3)
    cases = [
        call(A.linear.default, real(2, 4), real(3, 4), real(3)),
        call(A.linear.default, real(2, 2, 4), real(3, 4)),
        call(A.matmul.default, m(), real(3, 2)),
        call(A.matmul.default, real(3), real(3)),
        call(A.matmul.default, real(2, 1, 2, 3), real(3, 3, 2)),
        call(A.mm.default, m(), real(3, 2)),
        call(A.bmm.default, real(2, 2, 3), real(2, 3, 1)),
        call(A.mv.default, m(), real(3)),
        call(A.dot.default, real(3), real(3)),
        call(A.vdot.default, real(3), real(3)),
        call(A.vdot.default, cplx(3), cplx(3)),
        call(A.inner.default, m(), real(2, 3)),
        call(A.outer.default, real(2), real(3)),
        call(A.ger.default, real(2), real(3)),
        call(A.addmm.default, real(2), m(), real(3, 2)),
        call(A.addmm.default, real(2, 2), m(), real(3, 2), beta=0.5, alpha=2),
        call(A.addmv.default, real(2), m(), real(3), beta=0.5, alpha=2),
        call(A.addr.default, real(2, 3), real(2), real(3), beta=0.5, alpha=2),
        call(A.baddbmm.default, real(2, 2, 1), real(2, 2, 3), real(2, 3, 1), beta=0.5, alpha=2),
        call(A.addbmm.default, real(2, 1), real(2, 2, 3), real(2, 3, 1), beta=0.5, alpha=2),
        call(A.einsum.default, 'ij, jk -> ik', [m(), real(3, 2)]),
        call(A.einsum.default, 'bij,bjk->bik', [real(2, 2, 3), real(2, 3, 2)]),
        call(A.einsum.default, '...i,i', [m(), real(3)]),
        call(A.tensordot.default, real(2, 3, 2), real(3, 2), [1], [0]),
        call(A.bilinear.default, real(2, 3), real(2, 2), real(4, 3, 2), real(4)),
        call(A.kron.default, real(2, 2), real(1, 2)),
        call(A.cross.default, m(), real(2, 3)),
        call(A.linalg_cross.default, m(), real(2, 3)),
        call(A.cdist.default, real(2, 3), real(3, 3)),
        call(A.cdist.default, real(2, 3), real(3, 3), 1.0),
        call(A._cdist_forward.default, real(2, 3), real(3, 3), 2.0, None),
        call(A._euclidean_dist.default, real(2, 3), real(3, 3)),
        call(A.cosine_similarity.default, m(), real(2, 3)),
        # PyTorch's gradient leaves out that eps limits the norms.
        call(A.cosine_similarity.default, m(), real(2, 3), 0, 1.0).instead(limited_cosine),
        call(A.pairwise_distance.default, m(), real(2, 3)),
        call(A.linalg_inv.default, torch.eye(2).double() * 2 + real(2, 2, grad=False) / 4),
        call(A.inverse.default, torch.eye(2).double() * 2 + real(2, 2, grad=False) / 4),
        call(A.linalg_det.default, real(3, 3)),
        call(A.det.default, real(3, 3)),
        call(
            A.linalg_solve.default, torch.eye(2).double() * 3 + real(2, 2, grad=False), real(2, 1)
        ),
        call(A.linalg_cholesky.default, torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=F64)),
        call(A.linalg_matrix_exp.default, real(2, 2)),
        call(A.linalg_pinv.atol_rtol_float, real(3, 2)),
        call(A.linalg_multi_dot.default, [real(2, 3), real(3, 2), real(2)]),
        call(A.matrix_power.default, real(2, 2), 3),
        call(A.linalg_matrix_power.default, real(2, 2), 4),
        # Libraries differ in the signs of vectors.
        picked([0], A.linalg_eigh.default, symmetric()),
        program('linalg_qr.default', lambda a: A.matmul(*A.linalg_qr(a)), real(3, 2)),
        call(A.linalg_slogdet.default, real(3, 3)),
        call(A.linalg_solve_triangular.default, real(2, 2), real(2, 1), upper=True),
        picked([1], A.linalg_svd.default, real(3, 2), False),
        call(
            A.scaled_dot_product_attention.default,
            real(1, 2, 3, 4),
            real(1, 2, 2, 4),
            real(1, 2, 2, 4),
        ),
        call(
            A.scaled_dot_product_attention.default,
            real(1, 2, 3, 4),
            real(1, 2, 3, 4),
            real(1, 2, 3, 4),
            None,
            0.0,
            True,
            scale=0.25,
        ),
        call(
            A.scaled_dot_product_attention.default,
            real(1, 2, 3, 4),
            real(1, 2, 3, 4),
            real(1, 2, 3, 4),
            real(3, 3),
        ),
        call(
            A.scaled_dot_product_attention.default,
            real(1, 2, 3, 4),
            real(1, 1, 3, 4),
            real(1, 1, 3, 4),
            torch.eye(3).bool(),
            enable_gqa=True,
        ),
        first(
            A._scaled_dot_product_attention_math.default,
            real(1, 1, 2, 4),
            real(1, 1, 2, 4),
            real(1, 1, 2, 4),
        ),
        first(
            A._scaled_dot_product_flash_attention_for_cpu.default,
            real(1, 1, 2, 4),
            real(1, 1, 2, 4),
            real(1, 1, 2, 4),
        ),
        call(A.softmax.int, m(), -1),
        call(A.softmax.int, ints(2, 3), 1, F64),
        call(A._softmax.default, m(), 1, False),
        call(A.special_softmax.default, m(), 0),
        call(A._safe_softmax.default, torch.tensor([[0.5, 1.5], [-INF, -INF]], dtype=F64), -1),
        call(A.log_softmax.int, m(), -1),
        call(A.log_softmax.int, real(2, 3, dtype=F32, grad=False), 1, F64),
        call(A._log_softmax.default, m(), 1, False),
        call(A.special_log_softmax.default, m(), 0),
    ]
    return cases


def limited_cosine(a, b):
    a = a / a.norm(dim=0).clamp(min=1.0)
    b = b / b.norm(dim=0).clamp(min=1.0)
    return (a * b).sum(0)


def symmetric():
    x = real(3, 3, grad=False)
    return x + x.mT


def recurrent():
    def weights(gates, inputs, hidden, biases=True, projected=0):
        out = [real(gates * hidden, inputs), real(gates * hidden, projected or hidden)]
        if biases:
            out += [real(gates * hidden), real(gates * hidden)]
        if projected:
            out += [real(projected, hidden)]
        return out

    x = lambda: real(3, 2, 2)
    h = lambda n=1: real(n, 2, 2)
    cases = [
        call(A.lstm.input, x(), [h(), h()], weights(4, 2, 2), True, 1, 0.0, False, False, False),
        call(
            A.lstm.input,
            real(2, 3, 2),
            [h(2), h(2)],
            weights(4, 2, 2) + weights(4, 2, 2),
            True,
            1,
            0.0,
            False,
            True,
            True,
        ),
        call(
            A.lstm.input,
            x(),
            [real(2, 2, 1), h(2)],
            weights(4, 2, 2, False, 1) + weights(4, 1, 2, False, 1),
            False,
            2,
            0.0,
            False,
            False,
            False,
        ),
        call(
            A.gru.input,
            x(),
            h(2),
            weights(3, 2, 2) + weights(3, 2, 2),
            True,
            2,
            0.0,
            False,
            False,
            False,
        ),
        call(
            A.gru.input,
            real(2, 3, 2),
            h(2),
            weights(3, 2, 2, False) + weights(3, 2, 2, False),
            False,
            1,
            0.0,
            False,
            True,
            True,
        ),
        call(A.rnn_tanh.input, x(), h(), weights(1, 2, 2), True, 1, 0.0, False, False, False),
        call(
            A.rnn_relu.input,
            real(2, 3, 2),
            h(4),
            weights(1, 2, 2) + weights(1, 2, 2) + weights(1, 4, 2) + weights(1, 4, 2),
            True,
            2,
            0.5,
            False,
            True,
            True,
        ),
        call(
            A.lstm_cell.default,
            real(2, 3),
            [real(2, 2), real(2, 2)],
            real(8, 3),
            real(8, 2),
            real(8),
            real(8),
        ),
        call(A.lstm_cell.default, real(2, 3), [real(2, 2), real(2, 2)], real(8, 3), real(8, 2)),
        call(A.gru_cell.default, real(2, 3), real(2, 2), real(6, 3), real(6, 2), real(6), real(6)),
        call(
            A.rnn_tanh_cell.default,
            real(2, 3),
            real(2, 2),
            real(2, 3),
            real(2, 2),
            real(2),
            real(2),
        ),
        call(A.rnn_relu_cell.default, real(2, 3), real(2, 2), real(2, 3), real(2, 2)),
    ]
    return cases


def convolution():
    x1 = lambda: real(1, 2, 5)
    x2 = lambda: real(1, 2, 4, 3)
    x3 = lambda: real(1, 1, 3, 2, 2)
    w2 = lambda: real(2, 2, 2, 2)
    cases = [
        call(A.conv1d.default, x1(), real(2, 2, 2), real(2), [2], [1], [1]),
        call(A.conv1d.default, x1(), real(2, 1, 2), None, [1], [0], [2], 2),
        call(A.conv1d.padding, x1(), real(2, 2, 3), None, [1], 'same'),
        call(A.conv2d.default, x2(), w2(), real(2)),
        call(A.conv2d.default, x2(), w2(), None, [2, 1], [1, 0], [1, 2]),
        call(A.conv2d.default, real(2, 4, 3), w2()),
        call(A.conv2d.padding, x2(), real(2, 2, 3, 3), real(2), [1, 1], 'same'),
        call(A.conv2d.padding, x2(), w2(), None, [2, 1], 'valid'),
        call(A.conv2d.padding, x2(), w2(), None, [1, 1], 'same', [1, 2]),
        call(A.conv3d.default, x3(), real(2, 1, 2, 2, 1), real(2), [1, 1, 1], [0, 1, 0]),
        call(A.conv3d.padding, x3(), real(1, 1, 3, 1, 1), None, [1, 1, 1], 'same'),
        call(A.conv_transpose1d.default, x1(), real(2, 1, 2), real(1), [2], [1], [1]),
        call(A.conv_transpose2d.input, x2(), w2(), real(2), [2, 1], [0, 1], [1, 0]),
        call(
            A.conv_transpose2d.input,
            x2(),
            real(2, 1, 2, 2),
            None,
            [1, 1],
            [0, 0],
            [0, 0],
            2,
            [1, 2],
        ),
        call(A.conv_transpose3d.input, x3(), real(1, 1, 2, 1, 1)),
        call(A.convolution.default, x2(), w2(), real(2), [2, 1], [1, 0], [1, 1], False, [0, 0], 1),
        call(A.convolution.default, x1(), real(2, 1, 2), None, [2], [1], [1], True, [1], 1),
        call(
            A._convolution.default,
            x2(),
            w2(),
            None,
            [1, 1],
            [0, 0],
            [1, 1],
            False,
            [0, 0],
            1,
            False,
            False,
            True,
            True,
        ),
        call(
            A.batch_norm.default,
            real(3, 2, 2),
            real(2),
            real(2),
            real(2, grad=False),
            positive(2, grad=False),
            False,
            0.1,
            1e-5,
            True,
        ),
        first(A._native_batch_norm_legit.no_stats, real(3, 2, 2), real(2), None, True, 0.1, 1e-5),
        first(
            A._native_batch_norm_legit_no_training.default,
            real(3, 2, 2),
            real(2),
            real(2),
            real(2, grad=False),
            positive(2, grad=False),
            0.1,
            1e-5,
        ),
        picked(
            [0, 3, 4],
            A._native_batch_norm_legit_functional.default,
            real(3, 2, 2, grad=False),
            None,
            None,
            real(2, grad=False),
            positive(2, grad=False),
            False,
            0.25,
            1e-5,
        ),
        call(
            A.instance_norm.default,
            real(2, 2, 3),
            real(2),
            real(2),
            None,
            None,
            True,
            0.1,
            1e-5,
            True,
        ),
        call(
            A.instance_norm.default,
            real(2, 2, 3),
            None,
            None,
            real(2, grad=False),
            positive(2, grad=False),
            False,
            0.1,
            1e-5,
            True,
        ),
        call(A.layer_norm.default, real(2, 3), [3], real(3), real(3)),
        call(A.layer_norm.default, real(2, 3, 2), [3, 2], None, None, 1e-3),
        first(A.native_layer_norm.default, real(2, 3), [3], real(3), real(3), 1e-5),
        call(A.group_norm.default, real(2, 4, 2), 2, real(4), real(4)),
        call(A.group_norm.default, real(2, 4, 2), 2, None, None, 1e-3),
        first(A.native_group_norm.default, real(2, 4, 2), real(4), real(4), 2, 4, 2, 2, 1e-5),
        call(A.rms_norm.default, real(2, 3), [3], real(3)),
        call(A.rms_norm.default, real(2, 3), [3], None, 1e-3),
        first(A._fused_rms_norm.default, real(2, 3), [3], real(3), 1e-5),
        call(A._weight_norm.default, real(2, 3, 2), real(2, 1, 1)),
        call(A._weight_norm.default, real(2, 3), real(1, 3), 1),
        first(A._weight_norm_interface.default, real(2, 3), real(2, 1)),
        call(A.dropout.default, real(2, 3), 0.5, False),
        call(A.feature_dropout.default, real(2, 3, 2), 0.5, False),
        call(A.alpha_dropout.default, real(2, 3), 0.5, False),
        call(A.alpha_dropout_.default, real(2, 3), 0.5, False),
        call(A.feature_alpha_dropout_.default, real(2, 3, 2), 0.5, False),
        call(A.rrelu.default, real(2, 3), 0.25, 0.75, False),
        first(
            A.native_batch_norm.default,
            real(3, 2, 2),
            real(2),
            real(2),
            real(2, grad=False),
            positive(2, grad=False),
            False,
            0.1,
            1e-5,
        ),
        first(
            A._batch_norm_no_update.default,
            real(3, 2, 2),
            real(2),
            real(2),
            real(2, grad=False),
            positive(2, grad=False),
            0.1,
            1e-5,
        ),
        call(A.feature_alpha_dropout.default, real(2, 3, 2), 0.5, False),
        call(A.native_dropout.default, real(2, 3), 0.5, False),
    ]
    return cases


def training():
    return [
        call(
            A.batch_norm.default, real(3, 2, 2), real(2), real(2), None, None, True, 0.1, 1e-3, True
        ),
        program(
            'batch_norm.default',
            trained(A.batch_norm.default, True),
            real(3, 2, 2),
            real(2),
            real(2),
            real(2, grad=False),
            positive(2, grad=False),
        ),
        program(
            '_native_batch_norm_legit.default',
            trained(A._native_batch_norm_legit.default),
            real(3, 2, 2),
            real(2),
            real(2),
            real(2, grad=False),
            positive(2, grad=False),
        ),
        picked(
            [0, 3, 4],
            A._native_batch_norm_legit_functional.default,
            real(3, 2, 2),
            None,
            None,
            real(2, grad=False),
            positive(2, grad=False),
            True,
            0.25,
            1e-5,
        ),
        program(
            '_batch_norm_with_update.default',
            updated,
            real(3, 2, 2),
            real(2),
            real(2),
            real(2, grad=False),
            positive(2, grad=False),
        ),
        picked(
            [0, 4, 5],
            A._batch_norm_with_update_functional.default,
            real(3, 2, 2, grad=False),
            real(2, grad=False),
            real(2, grad=False),
            real(2, grad=False),
            positive(2, grad=False),
            0.25,
            1e-5,
        ),
        call(A.rrelu.default, real(2, 3), 0.25, 0.25, True),
        call(A.dropout.default, real(2, 3), 0.0, True),
        program('dropout.default', dropped, real(2, 3)),
        program('native_dropout.default', masked_off, real(2, 3)),
        call(A.native_dropout.default, real(2, 3), 0.0, True),
    ]


def trained(function, cudnn=False):
    """A batch norm in training: the result and the new statistics."""

    def run(x, weight, bias, mean, var):
        mean, var = A.clone(mean), A.clone(var)
        y = function(x, weight, bias, mean, var, True, 0.25, 1e-5, *([True] if cudnn else []))
        return [y if cudnn else y[0], mean, var]

    return run


def updated(x, weight, bias, mean, var):
    mean, var = A.clone(mean), A.clone(var)
    return [A._batch_norm_with_update(x, weight, bias, mean, var, 0.25, 1e-5)[0], mean, var]


def dropped(x):
    y = A.dropout(x, 0.5, True)
    return A.logical_or(A.eq.Scalar(y, 0), A.eq.Tensor(y, A.mul.Tensor(x, 2.0)))


def masked_off(x):
    y, mask = A.native_dropout(x, 0.5, True)
    return A.sub.Tensor(y, A.mul.Tensor(A.mul.Tensor(x, mask), 2.0))
