/* SPDX-License-Identifier: MIT
 *
 * Computes the running statistics of a module again, after its weights were averaged. Layers with
 * running statistics have the function `collect`, so the core need not know these layers. */
#include "lib/train/private.h"

/* The modules of a tree, and the mode of each of them. */
struct tree {
    tn__walk walk; /* modules only */
    bool *training;
    int64_t begun; /* modules before this one are collecting, if they can */
};

static bool collects(const tn_module *module)
{
    return module->layer != NULL && module->layer->collect != NULL;
}

static tn_status call_collect(tn_module *module, bool begin)
{
    const char *before = tn__error_plugin(module->plugin != NULL ? module->plugin->id : "");
    uint64_t scope = tn_scope_begin();
    tn_status status = tn__error_status_of(module->layer->collect(module, begin), module->type);

    tn_scope_end(scope);
    tn__error_plugin(before);
    return status;
}

static tn_status begin(struct tree *tree, tn_module *module)
{
    tn_status status = TN_OK;

    for (; tree->begun < tree->walk.count && status == TN_OK; tree->begun++)
        if (collects(tree->walk.at[tree->begun].module))
            status = call_collect(tree->walk.at[tree->begun].module, true);
    return status == TN_OK ? tn_module_train(module, true) : status;
}

/* Ends collecting, and gives all modules their former modes, also after a failure. */
static tn_status end(struct tree *tree, tn_module *module, tn_status status)
{
    tn_status back = tn_module_train(module, tree->training[0]);

    for (int64_t i = 0; i < tree->walk.count; i++)
        tree->walk.at[i].module->training = tree->training[i];
    for (int64_t i = 0; i < tree->begun; i++)
        if (collects(tree->walk.at[i].module)) {
            tn_status one = call_collect(tree->walk.at[i].module, false);

            back = back == TN_OK ? one : back;
        }
    return status == TN_OK ? back : status;
}

/* Returns the batch itself if it is on the device, otherwise a copy there, owned by the scope. */
static tn_tensor *moved(tn_tensor *batch, const tn_device *device)
{
    tn_tensor *copy;
    tn_meta meta;

    if (device == NULL || tn_tensor_device(batch) == device)
        return batch;
    tn__tensor_meta(batch, &meta);
    meta.flags = 0;
    meta.offset = 0;
    copy = tn__tensor_make(&meta, device);
    if (copy != NULL && tn__copy(copy, batch) != TN_OK) {
        tn_tensor_drop(copy);
        return NULL;
    }
    return copy != NULL ? tn_tensor_to_scope(copy) : NULL;
}

/* Calls the module with one batch. Sets *more to false if there was none. */
static tn_status run_batch(tn_module *module, tn_tensor *(*next)(void *user), void *user,
                           const tn_device *device, bool *more)
{
    const char *before = tn__error_plugin("");
    uint64_t scope = tn_scope_begin(), mark = tn_error_mark();
    tn_tensor *batch = next(user);
    tn_status status = TN_OK;

    if (batch == NULL)
        status = tn__error_returned_null(mark, "`next` of tn_module_update_statistics");

    *more = batch != NULL && !tn__is_none(batch);
    if (*more) {
        batch = moved(batch, device);
        if (batch == NULL || tn_module_call(module, batch) == NULL)
            status = tn_error_last_code();
    }
    tn_scope_end(scope);
    tn__error_plugin_back(before);
    return status;
}

static tn_status update(struct tree *tree, tn_module *module, tn_tensor *(*next)(void *user),
                        void *user, const tn_device *device)
{
    bool more = true;
    tn_status status = begin(tree, module);

    tn_grad_begin(false);
    while (more && status == TN_OK)
        status = run_batch(module, next, user, device, &more);
    tn_grad_end();
    return end(tree, module, status);
}

tn_status tn_module_update_statistics(tn_module *module, tn_tensor *(*next)(void *user), void *user,
                                      const tn_device *device)
{
    struct tree tree = { 0 };
    bool any = false;
    tn_status status;

    if (module == NULL || next == NULL)
        return tn__error_null_of("tn_module_update_statistics", "module, next", module, next);
    status = tn__walk_collect(module, TN_SLOT_CHILD, false, &tree.walk);
    if (status != TN_OK)
        return status;
    for (int64_t i = 0; i < tree.walk.count; i++)
        any |= collects(tree.walk.at[i].module);
    tree.training = tn_malloc((size_t)tree.walk.count * sizeof *tree.training);
    if (tree.training == NULL)
        status = TN_ERR_MEMORY;
    for (int64_t i = 0; i < tree.walk.count && status == TN_OK; i++)
        tree.training[i] = tree.walk.at[i].module->training;
    if (any && status == TN_OK)
        status = update(&tree, module, next, user, device);
    tn_free(tree.training);
    tn__walk_free(&tree.walk);
    return status;
}
