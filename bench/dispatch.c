/* SPDX-License-Identifier: MIT
 *
 * The time of a call of the public API: nanoseconds of operators on 4 elements, of modules, and of
 * small forward and backward passes, where little is computed. The largest, an MLP, is measured as
 * loops in C, too.
 *   dispatch [--peer PYTHON SCRIPT] [--rounds N] [--only CASE] [--instructions N]
 * --peer measures PyTorch in the same run (peer_dispatch.py). --instructions runs a case N times
 * inside the function `counted` and prints nothing: for callgrind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tenon/tenon.h>

enum { BATCH = 500, MAX_ROUNDS = 1000, STEPS = 100 };
enum { WIDE = 64, CLASSES = 10 }; /* the features of the MLP, and its results */

static tn_tensor *a, *b, *leaf, *square, *row, *result;
static const tn_op *add_op;
static tn_prepared *add_kept;
static tn_tensor *features;
static tn_module *ten, *linear, *mlp;
static tn_plan *one_step, *steps;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- the cases ------------------------------------------------------------------ */

static void add(void)
{
    tn_add(a, b);
}

static void add_with_gradient(void)
{
    tn_add(leaf, b);
}

static void mul_with_gradient(void)
{
    tn_mul(leaf, b);
}

static void add_in_place(void)
{
    tn_add_(a, b);
}

static void add_by_name(void)
{
    tn_tensor *in[] = { a, b }, *out;

    tn_op_call(add_op, in, 2, NULL, &out, 1);
}

static void add_prepared(void)
{
    tn_tensor *in[] = { a, b }, *out;

    tn_prepared_run(add_kept, in, 2, &out, 1);
}

static void add_prepared_into(void)
{
    tn_tensor *in[] = { a, b };

    tn_prepared_run_into(add_kept, in, 2, &result, 1);
}

static void sum(void)
{
    tn_sum(a);
}

static void view(void)
{
    tn_view_to(a, TN_SHAPE(2, 2));
}

static void select_row(void)
{
    tn_select(square, 0, 1);
}

static void transpose(void)
{
    tn_transpose(square, 0, 1);
}

static void pass_ten(void)
{
    tn_module_call(ten, a);
}

static void call_linear(void)
{
    tn_module_call(linear, row);
}

static void run_plan(tn_plan *plan)
{
    tn_tensor *out;

    tn_plan_run(plan, &a, 1, &out, 1);
}

static void plan_of_one(void)
{
    run_plan(one_step);
}

static void plan_of_many(void)
{
    run_plan(steps);
}

static void linear_and_back(void)
{
    tn_backward(tn_sum(tn_module_call(linear, row)));
}

static void mul_and_back(void)
{
    tn_backward(tn_sum(tn_mul(leaf, b)));
}

static void mlp_and_back(void)
{
    tn_tensor *y = tn_module_call(mlp, features);

    tn_backward(tn_sum(tn_mul(y, y)));
}

/* ---- the same MLP as loops in C ------------------------------------------------- */

struct plain_linear {
    float weight[WIDE][WIDE], bias[WIDE], weight_grad[WIDE][WIDE], bias_grad[WIDE];
};

static struct plain_linear plain[2];
static float plain_features[WIDE];

#if defined(__GNUC__) && !defined(__clang__)
#define PLAIN_LOOPS                                                                                \
    __attribute__((optimize("O3", "no-math-errno", "associative-math", "no-signed-zeros",          \
                            "no-trapping-math")))
#else
#define PLAIN_LOOPS
#endif

PLAIN_LOOPS static void plain_forward(const struct plain_linear *p, int outputs, const float *x,
                                      float *y)
{
    for (int o = 0; o < outputs; o++) {
        float sum = 0;

        for (int i = 0; i < WIDE; i++)
            sum += p->weight[o][i] * x[i];
        y[o] = sum + p->bias[o];
    }
}

