/* SPDX-License-Identifier: MIT
 *
 * The table of settings, and the command line. */
#include "settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The defaults that name a layer or an optimizer are here and in head.c, and nowhere else. */
static const setting_row rows[SETTINGS] = {
    [SET_MODEL] = { "model", "MODEL", SETTING_TEXT, SETTING_SAME | SETTING_NEEDED, NULL, 0,
                    "the network: a spec, the name of a layer, or a file" },
    [SET_INIT] = { "init", "FILE", SETTING_TEXT, SETTING_SAME, NULL, 0,
                   "weights to begin with, of a file of tensors or a checkpoint" },
    [SET_HEAD] = { "head", "PATH", SETTING_TEXT, SETTING_SAME | SETTING_TUNE, NULL, 0,
                   "the module to replace, such as fc; by default the last Linear" },
    [SET_UNFREEZE] = { "unfreeze", "PATTERN", SETTING_TEXT,
                       SETTING_SAME | SETTING_TUNE | SETTING_LIST, NULL, 0,
                       "parameters or modules besides the head that learn, such as 'layer4*'; "
                       "'*': all" },
    [SET_FREEZE] = { "freeze", "PATTERN", SETTING_TEXT, SETTING_SAME | SETTING_LIST, NULL, 0,
                     "parameters or modules that do not learn, such as 'conv1*'" },
    [SET_DATA] = { "data", "SPEC", SETTING_TEXT, SETTING_SAME | SETTING_NEEDED | SETTING_ONCE, NULL,
                   0, "the dataset of the training" },
    [SET_VAL] = { "val", "SPEC", SETTING_TEXT, SETTING_SAME | SETTING_ONCE, NULL, 0,
                  "a dataset for validation after each epoch" },
    [SET_VAL_SPLIT] = { "val-split", "F", SETTING_NUMBER, SETTING_SAME, NULL, 0,
                        "the part of the samples of --data that validates instead, such as 0.1, "
                        "chosen at random by the seed" },
    [SET_TRANSFORM] = { "transform", "SPEC", SETTING_TEXT, SETTING_SAME, NULL, 0,
                        "a transform, or a list of them, of all samples; default: the one in the "
                        "file of the model, if there is one" },
    [SET_AUGMENT] = { "augment", "SPEC", SETTING_TEXT, SETTING_SAME, NULL, 0,
                      "the same for the samples of the training alone, before --transform" },
    [SET_STANDARDIZE] = { "standardize", NULL, SETTING_FLAG, SETTING_SAME, NULL, 0,
                          "gives each column or channel mean 0 and deviation 1, and makes numbers "
                          "of the rows of a Table; computed from the samples of the training, and "
                          "kept in the file of the model" },
    [SET_MIX] = { "mix", "SPEC", SETTING_TEXT, SETTING_SAME, NULL, 0,
                  "a transform of the batches of the training, such as MixUp(alpha=0.2), or a list "
                  "of them" },
    [SET_LOSS] = { "loss", "SPEC", SETTING_TEXT, SETTING_SAME, NULL, 0,
                   "a layer that is called with output and target; CrossEntropyLoss() if the "
                   "dataset has classes" },
    [SET_OPTIM] = { "optim", "SPEC", SETTING_TEXT, SETTING_SAME, "Adam(lr=0.001)", 0,
                    "the optimizer" },
    [SET_SCHEDULE] = { "schedule", "SPEC", SETTING_TEXT, SETTING_SAME, NULL, 0,
                       "the scheduler of the learning rate" },
    [SET_SCHEDULE_BY] = { "schedule-by", "UNIT", SETTING_TEXT, SETTING_SAME, "epoch", 0,
                          "epoch or step: after which the scheduler takes a step" },
    [SET_EPOCHS] = { "epochs", "N", SETTING_COUNT, SETTING_KEPT, "10", 1,
                     "passes through the data" },
    [SET_MAX_STEPS] = { "max-steps", "N", SETTING_COUNT, SETTING_KEPT, NULL, 1,
                        "ends after this number of steps of the optimizer" },
    [SET_BEST] = { "best", "METRIC", SETTING_TEXT, SETTING_SAME, NULL, 0,
                   "what of the validation decides which weights are best: loss, accuracy, top5, "
                   "f1 (mean of the classes) or auc (the same, each against all others); default: "
                   "accuracy, without classes loss" },
    [SET_PATIENCE] = { "patience", "N", SETTING_COUNT, SETTING_KEPT, NULL, 1,
                       "ends early, after N epochs in a row without a better result on the "
                       "validation data (without such data: without a lower loss)" },
    [SET_BATCH_SIZE] = { "batch-size", "N", SETTING_COUNT, SETTING_SAME, "32", 1,
                         "samples in a batch" },
    [SET_ACCUMULATE] = { "accumulate", "N", SETTING_COUNT, SETTING_SAME, "1", 1,
                         "batches whose gradients make one step" },
    [SET_SHARDS] = { "shards", "N", SETTING_COUNT, SETTING_SAME | SETTING_ALONE, "0", 0,
                     "equal parts of a batch, a power of two; 1, 2, ... processes of `tenon run` "
                     "with the same number compute the same weights; 0: as many as processes" },
    [SET_CLIP_NORM] = { "clip-norm", "X", SETTING_NUMBER, SETTING_SAME, NULL, 0,
                        "scales the gradients of a step to at most this norm" },
    [SET_EMA] = { "ema", "D", SETTING_NUMBER, SETTING_SAME, NULL, 0,
                  "keeps an exponential average of the weights with this decay, such as 0.999, "
                  "which is validated and saved" },
    [SET_AMP] = { "amp", NULL, SETTING_FLAG, SETTING_SAME, NULL, 0,
                  "mixed precision: bfloat16 on the cpu, float16 with scaled gradients elsewhere" },
    [SET_COMPILE] = { "compile", NULL, SETTING_FLAG, SETTING_KEPT, NULL, 0,
                      "the first step is recorded as a plan, which later steps run; same results" },
    [SET_COMPILE_STEP] = { "compile-step", NULL, SETTING_FLAG, SETTING_KEPT, NULL, 0,
                           "as --compile, but forward, loss, backward and optimizer are one plan" },
    [SET_SEED] = { "seed", "S", SETTING_COUNT, SETTING_SAME, "1", 0,
                   "of weights, order, splits and augmentation" },
    [SET_DEVICE] = { "device", "NAME", SETTING_TEXT, SETTING_KEPT, NULL, 0,
                     "such as cuda:0, or cuda,cpu for the first that works; default: "
                     "TENON_DEVICE, or cpu" },
    [SET_WORKERS] = { "workers", "N", SETTING_COUNT, SETTING_KEPT, "0", 0,
                      "threads that read samples" },
    [SET_SKIP_DAMAGED] = { "skip-damaged", NULL, SETTING_FLAG, SETTING_SAME, NULL, 0,
                           "leaves out samples that cannot be read, and counts them" },
    [SET_FIND_LR] = { "find-lr", NULL, SETTING_FLAG, SETTING_ALONE, NULL, 0,
                      "does not train: takes 100 steps (or --max-steps) with a learning rate that "
                      "grows from 1e-7 to 10, draws the loss, and suggests a rate; writes nothing "
                      "to DIR, and needs none" },
    [SET_CHART] = { "chart", "FILE", SETTING_TEXT, SETTING_ALONE, NULL, 0,
                    "with --find-lr, also draws the curve as SVG" },
    [SET_OUT] = { "out", "DIR", SETTING_TEXT, SETTING_NEEDED, NULL, 0, "the folder of the run" },
    [SET_RESUME] = { "resume", NULL, SETTING_FLAG, 0, NULL, 0,
                     "continues the run in DIR from its last checkpoint; settings that are not "
                     "given are those of the run" },
    [SET_KEEP] = { "keep", "N", SETTING_COUNT, SETTING_KEPT, "3", 1,
                   "checkpoints to keep besides the best one" },
    [SET_CHECKPOINT_EVERY] = { "checkpoint-every", "N", SETTING_COUNT, SETTING_KEPT, NULL, 1,
                               "also saves a checkpoint after every N steps; without it, after "
                               "each epoch" },
    [SET_CONFIG] = { "config", "FILE", SETTING_TEXT, 0, NULL, 0,
                     "a file with settings, in TOML or JSON; the command line wins" },
};

