#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Losses:  PYTHON-WITH-TORCH make_loss.py > loss.txt
from cases import *


def normal(*shape, dtype=F64, grad=True, positive=False, share=False):
    data = torch.rand(shape, dtype=F64) * 0.8 + 0.1 if share else torch.randn(shape, dtype=F64)
    return x(
        dtype=dtype,
        grad=grad,
        data=(data.abs() + 0.1 if positive else data).to(dtype).to(F64).tolist(),
    )


def signs(*shape, dtype=F64):
    return n(dtype=dtype, data=(torch.randint(0, 2, shape) * 2 - 1).tolist())


def every(op, call, make, **options):
    """Cases of each reduction, for each dtype and a few shapes.

    make(dtype, shape) returns the inputs.
    """
    for reduction in ("mean", "sum", "none"):
        for d in FLOATS:
            if reduction == "mean" or d == F64:
                Case(
                    "%s/%s-%s" % (op, NAMES[d], reduction),
                    op,
                    lambda *t: call(*t, reduction=reduction),
                    make(d, (3, 4)),
                    reduction=reduction,
                    **options
                )
        Case(
            "%s/one-%s" % (op, reduction),
            op,
            lambda *t: call(*t, reduction=reduction),
            make(F64, (5,)),
            reduction=reduction,
            **options
        )


def pair(d, shape):
    return [normal(*shape, dtype=d), normal(*shape, dtype=d)]


every("mse_loss", F.mse_loss, pair)
every("l1_loss", F.l1_loss, pair)
for value in (1.0, 0.25, 2.0):
    every(
        "smooth_l1_loss",
        lambda a, b, reduction: F.smooth_l1_loss(a, b, reduction=reduction, beta=value),
        pair,
        beta=value,
    )
    every(
        "huber_loss",
        lambda a, b, reduction: F.huber_loss(a, b, reduction=reduction, delta=value),
        pair,
        delta=value,
    )
Case(
    "smooth_l1_loss/zero",
    "smooth_l1_loss",
    lambda a, b: F.smooth_l1_loss(a, b, beta=0.0),
    pair(F64, (3, 2)),
    beta=0.0,
)
for op, call in (("mse_loss", F.mse_loss), ("l1_loss", F.l1_loss)):
    Case(op + "/scalar", op, call, [x(), x()])
    Case(op + "/nothing", op, call, [x(0, 2), x(0, 2)])
    Case(op + "/transposed", op, call, [x(4, 3, dtype=F64, order=(1, 0)), x(3, 4, dtype=F64)])
    Case(op + "/same", op, call, [x(data=[1.0, 2.0]), x(data=[1.0, 3.0])])


def shares(d, shape):
    return [normal(*shape, dtype=d, share=True), normal(*shape, dtype=d, share=True), None]


every(
    "binary_cross_entropy",
    lambda a, b, w, reduction: F.binary_cross_entropy(a, b, w, reduction=reduction),
    shares,
)
every(
    "binary_cross_entropy",
    lambda a, b, w, reduction: F.binary_cross_entropy(a, b, w, reduction=reduction),
    lambda d, s: shares(d, s)[:2] + [normal(*s, dtype=d, grad=False, positive=True)],
)
Case(
    "binary_cross_entropy/edges",
    "binary_cross_entropy",
    lambda a, b, w: F.binary_cross_entropy(a, b, reduction="none"),
    [
        n(data=[0.0, 1.0, 0.0, 1.0, 0.5], dtype=F64),
        n(data=[0.0, 1.0, 1.0, 0.0, 0.5], dtype=F64),
        None,
    ],
    reduction="none",
)
logits = lambda a, b, w, p, reduction: F.binary_cross_entropy_with_logits(
    a, b, w, reduction=reduction, pos_weight=p
)
every(
    "binary_cross_entropy_with_logits",
    logits,
    lambda d, s: [normal(*s, dtype=d), normal(*s, dtype=d, share=True), None, None],
)
every(
    "binary_cross_entropy_with_logits",
    logits,
    lambda d, s: [
        normal(*s, dtype=d),
        normal(*s, dtype=d, share=True),
        normal(*s, dtype=d, positive=True, grad=False),
        normal(s[-1], dtype=d, positive=True, grad=False),
    ],
)
Case(
    "binary_cross_entropy_with_logits/far",
    "binary_cross_entropy_with_logits",
    lambda a, b, w, p: F.binary_cross_entropy_with_logits(a, b),
    [x(data=[800.0, -800.0, 30.0, -30.0]), n(data=[0.0, 1.0, 1.0, 0.0]), None, None],
)
every(
    "soft_margin_loss", F.soft_margin_loss, lambda d, s: [normal(*s, dtype=d), signs(*s, dtype=d)]
)
every(
    "multilabel_soft_margin_loss",
    lambda a, b, w, reduction: F.multilabel_soft_margin_loss(a, b, w, reduction=reduction),
    lambda d, s: [normal(*s, dtype=d), normal(*s, dtype=d, share=True, grad=False), None],
)
every(
    "multilabel_soft_margin_loss",
    lambda a, b, w, reduction: F.multilabel_soft_margin_loss(a, b, w, reduction=reduction),
    lambda d, s: [
        normal(*s, dtype=d),
        normal(*s, dtype=d, share=True, grad=False),
        normal(s[-1], dtype=d, positive=True, grad=False),
    ],
)
every("kl_div", F.kl_div, lambda d, s: [normal(*s, dtype=d), normal(*s, dtype=d, share=True)])
every(
    "kl_div",
    lambda a, b, reduction: F.kl_div(a, b, reduction=reduction, log_target=True),
    pair,
    log_target=True,
)
for log in (True, False):
    Case(
        "kl_div/batchmean",
        "kl_div",
        lambda a, b: F.kl_div(a, b, reduction="batchmean", log_target=log),
        [normal(3, 4), normal(3, 4, share=True)],
        reduction="batchmean",
        log_target=log,
    )
