/* SPDX-License-Identifier: MIT
 *
 * Modules that are called one after the other: layers compute what follows in the same operator
 * (tn_layer_def.fuse), with the bits of separate operators, and only if nothing can see it. */
#include "tests/module/chains.h"

static uint64_t module_begins(void *user, const tn_module_event *event)
{
    (void)user, (void)event;
    ran++;
    return 0;
}

static const tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = "counts",
                                          .module_begin = module_begins };

/* ---- a call and all its results -------------------------------------------------------------- */

enum { MOST = 64 };

struct left {
    tn_tensor *tensors[MOST]; /* result, gradient of the input, then all of the module */
    int count;
};

static void run(tn_module *m, tn_tensor *x, bool record, struct left *left)
{
    tn_tensor *y;
    tn_walk *walk;

    left->count = 0;
    x = tn_detach(x);
    if (record)
        ck_assert_int_eq(tn_tensor_set_requires_grad(x, true), TN_OK);
    else
        ck_assert_int_eq(tn_inference_begin(true), TN_OK);
    y = tn_module_call(m, x);
    if (!record)
        tn_inference_end();
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    if (record) {
        tn_tensor *weights = input(tn_tensor_shape(y), false);

        ck_assert_int_eq(tn_backward(tn_sum(tn_mul(y, weights))), TN_OK);
        left->tensors[left->count++] = tn_tensor_grad(x);
    }
    left->tensors[left->count++] = y;
    walk = tn_walk_begin(m, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, NULL);
    for (const tn_visit *at = tn_walk_next(walk); at != NULL; at = tn_walk_next(walk)) {
        ck_assert_int_lt(left->count, MOST);
        left->tensors[left->count++] = tn_clone(
            at->kind == TN_SLOT_PARAMETER && record ? tn_tensor_grad(at->tensor) : at->tensor);
    }
    tn_walk_end(walk);
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
}

static void same(const struct left *a, const struct left *b, const char *what)
{
    ck_assert_int_eq(a->count, b->count);
    for (int i = 0; i < a->count; i++)
        same_bits(a->tensors[i], b->tensors[i], what);
}

/* ---- networks, and the operator of the result with and without fused steps ------------------- */

static const struct net {
    const char *spec, *fused, *parts; /* the result's operator in training */
    int64_t shape[5];
    int dims;
} nets[] = {
    { "Sequential(Linear(5, 7), ReLU())", "linear_activation", "relu", { 3, 5 }, 2 },
    { "Sequential(Linear(5, 7), ReLU(inplace=True))", "linear_activation", "relu", { 3, 5 }, 2 },
    { "Sequential(Linear(5, 7, bias=False), GELU())", "linear_activation", "gelu", { 2, 3, 5 }, 3 },
    { "Sequential(Linear(5, 40), GELU('tanh'))", "linear_activation", "gelu", { 20, 5 }, 2 },
    { "Sequential(Linear(5, 40), Identity(), ReLU(), Linear(40, 3), ReLU())",
      "linear_activation",
      "relu",
      { 130, 5 },
      2 },
    { "Residual(Linear(6, 6))", "linear_activation", "add", { 9, 6 }, 2 },
    { "Residual(Linear(6, 8), ReLU(), Linear(8, 6), shortcut=Linear(6, 6))",
      "linear_activation",
      "add",
      { 9, 6 },
      2 },
    { "Sequential(BatchNorm1d(6), ReLU())", "standardize_relu", "relu", { 9, 6 }, 2 },
    { "Sequential(BatchNorm1d(6), ReLU())", "standardize_relu", "relu", { 4, 6, 5 }, 3 },
    { "Sequential(BatchNorm1d(6), ReLU6())", "standardize_relu", "relu6", { 40, 6 }, 2 },
    { "Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU6(inplace=True))",
      "standardize_relu",
      "relu6",
      { 2, 3, 9, 7 },
      4 },
    { "Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(inplace=True))",
      "standardize_relu",
      "relu",
      { 2, 3, 9, 7 },
      4 },
    { "Residual(Conv2d(3, 8, 3, padding=1), BatchNorm2d(8), ReLU(), Conv2d(8, 3, 3, padding=1), "
      "BatchNorm2d(3), activation=ReLU())",
      "standardize_relu",
      "relu",
      { 2, 3, 6, 5 },
      4 },
    { "Residual(Conv2d(3, 4, 3, padding=1, stride=2), BatchNorm2d(4), "
      "shortcut=Sequential(Conv2d(3, 4, 1, stride=2), BatchNorm2d(4)), activation=ReLU())",
      "standardize_relu",
      "relu",
      { 2, 3, 6, 6 },
      4 },
    { "Sequential(Conv1d(3, 8, 3), BatchNorm1d(8), SiLU(), Conv1d(8, 4, 5, stride=2), ReLU6())",
      "relu6",
      "relu6",
      { 2, 3, 19 },
      3 },
    { "Sequential(Conv2d(4, 4, 3, padding='same', groups=4, bias=False), BatchNorm2d(4, "
      "affine=False), Identity(), ReLU6(), Conv2d(4, 40, 1), Hardswish())",
      "hardswish",
      "hardswish",
      { 2, 4, 9, 8 },
      4 },
    { "Sequential(Conv3d(2, 5, 2, padding=1), BatchNorm3d(5), Dropout(0), ReLU())",
      "relu",
      "relu",
      { 1, 2, 4, 5, 6 },
      5 },
    { "Residual(Conv2d(40, 40, 3, padding=1), shortcut=Sequential(Conv2d(40, 40, 1), "
      "BatchNorm2d(40)), activation=SiLU())",
      "silu",
      "silu",
      { 1, 40, 9, 9 },
      4 },
    { "Sequential(Conv2d(3, 3, 2, padding='same', padding_mode='circular'), BatchNorm2d(3), "
      "ReLU())",
      "standardize_relu",
      "relu",
      { 2, 3, 6, 5 },
      4 },
    { "resnet.BasicBlock(4, 8, 2)", "standardize_relu", "relu", { 2, 4, 6, 6 }, 4 },
    { "mobilenet.InvertedResidual(8, 8)", "add", "add", { 2, 8, 7, 6 }, 4 },
    { "resnet.Bottleneck(16, 4)", "standardize_relu", "relu", { 2, 16, 5, 5 }, 4 },
};
enum { NETS = sizeof nets / sizeof *nets };

