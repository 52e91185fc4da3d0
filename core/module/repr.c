/* SPDX-License-Identifier: MIT
 *
 * The two printed forms of a module: spec, from which the same module can be built again, and repr,
 * which is PyTorch's form. */
#include "core/module/depth.h"

#include <ctype.h>

/* Copies the option table without the row for any number of values, because these values are the
 * children. Sets *many if there is such a row. The caller frees *out with tn_free(); *out is NULL
 * if the layer has no options. */
static tn_status table_without_many(const tn_option *table, tn_option **out, bool *many)
{
    int64_t count = 0;
    *out = NULL;
    *many = false;
    if (table == NULL)
        return TN_OK;
    while (table[count].kind != TN_OPTION_KIND_END && (table[count].flags & TN_OPTION_MANY) == 0)
        count++;
    *many = table[count].kind != TN_OPTION_KIND_END;
    tn_option *copy = tn_calloc((size_t)count + 1, sizeof *copy);
    if (copy == NULL)
        return TN_ERR_MEMORY;
    memcpy(copy, table, (size_t)count * sizeof *copy);
    *out = copy;
    return TN_OK;
}

static void separate(tn__text *text, size_t start)
{
    if (text->length > start)
        tn__text_put(text, ", ", 2);
}

/* ---- spec ------------------------------------------------------------------------------------ */

/* Returns whether a name can be written before "=" in a spec. */
static bool is_identifier(const char *name)
{
    if (!(isalpha((unsigned char)name[0]) || name[0] == '_'))
        return false;
    for (; *name != '\0'; name++)
        if (!(isalnum((unsigned char)*name) || *name == '_'))
            return false;
    return strcmp(name, "None") != 0;
}

/* Appends "(name): ". A name that could not be read back so, because of brackets, line breaks or a
 * quote at its start, gets quotes. */
static void put_name(tn__text *text, const char *name)
{
    bool plain = *name != '"' && *name != '\'';
    for (const char *at = name; *at != '\0' && plain; at++)
        plain = *at != '(' && *at != ')' && (unsigned char)*at >= ' ';
    tn__text_add(text, plain ? "(%s): " : "(%q): ", name);
}

/* Returns whether the entries can be printed without names, because they are named "0", "1", ...
 * and none is empty. */
static bool by_place(const tn__slots *entries)
{
    for (int64_t i = 0; i < entries->count; i++) {
        char name[24];
        tn_snprint(name, sizeof name, "%lld", (long long)i);
        if ((entries->at[i].child == NULL && entries->at[i].tensor == NULL) ||
            strcmp(name, entries->at[i].name) != 0)
            return false;
    }
    return true;
}

/* Appends a parameter as an entry of a container: its shape and its dtype, as in (2, 3,
 * float32). */
static void put_parameter(const tn_tensor *tensor, tn__text *text)
{
    if (tn__is_none(tensor)) {
        tn__text_put(text, "None", 4);
        return;
    }
    tn_ints shape = tn__shape(tensor);
    tn__text_put(text, "(", 1);
    for (int64_t i = 0; i < shape.count; i++)
        tn__text_add(text, "%lld, ", (long long)shape.at[i]);
    tn__text_add(text, shape.count > 0 ? "%s)" : "%s,)", tn_dtype_name(tn_tensor_dtype(tensor)));
}

static void put_spec_parameters(const tn_module *module, tn__text *text, size_t start)
{
    bool positional = by_place(&module->parameters);
    for (int64_t i = 0; i < module->parameters.count; i++) {
        const tn__slot *slot = &module->parameters.at[i];
        separate(text, start);
        if (!positional && is_identifier(slot->name))
            tn__text_add(text, "%s=", slot->name);
        else if (!positional)
            put_name(text, slot->name);
        put_parameter(slot->tensor, text);
    }
}

static bool is_floating(tn_dtype dtype)
{
    return (TN_BIT(dtype) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)) != 0;
}

