#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes whether PyTorch accepts extreme values of the options of operators, for
# tests/op/test_operator_options.c:
#
#   test_operator_options --list |
#       PYTHON-WITH-TORCH make_operator_options.py [OPERATOR]... > operator_options.txt
#
#   op NAME FILE CASE        the inputs and options of that case in the text FILE of this folder;
#                            - -: inputs of ones
#   try OPTION VALUE VERDICT (option_values.py has the verdicts; none: PyTorch has no such operator)
import os
import sys

import torch
import torch.nn.functional as F
from option_values import EXTREMES, shape, verdict

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = [
    "basic.txt",
    "elementwise.txt",
    "reduction_shape_index.txt",
    "reduction_order.txt",
    "elementwise_special.txt",
    "primitives.txt",
    "loss.txt",
    "opinfo.txt",
    "conv_pool_norm.txt",
    "without_results.txt",
    "fused.txt",
    "optimizer.txt",
    "linalg.txt",
    "index.txt",
    "unique.txt",
    "fft.txt",
    "index_several.txt",
    "quantize.txt",
]
DTYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
    "c64": torch.complex64,
    "c128": torch.complex128,
}


class Options(dict):
    """What a case gives; kw() as arguments of a function, some under another name."""

    def kw(self, *names, **renamed):
        found = {n: self[n] for n in names if n in self}
        found.update({new: self[old] for new, old in renamed.items() if old in self})
        return found


def dims(o, name="dim"):
    return {name: o["dims"]} if "dims" in o else {}


def pool(f, dilated):
    more = ("dilation",) if dilated else ("count_include_pad", "divisor_override")
    return lambda t, o: f(
        t[0], **o.kw("stride", "padding", "ceil_mode", *more, kernel_size="kernel")
    )


def loss(f, *names):
    return lambda t, o: f(*t, **o.kw("reduction", *names))


def conv(f, *names):
    return lambda t, o: f(*t, **o.kw("stride", "dilation", "groups", "padding", *names))


