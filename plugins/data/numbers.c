/* SPDX-License-Identifier: MIT
 *
 * Options with several numbers as text, for messages. */
#include "data.h"

/* Appends a number to the text and returns the new length, which may be more than fits. */
static size_t add(char *text, size_t length, int64_t place, bool is_int, int64_t i, double f)
{
    char *to = length < DATA_NUMBERS ? text + length : NULL;
    size_t room = to != NULL ? DATA_NUMBERS - length : 0;
    const char *before = place > 0 ? ", " : "(";

    return length + (size_t)(is_int ? tn_snprint(to, room, "%s%lld", before, (long long)i)
                                    : tn_snprint(to, room, "%s%g", before, f));
}

static const char *close_text(char *text, size_t length, int64_t count)
{
    static const char end[] = "...)";

    if (count <= 0)
        tn_snprint(text, DATA_NUMBERS, count < 0 ? "None" : "()");
    else if (length + 2 <= DATA_NUMBERS)
        tn_snprint(text + length, DATA_NUMBERS - length, ")");
    else
        tn_snprint(text + DATA_NUMBERS - sizeof end, sizeof end, "%s", end);
    return text;
}

const char *data_numbers_floats(char text[DATA_NUMBERS], tn_floats given)
{
    size_t length = 0;

    for (int64_t i = 0; i < given.count && length < DATA_NUMBERS; i++)
        length = add(text, length, i, false, 0, given.at[i]);
    return close_text(text, length, given.count);
}

const char *data_numbers_ints(char text[DATA_NUMBERS], tn_ints given)
{
    size_t length = 0;

    for (int64_t i = 0; i < given.count && length < DATA_NUMBERS; i++)
        length = add(text, length, i, true, given.at[i], 0);
    return close_text(text, length, given.count);
}
