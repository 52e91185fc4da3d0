/* SPDX-License-Identifier: MIT
 *
 * Continues a run: what its checkpoint keeps, and what must not differ. */
#include "report_private.h"
#include "train.h"

#include <string.h>

enum { LINES_MOST = 20 };

/* ---- keeping --------------------------------------------------------------------------------- */

static tn_status keep_settings(run *r)
{
    tn_value list[2 * SETTINGS];
    uint32_t count = 0;

    for (int i = 0; i < SETTINGS; i++) {
        const setting_row *row = settings_row((setting)i);

        if (!(row->flags & (SETTING_SAME | SETTING_KEPT)) ||
            setting_text(r->set, (setting)i) == NULL)
            continue;
        list[count++] = tn_value_string(row->name);
        list[count++] = tn_value_string(setting_text(r->set, (setting)i));
    }
    return tn_checkpoint_set(r->checkpoint, "settings", tn_value_dict(list, count));
}

tn_status resume_keep(run *r)
{
    char scaler[256] = "";
    const char *transform = fit_text(r);
    report_text classes = { .status = TN_OK };
    tn_status status = r->classes > 0 ? save_class_names(r, &classes) : TN_OK;
    const struct {
        const char *name;
        tn_value value;
    } rows[] = {
        { "command", tn_value_string(r->set->of == OF_FINETUNE ? "finetune" : "train") },
        { "spec", r->spec != NULL ? tn_value_string(r->spec) : tn_value_none() },
        { "program", r->program != NULL ? tn_value_string(r->program) : tn_value_none() },
        { "head", r->head != NULL ? tn_value_string(r->head) : tn_value_none() },
        { "step", tn_value_int(r->step) },
        { "samples", tn_value_int(r->now.samples) },
        { "compared", tn_value_int(r->now.compared) },
        { "right", tn_value_int(r->now.right) },
        { "loss", tn_value_float(r->now.loss) },
        { "skipped", tn_value_int(r->skipped + tn_loader_skipped(r->loader)) },
        { "best", r->has_best ? tn_value_float(r->best) : tn_value_none() },
        { "best_by", tn_value_string(metric_names[r->best_by]) },
        { "best_epoch", tn_value_int(r->best_epoch) },
        { "best_step", tn_value_int(r->best_step) },
        { "scored", tn_value_int(r->scored) },
        { "scaler", r->scaler != NULL ? tn_value_string(scaler) : tn_value_none() },
        /* for commands that open the checkpoint as a model */
        { "classes", classes.bytes != NULL ? tn_value_string(classes.bytes) : tn_value_none() },
        { "transform", transform != NULL ? tn_value_string(transform) : tn_value_none() },
    };

    if (status == TN_OK)
        status = keep_settings(r);

    if (r->scaler != NULL)
        tn_grad_scaler_state(r->scaler, scaler, sizeof scaler);

    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == TN_OK; i++)
        status = tn_checkpoint_set(r->checkpoint, rows[i].name, rows[i].value);
    report_text_drop(&classes);
    return status;
}

/* ---- settings -------------------------------------------------------------------------------- */

static tn_value value_of(const tn_state *state, const char *name)
{
    int64_t at = tn_state_find(state, name);

    return at >= 0 ? tn_state_value(state, at) : tn_value_none();
}

/* Returns the text of a setting in a checkpoint, NULL if it has none. */
static const char *saved_text(const tn_value *saved, const char *name)
{
    const tn_value *text = tn_value_get(saved, name);

    return text != NULL && text->kind == TN_VALUE_STRING ? text->as.s : NULL;
}

/* Takes over a setting of the checkpoint. Returns true after printing a line if the user gave
 * another one. */
static bool take_setting(run *r, setting which, const char *text, bool first, tn_status *status)
{
    const setting_row *row = settings_row(which);
    const char *here = setting_text(r->set, which);

    if (row->flags & SETTING_SAME) {
        if (setting_given(r->set, which) && (text == NULL || strcmp(text, here) != 0)) {
            if (first)
                fprintf(stderr, "tenon: the run in %s has other settings:\n", r->folder);
            fprintf(stderr, "  --%s: %s; here %s\n", row->name, text != NULL ? text : "not given",
                    here);
            return true;
        }
        if (text == NULL && !setting_given(r->set, which)) {
            tn_free(r->set->text[which]);
            r->set->text[which] = NULL;
        }
    }
    if (text != NULL)
        *status = settings_put(r->set, which, text, FROM_CHECKPOINT);
    return false;
}

