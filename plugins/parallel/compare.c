/* SPDX-License-Identifier: MIT
 *
 * Compares the modules of the ranks when they are wrapped, and a module with itself at that time.
 * A module is described by lines of a path, a tab, and what must be equal. */
#include "ddp.h"

#include <stdarg.h>
#include <string.h>

/* ---- descriptions ---------------------------------------------------------------------------- */

typedef struct text {
    char *at;
    int64_t length, room;
} text;

static tn_status text_add(text *t, const char *format, ...)
{
    va_list args, again;
    int64_t more;

    va_start(args, format);
    va_copy(again, args);
    more = tn_snprintv(NULL, 0, format, args);
    va_end(args);
    if (t->length + more + 1 > t->room) {
        int64_t room = (t->length + more + 1) * 2;
        char *grown = tn_realloc(t->at, (size_t)room);

        if (grown == NULL) {
            va_end(again);
            return TN_ERR_MEMORY;
        }
        t->at = grown;
        t->room = room;
    }
    tn_snprintv(t->at + t->length, (size_t)(more + 1), format, again);
    va_end(again);
    t->length += more;
    return TN_OK;
}

static tn_status add_tensor(text *t, const tn_visit *what)
{
    const tn_view *view = tn_tensor_view(what->tensor);
    bool parameter = what->kind == TN_SLOT_PARAMETER;
    tn_status status = text_add(t, "%s\t%s %s [", what->path, parameter ? "parameter" : "buffer",
                                tn_dtype_name(tn_tensor_dtype(what->tensor)));

    for (int32_t d = 0; d < view->ndim && status == TN_OK; d++)
        status = text_add(t, d > 0 ? ", %lld" : "%lld", (long long)view->shape[d]);
    if (status != TN_OK)
        return status;
    return text_add(t, "]%s\n",
                    parameter && !tn_tensor_requires_grad(what->tensor) ? " without gradient" : "");
}

