/* SPDX-License-Identifier: MIT
 *
 * The call of the root of a program: its arguments by place or by name, its results, and the values
 * that it writes to buffers and arguments at its end. */
#include "run.h"

#include <string.h>

/* ---- arguments ------------------------------------------------------------------------------- */

struct arguments {
    const struct program *program;
    tn_value *values; /* one for each input of the program */
    bool *given;
    int64_t at; /* the next positional one */
    bool all;   /* positional arguments stand for all inputs, also for constant ones */
};

static int64_t count_needed(const struct program *program)
{
    int64_t count = 0;

    for (int64_t i = 0; i < program->n_inputs; i++)
        count += !program->inputs[i].constant;
    return count;
}

/* The number of leaves of a value: containers are flattened, as PyTorch does. In ONNX a list is one
 * value, a sequence. */
static int64_t count_leaves(const struct program *program, const tn_value *value, int level)
{
    int64_t count = 0;

    if (program->rules_of == RULES_ONNX)
        return 1;
    if (value->kind != TN_VALUE_LIST && value->kind != TN_VALUE_TUPLE &&
        value->kind != TN_VALUE_DICT)
        return 1;
    for (uint32_t i = 0; i < tn_value_size(value) && level < PROGRAM_LEVELS; i++)
        count += count_leaves(program, tn_value_item(value, i), level + 1);
    return count;
}

static void put_leaves(struct arguments *a, const tn_value *value, int level)
{
    bool flat = a->program->rules_of != RULES_ONNX;

    if (flat && (value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE ||
                 value->kind == TN_VALUE_DICT)) {
        for (uint32_t i = 0; i < tn_value_size(value) && level < PROGRAM_LEVELS; i++)
            put_leaves(a, tn_value_item(value, i), level + 1);
        return;
    }
    while (!a->all && a->at < a->program->n_inputs && a->program->inputs[a->at].constant)
        a->at++;
    a->values[a->at] = *value;
    a->given[a->at++] = true;
}

static tn_status put_positional(struct arguments *a, const tn_pack *input)
{
    int64_t needed = count_needed(a->program), count = 0;

    for (int64_t i = 0; i < tn_pack_positional(input); i++) {
        tn_value value = tn_pack_at(input, i);

        count += count_leaves(a->program, &value, 0);
    }
    a->all = count > needed;
    if (count > needed && count != a->program->n_inputs)
        return tn_fail(TN_ERR_TYPE, "%s: too many arguments, got %lld; expected %lld",
                       a->program->path, (long long)count, (long long)needed);
    for (int64_t i = 0; i < tn_pack_positional(input); i++) {
        tn_value value = tn_pack_at(input, i);

        put_leaves(a, &value, 0);
    }
    return TN_OK;
}

static tn_status put_named(struct arguments *a, const tn_pack *input)
{
    for (int64_t i = tn_pack_positional(input); i < tn_pack_count(input); i++) {
        const char *name = tn_pack_name(input, i);
        int64_t k = 0;

        while (k < a->program->n_inputs && (a->program->inputs[k].name == NULL ||
                                            strcmp(a->program->inputs[k].name, name) != 0))
            k++;
        if (k == a->program->n_inputs)
            return tn_fail(TN_ERR_KEY, "%s: argument %q: the program has none with this name",
                           a->program->path, name);
        if (a->given[k])
            return tn_fail(TN_ERR_KEY, "%s: argument %q: given twice; expected once",
                           a->program->path, name);
        a->values[k] = tn_pack_at(input, i);
        a->given[k] = true;
    }
    return TN_OK;
}

static tn_status wrong_input(const struct program *program, int64_t index, const char *got,
                             const char *expected)
{
    const char *name = program->inputs[index].name;

    return tn_fail(TN_ERR_TYPE, "%s: argument %lld%s%s%s: wrong, got %s; expected %s",
                   program->path, (long long)index + 1, name != NULL ? " (" : "",
                   name != NULL ? name : "", name != NULL ? ")" : "", got, expected);
}

static bool is_number(const tn_value *value)
{
    return value->kind == TN_VALUE_INT || value->kind == TN_VALUE_FLOAT ||
           value->kind == TN_VALUE_BOOL;
}

static tn_status check(struct run *run, const struct arguments *a)
{
    const struct program *program = a->program;

    for (int64_t i = 0; i < program->n_inputs; i++) {
        const struct program_input *input = &program->inputs[i];
        const tn_value *value = &a->values[i];
        bool number;

        if (input->constant) {
            if (a->given[i] && !rules_literal_equal(value, &input->value))
                return wrong_input(program, i, "another value",
                                   "the value that the program was exported with");
            continue;
        }
        if (input->optional && (!a->given[i] || value->kind == TN_VALUE_NONE))
            continue;
        if (!a->given[i])
            return wrong_input(program, i, "nothing", "a value");
        number = input->to >= 0 && is_number(value);
        if (value->kind != TN_VALUE_TENSOR && !number &&
            !(program->rules_of == RULES_ONNX && value->kind == TN_VALUE_LIST))
            return wrong_input(program, i, tn_value_kind_name(value->kind), "a tensor");
        if (run_set(run, input->to, *value) != TN_OK)
            return tn_error_last_code();
    }
    return TN_OK;
}

