/* SPDX-License-Identifier: MIT
 *
 * The page: flame graph, memory over time, tables. It refers to no other file. */
#include "page.h"

#include <string.h>
#include <time.h>

extern const unsigned char tn_embed_profile_style[], tn_embed_profile_script[];

enum { BINS = 800, TABLE_ROWS = 200, RULES = 4 };

/* ---- head ------------------------------------------------------------------------------------ */

static void begin_tile(output *t, const char *name)
{
    text_add(t, "<li class=\"tile\"><span>%s</span><b>", name);
}

static void put_tiles(output *t, const result *r)
{
    double flops = 0, duration = (double)(r->ended - r->started);

    for (int64_t i = 0; i < r->count; i++)
        flops += r->spans[i].s.flops;
    text_put(t, "<ul class=\"tiles\">");
    begin_tile(t, "time");
    text_time(t, duration);
    text_put(t, "</b></li>");
    begin_tile(t, "records");
    text_add(t, "%lld</b></li>", (long long)r->count);
    begin_tile(t, "threads");
    text_add(t, "%lld</b></li>", (long long)r->threads);
    begin_tile(t, "memory peak");
    text_bytes(t, (double)r->peak);
    text_put(t, "</b></li>");
    begin_tile(t, "rate of products");
    text_rate(t, flops, duration);
    text_put(t, "</b></li>");
    begin_tile(t, "ceiling, float32");
    text_rate(t, ceiling_flops(), 1e9);
    text_put(t, "</b></li></ul>\n");
    if (r->dropped > 0)
        text_add(t,
                 "<p class=\"note warn\">%lld records were dropped because the limit of memory was "
                 "reached.</p>\n",
                 (long long)r->dropped);
}

