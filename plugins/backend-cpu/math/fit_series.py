#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the polynomials used in float64*.h: minimax approximations by Remez's algorithm (the
largest relative error is as small as possible), with coefficients rounded to float64. Needs mpmath.

    fit_series.py [NAME...]     prints all polynomials, or the named ones, and the largest relative
                                error of each
"""

import sys

from mpmath import (
    asin,
    atan,
    atanh,
    cos,
    erf,
    erfc,
    exp,
    expm1,
    log,
    log1p,
    lu_solve,
    matrix,
    mp,
    mpf,
    pi,
    sin,
    sqrt,
)

mp.dps = 45


def solve(points, values, weights, powers):
    """Returns the coefficients of p, and e, so that f(x) - p(x) = +-e / w(x) at the points, with
    alternating signs.
    """
    n = len(points)
    a, b = matrix(n, n), matrix(n, 1)
    for i in range(n):
        for j, k in enumerate(powers):
            a[i, j] = points[i] ** k
        a[i, n - 1] = (-1) ** i / weights[i]
        b[i] = values[i]
    x = lu_solve(a, b)
    return [x[j] for j in range(n - 1)], abs(x[n - 1])


def value(coefficients, x):
    y = mpf(0)
    for c in reversed(coefficients):
        y = y * x + c
    return y


def remez(grid, f, w, powers):
    """Returns the coefficients of the minimax polynomial, and its largest error.

    f and w are the values of the function and of the weight at the points of the grid; the powers
    are consecutive.
    """
    count, n = len(powers) + 1, len(grid)
    at = [round((1 - cos(pi * (2 * i + 1) / (2 * count))) / 2 * (n - 1)) for i in range(count)]
    for _ in range(30):
        c, e = solve([grid[i] for i in at], [f[i] for i in at], [w[i] for i in at], powers)
        error = [(f[i] - grid[i] ** powers[0] * value(c, grid[i])) * w[i] for i in range(n)]
        runs = []  # the position of the largest error in each run of errors with equal sign
        for i in range(n):
            if not runs or (error[runs[-1]] > 0) != (error[i] > 0):
                runs.append(i)
            elif abs(error[i]) > abs(error[runs[-1]]):
                runs[-1] = i
        while len(runs) > count:
            if len(runs) == count + 1:
                runs.pop(0 if abs(error[runs[0]]) < abs(error[runs[-1]]) else -1)
            else:
                k = min(range(len(runs)), key=lambda k: abs(error[runs[k]]))
                runs.pop(k)
                if 0 < k < len(runs):
                    runs.pop(k if abs(error[runs[k]]) < abs(error[runs[k - 1]]) else k - 1)
        if len(runs) < count:
            break
        at = runs
        if max(abs(error[i]) for i in runs) < e * mpf('1.01'):
            break
    return c, max(abs(x) for x in error)


def fit(name, f, w, low, high, count, ahead=0, points=60):
    """Prints the polynomial with `count` coefficients that approximates f on [low, high] with
    weight w. The first `ahead` coefficients are rounded one by one, and the others are fitted again
    to compensate for the rounding.
    """
    low, high, n = mpf(low), mpf(high), points * count
    grid = [(low + high) / 2 - (high - low) / 2 * cos(pi * (i + mpf(1) / 2) / n) for i in range(n)]
    values, weights, done = [f(x) for x in grid], [abs(w(x)) for x in grid], []
    rest = values
    for k in range(ahead + 1):
        c, _ = remez(grid, rest, weights, list(range(k, count)))
        if k < ahead:
            done.append(float(c[0]))
            rest = [r - mpf(done[-1]) * x**k for r, x in zip(rest, grid)]
    done += [float(x) for x in c]
    error = max(
        abs((y - value([mpf(d) for d in done], x)) * v) for x, y, v in zip(grid, values, weights)
    )
    print('%s: error 2^%.1f' % (name, log(error, 2)))
    for d in done:
        print('    %s,' % d.hex())


def of_square(g):
    """Returns z -> g(sqrt(z)), g as a function of the square of its argument."""
    return lambda z: g(sqrt(z))


def erfcx(x):
    """e^(x^2) erfc(x)"""
    with mp.workdps(mp.dps + 20):
        return exp(x * x) * erfc(x)


def erfc_part(u):
    """erfcx(z) / t with t = u + 1/2 = 3 / (3 + z)"""
    t = u + mpf(1) / 2
    return erfcx(3 / t - 3) / t


def erfinv_part(w):
    """erfinv(x) / x with w = -ln(1 - x^2)"""
    if w <= 0:
        return sqrt(pi) / 2
    x, rest = sqrt(-expm1(-w)), -expm1(log1p(-exp(-w)) / 2)
    c = 2 / (pi * mpf('0.147')) - w / 2
    y = sqrt(sqrt(c * c + w / mpf('0.147')) - c) if w > mpf(10) ** -8 else sqrt(pi * w) / 2
    for _ in range(6):  # Halley's method, with erf for small y and with erfc for large y
        over = ((erf(y) - x) if y < 0.5 else (rest - erfc(y))) * sqrt(pi) / 2 * exp(y * y)
        y -= over / (1 + y * over)
    return y / x


eighth = (pi / 4) ** 2 * mpf('1.001')
half = log(mpf(2)) / 2 * mpf('1.0001')
root = sqrt(mpf(2))
shift = mpf('3.125')
SERIES = {
    'exp': lambda: fit(
        'exp', lambda r: (expm1(r) - r) / r**2, lambda r: r**2 / expm1(r), -half, half, 11
    ),
    'log': lambda: fit(
        'log',
        lambda f: (log1p(f) - f + f * f / 2) / f**3,
        lambda f: f**3 / log1p(f),
        root / 2 - 1,
        root - 1,
        20,
    ),
    'sin': lambda: fit(
        'sin',
        of_square(lambda r: (sin(r) - r) / r**3),
        of_square(lambda r: r**3 / sin(r)),
        0,
        eighth,
        6,
        3,
    ),
    'cos': lambda: fit(
        'cos',
        of_square(lambda r: (cos(r) - 1 + r * r / 2) / r**4),
        of_square(lambda r: r**4 / cos(r)),
        0,
        eighth,
        6,
        3,
    ),
    'asin': lambda: fit(
        'asin',
        of_square(lambda s: (asin(s) - s) / s**3),
        of_square(lambda s: s**3 / asin(s)),
        0,
        mpf(1) / 4,
        12,
        2,
    ),
    'atan': lambda: fit(
        'atan',
        of_square(lambda s: (atan(s) - s) / s**3),
        of_square(lambda s: s**3 / atan(s)),
        0,
        1,
        20,
        3,
    ),
    'erf': lambda: fit(
        'erf', of_square(lambda s: erf(s) / s - 1), of_square(lambda s: s / erf(s)), 0, 1, 12, 2
    ),
    'erfc': lambda: fit(
        'erfc',
        erfc_part,
        lambda u: 1 / erfc_part(u),
        mpf(3) / 31 - mpf(1) / 2,
        mpf(1) / 2,
        23,
        points=20,
    ),
    'erfinv': lambda: fit(
        'erfinv',
        lambda u: erfinv_part(u + shift),
        lambda u: 1 / erfinv_part(u + shift),
        -shift,
        mpf('6.2147') - shift,
        24,
        points=8,
    ),
    'pow': lambda: fit(
        'pow',
        of_square(lambda s: (2 * atanh(s) - 2 * s - 2 * s**3 / 3) / s**5),
        of_square(lambda s: s**5 / atanh(s) / 2),
        0,
        ((root - 1) / (root + 1)) ** 2,
        8,
        2,
    ),
}

if __name__ == '__main__':
    for name in sys.argv[1:] or SERIES:
        SERIES[name]()
