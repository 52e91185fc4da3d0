/* SPDX-License-Identifier: MIT
 *
 * Whose memory the results of operators have. A result with the memory of an input changes with it
 * at a later write in place, so the schema says it. */
#ifndef TN_TESTS_ORACLE_SHARES_H
#define TN_TESTS_ORACLE_SHARES_H

#include <string.h>

#include <tenon/contrib.h>
#include <tenon/tenon.h>

/* Operators that are no views, whose results may have the memory of an input, as in PyTorch. */
static inline bool may_share(const tn_op_def *def)
{
    static const char *const names[] = { "cast",
                                         "conj",
                                         "einsum",
                                         "flatten",
                                         "reshape",
                                         "select",
                                         "sum_to",
                                         "dropout",
                                         "alpha_dropout",
                                         "feature_dropout",
                                         "feature_alpha_dropout" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], def->name) == 0)
            return true;
    return false;
}

/* Returns what is wrong with the memory of a result, or NULL: it is that of the first input if the
 * operator is a view, and otherwise its own. A result without elements may have any. */
static inline const char *wrong_memory(const tn_op_def *def, tn_tensor *out, tn_tensor *const *in,
                                       int64_t n_in)
{
    for (int64_t i = 0; i < n_in && tn_tensor_numel(out) > 0; i++) {
        bool view = (def->flags & TN_OP_VIEW) != 0 && i == 0;
        bool shares = in[i] != TN_NONE && tn_tensor_shares_storage(out, in[i]);

        if (shares && !view && !may_share(def))
            return "a result with the memory of an input";
        if (view && !shares)
            return "a view with memory of its own";
    }
    return NULL;
}

#endif
