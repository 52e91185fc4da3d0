/* SPDX-License-Identifier: MIT
 *
 * The page of tenon check --report, in Markdown: what an author publishes with a plugin. It names
 * the plugin, the versions, the machine, what was tested, and what failed or was skipped. */
#include "conform.h"

#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const char *const words[] = { "passed", "failed", "skipped" };

/* Writes text for a cell of a table. */
static void cell(FILE *to, const char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        if (*text == '|' || *text == '\\' || *text == '<' || *text == '*' || *text == '_')
            fputc('\\', to);
        fputc((unsigned char)*text < 0x20 ? ' ' : *text, to);
    }
}

/* Writes the name of the processor, if the system tells it. */
static void processor(FILE *to)
{
    const char *why = NULL;
    conform_lines lines = { .file = conform_open("/proc/cpuinfo", &why) };
    char *line;

    while (lines.file != NULL && conform_next_line(&lines, &line, &why))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL) {
            fputs("| processor | ", to);
            cell(to, strchr(line, ':') + 2);
            fprintf(to, ", %ld threads |\n", sysconf(_SC_NPROCESSORS_ONLN));
            break;
        }
    conform_lines_end(&lines);
}

static void head(FILE *to, const conform_report *r)
{
    static const char *const levels[] = { "contract", "ops", "grad", "layers", "all" };
    const char *file = strrchr(r->options->file, '/');
    struct utsname system;
    char day[32] = "";
    time_t now = time(NULL);
    struct tm utc;

    if (gmtime_r(&now, &utc) != NULL)
        strftime(day, sizeof day, "%Y-%m-%d", &utc);
    fprintf(to, "# Check of ");
    cell(to, r->id);
    fprintf(to, "\n\n|   |   |\n|---|---|\n| plugin | ");
    cell(to, r->id);
    fprintf(to, " ");
    cell(to, r->version);
    fprintf(to, " |\n| file | ");
    cell(to, file != NULL ? file + 1 : r->options->file);
    fprintf(to, " |\n| Tenon | %s |\n| level | %s%s%s |\n", tn_version(), levels[r->options->level],
            r->options->only != NULL ? ", only some tests: " : "",
            r->options->only != NULL ? r->options->only : "");
    if (r->device[0] != '\0')
        fprintf(to, "| device | %s |\n", r->device);
    if (uname(&system) == 0)
        fprintf(to, "| machine | %s %s, %s |\n", system.sysname, system.release, system.machine);
    processor(to);
    fprintf(to, "| seed | %llu |\n| date | %s |\n\n", (unsigned long long)r->options->seed, day);
}

/* Returns whether the names of two tests have the same folder ("ops/"). */
static bool same_folder(const char *a, const char *b)
{
    size_t length = strcspn(a, "/");

    return length == strcspn(b, "/") && strncmp(a, b, length) == 0;
}

/* A row for each folder of tests: how many passed, failed and were skipped. */
static void counts(FILE *to, const conform_report *r)
{
    fprintf(to, "| tests | passed | failed | skipped | checks |\n|---|---|---|---|---|\n");
    for (int64_t first = 0; first < r->n_outcomes; first++) {
        const char *name = r->outcome[first].name;
        int64_t count[3] = { 0 }, checks = 0, before = 0;

        while (before < first && !same_folder(r->outcome[before].name, name))
            before++;
        if (before < first)
            continue;
        for (int64_t i = first; i < r->n_outcomes; i++)
            if (same_folder(r->outcome[i].name, name)) {
                count[r->outcome[i].verdict]++;
                checks += r->outcome[i].checks;
            }
        fprintf(to, "| %.*s | %lld | %lld | %lld | %lld |\n", (int)strcspn(name, "/"), name,
                (long long)count[CONFORM_PASS], (long long)count[CONFORM_FAIL],
                (long long)count[CONFORM_SKIP], (long long)checks);
    }
    fputc('\n', to);
}

/* The tests that failed or were skipped, with the reasons. */
static void list(FILE *to, const conform_report *r, conform_verdict verdict)
{
    int64_t count = 0;

    for (int64_t i = 0; i < r->n_outcomes; i++) {
        const conform_outcome *o = &r->outcome[i];

        if (o->verdict != verdict)
            continue;
        if (count++ == 0)
            fprintf(to, "## Tests that %s%s\n\n| test | reason |\n|---|---|\n",
                    verdict == CONFORM_SKIP ? "were " : "", words[verdict]);
        fprintf(to, "| %s | ", o->name);
        cell(to, o->words);
        fprintf(to, " |\n");
    }
    if (count > 0)
        fputc('\n', to);
}

static void operators(FILE *to, const conform_report *r)
{
    if (r->n_lines == 0)
        return;
    fprintf(to, "## Operators\n\n`share` is the largest error divided by the tolerance.\n\n"
                "| operator | dtype | runs as | cases | failed | share |\n"
                "|---|---|---|---|---|---|\n");
    for (int64_t i = 0; i < r->n_lines; i++) {
        const conform_line *l = &r->line[i];

        fprintf(to, "| %s | %s | %.*s | %lld | %lld | %.2f |\n", l->op, l->dtype,
                (int)strcspn(l->route, " ("), l->route, (long long)l->cases, (long long)l->failed,
                l->worst);
    }
    fputc('\n', to);
}

void conform_report_page(FILE *to, const conform_report *r)
{
    head(to, r);
    counts(to, r);
    list(to, r, CONFORM_FAIL);
    list(to, r, CONFORM_SKIP);
    operators(to, r);
    fprintf(to, "Made by `tenon check --report`.\n");
}
