/* SPDX-License-Identifier: MIT
 *
 * tenon train and tenon finetune: train a network without a program. */
#include "train.h"

#include <string.h>
#include <unistd.h>

enum { SAID_AT_END = 6 };

/* ---- a run ----------------------------------------------------------------------------------- */

static void run_free(run *r)
{
    ranks_leave(r);
    tn_checkpoint_drop(r->checkpoint);
    tn_loader_drop(r->loader);
    tn_scheduler_drop(r->scheduler);
    tn_step_drop(r->whole);
    tn_module_drop(r->loss);
    tn_grad_scaler_drop(r->scaler);
    tn_optimizer_drop(r->optimizer);
    tn_module_drop(r->average);
    tn_module_drop(r->criterion);
    tn_module_drop(r->model);
    tn_dataset_drop(r->data);
    tn_dataset_drop(r->val);
    tn_dataset_drop(r->names);
    tn_state_drop(r->resumed);
    tn_free(r->learning);
    tn_free(r->spec);
    tn_free(r->program);
    tn_free(r->fitted);
    tn_free(r->head);
    progress_drop(r->progress);
    if (r->lock >= 0)
        close(r->lock);
}

/* Creates r->progress again, after the number of epochs is known. */
static tn_status begin_progress(run *r)
{
    /* with --json, standard output has the answer alone */
    const progress_setup setup = { .to = tool_json ? stderr : stdout,
                                   .style = PROGRESS_AUTO,
                                   .epochs = setting_count(r->set, SET_EPOCHS) };

    progress_drop(r->progress);
    r->progress = NULL;
    if (!ranks_first(r))
        return TN_OK;
    r->progress = progress_new(&setup);
    return r->progress != NULL ? TN_OK : tn_error_last_code();
}

static tn_status choose_device(const run *r)
{
    const char *device = setting_text(r->set, SET_DEVICE);

    return device != NULL ? tn_set_default_device(device) : TN_OK;
}

/* Opens what a run needs. The search for a learning rate has no folder. */
static tn_status begin(run *r)
{
    bool find = setting_on(r->set, SET_FIND_LR);
    tn_status status = choose_device(r);

    if (status == TN_OK)
        status = ranks_join(r);
    if (status == TN_OK)
        status = begin_progress(r);
    if (status == TN_OK && !find && ranks_first(r))
        status = save_begin(r);
    if (status == TN_OK && setting_on(r->set, SET_RESUME))
        status = resume_read(r);
    if (status == TN_OK)
        status = ranks_check(r);
    if (status == TN_OK)
        status = begin_progress(r);
    if (status == TN_OK)
        status = choose_device(r);
    if (status == TN_OK)
        status = build_all(r);
    if (status == TN_OK && r->resumed != NULL)
        status = resume_restore(r);
    if (status == TN_OK)
        status = ranks_wrap(r);
    return status == TN_OK && !find && ranks_first(r) ? record_open(r) : status;
}

static int64_t elements(tn_tensor *const *tensors, int64_t count)
{
    int64_t sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += tn_tensor_numel(tensors[i]);
    return sum;
}

static void say_beginning(const run *r)
{
    const tn_device *device = tn_default_device();
    tn_device_info info = { TN_HEAD(tn_device_info), .name = "" };

    tn_device_describe(device, &info);
    progress_say(r->progress, "%s on %s (%s)", tn_module_type(r->model), tn_device_name(device),
                 info.name);
    progress_say(r->progress, "%lld samples, %lld for validation; %lld trainable parameters",
                 (long long)tn_dataset_count(r->data),
                 (long long)(r->val != NULL ? tn_dataset_count(r->val) : 0),
                 (long long)elements(r->learning, r->n_learning));
    if (r->wrapped != NULL)
        progress_say(r->progress, "%d process%s, %lld shards", (int)r->ranks,
                     r->ranks == 1 ? "" : "es", (long long)(r->shards > 0 ? r->shards : r->ranks));
    if (setting_text(r->set, SET_TRANSFORM) != NULL && r->set->origin[SET_TRANSFORM] == FROM_TABLE)
        progress_say(r->progress, "transform: %s, from the file of the model",
                     setting_text(r->set, SET_TRANSFORM));
    if (r->head != NULL)
        progress_say(r->progress, "head: %s",
                     r->head[0] != '\0' ? r->head : tn_module_type(r->model));
    if (r->step > 0)
        progress_say(r->progress, "continues after step %lld, in epoch %lld", (long long)r->step,
                     (long long)tn_loader_epoch(r->loader) + 1);
}

