/* SPDX-License-Identifier: MIT
 *
 * The confusion matrix of the page, and the numbers of each class. Of many classes the matrix shows
 * those that are confused most. */
#include "report_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    NARROW = 12,       /* classes in a matrix that takes half of the page */
    SHOWN = 24,        /* classes in the matrix */
    PAIRS = 20,        /* in the list of confused classes */
    CLASS_ROWS = 1000, /* of the table of classes */
    NAME = 40          /* characters of the name of a class */
};

/* The sums of a class. */
typedef struct class_sums {
    int64_t class;
    double right, truth, predicted; /* right answers, samples, predictions */
    int64_t taken_for, taken;       /* the class it was taken for most often, and how often */
} class_sums;

typedef struct matrix {
    class_sums *sums;    /* by class */
    report_count *wrong; /* confused pairs, the most frequent first */
    int64_t wrong_count;
    int64_t shown[SHOWN];
    int shown_count;
    double right, all;
} matrix;

static int by_count(const void *a, const void *b)
{
    const report_count *one = a, *two = b;
    if (one->count != two->count)
        return one->count < two->count ? 1 : -1;
    if (one->truth != two->truth)
        return one->truth < two->truth ? -1 : 1;
    return one->predicted < two->predicted ? -1 : one->predicted > two->predicted;
}

static int by_number(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, two = *(const int64_t *)b;
    return one < two ? -1 : one > two;
}

static void show(matrix *m, int64_t class)
{
    for (int i = 0; i < m->shown_count; i++)
        if (m->shown[i] == class)
            return;
    if (m->shown_count < SHOWN)
        m->shown[m->shown_count++] = class;
}

static tn_status sum_up(const report *r, matrix *m)
{
    const report_counts *counts = &r->counts;
    m->sums = tn_calloc((size_t)r->class_count, sizeof *m->sums);
    m->wrong = tn_malloc((size_t)counts->used * sizeof *m->wrong);
    if (m->sums == NULL || m->wrong == NULL)
        return tn_error_last_code();
    for (int64_t i = 0; i < r->class_count; i++)
        m->sums[i].class = i;
    for (int64_t i = 0; i < counts->size; i++) {
        const report_count *pair = &counts->places[i];
        if (pair->count == 0)
            continue;
        class_sums *truth = &m->sums[pair->truth];
        truth->truth += (double)pair->count;
        m->sums[pair->predicted].predicted += (double)pair->count;
        m->all += (double)pair->count;
        if (pair->truth == pair->predicted) {
            truth->right += (double)pair->count;
            m->right += (double)pair->count;
            continue;
        }
        m->wrong[m->wrong_count++] = *pair;
        if (pair->count > truth->taken ||
            (pair->count == truth->taken && pair->predicted < truth->taken_for)) {
            truth->taken = pair->count;
            truth->taken_for = pair->predicted;
        }
    }
    if (m->wrong_count > 0)
        qsort(m->wrong, (size_t)m->wrong_count, sizeof *m->wrong, by_count);
    for (int64_t i = 0; i < r->class_count && r->class_count <= SHOWN; i++)
        show(m, i);
    for (int64_t i = 0; i < m->wrong_count && m->shown_count < SHOWN; i++) {
        show(m, m->wrong[i].truth);
        show(m, m->wrong[i].predicted);
    }
    qsort(m->shown, (size_t)m->shown_count, sizeof *m->shown, by_number);
    return TN_OK;
}

/* ---- the matrix ------------------------------------------------------------------------------ */

/* Adds a count that fits a cell. */
static void put_small(report_text *page, int64_t count)
{
    static const char *const units[] = { "", "k", "M", "G", "T", "P", "E" };
    double number = (double)count;
    int unit = 0;
    for (; number >= (unit > 0 ? 999.5 : 9999.5); unit++)
        number /= 1000;
    report_text_add(page, unit > 0 ? "%.3g%s" : "%.0f%s", number, units[unit]);
}

