/* SPDX-License-Identifier: MIT
 *
 * tenon report RUN RUN...: compares runs of tenon train: their best metrics, the settings that
 * differ, and a page with the curves of all of them. It only reads the folders of the runs. */
#include "compare.h"
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const compare_column compare_columns[COMPARE_COLUMNS] = {
    { "loss/train", "loss", false },
    { "loss/validation", "val_loss", false },
    { "accuracy/validation", "val_accuracy", true },
    { "top5/validation", "val_top5", true },
    { "f1/validation", "val_f1", true },
    { "auc/validation", "val_auc", true },
};

static const char standard_page[] = "comparison.html";
static const char *wanted_page = standard_page;

static bool take_out(const char *value)
{
    wanted_page = value;
    return value[0] != '\0';
}

/* ---- reading --------------------------------------------------------------------------------- */

static void drop_run(compare_run *one)
{
    for (int64_t i = 0; i < one->rows.epoch_count; i++)
        tn_free(one->rows.epochs[i].values);
    tn_free(one->rows.epochs);
    tn_free(one->rows.csv.path);
    report_series_drop(&one->rows.list);
    for (int i = 0; i < SETTINGS; i++)
        tn_free(one->settings[i]);
}

/* Names a run after the last part of its path, with a number if another one has this name. */
static void name_run(compare *all, int at)
{
    char *name = all->runs[at].name, *real = realpath(all->runs[at].folder, NULL);
    const char *path = real != NULL ? real : all->runs[at].folder, *last = strrchr(path, '/');
    int number = 1, i = 0;

    last = last != NULL && last[1] != '\0' ? last + 1 : path;
    tn_snprint(name, COMPARE_NAME, "%.40s", last);
    while (i < at)
        if (strcmp(all->runs[i].name, name) == 0) {
            tn_snprint(name, COMPARE_NAME, "%.40s (%d)", last, ++number);
            i = 0;
        } else {
            i++;
        }
    for (char *c = name; *c != '\0'; c++)
        *c = *c == '/' ? ' ' : *c;
    free(real);
}

/* Copies the settings out of the newest checkpoint, which has the weights, too. Without one they
 * are not known. */
static tn_status read_settings(compare_run *r)
{
    run of = { .folder = r->folder };
    char path[4400];
    uint64_t mark = tn_error_mark();
    tn_state *checkpoint = NULL;
    tn_value saved = tn_value_none();
    int64_t at = -1;
    tn_status status = TN_OK;

    if (save_newest(&of, path, sizeof path) >= 0)
        checkpoint = tn_checkpoint_read(path);
    if (checkpoint != NULL)
        at = tn_state_find(checkpoint, "value.settings");
    if (at >= 0)
        saved = tn_state_value(checkpoint, at);
    r->known = saved.kind == TN_VALUE_DICT;
    tn_error_restore(mark);
    for (int i = 0; i < SETTINGS && r->known && status == TN_OK; i++) {
        const tn_value *text = tn_value_get(&saved, settings_row((setting)i)->name);

        if (text == NULL || text->kind != TN_VALUE_STRING)
            continue;
        r->settings[i] = tn_strdup(text->as.s);
        status = r->settings[i] != NULL ? TN_OK : TN_ERR_MEMORY;
    }
    tn_state_drop(checkpoint);
    return status;
}

static bool is_better(int column, double value, double than)
{
    return compare_columns[column].more ? value > than : value < than;
}

static compare_best find_best(const compare_run *one, int column)
{
    const report_series *s = report_series_find(&one->rows.list, compare_columns[column].scalar);
    compare_best best = { NAN, 0 };
    int64_t step = -1;

    for (int64_t i = 0; s != NULL && i < s->count; i++)
        if (isnan(best.value) || is_better(column, s->points[i].value, best.value)) {
            best.value = s->points[i].value;
            step = s->points[i].step;
        }
    for (int64_t i = 0; i < one->rows.epoch_count; i++)
        if (one->rows.epochs[i].step == step)
            best.epoch = one->rows.epochs[i].epoch;
    return best;
}

