/* SPDX-License-Identifier: MIT
 *
 * Sums of records by operator, by operator and shapes, or by module. */
#include "profile.h"

#include <stdlib.h>
#include <string.h>

/* A table of rows by key, with open addressing. */
struct rows {
    tn_profile_row *at;
    int64_t count, room;
    int64_t *places;     /* by key: index of the row plus 1, or 0 */
    int64_t place_count; /* a power of two */
    bool failed;
};

static uint64_t hash_of(const char *text, uint64_t hash)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash * 1099511628211u;
}

/* Returns the place of a key: its own, or an empty one. */
static int64_t place_of(const struct rows *rows, const char *name, const char *shapes)
{
    int64_t mask = rows->place_count - 1;
    int64_t at = (int64_t)(hash_of(shapes, hash_of(name, 14695981039346656037u)) >> 20) & mask;

    for (; rows->places[at] != 0; at = (at + 1) & mask) {
        const tn_profile_row *row = &rows->at[rows->places[at] - 1];
        if (strcmp(row->name, name) == 0 && strcmp(row->shapes, shapes) == 0)
            break;
    }
    return at;
}

static bool grow(struct rows *rows)
{
    int64_t room = rows->room > 0 ? 2 * rows->room : 64;
    tn_profile_row *at = tn_realloc(rows->at, (size_t)room * sizeof *at);
    int64_t *places;

    if (at == NULL)
        return false;
    rows->at = at;
    rows->room = room;
    places = tn_calloc((size_t)room * 2, sizeof *places);
    if (places == NULL)
        return false;
    tn_free(rows->places);
    rows->places = places;
    rows->place_count = room * 2;
    for (int64_t i = 0; i < rows->count; i++)
        places[place_of(rows, at[i].name, at[i].shapes)] = i + 1;
    return true;
}

static tn_profile_row *row_of(struct rows *rows, const char *name, const char *shapes)
{
    int64_t at;

    if (rows->failed || (rows->count == rows->room && !grow(rows))) {
        rows->failed = true;
        return NULL;
    }
    at = place_of(rows, name, shapes);
    if (rows->places[at] == 0) {
        rows->at[rows->count] = (tn_profile_row){ .name = name, .shapes = shapes };
        rows->places[at] = ++rows->count;
    }
    return &rows->at[rows->places[at] - 1];
}

static int64_t at_least_0(int64_t number)
{
    return number > 0 ? number : 0;
}

/* ---- operators and ranges -------------------------------------------------------------------- */

/* All calls of modules share one row, "(modules)", whose self time is the cost of the calls
 * themselves. */
static void add_operators(struct rows *rows, const result *r, bool by_shape)
{
    for (int64_t i = 0; i < r->count; i++) {
        const result_span *span = &r->spans[i];
        const record_span *s = &span->s;
        bool module = s->kind == KIND_MODULE;
        tn_profile_row *row = row_of(rows, module ? "(modules)" : span->name,
                                     by_shape ? span->shapes : "");
        bool outermost = module ? s->module == NULL : !s->inner;

        if (row == NULL)
            return;
        row->calls++;
        row->self += s->self;
        row->self_allocated += s->self_allocated;
        row->self_freed += s->self_freed;
        row->flops += s->flops;
        row->device += at_least_0(span->device_time);
        row->peak = s->peak > row->peak ? s->peak : row->peak;
        if (outermost) {
            row->total += s->duration;
            row->allocated += s->allocated;
            row->freed += s->freed;
        }
    }
}

/* ---- modules --------------------------------------------------------------------------------- */

/* Returns the row of the module whose path is the first `length` bytes of `path`; NULL if there is
 * no such row. */
static tn_profile_row *ancestor(struct rows *rows, const char *path, size_t length)
{
    char name[1024];

    if (length >= sizeof name)
        return NULL;
    memcpy(name, path, length);
    name[length] = '\0';
    if (rows->failed || rows->place_count == 0)
        return NULL;
    int64_t place = place_of(rows, name, "");
    return rows->places[place] != 0 ? &rows->at[rows->places[place] - 1] : NULL;
}

/* Adds the times and the FLOPs of an operator to the rows of all modules around it. */
static void add_inside(struct rows *rows, const char *path, const result_span *span)
{
    for (size_t length = strlen(path); length > 0; length--) {
        tn_profile_row *row = path[length] == '.' || path[length] == '\0'
                                  ? ancestor(rows, path, length)
                                  : NULL;
        if (row == NULL)
            continue;
        if (span->s.kind == TN_RANGE_NODE) {
            row->backward += span->s.duration;
            continue;
        }
        row->device += at_least_0(span->device_time);
        if (span->s.forward == 0)
            row->flops += span->s.flops;
    }
}

