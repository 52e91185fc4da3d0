# SPDX-License-Identifier: MIT
#
# Writes reference.h: what PyTorch's optimizers and schedulers do, for the tests to compare with.
#   python make_reference.py > reference.h
import re
import textwrap

import torch

STEPS, SIZE = 6, 5
torch.manual_seed(7)
start = torch.randn(SIZE, dtype=torch.float64)
gradients = torch.randn(STEPS, SIZE, dtype=torch.float64)

OPTIMIZERS = [
    ("SGD()", torch.optim.SGD, {}),
    ("SGD(lr=0.1)", torch.optim.SGD, dict(lr=0.1)),
    ("SGD(lr=0.1, momentum=0.9)", torch.optim.SGD, dict(lr=0.1, momentum=0.9)),
    (
        "SGD(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01)",
        torch.optim.SGD,
        dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01),
    ),
    (
        "SGD(0.1, 0.8, nesterov=True, weight_decay=0.1)",
        torch.optim.SGD,
        dict(lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.1),
    ),
    (
        "SGD(lr=0.1, momentum=0.5, weight_decay=0.2, maximize=True)",
        torch.optim.SGD,
        dict(lr=0.1, momentum=0.5, weight_decay=0.2, maximize=True),
    ),
    ("Adam()", torch.optim.Adam, {}),
    (
        "Adam(lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1)",
        torch.optim.Adam,
        dict(lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1),
    ),
    ("Adam(lr=0.05, amsgrad=True)", torch.optim.Adam, dict(lr=0.05, amsgrad=True)),
    (
        "Adam(lr=0.05, weight_decay=0.1, maximize=True)",
        torch.optim.Adam,
        dict(lr=0.05, weight_decay=0.1, maximize=True),
    ),
    ("AdamW(lr=0.05)", torch.optim.AdamW, dict(lr=0.05)),
    (
        "AdamW(lr=0.05, weight_decay=0.3, amsgrad=True, maximize=True)",
        torch.optim.AdamW,
        dict(lr=0.05, weight_decay=0.3, amsgrad=True, maximize=True),
    ),
]

S = torch.optim.lr_scheduler
SCHEDULE_STEPS = 24
SCHEDULERS = [
    ("StepLR(step_size=4)", lambda o: S.StepLR(o, 4)),
    ("StepLR(3, gamma=0.5)", lambda o: S.StepLR(o, 3, gamma=0.5)),
    ("CosineAnnealingLR(T_max=10)", lambda o: S.CosineAnnealingLR(o, 10)),
    ("CosineAnnealingLR(T_max=7, eta_min=0.01)", lambda o: S.CosineAnnealingLR(o, 7, eta_min=0.01)),
    ("LinearLR()", lambda o: S.LinearLR(o)),
    (
        "LinearLR(start_factor=0.5, end_factor=0.1, total_iters=8)",
        lambda o: S.LinearLR(o, start_factor=0.5, end_factor=0.1, total_iters=8),
    ),
    ("ExponentialLR(gamma=0.9)", lambda o: S.ExponentialLR(o, 0.9)),
]


def write(text):
    """Lines of at most 100 columns to standard output."""
    for line in text.split("\n"):
        indent = re.match(" *", line).group() + "  "
        print(textwrap.fill(line, 100, subsequent_indent=indent) if len(line) > 100 else line)


def row(values):
    return "{ " + ", ".join(repr(float(v)) for v in values) + " }"


def trajectory(kind, options):
    parameter = torch.nn.Parameter(start.clone())
    optimizer = kind([parameter], **options)
    rows = []
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
        rows.append(row(parameter.detach()))
    return rows


def rates(make):
    optimizer = torch.optim.SGD([torch.nn.Parameter(start.clone())], lr=0.2)
    scheduler = make(optimizer)
    out = [optimizer.param_groups[0]["lr"]]
    for _ in range(SCHEDULE_STEPS):
        optimizer.step()
        scheduler.step()
        out.append(optimizer.param_groups[0]["lr"])
    return out


write(
    "/* SPDX-License-Identifier: MIT\n *\n"
    " * Made by make_reference.py with PyTorch %s; not edited by hand. */"
    % torch.__version__.split("+")[0]
)
write(
    "#define STEPS %d\n#define SIZE %d\n#define SCHEDULE_STEPS %d\n" % (STEPS, SIZE, SCHEDULE_STEPS)
)
write("static const double start[SIZE] =\n    %s;" % row(start))
write("static const double gradients[STEPS][SIZE] = {")
write("".join("    %s,\n" % row(g) for g in gradients) + "};\n")
write(
    "static const struct {\n    const char *spec;\n    double values[STEPS][SIZE];\n"
    "} trajectories[] = {"
)
for spec, kind, options in OPTIMIZERS:
    write('    { "%s",\n      {' % spec)
    write("".join("        %s,\n" % r for r in trajectory(kind, options)) + "      } },")
write(
    "};\n\nstatic const struct {\n    const char *spec;\n"
    "    double rates[SCHEDULE_STEPS + 1];\n} schedulers[] = {"
)
for spec, make in SCHEDULERS:
    write('    { "%s",\n      %s },' % (spec, row(rates(make))))
write("};")
