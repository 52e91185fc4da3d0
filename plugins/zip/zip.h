/* SPDX-License-Identifier: MIT
 *
 * zip archives, the container of NumPy's npz files and of PyTorch's files. Reading finds members
 * through the directory; writing appends one member after the other. What NumPy and PyTorch write
 * is supported: stored and deflated members, and zip64. Encryption and archives in several volumes
 * are not supported.
 *
 * Several plugins are compiled with these files, because plugins share no code at run time. */
#ifndef TN_ZIP_ZIP_H
#define TN_ZIP_ZIP_H

#include <tenon/plugin.h>

/* ---- the checksum ---------------------------------------------------------------------------- */

/* The lookup tables of CRC-32. They are computed when an archive is opened, because 8 KiB of
 * constants in the source would have to be generated. */
struct zip_crc {
    uint32_t table[8][256];
};

TN_HIDDEN void zip_crc_prepare(struct zip_crc *crc);
/* Returns the CRC-32 of the bytes summed up so far followed by these bytes. `sum` is the CRC-32 so
 * far, 0 at the start. */
TN_HIDDEN uint32_t zip_crc_add(const struct zip_crc *crc, uint32_t sum, const void *bytes,
                               size_t size);

/* ---- reading --------------------------------------------------------------------------------- */

struct zip_member {
    const char *name; /* valid until zip_close() */
    uint64_t header;  /* offset of its local header in the file */
    uint64_t limit;   /* offset of the next member's header or of the directory */
    uint64_t packed, size;
    uint32_t crc;
    uint16_t method; /* 0 stored, 8 deflated */
};

/* Limits the memory that a file can take beyond its own size: adds `more` bytes to *sum, the total
 * of this file so far, and fails if that is too much. */
typedef tn_status zip_limit(const tn_source *source, uint64_t *sum, uint64_t more);

/* zip_limit.c: what such a function does in a plugin with the setting `most`, whose variable in the
 * environment is `setting`, and the check of that setting. */
TN_HIDDEN tn_status zip_unpacked(const tn_source *source, uint64_t *sum, uint64_t more,
                                 int64_t most, const char *setting);
TN_HIDDEN tn_status zip_unpacked_check(int64_t most, const char *setting);

struct zip {
    const tn_source *source;
    zip_limit *limit;
    struct zip_member *at; /* in the order of the directory */
    int64_t count;
    struct zip_member **sorted; /* pointers to all members, by name */
    char *directory;
    uint64_t unpacked;  /* memory of deflated members beyond their compressed size, in bytes */
    bool crc_is_absent; /* set: a checksum of 0 in the file means that there is none to check */
    struct zip_crc crc;
};

/* Checks whether the file begins with the signature of a zip archive. */
TN_HIDDEN bool zip_recognize(const tn_source *source);
/* Reads the directory. After a failure, zip_close() need not be called. */
TN_HIDDEN tn_status zip_open(const tn_source *source, zip_limit *limit, struct zip *zip);
TN_HIDDEN void zip_close(struct zip *zip);
/* Finds a member by name. Returns NULL, without setting an error, if there is none. */
TN_HIDDEN const struct zip_member *zip_find(const struct zip *zip, const char *name);

/* Reads one member of an archive as a tn_source. A deflated member is unpacked to memory when it is
 * opened. */
struct zip_reader {
    tn_source source;
    struct zip *zip;
    const struct zip_member *member;
    uint64_t begin;       /* offset of the member's data in the file */
    unsigned char *bytes; /* the unpacked data of a deflated member, else NULL */
    uint64_t summed;      /* number of bytes that `sum` covers */
    uint32_t sum;
};

TN_HIDDEN tn_status zip_reader_open(struct zip *zip, const struct zip_member *member,
                                    struct zip_reader *reader);
/* Frees the reader's memory. If `status` is TN_OK and all bytes were read, compares the checksum.
 * Returns `status` if it is a failure, else the result of the comparison. */
TN_HIDDEN tn_status zip_reader_close(struct zip_reader *reader, tn_status status);

/* zip_inflate.c: unpacks the member's `packed` bytes at `offset` of the file to `out`. Fails if the
 * result is not exactly the member's `size` bytes. */
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
/* Appends a stored member; `produce` writes the member's bytes to the sink that is passed to it.
 * `produce` is called twice and must write the same bytes both times: the first pass computes the
 * size and the checksum, which the file contains before the bytes, and the second pass writes. */
TN_HIDDEN tn_status zip_writer_add(struct zip_writer *writer, const char *name,
                                   tn_status (*produce)(const tn_sink *sink, const void *user),
                                   const void *user);
/* Writes the directory; called after the last member. */
TN_HIDDEN tn_status zip_writer_finish(struct zip_writer *writer);
/* Frees the memory of the writer; must also be called after a failure. */
TN_HIDDEN void zip_writer_close(struct zip_writer *writer);

#endif
