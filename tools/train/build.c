/* SPDX-License-Identifier: MIT
 *
 * Makes the objects of a training from the settings: data, model, optimizer, loader. */
#include "train.h"

#include <math.h>
#include <string.h>

#include "model.h"
#include "program.h"
#include "work.h"

/* The loss of datasets with classes. */
static const char class_loss[] = "CrossEntropyLoss()";

/* ---- data ------------------------------------------------------------------------------------ */

/* Divides the samples at random. The seed alone decides. */
static tn_status split(run *r, tn_dataset *all, tn_dataset **train, tn_dataset **val)
{
    int64_t count = tn_dataset_count(all), *order = tn_malloc((size_t)(count + 1) * sizeof *order);
    int64_t least = (int64_t)llround((double)count * setting_number(r->set, SET_VAL_SPLIT));
    tn_random_key key = { (uint64_t)setting_count(r->set, SET_SEED), 0 };

    if (order == NULL)
        return TN_ERR_MEMORY;
    if (least < 1 || least >= count) {
        tn_free(order);
        if (count < 2)
            return tn_fail(TN_ERR_VALUE,
                           "--val-split: the data has %lld sample; expected two or more, one of "
                           "them for the training, or --val with a dataset",
                           (long long)count);
        return tn_fail(TN_ERR_VALUE, "--val-split: %s of %lld samples is %lld; expected 1 to %lld",
                       setting_text(r->set, SET_VAL_SPLIT), (long long)count, (long long)least,
                       (long long)count - 1);
    }
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = tn_random_below(&key, i + 1), kept = order[i];

        order[i] = order[j];
        order[j] = kept;
    }
    *val = tn_dataset_subset(all, (tn_ints){ order, least });
    *train = *val != NULL ? tn_dataset_subset(all, (tn_ints){ order + least, count - least })
                          : NULL;
    tn_free(order);
    return *train != NULL ? TN_OK : tn_error_last_code();
}

/* Replaces a dataset by one with a transform, which is a setting. */
static tn_status transform(const run *r, tn_dataset **data, setting which)
{
    const char *text = which == SET_TRANSFORM ? fit_text(r) : setting_text(r->set, which);
    tn_dataset *made;

    if (text == NULL || *data == NULL)
        return TN_OK;
    made = tn_dataset_transform(*data, text);
    if (made == NULL)
        return tn_error_prefix("--%s: ", settings_row(which)->name);
    tn_dataset_drop(*data);
    *data = made;
    return TN_OK;
}

static tn_dataset *open_data(const run *r, setting which)
{
    tn_dataset *data = work_dataset(setting_text(r->set, which));

    if (data == NULL)
        tn_error_prefix("--%s: ", settings_row(which)->name);
    return data;
}

enum { LIST_SIZE = 360 };

/* Writes the classes of a dataset: their number and the names, as many as there is space for. */
static const char *list_classes(const tn_dataset *data, char out[LIST_SIZE])
{
    int64_t count = tn_dataset_classes(data);
    int64_t used = tn_snprint(out, LIST_SIZE, "%lld", (long long)count);

    for (int64_t i = 0; i < count && tn_dataset_class_name(data, i) != NULL; i++) {
        const char *name = tn_dataset_class_name(data, i), *before = i == 0 ? " (" : ", ";

        if (used + (int64_t)strlen(name) > LIST_SIZE - 40) {
            tn_snprint(out + used, (size_t)(LIST_SIZE - used), "%sand %lld more)", before,
                       (long long)(count - i));
            break;
        }
        used += tn_snprint(out + used, (size_t)(LIST_SIZE - used), "%s%s%s", before, name,
                           i + 1 == count ? ")" : "");
    }
    return out;
}

/* Compares two names of class `index`. A class without a name is not compared, except with a name
 * that is another number: labels from 1 on are no labels from 0 on. */
static bool same_name(const char *one, const char *other, int64_t index)
{
    const char *only = one != NULL ? one : other;
    int64_t number;

    if (one != NULL && other != NULL)
        return strcmp(one, other) == 0;
    return only == NULL || !tn_read_int(only, &number) || number == index;
}

/* Compares the classes of the validation with those of the training: the same number, and the same
 * names where both have names. Names in another order would shift every label. */
