/* SPDX-License-Identifier: MIT
 *
 * tenon prune MODEL --out FILE: sets weights of a model to 0, or removes channels of it, and writes
 * the weights with the spec of the resulting model. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"
#include "train/model.h"

enum { METHOD_SIZE = 160 };

typedef struct request {
    const char *model, *out, *weights, *tensors, *method;
    input_list inputs;
    char of_amount[METHOD_SIZE]; /* the value of --amount, later the method that it means */
    bool global, compact, loose;
} request;

/* What was pruned, and what it did. */
typedef struct outcome {
    tn_prune_report report;
    int64_t tensors, zeros;
} outcome;

/* ---- tensors --------------------------------------------------------------------------------- */

/* The paths of the parameters that are pruned. */
typedef struct selection {
    char *words; /* of the pattern, each ended by NUL; NULL: all with two dimensions or more */
    size_t words_size;
    char **paths;
    int64_t count, room;
} selection;

static tn_status keep_path(selection *s, const char *path, size_t length)
{
    if (s->count == s->room) {
        char **more = tn_realloc(s->paths, (size_t)(2 * s->room + 16) * sizeof *more);

        if (more == NULL)
            return TN_ERR_MEMORY;
        s->paths = more;
        s->room = 2 * s->room + 16;
    }
    s->paths[s->count] = tn_strdup(path);
    if (s->paths[s->count] == NULL)
        return TN_ERR_MEMORY;
    s->paths[s->count++][length] = '\0';
    return TN_OK;
}

static void free_selection(selection *s)
{
    for (int64_t i = 0; i < s->count; i++)
        tn_free(s->paths[i]);
    tn_free(s->paths);
    tn_free(s->words);
}

/* Splits a pattern into its words. */
static tn_status read_pattern(const char *pattern, selection *s)
{
    if (pattern == NULL)
        return TN_OK;
    s->words = tn_strdup(pattern);
    if (s->words == NULL)
        return TN_ERR_MEMORY;
    s->words_size = strlen(pattern);
    for (size_t i = 0; i < s->words_size; i++)
        if (s->words[i] == ' ')
            s->words[i] = '\0';
    return TN_OK;
}

static bool fits(const selection *s, const char *path)
{
    for (size_t at = 0; at < s->words_size; at += strlen(s->words + at) + 1)
        if (fnmatch(s->words + at, path, 0) == 0)
            return true;
    return false;
}

static tn_status select_tensor(void *user, const char *path, tn_tensor *tensor)
{
    selection *s = user;
    bool chosen = s->words != NULL ? fits(s, path) : tn_tensor_ndim(tensor) >= 2;

    return chosen ? keep_path(s, path, strlen(path)) : TN_OK;
}

/* Ranks the entries of all tensors together. */
static tn_status prune_together(tn_module *net, const selection *s, const char *method)
{
    tn_prune_target *targets = calloc((size_t)s->count + 1, sizeof *targets);
    tn_status status = targets != NULL ? TN_OK : tn_fail(TN_ERR_MEMORY, "out of memory");

    for (int64_t i = 0; i < s->count && status == TN_OK; i++)
        targets[i] = (tn_prune_target){ net, s->paths[i], NULL };
    if (status == TN_OK)
        status = tn_prune_global(targets, s->count, method);
    free(targets);
    return status;
}

static tn_status prune_tensors(tn_module *net, const request *wanted, outcome *out)
{
    selection s = { 0 };
    tn_status status = read_pattern(wanted->tensors, &s);

    if (status == TN_OK)
        status = tn_module_each_tensor(net, TN_SLOT_PARAMETER, false, select_tensor, &s);
    if (status == TN_OK && s.count == 0)
        status = tn_fail(TN_ERR_KEY,
                         "--tensors: no parameter to prune, got %q; expected dotted paths with * "
                         "and ?; the default is all parameters with two dimensions or more",
                         wanted->tensors);
    if (status == TN_OK && wanted->global)
        status = prune_together(net, &s, wanted->method);
    for (int64_t i = 0; i < s.count && status == TN_OK && !wanted->global; i++)
        status = tn_prune(net, s.paths[i], wanted->method);
    out->tensors = s.count;
    free_selection(&s);
    return status;
}

/* ---- channels -------------------------------------------------------------------------------- */

