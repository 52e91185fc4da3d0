/* SPDX-License-Identifier: MIT
 *
 * Unfold and Fold: windows of images as columns and back. MaxUnpool: the inverse of max pooling. */
#include "layers.h"

struct window {
    tn_ints output_size;
    tn_ints kernel_size;
    tn_ints dilation;
    tn_ints padding;
    tn_ints stride; /* MaxUnpool: count -1 for the kernel */
};

#define ROW(member, def, help, flags)                                                              \
    TN_OPTION_ROW(struct window, member, def, help, TN_OPTION_KIND_INTS, flags)
#define WINDOW                                                                                     \
    ROW(kernel_size, NULL, "height and width of a window", TN_OPTION_REQUIRED),                    \
        ROW(dilation, "1", "between the elements of a window", 0),                                 \
        ROW(padding, "0", "zeros on both sides", 0), ROW(stride, "1", "between windows", 0)

static const tn_option unfold_options[] = { WINDOW, TN_OPTION_END };
static const tn_option fold_options[] = { ROW(output_size, NULL, "height and width of the image",
                                              TN_OPTION_REQUIRED),
                                          WINDOW, TN_OPTION_END };
static const tn_option unpool_options[] = {
    ROW(kernel_size, NULL, "as the pooling had it", TN_OPTION_REQUIRED),
    ROW(stride, "None", "as the pooling had it; None: the kernel", TN_OPTION_OPTIONAL),
    ROW(padding, "0", "as the pooling had it", 0), TN_OPTION_END
};

/* The rows of one call: several threads may call a module. */
struct rows {
    int64_t at[5][3];
    int used;
};

/* One number stands for all dimensions. */
static tn_ints each(struct rows *rows, tn_ints given, int64_t dims)
{
    int64_t *row = rows->at[rows->used++];

    for (int64_t d = 0; d < dims; d++)
        row[d] = given.at[given.count == 1 ? 0 : d];
    return (tn_ints){ row, dims };
}

static tn_status counts(tn_module *self, tn_ints row, const char *name, int64_t dims)
{
    return row.count == 1 || row.count == dims
               ? TN_OK
               : tn_fail(TN_ERR_VALUE, "%s: %s has to be one number, or %lld of them",
                         tn_module_type(self), name, (long long)dims);
}

/* What all three have. MaxUnpool's stride is that of the pooling, which None leaves to the
 * kernel. */
static tn_status check(tn_module *self, int64_t dims)
{
    const struct window *s = tn_module_data(self);
    tn_status status = counts(self, s->kernel_size, "kernel_size", dims);

    if (status == TN_OK)
        status = counts(self, s->padding, "padding", dims);
    return status == TN_OK && s->stride.count >= 0 ? counts(self, s->stride, "stride", dims)
                                                   : status;
}

static tn_status check_unfold(tn_module *self)
{
    const struct window *s = tn_module_data(self);
    tn_status status = check(self, 2);

    return status == TN_OK ? counts(self, s->dilation, "dilation", 2) : status;
}

static tn_status check_fold(tn_module *self)
{
    const struct window *s = tn_module_data(self);
    tn_status status = check_unfold(self);

    return status == TN_OK ? counts(self, s->output_size, "output_size", 2) : status;
}

static tn_tensor *unfold_forward(tn_module *self, tn_tensor *x)
{
    const struct window *s = tn_module_data(self);
    struct rows rows = { .used = 0 };
    tn_im2col_options o = TN_IM2COL_OPTIONS;

    o.dilation = each(&rows, s->dilation, 2);
    o.padding = each(&rows, s->padding, 2);
    o.stride = each(&rows, s->stride, 2);
    return tn_im2col(x, each(&rows, s->kernel_size, 2), &o);
}

static tn_tensor *fold_forward(tn_module *self, tn_tensor *x)
{
    const struct window *s = tn_module_data(self);
    struct rows rows = { .used = 0 };
    tn_fold_options o = TN_FOLD_OPTIONS;

    o.dilation = each(&rows, s->dilation, 2);
    o.padding = each(&rows, s->padding, 2);
    o.stride = each(&rows, s->stride, 2);
    return tn_fold(x, each(&rows, s->output_size, 2), each(&rows, s->kernel_size, 2), &o);
}

static void put(layers_text *text, const char *name, tn_ints row, int64_t dims)
{
    layers_put(text, "%s%s=", text->used > 0 ? ", " : "", name);
    layers_put_row(text, row, dims);
}

