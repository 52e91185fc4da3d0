/* SPDX-License-Identifier: MIT
 *
 * Loads the state of an optimizer. Everything is checked and copied first, so that a state that
 * does not fit changes nothing. */
#include "lib/train/private.h"

#include <math.h>

/* A load in progress: what the optimizer will have. */
struct loader {
    tn_optimizer *optimizer;
    const tn_state *state;
    int64_t *ids;      /* ids[i] is the number of parameter i in the state */
    tn__param *params; /* states, steps and names of the parameters */
    tn__group *groups;
};

/* The parts of a name "KIND.INDEX.REST". */
struct parts {
    int64_t index;
    const char *rest;
};

static bool split(const char *name, const char *kind, struct parts *parts)
{
    size_t length = strlen(kind), digits;
    char number[24];

    if (strncmp(name, kind, length) != 0 || name[length] != '.')
        return false;
    name += length + 1;
    digits = strspn(name, "0123456789");
    if (digits == 0 || digits >= sizeof number || name[digits] != '.')
        return false;
    tn_snprint(number, sizeof number, "%.*s", (int)digits, name);
    parts->rest = name + digits + 1;
    return tn_read_int(number, &parts->index);
}

/* ---- which parameter is which ---------------------------------------------------------------- */

static tn_value value_of(const struct loader *loader, int64_t group, const char *key)
{
    char name[64];
    int64_t found;

    tn_snprint(name, sizeof name, "param_groups.%lld.%s", (long long)group, key);
    found = tn_state_find(loader->state, name);
    return found >= 0 ? tn_state_value(loader->state, found) : tn_value_none();
}

static bool is_list(const tn_value *value)
{
    return value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE;
}

/* Reads the numbers of the parameters of a group. The parameters of an optimizer are in the order
 * of its groups. */
static tn_status read_members(struct loader *loader, int64_t group, int64_t *place)
{
    const tn_optimizer *optimizer = loader->optimizer;
    tn_value list = value_of(loader, group, "params");
    int64_t first = *place, count;

    while (*place < optimizer->count && optimizer->params[*place].group == group)
        ++*place;
    count = *place - first;
    if (!is_list(&list))
        return tn_fail(TN_ERR_TYPE,
                       "state entry \"param_groups.%lld.params\": wrong kind, got %s; expected a "
                       "list of integers",
                       (long long)group, tn__value_kind_name(list.kind));
    if ((int64_t)list.count != count)
        /* PyTorch's wording */
        return tn_fail(TN_ERR_VALUE,
                       "loaded state dict contains a parameter group that doesn't match the size "
                       "of optimizer's group: group %lld, got %lld parameters; expected %lld",
                       (long long)group, (long long)list.count, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        if (list.as.list[i].kind != TN_VALUE_INT)
            return tn_fail(TN_ERR_TYPE,
                           "state entry \"param_groups.%lld.params\": element %lld: wrong kind, "
                           "got %s; expected an integer",
                           (long long)group, (long long)i,
                           tn__value_kind_name(list.as.list[i].kind));
        loader->ids[first + i] = list.as.list[i].as.i;
    }
    return TN_OK;
}

static tn_status read_groups(struct loader *loader)
{
    int64_t groups = 0, place = 0;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < tn_state_count(loader->state); i++) {
        const char *name = tn_state_name(loader->state, i);
        const tn_value value = tn_state_value(loader->state, i);
        struct parts parts;

        if (split(name, "param_groups", &parts))
            groups = parts.index >= groups ? parts.index + 1 : groups;
        else if (!split(name, "state", &parts) &&
                 !(strcmp(name, "state") == 0 && value.kind == TN_VALUE_DICT && value.count == 0))
            return tn_fail(TN_ERR_KEY,
                           "state entry \"%s\": does not belong to an optimizer; expected names "
                           "like \"state.0.step\" and \"param_groups.0.lr\" (tn_state_part returns "
                           "a part of a state)",
                           name);
    }
    if (groups != loader->optimizer->n_groups)
        /* PyTorch's wording */
        return tn_fail(TN_ERR_VALUE,
                       "loaded state dict has a different number of parameter groups, got %lld; "
                       "expected %lld",
                       (long long)groups, (long long)loader->optimizer->n_groups);
    for (int64_t i = 0; i < groups && status == TN_OK; i++)
        status = read_members(loader, i, &place);
    return status;
}

