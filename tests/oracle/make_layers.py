#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# What PyTorch's modules print, hold and compute, for tests/module/test_layers.c:
#   PYTHON-WITH-TORCH make_layers.py > layers.txt
#
#   layer SPEC / repr TEXT / train 0|1
#   state NAME DTYPE SHAPE : values        (before the call)
#   in DTYPE SHAPE : values   out DTYPE SHAPE : values   cot : values
#   gin : values (of the first input)   grad NAME : values
#   after NAME : values (buffers, and parameters that changed, after the call)
import re

import torch
from cases import values, row, NAMES, F64, I64

torch.manual_seed(3)
nn = torch.nn


def show(kind, t):
    print("%s %s %s : %s" % (kind, NAMES[t.dtype], row(t.shape), values(t)))


def layer(spec, *inputs, train=True, calls=1):
    theirs = re.sub(
        r"((?:pos_)?weight=)(\[(?:[^][]|\[[^]]*\])*\])",
        r"\1torch.tensor(\2, dtype=torch.float64)",
        spec,
    )
    module = eval(theirs, dict(vars(nn), inf=float("inf"), torch=torch)).double().train(train)
    text = repr(module)
    if spec.startswith(
        "Lazy"
    ):  # printed as it is before the first call, then called once, so that there is a state
        with torch.no_grad():
            module.eval()(inputs[0])
        module.train(train)
    given = isinstance(module, nn.modules.loss._Loss)  # weights of a loss are as its spec says
    for p in list(module.parameters()) + [
        b for b in module.buffers() if b.is_floating_point() and not given
    ]:
        with torch.no_grad():
            p.copy_(torch.randn(p.shape, dtype=F64) * 0.5)
            if p is getattr(module, "running_var", None):
                p.copy_(p.abs() + 0.5)
    print("layer " + spec)
    print("repr " + text.replace("\n", "\\n"))
    print("train %d" % train)
    for name, t in module.state_dict().items():
        show("state " + name, t)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    tensors = [t.clone() for t in inputs]
    if tensors[0].is_floating_point():
        tensors[0].requires_grad_()
    for t in tensors:
        show("in", t)
    given = tensors
    if isinstance(module, (nn.LSTM, nn.LSTMCell)) and len(tensors) == 3:
        given = [tensors[0], tuple(tensors[1:])]
    results = module(*given)
    if not isinstance(results, tuple):
        results = (results,)
    results = [t for r in results for t in (r if isinstance(r, tuple) else (r,))]
    for y in results:
        show("out", y)
    if results[0].requires_grad:
        c = torch.randn(results[0].shape, dtype=F64)
        print("cot : " + values(c))
        results[0].backward(c)
        if tensors[0].requires_grad:
            print("gin : " + values(tensors[0].grad))
        for name, p in module.named_parameters():
            if p.grad is None:  # of a cluster without a sample
                continue
            print("grad %s : %s" % (name, values(p.grad)))
    for name, p in module.named_parameters():
        if not torch.equal(p, before[name]):  # a table with max_norm
            print("after %s : %s" % (name, values(p)))
    for name, b in module.named_buffers():
        print("after %s : %s" % (name, values(b)))


def r(*shape):
    return torch.randn(*shape, dtype=F64)


for spec in (
    "Conv2d(2, 4, 3)",
    "Conv2d(2, 4, (3, 2), stride=2, padding=1)",
    "Conv2d(4, 6, 3, padding=(2, 1), dilation=2, groups=2, bias=False)",
    "Conv2d(2, 2, 2, padding='same')",
    "Conv2d(2, 2, 3, padding='valid')",
    "Conv2d(2, 3, 3, padding=1, padding_mode='reflect')",
    "Conv2d(2, 3, 3, padding=2, padding_mode='circular')",
    "Conv2d(2, 3, 2, padding='same', padding_mode='replicate')",
    "ConvTranspose2d(2, 3, 3)",
    "ConvTranspose2d(2, 4, 3, stride=2, padding=1, output_padding=1, groups=2, bias=False, "
    "dilation=2)",
):
    layer(spec, r(2, int(spec.split("(")[1].split(",")[0]), 6, 7))
