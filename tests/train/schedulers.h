/* SPDX-License-Identifier: MIT
 *
 * Cases of schedulers from a text (make_schedulers.py, make_ported_schedulers.py): reads a case,
 * runs its schedulers, and continues with new objects after a save and a load. */
#ifndef TN_TESTS_TRAIN_SCHEDULERS_H
#define TN_TESTS_TRAIN_SCHEDULERS_H

#include "tests/base/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SCHEDULERS = 4, MOST_STEPS = 300 };

struct kase {
    char name[80], optimizer[64], function[16];
    char specs[SCHEDULERS][300];
    int at[SCHEDULERS], first[SCHEDULERS], last[SCHEDULERS], count, steps;
    double rates[2], metrics[MOST_STEPS + 1];
    double rows[MOST_STEPS + 1][4];
};

/* The same functions are in make_schedulers.py and make_ported_schedulers.py. */
static double factor(void *user, int64_t group, int64_t step)
{
    const char *name = user != NULL ? ((const struct kase *)user)->function : "";

    if (strcmp(name, "powers") == 0)
        return pow(group == 0 ? 0.9 : 0.8, (double)step);
    if (strcmp(name, "constants") == 0)
        return group == 0 ? 0.9 : 0.8;
    if (strcmp(name, "same") == 0)
        return 0.9;
    return group == 0 ? 1.0 / (1.0 + 0.25 * (double)step) : 1.0 - 0.5 / ((double)step + 10.0);
}

static tn_optimizer *groups_with(const char *spec, const double *rates)
{
    TN_SCOPE;
    double zero = 0;
    tn_tensor *p[2];
    for (int i = 0; i < 2; i++)
        p[i] = tn_parameter(tn_tensor_from(&zero, TN_F64, TN_SHAPE(1)), true);
    tn_optimizer *optimizer = tn_optimizer_parse(p, 1, spec);
    if (optimizer != NULL)
        tn_optimizer_add_group(optimizer, p + 1, 1, NULL);
    for (int i = 0; i < 2 && optimizer != NULL; i++)
        if (!isnan(rates[i]))
            tn_optimizer_set(optimizer, i, "lr", rates[i]);
    return optimizer;
}

static tn_optimizer *two_groups(const char *spec)
{
    return groups_with(spec, (const double[]){ (double)NAN, 0.35 });
}

static double option(const tn_optimizer *optimizer, int64_t group, const char *name)
{
    double value = NAN;
    ck_assert_int_eq(tn_optimizer_get(optimizer, group, name, &value), TN_OK);
    return value;
}

static bool cycles(const char *name)
{
    return strncmp(name, "Adam", 4) == 0;
}

static void read_now(const tn_optimizer *optimizer, const char *name, double *out)
{
    for (int64_t i = 0; i < 2; i++) {
        out[i] = option(optimizer, i, "lr");
        out[2 + i] = option(optimizer, i, cycles(name) ? "betas[0]" : "momentum");
    }
}

/* Reads numbers into `out`, which has room for `most`; returns how many. */
static int numbers_of(char *at, double *out, int most)
{
    int count = 0;

    for (char *end;; at = end, count++) {
        double value = strtod(at, &end);
        if (end == at)
            return count;
        ck_assert_int_lt(count, most);
        out[count] = value;
    }
}

/* Reads a line of a case that is not a row of numbers; returns false for a row. */
static bool read_word(char *line, struct kase *kase)
{
    char *at = line + strcspn(line, " "), *value = at + (*at == ' ');
    size_t length = (size_t)(at - line);
    struct {
        const char *name;
        char *text;
        size_t size;
    } const texts[] = { { "name", kase->name, sizeof kase->name },
                        { "case", kase->optimizer, sizeof kase->optimizer },
                        { "function", kase->function, sizeof kase->function } };

    for (int64_t i = 0; i < tn__countof(texts); i++)
        if (length == strlen(texts[i].name) && strncmp(line, texts[i].name, length) == 0)
            return tn_snprint(texts[i].text, texts[i].size, "%s", value) >= 0;
    if (strncmp(line, "metrics ", 8) == 0)
        return numbers_of(value, kase->metrics, MOST_STEPS + 1) > 0;
    if (strncmp(line, "rates ", 6) == 0)
        return numbers_of(value, kase->rates, 2) == 2;
    if (strncmp(line, "during ", 7) == 0) {
        kase->first[kase->count - 1] = (int)strtol(value, &at, 10);
        kase->last[kase->count - 1] = (int)strtol(at, &at, 10);
        return true;
    }
    if (strncmp(line, "at ", 3) != 0)
        return false;
    ck_assert_int_lt(kase->count, SCHEDULERS);
    kase->at[kase->count] = (int)strtol(value, &at, 10);
    kase->first[kase->count] = 1;
    kase->last[kase->count] = MOST_STEPS;
    tn_snprint(kase->specs[kase->count++], sizeof kase->specs[0], "%s", at + 1);
    return true;
}

/* Reads the next case into `kase`; returns false at the end of the file. A case without a line
 * `metrics` has those of the case before. */
