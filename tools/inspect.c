/* SPDX-License-Identifier: MIT
 *
 * tenon inspect FILE: what a file of tensors holds. tenon convert FROM TO: the same tensors in
 * another format. */
#include "tool.h"

#include <string.h>

static int64_t bytes_of(const tn_tensor *tensor)
{
    return tn_tensor_numel(tensor) * (int64_t)tn_dtype_size(tn_tensor_dtype(tensor));
}

/* "2 tensors, 10 values, 34 elements, 120 B" needs these; the result is how many tensors there are.
 */
static int64_t sum_up(const tn_state *state, int64_t *elements, int64_t *bytes)
{
    int64_t tensors = 0;

    *elements = *bytes = 0;
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        tn_value value = tn_state_value(state, i);
        if (value.kind != TN_VALUE_TENSOR)
            continue;
        *elements += tn_tensor_numel(value.as.tensor);
        *bytes += bytes_of(value.as.tensor);
        tensors++;
    }
    return tensors;
}

static void count_text(const tn_state *state, char *out, size_t size)
{
    int64_t elements, bytes, tensors = sum_up(state, &elements, &bytes);
    int64_t values = tn_state_count(state) - tensors;
    char more[48] = "", number[32];

    if (values > 0)
        snprintf(more, sizeof more, ", %lld value%s", (long long)values, values == 1 ? "" : "s");
    snprintf(out, size, "%lld tensor%s%s, %lld elements, %s", (long long)tensors,
             tensors == 1 ? "" : "s", more, (long long)elements,
             bytes_text(bytes, number, sizeof number));
}

/* The kind of an entry that is not a tensor. */
static const char *kind_text(tn_value value)
{
    static const char *const kinds[] = { "None",  "bool", "int",    "float",  "string", "list",
                                         "tuple", "spec", "tensor", "module", "opaque", "bytes" };
    return value.kind < sizeof kinds / sizeof *kinds ? kinds[value.kind] : "?";
}

/* ---- inspect --------------------------------------------------------------------------------- */

static void inspect_json(const char *file, const tn_state *state)
{
    int64_t elements, bytes;
    sum_up(state, &elements, &bytes);
    json_begin(NULL, '{');
    json_text("file", file);
    json_begin("tensors", '[');
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        tn_value value = tn_state_value(state, i);
        if (value.kind != TN_VALUE_TENSOR)
            continue;
        const tn_tensor *tensor = value.as.tensor;
        tn_ints shape = tn_tensor_shape(tensor);
        json_begin(NULL, '{');
        json_text("name", tn_state_name(state, i));
        json_text("dtype", tn_dtype_name(tn_tensor_dtype(tensor)));
        json_begin("shape", '[');
        for (int64_t d = 0; d < shape.count; d++)
            json_int(NULL, shape.at[d]);
        json_end(']');
        json_int("elements", tn_tensor_numel(tensor));
        json_int("bytes", bytes_of(tensor));
        json_end('}');
    }
    json_end(']');
    json_begin("values", '{');
    for (int64_t i = 0; i < tn_state_count(state); i++)
        if (tn_state_value(state, i).kind != TN_VALUE_TENSOR)
            json_text(tn_state_name(state, i), kind_text(tn_state_value(state, i)));
    json_end('}');
    json_begin("versions", '{');
    for (int64_t i = 0; i < tn_state_version_count(state); i++)
        json_int(tn_state_version_path(state, i),
                 tn_state_version(state, tn_state_version_path(state, i)));
    json_end('}');
    json_begin("metadata", '{');
    for (int64_t i = 0; i < tn_state_meta_count(state); i++)
        json_text(tn_state_meta_key(state, i), tn_state_meta(state, tn_state_meta_key(state, i)));
    json_end('}');
    json_int("elements", elements);
    json_int("bytes", bytes);
    json_end('}');
}

static void shape_text(tn_ints shape, char *out, size_t size)
{
    size_t length = (size_t)snprintf(out, size, "[");
    for (int64_t d = 0; d < shape.count && length < size; d++)
        length += (size_t)snprintf(out + length, size - length, "%s%lld", d > 0 ? ", " : "",
                                   (long long)shape.at[d]);
    if (length < size)
        snprintf(out + length, size - length, "]");
}

static void inspect_text(const char *file, const tn_state *state)
{
    table t = { .columns = 4 }, texts = { .columns = 2, .wraps = true };
    char shape[TN_MAX_DIMS * 24], size[32];
    int64_t metas = tn_state_meta_count(state);
    count_text(state, shape, sizeof shape);
    table_row(&texts, file, shape);
    table_print(&texts);
    if (tn_state_count(state) > 0) {
        putchar('\n');
        table_row(&t, "NAME", "DTYPE", "SHAPE", "SIZE");
    }
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        tn_value value = tn_state_value(state, i);
        if (value.kind != TN_VALUE_TENSOR) {
            table_row(&t, tn_state_name(state, i), kind_text(value), "", "");
            continue;
        }
        const tn_tensor *tensor = value.as.tensor;
        shape_text(tn_tensor_shape(tensor), shape, sizeof shape);
        table_row(&t, tn_state_name(state, i), tn_dtype_name(tn_tensor_dtype(tensor)), shape,
                  bytes_text(bytes_of(tensor), size, sizeof size));
    }
    table_print(&t);
    if (metas > 0) {
        putchar('\n');
        table_row(&texts, "METADATA", "TEXT");
    }
    for (int64_t i = 0; i < metas; i++)
        table_row(&texts, tn_state_meta_key(state, i),
                  tn_state_meta(state, tn_state_meta_key(state, i)));
    table_print(&texts);
}

static int run_inspect(int count, char **arguments, bool json)
{
    (void)count;
    /* A device without memory: formats read what describes the tensors and pass over the values. */
    if (tn_set_default_device("meta") != TN_OK)
        return tool_fail(NULL);
    tn_state *state = tn_state_load(arguments[0]);
    if (state == NULL)
        return tool_fail(NULL);
    if (json)
        inspect_json(arguments[0], state);
    else
        inspect_text(arguments[0], state);
    tn_state_drop(state);
    return EXIT_OK;
}

const command inspect_command = {
    "inspect",
    "FILE",
    "names, shapes and types of a file of tensors",
    "Prints the name, dtype, shape and size of every tensor of a file, in the file's order, and "
    "the metadata. The format is detected from the content of the file, else from its extension; "
    "values are not read.",
    1,
    1,
    run_inspect,
    false
};

/* ---- convert --------------------------------------------------------------------------------- */

static int run_convert(int count, char **arguments, bool json)
{
    int64_t elements, bytes;
    char text[160];
    (void)count;
    /* The values come through the memory of the host, whatever TENON_DEVICE says. */
    if (tn_set_default_device("cpu") != TN_OK)
        return tool_fail(NULL);
    tn_state *state = tn_state_load(arguments[0]);
    if (state == NULL)
        return tool_fail(NULL);
    if (tn_state_save(state, arguments[1]) != TN_OK) {
        tn_state_drop(state);
        return tool_fail(NULL);
    }
    int64_t tensors = sum_up(state, &elements, &bytes);
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
        count_text(state, text, sizeof text);
        puts(text);
    }
    tn_state_drop(state);
    return EXIT_OK;
}

const command convert_command = {
    "convert",
    "FROM TO",
    "converts a file of tensors to another format",
    "Reads a file of tensors and writes them to another one, whose extension selects the format. "
    "The file is written atomically: on a failure an old file of that name is unchanged.",
    2,
    2,
    run_convert,
    false
};
