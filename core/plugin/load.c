/* SPDX-License-Identifier: MIT
 *
 * Loading a plugin file in steps (docs/abi.md, rules 1, 2, 4, 6, 13 to 15): found, readable, owner,
 * dlopen, symbol, query, version. A failure is recorded in the plugin's line of the load report and
 * affects no other plugin. */
#include "core/plugin/private.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <ltdl.h>
#include <stdlib.h>
#include <unistd.h>

/* The size that a struct must have at least to contain `member`. */
#define LEAST(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* ---- mapping --------------------------------------------------------------------------------- */

static bool map_by_ltdl(const char *file, char *words, size_t size)
{
    static bool ready;
    bool good = false;
    lt_dladvise advise = NULL;
    if (!ready && lt_dlinit()) {
        tn_snprint(words, size, "libltdl cannot start: %s", lt_dlerror());
        return false;
    }
    ready = true;
    if (!lt_dladvise_init(&advise) && !lt_dladvise_local(&advise) && !lt_dladvise_resident(&advise))
        good = lt_dlopenadvise(file, advise) != NULL;
    if (!good) {
        const char *why = lt_dlerror();
        tn_snprint(words, size, "libltdl: %s", why ? why : "no reason given");
    }
    lt_dladvise_destroy(&advise);
    return good;
}

/* Returns the query function of the file. It must be defined in the file itself and not in a
 * library that the file depends on (rule 2). */
static tn_plugin_query_fn *symbol_of(tn__plugin *plugin, void *handle)
{
    Dl_info where;
    struct stat at;
    void *symbol = dlsym(handle, TN_PLUGIN_SYMBOL);
    if (!symbol) {
        tn__plugin_outcome(plugin, TN_OUTCOME_FAILED, TN_STAGE_SYMBOL, TN_ERR_FORMAT,
                           "symbol " TN_PLUGIN_SYMBOL
                           ": missing; one source file of a plugin needs TN_PLUGIN(...)");
        return NULL;
    }
    if (!dladdr(symbol, &where) || !where.dli_fname || stat(where.dli_fname, &at) ||
        (uint64_t)at.st_dev != plugin->private->device ||
        (uint64_t)at.st_ino != plugin->private->inode) {
        tn__plugin_outcome(plugin, TN_OUTCOME_FAILED, TN_STAGE_SYMBOL, TN_ERR_FORMAT,
                           "symbol " TN_PLUGIN_SYMBOL
                           ": in %s, a library that the file depends on; expected in the file "
                           "itself",
                           where.dli_fname ? where.dli_fname : "?");
        return NULL;
    }
    if (!tn__address_is_code(symbol)) {
        tn__plugin_outcome(plugin, TN_OUTCOME_FAILED, TN_STAGE_SYMBOL, TN_ERR_FORMAT,
                           "symbol " TN_PLUGIN_SYMBOL ": it is data; expected a function");
        return NULL;
    }
    tn_plugin_query_fn *query;
    /* ISO C does not allow a cast from void * to a function pointer */
    memcpy(&query, &symbol, sizeof query);
    return query;
}

static tn_plugin_query_fn *map(tn__plugin *plugin)
{
    char words[800];
    tn_outcome outcome = tn__file_check_elf(plugin->file, words, sizeof words);
    if (outcome != TN_OUTCOME_OK) {
        tn__plugin_outcome(plugin, outcome, TN_STAGE_DLOPEN,
                           outcome == TN_OUTCOME_REFUSED ? TN_ERR_REFUSED : TN_ERR_FORMAT, "%s",
                           words);
        return NULL;
    }
    tn_log(TN_LOG_DEBUG, "mapping %s", plugin->file);
    /* RTLD_NODELETE: a plugin that calls dlclose on itself stays mapped, too. */
    void *handle = dlopen(plugin->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        const char *why = dlerror();
        tn__plugin_outcome(plugin, TN_OUTCOME_FAILED, TN_STAGE_DLOPEN, TN_ERR_FORMAT, "%s",
                           why ? why : "the reason is unknown");
        return NULL;
    }
    if (!map_by_ltdl(plugin->file, words, sizeof words)) {
        tn__plugin_outcome(plugin, TN_OUTCOME_FAILED, TN_STAGE_DLOPEN, TN_ERR_FORMAT, "%s", words);
        return NULL;
    }
    return symbol_of(plugin, handle);
}

