/* SPDX-License-Identifier: MIT
 *
 * Converting a module. Every tensor object stays, and its contents (storage, shape, dtype) are
 * exchanged. All new contents are made first and then exchanged, so that a failure leaves the
 * module unchanged. */
#include "core/base/vector.h"
#include "core/module/depth.h"

/* ---- the map over all tensors ---------------------------------------------------------------- */

struct exchange {
    tn_tensor *tensor; /* owned reference */
    tn_tensor *with;   /* owned; holds the new contents, and has no other references */
    char *path;        /* dotted path, for error texts */
};

struct map {
    tn_status (*change)(void *user, tn_tensor *tensor, tn_tensor **out);
    void *user;
    struct exchange *at;
    int64_t count, capacity;
    tn__map places;           /* from a tensor to the index of its exchange, plus 1 */
    const tn_tensor *in_slot; /* the slot's tensor, also while its gradient is changed */
    tn__text path;            /* of the module that is being changed */
};

static struct exchange *exchange_of(struct map *map, const tn_tensor *tensor)
{
    void **with = tn__map_value(&map->places, tensor);
    return with != NULL ? &map->at[(intptr_t)*with - 1] : NULL;
}

/* Returns a new object over the same storage, so that the exchange does not change `tensor`
 * itself. */
static tn_tensor *object_over(const tn_tensor *tensor)
{
    tn_meta meta;
    tn__tensor_meta(tensor, &meta);
    return tn__tensor_over(tensor->storage, &meta);
}

static void put_path(const struct map *map, const char *name, tn__text *text)
{
    if (map->path.length > 0)
        tn__text_add(text, "%s.", map->path.at);
    tn__text_add(text, "%s", name);
}

static tn_status note(struct map *map, tn_tensor *tensor, const tn_tensor *out, const char *name)
{
    tn_tensor *with = object_over(out);
    if (with == NULL)
        return tn_error_last_code();
    struct exchange *known = exchange_of(map, tensor);
    if (known != NULL) {
        tn_tensor_drop(known->with);
        known->with = with;
        return TN_OK;
    }
    if (!tn__vector_room(&map->at, &map->capacity, map->count + 1, sizeof *map->at))
        goto out_of_memory;
    tn__text path = { 0 };
    put_path(map, name, &path);
    char *text = tn__text_take(&path);
    if (text == NULL || tn__map_add(&map->places, tensor) < 0) {
        tn_free(text);
        goto out_of_memory;
    }
    map->at[map->count++] = (struct exchange){ tn_tensor_keep(tensor), with, text };
    *tn__map_value(&map->places, tensor) = (void *)(intptr_t)map->count;
    return TN_OK;
out_of_memory:
    tn_tensor_drop(with);
    return TN_ERR_MEMORY;
}

static tn_status change_one(struct map *map, tn_tensor *tensor, const char *name)
{
    const struct exchange *known = exchange_of(map, tensor);
    tn_tensor *now = known != NULL ? known->with : tensor, *out = now;
    uint64_t failures = tn_error_mark(), scope = tn_scope_begin();
    tn_status status = tn_error_returned(map->change(map->user, now, &out), failures, "change");
    if (status == TN_OK && !tn__tensor_ok(out))
        status = tn__tensor_bad(out, "the result of a change");
    if (status == TN_OK && out != now)
        status = note(map, tensor, out, name);
    tn_scope_end(scope);
    if (status != TN_OK) {
        tn__text path = { 0 };
        put_path(map, name, &path);
        tn_error_prefix("moving or converting \"%s\": ", path.at != NULL ? path.at : name);
        tn__text_free(&path);
    }
    return status;
}

/* Changes the tensor of a slot and, if it is a parameter, its gradient. The callback may remove the
 * slot; therefore the tensor is kept and the name copied. */
static tn_status change_slot(struct map *map, const tn__slot *slot, bool parameter)
{
    tn_tensor *tensor = tn_tensor_keep(slot->tensor);
    map->in_slot = tensor;
    char *name = tn_strdup(slot->name);
    tn_status status = name != NULL ? change_one(map, tensor, name) : TN_ERR_MEMORY;
    tn_tensor *gradient = status == TN_OK && parameter ? tn_tensor_grad(tensor) : NULL;
    if (gradient != NULL && !tn__is_none(gradient))
        status = change_one(map, gradient, name);
    tn_free(name);
    tn_tensor_drop(tensor);
    return status;
}

