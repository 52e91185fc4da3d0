# SPDX-License-Identifier: MIT
#
# Cases of function_cases.py. New tensors, conversions, reductions.
import torch

from function_case import (
    A,
    F32,
    F64,
    I32,
    I64,
    BOOL,
    CPU,
    INF,
    NAN,
    real,
    ints,
    bools,
    whole,
    call,
    program,
)


def creation():
    x = lambda: real(2, 3)
    q = lambda: real(2, 3, grad=False)
    one = lambda: real(1)
    shape = [2, 3]
    cases = [
        program('zeros.default', lambda a: [A.zeros(shape), A.zeros(shape, dtype=I64)], one()),
        program('ones.default', lambda a: [A.ones(shape), A.ones(shape, dtype=F64)], one()),
        program(
            'full.default',
            lambda a: [
                A.full(shape, 1.5),
                A.full(shape, 2),
                A.full([], True),
                A.full(shape, 2, dtype=F64),
                A.full(shape, INF),
                A.full([], -1.5, dtype=F64, device=CPU, pin_memory=False),
            ],
            one(),
        ),
        program(
            'empty.memory_format', lambda a: A.fill_.Scalar(A.empty(shape, dtype=F64), 2), one()
        ),
        program(
            'scalar_tensor.default',
            lambda a: [A.scalar_tensor(2), A.scalar_tensor(1.5, dtype=F64)],
            one(),
        ),
        program(
            'arange.start_step',
            lambda a: [
                A.arange(5),
                A.arange(2.5),
                A.arange(5, dtype=F64),
                A.arange.start(1, 4),
                A.arange.start(0.5, 3),
                A.arange.start_step(5, 0, -2),
                A.arange.start_step(0, 1, 0.25),
                A.arange.start_step(0, 6, 2, dtype=F64),
            ],
            one(),
        ),
        program(
            'linspace.default',
            lambda a: [A.linspace(0, 1, 5), A.linspace(-1.5, 2, 4, dtype=F64)],
            one(),
        ),
        program('logspace.default', lambda a: A.logspace(0, 1, 3, dtype=F64), one()),
        program(
            'eye.m', lambda a: [A.eye(2), A.eye.m(2, 3, dtype=F64), A.eye(2, dtype=I64)], one()
        ),
        program(
            'hann_window.default',
            lambda a: [
                A.hann_window(6, dtype=F64),
                A.hann_window.periodic(6, False, dtype=F64),
                A.hann_window(1, dtype=F64),
                A.hann_window(5),
            ],
            one(),
        ),
        program('hamming_window.default', lambda a: A.hamming_window(6, dtype=F64), one()),
        program('blackman_window.default', lambda a: A.blackman_window(6, dtype=F64), one()),
        program('tril_indices.default', lambda a: A.tril_indices(3, 3), one()),
        program('triu_indices.default', lambda a: A.triu_indices(3, 4, 1), one()),
        call(A.new_zeros.default, x(), [3]),
        call(A.new_zeros.default, x(), [3], dtype=I64),
        call(A.new_ones.default, x(), [3]),
        call(A.new_full.default, x(), [3], 1.5),
        call(A.new_full.default, ints(2), [3], 2, dtype=F64),
        program('new_empty.default', lambda a: A.zero_(A.new_empty(a, [3])), x()),
        call(A.zeros_like.default, x()),
        call(A.zeros_like.default, x(), dtype=BOOL),
        call(A.ones_like.default, x()),
        call(A.ones_like.default, x(), dtype=I64),
        call(A.full_like.default, x(), 1.5),
        call(A.full_like.default, ints(3), 2, dtype=F64),
        program(
            'empty_strided.default',
            lambda a: A.zero_(A.empty_strided([2, 3], [1, 2], dtype=F64)),
            one(),
        ),
        program(
            'empty_permuted.default',
            lambda a: A.zero_(A.empty_permuted([2, 3], [1, 0], dtype=F64)),
            one(),
        ),
        program(
            'new_empty_strided.default',
            lambda a: A.zero_(A.new_empty_strided(a, [2, 3], [1, 2])),
            one(),
        ),
        program('empty_like.default', lambda a: A.zero_(A.empty_like(a)), x()),
        call(A.to.dtype, x(), F32),
        call(A.to.dtype, x(), I64),
        call(A.to.dtype, x(), F64, False, True),
        call(A.to.dtype, ints(3), F64),
        call(A.to.dtype_layout, x(), dtype=F32, layout=torch.strided, device=CPU),
        call(A.to.dtype_layout, x(), copy=True),
        call(A.to.device, x(), CPU, F32),
        call(A.to.other, x(), ints(1, dtype=I32)),
        call(A._to_copy.default, x(), dtype=F32),
        call(A._to_copy.default, x()),
        call(A.type_as.default, x(), real(1, dtype=F32, grad=False)),
        call(torch.ops.prims.convert_element_type.default, q(), F32),
        call(A.fill.Scalar, x(), 2.5),
        call(A.fill.Tensor, x(), real()),
        call(A.zero.default, x()),
        call(A.copy.default, q(), real(3, grad=False)),
        call(A.copy.default, q(), ints(2, 1)),
        call(A.contiguous.default, real(2, 3, 2, 2), memory_format=torch.channels_last),
        call(A.clone.default, real(2, 3, 2, 2), memory_format=torch.channels_last),
        call(A._cast_Float.default, x()),
        call(A._cast_Double.default, x()),
        call(A._cast_Long.default, x()),
        call(A._cast_Int.default, x()),
        program('_cast_Half.default', lambda a: A.to.dtype(A._cast_Half(a), F64), q()),
        program('randint_like.default', lambda a: A.lt.Scalar(A.randint_like(a, 5), 5), x()),
        program(
            'randint_like.low_dtype',
            lambda a: A.ge.Scalar(A.randint_like.low_dtype(a, 2, 5), 2),
            x(),
        ),
        program('exponential_.default', lambda a: A.ge.Scalar(A.exponential_(A.clone(a)), 0), q()),
        program(
            'multinomial.default',
            lambda a: A.multinomial(a, 1),
            torch.tensor([0.0, 1.0, 0.0]).double(),
        ),
        program(
            'normal.float_float',
            lambda a: A.mul.Scalar(A.normal.float_float(0.0, 1.0, [3], dtype=F64), 0),
            one(),
        ),
        program(
            'normal_functional.default', lambda a: A.mul.Scalar(A.normal_functional(a), 0), q()
        ),
        program('randn.default', lambda a: A.mul.Scalar(A.randn([2, 3], dtype=F64), 0), one()),
        program('rand.default', lambda a: A.lt.Scalar(A.rand([2, 3]), 1), one()),
        program('randint.low', lambda a: A.ge.Scalar(A.randint.low(2, 5, [3]), 2), one()),
        program('randint.default', lambda a: A.lt.Scalar(A.randint(5, [3]), 5), one()),
        program('randperm.default', lambda a: A.sort(A.randperm(5))[0], one()),
        program('randn_like.default', lambda a: A.mul.Scalar(A.randn_like(a), 0), x()),
        program('rand_like.default', lambda a: A.lt.Scalar(A.rand_like(a), 1), x()),
        program('bernoulli.default', lambda a: A.bernoulli(A.zeros_like(a)), x()),
        program('bernoulli.p', lambda a: A.bernoulli.p(a, 0.0), q()),
        program('normal_.default', lambda a: A.mul.Scalar(A.normal_(A.clone(a)), 0), x()),
        program('uniform_.default', lambda a: A.lt.Scalar(A.uniform_(A.clone(a)), 1), x()),
        program('_assert_tensor_metadata.default', asserted, x()),
        program('item.default', counted, ints(2, low=3, high=4)),
    ]
    return cases


