/* SPDX-License-Identifier: MIT
 *
 * A chain of operations on numbers of type T; INT is an integer of the same size, BYTES the size of
 * a vector. */

typedef T NAME(lanes) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
typedef INT NAME(bits) __attribute__((vector_size(BYTES)));

static inline NAME(lanes) NAME(other)(const struct tn__chain_step *step, int64_t i)
{
    return *(const NAME(lanes) *)(const void *)((const T *)step->other + i);
}

static inline NAME(lanes) NAME(relu)(NAME(lanes) x)
{
    return (NAME(lanes))((NAME(bits))x & ~(NAME(bits))(x < (T)0));
}

/* Computes one step for the vectors x, which are those of the elements from i on. The compiler
 * unrolls the loops, so that x is in registers. */
static inline __attribute__((always_inline)) void NAME(chain_step)(
    const struct tn__chain_step *step, int64_t i, NAME(lanes) * x)
{
    enum { LANES = BYTES / sizeof(T), ALL = TN__CHAIN_VECTORS };
    const T number = (T)step->number;

    switch (step->op) {
    case TN__CHAIN_MUL:
#pragma GCC unroll 8
        for (int k = 0; k < ALL; k++)
            x[k] = x[k] * NAME(other)(step, i + k * LANES);
        break;
    case TN__CHAIN_ADD:
#pragma GCC unroll 8
        for (int k = 0; k < ALL; k++)
            x[k] = x[k] + NAME(other)(step, i + k * LANES);
        break;
    case TN__CHAIN_SUB:
#pragma GCC unroll 8
        for (int k = 0; k < ALL; k++)
            x[k] = x[k] - NAME(other)(step, i + k * LANES);
        break;
    case TN__CHAIN_SUB_FROM:
#pragma GCC unroll 8
        for (int k = 0; k < ALL; k++)
            x[k] = NAME(other)(step, i + k * LANES) - x[k];
        break;
    case TN__CHAIN_MUL_SCALAR:
#pragma GCC unroll 8
        for (int k = 0; k < ALL; k++)
            x[k] = x[k] * number;
        break;
    case TN__CHAIN_ADD_SCALAR:
#pragma GCC unroll 8
        for (int k = 0; k < ALL; k++)
            x[k] = x[k] + number;
        break;
    case TN__CHAIN_RELU:
#pragma GCC unroll 8
        for (int k = 0; k < ALL; k++)
            x[k] = NAME(relu)(x[k]);
        break;
    }
}

static void NAME(chain)(int64_t n, void *to, const void *from, const struct tn__chain_step *steps,
                        int32_t count)
{
    enum { LANES = BYTES / sizeof(T), ALL = TN__CHAIN_VECTORS };

    for (int64_t i = 0; i < n; i += LANES * ALL) {
        const T *read = (const T *)from + i;
        T *write = (T *)to + i;
        NAME(lanes) x[ALL];

#pragma GCC unroll 8
        for (int k = 0; k < ALL; k++)
            x[k] = *(const NAME(lanes) *)(const void *)(read + k * LANES);
        for (int32_t s = 0; s < count; s++)
            NAME(chain_step)(&steps[s], i, x);
#pragma GCC unroll 8
        for (int k = 0; k < ALL; k++)
            *(NAME(lanes) *)(void *)(write + k * LANES) = x[k];
    }
}
