/* SPDX-License-Identifier: MIT
 *
 * Parametrizing one tensor, and transferring its parametrizations to another module. */
#include "lib/parametrize/parametrize.h"

static tn_status check_flags(const char *who, uint32_t flags)
{
    if ((flags & ~(uint32_t)TN_PARAMETRIZE_UNSAFE) == 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "%s: flags: unknown, got 0x%x; expected TN_PARAMETRIZE_UNSAFE (1) or 0", who,
                   flags);
}

tn_status tn_parametrize(tn_module *module, const char *name, tn_module *parametrization,
                         uint32_t flags)
{
    tn__parametrize_step step;
    tn_status status;

    if (module == NULL || name == NULL)
        return tn__error_null_of("tn_parametrize", "module, name", module, name);
    if (parametrization == NULL)
        return tn_failed() ? tn_error_code() : tn_error_null("tn_parametrize: parametrization");
    status = check_flags("tn_parametrize", flags);
    if (status == TN_OK)
        status = tn__parametrize_find(&module, &name);
    if (status == TN_OK)
        status = tn__parametrize_step_begin(module, name, parametrization, flags, &step);
    if (status == TN_OK)
        tn__parametrize_step_finish(&step);
    return status;
}

tn_status tn_parametrize_parse(tn_module *module, const char *name, const char *text)
{
    tn_module *parametrization;
    tn_status status;

    if (module == NULL || name == NULL || text == NULL)
        return tn__error_null_of("tn_parametrize_parse", "module, name, text", module, name, text);
    parametrization = tn_module_parse(text);
    if (parametrization == NULL)
        return tn_error_last_code();
    status = tn_parametrize(module, name, parametrization, 0);
    tn_module_drop(parametrization);
    return status;
}

tn_status tn_parametrize_withv(tn_module *module, const char *name, const char *format,
                               va_list args)
{
    char *text;
    tn_status status;

    if (format == NULL)
        return tn_error_null("tn_parametrize_with: format");
    text = tn__text_from_format(format, args);
    status = text != NULL ? tn_parametrize_parse(module, name, text) : tn_error_last_code();
    tn_free(text);
    return status;
}

tn_status tn_parametrize_with(tn_module *module, const char *name, const char *format, ...)
{
    va_list args;
    tn_status status;

    va_start(args, format);
    status = tn_parametrize_withv(module, name, format, args);
    va_end(args);
    return status;
}

/* ---- transfer -------------------------------------------------------------------------------- */

/* Completes `copy`, which has the first parametrization of `list`: adds the other ones and the
 * originals of `list`. Both lists then share these modules and tensors. */
static tn_status share(const tn_module *list, tn_module *copy)
{
    const tn__slots *from[] = { &list->parameters, &list->buffers };
    tn__slots *to[] = { &copy->parameters, &copy->buffers };
    tn_status status = TN_OK;

    *tn__parametrize_data_of(copy) = *tn__parametrize_data_of(list);
    for (int64_t i = 1; i < tn__parametrize_count(list) && status == TN_OK; i++) {
        tn__parametrize_name name;
        tn_snprint(name, sizeof name, "%lld", (long long)i);
        status = tn_module_add_child(copy, name, tn__parametrize_at(list, i));
    }
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < from[k]->count && status == TN_OK; i++) {
            tn__slot *slot = tn__slots_make(to[k], from[k]->at[i].name);
            if (slot == NULL)
                return tn_error_last_code();
            slot->flags = from[k]->at[i].flags;
            slot->tensor = tn_tensor_keep(from[k]->at[i].tensor);
        }
    return status;
}

/* Appends "float32 [2, 3]". */
static void text_kind(tn__text *text, const tn_tensor *tensor)
{
    tn__text_add(text, "%s ", tn_dtype_name(tn_tensor_dtype(tensor)));
    tn__tensor_text_ints(text, tn__shape(tensor));
}

