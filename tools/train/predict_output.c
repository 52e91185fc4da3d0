/* SPDX-License-Identifier: MIT
 *
 * The results of tenon predict: as a table, JSON, CSV, pictures, or a file of tensors. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "predict.h"

#include "sdk/conform/conform.h"

enum { TOP_DEFAULT = 3, SHOWN = 8, PATH_SIZE = 4096 };

/* ---- the format ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    int format;
} formats[] = { { "table", PREDICT_TABLE },
                { "json", PREDICT_JSON },
                { "csv", PREDICT_CSV },
                { "png", PREDICT_PNG } };

static bool ends_in(const char *path, const char *extension)
{
    size_t length = strlen(path), tail = strlen(extension);
    return length > tail + 1 && path[length - tail - 1] == '.' &&
           strcmp(path + length - tail, extension) == 0;
}

static bool is_format(const char *name)
{
    uint64_t mark = tn_error_mark();
    bool found = tn_registry_find(TN_KIND_tn_format_def, name) != NULL;
    tn_error_restore(mark);
    return found;
}

/* The format that the extension of --output means. */
static int by_extension(const char *path)
{
    const char *slash, *dot;
    struct stat found;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (ends_in(path, formats[i].name))
            return formats[i].format;
    slash = strrchr(path, '/');
    dot = strrchr(slash != NULL ? slash : path, '.');
    if (dot == NULL || (stat(path, &found) == 0 && !S_ISREG(found.st_mode)))
        return PREDICT_TABLE;
    return strcmp(dot, ".txt") == 0 ? PREDICT_TABLE : PREDICT_ARRAYS;
}

tn_status predict_output_choose(const char *format, predict_output *to)
{
    to->format = -1;
    if (format == NULL)
        to->format = to->path != NULL ? by_extension(to->path) : PREDICT_TABLE;
    for (size_t i = 0; i < sizeof formats / sizeof *formats && format != NULL; i++)
        if (strcmp(format, formats[i].name) == 0)
            to->format = formats[i].format;
    if (to->format < 0 && is_format(format)) {
        to->format = PREDICT_ARRAYS;
        if (to->path != NULL && !ends_in(to->path, format))
            return tn_fail(TN_ERR_VALUE,
                           "--output %s: wrong extension; expected .%s for --format %s", to->path,
                           format, format);
    }
    if (to->format < 0)
        return tn_fail(TN_ERR_VALUE,
                       "--format: unknown, got %q; expected table, json, csv, png, or a format of "
                       "tensors such as npy (`tenon info` lists them)",
                       format);
    if (to->path == NULL && (to->format == PREDICT_PNG || to->format == PREDICT_ARRAYS))
        return tn_fail(
            TN_ERR_VALUE,
            "--format %s: it needs --output, which is missing; expected the path of a %s", format,
            to->format == PREDICT_PNG ? "folder, or a file for one picture" : "file");
    return TN_OK;
}