/* Adds to the gradients, as backward of the library does. Writes no gx if it is NULL. */
PLAIN_LOOPS static void plain_backward(struct plain_linear *p, int outputs, const float *x,
                                       const float *gy, float *gx)
{
    for (int o = 0; o < outputs; o++) {
        for (int i = 0; i < WIDE; i++)
            p->weight_grad[o][i] += gy[o] * x[i];
        p->bias_grad[o] += gy[o];
    }
    if (gx != NULL)
        memset(gx, 0, WIDE * sizeof *gx);
    for (int o = 0; o < outputs && gx != NULL; o++)
        for (int i = 0; i < WIDE; i++)
            gx[i] += gy[o] * p->weight[o][i];
}

/* The loss is the sum of the squares of the results. */
PLAIN_LOOPS static void mlp_in_c(void)
{
    float z[WIDE], h[WIDE], y[CLASSES], gy[CLASSES], gh[WIDE];

    plain_forward(&plain[0], WIDE, plain_features, z);
    for (int i = 0; i < WIDE; i++)
        h[i] = z[i] > 0 ? z[i] : 0;
    plain_forward(&plain[1], CLASSES, h, y);
    for (int i = 0; i < CLASSES; i++)
        gy[i] = 2 * y[i];
    plain_backward(&plain[1], CLASSES, h, gy, gh);
    for (int i = 0; i < WIDE; i++)
        gh[i] = z[i] > 0 ? gh[i] : 0;
    plain_backward(&plain[0], WIDE, plain_features, gh, NULL);
}

/* Returns the larger of `most` and the absolute value of x; NaN if x is NaN. */
static float larger_of(float most, float x)
{
    x = x < 0 ? -x : x;
    return x <= most ? most : x;
}

static bool read_plain(const char *layer, size_t outputs, struct plain_linear *p)
{
    tn_module *module = tn_module_child(mlp, layer);
    tn_tensor *weight = tn_module_get(module, "weight"), *bias = tn_module_get(module, "bias");

    return weight != NULL && bias != NULL &&
           tn_tensor_copy_out(weight, p->weight, outputs * sizeof p->weight[0]) == TN_OK &&
           tn_tensor_copy_out(bias, p->bias, outputs * sizeof p->bias[0]) == TN_OK;
}

/* Copies the weights of the MLP, and checks that the gradients of both ways agree. */
static bool prepare_plain(void)
{
    float grad[WIDE][WIDE], apart = 0;
    tn_module *first = tn_module_child(mlp, "0");

    if (!read_plain("0", WIDE, &plain[0]) || !read_plain("2", CLASSES, &plain[1]) ||
        tn_tensor_copy_out(features, plain_features, sizeof plain_features) != TN_OK)
        return false;
    mlp_and_back();
    mlp_in_c();
    if (tn_tensor_copy_out(tn_tensor_grad(tn_module_get(first, "weight")), grad, sizeof grad) !=
        TN_OK)
        return false;
    for (int o = 0; o < WIDE; o++)
        for (int i = 0; i < WIDE; i++)
            apart = larger_of(apart, grad[o][i] - plain[0].weight_grad[o][i]);
    if (!(apart <= 1e-4f))
        fprintf(stderr, "dispatch: the gradients of the MLP in C differ by %g\n", (double)apart);
    return apart <= 1e-4f;
}

static const struct {
    const char *name, *words;
    void (*run)(void);
    int parts; /* what is printed is the cost of one of so many */
} cases[] = {
    { "add", "add", add, 1 },
    { "add-gradient", "add, recorded", add_with_gradient, 1 },
    { "mul-gradient", "mul, recorded, operands saved", mul_with_gradient, 1 },
    { "add-in-place", "add in place", add_in_place, 1 },
    { "add-call", "add by tn_op_call", add_by_name, 1 },
    { "add-prepared", "add by tn_prepared_run", add_prepared, 1 },
    { "add-prepared-into", "add by tn_prepared_run_into", add_prepared_into, 1 },
    { "sum", "sum", sum, 1 },
    { "view", "view", view, 1 },
    { "select", "select", select_row, 1 },
    { "transpose", "transpose", transpose, 1 },
    { "module", "a module of a Sequential of ten", pass_ten, 10 },
    { "linear", "Linear(4, 3) of a row, recorded", call_linear, 1 },
    { "plan", "a plan of one step that does nothing", plan_of_one, 1 },
    { "plan-step", "a step of a plan of 100 of them", plan_of_many, STEPS },
    { "mul-backward", "mul and sum, forward and backward", mul_and_back, 1 },
    { "linear-backward", "Linear(4, 3) and sum, forward and backward", linear_and_back, 1 },
    { "mlp-backward", "MLP 64-64-10 of a row, forward and backward", mlp_and_back, 1 },
    { "mlp-c", "the same as loops in C", mlp_in_c, 1 },
};
enum { CASES = (int)(sizeof cases / sizeof cases[0]) };

