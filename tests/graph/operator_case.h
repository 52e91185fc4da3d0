/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests that make graphs of the cases of tests/oracle: a module that calls one
 * operator, its results and gradients. */
#ifndef TN_TESTS_GRAPH_OPERATOR_CASE_H
#define TN_TESTS_GRAPH_OPERATOR_CASE_H

#include "tests/graph/suite.h"
#include "tests/oracle/case.h"

static reading r;

/* ---- the module ------------------------------------------------------------------------------ */

/* Whether the module copies its results: a training plan returns no views of inputs. */
static TN_ATTR(unused) bool copies;

/* Whether all inputs but the first are buffers of the module. */
static TN_ATTR(unused) bool held;
/* Computes the module's result from the first result of the operator; NULL: the module returns the
 * results of the operator. */
static TN_ATTR(unused) tn_tensor *(*tail)(tn_module *self, tn_tensor *y);

static bool is_updated(int64_t i)
{
    const tn_op_def *def = tn_op_definition(r.op);

    return i < def->n_inputs && (def->inputs[i].flags & TN_OPERAND_UPDATED) != 0 &&
           r.in[i] != TN_NONE;
}

/* The name of the buffer that holds input i; NULL if the input is in the pack. An input that the
 * operator updates is a buffer, too. */
static const char *buffer_name(int64_t i)
{
    static char name[16];

    snprintf(name, sizeof name, "in%d", (int)i);
    return is_updated(i) || (held && i > 0 && r.in[i] != TN_NONE) ? name : NULL;
}

/* Calls the operator of the case with the tensors of the pack; absent inputs are not in it. */
static tn_status call_case(tn_module *self, const tn_pack *input, tn_pack *output)
{
    int64_t count = tn_op_definition(r.op)->n_outputs, at = 0;
    tn_tensor *in[MOST], *out[MOST] = { NULL };
    tn_status status;

    for (int64_t i = 0; i < r.n_in; i++)
        in[i] = r.in[i] == TN_NONE       ? TN_NONE
                : buffer_name(i) != NULL ? tn_module_get(self, buffer_name(i))
                                         : tn_pack_tensor(input, at++);
    status = count == 0 ? write_into(&r, in, out)
                        : tn_op_call(r.op, in, r.n_in, r.options, out, count);
    if (status == TN_OK && tail != NULL && (out[0] = tail(self, out[0])) == NULL)
        status = tn_error_last_code();
    for (int64_t i = 0; i < MOST && status == TN_OK; i++) {
        if (out[i] != NULL && copies && (out[i] = tn_clone(out[i])) == NULL)
            status = tn_error_last_code();
        if (status == TN_OK && out[i] != NULL)
            status = tn_pack_add(output, NULL, tn_value_tensor(out[i]));
    }
    return status;
}

static TN_ATTR(unused) tn_module *new_module(void)
{
    tn_module *module = tn_module_plain("Case");

    ck_made(module);
    ck_ok(tn_module_set_call(module, call_case, NULL, NULL));
    for (int64_t i = 0; i < r.n_in; i++)
        if (buffer_name(i) != NULL)
            ck_ok(tn_module_add_buffer(module, buffer_name(i), tn_clone(r.in[i]), 0));
    return module;
}

/* The inputs that are in the pack. */
static TN_ATTR(unused) int64_t present(tn_tensor **in)
{
    int64_t count = 0;

    for (int64_t i = 0; i < r.n_in; i++)
        if (r.in[i] != TN_NONE && buffer_name(i) == NULL)
            in[count++] = r.in[i];
    return count;
}

static TN_ATTR(unused) tn_pack *packed(void)
{
    tn_pack *pack = tn_pack_new();
    tn_tensor *in[MOST];
    int64_t count = present(in);

    for (int64_t i = 0; i < count; i++)
        ck_ok(tn_pack_add(pack, NULL, tn_value_tensor(in[i])));
    return pack;
}

/* ---- results --------------------------------------------------------------------------------- */

/* The results of a call, and the gradients of the inputs. The scope owns the tensors. */
struct results {
    bool well;
    int64_t n_out;
    tn_tensor *out[2 * MOST], *gradients[MOST];
};

/* Computes gradients. The cotangent of each output is the output itself. */
static tn_status backward(struct results *results)
{
    tn_tensor *from[2 * MOST], *cotangents[2 * MOST];
    int64_t count = 0;

    for (int64_t i = 0; i < results->n_out; i++)
        if (tn_tensor_requires_grad(results->out[i])) {
            from[count] = results->out[i];
            cotangents[count++] = tn_copy(tn_detach(results->out[i]));
        }
    return count > 0 ? tn_backward_from(from, cotangents, count, NULL) : TN_OK;
}

