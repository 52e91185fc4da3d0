/* SPDX-License-Identifier: MIT
 *
 * Draws the curves of trainings, as text for a terminal and as SVG. */
#include "chart.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- axes ------------------------------------------------------------------------------------ */

/* Returns a round number (1, 2 or 5 times a power of ten) that divides `span` into about `parts`
 * intervals. */
static double round_step(double span, int parts)
{
    double raw = span / parts, power = pow(10.0, floor(log10(raw)));
    double digit = raw / power;
    return power * (digit <= 1.0 ? 1.0 : digit <= 2.0 ? 2.0 : digit <= 5.0 ? 5.0 : 10.0);
}

static double largest_loss(const struct curve *curves, int count)
{
    double top = 0.0;
    for (int c = 0; c < count; c++)
        for (int i = 0; i < curves[c].epochs; i++)
            if (isfinite(curves[c].loss[i]))
                top = fmax(top, curves[c].loss[i]);
    return top > 0.0 ? top : 1.0;
}

static int most_epochs(const struct curve *curves, int count)
{
    int most = 1;
    for (int c = 0; c < count; c++)
        if (curves[c].epochs > most)
            most = curves[c].epochs;
    return most;
}

/* ---- text ------------------------------------------------------------------------------------ */

#define TEXT_WIDTH 60

static int column_of(int epoch, int epochs)
{
    return epochs > 1 ? epoch * (TEXT_WIDTH - 1) / (epochs - 1) : 0;
}

void chart_text(const struct curve *curve, int height)
{
    char grid[CHART_HEIGHT][TEXT_WIDTH];
    bool roomy = height >= CHART_HEIGHT;
    height = roomy ? CHART_HEIGHT : height < CHART_LEAST ? CHART_LEAST : height;
    double step = round_step(largest_loss(curve, 1), 4);
    double top = step * ceil(largest_loss(curve, 1) / step - 1e-9);
    memset(grid, ' ', sizeof grid);
    for (int i = 0; i < curve->epochs; i++) {
        if (!isfinite(curve->loss[i]))
            continue;
        /* A loss below zero is drawn at zero. */
        double share = fmax(curve->loss[i] / top, 0.0);
        int row = (int)lround((1.0 - share) * (height - 1));
        grid[row < 0 ? 0 : row][column_of(i, curve->epochs)] = '*';
    }
    printf(roomy ? "\n  training loss on %s\n\n" : "  training loss by epoch, %s\n", curve->name);
    int labels = (int)lround(top / step);
    for (int row = 0; row < height; row++) {
        char label[16] = "";
        for (int k = 0; k <= labels; k++)
            if (row == (int)lround((1.0 - k * step / top) * (height - 1)))
                snprintf(label, sizeof label, step < 0.01 ? "%.0e" : "%.2f", k * step);
        int width = TEXT_WIDTH;
        while (width > 0 && grid[row][width - 1] == ' ')
            width--;
        printf("  %6s %c%.*s\n", label, label[0] != '\0' ? '+' : '|', width, grid[row]);
    }
    printf("         +");
    for (int i = 0; i < TEXT_WIDTH; i++)
        putchar('-');
    char axis[TEXT_WIDTH + 8];
    memset(axis, ' ', sizeof axis);
    int parts = curve->epochs < 5 ? curve->epochs : 5;
    for (int k = 0; k < parts; k++) {
        int epoch = parts > 1 ? k * (curve->epochs - 1) / (parts - 1) : 0;
        char label[12];
        int length = snprintf(label, sizeof label, "%d", epoch + 1);
        memcpy(axis + column_of(epoch, curve->epochs), label, (size_t)length);
    }
    int end = TEXT_WIDTH + 7;
    while (end > 0 && axis[end - 1] == ' ')
        end--;
    axis[end] = '\0';
    printf("\n          %s\n", axis);
    if (roomy)
        printf("%*s\n\n", 10 + TEXT_WIDTH / 2 + 3, "epoch");
}

/* ---- SVG ------------------------------------------------------------------------------------- */

#define WIDTH 760.0
#define HEIGHT 440.0
#define LEFT 70.0
#define RIGHT 70.0
#define TOP 56.0
#define BOTTOM 88.0

static const char *const colors[] = { "#1f6feb", "#d1480f", "#1a7f37",
                                      "#8250df", "#9a6700", "#bf3989" };
#define PALE " stroke-opacity=\"0.4\""
#define COLORS ((int)(sizeof colors / sizeof *colors))

static double x_of(int epoch, int epochs)
{
    double share = epochs > 1 ? (double)epoch / (epochs - 1) : 0.5;
    return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double y_of(double value, double low, double high)
{
    return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM);
}

/* Writes a text element; '<' and '&' in the text are escaped. */
static void put_text(FILE *file, double x, double y, const char *attributes, const char *text)
{
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    for (; *text != '\0'; text++) {
        if (*text == '<')
            fputs("&lt;", file);
        else if (*text == '&')
            fputs("&amp;", file);
        else
            fputc(*text, file);
    }
    fputs("</text>\n", file);
}

