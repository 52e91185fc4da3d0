/* SPDX-License-Identifier: MIT
 *
 * The curves of the page. A plot is an SVG that is stretched to the width of its card; the labels
 * of its axes are HTML, so that they have a readable size on every screen. */
#include "report_private.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 4000, /* of a plot, in units of its paths */
    HEIGHT = 1600,
    CHARTS = 60,        /* on the page */
    CHART_SERIES = 8,   /* in a chart */
    ALL_POINTS = 10000, /* of all curves on the page */
    MOST_POINTS = 800,  /* of a curve */
    LEAST_POINTS = 40,
    DOTS = 60, /* curves of at most this many points have dots */
    ROWS = 20  /* of the table below a chart */
};

/* Curves in one plot. */
typedef struct chart {
    const char *name;
    int length; /* of the name */
    const report_series *series[CHART_SERIES];
    int count, left_out;
    double first, last;       /* steps */
    double low, high, step;   /* of the linear axis */
    double log_low, log_high; /* logarithms; equal if there is no such axis */
    bool log_first;           /* the logarithmic axis is shown at first */
    double least, most;       /* values */
} chart;

const char *report_plot_series(const char *name, int *length)
{
    const char *slash = strrchr(name, '/');
    if (slash == NULL || slash == name || slash[1] == '\0') {
        *length = (int)strlen(name);
        return NULL;
    }
    *length = (int)(slash - name);
    return slash + 1;
}

/* Adds a part of a name with spaces for '_'. */
static void put_words_of(report_text *page, const char *name, int length, bool capital)
{
    char part[REPORT_NAME];
    tn_snprint(part, sizeof part, "%.*s", length, name);
    for (char *c = part; *c != '\0'; c++)
        *c = *c == '_' ? ' ' : *c;
    if (capital && part[0] >= 'a' && part[0] <= 'z')
        part[0] = (char)(part[0] - 'a' + 'A');
    report_text_short(page, part, 60);
}

void report_plot_title(report_text *page, const char *name, int length)
{
    static const char *const titles[][2] = { { "learning_rate", "Learning rate" },
                                             { "samples_per_second", "Samples per second" },
                                             { "epoch_seconds", "Seconds per epoch" } };
    char part[REPORT_NAME];
    tn_snprint(part, sizeof part, "%.*s", length, name);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (strcmp(part, titles[i][0]) == 0) {
            report_text_put(page, titles[i][1]);
            return;
        }
    /* "loss/validation" is the "Validation loss". */
    const char *label = report_plot_series(part, &length);
    if (label != NULL) {
        put_words_of(page, label, (int)strlen(label), true);
        report_text_put(page, " ");
    }
    put_words_of(page, part, length, label == NULL);
}

/* ---- charts ---------------------------------------------------------------------------------- */

static bool is_chart(const char *name, int length, const char *wanted)
{
    return (size_t)length == strlen(wanted) && memcmp(name, wanted, (size_t)length) == 0;
}

/* Loss comes first; what is not about quality comes last. */
int report_plot_rank(const char *name, int length)
{
    static const char *const last[] = { "learning_rate", "samples_per_second", "epoch_seconds" };
    for (int i = 0; i < 3; i++)
        if (is_chart(name, length, last[i]))
            return 3 + i;
    return is_chart(name, length, "loss") ? 0 : name[length] == '/' ? 1 : 2;
}

static void add_to_charts(chart *charts, int *count, int *left_out, const report_series *s)
{
    int length, at = 0;
    report_plot_series(s->name, &length);
    while (at < *count &&
           (charts[at].length != length || memcmp(charts[at].name, s->name, (size_t)length) != 0))
        at++;
    if (at == *count) {
        if (*count == CHARTS) {
            ++*left_out;
            return;
        }
        charts[(*count)++] = (chart){ .name = s->name, .length = length };
    }
    chart *c = &charts[at];
    if (c->count < CHART_SERIES)
        c->series[c->count++] = s;
    else
        c->left_out++;
}

