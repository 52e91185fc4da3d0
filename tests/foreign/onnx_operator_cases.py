# SPDX-License-Identifier: MIT
#
# The operators of ONNX for make_onnx.py: a row is the operator, its inputs, its attributes, what
# computes the results (a function, or the number of results that the evaluator of the package onnx
# computes), and the version of the operator set.
import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from onnx import TensorProto


def t(x):
    return torch.from_numpy(np.ascontiguousarray(x))


def single(x):
    """Attributes have 32 bits."""
    return float(np.float32(x))


def numbers(*shape, seed=0, low=-2, high=2):
    return np.random.default_rng(seed + sum(shape)).uniform(low, high, shape)


I64 = np.int64
X = numbers(2, 3, 5, 6, seed=1)
M = numbers(3, 4, seed=2)
V = numbers(4, seed=3)
W = numbers(4, 3, 3, 2, seed=4)
POSITIVE = numbers(3, 4, seed=5, low=0.2, high=3)
INTS = np.array([[7, -7, 5], [-5, 9, -9]], I64)


def conv_same_upper(x, w):
    """Stride 2 over 5 x 6 with a window of 3 x 2: one row above and below, no columns."""
    return F.conv2d(F.pad(t(x), (0, 0, 1, 1)), t(w), stride=2)


def average_of_parts(x):
    """Windows of 3 x 3, stride 2, one element around; only real elements count."""
    ones = torch.ones_like(t(x))
    total = F.avg_pool2d(t(x), 3, 2, 1, divisor_override=1, count_include_pad=True)
    return total / F.avg_pool2d(ones, 3, 2, 1, divisor_override=1, count_include_pad=True)


def cubic(x, *sizes):
    return F.interpolate(t(x), size=(7, 9), mode='bicubic', align_corners=False)


def lstm(x, w, r, b):
    """The gates of ONNX are i, o, f, c."""
    h = c = np.zeros((x.shape[1], r.shape[2]))
    out = []
    sig = lambda v: 1 / (1 + np.exp(-v))
    for step in x:
        gates = step @ w[0].T + h @ r[0].T + b[0, : 4 * h.shape[1]] + b[0, 4 * h.shape[1] :]
        i, o, f, g = np.split(gates, 4, 1)
        c = sig(f) * c + sig(i) * np.tanh(g)
        h = sig(o) * np.tanh(c)
        out.append(h)
    return np.stack(out)[:, None], h[None], c[None]


def gru(x, w, r, b):
    """The gates are z, r, h; the reset comes before the product."""
    h = np.zeros((x.shape[1], r.shape[2]))
    out = []
    sig = lambda v: 1 / (1 + np.exp(-v))
    n = h.shape[1]
    wz, wr, wh = np.split(w[0], 3)
    rz, rr, rh = np.split(r[0], 3)
    bias = np.split(b[0], 6)
    for step in x:
        z = sig(step @ wz.T + h @ rz.T + bias[0] + bias[3])
        reset = sig(step @ wr.T + h @ rr.T + bias[1] + bias[4])
        g = np.tanh(step @ wh.T + (reset * h) @ rh.T + bias[2] + bias[5])
        h = (1 - z) * g + z * h
        out.append(h)
    return np.stack(out)[:, None], h[None]


def scatter_nd(x, index, updates):
    x = x.copy()
    for place, value in zip(index, updates):
        x[tuple(place)] += value
    return x


def linear_attention(q, k, v, decay, beta):
    """Two heads of q for the one of k and v; the state decays, then learns v at k."""
    state, out = np.zeros((3, 2)), []
    for i in range(q.shape[1]):
        state = state * np.exp(decay[0, i])[:, None]
        learned = beta[0, i] * (v[0, i] - k[0, i] @ state)
        state = state + np.outer(k[0, i], learned)
        out.append(np.concatenate([h @ state for h in q[0, i].reshape(2, 3)]) / np.sqrt(3))
    return np.stack(out)[None], state[None, None]


