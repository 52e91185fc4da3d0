/* SPDX-License-Identifier: MIT
 *
 * Scaling of gradients, for training in float16: the loss is multiplied by a factor, so that small
 * gradients do not become zero, and the gradients are divided by it before the step. A step with
 * infinite or NaN gradients is left out, and the factor is reduced. The rules, defaults and texts
 * are those of PyTorch's GradScaler.
 *
 * These functions are compiled into the program that uses them and call operators, because the
 * library itself computes nothing. Only one thread at a time may use a scaler. */
#ifndef TENON_SCALER_H
#define TENON_SCALER_H

#include <math.h>
#include <string.h>

#include <tenon/ops.h>
#include <tenon/train.h>

TN_BEGIN_DECLS

typedef struct tn_grad_scaler_options {
    double scale;            /* the first factor */
    double growth_factor;    /* above 1 */
    double backoff_factor;   /* below 1 */
    int64_t growth_interval; /* steps without an infinite gradient after which the factor grows */
    bool enabled;            /* false: gradients are not scaled, and no step is left out */
} tn_grad_scaler_options;
#define TN_GRAD_SCALER_OPTIONS                                                                     \
    {                                                                                              \
        65536.0, 2.0, 0.5, 2000, true                                                              \
    }

/* The state of an optimizer since the last update. */
typedef struct tn_grad_scaler_row {
    const tn_optimizer *optimizer;
    bool unscaled, stepped, found_inf;
} tn_grad_scaler_row;

typedef struct tn_grad_scaler {
    tn_grad_scaler_options options;
    float scale;
    int64_t growth_tracker; /* steps since the factor changed */
    bool started;           /* tn_grad_scaler_scale was called */
    tn_grad_scaler_row *rows;
    int64_t count, room;
} tn_grad_scaler;

/* Returns a scaler. NULL options: the defaults. [owned] */
TN_ATTR(unused)
static inline tn_grad_scaler *tn_grad_scaler_new(const tn_grad_scaler_options *options)
{
    const tn_grad_scaler_options defaults = TN_GRAD_SCALER_OPTIONS;
    tn_grad_scaler *scaler;

    if (options == NULL)
        options = &defaults;
    if (options->enabled && !(options->growth_factor > 1.0)) {
        tn_fail(TN_ERR_VALUE, "tn_grad_scaler_new: The growth factor must be > 1.0, got %g",
                options->growth_factor);
        return NULL;
    }
    if (options->enabled && !(options->backoff_factor < 1.0)) {
        tn_fail(TN_ERR_VALUE, "tn_grad_scaler_new: The backoff factor must be < 1.0, got %g",
                options->backoff_factor);
        return NULL;
    }
    scaler = (tn_grad_scaler *)tn_calloc(1, sizeof *scaler);
    if (scaler != NULL) {
        scaler->options = *options;
        scaler->scale = (float)options->scale;
    }
    return scaler;
}

/* Frees a scaler; it may be NULL. */
TN_ATTR(unused) static inline void tn_grad_scaler_drop(tn_grad_scaler *scaler)
{
    if (scaler != NULL)
        tn_free(scaler->rows);
    tn_free(scaler);
}

/* Returns the factor; 1 if the scaler is not enabled. */
TN_ATTR(unused) static inline double tn_grad_scaler_get(const tn_grad_scaler *scaler)
{
    return scaler->options.enabled ? (double)scaler->scale : 1.0;
}

/* Returns the loss multiplied by the factor; the loss itself if the scaler is not enabled. The call
 * is recorded for gradients. [scoped] */
TN_ATTR(unused)
static inline tn_tensor *tn_grad_scaler_scale(tn_grad_scaler *scaler, tn_tensor *loss)
{
    if (!scaler->options.enabled)
        return loss;
    scaler->started = true;
    return tn_mul_scalar(loss, TN_SCALAR((double)scaler->scale));
}

/* Fails if tn_grad_scaler_scale was not called before. */
TN_ATTR(unused)
static inline tn_status tn_grad_scaler_check(const tn_grad_scaler *scaler, const char *who)
{
    return scaler->started
               ? TN_OK
               : tn_fail(TN_ERR_RUNTIME,
                         "Attempted %s but _scale is None.  This may indicate your script did not "
                         "use scaler.scale(loss or outputs) earlier in the iteration.",
                         who);
}

