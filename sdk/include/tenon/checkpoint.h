/* SPDX-License-Identifier: MIT
 *
 * Checkpoints: all that a training needs to continue, in one file. The functions call the plugin
 * tenon.checkpoint, which provides the interface tenon.checkpoint.api; without the plugin they fail
 * and name the interface.
 *
 * A program lists the objects of its training once. Saving writes their states, the state of the
 * random number generator and the plugins that the objects come from; restoring gives the states to
 * objects that were made in the same way. The training then continues as if it had not been
 * interrupted, to the bit. */
#ifndef TENON_CHECKPOINT_H
#define TENON_CHECKPOINT_H

#ifndef TENON_PLUGIN_H
#include <tenon/data.h>
#include <tenon/query.h>
#include <tenon/runtime.h>
#include <tenon/train.h>
#endif

TN_BEGIN_DECLS

/* The objects of a training by name. Only one thread at a time may use it. */
typedef struct tn_checkpoint tn_checkpoint;

/* The table of the interface. Programs call the functions below. */
typedef struct tn_checkpoint_api {
    tn_checkpoint *(*make)(void);
    void (*drop)(tn_checkpoint *checkpoint);
    tn_status (*add_module)(tn_checkpoint *checkpoint, const char *name, tn_module *module);
    tn_status (*add_optimizer)(tn_checkpoint *checkpoint, const char *name,
                               tn_optimizer *optimizer);
    tn_status (*add_scheduler)(tn_checkpoint *checkpoint, const char *name,
                               tn_scheduler *scheduler);
    tn_status (*add_loader)(tn_checkpoint *checkpoint, const char *name, tn_loader *loader);
    tn_status (*add_plugin)(tn_checkpoint *checkpoint, uint32_t kind, const char *name);
    tn_status (*set)(tn_checkpoint *checkpoint, const char *name, tn_value value);
    tn_value (*get)(const tn_checkpoint *checkpoint, const char *name);
    tn_status (*save)(tn_checkpoint *checkpoint, const char *path);
    tn_state *(*read)(const char *path);
    tn_status (*restore)(tn_checkpoint *checkpoint, const tn_state *state);
    tn_status (*load)(tn_checkpoint *checkpoint, const char *path);
} tn_checkpoint_api;

/* Returns the functions of the plugin; NULL and sets the error on failure. */
TN_ATTR(unused) static inline const tn_checkpoint_api *tn_checkpoint_find(void)
{
    const struct tn_interface_need need = { "tenon.checkpoint.api", 0, 0,
                                            (uint32_t)sizeof(tn_checkpoint_api), 0 };
    return (const tn_checkpoint_api *)tn_interface_find(NULL, &need, NULL);
}

/* Returns a checkpoint without objects, which the caller drops. */
TN_ATTR(unused)
static inline tn_checkpoint *tn_checkpoint_new(void)
{
    const tn_checkpoint_api *api = tn_checkpoint_find();
    return api != NULL ? api->make() : NULL;
}
/* Frees a checkpoint; the objects stay. */
TN_ATTR(unused)
static inline void tn_checkpoint_drop(tn_checkpoint *checkpoint)
{
    const tn_checkpoint_api *api = checkpoint != NULL ? tn_checkpoint_find() : NULL;
    if (api != NULL)
        api->drop(checkpoint);
}

/* These add an object under a name, which consists of letters, digits and _, such as "model". The
 * names "run" and "value" are reserved. The object belongs to the caller and must live as long as
 * the checkpoint. Add schedulers after the optimizers, whose state they do not have. An
 * averaged model is a module. */
TN_ATTR(unused)
static inline tn_status tn_checkpoint_add_module(tn_checkpoint *checkpoint, const char *name,
                                                 tn_module *module)
{
    const tn_checkpoint_api *api = tn_checkpoint_find();
    return api != NULL ? api->add_module(checkpoint, name, module) : tn_error_last_code();
}
TN_ATTR(unused)
static inline tn_status tn_checkpoint_add_optimizer(tn_checkpoint *checkpoint, const char *name,
                                                    tn_optimizer *optimizer)
{
    const tn_checkpoint_api *api = tn_checkpoint_find();
    return api != NULL ? api->add_optimizer(checkpoint, name, optimizer) : tn_error_last_code();
}
TN_ATTR(unused)
static inline tn_status tn_checkpoint_add_scheduler(tn_checkpoint *checkpoint, const char *name,
                                                    tn_scheduler *scheduler)
{
    const tn_checkpoint_api *api = tn_checkpoint_find();
    return api != NULL ? api->add_scheduler(checkpoint, name, scheduler) : tn_error_last_code();
}
TN_ATTR(unused)
static inline tn_status tn_checkpoint_add_loader(tn_checkpoint *checkpoint, const char *name,
                                                 tn_loader *loader)
{
    const tn_checkpoint_api *api = tn_checkpoint_find();
    return api != NULL ? api->add_loader(checkpoint, name, loader) : tn_error_last_code();
}
/* Adds the plugin of a contribution, such as a dataset, to the plugins that are needed. Those of
 * the modules, optimizers and schedulers need not be added. `kind` is the tn_kind of a descriptor,
 * such as TN_KIND_tn_dataset_def. */
