/* SPDX-License-Identifier: MIT
 *
 * tn_module_fuse_list: fuses modules by their paths, as torch.ao.quantization.fuse_modules does. */
#include "flow.h"

enum { GROUP_MOST = 3 };

/* Layers that a batch norm is folded into. */
static const struct {
    const char *layer, *norm;
} foldable[] = {
    { "Conv1d", "BatchNorm1d" },          { "Conv2d", "BatchNorm2d" },
    { "Conv3d", "BatchNorm3d" },          { "ConvTranspose1d", "BatchNorm1d" },
    { "ConvTranspose2d", "BatchNorm2d" }, { "ConvTranspose3d", "BatchNorm3d" },
    { "Linear", "BatchNorm1d" },
};

/* A group: the modules, which are borrowed, and what replaces them, which is owned. */
typedef struct group {
    char *paths[GROUP_MOST];
    tn_module *from[GROUP_MOST], *to[GROUP_MOST];
    int count;
    bool swapped;
} group;

typedef struct groups {
    tn_module *net;
    group *at;
    int64_t count;
} groups;

static void free_groups(groups *all)
{
    for (int64_t g = 0; g < all->count; g++)
        for (int i = 0; i < GROUP_MOST; i++) {
            tn_free(all->at[g].paths[i]);
            tn_module_drop(all->at[g].from[i]);
            tn_module_drop(all->at[g].to[i]);
        }
    tn_free(all->at);
}

/* ---- reading the list ------------------------------------------------------------------------ */

static bool is_taken(const groups *all, const tn_module *module)
{
    for (int64_t g = 0; g < all->count; g++)
        for (int i = 0; i < all->at[g].count; i++)
            if (all->at[g].from[i] == module)
                return true;
    return false;
}

static tn_status add_path(groups *all, const char *path, size_t length)
{
    group *last = &all->at[all->count - 1];
    char *copy = tn_malloc(length + 1);
    tn_module *module;

    if (copy == NULL)
        return TN_ERR_MEMORY;
    memcpy(copy, path, length);
    copy[length] = '\0';
    module = last->count < GROUP_MOST && length > 0 ? tn_module_find(all->net, copy) : NULL;
    if (last->count == GROUP_MOST || length == 0)
        tn_fail(TN_ERR_VALUE,
                "tn_module_fuse_list: list: %s in group %lld; expected groups of 2 "
                "or 3 paths, such as \"conv1, bn1, relu; conv2, bn2\"",
                length == 0 ? "an empty path" : "too many paths", (long long)all->count);
    else if (module == NULL)
        tn_error_prefix("tn_module_fuse_list: ");
    else if (is_taken(all, module))
        tn_fail(TN_ERR_VALUE, "tn_module_fuse_list: %s: given twice; expected once", copy);
    else {
        last->paths[last->count] = copy;
        last->from[last->count++] = tn_module_keep(module);
        return TN_OK;
    }
    tn_free(copy);
    return tn_error_last_code();
}

/* Adds the groups of a text: paths separated by commas, groups by semicolons. */
static tn_status read_list(groups *all, const char *text)
{
    static const char space[] = " \t\n";
    tn_status status = TN_OK;
    int64_t most = 1;

    for (const char *at = text; *at != '\0'; at++)
        most += *at == ';';
    all->at = tn_calloc((size_t)most, sizeof *all->at);
    if (all->at == NULL)
        return TN_ERR_MEMORY;
    all->count = 1;
    for (const char *at = text; status == TN_OK;) {
        size_t length = strcspn(at += strspn(at, space), ",;"), used = length;

        while (used > 0 && strchr(space, at[used - 1]) != NULL)
            used--;
        status = add_path(all, at, used);
        at += length;
        if (*at == '\0' || (*at == ';' && at[1 + strspn(at + 1, space)] == '\0'))
            break; /* a semicolon at the end begins no group */
        all->count += *at++ == ';';
    }
    return status;
}

/* ---- making the modules ---------------------------------------------------------------------- */

static bool is_a(const tn_module *module, const char *type)
{
    return strcmp(tn_module_type(module), type) == 0;
}

static tn_status cannot(const group *g)
{
    char types[256] = "";
    int64_t used = 0;

    for (int i = 0; i < g->count; i++)
        quant_put(types, sizeof types, &used, "%s%s", i > 0 ? ", " : "",
                  tn_module_type(g->from[i]));
    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   /* PyTorch's wording */
                   "Cannot fuse modules: %s; expected a convolution or "
                   "Linear, its batch norm and ReLU, one of them may be "
                   "missing (tn_module_fuse_list: %s)",
                   types, g->paths[0]);
}

