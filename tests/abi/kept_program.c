/* SPDX-License-Identifier: MIT
 *
 * Loads the plugin of kept_plugin.c from the path in the first argument and uses each of its
 * contributions; the second argument is a file to write. Prints the line of the load report, then
 * "works" and what the layer's added_later gives, where the host has tn_added_later. */
#include <stdio.h>

#include <tenon/tenon.h>

static tn_status fill(tn_tensor *tensor, float a, float b)
{
    float row[2] = { a, b };

    return tensor != NULL ? tn_tensor_copy_in(tensor, row, sizeof row) : tn_error_last_code();
}

static bool is(tn_tensor *tensor, float a, float b)
{
    float row[2];

    return tensor != NULL && tn_tensor_copy_out(tensor, row, sizeof row) == TN_OK && row[0] == a &&
           row[1] == b;
}

/* Backend, operator, kernel and layer; optimizer; format; observer. NULL, or what does not work. */
static const char *use(const char *file)
{
    TN_SCOPE;
    const tn_head *head = tn_registry_find(TN_KIND_tn_observer_def, "kept-count");
    const int64_t *calls = head != NULL ? ((const tn_observer_def *)head)->user : NULL;
    tn_module *net = tn_set_default_device("kept") == TN_OK ? tn_module_new("Kept(factor=4)")
                                                            : NULL;
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(2), TN_F32, NULL);
    tn_tensor *weight = net != NULL ? tn_module_get(net, "weight") : NULL;
    tn_optimizer *optimizer;

    if (net == NULL || fill(x, 1, 2) != TN_OK || !is(tn_module_call(net, x), 4, 8))
        return "layer";
    if (calls == NULL || *calls < 1)
        return "observer";
    optimizer = tn_optimizer_new(net, "KeptDescent(lr=2)");
    if (optimizer == NULL || tn_tensor_set_grad(weight, x) != TN_OK ||
        tn_optimizer_step(optimizer) != TN_OK || !is(weight, -1, -3))
        return "optimizer";
    tn_optimizer_drop(optimizer);
    if (tn_module_save(net, file) != TN_OK || fill(weight, 0, 0) != TN_OK ||
        tn_module_load(net, file) != TN_OK || !is(weight, -1, -3))
        return "format";
    tn_module_drop(net);
    return NULL;
}

int main(int argc, char **argv)
{
    tn_plugin_report report;
    const char *wrong;

    if (argc != 3)
        return 2;
    tn_plugin_load(argv[1]);
    tn_error_clear();
    for (int64_t i = 0; i < tn_plugin_count(); i++)
        if (tn_plugin_report_at(i, &report) == TN_OK)
            printf("%s %s: %s\n", report.id, tn_outcome_name(report.outcome), report.reason);
    if (tn_plugin_count() != 1 || report.outcome != TN_OUTCOME_OK)
        return 1;
    wrong = use(argv[2]);
    if (wrong != NULL) {
        printf("%s: %s\n", wrong, tn_error_text());
        return 1;
    }
#ifdef ADDED
    printf("works, added_later(1) = %d\n", (int)tn_added_later("Kept", 1));
#else
    printf("works\n");
#endif
    tn_shutdown();
    return 0;
}
