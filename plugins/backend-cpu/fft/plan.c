/* SPDX-License-Identifier: MIT
 *
 * Makes the plans of Fourier transforms, and keeps the last ones. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/scratch.h"
#include "fft/single.h"
#include "simd/simd.h"

#define PI 3.14159265358979323846

enum {
    KEPT = 16,               /* plans that are kept */
    LARGEST_KEPT = 4 << 20,  /* bytes of the largest plan that is kept */
    LARGEST_POWER_OF_TWO = 8 /* as a radix */
};

/* ---- roots of unity -------------------------------------------------------------------------- */

/* Sets element `at` of a table to exp(-2 pi i k / n), 0 <= k < n. The angle that cos and sin
 * compute is at most an eighth of a turn, where both are accurate. */
static void set_root(tn_dtype part, void *table, int64_t at, int64_t k, int64_t n)
{
    int64_t eighth = 8 * k / n;                         /* 0 to 7 */
    int64_t rest = 8 * k - (eighth + (eighth & 1)) * n; /* from the nearest quarter of a turn */
    double angle = 2 * PI * ((double)rest / 8 / (double)n), c = cos(angle), s = sin(angle);
    const double quarters[4][2] = { { c, -s }, { -s, -c }, { -c, s }, { s, c } };
    const double *root = quarters[(eighth + 1) / 2 % 4];
    if (part == TN_F64) {
        memcpy((double *)table + 2 * at, root, 2 * sizeof *root);
    } else {
        ((float *)table)[2 * at] = (float)root[0];
        ((float *)table)[2 * at + 1] = (float)root[1];
    }
}

