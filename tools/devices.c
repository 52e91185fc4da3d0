/* SPDX-License-Identifier: MIT
 *
 * tenon devices [NAME]: prints memory and other data of every device and why plugins cannot be used
 * or, with NAME, the properties of one device. */
#include "tool.h"

#include <string.h>

static void dtypes_json(uint64_t mask)
{
    json_begin("dtypes", '[');
    for (int d = 0; d < TN_DTYPE_COUNT; d++)
        if (mask & TN_BIT(d))
            json_text(NULL, tn_dtype_name((tn_dtype)d));
    json_end(']');
}

/* ---- properties ------------------------------------------------------------------------------ */

static void value_json(const char *name, const tn_value *value)
{
    switch (value->kind) {
    case TN_VALUE_BOOL: json_bool(name, value->as.i != 0); break;
    case TN_VALUE_INT: json_int(name, value->as.i); break;
    case TN_VALUE_FLOAT: json_float(name, value->as.f); break;
    case TN_VALUE_STRING: json_text(name, value->as.s); break;
    case TN_VALUE_LIST:
    case TN_VALUE_TUPLE:
        json_begin(name, '[');
        for (uint32_t i = 0; i < value->count; i++)
            value_json(NULL, &value->as.list[i]);
        json_end(']');
        break;
    default: json_null(name);
    }
}

/* Appends a value to `out`, cut if there is no space. Returns the new length. */
static size_t value_text(const tn_value *value, char *out, size_t used, size_t size)
{
    int64_t length = 0;

    switch (value->kind) {
    case TN_VALUE_BOOL: length = tn_snprint(out + used, size - used, "%b", value->as.i != 0); break;
    case TN_VALUE_INT:
        length = tn_snprint(out + used, size - used, "%lld", (long long)value->as.i);
        break;
    case TN_VALUE_FLOAT: length = tn_snprint(out + used, size - used, "%g", value->as.f); break;
    case TN_VALUE_STRING: length = tn_snprint(out + used, size - used, "%s", value->as.s); break;
    case TN_VALUE_LIST:
    case TN_VALUE_TUPLE:
        for (uint32_t i = 0; i < value->count && used + 3 < size; i++) {
            if (i > 0)
                used += (size_t)tn_snprint(out + used, size - used, ", ");
            used = value_text(&value->as.list[i], out, used, size);
        }
        return used;
    default: length = tn_snprint(out + used, size - used, "-");
    }
    return used + (size_t)length < size ? used + (size_t)length : size - 1;
}

/* Prints the properties of the device `name`. */
static int properties(const char *name, bool json)
{
    const tn_device *device = tn_device_find(name);
    table t = { .columns = 2, .wraps = true };
    tn_pack *pack = tn_pack_new();
    char text[8192];

    if (device == NULL || pack == NULL || tn_device_properties(device, pack) != TN_OK) {
        tn_pack_drop(pack);
        return tool_fail(NULL);
    }
    if (json) {
        json_begin(NULL, '{');
        json_text("device", tn_device_name(device));
        json_begin("properties", '{');
    } else {
        table_row(&t, "PROPERTY", "VALUE");
    }
    for (int64_t i = 0; i < tn_pack_count(pack); i++) {
        tn_value value = tn_pack_at(pack, i);

        text[0] = '\0';
        if (json)
            value_json(tn_pack_name(pack, i), &value);
        else
            table_row(&t, tn_pack_name(pack, i),
                      value_text(&value, text, 0, sizeof text) > 0 ? text : "-");
    }
    if (json) {
        json_end('}');
        json_end('}');
    } else {
        printf("%s\n\n", tn_device_name(device));
        table_print(&t);
    }
    tn_pack_drop(pack);
    return EXIT_OK;
}

/* ---- the list -------------------------------------------------------------------------------- */

