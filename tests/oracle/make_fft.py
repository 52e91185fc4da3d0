#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Fourier transforms:  PYTHON-WITH-TORCH make_fft.py > fft.txt
import warnings

from cases import *

warnings.simplefilter("ignore")
F = torch.fft
ONE = "fft ifft rfft irfft hfft ihfft".split()
BOTH = (F32, F64, C64, C128)


def types(name):
    return (F32, F64) if name.startswith(("rfft", "ihfft")) else BOTH


def wide(name):
    return F64 if name.startswith(("rfft", "ihfft")) else C128


# ---- one dimension ----
for name in ONE:
    op, call = "fft_" + name, getattr(F, name)
    for d in types(name):
        Case("%s/%s" % (op, NAMES[d]), op, call, [x(2, 6, dtype=d)])
        Case("%s/odd-%s" % (op, NAMES[d]), op, call, [x(3, 5, dtype=d)])
    for d in (I64, torch.int8, BOOL):
        Case("%s/%s" % (op, NAMES[d]), op, call, [n(2, 5, dtype=d)])
    w = wide(name)
    for size in (1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 30, 31, 67):
        Case(
            "%s/size-%d" % (op, size),
            op,
            lambda a: call(a, n=size),
            [x(2, size // 2 + 1 if name in ("irfft", "hfft") else size, dtype=w)],
            n=size,
        )
    for size in (2, 3, 9, 10):
        for norm in ("backward", "ortho", "forward"):
            Case(
                "%s/n-%d-%s" % (op, size, norm),
                op,
                lambda a: call(a, n=size, norm=norm),
                [x(2, 6, dtype=w)],
                n=size,
                norm=norm,
            )
    for dim in (0, 1, -2, -3):
        Case(
            "%s/dim-%d" % (op, dim), op, lambda a: call(a, dim=dim), [x(3, 4, 2, dtype=w)], dim=dim
        )
    Case(op + "/transposed", op, call, [x(4, 3, dtype=w, order=(1, 0))])
    Case(
        op + "/transposed-dim",
        op,
        lambda a: call(a, dim=0),
        [x(4, 3, dtype=w, order=(1, 0))],
        dim=0,
    )
    Case(op + "/narrowed", op, call, [x(3, 8, dtype=w, narrow=(1, 2, 5))])
    Case(op + "/expanded", op, call, [x(1, 4, dtype=w, expand=(3, 4))])
    Case(op + "/no-batch", op, call, [x(0, 4, dtype=w)])
    Case(op + "/no-batch-dim", op, lambda a: call(a, dim=0), [x(4, 0, dtype=w)], dim=0)
    Case(op + "/padded-empty", op, lambda a: call(a, n=3), [x(2, 0, dtype=w)], n=3)
    Case(op + "/many", op, call, [x(19, 12, dtype=w)])
    for text, options in (
        ("zero", dict(n=0)),
        ("negative", dict(n=-1)),
        ("dim", dict(dim=2)),
        ("low", dict(dim=-3)),
        ("norm", dict(norm="other")),
    ):
        refused(
            "%s-%s" % (op, text),
            op,
            lambda a: call(a, **options),
            torch.ones(2, 3, dtype=w),
            **options
        )
    refused(op + "-scalar", op, call, torch.ones((), dtype=w))
    refused(op + "-empty", op, call, torch.ones(2, 0, dtype=w))
    refused(op + "-half", op, call, torch.ones(2, 3, dtype=F16))
    refused(op + "-bfloat16", op, call, torch.ones(2, 3, dtype=BF16))
    if name in ("rfft", "ihfft"):
        refused(op + "-complex", op, call, torch.ones(2, 3, dtype=C64))
for size in (251, 257, 263, 320):
    Case("fft_fft/larger-%d" % size, "fft_fft", F.fft, [n(1, size, dtype=C128)])
    Case(
        "fft_irfft/larger-%d" % size,
        "fft_irfft",
        lambda a: F.irfft(a, n=size),
        [n(1, size // 2 + 1, dtype=C64)],
        n=size,
    )
Case("fft_ifft/larger", "fft_ifft", F.ifft, [n(1, 521, dtype=C64)])
Case("fft_rfft/larger", "fft_rfft", F.rfft, [n(1, 1024, dtype=F64)])

# ---- several dimensions ----
for name in ONE:
    for kind in "2n":
        op, call = "fft_" + name + kind, getattr(F, name + kind)
        w = wide(name)
        for d in types(name):
            Case("%s/%s" % (op, NAMES[d]), op, call, [x(3, 4, dtype=d)])
        Case(op + "/ints", op, call, [n(2, 3, dtype=I64)])
        for norm in ("backward", "ortho", "forward"):
            Case(
                "%s/%s" % (op, norm),
                op,
                lambda a: call(a, norm=norm),
                [x(2, 3, 5, dtype=w)],
                norm=norm,
            )
        for text, options in (
            ("s", dict(s=[3, 6])),
            ("s-dims", dict(s=[5, 2], dims=[0, 2])),
            ("dims", dict(dims=[2, 0])),
            ("negative", dict(dims=[-1, -3])),
            ("one", dict(dims=[1])),
            ("three", dict(dims=[0, 1, 2])),
            ("part", dict(s=[-1, 3], dims=[1, 0])),
        ):
            torchs = {("dim" if k == "dims" else k): v for k, v in options.items()}
            Case(
                "%s/%s" % (op, text),
                op,
                lambda a: call(a, **torchs),
                [x(3, 4, 3, dtype=w)],
                **options
            )
        Case(op + "/transposed", op, call, [x(4, 3, dtype=w, order=(1, 0))])
        Case(
            op + "/no-batch", op, call, [x(0, 3, 4, dtype=w)] if kind == "2" else [x(3, 2, dtype=w)]
        )
        for text, options in (
            ("length", dict(s=[2], dims=[0, 1])),
            ("twice", dict(dims=[1, -1])),
            ("zero", dict(s=[0, 2])),
            ("below", dict(s=[-2, 2])),
            ("range", dict(dims=[2])),
            ("norm", dict(norm="other")),
        ) + ((("many", dict(s=[1, 2, 3])),) if kind == "n" else ()):
            torchs = {("dim" if k == "dims" else k): v for k, v in options.items()}
            refused(
                "%s-%s" % (op, text),
                op,
                lambda a: call(a, **torchs),
                torch.ones(2, 3, dtype=w),
                **options
            )
for name in ("fftn", "ifftn"):
    Case("fft_%s/scalar" % name, "fft_" + name, getattr(F, name), [x(dtype=C64)])
    Case(
        "fft_%s/no-dims" % name,
        "fft_" + name,
        lambda a: getattr(F, name)(a, dim=()),
        [x(2, 3)],
        dims=(),
    )
for name in ("rfftn", "irfftn", "hfftn", "ihfftn"):
    refused("fft_%s-scalar" % name, "fft_" + name, getattr(F, name), torch.ones(()))

# ---- the steps ----
for d in (C64, C128):
    for inverse in (False, True):
        Case(
            "fft_c2c/%s-%s" % (NAMES[d], inverse),
            "fft_c2c",
            lambda a: torch._fft_c2c(a, [1], 0, not inverse) * 0.5,
            [x(2, 6, dtype=d)],
            inverse=inverse,
            scale=0.5,
        )
    Case(
        "fft_c2c/dim-" + NAMES[d],
        "fft_c2c",
        lambda a: torch._fft_c2c(a, [0], 0, True),
        [x(5, 3, dtype=d)],
        dim=0,
    )
    for size in (1, 2, 5, 6):
        Case(
            "fft_c2r/%s-%d" % (NAMES[d], size),
            "fft_c2r",
            lambda a: torch._fft_c2r(a, [1], 0, size) * 0.5,
            [x(2, size // 2 + 1, dtype=d)],
            n=size,
            scale=0.5,
        )
        part = F32 if d == C64 else F64
        Case(
            "fft_r2c/%s-%d" % (NAMES[part], size),
            "fft_r2c",
            lambda a: torch._fft_r2c(a, [0], 0, True) * 2,
            [x(size, 3, dtype=part)],
            dim=0,
            scale=2.0,
        )
Case(
    "fft_c2c/transposed",
    "fft_c2c",
    lambda a: torch._fft_c2c(a, [1], 0, True),
    [x(6, 4, dtype=C128, order=(1, 0))],
)
Case(
    "fft_c2r/transposed",
    "fft_c2r",
    lambda a: torch._fft_c2r(a, [1], 0, 6),
    [x(4, 3, dtype=C128, order=(1, 0))],
    n=6,
)
Case(
    "fft_r2c/transposed",
    "fft_r2c",
    lambda a: torch._fft_r2c(a, [1], 0, True),
    [x(6, 4, dtype=F64, order=(1, 0))],
)
for op, dtype in (("fft_c2c", C64), ("fft_r2c", F32)):
    Case(
        op + "/empty",
        op,
        (lambda a: torch._fft_c2c(a, [1], 0, True)) if op == "fft_c2c" else F.rfft,
        [x(0, 4, dtype=dtype)],
    )
Case("fft_c2r/empty", "fft_c2r", lambda a: F.irfft(a), [x(0, 3, dtype=C64)], n=4)

# ---- order and values of frequencies ----
for name in ("fftshift", "ifftshift"):
    op, call = "fft_" + name, getattr(F, name)
    for d in (F32, F64, F16, BF16, C64, I64, BOOL):
        Case("%s/%s" % (op, NAMES[d]), op, call, [x(4, 5, dtype=d)])
    for dims in ([0], [1], [-1], [0, 1], [1, 0], [0, 0]):
        Case(
            "%s/dims-%s" % (op, row(dims)),
            op,
            lambda a: call(a, dim=dims),
            [x(3, 4, dtype=F64)],
            dims=dims,
        )
    Case(op + "/empty", op, call, [x(0, 3)])
    Case(op + "/transposed", op, call, [x(4, 3, order=(1, 0))])
    refused(op + "-dim", op, lambda a: call(a, dim=[2]), torch.ones(2, 3), dims=[2])
for name in ("fftfreq", "rfftfreq"):
    op, call = "fft_" + name, getattr(F, name)
    for size in (0, 1, 2, 5, 8):
        Case("%s/%d" % (op, size), op, lambda a: call(size), [None], n=size)
    for d in (F32, F64, F16, BF16):
        Case(
            "%s/%s" % (op, NAMES[d]),
            op,
            lambda a: call(6, d=0.5, dtype=d),
            [None],
            n=6,
            d=0.5,
            dtype=d,
        )
    refused(op + "-negative", op, lambda a: call(-9), None, n=-9)
    refused(op + "-dtype", op, lambda a: call(4, dtype=I64), None, n=4, dtype="i64")


# ---- windows ----
def stft(name, a, w, **options):
    inner = dict(options)
    inner.setdefault("return_complex", True)
    inner.setdefault("align_to_window", None)
    Case("stft/" + name, "stft", lambda t, v: torch.stft(t, window=v, **inner), [a, w], **options)


for d in BOTH:
    stft(NAMES[d], x(20, dtype=d), None, n_fft=8)
    stft("batch-" + NAMES[d], x(2, 20, dtype=d), x(8, dtype=d), n_fft=8)
for text, options in (
    ("hop", dict(n_fft=8, hop_length=3)),
    ("odd", dict(n_fft=7, hop_length=2)),
    ("constant", dict(n_fft=8, pad_mode="constant")),
    ("replicate", dict(n_fft=8, pad_mode="replicate")),
    ("circular", dict(n_fft=8, pad_mode="circular")),
    ("no-center", dict(n_fft=8, center=False)),
    ("normalized", dict(n_fft=8, normalized=True)),
    ("twosided", dict(n_fft=8, onesided=False)),
    ("onesided", dict(n_fft=8, onesided=True)),
    ("real", dict(n_fft=8, return_complex=False)),
    ("whole", dict(n_fft=20, center=False)),
    ("one", dict(n_fft=1, hop_length=1)),
):
    stft(text, x(20, dtype=F64), x(options["n_fft"], dtype=F64), **options)
for center in (True, False):
    stft(
        "window-%s" % center,
        x(2, 20, dtype=F64),
        x(5, dtype=F64),
        n_fft=8,
        win_length=5,
        hop_length=2,
        center=center,
    )
    stft(
        "no-window-%s" % center,
        x(2, 20, dtype=F64),
        None,
        n_fft=8,
        win_length=5,
        hop_length=2,
        center=center,
    )
stft(
    "aligned",
    x(2, 20, dtype=F64),
    x(4, dtype=F64),
    n_fft=8,
    win_length=4,
    hop_length=2,
    center=False,
    align_to_window=True,
)
stft("complex-window", x(20, dtype=F64), x(8, dtype=C128), n_fft=8)
stft("wide-window", x(20), x(8, dtype=F64), n_fft=8)
stft("int-window", x(20), n(8, dtype=I64), n_fft=8)
stft("strided", x(20, 2, dtype=F64, order=(1, 0)), x(8, dtype=F64), n_fft=8)
stft("no-batch", x(0, 20, dtype=F64), x(8, dtype=F64), n_fft=8, center=False)
signal = torch.ones(20)
for text, options, a, w in (
    ("n_fft", dict(n_fft=0), signal, None),
    ("long", dict(n_fft=21, center=False), signal, None),
    ("padding", dict(n_fft=42), signal, None),
    ("hop", dict(n_fft=8, hop_length=0), signal, None),
    ("no-hop", dict(n_fft=3), signal, None),
    ("win", dict(n_fft=8, win_length=9), signal, None),
    ("win-0", dict(n_fft=8, win_length=0), signal, None),
    ("window", dict(n_fft=8), signal, torch.ones(7)),
    ("matrix", dict(n_fft=8), signal, torch.ones(2, 4)),
    ("mode", dict(n_fft=8, pad_mode="other"), signal, None),
    ("complex", dict(n_fft=8, onesided=True), signal.to(C64), None),
    ("dims", dict(n_fft=4), torch.ones(1, 1, 9), None),
    ("scalar", dict(n_fft=4), torch.ones(()), None),
    ("ints", dict(n_fft=4), signal.long(), None),
    ("half", dict(n_fft=4), signal.half(), None),
):
    refused(
        "stft-" + text,
        "stft",
        lambda t, v: torch.stft(t, window=v, return_complex=True, **options),
        a,
        w,
        **options
    )
refused(
    "stft-aligned",
    "stft",
    lambda t, v: torch.stft(t, 4, return_complex=True, align_to_window=True),
    signal,
    None,
    n_fft=4,
    align_to_window=True,
)


def istft(name, a, w, **options):
    Case(
        "istft/" + name,
        "istft",
        lambda t, v: torch.istft(t, window=v, **options),
        [a, w],
        **options
    )


def hann(size, dtype=F64):
    return x(data=(torch.hann_window(size, dtype=F64) + 0.0625).tolist(), dtype=dtype)


for d in (C64, C128):
    istft(NAMES[d], x(5, 4, dtype=d), None, n_fft=8)
    istft("batch-" + NAMES[d], x(2, 5, 4, dtype=d), hann(8, F32 if d == C64 else F64), n_fft=8)
for text, size, options in (
    ("hop", 5, dict(n_fft=8, hop_length=3)),
    ("odd", 4, dict(n_fft=7, hop_length=2)),
    ("no-center", 5, dict(n_fft=8, center=False)),
    ("normalized", 5, dict(n_fft=8, normalized=True)),
    ("twosided", 8, dict(n_fft=8)),
    ("twosided-given", 8, dict(n_fft=8, onesided=False)),
    ("onesided", 5, dict(n_fft=8, onesided=True)),
    ("two", 2, dict(n_fft=2, hop_length=1)),
    ("two-onesided", 2, dict(n_fft=2, hop_length=1, onesided=True)),
    ("short", 5, dict(n_fft=8, length=5)),
    ("long", 5, dict(n_fft=8, length=30)),
    ("complex", 8, dict(n_fft=8, return_complex=True)),
):
    istft(text, x(2, size, 4, dtype=C128), hann(options["n_fft"]), **options)
istft("window", x(2, 5, 6, dtype=C128), hann(6), n_fft=8, win_length=6, hop_length=2)
istft("no-window", x(2, 5, 6, dtype=C128), None, n_fft=8, win_length=6, hop_length=2)
istft("complex-window", x(8, 4, dtype=C128), x(8, dtype=C128), n_fft=8, return_complex=True)
istft("transposed", x(4, 5, dtype=C128, order=(1, 0)), hann(8), n_fft=8)
spectrum = torch.ones(5, 4, dtype=C64)
for text, options, a, w in (
    ("n_fft", dict(n_fft=9), spectrum[:3], None),
    ("hop", dict(n_fft=8, hop_length=0), spectrum, None),
    ("hop-large", dict(n_fft=8, hop_length=9), spectrum, None),
    ("win", dict(n_fft=8, win_length=9), spectrum, None),
    ("window", dict(n_fft=8), spectrum, torch.ones(7)),
    ("zeros", dict(n_fft=8), spectrum, torch.zeros(8)),
    ("edge", dict(n_fft=8, center=False), spectrum, torch.hann_window(8)),
    ("empty", dict(n_fft=8), spectrum[:, :0], None),
    ("dims", dict(n_fft=8), spectrum[0].clone(), None),
    ("real", dict(n_fft=8), torch.ones(5, 4), None),
    ("twosided", dict(n_fft=8, onesided=False), spectrum, None),
    ("complex", dict(n_fft=8, return_complex=True), spectrum, None),
    ("complex-window", dict(n_fft=8), spectrum, torch.ones(8, dtype=C64)),
    ("length", dict(n_fft=8, length=0), spectrum, None),
):
    refused(
        "istft-" + text,
        "istft",
        lambda t, v: torch.istft(t, window=v, **options),
        a.contiguous(),
        w,
        **options
    )
