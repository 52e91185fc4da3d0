/* SPDX-License-Identifier: MIT
 *
 * The pass recompute: marks parts of the graph, by the modules that called the operators, whose
 * values backward computes again in place of keeping them. */
#include "passes.h"

#include <fnmatch.h>
#include <string.h>

struct options {
    const char *modules;
    int64_t every;
};

static const tn_option table[] = {
    TN_OPTION_STRING(struct options, modules, "'*'",
                     "paths of modules, such as 'blocks.*': each of them is a part; `*` stands for "
                     "any characters of a name"),
    TN_OPTION_INT(struct options, every, "1", "modules that follow one another and make one part"),
    TN_OPTION_END,
};

/* Returns the text with `/` in place of `.`, so that `*` in a pattern of fnmatch matches only one
 * name. */
static char *with_slashes(const char *text, size_t length)
{
    char *copy = tn_malloc(length + 1);

    if (copy == NULL)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    for (char *at = copy; (at = strchr(at, '.')) != NULL;)
        *at = '/';
    return copy;
}

/* Returns the number of bytes of the first `names` names of a path; 0 if it has fewer names. */
static size_t length_of(const char *path, int64_t names)
{
    const char *at = path;

    for (; names > 0 && *at != '\0'; names--)
        at += (at != path) + strcspn(at + (at != path), ".");
    return names == 0 ? (size_t)(at - path) : 0;
}

/* If the first names of a path, as many as the pattern has, match the pattern, sets *length to the
 * number of their bytes; otherwise to 0. */
static tn_status fitting(const char *pattern, const char *path, size_t *length)
{
    int64_t names = 1;
    char *beginning;

    for (const char *at = pattern; (at = strchr(at, '/')) != NULL; at++)
        names++;
    *length = path != NULL ? length_of(path, names) : 0;
    if (*length == 0)
        return TN_OK;
    beginning = with_slashes(path, *length);
    if (beginning == NULL)
        return TN_ERR_MEMORY;
    if (fnmatch(pattern, beginning, FNM_PATHNAME | FNM_NOESCAPE) != 0)
        *length = 0;
    tn_free(beginning);
    return TN_OK;
}

/* Modules that change when they are called must be called once. */
static bool is_plain(const tn_node *node)
{
    tn_walk *walk;
    bool plain;

    if (tn_node_kind_of(node) != TN_NODE_CALL)
        return tn_node_kind_of(node) == TN_NODE_OP && tn_node_writes(node) == 0;
    walk = tn_walk_begin(tn_node_module(node), TN_SLOT_BUFFER, NULL);
    plain = walk != NULL && tn_walk_next(walk) == NULL;
    tn_walk_end(walk);
    return plain;
}

static tn_status mark(const tn_pass_args *args, const char *pattern, int64_t every)
{
    const char *last = "";
    size_t last_length = 0;
    int64_t modules = 0, marked = 0;

    for (tn_node *node = tn_graph_first(args->graph); node != NULL; node = tn_node_next(node)) {
        const char *path;
        size_t length;
        tn_status status;

        if (!is_plain(node))
            continue;
        path = tn_node_kind_of(node) == TN_NODE_CALL ? tn_node_target(node) : tn_node_path(node);
        status = fitting(pattern, path, &length);
        if (status == TN_OK && length == 0)
            continue;
        if (status == TN_OK && (length != last_length || strncmp(path, last, length) != 0))
            modules++;
        last = path;
        last_length = length;
        if (status == TN_OK)
            status = tn_node_set_part(node, (modules - 1) / every + 1);
        if (status != TN_OK)
            return status;
        marked++;
    }
    return passes_report(args, marked, "nodes are computed again by backward");
}

static tn_status recompute(const tn_pass_def *self, const tn_pass_args *args)
{
    const struct options *o = args->data;
    char *pattern;
    tn_status status;

    (void)self;
    if (o->every < 1)
        return tn_fail(TN_ERR_VALUE, "recompute: every: too small, got %lld; expected 1 or more",
                       (long long)o->every);
    pattern = with_slashes(o->modules, strlen(o->modules));
    status = pattern != NULL ? mark(args, pattern, o->every) : TN_ERR_MEMORY;
    tn_free(pattern);
    return status;
}

const tn_pass_def pass_recompute = {
    TN_HEAD(tn_pass_def),
    .name = "recompute",
    .help = "lets backward compute values of modules again in place of keeping them",
    .options = table,
    .data_size = sizeof(struct options),
    .flags = TN_PASS_EXACT,
    .after = "conv_bn linear_bn dropout decompose cse constants epilogue dead",
    .run = recompute
};
