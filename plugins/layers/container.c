/* SPDX-License-Identifier: MIT
 *
 * Containers: Sequential, ModuleList, ModuleDict and Residual contain modules, ParameterList and
 * ParameterDict contain parameters. <tenon/container.h> has the functions for them. */
#include "helpers.h"

#include <string.h>

struct container {
    tn_values entries;
};

#define ENTRIES(help)                                                                              \
    {                                                                                              \
        TN_OPTION_ROW(struct container, entries, NULL, help, TN_OPTION_KIND_VALUE,                 \
                      TN_OPTION_MANY),                                                             \
            TN_OPTION_END                                                                          \
    }
static const tn_option list_options[] = ENTRIES(
    "the modules in order; positional ones are named 0, 1, ...");
static const tn_option dict_options[] = ENTRIES("the modules by name: act=ReLU(), fc=Linear(4, 3)");
static const tn_option residual_options[] = ENTRIES(
    "the modules of the branch in order, and optionally shortcut= and activation=");
static const tn_option parameters_options[] = ENTRIES(
    "shapes, optionally with a dtype: (2, 3), (4, float64); by name in a ParameterDict");

/* ---- modules --------------------------------------------------------------------------------- */

/* Looks the name up by hash, so that the time to build a list is proportional to its length. */
static bool has_child(tn_module *self, const char *name)
{
    return tn_module_slot_kind(self, name) == TN_SLOT_CHILD;
}

static tn_status add(tn_module *self, const char *name, const tn_value *value)
{
    const char *type = tn_module_type(self);
    tn_module *child = NULL;
    if (has_child(self, name))
        return tn_fail(TN_ERR_VALUE, "%s: module \"%s\": given twice; expected once", type, name);
    if (value->kind == TN_VALUE_SPEC)
        child = tn_module_parse(value->as.s);
    else if (value->kind == TN_VALUE_MODULE)
        child = tn_module_keep(value->as.module);
    else
        tn_fail(TN_ERR_TYPE, "wrong type, got %s; expected a module, as in Linear(4, 3)",
                tn_value_kind_name(value->kind));
    tn_status status = child != NULL ? tn_module_add_child(self, name, child)
                                     : tn_error_prefix("%s: module \"%s\": ", type, name);
    tn_module_drop(child);
    return status;
}

/* Returns the name of entry `i`, or its index as text if it has no name. */
static const char *name_of(const struct container *s, int64_t i, char *place, size_t size)
{
    const char *name = s->entries.names != NULL ? s->entries.names[i] : NULL;
    tn_snprint(place, size, "%lld", (long long)i);
    return name != NULL ? name : place;
}

static tn_status build(tn_module *self)
{
    const struct container *s = tn_module_data(self);
    tn_status status = TN_OK;
    char place[24];
    for (int64_t i = 0; i < s->entries.count && status == TN_OK; i++)
        status = add(self, name_of(s, i, place, sizeof place), &s->entries.at[i]);
    return status;
}

/* The names of a list must be 0, 1, ... in order. A spec that is the repr of a part of a list, such
 * as "(3): ...", is an error. */
static tn_status list_build(tn_module *self)
{
    tn_status status = build(self);
    for (int64_t i = 0; i < tn_module_child_count(self) && status == TN_OK; i++) {
        const char *name = tn_module_child_name(self, i);
        char place[24];
        tn_snprint(place, sizeof place, "%lld", (long long)i);
        if (strcmp(name, place) != 0)
            status = tn_fail(
                TN_ERR_VALUE,
                "ModuleList: entry %lld: wrong name, got \"%s\"; expected no name: use ModuleDict "
                "for names",
                (long long)i, name);
    }
    return status;
}

static tn_status dict_build(tn_module *self)
{
    const struct container *s = tn_module_data(self);
    for (int64_t i = 0; i < s->entries.count; i++)
        if (s->entries.names == NULL || s->entries.names[i] == NULL)
            return tn_fail(TN_ERR_TYPE, "%s: entry %lld: no key; expected key=value",
                           tn_module_type(self), (long long)i);
    return build(self);
}

static tn_tensor *sequential_forward(tn_module *self, tn_tensor *input)
{
    return tn_module_call_children(self, input);
}

/* Adds the values of `from` to `to` as one value: a tuple if there are several. `all` has space for
 * them. */
static tn_status one_value(const tn_pack *from, tn_value *all, tn_pack *to)
{
    int64_t count = tn_pack_count(from);
    tn_value tuple = { .kind = TN_VALUE_TUPLE, .count = (uint32_t)count };
    if (count == 1)
        return tn_pack_add(to, NULL, tn_pack_at(from, 0));
    for (int64_t i = 0; i < count; i++)
        all[i] = tn_pack_at(from, i);
    tuple.as.list = all;
    return tn_pack_add(to, NULL, tuple);
}

