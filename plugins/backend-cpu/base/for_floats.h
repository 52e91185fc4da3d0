/* SPDX-License-Identifier: MIT
 *
 * Includes the file TEMPLATE once for float32 and once for float64. In TEMPLATE, T is the type and
 * NAME(x) is x_f32 or x_f64. */
#define T float
#define NAME(x) x##_f32
#include TEMPLATE
#undef T
#undef NAME

#define T double
#define NAME(x) x##_f64
#include TEMPLATE
#undef T
#undef NAME
#undef TEMPLATE
