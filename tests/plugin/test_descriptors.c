/* SPDX-License-Identifier: MIT
 *
 * Option tables of descriptors: one that would store values outside the struct, or that could not
 * be used, is refused with the option's name, for every kind that has options. */
#include "tests/plugin/stubs.h"

struct data {
    uint32_t size; /* what the options of an operator begin with */
    double beta;
    int64_t depth;
    tn_values more;
};

static const uint32_t kinds[] = { TN_KIND_tn_layer_def,     TN_KIND_tn_op_def,
                                  TN_KIND_tn_optimizer_def, TN_KIND_tn_scheduler_def,
                                  TN_KIND_tn_init_def,      TN_KIND_tn_pass_def,
                                  TN_KIND_tn_comm_def,      TN_KIND_tn_dataset_def,
                                  TN_KIND_tn_transform_def, TN_KIND_tn_prune_def };
enum { KINDS = sizeof kinds / sizeof *kinds };

static tn_status with_options(uint32_t kind, const char *name, const tn_option *options,
                              size_t size)
{
    static const tn_operand operand[] = { { "x", 0, 0 } };
    static const struct data defaults = { .size = sizeof defaults };
    tn_layer_def layer = { TN_HEAD(tn_layer_def), .name = name, .options = options,
                           .data_size = size, .forward = forward };
    tn_op_def op = { TN_HEAD(tn_op_def),    .name = name,
                     .revision = 1,         .outputs = operand,
                     .n_outputs = 1,        .infer = infer,
                     .dispatch_input = -1,  .options = options,
                     .defaults = &defaults, .options_size = (uint32_t)size };
    tn_optimizer_def optimizer = { TN_HEAD(tn_optimizer_def), .name = name, .options = options,
                                   .data_size = size, .step = step };
    tn_scheduler_def scheduler = { TN_HEAD(tn_scheduler_def), .name = name, .options = options,
                                   .data_size = size, .step = schedule };
    tn_init_def init = { TN_HEAD(tn_init_def), .name = name, .options = options, .data_size = size,
                         .fill = fill };
    tn_pass_def a_pass = { TN_HEAD(tn_pass_def), .name = name, .options = options,
                           .data_size = size, .run = pass };
    tn_comm_def comm = { TN_HEAD(tn_comm_def), .name = name,       .options = options,
                         .data_size = size,    .open = open_group, .close = close_group };
    tn_dataset_def dataset = { TN_HEAD(tn_dataset_def), .name = name,      .options = options,
                               .data_size = size,       .open = open_data, .get = get_sample };
    tn_transform_def transform = { TN_HEAD(tn_transform_def), .name = name, .options = options,
                                   .data_size = size, .apply = apply };
    tn_prune_def prune = { TN_HEAD(tn_prune_def), .name = name, .options = options,
                           .data_size = size,     .mask = mask, .type = TN_PRUNE_GLOBAL };
    switch (kind) {
    case TN_KIND_tn_prune_def: return tn_register(&prune);
    case TN_KIND_tn_dataset_def: return tn_register(&dataset);
    case TN_KIND_tn_transform_def: return tn_register(&transform);
    case TN_KIND_tn_pass_def: return tn_register(&a_pass);
    case TN_KIND_tn_comm_def: return tn_register(&comm);
    case TN_KIND_tn_layer_def: return tn_register(&layer);
    case TN_KIND_tn_op_def: return tn_register(&op);
    case TN_KIND_tn_optimizer_def: return tn_register(&optimizer);
    case TN_KIND_tn_scheduler_def: return tn_register(&scheduler);
    default: return tn_register(&init);
    }
}

/* Refused by every kind, and not registered. */
static void refused_as(const tn_option *options, size_t size, tn_status code, const char *words)
{
    for (int k = 0; k < KINDS; k++) {
        expect_failure(with_options(kinds[k], "Refused", options, size), code, words);
        ck_assert_ptr_null(tn_registry_find(kinds[k], "Refused"));
        tn_error_clear();
    }
}

static void refused(const tn_option *options, size_t size, const char *words)
{
    refused_as(options, size, TN_ERR_VALUE, words);
}

#define ROW(name_, def_, kind_, flags_, offset_)                                                   \
    {                                                                                              \
        name_, def_, "help", kind_, flags_, (uint32_t)(offset_), 0,                                \
        {                                                                                          \
            0, 0                                                                                   \
        }                                                                                          \
    }
#define BETA ROW("beta", "1.5", TN_OPTION_KIND_FLOAT, 0, offsetof(struct data, beta))
#define REFUSED(words, ...)                                                                        \
    refused((const tn_option[]){ __VA_ARGS__, TN_OPTION_END }, sizeof(struct data), words)

START_TEST(a_table_that_fits_is_taken_by_every_kind)
{
    const tn_option options[] = {
        BETA, ROW("depth", "3", TN_OPTION_KIND_INT, 0, offsetof(struct data, depth)),
        ROW("more", NULL, TN_OPTION_KIND_VALUE, TN_OPTION_MANY, offsetof(struct data, more)),
        TN_OPTION_END
    };
    for (int k = 0; k < KINDS; k++) {
        ck_assert_msg(with_options(kinds[k], "Taken", options, sizeof(struct data)) == TN_OK, "%s",
                      tn_error_text());
        ck_assert_ptr_nonnull(tn_registry_find(kinds[k], "Taken"));
    }
}
END_TEST