for spec in (
    "Conv1d(2, 4, 3)",
    "Conv1d(2, 4, 3, stride=2, padding=1, padding_mode='replicate')",
    "Conv1d(2, 4, 4, padding='same')",
    "ConvTranspose1d(2, 3, 3, stride=2, output_padding=1)",
):
    layer(spec, r(2, 2, 7))
for spec in (
    "Conv3d(2, 2, 2)",
    "Conv3d(2, 2, (2, 1, 3), padding=(1, 0, 1))",
    "ConvTranspose3d(2, 2, 2, stride=2)",
):
    layer(spec, r(1, 2, 3, 4, 3))
layer("Conv2d(2, 4, 3)", r(2, 5, 5))
for train in (True, False):
    layer("BatchNorm1d(3)", r(4, 3), train=train)
    layer("BatchNorm1d(3, momentum=None)", r(4, 3, 2), train=train)
    layer("BatchNorm2d(3, eps=0.001, momentum=0.3)", r(2, 3, 2, 3), train=train)
    layer("BatchNorm2d(3, affine=False)", r(2, 3, 2, 3), train=train)
    layer("BatchNorm2d(3, track_running_stats=False)", r(2, 3, 2, 3), train=train)
    layer("BatchNorm3d(2)", r(2, 2, 2, 2, 2), train=train)
    layer("InstanceNorm1d(3)", r(2, 3, 4), train=train)
    layer("InstanceNorm2d(3, affine=True, track_running_stats=True)", r(2, 3, 2, 3), train=train)
    layer("InstanceNorm2d(3)", r(3, 2, 3), train=train)
    layer("InstanceNorm3d(2, affine=True)", r(2, 2, 2, 2, 2), train=train)
layer("LayerNorm(5)", r(2, 3, 5))
layer("LayerNorm((3, 5), eps=0.01)", r(2, 3, 5))
layer("LayerNorm(5, elementwise_affine=False)", r(2, 5))
layer("LayerNorm(5, bias=False)", r(2, 5))
layer("RMSNorm(5)", r(2, 3, 5))
layer("RMSNorm((3, 5), eps=0.01, elementwise_affine=False)", r(2, 3, 5))
layer("GroupNorm(2, 4)", r(2, 4, 3))
layer("GroupNorm(4, 4, eps=0.01, affine=False)", r(2, 4, 3, 2))
layer("LocalResponseNorm(3)", r(2, 5, 3, 2))
layer("LocalResponseNorm(2, alpha=0.1, beta=0.5, k=2.0)", r(2, 5, 3))
for spec in (
    "MaxPool2d(2)",
    "MaxPool2d((3, 2), stride=(2, 1), padding=1)",
    "MaxPool2d(2, dilation=2, ceil_mode=True)",
    "MaxPool2d(3, return_indices=True)",
    "AvgPool2d(2)",
    "AvgPool2d((3, 2), stride=2, padding=1, count_include_pad=False)",
    "AvgPool2d(2, divisor_override=3, ceil_mode=True)",
    "AdaptiveAvgPool2d((2, 3))",
    "AdaptiveAvgPool2d(1)",
    "AdaptiveMaxPool2d((2, 3))",
    "AdaptiveMaxPool2d(2, return_indices=True)",
):
    layer(spec, r(2, 2, 6, 7))
for spec in (
    "MaxPool1d(2)",
    "MaxPool1d(3, stride=1, padding=1)",
    "AvgPool1d(2)",
    "AvgPool1d(3, stride=2, padding=1, ceil_mode=True)",
    "AdaptiveAvgPool1d(3)",
    "AdaptiveMaxPool1d(3)",
):
    layer(spec, r(2, 2, 7))
for spec in (
    "MaxPool3d(2)",
    "AvgPool3d(2, stride=1)",
    "AdaptiveAvgPool3d((1, 2, 2))",
    "AdaptiveMaxPool3d(2)",
):
    layer(spec, r(1, 2, 3, 4, 4))
layer("LPPool1d(2, 3)", r(1, 2, 7).abs() + 0.1)
layer("LPPool2d(3, 2, stride=1)", r(1, 2, 4, 4).abs() + 0.1)
layer("LPPool3d(2, 2)", r(1, 1, 4, 4, 2).abs() + 0.1)
for spec in (
    "Dropout()",
    "Dropout(p=0.25)",
    "Dropout1d(0.5)",
    "Dropout2d(0.5, inplace=False)",
    "Dropout3d(p=0.1)",
    "AlphaDropout()",
    "FeatureAlphaDropout(0.3)",
):
    layer(spec, r(2, 3, 4), train=False)
