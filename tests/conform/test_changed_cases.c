/* SPDX-License-Identifier: MIT
 *
 * Cases of operators (tests/oracle) with one option or input changed at random: counts, ranks,
 * sizes near 2^63, -1, empty tensors, dtypes, the lengths of lists. Each call must return, with a
 * result whose elements can be read or with a message. Of use in a build with sanitizers.
 *
 *   test_changed_cases [--seed N] [--seconds N | --count N]   without: a few, the same ones
 *   test_changed_cases --ends N                               each option of each operator at the
 *                                                             ends of its range, in N of its cases
 *   test_changed_cases --one N                                change N alone, in this process
 *
 * The calls run in processes of their own; one that dies is a failure, and names its change. */
#include "changed_values.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sdk/conform/reference.h"

enum {
    MOST_CASES = 1 << 15,
    EACH = 400,
    CALL_SECONDS = 20,
    WAIT_SECONDS = 600,
    MOST_FAILURES = 25,
    FEW = 3000
};
static const size_t most_bytes = (size_t)1 << 26;

/* For AddressSanitizer: an allocation that is too large fails, as malloc does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=256";
}

/* ---- the cases: their texts, sorted by operator ---- */

typedef struct text_case {
    const char *op, *text;
    size_t length;
} text_case;

static text_case cases[MOST_CASES];
static int64_t n_cases, starts[1024], n_starts; /* where the cases of each operator begin */

static void give_up(const char *why)
{
    fprintf(stderr, "test_changed_cases: %s\n", why);
    exit(2);
}

/* Returns a file as a text, which lives as long as the process. */
static char *whole_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;

    if (file == NULL || getdelim(&text, &size, '\0', file) < 0)
        give_up(path);
    fclose(file);
    return text;
}

/* Cuts a file into its cases: the lines from `case` to the next one. */
static void cut_file(char *text)
{
    for (char *at = text, *next; at != NULL; at = next) {
        char *op = strstr(at, "\nop "), *end;

        next = strstr(at + 1, "\ncase ");
        if (strncmp(at + (*at == '\n'), "case ", 5) != 0 || op == NULL ||
            (next != NULL && op > next))
            continue;
        end = next != NULL ? next : at + strlen(at);
        if (n_cases == MOST_CASES)
            give_up("too many cases");
        cases[n_cases].text = at + (*at == '\n');
        cases[n_cases].length = (size_t)(end - cases[n_cases].text);
        cases[n_cases++].op = strndup(op + 4, strcspn(op + 4, "\r\n"));
    }
}

static int by_operator(const void *a, const void *b)
{
    return strcmp(((const text_case *)a)->op, ((const text_case *)b)->op);
}

static void find_cases(void)
{
    struct dirent **entries = NULL;
    int count = scandir(TN_TEST_SRCDIR "/tests/oracle", &entries, conform_is_text, alphasort);

    for (int i = 0; i < count; i++) {
        int64_t before = n_cases;
        char path[4096], *text;

        snprintf(path, sizeof path, TN_TEST_SRCDIR "/tests/oracle/%s", entries[i]->d_name);
        text = whole_file(path);
        cut_file(text);
        if (n_cases == before)
            free(text);
        free(entries[i]);
    }
    free(entries);
    qsort(cases, (size_t)n_cases, sizeof *cases, by_operator);
    for (int64_t i = 0; i < n_cases; i++)
        if (i == 0 || strcmp(cases[i].op, cases[i - 1].op) != 0)
            starts[n_starts++] = i;
    if (n_starts < 300)
        give_up("too few operators have cases");
}

/* ---- one call ---- */

static void *small_alloc(void *user, size_t size, size_t alignment)
{
    void *block = NULL;

    (void)user;
    if (size > most_bytes ||
        posix_memalign(&block, alignment < 16 ? 16 : alignment, size > 0 ? size : 1) != 0)
        return NULL;
    return block;
}

static void small_free(void *user, void *block, size_t size, size_t alignment)
{
    (void)user;
    (void)size;
    (void)alignment;
    free(block);
}

static void *small_resize(void *user, void *block, size_t old_size, size_t size, size_t alignment)
{
    void *moved = small_alloc(user, size, alignment);

    if (moved == NULL)
        return NULL;
    if (block != NULL)
        memcpy(moved, block, old_size < size ? old_size : size);
    free(block);
    return moved;
}

enum {
    MODE_CALL,
    MODE_GRAD,
    MODE_DECOMPOSED,
    MODE_META,
    MODE_GRAPH,
    MODE_INTO,
    MODE_PREPARED,
    MODES
};
static const char *const mode_names[] = { "call",  "gradient", "decomposed", "meta",
                                          "graph", "into",     "prepared" };

