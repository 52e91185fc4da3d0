/* SPDX-License-Identifier: MIT
 *
 * The level layers of tenon check: tests whether saving, converting, hooks, printing and training
 * work with the modules of a layer type. There is one test for each layer type; each of its cases
 * runs all checks on every device. */
#include "layers.h"

#include <stdlib.h>
#include <string.h>

/* ---- the checks ---- */

static tn_status visit_tensor(void *user, const char *path, tn_tensor *tensor)
{
    void *const *both = user;
    const conform_subject *s = both[0];

    s->c->checks++;
    if (tn_module_find_tensor(both[1], path) != tensor)
        conform_layer_say(
            s, "`%s` is in the walk, but tn_module_find_tensor returns another tensor", path);
    if (!tn_tensor_is_leaf(tensor))
        conform_layer_say(s, "`%s`: not a leaf, got the result of operator %s; expected a leaf",
                          path, tn_tensor_grad_op(tensor));
    if (tn_tensor_device(tensor) != s->device)
        conform_layer_say(s, "`%s` is on %s after the module was moved to %s", path,
                          tn_device_name(tn_tensor_device(tensor)), tn_device_name(s->device));
    return TN_OK;
}

static tn_status visit_module(void *user, const char *path, tn_module *module)
{
    void *const *both = user;
    const conform_subject *s = both[0];

    s->c->checks++;
    if (tn_module_find(both[1], path) != module)
        conform_layer_say(s,
                          "module `%s` is in the walk, but tn_module_find returns another "
                          "module",
                          path);
    if (tn_module_is_training(module) != (both[2] != NULL))
        conform_layer_say(s, "module `%s` does not have the mode of its root", path);
    return TN_OK;
}

/* Checks paths, devices and modes of all modules and tensors. */
static bool traversal(const conform_subject *s, tn_module *module)
{
    void *both[3] = { (void *)(uintptr_t)s, module, NULL };

    for (int training = 1; training >= 0; training--) {
        both[2] = training ? module : NULL;
        if (tn_module_train(module, training) != TN_OK ||
            tn_module_each(module, true, visit_module, both) != TN_OK)
            return conform_layer_say(s, "its modules cannot be walked: %s", tn_error_text());
    }
    tn_module_train(module, !s->one->eval);
    if (tn_module_each_tensor(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, true, visit_tensor,
                              both) != TN_OK)
        return conform_layer_say(s, "its tensors cannot be walked: %s", tn_error_text());
    return s->c->verdict == CONFORM_PASS;
}

static tn_status find_lazy(void *user, const char *path, tn_module *module)
{
    bool *lazy = user;

    (void)path;
    *lazy = *lazy || tn_module_is_lazy(module, NULL);
    return TN_OK;
}

/* Checks the state of a module that was built from the printed text of another. A printed text may
 * leave out sizes and biases; the module is then lazy, takes the sizes from the state of the
 * original, and may have entries that the original does not have. */
static bool same_state(const conform_subject *s, tn_module *module, tn_module *original,
                       const char *what)
{
    tn_state *expected = tn_module_state(original), *got = NULL;
    bool lazy = false,
         well = expected != NULL && tn_module_each(module, true, find_lazy, &lazy) == TN_OK;

    if (well && lazy && tn_module_load_state(module, expected, false) != TN_OK)
        well = conform_layer_say(s, "the module of its %s does not load its state: %s", what,
                                 tn_error_text());
    got = well ? tn_module_state(module) : NULL;
    if (well && !lazy)
        well = conform_layer_same_state(s, got, expected, false, what);
    for (int64_t i = 0; well && lazy && i < tn_state_count(expected); i++) {
        const char *name = tn_state_name(expected, i);
        int64_t at = tn_state_find(got, name);

        if (at < 0)
            well = conform_layer_say(s, "the module of its %s has no entry %s", what, name);
        else if (tn_state_value(expected, i).kind == TN_VALUE_TENSOR)
            well = conform_layer_near(s, tn_state_tensor(got, at), tn_state_tensor(expected, i), 0,
                                      what);
    }
    tn_state_drop(got);
    tn_state_drop(expected);
    return well;
}

