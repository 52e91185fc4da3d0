/* SPDX-License-Identifier: MIT
 *
 * The modules to which a call of a function belongs. The text has an entry for each module, from
 * the root on, separated by semicolons: "L__self__,,Net;L__self__b@1,b,torch.nn.modules.Linear":
 * the key of the call, the path and the type. */
#include "pt2.h"

#include <string.h>

/* A part of the text. */
struct piece {
    const char *at;
    size_t length;
};

/* Takes the text up to a separator, or all that is left, from `rest`. */
static struct piece take(struct piece *rest, char separator)
{
    const char *end = memchr(rest->at, separator, rest->length);
    struct piece piece = { rest->at, end != NULL ? (size_t)(end - rest->at) : rest->length };
    size_t used = piece.length + (end != NULL);

    rest->at += used;
    rest->length -= used;
    return piece;
}

/* Strict mode writes L['self'].b for b, and L['self'] for the root; "@1" is the second call. */
static struct piece plain_path(struct piece path)
{
    const char *at = memchr(path.at, '@', path.length);

    if (at != NULL)
        path.length = (size_t)(at - path.at);
    if (path.length > 1 && memcmp(path.at, "L[", 2) == 0) {
        const char *end = memchr(path.at, ']', path.length);
        size_t skip = end != NULL ? (size_t)(end - path.at) + 1 : path.length;

        skip += skip < path.length && path.at[skip] == '.';
        path.at += skip;
        path.length -= skip;
    }
    return path;
}

/* Sets the type of a module that has none: the last word of "torch.nn.modules.conv.Conv2d". */
static tn_status set_type(struct pt2_file *file, struct part *part, struct piece type)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789_";
    size_t start = type.length, length;

    if (part->type != NULL)
        return TN_OK;
    while (start > 0 && type.at[start - 1] != '.')
        start--;
    for (length = 0; start + length < type.length && length < 100; length++)
        if (strchr(letters, type.at[start + length]) == NULL)
            break;
    if (length == 0)
        return TN_OK;
    part->type = arena_text(&file->program->arena, type.at + start, length);
    return part->type != NULL ? TN_OK : TN_ERR_MEMORY;
}

static tn_status read_level(struct pt2_file *file, struct piece entry, struct stack_level *level)
{
    struct piece key = take(&entry, ','), path = plain_path(take(&entry, ','));
    char text[PROGRAM_PATH];

    if (path.length >= sizeof text)
        return pt2_wrong("nn_module_stack", "paths of less than 1000 bytes");
    memcpy(text, path.at, path.length);
    text[path.length] = '\0';
    level->part = pt2_program_part(file, text);
    if (level->part < 0)
        return tn_error_last_code();
    level->call = arena_text(&file->program->arena, key.at, key.length);
    return level->call != NULL ? set_type(file, &file->program->parts[level->part], entry)
                               : TN_ERR_MEMORY;
}

tn_status pt2_stack_read(struct pt2_file *file, const char *text, struct node *node)
{
    struct piece rest = { text, strlen(text) };
    int64_t count = 1;
    tn_status status = TN_OK;

    /* What PyTorch inserts itself belongs to no module. */
    if (rest.length == 0 || strncmp(text, "_empty_nn_module_stack", 22) == 0)
        return TN_OK;
    for (const char *at = text; (at = strchr(at, ';')) != NULL; at++)
        count++;
    if (count > PROGRAM_LEVELS)
        return pt2_wrong("nn_module_stack", "at most 64 modules in each other");
    node->stack = arena_new(&file->program->arena, (uint64_t)count, sizeof *node->stack);
    if (node->stack == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = read_level(file, take(&rest, ';'), &node->stack[i]);
    node->n_stack = count;
    return status;
}