layer("Embedding(5, 3)", torch.tensor([[0, 4, 2], [2, 2, 1]]))
layer("Embedding(5, 3, padding_idx=-3)", torch.tensor([0, 4, 2]))
for spec in (
    "ReLU6()",
    "LeakyReLU()",
    "LeakyReLU(0.3)",
    "ELU()",
    "ELU(alpha=0.5)",
    "SELU()",
    "CELU()",
    "CELU(2.0)",
    "GELU()",
    "GELU(approximate='tanh')",
    "SiLU()",
    "Mish()",
    "Hardtanh()",
    "Hardtanh(-0.5, 0.25)",
    "Hardswish()",
    "Hardsigmoid()",
    "LogSigmoid()",
    "Tanh()",
    "Tanhshrink()",
    "Softshrink()",
    "Softshrink(0.2)",
    "Hardshrink(0.3)",
    "Softplus()",
    "Softplus(beta=2.0, threshold=1.0)",
    "Softsign()",
    "Threshold(0.1, 20.0)",
    "GLU()",
    "GLU(dim=1)",
    "Softmin(dim=1)",
    "PReLU()",
    "PReLU(4)",
    "ReLU()",
    "Sigmoid()",
    "Softmax(dim=-1)",
    "LogSoftmax(dim=1)",
    "Identity()",
    "Flatten()",
    "Linear(6, 3)",
    "Linear(6, 2, bias=False)",
    "Unflatten(1, (2, 2))",
):
    layer(spec, r(3, 4, 6))
layer("Softmax2d()", r(2, 3, 2, 2))
signs = (torch.randint(0, 2, (3, 4)) * 2 - 1).double()
for reduction in ("mean", "sum", "none"):
    for spec in (
        "MSELoss",
        "L1Loss",
        "HuberLoss",
        "SmoothL1Loss",
        "SoftMarginLoss",
        "MultiLabelSoftMarginLoss",
        "BCEWithLogitsLoss",
        "KLDivLoss",
        "PoissonNLLLoss",
        "HingeEmbeddingLoss",
    ):
        target = (
            signs
            if spec in ("SoftMarginLoss", "HingeEmbeddingLoss")
            else torch.rand(3, 4, dtype=F64)
        )
        layer("%s(reduction='%s')" % (spec, reduction), r(3, 4), target)
    layer(
        "BCELoss(reduction='%s')" % reduction,
        torch.rand(3, 4, dtype=F64),
        torch.rand(3, 4, dtype=F64),
    )
    layer(
        "GaussianNLLLoss(reduction='%s')" % reduction,
        r(3, 4),
        r(3, 4),
        torch.rand(3, 4, dtype=F64) + 0.1,
    )
    layer("MarginRankingLoss(reduction='%s')" % reduction, r(3, 4), r(3, 4), signs)
    layer("TripletMarginLoss(reduction='%s')" % reduction, r(3, 4), r(3, 4), r(3, 4))
    layer(
        "CosineEmbeddingLoss(reduction='%s')" % reduction,
        r(3, 4),
        r(3, 4),
        torch.tensor([1, -1, 1]),
    )
    layer("MultiMarginLoss(reduction='%s')" % reduction, r(3, 4), torch.tensor([1, 0, 3]))
    layer(
        "MultiLabelMarginLoss(reduction='%s')" % reduction,
        r(2, 4),
        torch.tensor([[1, 0, -1, 3], [2, -1, 0, 0]]),
    )
    layer("CrossEntropyLoss(reduction='%s')" % reduction, r(3, 4), torch.tensor([1, 0, 3]))
    layer("NLLLoss(reduction='%s')" % reduction, r(3, 4), torch.tensor([1, 0, 3]))