static TN_ATTR(unused) void run(tn_module *module, struct results *results)
{
    tn_pack *in = packed(), *out = tn_pack_new();
    tn_status status;

    memset(results, 0, sizeof *results);
    tn_random_seed(7);
    for (int64_t i = 0; i < r.n_in; i++)
        if (r.in[i] != TN_NONE)
            ck_ok(tn_tensor_set_grad(r.in[i], TN_NONE));
    for (int64_t i = 0; i < r.n_in; i++)
        if (buffer_name(i) != NULL)
            ck_made(tn_copy_(tn_module_get(module, buffer_name(i)), r.in[i]));
    status = tn_module_call_pack(module, in, out);
    for (int64_t i = 0; i < tn_pack_count(out) && status == TN_OK; i++) {
        results->out[i] = tn_tensor_to_scope(tn_tensor_keep(tn_pack_tensor(out, i)));
        results->n_out++;
    }
    if (status == TN_OK && tn_grad_enabled())
        status = backward(results);
    for (int64_t i = 0; i < r.n_in && status == TN_OK; i++) {
        results->gradients[i] = r.in[i] == TN_NONE ? TN_NONE : tn_tensor_grad(r.in[i]);
        if (results->gradients[i] != TN_NONE)
            results->gradients[i] = tn_copy(results->gradients[i]);
    }
    results->well = status == TN_OK;
    for (int64_t i = 0; i < r.n_in && status == TN_OK; i++)
        if (buffer_name(i) != NULL)
            results->out[results->n_out++] = tn_clone(tn_module_get(module, buffer_name(i)));
    tn_pack_drop(in);
    tn_pack_drop(out);
}

static TN_ATTR(unused) void same_bits(tn_tensor *a, tn_tensor *b, const char *what)
{
    size_t bytes;
    char *x, *y;

    if (a == TN_NONE || b == TN_NONE) {
        ck_assert_msg(a == b, "%s: %s: one is missing", r.name, what);
        return;
    }
    ck_assert_msg(tn_tensor_dtype(a) == tn_tensor_dtype(b) &&
                      tn_tensor_numel(a) == tn_tensor_numel(b) &&
                      tn_tensor_ndim(a) == tn_tensor_ndim(b),
                  "%s: %s: other types or shapes", r.name, what);
    for (int64_t d = 0; d < tn_tensor_ndim(a); d++)
        ck_assert_msg(tn_tensor_size(a, d) == tn_tensor_size(b, d), "%s: %s: other sizes", r.name,
                      what);
    bytes = (size_t)tn_tensor_numel(a) * tn_dtype_size(tn_tensor_dtype(a));
    x = malloc(2 * bytes + 1);
    y = x + bytes;
    ck_ok(tn_tensor_copy_out(tn_detach(a), x, bytes));
    ck_ok(tn_tensor_copy_out(tn_detach(b), y, bytes));
    ck_assert_msg(memcmp(x, y, bytes) == 0, "%s: %s: other values", r.name, what);
    free(x);
}

static TN_ATTR(unused) void compare(const struct results *got, const struct results *expected,
                                    const char *what)
{
    char text[64];

    ck_assert_msg(got->well == expected->well, "%s: %s: %s", r.name, what, tn_error_text());
    tn_error_clear();
    if (!got->well)
        return;
    ck_assert_int_eq(got->n_out, expected->n_out);
    for (int64_t i = 0; i < got->n_out; i++) {
        snprintf(text, sizeof text, "%s: output %d", what, (int)i);
        same_bits(got->out[i], expected->out[i], text);
    }
    for (int64_t i = 0; i < r.n_in; i++) {
        snprintf(text, sizeof text, "%s: gradient %d", what, (int)i);
        same_bits(got->gradients[i], expected->gradients[i], text);
    }
}

/* ---- all cases ------------------------------------------------------------------------------- */

static void replay(const char *name, void (*check)(void))
{
    FILE *file = open_cases(name);
    uint64_t scope = tn_scope_begin();
    bool more = true;

    while (more) {
        more = fgets(r.line, LINE, file) != NULL;
        r.line[strcspn(r.line, "\n")] = '\0';
        if (more && strncmp(r.line, "case ", 5) != 0 && strcmp(r.line, "end") != 0) {
            if (!read_call(&r) && !r.called) {
                r.called = true;
                check();
            }
            continue;
        }
        if (r.op != NULL && !r.called) /* a case without results */
            check();
        tn_scope_end(scope);
        scope = tn_scope_begin();
        begin_case(&r);
    }
    fclose(file);
    tn_scope_end(scope);
}

/* Calls `check` for each case. */
static TN_ATTR(unused) void each_case(void (*check)(void))
{
    for (int i = 0; i < CASE_FILES; i++)
        replay(case_files[i], check);
    replay("without_results.txt", check);
}

#endif
