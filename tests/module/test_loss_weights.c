/* SPDX-License-Identifier: MIT
 *
 * Weights of losses: by spec, by typed construction, by assignment and by state. The numbers of
 * PyTorch are in tests/oracle/layers.txt (test_layers). */
#include "tests/op/suite.h"
#include "tests/module/suite.h"

static const float logits[6] = { 1, 2, 0.5, -1, 0, 3 };

/* The loss of two samples of three classes. */
static double loss_of(tn_module *loss)
{
    const int64_t targets[2] = { 1, 2 };
    tn_tensor *in[2], *y = NULL;

    in[0] = tn_tensor_from(logits, TN_F32, TN_SHAPE(2, 3));
    in[1] = tn_tensor_from(targets, TN_I64, TN_SHAPE(2));
    ck_assert_msg(tn_module_call_many(loss, in, 2, &y, 1) == TN_OK, "%s", tn_error_text());
    return tn_item(y);
}

/* Each sample's -log_softmax at its target, by hand. */
static double weighted_by_hand(const double *weight)
{
    double sum = 0, total = 0;

    for (int n = 0; n < 2; n++) {
        double all = 0, w = weight[n + 1];

        for (int c = 0; c < 3; c++)
            all += exp(logits[3 * n + c]);
        sum += w * (log(all) - logits[3 * n + n + 1]);
        total += w;
    }
    return sum / total;
}

static void expect_loss(tn_module *loss, const double *weight)
{
    ck_assert_msg(loss != NULL, "%s", tn_error_text());
    ck_assert_double_eq_tol(loss_of(loss), weighted_by_hand(weight), 1e-6);
}

static void expect_spec(tn_module *module, const char *wanted)
{
    char text[256];

    ck_assert_int_lt(tn_module_spec(module, text, sizeof text), sizeof text);
    ck_assert_str_eq(text, wanted);
}

#define REST "ignore_index=-100, reduction='mean', label_smoothing=0.0)"
static const double even[3] = { 1, 1, 1 }, uneven[3] = { 0.5, 2, 0.25 };
static const float uneven_f32[3] = { 0.5, 2, 0.25 };

START_TEST(a_spec_gives_a_loss_its_weights)
{
    TN_SCOPE;
    tn_module *loss = parsed("CrossEntropyLoss(weight=[0.5, 2, 0.25])");
    tn_module *first = parsed("CrossEntropyLoss((0.5, 2.0, 0.25))");
    char text[64];

    expect_loss(loss, uneven);
    expect_loss(first, uneven);
    tn_module_repr(loss, text, sizeof text);
    ck_assert_str_eq(text, "CrossEntropyLoss()"); /* as in PyTorch */
    expect_spec(loss, "CrossEntropyLoss(weight=[0.5, 2.0, 0.25], " REST);
    tn_module_drop(loss);
    tn_module_drop(first);
}
END_TEST

START_TEST(typed_construction_keeps_the_tensor)
{
    TN_SCOPE;
    tn_tensor *weight = tn_tensor_from(uneven_f32, TN_F32, TN_SHAPE(3));
    tn_value value = tn_value_tensor(weight), rows[3];
    const char *name = "weight";
    tn_module *loss = tn_module_make("CrossEntropyLoss", &value, &name, 1);

    expect_loss(loss, uneven);
    ck_assert_ptr_eq(tn_module_get(loss, "weight"), weight);
    tn_module_drop(loss);
    for (int i = 0; i < 3; i++)
        rows[i] = tn_value_float(uneven[i]);
    value = tn_value_list(rows, 3);
    loss = tn_module_make("CrossEntropyLoss", &value, NULL, 1);
    expect_loss(loss, uneven);
    tn_module_drop(loss);
}
END_TEST

START_TEST(a_weight_that_is_set_later_counts_and_is_in_spec_and_state)
{
    TN_SCOPE;
    tn_module *loss = parsed("CrossEntropyLoss()"), *again;
    tn_tensor *weight = tn_tensor_from(uneven_f32, TN_F32, TN_SHAPE(3));
    tn_state *state = tn_module_state(loss);
    char text[256];

    ck_assert_int_eq(tn_state_count(state), 0);
    tn_state_drop(state);
    expect_loss(loss, even);
    expect_spec(loss, "CrossEntropyLoss(weight=None, " REST);
    ck_assert_int_eq(tn_module_add_buffer(loss, "weight", weight, 0), TN_OK);
    expect_loss(loss, uneven);
    expect_spec(loss, "CrossEntropyLoss(weight=[0.5, 2.0, 0.25], " REST);
    state = tn_module_state(loss);
    ck_assert_int_eq(tn_state_count(state), 1);
    ck_assert_str_eq(tn_state_name(state, 0), "weight");
    again = parsed("CrossEntropyLoss([1.0, 1.0, 1.0])");
    expect_loss(again, even);
    ck_assert_int_eq(tn_module_load_state(again, state, true), TN_OK);
    expect_loss(again, uneven);
    tn_module_spec(loss, text, sizeof text);
    tn_module_drop(again);
    again = parsed(text);
    expect_loss(again, uneven);
    ck_assert_int_eq(tn_module_set(loss, "weight", TN_NONE), TN_OK);
    expect_loss(loss, even);
    tn_state_drop(state);
    tn_module_drop(again);
    tn_module_drop(loss);
}
END_TEST

START_TEST(a_copy_has_weights_of_its_own)
{
    TN_SCOPE;
    tn_module *loss = parsed("CrossEntropyLoss([0.5, 2.0, 0.25])");
    tn_module *copy = tn_module_copy(loss);

    ck_assert_ptr_nonnull(tn_fill_(tn_module_get(loss, "weight"), 1));
    expect_loss(loss, even);
    expect_loss(copy, uneven);
    tn_module_drop(copy);
    tn_module_drop(loss);
}
END_TEST

