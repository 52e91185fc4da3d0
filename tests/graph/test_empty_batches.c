/* SPDX-License-Identifier: MIT
 *
 * Every layer in training with a batch of no samples: results, buffers and gradients are those of
 * PyTorch (tests/graph/empty_batches.txt), and a plan and a whole step leave the same buffers. */
#include <math.h>
#include <stdarg.h>

#include "tests/graph/suite.h"
#include "tests/oracle/rows.h"

enum { LINE = 1 << 12, MOST = 8, LINES = 64 };

/* Where Tenon intentionally differs from PyTorch, with the reason. */
static struct {
    const char *layer, *complaint, *why;
    bool used;
} differences[] = {
    { "InstanceNorm", "PyTorch refuses it", "its code for weights reads sample 0", false },
    { "LazyInstanceNorm", "PyTorch refuses it", "as above", false },
    { "InstanceNorm", "running_", "PyTorch's become NaN", false },
    { "PixelUnshuffle", "another shape than", "PyTorch returns the input as it is", false },
    { "LazyConv2d", "PyTorch takes it", "one sample without channels, and two groups", false },
    { NULL, NULL, NULL, false },
};

/* One layer of the file: its inputs, and the lines with PyTorch's answers. */
static char spec[LINE];
static tn_tensor *in[MOST];
static int64_t n_in;
static char lines[LINES][LINE];
static int n_lines, layers, wrong, planned, stepped;

static void complain(const char *format, ...)
{
    char text[512];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    for (int i = 0; differences[i].layer != NULL; i++)
        if (strncmp(spec, differences[i].layer, strlen(differences[i].layer)) == 0 &&
            strncmp(text, differences[i].complaint, strlen(differences[i].complaint)) == 0) {
            differences[i].used = true;
            return;
        }
    fprintf(stderr, "%s: %s\n", spec, text);
    wrong++;
}

/* ---- a call ---------------------------------------------------------------------------------- */

static int64_t tensors_of(const tn_value *value, tn_tensor **out, int64_t at)
{
    if (value->kind == TN_VALUE_TENSOR)
        out[at++] = tn_keep(value->as.tensor);
    if (value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE)
        for (uint32_t i = 0; i < value->count; i++)
            at = tensors_of(&value->as.list[i], out, at);
    return at;
}

static void drop_all(tn_tensor **out, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        tn_tensor_drop(out[i]);
}

/* Calls the module and runs backward from the sum of its results; returns how many, or -1. The
 * caller drops them. */
static int64_t called(tn_module *module, tn_tensor **out)
{
    tn_pack *given = tn_pack_new(), *results = tn_pack_new();
    tn_tensor *loss = NULL;
    int64_t count = 0;

    for (int64_t i = 0; i < n_in; i++)
        ck_ok(tn_pack_add(given, NULL, tn_value_tensor(in[i])));
    if (tn_module_call_pack(module, given, results) != TN_OK)
        count = -1;
    for (int64_t i = 0; count >= 0 && i < tn_pack_count(results); i++) {
        tn_value value = tn_pack_at(results, i);

        count = tensors_of(&value, out, count);
    }
    for (int64_t i = 0; i < count; i++)
        if (tn_tensor_requires_grad(out[i]))
            loss = loss == NULL ? tn_sum(out[i]) : tn_add(loss, tn_sum(out[i]));
    if (loss != NULL && tn_backward(loss) != TN_OK)
        complain("no backward: %s", tn_error_text());
    tn_pack_drop(given);
    tn_pack_drop(results);
    return count;
}

/* ---- comparing with PyTorch ------------------------------------------------------------------ */

static bool has_values(tn_tensor *tensor, const char *text)
{
    double found[512];
    int64_t count = tn_tensor_numel(tensor);
    tn_tensor *wide = tn_cast(tn_detach(tensor), TN_F64);

    ck_assert_int_le(count, 512);
    ck_ok(tn_tensor_copy_out(wide, found, (size_t)count * sizeof *found));
    for (int64_t i = 0; i < count; i++) {
        char *end;
        double expected = strtod(text, &end);

        if (end == text || (isnan(expected) ? !isnan(found[i]) : found[i] != expected))
            return false;
        text = end;
    }
    return true;
}