layer("KLDivLoss(reduction='batchmean', log_target=True)", r(3, 4), r(3, 4))
layer("HuberLoss(delta=0.3)", r(3, 4), r(3, 4))
layer("SmoothL1Loss(beta=0.3)", r(3, 4), r(3, 4))
layer(
    "PoissonNLLLoss(False, True)",
    torch.rand(3, 4, dtype=F64) + 0.1,
    torch.randint(0, 6, (3, 4)).double(),
)
layer("GaussianNLLLoss(full=True, eps=0.1)", r(3, 4), r(3, 4), torch.rand(3, 4, dtype=F64) + 0.1)
layer("MultiMarginLoss(p=2, margin=0.5)", r(3, 4), torch.tensor([1, 0, 3]))
layer("MarginRankingLoss(margin=0.2)", r(3, 4), r(3, 4), signs)
layer("TripletMarginLoss(margin=0.5, p=1.0, swap=True)", r(3, 4), r(3, 4), r(3, 4))
layer("CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)", r(3, 4), torch.tensor([1, 0, 3]))
for spec, states in (("RNN", 1), ("LSTM", 2), ("GRU", 1)):
    layer("%s(3, 4)" % spec, r(5, 2, 3))
    layer("%s(3, 4)" % spec, r(5, 2, 3), *[r(1, 2, 4) for _ in range(states)])
    layer(
        "%s(3, 4, num_layers=2, bias=False, batch_first=True, bidirectional=True)" % spec,
        r(2, 4, 3),
        *[r(4, 2, 4) for _ in range(states)]
    )
    layer("%s(3, 4, 2, dropout=0.5)" % spec, r(4, 2, 3), train=False)
    layer("%s(3, 2)" % spec, r(4, 3), *[r(1, 2) for _ in range(states)])
    layer("%sCell(3, 4)" % spec, r(2, 3))
    layer("%sCell(3, 4, bias=False)" % spec, r(2, 3), *[r(2, 4) for _ in range(states)])
    layer("%sCell(3, 4)" % spec, r(3), *[r(4) for _ in range(states)])
layer("RNN(3, 4, nonlinearity='relu')", r(5, 2, 3))
layer("LSTM(3, 4, proj_size=2)", r(5, 2, 3))
layer(
    "LSTM(3, 4, num_layers=2, bidirectional=True, proj_size=3)", r(5, 2, 3), r(4, 2, 3), r(4, 2, 4)
)
layer("RNNCell(3, 4, nonlinearity='relu')", r(2, 3))
for kind in ("ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad"):
    layer("%s1d(2)" % kind, r(2, 3, 4))
    layer("%s2d((1, 2, 0, 1))" % kind, r(1, 2, 3, 4))
    layer("%s3d(1)" % kind, r(1, 1, 2, 3, 2))
layer("ConstantPad1d(2, 3.5)", r(2, 3, 4))
layer("ConstantPad2d((1, 2, 0, 1), 0.5)", r(2, 3, 4))
layer("ConstantPad3d(1, 2.0)", r(1, 1, 2, 3, 2))
layer("PixelShuffle(2)", r(1, 8, 2, 3))
layer("PixelUnshuffle(2)", r(1, 2, 4, 6))

# ---- the rest ----
layer("Bilinear(3, 4, 5)", r(2, 3), r(2, 4))
layer("Bilinear(3, 4, 2, bias=False)", r(2, 2, 3), r(2, 2, 4))
layer("Unfold((2, 3), padding=1)", r(2, 2, 4, 5))
layer("Unfold(2, dilation=2, stride=(1, 2))", r(1, 2, 4, 5))
layer("Fold((4, 5), 2)", r(2, 8, 12))
layer("Fold(output_size=(4, 5), kernel_size=(2, 3), padding=1, stride=(2, 1))", r(1, 6, 15))
for dims, shape in ((1, (2, 2, 6)), (2, (2, 1, 4, 6)), (3, (1, 2, 4, 2, 4))):
    x_ = r(*shape)
    y_, places = getattr(nn, "MaxPool%dd" % dims)(2, return_indices=True)(x_)
    layer("MaxUnpool%dd(2)" % dims, y_, places)
