/* SPDX-License-Identifier: MIT
 *
 * Steps of optimizers and sums for norms of gradients, for type T. */

/* A step of SGD. There are separate loops, so that options are not tested for each element. */
static void NAME(sgd)(int64_t n, const void *numbers, void *const *at)
{
    const struct tn__sgd *c = numbers;
    T *restrict p = at[0];
    const T *restrict gradient = at[1];
    const T sign = c->maximize ? (T)-1 : (T)1, decay = (T)c->weight_decay, lr = (T)c->lr;
    const T keep = c->first ? 0 : (T)c->momentum, take = c->first ? 1 : (T)(1 - c->dampening);
    const T ahead = (T)c->momentum;
    if (c->momentum == 0) {
        for (int64_t i = 0; i < n; i++)
            p[i] -= lr * (sign * gradient[i] + decay * p[i]);
        return;
    }
    T *restrict buffer = at[2];
    if (c->first) /* the old content has no influence, even if it is NaN (0 * NaN is NaN) */
        for (int64_t i = 0; i < n; i++)
            buffer[i] = 0;
    if (c->nesterov) {
        for (int64_t i = 0; i < n; i++) {
            T g = sign * gradient[i] + decay * p[i];
            T b = keep * buffer[i] + take * g;
            buffer[i] = b;
            p[i] -= lr * (g + ahead * b);
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            T g = sign * gradient[i] + decay * p[i];
            T b = keep * buffer[i] + take * g;
            buffer[i] = b;
            p[i] -= lr * b;
        }
    }
}

static void NAME(adam)(int64_t n, const void *numbers, void *const *at)
{
    const struct tn__adam *c = numbers;
    T *restrict p = at[0], *restrict m = at[2], *restrict v = at[3];
    const T *restrict gradient = at[1];
    const T sign = c->maximize ? (T)-1 : (T)1, decay = (T)c->weight_decay, shrink = (T)c->shrink,
            follow1 = (T)c->follow1, keep2 = (T)c->keep2, follow2 = (T)c->follow2,
            rate = (T)c->rate, scale = (T)c->scale, eps = (T)c->eps;
    if (c->amsgrad) {
        T *restrict w = at[4];
        for (int64_t i = 0; i < n; i++) {
            T x = p[i] * shrink, g = sign * gradient[i] + decay * x;
            T a = m[i] + follow1 * (g - m[i]), b = keep2 * v[i] + follow2 * (g * g), d = w[i];
            d = ((b > d) | (b != b)) ? b : d;
            m[i] = a;
            v[i] = b;
            w[i] = d;
            p[i] = x - rate * (a / (NAME(root)(d) * scale + eps));
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        T x = p[i] * shrink, g = sign * gradient[i] + decay * x;
        T a = m[i] + follow1 * (g - m[i]), b = keep2 * v[i] + follow2 * (g * g);
        m[i] = a;
        v[i] = b;
        p[i] = x - rate * (a / (NAME(root)(b) * scale + eps));
    }
}

/* Each of the following functions reduces n elements in a fixed order: to the sum of absolute
 * values, the sum of squares, or the largest absolute value (NaN if there is one). */
static void NAME(sum)(int64_t n, const void *from, double *out)
{
    const T *x = from;
    double lane[LANES] = { 0 }, all = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] += fabs((double)x[i + j]);
    for (int j = 0; j < LANES; j++)
        all += lane[j];
    for (; i < n; i++)
        all += fabs((double)x[i]);
    *out = all;
}

static void NAME(squares)(int64_t n, const void *from, double *out)
{
    const T *x = from;
    double lane[LANES] = { 0 }, all = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] += (double)x[i + j] * (double)x[i + j];
    for (int j = 0; j < LANES; j++)
        all += lane[j];
    for (; i < n; i++)
        all += (double)x[i] * (double)x[i];
    *out = all;
}

static void NAME(largest)(int64_t n, const void *from, double *out)
{
    const T *x = from;
    double all = 0;
    for (int64_t i = 0; i < n; i++) {
        double a = fabs((double)x[i]);
        all = ((a > all) | (a != a)) ? a : all;
    }
    *out = all;
}

/* Multiplies n elements by a number. *out is NaN if one of them was infinite or NaN, else 0: 0 * x
 * is 0 for every other x. */
static void NAME(unscale)(int64_t n, double by, void *elements, double *out)
{
    T *x = elements, lane[LANES] = { 0 }, all = 0, factor = (T)by;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            lane[j] += x[i + j] * 0;
            x[i + j] *= factor;
        }
    for (int j = 0; j < LANES; j++)
        all += lane[j];
    for (; i < n; i++) {
        all += x[i] * 0;
        x[i] *= factor;
    }
    *out = (double)all;
}