/* Returns the parameter with this number in the state; -1 if there is none. */
static int64_t find_parameter(const struct loader *loader, int64_t id)
{
    const int64_t count = loader->optimizer->count;

    if (id >= 0 && id < count && loader->ids[id] == id)
        return id;
    for (int64_t i = 0; i < count; i++)
        if (loader->ids[i] == id)
            return i;
    return -1;
}

/* ---- the states of parameters ---------------------------------------------------------------- */

/* Returns a copy of a state tensor on the device of the parameter, with one reference. A floating
 * tensor gets the dtype of a floating parameter. A number, such as a rate, keeps its own. */
static tn_tensor *copy_for(const tn_tensor *parameter, const tn_tensor *from)
{
    const uint64_t both = TN_BIT(tn_tensor_dtype(parameter)) | TN_BIT(tn_tensor_dtype(from));
    tn_tensor *copy;
    tn_meta meta;

    tn__tensor_meta(from, &meta);
    meta.flags = 0;
    meta.offset = 0;
    if ((both & ~TN_MASK_FLOAT) == 0 &&
        (tn_tensor_ndim(from) > 0 || tn_tensor_ndim(parameter) == 0))
        meta.dtype = tn_tensor_dtype(parameter);
    copy = tn__tensor_make(&meta, tn_tensor_device(parameter));
    if (copy != NULL && tn__copy(copy, from) != TN_OK) {
        tn_tensor_drop(copy);
        return NULL;
    }
    return copy;
}

static tn_status read_steps(tn__param *param, const char *name, double steps)
{
    if (!(steps >= 0 && steps < 9e15 && steps == floor(steps)))
        return tn_fail(TN_ERR_VALUE,
                       "state entry \"%s\": wrong value, got %g; expected a whole number of steps "
                       "from 0 to 9e15",
                       name, steps);
    param->steps = (int64_t)steps;
    return TN_OK;
}

static tn_status read_tensor(tn__param *param, const tn_tensor *parameter, const char *name,
                             const char *key, tn_tensor *from)
{
    tn_scalar number;
    tn_tensor *copy;
    tn_status status;

    if (strcmp(key, "step") == 0) {
        status = tn_tensor_scalar(from, &number);
        return status == TN_OK ? read_steps(param, name, tn_scalar_as_float(number)) : status;
    }
    copy = copy_for(parameter, from);
    status = copy != NULL ? tn__optimizer_state_store(param, key, copy) : tn_error_last_code();
    tn_tensor_drop(copy);
    return status;
}

/* Reads a state that is a number in the file: as a tensor without dimensions. */
static tn_status read_number(tn__param *param, const tn_tensor *parameter, const char *name,
                             const char *key, const tn_value *value)
{
    const bool whole = value->kind == TN_VALUE_INT;
    uint64_t scope;
    tn_tensor *tensor;
    tn_status status;

    if (strcmp(key, "step") == 0)
        return read_steps(param, name, whole ? (double)value->as.i : value->as.f);
    scope = tn_scope_begin();
    tensor = whole ? tn_tensor_from(&value->as.i, TN_I64, TN_SCALAR_SHAPE)
                   : tn_tensor_from(&value->as.f, TN_F64, TN_SCALAR_SHAPE);
    status = tensor != NULL ? read_tensor(param, parameter, name, key, tensor)
                            : tn_error_last_code();
    tn_scope_end(scope);
    return status;
}

/* ---- states that are lists ------------------------------------------------------------------- */

/* A state that PyTorch keeps as a list of tensors, such as the history of LBFGS: a file has it as
 * entries NAME.0, NAME.1, ... It becomes one tensor, with a row for each. */
struct rows {
    const char *name; /* of an entry, in the state */
    size_t stem;      /* the length of the name without the number */
    int64_t number;   /* of that entry */
};

/* Returns entry `i`, NULL if there is none. */
static tn_tensor *row_at(const struct loader *loader, const struct rows *rows, int64_t i)
{
    tn__text text = { 0 };
    char *name;
    int64_t at;

    tn__text_add(&text, "%.*s%lld", (int)rows->stem, rows->name, (long long)i);
    name = tn__text_take(&text);
    at = name != NULL ? tn_state_find(loader->state, name) : -1;
    tn_free(name);
    if (at < 0 || tn_state_value(loader->state, at).kind != TN_VALUE_TENSOR)
        return NULL;
    return tn_state_value(loader->state, at).as.tensor;
}

/* Returns whether the entry is one of a list: its name ends with a number, and there are the first
 * one and the one before. */