/* Calls a child with the values of *from as one value, and replaces *from by the results. */
static tn_status pass(tn_module *child, tn_pack **from)
{
    int64_t count = tn_pack_count(*from);
    tn_value *all = tn_malloc((size_t)(count > 0 ? count : 1) * sizeof *all);
    tn_pack *input = tn_pack_new(), *output = tn_pack_new();
    tn_status status = all != NULL && input != NULL && output != NULL ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = one_value(*from, all, input);
    if (status == TN_OK)
        status = tn_module_call_pack(child, input, output);
    tn_free(all);
    tn_pack_drop(input);
    tn_pack_drop(*from);
    *from = output;
    return status;
}

static tn_status move_values(const tn_pack *from, tn_pack *to)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_pack_count(from) && status == TN_OK; i++)
        status = tn_pack_add(to, tn_pack_name(from, i), tn_pack_at(from, i));
    return status;
}

/* Passes one value to the first module, and the results of each module to the next. The results are
 * those of the last module. */
static tn_status sequential_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const char *name = tn_pack_count(input) == 1 ? tn_pack_name(input, 0) : "";
    if (name != NULL && name[0] != '\0' && strcmp(name, "input") != 0)
        return tn_fail(TN_ERR_TYPE, "Sequential: argument %q: unknown name; expected input", name);
    if (name != NULL && name[0] == '\0')
        return tn_fail(TN_ERR_TYPE, "Sequential: inputs: wrong number, got %lld; expected 1",
                       (long long)tn_pack_count(input));
    tn_pack *at = tn_pack_new();
    tn_status status = at != NULL ? tn_pack_add(at, NULL, tn_pack_at(input, 0)) : TN_ERR_MEMORY;
    for (int64_t i = 0; i < tn_module_child_count(self) && status == TN_OK; i++)
        status = pass(tn_module_child_at(self, i), &at);
    if (status == TN_OK)
        status = move_values(at, output);
    tn_pack_drop(at);
    return status;
}

const tn_layer_def layer_sequential = {
    TN_HEAD(tn_layer_def),
    .name = "Sequential",
    .help = "feeds its input through its modules in order",
    .options = list_options,
    .data_size = sizeof(struct container),
    .version = 1,
    .build = build,
    .forward = sequential_forward,
    .call = sequential_call,
    .flags = TN_LAYER_THROUGH | TN_LAYER_LIST | TN_LAYER_KEEP_KEYS | TN_LAYER_READS_INPUT,
};

const tn_layer_def layer_module_list = {
    TN_HEAD(tn_layer_def),
    .name = "ModuleList",
    .help = "modules in order, for a layer that calls them itself",
    .options = list_options,
    .data_size = sizeof(struct container),
    .version = 1,
    .build = list_build,
    .flags = TN_LAYER_THROUGH | TN_LAYER_LIST | TN_LAYER_COLLAPSE,
};

const tn_layer_def layer_module_dict = {
    TN_HEAD(tn_layer_def),
    .name = "ModuleDict",
    .help = "modules by name, for a layer that calls them itself",
    .options = dict_options,
    .data_size = sizeof(struct container),
    .version = 1,
    .build = dict_build,
    .flags = TN_LAYER_THROUGH | TN_LAYER_DICT,
};

/* ---- Residual: y = activation(branch(x) + shortcut(x)) --------------------------------------- */

static bool is_other(const char *name)
{
    return strcmp(name, "shortcut") == 0 || strcmp(name, "activation") == 0;
}

/* Adds a name to the chain that residual_forward() calls. */
static bool append(char *chain, size_t size, size_t *length, const char *sign, const char *name)
{
    int64_t more = tn_snprint(chain + *length, size - *length, " %s%s", sign, name);
    bool fits = more < (int64_t)(size - *length) && strpbrk(name, " .*+") == NULL;

    *length += (size_t)more;
    return fits;
}

/* Calls the child `name` with x. Returns x itself if there is no such child. */
static tn_tensor *through(tn_module *self, const char *name, tn_tensor *x)
{
    return x != NULL && has_child(self, name) ? tn_module_call(tn_module_child(self, name), x) : x;
}

/* The forward for names that a chain cannot have. */
static tn_tensor *residual_by_child(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = x;
    for (int64_t i = 0; i < tn_module_child_count(self) && y != NULL; i++)
        if (!is_other(tn_module_child_name(self, i)))
            y = tn_module_call(tn_module_child_at(self, i), y);
    return through(self, "activation", tn_add(y, through(self, "shortcut", x)));
}

