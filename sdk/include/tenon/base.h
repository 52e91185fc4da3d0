/* SPDX-License-Identifier: MIT
 *
 * Status codes, error records, log, allocator, parallel_for, long calls.
 * tenon-interface: tenon.base 0
 *
 * Tags in brackets on each function are a closed list, read by a generator (CONTRIBUTING.md):
 *   threads    [stream] one thread at a time for each stream · [main] while no other thread uses
 *              the library · [callback] only inside the callback that it belongs to ·
 *              none of them: any thread, at any time
 *   ownership  [owned] the caller drops the result · [scoped] the innermost scope owns it ·
 *              [borrowed] it lives as long as the object it came from · [static] it is never freed
 *   arguments  [null-ok: NAMES] these may be NULL; every other pointer may not ·
 *              [array: NAME COUNT, ...] COUNT elements, may be NULL where COUNT is 0 ·
 *              [inout: NAMES] the call reads and writes them (others that are not const: it
 *              writes) · [taken: NAMES] the callee owns them on success ·
 *              [null-through] a NULL tensor, module, optimizer ... makes the call fail without a
 *              new error
 *   age        [since: N] the ABI minor that added it (TN_TARGET); without it: the first */
#ifndef TENON_BASE_H
#define TENON_BASE_H

#include <stdarg.h>
#include <tenon/abi.h>

TN_BEGIN_DECLS

/* ---- status ---------------------------------------------------------------------------------- */

typedef int32_t tn_status;

enum {
    TN_OK = 0,
    TN_ERR_TYPE = 1,            /* wrong type: dtype, option type, object */
    TN_ERR_KEY = 2,             /* no entry of that name */
    TN_ERR_ATTR = 3,            /* no such attribute (parameter, buffer, child) */
    TN_ERR_VALUE = 4,           /* right type, but the value is not accepted */
    TN_ERR_RUNTIME = 5,         /* the call is not possible in this state */
    TN_ERR_INDEX = 6,           /* an index or a dimension out of range */
    TN_ERR_NOT_IMPLEMENTED = 7, /* no plugin provides it; the message says which could */
    TN_ERR_ASSERT = 8,   /* an internal invariant is broken: a bug; the message asks to report it */
    TN_ERR_MEMORY = 9,   /* out of memory, on the host or on a device */
    TN_ERR_IO = 10,      /* a file cannot be read or written */
    TN_ERR_FORMAT = 11,  /* a file or a text is malformed */
    TN_ERR_DEVICE = 12,  /* a device reported a failure; `native` has its code */
    TN_ERR_LOST = 13,    /* a device is lost, with its tensors; the process continues */
    TN_ERR_VERSION = 14, /* incompatible ABI or file versions */
    TN_ERR_REFUSED = 15, /* policy: ownership, deny list, a taken name, a checked boundary */
    TN_ERR_UNAVAILABLE = 16, /* no such hardware, or a library it needs is absent */
    TN_ERR_CANCELLED = 17,   /* the program's progress callback cancelled the call */
    TN_ERR_TIMEOUT = 18,     /* something that was waited for did not come in time */
    TN_ERR_PEER = 19,        /* another process of a group failed or is gone */
    TN_ERR_COUNT
};

/* "TN_ERR_VALUE" and the like; "TN_ERR_?" for an unknown code. [static] */
TN_API const char *tn_status_name(tn_status code);

/* ---- errors ---------------------------------------------------------------------------------- */

/* One failure. Frozen: 1024 bytes, owned by the caller, usable before anything is set up. */
typedef struct tn_error {
    tn_status code;
    int32_t native;    /* errno, CUresult, cl_int ... 0 if none */
    char plugin[64];   /* id of the plugin that failed; "" for the core */
    char message[952]; /* what was requested, what is wrong, what would work */
} tn_error;

/* Whether a call of this thread failed since the last clear. */
TN_API bool tn_failed(void);

/* The message of the first failure since the last clear, "" if none. Valid until the next clear or
 * take of this thread. [borrowed] */