Case(
    "kl_div/zero",
    "kl_div",
    lambda a, b: F.kl_div(a, b, reduction="none"),
    [normal(3), n(data=[0.0, 0.5, 1.0], dtype=F64)],
    reduction="none",
)
for log in (True, False):
    for full in (True, False):
        every(
            "poisson_nll_loss",
            lambda a, b, reduction: F.poisson_nll_loss(a, b, log, full, reduction=reduction),
            lambda d, s: [
                normal(*s, dtype=d, positive=not log),
                n(*s, dtype=d, data=torch.randint(0, 6, s).tolist()),
            ],
            log_input=log,
            full=full,
        )
for full in (True, False):
    every(
        "gaussian_nll_loss",
        lambda a, b, v, reduction: F.gaussian_nll_loss(a, b, v, full, reduction=reduction),
        lambda d, s: pair(d, s) + [normal(*s, dtype=d, positive=True)],
        full=full,
    )
Case(
    "gaussian_nll_loss/small",
    "gaussian_nll_loss",
    lambda a, b, v: F.gaussian_nll_loss(a, b, v, eps=0.5),
    pair(F64, (3,)) + [x(data=[0.1, 0.5, 2.0], dtype=F64)],
    eps=0.5,
)
every(
    "hinge_embedding_loss",
    F.hinge_embedding_loss,
    lambda d, s: [normal(*s, dtype=d), signs(*s, dtype=d)],
)
every(
    "hinge_embedding_loss",
    lambda a, t, reduction: F.hinge_embedding_loss(a, t, 0.3, reduction=reduction),
    lambda d, s: [normal(*s, dtype=d), signs(*s, dtype=d)],
    margin=0.3,
)
every("margin_ranking_loss", F.margin_ranking_loss, lambda d, s: pair(d, s) + [signs(*s, dtype=d)])
every(
    "margin_ranking_loss",
    lambda a, b, t, reduction: F.margin_ranking_loss(a, b, t, 0.7, reduction=reduction),
    lambda d, s: pair(d, s) + [signs(*s, dtype=d)],
    margin=0.7,
)
for p in (1, 2):
    for margin in (1.0, 0.5):
        for reduction in ("mean", "sum", "none"):
            for w in (None, normal(4, positive=True, grad=False)):
                Case(
                    "multi_margin_loss/%d-%s" % (p, reduction),
                    "multi_margin_loss",
                    lambda a, t, w: F.multi_margin_loss(a, t, p, margin, w, reduction=reduction),
                    [normal(3, 4), n(data=[0, 3, 1], dtype=I64), w],
                    p=p,
                    margin=margin,
                    reduction=reduction,
                )
            Case(
                "multi_margin_loss/one-%s" % reduction,
                "multi_margin_loss",
                lambda a, t, w: F.multi_margin_loss(a, t, p, margin, reduction=reduction),
                [normal(4), n(data=2, dtype=I64), None],
                p=p,
                margin=margin,
                reduction=reduction,
            )
