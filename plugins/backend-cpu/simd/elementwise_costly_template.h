/* SPDX-License-Identifier: MIT
 *
 * Functions of several steps per element, for the float type T. */

/* The function of the smooth L1 and Huber losses: d^2 / 2 up to |d| = most, then linear. */
TN__INTO_LOOPS T NAME(bend)(T d, T most)
{
    T c = d < -most ? -most : d;
    c = c > most ? most : c;
    return c * (d + c * (T)-0.5);
}

TN__INTO_LOOPS T NAME(at_least_none)(T x)
{
    return x < 0 ? 0 : x;
}

/* clang-format off */
BINARY(square_apart, (a - b) * (a - b))
BINARY(size_apart, NAME(fabs_of)(a - b))
BINARY(bent, NAME(bend)(a - b, p) * q)
BINARY(hinge, NAME(at_least_none)(p - a * b))
UNARY(nan_to_num, a != a ? p : (a > NAME(largest) ? q : (a < -NAME(largest) ? r : a)))
/* clang-format on */

#define LOOPS_CHEAP(inputs, name, formula)
#define LOOPS_COSTLY(inputs, name, formula) inputs(name, formula)
#define ACTIVATION_FUNCTIONS
#define ACTIVATION(name, inputs, cost, formula) LOOPS_##cost(inputs, name, formula)
#include "base/activation_list.h"
#undef LOOPS_CHEAP
#undef LOOPS_COSTLY