static void put_cell(report_text *page, const report *r, const matrix *m, int64_t truth,
                     int64_t predicted)
{
    int64_t count = report_counts_get(&r->counts, truth, predicted);
    double share = m->sums[truth].truth > 0 ? (double)count / m->sums[truth].truth : 0;
    if (count == 0) {
        report_text_put(page, truth == predicted ? "<td class=\"hit\">0</td>" : "<td></td>");
        return;
    }
    /* The square root makes rare confusions visible. */
    double shade = truth == predicted ? share : sqrt(share);
    report_text_add(page, "<td class=\"%s%s\" style=\"--v:%.2f\" title=\"",
                    truth == predicted ? "hit" : "miss", shade > 0.55 ? " full" : "",
                    0.08 + 0.84 * shade);
    report_text_short(page, r->classes[truth], NAME);
    report_text_put(page, truth == predicted ? " recognized: " : " taken for ");
    if (truth != predicted) {
        report_text_short(page, r->classes[predicted], NAME);
        report_text_put(page, ": ");
    }
    report_text_whole(page, (double)count);
    report_text_add(page, " (%.1f %%)\">", 100 * share);
    put_small(page, count);
    report_text_put(page, "</td>");
}

static void put_matrix(report_text *page, const report *r, const matrix *m)
{
    report_text_add(page, "<article class=\"card%s\"><h3 id=\"h-matrix\">",
                    m->shown_count > NARROW ? " wide" : "");
    if (m->shown_count < r->class_count) {
        report_text_add(page, "The %d classes of ", m->shown_count);
        report_text_whole(page, (double)r->class_count);
        report_text_put(page, " that are confused most");
    } else {
        report_text_put(page, "Counts");
    }
    report_text_put(page,
                    "</h3><p class=\"note\">Rows: true class. Columns: predicted class. Shades: "
                    "share of the row.</p><div class=\"scroll\"><table class=\"matrix\" "
                    "aria-labelledby=\"h-matrix\"><thead><tr><td></td>");
    for (int i = 0; i < m->shown_count; i++) {
        report_text_put(page, "<th scope=\"col\"><span>");
        report_text_short(page, r->classes[m->shown[i]], 16);
        report_text_put(page, "</span></th>");
    }
    report_text_put(page, "</tr></thead><tbody>");
    for (int y = 0; y < m->shown_count; y++) {
        report_text_put(page, "<tr><th scope=\"row\">");
        report_text_short(page, r->classes[m->shown[y]], 24);
        report_text_put(page, "</th>");
        for (int x = 0; x < m->shown_count; x++)
            put_cell(page, r, m, m->shown[y], m->shown[x]);
        report_text_put(page, "</tr>");
    }
    report_text_put(page, "</tbody></table></div></article>");
}

static void put_pairs(report_text *page, const report *r, const matrix *m)
{
    if (m->wrong_count == 0)
        return;
    report_text_put(page,
                    "<article class=\"card\"><h3 id=\"h-pairs\">Most frequent confusions</h3>"
                    "<div class=\"scroll tall\"><table class=\"numbers\" "
                    "aria-labelledby=\"h-pairs\"><thead><tr><th scope=\"col\">True</th>"
                    "<th scope=\"col\" class=\"text\">Predicted</th><th scope=\"col\">Samples</th>"
                    "<th scope=\"col\">Share</th></tr></thead><tbody>");
    for (int64_t i = 0; i < m->wrong_count && i < PAIRS; i++) {
        const report_count *pair = &m->wrong[i];
        report_text_put(page, "<tr><th scope=\"row\">");
        report_text_short(page, r->classes[pair->truth], NAME);
        report_text_put(page, "</th><th scope=\"row\">");
        report_text_short(page, r->classes[pair->predicted], NAME);
        report_text_put(page, "</th><td>");
        report_text_whole(page, (double)pair->count);
        report_text_add(page, "</td><td>%.1f %%</td></tr>",
                        100 * (double)pair->count / m->sums[pair->truth].truth);
    }
    report_text_put(page, "</tbody></table></div></article>");
}

/* ---- classes --------------------------------------------------------------------------------- */

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static double f1_of(const class_sums *s)
{
    return share(2 * s->right, s->truth + s->predicted);
}

static int by_f1(const void *a, const void *b)
{
    const class_sums *one = a, *two = b;
    double x = f1_of(one), y = f1_of(two);
    x = isnan(x) ? 2 : x;
    y = isnan(y) ? 2 : y;
    return x < y ? -1 : x > y ? 1 : one->class < two->class ? -1 : one->class > two->class;
}

