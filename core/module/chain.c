/* SPDX-License-Identifier: MIT
 *
 * Modules that are called one after the other: all children, or a chain of names. If the layer of a
 * module can compute the modules after it in the same operator (tn_layer_def.fuse), and no hook or
 * observer could see the difference, it does so. */
#include "core/module/hooks.h"
#include "core/module/mode_seen.h"
#include "core/op/needed.h"
#include "core/tensor/autocast.h"
#include "core/tensor/mode.h"
#include "core/tensor/trace.h"

enum { NAME = 256, AHEAD = 4 /* the most followers that `fuse` gets */ };

/* ---- fusing ---------------------------------------------------------------------------------- */

/* Whether a call of the module runs its layer's forward and nothing else. */
static bool is_plain(tn_module *module)
{
    return module != NULL && module->layer != NULL && module->layer->infer == NULL &&
           (tn__hook_kinds(module) & TN__HOOKS_OF_CALLS) == 0;
}

/* Returns whether a call of the module may be computed together with calls of the modules after it.
 */
static bool may_fuse(tn_module *module)
{
    return module != NULL && module->layer != NULL && module->layer->fuse != NULL &&
           is_plain(module) && !tn__anomaly_on() && !tn__autocast_on() &&
           (tn__tracer_here != NULL
                ? tn__tracer_here->fuses
                : atomic_load_explicit(&tn__observers_on, memory_order_relaxed) == 0) &&
           ((module->layer->flags & TN_LAYER_FUSE_NO_GRAD) == 0 || !tn__grad_on());
}

/* The modules and sums after a module. */
typedef struct ahead {
    tn_follower at[AHEAD];
    tn_channel_norm norms[AHEAD]; /* where at[i].norm points */
    int64_t count;
} ahead;

/* Adds the module to the followers. Returns false if it cannot be a follower. */
static bool add_follower(ahead *after, tn_module *module)
{
    tn_follower *follower = &after->at[after->count];
    tn_channel_norm *norm = &after->norms[after->count];

    *follower = (tn_follower){ NULL, NULL, NULL };
    if (!is_plain(module))
        return false;
    if (module->layer->pointwise != NULL)
        follower->pointwise = module->layer->pointwise(module);
    if (follower->pointwise == NULL && module->layer->channel_norm != NULL) {
        *norm = (tn_channel_norm){ TN_HEAD(tn_channel_norm) };
        if (module->layer->channel_norm(module, norm))
            follower->norm = norm;
    }
    if (follower->pointwise == NULL && follower->norm == NULL)
        return false;
    after->count++;
    return true;
}

/* Whether a call of the module may write its own tensors: running statistics, or what a computed
 * slot keeps. */
static bool may_write(const tn_module *module)
{
    return tn__mode_is_training(module) &&
           (module->buffers.count > 0 || module->computed.count > 0);
}

/* Calls the module together with modules and sums after it. If that fails, calls the module alone,
 * so that the failure names the module that fails. Does not try again if memory ran out and the
 * operator may have written running statistics already. */
static tn_tensor *call_ahead(tn_module *module, tn_tensor *input, const ahead *after, int64_t *done)
{
    uint64_t mark = tn_error_mark();
    tn_tensor *y = tn__call_fused(module, input, after->at, after->count, done);

    if (tn__likely(y != NULL) || (tn_error_last_code() == TN_ERR_MEMORY && may_write(module)))
        return y;
    tn_error_restore(mark);
    *done = 0;
    return tn_module_call(module, input);
}

/* ---- all children ---------------------------------------------------------------------------- */

/* Calls child *i, of `count`, together with children after it, and sets *i to the last of these.
 * Not inlined: a call of a child that has children needs no room for followers on the stack. */
static TN_ATTR(noinline) tn_tensor *call_with_next(tn_module *module, int64_t *i, int64_t count,
                                                   tn_tensor *input)
{
    tn_module *child = tn_module_child_at(module, *i);
    int64_t done = 0;
    ahead after;

    after.count = 0;
    while (after.count < AHEAD && *i + 1 + after.count < count &&
           add_follower(&after, tn_module_child_at(module, *i + 1 + after.count)))
        ;
    if (after.count == 0)
        return tn_module_call(child, input);
    input = call_ahead(child, input, &after, &done);
    *i += done;
    return input;
}

