/* SPDX-License-Identifier: MIT
 *
 * The networks of test_plan_networks: those of examples/networks, read from networks.txt; those of
 * tests/models and of the plugin tenon.models; those of bench/networks.c. */
#include "tests/graph/networks.h"

#include <math.h>

#include "bench/networks.h"
#include "tests/graph/suite.h"

/* ---- networks of the tests and of tenon.models ----------------------------------------------- */

#define SHORTCUT(in, out)                                                                          \
    "Residual(conv1=Conv2d(" #in ", " #out ", 3, stride=2, padding=1, bias=False), "               \
    "bn1=BatchNorm2d(" #out "), relu=ReLU(), conv2=Conv2d(" #out ", " #out ", 3, padding=1, "      \
    "bias=False), bn2=BatchNorm2d(" #out "), activation=ReLU(), shortcut=Sequential(Conv2d(" #in   \
    ", " #out ", 1, stride=2, bias=False), BatchNorm2d(" #out ")))"

/* An LSTM returns its states too, so that Sequential cannot call the next layer with its result:
 * this function calls the parts. */
static tn_tensor *call_tagger(tn_module *net, tn_tensor *x)
{
    tn_tensor *y = NULL;

    x = tn_module_call_child(net, "table", x);
    if (tn_module_call_many(tn_module_child(net, "lstm"), &x, 1, &y, 1) != TN_OK)
        return NULL;
    return tn_module_call_chain(net, "head flat", y);
}

static const struct network own[] = {
    /* like those of tests/models/test_spec_networks.c, but smaller; the transformer has dropout */
    { .name = "spec lenet5",
      .spec = "Sequential(Conv2d(1, 6, 5), Tanh(), AvgPool2d(2), Conv2d(6, 16, 5), Tanh(), "
              "AvgPool2d(2), Flatten(), Linear(16, 24), Tanh(), Linear(24, 10))",
      .shape = { 2, 1, 16, 16 },
      .ndim = 4 },
    { .name = "spec resnet",
      .spec = "Sequential(conv1=Conv2d(3, 4, 7, stride=2, padding=3, bias=False), "
              "bn1=BatchNorm2d(4), relu=ReLU(), maxpool=MaxPool2d(3, stride=2, padding=1), "
              "layer2=" SHORTCUT(4, 8) ", layer3=" SHORTCUT(
                  8, 16) ", avgpool=AdaptiveAvgPool2d((1, 1)), flatten=Flatten(), "
                         "fc=Linear(16, 10))",
      .shape = { 2, 3, 32, 32 },
      .ndim = 4 },
    { .name = "spec transformer",
      .spec = "Sequential(Embedding(20, 16), TransformerEncoder(TransformerEncoderLayer(16, 4, "
              "dim_feedforward=32, dropout=0.1, batch_first=True), 2), Flatten(0, 1), "
              "Linear(16, 20))",
      .shape = { 2, 6 },
      .ndim = 2,
      .words = 20 },
    { .name = "spec tagger",
      .spec = "ModuleDict(table=Embedding(17, 8), lstm=LSTM(8, 12, num_layers=2, "
              "bidirectional=True, batch_first=True), head=Linear(24, 5), flat=Flatten(0, 1))",
      .call = call_tagger,
      .shape = { 2, 5 },
      .ndim = 2,
      .words = 17 },
    /* of plugins/models */
    { .name = "models mlp",
      .spec = "mlp([6, 16, 3], activation='gelu', norm='layer', dropout=0.2)",
      .shape = { 3, 6 },
      .ndim = 2 },
    { .name = "models lenet5",
      .spec = "lenet5(image_size=12)",
      .shape = { 2, 1, 12, 12 },
      .ndim = 4 },
    { .name = "models resnet18",
      .spec = "resnet18(num_classes=10, width=4)",
      .shape = { 2, 3, 32, 32 },
      .ndim = 4 },
    { .name = "models resnet34",
      .spec = "resnet34(num_classes=10, stem='small', width=4, layers=[2, 2])",
      .shape = { 2, 3, 8, 8 },
      .ndim = 4 },
    { .name = "models resnet50",
      .spec = "resnet50(num_classes=10, stem='small', width=4, layers=[1, 2], groups=2, "
              "width_per_group=64)",
      .shape = { 2, 3, 8, 8 },
      .ndim = 4 },
    { .name = "models mobilenet_v2",
      .spec = "mobilenet_v2(num_classes=10, stem='small', width_mult=0.1)",
      .shape = { 2, 3, 16, 16 },
      .ndim = 4 },
    { .name = "models vit_tiny",
      .spec = "vit_tiny(num_classes=10, image_size=8, patch_size=4, num_layers=2, num_heads=2, "
              "hidden_dim=16, dropout=0.1)",
      .shape = { 2, 3, 8, 8 },
      .ndim = 4 },
    { .name = "models vit_base",
      .spec = "vit_base(num_classes=10, image_size=8, patch_size=4, num_layers=2, num_heads=2, "
              "hidden_dim=16, mlp_dim=24, attention_dropout=0.1)",
      .shape = { 2, 3, 8, 8 },
      .ndim = 4 },
    { .name = "models unet",
      .spec = "unet(3, 2, base=4, depth=2)",
      .shape = { 2, 3, 9, 12 },
      .ndim = 4 },
    { .name = "models unet bilinear",
      .spec = "unet(3, 2, base=4, depth=2, bilinear=True)",
      .shape = { 2, 3, 9, 12 },
      .ndim = 4 },
    { .name = "models gpt2_small",
      .spec = "gpt2_small(50, 8, n_embd=16, n_layer=2, n_head=2, dropout=0.1)",
      .shape = { 2, 6 },
      .ndim = 2,
      .words = 50 },
    { .name = "models lstm_lm",
      .spec = "lstm_lm(50, embedding_dim=8, hidden_size=8, num_layers=2, dropout=0.2, "
              "tie_weights=True)",
      .shape = { 2, 6 },
      .ndim = 2,
      .words = 50 },
};

