/* SPDX-License-Identifier: MIT
 *
 * Tensors as text. The function calls the plugin tenon.print, which provides the interface
 * tenon.print.api; without the plugin it fails and names the interface. */
#ifndef TENON_PRINT_H
#define TENON_PRINT_H

#ifndef TENON_PLUGIN_H
#include <tenon/query.h>
#include <tenon/runtime.h>
#include <tenon/tensor.h>
#endif

TN_BEGIN_DECLS

/* The table of the interface. Programs call the function below. */
typedef struct tn_print_api {
    int64_t (*tensor)(tn_tensor *tensor, char *out, size_t size);
} tn_print_api;

/* Writes the tensor as text as NumPy prints it, abbreviated if it has more than 1000 elements; with
 * the dtype if that is not the default dtype. Writes at most `size` bytes including the final NUL;
 * returns the length of the complete text, -1 on error. `out` may be NULL if `size` is 0. */
TN_ATTR(unused)
static inline int64_t tn_tensor_text(tn_tensor *tensor, char *out, size_t size)
{
    const struct tn_interface_need need = { "tenon.print.api", 0, 0, (uint32_t)sizeof(tn_print_api),
                                            0 };
    const tn_print_api *api = (const tn_print_api *)tn_interface_find(NULL, &need, NULL);
    return api != NULL ? api->tensor(tensor, out, size) : -1;
}

TN_END_DECLS
#endif
