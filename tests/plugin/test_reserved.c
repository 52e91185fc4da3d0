/* SPDX-License-Identifier: MIT
 *
 * Flags and reserved members that this Tenon gives no meaning to are refused, by name, in every
 * struct that a plugin writes (rule 23). */
#include "tests/plugin/stubs.h"

static tn_status run(const tn_call *call)
{
    (void)call;
    return TN_OK;
}

static void *alloc_nothing(void)
{
    return NULL;
}

/* One acceptable descriptor of each kind, to be spoiled. */
static const tn_operand operand[] = { { "x", 0, 0 } };
static const tn_op_def op = { TN_HEAD(tn_op_def),  .name = "reserved_op", .revision = 1,
                              .outputs = operand,  .n_outputs = 1,        .infer = infer,
                              .dispatch_input = -1 };
static const tn_kernel_def kernel = TN_KERNEL("reserved_op", "reserved", "kernel", 1, run);
static const tn_layer_def layer = { TN_HEAD(tn_layer_def), .name = "Reserved", .forward = forward };
static const tn_optimizer_def optimizer = { TN_HEAD(tn_optimizer_def), .name = "Reserved",
                                            .step = step };
static const tn_scheduler_def scheduler = { TN_HEAD(tn_scheduler_def), .name = "Reserved",
                                            .step = schedule };
static const tn_init_def init = { TN_HEAD(tn_init_def), .name = "Reserved", .fill = fill };
static const tn_format_def format = { TN_HEAD(tn_format_def), .name = "reserved" };
static const tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = "reserved" };
static const tn_pass_def a_pass = { TN_HEAD(tn_pass_def), .name = "reserved", .run = pass };
static const tn_compiler_def compiler = { TN_HEAD(tn_compiler_def), .name = "reserved",
                                          .device = "reserved",     .claim = claim,
                                          .compile = compile,       .run = run_region };
static const tn_comm_def comm = { TN_HEAD(tn_comm_def), .name = "reserved", .open = open_group,
                                  .close = close_group };
static const tn_dataset_def dataset = { TN_HEAD(tn_dataset_def), .name = "reserved",
                                        .open = open_data, .get = get_sample };
static const tn_transform_def transform = { TN_HEAD(tn_transform_def), .name = "reserved",
                                            .apply = apply };
static const tn_prune_def prune = { TN_HEAD(tn_prune_def), .name = "reserved",
                                    .type = TN_PRUNE_UNSTRUCTURED, .mask = mask };
static const tn_backend_def backend = { TN_HEAD(tn_backend_def), .type = "reserved" };

typedef union any {
    tn_head head;
    tn_op_def op;
    tn_kernel_def kernel;
    tn_layer_def layer;
    tn_optimizer_def optimizer;
    tn_scheduler_def scheduler;
    tn_init_def init;
    tn_format_def format;
    tn_observer_def observer;
    tn_pass_def pass;
    tn_compiler_def compiler;
    tn_comm_def comm;
    tn_dataset_def dataset;
    tn_transform_def transform;
    tn_prune_def prune;
    tn_backend_def backend;
} any;

