/* SPDX-License-Identifier: MIT
 *
 * Checks what every optimizer must fulfil, for tenon check. An optimizer updates a few parameters
 * with known gradients; the result is compared with other runs of the optimizer: on the reference
 * device in float64, a second time, and with its state moved to another instance after half of the
 * steps. */
#include "optimizers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

enum { PARAMETERS = 4, WITHOUT_GRADIENT = 1, STEPS = 6, HALF = 3, NUMBERS = 16, STATES = 16 };

/* An optimizer and the parameters that it updates. */
typedef struct trainer {
    tn_tensor *parameter[PARAMETERS];
    tn_optimizer *optimizer;
} trainer;

bool conform_rule_fail(const conform_rule *r, const char *format, ...)
{
    char words[1600];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    return conform_fail(r->c, "%s: %s", r->spec, words);
}

/* ---- a trainer ---- */

static int64_t count_of(tn_ints shape)
{
    int64_t count = 1;

    for (int64_t d = 0; d < shape.count; d++)
        count *= shape.at[d];
    return count;
}

/* Returns the flags of the optimizer under test. */
static uint64_t flags_of(const conform_rule *r)
{
    const tn_optimizer_def *def = (const tn_optimizer_def *)(const void *)tn_registry_find(
        TN_KIND_tn_optimizer_def, r->c->subject);

    return def != NULL ? def->flags : 0;
}

/* Creates a parameter or gradient of numbers between -2 and 2, which differ between parameters,
 * elements and steps. */
static tn_tensor *numbers(const conform_rule *r, int which, int step, tn_dtype dtype,
                          const tn_device *device)
{
    static const int64_t sizes[PARAMETERS][2] = { { 2, 3 }, { 4, 1 }, { 1, 1 }, { 3, 2 } };
    static const int64_t dims[PARAMETERS] = { 2, 1, 0, 2 };
    const bool matrices = (flags_of(r) & TN_OPTIMIZER_MATRICES) != 0;
    const tn_ints shape = { sizes[which], matrices ? 2 : dims[which] };
    conform_tensor t = { .there = true, .dtype = TN_F64, .ndim = (int32_t)shape.count };
    double values[NUMBERS];

    t.count = count_of(shape);
    for (int32_t d = 0; d < t.ndim; d++)
        t.shape[d] = shape.at[d];
    for (int64_t i = 0; i < t.count; i++)
        values[i] = 2 * sin((double)(1 + 7 * which + 31 * step + 3 * i));
    t.values = values;
    return conform_tensor_make(&t, dtype, device, CONFORM_PLAIN, NULL);
}

/* Rearranges the last parameter so that its first dimension is innermost in memory; returns the
 * others unchanged. */
static tn_tensor *arranged(int which, tn_tensor *made)
{
    tn_tensor *turned;

    if (which != PARAMETERS - 1 || made == NULL)
        return made;
    turned = tn_tensor_empty_strided(tn_tensor_shape(made), TN_INTS(1, 3), tn_tensor_dtype(made),
                                     tn_tensor_device(made));
    return turned != NULL ? tn_copy_(turned, made) : NULL;
}

static bool start_in_order(const conform_rule *r, tn_dtype dtype, const tn_device *device,
                           bool reversed, trainer *t)
{
    tn_tensor *row[PARAMETERS];

    memset(t, 0, sizeof *t);
    for (int i = 0; i < PARAMETERS; i++) {
        t->parameter[i] = tn_parameter(arranged(i, numbers(r, i, 0, dtype, device)), true);
        if (t->parameter[i] == NULL)
            return conform_rule_fail(r, "a parameter cannot be created: %s", tn_error_text());
        row[reversed ? PARAMETERS - 1 - i : i] = t->parameter[i];
    }
    t->optimizer = tn_optimizer_parse(row, PARAMETERS, r->spec);
    return t->optimizer != NULL ||
           conform_rule_fail(r, "the optimizer cannot be built: %s", tn_error_text());
}

static bool start(const conform_rule *r, tn_dtype dtype, const tn_device *device, trainer *t)
{
    return start_in_order(r, dtype, device, false, t);
}

/* A closure for rules that need one, in steps whose gradients are set beforehand. */
static tn_tensor *no_loss(void *user)
{
    (void)user;
    return tn_tensor_full(TN_SCALAR_SHAPE, 0, TN_F32, NULL);
}

static bool take_step(const conform_rule *r, tn_optimizer *optimizer)
{
    return (flags_of(r) & TN_OPTIMIZER_CLOSURE) != 0
               ? tn_optimizer_step_with(optimizer, no_loss, NULL) != NULL
               : tn_optimizer_step(optimizer) == TN_OK;
}