/* Returns the dtype of the module's own floating tensors, TN_DTYPE_AUTO if it has none. */
static tn_dtype own_dtype(const tn_module *module)
{
    const tn__slots *kinds[] = { &module->parameters, &module->buffers };
    for (int64_t k = 0; k < tn__countof(kinds); k++)
        for (int64_t i = 0; i < kinds[k]->count; i++) {
            const tn_tensor *tensor = kinds[k]->at[i].tensor;
            if (tensor != NULL && !tn__is_none(tensor) && is_floating(tn_tensor_dtype(tensor)))
                return tn_tensor_dtype(tensor);
        }
    return TN_DTYPE_AUTO;
}

/* Sets *dtype to that of all floating tensors below the module. Returns false if they differ. */
static bool same_dtype(const tn_module *module, tn_dtype *dtype)
{
    const tn__slots *kinds[] = { &module->parameters, &module->buffers };
    for (int64_t k = 0; k < tn__countof(kinds); k++)
        for (int64_t i = 0; i < kinds[k]->count; i++) {
            const tn_tensor *tensor = kinds[k]->at[i].tensor;
            if (tensor == NULL || tn__is_none(tensor) || !is_floating(tn_tensor_dtype(tensor)))
                continue;
            if (*dtype != TN_DTYPE_AUTO && *dtype != tn_tensor_dtype(tensor))
                return false;
            *dtype = tn_tensor_dtype(tensor);
        }
    for (int64_t i = 0; i < module->children.count; i++)
        if (module->children.at[i].child != NULL &&
            !same_dtype(module->children.at[i].child, dtype))
            return false;
    return true;
}

/* Appends the dtype of the module's own floating tensors. A module whose layer makes the children
 * and that has no tensors of its own has the dtype of all tensors below it: `build` then makes
 * children that equal those of the text. The dtype is left out only if both this dtype and the
 * default dtype are float32. */
static void put_dtype(const tn_module *module, tn__text *text, size_t start, bool many)
{
    tn_dtype dtype = own_dtype(module);
    if (dtype == TN_DTYPE_AUTO && (many || !same_dtype(module, &dtype)))
        return;
    if (dtype == TN_DTYPE_AUTO || (dtype == TN_F32 && tn_default_dtype() == TN_F32))
        return;
    separate(text, start);
    tn__text_add(text, "dtype=%s", tn_dtype_name(dtype));
}

static tn_status put_spec(const tn_module *module, tn__text *text, int depth);

/* Appends the children. Children that the layer did not get as arguments are written in the form of
 * repr, "(name): Type(...)", which can be parsed for every type. */
