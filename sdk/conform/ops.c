/* SPDX-License-Identifier: MIT
 *
 * The level ops of tenon check, and the loop over cases of the levels ops and grad. Every operator
 * that a device runs is compared with the reference, which computes in float64, in all dtypes of
 * the device and in several layouts of the inputs. */
#include "ops.h"

#include <stdlib.h>
#include <string.h>

#include "reference.h"

/* Operators with discontinuous results, where a rounding error of the inputs can change the result
 * entirely: the reference computes them in the dtype under test. */
static const char *const jumping[] = { "softplus",
                                       "philox_uniform",
                                       "philox_normal",
                                       "floor",
                                       "ceil",
                                       "trunc",
                                       "round",
                                       "frac",
                                       "sign",
                                       "div",
                                       "remainder",
                                       "fmod",
                                       "eq",
                                       "ne",
                                       "lt",
                                       "le",
                                       "gt",
                                       "ge",
                                       "argmax",
                                       "argmin",
                                       "sort",
                                       "topk",
                                       "max_dim",
                                       "kthvalue",
                                       "median",
                                       "median_dim",
                                       "nanmedian",
                                       "nanmedian_dim",
                                       "mode",
                                       "quantile",
                                       "nanquantile",
                                       "cummax",
                                       "cummin",
                                       "min_dim",
                                       "isclose",
                                       "nonzero",
                                       "cast",
                                       "arange",
                                       "linspace",
                                       "bucketize",
                                       "hardshrink",
                                       "heaviside",
                                       "nan_to_num",
                                       "nextafter",
                                       "isfinite",
                                       "isinf",
                                       "pow",
                                       "copy",
                                       "fill",
                                       "full",
                                       NULL };