static bool in_rows(const struct loader *loader, const char *name, struct rows *rows)
{
    const char *last = strrchr(name, '.') + 1;

    *rows = (struct rows){ .name = name, .stem = (size_t)(last - name) };
    if (*last == '\0' || strspn(last, "0123456789") != strlen(last) ||
        !tn_read_int(last, &rows->number))
        return false;
    return rows->number == 0 ||
           (row_at(loader, rows, 0) != NULL && row_at(loader, rows, rows->number - 1) != NULL);
}

static bool same_shape(const tn_tensor *a, const tn_tensor *b)
{
    bool same = tn_tensor_ndim(a) == tn_tensor_ndim(b);

    for (int32_t d = 0; same && d < tn_tensor_ndim(a); d++)
        same = tn_tensor_size(a, d) == tn_tensor_size(b, d);
    return same;
}

/* Returns the first `count` rows as one tensor, with one reference. */
static tn_tensor *join(const struct loader *loader, const struct rows *rows, int64_t count)
{
    tn_tensor *first = row_at(loader, rows, 0), *all;
    int64_t shape[TN_MAX_DIMS], n = 0;
    uint64_t scope = tn_scope_begin();

    shape[n++] = count;
    for (int64_t d = 0; d < tn_tensor_ndim(first) && n < TN_MAX_DIMS; d++)
        shape[n++] = tn_tensor_size(first, d);
    all = tn_tensor_ndim(first) < TN_MAX_DIMS
              ? tn_tensor_empty((tn_ints){ shape, n }, tn_tensor_dtype(first),
                                tn_tensor_device(first))
              : NULL;
    for (int64_t i = 0; i < count && all != NULL; i++) {
        const tn_tensor *row = row_at(loader, rows, i);
        tn_tensor *to = tn_tensor_as_strided(
            all, tn_tensor_shape(first),
            (tn_ints){ tn_tensor_strides(all).at + 1, tn_tensor_ndim(first) },
            i * tn_tensor_numel(first));

        if (to == NULL || tn__copy(to, row) != TN_OK)
            all = NULL;
    }
    if (all != NULL)
        tn_tensor_keep(all);
    tn_scope_end(scope);
    return all;
}

static tn_status read_rows(struct loader *loader, int64_t place, const struct rows *rows,
                           const char *key)
{
    const tn_tensor *first = row_at(loader, rows, 0);
    tn__text text = { 0 };
    tn_tensor *all, *row;
    int64_t count = 0;
    tn_status status;
    char *name;

    for (; (row = row_at(loader, rows, count)) != NULL; count++)
        if (!same_shape(row, first) || tn_tensor_dtype(row) != tn_tensor_dtype(first))
            return tn_fail(TN_ERR_VALUE,
                           "state entry \"%s\": entry %lld of the list has another shape or "
                           "dtype; expected the same for all",
                           rows->name, (long long)count);
    tn__text_add(&text, "%.*s", (int)(strrchr(key, '.') - key), key);
    name = tn__text_take(&text);
    all = name != NULL ? join(loader, rows, count) : NULL;
    status = all != NULL
                 ? read_tensor(&loader->params[place], loader->optimizer->params[place].tensor,
                               rows->name, name, all)
                 : tn_error_last_code();
    tn_tensor_drop(all);
    tn_free(name);
    return status;
}

/* Reads a list of numbers as a tensor of one dimension; a list of None is no state yet. */
static tn_status read_list(tn__param *param, const tn_tensor *parameter, const char *name,
                           const char *key, const tn_value *list)
{
    double *numbers = tn_malloc((list->count + 1) * sizeof *numbers);
    uint64_t scope = tn_scope_begin();
    int64_t count = 0, none = 0;
    tn_status status = numbers != NULL ? TN_OK : TN_ERR_MEMORY;
    tn_tensor *tensor;

    for (uint32_t i = 0; i < list->count && status == TN_OK; i++) {
        const tn_value *value = &list->as.list[i];

        if (value->kind == TN_VALUE_FLOAT || value->kind == TN_VALUE_INT)
            numbers[count++] = value->kind == TN_VALUE_INT ? (double)value->as.i : value->as.f;
        else if (value->kind == TN_VALUE_NONE)
            none++;
        else
            status = tn_fail(TN_ERR_TYPE,
                             "state entry \"%s\": element %lld: wrong kind, got %s; expected a "
                             "tensor or a number",
                             name, (long long)i, tn__value_kind_name(value->kind));
    }
    if (status == TN_OK && (none == 0 || count > 0)) {
        tensor = tn_tensor_from(numbers, TN_F64, TN_SHAPE(count));
        status = tensor != NULL ? read_tensor(param, parameter, name, key, tensor)
                                : tn_error_last_code();
    }
    tn_scope_end(scope);
    tn_free(numbers);
    return status;
}

