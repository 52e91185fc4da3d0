/* SPDX-License-Identifier: MIT
 *
 * The options --input and --dtype of the commands that call a network. */
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool input_read(const char *text, tn_dtype *dtype, int64_t *sizes, int64_t *count)
{
    const char *at = text, *colon = strchr(text, ':');
    *count = 0;
    if (colon != NULL && tn_dtype_parse(colon + 1, dtype) != TN_OK)
        return false;
    while (*at != '\0' && *at != ':') {
        char *end;
        errno = 0;
        long long size = strtoll(at, &end, 10);
        if (end == at || size < 0 || errno == ERANGE || *count == TN_MAX_DIMS ||
            !strchr(",x:", *end) ||
            ((*end == ',' || *end == 'x') && (end[1] < '0' || end[1] > '9'))) {
            tn_fail(
                TN_ERR_VALUE,
                "--input: not a shape, got \"%s\"; expected at most %d sizes such as 1,3,224,224 "
                "or, with a dtype, 8,20:int64",
                text, TN_MAX_DIMS);
            return false;
        }
        sizes[(*count)++] = size;
        at = *end == ',' || *end == 'x' ? end + 1 : end;
    }
    return true;
}

bool inputs_take(input_list *to, const char *value)
{
    if (to->count == INPUTS_MOST)
        return false;
    to->at[to->count++] = value;
    return true;
}

static tn_status add(const char *text, tn_dtype dtype, tn_pack *pack)
{
    int64_t sizes[TN_MAX_DIMS], count = 0;
    tn_tensor *tensor;

    if (!input_read(text, &dtype, sizes, &count))
        return tn_error_code();
    tensor = tn_tensor_full((tn_ints){ sizes, count }, TN_SCALAR(0.0), dtype, NULL);
    return tensor != NULL ? tn_pack_add(pack, NULL, tn_value_tensor(tensor)) : tn_error_code();
}

tn_status inputs_add(const input_list *from, tn_pack *pack)
{
    tn_status status = TN_OK;

    for (int i = 0; i < from->count && status == TN_OK; i++)
        status = add(from->at[i], from->dtype, pack);
    return status;
}

static tn_status is_lazy(void *user, const char *path, tn_module *module)
{
    (void)path;
    *(bool *)user |= tn_module_is_lazy(module, NULL);
    return TN_OK;
}

tn_status input_prepare(tn_module *module, const tn_pack *input)
{
    bool lazy = false;
    tn_status status = tn_module_each(module, true, is_lazy, &lazy);
    tn_pack *output;

    if (status != TN_OK || !lazy)
        return status;
    output = tn_pack_new();
    status = output != NULL ? tn_module_call_pack(module, input, output) : TN_ERR_MEMORY;
    tn_pack_drop(output);
    return status;
}

tn_tensor *input_example(const char *text)
{
    int64_t sizes[TN_MAX_DIMS], count = 0;
    tn_dtype dtype = TN_F32;
    tn_tensor *tensor;

    if (!input_read(text, &dtype, sizes, &count))
        return NULL;
    tensor = tn_tensor_full((tn_ints){ sizes, count }, TN_SCALAR(0.0), dtype, NULL);
    return tensor != NULL && (TN_BIT(dtype) & TN_MASK_FLOAT) != 0 ? tn_normal_(tensor) : tensor;
}