static void put_share(report_text *page, double value)
{
    if (isnan(value))
        report_text_put(page, "<td>\xe2\x80\x93</td>");
    else
        report_text_add(page, "<td class=\"bar\" style=\"--v:%.3f\" data-v=\"%.6g\">%.1f %%</td>",
                        value, value, 100 * value);
}

static void put_class(report_text *page, const report *r, const class_sums *s)
{
    report_text_put(page, "<tr><th scope=\"row\">");
    report_text_short(page, r->classes[s->class], NAME);
    report_text_add(page, "</th><td data-v=\"%.17g\">", s->truth);
    report_text_whole(page, s->truth);
    report_text_put(page, "</td>");
    put_share(page, share(s->right, s->predicted));
    put_share(page, share(s->right, s->truth));
    put_share(page, f1_of(s));
    report_text_put(page, "<td class=\"text\">");
    if (s->taken > 0) {
        report_text_short(page, r->classes[s->taken_for], NAME);
        report_text_put(page, " <small>(");
        report_text_whole(page, (double)s->taken);
        report_text_put(page, s->taken == 1 ? " sample)</small>" : " samples)</small>");
    }
    report_text_put(page, "</td></tr>");
}

static void put_classes(report_text *page, const report *r, matrix *m)
{
    static const char *const columns[] = { "Class",  "Samples", "Precision",
                                           "Recall", "F1",      "Most often taken for" };
    /* Few classes are in their order, many have the worst first. */
    bool sorted = r->class_count > SHOWN;
    if (sorted)
        qsort(m->sums, (size_t)r->class_count, sizeof *m->sums, by_f1);
    report_text_add(page,
                    "<article class=\"card%s\"><h3 id=\"h-classes\">Classes</h3><div "
                    "class=\"scroll tall\"><table class=\"numbers sortable\" "
                    "aria-labelledby=\"h-classes\"><thead><tr>",
                    m->shown_count > NARROW ? "" : " wide");
    for (int i = 0; i < 6; i++)
        report_text_add(page, "<th scope=\"col\"%s%s>%s</th>", i == 5 ? " class=\"text\"" : "",
                        sorted && i == 4 ? " aria-sort=\"ascending\"" : "", columns[i]);
    report_text_put(page, "</tr></thead><tbody>");
    int64_t rows = r->class_count < CLASS_ROWS ? r->class_count : CLASS_ROWS;
    for (int64_t i = 0; i < rows; i++)
        put_class(page, r, &m->sums[i]);
    report_text_put(page, "</tbody></table></div>");
    if (rows < r->class_count) {
        report_text_put(page, "<p class=\"note\">");
        report_text_whole(page, (double)rows);
        report_text_put(page, " classes of ");
        report_text_whole(page, (double)r->class_count);
        report_text_put(page, ", the worst first.</p>");
    }
    report_text_put(page, "</article>");
}

static void put_summary(report_text *page, const report *r, const matrix *m)
{
    double sum = 0;
    int64_t classes = 0;
    for (int64_t i = 0; i < r->class_count; i++)
        if (m->sums[i].truth > 0) {
            double f1 = f1_of(&m->sums[i]);
            sum += isnan(f1) ? 0 : f1;
            classes++;
        }
    report_text_add(page, "<p>Accuracy <b>%.2f %%</b> of ", 100 * share(m->right, m->all));
    report_text_whole(page, m->all);
    report_text_add(page, " samples in epoch %lld, mean F1 of the classes <b>%.2f %%</b>.</p>",
                    (long long)r->counts.epoch, 100 * share(sum, (double)classes));
}

void report_matrix_section(const report *r, report_text *page)
{
    matrix m = { .sums = NULL };
    if (r->counts.used == 0)
        return;
    tn_status status = sum_up(r, &m);
    if (status == TN_OK) {
        report_text_put(page, "<section id=\"confusion\" aria-labelledby=\"h-confusion\"><h2 "
                              "id=\"h-confusion\">Confusion matrix</h2>");
        put_summary(page, r, &m);
        /* A small matrix is placed beside the list of confusions. */
        report_text_add(page, "<div class=\"grid%s\">", m.shown_count > NARROW ? " uneven" : "");
        if (m.shown_count > 0)
            put_matrix(page, r, &m);
        put_pairs(page, r, &m);
        put_classes(page, r, &m);
        report_text_put(page, "</div></section>");
    } else {
        page->status = status;
    }
    tn_free(m.sums);
    tn_free(m.wrong);
}
