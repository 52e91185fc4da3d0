/* SPDX-License-Identifier: MIT
 *
 * Properties of the parametrizations of Tenon besides their values: constraints that hold after
 * steps of an optimizer, buffers, options, states of older versions. PyTorch's tests of
 * test/nn/test_parametrization.py are named at the tests that port them. */
#include "tests/module/parametrize.h"

/* ---- Orthogonal ------------------------------------------------------------------------------ */

static void check_orthogonal(tn_tensor *w)
{
    ck_assert_msg(w != NULL, "%s", tn_error_text());
    int64_t n = tn_tensor_shape(w).at[0], k = tn_tensor_shape(w).at[1];
    tn_tensor *t = tn_transpose(w, 0, 1);
    tn_tensor *product = n < k ? tn_matmul(w, t) : tn_matmul(t, w);
    int64_t size = n < k ? n : k;
    for (int64_t i = 0; i < size * size; i++)
        ck_assert_double_eq_tol(at(product, i), i % (size + 1) == 0, 1e-5);
}

/* test_orthogonal_parametrization */
START_TEST(orthogonal_stays_orthogonal_and_takes_values)
{
    static const char *const maps[] = { "matrix_exp", "cayley", "householder" };
    static const char *const layers[] = { "Linear(3, 5)", "Linear(4, 4)", "Linear(5, 3)" };
    for (int i = 0; i < 18; i++) {
        TN_SCOPE;
        tn_module *m = parsed(layers[i % 3]);
        const char *map = maps[i / 3 % 3];
        bool base = i >= 9;
        tn_tensor *object = tn_module_get(m, "weight");
        tn_tensor *start = tn_clone(tn_detach(object));
        ck_assert_msg(tn_parametrize_with(m, "weight",
                                          "Orthogonal(orthogonal_map='%s', use_trivialization=%s)",
                                          map, base ? "True" : "False") == TN_OK,
                      "%s", tn_error_text());
        check_orthogonal(tn_module_get(m, "weight"));
        ck_assert_ptr_eq(tn_module_find_tensor(m, "parametrizations.weight.original"), object);
        tn_optimizer *sgd = tn_optimizer_new(m, "SGD(lr=0.1, weight_decay=0.1)");
        for (int step = 0; step < 3; step++) {
            tn_optimizer_zero_grad(sgd);
            tn_tensor *y = tn_module_call(m, tn_ones(TN_SHAPE(2, tn_tensor_shape(start).at[1])));
            ck_assert_int_eq(tn_backward(tn_sum(tn_square(y))), TN_OK);
            ck_assert_int_eq(tn_optimizer_step(sgd), TN_OK);
            check_orthogonal(tn_module_get(m, "weight"));
        }
        /* Assigns an orthogonal matrix, and any matrix, whose Q factor becomes the weight. */
        if (base || strcmp(map, "householder") == 0) {
            tn_tensor *q = tn_clone(tn_detach(tn_module_get(m, "weight")));
            ck_assert_msg(tn_module_set(m, "weight", q) == TN_OK, "%s", tn_error_text());
            for (int64_t k = 0; k < tn_tensor_numel(q); k++)
                ck_assert_double_eq_tol(at(tn_module_get(m, "weight"), k), at(q, k), 1e-5);
            ck_assert_int_eq(tn_module_set(m, "weight", start), TN_OK);
            check_orthogonal(tn_module_get(m, "weight"));
            tn_tensor *tall = i % 3 == 2 ? tn_transpose(start, 0, 1) : start;
            tn_tensor *got = tn_module_get(m, "weight"), *r;
            got = i % 3 == 2 ? tn_transpose(got, 0, 1) : got;
            r = tn_matmul(tn_transpose(got, 0, 1), tall);
            for (int64_t k = 0; k < tn_tensor_numel(r); k++) {
                int64_t columns = tn_tensor_shape(r).at[1];
                if (k / columns > k % columns)
                    ck_assert_double_eq_tol(at(r, k), 0, 1e-5); /* start = Q R */
                else if (k / columns == k % columns)
                    ck_assert_double_gt(at(r, k), 0);
            }
        } else {
            ck_assert_int_eq(tn_module_set(m, "weight", start), TN_ERR_NOT_IMPLEMENTED);
            FAILED(TN_ERR_NOT_IMPLEMENTED, "It is not possible to assign to the matrix exponential "
                                           "or the Cayley parametrizations when "
                                           "use_trivialization=False.");
        }
        tn_optimizer_drop(sgd);
        tn_module_drop(m);
    }
    TN_PROVES("PRM-016", "PRM-019");
}
END_TEST

