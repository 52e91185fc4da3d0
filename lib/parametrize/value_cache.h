/* SPDX-License-Identifier: MIT
 *
 * Values that modules have computed, which a thread keeps for a while. */
#ifndef TN_LIB_PARAMETRIZE_VALUE_CACHE_H
#define TN_LIB_PARAMETRIZE_VALUE_CACHE_H

#include "core/module/internal.h"

/* Between the two, which may be nested, this thread keeps values. */
void tn__value_cache_begin(void);
void tn__value_cache_end(void);
bool tn__value_cache_on(void);
/* Returns the value of a module, NULL if there is none. */
tn_tensor *tn__value_cache_get(const tn_module *module);
/* Keeps the value of a module if the thread keeps values. */
tn_status tn__value_cache_put(tn_module *module, tn_tensor *value);
/* Drops all values that the thread keeps. */
void tn__value_cache_forget(void);

#endif
