/* SPDX-License-Identifier: MIT
 *
 * The level contract of tenon check: the requirements of docs/plugins/writing.md and
 * docs/plugins/backends.md for every plugin, and of a device type, before anything is computed. */
#include "conform.h"

#include <elf.h>
#include <dirent.h>
#include <fenv.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUERY "tn_plugin_query"

/* ---- every plugin ---- */

static bool report_of(const char *id, tn_plugin_report *report)
{
    int64_t count = tn_plugin_count();

    for (int64_t i = 0; i < count; i++)
        if (tn_plugin_report_at(i, report) == TN_OK && strcmp(report->id, id) == 0)
            return true;
    return false;
}

static void is_complete(conform *c)
{
    tn_plugin_report report;

    if (!report_of(c->plugin->id, &report)) {
        conform_fail(c, "load report: no line for %s", c->plugin->id);
        return;
    }
    if (report.refused > 0)
        conform_fail(c, "contributions: %lld refused: %s", (long long)report.refused,
                     report.reason);
    if (report.contributions == 0)
        conform_fail(c, "contributions: none; expected at least one");
    if (report.version[0] == '\0')
        conform_fail(c, "version: missing");
    c->checks += 3;
}

/* The contributions of a plugin that no registry lists by name are kernels. One of them has to run
 * on some device. */
static void has_kernels_that_run(conform *c)
{
    tn_plugin_report report;
    int64_t kernels, ops = tn_op_count();

    c->checks++;
    if (!report_of(c->plugin->id, &report)) {
        conform_fail(c, "load report: no line for %s", c->plugin->id);
        return;
    }
    kernels = report.contributions;
    for (uint32_t kind = TN_KIND_tn_backend_def; kind < TN_KIND_END; kind++)
        for (int64_t i = 0; i < tn_registry_count(kind); i++) {
            const char *owner = tn_registry_plugin(kind, tn_registry_name(kind, i));

            kernels -= owner != NULL && strcmp(owner, c->plugin->id) == 0;
        }
    tn_error_clear();
    if (kernels <= 0) {
        conform_skip(c, "it provides no kernels");
        return;
    }
    for (int64_t i = 0; i < ops; i++)
        if (conform_runs(c->plugin, tn_op_name_at(i)))
            return;
    conform_fail(c,
                 "kernels: none of %lld runs an operator on %s; --device names the device that "
                 "they are for",
                 (long long)kernels, tn_device_name(c->plugin->device));
}

static void activates(conform *c)
{
    for (int i = 0; i < 2; i++, c->checks++)
        if (tn_plugin_activate(c->plugin->id) != TN_OK) {
            if (tn_error_code() == TN_ERR_UNAVAILABLE)
                conform_skip(c, "%s", tn_error_text());
            else
                conform_fail(c, "activation %d: %s", i + 1, tn_error_text());
            tn_error_clear();
            return;
        }
}

static int threads_now(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;

    if (tasks == NULL)
        return -1;
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* The plugin has been loaded, not activated, when a test begins. */
static void starts_no_thread(conform *c)
{
    int count = threads_now();

    c->checks++;
    if (count < 0)
        conform_skip(c, "/proc/self/task is not available to count threads");
    else if (count > 1)
        conform_fail(c, "loading: started %d threads; they may come with the first kernel",
                     count - 1);
}

static const int signals[] = { SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGABRT,
                               SIGINT,  SIGTERM, SIGCHLD, SIGALRM, SIGUSR1 };
enum { SIGNALS = sizeof signals / sizeof signals[0] };
static struct sigaction at_the_start[SIGNALS]; /* who starts us may have some ignored */

void conform_remember_process(void)
{
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], NULL, &at_the_start[i]);
}

static void leaves_the_process_alone(conform *c)
{
    struct sigaction action;

    if (tn_plugin_activate(c->plugin->id) != TN_OK) { /* refused by TENON_CHECK=1 */
        if (strstr(tn_error_text(), "checked boundary") != NULL)
            conform_fail(c, "%s", tn_error_text());
        tn_error_clear();
    }
    for (int i = 0; i < SIGNALS; i++, c->checks++)
        if (sigaction(signals[i], NULL, &action) == 0 &&
            action.sa_handler != at_the_start[i].sa_handler)
            conform_fail(c, "signal %d (%s): handler installed; expected none", signals[i],
                         strsignal(signals[i]));
    if (fegetround() != FE_TONEAREST)
        conform_fail(c, "rounding mode: changed");
    c->checks++;
#if defined(__x86_64__)
    if (__builtin_ia32_stmxcsr() & 0x8040)
        conform_fail(c, "flush-to-zero: set for the whole process");
    c->checks++;
#endif
}