/* Gives the parameters the gradients of a step. In every step another parameter has no gradient, so
 * that the position of a parameter among those with a gradient changes. */
static bool set_gradients(const conform_rule *r, const trainer *t, int number)
{
    for (int i = 0; i < PARAMETERS; i++) {
        tn_tensor *gradient = i == (WITHOUT_GRADIENT + number) % PARAMETERS
                                  ? TN_NONE
                                  : numbers(r, i, 1 + number, tn_tensor_dtype(t->parameter[i]),
                                            tn_tensor_device(t->parameter[i]));

        if (gradient == NULL || tn_tensor_set_grad(t->parameter[i], gradient) != TN_OK)
            return conform_rule_fail(r, "a gradient cannot be set: %s", tn_error_text());
    }
    return true;
}

/* For an optimizer that needs a closure: the loss is the sum of (i + 1) * (p - c)^2 / 2 over the
 * parameters that have a gradient in step 0, where c is that gradient. It is the same in all steps,
 * because such an optimizer may remember earlier evaluations. */
struct evaluation {
    const conform_rule *r;
    const trainer *t;
};

static tn_tensor *evaluate(void *user)
{
    const struct evaluation *e = user;
    tn_tensor *loss = NULL;

    for (int i = 0; i < PARAMETERS; i++) {
        tn_tensor *p = e->t->parameter[i], *apart, *square;

        if (tn_tensor_set_grad(p, TN_NONE) != TN_OK)
            return NULL;
        if (i == WITHOUT_GRADIENT)
            continue;
        apart = tn_sub(p, numbers(e->r, i, 1, tn_tensor_dtype(p), tn_tensor_device(p)));
        square = tn_mul_scalar(tn_sum(tn_mul(apart, apart)), 0.5 * (i + 1));
        loss = loss == NULL ? square : tn_add(loss, square);
        if (loss == NULL)
            return NULL;
    }
    return tn_backward(loss) == TN_OK ? loss : NULL;
}

static bool step(const conform_rule *r, trainer *t, int number)
{
    struct evaluation evaluation = { r, t };
    bool good;

    r->c->checks++;
    tn_random_seed(r->c->plugin->options->seed + (uint64_t)number);
    if ((flags_of(r) & TN_OPTIMIZER_CLOSURE) != 0)
        good = tn_optimizer_step_with(t->optimizer, evaluate, &evaluation) != NULL;
    else if (set_gradients(r, t, number))
        good = take_step(r, t->optimizer);
    else
        return false;
    return good || conform_rule_fail(r, "step %d fails: %s", number + 1, tn_error_text());
}

static bool steps(const conform_rule *r, trainer *t, int from, int to)
{
    while (from < to)
        if (!step(r, t, from++))
            return false;
    return true;
}

/* ---- comparing ---- */

static bool same_bits(tn_tensor *a, tn_tensor *b)
{
    size_t n = 0, m = 0;
    void *x = conform_bytes(a, &n), *y = conform_bytes(b, &m);
    bool same = x != NULL && y != NULL && n == m && memcmp(x, y, n) == 0;

    free(x);
    free(y);
    return same;
}

static bool same_parameters(const conform_rule *r, const trainer *a, const trainer *b,
                            const char *what)
{
    for (int i = 0; i < PARAMETERS; i++, r->c->checks++)
        if (!same_bits(a->parameter[i], b->parameter[i]))
            return conform_rule_fail(r, "%s: parameter %d: values differ", what, i);
    return true;
}

static bool near_tensor(const conform_rule *r, tn_tensor *got, tn_tensor *expected,
                        double tolerance, const char *what)
{
    int64_t n = 0, m = 0;
    double *x = conform_values(got, &n), *y = conform_values(expected, &m);
    bool well = x != NULL && y != NULL && n == m;

    r->c->checks++;
    if (!well)
        conform_rule_fail(r, "%s cannot be read: %s", what, tn_error_text());
    for (int64_t k = 0; well && k < n; k++)
        if (!(fabs(x[k] - y[k]) <= tolerance * (1 + fabs(y[k]))))
            well = conform_rule_fail(r, "%s, element %lld: wrong value, got %.17g; expected %.17g",
                                     what, (long long)k, x[k], y[k]);
    free(x);
    free(y);
    return well;
}

static bool near_parameters(const conform_rule *r, const trainer *a, const trainer *b,
                            double tolerance, const char *what)
{
    for (int i = 0; i < PARAMETERS; i++) {
        char one[160];

        snprintf(one, sizeof one, "%s: parameter %d", what, i);
        if (!near_tensor(r, a->parameter[i], b->parameter[i], tolerance, one))
            return false;
    }
    return true;
}

