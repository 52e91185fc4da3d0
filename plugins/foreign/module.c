/* SPDX-License-Identifier: MIT
 *
 * Modules that run a program: the tree, and the call of a module below the root. Modules below it
 * are called as modules, and weights are read from their slots in each call, so that hooks,
 * replaced modules, frozen, pruned and parametrized weights have their effect. */
#include "names.h"
#include "run.h"

#include <string.h>

/* What a call of a module of the program has beside its tensors, by name: which of the calls it is,
 * and numbers. A module that takes the place of another does not get them. */
#define CALL "call"
#define NUMBERS "numbers"

/* ---- arguments of a call --------------------------------------------------------------------- */

static tn_status add_numbers(const struct run *run, const struct segment *call, tn_pack *pack)
{
    int64_t count = call->n_takes - call->n_tensors;
    tn_value *numbers = tn_calloc((size_t)count + 1, sizeof *numbers);
    tn_status status;

    if (numbers == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        numbers[i] = run->values[call->takes[call->n_tensors + i].outside];
    status = tn_pack_add(pack, NUMBERS, tn_value_list(numbers, (uint32_t)count));
    tn_free(numbers);
    return status;
}

static tn_status fill_input(const struct run *run, const struct segment *call, bool own,
                            tn_pack *pack)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < call->n_tensors && status == TN_OK; i++) {
        tn_value value = run->values[call->takes[i].outside];

        if (call->takes[i].slot && !own)
            continue;
        if (run->program->rules_of == RULES_ONNX && host_tensor(&value) != TN_OK)
            return tn_error_last_code();
        status = value.kind == TN_VALUE_TENSOR
                     ? tn_pack_add(pack, NULL, value)
                     : tn_fail(
                           TN_ERR_NOT_IMPLEMENTED,
                           "value of another module: wrong kind, got %s; expected a tensor or a "
                           "number",
                           tn_value_kind_name(value.kind));
    }
    if (status == TN_OK && own && call->n_takes > call->n_tensors)
        status = add_numbers(run, call, pack);
    if (status == TN_OK && own && call->index > 0)
        status = tn_pack_add(pack, CALL, tn_value_int(call->index));
    return status;
}

static bool gives_numbers(const struct segment *call)
{
    for (int64_t i = 0; i < call->n_gives; i++)
        if (call->gives[i].kind == VALUE_NUMBER)
            return true;
    return false;
}

/* Results with numbers among them: only from the program's own module. */
static tn_status take_values(struct run *run, const struct segment *call, const tn_pack *output)
{
    if (tn_pack_count(output) != call->n_gives)
        return tn_fail(TN_ERR_TYPE,
                       "gives %lld results; expected %lld, with numbers among them, which only the "
                       "module of the program gives",
                       (long long)tn_pack_count(output), (long long)call->n_gives);
    for (int64_t i = 0; i < call->n_gives; i++)
        if (run_set(run, call->gives[i].outside, tn_pack_at(output, i)) != TN_OK)
            return tn_error_last_code();
    return TN_OK;
}

static tn_status take_output(struct run *run, const struct segment *call, const tn_pack *output)
{
    tn_tensor *few[8], **tensors = few;
    tn_status status;

    if (call->n_gives == 0)
        return TN_OK;
    if (gives_numbers(call))
        return take_values(run, call, output);
    if (call->n_gives > 8)
        tensors = tn_calloc((size_t)call->n_gives, sizeof *tensors);
    if (tensors == NULL)
        return TN_ERR_MEMORY;
    status = tn_pack_take(output, tensors, call->n_gives);
    for (int64_t i = 0; i < call->n_gives && status == TN_OK; i++)
        if (tensors[i] != TN_NONE)
            run_set(run, call->gives[i].outside, tn_value_tensor(tensors[i]));
    if (tensors != few)
        tn_free(tensors);
    return status;
}

tn_status module_call(struct run *run, const struct segment *call)
{
    uint64_t scope = tn_scope_begin();
    tn_module *module = tn_module_find(run->module, call->path);
    bool own = module != NULL && tn_module_user(module) == &run->program->parts[call->part];
    tn_pack *input = tn_pack_new(), *output = tn_pack_new();
    tn_status status = module == NULL                    ? tn_error_last_code()
                       : input == NULL || output == NULL ? TN_ERR_MEMORY
                                                         : fill_input(run, call, own, input);

    if (status == TN_OK)
        status = tn_module_call_pack(module, input, output);
    if (status == TN_OK) {
        status = take_output(run, call, output);
        if (status != TN_OK)
            status = tn_error_prefix("module %s: ", call->path);
    }
    tn_pack_drop(input);
    tn_pack_drop(output);
    tn_scope_end(scope);
    return status;
}

