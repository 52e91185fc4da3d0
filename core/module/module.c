/* SPDX-License-Identifier: MIT
 *
 * The module object: reference count, destruction, queries. */
#include "core/module/internal.h"
#include "core/module/mode_seen.h"
#include "core/tensor/trace.h"

_Thread_local void (*tn__module_changed_here)(const tn_module *module) TN__TLS_NEAR;

tn_module *tn_module_keep(tn_module *module)
{
    if (tn__not_null(module, "tn_module_keep: module"))
        atomic_fetch_add_explicit(&module->refs, 1, memory_order_relaxed);
    return module;
}

static bool release(tn_module *module)
{
    /* Acquire and release in one operation: ThreadSanitizer does not understand an acquire fence
     * after a release. */
    return atomic_fetch_sub_explicit(&module->refs, 1, memory_order_acq_rel) == 1 &&
           !tn__call_holds(module);
}

void tn__module_destroy(tn_module *module)
{
    if (atomic_load_explicit(&module->refs, memory_order_acquire) != 0)
        return; /* a reference was taken meanwhile */
    atomic_store_explicit(&module->refs, 1, memory_order_relaxed);
    tn_module_drop(module);
}

/* Not recursive, because a tree may be deeper than the stack allows. Modules whose last reference
 * was dropped wait in a list. */
void tn_module_drop(tn_module *module)
{
    if (module == NULL || !release(module))
        return;
    module->next = NULL;
    while (module != NULL) {
        tn_module *rest = module->next;
        if (module->build_began && module->layer->destroy != NULL) {
            const char *before = tn__error_plugin(module->plugin ? module->plugin->id : "");
            module->layer->destroy(module);
            tn__error_plugin(before);
        }
        for (int64_t i = 0; i < module->children.count; i++) {
            tn_module *child = module->children.at[i].child;
            if (child != NULL)
                atomic_fetch_sub(&child->holders, 1);
            if (child != NULL && release(child)) {
                child->next = rest;
                rest = child;
            }
            module->children.at[i].child = NULL;
        }
        tn__own_forward_drop(module->own_forward);
        if (module->compiled != NULL)
            module->compiled->drop(module->compiled);
        tn__hooks_free(&module->hooks);
        tn__slots_clear(&module->parameters);
        tn__slots_clear(&module->buffers);
        tn__slots_clear(&module->children);
        tn__slots_clear(&module->computed);
        tn__options_release(module->option_block);
        tn_free(module->data);
        tn_free(module->tree_type);
        tn_free(module->tree_extra);
        tn_free(module);
        module = rest;
    }
}

const char *tn_module_type(const tn_module *module)
{
    return tn__not_null(module, "tn_module_type: module") ? module->type : "";
}

void *tn_module_data(const tn_module *module)
{
    return tn__not_null(module, "tn_module_data: module") ? module->data : NULL;
}

void *tn_module_user(const tn_module *module)
{
    if (!tn__not_null(module, "tn_module_user: module"))
        return NULL;
    if (module->layer != NULL)
        return module->layer->user;
    return module->own_forward != NULL ? module->own_forward->user : NULL;
}

bool tn_module_is_training(const tn_module *module)
{
    if (tn__unlikely(tn__making.is.traced)) {
        tn__tracer_here->training(tn__tracer_here);
        if (tn__tracer_here->asked != NULL && module != NULL)
            tn__tracer_here->asked(tn__tracer_here, module);
    }
    return tn__not_null(module, "tn_module_is_training: module") && tn__mode_is_training(module);
}
