/* SPDX-License-Identifier: MIT
 *
 * Rules: what a function of a foreign program is in Tenon's operators. The programs are those of
 * PyTorch (`.pt2`), whose functions have names such as aten.add.Tensor.
 *
 * A rule begins with the function and its arguments, with the names and the defaults of ATen's
 * schema: files leave out arguments that are equal to the default. After it, a rule is either a
 * text or a C function.
 *
 *     { "aten.mul.Tensor(self, other)", .text = "mul(self, other)" }
 *     { "aten.index.Tensor(self, indices)", .call = index_tensor }
 *
 * A name without overload ("aten.relu(self)") is for all overloads that have no rule of their own.
 * Defaults: None, True, False, numbers, 'texts', [lists of numbers]. An argument without a default
 * must be in the file. `name=*` is an argument that changes no values, whatever it is. An argument
 * of the file that the rule does not list is refused before anything runs, except for None and for
 * what does not change values here: device, layout, memory_format, pin_memory, non_blocking. A
 * rule lists memory_format where it decides whether the result is the argument itself.
 *
 * In-place functions (aten.add_.Tensor) need no rule: they use the rule of aten.add.Tensor, and its
 * result is written to `self`, the first argument. If the rule is a text and the operator has an
 * in-place form, that form runs. A C function may use call->into itself; it then gives that tensor.
 * A rule for the name with the underscore comes first.
 *
 * Because of them it matters which results share memory with an argument: those that do so in
 * PyTorch, and no others.
 *
 * Texts
 *
 * A text has one call of an operator, or several ("forms"), separated by |. Arguments without a
 * name are the inputs of the operator in their order; the others are its options:
 *
 *     softmax(self, dim=dim)
 *     gelu(self, approximate=approximate)
 *     mse_loss(self, target, reduction=reduction{none, mean, sum})   an integer chooses a word
 *     normalize(self, p=2, eps=1e-12, norm='ortho', flag=true)       numbers, words, true and false
 *     sort(self, dim=dim, descending=descending)[1]                  only output 1
 *     self                                                           the argument itself, no call
 *     layer_norm(input, weight, bias, shape=normalized_shape), -, -  results that nobody can use
 *
 * The first form that fits is called. A form fits if its inputs are tensors (None, too, where the
 * operator accepts it), lists where the operator has a list, and if its options are not tensors. If
 * none fits in this way, a number may stand for an input: it becomes a tensor without dimensions,
 * as PyTorch's numbers in arithmetic. If an argument that no part of the form names differs from
 * its default, the call fails: so a form needs no option for an argument that is rarely given.
 * None for an option is the operator's default. A single integer is a list of one.
 *
 * Values
 *
 * Arguments and results are tn_value: NONE, BOOL, INT, FLOAT, COMPLEX, STRING, TENSOR, lists of
 * them. A dtype is a STRING, Tenon's name of it ("float32"). Symbolic sizes are integers. */
#ifndef TN_FOREIGN_RULES_H
#define TN_FOREIGN_RULES_H

#include <tenon/plugin.h>

#include <tenon/foreign.h>

/* Rows of tables name the members after the first one: { "...", .text = "..." }. Those of other
 * plugins are the same (tn_rule_def). */

/* ---- arguments ------------------------------------------------------------------------------- */

/* All of these fail if the argument has another kind: call->status is then the failure, the message
 * names the function and the argument, and the result is NULL, 0, or a list without elements.
 * rule_give() and the others like it return that failure, so that most rules need no test. Where a
 * value decides what is done next, test with `if (call->status != TN_OK) return call->status;`. */

/* The value of an argument. The name must be in the rule. */
TN_HIDDEN const tn_value *rule_value(tn_rule_call *call, const char *name);
/* Whether the argument is not None; whether it is a tensor. */
TN_HIDDEN bool rule_has(tn_rule_call *call, const char *name);
TN_HIDDEN bool rule_is_tensor(tn_rule_call *call, const char *name);
/* A tensor; rule_optional() returns TN_NONE for None. */
TN_HIDDEN tn_tensor *rule_tensor(tn_rule_call *call, const char *name);
TN_HIDDEN tn_tensor *rule_optional(tn_rule_call *call, const char *name);
/* A tensor, or a number as a tensor without dimensions, whose dtype does not change that of a
 * result with `like`. */
