/* SPDX-License-Identifier: MIT
 *
 * Cases of operators (tests/oracle) with one option or input changed at random: counts, ranks,
 * sizes near 2^63, -1, empty tensors, dtypes, the lengths of lists. Each call must return, with a
 * result whose elements can be read or with a message. Of use in a build with sanitizers.
 *
 *   test_changed_cases [--seed N] [--seconds N | --count N]   without: a few, the same ones
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

typedef struct trial {
    uint64_t number;
    char *said; /* shared with the process that waits */
    size_t room;
} trial;

static bool take(void *user, conform_case *one)
{
    trial *t = user;
    changed c = { .one = *one, .random = t->number };
    int mode = (int)changed_below(&c, MODES);

    c.huge = mode == MODE_META || mode == MODE_GRAPH;
    if (one->n_in < 60)
        changed_make(&c);
    snprintf(t->said, t->room, "%s, %s, %s:%s", one->def->name, one->name, mode_names[mode],
             c.said);
    if (one->n_in < 60)
        call(&c, mode);
    changed_drop(&c);
    return false;
}

/* Makes change `number` of a case and calls the operator with it. */
static void try_change(uint64_t number, char *said, size_t room)
{
    trial t = { number, said, room };
    changed dice = { .random = number * 0x2545f4914f6cdd1du };
    int64_t which = changed_below(&dice, n_starts), first = starts[which];
    int64_t end = which + 1 < n_starts ? starts[which + 1] : n_cases;
    const text_case *one = &cases[first + changed_below(&dice, end - first)];
    int file = memfd_create("case", MFD_CLOEXEC);
    char path[64], words[400] = "";

    said[0] = '\0';
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (file < 0 || write(file, one->text, one->length) != (ssize_t)one->length)
        give_up("no memory for a case");
    if (conform_cases(path, one->op, take, &t, words, sizeof words) < 0)
        give_up(words);
    close(file);
}

/* ---- processes ---- */

static struct shared {
    uint64_t number;
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

static void work(uint64_t end)
{
    start();
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

int main(int argc, char **argv)
{
    uint64_t seed = 1, count = FEW, number = 0;
    time_t seconds = 0, began = time(NULL);
    int failures = 0;

    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t value = strtoull(argv[i + 1], NULL, 10);

        if (strcmp(argv[i], "--seed") == 0)
            seed = value;
        else if (strcmp(argv[i], "--count") == 0)
            count = value;
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = (time_t)value;
        else if (strcmp(argv[i], "--one") == 0)
            number = value;
        else
            give_up(argv[i]);
    }
    find_cases();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        give_up("no memory");
    if (number > 0) {
        start();
        try_change(number, shared->said, sizeof shared->said);
        printf("%s\n", shared->said);
        return 0;
    }
    shared->number = seed = seed << 32;
    while (failures < MOST_FAILURES &&
           (seconds > 0 ? time(NULL) - began < seconds : shared->number < seed + count)) {
        uint64_t end = shared->number + EACH;

        if (!worked(seconds == 0 && end > seed + count ? seed + count : end)) {
            shared->number++;
            failures++;
        }
    }
    printf("%llu changes of %lld cases of %lld operators, %d failures\n",
           (unsigned long long)(shared->number - seed), (long long)n_cases, (long long)n_starts,
           failures);
    return failures > 0;
}
