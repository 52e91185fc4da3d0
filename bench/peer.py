# SPDX-License-Identifier: MIT
"""The PyTorch side of bench/ops: reads tensors and expressions, prints seconds per call.
With TENON_DEVICE=cuda it runs them on its GPU, too.

tensor NAME DTYPE BYTES SIZE...     and the bytes
time SECONDS forward|both LEAVES EXPRESSION
"""

import os
import sys
import time

import torch
import torch.nn.functional as F

torch.set_num_threads(int(sys.argv[1]))
print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
places = {"torch": torch, "F": F}
device = "cuda" if os.environ.get("TENON_DEVICE", "").startswith("cuda") else "cpu"
torch.set_default_device(device)
finish = torch.cuda.synchronize if device == "cuda" else lambda: None


def measure(work, seconds):
    clock = time.perf_counter
    start = clock()
    work()
    work()
    finish()
    times = range(max(1, int(50e-6 / max((clock() - start) / 2, 1e-7))))
    best, batch, start = 1e30, 0, clock()
    while batch < 3 or clock() - start < seconds:
        begin = clock()
        for _ in times:
            work()
        finish()
        best = min(best, (clock() - begin) / len(times))
        batch += 1
    return best


def answer(seconds, mode, names, expression):
    if mode == "forward":
        with torch.no_grad():
            return measure(eval("lambda: " + expression, places), seconds)
    leaves = {name: places[name].clone().requires_grad_() for name in names.split(",")}
    forward = eval("lambda: " + expression, {**places, **leaves})
    first = forward()
    several = isinstance(first, tuple)
    cotangent = torch.ones_like(first[0] if several else first)
    inputs = list(leaves.values())

    def both():
        y = forward()
        torch.autograd.grad(y[0] if several else y, inputs, cotangent, allow_unused=True)

    return measure(both, seconds)


for line in sys.stdin.buffer:
    words = line.decode().rstrip("\n")
    if words.startswith("tensor "):
        _, name, dtype, count, *sizes = words.split(" ")
        data = bytearray(sys.stdin.buffer.read(int(count)))
        flat = torch.frombuffer(data, dtype=getattr(torch, dtype))
        places[name] = flat.to(device, copy=True).reshape([int(size) for size in sizes])
    else:
        _, seconds, mode, names, expression = words.split(" ", 4)
        try:
            print(answer(float(seconds), mode, names, expression), flush=True)
        except Exception as trouble:
            print("error", str(trouble).split("\n")[0], flush=True)