static bool is_in(const char *const *list, const char *name)
{
    for (; *list != NULL; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

/* Returns the dtype of a case: that of its first float or complex input, else that of its first
 * input. */
static tn_dtype dtype_of(const conform_case *one)
{
    tn_dtype dtype = TN_F32;
    bool found = false;

    for (int64_t i = 0; i < one->n_in; i++) {
        const conform_tensor *t = &one->in[i];

        if (t->there && (is_float(t->dtype) || is_complex(t->dtype)))
            return t->dtype;
        if (t->there && !found) {
            dtype = t->dtype;
            found = true;
        }
    }
    return dtype;
}

/* Returns true if the operator accepts the case when its inputs of dtype `from` become `dtype`. */
static bool accepts(const conform_case *one, tn_dtype from, tn_dtype dtype)
{
    for (int64_t i = 0; i < one->n_in; i++) {
        const tn_operand *operand =
            &one->def->inputs[i < one->def->n_inputs ? i : one->def->n_inputs - 1];

        if (one->in[i].there && one->in[i].dtype == from && operand->dtypes != 0 &&
            !(operand->dtypes & TN_BIT(dtype)))
            return false;
    }
    return true;
}

/* ---- one case ---- */

/* Stores how the device runs the operator in a dtype (kernel, decomposition, ...). */
static void note_route(subject *s, const conform_case *one, tn_dtype dtype)
{
    tally *row = &s->row[dtype];

    if (row->route[0] == '\0' &&
        tn_op_route(one->op, tn_device_type(s->device), dtype, row->route, sizeof row->route) < 0)
        tn_error_clear();
}

bool conform_missing(subject *s, const conform_case *one, tn_dtype dtype)
{
    if (tn_error_code() != TN_ERR_NOT_IMPLEMENTED)
        return conform_fail(s->c, "case %s as %s: %s", one->name, tn_dtype_name(dtype),
                            tn_error_text());
    tn_error_clear();
    s->row[dtype].missing++;
    return false;
}

bool conform_jumps(const conform_case *one)
{
    return is_in(jumping, one->def->name) || one->draws;
}

/* Calls the operator with its first input as output, if that has dtype and shape of the output of
 * the plain call. The memory between the elements must not change. */
static bool in_place(subject *s, const where_from *given, tn_dtype from, tn_tensor *plain,
                     tn_tensor *expected)
{
    where_from here = *given, *w = &here;
    const conform_case *one = given->one;
    attempt a;
    tn_tensor *into;
    size_t size = 0;
    char *before, *after;
    bool well = true, other = false;
    int64_t index[TN_MAX_DIMS] = { 0 };
    const conform_tensor *t = &one->in[0];

    here.layout = "with gaps, written in place";
    if (conform_inputs(one, from, w->dtype, false, s->device, CONFORM_APART, false, &a) != TN_OK)
        return conform_missing(s, one, w->dtype);
    into = a.in[0];
    if (into == TN_NONE || tn_tensor_dtype(into) != tn_tensor_dtype(plain) ||
        tn_tensor_numel(into) != tn_tensor_numel(plain) || tn_tensor_numel(into) == 0 ||
        tn_tensor_ndim(into) != tn_tensor_ndim(plain))
        return true;
    before = conform_bytes(a.whole[0], &size);
    tn_device_begin(s->device);
    tn_random_seed(7);
    a.status = tn_op_call_into(one->op, a.in, one->n_in, one->options, into);
    tn_device_end();
    if (a.status != TN_OK) {
        free(before);
        if (tn_error_code() == TN_ERR_NOT_IMPLEMENTED) {
            tn_error_clear();
            return true;
        }
        return conform_differ(s, w, tn_error_text());
    }
    after = conform_bytes(a.whole[0], &size);
    /* the elements may change, the gaps between them must not */
    if (before != NULL && after != NULL) {
        size_t each = tn_dtype_size(tn_tensor_dtype(into));
        int64_t held = (int64_t)(size / each);
        bool *own = calloc((size_t)held, sizeof *own);
        const tn_view *view = tn_tensor_view(into);

        for (int64_t i = 0; own != NULL && i < t->count; i++) {
            int64_t place = 3;

            for (int32_t d = 0; d < t->ndim; d++)
                place += index[d] * view->strides[d];
            own[place] = true;
            for (int32_t d = t->ndim - 1; d >= 0 && ++index[d] == t->shape[d]; d--)
                index[d] = 0;
        }
        for (int64_t i = 0; own != NULL && i < held && !other; i++)
            other = !own[i] &&
                    memcmp(before + i * (int64_t)each, after + i * (int64_t)each, each) != 0;
        free(own);
    }
    free(before);
    free(after);
    if (other)
        well = conform_differ(s, w, "in place: memory between the elements was written to");
    return well && conform_compare(s, w, into, expected);
}

/* Checks that inputs declared as updated have the same new values as on the reference. */
static bool updates_agree(subject *s, const where_from *given, const attempt *a, const attempt *ref)
{
    where_from w = *given;
    const tn_op_def *def = w.one->def;
    bool well = true;

    w.what = "updated input";
    for (int64_t i = 0; i < w.one->n_in && i < def->n_inputs && well; i++) {
        w.index = i;
        if (w.one->in[i].there && (def->inputs[i].flags & TN_OPERAND_UPDATED) != 0)
            well = conform_compare(s, &w, a->in[i], ref->in[i]);
    }
    return well;
}

/* Returns true if the operator is a view that memory in this layout cannot have: then the reference
 * refuses the layout, too. */
static bool impossible_view(subject *s, const where_from *w, tn_dtype from, conform_layout layout)
{
    const tn_device *reference = tn_device_find("reference");
    attempt a;

    return (w->one->def->flags & TN_OP_VIEW) != 0 && s->called > 0 &&
           conform_inputs(w->one, from, w->dtype, false, reference, layout, false, &a) == TN_OK &&
           conform_call(w->one, reference, 7, &a) != TN_OK;
}

/* Runs all checks of the level ops on a case whose inputs of dtype `from` become `dtype`. */
static bool forward(subject *s, conform_case *one, tn_dtype from, tn_dtype dtype)
{
    attempt ref, a, again;
    bool wide = !conform_jumps(one), well = true;
    where_from w = { one, dtype, conform_layout_names[0], "output", 0 };
    void *before[OPERANDS] = { NULL };
    size_t sizes[OPERANDS];

    if (from == dtype && !conform_flags_case(s, one, dtype))
        return false;
    if (conform_inputs(one, from, dtype, wide, tn_device_find("reference"), CONFORM_AS_GIVEN, false,
                       &ref) != TN_OK ||
        conform_call(one, tn_device_find("reference"), 7, &ref) != TN_OK) {
        /* Some operators, such as linalg_solve, have neither a decomposition nor a reference. */
        if (tn_error_code() == TN_ERR_NOT_IMPLEMENTED) {
            tn_error_clear();
            s->unjudged++;
            return true;
        }
        return conform_fail(s->c, "case %s as %s: reference: %s", one->name, tn_dtype_name(dtype),
                            tn_error_text());
    }
    if (from == dtype)
        well = conform_own_results(s, one, ref.out);
    for (int layout = 0; layout < CONFORM_LAYOUTS && well; layout++) {
        w.layout = conform_layout_names[layout];
        if (conform_inputs(one, from, dtype, false, s->device, (conform_layout)layout, false, &a) !=
            TN_OK)
            return conform_missing(s, one, dtype);
        for (int64_t i = 0; i < one->n_in; i++)
            before[i] = one->in[i].there ? conform_bytes(a.whole[i], &sizes[i]) : NULL;
        if (conform_call(one, s->device, 7, &a) != TN_OK) {
            if (layout > 0 && impossible_view(s, &w, from, (conform_layout)layout))
                tn_error_clear();
            else if (layout > 0 && !(tn_error_code() == TN_ERR_NOT_IMPLEMENTED &&
                                     strncmp(s->row[dtype].route, "decomposition", 13) == 0))
                /* a device must support an operator for all strides or for none */
                well = conform_fail(
                    s->c,
                    "case %s as %s: runs with inputs as given, but fails with this layout of the "
                    "inputs: %s: %s",
                    one->name, tn_dtype_name(dtype), w.layout, tn_error_text());
            else
                well = conform_missing(s, one, dtype);
        } else {
            s->called++;
            for (int32_t i = 0; i < conform_results(one) && well; i++) {
                w.index = i;
                well = conform_compare(s, &w, a.out[i], ref.out[i]);
            }
            w.index = 0;
            if (well)
                well = conform_untouched(s, &w, &a, before, sizes) &&
                       updates_agree(s, &w, &a, &ref);
        }
        for (int64_t i = 0; i < one->n_in; i++) {
            free(before[i]);
            before[i] = NULL;
        }
    }
    /* one case of each dtype, and all long cases, where the order of additions may vary */
    if (well && tn_tensor_numel(a.out[0]) >= 4 &&
        (!s->row[dtype].repeated || one->in[0].count > 4000)) {
        s->row[dtype].repeated = true;
        again = a;
        if (conform_call(one, s->device, 7, &again) != TN_OK)
            well = conform_differ(s, &w, tn_error_text());
        for (; w.index < conform_results(one) && well; w.index++)
            well = conform_same_bits(s, &w, a.out[w.index], again.out[w.index], "again");
        w.index = 0;
        if (well && !one->draws)
            well = conform_in_threads(s, &w, from);
    }
    if (well && (one->def->flags & TN_OP_INPLACE))
        well = a.status != TN_OK || in_place(s, &w, from, a.out[0], ref.out[0]);
    if (well && a.status == TN_OK)
        well = conform_repeated(s, one, from, dtype);
    if (well && from == dtype && s->called > 0 && a.status == TN_OK)
        well = conform_scarce_forward(s, &w, &a);
    if (well && from == dtype && a.status == TN_OK && s->plain.op == NULL)
        conform_remember(s, one, dtype);
    if (well && from == dtype && a.status == TN_OK)
        well = conform_kept(s, &w, &a);
    return well;
}

/* ---- all cases of an operator ---- */

static bool take(void *user, conform_case *one)
{
    subject *s = user;
    tn_dtype from = dtype_of(one);
    uint64_t scope;

    if (one->n_in > OPERANDS || conform_results(one) > OPERANDS)
        return true;
    if (one->refused) {
        scope = tn_scope_begin();
        if (!s->gradients)
            conform_refusal(s, one);
        tn_scope_end(scope);
        return true;
    }
    one->draws = conform_draws(one, from);
    for (int dtype = 0; dtype < (int)DTYPES && s->c->verdict != CONFORM_FAIL; dtype++) {
        tally *row = &s->row[dtype];
        bool own = dtype == (int)from, cast = is_float(from) && is_float((tn_dtype)dtype);

        if ((!own && !cast) || !(s->dtypes & TN_BIT(dtype)) ||
            (s->gradients && !is_float((tn_dtype)dtype) && !is_complex((tn_dtype)dtype)))
            continue;
        if (!own && !accepts(one, from, (tn_dtype)dtype))
            continue;
        note_route(s, one, (tn_dtype)dtype);
        /* A dtype shorter than 32 bits runs the cases written for it. Cases of other dtypes are
         * added only in level ops, if the device has a kernel, until four cases have run. */
        if (!own && tn_dtype_size((tn_dtype)dtype) < 4 &&
            (row->cases >= 4 || s->gradients || strncmp(row->route, "kernel", 6) != 0))
            continue;
        scope = tn_scope_begin();
        row->cases++;
        if (s->gradients ? !conform_after(s, one, from, (tn_dtype)dtype) ||
                               !conform_case_gradient(s, one, from, (tn_dtype)dtype)
                         : !forward(s, one, from, (tn_dtype)dtype))
            row->failed += s->c->verdict == CONFORM_FAIL;
        tn_error_clear();
        tn_scope_end(scope);
    }
    if (s->gradients && s->c->verdict != CONFORM_FAIL && is_float(from) &&
        (s->dtypes & TN_BIT(TN_F64)) && s->c->plugin->ops) {
        scope = tn_scope_begin();
        conform_case_slopes(s, one);
        tn_error_clear();
        tn_scope_end(scope);
    }
    return s->c->verdict != CONFORM_FAIL;
}

/* Returns true if, in level ops, a kernel is registered for the dtype and the device computes with
 * it. Called for dtypes without a case. */
static bool is_untested(const subject *s, tn_dtype dtype)
{
    char route[sizeof s->row[0].route];

    if (s->gradients || !(s->dtypes & TN_BIT(dtype)) ||
        tn_op_route(tn_op_find(s->c->subject, 0), tn_device_type(s->device), dtype, route,
                    sizeof route) < 0)
        return false;
    return strncmp(route, "kernel", 6) == 0;
}

/* Runs all cases of an operator, for the level grad or ops, and reports a line for each dtype. */
static void work(conform *c, bool gradients)
{
    subject *s = calloc(1, sizeof *s);
    tn_device_info info;
    char words[400];
    int64_t cases, missed = 0, elements = 0;

    if (s == NULL) {
        conform_fail(c, "out of memory");
        return;
    }
    memset(&info, 0, sizeof info);
    info.head.size = sizeof info;
    s->c = c;
    s->device = c->plugin->device;
    s->gradients = gradients;
    if (tn_device_describe(s->device, &info) != TN_OK) {
        conform_fail(c, "device: does not describe itself: %s", tn_error_text());
        free(s);
        return;
    }
    s->dtypes = info.dtypes;
    cases = conform_cases(c->plugin->options->cases, c->subject, take, s, words, sizeof words);
    if (cases > 0 && !gradients && c->verdict != CONFORM_FAIL)
        conform_long_cases(c->subject, take, s, words, sizeof words);
    for (int i = 0; i < (int)DTYPES; i++) {
        const tally *row = &s->row[i];
        /* Empty tensors need no kernel: an operator that ran only with empty tensors was not
         * tested. */
        bool ran = row->elements > 0 || (row->missing == 0 && strcmp(row->route, "missing") != 0);

        if (row->cases == 0 && cases > 0 && c->verdict != CONFORM_FAIL &&
            is_untested(s, (tn_dtype)i))
            conform_row(c, c->subject, tn_dtype_name((tn_dtype)i), "untested", 0, 0, 0);
        if (row->cases == 0 || (row->elements == 0 && row->missing == 0 && row->failed == 0))
            continue; /* there is nothing to report */
        missed += ran ? row->missing : row->cases;
        elements += row->elements;
        if (!gradients && row->missing == row->cases && strncmp(row->route, "kernel", 6) == 0)
            conform_fail(c, "%s: registered for %s, but supports none of the %lld cases",
                         row->route, tn_dtype_name((tn_dtype)i), (long long)row->cases);
        conform_row(c, gradients ? c->name : c->subject, tn_dtype_name((tn_dtype)i),
                    !ran && row->failed == 0             ? "missing"
                    : strcmp(row->route, "missing") == 0 ? "promotion"
                                                         : row->route,
                    ran ? row->cases - row->missing : 0, row->failed, row->worst);
    }
    if (cases > 0 && !gradients)
        conform_flags_end(s, tn_op_definition(tn_op_find(c->subject, 0)));
    if (cases < 0)
        conform_fail(c, "cases: %s", words);
    else if (cases == 0)
        conform_fail(
            c,
            "operator: no case; write one (docs/plugins/check.md) and name its file with --cases");
    else if (c->verdict == CONFORM_PASS && s->unjudged > 0 && elements == 0)
        conform_skip(c, "the reference device cannot run the operator");
    else if (c->verdict == CONFORM_PASS && (c->checks == 0 || (elements == 0 && missed > 0)))
        conform_skip(c, missed > 0 ? "the device cannot run the operator in any dtype of the cases"
                                   : "nothing to differentiate");
    conform_forget(s);
    free(s);
}

void conform_op(conform *c)
{
    work(c, false);
}

void conform_gradient(conform *c)
{
    work(c, true);
}

bool conform_concerns(const conform_plugin *plugin, const char *op)
{
    const char *owner = tn_registry_plugin(TN_KIND_tn_op_def, op);

    return plugin->backend || (owner != NULL && strcmp(owner, plugin->id) == 0) ||
           conform_runs(plugin, op);
}

bool conform_runs(const conform_plugin *plugin, const char *op)
{
    const tn_op *handle = tn_op_find(op, 0);
    char route[4096 + 256], mark[256 + 2]; /* a route ends with the file of the kernel's plugin */

    if (handle == NULL) {
        tn_error_clear();
        return false;
    }
    snprintf(mark, sizeof mark, "%s)",
             strrchr(plugin->options->file, '/') != NULL ? strrchr(plugin->options->file, '/') + 1
                                                         : plugin->options->file);
    for (int dtype = 0; dtype < (int)DTYPES; dtype++) {
        if (tn_op_route(handle, tn_device_type(plugin->device), (tn_dtype)dtype, route,
                        sizeof route) < 0)
            tn_error_clear();
        else if (strstr(route, mark) != NULL)
            return true;
    }
    return false;
}
