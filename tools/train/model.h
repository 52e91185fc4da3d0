/* SPDX-License-Identifier: MIT
 *
 * Models as the commands name them: a spec, the name of a layer, or a file. */
#ifndef TN_TOOLS_TRAIN_MODEL_H
#define TN_TOOLS_TRAIN_MODEL_H

#include "../tool.h"

/* Metadata of a file with weights. MODEL_SPEC is the text from which tn_module_parse makes the
 * module, MODEL_CLASSES a JSON list with the names of the classes, MODEL_TRANSFORM the transform of
 * the inputs, which is used unless the command line has another one. */
#define MODEL_SPEC "tenon.spec"
#define MODEL_CLASSES "tenon.classes"
#define MODEL_TRANSFORM "tenon.transform"
/* In a checkpoint, the digest of the program that the model is (program.h). */
#define MODEL_PROGRAM "tenon.program"
/* Metadata of a script, which is a module by itself (docs/guides/scripts.md). Its texts are among
 * the metadata. */
#define MODEL_SCRIPT "tenon.script"

/* What a model is, for the help of the commands. */
#define MODEL_HELP                                                                                 \
    "MODEL is a spec, the name of a layer, a file with a spec or a printed model, a script, "      \
    "a program of PyTorch (.pt2) or ONNX, or a file with weights whose metadata has the spec "     \
    "(" MODEL_SPEC ")."

enum {
    /* Names that only the module or only the file has are listed on standard error, and are no
     * errors. */
    MODEL_LOOSE = 1,
    /* The tensors of a file become those of the module, whatever device they are on. */
    MODEL_ASSIGN = 2
};

/* What is known about a model besides the module. */
typedef struct model_notes {
    char *spec;      /* the text from which the module was made */
    bool loaded;     /* its weights were read from a file */
    tn_state *texts; /* without entries; has the metadata of the files that were read */
} model_notes;

/* Makes the module that `text` names, on the default device and in training mode:
 *
 *   Sequential(Linear(64, 10))  a spec
 *   resnet18                    a layer of a plugin, with its default options
 *   net.txt, @net.txt           a file with a spec or a printed model
 *   net.script                  a script (tenon script)
 *   net.safetensors, a folder   a file of tensors whose metadata has MODEL_SPEC, with its weights;
 *                               in a checkpoint those below "model."
 *
 * A text that is both a file and a layer is an error. `weights` is a file of tensors in any format
 * that is installed, NULL: none. `flags`: MODEL_... or 0. `notes` must be zero before; it is
 * freed by model_notes_free, also after a failure. Returns NULL and sets the error on failure; the
 * caller drops the module. */
tn_module *model_open(const char *text, const char *weights, uint32_t flags, model_notes *notes);
void model_notes_free(model_notes *notes);
/* Returns whether the name of a file has the ending of a format of tensors (model_write.c). */
bool model_is_tensors(const char *path);
/* Fails if the format of a file, by its name, would lose the spec of a model, or if the file is the
 * model or its weights (NULL: none), which are read (model_write.c). */
tn_status model_writable(const char *path, const char *model, const char *weights);
/* Writes the weights with the spec of the module and the metadata of the files that were read. */
tn_status model_write(tn_module *net, const model_notes *notes, const char *path);
/* Returns a text of the metadata, NULL if there is none. */
const char *model_note(const model_notes *notes, const char *key);

#endif
