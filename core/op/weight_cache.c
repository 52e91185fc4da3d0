/* SPDX-License-Identifier: MIT
 *
 * Data that kernels prepare from weights, without a prepared call: packed matrices, transformed
 * filters. It is kept with the storage of the weight, for the version that the storage had, and
 * shared by all threads and plans. A call whose weight was written runs without the data; the data
 * of the old version is dropped then. */
#include "core/op/prepared.h"
#include "core/tensor/allocator.h"

#include <string.h>

enum {
    INPUTS = TN_MAX_OPERANDS,
    OUTPUTS = 8, /* of a call, at most */
    MOST = 4,    /* rows of a storage, for different kernels, keys and views */
    /* The number of calls after which a call prepares the data. It is larger for calls that record
     * a gradient, because in training a weight changes after few calls. */
    EARLIER = 1,
    EARLIER_RECORDED = 3,
    SPINS = 1000,
    DEFAULT_MIB = 1024
};

typedef struct row {
    struct row *next;
    const tn__kernel_entry *entry;
    uint64_t key, version, offset;
    tn__prepared_data *data; /* NULL: not yet */
    int32_t calls;           /* without data, of this version */
    bool busy;               /* a thread prepares the data */
    bool refused;            /* `prepare` made nothing, or the limit is reached */
    uint8_t dtype;
    int8_t ndim;
    int64_t dims[]; /* shape, strides */
} row;

/* The lock is held for short steps only. A thread that does not get it soon runs without the kept
 * data. So a child process that inherits a lock that is held still runs. */
typedef struct kept {
    tn__weight_cache head;
    _Atomic bool locked;
    int32_t count;
    row *rows;
} kept;

/* A call, and the weight whose data may be kept. */
typedef struct subject {
    const tn__kernel_entry *entry;
    const tn_device *device;
    const tn_call *call;
    tn__storage *storage; /* of the weight */
    int64_t weight;       /* which input it is */
    uint64_t key;
    int32_t earlier; /* calls before the one that prepares */
} subject;

/* Returns the most bytes of prepared data of a device. */
static int64_t limit(void)
{
    static _Atomic int64_t known = -1;
    int64_t mib = atomic_load_explicit(&known, memory_order_relaxed);
    const char *text;

    if (tn__likely(mib >= 0))
        return mib << 20;
    if (tn__env_read("TENON_PREPARED", &text) != TN_OK)
        return 0;
    if (!tn_read_int(text, &mib) || mib < 0 || mib > INT32_MAX) {
        mib = DEFAULT_MIB;
        tn__log(TN_LOG_WARNING, "TENON_PREPARED=%q is not a number of MiB; %d are the limit", text,
                DEFAULT_MIB);
    }
    atomic_store(&known, mib);
    return mib << 20;
}

static bool take(kept *k)
{
    for (int i = 0; i < SPINS; i++)
        if (!atomic_load_explicit(&k->locked, memory_order_relaxed) &&
            !atomic_exchange_explicit(&k->locked, true, memory_order_acquire))
            return true;
    return false;
}

static void give(kept *k)
{
    atomic_store_explicit(&k->locked, false, memory_order_release);
}

static void drop(tn__weight_cache *head)
{
    kept *k = (kept *)head;

    for (row *r = k->rows, *next; r != NULL; r = next) {
        next = r->next;
        tn__prepared_data_drop(r->data);
        tn_free(r);
    }
    tn_free(k);
}

static kept *kept_of(tn__storage *storage)
{
    tn__weight_cache *there = atomic_load_explicit(&storage->weights, memory_order_acquire);
    kept *made;

    if (there != NULL)
        return (kept *)there;
    made = tn_calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->head.drop = drop;
    if (atomic_compare_exchange_strong(&storage->weights, &there, &made->head))
        return made;
    tn_free(made);
    return (kept *)there;
}

static const tn_view *weight_of(const subject *s)
{
    return s->call->in[s->weight];
}

/* Returns whether two kernels prepare the same data: they are of one plugin, and have the same
 * `user` and the same functions that prepare it. */
static bool shares(const tn__kernel_entry *a, const tn__kernel_entry *b)
{
    return a == b || (a->plugin == b->plugin && a->kernel.user == b->kernel.user &&
                      a->kernel.prepare == b->kernel.prepare &&
                      a->kernel.prepare_key == b->kernel.prepare_key &&
                      a->kernel.release == b->kernel.release);
}

static bool same(const row *r, const subject *s)
{
    const tn_view *view = weight_of(s);
    size_t bytes = (size_t)view->ndim * sizeof(int64_t);

    return shares(r->entry, s->entry) && r->key == s->key && r->offset == view->byte_offset &&
           r->dtype == tn_view_dtype(view) && r->ndim == view->ndim &&
           memcmp(r->dims, view->shape, bytes) == 0 &&
           memcmp(r->dims + r->ndim, view->strides, bytes) == 0;
}

/* Returns the row of the call, a new one if there is none yet; NULL if there are too many, or no
 * memory. The caller holds the lock. */
