#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# PyTorch's own samples (OpInfo), and its own error samples, for every operator of our list, as
# tests/oracle/replay_opinfo.c reads them. pytorch_operators.py has the table of operators.
#
#   PYTHON-WITH-TORCH opinfo.py SCHEMA-FOLDER FILE [OPERATORS]    all of them, with raw values
#   PYTHON-WITH-TORCH opinfo.py --text SCHEMA-FOLDER FILE         a few for each operator and class,
#                                                                 as text
#
# With --text, the cases named in the file that the environment's EXCEPT names stay out.
#
# Outputs and gradients of f32, f16, bf16 and c64 are computed in float64 and complex128, then
# rounded.
import collections, glob, itertools, os, sys, types, unittest, warnings

warnings.simplefilter("ignore")
try:
    import torch
except ImportError:
    sys.exit(77)
try:
    import expecttest  # noqa: F401: PyTorch's test helpers want it for their own tests only
except ImportError:
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase = unittest.TestCase
from torch.testing._internal.common_methods_invocations import op_db

from opinfo_samples import OWN, Outside, bound, name_of, scatter
from opinfo_write import NAMES, Writer, write_case, write_refused
from pytorch_operators import AS_IT_IS, MAP, SHIFTED, add_plain

torch.set_num_threads(1)
TEXT = "--text" in sys.argv
EXCEPT = set(open(os.environ["EXCEPT"]).read().split()) if "EXCEPT" in os.environ else set()
ARGS = [a for a in sys.argv[1:] if a != "--text"]
CLASSES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.complex64,
    torch.complex128,
    torch.int64,
    torch.int32,
    torch.int8,
    torch.uint8,
    torch.bool,
]
MOST = 40 if TEXT else 4000  # elements of a tensor
EACH = 2 if TEXT else 12  # samples of an operator and class, and as many reference inputs
HALF = (torch.float16, torch.bfloat16)
REFERENCE = (torch.float32, torch.float64, torch.int64)  # also PyTorch's reference inputs
SECOND = (torch.float64, torch.complex128)  # also second derivatives
REFUSALS = (AttributeError, TypeError, LookupError, ValueError, RuntimeError)


def some(samples, dtype):
    """More samples than are written, because some are left out."""
    return itertools.islice(samples("cpu", dtype, requires_grad=False), 4 * EACH)


def read_schema(folder):
    ops, row = {}, None
    for path in glob.glob(os.path.join(folder, "*.ops")):
        for line in open(path):
            word = line.split()
            if word[:1] == ["op"]:
                row = set()
                ops.update((name, row) for name in line.split(" rev ")[0].split()[1:])
            elif word[:1] in (["opt"], ["arg"]):
                row.add(word[1])
    return ops


def main():
    schema = read_schema(ARGS[0])
    add_plain(ARGS[0])
    out = Writer(ARGS[1], TEXT, MOST, EXCEPT)
    only = set(ARGS[2:])
    outside = collections.Counter()
    for info in sorted(op_db, key=lambda o: (o.name, o.variant_test_name)):
        name = name_of(info)
        known = (name in MAP or name in OWN) and not name.startswith(("signal", "masked."))
        if not known or (only and name not in only):
            continue
        make = OWN.get(name) or (lambda s: bound(info, MAP[name], s, schema))
        if name == "scatter":
            make = scatter(info, schema)
        for dtype in CLASSES:
            if dtype not in info.supported_dtypes("cpu"):
                continue
            grad = info.supports_autograd and dtype in info.supported_backward_dtypes("cpu")
            if name == "mode" and dtype in HALF:  # many elements are equal
                grad = False
            torch.manual_seed(3)
            done = 0
            samples = list(some(info.sample_inputs, dtype))
            first = len(samples)
            if not TEXT and dtype in REFERENCE and info.reference_inputs_func is not None:
                samples += some(info.reference_inputs, dtype)
            for index, sample in enumerate(samples):
                if index == first:
                    done = 0
                if done >= EACH:
                    continue
                title = "%s/%s/%d" % (name, NAMES[dtype], index)
                second = dtype in SECOND and index < 6 and info.supports_gradgrad
                second = second and name not in SHIFTED
                try:
                    write_case(out, title, make(sample), grad, name in AS_IT_IS, second)
                    done += 1
                except Outside as why:
                    outside["%s: %s" % (name, why)] += 1
                except (RuntimeError, NotImplementedError) as why:
                    outside["%s: %s" % (name, str(why).split("\n")[0][:80])] += 1
        if info.error_inputs_func is not None:
            for index, error in enumerate(info.error_inputs("cpu")):
                try:
                    write_refused(out, "%s/refused/%d" % (name, index), make(error.sample_input))
                except (Outside, *REFUSALS) as why:
                    outside["%s: refused/%d: %s" % (name, index, str(why)[:60])] += 1
    out.file.write(b"end\n")
    for what, count in sorted(outside.items()):
        print("left out: %s (%d)" % (what, count))


main()
