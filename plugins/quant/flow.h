/* SPDX-License-Identifier: MIT
 *
 * The flow that replaces the modules of a network: what its files share. It knows no scheme and no
 * layer. */
#ifndef TN_QUANT_FLOW_H
#define TN_QUANT_FLOW_H

#include "modules.h"

/* The children that prepare adds to a module. */
#define FLOW_RANGE "input_range"
#define FLOW_SCHEME "quantize_scheme"
/* The computed slot that knows the hook of a prepared module: the number of its handle. */
#define FLOW_HOOK "input_range_hook"

/* A module that is to be replaced. */
typedef struct flow_item {
    tn_module *module, *made; /* both kept; `made` is NULL until it is made */
    tn_module *scheme;        /* borrowed */
    char *path;
    tn_tensor *input;      /* a copy of that of the first call with the inputs of the user */
    tn_tensor *low, *high; /* the range of the input, kept; NULL: not calibrated */
    tn_quantize_row row;
} flow_item;

typedef struct flow_list {
    const char *who; /* begins messages */
    tn_module *net;
    flow_item *at;
    int64_t count, room;
    /* The modes of all modules, in the order of a walk, to restore them after a failure. */
    tn_walk *modes;
    bool *training;
} flow_list;

/* Returns the module of a scheme; NULL and an error if there is none, or the list has no network.
 * The caller drops it. */
TN_HIDDEN tn_module *flow_begin(const flow_list *list, const char *scheme);
/* Adds a module at a path. */
TN_HIDDEN tn_status flow_add(flow_list *list, const char *path, tn_module *module,
                             tn_module *scheme);
/* Adds the modules of the network that a scheme takes. Fails for those that have a parametrization
 * or a mask. If there are none, writes a warning that says which types would do. */
TN_HIDDEN tn_status flow_collect(flow_list *list, tn_module *scheme);
/* Makes the quantized modules, measures them, puts the network into evaluation mode and swaps them.
 * Fills `report`, which may be NULL. */
TN_HIDDEN tn_status flow_replace(flow_list *list, tn_tensor *const *inputs, int64_t n_inputs,
                                 tn_quantize_report *report);
TN_HIDDEN void flow_free(flow_list *list);

/* flow_measure.c: calls the network with the inputs and keeps what each module gets and returns. */
TN_HIDDEN tn_status flow_capture(flow_list *list, tn_tensor *const *inputs, int64_t n_inputs);
/* Compares item->made with item->module and fills the numbers of the row. */
TN_HIDDEN tn_status flow_measure(flow_item *item);

/* flow_prepare.c: removes what prepare has added to a module. `moved`: its hooks are those of
 * another module now. */
TN_HIDDEN tn_status flow_unprepare(tn_module *module, bool moved);
/* Lets calls of this thread record no ranges, or again. */
TN_HIDDEN void flow_pause(bool pause);

/* The functions of the interface. */
TN_HIDDEN tn_status flow_quantize(tn_module *net, const char *scheme, tn_tensor *const *inputs,
                                  int64_t n_inputs, tn_quantize_report *report);
TN_HIDDEN tn_status flow_prepare(tn_module *net, const char *scheme);
TN_HIDDEN tn_status flow_convert(tn_module *net, tn_tensor *const *inputs, int64_t n_inputs,
                                 tn_quantize_report *report);
TN_HIDDEN tn_status fuse_list_apply(tn_module *net, const char *list);

#endif
