/* SPDX-License-Identifier: MIT
 *
 * Prints tables that fit a terminal, and JSON. */
#include "tool.h"

#include "sdk/conform/conform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- columns --------------------------------------------------------------------------------- */

/* Returns the number of characters of a UTF-8 text; each is assumed to take one column. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

/* Returns a copy of a text for a terminal: control characters become '?', invalid UTF-8 becomes
 * U+FFFD. Ends the program if memory runs out. */
static char *copy(const char *text)
{
    size_t room = 3 * strlen(text) + 1, length = 0;
    char *made = malloc(room);
    if (!made) {
        fprintf(stderr, "tenon: out of memory\n");
        exit(EXIT_NOT_OK);
    }
    while (*text) {
        int bytes = conform_utf8((const unsigned char *)text);
        const char *from = text;
        text += bytes ? bytes : 1;
        if (!bytes) {
            from = "\xef\xbf\xbd";
            bytes = 3;
        } else if ((unsigned char)*from < 0x20 || *from == 0x7f) {
            from = *from == '\n' ? "\n" : "?";
        }
        memcpy(made + length, from, (size_t)bytes);
        length += (size_t)bytes;
    }
    made[length] = 0;
    return made;
}

void table_row(table *t, ...)
{
    int cells = t->columns + 1;
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 32;
        char **grown = realloc(t->cells, (size_t)(t->capacity * cells) * sizeof *grown);
        if (!grown) {
            fprintf(stderr, "tenon: out of memory\n");
            exit(EXIT_NOT_OK);
        }
        t->cells = grown;
    }
    va_list texts;
    va_start(texts, t);
    for (int i = 0; i < t->columns; i++) {
        const char *text = va_arg(texts, const char *);
        t->cells[t->count * cells + i] = copy(text ? text : "");
    }
    va_end(texts);
    t->cells[t->count * cells + t->columns] = NULL;
    t->count++;
}

void table_note(table *t, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (t->count)
        t->cells[(t->count - 1) * (t->columns + 1) + t->columns] = copy(text);
}

/* Prints at most `width` columns of a text; a longer text ends in "...". With `fill`, pads with
 * spaces. */
static void print_cell(const char *text, int width, bool fill)
{
    int whole = width_of(text), shown = whole > width ? width - 3 : whole, at = 0;
    for (; *text && (at < shown || (*text & 0xc0) == 0x80); text++) {
        at += (*text & 0xc0) != 0x80;
        if (at > shown)
            break;
        putchar(*text);
    }
    if (whole > width)
        fputs("...", stdout);
    for (at = whole > width ? width : whole; fill && at < width; at++)
        putchar(' ');
}

int tool_width(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ||
        size.ws_col > TOOL_WIDTH)
        return TOOL_WIDTH;
    return size.ws_col < TOOL_WIDTH_LEAST ? TOOL_WIDTH_LEAST : size.ws_col;
}

/* Prints a text in lines of at most tool_width() columns, beginning at `column`; later lines begin
 * at `indent`. */
static void wrap(int column, int indent, const char *text)
{
    int width = tool_width();
    while (*text) {
        int word = 0;
        for (const char *c = text; *c && *c != ' ' && *c != '\n'; c++)
            word += (*c & 0xc0) != 0x80;
        if (column > indent && column + 1 + word > width) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (column > indent && word) {
            putchar(' ');
            column++;
        }
        column += word;
        while (*text && *text != ' ' && *text != '\n')
            putchar(*text++);
        if (*text == '\n') {
            printf("\n%*s", indent, "");
            column = indent;
        }
        text += *text != 0;
    }
    putchar('\n');
}

void print_wrapped(const char *lead, int indent, const char *text)
{
    char *clean = copy(text);
    int column = width_of(lead);
    fputs(lead, stdout);
    for (; column < indent; column++)
        putchar(' ');
    wrap(indent, indent, clean);
    free(clean);
}

