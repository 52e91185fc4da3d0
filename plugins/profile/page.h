/* SPDX-License-Identifier: MIT
 *
 * The parts of the page. */
#ifndef TN_PROFILE_PAGE_H
#define TN_PROFILE_PAGE_H

#include "profile.h"

void flame_add(output *t, const result *r);

#endif
