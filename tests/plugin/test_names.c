/* SPDX-License-Identifier: MIT
 *
 * Names of what is registered: a name that could not be written in a spec, a variable or a line of
 * a report is refused, for each kind of contribution and for options, operands, kernels and
 * devices. */
#include "tests/plugin/stubs.h"

static tn_status run(const tn_call *call)
{
    (void)call;
    return TN_OK;
}

static bool supports(const tn_call *call, char *reason, size_t size)
{
    (void)call;
    tn_snprint(reason, size, "it is for names only");
    return false;
}

/* Registers one contribution of the kind under the name. */
static tn_status with_name(uint32_t kind, const char *name)
{
    static const tn_operand operand[] = { { "x", 0, 0 } };
    tn_op_def op = { TN_HEAD(tn_op_def), .name = name,   .revision = 1,       .outputs = operand,
                     .n_outputs = 1,     .infer = infer, .dispatch_input = -1 };
    tn_kernel_def kernel = { TN_HEAD(tn_kernel_def), .op = "add",   .device = "cpu",
                             .name = name,           .revision = 1, .dtypes = UINT32_MAX >> 15,
                             .supports = supports,   .run = run };
    tn_layer_def layer = { TN_HEAD(tn_layer_def), .name = name, .forward = forward };
    tn_optimizer_def optimizer = { TN_HEAD(tn_optimizer_def), .name = name, .step = step };
    tn_scheduler_def scheduler = { TN_HEAD(tn_scheduler_def), .name = name, .step = schedule };
    tn_init_def init = { TN_HEAD(tn_init_def), .name = name, .fill = fill };
    tn_format_def format = { TN_HEAD(tn_format_def), .name = name };
    tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = name };
    tn_pass_def a_pass = { TN_HEAD(tn_pass_def), .name = name, .run = pass };
    tn_compiler_def compiler = { TN_HEAD(tn_compiler_def), .name = name,       .device = "cpu",
                                 .claim = claim,           .compile = compile, .run = run_region };
    tn_comm_def comm = { TN_HEAD(tn_comm_def), .name = name, .open = open_group,
                         .close = close_group };
    tn_dataset_def dataset = { TN_HEAD(tn_dataset_def), .name = name, .open = open_data,
                               .get = get_sample };
    tn_transform_def transform = { TN_HEAD(tn_transform_def), .name = name, .apply = apply };
    tn_prune_def prune = { TN_HEAD(tn_prune_def), .name = name, .mask = mask,
                           .type = TN_PRUNE_GLOBAL };
    switch (kind) {
    case TN_KIND_tn_prune_def: return tn_register(&prune);
    case TN_KIND_tn_dataset_def: return tn_register(&dataset);
    case TN_KIND_tn_transform_def: return tn_register(&transform);
    case TN_KIND_tn_pass_def: return tn_register(&a_pass);
    case TN_KIND_tn_compiler_def: return tn_register(&compiler);
    case TN_KIND_tn_comm_def: return tn_register(&comm);
    case TN_KIND_tn_op_def: return tn_register(&op);
    case TN_KIND_tn_kernel_def: return tn_register(&kernel);
    case TN_KIND_tn_layer_def: return tn_register(&layer);
    case TN_KIND_tn_optimizer_def: return tn_register(&optimizer);
    case TN_KIND_tn_scheduler_def: return tn_register(&scheduler);
    case TN_KIND_tn_init_def: return tn_register(&init);
    case TN_KIND_tn_format_def: return tn_register(&format);
    default: return tn_register(&observer);
    }
}

static const uint32_t kinds[] = { TN_KIND_tn_op_def,        TN_KIND_tn_kernel_def,
                                  TN_KIND_tn_layer_def,     TN_KIND_tn_optimizer_def,
                                  TN_KIND_tn_scheduler_def, TN_KIND_tn_init_def,
                                  TN_KIND_tn_format_def,    TN_KIND_tn_observer_def,
                                  TN_KIND_tn_pass_def,      TN_KIND_tn_compiler_def,
                                  TN_KIND_tn_comm_def,      TN_KIND_tn_dataset_def,
                                  TN_KIND_tn_transform_def, TN_KIND_tn_prune_def };
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static char megabyte[1 << 20];

static const struct {
    const char *name;
    const char *words;
} odd[] = {
    { "a b(,)", "0x20 at byte 2 is not accepted, got \"a b(,)\"; expected 1 to 63 letters" },
    { "a(", "\"(\" at byte 2 is not accepted, got \"a(\"" },
    { "1x", "\"1\" at byte 1 is not accepted, got \"1x\"" },
    { "a\tb", "0x09 at byte 2 is not accepted, got \"a\\tb\"" },
    { "a\033[31m", "0x1b at byte 2 is not accepted" },
    { "a/b", "\"/\" at byte 2 is not accepted" },
    { "a=b", "\"=\" at byte 2 is not accepted" },
    { "h\xc3\xa9", "0xc3 at byte 2 is not accepted" },
    { "a.", "\".\" at byte 2 is not accepted" },
    { megabyte, "it has more than 63 bytes, got \"aaaaaaaa" },
};
enum { ODD = sizeof odd / sizeof odd[0] };

