/* SPDX-License-Identifier: MIT
 *
 * Reads cases of layers:
 *   layer SPEC
 *   eval                                the layer is checked only in eval mode
 *   random                              the layer draws random numbers in eval mode, too
 *   records                             calls change buffers in eval mode, too
 *   train 0                             the expected results are those of eval mode
 *   in DTYPE SHAPE [g] [: NUMBERS]      "-": no dimensions; without NUMBERS, random numbers
 *   state NAME DTYPE SHAPE : NUMBERS    a parameter or buffer for computing the results
 *   out DTYPE SHAPE : NUMBERS           an expected result
 * The files may also contain cases of operators and optimizers, whose lines are skipped. */
#include "layers.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct reader {
    const char *type, *file;
    int line;
    conform_layer_case one;
    bool ours, stop;
    bool (*take)(void *user, conform_layer_case *one);
    void *user;
    int64_t taken;
    char *words;
    size_t size;
} reader;

/* Writes a message with file and line to r->words; returns false. */
static bool wrong(const reader *r, const char *what)
{
    if (r->line > 0)
        snprintf(r->words, r->size, "%s:%d: %s", r->file, r->line, what);
    else /* the file cannot be opened */
        snprintf(r->words, r->size, "%s: %s", r->file, what);
    return false;
}

/* Puts file and line in front of the message that is in r->words; returns false. */
static bool wrong_line(const reader *r)
{
    char what[256];

    snprintf(what, sizeof what, "%s", r->words);
    return wrong(r, what);
}

static void clear(reader *r)
{
    for (int64_t i = 0; i < r->one.n_in; i++)
        free(r->one.in[i].values);
    for (int64_t i = 0; i < r->one.n_out; i++)
        free(r->one.out[i].values);
    for (int64_t i = 0; i < r->one.n_state; i++)
        free(r->one.state[i].tensor.values);
    free(r->one.state);
    memset(&r->one, 0, sizeof r->one);
    r->ours = false;
}

/* Passes the current case to the receiver. Called when the next case begins. */
static void hand_out(reader *r)
{
    if (r->ours && !r->stop) {
        r->taken++;
        r->stop = !r->take(r->user, &r->one);
    }
    clear(r);
}

static bool read_shape(const char *text, conform_tensor *t)
{
    t->count = 1;
    if (strcmp(text, "-") == 0)
        return true;
    for (char *end; *text != '\0'; text = *end == ',' ? end + 1 : end) {
        if (t->ndim == TN_MAX_DIMS)
            return false;
        t->shape[t->ndim] = strtoll(text, &end, 10);
        if (end == text || (*end != ',' && *end != '\0') || t->shape[t->ndim] < 0 ||
            t->shape[t->ndim] > 1 << 20 || t->count * t->shape[t->ndim] > 1 << 20)
            return false;
        t->count *= t->shape[t->ndim++];
    }
    return true;
}

/* Fills a tensor with random numbers: floats between -2 and 2, integers 0 and 1. */
static void draw(conform_tensor *t)
{
    uint64_t state = 0x9e3779b97f4a7c15u + (uint64_t)t->count;

    for (int64_t i = 0; i < t->count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        t->values[i] = (TN_MASK_FLOAT & TN_BIT(t->dtype)) != 0
                           ? (double)(state >> 40) / (double)(1 << 22) - 2
                           : (double)(state >> 40 & 1);
    }
}

static bool read_numbers(const char *text, conform_tensor *t)
{
    for (int64_t i = 0; i < t->count; i++) {
        char word[64];
        size_t length;

        text += strspn(text, " \t");
        length = strcspn(text, " \t");
        if (length == 0 || length >= sizeof word)
            return false;
        memcpy(word, text, length);
        word[length] = '\0';
        if (!tn_read_float(word, &t->values[i]))
            return false;
        text += length;
    }
    return text[strspn(text, " \t")] == '\0';
}

/* Reads DTYPE SHAPE [g] [: NUMBERS] into a tensor, whose values clear() frees. */
static bool read_tensor(const reader *r, char *text, conform_tensor *t)
{
    char *numbers = strchr(text, ':'), dtype[16], shape[128], flag[4] = "";

    if (numbers != NULL)
        *numbers++ = '\0';
    if (sscanf(text, "%15s %127s %3s", dtype, shape, flag) < 2 ||
        (flag[0] != '\0' && strcmp(flag, "g") != 0))
        return wrong(r, "malformed tensor; expected DTYPE SHAPE [g] [: NUMBERS]");
    memset(t, 0, sizeof *t);
    t->there = true;
    t->grad = flag[0] == 'g';
    if (tn_dtype_parse(dtype, &t->dtype) != TN_OK || (TN_MASK_COMPLEX & TN_BIT(t->dtype)) != 0) {
        tn_error_clear();
        return wrong(r, "unknown or complex dtype; expected a bool, integer or float dtype");
    }
    if (!read_shape(shape, t))
        return wrong(r, "malformed shape; expected 2,3, or - for no dimension");
    t->values = malloc((size_t)(t->count + 1) * sizeof *t->values);
    if (t->values == NULL)
        return wrong(r, "out of memory");
    if (numbers == NULL)
        draw(t);
    else if (!read_numbers(numbers, t)) {
        free(t->values);
        t->values = NULL;
        return wrong(r, "the numbers do not fill the shape");
    }
    return true;
}

