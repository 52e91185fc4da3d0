/* SPDX-License-Identifier: MIT
 *
 * tenon convert FROM TO: writes the tensors of a file in another format, with other names or in
 * another dtype; or a network as a file of ONNX or PyTorch. */
#include "files.h"
#include "script.h"

#include <stdlib.h>
#include <string.h>

enum { CHANGES = 64 };

/* One option --prefix or --rename. `changes` has them in the order in which they were given. */
typedef struct change {
    bool prefix; /* --prefix; false: --rename */
    const char *from, *to;
    size_t from_length;
    int64_t used; /* number of names that it changed */
} change;

static change changes[CHANGES];
static int change_count;
static bool wants_dtype;
static tn_dtype wanted_dtype;

static bool take_change(const char *value, bool prefix)
{
    const char *sign = strchr(value, '=');
    if (change_count == CHANGES || (sign == NULL && !prefix) || (!prefix && sign == value) ||
        (sign == NULL && value[0] == '\0'))
        return false;
    changes[change_count++] = (change){ .prefix = prefix,
                                        .from = value,
                                        .to = sign != NULL ? sign + 1 : "",
                                        .from_length = sign != NULL ? (size_t)(sign - value)
                                                                    : strlen(value) };
    return true;
}

static bool take_prefix(const char *value)
{
    return take_change(value, true);
}

static bool take_rename(const char *value)
{
    return take_change(value, false);
}

static bool take_dtype(const char *value)
{
    uint64_t mark = tn_error_mark();
    wants_dtype = tn_dtype_parse(value, &wanted_dtype) == TN_OK &&
                  (TN_BIT(wanted_dtype) & TN_MASK_FLOAT) != 0;
    tn_error_restore(mark);
    return wants_dtype;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns a name after one change, or NULL if it does not apply. The caller frees it with
 * tn_free(). */
static char *changed(const change *c, const char *name, tn_status *status)
{
    bool applies = strncmp(name, c->from, c->from_length) == 0 &&
                   (c->prefix || name[c->from_length] == '\0');
    if (!applies)
        return NULL;
    size_t size = strlen(c->to) + strlen(name) - c->from_length + 1;
    char *made = tn_malloc(size);
    if (made == NULL)
        *status = TN_ERR_MEMORY;
    else
        tn_snprint(made, size, "%s%s", c->to, name + c->from_length);
    return made;
}

static tn_status copy_entries(change *c, const tn_state *from, tn_state *to)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_state_count(from) && status == TN_OK; i++) {
        const char *old = tn_state_name(from, i);
        char *fresh = changed(c, old, &status);
        const char *name = fresh != NULL ? fresh : old;
        c->used += fresh != NULL;
        if (status == TN_OK && tn_state_find(to, name) >= 0)
            status = tn_fail(TN_ERR_KEY,
                             "--%s %s: two entries would have the name \"%s\"; nothing was written",
                             c->prefix ? "prefix" : "rename", c->from, name);
        if (status == TN_OK)
            status = tn_state_set_value(to, name, tn_state_value(from, i));
        tn_free(fresh);
    }
    return status;
}

/* Copies the versions of modules. A prefix also changes the paths of the modules below it: without
 * "module.", the path "module" becomes that of the root. */
static tn_status copy_versions(const change *c, const tn_state *from, tn_state *to)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_state_version_count(from) && status == TN_OK; i++) {
        const char *path = tn_state_version_path(from, i);
        size_t size = strlen(path) + 2;
        char *dotted = tn_malloc(size);
        if (dotted == NULL)
            return TN_ERR_MEMORY;
        tn_snprint(dotted, size, "%s%s", path, path[0] != '\0' ? "." : "");
        char *fresh = c->prefix ? changed(c, dotted, &status) : NULL, *made = fresh;
        if (made == NULL)
            made = dotted;
        size_t length = strlen(made);
        if (length > 0 && made[length - 1] == '.')
            made[length - 1] = '\0';
        if (status == TN_OK)
            status = tn_state_set_version(to, made, tn_state_version(from, path));
        tn_free(fresh);
        tn_free(dotted);
    }
    return status;
}

static tn_status copy_texts(const tn_state *from, tn_state *to)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_state_meta_count(from) && status == TN_OK; i++) {
        const char *key = tn_state_meta_key(from, i);
        status = tn_state_set_meta(to, key, tn_state_meta(from, key));
    }
    return status;
}

/* Makes one change. Takes `state` over; returns NULL and sets the error on failure. */
static tn_state *apply(change *c, tn_state *state)
{
    tn_state *made = tn_state_new();
    tn_status status = made != NULL ? copy_entries(c, state, made) : TN_ERR_MEMORY;
    if (status == TN_OK && c->used == 0)
        status = tn_fail(TN_ERR_KEY, "--%s %s: no entry has this %s; nothing was written",
                         c->prefix ? "prefix" : "rename", c->from, c->prefix ? "prefix" : "name");
    if (status == TN_OK)
        status = copy_versions(c, state, made);
    if (status == TN_OK)
        status = copy_texts(state, made);
    tn_state_drop(state);
    if (status == TN_OK)
        return made;
    tn_state_drop(made);
    return NULL;
}

/* ---- dtype ----------------------------------------------------------------------------------- */

/* An entry with a floating-point tensor. */
typedef struct place {
    tn_tensor *tensor;
    int64_t index;
} place;

