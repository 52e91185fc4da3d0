/* SPDX-License-Identifier: MIT
 *
 * Includes the kernel text TN_TEXT once for each type in TN_TYPES, a mask of 1 << tn_dtype. TN_AFTER, if defined, is included after each. */
#define TN_TYPE 0
#if TN_TYPES >> 0 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#define TN_TYPE 1
#if TN_TYPES >> 1 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#define TN_TYPE 2
#if TN_TYPES >> 2 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#define TN_TYPE 3
#if TN_TYPES >> 3 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#define TN_TYPE 4
#if TN_TYPES >> 4 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#define TN_TYPE 5
#if TN_TYPES >> 5 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#define TN_TYPE 6
#if TN_TYPES >> 6 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#define TN_TYPE 7
#if TN_TYPES >> 7 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#define TN_TYPE 8
#if TN_TYPES >> 8 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#define TN_TYPE 9
#if TN_TYPES >> 9 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#define TN_TYPE 10
#if TN_TYPES >> 10 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#define TN_TYPE 11
#if TN_TYPES >> 11 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#define TN_TYPE 12
#if TN_TYPES >> 12 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#define TN_TYPE 13
#if TN_TYPES >> 13 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#define TN_TYPE 14
#if TN_TYPES >> 14 & 1
#include "../backend-opencl/types.cl"
#include TN_TEXT
#ifdef TN_AFTER
#include TN_AFTER
#endif
#endif

#undef TN_TYPE
#undef TN_TEXT
#undef TN_TYPES
