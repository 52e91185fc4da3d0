/* SPDX-License-Identifier: MIT
 *
 * Random programs of views and in-place changes. First and second derivatives are compared with
 * finite differences of the same program; refusals must have a known message. */
#include <stdio.h>

#include <tenon/contrib.h>

#include "tests/grad/program_steps.h"
#include "tests/op/suite.h"

enum { PROGRAMS = 400, STEPS = 9, POOL = 16, LEAF_MOST = 9 };

/* ---- programs ---- */

#define COUNT(rows) ((int64_t)(sizeof(rows) / sizeof *(rows)))

enum kind { VIEW, NEW, CHANGE };

typedef struct step {
    enum kind kind;
    int64_t row, of; /* of the table; the tensor of the pool that the step uses */
    uint64_t seed;
    bool refused;
} step;

typedef struct program {
    int64_t number, n_leaf, n_steps;
    int64_t shape[3], ndim;
    double leaf[LEAF_MOST];
    step steps[STEPS];
    uint64_t seed;
    char text[1024];
} program;

typedef struct pool {
    tn_tensor *at[POOL];
    int64_t count;
} pool;

static int64_t programs_done, seconds_done, changes_done, changes_refused, backwards_refused,
    unfolds_stale;

/* What the library may refuse in such a program: each row is a limit that an error text names. */
static const char *const known[] = {
    "more than one element of the written-to tensor refers to a single",
    "partly share memory",
    "may contain one element twice",
    "modified by an inplace operation",
    "is not compatible with input tensor's size",
    "the result type",
    "has no",
    "no kernel on device type",
    "it cannot be applied to a 0-dim tensor",
    "got a 0-dim tensor",
    "Dimension out of range",
    "expected one of",
    "too few dimensions",
    "diagonal",
    "maximum size for tensor",
    "Tensor must have a",
    "wrong layout, got strides",
    "as x has no dimensions",
    "window",
    "in-place form for",
    "at most",
};

static void check_words(const program *p, const char *where)
{
    const char *text = tn_error_text();
    bool found = false;

    for (size_t i = 0; i < sizeof known / sizeof known[0] && !found; i++)
        found = strstr(text, known[i]) != NULL;
    ck_assert_msg(found, "%s of program %lld: refused with \"%s\"\n%s", where, (long long)p->number,
                  text, p->text);
    tn_error_clear();
}

/* Runs one step; returns NULL if it was refused or makes an empty or too large tensor. A view or a
 * new tensor is added to the pool. */
static tn_tensor *take(const step *s, pool *all)
{
    const row *rows = s->kind == VIEW ? views : s->kind == NEW ? fresh : changes;
    uint64_t state = s->seed;
    tn_tensor *y = rows[s->row].make(all->at[s->of], &state);

    if (y != NULL && s->kind != CHANGE) {
        if (tn_tensor_numel(y) == 0 || tn_tensor_numel(y) > MOST_SIZE || tn_tensor_ndim(y) > 5)
            return NULL;
        all->at[all->count++] = y;
    }
    return y;
}

static void describe(program *p, const step *s)
{
    const row *rows = s->kind == VIEW ? views : s->kind == NEW ? fresh : changes;
    size_t used = strlen(p->text);

    snprintf(p->text + used, sizeof p->text - used, "  %s%s of t%lld%s\n", rows[s->row].name,
             s->kind == CHANGE ? "_" : "", (long long)s->of, s->refused ? " (refused)" : "");
}

/* The tensors that the program begins with: the leaf, and what is computed of it. */
static tn_tensor *begin(const program *p, const double *leaf, pool *all, bool wants)
{
    tn_tensor *x = tn_tensor_from(leaf, TN_F64, (tn_ints){ p->shape, p->ndim });

    ck_assert_msg(x != NULL, "%s", tn_error_text());
    if (wants)
        with_grad(x);
    all->at[0] = tn_mul_scalar(x, 1);
    all->at[1] = tn_sin(x);
    all->count = 2;
    return x;
}

