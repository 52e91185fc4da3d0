/* SPDX-License-Identifier: MIT
 *
 * Stores as metadata what a file of tensors and metadata cannot hold otherwise: versions of
 * modules, values that are not tensors, ties. docs/guides/formats.md describes these entries. Each
 * consists of lines; within a line a backslash is written as \\ and a newline as \n. */
#include "lib/io/private.h"

#define DEPTH_MAX 64

static const char versions_key[] = "tenon.versions", values_key[] = "tenon.values",
                  ties_key[] = "tenon.ties";
static const char kinds[] =
    "none, true, false, int, uint, float, string, spec, bytes, list, tuple, "
    "dict, complex number or tensor";

/* ---- lines ----------------------------------------------------------------------------------- */

static void put_line(tn__text *text, const char *line)
{
    for (;;) {
        size_t plain = strcspn(line, "\\\n");
        tn__text_put(text, line, plain);
        if (line[plain] == '\0')
            break;
        tn__text_put(text, line[plain] == '\n' ? "\\n" : "\\\\", 2);
        line += plain + 1;
    }
    tn__text_put(text, "\n", 1);
}

/* Reads the lines of a text one after the other, each into the same buffer. */
struct lines {
    const char *path, *key, *at;
    int64_t number;
    int64_t budget; /* values that lists may still have; each takes at least five bytes of text */
    tn__text line;
};

static tn_status bad(const struct lines *l, const char *what)
{
    return tn_fail(TN_ERR_FORMAT, "%s: metadata %s, line %lld: %s", l->path, l->key,
                   (long long)l->number, what);
}

static tn_status bad_value(const struct lines *l, const char *what, const char *got,
                           const char *expected)
{
    char shown[64]; /* the beginning of `got`, which may be long */

    tn_snprint(shown, sizeof shown, "%s", got);
    return tn_fail(TN_ERR_FORMAT, "%s: metadata %s, line %lld: %s, got %q; expected %s", l->path,
                   l->key, (long long)l->number, what, shown, expected);
}

static tn_status take_line(struct lines *l, const char **line)
{
    l->number++;
    l->line.length = 0;
    tn__text_put(&l->line, "", 0);
    for (;; l->at++) {
        size_t plain = strcspn(l->at, "\\\n");
        tn__text_put(&l->line, l->at, plain);
        l->at += plain;
        if (*l->at == '\0')
            return bad(l, "not terminated; expected a line break");
        if (*l->at == '\n')
            break;
        l->at++;
        if (*l->at != '\\' && *l->at != 'n')
            return bad(l, "wrong escape; expected \\n or \\\\");
        tn__text_put(&l->line, *l->at == 'n' ? "\n" : "\\", 1);
    }
    l->at++;
    if (l->line.failed)
        return tn_fail(TN_ERR_MEMORY, "%s: out of memory for metadata %s", l->path, l->key);
    *line = l->line.at;
    return TN_OK;
}

static tn_status take_number(struct lines *l, int64_t least, int64_t *number)
{
    const char *line = NULL;
    tn_status status = take_line(l, &line);
    if (status != TN_OK)
        return status;
    if (!tn_read_int(line, number) || *number < least)
        return bad_value(l, "wrong number", line, "an integer, 0 or more");
    return TN_OK;
}

/* ---- values as lines ------------------------------------------------------------------------- */

struct lowering {
    const tn_state *state;
    tn_state *out;
    const char *path, *name; /* path of the file; name of the entry */
    tn__text values;
    int64_t tensors; /* number of tensors inside the value of this entry */
};

/* Stores a tensor that is inside a value as an entry of its own, "NAME[0]". */
static tn_status put_tensor(struct lowering *w, tn_tensor *tensor)
{
    tn__text name = { 0 };
    tn_status status = TN_OK;
    do {
        name.length = 0;
        tn__text_add(&name, "%s[%lld]", w->name, (long long)w->tensors++);
        if (name.failed)
            status = tn_fail(TN_ERR_MEMORY, "state: out of memory for a name");
    } while (status == TN_OK &&
             (tn_state_find(w->state, name.at) >= 0 || tn_state_find(w->out, name.at) >= 0));
    if (status == TN_OK)
        status = tn_state_set(w->out, name.at, tensor);
    if (status == TN_OK) {
        put_line(&w->values, "tensor");
        put_line(&w->values, name.at);
    }
    tn__text_free(&name);
    return status;
}