def asserted(x):
    A._assert_tensor_metadata(x, [2, 3], dtype=F64)
    A._assert_async.msg(A.all(A.lt.Scalar(x, 9)), 'less than 9')
    return A.relu(x)


def counted(x):
    n = A.item(A.select.int(x, 0, 0))
    torch._check(n >= 2)
    torch._check(n <= 5)
    return A.full([2], n)


def reductions():
    x = lambda: real(2, 3, 2)
    n = lambda: ints(2, 3)
    b = lambda: bools(2, 3)
    many = [A.sum, A.mean, A.nansum, A.nanmean]
    cases = []
    for f in (A.sum, A.mean):
        dims = f.dim_IntList if f is A.sum else f.dim
        cases += [
            call(f.default, x()),
            call(dims, x(), [1]),
            call(dims, x(), [0, -1], True),
            call(dims, x(), []),
            call(dims, x(), None, True),
            call(dims, n(), [1], dtype=F64),
            call(f.default, n(), dtype=F64),
        ]
    cases += [
        call(A.sum.default, n()),
        call(A.sum.dim_IntList, b(), [0]),
        call(A.nansum.default, torch.tensor([1.5, NAN, 2.5], dtype=F64), [0]),
        call(A.nanmean.default, torch.tensor([1.5, NAN, 2.5], dtype=F64), [0], True),
        call(A.prod.default, x()),
        call(A.prod.dim_int, x(), 1),
        call(A.prod.dim_int, x(), -1, True),
        call(A.prod.default, n(), dtype=F64),
        call(A.amax.default, x()),
        call(A.amax.default, x(), [1, 2], True),
        call(A.amin.default, x(), [-1]),
        call(A.aminmax.default, x(), dim=1, keepdim=True),
        call(A.any.default, b()),
        call(A.any.dim, b(), 1),
        call(A.any.dims, b(), [0, 1], True),
        call(A.any.dims, b()),
        call(A.any.dim, ints(2, 2, low=0, high=2), 0, True),
        call(A.all.default, b()),
        call(A.all.dim, b(), 1, True),
        call(A.all.dims, b(), [0]),
        call(A.logsumexp.default, x(), [1]),
        call(A.logsumexp.default, x(), [0, 2], True),
        call(A.var.default, x()),
        call(A.var.default, x(), False),
        call(A.var.dim, x(), [1]),
        call(A.var.dim, x(), [1], False, True),
        call(A.var.correction, x(), [1, 2]),
        call(A.var.correction, x(), [1], correction=0, keepdim=True),
        call(A.var.correction, x()),
        call(A.std.default, x()),
        call(A.std.dim, x(), [1]),
        call(A.std.correction, x(), [1], correction=0.5),
        call(A.var_mean.default, x()),
        call(A.var_mean.dim, x(), [1], False),
        call(A.var_mean.correction, x(), [1], correction=2, keepdim=True),
        call(A.std_mean.default, x()),
        call(A.std_mean.dim, x(), [1]),
        call(A.std_mean.correction, x(), [1], correction=0),
        call(A.max.default, x()),
        call(A.min.default, x()),
        call(A.max.dim, x(), 1),
        call(A.min.dim, x(), -1, True),
        call(A.argmax.default, x()),
        call(A.argmax.default, x(), 1),
        call(A.argmin.default, x(), -1, True),
        call(A.argmax.default, x(), None, True),
        call(A.cumsum.default, x(), 1),
        call(A.cumsum.default, n(), -1, dtype=F64),
        call(A.cumprod.default, x(), 1),
        call(A.cummax.default, x(), 1),
        call(A.cummin.default, x(), 1),
        call(A.logcumsumexp.default, x(), 1),
        call(A.sort.default, x()),
        call(A.sort.default, x(), 1, True),
        call(A.sort.stable, x(), stable=True, dim=1),
        call(A.argsort.default, x(), 1, True),
        call(A.argsort.stable, x(), stable=True, dim=0),
        call(A.topk.default, real(2, 5), 2),
        call(A.topk.default, real(5, 2), 2, 0, False),
        call(A.kthvalue.default, real(2, 5), 2),
        call(A.mode.default, whole(1, 2, 2, 3)),
        call(A.median.default, x()),
        call(A.median.dim, x(), 1),
        call(A.nanmedian.default, x()),
        call(A.nanmedian.dim, x(), 1, True),
        call(A.quantile.scalar, real(5), 0.3),
        call(A.quantile.default, real(2, 5), torch.tensor([0.25, 0.6], dtype=F64), 1, True),
        call(A.diff.default, real(2, 5)),
        call(A.diff.default, real(5, 2), 2, 0),
        call(A.diff.default, real(2, 3), 1, -1, real(2, 1), real(2, 2)),
        call(A.diff.default, bools(6)),
        call(A.norm.Scalar, x()),
        call(A.norm.Scalar, x(), 1),
        call(A.norm.ScalarOpt_dim, x(), 2, [1], True),
        call(A.norm.ScalarOpt_dim, x(), None, [1, 2]),
        call(A.norm.ScalarOpt_dim, x(), INF, [-1]),
        call(A.norm.ScalarOpt_dtype, real(3, dtype=F32, grad=False), 2, dtype=F64),
        call(A.norm.ScalarOpt_dim_dtype, real(3, dtype=F32, grad=False), 2, [0], True, dtype=F64),
        call(A.frobenius_norm.dim, x(), [1, 2]),
        call(A.linalg_vector_norm.default, x()),
        call(A.linalg_vector_norm.default, x(), 3, [1], True),
        call(A.linalg_vector_norm.default, x(), INF, [-1]),
        call(A.linalg_vector_norm.default, x(), 2, [0], dtype=F64),
        call(A.linalg_norm.default, x(), None, [1]),
        call(A.linalg_matrix_norm.str_ord, x()),
        call(A.renorm.default, real(3, 2), 2, 0, 1.0),
        call(A.dist.default, real(3), real(3)),
        call(A.trace.default, real(3, 3)),
        call(A.trapezoid.dx, real(2, 4)),
        call(A.unique_consecutive.default, whole(1, 1, 2, 3, 3), True, True),
        call(A._unique2.default, whole(3, 1, 2, 1), True, True, True),
    ]
    return cases