/* ---- asking ---------------------------------------------------------------------------------- */

tn_status tn__load_copy_struct(void *to, size_t size, size_t least, const tn_head *from,
                               const char *what)
{
    if (from->size < least)
        return tn_fail(TN_ERR_VERSION,
                       "%s: too short, got %u bytes; expected at least %u; was it initialized with "
                       "TN_HEAD(%s)?",
                       what, from->size, (unsigned)least, what);
    if (from->abi_major != TN_ABI_MAJOR || (TN_ABI_MAJOR == 0 && from->abi_minor > TN_ABI_MINOR))
        return tn_fail(TN_ERR_VERSION, "%s: wrong ABI, got %u.%u; expected %u.%u", what,
                       from->abi_major, from->abi_minor, TN_ABI_MAJOR, TN_ABI_MINOR);
    if (from->size > size && from->abi_minor <= TN_ABI_MINOR)
        return tn_fail(TN_ERR_VERSION,
                       "%s: wrong size, got %u bytes; expected in ABI %u.%u at most %u", what,
                       from->size, from->abi_major, from->abi_minor, (unsigned)size);
    size_t common = from->size < size ? from->size : size;
    memcpy(to, from, common);
    memset((char *)to + common, 0, size - common);
    ((tn_head *)to)->size = (uint32_t)size;
    return TN_OK;
}

static bool abi_fits(tn__plugin *plugin, const tn_head *head, const char *what)
{
    bool newer = head->abi_major > TN_ABI_MAJOR ||
                 (head->abi_major == TN_ABI_MAJOR && head->abi_minor > TN_ABI_MINOR);
    if (head->abi_major == TN_ABI_MAJOR && (!newer || TN_ABI_MAJOR > 0))
        return true;
    tn__plugin_outcome(plugin, TN_OUTCOME_REFUSED, TN_STAGE_VERSION, TN_ERR_VERSION,
                       "%s: wrong ABI, got %u.%u; Tenon %s has %u.%u: %s", what, head->abi_major,
                       head->abi_minor, tn_version(), TN_ABI_MAJOR, TN_ABI_MINOR,
                       newer ? "a newer Tenon would load it" : "compile it again");
    return false;
}

/* Returns whether an id such as "org.example.swish" is acceptable: letters, digits, `.`, `_`, `-`,
 * with a letter or digit at both ends; short enough for an error record. */
static bool id_acceptable(const char *id)
{
    size_t length = 0;
    for (; id && id[length]; length++)
        if (length >= 63 || (!isalnum((unsigned char)id[length]) && !strchr("._-", id[length])))
            return false;
    return length > 0 && isalnum((unsigned char)id[0]) && isalnum((unsigned char)id[length - 1]);
}

enum { MOST_CONTRIBUTIONS = 65536 };

/* Checks an array in tn_plugin: the pointer to its first element, the number of elements, and
 * whether that much memory is mapped from the pointer on. */
static bool row_acceptable(tn__plugin *plugin, const char *what, const void *at, int64_t count,
                           size_t each)
{
    const char *wrong = count < 0 || count > MOST_CONTRIBUTIONS ? "expected 0 to 65536"
                        : count && !at                          ? "the pointer is NULL"
                        : count && each && (uint64_t)count > tn__address_left(at) / each
                            ? "the memory at the pointer is shorter"
                            : NULL;
    if (wrong)
        tn__plugin_outcome(plugin, TN_OUTCOME_FAILED, TN_STAGE_QUERY, TN_ERR_VALUE,
                           "tn_plugin: wrong, got %lld %s; %s", (long long)count, what, wrong);
    return !wrong;
}