static tn_status read_run(compare *all, const char *folder)
{
    compare_run *r = &all->runs[all->count];
    tn_status status;

    r->folder = folder;
    name_run(all, all->count++);
    status = report_rows_load(&r->rows, folder);
    if (status == TN_OK)
        status = read_settings(r);
    for (int i = 0; i < COMPARE_COLUMNS; i++)
        r->best[i] = find_best(r, i);
    return status;
}

/* ---- what is compared ------------------------------------------------------------------------ */

bool compare_has(const compare *all, int column)
{
    for (int i = 0; i < all->count; i++)
        if (!isnan(all->runs[i].best[column].value))
            return true;
    return false;
}

bool compare_is_best(const compare *all, int column, double value)
{
    for (int i = 0; i < all->count; i++)
        if (is_better(column, all->runs[i].best[column].value, value))
            return false;
    return !isnan(value);
}

const char *compare_setting(const compare_run *one, int which)
{
    return !one->known ? "not known" : one->settings[which] != NULL ? one->settings[which] : "-";
}

int compare_known(const compare *all)
{
    int count = 0;

    for (int i = 0; i < all->count; i++)
        count += all->runs[i].known;
    return count;
}

bool compare_differs(const compare *all, int which)
{
    const compare_run *first = NULL;

    for (int i = 0; i < all->count; i++) {
        const compare_run *one = &all->runs[i];

        if (!one->known)
            continue;
        if (first != NULL &&
            strcmp(compare_setting(one, which), compare_setting(first, which)) != 0)
            return true;
        first = first != NULL ? first : one;
    }
    return false;
}

int64_t compare_steps(const compare_run *one)
{
    return one->rows.row_step > 0 ? one->rows.row_step : 0;
}

/* ---- as text --------------------------------------------------------------------------------- */

/* Adds a row of cells; the table ignores those that it has no columns for. */
static void add_row(table *t, const char *const *cells)
{
    table_row(t, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7],
              cells[8]);
}

static void print_best(const compare *all)
{
    char texts[COMPARE_COLUMNS + 2][48];
    const char *cells[COMPARE_COLUMNS + 3] = { "RUN", "EPOCHS", "STEPS" };
    table t = { .columns = 3 };

    for (int c = 0; c < COMPARE_COLUMNS; c++)
        if (compare_has(all, c)) {
            tn_snprint(texts[c], sizeof texts[c], "%s", compare_columns[c].title);
            for (char *at = texts[c]; *at != '\0'; at++)
                *at = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
            cells[t.columns++] = texts[c];
        }
    add_row(&t, cells);
    for (int i = 0; i < all->count; i++) {
        const compare_run *one = &all->runs[i];
        int at = 3;

        cells[0] = one->name;
        cells[1] = texts[COMPARE_COLUMNS];
        cells[2] = texts[COMPARE_COLUMNS + 1];
        tn_snprint(texts[COMPARE_COLUMNS], 48, "%lld", (long long)one->rows.epoch_count);
        tn_snprint(texts[COMPARE_COLUMNS + 1], 48, "%lld", (long long)compare_steps(one));
        for (int c = 0; c < COMPARE_COLUMNS; c++) {
            compare_best best = one->best[c];
            char number[32];

            if (!compare_has(all, c))
                continue;
            if (isnan(best.value))
                tn_snprint(texts[c], sizeof texts[c], "-");
            else
                tn_snprint(texts[c], sizeof texts[c], "%s%s",
                           progress_number(best.value, 4, number, sizeof number),
                           compare_is_best(all, c, best.value) ? " *" : "");
            cells[at++] = texts[c];
        }
        add_row(&t, cells);
    }
    table_print(&t);
}

