/* SPDX-License-Identifier: MIT
 *
 * Large pages for large blocks of memory. */
#ifndef TN_BACKEND_CPU_BASE_PAGES_H
#define TN_BACKEND_CPU_BASE_PAGES_H

#include <tenon/plugin.h>

/* Returns the alignment for a block of this size: that of a large page, or `least` for a block that
 * does not fill one. */
size_t tn__pages_alignment(size_t bytes, size_t least);
/* Asks the system for large pages, where the block fills them. The rest keeps small pages, so that
 * no more memory is used. The block has the alignment above. */
void tn__pages_advise(void *at, size_t bytes);

#endif