void table_print(table *t)
{
    int widths[TABLE_COLUMNS] = { 0 }, cells = t->columns + 1, most = tool_width();
    for (int64_t r = 0; r < t->count; r++)
        for (int c = 0; c < t->columns; c++) {
            int width = width_of(t->cells[r * cells + c]);
            widths[c] = width > widths[c] ? width : widths[c];
        }
    /* Narrows the widest column until a row fits the line. If the last column wraps, it needs only
     * 30 columns and is not narrowed. */
    for (;;) {
        int total = 0, widest = 0;
        for (int c = 0; c < t->columns; c++) {
            bool elastic = t->wraps && c == t->columns - 1;
            total += (elastic ? (widths[c] < 30 ? widths[c] : 30) : widths[c]) + (c ? 2 : 0);
            if (!elastic && widths[c] > widths[widest])
                widest = c;
        }
        if (total <= most || widths[widest] <= 8)
            break;
        widths[widest]--;
    }
    for (int64_t r = 0; r < t->count; r++) {
        int column = 0;
        for (int c = 0; c < t->columns; c++) {
            const char *text = t->cells[r * cells + c];
            bool final = c == t->columns - 1;
            if (c)
                fputs("  ", stdout), column += 2;
            if (final && t->wraps)
                wrap(column, column, text);
            else
                print_cell(text, widths[c], !final);
            column += widths[c];
        }
        if (!t->wraps)
            putchar('\n');
        if (t->cells[r * cells + t->columns])
            print_wrapped("    ", 4, t->cells[r * cells + t->columns]);
    }
    for (int64_t i = 0; i < t->count * cells; i++)
        free(t->cells[i]);
    free(t->cells);
    t->cells = NULL;
    t->count = t->capacity = 0;
}

const char *bytes_text(int64_t bytes, char *out, size_t size)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double number = (double)bytes;
    int unit = 0;
    for (; number >= 1024 && unit < 4; unit++)
        number /= 1024;
    snprintf(out, size, unit ? "%.1f %s" : "%.0f %s", number, units[unit]);
    return out;
}

/* ---- names ------------------------------------------------------------------------------------
 */

int tool_distance(const char *a, const char *b)
{
    int row[TOOL_NAME + 1], length = (int)strnlen(b, TOOL_NAME);

    for (int j = 0; j <= length; j++)
        row[j] = j;
    for (int i = 1; i <= TOOL_NAME && a[i - 1] != '\0'; i++) {
        int before = row[0];

        row[0] = i;
        for (int j = 1; j <= length; j++) {
            int other = before + (a[i - 1] != b[j - 1]);

            before = row[j];
            if (row[j] + 1 < other)
                other = row[j] + 1;
            if (row[j - 1] + 1 < other)
                other = row[j - 1] + 1;
            row[j] = other;
        }
    }
    return row[length];
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static int depth;
static bool first = true;

/* Writes what precedes a value: comma, newline, indentation and key. */
static void member(const char *key)
{
    if (!first)
        putchar(',');
    if (depth)
        printf("\n%*s", 2 * depth, "");
    first = false;
    if (key) {
        conform_json_string(stdout, key);
        fputs(": ", stdout);
    }
}

bool json_is_open(void)
{
    return depth > 0;
}

void json_begin(const char *key, char bracket)
{
    member(key);
    putchar(bracket);
    depth++;
    first = true;
}

void json_end(char bracket)
{
    depth--;
    if (!first)
        printf("\n%*s", 2 * depth, "");
    putchar(bracket);
    first = false;
    if (!depth) {
        putchar('\n');
        first = true;
    }
}

void json_text(const char *key, const char *text)
{
    if (!text) {
        json_null(key);
        return;
    }
    member(key);
    conform_json_string(stdout, text);
}

void json_int(const char *key, int64_t number)
{
    member(key);
    printf("%lld", (long long)number);
}

void json_float(const char *key, double number)
{
    char text[64];
    if (!isfinite(number)) {
        json_null(key);
        return;
    }
    member(key);
    tn_snprint(text, sizeof text, "%g", number);
    fputs(text, stdout);
}

void json_bool(const char *key, bool yes)
{
    member(key);
    fputs(yes ? "true" : "false", stdout);
}

void json_null(const char *key)
{
    member(key);
    fputs("null", stdout);
}

void json_error(tn_status code, const char *words)
{
    json_begin("error", '{');
    json_text("code", tn_status_name(code));
    json_text("message", words);
    json_end('}');
}
