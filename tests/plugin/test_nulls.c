/* SPDX-License-Identifier: MIT
 *
 * Every function that libtenon exports, with NULL for all its pointers and for each in turn. A NULL
 * that the tags of the function do not allow ([null-ok], [array]) must fail with a message; no call
 * may end the process. The calls are generated from the headers (nulls.pl), so that a new function
 * is tested without a change here. */
#include "tests/libcheck.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>
#include <tenon/query.h>

/* Which pointer is NULL: its number, or all. */
enum { ALL = -1, MOST_POINTERS = 12 };

struct row {
    const char *name;
    bool (*call)(int null); /* returns whether the result of the function is that of a failure */
    int count;
    bool alone; /* only all as NULL: valid arguments exist only in a callback */
    const char *names[MOST_POINTERS];
    bool may[MOST_POINTERS]; /* be NULL */
};

/* ---- samples --------------------------------------------------------------------------------- */

static _Alignas(64) char given_bytes[4096];
static const int64_t two[] = { 2, 2 };
static const tn_ints given_shape = { two, 2 };
static const char *const given_names[] = { "a", "b" };
static const tn_value given_dict = { .kind = TN_VALUE_DICT };
static const tn_value given_values[2] = { { .kind = TN_VALUE_INT }, { .kind = TN_VALUE_INT } };
static tn_op_ref given_ref = { "relu", 0, NULL };
static const tn_backward_options given_backward = { .size = sizeof given_backward };
static const tn_tracing_options given_trace = { .size = sizeof given_trace };
static const tn_plan_options given_plan = { .size = sizeof given_plan };
static const tn_step_options given_step = TN_STEP_OPTIONS;
static const tn_walk_options given_walk = { .size = sizeof given_walk };

static int64_t given_function(void)
{
    return 0;
}

static tn_status custom_forward(tn_function_ctx *ctx, void *user, tn_tensor *const *in,
                                tn_tensor **out)
{
    (void)ctx, (void)user;
    out[0] = tn_mul_scalar(in[0], 2.0);
    return out[0] != NULL ? TN_OK : tn_error_last_code();
}

static tn_status custom_backward(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                                 tn_tensor **gin)
{
    (void)ctx, (void)user;
    gin[0] = gout[0];
    return TN_OK;
}

static const tn_function given_custom = { .name = "twice",
                                          .forward = custom_forward,
                                          .backward = custom_backward };

static tn_tensor *computed_get(void *user, tn_module *module, const char *name)
{
    (void)user, (void)module, (void)name;
    return tn_tensor_full(given_shape, 1.0, TN_F32, NULL);
}

static const tn_computed given_computed = { .get = computed_get };

static tn_tensor *layer_forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    return input;
}

static const tn_layer_def given_layer = { TN_HEAD(tn_layer_def), .name = "Given",
                                          .forward = layer_forward };

static tn_status source_read(void *user, uint64_t offset, void *to, size_t bytes)
{
    (void)user, (void)offset;
    memset(to, 0, bytes);
    return TN_OK;
}

static const tn_source given_source = { NULL, 4096, "given", source_read };

static tn_status sink_write(void *user, const void *from, size_t bytes)
{
    (void)user, (void)from, (void)bytes;
    return TN_OK;
}

static const tn_sink given_sink = { NULL, "given", sink_write };
static const tn_plugin given_plugin = { TN_HEAD(tn_plugin), .id = "given", .version = "1" };
static const tn_interface_need given_need = { "given.x", 0, 0, 8, 0 };

static tn_tensor *given_tensor(void)
{
    return tn_tensor_full(given_shape, 1.0, TN_F32, NULL);
}

static tn_tensor *const *given_tensors(void)
{
    static tn_tensor *list[8];
    for (int i = 0; i < 8; i++)
        list[i] = given_tensor();
    return list;
}

static tn_module *given_module(const char *text)
{
    return tn_module_parse(text);
}

static tn_pack *given_pack(void)
{
    tn_pack *pack = tn_pack_new();
    tn_pack_add(pack, NULL, tn_value_tensor(given_tensor()));
    return pack;
}

static tn_state *given_state(void)
{
    tn_state *state = tn_state_new();
    tn_state_set(state, "a", given_tensor());
    return state;
}

static tn_names *given_list(void)
{
    return tn_load_report_missing(tn_load_report_new());
}

static tn_optimizer *given_optimizer(void)
{
    static tn_module *volatile net; /* the optimizer keeps its parameters only */
    net = given_module("Linear(2, 2)");
    return tn_optimizer_new(net, "SGD(lr=0.1)");
}

static tn_graph *given_graph(void)
{
    tn_graph *graph = tn_graph_new();
    tn_node *node = tn_graph_input(graph, "in", given_shape, TN_F32);
    node = tn_graph_add_op(graph, NULL, "relu()", &node, 1);
    tn_graph_output(graph, &node, 1);
    return graph;
}

static tn_graph *const *given_graphs(void)
{
    static tn_graph *list[1];
    list[0] = given_graph();
    return list;
}

