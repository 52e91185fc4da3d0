/* SPDX-License-Identifier: MIT
 *
 * Comparison with PyTorch: replays the calls that the scripts in tests/oracle have written, with
 * tn_op_call on every device of the machine, forward and backward. */
#include "tests/libcheck.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

#include "sdk/conform/reference.h"
#include "tests/op/suite.h"
#include "tests/oracle/case.h"
#include "tests/oracle/shares.h"

static double found[VALUES];

/* Devices may lack a kernel or a dtype (a GPU without float64, float16): such a call must fail with
 * a message, and is counted. The cpu may lack only LAPACK. */
static void skip(reading *r)
{
    ck_assert_msg(tn_error_code() == TN_ERR_NOT_IMPLEMENTED, "%s on %s: %s", r->name,
                  tn_device_name(tn_default_device()), tn_error_text());
    ck_assert_msg(strcmp(tn_device_type(tn_default_device()), "cpu") != 0 ||
                      strstr(tn_error_text(), "needs LAPACK") != NULL,
                  "%s: %s", r->name, tn_error_text());
    tn_error_clear();
    r->skipped = true;
    r->skips++;
}

/* A graph with this call alone infers the type and shape of each result before it runs, and
 * computes the same bits as the call. */
static void same_by_graph(const reading *r)
{
    const tn_op_def *def = tn_op_definition(r->op);
    tn_graph *graph = tn_graph_new();
    tn_node *in[MOST], *items[MOST], *node;
    tn_tensor *out[MOST];
    char name[16];

    for (int64_t i = 0; i < r->n_in; i++) {
        snprintf(name, sizeof name, "in%d", (int)i);
        in[i] = r->in[i] == TN_NONE ? TN_NODE_NONE : tn_graph_slot(graph, name, r->in[i]);
    }
    node = tn_graph_add_call(graph, NULL, r->op, r->options, in, r->n_in);
    ck_assert_msg(node != NULL, "%s: as a node: %s", r->name, tn_error_text());
    for (int32_t i = 0; i < def->n_outputs; i++) {
        tn_ints shape = tn_tensor_shape(r->out[i]);
        tn_meta meta;
        bool same;

        items[i] = tn_node_item(node, i);
        ck_assert_int_eq(tn_node_meta(items[i], &meta), TN_OK);
        same = meta.dtype == tn_tensor_dtype(r->out[i]) &&
               (meta.ndim == shape.count || meta.ndim == -1);
        for (int32_t d = 0; same && d < meta.ndim; d++)
            same = meta.shape[d] == shape.at[d];
        ck_assert_msg(same, "%s: output %d: inferred otherwise than it is", r->name, (int)i);
    }
    ck_assert_int_eq(tn_graph_output(graph, items, def->n_outputs), TN_OK);
    ck_assert_msg(tn_graph_run(graph, NULL, 0, out, def->n_outputs) == TN_OK, "%s: %s", r->name,
                  tn_error_text());
    for (int32_t i = 0; i < def->n_outputs && !(def->flags & TN_OP_RANDOM); i++) {
        size_t size = (size_t)tn_tensor_numel(out[i]) * tn_dtype_size(tn_tensor_dtype(out[i]));
        char *a = malloc(2 * size + 1), *b = a + size;

        ck_assert_int_eq(tn_tensor_copy_out(out[i], a, size), TN_OK);
        ck_assert_int_eq(tn_tensor_copy_out(r->out[i], b, size), TN_OK);
        ck_assert_msg(memcmp(a, b, size) == 0, "%s: output %d: a graph gives another one", r->name,
                      (int)i);
        free(a);
    }
    tn_graph_drop(graph);
}

/* A result goes into a tensor with strides that the caller supplies, as a call returns it (other
 * loops may round differently), and changes nothing between its elements. */
