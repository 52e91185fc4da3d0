#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Writes ported_schedulers.txt: the rates and momenta that PyTorch's schedulers give in the settings
# of its own test/optim/test_lrscheduler.py, one case for each name, for test_schedulers.c.
#   PYTHON-WITH-TORCH make_ported_schedulers.py > ported_schedulers.txt
# The lines are those of schedulers.txt. `name` begins a case, and before `case` come `rates` (those
# of both groups), `function` (that of LambdaLR) and `metrics` (arguments of
# tn_scheduler_step_with). `during FIRST LAST` after `at` has the steps of that scheduler. The specs
# are Python: a scheduler is built from the text that the test gives to Tenon.
import math
import warnings

import torch

warnings.simplefilter("ignore")
S = torch.optim.lr_scheduler
SGD, ADAM = "SGD(lr=0.05)", "Adam(lr=0.05)"
NAMES = [n for n in dir(S) if n.endswith("LR") or n in ("ReduceLROnPlateau",)]
NAMES += ["CosineAnnealingWarmRestarts", "ChainedScheduler"]
FUNCTIONS = {
    "powers": (lambda step: 0.9**step, lambda step: 0.8**step),
    "constants": (lambda step: 0.9, lambda step: 0.8),
    "same": (lambda step: 0.9, lambda step: 0.9),
}


def build(spec, optimizer, function):
    """The scheduler that a spec describes."""

    def maker(name):
        if name == "SWALR":
            return lambda *a, **k: torch.optim.swa_utils.SWALR(optimizer, *a, **k)
        if name == "ChainedScheduler":
            return lambda s: S.ChainedScheduler(s, optimizer=optimizer)
        if name in ("LambdaLR", "MultiplicativeLR"):
            return lambda: getattr(S, name)(optimizer, list(FUNCTIONS[function]))
        return lambda *a, **k: getattr(S, name)(optimizer, *a, **k)

    return eval(spec, {name: maker(name) for name in NAMES + ["SWALR"]})


CASES = []


def case(name, *specs, steps=10, optim=SGD, rates=(0.05, 0.5), closed=False, **more):
    rows = [s if isinstance(s, tuple) else (s, 1, steps) for s in specs]
    CASES.append((name, rows, steps, optim, rates, closed, more))


STEP, MULTI = "StepLR(3, gamma=0.1)", "MultiStepLR([2, 5, 9], gamma=0.1)"
EXP, CONST = "ExponentialLR(0.9)", "ConstantLR(0.5, total_iters=5)"
COS10 = "CosineAnnealingLR(T_max=10, eta_min=1e-10)"
THIRD = 1 / 3  # Tenon's specs have no divisions
LINEAR, POLY = "LinearLR(0.5, total_iters=4)", "PolynomialLR(total_iters=5, power=0.9)"
case("test_step_lr", STEP)
case("test_get_last_lr_step_lr", STEP, rates=(0.1, 0.1))
case("test_get_last_lr_multi_step_lr", MULTI)
case("test_multi_step_lr", MULTI)
case("test_multi_step_lr_with_epoch", MULTI, closed=True)
case("test_get_last_lr_constantlr", CONST)
case("test_get_last_lr_linearlr", "LinearLR(0.25, 0.6, 4)")
case("test_constantlr", CONST)
case("test_linearlr", LINEAR)
case("test_constantlr_with_epoch", CONST, closed=True)
case("test_linearlr_with_epoch", LINEAR, closed=True)
case("test_exp_lr", EXP)
case("test_poly_lr", POLY)
case("test_cos_anneal_lr", COS10)
case("test_closed_form_step_lr", STEP, steps=20, closed=True)
case("test_closed_form_linearlr", "LinearLR(%r, 0.7, 4)" % THIRD, steps=20, closed=True)
case("test_closed_form_constantlr", "ConstantLR(%r, 4)" % THIRD, steps=20, closed=True)
case("test_closed_form_multi_step_lr", MULTI, steps=20, closed=True)
case("test_closed_form_exp_lr", EXP, steps=20, closed=True)
case("test_closed_form_poly_lr", "PolynomialLR(power=0.9)", steps=20, closed=True)
case("test_closed_form_cos_anneal_lr", "CosineAnnealingLR(5, 1e-10)", steps=20, closed=True)

