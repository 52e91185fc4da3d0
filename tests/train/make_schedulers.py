# SPDX-License-Identifier: MIT
#
# Writes schedulers.txt: the learning rates and momenta of two groups that PyTorch's schedulers give
# in every step, for test_schedulers.c to compare with.
#   python make_schedulers.py > schedulers.txt
# A case is a line `case OPTIMIZER`; a line `at STEP SPEC` for each scheduler, which is created
# after that step and, with a `!`, replaces those before it; a line `RATE RATE MOMENTUM MOMENTUM`
# for each step from step 0 on; and a line `end`.
import math
import warnings

import torch

warnings.simplefilter("ignore")
S = torch.optim.lr_scheduler
SWALR = torch.optim.swa_utils.SWALR
STEPS = 120
torch.manual_seed(5)
METRICS = [3 * math.exp(-i / 20) + 0.2 * abs(math.sin(i * 1.7)) for i in range(STEPS + 1)]


def factor(step):
    """The same function is in test_schedulers.c."""
    return 1.0 / (1.0 + 0.25 * step)


def mild(step):
    return 1.0 - 0.5 / (step + 10.0)


def build(name, *args, **kwargs):
    return lambda o: getattr(S, name, SWALR)(o, *args, **kwargs)


def sequential(*makers, milestones):
    return lambda o: S.SequentialLR(o, [m(o) for m in makers], milestones=milestones)


def chained(*makers):
    return lambda o: S.ChainedScheduler([m(o) for m in makers], optimizer=o)