static tn_status put_spec_children(const tn_module *module, tn__text *text, size_t start, bool many,
                                   int depth)
{
    bool positional = many && by_place(&module->children);
    bool named = many;
    for (int64_t i = 0; i < module->children.count; i++)
        named = named && is_identifier(module->children.at[i].name);
    for (int64_t i = 0; i < module->children.count; i++) {
        const tn__slot *slot = &module->children.at[i];
        if (slot->child == NULL)
            continue;
        separate(text, start);
        if (!positional && named)
            tn__text_add(text, "%s=", slot->name);
        else if (!positional)
            put_name(text, slot->name);
        tn_status status = put_spec(slot->child, text, depth + 1);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* Appends the options. A module that is the value of an option is written as its spec, a buffer
 * that is the value of an option as a list of its numbers. */
static tn_status put_options(const tn_module *module, const tn_option *table, tn__text *text,
                             int depth)
{
    size_t size = module->layer->data_size;
    tn__text specs[8] = { { 0 } };
    size_t offsets[8];
    int64_t count = 0;
    char *data = tn_malloc(size > 0 ? size : 1);
    if (data == NULL)
        return TN_ERR_MEMORY;
    memcpy(data, module->data, size);
    tn_status status = TN_OK;
    for (const tn_option *row = table; row->kind != TN_OPTION_KIND_END && status == TN_OK; row++) {
        const tn_value *value = (const tn_value *)(data + row->offset);
        const tn__slot *buffer = tn__option_buffer(module, row);
        if (row->kind != TN_OPTION_KIND_VALUE || count == tn__countof(specs) ||
            (buffer == NULL && value->kind != TN_VALUE_MODULE))
            continue;
        status = buffer != NULL ? tn__option_buffer_text(buffer, &specs[count])
                                : put_spec(value->as.module, &specs[count], depth + 1);
        offsets[count++] = row->offset;
    }
    for (int64_t i = 0; i < count; i++) {
        tn_value *value = (tn_value *)(data + offsets[i]);
        *value = tn_value_string(specs[i].at != NULL ? specs[i].at : "");
        value->kind = TN_VALUE_SPEC;
    }
    if (status == TN_OK)
        tn__options_print(table, data, true, text);
    for (int64_t i = 0; i < count; i++)
        tn__text_free(&specs[i]);
    tn_free(data);
    return status;
}

static tn_status put_spec(const tn_module *module, tn__text *text, int depth)
{
    if (tn__depth_check("modules", depth) != TN_OK)
        return tn_error_last_code();
    tn__text_add(text, "%s(", module->type);
    size_t start = text->length;
    bool many = false;
    if (module->layer != NULL) {
        tn_option *table = NULL;
        tn_status status = table_without_many(module->layer->options, &table, &many);
        if (status != TN_OK)
            return status;
        if (table != NULL)
            status = put_options(module, table, text, depth);
        tn_free(table);
        if (status != TN_OK)
            return status;
        if ((module->layer->flags & TN_LAYER_PARAMETERS) != 0)
            put_spec_parameters(module, text, start);
    } else {
        tn__text_add(text, "%s", module->tree_extra);
    }
    tn_status status = put_spec_children(module, text, start, many, depth);
    if (module->layer != NULL && (module->layer->flags & TN_LAYER_PARAMETERS) == 0 &&
        tn__options_find(module->layer->options, "dtype") == NULL)
        put_dtype(module, text, start, many);
    tn__text_put(text, ")", 1);
    return status;
}

tn_status tn__module_spec_text(const tn_module *module, tn__text *text)
{
    return put_spec(module, text, 0);
}

int64_t tn_module_spec(tn_module *module, char *out, size_t size)
{
    if (module == NULL) {
        tn_error_null("tn_module_spec: module");
        return -1;
    }
    tn__text text = { 0 };
    if (put_spec(module, &text, 0) != TN_OK) {
        tn__text_free(&text);
        return -1;
    }
    return tn__text_give(&text, out, size);
}

/* ---- repr ------------------------------------------------------------------------------------ */

/* Appends the arguments of a module without a layer. put_repr() indents each line by two spaces, so
 * lines that are indented already lose two. */
static void put_tree_extra(const char *extra, tn__text *text)
{
    if (*extra != '\n') {
        tn__text_add(text, "%s", extra);
        return;
    }
    while (*++extra != '\0') {
        size_t skip = strspn(extra, " ") >= 2 ? 2 : 0, size = strcspn(extra + skip, "\n");
        tn__text_put(text, extra + skip, size + 1);
        extra += skip + size;
    }
}

/* Appends the text that repr has between the parentheses before the children. */
static tn_status put_extra(tn_module *module, tn__text *text)
{
    const tn_layer_def *layer = module->layer;
    if (layer == NULL) {
        put_tree_extra(module->tree_extra, text);
        return TN_OK;
    }
    if (layer->repr != NULL) {
        int64_t length = layer->repr(module, NULL, 0);
        if (length < 0)
            return tn_fail(TN_ERR_RUNTIME, "layer %s: repr: failed, got the length %lld",
                           layer->name, (long long)length);
        char *extra = tn_malloc((size_t)length + 1);
        if (extra == NULL)
            return TN_ERR_MEMORY;
        extra[0] = '\0';
        layer->repr(module, extra, (size_t)length + 1);
        tn__text_add(text, "%s", extra);
        tn_free(extra);
        return TN_OK;
    }
    bool many = false;
    tn_option *table = NULL;
    tn_status status = table_without_many(layer->options, &table, &many);
    if (status == TN_OK && table != NULL)
        tn__options_print(table, module->data, false, text);
    tn_free(table);
    return status;
}

static void indent(tn__text *text, int depth)
{
    for (int i = 0; i < depth; i++)
        tn__text_put(text, "  ", 2);
}

/* Appends each line of `lines` on a new line that is indented for this depth. */
static void put_lines(tn__text *text, const char *lines, int depth)
{
    while (*lines != '\0') {
        const char *end = strchr(lines, '\n');
        size_t size = end != NULL ? (size_t)(end - lines) : strlen(lines);
        tn__text_put(text, "\n", 1);
        indent(text, depth);
        tn__text_put(text, lines, size);
        lines += size + (end != NULL);
    }
}

static tn_status put_repr(tn_module *module, tn__text *text, int depth);

/* Appends one child, or "None" for a slot without a module. */
static tn_status put_child(const tn__slot *slot, tn__text *text, int depth)
{
    if (slot->child != NULL)
        return put_repr(slot->child, text, depth);
    tn__text_put(text, "None", 4);
    return TN_OK;
}

static tn_status put_children(const tn_module *module, tn__text *text, int depth)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < module->children.count && status == TN_OK; i++) {
        tn__text_put(text, "\n", 1);
        indent(text, depth);
        put_name(text, module->children.at[i].name);
        status = put_child(&module->children.at[i], text, depth);
    }
    return status;
}