/* The kinds of values that contain others, as they are written. */
static const struct {
    const char *word;
    uint32_t kind;
} rows[] = { { "list", TN_VALUE_LIST },
             { "tuple", TN_VALUE_TUPLE },
             { "dict", TN_VALUE_DICT },
             { "complex number", TN_VALUE_COMPLEX } };

static const char *row_word(uint32_t kind)
{
    size_t i = 0;
    while (i + 1 < tn__countof(rows) && rows[i].kind != kind)
        i++;
    return rows[i].word;
}

static tn_status put_value(struct lowering *w, const tn_value *value, int depth)
{
    tn__text *out = &w->values;
    tn_status status = TN_OK;
    if (depth > DEPTH_MAX)
        return tn_fail(TN_ERR_VALUE,
                       "%s: entry \"%s\": lists nested too deep; expected at most %d levels",
                       w->path, w->name, DEPTH_MAX);
    switch (value->kind) {
    case TN_VALUE_NONE: put_line(out, "none"); break;
    case TN_VALUE_BOOL: put_line(out, value->as.i != 0 ? "true" : "false"); break;
    case TN_VALUE_INT: tn__text_add(out, "int\n%lld\n", (long long)value->as.i); break;
    case TN_VALUE_UINT: tn__text_add(out, "uint\n%llu\n", (unsigned long long)value->as.u); break;
    case TN_VALUE_FLOAT: tn__text_add(out, "float\n%g\n", value->as.f); break;
    case TN_VALUE_STRING:
    case TN_VALUE_SPEC:
        put_line(out, value->kind == TN_VALUE_SPEC ? "spec" : "string");
        put_line(out, value->as.s);
        break;
    case TN_VALUE_BYTES:
        put_line(out, "bytes");
        for (uint32_t i = 0; i < value->count; i++)
            tn__text_add(out, "%02x", (unsigned)(unsigned char)value->as.s[i]);
        put_line(out, "");
        break;
    case TN_VALUE_LIST:
    case TN_VALUE_TUPLE:
    case TN_VALUE_DICT:
    case TN_VALUE_COMPLEX:
        put_line(out, row_word(value->kind));
        tn__text_add(out, "%u\n", value->count);
        for (uint32_t i = 0; i < value->count && status == TN_OK; i++)
            status = put_value(w, &value->as.list[i], depth + 1);
        break;
    case TN_VALUE_TENSOR: return put_tensor(w, value->as.tensor);
    default:
        return tn_fail(TN_ERR_TYPE,
                       "%s: entry \"%s\": cannot be stored in a file, got a value of kind %s",
                       w->path, w->name, tn__value_kind_name(value->kind));
    }
    return status;
}

static tn_status hex_bytes(struct lines *l, char *digits, tn_value *out)
{
    static const char hex[] = "0123456789abcdef";
    size_t length = strlen(digits);
    if (length % 2 != 0 || length / 2 > UINT32_MAX || strspn(digits, hex) != length)
        return bad_value(l, "malformed bytes", digits,
                         "two digits for each byte, 0 to 9 and a to f");
    for (size_t i = 0; i < length / 2; i++)
        digits[i] = (char)((strchr(hex, digits[2 * i]) - hex) << 4 |
                           (strchr(hex, digits[2 * i + 1]) - hex));
    *out = tn_value_bytes(digits, (uint32_t)(length / 2));
    return TN_OK;
}

/* Reads one value, whose memory is in the arena. For a tensor, the line has the name of an entry of
 * `state`. This name is added to `used`, so that the tensor does not stay an entry of its own. */
static tn_status take_value(struct lines *l, tn_state *state, tn__arena *arena, tn_state *used,
                            int depth, tn_value *out);

