/* SPDX-License-Identifier: MIT
 *
 * Steps of recurrent networks for one row of float type T. simd.h describes the arguments. */

static void NAME(tanh_step)(int64_t n, const struct tn__rnn_step *s)
{
    const T *gx = s->gx, *gh = s->gh;
    T *h = s->h;
    TN__EACH h[i] = NAME(bend)(gx[i] + gh[i]);
}

static void NAME(relu_step)(int64_t n, const struct tn__rnn_step *s)
{
    const T *gx = s->gx, *gh = s->gh;
    T *h = s->h;
    TN__EACH
    {
        T sum = gx[i] + gh[i];
        h[i] = sum < 0 ? 0 : sum;
    }
}

static void NAME(lstm_step)(int64_t n, const struct tn__rnn_step *s)
{
    const T *gx = s->gx, *gh = s->gh, *before = s->before;
    T *gates = s->gates, *c = s->c, *h = s->h;
    TN__EACH
    {
        T in = NAME(gate)(gx[i] + gh[i]), forget = NAME(gate)(gx[n + i] + gh[n + i]),
          cell = NAME(bend)(gx[2 * n + i] + gh[2 * n + i]);
        gates[i] = in;
        gates[n + i] = forget;
        gates[2 * n + i] = cell;
        c[i] = forget * before[i] + in * cell;
    }
    TN__EACH
    {
        T out = NAME(gate)(gx[3 * n + i] + gh[3 * n + i]);
        gates[3 * n + i] = out;
        h[i] = out * NAME(bend)(c[i]);
    }
}

static void NAME(gru_step)(int64_t n, const struct tn__rnn_step *s)
{
    const T *gx = s->gx, *gh = s->gh, *before = s->before;
    T *gates = s->gates, *h = s->h;
    TN__EACH
    {
        T r = NAME(gate)(gx[i] + gh[i]), z = NAME(gate)(gx[n + i] + gh[n + i]), u = gh[2 * n + i],
          m = NAME(bend)(gx[2 * n + i] + r * u);
        gates[i] = r;
        gates[n + i] = z;
        gates[2 * n + i] = m;
        gates[3 * n + i] = u;
        h[i] = m + z * (before[i] - m);
    }
}

static void NAME(tanh_back)(int64_t n, const struct tn__rnn_back *s)
{
    const T *h = s->h;
    T *gh = s->gradient, *gx = s->gx;
    TN__EACH
    {
        gx[i] = gh[i] * (1 - h[i] * h[i]);
        gh[i] = 0;
    }
}

static void NAME(relu_back)(int64_t n, const struct tn__rnn_back *s)
{
    const T *h = s->h;
    T *gh = s->gradient, *gx = s->gx;
    TN__EACH
    {
        gx[i] = h[i] > 0 ? gh[i] : 0;
        gh[i] = 0;
    }
}

static void NAME(lstm_back)(int64_t n, const struct tn__rnn_back *s)
{
    const T *in = s->gates, *forget = in + n, *cell = in + 2 * n, *out = in + 3 * n;
    const T *c = s->c, *before = s->before;
    T *gh = s->gradient, *gc = s->gradient_c, *gx = s->gx;
    TN__EACH
    {
        T bent = NAME(bend)(c[i]), g = gc[i] + gh[i] * out[i] * (1 - bent * bent);
        gx[i] = g * cell[i] * (in[i] * (1 - in[i]));
        gx[n + i] = g * before[i] * (forget[i] * (1 - forget[i]));
        gx[2 * n + i] = g * in[i] * (1 - cell[i] * cell[i]);
        gx[3 * n + i] = gh[i] * bent * (out[i] * (1 - out[i]));
        gc[i] = g * forget[i];
        gh[i] = 0;
    }
}

static void NAME(gru_back)(int64_t n, const struct tn__rnn_back *s)
{
    const T *reset = s->gates, *update = reset + n, *cell = reset + 2 * n, *u = reset + 3 * n;
    const T *before = s->before;
    T *gh = s->gradient, *gx = s->gx, *through = s->through;
    TN__EACH
    {
        T g = gh[i], z = update[i], m = cell[i], r = reset[i];
        T gm = g * (1 - z) * (1 - m * m), gr = gm * u[i] * (r * (1 - r)),
          gz = g * (before[i] - m) * (z * (1 - z));
        gx[i] = gr;
        gx[n + i] = gz;
        gx[2 * n + i] = gm;
        through[i] = gr;
        through[n + i] = gz;
        through[2 * n + i] = gm * r;
        gh[i] = g * z;
    }
}
