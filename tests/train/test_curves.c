/* SPDX-License-Identifier: MIT
 *
 * Trains an MLP, LeNet-5, a transformer and an LSTM for 200 steps from the same weights and data as
 * PyTorch (make_curves.py), and compares the losses: within 1e-4 for the first 50 steps in float32,
 * in all steps in float64. With the argument --print it prints the losses. */
#include "tests/base/suite.h"

#include <math.h>

enum { STEPS = 200, BATCHES = 4, COMPARED = 50, TOKENS = 20, CLASSES = 8 };

struct curve {
    char name[32], dtype[8], net[600], optim[200], scheduler[200];
    double clip;
    double losses[STEPS];
    int count;
};

/* The numbers that make_curves.py uses, too. */
static double next(uint32_t *state)
{
    *state = (uint32_t)(((uint64_t)*state * 1103515245u + 12345u) % (1u << 31));
    return (double)*state / (1u << 30) - 1;
}

static tn_tensor *numbers(uint32_t *state, tn_ints shape, double scale, double offset)
{
    tn_tensor *tensor = tn_tensor_empty(shape, TN_F64, NULL);
    double *at = tn_tensor_data(tensor);

    for (int64_t i = 0; i < tn_tensor_numel(tensor); i++)
        at[i] = scale * next(state) + offset;
    return tensor;
}

static tn_tensor *whole(uint32_t *state, tn_ints shape, int limit)
{
    tn_tensor *tensor = tn_tensor_empty(shape, TN_I64, NULL);
    int64_t *at = tn_tensor_data(tensor);

    for (int64_t i = 0; i < tn_tensor_numel(tensor); i++)
        at[i] = (int64_t)((next(state) + 1) / 2 * limit);
    return tensor;
}

static void fill(tn_module *net, uint32_t *state)
{
    tn_state *names = tn_module_state(net);

    tn_grad_begin(false);
    for (int64_t i = 0; i < tn_state_count(names); i++) {
        TN_SCOPE;
        const char *name = tn_state_name(names, i);
        tn_tensor *p = tn_module_find_tensor(net, name);
        size_t length = strlen(name);
        bool factor = strstr(name, "norm") != NULL && length > 6 &&
                      strcmp(name + length - 6, "weight") == 0;
        double inputs = (double)tn_tensor_numel(p) / (double)tn_tensor_size(p, 0);
        double scale = tn_tensor_ndim(p) > 1 ? pow(inputs, -0.5) : 0.1;

        ck_assert_ptr_nonnull(tn_copy_(p, numbers(state, tn_tensor_shape(p), scale, factor)));
    }
    tn_grad_end();
    tn_state_drop(names);
}

/* The inputs and targets of the batches; the targets of tokens are the next tokens. */
static void batch(const char *name, uint32_t *state, tn_dtype dtype, tn_tensor **x,
                  tn_tensor **target)
{
    if (strcmp(name, "transformer") == 0 || strcmp(name, "lstm") == 0) {
        tn_tensor *row = whole(state, TN_SHAPE(4, 13), TOKENS);

        *x = tn_copy(tn_narrow(row, 1, 0, 12));
        *target = tn_reshape(tn_copy(tn_narrow(row, 1, 1, 12)), TN_SHAPE(48));
    } else {
        bool flat = strcmp(name, "mlp") == 0;

        *x = tn_cast(numbers(state, flat ? TN_SHAPE(16, 16) : TN_SHAPE(4, 1, 28, 28), 1, 0), dtype);
        *target = whole(state, TN_SHAPE(flat ? 16 : 4), CLASSES);
    }
    *x = tn_tensor_keep(*x);
    *target = tn_tensor_keep(*target);
    ck_assert_msg(*x != NULL && *target != NULL, "%s", tn_error_text());
}

static tn_tensor *loss_of(tn_module *net, tn_tensor *x, tn_tensor *target)
{
    tn_tensor *y;

    ck_assert_msg(tn_module_call_many(net, &x, 1, &y, 1) == TN_OK, "%s", tn_error_text());
    y = tn_reshape(y, TN_SHAPE(tn_tensor_numel(target), -1));
    return tn_cross_entropy(y, target);
}