static tn_status prune_channels(tn_module *net, const request *wanted, outcome *out)
{
    const char *how = wanted->loose ? "ChannelGroups(strict=False)" : NULL;
    tn_tensor *in[INPUTS_MOST];
    tn_status status = TN_OK;

    for (int i = 0; i < wanted->inputs.count; i++) {
        in[i] = input_example(wanted->inputs.at[i]);
        if (in[i] == NULL)
            return tn_error_last_code();
    }
    if (wanted->method != NULL)
        status = tn_prune_channels(net, in, wanted->inputs.count, wanted->method, NULL);
    if (status == TN_OK)
        status = tn_prune_compact(net, in, wanted->inputs.count, how, &out->report);
    return status;
}

/* ---- the result ------------------------------------------------------------------------------ */

static const char mask_part[] = "_mask";

static tn_status find_mask(void *user, const char *path, tn_tensor *tensor)
{
    size_t length = strlen(path), tail = sizeof mask_part - 1;

    (void)tensor;
    return length > tail && strcmp(path + length - tail, mask_part) == 0
               ? keep_path(user, path, length - tail)
               : TN_OK;
}

/* Puts all masks into the parameters. Buffers of other layers may be called _mask, too. */
static tn_status make_permanent(tn_module *net)
{
    selection s = { 0 };
    tn_status status = tn_module_each_tensor(net, TN_SLOT_BUFFER, true, find_mask, &s);

    for (int64_t i = 0; i < s.count && status == TN_OK; i++) {
        uint64_t mark = tn_error_mark();
        bool pruned = tn_prune_count(net, s.paths[i]) > 0;

        tn_error_restore(mark);
        if (pruned)
            status = tn_prune_remove(net, s.paths[i]);
    }
    free_selection(&s);
    return status;
}

static tn_status count_zeros(void *user, const char *path, tn_tensor *tensor)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *others = tn_count_nonzero(tensor);

    (void)path;
    if (others != NULL)
        *(int64_t *)user += tn_tensor_numel(tensor) - (int64_t)tn_tensor_item(others);
    tn_scope_end(scope);
    return others != NULL ? TN_OK : tn_error_last_code();
}

static void answer_json(const request *wanted, const outcome *out)
{
    const tn_prune_report *r = &out->report;

    json_begin(NULL, '{');
    json_text("out", wanted->out);
    json_int("parameters_before", r->parameters_before);
    json_int("parameters_after", r->parameters_after);
    json_int("zeros", out->zeros);
    if (wanted->compact) {
        json_int("channels_before", r->channels_before);
        json_int("channels_removed", r->channels_removed);
        json_int("channels_kept", r->channels_kept);
    } else {
        json_int("tensors", out->tensors);
    }
    json_end('}');
}

static void answer_text(const request *wanted, const outcome *out)
{
    const tn_prune_report *r = &out->report;
    double all = r->parameters_after > 0 ? (double)r->parameters_after : 1;

    if (wanted->compact)
        printf("channels    %lld of %lld removed; %lld masked ones stay\n",
               (long long)r->channels_removed, (long long)r->channels_before,
               (long long)r->channels_kept);
    else
        printf("tensors     %lld pruned\n", (long long)out->tensors);
    printf("parameters  %lld, before %lld; %.1f %% are 0\n", (long long)r->parameters_after,
           (long long)r->parameters_before, 100.0 * (double)out->zeros / all);
    printf("written     %s\n", wanted->out);
}

