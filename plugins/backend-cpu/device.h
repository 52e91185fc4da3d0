/* SPDX-License-Identifier: MIT
 *
 * The device type "cpu". */
#ifndef TN_BACKEND_CPU_DEVICE_H
#define TN_BACKEND_CPU_DEVICE_H

#include <tenon/plugin.h>

extern const tn_backend_def tn__backend_cpu;

#endif