/* Symbols that an ELF file exports, except the query. */
static void exports_one_name(conform *c)
{
    int file = open(c->plugin->options->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about;
    const char *base = MAP_FAILED;

    if (file >= 0 && fstat(file, &about) == 0 && about.st_size >= (off_t)sizeof(Elf64_Ehdr))
        base = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (file >= 0)
        close(file);
    if (base == MAP_FAILED) {
        conform_fail(c, "file: cannot be read");
        return;
    }
    {
        const Elf64_Ehdr *head = (const void *)base;
        size_t size = (size_t)about.st_size;
        char words[200] = "";

        if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64 ||
            head->e_shoff > size || (size - head->e_shoff) / sizeof(Elf64_Shdr) < head->e_shnum) {
            munmap((void *)(uintptr_t)base, size);
            conform_skip(c, "not an ELF file of 64 bits");
            return;
        }
        for (int i = 0; i < head->e_shnum; i++) {
            const Elf64_Shdr *own = (const Elf64_Shdr *)(const void *)(base + head->e_shoff) + i;
            const Elf64_Shdr *text = (const Elf64_Shdr *)(const void *)(base + head->e_shoff) +
                                     (own->sh_link < head->e_shnum ? own->sh_link : 0);

            if (own->sh_type != SHT_DYNSYM || own->sh_offset + own->sh_size > size ||
                text->sh_offset + text->sh_size > size)
                continue;
            for (size_t k = 0; k < own->sh_size / sizeof(Elf64_Sym); k++) {
                const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(base + own->sh_offset) +
                                          k;
                const char *name = base + text->sh_offset + symbol->st_name;

                if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol->st_info) == STB_LOCAL ||
                    symbol->st_name >= text->sh_size)
                    continue;
                c->checks++;
                if (strcmp(name, QUERY) != 0 && strcmp(name, "_init") != 0 &&
                    strcmp(name, "_fini") != 0 && strncmp(name, "__", 2) != 0 && words[0] == '\0')
                    snprintf(words, sizeof words, "%.120s", name);
            }
        }
        munmap((void *)(uintptr_t)base, size);
        if (words[0] != '\0')
            conform_fail(c,
                         "exported names: too many, got %s; " QUERY
                         " is the only name that may be visible (-fvisibility=hidden)",
                         words);
    }
}

/* ---- host memory that runs out ---- */

static tn_tensor *numbers(const tn_device *device, int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    tn_tensor *to = tn_tensor_empty(TN_SHAPE(count), TN_F32, device);

    for (int64_t i = 0; values != NULL && i < count; i++)
        values[i] = (float)(i % 1000) * 0.5F;
    if (values == NULL || to == NULL ||
        tn_tensor_copy_in(to, values, (size_t)count * sizeof *values) != TN_OK)
        to = NULL;
    free(values);
    return to;
}

static bool doubled(tn_tensor *y, int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    bool same = values != NULL &&
                tn_tensor_copy_out(y, values, (size_t)count * sizeof *values) == TN_OK;

    for (int64_t i = 0; same && i < count; i++)
        same = values[i] == (float)(i % 1000);
    free(values);
    return same;
}

static void bears_scarce_memory(conform *c)
{
    enum { COUNT = 300, MOST = 400 };
    const tn_device *device = c->plugin->device;
    int64_t failed = 0;

    { /* once without failures, so that one-time allocations are done */
        uint64_t scope = tn_scope_begin();

        if (tn_add(numbers(device, COUNT), numbers(device, COUNT), NULL) == NULL)
            conform_skip(c, "it cannot add: %s", tn_error_text());
        tn_error_clear();
        tn_scope_end(scope);
        if (c->verdict != CONFORM_PASS)
            return;
    }
    for (int64_t at = 0; at < MOST; at++, c->checks++) {
        uint64_t scope = tn_scope_begin();
        int64_t count = COUNT + 1024 * (at + 1); /* of a size that no cache has */
        tn_tensor *x, *y = NULL;
        bool broke;

        conform_memory_fails(at, true);
        x = numbers(device, count);
        if (x != NULL)
            y = tn_add(x, x, NULL);
        if (y != NULL && tn_device_sync(device) != TN_OK)
            y = NULL;
        broke = conform_memory_is_back() > 0;
        failed += broke;
        if (y == NULL && !tn_failed())
            conform_fail(c, "allocation %lld: failed, and no error was reported", (long long)at);
        if (y == NULL && !broke)
            conform_fail(c, "after an earlier failure: %s", tn_error_text());
        if (y != NULL && !doubled(y, count))
            conform_fail(c, "allocation %lld: failed, and the result is wrong", (long long)at);
        tn_error_clear();
        tn_scope_end(scope);
        if (!broke || c->verdict != CONFORM_PASS)
            break;
    }
    if (c->verdict == CONFORM_PASS && failed == 0)
        conform_skip(c, "it allocates no memory with the host's allocator");
}

