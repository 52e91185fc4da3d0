#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Random programs of tensors with PyTorch's results, for tests/programs/replay_programs.c: views,
# changes in place, broadcasting, modes, hooks, backward; values, gradients and refusals.
#
#   PYTHON-WITH-TORCH programs.py FIRST COUNT
#
# writes the programs of the seeds FIRST, FIRST + 1, ... to standard output. A line is an
# instruction, `ok` or `refused` at its end. Registers are numbers; a register that was refused is
# not there.
import random, sys, warnings

import torch

warnings.simplefilter("ignore")
torch.set_num_threads(1)
SHAPES = [(3,), (2, 3), (3, 2), (1, 3), (2, 1), (2, 2, 3), (2, 2), (4,), (), (3, 3)]


def text(t):
    t = t.detach().resolve_conj()
    return " ".join("%.17g" % v for v in t.reshape(-1).tolist())


def ints(values):
    return ",".join(str(v) for v in values) if values else "-"


def shows_twice(x):
    places = [0]
    for n, step in zip(x.shape, x.stride()):
        places = [p + i * step for p in places for i in range(n)]
    return len(set(places)) < len(places)


class Program:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.seed = seed
        self.t = {}  # registers
        self.next = 0
        self.lines = ["program %d" % seed]
        self.modes = []
        self.partial = False
        self.used = set()  # what an operator has read
        self.seen = set()  # what a view looks at: PyTorch makes it require what its base does

    def say(self, line, run, to=None):
        """Runs one instruction, writes it down with its verdict."""
        try:
            value = run()
        except (RuntimeError, IndexError, NotImplementedError, ValueError, TypeError) as why:
            if line.startswith("backward"):
                self.partial = True  # which gradients have come by then is anybody's choice
                if "second time" in str(why) or "modified by an inplace" in str(why):
                    return None  # so is what a graph keeps
            if line.startswith("op view") and "view size is not compatible" in str(why):
                return None  # the order of strides in what an operator returns is free
            self.lines.append(line + " refused")
            return None
        if to is not None:
            self.t[to] = value
        self.lines.append(line + " ok")
        return value

    def new(self):
        self.next += 1
        return self.next - 1

    def pick(self):
        return self.rng.choice(sorted(self.t))

    def make(self):
        shape = self.rng.choice(SHAPES)
        value = (
            torch.tensor(
                [round(self.rng.uniform(-2, 2), 3) for _ in range(int(torch.Size(shape).numel()))],
                dtype=torch.float64,
            )
            .reshape(shape)
            .clone()
        )
        grad, to = self.rng.random() < 0.7 and not torch.is_inference_mode_enabled(), self.new()
        self.say(
            "new %d %s %d : %s" % (to, ints(shape), grad, text(value)),
            lambda: value.requires_grad_(grad),
            to,
        )

    def op(self, name, inputs, options, run):
        to = self.new()
        self.used.update(inputs)
        self.say(
            "op %s %d %s %s" % (name, to, ints(inputs), self.options(options)),
            lambda: run(*[self.t[i] for i in inputs]),
            to,
        )

    def change(self, name, inputs, options, run):
        self.used.update(inputs)
        self.say(
            "change %s %s %s" % (name, ints(inputs), self.options(options)),
            lambda: run(*[self.t[i] for i in inputs]),
        )

    @staticmethod
    def options(options):
        return (
            ";".join(
                "%s=%s" % (k, ints(v) if isinstance(v, (list, tuple)) else v)
                for k, v in options.items()
            )
            or "-"
        )

    # ---- instructions ----
    def unary(self):
        name = self.rng.choice("neg exp sin cos tanh sigmoid relu abs square".split())
        self.op(name, [self.pick()], {}, lambda x: getattr(torch, name)(x))

    def scalar(self):
        v = round(self.rng.uniform(-2, 2), 2)
        if self.rng.random() < 0.5:
            self.op("mul_scalar", [self.pick()], {"value": v}, lambda x: x * v)
        else:
            self.op("add_scalar", [self.pick()], {"value": v}, lambda x: x + v)

    def binary(self):
        name = self.rng.choice("add sub mul maximum minimum".split())
        self.op(name, [self.pick(), self.pick()], {}, lambda a, b: getattr(torch, name)(a, b))

    def product(self):
        i, j = self.pick(), self.pick()
        if self.t[i].dim() < 3 and self.t[j].dim() < 3:  # PyTorch may keep copies of batches
            self.op("matmul", [i, j], {}, torch.matmul)

    def reduce(self):
        i = self.pick()
        d = self.rng.randrange(-2, 2)
        keep = self.rng.random() < 0.5
        kind = self.rng.randrange(5)
        if kind == 0:
            self.op("sum", [i], {"dims": [d], "keepdim": keep}, lambda x: x.sum(d, keepdim=keep))
        elif kind == 1:
            self.op("mean", [i], {"dims": [d], "keepdim": keep}, lambda x: x.mean(d, keepdim=keep))
        elif kind == 2:
            self.op("cumsum", [i], {"dim": d}, lambda x: x.cumsum(d))
        elif kind == 3:
            self.op("prod", [i], {"dims": [d], "keepdim": keep}, lambda x: x.prod(d, keepdim=keep))
        else:
            self.op("softmax", [i], {"dim": d}, lambda x: torch.softmax(x, d))

    def view(self):
        i = self.pick()
        x = self.t[i]
        if self.modes and x.requires_grad:
            return  # PyTorch says of a view that is made without gradients that it requires one
        self.seen.add(i)
        r = self.rng
        d = r.randrange(-2, 2)
        kind = r.randrange(14)
        if kind == 0:
            n = x.shape[d] if -x.dim() <= d < x.dim() else 2
            start = r.randrange(0, n) if n else 0
            length = r.choice([0, 1, 1, 1, 2, 2, n - start if n > start else 1])
            self.op(
                "narrow",
                [i],
                {"dim": d, "start": start, "length": length},
                lambda x: x.narrow(d, start, length),
            )
        elif kind == 1:
            at = r.randrange(0, 3)
            self.op("select", [i], {"dim": d, "index": at}, lambda x: x.select(d, at))
        elif kind in (2, 3):
            e = r.randrange(-2, 2)
            self.op("transpose", [i], {"dim0": d, "dim1": e}, lambda x: x.transpose(d, e))
        elif kind == 4:
            self.op("unsqueeze", [i], {"dim": d}, lambda x: x.unsqueeze(d))
        elif kind == 5:
            shape = [3 if s == 1 else s for s in x.shape]
            if r.random() < 0.5:
                shape = [2] + shape
            self.op("expand", [i], {"shape": shape}, lambda x: x.expand(shape))
        elif kind == 6:
            self.op("view", [i], {"shape": [-1]}, lambda x: x.view([-1]))
        elif kind == 7 and x.is_contiguous():  # else the strides of the result are free
            self.op("reshape", [i], {"shape": [-1]}, lambda x: x.reshape([-1]))
        elif kind == 8:
            start = r.randrange(0, 2)
            self.op(
                "slice",
                [i],
                {"dim": 0, "start": start, "step": 2},
                lambda x: x[start::2] if x.dim() else x.select(0, 0),
            )
        elif kind in (9, 10):
            window, step = r.randrange(1, 4), r.randrange(1, 3)
            self.op(
                "unfold",
                [i],
                {"dim": d, "window": window, "step": step},
                lambda x: x.unfold(d, window, step),
            )
        elif kind == 11:
            order = r.sample(range(x.dim()), x.dim())
            self.op("permute", [i], {"dims": order}, lambda x: x.permute(order))
        elif kind == 12:
            dims = r.choice([[], [d], [0]])
            self.op("squeeze", [i], {"dims": dims}, lambda x: x.squeeze(tuple(dims)))
        else:
            self.op("diagonal", [i], {}, lambda x: x.diagonal())

    def gather(self):
        a, b = self.pick(), self.pick()
        if self.rng.random() < 0.5:
            self.op("cat", [a, b], {"dim": 0}, lambda x, y: torch.cat([x, y], 0))
        else:
            self.op("stack", [a, b], {"dim": 0}, lambda x, y: torch.stack([x, y], 0))

    def in_place(self):
        i, j, v = self.pick(), self.pick(), round(self.rng.uniform(-2, 2), 2)
        kind = self.rng.randrange(11)
        x = self.t[i]
        if x.is_inference() and not torch.is_inference_mode_enabled():
            return  # PyTorch refuses, and has changed it by then
        if shows_twice(x) and not any(k == 0 and n > 1 for k, n in zip(x.stride(), x.shape)):
            return  # windows that overlap: what PyTorch writes there is not defined
        if kind == 3 and self.t[j].untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
            return  # nor does it look whether the two share memory in part
        if kind in (3, 4) and any(k == 0 and n > 1 for k, n in zip(x.stride(), x.shape)):
            return  # PyTorch lets these two write one place many times
        if kind < 3:
            name = ("add", "sub", "mul")[kind]
            self.change(name, [i, j], {}, lambda a, b: getattr(a, name + "_")(b))
        elif kind == 3:
            self.change("copy", [i, j], {}, lambda a, b: a.copy_(b))
        elif kind == 4:
            self.change("fill", [i], {"value": v}, lambda a: a.fill_(v))
        elif kind == 5:
            self.change("mul_scalar", [i], {"value": v}, lambda a: a.mul_(v))
        elif kind == 6:
            self.change("add_scalar", [i], {"value": v}, lambda a: a.add_(v))
        else:
            name = ("sin", "tanh", "relu", "neg")[kind - 7]
            self.change(name, [i], {}, lambda a: getattr(torch, name + "_")(a))

    def cut(self):
        i, to = self.pick(), None
        kind = self.rng.randrange(6)
        if kind == 0:
            to = self.new()
            self.seen.add(i)
            self.say("detach %d %d" % (to, i), lambda: self.t[i].detach(), to)
        elif kind == 1:
            self.op("clone", [i], {}, lambda x: x.clone())
        elif kind == 2:
            if torch.is_inference_mode_enabled() or self.t[i].is_leaf or i in self.used:
                return  # PyTorch's does nothing there, or mixes the leaf up with what it becomes
            self.say("cut %d" % i, lambda: self.t[i].detach_())
        elif kind == 3:
            self.say("retain %d" % i, lambda: self.t[i].retain_grad())
        elif kind == 4:
            s = self.rng.choice([0.5, 2, -1])
            self.say("hook %d %g" % (i, s), lambda: self.t[i].register_hook(lambda g: g * s))
        else:
            on = self.rng.random() < 0.6
            if i in self.seen or torch.is_inference_mode_enabled():
                return
            self.say("requires %d %d" % (i, on), lambda: self.t[i].requires_grad_(on))

    def mode(self):
        if self.modes and self.rng.random() < 0.75:
            self.modes.pop().__exit__(None, None, None)
            self.lines.append("end ok")
            return
        kind = self.rng.choice(["nograd", "nograd", "grad", "inference"])
        guard = {
            "nograd": torch.no_grad,
            "grad": torch.enable_grad,
            "inference": torch.inference_mode,
        }[kind]()
        guard.__enter__()
        self.modes.append(guard)
        self.lines.append("begin %s ok" % kind)

    def backward(self):
        i = self.pick()
        retain, create = self.rng.random() < 0.5, self.rng.random() < 0.15
        weight = [round(self.rng.uniform(-1, 1), 2) for _ in range(self.t[i].numel())]
        self.say(
            "backward %d %d %d : %s" % (i, retain, create, " ".join(map(str, weight))),
            lambda: self.t[i].backward(
                torch.tensor(weight, dtype=torch.float64).reshape(self.t[i].shape),
                retain_graph=retain or create,
                create_graph=create,
            ),
        )

    def state(self):
        for i, x in sorted(self.t.items()):
            with torch.no_grad():
                self.lines.append(
                    "is %d %s %d %d : %s" % (i, ints(x.shape), x.requires_grad, x.is_leaf, text(x))
                )
            if self.partial:
                continue
            g = x.grad if x.is_leaf or x.retains_grad else None
            self.lines.append("grad %d : %s" % (i, "none" if g is None else text(g)))

    def run(self):
        kinds = (
            [self.unary] * 3
            + [self.scalar] * 2
            + [self.binary] * 5
            + [self.view] * 6
            + [self.in_place] * 6
            + [self.reduce] * 2
            + [self.gather, self.product, self.cut, self.cut, self.mode, self.make]
        )
        for _ in range(self.rng.randrange(1, 4)):
            self.make()
        for _ in range(self.rng.randrange(6, 22)):
            self.rng.choice(kinds)()
            if len(self.t) > 14 or any(
                x.numel() > 200
                or not torch.isfinite(x.detach()).all()
                or (x.numel() and x.detach().abs().max() > 1e6)
                for x in self.t.values()
            ):
                break
        while self.modes:
            self.modes.pop().__exit__(None, None, None)
            self.lines.append("end ok")
        for _ in range(self.rng.randrange(1, 3)):
            self.backward()
        self.state()
        return "\n".join(self.lines) + "\n"


for seed in range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2])):
    sys.stdout.write(Program(seed).run())
