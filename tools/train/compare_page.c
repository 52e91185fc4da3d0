/* SPDX-License-Identifier: MIT
 *
 * The page of tenon report: the curves of several runs in the same charts, the table of their best
 * metrics, and that of the settings that differ. A run has the same color everywhere. */
#include "compare.h"

#include <math.h>
#include <string.h>

enum { LONGEST = 1000 /* characters of a setting */ };

/* ---- curves ---------------------------------------------------------------------------------- */

/* Returns in which pass the curves of a scalar are added: what is validated comes first. -1: no
 * curve. */
static int pass_of(const char *scalar)
{
    int length;
    const char *part = report_plot_series(scalar, &length);

    if (strcmp(scalar, "epoch") == 0)
        return -1;
    return part != NULL && strcmp(part, "validation") == 0 ? 0
           : part != NULL && strcmp(part, "train") == 0    ? 1
                                                           : 2;
}

/* Moves a series into the list of the page, where its name ends in that of its run: so the series
 * of all runs share a chart. */
static tn_status take_series(report_list *to, report_series *from, const compare_run *run,
                             int color)
{
    report_text name = { .status = TN_OK };
    report_series *made;

    report_text_add(&name, "%s/%s", from->name, run->name);
    made = name.status == TN_OK ? report_series_make(to, name.bytes) : NULL;
    report_text_drop(&name);
    if (made == NULL)
        return TN_ERR_MEMORY;
    char *own = made->name;
    *made = *from;
    made->name = own;
    made->color = color + 1;
    from->points = NULL;
    from->count = from->room = 0;
    return TN_OK;
}

static tn_status take_curves(compare *all, report_list *to)
{
    tn_status status = TN_OK;

    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i < all->count; i++) {
            report_list *from = &all->runs[i].rows.list;

            for (int64_t k = 0; k < from->count && status == TN_OK; k++)
                if (pass_of(from->series[k].name) == pass)
                    status = take_series(to, &from->series[k], &all->runs[i], i);
        }
    return status;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void put_name(report_text *page, const compare *all, int at)
{
    report_text_add(page, "<i class=\"key s%d\"></i>", at);
    report_text_html(page, all->runs[at].name);
}

static void put_best(report_text *page, const compare *all, int at, int column)
{
    compare_best best = all->runs[at].best[column];
    bool first = compare_is_best(all, column, best.value);

    report_text_put(page, "<td>");
    if (!isnan(best.value)) {
        report_text_put(page, first ? "<b>" : "");
        report_text_number(page, best.value);
        report_text_put(page, first ? "</b>" : "");
        if (best.epoch > 0)
            report_text_add(page, " <small>epoch %lld</small>", (long long)best.epoch);
    }
    report_text_put(page, "</td>");
}

static void put_runs(report_text *page, const compare *all)
{
    report_text_put(page,
                    "<section id=\"runs\" aria-labelledby=\"h-runs\"><h2 id=\"h-runs\">Runs</h2>"
                    "<article class=\"card\"><div class=\"scroll\"><table class=\"versus\"><thead>"
                    "<tr><th scope=\"col\">Run</th>");
    for (int c = 0; c < COMPARE_COLUMNS; c++)
        if (compare_has(all, c)) {
            report_text_put(page, "<th scope=\"col\">");
            report_plot_title(page, compare_columns[c].scalar,
                              (int)strlen(compare_columns[c].scalar));
            report_text_put(page, "</th>");
        }
    report_text_put(page, "<th scope=\"col\">Epochs</th><th scope=\"col\">Steps</th>"
                          "<th scope=\"col\">Folder</th></tr></thead><tbody>");
    for (int i = 0; i < all->count; i++) {
        report_text_put(page, "<tr><th scope=\"row\">");
        put_name(page, all, i);
        report_text_put(page, "</th>");
        for (int c = 0; c < COMPARE_COLUMNS; c++)
            if (compare_has(all, c))
                put_best(page, all, i, c);
        report_text_put(page, "<td>");
        report_text_whole(page, (double)all->runs[i].rows.epoch_count);
        report_text_put(page, "</td><td>");
        report_text_whole(page, (double)compare_steps(&all->runs[i]));
        report_text_put(page, "</td><td>");
        report_text_short(page, all->runs[i].folder, LONGEST);
        report_text_put(page, "</td></tr>");
    }
    report_text_put(page, "</tbody></table></div><p class=\"note\">The best value of each metric; "
                          "bold: the best of all runs.</p></article></section>");
}

