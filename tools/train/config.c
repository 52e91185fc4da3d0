/* SPDX-License-Identifier: MIT
 *
 * Files of settings: TOML, of which lines NAME = VALUE and comments are read, and JSON, of which
 * one object is read. A value is a string, a number, true, false, or a list of strings. */
#include "settings.h"

#include "../tool.h"

#include <stdlib.h>
#include <string.h>

enum { FILE_MOST = 1 << 20 };

/* What has been read of a file. */
struct reader {
    settings *set;
    const char *path;
    const char *at;
    int line;
    bool json;
    char *text; /* the last string or word */
    size_t length, capacity;
};

static tn_status wrong(const struct reader *r, const char *what)
{
    char got[24];
    size_t shown = strcspn(r->at, "\n");

    snprintf(got, sizeof got, "%.*s", (int)(shown < 20 ? shown : 20), r->at);
    return tn_fail(TN_ERR_FORMAT, "%s:%d: expected %s, got %q", r->path, r->line, what, got);
}

static tn_status put(struct reader *r, char letter)
{
    if (r->length + 1 >= r->capacity) {
        size_t capacity = r->capacity * 2 + 64;
        char *text = tn_realloc(r->text, capacity);

        if (text == NULL)
            return TN_ERR_MEMORY;
        r->text = text;
        r->capacity = capacity;
    }
    r->text[r->length++] = letter;
    r->text[r->length] = '\0';
    return TN_OK;
}

static void skip(struct reader *r, bool lines)
{
    for (;; r->at++) {
        if (*r->at == '#' && !r->json)
            r->at += strcspn(r->at, "\n");
        if (*r->at == '\n' && lines)
            r->line++;
        else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r')
            return;
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

static tn_status put_code(struct reader *r, unsigned code)
{
    const unsigned char bytes[] = { (unsigned char)(0xC0 | (code >> 6)),
                                    (unsigned char)(0xE0 | (code >> 12)),
                                    (unsigned char)(0x80 | ((code >> 6) & 0x3F)),
                                    (unsigned char)(0x80 | (code & 0x3F)) };
    tn_status status = TN_OK;

    if (code == 0 || (code >= 0xD800 && code < 0xE000))
        return wrong(r, "the code of a character, other than 0 and the halves of a pair");
    if (code < 0x80)
        return put(r, (char)code);
    status = put(r, (char)bytes[code < 0x800 ? 0 : 1]);
    if (status == TN_OK && code >= 0x800)
        status = put(r, (char)bytes[2]);
    return status == TN_OK ? put(r, (char)bytes[3]) : status;
}

/* Reads the escape after a backslash. */
static tn_status read_escape(struct reader *r)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *known = *r->at != '\0' ? strchr(letters, *r->at) : NULL;
    char digits[5] = "";
    char *end;

    if (known != NULL) {
        r->at++;
        return put(r, meant[known - letters]);
    }
    if (*r->at != 'u')
        return wrong(r, "an escape");
    snprintf(digits, sizeof digits, "%.4s", r->at + 1);
    unsigned long code = strtoul(digits, &end, 16);
    if (end != digits + 4)
        return wrong(r, "four hexadecimal digits");
    tn_status status = put_code(r, (unsigned)code);
    if (status == TN_OK)
        r->at += 5;
    return status;
}

/* Reads a string in " or, in TOML, in ', ''' or """. */
static tn_status read_string(struct reader *r)
{
    char mark = *r->at;
    char three[4] = { mark, mark, mark, '\0' };
    bool whole = !r->json && strncmp(r->at, three, 3) == 0;
    const char *start = r->at;
    tn_status status = TN_OK;

    r->at += whole ? 3 : 1;
    if (whole && *r->at == '\n') {
        r->at++;
        r->line++;
    }
    while (status == TN_OK && (whole ? strncmp(r->at, three, 3) != 0 : *r->at != mark)) {
        if (*r->at == '\0' || (*r->at == '\n' && !whole)) {
            r->at = start;
            return wrong(r, "a string that ends");
        }
        r->line += *r->at == '\n';
        if (*r->at == '\\' && mark == '"') {
            r->at++;
            status = read_escape(r);
        } else {
            status = put(r, *r->at++);
        }
    }
    r->at += whole ? 3 : 1;
    return status;
}

/* Reads a string, a number, true or false into r->text. */
static tn_status read_scalar(struct reader *r)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789_+-.";
    size_t length;
    double number;
    tn_status status = TN_OK;

    r->length = 0;
    if (put(r, '\0') != TN_OK)
        return TN_ERR_MEMORY;
    r->length = 0;
    if (*r->at == '"' || (*r->at == '\'' && !r->json))
        return read_string(r);
    length = strspn(r->at, word);
    for (size_t i = 0; i < length && status == TN_OK; i++)
        if (r->at[i] != '_' || r->json)
            status = put(r, r->at[i]);
    if (status != TN_OK)
        return status;
    if (length == 0 || (strcmp(r->text, "true") != 0 && strcmp(r->text, "false") != 0 &&
                        !tn_read_float(r->text, &number)))
        return wrong(r, "a string in quotes, a number, true, false or a list");
    r->at += length;
    return TN_OK;
}