/* Prints a module as text, builds a second module from the text and compares the two. With
 * `may_refuse`, building may fail with a message, because a repr is not always complete, and the
 * second module may have another type, because a repr may name another one (tn_layer_def.printed);
 * then only the texts are compared. */
static bool round_trip(const conform_subject *s, tn_module *module, conform_layer_printer *print,
                       const char *what, bool may_refuse)
{
    char *text = conform_layer_printed(module, print), *again = NULL;
    tn_module *second = text != NULL ? tn_module_parse(text) : NULL;
    bool well = true;

    s->c->checks++;
    if (text == NULL) {
        well = conform_layer_say(s, "its %s cannot be read: %s", what, tn_error_text());
    } else if (second == NULL) {
        if (!may_refuse || tn_error_text()[0] == '\0')
            well = conform_layer_say(s, "its %s %s does not build the module again: %s", what, text,
                                     tn_error_text());
        tn_error_clear();
    } else {
        again = conform_layer_printed(second, print);
        if (again == NULL || strcmp(text, again) != 0)
            well = conform_layer_say(s, "its %s %s builds a module that prints %s", what, text,
                                     again != NULL ? again : "nothing");
        else if (!may_refuse || strcmp(tn_module_type(second), tn_module_type(module)) == 0)
            well = same_state(s, second, module, what);
    }
    tn_module_drop(second);
    free(text);
    free(again);
    return well;
}

static tn_status remember_values(void *user, const char *path, tn_tensor *tensor)
{
    tn_tensor *copy = tn_clone(tn_detach(tensor));

    return copy != NULL ? tn_state_set(user, path, copy) : TN_ERR_MEMORY;
}

static bool parameters_are(const conform_subject *s, tn_module *module, const tn_state *values)
{
    for (int64_t i = 0; i < tn_state_count(values); i++)
        if (!conform_layer_near(s, tn_module_find_tensor(module, tn_state_name(values, i)),
                                tn_state_tensor(values, i), 0,
                                "a call in training mode changed a parameter"))
            return false;
    return true;
}

/* Returns true if the result depends on the random numbers. Results in different dtypes can then
 * not be compared, because the numbers drawn differ. */
static bool draws(const conform_subject *s, tn_module *module, tn_tensor *const *in,
                  const conform_results *one)
{
    uint64_t seed = s->c->plugin->options->seed;
    conform_options other = *s->c->plugin->options;
    conform_plugin plugin = *s->c->plugin;
    conform c = *s->c;
    conform_subject t = *s;
    conform_results two;
    bool differs = false;

    other.seed = seed + 1000;
    plugin.options = &other;
    c.plugin = &plugin;
    t.c = &c;
    if (conform_layer_call(&t, module, in, &two) != TN_OK)
        return false;
    for (int64_t i = 0; i < two.count && i < one->count; i++) {
        int64_t n, m;
        double *a = conform_values(one->at[i], &n), *b = conform_values(two.at[i], &m);

        differs = differs || a == NULL || b == NULL || n != m ||
                  memcmp(a, b, (size_t)n * sizeof *a) != 0;
        free(a);
        free(b);
    }
    return differs;
}

/* Checks that a call in eval mode gives the same result twice and does not change the state, and
 * that a call in training mode does not change the parameters. */
static bool modes(const conform_subject *s, tn_module *module)
{
    tn_tensor *in[CONFORM_LAYER_INPUTS];
    tn_state *before, *parameters = tn_state_new();
    conform_results one, two;
    bool well = conform_layer_inputs(s, s->dtype, in);

    tn_module_train(module, false);
    before = conform_layer_state_times(module, 1);
    if (before == NULL || parameters == NULL ||
        tn_module_each_tensor(module, TN_SLOT_PARAMETER, false, remember_values, parameters) !=
            TN_OK)
        well = conform_layer_say(s, "its state cannot be read: %s", tn_error_text());
    well = well && conform_layer_called(s, module, in, &one, "in eval mode") &&
           conform_layer_called(s, module, in, &two, "the second time") &&
           conform_layer_all_near(s, &two, &one, 0, "a second call with the same input") &&
           (s->one->records ||
            conform_layer_state_is(s, module, before, "a call in eval mode changed the state"));
    if (well && !s->one->random && draws(s, module, in, &one))
        well = conform_layer_say(s, "it draws random numbers in eval mode (a line `random` in its "
                                    "case allows this)");
    if (well && !s->one->eval) {
        tn_module_train(module, true);
        well = conform_layer_called(s, module, in, &one, "in training mode");
        well = well && parameters_are(s, module, parameters);
    }
    tn_module_train(module, !s->one->eval);
    tn_state_drop(before);
    tn_state_drop(parameters);
    return well;
}