static tn_status take_row(struct lines *l, tn_state *state, tn__arena *arena, tn_state *used,
                          int depth, uint32_t kind, tn_value *out)
{
    int64_t count = 0;
    tn_status status = take_number(l, 0, &count);
    if (status == TN_OK && count > l->budget)
        status = bad(l, "too many values in a list; expected at most the number of lines "
                        "that follow");
    if (status != TN_OK)
        return status;
    l->budget -= count;
    tn_value *list = tn__arena_alloc(arena, ((size_t)count + 1) * sizeof *list);
    if (list == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = take_value(l, state, arena, used, depth + 1, &list[i]);
    *out = (tn_value){ .kind = kind, .count = (uint32_t)count, .as.list = list };
    uint64_t mark = tn_error_mark();
    if (status == TN_OK && kind == TN_VALUE_DICT && tn__value_check_dict(out) != TN_OK) {
        tn_error_restore(mark);
        return bad(l, "wrong dict; expected a key (a string, a number, a bool or None) and a value "
                      "in turn");
    }
    if (status == TN_OK && kind == TN_VALUE_COMPLEX && !tn__value_complex_ok(out))
        return bad(l, "wrong complex number; expected two values of kind float");
    return status;
}

/* Reads a number from 2^63 to 2^64 - 1, the only ones of kind uint. */
static bool read_uint(const char *line, uint64_t *out)
{
    uint64_t number = 0;

    for (; *line >= '0' && *line <= '9' && number <= (UINT64_MAX - (uint64_t)(*line - '0')) / 10;
         line++)
        number = number * 10 + (uint64_t)(*line - '0');
    *out = number;
    return *line == '\0' && number > INT64_MAX;
}

static tn_status take_value(struct lines *l, tn_state *state, tn__arena *arena, tn_state *used,
                            int depth, tn_value *out)
{
    const char *line = NULL;
    char kind[16];
    tn_status status = take_line(l, &line);
    if (status != TN_OK)
        return status;
    if (depth > DEPTH_MAX)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: metadata %s, line %lld: lists nested too deep; expected at most %d "
                       "levels",
                       l->path, l->key, (long long)l->number, DEPTH_MAX);
    if (tn_snprint(kind, sizeof kind, "%s", line) >= (int64_t)sizeof kind)
        return bad_value(l, "unknown kind of value", line, kinds);
    if (strcmp(kind, "none") == 0) {
        *out = (tn_value){ .kind = TN_VALUE_NONE };
        return TN_OK;
    }
    if (strcmp(kind, "true") == 0 || strcmp(kind, "false") == 0) {
        *out = tn_value_bool(kind[0] == 't');
        return TN_OK;
    }
    for (size_t i = 0; i < tn__countof(rows); i++)
        if (strcmp(kind, rows[i].word) == 0)
            return take_row(l, state, arena, used, depth, rows[i].kind, out);
    status = take_line(l, &line);
    if (status != TN_OK)
        return status;
    if (strcmp(kind, "int") == 0) {
        *out = tn_value_int(0);
        return tn_read_int(line, &out->as.i) ? TN_OK
                                             : bad_value(l, "wrong value", line, "an integer");
    }
    if (strcmp(kind, "uint") == 0) {
        out->kind = TN_VALUE_UINT;
        return read_uint(line, &out->as.u)
                   ? TN_OK
                   : bad_value(l, "wrong value", line, "an integer from 2^63 to 2^64 - 1");
    }
    if (strcmp(kind, "float") == 0) {
        *out = tn_value_float(0);
        return tn_read_float(line, &out->as.f) ? TN_OK
                                               : bad_value(l, "wrong value", line, "a number");
    }
    char *copy = tn__arena_text(arena, line, strlen(line));
    if (copy == NULL)
        return TN_ERR_MEMORY;
    if (strcmp(kind, "bytes") == 0)
        return hex_bytes(l, copy, out);
    *out = tn_value_string(copy);
    if (strcmp(kind, "spec") == 0)
        out->kind = TN_VALUE_SPEC;
    else if (strcmp(kind, "tensor") == 0) {
        int64_t found = tn_state_find(state, copy);
        if (found < 0)
            return bad_value(l, "unknown tensor", copy, "the name of a tensor in this file");
        *out = tn_state_value(state, found);
        return tn_state_set_value(used, copy, tn_value_bool(true));
    } else if (strcmp(kind, "string") != 0)
        return bad_value(l, "unknown kind of value in the line before", kind, kinds);
    return TN_OK;
}

/* ---- from a state ---------------------------------------------------------------------------- */

static tn_status set_text(tn_state *out, const char *key, tn__text *text)
{
    if (text->failed)
        return tn_fail(TN_ERR_MEMORY, "metadata %s: out of memory", key);
    return text->length > 0 ? tn_state_set_meta(out, key, text->at) : TN_OK;
}

