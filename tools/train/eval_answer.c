/* SPDX-License-Identifier: MIT
 *
 * The answer of tenon eval, as text and as JSON. */
#include "eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MATRIX_MOST = 11, PAIRS = 20 };

static const char *fixed(double number, char *out, size_t size)
{
    snprintf(out, size, isnan(number) ? "-" : "%.4f", number);
    return out;
}

static void print_classes(const evaluation *e)
{
    const metrics *m = &e->counts;
    table t = { .columns = 7 };
    char name[32], seen[32], hit[32], recall[32], precision[32], f1[32], auc[32];

    putchar('\n');
    table_row(&t, "CLASS", "SAMPLES", "CORRECT", "RECALL", "PRECISION", "F1", "AUC");
    for (int64_t i = 0; i < m->classes; i++) {
        snprintf(seen, sizeof seen, "%lld", (long long)m->seen[i]);
        snprintf(hit, sizeof hit, "%lld", (long long)m->hit[i]);
        table_row(&t, classes_name(&e->names, i, name, sizeof name), seen, hit,
                  fixed(metrics_recall(m, i), recall, sizeof recall),
                  fixed(metrics_precision(m, i), precision, sizeof precision),
                  fixed(metrics_f1(m, i), f1, sizeof f1), fixed(e->areas[i], auc, sizeof auc));
    }
    table_print(&t);
}

/* Prints a small matrix as lines of at most TABLE_COLUMNS cells. */
static void print_matrix(const evaluation *e)
{
    const metrics *m = &e->counts;
    const char *cells[MATRIX_MOST + 1];
    char texts[MATRIX_MOST][32], name[32];
    table t = { .columns = (int)m->classes + 1 };

    for (int64_t row = -1; row < m->classes; row++) {
        cells[0] = row < 0 ? "TRUE \\ RESULT" : classes_name(&e->names, row, name, sizeof name);
        for (int64_t i = 0; i < MATRIX_MOST; i++) {
            cells[i + 1] = texts[i];
            if (i < m->classes && row < 0)
                cells[i + 1] = classes_name(&e->names, i, texts[i], sizeof texts[i]);
            else if (i < m->classes)
                snprintf(texts[i], sizeof texts[i], "%lld",
                         (long long)m->confusion[row * m->classes + i]);
        }
        table_row(&t, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6],
                  cells[7], cells[8], cells[9], cells[10], cells[11]);
    }
    table_print(&t);
}

/* Prints the pairs of classes that are confused most often. */
static void print_pairs(const evaluation *e)
{
    const metrics *m = &e->counts;
    int64_t last = INT64_MAX, at = -1, shown = 0;
    table t = { .columns = 3 };
    char name[32], other[32], number[32];

    table_row(&t, "TRUE", "RESULT", "SAMPLES");
    while (shown < PAIRS) {
        /* The next pair: the largest count below the last one, or an equal count after it. */
        int64_t best = -1;
        for (int64_t i = 0; i < m->classes * m->classes; i++) {
            int64_t here = m->confusion[i];
            bool left = here < last || (here == last && i > at);
            if (i / m->classes != i % m->classes && here > 0 && left &&
                (best < 0 || here > m->confusion[best]))
                best = i;
        }
        if (best < 0)
            break;
        last = m->confusion[best];
        at = best;
        shown++;
        snprintf(number, sizeof number, "%lld", (long long)last);
        table_row(&t, classes_name(&e->names, best / m->classes, name, sizeof name),
                  classes_name(&e->names, best % m->classes, other, sizeof other), number);
    }
    table_print(&t);
}

/* Prints the worst samples by the names of their files, else by their numbers. */
static void print_worst(const evaluation *e)
{
    table t = { .columns = 4 };
    char loss[32], truth[32], result[32], file[4096];

    putchar('\n');
    table_row(&t, "LOSS", "TRUE", "RESULT", "WORST SAMPLES");
    for (int64_t i = 0; i < e->n_worst; i++) {
        const bad_sample *s = &e->worst[i];

        if (s->index < 0)
            tn_snprint(file, sizeof file, "?");
        else if (!work_name(e->files, s->index, file, sizeof file))
            tn_snprint(file, sizeof file, "sample %lld", (long long)s->index);
        table_row(&t, progress_number(s->loss, 4, loss, sizeof loss),
                  classes_name(&e->names, s->truth, truth, sizeof truth),
                  classes_name(&e->names, s->result, result, sizeof result), file);
    }
    table_print(&t);
}

static void print_line(const char *name, const char *format, ...)
{
    char text[800];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_wrapped(name, 12, text);
}

