/* SPDX-License-Identifier: MIT
 *
 * Creates plans and caches them. oneDNN needs up to some milliseconds to compile a plan, so each
 * shape is compiled only once. A full cache drops the least recently used plan. */
#include "plan.h"

#include "onednn.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PLANS = 256, ENDINGS = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct plan *plans[PLANS];
static uint64_t clock_now;
static bool ending; /* of the process */

static void plan_free(struct plan *plan)
{
    if (plan->main)
        dnnl.dnnl_primitive_destroy(plan->main);
    if (plan->reorder)
        dnnl.dnnl_primitive_destroy(plan->reorder);
    tn_free(plan);
}

/* ---- creating -------------------------------------------------------------------------------- */

static const dnnl_format_tag_t last_tags[] = { dnnl_nwc, dnnl_nhwc, dnnl_ndhwc };
static const dnnl_format_tag_t plain_tags[2][DIMS] = { { dnnl_oiw, dnnl_oihw, dnnl_oidhw },
                                                       { dnnl_goiw, dnnl_goihw, dnnl_goidhw } };

static dnnl_status_t activation(dnnl_memory_desc_t *desc, const struct shape *s, int64_t channels,
                                const int64_t *size)
{
    dnnl_dims_t dims = { s->images, channels };
    memcpy(dims + 2, size, (size_t)s->dims * sizeof *size);
    return dnnl.dnnl_memory_desc_init_by_tag(desc, (int)s->dims + 2, dims, dnnl_f32,
                                             last_tags[s->dims - 1]);
}

static dnnl_status_t weight(dnnl_memory_desc_t *desc, const struct shape *s, dnnl_format_tag_t tag)
{
    dnnl_dims_t dims = { s->groups, s->outputs / s->groups, s->inputs / s->groups };
    memcpy(dims + 3, s->kernel, (size_t)s->dims * sizeof *dims);
    bool grouped = s->groups > 1;
    return dnnl.dnnl_memory_desc_init_by_tag(desc, (int)s->dims + 2 + grouped,
                                             grouped ? dims : dims + 1, dnnl_f32, tag);
}

/* Makes the primitive descriptor of an operation, whose scratch memory the caller provides. */
static dnnl_status_t compile(const_dnnl_op_desc_t op, const_dnnl_primitive_desc_t hint,
                             dnnl_primitive_desc_t *desc)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = dnnl.dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success)
        status = dnnl.dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = dnnl.dnnl_primitive_desc_create(desc, op, attr, dnnl.engine, hint);
    if (attr)
        dnnl.dnnl_primitive_attr_destroy(attr);
    return status;
}

static size_t scratch_of(const_dnnl_primitive_desc_t desc)
{
    const dnnl_memory_desc_t *scratch = dnnl.dnnl_primitive_desc_query_md(
        desc, dnnl_query_scratchpad_md, 0);
    return scratch ? dnnl.dnnl_memory_desc_get_size(scratch) : 0;
}

/* Makes the primitive that converts the weight between row-major order and the order that oneDNN
 * has chosen. */
static dnnl_status_t make_reorder(struct plan *plan)
{
    bool out = plan->shape.kind == PLAN_WEIGHT;
    const dnnl_memory_desc_t *from = out ? &plan->weight : &plan->plain;
    const dnnl_memory_desc_t *to = out ? &plan->plain : &plan->weight;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_status_t status;

    if (memcmp(from, to, sizeof *from) == 0)
        return dnnl_success;
    status = dnnl.dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success)
        status = dnnl.dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = dnnl.dnnl_reorder_primitive_desc_create(&desc, from, dnnl.engine, to, dnnl.engine,
                                                         attr);
    if (status == dnnl_success) {
        plan->reorder_scratch = scratch_of(desc);
        status = dnnl.dnnl_primitive_create(&plan->reorder, desc);
        dnnl.dnnl_primitive_desc_destroy(desc);
    }
    if (attr)
        dnnl.dnnl_primitive_attr_destroy(attr);
    return status;
}