/* ---- networks of bench/ ---------------------------------------------------------------------- */

/* Inputs, and specs of narrower networks; NULL: that of bench/networks.c. */
static const struct {
    const char *name, *spec;
    int64_t input[4], ndim, words;
} sizes[] = {
    { "mlp", NULL, { 4, 784 }, 2, 0 },
    { "lenet", NULL, { 2, 1, 28, 28 }, 4, 0 },
    { "resnet18-cifar", "resnet18(num_classes=10, stem='small', width=8)", { 2, 3, 16, 16 }, 4, 0 },
    { "resnet18", "resnet18(width=8)", { 2, 3, 48, 48 }, 4, 0 },
    { "encoder",
      "Sequential(Embedding(50, 16), TransformerEncoder(TransformerEncoderLayer(16, 4, 32, 0.0, "
      "'gelu', batch_first=True, norm_first=True), 4), LayerNorm(16), Linear(16, 10))",
      { 2, 8 },
      2,
      50 },
    { "lstm", "lstm_lm(50, embedding_dim=16, hidden_size=16, dropout=0.0)", { 2, 8 }, 2, 50 },
    { "resnet50", "resnet50(width=8, layers=[2, 2, 2, 2])", { 2, 3, 48, 48 }, 4, 0 },
    { "mobilenet", "mobilenet_v2(dropout=0.0, width_mult=0.25)", { 2, 3, 32, 32 }, 4, 0 },
    { "densenet", NULL, { 2, 3, 32, 32 }, 4, 0 },
    { "unet", "unet(3, 2, base=8)", { 1, 3, 32, 32 }, 4, 0 },
    { "dcgan",
      "Sequential(ConvTranspose2d(100, 32, 4, bias=False), BatchNorm2d(32), ReLU(inplace=True), "
      "ConvTranspose2d(32, 3, 4, stride=2, padding=1, bias=False), Tanh())",
      { 2, 100, 1, 1 },
      4,
      0 },
    { "vit",
      "vit_base(image_size=32, num_layers=3, num_heads=4, hidden_dim=32, mlp_dim=64)",
      { 2, 3, 32, 32 },
      4,
      0 },
    { "bert-tiny",
      "Sequential(Embedding(50, 128), LayerNorm(128), TransformerEncoder(TransformerEncoderLayer("
      "128, 2, 512, 0.0, 'gelu', batch_first=True), 2), Linear(128, 2))",
      { 2, 8 },
      2,
      50 },
    { "gpt2", "gpt2_small(50, 8, n_embd=24, n_layer=12, n_head=12, dropout=0.0)", { 1, 8 }, 2, 50 },
    { "gpt2-token",
      "gpt2_small(50, 129, n_embd=24, n_layer=12, n_head=12, dropout=0.0)",
      { 1, 1 },
      2,
      50 },
    { "faces-p", NULL, { 2, 3, 40, 30 }, 4, 0 },
    { "faces-r", NULL, { 2, 3, 24, 24 }, 4, 0 },
    { "faces-o", NULL, { 2, 3, 48, 48 }, 4, 0 },
    { "audio", NULL, { 2, 1, 4000 }, 3, 0 },
};

