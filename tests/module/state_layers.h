/* SPDX-License-Identifier: MIT
 *
 * Layers that save and load their own state, and helpers of the tests of states. */
#ifndef TN_TESTS_MODULE_STATE_LAYERS_H
#define TN_TESTS_MODULE_STATE_LAYERS_H

#include "tests/module/suite.h"
#include "tests/spec/proves.h"

/* ---- Noted: extra state, a value of the test's choice ---------------------------------------- */

struct noted {
    tn_pack *held; /* the extra state that was set last; NULL: the extra state is `noted_gives` */
};

static tn_value noted_gives;
static int noted_sets, noted_fails;
static int64_t noted_count = 1; /* number of values that noted_get() returns */

static tn_status noted_get(tn_module *self, tn_pack *out)
{
    const struct noted *s = tn_module_data(self);
    tn_status status = TN_OK;
    for (int64_t i = 0; i < noted_count && status == TN_OK; i++)
        status = tn_pack_add(out, NULL, s->held != NULL ? tn_pack_at(s->held, 0) : noted_gives);
    return status;
}

static tn_status noted_set(tn_module *self, const tn_value *value)
{
    struct noted *s = tn_module_data(self);
    noted_sets++;
    if (noted_fails)
        return tn_fail(TN_ERR_VALUE, "this note is not for me");
    tn_pack *held = tn_pack_new();
    tn_status status = held != NULL ? tn_pack_add(held, NULL, *value) : TN_ERR_MEMORY;
    if (status != TN_OK) {
        tn_pack_drop(held);
        return status;
    }
    tn_pack_drop(s->held);
    s->held = held;
    return TN_OK;
}

static void noted_destroy(tn_module *self)
{
    tn_pack_drop(((struct noted *)tn_module_data(self))->held);
}

static tn_tensor *same(tn_module *self, tn_tensor *input)
{
    (void)self;
    return input;
}

static const tn_layer_def noted = { TN_HEAD(tn_layer_def),
                                    .name = "Noted",
                                    .data_size = sizeof(struct noted),
                                    .version = 3,
                                    .destroy = noted_destroy,
                                    .forward = same,
                                    .get_extra_state = noted_get,
                                    .set_extra_state = noted_set };
static const tn_layer_def only_gets = {
    TN_HEAD(tn_layer_def),    .name = "OnlyGets", .data_size = sizeof(struct noted),
    .destroy = noted_destroy, .forward = same,    .get_extra_state = noted_get
};
static const tn_layer_def only_sets = {
    TN_HEAD(tn_layer_def),    .name = "OnlySets", .data_size = sizeof(struct noted),
    .destroy = noted_destroy, .forward = same,    .set_extra_state = noted_set
};

/* ---- Custom: PyTorch's example, a parameter saved as "serialized", one more ------------------ */

static int64_t custom_version = -2;

static tn_status custom_build(tn_module *self)
{
    tn_module *sub = tn_module_new("Linear(2, 1)");
    tn_status status = tn_module_add_parameter(
        self, "param", tn_parameter(tn_tensor_full(TN_SHAPE(1), 1, TN_F32, NULL), true));
    if (status == TN_OK)
        status = tn_module_add_child(self, "sub", sub);
    tn_module_drop(sub);
    return status;
}

static tn_status custom_save(tn_module *self, tn_state *state, const char *prefix, uint32_t flags)
{
    char key[64];
    (void)flags;
    tn_snprint(key, sizeof key, "%sserialized", prefix);
    tn_tensor *value = tn_add_scalar(tn_detach(tn_module_get(self, "param")), 1);
    return value != NULL ? tn_state_set(state, key, value) : tn_error_last_code();
}

static tn_status custom_load(tn_module *self, tn_loading *loading)
{
    char key[64];
    custom_version = loading->version;
    tn_snprint(key, sizeof key, "%sserialized", loading->prefix);
    int64_t found = tn_state_find(loading->state, key);
    if (found < 0)
        return tn_names_add(loading->missing, key);
    tn_tensor *to = tn_module_get(self, "param");
    tn_tensor *value = tn_add_scalar(tn_state_tensor(loading->state, found), -1);
    tn_grad_begin(false);
    tn_tensor *done = value != NULL ? tn_copy_(to, value) : NULL;
    tn_grad_end();
    return done != NULL ? tn_state_remove(loading->state, key) : tn_error_last_code();
}

static const tn_layer_def custom = {
    TN_HEAD(tn_layer_def),    .name = "Custom", .version = 7,
    .build = custom_build,    .forward = same,  .save_state = custom_save,
    .load_state = custom_load
};

/* ---- what tests ask -------------------------------------------------------------------------- */

static inline void register_state_layers(void)
{
    const tn_layer_def *const layers[] = { &noted, &only_gets, &only_sets, &custom };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        ck_assert_msg(tn_register(layers[i]) == TN_OK, "%s", tn_error_text());
    noted_gives = tn_value_int(5);
}

static inline tn_state *taken(tn_module *module)
{
    tn_state *state = tn_module_state(module);
    ck_assert_msg(state != NULL, "%s", tn_error_text());
    return state;
}

#define expect_names(state_, expected_)                                                            \
    do {                                                                                           \
        char names_[2048] = "";                                                                    \
        for (int64_t i_ = 0; i_ < tn_state_count(state_); i_++)                                    \
            strcat(strcat(names_, tn_state_name(state_, i_)), " ");                                \
        ck_assert_str_eq(names_, expected_);                                                       \
    } while (0)
#define expect_list(list_, expected_)                                                              \
    do {                                                                                           \
        char names_[2048] = "";                                                                    \
        for (int64_t i_ = 0; i_ < tn_names_count(list_); i_++)                                     \
            strcat(strcat(names_, tn_names_at(list_, i_)), " ");                                   \
        ck_assert_str_eq(names_, expected_);                                                       \
    } while (0)

static inline void fill(tn_module *m, double value)
{
    TN_SCOPE;
    tn_state *state = taken(m);
    for (int64_t i = 0; i < tn_state_count(state); i++)
        if (tn_state_value(state, i).kind == TN_VALUE_TENSOR)
            ck_assert_ptr_nonnull(tn_fill_(tn_state_tensor(state, i), value));
    tn_state_drop(state);
}

static inline double first(tn_tensor *tensor)
{
    TN_SCOPE;
    ck_assert_msg(tensor != NULL, "%s", tn_error_text());
    return tn_item(tn_tensor_as_strided(tn_detach(tensor), TN_SCALAR_SHAPE, TN_SCALAR_SHAPE,
                                        tn_tensor_offset(tensor)));
}

static inline double first_of(tn_module *m, const char *path)
{
    return first(tn_module_find_tensor(m, path));
}

static inline tn_tensor *filled(int64_t size, double value)
{
    return tn_tensor_full(TN_SHAPE(size), value, TN_F32, NULL);
}

#endif