/* Reads all elements, if there are not more than memory has. */
static void read_all(tn_tensor *t)
{
    size_t size;

    if (t == NULL || t == TN_NONE || tn_tensor_numel(t) > 1 << 20)
        return;
    size = (size_t)tn_tensor_numel(t) * tn_dtype_size(tn_tensor_dtype(t));
    char *bytes = malloc(size + 1);

    if (bytes != NULL && tn_tensor_copy_out(t, bytes, size) != TN_OK)
        tn_error_clear();
    free(bytes);
}

static void in_graph(const conform_case *one)
{
    tn_graph *graph = tn_graph_new();
    tn_node *in[65], *node;

    for (int64_t i = 0; i < one->n_in; i++) {
        char name[32];

        in[i] = TN_NODE_NONE;
        snprintf(name, sizeof name, "x%lld", (long long)i);
        if (one->in[i].there)
            in[i] = tn_graph_input(graph, name, (tn_ints){ one->in[i].shape, one->in[i].ndim },
                                   one->in[i].dtype);
    }
    node = tn_graph_add_call(graph, NULL, one->op, one->options, in, one->n_in);
    if (node != NULL) {
        char text[64];

        tn_graph_output(graph, &node, 1);
        tn_graph_lint(graph);
        tn_graph_print(graph, "text", text, sizeof text);
    }
    tn_graph_drop(graph);
}

/* Makes the inputs. Returns false if one cannot be made. */
static bool make_inputs(changed *c, int mode, const tn_device *device, tn_tensor **in)
{
    conform_layout layout = (conform_layout)changed_below(c, CONFORM_LAYOUTS);

    for (int64_t i = 0; i < c->one.n_in; i++) {
        const conform_tensor *t = &c->one.in[i];

        in[i] = c->null_input[i] ? NULL : TN_NONE;
        if (!t->there)
            continue;
        in[i] = c->huge ? tn_tensor_empty((tn_ints){ t->shape, t->ndim }, t->dtype, device)
                        : conform_tensor_make(t, t->dtype, device, layout, NULL);
        if (in[i] == NULL)
            return false;
        if (mode == MODE_GRAD && (is_float(t->dtype) || is_complex(t->dtype)) &&
            tn_tensor_set_requires_grad(in[i], true) != TN_OK)
            return false;
    }
    return true;
}

static void go_back(const tn_op_def *def, tn_tensor *const *in, int64_t n_in, tn_tensor *const *out)
{
    for (int32_t i = 0; i < def->n_outputs; i++) {
        if (out[i] == TN_NONE || !tn_tensor_requires_grad(out[i]))
            continue;
        tn_tensor *ones = tn_tensor_full(tn_tensor_shape(out[i]), 1.0, tn_tensor_dtype(out[i]),
                                         NULL);

        if (ones == NULL || tn_backward_from(&out[i], &ones, 1, NULL) != TN_OK)
            tn_error_clear();
        break;
    }
    for (int64_t i = 0; i < n_in; i++)
        if (in[i] != NULL && in[i] != TN_NONE)
            read_all(tn_tensor_grad(in[i]));
}

static tn_status run(changed *c, int mode, const tn_device *device, tn_tensor *const *in,
                     tn_tensor **out)
{
    const conform_case *one = &c->one;

    if (mode == MODE_INTO && one->n_in > 0) {
        tn_tensor *into = in[changed_below(c, one->n_in)];

        return into == NULL || into == TN_NONE
                   ? TN_OK
                   : tn_op_call_into(one->op, in, one->n_in, one->options, into);
    }
    if (mode == MODE_PREPARED) {
        tn_prepared *p = tn_op_prepare(one->op, in, one->n_in, one->options, changed_random(c));
        tn_status status = p == NULL ? tn_error_last_code()
                                     : tn_prepared_run(p, in, one->n_in, out, one->def->n_outputs);

        tn_prepared_drop(p);
        return status;
    }
    (void)device;
    return tn_op_call(one->op, in, one->n_in, one->options, out, one->def->n_outputs);
}

static bool gives_null(const changed *c)
{
    bool null = false;

    for (int64_t i = 0; i < c->one.n_in; i++)
        null |= c->null_input[i];
    return null;
}