/* Networks of over 80 million parameters keep their width, but have only two layers. */
static const struct {
    const char *name, *spec;
} shorter[] = {
    { "vit", "vit_base(image_size=32, num_layers=2)" },
    { "gpt2", "gpt2_small(1000, 128, n_layer=2, dropout=0.0)" },
};

static void each_bench_network(void (*check)(const struct network *network), bool whole)
{
    for (int i = 0; i < bench_n_networks; i++) {
        const bench_network *bench = &bench_networks[i];
        struct network network = { .spec = bench->spec, .bench = bench };
        size_t at = 0;

        while (at < sizeof sizes / sizeof *sizes && strcmp(sizes[at].name, bench->name) != 0)
            at++;
        ck_assert_msg(at < sizeof sizes / sizeof *sizes, "%s: no row in networks.c", bench->name);
        snprintf(network.name, sizeof network.name, "bench %s", bench->name);
        if (!whole && sizes[at].spec != NULL)
            network.spec = sizes[at].spec;
        memcpy(network.shape, sizes[at].input, sizeof network.shape);
        network.ndim = sizes[at].ndim;
        network.words = sizes[at].words;
        for (size_t k = 0; k < sizeof shorter / sizeof *shorter && whole; k++)
            if (strcmp(shorter[k].name, bench->name) == 0)
                network.spec = shorter[k].spec;
        if (bench->cache != NULL) {
            memcpy(network.cache, bench->cache(1).at, sizeof network.cache);
            network.cache[3] = whole ? network.cache[3] : 2;
        }
        check(&network);
    }
}

/* ---- networks of examples/networks ----------------------------------------------------------- */

/* Cuts the next line off a text. */
static char *next_line(char **text)
{
    char *line = *text, *end = strchr(line, '\n');

    ck_assert_ptr_nonnull(end);
    *end = '\0';
    *text = end + 1;
    return line;
}

/* A block of the file: "network NAME WORDS SHAPE", the printed text, "tensors", lines, "end". */
static void read_network(char **text, struct network *network)
{
    char name[40], *line = next_line(text), *end;
    long long words;
    int used;

    ck_assert_int_eq(sscanf(line, "network %39s %lld%n", name, &words, &used), 2);
    snprintf(network->name, sizeof network->name, "rebuilt %s", name);
    network->words = words;
    for (line += used; *line == ' '; line = end)
        network->shape[network->ndim++] = strtoll(line, &end, 10);
    for (int i = 0; rebuilt[i].name != NULL; i++)
        if (strcmp(rebuilt[i].name, name) == 0)
            network->forwards = rebuilt[i].forwards;
    ck_assert_msg(network->forwards != NULL, "%s", name);
    network->spec = *text;
    end = strstr(*text, "\ntensors\n");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    network->tensors = end + strlen("\ntensors\n");
    end = strstr(network->tensors - 1, "\nend\n");
    ck_assert_ptr_nonnull(end);
    end[1] = '\0';
    *text = end + strlen("\nend\n");
}

static void each_rebuilt_network(void (*check)(const struct network *network))
{
    static char text[1 << 17];
    char path[TEST_PATH], *at = text;
    FILE *file = fopen(source_path(path, "tests/graph/networks.txt"), "r");
    int count = 0;

    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    while (*at == '#')
        next_line(&at);
    for (; *at != '\0'; count++) {
        struct network network = { .ndim = 0 };

        read_network(&at, &network);
        check(&network);
    }
    for (int i = 0; rebuilt[i].name != NULL; i++)
        count--;
    ck_assert_int_eq(count, 0);
}