static tn_status change_module(struct map *map, tn_module *module, bool recurse, int depth);

static tn_status change_children(struct map *map, tn_module *module, int depth)
{
    size_t length = map->path.length;
    tn_status status = TN_OK;
    for (int64_t i = 0; i < module->children.count && status == TN_OK; i++) {
        const tn__slot *slot = &module->children.at[i];
        if (slot->child == NULL || !tn__walk_child_is_first(module, i))
            continue;
        if (length > 0)
            tn__text_put(&map->path, ".", 1);
        tn__text_put(&map->path, slot->name, strlen(slot->name));
        if (map->path.failed)
            return tn_fail(TN_ERR_MEMORY, "module: out of memory for its path");
        tn_module *child = tn_module_keep(slot->child); /* `change` may remove it */
        status = change_module(map, child, true, depth + 1);
        tn_module_drop(child);
        map->path.length = length;
        map->path.at[length] = '\0';
    }
    return status;
}

static tn_status change_module(struct map *map, tn_module *module, bool recurse, int depth)
{
    if (tn__depth_check("modules", depth) != TN_OK)
        return tn_error_last_code();
    tn_status status = recurse ? change_children(map, module, depth) : TN_OK;
    for (int64_t i = 0; i < module->parameters.count && status == TN_OK; i++) {
        const tn__slot *slot = &module->parameters.at[i];
        if (!tn__is_none(slot->tensor))
            status = change_slot(map, slot, true);
    }
    for (int64_t i = 0; i < module->buffers.count && status == TN_OK; i++) {
        const tn__slot *slot = &module->buffers.at[i];
        if (!tn__is_none(slot->tensor))
            status = change_slot(map, slot, false);
    }
    return status;
}

static bool differentiable(tn_dtype dtype)
{
    return (TN_BIT(dtype) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)) != 0;
}

static const tn_tensor *after(struct map *map, const tn_tensor *tensor)
{
    const struct exchange *known = exchange_of(map, tensor);
    return known != NULL ? known->with : tensor;
}

static tn_status refuse_gradient(const struct exchange *x, const tn_tensor *gradient)
{
    tn__text got = { 0 }, expected = { 0 };
    tn_status status;

    tn__tensor_text(&got, gradient);
    tn__tensor_text(&expected, x->with);
    status = tn_fail(TN_ERR_RUNTIME,
                     "converting \"%s\": its gradient has another shape, dtype or device, got %s; "
                     "expected %s",
                     x->path, got.failed ? "?" : got.at, expected.failed ? "?" : expected.at);
    tn__text_free(&got);
    tn__text_free(&expected);
    return status;
}

/* Refuses a tensor that requires grad and whose new dtype has no gradients, and a gradient that
 * does not match its tensor. */
static tn_status check_all(struct map *map)
{
    for (int64_t i = 0; i < map->count; i++) {
        const struct exchange *x = &map->at[i];
        if (tn_tensor_requires_grad(x->tensor) && !differentiable(tn_tensor_dtype(x->with)))
            return tn_fail(TN_ERR_RUNTIME,
                           "converting \"%s\": it requires grad, got %s; expected a floating or "
                           "complex dtype: set requires_grad to false first",
                           x->path, tn_dtype_name(tn_tensor_dtype(x->with)));
        const tn_tensor *gradient = tn_tensor_grad(x->tensor);
        if (gradient == NULL || tn__is_none(gradient))
            continue;
        gradient = after(map, gradient);
        tn_ints a = tn__shape(x->with), b = tn__shape(gradient);
        if (gradient->dtype != x->with->dtype || gradient->device != x->with->device ||
            a.count != b.count || (a.count > 0 && memcmp(a.at, b.at, (size_t)a.count * 8) != 0))
            return refuse_gradient(x, gradient);
    }
    return TN_OK;
}

/* Exchanges the contents of all tensors and gradients. If an exchange fails, reverses the exchanges
 * before it. */
static tn_status swap_all(struct map *map)
{
    for (int64_t i = 0; i < map->count; i++) {
        tn_status status = tn__tensor_exchange(map->at[i].tensor, map->at[i].with);
        if (status == TN_OK)
            continue;
        while (i-- > 0)
            tn__tensor_exchange(map->at[i].tensor, map->at[i].with);
        return status;
    }
    return TN_OK;
}

