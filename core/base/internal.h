/* SPDX-License-Identifier: MIT
 *
 * The internal interface of core/base for all folders of the core: texts, option tables, small
 * containers, environment. Nothing here is public. */
#ifndef TN_CORE_BASE_INTERNAL_H
#define TN_CORE_BASE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define TN_BUILD_CORE 1
#include <tenon/value.h>

/* For thread-local variables that are needed on every call: access without a function call. Such
 * variables must be small (pointers and numbers), because the loader has little space for them when
 * a program opens the library with dlopen. */
#define TN__TLS_NEAR __attribute__((tls_model("initial-exec")))

/* ---- nested modes of a thread ---------------------------------------------------------------- */

/* The modes of a thread that are set between a begin and an end. The pairs can nest TN__MODE_DEPTH
 * deep. */
typedef enum tn__mode_kind {
    TN__MODE_DTYPE,
    TN__MODE_GRAD,
    TN__MODE_INFERENCE,
    TN__MODE_ANOMALY,
    TN__MODE_KINDS
} tn__mode_kind;
enum { TN__MODE_DEPTH = 1024 };

/* Stores the mode that was in use before the begin at this depth, which must be less than
 * TN__MODE_DEPTH. Returns false if memory runs out. */
bool tn__mode_stack_push(tn__mode_kind kind, int32_t depth, uint8_t before);
/* Reads the mode that was stored for this depth. Returns false and changes nothing if none was
 * stored. */
bool tn__mode_stack_pop(tn__mode_kind kind, int32_t depth, uint8_t *before);

/* ---- texts that grow ------------------------------------------------------------------------- */

/* A text under construction. If an allocation fails, the functions that append set `failed` and
 * report nothing; tn__text_take() and tn__text_give() report it. */
typedef struct tn__text {
    char *at;
    size_t length, capacity;
    bool failed;
} tn__text;

void tn__text_add(tn__text *text, const char *format, ...);
void tn__text_addv(tn__text *text, const char *format, va_list args);
void tn__text_put(tn__text *text, const char *bytes, size_t count);
void tn__text_free(tn__text *text);
/* Returns the finished text, which the caller frees with tn_free. Returns NULL and sets the error
 * if memory ran out. */
char *tn__text_take(tn__text *text);
/* For public functions that write text to a buffer of the caller: copies at most `size` bytes
 * including a NUL, frees the text and returns its whole length. Returns -1 and sets the error if
 * memory ran out. */
int64_t tn__text_give(tn__text *text, char *out, size_t size);

/* Appends a string in quotes (`mark` is ' or "), with the escapes of the spec grammar. */
void tn__text_quote(tn__text *text, char mark, const char *string);
/* Like tn__text_quote(), but writes at most `size` bytes to a buffer, without a NUL; returns the
 * length of the whole quoted string. */
int64_t tn__print_quoted(char *out, size_t size, char mark, const char *string);

/* ---- arenas ---------------------------------------------------------------------------------- */

/* Many small allocations that are freed together by one call. */
typedef struct tn__arena tn__arena;
/* Returns NULL and sets the error if memory runs out, like the next two functions. */
tn__arena *tn__arena_new(void);
void *tn__arena_alloc(tn__arena *arena, size_t size); /* aligned for any type */
/* Returns a copy with a NUL. */
static inline char *tn__arena_text(tn__arena *arena, const char *bytes, size_t length)
{
    char *text = tn__arena_alloc(arena, length + 1);

    if (text == NULL)
        return NULL;
    memcpy(text, bytes, length);
    text[length] = 0;
    return text;
}
void tn__arena_free(tn__arena *arena); /* NULL is accepted */

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns the nearest of `count` names by edit distance, NULL if none is similar: for "did you
 * mean" in error messages. */
const char *tn__name_nearest(const char *name, const char *const *names, int64_t count);
/* Checks a name that a plugin or a program registers, so that specs, environment variables and
 * lines of reports can contain it: 1 to 63 bytes; letters, digits, `_` and the bytes in `extra`; it
 * begins with a letter or `_` and does not end with a byte of `extra`. If the name is NULL or
 * wrong, fails with TN_ERR_VALUE; the message has the first wrong byte. It begins with the text of
 * `format`, which says whose name it is ("layer: name"). */