static tn_module *copy(tn_module *m)
{
    tn_module *other = tn_module_copy(m);

    ck_assert_msg(other != NULL, "%s", tn_error_text());
    return other;
}

/* Runs the module without fused steps: a global hook prevents them, and does nothing else. */
static void run_parts(tn_module *m, tn_tensor *x, bool record, struct left *left)
{
    tn_hook_handle all = hooked(NULL, GLOBAL);

    ck_assert_uint_ne(all, 0);
    run(m, x, record, left);
    tn_hook_remove(all);
}

START_TEST(fused_steps_have_the_bits_of_the_parts)
{
    for (int i = 0; i < NETS; i++)
        for (int mode = 0; mode < 8; mode++) {
            TN_SCOPE;
            const struct net *net = &nets[i];
            bool training = mode & 1, record = mode & 2;
            tn_tensor *x = input((tn_ints){ net->shape, net->dims }, mode & 4);
            tn_module *first = parsed(net->spec), *a, *b;
            struct left fused, parts;

            tn_module_train(first, true); /* norms get running statistics of their own */
            run(first, x, true, &fused);
            tn_module_train(first, training);
            a = copy(first);
            b = copy(first);
            tn_module_drop(first);
            run(a, x, record, &fused);
            run_parts(b, x, record, &parts);
            same(&fused, &parts, net->spec);
            if (record && training) { /* two steps, so that gradients add up */
                ck_assert_str_eq(tn_tensor_grad_op(fused.tensors[1]), net->fused);
                ck_assert_str_eq(tn_tensor_grad_op(parts.tensors[1]), net->parts);
                run(a, x, record, &fused);
                run_parts(b, x, record, &parts);
                same(&fused, &parts, net->spec);
            }
            tn_module_drop(a);
            tn_module_drop(b);
        }
}
END_TEST

