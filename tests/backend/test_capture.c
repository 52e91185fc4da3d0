/* SPDX-License-Identifier: MIT
 *
 * Recorded work on the strict device: kernels, decompositions, a step of training, prepared calls,
 * and the memory of all of it. The step of training runs on every device that records. */
#include "tests/backend/backend.h"

#include "examples/strict-device/strict.h"

static const tn_device *strict(void)
{
    const tn_device *device = tn_device_find("strict");
    there(device);
    return device;
}

static uint64_t counted(int which)
{
    const struct strict_api *api = tn_device_native(strict(), STRICT_API_ID);
    uint64_t counts[3];
    there(api);
    api->counts(&counts[0], &counts[1], &counts[2]);
    return counts[which];
}

static tn_tensor *square_of(double a, double b, double c, double d)
{
    return put(strict(), TN_F32, TN_SHAPE(2, 2), NUMBERS(a, b, c, d), DENSE);
}

static void set(tn_tensor *tensor, float a, float b, float c, float d)
{
    float values[] = { a, b, c, d };
    ck_assert_int_eq(tn_tensor_copy_in(tensor, values, sizeof values), TN_OK);
}

static void has(tn_tensor *tensor, double a, double b, double c, double d)
{
    same("recorded", strict(), TN_F32, tensor, NUMBERS(a, b, c, d), 8, 1);
}

/* A stream that is the current one: what is made from here on belongs to it. */
static tn_stream *begun(void)
{
    tn_stream *stream = tn_stream_new(strict(), NULL);
    there(stream);
    ck_assert_int_eq(tn_stream_begin(stream), TN_OK);
    return stream;
}

/* Like tn_stream_capture_end, but a failure of the call fails the test with its message. */
static tn_device_graph *ended(tn_stream *stream)
{
    tn_device_graph *graph = tn_stream_capture_end(stream);
    ck_assert_msg(graph != NULL, "%s", tn_error_text());
    return graph;
}

START_TEST(kernels_are_recorded_and_run_at_each_launch)
{
    TN_SCOPE;
    tn_stream *stream = begun();
    tn_tensor *x = square_of(1, -2, 3, -4), *y;
    tn_device_graph *graph;
    uint64_t kernels;

    ck_assert_int_eq(tn_stream_capture_begin(stream), TN_OK);
    kernels = counted(0);
    y = tn_relu(tn_add(x, x));
    y = tn_softplus(tn_sub(y, x)); /* decomposed */
    graph = ended(stream);
    ck_assert_uint_eq(counted(0), kernels);
    for (int i = 0; i < 3; i++) {
        float v = (float)i;
        set(x, v, -v, 2 * v, 0);
        ck_assert_int_eq(tn_device_graph_launch(graph, NULL), TN_OK);
        has(y, log1p(exp(v)), log1p(exp(v)), log1p(exp(2 * v)), log(2));
    }
    ck_assert_uint_gt(counted(0), kernels + 6);
    tn_device_graph_drop(graph);
    tn_stream_end();
    tn_stream_drop(stream);
    ck_assert_uint_eq(counted(1), 0);
}
END_TEST

START_TEST(what_waits_in_a_kernel_is_refused_by_the_kernels_name)
{
    TN_SCOPE;
    tn_stream *stream = begun();
    tn_tensor *x = square_of(1, 0, 0, 2);

    ck_assert_int_eq(tn_stream_capture_begin(stream), TN_OK);
    ck_assert_ptr_null(tn_nonzero(x));
    ck_assert_msg(strstr(tn_error_text(), "tn_nonzero: refused while a stream of strict:0 records "
                                          "(tn_stream_capture_begin): the kernel is not marked "
                                          "TN_KERNEL_CAPTURE_SAFE") != NULL,
                  "%s", tn_error_text());
    ck_assert_ptr_null(tn_stream_capture_end(stream));
    tn_error_clear();
    there(tn_nonzero(x)); /* the stream works again */
    tn_stream_end();
    tn_stream_drop(stream);
}
END_TEST

/* w -= 0.1 d/dw sum((x w)^2), in place. */
static tn_tensor *step(tn_tensor *x, tn_tensor *w)
{
    tn_tensor *loss = tn_sum(tn_square(tn_matmul(x, w)));
    tn_tensor *update;

    tn_tensor_set_grad(w, TN_NONE);
    if (loss == NULL || tn_backward(loss) != TN_OK)
        return NULL;
    tn_grad_begin(false);
    update = tn_mul_scalar(tn_tensor_grad(w), 0.1);
    update = tn_sub_(w, update);
    tn_grad_end();
    return update != NULL ? tn_detach(loss) : NULL;
}

