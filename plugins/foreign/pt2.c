/* SPDX-License-Identifier: MIT
 *
 * The format "pt2": programs that torch.export.save wrote. */
#include "foreign.h"
#include "pt2.h"

#include <string.h>

static bool recognize(const tn_format_def *self, const tn_source *source)
{
    (void)self;
    return pt2_archive_recognize(source);
}

static tn_status read_program(const tn_source *source, struct program *program)
{
    struct pt2_file file;
    tn_status status = pt2_archive_open(source, &file);

    file.program = program;
    if (status == TN_OK)
        status = pt2_program_read(&file);
    if (status == TN_OK)
        status = pt2_archive_extra(&file, program->files);
    if (status == TN_OK) {
        program->text = file.text;
        program->text_size = file.text_size;
        file.text = NULL;
    }
    if (status != TN_OK && strncmp(tn_error_text(), source->path, strlen(source->path)) != 0)
        status = tn_error_prefix("%s: pt2: ", source->path);
    pt2_archive_close(&file);
    return status;
}

static tn_module *load_module(const tn_format_def *self, const tn_source *source)
{
    struct program *program = program_new(source->path);
    tn_module *module = NULL;

    (void)self;
    if (program != NULL && read_program(source, program) == TN_OK &&
        program_bind(program) == TN_OK && segments_divide(program) == TN_OK)
        module = module_make(program);
    program_drop(program);
    return module;
}

/* The tensors, so that a module of another origin can load them, and the texts among the extra
 * files as metadata. */
static tn_status load(const tn_format_def *self, const tn_source *source, tn_state *state)
{
    struct program *program = program_new(source->path);
    tn_status status = program != NULL ? read_program(source, program) : TN_ERR_MEMORY;

    (void)self;
    for (int64_t i = 0; status == TN_OK && i < program->n_slots; i++)
        if ((program->slots[i].flags & TN_SLOT_FLAG_NOT_PERSISTENT) == 0)
            status = tn_state_set(state, program->slots[i].path, program->slots[i].tensor);
    for (int64_t i = 0; status == TN_OK && i < tn_state_count(program->files); i++) {
        tn_value value = tn_state_value(program->files, i);

        if (value.kind == TN_VALUE_STRING)
            status = tn_state_set_meta(state, tn_state_name(program->files, i), value.as.s);
    }
    program_drop(program);
    return status;
}

const tn_format_def foreign_pt2 = {
    TN_HEAD(tn_format_def),
    .name = "pt2",
    .help = "programs that torch.export.save wrote",
    .extensions = ".pt2",
    .recognize = recognize,
    .load = load,
    .load_module = load_module,
    .save_module = pt2_write,
};
