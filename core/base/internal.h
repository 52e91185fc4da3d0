/* SPDX-License-Identifier: MIT
 *
 * What the folders of the core share from core/base: texts, option tables, small containers,
 * environment. Nothing here is public. */
#ifndef TN_CORE_BASE_INTERNAL_H
#define TN_CORE_BASE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define TN_BUILD_CORE 1
#include <tenon/tenon.h>
#include <tenon/query.h>

/* For what a thread needs on every call: accessed without a function call. Such storage must be
 * small, or programs cannot dlopen the library: pointers and numbers only. */
#define TN__TLS_NEAR __attribute__((tls_model("initial-exec")))

/* ---- what nests in a thread ------------------------------------------------------------------ */

/* Kinds of pairs of begin and end that can nest TN__LEVELS deep. */
typedef enum tn__level_kind {
    TN__LEVEL_DTYPE,
    TN__LEVEL_GRAD,
    TN__LEVEL_INFERENCE,
    TN__LEVEL_ANOMALY,
    TN__LEVEL_KINDS
} tn__level_kind;
enum { TN__LEVELS = 1024 };

/* Keeps what was in use before the begin at this depth, below TN__LEVELS; false without memory. */
bool tn__level_put(tn__level_kind kind, int32_t depth, uint8_t before);
/* Reads it back; false where it was not kept: then nothing changes. */
bool tn__level_take(tn__level_kind kind, int32_t depth, uint8_t *before);

/* ---- texts that grow ------------------------------------------------------------------------- */

/* A text under construction. A failed allocation is remembered (`failed`) and reported once by
 * take. */
typedef struct tn__text {
    char *at;
    size_t length, capacity;
    bool failed;
} tn__text;

void tn__text_add(tn__text *text, const char *format, ...);
void tn__text_addv(tn__text *text, const char *format, va_list args);
void tn__text_put(tn__text *text, const char *bytes, size_t count);
void tn__text_free(tn__text *text);
/* The finished text, owned by the caller (tn_free); NULL and an error when memory ran out. */
char *tn__text_take(tn__text *text);
/* The usual end of a public function that writes text to a caller's buffer: copies at most size
 * bytes with NUL, frees, returns whole length or -1. */
int64_t tn__text_give(tn__text *text, char *out, size_t size);

/* Adds a string in quotes (`mark` is ' or ") with the escapes of the spec grammar. */
void tn__text_quote(tn__text *text, char mark, const char *string);
/* The same to a buffer, without a NUL; returns the whole length. */
int64_t tn__format_quoted(char *out, size_t size, char mark, const char *string);

/* ---- arenas ---------------------------------------------------------------------------------- */

/* Memory that is freed all at once. */
typedef struct tn__arena tn__arena;
tn__arena *tn__arena_new(void);                       /* NULL and an error */
void *tn__arena_alloc(tn__arena *arena, size_t size); /* aligned for any type; NULL and an error */
char *tn__arena_text(tn__arena *arena, const char *bytes, size_t length); /* with a NUL added */
void tn__arena_free(tn__arena *arena);                                    /* NULL is accepted */

/* ---- names ----------------------------------------------------------------------------------- */

/* The nearest of `count` names by edit distance, NULL when none is similar; for error messages. */
const char *tn__name_nearest(const char *name, const char *const *names, int64_t count);
/* Whether specs, environment variables and report lines can hold a name that a plugin or a program
 * registers: 1 to 63 bytes, letters, digits, `_` and the bytes in `extra`; it begins with a letter
 * or `_` and does not end with a byte of `extra`. TN_ERR_VALUE with the first bad byte; the format
 * says whose name it is: "layer: name". NULL is refused. */
