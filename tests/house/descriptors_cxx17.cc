/* SPDX-License-Identifier: MIT
 *
 * Descriptors in C++17, without designated initializers; compiled with -pedantic by headers.sh. */
#include <tenon/plugin.h>

namespace {

struct scale {
    double factor;
};

const tn_option options[] = { TN_OPTION_FLOAT(struct scale, factor, "1.0", "a number"),
                              TN_OPTION_END };

tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    return tn_mul_scalar(tn_relu(x), static_cast<scale *>(tn_module_data(self))->factor);
}

tn_status run(const tn_call *call)
{
    return call->n_in > 0 ? TN_OK : tn_fail(TN_ERR_VALUE, "%s: no input", call->op);
}

constexpr tn_layer_def make_layer()
{
    tn_layer_def d = tn_layer_def();

    d.head = TN_HEAD_INIT(tn_layer_def);
    d.name = "Scale";
    d.options = options;
    d.data_size = sizeof(scale);
    d.forward = forward;
    return d;
}

constexpr tn_layer_def layer = make_layer();
constexpr tn_kernel_def kernel = TN_KERNEL("relu", "cpu", "tn_relu_f32", TN_BIT(TN_F32), run);

} // namespace

TN_PLUGIN("org.example.descriptors", "1.0.0", &layer, &kernel);