void eval_answer_text(const evaluation *e)
{
    const metrics *m = &e->counts;
    char loss[32];

    print_line("samples", "%lld in %lld batches of %lld on %s", (long long)e->samples,
               (long long)e->batches, (long long)work_given.batch, e->device);
    if (work_given.transform != NULL)
        print_line("transform", "%s", work_given.transform);
    if (e->skipped > 0)
        print_line("skipped", "%lld damaged sample%s", (long long)e->skipped,
                   e->skipped == 1 ? "" : "s");
    print_line("loss", "%s  %s",
               progress_number(e->loss_sum / (double)e->samples, 6, loss, sizeof loss),
               e->loss_text);
    if (e->classifies && m->counted > 0) {
        print_line("accuracy", "%.4f  (%lld of %lld)", (double)m->correct / (double)m->counted,
                   (long long)m->correct, (long long)m->counted);
        if (m->k > 0)
            print_line("top", "%.4f  (%lld within the first %lld)",
                       (double)m->in_top / (double)m->counted, (long long)m->in_top,
                       (long long)m->k);
    }
    if (e->classifies && m->counted > 0) {
        char f1[32], auc[32];

        print_line("f1", "%s  (mean of the classes)", fixed(metrics_mean_f1(m), f1, sizeof f1));
        print_line("auc", "%s  (mean of the classes, each against all others)",
                   fixed(e->mean_area, auc, sizeof auc));
    }
    if (m->ignored > 0)
        print_line("ignored", "%lld targets that are no class of the model", (long long)m->ignored);
    print_line("time", "%.3f s, of which %.3f s waiting for data; %.1f samples/s", e->seconds,
               e->waiting, (double)e->samples / e->seconds);
    if (!e->classifies || m->classes == 0)
        return;
    print_classes(e);
    if (m->confusion != NULL) {
        putchar('\n');
        if (m->classes <= MATRIX_MOST)
            print_matrix(e);
        else
            print_pairs(e);
    }
    if (e->n_worst > 0)
        print_worst(e);
}

static void classes_json(const evaluation *e)
{
    const metrics *m = &e->counts;
    char name[32];
    json_begin("classes", '[');
    for (int64_t i = 0; i < m->classes; i++) {
        json_begin(NULL, '{');
        json_text("name", classes_name(&e->names, i, name, sizeof name));
        json_int("samples", m->seen[i]);
        json_int("results", m->predicted[i]);
        json_int("correct", m->hit[i]);
        json_float("recall", metrics_recall(m, i));
        json_float("precision", metrics_precision(m, i));
        json_float("f1", metrics_f1(m, i));
        json_float("auc", e->areas[i]);
        json_end('}');
    }
    json_end(']');
    if (m->confusion == NULL)
        return;
    json_begin("confusion", '[');
    for (int64_t row = 0; row < m->classes; row++) {
        json_begin(NULL, '[');
        for (int64_t i = 0; i < m->classes; i++)
            json_int(NULL, m->confusion[row * m->classes + i]);
        json_end(']');
    }
    json_end(']');
}

static void worst_json(const evaluation *e)
{
    char truth[32], result[32], file[4096];

    json_begin("worst", '[');
    for (int64_t i = 0; i < e->n_worst; i++) {
        const bad_sample *s = &e->worst[i];

        json_begin(NULL, '{');
        if (s->index >= 0)
            json_int("index", s->index);
        if (s->index >= 0 && work_name(e->files, s->index, file, sizeof file))
            json_text("file", file);
        json_text("true", classes_name(&e->names, s->truth, truth, sizeof truth));
        json_text("result", classes_name(&e->names, s->result, result, sizeof result));
        json_float("loss", s->loss);
        json_end('}');
    }
    json_end(']');
}

void eval_answer_json(const evaluation *e)
{
    const metrics *m = &e->counts;
    json_begin(NULL, '{');
    json_text("device", e->device);
    json_int("samples", e->samples);
    json_int("batches", e->batches);
    json_int("skipped", e->skipped);
    if (work_given.transform != NULL)
        json_text("transform", work_given.transform);
    json_text("loss_spec", e->loss_text);
    json_float("loss", e->loss_sum / (double)e->samples);
    if (e->classifies) {
        json_int("counted", m->counted);
        json_int("ignored", m->ignored);
        json_int("correct", m->correct);
        json_float("accuracy", (double)m->correct / (double)m->counted);
        json_float("f1", metrics_mean_f1(m));
        json_float("auc", e->mean_area);
        if (m->k > 0) {
            json_int("k", m->k);
            json_float("top_accuracy", (double)m->in_top / (double)m->counted);
        }
    }
    json_float("seconds", e->seconds);
    json_float("seconds_waiting", e->waiting);
    json_float("samples_per_second", (double)e->samples / e->seconds);
    if (e->classifies)
        classes_json(e);
    if (e->most_worst > 0)
        worst_json(e);
    json_end('}');
}