/* Returns the row of an optimizer, which is made if there is none; NULL on failure. */
TN_ATTR(unused)
static inline tn_grad_scaler_row *tn_grad_scaler_row_of(tn_grad_scaler *scaler,
                                                        const tn_optimizer *optimizer)
{
    tn_grad_scaler_row *rows;
    int64_t room = scaler->room > 0 ? scaler->room * 2 : 4;

    for (int64_t i = 0; i < scaler->count; i++)
        if (scaler->rows[i].optimizer == optimizer)
            return &scaler->rows[i];
    if (scaler->count == scaler->room) {
        rows = (tn_grad_scaler_row *)tn_malloc((size_t)room * sizeof *rows);
        if (rows == NULL)
            return NULL;
        for (int64_t i = 0; i < scaler->count; i++)
            rows[i] = scaler->rows[i];
        tn_free(scaler->rows);
        scaler->rows = rows;
        scaler->room = room;
    }
    rows = &scaler->rows[scaler->count++];
    rows->optimizer = optimizer;
    rows->unscaled = rows->stepped = rows->found_inf = false;
    return rows;
}

/* Returns the gradient of a parameter of an optimizer, NULL without one. */
TN_ATTR(unused)
static inline tn_tensor *tn_grad_scaler_gradient(const tn_optimizer *optimizer, int64_t i)
{
    tn_tensor *gradient = tn_tensor_grad(tn_optimizer_parameter(optimizer, i));

    return gradient == TN_NONE ? NULL : gradient;
}

/* Multiplies the gradients of an optimizer by `factor` and looks for an infinity or NaN: one call
 * for all gradients of a device and dtype, and one read for each. `list` has room for all. */
TN_ATTR(unused)
static inline tn_status tn_grad_scaler_pass(const tn_optimizer *optimizer, double factor,
                                            tn_tensor **list, bool *found_inf)
{
    int64_t count = tn_optimizer_count(optimizer), left = 0;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count; i++) {
        tn_tensor *gradient = tn_grad_scaler_gradient(optimizer, i);
        if (gradient != NULL && tn_tensor_dtype(gradient) == TN_F16)
            return tn_fail(TN_ERR_VALUE, "Attempting to unscale FP16 gradients.");
        if (gradient != NULL)
            list[left++] = gradient;
    }
    while (left > 0 && status == TN_OK) { /* those like the first come to the front */
        const tn_device *device = tn_tensor_device(list[0]);
        tn_tensor *found = tn_tensor_full(TN_SCALAR_SHAPE, 0.0, TN_F32, device);
        int64_t same = 1;
        for (int64_t i = 1; i < left; i++) {
            tn_tensor *gradient = list[i];
            if (tn_tensor_device(gradient) != device ||
                tn_tensor_dtype(gradient) != tn_tensor_dtype(list[0]))
                continue;
            list[i] = list[same];
            list[same++] = gradient;
        }
        status = tn_unscale(found, list, same, factor);
        if (status == TN_OK)
            *found_inf |= tn_tensor_item(found) != 0;
        if (status == TN_OK && tn_failed())
            status = tn_error_last_code();
        left -= same;
        list += same;
    }
    return status;
}

/* Divides the gradients of an optimizer by the factor, and records whether one is infinite or NaN.
 * tn_grad_scaler_step does this unless it was called before, for example to clip the gradients.
 * Float16 gradients are an error. */
TN_ATTR(unused)
static inline tn_status tn_grad_scaler_unscale_(tn_grad_scaler *scaler, tn_optimizer *optimizer)
{
    tn_grad_scaler_row *row;
    tn_tensor **list;
    uint64_t scope;
    tn_status status;

    if (!scaler->options.enabled)
        return TN_OK;
    status = tn_grad_scaler_check(scaler, "unscale_");
    if (status != TN_OK)
        return status;
    row = tn_grad_scaler_row_of(scaler, optimizer);
    if (row == NULL)
        return TN_ERR_MEMORY;
    if (row->stepped)
        return tn_fail(
            TN_ERR_RUNTIME,
            "unscale_() is being called after step(). Call it before tn_grad_scaler_step, "
            "or after tn_grad_scaler_update.");
    if (row->unscaled)
        return tn_fail(
            TN_ERR_RUNTIME,
            "unscale_() has already been called on this optimizer since the last update().");
    list = (tn_tensor **)tn_malloc((size_t)(tn_optimizer_count(optimizer) + 1) * sizeof *list);
    if (list == NULL)
        return TN_ERR_MEMORY;
    scope = tn_scope_begin();
    status = tn_grad_begin(false);
    if (status == TN_OK)
        status = tn_grad_scaler_pass(optimizer, 1.0 / (double)scaler->scale, list, &row->found_inf);
    tn_grad_end();
    tn_scope_end(scope);
    tn_free(list);
    row->unscaled = status == TN_OK;
    return status;
}

/* Takes a step of the optimizer with the unscaled gradients, unless one is infinite or NaN. *taken
 * (may be NULL) says whether the step was taken. */