/* Makes the failure that was just recorded the outcome of the plugin. Returns false. */
static bool refused_by(tn__plugin *plugin, uint64_t mark)
{
    char words[800];
    tn__report_take_words(mark, words, sizeof words);
    tn__plugin_outcome(plugin, TN_OUTCOME_REFUSED, TN_STAGE_VERSION, TN_ERR_VERSION, "%s", words);
    return false;
}

/* Checks reserved members of structs that tn__reserved_check() does not check: tn_plugin_info,
 * tn_build_facts and tn_requirement, which the query of the plugin returned. All reserved members
 * must be NULL. */
static bool reserved_null(tn__plugin *plugin, const tn_plugin_info *info, const tn_plugin *own)
{
    uint64_t mark = tn_error_mark();
    tn_status status = TN_OK;

    if (TN_HAS(info, tn_plugin_info, reserved))
        status = tn__error_reserved(info->reserved, tn__countof(info->reserved), "tn_plugin_info");
    if (status == TN_OK && info->build)
        status = tn__error_reserved((const void *const *)info->build->reserved,
                                    tn__countof(info->build->reserved), "tn_build_facts");
    for (const tn_requirement *row = own->requires_; row && row->id && status == TN_OK; row++) {
        char what[128];
        tn_snprint(what, sizeof what, "tn_plugin: requirement %q", row->id);
        status = tn__error_reserved((const void *const *)&row->reserved, 1, what);
    }
    return status == TN_OK || refused_by(plugin, mark);
}

static const tn__kind_member plugin_members[] = {
    TN__KIND_MEMBER(tn_plugin, flags, TN_PLUGIN_OWN_THREADS),
    { 0 },
};

static bool descriptor_taken(tn__plugin *plugin, const tn_plugin *theirs)
{
    tn_plugin *own = &plugin->private->descriptor;
    uint64_t mark = tn_error_mark();
    if (!theirs || theirs->head.kind != TN_KIND_tn_plugin) {
        tn__plugin_outcome(plugin, TN_OUTCOME_FAILED, TN_STAGE_QUERY, TN_ERR_FORMAT,
                           "query: returned no tn_plugin; expected a struct that begins with "
                           "TN_HEAD(tn_plugin)");
        return false;
    }
    if (!abi_fits(plugin, &theirs->head, "tn_plugin"))
        return false;
    if (tn__load_copy_struct(own, sizeof *own, LEAST(tn_plugin, n_contributions), &theirs->head,
                             "tn_plugin") != TN_OK ||
        tn__reserved_check(&own->head, plugin_members, "tn_plugin") != TN_OK)
        return refused_by(plugin, mark);
    if (!id_acceptable(own->id)) {
        tn__plugin_outcome(plugin, TN_OUTCOME_FAILED, TN_STAGE_QUERY, TN_ERR_VALUE,
                           "id: wrong, got %q; expected 1 to 63 letters, digits, `.`, `_` and `-`, "
                           "with a letter or digit at both ends, such as \"org.example.name\"",
                           own->id ? own->id : "");
        return false;
    }
    if (!own->version || !isdigit((unsigned char)own->version[0]) || strlen(own->version) > 31) {
        tn__plugin_outcome(plugin, TN_OUTCOME_FAILED, TN_STAGE_QUERY, TN_ERR_VALUE,
                           "version: wrong, got %q; expected at most 31 bytes that begin with a "
                           "digit, such as \"1.0.0\"",
                           own->version ? own->version : "");
        return false;
    }
    if (!row_acceptable(plugin, "contributions", own->contributions, own->n_contributions,
                        sizeof *own->contributions) ||
        !row_acceptable(plugin, "kernels", own->kernels, own->n_kernels, own->kernel_size))
        return false;
    plugin->plugin = own;
    plugin->id = plugin->report.id = own->id;
    plugin->version = plugin->report.version = own->version;
    plugin->report.help = own->help ? own->help : "";
    return true;
}