/* ---- the checks ---- */

static char *spec_of(const tn_optimizer *optimizer)
{
    int64_t length = tn_optimizer_spec(optimizer, NULL, 0);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;

    if (text != NULL)
        tn_optimizer_spec(optimizer, text, (size_t)length + 1);
    return text;
}

/* Checks that the printed spec, after the learning rate was changed, builds an optimizer with the
 * same spec and the same steps. */
static bool prints_itself(const conform_rule *r, tn_dtype dtype, const tn_device *device)
{
    trainer a, b = { { NULL }, NULL };
    double rate;
    char *text = NULL, *again = NULL;
    conform_rule printed = *r;
    bool well = start(r, dtype, device, &a);

    if (well && tn_optimizer_get(a.optimizer, 0, "lr", &rate) == TN_OK &&
        tn_optimizer_set(a.optimizer, 0, "lr", rate / 2) != TN_OK)
        well = conform_rule_fail(r, "its learning rate cannot be halved: %s", tn_error_text());
    tn_error_clear();
    if (well) {
        text = spec_of(a.optimizer);
        printed.spec = text != NULL ? text : r->spec;
        well = start(&printed, dtype, device, &b);
        again = well ? spec_of(b.optimizer) : NULL;
    }
    if (well && (text == NULL || again == NULL || strcmp(text, again) != 0))
        well = conform_rule_fail(r, "its spec %s builds an optimizer that prints %s",
                                 text != NULL ? text : "", again != NULL ? again : "nothing");
    well = well && steps(r, &a, 0, 2) && steps(&printed, &b, 0, 2) &&
           same_parameters(r, &a, &b, "an optimizer built from its spec, after two steps");
    tn_optimizer_drop(a.optimizer);
    tn_optimizer_drop(b.optimizer);
    free(text);
    free(again);
    return well;
}

/* Checks that a step changes parameters that have a gradient, but neither the parameter without a
 * gradient nor any gradient, and that results are finite. */
static bool steps_what_it_should(const conform_rule *r, tn_dtype dtype, const tn_device *device)
{
    trainer t, before;
    bool changed = false, well = start(r, dtype, device, &t);

    for (int i = 0; well && i < PARAMETERS; i++)
        before.parameter[i] = tn_clone(tn_detach(t.parameter[i]));
    well = well && step(r, &t, 0);
    for (int i = 0; well && i < PARAMETERS; i++) {
        tn_tensor *p = t.parameter[i], *gradient = tn_tensor_grad(p);
        bool same = same_bits(p, before.parameter[i]);
        int64_t n = 0;
        double *values = conform_values(p, &n);

        changed = changed || !same;
        if (i == WITHOUT_GRADIENT && !same)
            well = conform_rule_fail(r, "parameter %d: changed, although it has no gradient", i);
        else if (tn_optimizer_parameter(t.optimizer, i) != p || !tn_tensor_is_leaf(p) ||
                 !tn_tensor_requires_grad(p) || tn_tensor_dtype(p) != dtype)
            well = conform_rule_fail(
                r, "parameter %d: no longer a leaf of dtype %s that requires a gradient", i,
                tn_dtype_name(dtype));
        else if (i != WITHOUT_GRADIENT && (flags_of(r) & TN_OPTIMIZER_CLOSURE) == 0 &&
                 !same_bits(gradient, numbers(r, i, 1, dtype, device)))
            well = conform_rule_fail(r, "gradient of parameter %d: changed", i);
        for (int64_t k = 0; well && values != NULL && k < n; k++)
            if (!isfinite(values[k]))
                well = conform_rule_fail(r, "parameter %d, element %lld, is %g after a step", i,
                                         (long long)k, values[k]);
        free(values);
    }
    if (well && !changed)
        well = conform_rule_fail(r, "a step changed no parameter");
    tn_optimizer_drop(t.optimizer);
    return well;
}

/* Compares with the same steps in float64 on the reference device. */
static bool as_the_reference(const conform_rule *r, tn_dtype dtype, const tn_device *device)
{
    trainer t, ref = { { NULL }, NULL };
    char what[64];
    bool well = start(r, dtype, device, &t) &&
                start(r, TN_F64, tn_device_find("reference"), &ref) && steps(r, &t, 0, STEPS) &&
                steps(r, &ref, 0, STEPS);

    snprintf(what, sizeof what, "%s after %d steps", tn_dtype_name(dtype), STEPS);
    well = well && near_parameters(r, &t, &ref, 2 * conform_tolerance(dtype), what);
    tn_optimizer_drop(t.optimizer);
    tn_optimizer_drop(ref.optimizer);
    return well;
}