TN_HIDDEN tn_tensor *rule_operand(tn_rule_call *call, const char *name, const tn_tensor *like);
/* A list of tensors, TN_NONE for None; the array lives as long as the call. */
TN_HIDDEN tn_tensor **rule_tensors(tn_rule_call *call, const char *name, int64_t *count);
TN_HIDDEN int64_t rule_int(tn_rule_call *call, const char *name);
/* Also accepts an integer, or a bool. */
TN_HIDDEN double rule_float(tn_rule_call *call, const char *name);
TN_HIDDEN bool rule_bool(tn_rule_call *call, const char *name);
TN_HIDDEN tn_scalar rule_scalar(tn_rule_call *call, const char *name);
TN_HIDDEN const char *rule_text(tn_rule_call *call, const char *name);
/* TN_DTYPE_AUTO for None. */
TN_HIDDEN tn_dtype rule_dtype(tn_rule_call *call, const char *name);
/* A list of integers; one integer is a list of one; None has count -1. The array lives as long as
 * the call. */
TN_HIDDEN tn_ints rule_ints(tn_rule_call *call, const char *name);
TN_HIDDEN tn_floats rule_floats(tn_rule_call *call, const char *name);
/* A dimension of a tensor: an integer from -ndim to ndim - 1, returned as 0 to ndim - 1 (ndim is
 * taken as 1 if it is 0). */
TN_HIDDEN int64_t rule_dim(tn_rule_call *call, const char *name, const tn_tensor *tensor);
/* The same of a tensor that must have a dimension. */
TN_HIDDEN int64_t rule_axis(tn_rule_call *call, const char *name, const tn_tensor *tensor);
/* Whether to compute as in training: the mode of the module, for rules with `mode`. */
static inline bool rule_training(const tn_rule_call *call)
{
    return call->training;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Adds a result, in the order of the function's results. NULL: an operator has failed. Returns the
 * first failure of the call. */
TN_HIDDEN tn_status rule_give(tn_rule_call *call, tn_tensor *tensor);
/* Adds one result that is a list of tensors (unbind, split). */
TN_HIDDEN tn_status rule_give_list(tn_rule_call *call, tn_tensor *const *tensors, int64_t n);
/* Adds `n` results that are tensors each (max.dim: values, indices). */
TN_HIDDEN tn_status rule_give_all(tn_rule_call *call, tn_tensor *const *tensors, int64_t n);
/* Adds a result that is not there: a program that uses it fails. */
TN_HIDDEN tn_status rule_give_none(tn_rule_call *call);
/* Adds a number, as sym_size does. */
TN_HIDDEN tn_status rule_give_value(tn_rule_call *call, tn_value value);

/* ---- help for C functions -------------------------------------------------------------------- */

/* Fails with the message "FUNCTION: ...", unless the call has failed already. */
TN_HIDDEN tn_status rule_fail(tn_rule_call *call, tn_status code, const char *format, ...);
/* Memory, filled with zeros, that is freed after the call. NULL: the call has failed. */
TN_HIDDEN void *rule_memory(tn_rule_call *call, int64_t count, size_t size);
/* The tensor in this dtype: itself if it has it, or if `dtype` is TN_DTYPE_AUTO. NULL for NULL. */
TN_HIDDEN tn_tensor *rule_cast(tn_tensor *tensor, tn_dtype dtype);
/* Casts the tensors of a list to the dtype that PyTorch's promotion gives for all of them. */
TN_HIDDEN tn_status rule_promote(tn_rule_call *call, tn_tensor **tensors, int64_t count);
/* Calls an operator by name with these inputs and all options at their defaults, for tables of C
 * functions that differ only in the operator. NULL: the call has failed. */
TN_HIDDEN tn_tensor *rule_op(tn_rule_call *call, const char *op, tn_tensor *const *in,
                             int64_t n_in);

/* ---- the lists ------------------------------------------------------------------------------- */

/* Each ends with a row without function. rules.c has the list of these lists. */
extern const tn_rule_def rules_table[];      /* texts */
extern const tn_rule_def rules_layers[];     /* texts: layers, losses, Fourier transforms */
extern const tn_rule_def rules_arithmetic[]; /* C functions: elementwise */
extern const tn_rule_def rules_views[];      /* shapes, views */
extern const tn_rule_def rules_parts[];      /* tensors cut into several, or put together */
extern const tn_rule_def rules_index[];      /* elements by their indices */
extern const tn_rule_def rules_make[];       /* new tensors, conversions, random numbers */
extern const tn_rule_def rules_norm[];       /* normalization, dropout, attention */
extern const tn_rule_def rules_products[];   /* products, convolutions, resampling */
extern const tn_rule_def rules_reduce[];     /* variances, norms, differences */
extern const tn_rule_def rules_rnn[];        /* recurrent networks */
extern const tn_rule_def rules_numbers[];    /* integers and other numbers of Python */

#endif