/* test_orthogonal_errors */
START_TEST(orthogonal_refuses_what_is_no_matrix)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(3, 4)");

    ck_assert_int_eq(tn_parametrize_with(m, "weight", "Orthogonal('foo')"), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "orthogonal_map has to be one of \"matrix_exp\", \"cayley\", "
                         "\"householder\". Got: foo");
    ck_assert_int_eq(tn_parametrize_with(m, "bias", "Orthogonal()"), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "Expected a matrix or batch of matrices. Got a tensor of 1 dimensions.");
    ck_assert_int_eq(tn_parametrize_with(m, "weight", "Orthogonal()"), TN_OK);
    tn_tensor *before = tn_clone(tn_module_get(m, "weight"));
    ck_assert_int_eq(tn_module_set(m, "weight", tn_zeros(TN_SHAPE(5, 5))), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "Expected a matrix or batch of matrices of shape [..., 4, 3]. Got a "
                         "tensor of shape [..., 5, 5]");
    ck_assert(equal_values(before, tn_module_get(m, "weight")));
    tn_module *shared = tn_parametrization(m, "weight", 0), *other = parsed("Linear(3, 4)");
    ck_assert_int_eq(tn_parametrize(other, "weight", shared, 0), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "expected a module of its own for each tensor");
    tn_module *complex = parsed("Linear(3, 3, dtype='complex64')");
    ck_assert_int_eq(tn_parametrize_with(complex, "weight", "Orthogonal('householder')"),
                     TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "The householder parametrization does not support complex tensors.");
    ck_assert_msg(tn_parametrize_with(complex, "weight", "Orthogonal()") == TN_OK, "%s",
                  tn_error_text());
    tn_tensor *u = tn_module_get(complex, "weight");
    tn_tensor *one = tn_matmul(tn_conj(tn_transpose(u, 0, 1)), u);
    for (int64_t i = 0; i < 9; i++)
        ck_assert_double_eq_tol(at(tn_abs(one), i), i % 4 == 0, 1e-5);
    TN_PROVES("PRM-016");
    tn_module_drop(complex);
    tn_module_drop(other);
    tn_module_drop(m);
}
END_TEST

/* ---- SpectralNorm ---------------------------------------------------------------------------- */

static double largest_singular_value(tn_tensor *w)
{
    return tn_tensor_item(tn_linalg_matrix_norm(w, "2"));
}