/* The caller has set `change` and `user`; all else in `map` is zero. */
static tn_status run_map(struct map *map, tn_module *module, bool recurse)
{
    tn_grad_begin(false);
    tn_status status = change_module(map, module, recurse, 0);
    if (status == TN_OK)
        status = check_all(map);
    if (status == TN_OK)
        status = swap_all(map);
    tn_grad_end();
    tn__module_changed(NULL);
    for (int64_t i = 0; i < map->count; i++) {
        tn_tensor_drop(map->at[i].tensor);
        tn_tensor_drop(map->at[i].with);
        tn_free(map->at[i].path);
    }
    tn_free(map->at);
    tn__text_free(&map->path);
    tn__map_free(&map->places);
    return status;
}

tn_status tn_module_map(tn_module *module, bool recurse,
                        tn_status (*change)(void *user, tn_tensor *tensor, tn_tensor **out),
                        void *user)
{
    if (module == NULL || change == NULL)
        return tn__error_null_of("tn_module_map", "module, change", module, change);
    struct map map = { .change = change, .user = user };
    return run_map(&map, module, recurse);
}

/* ---- to -------------------------------------------------------------------------------------- */

struct conversion {
    const tn_device *device; /* NULL: keep the device */
    tn_dtype dtype;          /* TN_DTYPE_AUTO: keep the dtype */
    tn_memory_format format;
    uint64_t convertible; /* set of dtypes that are converted */
    struct map map;
    tn__map fixed; /* tensors, before the conversion, of the slots with TN_SLOT_FLAG_FIXED_DTYPE */
};

/* Adds the tensors of a module whose slots have TN_SLOT_FLAG_FIXED_DTYPE. A tensor in several slots
 * keeps its dtype if one of these slots has the flag. */
static tn_status find_fixed(void *user, const char *path, tn_module *module)
{
    const tn__slots *kinds[] = { &module->parameters, &module->buffers };
    tn__map *fixed = user;

    (void)path;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < kinds[k]->count; i++)
            if ((kinds[k]->at[i].flags & TN_SLOT_FLAG_FIXED_DTYPE) != 0 &&
                tn__map_add(fixed, kinds[k]->at[i].tensor) < 0)
                return TN_ERR_MEMORY;
    return TN_OK;
}

/* Lists the dimensions in the order of a memory format, from the innermost outwards. Returns false
 * if the format does not apply to `ndim` dimensions. */
static bool format_order(tn_memory_format format, int32_t ndim, int *order)
{
    int32_t at = 0;
    if ((ndim != 4 && ndim != 5) || format == TN_MEMORY_FORMAT_KEEP)
        return false;
    if (format != TN_MEMORY_FORMAT_CONTIGUOUS)
        order[at++] = 1;
    for (int32_t dim = ndim - 1; dim >= 0; dim--)
        if (dim != 1 || format == TN_MEMORY_FORMAT_CONTIGUOUS)
            order[at++] = dim;
    return true;
}

/* Sets the strides of a tensor without gaps. `order` lists the dimensions, the innermost first.
 * Returns whether `tensor` has these strides already. */
static bool order_strides(const tn_tensor *tensor, const int *order, tn_meta *meta)
{
    int64_t expect = 1;
    bool same = true;
    for (int32_t i = 0; i < meta->ndim; i++) {
        int dim = order[i];
        same = same && (meta->shape[dim] == 1 || tensor->view.strides[dim] == expect);
        meta->strides[dim] = expect;
        expect *= meta->shape[dim] > 0 ? meta->shape[dim] : 1;
    }
    meta->flags = TN_META_STRIDED;
    return same;
}

/* Sets the strides of a copy: the strides of `tensor` if it fills its memory without gaps or
 * repeats, otherwise row-major strides. */