static void compare_result(tn_tensor *got, char *line)
{
    int64_t sizes[TN_MAX_DIMS], ndim;
    char *value = strstr(line, " : ");
    bool same;

    ck_assert_ptr_nonnull(value);
    *value = '\0';
    ndim = read_row(line, sizes);
    same = tn_tensor_ndim(got) == ndim;
    for (int64_t d = 0; same && d < ndim; d++)
        same = tn_tensor_size(got, d) == sizes[d];
    if (!same)
        complain("another shape than %s", line);
    else if (value[3] != '?' && !has_values(got, value + 3))
        complain("another result than %s", value + 3);
}

static void compare_gradient(tn_module *module, char *line)
{
    char *kind = strrchr(line, ' ');
    tn_tensor *parameter, *grad;

    *kind++ = '\0';
    parameter = tn_module_find_tensor(module, line);
    ck_made(parameter);
    grad = tn_tensor_grad(parameter);
    if (grad == TN_NONE) /* what was not recorded is 0 */
        return;
    ck_assert_str_ne(kind, "none");
    grad = tn_sum(tn_abs(grad));
    if (strcmp(kind, "0") == 0 ? tn_item(grad) != 0 : !isnan(tn_item(grad)))
        complain("the gradient of %s is %g, PyTorch says %s", line, tn_item(grad), kind);
}

/* Whatever PyTorch makes of them: a batch without samples makes no statistics NaN. */
static void expect_numbers(tn_module *module)
{
    tn_walk *walk = tn_walk_begin(module, TN_SLOT_BUFFER, NULL);

    for (const tn_visit *at = tn_walk_next(walk); at != NULL; at = tn_walk_next(walk))
        if (at->tensor != NULL && at->tensor != TN_NONE &&
            tn_item(tn_any(tn_isnan(at->tensor))) != 0)
            complain("NaN in %s", at->path);
    tn_walk_end(walk);
}

/* Returns whether Tenon takes the batch. */
static bool compare(tn_module *module)
{
    tn_tensor *out[64];
    int64_t count = called(module, out), at = 0;
    bool refused = n_lines > 0 && strcmp(lines[0], "refused") == 0;

    if (refused != (count < 0))
        complain("PyTorch %s it, Tenon: %s", refused ? "refuses" : "takes",
                 count < 0 ? tn_error_text() : "takes it");
    tn_error_clear();
    for (int i = 0; i < n_lines && count >= 0 && !refused; i++) {
        char *value = strstr(lines[i], " : "), *text = strchr(lines[i], ' ') + 1;

        if (strncmp(lines[i], "out ", 4) == 0) {
            ck_assert_int_lt(at, count);
            compare_result(out[at++], text);
        } else if (strncmp(lines[i], "after ", 6) == 0) {
            *value = '\0';
            ck_made(tn_module_find_tensor(module, text));
            if (!has_values(tn_module_find_tensor(module, text), value + 3))
                complain("%s is not %s after the call", text, value + 3);
            *value = ' ';
        } else if (strncmp(lines[i], "grad ", 5) == 0) {
            compare_gradient(module, text);
        }
    }
    expect_numbers(module);
    drop_all(out, count);
    return count >= 0;
}

/* ---- comparing with plans and steps ---------------------------------------------------------- */

static void same_buffers(tn_module *a, tn_module *b, const char *how)
{
    tn_walk *x = tn_walk_begin(a, TN_SLOT_BUFFER, NULL);
    tn_walk *y = tn_walk_begin(b, TN_SLOT_BUFFER, NULL);

    for (const tn_visit *at = tn_walk_next(x), *other = tn_walk_next(y); at != NULL;
         at = tn_walk_next(x), other = tn_walk_next(y))
        if (at->tensor != NULL && at->tensor != TN_NONE) {
            ck_assert_str_eq(at->path, other->path);
            if (tn_equality_of(tn_isclose(other->tensor, at->tensor, 0, 0, true)) != 1)
                complain("%s leaves another %s", how, at->path);
        }
    tn_walk_end(x);
    tn_walk_end(y);
}

