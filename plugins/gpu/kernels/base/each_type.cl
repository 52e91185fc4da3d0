/* SPDX-License-Identifier: MIT
 *
 * Includes the kernel text TN_TEXT (a path relative to this folder) once for each dtype. */
#define TN_TYPE 0
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
#define TN_TYPE 1
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
#define TN_TYPE 2
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
#define TN_TYPE 3
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
#define TN_TYPE 4
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
#define TN_TYPE 5
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
#define TN_TYPE 6
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
#define TN_TYPE 7
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
#define TN_TYPE 8
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
#define TN_TYPE 9
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
#define TN_TYPE 10
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
#define TN_TYPE 11
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
#define TN_TYPE 12
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
#define TN_TYPE 13
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
#define TN_TYPE 14
#include "types.cl"
#include TN_TEXT
#undef TN_TYPE