static tn_status compare_classes(const run *r)
{
    char ours[LIST_SIZE], theirs[LIST_SIZE];
    int64_t count = tn_dataset_classes(r->val), differs = count == r->classes ? -1 : 0;

    for (int64_t i = 0; i < count && differs < 0; i++) {
        const char *one = tn_dataset_class_name(r->data, i),
                   *other = tn_dataset_class_name(r->val, i);

        if (!same_name(one, other, i))
            differs = i;
    }
    if (differs < 0)
        return TN_OK;
    list_classes(r->data, ours);
    list_classes(r->val, theirs);
    if (count != r->classes)
        return tn_fail(TN_ERR_VALUE,
                       "--val: another number of classes, got %s; expected those of --data: %s",
                       theirs, ours);
    return tn_fail(TN_ERR_VALUE,
                   "--val: class %lld has another name, got %q; expected %q; the classes are %s; "
                   "those of --data are %s",
                   (long long)differs, tn_dataset_class_name(r->val, differs),
                   tn_dataset_class_name(r->data, differs), theirs, ours);
}

static tn_status build_data(run *r)
{
    tn_dataset *all = open_data(r, SET_DATA);
    tn_status status = all != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK && tn_dataset_count(all) == 0)
        status = tn_fail(TN_ERR_VALUE, "--data: the dataset has no samples; expected one or more");
    if (status == TN_OK && setting_text(r->set, SET_VAL_SPLIT) != NULL)
        status = split(r, all, &r->data, &r->val);
    else if (status == TN_OK)
        r->data = tn_dataset_keep(all);
    tn_dataset_drop(all);
    if (status == TN_OK && setting_text(r->set, SET_VAL) != NULL) {
        r->val = open_data(r, SET_VAL);
        if (r->val == NULL)
            return tn_error_last_code();
    }
    if (status == TN_OK)
        r->classes = tn_dataset_classes(r->data);
    return status == TN_OK && r->val != NULL ? compare_classes(r) : status;
}

/* Refuses a --best that no epoch could have with this data. */
static tn_status build_best(const run *r)
{
    const char *asked = setting_text(r->set, SET_BEST);
    metric by = asked != NULL ? metric_find(asked) : METRIC_LOSS;

    if (by == METRIC_LOSS)
        return TN_OK;
    if (r->classes == 0)
        return tn_fail(TN_ERR_VALUE,
                       "--best %s: the data has no classes; expected data with classes, or "
                       "--best loss",
                       asked);
    if (r->val == NULL && by != METRIC_ACCURACY)
        return tn_fail(TN_ERR_VALUE,
                       "--best %s: a training without validation data has none; expected --val or "
                       "--val-split, or --best loss",
                       asked);
    if (by == METRIC_TOP5 && r->classes <= 5)
        return tn_fail(TN_ERR_VALUE,
                       "--best top5: the data has %lld classes; expected more than 5, or --best "
                       "accuracy",
                       (long long)r->classes);
    return TN_OK;
}

/* After the model, whose file may say how its inputs are made. */
static tn_status build_transforms(run *r)
{
    tn_status status = fit_transform(r);

    if (status == TN_OK)
        status = transform(r, &r->data, SET_AUGMENT);
    if (status == TN_OK)
        status = transform(r, &r->data, SET_TRANSFORM);
    r->names = work_names(r->val);
    return status == TN_OK ? transform(r, &r->val, SET_TRANSFORM) : status;
}

/* ---- the text of a model --------------------------------------------------------------------- */

bool build_is_alike(tn_module *module, const tn_state *wanted)
{
    tn_state *state = module != NULL ? tn_module_state(module) : NULL;
    bool right = state != NULL && tn_state_count(state) == tn_state_count(wanted);

    for (int64_t i = 0; right && i < tn_state_count(state); i++) {
        tn_value one = tn_state_value(state, i), other = tn_state_value(wanted, i);

        right = strcmp(tn_state_name(state, i), tn_state_name(wanted, i)) == 0 &&
                one.kind == other.kind;
        if (right && one.kind == TN_VALUE_TENSOR) {
            tn_ints a = tn_tensor_shape(one.as.tensor), b = tn_tensor_shape(other.as.tensor);

            right = a.count == b.count &&
                    (a.count == 0 || memcmp(a.at, b.at, (size_t)a.count * sizeof *a.at) == 0);
        }
    }
    tn_state_drop(state);
    return right;
}

