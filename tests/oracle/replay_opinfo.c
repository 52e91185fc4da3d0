/* SPDX-License-Identifier: MIT
 *
 * Replays what tests/oracle/opinfo.py wrote through tn_op_call and prints a table by operator:
 * passed, failed, unsupported. Fails when anything failed, or when an f32 or f64 case found no
 * kernel, option or operator, except for linear algebra by LAPACK on another device than the cpu.
 *
 *   replay_opinfo FILE [--device NAME] [--verbose]
 *
 * The file has the same lines as the texts in this folder; a tensor's values are " = BYTES", and
 * after the line the bytes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

#include "replay_numbers.h"
#include "rows.h"

enum { LINE = 1024, MOST = 64, OPERATORS = 400, FEW = 6 };

typedef struct tally {
    char name[48];
    int64_t passed, failed, unsupported, weak; /* weak: unsupported, as is expected */
} tally;

typedef enum verdict { FINE, WRONG, LACKING } verdict;

typedef struct play {
    FILE *file;
    char line[LINE], title[256], why[1024];
    const tn_op *op;
    char op_name[64];
    uint8_t *options;
    int64_t rows[MOST][TN_MAX_DIMS];
    double numbers[MOST][TN_MAX_DIMS];
    char texts[MOST][64];
    int64_t n_rows, n_texts, n_in, n_out, n_grads, n_seconds;
    tn_tensor *in[MOST], *out[4], *grads[MOST], *seconds[MOST], *leaves[MOST];
    int64_t n_leaves;
    tn_tensor *cotangent;
    verdict verdict;
    double loose; /* the tolerance, if PyTorch's error is larger than our usual tolerance */
    bool called, refused, weak;
} play;

static tally tallies[OPERATORS];
static int64_t n_tallies, loose_cases;

static void say(play *p, verdict what, const char *format, ...) TN_ATTR(format(printf, 3, 4));

/* Only the first problem of a case is recorded. */
static void say(play *p, verdict what, const char *format, ...)
{
    va_list args;

    if (p->verdict != FINE)
        return;
    p->verdict = what;
    va_start(args, format);
    vsnprintf(p->why, sizeof p->why, format, args);
    va_end(args);
}

/* Reports an error of Tenon: "unsupported" if an operator or a dtype is missing, else "wrong". */
static void say_error(play *p, const char *where)
{
    tn_status code = tn_error_code();

    say(p, code == TN_ERR_NOT_IMPLEMENTED || code == TN_ERR_TYPE ? LACKING : WRONG, "%s: %s", where,
        tn_error_text());
    tn_error_clear();
}

/* The bytes after a line, malloc'd; NULL when the file ends early. */
static void *read_bytes(play *p, const char *text, size_t *bytes)
{
    const char *mark = strstr(text, " = ");
    char *data;

    *bytes = mark != NULL ? (size_t)strtoull(mark + 3, NULL, 10) : 0;
    data = malloc(*bytes + 1);
    if (data != NULL && (fread(data, 1, *bytes, p->file) != *bytes || fgetc(p->file) != '\n')) {
        free(data);
        return NULL;
    }
    return data;
}

