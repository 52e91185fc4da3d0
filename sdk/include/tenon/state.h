/* SPDX-License-Identifier: MIT
 *
 * States: what a module keeps, by name and in order; taken out, put back, in files.
 * tenon-interface: tenon.state 0 */
#ifndef TENON_STATE_H
#define TENON_STATE_H

#include <tenon/module.h>

TN_BEGIN_DECLS

/* Named tensors in order: what state_dict gives, what files hold. */
typedef struct tn_state tn_state;

/* [any-thread] [owned] */
TN_API tn_state *tn_state_new(void);
/* [any-thread] [null-ok: state] */
TN_API void tn_state_drop(tn_state *state);
/* [any-thread] */
TN_API tn_status tn_state_set(tn_state *state, const char *name, tn_tensor *tensor);
TN_API int64_t tn_state_count(const tn_state *state);
/* [any-thread] [borrowed] */
TN_API const char *tn_state_name(const tn_state *state, int64_t index);
TN_API tn_tensor *tn_state_tensor(const tn_state *state, int64_t index);
/* -1 if absent, not an error. [any-thread] */
TN_API int64_t tn_state_find(const tn_state *state, const char *name);
/* Text beside the tensors. A NULL value when there is none. [any-thread] [borrowed] */
TN_API const char *tn_state_meta(const tn_state *state, const char *key);
TN_API tn_status tn_state_set_meta(tn_state *state, const char *key, const char *value);
TN_API int64_t tn_state_meta_count(const tn_state *state);
/* [any-thread] [borrowed] */
TN_API const char *tn_state_meta_key(const tn_state *state, int64_t index);

/* Parameters and persistent buffers by dotted name; the tensors share storage with the module's and
 * are outside the graph. [any-thread] [owned] */
TN_API tn_state *tn_module_state(tn_module *module);
/* Copies values in (dtype and device are converted, shapes have to fit). With `strict`, missing and
 * unexpected names are errors; the message lists them all, and shapes that do not fit. [any-thread]
 */
TN_API tn_status tn_module_load_state(tn_module *module, const tn_state *state, bool strict);

/* Files. The format follows from the extension (writing) or the content (reading). Writing is
 * atomic: the old file or the new one, never half. [any-thread] [null-through] */
TN_API tn_status tn_module_save(tn_module *module, const char *path);
TN_API tn_status tn_module_load(tn_module *module, const char *path);
TN_API tn_status tn_state_save(const tn_state *state, const char *path);
/* Tensors go to the default device. [any-thread] [owned] */
TN_API tn_state *tn_state_load(const char *path);

TN_END_DECLS
#endif
