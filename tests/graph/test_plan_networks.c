/* SPDX-License-Identifier: MIT
 *
 * The networks of networks.h, eagerly, as traced graphs, as graphs that are read back from their
 * texts, and as plans: results in evaluation, and losses, results, gradients, parameters and
 * buffers after each training step have the same bits. With TN_GRAPH_STEPS=100 in the environment
 * (make graph-networks) it takes a hundred steps, with the networks of bench/ in their widths. */
#include "tests/graph/networks.h"

#include "tests/graph/other_passes.h"
#include "tests/graph/plan_training.h"

#define EXACT "constants, cse, dead"

static int64_t steps = 2;
static bool whole; /* a hundred steps */
static int networks, trainings, evaluations;

/* ---- inputs ---------------------------------------------------------------------------------- */

static tn_tensor *integers(tn_ints shape, int64_t of, int64_t from)
{
    int64_t count = 1, *values;
    tn_tensor *tensor;

    for (int64_t i = 0; i < shape.count; i++)
        count *= shape.at[i];
    values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (i * 7 + from) % of;
    tensor = tn_tensor_from(values, TN_I64, shape);
    free(values);
    return tensor;
}

/* The inputs of a network: one, and 24 more if it has a cache. Returns how many. */
static int64_t inputs_of(const struct network *network, int64_t from, tn_tensor **in)
{
    tn_ints shape = { network->shape, network->ndim };

    in[0] = network->words > 0 ? integers(shape, network->words, from) : numbered(shape, (int)from);
    for (int i = 1; i <= 24 && network->cache[0] > 0; i++)
        in[i] = numbered((tn_ints){ network->cache, 4 }, i);
    return network->cache[0] > 0 ? 25 : 1;
}

/* Makes a table of a result for tokens (three dimensions); returns other results, such as images,
 * as they are. */
static tn_tensor *rows_of(tn_tensor *y)
{
    return tn_tensor_ndim(y) == 3 ? tn_flatten(y, 0, 1) : y;
}

static tn_tensor *target_of(const struct network *network, tn_tensor *y, int64_t from)
{
    int64_t sizes[4], count = 0;

    if (strstr(network->name, "dcgan") != NULL)
        return numbered(tn_tensor_shape(y), (int)from);
    y = rows_of(tn_detach(y));
    for (int64_t d = 0; d < tn_tensor_ndim(y); d++)
        if (d != 1)
            sizes[count++] = tn_tensor_size(y, d);
    return integers((tn_ints){ sizes, count }, tn_tensor_size(y, 1), from);
}

static tn_status call_loss(tn_module *self, const tn_pack *in, tn_pack *out)
{
    tn_tensor *y = tn_pack_tensor(in, 0), *target = tn_pack_tensor(in, 1), *loss;

    (void)self;
    loss = tn_tensor_dtype(target) == TN_I64 ? tn_cross_entropy(rows_of(y), target)
                                             : tn_mse_loss(y, target);
    return loss != NULL ? tn_pack_add(out, NULL, tn_value_tensor(loss)) : tn_error_last_code();
}

/* ---- what a run leaves ----------------------------------------------------------------------- */

enum { EAGER, GRAPH, TEXT, PLAN, STEP, WAYS };
static const char *const ways[WAYS] = { "eager", "graph", "graph read back", "plan(train=True)",
                                        "whole step" };

/* A number for the bits of each tensor after each step: loss, result, states, gradients. */
struct record {
    uint64_t *bits;
    int64_t count, room;
    bool compares; /* with what is there, in place of writing it */
    const char *name, *rule, *way;
    int64_t step;
};

static uint64_t bits_of(tn_tensor *tensor)
{
    size_t bytes = (size_t)tn_tensor_numel(tensor) * tn_dtype_size(tn_tensor_dtype(tensor));
    uint64_t sum = bytes, word = 0;
    char *copy = NULL;
    const char *at;

    if (!tn_tensor_is_contiguous(tensor)) {
        copy = malloc(bytes + 1);
        ck_ok(tn_tensor_copy_out(tn_detach(tensor), copy, bytes));
    }
    at = copy != NULL ? copy : tn_tensor_data(tn_detach(tensor));
    for (size_t i = 0; i < bytes; i += 8) {
        word = 0;
        memcpy(&word, at + i, bytes - i < 8 ? bytes - i : 8);
        sum = (sum ^ word) * 0x9E3779B97F4A7C15U;
        sum ^= sum >> 29;
    }
    free(copy);
    return sum;
}

