/* SPDX-License-Identifier: MIT
 *
 * Normalization for type T. */

/* Returns the sum of n contiguous elements. */
static double NAME(sum)(int64_t n, const T *x)
{
    T lane[LANES] = { 0 };
    double all = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++)
            lane[k] += x[i + k];
        if (i / LANES % 256 ==
            255) /* after 256 elements a lane is added in double, for precision */
            for (int k = 0; k < LANES; k++) {
                all += (double)lane[k];
                lane[k] = 0;
            }
    }
    for (; i < n; i++)
        all += (double)x[i];
    for (int k = 0; k < LANES; k++)
        all += (double)lane[k];
    return all;
}

/* Returns the sum of squared deviations from the mean. */
static double NAME(squares)(int64_t n, const T *x, T mean)
{
    T lane[LANES] = { 0 };
    double all = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            T d = x[i + k] - mean;
            lane[k] += d * d;
        }
        if (i / LANES % 256 == 255)
            for (int k = 0; k < LANES; k++) {
                all += (double)lane[k];
                lane[k] = 0;
            }
    }
    for (; i < n; i++)
        all += (double)(x[i] - mean) * (double)(x[i] - mean);
    for (int k = 0; k < LANES; k++)
        all += (double)lane[k];
    return all;
}

/* Adds the residual to n results from element `at` on, and applies relu. No number is greater than
 * a limit that is NaN. */
static void NAME(follow)(const struct tn__norm_work *w, int64_t n, int64_t at)
{
    const T max = (T)w->max;
    T *y = (T *)w->y + at;
    if (w->residual) {
        const T *r = (const T *)w->residual + at;
        TN__IVDEP
        for (int64_t k = 0; k < n; k++) {
            T sum = y[k] + r[k];
            sum = sum < 0 ? 0 : sum;
            y[k] = sum > max ? max : sum;
        }
    } else {
        TN__IVDEP
        for (int64_t k = 0; k < n; k++) {
            T limited = y[k] < 0 ? 0 : y[k];
            y[k] = limited > max ? max : limited;
        }
    }
}

/* Stores n elements, from `at` on, of the gradient of relu's input in w->gr; returns their
 * address. */
static const T *NAME(leave)(const struct tn__norm_work *w, int64_t n, int64_t at)
{
    const T *gy = (const T *)w->gy + at, *y = (const T *)w->gate + at;
    const T max = (T)w->max;
    T *gr = (T *)w->gr + at;
    TN__IVDEP
    for (int64_t k = 0; k < n; k++) {
        T g = gy[k];
        gr[k] = y[k] <= 0 || y[k] >= max ? 0 : g;
    }
    return gr;
}

/* Normalizes population p. */
static void NAME(one)(const struct tn__norm_work *w, int64_t p)
{
    const struct tn__norm_layout *e = &w->layout;
    const T *weight = w->weight, *bias = w->bias;
    double n = (double)e->segments * (double)e->length, sum = 0, squares = 0;
    for (int64_t i = 0; i < e->segments; i++)
        sum += NAME(sum)(e->length, (const T *)w->x + (i * e->populations + p) * e->length);
    T mean = (T)(sum / n);
    for (int64_t i = 0; i < e->segments; i++)
        squares += NAME(squares)(e->length, (const T *)w->x + (i * e->populations + p) * e->length,
                                 mean);
    T var = (T)(squares / n), spread = (T)(1 / sqrt((double)var + w->eps));
    ((T *)w->mean)[p] = mean;
    ((T *)w->var)[p] = var;
    T scale = spread, shift = 0;
    if (e->affine == TN__PER_POPULATION) {
        scale *= weight ? weight[p % e->channels] : 1;
        shift = bias ? bias[p % e->channels] : 0;
    }
    for (int64_t i = 0; i < e->segments; i++) {
        const T *x = (const T *)w->x + (i * e->populations + p) * e->length;
        T *y = (T *)w->y + (i * e->populations + p) * e->length;
        if (e->affine != TN__PER_ELEMENT) {
            TN__IVDEP
            for (int64_t k = 0; k < e->length; k++)
                y[k] = (x[k] - mean) * scale + shift;
        } else {
            TN__IVDEP
            for (int64_t k = 0; k < e->length; k++)
                y[k] = (x[k] - mean) * spread * (weight ? weight[k] : 1) + (bias ? bias[k] : 0);
        }
        if (w->relu)
            NAME(follow)(w, e->length, (i * e->populations + p) * e->length);
    }
}

