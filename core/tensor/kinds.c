/* SPDX-License-Identifier: MIT
 *
 * The kind of contributions that core/tensor uses: backends. */
#include "core/plugin/kind.h"
#include "core/tensor/internal.h"

/* core/tensor/device.c checks the names and members of a backend. */
static tn_status names(const tn_head *copy)
{
    (void)copy;
    return TN_OK;
}

static tn_status add(const tn__kind *kind, tn_head *copy, tn__plugin *plugin)
{
    (void)kind;
    return tn__device_add_backend((const tn_backend_def *)copy, plugin);
}

static int64_t count(void)
{
    return tn__device_type_count();
}

static const char *name_at(int64_t index)
{
    const tn__device_type *type = tn__device_type_at((int32_t)index);

    return type != NULL ? type->backend.type : NULL;
}

static const tn_head *find(const char *name, tn__plugin **plugin)
{
    const tn__device_type *type = tn__device_type_find(name);

    if (type == NULL) {
        tn__registry_unknown(TN_KIND_tn_backend_def, name);
        return NULL;
    }
    *plugin = type->plugin;
    return &type->backend.head;
}

static const tn__kind_member members[] = {
    TN__KIND_MEMBER(tn_backend_def, flags,
                    TN_BACKEND_HOST_MEMORY | TN_BACKEND_NO_MEMORY | TN_BACKEND_ASYNC |
                        TN_BACKEND_AFTER_FORK | TN_BACKEND_PEER | TN_BACKEND_CHANNELS_LAST),
    TN__KIND_MEMBER(tn_backend_def, reserved, 0),
    { 0 },
};

const tn__kind tn__kind_backend = {
    TN__KIND(tn_backend_def, type, copy),
    .word = "device",
    .what = "device type",
    .help = offsetof(tn_backend_def, help),
    .pass = TN__PASS_BACKENDS,
    .stays = true,
    .members = members,
    .names = names,
    .add = add,
    .count = count,
    .name_at = name_at,
    .find = find,
};
