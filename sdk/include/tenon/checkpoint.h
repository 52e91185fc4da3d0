/* SPDX-License-Identifier: MIT
 *
 * Checkpoints: all that a training needs to continue, in one file.
 * tenon-interface: tenon.checkpoint 0
 *
 * A program lists the objects of its training once. Saving writes their states, the state of the
 * random number generator and the plugins that the objects come from; restoring gives the states to
 * objects that were made in the same way. The training then continues as if it had not been
 * interrupted, to the bit.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_CHECKPOINT_H
#define TENON_CHECKPOINT_H

#include <tenon/data.h>
#include <tenon/train.h>

TN_BEGIN_DECLS

/* The objects of a training by name. Only one thread at a time may use it. */
typedef struct tn_checkpoint tn_checkpoint;

/* Returns a checkpoint without objects. [owned] */
TN_API tn_checkpoint *tn_checkpoint_new(void);
/* Frees a checkpoint; the objects stay. [null-ok: checkpoint] */
TN_API void tn_checkpoint_drop(tn_checkpoint *checkpoint);

/* These add an object under a name, which consists of letters, digits and _, such as "model". The
 * names "run" and "value" are reserved. The object belongs to the caller and must live as
 * long as the checkpoint. Add schedulers after the optimizers, whose state they do not have. An
 * averaged model is a module. [null-through] */
TN_API tn_status tn_checkpoint_add_module(tn_checkpoint *checkpoint, const char *name,
                                          tn_module *module);
TN_API tn_status tn_checkpoint_add_optimizer(tn_checkpoint *checkpoint, const char *name,
                                             tn_optimizer *optimizer);
TN_API tn_status tn_checkpoint_add_scheduler(tn_checkpoint *checkpoint, const char *name,
                                             tn_scheduler *scheduler);
TN_API tn_status tn_checkpoint_add_loader(tn_checkpoint *checkpoint, const char *name,
                                          tn_loader *loader);
/* Adds the plugin of a contribution, such as a dataset, to the plugins that are needed. Those of
 * the modules, optimizers and schedulers need not be added. `kind` is the tn_kind of a descriptor,
 * such as TN_KIND_tn_dataset_def. */
TN_API tn_status tn_checkpoint_add_plugin(tn_checkpoint *checkpoint, uint32_t kind,
                                          const char *name);

/* tn_checkpoint_set stores a value of the program, such as the number of the step, under a name;
 * it replaces an older one. Any kind except TN_VALUE_OPAQUE; the checkpoint keeps a copy.
 * tn_checkpoint_get returns it, a value of kind NONE if there is none. tn_checkpoint_restore
 * replaces all values by those that were saved. [borrowed] */
TN_API tn_status tn_checkpoint_set(tn_checkpoint *checkpoint, const char *name, tn_value value);
TN_API tn_value tn_checkpoint_get(const tn_checkpoint *checkpoint, const char *name);

/* Writes the checkpoint to a file, whose extension chooses the format; ".checkpoint" keeps
 * everything. It is atomic: if it fails, for example because the disk is full, an old file of that
 * name is unchanged. The file has the entries
 *   NAME.ENTRY             for each entry of the state of a module or optimizer
 *   NAME                   the text of a scheduler or loader
 *   value.NAME             a value of the program
 *   run.version            1
 *   run.types              a dictionary: the type of each module, optimizer and scheduler
 *   run.plugins            a dictionary: the version of each plugin, by id
 *   run.random             the state of the random number generator, three integers
 * [null-through] */
TN_API tn_status tn_checkpoint_save(tn_checkpoint *checkpoint, const char *path);
/* Reads the file of a checkpoint, with its tensors on the host, so that a program can look at the
 * values ("value.step") before it makes the objects. If plugins that the checkpoint needs are not
 * loaded, fails with TN_ERR_NOT_IMPLEMENTED and names them and the folders that were searched; if
 * one is loaded in another version, the log has a warning. Fails with TN_ERR_FORMAT if the file is
 * no checkpoint. [owned] */
TN_API tn_state *tn_checkpoint_read(const char *path);
/* Gives the states of a checkpoint to the objects, which must have the types that were saved, and
 * restores the values and the random number generator. Types are compared first, then modules are
 * restored, then the other objects, in the order in which they were added. The message of a failure
 * lists what differs. The object that does not fit is unchanged; those before it have the states of
 * the checkpoint. [null-through] */
TN_API tn_status tn_checkpoint_restore(tn_checkpoint *checkpoint, const tn_state *state);
/* Does tn_checkpoint_read and tn_checkpoint_restore. [null-through] */
TN_API tn_status tn_checkpoint_load(tn_checkpoint *checkpoint, const char *path);

TN_END_DECLS
#endif