static int collect(const report *r, chart *charts, int *left_out)
{
    int count = 0;
    for (int wanted = 0; wanted <= 5; wanted++)
        for (int64_t i = 0; i < r->list.count; i++) {
            const report_series *s = &r->list.series[i];
            int length;
            report_plot_series(s->name, &length);
            if (strcmp(s->name, "epoch") != 0 && report_plot_rank(s->name, length) == wanted &&
                s->total > 0)
                add_to_charts(charts, &count, left_out, s);
        }
    return count;
}

/* ---- axes ------------------------------------------------------------------------------------ */

/* Returns a round number that divides the range into about five parts. */
static double round_step(double low, double high)
{
    double raw = (high / 2 - low / 2) * 0.4; /* a difference of halves does not overflow */
    double power = pow(10, floor(log10(raw))), digit = raw / power;
    double step = power * (digit <= 1.1 ? 1 : digit <= 2.2 ? 2 : digit <= 5.5 ? 5 : 10);
    return isfinite(step) && step > 0 ? step : raw;
}

static void set_axes(chart *c)
{
    bool any = false, positive = true;
    for (int i = 0; i < c->count; i++)
        for (int64_t k = 0; k < c->series[i]->count; k++) {
            const report_point *p = &c->series[i]->points[k];
            double step = (double)p->step;
            c->first = !any || step < c->first ? step : c->first;
            c->last = !any || step > c->last ? step : c->last;
            c->least = !any || p->value < c->least ? p->value : c->least;
            c->most = !any || p->value > c->most ? p->value : c->most;
            positive = positive && p->value > 0;
            any = true;
        }
    c->low = c->least;
    c->high = c->most;
    if (c->low >= 0 && c->low < 0.6 * c->high)
        c->low = 0;
    if (!(c->low < c->high)) {
        double pad = fabs(c->low) > 0 ? fabs(c->low) * 0.1 : 1;
        c->low -= isfinite(c->low - pad) ? pad : 0;
        c->high += isfinite(c->high + pad) ? pad : 0;
    }
    c->step = round_step(c->low, c->high);
    double low = floor(c->low / c->step + 1e-6) * c->step;
    double high = ceil(c->high / c->step - 1e-6) * c->step;
    c->low = isfinite(low) && low <= c->low ? low : c->low;
    c->high = isfinite(high) && high >= c->high ? high : c->high;
    if (any && positive && c->most / 4 > c->least) {
        c->log_low = log10(c->least) - 0.02;
        c->log_high = log10(c->most) + 0.02;
        c->log_first = c->most / 100 > c->least && report_plot_rank(c->name, c->length) == 0;
    }
}

static double x_of(const chart *c, double step)
{
    return c->last > c->first ? (step - c->first) / (c->last - c->first) : 0.5;
}

static double y_of(const chart *c, bool logarithmic, double value)
{
    double share;
    if (logarithmic)
        share = (log10(value) - c->log_low) / (c->log_high - c->log_low);
    else
        share = (value / 2 - c->low / 2) / (c->high / 2 - c->low / 2);
    return share > 0 ? (share < 1 ? 1 - share : 0) : 1;
}

/* Adds a number of an axis, in a unit that suits its largest number. */
static void put_number(report_text *t, double number, double largest)
{
    static const char *const units[] = { "", "k", "M", "G", "T" };
    int unit = 0;
    if (largest >= 1e4 && largest < 1e15)
        for (; largest >= 1000 && number != 0; unit++, largest /= 1000)
            number /= 1000;
    report_text_add(t, "%.4g%s", number, units[unit]);
}

