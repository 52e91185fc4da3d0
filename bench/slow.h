/* SPDX-License-Identifier: MIT
 *
 * The cases in which PyTorch is faster than Tenon, for bench/ops: found, measured again, printed
 * with the reason. */
#ifndef TN_BENCH_SLOW_H
#define TN_BENCH_SLOW_H

#include <stdbool.h>
#include <stdio.h>

/* Adds a case to the list if it is slower by more than 5 %. If the list has the case already, keeps
 * the shortest times that were measured for it. */
void bench_slow_note(const char *title, double ours, double theirs);
/* Returns whether the list has a case. */
bool bench_slow_has(const char *title);
/* Prints the cases of the list that are still slower by their shortest times, the worst first, as
 * rows of Markdown if requested. A case has the first reason in the file `reasons` (NULL: none)
 * whose glob matches "DTYPE THREADS TITLE". Returns the number of these cases. */
int bench_slow_print(FILE *reasons, const char *dtype, int threads, bool markdown);

#endif
