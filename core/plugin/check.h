/* SPDX-License-Identifier: MIT
 *
 * The checked boundary (TENON_CHECK=1). Plugin to host: what generated tables ask before a call goes in. Host to
 * plugin: what is looked at around the functions of a backend and of a kernel. */
#ifndef TN_CORE_PLUGIN_CHECK_H
#define TN_CORE_PLUGIN_CHECK_H

#include <tenon/tenon.h>

/* Each returns true when all is well, and false with TN_ERR_REFUSED "checked boundary: ..." recorded. `caller` is
 * an address inside the plugin that called, by which it is named. */
bool tn__check_given(bool given, const char *function, const char *argument, const void *caller);
bool tn__check_row(const int64_t *at, int64_t count, const char *function, const char *argument, const void *caller);
bool tn__check_main(const char *function, const void *caller);

#endif
