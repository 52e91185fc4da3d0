#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes scaler.h: scales and growth trackers of torch.amp.GradScaler over 100 steps, of which some
# have infinite or NaN gradients, and the parameter at the end. Run as
# python make_scaler.py > scaler.h
import textwrap

import torch

scaler = torch.amp.GradScaler("cpu", init_scale=1000.3, growth_factor=1.7, backoff_factor=0.3,
                              growth_interval=4)
weight = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5]))
optimizer = torch.optim.SGD([weight], lr=0.01)
rows = []
for step in range(100):
    optimizer.zero_grad()
    scaler.scale((weight * weight).sum()).backward()
    if step * 31 % 17 in (0, 5):
        weight.grad[step % 3] = float("inf") if step % 2 else float("nan")
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    rows.append("{ %.17g, %d }" % (state["scale"], state["_growth_tracker"]))

print("/* SPDX-License-Identifier: MIT\n *")
print(" * Written by make_scaler.py with PyTorch's GradScaler. */")
print("static const struct scaler_row { double scale; int64_t tracker; } scaler_rows[] = {")
print("\n".join(textwrap.wrap(", ".join(rows), 96, initial_indent="    ",
                              subsequent_indent="    ", break_long_words=False)))
print("};")
print("static const double scaler_weight[] = { %s };"
      % ", ".join("%.9g" % v for v in weight.tolist()))
