# SPDX-License-Identifier: MIT
#
# Cases of function_cases.py. Functions of one, two and three tensors, in place and not.
import torch

from function_case import (
    A,
    F32,
    F64,
    I8,
    I32,
    INF,
    NAN,
    real,
    positive,
    unit,
    cplx,
    ints,
    bools,
    whole,
    call,
    program,
)


def pointwise():
    x = lambda: real(2, 3)
    p = lambda: positive(2, 3)
    u = lambda: unit(2, 3)
    cases = [
        call(f.default, x())
        for f in (
            A.relu,
            A.sigmoid,
            A.tanh,
            A.silu,
            A.mish,
            A.hardswish,
            A.log_sigmoid,
            A.relu6,
            A.selu,
            A.exp,
            A.abs,
            A.sign,
            A.floor,
            A.ceil,
            A.trunc,
            A.frac,
            A.square,
            A.reciprocal,
            A.expm1,
            A.sin,
            A.cos,
            A.tan,
            A.atan,
            A.sinh,
            A.cosh,
            A.asinh,
            A.erf,
            A.erfc,
            A.exp2,
            A.neg,
            A.isnan,
            A.isinf,
            A.isfinite,
            A.logical_not,
            A.sgn,
            A.angle,
            A.real,
            A.conj,
            A.signbit,
            A.sinc,
            A.special_expm1,
            A.special_expit,
            A.special_erf,
            A.positive,
            A.detach,
            A.alias,
            A.lift_fresh_copy,
            A.clone,
            A.contiguous,
            A.round,
            A.gelu,
            A.elu,
            A.celu,
            A.leaky_relu,
            A.softplus,
            A.hardtanh,
            A.hardshrink,
            A.softshrink,
            A.nan_to_num,
            A.i0,
            A.resolve_conj,
            A.resolve_neg,
            A.deg2rad,
            A.rad2deg,
            A.absolute,
            A.negative,
            A.conj_physical,
            A.arctan,
            A.arcsinh,
            A.isposinf,
            A.isneginf,
            A.special_sinc,
            A.lift,
            A.alias_copy,
        )
    ]
    cases += [
        call(f.default, p())
        for f in (A.log, A.sqrt, A.rsqrt, A.log1p, A.log2, A.log10, A.lgamma, A.digamma)
    ]
    cases += [call(f.default, u()) for f in (A.asin, A.acos, A.atanh, A.erfinv, A.logit)]
    cases += [
        call(f.default, u())
        for f in (A.arcsin, A.arccos, A.arctanh, A.special_log1p, A.special_logit)
    ]
    cases += [
        call(A.acosh.default, real(2, 3, low=1.5, high=4.0)),
        call(A.arccosh.default, real(2, 3, low=1.5, high=4.0)),
        # PyTorch's gradient is that of float32.
        call(A.hardsigmoid.default, x()).instead(lambda a: (a + 3).clamp(0, 6) / 6),
        call(A.bitwise_not.default, ints(2, 3)),
        call(A.bitwise_not.default, bools(4)),
        call(A.logical_not.default, ints(4)),
        call(A.neg.default, ints(4)),
        call(A.exp.default, ints(4)),
        call(A.detach_copy.default, real(3, grad=False)),
        call(A.imag.default, cplx(2, 2)),
        call(A.real.default, cplx(2, 2)),
        call(A.angle.default, cplx(2, 2)),
        call(A.conj.default, cplx(2, 2)),
        call(A._conj.default, cplx(2, 2)),
        call(A.abs.default, cplx(2, 2)),
        call(A.view_as_real.default, cplx(2, 2)),
        call(A.view_as_complex.default, real(3, 2)),
        call(A.complex.default, real(3), real(3)),
        call(A.polar.default, positive(3), real(3)),
        call(A.round.decimals, real(5), decimals=1),
        call(A.gelu.default, x(), approximate='tanh'),
        call(A.elu.default, x(), 0.5),
        call(A.elu.default, x(), 1.6732632423543772, 1.0507009873554805),
        call(A.elu.default, x(), 0.5, 1.5, 0.75),
        call(A.celu.default, x(), 0.5),
        call(A.leaky_relu.default, x(), 0.2),
        call(A.softplus.default, x(), 2.0, 1.5),
        call(A.hardtanh.default, x(), -0.5, 0.75),
        call(A.hardshrink.default, x(), 0.75),
        call(A.softshrink.default, x(), 0.25),
        call(A.threshold.default, x(), 0.1, -3.0),
        call(A.prelu.default, real(2, 3, 2), real(3)),
        call(A._prelu_kernel.default, real(2, 3, 2), real(1, 3, 1)),
        call(A.glu.default, real(2, 4)),
        call(A.glu.default, real(4, 3), 0),
        call(A.logit.default, u(), 0.25),
        call(A.clamp.default, x(), -0.5),
        call(A.clamp.default, x(), None, 0.5),
        call(A.clamp.default, x(), -0.5, 0.5),
        call(A.clamp.default, ints(6), -2, 3),
        call(A.clamp.Tensor, x(), real(3, low=-1.0, high=0.0)),
        call(A.clamp.Tensor, x(), None, real(3, low=0.0, high=1.0)),
        call(A.clip.default, x(), -0.5, 0.5),
        call(A.clamp_min.default, x(), 0.25),
        call(A.clamp_max.default, x(), 0.25),
        call(A.clamp_min.Tensor, x(), real(3)),
        call(A.clamp_max.Tensor, x(), real(3)),
        call(A.nan_to_num.default, torch.tensor([NAN, INF, -INF, 1.5], dtype=F64), 2.0, 3.0, -4.0),
        call(A.nan_to_num.default, torch.tensor([NAN, INF, -INF, 1.5], dtype=F64)),
        call(A.positive.default, ints(3)),
        call(A.special_i0.default, x()),
        call(A.special_erfc.default, x()),
        call(A.special_erfinv.default, u()),
        call(A.special_exp2.default, x()),
        call(A.special_round.default, x()),
        call(A.special_gammaln.default, p()),
        call(A.special_digamma.default, p()),
        call(A.special_psi.default, p()),
        call(A.polygamma.default, 1, p()),
    ]
    return cases


