/* SPDX-License-Identifier: MIT
 *
 * TENON_PLUGINS: which plugins may load, and the messages when this list, or the plugin path,
 * leaves no plugin. */
#include "core/plugin/private.h"

#include <ctype.h>
#include <fnmatch.h>

/* One pattern of the list, without surrounding spaces and without its `!`. */
struct pattern {
    char text[256];
    bool deny;
};

/* Removes the next pattern from the list. Returns false at the end of the list. A pattern that is
 * longer than `text` is cut; it is longer than any name of a plugin, so it matches none. */
static bool next_pattern(const char **list, struct pattern *pattern)
{
    while (**list) {
        const char *from = *list;
        size_t length = strcspn(from, ",");
        *list += length + (from[length] == ',');
        while (length && isspace((unsigned char)*from))
            from++, length--;
        while (length && isspace((unsigned char)from[length - 1]))
            length--;
        pattern->deny = length && *from == '!';
        from += pattern->deny, length -= pattern->deny;
        if (!length)
            continue;
        length = length < sizeof pattern->text ? length : sizeof pattern->text - 1;
        memcpy(pattern->text, from, length);
        pattern->text[length] = 0;
        return true;
    }
    return false;
}

/* The list looks like "backend-*,ops,!backend-cuda". Patterns match names and ids as the shell
 * matches file names; `!` denies. The last pattern that matches decides. A plugin that no pattern
 * matches is allowed only if the list consists of denials. The id is NULL until the plugin has been
 * asked; before that, a pattern with a dot that does not deny may match. */
bool tn__filter_allows(const char *list, const char *name, const char *id)
{
    struct pattern pattern;
    bool allowed = true, denials_only = true, fitted = false;
    while (next_pattern(&list, &pattern)) {
        denials_only = denials_only && pattern.deny;
        if (!fnmatch(pattern.text, name, 0) ||
            (id ? !fnmatch(pattern.text, id, 0) : !pattern.deny && strchr(pattern.text, '.'))) {
            allowed = !pattern.deny;
            fitted = true;
        }
    }
    return fitted ? allowed : denials_only;
}

bool tn__plugin_allowed(const char *name, const char *id)
{
    const char *list = tn_env_get("TENON_PLUGINS");
    return !list || tn__filter_allows(list, name, id);
}

void tn__plugin_stem(const char *path, char *name, size_t size)
{
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    base += !strncmp(base, "lib", 3) ? 3 : 0;
    const char *dot = strstr(base, ".so");
    tn_snprint(name, size, "%.*s", (int)(dot ? dot - base : (ptrdiff_t)strlen(base)), base);
}

/* ---- messages -------------------------------------------------------------------------------- */

enum { NAMES = 256 };

/* Copies the names and ids of all plugins, at most NAMES. Returns their number. */
static int64_t all_names(char names[NAMES][64])
{
    int64_t count = 0;
    for (tn__plugin *p = tn__plugins_first; p && count < NAMES - 1; p = p->next) {
        if (p->private->name[0])
            tn_snprint(names[count++], sizeof names[0], "%s", p->private->name);
        if (p->id && p->id[0])
            tn_snprint(names[count++], sizeof names[0], "%s", p->id);
    }
    return count;
}

/* Warns about names that no plugin has, because they are probably misspelt. A glob that matches
 * nothing is not reported. */
void tn__filter_warn(void)
{
    const char *list = tn_env_get("TENON_PLUGINS"), *near[NAMES];
    char names[NAMES][64];
    struct pattern pattern;
    if (!list)
        return;
    tn__plugins_lock();
    int64_t count = all_names(names);
    tn__plugins_unlock();
    for (int64_t i = 0; i < count; i++)
        near[i] = names[i];
    while (next_pattern(&list, &pattern)) {
        bool fits = strpbrk(pattern.text, "*?[") != NULL;
        for (int64_t i = 0; i < count && !fits; i++)
            fits = !fnmatch(pattern.text, names[i], 0);
        const char *meant = fits ? NULL : tn__name_nearest(pattern.text, near, count);
        if (!fits)
            tn_log(TN_LOG_WARNING, "TENON_PLUGINS: no plugin is called %q%s%s%s", pattern.text,
                   meant ? "; did you mean \"" : "", meant ? meant : "", meant ? "\"?" : "");
    }
}

void tn__plugins_explain_folders(tn__text *text)
{
    tn__plugins_lock();
    for (tn__plugin *p = tn__plugins_first; p; p = p->next) {
        if (!p->private->folder)
            continue;
        tn__text_add(text, "; ");
        tn__plugin_line(p, text);
    }
    tn__plugins_unlock();
}

void tn__plugins_explain_none(tn__text *text)
{
    const char *list = tn_env_get("TENON_PLUGINS"), *path = tn_env_get("TENON_PLUGIN_PATH"),
               *more = tn_env_get("TENON_PLUGIN_PATH_ADD");
    int64_t found = 0, denied = 0, good = 0;
    tn__plugins_lock();
    for (tn__plugin *p = tn__plugins_first; p; p = p->next) {
        found += p->private->name[0] != 0;
        denied += p->private->denied;
        good += p->private->negotiated;
    }
    tn__plugins_unlock();
    if (denied)
        tn__text_add(text, "; TENON_PLUGINS=%q excludes %lld of the %lld plugin%s found", list,
                     (long long)denied, (long long)found, found == 1 ? "" : "s");
    if (!found)
        tn__text_add(text, "; no plugin file was found in %s", path ? "" : tn__plugin_folder());
    if (!found && path)
        tn__text_add(text, "TENON_PLUGIN_PATH=%q", path);
    if (!found && more)
        tn__text_add(text, " and TENON_PLUGIN_PATH_ADD=%q", more);
    if (!good && found > denied)
        tn__text_add(text, "; `tenon plugins` prints the outcome of the %lld plugin%s found",
                     (long long)found, found == 1 ? "" : "s");
    else if (found && !denied && path)
        tn__text_add(text, "; searched: TENON_PLUGIN_PATH=%q", path);
    tn__plugins_explain_folders(text);
}
