/* SPDX-License-Identifier: MIT
 *
 * Curves of a training, as text for a terminal and as SVG. */
#ifndef EXAMPLES_CHART_H
#define EXAMPLES_CHART_H

#include <stdbool.h>

/* One training: `loss` and `accuracy` have `epochs` values each. */
struct curve {
    char name[48];
    int epochs;
    double *loss;
    double *accuracy;
};

/* Draws the loss by epoch to standard output. */
void chart_text(const struct curve *curve);

/* Writes both curves of every training; false with errno set. */
bool chart_svg(const char *path, const char *title, const struct curve *curves, int count);

#endif
