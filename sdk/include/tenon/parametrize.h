/* SPDX-License-Identifier: MIT
 *
 * Parametrizations: modules that compute a parameter or a buffer of another module from tensors
 * that are trained in its place. PyTorch's torch.nn.utils.parametrize.
 * tenon-interface: tenon.parametrize 0
 *
 *     tn_parametrize_with(linear, "weight", "WeightNorm(dim=%d)", 0);
 *
 * Afterwards tn_module_get(linear, "weight") computes the tensor on every access, and the module
 * has a child `parametrizations` with the trained tensors: a parameter
 * `parametrizations.weight.original`, or `original0`, `original1`, ... Assigning to the name
 * (tn_module_set) changes these tensors. `name` is the name of a tensor of `module`, or a dotted
 * path to one in a module below it. See docs/guides/parametrizations.md.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_PARAMETRIZE_H
#define TENON_PARAMETRIZE_H

#include <tenon/state.h>

TN_BEGIN_DECLS

/* ---- one tensor ------------------------------------------------------------------------------ */

enum {
    /* The parametrization is not called to check that it keeps dtype and shape. The flag stays set
     * for the name as long as it is parametrized. */
    TN_PARAMETRIZE_UNSAFE = 1
};

/* Parametrizes a parameter or buffer: its value becomes the result of `parametrization`, a module
 * that maps the original tensors to the value. If the name is parametrized already, the new
 * parametrization gets the result of the ones before. The first parametrization of a name may have
 * a right inverse (tn_layer_def), which computes the originals from the current value; without one,
 * the current tensor is the original. A single original stays the same tensor object, so that
 * optimizers keep working; several are new parameters or buffers. The parametrization gets the
 * training mode of the module. No thread may be inside a call of the module. After a failure
 * `module` is unchanged. */
TN_API tn_status tn_parametrize(tn_module *module, const char *name, tn_module *parametrization,
                                uint32_t flags);
/* Like tn_parametrize without flags, for a parametrization that is given as a spec, such as
 * "SpectralNorm(n_power_iterations=%d)". The format is that of tn_snprint. */
TN_API tn_status tn_parametrize_withv(tn_module *module, const char *name, const char *format,
                                      va_list args);
TN_API tn_status tn_parametrize_with(tn_module *module, const char *name, const char *format, ...);
/* Like tn_parametrize_with, but `text` is not a format. */
TN_API tn_status tn_parametrize_parse(tn_module *module, const char *name, const char *text);
/* Gives a parametrization of the program (tn_module_plain, tn_module_set_forward) a right inverse,
 * which works like that of a layer (tn_layer_def). In it, tn_module_user(self) is that of the
 * forward. Deep copies of the module have the same right inverse. */
TN_API tn_status tn_parametrize_set_inverse(tn_module *parametrization,
                                            tn_status (*right_inverse)(tn_module *self,
                                                                       tn_tensor *value,
                                                                       tn_pack *originals));
/* Makes the name a plain parameter or buffer again. With `keep_value`, it gets the current value;
 * a single original stays the same object, several become one new parameter. Without, it gets the
 * original back, which must be a single one. The slot moves after the other ones of its kind.
 * After a failure the module is unchanged. */
TN_API tn_status tn_parametrize_remove(tn_module *module, const char *name, bool keep_value);
/* Returns whether a tensor of the module is parametrized. NULL: whether any one is.
 * [null-ok: name] */
TN_API bool tn_is_parametrized(tn_module *module, const char *name);
/* tn_parametrization returns parametrization `index` of a name, 0 being the one that gets the
 * originals; NULL, without an error, if there is none. tn_parametrization_count returns their
 * number. [borrowed] */
TN_API tn_module *tn_parametrization(tn_module *module, const char *name, int64_t index);
TN_API int64_t tn_parametrization_count(tn_module *module, const char *name);
/* Returns whether one of the parametrizations of a name was added with TN_PARAMETRIZE_UNSAFE. */
TN_API bool tn_parametrization_is_unsafe(tn_module *module, const char *name);
/* Parametrizes the tensor `name` of `to` like that of `from`; NULL: all that are parametrized in
 * `from`, of which there may be none, as in PyTorch. Both modules then share the parametrizations
 * and the originals. If `to` has no such parameter or buffer, it is added; one that it has must
 * have the same shape and dtype. After a failure, `to` is unchanged. [null-ok: name] */
TN_API tn_status tn_parametrize_transfer(tn_module *from, tn_module *to, const char *name);

/* ---- evaluating once ------------------------------------------------------------------------- */

/* Between begin and end, this thread computes each parametrized tensor when it is first needed, and
 * keeps it: once while operators are recorded and once while they are not (tn_grad_begin). Pairs
 * may be nested; the outermost end drops the tensors. They are computed again after this thread
 * assigned, parametrized or removed one, loaded a state, converted a module (<tenon/convert.h>), or
 * replaced an original, or a tensor, child or option of a parametrization. These changes have no
 * effect before the outermost end: what other threads do, a change of the mode, tn_tensor_swap, and
 * writes to an original in place, such as those of an optimizer or tn_init. */
TN_API tn_status tn_parametrize_cache_begin(void);
TN_API void tn_parametrize_cache_end(void);

/* ---- many tensors ---------------------------------------------------------------------------- */

/* Parametrizes every tensor of a tree that fits `pattern` and is a parameter or parametrized
 * already, each with a module of its own, made from the spec. A pattern is a list of words,
 * separated by spaces, of which one must fit: a dotted path with `*`, `?` and `[...]` as in file
 * names (`*` fits dots too), such as "*.attn.*.weight"; "Linear:*.weight" fits only in modules of
 * the type Linear. Tensors below `parametrizations` are left out. Returns how many tensors were
 * parametrized; -1 on failure, and then the tree is unchanged. No match is a failure. */
TN_API int64_t tn_parametrize_eachv(tn_module *root, const char *pattern, const char *format,
                                    va_list args);
TN_API int64_t tn_parametrize_each(tn_module *root, const char *pattern, const char *format, ...);
/* Like tn_parametrize_each, but `text` is not a format. */
TN_API int64_t tn_parametrize_parse_each(tn_module *root, const char *pattern, const char *text);
/* Removes the parametrizations of all tensors that fit `pattern` (NULL: of all) in a tree, as
 * tn_parametrize_remove does. Returns their number; -1 on failure, and then some may have been
 * removed. [null-ok: pattern] */
TN_API int64_t tn_parametrize_remove_each(tn_module *root, const char *pattern, bool keep_value);
/* Returns the state of the parametrizations alone: the entries of tn_module_state that belong to
 * the parametrizing modules, such as the A and B of LoRA, without the originals and without
 * everything else. [owned] */
TN_API tn_state *tn_parametrize_state(tn_module *root);
/* Loads such a state into a tree that has the same parametrizations. Strict as regards these
 * entries: names that only the tree or only the state has are errors, and nothing is changed. */
TN_API tn_status tn_parametrize_load(tn_module *root, const tn_state *state);

TN_END_DECLS
#endif
