/* SPDX-License-Identifier: MIT
 *
 * The tree of modules of an ONNX file. Initializers have PyTorch's paths as their names
 * ("layer1.0.conv1.weight"), which make the modules; what a node says of the modules around it
 * makes the calls of modules. */
#include "onnx/onnx.h"

#include <ctype.h>
#include <string.h>

/* ---- modules --------------------------------------------------------------------------------- */

static int64_t add_part(struct onnx_file *file, const char *path)
{
    struct program *program = file->program;
    struct part *more;

    if (program->n_parts == file->parts_capacity) {
        file->parts_capacity = 2 * file->parts_capacity + 64;
        more = arena_new(&program->arena, (uint64_t)file->parts_capacity, sizeof *more);
        if (more == NULL)
            return -1;
        if (program->n_parts > 0)
            memcpy(more, program->parts, (size_t)program->n_parts * sizeof *more);
        program->parts = more;
    }
    more = &program->parts[program->n_parts];
    *more = (struct part){ .path = arena_text(&program->arena, path, strlen(path)),
                           .program = program,
                           .mode = -1 };
    if (more->path == NULL || names_add(&file->parts, more->path, program->n_parts) != TN_OK)
        return -1;
    return program->n_parts++;
}

int64_t onnx_tree_part(struct onnx_file *file, const char *path)
{
    char above[PROGRAM_PATH];
    int64_t found = names_find(&file->parts, path);

    if (found >= 0)
        return found;
    for (const char *at = path; (at = strchr(at, '.')) != NULL; at++) {
        memcpy(above, path, (size_t)(at - path));
        above[at - path] = '\0';
        if (names_find(&file->parts, above) < 0 && add_part(file, above) < 0)
            return -1;
    }
    return add_part(file, path);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Makes a path of a name: letters, digits and underscores between single dots; at most
 * PROGRAM_LEVELS parts. */
static void path_of(const char *name, char *path, size_t size)
{
    size_t n = 0;
    int levels = 0;

    for (; *name != '\0' && n + 32 < size; name++) {
        bool dot = *name == '.' && n > 0 && path[n - 1] != '.' && name[1] != '\0' &&
                   ++levels < PROGRAM_LEVELS;

        if (*name == '.' && n == 0)
            continue;
        path[n++] = dot ? '.' : isalnum((unsigned char)*name) ? *name : '_';
    }
    if (n > 0 && path[n - 1] == '.')
        n--;
    path[n] = '\0';
    if (n == 0)
        tn_snprint(path, size, "tensor");
}

/* Whether a module can have this path: no slot has it, or is above it. */
static bool is_module_path(const struct onnx_file *file, const char *path)
{
    char above[PROGRAM_PATH];

    for (const char *at = path; (at = strchr(at, '.')) != NULL; at++) {
        memcpy(above, path, (size_t)(at - path));
        above[at - path] = '\0';
        if (names_find(&file->slots, above) >= 0)
            return false;
    }
    return names_find(&file->slots, path) < 0;
}

/* Whether the path of a slot is free: no slot and no module has it, and no slot is above it. */
static bool is_free(const struct onnx_file *file, const char *path)
{
    return names_find(&file->parts, path) < 0 && is_module_path(file, path);
}

/* Nothing is below a slot: a dot after the path of one becomes part of a name. */
static void leave_slots(const struct onnx_file *file, char *path)
{
    char above[PROGRAM_PATH];

    for (char *at = path; (at = strchr(at, '.')) != NULL; at++) {
        memcpy(above, path, (size_t)(at - path));
        above[at - path] = '\0';
        if (names_find(&file->slots, above) >= 0)
            *at = '_';
    }
}

/* Puts a slot at a path, or at one like it that is free. Numbers at the end only grow, so that each
 * name that is taken costs one attempt in all. */
static tn_status place(struct onnx_file *file, const char *path, int64_t index)
{
    struct program *program = file->program;
    struct slot *slot = &program->slots[index];
    char free_path[PROGRAM_PATH], above[PROGRAM_PATH];
    char wanted[PROGRAM_PATH];
    const char *dot;
    int64_t i = 2;

    tn_snprint(wanted, sizeof wanted, "%s", path);
    leave_slots(file, wanted);
    tn_snprint(free_path, sizeof free_path, "%s", wanted);
    for (; !is_free(file, free_path); i++)
        tn_snprint(free_path, sizeof free_path, "%.*s_%lld", PROGRAM_PATH - 30, wanted,
                   (long long)(i < 8 ? i : i + index + file->clashes));
    file->clashes += i > 9 ? i - 9 : 0;
    slot->path = arena_text(&program->arena, free_path, strlen(free_path));
    if (slot->path == NULL)
        return TN_ERR_MEMORY;
    dot = strrchr(slot->path, '.');
    slot->name = dot != NULL ? dot + 1 : slot->path;
    tn_snprint(above, sizeof above, "%.*s", dot != NULL ? (int)(dot - slot->path) : 0, slot->path);
    slot->part = onnx_tree_part(file, above);
    if (slot->part < 0)
        return tn_error_last_code();
    return names_add(&file->slots, slot->path, index);
}

/* Whether an exporter made the name up: "onnx::Conv_193", "/layer1/Constant_output_0", "val_7". */
static bool is_made_up(const char *name)
{
    static const char *const begins[] = { "onnx::", "/", "val_", "_val_", "scalar_tensor" };

    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

int64_t onnx_tree_slot(struct onnx_file *file, const char *name, tn_tensor *tensor, bool parameter,
                       uint32_t flags)
{
    struct program *program = file->program;
    char path[PROGRAM_PATH];
    struct slot *slot, *more;

    if (program->n_slots == file->slots_capacity) {
        file->slots_capacity = 2 * file->slots_capacity + 64;
        more = arena_new(&program->arena, (uint64_t)file->slots_capacity, sizeof *more);
        if (more == NULL)
            return -1;
        if (program->n_slots > 0)
            memcpy(more, program->slots, (size_t)program->n_slots * sizeof *more);
        program->slots = more;
    }
    if (strncmp(name, "onnx::", 6) != 0 && is_made_up(name)) {
        parameter = false;
        flags |= TN_SLOT_FLAG_NOT_PERSISTENT;
    }
    slot = &program->slots[program->n_slots];
    *slot = (struct slot){
        .tensor = tn_tensor_keep(tensor), .flags = flags, .parameter = parameter, .grad = parameter
    };
    path_of(name, path, sizeof path);
    /* So that the slot is dropped with the program after a failure, too. */
    return place(file, path, program->n_slots++) == TN_OK ? program->n_slots - 1 : -1;
}

/* ---- the modules of a node ------------------------------------------------------------------- */

/* Reads the next text of a list as Python prints it: ['a', 'b']. NULL: the end. */
static const char *next_text(const char **at, size_t *length)
{
    const char *first = strchr(*at, '\''), *end = first != NULL ? strchr(first + 1, '\'') : NULL;

    if (end == NULL)
        return NULL;
    *length = (size_t)(end - first - 1);
    *at = end + 1;
    return first + 1;
}

static tn_status add_level(struct onnx_file *file, struct node *node, const char *path,
                           const char *type)
{
    int64_t part = onnx_tree_part(file, path);

    if (part < 0)
        return tn_error_last_code();
    if (type != NULL && file->program->parts[part].type == NULL)
        file->program->parts[part].type = type;
    node->stack[node->n_stack++] = (struct stack_level){ part, "" };
    return TN_OK;
}

/* The last word of a class: "Conv2d" of "torch.nn.modules.conv.Conv2d". */
static const char *type_name(struct onnx_file *file, const char *class, size_t length)
{
    size_t first = length;

    while (first > 0 && class[first - 1] != '.')
        first--;
    return arena_text(&file->program->arena, class + first, length - first);
}

/* "['', 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d_1']", the last one being the node, and the
 * classes of these modules. */
static tn_status read_scopes(struct onnx_file *file, const char *scopes, const char *classes,
                             struct node *node)
{
    char path[PROGRAM_PATH], clean[PROGRAM_PATH];
    size_t length, class_length = 0;
    const char *next, *text = next_text(&scopes, &length), *class = NULL, *type;
    tn_status status = TN_OK;

    while (status == TN_OK && text != NULL && node->n_stack < PROGRAM_LEVELS) {
        if (classes != NULL)
            class = next_text(&classes, &class_length);
        tn_snprint(path, sizeof path, "%.*s", (int)(length < 900 ? length : 900), text);
        next = next_text(&scopes, &length);
        type = class != NULL ? type_name(file, class, class_length) : NULL;
        if (next == NULL)
            break;
        text = next;
        if (path[0] == '\0') {
            if (file->program->parts[0].type == NULL && type != NULL && type[0] != '\0')
                file->program->parts[0].type = type;
            continue;
        }
        path_of(path, clean, sizeof clean);
        if (is_module_path(file, clean))
            status = add_level(file, node, clean, type != NULL && type[0] != '\0' ? type : NULL);
    }
    return status;
}

/* "/layer1/layer1.0/conv1/Conv": a word that begins with the one before it and a dot is a child by
 * its number. */
static tn_status read_name(struct onnx_file *file, const char *name, struct node *node)
{
    char path[PROGRAM_PATH] = "", clean[PROGRAM_PATH], word[PROGRAM_PATH], last[PROGRAM_PATH] = "";
    const char *slash;
    tn_status status = TN_OK;

    for (name++; status == TN_OK && (slash = strchr(name, '/')) != NULL; name = slash + 1) {
        size_t length = (size_t)(slash - name), n = strlen(path), before = strlen(last);
        const char *own = word;

        if (length == 0 || n + length + 2 >= sizeof path || node->n_stack == PROGRAM_LEVELS)
            return TN_OK;
        tn_snprint(word, sizeof word, "%.*s", (int)length, name);
        if (before > 0 && strncmp(word, last, before) == 0 && word[before] == '.')
            own = word + before + 1;
        tn_snprint(path + n, sizeof path - n, "%s%s", n > 0 ? "." : "", own);
        tn_snprint(last, sizeof last, "%s", word);
        path_of(path, clean, sizeof clean);
        if (is_module_path(file, clean))
            status = add_level(file, node, clean, NULL);
    }
    return status;
}

tn_status onnx_tree_stack(struct onnx_file *file, const char *scopes, const char *classes,
                          struct node *node)
{
    if (scopes == NULL && node->name[0] != '/')
        return TN_OK;
    node->stack = arena_new(&file->program->arena, PROGRAM_LEVELS + 1, sizeof *node->stack);
    if (node->stack == NULL)
        return TN_ERR_MEMORY;
    return scopes != NULL ? read_scopes(file, scopes, classes, node)
                          : read_name(file, node->name, node);
}

/* ---- what the nodes say of the tensors ------------------------------------------------------- */

/* What the inputs of a function are: a bit for each input that is no parameter, and the names of
 * the tensors and the type of the module with them. */
static const struct {
    const char *function, *type;
    uint32_t buffers;
    const char *names[3]; /* of inputs 0 to 2 */
} roles[] = {
    { "BatchNormalization", "BatchNorm2d", 0x18, { NULL, "weight", "bias" } },
    { "Conv", "Conv2d", 0, { NULL, "weight", "bias" } },
    { "ConvTranspose", "ConvTranspose2d", 0, { NULL, "weight", "bias" } },
    { "Gemm", "Linear", 0, { NULL, "weight", "bias" } },
    { "MatMul", "Linear", 0, { NULL, "weight_transposed", NULL } },
    { "Add", NULL, 0, { "bias", "bias", NULL } },
    { "LayerNormalization", "LayerNorm", 0, { NULL, "weight", "bias" } },
    { "InstanceNormalization", "InstanceNorm2d", 0, { NULL, "weight", "bias" } },
    { "PRelu", "PReLU", 0, { NULL, "weight", NULL } },
    { "Gather", "Embedding", 0, { "weight", NULL, NULL } },
    { "QuantizeLinear", NULL, 0x7, { NULL, NULL, NULL } },
    { "DequantizeLinear", NULL, 0x7, { NULL, NULL, NULL } },
    { "QLinearConv", NULL, 0xff, { NULL, NULL, NULL } },
    { "QLinearMatMul", NULL, 0xff, { NULL, NULL, NULL } },
    { "DynamicQuantizeLinear", NULL, 0x7, { NULL, NULL, NULL } },
    { "Resize", NULL, 0xe, { NULL, NULL, NULL } },
    { "Clip", NULL, 0x6, { NULL, NULL, NULL } },
    { "Pad", NULL, 0x6, { NULL, NULL, NULL } },
};

enum { ROLES = sizeof roles / sizeof *roles };

static int64_t slot_of(const struct program *program, const struct arg *arg)
{
    return arg->kind == ARG_VALUE ? program->main.values[arg->as.value].bound : -1;
}

/* Gives a parameter with a made-up name that of its module. */
static tn_status rename_slot(struct onnx_file *file, const struct node *node, int64_t index,
                             const char *name)
{
    struct slot *slot = &file->program->slots[index];
    char path[PROGRAM_PATH];

    if (node->n_stack == 0 || strncmp(slot->path, "onnx__", 6) != 0)
        return TN_OK;
    tn_snprint(path, sizeof path, "%.900s.%s",
               file->program->parts[node->stack[node->n_stack - 1].part].path, name);
    return is_free(file, path) ? place(file, path, index) : TN_OK;
}

/* A node without modules of its own whose tensors all belong to one module is a call of that. */
static tn_status give_stack(struct onnx_file *file, struct node *node)
{
    struct program *program = file->program;
    int64_t part = 0;

    for (int64_t i = 0; i < node->n_args; i++) {
        int64_t slot = slot_of(program, &node->args[i]);

        if (slot < 0)
            continue;
        if (part > 0 && program->slots[slot].part != part)
            return TN_OK;
        part = program->slots[slot].part;
    }
    if (part <= 0)
        return TN_OK;
    node->stack = arena_new(&program->arena, 1, sizeof *node->stack);
    if (node->stack == NULL)
        return TN_ERR_MEMORY;
    node->stack[0] = (struct stack_level){ part, "" };
    node->n_stack = 1;
    return TN_OK;
}

static tn_status apply_role(struct onnx_file *file, const struct node *node, int role)
{
    struct program *program = file->program;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < node->n_args && i < 32 && status == TN_OK; i++) {
        int64_t slot = slot_of(program, &node->args[i]);

        if (slot < 0)
            continue;
        if ((roles[role].buffers >> i & 1) != 0)
            program->slots[slot].parameter = false;
        if (i < 3 && roles[role].names[i] != NULL)
            status = rename_slot(file, node, slot, roles[role].names[i]);
        slot = program->slots[slot].part;
        if (i == 1 && slot > 0 && program->parts[slot].type == NULL)
            program->parts[slot].type = roles[role].type;
    }
    return status;
}

tn_status onnx_tree_finish(struct onnx_file *file)
{
    struct program *program = file->program;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < program->main.n_nodes && status == TN_OK; i++) {
        struct node *node = &program->main.nodes[i];

        for (int role = 0; role < ROLES && status == TN_OK; role++)
            if (strcmp(roles[role].function, node->function) == 0)
                status = apply_role(file, node, role);
        if (status == TN_OK && node->n_stack == 0)
            status = give_stack(file, node);
    }
    return status;
}
