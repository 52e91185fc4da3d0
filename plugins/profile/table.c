/* SPDX-License-Identifier: MIT
 *
 * Tables as text. */
#include "profile.h"

#include <string.h>

enum { CELLS = 12, NAME_MOST = 60 };

/* The cells of a table, each a text. */
struct grid {
    output *cells;
    int64_t rows, room;
    int columns;
    bool failed;
};

static output *cell(struct grid *g, int64_t row, int column)
{
    return &g->cells[row * CELLS + column];
}

/* Adds an empty row; returns its index, -1 if memory is short. */
static int64_t add_row(struct grid *g)
{
    int64_t room = g->rows < g->room ? g->room : g->room > 0 ? 2 * g->room : 32;
    output *cells = room == g->room ? g->cells
                                    : tn_realloc(g->cells, (size_t)room * CELLS * sizeof *cells);

    if (cells == NULL) {
        g->failed = true;
        return -1;
    }
    g->cells = cells;
    g->room = room;
    memset(cell(g, g->rows, 0), 0, CELLS * sizeof *cells);
    return g->rows++;
}

static size_t characters(const char *s)
{
    size_t count = 0;

    for (; *s != '\0'; s++)
        count += ((unsigned char)*s & 0xc0) != 0x80;
    return count;
}

static void print_grid(output *t, struct grid *g, int left)
{
    size_t width[CELLS] = { 0 };

    for (int64_t r = 0; r < g->rows; r++)
        for (int c = 0; c < g->columns; c++) {
            size_t size = cell(g, r, c)->at != NULL ? characters(cell(g, r, c)->at) : 0;
            width[c] = size > width[c] ? size : width[c];
            g->failed |= cell(g, r, c)->failed;
        }
    for (int64_t r = 0; r < g->rows; r++) {
        for (int c = 0; c < g->columns; c++) {
            const char *value = cell(g, r, c)->at != NULL ? cell(g, r, c)->at : "";
            int pad = (int)(width[c] - characters(value));
            if (c < left && c < g->columns - 1)
                text_add(t, "%s%s%*s", c > 0 ? "  " : "", value, pad, "");
            else if (c < left)
                text_add(t, "  %s", value);
            else
                text_add(t, "%s%*s%s", c > 0 ? "  " : "", pad, "", value);
        }
        text_put(t, "\n");
    }
    t->failed |= g->failed;
    for (int64_t i = 0; i < g->rows * CELLS; i++)
        text_free(&g->cells[i]);
    tn_free(g->cells);
}

/* ---- columns --------------------------------------------------------------------------------- */

struct facts {
    double self;    /* the sum of all self times */
    double ceiling; /* FLOP/s */
    bool module;
};

static void put_name(output *t, const tn_profile_row *row, const struct facts *f)
{
    size_t length = strlen(row->name);

    (void)f;
    if (length <= NAME_MOST) {
        text_put(t, row->name);
        return;
    }
    while (length > NAME_MOST - 3 && length > 0)
        length--;
    while (length > 0 && ((unsigned char)row->name[length] & 0xc0) == 0x80)
        length--;
    text_add(t, "%.*s...", (int)length, row->name);
}

static void put_calls(output *t, const tn_profile_row *row, const struct facts *f)
{
    (void)f;
    text_add(t, "%lld", (long long)row->calls);
}

static void put_self(output *t, const tn_profile_row *row, const struct facts *f)
{
    (void)f;
    text_time(t, (double)row->self);
}

static void put_share(output *t, const tn_profile_row *row, const struct facts *f)
{
    text_add(t, "%.1f%%", f->self > 0 ? 100 * (double)row->self / f->self : 0.0);
}

static void put_total(output *t, const tn_profile_row *row, const struct facts *f)
{
    (void)f;
    text_time(t, (double)row->total);
}

static void put_average(output *t, const tn_profile_row *row, const struct facts *f)
{
    (void)f;
    text_time(t, (double)row->total / (double)row->calls);
}

static void put_backward(output *t, const tn_profile_row *row, const struct facts *f)
{
    (void)f;
    text_time(t, (double)row->backward);
}

static void put_device(output *t, const tn_profile_row *row, const struct facts *f)
{
    (void)f;
    text_time(t, (double)row->device);
}

static void put_memory(output *t, const tn_profile_row *row, const struct facts *f)
{
    (void)f;
    text_bytes(t, (double)row->self_allocated);
}

static void put_peak(output *t, const tn_profile_row *row, const struct facts *f)
{
    (void)f;
    text_bytes(t, (double)row->peak);
}

/* The time in which a row's operations ran: that of the device if it is known. */
static double work_time(const tn_profile_row *row, const struct facts *f)
{
    int64_t host = f->module ? row->total : row->self;

    return (double)(row->device > 0 ? row->device : host);
}

static void put_rate(output *t, const tn_profile_row *row, const struct facts *f)
{
    if (row->flops > 0)
        text_rate(t, row->flops, work_time(row, f));
    else
        text_put(t, "-");
}

void table_share(output *t, double share)
{
    if (share > 1)
        text_put(t, ">100%");
    else
        text_add(t, "%.0f%%", 100 * share);
}

