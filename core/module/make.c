/* SPDX-License-Identifier: MIT
 *
 * Makes modules from the text of a spec, from printed text (repr), and from typed values. */
#include "core/module/internal.h"
#include "core/tensor/boundary.h"

tn_module *tn__module_new(const char *type)
{
    tn_module *module = tn_calloc(1, sizeof *module);
    if (module == NULL)
        return NULL;
    atomic_init(&module->refs, 1);
    module->training = true;
    module->type = type;
    return module;
}

/* True while this thread builds a container from its printed form. The specs of its entries may
 * then name types that no plugin provides. */
static _Thread_local bool entries_printed;

/* Adds argument `i` of the spec as a child, under a name that must be new. */
static tn_status add_named(tn_module *module, const tn__spec *spec, int64_t i)
{
    const char *name = spec->names[i];
    char place[256];

    tn__spec_place(spec->text, spec->columns[i], place, sizeof place);
    if (name == NULL)
        return tn_fail(TN_ERR_VALUE, "%schild: no name; expected name=Type(arguments)", place);
    if (tn_module_slot_kind(module, name) != 0)
        return tn_fail(TN_ERR_KEY, "%s%s: \"%s\": exists already", place, module->type, name);
    return tn__make_child(module, name, &spec->values[i]);
}

static tn_status add_all(tn_module *module, const tn__spec *spec)
{
    for (int64_t i = 0; i < spec->count; i++) {
        tn_status status = add_named(module, spec, i);
        if (status == TN_OK)
            continue;
        while (i-- > 0)
            tn_module_remove(module, spec->names[i]);
        return status;
    }
    return TN_OK;
}

tn_status tn_module_add_childrenv(tn_module *module, const char *format, va_list args)
{
    if (module == NULL || format == NULL)
        return tn__error_null_of("tn_module_add_children", "module, format", module, format);
    /* Parsed as "TYPE(TEXT)", the arguments of the module itself, so that error messages can quote
     * the text with its context. */
    tn__text whole = { 0 };
    char *text = tn__text_from_format(format, args);
    tn__spec *spec = NULL;
    if (text != NULL)
        tn__text_add(&whole, "%s(%s)", module->type, text);
    tn_free(text);
    char *call = text != NULL ? tn__text_take(&whole) : NULL;
    if (call != NULL)
        spec = tn__spec_parse(call);
    tn_free(call);
    tn_status status = spec != NULL ? add_all(module, spec) : tn_error_last_code();
    tn__spec_free(spec);
    return status;
}

tn_status tn_module_add_children(tn_module *module, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tn_status status = tn_module_add_childrenv(module, format, args);
    va_end(args);
    return status;
}

static bool takes_many(const tn_option *table)
{
    for (; table != NULL && table->kind != TN_OPTION_KIND_END; table++)
        if ((table->flags & TN_OPTION_MANY) != 0)
            return true;
    return false;
}

/* Selected arguments of a spec. The arrays are new; memory to which the values point is shared. */
struct arguments {
    tn_value *values;
    const char **names;
    int32_t *columns;
    uint8_t *children;
    int64_t count;
    bool other; /* set by fill_and_build: the printed module is of another class with this name, or
                 * its text does not have the options */
};

static void arguments_free(struct arguments *a)
{
    tn_free(a->values);
    tn_free((void *)a->names);
    tn_free(a->columns);
    tn_free(a->children);
}

static tn_status arguments_room(struct arguments *a, int64_t count)
{
    size_t room = (size_t)(count > 0 ? count : 1);
    a->values = tn_calloc(room, sizeof *a->values);
    a->names = tn_calloc(room, sizeof *a->names);
    a->columns = tn_calloc(room, sizeof *a->columns);
    a->children = tn_calloc(room, sizeof *a->children);
    return a->values == NULL || a->names == NULL || a->columns == NULL || a->children == NULL
               ? TN_ERR_MEMORY
               : TN_OK;
}

/* ---- device= and dtype=, which every layer takes --------------------------------------------- */

/* The device and the dtype for the tensors of a new module. */
struct factory {
    const tn_device *device; /* NULL: the default device */
    tn_dtype dtype;          /* TN_DTYPE_AUTO: the default dtype */
};

static tn_status factory_device(const tn_value *value, struct factory *f)
{
    if (value->kind == TN_VALUE_NONE)
        return TN_OK;
    f->device = tn_device_find(value->as.s);
    return f->device != NULL ? TN_OK : tn_error_last_code();
}

static tn_status factory_dtype(const tn_value *value, struct factory *f)
{
    if (value->kind == TN_VALUE_NONE)
        return TN_OK;
    const char *name = strncmp(value->as.s, "torch.", 6) == 0 ? value->as.s + 6 : value->as.s;
    tn_status status = tn_dtype_parse(name, &f->dtype);
    if (status == TN_OK && (TN_BIT(f->dtype) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)) == 0)
        status = tn_fail(TN_ERR_TYPE,
                         "parameter: wrong dtype, got %s; expected a floating or complex one",
                         name);
    return status;
}

