/* SPDX-License-Identifier: MIT
 *
 * Four networks compared with PyTorch: built from a spec, with the weights that PyTorch wrote, they
 * give its result, its loss, its gradient of the input and of every parameter, and its buffers
 * after the call, on every device that is here. make_spec_networks.py wrote the files. */
#include "tests/backend/backend.h"
#include "tests/folders.h"

/* The allowed difference, relative to the largest absolute value of the tensor. The references are
 * rounded to float32. */
#define NEAR_F64 1.5e-7
#define NEAR_F32 3e-5
/* A difference is relative to at least this: tensors of smaller numbers are mostly rounding. */
#define LEAST 1e-2

struct model {
    const char *file, *spec;
    tn_tensor *(*call)(tn_module *net, tn_tensor *x);
    int tensors; /* that are compared */
};

static const char lenet5[] =
    "Sequential(Conv2d(1, 6, 5), Tanh(), AvgPool2d(2), Conv2d(6, 16, 5), Tanh(), AvgPool2d(2), "
    "Flatten(), Linear(400, 120), Tanh(), Linear(120, 84), Tanh(), Linear(84, 10))";

#define CONV(in, out, stride)                                                                      \
    "conv1=Conv2d(" #in ", " #out ", 3, stride=" #stride ", padding=1, bias=False), "              \
    "bn1=BatchNorm2d(" #out "), relu=ReLU(), "                                                     \
    "conv2=Conv2d(" #out ", " #out ", 3, padding=1, bias=False), bn2=BatchNorm2d(" #out "), "      \
    "activation=ReLU()"
#define SAME(n) "Residual(" CONV(n, n, 1) ")"
#define DOWN(in, out)                                                                              \
    "Residual(" CONV(in, out, 2) ", shortcut=Sequential(Conv2d(" #in ", " #out                     \
                                 ", 1, stride=2, bias=False), BatchNorm2d(" #out ")))"
/* clang-format off */
static const char resnet18[] =
    "Sequential(conv1=Conv2d(3, 4, 7, stride=2, padding=3, bias=False), bn1=BatchNorm2d(4), "
    "relu=ReLU(), maxpool=MaxPool2d(3, stride=2, padding=1), "
    "layer1=Sequential(" SAME(4) ", " SAME(4) "), "
    "layer2=Sequential(" DOWN(4, 8) ", " SAME(8) "), "
    "layer3=Sequential(" DOWN(8, 16) ", " SAME(16) "), "
    "layer4=Sequential(" DOWN(16, 32) ", " SAME(32) "), "
    "avgpool=AdaptiveAvgPool2d((1, 1)), flatten=Flatten(), fc=Linear(32, 10))";
/* clang-format on */

static const char transformer[] =
    "Sequential(Embedding(20, 16), TransformerEncoder("
    "TransformerEncoderLayer(16, 4, dim_feedforward=32, dropout=0.0, batch_first=True), 2), "
    "Flatten(0, 1), Linear(16, 20))";

/* An LSTM returns its states too, so that Sequential cannot call the next layer with its result: a
 * function of this file calls the parts. */
static const char tagger[] =
    "ModuleDict(table=Embedding(17, 8), lstm=LSTM(8, 12, num_layers=2, bidirectional=True, "
    "batch_first=True), head=Linear(24, 5), flat=Flatten(0, 1))";

/* The result of a call with several tensors, or the first of several results. */
static tn_tensor *call_with(tn_module *module, tn_tensor *a, tn_tensor *b)
{
    tn_pack *input = tn_pack_new(), *output = tn_pack_new();
    tn_tensor *result;

    ok(tn_pack_add(input, NULL, tn_value_tensor(a)));
    if (b != NULL)
        ok(tn_pack_add(input, NULL, tn_value_tensor(b)));
    ok(tn_module_call_pack(module, input, output));
    result = tn_tensor_to_scope(tn_tensor_keep(tn_pack_tensor(output, 0)));
    tn_pack_drop(input);
    tn_pack_drop(output);
    return result;
}

static tn_tensor *call_tagger(tn_module *net, tn_tensor *x)
{
    x = tn_module_call(tn_module_child(net, "table"), x);
    x = call_with(tn_module_child(net, "lstm"), x, NULL);
    x = tn_module_call(tn_module_child(net, "head"), x);
    return tn_module_call(tn_module_child(net, "flat"), x);
}

static const struct model models[] = { { "lenet5", lenet5, tn_module_call, 13 },
                                       { "resnet18", resnet18, tn_module_call, 125 },
                                       { "transformer", transformer, tn_module_call, 29 },
                                       { "lstm", tagger, call_tagger, 21 } };

/* ---- comparing ---- */

static int compared;

static void near(const struct model *m, const char *name, tn_tensor *got, tn_tensor *wanted,
                 double tolerance)
{
    const double *a, *b;
    double unit = LEAST, furthest = 0;
    int64_t count, worst = 0;

    ck_assert_msg(got != NULL && got != TN_NONE, "%s: there is no %s: %s", m->file, name,
                  tn_error_text());
    count = tn_tensor_numel(wanted);
    ck_assert_msg(tn_tensor_numel(got) == count, "%s: %s has %lld elements, PyTorch's %lld",
                  m->file, name, (long long)tn_tensor_numel(got), (long long)count);
    a = get(got), b = get(wanted);
    for (int64_t i = 0; i < count; i++)
        unit = fmax(unit, fabs(b[i]));
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(a[i] - b[i]) <= furthest))
            furthest = fabs(a[i] - b[i]), worst = i;
    ck_assert_msg(furthest <= tolerance * unit,
                  "%s on %s, %s: element %lld of %s is %.9g, PyTorch's %.9g (the largest %.3g)",
                  m->file, tn_device_name(tn_tensor_device(got)),
                  tn_dtype_name(tn_tensor_dtype(got)), (long long)worst, name, a[worst], b[worst],
                  unit);
    compared++;
}