enum { TN__NAME_LONGEST = 63 };
tn_status tn__name_check(const char *name, const char *extra, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a name in specs, where True, None, inf, ... are values. `extra` is ".". */
tn_status tn__name_check_type(const char *name, const char *what);
/* A text from elsewhere in quotes for a message: control characters escaped, cut after 40 bytes. */
const char *tn__name_shown(const char *name, char *out, size_t size);

/* Modules nest no deeper, and so do the specs that print them: walks and calls recurse. */
#define TN__NESTING 1000

/* ---- specs ----------------------------------------------------------------------------------- */

/* A parsed spec: a call Name(arguments), each argument a value. A nested call is a value of kind
 * TN_VALUE_SPEC whose text is kept (and was checked); children of repr text, "(fc1): Linear(...)",
 * are named arguments with a flag, "(0-2): 3 x ReLU()" is three of them. A bare name is a call
 * without arguments; a text that is another value has type "" and this one value. Freed whole. */
typedef struct tn__spec {
    const char *type; /* "Name" of Name(arguments) */
    tn_value *values;
    const char **names; /* NULL: positional */
    uint8_t *children;  /* 1: came as "(name): Type(...)" */
    int32_t *columns;   /* where each argument starts in the text: bytes, from 1 */
    int64_t count;
    const char *text; /* the source, a copy */
    struct tn__arena *arena;
} tn__spec;

/* Parses the whole text (its length, depth and number of values are bounded); NULL and
 * TN_ERR_FORMAT with the column. */
tn__spec *tn__spec_parse(const char *text);
void tn__spec_free(tn__spec *spec); /* NULL is accepted */
/* One value, into an arena: 1e-3, (1, 2), 'text', Linear(4, 3). A bare word is a string. */
tn_status tn__spec_parse_value(const char *text, tn__arena *arena, tn_value *out);
/* The text of a spec (cut where it is long) and a place in it, as messages begin: `Linear(x=1):
 * column 8: `. */
void tn__spec_place(const char *text, int32_t column, char *out, size_t size);
/* tn_snprintv into fresh memory (tn_free). */
char *tn__text_from_format(const char *format, va_list args);

/* A copy of a value that owns what is in it: strings and lists are in *block (NULL when there
 * are none), tensors and modules are kept. */
tn_status tn__value_copy(const tn_value *from, tn_value *to, void **block);
void tn__value_free(const tn_value *value, void *block);
/* "int", "list" ..., for error texts. */
const char *tn__value_kind_name(uint32_t kind);
/* Whether a value of kind COMPLEX has its two parts. */
bool tn__value_complex_ok(const tn_value *value);

/* Fills `data` (zeroed by the caller) from defaults and then from arguments, matching positional
 * and named ones against the table. `what` ("layer Linear") is for error texts; `spec_text` and
 * `columns` may be NULL. Strings, rows and lists are copied into a block that belongs to data:
 * *keep receives it, to be freed by tn__options_release (NULL is accepted). On failure the members
 * of the table are zero again and *keep is NULL. */
typedef struct tn__keep tn__keep;
tn_status tn__options_fill(const tn_option *table, void *data, const char *what,
                           const char *spec_text, const tn_value *values, const char *const *names,
                           const int32_t *columns, int64_t count, tn__keep **keep);
/* Whether a table that a plugin declared can be used: its rows are inside [first, data_size) of
 * the struct, aligned, do not overlap, have names and kinds that are known, each name once, and
 * defaults that parse. `what` ("layer Linear") begins the message. */
tn_status tn__options_check(const tn_option *table, size_t first, size_t data_size,
                            const char *what);
/* Another owner of what option structs point to, which does not change. NULL is accepted. */
tn__keep *tn__options_keep(tn__keep *keep);
void tn__options_release(tn__keep *keep);
/* A copy of an option struct in space of the caller's, with the rows and strings that it points to;
 * the bytes that this takes. */
size_t tn__options_copy_bytes(const tn_option *table, const void *options, size_t data_size);
const void *tn__options_copy(const tn_option *table, const void *options, size_t data_size,
                             void *space);
/* Appends "in_features=4, out_features=3, bias=True": complete: every option, so that the text
 * builds the same again; not complete: repr's way (flags), without the further arguments that are
 * specs or modules. */
void tn__options_print(const tn_option *table, const void *data, bool complete, tn__text *text);
/* One value in the grammar of specs. */
void tn__value_print(const tn_value *value, tn__text *text);
/* The row of a name, NULL if there is none. */
const tn_option *tn__options_find(const tn_option *table, const char *name);
/* The row that takes all further arguments, NULL if there is none. */
const tn_option *tn__options_many(const tn_option *table);

/* ---- environment ----------------------------------------------------------------------------- */

/* Rows beyond the core's own, from plugins' options; all live until the end of the process. `value`
 * NULL: unset. */
tn_status tn__env_add(const char *name, const char *help);
/* What the program chose instead of the variable (tn_set_num_threads ...), shown with origin
 * "program"; NULL: back to the environment. */
tn_status tn__env_program(const char *name, const char *value);
/* Forgets values and added rows: for tests that change the environment. */
void tn__env_forget(void);
/* tn_env_get that tells "not set" (NULL, TN_OK) from "no memory to read it", which passes: what was
 * read once can always be read again. */
tn_status tn__env_read(const char *name, const char **value);
/* Whether there is a row of that name. */
bool tn__env_known(const char *name, size_t length);
bool tn__env_trusted(void); /* false in set-uid programs: the environment is ignored */

/* ---- errors ---------------------------------------------------------------------------------- */

typedef struct tn__error_state {
    const char *plugin; /* whose code runs, "" for the core */
    uint64_t serial;    /* of the last failure of this thread */
    uint64_t entered;   /* serial when a plugin was entered from the core */
} tn__error_state;
extern _Thread_local tn__error_state tn__error_here TN__TLS_NEAR;

/* Sets the plugin that error records and log lines of this thread name ("": the core). Returns the
 * previous one, which the caller restores. */
static inline const char *tn__error_plugin(const char *id)
{
    const char *before = tn__error_here.plugin;

    if (before[0] == '\0')
        tn__error_here.entered = tn__error_here.serial;
    tn__error_here.plugin = id;
    return before;
}
/* Puts back what was there before code of the program ran: no entry into a plugin, so that a
 * failure in it counts for tn__error_status_of. */
static inline void tn__error_plugin_back(const char *id)
{
    tn__error_here.plugin = id;
}
/* Whether something failed in this thread since it entered the plugin whose code runs. */
static inline bool tn__error_failed_inside(void)
{
    return tn__error_here.serial > tn__error_here.entered;
}
/* The plugin whose code runs, "" for the core. */
static inline const char *tn__error_plugin_id(void)
{
    return tn__error_here.plugin;
}
/* tn_log for what the library itself has to say, whichever plugin's code it was called from. */
void tn__log(int level, const char *format, ...);
/* Takes `prefix` off the words of the last failure where they begin with it. */
void tn__error_cut(const char *prefix);
/* Records a failure as it is, its plugin and native code with it: one that came from another
 * thread. */
void tn__error_put(const tn_error *error);
/* What a function does that got NULL for an object: the code of the first held error, which says
 * why; TN_ERR_RUNTIME with a record when none is held. */
tn_status tn__error_null_input(const char *what);
/* A failure unless the `count` reserved pointers of a struct from outside the library are NULL
 * (rule 23); `what` names the struct. */
tn_status tn__error_reserved(const void *const *words, int64_t count, const char *what);
/* Refuses a pointer that its header does not allow to be NULL: TN_ERR_VALUE "tn_grad: inputs: it is
 * NULL ...". `what` is function and argument. */
tn_status tn__error_refuse_null(const char *what);
static inline bool tn__given(bool given, const char *what)
{
    return __builtin_expect(given, 1) || tn__error_refuse_null(what) == TN_OK;
}
/* The same for an object (tn__error_null_input). */
static inline bool tn__not_null(const void *object, const char *what)
{
    return __builtin_expect(object != NULL, 1) || tn__error_null_input(what) == TN_OK;
}
/* Wraps a status of plugin code: when it failed but recorded nothing, records "X failed without
 * words". */
tn_status tn__error_status_of(tn_status status, const char *who);
/* How many failures this thread has recorded so far (never goes back): whether something failed
 * between two points, whatever was held before. */
static inline uint64_t tn__error_count(void)
{
    return tn__error_here.serial;
}

/* ---- handles of hooks ------------------------------------------------------------------------ */

/* A registration that tn_hook_remove finds by its number; the first member of what a folder
 * keeps for a hook. */
typedef struct tn__hook_handle {
    uint64_t id;
    void (*unlink)(struct tn__hook_handle *handle); /* under the lock: out of its owner's list */
    void (*drop)(struct tn__hook_handle *handle);   /* after it: gives up the list's reference */
} tn__hook_handle;
/* Guards the table and every list of hooks. No code of others runs under it. */
void tn__hook_handles_lock(void);
void tn__hook_handles_unlock(void);
/* Under the lock: gives it the next number and puts it into the table; takes it out. */
tn_status tn__hook_handle_add(tn__hook_handle *handle);
void tn__hook_handle_forget(tn__hook_handle *handle);
/* Under the lock: a number of the same row for what cannot be removed. */
uint64_t tn__hook_handle_number(void);
int64_t tn__hook_handle_count(void); /* hooks that are registered */

/* ---- memory ---------------------------------------------------------------------------------- */

void *tn__memory_alloc_aligned(size_t size, size_t alignment); /* NULL and an error */
void tn__memory_free_aligned(void *block, size_t size, size_t alignment);
/* Fault injection, for tests that link the core: the n-th allocation from now fails (0: none);
 * returns how many were made since the last call. */
uint64_t tn__memory_fail(uint64_t nth);
/* Whether that is going on: what is kept to be used again is then asked for anew, so that it can
 * fail. */
extern _Atomic bool tn__memory_watched;
/* How many allocations of host memory failed in this process so far: what fails meanwhile may work
 * when it is tried again, unlike a device that says that its own memory is used up. */
uint64_t tn__memory_failures(void);
/* tn_malloc and tn_realloc without an error record, for callers that report it themselves. */
void *tn__memory_malloc_quiet(size_t size);
void *tn__memory_realloc_quiet(void *block, size_t size);

/* Overflow-checked arithmetic: true when it overflowed. */
#define tn__mul_overflow(a, b, out) __builtin_mul_overflow(a, b, out)
#define tn__add_overflow(a, b, out) __builtin_add_overflow(a, b, out)

#define tn__countof(array) ((int64_t)(sizeof(array) / sizeof((array)[0])))
/* For what every call of an operator passes through: calls between such small steps cost as much
 * as the steps. */
#define TN__INLINE inline __attribute__((always_inline))
#define tn__likely(x) __builtin_expect(!!(x), 1)
#define tn__unlikely(x) __builtin_expect(!!(x), 0)

/* ---- calls to the folders above -------------------------------------------------------------- */

/* Values hold tensors and modules, and a piece of a parallel loop has a scope. The folders above
 * provide these; core/library/upward_calls.c fills the table. */
typedef struct tn__base_calls {
    tn_tensor *(*tensor_keep)(tn_tensor *tensor);
    void (*tensor_drop)(tn_tensor *tensor);
    tn_module *(*module_keep)(tn_module *module);
    void (*module_drop)(tn_module *module);
    uint64_t (*scope_begin)(void);
    void (*scope_end)(uint64_t scope);
} tn__base_calls;
extern TN_HIDDEN const tn__base_calls tn__base_up;

/* ---- shutdown and fork ----------------------------------------------------------------------- */

/* Whether this process is a child of the one that first used the library through fork. */
bool tn__fork_is_child(void);
void tn__pool_shutdown(void);
void tn__log_shutdown(void);
/* Around fork, on the forking thread: locks are held across it, so that the child finds them free.
 */
void tn__log_fork(int stage); /* -1 before, 0 after in the parent, 1 after in the child */
void tn__env_fork(int stage);
void tn__pool_fork(int stage);

#endif