/* test_new_spectral_norm, test_new_spectral_norm_value */
START_TEST(spectral_norm_iterates_in_training_only)
{
    TN_SCOPE;
    tn_random_seed(3); /* with some weights the iterations converge to the last bit at once */
    tn_module *m = parsed("Linear(5, 7)");
    tn_tensor *object = tn_module_get(m, "weight");

    ck_assert_int_eq(tn_parametrize_with(m, "weight", "SpectralNorm()"), TN_OK);
    ck_assert_ptr_eq(tn_module_find_tensor(m, "parametrizations.weight.original"), object);
    tn_tensor *u = tn_module_find_buffer(m, "parametrizations.weight.0._u");
    tn_tensor *v = tn_module_find_buffer(m, "parametrizations.weight.0._v");
    ck_assert_int_eq(tn_tensor_numel(u), 7);
    ck_assert_int_eq(tn_tensor_numel(v), 5);
    /* After the 15 iterations at registration and one of the check. */
    ck_assert_double_eq_tol(largest_singular_value(tn_module_get(m, "weight")), 1, 0.05);
    /* One tensor object through training, for captures and optimizers of the buffers. */
    ck_assert_ptr_eq(tn_module_find_buffer(m, "parametrizations.weight.0._u"), u);
    tn_tensor *before = tn_clone(u);
    tn_module_get(m, "weight");
    ck_assert(!equal_values(before, u));
    for (int i = 0; i < 200; i++)
        tn_module_get(m, "weight");
    ck_assert_double_eq_tol(largest_singular_value(tn_module_get(m, "weight")), 1, 1e-5);
    ck_assert_int_eq(tn_module_eval(m), TN_OK);
    before = tn_clone(u);
    tn_module_get(m, "weight");
    ck_assert(equal_values(before, u));
    /* Two calls before backward: the buffers change between. */
    ck_assert_int_eq(tn_module_train(m, true), TN_OK);
    tn_tensor *x = tn_ones(TN_SHAPE(1, 5));
    tn_tensor *sum = tn_add(tn_module_call(m, x), tn_module_call(m, x));
    ck_assert_msg(tn_backward(tn_sum(sum)) == TN_OK, "%s", tn_error_text());
    /* A zero iteration count, and dimensions that do not exist. */
    ck_assert_int_eq(tn_parametrize_with(m, "bias", "SpectralNorm(n_power_iterations=0)"),
                     TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "Expected n_power_iterations to be positive, but got "
                         "n_power_iterations=0");
    ck_assert_int_eq(
        tn_parametrize_with(m, "bias", "SpectralNorm(n_power_iterations=9223372036854775807)"),
        TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "n_power_iterations: too many, got 9223372036854775807; expected at most "
                         "10000");
    ck_assert_int_eq(tn_parametrize_with(m, "bias", "SpectralNorm(dim=1)"), TN_ERR_INDEX);
    FAILED(TN_ERR_INDEX, "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
    ck_assert_int_eq(tn_parametrize_with(m, "bias", "SpectralNorm()"), TN_OK);
    ck_assert_double_eq_tol(tn_tensor_item(tn_linalg_vector_norm(tn_module_get(m, "bias"))), 1,
                            1e-6);
    ck_assert_int_eq(tn_parametrize_remove(m, "weight", true), TN_OK);
    ck_assert_ptr_eq(tn_module_get(m, "weight"), object);
    ck_assert_double_eq_tol(largest_singular_value(object), 1, 1e-5);
    TN_PROVES("PRM-018");
    tn_module_drop(m);
}
END_TEST

/* test_new_spectral_norm_dim, test_new_spectral_norm_forward */
START_TEST(spectral_norm_takes_dimension_1_of_transposed_convolutions)
{
    TN_SCOPE;
    tn_module *m = parsed("ConvTranspose2d(3, 4, 2)"), *n = parsed("Conv2d(3, 4, 2)");
    tn_module *shared;

    ck_assert_int_eq(tn_parametrize_with(m, "weight", "SpectralNorm()"), TN_OK);
    ck_assert_int_eq(tn_tensor_numel(tn_module_find_tensor(m, "parametrizations.weight.0._u")), 4);
    ck_assert_int_eq(tn_parametrize_with(n, "weight", "SpectralNorm(dim=-3)"), TN_OK);
    ck_assert_int_eq(tn_tensor_numel(tn_module_find_tensor(n, "parametrizations.weight.0._u")), 3);
    ck_assert_int_eq(tn_tensor_numel(tn_module_find_tensor(n, "parametrizations.weight.0._v")), 16);
    ck_assert(tn_module_call(m, tn_ones(TN_SHAPE(1, 3, 4, 4))) != NULL);
    /* sigma = u . W v with the buffers of evaluation */
    ck_assert_int_eq(tn_module_eval(n), TN_OK);
    tn_tensor *w = tn_module_find_tensor(n, "parametrizations.weight.original");
    tn_tensor *matrix = tn_flatten(tn_permute(w, TN_INTS(1, 0, 2, 3)), 1, -1);
    tn_tensor *sigma = tn_dot(
        tn_module_find_tensor(n, "parametrizations.weight.0._u"),
        tn_mv(matrix, tn_module_find_tensor(n, "parametrizations.weight.0._v")));
    ck_assert(equal_values(tn_module_get(n, "weight"), tn_div(w, sigma)));
    shared = tn_parametrization(n, "weight", 0);
    ck_assert_int_eq(tn_parametrize(m, "bias", shared, 0), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "expected a module of its own");
    TN_PROVES("PRM-018");
    tn_module_drop(m);
    tn_module_drop(n);
}
END_TEST

/* Renames an entry of a state. */
static void rename_to(tn_state *state, const char *from, const char *to)
{
    ck_assert_msg(tn_state_rename(state, from, to) == TN_OK, "%s", tn_error_text());
}

/* test_new_spectral_norm_load_state_dict: the names of torch.nn.utils.spectral_norm, too */
START_TEST(old_states_of_spectral_norm_load)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(3, 4))"), *n = tn_module_copy(m);

    ck_assert_int_eq(tn_parametrize_with(m, "0.weight", "SpectralNorm()"), TN_OK);
    ck_assert_int_eq(tn_parametrize_with(n, "0.weight", "SpectralNorm()"), TN_OK);
    ck_assert_int_eq(
        tn_init(tn_module_find_tensor(m, "0.parametrizations.weight.original"), "normal()"), TN_OK);
    tn_state *state = tn_module_state(m);
    rename_to(state, "0.parametrizations.weight.original", "0.weight_orig");
    rename_to(state, "0.parametrizations.weight.0._u", "0.weight_u");
    ck_assert_int_eq(tn_module_load_state(n, state, true), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "0.weight_orig"); /* not all three names */
    rename_to(state, "0.parametrizations.weight.0._v", "0.weight_v");
    ck_assert_msg(tn_module_load_state(n, state, true) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_module_eval(m), TN_OK);
    ck_assert_int_eq(tn_module_eval(n), TN_OK);
    ck_assert(
        equal_values(tn_module_find_tensor(m, "0.weight"), tn_module_find_tensor(n, "0.weight")));
    tn_state_drop(state);
    tn_module_drop(m);
    tn_module_drop(n);
}
END_TEST