static void add_modules(struct rows *rows, const result *r)
{
    for (int64_t i = 0; i < r->count; i++) {
        const result_span *span = &r->spans[i];
        const record_span *s = &span->s;
        tn_profile_row *row = s->kind == KIND_MODULE ? row_of(rows, span->name, "") : NULL;

        if (row == NULL)
            continue;
        row->calls++;
        row->total += s->duration;
        row->self += s->duration;
        row->allocated += s->allocated;
        row->freed += s->freed;
        row->self_allocated += s->allocated;
        row->self_freed += s->freed;
        row->peak = s->peak > row->peak ? s->peak : row->peak;
    }
    for (int64_t i = 0; i < r->count && !rows->failed; i++) {
        const result_span *span = &r->spans[i];
        const record_span *s = &span->s;
        /* The `self` columns of a module leave out the calls of modules inside it. */
        tn_profile_row *outer = s->kind == KIND_MODULE && s->module != NULL
                                    ? ancestor(rows, s->module->bytes, s->module->size)
                                    : NULL;

        if (outer != NULL) {
            outer->self -= s->duration;
            outer->self_allocated -= s->allocated;
            outer->self_freed -= s->freed;
        }
        if ((s->kind == KIND_OPERATOR || s->kind == TN_RANGE_NODE) && span->module[0] != '\0')
            add_inside(rows, span->module, span);
    }
}

/* ---- sorting --------------------------------------------------------------------------------- */

static double column(const tn_profile_row *row, tn_profile_sort sort)
{
    switch (sort) {
    case TN_PROFILE_SORT_TOTAL: return (double)row->total;
    case TN_PROFILE_SORT_CALLS: return (double)row->calls;
    case TN_PROFILE_SORT_AVERAGE: return (double)row->total / (double)row->calls;
    case TN_PROFILE_SORT_MEMORY: return (double)row->self_allocated;
    case TN_PROFILE_SORT_PEAK: return (double)row->peak;
    case TN_PROFILE_SORT_FLOPS: return row->flops;
    case TN_PROFILE_SORT_DEVICE: return (double)row->device;
    default: return (double)row->self;
    }
}

struct sorted {
    tn_profile_row row;
    double key;
};

static int by_name(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    int order = strcmp(x->row.name, y->row.name);

    return order != 0 ? order : strcmp(x->row.shapes, y->row.shapes);
}

static int by_key(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;

    return x->key != y->key ? (x->key < y->key ? 1 : -1) : by_name(a, b);
}

static tn_status sort_rows(tn_profile_row *rows, int64_t count, tn_profile_sort sort)
{
    struct sorted *list = tn_malloc((size_t)(count > 0 ? count : 1) * sizeof *list);

    if (list == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        list[i] = (struct sorted){ rows[i], column(&rows[i], sort) };
    if (count > 0)
        qsort(list, (size_t)count, sizeof *list, sort == TN_PROFILE_SORT_NAME ? by_name : by_key);
    for (int64_t i = 0; i < count; i++)
        rows[i] = list[i].row;
    tn_free(list);
    return TN_OK;
}

tn_status group_rows(const result *r, tn_profile_group group, tn_profile_sort sort,
                     tn_profile_row **rows, int64_t *count)
{
    struct rows made = { .at = NULL };
    tn_status status = TN_OK;

    *rows = NULL;
    *count = 0;
    if (group > TN_PROFILE_BY_MODULE || sort > TN_PROFILE_SORT_NAME)
        return tn_fail(TN_ERR_VALUE,
                       "profile: group or sort: unknown, got %u and %u; expected TN_PROFILE_BY_* "
                       "and a column",
                       group, sort);
    if (group == TN_PROFILE_BY_MODULE)
        add_modules(&made, r);
    else
        add_operators(&made, r, group == TN_PROFILE_BY_SHAPE);
    status = made.failed ? TN_ERR_MEMORY : sort_rows(made.at, made.count, sort);
    tn_free(made.places);
    if (status != TN_OK || made.count == 0) {
        tn_free(made.at);
        return status;
    }
    *rows = made.at;
    *count = made.count;
    return TN_OK;
}

int64_t group_copy(tn_profile_group group, tn_profile_sort sort, tn_profile_row *out, int64_t room)
{
    tn_profile_row *rows;
    int64_t count;

    if (room < 0) {
        tn_fail(TN_ERR_VALUE, "profile: room: out of range, got %lld; expected 0 or more",
                (long long)room);
        return -1;
    }
    if (out == NULL && room > 0) {
        tn_fail(TN_ERR_VALUE, "profile: out: it is NULL, got room for %lld rows; expected 0",
                (long long)room);
        return -1;
    }
    if (group_rows(result_get(), group, sort, &rows, &count) != TN_OK)
        return -1;
    for (int64_t i = 0; i < count && i < room; i++)
        out[i] = rows[i];
    tn_free(rows);
    return count;
}