static tn_tensor *residual_forward(tn_module *self, tn_tensor *x)
{
    char chain[512] = "";
    size_t length = 0;
    bool fits = true;
    for (int64_t i = 0; i < tn_module_child_count(self) && fits; i++) {
        const char *name = tn_module_child_name(self, i);
        if (!is_other(name))
            fits = append(chain, sizeof chain, &length, "", name);
    }
    fits = fits &&
           append(chain, sizeof chain, &length, "+", has_child(self, "shortcut") ? "shortcut" : "");
    if (fits && has_child(self, "activation"))
        fits = append(chain, sizeof chain, &length, "", "activation");
    return fits ? tn_module_call_chain(self, chain, x) : residual_by_child(self, x);
}

const tn_layer_def layer_residual = {
    TN_HEAD(tn_layer_def),
    .name = "Residual",
    .help = "y = activation(branch(x) + shortcut(x)); shortcut and activation are optional",
    .options = residual_options,
    .data_size = sizeof(struct container),
    .version = 1,
    .build = build,
    .forward = residual_forward,
    .flags = TN_LAYER_THROUGH,
};

/* ---- parameters ------------------------------------------------------------------------------ */

/* Reads the dtype at the end of (2, 3, float64), also in the forms that PyTorch prints:
 * torch.float64, and torch.DoubleTensor in a ParameterDict. */
static const struct {
    const char *printed;
    tn_dtype dtype;
} tensor_types[] = {
    { "FloatTensor", TN_F32 },        { "DoubleTensor", TN_F64 },
    { "HalfTensor", TN_F16 },         { "BFloat16Tensor", TN_BF16 },
    { "LongTensor", TN_I64 },         { "IntTensor", TN_I32 },
    { "ShortTensor", TN_I16 },        { "CharTensor", TN_I8 },
    { "ByteTensor", TN_U8 },          { "BoolTensor", TN_BOOL },
    { "ComplexFloatTensor", TN_C64 }, { "ComplexDoubleTensor", TN_C128 },
};

static tn_status read_dtype(const char *name, tn_dtype *dtype)
{
    if (strncmp(name, "torch.", 6) == 0)
        name += 6;
    if (strncmp(name, "cuda.", 5) == 0)
        name += 5;
    for (size_t i = 0; i < sizeof tensor_types / sizeof *tensor_types; i++) {
        if (strcmp(tensor_types[i].printed, name) == 0) {
            *dtype = tensor_types[i].dtype;
            return TN_OK;
        }
    }
    return tn_dtype_parse(name, dtype);
}

/* Returns a tensor of zeros from a spec: 3, (2, 3) or (2, 3, float64). */
static tn_tensor *zeros_of(const tn_value *value)
{
    const tn_value *list = value;
    uint32_t count = 1;
    int64_t sizes[TN_MAX_DIMS];
    tn_dtype dtype = TN_DTYPE_AUTO;
    if (value->kind == TN_VALUE_TUPLE || value->kind == TN_VALUE_LIST) {
        list = value->as.list;
        count = value->count;
    }
    if (count > 0 && list[count - 1].kind == TN_VALUE_STRING && list != value &&
        read_dtype(list[--count].as.s, &dtype) != TN_OK)
        return NULL;
    bool good = count <= TN_MAX_DIMS;
    for (uint32_t i = 0; i < count && good; i++) {
        good = list[i].kind == TN_VALUE_INT && list[i].as.i >= 0;
        sizes[i] = list[i].as.i;
    }
    if (!good) {
        tn_fail(TN_ERR_TYPE,
                "no tensor and no shape, got %s; expected a tensor, or its shape, at most %d sizes "
                "of 0 or more, as in (2, 3) or (2, 3, float64)",
                tn_value_kind_name(value->kind), TN_MAX_DIMS);
        return NULL;
    }
    return tn_tensor_full((tn_ints){ sizes, count }, 0, dtype, NULL);
}

static tn_status add_tensor(tn_module *self, const char *name, const tn_value *value)
{
    bool dict = strcmp(tn_module_type(self), "ParameterDict") == 0;
    tn_tensor *tensor = value->kind == TN_VALUE_TENSOR ? value->as.tensor
                        : value->kind == TN_VALUE_NONE ? TN_NONE
                                                       : zeros_of(value);
    tn_status status = tensor == NULL ? tn_error_last_code()
                       : dict         ? tn_dict_set_tensor(self, name, tensor)
                                      : tn_list_append_tensor(self, tensor);
    return status == TN_OK ? TN_OK
                           : tn_error_prefix("%s: entry \"%s\": ", tn_module_type(self), name);
}

