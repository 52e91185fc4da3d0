/* SPDX-License-Identifier: MIT
 *
 * Rules that are texts (aten.h): "add.Tensor(self=a, other=b, *, alpha=alpha)". */
#include "export/aten.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 60 };

static size_t word(const char *at, char *out, const char *more)
{
    size_t length = 0;

    while (length < WORD - 1 &&
           ((at[length] >= 'a' && at[length] <= 'z') || (at[length] >= 'A' && at[length] <= 'Z') ||
            (at[length] >= '0' && at[length] <= '9') || at[length] == '_' ||
            (at[length] != '\0' && strchr(more, at[length]) != NULL)))
        length++;
    memcpy(out, at, length);
    out[length] = '\0';
    return length;
}

/* The values of an input that is a list. */
static json_t *list_of(struct aten_call *call, int32_t first)
{
    json_t *names = json_array();

    for (int64_t i = first; i < tn_node_input_count(call->node); i++)
        if (json_array_append_new(
                names, json_pack("{s:s}", "name",
                                 aten_make_of(call->model, tn_node_input(call->node, i)))) != 0)
            return NULL;
    return json_pack("{s:o}", "as_tensors", names);
}

/* *left_out: an option that is not given. */
static json_t *value_of(struct aten_call *call, const char *name, bool *left_out)
{
    json_t *value;

    if (strcmp(name, "True") == 0 || strcmp(name, "False") == 0)
        return json_pack("{s:b}", "as_bool", (int)(name[0] == 'T'));
    if (strcmp(name, "None") == 0)
        return json_pack("{s:b}", "as_none", 1);
    if (name[0] >= '0' && name[0] <= '9')
        return json_pack("{s:I}", "as_int", (json_int_t)strtoll(name, NULL, 10));
    for (int32_t i = 0; i < call->def->n_inputs; i++)
        if (strcmp(call->def->inputs[i].name, name) == 0)
            return (call->def->inputs[i].flags & TN_OPERAND_LIST) != 0
                       ? list_of(call, i)
                       : aten_make_tensor(aten_make_in(call, name));
    value = aten_make_option(call, name);
    *left_out = value == NULL;
    return value != NULL ? value : json_pack("{s:b}", "as_none", 1);
}

void aten_text_write(struct aten_call *call, const struct aten_rule *rule)
{
    const char *at = rule->text, *out[ATEN_OUTPUTS];
    char target[WORD], name[WORD], from[WORD];
    int64_t own = tn_node_item_count(call->node);
    bool named = false;

    at += word(at, target, ".");
    aten_make_begin(call, target);
    for (at++; *at != ')' && *at != '\0' && call->model->status == TN_OK;) {
        bool left_out = false;
        json_t *value;

        if (*at == '*') {
            named = true;
            at += 1 + strspn(at + 1, ", ");
            continue;
        }
        at += word(at, name, "");
        at += *at == '=';
        at += word(at, from, "");
        value = value_of(call, from, &left_out);
        /* An empty list of a window is what it is by default. */
        left_out |= json_array_size(json_object_get(value, "as_ints")) == 0 &&
                    json_object_get(value, "as_ints") != NULL;
        if (named && left_out)
            json_decref(value);
        else
            aten_make_add(call, name, value, named);
        at += strspn(at, ", ");
    }
    aten_make_end(call, own);
    memcpy((void *)out, (const void *)call->out, sizeof out);
    for (int64_t i = 0; i < own; i++)
        aten_make_give(call, i, out[i]);
}
