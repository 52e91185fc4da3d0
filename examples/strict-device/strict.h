/* SPDX-License-Identifier: MIT
 *
 * The strict device: first the interface that it publishes for kernel packs and tests, then the
 * declarations that its files share. A kernel gets no pointers. It reads and writes elements
 * through functions, which check each access. */
#ifndef STRICT_DEVICE_STRICT_H
#define STRICT_DEVICE_STRICT_H

#ifndef TENON_TENON_H /* programs and tests include their own headers */
#include <tenon/plugin.h>
#endif

/* ==== published: tn_device_native(device, STRICT_API_ID) ====================================== */

#define STRICT_API_ID "org.example.strict.api/1"
#define STRICT_MAX_VIEWS 6

/* A copy of a tn_view, whose memory range was checked when the call was queued. */
struct strict_view {
    uint64_t memory; /* the handle of a region */
    uint64_t offset; /* in bytes */
    tn_dtype dtype;
    int32_t ndim;
    int64_t shape[TN_MAX_DIMS];
    int64_t strides[TN_MAX_DIMS]; /* in elements */
};

/* A queued call: its views, and its options as numbers. */
struct strict_work {
    const char *op;
    int32_t n_in, n_out;
    struct strict_view view[STRICT_MAX_VIEWS]; /* outputs, then inputs; TN_DTYPE_AUTO: absent */
    double real[2];
    int64_t whole[4];
    tn_status status; /* the status of the first refused access */
    void *device;
};

typedef tn_status strict_body(struct strict_work *work);

struct strict_api {
    uint32_t size;
    /* Checks and copies the views of a call, and queues body(work), which runs on the device's
     * thread after the earlier work of the stream. `fill` (may be NULL) is called before this
     * function returns and stores the options as numbers. A body reports failures with tn_fail. */
    tn_status (*enqueue)(const tn_call *call, strict_body *body,
                         tn_status (*fill)(const tn_call *, struct strict_work *));
    /* Reads or writes one element of a view; `at` is its distance from the first element, in
     * elements. Only a body may call this. */
    double (*get)(struct strict_work *work, const struct strict_view *view, int64_t at);
    void (*set)(struct strict_work *work, const struct strict_view *view, int64_t at, double value);
    /* Injects failures from now on. `text` has the form of TENON_STRICT_FAIL; "" for none. */
    tn_status (*inject)(const char *text);
    /* Stores the number of kernels that ran, of invalid accesses and frees, and of allocated
     * bytes. */
    void (*counts)(uint64_t *kernels, uint64_t *violations, uint64_t *bytes);
};

/* ==== inside ================================================================================== */

/* ---- memory.c: regions behind handles; a region is the memory of one allocation ---- */

tn_status strict_alloc(size_t bytes, uint64_t *handle);
void strict_free(uint64_t handle);
/* Stores the size of an allocated region. Returns false and counts a violation for any other
 * handle. */
bool strict_region(uint64_t handle, uint64_t *bytes);
/* Make a region accessible, while the device's thread works on it, and inaccessible again. */
void strict_region_open(uint64_t handle);
void strict_region_close(uint64_t handle);
/* Adds `more` to the number of queued pieces of work that use a region. Freeing a region in use is
 * a violation. */
void strict_region_use(uint64_t handle, int32_t more);
/* Returns the address of the bytes [offset, offset + size) of an open region. Returns NULL and
 * counts a violation if they are not all inside the region. */
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
/* Returns true if this allocation of `bytes` must fail; `live` bytes are in use. */
bool strict_inject_alloc(uint64_t bytes, uint64_t live);
/* Called before each piece of work. Sleeps if `slow` is set; returns true if the device must be
 * lost now. */
bool strict_inject_work(void);
/* Returns true if this run of the operator must fail. */
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

/* Moves `index` to the next element of a shape in row-major order. Returns false after the last
 * element. */
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

/* Returns the offset, in a view that is broadcast to a shape of `ndim` dimensions, of element
 * `index` of that shape. */
static inline int64_t strict_place(const struct strict_view *view, const int64_t *index,
                                   int32_t ndim)
{
    int64_t at = 0;
    for (int32_t i = 0; i < view->ndim; i++)
        if (view->shape[i] != 1)
            at += index[i + ndim - view->ndim] * view->strides[i];
    return at;
}

/* Stores an option in real[i] and whole[i] of the work. For a float32 output, an integer is rounded
 * directly to float32. */
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

/* Checks the option dim, and stores it in whole[0] as a number that is not negative. */
static inline tn_status strict_dim(const tn_call *call, struct strict_work *work, int64_t dim)
{
    int64_t ndim = call->in[0]->ndim > 0 ? call->in[0]->ndim : 1;
    work->whole[0] = dim < 0 ? dim + ndim : dim;
    if (work->whole[0] < 0 || work->whole[0] >= ndim)
        return tn_fail(TN_ERR_INDEX, "%s: dim: out of range, got %lld; expected %lld to %lld",
                       call->op, (long long)dim, -(long long)ndim, (long long)ndim - 1);
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

/* Returns the offset of element `index` of a view, with index 0 along `dim`. */
static inline int64_t strict_line(const struct strict_view *view, const int64_t *index, int64_t dim)
{
    int64_t at = 0;
    for (int32_t i = 0; i < view->ndim; i++)
        if (i != dim)
            at += index[i] * view->strides[i];
    return at;
}

/* Returns the view with size 1 along `dim`. Stepping through this view visits each line along `dim`
 * once. */
static inline struct strict_view strict_lines(const struct strict_view *view, int64_t dim)
{
    struct strict_view outer = *view;
    if (outer.ndim > 0 && outer.shape[dim] > 0)
        outer.shape[dim] = 1;
    return outer;
}

/* Returns the offset of element `index` of a view. */
static inline int64_t strict_offset(const struct strict_view *view, const int64_t *index)
{
    int64_t at = 0;
    for (int32_t d = 0; d < view->ndim; d++)
        at += index[d] * view->strides[d];
    return at;
}

/* creation.c: writes real[0], or whole[0] for integers, to all elements of the first view. */
tn_status strict_fill_body(struct strict_work *work);
/* copy.c: copies an element and converts its dtype. */
void strict_convert_element(struct strict_work *work, const struct strict_view *to, int64_t to_at,
                            const struct strict_view *from, int64_t from_at);

#define STRICT_KERNEL(op) tn_status strict_##op(const tn_call *call)
/* The kernel of the operator copy; strict_copy() is the copy function of the backend. */
tn_status strict_copy_kernel(const tn_call *call);
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
STRICT_KERNEL(function); /* several operators, by their names */
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