static const struct {
    const void *def;
    size_t size;
} kinds[] = {
    { &op, sizeof op },
    { &kernel, sizeof kernel },
    { &layer, sizeof layer },
    { &optimizer, sizeof optimizer },
    { &scheduler, sizeof scheduler },
    { &init, sizeof init },
    { &format, sizeof format },
    { &observer, sizeof observer },
    { &a_pass, sizeof a_pass },
    { &compiler, sizeof compiler },
    { &comm, sizeof comm },
    { &dataset, sizeof dataset },
    { &transform, sizeof transform },
    { &prune, sizeof prune },
    { &backend, sizeof backend },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

START_TEST(every_kind_refuses_words_of_its_head)
{
    for (int k = 0; k < KINDS; k++) {
        any spoiled;
        memcpy(&spoiled, kinds[k].def, kinds[k].size);
        spoiled.head.flags = 0xffff;
        expect_failure(tn_register(&spoiled), TN_ERR_VERSION, "head.flags: reserved in Tenon");
        expect_failure(tn_register(&spoiled), TN_ERR_VERSION, "got 0xffff; expected 0");
        spoiled.head.flags = 0;
        spoiled.head.target = 0xdeadbeef;
        expect_failure(tn_register(&spoiled), TN_ERR_VERSION,
                       "head.target: bits 0xdead0000 are unknown to Tenon");
        spoiled.head.target = TN_TARGET;
        spoiled.head.destroy = (void (*)(void *))(void *)alloc_nothing;
        expect_failure(tn_register(&spoiled), TN_ERR_VERSION, "head.destroy: a descriptor is");
    }
}
END_TEST

/* Each unknown bit alone is refused, and the message names it. */
static void bits_refused(any *spoiled, void *member, size_t size, uint64_t known, const char *name)
{
    uint64_t good = 0;
    memcpy(&good, member, size);
    for (size_t bit = 0; bit < size * 8; bit++) {
        char words[80];
        uint64_t mask = UINT64_C(1) << bit, bad = good | mask;
        if (known & mask)
            continue;
        memcpy(member, &bad, size);
        if (known)
            snprintf(words, sizeof words, "%s: bits 0x%llx are unknown", name,
                     (unsigned long long)mask);
        else
            snprintf(words, sizeof words, "%s: reserved in Tenon", name);
        expect_failure(tn_register(spoiled), TN_ERR_VERSION, words);
    }
    memcpy(member, &good, size);
}

START_TEST(every_unknown_bit_of_flags_and_dtypes_is_refused)
{
    const uint64_t dtypes = TN_MASK_ALL;
    any spoiled = { .op = op };
    bits_refused(&spoiled, &spoiled.op.flags, sizeof spoiled.op.flags, 0xFFFFF, "flags");
    bits_refused(&spoiled, &spoiled.op.decompose_dtypes, sizeof spoiled.op.decompose_dtypes, dtypes,
                 "decompose_dtypes");
    spoiled.kernel = kernel;
    bits_refused(&spoiled, &spoiled.kernel.flags, sizeof spoiled.kernel.flags, 63, "flags");
    bits_refused(&spoiled, &spoiled.kernel.dtypes, sizeof spoiled.kernel.dtypes, dtypes, "dtypes");
    spoiled.layer = layer;
    bits_refused(&spoiled, &spoiled.layer.flags, sizeof spoiled.layer.flags, 511, "flags");
    spoiled.format = format;
    bits_refused(&spoiled, &spoiled.format.flags, sizeof spoiled.format.flags, 7, "flags");
    spoiled.optimizer = optimizer;
    bits_refused(&spoiled, &spoiled.optimizer.flags, sizeof spoiled.optimizer.flags, 7, "flags");
    spoiled.scheduler = scheduler;
    bits_refused(&spoiled, &spoiled.scheduler.flags, sizeof spoiled.scheduler.flags, 1, "flags");
    spoiled.observer = observer;
    bits_refused(&spoiled, &spoiled.observer.flags, sizeof spoiled.observer.flags, 1, "flags");
    spoiled.pass = a_pass;
    bits_refused(&spoiled, &spoiled.pass.flags, sizeof spoiled.pass.flags, 15, "flags");
    spoiled.compiler = compiler;
    bits_refused(&spoiled, &spoiled.compiler.flags, sizeof spoiled.compiler.flags, 7, "flags");
    bits_refused(&spoiled, &spoiled.compiler.reserved, sizeof spoiled.compiler.reserved, 0,
                 "reserved");
    spoiled.comm = comm;
    bits_refused(&spoiled, &spoiled.comm.flags, sizeof spoiled.comm.flags, 0, "flags");
    bits_refused(&spoiled, &spoiled.comm.dtypes, sizeof spoiled.comm.dtypes, dtypes, "dtypes");
    spoiled.prune = prune;
    bits_refused(&spoiled, &spoiled.prune.reserved, sizeof spoiled.prune.reserved, 0, "reserved");
    spoiled.backend = backend;
    bits_refused(&spoiled, &spoiled.backend.flags, sizeof spoiled.backend.flags, 63, "flags");
    bits_refused(&spoiled, &spoiled.backend.reserved, sizeof spoiled.backend.reserved, 0,
                 "reserved");
}
END_TEST

/* Fails unless a descriptor without this member is refused with these words. */
#define WITHOUT(member_, def_, field_, words)                                                      \
    do {                                                                                           \
        any spoiled = { .member_ = def_ };                                                         \
        spoiled.member_.field_ = NULL;                                                             \
        expect_failure(tn_register(&spoiled), TN_ERR_VALUE, words);                                \
    } while (0)

START_TEST(the_functions_that_a_kind_needs_are_there)
{
    WITHOUT(pass, a_pass, run, "tn_pass_def \"reserved\": run: it is missing");
    WITHOUT(compiler, compiler, claim, "tn_compiler_def \"reserved\": claim: it is missing");
    WITHOUT(compiler, compiler, compile, "tn_compiler_def \"reserved\": compile: it is missing");
    WITHOUT(compiler, compiler, run, "tn_compiler_def \"reserved\": run: it is missing");
    WITHOUT(compiler, compiler, device, "tn_compiler_def \"reserved\": device: it is missing");
    WITHOUT(comm, comm, open, "tn_comm_def \"reserved\": open: it is missing");
    WITHOUT(comm, comm, close, "tn_comm_def \"reserved\": close: it is missing");
    WITHOUT(dataset, dataset, open, "tn_dataset_def \"reserved\": open: it is missing");
    WITHOUT(dataset, dataset, get, "tn_dataset_def \"reserved\": get: it is missing");
    WITHOUT(transform, transform, apply, "tn_transform_def \"reserved\": apply: it is missing");
    WITHOUT(prune, prune, mask, "tn_prune_def \"reserved\": mask: it is missing");
    any method = { .prune = prune };
    method.prune.type = TN_PRUNE_STRUCTURED;
    expect_failure(tn_register(&method), TN_ERR_VALUE, "\"reserved\": dim: it is missing");
    method.prune.type = TN_PRUNE_NETWORK;
    expect_failure(tn_register(&method), TN_ERR_VALUE, "\"reserved\": channels: it is missing");
    method.prune.type = 5;
    expect_failure(tn_register(&method), TN_ERR_VALUE,
                   "tn_prune_def \"reserved\": type: unknown, got 5; expected");
    any twice = { .pass = a_pass };
    twice.pass.after = "first a/b";
    expect_failure(tn_register(&twice), TN_ERR_VALUE,
                   "tn_pass_def: after: name: \"/\" at byte 2 is not accepted");
    twice.pass.after = NULL;
    ck_assert_int_eq(tn_register(&twice), TN_OK);
    expect_failure(tn_register(&twice), TN_ERR_REFUSED, "pass \"reserved\" of (program): refused");
    /* too short for `run`; longer than any host knows */
    twice.pass.name = "short";
    twice.head.size = offsetof(tn_pass_def, run);
    expect_failure(tn_register(&twice), TN_ERR_VERSION, "tn_pass_def");
    twice.head.size = sizeof(tn_pass_def) + 8;
    expect_failure(tn_register(&twice), TN_ERR_VERSION, "tn_pass_def");
}
END_TEST

START_TEST(operands_of_operators_are_looked_at)
{
    const uint64_t dtypes = TN_MASK_ALL;
    tn_operand rows[2] = { { "a", 0, 0 }, { "b", 0, 0 } };
    any spoiled = { .op = op };
    spoiled.op.inputs = rows;
    spoiled.op.n_inputs = 2;
    bits_refused(&spoiled, &rows[1].flags, sizeof rows[1].flags,
                 1023 | TN_OPERAND_SINCE(UINT16_MAX), "tn_op_def reserved_op: input 2: flags");
    bits_refused(&spoiled, &rows[0].dtypes, sizeof rows[0].dtypes, dtypes,
                 "tn_op_def reserved_op: input 1: dtypes");
    spoiled.op.inputs = NULL;
    spoiled.op.n_inputs = 0;
    spoiled.op.outputs = rows;
    bits_refused(&spoiled, &rows[0].flags, sizeof rows[0].flags,
                 1023 | TN_OPERAND_SINCE(UINT16_MAX), "tn_op_def reserved_op: output 1: flags");
}
END_TEST

/* A plugin that names more dtypes is for a host that has them; its kernels get only those of this
 * host. */
START_TEST(a_newer_abi_may_name_dtypes_that_this_one_lacks)
{
    place("good", "newer_dtypes", NULL);
    tn_plugin_report report = line_of("newer_dtypes.so");
    /* While the ABI is a draft, a newer minor is refused as a whole: for its version. */
    ck_assert_msg(strstr(report.reason, "wrong ABI") != NULL, "%s", report.reason);
    ck_assert_ptr_null(strstr(report.reason, "dtypes"));
}
END_TEST

START_TEST(words_of_the_plugin_itself_are_refused)
{
    place("good", "flag_of_plugin", "word_of_plugin", "word_of_requirement", "word_of_facts",
          "word_of_need", "word_of_info", NULL);
    expect("flag_of_plugin.so", TN_OUTCOME_REFUSED, TN_STAGE_VERSION,
           "tn_plugin: flags: bits 0x80 are unknown");
    expect("word_of_plugin.so", TN_OUTCOME_REFUSED, TN_STAGE_VERSION,
           "tn_plugin: head.target: bits");
    expect("word_of_requirement.so", TN_OUTCOME_REFUSED, TN_STAGE_VERSION,
           "tn_plugin: requirement \"org.tenon.test.good\": reserved[0]");
    expect("word_of_facts.so", TN_OUTCOME_REFUSED, TN_STAGE_VERSION,
           "tn_build_facts: reserved[3]: reserved in Tenon");
    expect("word_of_info.so", TN_OUTCOME_REFUSED, TN_STAGE_VERSION,
           "tn_plugin_info: reserved[2]: reserved in Tenon");
    expect("word_of_need.so", TN_OUTCOME_REFUSED, TN_STAGE_VERSION,
           "interface tenon.base: reserved: reserved in Tenon");
    expect_good_beside();
}
END_TEST

static tn_status nothing(tn_function_ctx *ctx, void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)ctx, (void)user, (void)in, (void)out;
    return TN_ERR_RUNTIME;
}