/* Computes gx of population p. First sums g and g * (x - mean) over the population, where g is gy
 * (per element: gy * weight). *sum_gy becomes the first sum, *sum_gyu the second divided by the
 * standard deviation. */
TN__INTO_LOOPS void NAME(back)(const struct tn__norm_work *w, int64_t p, double *sum_gy,
                               double *sum_gyu, const bool gated)
{
    const struct tn__norm_layout *e = &w->layout;
    const T *weight = w->weight, max = (T)w->max;
    T mean = ((const T *)w->mean_in)[p];
    T spread = (T)(1 / sqrt((double)((const T *)w->var_in)[p] + w->eps));
    double n = (double)e->segments * (double)e->length, g1 = 0, g2 = 0;
    bool each = e->affine == TN__PER_ELEMENT && weight;
    for (int64_t i = 0; i < e->segments; i++) {
        const T *x = (const T *)w->x + (i * e->populations + p) * e->length;
        const int64_t from = (i * e->populations + p) * e->length;
        const T *gate = gated ? (const T *)w->gate + from : NULL;
        const T *gy = !gated && w->gr ? NAME(leave)(w, e->length, from) : (const T *)w->gy + from;
        T a[LANES] = { 0 }, b[LANES] = { 0 };
        int64_t k = 0;
        for (; k + LANES <= e->length; k += LANES) {
            for (int j = 0; j < LANES; j++) {
                T g = gy[k + j];
                g = GATED(g, k + j);
                g = each ? g * weight[k + j] : g;
                a[j] += g;
                b[j] += g * (x[k + j] - mean);
            }
            if (k / LANES % 256 == 255)
                for (int j = 0; j < LANES; j++) {
                    g1 += (double)a[j];
                    g2 += (double)b[j];
                    a[j] = b[j] = 0;
                }
        }
        for (; k < e->length; k++) {
            T g = gy[k];
            g = GATED(g, k);
            g = each ? g * weight[k] : g;
            g1 += (double)g;
            g2 += (double)g * (double)(x[k] - mean);
        }
        for (int j = 0; j < LANES; j++) {
            g1 += (double)a[j];
            g2 += (double)b[j];
        }
    }
    *sum_gy = g1;
    *sum_gyu = g2 * (double)spread;
    T factor = e->affine == TN__PER_POPULATION && weight ? weight[p % e->channels] : 1;
    T low = (T)(g1 / n), tilt = (T)(g2 * (double)spread * (double)spread / n);
    for (int64_t i = 0; i < e->segments; i++) {
        const T *x = (const T *)w->x + (i * e->populations + p) * e->length;
        const int64_t from = (i * e->populations + p) * e->length;
        const T *gate = gated ? (const T *)w->gate + from : NULL;
        const T *gy = (const T *)(!gated && w->gr ? w->gr : w->gy) + from;
        T *gx = (T *)w->gx + (i * e->populations + p) * e->length, all = spread * factor;
        if (each) {
            TN__IVDEP
            for (int64_t k = 0; k < e->length; k++) {
                T g = gy[k];
                g = GATED(g, k);
                gx[k] = (g * weight[k] - low - (x[k] - mean) * tilt) * all;
            }
        } else {
            TN__IVDEP
            for (int64_t k = 0; k < e->length; k++) {
                T g = gy[k];
                g = GATED(g, k);
                gx[k] = (g - low - (x[k] - mean) * tilt) * all;
            }
        }
    }
}

static void NAME(either_back)(const struct tn__norm_work *w, int64_t p, double *sum_gy,
                              double *sum_gyu)
{
    if (w->gate && !w->gr)
        NAME(back)(w, p, sum_gy, sum_gyu, true);
    else
        NAME(back)(w, p, sum_gy, sum_gyu, false);
}

static tn_status NAME(forward)(void *user, int64_t begin, int64_t end)
{
    for (int64_t p = begin; p < end; p++)
        NAME(one)(user, p);
    return TN_OK;
}

/* Backward of channels [begin, end): gx of all their populations, and gw and gb. */
static tn_status NAME(channels)(void *user, int64_t begin, int64_t end)
{
    const struct tn__norm_work *w = user;
    for (int64_t c = begin; c < end; c++) {
        double gb = 0, gw = 0, sum, tilt;
        for (int64_t p = c; p < w->layout.populations; p += w->layout.channels) {
            NAME(either_back)(w, p, &sum, &tilt);
            gb += sum;
            gw += tilt;
        }
        if (w->wants_affine) {
            ((T *)w->gb)[c] = (T)gb;
            ((T *)w->gw)[c] = (T)gw;
        }
    }
    return TN_OK;
}

