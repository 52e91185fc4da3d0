/* SPDX-License-Identifier: MIT
 *
 * tenon ops [NAME]: shows how every operator runs on every device type or, with NAME, how one
 * operator runs in every dtype. */
#include "tool.h"

#include <string.h>

enum { TYPES = TABLE_COLUMNS - 1 };

/* Returns how a device type runs an operator in a dtype. The first word is "kernel",
 * "decomposition", "view" or "missing". */
static const char *route(const tn_op *op, const char *type, tn_dtype dtype, char *text, size_t size)
{
    if (tn_op_route(op, type, dtype, text, size) < 0) {
        tn_error_clear();
        return "?";
    }
    return text;
}

static const struct word {
    uint64_t flag;
    const char *word;
} op_words[] = { { TN_OP_PRIMITIVE, "primitive" },
                 { TN_OP_BASIC, "basic" },
                 { TN_OP_VIEW, "view" },
                 { TN_OP_PROMOTE, "promote" },
                 { TN_OP_PROMOTE_FLOAT, "promote_float" },
                 { TN_OP_INPLACE, "inplace" },
                 { TN_OP_INTO, "into" },
                 { TN_OP_RANDOM, "random" },
                 { TN_OP_STRAIGHT_THROUGH, "straight_through" },
                 { TN_OP_POINTWISE, "pointwise" },
                 { TN_OP_READS, "reads" },
                 { TN_OP_ORDERED, "ordered" },
                 { TN_OP_AUTOCAST_LOW, "autocast_low" },
                 { TN_OP_AUTOCAST_F32, "autocast_f32" },
                 { TN_OP_AUTOCAST_WIDEST, "autocast_widest" },
                 { TN_OP_AUTOCAST_REFUSED, "autocast_refused" },
                 { TN_OP_AUTOCAST_HOST_LOW, "autocast_host_low" },
                 { TN_OP_AUTOCAST_HOST_F32, "autocast_host_f32" },
                 { TN_OP_AUTOCAST_HOST_WIDEST, "autocast_host_widest" },
                 { TN_OP_AUTOCAST_HOST_REFUSED, "autocast_host_refused" },
                 { 0, NULL } },
  operand_words[] = { { TN_OPERAND_OPTIONAL, "optional" },
                      { TN_OPERAND_NO_GRAD, "nograd" },
                      { TN_OPERAND_NO_PROMOTE, "nopromote" },
                      { TN_OPERAND_LIST, "list" },
                      { TN_OPERAND_ANY_DEVICE, "anydevice" },
                      { TN_OPERAND_APART, "apart" },
                      { TN_OPERAND_WRITTEN, "written" },
                      { TN_OPERAND_UPDATED, "updated" },
                      { TN_OPERAND_FROM_I32, "from_i32" },
                      { TN_OPERAND_FROM_U8, "from_u8" },
                      { 0, NULL } };

static void flags_json(const struct word *words, uint64_t flags)
{
    json_begin("flags", '[');
    for (; words->word != NULL; words++)
        if (flags & words->flag)
            json_text(NULL, words->word);
    json_end(']');
}

/* Prints a line such as "flags: pointwise inplace" or "running_mean: optional updated"; nothing if
 * no flag is set. */
static void flags_print(const char *name, const struct word *words, uint64_t flags)
{
    bool any = false;

    for (; words->word != NULL; words++)
        if (flags & words->flag) {
            printf("%s%s%s", any ? " " : name, any ? "" : ": ", words->word);
            any = true;
        }
    if (any)
        putchar('\n');
}

static void operand_json(const char *key, const tn_operand *operands, int32_t count)
{
    json_begin(key, '[');
    for (int32_t i = 0; i < count; i++) {
        json_begin(NULL, '{');
        json_text("name", operands[i].name);
        json_bool("optional", operands[i].flags & TN_OPERAND_OPTIONAL);
        json_bool("list", operands[i].flags & TN_OPERAND_LIST);
        flags_json(operand_words, operands[i].flags);
        json_end('}');
    }
    json_end(']');
}

static void op_json(const tn_op *op, const tn_op_def *def)
{
    char text[512];
    int64_t types = tn_registry_count(TN_KIND_tn_backend_def);
    json_begin(NULL, '{');
    json_text("name", def->name);
    json_int("revision", def->revision);
    json_text("plugin", tn_registry_plugin(TN_KIND_tn_op_def, def->name));
    json_text("math", def->math);
    json_bool("primitive", def->flags & TN_OP_PRIMITIVE);
    json_bool("view", def->flags & TN_OP_VIEW);
    flags_json(op_words, def->flags);
    json_text("gradient", def->derive      ? "derivative"
                          : def->decompose ? "through its decomposition"
                                           : "none");
    operand_json("inputs", def->inputs, def->n_inputs);
    operand_json("outputs", def->outputs, def->n_outputs);
    json_begin("routes", '{');
    for (int64_t i = 0; i < types; i++) {
        const char *type = tn_registry_name(TN_KIND_tn_backend_def, i);
        json_text(type, route(op, type, TN_F32, text, sizeof text));
    }
    json_end('}');
    json_end('}');
}