/* Returns whether the module of a text has the same entries, with the same shapes. */
static bool text_is_right(const char *text, const tn_state *wanted)
{
    uint64_t mark = tn_error_mark();
    const tn_device *meta = tn_device_find("meta");
    tn_module *made = meta != NULL ? tn_module_parse_skip_init(meta, text) : NULL;
    bool right = build_is_alike(made, wanted);

    tn_module_drop(made);
    tn_error_restore(mark);
    return right;
}

static char *text_of(tn_module *module, int64_t (*write)(tn_module *, char *, size_t))
{
    int64_t length = write(module, NULL, 0);
    char *text = length >= 0 ? tn_malloc((size_t)length + 1) : NULL;

    if (text != NULL)
        write(module, text, (size_t)length + 1);
    return text;
}

char *build_spec(tn_module *module)
{
    tn_state *state = tn_module_state(module);
    uint64_t mark = tn_error_mark();
    char *text = NULL;

    if (state == NULL)
        return NULL;
    for (int i = 0; i < 2 && text == NULL; i++) {
        text = text_of(module, i == 0 ? tn_module_spec : tn_module_repr);
        if (text != NULL && !text_is_right(text, state)) {
            tn_free(text);
            text = NULL;
        }
    }
    tn_error_restore(mark);
    if (text == NULL)
        tn_fail(TN_ERR_VALUE,
                "model: neither its spec nor its printed form makes the same parameters again, so "
                "a file of its weights could not be opened");
    tn_state_drop(state);
    return text;
}

/* ---- the model ------------------------------------------------------------------------------- */

/* Returns a text of the checkpoint that is continued; NULL if it has none of this name. */
static const char *resumed_text(const run *r, const char *name)
{
    int64_t at = tn_state_find(r->resumed, name);
    tn_value value = at >= 0 ? tn_state_value(r->resumed, at) : tn_value_none();

    return value.kind == TN_VALUE_STRING ? value.as.s : NULL;
}

/* Makes the program of the checkpoint that is continued, from the copy beside it. */
static tn_status resumed_program(run *r, const char *digest)
{
    char path[4300];

    if (save_newest(r, path, sizeof path) < 0)
        return tn_fail(TN_ERR_IO, "--resume: %s has no checkpoint any more", r->folder);
    r->model = program_open(path, digest);
    r->program = r->model != NULL ? tn_strdup(digest) : NULL;
    r->program_kept = true;
    return r->program != NULL ? TN_OK : tn_error_last_code();
}

/* Makes the model of the checkpoint that is continued. */
static tn_status resumed_model(run *r)
{
    const char *spec = resumed_text(r, "value.spec"), *head = resumed_text(r, "value.head"),
               *program = resumed_text(r, "value.program");

    if (head != NULL) {
        r->head = tn_strdup(head);
        if (r->head == NULL)
            return tn_error_last_code();
    }
    if (program != NULL)
        return resumed_program(r, program);
    if (spec == NULL)
        return tn_fail(
            TN_ERR_FORMAT,
            "checkpoint: the spec of the model is missing; expected a checkpoint of tenon "
            "train or tenon finetune");
    r->model = tn_module_parse(spec);
    r->spec = tn_strdup(spec);
    return r->model != NULL && r->spec != NULL ? TN_OK : tn_error_last_code();
}

static tn_status new_model(run *r)
{
    model_notes notes = { 0 };
    tn_status status = TN_OK;

    r->model = model_open(setting_text(r->set, SET_MODEL), setting_text(r->set, SET_INIT), 0,
                          &notes);
    if (r->model == NULL)
        status = tn_error_last_code();
    else if (model_note(&notes, MODEL_SCRIPT) != NULL)
        status = tn_fail(TN_ERR_NOT_IMPLEMENTED,
                         "--model: it is a script, got \"%s\"; expected another model: checkpoints "
                         "have the spec of the model",
                         setting_text(r->set, SET_MODEL));
    else if (r->set->of == OF_FINETUNE && !notes.loaded)
        status = tn_fail(TN_ERR_VALUE,
                         "--model: it has no weights, got \"%s\"; expected a file with weights, or "
                         "--init FILE",
                         setting_text(r->set, SET_MODEL));
    if (status == TN_OK && setting_text(r->set, SET_TRANSFORM) == NULL &&
        model_note(&notes, MODEL_TRANSFORM) != NULL)
        status = settings_put(r->set, SET_TRANSFORM, model_note(&notes, MODEL_TRANSFORM),
                              FROM_TABLE);
    model_notes_free(&notes);
    if (status == TN_OK)
        r->program = program_digest(r->model);
    if (status == TN_OK && r->set->of == OF_FINETUNE)
        status = head_replace(r);
    if (status == TN_OK && r->program == NULL) {
        r->spec = build_spec(r->model);
        status = r->spec != NULL ? TN_OK : tn_error_last_code();
    }
    return status;
}

