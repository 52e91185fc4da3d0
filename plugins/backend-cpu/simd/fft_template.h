/* SPDX-License-Identifier: MIT
 *
 * Fourier transforms of type T: reading and writing columns, single transforms, and what turns
 * transforms of complex numbers into transforms of real numbers. Follows fft_passes_template.h.
 * `swap` is 1 to exchange real and imaginary parts, which makes a transform the inverse one. */

TN__INTO_LOOPS V NAME(load)(const void *at)
{
    return *(const V *)at;
}

TN__INTO_LOOPS void NAME(store)(void *at, V a)
{
    *(V *)at = a;
}

/* Reads one number of LANES lines: element `lane` of the result is at rows[lane] + offset. */
static V NAME(collect)(const char *const *rows, int64_t offset)
{
    T number[NAME(LANES)];
    for (int i = 0; i < NAME(LANES); i++)
        memcpy(&number[i], rows[i] + offset, sizeof(T));
    return NAME(load)(number);
}

static void NAME(spread)(int64_t count, char *const *rows, int64_t offset, V a)
{
    T number[NAME(LANES)];
    NAME(store)(number, a);
    for (int64_t i = 0; i < count; i++)
        memcpy(rows[i] + offset, &number[i], sizeof(T));
}

/* Transposes LANES vectors. Each round rotates the position of an element, a number made of the
 * bits of its vector's index and of its index in the vector, by one bit. All rounds together
 * exchange the two indices. */
TN__INTO_LOOPS void NAME(transpose)(V *v)
{
#pragma GCC unroll 4
    for (int round = 1; round < NAME(LANES); round *= 2) {
        V old[NAME(LANES)];
#pragma GCC unroll 16
        for (int i = 0; i < NAME(LANES); i++)
            old[i] = v[i];
#pragma GCC unroll 8
        for (int i = 0; i < NAME(LANES) / 2; i++) {
            v[2 * i] = NAME(low)(old[i], old[i + NAME(LANES) / 2]);
            v[2 * i + 1] = NAME(high)(old[i], old[i + NAME(LANES) / 2]);
        }
    }
}

/* ---- reading and writing columns ------------------------------------------------------------- */

static void NAME(read_rows)(int64_t n, const char *const *rows, void *to, int swap)
{
    const int half = NAME(LANES) / 2;
    const int64_t item = 2 * sizeof(T);
    V *y = to, v[NAME(LANES)];
    int64_t e = 0;
    for (; e + half <= n; e += half) {
#pragma GCC unroll 16
        for (int i = 0; i < NAME(LANES); i++)
            v[i] = NAME(load)(rows[i] + e * item);
        NAME(transpose)(v);
#pragma GCC unroll 8
        for (int i = 0; i < half; i++) {
            y[2 * (e + i) + swap] = v[2 * i];
            y[2 * (e + i) + !swap] = v[2 * i + 1];
        }
    }
    for (; e < n; e++) {
        y[2 * e + swap] = NAME(collect)(rows, e * item);
        y[2 * e + !swap] = NAME(collect)(rows, e * item + (int64_t)sizeof(T));
    }
}

static void NAME(write_rows)(int64_t n, int64_t count, char *const *rows, const void *from,
                             int swap, double scale)
{
    const int half = NAME(LANES) / 2;
    const int64_t item = 2 * sizeof(T);
    const V *x = from;
    const T factor = (T)scale;
    V v[NAME(LANES)];
    int64_t e = 0;
    for (; e + half <= n; e += half) {
#pragma GCC unroll 8
        for (int i = 0; i < half; i++) {
            v[2 * i] = x[2 * (e + i) + swap] * factor;
            v[2 * i + 1] = x[2 * (e + i) + !swap] * factor;
        }
        NAME(transpose)(v);
        if (count == NAME(LANES)) {
#pragma GCC unroll 16
            for (int i = 0; i < NAME(LANES); i++)
                NAME(store)(rows[i] + e * item, v[i]);
        } else
            for (int64_t i = 0; i < count; i++)
                NAME(store)(rows[i] + e * item, v[i]);
    }
    for (; e < n; e++) {
        NAME(spread)(count, rows, e * item, x[2 * e + swap] * factor);
        NAME(spread)(count, rows, e * item + (int64_t)sizeof(T), x[2 * e + !swap] * factor);
    }
}

static void NAME(read_columns)(int64_t n, const char *x, int64_t step, void *to, int swap)
{
    V *y = to;
    for (int64_t e = 0; e < n; e++) {
        V a = NAME(load)(x + e * step), b = NAME(load)(x + e * step + BYTES);
        y[2 * e + swap] = NAME(even)(a, b);
        y[2 * e + !swap] = NAME(odd)(a, b);
    }
}

