/* SPDX-License-Identifier: MIT
 *
 * Error records. Each thread keeps two: the first failure since the last clear, and the last
 * failure. They are allocated when the thread first needs them and freed when it ends. If that
 * allocation fails, a record from a static reserve is used, so that running out of memory can be
 * reported like any other error. Every failure of a thread has a serial number. A mark
 * (tn_error_mark) is the serial number of the failure before it, so marks nest without a stack. */
#include "core/base/internal.h"

#include <stdlib.h>

struct records {
    tn_error first, last;
    uint64_t first_serial, last_serial;
};

_Thread_local tn__error_state tn__error_here TN__TLS_NEAR = { "", 0, 0 };

static _Thread_local struct records *here TN__TLS_NEAR;

/* Records for threads that cannot allocate theirs. All threads beyond the first 15 of them share
 * the last element. */
static struct records reserve[16];
static _Atomic int reserve_used;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_made;

static void at_thread_end(void *records)
{
    here = NULL;
    free(records);
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, at_thread_end) == 0;
}

static struct records *make(void)
{
    /* Not from the program's allocator (tn_set_allocator), because failures of that allocator are
     * recorded here. */
    struct records *fresh = calloc(1, sizeof *fresh);
    pthread_once(&key_once, make_key);
    if (fresh && key_made && pthread_setspecific(key, fresh) == 0)
        return here = fresh;
    free(fresh);
    int index = atomic_fetch_add(&reserve_used, 1);
    int last = (int)tn__countof(reserve) - 1;
    return here = &reserve[index < last ? index : last];
}

static struct records *mine(void)
{
    return tn__likely(here != NULL) ? here : make();
}

/* Copies a message. One that is too long is cut after a whole UTF-8 character and ends with
 * "...". */
static void copy_message(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);

    if (length < size) {
        memcpy(to, from, length + 1);
        return;
    }
    length = size - 4;
    while (length > 0 && ((unsigned char)from[length] & 0xc0) == 0x80)
        length--;
    memcpy(to, from, length);
    memcpy(to + length, "...", 4);
}

static void format_message(char *to, size_t size, const char *format, va_list args)
{
    /* One byte more than a record holds, so that copy_message() sees that a message is too long. */
    char whole[sizeof mine()->last.message + 1];

    if (tn_snprintv(whole, sizeof whole, format, args) < 0)
        copy_message(to, size, format);
    else
        copy_message(to, size, whole);
}

static void record(const tn_error *error)
{
    struct records *r = mine();

    tn__error_here.serial++;
    r->last = *error;
    r->last_serial = tn__error_here.serial;
    if (r->first.code == TN_OK) {
        r->first = *error;
        r->first_serial = r->last_serial;
    }
}

void tn__error_put(const tn_error *error)
{
    tn_error copy = *error; /* `error` may point into the records of this thread */

    if (copy.code == TN_OK)
        copy.code = TN_ERR_ASSERT;
    record(&copy);
}

bool tn_failed(void)
{
    return mine()->first.code != TN_OK;
}

const char *tn_error_text(void)
{
    return mine()->first.message;
}

tn_status tn_error_code(void)
{
    return mine()->first.code;
}

const tn_error *tn_error_last(void)
{
    return &mine()->last;
}

static void forget(tn_error *error)
{
    error->code = TN_OK;
    error->native = 0;
    error->plugin[0] = 0;
    error->message[0] = 0;
}

tn_status tn_error_take(tn_error *out)
{
    tn_status code = mine()->first.code;

    if (out)
        *out = mine()->first;
    forget(&mine()->first);
    return code;
}

void tn_error_clear(void)
{
    forget(&mine()->first);
    forget(&mine()->last);
}

uint64_t tn_error_mark(void)
{
    return tn__error_here.serial;
}

void tn_error_restore(uint64_t mark)
{
    struct records *r = mine();

    if (r->first.code != TN_OK && r->first_serial > mark)
        forget(&r->first);
    if (r->last.code != TN_OK && r->last_serial > mark) {
        r->last = r->first;
        r->last_serial = r->first_serial;
    }
}

tn_status tn_fail_nativev(tn_status code, int32_t native, const char *format, va_list args)
{
    tn_error error;

    /* A failure with code TN_OK would look like success to the caller. */
    error.code = code == TN_OK ? TN_ERR_ASSERT : code;
    error.native = native;
    copy_message(error.plugin, sizeof error.plugin, tn__error_here.plugin);
    if (format)
        format_message(error.message, sizeof error.message, format, args);
    else
        copy_message(error.message, sizeof error.message,
                     "no message: the code that failed passed NULL as the format of the message");
    record(&error);
    return error.code;
}

tn_status tn_fail_native(tn_status code, int32_t native, const char *format, ...)
{
    va_list args;
    tn_status status;

    va_start(args, format);
    status = tn_fail_nativev(code, native, format, args);
    va_end(args);
    return status;
}

tn_status tn_fail_text(tn_status code, int32_t native, const char *text)
{
    if (!tn__given(text != NULL, "tn_fail_text: text"))
        return tn_error_last_code();
    return tn_fail_native(code, native, "%s", text);
}

tn_status tn_failv(tn_status code, const char *format, va_list args)
{
    return tn_fail_nativev(code, 0, format, args);
}

