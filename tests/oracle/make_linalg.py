#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Products and linear algebra:  PYTHON-WITH-TORCH make_linalg.py > linalg.txt
from cases import *

L = torch.linalg

# ---- products ----
for d in FLOATS + (C64, I64):
    Case(
        "cross/" + NAMES[d],
        "cross",
        lambda a, b: torch.cross(a, b, dim=1),
        [x(2, 3, dtype=d), x(2, 3, dtype=d)],
    )
    Case("linalg_cross/" + NAMES[d], "linalg_cross", L.cross, [x(2, 3, dtype=d), x(2, 3, dtype=d)])
    Case("trace/" + NAMES[d], "trace", torch.trace, [x(3, 4, dtype=d)])
    Case("kron/" + NAMES[d], "kron", torch.kron, [x(2, 3, dtype=d), x(3, 2, dtype=d)])
    Case(
        "tensordot/" + NAMES[d],
        "tensordot",
        torch.tensordot,
        [x(2, 3, 2, dtype=d), x(3, 2, 4, dtype=d)],
    )
Case("cross/first", "cross", lambda a, b: torch.cross(a, b, dim=0), [x(3, 3), x(3, 3)], dim=0)
Case("cross/found", "cross", lambda a, b: torch.cross(a, b, dim=1), [x(2, 3, 3), x(2, 3, 3)])
Case(
    "cross/negative",
    "cross",
    lambda a, b: torch.cross(a, b, dim=-2),
    [x(2, 3, 2), x(2, 3, 2)],
    dim=-2,
)
Case("cross/transposed", "linalg_cross", L.cross, [x(3, 2, order=(1, 0)), x(2, 3)])
Case("cross/expanded", "linalg_cross", L.cross, [x(1, 3, expand=(4, 3)), x(4, 3)])
Case("cross/broadcast", "linalg_cross", L.cross, [x(4, 1, 3), x(1, 2, 3)])
Case("cross/empty", "linalg_cross", L.cross, [x(0, 3), x(0, 3)])
Case("cross/edges", "linalg_cross", L.cross, [x(data=[[INF, 1.0, 2.0], [NAN, 1.0, 2.0]]), x(2, 3)])
for name, shape, more in (
    ("tall", (5, 2), {}),
    ("transposed", (3, 4), dict(order=(1, 0))),
    ("narrowed", (3, 5), dict(narrow=(1, 1, 3))),
    ("empty", (0, 3), {}),
    ("one", (1, 1), {}),
):
    Case("trace/" + name, "trace", torch.trace, [x(*shape, **more)])
Case("trace/edges", "trace", torch.trace, [x(data=[[1.0, NAN], [2.0, 3.0]])])
for name, a, b in (
    ("vectors", (2,), (3,)),
    ("scalar", (), (2, 3)),
    ("scalars", (), ()),
    ("dims", (2,), (2, 1, 3)),
    ("empty", (0, 2), (3, 2)),
    ("larger", (3, 4, 2), (2, 2, 3)),
):
    Case("kron/" + name, "kron", torch.kron, [x(*a), x(*b)])
Case("kron/mixed", "kron", torch.kron, [x(2, 2), x(2, dtype=F64)])
Case("kron/bools", "kron", torch.kron, [n(2, 2, dtype=BOOL), n(2, 1, dtype=BOOL)])
Case(
    "kron/transposed",
    "kron",
    lambda a, b: torch.kron(a.contiguous(), b),
    [x(3, 2, order=(1, 0)), x(2, 3)],
)
for name, a, b, dims in (
    ("none", (2, 3), (4,), 0),
    ("one", (2, 3), (3, 4), 1),
    ("all", (2, 3), (2, 3), 2),
    ("empty", (2, 0), (0, 3), 1),
):
    Case(
        "tensordot/" + name,
        "tensordot",
        lambda p, q: torch.tensordot(p, q, dims),
        [x(*a), x(*b)],
        dims=dims,
    )
