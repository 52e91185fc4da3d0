/* SPDX-License-Identifier: MIT
 *
 * A plugin with the rules of two operators that PyTorch does not have, acme::scale and acme::swirl,
 * for programs in .pt2 files. docs/guides/from-pytorch.md shows it. */
#include <tenon/plugin.h>

#include <tenon/foreign.h>
#include <tenon/ops.h>

/* y = x sin(a) + cos(x), and the sum of y */
static tn_status swirl(tn_rule_call *call)
{
    tn_tensor *x = tn_rule_tensor(call, "x"), *y;
    tn_tensor *a = tn_rule_operand(call, "a", x);

    y = tn_add(tn_mul(x, tn_sin(a)), tn_cos(x));
    tn_rule_give(call, y);
    return tn_rule_give(call, tn_sum(y));
}

static const tn_rule_def rows[] = {
    { "acme.scale.default(x, factor=2.0)", .text = "mul_scalar(x, value=factor)" },
    { "acme.swirl.default(x, a)", .call = swirl },
    { .function = NULL },
};
static const tn_rule_list list = { sizeof(tn_rule_def), 0, rows };
static const tn_interface_row interfaces[] = {
    { "org.acme.rules.aten", 0, sizeof list, &list, NULL },
    { NULL, 0, 0, NULL, NULL },
};
static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),
    .id = "org.acme",
    .version = "1.0.0",
    .interfaces = interfaces,
};
TN_PLUGIN_EXPORT(plugin);
