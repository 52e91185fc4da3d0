/* SPDX-License-Identifier: MIT
 *
 * The descriptor of an init, which fills parameters with their first values.
 *
 * <tenon/contrib.h> says what holds for all descriptors. Tags in brackets: see base.h. */
#ifndef TENON_INIT_H
#define TENON_INIT_H

#include <tenon/tensor.h>

TN_BEGIN_DECLS

/* An init, which fills a tensor with initial values. Any thread may call it, for several tensors at
 * the same time. */
typedef struct tn_init_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* for the plugin; the core does not read it */
    const tn_option *options;
    uint64_t data_size;
    tn_status (*fill)(const struct tn_init_def *self, const void *data, tn_tensor *tensor);
} tn_init_def;

TN_END_DECLS

#endif
