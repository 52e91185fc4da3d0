/* SPDX-License-Identifier: MIT
 *
 * tenon train --find-lr: takes steps with a learning rate that grows from step to step, and
 * suggests a rate by the curve of the loss. It writes no weights, and nothing into the folder of
 * the run. */
#include "report_private.h"
#include "train.h"
#include "work.h"

#include <math.h>
#include <string.h>

/* The rates, and the steps without --max-steps. */
static const double first_rate = 1e-7, last_rate = 10;
enum { STEPS = 100, STEPS_LEAST = 10 };

/* The part of the average that stays from step to step. */
static const double decay = 0.9;
/* The sweep ends where the average is above the least one by this many times the first one. */
static const double too_much = 3;

typedef struct point {
    double rate, loss, smooth; /* `smooth`: the average up to here */
} point;

typedef struct sweep {
    point *at;
    int64_t count, planned;
    int64_t least, steepest; /* where the average is least, and falls fastest; -1: nowhere */
    const char *why;         /* why it ended */
} sweep;

/* ---- the sweep ------------------------------------------------------------------------------- */

static double rate_of(const sweep *s, int64_t step)
{
    return first_rate * pow(last_rate / first_rate, (double)step / (double)(s->planned - 1));
}

/* Adds a loss. Returns whether the sweep goes on. */
static bool add_point(sweep *s, double *average, double loss)
{
    point *p = &s->at[s->count];

    *average = decay * *average + (1 - decay) * loss;
    *p = (point){ rate_of(s, s->count), loss, *average / (1 - pow(decay, (double)s->count + 1)) };
    if (s->least < 0 || p->smooth < s->at[s->least].smooth)
        s->least = s->count;
    s->count++;
    if (p->smooth <= s->at[s->least].smooth + too_much * fabs(s->at[0].smooth))
        return true;
    s->why = "the loss became too large";
    return false;
}

/* Runs the batches of a step. Sets *loss to the mean of their losses. After the first step a loss
 * that is not finite because of the weights is no failure here: the rate is too large. */
static tn_status take_step(run *r, bool first, double *loss)
{
    int64_t share = setting_count(r->set, SET_ACCUMULATE);
    uint64_t mark = tn_error_mark();
    double sum = 0;
    tn_pack *batch = NULL;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < share && status == TN_OK && isfinite(sum); i++) {
        double one = 0;

        tn_error_clear();
        batch = tn_loader_next(r->loader);
        if (batch == NULL && !tn_failed()) /* the next epoch begins */
            batch = tn_loader_next(r->loader);
        if (batch == NULL)
            return tn_failed() ? work_data_failed(tn_error_last())
                               : tn_fail(TN_ERR_VALUE, "--data: no sample could be read");
        r->diverged = false;
        status = step_batch(r, batch, share, &one);
        sum += one;
    }
    *loss = sum / (double)share;
    if (status != TN_OK && (first || !r->diverged))
        return status;
    if (status != TN_OK) {
        tn_error_restore(mark);
        *loss = NAN;
    }
    return isfinite(*loss) ? step_take(r, batch) : TN_OK;
}

static tn_status run_sweep(run *r, sweep *s)
{
    double average = 0, rate;
    bool more = true;
    tn_status status = tn_optimizer_get(r->optimizer, 0, "lr", &rate);

    if (status == TN_OK)
        status = freeze_mode(r);
    progress_begin(r->progress, 1, "find-lr", s->planned);
    while (status == TN_OK && more && s->count < s->planned) {
        double loss = 0;

        if (signals_asked() != 0)
            return TN_ERR_CANCELLED;
        status = tn_optimizer_set(r->optimizer, -1, "lr", rate_of(s, s->count));
        if (status == TN_OK)
            status = take_step(r, s->count == 0, &loss);
        if (status == TN_OK && !isfinite(loss)) {
            s->why = "the loss was no longer finite";
            break;
        }
        if (status == TN_OK)
            more = add_point(s, &average, loss);
        progress_step(r->progress, s->count, r->counted, NULL, 0);
    }
    progress_clear(r->progress);
    return status;
}

/* Finds where the average falls fastest by the logarithm of the rate, before it is least. */
static void choose(sweep *s)
{
    double best = 0;

    for (int64_t i = 1; i < s->count && i <= s->least; i++) {
        double fall = s->at[i - 1].smooth - s->at[i + 1 < s->count ? i + 1 : i].smooth;

        if (fall > best) {
            best = fall;
            s->steepest = i;
        }
    }
}