HALF = dict(rates=(0.5, 0.5))
P1 = "ReduceLROnPlateau(threshold_mode='abs', mode='min', threshold=0.01, patience=5, cooldown=5)"
P2 = "ReduceLROnPlateau(patience=5, threshold_mode='abs', mode='min', threshold=0.1)"
P3 = "ReduceLROnPlateau(mode='max', patience=5, cooldown=5, threshold_mode='abs')"
P4 = "ReduceLROnPlateau(mode='max', patience=3, threshold_mode='rel', threshold=0.1)"
P5 = "ReduceLROnPlateau(mode='%s', threshold_mode='rel', threshold=0.1, patience=5, cooldown=5%s)"
M1 = [10 - i * 0.0167 for i in range(40)]
M2 = [10 - i * 0.0165 for i in range(40)]
M3 = [-0.8] * 2 + [-0.234] * 40
M4 = [1.5 * 1.025**i for i in range(40)]
M5 = [1.5 * 1.005**i for i in range(40)]
M7 = [1.0] * 7 + [0.6] + [0.5] * 40
case("test_reduce_lr_on_plateau1", P1, metrics=M1, **HALF)
case("test_reduce_lr_on_plateau2", P2, steps=22, metrics=M2, **HALF)
case("test_reduce_lr_on_plateau3", P3, steps=22, metrics=M3, **HALF)
case("test_reduce_lr_on_plateau4", P4, steps=20, metrics=M4, **HALF)
case("test_reduce_lr_on_plateau5", P5 % ("max", ""), steps=20, metrics=M5, **HALF)
case(
    "test_reduce_lr_on_plateau6",
    "ReduceLROnPlateau(mode='min', threshold_mode='rel', threshold=0.1)",
    steps=20,
    metrics=[1.5 * 0.85**i for i in range(40)],
    **HALF,
)
case("test_reduce_lr_on_plateau7", P5 % ("min", ""), steps=20, metrics=M7, **HALF)
case(
    "test_reduce_lr_on_plateau8",
    P5 % ("max", ", min_lr=[0.4, 0.3]"),
    steps=20,
    metrics=M5,
    **HALF,
)
case("test_reduce_lr_on_plateau_get_last_lr_before_step", "ReduceLROnPlateau()", steps=0, **HALF)

SEQ3 = "SequentialLR([ConstantLR(0.1, 3), ExponentialLR(0.8), StepLR(2, 0.1)], [3, 6])"
case("test_sequentiallr1", "SequentialLR([ExponentialLR(0.8), StepLR(4, 0.1)], [3])", steps=19)
case("test_sequentiallr2", "SequentialLR([ConstantLR(0.1, 3), ExponentialLR(0.9)], [3])", steps=13)
case("test_sequentiallr3", SEQ3, steps=12)
case(
    "test_sequentiallr4", "SequentialLR([ConstantLR(1.0), ConstantLR(0.1)], [10])", rates=(0.1, 0.1)
)
case(
    "test_sequentiallr5",
    "SequentialLR([ChainedScheduler([LinearLR(0.1, total_iters=5), ConstantLR(0.1, 5)]), "
    "ConstantLR(0.5, 5)], [5])",
)
case(
    "test_sequentiallr_no_warnings",
    "SequentialLR([LinearLR(0.5, 0.1, 5), ExponentialLR(0.9)], [5])",
)
case("test_get_last_lr_sequentiallr", SEQ3, steps=12)
case(
    "test_sequentiallr_does_not_alias_lr_and_initial_lr",
    "SequentialLR([LinearLR(0.1, 0.8, 4), LinearLR(0.8, 0.1, 4)], [4])",
    steps=8,
    rates=(2.0, 2.0),
)
LIN3, MULTI3 = "LinearLR(0.4, total_iters=3)", "MultiStepLR([4, 8, 10], 0.1)"
CHAIN = "ChainedScheduler([%s])"
case("test_chained_lr2_get_last_lr_before_step", CHAIN % (LIN3 + ", " + MULTI3), steps=0)
case("test_chained_lr1", CHAIN % STEP)
case("test_chained_lr2", CHAIN % LIN3)
case("test_chained_lr3", CHAIN % (LIN3 + ", " + MULTI3))
case("test_chained_lr4", CHAIN % ("ExponentialLR(0.9), ConstantLR(0.2, 4), " + STEP), steps=9)
case("test_chained_lr5", CHAIN % (POLY + ", ConstantLR(0.1)"))
case("test_compound_step_and_multistep_lr", STEP, MULTI)
case("test_compound_step_and_exp_lr", STEP, EXP)
case("test_compound_exp_and_multistep_lr", MULTI, EXP)
case("test_compound_exp_and_linearlr", "LinearLR(0.4, 0.9, 4)", EXP)
case("test_compound_step_and_constantlr", STEP, "ConstantLR(0.4, 4)")
LIN4 = "LinearLR(0.4, total_iters=4)"
case("test_compound_linearlr_and_multistep_lr", MULTI, LIN4)
case("test_compound_cosanneal_and_step_lr", COS10, STEP)
case("test_compound_cosanneal_and_multistep_lr", COS10, MULTI)
case("test_compound_cosanneal_and_linearlr", LIN4, COS10)
case("test_compound_cosanneal_and_exp_lr", COS10, "ExponentialLR(0.1)")
case("test_compound_reduce_lr_on_plateau1", P1, STEP, metrics=M1, **HALF)
M3812 = "MultiStepLR([3, 8, 12], 0.1)"
case("test_compound_reduce_lr_on_plateau2", P2, M3812, steps=22, metrics=M2, **HALF)
case("test_compound_reduce_lr_on_plateau3", P3, "ExponentialLR(0.1)", steps=22, metrics=M3, **HALF)
case("test_compound_reduce_lr_on_plateau4", P4, COS10, metrics=M4, rates=(0.05, 0.05))
case("test_compound_reduce_lr_on_plateau5", P2, LIN4, steps=22, metrics=M2, **HALF)