/* ---- WeightNorm ------------------------------------------------------------------------------ */

/* test_weight_norm_state_dict_compat, test_weight_norm_deepcopy, test_weight_norm_pickle */
START_TEST(old_states_of_weight_norm_load)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(4, 5), Linear(5, 4))");
    tn_module *n = tn_module_copy(m), *copy;
    tn_tensor *x = tn_randn(TN_SHAPE(3, 4)), *y = tn_module_call(m, x), *z;

    ck_assert_int_eq(tn_parametrize_with(m, "1.weight", "WeightNorm()"), TN_OK);
    z = tn_module_call(m, x);
    for (int64_t i = 0; i < tn_tensor_numel(y); i++)
        ck_assert_double_eq_tol(at(z, i), at(y, i), 1e-6);
    ck_assert_str_eq(keys(m), "0.weight 0.bias 1.bias 1.parametrizations.weight.original0 "
                              "1.parametrizations.weight.original1 ");
    ck_assert_int_eq(tn_parametrize_with(n, "1.weight", "WeightNorm()"), TN_OK);
    ck_assert_int_eq(
        tn_init(tn_module_find_tensor(m, "1.parametrizations.weight.original0"), "constant(3)"),
        TN_OK);
    tn_state *state = tn_module_state(m);
    rename_to(state, "1.parametrizations.weight.original0", "1.weight_g");
    ck_assert_int_eq(tn_module_load_state(n, state, true), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "1.weight_g"); /* only one of the two names */
    rename_to(state, "1.parametrizations.weight.original1", "1.weight_v");
    ck_assert_msg(tn_module_load_state(n, state, true) == TN_OK, "%s", tn_error_text());
    ck_assert(
        equal_values(tn_module_find_tensor(n, "1.weight"), tn_module_find_tensor(m, "1.weight")));
    ck_assert_double_eq_tol(
        at(tn_linalg_vector_norm(tn_select(tn_module_find_tensor(n, "1.weight"), 0, 0)), 0), 3,
        1e-6);
    /* The state that was loaded has its own names still, and loads again. */
    ck_assert_int_ge(tn_state_find(state, "1.weight_g"), 0);
    copy = tn_module_copy(n);
    ck_assert_msg(tn_module_load_state(copy, state, true) == TN_OK, "%s", tn_error_text());
    ck_assert(equal_values(tn_module_call(copy, x), tn_module_call(m, x)));
    ck_assert_int_eq(tn_parametrize_remove(copy, "1.weight", true), TN_OK);
    ck_assert_int_eq(tn_module_load_state(copy, state, true), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "1.weight_g");
    ck_assert_int_eq(tn_parametrize_with(n, "0.weight", "WeightNorm(dim=2)"), TN_ERR_INDEX);
    FAILED(TN_ERR_INDEX, "Dimension out of range");
    TN_PROVES("VER-006", "PRM-013", "PRM-017");
    tn_state_drop(state);
    tn_module_drop(copy);
    tn_module_drop(m);
    tn_module_drop(n);
}
END_TEST

