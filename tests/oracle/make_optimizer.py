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


def rule(
    name, op, make, states, at=3, step_tensor=None, lr_tensor=None, own=None, number=(), **options
):
    """`own` are the options of torch.optim, `options` those of the operator. `number` are 0-d
    states that are inputs: name, value, dtype."""
    lr, takes_step, takes_lr = 0.0625, op in WITH_STEP, op not in WITHOUT_RATE

    def group(state):
        state["step"] = torch.tensor(float(at - 1), dtype=F64)
        for key, value, _ in number:
            state[key] = torch.tensor(value, dtype=F64)

    numbers = [(step_tensor and at, step_tensor)] if takes_step else []
    numbers += [(lr_tensor and lr, lr_tensor)] if takes_lr else []
    step(
        name,
        op,
        lambda p: make(p, lr=lr, foreach=False, **(options if own is None else own)),
        states,
        group,
        numbers + [(given, dtype) for _, given, dtype in number],
        **({} if step_tensor or not takes_step else {"step": at}),
        **({} if lr_tensor or not takes_lr else {"lr": lr}),
        **options
    )


WITH_STEP = ("nadam_step", "radam_step", "adamax_step", "adagrad_step")
WITHOUT_RATE = ("rprop_step", "asgd_step")


def with_betas(name, op, kind, states, at=3, beta1=0.9, beta2=0.999, decoupled=False, **rest):
    """For operators with the options beta1, beta2 and perhaps decoupled."""
    tensors = {k: rest.pop(k) for k in ("step_tensor", "lr_tensor", "number") if k in rest}
    own = dict(rest, betas=(beta1, beta2))
    if decoupled:
        own["decoupled_weight_decay"] = rest["decoupled"] = True
    rule(name, op, kind, states, at=at, own=own, beta1=beta1, beta2=beta2, **tensors, **rest)


def nadam(name, product=0.25, dtype=F64, at=3, beta1=0.9, momentum_decay=0.004, **rest):
    # `product` contains the factor of this step; torch.optim multiplies by it itself
    mu = beta1 * (1.0 - 0.5 * 0.96 ** (at * momentum_decay))

    class NAdam(torch.optim.NAdam):
        def step(self):
            for state in self.state.values():
                state["mu_product"] = torch.tensor(product / mu, dtype=F64)
            super().step()

    with_betas(
        name,
        "nadam_step",
        NAdam,
        ("exp_avg", "exp_avg_sq"),
        at=at,
        beta1=beta1,
        momentum_decay=momentum_decay,
        number=(("mu_product", product, dtype),),
        **rest
    )


nadam("plain")
nadam("first", at=1)
nadam("decay", weight_decay=0.25, eps=0.125)
nadam("decoupled", weight_decay=0.25, decoupled=True, beta1=0.5, beta2=0.75)
nadam("maximize", maximize=True, momentum_decay=0.5, at=20)
nadam("tensors", dtype=F32, step_tensor=F32, lr_tensor=F32)
nadam("tensors-f64", step_tensor=I64, lr_tensor=F64, decoupled=True, weight_decay=0.125)


def radam(name, **rest):
    with_betas(name, "radam_step", torch.optim.RAdam, ("exp_avg", "exp_avg_sq"), **rest)


radam("plain")
radam("rectified", at=7)
radam("decay", weight_decay=0.25, eps=0.125, at=10)
radam("decoupled", weight_decay=0.25, decoupled=True, beta1=0.5, beta2=0.75, at=12)
radam("never", beta2=0.5, at=50)
radam("maximize", maximize=True, at=100)
radam("tensors-early", step_tensor=F32, lr_tensor=F32, at=2)
radam("tensors", step_tensor=I64, lr_tensor=F64, at=20, decoupled=True, weight_decay=0.125)


class Adamax(torch.optim.Adamax):  # `sq` in a name makes the values positive
    def step(self):
        for state in self.state.values():
            state["exp_inf"] = state["exp_inf_sq"]
        super().step()


def adamax(name, **rest):
    with_betas(name, "adamax_step", Adamax, ("exp_avg", "exp_inf_sq"), **rest)


adamax("plain")
adamax("decay", weight_decay=0.25, eps=0.125, beta1=0.5, beta2=0.75)
adamax("maximize", maximize=True, at=1)
adamax("tensors", step_tensor=F64, lr_tensor=F32)


class Adagrad(torch.optim.Adagrad):
    def step(self):
        for state in self.state.values():
            state["sum"] = state["sum_sq"]
        super().step()


def adagrad(name, **rest):
    rule(name, "adagrad_step", Adagrad, ("sum_sq",), **rest)