static void NAME(write_columns)(int64_t n, char *y, int64_t step, const void *from, int swap,
                                double scale)
{
    const V *x = from;
    const T factor = (T)scale;
    for (int64_t e = 0; e < n; e++) {
        V re = x[2 * e + swap] * factor, im = x[2 * e + !swap] * factor;
        NAME(store)(y + e * step, NAME(low)(re, im));
        NAME(store)(y + e * step + BYTES, NAME(high)(re, im));
    }
}

static void NAME(read_strided)(int64_t n, const char *const *rows, int64_t step, int64_t gap,
                               void *to, int swap)
{
    V *y = to;
    for (int64_t e = 0; e < n; e++) {
        y[2 * e + swap] = NAME(collect)(rows, e * step);
        y[2 * e + !swap] = gap < 0 ? (V){ 0 } : NAME(collect)(rows, e * step + gap);
    }
}

static void NAME(write_strided)(int64_t n, int64_t count, char *const *rows, int64_t step,
                                int64_t gap, const void *from, int swap, double scale)
{
    const V *x = from;
    const T factor = (T)scale;
    for (int64_t e = 0; e < n; e++) {
        NAME(spread)(count, rows, e * step, x[2 * e + swap] * factor);
        if (gap >= 0)
            NAME(spread)(count, rows, e * step + gap, x[2 * e + !swap] * factor);
    }
}

/* ---- real numbers ---------------------------------------------------------------------------- */

/* A pair of elements of a transform: element k and its counterpart h - k. The functions below
 * convert pairs between a transform of h complex numbers and one of 2 h real numbers. */
typedef struct {
    PAIR front, rear;
} NAME(ends);

/* Twice the elements k and h - k of the transform of 2 h real numbers, from those of the transform
 * of h complex numbers, whose real and imaginary parts are the real numbers in turn.
 * w = exp(-2 pi i k / (2 h)) */
TN__INTO_LOOPS NAME(ends) NAME(split_ends)(PAIR front, PAIR rear, PAIR w)
{
    PAIR even = { front.re + rear.re, front.im - rear.im },
         odd = NAME(times)(w, (PAIR){ front.re - rear.re, front.im + rear.im });
    return (NAME(ends)){ { even.re + odd.im, even.im - odd.re },
                         { even.re - odd.im, -(even.im + odd.re) } };
}

/* The reverse of split_ends() except for a factor of 2, for the inverse transform. */
TN__INTO_LOOPS NAME(ends) NAME(join_ends)(PAIR front, PAIR rear, PAIR w)
{
    PAIR even = { front.re + rear.re, front.im - rear.im },
         odd = NAME(times)((PAIR){ w.re, -w.im }, (PAIR){ front.re - rear.re, front.im + rear.im });
    return (NAME(ends)){ { even.re - odd.im, even.im + odd.re },
                         { even.re + odd.im, odd.re - even.im } };
}

static void NAME(split_columns)(int64_t h, const void *halves, const void *from, void *to)
{
    const V *x = from;
    const T *w = halves;
    V *y = to;
    y[0] = (x[0] + x[1]) * 2;
    y[2 * h] = (x[0] - x[1]) * 2;
    y[1] = y[2 * h + 1] = (V){ 0 };
    for (int64_t k = 1; k <= h / 2; k++) {
        PAIR root = { (V){ 0 } + w[2 * k], (V){ 0 } + w[2 * k + 1] };
        NAME(ends) out = NAME(split_ends)(NAME(get)(x + 2 * k), NAME(get)(x + 2 * (h - k)), root);
        NAME(put)(y + 2 * k, out.front, NULL, false);
        NAME(put)(y + 2 * (h - k), out.rear, NULL, false);
    }
}

static void NAME(join_columns)(int64_t h, const void *halves, const void *from, void *to)
{
    const V *x = from;
    const T *w = halves;
    V *y = to;
    /* exchanged, because an inverse transform follows */
    y[1] = x[0] + x[2 * h];
    y[0] = x[0] - x[2 * h];
    for (int64_t k = 1; k <= h / 2; k++) {
        PAIR root = { (V){ 0 } + w[2 * k], (V){ 0 } + w[2 * k + 1] };
        NAME(ends) out = NAME(join_ends)(NAME(get)(x + 2 * k), NAME(get)(x + 2 * (h - k)), root);
        NAME(put)(y + 2 * k, (PAIR){ out.front.im, out.front.re }, NULL, false);
        NAME(put)(y + 2 * (h - k), (PAIR){ out.rear.im, out.rear.re }, NULL, false);
    }
}

/* For columns with exchanged real and imaginary parts: sets each element n - k to the conjugate of
 * element k, for k from 1 to n / 2, and the imaginary part of element 0 to 0. */
static void NAME(mirror_columns)(int64_t n, void *columns)
{
    V *x = columns;
    x[0] = (V){ 0 };
    for (int64_t k = 1; k <= n / 2; k++) {
        x[2 * (n - k)] = -x[2 * k];
        x[2 * (n - k) + 1] = x[2 * k + 1];
    }
}

