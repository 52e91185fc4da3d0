/* SPDX-License-Identifier: MIT
 *
 * A Python program, run by a bench, that measures the same with PyTorch: lines and tensors go
 * to its standard input, lines come from its standard output. */
#ifndef TN_BENCH_PEER_H
#define TN_BENCH_PEER_H

#include <stdio.h>
#include <sys/types.h>

#include <tenon/tenon.h>

typedef struct bench_peer {
    pid_t process;
    FILE *ask, *answer; /* NULL without a peer */
} bench_peer;

/* Runs `python script threads word`; `word` may be NULL. */
bool bench_peer_start(bench_peer *peer, const char *python, const char *script, const char *threads,
                      const char *word);
/* Sends a tensor: "WORDS DTYPE BYTES SIZE...", then its bytes. */
bool bench_peer_give(bench_peer *peer, const char *words, tn_tensor *tensor);
/* Sends a line and reads the one that answers it. */
bool bench_peer_ask(bench_peer *peer, const char *words, char *line, int size);
void bench_peer_end(bench_peer *peer);

#endif