static tn_status store(struct reader *r, setting which, const char *text)
{
    return settings_put(r->set, which, text, FROM_FILE) == TN_OK
               ? TN_OK
               : tn_error_prefix("%s:%d: ", r->path, r->line);
}

/* Appends the last string or word to a list, after a comma. */
static tn_status append(const struct reader *r, struct reader *list)
{
    tn_status status = list->length > 0 ? put(list, ',') : TN_OK;

    for (size_t i = 0; i < r->length && status == TN_OK; i++)
        status = put(list, r->text[i]);
    return status;
}

/* Reads a list. It is stored as a whole: to append each entry to the setting would copy all entries
 * before it each time. */
static tn_status read_list(struct reader *r, setting which)
{
    struct reader list = { .text = NULL };
    tn_status status = TN_OK;

    r->at++;
    for (skip(r, true); status == TN_OK && *r->at != ']'; skip(r, true)) {
        status = read_scalar(r);
        if (status == TN_OK)
            status = append(r, &list);
        skip(r, true);
        if (status == TN_OK && *r->at == ',')
            r->at++;
        else if (status == TN_OK && *r->at != ']')
            status = wrong(r, "a comma or ]");
    }
    if (status == TN_OK && list.text != NULL)
        status = store(r, which, list.text);
    tn_free(list.text);
    r->at += status == TN_OK;
    return status;
}

/* Reads a value, and stores it as that of a setting. */
static tn_status read_value(struct reader *r, setting which)
{
    bool list = *r->at == '[';
    tn_status status = TN_OK;

    if (list && !(settings_row(which)->flags & SETTING_LIST))
        return wrong(r, "a string, a number, true or false, because this setting takes one value");
    if (list)
        return read_list(r, which);
    status = read_scalar(r);
    return status == TN_OK ? store(r, which, r->text) : status;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Reads a name. In JSON and in quotes it is a string. */
static tn_status read_name(struct reader *r, setting *which, bool *seen)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    tn_status status = TN_OK;

    r->length = 0;
    if (put(r, '\0') != TN_OK)
        return TN_ERR_MEMORY;
    r->length = 0;
    if (*r->at == '"')
        status = read_string(r);
    else if (r->json || strspn(r->at, word) == 0)
        status = wrong(r, r->json ? "a name in quotes" : "NAME = VALUE");
    else
        for (size_t left = strspn(r->at, word); left > 0 && status == TN_OK; left--)
            status = put(r, *r->at++);
    if (status != TN_OK)
        return status;
    *which = settings_find(r->set, r->text);
    if (*which == SETTINGS)
        return tn_error_prefix("%s:%d: ", r->path, r->line);
    if (seen[*which] || *which == SET_CONFIG)
        return tn_fail(TN_ERR_FORMAT, "%s:%d: %s %s", r->path, r->line, settings_row(*which)->name,
                       seen[*which] ? "is given twice" : "cannot be given in a file");
    seen[*which] = true;
    return TN_OK;
}

static tn_status read_pair(struct reader *r, bool *seen)
{
    setting which = SETTINGS;
    tn_status status = read_name(r, &which, seen);

    if (status != TN_OK)
        return status;
    skip(r, r->json);
    if (*r->at != (r->json ? ':' : '='))
        return wrong(r, r->json ? ":" : "=");
    r->at++;
    skip(r, r->json);
    status = read_value(r, which);
    skip(r, r->json);
    return status;
}

static tn_status read_toml(struct reader *r, bool *seen)
{
    tn_status status = TN_OK;

    for (skip(r, true); status == TN_OK && *r->at != '\0'; skip(r, true)) {
        status = read_pair(r, seen);
        if (status == TN_OK && *r->at != '\n' && *r->at != '\0')
            status = wrong(r, "the end of the line");
    }
    return status;
}

static tn_status read_json(struct reader *r, bool *seen)
{
    tn_status status = TN_OK;

    r->at++;
    for (skip(r, true); status == TN_OK && *r->at != '}'; skip(r, true)) {
        status = read_pair(r, seen);
        if (status == TN_OK && *r->at == ',') {
            r->at++;
            skip(r, true);
            if (*r->at == '}')
                status = wrong(r, "a name in quotes");
        } else if (status == TN_OK && *r->at != '}') {
            status = wrong(r, "a comma or }");
        }
    }
    if (status != TN_OK)
        return status;
    r->at++;
    skip(r, true);
    return *r->at == '\0' ? TN_OK : wrong(r, "the end of the file");
}

/* Reads a whole file, which the caller frees. */
static char *read_text(const char *path)
{
    size_t length;
    char *text = read_file("--config", path, FILE_MOST, &length);

    if (text == NULL || memchr(text, '\0', length) == NULL)
        return text;
    tn_free(text);
    tn_fail(TN_ERR_FORMAT, "%s: no text; expected TOML or JSON", path);
    return NULL;
}

tn_status config_read(settings *s, const char *path)
{
    char *text = read_text(path);
    struct reader r = { .set = s, .path = path, .at = text, .line = 1 };
    bool seen[SETTINGS] = { false };
    tn_status status;

    if (text == NULL)
        return tn_error_last_code();
    skip(&r, true);
    r.json = *r.at == '{';
    status = r.json ? read_json(&r, seen) : read_toml(&r, seen);
    tn_free(r.text);
    tn_free(text);
    return status;
}
