/* SPDX-License-Identifier: MIT
 *
 * The pass checkpoint: marks parts of the graph, by the modules that called the operators, whose
 * values backward computes again in place of keeping them. */
#include "passes.h"

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

/* Whether a name, which ends at `end`, fits a pattern that ends with it or with a dot. */
static bool name_fits(const char *pattern, const char *name, const char *end)
{
    if (*pattern == '\0' || *pattern == '.')
        return name == end;
    if (*pattern == '*')
        return name_fits(pattern + 1, name, end) ||
               (name < end && name_fits(pattern, name + 1, end));
    return name < end && *name == *pattern && name_fits(pattern + 1, name + 1, end);
}

/* Returns how long the beginning of a path is that fits the pattern, name by name; 0: none. */
static size_t fitting(const char *pattern, const char *path)
{
    const char *at = path;

    for (;;) {
        const char *end = at + strcspn(at, ".");

        if (*at == '\0' || !name_fits(pattern, at, end))
            return 0;
        pattern += strcspn(pattern, ".");
        if (*pattern == '\0')
            return (size_t)(end - path);
        if (*end == '\0')
            return 0;
        pattern++;
        at = end + 1;
    }
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

static tn_status checkpoint(const tn_pass_def *self, const tn_pass_args *args)
{
    const struct options *o = args->data;
    const char *last = "";
    size_t last_length = 0;
    int64_t modules = 0, marked = 0;

    (void)self;
    if (o->every < 1)
        return tn_fail(TN_ERR_VALUE, "checkpoint: every: too small, got %lld; expected 1 or more",
                       (long long)o->every);
    for (tn_node *node = tn_graph_first(args->graph); node != NULL; node = tn_node_next(node)) {
        const char *path;
        size_t length;

        if (!is_plain(node))
            continue;
        path = tn_node_kind_of(node) == TN_NODE_CALL ? tn_node_target(node) : tn_node_path(node);
        length = path != NULL ? fitting(o->modules, path) : 0;
        if (length == 0)
            continue;
        if (length != last_length || strncmp(path, last, length) != 0)
            modules++;
        last = path;
        last_length = length;
        if (tn_node_set_part(node, (modules - 1) / o->every + 1) != TN_OK)
            return tn_error_last_code();
        marked++;
    }
    return passes_report(args, marked, "nodes are computed again by backward");
}

const tn_pass_def pass_checkpoint = {
    TN_HEAD(tn_pass_def),
    .name = "checkpoint",
    .help = "lets backward compute values of modules again in place of keeping them",
    .options = table,
    .data_size = sizeof(struct options),
    .flags = TN_PASS_EXACT,
    .after = "conv_bn linear_bn dropout decompose cse constants epilogue dead",
    .run = checkpoint
};
