/* SPDX-License-Identifier: MIT
 *
 * The head of a model, which tenon finetune makes anew for the classes of the data. */
#include "train.h"

#include <string.h>

/* The type of a head by default, and the options that say how many classes a layer has. */
static const char *const head_types[] = { "Linear" };
static const char *const class_options[] = { "num_classes", "out_features", "out_channels" };
enum {
    TYPES = sizeof head_types / sizeof *head_types,
    OPTIONS = sizeof class_options / sizeof *class_options,
    MOST = 64
};

/* ---- finding --------------------------------------------------------------------------------- */

/* Returns the path of the last module of one of the types, which the caller frees. */
static char *find_head(tn_module *model)
{
    tn_walk *walk = tn_walk_begin(model, TN_SLOT_CHILD, NULL);
    const tn_visit *visit;
    char *path = NULL;
    bool found = false;

    while (walk != NULL && (visit = tn_walk_next(walk)) != NULL)
        for (int i = 0; i < TYPES; i++)
            if (strcmp(tn_module_type(visit->module), head_types[i]) == 0) {
                tn_free(path);
                path = tn_strdup(visit->path);
                found = true;
            }
    tn_walk_end(walk);
    if (walk != NULL && !found)
        tn_fail(TN_ERR_KEY,
                "model: it has no %s; expected --head with the path of the module to "
                "replace",
                head_types[0]);
    return path;
}

/* Returns the option that says how many classes a layer has; NULL if there is none. */
static const char *class_option(const tn_module *module)
{
    uint64_t mark = tn_error_mark();
    const tn_layer_def *def = (const tn_layer_def *)tn_registry_find(TN_KIND_tn_layer_def,
                                                                     tn_module_type(module));

    tn_error_restore(mark);
    for (int i = 0; i < OPTIONS && def != NULL; i++)
        for (const tn_option *row = def->options; row != NULL && row->kind != TN_OPTION_KIND_END;
             row++)
            if (strcmp(row->name, class_options[i]) == 0)
                return row->name;
    return NULL;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Makes a module like another one, with another value of one option. */
static tn_module *make_like(tn_module *module, const char *option, int64_t value)
{
    const tn_layer_def *def = (const tn_layer_def *)tn_registry_find(TN_KIND_tn_layer_def,
                                                                     tn_module_type(module));
    tn_pack *pack = tn_pack_new();
    tn_value values[MOST];
    const char *names[MOST];
    tn_module *made = NULL;
    tn_status status = def != NULL && pack != NULL ? TN_OK : tn_error_last_code();
    int64_t count = 0;

    for (const tn_option *row = status == TN_OK ? def->options : NULL;
         row != NULL && row->kind != TN_OPTION_KIND_END && status == TN_OK && count < MOST; row++) {
        status = tn_module_option_get(module, row->name, pack);
        if (status != TN_OK)
            break;
        values[count] = tn_pack_at(pack, tn_pack_count(pack) - 1);
        if (strcmp(row->name, option) == 0)
            values[count] = tn_value_int(value);
        names[count++] = row->name;
    }
    if (status == TN_OK)
        made = tn_module_make(tn_module_type(module), values, names, count);
    tn_pack_drop(pack);
    return made;
}

static bool is_below(const char *name, const char *path)
{
    size_t length = strlen(path);

    return length == 0 || (strncmp(name, path, length) == 0 && name[length] == '.');
}

/* Copies the values of all entries except those of the head into another model. */
static tn_status copy_body(tn_module *from, tn_module *to, const char *head)
{
    tn_state *state = tn_module_state(from), *part = tn_state_new();
    tn_load_report *names = tn_load_report_new();
    tn_status status = state != NULL && part != NULL && names != NULL ? TN_OK
                                                                      : tn_error_last_code();

    for (int64_t i = 0; status == TN_OK && i < tn_state_count(state); i++)
        if (!is_below(tn_state_name(state, i), head))
            status = tn_state_set_value(part, tn_state_name(state, i), tn_state_value(state, i));
    if (status == TN_OK)
        status = tn_module_load_report(to, part, TN_LOAD_WHOLE, names);
    if (status != TN_OK)
        tn_error_prefix("head \"%s\": the rest of the model depends on the number of classes: ",
                        head);
    tn_load_report_drop(names);
    tn_state_drop(part);
    tn_state_drop(state);
    return status;
}

/* Returns whether the options of a model make the entries that it has. They do not after
 * tn_prune_compact, whose result has smaller layers than those options. */
static bool options_fit(tn_module *model, const char *option)
{
    const tn_device *meta = tn_device_find("meta");
    uint64_t mark = tn_error_mark();
    tn_pack *pack = tn_pack_new();
    tn_state *state = tn_module_state(model);
    tn_module *made = NULL;
    bool fit = false;

    if (meta != NULL && pack != NULL && state != NULL &&
        tn_module_option_get(model, option, pack) == TN_OK &&
        tn_pack_at(pack, 0).kind == TN_VALUE_INT) {
        if (tn_device_begin(meta) == TN_OK)
            made = make_like(model, option, tn_pack_at(pack, 0).as.i);
        tn_device_end();
        fit = build_is_alike(made, state);
    }
    tn_module_drop(made);
    tn_state_drop(state);
    tn_pack_drop(pack);
    tn_error_restore(mark);
    return fit;
}

/* Returns the number of classes that the options of a module say; -1 if they say none. */
static int64_t classes_of(tn_module *module)
{
    const char *option = class_option(module);
    uint64_t mark = tn_error_mark();
    tn_pack *pack = option != NULL ? tn_pack_new() : NULL;
    int64_t count = -1;

    if (pack != NULL && tn_module_option_get(module, option, pack) == TN_OK &&
        tn_pack_at(pack, 0).kind == TN_VALUE_INT)
        count = tn_pack_at(pack, 0).as.i;
    tn_pack_drop(pack);
    tn_error_restore(mark);
    return count;
}

/* Builds the whole model again, because the number of classes is one of its options. */
static tn_status replace_model(run *r, const char *option)
{
    tn_module *made = make_like(r->model, option, r->classes);
    tn_module *head = made != NULL ? tn_module_find(made, r->head) : NULL;
    tn_status status = head != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK && classes_of(head) != r->classes)
        status = tn_fail(TN_ERR_VALUE,
                         "--head: module %q (%s) is not the one to which %s of %s gives a result "
                         "for each class; expected no --head, or the path of that module",
                         r->head, tn_module_type(head), option, tn_module_type(made));
    if (status == TN_OK)
        status = copy_body(r->model, made, r->head);
    if (status != TN_OK) {
        tn_module_drop(made);
        return status;
    }
    tn_module_drop(r->model);
    r->model = made;
    return TN_OK;
}