static void train(const struct curve *curve, double *losses)
{
    bool narrow = strcmp(curve->dtype, "f32") == 0;
    tn_module *net = tn_module_new("%s", curve->net);
    tn_optimizer *optimizer;
    tn_scheduler *scheduler;
    tn_tensor *x[BATCHES], *target[BATCHES], *parameters[64];
    int64_t count;
    uint32_t state = 1;

    ck_assert_msg(net != NULL, "%s: %s", curve->net, tn_error_text());
    if (!narrow)
        ck_assert_int_eq(tn_module_double(net), TN_OK);
    fill(net, &state);
    for (int i = 0; i < BATCHES; i++) {
        TN_SCOPE;
        batch(curve->name, &state, narrow ? TN_F32 : TN_F64, &x[i], &target[i]);
    }
    optimizer = tn_optimizer_new(net, "%s", curve->optim);
    scheduler = tn_scheduler_new(optimizer, "%s", curve->scheduler);
    ck_assert_msg(scheduler != NULL, "%s", tn_error_text());
    count = tn_module_parameters(net, parameters, 64);
    ck_assert_int_le(count, 64);
    for (int i = 0; i < STEPS; i++) {
        TN_SCOPE;
        tn_tensor *loss = loss_of(net, x[i % BATCHES], target[i % BATCHES]);

        ck_assert_msg(tn_optimizer_zero_grad(optimizer) == TN_OK && tn_backward(loss) == TN_OK,
                      "%s", tn_error_text());
        losses[i] = tn_item(tn_detach(loss));
        if (curve->clip > 0)
            ck_assert_int_eq(tn_clip_grad_norm(parameters, count, curve->clip, 2, false, NULL),
                             TN_OK);
        ck_assert_int_eq(tn_optimizer_step(optimizer), TN_OK);
        ck_assert_int_eq(tn_scheduler_step(scheduler), TN_OK);
    }
    for (int i = 0; i < BATCHES; i++) {
        tn_tensor_drop(x[i]);
        tn_tensor_drop(target[i]);
    }
    tn_scheduler_drop(scheduler);
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
}

/* ---- the recorded curves --------------------------------------------------------------------- */

/* Reads a line `KEY TEXT` of a curve; returns false for the row of losses. */
static bool read_word(const char *line, struct curve *curve)
{
    struct {
        const char *key;
        char *text;
        size_t size;
    } const texts[] = { { "net ", curve->net, sizeof curve->net },
                        { "optim ", curve->optim, sizeof curve->optim },
                        { "scheduler ", curve->scheduler, sizeof curve->scheduler } };

    for (int64_t i = 0; i < tn__countof(texts); i++)
        if (strncmp(line, texts[i].key, strlen(texts[i].key)) == 0)
            return tn_snprint(texts[i].text, texts[i].size, "%s", line + strlen(texts[i].key)) >= 0;
    if (strncmp(line, "curve ", 6) == 0)
        return sscanf(line + 6, "%31s %7s", curve->name, curve->dtype) == 2;
    if (strncmp(line, "clip ", 5) == 0)
        return tn_read_float(line + 5, &curve->clip);
    return line[0] == '#';
}

static bool read_curve(FILE *file, struct curve *curve)
{
    char line[1 << 13];

    while (fgets(line, sizeof line, file) != NULL) {
        char *at = line, *end;

        line[strcspn(line, "\n")] = '\0';
        if (read_word(line, curve))
            continue;
        for (curve->count = 0; curve->count < STEPS; curve->count++, at = end) {
            curve->losses[curve->count] = strtod(at, &end);
            if (end == at)
                break;
        }
        return true;
    }
    return false;
}

START_TEST(losses_are_those_of_pytorch)
{
    FILE *file = fopen(CURVES_FILE, "r");
    static struct curve curve;
    int count = 0;

    ck_assert_ptr_nonnull(file);
    for (; read_curve(file, &curve); count++) {
        bool narrow = strcmp(curve.dtype, "f32") == 0;
        double losses[STEPS], first = 0, all = 0;

        ck_assert_int_eq(curve.count, STEPS);
        train(&curve, losses);
        for (int i = 0; i < STEPS; i++) {
            double gap = fabs(losses[i] - curve.losses[i]);

            ck_assert_msg(gap <= (narrow ? 1e-4 : 1e-10) || (narrow && i >= COMPARED),
                          "%s %s, step %d: the loss is %.17g, not %.17g", curve.name, curve.dtype,
                          i, losses[i], curve.losses[i]);
            ck_assert_msg(isfinite(losses[i]), "%s, step %d", curve.name, i);
            first = i < COMPARED && gap > first ? gap : first;
            all = gap > all ? gap : all;
        }
        printf("%s %s: largest difference %.3g in %d steps, %.3g in %d\n", curve.name, curve.dtype,
               first, COMPARED, all, STEPS);
        /* It learns: the curve is not flat. */
        ck_assert_double_lt(losses[STEPS - 1], 0.8 * losses[0]);
    }
    fclose(file);
    ck_assert_int_eq(count, 8);
}
END_TEST

/* Assertions work in a test only, so this is one; the lines begin with the word "losses". */
START_TEST(losses_are_printed)
{
    FILE *file = fopen(CURVES_FILE, "r");
    static struct curve curve;

    ck_assert_ptr_nonnull(file);
    while (read_curve(file, &curve)) {
        double losses[STEPS];

        train(&curve, losses);
        printf("losses %s %s", curve.name, curve.dtype);
        for (int i = 0; i < STEPS; i++)
            printf(" %.17g", losses[i]);
        printf("\n");
    }
    fclose(file);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = { losses_are_those_of_pytorch, NULL };
    const TTest *const print[] = { losses_are_printed, NULL };
    bool prints = argc == 2 && strcmp(argv[1], "--print") == 0;

    return suite_run("curves", prints ? print : tests);
}