static void set_option(play *p, const char *name, const char *text)
{
    const tn_op_def *def;
    const tn_option *row;
    void *at;

    if (p->op == NULL)
        return;
    def = tn_op_definition(p->op);
    for (row = def->options; row->kind != TN_OPTION_KIND_END && strcmp(row->name, name) != 0;)
        row++;
    if (row->kind == TN_OPTION_KIND_END || p->n_rows == MOST || p->n_texts == MOST) {
        say(p, LACKING, "no option %s", name);
        return;
    }
    if (p->options == NULL) {
        p->options = malloc(def->options_size);
        memcpy(p->options, def->defaults, def->options_size);
    }
    at = p->options + row->offset;
    switch (row->kind) {
    case TN_OPTION_KIND_BOOL: *(bool *)at = strcmp(text, "True") == 0; break;
    case TN_OPTION_KIND_INT:
        *(int64_t *)at = strcmp(text, "True") == 0 ? 1 : (int64_t)strtoll(text, NULL, 10);
        break;
    case TN_OPTION_KIND_FLOAT:
        *(double *)at = strcmp(text, "True") == 0 ? 1 : strtod(text, NULL);
        break;
    case TN_OPTION_KIND_SCALAR: *(tn_scalar *)at = read_scalar(text); break;
    case TN_OPTION_KIND_STRING:
        snprintf(p->texts[p->n_texts], sizeof p->texts[0], "%.63s", text);
        *(const char **)at = p->texts[p->n_texts++];
        break;
    case TN_OPTION_KIND_INTS:
        *(tn_ints *)at = (tn_ints){ p->rows[p->n_rows], read_row(text, p->rows[p->n_rows]) };
        p->n_rows++;
        break;
    case TN_OPTION_KIND_FLOATS:
        *(tn_floats *)at = (tn_floats){ p->numbers[p->n_rows],
                                        read_numbers(text, p->numbers[p->n_rows]) };
        p->n_rows++;
        break;
    case TN_OPTION_KIND_DTYPE: tn_dtype_parse(text, (tn_dtype *)at); break;
    default: say(p, LACKING, "option %s is of a kind that nobody sets here", name);
    }
}

static void read_input(play *p, const char *text)
{
    char dtype[16], shape[192], strides[192], grad;
    int64_t sizes[TN_MAX_DIMS], steps[TN_MAX_DIMS], ndim, count;
    tn_dtype type = TN_F32;
    size_t bytes;
    void *data;

    if (p->n_in == MOST)
        return;
    if (strncmp(text, "none", 4) == 0) {
        p->in[p->n_in++] = TN_NONE;
        return;
    }
    data = read_bytes(p, text, &bytes);
    if (data == NULL || sscanf(text, "%15s %191s %191s 0 %c", dtype, shape, strides, &grad) != 4) {
        free(data);
        say(p, WRONG, "the file breaks off");
        return;
    }
    tn_dtype_parse(dtype, &type);
    ndim = read_row(shape, sizes);
    read_row(strides, steps);
    count = (int64_t)(bytes / tn_dtype_size(type));
    p->in[p->n_in] = tn_tensor_as_strided(tn_tensor_from(data, type, TN_SHAPE(count)),
                                          (tn_ints){ sizes, ndim }, (tn_ints){ steps, ndim }, 0);
    free(data);
    if (p->in[p->n_in] == NULL) {
        say_error(p, "input");
        return;
    }
    if (grad == 'g') {
        tn_tensor_set_requires_grad(p->in[p->n_in], true);
        p->leaves[p->n_leaves++] = p->in[p->n_in];
    }
    p->n_in++;
}

static void call(play *p)
{
    const tn_op_def *def;

    if (p->called || p->verdict != FINE || p->op == NULL)
        return;
    def = tn_op_definition(p->op);
    p->called = true;
    while (p->n_in < def->n_inputs && (def->inputs[p->n_in].flags & TN_OPERAND_OPTIONAL) != 0)
        p->in[p->n_in++] = TN_NONE;
    if (def->n_outputs > 4)
        say(p, LACKING, "more than four outputs");
    else if (tn_op_call(p->op, p->in, p->n_in, p->options, p->out, def->n_outputs) != TN_OK &&
             !p->refused)
        say_error(p, "call");
}

static void compare_numbers(play *p, const double *ours, const double *theirs, int64_t count,
                            double step, const char *what, int64_t index)
{
    double scale = 0;

    for (int64_t i = 0; i < count; i++) {
        double v = fabs(theirs[i]);
        scale = isfinite(v) && v > scale ? v : scale;
    }
    for (int64_t i = 0; i < count; i++) {
        double a = ours[i], b = theirs[i];
        bool same = isnan(b) ? isnan(a) : a == b || fabs(a - b) <= step * (1 + scale);

        if (!same && !known_wrong(p->op_name, what, a, b)) {
            say(p, WRONG, "%s %d, element %lld: %.12g, PyTorch says %.12g", what, (int)index,
                (long long)i, a, b);
            break;
        }
    }
}