static bool read_input(reader *r, char *text)
{
    if (r->one.n_in == CONFORM_LAYER_INPUTS)
        return wrong(r, "too many inputs of a layer; expected at most 8");
    return read_tensor(r, text, &r->one.in[r->one.n_in]) && ++r->one.n_in > 0;
}

static bool read_result(reader *r, char *text)
{
    if (r->one.n_out == CONFORM_LAYER_RESULTS)
        return wrong(r, "too many results of a layer; expected at most 16");
    if (strchr(text, ':') == NULL)
        return wrong(r, "no numbers; expected out DTYPE SHAPE : NUMBERS");
    return read_tensor(r, text, &r->one.out[r->one.n_out]) && ++r->one.n_out > 0;
}

static bool read_state(reader *r, char *text)
{
    size_t length = strcspn(text, " ");
    conform_layer_state *more;

    if (length == 0 || length >= sizeof more->name || strchr(text, ':') == NULL)
        return wrong(r, "expected state NAME DTYPE SHAPE : NUMBERS");
    more = realloc(r->one.state, (size_t)(r->one.n_state + 1) * sizeof *more);
    if (more == NULL)
        return wrong(r, "out of memory");
    r->one.state = more;
    more += r->one.n_state;
    snprintf(more->name, sizeof more->name, "%.*s", (int)length, text);
    return read_tensor(r, text + length, &more->tensor) && ++r->one.n_state > 0;
}

static bool read_line(reader *r, char *line)
{
    size_t length = strlen(r->type);
    char *text = line + strcspn(line, " ");

    if (conform_line_of_other(line, "")) {
        hand_out(r);
        r->ours = line[0] == 'l' && strncmp(line + 6, r->type, length) == 0 &&
                  (line[6 + length] == '(' || line[6 + length] == '\0');
        if (r->ours && strlen(line + 6) >= sizeof r->one.spec)
            return wrong(r, "the spec is too long; expected at most 511 bytes");
        if (r->ours)
            strcpy(r->one.spec, line + 6);
        return true;
    }
    if (!conform_line_begins(line, r->ours ? CONFORM_LAYER_LINES : CONFORM_LINES, r->words,
                             r->size))
        return wrong_line(r);
    if (!r->ours)
        return true;
    text += *text == ' ';
    if (strcmp(line, "eval") == 0)
        r->one.eval = true;
    if (strcmp(line, "train 0") == 0)
        r->one.given_eval = true;
    if (strcmp(line, "random") == 0)
        r->one.random = true;
    if (strcmp(line, "records") == 0)
        r->one.records = true;
    if (strncmp(line, "in ", 3) == 0)
        return read_input(r, text);
    if (strncmp(line, "out ", 4) == 0)
        return read_result(r, text);
    return strncmp(line, "state ", 6) == 0 ? read_state(r, text) : true;
}

static bool read_file(reader *r, const char *path)
{
    const char *why = NULL;
    conform_lines lines = { .file = conform_open(path, &why) };
    char *line;
    bool well = true;

    r->file = path;
    r->line = 0;
    if (lines.file == NULL)
        return wrong(r, why);
    while (well && !r->stop && conform_next_line(&lines, &line, &why)) {
        r->line++;
        well = read_line(r, line);
    }
    if (well && why != NULL)
        well = wrong(r, why);
    if (well)
        hand_out(r);
    clear(r);
    conform_lines_end(&lines);
    return well;
}

int64_t conform_layer_cases(const char *path, const char *type,
                            bool (*take)(void *user, conform_layer_case *one), void *user,
                            char *words, size_t size)
{
    reader r = {
        .type = type, .file = path, .take = take, .user = user, .words = words, .size = size
    };
    struct dirent **entries = NULL;
    struct stat about;
    bool well = true;
    int count = 0;

    words[0] = '\0';
    if (stat(path, &about) != 0)
        well = wrong(&r, strerror(errno));
    else if (!S_ISDIR(about.st_mode))
        well = read_file(&r, path);
    else if ((count = scandir(path, &entries, conform_is_text, alphasort)) <= 0)
        well = wrong(&r, "no file *.txt is in this folder");
    for (int i = 0; i < count; i++) {
        char full[4096];

        snprintf(full, sizeof full, "%s/%s", path, entries[i]->d_name);
        well = well && (r.stop || read_file(&r, full));
        free(entries[i]);
    }
    free(entries);
    return well ? r.taken : -1;
}