/* Writes the values of the ticks of an axis. Returns their number. */
static int ticks_of(const chart *c, bool logarithmic, double *out)
{
    int count = 0;
    if (!logarithmic) {
        for (int k = 0; k <= 12; k++) {
            double value = c->low + k * c->step;
            if (!isfinite(value) || value > c->high + c->step * 1e-6)
                break;
            out[count++] = fabs(value) < c->step * 1e-6 ? 0 : value;
        }
        return count;
    }
    double decades = c->log_high - c->log_low;
    int every = (int)ceil(decades / 6);
    for (int k = (int)floor(c->log_low); k <= c->log_high && count < 20; k++)
        for (int digit = 1; digit <= 5; digit += digit == 1 ? 1 : 3) {
            double value = digit * pow(10, k), at = log10(value);
            bool wanted = decades < 2.2 || (digit == 1 && (k % every + every) % every == 0);
            if (wanted && at >= c->log_low && at <= c->log_high)
                out[count++] = value;
        }
    return count;
}

/* ---- curves ---------------------------------------------------------------------------------- */

/* Adds a path through points in whole units, each relative to the one before. */
static void put_path(report_text *page, const chart *c, bool logarithmic,
                     const report_point *points, int64_t count, bool smooth)
{
    int x = 0, y = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = smooth ? points[i].smooth : points[i].value;
        int to_x = (int)lround(x_of(c, (double)points[i].step) * WIDTH);
        int to_y = (int)lround(y_of(c, logarithmic, value) * HEIGHT);
        if (i == 0)
            report_text_add(page, "M%d %dl", to_x, to_y);
        else
            report_text_add(page, "%s%d%s%d", i > 1 && to_x >= x ? " " : "", to_x - x,
                            to_y >= y ? " " : "", to_y - y);
        x = to_x;
        y = to_y;
    }
    if (count == 1)
        report_text_put(page, "0 0");
}

static void put_dots(report_text *page, const chart *c, bool logarithmic,
                     const report_point *points, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        report_text_add(page, "M%d %dh0", (int)lround(x_of(c, (double)points[i].step) * WIDTH),
                        (int)lround(y_of(c, logarithmic, points[i].value) * HEIGHT));
}

/* Returns the number of the color that a series has in all charts, -1 if it has none. */
static int usual_color(const report_series *s)
{
    static const char *const names[][2] = { { "train", "0" },      { "training", "0" },
                                            { "validation", "1" }, { "valid", "1" },
                                            { "val", "1" },        { "test", "2" } };
    int length;
    const char *label = report_plot_series(s->name, &length);
    for (size_t i = 0; label != NULL && i < sizeof names / sizeof *names; i++)
        if (strcmp(label, names[i][0]) == 0)
            return names[i][1][0] - '0';
    return -1;
}

static int color_of(const chart *c, int index)
{
    int usual = usual_color(c->series[index]);

    if (c->series[index]->color > 0)
        return c->series[index]->color - 1;
    bool any = usual >= 0;
    for (int i = 0; i < c->count && !any; i++)
        any = usual_color(c->series[i]) >= 0;
    return usual >= 0 ? usual : any ? 3 + index % 3 : index % 6;
}

static void put_label(report_text *page, const chart *c, int index)
{
    int length;
    const char *label = report_plot_series(c->series[index]->name, &length);
    if (label != NULL)
        report_text_short(page, label, 40);
    else
        report_plot_title(page, c->series[index]->name, length);
}

/* A curve that hardly goes back and forth, such as a learning rate, needs no average. */
static bool is_smoothed(const report_series *s)
{
    return s->smoothed > DOTS && s->moved > 4 * (s->most - s->least);
}

static void put_curve(report_text *page, const chart *c, bool logarithmic, int index,
                      const report_point *points, int64_t count)
{
    bool smooth = is_smoothed(c->series[index]);
    report_text_add(page, "<g class=\"s%d\">", color_of(c, index));
    report_text_add(page, "<path class=\"%s\" d=\"", smooth ? "raw" : "line");
    put_path(page, c, logarithmic, points, count, false);
    report_text_put(page, "\"/>");
    if (smooth) {
        report_text_put(page, "<path class=\"line\" d=\"");
        put_path(page, c, logarithmic, points, count, true);
        report_text_put(page, "\"/>");
    } else if (count <= DOTS) {
        report_text_put(page, "<path class=\"dots\" d=\"");
        put_dots(page, c, logarithmic, points, count);
        report_text_put(page, "\"/>");
    }
    report_text_put(page, "</g>");
}

