# SPDX-License-Identifier: MIT
#
# Writes loss_reference.h: losses and their gradients as PyTorch has them. Run by hand where PyTorch
# is; the result is committed.
import torch
import torch.nn.functional as F

torch.manual_seed(7)


def row(name, tensor):
    numbers = ", ".join("%.17g" % v for v in tensor.detach().flatten().tolist())
    print("static const double %s[] = { %s };" % (name, numbers))


print(
    "/* SPDX-License-Identifier: MIT\n *\n"
    " * Numbers of PyTorch %s, written by make_loss_reference.py. */"
    % torch.__version__.split("+")[0]
)
x = (torch.randn(5, 4, dtype=torch.float64) * 2).float().double().requires_grad_()
target = torch.tensor([2, 0, -100, 3, 1])
row("reference_x", x)
row("reference_target", target)
for reduction in ("mean", "sum", "none"):
    x.grad = None
    loss = F.cross_entropy(x, target, reduction=reduction)
    row("reference_" + reduction, loss)
    loss.sum().backward()
    row("reference_grad_" + reduction, x.grad)
x.grad = None
loss = F.cross_entropy(x, target, label_smoothing=0.1)
row("reference_smooth", loss)
loss.backward()
row("reference_grad_smooth", x.grad)
row("reference_softmax_0", torch.softmax(x, 0))
row("reference_softmax_1", torch.softmax(x, 1))
row("reference_log_softmax_0", torch.log_softmax(x, 0))
row("reference_log_softmax_1", torch.log_softmax(x, 1))
