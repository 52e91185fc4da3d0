/* SPDX-License-Identifier: MIT
 *
 * Status codes, errors, text, the log, memory of the host, threads, progress of long calls.
 * tenon-interface: tenon.base 0
 *
 * The comment of a function ends with tags in brackets. A generator (sdk/api/generate.pl) reads the
 * tags; no others are allowed:
 *   threads    [stream] for each stream, only one thread at a time may call the function ·
 *              [main] only while no other thread uses the library · [callback] only inside the
 *              callback that the function is meant for · without a thread tag: any thread may
 *              call the function at any time
 *   ownership  [owned] the caller owns the result and must drop it · [scoped] the innermost scope
 *              of the thread owns the result · [borrowed] the result lives as long as the object
 *              that it belongs to · [static] the result is never freed
 *   arguments  [null-ok: NAMES] these arguments may be NULL; all other pointers must not be ·
 *              [array: NAME COUNT, ...] NAME points to COUNT elements and may be NULL if COUNT is
 *              0 · [inout: NAMES] the function reads and writes what these arguments point to
 *              (without this tag it only writes through pointers to non-const data) ·
 *              [taken: NAMES] if the function succeeds, it takes over the ownership of these
 *              arguments · [null-through] if a tensor, module, optimizer or other object is NULL,
 *              the function fails without recording a new error
 *   age        [since: N] the minor version of the ABI that added the function (see TN_TARGET);
 *              without this tag: the first version */
#ifndef TENON_BASE_H
#define TENON_BASE_H

#include <stdarg.h>
#include <tenon/abi.h>

TN_BEGIN_DECLS

/* ---- status ---------------------------------------------------------------------------------- */

typedef int32_t tn_status;

enum {
    TN_OK = 0,
    TN_ERR_TYPE = 1,    /* an argument, option or object has the wrong type or dtype */
    TN_ERR_KEY = 2,     /* no entry has this name */
    TN_ERR_ATTR = 3,    /* a module has no parameter, buffer or child of this name */
    TN_ERR_VALUE = 4,   /* the type is right, but the value is not accepted */
    TN_ERR_RUNTIME = 5, /* the object or the process is not in a state that permits the call */
    TN_ERR_INDEX = 6,   /* an index or dimension is out of range */
    /* No loaded plugin provides what was asked for; the message says how to get it. */
    TN_ERR_NOT_IMPLEMENTED = 7,
    /* An internal check failed, which is a bug of Tenon or of a plugin. Also the failure of a check
     * that the program asked for, such as tn_gradcheck. */
    TN_ERR_ASSERT = 8,
    TN_ERR_MEMORY = 9,  /* out of memory, on the host or on a device */
    TN_ERR_IO = 10,     /* a file cannot be read or written */
    TN_ERR_FORMAT = 11, /* a file or a text is malformed */
    TN_ERR_DEVICE = 12, /* a device reported a failure; tn_error.native is its error code */
    TN_ERR_LOST = 13, /* a device and the contents of its tensors are lost; the process continues */
    TN_ERR_VERSION = 14,     /* incompatible ABI or file versions */
    TN_ERR_REFUSED = 15,     /* refused by a rule, such as the deny list or a name that is taken */
    TN_ERR_UNAVAILABLE = 16, /* the hardware, or a library that is needed for it, is absent */
    TN_ERR_CANCELLED = 17,   /* the program's progress callback cancelled the call */
    TN_ERR_TIMEOUT = 18,     /* a wait took longer than its time limit */
    TN_ERR_PEER = 19,        /* another process of the group failed or has ended */
    TN_ERR_COUNT
};

/* Returns the name of a status code, such as "TN_ERR_VALUE"; "TN_ERR_?" if the code is unknown.
 * [static] */
TN_API const char *tn_status_name(tn_status code);

/* ---- errors ---------------------------------------------------------------------------------- */

/* A record of one failure. The layout (1024 bytes) never changes. The caller owns the struct and
 * can use it before the library is initialized. */
typedef struct tn_error {
    tn_status code;
    int32_t native;    /* code of an underlying library (errno, CUresult, cl_int); 0: none */
    char plugin[64];   /* id of the plugin that failed; "" for the core */
    char message[952]; /* what was requested, what is wrong, what would work */
} tn_error;

/* Returns whether a call has failed in this thread since the last tn_error_clear or
 * tn_error_take. */
TN_API bool tn_failed(void);

/* Returns the message of the first failure of this thread since the last clear or take; "" if there
 * is none. The text is valid until this thread calls tn_error_clear or tn_error_take. [borrowed] */
TN_API const char *tn_error_text(void);

/* Returns the code of the first failure of this thread since the last clear or take; TN_OK if there
 * is none. */
TN_API tn_status tn_error_code(void);

/* Returns the last failure of this thread, even if tn_error_take has already taken the first one.
 * Its code is TN_OK if there is none. [borrowed] */
TN_API const tn_error *tn_error_last(void);

/* Returns the code of the last failure of this thread. For functions that must return a tn_status
 * after another function has returned NULL. */