/* ---- device types ---- */

static void describes_itself(conform *c)
{
    tn_device_info info;

    memset(&info, 0x55, sizeof info);
    info.head.size = sizeof info;
    if (tn_device_describe(c->plugin->device, &info) != TN_OK) {
        conform_fail(c, "info: %s", tn_error_text());
        return;
    }
    if (memchr(info.name, '\0', sizeof info.name) == NULL || info.name[0] == '\0')
        conform_fail(c, "info: name: missing");
    if (memchr(info.driver, '\0', sizeof info.driver) == NULL)
        conform_fail(c, "info: driver: not terminated");
    if (info.alignment < 1 || (info.alignment & (info.alignment - 1)) != 0)
        conform_fail(c, "info: alignment: wrong, got %lld; expected a power of two",
                     (long long)info.alignment);
    if ((info.dtypes & TN_BIT(TN_F32)) == 0)
        conform_fail(c, "info: float32 is not among the dtypes; expected it");
    if (info.memory_total < 0 || info.memory_free < -1)
        conform_fail(c, "info: wrong memory, got memory_total %lld, memory_free %lld",
                     (long long)info.memory_total, (long long)info.memory_free);
    c->checks += 5;
}

static void keeps_bytes(conform *c)
{
    static const int64_t sizes[] = { 1, 2, 3, 63, 64, 65, 4095, 4097, 1 << 20, (1 << 20) + 7 };

    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        uint64_t scope = tn_scope_begin();
        int64_t n = sizes[k];
        unsigned char *in = malloc((size_t)n), *out = calloc(1, (size_t)n + 2);
        tn_tensor *x = tn_tensor_empty(TN_SHAPE(n), TN_U8, c->plugin->device), *middle;

        for (int64_t i = 0; in != NULL && i < n; i++)
            in[i] = (unsigned char)(i * 31 + 7);
        if (in == NULL || out == NULL || x == NULL ||
            tn_tensor_copy_in(x, in, (size_t)n) != TN_OK) {
            conform_fail(c, "%lld bytes: %s", (long long)n, tn_error_text());
        } else {
            out[n + 1] = 0x5a;
            if (tn_tensor_copy_out(x, out + 1, (size_t)n) != TN_OK)
                conform_fail(c, "%lld bytes: %s", (long long)n, tn_error_text());
            else if (memcmp(in, out + 1, (size_t)n) != 0)
                conform_fail(c, "%lld bytes: changed on the way in and out", (long long)n);
            else if (out[0] != 0 || out[n + 1] != 0x5a)
                conform_fail(c, "copy_out: %lld bytes: writes beyond them", (long long)n);
            /* a part: the bytes before and after it stay */
            if (n >= 64) {
                middle = tn_narrow(x, 0, 5, n - 12);
                memset(out + 1, 0xEE, (size_t)n);
                if (middle == NULL || tn_tensor_copy_in(middle, out + 1, (size_t)n - 12) != TN_OK ||
                    tn_tensor_copy_out(x, out + 1, (size_t)n) != TN_OK)
                    conform_fail(c, "part of %lld bytes: %s", (long long)n, tn_error_text());
                else if (memcmp(in, out + 1, 5) != 0 || memcmp(in + n - 7, out + 1 + n - 7, 7) != 0)
                    conform_fail(c, "copy_in: part of %lld bytes: changes bytes outside it",
                                 (long long)n);
                else if (out[1 + 5] != 0xEE || out[1 + n - 8] != 0xEE)
                    conform_fail(c,
                                 "copy_in: part of %lld bytes: does not write its first or last "
                                 "byte",
                                 (long long)n);
            }
        }
        c->checks += 3;
        free(in);
        free(out);
        tn_error_clear();
        tn_scope_end(scope);
    }
}

