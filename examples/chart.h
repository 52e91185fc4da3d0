/* SPDX-License-Identifier: MIT
 *
 * Draws the curves of trainings, as text for a terminal and as SVG. */
#ifndef CHART_H
#define CHART_H

#include <stdbool.h>

/* One training: `loss` and `accuracy` have `epochs` values each. */
struct curve {
    char name[48];
    int epochs;
    double *loss;
    double *accuracy;
};

/* Prints the loss by epoch as a chart of characters on standard output. */
void chart_text(const struct curve *curve);

/* Writes the curves of loss and accuracy of every training to an SVG file. Returns false and sets
 * errno on failure. */
bool chart_svg(const char *path, const char *title, const struct curve *curves, int count);

#endif