TN_ATTR(unused)
static inline tn_status tn_checkpoint_add_plugin(tn_checkpoint *checkpoint, uint32_t kind,
                                                 const char *name)
{
    const tn_checkpoint_api *api = tn_checkpoint_find();
    return api != NULL ? api->add_plugin(checkpoint, kind, name) : tn_error_last_code();
}

/* tn_checkpoint_set stores a value of the program, such as the number of the step, under a name;
 * it replaces an older one. Any kind except TN_VALUE_OPAQUE; the checkpoint keeps a copy.
 * tn_checkpoint_get returns it, a value of kind NONE if there is none; what it points to belongs to
 * the checkpoint. tn_checkpoint_restore replaces all values by those that were saved. */
TN_ATTR(unused)
static inline tn_status tn_checkpoint_set(tn_checkpoint *checkpoint, const char *name,
                                          tn_value value)
{
    const tn_checkpoint_api *api = tn_checkpoint_find();
    return api != NULL ? api->set(checkpoint, name, value) : tn_error_last_code();
}
TN_ATTR(unused)
static inline tn_value tn_checkpoint_get(const tn_checkpoint *checkpoint, const char *name)
{
    const tn_checkpoint_api *api = tn_checkpoint_find();
    return api != NULL ? api->get(checkpoint, name) : tn_value_none();
}

/* Writes the checkpoint to a file, whose extension chooses the format; ".checkpoint" keeps
 * everything. It is atomic: if it fails, for example because the disk is full, an old file of that
 * name is unchanged. The file has the entries
 *   NAME.ENTRY             for each entry of the state of a module or optimizer
 *   NAME                   the text of a scheduler or loader
 *   value.NAME             a value of the program
 *   run.version            1
 *   run.types              a dictionary: the type of each module, optimizer and scheduler
 *   run.plugins            a dictionary: the version of each plugin, by id
 *   run.random             the state of the random number generator, three integers */
TN_ATTR(unused)
static inline tn_status tn_checkpoint_save(tn_checkpoint *checkpoint, const char *path)
{
    const tn_checkpoint_api *api = tn_checkpoint_find();
    return api != NULL ? api->save(checkpoint, path) : tn_error_last_code();
}
/* Reads the file of a checkpoint, with its tensors on the host, so that a program can look at the
 * values ("value.step") before it makes the objects. If plugins that the checkpoint needs are not
 * loaded, fails with TN_ERR_NOT_IMPLEMENTED and names them and the folders that were searched; if
 * one is loaded in another version, the log has a warning. Fails with TN_ERR_FORMAT if the file is
 * no checkpoint. The caller drops the state. */
TN_ATTR(unused)
static inline tn_state *tn_checkpoint_read(const char *path)
{
    const tn_checkpoint_api *api = tn_checkpoint_find();
    return api != NULL ? api->read(path) : NULL;
}
/* Gives the states of a checkpoint to the objects, which must have the types that were saved, and
 * restores the values and the random number generator. Types are compared first, then modules are
 * restored, then the other objects, in the order in which they were added. The message of a failure
 * lists what differs. The object that does not fit is unchanged; those before it have the states of
 * the checkpoint. */
TN_ATTR(unused)
static inline tn_status tn_checkpoint_restore(tn_checkpoint *checkpoint, const tn_state *state)
{
    const tn_checkpoint_api *api = tn_checkpoint_find();
    return api != NULL ? api->restore(checkpoint, state) : tn_error_last_code();
}
/* Does tn_checkpoint_read and tn_checkpoint_restore. */
TN_ATTR(unused)
static inline tn_status tn_checkpoint_load(tn_checkpoint *checkpoint, const char *path)
{
    const tn_checkpoint_api *api = tn_checkpoint_find();
    return api != NULL ? api->load(checkpoint, path) : tn_error_last_code();
}

TN_END_DECLS
#endif
