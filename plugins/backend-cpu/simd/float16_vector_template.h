/* SPDX-License-Identifier: MIT
 *
 * Loops that compute 16 elements of float16 or bfloat16 at a time. NAME(x) is x_f16 or x_bf16. */

/* Computes y = of(a, b, c, p) with y, a, b, c = at[0 .. 3]. If the operation has two operands, c is
 * equal to b. */
TN__INTO_LOOPS void NAME(vector_loop)(int64_t n, char *const *at, const int64_t *stride,
                                      float number, lanes_formula *of)
{
    uint16_t all[LANES] = { 0 };
    const lanes p = _mm512_set1_ps(number);
    const int64_t sy = stride[0], sa = stride[1], sb = stride[2], sc = stride[3];
    int64_t i = 0;
    if (sy == 2 && PLAIN(sa) && PLAIN(sb) && PLAIN(sc)) {
        const __mmask16 rest = (__mmask16)((1 << n % LANES) - 1);
        lanes a = NAME(first)(at[1], sa, all), b = NAME(first)(at[2], sb, all),
              c = NAME(first)(at[3], sc, all);
        for (; i + LANES <= n; i += LANES) {
            a = sa ? NAME(load)(at[1] + 2 * i) : a;
            b = sb ? NAME(load)(at[2] + 2 * i) : b;
            c = sc ? NAME(load)(at[3] + 2 * i) : c;
            _mm256_storeu_si256((void *)(at[0] + 2 * i), NAME(packed)(of(a, b, c, p)));
        }
        if (rest == 0)
            return;
        a = sa ? NAME(some)(rest, at[1] + 2 * i) : a;
        b = sb ? NAME(some)(rest, at[2] + 2 * i) : b;
        c = sc ? NAME(some)(rest, at[3] + 2 * i) : c;
        _mm256_mask_storeu_epi16(at[0] + 2 * i, rest, NAME(packed)(of(a, b, c, p)));
        return;
    }
    for (; i < n; i += LANES) {
        int64_t count = n - i < LANES ? n - i : LANES;
        lanes x[3];
        for (int k = 0; k < 3; k++) {
            collect(count, at[k + 1] + i * stride[k + 1], stride[k + 1], all);
            x[k] = NAME(load)(all);
        }
        _mm256_storeu_si256((void *)all, NAME(packed)(of(x[0], x[1], x[2], p)));
        for (int64_t j = 0; j < count; j++)
            memcpy(at[0] + (i + j) * sy, all + j, sizeof *all);
    }
}

/* Sums of given rows, 64 columns at a time. */
static void NAME(picked_sum)(int64_t rows, int64_t n, const void *const *x, float *sum)
{
    for (int64_t at = 0; at < n; at += 4 * LANES) {
        lanes all[4] = { { 0 } };
        __mmask16 mask[4];
        if (n - at >= 4 * LANES) {
            for (int64_t i = 0; i < rows; i++)
                for (int k = 0; k < 4; k++)
                    all[k] += NAME(load)((const uint16_t *)x[i] + at + k * LANES);
            for (int k = 0; k < 4; k++)
                _mm512_storeu_ps(sum + at + k * LANES, all[k]);
            continue;
        }
        for (int64_t k = 0; k < 4; k++) {
            int64_t left = n - at - k * LANES;
            mask[k] = (__mmask16)(left <= 0 ? 0 : left >= LANES ? 0xffff : (1 << left) - 1);
        }
        for (int64_t i = 0; i < rows; i++)
            for (int k = 0; k < 4; k++)
                all[k] += NAME(some)(mask[k], (const uint16_t *)x[i] + at + k * LANES);
        for (int k = 0; k < 4; k++)
            _mm512_mask_storeu_ps(sum + at + k * LANES, mask[k], all[k]);
    }
}

/* Sums of columns, 64 columns at a time; columns beyond n are masked. Sums of DEEP rows are
 * accumulated in float32, and added to `all` in float64. */
static void NAME(rows_sum)(int64_t rows, int64_t n, const char *x, int64_t stride, double *all)
{
    for (int64_t at = 0; at < n; at += 4 * LANES) {
        int64_t wide = n - at < 4 * LANES ? n - at : 4 * LANES;
        __mmask16 mask[4];
        for (int64_t k = 0; k < 4; k++) {
            int64_t left = wide - k * LANES;
            mask[k] = (__mmask16)(left <= 0 ? 0 : left >= LANES ? 0xffff : (1 << left) - 1);
        }
        for (int64_t first = 0; first < rows; first += DEEP) {
            int64_t end = rows - first < DEEP ? rows : first + DEEP;
            lanes sum[4] = { { 0 } };
            float out[4 * LANES];
            for (int64_t i = first; i < end; i++)
                for (int k = 0; k < 4; k++)
                    sum[k] += NAME(some)(mask[k], x + i * stride + 2 * (at + k * LANES));
            for (int k = 0; k < 4; k++)
                _mm512_storeu_ps(out + k * LANES, sum[k]);
            for (int64_t j = 0; j < wide; j++)
                all[at + j] += (double)out[j];
        }
    }
}

static float NAME(squares)(int64_t n, const void *from)
{
    const char *x = from;
    lanes sum[4] = { { 0 } };
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int k = 0; k < 4; k++) {
            lanes v = NAME(load)(x + 2 * (i + k * LANES));
            sum[k] += v * v;
        }
    for (int k = 0; i < n; i += LANES, k++) {
        int64_t left = n - i;
        lanes v = NAME(some)((__mmask16)(left >= LANES ? 0xffff : (1 << left) - 1), x + 2 * i);
        sum[k] += v * v;
    }
    return _mm512_reduce_add_ps((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* clang-format off */
BINARY16(sum, a + b)
BINARY16(difference, a - b)
BINARY16(sum_alpha, a + p * b)
BINARY16(product, a * b)
BINARY16(quotient, a / b)
BINARY16(maximum, larger(a, b))
BINARY16(minimum, smaller(a, b))
BINARY16(square, a * a)
BINARY16(reciprocal, 1.0f / a)
BINARY16(root, _mm512_sqrt_ps(a))
BINARY16(one_by_root, 1.0f / _mm512_sqrt_ps(a))
BINARY16(sum_scalar, a + p)
BINARY16(product_scalar, a * p)
BINARY16(tanh_grad, a * (1.0f - b * b))
BINARY16(sigmoid_grad, a * (b * (1.0f - b)))
TERNARY16(lerp, a + c * (b - a))
TERNARY16(lerp_scalar, a + p * (b - a))
TERNARY16(addcmul, a + p * (b * c))
TERNARY16(addcdiv, a + p * (b / c))
TERNARY16(clamp_tensor, smaller(larger(a, b), c))
/* clang-format on */
