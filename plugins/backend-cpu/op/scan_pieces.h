/* SPDX-License-Identifier: MIT
 *
 * The division of a scan (cumsum, cummax, ...) into pieces that threads compute independently. A
 * piece is one line along the scanned dimension. If that dimension is strided, a piece is a block
 * of neighbouring lines instead, which are computed together. */
#ifndef TN_BACKEND_CPU_OP_SCAN_PIECES_H
#define TN_BACKEND_CPU_OP_SCAN_PIECES_H

#include "base/span.h"

enum { TN__SCAN_SIDE = 256 /* maximum number of lines in a block */ };

struct tn__scan_pieces {
    int64_t count;
    int64_t size;   /* elements of a piece */
    int64_t blocks; /* blocks in a row of lines; 0: each piece is one line */
};

/* Chooses the pieces for lines whose view 1 is the operand. There must be elements. */
struct tn__scan_pieces tn__scan_pieces_of(const struct tn__lines *lines);
/* Returns the first line of a block, and in *count the number of lines in it. */
int64_t tn__scan_pieces_block(const struct tn__scan_pieces *pieces, const struct tn__lines *lines,
                              int64_t block, int64_t *count);
/* Calls `part` for all pieces, in several threads if there are enough elements. */
tn_status tn__scan_pieces_run(const struct tn__scan_pieces *pieces,
                              tn_status (*part)(void *user, int64_t begin, int64_t end),
                              void *user);

#endif
