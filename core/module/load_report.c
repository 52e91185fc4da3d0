/* SPDX-License-Identifier: MIT
 *
 * The report of loading a state: three lists of texts, and an error in PyTorch's wording. */
#include "core/base/vector.h"
#include "core/module/loading.h"

#define MESSAGE_ROOM 900 /* limit for an error text; names that do not fit are only counted */

/* ---- lists of texts -------------------------------------------------------------------------- */

int64_t tn_names_count(const tn_names *names)
{
    return tn__not_null(names, "tn_names_count: names") ? names->count : 0;
}

static bool in_range(const tn_names *names, int64_t index)
{
    if (index >= 0 && index < tn_names_count(names))
        return true;
    tn__error_index(index, tn_names_count(names), "list of names: index: ");
    return false;
}

const char *tn_names_at(const tn_names *names, int64_t index)
{
    return in_range(names, index) ? names->at[index] : NULL;
}

tn_status tn_names_add(tn_names *names, const char *name)
{
    if (names == NULL || name == NULL)
        return tn__error_null_of("tn_names_add", "names, name", names, name);
    if (!tn__vector_room(&names->at, &names->capacity, names->count + 1, sizeof *names->at))
        return TN_ERR_MEMORY;
    char *copy = tn_strdup(name);
    if (copy == NULL)
        return TN_ERR_MEMORY;
    names->at[names->count++] = copy;
    return TN_OK;
}

tn_status tn_names_remove(tn_names *names, int64_t index)
{
    if (names == NULL)
        return tn_error_null("tn_names_remove: list");
    if (!in_range(names, index))
        return TN_ERR_INDEX;
    tn_free(names->at[index]);
    names->count--;
    memmove(names->at + index, names->at + index + 1,
            (size_t)(names->count - index) * sizeof *names->at);
    return TN_OK;
}

void tn_names_clear(tn_names *names)
{
    if (!tn__not_null(names, "tn_names_clear: names"))
        return;
    for (int64_t i = 0; i < names->count; i++)
        tn_free(names->at[i]);
    names->count = 0;
}

void tn__load_report_free_names(tn_names *names)
{
    tn_names_clear(names);
    tn_free(names->at);
    *names = (tn_names){ 0 };
}

/* ---- the report ------------------------------------------------------------------------------ */

tn_load_report *tn_load_report_new(void)
{
    return tn_calloc(1, sizeof(tn_load_report));
}

void tn_load_report_drop(tn_load_report *report)
{
    if (report == NULL)
        return;
    tn__load_report_free_names(&report->missing);
    tn__load_report_free_names(&report->unexpected);
    tn__load_report_free_names(&report->errors);
    tn_free(report);
}

tn_names *tn_load_report_missing(tn_load_report *report)
{
    return tn__not_null(report, "tn_load_report_missing: report") ? &report->missing : NULL;
}

tn_names *tn_load_report_unexpected(tn_load_report *report)
{
    return tn__not_null(report, "tn_load_report_unexpected: report") ? &report->unexpected : NULL;
}

tn_names *tn_load_report_errors(tn_load_report *report)
{
    return tn__not_null(report, "tn_load_report_errors: report") ? &report->errors : NULL;
}

static void put_list(tn__text *text, const tn_names *names)
{
    for (int64_t i = 0; i < names->count; i++)
        tn__text_add(text, "%s'%s'", i > 0 ? ", " : "", names->at[i]);
}

int64_t tn_load_report_text(const tn_load_report *report, char *out, size_t size)
{
    tn__text text = { 0 };
    if (report == NULL) {
        tn_error_null("tn_load_report_text: report");
        return -1;
    }
    if (report->missing.count + report->unexpected.count == 0) {
        tn__text_add(&text, "<All keys matched successfully>");
    } else {
        tn__text_add(&text, "_IncompatibleKeys(missing_keys=[");
        put_list(&text, &report->missing);
        tn__text_add(&text, "], unexpected_keys=[");
        put_list(&text, &report->unexpected);
        tn__text_add(&text, "])");
    }
    return tn__text_give(&text, out, size);
}

/* ---- the error ------------------------------------------------------------------------------- */

/* Appends names in quotes until the message is full, then the number of names that are left out. */
static void put_names(tn__text *message, const char *title, const tn_names *names)
{
    if (names->count == 0)
        return;
    int64_t shown = 0;
    tn__text_add(message, "\n\t%s key(s) in state_dict: ", title);
    for (; shown < names->count; shown++) {
        if (message->length + strlen(names->at[shown]) + 32 > MESSAGE_ROOM)
            break;
        tn__text_add(message, "%s\"%s\"", shown > 0 ? ", " : "", names->at[shown]);
    }
    if (shown < names->count)
        tn__text_add(message, " and %lld more", (long long)(names->count - shown));
    tn__text_put(message, ". ", 2);
}

tn_status tn__load_report_fail(const tn_load_report *report, const char *type, bool strict)
{
    tn__text message = { 0 };
    tn__text_add(&message, "Error(s) in loading state_dict for %s:", type);
    if (strict) {
        put_names(&message, "Missing", &report->missing);
        put_names(&message, "Unexpected", &report->unexpected);
    }
    for (int64_t i = 0; i < report->errors.count; i++) {
        if (i > 0 && message.length + strlen(report->errors.at[i]) + 2 > MESSAGE_ROOM) {
            tn__text_add(&message, "\n\tand %lld more.", (long long)(report->errors.count - i));
            break;
        }
        tn__text_add(&message, "\n\t%s", report->errors.at[i]);
    }
    tn_status status = tn_fail(
        TN_ERR_RUNTIME, "%s",
        message.at != NULL && !message.failed ? message.at : "the state does not fit the module");
    tn__text_free(&message);
    return status;
}