static void compare(play *p, tn_tensor *tensor, const char *what, int64_t index, const void *wanted,
                    size_t bytes)
{
    tn_dtype dtype = tn_tensor_dtype(tensor);
    int64_t numel = tn_tensor_numel(tensor);
    int64_t parts = (TN_MASK_COMPLEX & TN_BIT(dtype)) != 0 ? 2 : 1;
    double step = p->loose > step_of(dtype) ? p->loose : step_of(dtype);
    char *found = malloc(bytes + 1);

    if ((size_t)numel * tn_dtype_size(dtype) != bytes) {
        say(p, WRONG, "%s %d has %lld elements, PyTorch's %lld", what, (int)index, (long long)numel,
            (long long)(bytes / tn_dtype_size(dtype)));
    } else if (tn_tensor_copy_out(tn_detach(tensor), found, bytes) != TN_OK) {
        say_error(p, what);
    } else {
        double *ours = numbers_of(found, dtype, numel * parts),
               *theirs = numbers_of(wanted, dtype, numel * parts);

        if (numel > 0 && strcmp(what, "output") != 0 && is_hermitian(p->op_name)) {
            make_hermitian(ours, numel * parts, tn_tensor_size(tensor, -1), parts);
            make_hermitian(theirs, numel * parts, tn_tensor_size(tensor, -1), parts);
        }
        compare_numbers(p, ours, theirs, numel * parts, step, what, index);
        free(ours);
        free(theirs);
    }
    free(found);
}

static void check_output(play *p, const char *text)
{
    char dtype[16], shape[192];
    int64_t sizes[TN_MAX_DIMS], ndim;
    tn_dtype type = TN_F32;
    size_t bytes;
    void *data = read_bytes(p, text, &bytes);

    call(p);
    if (data != NULL && p->verdict == FINE && sscanf(text, "%15s %191s", dtype, shape) == 2) {
        tn_tensor *out = p->out[p->n_out];
        tn_ints have = tn_tensor_shape(out);

        tn_dtype_parse(dtype, &type);
        ndim = read_row(shape, sizes);
        if (tn_tensor_dtype(out) != type)
            say(p, WRONG, "output %d is %s, PyTorch's %s", (int)p->n_out,
                tn_dtype_name(tn_tensor_dtype(out)), dtype);
        else if (have.count != ndim ||
                 (ndim > 0 && memcmp(have.at, sizes, (size_t)ndim * sizeof *sizes) != 0))
            say(p, WRONG, "output %d has another shape than PyTorch's %s", (int)p->n_out, shape);
        else
            compare(p, out, "output", p->n_out, data, bytes);
    }
    p->n_out++;
    free(data);
}

/* Computes the gradients of all leaves. If the file has second gradients, differentiate_again()
 * computes those of the sum of the first ones. */
static void differentiate(play *p, const char *text)
{
    static const tn_backward_options again = { .size = sizeof again,
                                               .create_graph = 1,
                                               .allow_unused = 1 };
    size_t bytes;
    void *data = read_bytes(p, text, &bytes);

    for (int64_t i = 0; i < p->n_leaves; i++)
        p->grads[i] = TN_NONE; /* a gradient that was not recorded is zero */
    if (data != NULL && p->verdict == FINE && tn_tensor_requires_grad(p->out[0])) {
        tn_tensor *cotangent = tn_tensor_empty(tn_tensor_shape(p->out[0]),
                                               tn_tensor_dtype(p->out[0]), NULL);

        if (cotangent == NULL || tn_tensor_copy_in(cotangent, data, bytes) != TN_OK ||
            tn_grad(p->out, &cotangent, 1, p->leaves, p->grads, p->n_leaves, &again) != TN_OK)
            say_error(p, "gradient");
    }
    free(data);
}

static void differentiate_again(play *p)
{
    static const tn_backward_options once = { .size = sizeof once, .allow_unused = 1 };
    tn_tensor *from[MOST], *ones[MOST];
    int64_t count = 0;

    for (int64_t i = 0; i < p->n_leaves; i++) {
        if (p->grads[i] == TN_NONE || !tn_tensor_requires_grad(p->grads[i]))
            continue;
        from[count] = p->grads[i];
        ones[count++] = tn_tensor_full(tn_tensor_shape(p->grads[i]), 1,
                                       tn_tensor_dtype(p->grads[i]), NULL);
    }
    if (count == 0)
        for (int64_t i = 0; i < p->n_leaves; i++)
            p->seconds[i] = TN_NONE;
    else if (tn_grad(from, ones, count, p->leaves, p->seconds, p->n_leaves, &once) != TN_OK)
        say_error(p, "second gradient");
}

