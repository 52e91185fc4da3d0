/* SPDX-License-Identifier: MIT
 *
 * Convolutions with moved windows: grid_sample reads the elements of all windows, a product with
 * the weights of each group follows. */
#include "vision.h"

/* Sizes of one call. */
struct sizes {
    int64_t n, channels, height, width;  /* of x */
    int64_t out, down, across, elements; /* channels of y, its sizes, elements of a window */
};

static bool fail(const char *what, long long got, long long expected)
{
    tn_fail(TN_ERR_VALUE, "deform_conv2d: %s: wrong, got %lld; expected %lld", what, got, expected);
    return false;
}

static bool check(tn_tensor *x, tn_tensor *offset, tn_tensor *weight, tn_tensor *mask,
                  const struct vision_moved *how, struct sizes *s)
{
    int64_t groups = how->groups, moved = how->offset_groups;

    if (tn_tensor_ndim(x) != 4 || tn_tensor_ndim(weight) != 4 || tn_tensor_ndim(offset) != 4 ||
        (mask != TN_NONE && tn_tensor_ndim(mask) != 4)) {
        tn_fail(TN_ERR_VALUE,
                "deform_conv2d: expected 4 dimensions of input, weight, offset, mask");
        return false;
    }
    *s = (struct sizes){
        tn_tensor_size(x, 0),      tn_tensor_size(x, 1),
        tn_tensor_size(x, 2),      tn_tensor_size(x, 3),
        tn_tensor_size(weight, 0), tn_tensor_size(offset, 2),
        tn_tensor_size(offset, 3), tn_tensor_size(weight, 2) * tn_tensor_size(weight, 3)
    };
    if (groups < 1 || s->channels % groups != 0 || s->out % groups != 0)
        return fail("groups", (long long)groups, (long long)s->channels);
    if (moved < 1 || s->channels % moved != 0)
        return fail("offset groups", (long long)moved, (long long)s->channels);
    if (tn_tensor_size(weight, 1) != s->channels / groups)
        return fail("weight: channels", (long long)tn_tensor_size(weight, 1),
                    (long long)(s->channels / groups));
    if (tn_tensor_size(offset, 1) != 2 * moved * s->elements)
        return fail("offset: channels", (long long)tn_tensor_size(offset, 1),
                    (long long)(2 * moved * s->elements));
    if (mask != TN_NONE && tn_tensor_size(mask, 1) != moved * s->elements)
        return fail("mask: channels", (long long)tn_tensor_size(mask, 1),
                    (long long)(moved * s->elements));
    for (int i = 0; i < 2; i++) {
        int64_t size = tn_tensor_size(x, 2 + i), kernel = tn_tensor_size(weight, 2 + i);

        if (how->stride[i] < 1 || how->dilation[i] < 1 || kernel < 1 || size < 1)
            return fail("stride, dilation or size", 0, 1);
        if (how->padding[i] < -INT32_MAX || how->padding[i] > INT32_MAX)
            return fail("padding", (long long)how->padding[i], 0);
    }
    return true;
}

/* Where the elements of the windows are in one direction without offsets, as a tensor that
 * broadcasts with [elements, down, across]. */
static tn_tensor *places(tn_tensor *x, tn_tensor *weight, const struct sizes *s,
                         const struct vision_moved *how, int dim)
{
    int64_t rows = tn_tensor_size(weight, 2), columns = tn_tensor_size(weight, 3);
    int64_t count = dim == 0 ? s->down : s->across, kernel = dim == 0 ? rows : columns;
    tn_dtype dtype = tn_tensor_dtype(x);
    tn_tensor *window, *base;

    base = tn_arange(x, tn_scalar_int(0), tn_scalar_int(count), tn_scalar_int(1), dtype);
    base = tn_add_scalar(tn_mul_scalar(base, tn_scalar_int(how->stride[dim])),
                         tn_scalar_int(-how->padding[dim]));
    window = tn_mul_scalar(
        tn_arange(x, tn_scalar_int(0), tn_scalar_int(kernel), tn_scalar_int(1), dtype),
        tn_scalar_int(how->dilation[dim]));
    window = tn_reshape(window, dim == 0 ? TN_SHAPE(rows, 1) : TN_SHAPE(1, columns));
    window = tn_reshape(tn_expand(window, TN_SHAPE(rows, columns)), TN_SHAPE(s->elements, 1, 1));
    return tn_add(window, tn_reshape(base, dim == 0 ? TN_SHAPE(count, 1) : TN_SHAPE(1, count)));
}

/* Coordinates of grid_sample, in which -1 and 1 are the outer edges. */
static tn_tensor *coordinates(tn_tensor *place, tn_tensor *moved, int64_t size)
{
    return tn_add_scalar(tn_mul_scalar(tn_add(place, moved), tn_scalar_float(2.0 / (double)size)),
                         tn_scalar_float(1.0 / (double)size - 1));
}

/* The elements of all windows, [N, channels, elements, down across]. */
static tn_tensor *windows(tn_tensor *x, tn_tensor *offset, tn_tensor *weight, tn_tensor *mask,
                          const struct vision_moved *how, const struct sizes *s)
{
    int64_t groups = s->n * how->offset_groups, each = s->channels / how->offset_groups;
    tn_tensor *moved = tn_reshape(offset, TN_SHAPE(groups, s->elements, 2, s->down, s->across));
    tn_tensor *grid[2], *y;

    grid[1] = coordinates(places(x, weight, s, how, 0), tn_select(moved, 2, 0), s->height);
    grid[0] = coordinates(places(x, weight, s, how, 1), tn_select(moved, 2, 1), s->width);
    if (grid[0] == NULL || grid[1] == NULL)
        return NULL;
    y = tn_grid_sample(
        tn_reshape(x, TN_SHAPE(groups, each, s->height, s->width)),
        tn_reshape(tn_stack(grid, 2, -1), TN_SHAPE(groups, s->elements * s->down, s->across, 2)),
        "bilinear", "zeros", false);
    if (mask != TN_NONE)
        y = tn_mul(y, tn_reshape(mask, TN_SHAPE(groups, 1, s->elements * s->down, s->across)));
    return tn_reshape(y, TN_SHAPE(s->n, s->channels, s->elements, s->down * s->across));
}

tn_tensor *vision_deform(tn_tensor *x, tn_tensor *offset, tn_tensor *weight, tn_tensor *bias,
                         tn_tensor *mask, const struct vision_moved *how)
{
    struct sizes s;
    tn_tensor *y, *rows;
    int64_t width;

    if (!check(x, offset, weight, mask, how, &s))
        return NULL;
    width = s.channels / how->groups * s.elements;
    y = tn_reshape(windows(x, offset, weight, mask, how, &s),
                   TN_SHAPE(s.n, how->groups, width, s.down * s.across));
    rows = tn_reshape(weight, TN_SHAPE(how->groups, s.out / how->groups, width));
    y = tn_reshape(tn_matmul(rows, y), TN_SHAPE(s.n, s.out, s.down, s.across));
    return bias != TN_NONE ? tn_add(y, tn_reshape(bias, TN_SHAPE(s.out, 1, 1))) : y;
}