static int compare(const void *one, const void *other)
{
    const place *a = one, *b = other;
    if (a->tensor != b->tensor)
        return (uintptr_t)a->tensor < (uintptr_t)b->tensor ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Converts the floating-point tensors of a state to `dtype`, one after the other. Entries that are
 * tied have the same tensor before and after. */
static tn_status convert_tensors(tn_state *state, tn_dtype dtype)
{
    int64_t count = 0;
    tn_status status = TN_OK;
    place *at = tn_malloc(((size_t)tn_state_count(state) + 1) * sizeof *at);
    if (at == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        tn_value value = tn_state_value(state, i);
        if (value.kind == TN_VALUE_TENSOR &&
            (TN_BIT(tn_tensor_dtype(value.as.tensor)) & TN_MASK_FLOAT) != 0)
            at[count++] = (place){ value.as.tensor, i };
    }
    qsort(at, (size_t)count, sizeof *at, compare);
    for (int64_t i = 0, next; i < count && status == TN_OK; i = next) {
        TN_SCOPE;
        tn_tensor *made = tn_cast(at[i].tensor, dtype);
        if (made == NULL)
            status = tn_error_prefix("entry \"%s\": ", tn_state_name(state, at[i].index));
        for (next = i; next < count && at[next].tensor == at[i].tensor; next++)
            if (status == TN_OK)
                status = tn_state_set(state, tn_state_name(state, at[next].index), made);
    }
    tn_free(at);
    return status;
}

/* ---- networks ------------------------------------------------------------------------------- */

static script_request network = { .inputs = { .dtype = TN_F32 },
                                  .eval = true,
                                  .cast = TN_DTYPE_AUTO };

static bool take_input(const char *value)
{
    return inputs_take(&network.inputs, value);
}

static bool take_dynamic(const char *value)
{
    network.dynamic = value;
    return true;
}

/* Files of other frameworks have the whole network. */
static bool is_network(const char *path)
{
    return script_ends_with(path, ".onnx") || script_ends_with(path, ".pt2");
}

static int write_network(char **arguments, bool json)
{
    if (change_count > 0)
        return tool_refuse(TN_ERR_VALUE, "--prefix and --rename are for files of tensors; expected "
                                         "neither with a network");
    network.model = arguments[0];
    network.out = arguments[1];
    if (wants_dtype)
        network.cast = network.inputs.dtype = wanted_dtype;
    return script_write(&network, json);
}

/* ---- the command ----------------------------------------------------------------------------- */

static tn_status save(const tn_state *state, const char *path)
{
    tn_status status = tn_state_save(state, path);
    tn_error error = *tn_error_last();

    if (status != TN_ERR_NOT_IMPLEMENTED)
        return status;
    tn_error_clear();
    return tn_fail(status, "%s; for PyTorch and others write a .safetensors file", error.message);
}

static int run_convert(int count, char **arguments, bool json)
{
    int64_t elements, bytes;
    char text[160];
    (void)count;
    /* Loads into host memory, also if TENON_DEVICE names another device. */
    if (tn_set_default_device("cpu") != TN_OK)
        return tool_fail(NULL);
    if (is_network(arguments[1]))
        return write_network(arguments, json);
    tn_state *state = tn_state_load(arguments[0]);
    for (int i = 0; i < change_count && state != NULL; i++)
        state = apply(&changes[i], state);
    if (state == NULL || (wants_dtype && convert_tensors(state, wanted_dtype) != TN_OK) ||
        save(state, arguments[1]) != TN_OK) {
        tn_state_drop(state);
        return tool_fail(NULL);
    }
    int64_t tensors = files_sum(state, &elements, &bytes);
    if (json) {
        json_begin(NULL, '{');
        json_text("from", arguments[0]);
        json_text("to", arguments[1]);
        json_int("tensors", tensors);
        json_int("values", tn_state_count(state) - tensors);
        json_int("elements", elements);
        json_int("bytes", bytes);
        json_end('}');
    } else {
        files_count_text(state, text, sizeof text);
        puts(text);
    }
    tn_state_drop(state);
    return EXIT_OK;
}

static const tool_option options[] = {
    { "--prefix", "OLD[=NEW]",
      "replaces the prefix OLD of names by NEW, or removes it; =NEW puts NEW before every name",
      take_prefix },
    { "--rename", "OLD=NEW", "gives the entry OLD the name NEW", take_rename },
    { "--dtype", "DTYPE",
      "converts the tensors of floating-point dtypes: to float16, bfloat16, float32, float64, "
      "float8_e4m3fn or float8_e5m2",
      take_dtype },
    { "--input", "SHAPE",
      "of a network: an example of an input, 1,3,224,224 or 8,20:int64; repeat it for each (at "
      "most 8)",
      take_input },
    { "--dynamic", "SHAPES",
      "of a network: sizes that may vary, such as \"[N, 3, 224, 224]\"; default: none may",
      take_dynamic },
    { NULL, NULL, NULL, NULL }
};

const command convert_command = {
    "convert",
    "FROM TO",
    "converts a file of tensors, or a network, to another format",
    "Reads a file of tensors (or a folder with weights) and writes them to another one, whose "
    "extension selects the format. The file is written atomically: on a failure an old file of "
    "that name is unchanged.\n\nNames are changed by --prefix and --rename in the order in which "
    "they are given. It is an error if one of them changes no name, or if two entries would get "
    "the same name.\n\nWith a TO of the extension .onnx (ONNX) or .pt2 (PyTorch), FROM is a "
    "MODEL as for the other commands, and the file has the network in evaluation mode: its "
    "operators and weights. --input is then needed, unless FROM is a script, or a program of the "
    "same format.",
    2,
    2,
    run_convert,
    false,
    options
};
