/* SPDX-License-Identifier: MIT
 *
 * report.html: one page without references to other files, which is complete without its script. */
#include "report_private.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

extern const unsigned char tn_embed_page_style[], tn_embed_page_script[];

enum {
    TILES = 4,        /* of metrics */
    EPOCH_ROWS = 200, /* of the table of epochs */
    EPOCH_COLUMNS = 12,
    LONGEST = 1000 /* characters of a setting */
};

/* ---- settings, environment ------------------------------------------------------------------- */

static void put_row(report_text *t, const char *name, const char *value)
{
    report_text_put(t, "<tr><th scope=\"row\">");
    report_text_short(t, name != NULL ? name : "", 100);
    report_text_put(t, "</th><td>");
    report_text_short(t, value != NULL ? value : "", LONGEST);
    report_text_put(t, "</td></tr>");
}

static void put_plugins(report_text *t)
{
    report_text names = { .status = TN_OK };
    for (int64_t i = 0; i < tn_plugin_count(); i++) {
        tn_plugin_report plugin;
        if (tn_plugin_report_at(i, &plugin) == TN_OK && plugin.active != 0)
            report_text_add(&names, "%s%s %s", names.size > 0 ? ", " : "", plugin.id,
                            plugin.version);
    }
    put_row(t, "active plugins", names.bytes);
    t->status = t->status != TN_OK ? t->status : names.status;
    report_text_drop(&names);
}

tn_status report_page_rows(report *r, const report_setup *setup)
{
    char text[512];
    struct utsname system;
    time_t seconds = time(NULL);
    struct tm date;
    report_text *t = &r->environment;

    for (int64_t i = 0; i < setup->setting_count; i++)
        put_row(&r->settings, setup->settings[i].name, setup->settings[i].value);
    if (localtime_r(&seconds, &date) != NULL &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &date) > 0)
        put_row(t, setup->how == REPORT_RESUME ? "resumed" : "started", text);
    for (int64_t i = 0; i < setup->environment_count; i++)
        put_row(t, setup->environment[i].name, setup->environment[i].value);
    tn_snprint(text, sizeof text, "%s, ABI %d", tn_version(), TN_ABI_MAJOR);
    put_row(t, "tenon", text);
    if (uname(&system) == 0) {
        tn_snprint(text, sizeof text, "%s %s %s", system.sysname, system.release, system.machine);
        put_row(t, "system", text);
    }
    put_row(t, "default device", tn_device_name(tn_default_device()));
    tn_snprint(text, sizeof text, "%d", tn_num_threads());
    put_row(t, "threads", text);
    return r->settings.status != TN_OK ? r->settings.status : t->status;
}

static void put_table(report_text *page, const char *id, const char *title, const report_text *rows)
{
    report_text_add(page,
                    "<article class=\"card\"><h3 id=\"%s\">%s</h3><div class=\"scroll\"><table "
                    "class=\"facts\" aria-labelledby=\"%s\"><tbody>",
                    id, title, id);
    report_text_bytes(page, rows->bytes, rows->size);
    if (rows->size > 0 && strcmp(id, "environment") == 0)
        put_plugins(page);
    report_text_put(page, "</tbody></table></div></article>");
}

static void put_run(const report *r, report_text *page)
{
    report_text_put(page, "<section id=\"run\" aria-labelledby=\"h-run\"><h2 id=\"h-run\">Run</h2>"
                          "<div class=\"grid\">");
    if (r->settings.size > 0)
        put_table(page, "settings", "Configuration", &r->settings);
    put_table(page, "environment", "Environment", &r->environment);
    report_text_put(page, "</div></section>");
}

/* ---- the head -------------------------------------------------------------------------------- */

static void begin_tile(report_text *page, const char *name, int length)
{
    report_text_put(page, "<li class=\"tile\"><span>");
    report_plot_title(page, name, length);
    report_text_put(page, "</span><b>");
}

/* Returns 1 if larger values of a metric are better, -1 if smaller ones are, 0 if its name does not
 * tell. */
static int direction(const char *name)
{
    static const char *const less[] = { "loss", "error", "perplexity" };
    static const char *const more[] = { "accuracy", "f1", "precision", "recall", "top", "auc" };
    for (size_t i = 0; i < sizeof less / sizeof *less; i++)
        if (strstr(name, less[i]) != NULL)
            return -1;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (strstr(name, more[i]) != NULL)
            return 1;
    return 0;
}

static void put_metric(report_text *page, const report_series *s)
{
    int better = direction(s->name);
    begin_tile(page, s->name, (int)strlen(s->name));
    report_text_number(page, s->points[s->count - 1].value);
    report_text_put(page, "</b>");
    const report_point *best = s->points;
    for (int64_t i = 1; i < s->count; i++)
        if ((s->points[i].value - best->value) * better > 0)
            best = &s->points[i];
    if (better != 0) {
        report_text_put(page, "<small>best ");
        report_text_number(page, best->value);
        report_text_put(page, " at step ");
        report_text_whole(page, (double)best->step);
        report_text_put(page, "</small>");
    }
    report_text_put(page, "</li>");
}

