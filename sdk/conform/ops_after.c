/* SPDX-License-Identifier: MIT
 *
 * What a kernel keeps of a call. The call, its views and its options are valid only until `run`
 * returns. Here the kernel gets them in memory that no one may read afterwards, until the same
 * addresses hold the next call. A kernel registered above it passes on the calls. */
#include "ops.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROOM = 1 << 17, PAGES = 2, WATCHED = 64, CASES = 16 };

/* The kernels that pass on calls; the data of each is the kernel of the plugin. */
static tn_kernel_def outer[WATCHED];
static int n_outer;

/* Memory for the calls. While `on` is set, calls are passed on in one of the pages; otherwise where
 * they are. */
static struct pages {
    char *at[PAGES];
    int next;
    bool on;
} pages;

/* ---- an access after the call ---------------------------------------------------------------- */

/* What the handler of SIGSEGV writes to the pipe of the test. */
static struct complaint {
    char words[300];
    size_t length;
    int fd;
    struct sigaction before;
} complaint;

/* Ends the process with a failure of the test if the address is in a page; otherwise leaves the
 * signal to the handler that was there before. */
static void touched(int number, siginfo_t *about, void *context)
{
    (void)context;
    for (int i = 0; i < PAGES; i++)
        if ((char *)about->si_addr >= pages.at[i] && (char *)about->si_addr < pages.at[i] + ROOM) {
            if (write(complaint.fd, complaint.words, complaint.length) < 0)
                _exit(2);
            _exit(1);
        }
    sigaction(number, &complaint.before, NULL);
}

static void begin_to_watch(const subject *s, const conform_case *one, const char *kernel)
{
    struct sigaction action;

    complaint.length = (size_t)snprintf(complaint.words, sizeof complaint.words,
                                        "fail case %.100s: kernel %.100s read its call, a view or "
                                        "the options after `run` had returned\n",
                                        one->name, kernel);
    fflush(s->c->to);
    complaint.fd = fileno(s->c->to);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = touched;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &complaint.before);
    pages.on = true;
}

static void end_to_watch(void)
{
    pages.on = false;
    sigaction(SIGSEGV, &complaint.before, NULL);
}

/* ---- passing on a call ----------------------------------------------------------------------- */

/* The call as the kernel of the plugin would have got it. */
static tn_call for_inner(const tn_call *call)
{
    tn_call inner = *call;

    inner.kernel = call->kernel->user;
    return inner;
}

static bool outer_supports(const tn_call *call, char *reason, size_t size)
{
    tn_call inner = for_inner(call);

    return inner.kernel->supports(&inner, reason, size);
}

static size_t outer_workspace(const tn_call *call)
{
    tn_call inner = for_inner(call);

    return inner.kernel->workspace(&inner);
}

static tn_status outer_prepare(const tn_call *call, tn_prepared_data *out)
{
    tn_call inner = for_inner(call);

    return inner.kernel->prepare(&inner, out);
}

static void outer_release(const tn_kernel_def *kernel, void *data)
{
    const tn_kernel_def *inner = kernel->user;

    inner->release(inner, data);
}

static uint64_t outer_prepare_key(const tn_call *call)
{
    tn_call inner = for_inner(call);

    return inner.kernel->prepare_key(&inner);
}

/* A call in a page, with all that it points to. */
typedef struct moved_call {
    tn_call call;
    const tn_call *given;
    const tn_view *in[OPERANDS], *out[OPERANDS];
    tn_view views[2 * OPERANDS + 1];
    int64_t sizes[2 * OPERANDS + 1][2][TN_MAX_DIMS]; /* shape and strides of the views */
    char options[];
} moved_call;

/* Copies a view, with its shape and strides, to place `to`. */
static const tn_view *move_view(moved_call *m, int64_t to, const tn_view *view)
{
    size_t size;

    if (view == NULL)
        return NULL;
    size = (size_t)view->ndim * sizeof(int64_t);
    m->views[to] = *view;
    if (size > 0) {
        memcpy(m->sizes[to][0], view->shape, size);
        memcpy(m->sizes[to][1], view->strides, size);
    }
    m->views[to].shape = m->sizes[to][0];
    m->views[to].strides = m->sizes[to][1];
    return &m->views[to];
}

/* For an output whose shape is only known now: the core makes it in the call that it gave. */
static tn_status make_output(const tn_call *call, int32_t index, tn_ints shape)
{
    moved_call *m = (moved_call *)(void *)(uintptr_t)call;
    tn_status status = m->given->make_output(m->given, index, shape);

    if (status == TN_OK)
        m->out[index] = move_view(m, OPERANDS + index, m->given->out[index]);
    return status;
}

/* Copies a call and its views and options to `m`. */
static void move(moved_call *m, const tn_call *given)
{
    const tn_op_def *def = tn_op_definition(tn_op_find(given->op, 0));

    m->given = given;
    m->call = for_inner(given);
    for (int64_t i = 0; i < given->n_in; i++)
        m->in[i] = move_view(m, i, given->in[i]);
    for (int32_t i = 0; i < given->n_out; i++)
        m->out[i] = move_view(m, OPERANDS + i, given->out[i]);
    m->call.workspace = move_view(m, 2 * OPERANDS, given->workspace);
    if (given->options != NULL && def != NULL) {
        memcpy(m->options, given->options, def->options_size);
        m->call.options = m->options;
    }
    m->call.in = m->in;
    m->call.out = m->out;
    m->call.make_output = make_output;
}