static tn_status read_state(struct loader *loader, int64_t entry)
{
    const char *name = tn_state_name(loader->state, entry);
    const tn_value value = tn_state_value(loader->state, entry);
    const tn_tensor *parameter;
    struct parts parts;
    struct rows rows;
    int64_t place;

    if (!split(name, "state", &parts))
        return TN_OK;
    place = find_parameter(loader, parts.index);
    if (place < 0)
        return tn_fail(TN_ERR_VALUE,
                       "state entry \"%s\": no parameter group contains %lld; expected a number "
                       "in the list \"params\" of one of the groups, such as "
                       "\"param_groups.0.params\"",
                       name, (long long)parts.index);
    parameter = loader->optimizer->params[place].tensor;
    switch (value.kind) {
    case TN_VALUE_NONE: return TN_OK; /* PyTorch has None for a state that does not exist yet */
    case TN_VALUE_TENSOR:
        if (strchr(parts.rest, '.') != NULL && in_rows(loader, name, &rows))
            return rows.number == 0 ? read_rows(loader, place, &rows, parts.rest) : TN_OK;
        return read_tensor(&loader->params[place], parameter, name, parts.rest, value.as.tensor);
    case TN_VALUE_INT:
    case TN_VALUE_FLOAT:
        return read_number(&loader->params[place], parameter, name, parts.rest, &value);
    case TN_VALUE_LIST:
        return read_list(&loader->params[place], parameter, name, parts.rest, &value);
    default:
        return tn_fail(TN_ERR_TYPE,
                       "state entry \"%s\": wrong kind, got %s; expected a tensor or a number",
                       name, tn__value_kind_name(value.kind));
    }
}

/* ---- the groups ------------------------------------------------------------------------------ */

/* Reads the names of the parameters of a group. If the state has none, they stay. */
static tn_status read_names(struct loader *loader, int64_t group)
{
    const tn_optimizer *optimizer = loader->optimizer;
    const tn_value list = value_of(loader, group, "param_names");
    int64_t at = 0;

    for (int64_t i = 0; i < optimizer->count; i++) {
        const char *name = optimizer->params[i].name;

        if (optimizer->params[i].group != group)
            continue;
        if (is_list(&list) && at < list.count && list.as.list[at].kind == TN_VALUE_STRING)
            name = list.as.list[at].as.s;
        at++;
        if (name != NULL && (loader->params[i].name = tn_strdup(name)) == NULL)
            return TN_ERR_MEMORY;
    }
    return TN_OK;
}

/* The options of a group that the state has. */
struct options {
    tn_value *values;
    const char **names;
    int64_t count;
    double initial_rate;
    double rate; /* below 0, which only a scheduler makes; else 0 */
};

static bool is_known(const char *key)
{
    return strcmp(key, "params") == 0 || strcmp(key, "param_names") == 0;
}

static tn_status read_option(const struct loader *loader, int64_t group, int64_t entry,
                             struct options *options)
{
    const tn_optimizer *optimizer = loader->optimizer;
    const char *name = tn_state_name(loader->state, entry);
    tn_value value = tn_state_value(loader->state, entry);
    struct parts parts;
    tn_scalar number;

    if (!split(name, "param_groups", &parts) || parts.index != group || is_known(parts.rest))
        return TN_OK;
    if (value.kind == TN_VALUE_TENSOR) { /* PyTorch's learning rate may be a tensor */
        tn_status status = tn_tensor_scalar(value.as.tensor, &number);

        if (status != TN_OK)
            return status;
        value = tn_value_float(tn_scalar_as_float(number));
    }
    if (strcmp(parts.rest, "initial_lr") == 0 &&
        (value.kind == TN_VALUE_FLOAT || value.kind == TN_VALUE_INT)) {
        options->initial_rate = value.kind == TN_VALUE_FLOAT ? value.as.f : (double)value.as.i;
    } else if (strcmp(parts.rest, "lr") == 0 && value.kind == TN_VALUE_FLOAT && value.as.f < 0) {
        options->rate = value.as.f;
    } else if (optimizer->def->options != NULL &&
               tn__options_find(optimizer->def->options, parts.rest) != NULL) {
        options->names[options->count] = parts.rest;
        options->values[options->count++] = value;
    } else if (value.kind != TN_VALUE_NONE && !(value.kind == TN_VALUE_BOOL && value.as.i == 0)) {
        /* An unknown option with the value None or False is ignored silently: PyTorch saves
         * foreach, fused and differentiable with these values. */
        tn_log(TN_LOG_WARNING,
               "optimizer %s: state entry \"%s\": no option of the optimizer, ignored",
               optimizer->def->name, name);
    }
    return TN_OK;
}

