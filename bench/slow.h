/* SPDX-License-Identifier: MIT
 *
 * The cases in which PyTorch is faster than Tenon, for bench/ops: found, measured again, printed
 * with the reason. */
#ifndef TN_BENCH_SLOW_H
#define TN_BENCH_SLOW_H

#include <stdbool.h>
#include <stdio.h>

/* Keeps a case that is slower by more than 5 %; for one that is kept the shortest times of all. */
void bench_slow_note(const char *title, double ours, double theirs);
/* Whether a case is kept. */
bool bench_slow_has(const char *title);
/* Those that are slower after all, the worst first, each with the first reason of the file
 * `reasons` (NULL: none) whose glob matches "DTYPE THREADS TITLE"; as rows of Markdown if
 * requested. The number of them. */
int bench_slow_print(FILE *reasons, const char *dtype, int threads, bool markdown);

#endif
