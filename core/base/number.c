/* SPDX-License-Identifier: MIT
 *
 * Conversion of doubles to decimal digits and back. Both directions are exact. To print, the value
 * is a fraction of two big integers, and dividing them yields the digits (Steele and White's
 * method, with its bounds for the shortest form). To read, two big integers are divided until the
 * quotient has 64 bits; the remainder decides the rounding. Nothing depends on the floating-point
 * unit, its rounding mode or the locale. */
#include "core/base/number.h"

#include "core/base/internal.h"

/* ---- big whole numbers ----------------------------------------------------------------------- */

/* The largest numbers occur in reading: 800 digits divided by 10^1143, about 3800 bits, and 64
 * spare bits. */
#define LIMBS 128

struct big {
    int count;            /* limbs in use; the highest limb is not zero */
    uint32_t limb[LIMBS]; /* least significant limb first */
};

static void big_set(struct big *a, uint64_t value)
{
    a->limb[0] = (uint32_t)value;
    a->limb[1] = (uint32_t)(value >> 32);
    a->count = a->limb[1] ? 2 : a->limb[0] ? 1 : 0;
}

static void big_copy(struct big *to, const struct big *from)
{
    to->count = from->count;
    memcpy(to->limb, from->limb, (size_t)from->count * sizeof from->limb[0]);
}

static void big_multiply(struct big *a, uint32_t factor, uint32_t plus)
{
    uint64_t carry = plus;

    for (int i = 0; i < a->count; i++) {
        carry += (uint64_t)a->limb[i] * factor;
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry && a->count < LIMBS)
        a->limb[a->count++] = (uint32_t)carry;
}

static void big_shift(struct big *a, int bits)
{
    int limbs = bits / 32, rest = bits % 32;

    if (a->count == 0)
        return;
    if (rest)
        big_multiply(a, (uint32_t)1 << rest, 0);
    if (limbs && a->count + limbs <= LIMBS) {
        memmove(a->limb + limbs, a->limb, (size_t)a->count * sizeof a->limb[0]);
        memset(a->limb, 0, (size_t)limbs * sizeof a->limb[0]);
        a->count += limbs;
    }
}

static void big_power10(struct big *a, int power)
{
    for (; power >= 9; power -= 9)
        big_multiply(a, 1000000000u, 0);
    for (; power > 0; power--)
        big_multiply(a, 10, 0);
}