/* Adds tiles for the metrics of validation; without any, for those that there are. */
static void put_metrics(const report *r, report_text *page)
{
    int shown = 0;
    for (int wanted = 1; wanted >= 0 && shown == 0; wanted--)
        for (int64_t i = 0; i < r->list.count && shown < TILES; i++) {
            const report_series *s = &r->list.series[i];
            int length;
            const char *label = report_plot_series(s->name, &length);
            bool validated = label != NULL &&
                             (strncmp(label, "val", 3) == 0 || strcmp(label, "test") == 0);
            if (s->count == 0 || validated != (wanted == 1) || strncmp(s->name, "epoch", 5) == 0 ||
                strcmp(s->name, "learning_rate") == 0 || strcmp(s->name, "samples_per_second") == 0)
                continue;
            put_metric(page, s);
            shown++;
        }
}

static double total_seconds(const report *r)
{
    double sum = 0;
    int64_t at = -1;
    for (int64_t i = 0; i < r->list.count && at < 0; i++)
        at = strcmp(r->list.series[i].name, "epoch_seconds") == 0 ? i : -1;
    for (int64_t i = 0; at >= 0 && i < r->epoch_count; i++)
        sum += at < r->epochs[i].count && isfinite(r->epochs[i].values[at])
                   ? r->epochs[i].values[at]
                   : 0;
    return sum;
}

static void put_tiles(const report *r, report_text *page)
{
    const report_series *rate = report_series_find(&r->list, "samples_per_second");
    report_text_put(page, "<ul class=\"tiles\">");
    put_metrics(r, page);
    begin_tile(page, "Epochs", 6);
    report_text_whole(page, r->epoch_count > 0 ? (double)r->epochs[r->epoch_count - 1].epoch : 0);
    if (r->planned > 0) {
        report_text_put(page, " <small>of ");
        report_text_whole(page, (double)r->planned);
        report_text_put(page, "</small>");
    }
    report_text_put(page, "</b><small>step ");
    report_text_whole(page, r->row_step < 0 ? 0 : (double)r->row_step);
    report_text_put(page, "</small></li>");
    begin_tile(page, "Time", 4);
    report_text_duration(page, total_seconds(r));
    report_text_put(page, "</b>");
    if (rate != NULL && rate->count > 0) {
        report_text_put(page, "<small>");
        report_text_whole(page, floor(rate->points[rate->count - 1].value + 0.5));
        report_text_put(page, " samples/s</small>");
    }
    report_text_put(page, "</li></ul>");
}

void report_page_begin(report_text *page, const char *title)
{
    report_text_put(page, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                          "\n<meta name=\"color-scheme\" content=\"light dark\">\n"
                          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                          "'none'; img-src data:; style-src 'unsafe-inline'; script-src "
                          "'unsafe-inline'\">\n<title>");
    report_text_short(page, title, 100);
    report_text_put(page, "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n");
    report_text_put(page, (const char *)tn_embed_page_style);
    report_text_put(page, "</style></head>\n<body><header><div>");
    report_text_put(page, strlen(title) > 60 ? "<h1 class=\"long\">" : "<h1>");
    report_text_short(page, title, 200);
    report_text_put(page, "</h1>");
}

void report_page_time(report_text *page)
{
    char date[64];
    time_t seconds = time(NULL);
    struct tm now;

    if (localtime_r(&seconds, &now) == NULL ||
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &now) == 0)
        date[0] = '\0';
    report_text_add(page, "<time>%s</time>", date);
}

