/* SPDX-License-Identifier: MIT
 *
 * Anomaly mode: nodes record the module in whose call they were made. A walk that finds a NaN ends
 * with an error that names the operator, its inputs, and the module. */
#include <math.h>

#include "core/grad/private.h"

tn__where_writer *_Atomic tn__anomaly_where;

bool tn_anomaly_enabled(void)
{
    return tn__anomaly_on();
}

tn_status tn_anomaly_begin(bool enabled)
{
    return tn__mode_begin(TN__MODE_ANOMALY, &tn__anomaly_depth, &tn__anomaly_here, enabled,
                          "tn_anomaly_begin");
}

void tn_anomaly_end(void)
{
    tn__mode_end(TN__MODE_ANOMALY, &tn__anomaly_depth, &tn__anomaly_here, "tn_anomaly_end");
}

char *tn__anomaly_note(void)
{
    tn__where_writer *where = atomic_load_explicit(&tn__anomaly_where, memory_order_acquire);
    tn__text text = { 0 };

    if (where == NULL)
        return NULL;
    where(&text);
    if (text.length == 0 || text.failed) {
        tn__text_free(&text);
        return NULL;
    }
    tn__text_put(&text, "", 1);
    return text.at;
}

/* ---- looking for NaN ---- */

static bool is_nan(tn_dtype dtype, const char *at)
{
    union {
        uint16_t u16;
        float f32;
        double f64;
    } u;

    memcpy(&u, at, tn_dtype_size(dtype) < sizeof u ? tn_dtype_size(dtype) : sizeof u);
    switch (dtype) {
    case TN_F16: return (u.u16 & 0x7c00) == 0x7c00 && (u.u16 & 0x3ff) != 0;
    case TN_BF16: return (u.u16 & 0x7f80) == 0x7f80 && (u.u16 & 0x7f) != 0;
    case TN_F32: return isnan(u.f32);
    case TN_F64: return isnan(u.f64);
    default: return false;
    }
}

/* Searches all elements for a NaN. Returns 1 and sets *place to the index of the first, 0 if there
 * is none, -1 and sets the error on failure. */
static int find_nan(const tn_tensor *tensor, int64_t *place)
{
    tn_dtype dtype = (tn_dtype)tensor->dtype, part = dtype == TN_C64    ? TN_F32
                                                     : dtype == TN_C128 ? TN_F64
                                                                        : dtype;
    size_t size = tn_dtype_size(part), bytes = (size_t)tensor->numel * tn_dtype_size(dtype);
    char *values;
    int found = 0;

    if (bytes == 0 || !tn_device_has_memory(tensor->device))
        return 0;
    values = tn_malloc(bytes);
    if (values == NULL || tn_tensor_copy_out(tensor, values, bytes) != TN_OK) {
        tn_free(values);
        return -1;
    }
    for (size_t at = 0; at < bytes && !found; at += size)
        if (is_nan(part, values + at)) {
            *place = (int64_t)(at / tn_dtype_size(dtype));
            found = 1;
        }
    tn_free(values);
    return found;
}

/* Writes the call that made a node, such as "log(float32[3])". */
static void write_call(const tn__node *node, tn__text *text)
{
    tn__text_add(text, "%s(", node->name);
    for (int32_t i = 0; i < node->n_in; i++) {
        const tn__seen *seen = &node->seen[i];

        if (i > 0)
            tn__text_add(text, ", ");
        if (seen->ndim < 0) {
            tn__text_add(text, "None");
            continue;
        }
        tn__text_add(text, "%s", tn_dtype_name((tn_dtype)seen->dtype));
        tn__tensor_text_ints(text, (tn_ints){ seen->shape, seen->ndim });
    }
    tn__text_add(text, ")");
}

tn_status tn__anomaly_look(const tn__node *node, uint32_t need, tn_tensor *const *gin)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        tn__text text = { 0 };
        int64_t place = 0;
        tn_status status;
        int found;

        if ((need >> (i < 31 ? i : 31) & 1) == 0 || gin[i] == NULL || tn__is_none(gin[i]))
            continue;
        found = find_nan(gin[i], &place);
        if (found < 0)
            return tn_error_last_code();
        if (!found)
            continue;
        write_call(node, &text);
        tn__text_put(&text, "", 1);
        status = tn_fail(
            TN_ERR_RUNTIME,
            "derivative of %s: returned nan for input %d, element %lld; the forward call was "
            "%s%s%s",
            node->name, (int)i, (long long)place, text.failed ? node->name : text.at,
            node->where != NULL ? " in " : "", node->where != NULL ? node->where : "");
        tn__text_free(&text);
        return status;
    }
    return TN_OK;
}