static tn_status build_model(run *r)
{
    tn_status status;

    tn_random_seed((uint64_t)setting_count(r->set, SET_SEED));
    status = r->resumed != NULL && r->same_model ? resumed_model(r) : new_model(r);
    if (status == TN_OK && r->resumed != NULL)
        status = resume_compare(r);
    if (status == TN_OK)
        r->dtype = work_dtype(r->model);
    return status == TN_OK ? freeze_all(r) : status;
}

/* ---- the others ------------------------------------------------------------------------------ */

static tn_status build_loss(run *r)
{
    const char *text = setting_text(r->set, SET_LOSS);

    if (text == NULL && r->classes == 0)
        return tn_fail(TN_ERR_VALUE,
                       "--loss: it is missing; expected a loss such as MSELoss(), "
                       "because the dataset has no classes; `tenon info` with its name "
                       "prints the option that says what they are");
    r->criterion = tn_module_parse(text != NULL ? text : class_loss);
    if (r->criterion == NULL)
        return tn_error_prefix("--loss: ");
    return TN_OK;
}

static tn_status build_optimizer(run *r)
{
    const char *scheduler = setting_text(r->set, SET_SCHEDULE);
    tn_average_options average = TN_AVERAGE_OPTIONS;

    r->optimizer = tn_optimizer_new(r->model, "%s", setting_text(r->set, SET_OPTIM));
    if (r->optimizer == NULL)
        return tn_error_prefix("--optim: ");
    if (scheduler != NULL) {
        r->scheduler = tn_scheduler_parse(r->optimizer, scheduler);
        if (r->scheduler == NULL)
            return tn_error_prefix("--schedule: ");
    }
    if (setting_text(r->set, SET_EMA) == NULL)
        return TN_OK;
    average.kind = TN_AVERAGE_EXPONENTIAL;
    average.decay = setting_number(r->set, SET_EMA);
    r->average = tn_average_new(r->model, &average);
    return r->average != NULL ? TN_OK : tn_error_last_code();
}

/* bfloat16 has the range of float32; only the gradients of float16 are scaled. */
static tn_status build_amp(run *r)
{
    if (!setting_on(r->set, SET_AMP))
        return TN_OK;
    r->amp = tn_device_type(tn_default_device());
    if (r->amp == NULL)
        return tn_error_last_code();
    if (tn_autocast_dtype(r->amp) != TN_F16)
        return TN_OK;
    r->scaler = tn_grad_scaler_new(NULL);
    return r->scaler != NULL ? TN_OK : tn_error_last_code();
}

/* Lets steps, or calls of the model, run plans. In autocast they would run eagerly. */
static tn_status build_plans(run *r)
{
    bool step = setting_on(r->set, SET_COMPILE_STEP);

    if (!step && !setting_on(r->set, SET_COMPILE))
        return TN_OK;
    if (setting_on(r->set, SET_AMP))
        return tn_fail(TN_ERR_VALUE,
                       "--%s: calls in mixed precision have no plans, got --amp; "
                       "expected one of them",
                       step ? "compile-step" : "compile");
    return step ? step_compile(r) : tn_module_compile(r->model, "plan(train=True)");
}

/* Finds out whether the optimizer evaluates the loss itself, which needs one batch for each step
 * and gradients that are not scaled. */
