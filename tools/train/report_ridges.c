/* SPDX-License-Identifier: MIT
 *
 * The distributions of weights and gradients on the page: for each parameter the outlines of up to
 * 12 steps, the oldest at the top, the newest in front. */
#include "report_private.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 2000, /* of a plot, in units of its paths */
    HEIGHT = 1000,
    PEAK = 420,     /* height of the highest outline */
    LINES = 12,     /* outlines in a plot */
    COLUMNS = 48,   /* points of an outline */
    PARAMETERS = 40 /* on the page */
};

/* The plot of a parameter or its gradient. */
typedef struct ridges {
    const report_spread *spread;
    const report_bins *lines[LINES];
    int count;
    double low, high; /* of the horizontal axis */
    double peak;      /* the largest of `heights` */
    double heights[LINES][COLUMNS];
} ridges;

/* Returns the number of values from `from` to `to`. Assumes that the values of a bin are spread
 * evenly over it. */
static double values_between(const report_bins *bins, double from, double to)
{
    double sum = 0, left = bins->low;
    for (int64_t i = 0; i < bins->count; i++) {
        double right = bins->limits[i];
        if (right > left) {
            double inside = fmin(right, to) - fmax(left, from);
            sum += inside > 0 ? bins->counts[i] * (inside / (right - left)) : 0;
        } else if (left >= from && left < to) {
            sum += bins->counts[i];
        }
        left = right;
    }
    return sum;
}

static void choose(ridges *d)
{
    const report_spread *s = d->spread;
    d->count = s->count < LINES ? (int)s->count : LINES;
    for (int i = 0; i < d->count; i++) {
        const report_bins *bins = &s->times[d->count > 1 ? i * (s->count - 1) / (d->count - 1) : 0];
        double low = bins->limits[0], high = bins->limits[bins->count > 1 ? bins->count - 2 : 0];
        d->lines[i] = bins;
        d->low = i == 0 || low < d->low ? low : d->low;
        d->high = i == 0 || high > d->high ? high : d->high;
    }
    if (!(d->low < d->high)) {
        double pad = fabs(d->low) > 0 ? fabs(d->low) * 0.5 : 1;
        d->low -= pad;
        d->high += pad;
    }
}

static void measure(ridges *d)
{
    double width = d->high / COLUMNS - d->low / COLUMNS;
    for (int i = 0; i < d->count; i++)
        for (int k = 0; k < COLUMNS; k++) {
            double from = d->low + k * width, to = k < COLUMNS - 1 ? from + width : INFINITY;
            if (k == COLUMNS - 1)
                to = nextafter(d->high, INFINITY);
            double share = values_between(d->lines[i], from, to) / d->lines[i]->number;
            d->heights[i][k] = isfinite(share) ? share : 0;
            d->peak = fmax(d->peak, d->heights[i][k]);
        }
}

static void put_outline(report_text *page, const ridges *d, int index)
{
    int rest = HEIGHT - PEAK;
    int base = HEIGHT - rest * (d->count - 1 - index) / (d->count > 1 ? d->count - 1 : 1);
    int x = 0, y = base;
    /* Older outlines are paler. */
    report_text_add(page, "<path style=\"--a:%.2f\" d=\"M0 %dl",
                    d->count > 1 ? 0.25 + 0.75 * index / (d->count - 1) : 1.0, base);
    for (int k = 0; k < COLUMNS; k++) {
        double height = d->peak > 0 ? d->heights[index][k] / d->peak : 0;
        int to_x = WIDTH * (2 * k + 1) / (2 * COLUMNS), to_y = base - (int)lround(height * PEAK);
        report_text_add(page, k > 0 ? " %d%s%d" : "%d%s%d", to_x - x, to_y >= y ? " " : "",
                        to_y - y);
        x = to_x;
        y = to_y;
    }
    report_text_add(page, " %d%s%d\"/>", WIDTH - x, base >= y ? " " : "", base - y);
}

static double mean_of(const report_bins *bins)
{
    return bins->sum / bins->number;
}

static double deviation_of(const report_bins *bins)
{
    double mean = mean_of(bins);
    return sqrt(fmax(bins->squares / bins->number - mean * mean, 0));
}

static void put_words(report_text *page, const ridges *d)
{
    const report_bins *last = d->lines[d->count - 1];
    report_text_short(page, d->spread->name, 80);
    report_text_put(page, d->spread->kind == REPORT_WEIGHTS ? ", weights" : ", gradients");
    report_text_put(page, " at step ");
    report_text_whole(page, (double)last->step);
    report_text_put(page, ": mean ");
    report_text_number(page, mean_of(last));
    report_text_put(page, ", standard deviation ");
    report_text_number(page, deviation_of(last));
}

