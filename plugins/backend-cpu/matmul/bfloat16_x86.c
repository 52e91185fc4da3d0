/* SPDX-License-Identifier: MIT
 *
 * The blocks of products of bfloat16 with AMX and AVX512-BF16. Both add two products at a time to
 * sums in float32, and treat subnormal numbers as 0. The system gives the permission for AMX's
 * registers to a process that asks for it, so this file asks when the first product comes. */
#include "matmul/bfloat16.h"

#include <string.h>

/* Compilers that know the instructions. */
#if defined(__clang__)
#define KNOWS_AMX (__clang_major__ >= 12)
#else
#define KNOWS_AMX (__GNUC__ >= 11)
#endif

#if defined(TN__HAVE_AVX512) && KNOWS_AMX
#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WITH_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define WITH_AMX __attribute__((target("amx-tile,amx-bf16")))

/* ---- AMX ------------------------------------------------------------------------------------- */

static void nothing(void)
{
}

/* All eight registers have 16 rows of 64 bytes. The configuration is constant and has an address of
 * its own: GCC assumes that _tile_loadconfig reads only eight bytes, and leaves out stores to the
 * others. */
static const struct {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} config = { .palette = 1,
             .bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
             .rows = { 16, 16, 16, 16, 16, 16, 16, 16 } };

WITH_AMX static void amx_begin(void)
{
    _tile_loadconfig(&config);
}

WITH_AMX static void amx_end(void)
{
    _tile_release();
}

WITH_AMX static void amx_one_panel(const struct tn__bfloat16_block *g)
{
    const char *a = g->a, *b = g->b;

    if (g->add) {
        _tile_loadd(0, g->c, TN__BF16_SIDE * 4);
        _tile_loadd(1, g->c + 16 * TN__BF16_SIDE, TN__BF16_SIDE * 4);
    } else {
        _tile_zero(0);
        _tile_zero(1);
    }
    for (int64_t i = 0; i < g->steps; i++, a += g->a_step, b += TN__BF16_PANEL) {
        _tile_loadd(6, b, 64);
        _tile_loadd(4, a, g->a_row);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, a + 16 * g->a_row, g->a_row);
        _tile_dpbf16ps(1, 5, 6);
    }
    _tile_stored(0, g->c, TN__BF16_SIDE * 4);
    _tile_stored(1, g->c + 16 * TN__BF16_SIDE, TN__BF16_SIDE * 4);
}

WITH_AMX static void amx_run(const struct tn__bfloat16_block *g)
{
    const char *a = g->a, *b = g->b;

    if (g->panels == 1) {
        amx_one_panel(g);
        return;
    }
    if (g->add) {
        _tile_loadd(0, g->c, TN__BF16_SIDE * 4);
        _tile_loadd(1, g->c + 16 * TN__BF16_SIDE, TN__BF16_SIDE * 4);
        _tile_loadd(2, g->c + 16, TN__BF16_SIDE * 4);
        _tile_loadd(3, g->c + 16 * TN__BF16_SIDE + 16, TN__BF16_SIDE * 4);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t i = 0; i < g->steps; i++, a += g->a_step, b += TN__BF16_PANEL) {
        _tile_loadd(6, b, 64);
        _tile_loadd(4, a, g->a_row);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, a + 16 * g->a_row, g->a_row);
        _tile_dpbf16ps(1, 5, 6);
        _tile_loadd(7, b + g->b_panel, 64);
        _tile_dpbf16ps(2, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, g->c, TN__BF16_SIDE * 4);
    _tile_stored(1, g->c + 16 * TN__BF16_SIDE, TN__BF16_SIDE * 4);
    _tile_stored(2, g->c + 16, TN__BF16_SIDE * 4);
    _tile_stored(3, g->c + 16 * TN__BF16_SIDE + 16, TN__BF16_SIDE * 4);
}

/* ---- AVX512-BF16 ----------------------------------------------------------------------------- */

/* c[16][16] = a b for one panel; the 16 sums of a row are in one register. */
WITH_AVX512 static void part_run(const struct tn__bfloat16_block *g, const char *a, const char *b,
                                 float *c)
{
    __m512 sum[16];

    for (int r = 0; r < 16; r++)
        sum[r] = g->add ? _mm512_loadu_ps(c + r * TN__BF16_SIDE) : _mm512_setzero_ps();
    for (int64_t i = 0; i < g->steps; i++, a += g->a_step)
        for (int p = 0; p < TN__BF16_DEEP / 2; p++, b += 64) {
            const __m512bh row = (__m512bh)_mm512_loadu_si512(b);
#pragma GCC unroll 16
            for (int r = 0; r < 16; r++) {
                int32_t pair;
                memcpy(&pair, a + r * g->a_row + p * 4, 4);
                sum[r] = _mm512_dpbf16_ps(sum[r], (__m512bh)_mm512_set1_epi32(pair), row);
            }
        }
    for (int r = 0; r < 16; r++)
        _mm512_storeu_ps(c + r * TN__BF16_SIDE, sum[r]);
}

static void avx512_run(const struct tn__bfloat16_block *g)
{
    for (int64_t j = 0; j < g->panels; j++)
        for (int64_t i = 0; i < 2; i++)
            part_run(g, g->a + i * 16 * g->a_row, g->b + j * g->b_panel,
                     g->c + i * 16 * TN__BF16_SIDE + j * 16);
}