/* ---- Symmetric, and what is left ------------------------------------------------------------- */

START_TEST(symmetric_stays_symmetric)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(3, 3)");

    ck_assert_int_eq(tn_parametrize_with(m, "bias", "Symmetric()"), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "no square matrix");
    ck_assert_int_eq(tn_parametrize_with(m, "weight", "Symmetric()"), TN_OK);
    tn_optimizer *sgd = tn_optimizer_new(m, "SGD(lr=0.1)");
    ck_assert_int_eq(tn_backward(tn_sum(tn_square(tn_module_call(m, tn_randn(TN_SHAPE(2, 3)))))),
                     TN_OK);
    ck_assert_int_eq(tn_optimizer_step(sgd), TN_OK);
    tn_tensor *w = tn_module_get(m, "weight");
    ck_assert(equal_values(w, tn_transpose(w, 0, 1)));
    ck_assert_int_eq(tn_module_set(m, "weight", tn_ones(TN_SHAPE(3, 3))), TN_OK);
    HAS(tn_module_get(m, "weight"), 1, 1, 1, 1, 1, 1, 1, 1, 1);
    TN_PROVES("PRM-019");
    tn_optimizer_drop(sgd);
    tn_module_drop(m);
}
END_TEST

START_TEST(options_of_attached_parametrizations_cannot_change)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(3, 3)");
    tn_pack *out = tn_pack_new();

    ck_assert_int_eq(tn_parametrize_with(m, "weight", "SpectralNorm(eps=1e-6)"), TN_OK);
    ck_assert_int_eq(tn_module_option_get(tn_parametrization(m, "weight", 0), "eps", out), TN_OK);
    ck_assert_double_eq(tn_pack_at(out, 0).as.f, 1e-6);
    ck_assert_int_eq(
        tn_module_option_set(tn_parametrization(m, "weight", 0), "dim", tn_value_int(1)),
        TN_ERR_NOT_IMPLEMENTED);
    FAILED(TN_ERR_NOT_IMPLEMENTED, "expected a new module");
    tn_pack_drop(out);
    tn_module_drop(m);
}
END_TEST