static void put_table(report_text *page, const ridges *d)
{
    report_text_put(page,
                    "<details><summary>Table</summary><div class=\"scroll\"><table><thead><tr>"
                    "<th scope=\"col\">Step</th><th scope=\"col\">Mean</th><th scope=\"col\">"
                    "Deviation</th><th scope=\"col\">Least</th><th scope=\"col\">Largest</th>"
                    "</tr></thead><tbody>");
    for (int i = 0; i < d->count; i++) {
        const report_bins *bins = d->lines[i];
        double shown[] = { mean_of(bins), deviation_of(bins), bins->low, bins->high };
        report_text_put(page, "<tr><th scope=\"row\">");
        report_text_whole(page, (double)bins->step);
        report_text_put(page, "</th>");
        for (int k = 0; k < 4; k++) {
            report_text_put(page, "<td>");
            report_text_number(page, shown[k]);
            report_text_put(page, "</td>");
        }
        report_text_put(page, "</tr>");
    }
    report_text_put(page, "</tbody></table></div></details>");
}

static void put_ridges(report_text *page, const report_spread *spread)
{
    ridges d = { .spread = spread };
    report_text_add(page, "<div class=\"ridge k%d\"><h4>%s", spread->kind,
                    spread->kind == REPORT_WEIGHTS ? "Weights" : "Gradients");
    if (spread->count > 0) {
        choose(&d);
        report_text_put(page, d.count > 1 ? " <small>steps " : " <small>step ");
        report_text_whole(page, (double)d.lines[0]->step);
        if (d.count > 1) {
            report_text_put(page, " to ");
            report_text_whole(page, (double)d.lines[d.count - 1]->step);
        }
        report_text_put(page, "</small></h4>");
        measure(&d);
        report_text_add(page,
                        "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" "
                        "aria-label=\"",
                        WIDTH, HEIGHT);
        put_words(page, &d);
        report_text_put(page, "\">");
        for (int i = 0; i < d.count; i++)
            put_outline(page, &d, i);
        report_text_put(page, "</svg><p class=\"ends\"><span>");
        report_text_add(page, "%.3g</span><span>%.3g</span></p>", d.low, d.high);
        put_table(page, &d);
    } else {
        report_text_put(page, "</h4>");
    }
    if (spread->bad > 0) {
        report_text_put(page, "<p class=\"note\">");
        report_text_whole(page, (double)spread->bad);
        report_text_put(page, " values are NaN or infinite, the first at step ");
        report_text_whole(page, (double)spread->bad_step);
        report_text_put(page, ".</p>");
    }
    report_text_put(page, "</div>");
}

/* Returns true if no spread before this one has its name. */
static bool is_first(const report_spreads *all, int64_t index)
{
    for (int64_t i = 0; i < index; i++)
        if (strcmp(all->spreads[i].name, all->spreads[index].name) == 0)
            return false;
    return true;
}

static void put_parameter(report_text *page, const report_spreads *all, int64_t first)
{
    const char *name = all->spreads[first].name;
    report_text_put(page, "<article class=\"card\"><h3>");
    report_text_short(page, name, 80);
    report_text_put(page, "</h3><div class=\"pair\">");
    for (int kind = 0; kind < 2; kind++)
        for (int64_t i = first; i < all->count; i++)
            if (all->spreads[i].kind == kind && strcmp(all->spreads[i].name, name) == 0)
                put_ridges(page, &all->spreads[i]);
    report_text_put(page, "</div></article>");
}

void report_ridges_section(const report *r, report_text *page)
{
    const report_spreads *all = &r->spreads;
    int64_t names = 0, at = 0, shown = 0;
    if (all->count == 0)
        return;
    for (int64_t i = 0; i < all->count; i++)
        names += is_first(all, i);
    report_text_put(page, "<section id=\"values\" aria-labelledby=\"h-values\"><h2 id=\"h-values\">"
                          "Weights and gradients</h2><p>One outline a step, the oldest at the top."
                          "</p><div class=\"grid\">");
    for (int64_t i = 0; i < all->count; i++) {
        if (!is_first(all, i))
            continue;
        /* If there are too many parameters, shows some from all parts of the network. */
        if (names <= PARAMETERS || at * PARAMETERS / names >= shown) {
            put_parameter(page, all, i);
            shown++;
        }
        at++;
    }
    report_text_put(page, "</div>");
    if (shown < names)
        report_text_add(page,
                        "<p class=\"note\">%lld parameters of %lld; the event file has all of "
                        "them.</p>",
                        (long long)shown, (long long)names);
    report_text_put(page, "</section>");
}