/* Records a step on a device and compares four launches with four steps that are not recorded.
 * Returns whether the device can record. */
static bool repeats_a_step(const tn_device *device)
{
    TN_SCOPE;
    tn_stream *stream = tn_stream_new(device, NULL);
    tn_tensor *x = put(device, TN_F32, TN_SHAPE(2, 2), NUMBERS(1, 0.5, -0.25, 1), DENSE);
    tn_tensor *eager = put(device, TN_F32, TN_SHAPE(2, 2), NUMBERS(1, 2, 3, 4), DENSE);
    tn_tensor *w = put(device, TN_F32, TN_SHAPE(2, 2), NUMBERS(0, 0, 0, 0), DENSE), *loss;
    tn_device_graph *graph;
    float values[4];
    bool records;

    there(stream);
    ok(tn_stream_begin(stream));
    ok(tn_tensor_set_requires_grad(eager, true));
    ok(tn_tensor_set_requires_grad(w, true));
    there(step(x, w)); /* loads what the kernels need; with weights of 0 nothing changes */
    records = tn_stream_capture_begin(stream) != TN_ERR_NOT_IMPLEMENTED;
    if (records) {
        loss = step(x, w);
        graph = ended(stream);
        there(tn_copy_(tn_detach(w), tn_detach(eager)));
        for (int i = 0; i < 4; i++) {
            TN_SCOPE;
            tn_tensor *expected = step(x, eager);

            there(expected);
            ok(tn_device_graph_launch(graph, NULL));
            ck_assert_double_eq(tn_item(loss), tn_item(expected));
            ok(tn_tensor_copy_out(eager, values, sizeof values));
            same("recorded", device, TN_F32, tn_detach(w),
                 NUMBERS(values[0], values[1], values[2], values[3]), 8, 1);
        }
        tn_device_graph_drop(graph);
    }
    tn_error_clear();
    tn_stream_end();
    tn_stream_drop(stream);
    return records;
}

START_TEST(a_step_of_training_is_recorded_and_repeated)
{
    EACH_DEVICE(device)
    {
        bool records = repeats_a_step(device);
        const char *type = tn_device_type(device);

        ck_assert_msg(records || (strcmp(type, "strict") != 0 && strcmp(type, "cuda") != 0),
                      "%s records nothing", type);
    }
    ck_assert_uint_eq(counted(1), 0);
}
END_TEST

START_TEST(a_kept_call_is_recorded)
{
    TN_SCOPE;
    tn_stream *stream = begun();
    tn_tensor *x = square_of(1, 2, 3, 4), *y = square_of(0, 0, 0, 0), *in[] = { x, x };
    tn_prepared *kept = tn_op_prepare(tn_op_find("mul", 0), in, 2, NULL, 0);
    tn_device_graph *graph;

    ck_assert_msg(kept != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_stream_capture_begin(stream), TN_OK);
    ck_assert_int_eq(tn_prepared_run_into(kept, in, 2, &y, 1), TN_OK);
    graph = ended(stream);
    tn_prepared_drop(kept);
    has(y, 0, 0, 0, 0);
    ck_assert_int_eq(tn_device_graph_launch(graph, NULL), TN_OK);
    has(y, 1, 4, 9, 16);
    tn_device_graph_drop(graph);
    tn_stream_end();
    tn_stream_drop(stream);
}
END_TEST

/* ---- optimizers ------------------------------------------------------------------------------ */

/* An optimizer of the registry with one parameter, and what a closure of it needs. */
struct stepped {
    tn_tensor *parameter, *gradient;
    tn_optimizer *optimizer;
};

static const tn_optimizer_def *optimizer_at(int64_t i)
{
    const char *name = tn_registry_name(TN_KIND_tn_optimizer_def, i);
    const tn_optimizer_def *def = (const void *)tn_registry_find(TN_KIND_tn_optimizer_def, name);

    ck_assert_msg(def != NULL, "%s", tn_error_text());
    return def;
}

static bool has_capturable(const tn_optimizer_def *def)
{
    for (const tn_option *row = def->options; row->kind != TN_OPTION_KIND_END; row++)
        if (strcmp(row->name, "capturable") == 0)
            return true;
    return false;
}

static struct stepped stepped_by(const tn_optimizer_def *def, const char *options)
{
    struct stepped s = { .parameter = square_of(1, -2, 3, 0.5), .gradient = square_of(0, 0, 0, 0) };
    char text[128];

