/* SPDX-License-Identifier: MIT
 *
 * Models that are programs of another framework (program.c). */
#ifndef TN_TOOLS_TRAIN_PROGRAM_H
#define TN_TOOLS_TRAIN_PROGRAM_H

#include "../tool.h"

struct run;

/* Returns a text that tells programs apart, which the caller frees with tn_free; NULL, without an
 * error, if the module runs no program. */
char *program_digest(tn_module *module);
/* The extension of the files of a program, by the digest. */
const char *program_extension(const char *digest);
/* Opens the copy of the program beside a checkpoint. Fails if it is missing, damaged or another
 * one. The caller drops the module. */
tn_module *program_open(const char *checkpoint, const char *digest);
/* Writes the copy beside the checkpoints of a run whose model is a program, unless it is there. */
tn_status program_keep(struct run *r);
/* Writes a program with the classes and the transform of the run. */
tn_status program_save(struct run *r, tn_module *module, const char *path);

#endif
