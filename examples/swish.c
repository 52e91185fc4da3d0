#include <tenon/plugin.h>

struct swish { double beta; };

static const tn_option options[] = {
    TN_OPTION_FLOAT(struct swish, beta, "1.0", "slope inside the sigmoid"), TN_OPTION_END
};

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct swish *s = tn_module_data(self);
    return tn_mul(x, tn_sigmoid(tn_mul_scalar(x, s->beta)));
}

static const tn_layer_def swish = { TN_HEAD(tn_layer_def), .name = "Swish", .options = options,
                                .data_size = sizeof(struct swish), .forward = forward };
TN_PLUGIN("org.example.swish", "1.0.0", &swish);