    snprintf(text, sizeof text, "%s(%s)", def->name, options);
    ok(tn_tensor_set_requires_grad(s.parameter, true));
    ok(tn_tensor_set_grad(s.parameter, s.gradient));
    s.optimizer = tn_optimizer_parse(&s.parameter, 1, text);
    ck_assert_msg(s.optimizer != NULL, "%s: %s", text, tn_error_text());
    return s;
}

static tn_tensor *half(void *user)
{
    (void)user;
    return square_of(0.5, 0, 0, 0);
}

static tn_status taken(const struct stepped *s, const tn_optimizer_def *def)
{
    uint64_t mark = tn_error_mark();

    if ((def->flags & TN_OPTIMIZER_CLOSURE) == 0)
        return tn_optimizer_step(s->optimizer);
    (void)tn_optimizer_step_with(s->optimizer, half, NULL);
    return tn_error_mark() == mark ? TN_OK : tn_error_code();
}

/* The gradient of step `i`, in the tensor that the record reads. */
static void set_gradient(const struct stepped *s, int i)
{
    set(s->gradient, 0.5F - (float)i, -1, 2 + (float)i, 0.25F);
}

/* The step fails, and so does the recording; the message has `words`. */
static void refuses(const tn_optimizer_def *def, const struct stepped *s, tn_stream *stream,
                    const char *words)
{
    ok(tn_stream_capture_begin(stream));
    ck_assert_msg(taken(s, def) != TN_OK, "%s: recorded", def->name);
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "%s: %s", def->name, tn_error_text());
    ck_assert_ptr_null(tn_stream_capture_end(stream));
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "%s: %s", def->name, tn_error_text());
    tn_error_clear();
}

START_TEST(every_optimizer_that_is_not_capturable_refuses_to_be_recorded)
{
    int64_t count = tn_registry_count(TN_KIND_tn_optimizer_def);

    ck_assert_int_gt(count, 10);
    for (int64_t i = 0; i < count; i++) {
        TN_SCOPE;
        const tn_optimizer_def *def = optimizer_at(i);
        bool closure = (def->flags & TN_OPTIMIZER_CLOSURE) != 0;
        tn_stream *stream = begun();
        struct stepped s = stepped_by(def, ""), twin = stepped_by(def, "");
        set_gradient(&s, 0);
        set_gradient(&twin, 0);
        for (int k = 0; k < 2 && !closure; k++) { /* the refused step is not a step */
            ok(taken(&s, def));
            ok(taken(&twin, def));
            if (k == 0)
                refuses(def, &s, stream, "each launch would repeat the number of this step");
        }
        if (closure)
            refuses(def, &s, stream, "refused while a stream of strict:0 records");
        ck_assert_msg(tn_equal(tn_detach(s.parameter), tn_detach(twin.parameter)), "%s", def->name);
        ck_assert_int_eq(tn_optimizer_steps(s.optimizer, 0), closure ? 0 : 2);
        tn_optimizer_drop(s.optimizer);
        tn_optimizer_drop(twin.optimizer);
        tn_stream_end();
        tn_stream_drop(stream);
    }
}
END_TEST

START_TEST(every_capturable_optimizer_is_recorded_and_steps_at_each_launch)
{
    int64_t count = tn_registry_count(TN_KIND_tn_optimizer_def), capturable = 0;

    for (int64_t i = 0; i < count; i++) {
        TN_SCOPE;
        const tn_optimizer_def *def = optimizer_at(i);
        struct stepped s, eager;
        tn_device_graph *graph;
        tn_stream *stream;
        if (!has_capturable(def))
            continue;
        stream = begun();
        s = stepped_by(def, "capturable=True");
        eager = stepped_by(def, "capturable=True");
        /* States that do not exist yet would be made again at each launch. */
        refuses(def, &s, stream, "expected a step before the recording begins");
        set_gradient(&s, 0);
        set_gradient(&eager, 0);
        ok(taken(&s, def));
        ok(taken(&eager, def));
        /* So would a learning rate that the next step writes. */
        ok(tn_optimizer_set(s.optimizer, 0, "lr", 0.25));
        ok(tn_optimizer_set(eager.optimizer, 0, "lr", 0.25));
        refuses(def, &s, stream, "expected a step before the recording begins");
        ok(taken(&s, def));
        ok(taken(&eager, def));
        ok(tn_stream_capture_begin(stream));
        ok(taken(&s, def));
        graph = ended(stream);
        for (int k = 1; k < 5; k++) {
            set_gradient(&s, k);
            set_gradient(&eager, k);
            ok(tn_device_graph_launch(graph, NULL));
            ok(taken(&eager, def));
            ck_assert_msg(tn_equal(tn_detach(s.parameter), tn_detach(eager.parameter)),
                          "%s, launch %d", def->name, k);
        }
        tn_device_graph_drop(graph);
        tn_optimizer_drop(s.optimizer);
        tn_optimizer_drop(eager.optimizer);
        tn_stream_end();
        tn_stream_drop(stream);
        capturable++;
    }
    ck_assert_int_gt(capturable, 9);
}
END_TEST

