/* SPDX-License-Identifier: MIT
 *
 * CRC-32 as zip uses it (with the reflected polynomial EDB88320), computed eight bytes at a time.
 * zlib also has this function, but zlib is optional in Tenon, and stored members must be readable
 * and writable without zlib. */
#include "zip.h"

#include <string.h>

void zip_crc_prepare(struct zip_crc *crc)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t sum = i;
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (UINT32_C(0xedb88320) & (0u - (sum & 1)));
        crc->table[0][i] = sum;
    }
    /* table[k][b] is the CRC of byte b followed by k zero bytes. */
    for (int k = 1; k < 8; k++)
        for (uint32_t i = 0; i < 256; i++)
            crc->table[k][i] = crc->table[k - 1][i] >> 8 ^
                               crc->table[0][crc->table[k - 1][i] & 255];
}

uint32_t zip_crc_add(const struct zip_crc *crc, uint32_t sum, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    const uint32_t(*t)[256] = crc->table;

    sum = ~sum;
    for (; size >= 8; at += 8, size -= 8) {
        uint32_t low, high; /* little-endian: values.c stops the build on other machines */
        memcpy(&low, at, 4);
        memcpy(&high, at + 4, 4);
        low ^= sum;
        sum = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^ t[4][low >> 24] ^
              t[3][high & 255] ^ t[2][high >> 8 & 255] ^ t[1][high >> 16 & 255] ^ t[0][high >> 24];
    }
    for (; size > 0; at++, size--)
        sum = sum >> 8 ^ t[0][(sum ^ *at) & 255];
    return ~sum;
}
