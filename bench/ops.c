/* SPDX-License-Identifier: MIT
 *
 * The time of operators: runs each case of bench/ops.txt with tn_op_call and then in a PyTorch
 * process (bench/peer.py), on the same numbers. Prints a line for each case: our time, PyTorch's,
 * the ratio, and the part of the machine's ceiling that was reached. The ceiling is the bandwidth
 * of a copy or, for matrix products, the multiply-adds per second; both are measured in the same
 * run. See bench/README.md. */
#include <fnmatch.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

#include "ops.h"
#include "peer.h"
#include "slow.h"

enum { LINE = 512, WORDS = 32, NAMES = 160, OPERANDS = 8, ROUNDS = 3, MIDDLING = 1000000 };

typedef struct input {
    char name[16], dtype[8], kind[12], shape[48];
    tn_tensor *tensor;
} input;

typedef struct bench {
    input inputs[NAMES];
    int n_inputs;
    int64_t rows_of, columns_of; /* the sizes R and C in the table */
    tn_dtype dtype;
    double seconds;
    bench_peer peer;
    double copy_rate, multiply_rate; /* bytes and floating point operations a second */
    int n_rows, n_compared;
    bool again; /* measures again, only the cases that were slower than PyTorch's */
    bool failed;
} bench;

typedef struct work {
    const tn_op *op;
    const tn_op_def *def;
    uint8_t *options;
    int64_t ints[4][TN_MAX_DIMS];
    char texts[4][24];
    int n_ints, n_texts;
    tn_tensor *in[OPERANDS], *leaves[OPERANDS], *cotangent;
    bool constant[OPERANDS]; /* no gradient is requested */
    int64_t n_in, n_leaves;
} work;

/* ---- the peer -------------------------------------------------------------------------------- */

static bool start_peer(bench *b, const char *python, const char *script)
{
    char threads[16], line[LINE];

    snprintf(threads, sizeof threads, "%d", tn_num_threads());
    if (!bench_peer_start(&b->peer, python, script, threads, NULL) ||
        fgets(line, sizeof line, b->peer.answer) == NULL)
        return false;
    printf("peer: %s", line);
    return true;
}

/* Returns the seconds per call of PyTorch. If PyTorch fails, prints its message to stderr and
 * returns NAN. */