static void row(table *t, const char *name, const char cells[TYPES][16])
{
    table_row(t, name, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6],
              cells[7], cells[8], cells[9], cells[10]);
}

/* Describes one operator: the output of `tenon info`, then how the operator runs in each dtype. */
static int one(const char *name, int64_t types, bool json)
{
    const tn_op *op = tn_op_find(name, 0);
    char cells[TYPES][16] = { "" }, text[512];
    if (!op)
        return tool_fail(NULL);
    const tn_op_def *def = tn_op_definition(op);
    if (json) {
        json_begin(NULL, '{');
        json_begin("operators", '[');
        op_json(op, def);
        json_end(']');
        json_end('}');
        return EXIT_OK;
    }
    printf("operator %s, revision %u%s\n", def->name, def->revision,
           def->flags & TN_OP_PRIMITIVE ? ", a primitive: every device needs a kernel" : "");
    if (def->help)
        print_wrapped("", 0, def->help);
    op_print(def);
    flags_print("flags", op_words, def->flags);
    for (int32_t i = 0; i < def->n_inputs; i++)
        flags_print(def->inputs[i].name, operand_words, def->inputs[i].flags);
    table t = { .columns = 1 + (int)types };
    for (int64_t i = 0; i < types; i++)
        snprintf(cells[i], sizeof cells[i], "%s", tn_registry_name(TN_KIND_tn_backend_def, i));
    putchar('\n');
    row(&t, "DTYPE", cells);
    for (int dtype = 0; dtype <= TN_C128; dtype++) {
        for (int64_t k = 0; k < types; k++) {
            const char *how = route(op, tn_registry_name(TN_KIND_tn_backend_def, k),
                                    (tn_dtype)dtype, text, sizeof text);
            snprintf(cells[k], sizeof cells[k], "%.*s", (int)strcspn(how, " ("), how);
        }
        row(&t, tn_dtype_name((tn_dtype)dtype), cells);
    }
    table_print(&t);
    return EXIT_OK;
}

static int run(int count, char **arguments, bool json)
{
    char cells[TYPES][16] = { "" }, text[512];
    int64_t ops = tn_op_count(), types = tn_registry_count(TN_KIND_tn_backend_def), primitives = 0;
    if (ops < 0 || types < 0)
        return tool_fail("the operators cannot be listed");
    types = types < TYPES ? types : TYPES;
    if (count)
        return one(arguments[0], types, json);
    table t = { .columns = 1 + (int)types };
    for (int64_t i = 0; i < types; i++)
        snprintf(cells[i], sizeof cells[i], "%s", tn_registry_name(TN_KIND_tn_backend_def, i));
    if (json) {
        json_begin(NULL, '{');
        json_begin("operators", '[');
    } else {
        row(&t, "OPERATOR", cells);
    }
    for (int64_t i = 0; i < ops; i++) {
        const char *name = tn_op_name_at(i);
        const tn_op *op = name ? tn_op_find(name, 0) : NULL;
        const tn_op_def *def = op ? tn_op_definition(op) : NULL;
        if (!def)
            return tool_fail("the operators cannot be listed");
        if (json) {
            op_json(op, def);
            continue;
        }
        primitives += (def->flags & TN_OP_PRIMITIVE) != 0;
        for (int64_t k = 0; k < types; k++) {
            const char *how = route(op, tn_registry_name(TN_KIND_tn_backend_def, k), TN_F32, text,
                                    sizeof text);
            snprintf(cells[k], sizeof cells[k], "%.*s", (int)strcspn(how, " ("), how);
        }
        row(&t, name, cells);
    }
    if (json) {
        json_end(']');
        json_end('}');
        return ops ? EXIT_OK : EXIT_NOT_OK;
    }
    table_print(&t);
    printf("\n%lld operators, %lld of them primitives; routes are those of float32. `tenon ops "
           "NAME` describes one.\n",
           (long long)ops, (long long)primitives);
    return ops ? EXIT_OK : EXIT_NOT_OK;
}

const command ops_command = {
    "ops",
    "[NAME]",
    "operators, and how each runs on each device type",
    "Prints every operator and how it runs with float32 on each device type: kernel, decomposition "
    "(into other operators on the same device), view (no kernel needed), missing (an error; with "
    "TENON_FALLBACK it runs on another device). With a name: inputs, outputs and derivative of "
    "that operator, and how it runs with every dtype; \"shapes\" where only a device without "
    "memory has it.\n\nExit status 1 if no operators were found, or none of that name.",
    0,
    1,
    run,
    0,
    NULL
};
