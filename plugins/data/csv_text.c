/* SPDX-License-Identifier: MIT
 *
 * The records of a table as text (RFC 4180), and what spreadsheets do besides: a byte-order mark,
 * lines that end with CR alone, spaces around fields, records without a value at the end. */
#include "csv.h"

#include <string.h>

/* ---- files ----------------------------------------------------------------------------------- */

bool csv_is_wide(const char *text)
{
    return memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0;
}

tn_status csv_wide(const char *path)
{
    return tn_fail(TN_ERR_FORMAT,
                   "%s: text in UTF-16; expected UTF-8, in a spreadsheet \"CSV UTF-8\"", path);
}

char *csv_load(const char *path)
{
    struct data_file *file = data_file_open(path);
    uint64_t size = 0;
    char *text = file != NULL ? data_file_rest(file, &size) : NULL;
    bool wide = text != NULL && size >= 2 && csv_is_wide(text);

    data_file_close(file);
    if (text == NULL || (strlen(text) == size && !wide))
        return text;
    if (wide)
        csv_wide(path);
    else
        tn_fail(TN_ERR_FORMAT, "%s: not a text file: byte %zu is 0; expected text in UTF-8", path,
                strlen(text));
    tn_free(text);
    return NULL;
}

tn_status csv_check_separator(const char *separator)
{
    if (strlen(separator) == 1 && strchr("\"\r\n", separator[0]) == NULL)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "separator: wrong, got %q; expected one character that is no quote and no end "
                   "of line",
                   separator);
}

tn_status csv_check_header(const tn_value *header)
{
    if (header->kind == TN_VALUE_NONE || header->kind == TN_VALUE_BOOL)
        return TN_OK;
    return tn_fail(TN_ERR_TYPE, "header: wrong type, got %s; expected True, False or None",
                   tn_value_kind_name(header->kind));
}

void csv_begin(struct csv_text *t, const char *path, char separator, char *text)
{
    if (strncmp(text, "\xEF\xBB\xBF", 3) == 0)
        text += 3;
    *t = (struct csv_text){ .path = path, .separator = separator, .at = text, .next = 1 };
}

void csv_end(struct csv_text *t)
{
    tn_free(t->fields);
    t->fields = NULL;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static tn_status add_field(struct csv_text *t, char *field)
{
    if (t->count == t->capacity) {
        int64_t capacity = t->capacity > 0 ? 2 * t->capacity : 64;
        char **grown = tn_realloc(t->fields, (size_t)capacity * sizeof *grown);

        if (grown == NULL)
            return TN_ERR_MEMORY;
        t->fields = grown;
        t->capacity = capacity;
    }
    t->fields[t->count++] = field;
    return TN_OK;
}

static void skip_spaces(struct csv_text *t)
{
    while (*t->at == ' ' && t->separator != ' ')
        t->at++;
}

static bool ends_field(const struct csv_text *t)
{
    return *t->at == t->separator || *t->at == '\n' || *t->at == '\r' || *t->at == '\0';
}

/* Takes a field whose quote is at t->at, in which "" is a quote. Sets *end to its end. */
static tn_status take_quoted(struct csv_text *t, char **end)
{
    char *out = ++t->at;

    while (*t->at != '\0' && !(t->at[0] == '"' && t->at[1] != '"')) {
        t->at += t->at[0] == '"';
        t->next += *t->at == '\n';
        *out++ = *t->at++;
    }
    if (*t->at == '\0')
        return tn_fail(TN_ERR_FORMAT, "%s: line %lld, column %lld: a quote that does not end",
                       t->path, (long long)t->line, (long long)t->count);
    t->at++;
    skip_spaces(t);
    if (!ends_field(t))
        return tn_fail(TN_ERR_FORMAT,
                       "%s: line %lld, column %lld: text after a field in quotes; expected a "
                       "separator, or two quotes for a quote in the field",
                       t->path, (long long)t->line, (long long)t->count);
    *end = out;
    return TN_OK;
}

/* Takes a field, and sets *last to whether it is the last of its record. */
static tn_status take_field(struct csv_text *t, bool *last)
{
    char *from, *end, stop;
    tn_status status = TN_OK;

    skip_spaces(t);
    from = end = t->at;
    if (*from == '"') {
        from++;
        status = take_quoted(t, &end);
    } else {
        while (!ends_field(t))
            t->at++;
        end = t->at;
        while (end > from && end[-1] == ' ')
            end--;
    }
    if (status != TN_OK)
        return status;
    stop = *t->at;
    t->at += stop == '\r' && t->at[1] == '\n';
    t->at += stop != '\0';
    t->next += stop == '\n' || stop == '\r';
    *end = '\0';
    *last = stop != t->separator;
    return add_field(t, from);
}

/* ---- records --------------------------------------------------------------------------------- */

static bool is_empty(const struct csv_text *t)
{
    for (int64_t i = 0; i < t->count; i++)
        if (t->fields[i][0] != '\0')
            return false;
    return true;
}

tn_status csv_next(struct csv_text *t, bool *more)
{
    tn_status status = TN_OK;

    do {
        bool last = false;

        t->count = 0;
        t->line = t->next;
        while (*t->at != '\0' && !last && status == TN_OK)
            status = take_field(t, &last);
        if (status != TN_OK)
            return status;
        /* a separator at the very end: an empty field follows it */
        if (t->count > 0 && !last && add_field(t, t->at) != TN_OK)
            return TN_ERR_MEMORY;
    } while (t->count > 0 && is_empty(t));
    *more = t->count > 0;
    if (t->columns == 0)
        t->columns = t->count;
    if (*more && t->count != t->columns)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: line %lld: wrong number of columns, got %lld; expected %lld as in the "
                       "lines before",
                       t->path, (long long)t->line, (long long)t->count, (long long)t->columns);
    return TN_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

bool csv_is_missing(const char *field)
{
    static const char *const words[] = { "",    "NA",  "N/A",  "n/a",  "#N/A", "<NA>",
                                         "NaN", "nan", "NULL", "null", "None", "?" };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(field, words[i]) == 0)
            return true;
    return false;
}

/* Returns the bytes of the character that begins at `text`, 0 if it is no UTF-8. */
static int utf8_length(const unsigned char *text)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    int length = text[0] < 0x80             ? 1
                 : (text[0] & 0xE0) == 0xC0 ? 2
                 : (text[0] & 0xF0) == 0xE0 ? 3
                 : (text[0] & 0xF8) == 0xF0 ? 4
                                            : 0;
    uint32_t code = length > 1 ? text[0] & (0x7Fu >> length) : text[0];

    for (int i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3Fu);
    }
    return length > 1 && (code < least[length] || code > 0x10FFFF || (code >> 11) == 0x1B) ? 0
                                                                                           : length;
}

tn_status csv_check_utf8(const struct csv_text *t, const char *text, const char *what)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at != '\0') {
        int length = utf8_length(at);

        if (length == 0)
            return tn_fail(TN_ERR_FORMAT,
                           "%s: line %lld: %s: not UTF-8, got the byte %d; expected UTF-8, in a "
                           "spreadsheet \"CSV UTF-8\"",
                           t->path, (long long)t->line, what, *at);
        at += length;
    }
    return TN_OK;
}