static void check_gradient(play *p, const char *text, const char *what, tn_tensor *const *got,
                           int64_t index)
{
    size_t bytes;
    char *data = read_bytes(p, text, &bytes);

    if (data != NULL && p->verdict == FINE && index < p->n_leaves) {
        if (got[index] == TN_NONE) {
            tn_dtype dtype = tn_tensor_dtype(p->leaves[index]);
            for (size_t i = 0; i < bytes / tn_dtype_size(dtype); i++)
                if (part(data, dtype, (int64_t)i) != 0)
                    say(p, WRONG, "%s %d: none, PyTorch has one", what, (int)index);
        } else if (tn_tensor_dtype(got[index]) != tn_tensor_dtype(p->leaves[index])) {
            say(p, WRONG, "%s %d is %s", what, (int)index,
                tn_dtype_name(tn_tensor_dtype(got[index])));
        } else {
            compare(p, got[index], what, index, data, bytes);
        }
    }
    free(data);
}

/* If PyTorch raises an error, Tenon must fail too, with a message that names the operator. */
static void check_refused(play *p)
{
    p->refused = true;
    call(p);
    if (p->op == NULL || p->verdict != FINE)
        return;
    if (!tn_failed()) { /* a device may find the error later; tn_device_sync then reports it */
        tn_device_sync(tn_default_device());
        memset(p->out, 0, sizeof p->out);
    }
    if (!tn_failed()) {
        say(p, WRONG, "accepted, PyTorch refuses");
    } else if (strstr(tn_error_text(), p->op_name) == NULL) {
        say(p, WRONG, "refused without the operator's name: %s", tn_error_text());
    }
    tn_error_clear();
    for (int i = 0; i < tn_op_definition(p->op)->n_outputs && p->verdict == FINE && i < 4; i++)
        if (p->out[i] != NULL)
            say(p, WRONG, "refused, and output %d is there", i);
}

/* Returns whether a device other than the cpu lacks a kernel that calls LAPACK. */
static bool lacks_lapack(const play *p)
{
    const char *kernel = strstr(p->why, ": no kernel on device type \"");

    return kernel != NULL && strstr(p->why, "operator \"linalg_") != NULL &&
           strstr(kernel, "available: tn_linalg_") != NULL && strstr(kernel, " on cpu (") != NULL;
}

static void finish(play *p, bool verbose)
{
    tally *t = tallies;

    if (p->title[0] == '\0')
        return;
    while (t < tallies + n_tallies && strcmp(t->name, p->op_name) != 0)
        t++;
    if (t == tallies + OPERATORS)
        return;
    if (t == tallies + n_tallies) {
        snprintf(t->name, sizeof t->name, "%.47s", p->op_name);
        n_tallies++;
    }
    if (p->verdict == LACKING)
        p->weak |= lacks_lapack(p);
    t->passed += p->verdict == FINE;
    t->failed += p->verdict == WRONG;
    t->unsupported += p->verdict == LACKING;
    t->weak += p->verdict == LACKING && p->weak;
    if (p->verdict != FINE &&
        (verbose ||
         (p->verdict == WRONG ? t->failed : t->unsupported - t->weak + 5 * p->weak) <= FEW))
        printf("%s %s (%s): %s\n", p->verdict == WRONG ? "failed" : "unsupported", p->title,
               p->op_name, p->why);
    fflush(stdout);
}

static void begin(play *p, const char *title)
{
    FILE *file = p->file;
    char kept[sizeof p->title];

    snprintf(kept, sizeof kept, "%.255s", title);
    free(p->options);
    memset(p, 0, sizeof *p);
    p->file = file;
    memcpy(p->title, kept, sizeof kept);
    title = p->title;
    p->weak = strstr(title, "/f32/") == NULL && strstr(title, "/f64/") == NULL &&
              strstr(title, "/refused/") == NULL;
}

