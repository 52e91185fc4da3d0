/* SPDX-License-Identifier: MIT
 *
 * The level contract of tenon check: tests for the requirements of docs/plugins/writing.md on every
 * plugin. The tests of device types are in device.c. */
#include "conform.h"
#include "device.h"

#include <elf.h>
#include <dirent.h>
#include <fenv.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tenon/foreign.h>
#include <unistd.h>

#define QUERY "tn_plugin_query"

/* ---- every plugin ---- */

/* Finds the load report of a plugin by its id. */
static bool report_of(const char *id, tn_plugin_report *report)
{
    int64_t count = tn_plugin_count();

    for (int64_t i = 0; i < count; i++)
        if (tn_plugin_report_at(i, report) == TN_OK && strcmp(report->id, id) == 0)
            return true;
    return false;
}

/* Returns whether a plugin provides an interface. One whose table has another size is refused with
 * another code than one that does not exist. */
static bool has_interface(const char *plugin, const char *name, uint32_t size)
{
    char id[300];
    const tn_interface_need need = { id, 0, 0, size, 0 };
    uint64_t mark = tn_error_mark();
    bool found;

    tn_snprint(id, sizeof id, "%s.%s", plugin, name);
    found = tn_interface_find(NULL, &need, NULL) != NULL || tn_error_last_code() != TN_ERR_KEY;
    tn_error_restore(mark);
    return found;
}

/* Returns whether a plugin without contributions has functions for programs (<tenon/print.h>), or
 * rules for programs of other frameworks (<tenon/foreign.h>). */
static bool has_functions(const char *plugin)
{
    return has_interface(plugin, "api", sizeof(void *)) ||
           has_interface(plugin, "rules.aten", sizeof(tn_rule_list)) ||
           has_interface(plugin, "rules.onnx", sizeof(tn_rule_list));
}

static void is_complete(conform *c)
{
    tn_plugin_report report;

    if (!report_of(c->plugin->id, &report)) {
        conform_fail(c, "load report: does not list plugin %s", c->plugin->id);
        return;
    }
    if (report.refused > 0)
        conform_fail(c, "contributions: %lld refused: %s", (long long)report.refused,
                     report.reason);
    if (report.contributions == 0 && !has_functions(c->plugin->id))
        conform_fail(
            c,
            "contributions: none; expected at least one, an interface \"%s.api\", or rules "
            "for programs",
            c->plugin->id);
    if (report.version[0] == '\0')
        conform_fail(c, "version: missing");
    c->checks += 3;
}

/* At least one kernel of the plugin must run on the device. No registry lists kernels by name, so
 * the number of kernels is the number of contributions that no registry lists. */
static void has_kernels_that_run(conform *c)
{
    tn_plugin_report report;
    int64_t kernels, ops = tn_op_count();

    c->checks++;
    if (!report_of(c->plugin->id, &report)) {
        conform_fail(c, "load report: does not list plugin %s", c->plugin->id);
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
        conform_skip(c, "the plugin provides no kernels");
        return;
    }
    for (int64_t i = 0; i < ops; i++)
        if (conform_runs(c->plugin, tn_op_name_at(i)))
            return;
    conform_fail(c,
                 "kernels: none of %lld runs an operator on %s; name the device that they are for "
                 "with --device",
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

int conform_threads(void)
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

/* When a test begins, the plugin has been loaded but not activated. */
static void starts_no_thread(conform *c)
{
    int count = conform_threads();

    c->checks++;
    if (count < 0)
        conform_skip(c, "/proc/self/task is not available to count threads");
    else if (count > 1)
        conform_fail(c, "loading: started %d threads; expected none before the first kernel",
                     count - 1);
}

static const int signals[] = { SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGABRT,
                               SIGINT,  SIGTERM, SIGCHLD, SIGALRM, SIGUSR1 };
enum { SIGNALS = sizeof signals / sizeof signals[0] };
static struct sigaction at_the_start[SIGNALS]; /* the parent may ignore some signals */

static struct surroundings {
    char locale[512], folder[4096];
    mode_t mask;
    sigset_t blocked;
    char *environment; /* all variables, one after the other, each with its final 0 */
    size_t environment_size;
} surroundings;
static void remember_surroundings(struct surroundings *now);

void conform_remember_process(void)
{
    remember_surroundings(&surroundings);
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], NULL, &at_the_start[i]);
}

/* Returns the environment of the process as bytes that the caller frees; NULL without memory. */
static char *copy_environment(size_t *size)
{
    char *copy, *to;

    *size = 0;
    for (char *const *at = environ; at != NULL && *at != NULL; at++)
        *size += strlen(*at) + 1;
    copy = to = malloc(*size + 1);
    for (char *const *at = environ; to != NULL && at != NULL && *at != NULL; at++)
        to = stpcpy(to, *at) + 1;
    return copy;
}

/* Stores the settings of the process and of the calling thread that a plugin must not change. */
static void remember_surroundings(struct surroundings *now)
{
    const char *locale = setlocale(LC_ALL, NULL);

    memset(now, 0, sizeof *now);
    snprintf(now->locale, sizeof now->locale, "%s", locale != NULL ? locale : "");
    if (getcwd(now->folder, sizeof now->folder) == NULL)
        now->folder[0] = '\0';
    now->mask = umask(022);
    umask(now->mask);
    pthread_sigmask(SIG_SETMASK, NULL, &now->blocked);
    now->environment = copy_environment(&now->environment_size);
}

/* Finds the first variable that was set, changed or removed, and writes its name. Returns false if
 * there is none. */