START_TEST(an_option_outside_of_its_struct_is_refused)
{
    REFUSED("option \"depth\": outside the struct, got offset 4096 and "
            "size 8",
            BETA, ROW("depth", "3", TN_OPTION_KIND_INT, 0, 4096));
    REFUSED("option \"depth\": outside the struct, got offset 4294967288 and size 8", BETA,
            ROW("depth", "3", TN_OPTION_KIND_INT, 0, UINT32_MAX - 7));
    REFUSED("option \"row\": outside the struct, got offset 40 and size 16", BETA,
            ROW("row", "[1]", TN_OPTION_KIND_INTS, 0, sizeof(struct data) - 8));
    refused((const tn_option[]){ BETA, TN_OPTION_END }, 0,
            "option \"beta\": outside the struct, got offset 8 and size 8");
    refused((const tn_option[]){ BETA, TN_OPTION_END }, 15, "outside the struct");
}
END_TEST

START_TEST(an_option_over_the_size_of_an_operators_struct_is_refused)
{
    const tn_option options[] = { ROW("size", "True", TN_OPTION_KIND_BOOL, 0, 0), TN_OPTION_END };
    expect_failure(with_options(TN_KIND_tn_op_def, "Refused", options, sizeof(struct data)),
                   TN_ERR_VALUE, "option \"size\": outside the struct, got offset 0 and size 1");
    ck_assert_int_eq(with_options(TN_KIND_tn_layer_def, "Taken", options, sizeof(struct data)),
                     TN_OK);
}
END_TEST

START_TEST(an_option_that_is_not_aligned_is_refused)
{
    REFUSED("option \"depth\": wrong offset, got 12; expected a multiple of 8",
            ROW("depth", "3", TN_OPTION_KIND_INT, 0, 12));
}
END_TEST

START_TEST(two_options_of_one_name_or_one_place_are_refused)
{
    REFUSED("option \"beta\": declared twice", BETA,
            ROW("beta", "3", TN_OPTION_KIND_INT, 0, offsetof(struct data, depth)));
    REFUSED("options \"beta\" and \"gamma\" overlap: offsets 8 and 12, sizes 8 and 4", BETA,
            ROW("gamma", "float32", TN_OPTION_KIND_DTYPE, 0, 12));
}
END_TEST

START_TEST(an_option_of_an_unknown_kind_or_flag_is_refused)
{
    REFUSED("option \"beta\": unknown kind, got 77", ROW("beta", "1", 77, 0, 8));
    REFUSED("option \"beta\": unknown flags or nonzero reserved words, got 0x8000",
            ROW("beta", "1", TN_OPTION_KIND_FLOAT, 0x8000, 8));
    REFUSED("option \"beta\": TN_OPTION_MANY at the wrong place",
            ROW("beta", NULL, TN_OPTION_KIND_VALUE, TN_OPTION_MANY, 24), BETA);
    REFUSED("option \"beta\": TN_OPTION_LISTS with a wrong kind",
            ROW("beta", "1", TN_OPTION_KIND_INT, TN_OPTION_LISTS, 8));
    REFUSED("option 1: it is NULL", ROW(NULL, "1", TN_OPTION_KIND_FLOAT, 0, 8));
}
END_TEST

START_TEST(a_table_without_an_end_is_refused)
{
    static tn_option endless[300];
    static char names[300][8];
    for (int i = 0; i < 300; i++) {
        snprintf(names[i], sizeof names[i], "o%d", i);
        endless[i] = (tn_option)ROW(names[i], "1", TN_OPTION_KIND_FLOAT, 0, 8 + 8 * i);
    }
    refused(endless, 1 << 20, "expected TN_OPTION_END within 256");
}
END_TEST

START_TEST(a_default_that_is_no_value_of_its_kind_is_refused)
{
    static const struct {
        const char *def, *words;
        uint32_t kind;
        tn_status code;
    } rows[] = {
        { "1.5.3", "number: cannot be read", TN_OPTION_KIND_FLOAT, TN_ERR_FORMAT },
        { "(1, ", "column", TN_OPTION_KIND_INTS, TN_ERR_FORMAT },
        { "True", "option \"beta\": wrong type", TN_OPTION_KIND_FLOAT, TN_ERR_TYPE },
        { "float33", "float33", TN_OPTION_KIND_DTYPE, TN_ERR_VALUE },
        { "None", "expected True or False", TN_OPTION_KIND_BOOL, TN_ERR_TYPE },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tn_option options[] = { ROW("beta", rows[i].def, rows[i].kind, 0, 8), TN_OPTION_END };
        refused_as(options, sizeof(struct data), rows[i].code, rows[i].words);
        with_options(TN_KIND_tn_layer_def, "Refused", options, sizeof(struct data));
        ck_assert_ptr_nonnull(strstr(tn_error_text(), "default of \"beta\": "));
        tn_error_clear();
    }
}
END_TEST

static Suite *descriptors(void)
{
    Suite *suite = suite_create("descriptors");
    TCase *all = tcase_create("options");
    tcase_add_checked_fixture(all, set_up, take_down);
    tcase_set_timeout(all, 60);
    tcase_add_test(all, a_table_that_fits_is_taken_by_every_kind);
    tcase_add_test(all, an_option_outside_of_its_struct_is_refused);
    tcase_add_test(all, an_option_over_the_size_of_an_operators_struct_is_refused);
    tcase_add_test(all, an_option_that_is_not_aligned_is_refused);
    tcase_add_test(all, two_options_of_one_name_or_one_place_are_refused);
    tcase_add_test(all, an_option_of_an_unknown_kind_or_flag_is_refused);
    tcase_add_test(all, a_table_without_an_end_is_refused);
    tcase_add_test(all, a_default_that_is_no_value_of_its_kind_is_refused);
    suite_add_tcase(suite, all);
    return suite;
}

int main(void)
{
    return run_suite(descriptors());
}