/* A step of a module that returns the loss. */
static bool take_step(tn_module *module)
{
    tn_optimizer *rule = tn_optimizer_new(module, "SGD(lr=0.1)");
    tn_step *step = tn_step_new(module, NULL, rule, NULL);
    tn_tensor *x = tn_detach(in[0]), *loss;
    bool taken;

    ck_made(rule);
    taken = step != NULL && tn_step_run(step, &x, 1, &loss, 1) == TN_OK;
    tn_error_clear();
    tn_step_drop(step);
    tn_optimizer_drop(rule);
    return taken;
}

/* The layer in a module that returns the sum of its first result. */
static tn_tensor *summed(tn_module *self, tn_tensor *x)
{
    return tn_sum(tn_module_call_child(self, "layer", x));
}

static void compare_step(tn_module *eager, tn_module *layer)
{
    tn_module *module = tn_module_plain("Net");

    ck_ok(tn_module_add_child(module, "layer", layer));
    ck_ok(tn_module_set_forward(module, summed, NULL, NULL));
    if (take_step(module)) {
        same_buffers(eager, layer, "a step");
        stepped++;
    }
    tn_module_drop(module);
}

static void check_layer(void)
{
    TN_SCOPE;
    tn_module *modules[3];
    tn_tensor *out[64];

    if (spec[0] == '\0')
        return;
    layers++;
    for (int i = 0; i < 3; i++) {
        tn_random_seed(7);
        modules[i] = tn_module_parse(spec);
        ck_made(modules[i]);
        ck_ok(tn_module_to(modules[i], NULL, TN_F64));
    }
    if (compare(modules[0])) {
        int64_t count = tn_module_compile(modules[1], "plan(train=True)") == TN_OK
                            ? called(modules[1], out)
                            : -1;

        if (count >= 0) {
            same_buffers(modules[0], modules[1], "a plan");
            planned++;
        }
        drop_all(out, count);
        tn_error_clear();
        if (n_in == 1 && tn_module_parameter_count(modules[2]) > 0)
            compare_step(modules[0], modules[2]);
    }
    for (int i = 0; i < 3; i++)
        tn_module_drop(modules[i]);
    for (int64_t i = 0; i < n_in; i++)
        tn_tensor_drop(in[i]);
    n_in = n_lines = 0;
    ck_assert_msg(!tn_failed(), "%s: %s", spec, tn_error_text());
}

/* ---- the file -------------------------------------------------------------------------------- */

static void read_input(const char *text)
{
    char name[16], shape[128];
    int64_t sizes[TN_MAX_DIMS], ndim;
    tn_dtype dtype;

    ck_assert_int_eq(sscanf(text, "%15s %127s", name, shape), 2);
    ck_ok(tn_dtype_parse(name, &dtype));
    ndim = read_row(shape, sizes);
    ck_assert_int_lt(n_in, MOST);
    in[n_in] = tn_tensor_keep(tn_tensor_full((tn_ints){ sizes, ndim }, 0, dtype, NULL));
    ck_made(in[n_in]);
    if (dtype == TN_F64 && n_in == 0)
        ck_ok(tn_tensor_set_requires_grad(in[n_in], true));
    n_in++;
}

START_TEST(every_layer_takes_a_batch_without_samples_as_pytorch_does)
{
    static char line[LINE];
    FILE *file = fopen(TN_TEST_SRCDIR "/tests/graph/empty_batches.txt", "r");

    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        TN_SCOPE;
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "layer ", 6) == 0 || strcmp(line, "end") == 0) {
            check_layer();
            snprintf(spec, sizeof spec, "%s", line[0] == 'l' ? line + 6 : "");
        } else if (strncmp(line, "in ", 3) == 0) {
            read_input(line + 3);
        } else {
            ck_assert_int_lt(n_lines, LINES);
            snprintf(lines[n_lines++], sizeof lines[0], "%s", line);
        }
    }
    fclose(file);
    printf("%d layers, %d plans, %d steps\n", layers, planned, stepped);
    ck_assert_int_eq(wrong, 0);
    for (int i = 0; differences[i].layer != NULL; i++)
        ck_assert_msg(differences[i].used, "%s is as in PyTorch now: %s", differences[i].layer,
                      differences[i].why);
    ck_assert_int_gt(layers, 300);
    ck_assert_int_gt(planned, 200);
    ck_assert_int_gt(stepped, 40);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { every_layer_takes_a_batch_without_samples_as_pytorch_does,
                                   NULL };

    return suite_run("empty batches", tests);
}
