/* SPDX-License-Identifier: MIT
 *
 * The parameters that are trained: freezes the others. */
#include "train.h"

#include <fnmatch.h>
#include <string.h>

enum { PATTERN_MOST = 256 };

/* Returns whether a pattern fits the path of a parameter, or that of a module above it. */
static bool fits(const char *pattern, const char *path)
{
    char part[1024];

    tn_snprint(part, sizeof part, "%s", path);
    for (;;) {
        char *dot;

        if (fnmatch(pattern, part, 0) == 0)
            return true;
        dot = strrchr(part, '.');
        if (dot == NULL)
            return false;
        *dot = '\0';
    }
}

/* Copies the next pattern of a list, and moves on. Returns false after the last one. */
static bool next_pattern(const char **list, char *out)
{
    size_t length = strcspn(*list, ",");

    if (**list == '\0')
        return false;
    snprintf(out, PATTERN_MOST, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return true;
}

/* Sets requires_grad of each parameter that a pattern fits. Fails if a pattern fits no parameter.
 */
static tn_status apply(run *r, setting which, bool learns)
{
    const char *list = setting_text(r->set, which);
    char pattern[PATTERN_MOST];
    tn_status status = TN_OK;

    while (list != NULL && status == TN_OK && next_pattern(&list, pattern)) {
        tn_walk *walk = tn_walk_begin(r->model, TN_SLOT_PARAMETER, NULL);
        const tn_visit *visit;
        int64_t found = 0;

        if (walk == NULL)
            return tn_error_last_code();
        while (status == TN_OK && (visit = tn_walk_next(walk)) != NULL) {
            if (!fits(pattern, visit->path))
                continue;
            found++;
            status = tn_tensor_set_requires_grad(visit->tensor, learns);
        }
        tn_walk_end(walk);
        if (status == TN_OK && found == 0)
            status = tn_fail(
                TN_ERR_KEY,
                "--%s: no parameter or module fits %q; `tenon summary` prints the names",
                settings_row(which)->name, pattern);
    }
    return status;
}

/* Freezes all parameters that are not below the head. */
static tn_status freeze_body(run *r)
{
    size_t length = strlen(r->head);
    tn_walk *walk = tn_walk_begin(r->model, TN_SLOT_PARAMETER, NULL);
    tn_status status = walk != NULL ? TN_OK : tn_error_last_code();
    const tn_visit *visit;

    while (status == TN_OK && (visit = tn_walk_next(walk)) != NULL)
        if (length > 0 &&
            (strncmp(visit->path, r->head, length) != 0 || visit->path[length] != '.'))
            status = tn_tensor_set_requires_grad(visit->tensor, false);
    tn_walk_end(walk);
    return status;
}

/* Lists the parameters that learn. */
static tn_status list(run *r)
{
    tn_walk *walk = tn_walk_begin(r->model, TN_SLOT_PARAMETER, NULL);
    int64_t count = tn_module_parameter_count(r->model);
    const tn_visit *visit;

    r->learning = walk != NULL ? tn_malloc((size_t)(count + 1) * sizeof(tn_tensor *)) : NULL;
    while (r->learning != NULL && (visit = tn_walk_next(walk)) != NULL)
        if (tn_tensor_requires_grad(visit->tensor))
            r->learning[r->n_learning++] = visit->tensor;
    tn_walk_end(walk);
    if (r->learning == NULL)
        return tn_error_last_code();
    if (r->n_learning == 0)
        return tn_fail(TN_ERR_VALUE,
                       "model: no parameter learns, got %lld frozen ones; expected "
                       "one or more",
                       (long long)count);
    return TN_OK;
}

tn_status freeze_all(run *r)
{
    tn_status status = r->head != NULL ? freeze_body(r) : TN_OK;

    if (status == TN_OK)
        status = apply(r, SET_UNFREEZE, true);
    if (status == TN_OK)
        status = apply(r, SET_FREEZE, false);
    return status == TN_OK ? list(r) : status;
}

/* Returns whether a module without children has parameters, and all of them are frozen. */
static bool is_frozen(tn_module *module)
{
    const tn_walk_options options = { .size = sizeof options, .flags = TN_WALK_DIRECT };
    tn_walk *walk;
    const tn_visit *visit;
    bool some = false, frozen = true;

    if (tn_module_child_count(module) > 0)
        return false;
    walk = tn_walk_begin(module, TN_SLOT_PARAMETER, &options);
    while ((visit = tn_walk_next(walk)) != NULL) {
        some = true;
        frozen &= !tn_tensor_requires_grad(visit->tensor);
    }
    tn_walk_end(walk);
    return some && frozen;
}

tn_status freeze_mode(run *r)
{
    tn_status status = tn_module_train(r->model, true);
    tn_walk *walk = status == TN_OK ? tn_walk_begin(r->model, TN_SLOT_CHILD, NULL) : NULL;
    const tn_visit *visit;

    if (walk == NULL)
        return tn_error_last_code();
    while (status == TN_OK && (visit = tn_walk_next(walk)) != NULL)
        if (is_frozen(visit->module))
            status = tn_module_train(visit->module, false);
    tn_walk_end(walk);
    return status;
}