/* Removes `device` and `dtype` from the arguments and reads them, unless the layer has options with
 * these names. Only a string or None is read: any other value with such a name is an entry of a
 * container. */
static tn_status factory_take(const tn_layer_def *layer, const char *spec_text, struct arguments *a,
                              struct factory *f)
{
    static const struct {
        const char *name;
        tn_status (*read)(const tn_value *, struct factory *);
    } words[] = { { "device", factory_device }, { "dtype", factory_dtype } };
    int64_t kept = 0;
    for (int64_t i = 0; i < a->count; i++) {
        uint32_t kind = a->values[i].kind;
        bool taken = false;
        for (int64_t w = 0; w < tn__countof(words); w++) {
            if (a->names[i] == NULL || a->children[i] || strcmp(a->names[i], words[w].name) != 0 ||
                (kind != TN_VALUE_STRING && kind != TN_VALUE_NONE) ||
                tn__options_find(layer->options, words[w].name) != NULL)
                continue;
            tn_status status = words[w].read(&a->values[i], f);
            if (status != TN_OK) {
                char place[256] = "";
                if (spec_text != NULL)
                    tn__spec_place(spec_text, a->columns[i], place, sizeof place);
                tn_error_prefix("%slayer %s: %s: ", place, layer->name, words[w].name);
                return status;
            }
            taken = true;
        }
        if (taken)
            continue;
        a->values[kept] = a->values[i];
        a->names[kept] = a->names[i];
        a->columns[kept] = a->columns[i];
        a->children[kept++] = a->children[i];
    }
    a->count = kept;
    return TN_OK;
}

/* ---- building -------------------------------------------------------------------------------- */

/* Calls a function of the module's layer, in a scope and without recording for gradients. */
static tn_status run(tn_module *module, tn_status (*step)(tn_module *), const char *what)
{
    const char *before = tn__error_plugin(module->plugin != NULL ? module->plugin->id : "");
    uint64_t failures = tn_error_mark();
    uint64_t scope = tn_scope_begin();
    tn_grad_begin(false);
    tn__boundary_thread thread;
    tn__boundary_enter(&thread);
    tn_status status = tn__boundary_leave(&thread, module->plugin != NULL ? module->plugin->id : "",
                                          module->type, step(module));
    tn_grad_end();
    tn_scope_end(scope);
    if (status != TN_OK && tn_error_mark() == failures)
        tn_fail(status, "layer %s: %s: failed with %s and recorded no message", module->layer->name,
                what, tn_status_name(status));
    else if (status != TN_OK && strstr(tn_error_text(), module->layer->name) == NULL)
        tn_error_prefix("%s: ", module->layer->name);
    tn__error_plugin(before);
    return status;
}

tn_status tn__module_reset(tn_module *module)
{
    if (module->layer == NULL || module->layer->reset == NULL || tn__init_skipped())
        return TN_OK;
    return run(module, module->layer->reset, "reset");
}

tn_status tn_module_reset_parameters(tn_module *module)
{
    if (module == NULL)
        return tn_error_null("tn_module_reset_parameters: module");
    if (tn__module_waits(module))
        return tn_fail(TN_ERR_VALUE,
                       "%s: parameters: no shapes yet; call the module once, or load a state",
                       module->type);
    if (module->layer == NULL || module->layer->reset == NULL)
        return tn_fail(TN_ERR_ATTR,
                       "'%s' object has no attribute 'reset_parameters': its layer has no "
                       "parameters of its own to initialize",
                       module->type);
    return tn__module_reset(module);
}

/* Returns whether the printed form has all children that the layer has made. PyTorch prints every
 * child; a module without some of them is of another class with the same name, such as the
 * Transformer of a program. */
static bool prints_children(const tn_module *module, const struct arguments *all)
{
    for (int64_t i = 0; i < module->children.count; i++) {
        bool found = false;
        for (int64_t j = 0; j < all->count && !found; j++)
            found = all->children[j] && strcmp(all->names[j], module->children.at[i].name) == 0;
        if (!found)
            return false;
    }
    return true;
}

static bool has_options(const tn_option *table)
{
    return table != NULL && table->kind != TN_OPTION_KIND_END;
}

/* Replaces the texts of children by the children that were made of them, for a tree. Making them
 * again would double the work at each level. */
static void take_children(const tn_module *module, struct arguments *all)
{
    all->other = true;
    for (int64_t i = 0; i < all->count; i++) {
        const tn__slot *slot = tn__slots_find(&module->children, all->names[i]);

        if (slot != NULL && slot->child != NULL)
            all->values[i] = tn_value_module(slot->child);
    }
}

