/* SPDX-License-Identifier: MIT
 *
 * Runs a network of the plugin tenon.models by its name, for make_models_plugin.py:
 *
 *     models_plugin SPEC WEIGHTS DATA OUT
 *
 * Loads WEIGHTS strictly, prints the network, and writes to OUT the results for the first tensor of
 * DATA: in eval mode in float32 (eval) and, with the network converted, in float64 (wide), then in
 * training mode in float64 (train), and the gradient of each parameter of the sum of these
 * results, where result i has the factor cos(0.9 i). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

static tn_status print(tn_module *net)
{
    size_t size = (size_t)tn_module_repr(net, NULL, 0) + 1;
    char *text = malloc(size);

    if (text == NULL || tn_module_repr(net, text, size) < 0) {
        free(text);
        return TN_ERR_MEMORY;
    }
    puts(text);
    free(text);
    return TN_OK;
}

static tn_tensor *factors(tn_tensor *like)
{
    int64_t count = tn_tensor_numel(like);
    double *values = malloc((size_t)(count + 1) * sizeof *values);
    tn_tensor *made = values != NULL ? tn_tensor_empty(tn_tensor_shape(like), TN_F64, NULL) : NULL;

    for (int64_t i = 0; made != NULL && i < count; i++)
        values[i] = cos(0.9 * (double)i);
    if (made != NULL && tn_tensor_copy_in(made, values, (size_t)count * sizeof *values) != TN_OK)
        made = NULL;
    free(values);
    return made;
}

static tn_status keep_gradient(void *user, const char *path, tn_tensor *tensor)
{
    char name[512];

    tn_snprint(name, sizeof name, "gradient.%s", path);
    return tn_state_set(user, name, tn_tensor_grad(tensor));
}

static tn_status keep_result(tn_module *net, tn_tensor *x, tn_state *out, const char *name)
{
    tn_tensor *y;

    tn_grad_begin(false);
    y = tn_module_call(net, x);
    tn_grad_end();
    return y != NULL ? tn_state_set(out, name, y) : TN_ERR_RUNTIME;
}

static tn_status run(tn_module *net, tn_tensor *x, tn_state *out)
{
    tn_tensor *y, *weights;

    if (tn_module_eval(net) != TN_OK || keep_result(net, x, out, "eval") != TN_OK ||
        tn_module_to(net, NULL, TN_F64) != TN_OK)
        return TN_ERR_RUNTIME;
    if (tn_tensor_dtype(x) == TN_F32)
        x = tn_cast(x, TN_F64);
    if (x == NULL || keep_result(net, x, out, "wide") != TN_OK ||
        tn_module_train(net, true) != TN_OK)
        return TN_ERR_RUNTIME;
    y = tn_module_call(net, x);
    weights = y != NULL ? factors(y) : NULL;
    if (weights == NULL || tn_state_set(out, "train", tn_detach(y)) != TN_OK ||
        tn_backward_from(&y, &weights, 1, NULL) != TN_OK)
        return TN_ERR_RUNTIME;
    return tn_module_each_tensor(net, TN_SLOT_PARAMETER, false, keep_gradient, out);
}

int main(int count, char **arguments)
{
    tn_module *net;
    tn_state *data, *out;

    if (count != 5) {
        fprintf(stderr, "usage: models_plugin SPEC WEIGHTS DATA OUT\n");
        return 2;
    }
    net = tn_module_parse_skip_init(NULL, arguments[1]);
    data = tn_state_load(arguments[3]);
    out = tn_state_new();
    if (net != NULL && data != NULL && out != NULL && tn_module_load(net, arguments[2]) == TN_OK &&
        print(net) == TN_OK && run(net, tn_state_tensor(data, 0), out) == TN_OK)
        tn_state_save(out, arguments[4]);
    if (tn_failed())
        fprintf(stderr, "%s\n", tn_error_text());
    tn_state_drop(out);
    tn_state_drop(data);
    tn_module_drop(net);
    return tn_failed();
}
