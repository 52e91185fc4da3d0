/* SPDX-License-Identifier: MIT
 *
 * What a sweep prints: a line for each trial on the way, and the table at the end. */
#include "sweep.h"
#include "train.h"

#include <ctype.h>
#include <string.h>

bool sweep_answer_has_best(const sweep *s, const sweep_trial *one)
{
    return (one->state == SWEEP_FINISHED || one->state == SWEEP_EARLY) && one->metric[0] != '\0' &&
           strcmp(one->metric, s->metric) == 0;
}

/* Whether a trial comes before another one in the table. */
static bool is_better(const sweep *s, const sweep_trial *a, const sweep_trial *b)
{
    bool has = sweep_answer_has_best(s, a), less = strstr(s->metric, "loss") != NULL;

    if (has != sweep_answer_has_best(s, b))
        return has;
    if (!has)
        return a->state > b->state;
    return less ? a->best < b->best : a->best > b->best;
}

/* Lists the trials, the best first; those that are equal as they were run. */
static int64_t *in_order(const sweep *s)
{
    int64_t *order = tn_malloc((size_t)s->n_trials * sizeof *order);

    for (int64_t i = 0; i < s->n_trials && order != NULL; i++) {
        int64_t at = i;

        for (; at > 0 && is_better(s, &s->trials[i], &s->trials[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return order;
}

static void put_values(report_text *t, const sweep *s, const sweep_trial *one)
{
    for (int i = 0; i < s->n_sets; i++)
        report_text_add(t, "%s%s=%s", i > 0 ? "  " : "", s->ranges[i].name, one->values[i]);
}

static const char *metric_text(const sweep *s, const sweep_trial *one, char out[32])
{
    if (!sweep_answer_has_best(s, one))
        return "-";
    return progress_number(one->best, 4, out, 32);
}

void sweep_answer_trial(const sweep *s, int64_t at)
{
    const sweep_trial *one = &s->trials[at];
    report_text t = { .status = TN_OK };
    FILE *to = tool_json ? stderr : stdout;
    char number[32];

    report_text_add(&t, "trial %lld/%lld  ", (long long)at + 1, (long long)s->n_trials);
    put_values(&t, s, one);
    if (sweep_answer_has_best(s, one))
        report_text_add(&t, "  %s %s in epoch %lld", one->metric, metric_text(s, one, number),
                        (long long)one->best_epoch);
    else
        report_text_add(&t, "  %s", sweep_state_names[one->state]);
    if (one->words[0] != '\0')
        report_text_add(&t, ": %s", one->words);
    if (t.status == TN_OK)
        fprintf(to, "%s\n", t.bytes);
    fflush(to);
    report_text_drop(&t);
}

/* ---- the best trial -------------------------------------------------------------------------- */

/* Adds the command that trains the best trial again. */
static tn_status put_command(const sweep *s, int64_t best, report_text *out)
{
    char folder[SWEEP_PATH];
    settings set;
    tn_status status = sweep_trial_settings(s, best, &set);

    tn_snprint(folder, sizeof folder, "%s/again", s->folder);
    if (status == TN_OK)
        sweep_trial_command(&set, folder, out);
    settings_free(&set);
    return status == TN_OK ? out->status : status;
}

/* ---- as text --------------------------------------------------------------------------------- */

static void print_table(const sweep *s, const int64_t *order)
{
    table t = { .columns = 5, .wraps = true };
    char title[32];

    tn_snprint(title, sizeof title, "%s", s->metric[0] != '\0' ? s->metric : "metric");
    for (char *c = title; *c != '\0'; c++)
        *c = (char)toupper((unsigned char)*c);
    table_row(&t, "TRIAL", title, "EPOCHS", "STATE", "SETTINGS");
    for (int64_t i = 0; i < s->n_trials; i++) {
        const sweep_trial *one = &s->trials[order[i]];
        report_text values = { .status = TN_OK };
        char number[24], result[32], epochs[24] = "-";

        put_values(&values, s, one);
        tn_snprint(number, sizeof number, "%lld", (long long)order[i] + 1);
        if (one->epochs > 0)
            tn_snprint(epochs, sizeof epochs, "%lld", (long long)one->epochs);
        table_row(&t, number, metric_text(s, one, result), epochs, sweep_state_names[one->state],
                  values.bytes != NULL ? values.bytes : "");
        if (one->words[0] != '\0')
            table_note(&t, "%s", one->words);
        report_text_drop(&values);
    }
    putchar('\n');
    table_print(&t);
}

static tn_status print_text(const sweep *s, const int64_t *order)
{
    const sweep_trial *best = &s->trials[order[0]];
    report_text again = { .status = TN_OK };
    char path[SWEEP_PATH], number[32];
    tn_status status = TN_OK;

    print_table(s, order);
    if (sweep_answer_has_best(s, best)) {
        status = put_command(s, order[0], &again);
        if (status == TN_OK)
            printf("\nbest: trial %lld, %s %s in epoch %lld, in %s\nagain: %s\n",
                   (long long)order[0] + 1, best->metric, metric_text(s, best, number),
                   (long long)best->best_epoch, sweep_trial_folder(s, order[0], path), again.bytes);
    } else {
        printf("\nno trial has a result\n");
    }
    printf("table: %s/trials.csv\n", s->folder);
    report_text_drop(&again);
    return status;
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static void json_trial(const sweep *s, int64_t at)
{
    const sweep_trial *one = &s->trials[at];
    char path[SWEEP_PATH];

    json_begin(NULL, '{');
    json_int("trial", at + 1);
    json_text("state", sweep_state_names[one->state]);
    json_begin("settings", '{');
    for (int i = 0; i < s->n_sets; i++)
        json_text(s->ranges[i].name, one->values[i]);
    json_end('}');
    if (one->metric[0] != '\0') {
        json_float(one->metric, one->best);
        json_int("best_epoch", one->best_epoch);
    }
    if (one->epochs > 0)
        json_int("epochs", one->epochs);
    if (one->words[0] != '\0')
        json_text("message", one->words);
    json_text("folder", sweep_trial_folder(s, at, path));
    json_end('}');
}

static tn_status print_json(const sweep *s, const int64_t *order)
{
    const sweep_trial *best = &s->trials[order[0]];
    report_text again = { .status = TN_OK };
    char path[SWEEP_PATH];
    tn_status status = TN_OK;

    if (sweep_answer_has_best(s, best))
        status = put_command(s, order[0], &again);
    if (status != TN_OK)
        return status;
    json_begin(NULL, '{');
    json_text("metric", s->metric[0] != '\0' ? s->metric : NULL);
    json_begin("trials", '[');
    for (int64_t i = 0; i < s->n_trials; i++)
        json_trial(s, i);
    json_end(']');
    if (again.bytes != NULL) {
        json_begin("best", '{');
        json_int("trial", order[0] + 1);
        json_float(best->metric, best->best);
        json_text("folder", sweep_trial_folder(s, order[0], path));
        json_text("command", again.bytes);
        json_end('}');
    } else {
        json_null("best");
    }
    tn_snprint(path, sizeof path, "%s/trials.csv", s->folder);
    json_text("table", path);
    json_end('}');
    report_text_drop(&again);
    return TN_OK;
}

tn_status sweep_answer(const sweep *s)
{
    int64_t *order = in_order(s);
    tn_status status = order == NULL ? TN_ERR_MEMORY
                       : tool_json   ? print_json(s, order)
                                     : print_text(s, order);

    tn_free(order);
    return status;
}