/* Describes the plot in a text, for screen readers. */
static void put_words(report_text *page, const chart *c)
{
    report_plot_title(page, c->name, c->length);
    report_text_put(page, ", steps ");
    report_text_whole(page, c->first);
    report_text_put(page, " to ");
    report_text_whole(page, c->last);
    for (int i = 0; i < c->count; i++) {
        const report_series *s = c->series[i];
        if (s->count == 0)
            continue;
        report_text_put(page, ". ");
        put_label(page, c, i);
        report_text_put(page, ": from ");
        report_text_number(page, s->points[0].value);
        report_text_put(page, " to ");
        report_text_number(page, s->points[s->count - 1].value);
    }
}

static void put_plot(report_text *page, const chart *c, bool logarithmic,
                     report_point *const *points, const int64_t *counts)
{
    double ticks[32];
    int count = ticks_of(c, logarithmic, ticks);
    report_text_add(page, "<div class=\"plot %s\">", logarithmic ? "log" : "lin");
    for (int i = 0; i < count; i++) {
        report_text_add(page, "<span class=\"y\" style=\"top:%.2f%%\">",
                        100 * y_of(c, logarithmic, ticks[i]));
        put_number(page, ticks[i], logarithmic ? ticks[i] : fmax(fabs(c->low), fabs(c->high)));
        report_text_put(page, "</span>");
    }
    double every = fmax(1, round_step(c->first, c->last));
    double step = c->last > c->first ? ceil(c->first / every) * every : c->first;
    for (int i = 0; i < 8 && step <= c->last; i++, step += every) {
        report_text_add(page, "<span class=\"x\" style=\"left:%.2f%%\">", 100 * x_of(c, step));
        put_number(page, step, c->last);
        report_text_put(page, "</span>");
    }
    report_text_add(page,
                    "<span class=\"axis\">step</span><svg viewBox=\"0 0 %d %d\" "
                    "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
                    WIDTH, HEIGHT);
    put_words(page, c);
    report_text_put(page, "\"><path class=\"rule\" d=\"");
    for (int i = 0; i < count; i++)
        report_text_add(page, "M0 %dh%d", (int)lround(y_of(c, logarithmic, ticks[i]) * HEIGHT),
                        WIDTH);
    report_text_put(page, "\"/>");
    for (int i = 0; i < c->count; i++)
        if (counts[i] > 0)
            put_curve(page, c, logarithmic, i, points[i], counts[i]);
    report_text_put(page, "</svg></div>");
}

/* ---- legend and text of a plot --------------------------------------------------------------- */

static void put_legend(report_text *page, const chart *c)
{
    report_text_put(page, "<ul class=\"legend\">");
    for (int i = 0; i < c->count; i++) {
        const report_series *s = c->series[i];
        report_text_add(page, "<li class=\"s%d\"><i></i>", color_of(c, i));
        put_label(page, c, i);
        if (s->count > 0) {
            report_text_put(page, " <b>");
            report_text_number(page, s->points[s->count - 1].value);
            report_text_put(page, "</b>");
        }
        report_text_put(page, "</li>");
    }
    report_text_put(page, "</ul>");
}

static void put_notes(report_text *page, const chart *c)
{
    for (int i = 0; i < c->count; i++) {
        const report_series *s = c->series[i];
        if (s->bad == 0)
            continue;
        report_text_put(page, "<p class=\"note\">");
        put_label(page, c, i);
        report_text_put(page, ": ");
        report_text_whole(page, (double)s->bad);
        report_text_put(page, s->bad == 1 ? " value is" : " values are");
        report_text_put(page, " NaN or infinite, the first at step ");
        report_text_whole(page, (double)s->bad_step);
        report_text_put(page, ".</p>");
    }
    if (c->left_out > 0)
        report_text_add(page, "<p class=\"note\">%d more series are in metrics.csv.</p>",
                        c->left_out);
}