static bool is_text(const predict_output *to)
{
    return to->format == PREDICT_TABLE || to->format == PREDICT_JSON || to->format == PREDICT_CSV;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

/* Text goes to standard output, which is then the file. */
static tn_status redirect(predict_output *to)
{
    const char *why = NULL;
    FILE *file = conform_create(to->path, &why);
    int code = errno;
    bool done = file != NULL && fflush(stdout) == 0 && dup2(fileno(file), STDOUT_FILENO) >= 0;
    if (file != NULL && !done)
        code = errno;
    if (file != NULL)
        fclose(file);
    to->redirected = done;
    return done ? TN_OK
                : tn_fail_native(TN_ERR_IO, code, "--output %s: cannot be written: %s", to->path,
                                 why != NULL ? why : strerror(code));
}

tn_status predict_output_begin(predict_output *to)
{
    struct stat found;
    tn_status status = TN_OK;
    if (to->format == PREDICT_PNG) {
        to->files = tn_state_new();
        if (to->files == NULL)
            return TN_ERR_MEMORY;
        if (!ends_in(to->path, "png") && mkdir(to->path, 0777) != 0 &&
            (errno != EEXIST || stat(to->path, &found) != 0 || !S_ISDIR(found.st_mode)))
            return tn_fail(TN_ERR_IO, "--output %s: not a folder, and none can be created: %s",
                           to->path, strerror(errno));
    }
    if (is_text(to) && to->path != NULL)
        status = redirect(to);
    return status;
}

/* Begins the text, when the first result says what it consists of. */
static void begin_text(predict_output *to, bool classes, int64_t width)
{
    if (to->begun)
        return;
    to->begun = true;
    to->table.columns = classes ? 3 : 2;
    if (to->format == PREDICT_TABLE && classes)
        table_row(&to->table, "INPUT", "CLASS", to->raw ? "RESULT" : "PROBABILITY");
    else if (to->format == PREDICT_TABLE)
        table_row(&to->table, "INPUT", "RESULT");
    if (to->format == PREDICT_JSON) {
        json_begin(NULL, '{');
        json_text("device", to->device);
        json_begin("results", '[');
    }
    if (to->format == PREDICT_CSV && classes)
        printf("input,rank,index,class,%s\n", to->raw ? "result" : "probability");
    if (to->format == PREDICT_CSV && !classes) {
        fputs("input", stdout);
        for (int64_t i = 0; i < width; i++)
            printf(",%lld", (long long)i);
        putchar('\n');
    }
}

static tn_status end_arrays(predict_output *to)
{
    TN_SCOPE;
    tn_state *state = tn_state_new();
    tn_tensor *all = state != NULL ? tn_cat(to->arrays, to->array_count, 0) : NULL;
    tn_status status = all != NULL ? tn_state_set(state, "output", all) : tn_error_last_code();
    if (status == TN_OK)
        status = tn_state_save(state, to->path);
    tn_state_drop(state);
    return status;
}

tn_status predict_output_end(predict_output *to, int64_t skipped)
{
    if (to->results == 0)
        return tn_fail(TN_ERR_VALUE, "predict: no samples%s",
                       skipped > 0 ? " that can be read" : "");
    if (to->format == PREDICT_ARRAYS)
        return end_arrays(to);
    if (to->format == PREDICT_TABLE)
        table_print(&to->table);
    if (to->format == PREDICT_JSON) {
        json_end(']');
        json_int("skipped", skipped);
        json_end('}');
    }
    if (to->redirected && (fflush(stdout) != 0 || ferror(stdout)))
        return tn_fail_native(TN_ERR_IO, errno, "--output %s: cannot be written: %s", to->path,
                              strerror(errno));
    return TN_OK;
}

bool predict_output_close(predict_output *to)
{
    if (to->format != PREDICT_JSON || !json_is_open())
        return false;
    json_end(']');
    json_error(tn_error_code(), tn_error_text());
    json_end('}');
    return true;
}

void predict_output_free(predict_output *to, bool failed)
{
    for (int64_t i = 0; i < to->array_count; i++)
        tn_tensor_drop(to->arrays[i]);
    tn_free(to->arrays);
    tn_state_drop(to->files);
    classes_free(&to->names);
    if (!failed || !to->redirected)
        return;
    /* What is left in the buffer belongs to the file, not to the terminal. */
    struct stat found;
    if (stat(to->path, &found) == 0 && S_ISREG(found.st_mode))
        remove(to->path);
}

/* ---- classes --------------------------------------------------------------------------------- */

/* Turns scores into probabilities, unless they already are. */
static void softmax(double *scores, int64_t count)
{
    double most = -INFINITY, sum = 0;
    bool done = true;
    for (int64_t i = 0; i < count; i++) {
        most = scores[i] > most ? scores[i] : most;
        sum += scores[i];
        done = done && scores[i] >= 0 && scores[i] <= 1;
    }
    if (done && fabs(sum - 1) < 1e-3)
        return;
    sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += scores[i] = exp(scores[i] - most);
    for (int64_t i = 0; i < count; i++)
        scores[i] /= sum;
}

/* Returns the index of the score that comes after that of index `last` in descending order, or of
 * the largest score if `last` is negative. Of equal scores, that with the smaller index comes
 * first; NaN is left out. Returns -1 if none is left. */
static int64_t next_best(const double *scores, int64_t count, int64_t last)
{
    int64_t best = -1;
    for (int64_t i = 0; i < count; i++) {
        bool left = last < 0 || scores[i] < scores[last] || (scores[i] == scores[last] && i > last);
        if (left && !isnan(scores[i]) && (best < 0 || scores[i] > scores[best]))
            best = i;
    }
    return best;
}

static void csv_text(const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void put_class(predict_output *to, const char *input, int64_t rank, int64_t index,
                      double score)
{
    char name[32], number[64];
    const char *words = classes_name(&to->names, index, name, sizeof name);
    switch (to->format) {
    case PREDICT_TABLE:
        snprintf(number, sizeof number, to->raw ? "%.6g" : "%.4f", score);
        table_row(&to->table, rank == 0 ? input : "", words, number);
        break;
    case PREDICT_JSON:
        json_begin(NULL, '{');
        json_int("index", index);
        json_text("name", words);
        json_float(to->raw ? "result" : "probability", score);
        json_end('}');
        break;
    default:
        csv_text(input);
        printf(",%lld,%lld,", (long long)rank + 1, (long long)index);
        csv_text(words);
        tn_snprint(number, sizeof number, "%g", score);
        printf(",%s\n", number);
    }
}

static tn_status put_classes(predict_output *to, const char *input, double *scores, int64_t count)
{
    int64_t top = to->top > 0 ? to->top : TOP_DEFAULT, last = -1;
    for (int64_t i = 0; i < count; i++)
        if (isnan(scores[i]))
            return tn_fail(TN_ERR_VALUE, "%s: the score of class %lld is NaN", input, (long long)i);
    if (!to->raw)
        softmax(scores, count);
    if (to->format == PREDICT_JSON) {
        json_begin(NULL, '{');
        json_text("input", input);
        json_begin("classes", '[');
    }
    for (int64_t rank = 0; rank < top && rank < count; rank++) {
        last = next_best(scores, count, last);
        put_class(to, input, rank, last, scores[last]);
    }
    if (to->format == PREDICT_JSON) {
        json_end(']');
        json_end('}');
    }
    return TN_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void nested_json(const double **numbers, tn_ints shape, bool named)
{
    if (shape.count == 0) {
        json_float(named ? "output" : NULL, *(*numbers)++);
        return;
    }
    json_begin(named ? "output" : NULL, '[');
    for (int64_t i = 0; i < shape.at[0]; i++)
        nested_json(numbers, (tn_ints){ shape.at + 1, shape.count - 1 }, false);
    json_end(']');
}

static void put_numbers(predict_output *to, const char *input, const double *numbers, tn_ints shape,
                        int64_t count)
{
    char text[SHOWN * 32 + 64];
    int used = 0;
    text[0] = '\0';
    switch (to->format) {
    case PREDICT_TABLE:
        for (int64_t i = 0; i < count && i < SHOWN; i++)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s%.6g", i > 0 ? " " : "",
                             numbers[i]);
        if (count > SHOWN)
            snprintf(text + used, sizeof text - (size_t)used, " ... (%lld numbers)",
                     (long long)count);
        table_row(&to->table, input, text);
        break;
    case PREDICT_JSON:
        json_begin(NULL, '{');
        json_text("input", input);
        nested_json(&numbers, shape, true);
        json_end('}');
        break;
    default:
        csv_text(input);
        for (int64_t i = 0; i < count; i++) {
            tn_snprint(text, sizeof text, "%g", numbers[i]);
            printf(",%s", text);
        }
        putchar('\n');
    }
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* Writes the path of the picture for an input to `out`: the output folder, the name of the input
 * with another extension, and a number if an earlier input has the same name. */
static tn_status name_picture(predict_output *to, const char *input, char *out, size_t size)
{
    const char *base = base_name(input), *dot = strrchr(base, '.');
    int length = dot != NULL && dot > base && strchr(dot, '[') == NULL ? (int)(dot - base)
                                                                       : (int)strlen(base);
    struct stat old, made;
    if (ends_in(to->path, "png")) {
        if (to->results > 0)
            return tn_fail(TN_ERR_VALUE,
                           "--output %s: one file for several results; expected a "
                           "folder",
                           to->path);
        tn_snprint(out, size, "%s", to->path);
    } else {
        tn_snprint(out, size, "%s/%.*s.png", to->path, length, base);
        for (int64_t i = 2; tn_state_find(to->files, out) >= 0; i++)
            tn_snprint(out, size, "%s/%.*s-%lld.png", to->path, length, base, (long long)i);
    }
    if (strlen(out) + 1 >= size)
        return tn_fail(TN_ERR_VALUE,
                       "--output %s: the path of the picture for %s is too long; expected at most "
                       "%zu bytes",
                       to->path, input, size - 2);
    if (stat(input, &old) == 0 && stat(out, &made) == 0 && old.st_dev == made.st_dev &&
        old.st_ino == made.st_ino)
        return tn_fail(TN_ERR_VALUE,
                       "--output %s: would overwrite the input %s; expected another "
                       "folder or file",
                       to->path, input);
    return tn_state_set_value(to->files, out, tn_value_bool(true));
}

static tn_status put_picture(predict_output *to, const char *input, const double *numbers,
                             tn_ints shape, double factor)
{
    char path[PATH_SIZE];
    bool plain = shape.count == 2;
    int64_t channels = plain ? 1 : shape.count == 3 ? shape.at[0] : 0;
    tn_status status;

    if (shape.count == 3 && channels != 1 && channels != 3)
        return tn_fail(
            TN_ERR_VALUE,
            "--format png: the result has 3 dimensions, the first of size %lld; expected [H, W], "
            "[1, H, W] or [3, H, W] for each input",
            (long long)channels);
    if (channels != 1 && channels != 3)
        return tn_fail(TN_ERR_VALUE,
                       "--format png: the result has %d dimensions; expected [H, W], [1, H, W] or "
                       "[3, H, W] for each input",
                       (int)shape.count);
    int64_t height = shape.at[!plain], width = shape.at[!plain + 1], area = height * width;
    status = name_picture(to, input, path, sizeof path);
    unsigned char *pixels = status == TN_OK ? tn_malloc((size_t)(area * channels + 1)) : NULL;
    if (pixels == NULL)
        return status != TN_OK ? status : TN_ERR_MEMORY;
    for (int64_t i = 0; i < area * channels && status == TN_OK; i++) {
        double value = numbers[i] * factor;
        if (isnan(value))
            status = tn_fail(
                TN_ERR_VALUE,
                "%s: NaN in the result; expected numbers, because pixels cannot be NaN", input);
        value = value < 0 ? 0 : value > 255 ? 255 : floor(value + 0.5);
        pixels[i % area * channels + i / area] = isnan(value) ? 0 : (unsigned char)value;
    }
    if (status == TN_OK)
        status = png_write(path, pixels, width, height, (int)channels);
    tn_free(pixels);
    return status;
}

/* ---- a batch --------------------------------------------------------------------------------- */

static tn_status collect(predict_output *to, tn_tensor *result)
{
    tn_tensor *host = tn_tensor_empty(tn_tensor_shape(result), tn_tensor_dtype(result),
                                      tn_device_find("cpu"));
    if (host == NULL || tn_tensor_copy_async(host, result) != TN_OK)
        return tn_error_last_code();
    if (to->array_count == to->array_capacity) {
        int64_t capacity = to->array_capacity > 0 ? 2 * to->array_capacity : 16;
        tn_tensor **grown = tn_realloc(to->arrays, (size_t)capacity * sizeof *grown);
        if (grown == NULL)
            return TN_ERR_MEMORY;
        to->arrays = grown;
        to->array_capacity = capacity;
    }
    to->arrays[to->array_count++] = tn_tensor_keep(host);
    return TN_OK;
}

/* Whether the results are shown as classes: they are [N, C], and names are known or --top is
 * given. */
static tn_status shows_classes(const predict_output *to, const tn_tensor *result, bool *out)
{
    char got[256];
    bool fits = tn_tensor_ndim(result) == 2 && tn_tensor_size(result, 1) > 1;
    *out = fits && (to->top > 0 || to->names.count > 0);
    if (to->top > 0 && !fits)
        return tn_fail(TN_ERR_VALUE,
                       "--top: the results are not scores of classes, got %s; expected [N, C]",
                       work_shape(result, got, sizeof got));
    if (*out && to->names.count > 0 && to->names.count != tn_tensor_size(result, 1) &&
        (!to->learned || to->names.count > tn_tensor_size(result, 1)))
        return tn_fail(
            TN_ERR_VALUE,
            "classes: wrong number of names, got %lld; expected %lld, one for each class "
            "of the results",
            (long long)to->names.count, (long long)tn_tensor_size(result, 1));
    return TN_OK;
}

tn_status predict_output_add(predict_output *to, tn_tensor *result, char *const *names)
{
    bool classes = false;
    tn_ints shape = tn_tensor_shape(result);
    int64_t count = shape.at[0], width = count > 0 ? tn_tensor_numel(result) / count : 0;
    double factor = tn_tensor_dtype(result) == TN_U8 ? 1 : 255;
    tn_ints inner = { shape.at + 1, shape.count - 1 };
    tn_status status = TN_OK;

    if (to->format == PREDICT_ARRAYS)
        status = collect(to, result);
    else if (is_text(to))
        status = shows_classes(to, result, &classes);
    double *numbers = status == TN_OK && to->format != PREDICT_ARRAYS ? work_numbers(result) : NULL;
    if (numbers == NULL) {
        to->results += count;
        return to->format == PREDICT_ARRAYS ? status : tn_error_last_code();
    }
    if (is_text(to))
        begin_text(to, classes, width);
    for (int64_t i = 0; i < count && status == TN_OK; i++, to->results++) {
        if (to->format == PREDICT_PNG)
            status = put_picture(to, names[i], numbers + i * width, inner, factor);
        else if (classes)
            status = put_classes(to, names[i], numbers + i * width, width);
        else
            put_numbers(to, names[i], numbers + i * width, inner, width);
    }
    tn_free(numbers);
    return status;
}