/* Transposes 16 x 16 numbers in registers. */
WITH_AVX512 static inline void transpose(__m512 *x)
{
    __m512 t[16];

    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int k = 0; k < 2; k++) {
            __m512d a = _mm512_castps_pd(t[i + k]), b = _mm512_castps_pd(t[i + k + 2]);
            x[i + 2 * k] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            x[i + 2 * k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    for (int i = 0; i < 16; i += 8)
        for (int k = 0; k < 4; k++) {
            t[i + k] = _mm512_shuffle_f32x4(x[i + k], x[i + k + 4], 0x88);
            t[i + k + 4] = _mm512_shuffle_f32x4(x[i + k], x[i + k + 4], 0xdd);
        }
    for (int k = 0; k < 8; k++) {
        x[k] = _mm512_shuffle_f32x4(t[k], t[k + 8], 0x88);
        x[k + 8] = _mm512_shuffle_f32x4(t[k], t[k + 8], 0xdd);
    }
}

/* Stores `columns` <= 32 numbers as bfloat16, after the bias is added. */
WITH_AVX512 static inline void store_row(__m512 low, __m512 high, const float *bias,
                                         int64_t columns, char *y)
{
    if (bias) {
        low = _mm512_add_ps(low, _mm512_loadu_ps(bias));
        high = _mm512_add_ps(high, _mm512_loadu_ps(bias + 16));
    }
    _mm512_mask_storeu_epi16(y, (__mmask32)(columns >= 32 ? ~0u : (1u << columns) - 1),
                             (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

WITH_AVX512 static void store(const struct tn__bfloat16_store *s)
{
    __m512 low[16], high[16];

    if (!s->turned) {
        for (int64_t i = 0; i < s->rows; i++)
            store_row(_mm512_loadu_ps(s->c + i * TN__BF16_SIDE),
                      _mm512_loadu_ps(s->c + i * TN__BF16_SIDE + 16), s->bias, s->columns,
                      s->y + i * s->y_row);
        return;
    }
    for (int64_t j = 0; j < s->columns; j += 16) {
        const int64_t here = s->columns - j < 16 ? s->columns - j : 16;

        for (int i = 0; i < 16; i++) {
            low[i] = _mm512_loadu_ps(s->c + i * TN__BF16_SIDE + j);
            high[i] = _mm512_loadu_ps(s->c + (16 + i) * TN__BF16_SIDE + j);
        }
        transpose(low);
        transpose(high);
        for (int64_t i = 0; i < here; i++)
            store_row(low[i], high[i], s->bias, s->rows, s->y + (j + i) * s->y_row);
    }
}

/* ---- the choice ------------------------------------------------------------------------------ */

static const struct tn__bfloat16_unit units[] = {
    { "amx", amx_begin, amx_run, amx_end, store },
    { "avx512_bf16", nothing, avx512_run, nothing, store },
};
enum { AMX, AVX512, UNITS };

static int allowed = UNITS; /* the unit that may be used; UNITS: none */
static const struct tn__bfloat16_unit *chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Returns whether processor and system have the unit. The system saves the registers of AMX if bits
 * 17 and 18 of its mask are set. */
static bool runs_here(int unit)
{
    unsigned a, b, c, d, low, high;

    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a >> 5 & 1)) /* AVX512-BF16 */
        return false;
    if (unit == AVX512)
        return true;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 22 & 1) || !(d >> 24 & 1))
        return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low >> 17 & 3) == 3;
}

/* Returns whether the processor multiplies bfloat16 faster than float32 by AVX512-BF16: AMD from
 * family 26 (Zen 5) on, where it is 1.6 times faster from 16 rows on. On the Intel processors that
 * were measured it is slower (bench/results.md). */
static bool multiplies_fast(void)
{
    unsigned a, b, c, d, family;

    if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx || c != signature_AMD_ecx ||
        d != signature_AMD_edx || !__get_cpuid(1, &a, &b, &c, &d))
        return false;
    family = a >> 8 & 15;
    if (family == 15)
        family += a >> 20 & 255;
    return family >= 26;
}

const char *tn__bfloat16_best(void)
{
    if (runs_here(AMX))
        return units[AMX].name;
    return runs_here(AVX512) && multiplies_fast() ? units[AVX512].name : NULL;
}

bool tn__bfloat16_allow(const char *name)
{
    allowed = UNITS;
    for (int i = 0; name && i < UNITS; i++)
        if (strcmp(name, units[i].name) == 0 && runs_here(i))
            allowed = i;
    return !name || allowed < UNITS;
}

const char *tn__bfloat16_name(void)
{
    return allowed < UNITS ? units[allowed].name : NULL;
}

/* Asks for the permission to use the registers of AMX; without it no unit is used. */
static void choose(void)
{
    enum { REQUEST = 0x1023, TILES = 18 }; /* ARCH_REQ_XCOMP_PERM */
    int unit = allowed;

    if (unit == AMX && syscall(SYS_arch_prctl, REQUEST, TILES) != 0) {
        tn_log(TN_LOG_INFO, "cpu: the system does not permit AMX; products of bfloat16 are "
                            "computed in float32");
        unit = UNITS;
    }
    chosen = unit < UNITS ? &units[unit] : NULL;
}

const struct tn__bfloat16_unit *tn__bfloat16_unit(void)
{
    if (allowed == UNITS)
        return NULL;
    pthread_once(&once, choose);
    return chosen;
}

#else

const char *tn__bfloat16_best(void)
{
    return NULL;
}

bool tn__bfloat16_allow(const char *name)
{
    return !name;
}

const char *tn__bfloat16_name(void)
{
    return NULL;
}

const struct tn__bfloat16_unit *tn__bfloat16_unit(void)
{
    return NULL;
}
#endif