static void put_ceiling(output *t, const tn_profile_row *row, const struct facts *f)
{
    double time = work_time(row, f);

    if (row->flops > 0 && f->ceiling > 0 && time > 0 && row->device == 0)
        table_share(t, row->flops / (time * 1e-9) / f->ceiling);
    else
        text_put(t, "-");
}

static void put_shapes(output *t, const tn_profile_row *row, const struct facts *f)
{
    (void)f;
    text_put(t, row->shapes);
}

enum { FOR_OPERATOR = 1, FOR_SHAPE = 2, FOR_MODULE = 4, FOR_ALL = 7 };

static const struct {
    const char *name;
    int groups;
    bool device; /* only if a device was timed */
    void (*put)(output *t, const tn_profile_row *row, const struct facts *f);
} columns[] = {
    { "name", FOR_ALL, false, put_name },
    { "self", FOR_ALL, false, put_self },
    { "self %", FOR_ALL, false, put_share },
    { "total", FOR_ALL, false, put_total },
    { "backward", FOR_MODULE, false, put_backward },
    { "device", FOR_ALL, true, put_device },
    { "calls", FOR_ALL, false, put_calls },
    { "average", FOR_OPERATOR | FOR_SHAPE, false, put_average },
    { "memory", FOR_ALL, false, put_memory },
    { "peak", FOR_ALL, false, put_peak },
    { "FLOP/s", FOR_ALL, false, put_rate },
    { "of ceiling", FOR_OPERATOR | FOR_MODULE, false, put_ceiling },
    { "shapes", FOR_SHAPE, false, put_shapes },
};

void table_add(output *t, const result *r, tn_profile_group group, tn_profile_sort sort,
               int64_t most)
{
    struct facts facts = { 0, ceiling_known(), group == TN_PROFILE_BY_MODULE };
    struct grid grid = { .cells = NULL };
    tn_profile_row *rows;
    int64_t count, device = 0;

    if (group_rows(r, group, sort, &rows, &count) != TN_OK) {
        t->failed = true;
        return;
    }
    for (int64_t i = 0; i < r->count; i++)
        facts.self += (double)r->spans[i].s.self;
    for (int64_t i = 0; i < count; i++)
        device += rows[i].device;
    for (int64_t i = -1; i < count && (most <= 0 || i < most); i++) {
        int64_t row = add_row(&grid);
        grid.columns = 0;
        for (size_t c = 0; c < sizeof columns / sizeof *columns && row >= 0; c++) {
            if ((columns[c].groups & 1 << group) == 0 || (columns[c].device && device == 0))
                continue;
            if (i < 0)
                text_put(cell(&grid, row, grid.columns), columns[c].name);
            else
                columns[c].put(cell(&grid, row, grid.columns), &rows[i], &facts);
            grid.columns++;
        }
    }
    print_grid(t, &grid, 1);
    if (most > 0 && count > most)
        text_add(t, "(%lld more)\n", (long long)(count - most));
    tn_free(rows);
}

void table_summary(output *t, const result *r)
{
    double flops = 0;

    for (int64_t i = 0; i < r->count; i++)
        flops += r->spans[i].s.flops;
    text_time(t, (double)(r->ended - r->started));
    text_add(t, ", %lld records of %lld thread%s, memory peak ", (long long)r->count,
             (long long)r->threads, r->threads == 1 ? "" : "s");
    text_bytes(t, (double)r->peak);
    text_put(t, ", ");
    text_rate(t, flops, (double)(r->ended - r->started));
    if (ceiling_known() > 0) {
        text_put(t, " of ");
        text_rate(t, ceiling_known(), 1e9);
    }
    text_put(t, "\n");
    if (r->dropped > 0)
        text_add(t, "%lld records were dropped: the limit was reached\n", (long long)r->dropped);
}

int64_t table_text(tn_profile_group group, tn_profile_sort sort, int64_t rows, char *out,
                   size_t size)
{
    output t = { .at = NULL };
    int64_t length;

    if (rows < 0 || (out == NULL && size > 0)) {
        if (rows < 0)
            tn_fail(TN_ERR_VALUE,
                    "profile: table: rows: out of range, got %lld; expected 0 or more",
                    (long long)rows);
        else
            tn_fail(TN_ERR_VALUE,
                    "profile: table: out: it is NULL, got a size of %llu bytes; expected 0",
                    (unsigned long long)size);
        return -1;
    }
    if (group > TN_PROFILE_BY_MODULE || sort > TN_PROFILE_SORT_NAME) {
        tn_fail(TN_ERR_VALUE,
                "profile: table: group or sort: unknown, got %u and %u; expected "
                "TN_PROFILE_BY_* and a column",
                group, sort);
        return -1;
    }
    ceiling_flops();
    table_add(&t, result_get(), group, sort, rows);
    length = t.failed ? -1 : (int64_t)t.size;
    if (t.failed)
        tn_fail(TN_ERR_MEMORY, "profile: table: out of memory");
    else
        tn_snprint(out, size, "%s", t.at != NULL ? t.at : ""); /* nothing if size is 0 */
    text_free(&t);
    return length;
}