static tn_status read_group(struct loader *loader, int64_t group)
{
    const int64_t entries = tn_state_count(loader->state);
    struct options options = { .initial_rate = NAN };
    tn_status status = read_names(loader, group);

    if (status != TN_OK)
        return status;
    options.values = tn_malloc((size_t)(entries + 1) * (sizeof(tn_value) + sizeof(char *)));
    if (options.values == NULL)
        return TN_ERR_MEMORY;
    options.names = (const char **)(void *)(options.values + entries + 1);
    for (int64_t i = 0; i < entries && status == TN_OK; i++)
        status = read_option(loader, group, i, &options);
    if (options.rate < 0 && isnan(options.initial_rate)) { /* the group has no scheduler */
        options.names[options.count] = "lr";
        options.values[options.count++] = tn_value_float(options.rate);
        options.rate = 0;
    }
    if (status == TN_OK)
        status = tn__optimizer_group_from(loader->optimizer, group, options.values, options.names,
                                          options.count, &loader->groups[group]);
    if (status == TN_OK)
        loader->groups[group].initial_rate = options.initial_rate;
    if (status == TN_OK && options.rate < 0)
        status = tn__optimizer_put_rate(loader->optimizer, &loader->groups[group], options.rate);
    tn_free(options.values);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Gives the optimizer what was read. The loader gets what the optimizer had. */
static void commit(struct loader *loader)
{
    tn_optimizer *optimizer = loader->optimizer;

    for (int64_t i = 0; i < optimizer->count; i++) {
        tn__param *param = &optimizer->params[i], before = *param;

        *param = loader->params[i];
        param->tensor = before.tensor;
        param->group = before.group;
        before.tensor = NULL;
        loader->params[i] = before;
    }
    for (int64_t i = 0; i < optimizer->n_groups; i++)
        tn__optimizer_group_take(optimizer, i, &loader->groups[i]);
}

static tn_status load(struct loader *loader)
{
    const tn_optimizer *optimizer = loader->optimizer;
    tn_status status = read_groups(loader);

    for (int64_t i = 0; i < optimizer->n_groups && status == TN_OK; i++)
        status = read_group(loader, i);
    for (int64_t i = 0; i < tn_state_count(loader->state) && status == TN_OK; i++)
        status = read_state(loader, i);
    if (status == TN_OK)
        commit(loader);
    else
        tn_error_prefix("optimizer %s: ", optimizer->def->name);
    return status;
}

static tn_status load_from(tn_optimizer *optimizer, const tn_state *state)
{
    struct loader loader = { .optimizer = optimizer, .state = state };
    const size_t count = (size_t)optimizer->count, groups = (size_t)optimizer->n_groups;
    tn_status status = TN_ERR_MEMORY;

    loader.ids = tn_calloc(count, sizeof *loader.ids);
    loader.params = tn_calloc(count, sizeof *loader.params);
    loader.groups = tn_calloc(groups, sizeof *loader.groups);
    if (loader.ids != NULL && loader.params != NULL && loader.groups != NULL)
        status = load(&loader);
    for (size_t i = 0; i < count && loader.params != NULL; i++) {
        tn__optimizer_state_clear(&loader.params[i]);
        tn_free(loader.params[i].name);
    }
    for (size_t i = 0; i < groups && loader.groups != NULL; i++)
        tn__optimizer_group_clear(&loader.groups[i]);
    tn_free(loader.ids);
    tn_free(loader.params);
    tn_free(loader.groups);
    return status;
}

tn_status tn_optimizer_load_state(tn_optimizer *optimizer, const tn_state *state)
{
    tn_state *copy;
    tn_status status;

    if (optimizer == NULL || state == NULL)
        return tn__error_null_of("tn_optimizer_load_state", "optimizer, state", optimizer, state);
    copy = tn_state_count(state) > 0 ? tn_state_part(state, "") : tn_state_new();
    if (copy == NULL)
        return tn_error_last_code();
    status = tn__step_hooks_run(optimizer, TN__STEP_LOAD_PRE, copy, "");
    if (status == TN_OK)
        status = load_from(optimizer, copy);
    tn_state_drop(copy);
    return status == TN_OK ? tn__step_hooks_run(optimizer, TN__STEP_LOAD, NULL, NULL) : status;
}