static void keep(struct record *r, uint64_t bits, const char *what)
{
    if (r->compares) {
        ck_assert_int_lt(r->count, r->room);
        ck_assert_msg(r->bits[r->count] == bits, "%s, %s, %s: step %lld: other bits of %s", r->name,
                      r->rule, r->way, (long long)r->step, what);
    } else {
        if (r->count == r->room) {
            r->room += 4096;
            r->bits = realloc(r->bits, (size_t)r->room * sizeof *r->bits);
            ck_assert_ptr_nonnull(r->bits);
        }
        r->bits[r->count] = bits;
    }
    r->count++;
}

static tn_status keep_tensor(void *user, const char *path, tn_tensor *tensor)
{
    keep(user, bits_of(tensor), path);
    return TN_OK;
}

/* Keeps or compares a gradient. A whole step leaves no gradients: there it only counts. */
static tn_status keep_gradient(void *user, const char *path, tn_tensor *tensor)
{
    struct record *r = user;
    tn_tensor *gradient = tn_tensor_grad(tensor);
    char what[256];

    if (r->way == ways[STEP]) {
        r->count++;
        return TN_OK;
    }
    snprintf(what, sizeof what, "the gradient of %s", path);
    ck_assert_msg(gradient != TN_NONE, "%s, %s: there is no %s", r->name, r->way, what);
    keep(r, bits_of(gradient), what);
    return TN_OK;
}

static void keep_step(struct record *r, tn_module *net, tn_tensor *loss, tn_tensor *y)
{
    uint64_t draws[3];

    keep(r, bits_of(loss), "the loss");
    keep(r, bits_of(y), "the result");
    ck_ok(tn_random_get_state(draws));
    keep(r, draws[1], "the random numbers");
    ck_ok(tn_module_each_tensor(net, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, false, keep_tensor, r));
    ck_ok(tn_module_each_tensor(net, TN_SLOT_PARAMETER, false, keep_gradient, r));
}

/* ---- training -------------------------------------------------------------------------------- */

static tn_graph *read_back(const tn_graph *graph, tn_module *root, const char *form)
{
    tn_state *constants = tn_graph_constants(graph);
    char *text = printed(graph, "text"), *given = printed(graph, form), *again;
    tn_graph *read = tn_graph_parse(given, root, constants);

    ck_made(read);
    again = printed(read, "text");
    ck_assert_str_eq(again, text);
    free(again);
    free(given);
    free(text);
    tn_state_drop(constants);
    return read;
}

/* The module that is called for a network: itself, or one that runs its graph. */
static tn_module *callee_of(tn_module *net, tn_tensor *x, int way)
{
    tn_graph *graph = way == GRAPH || way == TEXT ? traced(net, x, TN_TRACE_THROUGH) : NULL;
    tn_module *made;

    if (graph == NULL)
        return tn_module_keep(net);
    if (way == TEXT) {
        tn_graph *read = read_back(graph, net, "text");

        tn_graph_drop(graph);
        graph = read;
    }
    made = tn_graph_module(graph);
    ck_made(made);
    tn_graph_drop(graph);
    return made;
}

/* Fails unless plans were made and used; otherwise eager calls would be compared with eager
 * calls. */
static void check_plans(tn_module *net, tn_step *whole_step, const char *name)
{
    tn_plan_stats stats;

    if (whole_step != NULL) {
        ck_ok(tn_step_describe(whole_step, &stats));
        ck_assert_int_eq(stats.bindings, 1);
        return;
    }
    ck_assert_msg(strstr(plans_of(net), "run eagerly") == NULL, "%s: %s", name, plans_of(net));
    ck_assert_msg(plans_made(net) == 1, "%s: %s", name, plans_of(net));
}

static tn_module *loss_module(void)
{
    tn_module *loss = tn_module_plain("Loss");

    ck_ok(tn_module_set_call(loss, call_loss, NULL, NULL));
    return loss;
}

