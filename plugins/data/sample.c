/* SPDX-License-Identifier: MIT
 *
 * The image in a sample that a transform changes. */
#include "data.h"

static tn_status no_image(const char *who, const char *what)
{
    return tn_fail(TN_ERR_TYPE,
                   "%s: entry 0 of the sample: %s; expected an image [C, H, W] of uint8 or float32",
                   who, what);
}

tn_status data_image_get(const tn_transform_args *args, struct data_image *image)
{
    const char *who = args->def->name;
    char what[64];
    tn_value value;
    tn_tensor *x;
    tn_ints shape;

    if (tn_pack_count(args->in) < 1)
        return no_image(who, "the sample is empty");
    value = tn_pack_at(args->in, 0);
    if (value.kind != TN_VALUE_TENSOR)
        return no_image(who, "no tensor");
    x = value.as.tensor;
    if (tn_tensor_ndim(x) != 3) {
        tn_snprint(what, sizeof what, "wrong number of dimensions, got %d", (int)tn_tensor_ndim(x));
        return no_image(who, what);
    }
    image->dtype = tn_tensor_dtype(x);
    if (image->dtype != TN_U8 && image->dtype != TN_F32) {
        tn_snprint(what, sizeof what, "wrong dtype, got %s", tn_dtype_name(image->dtype));
        return no_image(who, what);
    }
    x = tn_tensor_is_contiguous(x) ? x : tn_copy(x);
    if (x == NULL)
        return tn_error_last_code();
    shape = tn_tensor_shape(x);
    image->channels = shape.at[0];
    image->height = shape.at[1];
    image->width = shape.at[2];
    image->item = tn_dtype_size(image->dtype);
    image->values = tn_tensor_data(x);
    return image->values != NULL || tn_tensor_numel(x) == 0 ? TN_OK : tn_error_last_code();
}

tn_status data_numbers_get(const tn_transform_args *args, struct data_numbers *numbers)
{
    const char *who = args->def->name;
    tn_value value = tn_pack_count(args->in) > 0 ? tn_pack_at(args->in, 0) : tn_value_none();
    tn_tensor *x = value.kind == TN_VALUE_TENSOR ? value.as.tensor : NULL;

    if (x == NULL)
        return tn_fail(TN_ERR_TYPE, "%s: entry 0 of the sample: %s; expected a tensor%s", who,
                       tn_value_kind_name(value.kind),
                       value.kind == TN_VALUE_DICT ? ", which Columns makes of a row" : "");
    numbers->dtype = tn_tensor_dtype(x);
    if ((TN_BIT(numbers->dtype) & TN_MASK_COMPLEX) != 0)
        return tn_fail(TN_ERR_TYPE,
                       "%s: entry 0 of the sample: wrong dtype, got %s; expected real "
                       "numbers",
                       who, tn_dtype_name(numbers->dtype));
    x = tn_tensor_is_contiguous(x) ? x : tn_copy(x);
    if (x == NULL)
        return tn_error_last_code();
    numbers->tensor = x;
    numbers->count = tn_tensor_numel(x);
    numbers->outer = tn_tensor_ndim(x) > 0 ? tn_tensor_size(x, 0) : 1;
    numbers->values = tn_tensor_data(x);
    return numbers->values != NULL || numbers->count == 0 ? TN_OK : tn_error_last_code();
}

tn_tensor *data_numbers_new(const struct data_numbers *numbers, float **values)
{
    tn_tensor *x = tn_tensor_empty(tn_tensor_shape(numbers->tensor), TN_F32, tn_default_device());

    *values = x != NULL ? tn_tensor_data(x) : NULL;
    return *values != NULL || (x != NULL && numbers->count == 0) ? x : NULL;
}

tn_tensor *data_image_new(int64_t channels, int64_t height, int64_t width, tn_dtype dtype,
                          unsigned char **values)
{
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(channels, height, width), dtype, tn_default_device());

    *values = x != NULL ? tn_tensor_data(x) : NULL;
    return *values != NULL ? x : NULL;
}

tn_status data_rest(tn_transform_args *args, int64_t first)
{
    tn_status status = TN_OK;

    for (int64_t i = first; i < tn_pack_count(args->in) && status == TN_OK; i++)
        status = tn_pack_add(args->out, tn_pack_name(args->in, i), tn_pack_at(args->in, i));
    return status;
}

tn_status data_image_put(tn_transform_args *args, tn_tensor *image)
{
    tn_status status = image != NULL ? tn_pack_add(args->out, tn_pack_name(args->in, 0),
                                                   tn_value_tensor(image))
                                     : tn_error_last_code();

    return status == TN_OK ? data_rest(args, 1) : status;
}

tn_status data_same(tn_transform_args *args)
{
    return data_rest(args, 0);
}
