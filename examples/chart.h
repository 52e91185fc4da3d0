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

/* The lines of a curve, and what is printed above and below it. */
enum { CHART_HEIGHT = 12, CHART_LEAST = 5, CHART_FRAME = 7, CHART_FRAME_SMALL = 3 };

/* Prints the loss by epoch as a chart of characters on standard output. The curve has `height`
 * lines, CHART_LEAST to CHART_HEIGHT. Title and axis are CHART_FRAME more lines; below CHART_HEIGHT
 * they are CHART_FRAME_SMALL. */
void chart_text(const struct curve *curve, int height);

/* Writes the curves of loss and accuracy of every training to an SVG file. Returns false and sets
 * errno on failure. */
bool chart_svg(const char *path, const char *title, const struct curve *curves, int count);

#endif
