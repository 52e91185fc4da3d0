/* SPDX-License-Identifier: MIT
 *
 * Functions that the checks of layers share: building a layer, calling it, comparing results. */
#include "layers.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool conform_layer_say(const conform_subject *s, const char *format, ...)
{
    char words[1600];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    return conform_fail(s->c, "%s on %s: %s", s->one->spec, tn_device_name(s->device), words);
}

/* ---- building and calling ---- */

static tn_module *build_from(const conform_subject *s, const char *text, const char *what)
{
    tn_module *module = tn_module_parse(text);

    if (module == NULL) {
        conform_layer_say(s, "%s cannot be built: %s", what, tn_error_text());
        return NULL;
    }
    tn_module_train(module, !s->one->eval);
    if (tn_module_to(module, s->device, s->dtype) != TN_OK) {
        conform_layer_say(s, "%s cannot be converted to %s on the device: %s", what,
                          tn_dtype_name(s->dtype), tn_error_text());
        tn_module_drop(module);
        return NULL;
    }
    return module;
}

tn_module *conform_layer_build(const conform_subject *s)
{
    return build_from(s, s->one->spec, "the module");
}

bool conform_layer_inputs(const conform_subject *s, tn_dtype dtype, tn_tensor **in)
{
    for (int64_t i = 0; i < s->one->n_in; i++) {
        const conform_tensor *from = &s->one->in[i];

        in[i] = conform_tensor_make(from, is_float(from->dtype) ? dtype : from->dtype, s->device,
                                    CONFORM_PLAIN, NULL);
        if (in[i] == NULL)
            return conform_layer_say(s, "input %d cannot be created: %s", (int)i, tn_error_text());
    }
    return true;
}

/* Appends the tensors and numbers of a value, including those inside lists and dictionaries. */
static void add_result(conform_results *out, tn_value value)
{
    for (uint32_t i = 0; i < tn_value_size(&value); i++)
        add_result(out, *tn_value_item(&value, i));
    if (value.kind == TN_VALUE_TENSOR && value.as.tensor != TN_NONE) {
        if (out->count < CONFORM_LAYER_RESULTS)
            out->at[out->count++] = tn_tensor_to_scope(tn_tensor_keep(value.as.tensor));
    } else if (value.kind == TN_VALUE_BOOL || value.kind == TN_VALUE_INT ||
               value.kind == TN_VALUE_FLOAT) {
        if (out->n_numbers < CONFORM_LAYER_RESULTS)
            out->number[out->n_numbers++] = value.kind == TN_VALUE_FLOAT ? value.as.f
                                                                         : (double)value.as.i;
    }
}

tn_status conform_layer_call(const conform_subject *s, tn_module *module, tn_tensor *const *in,
                             conform_results *out)
{
    tn_pack *input = tn_pack_new(), *output = tn_pack_new();
    tn_status status = input != NULL && output != NULL ? TN_OK : TN_ERR_MEMORY;

    out->count = out->n_numbers = 0;
    tn_random_seed(s->c->plugin->options->seed + 1);
    for (int64_t i = 0; i < s->one->n_in && status == TN_OK; i++)
        status = tn_pack_add(input, NULL, tn_value_tensor(in[i]));
    if (status == TN_OK)
        status = tn_module_call_pack(module, input, output);
    for (int64_t i = 0; i < tn_pack_count(output) && status == TN_OK; i++)
        add_result(out, tn_pack_at(output, i));
    tn_pack_drop(input);
    tn_pack_drop(output);
    return status;
}

bool conform_layer_called(const conform_subject *s, tn_module *module, tn_tensor *const *in,
                          conform_results *out, const char *when)
{
    s->c->checks++;
    if (conform_layer_call(s, module, in, out) != TN_OK)
        return conform_layer_say(s, "the call fails %s: %s", when, tn_error_text());
    return out->count + out->n_numbers > 0 ||
           conform_layer_say(s, "the call returns neither a tensor nor a number %s", when);
}

/* ---- comparing ---- */

bool conform_layer_near(const conform_subject *s, tn_tensor *got, tn_tensor *expected,
                        double tolerance, const char *what)
{
    int64_t n = 0, m = 0;
    double *a = conform_values(got, &n), *b = conform_values(expected, &m), largest = 0;
    bool well = a != NULL && b != NULL;

    s->c->checks++;
    if (!well)
        conform_layer_say(s, "%s cannot be read: %s", what, tn_error_text());
    else if (n != m)
        well = conform_layer_say(s, "%s: wrong number of elements, got %lld; expected %lld", what,
                                 (long long)n, (long long)m);
    for (int64_t i = 0; well && i < m; i++)
        largest = isfinite(b[i]) && fabs(b[i]) > largest ? fabs(b[i]) : largest;
    for (int64_t i = 0; well && i < m; i++)
        if (a[i] != b[i] && !(isnan(a[i]) && isnan(b[i])) &&
            !(fabs(a[i] - b[i]) <= tolerance * (1 + largest)))
            well = conform_layer_say(s, "%s: element %lld: wrong value, got %.17g; expected %.17g",
                                     what, (long long)i, a[i], b[i]);
    free(a);
    free(b);
    return well;
}

bool conform_layer_all_near(const conform_subject *s, const conform_results *got,
                            const conform_results *expected, double tolerance, const char *what)
{
    if (got->count != expected->count || got->n_numbers != expected->n_numbers)
        return conform_layer_say(s,
                                 "%s: wrong number, got %lld tensors and %lld numbers; expected "
                                 "%lld and %lld",
                                 what, (long long)got->count, (long long)got->n_numbers,
                                 (long long)expected->count, (long long)expected->n_numbers);
    for (int64_t i = 0; i < got->n_numbers; i++)
        if (got->number[i] != expected->number[i] && !(fabs(got->number[i] - expected->number[i]) <=
                                                       tolerance * (1 + fabs(expected->number[i]))))
            return conform_layer_say(s, "%s: number %lld: wrong value, got %.17g; expected %.17g",
                                     what, (long long)i, got->number[i], expected->number[i]);
    for (int64_t i = 0; i < got->count; i++)
        if (!conform_layer_near(s, got->at[i], expected->at[i], tolerance, what))
            return false;
    return true;
}

/* ---- printing ---- */

char *conform_layer_printed(tn_module *module, conform_layer_printer *print)
{
    int64_t length = print(module, NULL, 0);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;

    if (text != NULL)
        print(module, text, (size_t)length + 1);
    return text;
}