static tn_status outer_run(const tn_call *call)
{
    tn_call inner = for_inner(call);
    char *page = pages.at[pages.next];
    tn_status status;

    if (!pages.on || call->n_in > OPERANDS || call->n_out > OPERANDS)
        return inner.kernel->run(&inner);
    pages.next = (pages.next + 1) % PAGES;
    if (mprotect(page, ROOM, PROT_READ | PROT_WRITE) != 0)
        return inner.kernel->run(&inner);
    move((moved_call *)(void *)page, call);
    status = inner.kernel->run(&((moved_call *)(void *)page)->call);
    mprotect(page, ROOM, PROT_NONE);
    return status;
}

/* ---- the kernels above ----------------------------------------------------------------------- */

static bool has_pages(void)
{
    for (int i = 0; i < PAGES; i++)
        if (pages.at[i] == NULL) {
            pages.at[i] = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (pages.at[i] == MAP_FAILED) {
                pages.at[i] = NULL;
                return false;
            }
        }
    return true;
}

/* Registers a kernel above `inner` that passes on its calls. Returns false on failure. */
static bool watch(const tn_kernel_def *inner)
{
    tn_kernel_def *one = &outer[n_outer];

    if (n_outer == WATCHED || !has_pages() || inner->priority == INT32_MAX)
        return false;
    *one = *inner;
    one->user = inner;
    one->priority++;
    one->flags |= TN_KERNEL_OVERRIDE;
    one->supports = inner->supports != NULL ? outer_supports : NULL;
    one->workspace = inner->workspace != NULL ? outer_workspace : NULL;
    one->prepare = inner->prepare != NULL ? outer_prepare : NULL;
    one->release = inner->release != NULL ? outer_release : NULL;
    one->prepare_key = inner->prepare_key != NULL ? outer_prepare_key : NULL;
    one->run = outer_run;
    if (tn_register(one) != TN_OK) {
        tn_error_clear();
        return false;
    }
    n_outer++;
    return true;
}

/* Returns the kernel that runs the call, NULL if none does. */
static const tn_kernel_def *kernel_of(const conform_case *one, tn_tensor *const *in)
{
    tn_prepared *kept = tn_op_prepare(one->op, in, one->n_in, one->options, 0);
    const tn_kernel_def *kernel = kept != NULL ? tn_prepared_kernel(kept) : NULL;

    tn_prepared_drop(kept);
    tn_error_clear();
    return kernel;
}

static bool is_watched(const tn_kernel_def *kernel)
{
    return kernel->run == outer_run;
}

/* Returns whether a watched kernel runs the call; watches the one that does. */
static bool is_run_by_watched(subject *s, const conform_case *one, tn_tensor *const *in,
                              const char **name)
{
    const tn_kernel_def *kernel;

    tn_device_begin(s->device);
    kernel = kernel_of(one, in);
    if (kernel != NULL && !is_watched(kernel))
        kernel = watch(kernel) ? kernel_of(one, in) : NULL;
    tn_device_end();
    *name = kernel != NULL && kernel->name != NULL ? kernel->name : one->def->name;
    return kernel != NULL && is_watched(kernel);
}

/* Calls with the default options in the first page, where the options of the case come next. */
static void call_with_defaults(const subject *s, const conform_case *one, const attempt *plain)
{
    conform_case other = *one;
    attempt a = *plain;

    pages.next = 0;
    other.options = NULL;
    if (one->options != NULL)
        (void)conform_call(&other, s->device, 7, &a);
    tn_error_clear();
    pages.next = 0;
}

bool conform_after(subject *s, const conform_case *one, tn_dtype from, tn_dtype dtype)
{
    where_from w = { one, dtype, conform_layout_names[0], "output", 0 };
    static attempt plain, a;
    int64_t checks = s->c->checks; /* not counted: a test that only did this compared no gradient */
    const char *name;
    bool well = true;

    if (from != dtype || one->def->n_outputs == 0 || s->row[dtype].watched >= CASES ||
        getenv("TENON_CHECK") != NULL)
        return true;
    if (conform_inputs(one, from, dtype, false, s->device, CONFORM_AS_GIVEN, false, &plain) !=
            TN_OK ||
        conform_call(one, s->device, 7, &plain) != TN_OK) {
        tn_error_clear(); /* the comparison of gradients reports it */
        return true;
    }
    if (!is_run_by_watched(s, one, plain.in, &name))
        return true;
    s->row[dtype].watched++;
    a = plain;
    pages.next = 0; /* so that the defaults follow a call in the other page */
    for (int turn = 0; turn < PAGES + 1 && well; turn++) {
        begin_to_watch(s, one, name);
        if (turn == PAGES)
            call_with_defaults(s, one, &plain);
        well = conform_call(one, s->device, 7, &a) == TN_OK || conform_missing(s, one, dtype);
        end_to_watch();
        for (w.index = 0; well && w.index < one->def->n_outputs; w.index++)
            well = conform_same_bits(s, &w, plain.out[w.index], a.out[w.index],
                                     "at the addresses of earlier calls");
    }
    s->c->checks = checks;
    return well;
}