const setting_row *settings_row(setting which)
{
    return &rows[which];
}

/* ---- names ----------------------------------------------------------------------------------- */

enum { NAME_MOST = TOOL_NAME };

static bool is_of(setting_command of, setting which)
{
    int flags = rows[which].flags;

    return (of == OF_FINETUNE || !(flags & SETTING_TUNE)) &&
           (of != OF_SWEEP || !(flags & SETTING_ALONE));
}

setting settings_find(const settings *s, const char *name)
{
    char plain[NAME_MOST];
    int least = 4, apart;
    const char *nearest = NULL;
    bool other = false; /* it is a setting of another command */

    snprintf(plain, sizeof plain, "%s", name);
    for (char *at = plain; *at != '\0'; at++)
        if (*at == '_')
            *at = '-';
    for (int i = 0; i < SETTINGS; i++) {
        apart = tool_distance(plain, rows[i].name);
        if (!is_of(s->of, (setting)i)) {
            other = other || apart == 0;
            continue;
        }
        if (apart == 0)
            return (setting)i;
        if (apart < least) {
            least = apart;
            nearest = rows[i].name;
        }
    }
    if (other)
        tn_fail(TN_ERR_KEY, "--%s: it is no option of this command; expected tenon %s --%s", plain,
                s->of == OF_SWEEP ? "train" : "finetune", plain);
    else if (nearest != NULL && 2 * least <= (int)strlen(plain))
        tn_fail(TN_ERR_KEY, "unknown setting %q; did you mean \"%s\"?", name, nearest);
    else
        tn_fail(TN_ERR_KEY,
                "unknown setting %q; expected one of the options of the command (those of an "
                "optimizer or a dataset are in its spec: optim = \"Adam(lr=0.001)\")",
                name);
    return SETTINGS;
}