CASES = [
    [(0, "StepLR(7, gamma=0.8)", build("StepLR", 7, gamma=0.8))],
    [(0, "StepLR(step_size=30)", build("StepLR", 30))],
    [(0, "MultiStepLR(milestones=[30, 80])", build("MultiStepLR", [30, 80]))],
    [
        (
            0,
            "MultiStepLR(milestones=[80, 30, 30, 2], gamma=0.5)",
            build("MultiStepLR", [80, 30, 30, 2], gamma=0.5),
        )
    ],
    [(0, "ConstantLR()", build("ConstantLR"))],
    [(0, "ConstantLR(0.25, total_iters=40)", build("ConstantLR", 0.25, total_iters=40))],
    [(0, "LinearLR()", build("LinearLR"))],
    [(0, "LinearLR(0.1, 0.7, 50)", build("LinearLR", 0.1, 0.7, 50))],
    [(0, "LinearLR(1.0, 0.0, 90)", build("LinearLR", 1.0, 0.0, 90))],
    [(0, "ExponentialLR(0.97)", build("ExponentialLR", 0.97))],
    [(0, "PolynomialLR()", build("PolynomialLR"))],
    [(0, "PolynomialLR(100, power=2.5)", build("PolynomialLR", 100, power=2.5))],
    [(0, "CosineAnnealingLR(T_max=50)", build("CosineAnnealingLR", 50))],
    [(0, "CosineAnnealingLR(17, eta_min=0.02)", build("CosineAnnealingLR", 17, eta_min=0.02))],
    [(0, "CosineAnnealingLR(1)", build("CosineAnnealingLR", 1))],
    [(0, "CosineAnnealingWarmRestarts(11)", build("CosineAnnealingWarmRestarts", 11))],
    [
        (
            0,
            "CosineAnnealingWarmRestarts(5, 2, eta_min=0.01)",
            build("CosineAnnealingWarmRestarts", 5, 2, eta_min=0.01),
        )
    ],
    [(0, "CyclicLR(0.01, 0.1, step_size_up=13)", build("CyclicLR", 0.01, 0.1, step_size_up=13))],
    [
        (
            0,
            "CyclicLR([0.01, 0.02], [0.1, 0.3], 9, 4, 'triangular2', base_momentum=0.5)",
            build("CyclicLR", [0.01, 0.02], [0.1, 0.3], 9, 4, "triangular2", base_momentum=0.5),
        )
    ],
    [
        (
            0,
            "CyclicLR(0.01, 0.1, 10, mode='exp_range', gamma=0.98, cycle_momentum=False)",
            build("CyclicLR", 0.01, 0.1, 10, mode="exp_range", gamma=0.98, cycle_momentum=False),
        )
    ],
    [(0, "OneCycleLR(max_lr=0.1, total_steps=120)", build("OneCycleLR", 0.1, total_steps=120))],
    [
        (
            0,
            "OneCycleLR([0.1, 0.4], epochs=13, steps_per_epoch=10, anneal_strategy='linear', "
            "pct_start=0.25, base_momentum=0.7, max_momentum=0.9, div_factor=10)",
            build(
                "OneCycleLR",
                [0.1, 0.4],
                epochs=13,
                steps_per_epoch=10,
                anneal_strategy="linear",
                pct_start=0.25,
                base_momentum=0.7,
                max_momentum=0.9,
                div_factor=10,
            ),
        )
    ],
    [
        (
            0,
            "OneCycleLR(0.1, 120, three_phase=True, cycle_momentum=False)",
            build("OneCycleLR", 0.1, 120, three_phase=True, cycle_momentum=False),
        )
    ],
    [
        (
            0,
            "OneCycleLR(0.1, 150, three_phase=True)",
            build("OneCycleLR", 0.1, 150, three_phase=True),
        )
    ],
    [(0, "LambdaLR()", lambda o: S.LambdaLR(o, [factor, mild]))],
    [(0, "MultiplicativeLR()", lambda o: S.MultiplicativeLR(o, [factor, mild]))],
    [(0, "SWALR(0.05)", build("SWALR", 0.05))],
    [
        (
            0,
            "SWALR([0.05, 0.4], anneal_epochs=30, anneal_strategy='linear')",
            build("SWALR", [0.05, 0.4], anneal_epochs=30, anneal_strategy="linear"),
        )
    ],
    [(0, "SWALR(0.05, anneal_epochs=0)", build("SWALR", 0.05, anneal_epochs=0))],
    [(0, "ReduceLROnPlateau()", build("ReduceLROnPlateau"))],
    [
        (
            0,
            "ReduceLROnPlateau('max', 0.5, 3, 0.01, 'abs', 2, [0.01, 0.02])",
            build("ReduceLROnPlateau", "max", 0.5, 3, 0.01, "abs", 2, [0.01, 0.02]),
        )
    ],
    [
        (
            0,
            "ReduceLROnPlateau(factor=0.7, patience=2, threshold=0.1, min_lr=0.01, eps=0.001)",
            build(
                "ReduceLROnPlateau", factor=0.7, patience=2, threshold=0.1, min_lr=0.01, eps=0.001
            ),
        )
    ],
    [
        (
            0,
            "ReduceLROnPlateau('min', 0.5, 1, 0.3, 'abs', 4)",
            build("ReduceLROnPlateau", "min", 0.5, 1, 0.3, "abs", 4),
        )
    ],
    [
        (
            0,
            "ReduceLROnPlateau('max', 0.5, 1, 0.2)",
            build("ReduceLROnPlateau", "max", 0.5, 1, 0.2),
        )
    ],
    # Several on one optimizer.
    [
        (0, "StepLR(5, gamma=0.7)", build("StepLR", 5, gamma=0.7)),
        (0, "ExponentialLR(0.98)", build("ExponentialLR", 0.98)),
    ],
    [
        (0, "CosineAnnealingLR(20, eta_min=0.01)", build("CosineAnnealingLR", 20, eta_min=0.01)),
        (0, "LinearLR(0.2, total_iters=30)", build("LinearLR", 0.2, total_iters=30)),
        (0, "MultiStepLR([10, 40], 0.5)", build("MultiStepLR", [10, 40], 0.5)),
    ],
    [
        (0, "StepLR(9, gamma=0.5)", build("StepLR", 9, gamma=0.5)),
        (0, "ReduceLROnPlateau(patience=4)", build("ReduceLROnPlateau", patience=4)),
    ],
    # One is created later, and replaces the first: a `!` says so.
    [
        (0, "CosineAnnealingLR(100)", build("CosineAnnealingLR", 100)),
        (53, "!SWALR(0.05, anneal_epochs=10)", build("SWALR", 0.05, anneal_epochs=10)),
    ],
    [
        (0, "MultiplicativeLR()", lambda o: S.MultiplicativeLR(o, [factor, mild])),
        (0, "SWALR(0.5, anneal_epochs=15)", build("SWALR", 0.5, anneal_epochs=15)),
    ],
    # Compositions.
    [
        (
            0,
            "SequentialLR([LinearLR(0.1, total_iters=5), CosineAnnealingLR(T_max=95)], "
            "milestones=[5])",
            sequential(
                build("LinearLR", 0.1, total_iters=5),
                build("CosineAnnealingLR", 95),
                milestones=[5],
            ),
        )
    ],
    [
        (
            0,
            "SequentialLR([ConstantLR(0.1, 20), ExponentialLR(0.9), StepLR(7, 0.5)], [20, 41])",
            sequential(
                build("ConstantLR", 0.1, 20),
                build("ExponentialLR", 0.9),
                build("StepLR", 7, 0.5),
                milestones=[20, 41],
            ),
        )
    ],
    [
        (
            0,
            "SequentialLR([LinearLR(), CyclicLR(0.01, 0.2, 9), SWALR(0.05)], [8, 60])",
            sequential(
                build("LinearLR"),
                build("CyclicLR", 0.01, 0.2, 9),
                build("SWALR", 0.05),
                milestones=[8, 60],
            ),
        )
    ],
    [
        (
            0,
            "SequentialLR([OneCycleLR(0.3, 50), PolynomialLR(60), MultiStepLR([3, 5])], [50, 90])",
            sequential(
                build("OneCycleLR", 0.3, 50),
                build("PolynomialLR", 60),
                build("MultiStepLR", [3, 5]),
                milestones=[50, 90],
            ),
        )
    ],
    [
        (
            0,
            "SequentialLR([CyclicLR(0.01, 0.2, 9), LambdaLR(), CosineAnnealingWarmRestarts(9)], "
            "[20, 50])",
            sequential(
                build("CyclicLR", 0.01, 0.2, 9),
                lambda o: S.LambdaLR(o, [factor, mild]),
                build("CosineAnnealingWarmRestarts", 9),
                milestones=[20, 50],
            ),
        )
    ],
    [
        (
            0,
            "SequentialLR([StepLR(3), MultiplicativeLR(), LinearLR(0.5)], [10, 30])",
            sequential(
                build("StepLR", 3),
                lambda o: S.MultiplicativeLR(o, [factor, mild]),
                build("LinearLR", 0.5),
                milestones=[10, 30],
            ),
        )
    ],
    [
        (
            0,
            "ChainedScheduler([ConstantLR(0.1, 20), ExponentialLR(0.95)])",
            chained(build("ConstantLR", 0.1, 20), build("ExponentialLR", 0.95)),
        )
    ],
    [
        (
            0,
            "ChainedScheduler([SequentialLR([LinearLR(0.2), StepLR(9)], [12]), "
            "ExponentialLR(0.99), CosineAnnealingLR(30)])",
            chained(
                sequential(build("LinearLR", 0.2), build("StepLR", 9), milestones=[12]),
                build("ExponentialLR", 0.99),
                build("CosineAnnealingLR", 30),
            ),
        )
    ],
    # The rates fall below 0.
    [
        (
            0,
            "ChainedScheduler([ExponentialLR(0.5), CosineAnnealingLR(4, eta_min=0.05)])",
            chained(build("ExponentialLR", 0.5), build("CosineAnnealingLR", 4, eta_min=0.05)),
        )
    ],
    [
        (0, "CyclicLR(-0.1, 0.1, step_size_up=13)", build("CyclicLR", -0.1, 0.1, step_size_up=13)),
        (0, "ExponentialLR(0.9)", build("ExponentialLR", 0.9)),
    ],
]
OPTIMIZERS = [
    ("SGD(lr=0.2, momentum=0.9)", lambda g: torch.optim.SGD(g, lr=0.2, momentum=0.9)),
    ("Adam(lr=0.2)", lambda g: torch.optim.Adam(g, lr=0.2)),
]


def state(optimizer):
    groups = optimizer.param_groups
    momenta = [g["momentum"] if "momentum" in g else g["betas"][0] for g in groups]
    return " ".join("%.17g" % v for v in [g["lr"] for g in groups] + momenta)


def record(name, make, case):
    parameters = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    optimizer = make([dict(params=[parameters[0]]), dict(params=[parameters[1]], lr=0.35)])
    print("case", name)
    for at, spec, _ in case:
        print("at", at, spec)
    running = []
    for step in range(STEPS + 1):
        if step > 0:
            optimizer.step()
            for scheduler in running:
                if isinstance(scheduler, S.ReduceLROnPlateau):
                    scheduler.step(METRICS[step])
                else:
                    scheduler.step()
        for at, spec, maker in case:
            if at == step:
                running = [] if spec.startswith("!") else running
                running.append(maker(optimizer))
        print(state(optimizer))
    print("end")


print("# Made by make_schedulers.py with PyTorch %s" % torch.__version__.split("+")[0])
print("metrics", " ".join("%.17g" % m for m in METRICS))
for name, make in OPTIMIZERS:
    for case in CASES:
        adam = name.startswith("Adam")
        if not adam or "Cyc" in case[0][1]:
            record(name, make, case)
