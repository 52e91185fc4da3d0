/* SPDX-License-Identifier: MIT
 *
 * Includes the file TEMPLATE once for each element size, 1, 2, 4 and 8 bytes. In TEMPLATE, T is the
 * unsigned type of the size and NAME(x) is x_1, x_2, x_4 or x_8. */
#define T uint8_t
#define NAME(x) x##_1
#include TEMPLATE
#undef T
#undef NAME

#define T uint16_t
#define NAME(x) x##_2
#include TEMPLATE
#undef T
#undef NAME

#define T uint32_t
#define NAME(x) x##_4
#include TEMPLATE
#undef T
#undef NAME

#define T uint64_t
#define NAME(x) x##_8
#include TEMPLATE
#undef T
#undef NAME
#undef TEMPLATE
