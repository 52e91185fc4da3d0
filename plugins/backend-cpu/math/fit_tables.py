#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints float64_tables.h: tables of 16 numbers for math/float64_avx512.h, and after them, as
comments, the polynomials there. These are interpolated at Chebyshev's points, which is off by
little more than the best polynomial. Needs mpmath.
"""

from mpmath import cos, erf, erfc, exp, expm1, log, log1p, mp, mpf, nint, pi, sin, sqrt

mp.dps = 60
TINY = mpf(10) ** -20
HEAD = """/* SPDX-License-Identifier: MIT
 *
 * Made by fit_tables.py: tables of math/float64_avx512.h, of 16 numbers each, which two registers
 * hold. */
#ifndef TN_BACKEND_CPU_MATH_FLOAT64_TABLES_H
#define TN_BACKEND_CPU_MATH_FLOAT64_TABLES_H

#define TN__TABLE(name) static const double name[16] __attribute__((aligned(64)))
"""


def rounded(x):
    return mpf(float(x))


def cut(x, bits):
    """Returns the multiple of 2^-bits next to x."""
    return nint(x * mpf(2) ** bits) / mpf(2) ** bits


def polynomial(f, low, high, n):
    """Returns the n coefficients of the polynomial that is f at Chebyshev's points."""
    low, high = mpf(low), mpf(high)
    at = [(low + high) / 2 - (high - low) / 2 * cos(pi * (i + mpf(1) / 2) / n) for i in range(n)]
    c = [f(x) for x in at]
    for j in range(1, n):
        for i in range(n - 1, j - 1, -1):
            c[i] = (c[i] - c[i - 1]) / (at[i] - at[i - j])
    p = [mpf(0)] * n
    for i in range(n - 1, -1, -1):
        p = [(p[k - 1] if k else c[i]) - at[i] * p[k] for k in range(n)]
    return p


def lines(values, indent):
    text, line = [], indent
    for x in values:
        word = float(x).hex() + ','
        if len(line) + len(word) + 1 > 98:
            text.append(line.rstrip())
            line = indent
        line += word + ' '
    return '\n'.join(text + [line.rstrip()])


def table(name, values, comment=None):
    print('%sTN__TABLE(%s) = {' % ('\n/* %s */\n' % comment if comment else '\n', name))
    print('%s\n};' % lines(values, '    '))


def rows(name, all_rows, comment):
    print('\n/* %s */\nstatic const double %s' % (comment, name), end='')
    print('[%d][16] __attribute__((aligned(64))) = {' % len(all_rows))
    for row in all_rows:
        print('    {\n%s\n    },' % lines(row, '        '))
    print('};')


def exponentials():
    exact = [mpf(2) ** (mpf(j) / 16) for j in range(16)]
    table('tn__power_table', exact, '2^(j/16)')
    table(
        'tn__power_rest',
        [(x - rounded(x)) / rounded(x) for x in exact],
        'What rounding took from tn__power_table, divided by it.',
    )


def logarithms():
    inverse = [mpf(round(float(16 / (i + mpf(33) / 2)) * 512)) / 512 for i in range(16)]
    inverse[0], inverse[15] = mpf(1), mpf(1) / 2
    table(
        'tn__inverse_table',
        inverse,
        'Numbers c next to 1/m for m from 1 + j/16 to 1 + (j + 1)/16; 1 and 1/2 at the ends, so '
        'that\n * logarithms near 0 are precise.',
    )
    for name, base in (('ln', mpf(1)), ('log2', log(mpf(2))), ('log10', log(mpf(10)))):
        exact = [-log(c) / base for c in inverse]
        table(
            'tn__%s_high' % name,
            [cut(x, 40) for x in exact],
            '-%s c in two parts; the first is a multiple of 2^-40.' % name,
        )
        table('tn__%s_low' % name, [x - cut(x, 40) for x in exact])


def circles():
    for name, f in (('sine', sin), ('cosine', cos)):
        exact = [f(j * pi / 16) for j in range(16)]
        exact = [mpf(0) if abs(x) < TINY else x for x in exact]
        table(
            'tn__%s_table' % name,
            exact,
            'The %s of j pi/16, rounded, and what rounding took.' % name,
        )
        table('tn__%s_rest' % name, [x - rounded(x) for x in exact])


def error_function():
    width, centers, columns = rounded(0.383), [mpf(0)], []
    for i in range(1, 16):  # where erf is almost a float64
        best = None
        for k in range(3000):
            c = mpf(float(i * width) + k * 2.0**-40 * (1 if k & 1 else -1))
            off = abs(erf(c) - rounded(erf(c))) * mpf(2) ** 53
            if best is None or off < best[0]:
                best = off, c
            if off < 0.003:
                break
        centers.append(best[1])
    for c in centers:

        def slope(d, c=c):
            flat = 2 / sqrt(pi) * exp(-c * c)
            return (erf(c + d) - erf(c)) / d if abs(d) > TINY else flat

        half = width / 2 + mpf('1e-6')
        p = polynomial(slope, 0 if c == 0 else -half, half, 13)
        columns.append([erf(c), p[0] - 1] + p[1:])
    table(
        'tn__erf_center',
        centers,
        'Where the polynomials of tn__erf_table have their origins d = 0: next to j 0.383, where '
        'the error\n * function is almost a float64.',
    )
    rows(
        'tn__erf_table',
        list(zip(*columns)),
        'erf(center + d) = row 0 + d + d (row 1 + d row 2 + ...)',
    )


def complement():
    def scaled(x):
        with mp.workdps(200):
            return exp(x * x) * erfc(x)

    centers, columns = [None] * 16, [None] * 16
    for k in range(16):  # quarters of [1, 2), [2, 4), [4, 8), [8, 16), by the bits of 1 + x
        power, quarter = mpf(2) ** (k // 4), k % 4
        c, half = power * (mpf(2 * quarter + 9) / 8) - 1, power / 8
        at = ((1023 + k // 4) % 4) * 4 + quarter
        centers[at] = c
        columns[at] = polynomial(lambda d, c=c: scaled(c + d), -half, half, 14)
    table('tn__erfc_center', centers, 'The origins of the polynomials of tn__erfc_table.')
    rows(
        'tn__erfc_table',
        list(zip(*columns)),
        'e^(x^2) erfc(x) = row 0 + d (row 1 + d row 2 + ...), x = center + d',
    )


def series(name, f, low, high, n):
    print('/* %s: %s */' % (name, ' '.join(float(c).hex() for c in polynomial(f, low, high, n))))


if __name__ == '__main__':
    print(HEAD, end='')
    exponentials()
    logarithms()
    circles()
    error_function()
    complement()
    print('\n#undef TN__TABLE\n\n#endif')
    h = log(mpf(2)) / 32 * mpf('1.0001')
    series('exp', lambda r: (expm1(r) - r) / r**2 if abs(r) > TINY else mpf(1) / 2, -h, h, 5)
    low, high = -mpf(1) / 32, mpf(1) / 16
    series('log', lambda r: (log1p(r) - r) / r**2 if abs(r) > TINY else -mpf(1) / 2, low, high, 9)
    h = (pi / 32 * mpf('1.0001')) ** 2
    series('sin', lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z, 0, h, 4)
    series('cos', lambda z: (cos(sqrt(z)) - 1) / z, 0, h, 4)