static void read_line(play *p)
{
    char *text = strchr(p->line, ' ');
    char name[64], value[256];

    text = text != NULL ? text + 1 : p->line + strlen(p->line);
    if (strncmp(p->line, "op ", 3) == 0) {
        snprintf(p->op_name, sizeof p->op_name, "%.63s", text);
        p->op = tn_op_find(p->op_name, 0);
        if (p->op == NULL)
            say_error(p, "operator");
    } else if (strncmp(p->line, "opt ", 4) == 0 && sscanf(text, "%63s %255s", name, value) == 2) {
        set_option(p, name, value);
    } else if (strncmp(p->line, "in ", 3) == 0) {
        read_input(p, text);
    } else if (strncmp(p->line, "loose ", 6) == 0) {
        p->loose = strtod(text, NULL);
        loose_cases++;
    } else if (strncmp(p->line, "out ", 4) == 0) {
        check_output(p, text);
    } else if (strncmp(p->line, "cot ", 4) == 0) {
        differentiate(p, text - 1);
    } else if (strncmp(p->line, "grad ", 5) == 0) {
        check_gradient(p, text, "gradient", p->grads, p->n_grads++);
    } else if (strncmp(p->line, "second ", 7) == 0) {
        if (p->n_seconds == 0 && p->verdict == FINE)
            differentiate_again(p);
        check_gradient(p, text, "second gradient", p->seconds, p->n_seconds++);
    } else if (strncmp(p->line, "refused", 7) == 0) {
        check_refused(p);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const tally *)a)->name, ((const tally *)b)->name);
}

static bool print_table(const char *device)
{
    tally sum = { .name = "all" };

    qsort(tallies, (size_t)n_tallies, sizeof *tallies, by_name);
    printf("\n%-20s %8s %8s %12s\n", device, "passed", "failed", "unsupported");
    for (int64_t i = 0; i < n_tallies; i++) {
        const tally *t = &tallies[i];

        printf("%-20s %8lld %8lld %12lld\n", t->name, (long long)t->passed, (long long)t->failed,
               (long long)t->unsupported);
        sum.passed += t->passed;
        sum.failed += t->failed;
        sum.unsupported += t->unsupported;
        sum.weak += t->weak;
    }
    printf("%-20s %8lld %8lld %12lld  (%lld of them in f32, f64 or an error sample)\n", sum.name,
           (long long)sum.passed, (long long)sum.failed, (long long)sum.unsupported,
           (long long)(sum.unsupported - sum.weak));
    printf("%lld cases are compared by twice PyTorch's own error, which is beyond the tolerance\n",
           (long long)loose_cases);
    print_known();
    return sum.failed == 0 && sum.unsupported == sum.weak && sum.passed > 0;
}

int main(int argc, char **argv)
{
    static play p;
    const char *device = NULL, *path = NULL;
    bool verbose = false, fine;
    uint64_t scope;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0)
            verbose = true;
        else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
            device = argv[++i];
        else
            path = argv[i];
    }
    p.file = path != NULL ? fopen(path, "rb") : NULL;
    if (p.file == NULL || (device != NULL && tn_set_default_device(device) != TN_OK) ||
        tn_default_device() == NULL) {
        fprintf(stderr, "replay_opinfo FILE [--device NAME] [--verbose]: %s\n",
                tn_failed() ? tn_error_text() : "the file cannot be opened");
        return 2;
    }
    scope = tn_scope_begin();
    while (fgets(p.line, LINE, p.file) != NULL) {
        bool end = strcmp(p.line, "end\n") == 0;

        p.line[strcspn(p.line, "\n")] = '\0';
        if (strncmp(p.line, "case ", 5) != 0 && !end) {
            read_line(&p);
            continue;
        }
        finish(&p, verbose);
        tn_scope_end(scope);
        scope = tn_scope_begin();
        begin(&p, end ? "" : p.line + 5);
        if (tn_failed()) {
            printf("an error was left behind: %s\n", tn_error_text());
            tn_error_clear();
        }
    }
    fclose(p.file);
    free(p.options);
    tn_scope_end(scope);
    fine = print_table(tn_device_name(tn_default_device()));
    tn_shutdown();
    return fine ? 0 : 1;
}
