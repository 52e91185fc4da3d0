/* SPDX-License-Identifier: MIT
 *
 * The strict device: what it publishes for kernel packs and tests, then what its files share. A
 * kernel gets no pointers: it names an operand and an element, and each access is checked. */
#ifndef STRICT_H
#define STRICT_H

#ifndef TENON_TENON_H /* programs and tests include their own headers */
#include <tenon/plugin.h>
#endif

/* ==== published: tn_device_native(device, STRICT_API_ID) ====================================== */

#define STRICT_API_ID "org.example.strict.api/1"
#define STRICT_MAX_VIEWS 6

/* A view in the queue: copied and checked. */
struct strict_view {
    uint64_t memory; /* the handle */
    uint64_t offset; /* bytes */
    tn_dtype dtype;
    int32_t ndim;
    int64_t shape[TN_MAX_DIMS];
    int64_t strides[TN_MAX_DIMS]; /* in elements */
};

/* A call in a queue: its views, and its options as numbers. */
struct strict_work {
    const char *op;
    int32_t n_in, n_out;
    struct strict_view view[STRICT_MAX_VIEWS]; /* outputs, then inputs; dtype AUTO: absent */
    double real[2];
    int64_t whole[4];
    tn_status status; /* of an access that was refused */
    void *device;
};

typedef tn_status strict_body(struct strict_work *work);

struct strict_api {
    uint32_t size;
    /* Checks and copies the call's views, and runs body(work) on the device's thread after the
     * work of the stream. `fill` (may be NULL) turns the options into numbers, now. A body
     * reports failures with tn_fail. */
    tn_status (*enqueue)(const tn_call *call, strict_body *body,
                         tn_status (*fill)(const tn_call *, struct strict_work *));
    /* Element `at` (in elements from the view's first) of a view, as a number. Only inside a
     * body. */
    double (*get)(struct strict_work *work, const struct strict_view *view, int64_t at);
    void (*set)(struct strict_work *work, const struct strict_view *view, int64_t at, double value);
    /* Injects failures from now on: the text of TENON_STRICT_FAIL, "" for none. */
    tn_status (*inject)(const char *text);
    /* Kernels that ran; invalid accesses and frees; all bytes that are allocated. */
    void (*counts)(uint64_t *kernels, uint64_t *violations, uint64_t *bytes);
};

/* ==== inside ================================================================================== */

/* ---- memory.c: regions behind handles ---- */

tn_status strict_alloc(size_t bytes, uint64_t *handle);
void strict_free(uint64_t handle);
/* The size of a live region; false and an error for any other handle. */
bool strict_region(uint64_t handle, uint64_t *bytes);
/* Makes a region accessible to the device's thread, and inaccessible again. */
void strict_region_open(uint64_t handle);
void strict_region_close(uint64_t handle);
/* Marks a use by queued work, which must not outlive the region. */
void strict_region_use(uint64_t handle, int32_t more);
/* The bytes [offset, offset + size) of an open region, NULL and a violation if they are not all
 * in it. */
void *strict_bytes(uint64_t handle, uint64_t offset, uint64_t size);
uint64_t strict_violations(void);
uint64_t strict_allocated(void);

double strict_get(struct strict_work *work, const struct strict_view *view, int64_t at);
void strict_set(struct strict_work *work, const struct strict_view *view, int64_t at, double value);
int64_t strict_get_int(struct strict_work *work, const struct strict_view *view, int64_t at);
void strict_set_int(struct strict_work *work, const struct strict_view *view, int64_t at,
                    int64_t value);
void strict_copy_element(struct strict_work *work, const struct strict_view *to, int64_t to_at,
                         const struct strict_view *from, int64_t from_at);

/* ---- inject.c: failures on demand ---- */

tn_status strict_inject(const char *text);
/* Whether this allocation of `bytes` has to fail, with `live` bytes in use. */
bool strict_inject_alloc(uint64_t bytes, uint64_t live);
/* Before each piece of work: sleeps if asked to; true when the device is to be lost now. */
bool strict_inject_work(void);
/* Whether this run of the operator has to fail. */
bool strict_inject_kernel(const char *op);

/* ---- queue.c: streams, events, the thread ---- */

tn_status strict_open(const tn_backend_def *self, int32_t index, void **device);
void strict_close(void *device);
tn_status strict_stream_new(void *device, const tn_stream_args *args, void **stream);
void strict_stream_drop(void *device, void *stream);
tn_status strict_stream_sync(void *device, void *stream);
tn_status strict_event_new(void *device, const tn_event_args *args, void **event);
void strict_event_drop(void *device, void *event);
tn_status strict_event_record(void *device, void *event, void *stream);
tn_status strict_event_wait(void *device, void *event, void *stream);
tn_status strict_event_sync(void *device, void *event);
tn_status strict_event_query(void *device, void *event, bool *done);
tn_status strict_copy(void *device, const tn_copy_args *args);
tn_status strict_capture_begin(void *device, const tn_capture_args *args);
tn_status strict_capture_end(void *device, tn_capture_args *args);
tn_status strict_capture_launch(void *device, const tn_capture_args *args);
void strict_capture_drop(void *device, const tn_capture_args *args);
tn_status strict_enqueue(const tn_call *call, strict_body *body,
                         tn_status (*fill)(const tn_call *, struct strict_work *));
bool strict_lost(void *device);
uint64_t strict_kernels_run(void);

/* ---- kernels: a file per family of operators ---- */