static tn_status lower_versions(struct lowering *w)
{
    tn__text text = { 0 };
    for (int64_t i = 0; i < tn_state_version_count(w->state); i++) {
        const char *path = tn_state_version_path(w->state, i);
        put_line(&text, path);
        tn__text_add(&text, "%lld\n", (long long)tn_state_version(w->state, path));
    }
    tn_status status = set_text(w->out, versions_key, &text);
    tn__text_free(&text);
    return status;
}

static tn_status lower_ties(struct lowering *w)
{
    tn__text text = { 0 };
    int64_t *first = NULL;
    tn_status status = tn__tied_weights_find(w->out, &first);
    for (int64_t i = 0; i < tn_state_count(w->out) && status == TN_OK; i++) {
        if (first[i] == i)
            continue;
        put_line(&text, tn_state_name(w->out, i));
        put_line(&text, tn_state_name(w->out, first[i]));
    }
    if (status == TN_OK)
        status = set_text(w->out, ties_key, &text);
    tn__text_free(&text);
    tn_free(first);
    return status;
}

static tn_status lower_entries(struct lowering *w)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_state_count(w->state) && status == TN_OK; i++) {
        tn_value value = tn_state_value(w->state, i);
        w->name = tn_state_name(w->state, i);
        w->tensors = 0;
        if (value.kind == TN_VALUE_TENSOR) {
            status = tn_state_set(w->out, w->name, value.as.tensor);
            continue;
        }
        tn__text_add(&w->values, "%lld\n", (long long)i);
        put_line(&w->values, w->name);
        status = put_value(w, &value, 0);
    }
    return status == TN_OK ? set_text(w->out, values_key, &w->values) : status;
}

static bool is_own(const char *key)
{
    return strcmp(key, versions_key) == 0 || strcmp(key, values_key) == 0 ||
           strcmp(key, ties_key) == 0;
}

tn_state *tn__metadata_from_state(const tn_state *state, const char *path)
{
    struct lowering w = { .state = state, .out = tn_state_new(), .path = path };
    tn_status status = w.out != NULL ? TN_OK : TN_ERR_MEMORY;
    for (int64_t i = 0; i < tn_state_meta_count(state) && status == TN_OK; i++) {
        const char *key = tn_state_meta_key(state, i);
        if (is_own(key))
            status = tn_fail(TN_ERR_KEY,
                             "%s: metadata %q: reserved key; expected a key other than %s, %s and "
                             "%s",
                             path, key, versions_key, values_key, ties_key);
        else
            status = tn_state_set_meta(w.out, key, tn_state_meta(state, key));
    }
    if (status == TN_OK)
        status = lower_entries(&w);
    if (status == TN_OK)
        status = lower_versions(&w);
    if (status == TN_OK)
        status = lower_ties(&w);
    tn__text_free(&w.values);
    if (status == TN_OK)
        return w.out;
    tn_state_drop(w.out);
    return NULL;
}

/* ---- to a state ------------------------------------------------------------------------------ */

static tn_status raise_versions(tn_state *state, struct lines *l)
{
    tn_status status = TN_OK;
    while (*l->at != '\0' && status == TN_OK) {
        const char *line = NULL;
        status = take_line(l, &line);
        char *path = status == TN_OK ? tn_strdup(line) : NULL;
        int64_t version = 0;
        if (status == TN_OK && path == NULL)
            status = TN_ERR_MEMORY;
        if (status == TN_OK)
            status = take_number(l, 0, &version);
        if (status == TN_OK)
            status = tn_state_set_version(state, path, version);
        tn_free(path);
    }
    return status;
}

static tn_status raise_ties(tn_state *state, struct lines *l)
{
    tn_status status = TN_OK;
    while (*l->at != '\0' && status == TN_OK) {
        const char *line = NULL;
        status = take_line(l, &line);
        char *name = status == TN_OK ? tn_strdup(line) : NULL;
        if (status == TN_OK)
            status = name != NULL ? take_line(l, &line) : TN_ERR_MEMORY;
        if (status == TN_OK)
            status = tn__tied_weights_join(state, name, line);
        tn_free(name);
    }
    return status;
}

/* Copies entries of `from` to `to`, beginning at index *next, until `to` has `count` entries. Skips
 * names that are in `used`. */