/* Compares the facts about the plugin's build (rule 7) with this library's. */
static bool build_fits(tn__plugin *plugin, const tn_build_facts *build)
{
    const uint32_t ours = TN_BUILD_ASAN | TN_BUILD_TSAN;
    if (build && build->pointer_bits != sizeof(void *) * 8) {
        tn__plugin_outcome(plugin, TN_OUTCOME_REFUSED, TN_STAGE_VERSION, TN_ERR_VERSION,
                           "pointers: wrong size, got %u bits; expected %u", build->pointer_bits,
                           (unsigned)sizeof(void *) * 8);
        return false;
    }
    if (build && (build->sanitizers & ~ours & (1u | 2u | 8u))) {
        tn__plugin_outcome(
            plugin, TN_OUTCOME_REFUSED, TN_STAGE_VERSION, TN_ERR_VERSION,
            "sanitizer: compiled with the %s sanitizer (%s), but libtenon was not; compile both "
            "with it, or neither",
            build->sanitizers & 1   ? "address"
            : build->sanitizers & 2 ? "thread"
                                    : "memory",
            build->compiler ? build->compiler : "compiler unknown");
        return false;
    }
    plugin->private->build = build;
    if (build && build->openmp && !(plugin->private->descriptor.flags & TN_PLUGIN_OWN_THREADS))
        tn_log(TN_LOG_WARNING,
               "plugin %q (%s) was compiled with OpenMP, which starts threads, and does not "
               "declare this; set TN_PLUGIN_OWN_THREADS, or use tn_parallel_for",
               plugin->id, plugin->file);
    return true;
}

/* Checks that the host has the interfaces that the plugin was compiled against; the messages are
 * those of rule 6. */
static bool needs_fit(tn__plugin *plugin, const tn_interface_need *need)
{
    for (; need && need->id; need++) {
        uint32_t revision = 0, size = 0;
        if (!tn__plugin_up.host_interface(need->id, 0, UINT32_MAX, &revision, &size)) {
            tn__plugin_outcome(plugin, TN_OUTCOME_REFUSED, TN_STAGE_VERSION, TN_ERR_VERSION,
                               "interface %s: unknown to this Tenon %s", need->id, tn_version());
            return false;
        }
        if (!tn__plugin_up.host_interface(need->id, need->min, need->max, &revision, &size)) {
            tn__plugin_outcome(
                plugin, TN_OUTCOME_REFUSED, TN_STAGE_VERSION, TN_ERR_VERSION,
                "requires revision %u to %u of the interface %s; Tenon %s has revision %u",
                need->min, need->max, need->id, tn_version(), revision);
            return false;
        }
        if (need->reserved) {
            tn__plugin_outcome(plugin, TN_OUTCOME_REFUSED, TN_STAGE_VERSION, TN_ERR_VERSION,
                               "interface %s: reserved: reserved in Tenon %s, got %u; expected 0",
                               need->id, tn_version(), need->reserved);
            return false;
        }
        if (revision == 0 ? size != need->size : size < need->size) {
            tn__plugin_outcome(
                plugin, TN_OUTCOME_REFUSED, TN_STAGE_VERSION, TN_ERR_VERSION,
                "compiled against another %s of interface %s, got %u bytes; expected %u: compile "
                "it again",
                revision ? "version" : "draft", need->id, need->size, size);
            return false;
        }
    }
    return true;
}

static bool interfaces_fit(tn__plugin *plugin)
{
    uint64_t mark = tn_error_mark();

    return tn__interfaces_check(plugin) == TN_OK || refused_by(plugin, mark);
}

static bool query_answered(tn__plugin *plugin, tn_plugin_query_fn *query, tn_plugin_info *info)
{
    tn_error error = { 0 };
    uint64_t mark = tn_error_mark();
    const char *before = tn__error_plugin(plugin->file);
    tn_log(TN_LOG_DEBUG, "asking %s", plugin->file);
    tn_status status = query(tn__host_info(), info, &error);
    tn__error_plugin(before);
    tn_error_restore(mark);
    if (status == TN_OK && TN_HAS(info, tn_plugin_info, needs) && info->head.size <= sizeof *info)
        return true;
    if (status == TN_OK) {
        tn__plugin_outcome(plugin, TN_OUTCOME_REFUSED, TN_STAGE_VERSION, TN_ERR_VERSION,
                           "query: tn_plugin_info: wrong size, got %u bytes; expected %u to %u",
                           info->head.size, (unsigned)LEAST(tn_plugin_info, needs),
                           (unsigned)sizeof *info);
        return false;
    }
    error.message[sizeof error.message - 1] = 0;
    bool version = status == TN_ERR_VERSION, refused = version || status == TN_ERR_REFUSED;
    tn__plugin_outcome(plugin,
                       status == TN_ERR_UNAVAILABLE ? TN_OUTCOME_NOT_APPLICABLE
                       : refused                    ? TN_OUTCOME_REFUSED
                                                    : TN_OUTCOME_FAILED,
                       version ? TN_STAGE_VERSION : TN_STAGE_QUERY,
                       status > 0 && status < TN_ERR_COUNT ? status : TN_ERR_RUNTIME, "%s (%s)",
                       error.message[0] ? error.message : "query: failed without a message",
                       tn_status_name(status));
    return false;
}

