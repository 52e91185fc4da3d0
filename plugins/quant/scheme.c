/* SPDX-License-Identifier: MIT
 *
 * Schemes: how the modules of a network are quantized. A scheme is a layer that maps a module to a
 * module (<tenon/quantize.h>), so its options, help and errors are those of a layer. */
#include "flow.h"

#include <fnmatch.h>
#include <math.h>

struct scheme {
    tn_value types; /* a name, or a list of names; None: all that have a quantized layer */
    tn_value skip;  /* paths with wildcards, in the same form */
    double limit;
    int64_t group;
    const char *activation;
    tn_value range;        /* the module that records the range of an input */
    tn_value weight_range; /* in training, the parametrization of a weight */
};

/* What differs between the schemes (tn_module_user). */
struct storage {
    const char *weight; /* the format */
    bool rows;          /* only for layers with a group option, whose weights are rows */
    const char *input;  /* the scales of the input; NULL: the scheme's option activation */
};

#define SCHEME_ALL                                                                                 \
    TN_OPTION_ROW(struct scheme, types, "None",                                                    \
                  "names of layers, [Linear, Conv2d]; None: all that the scheme can quantize",     \
                  TN_OPTION_KIND_VALUE, TN_OPTION_KEYWORD),                                        \
        TN_OPTION_ROW(struct scheme, skip, "None",                                                 \
                      "paths of modules that stay in float, [head, 'layer1.*']",                   \
                      TN_OPTION_KIND_VALUE, TN_OPTION_KEYWORD),                                    \
        TN_OPTION_ROW(struct scheme, limit, "20.0",                                                \
                      "modules with a smaller SQNR in dB stay in float; 0: none",                  \
                      TN_OPTION_KIND_FLOAT, TN_OPTION_KEYWORD)
#define SCHEME_GROUP(size)                                                                         \
    TN_OPTION_ROW(struct scheme, group, size,                                                      \
                  "numbers of a row of a weight that share a scale; 0: all of the row",            \
                  TN_OPTION_KIND_INT, TN_OPTION_KEYWORD)
#define SCHEME_BLOCK                                                                               \
    TN_OPTION_ROW(struct scheme, activation, "'block'",                                            \
                  "block: products of integers, with a scale for each 32 numbers of the input; "   \
                  "none: of floats",                                                               \
                  TN_OPTION_KIND_STRING, TN_OPTION_KEYWORD)

static const tn_option dynamic_options[] = {
    SCHEME_ALL,
    TN_OPTION_ROW(struct scheme, activation, "'row'",
                  "the scales of inputs: row, one for each row of Linear and each sample of a "
                  "convolution, or tensor, one for each call",
                  TN_OPTION_KIND_STRING, TN_OPTION_KEYWORD),
    TN_OPTION_END
};
static const tn_option int8_options[] = { SCHEME_ALL, SCHEME_GROUP("0"), SCHEME_BLOCK,
                                          TN_OPTION_END };
static const tn_option int4_options[] = { SCHEME_ALL, SCHEME_GROUP("32"), SCHEME_BLOCK,
                                          TN_OPTION_END };
static const tn_option block_options[] = { SCHEME_ALL, SCHEME_BLOCK, TN_OPTION_END };

#define SCHEME_RANGE(member, def, help)                                                            \
    TN_OPTION_ROW(struct scheme, member, def, help, TN_OPTION_KIND_VALUE, TN_OPTION_KEYWORD)
static const tn_option static_options[] = {
    SCHEME_ALL,
    SCHEME_RANGE(range, "HistogramRange()",
                 "what records the ranges of inputs: HistogramRange(), MinMaxRange(), "
                 "MovingAverageRange(), or a layer of a plugin"),
    TN_OPTION_END
};
static const tn_option qat_options[] = {
    SCHEME_ALL,
    SCHEME_RANGE(range, "FakeQuantize(range=MovingAverageRange())",
                 "what records the ranges of inputs and rounds them"),
    SCHEME_RANGE(weight_range, "FakeQuantize(dtype=int8, symmetric=True, dim=0)",
                 "the parametrization that rounds weights"),
    TN_OPTION_END
};

/* ---- options of any scheme or layer ---------------------------------------------------------- */

static const tn_option *option_of(const char *layer, const char *name)
{
    uint64_t mark = tn_error_mark();
    const tn_head *head = tn_registry_find(TN_KIND_tn_layer_def, layer);
    const tn_option *row = head != NULL ? tn_contribution_options(head) : NULL;

    tn_error_restore(mark);
    while (row != NULL && row->kind != TN_OPTION_KIND_END && strcmp(row->name, name) != 0)
        row++;
    return row != NULL && row->kind != TN_OPTION_KIND_END ? row : NULL;
}