static int big_compare(const struct big *a, const struct big *b)
{
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    for (int i = a->count - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

static void big_add(struct big *sum, const struct big *a, const struct big *b)
{
    const struct big *longer = a->count >= b->count ? a : b, *shorter = longer == a ? b : a;
    uint64_t carry = 0;

    sum->count = longer->count;
    for (int i = 0; i < longer->count; i++) {
        carry += longer->limb[i];
        if (i < shorter->count)
            carry += shorter->limb[i];
        sum->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry && sum->count < LIMBS)
        sum->limb[sum->count++] = (uint32_t)carry;
}

/* Computes a -= b; a must not be less than b. */
static void big_subtract(struct big *a, const struct big *b)
{
    int64_t borrow = 0;

    for (int i = 0; i < a->count; i++) {
        borrow += (int64_t)a->limb[i] - (i < b->count ? (int64_t)b->limb[i] : 0);
        a->limb[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    while (a->count > 0 && a->limb[a->count - 1] == 0)
        a->count--;
}

static int big_bits(const struct big *a)
{
    return a->count == 0 ? 0 : 32 * a->count - __builtin_clz(a->limb[a->count - 1]);
}

/* Returns a / b, which must be below ten; a becomes the remainder. */
static int big_digit(struct big *a, const struct big *b)
{
    int digit = 0;

    while (big_compare(a, b) >= 0) {
        big_subtract(a, b);
        digit++;
    }
    return digit;
}

/* ---- digits of a number ---------------------------------------------------------------------- */

struct parts {
    uint64_t mantissa;
    int exponent;      /* value = mantissa * 2^exponent */
    bool narrow_below; /* a power of two: the next lower number of the type is nearer */
};

static struct parts take_apart(double value, tn__precision type)
{
    uint64_t bits;
    struct parts p;
    int step; /* the exponent of the last bit of `value` in the type */

    memcpy(&bits, &value, sizeof bits);
    p.mantissa = bits & 0xfffffffffffffu;
    p.exponent = (int)(bits >> 52 & 0x7ff);
    if (p.exponent == 0)
        p.exponent = 1;
    else
        p.mantissa |= (uint64_t)1 << 52;
    p.exponent -= 1075;
    p.narrow_below = false;
    if (p.mantissa == 0)
        return p;
    step = 64 - __builtin_clzll(p.mantissa) + p.exponent - type.bits;
    step = step > type.least ? step : type.least;
    p.mantissa >>= step - p.exponent;
    p.exponent = step;
    p.narrow_below = p.mantissa == (uint64_t)1 << (type.bits - 1) && step > type.least;
    return p;
}

/* Returns floor(log10(mantissa * 2^exponent)) or one less, by integer arithmetic: 78913 / 2^18 is
 * slightly less than log10(2). */
static int estimate_log10(const struct parts *p)
{
    int bits = 63 - __builtin_clzll(p->mantissa) + p->exponent;
    int64_t scaled = (int64_t)bits * 78913;

    return (int)(scaled >= 0 ? scaled >> 18 : -((-scaled + (1 << 18) - 1) >> 18));
}

static void round_up(tn__digits *d)
{
    while (d->count > 0 && d->at[d->count - 1] == '9')
        d->count--;
    if (d->count > 0) {
        d->at[d->count - 1]++;
    } else {
        d->at[d->count++] = '1';
        d->point++;
    }
}

static void trim(tn__digits *d)
{
    while (d->count > 0 && d->at[d->count - 1] == '0')
        d->count--;
    if (d->count == 0)
        d->point = 1;
}

/* Sets r and s so that value = r / s * 10^power, with 1 <= r / s < 100, and returns the power.
 * `below` and `above` are half the distances to the neighbouring numbers of the type, in the scale
 * of r. */
static int scale(const struct parts *p, struct big *r, struct big *s, struct big *below,
                 struct big *above)
{
    int power = estimate_log10(p), shift = p->exponent + 1 + p->narrow_below;

    /* r and s get an additional factor of two, or of four at a power of two, so that half the
     * distance to a neighbour is an integer. */
    big_set(r, p->mantissa);
    big_set(s, 1);
    big_set(below, 1);
    big_set(above, p->narrow_below ? 2 : 1);
    if (p->exponent >= 0) {
        big_shift(r, shift);
        big_shift(s, 1 + p->narrow_below);
        big_shift(below, p->exponent);
        big_shift(above, p->exponent);
    } else {
        big_shift(r, 1 + p->narrow_below);
        big_shift(s, 1 + p->narrow_below - p->exponent);
    }
    if (power >= 0) {
        big_power10(s, power);
    } else {
        big_power10(r, -power);
        big_power10(below, -power);
        big_power10(above, -power);
    }
    return power;
}

void tn__number_shortest(double value, tn__precision type, tn__digits *out)
{
    struct parts p = take_apart(value, type);
    struct big r, s, below, above, sum;
    bool even = (p.mantissa & 1) == 0;

    out->count = 0;
    out->point = 1;
    if (p.mantissa == 0)
        return;

    int power = scale(&p, &r, &s, &below, &above);
    /* The power may be one too low, or the upper bound may reach the next power of ten. */
    for (;;) {
        struct big ten;

        big_copy(&ten, &s);
        big_multiply(&ten, 10, 0);
        big_add(&sum, &r, &above);
        int order = big_compare(&sum, &ten);
        if (order < 0 || (order == 0 && !even))
            break;
        big_copy(&s, &ten);
        power++;
    }
    for (;;) { /* if the power is too high */
        big_add(&sum, &r, &above);
        if (big_compare(&sum, &s) >= 0)
            break;
        big_multiply(&r, 10, 0);
        big_multiply(&below, 10, 0);
        big_multiply(&above, 10, 0);
        power--;
    }
    out->point = power + 1;

    for (;;) {
        int digit = big_digit(&r, &s);
        int to_below = big_compare(&r, &below);
        big_add(&sum, &r, &above);
        int to_above = big_compare(&sum, &s);
        bool low = to_below < 0 || (to_below == 0 && even);
        bool high = to_above > 0 || (to_above == 0 && even);

        if (low && high) { /* rounding down and up both read back: take the nearer one */
            big_add(&sum, &r, &r);
            int half = big_compare(&sum, &s);
            high = half > 0 || (half == 0 && (digit & 1));
        }
        out->at[out->count++] = (char)('0' + digit);
        if (low || high) {
            if (high)
                round_up(out);
            break;
        }
        big_multiply(&r, 10, 0);
        big_multiply(&below, 10, 0);
        big_multiply(&above, 10, 0);
    }
    trim(out);
}

void tn__number_digits(double value, int count, bool fixed, tn__digits *out)
{
    struct parts p = take_apart(value, TN__PRECISION_DOUBLE);
    struct big r, s, below, above;

    out->count = 0;
    out->point = 1;
    if (p.mantissa == 0)
        return;

    int power = scale(&p, &r, &s, &below, &above);
    /* Scale so that the first digit is not zero and the quotient is below ten. */
    for (;;) {
        struct big ten;

        big_copy(&ten, &s);
        big_multiply(&ten, 10, 0);
        if (big_compare(&r, &ten) < 0)
            break;
        big_copy(&s, &ten);
        power++;
    }
    if (big_compare(&r, &s) < 0) {
        big_multiply(&r, 10, 0);
        power--;
    }
    out->point = power + 1;

    int64_t wanted = fixed ? (int64_t)count + out->point : count;
    if (wanted < 0) { /* less than half a unit of the last digit: zero */
        out->point = 1;
        return;
    }
    while (out->count < wanted && out->count < TN__DIGITS_MAX && r.count > 0) {
        out->at[out->count++] = (char)('0' + big_digit(&r, &s));
        big_multiply(&r, 10, 0);
    }
    if (r.count > 0 && out->count == wanted) {
        /* r / (10 s) is the remainder in units of the last digit written, so 5 s is one half. If no
         * digit was written, r is the number itself in the same scale. */
        struct big half;
        big_copy(&half, &s);
        big_multiply(&half, 5, 0);
        int order = big_compare(&r, &half);
        bool odd = out->count > 0 && (out->at[out->count - 1] & 1);
        if (order > 0 || (order == 0 && odd))
            round_up(out);
    }
    trim(out);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Makes the double nearest to quotient * 2^exponent, rounded half to even. `rest` says that the
 * exact value is slightly larger than the quotient. Returns false if the result is too large for a
 * double. */
static bool put_together(uint64_t quotient, int exponent, bool rest, double *out)
{
    int lead = __builtin_clzll(quotient);
    int top, drop;
    uint64_t kept = 0, bits;

    quotient <<= lead;
    top = exponent - lead + 63; /* the exponent of the highest bit */
    drop = top < -1022 ? 11 + (-1022 - top) : 11;
    if (drop <= 64) {
        uint64_t half = (uint64_t)1 << (drop - 1);
        uint64_t below = drop == 64 ? quotient : quotient & (((uint64_t)1 << drop) - 1);
        kept = drop == 64 ? 0 : quotient >> drop;
        if (below > half || (below == half && (rest || (kept & 1))))
            kept++;
    }
    if (kept >> 53) {
        kept >>= 1;
        top++;
    }
    if (top > 1023)
        return false;
    if (top < -1022) /* a denormal, or 2^-1022 if it was rounded up to 2^52 */
        bits = kept;
    else
        bits = (kept & 0xfffffffffffffu) | (uint64_t)(top + 1023) << 52;
    memcpy(out, &bits, sizeof *out);
    return true;
}

/* Reads a number of at most 19 digits with a small power of ten: all intermediate results fit in
 * 128 bits. */
static bool read_small(uint64_t digits, int power, double *out)
{
    static const uint64_t tens[] = {
        1ull,
        10ull,
        100ull,
        1000ull,
        10000ull,
        100000ull,
        1000000ull,
        10000000ull,
        100000000ull,
        1000000000ull,
        10000000000ull,
        100000000000ull,
        1000000000000ull,
        10000000000000ull,
        100000000000000ull,
        1000000000000000ull,
        10000000000000000ull,
        100000000000000000ull,
        1000000000000000000ull,
        10000000000000000000ull,
    };
    __extension__ typedef unsigned __int128 wide;

    if (power >= 0) {
        wide product = (wide)digits * tens[power];
        int shift = product >> 64 ? 64 - __builtin_clzll((uint64_t)(product >> 64)) : 0;
        uint64_t high = (uint64_t)(product >> shift);
        return put_together(high, shift, ((wide)high << shift) != product, out);
    }
    int lead = __builtin_clzll(digits);
    wide scaled = (wide)(digits << lead) << 64;
    wide quotient = scaled / tens[-power]; /* at least 64 bits */
    int shift = quotient >> 64 ? 64 - __builtin_clzll((uint64_t)(quotient >> 64)) : 0;
    uint64_t high = (uint64_t)(quotient >> shift);
    bool rest = ((wide)high << shift) != quotient || quotient * tens[-power] != scaled;
    return put_together(high, shift - 64 - lead, rest, out);
}

static bool read_big(const char *digits, int count, int power, double *out)
{
    struct big top, bottom;
    uint64_t quotient = 0;

    big_set(&top, 0);
    for (int i = 0; i < count; i++) {
        if (top.count == 0)
            big_set(&top, (uint64_t)(digits[i] - '0'));
        else
            big_multiply(&top, 10, (uint32_t)(digits[i] - '0'));
    }
    big_set(&bottom, 1);
    big_power10(power >= 0 ? &top : &bottom, power >= 0 ? power : -power);

    /* Scale so that the quotient has 64 or 65 bits, then divide bit by bit. */
    int exponent = big_bits(&top) - big_bits(&bottom) - 64;
    if (exponent < 0)
        big_shift(&top, -exponent);
    else
        big_shift(&bottom, exponent);
    big_shift(&bottom, 64);
    for (int i = 0; i < 65; i++) {
        if (quotient >> 63) { /* the quotient has 64 bits; all further bits are remainder */
            return put_together(quotient, exponent + (65 - i), top.count > 0, out);
        }
        quotient <<= 1;
        if (big_compare(&top, &bottom) >= 0) {
            big_subtract(&top, &bottom);
            quotient |= 1;
        }
        big_multiply(&top, 2, 0);
    }
    return put_together(quotient, exponent, top.count > 0, out);
}

bool tn__number_read(const char *text, size_t length, double *out, size_t *used)
{
    char digits[TN__DIGITS_MAX + 1];
    int count = 0;
    int64_t power = 0, exponent = 0;
    bool point = false, any = false, rest = false;
    size_t i = 0;

    *used = 0;
    for (; i < length; i++) {
        char c = text[i];
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9')
            break;
        any = true;
        if (count == 0 && c == '0') {
            power -= point;
        } else if (count < TN__DIGITS_MAX) {
            digits[count++] = c;
            power -= point;
        } else { /* these digits matter only for ties: whether all of them are zero */
            rest |= c != '0';
            power += !point;
        }
    }
    if (!any)
        return false;
    if (i < length && (text[i] == 'e' || text[i] == 'E')) {
        size_t j = i + 1;
        bool minus = j < length && text[j] == '-';

        if (j < length && (text[j] == '-' || text[j] == '+'))
            j++;
        if (j < length && text[j] >= '0' && text[j] <= '9') {
            for (; j < length && text[j] >= '0' && text[j] <= '9'; j++)
                if (exponent < 100000000)
                    exponent = exponent * 10 + (text[j] - '0');
            i = j;
            power += minus ? -exponent : exponent;
        }
    }
    *used = i;
    while (count > 0 && !rest && digits[count - 1] == '0') {
        count--;
        power++;
    }
    if (count == 0 || count + power < -330) {
        *out = 0.0;
        return true;
    }
    if (count + power > 310)
        return false;
    if (count <= 19 && power >= -19 && power <= 19) {
        uint64_t whole = 0;

        for (int k = 0; k < count; k++)
            whole = whole * 10 + (uint64_t)(digits[k] - '0');
        return read_small(whole, (int)power, out);
    }
    if (rest) {
        digits[count++] = '1';
        power--;
    }
    return read_big(digits, count, (int)power, out);
}

/* ---- public ---------------------------------------------------------------------------------- */

bool tn_read_int(const char *text, int64_t *out)
{
    int64_t value = 0;

    if (!tn__given(text != NULL, "tn_read_int: text") ||
        !tn__given(out != NULL, "tn_read_int: out"))
        return false;
    bool minus = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    if (!*text)
        return false;
    for (; *text; text++) {
        int digit = *text - '0';

        if (digit < 0 || digit > 9 || tn__mul_overflow(value, 10, &value) ||
            (minus ? __builtin_sub_overflow(value, digit, &value)
                   : tn__add_overflow(value, digit, &value)))
            return false;
    }
    *out = value;
    return true;
}

bool tn_read_float(const char *text, double *out)
{
    double value;
    size_t used, length;

    if (!tn__given(text != NULL, "tn_read_float: text") ||
        !tn__given(out != NULL, "tn_read_float: out"))
        return false;
    bool minus = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    length = strlen(text);
    if (strcmp(text, "inf") == 0) {
        value = __builtin_inf();
    } else if (strcmp(text, "nan") == 0) {
        value = __builtin_nan("");
    } else if (!tn__number_read(text, length, &value, &used) || used != length) {
        return false;
    }
    *out = minus ? -value : value;
    return true;
}