START_TEST(any_hook_on_any_module_gives_the_same_and_runs)
{
    for (int i = 0; i < NETS; i++) {
        int64_t modules = 1;

        for (int64_t at = 0; at < modules; at++)
            for (int kind = 0; kind < OBSERVER; kind++) {
                TN_SCOPE;
                const struct net *net = &nets[i];
                tn_tensor *x = input((tn_ints){ net->shape, net->dims }, false);
                bool record = true;
                tn_module *a = parsed(net->spec), *b;
                tn_walk *walk;
                struct left fused, hooks;
                int64_t n = 0;
                char what[256];
                tn_hook_handle handle = 0;
                /* as in PyTorch, in-place layers cannot be combined with these hooks */
                bool refused = strstr(net->spec, "inplace") != NULL ||
                               strstr(net->spec, "net.") != NULL;
                bool back = kind == BACK_PRE || kind == BACK || kind == GLOBAL_BACK;

                if (refused && back) {
                    tn_module_drop(a);
                    continue;
                }
                if (!back && (at + kind) % 2 == 0) { /* in evaluation, after a step of training */
                    run(a, x, true, &fused);
                    tn_module_train(a, false);
                    record = false;
                }
                b = copy(a);
                walk = tn_walk_begin(b, TN_SLOT_CHILD, NULL);

                for (const tn_visit *v = tn_walk_next(walk); v != NULL; v = tn_walk_next(walk))
                    if (n++ == at)
                        handle = hooked(v->module, kind);
                tn_walk_end(walk);
                modules = n;
                ck_assert_uint_ne(handle, 0);
                ran = 0;
                run(b, x, record, &hooks);
                ck_assert_int_gt(ran, 0);
                tn_hook_remove(handle);
                run(a, x, record, &fused);
                snprintf(what, sizeof what, "%s: hook %d of module %d", net->spec, kind, (int)at);
                same(&fused, &hooks, what);
                tn_module_drop(a);
                tn_module_drop(b);
            }
    }
}
END_TEST

START_TEST(an_observer_sees_every_module)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(5, 7), ReLU(), Linear(7, 2), ReLU())");
    tn_tensor *x = input(TN_SHAPE(3, 5), false), *fused, *seen;

    fused = tn_module_call(m, x);
    ck_assert_int_eq(tn_register(&observer), TN_OK);
    ran = 0;
    seen = tn_module_call(m, x);
    ck_assert_int_eq(ran, 5);
    ck_assert_str_eq(tn_tensor_grad_op(seen), "relu");
    same_bits(fused, seen, "observed");
    ck_assert_int_eq(tn_unregister(TN_KIND_tn_observer_def, "counts"), TN_OK);
    tn_module_drop(m);
}
END_TEST

START_TEST(modes_that_show_the_parts_get_them)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(5, 7), ReLU())");
    tn_tensor *x = input(TN_SHAPE(3, 5), false);

    ck_assert_str_eq(tn_tensor_grad_op(tn_module_call(m, x)), "linear_activation");
    ck_assert_int_eq(tn_anomaly_begin(true), TN_OK);
    ck_assert_str_eq(tn_tensor_grad_op(tn_module_call(m, x)), "relu");
    tn_anomaly_end();
    ck_assert_int_eq(tn_autocast_begin("cpu", TN_BF16, true), TN_OK);
    ck_assert_str_eq(tn_tensor_grad_op(tn_module_call(m, x)), "relu");
    tn_autocast_end();
    ck_assert_int_eq(tn_module_to(m, NULL, TN_BF16), TN_OK);
    ck_assert_str_eq(tn_tensor_grad_op(tn_module_call(m, tn_cast(x, TN_BF16))), "relu");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_trace_records_every_module)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(5, 7), ReLU())");
    tn_tensor *x = input(TN_SHAPE(3, 5), false);
    tn_graph *graph = tn_module_trace(m, x, NULL);
    int64_t modules = 0;

    ck_assert_msg(graph != NULL, "%s", tn_error_text());
    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node))
        modules += tn_node_kind_of(node) == TN_NODE_CALL;
    ck_assert_int_eq(modules, 2);
    tn_graph_drop(graph);
    tn_module_drop(m);
}
END_TEST

START_TEST(errors_are_those_of_the_parts)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(5, 7), ReLU())");

    ck_assert_ptr_null(tn_module_call(m, input(TN_SHAPE(3, 4), false)));
    expect_failure(TN_ERR_RUNTIME, "module \"0\" (Linear): linear: x or weight: wrong shape");
    tn_module_drop(m);
    m = parsed("Sequential(BatchNorm2d(3), ReLU())");
    ck_assert_ptr_null(tn_module_call(m, input(TN_SHAPE(3, 3), false)));
    expect_failure(TN_ERR_VALUE, "module \"0\" (BatchNorm2d): expected 4D input (got 2D input)");
    ck_assert_ptr_null(tn_module_call(m, input(TN_SHAPE(1, 3, 1, 1), false)));
    expect_failure(TN_ERR_VALUE, "Expected more than 1 value per channel when training");
    ck_assert_int_eq((int)tn_item(tn_module_find_tensor(m, "0.num_batches_tracked")), 0);
    tn_module_drop(m);
}
END_TEST

