/* SPDX-License-Identifier: MIT
 *
 * Runs the programs that programs.py writes and compares values, gradients and errors with those of
 * PyTorch.  replay_programs FILE [--verbose] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

enum { REGISTERS = 128, LINE = 1 << 16, DEEP = 64 };

static struct run {
    tn_tensor *at[REGISTERS]; /* kept */
    char modes[DEEP];
    int n_modes;
    long seed;
    bool wrong; /* an earlier step of this program failed, so the later ones are skipped */
    const char *line;
} run;
static long programs, failures;
static double scales[DEEP];
static int n_scales;

static void say(const char *what)
{
    if (!run.wrong)
        printf("program %ld: %s\n    %s\n    %s\n", run.seed, what, run.line,
               tn_failed() ? tn_error_text() : "");
    failures += !run.wrong;
    run.wrong = true;
    tn_error_clear();
}

static int64_t row_of(const char *text, int64_t *out)
{
    int64_t count = 0;

    while (*text != '-' || (text[1] >= '0' && text[1] <= '9')) {
        char *end;

        out[count++] = strtoll(text, &end, 10);
        if (*end != ',')
            break;
        text = end + 1;
    }
    return count;
}

static int64_t numbers_of(const char *text, double *out)
{
    int64_t count = 0;
    char *end;

    if ((text = strchr(text, ':')) == NULL)
        return 0;
    for (text++;; text = end) {
        double value = strtod(text, &end);

        if (end == text)
            return count;
        out[count++] = value;
    }
}

/* ---- operators ---- */

typedef struct asked {
    _Alignas(16) char space[512];
    int64_t rows[4][TN_MAX_DIMS];
} asked;

/* "dim=1;keepdim=True" into the operator's struct. */
static const void *options_of(const tn_op_def *def, char *text, asked *o)
{
    int rows = 0;
    char *rest = NULL;

    if (def->options == NULL)
        return NULL;
    memcpy(o->space, def->defaults, def->options_size);
    for (char *pair = strtok_r(text, ";", &rest); pair != NULL; pair = strtok_r(NULL, ";", &rest)) {
        char *value = strchr(pair, '=');

        if (value == NULL)
            continue;
        *value++ = '\0';
        for (const tn_option *row = def->options; row->kind != TN_OPTION_KIND_END; row++) {
            void *at = o->space + row->offset;

            if (strcmp(row->name, pair) != 0)
                continue;
            if (row->kind == TN_OPTION_KIND_INT)
                *(int64_t *)at = strtoll(value, NULL, 10);
            else if (row->kind == TN_OPTION_KIND_FLOAT)
                *(double *)at = strtod(value, NULL);
            else if (row->kind == TN_OPTION_KIND_SCALAR)
                *(tn_scalar *)at = strpbrk(value, ".en") != NULL
                                       ? tn_scalar_float(strtod(value, NULL))
                                       : tn_scalar_int(strtoll(value, NULL, 10));
            else if (row->kind == TN_OPTION_KIND_BOOL)
                *(bool *)at = strcmp(value, "True") == 0;
            else if (row->kind == TN_OPTION_KIND_INTS) {
                *(tn_ints *)at = (tn_ints){ o->rows[rows], row_of(value, o->rows[rows]) };
                rows++;
            }
        }
    }
    return o->space;
}

static int64_t inputs_of(const char *text, tn_tensor **in)
{
    int64_t places[16], count = row_of(text, places);

    for (int64_t i = 0; i < count; i++)
        in[i] = run.at[places[i]];
    return count;
}

static void put(int64_t place, tn_tensor *tensor)
{
    if (tensor != NULL)
        run.at[place] = tn_keep(tensor);
}

