/* SPDX-License-Identifier: MIT
 *
 * MaxUnpool: the inverse of max pooling. */
#include "window.h"
static const tn_option unpool_options[] = {
    ROW(kernel_size, NULL, "as in the max pooling", TN_OPTION_REQUIRED),
    ROW(stride, "None", "as in the max pooling; None: kernel_size", TN_OPTION_OPTIONAL),
    ROW(padding, "0", "as in the max pooling", 0), TN_OPTION_END
};

static tn_status take_two(tn_module *self, const tn_pack *input, tn_tensor **in)
{
    if (tn_pack_count(input) < 2)
        return tn_fail(
            TN_ERR_TYPE,
            "%s: inputs: wrong number, got %lld; expected 2 or 3, input, indices and output_size",
            tn_module_type(self), (long long)tn_pack_count(input));
    for (int64_t i = 0; i < 2; i++) {
        in[i] = tn_pack_tensor(input, i);
        if (in[i] == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

/* Reads the size of the result: the third argument, or output_size by name. Only its last `dims`
 * numbers are used. *out stays empty if it is absent. */
static tn_status requested_size(tn_module *self, const tn_pack *input, int64_t dims, int64_t *room,
                                tn_ints *out)
{
    int64_t at = tn_pack_find(input, "output_size");
    tn_value value;

    if (at < 0 && tn_pack_positional(input) > 2)
        at = 2;
    if (at < 0)
        return TN_OK;
    value = tn_pack_at(input, at);
    if ((value.kind != TN_VALUE_LIST && value.kind != TN_VALUE_TUPLE) || value.count < dims)
        return tn_fail(
            TN_ERR_TYPE,
            "%s: output_size: wrong type or count, got %s of %u; expected a list of %lld sizes or "
            "more",
            tn_module_type(self), tn_value_kind_name(value.kind), tn_value_size(&value),
            (long long)dims);
    for (int64_t d = 0; d < dims; d++) {
        const tn_value *size = &value.as.list[value.count - dims + d];

        if (size->kind != TN_VALUE_INT)
            return tn_fail(TN_ERR_TYPE, "%s: output_size: wrong type, got %s; expected integers",
                           tn_module_type(self), tn_value_kind_name(size->kind));
        room[d] = size->as.i;
    }
    *out = (tn_ints){ room, dims };
    return TN_OK;
}

static tn_status unpool_check(tn_module *self)
{
    return window_check(self, layers_dims(self));
}

/* For each number of dimensions, the operator with the options of the layer. */
typedef tn_tensor *unpool_op(const struct window *s, tn_tensor *const *in, tn_ints output_size);

#define MAX_UNPOOL(op, dims)                                                                       \
    static tn_tensor *op(const struct window *s, tn_tensor *const *in, tn_ints output_size)        \
    {                                                                                              \
        struct rows rows = { .used = 0 };                                                          \
        tn_ints kernel = window_row(&rows, s->kernel_size, dims);                                  \
        tn_ints stride = s->stride.count > 0 ? window_row(&rows, s->stride, dims) : kernel;        \
        tn_ints padding = window_row(&rows, s->padding, dims);                                     \
        return tn_##op(in[0], in[1], kernel, stride, padding, output_size);                        \
    }
MAX_UNPOOL(max_unpool1d, 1)
MAX_UNPOOL(max_unpool2d, 2)
MAX_UNPOOL(max_unpool3d, 3)

static tn_status unpool_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    static unpool_op *const max_unpool[] = { max_unpool1d, max_unpool2d, max_unpool3d };
    int dims = layers_dims(self);
    int64_t room[3];
    tn_ints output_size = { NULL, 0 };
    tn_tensor *in[2], *y;
    tn_status status = take_two(self, input, in);

    if (status == TN_OK)
        status = requested_size(self, input, dims, room, &output_size);
    if (status != TN_OK)
        return status;
    y = max_unpool[dims - 1](tn_module_data(self), in, output_size);
    return y == NULL ? tn_error_last_code() : tn_pack_add(output, NULL, tn_value_tensor(y));
}

static int64_t unpool_repr(tn_module *self, char *out, size_t size)
{
    const struct window *s = tn_module_data(self);
    int dims = layers_dims(self);
    layers_text text = { out, size, 0 };

    window_put(&text, "kernel_size", s->kernel_size, dims);
    window_put(&text, "stride", s->stride.count > 0 ? s->stride : s->kernel_size, dims);
    window_put(&text, "padding", s->padding, dims);
    return text.used;
}

#define UNPOOL                                                                                     \
    .help = "puts elements back where max pooling found them: module(input, indices)",             \
    .options = unpool_options, .data_size = sizeof(struct window), .build = unpool_check,          \
    .call = unpool_call, .repr = unpool_repr
LAYER(max_unpool1d, "MaxUnpool1d", UNPOOL);
LAYER(max_unpool2d, "MaxUnpool2d", UNPOOL);
LAYER(max_unpool3d, "MaxUnpool3d", UNPOOL);