/* Checks that the value of `list` fits the tensor that `to` has under the name. */
static tn_status check_target(tn_module *from, tn_module *list, tn_module *to, const char *name)
{
    tn_tensor *value, *now;
    tn__text text = { 0 };
    tn_ints a, b;
    tn_status status;

    if (tn_is_parametrized(list, NULL))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "tn_parametrize_transfer: '%s' of %s: its original is parametrized too; "
                       "remove that parametrization first",
                       name, from->type);
    if (tn__parametrize_list(to, name) != NULL)
        return tn_fail(TN_ERR_VALUE,
                       "tn_parametrize_transfer: '%s' of %s: it is parametrized already; expected "
                       "a plain parameter or buffer, or none",
                       name, to->type);
    if (tn_module_slot_kind(to, name) == 0)
        return TN_OK;
    if ((tn_module_slot_kind(to, name) & (TN_SLOT_PARAMETER | TN_SLOT_BUFFER)) == 0)
        return tn_fail(
            TN_ERR_KEY,
            "tn_parametrize_transfer: '%s' of %s: wrong kind, got a %s; expected a plain "
            "parameter or buffer, or none",
            name, to->type, tn__slot_word(tn_module_slot_kind(to, name)));
    now = tn_module_get(to, name);
    value = now != NULL ? tn__parametrize_value(list) : NULL;
    if (value == NULL)
        return tn_error_last_code();
    a = tn__is_none(now) ? (tn_ints){ NULL, -1 } : tn__shape(now);
    b = tn__shape(value);
    if (a.count == b.count && tn_tensor_dtype(now) == tn_tensor_dtype(value) &&
        (a.count == 0 || memcmp(a.at, b.at, (size_t)a.count * sizeof *a.at) == 0))
        return TN_OK;
    if (a.count < 0)
        tn__text_add(&text, "None");
    else
        text_kind(&text, now);
    tn__text_add(&text, "; expected ");
    text_kind(&text, value);
    status = tn_fail(TN_ERR_VALUE,
                     "tn_parametrize_transfer: '%s' of %s: wrong tensor, got %s, as the value of "
                     "the parametrizations",
                     name, to->type, text.at != NULL ? text.at : "");
    tn__text_free(&text);
    return status;
}

static tn_status transfer(tn_module *from, tn_module *list, tn_module *to, const char *name)
{
    uint64_t scope = tn_scope_begin();
    tn_status status;
    tn_module *copy = NULL;

    tn_grad_begin(false);
    status = check_target(from, list, to, name);
    if (status == TN_OK) {
        copy = tn__parametrize_list_new(tn__parametrize_at(list, 0), false);
        status = copy != NULL ? share(list, copy) : tn_error_last_code();
    }
    if (status == TN_OK)
        status = tn__parametrize_list_add(to, name, copy);
    tn_module_drop(copy);
    tn_grad_end();
    tn_scope_end(scope);
    return status;
}

tn_status tn_parametrize_transfer(tn_module *from, tn_module *to, const char *name)
{
    const tn__slot *child;
    int64_t count, done = 0;
    tn_status status = TN_OK;

    if (from == NULL || to == NULL)
        return tn__error_null_of("tn_parametrize_transfer", "from, to", from, to);
    if (!tn_is_parametrized(from, NULL))
        return name == NULL ? TN_OK : tn__parametrize_none(from, name);
    child = tn__slots_find(&from->children, TN__PARAMETRIZE_CHILD);
    count = name == NULL ? child->child->children.count : 1;
    for (; done < count && status == TN_OK; done++) {
        const char *one = name != NULL ? name : child->child->children.at[done].name;
        tn_module *list = tn__parametrize_list(from, one);
        status = list != NULL ? transfer(from, list, to, one) : tn__parametrize_none(from, one);
        if (status != TN_OK)
            break;
    }
    for (int64_t i = done - 1; i >= 0; i--) {
        const char *one = name != NULL ? name : child->child->children.at[i].name;
        tn__slot *slot = tn__slots_find(&to->parameters, one);
        if (status != TN_OK)
            tn__parametrize_list_remove(to, one);
        else if (slot != NULL)
            tn__slots_remove(&to->parameters, slot);
        else if ((slot = tn__slots_find(&to->buffers, one)) != NULL)
            tn__slots_remove(&to->buffers, slot);
    }
    return status;
}

tn_status tn_parametrize_cache_begin(void)
{
    tn__value_cache_begin();
    return TN_OK;
}

void tn_parametrize_cache_end(void)
{
    tn__value_cache_end();
}