static tn_status NAME(rows)(void *user, int64_t begin, int64_t end)
{
    double sum, tilt;
    for (int64_t p = begin; p < end; p++)
        NAME(either_back)(user, p, &sum, &tilt);
    return TN_OK;
}

/* Computes elements [begin, end) of gw and gb, which are sums over all populations. */
static tn_status NAME(columns)(void *user, int64_t begin, int64_t end)
{
    const struct tn__norm_work *w = user;
    const struct tn__norm_layout *e = &w->layout;
    double gw[ROWS_AT_ONCE], gb[ROWS_AT_ONCE];
    for (int64_t first = begin; first < end; first += ROWS_AT_ONCE) {
        int64_t here = end - first < ROWS_AT_ONCE ? end - first : ROWS_AT_ONCE;
        memset(gw, 0, sizeof gw);
        memset(gb, 0, sizeof gb);
        for (int64_t p = 0; p < e->populations; p++) {
            const T *x = (const T *)w->x + p * e->length + first;
            const T *gy = (const T *)w->gy + p * e->length + first;
            T mean = ((const T *)w->mean_in)[p];
            T spread = (T)(1 / sqrt((double)((const T *)w->var_in)[p] + w->eps));
            for (int64_t k = 0; k < here; k++) {
                gw[k] += (double)(gy[k] * ((x[k] - mean) * spread));
                gb[k] += (double)gy[k];
            }
        }
        for (int64_t k = 0; k < here; k++) {
            ((T *)w->gw)[first + k] = (T)gw[k];
            ((T *)w->gb)[first + k] = (T)gb[k];
        }
    }
    return TN_OK;
}

/* ---- channels last --------------------------------------------------------------------------- */

/* For blocks [begin, end) of rows, sums deviations from the block's first row, and their squares.
 * Deviations are small, so that the sums are precise. */
static tn_status NAME(last_sums)(void *user, int64_t begin, int64_t end)
{
    const struct tn__norm_work *w = user;
    const int64_t c = w->layout.populations;
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * TN__NORM_ROWS, rows = w->layout.segments - first;
        const T *x = (const T *)w->x + first * c, *base = x;
        T *sum = (T *)w->sums + block * 2 * c, *squares = sum + c;
        rows = rows < TN__NORM_ROWS ? rows : TN__NORM_ROWS;
        memset(sum, 0, (size_t)(2 * c) * sizeof(T));
        for (int64_t r = 1; r < rows; r++) {
            x += c;
            TN__IVDEP
            for (int64_t k = 0; k < c; k++) {
                T d = x[k] - base[k];
                sum[k] += d;
                squares[k] += d * d;
            }
        }
    }
    return TN_OK;
}

/* Computes mean and variance of populations [begin, end) from the sums of all blocks, in double and
 * in order. */
static tn_status NAME(last_moments)(void *user, int64_t begin, int64_t end)
{
    const struct tn__norm_work *w = user;
    const int64_t c = w->layout.populations, n = w->layout.segments;
    for (int64_t k = begin; k < end; k++) {
        double mean = 0, apart = 0, count = 0;
        for (int64_t first = 0; first < n; first += TN__NORM_ROWS) {
            const T *sum = (const T *)w->sums + first / TN__NORM_ROWS * 2 * c;
            double rows = (double)(n - first < TN__NORM_ROWS ? n - first : TN__NORM_ROWS);
            double each = (double)sum[k] / rows;
            double here = (double)((const T *)w->x)[first * c + k] + each, step = here - mean;
            double own = (double)sum[c + k] - (double)sum[k] * each;
            mean += step * rows / (count + rows);
            apart += (own > 0 || own != own ? own : 0) +
                     step * step * count * rows / (count + rows);
            count += rows;
        }
        ((T *)w->mean)[k] = (T)mean;
        ((T *)w->var)[k] = (T)(apart / (double)n);
    }
    return TN_OK;
}