/* Returns the name, without extension, of the file with the weights that a user wants: the best
 * ones on the validation data, if there is any. */
static const char *best_file(const run *r)
{
    return r->has_best && r->val != NULL ? "best" : "model";
}

static void say_best(const run *r)
{
    char loss[32];

    if (r->best_by != METRIC_LOSS)
        progress_say(r->progress, "best: epoch %lld, val_%s %.4f", (long long)r->best_epoch,
                     metric_names[r->best_by], r->best);
    else
        progress_say(r->progress, "best: epoch %lld, val_loss %s", (long long)r->best_epoch,
                     progress_number(-r->best, 4, loss, sizeof loss));
}

static void say_end(run *r)
{
    int64_t skipped = r->skipped + tn_loader_skipped(r->loader);

    if (skipped > 0)
        progress_say(r->progress, "left out %lld damaged sample%s, counted in each epoch",
                     (long long)skipped, skipped == 1 ? "" : "s");
    if (r->stopped_early)
        progress_say(r->progress, "stopped early: no better result in %lld epoch%s",
                     (long long)(tn_loader_epoch(r->loader) - r->best_epoch),
                     tn_loader_epoch(r->loader) - r->best_epoch == 1 ? "" : "s");
    if (r->has_best && r->val != NULL) {
        say_best(r);
        progress_say(r->progress, "weights: %s/best%s; those of the end: %s/model%s", r->folder,
                     save_extension(r), r->folder, save_extension(r));
    } else {
        progress_say(r->progress, "weights: %s/model%s", r->folder, save_extension(r));
    }
    progress_say(r->progress, "report: %s/report.html", r->folder);
}

static void json_path(const run *r, const char *key, const char *name, const char *extension)
{
    char path[4400];

    tn_snprint(path, sizeof path, "%s/%s%s", r->folder, name, extension);
    json_text(key, path);
}

/* Only a run that is done has written its weights. */
static void answer_json(const run *r, const char *outcome, bool done)
{
    json_begin(NULL, '{');
    json_text("outcome", outcome);
    json_int("epochs", tn_loader_epoch(r->loader));
    json_int("steps", r->step);
    json_int("skipped", r->skipped + tn_loader_skipped(r->loader));
    if (r->has_best) {
        json_begin("best", '{');
        json_int("epoch", r->best_epoch);
        json_int("step", r->best_step);
        char name[32];

        snprintf(name, sizeof name, "%s%s", r->val != NULL ? "val_" : "", metric_names[r->best_by]);
        json_float(name, r->best_by != METRIC_LOSS ? r->best : -r->best);
        json_end('}');
    }
    if (done) {
        json_path(r, "weights", best_file(r), save_extension(r));
        json_path(r, "last_weights", "model", save_extension(r));
    }
    json_path(r, "metrics", "metrics", ".csv");
    json_path(r, "report", "report", ".html");
    json_end('}');
}

enum { CHART_COLUMNS = 71 }; /* a line of a chart: numbers, an axis and 60 columns */

/* Returns how many lines a chart may have, 0 in a narrow terminal: the epochs, the lines of
 * say_end() and that of the shell stay on the screen. -1: any number. */
static int chart_room(const run *r)
{
    int room = progress_room(r->progress);

    if (tool_width() < CHART_COLUMNS)
        return 0;
    return room < 0 ? -1 : room > SAID_AT_END ? room - SAID_AT_END : 0;
}

