/* SPDX-License-Identifier: MIT
 *
 * Names of classes: from a JSON list, from a file, from a dataset; the classes of a dataset in the
 * order of a model. */
#include <string.h>

#include "work.h"

#include "sdk/conform/conform.h"

enum { FILE_MOST = 1 << 24 };

static tn_status add(class_names *names, const char *text, size_t length)
{
    int64_t count = names->count;
    if ((count & (count - 1)) == 0) { /* full: the capacity is a power of two */
        char **grown = tn_realloc(names->at, (size_t)(count > 0 ? 2 * count : 1) * sizeof *grown);
        if (grown == NULL)
            return TN_ERR_MEMORY;
        names->at = grown;
    }
    char *copy = tn_malloc(length + 1);
    if (copy == NULL)
        return TN_ERR_MEMORY;
    memcpy(copy, text, length);
    copy[length] = '\0';
    names->at[names->count++] = copy;
    return TN_OK;
}

void classes_free(class_names *names)
{
    for (int64_t i = 0; i < names->count; i++)
        tn_free(names->at[i]);
    tn_free(names->at);
    *names = (class_names){ NULL, 0 };
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *skip_spaces(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static bool read_hex(const char *at, unsigned *out)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const char *found = at[i] != '\0' ? strchr(digits, at[i]) : NULL;
        if (found == NULL)
            return false;
        *out = *out * 16 + (unsigned)((found - digits) % 16);
    }
    return true;
}

static size_t put_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* Reads the escape after a backslash at *at. Returns the number of bytes written, 0 on error. */
static size_t take_escape(const char **at, char *out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *from = *at + 1, *found = *from != '\0' ? strchr(names, *from) : NULL;
    unsigned code, low;
    if (found != NULL) {
        *at = from + 1;
        *out = values[found - names];
        return 1;
    }
    if (*from != 'u' || !read_hex(from + 1, &code) || code == 0)
        return 0;
    *at = from + 5;
    if (code >= 0xd800 && code < 0xdc00 && (*at)[0] == '\\' && (*at)[1] == 'u' &&
        read_hex(*at + 2, &low) && low >= 0xdc00 && low < 0xe000) {
        *at += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    return put_utf8(out, code);
}

/* Reads a string at *at, which is its quote, into `buffer`, which is as long as the whole text. */
static bool take_string(const char **at, char *buffer, size_t *length)
{
    const char *from = *at + 1;
    *length = 0;
    while (*from != '"' && *from != '\0') {
        size_t took = 1;
        if (*from == '\\')
            took = take_escape(&from, buffer + *length);
        else
            buffer[*length] = *from++;
        if (took == 0)
            return false;
        *length += took;
    }
    *at = from + 1;
    return *from == '"';
}

tn_status classes_parse(const char *json, const char *from, class_names *out)
{
    const char *at = skip_spaces(json);
    char *buffer = tn_malloc(strlen(json) + 1);
    size_t length;
    bool good = *at == '[';
    tn_status status = buffer != NULL ? TN_OK : TN_ERR_MEMORY;

    at = skip_spaces(at + good);
    while (status == TN_OK && good && *at != ']') {
        good = *at == '"' && take_string(&at, buffer, &length);
        if (good)
            status = add(out, buffer, length);
        at = good ? skip_spaces(at) : at;
        if (good && *at == ',')
            at = skip_spaces(at + 1);
        else
            good = good && *at == ']';
    }
    if (good && status == TN_OK)
        good = *skip_spaces(at + 1) == '\0';
    tn_free(buffer);
    if (status == TN_OK && !good)
        status = tn_fail(TN_ERR_FORMAT,
                         "%s: not a list of names, got %q; expected a JSON list such "
                         "as [\"cat\", \"dog\"]",
                         from, strlen(json) < 60 ? json : "a longer text");
    if (status != TN_OK)
        classes_free(out);
    return status;
}

/* ---- files and datasets ---------------------------------------------------------------------- */

/* A name in each line. Empty lines at the end are none. */
static tn_status take_lines(char *text, class_names *out)
{
    size_t size = strlen(text);
    tn_status status = TN_OK;

    while (size > 0 && strchr("\r\n", text[size - 1]) != NULL)
        text[--size] = '\0';
    while (*text != '\0' && status == TN_OK) {
        size_t line = strcspn(text, "\n"), length = line;
        while (length > 0 && text[length - 1] == '\r')
            length--;
        status = add(out, text, length);
        text += line + (text[line] == '\n');
    }
    return status;
}

tn_status classes_read(const char *path, class_names *out)
{
    size_t size;
    char *text = read_file("--labels", path, FILE_MOST, &size);
    tn_status status = text != NULL ? TN_OK : tn_error_code();

    if (status == TN_OK) { /* editors may begin a text with a byte-order mark */
        char *names = text + (strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0);

        status = *skip_spaces(names) == '[' ? classes_parse(names, path, out)
                                            : take_lines(names, out);
    }
    tn_free(text);
    if (status == TN_OK && out->count == 0)
        status = tn_fail(
            TN_ERR_FORMAT,
            "--labels: %s: no names; expected one for each class, on a line of its own or "
            "in a JSON list",
            path);
    return status;
}

tn_status classes_of_dataset(const tn_dataset *dataset, class_names *out)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_dataset_classes(dataset) && status == TN_OK; i++) {
        const char *name = tn_dataset_class_name(dataset, i);
        if (name == NULL)
            break;
        status = add(out, name, strlen(name));
    }
    return status;
}