static row *row_of(kept *k, const subject *s)
{
    const tn_view *view = weight_of(s);
    size_t bytes = (size_t)view->ndim * sizeof(int64_t);
    row *r = k->rows;

    while (r != NULL && !same(r, s))
        r = r->next;
    if (r != NULL || k->count == MOST)
        return r;
    r = tn_calloc(1, sizeof *r + 2 * bytes);
    if (r == NULL)
        return NULL;
    r->entry = s->entry;
    r->key = s->key;
    r->offset = view->byte_offset;
    r->dtype = (uint8_t)tn_view_dtype(view);
    r->ndim = (int8_t)view->ndim;
    memcpy(r->dims, view->shape, bytes);
    memcpy(r->dims + r->ndim, view->strides, bytes);
    r->next = k->rows;
    k->rows = r;
    k->count++;
    return r;
}

/* Calls `prepare` of the kernel, with views that have no memory, except that of the weight. */
static tn__prepared_data *make(const subject *s)
{
    tn_view space[INPUTS + OUTPUTS];
    const tn_view *views[INPUTS + OUTPUTS];
    const tn_call *call = s->call;
    tn_call own = *call;

    for (int64_t i = 0; i < call->n_in + call->n_out; i++) {
        const tn_view *view = i < call->n_in ? call->in[i] : call->out[i - call->n_in];

        views[i] = view;
        if (view == NULL || i == s->weight)
            continue;
        space[i] = *view;
        space[i].data = NULL;
        space[i].byte_offset = 0;
        views[i] = &space[i];
    }
    own.in = views;
    own.out = views + call->n_in;
    own.workspace = NULL;
    own.host = NULL;
    own.constant = s->entry->kernel.weights;
    own.flags = TN_CALL_REPEATED;
    return tn__prepared_data_new(s->entry, s->device, &own);
}

/* Prepares the data of a row that the caller has marked as busy, and holds it. */
static tn__prepared_data *prepare(const subject *s, kept *k, row *r)
{
    tn__prepared_data *made = make(s), *extra = NULL;
    bool fits = made != NULL && made->data != NULL &&
                tn__allocator_counter(&s->device->allocator->prepared) <= limit();

    while (!take(k))
        ;
    r->busy = false;
    r->refused = !fits;
    if (fits) {
        r->data = made;
        atomic_fetch_add_explicit(&made->refs, 1, memory_order_relaxed);
    } else {
        extra = made;
        made = NULL;
    }
    give(k);
    tn__prepared_data_drop(extra);
    return made;
}

/* Returns the data for a weight whose data may be kept, with a reference for the caller; NULL if
 * there is none. */
static tn__prepared_data *hold(const subject *s)
{
    uint64_t version = atomic_load_explicit(&s->storage->version, memory_order_acquire);
    tn__prepared_data *data = NULL, *old = NULL;
    kept *k = kept_of(s->storage);
    bool wanted = false;
    row *r;

    if (k == NULL || !take(k))
        return NULL;
    r = row_of(k, s);
    if (r != NULL && !r->busy && r->version != version) {
        old = r->data;
        r->data = NULL;
        r->refused = false;
        r->calls = 0;
        r->version = version;
    }
    if (r != NULL && r->version == version && r->data != NULL) {
        data = r->data;
        atomic_fetch_add_explicit(&data->refs, 1, memory_order_relaxed);
    } else if (r != NULL && !r->busy && !r->refused) {
        wanted = r->calls++ >= s->earlier;
        r->busy = wanted;
    }
    give(k);
    tn__prepared_data_drop(old);
    return wanted ? prepare(s, k, r) : data;
}

/* Returns whether data may be kept for a weight in this memory. */
static bool may_keep(const tn__storage *storage)
{
    const uint32_t never = TN__STORAGE_FOREIGN | TN__STORAGE_SHARED | TN__STORAGE_TRACED;

    return (storage->flags & never) == 0 &&
           !atomic_load_explicit(&storage->pointed, memory_order_relaxed) && limit() != 0;
}

/* Finds the key of a call, and returns its data as hold() does. A failure leaves no error. */
static tn__prepared_data *hold_for(subject *s)
{
    uint64_t mark;
    tn__prepared_data *data;

    s->key = s->entry->kernel.prepare_key(s->call);
    if (s->key == 0)
        return NULL;
    mark = tn_error_mark();
    data = hold(s);
    if (data == NULL)
        tn_error_restore(mark); /* the call runs without the data */
    return data;
}

static bool fits(const tn_call *call, int64_t weight)
{
    return weight < call->n_in && call->n_in <= INPUTS && call->n_out <= OUTPUTS &&
           (call->flags & TN_CALL_CAPTURED) == 0;
}

tn__prepared_data *tn__weight_cache_hold(const tn__work *work, const tn__kernel_entry *entry,
                                         tn_call *call)
{
    const int64_t weight = __builtin_ctzll(entry->kernel.weights);
    tn__prepared_data *data;

    if (!fits(call, weight) || tn__is_none(work->in[weight]) ||
        !may_keep(work->in[weight]->storage))
        return NULL;
    data = hold_for(&(subject){ .entry = entry,
                                .device = work->device,
                                .call = call,
                                .storage = work->in[weight]->storage,
                                .weight = weight,
                                .earlier = work->wants_grad ? EARLIER_RECORDED : EARLIER });
    if (data != NULL) {
        call->prepared = data->data;
        call->constant = entry->kernel.weights;
    }
    return data;
}

tn__prepared_data *tn__weight_cache_share(const tn__kernel_entry *entry, const tn_device *device,
                                          const tn_call *call, int64_t weight, tn__storage *storage)
{
    if (!fits(call, weight) || !may_keep(storage))
        return NULL;
    return hold_for(&(subject){
        .entry = entry, .device = device, .call = call, .storage = storage, .weight = weight });
}