static bool operate(const char *name, int64_t to, const char *inputs, char *options, bool change)
{
    const tn_op *op = tn_op_find(name, 0);
    tn_tensor *in[16], *out = NULL;
    int64_t count = inputs_of(inputs, in);
    const void *given;
    asked o;

    if (op == NULL)
        return false;
    given = options_of(tn_op_definition(op), options, &o);
    if (!change) {
        if (tn_op_call(op, in, count, given, &out, 1) != TN_OK)
            return false;
        put(to, out);
        return true;
    }
    if (strcmp(name, "copy") == 0)
        return tn_op_call_into(op, in + 1, 1, given, in[0]) == TN_OK;
    return tn_op_call_into(op, in, count, given, in[0]) == TN_OK;
}

static tn_status scaled(void *user, tn_tensor *gradient, tn_tensor **replacement)
{
    *replacement = tn_mul_scalar(gradient, *(double *)user);
    return *replacement != NULL ? TN_OK : tn_error_code();
}

/* ---- the rest ---- */

static void mode(const char *kind)
{
    if (kind[0] == 'i')
        tn_inference_begin(true);
    else
        tn_grad_begin(kind[0] == 'g');
    run.modes[run.n_modes++] = kind[0];
}

static void mode_end(void)
{
    if (run.modes[--run.n_modes] == 'i')
        tn_inference_end();
    else
        tn_grad_end();
}

static bool backward(tn_tensor *root, int retain, int create, const char *line)
{
    static double weights[LINE];
    tn_backward_options o = { .size = sizeof o,
                              .retain_graph = retain != 0,
                              .create_graph = create != 0 };
    tn_tensor *cotangent;

    numbers_of(line, weights);
    cotangent = tn_tensor_from(weights, TN_F64, tn_tensor_shape(root));
    return tn_backward_from(&root, &cotangent, 1, &o) == TN_OK;
}

static void compare(tn_tensor *tensor, const char *line, const char *what)
{
    static double wanted[LINE], found[LINE];
    int64_t count = numbers_of(line, wanted);
    double scale = 1;

    if (tn_tensor_numel(tensor) != count ||
        tn_tensor_copy_out(tn_detach(tensor), found, (size_t)count * sizeof *found) != TN_OK) {
        say(what);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        scale = fabs(wanted[i]) > scale && isfinite(wanted[i]) ? fabs(wanted[i]) : scale;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(wanted[i] - found[i]) <= 1e-9 * scale || wanted[i] == found[i] ||
              (isnan(wanted[i]) && isnan(found[i])))) {
            printf("    element %lld: %.12g, PyTorch %.12g\n", (long long)i, found[i], wanted[i]);
            say(what);
            return;
        }
}

static void check_tensor(const char *line)
{
    int64_t sizes[TN_MAX_DIMS], count;
    char shape[128];
    int place, requires, leaf;
    tn_tensor *x;

    if (sscanf(line, "is %d %127s %d %d", &place, shape, &requires, &leaf) != 4 ||
        (x = run.at[place]) == NULL) {
        say("not there");
        return;
    }
    count = row_of(shape, sizes);
    if (tn_tensor_ndim(x) != count ||
        (count > 0 && memcmp(tn_tensor_shape(x).at, sizes, (size_t)count * sizeof *sizes) != 0))
        say("another shape");
    else if (tn_tensor_requires_grad(x) != (requires != 0))
        say(requires != 0 ? "requires no gradient" : "requires a gradient");
    else if (tn_tensor_is_leaf(x) != (leaf != 0))
        say("leaf or not");
    else
        compare(x, line, "another value");
}

static void check_gradient(const char *line)
{
    int place = 0;
    bool none = strstr(line, "none") != NULL;
    tn_tensor *g;

    sscanf(line, "grad %d", &place);
    if (run.at[place] == NULL)
        return;
    g = tn_tensor_grad(run.at[place]);
    if (g == TN_NONE && !none)
        say("no gradient");
    else if (g != TN_NONE && none)
        say("a gradient");
    else if (!none)
        compare(g, line, "another gradient");
}