/* Checks that the order of the parameters changes the results only by rounding. */
static bool in_any_order(const conform_rule *r, tn_dtype dtype, const tn_device *device)
{
    trainer t, other = { { NULL }, NULL };
    bool well = start(r, dtype, device, &t) && start_in_order(r, dtype, device, true, &other) &&
                steps(r, &t, 0, STEPS) && steps(r, &other, 0, STEPS) &&
                near_parameters(r, &other, &t, 2 * conform_tolerance(dtype),
                                "with its parameters in reverse order");

    tn_optimizer_drop(t.optimizer);
    tn_optimizer_drop(other.optimizer);
    return well;
}

/* Checks that two optimizers in alternation give the same results as one alone: instances must not
 * share state. */
static bool stands_alone(const conform_rule *r, tn_dtype dtype, const tn_device *device)
{
    trainer alone, one = { { NULL }, NULL }, two = { { NULL }, NULL };
    bool well = start(r, dtype, device, &alone) && steps(r, &alone, 0, STEPS) &&
                start(r, dtype, device, &one) && start(r, dtype, device, &two);

    for (int i = 0; well && i < STEPS; i++)
        well = step(r, &one, i) && step(r, &two, i);
    well = well &&
           same_parameters(r, &one, &alone, "with another optimizer of its type in the process");
    tn_optimizer_drop(alone.optimizer);
    tn_optimizer_drop(one.optimizer);
    tn_optimizer_drop(two.optimizer);
    return well;
}

/* Copies the state of one parameter to another optimizer, through a tn_state, as if it were saved
 * in a file. */
static bool move_state(const conform_rule *r, const trainer *from, trainer *to, int i)
{
    tn_state *kept = tn_state_new();
    int64_t count = tn_optimizer_state_count(from->optimizer, i);
    bool well = kept != NULL && count >= 0 && count <= STATES;

    for (int64_t k = 0; well && k < count; k++) {
        const char *name = tn_optimizer_state_name(from->optimizer, i, k);

        well = tn_state_set(kept, name, tn_clone(tn_optimizer_state(from->optimizer, i, name))) ==
               TN_OK;
    }
    for (int64_t k = 0; well && k < count; k++)
        well = tn_optimizer_set_state(to->optimizer, i, tn_state_name(kept, k),
                                      tn_state_tensor(kept, k)) == TN_OK;
    well = well && tn_optimizer_set_steps(to->optimizer, i,
                                          tn_optimizer_steps(from->optimizer, i)) == TN_OK;
    tn_state_drop(kept);
    return well || conform_rule_fail(r, "the state of parameter %d cannot be moved: %s", i,
                                     tn_error_text());
}

/* Checks that a second optimizer that gets parameters, state and step counts of the first continues
 * with the same bits. */
static bool goes_on(const conform_rule *r, tn_dtype dtype, const tn_device *device)
{
    trainer whole, first = { { NULL }, NULL }, second = { { NULL }, NULL };
    bool well = start(r, dtype, device, &whole) && steps(r, &whole, 0, STEPS) &&
                start(r, dtype, device, &first) && steps(r, &first, 0, HALF) &&
                start(r, dtype, device, &second);

    tn_grad_begin(false);
    for (int i = 0; well && i < PARAMETERS; i++) {
        if (tn_copy_(second.parameter[i], first.parameter[i]) == NULL)
            well = conform_rule_fail(r, "a parameter cannot be copied: %s", tn_error_text());
        well = well && move_state(r, &first, &second, i);
    }
    tn_grad_end();
    tn_optimizer_drop(first.optimizer);
    well = well && steps(r, &second, HALF, STEPS) &&
           same_parameters(r, &second, &whole,
                           "when parameters, state and steps were saved and loaded half way "
                           "(tn_optimizer_set_state must be able to set the whole state)");
    tn_optimizer_drop(whole.optimizer);
    tn_optimizer_drop(second.optimizer);
    return well;
}

/* Runs a step of two optimizers with the same gradients: `one` updates a vector, `other` its two
 * pieces. */
