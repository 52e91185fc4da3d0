/* SPDX-License-Identifier: MIT
 *
 * Splits a text into pieces before it is encoded, as GPT-2's expression does:
 *
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
#include "bpe.h"

#include <string.h>

#include "unicode_classes.h"

enum kind { LETTER, NUMBER, SPACE, OTHER };

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

/* Returns the length of the sequence at the start, 0: it is not valid. */
static uint64_t sequence(const unsigned char *text, uint64_t size, uint32_t *point)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    unsigned char lead = text[0];
    uint64_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : 4;
    uint32_t value = length == 1 ? lead : lead & (0xFFu >> (length + 1));

    if (length == 1) {
        *point = lead;
        return 1;
    }
    if ((length == 4 && lead >> 3 != 30) || length > size)
        return 0;
    for (uint64_t i = 1; i < length; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        value = value << 6 | (text[i] & 0x3Fu);
    }
    if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
        return 0;
    *point = value;
    return length;
}

uint64_t bpe_check(const unsigned char *text, uint64_t size)
{
    uint64_t at = 0;
    uint32_t point;

    while (at < size) {
        uint64_t length = sequence(text + at, size - at, &point);

        if (length == 0)
            return at;
        at += length;
    }
    return size;
}

uint32_t bpe_next(const unsigned char *text, uint64_t *at)
{
    uint32_t point = 0;

    *at += sequence(text + *at, 4, &point);
    return point;
}

/* ---- kinds of characters --------------------------------------------------------------------- */

static bool is_in(uint32_t point, const struct range *ranges, int64_t count)
{
    int64_t low = 0, high = count;

    while (low < high) {
        int64_t middle = (low + high) / 2;

        if (point > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && point >= ranges[low].first;
}

static enum kind kind_of(uint32_t point)
{
    if (point < 0x80) {
        if ((point | 0x20) >= 'a' && (point | 0x20) <= 'z')
            return LETTER;
        if (point >= '0' && point <= '9')
            return NUMBER;
        return point == ' ' || (point >= 9 && point <= 13) ? SPACE : OTHER;
    }
    if (point == 0x85 || point == 0xA0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200A) ||
        point == 0x2028 || point == 0x2029 || point == 0x202F || point == 0x205F || point == 0x3000)
        return SPACE;
    if (is_in(point, letters, (int64_t)(sizeof letters / sizeof *letters)))
        return LETTER;
    return is_in(point, digits, (int64_t)(sizeof digits / sizeof *digits)) ? NUMBER : OTHER;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Returns the length of 's, 't, ... at the start, 0: there is none. */
static uint64_t ending(const unsigned char *text, uint64_t size)
{
    static const char *const endings[] = { "'s", "'t", "'re", "'ve", "'m", "'ll", "'d" };

    for (size_t i = 0; i < sizeof endings / sizeof *endings && text[0] == '\''; i++)
        if (strlen(endings[i]) <= size && memcmp(text, endings[i], strlen(endings[i])) == 0)
            return strlen(endings[i]);
    return 0;
}

uint64_t bpe_piece(const unsigned char *text, uint64_t size)
{
    uint64_t at = ending(text, size), last;
    enum kind kind;

    if (at > 0)
        return at;
    kind = kind_of(bpe_next(text, &at));
    if (text[0] == ' ' && at < size) {
        uint64_t after = at;
        enum kind follows = kind_of(bpe_next(text, &after));

        if (follows != SPACE) { /* the space belongs to the next piece */
            kind = follows;
            at = after;
        }
    }
    for (last = at; at < size;) {
        uint64_t next = at;

        if (kind_of(bpe_next(text, &next)) != kind)
            break;
        last = at;
        at = next;
    }
    /* The last space belongs to the next piece, unless it is the only one. */
    return kind == SPACE && at < size && last < at ? last : at;
}
