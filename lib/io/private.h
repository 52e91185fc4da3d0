/* SPDX-License-Identifier: MIT
 *
 * Declarations for the files of this folder. */
#ifndef TN_LIB_IO_PRIVATE_H
#define TN_LIB_IO_PRIVATE_H

#include "core/module/internal.h"

#include <sys/stat.h>

#include <tenon/format.h>
#include <tenon/runtime.h>
#include <tenon/state.h>

/* A sibling: another file that the file being read or written names (sibling_read.c,
 * sibling_write.c). */
typedef struct tn__sibling_read tn__sibling_read;
typedef struct tn__sibling_write tn__sibling_write;

/* A file that is read at any offset, or mapped. */
typedef struct tn__mapping tn__mapping;
typedef struct tn__reader {
    tn_source source;
    int file;
    unsigned char *window; /* bytes that were read ahead, for small pieces */
    uint64_t window_at;
    size_t window_size;
    tn__mapping *mapping; /* with TN_FILE_MAP, else NULL; tensors over it also hold references */
    bool read_only;
    tn__sibling_read *siblings; /* closed with the reader */
} tn__reader;

/* Opens a file for reading. `flags` are TN_FILE_*. */
tn_status tn__reader_open(tn__reader *reader, const char *path, uint32_t flags);
/* Like tn__reader_open(), for an open file. The reader takes over the descriptor, also on
 * failure. */
tn_status tn__reader_begin(tn__reader *reader, int file, const char *path, uint32_t flags);
void tn__reader_close(tn__reader *reader);
/* Returns the reader of a source, NULL if the source is not from this folder. *base becomes the
 * offset in the file at which the source begins. */
tn__reader *tn__reader_of(const tn_source *source, uint64_t *base);
/* Like tn__reader_of(), but returns NULL if tn_source_sibling did not make the source. */
tn__reader *tn__sibling_reader(const tn_source *source, uint64_t *base);
void tn__sibling_read_close(tn__sibling_read *siblings);

/* ---- temporary files (temporary.c) ----------------------------------------------------------- */

/* Room for the name of a temporary file, such as ".tenon-0123abcd-0123456789abcdef.tmp". */
#define TN__TEMPORARY_NAME 40

/* Creates a file with a new temporary name and locks it. Returns a descriptor, or -1 and sets
 * errno. */
int tn__temporary_create(int folder, const char *ending, mode_t mode,
                         char name[TN__TEMPORARY_NAME]);
/* Give a name to a file without one (O_TMPFILE): a new temporary name, or `name`, which no file may
 * have. Return 0 or an errno value. */
int tn__temporary_link(int folder, int file, const char *ending, char name[TN__TEMPORARY_NAME]);
int tn__temporary_link_as(int folder, int file, const char *name);
/* Removes temporary files whose writer has ended. `settle` may be NULL. It is called with each file
 * first; if it returns false, the file is not removed. */
void tn__temporary_sweep(int folder, const char *ending, bool (*settle)(void *user, int file),
                         void *user);

/* ---- where a file goes (target.c) ---- */

typedef struct tn__target {
    int folder;      /* file descriptor of the folder */
    char *name;      /* in the folder, after links were followed */
    struct stat old; /* the file that has the name, if `exists` */
    bool exists;
} tn__target;

/* Finds the folder and the name for a path. With `fresh`, does not look for a file that has the
 * name, and follows no link. On failure there is nothing to free. */
tn_status tn__target_find(tn__target *place, const char *path, bool fresh);
void tn__target_free(tn__target *place);

/* ---- the files of a set (file_set.c) ---- */

/* Returns the length of the folder in front of the last part of a path, including its slash. */
size_t tn__target_folder_length(const char *path);
/* Returns the path of a file in the folder of `path`. The caller frees it with tn_free(). */
char *tn__file_set_path(const char *path, const char *name);

/* How the files next to an index are named: STEM-v2-00001-of-00003EXTENSION. The members point into
 * the name of the index. */
typedef struct tn__scheme {
    const char *stem;
    size_t stem_length;
    const char *extension;
    size_t extension_length;
} tn__scheme;

bool tn__file_set_scheme(const char *index_name, tn__scheme *scheme);
/* Returns the name of one file of a set. `part` counts from 1. The caller frees it with
 * tn_free(). */
char *tn__file_set_name(const tn__scheme *scheme, int64_t version, int64_t part, int64_t parts);

/* A save of a set of files that is in progress. */
typedef struct tn__file_set {
    const char *path; /* path of the index */
    tn__scheme scheme;
    int64_t version;  /* a version of which no file exists */
    int folder, file; /* file descriptors of the folder and of the journal */
    char journal[TN__TEMPORARY_NAME];
    struct stat old; /* the existing index, if `exists` */
    bool exists;
} tn__file_set;

/* Begins a save. First removes from the folder the files of saves whose process was killed. On
 * failure there is nothing to close. */
tn_status tn__file_set_open(tn__file_set *set, const char *path);
/* Removes from the folder of `path` the files of saves whose process was killed. To be called
 * before a single file is saved there. */
