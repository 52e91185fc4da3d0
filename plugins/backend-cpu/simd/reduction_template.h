/* SPDX-License-Identifier: MIT
 *
 * Reductions of contiguous elements and of columns, for the compute type T. Macros:
 *   RESULT       the type of a result; MEMBER is its member of union tn__number
 *   PRODUCT      the type of a product
 *   LANES        the number of elements that are compared at a time
 *   INDEX        the type of an index while rows are compared
 *   IS_NAN(v, w) whether one of two elements is NaN; NOT_A_NUMBER is the result then
 * Choices between elements are written without branches, so that they are vectorized. */

/* ---- contiguous elements --------------------------------------------------------------------- */

typedef T NAME(choice)(T v, T b);

TN__INTO_LOOPS T NAME(larger)(T v, T b)
{
    return b > v ? b : v;
}

TN__INTO_LOOPS T NAME(smaller)(T v, T b)
{
    return b < v ? b : v;
}

TN__INTO_LOOPS void NAME(combine_halves)(T *best, const int half, NAME(choice) * choose)
{
    for (int j = 0; j < half; j++)
        best[j] = choose(best[j + half], best[j]);
}

/* Computes the minimum or maximum of n elements. choose() is written so that it compiles to the
 * processor's instruction for minimum or maximum, which does not treat NaN as needed; so NaN is
 * tested separately, for two elements at a time. The loops have no branch that depends on elements,
 * because one wrong prediction costs as much as a hundred elements. The inner loop bounds are
 * constants, so that the lanes stay in registers. */
TN__INTO_LOOPS void NAME(extreme)(int64_t n, const void *from, union tn__number *out,
                                  NAME(choice) * choose)
{
    const T *x = from;
    T best[LANES], all = x[0];
    int32_t odd[LANES] = { 0 }, any = 0;
    int64_t i = 0;
    if (n >= LANES) {
        for (int j = 0; j < LANES; j++)
            best[j] = x[0];
        for (; i + 2 * LANES <= n; i += 2 * LANES)
            for (int j = 0; j < LANES; j++) {
                T v = x[i + j], w = x[i + LANES + j], b = choose(v, best[j]);
                odd[j] |= IS_NAN(v, w);
                best[j] = choose(w, b);
            }
        if (i + LANES <= n) {
            for (int j = 0; j < LANES; j++) {
                T v = x[i + j];
                odd[j] |= IS_NAN(v, v);
                best[j] = choose(v, best[j]);
            }
            i += LANES;
        }
        for (int j = 0; j < LANES; j++)
            any |= odd[j];
        if (LANES == 32)
            NAME(combine_halves)(best, 16, choose);
        NAME(combine_halves)(best, 8, choose);
        NAME(combine_halves)(best, 4, choose);
        NAME(combine_halves)(best, 2, choose);
        all = choose(best[1], best[0]);
    }
    for (; i < n; i++) {
        T v = x[i];
        any |= IS_NAN(v, v);
        all = choose(v, all);
    }
    out->MEMBER = any ? NOT_A_NUMBER : (RESULT)all;
}

static void NAME(max)(int64_t n, const void *from, union tn__number *out)
{
    NAME(extreme)(n, from, out, NAME(larger));
}

static void NAME(min)(int64_t n, const void *from, union tn__number *out)
{
    NAME(extreme)(n, from, out, NAME(smaller));
}

/* Returns the index of the first element that is equal to `best` or NaN. Whole groups are tested
 * without a branch; only the group that has the element is searched one by one. */
static int64_t NAME(find)(int64_t n, const void *from, union tn__number best)
{
    enum { GROUP = 64 };
    const T *x = from;
    const T wanted = (T)best.MEMBER;
    int64_t i = 0;
    for (; i + GROUP <= n; i += GROUP) {
        T found = 0;
        for (int j = 0; j < GROUP; j++)
            found = ((x[i + j] == wanted) | IS_NAN(x[i + j], x[i + j])) ? 1 : found;
        if (found != 0)
            break;
    }
    for (; i < n; i++)
        if (x[i] == wanted || IS_NAN(x[i], x[i]))
            return i;
    return 0;
}

/* Multiplies part[j] by elements j, j + PARTS, j + 2 PARTS ..., and returns where the rest begins.
 * Without `lifted` no partial product is flushed. */
TN__INTO_LOOPS int64_t NAME(partial)(int64_t n, const T *x, PRODUCT *part, double *lifted)
{
    int64_t i = 0;
    for (int j = 0; j < PARTS; j++)
        part[j] = 1;
    while (i + PARTS <= n) {
        for (int step = 0; step < STEPS && i + PARTS <= n; step++, i += PARTS)
            for (int j = 0; j < PARTS; j++)
                part[j] *= (PRODUCT)x[i + j];
        for (int j = 0; lifted && j < PARTS; j++)
            part[j] = NAME(flush)(part[j], &lifted[j]);
    }
    return i;
}