static tn_status take_settings(run *r)
{
    tn_value saved = value_of(r->resumed, "value.settings"),
             kind = value_of(r->resumed, "value.command");
    int64_t different = 0;
    tn_status status = TN_OK;

    if (saved.kind != TN_VALUE_DICT || kind.kind != TN_VALUE_STRING)
        return tn_fail(TN_ERR_FORMAT, "checkpoint: it has no settings, so tenon train did not "
                                      "write it; expected the folder of a run of tenon train");
    if (strcmp(kind.as.s, r->set->of == OF_FINETUNE ? "finetune" : "train") != 0)
        return tn_fail(
            TN_ERR_VALUE,
            "--resume %s: wrong command, got tenon %s; expected tenon %s, which wrote it",
            r->folder, r->set->of == OF_FINETUNE ? "finetune" : "train", kind.as.s);
    for (int i = 0; i < SETTINGS && status == TN_OK; i++) {
        const setting_row *row = settings_row((setting)i);

        if (!(row->flags & (SETTING_SAME | SETTING_KEPT)))
            continue;
        /* A model may be written in another way; models are compared once they are made. */
        if (i == SET_MODEL) {
            const char *text = saved_text(&saved, row->name),
                       *here = setting_text(r->set, SET_MODEL);

            r->same_model = !setting_given(r->set, SET_MODEL) || text == NULL ||
                            strcmp(text, here) == 0;
            if (!r->same_model)
                continue;
        }
        different += take_setting(r, (setting)i, saved_text(&saved, row->name), different == 0,
                                  &status);
    }
    if (status == TN_OK && different > 0)
        status = tn_fail(TN_ERR_VALUE,
                         "--resume: %lld setting%s differ%s from the run in %s; expected the same, "
                         "or another folder",
                         (long long)different, different == 1 ? "" : "s", different == 1 ? "s" : "",
                         r->folder);
    return status;
}

tn_status resume_read(run *r)
{
    char path[4200];
    int64_t step = save_newest(r, path, sizeof path);

    if (step < 0 && save_has_best(r, path, sizeof path))
        return tn_fail(TN_ERR_IO,
                       "--resume: %s has no checkpoint of a step, but %s; expected that copied as "
                       "step-00000000.checkpoint, to continue from it; or --model with its "
                       "path and another --out, to begin a new run with its weights",
                       r->folder, path);
    if (step < 0) {
        if (setting_text(r->set, SET_MODEL) == NULL || setting_text(r->set, SET_DATA) == NULL)
            return tn_fail(TN_ERR_IO, "--resume: %s has no checkpoint; expected a folder of a run",
                           r->folder);
        progress_say(r->progress, "%s has no checkpoint yet; begins a new run", r->folder);
        return TN_OK;
    }
    r->resumed = tn_checkpoint_read(path);
    if (r->resumed == NULL && tn_error_last_code() == TN_ERR_FORMAT)
        return tn_error_prefix("damaged checkpoint, remove it to continue from the one before: ");
    if (r->resumed == NULL)
        return tn_error_last_code();
    return take_settings(r);
}

/* ---- the model ------------------------------------------------------------------------------- */

static void shape_text(tn_tensor *tensor, char *out, size_t size)
{
    tn_ints shape = tn_tensor_shape(tensor);
    size_t used = 0;

    out[0] = '\0';
    for (int64_t i = 0; i < shape.count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld", i > 0 ? ", " : "",
                                 (long long)shape.at[i]);
}

/* Prints a line for each entry that one of two states lacks, or that has another shape. Returns
 * their number. */