/* Fills in the options of the layer, then calls its build and its reset. */
static tn_status fill_and_build(tn_module *module, const char *spec_text, struct arguments *all,
                                bool printed)
{
    const tn_layer_def *layer = module->layer;
    struct arguments picked = { 0 };
    const struct arguments *options = all;
    /* A layer whose options take any number of values makes its children itself. For other layers,
     * the children are added after build. */
    bool split = printed && !takes_many(layer->options);
    tn_status status = TN_OK;
    if (split) {
        status = arguments_room(&picked, all->count);
        for (int64_t i = 0; i < all->count && status == TN_OK; i++) {
            if (all->children[i])
                continue;
            picked.values[picked.count] = all->values[i];
            picked.names[picked.count] = all->names[i];
            picked.columns[picked.count++] = all->columns[i];
        }
        options = &picked;
    }
    bool silent = split && picked.count == 0; /* the text has no options */
    if (status == TN_OK) {
        char what[128];
        tn_snprint(what, sizeof what, "layer %s", layer->name);
        status = tn__options_fill(layer->options, module->data, what, spec_text, options->values,
                                  options->names, options->columns, options->count,
                                  &module->option_block);
    }
    arguments_free(&picked);
    module->build_began = status == TN_OK;
    if (status == TN_OK && layer->build != NULL)
        status = run(module, layer->build, "build");
    if (status == TN_OK && split && !prints_children(module, all)) {
        all->other = true;
        return TN_ERR_KEY;
    }
    if (status == TN_OK && !tn__module_waits(module))
        status = tn__module_reset(module);
    if (status == TN_OK && split)
        status = tn__module_add_printed(module, all->values, all->names, all->children, all->count,
                                        !silent);
    if (status == TN_OK && silent && has_options(layer->options) &&
        tn__make_child_lacks_options(module)) {
        take_children(module, all);
        return TN_ERR_KEY;
    }
    return status;
}

/* Builds the module with the device and the dtype that the arguments name. */
static tn_status make(tn_module *module, const char *spec_text, struct arguments *a, bool printed)
{
    struct factory factory = { NULL, TN_DTYPE_AUTO };
    tn_status status = factory_take(module->layer, spec_text, a, &factory);
    if (status != TN_OK)
        return status;
    status = tn_device_begin(factory.device);
    tn_status typed = tn_dtype_begin(factory.dtype);
    status = status == TN_OK ? typed : status;
    /* A container parses its entries itself. The entries of a printed container may have types that
     * no plugin provides. */
    bool outside = entries_printed;
    entries_printed = printed && takes_many(module->layer->options);
    if (status == TN_OK)
        status = fill_and_build(module, spec_text, a, printed);
    entries_printed = outside;
    tn_dtype_end();
    tn_device_end();
    return status;
}

static bool any_child(const uint8_t *children, int64_t count)
{
    for (int64_t i = 0; children != NULL && i < count; i++)
        if (children[i])
            return true;
    return false;
}

static tn_module *printed_tree(const char *type, const char *spec_text, const tn_value *values,
                               const char *const *names, const int32_t *columns,
                               const uint8_t *children, int64_t count)
{
    tn_module *tree = tn__module_tree(type, spec_text, values, names, columns, children, count);

    if (tree != NULL)
        tree->printed = true;
    return tree;
}

/* Returns whether a module of this layer, printed with these arguments, lacks required options:
 * the layer itself writes what repr has before the children, and has written nothing. */
static bool prints_nothing(const tn_layer_def *layer, const uint8_t *children, int64_t count)
{
    const tn_option *row = layer->options;

    if (layer->repr == NULL || takes_many(row))
        return false;
    for (int64_t i = 0; i < count; i++)
        if (children == NULL || !children[i])
            return false;
    while (has_options(row) && (row->flags & TN_OPTION_REQUIRED) == 0)
        row++;
    return has_options(row);
}