adagrad("plain")
adagrad("decay", lr_decay=0.25, weight_decay=0.25, eps=0.125, at=9)
adagrad("maximize", maximize=True)
adagrad("tensors", step_tensor=I64, lr_tensor=F32, lr_decay=0.5)


class Adadelta(torch.optim.Adadelta):
    def step(self):
        for state in self.state.values():
            state["square_avg"], state["acc_delta"] = state["v_sq"], state["a_sq"]
        super().step()


def adadelta(name, **rest):
    rule(name, "adadelta_step", Adadelta, ("v_sq", "a_sq"), **rest)


adadelta("plain")
adadelta("decay", rho=0.5, weight_decay=0.25, eps=0.125)
adadelta("maximize", maximize=True)
adadelta("lr-tensor", lr_tensor=F64)


class RMSprop(torch.optim.RMSprop):
    def step(self):
        for state in self.state.values():
            state["square_avg"] = state["v_sq"]
        super().step()


def rmsprop(name, **rest):
    states = ("v_sq",)
    if rest.get("momentum"):
        states += ("momentum_buffer",)
    if rest.get("centered"):
        states += ("grad_avg",)
    rule(name, "rmsprop_step", RMSprop, states, **rest)


rmsprop("plain")
rmsprop("decay", alpha=0.5, weight_decay=0.25, eps=0.125)
rmsprop("momentum", momentum=0.5, maximize=True)
rmsprop("lr-tensor", momentum=0.5, weight_decay=0.125, lr_tensor=F32)


class Rprop(torch.optim.Rprop):
    def step(self):
        for state in self.state.values():
            state["step_size"] = state["size_sq"]
        super().step()


def rprop(name, **rest):
    own = {"maximize": rest.get("maximize", False)}
    own["etas"] = (rest.get("eta_minus", 0.5), rest.get("eta_plus", 1.2))
    own["step_sizes"] = (rest.get("step_min", 1e-6), rest.get("step_max", 50.0))
    rule(name, "rprop_step", Rprop, ("prev", "size_sq"), own=own, **rest)


rprop("plain")
rprop("etas", eta_minus=0.25, eta_plus=1.5)
rprop("limits", step_min=0.5, step_max=1.0, maximize=True)


def asgd(name, eta=0.0625, mu=1.0, dtype=F64, **rest):
    rule(
        name,
        "asgd_step",
        torch.optim.ASGD,
        ("ax",),
        number=(("eta", eta, dtype), ("mu", mu, dtype)),
        **rest
    )


asgd("plain")
asgd("average", mu=0.25, eta=0.5, dtype=F32)
asgd("decay", lambd=0.5, weight_decay=0.25, mu=0.125)
asgd("maximize", maximize=True, mu=0.5)


class Lion(torch.optim.Optimizer):
    """The rule of the paper; torch.optim has no Lion."""

    def __init__(self, params, lr, beta1=0.9, beta2=0.99, weight_decay=0.0, maximize=False, **_):
        super().__init__(params, {})
        self.numbers = lr, beta1, beta2, weight_decay, maximize

    @torch.no_grad()
    def step(self):
        lr, beta1, beta2, decay, maximize = self.numbers
        for p in self.param_groups[0]["params"]:
            m, g = self.state[p]["exp_avg"], -p.grad if maximize else p.grad
            p.sub_(lr * ((beta1 * m + (1 - beta1) * g).sign() + decay * p))
            self.state[p]["exp_avg"] = beta2 * m + (1 - beta2) * g


def lion(name, **rest):
    rule(name, "lion_step", Lion, ("exp_avg",), **rest)


lion("plain")
lion("decay", weight_decay=0.25, beta1=0.5, beta2=0.75)
lion("maximize", maximize=True)
lion("lr-tensor", weight_decay=0.25, lr_tensor=F32)


def unscale(name, d, bad=None, before=0.0):
    def run(found, *tensors):
        found, tensors = found.clone(), [t.clone() for t in tensors]
        by = torch.tensor(0.375)
        torch._amp_foreach_non_finite_check_and_unscale_(tensors, found, by)
        return (found, *tensors)

    tensors = [n(*s, dtype=d) for s in SHAPES]
    if bad is not None:
        tensors[1] = n(dtype=d, data=[1.0, bad, -2.0, 0.5, 3.0])
    tensors += [n(0, dtype=d)]
    given = [n(dtype=F32, data=before)] + tensors
    Case("unscale/%s-%s" % (name, NAMES[d]), "unscale", run, given, cot=False, factor=0.375)


for d in (F32, F64):
    unscale("finite", d)
    unscale("infinite", d, float("inf"))
    unscale("nan", d, float("nan"))
    unscale("found-before", d, before=1.0)