static void refuses_what_is_too_large(conform *c)
{
    static const int64_t sizes[] = { INT64_C(1) << 46, INT64_C(1) << 56 };
    uint64_t scope = tn_scope_begin();

    for (int i = 0; i < 4; i++, c->checks++) {
        if (tn_tensor_empty(TN_SHAPE(sizes[i % 2]), TN_F32, c->plugin->device) != NULL)
            conform_fail(c, "memory for %lld floats: allocated; expected a failure",
                         (long long)sizes[i % 2]);
        else if (tn_error_code() != TN_ERR_MEMORY || tn_error_text()[0] == '\0')
            conform_fail(c,
                         "memory for %lld floats: wrong error, got %s: %s; expected TN_ERR_MEMORY "
                         "with a message",
                         (long long)sizes[i % 2], tn_status_name(tn_error_code()), tn_error_text());
        tn_error_clear();
    }
    if (numbers(c->plugin->device, 100) == NULL)
        conform_fail(c, "allocation after refused ones: fails: %s", tn_error_text());
    tn_error_clear();
    tn_scope_end(scope);
}

static void gives_memory_back(conform *c)
{
    const tn_device *device = c->plugin->device;
    tn_memory_stats before, after;

    if (tn_device_memory(device, &before) != TN_OK) {
        conform_fail(c, "%s", tn_error_text());
        return;
    }
    for (int turn = 0; turn < 20; turn++) {
        uint64_t scope = tn_scope_begin();
        tn_tensor *x = numbers(device, 1000 + turn * 777);

        if (x == NULL || (tn_mul_scalar(x, 2) == NULL && tn_error_code() != TN_ERR_NOT_IMPLEMENTED))
            conform_fail(c, "%s", tn_error_text());
        tn_error_clear();
        tn_scope_end(scope);
    }
    if (tn_device_sync(device) != TN_OK || tn_device_trim(device) != TN_OK ||
        tn_device_memory(device, &after) != TN_OK)
        conform_fail(c, "%s", tn_error_text());
    else if (after.live != before.live)
        conform_fail(c, "memory: in use after all tensors were freed, got %lld bytes; expected 0",
                     (long long)(after.live - before.live));
    else if (after.cached > before.cached)
        conform_fail(c, "cache: not empty after a trim, got %lld bytes; expected 0",
                     (long long)(after.cached - before.cached));
    c->checks += 2;
}

static void keeps_the_order_of_work(conform *c)
{
    const tn_device *device = c->plugin->device;
    uint64_t scope = tn_scope_begin();
    tn_tensor *x = numbers(device, 5000);
    char words[400] = "";
    float first = -1;
    bool chain;

    /* a long chain, then a copy out: all of it must be complete */
    for (int i = 0; x != NULL && i < 60; i++)
        x = tn_add_scalar(x, 1);
    chain = x != NULL || tn_error_code() != TN_ERR_NOT_IMPLEMENTED;
    if (!chain)
        snprintf(words, sizeof words, "%.390s", tn_error_text());
    else if (x == NULL || tn_tensor_copy_out(tn_narrow(x, 0, 0, 1), &first, sizeof first) != TN_OK)
        conform_fail(c, "%s", tn_error_text());
    else if (first != 60)
        conform_fail(c,
                     "60 kernels that add 1 to 0, then copy_out: wrong value, got %g; expected 60",
                     (double)first);
    tn_error_clear();
    c->checks++;
    for (int i = 0; i < 8 && c->verdict == CONFORM_PASS; i++, c->checks++) {
        tn_event *event = tn_event_record(device, NULL);

        if (event == NULL) {
            conform_fail(c, "event_record: %s", tn_error_text());
            break;
        }
        if (tn_event_sync(event) != TN_OK)
            conform_fail(c, "waiting for an event: %s", tn_error_text());
        else if (!tn_event_done(event))
            conform_fail(c, "event: not done after a wait for it");
        tn_event_drop(event);
    }
    if (!chain)
        conform_skip(c, "events are in order; it cannot add yet: %s", words);
    tn_error_clear();
    tn_scope_end(scope);
}

typedef struct worker {
    const tn_device *device;
    int which;
    bool lacks; /* the device has no kernel for it */
    char words[200];
} worker;