TN_ATTR(unused)
static inline tn_status tn_grad_scaler_step(tn_grad_scaler *scaler, tn_optimizer *optimizer,
                                            bool *taken)
{
    tn_grad_scaler_row *row;
    tn_status status = TN_OK;

    if (taken != NULL)
        *taken = !scaler->options.enabled;
    if (!scaler->options.enabled)
        return tn_optimizer_step(optimizer);
    status = tn_grad_scaler_check(scaler, "step");
    if (status != TN_OK)
        return status;
    row = tn_grad_scaler_row_of(scaler, optimizer);
    if (row == NULL)
        return TN_ERR_MEMORY;
    if (row->stepped)
        return tn_fail(TN_ERR_RUNTIME, "step() has already been called since the last update().");
    if (!row->unscaled)
        status = tn_grad_scaler_unscale_(scaler, optimizer);
    if (status == TN_OK && !row->found_inf)
        status = tn_optimizer_step(optimizer);
    row->stepped = status == TN_OK;
    if (taken != NULL)
        *taken = status == TN_OK && !row->found_inf;
    return status;
}

/* Sets the factor for the next iteration, after the steps of all optimizers: reduces it if a
 * gradient was infinite or NaN, and increases it after growth_interval updates in a row without
 * that, unless it would become infinite. */
TN_ATTR(unused) static inline tn_status tn_grad_scaler_update(tn_grad_scaler *scaler)
{
    bool found_inf = false, checked = false;
    tn_status status;

    if (!scaler->options.enabled)
        return TN_OK;
    status = tn_grad_scaler_check(scaler, "update");
    for (int64_t i = 0; i < scaler->count; i++) {
        checked |= scaler->rows[i].unscaled;
        found_inf |= scaler->rows[i].found_inf;
    }
    if (status == TN_OK && !checked)
        status = tn_fail(TN_ERR_RUNTIME, "No inf checks were recorded prior to update.");
    if (status != TN_OK)
        return status;
    if (found_inf) {
        scaler->scale = (float)(scaler->scale * scaler->options.backoff_factor);
        scaler->growth_tracker = 0;
    } else if (++scaler->growth_tracker == scaler->options.growth_interval) {
        float grown = (float)(scaler->scale * scaler->options.growth_factor);
        if (isfinite(grown))
            scaler->scale = grown;
        scaler->growth_tracker = 0;
    }
    scaler->count = 0;
    return TN_OK;
}

/* tn_grad_scaler_state writes the state as text: at most `size` bytes including the final NUL; it
 * returns the length of the complete text. The text of a scaler that is not enabled is "".
 * tn_grad_scaler_set_state reads such a text, to the bit; a scaler that is not enabled ignores
 * it. */
TN_ATTR(unused)
static inline int64_t tn_grad_scaler_state(const tn_grad_scaler *scaler, char *out, size_t size)
{
    if (!scaler->options.enabled)
        return tn_snprint(out, size, "%s", "");
    return tn_snprint(out, size,
                      "scale=%.17g, growth_factor=%.17g, backoff_factor=%.17g, "
                      "growth_interval=%lld, growth_tracker=%lld",
                      (double)scaler->scale, scaler->options.growth_factor,
                      scaler->options.backoff_factor, (long long)scaler->options.growth_interval,
                      (long long)scaler->growth_tracker);
}
TN_ATTR(unused)
static inline tn_status tn_grad_scaler_set_state(tn_grad_scaler *scaler, const char *text)
{
    static const char *const names[5] = { "scale=", ", growth_factor=", ", backoff_factor=",
                                          ", growth_interval=", ", growth_tracker=" };
    double numbers[5];
    int64_t whole[2];

    if (!scaler->options.enabled)
        return TN_OK;
    if (text == NULL || text[0] == '\0')
        return tn_fail(TN_ERR_RUNTIME,
                       "The source state dict is empty, possibly because it was saved from a "
                       "disabled instance of GradScaler.");
    for (int i = 0; i < 5; i++) {
        char number[64];
        size_t name = strlen(names[i]), length;
        bool good = strncmp(text, names[i], name) == 0;
        if (good) {
            text += name;
            length = strcspn(text, ",");
            good = length < sizeof number;
            tn_snprint(number, sizeof number, "%.*s", (int)(good ? length : 0), text);
            text += length;
            good = good && (i < 3 ? tn_read_float(number, &numbers[i])
                                  : tn_read_int(number, &whole[i - 3]));
        }
        if (!good || (i == 4 && text[0] != '\0'))
            return tn_fail(TN_ERR_VALUE,
                           "tn_grad_scaler_set_state: wrong text at %q; expected one of "
                           "tn_grad_scaler_state",
                           text);
    }
    scaler->scale = (float)numbers[0];
    scaler->options.growth_factor = numbers[1];
    scaler->options.backoff_factor = numbers[2];
    scaler->options.growth_interval = whole[0];
    scaler->growth_tracker = whole[1];
    return TN_OK;
}

TN_END_DECLS
#endif