/* The whole message, so that no name is in it twice. */
START_TEST(wrong_options_and_tensors_are_named)
{
    static const struct {
        const char *layer, *name, *before, *spec, *message; /* before: an earlier spec, or NULL */
        tn_status status;
    } rows[] = {
        { "Linear(3, 2)", "weight", NULL, "Symmetric",
          "Symmetric: 'weight' of Linear: no square matrix, got shape [2, 3]; expected [..., n, n]",
          TN_ERR_VALUE },
        { "Linear(3, 2)", "bias", NULL, "Symmetric",
          "Symmetric: 'bias' of Linear: no square matrix, got shape [2]; expected [..., n, n]",
          TN_ERR_VALUE },
        { "Linear(3, 3)", "weight", "WeightNorm", "WeightNorm",
          "WeightNorm: 'weight' of Linear: it is parametrized already, got WeightNorm; expected "
          "WeightNorm as the first parametrization, because it has two originals",
          TN_ERR_VALUE },
        { "Linear(3, 3)", "weight", "Symmetric", "WeightNorm",
          "WeightNorm: 'weight' of Linear: it is parametrized already, got Symmetric; expected "
          "WeightNorm as the first parametrization, because it has two originals",
          TN_ERR_VALUE },
        { "Linear(3, 2)", "weight", NULL, "WeightNorm(dim=2)",
          "WeightNorm: dim: Dimension out of range (expected to be in range of [-2, 1], but got 2)",
          TN_ERR_INDEX },
        { "Linear(3, 2)", "weight", NULL, "SpectralNorm(eps=-1)",
          "SpectralNorm: eps: out of range, got -1.0; expected a finite number of 0 or more",
          TN_ERR_VALUE },
        { "Linear(3, 2)", "weight", NULL, "SpectralNorm(eps=nan)",
          "SpectralNorm: eps: out of range, got nan; expected a finite number of 0 or more",
          TN_ERR_VALUE },
        { "Linear(3, 2)", "weight", NULL, "SpectralNorm(eps=inf)",
          "SpectralNorm: eps: out of range, got inf; expected a finite number of 0 or more",
          TN_ERR_VALUE },
        { "Linear(3, 2)", "weight", NULL, "LoRA(alpha=nan)",
          "LoRA: alpha: out of range, got nan; expected a finite number", TN_ERR_VALUE },
        { "Linear(3, 2)", "weight", NULL, "LoRA(alpha=-inf)",
          "LoRA: alpha: out of range, got -inf; expected a finite number", TN_ERR_VALUE },
        { "Linear(3, 2)", "bias", NULL, "LoRA",
          "LoRA: 'bias' of Linear: wrong shape, got [2]; expected 2 dimensions or more, none of "
          "size 0",
          TN_ERR_VALUE },
        { "Conv2d(1, 2, 3)", "weight", NULL, "LoRA(layout=in_out)",
          "LoRA: 'weight' of Conv2d: wrong shape for the layout in_out, got [2, 1, 3, 3]; expected "
          "2 dimensions",
          TN_ERR_VALUE },
        { "Sequential(ReLU())", "0", NULL, "WeightNorm",
          "'0' of Sequential: wrong kind, got a module; expected a parameter or a buffer",
          TN_ERR_VALUE },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TN_SCOPE;
        tn_module *m = parsed(rows[i].layer);
        char before[1024];

        if (rows[i].before != NULL)
            ck_assert_int_eq(tn_parametrize_parse(m, rows[i].name, rows[i].before), TN_OK);
        tn_snprint(before, sizeof before, "%s", printed(m));
        ck_assert_int_eq(tn_parametrize_parse(m, rows[i].name, rows[i].spec), rows[i].status);
        ck_assert_str_eq(tn_error_text(), rows[i].message);
        tn_error_clear();
        ck_assert_str_eq(printed(m), before);
        tn_module_drop(m);
    }
}
END_TEST