static void *works(void *user)
{
    worker *w = user;

    for (int i = 0; i < 40 && w->words[0] == '\0'; i++) {
        uint64_t scope = tn_scope_begin();
        int64_t count = 100 + (w->which * 37 + i * 11) % 900;
        tn_tensor *x = numbers(w->device, count), *y = x != NULL ? tn_add(x, x, NULL) : NULL;

        if (y == NULL) {
            w->lacks = x != NULL && tn_error_code() == TN_ERR_NOT_IMPLEMENTED;
            snprintf(w->words, sizeof w->words, "%.199s", tn_error_text());
        }
        if (y != NULL && !doubled(y, count))
            snprintf(w->words, sizeof w->words, "iteration %d of thread %d: wrong sums %.100s", i,
                     w->which, tn_error_text());
        tn_error_clear();
        tn_scope_end(scope);
    }
    return NULL;
}

static void serves_several_threads(conform *c)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    worker workers[THREADS];
    int started = 0;

    for (; started < THREADS; started++) {
        workers[started] = (worker){ c->plugin->device, started, false, "" };
        if (pthread_create(&thread[started], NULL, works, &workers[started]) != 0)
            break;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(thread[i], NULL);
        if (workers[i].lacks)
            conform_skip(c, "it cannot add yet: %s", workers[i].words);
        else if (workers[i].words[0] != '\0')
            conform_fail(c, "%s", workers[i].words);
        c->checks++;
    }
}

static void survives_wrong_indices(conform *c)
{
    static const int64_t wrong[] = { 7, -1, INT64_MAX, INT64_MIN };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++, c->checks++) {
        uint64_t scope = tn_scope_begin();
        tn_tensor *x = numbers(c->plugin->device, 6);
        tn_tensor *index = tn_tensor_empty(TN_SHAPE(1), TN_I64, c->plugin->device), *y;
        tn_status status = TN_OK;

        if (x == NULL || index == NULL ||
            tn_tensor_copy_in(index, &wrong[i], sizeof wrong[i]) != TN_OK) {
            conform_fail(c, "%s", tn_error_text());
        } else {
            y = tn_gather(x, index, 0);
            status = y == NULL ? tn_error_code() : tn_device_sync(c->plugin->device);
            if (status == TN_ERR_NOT_IMPLEMENTED)
                conform_skip(c, "%s", tn_error_text());
            else if (status == TN_OK)
                conform_fail(c, "gather: index %lld of 6 elements: accepted; expected a failure",
                             (long long)wrong[i]);
            else if (tn_error_text()[0] == '\0')
                conform_fail(c, "gather: index %lld: fails without a message", (long long)wrong[i]);
            tn_error_clear();
            if (c->verdict == CONFORM_PASS) {
                y = tn_add(x, x, NULL);
                if (y == NULL && tn_error_code() == TN_ERR_NOT_IMPLEMENTED)
                    conform_skip(c, "it cannot add yet: %s", tn_error_text());
                else if (y == NULL || !doubled(y, 6))
                    conform_fail(c, "after a wrong index: no longer works: %s", tn_error_text());
            }
        }
        tn_error_clear();
        tn_scope_end(scope);
    }
}

static void opens_again_and_again(conform *c)
{
    const tn_backend_def *backend = (const void *)tn_registry_find(
        TN_KIND_tn_backend_def, tn_device_type(c->plugin->device));
    int32_t first = 0, second = 0;

    if (backend == NULL) {
        conform_fail(c, "%s", tn_error_text());
        return;
    }
    if (backend->enumerate(backend, &first) != TN_OK ||
        backend->enumerate(backend, &second) != TN_OK)
        conform_fail(c, "enumerate: second call: %s", tn_error_text());
    else if (first != second || first < 1)
        conform_fail(c, "enumerate: different numbers, got %d devices, then %d", (int)first,
                     (int)second);
    c->checks++;
    tn_error_clear();
}

const conform_test conform_contract_tests[] = {
    { "complete", false, is_complete },
    { "activates", false, activates },
    { "kernels-run", false, has_kernels_that_run },
    { "no-threads-at-load", false, starts_no_thread },
    { "process-left-alone", false, leaves_the_process_alone },
    { "one-exported-name", false, exports_one_name },
    { "scarce-memory", false, bears_scarce_memory },
    { "describes-itself", true, describes_itself },
    { "enumerates", true, opens_again_and_again },
    { "keeps-bytes", true, keeps_bytes },
    { "too-large", true, refuses_what_is_too_large },
    { "gives-memory-back", true, gives_memory_back },
    { "order-of-work", true, keeps_the_order_of_work },
    { "threads", true, serves_several_threads },
    { "wrong-indices", true, survives_wrong_indices },
    { NULL, false, NULL },
};