/* Trains, and ends the report. Returns the exit status. */
static int train(run *r)
{
    tn_status status, closed, charted = TN_OK;
    char outcome[1100] = "finished";

    if (ranks_first(r))
        say_beginning(r);
    status = epochs_run(r);
    progress_clear(r->progress);
    if (status == TN_ERR_CANCELLED)
        snprintf(outcome, sizeof outcome, "stopped by the user");
    else if (status != TN_OK)
        snprintf(outcome, sizeof outcome, "failed: %s", tn_error_last()->message);
    else if (r->stopped_early)
        snprintf(outcome, sizeof outcome, "finished early");
    if (status != TN_OK && status != TN_ERR_CANCELLED)
        tool_refuse(status, tn_error_last()->message);
    /* The chart is for people; elsewhere the page has it. */
    if (status == TN_OK && !tool_json && r->report != NULL && isatty(STDOUT_FILENO))
        charted = report_chart(r->report, "loss/train", chart_room(r));
    closed = r->report != NULL ? report_close(r->report, outcome) : TN_OK;
    closed = closed != TN_OK ? closed : charted;
    if (closed != TN_OK && (status == TN_OK || status == TN_ERR_CANCELLED))
        return tool_refuse(closed, tn_error_last()->message);
    if (tool_json && ranks_first(r) && (status == TN_OK || status == TN_ERR_CANCELLED))
        answer_json(r, outcome, status == TN_OK);
    if (status == TN_ERR_CANCELLED) {
        progress_say(r->progress,
                     "stopped after step %lld; the checkpoint is saved, --resume continues",
                     (long long)r->step);
        return 128 + ranks_asked(r);
    }
    if (status != TN_OK)
        return EXIT_NOT_OK;
    if (ranks_first(r))
        say_end(r);
    return EXIT_OK;
}

/* ---- the commands ---------------------------------------------------------------------------- */

static int run_with(int count, char **arguments, setting_command of)
{
    const char *name = of == OF_FINETUNE ? "finetune" : "train";
    settings set;
    run r = { .set = &set, .lock = -1 };
    int code = EXIT_NOT_OK;

    if (settings_init(&set, of) != TN_OK || settings_read(&set, count, arguments) != TN_OK) {
        fprintf(stderr, "tenon %s: %s; `tenon %s --help` lists the options\n", name,
                tn_error_last()->message, name);
        settings_free(&set);
        return EXIT_USAGE;
    }
    tool_json = set.json;
    r.folder = setting_text(&set, SET_OUT);
    signals_watch();
    left_out_watch();
    if (begin(&r) != TN_OK)
        tool_refuse(tn_error_last_code(), tn_error_last()->message);
    else
        code = setting_on(&set, SET_FIND_LR) ? find_lr(&r) : train(&r);
    run_free(&r);
    left_out_end();
    settings_free(&set);
    return code;
}

static int run_train(int count, char **arguments, bool only_help)
{
    if (only_help)
        return settings_help(OF_TRAIN), EXIT_OK;
    return run_with(count, arguments, OF_TRAIN);
}

static int run_finetune(int count, char **arguments, bool only_help)
{
    if (only_help)
        return settings_help(OF_FINETUNE), EXIT_OK;
    return run_with(count, arguments, OF_FINETUNE);
}

const command train_command = {
    .name = "train",
    .arguments = "MODEL --data SPEC --out DIR [OPTION]...",
    .summary = "trains a network",
    .help =
        "Trains a network on a dataset. DIR gets model.safetensors (the weights at the end), "
        "best.safetensors (those that were best on the validation data; of a program of PyTorch "
        "model.pt2 and best.pt2, of ONNX model.onnx and best.onnx), checkpoints, metrics.csv, "
        "files for TensorBoard and report.html. "
        "On a terminal one line shows rate, "
        "time left, loss and metrics; elsewhere each epoch is a line.\n\nThe first SIGINT, "
        "SIGTERM or SIGHUP ends the step, saves a checkpoint and exits with status 130, 143 or "
        "129; a second SIGINT or SIGTERM ends the process at once. A run that is continued with "
        "--resume, also after a crash, computes the same weights to the bit.\n\n--find-lr does not "
        "train: it looks for a learning rate, and changes neither the model nor DIR.\n\n`tenon "
        "info NAME` prints the "
        "options of a layer, dataset, transform, optimizer or scheduler.",
    .run = run_train,
    .options = TOOL_OWN_OPTIONS,
};

const command finetune_command = {
    .name = "finetune",
    .arguments = "MODEL --data SPEC --out DIR [OPTION]...",
    .summary = "trains a new head of a trained network",
    .help =
        "Takes a network with weights (a file with its spec, a program of PyTorch, or a spec and "
        "--init FILE), replaces its head, by default the last Linear, by a new one for the classes "
        "of the dataset, freezes all other parameters except those of --unfreeze, and trains as "
        "`tenon train` does, with the same files in DIR. Layers that are frozen are called in "
        "evaluation mode.",
    .run = run_finetune,
    .options = TOOL_OWN_OPTIONS,
};