static double ours[CASES], peers[CASES];

/* ---- measuring ------------------------------------------------------------------ */

/* Drops each result before the next call, as a program does that computes step by step. */
static void repeat(int index, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t scope = tn_scope_begin();

        cases[index].run();
        tn_scope_end(scope);
    }
}

/* Callgrind counts what happens in here (tests/op/instructions.sh). */
__attribute__((noinline)) void counted(int index, int count);
void counted(int index, int count)
{
    repeat(index, count);
}

static int by_size(const void *x, const void *y)
{
    double p = *(const double *)x, q = *(const double *)y;

    return p < q ? -1 : p > q;
}

static double median(int index, int rounds)
{
    static double times[MAX_ROUNDS];

    repeat(index, BATCH);
    for (int i = 0; i < rounds; i++) {
        double start = now();

        repeat(index, BATCH);
        times[i] = (now() - start) / BATCH / cases[index].parts;
    }
    qsort(times, (size_t)rounds, sizeof times[0], by_size);
    return times[rounds / 2];
}

/* Lines "case nanoseconds". */
static int ask_peer(const char *python, const char *script)
{
    char command[4096], name[32];
    double time;
    FILE *pipe;

    if (snprintf(command, sizeof command, "'%s' '%s'", python, script) >= (int)sizeof command)
        return 1;
    pipe = popen(command, "r");
    if (pipe == NULL)
        return 1;
    while (fscanf(pipe, "%31s %lf", name, &time) == 2)
        for (int i = 0; i < CASES; i++)
            if (strcmp(name, cases[i].name) == 0)
                peers[i] = time;
    return pclose(pipe) != 0;
}

/* ---- the program ---------------------------------------------------------------- */

static tn_tensor *pass_on(tn_module *self, tn_tensor *input)
{
    (void)self;
    return input;
}

static const tn_layer_def pass = { TN_HEAD(tn_layer_def), .name = "Pass", .forward = pass_on };

/* An operator whose kernel does nothing. */
static tn_status nothing_infer(tn_infer *infer)
{
    infer->out[0].dtype = TN_F32;
    infer->out[0].ndim = 1;
    infer->out[0].shape[0] = 4;
    return TN_OK;
}

static tn_status nothing_run(const tn_call *call)
{
    (void)call;
    return TN_OK;
}

static const tn_operand nothing_in[] = { { "x", 0, TN_MASK_FLOAT } };
static const tn_operand nothing_out[] = { { "y", 0, 0 } };
static const tn_op_def nothing = {
    TN_HEAD(tn_op_def), .name = "bench_nothing", .math = "y = ?",        .help = "",
    .revision = 1,      .inputs = nothing_in,    .outputs = nothing_out, .n_inputs = 1,
    .n_outputs = 1,     .dispatch_input = 0,     .infer = nothing_infer
};
static const tn_kernel_def nothing_kernel = TN_KERNEL("bench_nothing", "cpu", "nothing",
                                                      TN_MASK_FLOAT, nothing_run);

static tn_plan *plan_nothing(int count)
{
    tn_graph *graph = tn_graph_new();
    tn_node *node = tn_graph_input(graph, "x", TN_SHAPE(4), TN_F32);
    tn_plan *plan = NULL;

    for (int i = 0; i < count; i++)
        node = tn_graph_add_op(graph, NULL, "bench_nothing", &node, 1);
    if (tn_graph_output(graph, &node, 1) == TN_OK)
        plan = tn_plan_new(graph, NULL);
    tn_graph_drop(graph);
    return plan;
}

