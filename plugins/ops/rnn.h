/* SPDX-License-Identifier: MIT
 *
 * Recurrent networks, shared by two files: rnn.c has cells and sequences, rnn_steps.c the steps of
 * sequences. */
#ifndef TN_OPS_RNN_H
#define TN_OPS_RNN_H

#include "common.h"

enum tn__rnn_kind { TN__RNN_TANH, TN__RNN_RELU, TN__RNN_LSTM, TN__RNN_GRU, TN__RNN_KINDS };

/* The option `kind` of recurrent_steps. */
const char *tn__rnn_kind_name(enum tn__rnn_kind kind);
/* Returns part `index` of `count` equal parts of the last dimension. */
tn_tensor *tn__rnn_part(tn_tensor *gates, int64_t index, int64_t count);

#endif