static dnnl_status_t make_main(struct plan *plan, const dnnl_memory_desc_t *any)
{
    const struct shape *s = &plan->shape;
    dnnl_dims_t dilation = { 0 }, stride = { 0 }, padding = { 0 };
    dnnl_convolution_desc_t forward, back;
    dnnl_primitive_desc_t hint = NULL, desc = NULL;
    dnnl_status_t status;

    for (int64_t i = 0; i < s->dims; i++) {
        dilation[i] = s->dilation[i] - 1; /* oneDNN counts from 0: its 0 is a dilation of 1 */
        stride[i] = s->stride[i];
        padding[i] = s->padding[i];
    }
    status = dnnl.dnnl_dilated_convolution_forward_desc_init(
        &forward, dnnl_forward_training, dnnl_convolution_direct, &plan->x, any,
        s->kind == PLAN_FORWARD && s->bias ? &plan->bias : NULL, &plan->y, stride, dilation,
        padding, padding);
    if (status == dnnl_success)
        status = compile(&forward, NULL, s->kind == PLAN_FORWARD ? &desc : &hint);
    if (status == dnnl_success && s->kind == PLAN_INPUT)
        status = dnnl.dnnl_dilated_convolution_backward_data_desc_init(
            &back, dnnl_convolution_direct, &plan->x, any, &plan->y, stride, dilation, padding,
            padding);
    if (status == dnnl_success && s->kind == PLAN_WEIGHT)
        status = dnnl.dnnl_dilated_convolution_backward_weights_desc_init(
            &back, dnnl_convolution_direct, &plan->x, any, NULL, &plan->y, stride, dilation,
            padding, padding);
    if (status == dnnl_success && s->kind != PLAN_FORWARD)
        status = compile(&back, hint, &desc);
    if (status == dnnl_success) {
        plan->weight = *dnnl.dnnl_primitive_desc_query_md(
            desc, s->kind == PLAN_WEIGHT ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
        plan->scratch = scratch_of(desc);
        status = dnnl.dnnl_primitive_create(&plan->main, desc);
    }
    if (desc)
        dnnl.dnnl_primitive_desc_destroy(desc);
    if (hint)
        dnnl.dnnl_primitive_desc_destroy(hint);
    return status;
}

static struct plan *plan_make(const struct shape *shape)
{
    struct plan *plan = tn_calloc(1, sizeof *plan);
    dnnl_memory_desc_t any;
    dnnl_dims_t outputs = { shape->outputs };
    dnnl_status_t status;

    if (!plan)
        return NULL;
    plan->shape = *shape;
    tn_log(TN_LOG_DEBUG, "a plan of kind %lld for %lld images, %lld channels to %lld",
           (long long)shape->kind, (long long)shape->images, (long long)shape->inputs,
           (long long)shape->outputs);
    int before = dnnl_api_enter();
    status = activation(&plan->x, shape, shape->inputs, shape->x);
    if (status == dnnl_success)
        status = activation(&plan->y, shape, shape->outputs, shape->y);
    if (status == dnnl_success)
        status = dnnl.dnnl_memory_desc_init_by_tag(&plan->bias, 1, outputs, dnnl_f32, dnnl_x);
    if (status == dnnl_success)
        status = weight(&plan->plain, shape, plain_tags[shape->groups > 1][shape->dims - 1]);
    if (status == dnnl_success)
        status = weight(&any, shape, dnnl_format_tag_any);
    if (status == dnnl_success)
        status = make_main(plan, &any);
    if (status == dnnl_success)
        status = make_reorder(plan);
    dnnl_api_leave(before);
    if (status == dnnl_out_of_memory) {
        plan_free(plan);
        dnnl_api_fail(status, "making a plan");
        return NULL;
    }
    if (status != dnnl_success && plan->main) {
        dnnl.dnnl_primitive_destroy(plan->main);
        plan->main = NULL;
    }
    return plan;
}

/* ---- the end of the process ------------------------------------------------------------------ */

/* exit() destroys the static objects of oneDNN while other threads still run. Plans that exist can
 * be executed without them, but no plan can be made. So no plan is made any more, and exit() waits
 * for a plan that is being made. The limit is for a thread that called exit() itself while it made
 * the plan, in a signal handler. */
static void stop_making(void)
{
    struct timespec limit;

    if (getpid() != onednn_process) /* after fork, another thread may hold the lock forever */
        return;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec++;
    if (pthread_mutex_timedlock(&lock, &limit) != 0)
        return;
    ending = true;
    pthread_mutex_unlock(&lock);
}

/* oneDNN makes its static objects in the first plan that needs them, and exit() calls functions in
 * the reverse of the order in which they were registered. So the function is registered again after
 * a plan that may have made such objects. The first plans make all of them; the limit bounds the
 * memory. */
static void register_end(void)
{
    static int registered;

    if (registered < ENDINGS && atexit(stop_making) == 0)
        registered++;
}

/* ---- caching --------------------------------------------------------------------------------- */

struct plan *plan_take(const struct shape *shape)
{
    struct plan *plan = NULL;
    int place = -1;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < PLANS && !plan; i++) {
        struct plan *at = plans[i];
        if (at && memcmp(&at->shape, shape, sizeof *shape) == 0)
            plan = at;
        else if (!at && (place < 0 || plans[place]))
            place = i;
        else if (at && at->used == 0 &&
                 (place < 0 || (plans[place] && at->stamp < plans[place]->stamp)))
            place = i;
    }
    if (!plan && ending) {
        plan = tn_calloc(1, sizeof *plan);
        place = -1;
    } else if (!plan) {
        plan = plan_make(shape);
        register_end();
    }
    if (plan) {
        bool kept = plan->stamp != 0;
        plan->used++;
        plan->stamp = ++clock_now;
        if (!kept && place >= 0) {
            if (plans[place])
                plan_free(plans[place]);
            plans[place] = plan;
        } else if (!kept) {
            plan->stamp = 0; /* not in the cache: plan_give() frees the plan after its use */
        }
    }
    pthread_mutex_unlock(&lock);
    return plan;
}

void plan_give(struct plan *plan)
{
    if (!plan)
        return;
    pthread_mutex_lock(&lock);
    if (--plan->used == 0 && plan->stamp == 0)
        plan_free(plan);
    pthread_mutex_unlock(&lock);
}

void plan_forget_all(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < PLANS; i++) {
        if (plans[i])
            plan_free(plans[i]);
        plans[i] = NULL;
    }
    pthread_mutex_unlock(&lock);
}