LSTM = [numbers(3, 2, 4, seed=6), numbers(1, 20, 4, seed=7), numbers(1, 20, 5, seed=8)]
GRU = [numbers(3, 2, 4, seed=6), numbers(1, 15, 4, seed=7), numbers(1, 15, 5, seed=8)]
FLAT = lambda x: torch.softmax(t(x).reshape(2, -1), 1).reshape(x.shape)
Q, K, VALUES = numbers(2, 4, 3, 8, seed=10), numbers(2, 2, 5, 8, seed=11), numbers(2, 2, 5, 6)
NONE = np.zeros(0)
BIG = np.array([2**63 + 5, 7, 2**64 - 1, 2**62], np.uint64)
BY = np.array([3, 2**63 + 1, 2**32, 7], np.uint64)
SHORT = np.array([60000, 3], np.uint16)
OFFSETS = numbers(1, 8, 3, 3, seed=12)
BOXES = numbers(1, 9, 4, seed=13, low=0, high=4).astype(np.float32)
SCORES = numbers(1, 2, 9, seed=14, low=0, high=1).astype(np.float32)
ROIS = np.array([[0, 0, 5, 4], [1.5, -1, 9, 3]], np.float64)
HEADS = {'q_num_heads': 2, 'kv_num_heads': 1}
PREVIEW = 'ai.onnx.preview.training.'
# (operator, inputs, attributes, function of the inputs, opset); without a function the package's
# evaluator computes the values, all results in the node's order, of which there are so many
CASES = [
    ('Add', [X, numbers(5, 6)], {}, lambda a, b: a + b),
    ('Div', [INTS, np.array([2, 2, -4], I64)], {}, lambda a, b: np.trunc(a / b).astype(I64)),
    ('Mod', [INTS, np.array([4, 4, -4], I64)], {}, np.mod),
    ('Mod', [M, V], {'fmod': 1}, np.fmod),
    ('Pow', [POSITIVE, np.array(1.5)], {}, np.power),
    ('Clip', [M, np.array(-0.5), np.array(1.0)], {}, np.clip),
    ('Max', [M, V, -M], {}, lambda *a: np.maximum(np.maximum(a[0], a[1]), a[2])),
    ('Mean', [M, V], {}, lambda a, b: (a + b) / 2),
    ('HardSigmoid', [M], {'alpha': 0.25}, lambda x: np.clip(0.25 * x + 0.5, 0, 1)),
    ('Gelu', [M], {'approximate': 'tanh'}, lambda x: F.gelu(t(x), approximate='tanh'), 20),
    ('PRelu', [M, V], {}, lambda x, s: np.where(x < 0, s * x, x)),
    (
        'Shrink',
        [M],
        {'lambd': 1.0, 'bias': 0.5},
        lambda x: np.sign(x) * (abs(x) - 0.5) * (abs(x) > 1),
    ),
    ('Softmax', [X], {}, lambda x: torch.softmax(t(x), -1)),
    ('Softmax', [X], {'axis': 1}, FLAT, 11),
    ('LogSoftmax', [X], {'axis': 1}, lambda x: torch.log_softmax(t(x), 1)),
    ('Hardmax', [M], {}, lambda x: np.eye(4)[x.argmax(1)]),
    ('IsInf', [np.array([1, np.inf, -np.inf])], {'detect_positive': 0}, lambda x: x == -np.inf),
    ('Cast', [M], {'to': TensorProto.INT32}, lambda x: x.astype(np.int32)),
    ('Reshape', [X, np.array([0, -1, 2], I64)], {}, lambda x, s: x.reshape(2, -1, 2)),
    ('Expand', [V, np.array([3, 1], I64)], {}, lambda x, s: np.broadcast_to(x, (3, 4))),
    ('Tile', [M, np.array([2, 3], I64)], {}, lambda x, n: np.tile(x, (2, 3))),
    ('Transpose', [X], {'perm': [2, 0, 3, 1]}, lambda x: x.transpose(2, 0, 3, 1)),
    ('Squeeze', [X[:1, :, :1], np.array([0, 2], I64)], {}, lambda x, a: x[0, :, 0]),
    ('Unsqueeze', [M, np.array([0, -1], I64)], {}, lambda x, a: x[None, ..., None]),
    (
        'Slice',
        [X] + [np.array(a, I64) for a in ([4, 1], [-99, 6], [2, 3], [-2, 3])],
        {},
        lambda x, *a: x[:, :, 4::-2, 1:6:3],
    ),
    (
        'Pad',
        [M, np.array([1, 0, 0, 2], I64)],
        {'mode': 'reflect'},
        lambda x, p: np.pad(x, ((1, 0), (0, 2)), 'reflect'),
    ),
    (
        'Pad',
        [M, np.array([1, -1], I64), np.array(0.5), np.array([1], I64)],
        {},
        lambda x, *a: np.pad(x, ((0, 0), (1, 0)), constant_values=0.5)[:, :-1],
        18,
    ),
    (
        'DepthToSpace',
        [numbers(1, 8, 2, 3)],
        {'blocksize': 2, 'mode': 'CRD'},
        lambda x: F.pixel_shuffle(t(x), 2),
    ),
    ('Trilu', [M, np.array(1, I64)], {}, lambda x, k: np.triu(x, 1)),
    ('Gather', [X, np.array([[2, -1]], I64)], {'axis': 1}, lambda x, i: x[:, [[2, -1]]]),
    (
        'GatherElements',
        [M, np.array([[0, -1], [1, 2]], I64)],
        {'axis': 1},
        lambda x, i: np.take_along_axis(x[:2], i, 1),
    ),
    ('GatherND', [X, np.array([[1, 0], [0, 2]], I64)], {}, lambda x, i: x[[1, 0], [0, 2]]),
    (
        'ScatterElements',
        [M, np.array([[1, 0], [2, -1]], I64), numbers(2, 2)],
        {'axis': 1, 'reduction': 'add'},
        lambda x, i, u: t(x).scatter_add(1, t(i % 4), t(u)),
    ),
    (
        'ScatterND',
        [M, np.array([[0, 1], [2, 3], [0, 1]], I64), numbers(3)],
        {'reduction': 'add'},
        scatter_nd,
    ),
    (
        'OneHot',
        [np.array([0, -1, 2], I64), np.array(3, I64), np.array([0.5, 2.0])],
        {'axis': 0},
        lambda i, d, v: np.where(np.eye(3)[i].T > 0, 2.0, 0.5),
    ),
    ('ReduceSum', [X, np.array([1, -1], I64)], {'keepdims': 0}, lambda x, a: x.sum((1, 3))),
    ('ReduceMean', [X], {'axes': [2, 3]}, lambda x: x.mean((2, 3), keepdims=True)),
    ('ReduceL2', [M], {'axes': [0]}, lambda x: np.sqrt((x * x).sum(0, keepdims=True))),
    ('ReduceLogSumExp', [M], {}, lambda x: np.log(np.exp(x).sum(keepdims=True))),
    (
        'ArgMax',
        [np.array([[1.0, 3, 3], [2, 2, 1]])],
        {'axis': 1, 'select_last_index': 1},
        lambda x: np.array([[2], [1]], I64),
    ),
    (
        'TopK',
        [M, np.array([2], I64)],
        {'largest': 0},
        lambda x, k: (np.sort(x)[:, :2], np.argsort(x)[:, :2]),
    ),
    (
        'CumSum',
        [M, np.array(1, I64)],
        {'exclusive': 1, 'reverse': 1},
        lambda x, a: np.flip(np.cumsum(np.flip(x, 1), 1), 1) - x,
    ),
    ('Conv', [X, W], {'auto_pad': 'SAME_UPPER', 'strides': [2, 2]}, conv_same_upper),
    (
        'Conv',
        [X, numbers(3, 1, 2, 2), numbers(3)],
        {'group': 3, 'dilations': [2, 1], 'pads': [1, 0, 0, 1]},
        lambda x, w, b: F.conv2d(F.pad(t(x), (0, 1, 1, 0)), t(w), t(b), groups=3, dilation=(2, 1)),
    ),
    (
        'ConvTranspose',
        [X, numbers(3, 2, 3, 3)],
        {'strides': [2, 1], 'pads': [1, 0, 0, 1]},
        lambda x, w: F.conv_transpose2d(t(x), t(w), stride=(2, 1))[:, :, 1:, :-1],
    ),
    (
        'MaxPool',
        [X],
        {'kernel_shape': [3, 2], 'strides': [2, 2], 'pads': [0, 0, 1, 1]},
        lambda x: F.max_pool2d(F.pad(t(x), (0, 1, 0, 1), value=-np.inf), (3, 2), 2),
    ),
    (
        'AveragePool',
        [X],
        {'kernel_shape': [3, 3], 'strides': [2, 2], 'pads': [1, 1, 1, 1]},
        average_of_parts,
    ),
    (
        'Resize',
        [X, np.array([]), np.array([]), np.array([2, 3, 7, 9], I64)],
        {'mode': 'cubic'},
        cubic,
    ),
    (
        'Resize',
        [X, np.array([]), np.array([1, 1, 2, 2], np.float32)],
        {
            'mode': 'nearest',
            'coordinate_transformation_mode': 'asymmetric',
            'nearest_mode': 'floor',
        },
        lambda x, *a: x.repeat(2, 2).repeat(2, 3),
    ),
    (
        'Gemm',
        [M, numbers(3, 5), numbers(5)],
        {'alpha': 0.5, 'beta': 2.0, 'transA': 1},
        lambda a, b, c: 0.5 * a.T @ b + 2 * c,
    ),
    ('Einsum', [M, numbers(3, 5)], {'equation': 'ij,ik->jk'}, lambda a, b: a.T @ b),
    (
        'BatchNormalization',
        [X, numbers(3, low=0.5), numbers(3), numbers(3), numbers(3, low=0.5)],
        {'epsilon': 1e-3},
        lambda x, s, b, m, v: F.batch_norm(t(x), t(m), t(v), t(s), t(b), eps=single(1e-3)),
    ),
    (
        'LayerNormalization',
        [X, numbers(5, 6), numbers(5, 6)],
        {'axis': 2},
        lambda x, s, b: F.layer_norm(t(x), (5, 6), t(s), t(b), 1e-5),
    ),
    (
        'GroupNormalization',
        [numbers(2, 4, 3), numbers(4), numbers(4)],
        {'num_groups': 2},
        lambda x, s, b: F.group_norm(t(x), 2, t(s), t(b), 1e-5),
        21,
    ),
    ('LpNormalization', [M], {'axis': 0, 'p': 1}, lambda x: x / abs(x).sum(0)),
    (
        'LRN',
        [X],
        {'size': 3, 'alpha': 0.3, 'bias': 2.0},
        lambda x: F.local_response_norm(t(x), 3, single(0.3), 0.75, 2.0),
    ),
    (
        'NegativeLogLikelihoodLoss',
        [M, np.array([1, 3, 0], I64), numbers(4, low=0.5)],
        {'ignore_index': 3},
        lambda x, i, w: F.nll_loss(t(x), t(i), t(w), ignore_index=3),
    ),
    ('LSTM', LSTM + [numbers(1, 40, seed=9)], {'hidden_size': 5}, lstm),
    ('GRU', GRU + [numbers(1, 30, seed=9)], {'hidden_size': 5}, gru),
    (
        'QuantizeLinear',
        [M, np.array([0.5, 0.25, 0.125, 1.0]), np.array([3, 0, -5, 1], np.int8)],
        {'axis': 1},
        lambda x, s, z: np.clip(np.rint(x / s) + z, -128, 127).astype(np.int8),
        23,
    ),
    (
        'MatMulInteger',
        [INTS.astype(np.int8), INTS.T.astype(np.int8), np.array(2, np.int8)],
        {},
        lambda a, b, z: ((a.astype(int) - z) @ b.astype(int)).astype(np.int32),
    ),
    ('Attention', [Q, K, VALUES], {'is_causal': 1, 'scale': 0.25}, 1, 26),
    (
        'Attention',
        [Q, K, VALUES, numbers(3, 5)],
        {'softcap': 2.0, 'qk_matmul_output_mode': 2},
        4,
        26,
    ),
    (
        'Attention',
        [Q, K, VALUES, numbers(3, 7) > 0, numbers(2, 2, 2, 8), numbers(2, 2, 2, 6)],
        {'is_causal': 1, 'qk_matmul_output_mode': 3},
        4,
        26,
    ),
    (
        'Attention',
        [Q, K, VALUES, NONE, NONE, NONE, np.array([5, 3], I64)],
        {'left_window_size': 2, 'right_window_size': 1},
        1,
        26,
    ),
    (
        'Attention',
        [numbers(2, 3, 8, seed=1), numbers(2, 5, 4, seed=2), numbers(2, 5, 6, seed=3)],
        HEADS,
        1,
        26,
    ),
    (
        'RotaryEmbedding',
        [numbers(2, 3, 4, 6), numbers(9, 2), numbers(9, 2, seed=1), np.array([[0, 3, 8, 1]] * 2)],
        {'interleaved': 1, 'rotary_embedding_dim': 4},
        1,
        26,
    ),
    ('RotaryEmbedding', [numbers(1, 3, 8), numbers(1, 3, 2), numbers(1, 3, 2, seed=1)],
     {'num_heads': 2}, 1, 26),
    (
        'LinearAttention',
        [numbers(1, 4, 6), numbers(1, 4, 3), numbers(1, 4, 2), NONE, numbers(1, 4, 3, seed=1)]
        + [numbers(1, 4, 1)],
        HEADS,
        linear_attention,
        27,
    ),
    ('CausalConvWithState', [numbers(2, 3, 5), numbers(3, 1, 3), numbers(3), numbers(2, 3, 2)], {},
     2, 27),
    ('SwiGLU', [M, M + 1], {'alpha': 1.5}, 1, 27),
    ('TensorScatter', [numbers(2, 5, 3), numbers(2, 2, 3), np.array([4, 1], I64)],
     {'mode': 'circular'}, 1, 26),
    ('Div', [BIG, BY], {}, lambda a, b: a // b, 26),
    ('Mod', [BIG, BY], {}, lambda a, b: a % b, 26),
    ('Less', [BIG, BY], {}, lambda a, b: a < b, 26),
    ('Max', [BIG, BY], {}, lambda a, b: np.maximum(a, b), 26),
    ('BitShift', [BIG, BY % 64], {'direction': 'RIGHT'}, lambda a, b: a >> b, 26),
    ('Add', [SHORT, SHORT], {}, lambda a, b: a + b, 26),
    ('BitwiseNot', [SHORT], {}, lambda a: ~a, 26),
    ('TopK', [BIG, np.array([2], I64)], {}, lambda a, k: (a[[2, 0]], np.array([2, 0])), 26),
    ('DFT', [numbers(2, 5, 3, 2), np.array(7, I64), np.array(1, I64)], {}, 1, 26),
    ('DFT', [numbers(2, 6, 1), NONE, np.array(1, I64)], {'onesided': 1}, 1, 26),
    ('DFT', [numbers(2, 4, 2), np.array(6, I64)], {'onesided': 1, 'inverse': 1}, 1, 26),
    ('STFT', [numbers(2, 12, 1), np.array(3, I64), numbers(4)], {}, 1, 26),
    (
        'NonMaxSuppression',
        [BOXES, SCORES, np.array([3], I64), np.array([0.2], np.float32)],
        {'center_point_box': 1},
        1,
        26,
    ),
    (
        'RoiAlign',
        [X, ROIS, np.array([1, 0], I64)],
        {'output_height': 2, 'output_width': 3, 'sampling_ratio': 2, 'spatial_scale': 0.75},
        1,
        26,
    ),
    ('RoiAlign', [X, ROIS, np.array([1, 0], I64)], {'mode': 'max', 'output_width': 2}, 1, 26),
    (
        'DeformConv',
        [X[:1, :2], numbers(4, 1, 2, 2), OFFSETS, numbers(4), numbers(1, 4, 3, 3)],
        {'group': 2, 'strides': [2, 2], 'pads': [1, 0, 0, 1]},
        lambda x, w, o, b, m: torchvision.ops.deform_conv2d(
            F.pad(t(x), (0, 1, 1, 0)), t(o), t(w), t(b), (2, 2), (0, 0), 1, t(m)
        ),
        26,
    ),
    ('Col2Im', [numbers(1, 8, 6), np.array([3, 4], I64), np.array([2, 2], I64)], {}, 1, 26),
    ('CenterCropPad', [X, np.array([8, 3], I64)], {'axes': [1, -1]}, 1, 26),
    ('Unique', [np.array([3.0, 1, 3, 2, 1])], {'sorted': 0}, 4, 26),
    ('Unique', [np.array([[3.0, 1], [3, 1], [0, 9]])], {'axis': 0}, 4, 26),
    ('BitCast', [M], {'to': TensorProto.INT64}, lambda x: x.view(I64), 26),
    (
        PREVIEW + 'Adam',
        [np.array(0.1), np.array(3, I64), M, M + 1, M - 1, M * M],
        {'alpha': 0.875, 'beta': 0.75, 'epsilon': 2.0**-9, 'norm_coefficient_post': 0.5},
        3,
        26,
    ),
    (
        PREVIEW + 'Momentum',
        [np.array(0.1), np.array(0, I64), M, M + 1, M - 1],
        {'alpha': 0.5, 'beta': 0.75, 'mode': 'nesterov', 'norm_coefficient': 0.25},
        2,
        26,
    ),
]