bool quant_has_option(const char *layer, const char *option)
{
    return option_of(layer, option) != NULL;
}

/* Copies the value of an option, which then lives as long as the pack; false if there is none. */
static bool get(tn_module *module, const char *name, tn_pack *pack, tn_value *out)
{
    if (!quant_has_option(tn_module_type(module), name) ||
        tn_module_option_get(module, name, pack) != TN_OK)
        return false;
    *out = tn_pack_at(pack, tn_pack_count(pack) - 1);
    return true;
}

double quant_option_number(tn_module *module, const char *name, double otherwise)
{
    tn_pack *pack = tn_pack_new();
    tn_value value;

    if (pack != NULL && get(module, name, pack, &value))
        otherwise = value.kind == TN_VALUE_FLOAT ? value.as.f
                    : value.kind == TN_VALUE_INT ? (double)value.as.i
                                                 : otherwise;
    tn_pack_drop(pack);
    return otherwise;
}

/* Returns item `index` of an option that is a text or a list of texts; NULL after the last one. */
static const char *item_of(const tn_value *value, uint32_t index)
{
    if (value->kind == TN_VALUE_STRING)
        return index == 0 ? value->as.s : NULL;
    if (value->kind != TN_VALUE_LIST && value->kind != TN_VALUE_TUPLE)
        return NULL;
    return index < value->count ? value->as.list[index].as.s : NULL;
}

/* Calls `fits` for each text of an option until one fits. *any tells whether there is one. */
static bool one_fits(tn_module *scheme, const char *name, const char *with,
                     bool (*fits)(const char *text, const char *with), bool *any)
{
    tn_pack *pack = tn_pack_new();
    tn_value value = tn_value_none();
    bool found = false;

    if (pack != NULL)
        get(scheme, name, pack, &value);
    *any = item_of(&value, 0) != NULL;
    for (uint32_t i = 0; item_of(&value, i) != NULL && !found; i++)
        found = fits(item_of(&value, i), with);
    tn_pack_drop(pack);
    return found;
}

static bool same(const char *text, const char *with)
{
    return strcmp(text, with) == 0;
}

static bool covers(const char *pattern, const char *path)
{
    return fnmatch(pattern, path, 0) == 0;
}

bool quant_scheme_skips(tn_module *scheme, const char *path)
{
    bool any;

    return one_fits(scheme, "skip", path, covers, &any);
}

/* Returns the name of the quantized layer; false if there is none for this scheme. */
static bool quantized_name(tn_module *scheme, const char *type, char *out, size_t size)
{
    const struct storage *storage = tn_module_user(scheme);

    return tn_snprint(out, size, "Quantized%s", type) < (int64_t)size &&
           quant_has_option(out, "weight") &&
           quant_has_option(out, storage->rows ? "group" : "activation");
}

/* A scheme of another plugin decides itself when it is called. */
static bool is_ours(tn_module *scheme)
{
    const char *plugin = tn_registry_plugin(TN_KIND_tn_layer_def, tn_module_type(scheme));

    return plugin != NULL && strcmp(plugin, "tenon.quant") == 0;
}

bool quant_scheme_takes(tn_module *scheme, tn_module *module)
{
    const char *type = tn_module_type(module);
    char name[128];
    bool any, named = one_fits(scheme, "types", type, same, &any);

    if (any)
        return named;
    return is_ours(scheme) ? quantized_name(scheme, type, name, sizeof name)
                           : tn_module_child_count(module) == 0;
}

tn_module *quant_scheme_parse(const char *who, const char *text)
{
    char *spec = quant_joined(text, strchr(text, '(') == NULL ? "()" : "");
    tn_module *scheme = spec != NULL ? tn_module_parse(spec) : NULL;

    tn_free(spec);
    if (scheme == NULL) {
        tn_error_prefix("%s: scheme: ", who);
        return NULL;
    }
    if (quant_has_option(tn_module_type(scheme), "skip") &&
        quant_has_option(tn_module_type(scheme), "limit"))
        return scheme;
    tn_fail(TN_ERR_TYPE,
            "%s: scheme: %s is no scheme, which has the options types, skip and limit; expected "
            "one such as int8_dynamic()",
            who, tn_module_type(scheme));
    tn_module_drop(scheme);
    return NULL;
}