def inplace():
    x = lambda: real(2, 3)
    q = lambda: real(2, 3, grad=False)
    p = lambda: positive(2, 3)
    cases = [
        call(f.default, x())
        for f in (
            A.relu_,
            A.sigmoid_,
            A.tanh_,
            A.silu_,
            A.hardswish_,
            A.relu6_,
            A.selu_,
            A.exp_,
            A.abs_,
            A.neg_,
            A.sin_,
            A.cos_,
            A.floor_,
            A.ceil_,
            A.round_,
            A.trunc_,
            A.square_,
            A.reciprocal_,
            A.mish_,
            A.erf_,
            A.zero_,
            A.hardtanh_,
            A.leaky_relu_,
            A.elu_,
            A.celu_,
            A.sign_,
            A.expm1_,
            A.nan_to_num_,
            A.atan_,
        )
    ]
    cases += [call(f.default, p()) for f in (A.sqrt_, A.rsqrt_, A.log_, A.log1p_)]
    cases += [
        call(A.hardtanh_.default, x(), -0.5, 0.75),
        call(A.leaky_relu_.default, x(), 0.2),
        call(A.elu_.default, x(), 0.5),
        call(A.threshold_.default, x(), 0.1, -3.0),
        call(A.gelu_.default, x()),
        call(A.logical_not_.default, q()),
        call(A.hardsigmoid_.default, x()).instead(lambda a: (a + 3).clamp(0, 6) / 6),
        call(A.add_.Tensor, x(), real(3), alpha=2),
        call(A.add_.Tensor, x(), 1.5),
        call(A.add_.Tensor, ints(4), 2),
        call(A.add_.Scalar, x(), 1.5, 2),
        call(A.sub_.Tensor, x(), real(3), alpha=2),
        call(A.sub_.Tensor, x(), 1.5),
        call(A.sub_.Scalar, x(), 1.5),
        call(A.mul_.Tensor, x(), real(3)),
        call(A.mul_.Tensor, x(), 1.5),
        call(A.mul_.Scalar, x(), 1.5),
        call(A.div_.Tensor, x(), positive(3)),
        call(A.div_.Tensor, x(), 1.5),
        call(A.div_.Scalar, x(), 1.5),
        call(A.div_.Tensor_mode, x(), 0.75, rounding_mode='floor'),
        call(A.pow_.Scalar, x(), 2),
        call(A.pow_.Tensor, p(), real(3)),
        call(A.clamp_.default, x(), -0.5, 0.5),
        call(A.clamp_min_.default, x(), 0.25),
        call(A.clamp_max_.default, x(), 0.25),
        call(A.fill_.Scalar, x(), 1.5),
        call(A.fill_.Tensor, x(), real()),
        call(A.copy_.default, x(), real(3)),
        call(A.copy_.default, x(), ints(2, 1)),
        call(A.masked_fill_.Scalar, x(), bools(2, 3), -1.5),
        call(A.masked_fill_.Tensor, x(), bools(2, 1), real()),
        call(A.index_add_.default, real(4, 2), 0, whole(1, 3, 1), real(3, 2), alpha=2),
        call(A.index_copy_.default, real(4, 2), 0, whole(1, 3), real(2, 2)),
        call(A.index_fill_.int_Scalar, real(4, 2), 0, whole(1, 3), 1.5),
        call(A.scatter_add_.default, real(3, 2), 0, whole(0, 2, 2, 1).reshape(2, 2), real(2, 2)),
        call(A.scatter_.src, real(3, 2), 0, whole(0, 2, 1, 0).reshape(2, 2), real(2, 2)),
        call(A.scatter_.value, real(3, 2), 0, whole(0, 2, 1, 0).reshape(2, 2), 1.5),
        call(A.index_put_.default, real(4, 3), [whole(0, 2)], real(2, 3)),
        call(A.index_put_.default, real(4, 3), [whole(0, 0)], real(2, 3), True),
        call(A.index_put_.default, real(4, 3), [bools(4, 3)], real()),
        call(A.addcmul_.default, x(), x(), real(3), value=0.5),
        call(A.addcdiv_.default, x(), x(), positive(3), value=0.5),
        call(A.addmm_.default, real(2, 3), real(2, 4), real(4, 3), beta=0.5, alpha=2),
        call(A.baddbmm_.default, real(2, 2, 3), real(2, 2, 4), real(2, 4, 3), beta=0.5),
        call(A.lerp_.Scalar, x(), x(), 0.25),
        call(A.lerp_.Tensor, x(), x(), unit(3)),
        call(A.tril_.default, real(3, 3)),
        call(A.triu_.default, real(3, 3), 1),
        call(A.dropout_.default, x(), 0.5, False),
        call(A.feature_dropout_.default, real(2, 3, 2), 0.5, False),
        call(A.remainder_.Scalar, x(), 0.75),
        call(A.fmod_.Scalar, x(), 0.75),
        call(A.cumsum_.default, x(), 1),
        call(A.eq_.Scalar, ints(5, low=0, high=3), 1),
        call(A.ge_.Scalar, x(), 0.5),
        call(A.bitwise_and_.Tensor, ints(4), ints(4)),
        call(A.logical_and_.default, bools(4), bools(4)),
        call(A.floor_divide_.Tensor, q(), positive(3, grad=False)),
        call(A.masked_scatter_.default, real(4), whole(1, 0, 1, 0).bool(), real(3)),
        program('detach_.default', lambda a: A.detach_(A.mul.Tensor(a, 2.0)), x()),
        program('zero_.default', zero_a_part, real(3, 2)),
        program('add_.Tensor', add_to_a_view, real(3, 2), real(2)),
        program('relu_.default', relu_of_a_view, real(3, 2)),
        program('div.out', divided_into, real(2, 3), positive(3)),
        program('squeeze_.dim', lambda a: A.squeeze_.dim(A.clone(a), 1), real(2, 1)),
        program('unsqueeze_.default', lambda a: A.unsqueeze_.default(A.clone(a), 1), real(2)),
        program('t_.default', lambda a: A.t_.default(A.clone(a)), real(2, 3)),
        program('transpose_.default', lambda a: A.transpose_(A.clone(a), 0, 1), real(2, 3)),
    ]
    return cases