tn_tensor *tn_module_call_children(tn_module *module, tn_tensor *input)
{
    int64_t count;

    if (module == NULL || input == NULL) {
        tn__error_null_of("tn_module_call_children", "module, input", module, input);
        return NULL;
    }
    count = tn_module_child_count(module);
    for (int64_t i = 0; i < count && input != NULL; i++) {
        tn_module *child = tn_module_child_at(module, i);

        if (child != NULL)
            input = may_fuse(child) ? call_with_next(module, &i, count, input)
                                    : tn_module_call(child, input);
    }
    return input;
}

/* ---- chains ---------------------------------------------------------------------------------- */

typedef struct chain {
    tn_module *module;
    tn_tensor *input; /* of the whole chain */
    const char *rest; /* the names that are left */
    /* The tensor that the next name, which is a sum, adds; NULL if it has not been computed. */
    tn_tensor *addend;
} chain;

/* Copies the next name to name[NAME] and returns where the following one begins; NULL and an error
 * if the name is too long. */
static const char *next_name(const char *names, char *name)
{
    size_t length = strcspn(names, " ");

    if (length >= NAME) {
        tn_fail(TN_ERR_VALUE,
                "tn_module_call_chain: names: a name is too long, got %llu bytes; expected at "
                "most %d",
                (unsigned long long)length, NAME - 1);
        return NULL;
    }
    memcpy(name, names, length);
    name[length] = '\0';
    names += length;
    return names + strspn(names, " ");
}

/* Returns the child with this name. Returns NULL and sets the error on failure. */
static tn_module *child_at(tn_module *module, const char *name)
{
    uint64_t failures = tn_error_mark();
    tn_module *child = tn_module_child(module, name);

    if (child == NULL && tn_error_mark() == failures)
        tn_fail(TN_ERR_TYPE, "%s: child slot '%s': empty; expected a module", module->type, name);
    return child;
}

static tn_module *module_at(tn_module *module, const char *name)
{
    return strchr(name, '.') != NULL ? tn_module_find(module, name) : child_at(module, name);
}

/* Returns what the sum "+name" adds. */
static tn_tensor *addend_of(const chain *c, const char *name)
{
    tn_module *child;

    if (name[1] == '\0')
        return c->input;
    child = module_at(c->module, name + 1);
    return child != NULL ? tn_module_call(child, c->input) : NULL;
}

/* Whether slots of both hold the same memory. */
static bool share(const tn__slots *a, const tn__slots *b)
{
    for (int64_t i = 0; i < a->count; i++)
        for (int64_t k = 0; k < b->count; k++)
            if (!tn__is_none(a->at[i].tensor) && !tn__is_none(b->at[k].tensor) &&
                a->at[i].tensor->storage == b->at[k].tensor->storage)
                return true;
    return false;
}

/* Whether one of the two modules may write a tensor that the other has. */
static bool disturbs(const tn_module *a, const tn_module *b)
{
    if (!may_write(a) && !may_write(b))
        return false;
    return a->computed.count > 0 || b->computed.count > 0 || b->children.count > 0 ||
           share(&a->buffers, &b->buffers) || share(&a->buffers, &b->parameters) ||
           share(&a->parameters, &b->buffers);
}

/* Whether nothing sees that the module is called before the `count` modules `others`: no module of
 * its tree has hooks, all layers say that they write into no tensor that they get, none of them
 * writes a tensor of `others`, and `others` write none of their tensors. */
static bool is_quiet(tn_module *module, tn_module *const *others, int64_t count)
{
    bool quiet = module == NULL ||
                 (is_plain(module) && (module->layer->flags & TN_LAYER_READS_INPUT) != 0);

    for (int64_t i = 0; quiet && module != NULL && i < count; i++)
        quiet = !disturbs(module, others[i]);
    for (int64_t i = 0; quiet && module != NULL && i < module->children.count; i++)
        quiet = is_quiet(module->children.at[i].child, others, count);
    return quiet;
}

/* Computes the sum "+name" before its turn. Returns false if that fails: the sum is then computed
 * at its turn, because a module before it may fail first. */
static bool add_ahead(chain *c, const char *name)
{
    uint64_t mark = tn_error_mark();

    c->addend = addend_of(c, name);
    if (c->addend == NULL)
        tn_error_restore(mark);
    return c->addend != NULL;
}

/* Collects the followers of a module from the names that are left. A sum is computed now, before
 * the module is called, if nothing sees that. */