/* Returns a * b mod n for 0 <= a, b < n. */
static int64_t product_mod(int64_t a, int64_t b, int64_t n)
{
    __extension__ typedef unsigned __int128 wide;
    return (int64_t)((wide)a * (wide)b % (wide)n);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The tables of a plan are laid out twice: first without memory, to find their size, then with it.
 * Only then are they filled. */
struct room {
    char *memory; /* NULL: only the size is wanted */
    size_t used;
    tn_dtype part;
    int64_t lanes;
};

/* Returns a table of `count` complex numbers, NULL if only the size is wanted. */
static void *take(struct room *room, int64_t count)
{
    size_t bytes = (size_t)count * 2 * tn_dtype_size(room->part);
    void *at = room->memory ? room->memory + room->used : NULL;
    room->used += (bytes + 63) / 64 * 64;
    return at;
}

/* ---- smooth sizes ---------------------------------------------------------------------------- */

/* Returns the radix of the first pass of n elements, n > 1; above TN__FFT_LARGEST_PRIME if n is not
 * smooth. */
static int64_t radix_of(int64_t n)
{
    int64_t twos = n & -n;
    if (twos == 2 * LARGEST_POWER_OF_TWO)
        return 4; /* 4 * 4, not 8 * 2 */
    if (twos > 1)
        return twos < LARGEST_POWER_OF_TWO ? twos : LARGEST_POWER_OF_TWO;
    for (int64_t p = 3; p <= TN__FFT_LARGEST_PRIME; p += 2)
        if (n % p == 0)
            return p;
    return n;
}

bool tn__fft_smooth(int64_t n)
{
    while (n > 1) {
        int64_t radix = radix_of(n);
        if (radix > TN__FFT_LARGEST_PRIME)
            return false;
        n /= radix;
    }
    return true;
}

static int64_t blocks_of(int64_t n, int64_t lanes)
{
    return (n + lanes - 1) / lanes;
}

/* Returns the factor n1 of the cheapest split of n, and in *cost the cost. Of equally good splits,
 * the one with the most equal factors needs the least memory. */
static int64_t best_split(int64_t n, int64_t lanes, int64_t *cost)
{
    int64_t best = 1;
    *cost = INT64_MAX;
    for (int64_t d = 1; d <= n / d; d++) {
        int64_t here;
        if (n % d != 0)
            continue;
        here = (blocks_of(n / d, lanes) * d + blocks_of(d, lanes) * (n / d)) * lanes;
        if (here <= *cost) {
            best = d;
            *cost = here;
        }
    }
    return best;
}

int64_t tn__fft_split_cost(int64_t n, int64_t lanes)
{
    int64_t cost;
    best_split(n, lanes, &cost);
    return cost;
}

static void lay_out_columns(struct tn__fft_columns *columns, int64_t n, struct room *room)
{
    int64_t left = n, run = 1;
    columns->n = n;
    columns->passes = 0;
    while (left > 1) {
        struct tn__fft_pass *pass = &columns->pass[columns->passes++];
        int64_t radix = radix_of(left), parts = left / radix;
        void *roots = take(room, parts * (radix - 1)), *matrix = take(room, radix);
        *pass = (struct tn__fft_pass){ radix, parts, run, roots, matrix };
        for (int64_t i = 0; i < parts && roots; i++)
            for (int64_t k = 1; k < radix; k++)
                set_root(room->part, roots, i * (radix - 1) + k - 1, i * k, left);
        for (int64_t k = 0; k < radix && matrix; k++)
            set_root(room->part, matrix, k, k, radix);
        left = parts;
        run *= radix;
    }
}

/* Stores exp(-2 pi i row (column + lane) / n) for all lanes at position `at`: first the real parts,
 * then the imaginary parts. */
static void set_row(struct room *room, void *roots, int64_t at, int64_t row, int64_t column,
                    int64_t n)
{
    int64_t lanes = room->lanes;
    for (int64_t i = 0; i < lanes; i++) {
        double root[2];
        set_root(TN_F64, root, 0, product_mod(row, (column + i) % n, n), n);
        for (int64_t k = 0; k < 2; k++) {
            int64_t to = (2 * at + k) * lanes + i;
            if (room->part == TN_F64)
                ((double *)roots)[to] = root[k];
            else
                ((float *)roots)[to] = (float)root[k];
        }
    }
}

static void lay_out_split(struct tn__fft_split *split, int64_t n, struct room *room)
{
    int64_t cost, n1 = best_split(n, room->lanes, &cost), n2 = n / n1;
    void *roots;
    split->n1 = n1;
    split->n2 = n2;
    split->blocks1 = blocks_of(n1, room->lanes);
    split->blocks2 = blocks_of(n2, room->lanes);
    split->roots = roots = take(room, split->blocks2 * n1 * room->lanes);
    lay_out_columns(&split->first, n1, room);
    lay_out_columns(&split->second, n2, room);
    for (int64_t b = 0; b < split->blocks2 && roots; b++)
        for (int64_t i = 0; i < n1; i++)
            set_row(room, roots, b * n1 + i, i, b * room->lanes, n);
}

/* ---- other sizes ----------------------------------------------------------------------------- */

/* Returns a number of at least 2 n - 1 with small factors. */
static int64_t convolution_size(int64_t n)
{
    int64_t best = INT64_MAX;
    for (int64_t odd = 1; odd <= 15; odd += 2) {
        int64_t m = 16 * odd;
        if (odd == 7 || odd == 11 || odd == 13)
            continue;
        while (m < 2 * n - 1)
            m *= 2;
        if (m < best)
            best = m;
    }
    return best;
}

static void lay_out_convolution(struct tn__fft_plan *plan, struct room *room)
{
    plan->chirp = take(room, plan->n);
    plan->spectrum = take(room, plan->inner->n);
    for (int64_t j = 0; j < plan->n && plan->chirp; j++)
        set_root(room->part, plan->chirp, j, product_mod(j, j, 2 * plan->n), 2 * plan->n);
}

/* Computes the spectrum of the filter, the conjugate of the chirp. */
static tn_status compute_spectrum(struct tn__fft_plan *plan)
{
    int64_t n = plan->n, m = plan->inner->n;
    size_t bytes = (size_t)m * 2 * tn_dtype_size(plan->part);
    void *filter = tn__scratch_take(bytes);
    tn_status status;
    if (!filter)
        return tn_error_last_code();
    memset(filter, 0, bytes);
    for (int64_t j = 0; j < n; j++) {
        int64_t power = product_mod(j, j, 2 * n), other = power == 0 ? 0 : 2 * n - power;
        set_root(plan->part, filter, j, other, 2 * n);
        set_root(plan->part, filter, j == 0 ? 0 : m - j, other, 2 * n);
    }
    status = tn__fft_single(plan->inner, filter, plan->spectrum, 0, 1 / (double)m);
    tn__scratch_give(filter);
    return status;
}

/* ---- plans ----------------------------------------------------------------------------------- */

static void lay_out(struct tn__fft_plan *plan, struct room *room)
{
    void *halves;
    room->used = 0;
    switch (plan->mode) {
    case TN__FFT_TOGETHER: lay_out_columns(&plan->columns, plan->n, room); break;
    case TN__FFT_SINGLE: lay_out_split(&plan->split, plan->n, room); break;
    default: lay_out_convolution(plan, room);
    }
    if (!plan->real)
        return;
    plan->halves = halves = take(room, plan->n / 2 + 1);
    for (int64_t k = 0; k <= plan->n / 2 && halves; k++)
        set_root(plan->part, halves, k, k, 2 * plan->n);
}

static void destroy(struct tn__fft_plan *plan)
{
    tn__fft_plan_give(plan->inner);
    tn_free(plan->memory);
    tn_free(plan);
}

static tn_status fill(struct tn__fft_plan *plan)
{
    struct room room = { .part = plan->part,
                         .lanes = tn__simd.fft->of[plan->part == TN_F64]->lanes };
    if (plan->mode == TN__FFT_BLUESTEIN) {
        plan->inner = tn__fft_plan_take(convolution_size(plan->n), plan->part, false,
                                        TN__FFT_SINGLE);
        if (!plan->inner)
            return tn_error_last_code();
    }
    lay_out(plan, &room);
    plan->bytes = room.used;
    plan->memory = tn_malloc(room.used + 64);
    if (!plan->memory)
        return tn_error_last_code();
    room.memory = (char *)(((uintptr_t)plan->memory + 63) / 64 * 64);
    lay_out(plan, &room);
    return plan->mode == TN__FFT_BLUESTEIN ? compute_spectrum(plan) : TN_OK;
}

static struct tn__fft_plan *make(const struct tn__fft_plan *wanted)
{
    struct tn__fft_plan *plan = tn_malloc(sizeof *plan);
    if (!plan)
        return NULL;
    *plan = *wanted;
    plan->users = 1;
    if (fill(plan) == TN_OK)
        return plan;
    destroy(plan);
    return NULL;
}

/* ---- plans that are kept --------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tn__fft_plan *kept[KEPT]; /* the last used first; a plan here counts as one user */

/* Puts the plan first, in place of kept[at]. */
static void put_first(struct tn__fft_plan *plan, int at)
{
    memmove(kept + 1, kept, (size_t)at * sizeof *kept);
    kept[0] = plan;
}

/* Returns a kept plan, with the caller as one more user; NULL if there is none. */
static struct tn__fft_plan *find(const struct tn__fft_plan *wanted)
{
    struct tn__fft_plan *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < KEPT && kept[i] && !found; i++) {
        struct tn__fft_plan *plan = kept[i];
        if (plan->n != wanted->n || plan->part != wanted->part || plan->mode != wanted->mode ||
            plan->real < wanted->real)
            continue;
        found = plan;
        found->users++;
        put_first(found, i);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void keep(struct tn__fft_plan *plan)
{
    struct tn__fft_plan *last;
    pthread_mutex_lock(&lock);
    last = kept[KEPT - 1];
    plan->users++;
    put_first(plan, KEPT - 1);
    pthread_mutex_unlock(&lock);
    tn__fft_plan_give(last);
}

struct tn__fft_plan *tn__fft_plan_take(int64_t n, tn_dtype part, bool real, enum tn__fft_mode mode)
{
    struct tn__fft_plan wanted = { .n = n, .part = part, .real = real, .mode = mode }, *plan;
    if (mode == TN__FFT_SINGLE && !tn__fft_smooth(n))
        wanted.mode = TN__FFT_BLUESTEIN;
    plan = find(&wanted);
    if (plan)
        return plan;
    plan = make(&wanted);
    if (plan && plan->bytes <= LARGEST_KEPT)
        keep(plan);
    return plan;
}

void tn__fft_plan_give(struct tn__fft_plan *plan)
{
    bool last;
    if (!plan)
        return;
    pthread_mutex_lock(&lock);
    last = --plan->users == 0;
    pthread_mutex_unlock(&lock);
    if (last)
        destroy(plan);
}

void tn__fft_plan_drop(void)
{
    for (int i = 0; i < KEPT; i++) {
        tn__fft_plan_give(kept[i]);
        kept[i] = NULL;
    }
}