static void device_json(const tn_device *device, const tn_device_info *info,
                        const tn_memory_stats *memory)
{
    json_begin(NULL, '{');
    json_text("name", tn_device_name(device));
    json_text("type", tn_device_type(device));
    json_int("index", tn_device_index(device));
    json_text("plugin", tn_registry_plugin(TN_KIND_tn_backend_def, tn_device_type(device)));
    json_text("device", info->name);
    json_text("driver", info->driver);
    json_int("compute_units", info->compute_units);
    json_int("memory_total", info->memory_total);
    json_int("memory_free", info->memory_free);
    json_int("alignment", info->alignment);
    json_bool("host_memory", tn_device_is_host(device));
    dtypes_json(info->dtypes);
    json_begin("tensors", '{');
    json_int("live", memory->live);
    json_int("cached", memory->cached);
    json_int("peak", memory->peak);
    json_int("prepared", memory->prepared);
    json_end('}');
    json_end('}');
}

static void device_row(table *t, const tn_device *device, const tn_device_info *info)
{
    char total[32], left[32], units[32];
    snprintf(units, sizeof units, "%lld", (long long)info->compute_units);
    table_row(t, tn_device_name(device), info->name, info->driver,
              info->compute_units ? units : "-",
              info->memory_total > 0 ? bytes_text(info->memory_total, total, sizeof total) : "-",
              info->memory_free >= 0 && info->memory_total > 0
                  ? bytes_text(info->memory_free, left, sizeof left)
                  : "-");
}

/* Lists the plugins that did not load, with the reason. */
static void absent(bool json)
{
    int64_t lines = tn_plugin_count(), shown = 0;
    tn_plugin_report r;
    for (int64_t i = 0; i < lines; i++) {
        if (tn_plugin_report_at(i, &r) != TN_OK || r.outcome == TN_OUTCOME_OK)
            continue;
        if (json) {
            json_begin(NULL, '{');
            report_json(&r);
            json_end('}');
            continue;
        }
        if (!shown++)
            printf("\nNot usable:\n");
        char text[2048];
        snprintf(text, sizeof text, "%s: %s at %s: %s", r.id[0] ? r.id : r.file,
                 tn_outcome_name(r.outcome), tn_stage_name(r.stage), r.reason);
        print_wrapped("  ", 2, text);
    }
}

static int run(int count, char **arguments, bool json)
{
    table t = { .columns = 6 };
    int64_t devices = count > 0 ? 0 : tn_device_count();
    if (count > 0)
        return properties(arguments[0], json);
    if (json) {
        json_begin(NULL, '{');
        json_begin("devices", '[');
    } else if (devices > 0) {
        table_row(&t, "NAME", "DEVICE", "DRIVER", "UNITS", "MEMORY", "FREE");
    }
    for (int64_t i = 0; i < devices; i++) {
        const tn_device *device = tn_device_at(i);
        tn_device_info info = { .head = { .size = sizeof info,
                                          .kind = TN_KIND_tn_device_info,
                                          .abi_major = TN_ABI_MAJOR,
                                          .abi_minor = TN_ABI_MINOR } };
        tn_memory_stats memory = { .live = 0 };
        if (!device || tn_device_describe(device, &info) != TN_OK ||
            tn_device_memory(device, &memory) != TN_OK) {
            fprintf(stderr, "tenon: %s%s%s\n", device ? tn_device_name(device) : "",
                    device ? ": " : "", tn_error_text());
            tn_error_clear();
            continue;
        }
        if (json)
            device_json(device, &info, &memory);
        else
            device_row(&t, device, &info);
    }
    if (json) {
        json_end(']');
        json_begin("not_usable", '[');
        absent(true);
        json_end(']');
        json_end('}');
    } else {
        table_print(&t);
        if (devices <= 0)
            printf("no device found\n");
        absent(false);
    }
    return devices > 0 ? EXIT_OK : EXIT_NOT_OK;
}

const command devices_command = {
    "devices",
    "[NAME]",
    "devices, their properties and memory",
    "Activates every plugin that provides a device type and lists the devices: compute units "
    "(cores, multiprocessors), total and free memory. The plugins that cannot be used follow, with "
    "the reason. With the name of a device (cuda:0), its properties: kinds of memory, priorities "
    "of streams, types, and what its backend adds (place on the bus, UUID, clock ...).\n\nExit "
    "status 1 if no device was found.",
    0,
    1,
    run,
    0,
    NULL
};