static int64_t window_repr(tn_module *self, char *out, size_t size)
{
    const struct window *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    if (s->output_size.count > 0)
        put(&text, "output_size", s->output_size, 0);
    put(&text, "kernel_size", s->kernel_size, 0);
    put(&text, "dilation", s->dilation, 0);
    put(&text, "padding", s->padding, 0);
    put(&text, "stride", s->stride, 0);
    return text.used;
}

const tn_layer layer_unfold = {
    TN_HEAD(tn_layer),
    .name = "Unfold",
    .help = "the windows of an image as columns, [N, C kh kw, windows]",
    .options = unfold_options,
    .data_size = sizeof(struct window),
    .version = 1,
    .build = check_unfold,
    .forward = unfold_forward,
    .repr = window_repr,
};
const tn_layer layer_fold = {
    TN_HEAD(tn_layer),
    .name = "Fold",
    .help = "the image whose windows are these columns, summed where they overlap",
    .options = fold_options,
    .data_size = sizeof(struct window),
    .version = 1,
    .build = check_fold,
    .forward = fold_forward,
    .repr = window_repr,
};

/* ---- MaxUnpool: the inverse of max pooling ---- */

static tn_status take_two(tn_module *self, const tn_pack *input, tn_tensor **in)
{
    if (tn_pack_count(input) < 2)
        return tn_fail(TN_ERR_TYPE, "%s takes input and indices, got %lld values",
                       tn_module_type(self), (long long)tn_pack_count(input));
    for (int64_t i = 0; i < 2; i++) {
        in[i] = tn_pack_tensor(input, i);
        if (in[i] == NULL)
            return tn_error_last()->code;
    }
    return TN_OK;
}

/* The third value, or output_size by name: the size of the result, of which the last `dims`
 * count. */
static tn_status size_asked_for(tn_module *self, const tn_pack *input, int64_t dims, int64_t *room,
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
        return tn_fail(TN_ERR_TYPE, "%s: output_size has to be a row of %lld sizes or more",
                       tn_module_type(self), (long long)dims);
    for (int64_t d = 0; d < dims; d++) {
        const tn_value *size = &value.as.list[value.count - dims + d];

        if (size->kind != TN_VALUE_INT)
            return tn_fail(TN_ERR_TYPE, "%s: output_size has something else than whole numbers",
                           tn_module_type(self));
        room[d] = size->as.i;
    }
    *out = (tn_ints){ room, dims };
    return TN_OK;
}

static tn_status unpool_check(tn_module *self)
{
    return check(self, layers_dims(self));
}

/* The operators by number of dimensions, with the options of the layer. */
typedef tn_tensor *unpool_op(const struct window *s, tn_tensor *const *in, tn_ints output_size);

#define MAX_UNPOOL(op, dims)                                                                       \
    static tn_tensor *op(const struct window *s, tn_tensor *const *in, tn_ints output_size)        \
    {                                                                                              \
        struct rows rows = { .used = 0 };                                                          \
        tn_ints kernel = each(&rows, s->kernel_size, dims);                                        \
        tn_##op##_options o = { .size = sizeof o, .output_size = output_size };                    \
        o.stride = s->stride.count > 0 ? each(&rows, s->stride, dims) : kernel;                    \
        o.padding = each(&rows, s->padding, dims);                                                 \
        return tn_##op(in[0], in[1], kernel, &o);                                                  \
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
        status = size_asked_for(self, input, dims, room, &output_size);
    if (status != TN_OK)
        return status;
    y = max_unpool[dims - 1](tn_module_data(self), in, output_size);
    return y == NULL ? tn_error_last()->code : tn_pack_add(output, NULL, tn_value_tensor(y));
}

static int64_t unpool_repr(tn_module *self, char *out, size_t size)
{
    const struct window *s = tn_module_data(self);
    int dims = layers_dims(self);
    layers_text text = { out, size, 0 };

    put(&text, "kernel_size", s->kernel_size, dims);
    put(&text, "stride", s->stride.count > 0 ? s->stride : s->kernel_size, dims);
    put(&text, "padding", s->padding, dims);
    return text.used;
}

#define UNPOOL                                                                                     \
    .help = "elements back where max pooling found them: module(input, indices)",                  \
    .options = unpool_options, .data_size = sizeof(struct window), .build = unpool_check,          \
    .call = unpool_call, .repr = unpool_repr
LAYER(max_unpool1d, "MaxUnpool1d", UNPOOL);
LAYER(max_unpool2d, "MaxUnpool2d", UNPOOL);
LAYER(max_unpool3d, "MaxUnpool3d", UNPOOL);
