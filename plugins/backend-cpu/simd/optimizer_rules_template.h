/* SPDX-License-Identifier: MIT
 *
 * Steps of further optimizers, for type T. sdk/operators/optimizer.ops has the formulas. */

/* The numbers of a step, rounded to T. */
struct NAME(rule) {
    T sign, decay, shrink, follow1, keep2, follow2, rate, other, scale, eps;
};

TN__INTO_LOOPS struct NAME(rule) NAME(rounded)(const struct tn__rule *c)
{
    return (struct NAME(rule)){
        .sign = c->maximize ? (T)-1 : (T)1,
        .decay = (T)c->decay,
        .shrink = (T)c->shrink,
        .follow1 = (T)c->follow1,
        .keep2 = (T)c->keep2,
        .follow2 = (T)c->follow2,
        .rate = (T)c->rate,
        .other = (T)c->other,
        .scale = (T)c->scale,
        .eps = (T)c->eps,
    };
}

static void NAME(nadam)(int64_t n, const void *numbers, void *const *at)
{
    const struct NAME(rule) k = NAME(rounded)(numbers);
    T *restrict p = at[0], *restrict m = at[2], *restrict v = at[3];
    const T *restrict gradient = at[1];
    for (int64_t i = 0; i < n; i++) {
        T x = p[i] * k.shrink, g = k.sign * gradient[i] + k.decay * x;
        T a = m[i] + k.follow1 * (g - m[i]), b = k.keep2 * v[i] + k.follow2 * (g * g);
        m[i] = a;
        v[i] = b;
        p[i] = x - (k.rate * g + k.other * a) / (NAME(root)(b) * k.scale + k.eps);
    }
}

