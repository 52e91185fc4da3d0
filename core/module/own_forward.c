/* SPDX-License-Identifier: MIT
 *
 * Modules of the program: a type that no plugin provides, with a forward that the program sets on
 * the module. Deep copies of the module share the forward. */
#include "core/module/internal.h"

void tn__own_forward_drop(tn__own_forward *own)
{
    if (own == NULL || atomic_fetch_sub(&own->refs, 1) > 1)
        return;
    if (own->release != NULL)
        own->release(own->user);
    tn_free(own);
}

static tn_status set(tn_module *module, const tn__own_forward *how, const char *who)
{
    tn__own_forward *own;

    if (!tn__not_null(module, who))
        return tn_error_last_code();
    if (module->layer != NULL)
        return tn_fail(TN_ERR_TYPE,
                       "%s: wrong module, got %s, whose forward is that of its layer; expected a "
                       "module of the program (tn_module_plain) or of a type that was only read "
                       "from printed text",
                       who, module->type);
    own = tn_malloc(sizeof *own);
    if (own == NULL)
        return TN_ERR_MEMORY;
    *own = *how;
    atomic_init(&own->refs, 1);
    tn__own_forward_drop(module->own_forward);
    module->own_forward = own;
    atomic_fetch_add_explicit(&module->changes, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tn__module_epoch, 1, memory_order_relaxed);
    return TN_OK;
}

tn_status tn_module_set_forward(tn_module *module,
                                tn_tensor *(*forward)(tn_module *self, tn_tensor *input),
                                void *user, void (*release)(void *user))
{
    const tn__own_forward how = { .forward = forward, .user = user, .release = release };

    if (forward == NULL)
        return tn_error_null("tn_module_set_forward: forward");
    return set(module, &how, "tn_module_set_forward");
}

tn_status tn_module_set_call(tn_module *module,
                             tn_status (*call)(tn_module *self, const tn_pack *input,
                                               tn_pack *output),
                             void *user, void (*release)(void *user))
{
    const tn__own_forward how = { .call = call, .user = user, .release = release };

    if (call == NULL)
        return tn_error_null("tn_module_set_call: call");
    return set(module, &how, "tn_module_set_call");
}

tn_status tn_module_set_forwards(tn_module *root, const char *type,
                                 tn_tensor *(*forward)(tn_module *self, tn_tensor *input))
{
    const tn__own_forward how = { .forward = forward };
    tn_status status = TN_OK;
    bool found = false;
    tn_walk *walk;

    if (!tn__not_null(root, "tn_module_set_forwards"))
        return tn_error_last_code();
    if (type == NULL)
        return tn_error_null("tn_module_set_forwards: type");
    if (forward == NULL)
        return tn_error_null("tn_module_set_forwards: forward");
    walk = tn_walk_begin(root, TN_SLOT_CHILD, NULL);
    if (walk == NULL)
        return tn_error_last_code();
    for (const tn_visit *at = tn_walk_next(walk); at != NULL && status == TN_OK;
         at = tn_walk_next(walk))
        if (strcmp(at->module->type, type) == 0) {
            found = true;
            status = set(at->module, &how, "tn_module_set_forwards");
        }
    tn_walk_end(walk);
    if (!found)
        return tn_fail(TN_ERR_KEY,
                       "tn_module_set_forwards: type: no module of the tree is a %s; the root is a "
                       "%s",
                       type, root->type);
    return status;
}