for name, a, b, dims in (
    ("pairs", (2, 3, 4), (4, 5, 2), ([0, 2], [2, 0])),
    ("negative", (2, 3), (4, 3), ([-1], [-1])),
    ("no-pairs", (2,), (3,), ([], [])),
    ("broadcast", (2, 3), (1, 4), ([1], [0])),
    ("broadcast-first", (2, 1), (3, 4), ([1], [0])),
):
    Case(
        "tensordot/" + name,
        "tensordot",
        lambda p, q: torch.tensordot(p, q, dims),
        [x(*a), x(*b)],
        dims_a=dims[0],
        dims_b=dims[1],
    )
Case(
    "tensordot/transposed",
    "tensordot",
    lambda p, q: torch.tensordot(p, q, 1),
    [x(3, 2, order=(1, 0)), x(4, 3, order=(1, 0))],
    dims=1,
)

# ---- systems of equations ----
TYPES = (F32, F64, C64, C128)


def filled(*shape, dtype=F64, add=4.0, **more):
    """Matrices that are far from singular: random ones with a larger diagonal."""
    wants, make = x(*shape, dtype=dtype, **more)

    def made():
        memory, view = make()
        view.diagonal(dim1=-2, dim2=-1).add_(add)
        return memory, view

    return wants, made


def positive(*shape, dtype=F64, **more):
    wants, make = filled(*shape, dtype=dtype, **more)

    def made():
        memory, view = make()
        view.copy_(view @ view.mH)
        return memory, view

    return wants, made


def cholesky(a, upper):
    """The factor of the Hermitian part of a.

    PyTorch's gradient of other matrices has imaginary parts on the diagonal.
    """
    return L.cholesky((a + a.mH) / 2, upper=upper)


for d in TYPES:
    t = NAMES[d]
    for upper in (False, True):
        Case(
            "linalg_cholesky/%s-%s" % (t, upper),
            "linalg_cholesky",
            lambda a: cholesky(a, upper),
            [positive(3, 3, dtype=d)],
            upper=upper,
        )
    Case("linalg_solve/" + t, "linalg_solve", L.solve, [filled(3, 3, dtype=d), x(3, 2, dtype=d)])
    Case(
        "linalg_solve/vector-" + t, "linalg_solve", L.solve, [filled(3, 3, dtype=d), x(3, dtype=d)]
    )
    Case(
        "linalg_solve/right-" + t,
        "linalg_solve",
        lambda a, b: L.solve(a, b, left=False),
        [filled(3, 3, dtype=d), x(2, 3, dtype=d)],
        left=False,
    )
    Case("linalg_inv/" + t, "linalg_inv", L.inv, [filled(3, 3, dtype=d)])
    Case("linalg_det/" + t, "linalg_det", L.det, [x(3, 3, dtype=d)])
    Case("linalg_slogdet/" + t, "linalg_slogdet", lambda a: tuple(L.slogdet(a)), [x(3, 3, dtype=d)])
    for upper in (False, True):
        for left in (True, False):
            for unit in (False, True):
                Case(
                    "linalg_solve_triangular/%s-%s%s%s" % (t, upper, left, unit),
                    "linalg_solve_triangular",
                    lambda a, b: L.solve_triangular(
                        a, b, upper=upper, left=left, unitriangular=unit
                    ),
                    [filled(3, 3, dtype=d, add=2.0), x(*((3, 2) if left else (2, 3)), dtype=d)],
                    upper=upper,
                    left=left,
                    unitriangular=unit,
                )
    for shape in ((3, 3), (4, 2), (2, 4)):
        Case(
            "linalg_qr/%s-%s" % (row(shape), t),
            "linalg_qr",
            lambda a: tuple(L.qr(a)),
            [x(*shape, dtype=d)],
        )