/* Asks TENON_PLUGINS; `id` is NULL before the plugin has been asked. */
static bool allowed(tn__plugin *plugin, const char *id)
{
    tn__plugin_private *own = plugin->private;
    own->denied = !tn__plugin_allowed(own->name, id);
    if (own->denied)
        tn__plugin_outcome(plugin, TN_OUTCOME_REFUSED, TN_STAGE_FOUND, TN_ERR_REFUSED,
                           "TENON_PLUGINS=%s excludes %q", tn_env_get("TENON_PLUGINS"),
                           id ? id : own->name);
    return !own->denied;
}

void tn__plugin_ask(tn__plugin *plugin, tn_plugin_query_fn *query)
{
    tn_plugin_info info = { TN_HEAD(tn_plugin_info) };
    plugin->private->query = query;
    plugin->report.stage = TN_STAGE_QUERY;
    if (!query_answered(plugin, query, &info) || !abi_fits(plugin, &info.head, "query") ||
        !descriptor_taken(plugin, info.plugin) || !reserved_null(plugin, &info, plugin->plugin) ||
        !build_fits(plugin, info.build) || !needs_fit(plugin, info.needs) ||
        !interfaces_fit(plugin) || !allowed(plugin, plugin->id))
        return;
    tn__plugin *other = tn__plugin_by_id(plugin->id);
    if (other) {
        tn__plugin_outcome(plugin, TN_OUTCOME_REFUSED, TN_STAGE_VERSION, TN_ERR_REFUSED,
                           "id %q: in use by %s (version %s), which was found first", plugin->id,
                           other->file, other->version);
        return;
    }
    plugin->report.stage = TN_STAGE_VERSION;
    plugin->private->negotiated = true;
    if (!tn__plugin_options(plugin))
        plugin->private->negotiated = false;
}

static void start_over(tn__plugin *plugin, tn_stage stage)
{
    plugin->private->again = false;
    plugin->report.outcome = TN_OUTCOME_OK;
    plugin->report.stage = (int32_t)stage;
    plugin->report.reason = "";
    plugin->private->code = TN_OK;
    atomic_store_explicit(&plugin->active, 0, memory_order_release);
}

/* Returns whether loading must be tried again because the plugin did not load and host memory has
 * run out since `failures` was read. If so, records a failure. */
static bool again_after(tn__plugin *plugin, uint64_t failures)
{
    if (plugin->report.outcome == TN_OUTCOME_OK || tn__memory_failures() == failures)
        return false;
    plugin->private->again = true;
    tn_fail(TN_ERR_MEMORY, "plugin file %s: not loaded: %s", plugin->file, plugin->report.reason);
    return true;
}