static void same_into_strides(const reading *r)
{
    const tn_op_def *def = tn_op_definition(r->op);
    const tn_ints shape = tn_tensor_shape(r->out[0]);
    size_t size = (size_t)tn_tensor_numel(r->out[0]) * tn_dtype_size(tn_tensor_dtype(r->out[0]));
    int64_t wide[TN_MAX_DIMS];
    tn_tensor *all, *parts[2], *whole = NULL;
    tn_status status;
    char *a;

    if (def->n_outputs != 1 || shape.count == 0 || size == 0 || (def->flags & TN_OP_RANDOM))
        return;
    memcpy(wide, shape.at, (size_t)shape.count * sizeof *wide);
    wide[shape.count - 1] *= 2;
    all = tn_tensor_full((tn_ints){ wide, shape.count }, 0, tn_tensor_dtype(r->out[0]), NULL);
    for (int k = 0; k < 2; k++)
        parts[k] = tn_slice(all, -1, k, INT64_MAX, 2);
    ck_assert_msg(parts[1] != NULL, "%s", tn_error_text());
    tn_grad_begin(false);
    status = tn_op_call_into(r->op, r->in, r->n_in, r->options, parts[0]);
    if (status == TN_OK)
        status = tn_op_call(r->op, r->in, r->n_in, r->options, &whole, 1);
    tn_grad_end();
    if (status != TN_OK) {
        ck_assert_msg(strstr(tn_error_text(), "cannot be written into") != NULL,
                      "%s: into strides: %s", r->name, tn_error_text());
        tn_error_clear();
        return;
    }
    a = calloc(3, size + 1);
    ck_assert_int_eq(tn_tensor_copy_out(parts[0], a, size), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(whole, a + size, size), TN_OK);
    ck_assert_msg(memcmp(a, a + size, size) == 0 ||
                      tn_equality_of(tn_isclose(parts[0], whole, 1e-5, 1e-8, true)) == 1,
                  "%s: another result in strides", r->name);
    ck_assert_int_eq(tn_tensor_copy_out(parts[1], a, size), TN_OK);
    ck_assert_msg(memcmp(a, a + 2 * size, size) == 0, "%s: writes between elements", r->name);
    free(a);
}

static void call(reading *r)
{
    const tn_op_def *def = tn_op_definition(r->op);

    if (r->called)
        return;
    r->called = true;
    if (def->n_outputs == 0 && write_into(r, r->in, r->out) == TN_OK)
        return;
    if (def->n_outputs > 0 &&
        tn_op_call(r->op, r->in, r->n_in, r->options, r->out, def->n_outputs) == TN_OK) {
        if (strcmp(tn_device_type(tn_default_device()), "cpu") == 0) {
            for (int32_t i = 0; i < def->n_outputs; i++) {
                const char *wrong = wrong_memory(def, r->out[i], r->in, r->n_in);

                ck_assert_msg(wrong == NULL, "%s: output %d: %s", r->name, (int)i, wrong);
            }
            same_by_graph(r);
            same_into_strides(r);
        }
        return;
    }
    skip(r);
}

static void compare(reading *r, tn_tensor *tensor, const char *what, int index, const char *text)
{
    tn_dtype dtype = tn_tensor_dtype(tensor);
    double step = dtype == TN_F64 || dtype == TN_C128 ? (r->exact ? 1e-10 : 1e-12)
                  : dtype == TN_F16                   ? (r->exact ? 2e-3 : 8e-3)
                  : dtype == TN_BF16                  ? (r->exact ? 1.6e-2 : 6e-2)
                                                      : 1e-5;
    double scale = 0;
    int64_t count = read_values(text);
    tn_dtype widest = is_complex(dtype) ? TN_C128 : TN_F64;
    tn_tensor *wide;

    ck_assert_msg(tn_tensor_numel(tensor) * (is_complex(dtype) ? 2 : 1) == count,
                  "%s: %s %d has %lld elements, PyTorch's has %lld", r->name, what, index,
                  (long long)tn_tensor_numel(tensor), (long long)count);
    wide = moved(tn_detach(tensor), tn_device_find("cpu"));
    if (dtype != widest)
        wide = tn_copy_(tn_tensor_empty(tn_tensor_shape(tensor), widest, tn_device_find("cpu")),
                        wide);
    ck_assert_msg(tn_tensor_copy_out(wide, found, (size_t)count * sizeof(double)) == TN_OK,
                  "%s: %s", r->name, tn_error_text());
    step = r->loose > step ? r->loose : step;
    for (int64_t i = 0; i < count && r->exact; i++)
        scale = isfinite(values[i]) ? fmax(scale, fabs(values[i])) : scale;
    for (int64_t i = 0; i < count; i++) {
        bool same = isnan(values[i])
                        ? isnan(found[i])
                        : found[i] == values[i] || fabs(found[i] - values[i]) <=
                                                       step * (1 + fmax(scale, fabs(values[i])));

        ck_assert_msg(same, "%s on %s: %s %d, element %lld: %.9g, PyTorch says %.9g", r->name,
                      tn_device_name(tn_default_device()), what, index, (long long)i, found[i],
                      values[i]);
    }
}

