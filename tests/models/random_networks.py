# SPDX-License-Identifier: MIT
#
# Random networks beside PyTorch: layers, operators and results that are used again, in any order.
# Each runs eagerly, as plan (also with the compiler `fuse`), as plan of training, as script, and
# all of these in bfloat16. PyTorch in float64 decides; Tenon may be as far from it as PyTorch in
# the same dtype is, times a factor. The ways of Tenon must have the same bits.
#   make random-networks PYTHON=... NETWORKS="--seed 7 --count 1000"
#   or: random_networks.py SOURCE BUILD [--seed 1] [--count 100] [--show]
# Network i has the seed SEED + i, so `--seed SEED+i --count 1` repeats it. A difference is printed
# with the program. Ends with 77 where PyTorch is not installed.
import argparse
import copy
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
    from torch import nn
except ImportError as missing:
    print("SKIP: %s" % missing)
    sys.exit(77)

from random_network_steps import FUNCTIONS, random_program

STEPS = 3  # of SGD, in training
FIRST = ("step 0", "evaluation")
TRIALS = 4


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("build")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--show", action="store_true", help="print every program")
    return parser.parse_args()


given = arguments()
work = tempfile.mkdtemp()
sys.path.insert(0, work)


def load_tenon():
    """Generates the module for Python of this build, and imports it."""
    source, build = os.path.abspath(given.source), os.path.abspath(given.build)
    folder = os.path.join(source, "bindings", "python")
    shutil.copytree(os.path.join(folder, "tenon"), os.path.join(work, "tenon"))
    sdk = os.path.join(build, "sdk")
    sdk = sdk if os.path.exists(os.path.join(sdk, "api.json")) else os.path.join(source, "sdk")
    subprocess.run([sys.executable, os.path.join(folder, "generate.py"), sdk,
                    os.path.join(work, "tenon", "_api.py")], check=True)
    os.environ["TENON_LIBRARY"] = os.path.join(build, ".libs", "libtenon.so")
    os.environ.setdefault("TENON_PLUGIN_PATH", os.path.join(build, "plugins", ".libs"))
    import tenon

    return tenon


tenon = load_tenon()
from tenon._library import Scope, check, checked, lib  # noqa: E402
from tenon._module import adopt_module  # noqa: E402
from tenon._values import Pack  # noqa: E402

# ---- the two sides -------------------------------------------------------------------------------
programs = []  # the program of each network, by number


def forward(program, side, children, inputs):
    """Runs the lines of a program. `children` has the modules, `inputs` the tensors."""
    functions = {name: pair[side] for name, pair in FUNCTIONS.items()}
    values = dict(zip(program.inputs, inputs), F=type("F", (), functions))
    for name, expression, module in program.lines:
        if module is not None:
            values["call"] = children(name)
        values[name] = eval(expression, {}, values)
    return tuple(values[name] for name in program.outputs)


class RandomNetwork(tenon.Layer):
    number = tenon.option(int, "number of the program")

    def build(self):
        for name, _, module in programs[self.number].lines:
            if module is not None:
                setattr(self, name, tenon.Module(module))

    def forward(self, *inputs):
        return forward(programs[self.number], 0, lambda name: getattr(self, name), inputs)


class TorchNetwork(nn.Module):
    def __init__(self, program):
        super().__init__()
        self.program = program
        for name, _, module in program.lines:
            if module is not None:
                self.add_module(name, eval(module, vars(nn)))

    def forward(self, *inputs):
        return forward(self.program, 1, lambda name: getattr(self, name), inputs)


def array(tensor):
    """The numbers of a tensor of either side in float64; None stays None."""
    if tensor is None:
        return None
    if isinstance(tensor, torch.Tensor):
        return tensor.detach().to(torch.float64).numpy().copy()
    tensor = tensor.detach()
    return numpy.array(tensor.cast("float64").numpy(), copy=True)


def given_inputs(program, dtype, side):
    """Fresh tensors of the inputs; those of floats require gradients."""
    found = []
    for values in program.values:
        if values.dtype.kind == "i":
            found.append(torch.from_numpy(values) if side else tenon.tensor(values.tolist()))
        elif side:
            found.append(torch.from_numpy(values).to(dtype).requires_grad_())
        else:
            tensor = tenon.from_numpy(values.copy()).cast(dtype).detach()
            found.append(tenon.parameter(tensor))
    return found


