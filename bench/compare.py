# SPDX-License-Identifier: MIT
"""A contender of bench/train and bench/infer: compare.py THREADS train|infer:CONTENDER

network NAME TYPE OPTIMIZER wall|cpu     then a line with the spec
state PATH|x|target|cache|result DTYPE BYTES SIZES...     and the bytes
begin        tries the options, keeps the fastest, and names it
compare      one step; how far its loss or result is from `result`, as a share of its size
run S        steps for S seconds: the median and the least time
peak         MiB of memory at most since begin

Contenders: eager, compile (torch.compile), onnxruntime (exported here, only inference). With
TENON_DEVICE=cuda the first two run on the GPU, and matrix products in float32, not in TF32.
"""

import copy
import ctypes
import io
import os
import sys
import time
import warnings

import torch
import torch.nn.functional as F

from networks import make

warnings.filterwarnings("ignore")
threads, (program, contender) = int(sys.argv[1]), sys.argv[2].split(":")
torch.set_num_threads(threads)
device = "cuda" if os.environ.get("TENON_DEVICE", "").startswith("cuda") else "cpu"
torch.set_default_device(device)
torch.backends.cudnn.allow_tf32 = False
finish = torch.cuda.synchronize if device == "cuda" else lambda: None
state, cache, places = {}, [], {}
first, last = torch.contiguous_format, torch.channels_last


def fresh():
    module = make(places["name"], places["spec"])
    missing, unknown = module.load_state_dict(state, strict=False)
    # a tensor with two names is sent once
    shared = {id(p): n for n, p in module.named_parameters(remove_duplicate=True)}
    missing = [n for n in missing if shared.get(id(dict_of(module)[n]), n) == n]
    if missing or unknown:
        raise SystemExit(f"state: missing {missing}, unknown {unknown}")
    return module


def dict_of(module):
    return dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers())


def compiled(module):
    return torch.compile(module) if contender == "compile" else module


class Training:
    def __init__(self, form, way):
        self.module = fresh().train()
        self.x = places["x"]
        if form is last:
            self.module, self.x = self.module.to(memory_format=last), self.x.to(memory_format=last)
        how = {"foreach": way == "foreach", "fused": way == "fused"}
        parameters = list(self.module.parameters())
        if places["optimizer"] == "AdamW":
            self.optimizer = torch.optim.AdamW(parameters, lr=0.0003, **how)
        else:
            self.optimizer = torch.optim.SGD(parameters, lr=0.001, momentum=0.9, **how)
        self.call = compiled(self.module)

    def step(self):
        target = places["target"]
        with torch.autocast(device, torch.bfloat16, places["type"] == torch.bfloat16):
            y = self.call(self.x)
            if y.dim() == 3 and not self.x.is_floating_point():
                y = y.flatten(0, 1)
            error = F.mse_loss if target.is_floating_point() else F.cross_entropy
            loss = error(y, target)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def result(self):
        return torch.tensor(self.step())


class Inference:
    def __init__(self, form, way):
        module = fresh().eval().to(places["type"])
        self.x = [places["x"], *cache]
        self.x = [t.to(places["type"]) if t.is_floating_point() else t for t in self.x]
        if form is last:
            module, self.x[0] = module.to(memory_format=last), self.x[0].to(memory_format=last)
        self.call = compiled(module)

    def step(self):
        with torch.inference_mode():
            y = self.call(*self.x)
        finish()
        return y

    result = step


class Onnxruntime:
    def __init__(self, form, way):
        import onnxruntime

        file, inputs = io.BytesIO(), (places["x"], *cache)
        names = ["x"] + [f"cache{i}" for i in range(len(cache))]
        # the paths for inference that PyTorch's own encoder takes cannot be exported
        torch.backends.mha.set_fastpath_enabled(False)
        with torch.no_grad():
            module = fresh().eval()
            torch.onnx.export(module, inputs, file, input_names=names, dynamo=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(
            file.getvalue(), options, providers=["CPUExecutionProvider"]
        )
        self.inputs = {name: value.numpy() for name, value in zip(names, inputs)}

    def step(self):
        return self.session.run(None, self.inputs)[0]

    def result(self):
        return torch.from_numpy(self.step())


def cost(make_one, seconds=0.3):
    one = make_one()
    one.step()
    best, start = 1e30, clock()
    while best == 1e30 or clock() - start < seconds:
        begin = clock()
        one.step()
        best = min(best, clock() - begin)
    return best


def fastest():
    """The class of the contender, its fastest options, and their names."""
    kind = {"train": Training, "infer": Inference}[program]
    if contender == "onnxruntime":
        import onnxruntime

        return Onnxruntime, (first, None), f"onnxruntime {onnxruntime.__version__}"
    form, way = first, "fused"
    if places["x"].dim() == 4:
        form = min((first, last), key=lambda f: cost(lambda: kind(f, way)))
    if program == "train" and contender == "eager":
        ways = ("fused", "foreach", "single")
        way = min(ways, key=lambda w: cost(lambda: kind(form, w)))
    words = [f"PyTorch {torch.__version__}, {contender}"]
    words += ["channels last"] if form is last else []
    words += [f"{way} optimizer"] if program == "train" else []
    return kind, (form, way), ", ".join(words)


def begin():
    kind, options, about = fastest()
    one = kind(*options)
    ctypes.CDLL(None).malloc_trim(0)
    try:
        open("/proc/self/clear_refs", "w").write("5")
    except OSError:
        pass
    return one, about


def difference():
    theirs, ours = one.result().double(), places["result"].double()
    return float((theirs - ours).abs().max() / theirs.abs().max())


def steps(seconds):
    times, start = [], time.perf_counter()
    while not times or time.perf_counter() - start < seconds:
        begin = clock()
        one.step()
        times.append(clock() - begin)
    times.sort()
    return f"{times[len(times) // 2]!r} {times[0]!r}"


def peak():
    status = dict(row.split(":", 1) for row in open("/proc/self/status"))
    return int(status["VmHWM"].split()[0]) // 1024


def read(dtype, count, *sizes):
    data = bytearray(sys.stdin.buffer.read(int(count)))
    names = {"f32": torch.float32, "i64": torch.int64, "bf16": torch.bfloat16}
    dtype = names[dtype] if dtype in names else getattr(torch, dtype)
    flat = torch.frombuffer(data, dtype=dtype).to(device, copy=True)
    return flat.reshape([int(size) for size in sizes])


for line in sys.stdin.buffer:
    words = line.decode().split()
    if words[0] == "network":
        types = {"bf16": torch.bfloat16, "bfloat16": torch.bfloat16}
        places.update(name=words[1], type=types.get(words[2], torch.float32), optimizer=words[3])
        clock = time.perf_counter if words[4] == "wall" else time.process_time
        places["spec"] = sys.stdin.buffer.readline().decode()
    elif words[0] == "state":
        state[words[1]] = read(*words[2:])
    elif words[0] == "cache":
        cache.append(read(*words[1:]))
    elif words[0] in ("x", "target", "result"):
        places[words[0]] = read(*words[1:])
    elif words[0] == "begin":
        one, about = begin()
        print(about, flush=True)
    elif words[0] == "compare":
        print(difference(), flush=True)
    elif words[0] == "run":
        print(steps(float(words[1])), flush=True)
    elif words[0] == "peak":
        print(peak(), flush=True)