static void train(const struct network *network, int way, struct record *r)
{
    tn_module *net = new_network(network), *callee, *loss = loss_module();
    tn_optimizer *rule = tn_optimizer_new(net, "%s", r->rule);
    tn_step *step = NULL;
    double last = 0;

    ck_made(rule);
    r->way = ways[way];
    r->count = 0;
    { /* a scope for what the trace needs */
        TN_SCOPE;
        tn_tensor *x;

        inputs_of(network, 0, &x);
        ck_ok(tn_module_train(net, true));
        callee = callee_of(net, x, way);
    }
    if (way == PLAN)
        ck_ok(tn_module_compile(net, TRAIN));
    if (way == STEP)
        ck_made(step = tn_step_new(net, loss, rule, NULL));
    for (r->step = 0; r->step < steps; r->step++) {
        TN_SCOPE;
        tn_tensor *in[2], *out[2];

        inputs_of(network, r->step, in);
        tn_random_seed((uint64_t)r->step);
        if (way != STEP) {
            ck_ok(tn_module_zero_grad(net));
            out[1] = call_of(callee, in[0]);
            ck_assert_msg(out[1] != NULL, "%s, %s: %s", network->name, r->way, tn_error_text());
            in[0] = out[1];
            in[1] = target_of(network, out[1], r->step);
            ck_ok(tn_module_call_many(loss, in, 2, out, 1));
            ck_ok(tn_backward(out[0]));
            ck_ok(tn_optimizer_step(rule));
        } else {
            tn_tensor *y;

            ck_ok(tn_grad_begin(false)); /* only for the shape of the target */
            ck_ok(tn_module_eval(net));
            y = call_of(net, in[0]);
            ck_ok(tn_module_train(net, true));
            tn_grad_end();
            in[1] = target_of(network, y, r->step);
            tn_random_seed((uint64_t)r->step);
            ck_assert_msg(tn_step_run(step, in, 2, out, 2) == TN_OK, "%s: %s", network->name,
                          tn_error_text());
        }
        keep_step(r, net, out[0], out[1]);
        last = tn_item(tn_detach(out[0]));
    }
    if (!r->compares)
        ck_assert_msg(isfinite(last), "%s, %s: the loss is %g", network->name, r->rule, last);
    if (way == PLAN || way == STEP)
        check_plans(net, step, network->name);
    tn_step_drop(step);
    tn_optimizer_drop(rule);
    tn_module_drop(callee);
    tn_module_drop(loss);
    tn_module_drop(net);
    trainings++;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static void check_result(tn_tensor *got, tn_tensor *expected, const struct network *network,
                         const char *way)
{
    ck_assert_msg(got != NULL, "%s, %s: %s", network->name, way, tn_error_text());
    ck_assert_msg(bits_of(got) == bits_of(expected), "%s, %s: other bits", network->name, way);
}

static tn_tensor *graph_result(tn_graph *graph, tn_tensor *const *in, int64_t n_in)
{
    tn_tensor *out = NULL;

    return tn_graph_run(graph, in, n_in, &out, 1) == TN_OK ? out : NULL;
}

static tn_pack *packed(tn_tensor *const *in, int64_t n_in)
{
    tn_pack *pack = tn_pack_new();

    for (int64_t i = 0; i < n_in; i++)
        ck_ok(tn_pack_add(pack, NULL, tn_value_tensor(in[i])));
    return pack;
}

static tn_tensor *result_of(tn_module *net, const tn_pack *in)
{
    tn_pack *out = tn_pack_new();
    tn_tensor *y = NULL;

    if (tn_module_call_pack(net, in, out) == TN_OK)
        y = tn_tensor_to_scope(tn_tensor_keep(tn_pack_tensor(out, 0)));
    tn_pack_drop(out);
    return y;
}

static void check_plan(const tn_graph *graph, const char *passes, tn_tensor *const *in,
                       int64_t n_in, tn_tensor *expected, const struct network *network)
{
    tn_plan *plan = plan_of(graph, 1, passes);
    tn_plan_stats stats;

    ck_assert_msg(plan != NULL, "%s: %s", network->name, tn_error_text());
    for (int i = 0; i < 2; i++) {
        tn_tensor *out = NULL;

        ck_assert_msg(tn_plan_run(plan, in, n_in, &out, 1) == TN_OK, "%s: %s", network->name,
                      tn_error_text());
        check_result(out, expected, network, "plan of a graph");
    }
    ck_ok(tn_plan_describe(plan, &stats));
    /* of DenseNets 1.06 to 1.12, of all others nearly 1 */
    ck_assert_msg(100 * stats.bytes <= 112 * stats.bytes_least,
                  "%s, passes %s: a slab of %lld bytes for %lld", network->name,
                  passes != NULL ? passes : "none", (long long)stats.bytes,
                  (long long)stats.bytes_least);
    tn_plan_drop(plan);
}

/* Passes that may round in another way. */
static struct other_pass others[] = {
    { "dropout, conv_bn, linear_bn, epilogue, dead", NULL, 0 },
    { "decompose", "fuse", 0 },
    { NULL, "fuse", 0 },
};
#define OTHERS ((int64_t)(sizeof others / sizeof *others))

static int64_t call_packed(tn_module *net, tn_tensor **out, void *user)
{
    out[0] = result_of(net, user);
    return out[0] != NULL ? 1 : -1;
}

static void evaluate(const struct network *network)
{
    TN_SCOPE;
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_module *net = new_network(network);
    tn_tensor *in[25], *y;
    int64_t n_in = inputs_of(network, 3, in);
    tn_pack *pack = packed(in, n_in);
    tn_graph *graph, *read;

    ck_ok(tn_grad_begin(false));
    ck_assert_msg(result_of(net, pack) != NULL, "%s: %s", network->name, tn_error_text());
    ck_ok(tn_module_eval(net));
    y = result_of(net, pack); /* with the statistics of the call before */
    how.flags = TN_TRACE_THROUGH;
    graph = tn_module_trace_pack(net, pack, &how);
    ck_assert_msg(graph != NULL, "%s: %s", network->name, tn_error_text());
    check_result(graph_result(graph, in, n_in), y, network, "graph");
    read = read_back(graph, net, "text");
    check_result(graph_result(read, in, n_in), y, network, "text read back");
    check_plan(read, EXACT, in, n_in, y, network);
    tn_graph_drop(read);
    read = read_back(graph, net, "code");
    check_result(graph_result(read, in, n_in), y, network, "code read back");
    tn_graph_drop(read);
    try_passes(graph, others, OTHERS, call_packed, pack, network->name);
    ck_ok(tn_module_compile(net, "plan()"));
    for (int i = 0; i < 2; i++)
        check_result(result_of(net, pack), y, network, "plan()");
    ck_assert_int_eq(plans_made(net), 1);
    tn_grad_end();
    tn_graph_drop(graph);
    tn_pack_drop(pack);
    tn_module_drop(net);
    evaluations++;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void check_network(const struct network *network)
{
    static const char *const rules[] = { "SGD(lr=0.01, momentum=0.9)", "AdamW(lr=0.001)" };

    networks++;
    evaluate(network);
    for (int k = 0; k < 2 && network->cache[0] == 0; k++) {
        struct record r = { .name = network->name, .rule = rules[k] };

        for (int way = 0; way < WAYS; way++) {
            train(network, way, &r);
            r.room = r.compares ? r.room : r.count;
            ck_assert_int_eq(r.count, r.room);
            r.compares = true;
        }
        free(r.bits);
    }
    if (whole) {
        printf("%s: %lld steps\n", network->name, (long long)steps);
        fflush(stdout);
    }
}

START_TEST(networks_give_the_same_bits_in_all_ways)
{
    each_network(check_network, whole);
    printf("networks: %d, evaluations: %d, trainings of %lld steps: %d\n", networks, evaluations,
           (long long)steps, trainings);
    for (int64_t i = 0; i < OTHERS; i++) {
        printf("  %s %s: %d graphs changed\n", others[i].passes != NULL ? others[i].passes : "",
               others[i].compiler != NULL ? others[i].compiler : "", others[i].changed);
        ck_assert_int_gt(others[i].changed, 0);
    }
    ck_assert_int_eq(failed_passes, 0);
    ck_assert_int_eq(networks, 12 + 16 + 19);
    ck_assert_int_eq(evaluations, networks);
    ck_assert_int_eq(trainings, (networks - 1) * 2 * WAYS);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { networks_give_the_same_bits_in_all_ways, NULL };

    if (getenv("TN_GRAPH_STEPS") != NULL) {
        steps = strtoll(getenv("TN_GRAPH_STEPS"), NULL, 10);
        whole = true;
    }
    return suite_run_for("plan networks", tests, whole ? 0 : 600);
}