static void keep_strides(const tn_tensor *tensor, tn_meta *meta)
{
    int order[TN_MAX_DIMS];
    for (int i = 0; i < meta->ndim; i++) {
        int at = i;
        for (; at > 0 && tensor->view.strides[order[at - 1]] > tensor->view.strides[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    if (tensor->numel == 0 || !order_strides(tensor, order, meta))
        meta->flags = 0;
}

/* Returns a new tensor with space for the elements of `tensor`, with uninitialized values. The
 * caller owns it. */
static tn_tensor *make_like(const tn_tensor *tensor, tn_meta *meta, const tn_device *device)
{
    keep_strides(tensor, meta);
    meta->offset = 0;
    return tn__tensor_make(meta, device);
}

static tn_status copied(tn_tensor *made, const tn_tensor *tensor, tn_tensor **out)
{
    const tn_device *device = tensor->device;
    if (made == NULL)
        return tn_error_last_code();
    tn_status status = TN_OK;
    if (tensor->numel > 0 && tn_device_has_memory(made->device)) {
        status = tn_device_has_memory(device)
                     ? tn__copy(made, tensor)
                     : tn_fail(TN_ERR_NOT_IMPLEMENTED,
                               "cannot copy from a tensor on %s, which has no values: use "
                               "tn_module_to_empty to move to %s, then load or initialize",
                               tn_device_name(device), tn_device_name(made->device));
    }
    if (status != TN_OK) {
        tn_tensor_drop(made);
        return status;
    }
    *out = tn__scope_push(made);
    return *out != NULL ? TN_OK : tn_error_last_code();
}

static tn_status convert(void *user, tn_tensor *tensor, tn_tensor **out)
{
    struct conversion *c = user;
    const tn_device *device = c->device != NULL ? c->device : tensor->device;
    tn_dtype dtype = (tn_dtype)tensor->dtype;
    int order[TN_MAX_DIMS];
    tn_meta meta;

    if (c->dtype != TN_DTYPE_AUTO && (TN_BIT(dtype) & c->convertible) != 0 &&
        (c->fixed.count == 0 || tn__map_value(&c->fixed, c->map.in_slot) == NULL))
        dtype = c->dtype;
    tn__tensor_meta(tensor, &meta);
    bool stays = device == tensor->device && dtype == (tn_dtype)tensor->dtype;
    meta.dtype = dtype;
    if (!format_order(c->format, meta.ndim, order))
        return stays ? TN_OK : copied(make_like(tensor, &meta, device), tensor, out);
    if (meta.ndim != (c->format == TN_MEMORY_FORMAT_CHANNELS_LAST_3D ? 5 : 4) &&
        c->format != TN_MEMORY_FORMAT_CONTIGUOUS)
        return tn_fail(
            TN_ERR_RUNTIME, "memory_format: %s: wrong number of dimensions, got %d; expected %d",
            c->format == TN_MEMORY_FORMAT_CHANNELS_LAST ? "channels last" : "channels last 3d",
            (int)meta.ndim, c->format == TN_MEMORY_FORMAT_CHANNELS_LAST ? 4 : 5);
    if (order_strides(tensor, order, &meta) && stays)
        return TN_OK;
    meta.offset = 0;
    return copied(tn__tensor_make(&meta, device), tensor, out);
}

static tn_status check_conversion(tn_dtype dtype, tn_memory_format format, uint32_t flags)
{
    const uint32_t known = TN_CONVERT_NON_BLOCKING | TN_CONVERT_FLOATING | TN_CONVERT_ALL;
    if ((flags & ~known) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_module_convert: flags: unknown, got 0x%x; expected TN_CONVERT_*",
                       flags & ~known);
    if ((flags & TN_CONVERT_FLOATING) != 0 && (flags & TN_CONVERT_ALL) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_module_convert: flags: TN_CONVERT_FLOATING and TN_CONVERT_ALL exclude "
                       "each other; expected one");
    if ((unsigned)format > TN_MEMORY_FORMAT_CHANNELS_LAST_3D)
        return tn_fail(TN_ERR_VALUE,
                       "tn_module_convert: memory_format: unknown, got %d; expected "
                       "a tn_memory_format",
                       (int)format);
    if (dtype == TN_DTYPE_AUTO)
        return TN_OK;
    if ((unsigned)dtype >= TN_DTYPE_COUNT)
        return tn_fail(TN_ERR_TYPE,
                       "tn_module_convert: dtype: unknown, got %d; expected one of tn_dtype",
                       (int)dtype);
    if ((flags & TN_CONVERT_ALL) == 0 && !differentiable(dtype))
        /* PyTorch's wording */
        return tn_fail(TN_ERR_TYPE,
                       "a module only accepts floating point or complex dtypes, but got desired "
                       "dtype=%s; tn_module_cast casts every tensor",
                       tn_dtype_name(dtype));
    if ((TN_BIT(dtype) & TN_MASK_COMPLEX) != 0)
        tn_log(TN_LOG_WARNING,
               "Complex modules are a new feature: some layers have no complex arithmetic (asked "
               "for %s)",
               tn_dtype_name(dtype));
    return TN_OK;
}

tn_status tn_module_convert(tn_module *module, const tn_device *device, tn_dtype dtype,
                            tn_memory_format format, uint32_t flags)
{
    if (module == NULL)
        return tn_error_null("tn_module_convert: module");
    tn_status status = check_conversion(dtype, format, flags);
    if (status != TN_OK)
        return status;
    struct conversion c = { .device = device, .dtype = dtype, .format = format };
    c.convertible = (flags & TN_CONVERT_ALL) != 0        ? TN_MASK_ALL
                    : (flags & TN_CONVERT_FLOATING) != 0 ? TN_MASK_FLOAT
                                                         : TN_MASK_FLOAT | TN_MASK_COMPLEX;
    c.map = (struct map){ .change = convert, .user = &c };
    if (dtype != TN_DTYPE_AUTO)
        status = tn_module_each(module, false, find_fixed, &c.fixed);
    if (status == TN_OK)
        status = run_map(&c.map, module, true);
    tn__map_free(&c.fixed);
    return status;
}

tn_status tn_module_to(tn_module *module, const tn_device *device, tn_dtype dtype)
{
    return tn_module_convert(module, device, dtype, TN_MEMORY_FORMAT_KEEP, 0);
}

tn_status tn_module_to_device(tn_module *module, const char *name)
{
    if (module == NULL || name == NULL)
        return tn__error_null_of("tn_module_to_device", "module, name", module, name);
    const tn_device *device = tn_device_find(name);
    return device != NULL ? tn_module_to(module, device, TN_DTYPE_AUTO) : tn_error_last_code();
}

/* ---- empty ----------------------------------------------------------------------------------- */

static tn_status empty_like(void *user, tn_tensor *tensor, tn_tensor **out)
{
    tn_meta meta;
    tn__tensor_meta(tensor, &meta);
    tn_tensor *made = make_like(tensor, &meta, user);
    if (made == NULL || (*out = tn__scope_push(made)) == NULL)
        return tn_error_last_code();
    return TN_OK;
}

tn_status tn_module_to_empty(tn_module *module, const tn_device *device, bool recurse)
{
    if (module == NULL || device == NULL)
        return tn__error_null_of("tn_module_to_empty", "module, device", module, device);
    return tn_module_map(module, recurse, empty_like, (void *)(uintptr_t)device);
}

/* ---- shared memory --------------------------------------------------------------------------- */

/* Moves a tensor to shared memory. Tensors with a common storage get a common shared storage. */
static tn_status share(void *user, tn_tensor *tensor, tn_tensor **out)
{
    tn__map *storages = user;
    if (!tn_device_is_host(tensor->device) || tn_tensor_is_shared(tensor))
        return TN_OK;
    void **shared = tn__map_value(storages, tensor->storage);
    if (shared == NULL) {
        tn__storage *made = tn__shared_storage(tensor->storage);
        if (made == NULL)
            return tn_error_last_code();
        if (tn__map_add(storages, tensor->storage) < 0) {
            tn__storage_drop(made);
            return TN_ERR_MEMORY;
        }
        shared = tn__map_value(storages, tensor->storage);
        *shared = made;
    }
    tn_meta meta;
    tn__tensor_meta(tensor, &meta);
    tn_tensor *over = tn__tensor_over(*shared, &meta);
    if (over == NULL || (*out = tn__scope_push(over)) == NULL)
        return tn_error_last_code();
    return TN_OK;
}

tn_status tn_module_share_memory(tn_module *module)
{
    if (module == NULL)
        return tn_error_null("tn_module_share_memory: module");
    tn__map storages = { 0 };
    tn_status status = tn_module_map(module, true, share, &storages);
    for (int64_t i = 0; i < storages.count; i++)
        if (storages.at[i].value != NULL)
            tn__storage_drop(storages.at[i].value);
    tn__map_free(&storages);
    return status;
}