static void check_shape(reading *r, tn_tensor *tensor, const char *dtype, const char *shape)
{
    int64_t sizes[TN_MAX_DIMS], ndim = read_row(shape, sizes);

    ck_assert_msg(tn_tensor_dtype(tensor) == dtype_of(dtype), "%s: %s, PyTorch says %s", r->name,
                  tn_dtype_name(tn_tensor_dtype(tensor)), dtype);
    ck_assert_msg(tn_tensor_ndim(tensor) == ndim, "%s: %d dimensions, PyTorch says %d", r->name,
                  tn_tensor_ndim(tensor), (int)ndim);
    for (int64_t d = 0; d < ndim; d++)
        ck_assert_msg(tn_tensor_size(tensor, d) == sizes[d],
                      "%s: size %lld of dimension %d, PyTorch says %lld", r->name,
                      (long long)tn_tensor_size(tensor, d), (int)d, (long long)sizes[d]);
}

/* If PyTorch refuses a call, Tenon must refuse it too, with a message that names the operator. */
static void refuse(reading *r)
{
    const tn_op_def *def = tn_op_definition(r->op);

    tn_status status = tn_op_call(r->op, r->in, r->n_in, r->options, r->out, def->n_outputs);
    bool late = status == TN_OK;

    if (late) { /* a device may find the error later; tn_device_sync then returns it */
        status = tn_device_sync(tn_default_device());
        memset(r->out, 0, sizeof r->out);
    }
    ck_assert_msg(status != TN_OK, "%s: accepted, PyTorch refuses", r->name);
    ck_assert_msg(late ? tn_error_text()[0] != '\0' : strstr(tn_error_text(), def->name) != NULL,
                  "%s: the error does not name the operator: %s", r->name, tn_error_text());
    for (int32_t i = 0; i < def->n_outputs; i++)
        ck_assert_msg(r->out[i] == NULL, "%s: refused, but output %d is there", r->name, (int)i);
    tn_error_clear();
}

/* A gradient that was not recorded is zero. */
static bool is_zero(const char *text)
{
    int64_t count = read_values(text);

    for (int64_t i = 0; i < count; i++)
        if (values[i] != 0)
            return false;
    return true;
}

static void read_line(reading *r)
{
    char *text = strchr(r->line, ' ');
    char first[160], second[160];
    int used = 0;

    if (read_call(r))
        return;
    text = text != NULL ? text + 1 : r->line + strlen(r->line);
    if (strcmp(r->line, "refused") == 0) {
        refuse(r);
    } else if (strncmp(r->line, "loose ", 6) == 0) {
        r->loose = strtod(text, NULL);
    } else if (strncmp(r->line, "out ", 4) == 0) {
        call(r);
        if (r->skipped)
            return;
        ck_assert_int_eq(sscanf(text, "%159s %159s :%n", first, second, &used), 2);
        check_shape(r, r->out[r->n_out], first, second);
        compare(r, r->out[r->n_out], "output", r->n_out, text + used);
        r->n_out++;
    } else if (strncmp(r->line, "cot ", 4) == 0 && !r->skipped) {
        int64_t count = read_values(text + 1);
        tn_tensor *cotangent = tn_reshape(memory_of(tn_tensor_dtype(r->out[0]), count),
                                          tn_tensor_shape(r->out[0]));

        if (tn_tensor_requires_grad(r->out[0]) &&
            tn_backward_from(r->out, &cotangent, 1, NULL) != TN_OK)
            skip(r);
    } else if (strncmp(r->line, "grad ", 5) == 0 && !r->skipped) {
        int index = atoi(text);
        tn_tensor *gradient = tn_tensor_grad(r->in[index]);

        if (gradient == TN_NONE && r->exact && is_zero(strchr(text, ':') + 1))
            return;
        ck_assert_msg(gradient != TN_NONE, "%s: no gradient %d", r->name, index);
        ck_assert_int_eq(tn_tensor_dtype(gradient), tn_tensor_dtype(r->in[index]));
        compare(r, gradient, "gradient", index, strchr(text, ':') + 1);
    }
}

