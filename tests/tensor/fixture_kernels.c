/* SPDX-License-Identifier: MIT
 *
 * Kernels for the devices of the tests: copy and fill, slow and simple. */
#include "tests/tensor/fixture.h"

static char *element(const tn_view *view, int64_t index, bool host)
{
    int64_t at = 0;
    size_t item = view->dtype.bits / 8;

    for (int32_t i = view->ndim - 1; i >= 0; i--) {
        at += index % view->shape[i] * view->strides[i];
        index /= view->shape[i];
    }
    if (host)
        return (char *)view->data + view->byte_offset + (size_t)at * item;
    return room_bytes(view->data, view->byte_offset + (size_t)at * item, item);
}

static int64_t count_of(const tn_view *view)
{
    int64_t count = 1;

    for (int32_t i = 0; i < view->ndim; i++)
        count *= view->shape[i];
    return count;
}

static tn_dtype dtype_of(const tn_view *view)
{
    for (int i = 0; i < TN_DTYPE_COUNT; i++) {
        tn_view probe;
        tn__dtype_to_view((tn_dtype)i, &probe);
        if (probe.dtype.code == view->dtype.code && probe.dtype.bits == view->dtype.bits)
            return (tn_dtype)i;
    }
    return TN_DTYPE_AUTO;
}

static tn_status run_copy(const tn_call *call)
{
    bool host = call->kernel->user != NULL;
    const tn_view *to = call->out[0], *from = call->in[0];

    atomic_fetch_add(&room.kernels, 1);
    for (int64_t i = 0; i < count_of(to); i++) {
        if (dtype_of(to) == dtype_of(from)) {
            memcpy(element(to, i, host), element(from, i, host), to->dtype.bits / 8);
        } else {
            tn__number number = tn__convert_read(element(from, i, host), dtype_of(from));
            tn__convert_write(element(to, i, host), dtype_of(to),
                              tn_scalar_float(tn__convert_number(&number)));
        }
    }
    return TN_OK;
}

struct fill_options {
    uint32_t size;
    tn_scalar value;
};
static const struct fill_options fill_defaults = { sizeof fill_defaults, { 0 } };
static const tn_option fill_rows[] = {
    TN_OPTION_ROW(struct fill_options, value, NULL, "", TN_OPTION_KIND_SCALAR, TN_OPTION_REQUIRED),
    TN_OPTION_END,
};

static tn_status run_fill(const tn_call *call)
{
    const struct fill_options *options = call->options;

    atomic_fetch_add(&room.kernels, 1);
    for (int64_t i = 0; i < count_of(call->out[0]); i++)
        tn__convert_write(element(call->out[0], i, call->kernel->user != NULL),
                          dtype_of(call->out[0]), options->value);
    return TN_OK;
}

static tn_status infer_like(tn_infer *infer)
{
    infer->out[0].dtype = dtype_of(infer->in[0]);
    infer->out[0].ndim = infer->in[0]->ndim;
    memcpy(infer->out[0].shape, infer->in[0]->shape, (size_t)infer->in[0]->ndim * sizeof(int64_t));
    return TN_OK;
}

static const tn_operand x_in[] = { { "x", 0, TN_MASK_ALL } }, y_out[] = { { "y", 0, TN_MASK_ALL } };

static const tn_op_def ops[] = {
    { TN_HEAD(tn_op_def), .name = "copy", .math = "y = x", .help = "", .revision = 1,
      .flags = TN_OP_PRIMITIVE, .inputs = x_in, .outputs = y_out, .n_inputs = 1, .n_outputs = 1,
      .dispatch_input = -1, .infer = infer_like },
    { TN_HEAD(tn_op_def), .name = "fill", .math = "y = v", .help = "", .revision = 1,
      .flags = TN_OP_PRIMITIVE, .inputs = x_in, .outputs = y_out, .n_inputs = 1, .n_outputs = 1,
      .options = fill_rows, .defaults = &fill_defaults, .options_size = sizeof(struct fill_options),
      .dispatch_input = -1, .infer = infer_like },
};

static const tn_kernel_def kernels[] = {
    { TN_HEAD(tn_kernel_def), .op = "copy", .device = "cpu", .name = "room_copy", .revision = 1,
      .dtypes = TN_MASK_ALL, .user = "host", .run = run_copy },
    { TN_HEAD(tn_kernel_def), .op = "copy", .device = "vault", .name = "room_copy", .revision = 1,
      .dtypes = TN_MASK_ALL, .run = run_copy },
    { TN_HEAD(tn_kernel_def), .op = "fill", .device = "cpu", .name = "room_fill", .revision = 1,
      .dtypes = TN_MASK_ALL, .user = "host", .run = run_fill },
};

void room_add_kernels(void)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        ok(tn__op_add(&ops[i], NULL));
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        ok(tn__op_kernel_add(&kernels[i], NULL));
}