static void call(changed *c, int mode)
{
    TN_SCOPE;
    const tn_op_def *def = c->one.def;
    const tn_device *device = tn_device_find(mode == MODE_DECOMPOSED ? "reference"
                                             : mode == MODE_META     ? "meta"
                                                                     : "cpu");
    tn_tensor *in[65] = { NULL }, *out[TN_MAX_OPERANDS] = { NULL };

    if (device == NULL || tn_device_begin(device) != TN_OK)
        give_up(tn_error_text());
    if (mode == MODE_GRAPH) {
        in_graph(&c->one);
    } else if (make_inputs(c, mode, device, in)) {
        tn_random_seed(5);
        tn_status status = run(c, mode, device, in, out);

        if (status != TN_OK && tn_error_text()[0] == '\0' && !gives_null(c))
            abort(); /* a failure says why, but NULL alone may come from an earlier one */
        for (int32_t i = 0; i < def->n_outputs; i++)
            read_all(out[i]);
        if (status == TN_OK && mode == MODE_GRAD)
            go_back(def, in, c->one.n_in, out);
    }
    tn_device_end();
    tn_error_clear();
}

/* ---- a change ---- */

/* The numbers of ends: ENDS_BIT, the case among those of its operator, the number of an end. */
static const uint64_t ENDS_BIT = (uint64_t)1 << 63;
enum { CASE_SHIFT = 32 };

/* An end: an option of an operator, which end of it, in which mode. */
typedef struct option_end {
    int64_t op; /* in `starts` */
    int32_t option, which;
    int mode;
} option_end;

static option_end *ends;
static int64_t n_ends;

typedef struct trial {
    uint64_t number;
    const option_end *end; /* or NULL: a change at random */
    char *said;            /* shared with the process that waits */
    size_t room;
} trial;

static bool take(void *user, conform_case *one)
{
    trial *t = user;
    changed c = { .one = *one, .random = t->number };
    int mode = t->end != NULL ? t->end->mode : (int)changed_below(&c, MODES);

    c.huge = t->end == NULL && (mode == MODE_META || mode == MODE_GRAPH);
    if (t->end != NULL) {
        changed_own_options(&c);
        changed_end(&c, &one->def->options[t->end->option], t->end->which);
    } else if (one->n_in < 60) {
        changed_make(&c);
    }
    snprintf(t->said, t->room, "%s, %s, %s:%s", one->def->name, one->name, mode_names[mode],
             c.said);
    if (one->n_in < 60)
        call(&c, mode);
    changed_drop(&c);
    return false;
}

static void try_case(trial *t, const text_case *one)
{
    int file = memfd_create("case", MFD_CLOEXEC);
    char path[64], words[400] = "";

    t->said[0] = '\0';
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (file < 0 || write(file, one->text, one->length) != (ssize_t)one->length)
        give_up("no memory for a case");
    if (conform_cases(path, one->op, take, t, words, sizeof words) < 0)
        give_up(words);
    close(file);
}

static int64_t cases_of(int64_t op)
{
    return (op + 1 < n_starts ? starts[op + 1] : n_cases) - starts[op];
}

/* Makes change `number` of a case and calls the operator with it. */
static void try_change(uint64_t number, char *said, size_t room)
{
    trial t = { number, NULL, said, room };
    changed dice = { .random = number * 0x2545f4914f6cdd1du };

    if (number & ENDS_BIT) {
        t.end = &ends[number & (((uint64_t)1 << CASE_SHIFT) - 1)];
        uint64_t which = (number & ~ENDS_BIT) >> CASE_SHIFT;

        try_case(&t, &cases[starts[t.end->op] + (int64_t)(which % (uint64_t)cases_of(t.end->op))]);
    } else {
        int64_t op = changed_below(&dice, n_starts);

        try_case(&t, &cases[starts[op] + changed_below(&dice, cases_of(op))]);
    }
}

/* Lists the ends of all options of all operators. The plugins are loaded. */
static void find_ends(void)
{
    int64_t room = 0;

    for (int64_t op = 0; op < n_starts; op++) {
        const tn_op *found = tn_op_find(cases[starts[op]].op, 0);
        const tn_op_def *def = found != NULL ? tn_op_definition(found) : NULL;

        for (int32_t i = 0; def != NULL && def->options != NULL; i++) {
            if (def->options[i].kind == TN_OPTION_KIND_END)
                break;
            for (int64_t n = changed_ends(&def->options[i]) * (MODE_GRAPH + 1) - 1; n >= 0; n--) {
                if (n_ends == room &&
                    (ends = realloc(ends, (size_t)(room += 4096) * sizeof *ends)) == NULL)
                    give_up("no memory for the ends");
                ends[n_ends++] = (option_end){ op, i, (int32_t)(n / (MODE_GRAPH + 1)),
                                               (int)(n % (MODE_GRAPH + 1)) };
            }
        }
    }
}