static int prune(const request *wanted, bool json)
{
    TN_SCOPE;
    model_notes notes = { 0 };
    outcome out = { 0 };
    tn_status status = model_writable(wanted->out, wanted->model, wanted->weights);
    tn_module *net = NULL;

    if (status == TN_OK) {
        net = model_open(wanted->model, wanted->weights, 0, &notes);
        status = net != NULL ? TN_OK : tn_error_last_code();
    }
    if (status == TN_OK) {
        out.report.parameters_before = tn_module_parameter_count(net);
        status = wanted->compact ? prune_channels(net, wanted, &out)
                                 : prune_tensors(net, wanted, &out);
    }
    if (status == TN_OK)
        status = make_permanent(net);
    if (status == TN_OK) {
        out.report.parameters_after = tn_module_parameter_count(net);
        status = tn_module_each_tensor(net, TN_SLOT_PARAMETER, false, count_zeros, &out.zeros);
    }
    if (status == TN_OK)
        status = model_write(net, &notes, wanted->out);
    if (status == TN_OK)
        (json ? answer_json : answer_text)(wanted, &out);
    tn_module_drop(net);
    model_notes_free(&notes);
    return status == TN_OK ? EXIT_OK : tool_fail(NULL);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static request wanted;

static bool take_out(const char *value)
{
    wanted.out = value;
    return value[0] != '\0';
}

static bool take_method(const char *value)
{
    wanted.method = value;
    return value[0] != '\0';
}

/* A number of entries or channels, or a fraction of them. The method checks its range. */
static bool take_amount(const char *value)
{
    int64_t units;
    double fraction;

    snprintf(wanted.of_amount, sizeof wanted.of_amount, "%s", value);
    return strlen(value) < 32 && (tn_read_int(value, &units) || tn_read_float(value, &fraction));
}

static bool take_tensors(const char *value)
{
    wanted.tensors = value;
    return true;
}

static bool take_weights(const char *value)
{
    wanted.weights = value;
    return true;
}

static bool take_input(const char *value)
{
    return inputs_take(&wanted.inputs, value);
}

static bool take_global(const char *value)
{
    (void)value;
    return wanted.global = true;
}

static bool take_compact(const char *value)
{
    (void)value;
    return wanted.compact = true;
}

static bool take_loose(const char *value)
{
    (void)value;
    return wanted.loose = true;
}

/* Returns what is wrong with the options together; NULL if nothing is. */
static const char *wrong_options(const request *r)
{
    bool amount = r->of_amount[0] != '\0';

    if (r->out == NULL)
        return "--out is missing";
    if (amount && r->method != NULL)
        return "--amount and --method exclude each other";
    if (!amount && r->method == NULL && !r->compact)
        return "--amount or --method is missing";
    if (r->compact && r->inputs.count == 0)
        return "--compact needs --input";
    if (r->compact && (r->global || r->tensors != NULL))
        return "--global and --tensors are not for --compact";
    if (!r->compact && (r->inputs.count > 0 || r->loose))
        return "--input and --loose are for --compact";
    return NULL;
}

static int run(int count, char **arguments, bool json)
{
    const char *wrong = wrong_options(&wanted);
    char amount[METHOD_SIZE];

    (void)count;
    wanted.model = arguments[0];
    if (wrong != NULL) {
        fprintf(stderr, "tenon prune: %s; `tenon prune --help` lists the arguments\n", wrong);
        return EXIT_USAGE;
    }
    if (wanted.of_amount[0] != '\0') {
        memcpy(amount, wanted.of_amount, sizeof amount);
        snprintf(wanted.of_amount, sizeof wanted.of_amount,
                 wanted.compact ? "LnStructured(amount=%.32s, n=2, dim=0)"
                                : "L1Unstructured(amount=%.32s)",
                 amount);
        wanted.method = wanted.of_amount;
    }
    return prune(&wanted, json);
}

static const tool_option options[] = {
    { "--out", "FILE", "the file that is written, such as small.safetensors", take_out },
    { "--amount", "AMOUNT",
      "a fraction, such as 0.5, or a number: --method \"L1Unstructured(amount=AMOUNT)\", with "
      "--compact \"LnStructured(amount=AMOUNT, n=2, dim=0)\"",
      take_amount },
    { "--method", "METHODS", "other methods; docs/guides/pruning.md lists them", take_method },
    { "--tensors", "PATTERN",
      "the parameters, as words such as \"*.weight fc.bias\"; default: those with two dimensions "
      "or more",
      take_tensors },
    { "--global", NULL, "ranks the entries of all tensors together", take_global },
    { "--compact", NULL, "removes channels, so that the model becomes smaller and faster",
      take_compact },
    { "--input", "SHAPE",
      "an example of an input for --compact, 1,3,32,32 or 1,20:int64; repeat it for each (at most "
      "8)",
      take_input },
    { "--loose", NULL,
      "with --compact: masked channels that cannot be removed stay, in place of an error",
      take_loose },
    { "--weights", "FILE", "weights for the model", take_weights },
    { NULL, NULL, NULL, NULL }
};

const command prune_command = {
    "prune",
    "MODEL --out FILE",
    "prunes weights or channels of a model",
    "Sets those weights of a model to 0 that contribute least, or, with --compact, removes whole "
    "channels, with everything that computes and reads them. Writes the weights, with the spec of "
    "the pruned model in the metadata, so that the file is a MODEL for the other commands, such as "
    "finetune. Only parameters become 0 or smaller; their names stay. " MODEL_HELP,
    1,
    1,
    run,
    0,
    options
};