static tn_tensor *no_tensor(void *user, tn_module *module, const char *name)
{
    (void)user, (void)module, (void)name;
    return NULL;
}

START_TEST(structs_that_calls_take_are_looked_at_too)
{
    TN_SCOPE;
    tn_function function = { .name = "f", .forward = nothing, .reserved = { NULL, &function } };
    tn_computed computed = { .get = no_tensor, .reserved = { NULL, NULL, NULL, &computed } };
    tn_module *module = tn_module_new("ReLU()");
    tn_tensor *out = NULL;

    ck_assert_msg(module != NULL, "%s", tn_error_text());
    expect_failure(tn_function_call(&function, NULL, NULL, 0, &out, 1), TN_ERR_VERSION,
                   "tn_function: reserved[1]: reserved in Tenon");
    expect_failure(tn_module_add_computed(module, "c", &computed, NULL), TN_ERR_VERSION,
                   "tn_computed: reserved[3]: reserved in Tenon");
    ck_assert_uint_eq(tn_module_slot_kind(module, "c"), 0);
    tn_module_drop(module);
}
END_TEST

static Suite *reserved(void)
{
    Suite *suite = suite_create("reserved");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, set_up, take_down);
    tcase_add_test(all, every_kind_refuses_words_of_its_head);
    tcase_add_test(all, every_unknown_bit_of_flags_and_dtypes_is_refused);
    tcase_add_test(all, operands_of_operators_are_looked_at);
    tcase_add_test(all, the_functions_that_a_kind_needs_are_there);
    tcase_add_test(all, a_newer_abi_may_name_dtypes_that_this_one_lacks);
    tcase_add_test(all, words_of_the_plugin_itself_are_refused);
    TCase *calls = tcase_create("calls"); /* with the plugins of the build */
    tcase_add_test(calls, structs_that_calls_take_are_looked_at_too);
    suite_add_tcase(suite, calls);
    suite_add_tcase(suite, all);
    return suite;
}

int main(void)
{
    return run_suite(reserved());
}
