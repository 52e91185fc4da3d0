/* SPDX-License-Identifier: MIT
 *
 * The optimizer object: making it from a spec and parameters with their names. step.c performs its
 * steps. */
#include "core/base/vector.h"
#include "lib/train/private.h"

/* ---- life ------------------------------------------------------------------------------------ */

tn_optimizer *tn__optimizer_keep(tn_optimizer *optimizer)
{
    atomic_fetch_add_explicit(&optimizer->refs, 1, memory_order_relaxed);
    return optimizer;
}

static void param_clear(tn__param *param)
{
    tn__optimizer_state_clear(param);
    tn_free(param->name);
    tn_tensor_drop(param->tensor);
}

void tn_optimizer_drop(tn_optimizer *optimizer)
{
    if (optimizer == NULL ||
        atomic_fetch_sub_explicit(&optimizer->refs, 1, memory_order_acq_rel) != 1)
        return;
    tn__hooks_clear(&optimizer->hooks);
    for (int64_t i = 0; i < optimizer->count; i++)
        param_clear(&optimizer->params[i]);
    for (int64_t i = 0; i < optimizer->n_groups; i++)
        tn__optimizer_group_clear(&optimizer->groups[i]);
    tn_free(optimizer->params);
    tn_free(optimizer->groups);
    tn_free(optimizer->defaults);
    tn_free(optimizer);
}

/* Adds all tensors of the optimizer to `seen`. */
static tn_status see_parameters(const tn_optimizer *optimizer, tn__map *seen)
{
    for (int64_t i = 0; i < optimizer->count; i++)
        if (tn__map_add(seen, optimizer->params[i].tensor) < 0)
            return TN_ERR_MEMORY;
    return TN_OK;
}

/* The tensors of a new group, and their names (NULL: none). */
struct given {
    tn_tensor *const *parameters;
    const char *const *names;
    int64_t count;
    tn__naming naming;
};

static tn_status take_parameter(tn_optimizer *optimizer, const struct given *given, int64_t place,
                                tn__map *seen)
{
    const char *name = optimizer->def->name;
    tn_tensor *tensor = given->parameters[place];
    int64_t group = optimizer->n_groups - 1;
    char *own = NULL;
    int is_new;

    if (tensor == NULL) {
        char what[128];

        tn_snprint(what, sizeof what, "optimizer %s: parameter %lld", name, (long long)place);
        return tn_error_null(what);
    }
    if (tn__is_none(tensor))
        return tn_fail(TN_ERR_TYPE,
                       "optimizer %s: parameter %lld: it is TN_NONE; expected a tensor", name,
                       (long long)place);
    if (!tn_tensor_is_leaf(tensor))
        return tn_fail(TN_ERR_VALUE,
                       "optimizer %s: can't optimize a non-leaf Tensor: operator %s made parameter "
                       "%lld",
                       name, tn_tensor_grad_op(tensor), (long long)place);
    is_new = tn__map_add(seen, tensor);
    if (is_new < 0)
        return TN_ERR_MEMORY;
    if (is_new == 0 && group > 0)
        /* PyTorch's wording */
        return tn_fail(TN_ERR_VALUE,
                       "optimizer %s: some parameters appear in more than one parameter group: "
                       "parameter %lld of the new group",
                       name, (long long)place);
    if (is_new == 0) {
        tn_log(TN_LOG_WARNING,
               "optimizer %s: parameter %lld occurs twice in the list; expected each parameter "
               "once",
               name, (long long)place);
        return TN_OK;
    }
    if (given->names != NULL && (own = tn_strdup(given->names[place])) == NULL)
        return TN_ERR_MEMORY;
    optimizer->params[optimizer->count++] = (tn__param){ .tensor = tn_tensor_keep(tensor),
                                                         .name = own,
                                                         .group = group };
    return TN_OK;
}

/* Checks that either all parameters of the group have names or none has, and that the other groups
 * of the optimizer have names if and only if this group has. If the names of the first group are
 * those of a module, later groups may be without names. */
static tn_status check_names(const tn_optimizer *optimizer, const struct given *given)
{
    const char *name = optimizer->def->name;

    for (int64_t i = 0; given->names != NULL && i < given->count; i++)
        if (given->names[i] == NULL)
            /* PyTorch's wording */
            return tn_fail(TN_ERR_VALUE,
                           "optimizer %s: all optimizer params should be with/without names. Some "
                           "param names are missing: that of parameter %lld",
                           name, (long long)i);
    if (optimizer->count > 0 && optimizer->naming != TN__NAMES_MODULE &&
        given->naming != optimizer->naming)
        /* PyTorch's wording */
        return tn_fail(TN_ERR_VALUE,
                       "optimizer %s: all optimizer param groups should be with/without names. "
                       "cannot add param group %s names to the optimizer",
                       name, given->names != NULL ? "with" : "without");
    return TN_OK;
}