def zero_a_part(x):
    y = A.clone(x)
    A.zero_(A.select.int(y, 0, 1))
    return y


def add_to_a_view(x, v):
    y = A.clone(x)
    A.add_.Tensor(A.select.int(y, 0, 1), v)
    return A.mul.Tensor(y, y)


def relu_of_a_view(x):
    y = A.clone(x)
    A.relu_(A.slice.Tensor(y, 0, 1, 3))
    return y


def divided_into(a, b):
    y = A.empty_like(a)
    A.div.out(a.detach(), b.detach(), out=y)
    return y


def binary():
    x = lambda: real(2, 3)
    q = lambda: real(2, 3, grad=False)
    v = lambda: real(3)
    p = lambda: positive(3)
    n = lambda: ints(2, 3)
    zero = lambda value, dtype: torch.tensor(value, dtype=dtype)
    cases = [
        call(f.Tensor, x(), v())
        for f in (
            A.add,
            A.sub,
            A.mul,
            A.div,
            A.eq,
            A.ne,
            A.lt,
            A.le,
            A.gt,
            A.ge,
            A.subtract,
            A.multiply,
            A.divide,
            A.true_divide,
            A.less,
            A.greater,
            A.not_equal,
            A.less_equal,
            A.greater_equal,
        )
    ]
    cases += [
        call(f.default, x(), v())
        for f in (
            A.maximum,
            A.minimum,
            A.fmax,
            A.fmin,
            A.atan2,
            A.hypot,
            A.logaddexp,
            A.logaddexp2,
            A.logical_and,
            A.logical_or,
            A.logical_xor,
            A.arctan2,
            A.nextafter,
        )
    ]
    cases += [
        call(f.Scalar, x(), 0.75)
        for f in (
            A.add,
            A.sub,
            A.mul,
            A.div,
            A.eq,
            A.ne,
            A.lt,
            A.le,
            A.gt,
            A.ge,
            A.fmod,
            A.remainder,
            A.rsub,
            A.subtract,
            A.multiply,
            A.divide,
        )
    ]
    cases += [
        call(f.Tensor, x(), number)
        for f in (A.add, A.sub, A.mul, A.div, A.true_divide)
        for number in (0.75, 3)
    ]
    cases += [
        call(f.Tensor, n(), number) for f in (A.add, A.sub, A.mul, A.div) for number in (0.75, 3)
    ]
    cases += [
        call(A.add.Tensor, x(), v(), alpha=0.5),
        call(A.add.Tensor, x(), 2.0, alpha=0.5),
        call(A.add.Scalar, x(), 2.0, 0.5),
        call(A.sub.Tensor, x(), v(), alpha=0.5),
        call(A.sub.Tensor, x(), 2.0, alpha=0.5),
        call(A.rsub.Tensor, x(), v(), alpha=0.5),
        call(A.rsub.Scalar, x(), 2.0, 0.5),
        call(A.rsub.Scalar, n(), 2),
        call(A.add.Tensor, bools(3), bools(3)),
        call(A.add.Tensor, ints(3, dtype=I32), zero(2.5, F64)),
        call(A.add.Tensor, real(3, dtype=F32), zero(2.5, F64)),
        call(A.mul.Tensor, ints(3, dtype=I8), 2),
        call(A.mul.Tensor, bools(3), 2),
        call(A.lt.Scalar, ints(5, dtype=I8), 2),
        call(A.lt.Scalar, ints(5), 1.5),
        call(A.eq.Scalar, bools(3), 1),
        call(A.eq.Scalar, zero(2, I32), 2),
        call(A.div.Scalar, zero(3, I32), 2),
        call(A.div.Tensor, n(), ints(3, low=1)),
        call(A.div.Tensor_mode, x(), p(), rounding_mode='floor'),
        call(A.div.Tensor_mode, x(), p(), rounding_mode='trunc'),
        call(A.div.Tensor_mode, x(), p(), rounding_mode=None),
        call(A.div.Tensor_mode, n(), 3, rounding_mode='floor'),
        call(A.div.Scalar_mode, n(), 3, rounding_mode='trunc'),
        call(A.floor_divide.default, n(), ints(3, low=1)),
        call(A.floor_divide.default, q(), 0.75),
        call(A.floor_divide.Scalar, n(), 3),
        call(A.fmod.Tensor, x(), p()),
        call(A.remainder.Tensor, x(), p()),
        call(A.remainder.Scalar, n(), 3),
        call(A.remainder.Scalar_Tensor, 5, ints(3, low=1)),
        call(A.pow.Tensor_Scalar, x(), 2),
        call(A.pow.Tensor_Scalar, positive(2, 3), 0.5),
        call(A.pow.Tensor_Scalar, positive(2, 3), -1.5),
        call(A.pow.Tensor_Scalar, n(), 3),
        call(A.pow.Tensor_Tensor, positive(2, 3), v()),
        call(A.pow.Scalar, 2.5, x()),
        call(A.pow.Scalar, 2, x()),
        call(A.pow.Scalar, 2, ints(3, low=0)),
        call(A.float_power.Tensor_Scalar, ints(3, low=1), 0.5),
        call(A.float_power.Tensor_Tensor, positive(3, dtype=F32, grad=False), real(3)),
        call(A.xlogy.Tensor, x(), p()),
        call(A.xlogy.Scalar_Other, x(), 1.5),
        call(A.xlogy.Scalar_Self, 1.5, p()),
        call(A.special_xlogy.default, x(), p()),
        call(A.copysign.Tensor, x(), v()),
        call(A.copysign.Scalar, x(), -1.0),
        call(A.heaviside.default, q(), real(3, grad=False)),
        call(A.gcd.default, n(), ints(3)),
        call(A.lcm.default, n(), ints(3)),
        call(A.bitwise_and.Tensor, n(), ints(3)),
        call(A.bitwise_or.Tensor, bools(3), bools(3)),
        call(A.bitwise_xor.Tensor, n(), ints(3)),
        call(A.bitwise_and.Scalar, n(), 3),
        call(A.bitwise_or.Scalar, n(), 3),
        call(A.bitwise_xor.Scalar, n(), 3),
        call(A.bitwise_left_shift.Tensor, n(), ints(3, low=0)),
        call(A.bitwise_right_shift.Tensor, n(), ints(3, low=0)),
        call(A.bitwise_left_shift.Tensor_Scalar, n(), 2),
        call(A.bitwise_right_shift.Tensor_Scalar, n(), 1),
        call(A.__and__.Tensor, bools(2, 3), bools(3)),
        call(A.__or__.Tensor, n(), ints(3)),
        call(A.__xor__.Tensor, n(), ints(3)),
        call(A.__and__.Scalar, n(), 3),
        call(A.__or__.Scalar, n(), 3),
        call(A.__lshift__.Scalar, n(), 2),
        call(A.__rshift__.Scalar, n(), 1),
        call(A.logical_and.default, n(), x()),
        call(A.max.other, x(), v()),
        call(A.min.other, x(), v()),
        call(A.lerp.Scalar, x(), v(), 0.25),
        call(A.lerp.Tensor, x(), v(), unit(2, 3)),
        call(A.addcmul.default, x(), x(), v(), value=0.5),
        call(A.addcdiv.default, x(), x(), p(), value=0.5),
        call(A.where.self, bools(2, 3), x(), v()),
        call(A.where.self, bools(2, 3), x(), zero(1.5, F32)),
        call(A.where.self, bools(2, 3), n(), real(3)),
        call(A.where.ScalarOther, bools(2, 3), x(), 1.5),
        call(A.where.ScalarSelf, bools(2, 3), 1.5, x()),
        call(A.where.Scalar, bools(2, 3), 1.5, 0.0),
        call(A.where.Scalar, bools(2, 3), 1, 0),
        call(A.where.default, whole(1, 0, 1, 1).reshape(2, 2).bool()),
        call(A.masked_fill.Scalar, x(), bools(2, 3), -INF),
        call(A.masked_fill.Scalar, x(), bools(3), 1.5),
        call(A.masked_fill.Tensor, x(), bools(2, 3), real()),
        call(A.masked_fill.Tensor, x(), bools(2, 3), zero(1.5, F32)),
        # a number for integers loses its fraction
        call(A.masked_fill.Scalar, whole(5, 6, 7), whole(1, 0, 1).bool(), 2.7),
        call(A.masked_fill.Scalar, whole(5, 6, 7, dtype=I8), whole(1, 0, 1).bool(), -2.7),
        call(A.masked_fill_.Scalar, whole(5, 6, 7, dtype=I32), whole(1, 0, 1).bool(), 2.7),
        call(A.masked_fill.Scalar, whole(1, 0, 0).bool(), whole(1, 1, 0).bool(), 0.5),
        # a number that the dtype does not have
        call(A.div.Tensor, whole(100, -7, 3, dtype=I8), 300),
        call(A.div.Scalar, whole(100, -7, 3, dtype=I8), -300),
        call(A.divide.Tensor, whole(100, -7, 3, dtype=I8), 300),
        call(A.true_divide.Tensor, whole(1, 0).bool(), 300),
        call(A.isclose.default, x(), v()),
        call(A.isin.Tensor_Tensor, n(), whole(1, 2, 3)),
        call(A.isin.Tensor_Scalar, n(), 2),
        call(A.bucketize.Tensor, real(5, grad=False), torch.tensor([-1.0, 0.0, 1.0], dtype=F64)),
        call(A.bucketize.Tensor, ints(5), whole(-2, 0, 2), right=True, out_int32=True),
        call(A.searchsorted.Tensor, torch.tensor([-1.0, 0.0, 1.0], dtype=F64), real(2, 2)),
        call(A.igamma.default, positive(3, grad=False), positive(3)),
        call(A.complex.default, v(), v()),
    ]
    return cases