enum { TN__NAME_LONGEST = 63 };
tn_status tn__name_check(const char *name, const char *extra, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Like tn__name_check() with "." as `extra`, for names of types in specs: refuses True, None, inf
 * and so on, which are values there. */
tn_status tn__name_check_type(const char *name, const char *what);
/* Writes a text from outside the library in quotes to `out`, for messages: control characters are
 * escaped, the text is cut after 40 bytes. Returns `out`. */
const char *tn__name_shown(const char *name, char *out, size_t size);

/* The largest depth of nested modules, and of the specs that describe them: functions that walk or
 * call modules are recursive. */
#define TN__NESTING 1000

/* ---- specs ----------------------------------------------------------------------------------- */

/* A parsed spec: a call Name(arguments), each argument a value. A nested call is a value of kind
 * TN_VALUE_SPEC that holds its text, which has been checked. A child of a printed module, "(fc1):
 * Linear(...)", is a named argument with a flag; "(0-2): 3 x ReLU()" is three of them. A bare name
 * is a call without arguments. Any other value is a spec with the type "" and that value as its
 * only argument. tn__spec_free() frees the spec with everything in it. */
typedef struct tn__spec {
    const char *type; /* "Name" of Name(arguments) */
    tn_value *values;
    const char **names; /* NULL: positional */
    uint8_t *children;  /* 1: was written as "(name): Type(...)" */
    int32_t *columns;   /* the column of each argument in the text: bytes, from 1 */
    int64_t count;
    const char *text; /* a copy of the text that was parsed */
    struct tn__arena *arena;
} tn__spec;

/* Parses a whole text. Length, depth and number of values are limited. Returns NULL and fails with
 * TN_ERR_FORMAT and the column if the text is not a spec. */
tn__spec *tn__spec_parse(const char *text);
/* Like tn__spec_parse, for the printed form of a module: arguments on lines of their own need no
 * comma between them. tn__spec_own_line() returns whether the argument at a column of the text
 * follows another one in this way. */
tn__spec *tn__spec_parse_printed(const char *text);
bool tn__spec_own_line(const char *text, int32_t column);
void tn__spec_free(tn__spec *spec); /* NULL is accepted */
/* Parses a text that is one value, such as 1e-3, (1, 2), 'text' or Linear(4, 3), into memory of the
 * arena. A bare word is a string. */
tn_status tn__spec_parse_value(const char *text, tn__arena *arena, tn_value *out);
/* Writes the beginning of a message to `out`: the text of a spec, cut if it is long, and a position
 * in it: `Linear(x=1): column 8: `. */
void tn__spec_place(const char *text, int32_t column, char *out, size_t size);
/* Formats as tn_snprintv() does. Returns the text, which the caller frees with tn_free; NULL and
 * sets the error on failure. */
char *tn__text_from_format(const char *format, va_list args);

/* Makes a deep copy of a value. Its strings and lists are in *block (NULL if there are none); it
 * holds references to its tensors and modules. */
tn_status tn__value_copy(const tn_value *from, tn_value *to, void **block);
void tn__value_free(const tn_value *value, void *block);
/* Removes the values of a pack from the index `count` on. */
void tn__pack_shorten(tn_pack *pack, int64_t count);
/* Returns the name of a kind of values for messages: "int", "list" ... */
const char *tn__value_kind_name(uint32_t kind);
/* Fails if a value of kind TN_VALUE_DICT has a key without a value, or a wrong kind of key. */
tn_status tn__value_check_dict(const tn_value *value);
/* Returns whether a value of kind TN_VALUE_COMPLEX has its two parts. */
static inline bool tn__value_complex_ok(const tn_value *value)
{
    return value->count == 2 && value->as.list && value->as.list[0].kind == TN_VALUE_FLOAT &&
           value->as.list[1].kind == TN_VALUE_FLOAT;
}

/* Fills an option struct: `data`, which the caller has zeroed, gets the arguments, and the defaults
 * of options without an argument. Positional and named arguments are matched with the rows of the
 * table. `what` ("layer Linear") is for messages; `spec_text` and `columns` may be NULL. Strings,
 * arrays and lists are copied into a block that belongs to `data`; *keep receives the block, to be
 * freed by tn__options_release(). On failure all options in `data` are zero again and *keep is
 * NULL. */
typedef struct tn__option_block tn__option_block;
tn_status tn__options_fill(const tn_option *table, void *data, const char *what,
                           const char *spec_text, const tn_value *values, const char *const *names,
                           const int32_t *columns, int64_t count, tn__option_block **block);
/* Checks the option table of a plugin. Its rows must be inside the bytes [first, data_size) of the
 * struct, be aligned, not overlap, and have known kinds, unique names and defaults that parse.
 * `what` ("layer Linear") begins the message. */
tn_status tn__options_check(const tn_option *table, size_t first, size_t data_size,
                            const char *what);
/* Returns the size of an option in its struct. */
size_t tn__option_size(const tn_option *row);
/* Returns whether two option structs have different values of an option. */
bool tn__option_differs(const tn_option *row, const void *options, const void *others);
/* Adds an owner to the block of an option struct and returns it. Owners only read it. `keep` may be
 * NULL. */
tn__option_block *tn__options_share(tn__option_block *block);
void tn__options_release(tn__option_block *block);
/* Copies an option struct, together with the arrays and strings that it points to, to memory of the
 * caller. Returns the size of the copy; `space` NULL: only returns it. */
size_t tn__options_copy(const tn_option *table, const void *options, size_t data_size, void *space);
/* Appends options as arguments, "in_features=4, out_features=3, bias=True". If `complete`: all
 * options, so that the text builds an equal struct again. If not: the options that PyTorch's repr
 * prints (by their flags), without further arguments that are specs or modules. */
void tn__options_print(const tn_option *table, const void *data, bool complete, tn__text *text);
/* Adds the value of one option to a pack, under the option's name: a row as a tuple, a dtype as its
 * name. */
tn_status tn__options_get(const tn_option *row, const void *data, tn_pack *out);
/* Appends one value in the grammar of specs. */
void tn__value_print(const tn_value *value, tn__text *text);
/* Returns the row with that name, NULL if there is none. */
const tn_option *tn__options_find(const tn_option *table, const char *name);
/* Returns the row that takes all further arguments (TN_OPTION_MANY), NULL if there is none. */
const tn_option *tn__options_many(const tn_option *table);

/* ---- environment ----------------------------------------------------------------------------- */

/* Adds a row for an option of a plugin to the table of environment variables. The row stays until
 * the process ends. Does nothing if the table has that name. */
tn_status tn__env_add(const char *name, const char *help);
/* Sets the value that the program has chosen (by tn_set_num_threads etc.), which overrides the
 * variable and is shown with the origin "program". NULL: the variable applies again. */
tn_status tn__env_program(const char *name, const char *value);
/* Forgets all values and added rows: for tests that change the environment. */
void tn__env_forget(void);
/* Like tn_env_get(), but distinguishes a variable that is not set (*value is NULL, returns TN_OK)
 * from one that cannot be read because memory runs out (returns TN_ERR_MEMORY). A variable that was
 * read once can always be read again. */
tn_status tn__env_read(const char *name, const char **value);
/* Returns whether the table of environment variables has a row with that name. */
bool tn__env_known(const char *name, size_t length);
bool tn__env_trusted(void); /* false in set-uid programs: the environment is ignored */

/* ---- errors ---------------------------------------------------------------------------------- */

typedef struct tn__error_state {
    const char *plugin; /* id of the plugin whose code runs, "" for the core */
    uint64_t serial;    /* serial number of this thread's last failure */
    uint64_t entered;   /* value of `serial` when the core last called a plugin */
} tn__error_state;
extern _Thread_local tn__error_state tn__error_here TN__TLS_NEAR;

/* Sets the plugin that error records and log lines of this thread name ("": the core), when code of
 * that plugin begins to run. Returns the previous plugin, which the caller must restore. */
static inline const char *tn__error_plugin(const char *id)
{
    const char *before = tn__error_here.plugin;

    if (before[0] == '\0')
        tn__error_here.entered = tn__error_here.serial;
    tn__error_here.plugin = id;
    return before;
}
/* Restores the plugin after the core or a callback of the program ran on its behalf. `entered` does
 * not change, so for tn__error_status_of() a failure in that code counts as a failure inside the
 * plugin. */
static inline void tn__error_plugin_back(const char *id)
{
    tn__error_here.plugin = id;
}
/* Returns whether a failure was recorded in this thread since the core called the plugin whose code
 * runs. */
static inline bool tn__error_failed_inside(void)
{
    return tn__error_here.serial > tn__error_here.entered;
}
/* Returns the id of the plugin whose code runs, "" for the core. */
static inline const char *tn__error_plugin_id(void)
{
    return tn__error_here.plugin;
}
/* Like tn_log(), for messages of the library itself: the line names no plugin, even if code of a
 * plugin made the call. */
void tn__log(int level, const char *format, ...);
/* Removes `prefix` from the message of the last failure if the message begins with it. */
void tn__error_cut(const char *prefix);
/* Records a failure, with its plugin and native code unchanged: for failures from another
 * thread. */
void tn__error_put(const tn_error *error);
/* Like tn_error_null(), for the first pointer that is NULL. `names` are the arguments of
 * `function` in the order of the pointers, as in "module, name". */
tn_status tn__error_null_of(const char *function, const char *names, ...);
/* Fails with TN_ERR_INDEX: "WHAT: out of range, got INDEX; expected 0 to COUNT - 1". The format and
 * its arguments make "WHAT: ". */
tn_status tn__error_index(int64_t index, int64_t count, const char *format, ...);
/* Fails with TN_ERR_VERSION unless all `count` reserved pointers of a struct from outside the
 * library are NULL (docs/abi.md, rule 23). `what` names the struct. */
tn_status tn__error_reserved(const void *const *words, int64_t count, const char *what);
/* Fails with TN_ERR_VALUE because an argument that must not be NULL is NULL: "tn_grad: inputs: it
 * is NULL ...". `what` is function and argument. */
tn_status tn__error_refuse_null(const char *what);
static inline bool tn__given(bool given, const char *what)
{
    return __builtin_expect(given, 1) || tn__error_refuse_null(what) == TN_OK;
}
/* Like tn__given(), for objects: fails with tn_error_null(). */
static inline bool tn__not_null(const void *object, const char *what)
{
    return __builtin_expect(object != NULL, 1) || tn_error_null(what) == TN_OK;
}
/* Checks a status that code of a plugin returned, and returns it. If it is an error but the plugin
 * recorded none, records "WHO: failed with CODE and recorded no message". */
tn_status tn__error_status_of(tn_status status, const char *who);
/* Like tn_error_returned(), for a callback that returns an object, and returned NULL. */
static inline tn_status tn__error_returned_null(uint64_t mark, const char *who)
{
    return tn_error_mark() == mark
               ? tn_fail(TN_ERR_RUNTIME, "%s: returned NULL and recorded no message", who)
               : tn_error_returned(TN_ERR_RUNTIME, mark, who);
}
/* Returns how many failures this thread has recorded so far. The number never decreases, so two
 * calls show whether something failed between them. */
static inline uint64_t tn__error_count(void)
{
    return tn__error_here.serial;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Returns NULL and sets the error if memory runs out. */
void *tn__memory_alloc_aligned(size_t size, size_t alignment);
void tn__memory_free_aligned(void *block, size_t size, size_t alignment);
/* Fault injection for tests that link the core: makes the nth allocation from now fail (0: none).
 * Returns the number of allocations since the previous call. */
uint64_t tn__memory_fail(uint64_t nth);
/* Whether fault injection is in use. If it is, caches of memory blocks are not used, so that each
 * of their allocations can fail, too. */
extern _Atomic bool tn__memory_watched;
/* Returns how many allocations of host memory have failed in this process so far. A failed call
 * during which the number has grown may succeed when it is tried again, unlike a call that failed
 * because a device has no memory left. */
uint64_t tn__memory_failures(void);
/* Like tn_malloc() and tn_realloc(), but record no error: for callers that report the failure. */
void *tn__memory_malloc_quiet(size_t size);
void *tn__memory_realloc_quiet(void *block, size_t size);

/* Arithmetic with overflow check: true if the result overflowed. */
#define tn__mul_overflow(a, b, out) __builtin_mul_overflow(a, b, out)
#define tn__add_overflow(a, b, out) __builtin_add_overflow(a, b, out)
#define tn__sub_overflow(a, b, out) __builtin_sub_overflow(a, b, out)

#define tn__countof(array) ((int64_t)(sizeof(array) / sizeof((array)[0])))
/* For small functions on the path of every operator call, where a function call would cost as much
 * as the function itself. */
#define TN__INLINE inline __attribute__((always_inline))
#define tn__likely(x) __builtin_expect(!!(x), 1)
#define tn__unlikely(x) __builtin_expect(!!(x), 0)

/* ---- calls to the folders above -------------------------------------------------------------- */

/* Functions of folders above core/base that core/base needs, because values hold tensors and
 * modules. lib/library/upward_calls.c fills the table. */
typedef struct tn__base_calls {
    tn_tensor *(*tensor_keep)(tn_tensor *tensor);
    void (*tensor_drop)(tn_tensor *tensor);
    tn_module *(*module_keep)(tn_module *module);
    void (*module_drop)(tn_module *module);
} tn__base_calls;
extern TN_HIDDEN const tn__base_calls tn__base_up;

/* ---- shutdown and fork ----------------------------------------------------------------------- */

/* Returns whether this process was forked from the process that first called this function. */
bool tn__fork_is_child(void);
void tn__log_shutdown(void);
/* Fork handlers, called on the forking thread: the locks are held during the fork, so that the
 * child finds them unlocked. */
void tn__log_fork(int stage); /* -1 before, 0 after in the parent, 1 after in the child */
void tn__env_fork(int stage);

#endif