void quant_scheme_types(tn_module *scheme, char *out, size_t size)
{
    static const char prefix[] = "Quantized";
    int64_t used = 0;
    char name[128];

    out[0] = '\0';
    for (int64_t i = 0; i < tn_registry_count(TN_KIND_tn_layer_def); i++) {
        const char *layer = tn_registry_name(TN_KIND_tn_layer_def, i);

        if (layer != NULL && strncmp(layer, prefix, sizeof prefix - 1) == 0 && is_ours(scheme) &&
            quantized_name(scheme, layer + sizeof prefix - 1, name, sizeof name))
            quant_put(out, size, &used, "%s%s", used > 0 ? ", " : "", layer + sizeof prefix - 1);
    }
}

/* ---- the schemes ----------------------------------------------------------------------------- */

static tn_status check_texts(const tn_module *self, const char *name, const tn_value *value)
{
    bool list = value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE;
    bool good = list || value->kind == TN_VALUE_STRING || value->kind == TN_VALUE_NONE;

    for (uint32_t i = 0; list && i < value->count && good; i++)
        good = value->as.list[i].kind == TN_VALUE_STRING;
    return good ? TN_OK
                : tn_fail(TN_ERR_TYPE, "%s: %s: wrong type, got %s; expected a list of names",
                          tn_module_type(self), name, tn_value_kind_name(value->kind));
}

/* Fails for a type in `types` that has no quantized layer. */
static tn_status check_types(tn_module *self, const tn_value *types)
{
    char name[128], known[512];

    for (uint32_t i = 0; item_of(types, i) != NULL; i++) {
        if (quantized_name(self, item_of(types, i), name, sizeof name))
            continue;
        quant_scheme_types(self, known, sizeof known);
        return tn_fail(TN_ERR_KEY, "%s: types: cannot be quantized, got %q; expected some of %s",
                       tn_module_type(self), item_of(types, i), known);
    }
    return TN_OK;
}

/* Fails for a word that no layer takes from this scheme. */
static tn_status check_activation(tn_module *self, const char *word)
{
    const struct storage *storage = tn_module_user(self);
    const char *const words[] = { storage->rows ? "block" : "row",
                                  storage->rows ? "none" : "tensor" };

    if (word == NULL || strcmp(word, words[0]) == 0 || strcmp(word, words[1]) == 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: activation: unknown, got %q; expected %s or %s",
                   tn_module_type(self), word, words[0], words[1]);
}

static tn_status build(tn_module *self)
{
    const struct scheme *s = tn_module_data(self);
    tn_status status = check_texts(self, "types", &s->types);

    if (status == TN_OK)
        status = check_texts(self, "skip", &s->skip);
    if (status == TN_OK && !(s->limit >= 0))
        status = tn_fail(TN_ERR_VALUE, "%s: limit: wrong, got %g; expected 0 or more decibels",
                         tn_module_type(self), s->limit);
    if (status == TN_OK && s->group < 0)
        status = tn_fail(TN_ERR_VALUE, "%s: group: negative, got %lld; expected 0 or more",
                         tn_module_type(self), (long long)s->group);
    if (status == TN_OK)
        status = check_activation(self, s->activation);
    return status == TN_OK ? check_types(self, &s->types) : status;
}

/* Returns whether a value is the default of an option, as far as that is a number or a text. */
static bool is_default(const tn_option *row, const tn_value *value)
{
    int64_t whole;
    double number;

    if (value->kind == TN_VALUE_NONE || row->def == NULL)
        return value->kind == TN_VALUE_NONE;
    if (value->kind == TN_VALUE_BOOL)
        return (value->as.i != 0) == (strcmp(row->def, "True") == 0);
    if (value->kind == TN_VALUE_INT)
        return tn_read_int(row->def, &whole) && whole == value->as.i;
    if (value->kind == TN_VALUE_FLOAT)
        return tn_read_float(row->def, &number) && number == value->as.f;
    return true;
}

/* Returns the first option of the float module that the quantized layer lacks and that is not its
 * default; NULL if there is none. */
static const char *lost_option(tn_module *module, const char *quantized)
{
    const tn_head *head = tn_registry_find(TN_KIND_tn_layer_def, tn_module_type(module));
    const tn_option *row = head != NULL ? tn_contribution_options(head) : NULL;
    const char *lost = NULL;

    for (; row != NULL && row->kind != TN_OPTION_KIND_END && lost == NULL; row++) {
        tn_pack *pack = tn_pack_new();
        tn_value value;

        if (pack != NULL && !quant_has_option(quantized, row->name) &&
            get(module, row->name, pack, &value) && !is_default(row, &value))
            lost = row->name;
        tn_pack_drop(pack);
    }
    return lost;
}