/* ---- plans ----------------------------------------------------------------------------------- */

static tn_tensor *batch_on(const tn_device *device, int from)
{
    double values[12];

    for (int i = 0; i < 12; i++)
        values[i] = (double)((i * 5 + from) % 7) / 4 - 0.5;
    return put(device, TN_F32, TN_SHAPE(4, 3), values, DENSE);
}

/* Calls a module eagerly, and as a plan that the device records. */
static bool launches_a_plan(const tn_device *device)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 8), ReLU(), Linear(8, 4))"), *planned;
    bool records = true;

    there(net);
    ok(tn_module_eval(net));
    ok(tn_module_to(net, device, TN_F32));
    planned = tn_module_copy(net);
    ok(tn_module_compile(planned, "plan(device_graph=True)"));
    ok(tn_grad_begin(false));
    for (int i = 0; i < 4 && records; i++) {
        tn_tensor *x = batch_on(device, i), *y = tn_module_call(net, x), *z, *later;
        uint64_t kernels = device == tn_device_find("strict") ? counted(0) : 0;

        there(y);
        z = tn_module_call(planned, x);
        records = z != NULL || tn_error_code() != TN_ERR_NOT_IMPLEMENTED;
        if (!records) {
            ck_assert_msg(strstr(tn_error_text(), "device_graph: ") != NULL, "%s", tn_error_text());
            break;
        }
        ck_assert_msg(z != NULL, "%s", tn_error_text());
        later = tn_module_call(planned, batch_on(device, i + 3)); /* z keeps its values */
        there(later);
        ck_assert(tn_equal(z, y));
        ck_assert(!tn_equal(later, y));
        if (device == tn_device_find("strict")) /* all work is done now */
            ck_assert_uint_gt(counted(0), kernels + 2);
        if (i == 2) /* the record reads the weights where they are */
            for (int k = 0; k < 2; k++)
                there(tn_mul_scalar_(tn_module_find_parameter(k == 0 ? net : planned, "0.weight"),
                                     0.5));
    }
    tn_grad_end();
    tn_error_clear();
    tn_module_drop(net);
    tn_module_drop(planned);
    return records;
}

START_TEST(a_plan_is_recorded_once_and_launched)
{
    EACH_DEVICE(device)
    {
        bool records = launches_a_plan(device);
        const char *type = tn_device_type(device);

        ck_assert_msg(records == (strcmp(type, "strict") == 0 || strcmp(type, "cuda") == 0),
                      "%s: %d", type, records);
    }
    ck_assert_uint_eq(counted(1), 0);
}
END_TEST

static tn_status never_run(const tn_call *call)
{
    (void)call;
    return tn_fail(TN_ERR_RUNTIME, "it ran");
}

START_TEST(a_plan_with_a_kernel_that_cannot_be_recorded_is_refused)
{
    static const tn_kernel_def unsafe = { TN_HEAD(tn_kernel_def), .op = "hardtanh",
                                          .device = "strict",     .name = "waiting_hardtanh",
                                          .revision = 1,          .dtypes = TN_BIT(TN_F32),
                                          .run = never_run };
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(ReLU(), Hardtanh())");
    tn_tensor *x = batch_on(strict(), 1);

    there(net);
    ok(tn_register(&unsafe));
    ok(tn_module_eval(net));
    ok(tn_module_compile(net, "plan(device_graph=True)"));
    ck_assert_ptr_null(tn_module_call(net, x));
    ck_assert_msg(strstr(tn_error_text(), "waiting_hardtanh: the device cannot record it; expected "
                                          "kernels with TN_KERNEL_CAPTURE_SAFE") != NULL,
                  "%s", tn_error_text());
    tn_error_clear();
    tn_module_drop(net);
}
END_TEST

RUN_SUITE("capture", kernels_are_recorded_and_run_at_each_launch,
          what_waits_in_a_kernel_is_refused_by_the_kernels_name,
          a_step_of_training_is_recorded_and_repeated, a_kept_call_is_recorded,
          every_optimizer_that_is_not_capturable_refuses_to_be_recorded,
          every_capturable_optimizer_is_recorded_and_steps_at_each_launch,
          a_plan_is_recorded_once_and_launched,
          a_plan_with_a_kernel_that_cannot_be_recorded_is_refused)