START_TEST(a_tensor_of_many_is_named_by_its_path)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(3, 2), Linear(2, 2))");

    ck_assert_int_eq(tn_parametrize_each(m, "1.*", "Symmetric"), -1);
    ck_assert_str_eq(tn_error_text(), "\"1.bias\": Symmetric: 'bias' of Linear: no square matrix, "
                                      "got shape [2]; expected [..., n, n]");
    tn_error_clear();
    ck_assert_int_eq(tn_parametrize_parse_each(m, "1.w%d", "Symmetric"), -1);
    FAILED(TN_ERR_KEY, "1.w%d");
    ck_assert_int_eq(tn_parametrize_parse_each(m, "1.*ght", "WeightNorm"), 1);
    ck_assert(tn_is_parametrized(tn_module_child(m, "1"), "weight"));
    ck_assert_int_eq(tn_parametrize_remove_each(m, NULL, false), -1);
    FAILED(TN_ERR_VALUE, "\"1.weight\": Cannot leave unparametrized");
    tn_module_drop(m);
}
END_TEST

/* ---- pruning --------------------------------------------------------------------------------- */

START_TEST(what_pruning_and_parametrizations_are_made_of_is_left_alone)
{
    static const char *const parts[] = { "weight_orig", "weight_mask" };
    TN_SCOPE;
    tn_module *m = parsed("Linear(4, 3)");

    ck_assert_int_eq(tn_prune(m, "weight", "L1Unstructured(amount=0.5)"), TN_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tn_parametrize_with(m, parts[i], "WeightNorm"), TN_ERR_VALUE);
        FAILED(TN_ERR_VALUE, "belongs to a pruned parameter; make the pruning permanent first");
        ck_assert_int_eq(tn_prune(m, parts[i], "Identity"), TN_ERR_VALUE);
        FAILED(TN_ERR_VALUE, "belongs to a pruned parameter; expected the name of that parameter");
    }
    ck_assert_int_eq(tn_parametrize_with(m, "weight", "WeightNorm"), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "'weight' of Linear: it is pruned; make the pruning permanent first");
    ck_assert_int_eq(tn_prune_remove(m, "weight"), TN_OK);
    ck_assert_int_eq(tn_parametrize_with(m, "weight", "Symmetric"), TN_ERR_VALUE);
    tn_error_clear();
    ck_assert_int_eq(tn_parametrize_with(m, "weight", "WeightNorm"), TN_OK);
    ck_assert_int_eq(tn_prune(m, "parametrizations.weight.original1", "Identity"), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "it is an original of a parametrized tensor");
    ck_assert_int_eq(tn_prune(m, "weight", "Identity"), TN_ERR_TYPE);
    FAILED(TN_ERR_TYPE, "tn_prune: \"weight\" of Linear: wrong kind, got a parametrized tensor");
    ck_assert_int_eq(tn_module_remove(tn_module_find(m, "parametrizations.weight"), "original1"),
                     TN_OK);
    ck_assert_int_eq(tn_parametrize_remove(m, "weight", true), TN_ERR_ATTR);
    FAILED(TN_ERR_ATTR, "parametrizations.weight.original1: it is missing");
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        orthogonal_stays_orthogonal_and_takes_values,
        orthogonal_refuses_what_is_no_matrix,
        spectral_norm_iterates_in_training_only,
        spectral_norm_takes_dimension_1_of_transposed_convolutions,
        old_states_of_spectral_norm_load,
        old_states_of_weight_norm_load,
        symmetric_stays_symmetric,
        options_of_attached_parametrizations_cannot_change,
        wrong_options_and_tensors_are_named,
        a_tensor_of_many_is_named_by_its_path,
        what_pruning_and_parametrizations_are_made_of_is_left_alone,
        NULL,
    };
    return suite_run("rules of parametrizations", tests);
}