const char *classes_name(const class_names *names, int64_t index, char *out, size_t size)
{
    if (index >= 0 && index < names->count)
        return names->at[index];
    tn_snprint(out, size, "%lld", (long long)index);
    return out;
}

/* ---- the order of a model -------------------------------------------------------------------- */

tn_status classes_of_model(const model_notes *notes, class_names *out)
{
    const char *json = model_note(notes, MODEL_CLASSES);

    return json != NULL ? classes_parse(json, MODEL_CLASSES, out) : TN_OK;
}

enum { LIST_SIZE = 360 };

/* Writes the number of the classes and their names, as many as there is space for. */
static const char *list_names(const class_names *names, char out[LIST_SIZE])
{
    int64_t used = tn_snprint(out, LIST_SIZE, "%lld (", (long long)names->count);

    for (int64_t i = 0; i < names->count; i++) {
        const char *before = i > 0 ? ", " : "";

        if (used + (int64_t)strlen(names->at[i]) > LIST_SIZE - 40) {
            tn_snprint(out + used, (size_t)(LIST_SIZE - used), "%sand %lld more)", before,
                       (long long)(names->count - i));
            break;
        }
        used += tn_snprint(out + used, (size_t)(LIST_SIZE - used), "%s%s%s", before, names->at[i],
                           i + 1 == names->count ? ")" : "");
    }
    return out;
}

/* Returns the number of a name, -1 if it is none; `likely` is tried first. */
static int64_t find_name(const class_names *names, const char *name, int64_t likely)
{
    if (likely < names->count && strcmp(names->at[likely], name) == 0)
        return likely;
    for (int64_t i = 0; i < names->count; i++)
        if (strcmp(names->at[i], name) == 0)
            return i;
    return -1;
}

/* Returns how many names are numbers; only those that are their own numbers with `own`. */
static int64_t count_numbers(const class_names *names, bool own)
{
    int64_t number, count = 0;

    for (int64_t i = 0; i < names->count; i++)
        count += tn_read_int(names->at[i], &number) && (!own || number == i);
    return count;
}

/* Returns whether one of the two has numbers in place of names, which say nothing about the names
 * of the other. */
static bool lacks_names(const class_names *data, const class_names *model)
{
    return count_numbers(data, true) == data->count ||
           (count_numbers(model, true) == model->count && count_numbers(data, false) == 0);
}

tn_status classes_match(const class_names *data, const class_names *model, class_map *out)
{
    char ours[LIST_SIZE], theirs[LIST_SIZE];
    int64_t moved = 0, lacking = -1;

    *out = (class_map){ NULL, 0 };
    if (data->count == 0 || model->count == 0)
        return TN_OK;
    out->to = tn_calloc((size_t)data->count, sizeof *out->to);
    if (out->to == NULL)
        return TN_ERR_MEMORY;
    out->count = data->count;
    for (int64_t i = 0; i < data->count && lacking < 0; i++) {
        out->to[i] = find_name(model, data->at[i], i);
        moved += out->to[i] != i;
        lacking = out->to[i] < 0 ? i : -1;
    }
    if (lacking >= 0 || moved == 0)
        classes_map_free(out);
    if (lacking < 0 || lacks_names(data, model))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "--data: the model has no class %q; expected names of classes of the model, "
                   "which are %s; those of the data are %s",
                   data->at[lacking], list_names(model, ours), list_names(data, theirs));
}

tn_tensor *classes_renumber(const class_map *map, tn_tensor *target)
{
    int64_t count, *to;
    double *from;
    tn_tensor *made = NULL;

    if (map->to == NULL || target == NULL || tn_tensor_dtype(target) != TN_I64)
        return target;
    count = tn_tensor_numel(target);
    from = work_numbers(target);
    to = from != NULL ? tn_calloc((size_t)count + 1, sizeof *to) : NULL;
    for (int64_t i = 0; to != NULL && i < count; i++) {
        int64_t class = (int64_t)from[i];

        /* others, such as -100, are no classes */
        to[i] = class >= 0 && class < map->count ? map->to[class] : class;
    }
    if (to != NULL)
        made = tn_tensor_empty(tn_tensor_shape(target), TN_I64, tn_tensor_device(target));
    if (made != NULL && tn_tensor_copy_in(made, to, (size_t)count * sizeof *to) != TN_OK)
        made = NULL;
    tn_free(from);
    tn_free(to);
    return made;
}

void classes_map_free(class_map *map)
{
    tn_free(map->to);
    *map = (class_map){ NULL, 0 };
}
