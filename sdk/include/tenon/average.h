/* SPDX-License-Identifier: MIT
 *
 * Averaged models: modules with averages of the parameters of another module. The functions call
 * the plugin tenon.optim, which provides the interface tenon.optim.average; without the plugin they
 * fail and name the interface. */
#ifndef TENON_AVERAGE_H
#define TENON_AVERAGE_H

#ifndef TENON_PLUGIN_H
#include <tenon/module.h>
#include <tenon/query.h>
#include <tenon/runtime.h>
#endif

TN_BEGIN_DECLS

typedef uint32_t tn_average_kind;
enum {
    TN_AVERAGE_EQUAL = 0,      /* all updates count alike: average += (value - average) / (n + 1) */
    TN_AVERAGE_EXPONENTIAL = 1 /* average = decay * average + (1 - decay) * value */
};

/* How an averaged model computes its averages. Begin with TN_AVERAGE_OPTIONS. `count` in the two
 * functions is the number of updates before this one, at least 1: the first update copies. */
typedef struct tn_average_options {
    uint32_t size; /* sizeof(tn_average_options) */
    tn_average_kind kind;
    double decay;            /* of TN_AVERAGE_EXPONENTIAL, from 0 to 1 */
    const tn_device *device; /* of the averaged model; NULL: where the module is */
    bool use_buffers;        /* averages buffers like parameters; false: copies them */
    uint8_t reserved[7];
    /* A rule of the program, in place of `kind`; at most one of the two. `one` returns the new
     * average of one tensor, which is then copied to `average`; NULL after recording a failure.
     * `many` changes the averages in place; it gets all tensors of one device and dtype. Both run
     * without recording, in a scope of their own. */
    tn_tensor *(*one)(void *user, tn_tensor *average, tn_tensor *value, int64_t count);
    tn_status (*many)(void *user, tn_tensor *const *averages, tn_tensor *const *values, int64_t n,
                      int64_t count);
    void *user;
    /* Frees `user` when the model and its copies have been freed; may be NULL. */
    void (*release)(void *user);
} tn_average_options;
#define TN_AVERAGE_OPTIONS                                                                         \
    {                                                                                              \
        (uint32_t)sizeof(tn_average_options), TN_AVERAGE_EQUAL, 0.999, NULL, false, { 0 }, NULL,   \
            NULL, NULL, NULL                                                                       \
    }

/* The table of the interface. Programs call the functions below. */
typedef struct tn_average_api {
    tn_module *(*make)(tn_module *module, const tn_average_options *options);
    tn_status (*update)(tn_module *average, tn_module *module);
    int64_t (*count)(tn_module *average);
} tn_average_api;

/* Returns the functions of the plugin; NULL and sets the error on failure. */
TN_ATTR(unused) static inline const tn_average_api *tn_average_find(void)
{
    const struct tn_interface_need need = { "tenon.optim.average", 0, 0,
                                            (uint32_t)sizeof(tn_average_api), 0 };
    return (const tn_average_api *)tn_interface_find(NULL, &need, NULL);
}

/* Returns a model with averages of the parameters of `module` (stochastic weight averaging,
 * exponential moving average). It is a module: its buffer "n_averaged", an int64, counts the
 * updates, its child "module" is a deep copy of `module`, and a call of it calls the child. NULL
 * options: an equal average of the parameters. If the function fails, `user` of the options still
 * belongs to the caller. The caller drops the model. */
TN_ATTR(unused)
static inline tn_module *tn_average_new(tn_module *module, const tn_average_options *options)
{
    const tn_average_api *api = tn_average_find();
    return api != NULL ? api->make(module, options) : NULL;
}
/* Updates the averages with the parameters of `module`, which must have as many parameters as the
 * averaged module, with the same shapes; dtypes and devices may differ. The first update copies
 * them. Without use_buffers, the buffers are copied in every update. If the function fails, some
 * averages may have changed; the update does not count. */
TN_ATTR(unused)
static inline tn_status tn_average_update(tn_module *average, tn_module *module)
{
    const tn_average_api *api = tn_average_find();
    return api != NULL ? api->update(average, module) : tn_error_last_code();
}
/* Returns the number of updates; -1 on error. */
TN_ATTR(unused)
static inline int64_t tn_average_count(tn_module *average)
{
    const tn_average_api *api = tn_average_find();
    return api != NULL ? api->count(average) : -1;
}

TN_END_DECLS
#endif