enum { OPTIONS_MOST = 32 };

/* Makes the quantized module without values: its options are those of the float module, and those
 * of the scheme. */
static tn_module *make(tn_module *scheme, tn_module *module, const char *quantized)
{
    const struct storage *storage = tn_module_user(scheme);
    const struct scheme *s = tn_module_data(scheme);
    const tn_option *row = tn_contribution_options(
        tn_registry_find(TN_KIND_tn_layer_def, quantized));
    const char *names[OPTIONS_MOST];
    tn_value values[OPTIONS_MOST];
    tn_pack *pack = tn_pack_new();
    tn_module *made = NULL;
    int64_t count = 0;

    for (; pack != NULL && row->kind != TN_OPTION_KIND_END && count < OPTIONS_MOST; row++) {
        tn_value *value = &values[count];

        names[count] = row->name;
        if (strcmp(row->name, "weight") == 0)
            *value = tn_value_string(storage->weight);
        else if (strcmp(row->name, "group") == 0)
            *value = tn_value_int(s->group);
        else if (strcmp(row->name, "activation") == 0)
            *value = tn_value_string(storage->input != NULL ? storage->input : s->activation);
        else if (strcmp(row->name, "bias") == 0)
            *value = tn_value_bool(tn_fuse_slot(module, "bias") != TN_NONE);
        else if (!get(module, row->name, pack, value))
            continue;
        count++;
    }
    if (pack != NULL)
        made = tn_module_make(quantized, values, names, count);
    tn_pack_drop(pack);
    return made;
}

/* Adds the scale and zero point of the input for its range to a state. */
static tn_status add_range(tn_state *state, tn_tensor *low, tn_tensor *high)
{
    tn_tensor *both = tn_stack(((tn_tensor *[]){ low, high }), 2, 0), *scale, *zero_point;
    tn_status status = tn_choose_qparams(both, &scale, &zero_point);

    if (status == TN_OK)
        status = tn_state_set(state, "input_scale", scale);
    return status == TN_OK ? tn_state_set(state, "input_zero_point", zero_point) : status;
}

/* In training the weight is parametrized: adds the trained one, and the scale of its rounding,
 * which a call in training mode sets: that of a copy, because the network may stay as it is. */
static tn_status add_trained(tn_state *state, tn_module *module)
{
    tn_module *rounding = tn_module_copy(tn_parametrization(module, "weight", 0));
    int64_t at = tn_state_find(state, "parametrizations.weight.original");
    tn_tensor *weight = at >= 0 ? tn_state_tensor(state, at) : NULL, *scale;
    tn_status status = weight != NULL && rounding != NULL ? tn_module_train(rounding, true)
                                                          : tn_error_last_code();

    if (status == TN_OK && tn_module_call(rounding, weight) == NULL)
        status = tn_error_last_code();
    if (status == TN_OK)
        status = tn_state_set(state, "weight", weight);
    scale = status == TN_OK ? tn_fuse_slot(rounding, "scale") : NULL;
    if (status == TN_OK && scale == NULL)
        status = tn_error_last_code();
    if (status == TN_OK && scale != TN_NONE)
        status = tn_state_set(state, "weight_scale", scale);
    tn_module_drop(rounding);
    return status;
}

/* Returns the state of a module without what prepare has added. */
static tn_state *state_of(tn_module *module)
{
    static const char *const added[] = { FLOW_RANGE ".", "parametrizations." };
    tn_state *state = tn_module_state(module);
    tn_status status = state != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK && tn_is_parametrized(module, "weight"))
        status = add_trained(state, module);
    for (int64_t i = tn_state_count(state) - 1; i >= 0 && status == TN_OK; i--)
        for (size_t k = 0; k < sizeof added / sizeof *added; k++)
            if (strncmp(tn_state_name(state, i), added[k], strlen(added[k])) == 0) {
                status = tn_state_remove(state, tn_state_name(state, i));
                break;
            }
    if (status == TN_OK)
        return state;
    tn_state_drop(state);
    return NULL;
}