/* Returns the last point whose step is at most `step`, NULL if there is none. */
static const report_point *point_at(const report_series *s, int64_t step)
{
    int64_t low = 0, high = s->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (s->points[middle].step <= step)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &s->points[low - 1] : NULL;
}

static void put_extremes(report_text *page, const chart *c)
{
    report_text_put(page, "<table><thead><tr><th scope=\"col\">Series</th><th scope=\"col\">First"
                          "</th><th scope=\"col\">Last</th><th scope=\"col\">Least (step)</th>"
                          "<th scope=\"col\">Largest (step)</th></tr></thead><tbody>");
    for (int i = 0; i < c->count; i++) {
        const report_series *s = c->series[i];
        if (s->count == 0)
            continue;
        const report_point *least = s->points, *most = s->points;
        for (int64_t k = 1; k < s->count; k++) {
            least = s->points[k].value < least->value ? &s->points[k] : least;
            most = s->points[k].value > most->value ? &s->points[k] : most;
        }
        const report_point *shown[] = { s->points, &s->points[s->count - 1], least, most };
        report_text_put(page, "<tr><th scope=\"row\">");
        put_label(page, c, i);
        report_text_put(page, "</th>");
        for (int k = 0; k < 4; k++) {
            report_text_put(page, "<td>");
            report_text_number(page, shown[k]->value);
            if (k >= 2) {
                report_text_put(page, " <small>(");
                report_text_whole(page, (double)shown[k]->step);
                report_text_put(page, ")</small>");
            }
            report_text_put(page, "</td>");
        }
        report_text_put(page, "</tr>");
    }
    report_text_put(page, "</tbody></table>");
}

static void put_rows(report_text *page, const chart *c)
{
    const report_series *longest = c->series[0];
    for (int i = 1; i < c->count; i++)
        longest = c->series[i]->count > longest->count ? c->series[i] : longest;
    report_text_put(page, "<table><thead><tr><th scope=\"col\">Step</th>");
    for (int i = 0; i < c->count; i++) {
        report_text_put(page, "<th scope=\"col\">");
        put_label(page, c, i);
        report_text_put(page, "</th>");
    }
    report_text_put(page, "</tr></thead><tbody>");
    int64_t rows = longest->count < ROWS ? longest->count : ROWS;
    for (int64_t row = 0; row < rows; row++) {
        int64_t at = rows > 1 ? row * (longest->count - 1) / (rows - 1) : 0;
        report_text_put(page, "<tr><th scope=\"row\">");
        report_text_whole(page, (double)longest->points[at].step);
        report_text_put(page, "</th>");
        for (int i = 0; i < c->count; i++) {
            const report_point *p = point_at(c->series[i], longest->points[at].step);
            report_text_put(page, "<td>");
            if (p != NULL)
                report_text_number(page, p->value);
            report_text_put(page, "</td>");
        }
        report_text_put(page, "</tr>");
    }
    report_text_put(page, "</tbody></table>");
}

/* Adds the points as JSON, for the values under the pointer. */
static void put_data(report_text *data, const chart *c, report_point *const *points,
                     const int64_t *counts)
{
    report_text_add(data, "{\"x\":[%.0f,%.0f],\"lin\":[%.9g,%.9g],\"log\":", c->first, c->last,
                    c->low, c->high);
    if (c->log_high > c->log_low)
        report_text_add(data, "[%.9g,%.9g]", c->log_low, c->log_high);
    else
        report_text_put(data, "null");
    report_text_put(data, ",\"series\":[");
    for (int i = 0; i < c->count; i++) {
        int length;
        const char *label = report_plot_series(c->series[i]->name, &length);
        report_text_add(data, "%s{\"name\":", i > 0 ? "," : "");
        report_text_json(data, label != NULL ? label : c->series[i]->name);
        report_text_add(data, ",\"color\":%d,\"step\":[", color_of(c, i));
        for (int64_t k = 0; k < counts[i]; k++)
            report_text_add(data, k > 0 ? ",%lld" : "%lld", (long long)points[i][k].step);
        report_text_put(data, "],\"value\":[");
        for (int64_t k = 0; k < counts[i]; k++)
            report_text_add(data, k > 0 ? ",%.5g" : "%.5g", points[i][k].value);
        report_text_put(data, "]}");
    }
    report_text_put(data, "]}");
}