static void put_axes(FILE *file, int epochs, double loss_top, double loss_step, double low)
{
    char label[24];
    for (int k = 0; k * loss_step <= loss_top + 1e-9; k++) {
        double y = y_of(k * loss_step, 0.0, loss_top);
        fprintf(file,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#d8dee4\"/>\n",
                LEFT, y, WIDTH - RIGHT, y);
        snprintf(label, sizeof label, "%.4g", k * loss_step);
        put_text(file, LEFT - 8, y + 4, "text-anchor=\"end\"", label);
    }
    for (int k = 0; k <= 5; k++) {
        double value = low + k * (1.0 - low) / 5;
        snprintf(label, sizeof label, "%.0f %%", value * 100);
        put_text(file, WIDTH - RIGHT + 8, y_of(value, low, 1.0) + 4, "text-anchor=\"start\"",
                 label);
    }
    int every = (epochs + 9) / 10;
    for (int i = 0; i < epochs; i++) {
        if ((i + 1) % every != 0 && i != 0)
            continue;
        double x = x_of(i, epochs), y = HEIGHT - BOTTOM;
        fprintf(file,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#57606a\"/>\n", x,
                y, x, y + 5);
        snprintf(label, sizeof label, "%d", i + 1);
        put_text(file, x, y + 19, "text-anchor=\"middle\"", label);
    }
    fprintf(file, "<path d=\"M%.1f %.1fV%.1fH%.1fV%.1f\" fill=\"none\" stroke=\"#57606a\"/>\n",
            LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT, TOP);
    put_text(file, WIDTH / 2, HEIGHT - BOTTOM + 40, "text-anchor=\"middle\"", "epoch");
    fprintf(file, "<g transform=\"rotate(-90)\">\n");
    put_text(file, -(TOP + HEIGHT - BOTTOM) / 2, 20, "text-anchor=\"middle\"",
             "training loss (cross entropy)");
    fprintf(file, "</g>\n<g transform=\"rotate(90)\">\n");
    put_text(file, (TOP + HEIGHT - BOTTOM) / 2, -(WIDTH - 12), "text-anchor=\"middle\"",
             "test accuracy");
    fprintf(file, "</g>\n");
}

static int line_width(int curve, int count)
{
    int width = 2 + 3 * (count - 1 - curve);
    return width < 11 ? width : 11;
}

static void put_line(FILE *file, const double *values, int count, int epochs, double low,
                     double high, const char *color, int width, bool dashed)
{
    fprintf(file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%d\"%s%s points=\"", color,
            width, width > 2 ? PALE : "", dashed ? " stroke-dasharray=\"6 4\"" : "");
    for (int i = 0; i < count; i++)
        if (isfinite(values[i]))
            fprintf(file, "%s%.2f,%.2f", i > 0 ? " " : "", x_of(i, epochs),
                    y_of(fmin(fmax(values[i], low), high), low, high));
    fputs("\"/>\n", file);
}

static void put_legend(FILE *file, const struct curve *curves, int count)
{
    double x = LEFT, y = HEIGHT - 22;
    for (int c = 0; c < count; c++) {
        for (int dashed = 0; dashed < 2; dashed++) {
            char label[80];
            snprintf(label, sizeof label, "%s %s", dashed ? "accuracy," : "loss,", curves[c].name);
            fprintf(file,
                    "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                    "stroke-width=\"%d\"%s%s/>\n",
                    x, y - 4, x + 26, y - 4, colors[c % COLORS], line_width(c, count),
                    line_width(c, count) > 2 ? PALE : "",
                    dashed ? " stroke-dasharray=\"6 4\"" : "");
            put_text(file, x + 32, y, "text-anchor=\"start\"", label);
            x += 44 + 7.2 * (double)strlen(label);
            if (x > WIDTH - RIGHT - 120) {
                x = LEFT;
                y += 15;
            }
        }
    }
}

/* Opens a file for writing. If a standard stream is closed, the file must not get its descriptor,
 * because output to that stream would end up in the file. */
static FILE *open_new(const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file >= 0 && file <= STDERR_FILENO) {
        int above = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(file);
        file = above;
    }
    return file >= 0 ? fdopen(file, "w") : NULL;
}

/* Writes to a temporary file and renames it, so that an old chart is replaced only by a complete
 * one. */
bool chart_svg(const char *path, const char *title, const struct curve *curves, int count)
{
    char part[4096];
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = open_new(part);
    if (file == NULL)
        return false;
    int epochs = most_epochs(curves, count);
    double step = round_step(largest_loss(curves, count), 5);
    double top = step * ceil(largest_loss(curves, count) / step - 1e-9);
    double low = 1.0;
    for (int c = 0; c < count; c++)
        for (int i = 0; i < curves[c].epochs; i++)
            low = fmin(low, curves[c].accuracy[i]);
    low = low >= 0.5 ? 0.5 : 0.0;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
            "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#24292f\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_text(file, WIDTH / 2, 30, "text-anchor=\"middle\" font-size=\"16\"", title);
    put_axes(file, epochs, top, step, low);
    for (int c = 0; c < count; c++) {
        /* The curves of different devices are nearly equal, so later lines cover earlier ones.
         * Earlier lines are wider and paler, and so remain visible. */
        const char *color = colors[c % COLORS];
        int width = line_width(c, count);
        put_line(file, curves[c].loss, curves[c].epochs, epochs, 0.0, top, color, width, false);
        put_line(file, curves[c].accuracy, curves[c].epochs, epochs, low, 1.0, color, width, true);
    }
    put_legend(file, curves, count);
    fputs("</svg>\n", file);
    bool written = ferror(file) == 0;
    written = fclose(file) == 0 && written;
    if (written && rename(part, path) == 0)
        return true;
    int number = errno;
    remove(part);
    errno = number;
    return false;
}
