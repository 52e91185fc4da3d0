/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of loaders: writes the contents of the batches of a loader of toys as text.
 */
#ifndef TN_TESTS_DATA_LOADERS_H
#define TN_TESTS_DATA_LOADERS_H

#include "toy.h"

TN_ATTR(unused) static tn_loader *loader_of(tn_dataset *dataset, const char *options)
{
    tn_loader *loader = tn_loader_parse(dataset, options);

    ck_assert_msg(loader != NULL, "%s: %s", options, tn_error_text());
    return loader;
}

/* A batch of the form 'pair': the tensors have the values of the samples in the second entry. */
TN_ATTR(unused) static void check_pair(const tn_pack *batch)
{
    tn_tensor *x = tn_pack_tensor(batch, 0), *y = tn_pack_tensor(batch, 1);
    int64_t count = tn_tensor_size(y, 0);
    const float *at = tn_tensor_data(x);
    const int64_t *index = tn_tensor_data(y);

    ck_assert_int_eq(tn_tensor_ndim(x), 3);
    ck_assert_int_eq(tn_tensor_size(x, 0), count);
    ck_assert_int_eq(tn_tensor_size(x, 1), 2);
    ck_assert_int_eq(tn_tensor_size(x, 2), 3);
    ck_assert_uint_eq(tn_tensor_dtype(y), TN_I64);
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < 6; k++)
            ck_assert_float_eq(at[6 * i + k], (float)(10 * index[i] + k));
}

/* Appends what the next batch has: its samples and a ';'. Returns false at the end of the epoch. */
TN_ATTR(unused) static bool add_next(tn_loader *loader, tn__text *text)
{
    tn_pack *batch = tn_loader_next(loader);

    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    if (batch == NULL)
        return false;
    check_pair(batch);
    tn_tensor *y = tn_pack_tensor(batch, 1);
    for (int64_t i = 0; i < tn_tensor_size(y, 0); i++)
        tn__text_add(text, "%s%lld", i > 0 ? " " : "",
                     (long long)((const int64_t *)tn_tensor_data(y))[i]);
    if (tn_pack_count(batch) > 2)
        for (int64_t i = 0; i < tn_tensor_size(y, 0); i++)
            tn__text_add(text, " %g",
                         ((const double *)tn_tensor_data(tn_pack_tensor(batch, 2)))[i]);
    tn__text_add(text, ";");
    return true;
}

/* Returns the batches of so many epochs, which are separated by '|'. */
TN_ATTR(unused) static char *batches_of(tn_loader *loader, int epochs)
{
    tn__text text = { 0 };

    for (int i = 0; i < epochs; i++) {
        while (add_next(loader, &text))
            ;
        tn__text_add(&text, "|");
    }
    return tn__text_take(&text);
}

#endif