/* Checks that all numbers used by forward are in the state and are read from the slots on every
 * call. A second module that loaded the state must give the same results; a third module, whose
 * slots get new tensors with the values of the second, must compute with the new tensors. */
static bool state(const conform_subject *s, tn_module *module)
{
    tn_tensor *in[CONFORM_LAYER_INPUTS];
    tn_module *second = conform_layer_build(s), *third = conform_layer_build(s);
    tn_state *values = tn_module_state(module), *more = conform_layer_state_times(module, 1.25);
    conform_results one, two;
    bool well = second != NULL && third != NULL && conform_layer_inputs(s, s->dtype, in);

    tn_module_train(module, false);
    tn_module_train(second, false);
    tn_module_train(third, false);
    if (well && tn_module_load_state(second, values, true) != TN_OK)
        well = conform_layer_say(s, "another instance does not load its state: %s",
                                 tn_error_text());
    well = well && conform_layer_state_is(s, second, values, "an instance that loaded the state") &&
           conform_layer_called(s, module, in, &one, "") &&
           conform_layer_called(s, second, in, &two, "with a loaded state") &&
           conform_layer_all_near(s, &two, &one, 0,
                                  "an instance that loaded the state returns another result");
    if (well && tn_module_load_state(second, more, true) != TN_OK)
        well = conform_layer_say(s, "another instance does not load its state: %s",
                                 tn_error_text());
    well = well && conform_layer_replace_slots(s, third, second) &&
           conform_layer_called(s, second, in, &one, "") &&
           conform_layer_called(s, third, in, &two, "with other tensors in its slots") &&
           conform_layer_all_near(
               s, &two, &one, 0,
               "with other tensors in its slots it computes with the old ones (forward must read "
               "them at every call)");
    tn_module_train(module, !s->one->eval);
    tn_state_drop(values);
    tn_state_drop(more);
    tn_module_drop(second);
    tn_module_drop(third);
    return well;
}

/* Converts the module to a dtype and calls it. Results must have the dtype and, if `tolerance` is
 * not 0, agree with `wide`. Devices need not support dtypes other than float32. */
static bool in_dtype(const conform_subject *s, tn_module *module, tn_dtype dtype,
                     const conform_results *wide, double tolerance)
{
    tn_tensor *in[CONFORM_LAYER_INPUTS];
    conform_results out;
    char what[64];

    snprintf(what, sizeof what, "the result in %s", tn_dtype_name(dtype));
    if (!conform_layer_inputs(s, dtype, in))
        return false;
    if (tn_module_to(module, NULL, dtype) != TN_OK) {
        if (tn_error_code() == TN_ERR_NOT_IMPLEMENTED && dtype != TN_F32) { /* unsupported dtype */
            tn_error_clear();
            return true;
        }
        return conform_layer_say(s, "the module cannot be converted to %s: %s",
                                 tn_dtype_name(dtype), tn_error_text());
    }
    s->c->checks++;
    if (conform_layer_call(s, module, in, &out) != TN_OK) {
        /* no kernel, or any failure in a shorter dtype, which a layer need not support */
        if (tn_error_code() == TN_ERR_NOT_IMPLEMENTED || dtype != TN_F32) {
            tn_error_clear();
            return true;
        }
        return conform_layer_say(s, "the call fails in %s: %s", tn_dtype_name(dtype),
                                 tn_error_text());
    }
    for (int64_t i = 0; i < out.count && i < wide->count; i++) {
        if (!is_float(tn_tensor_dtype(wide->at[i])))
            continue;
        if (tn_tensor_dtype(out.at[i]) != dtype)
            return conform_layer_say(s, "the result is %s where the module and its input are %s",
                                     tn_dtype_name(tn_tensor_dtype(out.at[i])),
                                     tn_dtype_name(dtype));
        if (tolerance > 0 && !conform_layer_near(s, out.at[i], wide->at[i], tolerance, what))
            return false;
    }
    return true;
}