/* Runs one instruction; returns whether it succeeded. */
static bool step(char *line)
{
    static double values[LINE];
    char name[64], inputs[128], options[256], shape[128];
    int64_t sizes[TN_MAX_DIMS];
    int a, b, c;
    double s;

    if (sscanf(line, "new %d %127s %d", &a, shape, &b) == 3) {
        tn_ints row = { sizes, row_of(shape, sizes) };

        numbers_of(line, values);
        put(a, tn_tensor_from(values, TN_F64, row));
        return !b || tn_tensor_set_requires_grad(run.at[a], true) == TN_OK;
    }
    if (sscanf(line, "op %63s %d %127s %255s", name, &a, inputs, options) == 4)
        return operate(name, a, inputs, options, false);
    if (sscanf(line, "change %63s %127s %255s", name, inputs, options) == 3)
        return operate(name, 0, inputs, options, true);
    if (sscanf(line, "detach %d %d", &a, &b) == 2) {
        put(a, tn_detach(run.at[b]));
        return run.at[a] != NULL;
    }
    if (sscanf(line, "cut %d", &a) == 1)
        return tn_detach_(run.at[a]) != NULL;
    if (sscanf(line, "retain %d", &a) == 1)
        return tn_tensor_retain_grad(run.at[a]) == TN_OK;
    if (sscanf(line, "hook %d %lg", &a, &s) == 2) {
        scales[n_scales] = s;
        return tn_tensor_hook(run.at[a], scaled, &scales[n_scales++], NULL) != 0;
    }
    if (sscanf(line, "requires %d %d", &a, &b) == 2)
        return tn_tensor_set_requires_grad(run.at[a], b != 0) == TN_OK;
    if (sscanf(line, "backward %d %d %d", &a, &b, &c) == 3)
        return backward(run.at[a], b, c, line);
    if (sscanf(line, "begin %63s", name) == 1)
        mode(name);
    else
        mode_end();
    return true;
}

static void begin(const char *line)
{
    while (run.n_modes > 0)
        mode_end();
    for (int i = 0; i < REGISTERS; i++) /* a gradient with a graph would hold its leaf */
        if (run.at[i] != NULL)
            tn_tensor_set_grad(run.at[i], TN_NONE);
    for (int i = 0; i < REGISTERS; i++)
        if (run.at[i] != NULL)
            tn_tensor_drop(run.at[i]);
    memset(&run, 0, sizeof run);
    n_scales = 0;
    if (sscanf(line, "program %ld", &run.seed) == 1)
        programs++;
    if (tn_failed())
        say("an error was left behind");
}

static void play(char *line)
{
    TN_SCOPE;
    char copy[256];
    bool refused, done;

    if (strncmp(line, "program ", 8) == 0) {
        begin(line);
        return;
    }
    if (run.wrong && strncmp(line, "end ", 4) != 0 && strncmp(line, "begin ", 6) != 0)
        return;
    snprintf(copy, sizeof copy, "%.200s", line);
    run.line = copy;
    if (strncmp(line, "is ", 3) == 0) {
        check_tensor(line);
        return;
    }
    if (strncmp(line, "grad ", 5) == 0) {
        check_gradient(line);
        return;
    }
    refused = strstr(line, " refused") != NULL;
    done = step(line);
    if (done && refused)
        say("went through; PyTorch refuses");
    else if (!done && !refused)
        say("refused; PyTorch does it");
    if (!done && !tn_failed() && !run.wrong)
        say("refused without an error");
    tn_error_clear();
}

int main(int argc, char **argv)
{
    static char line[LINE];
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    int64_t nodes = tn_grad_node_count();

    if (file == NULL || tn_default_device() == NULL) {
        fprintf(stderr, "replay_programs FILE: %s\n",
                tn_failed() ? tn_error_text() : "the file cannot be opened");
        return 2;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        play(line);
    }
    fclose(file);
    begin("");
    if (tn_grad_node_count() != nodes) {
        printf("%lld nodes of graphs are left\n", (long long)(tn_grad_node_count() - nodes));
        failures++;
    }
    printf("%ld programs, %ld differ from PyTorch\n", programs, failures);
    tn_shutdown();
    return failures > 0 || programs == 0;
}