static int prepare(void)
{
    static const float values[4] = { 1, 2, 3, 4 };

    a = tn_tensor_from(values, TN_F32, TN_SHAPE(4));
    b = tn_tensor_from(values, TN_F32, TN_SHAPE(4));
    leaf = tn_tensor_from(values, TN_F32, TN_SHAPE(4));
    square = tn_tensor_from(values, TN_F32, TN_SHAPE(2, 2));
    row = tn_tensor_from(values, TN_F32, TN_SHAPE(1, 4));
    result = tn_tensor_from(values, TN_F32, TN_SHAPE(4));
    add_op = tn_op_find("add", 0);
    add_kept = tn_op_prepare(add_op, (tn_tensor *[]){ a, b }, 2, NULL, 0);
    tn_tensor_set_requires_grad(leaf, true);
    tn_register(&pass);
    ten = tn_module_parse("Sequential(Pass(), Pass(), Pass(), Pass(), Pass(), Pass(), Pass(), "
                          "Pass(), Pass(), Pass())");
    linear = tn_module_parse("Linear(4, 3)");
    mlp = tn_module_parse("Sequential(Linear(64, 64), ReLU(), Linear(64, 10))");
    features = tn_rand(TN_SHAPE(1, WIDE));
    tn_register(&nothing);
    tn_register(&nothing_kernel);
    one_step = plan_nothing(1);
    steps = plan_nothing(STEPS);
    return tn_failed() || !prepare_plain();
}

static int fail(void)
{
    fprintf(stderr, "dispatch: %s\n", tn_error_text());
    return 1;
}

/* Prints how the program is called, after a message with `what` and `given` unless `what` is
 * NULL. */
static int usage(const char *what, const char *given)
{
    if (what != NULL)
        fprintf(stderr, "dispatch: %s \"%s\"\n", what, given);
    fprintf(stderr,
            "usage: dispatch [--peer PYTHON SCRIPT] [--rounds N] [--only CASE] [--instructions N]\n"
            "cases:");
    for (int i = 0; i < CASES; i++)
        fprintf(stderr, " %s", cases[i].name);
    fprintf(stderr, "\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *python = NULL, *script = NULL, *only = NULL;
    int rounds = 201, instructions = 0, first = 0, last = CASES - 1;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--peer") == 0 && i + 2 < argc) {
            python = argv[++i];
            script = argv[++i];
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            rounds = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else if (strcmp(argv[i], "--instructions") == 0 && i + 1 < argc) {
            instructions = atoi(argv[++i]);
        } else {
            return strcmp(argv[i], "--help") == 0
                       ? usage(NULL, NULL)
                       : usage("unknown, or without what it takes:", argv[i]);
        }
    }
    if (rounds < 1 || rounds > MAX_ROUNDS)
        rounds = MAX_ROUNDS;
    if (only != NULL) {
        while (first < CASES && strcmp(cases[first].name, only) != 0)
            first++;
        if (first == CASES)
            return usage("there is no case", only);
        last = first;
    }
    if (prepare())
        return fail();
    for (int i = first; i <= last; i++)
        repeat(i, 100);
    if (instructions > 0) {
        for (int i = first; i <= last; i++)
            counted(i, instructions);
        return tn_failed() ? fail() : 0;
    }
    for (int i = first; i <= last; i++)
        ours[i] = median(i, rounds);
    if (tn_failed())
        return fail();
    if (python != NULL && ask_peer(python, script) != 0) {
        fprintf(stderr, "dispatch: %s could not measure PyTorch\n", python);
        return 1;
    }
    printf("%-43s %10s", "4 elements of float32, ns a call", "Tenon");
    printf(python != NULL ? "    PyTorch  ratio\n" : "\n");
    for (int i = first; i <= last; i++) {
        printf("%-43s %10.*f", cases[i].words, ours[i] < 10 ? 1 : 0, ours[i]);
        if (peers[i] > 0)
            printf(" %10.0f %6.3f", peers[i], ours[i] / peers[i]);
        printf("\n");
    }
    tn_prepared_drop(add_kept);
    tn_plan_drop(one_step);
    tn_plan_drop(steps);
    tn_module_drop(ten);
    tn_module_drop(linear);
    tn_module_drop(mlp);
    return tn_failed() ? fail() : 0;
}
