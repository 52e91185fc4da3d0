/* SPDX-License-Identifier: MIT
 *
 * Vectors of type T, and the passes of Fourier transforms of columns (fft/plan.h). LIST(x) is the
 * list x of simd/fft.c for a vector of T. */

typedef T NAME(lanes) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
#define V NAME(lanes)
enum { NAME(LANES) = BYTES / sizeof(T) };

TN__INTO_LOOPS V NAME(low)(V a, V b)
{
    return __builtin_shufflevector(a, b, LIST(LOW));
}

TN__INTO_LOOPS V NAME(high)(V a, V b)
{
    return __builtin_shufflevector(a, b, LIST(HIGH));
}

TN__INTO_LOOPS V NAME(even)(V a, V b)
{
    return __builtin_shufflevector(a, b, LIST(EVEN));
}

TN__INTO_LOOPS V NAME(odd)(V a, V b)
{
    return __builtin_shufflevector(a, b, LIST(ODD));
}

TN__INTO_LOOPS V NAME(back)(V a)
{
    return __builtin_shufflevector(a, a, LIST(BACK));
}

/* ---- complex numbers ------------------------------------------------------------------------- */

typedef struct {
    V re, im;
} NAME(pair);
#define PAIR NAME(pair)

TN__INTO_LOOPS PAIR NAME(get)(const V *x)
{
    return (PAIR){ x[0], x[1] };
}

TN__INTO_LOOPS PAIR NAME(plus)(PAIR a, PAIR b)
{
    return (PAIR){ a.re + b.re, a.im + b.im };
}

TN__INTO_LOOPS PAIR NAME(minus)(PAIR a, PAIR b)
{
    return (PAIR){ a.re - b.re, a.im - b.im };
}

/* a - i b */
TN__INTO_LOOPS PAIR NAME(minus_i)(PAIR a, PAIR b)
{
    return (PAIR){ a.re + b.im, a.im - b.re };
}

/* a + i b */
TN__INTO_LOOPS PAIR NAME(plus_i)(PAIR a, PAIR b)
{
    return (PAIR){ a.re - b.im, a.im + b.re };
}

/* a + r b, with a real number r */
TN__INTO_LOOPS PAIR NAME(plus_times)(PAIR a, T r, PAIR b)
{
    return (PAIR){ a.re + r * b.re, a.im + r * b.im };
}