static tn_status read_arguments(struct run *run, struct arguments *a, const tn_pack *input)
{
    tn_status status;

    a->program = run->program;
    a->values = tn_calloc((size_t)run->program->n_inputs + 1, sizeof *a->values);
    a->given = tn_calloc((size_t)run->program->n_inputs + 1, sizeof *a->given);
    if (a->values == NULL || a->given == NULL)
        return TN_ERR_MEMORY;
    status = put_positional(a, input);
    if (status == TN_OK)
        status = put_named(a, input);
    return status == TN_OK ? check(run, a) : status;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Writes a value to a tensor of the tree; counts of batches change only in training mode. */
static tn_status write_slot(const struct run *run, const struct slot *slot, tn_tensor *value)
{
    const char *path = run->program->parts[slot->part].path;
    tn_module *module = path[0] != '\0' ? tn_module_find(run->module, path) : run->module;
    tn_tensor *tensor = module != NULL ? tn_module_get(module, slot->name) : NULL;

    if (tensor == NULL)
        return tn_error_last_code();
    if (tensor == value || tensor == TN_NONE ||
        (strcmp(slot->name, PROGRAM_COUNTER) == 0 && !tn_module_is_training(module)))
        return TN_OK;
    return tn_copy_(tensor, value) != NULL ? TN_OK : tn_error_last_code();
}

static tn_status write_one(const struct run *run, const struct arguments *a,
                           const struct program_output *output, const tn_value *value)
{
    tn_tensor *to;

    if (value->kind != TN_VALUE_TENSOR)
        return tn_fail(TN_ERR_TYPE, "%s: a value to be written is %s; expected a tensor",
                       run->program->path, tn_value_kind_name(value->kind));
    if (output->kind == OUTPUT_SLOT)
        return write_slot(run, &run->program->slots[output->index], value->as.tensor);
    to = a->values[output->index].kind == TN_VALUE_TENSOR ? a->values[output->index].as.tensor
                                                          : NULL;
    if (to == NULL || to == value->as.tensor)
        return TN_OK;
    return tn_copy_(to, value->as.tensor) != NULL ? TN_OK : tn_error_last_code();
}

static tn_status write_results(const struct run *run, const struct arguments *a, tn_pack *output)
{
    const struct program *program = run->program;
    tn_rule_call call = { 0 };
    tn_status status = TN_OK;

    for (int64_t i = 0; i < program->n_outputs && status == TN_OK; i++) {
        const struct program_output *to = &program->outputs[i];
        tn_value value;

        status = run_arg(run, &call, &program->main.outputs[i], &value);
        if (status == TN_OK && program->rules_of == RULES_ONNX)
            status = host_tensor(&value);
        if (status == TN_OK && to->kind == OUTPUT_USER) {
            status = tn_pack_add(output, to->name, value);
        } else if (status == TN_OK) {
            status = tn_grad_begin(false);
            if (status == TN_OK)
                status = write_one(run, a, to, &value);
            tn_grad_end();
        }
    }
    rules_call_end(&call);
    return status;
}

/* ---- the call -------------------------------------------------------------------------------- */

/* New tensors are on the device of the first tensor among the arguments. */
static const tn_device *device_of(const struct arguments *a)
{
    for (int64_t i = 0; i < a->program->n_inputs; i++)
        if (a->values[i].kind == TN_VALUE_TENSOR)
            return tn_tensor_device(a->values[i].as.tensor);
    return NULL;
}

tn_status module_root_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const struct part *part = tn_module_user(self);
    const struct segment *segment = part->program->root;
    struct arguments a = { 0 };
    struct run run;
    tn_status status = run_begin(&run, part->program, self, tn_module_is_training(self),
                                 segment->n_values);

    if (status == TN_OK)
        status = read_arguments(&run, &a, input);
    if (status == TN_OK)
        status = module_fetch(&run, segment);
    if (status == TN_OK) {
        status = tn_device_begin(device_of(&a));
        if (status == TN_OK)
            status = run_segment(&run, segment);
        tn_device_end();
    }
    if (status == TN_OK)
        status = write_results(&run, &a, output);
    tn_free(a.values);
    tn_free(a.given);
    run_end(&run);
    return status;
}
