# SPDX-License-Identifier: MIT
#
# Cases of function_cases.py. Pooling, resampling, losses, Fourier transforms.
from function_case import (
    A,
    F64,
    real,
    positive,
    unit,
    cplx,
    ints,
    whole,
    call,
    program,
    first,
)


def pooling():
    x1 = lambda: real(1, 2, 6)
    x2 = lambda: real(1, 1, 5, 4)
    x3 = lambda: real(1, 1, 4, 3, 2)
    cases = [
        call(A.max_pool1d.default, x1(), [2]),
        call(A.max_pool1d_with_indices.default, x1(), [3], [2], [1]),
        call(A.max_pool2d.default, x2(), [2, 2]),
        call(A.max_pool2d.default, x2(), [3], [2], [1]),
        call(A.max_pool2d.default, x2(), [2, 2], [1, 2], [0, 1], [2, 1], True),
        call(A.max_pool2d_with_indices.default, x2(), [3, 2], [2, 1], [1, 0], [1, 1], True),
        call(A.max_pool3d.default, x3(), [2, 1, 2]),
        call(A.max_pool3d_with_indices.default, x3(), [2], [1], [0]),
        call(A.avg_pool1d.default, x1(), [2]),
        call(A.avg_pool1d.default, x1(), [3], [2], [1], True, False),
        call(A.avg_pool2d.default, x2(), [2, 2]),
        call(A.avg_pool2d.default, x2(), [3], [2], [1], True, False),
        call(A.avg_pool2d.default, x2(), [3, 2], [2, 1], [1, 0], False, True, 5),
        call(A.avg_pool3d.default, x3(), [2, 1, 2], [1]),
        call(A.adaptive_avg_pool1d.default, x1(), [4]),
        call(A.adaptive_avg_pool2d.default, x2(), [2, 3]),
        call(A.adaptive_avg_pool2d.default, x2(), [1, 1]),
        call(A._adaptive_avg_pool2d.default, x2(), [3, 3]),
        call(A.adaptive_avg_pool3d.default, x3(), [2, 2, 1]),
        call(A._adaptive_avg_pool3d.default, x3(), [1, 1, 1]),
        call(A.adaptive_max_pool1d.default, x1(), [4]),
        call(A.adaptive_max_pool2d.default, x2(), [2, 3]),
        call(A.adaptive_max_pool3d.default, x3(), [2, 2, 1]),
        program('max_unpool2d.default', unpooled, real(1, 1, 4, 4)),
        program('max_unpool3d.default', unpooled_3d, real(1, 1, 2, 4, 2)),
        call(A.upsample_nearest1d.vec, x1(), [9], None),
        call(A.upsample_nearest1d.default, x1(), [4], None),
        call(A.upsample_nearest2d.vec, x2(), None, [2.0, 1.5]),
        call(A.upsample_nearest2d.vec, x2(), [7, 3], None),
        call(A.upsample_nearest2d.default, x2(), [9, 6], 1.9, 1.5),
        call(A.upsample_nearest3d.vec, x3(), [5, 3, 4], None),
        call(A.upsample_nearest3d.default, x3(), [8, 6, 4], 2.0, 2.0, 2.0),
        call(A._upsample_nearest_exact1d.vec, x1(), [4], None),
        call(A._upsample_nearest_exact1d.default, x1(), [12], 2.0),
        call(A._upsample_nearest_exact2d.default, x2(), [9, 6], 1.9, 1.5),
        call(A._upsample_nearest_exact3d.default, x3(), [5, 3, 4]),
        call(A.upsample_trilinear3d.default, x3(), [6, 6, 4], False, 1.5, 2.0, 2.0),
        call(A._upsample_nearest_exact2d.vec, x2(), [7, 3], None),
        call(A._upsample_nearest_exact3d.vec, x3(), [5, 3, 4], None),
        call(A.upsample_linear1d.vec, x1(), [9], False, None),
        call(A.upsample_linear1d.default, x1(), [9], True, None),
        call(A.upsample_bilinear2d.vec, x2(), [7, 3], False, None),
        call(A.upsample_bilinear2d.vec, x2(), [7, 3], True, None),
        call(A.upsample_bilinear2d.vec, x2(), None, False, [1.7, 0.6]),
        call(A.upsample_bilinear2d.default, x2(), [8, 2], False, 1.7, 0.6),
        call(A.upsample_bilinear2d.default, x2(), [8, 2], False),
        call(A.upsample_bicubic2d.vec, x2(), [7, 6], False, None),
        call(A.upsample_bicubic2d.vec, x2(), None, True, [1.7, 2.0]),
        call(A.upsample_bicubic2d.default, x2(), [8, 7], False, 1.7, 1.8),
        call(A.upsample_trilinear3d.vec, x3(), [5, 3, 4], False, None),
        call(A.affine_grid_generator.default, real(1, 2, 3), [1, 1, 2, 3], False),
        call(A.affine_grid_generator.default, real(1, 3, 4), [1, 1, 2, 1, 2], True),
        call(A.grid_sampler.default, x2(), real(1, 2, 3, 2, low=-1.2, high=1.2), 0, 0, False),
        call(A.grid_sampler.default, x3(), real(1, 1, 2, 2, 3, low=-1.2, high=1.2), 0, 1, True),
        call(A.grid_sampler_2d.default, x2(), real(1, 2, 2, 2, low=-1.2, high=1.2), 2, 2, True),
        call(A.grid_sampler_2d.default, x2(), real(1, 2, 2, 2, low=-1.2, high=1.2), 1, 1, False),
        call(A.grid_sampler_3d.default, x3(), real(1, 1, 2, 1, 3, low=-1.2, high=1.2), 0, 2, False),
        call(A.im2col.default, x2(), [2, 2], [1, 1], [1, 0], [2, 1]),
        call(A.col2im.default, real(1, 4, 6), [4, 3], [2, 2], [1, 1], [0, 0], [1, 1]),
        call(A.pad.default, x2(), [1, 2]),
        call(A.pad.default, x2(), [1, -1, 0, 2], 'constant', 1.5),
        call(A.pad.default, x2(), [1, 2, 2, 1], 'reflect'),
        call(A.pad.default, x2(), [1, 2, 2, 1], 'replicate'),
        call(A.pad.default, x2(), [1, 2, 2, 1], 'circular'),
        call(A.constant_pad_nd.default, x2(), [1, 0, 0, 1], 1.5),
        call(A.constant_pad_nd.default, ints(2, 2), [1, 0], 3),
        call(A.reflection_pad1d.default, x1(), [1, 2]),
        call(A.reflection_pad2d.default, x2(), [1, 2, 2, 1]),
        call(A.reflection_pad3d.default, x3(), [1, 1, 1, 1, 1, 1]),
        call(A.replication_pad1d.default, x1(), [1, 2]),
        call(A.replication_pad2d.default, x2(), [1, 2, 2, 1]),
        call(A.replication_pad3d.default, x3(), [1, 0, 1, 0, 0, 1]),
        call(A._pad_circular.default, x2(), [1, 2, 2, 1]),
        call(A._pad_enum.default, x2(), [1, 2, 1, 1], 1),
    ]
    return cases