static tn_status parameters_build(tn_module *self)
{
    const struct container *s = tn_module_data(self);
    bool dict = strcmp(tn_module_type(self), "ParameterDict") == 0;
    tn_status status = TN_OK;
    for (int64_t i = 0; i < s->entries.count && status == TN_OK; i++) {
        const char *given = s->entries.names != NULL ? s->entries.names[i] : NULL;
        char place[24];
        tn_snprint(place, sizeof place, "%lld", (long long)i);
        if (dict && given == NULL)
            return tn_fail(TN_ERR_TYPE, "ParameterDict: entry %lld: no key; expected key=value",
                           (long long)i);
        if (dict && tn_dict_has(self, given))
            return tn_fail(TN_ERR_VALUE, "ParameterDict: entry \"%s\": given twice; expected once",
                           given);
        if (!dict && given != NULL && strcmp(given, place) != 0)
            return tn_fail(
                TN_ERR_VALUE,
                "ParameterList: entry %lld: wrong name, got \"%s\"; expected no name: use "
                "ParameterDict for names",
                (long long)i, given);
        status = add_tensor(self, given != NULL ? given : place, &s->entries.at[i]);
    }
    return status;
}

static tn_status not_called(tn_module *self, const tn_pack *input, tn_pack *output)
{
    (void)input;
    (void)output;
    return tn_fail(TN_ERR_RUNTIME, /* PyTorch's wording */ "%s should not be called.",
                   tn_module_type(self));
}

struct lines {
    layers_text text;
    bool dict;
};

/* Writes "(name)" as repr does for children: in quotes if it could not be read back without. */
static void put_name(layers_text *text, const char *name)
{
    bool plain = *name != '"' && *name != '\'';
    for (const char *at = name; *at != '\0' && plain; at++)
        plain = *at != '(' && *at != ')' && (unsigned char)*at >= ' ';
    layers_put(text, plain ? "(%s)" : "(%q)", name);
}

static tn_status put_one(void *user, const char *path, tn_tensor *tensor)
{
    struct lines *lines = user;
    layers_text *text = &lines->text;
    tn_ints shape = tn_tensor_shape(tensor);
    const tn_device *device = tn_tensor_device(tensor);
    bool near = tn_device_is_host(device) || !tn_device_has_memory(device);
    const char *dtype = tn_dtype_name(tn_tensor_dtype(tensor));
    const char *folder = "";
    if (lines->dict) {
        folder = near ? "" : "cuda.";
        for (size_t i = 0; i < sizeof tensor_types / sizeof *tensor_types; i++)
            if (tensor_types[i].dtype == tn_tensor_dtype(tensor))
                dtype = tensor_types[i].printed;
    }
    layers_put(text, "%s  ", text->used > 0 ? "\n" : "");
    put_name(text, path);
    layers_put(text, ": Parameter containing: [torch.%s%s of size ", folder, dtype);
    for (int64_t i = 0; i < shape.count; i++)
        layers_put(text, "%s%lld", i > 0 ? "x" : "", (long long)shape.at[i]);
    if (!near)
        layers_put(text, " (GPU %d)", tn_device_index(device));
    layers_put(text, "]");
    return TN_OK;
}

static int64_t parameters_repr(tn_module *self, char *out, size_t size)
{
    struct lines lines = { { out, size, 0 }, strcmp(tn_module_type(self), "ParameterDict") == 0 };
    if (tn_module_each_tensor(self, TN_SLOT_PARAMETER, true, put_one, &lines) != TN_OK)
        return -1;
    return lines.text.used;
}

const tn_layer_def layer_parameter_list = {
    TN_HEAD(tn_layer_def),
    .name = "ParameterList",
    .help =
        "parameters in order, for a layer that uses them itself; those given by shape are zeros",
    .options = parameters_options,
    .data_size = sizeof(struct container),
    .version = 1,
    .build = parameters_build,
    .call = not_called,
    .repr = parameters_repr,
    .flags = TN_LAYER_THROUGH | TN_LAYER_LIST | TN_LAYER_PARAMETERS,
};

const tn_layer_def layer_parameter_dict = {
    TN_HEAD(tn_layer_def),
    .name = "ParameterDict",
    .help = "parameters by name, for a layer that uses them itself; those given by shape are zeros",
    .options = parameters_options,
    .data_size = sizeof(struct container),
    .version = 1,
    .build = parameters_build,
    .call = not_called,
    .repr = parameters_repr,
    .flags = TN_LAYER_THROUGH | TN_LAYER_DICT | TN_LAYER_PARAMETERS,
};