static bool read_case(FILE *file, struct kase *kase)
{
    char line[1 << 14];
    int row = 0;

    kase->name[0] = kase->function[0] = '\0';
    kase->count = 0;
    kase->rates[0] = (double)NAN;
    kase->rates[1] = 0.35;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || read_word(line, kase))
            continue;
        if (strcmp(line, "end") == 0) {
            kase->steps = row - 1;
            return row > 0;
        }
        ck_assert_int_le(row, MOST_STEPS);
        ck_assert_int_eq(numbers_of(line, kase->rows[row++], 4), 4);
    }
    return false;
}

/* CosineAnnealingWarmRestarts gets the step as a number, from the metrics, in cases with a name
 * that does not contain "Restarts_lr1". */
static tn_status step_once(tn_scheduler *scheduler, const struct kase *kase, int step)
{
    const char *type = tn_scheduler_type(scheduler);
    bool epochs = kase->name[0] != '\0' && strstr(kase->name, "Restarts_lr1") == NULL &&
                  strcmp(type, "CosineAnnealingWarmRestarts") == 0;

    return epochs || strcmp(type, "ReduceLROnPlateau") == 0
               ? tn_scheduler_step_with(scheduler, kase->metrics[step])
               : tn_scheduler_step(scheduler);
}

/* Replaces optimizer and schedulers by new ones with their saved state. */
static void resume(struct kase *kase, tn_optimizer **optimizer, tn_scheduler **running,
                   const int *which, int count)
{
    tn_optimizer *again = groups_with(kase->optimizer, kase->rates);
    for (int i = 0; i < count; i++) {
        char text[4096];
        const char *spec = kase->specs[which[i]];
        ck_assert_int_lt(tn_scheduler_state_text(running[i], text, sizeof text),
                         (int64_t)sizeof text);
        tn_scheduler_drop(running[i]);
        running[i] = tn_scheduler_lambda(again, spec + (*spec == '!'), factor, kase);
        ck_assert_msg(tn_scheduler_set_state(running[i], text) == TN_OK, "%s: %s", text,
                      tn_error_text());
    }
    tn_state *state = tn_optimizer_save_state(*optimizer); /* with rates below 0, too */
    ck_assert_msg(tn_optimizer_load_state(again, state) == TN_OK, "%s", tn_error_text());
    tn_state_drop(state);
    tn_optimizer_drop(*optimizer);
    *optimizer = again;
}

/* Runs a case; before step `save` it continues with new objects. Records what it does in `out`. */
static void run_case(struct kase *kase, int save, double (*out)[4])
{
    tn_optimizer *optimizer = groups_with(kase->optimizer, kase->rates);
    tn_scheduler *running[SCHEDULERS];
    int which[SCHEDULERS], count = 0, latest = 0;

    ck_assert_msg(optimizer != NULL, "%s: %s", kase->optimizer, tn_error_text());
    for (int step = 0; step <= kase->steps; step++) {
        if (step == save)
            resume(kase, &optimizer, running, which, count);
        for (int i = 0; i < count && step > 0; i++) {
            if (step < kase->first[which[i]] || step > kase->last[which[i]])
                continue;
            latest = i;
            ck_assert_msg(step_once(running[i], kase, step) == TN_OK, "%s, step %d: %s",
                          kase->specs[which[i]], step, tn_error_text());
        }
        for (int i = 0; i < kase->count; i++) {
            const char *spec = kase->specs[i];
            if (kase->at[i] != step)
                continue;
            while (*spec == '!' && count > 0)
                tn_scheduler_drop(running[--count]);
            running[count] = tn_scheduler_lambda(optimizer, spec + (*spec == '!'), factor, kase);
            ck_assert_msg(running[count] != NULL, "%s: %s", spec, tn_error_text());
            latest = count;
            which[count++] = i;
        }
        read_now(optimizer, kase->optimizer, out[step]);
        double last = NAN;
        ck_assert_int_eq(tn_scheduler_last_rate(running[latest], 1, &last), TN_OK);
        ck_assert(last == out[step][1]);
    }
    while (count > 0)
        tn_scheduler_drop(running[--count]);
    tn_optimizer_drop(optimizer);
}

/* Compares each case of a file with PyTorch, and with itself after a save and a load. Returns the
 * number of cases. */
static int follow_cases(const char *path, double relative)
{
    FILE *file = fopen(path, "r");
    static struct kase kase;
    static double got[MOST_STEPS + 1][4], again[MOST_STEPS + 1][4];
    int count = 0;

    ck_assert_msg(file != NULL, "%s", path);
    for (; read_case(file, &kase); count++) {
        size_t size = (size_t)(kase.steps + 1) * sizeof got[0];

        run_case(&kase, -1, got);
        for (int step = 0; step <= kase.steps; step++)
            for (int i = 0; i < 4; i++)
                ck_assert_msg(fabs(got[step][i] - kase.rows[step][i]) <=
                                  relative * fabs(kase.rows[step][i]) + 1e-17,
                              "%s %s, %s, step %d, %d: %.17g is not %.17g", kase.name,
                              kase.optimizer, kase.specs[0], step, i, got[step][i],
                              kase.rows[step][i]);
        for (int save = 1; save < kase.steps; save += kase.steps < 60 ? 3 : 29) {
            run_case(&kase, save, again);
            ck_assert_msg(memcmp(got, again, size) == 0, "%s %s: differs after step %d", kase.name,
                          kase.specs[0], save);
        }
    }
    fclose(file);
    return count;
}

#endif