static void put_setting(report_text *page, const compare *all, int which)
{
    report_text_put(page, "<tr><th scope=\"row\">");
    report_text_html(page, settings_row((setting)which)->name);
    report_text_put(page, "</th>");
    for (int i = 0; i < all->count; i++) {
        report_text_put(page, "<td>");
        report_text_short(page, compare_setting(&all->runs[i], which), LONGEST);
        report_text_put(page, "</td>");
    }
    report_text_put(page, "</tr>");
}

static void put_settings(report_text *page, const compare *all)
{
    int different = 0;

    for (int s = 0; s < SETTINGS; s++)
        different += compare_differs(all, s);
    report_text_put(page, "<section id=\"settings\" aria-labelledby=\"h-settings\"><h2 "
                          "id=\"h-settings\">Settings that differ</h2><article class=\"card\">");
    if (different > 0) {
        report_text_put(page, "<div class=\"scroll\"><table class=\"versus texts\"><thead><tr>"
                              "<th scope=\"col\">Setting</th>");
        for (int i = 0; i < all->count; i++) {
            report_text_put(page, "<th scope=\"col\">");
            put_name(page, all, i);
            report_text_put(page, "</th>");
        }
        report_text_put(page, "</tr></thead><tbody>");
        for (int s = 0; s < SETTINGS; s++)
            if (compare_differs(all, s))
                put_setting(page, all, s);
        report_text_put(page, "</tbody></table></div>");
    } else if (compare_known(all) >= 2) {
        report_text_put(page, "<p class=\"note\">The settings do not differ.</p>");
    }
    for (int i = 0; i < all->count; i++)
        if (!all->runs[i].known) {
            report_text_put(page, "<p class=\"note\">The settings of ");
            report_text_html(page, all->runs[i].name);
            report_text_put(page, " are not known: it has no checkpoint that can be read.</p>");
        }
    report_text_put(page, "</article></section>");
}

/* ---- the page -------------------------------------------------------------------------------- */

static void put_head(report_text *page, const compare *all)
{
    report_text title = { .status = TN_OK };

    report_text_put(&title, "Comparison of ");
    for (int i = 0; i < all->count; i++) {
        report_text_put(&title, i == 0 ? "" : i + 1 == all->count ? " and " : ", ");
        report_text_put(&title, all->runs[i].name);
    }
    if (title.status == TN_OK)
        report_page_begin(page, title.bytes);
    else
        page->status = title.status;
    report_text_drop(&title);
    report_text_add(page, "<p class=\"sub\">%d runs <span aria-hidden=\"true\">\xc2\xb7</span> ",
                    all->count);
    report_page_time(page);
    report_text_put(page, "</p></div><nav aria-label=\"Sections\"><a href=\"#runs\">Runs</a>"
                          "<a href=\"#settings\">Settings</a><a href=\"#curves\">Curves</a></nav>"
                          "</header>\n<main>");
}

tn_status compare_page(compare *all, const char *path)
{
    report_text page = { .status = TN_OK }, data = { .status = TN_OK };
    report curves = { .outcome = NULL };
    tn_status status = take_curves(all, &curves.list);

    put_head(&page, all);
    put_runs(&page, all);
    put_settings(&page, all);
    report_plot_section(&curves, &page, &data);
    report_page_end(&page, "The numbers are in metrics.csv in the folder of each run.", &data);
    status = status != TN_OK ? status : page.status != TN_OK ? page.status : data.status;
    if (status == TN_OK)
        status = report_file_replace(path, page.bytes, page.size);
    report_series_drop(&curves.list);
    report_text_drop(&page);
    report_text_drop(&data);
    return status;
}
