/* SPDX-License-Identifier: MIT
 *
 * Modules of the program: a type that no plugin provides, with a forward that the program sets on
 * the module. Deep copies of the module share the forward. */
#include "core/module/internal.h"

tn__own_forward *tn__own_forward_keep(tn__own_forward *own)
{
    if (own != NULL)
        atomic_fetch_add(&own->refs, 1);
    return own;
}

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
    return TN_OK;
}

tn_status tn_module_set_forward(tn_module *module,
                                tn_tensor *(*forward)(tn_module *self, tn_tensor *input),
                                void *user, void (*release)(void *user))
{
    const tn__own_forward how = { .forward = forward, .user = user, .release = release };

    if (forward == NULL)
        return tn__error_null_input("tn_module_set_forward: forward");
    return set(module, &how, "tn_module_set_forward");
}

tn_status tn_module_set_call(tn_module *module,
                             tn_status (*call)(tn_module *self, const tn_pack *input,
                                               tn_pack *output),
                             void *user, void (*release)(void *user))
{
    const tn__own_forward how = { .call = call, .user = user, .release = release };

    if (call == NULL)
        return tn__error_null_input("tn_module_set_call: call");
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
        return tn__error_null_input("tn_module_set_forwards: type");
    if (forward == NULL)
        return tn__error_null_input("tn_module_set_forwards: forward");
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

tn_tensor *tn_module_call_children(tn_module *module, tn_tensor *input)
{
    int64_t count;

    if (module == NULL || input == NULL) {
        tn__error_null_input("tn_module_call_children: argument");
        return NULL;
    }
    count = tn_module_child_count(module);
    for (int64_t i = 0; i < count && input != NULL; i++) {
        tn_module *child = tn_module_child_at(module, i);

        if (child != NULL)
            input = tn_module_call(child, input);
    }
    return input;
}

tn_tensor *tn_module_call_chain(tn_module *module, const char *names, tn_tensor *input)
{
    size_t length;

    if (module == NULL || names == NULL || input == NULL) {
        tn__error_null_input("tn_module_call_chain: argument");
        return NULL;
    }
    names += strspn(names, " ");
    if (*names == '\0') {
        tn_fail(TN_ERR_VALUE,
                "tn_module_call_chain: names: none given; expected names of children, separated by "
                "spaces");
        return NULL;
    }
    for (; *names != '\0' && input != NULL; names += length, names += strspn(names, " ")) {
        char name[256];
        tn_module *child;
        bool all;

        length = strcspn(names, " ");
        if (length >= sizeof name) {
            tn_fail(TN_ERR_VALUE,
                    "tn_module_call_chain: names: a name is too long, got %llu bytes; expected at "
                    "most %d",
                    (unsigned long long)length, (int)sizeof name - 1);
            return NULL;
        }
        memcpy(name, names, length);
        name[length] = '\0';
        all = length > 2 && strcmp(name + length - 2, ".*") == 0;
        if (all)
            name[length - 2] = '\0';
        if (strcmp(name, "*") == 0)
            input = tn_module_call_children(module, input);
        else if (all && (child = tn_module_find(module, name)) != NULL)
            input = tn_module_call_children(child, input);
        else if (all)
            return NULL;
        else if (strchr(name, '.') == NULL)
            input = tn_module_call_child(module, name, input);
        else if ((child = tn_module_find(module, name)) != NULL)
            input = tn_module_call(child, input);
        else
            return NULL;
    }
    return input;
}
