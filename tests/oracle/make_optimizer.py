#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Steps of optimizers and the norm of many tensors, judged by torch.optim and torch.nn.utils. Of an
# operator that writes into its inputs the lines `out` are those inputs after the call, in their
# order.
#   PYTHON-WITH-TORCH make_optimizer.py > optimizer.txt
from cases import *

SHAPES = ((2, 3), (5,), ())


def step(name, op, make, states, group, numbers, **options):
    """`make` gives a torch optimizer over the parameters; `states` names what it keeps, `group`
    prepares one parameter's. `numbers` are the inputs before the list: the step and the learning
    rate as tensors, or None."""
    for d in (F32, F64, F16, BF16):

        def run(*tensors):
            tensors = tensors[len(numbers) :]
            size = 2 + len(states)
            parameters = []
            for i in range(0, len(tensors), size):
                p = tensors[i].clone().requires_grad_()
                p.grad = tensors[i + 1].clone()
                parameters.append(p)
            optimizer = make(parameters)
            for i, p in enumerate(parameters):
                for key, t in zip(states, tensors[i * size + 2 : i * size + size]):
                    optimizer.state[p][key] = t.clone()
                group(optimizer.state[p])
            optimizer.step()
            out = []
            for p in parameters:
                out += [p.detach(), p.grad] + [optimizer.state[p][key] for key in states]
            return tuple(out)

        def wide(*tensors):  # the float64 result, rounded
            return tuple(t.to(d) for t in run(*[t if t is None else t.to(F64) for t in tensors]))

        inputs = [None if v is None else x(dtype=t, data=v, grad=False) for v, t in numbers]
        for shape in SHAPES:
            inputs += [n(*shape, dtype=d), n(*shape, dtype=d)]
            inputs += [n(*shape, dtype=d, positive="sq" in key) for key in states]
        Case("%s/%s-%s" % (op, name, NAMES[d]), op, wide, inputs, cot=False, **options)


def nothing(state):
    pass


def sgd(name, lr_tensor=None, **options):
    lr = 0.25
    own = {k: v for k, v in options.items() if k != "first"}
    states = ("momentum_buffer",) if options.get("momentum") else ()

    def group(state):
        if options.get("first"):
            state.clear()

    step(
        name,
        "sgd_step",
        lambda p: torch.optim.SGD(p, lr=lr, foreach=False, **own),
        states,
        group,
        [(lr_tensor and lr, lr_tensor)],
        **({} if lr_tensor else {"lr": lr}),
        **options
    )


sgd("plain")
sgd("decay", weight_decay=0.125)
sgd("momentum", momentum=0.5)
sgd("dampening", momentum=0.75, dampening=0.25, weight_decay=0.125)
sgd("nesterov", momentum=0.5, nesterov=True)
sgd("maximize", momentum=0.5, maximize=True)
sgd("maximize-decay", maximize=True, weight_decay=0.25)
sgd("nesterov-decay", momentum=0.25, nesterov=True, weight_decay=0.25)
sgd("first-nesterov", momentum=0.5, nesterov=True, first=True)
sgd("first", momentum=0.5, dampening=0.5, first=True)
sgd("lr-tensor", F32, weight_decay=0.125)
sgd("lr-tensor-momentum", F64, momentum=0.5, nesterov=True)


def adam(
    name, kind=torch.optim.Adam, at=3, amsgrad=False, step_tensor=None, lr_tensor=None, **options
):
    lr = 0.0625
    states = ("exp_avg", "exp_avg_sq") + (("max_exp_avg_sq",) if amsgrad else ())
    own = dict(options)
    own["betas"] = (own.pop("beta1", 0.9), own.pop("beta2", 0.999))

    def group(state):
        state["step"] = torch.tensor(float(at - 1))

    step(
        name,
        "adam_step",
        lambda p: kind(p, lr=lr, foreach=False, amsgrad=amsgrad, **({"weight_decay": 0.0} | own)),
        states,
        group,
        [(step_tensor and at, step_tensor), (lr_tensor and lr, lr_tensor)],
        **({} if step_tensor else {"step": at}),
        **({} if lr_tensor else {"lr": lr}),
        decoupled=kind is torch.optim.AdamW,
        amsgrad=amsgrad,
        **options
    )


adam("plain")
adam("first", at=1)
adam("decay", weight_decay=0.25, eps=0.125)
adam("betas", beta1=0.5, beta2=0.75, at=7)
adam("amsgrad", amsgrad=True)
adam("maximize", maximize=True)
adam("amsgrad-decay", amsgrad=True, weight_decay=0.25, at=2)
adam("maximize-decay", maximize=True, weight_decay=0.5)
adam("late", at=1000)
adam("decoupled-amsgrad", kind=torch.optim.AdamW, amsgrad=True, weight_decay=0.125)
adam("decoupled-maximize", kind=torch.optim.AdamW, maximize=True, weight_decay=0.125, beta1=0.0)
adam("decoupled", kind=torch.optim.AdamW, weight_decay=0.25)
adam("tensors", step_tensor=F32, lr_tensor=F32)
adam("step-tensor", step_tensor=I64, amsgrad=True, weight_decay=0.25, at=1)
adam("step-tensor-f64", step_tensor=F64, lr_tensor=F64, beta1=0.5, beta2=0.75, eps=0.125)
adam("lr-tensor", lr_tensor=F32, kind=torch.optim.AdamW, weight_decay=0.125, maximize=True)
adam(
    "beta-zero",
    step_tensor=F32,
    lr_tensor=F64,
    kind=torch.optim.AdamW,
    weight_decay=0.25,
    beta1=0.0,
)

for d in (F32, F64):
    for p in (2.0, 1.0, float("inf"), float("-inf"), 3.0, 0.5):
        Case(
            "total_norm/%g-%s" % (p, NAMES[d]),
            "total_norm",
            lambda *t: torch.nn.utils.get_total_norm(list(t), p),
            [x(*s, dtype=d) for s in SHAPES],
            p=p,
        )
    Case(
        "total_norm/empty-" + NAMES[d],
        "total_norm",
        lambda *t: torch.nn.utils.get_total_norm(list(t), 2.0),
        [x(0, 3, dtype=d), x(4, dtype=d)],
        p=2.0,
    )
    Case(
        "total_norm/turned-" + NAMES[d],
        "total_norm",
        lambda *t: torch.nn.utils.get_total_norm(list(t), 2.0),
        [x(3, 2, dtype=d, order=(1, 0)), x(1, 3, dtype=d, expand=(4, 3))],
        p=2.0,
    )