static void replay(const char *name, const char *device)
{
    static reading r;
    FILE *file = open_cases(name);
    uint64_t scope = tn_scope_begin();
    int64_t nodes = tn_grad_node_count();

    memset(&r, 0, sizeof r);
    r.exact = strcmp(name, "opinfo.txt") == 0;
    tn_device_begin(tn_device_find(device));
    while (fgets(r.line, LINE, file) != NULL) {
        r.line[strcspn(r.line, "\n")] = '\0';
        if (strncmp(r.line, "case ", 5) != 0 && strcmp(r.line, "end") != 0) {
            read_line(&r);
            continue;
        }
        tn_scope_end(scope);
        scope = tn_scope_begin();
        begin_case(&r);
    }
    fclose(file);
    free(r.options); /* of the last case */
    tn_device_end();
    tn_scope_end(scope);
    ck_assert_int_gt(r.cases, 100);
    ck_assert_int_eq(tn_grad_node_count(), nodes);
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    if (r.skips > 0)
        printf("%s: %d of %d cases of %s need a kernel or dtype that it has not\n", device, r.skips,
               r.cases, name);
}

START_TEST(operators_and_gradients_agree_with_pytorch)
{
    int64_t count;

    ck_assert_msg(conform_reference(TN_OP_PRIMITIVE) == TN_OK, "%s", tn_error_text());
    count = tn_device_count();
    ck_assert_int_gt(count, 0);
    for (int k = 0; k < CASE_FILES; k++)
        for (int64_t i = 0; i < count; i++)
            if (tn_device_has_memory(tn_device_at(i)))
                replay(case_files[k], tn_device_name(tn_device_at(i)));
}
END_TEST

/* Whether a text of this folder has cases with results. */
static bool has_results(const char *name)
{
    size_t length = strlen(name);
    char line[16] = "";
    FILE *file;

    if (length < 4 || strcmp(name + length - 4, ".txt") != 0 ||
        strcmp(name, "without_results.txt") == 0)
        return false;
    file = open_cases(name);
    ck_assert(fgets(line, sizeof line, file) != NULL);
    fclose(file);
    return strncmp(line, "case ", 5) == 0;
}

START_TEST(no_file_of_cases_is_left_out)
{
    DIR *folder = opendir(TN_TEST_SRCDIR "/tests/oracle");
    int found_files = 0;

    ck_assert(folder != NULL);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        int at = 0;

        if (!has_results(entry->d_name))
            continue;
        while (at < CASE_FILES && strcmp(case_files[at], entry->d_name) != 0)
            at++;
        ck_assert_msg(at < CASE_FILES, "%s is not in tests/oracle/case.h", entry->d_name);
        found_files++;
    }
    closedir(folder);
    ck_assert_int_eq(found_files, CASE_FILES);
}
END_TEST

int main(void)
{
    /* in addition to the available devices: the strict device, and cuda on the fake driver unless
     * another is named */
    setenv("TENON_PLUGIN_PATH_ADD", TN_TEST_BUILDDIR "/examples/strict-device/.libs", 1);
    setenv("TENON_CUDA_DRIVER", TN_TEST_BUILDDIR "/tests/.libs/fake-cuda.so", 0);
    setenv("TENON_CUDA_KERNELS", TN_TEST_SRCDIR "/tests/fake-cuda/kernels", 0);
    setenv("TENON_CUDA_BLAS", TN_TEST_BUILDDIR "/tests/.libs/fake-cuda.so", 0);
    Suite *suite = suite_create("oracle");
    TCase *tests = tcase_create("slice");

    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, no_file_of_cases_is_left_out);
    tcase_add_test(tests, operators_and_gradients_agree_with_pytorch);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