/* Appends " 3," for each size of a kernel. */
static void kernel_text(tn_ints shape, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (int64_t i = 2; i < shape.count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%lld,", (long long)shape.at[i]);
}

/* Makes the layer whose tensors the head of a program gets: like it, with a result for each class.
 * The program's own module stays, so that its file has it. */
static tn_module *make_for_program(const run *r, tn_module *old)
{
    tn_tensor *weight = tn_module_get(old, "weight");
    bool bias = tn_module_slot_kind(old, "bias") != 0 && tn_module_get(old, "bias") != TN_NONE;
    tn_ints shape = weight != NULL && weight != TN_NONE ? tn_tensor_shape(weight) : tn_no_ints();
    const char *dtype = shape.count > 1 ? tn_dtype_name(tn_tensor_dtype(weight)) : "";
    char kernel[200];

    kernel_text(shape, kernel, sizeof kernel);
    if (shape.count == 2)
        return tn_module_new("Linear(%lld, %lld, bias=%b, dtype=%s)", (long long)shape.at[1],
                             (long long)r->classes, (int)bias, dtype);
    if (shape.count > 2 && shape.count < 6)
        return tn_module_new("Conv%lldd(%lld, %lld, (%s), bias=%b, dtype=%s)",
                             (long long)shape.count - 2, (long long)shape.at[1],
                             (long long)r->classes, kernel, (int)bias, dtype);
    tn_fail(TN_ERR_VALUE,
            "no tensor `weight` with 2 to 5 dimensions; expected a Linear or a convolution");
    return NULL;
}

static tn_status replace_tensors(run *r, tn_module *old)
{
    static const char *const names[] = { "weight", "bias" };
    tn_module *made = make_for_program(r, old);
    tn_status status = made != NULL ? TN_OK : tn_error_last_code();

    for (int i = 0; i < 2 && status == TN_OK; i++)
        if (tn_module_slot_kind(made, names[i]) != 0 && tn_module_get(made, names[i]) != TN_NONE)
            status = tn_module_set(old, names[i], tn_module_get(made, names[i]));
    tn_module_drop(made);
    return status == TN_OK ? TN_OK : tn_error_prefix("head %q: ", r->head);
}

static tn_status replace_child(run *r, tn_module *old)
{
    tn_module *made = make_like(old, class_option(old), r->classes);
    tn_status status;

    if (made == NULL)
        return tn_error_prefix("head %q: ", r->head);
    status = tn_module_set_child(r->model, r->head, made, true);
    tn_module_drop(made);
    return status;
}

/* Finds the module that is replaced. */
static tn_module *open_head(run *r)
{
    const char *given = setting_text(r->set, SET_HEAD);
    tn_module *head;

    r->head = given != NULL ? tn_strdup(given) : find_head(r->model);
    head = r->head != NULL ? tn_module_find(r->model, r->head) : NULL;
    if (head == NULL && r->head != NULL)
        tn_error_prefix("--head: ");
    if (head == NULL || class_option(head) != NULL)
        return head;
    tn_fail(TN_ERR_VALUE,
            "--head: module %q (%s) has no option for the number of classes; expected one with "
            "%s, %s or %s",
            r->head, tn_module_type(head), class_options[0], class_options[1], class_options[2]);
    return NULL;
}

tn_status head_replace(run *r)
{
    tn_module *head;
    const char *option;

    if (r->classes == 0)
        return tn_fail(TN_ERR_VALUE,
                       "--data: the dataset has no classes; expected one with classes "
                       "for the new head");
    head = open_head(r);
    if (head == NULL)
        return tn_error_last_code();
    if (r->program != NULL)
        return replace_tensors(r, head);
    option = class_option(r->model);
    /* The spec of a layer such as a whole network names its options, not its children, unless the
     * children differ from what the options make. */
    if (option != NULL && options_fit(r->model, option))
        return replace_model(r, option);
    return replace_child(r, head);
}