static tn_status NAME(last_forward)(void *user, int64_t begin, int64_t end)
{
    const struct tn__norm_work *w = user;
    const int64_t c = w->layout.populations;
    const T *weight = w->weight, *bias = w->bias, *mean = w->mean, *var = w->var;
    T scale[SIDE_AT_ONCE], shift[SIDE_AT_ONCE], middle[SIDE_AT_ONCE];
    for (int64_t at = 0; at < c; at += SIDE_AT_ONCE) {
        const int64_t here = c - at < SIDE_AT_ONCE ? c - at : SIDE_AT_ONCE;
        for (int64_t k = 0; k < here; k++) {
            T spread = (T)(1 / sqrt((double)var[at + k] + w->eps));
            middle[k] = mean[at + k];
            scale[k] = spread * (weight ? weight[at + k] : 1);
            shift[k] = bias ? bias[at + k] : 0;
        }
        for (int64_t r = begin * TN__NORM_ROWS; r < end * TN__NORM_ROWS && r < w->layout.segments;
             r++) {
            const T *x = (const T *)w->x + r * c + at;
            const int64_t from = r * c + at;
            T *y = (T *)w->y + from;
            TN__IVDEP
            for (int64_t k = 0; k < here; k++)
                y[k] = (x[k] - middle[k]) * scale[k] + shift[k];
            if (w->relu)
                NAME(follow)(w, here, from);
        }
    }
    return TN_OK;
}

TN__INTO_LOOPS void NAME(back_sums)(const struct tn__norm_work *w, int64_t begin, int64_t end,
                                    const bool gated)
{
    const int64_t c = w->layout.populations;
    const T *mean = w->mean_in, max = (T)w->max;
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * TN__NORM_ROWS, rows = w->layout.segments - first;
        const T *x = (const T *)w->x + first * c, *gy = (const T *)w->gy + first * c;
        const T *gate = gated ? (const T *)w->gate + first * c : NULL;
        T *sum = (T *)w->sums + block * 2 * c, *tilt = sum + c;
        rows = rows < TN__NORM_ROWS ? rows : TN__NORM_ROWS;
        memset(sum, 0, (size_t)(2 * c) * sizeof(T));
        for (int64_t r = 0; r < rows; r++, x += c, gy += c) {
            if (!gated && w->gr)
                gy = NAME(leave)(w, c, (first + r) * c);
            TN__IVDEP
            for (int64_t k = 0; k < c; k++) {
                T g = gy[k];
                g = GATED(g, k);
                sum[k] += g;
                tilt[k] += g * (x[k] - mean[k]);
            }
            if (gated)
                gate += c;
        }
    }
}

static tn_status NAME(last_back_sums)(void *user, int64_t begin, int64_t end)
{
    const struct tn__norm_work *w = user;
    if (w->gate && !w->gr)
        NAME(back_sums)(w, begin, end, true);
    else
        NAME(back_sums)(w, begin, end, false);
    return TN_OK;
}

/* For populations [begin, end), adds up the sums of all blocks. Stores the two numbers that
 * back_lines needs in the place of the first block's sums: the mean of g, and the mean of
 * g * (x - mean) divided by the variance. Also computes gw and gb if they are wanted. */
static tn_status NAME(last_back_moments)(void *user, int64_t begin, int64_t end)
{
    const struct tn__norm_work *w = user;
    const int64_t c = w->layout.populations, n = w->layout.segments;
    for (int64_t k = begin; k < end; k++) {
        double g = 0, tilt = 0, var = (double)((const T *)w->var_in)[k] + w->eps;
        T *sums = w->sums;
        for (int64_t first = 0; first < n; first += TN__NORM_ROWS) {
            g += (double)sums[first / TN__NORM_ROWS * 2 * c + k];
            tilt += (double)sums[first / TN__NORM_ROWS * 2 * c + c + k];
        }
        sums[k] = (T)(g / (double)n);
        sums[c + k] = (T)(tilt / var / (double)n);
        if (w->wants_affine) {
            ((T *)w->gb)[k] = (T)g;
            ((T *)w->gw)[k] = (T)(tilt / sqrt(var));
        }
    }
    return TN_OK;
}

