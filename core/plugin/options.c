/* SPDX-License-Identifier: MIT
 *
 * Options of plugins, read from environment variables TENON_<LAST PART OF ID>_<OPTION> when the
 * plugin is queried. No option is ignored silently: if a value is not accepted, the plugin is
 * refused, and there is a warning about variables that no plugin reads. */
#include "core/plugin/private.h"

#include <ctype.h>
#include <unistd.h>

#include <tenon/observer.h>

static void upper(const char *from, char *to, size_t size)
{
    size_t n = 0;
    for (; from[n] && n + 1 < size; n++)
        to[n] = (char)(isalnum((unsigned char)from[n]) ? toupper((unsigned char)from[n]) : '_');
    to[n] = 0;
}

/* Writes the prefix of a plugin's variables: "TENON_SWISH_" for the id "org.example.swish". */
static void prefix_of(const tn__plugin *plugin, char *to, size_t size)
{
    char part[64];
    const char *dot = strrchr(plugin->id, '.');
    upper(dot ? dot + 1 : plugin->id, part, sizeof part);
    tn_snprint(to, size, "TENON_%s_", part);
}

struct given {
    tn_value values[32];
    const char *names[32];
    tn__spec *specs[32];
    int64_t count;
};

static tn_status take(struct given *given, const tn_option *row, const char *variable,
                      const char *text)
{
    int64_t i = given->count;
    if (i == tn__countof(given->values))
        return tn_fail(TN_ERR_VALUE, "%s: too many options; expected at most %d", variable,
                       (int)tn__countof(given->values));
    given->specs[i] = NULL;
    if (row->kind == TN_OPTION_KIND_STRING) {
        given->values[i] = tn_value_string(text);
    } else {
        tn__text wrapped = { 0 };
        tn__text_add(&wrapped, "Option(%s)", text);
        char *spec_text = tn__text_take(&wrapped);
        tn__spec *spec = spec_text ? tn__spec_parse(spec_text) : NULL;
        tn_free(spec_text);
        if (!spec)
            return tn_error_prefix("%s=%s: ", variable, text);
        given->specs[i] = spec;
        given->count++;
        if (spec->count != 1)
            return tn_fail(TN_ERR_VALUE, "%s=%s: wrong number of values, got %lld; expected one",
                           variable, text, (long long)spec->count);
        if (spec->names[0])
            return tn_fail(TN_ERR_VALUE, "%s=%s: it has a name, got %q; expected only a value",
                           variable, text, spec->names[0]);
        given->values[i] = spec->values[0];
        given->names[i] = row->name;
        return TN_OK;
    }
    given->names[i] = row->name;
    given->count++;
    return TN_OK;
}

/* Writes the plugin and the variables that were given, for messages. */
static void name_variables(const tn__plugin *plugin, const struct given *given, char *to,
                           size_t size)
{
    char prefix[96], part[64];
    prefix_of(plugin, prefix, sizeof prefix);
    if (given->count == 0)
        tn_snprint(to, size, "plugin %s, variables %s*", plugin->id, prefix);
    else
        tn_snprint(to, size, "plugin %s", plugin->id);
    for (int64_t i = 0; i < given->count; i++) {
        size_t used = strlen(to);
        upper(given->names[i], part, sizeof part);
        tn_snprint(to + used, size - used, ", %s%s", prefix, part);
    }
}

/* Stores the options that were given, and the defaults of the others, in the plugin's
 * options_data. */
static tn_status fill(tn__plugin *plugin, const struct given *given)
{
    char what[256];
    name_variables(plugin, given, what, sizeof what);
    return tn__options_fill(plugin->private->descriptor.options,
                            plugin->private->descriptor.options_data, what, NULL, given->values,
                            given->names, NULL, given->count, &plugin->private->options);
}

/* Adds the row that `tenon env` shows. The default goes into the help text, because a variable that
 * is not set has no value. */
static tn_status add_row(tn__plugin *plugin, const tn_option *row, const char *variable)
{
    const char *help = row->help ? row->help : "";
    int64_t length = tn_snprint(NULL, 0, "%s (default: %s)", help, row->def ? row->def : "");
    char *text = row->def && length > 0 ? tn__plugin_alloc(plugin, (size_t)length + 1) : NULL;
    if (row->def && !text)
        return TN_ERR_MEMORY;
    if (text)
        tn_snprint(text, (size_t)length + 1, "%s (default: %s)", help, row->def);
    return tn__env_add(variable, text ? text : help);
}

/* Writes the name of an option's variable. */
static void variable_of(const tn__plugin *plugin, const tn_option *row, char *to, size_t size)
{
    char prefix[80], part[64];
    prefix_of(plugin, prefix, sizeof prefix);
    upper(row->name, part, sizeof part);
    tn_snprint(to, size, "%s%s", prefix, part);
}

/* All variables become known first: a wrong value of one does not make the others unknown. */
static tn_status read_all(tn__plugin *plugin, struct given *given)
{
    const tn_plugin *own = &plugin->private->descriptor;
    char variable[160];
    tn_status status = TN_OK;
    for (const tn_option *row = own->options; row->name && row->kind && status == TN_OK; row++) {
        variable_of(plugin, row, variable, sizeof variable);
        status = add_row(plugin, row, variable);
    }
    for (const tn_option *row = own->options; row->name && row->kind && status == TN_OK; row++) {
        const char *text = NULL;
        variable_of(plugin, row, variable, sizeof variable);
        status = tn__env_read(variable, &text);
        if (status == TN_OK && text)
            status = take(given, row, variable, text);
    }
    return status;
}

