#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes ported_inputs.h: the settings with which PyTorch's tests try each optimizer
# (torch.testing._internal.common_optimizers), as specs, and those that its constructors refuse.
#   PYTHON-WITH-TORCH make_ported_inputs.py > ported_inputs.h
import torch
from torch.testing._internal import common_optimizers

# Arguments that say how loops are written, which Tenon does not have.
LEFT_OUT = ("foreach", "fused", "differentiable")


def text(value):
    if isinstance(value, torch.Tensor):
        return repr(round(float(value), 6))
    if isinstance(value, tuple):
        return "(%s)" % ", ".join(text(v) for v in value)
    return repr(value)


def spec(info, kwargs):
    options = ", ".join("%s=%s" % (k, text(v)) for k, v in kwargs.items())
    return "%s(%s)" % (info.optim_cls.__name__, options)


print("/* SPDX-License-Identifier: MIT\n *")
version = torch.__version__.split("+")[0]
print(" * Made by make_ported_inputs.py with PyTorch %s; not edited by hand. */" % version)
print("static const char *const inputs[] = {")
infos = [i for i in common_optimizers.optim_db if i.optim_cls.__name__ != "SparseAdam"]
seen = set()
for info in infos:
    for device in ("cpu", "cuda"):
        for one in info.optim_inputs_func(device=device):
            line = spec(info, one.kwargs)
            if line not in seen and not any(k in one.kwargs for k in LEFT_OUT):
                seen.add(line)
                print('    "%s",' % line.replace(", decoupled", '"\n    ", decoupled'))
print("};\n")
print("static const struct {\n    const char *spec, *words;\n} refused[] = {")
general = len(common_optimizers.get_error_inputs_for_all_optims("cpu", torch.float32))
for info in infos:
    for one in info.optim_error_inputs_func(device="cpu", dtype=torch.float32)[general:]:
        given = one.optimizer_error_input
        if "Tensors" in one.error_regex:  # a number and a tensor as betas
            continue
        at_once = one.error_on == common_optimizers.OptimizerErrorEnum.CONSTRUCTION_ERROR
        if at_once and given.kwargs and not any(k in given.kwargs for k in LEFT_OUT):
            print('    { "%s",\n      "%s" },' % (spec(info, given.kwargs), one.error_regex))
print("};")