TN_ATTR(unused) static inline tn_status tn_error_last_code(void)
{
    return tn_error_last()->code;
}

/* Copies the first failure of this thread to `out` and clears it: tn_failed then returns false, but
 * tn_error_last still returns the last failure. Returns the code of the copied failure; TN_OK if
 * there was none. [null-ok: out] */
TN_API tn_status tn_error_take(tn_error *out);

/* Clears all failures of this thread, the last one too. */
TN_API void tn_error_clear(void);

/* For code that tries an operation and recovers if it fails. tn_error_mark returns the current
 * position in the sequence of failures; tn_error_restore removes the failures recorded after that
 * position. If the last failure is removed, the first remaining failure becomes the last one. Marks
 * may nest. Failures that tn_error_clear or tn_error_take has removed do not come back. */
TN_API uint64_t tn_error_mark(void);
TN_API void tn_error_restore(uint64_t mark);

/* Records a failure of this thread and returns `code`, for use as `return tn_fail(...)`. The format
 * is that of tn_snprint. Only the code that detects an error records it; its callers just return
 * the code. */
TN_API tn_status tn_failv(tn_status code, const char *format, va_list args);
TN_API tn_status tn_fail(tn_status code, const char *format, ...);

/* Like tn_fail, but also records `native`, the error code of an underlying library (errno,
 * CUresult, cl_int). */
TN_API tn_status tn_fail_nativev(tn_status code, int32_t native, const char *format, va_list args);
TN_API tn_status tn_fail_native(tn_status code, int32_t native, const char *format, ...);
/* Like tn_fail_native, but takes the complete message instead of a format. For languages without
 * variable arguments. */
TN_API tn_status tn_fail_text(tn_status code, int32_t native, const char *text);
/* Records the failure of another thread as a failure of this thread: code that has threads of its
 * own takes the failure there (tn_error_take), and gives it to the thread that called it. Returns
 * the code; TN_OK if the record has no failure. */
TN_ATTR(unused) static inline tn_status tn_error_give(const tn_error *error)
{
    return error->code == TN_OK ? TN_OK : tn_fail_text(error->code, error->native, error->message);
}

/* Inserts text before the message of the last failure of this thread, for example "layer \"fc1\"
 * (Linear): ". If the last failure is also the first one, the message of tn_error_text changes too.
 * Returns the code of the failure. */
TN_API tn_status tn_error_prefixv(const char *format, va_list args);
TN_API tn_status tn_error_prefix(const char *format, ...);
/* Like tn_error_prefix, but takes the complete text instead of a format. */
TN_API tn_status tn_error_prefix_text(const char *text);

/* ---- text ------------------------------------------------------------------------------------ */

/* Formats text as printf does, but independent of the locale. Flags `-` `0` `+`, width, precision
 * and `*` work as in C. The conversions are %d %i %u %x (with l, ll, z, j), %c, %s, %p, %%; %f and
 * %e as in C; %g with a precision as in C; %g without a precision writes the shortest text that
 * reads back as the same double, as Python prints it (0.1, 1.0, 1e-05, inf, nan), so that a whole
 * number keeps its ".0"; %q writes a string in double quotes, with escapes that the spec grammar
 * reads, and None for NULL; %b takes an int and writes True or False. Writes at most `size` bytes
 * including the final NUL. Returns the length of the complete text without the NUL, or -1 if the
 * format contains any other conversion. [null-ok: out] */
TN_API int64_t tn_snprintv(char *out, size_t size, const char *format, va_list args);
TN_API int64_t tn_snprint(char *out, size_t size, const char *format, ...);

/* Reads a decimal integer (tn_read_int) or a decimal floating-point number, inf, -inf or nan
 * (tn_read_float), independent of the locale. Returns false, without recording a failure, if the
 * text contains anything else or the number is out of range. */
TN_API bool tn_read_int(const char *text, int64_t *out);
TN_API bool tn_read_float(const char *text, double *out);

/* ---- log ------------------------------------------------------------------------------------- */

enum { TN_LOG_ERROR = 1, TN_LOG_WARNING = 2, TN_LOG_INFO = 3, TN_LOG_DEBUG = 4 };

/* Writes a message to the log. By default warnings and errors go to the standard error stream of
 * the process. The environment variable TENON_LOG=off|error|warning|info|debug, or
 * TENON_LOG=LEVEL:FILE, chooses another level or a file. The level also applies to a sink of the
 * program (tn_set_log_sink). */
TN_API void tn_logv(int level, const char *format, va_list args);
TN_API void tn_log(int level, const char *format, ...);
/* Like tn_log, but takes the complete text instead of a format. */
TN_API void tn_log_text(int level, const char *text);

/* Receives log messages. `text` does not end with a newline; `plugin` is the id of the plugin that
 * wrote the message, "" for the core. The library never calls the sink from two threads at the same
 * time. */
typedef void (*tn_log_sink)(void *user, int level, const char *plugin, const char *text);

#ifdef TN_PROGRAM
/* Sets the log sink of the process. NULL restores the default sink. [null-ok: sink, user] */
TN_PROGRAM void tn_set_log_sink(tn_log_sink sink, void *user);
#endif

