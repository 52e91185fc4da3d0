/* SPDX-License-Identifier: MIT
 *
 * tenon inspect FILE: lists the content of a file of tensors, with --stats and --values also their
 * values. */
#include "files.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>

#include <string.h>

/* Returns the name of the kind of a value. */
static const char *kind_text(tn_value value)
{
    static const char *const kinds[] = { "None",   "bool",  "int",     "float",  "string",
                                         "list",   "tuple", "spec",    "tensor", "module",
                                         "opaque", "bytes", "complex", "dict",   "int" };
    return value.kind < sizeof kinds / sizeof *kinds ? kinds[value.kind] : "?";
}

/* Appends a text to `out`; a text that does not fit is cut, and ends in "...". */
static void append(char *out, size_t size, const char *text)
{
    size_t used = strlen(out);
    if (used + strlen(text) < size)
        strcpy(out + used, text);
    else if (size > 4)
        strcpy(out + (used < size - 4 ? used : size - 4), "...");
}

/* Appends the text of a value that is not a tensor. */
static void value_text(tn_value value, char *out, size_t size)
{
    char text[64] = "";
    if (value.kind == TN_VALUE_NONE)
        append(out, size, "None");
    else if (value.kind == TN_VALUE_BOOL)
        append(out, size, value.as.i != 0 ? "true" : "false");
    else if (value.kind == TN_VALUE_INT || value.kind == TN_VALUE_UINT ||
             value.kind == TN_VALUE_FLOAT) {
        if (value.kind == TN_VALUE_INT)
            snprintf(text, sizeof text, "%lld", (long long)value.as.i);
        else if (value.kind == TN_VALUE_UINT)
            snprintf(text, sizeof text, "%llu", (unsigned long long)value.as.u);
        else
            tn_snprint(text, sizeof text, "%g", value.as.f);
        append(out, size, text);
    } else if (value.kind == TN_VALUE_STRING || value.kind == TN_VALUE_SPEC) {
        append(out, size, value.as.s);
    } else if (value.kind == TN_VALUE_BYTES) {
        snprintf(text, sizeof text, "%u bytes", value.count);
        append(out, size, text);
    } else if (value.kind == TN_VALUE_LIST || value.kind == TN_VALUE_TUPLE ||
               value.kind == TN_VALUE_COMPLEX || value.kind == TN_VALUE_DICT) {
        bool dict = value.kind == TN_VALUE_DICT;
        const char *brackets = value.kind == TN_VALUE_LIST ? "[\0]" : dict ? "{\0}" : "(\0)";
        append(out, size, brackets);
        for (uint32_t i = 0; i < value.count && strlen(out) + 8 < size; i++) {
            append(out, size, i == 0 ? "" : dict && i % 2 != 0 ? ": " : ", ");
            value_text(value.as.list[i], out, size);
        }
        append(out, size, brackets + 2);
    } else {
        append(out, size, kind_text(value));
    }
}

/* ---- options --------------------------------------------------------------------------------- */

static bool wants_stats;
static const char *wanted_values; /* a pattern for names; NULL: no values */

static bool take_stats(const char *value)
{
    (void)value;
    wants_stats = true;
    return true;
}

static bool take_values(const char *value)
{
    wanted_values = value;
    return value[0] != '\0';
}

/* Returns the text of a tensor as NumPy prints it, NULL if that fails. The caller frees it. */
static char *tensor_text(tn_tensor *tensor)
{
    int64_t length = tn_tensor_text(tensor, NULL, 0);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (text != NULL && tn_tensor_text(tensor, text, (size_t)length + 1) < 0) {
        free(text);
        return NULL;
    }
    if (text == NULL && length >= 0)
        tn_fail(TN_ERR_MEMORY, "text of a tensor: out of memory");
    return text;
}