TN_API const char *tn_error_text(void);

/* Its code, TN_OK if none. */
TN_API tn_status tn_error_code(void);

/* The last failure of this thread, whether or not the first was taken; code TN_OK if none.
 * [borrowed] */
TN_API const tn_error *tn_error_last(void);

/* The code of the last failure: what a function returns that got NULL from another one. */
TN_ATTR(unused) static inline tn_status tn_error_last_code(void)
{
    return tn_error_last()->code;
}

/* Copies the first failure since the last clear to `out` and clears. Returns its code.
 * [null-ok: out] */
TN_API tn_status tn_error_take(tn_error *out);

/* Forgets the failures of this thread. */
TN_API void tn_error_clear(void);

/* For code that tries something and recovers: mark saves the failures recorded so far, restore
 * brings them back and forgets those recorded in between; the last failure is then the first one
 * that is kept. Marks nest freely; failures that were cleared or taken in between stay so. */
TN_API uint64_t tn_error_mark(void);
TN_API void tn_error_restore(uint64_t mark);

/* Records a failure of this thread and returns `code`, for use as `return tn_fail(...)`. The format
 * is tn_snprint's. The code that detects an error writes its message, once. */
TN_API tn_status tn_failv(tn_status code, const char *format, va_list args);
TN_API tn_status tn_fail(tn_status code, const char *format, ...);

/* The same with the native error code of a lower library (errno, CUresult, cl_int). */
TN_API tn_status tn_fail_nativev(tn_status code, int32_t native, const char *format, va_list args);
TN_API tn_status tn_fail_native(tn_status code, int32_t native, const char *format, ...);
/* The same with text that is not a format, for languages without variable arguments. */
TN_API tn_status tn_fail_text(tn_status code, int32_t native, const char *text);

/* Puts words in front of the message of this thread's last failure (and of the first, where that is
 * the same one): "layer \"fc1\" (Linear): ". Returns its code. */
TN_API tn_status tn_error_prefixv(const char *format, va_list args);
TN_API tn_status tn_error_prefix(const char *format, ...);
/* The same with text that is not a format. */
TN_API tn_status tn_error_prefix_text(const char *text);

/* ---- text ------------------------------------------------------------------------------------ */

/* printf for all texts of Tenon, independent of the locale. Flags `-` `0` `+`, width, precision and
 * `*` as in C; conversions: %d %i %u %x (with l, ll, z, j), %c, %s, %p, %%, %f %e %g with a
 * precision as in C; %g without one is the shortest text that reads back to the same double, as
 * Python prints it (0.1, 1.0, 1e-05, inf, nan: always a float when read again); %q is a string in
 * double quotes with escapes as the spec grammar reads them (None for NULL); %b is an int: True or
 * False. Writes at most `size` bytes with the final NUL; returns the length that the whole text
 * has, or -1 for a format with a conversion that is not in this list. [null-ok: out]
 */
TN_API int64_t tn_snprintv(char *out, size_t size, const char *format, va_list args);
TN_API int64_t tn_snprint(char *out, size_t size, const char *format, ...);

/* Reads a whole number / a decimal floating number (also inf, -inf, nan), whatever the locale. The
 * whole text must be a number; false otherwise or when out of range. */
TN_API bool tn_read_int(const char *text, int64_t *out);
TN_API bool tn_read_float(const char *text, double *out);

/* ---- log ------------------------------------------------------------------------------------- */

enum { TN_LOG_ERROR = 1, TN_LOG_WARNING = 2, TN_LOG_INFO = 3, TN_LOG_DEBUG = 4 };

/* Writes a message to the log: by default warnings and errors go to standard error of the program
 * (TENON_LOG=off|error|warning|info|debug, or =LEVEL:FILE). TENON_LOG chooses the level for every
 * sink. */
TN_API void tn_logv(int level, const char *format, va_list args);
TN_API void tn_log(int level, const char *format, ...);
/* The same with text that is not a format. */
TN_API void tn_log_text(int level, const char *text);

