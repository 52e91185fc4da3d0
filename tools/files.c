/* SPDX-License-Identifier: MIT
 *
 * Shared by tenon inspect and tenon convert: how much a state holds. */
#include "files.h"

int64_t files_bytes(const tn_tensor *tensor)
{
    return tn_tensor_numel(tensor) * (int64_t)tn_dtype_size(tn_tensor_dtype(tensor));
}

/* Adds up the elements and bytes of all tensors of a state. Returns the number of tensors. */
int64_t files_sum(const tn_state *state, int64_t *elements, int64_t *bytes)
{
    int64_t tensors = 0;

    *elements = *bytes = 0;
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        tn_value value = tn_state_value(state, i);
        if (value.kind != TN_VALUE_TENSOR)
            continue;
        *elements += tn_tensor_numel(value.as.tensor);
        *bytes += files_bytes(value.as.tensor);
        tensors++;
    }
    return tensors;
}

/* Writes a text such as "2 tensors, 10 values, 34 elements, 120 B". */
void files_count_text(const tn_state *state, char *out, size_t size)
{
    int64_t elements, bytes, tensors = files_sum(state, &elements, &bytes);
    int64_t values = tn_state_count(state) - tensors;
    char more[48] = "", number[32];

    if (values > 0)
        snprintf(more, sizeof more, ", %lld value%s", (long long)values, values == 1 ? "" : "s");
    snprintf(out, size, "%lld tensor%s%s, %lld elements, %s", (long long)tensors,
             tensors == 1 ? "" : "s", more, (long long)elements,
             bytes_text(bytes, number, sizeof number));
}