static void put_chart(report_text *page, report_text *data, const chart *c, int number,
                      int64_t most, report_point *room)
{
    report_point *points[CHART_SERIES];
    int64_t counts[CHART_SERIES] = { 0 };
    bool logarithmic = c->log_high > c->log_low, smooth = false;
    for (int i = 0; i < c->count; i++) {
        points[i] = room + i * MOST_POINTS;
        counts[i] = report_series_thin(c->series[i]->points, c->series[i]->count, points[i], most);
        smooth = smooth || is_smoothed(c->series[i]);
    }
    report_text_add(page, "<article class=\"card chart\" data-chart=\"%d\"><h3>", number);
    report_plot_title(page, c->name, c->length);
    report_text_put(page, "</h3>");
    put_legend(page, c);
    if (logarithmic)
        report_text_add(page,
                        "<input type=\"checkbox\" class=\"tool to-log\" id=\"log%d\"%s>"
                        "<label for=\"log%d\">log scale</label>",
                        number, c->log_first ? " checked" : "", number);
    if (smooth)
        report_text_add(page,
                        "<input type=\"checkbox\" class=\"tool to-raw\" id=\"raw%d\" checked>"
                        "<label for=\"raw%d\">raw values</label>",
                        number, number);
    report_text_put(page, "<div class=\"plots\">");
    put_plot(page, c, false, points, counts);
    if (logarithmic)
        put_plot(page, c, true, points, counts);
    report_text_put(page, "</div>");
    put_notes(page, c);
    report_text_put(page, "<details><summary>Table</summary><div class=\"scroll\">");
    put_extremes(page, c);
    put_rows(page, c);
    report_text_put(page, "</div></details></article>");
    report_text_put(data, number > 0 ? "," : "");
    put_data(data, c, points, counts);
}

void report_plot_section(const report *r, report_text *page, report_text *data)
{
    int left_out = 0, curves = 0;
    chart *charts = tn_calloc(CHARTS, sizeof *charts);
    report_point *room = tn_malloc(CHART_SERIES * MOST_POINTS * sizeof *room);
    if (charts == NULL || room == NULL) {
        page->status = tn_error_last_code();
        tn_free(charts);
        tn_free(room);
        return;
    }
    int count = collect(r, charts, &left_out);
    for (int i = 0; i < count; i++)
        curves += charts[i].count;
    int64_t most = ALL_POINTS / (curves > 0 ? curves : 1);
    most = most < LEAST_POINTS ? LEAST_POINTS : most > MOST_POINTS ? MOST_POINTS : most;
    report_text_put(page, "<section id=\"curves\" aria-labelledby=\"h-curves\"><h2 id=\"h-curves\">"
                          "Curves</h2>");
    if (count == 0)
        report_text_put(page, "<p class=\"note\">No scalar has been recorded.</p>");
    report_text_put(page, "<div class=\"grid charts\">");
    for (int i = 0; i < count; i++) {
        set_axes(&charts[i]);
        put_chart(page, data, &charts[i], i, most, room);
    }
    report_text_put(page, "</div>");
    if (left_out > 0)
        report_text_add(page, "<p class=\"note\">%d more scalars are in metrics.csv.</p>",
                        left_out);
    report_text_put(page, "</section>");
    tn_free(charts);
    tn_free(room);
}
