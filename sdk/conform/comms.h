/* SPDX-License-Identifier: MIT
 *
 * The checks of communicators. */
#ifndef TN_CONFORM_COMMS_H
#define TN_CONFORM_COMMS_H

#include "conform.h"
#include "process.h"

/* Checks a communicator in groups of several processes. Skips the test, and returns true, if no
 * group of two can be opened. */
bool conform_comm_ranks(conform *c, const tn_comm_def *def);

#endif