static void NAME(radam)(int64_t n, const void *numbers, void *const *at)
{
    const struct NAME(rule) k = NAME(rounded)(numbers);
    T *restrict p = at[0], *restrict m = at[2], *restrict v = at[3];
    const T *restrict gradient = at[1];
    if (!((const struct tn__rule *)numbers)->rectified) {
        for (int64_t i = 0; i < n; i++) {
            T x = p[i] * k.shrink, g = k.sign * gradient[i] + k.decay * x;
            T a = m[i] + k.follow1 * (g - m[i]);
            m[i] = a;
            v[i] = k.keep2 * v[i] + k.follow2 * (g * g);
            p[i] = x - k.rate * a;
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        T x = p[i] * k.shrink, g = k.sign * gradient[i] + k.decay * x;
        T a = m[i] + k.follow1 * (g - m[i]), b = k.keep2 * v[i] + k.follow2 * (g * g);
        m[i] = a;
        v[i] = b;
        p[i] = x - k.rate * (a / (NAME(root)(b) + k.eps));
    }
}

static void NAME(adamax)(int64_t n, const void *numbers, void *const *at)
{
    const struct NAME(rule) k = NAME(rounded)(numbers);
    T *restrict p = at[0], *restrict m = at[2], *restrict u = at[3];
    const T *restrict gradient = at[1];
    for (int64_t i = 0; i < n; i++) {
        T g = k.sign * gradient[i] + k.decay * p[i], a = m[i] + k.follow1 * (g - m[i]);
        T size = (g < 0 ? -g : g) + k.eps, b = k.keep2 * u[i];
        b = ((size > b) | (size != size)) ? size : b;
        m[i] = a;
        u[i] = b;
        p[i] -= k.rate * (a / b);
    }
}

static void NAME(adagrad)(int64_t n, const void *numbers, void *const *at)
{
    const struct NAME(rule) k = NAME(rounded)(numbers);
    T *restrict p = at[0], *restrict sum = at[2];
    const T *restrict gradient = at[1];
    for (int64_t i = 0; i < n; i++) {
        T g = k.sign * gradient[i] + k.decay * p[i], a = sum[i] + g * g;
        sum[i] = a;
        p[i] -= k.rate * (g / (NAME(root)(a) + k.eps));
    }
}

static void NAME(adadelta)(int64_t n, const void *numbers, void *const *at)
{
    const struct NAME(rule) k = NAME(rounded)(numbers);
    T *restrict p = at[0], *restrict v = at[2], *restrict sum = at[3];
    const T *restrict gradient = at[1];
    for (int64_t i = 0; i < n; i++) {
        T g = k.sign * gradient[i] + k.decay * p[i], a = k.keep2 * v[i] + k.follow2 * (g * g);
        T d = NAME(root)(sum[i] + k.eps) / NAME(root)(a + k.eps) * g;
        v[i] = a;
        sum[i] = k.keep2 * sum[i] + k.follow2 * (d * d);
        p[i] -= k.rate * d;
    }
}

/* A step of RMSprop. There is a loop for each choice of the options, so that they are not tested
 * for each element. */
TN__INTO_LOOPS void NAME(rmsprop_loop)(int64_t n, const void *numbers, void *const *at,
                                       bool momentum, bool centered)
{
    const struct NAME(rule) k = NAME(rounded)(numbers);
    T *restrict p = at[0], *restrict v = at[2], *restrict buffer = momentum ? at[3] : NULL,
                *restrict average = centered ? at[momentum ? 4 : 3] : NULL;
    const T *restrict gradient = at[1];
    for (int64_t i = 0; i < n; i++) {
        T g = k.sign * gradient[i] + k.decay * p[i], a = k.keep2 * v[i] + k.follow2 * (g * g);
        v[i] = a;
        if (centered) {
            T mean = average[i] + k.follow2 * (g - average[i]);
            average[i] = mean;
            a -= mean * mean;
        }
        T d = g / (NAME(root)(a) + k.eps);
        if (momentum) {
            d = k.other * buffer[i] + d;
            buffer[i] = d;
        }
        p[i] -= k.rate * d;
    }
}

static void NAME(rmsprop)(int64_t n, const void *numbers, void *const *at)
{
    const struct tn__rule *c = numbers;
    if (c->momentum && c->centered)
        NAME(rmsprop_loop)(n, numbers, at, true, true);
    else if (c->momentum)
        NAME(rmsprop_loop)(n, numbers, at, true, false);
    else if (c->centered)
        NAME(rmsprop_loop)(n, numbers, at, false, true);
    else
        NAME(rmsprop_loop)(n, numbers, at, false, false);
}

static void NAME(rprop)(int64_t n, const void *numbers, void *const *at)
{
    const struct tn__rule *c = numbers;
    const T sign = c->maximize ? (T)-1 : (T)1, less = (T)c->less, more = (T)c->more,
            low = (T)c->low, high = (T)c->high;
    T *restrict p = at[0], *restrict before = at[2], *restrict size = at[3];
    const T *restrict gradient = at[1];
    for (int64_t i = 0; i < n; i++) {
        T g = sign * gradient[i], d = g * before[i];
        T s = size[i] * (d > 0 ? more : d < 0 ? less : (T)1);
        s = s < low ? low : s;
        s = s > high ? high : s;
        g = d < 0 ? (T)0 : g;
        size[i] = s;
        before[i] = g;
        p[i] -= g > 0 ? s : g < 0 ? -s : (T)0 * g;
    }
}

static void NAME(asgd)(int64_t n, const void *numbers, void *const *at)
{
    const struct NAME(rule) k = NAME(rounded)(numbers);
    T *restrict p = at[0], *restrict average = at[2];
    const T *restrict gradient = at[1];
    if (k.other == 1) { /* the average is the parameter, without rounding */
        for (int64_t i = 0; i < n; i++) {
            T g = k.sign * gradient[i] + k.decay * p[i], x = k.shrink * p[i] - k.rate * g;
            p[i] = x;
            average[i] = x;
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        T g = k.sign * gradient[i] + k.decay * p[i], x = k.shrink * p[i] - k.rate * g;
        p[i] = x;
        average[i] += k.other * (x - average[i]);
    }
}

static void NAME(lion)(int64_t n, const void *numbers, void *const *at)
{
    const struct NAME(rule) k = NAME(rounded)(numbers);
    T *restrict p = at[0], *restrict m = at[2];
    const T *restrict gradient = at[1];
    for (int64_t i = 0; i < n; i++) {
        T g = k.sign * gradient[i], d = k.other * m[i] + k.follow1 * g;
        m[i] += k.follow2 * (g - m[i]);
        p[i] = p[i] * k.shrink - (d > 0 ? k.rate : d < 0 ? -k.rate : (T)0 * d);
    }
}