static tn_status describe(text *t, tn_module *module, const char *options)
{
    tn_walk *walk = tn_walk_begin(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, NULL);
    tn_status status = walk != NULL ? text_add(t, "options\t%s\n", options) : tn_error_last_code();

    for (const tn_visit *at = tn_walk_next(walk); at != NULL && status == TN_OK;
         at = tn_walk_next(walk))
        status = add_tensor(t, at);
    tn_walk_end(walk);
    return status;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

enum { LINE_MOST = 400 };

/* Copies the line at `at` to path and rest, and returns the place of the next line. After the last
 * line, both are "". */
static const char *take_line(const char *at, char path[LINE_MOST], char rest[LINE_MOST])
{
    const char *end = strchr(at, '\n'), *tab = strchr(at, '\t');

    path[0] = rest[0] = '\0';
    if (end == NULL || tab == NULL || tab > end)
        return at + strlen(at);
    tn_snprint(path, LINE_MOST, "%.*s", (int)(tab - at < LINE_MOST ? tab - at : LINE_MOST - 1), at);
    tn_snprint(rest, LINE_MOST, "%.*s",
               (int)(end - tab - 1 < LINE_MOST ? end - tab - 1 : LINE_MOST - 1), tab + 1);
    return end + 1;
}

static const char *or_nothing(const char *words)
{
    return words[0] != '\0' ? words : "nothing";
}

/* Fails with the first line that differs. */
static tn_status refuse(const char *first, const char *other, int32_t rank)
{
    char path[2][LINE_MOST], rest[2][LINE_MOST];

    do {
        first = take_line(first, path[0], rest[0]);
        other = take_line(other, path[1], rest[1]);
    } while (path[0][0] != '\0' && strcmp(path[0], path[1]) == 0 && strcmp(rest[0], rest[1]) == 0);
    if (strcmp(path[0], path[1]) == 0)
        return tn_fail(
            TN_ERR_VALUE,
            "DistributedDataParallel: %s: differs between ranks, got %s on rank 0 and %s "
            "on rank %d; expected the same module and options on all ranks",
            path[0], rest[0], rest[1], (int)rank);
    return tn_fail(TN_ERR_VALUE,
                   "DistributedDataParallel: names differ between ranks, got %s (%s) on rank 0 and "
                   "%s (%s) on rank %d; expected the same module on all ranks",
                   or_nothing(path[0]), or_nothing(rest[0]), or_nothing(path[1]),
                   or_nothing(rest[1]), (int)rank);
}

tn_status compare_ranks(tn_module *module, tn_comm *group, const char *options)
{
    text mine = { NULL, 0, 0 };
    tn_status status = describe(&mine, module, options);
    int64_t stride = 0;
    char *all;

    if (status != TN_OK) {
        tn_free(mine.at);
        return group_abort(group);
    }
    all = group_texts(group, mine.at, mine.length, &stride);
    tn_free(mine.at);
    if (all == NULL)
        return tn_error_last_code();
    for (int32_t rank = 1; rank < group_size(group) && status == TN_OK; rank++)
        if (strcmp(all, all + rank * stride) != 0)
            status = refuse(all, all + rank * stride, rank);
    tn_free(all);
    return status;
}

/* ---- a module that was wrapped --------------------------------------------------------------- */

static tn_status refuse_change(const char *path, const char *what)
{
    return tn_fail(
        TN_ERR_RUNTIME,
        "DistributedDataParallel: parameter %s: %s after the module was wrapped; expected "
        "changes before tn_ddp_new, or a new DistributedDataParallel after them",
        path, what);
}

/* Fails if the tensor of a parameter does not fit its bucket any more. */
static tn_status compare_place(const ddp *d, const ddp_parameter *p)
{
    const ddp_bucket *bucket = &d->buckets[p->bucket];
    const tn_dtype dtype = tn_tensor_dtype(p->tensor);
    const tn_device *device = tn_tensor_device(p->tensor);
    char what[160];

    if (dtype == bucket->dtype && device == bucket->device)
        return TN_OK;
    tn_snprint(what, sizeof what, "it changed from %s on %s to %s on %s",
               tn_dtype_name(bucket->dtype), tn_device_name(bucket->device), tn_dtype_name(dtype),
               tn_device_name(device));
    return refuse_change(p->path, what);
}

tn_status compare_wrapped(const ddp *d, tn_module *module)
{
    tn_walk *walk = tn_walk_begin(module, TN_SLOT_PARAMETER, NULL);
    tn_status status = walk != NULL ? TN_OK : tn_error_last_code();
    int64_t i = 0;

    for (const tn_visit *at = tn_walk_next(walk); at != NULL && status == TN_OK;
         at = tn_walk_next(walk)) {
        const ddp_parameter *p = i < d->count ? &d->parameters[i] : NULL;
        bool known = p != NULL && strcmp(p->path, at->path) == 0;
        bool learns = tn_tensor_requires_grad(at->tensor);

        i += known;
        if (learns && !known)
            status = refuse_change(at->path, "it was added or got requires_grad");
        else if (known && !learns)
            status = refuse_change(at->path, "it lost requires_grad");
        else if (known && at->tensor != p->tensor)
            status = refuse_change(at->path, "it was replaced by another tensor");
        else if (known && tn_tensor_numel(at->tensor) != p->numel)
            status = refuse_change(at->path, "its shape changed");
        else if (known)
            status = compare_place(d, p);
    }
    tn_walk_end(walk);
    if (status == TN_OK && i < d->count)
        status = refuse_change(d->parameters[i].path, "it was removed or lost requires_grad");
    return status;
}

/* Makes room for more buffers. */
static tn_status grow(ddp *d, int64_t count)
{
    tn_tensor **buffers = tn_realloc(d->buffers, (size_t)(count + 1) * sizeof *buffers), **snapshot;

    if (buffers == NULL)
        return TN_ERR_MEMORY;
    d->buffers = buffers;
    snapshot = tn_realloc(d->snapshot, (size_t)(count + 1) * sizeof *snapshot);
    if (snapshot == NULL)
        return TN_ERR_MEMORY;
    d->snapshot = snapshot;
    buffers[count - 1] = snapshot[count - 1] = NULL;
    d->n_buffers = count;
    return TN_OK;
}

tn_status compare_buffers(ddp *d, tn_module *module)
{
    tn_walk *walk = tn_walk_begin(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, NULL);
    tn_status status = walk != NULL ? TN_OK : tn_error_last_code();
    int64_t count = 0;

    for (const tn_visit *at = tn_walk_next(walk); at != NULL && status == TN_OK;
         at = tn_walk_next(walk)) {
        if (at->kind != TN_SLOT_BUFFER)
            continue;
        if (count == d->n_buffers && (status = grow(d, count + 1)) != TN_OK)
            break;
        tn_tensor_keep(at->tensor);
        tn_tensor_drop(d->buffers[count]);
        d->buffers[count++] = at->tensor;
    }
    tn_walk_end(walk);
    for (; status == TN_OK && d->n_buffers > count; d->n_buffers--) {
        tn_tensor_drop(d->buffers[d->n_buffers - 1]);
        tn_tensor_drop(d->snapshot[d->n_buffers - 1]);
    }
    return status;
}
