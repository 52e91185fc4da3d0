/* SPDX-License-Identifier: MIT
 *
 * zip archives, as NumPy's npz and PyTorch's files are: read by place, written in order. Of zip
 * that is what these two write: members that are stored or deflated, zip64; nothing encrypted,
 * nothing in several volumes. */
#ifndef TENON_PLUGIN_FORMATS_ZIP_H
#define TENON_PLUGIN_FORMATS_ZIP_H

#include <tenon/plugin.h>

/* ---- the check sum --------------------------------------------------------------------------- */

/* Tables of CRC-32, made when an archive is opened: constants of 8 KiB would be generated code. */
struct zip_crc {
    uint32_t table[8][256];
};

TN_HIDDEN void zip_crc_prepare(struct zip_crc *crc);
/* Extends the sum `sum` by these bytes; the sum of no bytes is 0. */
TN_HIDDEN uint32_t zip_crc_add(const struct zip_crc *crc, uint32_t sum, const void *bytes,
                               size_t size);

/* ---- reading --------------------------------------------------------------------------------- */

struct zip_member {
    const char *name; /* lives as long as the archive */
    uint64_t header;  /* where its local header is */
    uint64_t limit;   /* where the next thing in the file begins */
    uint64_t packed, size;
    uint32_t crc;
    uint16_t method; /* 0 stored, 8 deflated */
};

struct zip {
    const tn_source *source;
    struct zip_member *at; /* in the order of the directory */
    int64_t count;
    struct zip_member **sorted; /* by name */
    char *directory;
    uint64_t unpacked;  /* bytes that deflated members took beyond those of the file */
    bool crc_is_absent; /* a sum of 0 says that the writer made none */
    struct zip_crc crc;
};

/* Whether it begins as an archive does. */
TN_HIDDEN bool zip_recognize(const tn_source *source);
/* Reads the directory. What fails leaves nothing to close. */
TN_HIDDEN tn_status zip_open(const tn_source *source, struct zip *zip);
TN_HIDDEN void zip_close(struct zip *zip);
/* NULL if absent, not an error. */
TN_HIDDEN const struct zip_member *zip_find(const struct zip *zip, const char *name);

/* One member as a source of its own. A deflated one is in memory. */
struct zip_reader {
    tn_source source;
    struct zip *zip;
    const struct zip_member *member;
    uint64_t begin;       /* of its data in the file, where they are stored */
    unsigned char *bytes; /* where they were deflated */
    uint64_t summed;      /* bytes that the sum covers */
    uint32_t sum;
};

TN_HIDDEN tn_status zip_reader_open(struct zip *zip, const struct zip_member *member,
                                    struct zip_reader *reader);
/* Compares the check sum if all was read and `status` is TN_OK; returns the first failure. */
TN_HIDDEN tn_status zip_reader_close(struct zip_reader *reader, tn_status status);

/* zip_inflate.c: `packed` bytes of the file at `offset` become exactly `size` bytes. */
TN_HIDDEN tn_status zip_inflate(const tn_source *source, const struct zip_member *member,
                                uint64_t offset, unsigned char *out);

/* ---- writing --------------------------------------------------------------------------------- */

struct zip_entry {
    char *name;
    uint64_t header, size;
    uint32_t crc;
};

struct zip_writer {
    const tn_sink *sink;
    struct zip_entry *at;
    int64_t count, capacity;
    uint64_t written;
    struct zip_crc crc;
};

TN_HIDDEN void zip_writer_open(struct zip_writer *writer, const tn_sink *sink);
/* A stored member; `produce` writes its bytes to the sink that it gets. It is called twice and
 * must write the same bytes: first for the size and checksum, which the file has before them. */
TN_HIDDEN tn_status zip_writer_add(struct zip_writer *writer, const char *name,
                                   tn_status (*produce)(const tn_sink *sink, const void *user),
                                   const void *user);
/* The directory, after the last member. */
TN_HIDDEN tn_status zip_writer_finish(struct zip_writer *writer);
/* Gives back the memory, whatever happened. */
TN_HIDDEN void zip_writer_close(struct zip_writer *writer);

#endif