START_TEST(an_odd_name_is_refused_with_the_byte_that_is_wrong)
{
    memset(megabyte, 'a', sizeof megabyte - 1);
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < ODD; i++)
            expect_failure(with_name(kinds[k], odd[i].name), TN_ERR_VALUE, odd[i].words);
}
END_TEST

START_TEST(a_name_that_is_a_value_in_specs_is_refused)
{
    static const char *const values[] = { "None", "True", "False", "inf", "nan" };
    static const uint32_t types[] = { TN_KIND_tn_layer_def,     TN_KIND_tn_optimizer_def,
                                      TN_KIND_tn_scheduler_def, TN_KIND_tn_init_def,
                                      TN_KIND_tn_pass_def,      TN_KIND_tn_comm_def,
                                      TN_KIND_tn_dataset_def,   TN_KIND_tn_transform_def,
                                      TN_KIND_tn_prune_def };
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        for (int i = 0; i < 5; i++)
            expect_failure(with_name(types[k], values[i]), TN_ERR_VALUE, "this word is a value");
}
END_TEST

START_TEST(a_name_with_dots_and_63_bytes_is_accepted_and_found)
{
    const char *longest = "x23456789012345678901234567890123456789012345678901234567890123";
    const char *const names[] = { "_", "org.example.Thing_2", longest };
    place("good", NULL);
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < 3; i++) {
            ck_assert_msg(with_name(kinds[k], names[i]) == TN_OK, "%s", tn_error_text());
            if (kinds[k] != TN_KIND_tn_kernel_def)
                ck_assert_ptr_nonnull(tn_registry_find(kinds[k], names[i]));
        }
    tn_module *module = tn_module_new("org.example.Thing_2()");
    ck_assert_msg(module != NULL, "%s", tn_error_text());
    tn_module_drop(module);
}
END_TEST

START_TEST(names_of_operands_options_kernels_and_devices_are_looked_at)
{
    tn_operand operand[] = { { "x", 0, 0 }, { "a b", 0, 0 } };
    tn_option options[] = { { .name = "good", .def = "1", .kind = TN_OPTION_KIND_INT },
                            { .name = "a,b", .def = "1", .kind = TN_OPTION_KIND_INT },
                            TN_OPTION_END };
    tn_op_def op = { TN_HEAD(tn_op_def), .name = "odd_op",   .revision = 1,  .inputs = operand,
                     .n_inputs = 2,      .outputs = operand, .n_outputs = 1, .infer = infer };
    tn_layer_def layer = { TN_HEAD(tn_layer_def), .name = "Odd", .options = options,
                           .data_size = 16, .forward = forward };
    tn_optimizer_def optimizer = { TN_HEAD(tn_optimizer_def), .name = "Odd", .options = options,
                                   .data_size = 16, .step = step };
    tn_kernel_def kernel = {
        TN_HEAD(tn_kernel_def), .op = "odd op", .device = "cpu", .name = "tn_odd",
        .revision = 1,          .dtypes = 1,    .run = run
    };
    expect_failure(tn_register(&op), TN_ERR_VALUE,
                   "tn_op_def odd_op: input 2: 0x20 at byte 2 is not accepted, got \"a b\"");
    expect_failure(tn_register(&layer), TN_ERR_VALUE,
                   "tn_layer_def Odd: option 2: \",\" at byte 2 is not accepted, got \"a,b\"");
    expect_failure(tn_register(&optimizer), TN_ERR_VALUE, "tn_optimizer_def Odd: option 2: ");
    options[1].name = NULL;
    expect_failure(tn_register(&layer), TN_ERR_VALUE, "tn_layer_def Odd: option 2: it is NULL");
    expect_failure(tn_register(&kernel), TN_ERR_VALUE, "tn_kernel_def: op: 0x20 at byte 4");
    kernel.op = "add";
    kernel.device = "c pu";
    expect_failure(tn_register(&kernel), TN_ERR_VALUE,
                   "tn_kernel_def for add: device: 0x20 at byte 2");
}
END_TEST

START_TEST(a_plugin_whose_option_has_an_odd_name_is_refused)
{
    place("odd_option", NULL);
    expect("odd_option.so", TN_OUTCOME_REFUSED, TN_STAGE_VERSION,
           "plugin org.tenon.test.odd_option: option 1: 0x20 at byte 5 is not accepted, got "
           "\"beta gamma\"");
}
END_TEST

static Suite *names(void)
{
    Suite *suite = suite_create("names");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, set_up, take_down);
    tcase_add_test(all, an_odd_name_is_refused_with_the_byte_that_is_wrong);
    tcase_add_test(all, a_name_that_is_a_value_in_specs_is_refused);
    tcase_add_test(all, a_name_with_dots_and_63_bytes_is_accepted_and_found);
    tcase_add_test(all, names_of_operands_options_kernels_and_devices_are_looked_at);
    tcase_add_test(all, a_plugin_whose_option_has_an_odd_name_is_refused);
    suite_add_tcase(suite, all);
    return suite;
}

int main(void)
{
    return run_suite(names());
}
