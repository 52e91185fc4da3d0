/* SPDX-License-Identifier: MIT
 *
 * JSON strings, for the reports of tenon check and for the output of tools. */
#include "conform.h"

int conform_utf8(const unsigned char *at)
{
    if (at[0] < 0x80)
        return 1;
    int length = at[0] >= 0xc2 && at[0] < 0xe0   ? 2
                 : (at[0] & 0xf0) == 0xe0        ? 3
                 : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                                 : 0;
    for (int i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return length;
}

void conform_json_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (const unsigned char *at = (const unsigned char *)(text != NULL ? text : ""); *at != 0;) {
        int length = conform_utf8(at);

        if (length == 0) {
            fputs("\xef\xbf\xbd", to);
            at++;
        } else if (*at == '"' || *at == '\\') {
            fprintf(to, "\\%c", *at++);
        } else if (*at < 0x20 || *at == 0x7f) {
            fprintf(to, "\\u%04x", *at++);
        } else {
            while (length-- > 0)
                fputc(*at++, to);
        }
    }
    fputc('"', to);
}