y_, places = nn.MaxPool2d((3, 2), stride=(2, 2), padding=(1, 0), return_indices=True)(r(1, 2, 5, 6))
layer("MaxUnpool2d((3, 2), stride=2, padding=(1, 0))", y_, places)
layer("CosineSimilarity(dim=1)", r(3, 4), r(3, 4))
layer("CosineSimilarity(0, 1e-06)", r(3, 4), r(3, 4))
layer("PairwiseDistance(2.0)", r(3, 4), r(3, 4))
layer("PairwiseDistance(p=1.0, keepdim=True)", r(3, 4), r(3, 4))
layer("Upsample(scale_factor=2)", r(1, 2, 3, 2))
layer("Upsample(scale_factor=1.5, mode='bilinear')", r(1, 2, 4, 4))
layer("Upsample(size=(4, 5), mode='bilinear', align_corners=True)", r(1, 2, 3, 2))
layer("Upsample(size=5, mode='linear')", r(1, 2, 3))
layer("Upsample(scale_factor=2, mode='bicubic')", r(1, 1, 3, 3))
layer("UpsamplingNearest2d(scale_factor=2)", r(1, 2, 2, 3))
layer("UpsamplingBilinear2d(size=(4, 3))", r(1, 2, 2, 3))
layer("EmbeddingBag(6, 3)", torch.tensor([[1, 0, 5], [2, 2, 3]]))
layer("EmbeddingBag(6, 3, mode='sum')", torch.tensor([1, 0, 5, 2, 2]), torch.tensor([0, 3, 3]))
layer(
    "EmbeddingBag(6, 3, mode='max', padding_idx=2)",
    torch.tensor([1, 0, 5, 2, 2, 4]),
    torch.tensor([0, 3, 4]),
)
layer(
    "EmbeddingBag(6, 3, mode='mean', include_last_offset=True)",
    torch.tensor([1, 0, 5, 2]),
    torch.tensor([0, 1, 4]),
)
for spec, q, k, v in (
    ("4, 2", (3, 2, 4), (5, 2, 4), (5, 2, 4)),
    ("4, 4, bias=False", (3, 2, 4), (3, 2, 4), (3, 2, 4)),
    ("4, 2, kdim=3, vdim=2", (3, 2, 4), (5, 2, 3), (5, 2, 2)),
    ("4, 2, batch_first=True", (2, 3, 4), (2, 5, 4), (2, 5, 4)),
    ("4, 2, add_bias_kv=True, add_zero_attn=True", (3, 2, 4), (5, 2, 4), (5, 2, 4)),
    ("4, 1", (3, 4), (5, 4), (5, 4)),
):
    layer("MultiheadAttention(%s)" % spec, r(*q), r(*k), r(*v))
layer("MultiheadAttention(4, 2, dropout=0.5)", r(3, 2, 4), r(5, 2, 4), r(5, 2, 4), train=False)

# ---- random slopes and windows ----
# Results do not depend on the random numbers: in evaluation, and with windows at whole distances.
layer("RReLU()", r(3, 4), train=False)
layer("RReLU(0.1, 0.5)", r(3, 4), train=False)
layer("RReLU(lower=0.25, upper=0.25)", r(3, 4))
layer("FractionalMaxPool2d(3, output_size=3)", r(2, 2, 7, 7))
layer("FractionalMaxPool2d((3, 2), output_size=(3, 4), return_indices=True)", r(2, 2, 7, 8))
layer("FractionalMaxPool2d(1, output_ratio=(0.6, 0.5))", r(2, 5, 5))
layer("FractionalMaxPool3d(2, output_size=(2, 3, 2), return_indices=True)", r(1, 2, 4, 6, 5))
layer("FractionalMaxPool3d(2, output_ratio=0.5)", r(2, 4, 4, 4))

# ---- layers of a transformer ----
causal = torch.full((3, 3), float("-inf"), dtype=F64).triu(1)
ahead = torch.ones(3, 3).triu(1).bool()
padded = torch.tensor([[False, False, True], [False, True, True]])
for spec in (
    "TransformerEncoderLayer(4, 2, 6, 0.0)",
    "TransformerEncoderLayer(4, 2, dim_feedforward=5, dropout=0.0, activation='gelu', "
    "layer_norm_eps=0.01, norm_first=True, bias=False)",
):
    layer(spec, r(3, 2, 4))
    layer(spec, r(3, 2, 4), causal)
layer("TransformerEncoderLayer(4, 1, 6, dropout=0.3)", r(3, 4), train=False)
layer("TransformerEncoderLayer(4, 2, 6, 0.0, batch_first=True)", r(2, 3, 4), ahead, padded)
for spec in (
    "TransformerDecoderLayer(4, 2, 6, 0.0)",
    "TransformerDecoderLayer(4, 2, dim_feedforward=5, dropout=0.0, activation='gelu', "
    "layer_norm_eps=0.01, norm_first=True, bias=False)",
):
    layer(spec, r(3, 2, 4), r(5, 2, 4))
    layer(spec, r(3, 2, 4), r(5, 2, 4), causal, r(3, 5))
