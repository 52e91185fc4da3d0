/* SPDX-License-Identifier: MIT
 *
 * The texts of failures: which rank did what, from the boards of all ranks. Each function fails the
 * group and returns its code. */
#ifndef TN_COMM_LOCAL_REPORT_H
#define TN_COMM_LOCAL_REPORT_H

#include "exchange.h"

/* Rank `other` asks for another exchange than this rank. */
tn_status report_mismatch(const struct work *work, int32_t other, const struct board_call *call);
/* The connection to a rank is closed. */
tn_status report_lost(const struct work *work, int32_t rank);
/* A rank has not come within the time limit. */
tn_status report_late(const struct work *work, double seconds);

#endif
