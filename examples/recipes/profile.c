/* SPDX-License-Identifier: MIT
 *
 * Where the time goes: an observer adds up the time of each operator in each module. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tenon/tenon.h>

enum { ROWS = 500, DEPTH = 64, NAME = 80 };

struct row {
    char path[NAME];
    const char *op;
    long calls;
    double total, self; /* ms; self is without the operators inside */
};

/* What runs now, in the thread that is measured. Deeper levels are not measured. */
struct profile {
    struct row rows[ROWS];
    int count;
    char paths[DEPTH][NAME];
    int modules;
    double inside[DEPTH]; /* the time of the operators inside each running operator */
    int ops;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static uint64_t module_begin(void *user, const tn_module_event *event)
{
    struct profile *p = user;

    if (p->modules < DEPTH)
        snprintf(p->paths[p->modules], NAME, "%s", *event->path ? event->path : "(net)");
    p->modules++;
    return 0;
}

static void module_end(void *user, uint64_t token, const tn_module_event *event)
{
    (void)token, (void)event;
    ((struct profile *)user)->modules--;
}

/* Returns the time as the token, which op_end receives. */
static uint64_t op_begin(void *user, const tn_op_event *event)
{
    struct profile *p = user;
    double start = now();
    uint64_t token;

    (void)event;
    if (p->ops < DEPTH)
        p->inside[p->ops] = 0;
    p->ops++;
    memcpy(&token, &start, sizeof token);
    return token;
}

static struct row *row_of(struct profile *p, const char *path, const char *op)
{
    int i = 0;

    while (i < p->count && (p->rows[i].op != op || strcmp(p->rows[i].path, path) != 0))
        i++;
    if (i == ROWS)
        return NULL;
    if (i == p->count) {
        p->rows[i].op = op;
        snprintf(p->rows[i].path, NAME, "%s", path);
        p->count++;
    }
    return &p->rows[i];
}

static void op_end(void *user, uint64_t token, const tn_op_event *event)
{
    struct profile *p = user;
    double start, took;
    int module = p->modules < DEPTH ? p->modules : DEPTH;
    struct row *row;

    if (event->device != NULL) /* a GPU may still work after the call */
        tn_device_sync(event->device);
    memcpy(&start, &token, sizeof start);
    took = now() - start;
    p->ops--;
    row = row_of(p, module > 0 ? p->paths[module - 1] : "(outside)", event->op->name);
    if (row == NULL || p->ops >= DEPTH)
        return;
    row->calls++;
    row->total += took;
    row->self += took - p->inside[p->ops];
    if (p->ops > 0)
        p->inside[p->ops - 1] += took;
}

static int slower(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return (x->self < y->self) - (x->self > y->self);
}

static void print(struct profile *p)
{
    double all = 0;

    qsort(p->rows, (size_t)p->count, sizeof *p->rows, slower);
    for (int i = 0; i < p->count; i++)
        all += p->rows[i].self;
    printf("%-12s %-24s %6s %10s %10s %6s\n", "module", "operator", "calls", "total ms", "self ms",
           "self");
    for (int i = 0; i < p->count; i++)
        printf("%-12s %-24s %6ld %10.3f %10.3f %5.1f%%\n", p->rows[i].path, p->rows[i].op,
               p->rows[i].calls, p->rows[i].total, p->rows[i].self, 100 * p->rows[i].self / all);
}

int main(void)
{
    static struct profile profile;
    const tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = "profile",
                                       .user = &profile,         .op_begin = op_begin,
                                       .op_end = op_end,         .module_begin = module_begin,
                                       .module_end = module_end };
    tn_module *net = tn_module_new(
        "Sequential(conv=Conv2d(3, 16, 3, padding=1), act=ReLU(), "
        "pool=AdaptiveAvgPool2d(4), flat=Flatten(), fc=Linear(256, 10))");

    for (int step = 0; step < 11 && !tn_failed(); step++) {
        TN_SCOPE;
        if (step == 1) /* the first step also activates plugins and fills caches */
            tn_register(&observer);
        tn_module_zero_grad(net);
        tn_backward(tn_mean(tn_module_call(net, tn_randn(TN_SHAPE(8, 3, 32, 32)))));
    }
    tn_unregister(TN_KIND_tn_observer_def, "profile");
    print(&profile);
    if (tn_failed())
        fprintf(stderr, "profile: %s\n", tn_error_text());
    tn_module_drop(net);
    return tn_failed();
}
