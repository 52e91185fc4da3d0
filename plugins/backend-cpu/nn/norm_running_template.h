/* SPDX-License-Identifier: MIT
 *
 * The numbers that batch_norm in evaluation multiplies by and adds, for type T. */

/* Writes scale and shift of n channels, so that the result is x * scale + shift. */
static void NAME(scale_shift)(const tn_view *const *moments, double eps, int64_t n, T *scale,
                              T *shift)
{
    const T *mean = (const T *)(const void *)tn__view_at(moments[0]);
    const T *var = (const T *)(const void *)tn__view_at(moments[1]);
    const tn_view *w = moments[2], *b = moments[3];
    for (int64_t c = 0; c < n; c++) {
        scale[c] = 1 / NAME(root)(var[c] + (T)eps);
        if (w)
            scale[c] *= ((const T *)(const void *)tn__view_at(w))[c];
        shift[c] = -(mean[c] * scale[c]);
        if (b)
            shift[c] += ((const T *)(const void *)tn__view_at(b))[c];
    }
}
