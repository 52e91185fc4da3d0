/* SPDX-License-Identifier: MIT
 *
 * Names: which of the known ones was meant, and which match a glob. */
#include "core/base/internal.h"

#define NAME_MAX_LENGTH 64

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Edits that make one name the other: insert, delete, replace, swap of neighbours. Case counts
 * nothing, so that the right word in the wrong case comes first. */
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

const char *tn__nearest(const char *name, const char *const *names, int64_t count)
{
    size_t length = strlen(name);
    const char *nearest = NULL;
    /* One edit for each three letters, at least one. */
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

bool tn__glob(const char *pattern, const char *text)
{
    const char *star = NULL, *resume = NULL;

    /* A mismatch after a star lets the star take one character more: linear memory, no recursion.
     */
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            resume = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == 0;
}
