/* SPDX-License-Identifier: MIT
 *
 * Programs of other frameworks as modules (docs/guides/from-pytorch.md). tn_module_from_file opens
 * them, and tn_module_save(module, "net.pt2") writes the program of a module with the values that
 * its tensors have now. The functions here call the plugin tenon.foreign, which provides the
 * interface tenon.foreign.programs; without the plugin they fail and name the interface.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_FOREIGN_H
#define TENON_FOREIGN_H

#ifndef TENON_PLUGIN_H
#include <tenon/tenon.h>

#include <tenon/query.h>
#endif

TN_BEGIN_DECLS

/* The table of the interface. Programs call the functions below. */
typedef struct tn_program_api {
    const char *(*text)(tn_module *module, size_t *size);
    tn_state *(*files)(tn_module *module);
} tn_program_api;

/* Returns the functions of the plugin; NULL and sets the error on failure. */
static inline const tn_program_api *tn_program_find(void)
{
    const struct tn_interface_need need = { "tenon.foreign.programs", 0, 0,
                                            (uint32_t)sizeof(tn_program_api), 0 };
    return (const tn_program_api *)tn_interface_find(NULL, &need, NULL);
}

/* Returns the text of the program that a module runs, as its file has it (in a `.pt2` file JSON),
 * and its length in bytes; a NUL follows. Modules with the same text compute the same from the same
 * tensors. Fails with TN_ERR_TYPE for any other module, also for one below the root of a program.
 * [borrowed] */
static inline const char *tn_program_text(tn_module *module, size_t *size)
{
    const tn_program_api *api = tn_program_find();
    return api != NULL ? api->text(module, size) : NULL;
}

/* Returns the extra files of a program, to read and to change: the name of each entry is that of a
 * file, its value a text (TN_VALUE_STRING) or bytes (TN_VALUE_BYTES). They are loaded and saved
 * with the module; copies of the module share them. PyTorch's `extra_files` are these. Only one
 * thread may use them at a time. Fails as tn_program_text does. [borrowed] */
static inline tn_state *tn_program_files(tn_module *module)
{
    const tn_program_api *api = tn_program_find();
    return api != NULL ? api->files(module) : NULL;
}

TN_END_DECLS
#endif