/* ---- a layer of the program takes part ------------------------------------------------------- */

static int64_t asked, computed;

static tn_tensor *twice_forward(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_mul_scalar(x, 2);
}

/* Computes the sums and activations that follow, whatever their names, but at most `computed`. */
static tn_tensor *twice_fuse(tn_module *self, tn_tensor *x, const tn_follower *followers,
                             int64_t count, int64_t *done)
{
    asked = count;
    *done = 0;
    if (computed == 0)
        return NULL;
    x = twice_forward(self, x);
    for (; *done < count && *done < computed; ++*done)
        x = followers[*done].add != NULL                         ? tn_add(x, followers[*done].add)
            : strcmp(followers[*done].pointwise, "tenfold") == 0 ? tn_mul_scalar(x, 10)
                                                                 : tn_relu(x);
    return x;
}

static tn_tensor *tenfold_forward(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_mul_scalar(x, 10);
}

static const char *tenfold_pointwise(tn_module *self)
{
    (void)self;
    return "tenfold";
}

static const tn_layer_def twice = { TN_HEAD(tn_layer_def), .name = "Twice",
                                    .forward = twice_forward, .fuse = twice_fuse };
static const tn_layer_def tenfold = { TN_HEAD(tn_layer_def), .name = "Tenfold",
                                      .forward = tenfold_forward, .pointwise = tenfold_pointwise };

START_TEST(a_layer_of_anybody_takes_part)
{
    TN_SCOPE;
    tn_module *m, *r;
    tn_tensor *x = VEC(1, -2);

    ck_assert_int_eq(tn_register(&twice), TN_OK);
    ck_assert_int_eq(tn_register(&tenfold), TN_OK);
    m = parsed("Sequential(Twice(), Tenfold(), ReLU(), Hardtanh(-100, 100))");
    r = parsed("Residual(Twice(), activation=Tenfold())");
    for (computed = 0; computed <= 2; computed++) {
        asked = -1;
        HAS(tn_module_call(m, x), 20, 0);
        ck_assert_int_eq(asked, 2); /* Hardtanh does not take part */
        HAS(tn_module_call(r, x), 30, -60);
        ck_assert_int_eq(asked, 2);
    }
    asked = -1;
    hooked(tn_module_child(m, "0"), FORWARD);
    tn_module_call(m, x);
    ck_assert_int_eq(asked, -1);
    tn_module_unhook(tn_module_child(m, "0"));
    hooked(tn_module_child(m, "2"), BACK);
    tn_module_call(m, x);
    ck_assert_int_eq(asked, 1);
    tn_module_drop(m);
    tn_module_drop(r);
}
END_TEST

START_TEST(a_chain_adds_its_input_and_what_children_return)
{
    TN_SCOPE;
    tn_module *m = tn_module_plain("Net");
    tn_tensor *x = VEC(1, -2);

    ck_assert_int_eq(tn_module_add_children(m, "relu=ReLU(), neg=Softshrink(0.5)"), TN_OK);
    HAS(tn_module_call_chain(m, "relu +", x), 2, -2);
    HAS(tn_module_call_chain(m, "+ relu", x), 2, 0);
    HAS(tn_module_call_chain(m, "relu +neg", x), 1.5, -1.5);
    HAS(tn_module_call_chain(m, "relu + +neg relu", x), 2.5, 0);
    ck_assert_ptr_null(tn_module_call_chain(m, "relu +nothing", x));
    expect_failure(TN_ERR_ATTR, "nothing");
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        fused_steps_have_the_bits_of_the_parts,
        any_hook_on_any_module_gives_the_same_and_runs,
        an_observer_sees_every_module,
        modes_that_show_the_parts_get_them,
        a_trace_records_every_module,
        errors_are_those_of_the_parts,
        a_layer_of_anybody_takes_part,
        a_chain_adds_its_input_and_what_children_return,
        NULL,
    };
    return suite_run("chains of modules", tests);
}
