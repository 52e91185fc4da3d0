/* SPDX-License-Identifier: MIT
 *
 * What the files of this room share. */
#ifndef TN_CORE_IO_INTERNAL_H
#define TN_CORE_IO_INTERNAL_H

#include "core/module/internal.h"

/* A file that is read by place, or mapped. */
typedef struct tn__mapping tn__mapping;
typedef struct tn__reader {
    tn_source source;
    int file;
    unsigned char *window; /* what was read ahead for small pieces */
    uint64_t window_at;
    size_t window_size;
    tn__mapping *mapping; /* TN_FILE_MAP: tensors over it hold references of their own */
    bool read_only;
} tn__reader;

/* `flags`: TN_FILE_*. */
tn_status tn__reader_open(tn__reader *reader, const char *path, uint32_t flags);
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

/* ---- what a format has no room for, as texts (texts.c) ---- */

/* A state of tensors and texts alone that stands for `state`: values, versions and ties become the
 * texts "tenon.values", "tenon.versions", "tenon.ties". NULL and an error. */
tn_state *tn__texts_from_state(const tn_state *state, const char *path);
/* The reverse; takes `state` over, also when it fails. */
tn_state *tn__texts_to_state(tn_state *state, const char *path);

/* ---- ties (ties.c) ---- */

/* first[i]: the first entry that is the same view of the same storage as entry i. Owned by the caller
 * (tn_free), also when it fails. */
tn_status tn__ties_find(const tn_state *state, int64_t **first);
/* Makes two entries one tensor again, if their values are still the same. */
tn_status tn__ties_join(tn_state *state, const char *name, const char *with);

/* ---- one file (file.c), several (parts.c) ---- */

/* By the extension; NULL without an error when there is none. */
const tn__entry *tn__format_by_extension(const char *path);
/* Writes the state as it is, in a format. */
tn_status tn__format_save(const tn__entry *entry, const char *path, const tn_state *state);
/* Reads a file as its format has it; `index`: whether it may be, and then whether it is, one. */
tn_state *tn__format_load(const char *path, uint32_t flags, bool *index);
/* The state of all files that an index names; takes `index` over. */
tn_state *tn__parts_load(tn_state *index, const char *path, uint32_t flags);

#endif