tn_status tn_fail(tn_status code, const char *format, ...)
{
    va_list args;
    tn_status status;

    va_start(args, format);
    status = tn_fail_nativev(code, 0, format, args);
    va_end(args);
    return status;
}

tn_status tn_error_prefixv(const char *format, va_list args)
{
    struct records *r = mine();
    char words[sizeof r->last.message], whole[2 * sizeof words];

    if (!tn__given(format != NULL, "tn_error_prefix: format"))
        return TN_ERR_VALUE;
    if (r->last.code == TN_OK)
        return TN_OK;
    format_message(words, sizeof words, format, args);
    tn_snprint(whole, sizeof whole, "%s%s", words, r->last.message);
    copy_message(r->last.message, sizeof r->last.message, whole);
    if (r->first.code != TN_OK && r->first_serial == r->last_serial)
        memcpy(r->first.message, r->last.message, sizeof r->first.message);
    return r->last.code;
}

void tn__error_cut(const char *prefix)
{
    struct records *r = mine();
    size_t length = strlen(prefix);

    if (r->last.code == TN_OK || strncmp(r->last.message, prefix, length) != 0)
        return;
    memmove(r->last.message, r->last.message + length, strlen(r->last.message + length) + 1);
    if (r->first.code != TN_OK && r->first_serial == r->last_serial)
        memcpy(r->first.message, r->last.message, sizeof r->first.message);
}

tn_status tn_error_prefix(const char *format, ...)
{
    va_list args;
    tn_status status;

    va_start(args, format);
    status = tn_error_prefixv(format, args);
    va_end(args);
    return status;
}

static tn_status without_message(tn_status status, const char *who)
{
    if (status < 0 || status >= TN_ERR_COUNT)
        return tn_fail(TN_ERR_RUNTIME, "%s: returned an unknown status, got %d; expected 0 to %d",
                       who, (int)status, TN_ERR_COUNT - 1);
    return tn_fail(status, "%s: failed with %s and recorded no message", who,
                   tn_status_name(status));
}

/* The code that ran may have taken the failure (tn_error_take), and failed with it all the same. */
static tn_status record_again(const struct records *r)
{
    if (r->first.code == TN_OK)
        tn__error_put(&r->last);
    return r->last.code;
}

tn_status tn__error_status_of(tn_status status, const char *who)
{
    const struct records *r;

    if (tn__likely(status == TN_OK))
        return TN_OK;
    r = mine();
    if (r->last.code == status && r->last_serial > tn__error_here.entered)
        return record_again(r);
    return without_message(status, who);
}

/* Returns the code of the last failure since `mark`, which it records again; TN_OK: there is none.
 */
static tn_status recorded_since(uint64_t mark)
{
    const struct records *r = mine();

    return r->last.code != TN_OK && r->last_serial > mark ? record_again(r) : TN_OK;
}

tn_status tn_error_returned(tn_status status, uint64_t mark, const char *who)
{
    if (!tn__given(who != NULL, "tn_error_returned: who"))
        return TN_ERR_VALUE;
    if (tn__likely(status == TN_OK))
        return TN_OK;
    tn_status recorded = recorded_since(mark);
    return recorded != TN_OK ? recorded : without_message(status, who);
}

tn_status tn__error_refuse_null(const char *what)
{
    return tn_fail(TN_ERR_VALUE, "%s: it is NULL; expected a pointer", what);
}

tn_status tn__error_reserved(const void *const *words, int64_t count, const char *what)
{
    for (int64_t i = 0; i < count; i++)
        if (words[i] != NULL)
            return tn_fail(TN_ERR_VERSION,
                           "%s: reserved[%lld]: reserved in Tenon %s, got %p; expected NULL", what,
                           (long long)i, tn_version(), words[i]);
    return TN_OK;
}

tn_status tn_error_null(const char *what)
{
    if (mine()->first.code != TN_OK)
        return mine()->first.code;
    return tn_fail(TN_ERR_RUNTIME, "%s: it is NULL, and no earlier failure of this thread says why",
                   what);
}

tn_status tn__error_null_of(const char *function, const char *names, ...)
{
    char what[160];
    va_list pointers;

    va_start(pointers, names);
    while (va_arg(pointers, const void *) != NULL && strchr(names, ',') != NULL)
        names = strchr(names, ',') + 2;
    va_end(pointers);
    tn_snprint(what, sizeof what, "%s: %s", function, names);
    if (strchr(names, ',') != NULL)
        *strchr(what, ',') = '\0';
    return tn_error_null(what);
}

tn_status tn__error_index(int64_t index, int64_t count, const char *format, ...)
{
    va_list args;

    if (count > 0)
        tn_fail(TN_ERR_INDEX, "out of range, got %lld; expected 0 to %lld", (long long)index,
                (long long)count - 1);
    else
        tn_fail(TN_ERR_INDEX, "out of range, got %lld; there is none", (long long)index);
    va_start(args, format);
    tn_error_prefixv(format, args);
    va_end(args);
    return TN_ERR_INDEX;
}

tn_status tn_error_prefix_text(const char *text)
{
    if (!tn__given(text != NULL, "tn_error_prefix_text: text"))
        return tn_error_last_code();
    return tn_error_prefix("%s", text);
}
