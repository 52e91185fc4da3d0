# SPDX-License-Identifier: MIT
"""The PyTorch side of bench/train: the same networks (nets.c), weights and data.

x|parameter|buffer|target DTYPE BYTES SIZES...   and the bytes
begin        tries its options, keeps the fastest, and names it
loss         one step, and the loss before it
steps S      steps for S seconds: their number, and a line of seconds for each
peak         MiB of memory at most since begin
"""

import ctypes
import sys
import time

import torch
import torch.nn.functional as F

threads, name = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(threads)


class Model:
    def __init__(self, parameters, buffers):
        self.parameters = [
            p.detach().clone(memory_format=torch.preserve_format).requires_grad_()
            for p in parameters
        ]
        self.buffers = [b.clone() for b in buffers]

    def forward(self, x):
        self.p, self.b = iter(self.parameters), iter(self.buffers)
        return networks[name](self, x)

    def dense(self, x):
        return F.linear(x, next(self.p), next(self.p))

    def windows(self, x, stride, padding, bias=False):
        weight = next(self.p)
        return F.conv2d(x, weight, next(self.p) if bias else None, stride, padding)

    def normal(self, x):
        weight, bias, mean, var = next(self.p), next(self.p), next(self.b), next(self.b)
        return F.batch_norm(x, mean, var, weight, bias, training=True)

    def rows_normal(self, x):
        return F.layer_norm(x, x.shape[-1:], next(self.p), next(self.p))


def mlp(m, x):
    x = F.relu(m.dense(x))
    x = F.relu(m.dense(x))
    return m.dense(x)


def lenet(m, x):
    x = F.max_pool2d(F.relu(m.windows(x, 1, 2, True)), 2)
    x = F.max_pool2d(F.relu(m.windows(x, 1, 0, True)), 2)
    x = x.reshape(x.shape[0], 400)
    x = F.relu(m.dense(x))
    x = F.relu(m.dense(x))
    return m.dense(x)


def block(m, x, stride):
    y = F.relu(m.normal(m.windows(x, stride, 1)), inplace=True)
    y = m.normal(m.windows(y, 1, 1))
    if stride > 1:
        x = m.normal(m.windows(x, stride, 0))
    y += x
    return F.relu(y, inplace=True)


def stages(m, x):
    for stage in range(4):
        x = block(m, x, 2 if stage else 1)
        x = block(m, x, 1)
    return m.dense(x.mean((2, 3)))


def resnet_small(m, x):
    return stages(m, F.relu(m.normal(m.windows(x, 1, 1)), inplace=True))


def resnet(m, x):
    return stages(m, F.max_pool2d(F.relu(m.normal(m.windows(x, 2, 3)), inplace=True), 3, 2, 1))


def attention(m, x):
    n, length, width = x.shape
    q, k, v = m.dense(x).view(n, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
    y = F.scaled_dot_product_attention(q, k, v)
    return m.dense(y.transpose(1, 2).reshape(n, length, width))


def transformer(m, x):
    table, places = next(m.p), next(m.p)
    x = F.embedding(x, table) + places
    for _ in range(4):
        x = x + attention(m, m.rows_normal(x))
        x = x + m.dense(F.gelu(m.dense(m.rows_normal(x))))
    return m.dense(m.rows_normal(x).mean(1))


networks = {
    "mlp": mlp,
    "lenet": lenet,
    "resnet-cifar": resnet_small,
    "resnet-224": resnet,
    "transformer": transformer,
}
images = name in ("lenet", "resnet-cifar", "resnet-224")
places = {"parameter": [], "buffer": []}


class Training:
    def __init__(self, last, way):
        form = torch.channels_last if last else torch.contiguous_format
        self.x = places["x"].contiguous(memory_format=form) if images else places["x"]
        parameters = [
            p.contiguous(memory_format=form) if p.dim() == 4 else p for p in places["parameter"]
        ]
        self.model = Model(parameters, places["buffer"])
        how = {"foreach": way == "foreach", "fused": way == "fused"}
        if name == "transformer":
            self.optimizer = torch.optim.AdamW(self.model.parameters, lr=0.0003, **how)
        else:
            self.optimizer = torch.optim.SGD(self.model.parameters, lr=0.01, momentum=0.9, **how)

    def step(self):
        loss = F.cross_entropy(self.model.forward(self.x), places["target"])
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()


def cost(training, seconds=0.5):
    training.step()
    best, start = 1e30, time.perf_counter()
    while time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        training.step()
        best = min(best, time.perf_counter() - begin)
    return best


def fastest():
    costs = {last: cost(Training(last, "fused")) for last in ([False, True] if images else [False])}
    last = min(costs, key=costs.get)
    costs = {way: cost(Training(last, way)) for way in ("fused", "foreach", "single")}
    return last, min(costs, key=costs.get)


for line in sys.stdin.buffer:
    words = line.decode().split()
    if words[0] in ("x", "parameter", "buffer", "target"):
        kind, dtype, count, *sizes = words
        data = bytearray(sys.stdin.buffer.read(int(count)))
        dtype = {"f32": torch.float32, "i64": torch.int64}.get(dtype) or getattr(torch, dtype)
        made = torch.frombuffer(data, dtype=dtype).clone().reshape([int(size) for size in sizes])
        if kind in places and isinstance(places[kind], list):
            places[kind].append(made)
        else:
            places[kind] = made
    elif words[0] == "begin":
        last, way = fastest()
        training = Training(last, way)
        ctypes.CDLL(None).malloc_trim(0)
        try:
            open("/proc/self/clear_refs", "w").write("5")
        except OSError:
            pass
        layout = "channels last, " if last else ""
        print(
            f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, "
            f"{layout}{way} optimizer",
            flush=True,
        )
    elif words[0] == "loss":
        print(repr(training.step()), flush=True)
    elif words[0] == "steps":
        times, start = [], time.perf_counter()
        while not times or time.perf_counter() - start < float(words[1]):
            begin = time.perf_counter()
            training.step()
            times.append(time.perf_counter() - begin)
        print(len(times), *times, sep="\n", flush=True)
    elif words[0] == "peak":
        status = dict(row.split(":", 1) for row in open("/proc/self/status"))
        print(int(status["VmHWM"].split()[0]) // 1024, flush=True)