CYC = "CyclicLR(%s, %s, step_size_up=4%s)"
MOM = ", cycle_momentum=True, base_momentum=%s, max_momentum=%s, mode='%s'"
ONE = MOM % (1, 5, "%s")
case("test_cycle_lr_triangular_mode_one_lr", CYC % (1, 5, ONE % "triangular"))
case(
    "test_cycle_lr_triangular_mode_one_lr_no_momentum",
    CYC % (1, 5, ", cycle_momentum=False, mode='triangular'"),
)
case("test_cycle_lr_triangular2_mode_one_lr", CYC % (1, 5, ONE % "triangular2"), steps=21)
case(
    "test_cycle_lr_exp_range_mode_one_lr",
    CYC % (1, 5, ONE % "exp_range" + ", gamma=0.9"),
    steps=12,
)
TWO = MOM % ("[1, 2]", "[5, 6]", "triangular")
case("test_cycle_lr_triangular_mode", CYC % ("[1, 2]", "[5, 6]", TWO))
TWO = MOM % ("[1, 3]", "[5, 7]", "triangular2")
case("test_cycle_lr_triangular2_mode", CYC % ("[1, 3]", "[5, 7]", TWO), steps=21)
TWO = MOM % ("[1, 5]", "[5, 12]", "exp_range") + ", gamma=0.9"
case("test_cycle_lr_exp_range_mode", CYC % ("[1, 5]", "[5, 12]", TWO), steps=12)
case(
    "test_cycle_lr_triangular_mode_step_size_up_down",
    CYC % (1, 5, ", step_size_down=6" + ONE % "triangular"),
)
UP = "CyclicLR(%s, %s, step_size_up=2, step_size_down=6%s)"
case(
    "test_cycle_lr_triangular2_mode_step_size_up_down",
    UP % ("[1, 3]", "[5, 7]", MOM % ("[1, 3]", "[5, 7]", "triangular2")),
    steps=23,
)
case(
    "test_cycle_lr_exp_range_mode_step_size_up_down",
    UP % (1, 5, ONE % "exp_range" + ", gamma=0.9"),
    steps=12,
)
case(
    "test_cycle_lr_with_momentumless_optimizer",
    CYC % (1, 5, ", cycle_momentum=False, mode='triangular'"),
    optim=ADAM,
)
case("test_cycle_lr_cycle_momentum_with_beta1_optimizer", "CyclicLR(1, 5)", optim=ADAM)
ONECYCLE = "OneCycleLR(25, final_div_factor=2, base_momentum=1, max_momentum=22, total_steps=10%s)"
case("test_onecycle_lr_linear_annealing", ONECYCLE % ", anneal_strategy='linear'", steps=9)
case(
    "test_onecycle_lr_linear_annealing_three_phases",
    "OneCycleLR(25, div_factor=25, base_momentum=1, max_momentum=22, total_steps=10, "
    "anneal_strategy='linear', pct_start=0.4, final_div_factor=4, three_phase=True)",
    steps=9,
)
case("test_onecycle_lr_cosine_annealing", ONECYCLE % "", steps=9)
case(  # with momenta below 1, as Adam has them
    "test_cycle_lr_with_adam",
    "OneCycleLR(25, final_div_factor=2, base_momentum=0.1, max_momentum=0.9, total_steps=10, "
    "anneal_strategy='linear')",
    steps=9,
    optim=ADAM,
)
case("test_lambda_lr", "LambdaLR()", rates=(0.05, 0.4), function="powers")
case("test_multiplicative_lr", "MultiplicativeLR()", rates=(0.05, 0.4), function="constants")
RESTARTS = "CosineAnnealingWarmRestarts(T_0=10, T_mult=%d, eta_min=1e-10)"
FINE = [round(0.1 * i, 1) for i in range(300)]
JUMPS = [
    [0, 1, 2, 3, 4, 5, 12, 27, 3, 4, 5, 6, 13],
    [0, 1, 2, 3, 4, 5, 25, 32, 33, 34, 80, 81, 3],
    [0, 0.1, 0.2, 0.3, 1.3, 2.3, 17.5, 18.5, 19.5, 29.5, 30.5, 31.5, 50],
]
for factor, epochs in zip((1, 2, 4), (FINE, FINE, FINE)):
    case("test_CosineAnnealingWarmRestarts_lr1", RESTARTS % factor, steps=99)
    case("test_CosineAnnealingWarmRestarts_lr2", RESTARTS % factor, steps=299, epochs=epochs)