/* ---- the picture ----------------------------------------------------------------------------- */

enum { COLUMNS = 60, LINES = 10 };
enum { WIDE = 760, HIGH = 440, LEFT = 70, RIGHT = 30, TOP = 50, BOTTOM = 60 };

/* What the picture shows: from the least average to a little above the first one, so that the end,
 * where the loss grows, does not flatten the rest. */
static void range_of(const sweep *s, double *low, double *high)
{
    *low = s->at[s->least].smooth;
    *high = s->at[0].smooth;
    for (int64_t i = 0; i <= s->least; i++)
        *high = s->at[i].smooth > *high ? s->at[i].smooth : *high;
    *high += 0.1 * (*high - *low);
    if (!(*high > *low))
        *high = *low + 1;
}

/* The place of a rate between the first and the last one, 0 to 1. */
static double place_of(double rate)
{
    return log(rate / first_rate) / log(last_rate / first_rate);
}

/* Draws the average with characters. A line of colons marks the rate that is suggested. */
static void draw_text(const run *r, const sweep *s)
{
    char grid[LINES][COLUMNS + 1], number[32];
    double low, high;

    range_of(s, &low, &high);
    for (int y = 0; y < LINES; y++) {
        memset(grid[y], ' ', COLUMNS);
        grid[y][COLUMNS] = '\0';
        if (s->steepest >= 0)
            grid[y][(int)(place_of(s->at[s->steepest].rate) * (COLUMNS - 1))] = ':';
    }
    for (int64_t i = 0; i < s->count; i++) {
        double share = (s->at[i].smooth - low) / (high - low);

        if (share <= 1)
            grid[(int)lround((1 - share) * (LINES - 1))]
                [(int)(place_of(s->at[i].rate) * (COLUMNS - 1))] = '*';
    }
    progress_say(r->progress, "loss (average) by learning rate");
    for (int y = 0; y < LINES; y++)
        progress_say(r->progress, "%8s |%s",
                     y == 0 || y == LINES - 1
                         ? progress_number(y == 0 ? high : low, 3, number, sizeof number)
                         : "",
                     grid[y]);
    progress_say(r->progress, "         %-15s%-15s%-15s%-14s%s", "1e-7", "1e-5", "1e-3", "0.1",
                 "10");
}

static double x_of(double rate)
{
    return LEFT + place_of(rate) * (WIDE - LEFT - RIGHT);
}

/* Adds a curve. What is above the picture is cut off. */
static void put_curve(report_text *t, const sweep *s, bool smooth, double low, double high)
{
    report_text_add(t,
                    "<polyline clip-path=\"url(#c)\" fill=\"none\" stroke=\"%s\" "
                    "stroke-width=\"%s\" points=\"",
                    smooth ? "#1f6feb" : "#8c959f", smooth ? "2.5" : "1");
    for (int64_t i = 0; i < s->count; i++) {
        double value = smooth ? s->at[i].smooth : s->at[i].loss;

        report_text_add(t, "%.1f,%.1f ", x_of(s->at[i].rate),
                        HIGH - BOTTOM - (value - low) / (high - low) * (HIGH - TOP - BOTTOM));
    }
    report_text_put(t, "\"/>\n");
}