TN__INTO_LOOPS void NAME(back_lines)(const struct tn__norm_work *w, int64_t begin, int64_t end,
                                     const bool gated)
{
    const int64_t c = w->layout.populations;
    const T *weight = w->weight, *mean = w->mean_in, *var = w->var_in, *sums = w->sums;
    const T max = (T)w->max;
    T scale[SIDE_AT_ONCE], low[SIDE_AT_ONCE], tilt[SIDE_AT_ONCE], middle[SIDE_AT_ONCE];
    for (int64_t at = 0; at < c; at += SIDE_AT_ONCE) {
        const int64_t here = c - at < SIDE_AT_ONCE ? c - at : SIDE_AT_ONCE;
        for (int64_t k = 0; k < here; k++) {
            T spread = (T)(1 / sqrt((double)var[at + k] + w->eps));
            middle[k] = mean[at + k];
            low[k] = sums[at + k];
            tilt[k] = sums[c + at + k];
            scale[k] = spread * (weight ? weight[at + k] : 1);
        }
        for (int64_t r = begin * TN__NORM_ROWS; r < end * TN__NORM_ROWS && r < w->layout.segments;
             r++) {
            const T *x = (const T *)w->x + r * c + at;
            const T *gate = gated ? (const T *)w->gate + r * c + at : NULL;
            const T *gy = (const T *)(!gated && w->gr ? w->gr : w->gy) + r * c + at;
            T *gx = (T *)w->gx + r * c + at;
            TN__IVDEP
            for (int64_t k = 0; k < here; k++) {
                T g = gy[k];
                g = GATED(g, k);
                gx[k] = (g - low[k] - (x[k] - middle[k]) * tilt[k]) * scale[k];
            }
        }
    }
}

static tn_status NAME(last_back)(void *user, int64_t begin, int64_t end)
{
    const struct tn__norm_work *w = user;
    if (w->gate && !w->gr)
        NAME(back_lines)(w, begin, end, true);
    else
        NAME(back_lines)(w, begin, end, false);
    return TN_OK;
}

/* ---- with running statistics ----------------------------------------------------------------- */

static tn_status NAME(running)(void *user, int64_t begin, int64_t end)
{
    const struct tn__norm_work *w = user;
    const struct tn__norm_layout *e = &w->layout;
    const T *scale = w->mean, *shift = w->var;
    const int64_t c = e->populations;
    for (int64_t p = begin; p < end && !e->channels_last; p++) {
        const T *x = (const T *)w->x + p * e->length, a = scale[p % c], b = shift[p % c];
        T *y = (T *)w->y + p * e->length;
        TN__IVDEP
        for (int64_t k = 0; k < e->length; k++)
            y[k] = x[k] * a + b;
        if (w->relu)
            NAME(follow)(w, e->length, p * e->length);
    }
    for (int64_t r = begin * TN__NORM_ROWS;
         e->channels_last && r < end * TN__NORM_ROWS && r < e->segments; r++) {
        const T *x = (const T *)w->x + r * c;
        T *y = (T *)w->y + r * c;
        TN__IVDEP
        for (int64_t k = 0; k < c; k++)
            y[k] = x[k] * scale[k] + shift[k];
        if (w->relu)
            NAME(follow)(w, c, r * c);
    }
    return TN_OK;
}

/* ---- after a convolution --------------------------------------------------------------------- */

TN__INTO_LOOPS void NAME(follow_row)(const T *scale, const T *shift, T low, T high, int64_t n, T *y,
                                     const T *r, const bool scaled, const bool plane,
                                     const bool summed)
{
    TN__IVDEP
    for (int64_t k = 0; k < n; k++) {
        T a = y[k];
        if (scaled)
            a = a * scale[plane ? 0 : k] + shift[plane ? 0 : k];
        if (summed)
            a = a + r[k];
        a = a < low ? low : a;
        y[k] = a > high ? high : a;
    }
}

#define ROW(scaled, plane, summed)                                                                 \
    NAME(follow_row)(scale, shift, low, high, n, to, from, scaled, plane, summed)

static void NAME(follow_rows)(const struct tn__follow_rows *f, int64_t rows, int64_t n, void *y,
                              int64_t y_step, const void *residual, int64_t r_step)
{
    const T *scale = f->scale, *shift = f->shift, *from = residual;
    const T low = (T)f->limits.low, high = (T)f->limits.high;
    T *to = y;
    for (int64_t i = 0; i < rows; i++, to += y_step, from = from ? from + r_step : NULL) {
        if (scale && from && f->plane)
            ROW(true, true, true);
        else if (scale && from)
            ROW(true, false, true);
        else if (scale && f->plane)
            ROW(true, true, false);
        else if (scale)
            ROW(true, false, false);
        else if (from)
            ROW(false, false, true);
        else
            ROW(false, false, false);
    }
}
#undef ROW