static bool changed_variable(const struct surroundings *now, char *name, size_t size)
{
    const struct surroundings *sides[] = { now, &surroundings };

    for (int side = 0; side < 2; side++) {
        const struct surroundings *of = sides[side], *in = sides[1 - side];

        for (const char *at = of->environment; at < of->environment + of->environment_size;
             at += strlen(at) + 1) {
            const char *other = in->environment, *end = other + in->environment_size;

            while (other < end && strcmp(other, at) != 0)
                other += strlen(other) + 1;
            if (other < end)
                continue;
            snprintf(name, size, "%.*s", (int)strcspn(at, "="), at);
            return true;
        }
    }
    return false;
}

static void keeps_the_environment(conform *c, struct surroundings *now)
{
    char name[100];

    c->checks++;
    if (now->environment != NULL && surroundings.environment != NULL &&
        changed_variable(now, name, sizeof name))
        conform_fail(c,
                     "environment variable %s: set, changed or removed (only the program may call "
                     "setenv)",
                     name);
    free(now->environment);
}

static void keeps_the_surroundings(conform *c)
{
    struct surroundings now;

    remember_surroundings(&now);
    keeps_the_environment(c, &now);
    if (strcmp(now.locale, surroundings.locale) != 0)
        conform_fail(
            c, "locale: changed, got %.60s; expected %.60s (only the program may call setlocale)",
            now.locale, surroundings.locale);
    if (strcmp(now.folder, surroundings.folder) != 0)
        conform_fail(c, "working directory: changed, got %.300s; expected %.300s", now.folder,
                     surroundings.folder);
    if (now.mask != surroundings.mask)
        conform_fail(c, "umask: changed, got %03o; expected %03o", (unsigned)now.mask,
                     (unsigned)surroundings.mask);
    for (int number = 1; number < 32; number++)
        if (sigismember(&now.blocked, number) != sigismember(&surroundings.blocked, number))
            conform_fail(c, "signal %d (%s): blocked or unblocked in the thread of the program",
                         number, strsignal(number));
    c->checks += 4;
}

static void leaves_the_process_alone(conform *c)
{
    struct sigaction action;

    if (tn_plugin_activate(c->plugin->id) !=
        TN_OK) { /* with TENON_CHECK=1, activation also fails if it changed the thread */
        if (strstr(tn_error_text(), "checked boundary") != NULL)
            conform_fail(c, "%s", tn_error_text());
        tn_error_clear();
    }
    for (int i = 0; i < SIGNALS; i++, c->checks++)
        if (sigaction(signals[i], NULL, &action) == 0 &&
            action.sa_handler != at_the_start[i].sa_handler)
            conform_fail(c, "signal %d (%s): handler installed; expected none", signals[i],
                         strsignal(signals[i]));
    keeps_the_surroundings(c);
    if (fegetround() != FE_TONEAREST)
        conform_fail(c, "rounding mode: changed");
    c->checks++;
#if defined(__x86_64__)
    if (__builtin_ia32_stmxcsr() & 0x8040)
        conform_fail(c, "flush-to-zero: set for the whole process");
    c->checks++;
#endif
}

/* Checks that the ELF file of the plugin exports no symbol except tn_plugin_query. Names that the
 * compiler and the linker may add (_init, _fini, __*) are accepted. */
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
        conform_fail(c, "file %s: cannot be read, or is too short for an ELF file",
                     c->plugin->options->file);
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

/* Computes sums while host memory fails: in run `at`, allocation `at` and all later ones fail. Ends
 * with the first run that needs no more than `at` allocations. Each run must return an error or the
 * correct result. */
static void bears_scarce_memory(conform *c)
{
    enum { COUNT = 300, MOST = 400 };
    const tn_device *device = c->plugin->device;
    int64_t failed = 0;

    { /* a call without failures, so that one-time allocations are done */
        uint64_t scope = tn_scope_begin();

        if (tn_add(conform_device_numbers(device, COUNT), conform_device_numbers(device, COUNT)) ==
            NULL)
            conform_skip(c, "the device cannot add: %s", tn_error_text());
        tn_error_clear();
        tn_scope_end(scope);
        if (c->verdict != CONFORM_PASS)
            return;
    }
    for (int64_t at = 0; at < MOST; at++, c->checks++) {
        uint64_t scope = tn_scope_begin();
        int64_t count = COUNT + 1024 * (at + 1); /* a new size, so that no cache has a free block */
        tn_tensor *x, *y = NULL;
        bool broke;

        conform_memory_fails(at, true);
        x = conform_device_numbers(device, count);
        if (x != NULL)
            y = tn_add(x, x);
        if (y != NULL && tn_device_sync(device) != TN_OK)
            y = NULL;
        broke = conform_memory_is_back() > 0;
        failed += broke;
        if (y == NULL && !tn_failed())
            conform_fail(c, "allocation %lld: failed, but the call recorded no error",
                         (long long)at);
        if (y == NULL && !broke)
            conform_fail(c, "after an allocation failed: a later call fails: %s", tn_error_text());
        if (y != NULL && !conform_device_doubled(y, count))
            conform_fail(c, "allocation %lld: failed without an error, and the result is wrong",
                         (long long)at);
        tn_error_clear();
        tn_scope_end(scope);
        if (!broke || c->verdict != CONFORM_PASS)
            break;
    }
    if (c->verdict == CONFORM_PASS && failed == 0)
        conform_skip(c, "the call allocates no host memory with tn_malloc");
}

const conform_test conform_contract_tests[] = {
    { "complete", false, is_complete },
    { "activates", false, activates },
    { "kernels-run", false, has_kernels_that_run },
    { "no-threads-at-load", false, starts_no_thread },
    { "process-left-alone", false, leaves_the_process_alone },
    { "one-exported-name", false, exports_one_name },
    { "scarce-memory", false, bears_scarce_memory },
    { NULL, false, NULL },
};