static tn_node *given_node(void)
{
    return tn_graph_find(given_graph(), "relu");
}

static tn_node *const *given_nodes(void)
{
    static tn_node *list[1];
    list[0] = given_node();
    return list;
}

static tn_status comm_open(const tn_comm_def *self, const tn_comm_args *args, void **comm)
{
    (void)self, (void)args;
    *comm = given_bytes;
    return TN_OK;
}

static void comm_close(void *comm)
{
    (void)comm;
}

static tn_status comm_wait(const tn_comm_call *call)
{
    (void)call;
    return TN_OK;
}

static const tn_comm_def given_transport = { TN_HEAD(tn_comm_def), .name = "given",
                                             .open = comm_open, .close = comm_close,
                                             .barrier = comm_wait };
static const tn_comm_args given_group = { TN_HEAD(tn_comm_args), .size = 1 };

static tn_comm *given_comm(void)
{
    return tn_comm_new("given", &given_group);
}

static tn_work *given_work(void)
{
    return tn_comm_start(given_comm(), TN_EXCHANGE_BARRIER, NULL, NULL, 0, 0);
}

static tn_dataset *given_dataset(void)
{
    return tn_dataset_of_tensors(given_tensors(), 1);
}

#include "tests/plugin/nulls.h"

enum { ROWS = sizeof rows / sizeof rows[0] };

/* ---- one function in a process of its own ---------------------------------------------------- */

struct shared {
    int null; /* the call that is being made */
    int refused;
    char words[8192];
};

static void complain(struct shared *shared, const char *name, const char *argument,
                     const char *what)
{
    size_t used = strlen(shared->words);
    snprintf(shared->words + used, sizeof shared->words - used, "%s, %s NULL: %s\n", name, argument,
             what);
}

static void try(struct shared *shared, const struct row *row, int null)
{
    bool may = null != ALL && row->may[null];
    for (int i = 0; null == ALL && i < row->count; i++)
        may = i == 0 ? row->may[i] : may && row->may[i];
    const char *argument = null == ALL ? "all" : row->names[null];
    shared->null = null;
    bool nothing = row->call(null);
    if (may)
        return;
    shared->refused++;
    if (!nothing)
        complain(shared, row->name, argument, "the result is not that of a failure");
    if (!tn_failed())
        complain(shared, row->name, argument, "no error was recorded");
    else if (strlen(tn_error_text()) < 10)
        complain(shared, row->name, argument, "the error has no words");
}

/* Appends what was wrong to `all`; returns how many calls were refused as they should. */
static int try_all(const struct row *row, struct shared *shared, char *all, size_t size)
{
    int status;
    *shared = (struct shared){ .null = ALL };
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(20);
        tn_scope_begin();
        try(shared, row, ALL);
        for (int i = 0; !row->alone && i < row->count; i++)
            try(shared, row, i);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        complain(shared, row->name, shared->null == ALL ? "all" : row->names[shared->null],
                 "the process ended");
    size_t used = strlen(all);
    snprintf(all + used, size - used, "%s", shared->words);
    return shared->refused;
}

START_TEST(null_is_refused_with_words_where_the_tags_do_not_allow_it)
{
    static char all[1 << 20];
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int refused = 0;
    ck_assert(shared != MAP_FAILED);
    setenv("TENON_LOG", "off", 1);
    setenv("TENON_NUM_THREADS", "1", 1);
    ck_assert_int_gt(tn_op_count(), 100);
    ck_assert_int_eq(tn_register(&given_transport), TN_OK);
    tn_module_drop(given_module("Linear(2, 2)")); /* everything is loaded before the forks */
    for (int i = 0; i < ROWS; i++)
        refused += try_all(&rows[i], shared, all, sizeof all);
    fputs(all, stderr); /* longer than libcheck's messages may be */
    ck_assert_msg(!all[0], "%.1000s", all);
    ck_assert_int_gt(ROWS, 250);
    ck_assert_int_gt(refused, 400);
}
END_TEST

START_TEST(the_samples_are_there)
{
    static const void
        *volatile samples[11]; /* kept to the end of the process, where LeakSanitizer looks */
    setenv("TENON_NUM_THREADS", "1", 1);
    samples[0] = given_tensor();
    samples[1] = given_tensors()[7];
    samples[2] = given_pack();
    samples[3] = given_state();
    samples[4] = given_list();
    samples[5] = given_optimizer();
    samples[6] = given_module("ModuleDict(a=Linear(2, 2))");
    samples[7] = given_module("ModuleList(Linear(2, 2))");
    ck_assert_int_eq(tn_register(&given_transport), TN_OK);
    samples[8] = given_comm();
    samples[9] = given_nodes()[0];
    samples[10] = given_dataset();
    for (int i = 0; i < 11; i++)
        ck_assert_msg(samples[i] != NULL, "sample %d: %s", i, tn_error_text());
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("NULL arguments");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 300);
    tcase_add_test(all, null_is_refused_with_words_where_the_tags_do_not_allow_it);
    tcase_add_test(all, the_samples_are_there);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
