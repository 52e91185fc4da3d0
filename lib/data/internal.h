/* SPDX-License-Identifier: MIT
 *
 * What other folders of the core use of datasets and loaders. */
#ifndef TN_LIB_DATA_INTERNAL_H
#define TN_LIB_DATA_INTERNAL_H

#include <tenon/data.h>

/* Stops the threads of all loaders. A loader that is used again starts new ones, and continues with
 * the batch that would have been next. */
void tn__loaders_shutdown(void);

#endif