const char *const metric_names[METRIC_COUNT] = { "loss", "accuracy", "top5", "f1", "auc" };

metric metric_find(const char *name)
{
    int at = 0;

    while (at < METRIC_COUNT && strcmp(metric_names[at], name) != 0)
        at++;
    return (metric)at;
}

/* ---- values ---------------------------------------------------------------------------------- */

static tn_status check(setting which, const char *text)
{
    const setting_row *row = &rows[which];
    int64_t count;
    double number;

    if (row->kind == SETTING_COUNT &&
        (!tn_read_int(text, &count) || (double)count < row->least || count > INT32_MAX))
        return tn_fail(TN_ERR_VALUE, "--%s: wrong, got %q; expected a whole number from %d to %d",
                       row->name, text, (int)row->least, INT32_MAX);
    if (row->kind == SETTING_NUMBER &&
        (!tn_read_float(text, &number) || !isfinite(number) || number < row->least))
        return tn_fail(TN_ERR_VALUE, "--%s: wrong, got %q; expected a number from 0 on", row->name,
                       text);
    if (row->kind == SETTING_FLAG && strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return tn_fail(TN_ERR_VALUE, "--%s: wrong, got %q; expected true or false", row->name,
                       text);
    if (row->kind == SETTING_TEXT && text[0] == '\0')
        return tn_fail(TN_ERR_VALUE, "--%s: empty; expected %s", row->name, row->value);
    if ((which == SET_VAL_SPLIT || which == SET_EMA) && tn_read_float(text, &number) &&
        (number <= 0 || number >= 1))
        return tn_fail(TN_ERR_VALUE,
                       "--%s: out of range, got %s; expected more than 0 and less "
                       "than 1",
                       row->name, text);
    if (which == SET_CLIP_NORM && tn_read_float(text, &number) && number <= 0)
        return tn_fail(TN_ERR_VALUE,
                       "--clip-norm: out of range, got %s; expected more than 0, because with 0 "
                       "nothing would be learned; without the option no gradient is scaled",
                       text);
    if (which == SET_BEST && metric_find(text) == METRIC_COUNT)
        return tn_fail(TN_ERR_VALUE,
                       "--best: unknown metric, got %q; expected loss, accuracy, top5, f1 or auc",
                       text);
    if (which == SET_SCHEDULE_BY && strcmp(text, "epoch") != 0 && strcmp(text, "step") != 0)
        return tn_fail(TN_ERR_VALUE, "--%s: wrong, got %q; expected epoch or step", row->name,
                       text);
    return TN_OK;
}

tn_status settings_put(settings *s, setting which, const char *text, setting_origin origin)
{
    tn_status status = check(which, text);
    char *copy;

    if (status != TN_OK || s->origin[which] > origin)
        return status;
    if ((rows[which].flags & SETTING_LIST) && s->origin[which] == origin &&
        s->text[which] != NULL && origin > FROM_CHECKPOINT) {
        size_t size = strlen(s->text[which]) + strlen(text) + 2;

        copy = tn_malloc(size);
        if (copy != NULL)
            tn_snprint(copy, size, "%s,%s", s->text[which], text);
    } else {
        copy = tn_strdup(text);
    }
    if (copy == NULL)
        return TN_ERR_MEMORY;
    tn_free(s->text[which]);
    s->text[which] = copy;
    s->origin[which] = origin;
    return TN_OK;
}

tn_status settings_init(settings *s, setting_command of)
{
    *s = (settings){ .of = of };
    for (int i = 0; i < SETTINGS; i++) {
        if (rows[i].standard == NULL)
            continue;
        s->text[i] = tn_strdup(rows[i].standard);
        if (s->text[i] == NULL)
            return TN_ERR_MEMORY;
    }
    return TN_OK;
}

void settings_free(settings *s)
{
    for (int i = 0; i < SETTINGS; i++)
        tn_free(s->text[i]);
    *s = (settings){ 0 };
}

int64_t setting_count(const settings *s, setting which)
{
    int64_t count = 0;

    if (s->text[which] != NULL)
        tn_read_int(s->text[which], &count);
    return count;
}

double setting_number(const settings *s, setting which)
{
    double number = 0;

    if (s->text[which] != NULL)
        tn_read_float(s->text[which], &number);
    return number;
}

bool setting_on(const settings *s, setting which)
{
    return s->text[which] != NULL && strcmp(s->text[which], "true") == 0;
}

/* ---- the command line ------------------------------------------------------------------------ */

/* Reads `--name VALUE`, `--name=VALUE` or a flag. Sets *used to the number of arguments. */
static tn_status take(settings *s, int count, char **given, int *used)
{
    char name[NAME_MOST];
    const char *equals = strchr(given[0], '='), *value = equals != NULL ? equals + 1 : NULL;
    size_t length = equals != NULL ? (size_t)(equals - given[0]) : strlen(given[0]);
    setting which;

    *used = 1;
    if (strcmp(given[0], "--json") == 0) {
        s->json = true;
        return TN_OK;
    }
    /* as for the other commands, the model needs no --model */
    if (given[0][0] != '-' && s->text[SET_MODEL] == NULL)
        return settings_put(s, SET_MODEL, given[0], FROM_USER);
    if (strncmp(given[0], "--", 2) != 0 || length - 2 >= sizeof name)
        return tn_fail(TN_ERR_VALUE, "unexpected argument %q; expected options", given[0]);
    snprintf(name, sizeof name, "%.*s", (int)(length - 2), given[0] + 2);
    which = settings_find(s, name);
    if (which == SETTINGS)
        return tn_error_last_code();
    if (rows[which].kind == SETTING_FLAG)
        return settings_put(s, which, value != NULL ? value : "true", FROM_USER);
    if (value == NULL && count < 2)
        return tn_fail(TN_ERR_VALUE, "--%s: its value is missing; expected %s", rows[which].name,
                       rows[which].value);
    if (value == NULL) {
        value = given[1];
        *used = 2;
    }
    if ((rows[which].flags & SETTING_ONCE) && s->text[which] != NULL)
        return tn_fail(TN_ERR_VALUE, "--%s: given twice; expected one dataset", rows[which].name);
    return settings_put(s, which, value, FROM_USER);
}

tn_status settings_read(settings *s, int count, char **arguments)
{
    tn_status status = TN_OK;

    for (int i = 0, used = 1; i < count && status == TN_OK; i += used)
        status = take(s, count - i, arguments + i, &used);
    if (status == TN_OK && s->text[SET_CONFIG] != NULL)
        status = config_read(s, s->text[SET_CONFIG]);
    for (int i = 0; i < SETTINGS && status == TN_OK; i++)
        if ((rows[i].flags & SETTING_NEEDED) && s->text[i] == NULL &&
            (i == SET_OUT ? !setting_on(s, SET_FIND_LR) : !setting_on(s, SET_RESUME)))
            status = tn_fail(TN_ERR_VALUE, "--%s: it is missing; expected %s (%s)", rows[i].name,
                             rows[i].value, rows[i].help);
    if (status == TN_OK && setting_on(s, SET_FIND_LR) && setting_on(s, SET_RESUME))
        status = tn_fail(TN_ERR_VALUE, "--find-lr and --resume: both are given; expected one");
    if (status == TN_OK && s->text[SET_CHART] != NULL && !setting_on(s, SET_FIND_LR))
        status = tn_fail(TN_ERR_VALUE, "--chart: given without --find-lr; expected both");
    if (status == TN_OK && s->text[SET_VAL] != NULL && s->text[SET_VAL_SPLIT] != NULL)
        status = tn_fail(TN_ERR_VALUE, "--val and --val-split: both are given; expected one");
    return status;
}

void settings_help(setting_command of)
{
    printf("\nOptions:\n");
    for (int i = 0; i < SETTINGS; i++) {
        char left[48], text[512];

        if (!is_of(of, (setting)i))
            continue;
        snprintf(left, sizeof left, "  --%s%s%s", rows[i].name, rows[i].value != NULL ? " " : "",
                 rows[i].value != NULL ? rows[i].value : "");
        snprintf(text, sizeof text, "%s%s%s", rows[i].help,
                 rows[i].standard != NULL ? "; default: " : "",
                 rows[i].standard != NULL ? rows[i].standard : "");
        print_wrapped(left, 26, text);
    }
    print_wrapped("  --json", 26,
                  "at the end JSON on standard output; the progress then goes to "
                  "standard error");
    print_wrapped("  --help", 26, "this text");
}