/* ---- processes ---- */

static struct shared {
    uint64_t number;
    uint64_t n_ends; /* 0 until a process has counted them */
    char said[800];
} * shared;

static void start(void)
{
    static const tn_allocator small = { .alloc = small_alloc,
                                        .resize = small_resize,
                                        .free = small_free };

    if (tn_set_allocator(&small) != TN_OK || conform_reference(TN_OP_PRIMITIVE) != TN_OK)
        give_up(tn_error_text());
}

/* Limits the processor time of a call, and, for one that waits forever, the time. */
static void bound_time(void)
{
    const struct itimerval timer = { { 0, 0 }, { CALL_SECONDS, 0 } };

    setitimer(ITIMER_PROF, &timer, NULL);
    alarm(WAIT_SECONDS);
}

static bool is_time(int number)
{
    return number == SIGALRM || number == SIGPROF;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void work(uint64_t end)
{
    start();
    if (end & ENDS_BIT) {
        find_ends();
        shared->n_ends = (uint64_t)n_ends;
        end = smaller(end, (end >> CASE_SHIFT << CASE_SHIFT) + shared->n_ends);
    }
    for (; shared->number < end; shared->number++) {
        bound_time();
        try_change(shared->number, shared->said, sizeof shared->said);
    }
    _exit(0); /* the search for leaks can crash on the threads of the pool */
}

/* Runs the changes from shared->number to `end`. Returns whether the process lived. */
static bool worked(uint64_t end)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        work(end);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        give_up("no process");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    fprintf(stderr, "change %llu: %s: %s %d\n", (unsigned long long)shared->number, shared->said,
            WIFSIGNALED(status) ? is_time(WTERMSIG(status)) ? "ran for too long, signal" : "signal"
                                : "exit",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}

typedef struct wishes {
    uint64_t seed, count, number, ends;
    time_t seconds;
} wishes;

static wishes wishes_of(int argc, char **argv)
{
    wishes w = { .seed = 1, .count = FEW };

    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t value = strtoull(argv[i + 1], NULL, 10);

        if (strcmp(argv[i], "--seed") == 0)
            w.seed = value;
        else if (strcmp(argv[i], "--count") == 0)
            w.count = value;
        else if (strcmp(argv[i], "--seconds") == 0)
            w.seconds = (time_t)value;
        else if (strcmp(argv[i], "--ends") == 0)
            w.ends = value;
        else if (strcmp(argv[i], "--one") == 0)
            w.number = value;
        else
            give_up(argv[i]);
    }
    return w;
}

/* Makes changes from shared->number to `end`, some of them in each process. Returns the failures,
 * to which there are `failures` before. */
static int try_some(uint64_t end, int failures)
{
    if (!worked(end)) {
        shared->number++;
        failures++;
    }
    return failures;
}

static int at_random(const wishes *w)
{
    uint64_t seed = w->seed << 32;
    time_t began = time(NULL);
    int failures = 0;

    shared->number = seed;
    while (failures < MOST_FAILURES &&
           (w->seconds > 0 ? time(NULL) - began < w->seconds : shared->number < seed + w->count)) {
        uint64_t end = shared->number + EACH;

        failures = try_some(w->seconds > 0 ? end : smaller(end, seed + w->count), failures);
    }
    printf("%llu changes", (unsigned long long)(shared->number - seed));
    return failures;
}

/* The ends of all options, in the cases seed to seed + w->ends - 1 of each operator. */
static int at_ends(const wishes *w)
{
    int failures = 0;

    for (uint64_t i = 0; i < w->ends; i++) {
        uint64_t first = ENDS_BIT | (w->seed + i) % MOST_CASES << CASE_SHIFT;

        shared->number = first;
        do
            failures = try_some(shared->number + EACH, failures);
        while (failures < MOST_FAILURES && shared->number - first < shared->n_ends);
    }
    printf("%llu ends of options, each in %llu cases", (unsigned long long)shared->n_ends,
           (unsigned long long)w->ends);
    return failures;
}

int main(int argc, char **argv)
{
    const wishes w = wishes_of(argc, argv);
    int failures;

    find_cases();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        give_up("no memory");
    if (w.number > 0) {
        start();
        find_ends();
        try_change(w.number, shared->said, sizeof shared->said);
        printf("%s\n", shared->said);
        return 0;
    }
    failures = w.ends > 0 ? at_ends(&w) : at_random(&w);
    printf(" of %lld cases of %lld operators, %d failures\n", (long long)n_cases,
           (long long)n_starts, failures);
    return failures > 0;
}
