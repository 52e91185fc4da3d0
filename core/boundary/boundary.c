/* SPDX-License-Identifier: MIT
 *
 * The checked boundary: calls from plugins to the host, and kernels. */
#include "core/boundary/boundary.h"
#include "core/tensor/boundary.h"
#include "core/tensor/internal.h"

#if TN_BUILD_ASAN
#include <sanitizer/asan_interface.h>
#endif
#include <sys/syscall.h>
#include <unistd.h>

/* ---- plugin to host -------------------------------------------------------------------------- */

static bool refuse(const char *function, const void *caller, const char *argument,
                   const char *words)
{
    const char *id = tn__address_plugin(caller), *before = tn__error_plugin(id);
    tn_fail(TN_ERR_REFUSED, "checked boundary: plugin %q called %s%s%s: %s", id[0] ? id : "?",
            function, argument ? ", argument " : "", argument ? argument : "", words);
    tn__error_plugin(before);
    return false;
}

tn_status tn__boundary_no_pointer(const char *function, const char *argument, const void *caller)
{
    refuse(function, caller, argument, "it is NULL, which the header does not allow");
    return TN_ERR_REFUSED;
}

tn_status tn__boundary_no_object(const char *function, const char *argument, const void *caller)
{
    tn_status before = tn_error_last_code();

    return before != TN_OK && tn__error_failed_inside()
               ? before
               : tn__boundary_no_pointer(function, argument, caller);
}

tn_status tn__boundary_no_array(const char *function, const char *argument, const void *caller)
{
    refuse(function, caller, argument, "it is NULL, but its number of elements is not 0");
    return TN_ERR_REFUSED;
}

/* Returns whether a tensor was freed. The memory of a freed tensor object is kept for reuse; with
 * AddressSanitizer it is poisoned until then. */
static bool is_dead(const tn_tensor *tensor)
{
#if TN_BUILD_ASAN
    if (__asan_address_is_poisoned(&tensor->refs))
        return true;
#endif
    return atomic_load_explicit(&tensor->refs, memory_order_relaxed) <= 0;
}

bool tn__boundary_tensor(const tn_tensor *tensor, const char *function, const char *argument,
                         const void *caller)
{
    if (!tensor || tensor == TN_NONE || tn__likely(!is_dead(tensor)))
        return true;
    return refuse(function, caller, argument,
                  "its last reference was dropped before (tn_tensor_keep adds a reference)");
}

bool tn__boundary_tensors(tn_tensor *const *tensors, int64_t count, const char *function,
                          const char *argument, const void *caller)
{
    for (int64_t i = 0; tensors && i < count; i++)
        if (!tn__boundary_tensor(tensors[i], function, argument, caller))
            return false;
    return true;
}

bool tn__boundary_main(const char *function, const void *caller)
{
    return tn__likely(syscall(SYS_gettid) == getpid()) ||
           refuse(function, caller, NULL, "only the main thread may call this function ([main])");
}

/* ---- host to plugin -------------------------------------------------------------------------- */

tn_status tn__boundary_status(tn_status status, uint64_t before, const tn__plugin *plugin,
                              const char *function)
{
    if (tn__likely(status == TN_OK && tn__error_count() == before))
        return TN_OK;
    if (status < 0 || status >= TN_ERR_COUNT)
        return tn_fail(TN_ERR_REFUSED,
                       "checked boundary: plugin %q: %s: unknown status, got %d; expected a "
                       "tn_status",
                       plugin->id, function, (int)status);
    if (status != TN_OK && tn__error_count() == before)
        return tn_fail(
            status,
            "checked boundary: plugin %q: %s failed with %s and recorded no message (tn_fail does)",
            plugin->id, function, tn_status_name(status));
    if (status == TN_OK && tn_failed() && tn_error_last_code() != TN_OK)
        return tn_fail(
            TN_ERR_REFUSED,
            "checked boundary: plugin %q: %s returned TN_OK after it recorded a failure: %s",
            plugin->id, function, tn_error_last()->message);
    return status;
}

/* ---- kernels --------------------------------------------------------------------------------- */

struct shadow {
    tn_kernel_def real;
    const tn__plugin *plugin;
};

static const struct shadow *shadow_of(const tn_call *call)
{
    return call->kernel->user;
}

/* Returns a copy of the call that has the plugin's own kernel and device handle. */
static tn_call own_call(const tn_call *call)
{
    tn_call own = *call;
    own.kernel = &shadow_of(call)->real;
    own.device = tn__boundary_device(call->device);
    return own;
}

static bool checked_supports(const tn_call *call, char *reason, size_t size)
{
    const struct shadow *shadow = shadow_of(call);
    tn_call own = own_call(call);
    const char *before = tn__error_plugin(shadow->plugin->id);
    bool yes = shadow->real.supports(&own, reason, size);
    tn__error_plugin(before);
    if (!yes && size && !reason[0])
        tn_snprint(reason, size, "checked boundary: kernel %s refuses without a reason",
                   shadow->real.name);
    return yes;
}

static size_t checked_workspace(const tn_call *call)
{
    tn_call own = own_call(call);
    return shadow_of(call)->real.workspace(&own);
}