static tn_status move_tensors(const tn_state *from, int64_t *next, int64_t count,
                              const tn_state *used, tn_state *to)
{
    tn_status status = TN_OK;
    for (; *next < tn_state_count(from) && tn_state_count(to) < count && status == TN_OK; ++*next) {
        const char *name = tn_state_name(from, *next);
        if (tn_state_find(used, name) < 0)
            status = tn_state_set_value(to, name, tn_state_value(from, *next));
    }
    return status;
}

static tn_status copy_meta(const tn_state *from, tn_state *to)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_state_meta_count(from) && status == TN_OK; i++) {
        const char *key = tn_state_meta_key(from, i);
        status = tn_state_set_meta(to, key, tn_state_meta(from, key));
    }
    for (int64_t i = 0; i < tn_state_version_count(from) && status == TN_OK; i++) {
        const char *path = tn_state_version_path(from, i);
        status = tn_state_set_version(to, path, tn_state_version(from, path));
    }
    return status;
}

/* Reads all values. The first pass (`to` is NULL) finds the tensors inside values. The second pass
 * puts the values and all other entries into `to`, in the right order. */
static tn_status values_pass(tn_state *state, struct lines l, tn_state *used, tn_state *to)
{
    tn_status status = TN_OK;
    int64_t next = 0, place = 0;
    while (*l.at != '\0' && status == TN_OK) {
        tn__arena *arena = tn__arena_new();
        const char *line = NULL;
        char *name = NULL;
        tn_value value;
        status = arena != NULL ? take_number(&l, 0, &place) : TN_ERR_MEMORY;
        if (status == TN_OK)
            status = take_line(&l, &line);
        if (status == TN_OK && (name = tn__arena_text(arena, line, strlen(line))) == NULL)
            status = TN_ERR_MEMORY;
        if (status == TN_OK)
            status = take_value(&l, state, arena, used, 0, &value);
        if (status == TN_OK && to != NULL) {
            status = move_tensors(state, &next, place, used, to);
            if (status == TN_OK && tn_state_find(to, name) >= 0)
                status = bad_value(&l, "name: occurs twice", name, "each name once");
            if (status == TN_OK)
                status = tn_state_set_value(to, name, value);
        }
        tn__arena_free(arena);
    }
    tn__text_free(&l.line);
    return status == TN_OK && to != NULL ? move_tensors(state, &next, INT64_MAX, used, to) : status;
}

static tn_state *raise_values(tn_state *state, struct lines l)
{
    tn_state *used = tn_state_new(), *to = tn_state_new();
    tn_status status = used != NULL && to != NULL ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = values_pass(state, l, used, NULL);
    if (status == TN_OK)
        status = values_pass(state, l, used, to);
    if (status == TN_OK)
        status = copy_meta(state, to);
    tn_state_drop(used);
    if (status == TN_OK)
        return to;
    tn_state_drop(to);
    return NULL;
}

/* Calls `reader` for one text, then removes the text from the state. */
static tn_status raise(tn_state *state, const char *path, const char *key,
                       tn_status (*reader)(tn_state *state, struct lines *l))
{
    const char *text = tn_state_meta(state, key);
    if (text == NULL)
        return TN_OK;
    struct lines l = { .path = path, .key = key, .at = text };
    tn_status status = reader(state, &l);
    tn__text_free(&l.line);
    return status == TN_OK ? tn_state_remove_meta(state, key) : status;
}

tn_state *tn__metadata_to_state(tn_state *state, const char *path)
{
    /* Ties first, because tensors inside values may be tied, too. */
    tn_status status = raise(state, path, ties_key, raise_ties);
    if (status == TN_OK)
        status = raise(state, path, versions_key, raise_versions);
    const char *values = status == TN_OK ? tn_state_meta(state, values_key) : NULL;
    if (values != NULL) {
        struct lines l = {
            .path = path, .key = values_key, .at = values, .budget = (int64_t)(strlen(values) / 5)
        };
        tn_state *raised = raise_values(state, l);
        tn_state_drop(state);
        if (raised == NULL)
            return NULL;
        state = raised;
        status = tn_state_remove_meta(state, values_key);
    }
    if (status == TN_OK)
        return state;
    tn_state_drop(state);
    return NULL;
}