for name, shape, more in (
    ("batch", (2, 3, 3), {}),
    ("batches", (2, 1, 2, 2), {}),
    ("one", (1, 1), {}),
    ("empty", (0, 0), {}),
    ("no-batch", (0, 3, 3), {}),
    ("transposed", (2, 3, 3), dict(order=(1, 2, 0))),
    ("narrowed", (4, 3), dict(narrow=(0, 1, 3))),
    ("expanded", (1, 3, 3), dict(expand=(2, 3, 3))),
    ("larger", (8, 8), {}),
):
    shift = 0.0 if name == "expanded" else 6.0
    if name == "transposed":
        shape = (3, 2, 3)
    make = (
        (lambda: filled(*shape, add=shift, **more))
        if shift
        else (lambda: x(*shape, dtype=F64, **more))
    )
    Case("linalg_inv/" + name, "linalg_inv", L.inv, [make()])
    Case("linalg_det/" + name, "linalg_det", L.det, [make()])
    Case("linalg_slogdet/" + name, "linalg_slogdet", lambda a: tuple(L.slogdet(a)), [make()])
    Case("linalg_qr/" + name, "linalg_qr", lambda a: tuple(L.qr(a)), [make()])
    if "batch" in name or name in ("one", "empty", "larger"):
        Case("linalg_cholesky/" + name, "linalg_cholesky", L.cholesky, [positive(*shape)])
for name, a, b in (
    ("batch", (2, 3, 3), (2, 3, 2)),
    ("batch-vectors", (2, 3, 3), (2, 3)),
    ("one-vector", (2, 3, 3), (3,)),
    ("broadcast", (2, 1, 3, 3), (4, 3, 1)),
    ("one-right", (2, 3, 3), (3, 2)),
    ("one-left", (3, 3), (2, 3, 2)),
    ("empty", (0, 0), (0, 2)),
    ("no-right", (3, 3), (3, 0)),
    ("no-batch", (0, 3, 3), (0, 3, 2)),
):
    Case("linalg_solve/" + name, "linalg_solve", L.solve, [filled(*a, add=6.0), x(*b, dtype=F64)])
Case(
    "linalg_solve/transposed",
    "linalg_solve",
    L.solve,
    [filled(3, 3, order=(1, 0)), x(2, 3, dtype=F64, order=(1, 0))],
)
Case(
    "linalg_solve/narrowed",
    "linalg_solve",
    L.solve,
    [filled(5, 3, narrow=(0, 1, 3)), x(3, 4, dtype=F64, narrow=(1, 1, 2))],
)
for name, a, b in (
    ("batch", (2, 3, 3), (2, 3, 2)),
    ("broadcast", (2, 1, 3, 3), (4, 3, 1)),
    ("empty", (0, 0), (0, 2)),
    ("no-right", (3, 3), (3, 0)),
):
    Case(
        "linalg_solve_triangular/" + name,
        "linalg_solve_triangular",
        lambda p, q: L.solve_triangular(p, q, upper=True),
        [filled(*a), x(*b, dtype=F64)],
        upper=True,
    )
Case(
    "linalg_solve_triangular/singular",
    "linalg_solve_triangular",
    lambda p, q: L.solve_triangular(p, q, upper=True),
    [n(data=[[1.0, 2.0], [0.0, 0.0]]), n(data=[[1.0], [3.0]])],
    upper=True,
)
Case("linalg_det/singular", "linalg_det", L.det, [n(data=[[1.0, 2.0], [2.0, 4.0]], dtype=F64)])
Case(
    "linalg_slogdet/singular",
    "linalg_slogdet",
    lambda a: tuple(L.slogdet(a)),
    [n(data=[[1.0, 2.0], [2.0, 4.0]], dtype=F64)],
)
Case("linalg_det/nan", "linalg_det", L.det, [n(data=[[NAN, 2.0], [2.0, 4.0]])])
for shape in ((4, 2), (2, 4), (3, 3), (3, 0), (0, 3)):
    Case(
        "linalg_qr/complete-" + row(shape),
        "linalg_qr",
        lambda a: tuple(L.qr(a, "complete")),
        [x(*shape, dtype=F64, grad=shape[0] <= shape[1])],
        mode="complete",
    )
    Case(
        "linalg_qr/r-" + row(shape),
        "linalg_qr",
        lambda a: tuple(L.qr(a, "r")),
        [n(*shape, dtype=F64)],
        mode="r",
    )