/* Writes the picture as SVG. */
static tn_status draw_file(const sweep *s, const char *path)
{
    report_text t = { .status = TN_OK };
    double low, high;
    tn_status status;

    range_of(s, &low, &high);
    report_text_add(&t,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                    "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"%d\" "
                    "height=\"%d\" fill=\"#fff\"/>\n<clipPath id=\"c\"><rect x=\"%d\" y=\"%d\" "
                    "width=\"%d\" height=\"%d\"/></clipPath>\n<text x=\"%d\" y=\"28\" "
                    "font-size=\"16\">Loss by learning rate</text>\n",
                    WIDE, HIGH, WIDE, HIGH, LEFT, TOP, WIDE - LEFT - RIGHT, HIGH - TOP - BOTTOM,
                    LEFT);
    for (int i = -7; i <= 1; i++)
        report_text_add(&t,
                        "<path d=\"M%.1f %dV%d\" stroke=\"#d0d7de\"/><text x=\"%.1f\" y=\"%d\" "
                        "text-anchor=\"middle\">%g</text>\n",
                        x_of(pow(10, i)), TOP, HIGH - BOTTOM, x_of(pow(10, i)), HIGH - BOTTOM + 20,
                        pow(10, i));
    for (int i = 0; i <= 4; i++)
        report_text_add(&t,
                        "<path d=\"M%d %.1fH%d\" stroke=\"#d0d7de\"/><text x=\"%d\" y=\"%.1f\" "
                        "text-anchor=\"end\">%.3g</text>\n",
                        LEFT, HIGH - BOTTOM - i * (HIGH - TOP - BOTTOM) / 4.0, WIDE - RIGHT,
                        LEFT - 8, HIGH - BOTTOM - i * (HIGH - TOP - BOTTOM) / 4.0 + 4,
                        low + i * (high - low) / 4);
    report_text_add(&t,
                    "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">learning rate</text>\n"
                    "<text transform=\"translate(18 %d) rotate(-90)\" "
                    "text-anchor=\"middle\">loss; blue: its average</text>\n",
                    (WIDE + LEFT - RIGHT) / 2, HIGH - 14, (HIGH + TOP - BOTTOM) / 2);
    put_curve(&t, s, false, low, high);
    put_curve(&t, s, true, low, high);
    if (s->steepest >= 0)
        report_text_add(&t,
                        "<path d=\"M%.1f %dV%d\" stroke=\"#d1480f\" stroke-width=\"2\"/>"
                        "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#d1480f\">lr=%.2g"
                        "</text>\n",
                        x_of(s->at[s->steepest].rate), TOP, HIGH - BOTTOM,
                        x_of(s->at[s->steepest].rate), TOP - 6, s->at[s->steepest].rate);
    report_text_put(&t, "</svg>\n");
    status = t.status == TN_OK ? report_file_replace(path, t.bytes, t.size) : t.status;
    report_text_drop(&t);
    return status;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void answer_text(const run *r, const sweep *s)
{
    char loss[32];

    draw_text(r, s);
    progress_say(r->progress, "%lld steps, lr from %g to %.2g: %s", (long long)s->count, first_rate,
                 s->at[s->count - 1].rate, s->why);
    progress_say(r->progress, "the loss is least, %s, at lr=%.2g",
                 progress_number(s->at[s->least].smooth, 4, loss, sizeof loss),
                 s->at[s->least].rate);
    if (s->steepest >= 0)
        progress_say(r->progress, "suggestion: lr=%.2g, where the loss falls fastest",
                     s->at[s->steepest].rate);
    else
        progress_say(r->progress, "no suggestion: the loss did not fall");
}

static void answer_json(const sweep *s)
{
    json_begin(NULL, '{');
    json_text("ended", s->why);
    if (s->steepest >= 0)
        json_float("suggestion", s->at[s->steepest].rate);
    else
        json_null("suggestion");
    json_begin("least", '{');
    json_float("lr", s->at[s->least].rate);
    json_float("smooth", s->at[s->least].smooth);
    json_end('}');
    json_begin("points", '[');
    for (int64_t i = 0; i < s->count; i++) {
        json_begin(NULL, '{');
        json_float("lr", s->at[i].rate);
        json_float("loss", s->at[i].loss);
        json_float("smooth", s->at[i].smooth);
        json_end('}');
    }
    json_end(']');
    json_end('}');
}

int find_lr(run *r)
{
    int64_t asked = setting_count(r->set, SET_MAX_STEPS);
    sweep s = { .planned = asked > 0 ? asked : STEPS,
                .least = -1,
                .steepest = -1,
                .why = "the end of the sweep" };
    const char *path = setting_text(r->set, SET_CHART);
    tn_status status = TN_OK;

    if (s.planned < STEPS_LEAST)
        status = tn_fail(TN_ERR_VALUE, "--max-steps: too few, got %lld; expected at least %d",
                         (long long)asked, STEPS_LEAST);
    if (status == TN_OK) {
        s.at = tn_calloc((size_t)s.planned, sizeof *s.at);
        status = s.at != NULL ? run_sweep(r, &s) : TN_ERR_MEMORY;
    }
    if (status == TN_OK && s.count == 0)
        status = tn_fail(TN_ERR_VALUE, "the loss of the first batch is not finite");
    if (status == TN_OK)
        choose(&s);
    if (status == TN_OK && path != NULL)
        status = draw_file(&s, path);
    if (status == TN_OK && tool_json)
        answer_json(&s);
    else if (status == TN_OK)
        answer_text(r, &s);
    tn_free(s.at);
    if (status == TN_ERR_CANCELLED)
        return 128 + signals_asked();
    if (status == TN_OK)
        return EXIT_OK;
    tn_error_prefix("--find-lr: ");
    return tool_refuse(tn_error_last_code(), tn_error_last()->message);
}