/* Returns a new module with the options of `layer` and a bias. Random numbers are as before. */
static tn_module *with_bias(tn_module *layer)
{
    const tn_option *row = tn_contribution_options(
        tn_registry_find(TN_KIND_tn_layer_def, tn_module_type(layer)));
    tn_pack *pack = tn_pack_new();
    const char *names[16];
    tn_value values[16];
    uint64_t state[3];
    int64_t count = 0;
    tn_module *made = NULL;
    tn_status status = pack != NULL ? tn_random_get_state(state) : TN_ERR_MEMORY;

    for (; status == TN_OK && row->kind != TN_OPTION_KIND_END && count < 16; row++) {
        names[count] = row->name;
        status = tn_module_option_get(layer, row->name, pack);
        if (status == TN_OK)
            values[count++] = strcmp(row->name, "bias") == 0
                                  ? tn_value_bool(true)
                                  : tn_pack_at(pack, tn_pack_count(pack) - 1);
    }
    if (status == TN_OK) {
        made = tn_module_make(tn_module_type(layer), values, names, count);
        tn_random_set_state(state);
    }
    tn_pack_drop(pack);
    return made;
}

/* Returns a slot as float64, TN_NONE if it has no tensor. */
static tn_tensor *wide(tn_module *module, const char *name)
{
    tn_tensor *tensor = tn_fuse_slot(module, name);

    return tensor == NULL || tensor == TN_NONE ? tensor : tn_cast(tn_detach(tensor), TN_F64);
}

static tn_status store(tn_module *to, const char *name, tn_tensor *value, tn_tensor *like)
{
    tn_tensor *parameter = tn_parameter(tn_cast(value, tn_tensor_dtype(like)),
                                        tn_tensor_requires_grad(like));

    return parameter != NULL ? tn_module_set(to, name, parameter) : tn_error_last_code();
}

static tn_status check_norm(const group *g, tn_module *layer, tn_module *norm, const tn_folding *f)
{
    const int64_t out = tn_tensor_size(f->weight, f->channel);
    int64_t features;

    if (tn_module_is_training(layer) || tn_module_is_training(norm))
        return tn_fail(TN_ERR_ASSERT, "tn_module_fuse_list: %s: Fusion only for eval!",
                       g->paths[0]); /* PyTorch's wording */
    if (f->mean == TN_NONE || f->variance == TN_NONE)
        return tn_fail(TN_ERR_ASSERT,
                       "tn_module_fuse_list: %s: it has no running statistics; expected a batch "
                       "norm with track_running_stats=True",
                       g->paths[1]);
    features = tn_tensor_size(f->variance, 0);
    if (features == out || (features == 1 && tn_tensor_ndim(f->weight) == 2))
        return TN_OK;
    return tn_fail(TN_ERR_ASSERT,
                   "tn_module_fuse_list: %s: wrong number of features, got %lld; expected %lld, "
                   "that of %s",
                   g->paths[1], (long long)features, (long long)out, g->paths[0]);
}

/* Returns a layer that also does what the batch norm after it does. */
static tn_module *folded(const group *g, tn_module *layer, tn_module *norm)
{
    tn_folding f = { wide(layer, "weight"),
                     wide(layer, "bias"),
                     wide(norm, "running_mean"),
                     wide(norm, "running_var"),
                     wide(norm, "weight"),
                     wide(norm, "bias"),
                     quant_option_number(norm, "eps", 1e-5),
                     strstr(tn_module_type(layer), "Transpose") != NULL };
    const int64_t parts = (int64_t)quant_option_number(layer, "groups", 1);
    tn_tensor *like = tn_module_get(layer, "weight"), *weight, *bias;
    tn_module *made = NULL;

    if (f.weight == NULL || f.bias == NULL || f.mean == NULL || f.variance == NULL ||
        f.gamma == NULL || f.beta == NULL)
        return NULL;
    if (f.channel == 1 && parts > 1) {
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "Cannot fuse modules: %s: a transposed convolution with %lld "
                "groups; expected 1 group",
                g->paths[0], (long long)parts);
        return NULL;
    }
    if (check_norm(g, layer, norm, &f) == TN_OK && tn_fold_batch_norm(&f, &weight, &bias) == TN_OK)
        made = with_bias(layer);
    if (made != NULL && tn_tensor_ndim(weight) == 2)
        bias = tn_copy(tn_expand(bias, TN_SHAPE(tn_tensor_size(weight, 0))));
    if (made != NULL &&
        (store(made, "weight", weight, like) != TN_OK || store(made, "bias", bias, like) != TN_OK ||
         tn_module_train(made, false) != TN_OK)) {
        tn_module_drop(made);
        made = NULL;
    }
    return made;
}