/* The next index of a shape in row-major order; false after the last one. */
static inline bool strict_step(int64_t *index, const struct strict_view *shape)
{
    for (int32_t i = shape->ndim; i-- > 0;) {
        if (++index[i] < shape->shape[i])
            return true;
        index[i] = 0;
    }
    return false;
}

static inline int64_t strict_count(const struct strict_view *view)
{
    int64_t count = 1;
    for (int32_t i = 0; i < view->ndim; i++)
        count *= view->shape[i];
    return count;
}

/* The offset of element `index` of a shape with `ndim` dimensions in a view that broadcasts to
 * it. */
static inline int64_t strict_place(const struct strict_view *view, const int64_t *index,
                                   int32_t ndim)
{
    int64_t at = 0;
    for (int32_t i = 0; i < view->ndim; i++)
        if (view->shape[i] != 1)
            at += index[i + ndim - view->ndim] * view->strides[i];
    return at;
}

/* An option as number `i` of the work, for floats and for integers. An integer is rounded to
 * float32 once. */
static inline void strict_number(const tn_call *call, struct strict_work *work, int i,
                                 tn_scalar number)
{
    bool single = tn_view_dtype(call->out[0]) == TN_F32 && number.kind == TN_SCALAR_INT;
    work->real[i] = single ? (double)(float)number.as.i : tn_scalar_as_float(number);
    work->whole[i] = tn_scalar_as_int(number);
}

static inline bool strict_is_float(tn_dtype dtype)
{
    return dtype == TN_F32 || dtype == TN_F64;
}

/* ---- operators along a dimension ---- */

/* Checks the dimension and writes it to whole[0]. */
static inline tn_status strict_dim(const tn_call *call, struct strict_work *work, int64_t dim)
{
    int64_t ndim = call->in[0]->ndim > 0 ? call->in[0]->ndim : 1;
    work->whole[0] = dim < 0 ? dim + ndim : dim;
    if (work->whole[0] < 0 || work->whole[0] >= ndim)
        return tn_fail(TN_ERR_INDEX,
                       "%s: dim: out of range, got %lld; the tensor has %lld dimensions", call->op,
                       (long long)dim, (long long)ndim);
    return TN_OK;
}

static inline int64_t strict_length(const struct strict_view *view, int64_t dim)
{
    return view->ndim > 0 ? view->shape[dim] : 1;
}

static inline int64_t strict_stride(const struct strict_view *view, int64_t dim)
{
    return dim < view->ndim ? view->strides[dim] : 0;
}

/* The offset of element `index` of a view, at 0 along `dim`. */
static inline int64_t strict_line(const struct strict_view *view, const int64_t *index, int64_t dim)
{
    int64_t at = 0;
    for (int32_t i = 0; i < view->ndim; i++)
        if (i != dim)
            at += index[i] * view->strides[i];
    return at;
}

/* The view with size 1 along `dim`: stepping through it visits each line once. */
static inline struct strict_view strict_lines(const struct strict_view *view, int64_t dim)
{
    struct strict_view outer = *view;
    if (outer.ndim > 0 && outer.shape[dim] > 0)
        outer.shape[dim] = 1;
    return outer;
}

/* The offset of element `index` of a view. */
static inline int64_t strict_offset(const struct strict_view *view, const int64_t *index)
{
    int64_t at = 0;
    for (int32_t d = 0; d < view->ndim; d++)
        at += index[d] * view->strides[d];
    return at;
}

/* creation.c: writes real[0] to all of the first view. */
tn_status strict_fill_body(struct strict_work *work);
/* copy.c: copies an element, converting its type. */
void strict_convert_element(struct strict_work *work, const struct strict_view *to, int64_t to_at,
                            const struct strict_view *from, int64_t from_at);

#define STRICT_KERNEL(op) tn_status strict_##op(const tn_call *call)
tn_status strict_copy_kernel(const tn_call *call); /* strict_copy is the device function */
STRICT_KERNEL(fill);
STRICT_KERNEL(narrow_grad);
STRICT_KERNEL(add);
STRICT_KERNEL(sub);
STRICT_KERNEL(mul);
STRICT_KERNEL(div);
STRICT_KERNEL(maximum);
STRICT_KERNEL(add_scalar);
STRICT_KERNEL(mul_scalar);
STRICT_KERNEL(neg);
STRICT_KERNEL(exp);
STRICT_KERNEL(log);
STRICT_KERNEL(sqrt);
STRICT_KERNEL(relu);
STRICT_KERNEL(relu_grad);
STRICT_KERNEL(sigmoid);
STRICT_KERNEL(function); /* by the name of the operator */
STRICT_KERNEL(div_rounded);
STRICT_KERNEL(clamp);
STRICT_KERNEL(where);
STRICT_KERNEL(complex);
STRICT_KERNEL(philox_uniform);
STRICT_KERNEL(philox_normal);
STRICT_KERNEL(sum);
STRICT_KERNEL(amax);
STRICT_KERNEL(argmax);
STRICT_KERNEL(amin);
STRICT_KERNEL(argmin);
STRICT_KERNEL(prod);
STRICT_KERNEL(cumsum);
STRICT_KERNEL(cumprod);
STRICT_KERNEL(sort);
STRICT_KERNEL(arange);
STRICT_KERNEL(gather);
STRICT_KERNEL(scatter);
STRICT_KERNEL(scatter_add);
STRICT_KERNEL(nonzero);
STRICT_KERNEL(bmm);
STRICT_KERNEL(nll_loss);
STRICT_KERNEL(nll_loss_grad);

#endif
