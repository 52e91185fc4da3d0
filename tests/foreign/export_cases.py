#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# export_cases.py [--pt2] [--torchvision] [NAME...]: writes networks as models of ONNX, or with
# --pt2 as programs of PyTorch, and compares three runs of each: Tenon's own, that of onnxruntime or
# PyTorch on the file, and Tenon's on the file that it reads again. onnx.checker checks the files
# with its full check; of programs the gradients are compared, too, and they are unflattened. A size
# that varies is tried with another value. Needs onnx and onnxruntime, or PyTorch, and torchvision
# for its networks (in ten minutes); TENON_LIBRARY and PYTHONPATH are those of
# bindings/python/check.sh. Ends with 77 if a package is missing. export.sh runs it.
import ctypes as c
import os
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
PT2 = "--pt2" in sys.argv
try:
    import numpy as np

    if PT2:
        import torch
    else:
        import onnx
        import onnxruntime as ort
except ImportError as missing:
    print("SKIP:", missing)
    sys.exit(77)
import tenon
from tenon import _api
from tenon._library import Scope, checked, lib
from tenon._module import LoadedModule, adopt_module
from tenon._values import Pack

TOLERANCE = 1e-5


def opened(text):
    """A module by a spec or a file, in evaluation mode."""
    make = lib.tn_module_from_file if os.path.exists(text) else lib.tn_module_parse
    module = adopt_module(checked(make(text.encode())))
    lib.tn_module_train(module._ptr, False)
    return module


def write(module, inputs, dynamic, path):
    """Traces the module in evaluation mode and writes its script."""
    how = _api.tn_tracing_options(size=c.sizeof(_api.tn_tracing_options), flags=1, dynamic=dynamic)
    with Scope(), Pack() as given:
        given.add(inputs, {})
        graph = checked(lib.tn_module_trace_pack(module._ptr, given.pointer, c.byref(how)))
        script = checked(lib.tn_script_new(module._ptr, (c.c_void_p * 1)(graph), 1))
        lib.tn_graph_drop(graph)
        if lib.tn_module_save(script, path.encode()) != 0:
            raise RuntimeError(lib.tn_error_text().decode())
        lib.tn_module_drop(script)


def flat(result):
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [x for part in result for x in flat(part)]
    return [result.detach().numpy()]


