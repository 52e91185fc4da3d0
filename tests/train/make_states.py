# SPDX-License-Identifier: MIT
#
# Writes files/*.pt, states of PyTorch's optimizers after 3 of 6 steps, and states.h: the parameters
# before and after the other 3 steps, the printed form, and PyTorch's averaged models.
#   python make_states.py > states.h
import json
import os

import torch
from torch.optim import swa_utils

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
STEPS, SIZE = 6, 4
torch.manual_seed(11)
start = torch.randn(2, SIZE, dtype=torch.float64)
gradients = torch.randn(STEPS, 2, SIZE, dtype=torch.float64)

OPTIMIZERS = [
    ("adam", torch.optim.Adam, dict(lr=0.05, weight_decay=0.1), "Adam(lr=9)"),
    ("adamw", torch.optim.AdamW, dict(lr=0.05, betas=(0.8, 0.99), amsgrad=True), "AdamW(lr=9)"),
    ("sgd", torch.optim.SGD, dict(lr=0.05, momentum=0.9, nesterov=True), "SGD(lr=9)"),
    ("plain", torch.optim.SGD, dict(lr=0.05), "SGD(lr=9)"),
]


def row(values):
    numbers = ["%r" % float(v) for v in values.detach().reshape(-1)]
    lines = [", ".join(numbers[i : i + 4]) for i in range(0, len(numbers), 4)]
    return "{ " + ",\n        ".join(lines) + " }"


def quoted(text):
    lines = [json.dumps(line + "\n") for line in text.split("\n")]
    lines[-1] = json.dumps(text.split("\n")[-1])
    return "\n      ".join(lines)


print(
    "/* SPDX-License-Identifier: MIT\n *\n"
    " * Made by make_states.py with PyTorch %s; not edited by hand. */"
    % torch.__version__.split("+")[0]
)
print("enum { STATE_STEPS = %d, STATE_SIZE = %d };" % (STEPS, SIZE))
print("static const double state_gradients[STATE_STEPS][2 * STATE_SIZE] = {")
for gradient in gradients:
    print("    %s," % row(gradient))
print("};")
print(
    "static const struct {\n    const char *file, *spec, *printed;\n"
    "    double middle[2 * STATE_SIZE], end[2 * STATE_SIZE];\n} states[] = {"
)
for name, kind, options, spec in OPTIMIZERS:
    parameters = [torch.nn.Parameter(p.clone()) for p in start]
    groups = [{"params": [parameters[0]]}, {"params": [parameters[1]], "lr": 0.02}]
    optimizer = kind(groups, **options)
    for step in range(STEPS):
        if step == 3:
            torch.save(optimizer.state_dict(), os.path.join(here, name + ".pt"))
            middle = torch.stack([p.detach().clone() for p in parameters])
        for parameter, gradient in zip(parameters, gradients[step]):
            parameter.grad = gradient.clone()
        optimizer.step()
    end = torch.stack(list(parameters))
    print('    { "%s", "%s",\n      %s,' % (name, spec, quoted(repr(optimizer))))
    print("      %s,\n      %s }," % (row(middle), row(end)))
print("};")

# Averaged models of a module with a float64 parameter and an integer buffer.
UPDATES = 5
values = torch.randn(UPDATES, SIZE, dtype=torch.float64)
counts = torch.tensor([[3, -7, 100, 49], [4, -7, 50, 1], [9, 2, 0, 98], [9, 7, 3, 5], [1, 1, 1, 8]])


class Holder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.p = torch.nn.Parameter(torch.zeros(SIZE, dtype=torch.float64))
        self.register_buffer("b", torch.zeros(SIZE, dtype=torch.int64))


def averaged(buffers, **options):
    source = Holder()
    model = swa_utils.AveragedModel(source, use_buffers=buffers, **options)
    for value, count in zip(values, counts):
        with torch.no_grad():
            source.p.copy_(value)
            source.b.copy_(count)
        model.update_parameters(source)
    return model.module.p, model.module.b


print("enum { UPDATES = %d };" % UPDATES)
print("static const double average_values[UPDATES][STATE_SIZE] = {")
for value in values:
    print("    %s," % row(value))
print("};")
print("static const int64_t average_counts[UPDATES][STATE_SIZE] = {")
for count in counts:
    print("    { %s }," % ", ".join(str(int(c)) for c in count))
print("};")
print(
    "static const struct {\n    double decay; /* NAN: equal average */\n    bool buffers;\n"
    "    double p[STATE_SIZE];\n    int64_t b[STATE_SIZE];\n} averages[] = {"
)
for decay in [None, 0.9, 0.999, 0.0, 1.0]:
    for buffers in [False, True]:
        many = None if decay is None else swa_utils.get_ema_multi_avg_fn(decay)
        p, b = averaged(buffers, multi_avg_fn=many)
        print(
            "    { %s, %s,\n      %s,\n      { %s } },"
            % (
                "NAN" if decay is None else repr(decay),
                "true" if buffers else "false",
                row(p),
                ", ".join(str(int(v)) for v in b),
            )
        )
print("};")

# Running statistics of a BatchNorm1d(3) that was trained on other values before.
batches = torch.randn(4, 6, 3, dtype=torch.float64) * 3 + 1
norm = torch.nn.BatchNorm1d(3, momentum=0.3).double()
norm(torch.randn(5, 3, dtype=torch.float64))
swa_utils.update_bn(batches, norm)
assert norm.momentum == 0.3
print("static const double batches[4][18] = {")
for batch in batches:
    print("    %s," % row(batch))
print("};")
print("static const double batches_mean[3] = %s;" % row(norm.running_mean))
print("static const double batches_var[3] = %s;" % row(norm.running_var))
