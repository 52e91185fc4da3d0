/* SPDX-License-Identifier: MIT
 *
 * Finds the first module whose output is not finite, by a second forward pass of the batch. */
#include "train.h"

#include "../files.h"

struct search {
    run *run;
    tn_module *found; /* the first module whose output is not finite; NULL: none yet */
};

/* Returns whether all elements of a tensor are finite. Tensors of other dtypes than floats are. */
static bool is_finite(tn_tensor *tensor)
{
    TN_SCOPE;
    statistics found = { 0 };
    tn_tensor *host;
    void *data;
    size_t bytes;

    if (tensor == NULL || tensor == TN_NONE || tn_tensor_numel(tensor) == 0 ||
        (TN_BIT(tn_tensor_dtype(tensor)) & TN_MASK_FLOAT) == 0)
        return true;
    bytes = (size_t)files_bytes(tensor);
    host = tn_tensor_empty(tn_tensor_shape(tensor), tn_tensor_dtype(tensor), tn_device_find("cpu"));
    data = host != NULL ? tn_tensor_data(host) : NULL;
    if (data == NULL || tn_tensor_copy_out(tensor, data, bytes) != TN_OK ||
        !statistics_of(host, &found))
        return true; /* the values cannot be read: this module is not named */
    return found.nan == 0 && found.infinite == 0;
}

static bool values_are_finite(const tn_value *values, uint32_t count)
{
    bool finite = true;

    for (uint32_t i = 0; i < count && finite; i++) {
        if (values[i].kind == TN_VALUE_TENSOR)
            finite = is_finite(values[i].as.tensor);
        else if (values[i].kind == TN_VALUE_LIST || values[i].kind == TN_VALUE_TUPLE)
            finite = values_are_finite(values[i].as.list, values[i].count);
    }
    return finite;
}

static bool pack_is_finite(const tn_pack *pack)
{
    bool finite = true;

    for (int64_t i = 0; i < tn_pack_count(pack) && finite; i++) {
        tn_value value = tn_pack_at(pack, i);

        finite = values_are_finite(&value, 1);
    }
    return finite;
}

/* Inner modules end before outer ones, so the first one with such an output is the cause. */
static tn_status look(void *user, tn_module *module, const tn_pack *input, const tn_pack *output,
                      tn_pack *replacement, tn_hook_outcome *outcome)
{
    struct search *search = user;

    (void)input, (void)replacement, (void)outcome;
    if (search->found == NULL && !pack_is_finite(output))
        search->found = module;
    return TN_OK;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Writes the path of a module in the model, or of the loss. */
static void name_of(const run *r, const tn_module *module, char *out, size_t size)
{
    tn_walk *walk = tn_walk_begin(r->model, TN_SLOT_CHILD, NULL);
    const tn_visit *visit;

    tn_snprint(out, size, "the loss (%s)", tn_module_type(module));
    while ((visit = tn_walk_next(walk)) != NULL)
        if (visit->module == module && visit->path[0] != '\0')
            tn_snprint(out, size, "module \"%s\" (%s)", visit->path, tn_module_type(module));
        else if (visit->module == module)
            tn_snprint(out, size, "the model (%s)", tn_module_type(module));
    tn_walk_end(walk);
}

/* Writes the name of the first parameter or buffer of the model that is not finite, "" if all are.
 */
static void bad_parameter(const run *r, char *out, size_t size)
{
    tn_walk *walk = tn_walk_begin(r->model, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, NULL);
    const tn_visit *visit;

    out[0] = '\0';
    while (out[0] == '\0' && (visit = tn_walk_next(walk)) != NULL)
        if (!is_finite(visit->tensor))
            tn_snprint(out, size, "%s", visit->path);
    tn_walk_end(walk);
}

tn_status nonfinite_find(run *r, tn_pack *batch, const uint64_t random[3], double loss)
{
    TN_SCOPE;
    struct search search = { r, NULL };
    char name[400], parameter[300], where[64];
    tn_tensor *output = NULL, *result = NULL;
    tn_hook_handle hook;
    uint64_t mark = tn_error_mark();

    tn_random_set_state(random);
    tn_grad_begin(false);
    hook = tn_global_hook_forward(look, 0, &search, NULL);
    step_forward(r, r->model, batch, &output, &result);
    tn_hook_remove(hook);
    tn_grad_end();
    tn_error_restore(mark);
    name_of(r, search.found != NULL ? search.found : r->criterion, name, sizeof name);
    bad_parameter(r, parameter, sizeof parameter);
    snprintf(where, sizeof where, "epoch %lld, step %lld",
             (long long)tn_loader_epoch(r->loader) + 1, (long long)r->step + 1);
    r->diverged = parameter[0] != '\0' || is_finite(tn_pack_tensor(batch, 0));
    if (parameter[0] != '\0')
        return tn_fail(TN_ERR_VALUE,
                       "%s: the loss is %g: \"%s\" has NaN or infinity after the steps before, and "
                       "%s is the first module with such an output; a smaller learning rate or "
                       "--clip-norm may help",
                       where, loss, parameter, name);
    if (!r->diverged)
        return tn_fail(TN_ERR_VALUE,
                       "%s: the loss is %g: the input of the batch has NaN or infinity; expected "
                       "finite samples",
                       where, loss);
    return tn_fail(TN_ERR_VALUE,
                   "%s: the loss is %g: parameters and input are finite, but the output of %s has "
                   "NaN or infinity; check the targets, or try a smaller learning rate or "
                   "--clip-norm",
                   where, loss, name);
}