static void look_ahead(chain *c, tn_module *module, ahead *after)
{
    const char *names = c->rest;
    tn_module *before[1 + AHEAD] = { module }; /* which come before the sum */
    char name[NAME];

    after->count = 0;
    while (after->count < AHEAD && *names != '\0') {
        if (strcspn(names, " ") >= NAME)
            return; /* fails at its turn */
        names = next_name(names, name);
        if (name[0] != '+') {
            if (strpbrk(name, ".*") != NULL ||
                tn_module_slot_kind(c->module, name) != TN_SLOT_CHILD ||
                !add_follower(after, tn_module_child(c->module, name)))
                return;
            before[after->count] = tn_module_child(c->module, name);
            continue;
        }
        if (c->addend != NULL || strchr(name, '.') != NULL)
            return;
        if (name[1] != '\0' &&
            (tn_module_slot_kind(c->module, name + 1) != TN_SLOT_CHILD ||
             !is_quiet(tn_module_child(c->module, name + 1), before, 1 + after->count)))
            return;
        if (!add_ahead(c, name))
            return;
        after->at[after->count++] = (tn_follower){ NULL, c->addend, NULL };
    }
}

/* Continues after the first `count` names that are left. */
static void skip(chain *c, int64_t count, const ahead *after)
{
    for (int64_t i = 0; i < count; i++) {
        if (after->at[i].add != NULL)
            c->addend = NULL;
        c->rest += strcspn(c->rest, " ");
        c->rest += strspn(c->rest, " ");
    }
}

/* Not inlined, as call_with_next. */
static TN_ATTR(noinline) tn_tensor *call_one_ahead(chain *c, tn_module *child, tn_tensor *x)
{
    int64_t done = 0;
    ahead after;

    look_ahead(c, child, &after);
    if (after.count == 0)
        return tn_module_call(child, x);
    x = call_ahead(child, x, &after, &done);
    skip(c, done, &after);
    return x;
}

static tn_tensor *add(chain *c, const char *name, tn_tensor *x)
{
    const tn_op *op = tn__op_needed(TN__NEED_add);
    tn_tensor *in[2] = { x, c->addend != NULL ? c->addend : addend_of(c, name) }, *sum = NULL;

    c->addend = NULL;
    if (op == NULL || in[1] == NULL || tn_op_call(op, in, 2, NULL, &sum, 1) != TN_OK)
        return NULL;
    return sum;
}

static tn_tensor *take(chain *c, char *name, tn_tensor *x)
{
    size_t length = strlen(name);
    bool all = length > 2 && strcmp(name + length - 2, ".*") == 0;
    tn_module *child;

    if (strcmp(name, "*") == 0)
        return tn_module_call_children(c->module, x);
    if (name[0] == '+')
        return add(c, name, x);
    if (all) {
        name[length - 2] = '\0';
        child = tn_module_find(c->module, name);
        return child != NULL ? tn_module_call_children(child, x) : NULL;
    }
    child = module_at(c->module, name);
    if (child == NULL)
        return NULL;
    return may_fuse(child) ? call_one_ahead(c, child, x) : tn_module_call(child, x);
}

tn_tensor *tn_module_call_child(tn_module *module, const char *name, tn_tensor *input)
{
    tn_module *child;

    if (tn__unlikely(module == NULL || name == NULL || input == NULL)) {
        tn__error_null_of("tn_module_call_child", "module, name, input", module, name, input);
        return NULL;
    }
    child = child_at(module, name);
    return child != NULL ? tn_module_call(child, input) : NULL;
}

tn_tensor *tn_module_call_chain(tn_module *module, const char *names, tn_tensor *input)
{
    chain c = { module, input, names, NULL };
    char name[NAME];

    if (module == NULL || names == NULL || input == NULL) {
        tn__error_null_of("tn_module_call_chain", "module, names, input", module, names, input);
        return NULL;
    }
    c.rest += strspn(names, " ");
    if (*c.rest == '\0') {
        tn_fail(TN_ERR_VALUE,
                "tn_module_call_chain: names: none given; expected names of children, separated by "
                "spaces");
        return NULL;
    }
    while (*c.rest != '\0' && input != NULL) {
        c.rest = next_name(c.rest, name);
        input = c.rest != NULL ? take(&c, name, input) : NULL;
        if (c.rest == NULL)
            return NULL;
    }
    return input;
}