static double ask_peer(bench *b, const char *mode, const char *leaves, const char *expression)
{
    char words[2 * LINE], line[LINE];

    snprintf(words, sizeof words, "time %g %s %s %s", b->seconds / ROUNDS, mode, leaves,
             expression);
    if (!bench_peer_ask(&b->peer, words, line, sizeof line)) {
        fprintf(stderr, "ops: the peer is gone\n");
        exit(1);
    }
    if (strncmp(line, "error", 5) == 0) {
        fprintf(stderr, "ops: %s: %s", expression, line);
        b->failed = true;
        return NAN;
    }
    return strtod(line, NULL);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* R, C, N = R * C, or a number. */
static int64_t size_of(const bench *b, const char *text, char **end)
{
    *end = (char *)(uintptr_t)text + 1;
    switch (*text) {
    case 'R': return b->rows_of;
    case 'C': return b->columns_of;
    case 'N': return b->rows_of * b->columns_of;
    default: return strtoll(text, end, 10);
    }
}

static int64_t read_sizes(const bench *b, const char *text, int64_t *sizes)
{
    int64_t count = 0;
    char *end;

    for (; *text != '\0' && *text != '-' && count < TN_MAX_DIMS; text = *end == ',' ? end + 1 : end)
        sizes[count++] = size_of(b, text, &end);
    if (*text == '-' && text[1] != '\0')
        sizes[count++] = strtoll(text, &end, 10);
    return count;
}

/* in NAME DTYPE KIND SHAPE: KIND is one of numbers.c, or below=LIMIT. */
static tn_tensor *make_input(bench *b, const input *in)
{
    int64_t sizes[TN_MAX_DIMS], ndim = read_sizes(b, in->shape, sizes), limit = 0;
    tn_dtype dtype = b->dtype;
    uint64_t state = 42;
    input plain = *in;
    char *mark = strchr(plain.kind, '='), *end;

    if (mark != NULL) {
        limit = size_of(b, mark + 1, &end);
        *mark = '\0';
    }
    if (strcmp(in->dtype, "F") != 0 && tn_dtype_parse(in->dtype, &dtype) != TN_OK)
        return NULL;
    return bench_tensor(plain.kind, limit, (tn_ints){ sizes, ndim }, dtype, &state);
}

static tn_tensor *find_input(bench *b, const char *name)
{
    char words[32];

    for (int i = 0; i < b->n_inputs; i++) {
        input *in = &b->inputs[i];
        size_t length = strlen(in->name);

        if (strncmp(in->name, name, length) != 0 ||
            (name[length] != '\0' && strcmp(name + length, ".t") != 0))
            continue;
        if (in->tensor == NULL) {
            in->tensor = make_input(b, in);
            if (in->tensor != NULL && b->peer.ask != NULL) {
                snprintf(words, sizeof words, "tensor %s", in->name);
                bench_peer_give(&b->peer, words, in->tensor);
            }
        }
        return name[length] == '\0' ? in->tensor : tn_transpose(in->tensor, 0, 1);
    }
    fprintf(stderr, "ops: no input %s in the table\n", name);
    return NULL;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static bool set_option(const bench *b, work *w, const char *name, const char *text)
{
    const tn_option *o = w->def->options;
    void *at;

    while (o->kind != TN_OPTION_KIND_END && strcmp(o->name, name) != 0)
        o++;
    at = w->options + o->offset;
    switch (o->kind) {
    case TN_OPTION_KIND_BOOL: *(bool *)at = strcmp(text, "True") == 0; return true;
    case TN_OPTION_KIND_INT: return read_sizes(b, text, (int64_t *)at) == 1;
    case TN_OPTION_KIND_FLOAT: *(double *)at = strtod(text, NULL); return true;
    case TN_OPTION_KIND_SCALAR: *(tn_scalar *)at = tn_scalar_float(strtod(text, NULL)); return true;
    case TN_OPTION_KIND_DTYPE: return tn_dtype_parse(text, (tn_dtype *)at) == TN_OK;
    case TN_OPTION_KIND_STRING:
        if (w->n_texts == 4)
            return false;
        snprintf(w->texts[w->n_texts], sizeof w->texts[0], "%.23s", text);
        *(const char **)at = w->texts[w->n_texts++];
        return true;
    case TN_OPTION_KIND_INTS:
        if (w->n_ints == 4)
            return false;
        *(tn_ints *)at = (tn_ints){ w->ints[w->n_ints], read_sizes(b, text, w->ints[w->n_ints]) };
        w->n_ints++;
        return true;
    default: return false;
    }
}

static void call(work *w, bool gradient)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *out[OPERANDS], *grads[OPERANDS];
    static const tn_backward_options options = { .size = sizeof options, .allow_unused = 1 };

    if (tn_op_call(w->op, w->in, w->n_in, w->options, out, w->def->n_outputs) == TN_OK && gradient)
        tn_grad(out, &w->cotangent, 1, w->leaves, grads, w->n_leaves, &options);
    tn_scope_end(scope);
}

/* TENON_DEVICE may name a device whose kernels still run when a call returns. */
static void finish(void)
{
    if (!tn_device_is_host(tn_default_device()))
        tn_device_sync(tn_default_device());
}

/* Returns the seconds per call in the fastest of several batches of calls. */
static double measure(const bench *b, work *w, bool gradient)
{
    double start = bench_now(), best, once;
    int64_t times;

    call(w, gradient);
    call(w, gradient);
    finish();
    once = (bench_now() - start) / 2;
    times = once > 50e-6 ? 1 : (int64_t)(50e-6 / once) + 1;
    best = 1e30;
    start = bench_now();
    for (int batch = 0; batch < 3 || bench_now() - start < b->seconds / ROUNDS; batch++) {
        double begin = bench_now();

        for (int64_t i = 0; i < times; i++)
            call(w, gradient);
        finish();
        begin = (bench_now() - begin) / (double)times;
        best = begin < best ? begin : best;
    }
    return best;
}

static double moved_bytes(const work *w, tn_tensor *const *out)
{
    double bytes = 0;

    for (int64_t i = 0; i < w->n_in; i++)
        if (w->in[i] != TN_NONE)
            bytes += (double)tn_tensor_numel(w->in[i]) *
                     (double)tn_dtype_size(tn_tensor_dtype(w->in[i]));
    for (int64_t i = 0; i < w->def->n_outputs; i++)
        bytes += (double)tn_tensor_numel(out[i]) * (double)tn_dtype_size(tn_tensor_dtype(out[i]));
    return bytes;
}

static void report(bench *b, const char *title, double ours, double theirs, double ceiling)
{
    double ratio = ours / theirs;

    bench_slow_note(title, ours, theirs);
    if (b->again)
        return;
    printf("%-56s %11.2f", title, ours * 1e6);
    if (b->peer.ask != NULL)
        printf(" %11.2f %7.2f", theirs * 1e6, ratio);
    if (ceiling == ceiling)
        printf(" %6.0f%%", 100 * ceiling);
    putchar('\n');
    fflush(stdout);
    b->n_rows++;
    b->n_compared += ratio == ratio;
}

static void run_mode(bench *b, work *w, const char *title, const char *leaves,
                     const char *expression, bool gradient, double bytes, double flops)
{
    double ours = 1e30, theirs = NAN, ceiling = NAN;

    if (b->again && !bench_slow_has(title))
        return;
    for (int round = 0; round < ROUNDS; round++) {
        double mine = measure(b, w, gradient), other;

        ours = mine < ours ? mine : ours;
        if (tn_failed())
            break;
        if (b->peer.ask != NULL) {
            other = ask_peer(b, gradient ? "both" : "forward", leaves, expression);
            theirs = round == 0 || other < theirs ? other : theirs;
            if (other != other)
                break;
        }
    }
    if (tn_failed()) {
        fprintf(stderr, "ops: %s: %s\n", title, tn_error_text());
        tn_error_clear();
        b->failed = true;
        return;
    }
    if (!gradient)
        ceiling = flops > 0 ? flops / ours / b->multiply_rate : bytes / ours / b->copy_rate;
    report(b, title, ours, theirs, ceiling);
}

/* Words of the left side: the operator, option=value ..., @SIZES (a product's flops are 2 * their
 * product), +g (forward and backward, too); then " : INPUTS : PYTHON". */
static void run_case(bench *b, char *words, char *inputs, char *expression, const char *size)
{
    uint64_t scope;
    work w = { 0 };
    char title[200], leaves[160] = "", names[96] = "", options[64] = "", *save = NULL;
    double flops = 0;
    bool gradient = false, fine = true;
    tn_tensor *out[OPERANDS];
    const char *name = strtok_r(words, " ", &save);

    w.op = tn_op_find(name, 0);
    w.def = w.op != NULL ? tn_op_definition(w.op) : NULL;
    if (w.def != NULL) {
        w.options = calloc(1, w.def->options_size + sizeof(double));
        if (w.def->options_size > 0 && w.options != NULL)
            memcpy(w.options, w.def->defaults, w.def->options_size);
    }
    fine = w.options != NULL && w.def->n_outputs <= OPERANDS;
    for (char *word; fine && (word = strtok_r(NULL, " ", &save)) != NULL;) {
        char *mark = strchr(word, '=');

        if (strcmp(word, "+g") == 0) {
            gradient = true;
            continue;
        }
        snprintf(options + strlen(options), sizeof options - strlen(options), " %s", word);
        if (word[0] == '@') {
            flops = 2;
            for (char *at = word + 1; *at != '\0'; at += *at == 'x')
                flops *= (double)strtoll(at, &at, 10);
        } else if (mark == NULL) {
            fine = false;
        } else {
            *mark = '\0';
            fine = set_option(b, &w, word, mark + 1);
        }
    }
    for (char *word = strtok_r(inputs, " ", &save); fine && word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        bool constant = *word == '!';
        tn_tensor *t = strcmp(word, "none") == 0 ? TN_NONE : find_input(b, word + constant);

        if (t == NULL || w.n_in == OPERANDS) {
            fine = false;
            break;
        }
        w.constant[w.n_in] = constant || t == TN_NONE || tn_tensor_dtype(t) != b->dtype;
        w.in[w.n_in++] = t;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                 names[0] != '\0' ? "," : "", word + constant);
        if (!w.constant[w.n_in - 1])
            snprintf(leaves + strlen(leaves), sizeof leaves - strlen(leaves), "%s%s",
                     leaves[0] != '\0' ? "," : "", word);
    }
    snprintf(title, sizeof title, "%s%s of %s / %s", name, options, names, size);
    scope = tn_scope_begin(); /* for results; the inputs belong to the outer scope */
    if (fine && tn_op_call(w.op, w.in, w.n_in, w.options, out, w.def->n_outputs) == TN_OK) {
        run_mode(b, &w, title, "-", expression, false, moved_bytes(&w, out), flops);
        for (int64_t i = 0; gradient && i < w.n_in; i++) {
            if (w.constant[i])
                continue;
            w.in[i] = tn_clone(w.in[i]);
            tn_tensor_set_requires_grad(w.in[i], true);
            w.leaves[w.n_leaves++] = w.in[i];
        }
        if (gradient) {
            w.cotangent = tn_tensor_full(tn_tensor_shape(out[0]), 1, tn_tensor_dtype(out[0]), NULL);
            snprintf(title, sizeof title, "%s%s of %s, forward and backward / %s", name, options,
                     names, size);
            run_mode(b, &w, title, leaves, expression, true, 0, 0);
        }
    } else {
        fprintf(stderr, "ops: %s: %s\n", title,
                tn_failed() ? tn_error_text() : "the case cannot be read");
        tn_error_clear();
        b->failed = true;
    }
    free(w.options);
    tn_scope_end(scope);
}