static void put_head(output *t, const result *r)
{
    time_t seconds = time(NULL);
    struct tm date;
    char when[64] = "";

    if (localtime_r(&seconds, &date) != NULL)
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S %z", &date);
    text_put(t, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<title>Profile</title>\n<style>\n");
    text_put(t, (const char *)tn_embed_profile_style);
    text_add(
        t,
        "</style></head><body>\n<header><h1>Profile</h1><p class=\"note\">%s, %d threads in the "
        "pool</p>\n",
        when, tn_num_threads());
    put_tiles(t, r);
    text_put(t, "</header><main>\n");
}

static void put_flame(output *t, const result *r)
{
    static const char *const categories[] = { "operator", "module", "backward", "optimizer",
                                              "copy",     "user",   "step" };
    text_put(t, "<section aria-labelledby=\"h-flame\"><h2 id=\"h-flame\">Flame graph</h2>"
                "<div class=\"card\"><ul class=\"legend\">");
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        text_add(t, "<li class=\"%s\"><i></i>%s</li>", categories[i], categories[i]);
    text_put(t, "</ul>\n");
    flame_add(t, r);
    text_put(t, "</div></section>\n");
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Writes the highest number of live bytes of all devices in each part of the time. */
static double memory_bins(const result *r, double *bins)
{
    int64_t duration = r->ended > r->started ? r->ended - r->started : 1, next = 0;
    int64_t live = r->before;
    double most = 0;

    for (int64_t bin = 0; bin < BINS; bin++) {
        int64_t end = r->started + (int64_t)((double)duration * (double)(bin + 1) / BINS);
        bins[bin] = (double)live;
        for (; next < r->memory_count && (r->memory[next].time <= end || bin == BINS - 1); next++) {
            live += r->memory[next].bytes;
            bins[bin] = (double)live > bins[bin] ? (double)live : bins[bin];
        }
        bins[bin] = bins[bin] > 0 ? bins[bin] : 0;
        most = bins[bin] > most ? bins[bin] : most;
    }
    return most;
}

/* Returns a round number of bytes of at least `most`, which RULES parts divide. */
static double round_bytes(double most)
{
    double step = 1;

    while (step * RULES < most)
        step *= 2;
    return step * RULES * 0.75 >= most && step > 4 ? step * RULES * 0.75 : step * RULES;
}

static void put_memory(output *t, const result *r)
{
    static const char *const ends[] = { " begin", "", "", "", " end" };
    double bins[BINS], most = memory_bins(r, bins), top = round_bytes(most);

    text_put(t,
             "<section aria-labelledby=\"h-memory\"><h2 id=\"h-memory\">Memory</h2>\n"
             "<div class=\"card\"><p class=\"note\">Bytes of tensors that were allocated and not "
             "freed yet, on all devices.</p>");
    if (r->memory_count == 0) {
        text_put(t, "<p class=\"note\">Nothing was recorded.</p></div></section>\n");
        return;
    }
    text_put(t, "<div class=\"plots\"><div class=\"plot\" role=\"img\" aria-label=\"Live memory "
                "over time, at most ");
    text_bytes(t, most);
    text_put(t, "\"><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\">");
    for (int i = 0; i <= RULES; i++)
        text_add(t, "<path class=\"rule\" d=\"M0 %d H1000\"/>", 100 * i / RULES);
    text_put(t, "<path class=\"area\" d=\"M0 100");
    for (int i = 0; i < BINS; i++)
        text_add(t, " L%.2f %.2f L%.2f %.2f", 1000.0 * i / BINS, 100 - 100 * bins[i] / top,
                 1000.0 * (i + 1) / BINS, 100 - 100 * bins[i] / top);
    text_put(t, " L1000 100 Z\"/></svg>");
    for (int i = 0; i <= RULES; i++) {
        text_add(t, "<span class=\"y\" style=\"top:%d%%\">", 100 - 100 * i / RULES);
        text_bytes(t, top * i / RULES);
        text_put(t, "</span>");
    }
    for (int i = 0; i <= RULES; i++) {
        text_add(t, "<span class=\"x%s\" style=\"left:%d%%\">", ends[i], 100 * i / RULES);
        text_time(t, (double)(r->ended - r->started) * i / RULES);
        text_put(t, "</span>");
    }
    text_put(t, "</div></div></div></section>\n");
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void put_cell(output *t, double value, double share)
{
    if (share > 0.002)
        text_add(t, "<td class=\"bar\" style=\"--v:%.3f\" data-v=\"%.0f\">", share, value);
    else
        text_add(t, "<td data-v=\"%.0f\">", value);
}

static void put_row(output *t, const tn_profile_row *row, double whole, bool module)
{
    double time = (double)(row->device > 0 ? row->device : module ? row->total : row->self);

    text_put(t, "<tr><th scope=\"row\">");
    text_html(t, row->name);
    text_put(t, "</th>");
    put_cell(t, (double)row->self, whole > 0 ? (double)row->self / whole : 0);
    text_time(t, (double)row->self);
    text_put(t, "</td>");
    put_cell(t, (double)row->total, whole > 0 ? (double)row->total / whole : 0);
    text_time(t, (double)row->total);
    text_put(t, "</td>");
    if (module) {
        put_cell(t, (double)row->backward, whole > 0 ? (double)row->backward / whole : 0);
        text_time(t, (double)row->backward);
        text_put(t, "</td>");
    }
    put_cell(t, (double)row->calls, 0);
    text_add(t, "%lld</td>", (long long)row->calls);
    put_cell(t, (double)row->self_allocated, 0);
    text_bytes(t, (double)row->self_allocated);
    text_put(t, "</td>");
    put_cell(t, (double)row->peak, 0);
    text_bytes(t, (double)row->peak);
    text_put(t, "</td>");
    put_cell(t, time > 0 ? row->flops / time * 1e9 : 0, 0);
    if (row->flops > 0)
        text_rate(t, row->flops, time);
    text_put(t, "</td>");
    double share = time > 0 && ceiling_known() > 0 ? row->flops / time * 1e9 / ceiling_known() : 0;
    put_cell(t, 1000 * share, 0);
    if (row->flops > 0 && row->device == 0)
        table_share(t, share);
    text_put(t, "</td></tr>\n");
}

static void put_table(output *t, const result *r, tn_profile_group group, tn_profile_sort sort,
                      const char *id, const char *title, const char *note)
{
    static const char *const heads[] = { "name",   "self", "total",  "backward",  "calls",
                                         "memory", "peak", "FLOP/s", "of ceiling" };
    bool module = group == TN_PROFILE_BY_MODULE;
    tn_profile_row *rows;
    int64_t count;
    double whole = 0;

    if (group_rows(r, group, sort, &rows, &count) != TN_OK) {
        t->failed = true;
        return;
    }
    for (int64_t i = 0; i < r->count; i++)
        whole += (double)r->spans[i].s.self;
    text_add(t,
             "<section aria-labelledby=\"%s\"><h2 id=\"%s\">%s</h2><div class=\"card\">"
             "<p class=\"note\">%s</p><div class=\"scroll\" tabindex=\"0\"><table><thead><tr>",
             id, id, title, note);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (module || i != 3)
            text_add(t, "<th scope=\"col\"><button type=\"button\">%s</button></th>", heads[i]);
    text_put(t, "</tr></thead><tbody>\n");
    for (int64_t i = 0; i < count && i < TABLE_ROWS; i++)
        put_row(t, &rows[i], whole, module);
    text_put(t, "</tbody></table></div>");
    if (count > TABLE_ROWS)
        text_add(t, "<p class=\"note\">%lld more rows are left out.</p>",
                 (long long)(count - TABLE_ROWS));
    text_put(t, "</div></section>\n");
    tn_free(rows);
}

void page_add(output *t, const result *r)
{
    put_head(t, r);
    put_flame(t, r);
    put_memory(t, r);
    put_table(t, r, TN_PROFILE_BY_OPERATOR, TN_PROFILE_SORT_SELF, "h-operator", "By operator",
              "Self is without, total with what an operator or range calls. Memory is what it "
              "allocates itself; peak is the most that one call added.");
    put_table(t, r, TN_PROFILE_BY_MODULE, TN_PROFILE_SORT_TOTAL, "h-module", "By module",
              "Total is the forward call, self is without the modules inside; backward is the time "
              "of the derivatives of what the module computed.");
    text_put(t, "</main><footer>Written by the profiler of Tenon.</footer>\n<script>\n");
    text_put(t, (const char *)tn_embed_profile_script);
    text_put(t, "</script></body></html>\n");
}