/* Converts the module to float32, float16 and back. Results must have the dtype, and the parameters
 * must stay the same tensor objects. */
static bool conversion(const conform_subject *s, tn_module *module)
{
    tn_tensor *in[CONFORM_LAYER_INPUTS];
    tn_state *objects = tn_state_new(), *before = conform_layer_state_times(module, 1);
    conform_results wide;
    bool well = conform_layer_inputs(s, s->dtype, in), random;

    tn_module_train(module, false);
    well = well && conform_layer_called(s, module, in, &wide, "");
    random = well && draws(s, module, in, &wide);
    if (tn_module_each_tensor(module, TN_SLOT_PARAMETER, false, conform_layer_remember, objects) !=
        TN_OK)
        well = conform_layer_say(s, "its parameters cannot be walked: %s", tn_error_text());
    well = well && in_dtype(s, module, TN_F32, &wide, random ? 0 : 1e-3) &&
           tn_module_load_state(module, before, true) == TN_OK &&
           in_dtype(s, module, TN_F16, &wide, 0);
    if (well && tn_module_to(module, NULL, s->dtype) != TN_OK)
        well = conform_layer_say(s, "the module cannot be converted back to %s: %s",
                                 tn_dtype_name(s->dtype), tn_error_text());
    for (int64_t i = 0; well && i < tn_state_count(objects); i++)
        if (tn_module_find_tensor(module, tn_state_name(objects, i)) != tn_state_tensor(objects, i))
            well = conform_layer_say(s, "conversion put another tensor object under `%s`",
                                     tn_state_name(objects, i));
    well = well && tn_module_load_state(module, before, true) == TN_OK &&
           conform_layer_state_is(s, module, before, "after conversion and loading");
    tn_module_train(module, !s->one->eval);
    tn_state_drop(objects);
    tn_state_drop(before);
    return well;
}

/* ---- a test ---- */

/* Returns whether the device has all kernels that a call of this layer needs in a dtype; true also
 * if the call fails for another reason. Returns false also if the layer or its inputs cannot be
 * made. The error stays recorded. */
static bool runs_in(conform_subject *s, tn_dtype dtype)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *in[CONFORM_LAYER_INPUTS];
    tn_module *module = tn_module_parse(s->one->spec);
    conform_results out;
    bool runs;

    s->dtype = dtype;
    runs = module != NULL && tn_module_to(module, s->device, dtype) == TN_OK &&
           conform_layer_inputs(s, dtype, in) && tn_module_train(module, !s->one->eval) == TN_OK &&
           (conform_layer_call(s, module, in, &out) == TN_OK ||
            tn_error_code() != TN_ERR_NOT_IMPLEMENTED);
    tn_module_drop(module);
    tn_scope_end(scope);
    return runs;
}

/* Chooses float64 if the device can run this layer in float64, else float32. Returns true for
 * float64. */
static bool choose_dtype(conform_subject *s)
{
    bool wide = runs_in(s, TN_F64);

    tn_error_clear();
    s->dtype = wide ? TN_F64 : TN_F32;
    return wide;
}

/* Returns true, and skips the test, if a device that --device names lacks a kernel for the layer,
 * because that is no fault of the layer. */
static bool lacks_kernels(conform_subject *s)
{
    bool lacks = !runs_in(s, TN_F64);

    tn_error_clear();
    lacks = lacks && !runs_in(s, TN_F32) && tn_error_code() == TN_ERR_NOT_IMPLEMENTED;
    if (lacks)
        conform_skip(s->c, "%s on %s: %s", s->one->spec, tn_device_name(s->device),
                     tn_error_text());
    tn_error_clear();
    return lacks;
}