def difference(got, wanted):
    """The largest difference as a part of the largest value; 0.0: the same bits."""
    most = 0.0
    for a, b in zip(got, wanted, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise RuntimeError(f"{a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}")
        if a.size and not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            a, b = a.astype(np.float64), b.astype(np.float64)
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            most = max(
                most,
                (
                    np.where(same, 0, np.abs(a - b))
                    / max(1e-30, np.abs(b[np.isfinite(b)]).max(initial=1e-30))
                ).max(),
            )
    return most


def sample(shape, random):
    if shape and isinstance(shape[-1], str):
        kind, most = shape[-1].split(":") if ":" in shape[-1] else (shape[-1], 2)
        return random.integers(0, int(most), shape[:-1]).astype(kind)
    return random.standard_normal(shape).astype(np.float32)


class Onnx:
    """A model in onnxruntime."""

    extension = ".onnx"

    def __init__(self, path):
        ort.set_default_logger_severity(3)
        onnx.checker.check_model(path, full_check=True)
        self.session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        version = onnx.load(path, load_external_data=False).opset_import[0].version
        self.note = f"opset {version}, onnxruntime"

    def run(self, inputs):
        names = [x.name for x in self.session.get_inputs()]
        return self.session.run(None, dict(zip(names, inputs, strict=True)))

    def gradients(self, inputs):
        return None


class Pt2:
    """A program in PyTorch."""

    extension, note = ".pt2", "PyTorch"

    def __init__(self, path):
        program = torch.export.load(path)
        self.module = program.module()
        self.tree = torch.export.unflatten(program)

    def run(self, inputs):
        result = self.module(*map(torch.from_numpy, inputs))
        return [x.detach().numpy() for x in (result if isinstance(result, tuple) else [result])]

    def gradients(self, inputs):
        """Of the sum of the squares of the first result."""
        parameters = dict(self.module.named_parameters())
        if not parameters:
            return None
        result = self.module(*map(torch.from_numpy, inputs))
        result = result[0] if isinstance(result, tuple) else result
        (result.double() ** 2).sum().backward()
        return {k: p.grad.numpy() for k, p in parameters.items() if p.grad is not None}


def own_gradients(module, inputs):
    result = module(*[tenon.from_numpy(x) for x in inputs])
    while isinstance(result, (list, tuple, dict)):
        result = list(result.values())[0] if isinstance(result, dict) else result[0]
    (result * result).sum().backward()
    return {k: p.grad.numpy() for k, p in module.named_parameters() if p.grad is not None}


def compare(name, module, shapes, dynamic=None, others=()):
    """Returns a line of the report. `others` has further shapes, if sizes vary."""
    random = np.random.default_rng(0)
    judge = Pt2 if PT2 else Onnx
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net" + judge.extension)
        inputs = [sample(s, random) for s in shapes]
        names = dynamic.encode() if dynamic else None
        write(module, [tenon.from_numpy(x) for x in inputs], names, path)
        other = judge(path)
        again = adopt_module(checked(lib.tn_module_from_file(path.encode())), LoadedModule)
        beside, own, slopes = 0.0, 0.0, 0.0
        for at in (shapes, *others):
            inputs = [sample(s, random) for s in at]
            wanted = flat(module(*[tenon.from_numpy(x) for x in inputs]))
            beside = max(beside, difference(other.run(inputs), wanted))
            own = max(own, difference(flat(again(*[tenon.from_numpy(x) for x in inputs])), wanted))
        found = other.gradients(inputs)
        if found is not None:
            wanted = own_gradients(module, inputs)
            if found.keys() != wanted.keys():
                raise RuntimeError(f"gradients of {sorted(found.keys() ^ wanted.keys())}")
            most = max(1e-30, max(np.abs(x).max(initial=0) for x in wanted.values()))
            slopes = max(np.abs(found[k] - wanted[k]).max(initial=0) / most for k in wanted)
    bad = "" if beside <= TOLERANCE and own <= TOLERANCE and slopes <= 1e-4 else "  WRONG"
    more = f", gradients {slopes:.1e}" if found is not None else ""
    return f"{name}: {other.note} {beside:.1e}{more}, read again {own:.1e}{bad}"


def torchvision_file(name, folder):
    import torch
    import torchvision

    torch.manual_seed(0)
    kind = {
        "inception_v3": {"aux_logits": True, "init_weights": False},
        "googlenet": {"aux_logits": True, "init_weights": False},
    }.get(name, {})
    net = getattr(torchvision.models, name)(**kind).eval()
    if name.startswith("vit"):  # its head is zero at first
        torch.nn.init.normal_(net.heads.head.weight)
    size = (
        224 if name.startswith(("vit", "swin", "maxvit")) else 299 if name == "inception_v3" else 64
    )
    with torch.no_grad():
        program = torch.export.export(
            net,
            (torch.randn(2, 3, size, size),),
            dynamic_shapes=({0: torch.export.Dim("N", min=1)},),
        )
    path = os.path.join(folder, name + ".pt2")
    torch.export.save(program, path)
    return path, size


TORCHVISION = """
alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3
maxvit_t mnasnet0_5 mobilenet_v2 mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18
resnet50 resnext50_32x4d shufflenet_v2_x0_5 squeezenet1_1 swin_t swin_v2_t vgg11_bn vit_b_16
wide_resnet50_2
""".split()

BATCH = "[N, {}]".format

# name: spec, shapes of the inputs, names of sizes, other shapes
NETWORKS = {
    "resnet18": ("resnet18", [[2, 3, 64, 64]], "[N, 3, 32*H, 32*W]", [[[3, 3, 96, 64]]]),
    "mobilenet_v2": ("mobilenet_v2", [[2, 3, 64, 64]], "[N, 3, 64, 64]", [[[5, 3, 64, 64]]]),
    "unet": ("unet", [[1, 3, 64, 64]], "[N, 3, 16*H, 16*W]", [[[2, 3, 32, 48]]]),
    "gpt2": (
        "gpt2_small(vocab_size=100, n_positions=32, n_embd=48, n_layer=2, n_head=4)",
        [[2, 8, "int64:100"]],
        "[N, T]",
        [[[3, 17, "int64:100"]]],
    ),
    "mlp": ("mlp([784, 64, 10])", [[4, 784]], "[N, 784]", [[[9, 784]]]),
    "lstm": (
        "LSTM(5, 7, num_layers=2, bidirectional=True)",
        [[6, 3, 5]],
        "[T, N, 5]",
        [[[9, 2, 5]]],
    ),
    "lstm_proj": ("LSTM(5, 7, proj_size=3)", [[6, 3, 5]]),
    "gru": ("GRU(5, 7, num_layers=2, batch_first=True)", [[3, 6, 5]], "[N, T, 5]", [[[2, 4, 5]]]),
    "rnn": ("RNN(5, 7, nonlinearity='relu', bias=False)", [[6, 3, 5]], "[T, N, 5]", [[[9, 2, 5]]]),
    "lstm_cell": ("LSTMCell(5, 7)", [[3, 5]]),
    "encoder": (
        "TransformerEncoder(TransformerEncoderLayer(16, 4, 32), 2)",
        [[7, 2, 16]],
    ),
    "encoder_layer": (
        "TransformerEncoderLayer(16, 4, 32, activation='gelu', batch_first=True, norm_first=True)",
        [[2, 7, 16]],
    ),
    "attention": ("MultiheadAttention(16, 4)", [[7, 2, 16], [7, 2, 16], [7, 2, 16]]),
}
# A layer and the shape of its input; TWO has the layers with several.
LAYERS = """
Conv1d(4, 6, 3, padding=1)|2,4,9
Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), groups=2)|2,4,9,8
Conv3d(2, 3, 3)|1,2,5,6,7
Conv2d(4, 6, 4, padding='same', dilation=2)|2,4,9,8
ConvTranspose1d(4, 6, 3, stride=2, output_padding=1)|2,4,9
ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, dilation=1)|2,4,5,6
ConvTranspose3d(2, 3, 2)|1,2,3,4,5
Conv2d(4, 6, 3)|4,9,8
Linear(5, 3)|5
Linear(5, 3)|2,5
Linear(5, 3, bias=False)|2,4,5
Bilinear(3, 4, 5)|2,3,2,4
MaxPool1d(3)|2,4,10
MaxPool2d(3, stride=2, padding=1, ceil_mode=True)|2,3,10,11
MaxPool3d(2)|1,2,4,5,6
MaxPool2d(2, dilation=2)|2,3,9,9
AvgPool1d(3, padding=1)|2,4,10
AvgPool2d(3, stride=2, padding=1, count_include_pad=False)|2,3,10,11
AvgPool2d(3, divisor_override=5)|2,3,9,9
AvgPool3d(2)|1,2,4,5,6
AvgPool2d(3, stride=2, ceil_mode=True)|2,3,10,10
AdaptiveAvgPool2d((3, 4))|2,3,7,9
AdaptiveAvgPool1d(4)|2,3,8
AdaptiveAvgPool3d(1)|1,2,3,4,5
AdaptiveMaxPool2d(2)|2,3,8,6
AdaptiveMaxPool1d(1)|2,3,8
LPPool2d(2.0, 2)|2,3,8,8
BatchNorm1d(4)|3,4
BatchNorm2d(4, affine=False)|3,4,5,6
BatchNorm2d(4, track_running_stats=False)|3,4,5,6
InstanceNorm2d(4)|3,4,5,6
InstanceNorm2d(4, affine=True, track_running_stats=True)|3,4,5,6
LayerNorm((5, 6))|3,4,5,6
LayerNorm(6, elementwise_affine=False)|3,4,5,6
LayerNorm((5, 6), elementwise_affine=False)|3,4,5,6
GroupNorm(2, 6)|3,6,5,4
GroupNorm(3, 6, affine=False)|3,6
RMSNorm(6)|3,4,6
LocalResponseNorm(5)|2,8,5,6
LocalResponseNorm(4)|2,8,5,6
Softmax(1)|3,4,5
LogSoftmax(-1)|3,4,5
Softmin(0)|3,4
Softmax2d()|2,3,4,5
Embedding(10, 4)|3,2,int64:10
Upsample(scale_factor=2.0)|2,3,4,5
Upsample(size=(7, 9), mode='bilinear')|2,3,4,5
Upsample(scale_factor=1.7, mode='bilinear')|2,3,4,5
Upsample(size=(7, 9), mode='bicubic', align_corners=True)|2,3,4,5
Upsample(size=(7, 9), mode='bicubic')|2,3,4,5
Upsample(size=9, mode='linear')|2,3,4
Upsample(size=(7, 9), mode='nearest-exact')|2,3,4,5
Upsample(size=(4, 5, 6), mode='trilinear')|2,3,3,4,5
PixelShuffle(2)|2,8,3,4
PixelUnshuffle(2)|2,2,4,6
ChannelShuffle(2)|2,4,3,3
ReflectionPad2d((1, 2, 0, 1))|2,3,4,5
ReplicationPad1d(2)|2,3,4
ZeroPad2d((1, -1, 2, 0))|2,3,4,5
ConstantPad1d(2, 1.5)|2,3,4
CircularPad2d(1)|2,3,4,5
Flatten()|2,3,4
Unflatten(1, (2, 3))|2,6,4
Fold((4, 5), 2)|2,12,12
Unfold(2)|2,3,4,5
CosineSimilarity()|3,4,3,4
PairwiseDistance()|3,4,3,4
Dropout()|3,4
AlphaDropout()|3,4
Identity()|3,4
EmbeddingBag(10, 4)|3,2,int64:10
"""
ACTIVATIONS = """
ELU() SELU() CELU(2.0) GELU() GELU('tanh') ReLU() ReLU(inplace=True) ReLU6() LeakyReLU(0.2)
PReLU() PReLU(4) RReLU() Sigmoid() SiLU() Mish() Hardtanh(-2.0,0.5) Hardswish() Hardsigmoid()
Hardshrink() Softshrink() Softplus() Softplus(2.0) Softsign() Tanh() Tanhshrink()
Threshold(0.1,20.0) GLU(1) LogSigmoid()
""".split()
TWO = {
    "Bilinear(3, 4, 5)": [[2, 3], [2, 4]],
    "CosineSimilarity()": [[3, 4]] * 2,
    "PairwiseDistance()": [[3, 4]] * 2,
}


def cases():
    for name, (spec, shapes, *rest) in NETWORKS.items():
        yield name, lambda spec=spec, shapes=shapes, rest=rest: (opened(spec), shapes, *rest)
    for row in LAYERS.strip().split("\n"):
        spec, shape = row.split("|")
        shapes = TWO.get(spec) or [[x if ":" in x else int(x) for x in shape.split(",")]]
        yield spec, lambda spec=spec, shapes=shapes: (opened(spec), shapes)
    for spec in ACTIVATIONS:
        yield spec, lambda spec=spec: (opened(spec), [[3, 4, 5]])


def vision_cases(folder):
    for name in TORCHVISION:

        def make(name=name):
            path, size = torchvision_file(name, folder)
            return (
                opened(path),
                [[2, 3, size, size]],
                f"[N, 3, {size}, {size}]",
                [[[3, 3, size, size]]],
            )

        yield name + " (torchvision)", make


def main(wanted):
    wrong = count = 0
    with tempfile.TemporaryDirectory() as folder:
        both = list(cases())
        if PT2:
            wanted.remove("--pt2")
        if "--torchvision" in wanted:
            wanted.remove("--torchvision")
            both = list(vision_cases(folder))
        for name, make in both:
            if wanted and not any(word in name for word in wanted):
                continue
            count += 1
            try:
                line = compare(name, *make())
            except Exception as error:  # noqa: BLE001
                lib.tn_error_clear()
                line = f"{name}: {str(error)[:600]}  WRONG"
            wrong += line.endswith("WRONG")
            print(line, flush=True)
    print(f"{count - wrong} of {count} are right")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
