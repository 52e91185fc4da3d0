/* SPDX-License-Identifier: MIT
 *
 * The list at the end of bench/ops. */
#include "slow.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 2000, TITLE = 200, LINE = 1024 };

static const double limit = 1.05;

static struct row {
    char title[TITLE];
    double ours, theirs;
} rows[ROWS];
static int n_rows;

static struct row *find(const char *title)
{
    for (int i = 0; i < n_rows; i++)
        if (strncmp(rows[i].title, title, TITLE - 1) == 0)
            return &rows[i];
    return NULL;
}

bool bench_slow_has(const char *title)
{
    return find(title) != NULL;
}

void bench_slow_note(const char *title, double ours, double theirs)
{
    struct row *row = find(title);

    if (row != NULL) {
        row->ours = ours < row->ours ? ours : row->ours;
        row->theirs = theirs < row->theirs ? theirs : row->theirs;
    } else if (ours > limit * theirs && n_rows < ROWS) {
        row = &rows[n_rows++];
        snprintf(row->title, sizeof row->title, "%.199s", title);
        row->ours = ours;
        row->theirs = theirs;
    }
}

static int by_ratio(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    double p = x->ours / x->theirs, q = y->ours / y->theirs;

    return p < q ? 1 : p > q ? -1 : 0;
}

/* A line of the file: GLOB " : " REASON. */
static const char *reason_of(FILE *reasons, const char *key, char *line)
{
    if (reasons == NULL)
        return "";
    rewind(reasons);
    while (fgets(line, LINE, reasons) != NULL) {
        char *mark = strstr(line, " : ");

        line[strcspn(line, "\n")] = '\0';
        if (*line == '#' || mark == NULL)
            continue;
        *mark = '\0';
        if (fnmatch(line, key, 0) == 0)
            return mark + 3;
    }
    return "not found yet";
}

int bench_slow_print(FILE *reasons, const char *dtype, int threads, bool markdown)
{
    int slower = 0;

    qsort(rows, (size_t)n_rows, sizeof rows[0], by_ratio);
    if (markdown)
        printf("| case | ours us | PyTorch us | ratio | reason |\n|---|---|---|---|---|\n");
    for (int i = 0; i < n_rows && rows[i].ours > limit * rows[i].theirs; i++, slower++) {
        const struct row *row = &rows[i];
        double ratio = row->ours / row->theirs;
        char key[TITLE + 64], line[LINE];

        snprintf(key, sizeof key, "%s %d %.199s", dtype, threads, row->title);
        if (markdown)
            printf("| %s | %.2f | %.2f | %.2f | %s |\n", row->title, row->ours * 1e6,
                   row->theirs * 1e6, ratio, reason_of(reasons, key, line));
        else
            printf("%7.2f  %-56s %11.2f %11.2f  %s\n", ratio, row->title, row->ours * 1e6,
                   row->theirs * 1e6, reason_of(reasons, key, line));
    }
    return slower;
}