layer("TransformerDecoderLayer(4, 4, 6, dropout=0.3)", r(3, 4), r(2, 4), train=False)
layer(
    "TransformerDecoderLayer(4, 2, 6, 0.0, batch_first=True)",
    r(2, 3, 4),
    r(2, 3, 4),
    ahead,
    torch.zeros(3, 3).bool(),
    padded,
    padded,
)

# ---- stacks of a transformer, losses with parts, lazy layers ----
layer("TransformerEncoder(TransformerEncoderLayer(4, 2, 6, 0.0), 2, LayerNorm(4))", r(3, 2, 4))
layer(
    "TransformerEncoder(TransformerEncoderLayer(4, 2, 6, 0.0, norm_first=True), num_layers=3)",
    r(3, 2, 4),
    causal,
)
layer(
    "TransformerDecoder(TransformerDecoderLayer(4, 2, 6, 0.0), 2, LayerNorm(4))",
    r(3, 2, 4),
    r(5, 2, 4),
    causal,
    r(3, 5),
)
layer("Transformer(4, 2, 1, 2, 6, 0.0)", r(5, 2, 4), r(3, 2, 4))
layer(
    "Transformer(d_model=4, nhead=2, num_encoder_layers=1, num_decoder_layers=1, "
    "dim_feedforward=5, dropout=0.0, activation='gelu', layer_norm_eps=0.01, batch_first=True, "
    "norm_first=True, bias=False)",
    r(2, 3, 4),
    r(2, 3, 4),
    causal,
    causal,
    r(3, 3),
)
layer(
    "AdaptiveLogSoftmaxWithLoss(8, 20, (5, 10), div_value=2.0)",
    r(6, 8),
    torch.tensor([0, 4, 19, 7, 5, 12]),
)
layer(
    "AdaptiveLogSoftmaxWithLoss(4, 9, (3, 4), head_bias=True, div_value=1.0)", r(4), torch.tensor(8)
)
layer("AdaptiveLogSoftmaxWithLoss(4, 9, (3, 6))", r(3, 4), torch.tensor([0, 2, 4]))
for options in (
    "",
    "swap=True, margin=0.3, reduction='sum'",
    "distance_function=CosineSimilarity(), reduction='none'",
):
    layer("TripletMarginWithDistanceLoss(%s)" % options, r(3, 4), r(3, 4), r(3, 4))
layer("LinearCrossEntropyLoss(4, 5)", r(3, 4), torch.tensor([1, 0, 4]))
layer(
    "LinearCrossEntropyLoss(4, 3, bias=True, reduction='none', ignore_index=2, "
    "label_smoothing=0.25)",
    r(3, 4),
    torch.tensor([1, 2, 0]),
)
layer(
    "LinearCrossEntropyLoss(4, 3, out_features=(2, 2))",
    r(2, 4),
    torch.tensor([[[0, 1], [2, 1]], [[2, 2], [0, 0]]]),
)
layer("LazyLinear(3)", r(2, 5))
layer("LazyLinear(3, bias=False)", r(2, 2, 5))
for dims, shape in ((1, (2, 4, 5)), (2, (2, 4, 4, 5)), (3, (1, 4, 3, 3, 4))):
    layer("LazyConv%dd(2, 3, padding=1)" % dims, r(*shape))
    layer("LazyConvTranspose%dd(2, 2, groups=2, bias=False)" % dims, r(*shape))
    for train in (True, False):
        layer("LazyBatchNorm%dd()" % dims, r(*shape), train=train)
        layer(
            "LazyInstanceNorm%dd(affine=True, track_running_stats=True)" % dims,
            r(*shape),
            train=train,
        )