static void NAME(mirror_row)(int64_t n, const void *from, void *to)
{
    const T *x = from;
    T *y = to;
    y[0] = x[0];
    y[1] = 0;
    for (int64_t k = 1; k <= n / 2; k++) {
        y[2 * k] = y[2 * (n - k)] = x[2 * k];
        y[2 * k + 1] = x[2 * k + 1];
        y[2 * (n - k) + 1] = -x[2 * k + 1];
    }
}

/* ahead() reads the LANES complex numbers that begin at x. behind() reads the LANES complex numbers
 * the last of which is at x, in reverse order. */
TN__INTO_LOOPS PAIR NAME(ahead)(const T *x)
{
    V a = NAME(load)(x), b = NAME(load)(x + NAME(LANES));
    return (PAIR){ NAME(even)(a, b), NAME(odd)(a, b) };
}

TN__INTO_LOOPS PAIR NAME(behind)(const T *x)
{
    PAIR a = NAME(ahead)(x - 2 * (NAME(LANES) - 1));
    return (PAIR){ NAME(back)(a.re), NAME(back)(a.im) };
}

TN__INTO_LOOPS void NAME(put_ahead)(T *y, PAIR a)
{
    NAME(store)(y, NAME(low)(a.re, a.im));
    NAME(store)(y + NAME(LANES), NAME(high)(a.re, a.im));
}

TN__INTO_LOOPS void NAME(put_behind)(T *y, PAIR a)
{
    NAME(put_ahead)(y - 2 * (NAME(LANES) - 1), (PAIR){ NAME(back)(a.re), NAME(back)(a.im) });
}

/* Applies split_ends() or join_ends() to elements 1 to h - 1 of a single transform, in place or
 * from x to y. */
typedef NAME(ends) NAME(ends_function)(PAIR front, PAIR rear, PAIR w);
TN__INTO_LOOPS void NAME(row_ends)(int64_t h, const T *w, const T *x, T *y,
                                   NAME(ends_function) * of)
{
    int64_t k = 1;
    for (; k + NAME(LANES) <= h - k - NAME(LANES) + 1; k += NAME(LANES)) {
        NAME(ends)
        out = of(NAME(ahead)(x + 2 * k), NAME(behind)(x + 2 * (h - k)), NAME(ahead)(w + 2 * k));
        NAME(put_ahead)(y + 2 * k, out.front);
        NAME(put_behind)(y + 2 * (h - k), out.rear);
    }
    for (; k <= h / 2; k++) {
        const T *a = x + 2 * k, *b = x + 2 * (h - k);
        NAME(ends)
        out = of((PAIR){ (V){ 0 } + a[0], (V){ 0 } + a[1] },
                 (PAIR){ (V){ 0 } + b[0], (V){ 0 } + b[1] },
                 (PAIR){ (V){ 0 } + w[2 * k], (V){ 0 } + w[2 * k + 1] });
        y[2 * k] = out.front.re[0];
        y[2 * k + 1] = out.front.im[0];
        y[2 * (h - k)] = out.rear.re[0];
        y[2 * (h - k) + 1] = out.rear.im[0];
    }
}

static void NAME(split_row)(int64_t h, const void *halves, void *row)
{
    T *y = row, re = y[0], im = y[1];
    y[0] = (re + im) * 2;
    y[2 * h] = (re - im) * 2;
    y[1] = y[2 * h + 1] = 0;
    NAME(row_ends)(h, halves, y, y, NAME(split_ends));
}

static void NAME(join_row)(int64_t h, const void *halves, const void *from, void *to)
{
    const T *x = from;
    T *y = to;
    y[0] = x[0] + x[2 * h];
    y[1] = x[0] - x[2 * h];
    NAME(row_ends)(h, halves, x, y, NAME(join_ends));
}

/* ---- single transforms ----------------------------------------------------------------------- */

/* Copies count < LANES complex numbers in pieces of known sizes, without a call. */
TN__INTO_LOOPS void NAME(copy_some)(T *to, const T *from, int64_t count)
{
#pragma GCC unroll 4
    for (int64_t piece = NAME(LANES) / 2; piece > 0; piece /= 2)
        if (count & piece) {
            memcpy(to, from, (size_t)piece * 2 * sizeof(T));
            to += 2 * piece;
            from += 2 * piece;
        }
}

/* Reads count <= LANES complex numbers. */
TN__INTO_LOOPS PAIR NAME(some_ahead)(const T *x, int64_t count)
{
    T numbers[2 * NAME(LANES)] = { 0 };
    if (count >= NAME(LANES))
        return NAME(ahead)(x);
    NAME(copy_some)(numbers, x, count);
    return NAME(ahead)(numbers);
}