static tn_status checked_prepare(const tn_call *call, tn_prepared_data *out)
{
    const struct shadow *shadow = shadow_of(call);
    tn_call own = own_call(call);
    uint64_t errors = tn__error_count();
    tn__boundary_thread thread;
    tn__boundary_enter(&thread);
    tn_status status = tn__boundary_status(shadow->real.prepare(&own, out), errors, shadow->plugin,
                                           shadow->real.name ? shadow->real.name : shadow->real.op);
    return tn__boundary_leave(&thread, shadow->plugin->id, "prepare", status);
}

static uint64_t checked_prepare_key(const tn_call *call)
{
    tn_call own = own_call(call);
    return shadow_of(call)->real.prepare_key(&own);
}

static void checked_release(const tn_kernel_def *kernel, void *data)
{
    const struct shadow *shadow = kernel->user;
    shadow->real.release(&shadow->real, data);
}

/* Returns a hash that shows whether a view whose bit is set in `which`, or the shape and strides
 * that it points to, have changed. Views beyond the 64th, which only inputs can have, are always
 * included. */
static uint64_t views_sum(const tn_view *const *views, int64_t count, uint64_t which)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const tn_view *v = views[i];
        if (i < 64 && !(which >> i & 1))
            continue;
        sum = tn__boundary_fold(sum, &v, sizeof v);
        if (!v || v->ndim < 0 || v->ndim > TN_MAX_DIMS)
            continue;
        sum = tn__boundary_fold(sum, v, sizeof *v);
        sum = tn__boundary_fold(sum, v->shape, (size_t)v->ndim * sizeof *v->shape);
        sum = tn__boundary_fold(sum, v->strides, (size_t)v->ndim * sizeof *v->strides);
    }
    return sum;
}

/* Returns the operator if the elements of its inputs can be compared before and after the kernel,
 * that is, on devices that use host memory; otherwise NULL. */
static const tn_op_def *readable_op(const tn_call *call)
{
    uint64_t mark = tn_error_mark();
    const tn_op *op = NULL;
    if (tn__boundary_is_host(call->device))
        op = tn_op_find(call->op, shadow_of(call)->real.revision);
    tn_error_restore(mark);
    return op ? tn_op_definition(op) : NULL;
}

static tn_status checked_run(const tn_call *call)
{
    const struct shadow *shadow = shadow_of(call);
    const tn__plugin *plugin = shadow->plugin;
    const char *name = shadow->real.name ? shadow->real.name : shadow->real.op;
    tn_call own = own_call(call);
    /* outputs that exist before the kernel; it makes the others by make_output */
    uint64_t there = 0;
    for (int32_t i = 0; i < call->n_out && i < 64; i++)
        there |= (uint64_t)(call->out[i] != NULL) << i;
    uint64_t in_before = views_sum(call->in, call->n_in, UINT64_MAX),
             out_before = views_sum(call->out, call->n_out, there);
    const tn_op_def *readable = call->flags & TN_CALL_CAPTURED ? NULL : readable_op(call);
    uint64_t values_before = readable ? tn__boundary_inputs_sum(call, readable) : 0;
    uint64_t errors = tn__error_count();
    const char *before = tn__error_plugin(plugin->id);
    tn__boundary_thread thread;
    tn__boundary_enter(&thread);
    tn_status status = tn__boundary_status(shadow->real.run(&own), errors, plugin, name);
    status = tn__boundary_leave(&thread, plugin->id, name, status);
    tn__error_plugin(before);
    if (status != TN_OK)
        return status;
    if (views_sum(call->in, call->n_in, UINT64_MAX) != in_before)
        return tn_fail(TN_ERR_REFUSED,
                       "checked boundary: plugin %q: kernel %s changed the view of an input",
                       plugin->id, name);
    if (views_sum(call->out, call->n_out, there) != out_before)
        return tn_fail(TN_ERR_REFUSED,
                       "checked boundary: plugin %q: kernel %s changed the view of an output",
                       plugin->id, name);
    /* while a graph is captured, no kernel runs, and waiting is not allowed */
    if (!(call->flags & TN_CALL_CAPTURED))
        status = tn__boundary_after_kernel(call->device, call->stream, name);
    if (status != TN_OK)
        return status;
    if (readable && tn__boundary_inputs_sum(call, readable) != values_before)
        return tn_fail(
            TN_ERR_REFUSED,
            "checked boundary: plugin %q: kernel %s wrote to an input, which operator %s "
            "only reads",
            plugin->id, name, call->op);
    return TN_OK;
}

static tn_status check_kernel(tn_kernel_def *kernel, tn__plugin *plugin)
{
    struct shadow *shadow = tn__plugin_alloc(plugin, sizeof *shadow);
    if (!shadow)
        return TN_ERR_MEMORY;
    shadow->real = *kernel;
    shadow->plugin = plugin;
    kernel->user = shadow;
    kernel->run = checked_run;
    kernel->supports = kernel->supports ? checked_supports : NULL;
    kernel->workspace = kernel->workspace ? checked_workspace : NULL;
    kernel->prepare = kernel->prepare ? checked_prepare : NULL;
    kernel->prepare_key = kernel->prepare_key ? checked_prepare_key : NULL;
    kernel->release = kernel->release ? checked_release : NULL;
    return TN_OK;
}

tn_status tn__boundary_contribution(tn_head *copy, tn__plugin *plugin)
{
    return copy->kind == TN_KIND_tn_kernel_def ? check_kernel((tn_kernel_def *)copy, plugin)
           : copy->kind == TN_KIND_tn_backend_def
               ? tn__boundary_backend((tn_backend_def *)copy, plugin)
               : TN_OK;
}