/* ---- the call of a module -------------------------------------------------------------------- */

tn_status module_fetch(struct run *run, const struct segment *segment)
{
    for (int64_t i = 0; i < segment->n_fetches; i++) {
        const struct fetch *fetch = &segment->fetches[i];
        tn_module *module = fetch->path[0] != '\0' ? tn_module_find(run->module, fetch->path)
                                                   : run->module;
        tn_tensor *tensor = module != NULL ? tn_module_get(module, fetch->name) : NULL;

        if (tensor == NULL)
            return tn_error_last_code();
        if (tensor == TN_NONE)
            return tn_fail(TN_ERR_ATTR, "%s%s%s: the slot is empty; expected a tensor", fetch->path,
                           fetch->path[0] != '\0' ? "." : "", fetch->name);
        run_set(run, fetch->value, tn_value_tensor(tensor));
    }
    return TN_OK;
}

/* Which of the calls of the module this is. */
static const struct segment *segment_of(const struct part *part, const tn_pack *input)
{
    int64_t at = tn_pack_find(input, CALL), index = 0;

    if (at >= 0) {
        tn_value value = tn_pack_at(input, at);

        index = value.kind == TN_VALUE_INT ? value.as.i : -1;
    }
    if (index >= 0 && index < part->n_segments)
        return part->segments[index];
    if (part->n_segments == 0)
        tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: the program never calls this module", part->path);
    else
        tn_fail(TN_ERR_VALUE, "%s: " CALL ": out of range, got %lld; expected 0 to %lld",
                part->path, (long long)index, (long long)part->n_segments - 1);
    return NULL;
}

static tn_status read_input(struct run *run, const struct segment *segment, const char *path,
                            const tn_pack *input)
{
    int64_t at = tn_pack_find(input, NUMBERS), count = segment->n_takes - segment->n_tensors;
    tn_value numbers = at >= 0 ? tn_pack_at(input, at) : tn_value_list(NULL, 0);

    if (tn_pack_positional(input) != segment->n_tensors)
        return tn_fail(TN_ERR_TYPE,
                       "%s: wrong number of arguments, got %lld; expected %lld tensors", path,
                       (long long)tn_pack_positional(input), (long long)segment->n_tensors);
    if (numbers.kind != TN_VALUE_LIST || (int64_t)numbers.count != count)
        return tn_fail(TN_ERR_TYPE,
                       "%s: " NUMBERS ": missing or wrong; expected a list of %lld, which the "
                       "module around it computes",
                       path, (long long)count);
    for (int64_t i = 0; i < segment->n_tensors; i++) {
        tn_tensor *tensor = tn_pack_tensor(input, i);

        if (tensor == NULL)
            return tn_error_last_code();
        run_set(run, segment->takes[i].value, tn_value_tensor(tensor));
    }
    for (int64_t i = 0; i < count; i++) {
        tn_value value = numbers.as.list[i];

        if (value.kind != TN_VALUE_INT && value.kind != TN_VALUE_FLOAT &&
            value.kind != TN_VALUE_BOOL && run->program->rules_of != RULES_ONNX)
            return tn_fail(TN_ERR_TYPE, "%s: " NUMBERS ": wrong kind, got %s; expected numbers",
                           path, tn_value_kind_name(value.kind));
        if (run_set(run, segment->takes[segment->n_tensors + i].value, value) != TN_OK)
            return tn_error_last_code();
    }
    return TN_OK;
}

static tn_status write_output(const struct run *run, const struct segment *segment, tn_pack *output)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < segment->n_gives && status == TN_OK; i++) {
        tn_value value = run->values[segment->gives[i].value];

        if (run->program->rules_of == RULES_ONNX && segment->gives[i].kind == VALUE_TENSOR)
            status = host_tensor(&value);
        if (status == TN_OK)
            status = tn_pack_add(output, NULL, value);
    }
    return status;
}

static tn_status call_part(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const struct part *part = tn_module_user(self);
    const struct segment *segment = segment_of(part, input);
    struct run run;
    tn_status status;

    if (segment == NULL)
        return tn_error_last_code();
    status = run_begin(&run, part->program, self, tn_module_is_training(self), segment->n_values);
    if (status == TN_OK)
        status = read_input(&run, segment, part->path, input);
    if (status == TN_OK)
        status = module_fetch(&run, segment);
    if (status == TN_OK)
        status = run_segment(&run, segment);
    if (status == TN_OK)
        status = write_output(&run, segment, output);
    run_end(&run);
    return status;
}

/* ---- the tree -------------------------------------------------------------------------------- */