START_TEST(weights_of_a_wrong_form_are_refused_by_name)
{
    static const struct {
        const char *spec, *words;
    } rows[] = {
        { "CrossEntropyLoss(weight='even')", "weight: no tensor and no numbers" },
        { "BCELoss(weight=[[1.0, 2.0], [3.0]])", "rows of equal length" },
        { "NLLLoss(weight=[1.0, None])", "a list of numbers" },
        { "BCEWithLogitsLoss(pos_weight=[1.0, [2.0]])", "pos_weight: no tensor and no numbers" },
        { "MultiMarginLoss(weight=[[1.0, 2.0]])",
          "expected weight to be None or 1D tensor, got 2D" },
        { "LinearCrossEntropyLoss(4, 3, weight=[1.0, 2.0])", "weight: wrong shape" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(tn_module_parse(rows[i].spec) == NULL, "%s", rows[i].spec);
        ck_assert_msg(strstr(tn_error_text(), rows[i].words) != NULL, "%s: %s", rows[i].spec,
                      tn_error_text());
        tn_error_clear();
    }
}
END_TEST

START_TEST(weights_may_be_left_without_memory)
{
    TN_SCOPE;
    const tn_device *meta = tn_device_find("meta");
    tn_module *loss = tn_module_parse_skip_init(meta,
                                                "BCEWithLogitsLoss(pos_weight=[[2.0], [3.0]])");
    tn_module *again;
    char text[256];

    ck_assert_msg(loss != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_ndim(tn_module_get(loss, "pos_weight")), 2);
    ck_assert_int_gt(tn_module_spec(loss, text, sizeof text), 0);
    again = parsed(text);
    ck_assert_int_eq(tn_tensor_size(tn_module_get(again, "pos_weight"), 0), 2);
    tn_module_drop(again);
    tn_module_drop(loss);
}
END_TEST

START_TEST(adaptive_pools_keep_the_sizes_that_are_none)
{
    TN_SCOPE;
    static const struct {
        const char *spec;
        int64_t wanted[3];
        int32_t dims;
    } rows[] = {
        { "AdaptiveAvgPool2d((None, 7))", { 5, 7, 0 }, 2 },
        { "AdaptiveMaxPool2d((3, None))", { 3, 6, 0 }, 2 },
        { "AdaptiveAvgPool2d(None)", { 5, 6, 0 }, 2 },
        { "AdaptiveAvgPool1d(None)", { 5, 0, 0 }, 1 },
        { "AdaptiveMaxPool1d((None,))", { 5, 0, 0 }, 1 },
        { "AdaptiveAvgPool3d((None, 2, None))", { 5, 2, 4 }, 3 },
        { "AdaptiveMaxPool3d((2, None, None))", { 2, 6, 4 }, 3 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int64_t shape[5] = { 1, 2, 5, 6, 4 };
        tn_module *pool = parsed(rows[i].spec);
        tn_tensor *y = tn_module_call(
            pool, tn_tensor_full((tn_ints){ shape, rows[i].dims + 2 }, 2.0, TN_F32, NULL));

        ck_assert_msg(y != NULL, "%s: %s", rows[i].spec, tn_error_text());
        for (int32_t d = 0; d < rows[i].dims; d++)
            ck_assert_int_eq(tn_tensor_size(y, d + 2), rows[i].wanted[d]);
        ck_assert_double_eq(tn_item(tn_amax(y)), 2.0);
        tn_module_drop(pool);
    }
}
END_TEST

/* No probability is an index that could be ignored; PyTorch refuses the option, too. */
START_TEST(an_index_to_ignore_is_refused_with_probabilities)
{
    static const struct {
        const char *spec, *words; /* NULL: is taken */
    } rows[] = {
        { "CrossEntropyLoss(ignore_index=1)", "ignore_index: not supported, got 1" },
        { "CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)", "ignore_index" },
        { "CrossEntropyLoss(ignore_index=-1)", NULL },
        { "CrossEntropyLoss()", NULL },
        { "LinearCrossEntropyLoss(3, 3, ignore_index=-100)", "got -100 and probabilities" },
        { "LinearCrossEntropyLoss(3, 3)", NULL },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TN_SCOPE;
        tn_module *loss = parsed(rows[i].spec);
        tn_tensor *in[2] = { tn_tensor_from(logits, TN_F32, TN_SHAPE(2, 3)), NULL }, *y = NULL;
        tn_status status;

        in[1] = tn_softmax(in[0], 1);
        status = tn_module_call_many(loss, in, 2, &y, 1);
        ck_assert_msg((status == TN_OK) == (rows[i].words == NULL), "%s", rows[i].spec);
        ck_assert_msg(status == TN_OK || strstr(tn_error_text(), rows[i].words) != NULL, "%s: %s",
                      rows[i].spec, tn_error_text());
        tn_error_clear();
        tn_module_drop(loss);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_spec_gives_a_loss_its_weights,
        typed_construction_keeps_the_tensor,
        a_weight_that_is_set_later_counts_and_is_in_spec_and_state,
        a_copy_has_weights_of_its_own,
        weights_of_a_wrong_form_are_refused_by_name,
        weights_may_be_left_without_memory,
        adaptive_pools_keep_the_sizes_that_are_none,
        an_index_to_ignore_is_refused_with_probabilities,
        NULL,
    };
    return suite_run("loss weights", tests);
}
