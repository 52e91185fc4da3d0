/* SPDX-License-Identifier: MIT
 *
 * The paths of calls of modules, for error texts, observers and traces. */
#include "core/base/stack.h"
#include "core/module/call.h"

/* A network may have the same modules on very many paths: a search that meets more slots ends. */
enum { SEARCH_MOST = 65536 };

/* A search for a module below another. */
struct search {
    const tn_module *wanted;
    tn__text *text;
    int64_t left; /* of SEARCH_MOST */
    bool deeper;  /* the tree has modules at the depth of the last search */
};

/* A name on the way to the module. */
struct step {
    const struct step *before;
    const char *name;
};

static void put_steps(const struct step *step, tn__text *text)
{
    if (step->before != NULL) {
        put_steps(step->before, text);
        tn__text_put(text, ".", 1);
    }
    tn__text_put(text, step->name, strlen(step->name));
}

/* Appends the path to the wanted module if it is `levels` below `from`. Returns whether it is.
 * Where the stack has no room it looks no deeper, and the path has the type instead of the name. */
static bool search(struct search *s, const tn_module *from, int levels, const struct step *before)
{
    const tn__slots *slots = &from->children;

    for (int64_t i = 0; i < slots->count && s->left-- > 0; i++) {
        const tn_module *child = slots->at[i].child;
        const struct step step = { before, slots->at[i].name };

        if (levels > 1 && child != NULL && !tn__stack_is_low() &&
            search(s, child, levels - 1, &step))
            return true;
        s->deeper = s->deeper || (levels == 1 && child != NULL);
        if (levels == 1 && child == s->wanted) {
            put_steps(&step, s->text);
            return true;
        }
    }
    return false;
}

/* Appends the shortest path from `from` to a module in its tree. A layer calls its children, and
 * sometimes what is below them: the parametrizations of a tensor are below `parametrizations`.
 * Returns false if there is none. */
static bool put_below(const tn_module *from, const tn_module *wanted, tn__text *text)
{
    struct search s = { wanted, text, SEARCH_MOST, true };
    bool found = false;

    if (atomic_load_explicit(&wanted->holders, memory_order_relaxed) == 0)
        return false;
    for (int levels = 1; levels <= TN__MODULE_DEPTH && !found && s.deeper; levels++) {
        s.deeper = false;
        found = search(&s, from, levels, NULL);
    }
    return found;
}

/* Not recursive, because it also describes the call for which the stack has no room. */
void tn__call_path_put(const tn__call_frame *frame, tn__text *text)
{
    for (int levels = frame->depth; levels-- > 0;) {
        const tn__call_frame *at = frame;

        for (int i = 0; i < levels; i++)
            at = at->outer;
        if (text->length > 0)
            tn__text_put(text, ".", 1);
        if (!put_below(at->outer->module, at->module, text))
            tn__text_add(text, "<%s>", at->module->type); /* not below the module that calls it */
    }
}

void tn__call_path_where(const tn__call_frame *frame, tn__text *text)
{
    const tn__call_frame *root = frame;

    while (root->outer != NULL)
        root = root->outer;
    tn__text_add(text, "%s", root->module->type);
    if (root != frame) {
        tn__text path = { 0 };

        tn__call_path_put(frame, &path);
        if (path.at != NULL)
            tn__text_add(text, ", module \"%s\" (%s)", path.at, frame->module->type);
        tn__text_free(&path);
    }
}