def unpooled(x):
    y, at = A.max_pool2d_with_indices(x, [2, 2])
    return A.max_unpool2d(y, at, [4, 4])


def unpooled_3d(x):
    y, at = A.max_pool3d_with_indices(x, [2, 2, 2])
    return A.max_unpool3d(y, at, [2, 4, 2], [2, 2, 2], [0, 0, 0])


def losses():
    x = lambda: real(2, 3)
    y = lambda: real(2, 3, grad=False)
    w = lambda: positive(3, grad=False)
    t = lambda: whole(0, 2)
    cases = []
    for f in (A.mse_loss, A.l1_loss, A.smooth_l1_loss, A.huber_loss):
        cases += [call(f.default, x(), x()), call(f.default, x(), x(), 0)]
    cases += [
        call(A.soft_margin_loss.default, x(), y()),
        call(A.soft_margin_loss.default, x(), y(), 0),
        call(A.mse_loss.default, x(), x(), 2),
        call(A.smooth_l1_loss.default, x(), x(), 1, 0.5),
        call(A.huber_loss.default, x(), x(), 2, 0.5),
        call(A.kl_div.default, x(), unit(2, 3)),
        call(A.kl_div.default, x(), x(), 2, log_target=True),
        call(A.binary_cross_entropy.default, unit(2, 3), unit(2, 3)),
        call(A.binary_cross_entropy.default, unit(2, 3), unit(2, 3), w(), 0),
        call(A.binary_cross_entropy_with_logits.default, x(), unit(2, 3)),
        call(A.binary_cross_entropy_with_logits.default, x(), unit(2, 3), w(), w(), 2),
        call(A.cross_entropy_loss.default, x(), t()),
        call(A.cross_entropy_loss.default, x(), t(), w(), 1, 2, 0.1),
        call(A.cross_entropy_loss.default, x(), unit(2, 3), None, 0, -100, 0.1),
        call(A.cross_entropy_loss.default, real(2, 3, 2), whole(0, 2, 1, -100).reshape(2, 2)),
        call(A.nll_loss.default, x(), t()),
        call(A.nll_loss_nd.default, x(), t(), w(), 1),
        call(A.nll_loss_nd.default, real(2, 3, 1, 2), whole(0, 2, 1, -100).reshape(2, 1, 2)),
        call(A.nll_loss2d.default, real(2, 3, 1, 2), whole(0, 2, 1, 0).reshape(2, 1, 2), None, 2),
        first(A.nll_loss_forward.default, x(), t(), w(), 1, -100),
        first(A.nll_loss_forward.default, x(), t(), None, 2, -100),
        first(
            A.nll_loss2d_forward.default,
            real(2, 3, 1, 2),
            whole(0, 2, 1, 0).reshape(2, 1, 2),
            None,
            1,
            -100,
        ),
        call(A.hinge_embedding_loss.default, x(), whole(1, -1, 1), 0.5),
        call(A.margin_ranking_loss.default, real(3), real(3), whole(1, -1, 1), 0.5),
        call(A.cosine_embedding_loss.default, x(), x(), whole(1, -1), 0.25),
        call(A.triplet_margin_loss.default, x(), x(), x(), 1.5),
        call(A.poisson_nll_loss.default, x(), positive(2, 3), True, True, 1e-8, 1),
        call(A.multilabel_margin_loss.default, x(), whole(0, 2, -1, 1, -1, 0).reshape(2, 3)),
        call(A.multi_margin_loss.default, x(), t()),
    ]
    return cases


