/* SPDX-License-Identifier: MIT
 *
 * The device of mutant_device.c with streams that record. */
#define MUTANT_RECORDS
#include "mutant_device.c"
