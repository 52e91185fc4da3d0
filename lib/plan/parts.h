/* SPDX-License-Identifier: MIT
 *
 * What a compiled module consists of: a plan is for the module as it was when the plan was made. */
#ifndef TN_LIB_PLAN_PARTS_H
#define TN_LIB_PLAN_PARTS_H

#include "lib/plan/plan.h"

/* A module of the tree. */
typedef struct tn__plan_part {
    tn_module *module;
    tn__own_forward *forward; /* owned; the forward that the program has set, or NULL */
    const tn_layer_def *layer;
    int64_t first; /* its first tensor */
    size_t data;   /* where a copy of the data of its layer begins in tn__plan_parts.data */
    bool training;
    uint32_t changes; /* how often options and forward had changed when the plan was made */
} tn__plan_part;

/* A parameter, buffer or empty slot. */
typedef struct tn__plan_tensor {
    tn_tensor *tensor;    /* owned; TN_NONE: empty */
    tn__storage *storage; /* where it was; not owned */
    uint64_t byte_offset;
    int64_t dims; /* where its shape and strides begin in tn__plan_parts.dims */
    int32_t ndim;
    uint8_t dtype;
    bool requires_grad, leaf;
    uint64_t version; /* of the storage */
} tn__plan_tensor;

/* The modules and tensors of a tree, in order. The list holds a reference to each of them except
 * the first module. That module owns the list, and would never be freed if the list held a
 * reference to it. */
typedef struct tn__plan_parts {
    tn__plan_part *modules;
    tn__plan_tensor *tensors; /* parameters and buffers */
    char *data;
    int64_t *dims;
    uint64_t epoch; /* tn__module_epoch */
    int64_t n_modules, modules_capacity, n_tensors, tensors_capacity, n_data, data_capacity;
    int64_t n_dims, dims_capacity;
} tn__plan_parts;

/* Adds a module and all below it. Fails for hooks below the first module. */
tn_status tn__plan_parts_add(tn__plan_parts *parts, tn_module *module);
void tn__plan_parts_free(tn__plan_parts *parts);
/* Returns whether the module consists of the same modules, modes, options, forwards and tensors;
 * with `places` also whether the tensors require gradients as before and have the same memory,
 * shape and strides. Without `places`, returns false if tn__module_epoch has changed: an option or
 * forward of any module of the process. */
bool tn__plan_parts_hold(const tn__plan_parts *parts, tn_module *module, bool places);
/* Returns whether a tensor of the tree has no shape yet. */
bool tn__plan_parts_lazy(tn_module *module);
/* After a recording: gives slots, and tensors with history, what they had before. Returns whether
 * anything had changed. */
bool tn__plan_parts_restore(const tn__plan_parts *parts);
/* After a recording that is dropped: no step has changed the tensors. */
void tn__plan_parts_restore_versions(const tn__plan_parts *parts,
                                     const tn__plan_recorder *recorder);

#endif