static tn_status build_evaluation(run *r)
{
    const char *type = tn_optimizer_type(r->optimizer);
    const tn_optimizer_def *def = (const tn_optimizer_def *)tn_registry_find(
        TN_KIND_tn_optimizer_def, type);
    int64_t share = setting_count(r->set, SET_ACCUMULATE);

    if (def == NULL)
        return tn_error_last_code();
    r->evaluates = (def->flags & TN_OPTIMIZER_CLOSURE) != 0;
    if (r->evaluates && share > 1)
        return tn_fail(TN_ERR_VALUE,
                       "--accumulate: %s evaluates one batch in each step, got %lld; expected 1",
                       type, (long long)share);
    if (r->evaluates && r->scaler != NULL)
        return tn_fail(TN_ERR_VALUE,
                       "--amp: %s evaluates the loss itself, but float16 needs gradients that are "
                       "scaled; expected no --amp, or a device whose autocast uses bfloat16",
                       type);
    return TN_OK;
}

static tn_status build_loader(run *r)
{
    const char *mix = setting_text(r->set, SET_MIX);
    char part[96];

    ranks_loader(r, part, sizeof part);
    r->loader = tn_loader_new(r->data,
                              "%s, shuffle=True, seed=%lld, workers=%lld, "
                              "skip_damaged=%b, batch_transform=%q",
                              part, (long long)setting_count(r->set, SET_SEED),
                              (long long)setting_count(r->set, SET_WORKERS),
                              (int)setting_on(r->set, SET_SKIP_DAMAGED), mix != NULL ? mix : "[]");
    if (r->loader == NULL && mix != NULL)
        return tn_error_prefix("--mix: ");
    return r->loader != NULL ? TN_OK : tn_error_last_code();
}

/* Adds the plugins of the specs in a text, such as those of datasets and transforms: of every name
 * that a registry has. */
static tn_status add_plugins(run *r, setting which, uint32_t kind)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    const char *text = setting_text(r->set, which);
    tn_status status = TN_OK;

    while (text != NULL && *text != '\0' && status == TN_OK) {
        size_t length = strspn(text, word);
        char name[128];
        uint64_t mark = tn_error_mark();

        snprintf(name, sizeof name, "%.*s", (int)length, text);
        if (length > 0 && length < sizeof name && tn_registry_plugin(kind, name) != NULL)
            status = tn_checkpoint_add_plugin(r->checkpoint, kind, name);
        else
            tn_error_restore(mark);
        text += length > 0 ? length : 1;
    }
    return status;
}

static tn_status build_checkpoint(run *r)
{
    tn_status status;

    r->checkpoint = tn_checkpoint_new();
    if (r->checkpoint == NULL)
        return tn_error_last_code();
    status = tn_checkpoint_add_module(r->checkpoint, "model", r->model);
    if (status == TN_OK)
        status = tn_checkpoint_add_optimizer(r->checkpoint, "optimizer", r->optimizer);
    if (status == TN_OK && r->scheduler != NULL)
        status = tn_checkpoint_add_scheduler(r->checkpoint, "scheduler", r->scheduler);
    if (status == TN_OK && r->average != NULL)
        status = tn_checkpoint_add_module(r->checkpoint, "average", r->average);
    if (status == TN_OK)
        status = tn_checkpoint_add_loader(r->checkpoint, "loader", r->loader);
    if (status == TN_OK)
        status = add_plugins(r, SET_DATA, TN_KIND_tn_dataset_def);
    if (status == TN_OK)
        status = add_plugins(r, SET_VAL, TN_KIND_tn_dataset_def);
    if (status == TN_OK)
        status = add_plugins(r, SET_AUGMENT, TN_KIND_tn_transform_def);
    if (status == TN_OK)
        status = add_plugins(r, SET_TRANSFORM, TN_KIND_tn_transform_def);
    if (status == TN_OK)
        status = add_plugins(r, SET_MIX, TN_KIND_tn_transform_def);
    return status == TN_OK ? add_plugins(r, SET_LOSS, TN_KIND_tn_layer_def) : status;
}

tn_status build_all(run *r)
{
    tn_status status = build_data(r);

    if (status == TN_OK)
        status = build_best(r);
    if (status == TN_OK)
        status = build_model(r);
    if (status == TN_OK)
        status = build_transforms(r);
    if (status == TN_OK)
        status = build_loss(r);
    if (status == TN_OK)
        status = build_optimizer(r);
    if (status == TN_OK)
        status = build_amp(r);
    if (status == TN_OK)
        status = build_plans(r);
    if (status == TN_OK)
        status = build_evaluation(r);
    if (status == TN_OK)
        status = build_loader(r);
    return status == TN_OK ? build_checkpoint(r) : status;
}