/* Appends the children. Equal children that follow each other share one entry: (0-2): 3 x
 * Linear(...). */
static tn_status put_runs(const tn_module *module, tn__text *text, int depth)
{
    const tn__slots *children = &module->children;
    tn_status status = TN_OK;
    tn__text shown = { 0 }, next = { 0 };
    if (children->count > 0)
        status = put_child(&children->at[0], &shown, depth);
    for (int64_t i = 0, run = 1; i < children->count && status == TN_OK; i += run) {
        for (run = 1; i + run < children->count && status == TN_OK; run++) {
            status = put_child(&children->at[i + run], &next, depth);
            if (status != TN_OK || next.at == NULL || shown.at == NULL ||
                strcmp(next.at, shown.at) != 0)
                break;
            tn__text_free(&next);
            next = (tn__text){ 0 };
        }
        tn__text_put(text, "\n", 1);
        indent(text, depth);
        if (run > 1)
            tn__text_add(text, "(%lld-%lld): %lld x ", (long long)i, (long long)(i + run - 1),
                         (long long)run);
        else
            tn__text_add(text, "(%lld): ", (long long)i);
        tn__text_put(text, shown.at != NULL ? shown.at : "", shown.length);
        tn__text_free(&shown);
        shown = next; /* not printed again: in nested lists, the work would double at every level */
        next = (tn__text){ 0 };
    }
    tn__text_free(&shown);
    return status;
}

static tn_status put_repr(tn_module *module, tn__text *text, int depth)
{
    if (tn__depth_check("modules", depth) != TN_OK)
        return tn_error_last_code();
    tn__text extra = { 0 };
    tn_status status = put_extra(module, &extra);
    if (status != TN_OK || extra.failed) {
        tn__text_free(&extra);
        return status != TN_OK ? status : tn_fail(TN_ERR_MEMORY, "repr: out of memory");
    }
    const char *words = extra.at != NULL && extra.length > 0 ? extra.at : "";
    bool one_line = module->children.count == 0 && strchr(words, '\n') == NULL;
    bool runs = module->layer != NULL && (module->layer->flags & TN_LAYER_COLLAPSE) != 0;
    bool renamed = module->layer != NULL && module->layer->printed != NULL;
    tn__text_add(text, "%s%s(", tn__module_up.is_parametrized(module, NULL) ? "Parametrized" : "",
                 renamed ? module->layer->printed : module->type);
    if (one_line)
        tn__text_add(text, "%s", words);
    else
        put_lines(text, words, depth + 1);
    tn__text_free(&extra);
    status = runs ? put_runs(module, text, depth + 1) : put_children(module, text, depth + 1);
    if (!one_line) {
        tn__text_put(text, "\n", 1);
        indent(text, depth);
    }
    tn__text_put(text, ")", 1);
    return status;
}

tn_status tn__module_repr_text(tn_module *module, tn__text *text)
{
    return put_repr(module, text, 0);
}

int64_t tn_module_repr(tn_module *module, char *out, size_t size)
{
    if (module == NULL) {
        tn_error_null("tn_module_repr: module");
        return -1;
    }
    tn__text text = { 0 };
    if (put_repr(module, &text, 0) != TN_OK) {
        tn__text_free(&text);
        return -1;
    }
    return tn__text_give(&text, out, size);
}