static bool step_pieces(const conform_rule *r, tn_tensor *whole, tn_optimizer *one,
                        tn_tensor **piece, tn_optimizer *other, int number)
{
    tn_tensor *gradient = numbers(r, 0, 1 + number, tn_tensor_dtype(whole),
                                  tn_tensor_device(whole));
    int64_t count = tn_tensor_numel(whole), at = 0;
    bool well;

    gradient = tn_reshape(gradient, TN_SHAPE(count));
    well = gradient != NULL && tn_tensor_set_grad(whole, gradient) == TN_OK;
    for (int i = 0; i < 2 && well; i++) {
        int64_t length = tn_tensor_numel(piece[i]);

        well = tn_tensor_set_grad(piece[i], tn_clone(tn_narrow(gradient, 0, at, length))) == TN_OK;
        at += length;
    }
    r->c->checks++;
    well = well && take_step(r, one) && take_step(r, other);
    return well || conform_rule_fail(r, "step %d of a vector, or of its pieces, fails: %s",
                                     number + 1, tn_error_text());
}

/* Checks the flag TN_OPTIMIZER_ELEMENTWISE: two pieces of a vector must be updated like the whole
 * vector. */
static bool keeps_elements_apart(const conform_rule *r, tn_dtype dtype, const tn_device *device)
{
    tn_optimizer *one = NULL, *other = NULL;
    tn_tensor *whole, *piece[2];
    int64_t count;
    bool well;

    if ((flags_of(r) & TN_OPTIMIZER_ELEMENTWISE) == 0)
        return true;
    whole = numbers(r, 0, 0, dtype, device);
    count = whole != NULL ? tn_tensor_numel(whole) : 0;
    whole = tn_reshape(whole, TN_SHAPE(count));
    piece[0] = tn_parameter(tn_clone(tn_narrow(whole, 0, 0, count / 3)), true);
    piece[1] = tn_parameter(tn_clone(tn_narrow(whole, 0, count / 3, count - count / 3)), true);
    whole = tn_parameter(tn_clone(whole), true);
    well = whole != NULL && piece[0] != NULL && piece[1] != NULL;
    if (well) {
        one = tn_optimizer_parse(&whole, 1, r->spec);
        other = tn_optimizer_parse(piece, 2, r->spec);
    }
    well = (one != NULL && other != NULL) ||
           conform_rule_fail(r, "the optimizer cannot be built for pieces of a parameter: %s",
                             tn_error_text());
    for (int i = 0; well && i < STEPS; i++)
        well = step_pieces(r, whole, one, piece, other, i);
    well = well && near_tensor(r, tn_cat(piece, 2, 0), whole, 2 * conform_tolerance(dtype),
                               "TN_OPTIMIZER_ELEMENTWISE: a vector in two pieces");
    tn_optimizer_drop(one);
    tn_optimizer_drop(other);
    return well;
}

static bool has_dtype(const tn_device *device, tn_dtype dtype)
{
    tn_device_info info;

    memset(&info, 0, sizeof info);
    info.head.size = sizeof info;
    return tn_device_describe(device, &info) == TN_OK && (info.dtypes & TN_BIT(dtype)) != 0;
}

tn_state *conform_rule_after(const conform_rule *r, tn_dtype dtype)
{
    tn_state *after = tn_state_new();
    trainer t;
    bool well = after != NULL && has_dtype(r->c->plugin->device, dtype);
    char name[160];

    t.optimizer = NULL;
    well = well && start(r, dtype, r->c->plugin->device, &t) && steps(r, &t, 0, STEPS);
    for (int i = 0; well && i < PARAMETERS; i++) {
        int64_t count = tn_optimizer_state_count(t.optimizer, i);

        snprintf(name, sizeof name, "parameter %d", i);
        well = tn_state_set(after, name, tn_detach(t.parameter[i])) == TN_OK;
        for (int64_t k = 0; well && k < count; k++) {
            const char *state = tn_optimizer_state_name(t.optimizer, i, k);

            snprintf(name, sizeof name, "state %d %s", i, state);
            well = tn_state_set(after, name, tn_optimizer_state(t.optimizer, i, state)) == TN_OK;
        }
    }
    tn_optimizer_drop(t.optimizer);
    if (well)
        return after;
    tn_state_drop(after);
    return NULL;
}

bool conform_rule_check(const conform_rule *r)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_F64 };
    const tn_device *device = r->c->plugin->device;
    bool well = true;

    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes && well; i++) {
        uint64_t scope = tn_scope_begin();

        if (has_dtype(device, dtypes[i]))
            well = steps_what_it_should(r, dtypes[i], device) &&
                   stands_alone(r, dtypes[i], device) && prints_itself(r, dtypes[i], device) &&
                   as_the_reference(r, dtypes[i], device) && goes_on(r, dtypes[i], device) &&
                   in_any_order(r, dtypes[i], device) && keeps_elements_apart(r, dtypes[i], device);
        tn_error_clear();
        tn_scope_end(scope);
    }
    return well && conform_rule_groups(r);
}