/* ---- the table ------------------------------------------------------------------------------- */

static char *trim(char *text)
{
    size_t length;

    text += strspn(text, " ");
    length = strlen(text);
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\n'))
        text[--length] = '\0';
    return text;
}

/* Reads the table for a size: the cases above `once`, or those below it, whose sizes are fixed. */
static bool run_table(bench *b, FILE *table, const char *glob, const char *size, bool fixed)
{
    char line[LINE];
    bool once = false;

    b->n_inputs = 0;
    rewind(table);
    while (fgets(line, sizeof line, table) != NULL) {
        char *text = trim(line), *inputs, *expression, name[64] = "";
        input *in = &b->inputs[b->n_inputs];

        if (*text == '#' || *text == '\0')
            continue;
        if (strcmp(text, "once") == 0) {
            once = true;
            continue;
        }
        if (strncmp(text, "in ", 3) == 0) {
            if (b->n_inputs == NAMES || sscanf(text, "in %15s %7s %11s %47s", in->name, in->dtype,
                                               in->kind, in->shape) != 4)
                return false;
            in->tensor = NULL;
            b->n_inputs++;
            continue;
        }
        sscanf(text, "%63s", name);
        if (once != fixed || fnmatch(glob, name, 0) != 0)
            continue;
        inputs = strstr(text, " : ");
        expression = inputs != NULL ? strstr(inputs + 2, " : ") : NULL;
        if (expression == NULL)
            return false;
        *inputs = *expression = '\0';
        run_case(b, text, inputs + 3, trim(expression + 3), once ? "-" : size);
    }
    return true;
}