/* Draws the steps while they run; what is refused is left out of later runs. */
static tn_tensor *invent(program *p, pool *all)
{
    tn_tensor *x;

    p->ndim = 1 + below(&p->seed, 3);
    p->n_leaf = 1;
    for (int64_t d = 0; d < p->ndim; d++) {
        p->shape[d] = p->ndim == 1 ? 3 + below(&p->seed, 5)
                                   : 1 + below(&p->seed, p->ndim == 2 ? 3 : 2);
        p->n_leaf *= p->shape[d];
    }
    for (int64_t i = 0; i < p->n_leaf; i++)
        p->leaf[i] = number(&p->seed);
    x = begin(p, p->leaf, all, true);
    for (p->n_steps = 0; p->n_steps < STEPS && all->count < POOL; p->n_steps++) {
        step *s = &p->steps[p->n_steps];
        int64_t kind = below(&p->seed, 9);

        s->kind = kind < 4 ? VIEW : kind < 5 ? NEW : CHANGE;
        s->row = below(&p->seed, s->kind == VIEW  ? COUNT(views)
                                 : s->kind == NEW ? COUNT(fresh)
                                                  : COUNT(changes));
        s->of = below(&p->seed, all->count);
        s->seed = draw(&p->seed) | 1;
        s->refused = take(s, all) == NULL;
        describe(p, s);
        changes_done += s->kind == CHANGE && !s->refused;
        changes_refused += s->kind == CHANGE && s->refused;
        if (s->refused && tn_failed())
            check_words(p, "a step");
    }
    return x;
}

static tn_tensor *run_again(const program *p, const double *leaf, pool *all, bool wants)
{
    tn_tensor *x = begin(p, leaf, all, wants);

    for (int64_t i = 0; i < p->n_steps; i++)
        if (!p->steps[i].refused)
            ck_assert_msg(take(&p->steps[i], all) != NULL, "program %lld: step %lld: %s\n%s",
                          (long long)p->number, (long long)i, tn_error_text(), p->text);
    return x;
}

/* Every tensor counts, with weights of its own. */
static tn_tensor *loss_of(const program *p, const pool *all)
{
    uint64_t state = p->seed;
    tn_tensor *sum = NULL;

    for (int64_t i = 0; i < all->count; i++) {
        tn_tensor *t = all->at[i], *part;

        if (tn_tensor_dtype(t) == TN_C128)
            t = tn_view_as_real(t);
        part = tn_sum(tn_mul(tn_mul(t, constant_like(&state, t)), t));
        sum = sum == NULL ? part : tn_add(sum, part);
    }
    return sum;
}

static double loss_at(const program *p, const double *leaf)
{
    uint64_t scope = tn_scope_begin();
    pool all;
    double value;

    tn_grad_begin(false);
    run_again(p, leaf, &all, false);
    value = tn_item(loss_of(p, &all));
    tn_grad_end();
    ck_assert_msg(!tn_failed(), "program %lld: %s\n%s", (long long)p->number, tn_error_text(),
                  p->text);
    tn_scope_end(scope);
    return value;
}

/* The gradient, and a weighted sum of its elements that can be differentiated again. */
static tn_tensor *slope_of(const program *p, tn_tensor *x, const pool *all, tn_tensor **gradient)
{
    static const tn_backward_options create = { .size = sizeof create, .create_graph = 1 };
    uint64_t state = p->seed ^ 0x9E3779B97F4A7C15U;
    tn_tensor *loss = loss_of(p, all);

    if (loss == NULL || tn_grad(&loss, NULL, 1, &x, gradient, 1, &create) != TN_OK)
        return NULL;
    return tn_sum(tn_mul(*gradient, constant_like(&state, x)));
}

static double slope_at(const program *p, const double *leaf)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *x, *gradient, *slope;
    pool all;
    double value;

    x = run_again(p, leaf, &all, true);
    slope = slope_of(p, x, &all, &gradient);
    ck_assert_msg(slope != NULL, "program %lld: %s\n%s", (long long)p->number, tn_error_text(),
                  p->text);
    value = tn_item(slope);
    tn_scope_end(scope);
    return value;
}