/* Few elements, which hardly have a subnormal product, need no look at the partial products. */
static int64_t NAME(partial_of)(int64_t n, const T *x, PRODUCT *part)
{
    if (n >= PARTS * STEPS) {
        double lifted[PARTS] = { 0 };
        int64_t rest = NAME(partial)(n, x, part, lifted);
        if (NAME(lowered)(PARTS, part, lifted))
            return rest;
    }
    return NAME(partial)(n, x, part, NULL);
}

static void NAME(prod)(int64_t n, const void *from, union tn__number *out)
{
    const T *x = from;
    PRODUCT part[PARTS], rest = 1;
    int64_t i = NAME(partial_of)(n, x, part);
    for (int j = 0; j < PART / 2; j++)
        part[j] = (part[j] * part[j + 8]) * (part[j + 16] * part[j + 24]);
    for (; i + PART / 2 <= n; i += PART / 2)
        for (int j = 0; j < PART / 2; j++)
            part[j] *= (PRODUCT)x[i + j];
    for (; i < n; i++)
        rest *= (PRODUCT)x[i];
    for (int j = 0; j < PART / 4; j++)
        part[j] *= part[j + PART / 4];
    out->MEMBER = (RESULT)(((part[0] * part[1]) * (part[2] * part[3])) * rest);
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Returns whether v is better (larger or smaller) than b. NaN is better than any number. */
typedef bool NAME(comparison)(T v, T b);

TN__INTO_LOOPS bool NAME(is_larger)(T v, T b)
{
    return (v > b) | IS_NAN(v, v);
}

TN__INTO_LOOPS bool NAME(is_smaller)(T v, T b)
{
    return (v < b) | IS_NAN(v, v);
}

TN__INTO_LOOPS T NAME(larger_or_nan)(T v, T b)
{
    return NAME(is_larger)(v, b) ? v : b;
}

TN__INTO_LOOPS T NAME(smaller_or_nan)(T v, T b)
{
    return NAME(is_smaller)(v, b) ? v : b;
}

static void NAME(rows_max)(int64_t rows, int64_t n, const char *x, int64_t stride, void *to)
{
    NAME(rows_choice)(rows, n, x, stride, to, NAME(larger_or_nan));
}

static void NAME(rows_min)(int64_t rows, int64_t n, const char *x, int64_t stride, void *to)
{
    NAME(rows_choice)(rows, n, x, stride, to, NAME(smaller_or_nan));
}

TN__INTO_LOOPS void NAME(rows_index)(int64_t rows, int64_t n, const char *x, int64_t stride,
                                     void *to, int64_t *places, int64_t first,
                                     NAME(comparison) * better)
{
    for (int64_t at = 0; at < n; at += WIDE) {
        int64_t wide = n - at < WIDE ? n - at : WIDE;
        RESULT *all = (RESULT *)to + at;
        T best[WIDE];
        INDEX place[WIDE];
        for (int64_t j = 0; j < wide; j++) {
            best[j] = (T)all[j];
            place[j] = -1;
        }
        for (int64_t i = 0; i < rows; i++) {
            const T *row = (const T *)(const void *)(x + i * stride) + at;
            const INDEX here = (INDEX)i;
            for (int64_t j = 0; j < wide; j++) {
                T v = row[j], b = best[j];
                INDEX p = place[j];
                bool replace = better(v, b) & !IS_NAN(b, b); /* the first NaN stays */
                best[j] = replace ? v : b;
                place[j] = replace ? here : p;
            }
        }
        for (int64_t j = 0; j < wide; j++) {
            all[j] = (RESULT)best[j];
            places[at + j] = place[j] >= 0 ? first + place[j] : places[at + j];
        }
    }
}

static void NAME(rows_argmax)(int64_t rows, int64_t n, const char *x, int64_t stride, void *to,
                              int64_t *places, int64_t first)
{
    NAME(rows_index)(rows, n, x, stride, to, places, first, NAME(is_larger));
}

static void NAME(rows_argmin)(int64_t rows, int64_t n, const char *x, int64_t stride, void *to,
                              int64_t *places, int64_t first)
{
    NAME(rows_index)(rows, n, x, stride, to, places, first, NAME(is_smaller));
}

#undef RESULT
#undef PRODUCT
#undef MEMBER
#undef LANES
#undef INDEX
#undef IS_NAN
#undef NOT_A_NUMBER