/* A sink for log lines: `text` has no newline at its end; `plugin` is "" for the core. One thread
 * at a time calls it. */
typedef void (*tn_log_sink)(void *user, int level, const char *plugin, const char *text);

#ifdef TN_PROGRAM
/* Replaces the sink of the process; NULL puts the default back. [null-ok: sink, user]
 */
TN_PROGRAM void tn_set_log_sink(tn_log_sink sink, void *user);
#endif

/* ---- host memory ----------------------------------------------------------------------------- */

/* The source of all host memory of the library, including tensors of host devices. `alignment` is a
 * power of two; `resize` may move. Any thread calls them. */
typedef struct tn_allocator {
    void *(*alloc)(void *user, size_t size, size_t alignment);
    void *(*resize)(void *user, void *block, size_t old_size, size_t size, size_t alignment);
    void (*free)(void *user, void *block, size_t size, size_t alignment);
    void *user;
    void *reserved[4];
} tn_allocator;

#ifdef TN_PROGRAM
/* Replaces the allocator; only before the first object is made, TN_ERR_RUNTIME after.
 * [main] */
TN_PROGRAM tn_status tn_set_allocator(const tn_allocator *allocator);
#endif

/* Memory from the process's allocator, aligned for any type (zeroed by tn_calloc); NULL and an
 * error of this thread when out of memory. [owned] */
TN_API void *tn_malloc(size_t size);
TN_API void *tn_calloc(size_t count, size_t size);
/* Changes the size of a block, which may move. [owned] [null-ok: block] [taken: block] */
TN_API void *tn_realloc(void *block, size_t size);
/* Frees a block. [null-ok: block] [taken: block] */
TN_API void tn_free(void *block);
/* A copy of a text, to be freed by tn_free. [owned] */
TN_API char *tn_strdup(const char *text);

/* ---- threads --------------------------------------------------------------------------------- */

/* Runs part(user, begin, end) over pieces of [0, count), each at least `grain` long, on the host's
 * pool and the calling thread; returns when all are done. Where the pieces begin depends on count
 * and grain alone, never on the number of threads. No thread starts before the first call that has
 * more than one piece. Calls nest (inner ones run in line). A piece that fails makes the call
 * return the first failure in piece order, recorded in the calling thread. Each piece has a scope
 * of its own, unless there is only one. After fork the child runs everything in the calling thread.
 * [null-ok: user] */
TN_API tn_status tn_parallel_for(int64_t count, int64_t grain,
                                 tn_status (*part)(void *user, int64_t begin, int64_t end),
                                 void *user);

/* Threads that tn_parallel_for uses, the calling one included (TENON_NUM_THREADS, else the cores
 * that this process may run on). */
TN_API int tn_num_threads(void);

#ifdef TN_PROGRAM
/* Changes that number; waits for running calls. */
TN_PROGRAM tn_status tn_set_num_threads(int count);
#endif

/* ---- long calls ------------------------------------------------------------------------------ */

/* Called repeatedly by calls that may take long (loading, saving, large copies); `done` and `total`
 * are in units that `what` names, total 0 if unknown. False cancels: the call returns
 * TN_ERR_CANCELLED and leaves things as they were. */
typedef bool (*tn_progress)(void *user, const char *what, uint64_t done, uint64_t total);

/* For long calls inside the library and in plugins: TN_OK to go on, TN_ERR_CANCELLED to stop. */
TN_API tn_status tn_progress_report(const char *what, uint64_t done, uint64_t total);

#ifdef TN_PROGRAM
/* Sets this thread's progress callback; NULL for none. [null-ok: callback, user] */
TN_PROGRAM void tn_set_progress(tn_progress callback, void *user);

/* Version of the library, "0.1.0". [static] */
TN_PROGRAM const char *tn_version(void);

/* Releases what can be released: deactivates plugins, joins the thread pool, frees caches. Objects
 * that are still alive stay valid until dropped. Optional; for leak checkers and for hosts that
 * unload late. [main] */
TN_PROGRAM void tn_shutdown(void);
#endif

TN_END_DECLS
#endif