TN__INTO_LOOPS void NAME(put_some)(T *y, PAIR a, int64_t count)
{
    T numbers[2 * NAME(LANES)];
    if (count >= NAME(LANES)) {
        NAME(put_ahead)(y, a);
        return;
    }
    NAME(put_ahead)(numbers, a);
    NAME(copy_some)(y, numbers, count);
}

static void NAME(first)(const struct tn__fft_split *plan, int64_t block, const void *from,
                        void *middle, void *a, void *b, int swap)
{
    const int64_t n1 = plan->n1, n2 = plan->n2, column = block * NAME(LANES);
    const int64_t count = n2 - column < NAME(LANES) ? n2 - column : NAME(LANES);
    /* whole: rows of x from which a whole vector can be read */
    const int64_t past = NAME(LANES) - count, whole = n1 - (past + n2 - 1) / n2;
    const T *x = (const T *)from + 2 * column;
    const V *w = (const V *)plan->roots + 2 * n1 * block, *y;
    V *z = a;
    for (int64_t i = 0; i < n1; i++) {
        /* what follows in the next row does not matter */
        PAIR in = NAME(some_ahead)(x + 2 * i * n2, i < whole ? NAME(LANES) : count);
        z[2 * i + swap] = in.re;
        z[2 * i + !swap] = in.im;
    }
    y = NAME(columns)(&plan->first, a, b);
    for (int64_t done = 0; done < n1; done += NAME(LANES)) {
        V re[NAME(LANES)], im[NAME(LANES)],
            *to = (V *)middle + 2 * (done / NAME(LANES) * n2 + column);
        if (done + NAME(LANES) <= n1) {
#pragma GCC unroll 16
            for (int i = 0; i < NAME(LANES); i++) {
                PAIR out = NAME(times)(NAME(get)(y + 2 * (done + i)),
                                       NAME(get)(w + 2 * (done + i)));
                re[i] = out.re;
                im[i] = out.im;
            }
        } else
            for (int i = 0; i < NAME(LANES); i++) {
                PAIR out = { { 0 }, { 0 } };
                if (done + i < n1)
                    out = NAME(times)(NAME(get)(y + 2 * (done + i)), NAME(get)(w + 2 * (done + i)));
                re[i] = out.re;
                im[i] = out.im;
            }
        NAME(transpose)(re);
        NAME(transpose)(im);
        for (int64_t i = 0; i < count; i++) {
            to[2 * i] = re[i];
            to[2 * i + 1] = im[i];
        }
    }
}

static void NAME(second)(const struct tn__fft_split *plan, int64_t block, void *middle, void *b,
                         void *to, int swap, double scale)
{
    const int64_t n1 = plan->n1, n2 = plan->n2, column = block * NAME(LANES);
    const int64_t count = n1 - column < NAME(LANES) ? n1 - column : NAME(LANES);
    const V *z = NAME(columns)(&plan->second, (V *)middle + 2 * n2 * block, b);
    const T factor = (T)scale;
    T *y = (T *)to + 2 * column;
    for (int64_t i = 0; i < n2; i++) {
        PAIR out = { z[2 * i + swap] * factor, z[2 * i + !swap] * factor };
        NAME(put_some)(y + 2 * i * n1, out, count);
    }
}

static void NAME(product)(int64_t n, const void *left, const void *right, void *to, int swap_left,
                          int swap, double scale)
{
    const T *a = left, *b = right, factor = (T)scale;
    T *y = to;
    for (int64_t i = 0; i < n; i += NAME(LANES)) {
        const int64_t count = n - i < NAME(LANES) ? n - i : NAME(LANES);
        PAIR p = NAME(some_ahead)(a + 2 * i, count), q = NAME(some_ahead)(b + 2 * i, count), out;
        out = NAME(times)(swap_left ? (PAIR){ p.im, p.re } : p, q);
        out = (PAIR){ (swap ? out.im : out.re) * factor, (swap ? out.re : out.im) * factor };
        NAME(put_some)(y + 2 * i, out, count);
    }
}

static const struct tn__fft_loops NAME(loops) = {
    .lanes = NAME(LANES),
    .columns = NAME(columns),
    .read_rows = NAME(read_rows),
    .write_rows = NAME(write_rows),
    .read_columns = NAME(read_columns),
    .write_columns = NAME(write_columns),
    .read_strided = NAME(read_strided),
    .write_strided = NAME(write_strided),
    .split_columns = NAME(split_columns),
    .join_columns = NAME(join_columns),
    .mirror_columns = NAME(mirror_columns),
    .mirror_row = NAME(mirror_row),
    .split_row = NAME(split_row),
    .join_row = NAME(join_row),
    .first = NAME(first),
    .second = NAME(second),
    .product = NAME(product),
};
#undef V
#undef PAIR
