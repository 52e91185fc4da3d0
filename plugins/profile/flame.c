/* SPDX-License-Identifier: MIT
 *
 * The flame graph: calls with equal names below equal callers are one box, whose width is their
 * time. */
#include "page.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEPTH = 64,      /* levels */
    BOXES = 5000,    /* the most boxes on the page */
    ROW = 20,        /* pixels of a level */
    SMALLEST = 20000 /* a box has at least one part in SMALLEST of the width */
};

/* A box of the graph. Children are a list. */
struct box {
    const char *name;
    const char *category;
    int64_t total, self, calls, allocated;
    double flops;
    struct box *child, *next;
};

struct graph {
    struct box root;
    int64_t boxes, deepest;
    bool failed;
};

static struct box *child_of(struct graph *g, struct box *parent, const result_span *span)
{
    const char *category = result_category(span);
    struct box **at = &parent->child;

    for (; *at != NULL; at = &(*at)->next)
        if (strcmp((*at)->name, span->name) == 0 && (*at)->category == category)
            return *at;
    *at = tn_calloc(1, sizeof **at);
    if (*at == NULL) {
        g->failed = true;
        return NULL;
    }
    (*at)->name = span->name;
    (*at)->category = category;
    return *at;
}

/* The boxes of the calls around the current one: path[0] is the root, path[d + 1] the box at depth
 * d, NULL if there is none. */
struct place {
    int64_t thread;
    struct box *path[DEPTH + 1];
};

static int by_thread(const void *a, const void *b)
{
    const result_span *const *x = a, *const *y = b;

    if ((*x)->thread != (*y)->thread)
        return (*x)->thread < (*y)->thread ? -1 : 1;
    return (*x > *y) - (*x < *y); /* the order by start */
}

static void add_spans(struct graph *g, const result *r)
{
    const result_span **list = tn_malloc((size_t)(r->count > 0 ? r->count : 1) * sizeof *list);
    struct place place = { .path = { &g->root } };

    if (list == NULL) {
        g->failed = true;
        return;
    }
    for (int64_t i = 0; i < r->count; i++)
        list[i] = &r->spans[i];
    if (r->count > 0)
        qsort(list, (size_t)r->count, sizeof *list, by_thread);
    for (int64_t i = 0; i < r->count && !g->failed; i++) {
        const result_span *span = list[i];
        int64_t depth = span->s.depth;
        if (i == 0 || span->thread != list[i - 1]->thread)
            memset(&place.path[1], 0, DEPTH * sizeof *place.path);
        if (depth >= DEPTH)
            continue;
        /* A range whose caller has no box is shown below the nearest outer range that has one. */
        int64_t above = depth;
        while (place.path[above] == NULL)
            above--;
        struct box *box = child_of(g, place.path[above], span);
        if (box == NULL)
            break;
        box->total += span->s.duration;
        box->self += span->s.self;
        box->calls++;
        box->allocated += span->s.allocated;
        box->flops += span->s.flops;
        memset(&place.path[depth + 1], 0, (size_t)(DEPTH - depth) * sizeof *place.path);
        place.path[depth + 1] = box;
        if (above == 0)
            g->root.total += span->s.duration;
    }
    tn_free(list);
}

static int by_total(const void *a, const void *b)
{
    const struct box *const *x = a, *const *y = b;

    return ((*x)->total < (*y)->total) - ((*x)->total > (*y)->total);
}

/* Sorts the children of a box, the longest first. */
static void sort_children(struct graph *g, struct box *parent)
{
    struct box **list;
    int64_t count = 0;

    for (struct box *b = parent->child; b != NULL; b = b->next)
        count++;
    if (count < 2)
        return;
    list = tn_malloc((size_t)count * sizeof *list);
    if (list == NULL) {
        g->failed = true;
        return;
    }
    count = 0;
    for (struct box *b = parent->child; b != NULL; b = b->next)
        list[count++] = b;
    qsort(list, (size_t)count, sizeof *list, by_total);
    parent->child = list[0];
    for (int64_t i = 0; i < count; i++)
        list[i]->next = i + 1 < count ? list[i + 1] : NULL;
    tn_free(list);
}

static void put_box(output *t, const struct graph *g, const struct box *box, double left,
                    double width, int64_t depth)
{
    text_add(t,
             "<div class=\"%s%s\" data-l=\"%.6f\" data-w=\"%.6f\" style=\"left:%.4f%%;width:%.4f%%;"
             "top:%lldpx\" title=\"",
             box->category, width < 0.014 ? " thin" : "", left, width, 100 * left, 100 * width,
             (long long)(depth * ROW));
    text_html(t, box->name);
    text_add(t, ": %lld call%s, total ", (long long)box->calls, box->calls == 1 ? "" : "s");
    text_time(t, (double)box->total);
    text_add(t, " (%.1f%%), self ", 100 * (double)box->total / (double)g->root.total);
    text_time(t, (double)box->self);
    text_put(t, ", allocated ");
    text_bytes(t, (double)box->allocated);
    if (box->flops > 0) {
        text_put(t, ", ");
        text_rate(t, box->flops, (double)box->self);
    }
    text_put(t, "\">");
    if (width >= 0.004)
        text_html(t, box->name);
    text_put(t, "</div>\n");
}

/* Draws the children of a box from `left` on. */
static void put_children(output *t, struct graph *g, struct box *parent, double left, int64_t depth)
{
    sort_children(g, parent);
    if (parent->child != NULL && depth >= g->deepest)
        g->deepest = depth + 1;
    for (struct box *b = parent->child; b != NULL; b = b->next) {
        double width = (double)b->total / (double)g->root.total;
        if (width * SMALLEST >= 1 && g->boxes < BOXES) {
            g->boxes++;
            put_box(t, g, b, left, width, depth);
            put_children(t, g, b, left, depth + 1);
        }
        left += width;
    }
}

static void free_children(struct box *parent)
{
    struct box *next;

    for (struct box *b = parent->child; b != NULL; b = next) {
        next = b->next;
        free_children(b);
        tn_free(b);
    }
}

void flame_add(output *t, const result *r)
{
    struct graph g = { .root = { .name = "" } };
    output boxes = { .at = NULL };

    add_spans(&g, r);
    if (g.root.total > 0 && !g.failed)
        put_children(&boxes, &g, &g.root, 0, 0);
    if (boxes.size == 0) {
        text_put(t, "<p class=\"note\">Nothing was recorded.</p>\n");
    } else {
        text_add(
            t,
            "<button class=\"reset\" type=\"button\" hidden>Whole profile</button>\n"
            "<div class=\"flame\" role=\"img\" aria-label=\"Flame graph; the tables below have "
            "the same numbers\" style=\"height:%lldpx\">\n",
            (long long)(g.deepest * ROW));
        text_put(t, boxes.at);
        text_put(t, "</div>\n<p class=\"chosen\" aria-live=\"polite\">Point at a box to read its "
                    "numbers; click to zoom.</p>\n");
    }
    t->failed |= g.failed || boxes.failed;
    free_children(&g.root);
    text_free(&boxes);
}