for reduction in ("mean", "sum", "none"):
    Case(
        "multilabel_margin_loss/" + reduction,
        "multilabel_margin_loss",
        lambda a, t: F.multilabel_margin_loss(a, t, reduction=reduction),
        [normal(3, 4), n(data=[[3, 0, -1, 1], [-1, 0, 0, 0], [0, 1, 2, 3]], dtype=I64)],
        reduction=reduction,
    )
    Case(
        "multilabel_margin_loss/one-" + reduction,
        "multilabel_margin_loss",
        lambda a, t: F.multilabel_margin_loss(a, t, reduction=reduction),
        [normal(4), n(data=[1, 3, -1, 0], dtype=I64)],
        reduction=reduction,
    )
for options in (
    {},
    {"margin": 0.3},
    {"p": 1.0},
    {"swap": True},
    {"p": 3.0, "swap": True, "eps": 0.01},
):
    every(
        "triplet_margin_loss",
        lambda a, p, m, reduction: F.triplet_margin_loss(a, p, m, reduction=reduction, **options),
        lambda d, s: pair(d, s) + [normal(*s, dtype=d)],
        **options
    )
for margin in (0.0, 0.4):
    for reduction in ("mean", "sum", "none"):
        Case(
            "cosine_embedding_loss/" + reduction,
            "cosine_embedding_loss",
            lambda a, b, t: F.cosine_embedding_loss(a, b, t, margin, reduction=reduction),
            pair(F64, (5, 3)) + [n(data=[1, -1, 1, -1, -1], dtype=I64)],
            margin=margin,
            reduction=reduction,
        )
        Case(
            "cosine_embedding_loss/one-" + reduction,
            "cosine_embedding_loss",
            lambda a, b, t: F.cosine_embedding_loss(a, b, t, margin, reduction=reduction),
            pair(F64, (3,)) + [n(data=-1, dtype=I64)],
            margin=margin,
            reduction=reduction,
        )
targets = {
    (4,): 2,
    (3, 4): [1, 3, 0],
    (2, 4, 3): [[0, 1, 3], [2, 2, 0]],
    (1, 4, 2, 2): [[[1, 3], [0, 2]]],
}
for shape, target in targets.items():
    classes = shape[0] if len(shape) == 1 else shape[1]
    for reduction in ("mean", "sum", "none"):
        for w in (None, normal(classes, positive=True, grad=False)):
            for ignore in (-100, 1):
                Case(
                    "nll_loss_weighted/%dd-%s" % (len(shape), reduction),
                    "nll_loss_weighted",
                    lambda a, t, w: F.nll_loss(a, t, w, ignore_index=ignore, reduction=reduction),
                    [normal(*shape), n(data=target, dtype=I64), w],
                    ignore_index=ignore,
                    reduction=reduction,
                )
                for smoothing in (0.0, 0.2):
                    Case(
                        "cross_entropy_weighted/%dd-%s" % (len(shape), reduction),
                        "cross_entropy_weighted",
                        lambda a, t, w: F.cross_entropy(
                            a,
                            t,
                            w,
                            ignore_index=ignore,
                            reduction=reduction,
                            label_smoothing=smoothing,
                        ),
                        [normal(*shape), n(data=target, dtype=I64), w],
                        ignore_index=ignore,
                        reduction=reduction,
                        label_smoothing=smoothing,
                    )
            for smoothing in (0.0, 0.2):
                Case(
                    "cross_entropy_weighted/shares-%dd-%s" % (len(shape), reduction),
                    "cross_entropy_weighted",
                    lambda a, t, w: F.cross_entropy(
                        a, t, w, reduction=reduction, label_smoothing=smoothing
                    ),
                    [normal(*shape), normal(*shape, share=True), w],
                    reduction=reduction,
                    label_smoothing=smoothing,
                )
for d in FLOATS:
    Case(
        "cross_entropy_weighted/" + NAMES[d],
        "cross_entropy_weighted",
        lambda a, t, w: F.cross_entropy(a, t, w),
        [
            normal(3, 4, dtype=d),
            n(data=[1, 3, 0], dtype=I64),
            normal(4, dtype=d, positive=True, grad=False),
        ],
    )


# ---- connectionist temporal classification ----
def ctc(name, scores, targets, inputs, lengths, d=F64, grad=True, raw=False, **options):
    data = torch.randn(scores, dtype=F64)
    lp = (data if raw else data.log_softmax(-1)).tolist()

    def call(a, t, i, l):
        if a.dim() == 2:
            i, l = (torch.tensor(int(v)) for v in (i, l))
        return F.ctc_loss(a, t, i, l, **options)

    Case(
        "ctc_loss/" + name,
        "ctc_loss",
        call,
        [
            x(data=lp, dtype=d) if grad else n(data=lp, dtype=d),
            n(data=targets, dtype=I64),
            n(data=inputs, dtype=I64),
            n(data=lengths, dtype=I64),
        ],
        **options
    )


