/* SPDX-License-Identifier: MIT
 *
 * What the files of this room share. */
#ifndef TN_CORE_IO_INTERNAL_H
#define TN_CORE_IO_INTERNAL_H

#include "core/module/internal.h"

/* A file that is read by place. */
typedef struct tn__reader {
    tn_source source;
    int file;
} tn__reader;

tn_status tn__reader_open(tn__reader *reader, const char *path);
void tn__reader_close(tn__reader *reader);

/* A file that is written beside the one it will replace. After commit or abort it is gone; commit
 * that failed has removed what was written. */
typedef struct tn__writer {
    tn_sink sink;
    int file;
    char *target; /* what it replaces, links resolved */
    char *temporary;
    unsigned char *buffer;
    size_t held;
    uint64_t written, total; /* for progress */
} tn__writer;

tn_status tn__writer_open(tn__writer *writer, const char *path, uint64_t total);
tn_status tn__writer_commit(tn__writer *writer);
void tn__writer_abort(tn__writer *writer);

/* Records TN_ERR_IO "PATH: what: words of errno". */
tn_status tn__io_fail(const char *path, const char *what, int number);

#endif
