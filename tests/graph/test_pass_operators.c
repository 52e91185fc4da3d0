/* SPDX-License-Identifier: MIT
 *
 * Every case of tests/oracle as a graph that passes and the compiler `fuse` change: alone, with a
 * batch norm after convolutions and linear operators, and with elementwise operators after it. The
 * results of changed graphs may differ by 2e-5 times the largest result. */
#include "tests/graph/operator_case.h"
#include "tests/graph/other_passes.h"

static int checked;

static struct other_pass alone[] = {
    { "dropout", NULL, 0 },
    { "decompose", "fuse", 0 },
};
static struct other_pass before_norms[] = {
    { "conv_bn", NULL, 0 },
    { "linear_bn", NULL, 0 },
    { "epilogue", NULL, 0 },
    { "conv_bn, linear_bn, epilogue", NULL, 0 },
    { "conv_bn, linear_bn, decompose", "fuse", 0 },
};
static struct other_pass before_elementwise[] = {
    { NULL, "fuse", 0 },
};

#define COUNT(rows) ((int64_t)(sizeof rows / sizeof *rows))

/* ---- modules --------------------------------------------------------------------------------- */

static tn_tensor *norm_and_relu(tn_module *self, tn_tensor *y)
{
    return tn_relu(tn_batch_norm(y, tn_module_get(self, "mean"), tn_module_get(self, "var"),
                                 tn_module_get(self, "gamma"), tn_module_get(self, "beta")));
}

static tn_tensor *elementwise(tn_module *self, tn_tensor *y)
{
    (void)self;
    return tn_relu(tn_sub(tn_mul_scalar(y, 0.75), tn_sigmoid(y)));
}

/* A buffer of a norm: numbers from `least` on. */
static void add_numbers(tn_module *module, const char *name, tn_tensor *y, double least)
{
    double numbers[64];
    int64_t count = tn_tensor_size(y, 1);

    ck_assert_int_le(count, 64);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = least + (double)(i * 5 % 7) / 4;
    ck_ok(tn_module_add_buffer(
        module, name, tn_cast(tn_tensor_from(numbers, TN_F64, TN_SHAPE(count)), tn_tensor_dtype(y)),
        0));
}

/* Outside of training: dropout passes its input on. */
static void leave_training(void)
{
    const tn_op_def *def = tn_op_definition(r.op);

    for (const tn_option *row = def->options;
         row != NULL && row->kind != TN_OPTION_KIND_END && strstr(def->name, "dropout") != NULL;
         row++)
        if (strcmp(row->name, "training") == 0 || strcmp(row->name, "train") == 0)
            set_option(&r, row->name, "False");
}

static int64_t call_module(tn_module *module, tn_tensor **out, void *user)
{
    tn_pack *in = packed(), *results = tn_pack_new();
    int64_t count = 0;

    (void)user;
    tn_random_seed(7);
    for (int64_t i = 0; i < r.n_in; i++)
        if (is_updated(i))
            ck_made(tn_copy_(tn_module_get(module, buffer_name(i)), r.in[i]));
    if (tn_module_call_pack(module, in, results) != TN_OK)
        count = -1;
    for (int64_t i = 0; count >= 0 && i < tn_pack_count(results); i++)
        out[count++] = tn_tensor_to_scope(tn_tensor_keep(tn_pack_tensor(results, i)));
    for (int64_t i = 0; count >= 0 && i < r.n_in; i++)
        if (is_updated(i))
            out[count++] = tn_clone(tn_module_get(module, buffer_name(i)));
    tn_pack_drop(in);
    tn_pack_drop(results);
    return count;
}

/* ---- one case -------------------------------------------------------------------------------- */

static void check_module(tn_module *module, struct other_pass *passes, int64_t n_passes)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_pack *in = packed();
    tn_graph *graph;

    how.flags = TN_TRACE_THROUGH;
    graph = tn_module_trace_pack(module, in, &how);
    tn_error_clear(); /* test_traced_operators checks which cases cannot be traced */
    if (graph != NULL)
        try_passes(graph, passes, n_passes, call_module, NULL, r.name);
    tn_graph_drop(graph);
    tn_pack_drop(in);
}

static bool is_float(tn_tensor *y)
{
    return tn_tensor_dtype(y) == TN_F32 || tn_tensor_dtype(y) == TN_F64;
}

/* Whether the operator decomposes into tens of thousands of primitive operators; of such an
 * operator only a few cases are tested. */
static bool is_large(void)
{
    static int seen;

    return strcmp(tn_op_definition(r.op)->name, "grid_sample") == 0 && seen++ % 40 != 0;
}

static void check_case(void)
{
    const char *op = tn_op_definition(r.op)->name;
    tn_module *module;
    tn_tensor *out[RESULTS];
    int64_t count;

    checked++;
    leave_training();
    ck_ok(tn_grad_begin(false));
    module = new_module();
    count = call_module(module, out, NULL);
    tn_error_clear();
    if (count >= 0 && !is_large())
        check_module(module, alone, COUNT(alone));
    if (count == 1 && is_float(out[0])) {
        tail = elementwise;
        check_module(module, before_elementwise, COUNT(before_elementwise));
    }
    tn_module_drop(module);
    if (count == 1 && is_float(out[0]) && tn_tensor_ndim(out[0]) >= 2 &&
        (strncmp(op, "conv", 4) == 0 || strcmp(op, "linear") == 0)) {
        tail = norm_and_relu;
        held = true;
        module = new_module();
        add_numbers(module, "mean", out[0], -0.5);
        add_numbers(module, "var", out[0], 0.25);
        add_numbers(module, "gamma", out[0], 0.5);
        add_numbers(module, "beta", out[0], -1);
        check_module(module, before_norms, COUNT(before_norms));
        tn_module_drop(module);
    }
    held = false;
    tail = NULL;
    tn_grad_end();
}

static void report(const struct other_pass *passes, int64_t count, const char *where)
{
    for (int64_t i = 0; i < count; i++) {
        printf("  %s: %s%s%s changed %d\n", where, passes[i].passes != NULL ? passes[i].passes : "",
               passes[i].passes != NULL && passes[i].compiler != NULL ? ", " : "",
               passes[i].compiler != NULL ? passes[i].compiler : "", passes[i].changed);
        ck_assert_int_gt(passes[i].changed, 0);
    }
}

START_TEST(what_passes_change_of_an_operator_is_near_it)
{
    each_case(check_case);
    printf("operators: %d cases\n", checked);
    report(alone, COUNT(alone), "alone");
    report(before_norms, COUNT(before_norms), "with batch_norm and relu");
    report(before_elementwise, COUNT(before_elementwise), "with elementwise operators");
    ck_assert_int_eq(failed_passes, 0);
    ck_assert_int_gt(checked, 13000);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { what_passes_change_of_an_operator_is_near_it, NULL };
    return suite_run_for("pass_operators", tests, 600);
}