static int64_t print_differences(const tn_state *theirs, const tn_state *ours)
{
    int64_t different = 0;
    char one[160], other[160];

    for (int pass = 0; pass < 2; pass++) {
        const tn_state *from = pass == 0 ? theirs : ours, *to = pass == 0 ? ours : theirs;

        for (int64_t i = 0; i < tn_state_count(from); i++) {
            const char *name = tn_state_name(from, i);
            int64_t at = tn_state_find(to, name);
            tn_value a = tn_state_value(from, i);
            tn_value b = at >= 0 ? tn_state_value(to, at) : tn_value_none();
            bool tensors = a.kind == TN_VALUE_TENSOR && b.kind == TN_VALUE_TENSOR;

            one[0] = other[0] = '\0';
            if (tensors) {
                shape_text(a.as.tensor, one, sizeof one);
                shape_text(b.as.tensor, other, sizeof other);
            }
            if (at >= 0 && (pass == 1 || strcmp(one, other) == 0))
                continue;
            if (different++ >= LINES_MOST)
                continue;
            if (at < 0)
                fprintf(stderr, "  %s: only %s\n", name,
                        pass == 0 ? "in the checkpoint" : "in the model here");
            else
                fprintf(stderr, "  %s: [%s] in the checkpoint; here [%s]\n", name, one, other);
        }
    }
    if (different > LINES_MOST)
        fprintf(stderr, "  and %lld more\n", (long long)(different - LINES_MOST));
    return different;
}

/* Returns whether a value of the checkpoint is this text; both may be absent. */
static bool is_saved(const run *r, const char *name, const char *text)
{
    tn_value value = value_of(r->resumed, name);

    return value.kind == TN_VALUE_STRING ? text != NULL && strcmp(value.as.s, text) == 0
                                         : text == NULL;
}

tn_status resume_compare(run *r)
{
    tn_value spec = value_of(r->resumed, "value.spec");
    tn_state *theirs = tn_state_part(r->resumed, "model."), *ours = tn_module_state(r->model);
    int64_t different = 0;
    bool same = is_saved(r, "value.spec", r->spec) && is_saved(r, "value.program", r->program);

    /* A program has the tensors of its file, which can have other shapes than those of another file
     * with the same program. */
    if (same && (r->program == NULL || build_is_alike(r->model, theirs))) {
        tn_state_drop(theirs);
        tn_state_drop(ours);
        return TN_OK;
    }
    fprintf(stderr, "tenon: the run in %s has another model:\n  %s\nhere:\n  %s\n", r->folder,
            spec.kind == TN_VALUE_STRING ? spec.as.s : "a program of another framework",
            r->spec != NULL ? r->spec : "a program of another framework");
    if (theirs != NULL && ours != NULL)
        different = print_differences(theirs, ours);
    tn_state_drop(theirs);
    tn_state_drop(ours);
    return tn_fail(TN_ERR_VALUE,
                   "--resume: another model than that of the run in %s, %lld tensors differ; "
                   "expected the same model, or another folder",
                   r->folder, (long long)different);
}

/* ---- restoring ------------------------------------------------------------------------------- */

static double saved_number(const run *r, const char *name)
{
    tn_value value = tn_checkpoint_get(r->checkpoint, name);

    return value.kind == TN_VALUE_FLOAT ? value.as.f
           : value.kind == TN_VALUE_INT ? (double)value.as.i
                                        : 0;
}

static int64_t saved_count(const run *r, const char *name)
{
    tn_value value = tn_checkpoint_get(r->checkpoint, name);

    return value.kind == TN_VALUE_INT ? value.as.i : 0;
}

tn_status resume_restore(run *r)
{
    tn_status status = ranks_resume(r);
    tn_value by;

    if (status == TN_OK)
        status = tn_checkpoint_restore(r->checkpoint, r->resumed);
    if (status != TN_OK)
        return status;
    tn_state_drop(r->resumed);
    r->resumed = NULL;
    r->step = saved_count(r, "step");
    r->now = (tally){ saved_number(r, "loss"), saved_count(r, "samples"),
                      saved_count(r, "compared"), saved_count(r, "right") };
    r->skipped = saved_count(r, "skipped");
    r->has_best = tn_checkpoint_get(r->checkpoint, "best").kind == TN_VALUE_FLOAT;
    r->best = saved_number(r, "best");
    by = tn_checkpoint_get(r->checkpoint, "best_by");
    r->best_by = by.kind == TN_VALUE_STRING ? metric_find(by.as.s) : METRIC_LOSS;
    r->best_by = r->best_by < METRIC_COUNT ? r->best_by : METRIC_LOSS;
    r->best_epoch = saved_count(r, "best_epoch");
    r->best_step = saved_count(r, "best_step");
    r->scored = saved_count(r, "scored");
    if (r->scaler != NULL && tn_checkpoint_get(r->checkpoint, "scaler").kind == TN_VALUE_STRING)
        status = tn_grad_scaler_set_state(r->scaler,
                                          tn_checkpoint_get(r->checkpoint, "scaler").as.s);
    return status;
}