static void print_settings(const compare *all)
{
    table t = { .columns = 3, .wraps = true };

    if (compare_known(all) < 2)
        return;
    putchar('\n');
    for (int s = 0; s < SETTINGS; s++)
        for (int i = 0; i < all->count && compare_differs(all, s); i++) {
            if (t.count == 0)
                table_row(&t, "SETTING", "RUN", "VALUE");
            table_row(&t, i == 0 ? settings_row((setting)s)->name : "", all->runs[i].name,
                      compare_setting(&all->runs[i], s));
        }
    if (t.count > 0)
        table_print(&t);
    else
        printf("the settings do not differ\n");
}

static void answer_text(const compare *all)
{
    print_best(all);
    print_settings(all);
    for (int i = 0; i < all->count; i++)
        if (!all->runs[i].known)
            printf("the settings of %s are not known: it has no checkpoint that can be read\n",
                   all->runs[i].name);
    printf("\n*: the best of all runs\nreport: %s\n", wanted_page);
}

static void answer_json(const compare *all)
{
    json_begin(NULL, '{');
    json_begin("runs", '[');
    for (int i = 0; i < all->count; i++) {
        const compare_run *one = &all->runs[i];

        json_begin(NULL, '{');
        json_text("name", one->name);
        json_text("folder", one->folder);
        json_int("epochs", one->rows.epoch_count);
        json_int("steps", compare_steps(one));
        json_begin("best", '{');
        for (int c = 0; c < COMPARE_COLUMNS; c++) {
            compare_best best = one->best[c];

            if (isnan(best.value))
                continue;
            json_begin(compare_columns[c].title, '{');
            json_float("value", best.value);
            json_int("epoch", best.epoch);
            json_end('}');
        }
        json_end('}');
        json_begin("settings", '{');
        for (int s = 0; s < SETTINGS; s++)
            if (one->known && compare_differs(all, s))
                json_text(settings_row((setting)s)->name, one->settings[s]);
        json_end('}');
        json_end('}');
    }
    json_end(']');
    json_text("report", wanted_page);
    json_end('}');
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Fails if the file is there and is not a page that this program wrote. */
static tn_status check_page(const char *path)
{
    report_text old = { .status = TN_OK };
    tn_status status = report_file_read(path, &old);

    if (status == TN_OK && old.size > 0 && strstr(old.bytes, "<h1>Comparison of ") == NULL &&
        strstr(old.bytes, "<h1 class=\"long\">Comparison of ") == NULL)
        status = tn_fail(TN_ERR_REFUSED,
                         "--out: %s is there and no comparison; expected another file", path);
    report_text_drop(&old);
    return status;
}

static int run_report(int count, char **arguments, bool json)
{
    static compare all;
    tn_status status = check_page(wanted_page);

    for (int i = 0; i < count && status == TN_OK; i++)
        status = read_run(&all, arguments[i]);
    if (status == TN_OK)
        status = compare_page(&all, wanted_page);
    if (status == TN_OK && !json)
        answer_text(&all);
    else if (status == TN_OK)
        answer_json(&all);
    for (int i = 0; i < all.count; i++)
        drop_run(&all.runs[i]);
    return status == TN_OK ? EXIT_OK : tool_fail(NULL);
}

static const tool_option options[] = {
    { "--out", "FILE", "the page; default: comparison.html", take_out }, { NULL, NULL, NULL, NULL }
};

const command report_command = {
    .name = "report",
    .arguments = "RUN RUN...",
    .summary = "compares runs of tenon train",
    .help =
        "Writes a page with the curves of 2 to 6 runs in the same charts, and tables of their best "
        "metrics and of the settings that differ, which it also prints. RUN is the folder of a run "
        "of `tenon train` or `tenon finetune`, such as a trial of `tenon sweep`. It may still go "
        "on; it is only read.",
    .least = 2,
    .most = COMPARE_RUNS,
    .run = run_report,
    .table = options,
};