MAP = {
    "add": lambda t, o: torch.add(t[0], t[1], **o.kw("alpha")),
    "sub": lambda t, o: torch.sub(t[0], t[1], **o.kw("alpha")),
    "addcdiv": lambda t, o: torch.addcdiv(*t, **o.kw("value")),
    "addcmul": lambda t, o: torch.addcmul(*t, **o.kw("value")),
    "addmm": lambda t, o: torch.addmm(*t, **o.kw("beta", "alpha")),
    "baddbmm": lambda t, o: torch.baddbmm(*t, **o.kw("beta", "alpha")),
    "all": lambda t, o: torch.all(t[0], **dims(o), **o.kw("keepdim")),
    "any": lambda t, o: torch.any(t[0], **dims(o), **o.kw("keepdim")),
    "amax": lambda t, o: torch.amax(t[0], **dims(o), **o.kw("keepdim")),
    "amin": lambda t, o: torch.amin(t[0], **dims(o), **o.kw("keepdim")),
    "sum": lambda t, o: torch.sum(t[0], **dims(o), **o.kw("keepdim")),
    "mean": lambda t, o: torch.mean(t[0], **dims(o), **o.kw("keepdim")),
    "logsumexp": lambda t, o: torch.logsumexp(t[0], **dims(o), **o.kw("keepdim")),
    "var": lambda t, o: torch.var(t[0], **dims(o), **o.kw("keepdim", "correction")),
    "std": lambda t, o: torch.std(t[0], **dims(o), **o.kw("keepdim", "correction")),
    "norm": lambda t, o: torch.linalg.vector_norm(t[0], **dims(o), **o.kw("keepdim", ord="p")),
    "argmax": lambda t, o: torch.argmax(t[0], **o.kw("dim", "keepdim")),
    "argmin": lambda t, o: torch.argmin(t[0], **o.kw("dim", "keepdim")),
    "max_dim": lambda t, o: torch.max(t[0], **o.kw("dim", "keepdim")),
    "min_dim": lambda t, o: torch.min(t[0], **o.kw("dim", "keepdim")),
    "cumsum": lambda t, o: torch.cumsum(t[0], **o.kw("dim")),
    "cumprod": lambda t, o: torch.cumprod(t[0], **o.kw("dim")),
    "cummax": lambda t, o: torch.cummax(t[0], **o.kw("dim")),
    "cummin": lambda t, o: torch.cummin(t[0], **o.kw("dim")),
    "logcumsumexp": lambda t, o: torch.logcumsumexp(t[0], **o.kw("dim")),
    "median_dim": lambda t, o: torch.median(t[0], **o.kw("dim", "keepdim")),
    "nanmedian_dim": lambda t, o: torch.nanmedian(t[0], **o.kw("dim", "keepdim")),
    "mode": lambda t, o: torch.mode(t[0], **o.kw("dim", "keepdim")),
    "kthvalue": lambda t, o: torch.kthvalue(t[0], **o.kw("k", "dim", "keepdim")),
    "quantile": lambda t, o: torch.quantile(t[0], t[1], **o.kw("dim", "keepdim", "interpolation")),
    "nanquantile": lambda t, o: torch.nanquantile(
        t[0], t[1], **o.kw("dim", "keepdim", "interpolation")
    ),
    "aminmax": lambda t, o: torch.aminmax(t[0], **o.kw("dim", "keepdim")),
    "count_nonzero": lambda t, o: torch.count_nonzero(t[0], **dims(o)),
    "nansum": lambda t, o: torch.nansum(t[0], **dims(o), **o.kw("keepdim")),
    "nanmean": lambda t, o: torch.nanmean(t[0], **dims(o), **o.kw("keepdim")),
    "sort": lambda t, o: torch.sort(t[0], **o.kw("dim", "descending", "stable")),
    "topk": lambda t, o: torch.topk(t[0], **o.kw("k", "dim", "largest", "sorted")),
    "cat": lambda t, o: torch.cat(t, **o.kw("dim")),
    "stack": lambda t, o: torch.stack(t, **o.kw("dim")),
    "cdist": lambda t, o: torch.cdist(*t, **o.kw("p")),
    "celu": lambda t, o: F.celu(t[0], **o.kw("alpha")),
    "elu": lambda t, o: F.elu(t[0], **o.kw("alpha")),
    "leaky_relu": lambda t, o: F.leaky_relu(t[0], **o.kw("negative_slope")),
    "gelu": lambda t, o: F.gelu(t[0], **o.kw("approximate")),
    "glu": lambda t, o: F.glu(t[0], **o.kw("dim")),
    "hardshrink": lambda t, o: F.hardshrink(t[0], **o.kw("lambd")),
    "softshrink": lambda t, o: F.softshrink(t[0], **o.kw("lambd")),
    "hardtanh": lambda t, o: F.hardtanh(t[0], **o.kw("min_val", "max_val")),
    "softplus": lambda t, o: F.softplus(t[0], **o.kw("beta", "threshold")),
    "threshold": lambda t, o: F.threshold(t[0], **o.kw("threshold", "value")),
    "softmax": lambda t, o: torch.softmax(t[0], **o.kw("dim")),
    "softmin": lambda t, o: F.softmin(t[0], **o.kw("dim")),
    "log_softmax": lambda t, o: torch.log_softmax(t[0], **o.kw("dim")),
    "gumbel_softmax": lambda t, o: F.gumbel_softmax(t[0], **o.kw("tau", "dim", "hard")),
    "div": lambda t, o: torch.div(t[0], t[1], **o.kw("rounding_mode")),
    "diagonal": lambda t, o: torch.diagonal(t[0], **o.kw("offset", "dim1", "dim2")),
    "tril": lambda t, o: torch.tril(t[0], **o.kw("diagonal")),
    "triu": lambda t, o: torch.triu(t[0], **o.kw("diagonal")),
    "rrelu": lambda t, o: F.rrelu(t[0], training=True, **o.kw("lower", "upper")),
    "dropout": lambda t, o: F.dropout(t[0], training=True, **o.kw("p")),
    "alpha_dropout": lambda t, o: F.alpha_dropout(t[0], training=True, **o.kw("p")),
    "feature_alpha_dropout": lambda t, o: F.feature_alpha_dropout(t[0], training=True, **o.kw("p")),
    "feature_dropout": lambda t, o: torch.feature_dropout(t[0], train=True, **o.kw("p")),
    "cross": lambda t, o: torch.cross(t[0], t[1], **o.kw("dim")),
    "linalg_cross": lambda t, o: torch.linalg.cross(t[0], t[1], **o.kw("dim")),
    "renorm": lambda t, o: torch.renorm(t[0], o["p"], o["dim"], o["maxnorm"]),
    "cov": lambda t, o: torch.cov(t[0], **o.kw("correction")),
    "linalg_vector_norm": lambda t, o: torch.linalg.vector_norm(
        t[0], **o.kw("ord", "keepdim", dim="dims")
    ),
    "linalg_pinv": lambda t, o: torch.linalg.pinv(t[0], **o.kw("atol", "rtol")),
    "einsum": lambda t, o: torch.einsum(o["equation"], *t),
    "embedding": lambda t, o: F.embedding(t[1], t[0], **o.kw("padding_idx")),
    "expand": lambda t, o: t[0].expand(o["shape"]),
    "reshape": lambda t, o: torch.reshape(t[0], o["shape"]),
    "view": lambda t, o: t[0].view(o["shape"]),
    "sum_to": lambda t, o: t[0].sum_to_size(o["shape"]),
    "repeat": lambda t, o: t[0].repeat(o["times"]),
    "permute": lambda t, o: t[0].permute(o["dims"]),
    "flip": lambda t, o: torch.flip(t[0], o["dims"]),
    "roll": lambda t, o: torch.roll(t[0], o["shifts"], o.get("dims", ())),
    "squeeze": lambda t, o: torch.squeeze(t[0], o["dims"]) if "dims" in o else torch.squeeze(t[0]),
    "unsqueeze": lambda t, o: torch.unsqueeze(t[0], **o.kw("dim")),
    "flatten": lambda t, o: torch.flatten(t[0], **o.kw("start_dim", "end_dim")),
    "transpose": lambda t, o: torch.transpose(t[0], o["dim0"], o["dim1"]),
    "narrow": lambda t, o: torch.narrow(t[0], o["dim"], o["start"], o["length"]),
    "select": lambda t, o: torch.select(t[0], o["dim"], o["index"]),
    "slice": lambda t, o: torch.ops.aten.slice(
        t[0], o.get("dim", 0), o.get("start"), o.get("end"), o.get("step", 1)
    ),
    "unfold": lambda t, o: t[0].unfold(o["dim"], o["window"], o["step"]),
    "eye": lambda t, o: torch.eye(o["n"], o["m"]) if "m" in o else torch.eye(o["n"]),
    "arange": lambda t, o: torch.arange(o["start"], o["end"], o.get("step", 1.0)),
    "linspace": lambda t, o: torch.linspace(o["start"], o["end"], o["steps"]),
    "full": lambda t, o: torch.full(o["shape"], o["value"]),
    "index_add": lambda t, o: torch.index_add(t[0], o["dim"], t[1], t[2], **o.kw("alpha")),
    "index_select": lambda t, o: torch.index_select(t[0], o["dim"], t[1]),
    "fft_fftshift": lambda t, o: torch.fft.fftshift(t[0], **dims(o)),
    "fft_ifftshift": lambda t, o: torch.fft.ifftshift(t[0], **dims(o)),
    "fft_fftfreq": lambda t, o: torch.fft.fftfreq(o["n"], **o.kw("d")),
    "fft_rfftfreq": lambda t, o: torch.fft.rfftfreq(o["n"], **o.kw("d")),
    "stft": lambda t, o: torch.stft(
        t[0],
        window=t[1],
        return_complex=True,
        **o.kw("n_fft", "hop_length", "win_length", "center", "pad_mode", "onesided")
    ),
    "istft": lambda t, o: torch.istft(
        t[0],
        window=t[1],
        **o.kw("n_fft", "hop_length", "win_length", "center", "onesided", "length")
    ),
    "polygamma": lambda t, o: torch.polygamma(o["n"], t[0]),
    "logit": lambda t, o: torch.logit(t[0], **o.kw("eps")),
    "isclose": lambda t, o: torch.isclose(t[0], t[1], **o.kw("rtol", "atol", "equal_nan")),
    "gather": lambda t, o: torch.gather(t[0], o["dim"], t[1]),
    "scatter": lambda t, o: torch.scatter(t[0], o["dim"], t[1], t[2]),
    "scatter_add": lambda t, o: torch.scatter_add(t[0], o["dim"], t[1], t[2]),
    "scatter_reduce": lambda t, o: torch.scatter_reduce(
        t[0], o["dim"], t[1], t[2], o["reduce"], **o.kw("include_self")
    ),
    "index_reduce": lambda t, o: torch.index_reduce(
        t[0], o["dim"], t[1], t[2], o["reduce"], **o.kw("include_self")
    ),
    "index_copy": lambda t, o: torch.index_copy(t[0], o["dim"], t[1], t[2]),
    "index_fill": lambda t, o: torch.index_fill(t[0], o["dim"], t[1], o["value"]),
    "repeat_interleave": lambda t, o: torch.repeat_interleave(
        t[0], t[1], **o.kw("dim", "output_size")
    ),
    "repeat_interleave_scalar": lambda t, o: torch.repeat_interleave(
        t[0], o["repeats"], **o.kw("dim")
    ),
    "diag_embed": lambda t, o: torch.diag_embed(t[0], **o.kw("offset", "dim1", "dim2")),
    "searchsorted": lambda t, o: torch.searchsorted(t[0], t[1], **o.kw("side", "right")),
    "unique": lambda t, o: torch.unique(t[0], **o.kw("dim")),
    "unique_consecutive": lambda t, o: torch.unique_consecutive(t[0], **o.kw("dim")),
    "bincount": lambda t, o: torch.bincount(t[0], None, **o.kw("minlength")),
    "histc": lambda t, o: torch.histc(t[0], **o.kw("bins", "min", "max")),
    "one_hot": lambda t, o: F.one_hot(t[0], o.get("classes", -1)),
    "pad": lambda t, o: F.pad(t[0], o["sizes"], o.get("mode", "constant"), o.get("value")),
    "interpolate": lambda t, o: F.interpolate(
        t[0],
        o.get("output_size"),
        o.get("scale_factor"),
        **o.kw("mode", "align_corners", "recompute_scale_factor", "antialias")
    ),
    "grid_sample": lambda t, o: F.grid_sample(*t, **o.kw("mode", "padding_mode", "align_corners")),
    "affine_grid": lambda t, o: F.affine_grid(t[0], o["output_size"], **o.kw("align_corners")),
    "fold": lambda t, o: F.fold(
        t[0], o["output_size"], o["kernel"], **o.kw("dilation", "padding", "stride")
    ),
    "im2col": lambda t, o: F.unfold(t[0], o["kernel"], **o.kw("dilation", "padding", "stride")),
    "pixel_shuffle": lambda t, o: F.pixel_shuffle(t[0], o["upscale_factor"]),
    "pixel_unshuffle": lambda t, o: F.pixel_unshuffle(t[0], o["downscale_factor"]),
    "channel_shuffle": lambda t, o: torch.channel_shuffle(t[0], o["groups"]),
    "batch_norm": lambda t, o: F.batch_norm(*t, **o.kw("training", "momentum", "eps")),
    "instance_norm": lambda t, o: F.instance_norm(*t, **o.kw("use_input_stats", "momentum", "eps")),
    "group_norm": lambda t, o: F.group_norm(t[0], o["num_groups"], *t[1:], **o.kw("eps")),
    "layer_norm": lambda t, o: F.layer_norm(t[0], o["normalized_shape"], *t[1:], **o.kw("eps")),
    "rms_norm": lambda t, o: F.rms_norm(t[0], o["normalized_shape"], *t[1:], **o.kw("eps")),
    "local_response_norm": lambda t, o: F.local_response_norm(
        t[0], o["neighbours"], **o.kw("alpha", "beta", "k")
    ),
    "normalize": lambda t, o: F.normalize(t[0], **o.kw("p", "dim", "eps")),
    "cosine_similarity": lambda t, o: F.cosine_similarity(*t, **o.kw("dim", "eps")),
    "pairwise_distance": lambda t, o: F.pairwise_distance(*t, **o.kw("p", "eps", "keepdim")),
    "nan_to_num": lambda t, o: torch.nan_to_num(t[0], **o.kw("nan", "posinf", "neginf")),
    "adaptive_avg_pool1d": lambda t, o: F.adaptive_avg_pool1d(t[0], o["output_size"]),
    "adaptive_avg_pool2d": lambda t, o: F.adaptive_avg_pool2d(t[0], o["output_size"]),
    "adaptive_avg_pool3d": lambda t, o: F.adaptive_avg_pool3d(t[0], o["output_size"]),
    "adaptive_max_pool1d": lambda t, o: F.adaptive_max_pool1d(t[0], o["output_size"]),
    "adaptive_max_pool2d": lambda t, o: F.adaptive_max_pool2d(t[0], o["output_size"]),
    "adaptive_max_pool3d": lambda t, o: F.adaptive_max_pool3d(t[0], o["output_size"]),
    "lp_pool1d": lambda t, o: F.lp_pool1d(
        t[0], o["p"], **o.kw("stride", "ceil_mode", kernel_size="kernel")
    ),
    "lp_pool2d": lambda t, o: F.lp_pool2d(
        t[0], o["p"], **o.kw("stride", "ceil_mode", kernel_size="kernel")
    ),
    "lp_pool3d": lambda t, o: F.lp_pool3d(
        t[0], o["p"], **o.kw("stride", "ceil_mode", kernel_size="kernel")
    ),
    "binary_cross_entropy": loss(F.binary_cross_entropy),
    "binary_cross_entropy_with_logits": loss(F.binary_cross_entropy_with_logits),
    "cosine_embedding_loss": loss(F.cosine_embedding_loss, "margin"),
    "cross_entropy": loss(F.cross_entropy, "ignore_index", "label_smoothing"),
    "gaussian_nll_loss": loss(F.gaussian_nll_loss, "eps", "full"),
    "hinge_embedding_loss": loss(F.hinge_embedding_loss, "margin"),
    "huber_loss": loss(F.huber_loss, "delta"),
    "kl_div": loss(F.kl_div, "log_target"),
    "l1_loss": loss(F.l1_loss),
    "margin_ranking_loss": loss(F.margin_ranking_loss, "margin"),
    "mse_loss": loss(F.mse_loss),
    "multi_margin_loss": loss(F.multi_margin_loss, "p", "margin"),
    "multilabel_margin_loss": loss(F.multilabel_margin_loss),
    "multilabel_soft_margin_loss": loss(F.multilabel_soft_margin_loss),
    "nll_loss": loss(F.nll_loss, "ignore_index"),
    "poisson_nll_loss": loss(F.poisson_nll_loss, "log_input", "full", "eps"),
    "smooth_l1_loss": loss(F.smooth_l1_loss, "beta"),
    "soft_margin_loss": loss(F.soft_margin_loss),
    "triplet_margin_loss": loss(F.triplet_margin_loss, "margin", "p", "eps", "swap"),
    "scaled_dot_product_attention": lambda t, o: F.scaled_dot_product_attention(
        *t, **o.kw("dropout_p", "is_causal", "scale")
    ),
    "randperm": lambda t, o: torch.randperm(o["n"]),
    "exponential": lambda t, o: t[0].clone().exponential_(**o.kw("lambd")),
    "geometric": lambda t, o: t[0].clone().geometric_(o["p"]),
    "log_normal": lambda t, o: t[0].clone().log_normal_(**o.kw("mean", "std")),
    "cauchy": lambda t, o: t[0].clone().cauchy_(**o.kw("median", "sigma")),
    "multinomial": lambda t, o: torch.multinomial(t[0], **o.kw("num_samples", "replacement")),
    "lerp_scalar": lambda t, o: torch.lerp(t[0], t[1], o["weight"]),
}
for name in "fft ifft rfft irfft hfft ihfft".split():
    MAP["fft_" + name] = lambda t, o, call=getattr(torch.fft, name): call(
        t[0], **o.kw("n", "dim", "norm")
    )
    for kind in "2n":
        MAP["fft_%s%s" % (name, kind)] = lambda t, o, call=getattr(torch.fft, name + kind): call(
            t[0], **dims(o), **o.kw("s", "norm")
        )