layer("LazyConv2d(4, 2, groups=2)", r(4, 3, 3))
layer("Sequential(Linear(4, 3), ReLU(), Sequential(Linear(3, 3), Tanh()))", r(2, 4))
layer("Upsample(scale_factor=(1.5, 2.5), mode='bilinear')", r(1, 2, 3, 3))
layer("Upsample(scale_factor=(1.7, 0.6))", r(1, 2, 5, 4))
layer("Upsample(scale_factor=1.3, mode='bilinear', recompute_scale_factor=True)", r(1, 2, 4, 4))
# ---- tables whose rows are shortened ----
looked_up = torch.tensor([[0, 4, 2], [2, 2, 1]])
layer("Embedding(5, 3, max_norm=0.4)", looked_up)
layer("Embedding(5, 3, 1, 0.75, 1.0)", looked_up)
layer(
    "Embedding(5, 3, max_norm=0.5, norm_type=inf, scale_grad_by_freq=False, sparse=False)",
    looked_up,
    train=False,
)
layer(
    "EmbeddingBag(6, 3, 0.4, 3.0, mode='sum')",
    torch.tensor([1, 0, 5, 2, 2]),
    torch.tensor([0, 3, 3]),
)

# ---- losses with weights, with probabilities as targets, of other ranks ----
weight = "[0.5, 2.0, 1.0, 0.25]"
classes, shares = torch.tensor([1, 0, 3]), torch.softmax(r(3, 4), 1)
for reduction in ("mean", "sum", "none"):
    layer("CrossEntropyLoss(weight=%s, reduction='%s')" % (weight, reduction), r(3, 4), classes)
    layer("CrossEntropyLoss(weight=%s, reduction='%s')" % (weight, reduction), r(3, 4), shares)
    layer("CrossEntropyLoss(reduction='%s')" % reduction, r(3, 4), shares)
    layer(
        "CrossEntropyLoss(reduction='%s', label_smoothing=0.25)" % reduction,
        r(2, 4, 3),
        torch.softmax(r(2, 4, 3), 1),
    )
    layer("NLLLoss(weight=%s, reduction='%s')" % (weight, reduction), r(3, 4), classes)
    layer(
        "NLLLoss(weight=%s, reduction='%s', ignore_index=2)" % (weight, reduction),
        r(2, 4, 3, 2),
        torch.randint(0, 4, (2, 3, 2)),
    )
    layer(
        "NLLLoss(reduction='%s')" % reduction, r(2, 4, 3), torch.tensor([[0, 3, 1], [2, 2, -100]])
    )
    layer("NLLLoss(reduction='%s')" % reduction, r(4), torch.tensor(2))
    layer(
        "BCELoss(weight=%s, reduction='%s')" % (weight, reduction),
        torch.rand(3, 4, dtype=F64),
        torch.rand(3, 4, dtype=F64),
    )
    layer(
        "BCEWithLogitsLoss(weight=%s, reduction='%s')" % (weight, reduction),
        r(3, 4),
        torch.rand(3, 4, dtype=F64),
    )
    layer(
        "BCEWithLogitsLoss(reduction='%s', pos_weight=%s)" % (reduction, weight),
        r(3, 4),
        torch.rand(3, 4, dtype=F64),
    )
    layer(
        "MultiLabelSoftMarginLoss(weight=%s, reduction='%s')" % (weight, reduction),
        r(3, 4),
        torch.rand(3, 4, dtype=F64),
    )
    layer("MultiMarginLoss(weight=%s, reduction='%s')" % (weight, reduction), r(3, 4), classes)
layer(
    "BCEWithLogitsLoss(weight=[[2.0], [0.5], [1.0]], pos_weight=[0.5, 2.0, 1.0, 0.25])",
    r(3, 4),
    torch.rand(3, 4, dtype=F64),
)
layer(
    "CrossEntropyLoss(weight=%s, ignore_index=0, label_smoothing=0.1)" % weight,
    r(2, 4, 3),
    torch.tensor([[0, 3, 1], [2, 2, 0]]),
)
layer("CrossEntropyLoss(weight=%s)" % weight, r(4), torch.tensor(2))
layer("MultiMarginLoss(p=2, margin=0.5, weight=%s)" % weight, r(3, 4), classes)
layer("LinearCrossEntropyLoss(4, 3, weight=[0.5, 2.0, 1.0])", r(3, 4), torch.tensor([1, 0, 2]))
# ---- gradients of a table by frequency ----
often = torch.tensor([[0, 4, 2, 2], [2, 2, 1, 4]])
layer("Embedding(5, 3, scale_grad_by_freq=True)", often)
layer("Embedding(5, 3, padding_idx=2, scale_grad_by_freq=True)", often)
print("end")