tn_status tn__load_static(const char *name, tn_plugin_query_fn *query)
{
    tn__plugin *plugin = NULL;
    uint64_t failures = tn__memory_failures();
    for (tn__plugin *p = tn__plugins_first; p && !plugin; p = p->next)
        plugin = p->private->query == query ? p : NULL;
    if (plugin && !plugin->private->again)
        return TN_OK;
    if (!plugin)
        plugin = tn__plugin_add("(static)");
    if (!plugin)
        return TN_ERR_MEMORY;
    tn_snprint(plugin->private->name, sizeof plugin->private->name, "%s", name);
    start_over(plugin, TN_STAGE_FOUND);
    if (allowed(plugin, NULL))
        tn__plugin_ask(plugin, query);
    plugin->private->query = query;
    return again_after(plugin, failures) ? TN_ERR_MEMORY : TN_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Checks kind, permissions and owner of a file. */
static bool file_acceptable(tn__plugin *plugin, const struct stat *at)
{
    char words[400], folder[PATH_MAX];
    struct stat around;
    if (!S_ISREG(at->st_mode)) {
        tn__plugin_outcome(plugin, TN_OUTCOME_FAILED, TN_STAGE_FOUND, TN_ERR_IO,
                           "wrong kind of file, got %s; expected a shared object",
                           S_ISDIR(at->st_mode) ? "a folder" : "something else");
        return false;
    }
    if (faccessat(AT_FDCWD, plugin->file, R_OK, AT_EACCESS)) {
        tn__plugin_outcome(plugin, TN_OUTCOME_FAILED, TN_STAGE_READABLE, TN_ERR_IO,
                           "cannot be read: %s", strerror(errno));
        return false;
    }
    plugin->report.stage = TN_STAGE_OWNER;
    tn_snprint(folder, sizeof folder, "%s", plugin->file);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    if (!tn__file_check_owner(at, "file", words, sizeof words) ||
        (!stat(folder, &around) &&
         !tn__file_check_owner(&around, "folder that contains it", words, sizeof words)) ||
        !tn__file_check_above(folder, words, sizeof words)) {
        tn__plugin_outcome(plugin, TN_OUTCOME_REFUSED, TN_STAGE_OWNER, TN_ERR_REFUSED, "%s", words);
        return false;
    }
    return true;
}

static tn__plugin *line_for(const char *path, const char *real)
{
    tn__plugin *plugin = tn__plugin_by_file(path);
    if (!plugin && real)
        plugin = tn__plugin_by_file(real);
    return plugin;
}

/* Returns NULL if host memory ran out; the next discovery tries the file again. */
static tn__plugin *map_and_ask(tn__plugin *plugin)
{
    uint64_t failures = tn__memory_failures();
    tn_plugin_query_fn *query = map(plugin);
    if (query)
        tn__plugin_ask(plugin, query);
    return again_after(plugin, failures) ? NULL : plugin;
}

static tn__plugin *load_again(tn__plugin *plugin)
{
    start_over(plugin, TN_STAGE_DLOPEN);
    return map_and_ask(plugin);
}

tn__plugin *tn__load_file(const char *path)
{
    char real[PATH_MAX];
    struct stat at;
    bool resolved = realpath(path, real) != NULL;
    int why = errno;
    tn__plugin *plugin = line_for(path, resolved ? real : NULL), *twin = NULL;
    bool second = plugin && resolved && strcmp(path, real) && !strcmp(plugin->file, real);
    if (plugin && plugin->private->again)
        return load_again(plugin);
    if (plugin && !second)
        return plugin;
    if (resolved && !stat(real, &at))
        twin = tn__plugin_by_inode(&at);
    plugin = tn__plugin_add(twin ? path : resolved ? real : path);
    if (!plugin)
        return NULL;
    if (!resolved) {
        tn__plugin_outcome(plugin, TN_OUTCOME_FAILED, TN_STAGE_FOUND, TN_ERR_IO,
                           "cannot be found: %s", strerror(why));
        return plugin;
    }
    if (twin) {
        tn__plugin_outcome(plugin, TN_OUTCOME_REFUSED, TN_STAGE_FOUND, TN_ERR_REFUSED,
                           "same file as %s, which is in the report already", twin->file);
        return plugin;
    }
    plugin->private->device = (uint64_t)at.st_dev;
    plugin->private->inode = (uint64_t)at.st_ino;
    tn__plugin_stem(path, plugin->private->name, sizeof plugin->private->name);
    if (!allowed(plugin, NULL) || !file_acceptable(plugin, &at))
        return plugin;
    plugin->report.stage = TN_STAGE_DLOPEN;
    return map_and_ask(plugin);
}
