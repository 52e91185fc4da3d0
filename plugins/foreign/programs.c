/* SPDX-License-Identifier: MIT
 *
 * The programs that modules run now, and the interface by which programs of the user find the one
 * of a module. A module of the tree has a pointer into its program, but other code can set such
 * pointers on its own modules: this list says which ones are ours. */
#include "run.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct program *first;

void programs_add(struct program *program)
{
    pthread_mutex_lock(&lock);
    program->next = first;
    first = program;
    program->listed = true;
    pthread_mutex_unlock(&lock);
}

void programs_remove(struct program *program)
{
    struct program **at = &first;

    if (!program->listed)
        return;
    pthread_mutex_lock(&lock);
    while (*at != program)
        at = &(*at)->next;
    *at = program->next;
    pthread_mutex_unlock(&lock);
}

/* A program that holds `user` stays while the caller has the module. */
struct part *programs_part(tn_module *module)
{
    uintptr_t user = (uintptr_t)tn_module_user(module);
    struct program *at;

    pthread_mutex_lock(&lock);
    for (at = first; at != NULL; at = at->next)
        if (user >= (uintptr_t)at->parts && user < (uintptr_t)(at->parts + at->n_parts))
            break;
    pthread_mutex_unlock(&lock);
    return at != NULL ? (struct part *)user : NULL;
}

struct program *programs_of(tn_module *module)
{
    struct part *part = programs_part(module);

    if (part != NULL && part->path[0] == '\0')
        return part->program;
    if (part != NULL)
        tn_fail(TN_ERR_TYPE, "module: it is %s of a program, got %s; expected the whole program",
                part->path, tn_module_type(module));
    else
        tn_fail(TN_ERR_TYPE,
                "module: it runs no program of a file, got %s; expected what tn_module_from_file "
                "makes of a .pt2 file",
                tn_module_type(module));
    return NULL;
}

static const char *text(tn_module *module, size_t *size)
{
    struct program *program = programs_of(module);

    if (program == NULL)
        return NULL;
    *size = program->text_size;
    return program->text;
}

static tn_state *files(tn_module *module)
{
    struct program *program = programs_of(module);

    return program != NULL ? program->files : NULL;
}

static const char *extension(tn_module *module)
{
    struct program *program = programs_of(module);

    return program == NULL ? NULL : program->rules_of == RULES_ONNX ? ".onnx" : ".pt2";
}

const tn_program_api programs_api = { text, files, extension };