def fourier():
    x = lambda: real(6)
    z = lambda: cplx(5)
    m = lambda: real(2, 4)
    cases = [
        call(A.fft_fft.default, x()),
        call(A.fft_fft.default, cplx(2, 3), None, 0, 'ortho'),
        call(A.fft_ifft.default, z()),
        call(A.fft_rfft.default, x()),
        call(A.fft_rfft.default, m(), 6, 1, 'forward'),
        call(A.fft_irfft.default, z()),
        call(A.fft_irfft.default, z(), 7),
        call(A.fft_hfft.default, z()),
        call(A.fft_ihfft.default, x()),
        call(A.fft_fft2.default, cplx(2, 3)),
        call(A.fft_ifft2.default, cplx(2, 3)),
        call(A.fft_rfft2.default, m()),
        call(A.fft_irfft2.default, cplx(2, 3), [2, 4]),
        call(A.fft_fftn.default, m()),
        call(A.fft_ifftn.default, cplx(2, 3), None, [0]),
        call(A.fft_rfftn.default, m()),
        call(A.fft_irfftn.default, cplx(2, 3)),
        call(A.fft_fftshift.default, m()),
        call(A.fft_ifftshift.default, m(), [1]),
        program('fft_fftfreq.default', lambda a: A.fft_fftfreq(5, 0.5, dtype=F64), real(1)),
        program('fft_rfftfreq.default', lambda a: A.fft_rfftfreq(5, dtype=F64), real(1)),
        call(A.stft.default, real(12), 4, 2, 4, positive(4), False, True, True),
        call(A.stft.center, real(12), 4, 2, None, None, True, 'reflect', False, True, True),
        program('istft.default', there_and_back, real(12)),
        program('_fft_r2c.default', lambda a: A._fft_r2c(a, [0, 1], 1, True), m()),
        program('_fft_c2c.default', lambda a: A._fft_c2c(a, [0, 1], 2, False), cplx(2, 3)),
        program('_fft_c2r.default', lambda a: A._fft_c2r(a, [0, 1], 2, 4), cplx(2, 3)),
    ]
    return cases


def there_and_back(x):
    window = A.ones([4], dtype=F64)
    y = A.stft.center(x, 4, 1, 4, window, True, 'reflect', False, True, True)
    return A.istft(y, 4, 1, 4, window, True, False, True, 12)