static tn_module *make_counted(const char *type, const char *spec_text, const tn_value *values,
                               const char *const *names, const int32_t *columns,
                               const uint8_t *children, int64_t count, bool inside)
{
    bool printed = any_child(children, count);
    char place[256];
    uint64_t mark = tn_error_mark();
    const tn__entry *entry = tn__registry_use(TN_KIND_tn_layer_def, type);
    if (entry == NULL) {
        if ((!printed && !inside) || tn_error_last_code() != TN_ERR_KEY)
            return NULL;
        tn_error_restore(mark);
        return printed_tree(type, spec_text, values, names, columns, children, count);
    }
    for (int64_t i = 0; i < count && spec_text != NULL && columns != NULL; i++)
        if (!children[i] && tn__spec_own_line(spec_text, columns[i])) {
            tn__spec_place(spec_text, columns[i], place, sizeof place);
            tn_fail(TN_ERR_FORMAT, "%sexpected a comma or )", place);
            return NULL;
        }
    const tn_layer_def *layer = (const tn_layer_def *)entry->contribution;
    if ((printed || inside) && prints_nothing(layer, children, count))
        return printed_tree(type, spec_text, values, names, columns, children, count);
    tn_module *module = tn__module_new(entry->name);
    if (module == NULL)
        return NULL;
    struct arguments all = { 0 };
    module->plugin = entry->plugin;
    module->data = tn_calloc(1, layer->data_size > 0 ? layer->data_size : 1);
    tn_status status = module->data != NULL ? arguments_room(&all, count) : TN_ERR_MEMORY;
    if (status == TN_OK) {
        module->layer = layer;
        for (int64_t i = 0; i < count; i++) {
            all.values[i] = values[i];
            all.names[i] = names != NULL ? names[i] : NULL;
            all.columns[i] = columns != NULL ? columns[i] : 0;
            all.children[i] = children != NULL && children[i];
        }
        all.count = count;
        status = make(module, spec_text, &all, printed);
    }
    tn_module *made = status == TN_OK ? tn_module_keep(module) : NULL;
    if (status != TN_OK && all.other)
        made = printed_tree(type, spec_text, all.values, all.names,
                            columns != NULL ? all.columns : NULL, all.children, all.count);
    arguments_free(&all);
    tn_module_drop(module);
    return made;
}

static tn_module *module_make(const char *type, const char *spec_text, const tn_value *values,
                              const char *const *names, const int32_t *columns,
                              const uint8_t *children, int64_t count, bool inside)
{
    if (tn__build_limit_begin() != TN_OK)
        return NULL;
    tn_module *module = make_counted(type, spec_text, values, names, columns, children, count,
                                     inside);
    tn__build_limit_end();
    return module;
}

tn_module *tn__module_make(const char *type, const char *spec_text, const tn_value *values,
                           const char *const *names, const int32_t *columns,
                           const uint8_t *children, int64_t count)
{
    return module_make(type, spec_text, values, names, columns, children, count, false);
}

tn_module *tn__make_parse(const char *text, bool printed)
{
    tn__spec *spec = tn__spec_parse_printed(text);
    if (spec == NULL)
        return NULL;
    tn_module *module = NULL;
    if (spec->type[0] == '\0')
        tn_fail(TN_ERR_FORMAT, "module: wrong form, got %q; expected Type(arguments)", text);
    else
        module = module_make(spec->type, spec->text, spec->values, spec->names, spec->columns,
                             spec->children, spec->count, printed);
    tn__spec_free(spec);
    return module;
}

tn_module *tn_module_parse(const char *text)
{
    if (text == NULL) {
        tn_error_null("tn_module_parse: text");
        return NULL;
    }
    return tn__make_parse(text, entries_printed);
}

tn_module *tn_module_newv(const char *format, va_list args)
{
    if (format == NULL) {
        tn_error_null("tn_module_new: format");
        return NULL;
    }
    char *text = tn__text_from_format(format, args);
    tn_module *module = text != NULL ? tn_module_parse(text) : NULL;
    tn_free(text);
    return module;
}

tn_module *tn_module_new(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tn_module *module = tn_module_newv(format, args);
    va_end(args);
    return module;
}

tn_module *tn_module_parse_skip_init(const tn_device *device, const char *text)
{
    if (!tn__given(text != NULL, "tn_module_parse_skip_init: text"))
        return NULL;
    bool before = tn__init_skip(true);
    tn_status status = tn_device_begin(device);
    tn_module *module = status == TN_OK ? tn_module_new("%s", text) : NULL;
    tn_device_end();
    tn__init_skip(before);
    if (module != NULL && tn__load_take_mark(module) != TN_OK) {
        tn_module_drop(module);
        return NULL;
    }
    return module;
}

tn_module *tn_module_make(const char *type, const tn_value *values, const char *const *names,
                          int64_t count)
{
    if (type == NULL || (values == NULL && count > 0)) {
        tn__error_null_of("tn_module_make", "type, values", type, values);
        return NULL;
    }
    if (count < 0) {
        tn_fail(TN_ERR_VALUE, "tn_module_make: count: negative, got %lld; expected 0 or more",
                (long long)count);
        return NULL;
    }
    return tn__module_make(type, NULL, values, names, NULL, NULL, count);
}

tn_status tn_module_parse_children(tn_module *module, const char *text)
{
    if (module == NULL || text == NULL)
        return tn__error_null_of("tn_module_parse_children", "module, text", module, text);
    return tn_module_add_children(module, "%s", text);
}