TN__INTO_LOOPS PAIR NAME(times)(PAIR a, PAIR b)
{
    return (PAIR){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

/* Stores a, multiplied by the complex number at w if it is `turned`. */
TN__INTO_LOOPS void NAME(put)(V *y, PAIR a, const T *w, bool turned)
{
    if (turned)
        a = (PAIR){ a.re * w[0] - a.im * w[1], a.re * w[1] + a.im * w[0] };
    y[0] = a.re;
    y[1] = a.im;
}

/* ---- small transforms ------------------------------------------------------------------------ */

/* A step transforms the elements x[k * from] and stores the results, multiplied by the numbers of
 * w if they are `turned`, in y[k * to]. */
typedef void NAME(step)(const struct tn__fft_pass *pass, const V *x, int64_t from, V *y, int64_t to,
                        const T *w, bool turned);

TN__INTO_LOOPS void NAME(step_2)(const struct tn__fft_pass *pass, const V *x, int64_t from, V *y,
                                 int64_t to, const T *w, bool turned)
{
    PAIR a = NAME(get)(x), b = NAME(get)(x + from);
    (void)pass;
    NAME(put)(y, NAME(plus)(a, b), w, false);
    NAME(put)(y + to, NAME(minus)(a, b), w, turned);
}

TN__INTO_LOOPS void NAME(step_3)(const struct tn__fft_pass *pass, const V *x, int64_t from, V *y,
                                 int64_t to, const T *w, bool turned)
{
    PAIR a = NAME(get)(x), b = NAME(get)(x + from), c = NAME(get)(x + 2 * from);
    PAIR sum = NAME(plus)(b, c), difference = NAME(minus)(b, c);
    PAIR middle = NAME(plus_times)(a, (T)-0.5, sum);
    T sine = (T)0.86602540378443864676;
    PAIR side = { difference.re * sine, difference.im * sine };
    (void)pass;
    NAME(put)(y, NAME(plus)(a, sum), w, false);
    NAME(put)(y + to, NAME(minus_i)(middle, side), w, turned);
    NAME(put)(y + 2 * to, NAME(plus_i)(middle, side), w + 2, turned);
}

TN__INTO_LOOPS void NAME(step_4)(const struct tn__fft_pass *pass, const V *x, int64_t from, V *y,
                                 int64_t to, const T *w, bool turned)
{
    PAIR a = NAME(get)(x), b = NAME(get)(x + from), c = NAME(get)(x + 2 * from),
         d = NAME(get)(x + 3 * from);
    PAIR ac = NAME(plus)(a, c), bd = NAME(plus)(b, d), a_c = NAME(minus)(a, c),
         b_d = NAME(minus)(b, d);
    (void)pass;
    NAME(put)(y, NAME(plus)(ac, bd), w, false);
    NAME(put)(y + to, NAME(minus_i)(a_c, b_d), w, turned);
    NAME(put)(y + 2 * to, NAME(minus)(ac, bd), w + 2, turned);
    NAME(put)(y + 3 * to, NAME(plus_i)(a_c, b_d), w + 4, turned);
}

TN__INTO_LOOPS void NAME(step_5)(const struct tn__fft_pass *pass, const V *x, int64_t from, V *y,
                                 int64_t to, const T *w, bool turned)
{
    const T cos1 = (T)0.30901699437494742410, cos2 = (T)-0.80901699437494742410,
            sin1 = (T)0.95105651629515357212, sin2 = (T)0.58778525229247312917;
    PAIR a = NAME(get)(x), b = NAME(get)(x + from), c = NAME(get)(x + 2 * from),
         d = NAME(get)(x + 3 * from), e = NAME(get)(x + 4 * from);
    PAIR be = NAME(plus)(b, e), cd = NAME(plus)(c, d), b_e = NAME(minus)(b, e),
         c_d = NAME(minus)(c, d);
    PAIR middle1 = NAME(plus_times)(NAME(plus_times)(a, cos1, be), cos2, cd),
         middle2 = NAME(plus_times)(NAME(plus_times)(a, cos2, be), cos1, cd);
    PAIR side1 = { sin1 * b_e.re + sin2 * c_d.re, sin1 * b_e.im + sin2 * c_d.im },
         side2 = { sin2 * b_e.re - sin1 * c_d.re, sin2 * b_e.im - sin1 * c_d.im };
    (void)pass;
    NAME(put)(y, NAME(plus)(a, NAME(plus)(be, cd)), w, false);
    NAME(put)(y + to, NAME(minus_i)(middle1, side1), w, turned);
    NAME(put)(y + 2 * to, NAME(minus_i)(middle2, side2), w + 2, turned);
    NAME(put)(y + 3 * to, NAME(plus_i)(middle2, side2), w + 4, turned);
    NAME(put)(y + 4 * to, NAME(plus_i)(middle1, side1), w + 6, turned);
}

TN__INTO_LOOPS void NAME(step_8)(const struct tn__fft_pass *pass, const V *x, int64_t from, V *y,
                                 int64_t to, const T *w, bool turned)
{
    const T half = (T)0.70710678118654752440;
    PAIR a = NAME(get)(x), b = NAME(get)(x + from), c = NAME(get)(x + 2 * from),
         d = NAME(get)(x + 3 * from), e = NAME(get)(x + 4 * from), f = NAME(get)(x + 5 * from),
         g = NAME(get)(x + 6 * from), h = NAME(get)(x + 7 * from);
    PAIR ae = NAME(plus)(a, e), cg = NAME(plus)(c, g), a_e = NAME(minus)(a, e),
         c_g = NAME(minus)(c, g);
    PAIR bf = NAME(plus)(b, f), dh = NAME(plus)(d, h), b_f = NAME(minus)(b, f),
         d_h = NAME(minus)(d, h);
    PAIR even0 = NAME(plus)(ae, cg), even1 = NAME(minus_i)(a_e, c_g), even2 = NAME(minus)(ae, cg),
         even3 = NAME(plus_i)(a_e, c_g);
    PAIR odd0 = NAME(plus)(bf, dh), odd1 = NAME(minus_i)(b_f, d_h), odd2 = NAME(minus)(bf, dh),
         odd3 = NAME(plus_i)(b_f, d_h);
    /* times exp(-2 pi i / 8), exp(-6 pi i / 8) */
    odd1 = (PAIR){ (odd1.re + odd1.im) * half, (odd1.im - odd1.re) * half };
    odd3 = (PAIR){ (odd3.im - odd3.re) * half, (odd3.re + odd3.im) * -half };
    (void)pass;
    NAME(put)(y, NAME(plus)(even0, odd0), w, false);
    NAME(put)(y + to, NAME(plus)(even1, odd1), w, turned);
    NAME(put)(y + 2 * to, NAME(minus_i)(even2, odd2), w + 2, turned);
    NAME(put)(y + 3 * to, NAME(plus)(even3, odd3), w + 4, turned);
    NAME(put)(y + 4 * to, NAME(minus)(even0, odd0), w + 6, turned);
    NAME(put)(y + 5 * to, NAME(minus)(even1, odd1), w + 8, turned);
    NAME(put)(y + 6 * to, NAME(plus_i)(even2, odd2), w + 10, turned);
    NAME(put)(y + 7 * to, NAME(minus)(even3, odd3), w + 12, turned);
}

/* Any odd radix. Results k and radix - k share the sums over pairs of elements j and radix - j. */
TN__INTO_LOOPS void NAME(step_any)(const struct tn__fft_pass *pass, const V *x, int64_t from, V *y,
                                   int64_t to, const T *w, bool turned)
{
    const T *root = pass->matrix;
    const int64_t radix = pass->radix, half = radix / 2;
    PAIR first = NAME(get)(x), all = first, sum[TN__FFT_LARGEST_PRIME / 2 + 1],
         difference[TN__FFT_LARGEST_PRIME / 2 + 1];
    for (int64_t j = 1; j <= half; j++) {
        PAIR a = NAME(get)(x + j * from), b = NAME(get)(x + (radix - j) * from);
        sum[j] = NAME(plus)(a, b);
        difference[j] = NAME(minus)(a, b);
        all = NAME(plus)(all, sum[j]);
    }
    NAME(put)(y, all, w, false);
    for (int64_t k = 1; k <= half; k++) {
        PAIR middle = first, side = { { 0 }, { 0 } };
        for (int64_t j = 1, power = k; j <= half; j++) {
            middle = NAME(plus_times)(middle, root[2 * power], sum[j]);
            side = NAME(plus_times)(side, root[2 * power + 1], difference[j]);
            power = power + k < radix ? power + k : power + k - radix;
        }
        NAME(put)(y + k * to, NAME(plus_i)(middle, side), w + 2 * (k - 1), turned);
        NAME(put)
        (y + (radix - k) * to, NAME(minus_i)(middle, side), w + 2 * (radix - k - 1), turned);
    }
}

/* ---- passes ---------------------------------------------------------------------------------- */

TN__INTO_LOOPS void NAME(run_pass)(const struct tn__fft_pass *pass, int64_t radix, const V *x, V *y,
                                   NAME(step) * step)
{
    const int64_t parts = pass->parts, run = pass->run;
    const T *w = pass->roots;
    for (int64_t q = 0; q < run; q++) /* the roots of part 0 are 1 */
        step(pass, x + 2 * q, 2 * run * parts, y + 2 * q, 2 * run, w, false);
    for (int64_t i = 1; i < parts; i++)
        for (int64_t q = 0; q < run; q++)
            step(pass, x + 2 * (q + run * i), 2 * run * parts, y + 2 * (q + run * radix * i),
                 2 * run, w + 2 * (radix - 1) * i, true);
}

static void NAME(pass)(const struct tn__fft_pass *pass, const V *x, V *y)
{
    switch (pass->radix) {
    case 2: NAME(run_pass)(pass, 2, x, y, NAME(step_2)); break;
    case 3: NAME(run_pass)(pass, 3, x, y, NAME(step_3)); break;
    case 4: NAME(run_pass)(pass, 4, x, y, NAME(step_4)); break;
    case 5: NAME(run_pass)(pass, 5, x, y, NAME(step_5)); break;
    case 8: NAME(run_pass)(pass, 8, x, y, NAME(step_8)); break;
    default: NAME(run_pass)(pass, pass->radix, x, y, NAME(step_any));
    }
}

static void *NAME(columns)(const struct tn__fft_columns *plan, void *x, void *y)
{
    for (int32_t i = 0; i < plan->passes; i++) {
        void *from = x;
        NAME(pass)(&plan->pass[i], x, y);
        x = y;
        y = from;
    }
    return x;
}
