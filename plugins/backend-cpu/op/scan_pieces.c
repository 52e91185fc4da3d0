/* SPDX-License-Identifier: MIT
 *
 * The division of a scan into pieces that threads compute independently. */
#include "op/scan_pieces.h"

enum { GRAIN = 16384 }; /* minimum number of elements for one thread */

struct tn__scan_pieces tn__scan_pieces_of(const struct tn__lines *lines)
{
    struct tn__scan_pieces pieces = { .count = lines->count, .size = lines->length };
    int32_t inner = lines->ndim - 1;
    if (inner >= 0 && lines->shape[inner] >= 4 && lines->stride[1][inner] < lines->step[1]) {
        int64_t row = lines->shape[inner];
        pieces.blocks = (row + TN__SCAN_SIDE - 1) / TN__SCAN_SIDE;
        pieces.count = lines->count / row * pieces.blocks;
        pieces.size = lines->length * (row < TN__SCAN_SIDE ? row : TN__SCAN_SIDE);
    }
    return pieces;
}

int64_t tn__scan_pieces_block(const struct tn__scan_pieces *pieces, const struct tn__lines *lines,
                              int64_t block, int64_t *count)
{
    int64_t row = lines->shape[lines->ndim - 1], first = block % pieces->blocks * TN__SCAN_SIDE;
    *count = row - first < TN__SCAN_SIDE ? row - first : TN__SCAN_SIDE;
    return block / pieces->blocks * row + first;
}

tn_status tn__scan_pieces_run(const struct tn__scan_pieces *pieces,
                              tn_status (*part)(void *user, int64_t begin, int64_t end), void *user)
{
    int64_t grain = GRAIN / pieces->size;
    if (pieces->count <= grain)
        return part(user, 0, pieces->count);
    return tn_parallel_for(pieces->count, grain > 0 ? grain : 1, part, user);
}