/* Makes the quantized module with the values of the float one, on its device. */
static tn_module *quantized_from(tn_module *scheme, tn_module *module, const char *quantized,
                                 tn_tensor *low, tn_tensor *high)
{
    tn_tensor *weight = tn_module_get(module, "weight");
    tn_state *state = weight != NULL ? state_of(module) : NULL;
    tn_module *made = NULL;
    tn_status status;

    if (state == NULL || tn_device_begin(tn_tensor_device(weight)) != TN_OK)
        goto end;
    if (tn_dtype_begin(tn_tensor_dtype(weight)) == TN_OK) {
        made = make(scheme, module, quantized);
        tn_dtype_end();
    }
    status = made == NULL  ? tn_error_last_code()
             : low != NULL ? add_range(state, low, high)
                           : TN_OK;
    if (status == TN_OK)
        status = tn_module_load_report(made, state, TN_LOAD_STRICT | TN_LOAD_WHOLE, NULL);
    if (status != TN_OK) {
        tn_module_drop(made);
        made = NULL;
    }
    tn_device_end();
end:
    tn_state_drop(state);
    return made;
}

/* Arguments: the float module, and for calibrated schemes the tensors `low` and `high`. A tensor is
 * returned: as a child of a prepared module that calls all of its children, a scheme changes
 * nothing. */
static tn_status call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_value first = tn_pack_count(input) > 0 ? tn_pack_at(input, 0) : tn_value_none();
    int64_t low = tn_pack_find(input, "low"), high = tn_pack_find(input, "high");
    const uint64_t mark = tn_error_mark();
    char name[128], why[240];
    const char *lost;
    tn_module *made;
    tn_status status;

    if (first.kind == TN_VALUE_TENSOR)
        return tn_pack_add(output, NULL, first);
    if (first.kind != TN_VALUE_MODULE)
        return tn_fail(TN_ERR_TYPE,
                       "%s: input: wrong type, got %s; expected a module, because schemes quantize "
                       "modules (tn_module_quantize)",
                       tn_module_type(self), tn_value_kind_name(first.kind));
    if (!quantized_name(self, tn_module_type(first.as.module), name, sizeof name)) {
        tn_snprint(why, sizeof why, "no layer Quantized%s", tn_module_type(first.as.module));
        return tn_pack_add(output, NULL, tn_value_string(why));
    }
    lost = lost_option(first.as.module, name);
    if (lost != NULL) {
        tn_snprint(why, sizeof why, "%s has no option %s", name, lost);
        return tn_pack_add(output, NULL, tn_value_string(why));
    }
    made = quantized_from(self, first.as.module, name, low >= 0 ? tn_pack_tensor(input, low) : NULL,
                          high >= 0 ? tn_pack_tensor(input, high) : NULL);
    if (made == NULL && tn_error_last_code() != TN_ERR_VALUE)
        return tn_error_last_code();
    if (made == NULL) { /* a size that the format does not fit */
        tn_snprint(why, sizeof why, "%s", tn_error_text());
        tn_error_restore(mark);
        return tn_pack_add(output, NULL, tn_value_string(why));
    }
    status = tn_pack_add(output, NULL, tn_value_module(made));
    tn_module_drop(made);
    return status;
}

#define SCHEME(id, name_, help_, options_, ...)                                                    \
    static const struct storage storage_##id = { __VA_ARGS__ };                                    \
    const tn_layer_def layer_##id = { TN_HEAD(tn_layer_def),                                       \
                                      .name = name_,                                               \
                                      .help = "a scheme of quantization: " help_,                  \
                                      .user = (void *)(uintptr_t)&storage_##id,                    \
                                      .options = options_,                                         \
                                      .data_size = sizeof(struct scheme),                          \
                                      .version = 1,                                                \
                                      .build = build,                                              \
                                      .call = call }
SCHEME(int8_dynamic, "int8_dynamic", "int8 weights, inputs with scales of each call",
       dynamic_options, "int8", false, NULL);
SCHEME(int8_static, "int8_static",
       "int8 weights, inputs with fixed scales, which calibration finds", static_options, "int8",
       false, "static");
SCHEME(int8_qat, "int8_qat", "int8_static for networks that are trained with rounded numbers",
       qat_options, "int8", false, "static");
SCHEME(int8_weight, "int8_weight", "int8 weights", int8_options, "int8", true, NULL);
SCHEME(int4_weight, "int4_weight", "int4 weights with a scale for each group", int4_options, "int4",
       true, NULL);
SCHEME(q8_0_weight, "q8_0_weight", "weights in blocks of the GGUF format q8_0", block_options,
       "q8_0", true, NULL);
SCHEME(q4_0_weight, "q4_0_weight", "weights in blocks of the GGUF format q4_0", block_options,
       "q4_0", true, NULL);