static bool is_wanted(const char *name)
{
    return wanted_values == NULL || fnmatch(wanted_values, name, 0) == 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_statistics(const statistics *of)
{
    if (!of->known) {
        json_null("statistics");
        return;
    }
    json_begin("statistics", '{');
    json_float("min", of->least);
    json_float("max", of->most);
    json_float("mean", of->mean);
    json_int("nan", of->nan);
    json_int("infinite", of->infinite);
    json_begin("histogram", '{');
    json_float("low", of->low);
    json_float("high", of->high);
    json_begin("counts", '[');
    for (int i = 0; i < STATISTICS_BINS; i++)
        json_int(NULL, of->bins[i]);
    json_end(']');
    json_end('}');
    json_end('}');
}

/* Writes the object of a tensor. Returns whether its values can be read. */
static bool json_tensor(const char *name, tn_tensor *tensor)
{
    statistics of;
    tn_ints shape = tn_tensor_shape(tensor);
    bool good = !wants_stats || statistics_of(tensor, &of);
    char *text = good && wanted_values != NULL ? tensor_text(tensor) : NULL;
    good = good && (wanted_values == NULL || text != NULL);
    json_begin(NULL, '{');
    json_text("name", name);
    json_text("dtype", tn_dtype_name(tn_tensor_dtype(tensor)));
    json_begin("shape", '[');
    for (int64_t d = 0; d < shape.count; d++)
        json_int(NULL, shape.at[d]);
    json_end(']');
    json_int("elements", tn_tensor_numel(tensor));
    json_int("bytes", files_bytes(tensor));
    if (good && wants_stats)
        json_statistics(&of);
    if (text != NULL)
        json_text("text", text);
    json_end('}');
    free(text);
    return good;
}

static bool inspect_json(const char *file, const tn_state *state)
{
    int64_t elements, bytes;
    bool good = true;
    files_sum(state, &elements, &bytes);
    json_begin(NULL, '{');
    json_text("file", file);
    json_begin("tensors", '[');
    for (int64_t i = 0; i < tn_state_count(state) && good; i++) {
        tn_value value = tn_state_value(state, i);
        if (value.kind == TN_VALUE_TENSOR && is_wanted(tn_state_name(state, i)))
            good = json_tensor(tn_state_name(state, i), value.as.tensor);
    }
    json_end(']');
    json_begin("values", '[');
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        char text[4096] = "";
        tn_value value = tn_state_value(state, i);
        if (value.kind == TN_VALUE_TENSOR || !is_wanted(tn_state_name(state, i)))
            continue;
        value_text(value, text, sizeof text);
        json_begin(NULL, '{');
        json_text("name", tn_state_name(state, i));
        json_text("kind", kind_text(value));
        json_text("text", text);
        json_end('}');
    }
    json_end(']');
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
    if (!good)
        json_error(tn_error_code(), tn_error_text());
    json_end('}');
    return good;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void shape_text(tn_ints shape, char *out, size_t size)
{
    size_t length = (size_t)snprintf(out, size, "[");
    for (int64_t d = 0; d < shape.count && length < size; d++)
        length += (size_t)snprintf(out + length, size - length, "%s%lld", d > 0 ? ", " : "",
                                   (long long)shape.at[d]);
    if (length < size)
        snprintf(out + length, size - length, "]");
}

/* Adds the row of a tensor with its statistics. Returns whether its values can be read. */
static bool statistics_line(table *t, const char *name, tn_tensor *tensor, const char *shape)
{
    statistics of;
    char least[32] = "-", most[32] = "-", mean[32] = "-", nan[32] = "-";
    char bins[3 * STATISTICS_BINS + 1] = "";
    if (!statistics_of(tensor, &of))
        return false;
    if (of.known) {
        snprintf(nan, sizeof nan, "%lld", (long long)of.nan);
        statistics_row(&of, bins, sizeof bins);
    }
    if (of.known && of.numbers > 0) {
        tn_snprint(least, sizeof least, "%.4g", of.least);
        tn_snprint(most, sizeof most, "%.4g", of.most);
        tn_snprint(mean, sizeof mean, "%.4g", of.mean);
    }
    table_row(t, name, tn_dtype_name(tn_tensor_dtype(tensor)), shape, least, most, mean, nan, bins);
    return true;
}

static bool entry_line(table *t, const char *name, tn_value value)
{
    char shape[TN_MAX_DIMS * 24], size[32], text[96] = "";
    if (value.kind != TN_VALUE_TENSOR) {
        value_text(value, text, sizeof text);
        table_row(t, name, kind_text(value), text, "", "", "", "", "");
        return true;
    }
    tn_tensor *tensor = value.as.tensor;
    shape_text(tn_tensor_shape(tensor), shape, sizeof shape);
    if (wants_stats)
        return statistics_line(t, name, tensor, shape);
    table_row(t, name, tn_dtype_name(tn_tensor_dtype(tensor)), shape,
              bytes_text(files_bytes(tensor), size, sizeof size));
    return true;
}

/* Prints the values of one entry below its name. */
static bool print_values(const char *name, tn_value value)
{
    table head = { .columns = 2 };
    char kind[TN_MAX_DIMS * 24 + 32], text[4096] = "";
    char *values = NULL;
    if (value.kind == TN_VALUE_TENSOR) {
        int length = snprintf(kind, sizeof kind, "%s",
                              tn_dtype_name(tn_tensor_dtype(value.as.tensor)));
        shape_text(tn_tensor_shape(value.as.tensor), kind + length, sizeof kind - (size_t)length);
        values = tensor_text(value.as.tensor);
        if (values == NULL)
            return false;
    } else {
        snprintf(kind, sizeof kind, "%s", kind_text(value));
        value_text(value, text, sizeof text);
    }
    putchar('\n');
    table_row(&head, name, kind);
    table_print(&head);
    if (values != NULL)
        puts(values);
    else
        print_wrapped("", 0, text);
    free(values);
    return true;
}

static void print_metadata(const tn_state *state)
{
    table texts = { .columns = 2, .wraps = true };
    int64_t metas = tn_state_meta_count(state);
    if (metas == 0)
        return;
    putchar('\n');
    table_row(&texts, "METADATA", "TEXT");
    for (int64_t i = 0; i < metas; i++)
        table_row(&texts, tn_state_meta_key(state, i),
                  tn_state_meta(state, tn_state_meta_key(state, i)));
    table_print(&texts);
}

static bool inspect_text(const char *file, const tn_state *state)
{
    table t = { .columns = wants_stats ? 8 : 4 }, texts = { .columns = 2, .wraps = true };
    char counts[160];
    bool good = true;
    files_count_text(state, counts, sizeof counts);
    table_row(&texts, file, counts);
    table_print(&texts);
    if (tn_state_count(state) > 0) {
        putchar('\n');
        table_row(&t, "NAME", "DTYPE", "SHAPE", wants_stats ? "MIN" : "SIZE", "MAX", "MEAN", "NAN",
                  "HISTOGRAM");
    }
    for (int64_t i = 0; i < tn_state_count(state) && good; i++)
        if (is_wanted(tn_state_name(state, i)))
            good = entry_line(&t, tn_state_name(state, i), tn_state_value(state, i));
    table_print(&t);
    for (int64_t i = 0; i < tn_state_count(state) && good && wanted_values != NULL; i++)
        if (is_wanted(tn_state_name(state, i)))
            good = print_values(tn_state_name(state, i), tn_state_value(state, i));
    print_metadata(state);
    return good;
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool any_wanted(const tn_state *state)
{
    for (int64_t i = 0; i < tn_state_count(state); i++)
        if (is_wanted(tn_state_name(state, i)))
            return true;
    return wanted_values == NULL;
}

static int run_inspect(int count, char **arguments, bool json)
{
    bool values = wants_stats || wanted_values != NULL;
    (void)count;
    /* On a device without memory, formats read the descriptions of tensors and skip their
     * values. */
    if (tn_set_default_device(values ? "cpu" : "meta") != TN_OK)
        return tool_fail(NULL);
    tn_state *state = tn_state_load_as(arguments[0], values ? TN_FILE_MAP : 0);
    if (state == NULL)
        return tool_fail(NULL);
    if (!any_wanted(state))
        tn_fail(TN_ERR_KEY,
                "%s: no entry has a name like %s; without --values, all names are listed",
                arguments[0], wanted_values);
    bool good = any_wanted(state) &&
                (json ? inspect_json(arguments[0], state) : inspect_text(arguments[0], state));
    tn_state_drop(state);
    return good ? EXIT_OK : tool_fail(NULL);
}

static const tool_option options[] = {
    { "--stats", NULL,
      "adds minimum, maximum, mean, the number of NaN and a histogram of the finite values of each "
      "tensor; minimum, maximum and mean are without NaN",
      take_stats },
    { "--values", "NAME",
      "lists the entries with this name (a pattern such as layer1.*), and prints their values, "
      "abbreviated if there are more than 1000",
      take_values },
    { NULL, NULL, NULL, NULL }
};

const command inspect_command = {
    "inspect",
    "FILE",
    "names, shapes and dtypes of a file of tensors",
    "Prints the name, dtype, shape and size of every tensor of a file (or of a folder with "
    "weights), in the file's order, the values that are not tensors, and the metadata. The format "
    "is detected from the content of the file, else from its extension. Without options the values "
    "of tensors are not read.",
    1,
    1,
    run_inspect,
    false,
    options
};