/* Adds parameters to the last group. On failure, none of them is added. */
static tn_status take_parameters(tn_optimizer *optimizer, const struct given *given)
{
    int64_t before = optimizer->count, count = given->count;
    tn__map seen = { 0 };
    tn_status status;

    if (count <= 0)
        /* PyTorch's wording */
        return tn_fail(TN_ERR_VALUE, "optimizer %s got an empty parameter list",
                       optimizer->def->name);
    status = check_names(optimizer, given);
    if (status != TN_OK)
        return status;
    if (!tn__vector_room(&optimizer->params, &optimizer->params_capacity, before + count,
                         sizeof *optimizer->params))
        return TN_ERR_MEMORY;
    status = see_parameters(optimizer, &seen);
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = take_parameter(optimizer, given, i, &seen);
    tn__map_free(&seen);
    while (status != TN_OK && optimizer->count > before)
        param_clear(&optimizer->params[--optimizer->count]);
    if (status == TN_OK && before == 0)
        optimizer->naming = given->naming;
    return status;
}

/* Adds a group with options from `spec` or `text`, and its parameters. On failure, the group is not
 * added. */
static tn_status add_group(tn_optimizer *optimizer, const tn__spec *spec, const char *text,
                           const struct given *given)
{
    tn_status status = tn__optimizer_group_new(optimizer, spec, text);

    if (status != TN_OK)
        return status;
    status = take_parameters(optimizer, given);
    if (status != TN_OK)
        tn__optimizer_group_clear(&optimizer->groups[--optimizer->n_groups]);
    return status;
}

tn_status tn_optimizer_add_group_named(tn_optimizer *optimizer, tn_tensor *const *parameters,
                                       const char *const *names, int64_t count, const char *options)
{
    const struct given given = { parameters, names, count,
                                 names != NULL ? TN__NAMES_GIVEN : TN__NAMES_NONE };

    if (optimizer == NULL || (parameters == NULL && count > 0))
        return tn__error_null_of("tn_optimizer_add_group", "optimizer, parameters", optimizer,
                                 parameters);
    return add_group(optimizer, NULL, options, &given);
}

tn_status tn_optimizer_add_group(tn_optimizer *optimizer, tn_tensor *const *parameters,
                                 int64_t count, const char *options)
{
    return tn_optimizer_add_group_named(optimizer, parameters, NULL, count, options);
}

static tn_optimizer *from_spec(const tn__spec *spec, const struct given *given)
{
    if (spec->type[0] == '\0') {
        tn_fail(TN_ERR_FORMAT, "optimizer: wrong form, got %q; expected Name(name=value, ...)",
                spec->text);
        return NULL;
    }
    const tn__entry *entry = tn__registry_use(TN_KIND_tn_optimizer_def, spec->type);
    if (entry == NULL)
        return NULL;
    tn_optimizer *optimizer = tn_calloc(1, sizeof *optimizer);
    if (optimizer == NULL)
        return NULL;
    atomic_init(&optimizer->refs, 1);
    optimizer->def = (const tn_optimizer_def *)entry->contribution;
    optimizer->plugin = entry->plugin;
    if (add_group(optimizer, spec, NULL, given) == TN_OK)
        return optimizer;
    tn_optimizer_drop(optimizer);
    return NULL;
}

static tn_optimizer *parse(const char *text, const struct given *given)
{
    tn__spec *spec = tn__spec_parse(text);
    tn_optimizer *optimizer = spec != NULL ? from_spec(spec, given) : NULL;

    tn__spec_free(spec);
    return optimizer;
}

tn_optimizer *tn_optimizer_parse_named(tn_tensor *const *parameters, const char *const *names,
                                       int64_t count, const char *text)
{
    const struct given given = { parameters, names, count,
                                 names != NULL ? TN__NAMES_GIVEN : TN__NAMES_NONE };

    if (text == NULL || (parameters == NULL && count > 0)) {
        tn__error_null_of("tn_optimizer_parse", "text, parameters", text, parameters);
        return NULL;
    }
    return parse(text, &given);
}

tn_optimizer *tn_optimizer_parse(tn_tensor *const *parameters, int64_t count, const char *text)
{
    return tn_optimizer_parse_named(parameters, NULL, count, text);
}

static tn_optimizer *for_module(tn_module *module, const char *text)
{
    tn__walk walk = { NULL, 0, 0 };
    tn_optimizer *optimizer = NULL;
    tn_tensor **parameters;

    if (tn__walk_collect(module, TN_SLOT_PARAMETER, false, &walk) != TN_OK)
        return NULL;
    parameters = tn_calloc((size_t)walk.count + 1, sizeof *parameters + sizeof(char *));
    if (parameters != NULL) {
        const char **names = (const char **)(void *)(parameters + walk.count + 1);
        const struct given given = { parameters, names, walk.count, TN__NAMES_MODULE };

        for (int64_t i = 0; i < walk.count; i++) {
            parameters[i] = walk.at[i].tensor;
            names[i] = walk.at[i].path;
        }
        optimizer = parse(text, &given);
    }
    tn_free(parameters);
    tn__walk_free(&walk);
    return optimizer;
}

tn_optimizer *tn_optimizer_newv(tn_module *module, const char *format, va_list args)
{
    tn_optimizer *optimizer;
    char *text;

    if (module == NULL || format == NULL) {
        tn__error_null_of("tn_optimizer_new", "module, format", module, format);
        return NULL;
    }
    text = tn__text_from_format(format, args);
    if (text == NULL)
        return NULL;
    optimizer = for_module(module, text);
    tn_free(text);
    return optimizer;
}

tn_optimizer *tn_optimizer_new(tn_module *module, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tn_optimizer *optimizer = tn_optimizer_newv(module, format, args);
    va_end(args);
    return optimizer;
}