/* ---- one model on one device in one dtype ---- */

static tn_tensor *part(const struct model *m, const tn_state *file, const char *name)
{
    int64_t index = tn_state_find(file, name);

    ck_assert_msg(index >= 0, "%s.safetensors has no %s", m->file, name);
    return tn_state_tensor(file, index);
}

static tn_tensor *moved(tn_tensor *tensor, tn_dtype dtype, const tn_device *device)
{
    bool is_float = tn_tensor_dtype(tensor) == TN_F32;
    tn_tensor *empty = tn_tensor_empty(tn_tensor_shape(tensor),
                                       is_float ? dtype : tn_tensor_dtype(tensor), device);

    there(empty);
    return tn_copy_(empty, tensor);
}

static tn_module *loaded(const struct model *m, const tn_state *file, tn_dtype dtype,
                         const tn_device *device)
{
    tn_module *net = tn_module_parse(m->spec);
    tn_state *weights = tn_state_new();

    ck_assert_msg(net != NULL, "%s: %s", m->file, tn_error_text());
    for (int64_t i = 0; i < tn_state_count(file); i++)
        if (strncmp(tn_state_name(file, i), "state.", 6) == 0)
            ok(tn_state_set(weights, tn_state_name(file, i) + 6, tn_state_tensor(file, i)));
    ok(tn_module_load_state(net, weights, true));
    ok(tn_module_to(net, device, dtype));
    ok(tn_module_train(net, true));
    tn_state_drop(weights);
    return net;
}

static void compare(const struct model *m, const tn_state *file, tn_dtype dtype,
                    const tn_device *device)
{
    TN_SCOPE;
    double tolerance = dtype == TN_F64 ? NEAR_F64 : NEAR_F32;
    tn_module *net = loaded(m, file, dtype, device), *criterion;
    tn_tensor *x = moved(part(m, file, "input"), dtype, device), *result, *loss;
    tn_tensor *target = moved(part(m, file, "target"), dtype, device);
    int64_t parameters = 0;

    criterion = tn_module_parse("CrossEntropyLoss()");
    there(x);
    there(target);
    if (tn_tensor_dtype(x) == dtype)
        ok(tn_tensor_set_requires_grad(x, true));
    result = m->call(net, x);
    there(result);
    loss = call_with(criterion, result, target);
    ok(tn_backward(loss));
    compared = 0;
    near(m, "result", result, part(m, file, "result"), tolerance);
    near(m, "loss", loss, part(m, file, "loss"), tolerance);
    for (int64_t i = 0; i < tn_state_count(file); i++) {
        const char *name = tn_state_name(file, i), *path = strchr(name, '.');
        tn_tensor *wanted = tn_state_tensor(file, i);

        if (strcmp(name, "gradient") == 0) {
            near(m, name, tn_tensor_grad(x), wanted, tolerance);
        } else if (strncmp(name, "gradient.", 9) == 0) {
            near(m, name, tn_tensor_grad(tn_module_find_parameter(net, path + 1)), wanted,
                 tolerance);
            parameters++;
        } else if (strncmp(name, "after.", 6) == 0) {
            near(m, name, tn_module_find_buffer(net, path + 1), wanted, tolerance);
        }
    }
    ck_assert_int_eq(parameters, tn_module_parameters(net, NULL, 0)); /* every one of them */
    ck_assert_int_eq(compared, m->tensors);
    tn_module_drop(net);
    tn_module_drop(criterion);
}

/* ---- tests ---- */

static void everywhere(const struct model *m)
{
    const char *folder = getenv("TN_TEST_MODELS"); /* make models: new files */
    char stored[TEST_PATH], path[TEST_PATH + 64];
    tn_state *file;

    snprintf(path, sizeof path, "%s/%s.safetensors",
             folder != NULL ? folder : source_path(stored, "tests/models/files"), m->file);
    file = tn_state_load(path);
    ck_assert_msg(file != NULL, "%s", tn_error_text());
    EACH_DEVICE(device)
    {
        compare(m, file, TN_F32, device);
        if (device_has(device, "matmul", TN_F64))
            compare(m, file, TN_F64, device);
        ok(tn_device_sync(device));
    }
    tn_state_drop(file);
}

START_TEST(lenet5_computes_and_learns_what_pytorchs_does)
{
    everywhere(&models[0]);
}
END_TEST

START_TEST(resnet18_computes_and_learns_what_pytorchs_does)
{
    everywhere(&models[1]);
}
END_TEST

START_TEST(a_transformer_encoder_computes_and_learns_what_pytorchs_does)
{
    everywhere(&models[2]);
}
END_TEST

START_TEST(an_lstm_computes_and_learns_what_pytorchs_does)
{
    everywhere(&models[3]);
}
END_TEST

RUN_SUITE("models", lenet5_computes_and_learns_what_pytorchs_does,
          resnet18_computes_and_learns_what_pytorchs_does,
          a_transformer_encoder_computes_and_learns_what_pytorchs_does,
          an_lstm_computes_and_learns_what_pytorchs_does)
