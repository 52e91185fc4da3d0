/* SPDX-License-Identifier: MIT
 *
 * Unfold (windows of images as columns) and Fold (columns added up to images). */
#include "window.h"
#define WINDOW                                                                                     \
    ROW(kernel_size, NULL, "height and width of a window", TN_OPTION_REQUIRED),                    \
        ROW(dilation, "1", "spacing of the elements of a window", 0),                              \
        ROW(padding, "0", "zeros on both sides", 0), ROW(stride, "1", "stride between windows", 0)

static const tn_option unfold_options[] = { WINDOW, TN_OPTION_END };
static const tn_option fold_options[] = { ROW(output_size, NULL, "height and width of the image",
                                              TN_OPTION_REQUIRED),
                                          WINDOW, TN_OPTION_END };

static tn_status check_unfold(tn_module *self)
{
    const struct window *s = tn_module_data(self);
    tn_status status = window_check(self, 2);

    return status == TN_OK ? window_counts(self, s->dilation, "dilation", 2) : status;
}

static tn_status check_fold(tn_module *self)
{
    const struct window *s = tn_module_data(self);
    tn_status status = check_unfold(self);

    return status == TN_OK ? window_counts(self, s->output_size, "output_size", 2) : status;
}

static tn_tensor *unfold_forward(tn_module *self, tn_tensor *x)
{
    const struct window *s = tn_module_data(self);
    struct rows rows = { .used = 0 };

    return tn_im2col(x, window_row(&rows, s->kernel_size, 2), window_row(&rows, s->dilation, 2),
                     window_row(&rows, s->padding, 2), window_row(&rows, s->stride, 2));
}

static tn_tensor *fold_forward(tn_module *self, tn_tensor *x)
{
    const struct window *s = tn_module_data(self);
    struct rows rows = { .used = 0 };

    return tn_fold(x, window_row(&rows, s->output_size, 2), window_row(&rows, s->kernel_size, 2),
                   window_row(&rows, s->dilation, 2), window_row(&rows, s->padding, 2),
                   window_row(&rows, s->stride, 2));
}

static int64_t window_repr(tn_module *self, char *out, size_t size)
{
    const struct window *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    if (s->output_size.count > 0)
        window_put(&text, "output_size", s->output_size, 0);
    window_put(&text, "kernel_size", s->kernel_size, 0);
    window_put(&text, "dilation", s->dilation, 0);
    window_put(&text, "padding", s->padding, 0);
    window_put(&text, "stride", s->stride, 0);
    return text.used;
}

const tn_layer_def layer_unfold = {
    TN_HEAD(tn_layer_def),
    .name = "Unfold",
    .help = "the windows of an image as columns, [N, C kh kw, windows]",
    .options = unfold_options,
    .data_size = sizeof(struct window),
    .version = 1,
    .build = check_unfold,
    .forward = unfold_forward,
    .repr = window_repr,
};
const tn_layer_def layer_fold = {
    TN_HEAD(tn_layer_def),
    .name = "Fold",
    .help = "the image whose windows are these columns, summed where they overlap",
    .options = fold_options,
    .data_size = sizeof(struct window),
    .version = 1,
    .build = check_fold,
    .forward = fold_forward,
    .repr = window_repr,
};
