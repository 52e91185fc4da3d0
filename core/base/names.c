/* SPDX-License-Identifier: MIT
 *
 * Names: finding the known name that a misspelt one probably means, and checking names that are
 * registered. */
#include "core/base/spec.h"

#define NAME_MAX_LENGTH 64

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Returns the edit distance of two names: insertions, deletions, replacements and swaps of
 * neighbours. Upper and lower case are equal, so that the right word in the wrong case has distance
 * 0. */
static int distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int rows[3][NAME_MAX_LENGTH + 1], *before = rows[0], *last = rows[1], *now = rows[2];

    for (size_t j = 0; j <= b_length; j++)
        last[j] = (int)j;
    for (size_t i = 1; i <= a_length; i++) {
        now[0] = (int)i;
        for (size_t j = 1; j <= b_length; j++) {
            int best = last[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]) && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
        int *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[b_length];
}

const char *tn__name_nearest(const char *name, const char *const *names, int64_t count)
{
    size_t length = strlen(name);
    const char *nearest = NULL;
    /* A name is accepted if it needs fewer edits than this: one for every three letters, at least
     * one. */
    int least = (int)(length < 6 ? 1 : length / 3) + 1;

    if (length == 0 || length > NAME_MAX_LENGTH)
        return NULL;
    for (int64_t i = 0; i < count; i++) {
        size_t other = strlen(names[i]);
        if (other == 0 || other > NAME_MAX_LENGTH)
            continue;
        int edits = distance(name, length, names[i], other);
        if (edits < least && edits < (int)length) {
            least = edits;
            nearest = names[i];
        }
    }
    return nearest;
}

/* ---- names that are registered --------------------------------------------------------------- */

const char *tn__name_shown(const char *name, char *out, size_t size)
{
    enum { SHOWN = 40 };
    char start[SHOWN + 4];
    size_t length = strnlen(name, SHOWN + 1);

    tn_snprint(start, sizeof start, "%.*s%s", (int)(length > SHOWN ? SHOWN : length), name,
               length > SHOWN ? "..." : "");
    tn_snprint(out, size, "%q", start);
    return out;
}

static bool in_name(char c, const char *extra)
{
    return tn__spec_starts_word(c) || (c >= '0' && c <= '9') || (c && strchr(extra, c));
}

static tn_status name_refused(const char *name, const char *extra, const char *what, size_t at)
{
    char shown[256], wrong[64], more[32] = "";

    for (size_t i = 0; extra[i] && i < 4; i++)
        tn_snprint(more + strlen(more), sizeof more - strlen(more), ", \"%c\"", extra[i]);
    tn__name_shown(name, shown, sizeof shown);
    if (!name[0])
        tn_snprint(wrong, sizeof wrong, "it is empty");
    else if (at >= TN__NAME_LONGEST)
        tn_snprint(wrong, sizeof wrong, "it has more than %d bytes", TN__NAME_LONGEST);
    else if (name[at] > ' ' && name[at] < 0x7f)
        tn_snprint(wrong, sizeof wrong, "\"%c\" at byte %d is not accepted%s", name[at],
                   (int)at + 1, strchr(extra, name[at]) && !name[at + 1] ? " at the end" : "");
    else
        tn_snprint(wrong, sizeof wrong, "0x%02x at byte %d is not accepted",
                   (unsigned)(unsigned char)name[at], (int)at + 1);
    return tn_fail(TN_ERR_VALUE,
                   "%s: %s, got %s; expected 1 to %d letters, digits, \"_\"%s, beginning with a "
                   "letter or \"_\"",
                   what, wrong, shown, TN__NAME_LONGEST, more);
}

tn_status tn__name_check(const char *name, const char *extra, const char *format, ...)
{
    char what[192];
    va_list args;
    size_t length = 0;

    while (name && length < TN__NAME_LONGEST && in_name(name[length], extra))
        length++;
    /* The index of the first byte that is not accepted. The first byte must be a letter or `_`, and
     * a byte of `extra` may not be the last. */
    size_t bad = name && !tn__spec_starts_word(name[0])                       ? 0
                 : length && !name[length] && strchr(extra, name[length - 1]) ? length - 1
                                                                              : length;
    if (length && bad == length && !name[length])
        return TN_OK;
    va_start(args, format);
    tn_snprintv(what, sizeof what, format, args);
    va_end(args);
    return name ? name_refused(name, extra, what, bad)
                : tn_fail(TN_ERR_VALUE, "%s: it is NULL; expected a name", what);
}

tn_status tn__name_check_type(const char *name, const char *what)
{
    static const char *const values[] = { "True", "False", "None", "inf", "nan" };
    tn_status status = tn__name_check(name, ".", "%s: name", what);

    for (int64_t i = 0; status == TN_OK && i < tn__countof(values); i++)
        if (strcmp(name, values[i]) == 0)
            status = tn_fail(TN_ERR_VALUE,
                             "%s: name: in specs this word is a value, got %q; expected another "
                             "name",
                             what, name);
    return status;
}
