/* SPDX-License-Identifier: MIT
 *
 * Large pages. With pages of 4096 bytes the addresses of weights that are read once are translated
 * again and again, and the processor fetches ahead only to the end of a page: reading a matrix of
 * 9 MB from memory takes a third longer. Many systems give large pages only to programs that ask
 * for them (/sys/kernel/mm/transparent_hugepage/enabled: madvise). */
#include <sys/mman.h>

#include "base/pages.h"

enum { LARGE = 2 << 20 };

size_t tn__pages_alignment(size_t bytes, size_t least)
{
    return bytes >= LARGE ? LARGE : least;
}

void tn__pages_advise(void *at, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    /* A failure means that the system has no large pages; the block can be used without them. */
    if (bytes >= LARGE)
        (void)madvise(at, bytes / LARGE * LARGE, MADV_HUGEPAGE);
#else
    (void)at;
    (void)bytes;
#endif
}