# ---- runs ----------------------------------------------------------------------------------------
def train(net, program, dtype, side):
    """STEPS steps of SGD. Returns the results, gradients and states by name."""
    found = {}
    parameters = dict(net.named_parameters())
    for step in range(STEPS):
        inputs = given_inputs(program, dtype, side)
        results = net(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        loss = 0
        for i, (result, cotangent) in enumerate(zip(results, program.cotangents)):
            found["step %d: result %d" % (step, i)] = array(result)
            factor = torch.from_numpy(cotangent).to(result.dtype) if side else tenon.from_numpy(
                cotangent.copy()).cast(result.dtype)
            loss = loss + (result * factor).sum()
        net.zero_grad()
        loss.backward()
        for i, tensor in enumerate(inputs):
            if program.values[i].dtype.kind == "f":
                found["step %d: gradient of input %d" % (step, i)] = array(tensor.grad)
        for name, parameter in parameters.items():
            found["step %d: gradient of %s" % (step, name)] = array(parameter.grad)
        with torch.no_grad() if side else tenon.no_grad():
            for parameter in parameters.values():
                if parameter.grad is not None:
                    parameter.copy_(parameter - parameter.grad * 0.01)
    for name, buffer in net.named_buffers():
        if "num_batches" not in name:
            found["buffer " + name] = array(buffer)
    return found


def evaluate(call, program, dtype, side):
    with torch.no_grad() if side else tenon.no_grad():
        results = call(*given_inputs(program, dtype, side))
    results = results if isinstance(results, tuple) else (results,)
    return {"evaluation: result %d" % i: array(result) for i, result in enumerate(results)}


def compiled(net, spec):
    net = copy.deepcopy(net)
    check(lib.tn_module_compile(net._ptr, spec.encode()))
    return net


def scripted(net, program, dtype):
    net = copy.deepcopy(net)
    with Scope(), Pack() as inputs:
        inputs.add(tuple(given_inputs(program, dtype, 0)), {})
        return adopt_module(checked(lib.tn_module_script_pack(net._ptr, inputs.pointer, None)))


def ways(net, program, dtype):
    """All runs of Tenon by name: training ("train"), then evaluation."""
    script = scripted(net.train(), program, dtype)
    runs = {
        "train: eager": copy.deepcopy(net),
        "train: plan": compiled(net, "plan(train=True)"),
        "train: script": script,
    }
    found = {name: train(run, program, dtype, 0) for name, run in runs.items()}
    net.eval()
    runs = {
        "eval: eager": copy.deepcopy(net),
        "eval: plan": compiled(net, "plan()"),
        "eval: fused plan": compiled(net, "plan(compilers='fuse')"),
        "eval: script": scripted(net, program, dtype),
    }
    for name, run in runs.items():
        found[name] = evaluate(run, program, dtype, 0)
    net.train()
    return found


# ---- comparing -----------------------------------------------------------------------------------
def same(a, b, rounding):
    if a is None or b is None:
        return a is b
    if a.shape != b.shape:
        return False
    return numpy.array_equal(a, b, equal_nan=True) or (
        rounding > 0 and distance(a, b) <= rounding * size(b))


def differences_of_ways(found, rounding):
    """The ways must have the same bits. In gradients through a plan of training, terms may be
    added in another order if a result is a view of another value (docs/guides/graphs.md);
    `rounding` is then the difference that is allowed, else 0."""
    for name, results in found.items():
        eager = found[name.split(":")[0] + ": eager"]
        for what, expected in eager.items():
            allowed = rounding if name == "train: plan" else 0
            if not same(results.get(what), expected, allowed):
                yield "%s: %s: not the bits of the eager run" % (name, what)


def distance(a, b):
    return float(numpy.linalg.norm((a - b).ravel()))


def size(a):
    return float(numpy.linalg.norm(a.ravel()))


def differences_of_sides(mine, theirs, exact, rounding, moves):
    """Compares with PyTorch: `theirs` in the same dtype (None: it refused), `exact` in float64.
    `moves`: how far rounding may move each value."""
    largest = max([size(a) / max(a.size, 1) ** 0.5 for a in exact.values() if a is not None] + [0])
    for what, reference in exact.items():
        got, other = mine.get(what), theirs and theirs.get(what)
        if (got is None) != (reference is None):
            if reference is not None and reference.any() or got is not None and got.any():
                yield "%s: one side has none" % what
            continue
        if got is None:
            continue
        if got.shape != reference.shape:
            yield "%s: shape %s, PyTorch %s" % (what, got.shape, reference.shape)
            continue
        peer = distance(other, reference) if other is not None else 0
        allowed = max(rounding * (size(reference) + largest * max(got.size, 1) ** 0.5), 8 * peer,
                      4 * moves.get(what, 0))
        if not distance(got, reference) <= allowed:
            yield "%s: distance %.3g, PyTorch's %.3g, size %.3g" % (
                what, distance(got, reference), peer, size(reference))


def run_torch(net, program, dtype):
    net = copy.deepcopy(net).to(dtype).train()
    return train(net, program, dtype, 1)


def conditions(net, program, exact, size_of_noise):
    """How far gradients and results of the first step move if parameters and inputs do, relatively,
    by random amounts: at kinks (ReLU near 0) rounding decides, on both sides."""
    found = {}
    for trial in range(TRIALS):
        torch.manual_seed(trial)
        moved, other = copy.deepcopy(net), copy.copy(program)
        with torch.no_grad():
            for parameter in moved.parameters():
                parameter.mul_(1 + size_of_noise * torch.randn_like(parameter))
        other.values = [
            values * (1 + size_of_noise * torch.randn(values.shape).double().numpy())
            if values.dtype.kind == "f" else values for values in program.values]
        for what, value in run_torch(moved, other, torch.float64).items():
            if value is not None and exact.get(what) is not None:
                found[what] = max(found.get(what, 0), distance(value, exact[what]))
    return found


def new_network(number):
    tenon.manual_seed(number)
    return tenon.Module("RandomNetwork(%d)" % number)


def check_network(number):
    program = programs[number]
    net = new_network(number)
    peer = TorchNetwork(program)
    state = {name: torch.from_numpy(array(value)) for name, value in net.state_dict().items()
             if "num_batches" not in name}
    for name, value in peer.state_dict().items():
        state.setdefault(name, value)
    peer.load_state_dict({name: value.to(peer.state_dict()[name].dtype)
                          for name, value in state.items()})
    for dtype, torch_dtype, rounding in (("float32", torch.float32, 2e-5),
                                         ("bfloat16", torch.bfloat16, 3e-2)):
        mine = copy.deepcopy(net).to(dtype=dtype)
        rounded = copy.deepcopy(peer).to(torch_dtype).to(torch.float64)
        for i, values in enumerate(program.values):
            if values.dtype.kind == "f":
                program.values[i] = torch.from_numpy(values).to(torch_dtype).double().numpy()
        found = ways(mine, program, dtype)
        yield from (dtype + ", " + words for words in differences_of_ways(
            found, rounding if program.views else 0))
        exact = run_torch(rounded, program, torch.float64)
        exact_eval = evaluate(rounded.eval(), program, torch.float64, 1)
        try:
            theirs = run_torch(peer, program, torch_dtype)
            theirs_eval = evaluate(copy.deepcopy(peer).to(torch_dtype).eval(), program,
                                   torch_dtype, 1)
        except (RuntimeError, NotImplementedError):
            theirs = theirs_eval = None
        for a, b, c in ((found["train: eager"], theirs, exact),
                        (found["eval: eager"], theirs_eval, exact_eval)):
            if dtype == "bfloat16":  # after a step, the rounded weights differ
                c = {what: value for what, value in c.items() if what.startswith(FIRST)}
            found_here = list(differences_of_sides(a, b, c, rounding, {}))
            if found_here and dtype == "bfloat16":
                moves = conditions(rounded.train(), program, c, 2**-8)
                found_here = list(differences_of_sides(a, b, c, rounding, moves))
            yield from (dtype + ", " + words for words in found_here)


def main():
    torch.set_num_threads(1)
    failed = 0
    layers = set()
    for i in range(given.count):
        seed = given.seed + i
        program = random_program(seed)
        programs.append(program)
        layers |= program.kinds()
        try:
            found = list(check_network(i))
        except Exception as error:  # the program is needed to repeat it
            found = ["%s: %s" % (type(error).__name__, error)]
        if found or given.show:
            print("network of seed %d\n%s" % (seed, program))
        for words in found[:6]:
            print("  DIFFERENCE: " + words, flush=True)
        failed += bool(found)
    shutil.rmtree(work)
    print("%d random networks of seeds %d to %d, %d kinds of steps: %d with a difference" % (
        given.count, given.seed, given.seed + given.count - 1, len(layers), failed))
    return 1 if failed else 0


sys.exit(main())
