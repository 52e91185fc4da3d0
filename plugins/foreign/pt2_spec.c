/* SPDX-License-Identifier: MIT
 *
 * The names of the arguments and results of a `.pt2` program. Each of "in_spec" and "out_spec" is
 * JSON in a string: a tree of containers (tuples, dictionaries, classes of the program), whose
 * leaves are the inputs or outputs in their order. Names are a help: what cannot be read gives
 * none. */
#include "pt2.h"

#include <string.h>

enum { NAMED = 1000 }; /* results, at most, if they have names */

struct naming {
    struct pt2_file *file;
    const char **names; /* one for each leaf */
    int64_t count, most;
};

static const json_t *children_of(const json_t *spec)
{
    return json_object_get(spec, "children_spec");
}

static bool is_leaf(const json_t *spec)
{
    return json_array_size(children_of(spec)) == 0 && json_is_null(json_object_get(spec, "type"));
}

static void add_leaf(struct naming *naming, const char *name)
{
    if (naming->count < naming->most)
        naming->names[naming->count] = name != NULL ? pt2_text(naming->file, name) : NULL;
    naming->count++;
}

/* Adds the leaves of a tree; the tree itself has the name, if it is a leaf. */
static void add_tree(struct naming *naming, const json_t *spec, const char *name, int level)
{
    const json_t *children = children_of(spec);

    if (is_leaf(spec)) {
        add_leaf(naming, name);
        return;
    }
    for (size_t i = 0; i < json_array_size(children) && level < PROGRAM_LEVELS; i++)
        add_tree(naming, json_array_get(children, i), NULL, level + 1);
}

/* Adds the leaves of a container, whose children have the names that a list of texts has. */
static void add_children(struct naming *naming, const json_t *spec, const json_t *names)
{
    const json_t *children = children_of(spec);

    for (size_t i = 0; i < json_array_size(children); i++)
        add_tree(naming, json_array_get(children, i), json_string_value(json_array_get(names, i)),
                 1);
}

/* Parses JSON in a string of the program; NULL if there is none, or nothing that can be read. The
 * caller drops the result. */
static json_t *parse(struct pt2_file *file, const json_t *string)
{
    json_error_t error;
    const char *text = json_string_value(string);
    json_t *json = text != NULL ? pt2_archive_parse(file, text, strlen(text), &error) : NULL;

    if (json == NULL)
        tn_error_clear();
    return json;
}

/* The keys of a dictionary or class: its context is a list of them, as JSON in a string. The caller
 * drops the result. */
static json_t *keys_of(struct pt2_file *file, const json_t *spec)
{
    json_t *keys = parse(file, json_object_get(spec, "context"));

    if (json_array_size(keys) == json_array_size(children_of(spec)))
        return keys;
    json_decref(keys);
    return NULL;
}

static bool start(struct naming *naming, struct pt2_file *file, int64_t most)
{
    *naming = (struct naming){ file, NULL, 0, most };
    naming->names = arena_new(&file->program->arena, (uint64_t)most + 1, sizeof *naming->names);
    return naming->names != NULL;
}

/* The call has a tuple of positional arguments and a dictionary of the others. */
static tn_status name_inputs(struct pt2_file *file, const json_t *signature)
{
    struct program *program = file->program;
    struct naming naming;
    /* [1, TREE] */
    json_t *whole = parse(file, json_object_get(signature, "in_spec")), *keys;
    const json_t *spec = json_array_get(whole, 1);
    const json_t *positional = json_array_get(children_of(spec), 0),
                 *named = json_array_get(children_of(spec), 1);

    if (!start(&naming, file, program->n_inputs)) {
        json_decref(whole);
        return TN_ERR_MEMORY;
    }
    keys = keys_of(file, named);
    add_children(&naming, positional, json_object_get(signature, "forward_arg_names"));
    add_children(&naming, named, keys);
    json_decref(keys);
    json_decref(whole);
    for (int64_t i = 0; i < program->n_inputs && naming.count == program->n_inputs; i++)
        program->inputs[i].name = naming.names[i];
    return TN_OK;
}

/* Results have names only if all of them have one. */
static tn_status name_outputs(struct pt2_file *file, const json_t *signature)
{
    struct program *program = file->program;
    struct naming naming;
    json_t *whole = parse(file, json_object_get(signature, "out_spec")), *keys;
    const json_t *spec = json_array_get(whole, 1);
    int64_t first = 0;
    bool all;

    while (first < program->n_outputs && program->outputs[first].kind != OUTPUT_USER)
        first++;
    keys = keys_of(file, spec);
    if (!start(&naming, file, program->n_outputs)) {
        json_decref(keys);
        json_decref(whole);
        return TN_ERR_MEMORY;
    }
    add_children(&naming, spec, keys);
    json_decref(keys);
    json_decref(whole);
    all = naming.count > 0 && naming.count <= NAMED && first + naming.count <= program->n_outputs;
    for (int64_t i = 0; i < naming.count && all; i++) {
        all = naming.names[i] != NULL && naming.names[i][0] != '\0';
        for (int64_t k = 0; k < i && all; k++)
            all = strcmp(naming.names[i], naming.names[k]) != 0;
    }
    for (int64_t i = 0; i < naming.count && all; i++)
        program->outputs[first + i].name = naming.names[i];
    return TN_OK;
}

tn_status pt2_spec_read(struct pt2_file *file, const json_t *calls)
{
    const json_t *signature = json_object_get(json_array_get(calls, 0), "signature");
    tn_status status = name_inputs(file, signature);

    return status == TN_OK ? name_outputs(file, signature) : status;
}