void each_network(void (*check)(const struct network *network), bool whole)
{
    each_rebuilt_network(check);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        check(&own[i]);
    each_bench_network(check, whole);
}

/* ---- building -------------------------------------------------------------------------------- */

/* The distance of two positions in a window of 7 x 7, as Swin Transformers count it. */
static tn_tensor *positions(void)
{
    int64_t values[49 * 49];

    for (int64_t i = 0; i < 49 * 49; i++)
        values[i] = (i / 49 / 7 - i % 49 / 7 + 6) * 13 + i / 49 % 7 - i % 49 % 7 + 6;
    return tn_tensor_from(values, TN_I64, TN_SHAPE(49 * 49));
}

/* Loads a tensor for each line "parameter NAME SHAPE" or "buffer NAME SHAPE". */
static void load_tensors(tn_module *net, const char *lines)
{
    TN_SCOPE;
    tn_state *state = tn_state_new();

    while (*lines != '\0') {
        char kind[16], name[128], *end;
        int64_t shape[4], ndim = 0;
        int used;

        ck_assert_int_eq(sscanf(lines, "%15s %127s%n", kind, name, &used), 2);
        for (lines += used; *lines == ' '; lines = end)
            shape[ndim++] = strtoll(lines, &end, 10);
        ck_ok(tn_state_set(state, name,
                           strcmp(kind, "buffer") == 0
                               ? positions()
                               : tn_tensor_full((tn_ints){ shape, ndim }, 0, TN_F32, NULL)));
        lines += *lines == '\n';
    }
    ck_ok(tn_module_load_state(net, state, false));
    tn_state_drop(state);
}

/* Changes the values of a parameter: many parameters of a new layer are all 0 or all 1, which would
 * hide mistakes. */
static tn_status shake(void *user, const char *path, tn_tensor *parameter)
{
    int64_t count = tn_tensor_numel(parameter), *seed = user;
    float *values = tn_tensor_data(parameter);

    (void)path;
    for (int64_t i = 0; i < count; i++)
        values[i] += (float)(((i * 37 + *seed) % 23) - 11) / 400;
    *seed += 5;
    return TN_OK;
}

static tn_tensor *call_bench(tn_module *self, tn_tensor *x)
{
    const struct network *network = tn_module_user(self);
    tn_module *net = tn_module_child(self, "net");

    return network->bench != NULL ? bench_network_call(network->bench, net, x, NULL)
                                  : network->call(net, x);
}

static tn_status call_cached(tn_module *self, const tn_pack *in, tn_pack *out)
{
    const struct network *network = tn_module_user(self);
    tn_tensor *cache[BENCH_CACHE], *y;

    for (int i = 0; i < BENCH_CACHE; i++)
        cache[i] = tn_pack_tensor(in, i + 1);
    y = bench_network_call(network->bench, tn_module_child(self, "net"), tn_pack_tensor(in, 0),
                           cache);
    return y != NULL ? tn_pack_add(out, NULL, tn_value_tensor(y)) : tn_error_last_code();
}

tn_module *new_network(const struct network *network)
{
    bool wrapped = network->call != NULL ||
                   (network->bench != NULL && network->bench->forward != NULL);
    bench_network bench = network->bench != NULL ? *network->bench
                                                 : (bench_network){ .name = NULL };
    tn_module *net, *root;
    int64_t seed = 1;
    struct network *kept;

    bench.spec = network->spec;
    tn_random_seed(5);
    net = bench_network_new(&bench);
    ck_made(net);
    if (network->tensors != NULL)
        load_tensors(net, network->tensors);
    if (network->forwards != NULL)
        network->forwards(net);
    ck_assert_msg(!tn_failed(), "%s: %s", network->name, tn_error_text());
    ck_ok(tn_module_each_tensor(net, TN_SLOT_PARAMETER, false, shake, &seed));
    if (!wrapped)
        return net;
    root = tn_module_plain("Network");
    kept = malloc(sizeof *kept);
    ck_assert_ptr_nonnull(kept);
    *kept = *network;
    ck_ok(tn_module_add_child(root, "net", net));
    ck_ok(network->cache[0] > 0 ? tn_module_set_call(root, call_cached, kept, free)
                                : tn_module_set_forward(root, call_bench, kept, free));
    tn_module_drop(net);
    return root;
}