void tn__file_set_sweep(const char *path);
/* Record files in the journal: a new file before it gets its name, and the files of an old index
 * before they may become superfluous. */
tn_status tn__file_set_note(tn__file_set *set, const char *name, int file);
tn_status tn__file_set_note_old(tn__file_set *set, const tn_state *index);
/* Ends a save: removes the recorded files that no index of the folder names. These are the files of
 * the old set or, after a failure, those of the new set. */
void tn__file_set_close(tn__file_set *set);

/* ---- writing (writer.c) ---- */

/* A file that is written next to the file that it will replace. Commit or abort ends the writer. If
 * commit fails, the new file is removed, unless it already has its name and only its folder cannot
 * be synced. */
typedef struct tn__writer {
    tn_sink sink;
    int file;
    tn__target place;
    char temporary[TN__TEMPORARY_NAME]; /* "" while the file has no name */
    tn__file_set *set;                  /* the set to which the file belongs, or NULL */
    bool unlinkable;                    /* after a failure: another try with `named` may succeed */
    bool named;                         /* the file has a name from the start */
    tn__sibling_write *siblings;        /* committed before this file, and aborted with it */
    unsigned char *buffer;
    size_t held;
    uint64_t written, total; /* bytes, for progress reports */
} tn__writer;

/* Creates the new file. With `named`, it has a name from the start. With a set, it may not replace
 * another file. */
tn_status tn__writer_open(tn__writer *writer, const char *path, uint64_t total, bool named,
                          tn__file_set *set);
/* Creates another file that is written together with the file of `writer`. It may replace a regular
 * file, but not a link. */
tn_status tn__writer_open_sibling(tn__writer *sibling, const tn__writer *writer, const char *path);
tn_status tn__writer_commit(tn__writer *writer);
void tn__writer_abort(tn__writer *writer);
/* Returns the writer of a sink, NULL if the sink is not from this folder. */
tn__writer *tn__writer_of(const tn_sink *sink);
tn_status tn__sibling_write_commit(tn__writer *writer);
void tn__sibling_write_abort(tn__writer *writer);

/* Sets the error TN_ERR_IO, "PATH: what: text of the errno value", and returns it. */
tn_status tn__io_fail(const char *path, const char *what, int number);

/* ---- what a format cannot store, as texts (metadata.c) --------------------------------------- */

/* Returns a new state with only tensors and texts that represents `state`: other values, versions
 * and ties become the texts "tenon.values", "tenon.versions" and "tenon.ties". Returns NULL and
 * sets the error on failure. */
tn_state *tn__metadata_from_state(const tn_state *state, const char *path);
/* Reverses tn__metadata_from_state(). Takes over `state`, even on failure. */
tn_state *tn__metadata_to_state(tn_state *state, const char *path);

/* ---- modules of states (state_module.c) ---- */

/* Makes the module whose spec a state has, with the values of the state. `path` and `format` are
 * for messages. The caller owns the module. Returns NULL and sets the error on failure. */
tn_module *tn__state_module(const tn_state *state, const char *path, const char *format);

/* ---- ties (tied_weights.c) ---- */

/* Sets first[i] to the first entry that is the same view of the same storage as entry i. The caller
 * frees *first with tn_free(), even on failure. */
tn_status tn__tied_weights_find(const tn_state *state, int64_t **first);
/* Makes the entry `name` the same tensor as the entry `with`, if their values are still equal. */
tn_status tn__tied_weights_join(tn_state *state, const char *name, const char *with);

/* ---- folders (folder.c) ---------------------------------------------------------------------- */

/* If `path` is a folder, sets *file to the path of the file of weights in it; if there is none, or
 * several that are equally good, fails. Sets *file to NULL if `path` is not a folder. The caller
 * frees *file with tn_free(). */
tn_status tn__folder_find(const char *path, char **file);

/* ---- one file (file_load_save.c), several files (shards.c) ------------------------------------
 */

/* Returns the format with the extension of `path`, NULL without an error if there is none. */
const tn__entry *tn__file_format(const char *path);
/* Writes a state in a format, without converting it first. If `set` is NULL, the file belongs to no
 * set. */
tn_status tn__file_save(const tn__entry *entry, const char *path, const tn_state *state,
                        tn__file_set *set);
/* Reads a file, without converting what its format returns. *index says at the call whether the
 * file may be an index, and afterwards whether it is one. */
tn_state *tn__file_load(const char *path, uint32_t flags, bool *index);
/* Reads an index: the state has a file name for each tensor. Sets *index to NULL if the file is not
 * an index. Returns a status but records no error. */
tn_status tn__file_load_index(const char *path, tn_state **index);
/* Loads the files that an index names into one state. Takes over `index`. */
tn_state *tn__shards_load(tn_state *index, const char *path, uint32_t flags);

/* Loads the plugins, whose formats the registry then has. */
static inline tn_status tn__io_load_formats(void)
{
    return tn_registry_count(TN_KIND_tn_format_def) >= 0 ? TN_OK : tn_error_last_code();
}

#endif