static void release(void *user)
{
    program_drop(((struct part *)user)->program);
}

/* Makes the modules, each in the one that holds it. */
static tn_status make_modules(struct program *program, tn_module **at)
{
    struct names names = { 0 };
    tn_status status = TN_OK;

    for (int64_t i = 0; i < program->n_parts && status == TN_OK; i++) {
        struct part *part = &program->parts[i];
        const char *dot = strrchr(part->path, '.');
        const char *name = dot != NULL ? dot + 1 : part->path;
        char above[PROGRAM_PATH];

        tn_snprint(above, sizeof above, "%.*s", dot != NULL ? (int)(dot - part->path) : 0,
                   part->path);
        at[i] = tn_module_plain(part->type != NULL ? part->type : "Module");
        if (at[i] == NULL)
            status = tn_error_last_code();
        else
            status = tn_module_set_call(at[i], i == 0 ? module_root_call : call_part, part,
                                        release);
        if (status == TN_OK) {
            program_keep(program);
            status = names_add(&names, part->path, i);
        }
        if (status == TN_OK && i > 0)
            status = tn_module_add_child(at[names_find(&names, above)], name, at[i]);
        if (status != TN_OK)
            tn_error_prefix("%s: module %.100s: ", program->path, part->path);
    }
    names_free(&names);
    return status;
}

static bool can_have_gradient(tn_dtype dtype)
{
    return (TN_BIT(dtype) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)) != 0;
}

/* Registers a parameter. Tied parameters have one tensor in the program, and become one. */
static tn_status add_parameter(tn_module *module, const struct slot *slot, struct names *names,
                               tn_tensor **made, int64_t index, struct arena *arena)
{
    char key[40];
    int64_t before;

    tn_snprint(key, sizeof key, "%p", (void *)slot->tensor);
    before = names_find(names, key);
    if (before < 0) {
        const char *copy = arena_text(arena, key, strlen(key));
        tn_status status = copy != NULL ? names_add(names, copy, index) : TN_ERR_MEMORY;

        if (status != TN_OK)
            return status;
        made[index] = tn_parameter(slot->tensor,
                                   slot->grad && can_have_gradient(tn_tensor_dtype(slot->tensor)));
        if (made[index] == NULL)
            return tn_error_last_code();
        before = index;
    }
    return tn_module_add_parameter(module, slot->name, made[before]);
}

static tn_status add_slots(struct program *program, tn_module *const *at)
{
    tn_tensor **made = tn_calloc((size_t)program->n_slots + 1, sizeof *made);
    struct names names = { 0 };
    struct arena arena = { 0 };
    tn_status status = made != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < program->n_slots && status == TN_OK; i++) {
        const struct slot *slot = &program->slots[i];

        status = slot->parameter
                     ? add_parameter(at[slot->part], slot, &names, made, i, &arena)
                     : tn_module_add_buffer(at[slot->part], slot->name, slot->tensor, slot->flags);
        if (status != TN_OK)
            tn_error_prefix("%s: tensor %.100s: ", program->path, slot->path);
    }
    names_free(&names);
    arena_free(&arena);
    tn_free(made);
    return status;
}

/* A module without a mode of its own has that of most others; without any it is in evaluation. */
static tn_status set_modes(const struct program *program, tn_module *const *at)
{
    int64_t votes = 0;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < program->n_parts; i++)
        votes += program->parts[i].mode == 1 ? 1 : program->parts[i].mode == 0 ? -1 : 0;
    for (int64_t i = 0; i < program->n_parts && status == TN_OK; i++) {
        int mode = program->parts[i].mode;
        bool training = mode < 0 ? votes > 0 : mode == 1;

        if (tn_module_is_training(at[i]) != training)
            status = tn_module_train(at[i], training);
    }
    return status;
}

tn_module *module_make(struct program *program)
{
    tn_module **at = tn_calloc((size_t)program->n_parts + 1, sizeof *at), *root;
    uint64_t scope = tn_scope_begin();
    tn_status status = at != NULL ? make_modules(program, at) : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = add_slots(program, at);
    if (status == TN_OK)
        status = set_modes(program, at);
    tn_scope_end(scope);
    for (int64_t i = 0; i < program->n_slots; i++) {
        tn_tensor_drop(program->slots[i].tensor);
        program->slots[i].tensor = NULL;
    }
    root = status == TN_OK ? tn_module_keep(at[0]) : NULL;
    if (root != NULL)
        programs_add(program);
    for (int64_t i = 0; i < program->n_parts && at != NULL; i++)
        tn_module_drop(at[i]);
    tn_free(at);
    return root;
}