static void put_head(const report *r, report_text *page)
{
    bool running = r->outcome == NULL, failed = !running && strncmp(r->outcome, "failed", 6) == 0;

    report_page_begin(page, r->title);
    report_text_add(page, "<p class=\"sub\"><span class=\"badge %s\">",
                    running                                   ? "running"
                    : failed                                  ? "failed"
                    : strncmp(r->outcome, "finished", 8) == 0 ? "finished"
                                                              : "");
    report_text_short(page, running ? "running" : r->outcome, 300);
    report_text_put(page, "</span> ");
    report_page_time(page);
    report_text_put(page, "</p></div><nav aria-label=\"Sections\"><a href=\"#curves\">Curves</a>");
    static const char *const links[][2] = { { "epochs", "Epochs" },
                                            { "confusion", "Confusion" },
                                            { "worst", "Worst samples" },
                                            { "values", "Weights" } };
    bool there[] = { r->epoch_count > 0, r->counts.used > 0, r->shots.count > 0,
                     r->spreads.count > 0 };
    for (int i = 0; i < 4; i++)
        if (there[i])
            report_text_add(page, "<a href=\"#%s\">%s</a>", links[i][0], links[i][1]);
    report_text_put(page, "<a href=\"#run\">Run</a></nav></header>\n<main>");
    put_tiles(r, page);
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static void put_epoch(report_text *page, const report *r, const int64_t *columns, int count,
                      const report_epochs *epoch)
{
    report_text_put(page, "<tr><th scope=\"row\">");
    report_text_whole(page, (double)epoch->epoch);
    report_text_put(page, "</th><td>");
    report_text_whole(page, (double)epoch->step);
    report_text_put(page, "</td>");
    for (int i = 0; i < count; i++) {
        double value = columns[i] < epoch->count ? epoch->values[columns[i]] : NAN;
        report_text_put(page, "<td>");
        if (strcmp(r->list.series[columns[i]].name, "epoch_seconds") == 0)
            report_text_duration(page, value);
        else if (!isnan(value))
            report_text_number(page, value);
        report_text_put(page, "</td>");
    }
    report_text_put(page, "</tr>");
}

/* Returns true if a scalar of this rank has values at the end of most epochs. */
static bool is_column(const report *r, int64_t index, int rank)
{
    int64_t there = 0;
    int length;
    const char *name = r->list.series[index].name;
    report_plot_series(name, &length);
    if (strcmp(name, "epoch") == 0 || report_plot_rank(name, length) != rank)
        return false;
    for (int64_t i = 0; i < r->epoch_count; i++)
        there += index < r->epochs[i].count && !isnan(r->epochs[i].values[index]);
    return 2 * there > r->epoch_count;
}

void report_epochs_section(const report *r, report_text *page)
{
    int64_t columns[EPOCH_COLUMNS];
    int count = 0;
    if (r->epoch_count == 0)
        return;
    for (int wanted = 0; wanted <= 5; wanted++)
        for (int64_t i = 0; i < r->list.count && count < EPOCH_COLUMNS; i++)
            if (is_column(r, i, wanted))
                columns[count++] = i;
    report_text_put(page, "<section id=\"epochs\" aria-labelledby=\"h-epochs\"><h2 id=\"h-epochs\">"
                          "Epochs</h2><article class=\"card\"><div class=\"scroll tall\"><table "
                          "class=\"numbers\"><thead><tr><th scope=\"col\">Epoch</th>"
                          "<th scope=\"col\">Step</th>");
    for (int i = 0; i < count; i++) {
        const char *name = r->list.series[columns[i]].name;
        report_text_put(page, "<th scope=\"col\">");
        if (strcmp(name, "epoch_seconds") == 0)
            report_text_put(page, "Time");
        else
            report_plot_title(page, name, (int)strlen(name));
        report_text_put(page, "</th>");
    }
    report_text_put(page, "</tr></thead><tbody>");
    int64_t rows = r->epoch_count < EPOCH_ROWS ? r->epoch_count : EPOCH_ROWS;
    for (int64_t i = 0; i < rows; i++)
        put_epoch(page, r, columns, count,
                  &r->epochs[rows > 1 ? i * (r->epoch_count - 1) / (rows - 1) : 0]);
    report_text_put(page, "</tbody></table></div>");
    if (rows < r->epoch_count) {
        report_text_add(page, "<p class=\"note\">%lld of ", (long long)rows);
        report_text_whole(page, (double)r->epoch_count);
        report_text_put(page, " epochs; metrics.csv has all of them.</p>");
    }
    report_text_put(page, "</article></section>");
}

/* ---- the page -------------------------------------------------------------------------------- */

void report_page_end(report_text *page, const char *note, const report_text *data)
{
    report_text_put(page, "</main><footer><p>Written by Tenon ");
    report_text_html(page, tn_version());
    report_text_put(page, ". ");
    report_text_put(page, note);
    report_text_put(page, "</p></footer>\n<script type=\"application/json\" id=\"data\">[");
    if (data->size > 0)
        report_text_bytes(page, data->bytes, data->size);
    report_text_put(page, "]</script>\n<script>\n");
    report_text_put(page, (const char *)tn_embed_page_script);
    report_text_put(page, "</script></body></html>\n");
}

tn_status report_page_text(const report *r, report_text *page)
{
    report_text data = { .status = TN_OK };
    put_head(r, page);
    report_plot_section(r, page, &data);
    report_epochs_section(r, page);
    report_matrix_section(r, page);
    report_samples_section(r, page);
    report_ridges_section(r, page);
    put_run(r, page);
    report_page_end(page,
                    "The numbers are in metrics.csv, and for TensorBoard in the event file beside "
                    "this page.",
                    &data);
    tn_status status = page->status != TN_OK ? page->status : data.status;
    report_text_drop(&data);
    return status;
}

tn_status report_page(report *r)
{
    report_text page = { .status = TN_OK };
    tn_status status = report_page_text(r, &page);
    if (status == TN_OK)
        status = report_file_replace(r->page_path, page.bytes, page.size);
    report_text_drop(&page);
    return status;
}