for d in (F32, F64):
    for reduction in ("none", "mean", "sum"):
        ctc(
            "%s-%s" % (NAMES[d], reduction),
            (6, 3, 4),
            [[1, 2, 2], [3, 1, 1], [2, 1, 3]],
            [6, 5, 4],
            [3, 2, 1],
            d,
            reduction=reduction,
        )
ctc("row", (6, 2, 4), [1, 2, 2, 3], [6, 6], [3, 1], reduction="none")
ctc("blank", (5, 2, 3), [[0, 1], [1, 0]], [5, 4], [2, 2], blank=2, reduction="none")
ctc("empty", (5, 2, 3), [[1, 1], [1, 2]], [5, 4], [0, 2], reduction="none")
ctc("nothing", (3, 2, 3), [[1, 1], [2, 2]], [3, 3], [0, 0], reduction="none")
ctc("too-long", (3, 2, 3), [[1, 1, 1], [2, 1, 1]], [3, 3], [3, 1], grad=False, reduction="none")
ctc(
    "too-long-zero",
    (3, 2, 3),
    [[1, 1, 1], [2, 1, 1]],
    [3, 3],
    [3, 1],
    reduction="mean",
    zero_infinity=True,
)
ctc("one", (6, 4), [1, 2, 2], 6, 3)

# One row. A tensor without dimensions is a row of one element.
for reduction in ("mean", "none"):
    for shape, target in (((), 0), ((), [0]), ((4,), [2]), ((1,), 0)):
        Case(
            "multi_margin_loss/row-%d-%d-%s" % (len(shape), isinstance(target, list), reduction),
            "multi_margin_loss",
            lambda a, t, w: F.multi_margin_loss(a, t, reduction=reduction),
            [normal(*shape), n(data=target, dtype=I64), None],
            reduction=reduction,
        )
    for shape, target in (((), 0), ((), [0]), ((1,), 0)):
        Case(
            "multilabel_margin_loss/row-%d-%d-%s"
            % (len(shape), isinstance(target, list), reduction),
            "multilabel_margin_loss",
            lambda a, t: F.multilabel_margin_loss(a, t, reduction=reduction),
            [normal(*shape), n(data=target, dtype=I64)],
            reduction=reduction,
        )
# log_probs that are not the result of log_softmax
for reduction in ("none", "mean"):
    ctc(
        "raw-" + reduction,
        (5, 2, 4),
        [[1, 2, 2], [3, 0, 0]],
        [5, 3],
        [3, 1],
        raw=True,
        reduction=reduction,
    )
ctc(
    "raw-zero",
    (3, 2, 3),
    [[1, 1, 1], [2, 1, 1]],
    [3, 3],
    [3, 1],
    raw=True,
    reduction="sum",
    zero_infinity=True,
)

# ---- found by random inputs ----
# all targets ignored; infinite numbers in a row whose target is ignored
for op, call in (("nll_loss_weighted", F.nll_loss), ("cross_entropy_weighted", F.cross_entropy)):
    for reduction in ("mean", "sum", "none"):
        for w in (None, normal(3, positive=True, grad=False)):
            Case(
                "%s/all-ignored-%s" % (op, reduction),
                op,
                lambda a, t, w: call(a, t, w, ignore_index=1, reduction=reduction),
                [normal(2, 3), n(data=[1, 1], dtype=I64), w],
                ignore_index=1,
                reduction=reduction,
            )
            Case(
                "%s/ignored-infinite-%s" % (op, reduction),
                op,
                lambda a, t, w: call(a, t, w, ignore_index=1, reduction=reduction),
                [
                    x(data=[[-float("inf"), 0.5, 0.25], [1.0, 0.5, 2.0]], dtype=F64),
                    n(data=[1, 2], dtype=I64),
                    w,
                ],
                ignore_index=1,
                reduction=reduction,
            )
# Targets that the input is too short for: the gradient is NaN, or 0 with zero_infinity.
for zero in (False, True):
    for reduction in ("mean", "sum", "none"):
        ctc(
            "impossible-%s" % reduction,
            (4, 3, 3),
            [[1, 1, 2], [1, 2, 1], [1, 1, 1]],
            [4, 2, 3],
            [3, 3, 2],
            reduction=reduction,
            zero_infinity=zero,
        )
print("end")
