/* SPDX-License-Identifier: MIT
 *
 * What the files of this folder share. */
#ifndef TN_CORE_IO_PRIVATE_H
#define TN_CORE_IO_PRIVATE_H

#include "core/module/internal.h"

#include <sys/stat.h>

/* Another file that a file names, while that one is read or written (sibling_read.c,
 * sibling_write.c). */
typedef struct tn__sibling_read tn__sibling_read;
typedef struct tn__sibling_write tn__sibling_write;

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
    tn__sibling_read *siblings; /* closed with it */
} tn__reader;

/* `flags`: TN_FILE_*. */
tn_status tn__reader_open(tn__reader *reader, const char *path, uint32_t flags);
/* The same for a file that is open, and then the reader's, also when it fails. */
tn_status tn__reader_begin(tn__reader *reader, int file, const char *path, uint32_t flags);
void tn__reader_close(tn__reader *reader);
/* The reader of a source, NULL where the source is none of ours; `*base` is where in the file the
 * source begins. */
tn__reader *tn__reader_of(const tn_source *source, uint64_t *base);
/* That of a source that tn_source_sibling made, NULL where it did not. */
tn__reader *tn__sibling_reader(const tn_source *source, uint64_t *base);
void tn__sibling_read_close(tn__sibling_read *siblings);

/* ---- files that are not finished (temporary.c) ---- */

/* Bytes of a name of ours: ".tenon-0123abcd-0123456789abcdef.tmp". */
#define TN__TEMPORARY_NAME 40

/* Makes a file with a new name of ours and locks it. A descriptor; -1 and errno. */
int tn__temporary_create(int folder, const char *ending, mode_t mode,
                         char name[TN__TEMPORARY_NAME]);
/* Gives a file without a name a new name of ours, or this name if no file has it. 0, or errno. */
int tn__temporary_link(int folder, int file, const char *ending, char name[TN__TEMPORARY_NAME]);
int tn__temporary_link_as(int folder, int file, const char *name);
/* Removes the files of our naming whose writer is gone. `settle` may be NULL; it looks at one
 * first, and one for which it says false stays. */
void tn__temporary_sweep(int folder, const char *ending, bool (*settle)(void *user, int file),
                         void *user);

/* ---- where a file goes (target.c) ---- */

typedef struct tn__target {
    int folder;      /* open */
    char *name;      /* in the folder; links are resolved */
    struct stat old; /* the file of that name, when one exists */
    bool exists;
} tn__target;

/* `fresh`: nothing of that name is looked at or replaced. On failure there is nothing to free. */
tn_status tn__target_find(tn__target *place, const char *path, bool fresh);
void tn__target_free(tn__target *place);

/* ---- the files of a set (file_set.c) ---- */

/* Length of the folder in front of a path's last part, its slash included. */
size_t tn__target_folder_length(const char *path);
/* The path of a name in the folder of `path` (tn_free). */
char *tn__file_set_path(const char *path, const char *name);

/* How the files next to an index are named: STEM-v2-00001-of-00003EXTENSION. Points into the
 * name of the index. */
typedef struct tn__scheme {
    const char *stem;
    size_t stem_length;
    const char *extension;
    size_t extension_length;
} tn__scheme;

bool tn__file_set_scheme(const char *index_name, tn__scheme *scheme);
/* `part` counts from 1 (tn_free). */
char *tn__file_set_name(const tn__scheme *scheme, int64_t version, int64_t part, int64_t parts);

/* A save of a set under way. */
typedef struct tn__file_set {
    const char *path; /* of the index */
    tn__scheme scheme;
    int64_t version;  /* of which no file exists */
    int folder, file; /* the journal's */
    char journal[TN__TEMPORARY_NAME];
    struct stat old; /* of the index that is there, if `exists` */
    bool exists;
} tn__file_set;

/* Settles what killed saves left in the folder, then begins. On failure there is nothing to
 * close. */
tn_status tn__file_set_open(tn__file_set *set, const char *path);
/* The first of these alone, before a file is saved in the folder of `path`. */
void tn__file_set_sweep(const char *path);
/* Before a new file gets its name; before the files of an index may become superfluous. */
tn_status tn__file_set_note(tn__file_set *set, const char *name, int file);
tn_status tn__file_set_note_old(tn__file_set *set, const tn_state *index);
/* Removes the noted files that no index of the folder names: those of the old set, or of this
 * one. */
void tn__file_set_close(tn__file_set *set);

/* ---- writing (writer.c) ---- */

/* A file that is written next to the one that it will replace. After commit or abort it is gone;
 * commit that failed has removed what was written. */
typedef struct tn__writer {
    tn_sink sink;
    int file;
    tn__target place;
    char temporary[TN__TEMPORARY_NAME]; /* its name meanwhile; "" while it has none */
    tn__file_set *set;                  /* to which it belongs, or NULL */
    bool unlinkable; /* after a failure: it cannot be named; another try with a name may succeed */
    bool named;      /* it has a name from the start */
    tn__sibling_write *siblings; /* committed before it, and aborted with it */
    unsigned char *buffer;
    size_t held;
    uint64_t written, total; /* for progress */
} tn__writer;

/* `named`: it has a name from the start. With a set it replaces nothing. */
tn_status tn__writer_open(tn__writer *writer, const char *path, uint64_t total, bool named,
                          tn__file_set *set);
/* A file that is written together with `writer`: what has the name is replaced, and is no link. */
tn_status tn__writer_open_sibling(tn__writer *sibling, const tn__writer *writer, const char *path);
tn_status tn__writer_commit(tn__writer *writer);
void tn__writer_abort(tn__writer *writer);
/* The writer of a sink, NULL where the sink is none of ours. */
tn__writer *tn__writer_of(const tn_sink *sink);
tn_status tn__sibling_write_commit(tn__writer *writer);
void tn__sibling_write_abort(tn__writer *writer);

/* Records TN_ERR_IO "PATH: what: words of errno". */
tn_status tn__io_fail(const char *path, const char *what, int number);

/* ---- what a format cannot hold, as texts (metadata.c) ---------------------------------------- */

/* A state of tensors and texts alone that represents `state`: values, versions and ties become
 * the texts "tenon.values", "tenon.versions", "tenon.ties". NULL and an error. */
tn_state *tn__metadata_from_state(const tn_state *state, const char *path);
/* The reverse; takes `state` over, also when it fails. */
tn_state *tn__metadata_to_state(tn_state *state, const char *path);

/* ---- ties (ties.c) ---- */

/* first[i]: the first entry that is the same view of the same storage as entry i. Owned by the
 * caller (tn_free), also when it fails. */
tn_status tn__ties_find(const tn_state *state, int64_t **first);
/* Makes two entries one tensor again, if their values are still the same. */
tn_status tn__ties_join(tn_state *state, const char *name, const char *with);

/* ---- one file (file.c), several (parts.c) ---- */

/* By the extension; NULL without an error when there is none. */
const tn__entry *tn__file_format(const char *path);
/* Writes the state as it is, in a format; `set` NULL: a file of its own. */
tn_status tn__file_save(const tn__entry *entry, const char *path, const tn_state *state,
                        tn__file_set *set);
/* Reads a file as its format has it; `index`: whether it may be, and then whether it is, one. */
tn_state *tn__file_load(const char *path, uint32_t flags, bool *index);
/* The names that an index has; *index is NULL when the file is not an index. No error is recorded.
 */
tn_status tn__file_load_index(const char *path, tn_state **index);
/* The state of all files that an index names; takes `index` over. */
tn_state *tn__parts_load(tn_state *index, const char *path, uint32_t flags);

#endif
