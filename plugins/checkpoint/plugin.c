/* SPDX-License-Identifier: MIT
 *
 * The plugin tenon.checkpoint, which provides the functions of <tenon/checkpoint.h>. */
#include "checkpoint.h"

#include <stdarg.h>
#include <string.h>

bool checkpoint_not_null(const void *object, const char *what)
{
    return object != NULL || tn_error_null(what) == TN_OK;
}

bool checkpoint_given(bool given, const char *what)
{
    return given || tn_fail(TN_ERR_VALUE, "%s: it is NULL; expected a pointer", what) == TN_OK;
}

tn_status checkpoint_grow(void **at, int64_t *capacity, size_t size)
{
    int64_t wanted = *capacity > 0 ? 2 * *capacity : 8;
    void *grown = tn_realloc(*at, (size_t)wanted * size);

    if (grown == NULL)
        return TN_ERR_MEMORY;
    *at = grown;
    *capacity = wanted;
    return TN_OK;
}

tn_status checkpoint_append(char **text, const char *format, ...)
{
    size_t before = *text != NULL ? strlen(*text) : 0;
    va_list args;
    int64_t length;
    char *grown;

    va_start(args, format);
    length = tn_snprintv(NULL, 0, format, args);
    va_end(args);
    grown = tn_realloc(*text, before + (size_t)length + 1);
    if (grown == NULL)
        return TN_ERR_MEMORY;
    va_start(args, format);
    tn_snprintv(grown + before, (size_t)length + 1, format, args);
    va_end(args);
    *text = grown;
    return TN_OK;
}

static const tn_checkpoint_api api = {
    objects_new,           objects_drop,       objects_add_module, objects_add_optimizer,
    objects_add_scheduler, objects_add_loader, objects_add_plugin, objects_set,
    objects_get,           saving_save,        restoring_read,     restoring_restore,
    restoring_load,
};

static const tn_interface_row interfaces[] = {
    { "tenon.checkpoint.api", 0, sizeof api, &api, NULL },
    { NULL, 0, 0, NULL, NULL },
};

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin), .id = "tenon.checkpoint",
    .version = "0.1.0", .help = "saves and restores whole trainings",
    .license = "MIT",   .interfaces = interfaces,
};
TN_PLUGIN_EXPORT(plugin);