for factor, epochs in zip((1, 2, 3), JUMPS):
    case("test_CosineAnnealingWarmRestarts_lr3", RESTARTS % factor, steps=12, epochs=epochs)
case("test_swalr_no_anneal", ("SWALR(0.01, anneal_epochs=1)", 6, 9), steps=9)
for name, spec in (
    ("test_swalr_cosine_anneal_after_multiplicative", "SWALR(0.01, anneal_epochs=5)"),
    (
        "test_swalr_linear_anneal_after_multiplicative",
        "SWALR([0.01, 0.02], anneal_epochs=4, anneal_strategy='linear')",
    ),
):
    case(name, ("MultiplicativeLR()", 1, 5), (spec, 6, 14), steps=14, function="same")
case(
    "test_cosine_then_cyclic",
    ("CosineAnnealingLR(20, eta_min=0.1)", 1, 21),
    ("CyclicLR(0.1, 0.3, 1, 3)", 22, 40),
    steps=40,
    rates=(0.5, 0.5),
)


def record(name, specs, steps, optim, rates, closed, more):
    parameters = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    kind = torch.optim.Adam if optim == ADAM else torch.optim.SGD
    groups = [dict(params=[p], lr=lr) for p, lr in zip(parameters, rates)]
    optimizer = kind(groups, lr=0.05)
    metrics = more.get("metrics", more.get("epochs"))
    function = more.get("function", "powers")
    print("name", name)
    print("rates %.17g %.17g" % rates)
    print("function", function)
    if metrics is not None:
        print("metrics", " ".join("%.17g" % m for m in metrics[: steps + 1]))
    print("case", optim)
    for spec, first, last in specs:
        print("at 0 %s\nduring %d %d" % (spec, first, last))
    running = [build(spec, optimizer, function) for spec, _, _ in specs]
    for step in range(steps + 1):
        if step > 0:
            optimizer.step()
        for scheduler, (_, first, last) in zip(running, specs):
            if not first <= step <= last:
                continue
            if isinstance(scheduler, S.ReduceLROnPlateau) or "epochs" in more:
                scheduler.step(metrics[step])
            else:
                scheduler.step()
        lrs = [float(g["lr"]) for g in optimizer.param_groups]
        if closed:
            lrs = [float(lr) for lr in running[0]._get_closed_form_lr()]
        momenta = [
            g["betas"][0] if optim == ADAM else g["momentum"] for g in optimizer.param_groups
        ]
        print(" ".join("%.17g" % float(v) for v in lrs + momenta))
    print("end")


print("# Made by make_ported_schedulers.py with PyTorch %s" % torch.__version__.split("+")[0])
for each in CASES:
    record(*each)