for n, (mp, ap, cv, ct, up) in enumerate(
    [
        (F.max_pool1d, F.avg_pool1d, F.conv1d, F.conv_transpose1d, F.max_unpool1d),
        (F.max_pool2d, F.avg_pool2d, F.conv2d, F.conv_transpose2d, F.max_unpool2d),
        (F.max_pool3d, F.avg_pool3d, F.conv3d, F.conv_transpose3d, F.max_unpool3d),
    ],
    1,
):
    MAP["max_pool%dd" % n] = pool(mp, True)
    MAP["avg_pool%dd" % n] = pool(ap, False)
    MAP["conv%dd" % n] = conv(cv)
    MAP["conv_transpose%dd" % n] = conv(ct, "output_padding")
    MAP["max_unpool%dd" % n] = (
        lambda f: lambda t, o: f(
            t[0], t[1], **o.kw("stride", "padding", "output_size", kernel_size="kernel")
        )
    )(up)


def option(kind, text):
    if kind == "bool":
        return text == "True"
    if kind == "dtype":
        return DTYPES[text]
    if kind == "text":
        return text
    if kind in ("ints", "floats"):
        each = int if kind == "ints" else float
        return [] if text == "-" else [each(v) for v in text.split(",")]
    return int(text) if kind == "int" else float(text)


