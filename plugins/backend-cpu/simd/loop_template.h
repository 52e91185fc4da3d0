/* SPDX-License-Identifier: MIT
 *
 * Inner loops over one, two and three operands of type T. The operation is a function that the
 * compiler inlines. Each frequent combination of strides has a loop of its own. NAME(number)
 * converts a number that is passed with the call to T. */

typedef T NAME(formula)(T a, T b, T p, T q, T r);
typedef uint8_t NAME(comparison)(T a, T b);

/* y may be equal to a or b. Then iteration i reads and writes only element i, so that the loops may
 * be vectorized (TN__IVDEP, which is in TN__EACH). */
TN__INTO_LOOPS void NAME(unary_loop)(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa,
                                     const double *param, NAME(formula) * of)
{
    const T p = NAME(number)(param[0]), q = NAME(number)(param[1]), r = NAME(number)(param[2]);
    const int64_t w = (int64_t)sizeof(T);
    T *y = (T *)(void *)yp;
    const T *pa = (const T *)(const void *)ap;
    if (sy == w && sa == w) {
        TN__EACH y[i] = of(pa[i], 0, p, q, r);
    } else {
        for (int64_t i = 0; i < n; i++) {
            const T a = *(const T *)(const void *)(ap + i * sa);
            *(T *)(void *)(yp + i * sy) = of(a, 0, p, q, r);
        }
    }
}

TN__INTO_LOOPS void NAME(binary_loop)(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa,
                                      const char *bp, int64_t sb, const double *param,
                                      NAME(formula) * of)
{
    const T p = NAME(number)(param[0]), q = NAME(number)(param[1]), r = NAME(number)(param[2]);
    const int64_t w = (int64_t)sizeof(T);
    T *y = (T *)(void *)yp;
    const T *pa = (const T *)(const void *)ap, *pb = (const T *)(const void *)bp;
    if (sy == w && sa == w && sb == w) {
        TN__EACH y[i] = of(pa[i], pb[i], p, q, r);
    } else if (sy == w && sa == w && sb == 0) {
        const T b = n > 0 ? *pb : 0;
        TN__EACH y[i] = of(pa[i], b, p, q, r);
    } else if (sy == w && sa == 0 && sb == w) {
        const T a = n > 0 ? *pa : 0;
        TN__EACH y[i] = of(a, pb[i], p, q, r);
    } else {
        for (int64_t i = 0; i < n; i++) {
            const T a = *(const T *)(const void *)(ap + i * sa);
            const T b = *(const T *)(const void *)(bp + i * sb);
            *(T *)(void *)(yp + i * sy) = of(a, b, p, q, r);
        }
    }
}

/* Comparisons, whose results are bytes. */
TN__INTO_LOOPS void NAME(compare_loop)(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa,
                                       const char *bp, int64_t sb, NAME(comparison) * of)
{
    const int64_t w = (int64_t)sizeof(T);
    uint8_t *y = (uint8_t *)yp;
    const T *pa = (const T *)(const void *)ap, *pb = (const T *)(const void *)bp;
    if (sy == 1 && sa == w && sb == w) {
        TN__EACH y[i] = of(pa[i], pb[i]);
    } else if (sy == 1 && sa == w && sb == 0) {
        const T b = n > 0 ? *pb : 0;
        TN__EACH y[i] = of(pa[i], b);
    } else {
        for (int64_t i = 0; i < n; i++) {
            const T a = *(const T *)(const void *)(ap + i * sa);
            const T b = *(const T *)(const void *)(bp + i * sb);
            *(uint8_t *)(yp + i * sy) = of(a, b);
        }
    }
}

/* at[0 .. 3] are the result, a, b and c; `number` is p in the formula. */
typedef T NAME(formula3)(T a, T b, T c, T p);
TN__INTO_LOOPS void NAME(ternary_loop)(int64_t n, char *const *at, const int64_t *stride,
                                       double number, NAME(formula3) * of)
{
    const int64_t w = (int64_t)sizeof(T);
    const T p = (T)number;
    if (stride[0] == w && stride[1] == w && stride[2] == w && stride[3] == w) {
        T *y = (T *)(void *)at[0];
        const T *a = (const T *)(const void *)at[1], *b = (const T *)(const void *)at[2],
                *c = (const T *)(const void *)at[3];
        TN__EACH y[i] = of(a[i], b[i], c[i], p);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const T a = *(const T *)(const void *)(at[1] + i * stride[1]),
                b = *(const T *)(const void *)(at[2] + i * stride[2]),
                c = *(const T *)(const void *)(at[3] + i * stride[3]);
        *(T *)(void *)(at[0] + i * stride[0]) = of(a, b, c, p);
    }
}
