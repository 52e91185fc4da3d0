/* SPDX-License-Identifier: MIT
 *
 * Writes the reports of tenon check for other programs: TAP, JUnit, JSON, and the capability file.
 */
#include "conform.h"

#include <errno.h>
#include <string.h>

static void xml(FILE *to, const char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte == '&')
            fputs("&amp;", to);
        else if (byte == '<')
            fputs("&lt;", to);
        else if (byte == '"')
            fputs("&quot;", to);
        else if (byte < 0x20)
            fputs(" ", to);
        else
            fputc(byte, to);
    }
}

static void tap(FILE *to, const conform_report *r)
{
    fprintf(to, "TAP version 13\n1..%lld\n", (long long)r->n_outcomes);
    for (int64_t i = 0; i < r->n_outcomes; i++) {
        const conform_outcome *o = &r->outcome[i];

        fprintf(to, "%sok %lld - %s", o->verdict == CONFORM_FAIL ? "not " : "", (long long)i + 1,
                o->name);
        if (o->verdict == CONFORM_SKIP)
            fprintf(to, " # SKIP %s", o->words);
        fputc('\n', to);
        if (o->verdict == CONFORM_FAIL)
            fprintf(to, "# %s\n", o->words);
    }
}

static void junit(FILE *to, const conform_report *r)
{
    int64_t failed = 0, skipped = 0;

    for (int64_t i = 0; i < r->n_outcomes; i++) {
        failed += r->outcome[i].verdict == CONFORM_FAIL;
        skipped += r->outcome[i].verdict == CONFORM_SKIP;
    }
    fprintf(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"");
    xml(to, r->id);
    fprintf(to, "\" tests=\"%lld\" failures=\"%lld\" skipped=\"%lld\">\n", (long long)r->n_outcomes,
            (long long)failed, (long long)skipped);
    for (int64_t i = 0; i < r->n_outcomes; i++) {
        const conform_outcome *o = &r->outcome[i];

        fprintf(to, "  <testcase classname=\"tenon.check\" name=\"");
        xml(to, o->name);
        fprintf(to, "\" time=\"%.3f\"", o->seconds);
        if (o->verdict == CONFORM_PASS) {
            fprintf(to, "/>\n");
            continue;
        }
        fprintf(to, "><%s message=\"", o->verdict == CONFORM_FAIL ? "failure" : "skipped");
        xml(to, o->words);
        fprintf(to, "\"/></testcase>\n");
    }
    fprintf(to, "</testsuite>\n");
}

static void operators(FILE *to, const conform_report *r)
{
    fprintf(to, "  \"operators\": [");
    for (int64_t i = 0; i < r->n_lines; i++) {
        const conform_line *l = &r->line[i];

        fprintf(to, "%s\n    { \"name\": ", i > 0 ? "," : "");
        conform_json_string(to, l->op);
        fprintf(to, ", \"dtype\": \"%s\", \"route\": ", l->dtype);
        conform_json_string(to, l->route);
        fprintf(to, ", \"cases\": %lld, \"failed\": %lld, \"share\": %.3g }", (long long)l->cases,
                (long long)l->failed, l->worst);
    }
    fprintf(to, "\n  ]");
}

static void json(FILE *to, const conform_report *r)
{
    static const char *const words[] = { "passed", "failed", "skipped" };

    fprintf(to, "{\n  \"plugin\": ");
    conform_json_string(to, r->id);
    fprintf(to, ",\n  \"file\": ");
    conform_json_string(to, r->options->file);
    fprintf(to, ",\n  \"device\": ");
    conform_json_string(to, r->device);
    fprintf(to, ",\n  \"seed\": %llu,\n  \"tests\": [", (unsigned long long)r->options->seed);
    for (int64_t i = 0; i < r->n_outcomes; i++) {
        const conform_outcome *o = &r->outcome[i];

        fprintf(to, "%s\n    { \"name\": ", i > 0 ? "," : "");
        conform_json_string(to, o->name);
        fprintf(to, ", \"outcome\": \"%s\", \"checks\": %lld, \"seconds\": %.3f", words[o->verdict],
                (long long)o->checks, o->seconds);
        if (o->words != NULL) {
            fprintf(to, ", \"words\": ");
            conform_json_string(to, o->words);
        }
        fprintf(to, " }");
    }
    fprintf(to, "\n  ],\n");
    operators(to, r);
    fprintf(to, "\n}\n");
}

/* Writes the operators that the plugin can run, as far as the tests have shown it. */
static void capabilities(FILE *to, const conform_report *r)
{
    fprintf(to, "{\n  \"tenon\": \"%s\",\n  \"plugin\": ", tn_version());
    conform_json_string(to, r->id);
    fprintf(to, ",\n  \"device\": ");
    conform_json_string(to, r->device);
    fprintf(to, ",\n");
    operators(to, r);
    fprintf(to, "\n}\n");
}

static bool write_one(const char *path, const conform_report *report,
                      void (*write)(FILE *to, const conform_report *report))
{
    const char *why = NULL;
    FILE *to;
    bool well;

    if (path == NULL)
        return true;
    to = strcmp(path, "-") == 0 ? stdout : conform_create(path, &why);
    if (to != NULL)
        write(to, report);
    well = to != NULL && fflush(to) == 0 && !ferror(to);
    if (!well)
        fprintf(stderr, "tenon check: %s: %s\n", path, why != NULL ? why : strerror(errno));
    if (to != NULL && to != stdout && fclose(to) != 0)
        well = false;
    return well;
}

bool conform_write_reports(const conform_report *report)
{
    const conform_options *o = report->options;
    bool well = write_one(o->tap, report, tap);

    well = write_one(o->junit, report, junit) && well;
    well = write_one(o->json, report, json) && well;
    well = write_one(o->report, report, conform_report_page) && well;
    return write_one(o->capabilities, report, capabilities) && well;
}