static bool check_on(conform_subject *s)
{
    uint64_t scope = tn_scope_begin();
    bool wide = choose_dtype(s), well;
    tn_module *module = conform_layer_build(s);

    well = module != NULL;
    if (well && strcmp(tn_module_type(module), s->c->subject) != 0)
        well = conform_layer_say(s, "wrong type, got a module of type %s", tn_module_type(module));
    well = well && conform_layer_as_given(s) && traversal(s, module) &&
           round_trip(s, module, tn_module_spec, "spec", false) &&
           round_trip(s, module, tn_module_repr, "repr", true) && modes(s, module) &&
           state(s, module) && conversion(s, module) &&
           (!wide || conform_layer_gradients(s, module)) && conform_layer_hooks(s, module) &&
           conform_layer_copies(s, module) && conform_layer_lives(s, module);
    if (well && !s->one->eval)
        conform_layer_try_options(s);
    tn_module_drop(module);
    tn_scope_end(scope);
    tn_error_clear();
    return well;
}

/* Returns true if the layer is lazy. The first call of a lazy layer changes its type, so that
 * results before and after the call cannot be compared. */
static bool is_lazy(const char *spec)
{
    tn_module *module = tn_module_parse(spec);
    bool lazy = tn_module_is_lazy(module, NULL);

    tn_module_drop(module);
    tn_error_clear();
    return lazy;
}

/* Checks a case on every device that --device names, or on the plugin's own device. */
static bool take_case(void *user, conform_layer_case *one)
{
    conform *c = user;

    if (is_lazy(one->spec)) {
        conform_skip(c, "%s is lazy: only the layer that it becomes in its first call is checked",
                     one->spec);
        return false;
    }
    const char *names = c->plugin->options->device;
    conform_subject s = { .c = c, .one = one, .device = c->plugin->device };

    if (names == NULL)
        return check_on(&s);
    for (size_t length; *names != '\0'; names += length + (names[length] == ',')) {
        char name[64];

        length = strcspn(names, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        s.device = tn_device_find(name);
        if (s.device == NULL)
            return conform_fail(c, "--device: %s", tn_error_text());
        if (lacks_kernels(&s) || !check_on(&s))
            return false;
    }
    return true;
}

/* Checks a layer that has no case: builds it without options and calls it with a float tensor of 2
 * x 3. Fails if the layer does not accept that, unless it is a container. */
static void without_case(conform *c)
{
    double values[6] = { 0.5, -1.25, 2, 0.75, -0.5, 1 };
    conform_layer_case plain = { .n_in = 1 };
    tn_tensor *in[CONFORM_LAYER_INPUTS];
    conform_subject s = { c, &plain, c->plugin->device, TN_F32 };
    uint64_t scope = tn_scope_begin(), mark;
    tn_module *module;
    conform_results out;
    bool takes, holds;

    snprintf(plain.spec, sizeof plain.spec, "%s()", c->subject);
    plain.in[0] = (conform_tensor){ .there = true,
                                    .grad = true,
                                    .dtype = TN_F64,
                                    .ndim = 2,
                                    .shape = { 2, 3 },
                                    .count = 6,
                                    .values = values };
    module = tn_module_parse(plain.spec);
    takes = module != NULL && tn_module_to(module, s.device, TN_F32) == TN_OK &&
            conform_layer_inputs(&s, TN_F32, in) &&
            conform_layer_call(&s, module, in, &out) == TN_OK;
    /* A list or dictionary of modules cannot always be called. */
    mark = tn_error_mark();
    holds = !takes && module != NULL && (tn_list_count(module) == 0 || tn_dict_count(module) == 0);
    tn_error_restore(mark);
    tn_module_drop(module);
    if (holds)
        conform_skip(c, "%s contains other modules and does not accept a float tensor of 2 x 3",
                     plain.spec);
    else if (!takes)
        conform_fail(
            c,
            "layer: no case, and as %s it does not accept a float tensor of 2 x 3 (%s); write a "
            "case, and name the file with --cases",
            plain.spec, tn_error_text());
    tn_error_clear();
    tn_scope_end(scope);
    if (takes)
        take_case(c, &plain);
}

void conform_layer(conform *c)
{
    char words[500];
    int64_t count;

    conform_layer_forget_options();
    count = conform_layer_cases(c->plugin->options->cases, c->subject, take_case, c, words,
                                sizeof words);
    if (count < 0)
        conform_fail(c, "%s", words);
    else if (count == 0)
        without_case(c);
    if (c->verdict == CONFORM_PASS)
        conform_layer_judge_options(c);
}