/* Returns Sequential with these modules, in the mode of the first. */
static tn_module *in_sequence(tn_module *first, tn_module *second)
{
    tn_module *both = tn_module_parse("Sequential()");

    if (both != NULL && (tn_module_train(both, tn_module_is_training(first)) != TN_OK ||
                         tn_module_add_child(both, "0", first) != TN_OK ||
                         tn_module_add_child(both, "1", second) != TN_OK)) {
        tn_module_drop(both);
        both = NULL;
    }
    return both;
}

/* Returns whether the first two modules of a group are a layer and its norm. */
static bool folds(const group *g)
{
    for (size_t i = 0; i < sizeof foldable / sizeof *foldable; i++)
        if (is_a(g->from[0], foldable[i].layer) && is_a(g->from[1], foldable[i].norm))
            return true;
    return false;
}

/* Layers before ReLU, with their numbers as they are. */
static bool precedes_relu(const group *g)
{
    bool known = strncmp(tn_module_type(g->from[0]), "BatchNorm", 9) == 0;

    for (size_t i = 0; i < sizeof foldable / sizeof *foldable && !known; i++)
        known = is_a(g->from[0], foldable[i].layer);
    return known && is_a(g->from[1], "ReLU");
}

static tn_status make(group *g)
{
    tn_module *first = NULL, *relu = g->count > 1 ? g->from[g->count - 1] : NULL;
    bool fold = g->count > 1 && folds(g);

    if (g->count < 2 || (g->count == 3 && !(fold && is_a(relu, "ReLU"))) ||
        (!fold && !precedes_relu(g)))
        return cannot(g);
    for (int i = 0; i < 2; i++)
        if (tn_is_parametrized(g->from[i], NULL) || tn_is_pruned(g->from[i]))
            return tn_fail(TN_ERR_VALUE,
                           "tn_module_fuse_list: %s: it has a parametrization or a mask; expected "
                           "plain parameters",
                           g->paths[i]);
    first = fold ? folded(g, g->from[0], g->from[1]) : tn_module_keep(g->from[0]);
    g->to[0] = first == NULL || (fold && g->count == 2) ? tn_module_keep(first)
                                                        : in_sequence(first, relu);
    tn_module_drop(first);
    for (int i = 1; i < g->count && g->to[0] != NULL; i++) {
        g->to[i] = tn_module_parse("Identity()");
        if (g->to[i] == NULL ||
            tn_module_train(g->to[i], tn_module_is_training(g->from[i])) != TN_OK)
            return tn_error_last_code();
    }
    return g->to[0] != NULL ? TN_OK : tn_error_last_code();
}

/* ---- swapping -------------------------------------------------------------------------------- */

/* Moves the hooks that the group keeps, between `from` and the fused module. A layer within the
 * fused module has no hooks of its own then: they ran around a call that no longer exists. */
static tn_status move_hooks(group *g, bool back)
{
    tn_module *first = g->from[0], *last = g->from[g->count - 1], *fused = g->to[0];
    tn_status status = tn_module_move_hooks(back ? fused : first, back ? first : fused,
                                            TN_HOOKS_FORWARD_PRE);

    return status == TN_OK
               ? tn_module_move_hooks(back ? fused : last, back ? last : fused, TN_HOOKS_FORWARD)
               : status;
}

static tn_status swap(groups *all, group *g, bool back)
{
    tn_status status = move_hooks(g, back);

    g->swapped = true;
    for (int i = 0; i < g->count && status == TN_OK; i++)
        status = tn_module_set_child(all->net, g->paths[i], back ? g->from[i] : g->to[i], true);
    return status;
}

tn_status fuse_list_apply(tn_module *net, const char *list)
{
    TN_SCOPE;
    groups all = { .net = net };
    tn_status status;

    if (net == NULL || list == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_module_fuse_list: %s: it is NULL; expected %s",
                       net == NULL ? "net" : "list",
                       net == NULL ? "a module" : "paths, such as \"conv1, bn1, relu\"");
    status = tn_grad_begin(false);
    if (status != TN_OK)
        return status;
    status = read_list(&all, list);
    for (int64_t g = 0; g < all.count && status == TN_OK; g++)
        status = make(&all.at[g]);
    for (int64_t g = 0; g < all.count && status == TN_OK; g++)
        status = swap(&all, &all.at[g], false);
    if (status != TN_OK) {
        uint64_t mark = tn_error_mark();

        for (int64_t g = 0; g < all.count; g++)
            if (all.at[g].swapped)
                swap(&all, &all.at[g], true);
        tn_error_restore(mark);
    }
    tn_grad_end();
    free_groups(&all);
    return status;
}