# ---- norms, covariance, what is computed with the others ----
for d in FLOATS:
    Case("linalg_vector_norm/" + NAMES[d], "linalg_vector_norm", L.vector_norm, [x(2, 3, dtype=d)])
    Case("linalg_matrix_norm/" + NAMES[d], "linalg_matrix_norm", L.matrix_norm, [x(2, 3, dtype=d)])
    Case(
        "renorm/" + NAMES[d],
        "renorm",
        lambda a: torch.renorm(a, 2, 0, 1.5),
        [x(3, 4, dtype=d)],
        p=2.0,
        dim=0,
        maxnorm=1.5,
    )
for order in (0, 1, 2, 3.5, INF, -INF, -2):
    Case(
        "linalg_vector_norm/%s" % order,
        "linalg_vector_norm",
        lambda a: L.vector_norm(a, order, [1], True),
        [x(3, 4, dtype=F64)],
        ord=float(order),
        dims=[1],
        keepdim=True,
    )
for word in ("fro", "nuc", "2", "-2", "1", "-1", "inf", "-inf"):
    order = word if word in ("fro", "nuc") else float(word)
    for name, shape, dims, keep in (
        ("plain", (3, 4), None, False),
        ("batch", (2, 3, 2), None, True),
        ("dims", (3, 2, 4), [0, 2], False),
        ("turned", (3, 2, 4), [2, 0], True),
    ):
        Case(
            "linalg_matrix_norm/%s-%s" % (name, word),
            "linalg_matrix_norm",
            lambda a: L.matrix_norm(a, order, dims or (-2, -1), keep),
            [x(*shape, dtype=F64)],
            ord=word,
            keepdim=keep,
            **({"dims": dims} if dims else {})
        )
Case("linalg_matrix_norm/complex", "linalg_matrix_norm", L.matrix_norm, [x(2, 3, dtype=C64)])
for name, shape, p, dim, most in (
    ("one", (3, 4), 1, 1, 2.0),
    ("infinity", (3, 4), INF, -1, 1.0),
    ("three", (2, 3, 2), 3, 1, 1.0),
    ("zero", (2, 3), 2, 0, 0.0),
    ("empty", (0, 3), 2, 0, 1.0),
):
    Case(
        "renorm/" + name,
        "renorm",
        lambda a: torch.renorm(a, p, dim, most),
        [x(*shape, dtype=F64)],
        p=float(p),
        dim=dim,
        maxnorm=most,
    )


def cov(a, frequencies, weights):
    return torch.cov(a)


for d in (F32, F64, C64):
    Case("cov/" + NAMES[d], "cov", cov, [x(3, 5, dtype=d), None, None])
    Case("corrcoef/" + NAMES[d], "corrcoef", torch.corrcoef, [x(3, 5, dtype=d)])
for name, shape in (
    ("vector", (5,)),
    ("scalar", ()),
    ("one-variable", (1, 4)),
    ("no-variables", (0, 3)),
):
    Case(
        "cov/" + name,
        "cov",
        lambda a, f, w: torch.cov(a, correction=0),
        [x(*shape, dtype=F64), None, None],
        correction=0,
    )
Case("corrcoef/vector", "corrcoef", torch.corrcoef, [x(5, dtype=F64)])
Case("cov/transposed", "cov", cov, [x(5, 3, dtype=F64, order=(1, 0)), None, None])
for name, f, a in (("frequencies", True, False), ("weights", False, True), ("both", True, True)):
    for correction in (0, 1, 2):
        Case(
            "cov/%s-%d" % (name, correction),
            "cov",
            lambda t, g, h: torch.cov(t, correction=correction, fweights=g, aweights=h),
            [
                x(3, 4, dtype=F64),
                n(4, dtype=I64, low=1, high=4) if f else None,
                n(4, dtype=F64, positive=True) if a else None,
            ],
            correction=correction,
        )