static void compare(const program *p, const char *what, tn_tensor *gradient,
                    double (*value_at)(const program *, const double *))
{
    const double h = 1e-5;
    double leaf[LEAF_MOST], scale = 1;

    for (int64_t i = 0; i < p->n_leaf; i++)
        scale = fmax(scale, fabs(at(gradient, i)));
    for (int64_t i = 0; i < p->n_leaf; i++) {
        double up, down, found = at(gradient, i), expected;

        memcpy(leaf, p->leaf, sizeof leaf);
        leaf[i] = p->leaf[i] + h;
        up = value_at(p, leaf);
        leaf[i] = p->leaf[i] - h;
        down = value_at(p, leaf);
        expected = (up - down) / (2 * h);
        ck_assert_msg(fabs(found - expected) <= 1e-5 * scale,
                      "program %lld: %s, element %lld: %.9g, finite differences say %.9g\n%s",
                      (long long)p->number, what, (long long)i, found, expected, p->text);
    }
}

static bool overlaps(const tn_tensor *t)
{
    int64_t reach = 1;

    for (int64_t d = 0; d < tn_tensor_ndim(t); d++)
        reach += (tn_tensor_size(t, d) - 1) * tn_tensor_strides(t).at[d];
    return reach < tn_tensor_numel(t);
}

static void judge(int64_t number_of)
{
    static const tn_backward_options unused = { .size = sizeof unused, .allow_unused = 1 };
    TN_SCOPE;
    program p = { .number = number_of, .seed = 0x5DEECE66DU * (uint64_t)(number_of + 1) };
    tn_tensor *x, *gradient = NULL, *slope, *second = NULL;
    pool all;

    x = invent(&p, &all);
    for (int64_t i = 0; i < all.count; i++)
        unfolds_stale += overlaps(all.at[i]);
    slope = slope_of(&p, x, &all, &gradient);
    if (slope == NULL) {
        backwards_refused++;
        check_words(&p, "the gradient");
        return;
    }
    compare(&p, "the gradient", gradient, loss_at);
    programs_done++;
    if (!tn_tensor_requires_grad(slope))
        return;
    if (tn_grad(&slope, NULL, 1, &x, &second, 1, &unused) != TN_OK) {
        backwards_refused++;
        check_words(&p, "the second gradient");
        return;
    }
    if (second != TN_NONE)
        compare(&p, "the second gradient", second, slope_at);
    seconds_done++;
}

START_TEST(random_programs_of_views_and_changes_agree_with_finite_differences)
{
    int64_t nodes = tn_grad_node_count();

    for (int64_t i = 0; i < PROGRAMS; i++)
        judge(i);
    /* what is refused proves nothing: most programs have to run to their end */
    printf("%lld programs, %lld of them twice, %lld changes, %lld refused; "
           "%lld gradients refused, %lld overlapping\n",
           (long long)programs_done, (long long)seconds_done, (long long)changes_done,
           (long long)changes_refused, (long long)backwards_refused, (long long)unfolds_stale);
    ck_assert_int_gt(programs_done, PROGRAMS * 3 / 5);
    ck_assert_int_gt(seconds_done, PROGRAMS / 2);
    ck_assert_int_gt(changes_done, 2 * PROGRAMS);
    ck_assert_int_gt(unfolds_stale, PROGRAMS / 4);
    ck_assert_int_eq(tn_grad_node_count(), nodes);
    FINE();
}
END_TEST

START_TEST(every_operator_that_gives_a_view_is_in_the_programs)
{
    for (int64_t i = 0; i < tn_op_count(); i++) {
        const tn_op_def *def = tn_op_definition(tn_op_find(tn_op_name_at(i), 0));
        bool found = (def->flags & TN_OP_VIEW) == 0;

        for (int64_t k = 0; k < COUNT(views) && !found; k++)
            found = strcmp(views[k].name, def->name) == 0;
        ck_assert_msg(found, "%s gives a view: test_programs.c needs a row for it", def->name);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("programs of views and changes");
    TCase *t = tcase_create("programs");

    tcase_set_timeout(t, 120);
    tcase_add_test(t, random_programs_of_views_and_changes_agree_with_finite_differences);
    tcase_add_test(t, every_operator_that_gives_a_view_is_in_the_programs);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
