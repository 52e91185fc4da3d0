/* SPDX-License-Identifier: MIT
 *
 * The inner loop of where for elements of type T. Operands: result, condition, a, b. */

static void NAME(choose)(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const int64_t w = (int64_t)sizeof(T);
    const uint8_t *c = (const uint8_t *)at[1];
    T *y = (T *)(void *)at[0];
    const T *a = (const T *)(const void *)at[2], *b = (const T *)(const void *)at[3];
    (void)user;
    if (stride[0] == w && stride[1] == 1 && stride[2] == w && stride[3] == w) {
        TN__IVDEP for (int64_t i = 0; i < n; i++)
        {
            const T ai = a[i], bi = b[i];
            y[i] = c[i] ? ai : bi;
        }
    } else if (stride[0] == w && stride[1] == 1 && stride[2] == w && stride[3] == 0) {
        const T bi = *b;
        TN__IVDEP for (int64_t i = 0; i < n; i++)
        {
            const T ai = a[i];
            y[i] = c[i] ? ai : bi;
        }
    } else if (stride[0] == w && stride[1] == 1 && stride[2] == 0 && stride[3] == w) {
        const T ai = *a;
        TN__IVDEP for (int64_t i = 0; i < n; i++)
        {
            const T bi = b[i];
            y[i] = c[i] ? ai : bi;
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            const char *from = c[i * stride[1]] ? at[2] + i * stride[2] : at[3] + i * stride[3];
            *(T *)(void *)(at[0] + i * stride[0]) = *(const T *)(const void *)from;
        }
    }
}