def tensor(rest):
    if rest.startswith("none"):
        return None
    head, _, numbers = rest.partition(" :")
    dtype, sizes, steps, offset, _ = head.split()
    values = [float(v) for v in numbers.split()]
    row = torch.tensor(values, dtype=torch.float64)
    if dtype in ("c64", "c128"):
        row = torch.view_as_complex(row.reshape(-1, 2))
    one = lambda text: [] if text == "-" else [int(v) for v in text.split(",")]
    return row.to(DTYPES[dtype]).as_strided(one(sizes), one(steps), int(offset)).clone()


def read_cases(kinds):
    """For each operator its first case that has no empty input, has results and is in float."""
    found = {}
    for name in TEXTS:
        case = None
        for line in open(os.path.join(HERE, name)):
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "case":
                case = {"case": rest, "file": name, "in": [], "opt": Options(), "raw": []}
            elif word == "op":
                case["op"] = rest
            elif word == "opt":
                key, _, text = rest.partition(" ")
                case["raw"].append((key, text))
            elif word == "in":
                case["in"].append(rest)
            elif word == "out" and case is not None and case["op"] not in found:
                plain = name == "quantize.txt" or all(
                    i == "none" or i.split()[0] in ("f32", "f64", "i64", "bool") for i in case["in"]
                )
                if plain and case["op"] in kinds and " 0" not in rest.split(" :")[0]:
                    case["out"] = rest.split()[1]
                    found[case["op"]] = case
                case = None
    return found