/* Operators that the table has no case for. */
static void print_missing(FILE *table)
{
    char line[LINE], name[64];
    int missing = 0;

    printf("\nOperators without a case:");
    for (int64_t i = 0; i < tn_op_count(); i++) {
        bool found = false;

        rewind(table);
        while (!found && fgets(line, sizeof line, table) != NULL)
            found = sscanf(line, "%63s", name) == 1 && strcmp(name, tn_op_name_at(i)) == 0 &&
                    strstr(line, " : ") != NULL;
        if (!found)
            printf("%s%s", missing++ % 6 == 0 ? "\n  " : ", ", tn_op_name_at(i));
    }
    printf("\n%d of %lld\n", missing, (long long)tn_op_count());
}

static const char usage[] =
    "usage: ops TABLE [--op GLOB] [--size small|cache|memory|fixed|large|all] [--dtype NAME]\n"
    "           [--threads N] [--seconds S] [--peer PYTHON SCRIPT] [--again N]\n"
    "           [--reasons FILE] [--markdown]\n";

int main(int argc, char **argv)
{
    static const struct {
        const char *name, *text;
        int64_t side;
    } sizes[] = { { "small", "1e3", 32 },
                  { "cache", "1e5", 320 },
                  { "memory", "4e6", 2000 },
                  { "fixed", "-", 0 }, /* the cases that have sizes of their own */
                  { "large", "1.6e7", 4000 } };
    static bench b = { .dtype = TN_F32, .seconds = 0.06 };
    const char *glob = "*", *size = "all", *python = NULL, *script = NULL;
    FILE *table = argc > 1 ? fopen(argv[1], "r") : NULL;
    bool any = false, fine = table != NULL, markdown = false;
    int again = 2;
    FILE *reasons = NULL;

    for (int i = 2; fine && i < argc; i++) {
        bool one = i + 1 < argc;

        if (one && strcmp(argv[i], "--op") == 0)
            glob = argv[++i];
        else if (one && strcmp(argv[i], "--size") == 0)
            size = argv[++i];
        else if (one && strcmp(argv[i], "--dtype") == 0)
            fine = tn_dtype_parse(argv[++i], &b.dtype) == TN_OK;
        else if (one && strcmp(argv[i], "--threads") == 0)
            fine = tn_set_num_threads(atoi(argv[++i])) == TN_OK;
        else if (one && strcmp(argv[i], "--seconds") == 0)
            b.seconds = strtod(argv[++i], NULL);
        else if (one && strcmp(argv[i], "--again") == 0)
            again = atoi(argv[++i]);
        else if (one && strcmp(argv[i], "--reasons") == 0)
            fine = (reasons = fopen(argv[++i], "r")) != NULL;
        else if (strcmp(argv[i], "--markdown") == 0)
            markdown = true;
        else if (i + 2 < argc && strcmp(argv[i], "--peer") == 0)
            python = argv[i + 1], script = argv[i + 2], i += 2;
        else
            fine = false;
    }
    if (!fine) {
        fprintf(stderr, "%s%s%s", tn_failed() ? tn_error_text() : "", tn_failed() ? "\n" : "",
                usage);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (python != NULL && !start_peer(&b, python, script)) {
        fprintf(stderr, "ops: %s could not run PyTorch\n", python);
        return 1;
    }
    b.multiply_rate = bench_multiply_rate();
    printf("%s, %d threads; multiply-adds in float32: %.0f GFLOP/s\n", tn_dtype_name(b.dtype),
           tn_num_threads(), b.multiply_rate * 1e-9);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0] && fine; k++) {
        uint64_t scope = tn_scope_begin();
        bool fixed = sizes[k].side == 0;

        if (strcmp(size, sizes[k].name) == 0 ||
            (strcmp(sizes[k].name, "large") != 0 && strcmp(size, "all") == 0)) {
            int64_t numbers = fixed ? MIDDLING : sizes[k].side * sizes[k].side;

            b.rows_of = b.columns_of = sizes[k].side;
            b.copy_rate = bench_copy_rate(numbers * (int64_t)tn_dtype_size(b.dtype));
            printf("\ncopy of %lld elements: %.1f GB/s\n%-56s %11s", (long long)numbers,
                   b.copy_rate * 1e-9, "operator of inputs / elements", "ours us");
            printf("%s\n", b.peer.ask != NULL ? "     PyTorch   ratio ceiling" : " ceiling");
            fine = run_table(&b, table, glob, sizes[k].text, fixed);
            any = true;
            /* other load on the machine changes within seconds */
            b.again = true;
            for (int pass = 0; b.peer.ask != NULL && pass < again && fine; pass++) {
                uint64_t inner = tn_scope_begin();

                fine = run_table(&b, table, glob, sizes[k].text, fixed);
                tn_scope_end(inner);
            }
            b.again = false;
        }
        tn_scope_end(scope);
    }
    if (!fine || !any)
        fprintf(stderr, "ops: %s\n", any ? "a line of the table cannot be read" : "no such size");
    if (b.peer.ask != NULL) {
        printf("\n%s, %d threads: %d lines, %d compared with PyTorch; slower than it by more than "
               "5 %% in the least of %d times %d turns:\n",
               tn_dtype_name(b.dtype), tn_num_threads(), b.n_rows, b.n_compared, again + 1, ROUNDS);
        printf("%d of them\n",
               bench_slow_print(reasons, tn_dtype_name(b.dtype), tn_num_threads(), markdown));
    }
    if (strcmp(glob, "*") == 0)
        print_missing(table);
    bench_peer_end(&b.peer);
    if (reasons != NULL)
        fclose(reasons);
    fclose(table);
    return !fine || !any || b.failed;
}