for d in TYPES:
    for shape in ((3, 3), (4, 2), (2, 4)):
        Case(
            "linalg_pinv/%s-%s" % (row(shape), NAMES[d]),
            "linalg_pinv",
            L.pinv,
            [filled(*shape, dtype=d)],
        )
        Case(
            "linalg_lstsq/%s-%s" % (row(shape), NAMES[d]),
            "linalg_lstsq",
            lambda a, b: L.pinv(a) @ b,
            [filled(*shape, dtype=d), x(shape[0], 2, dtype=d)],
        )
    wide = (
        C128 if d.is_complex else F64
    )  # PyTorch's derivative subtracts numbers that are almost equal
    Case(
        "linalg_householder_product/" + NAMES[d],
        "linalg_householder_product",
        lambda a, b: L.householder_product(a.to(wide), b.to(wide)).to(d),
        [x(4, 3, dtype=d), x(2, dtype=d)],
    )
    Case("linalg_matrix_exp/" + NAMES[d], "linalg_matrix_exp", L.matrix_exp, [x(3, 3, dtype=d)])
Case(
    "linalg_pinv/rank",
    "linalg_pinv",
    L.pinv,
    [n(data=[[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], dtype=F64)],
)
Case(
    "linalg_pinv/tolerance",
    "linalg_pinv",
    lambda a: L.pinv(a, atol=1.0, rtol=0.5),
    [n(data=[[4.0, 0.0], [0.0, 1.5]], dtype=F64)],
    atol=1.0,
    rtol=0.5,
)
Case(
    "linalg_pinv/absolute",
    "linalg_pinv",
    lambda a: L.pinv(a, atol=2.0),
    [n(data=[[4.0, 0.0], [0.0, 1.5]], dtype=F64)],
    atol=2.0,
)
Case(
    "linalg_pinv/hermitian",
    "linalg_pinv",
    lambda a: L.pinv(a, hermitian=True),
    [n(data=[[2.0, 1.0], [1.0, -3.0]], dtype=F64)],
    hermitian=True,
)
Case("linalg_pinv/batch", "linalg_pinv", L.pinv, [filled(2, 3, 2)])
Case("linalg_pinv/empty", "linalg_pinv", L.pinv, [x(3, 0, dtype=F64)])
Case(
    "linalg_lstsq/vector",
    "linalg_lstsq",
    lambda a, b: L.pinv(a) @ b,
    [filled(4, 2), x(4, dtype=F64)],
)
Case(
    "linalg_lstsq/batch",
    "linalg_lstsq",
    lambda a, b: (L.pinv(a) @ b[..., None])[..., 0],
    [filled(2, 4, 2), x(2, 4, dtype=F64)],
)
Case(
    "linalg_householder_product/batch",
    "linalg_householder_product",
    L.householder_product,
    [x(2, 3, 3, dtype=F64), x(2, 3, dtype=F64)],
)
Case(
    "linalg_householder_product/none",
    "linalg_householder_product",
    lambda a, t: L.householder_product(a, t),
    [n(3, 2, dtype=F64), n(0, dtype=F64)],
)
Case("linalg_matrix_exp/batch", "linalg_matrix_exp", L.matrix_exp, [x(2, 2, 2, dtype=F64)])
Case(
    "linalg_matrix_exp/large",
    "linalg_matrix_exp",
    L.matrix_exp,
    [x(data=[[4.0, 9.0], [-8.0, 3.0]], dtype=F64)],
)
Case("linalg_matrix_exp/empty", "linalg_matrix_exp", L.matrix_exp, [x(0, 0, dtype=F64)])