def prepared(case, kinds):
    t = [tensor(i) for i in case["in"]]
    o = Options({k: option(kinds[k], text) for k, text in case["raw"] if k in kinds})
    return t, o


def main():
    kinds = {}
    for line in sys.stdin:
        word, op, name, kind = line.split()[:4]
        if word == "op":
            kinds.setdefault(op, {})[name] = kind
    print(
        "# Written by make_operator_options.py with PyTorch %s."
        % torch.__version__.partition("+")[0]
    )
    cases = read_cases(kinds)
    for op in sorted(kinds):
        if sys.argv[1:] and op not in sys.argv[1:]:
            continue
        case = cases.get(op, {"case": "-", "file": "-", "in": [], "raw": []})
        t, o = prepared(case, kinds[op]) if op in cases else ([], Options())
        f = MAP.get(op) if op in cases else None
        if f is not None:
            try:
                with torch.no_grad():
                    if shape(f([x if x is None else x.clone() for x in t], o)) != case["out"]:
                        f = None
            except Exception as e:
                print("# %s: %s" % (op, str(e).split("\n")[0][:100]), file=sys.stderr)
                f = None
        if f is None and op in MAP:
            print("# left out: " + op, file=sys.stderr)
        print("op %s %s %s" % (op, case["file"], case["case"]))
        for name, kind in kinds[op].items():
            for text in EXTREMES[kind]:
                value = (
                    []
                    if text == "()"
                    else (
                        ""
                        if text == "''"
                        else option(kind[:-1] if kind in ("ints", "floats") else kind, text)
                    )
                )
                if kind in ("ints", "floats") and text != "()":
                    value = [value]
                said = "none"
                if f is not None:
                    given = Options(o)
                    given[name] = value
                    with torch.no_grad():
                        said = verdict(lambda: f([x if x is None else x.clone() for x in t], given))
                print("try %s %s %s" % (name, text, said))
                sys.stdout.flush()


main()
