/* SPDX-License-Identifier: MIT
 *
 * Layers that a program registers, for the tests of modules: one that builds, one whose build
 * fails, one that takes packs, some that misbehave. */
#ifndef TN_TESTS_MODULE_TOY_LAYERS_H
#define TN_TESTS_MODULE_TOY_LAYERS_H

#include "tests/module/suite.h"

#include <tenon/tenon.h>

/* ---- Probe(size, fail=False): a parameter, two buffers, forward adds one in training --------- */

struct probe {
    int64_t size;
    bool fail;
};

static int probe_destroyed;

static const tn_option probe_options[] = {
    TN_OPTION_ROW(struct probe, size, NULL, "elements", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct probe, fail, "False", "build fails at its end", TN_OPTION_KIND_BOOL,
                  TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

static tn_status probe_build(tn_module *self)
{
    const struct probe *s = tn_module_data(self);
    tn_status status = tn_module_add_parameter(
        self, "weight", tn_parameter(tn_tensor_full(TN_SHAPE(s->size), 2.0, TN_F32, NULL), true));
    if (status == TN_OK)
        status = tn_module_add_parameter(self, "reserved", TN_NONE);
    if (status == TN_OK)
        status = tn_module_add_buffer(self, "count", tn_tensor_full(TN_SHAPE(1), 3, TN_I64, NULL),
                                      0);
    if (status == TN_OK)
        status = tn_module_add_buffer(self, "scratch", tn_tensor_full(TN_SHAPE(2), 0, TN_F32, NULL),
                                      TN_SLOT_FLAG_NOT_PERSISTENT);
    if (status == TN_OK && s->fail)
        status = tn_fail(TN_ERR_VALUE, "Probe was told to fail");
    return status;
}

static void probe_destroy(tn_module *self)
{
    (void)self;
    probe_destroyed++;
}

static tn_tensor *probe_forward(tn_module *self, tn_tensor *input)
{
    return tn_module_is_training(self) ? tn_add_scalar(input, 1.0) : input;
}

static const tn_layer_def probe = {
    TN_HEAD(tn_layer_def),    .name = "Probe",
    .options = probe_options, .data_size = sizeof(struct probe),
    .build = probe_build,     .destroy = probe_destroy,
    .forward = probe_forward,
};

/* ---- Pair(): packs in and out: (a, b=...) gives a + b, and "two" as the entry "words" -------- */

static tn_status pair_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    (void)self;
    tn_tensor *a = tn_pack_tensor(input, 0);
    int64_t named = tn_pack_find(input, "b");
    tn_tensor *b = named >= 0 ? tn_pack_tensor(input, named) : a;
    tn_tensor *sum = tn_add(a, b);
    if (sum == NULL)
        return tn_error_last_code();
    tn_status status = tn_pack_add(output, NULL, tn_value_tensor(sum));
    if (status == TN_OK && named >= 0)
        status = tn_pack_add(output, "words", tn_value_string("two"));
    return status;
}

static const tn_layer_def pair = { TN_HEAD(tn_layer_def), .name = "Pair", .call = pair_call };

/* ---- layers that misbehave ------------------------------------------------------------------- */

static tn_tensor *silent_forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    (void)input;
    return NULL;
}

static tn_tensor *loud_forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    (void)input;
    tn_fail(TN_ERR_INDEX, "the sky is falling");
    return NULL;
}

static tn_tensor *weight_forward(tn_module *self, tn_tensor *input)
{
    (void)input;
    return tn_module_get(self, "weight");
}

static tn_status silent_build(tn_module *self)
{
    (void)self;
    return TN_ERR_DEVICE;
}

static const tn_layer_def silent = { TN_HEAD(tn_layer_def), .name = "Silent",
                                     .forward = silent_forward };
static const tn_layer_def loud = { TN_HEAD(tn_layer_def), .name = "Loud", .forward = loud_forward };
static const tn_layer_def silent_builder = { TN_HEAD(tn_layer_def), .name = "SilentBuilder",
                                             .build = silent_build, .forward = loud_forward };
static const tn_layer_def giver = { TN_HEAD(tn_layer_def),    .name = "Giver",
                                    .options = probe_options, .data_size = sizeof(struct probe),
                                    .build = probe_build,     .forward = weight_forward };

/* ---- Block(features): makes children of its own ---------------------------------------------- */

struct block {
    int64_t features;
};

static const tn_option block_options[] = { TN_OPTION_ROW(struct block, features, NULL, "size",
                                                         TN_OPTION_KIND_INT, TN_OPTION_REQUIRED),
                                           TN_OPTION_END };

static tn_status block_build(tn_module *self)
{
    const struct block *s = tn_module_data(self);
    tn_module *fc = tn_module_new("Linear(%lld, %lld)", (long long)s->features,
                                  (long long)s->features);
    tn_status status = tn_module_add_child(self, "fc", fc);
    tn_module_drop(fc);
    return status;
}

static tn_tensor *block_forward(tn_module *self, tn_tensor *input)
{
    return tn_add(input, tn_module_call(tn_module_child(self, "fc"), input));
}

static const tn_layer_def block = { TN_HEAD(tn_layer_def),    .name = "Block",
                                    .options = block_options, .data_size = sizeof(struct block),
                                    .build = block_build,     .forward = block_forward };

static inline void register_probes(void)
{
    const tn_layer_def *const layers[] = { &probe,          &pair,  &silent, &loud,
                                           &silent_builder, &giver, &block };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        ck_assert_int_eq(tn_register(layers[i]), TN_OK);
    probe_destroyed = 0;
}

/* Bytes in tensors on the default device. */
static inline int64_t live_bytes(void)
{
    tn_memory_stats stats;
    ck_assert_int_eq(tn_device_memory(tn_default_device(), &stats), TN_OK);
    return stats.live;
}

#define expect_repr(module_, text_)                                                                \
    do {                                                                                           \
        char buffer_[4096];                                                                        \
        ck_assert_int_ge(tn_module_repr(module_, buffer_, sizeof buffer_), 0);                     \
        ck_assert_str_eq(buffer_, text_);                                                          \
    } while (0)
#define expect_spec(module_, text_)                                                                \
    do {                                                                                           \
        char buffer_[4096];                                                                        \
        ck_assert_int_ge(tn_module_spec(module_, buffer_, sizeof buffer_), 0);                     \
        ck_assert_str_eq(buffer_, text_);                                                          \
    } while (0)

#endif