/* ---- host memory ----------------------------------------------------------------------------- */

/* Functions that allocate all host memory of the library, including tensors of host devices.
 * `alignment` is a power of two; `resize` may move the block. The functions may be called by any
 * thread. */
typedef struct tn_allocator {
    void *(*alloc)(void *user, size_t size, size_t alignment);
    void *(*resize)(void *user, void *block, size_t old_size, size_t size, size_t alignment);
    void (*free)(void *user, void *block, size_t size, size_t alignment);
    void *user;
    void *reserved[4];
} tn_allocator;

#ifdef TN_PROGRAM
/* Replaces the allocator of the process. Must be called before the library creates its first
 * object; fails with TN_ERR_RUNTIME afterwards. [main] */
TN_PROGRAM tn_status tn_set_allocator(const tn_allocator *allocator);
#endif

/* Allocates memory from the allocator of the process, aligned for any type; tn_calloc fills it with
 * zeros. Returns NULL and records TN_ERR_MEMORY when out of memory. [owned] */
TN_API void *tn_malloc(size_t size);
TN_API void *tn_calloc(size_t count, size_t size);
/* Changes the size of a block and returns its address, which may be a new one. Returns NULL on
 * failure; the old block then stays valid. [owned] [null-ok: block] [taken: block] */
TN_API void *tn_realloc(void *block, size_t size);
/* Frees a block that tn_malloc, tn_calloc, tn_realloc or tn_strdup returned. [null-ok: block]
 * [taken: block] */
TN_API void tn_free(void *block);
/* Returns a copy of a string. The caller frees it with tn_free. [owned] */
TN_API char *tn_strdup(const char *text);

/* ---- threads --------------------------------------------------------------------------------- */

/* Splits [0, count) into ranges of at least `grain` elements, calls part(user, begin, end) for each
 * range on the thread pool and the calling thread, and returns when all ranges are done. The ranges
 * depend only on `count` and `grain`, never on the number of threads. The first call with more than
 * one range starts the threads. A nested call, made inside `part`, runs all its ranges in the
 * thread that makes it. If several ranges fail, the function returns the failure of the first of
 * them in the order of the ranges, and records it in the calling thread. If there is more than one
 * range, each call of `part` has its own scope. In a child process after fork, all ranges run in
 * the calling thread. [null-ok: user] */
TN_API tn_status tn_parallel_for(int64_t count, int64_t grain,
                                 tn_status (*part)(void *user, int64_t begin, int64_t end),
                                 void *user);

/* Returns the number of threads that tn_parallel_for uses, including the calling thread. The
 * default is TENON_NUM_THREADS or, if that is not set, the number of cores available to this
 * process. */
TN_API int32_t tn_num_threads(void);

#ifdef TN_PROGRAM
/* Sets the number of threads that tn_parallel_for uses, at least 1. Waits for running calls of
 * tn_parallel_for; fails inside `part`. */
TN_PROGRAM tn_status tn_set_num_threads(int32_t count);
#endif

/* ---- progress of long calls ------------------------------------------------------------------ */

/* Progress callback of the program. Functions that may take long (loading, saving, large copies)
 * call it repeatedly. `what` describes the work and names the unit of `done` and `total`; `total`
 * is 0 if unknown. Returning false cancels the function: it returns TN_ERR_CANCELLED and leaves its
 * objects unchanged. */
typedef bool (*tn_progress)(void *user, const char *what, uint64_t done, uint64_t total);

/* Reports progress to the callback of this thread. For long functions of the library and of
 * plugins. Returns TN_OK to continue, TN_ERR_CANCELLED if the caller must stop. */
TN_API tn_status tn_progress_report(const char *what, uint64_t done, uint64_t total);

/* ---- failures of callers and callbacks ------------------------------------------------------- */

/* For a function that was given NULL as an object, probably because an earlier call failed. Returns
 * the code of the first failure of this thread; if there is none, fails with TN_ERR_RUNTIME. `what`
 * is function and argument: "tn_average_new: module". */
TN_API tn_status tn_error_null(const char *what);
/* For a function that has called a callback, which returned `status`; `mark` is tn_error_mark()
 * before the call. Returns the status; if the callback recorded a failure, its code, also if the
 * callback has taken it. If the callback failed without a message, records one that begins with
 * `who`. After a failure tn_failed() is true. */
TN_API tn_status tn_error_returned(tn_status status, uint64_t mark, const char *who);

#ifdef TN_PROGRAM
/* Sets the progress callback of this thread. NULL removes it. [null-ok: callback, user] */
TN_PROGRAM void tn_set_progress(tn_progress callback, void *user);

/* Returns the version of the library, for example "0.1.0". [static] */
TN_PROGRAM const char *tn_version(void);

/* Deactivates all plugins, joins the thread pool and frees caches. Objects that are still alive
 * stay valid until they are dropped. Calling it is optional; it serves leak checkers and programs
 * that unload the library. [main] */
TN_PROGRAM void tn_shutdown(void);
#endif

TN_END_DECLS
#endif