bool tn__plugin_options(tn__plugin *plugin)
{
    const tn_plugin *own = &plugin->private->descriptor;
    struct given given = { .count = 0 };
    char words[800], what[256];
    if (!own->options)
        return true;
    uint64_t mark = tn_error_mark();
    tn_snprint(what, sizeof what, "plugin %s", plugin->id);
    tn_status status = tn__options_check(own->options, 0, tn__address_left(own->options_data),
                                         what);
    if (status == TN_OK)
        status = own->options_data
                     ? read_all(plugin, &given)
                     : tn_fail(TN_ERR_VALUE, "options_data: it is NULL; expected a struct for the "
                                             "options");
    if (status == TN_OK)
        status = fill(plugin, &given);
    for (int64_t i = 0; i < given.count; i++)
        tn__spec_free(given.specs[i]);
    if (status == TN_OK)
        return true;
    tn__report_take_words(mark, words, sizeof words);
    tn__plugin_outcome(plugin, status == TN_ERR_MEMORY ? TN_OUTCOME_FAILED : TN_OUTCOME_REFUSED,
                       TN_STAGE_VERSION, status, "%s", words);
    return false;
}

/* ---- variables that nothing reads ------------------------------------------------------------ */

static void warn(const char *name)
{
    const char *names[256];
    int64_t count = tn_env_count(), used = 0;
    tn_env_row row;
    for (int64_t i = 0; i < count && used < tn__countof(names); i++)
        if (tn_env_at(i, &row) == TN_OK)
            names[used++] = row.name;
    const char *near = tn__name_nearest(name, names, used);
    tn_log(TN_LOG_WARNING,
           "the environment variable %s is unknown and has no effect%s%s (`tenon env` lists the "
           "known ones)",
           name, near ? "; nearest: " : "", near ? near : "");
}

/* Warns about an unknown word in TENON_MATH, which would have no effect. Operators read the
 * variable later. */
static void warn_of_math(void)
{
    const char *math = tn_env_get("TENON_MATH");
    if (math && strcmp(math, "exact") && strcmp(math, "default") && strcmp(math, "fast"))
        tn_log(TN_LOG_WARNING,
               "TENON_MATH=%q is unknown; expected exact, default or fast; default "
               "is used",
               math);
}

/* Warns about an unknown device in TENON_FALLBACK now, because the variable is used only when a
 * device lacks an operator, which may be much later. */
static void warn_of_fallback(void)
{
    const char *device = tn_env_get("TENON_FALLBACK");
    enum { NEAREST_AMONG = 64 };
    const char *names[NEAREST_AMONG];
    char name[64];
    const tn__kind *devices = tn__kind_of(TN_KIND_tn_backend_def);
    int64_t count = 0;
    if (!device || !strcmp(device, "error"))
        return;
    tn_snprint(name, sizeof name, "%.*s", (int)strcspn(device, ":"), device);
    for (; count < NEAREST_AMONG && (names[count] = devices->name_at(count)); count++)
        if (!strcmp(names[count], name))
            return;
    const char *near = tn__name_nearest(name, names, count);
    tn_log(TN_LOG_WARNING,
           "TENON_FALLBACK=%q is neither error nor a device that a plugin provides%s%s%s", device,
           near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static bool is_profiler(const tn_observer_def *observer)
{
    return TN_HAS(observer, tn_observer_def, flags) &&
           (observer->flags & TN_OBSERVER_PROFILER) != 0;
}

/* Returns whether a profiler is among the descriptors that a plugin hands over. */
static bool has_profiler(const tn_plugin *own)
{
    for (int64_t i = 0; own && i < own->n_contributions; i++) {
        const tn_observer_def *observer = own->contributions[i];
        if (observer && observer->head.kind == TN_KIND_tn_observer_def && is_profiler(observer))
            return true;
    }
    return false;
}

/* Warns if there is no observer for TENON_PROFILE: nothing would be written. If a plugin with one
 * was refused, its line of the load report says why. */
static void warn_of_profile(void)
{
    const tn__entry *const *entries;
    int64_t count = tn__registry_all(TN_KIND_tn_observer_def, &entries);
    tn__text line = { 0 };

    if (tn_env_get("TENON_PROFILE") == NULL)
        return;
    while (count > 0 && !is_profiler((const tn_observer_def *)entries[count - 1]->contribution))
        count--;
    if (count > 0)
        return;
    tn__plugins_lock();
    for (const tn__plugin *p = tn__plugins_first; p && !line.length; p = p->next)
        if ((p->report.outcome != TN_OUTCOME_OK || p->report.refused) && has_profiler(p->plugin))
            tn__plugin_line(p, &line);
    tn__plugins_unlock();
    tn_log(TN_LOG_WARNING, "TENON_PROFILE is set, but %s",
           line.failed   ? "the profiler was not loaded"
           : line.length ? line.at
                         : "no plugin provides a profiler");
    tn__text_free(&line);
}

void tn__options_warn_unknown(void)
{
    char name[128];
    if (!tn__env_trusted())
        return;
    warn_of_math();
    warn_of_fallback();
    warn_of_profile();
    for (char **at = environ; at && *at; at++) {
        size_t length = strcspn(*at, "=");
        if (strncmp(*at, "TENON_", 6) || !strncmp(*at, "TENON_TEST_", 11) ||
            length >= sizeof name || tn__env_known(*at, length))
            continue;
        memcpy(name, *at, length);
        name[length] = 0;
        warn(name);
    }
}
