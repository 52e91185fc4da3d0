/* SPDX-License-Identifier: MIT
 *
 * Files of other programs, which Tenon cannot read: says what a file is, and which way in there is.
 * A format without extensions, so it is never chosen by the name of a file that is written, or for
 * the file of weights of a folder. */
#include "formats.h"

#include <string.h>
#include <strings.h>

enum { MARK = 8 };

/* How a file is known: by its first bytes, by its extension, or by both. */
struct other {
    const char *extension; /* NULL: any */
    int length;            /* of the mark; 0: none */
    int at;                /* where in the file the mark is */
    const char *mark;
    const char *what, *way;
};

#define SAVE_WEIGHTS                                                                               \
    "the weights as safetensors (of PyTorch: safetensors.torch.save_file(net.state_dict(), "       \
    "\"net.safetensors\")), and the network as a spec"

static const struct other others[] = {
    { NULL, 4, 0, "GGUF", "weights of llama.cpp (GGUF), which are often quantized",
      "the original weights, which the publisher of the model has as safetensors; the package gguf "
      "of Python (GGUFReader, dequantize) reads this file" },
    { NULL, 8, 0, "\x89HDF\r\n\x1a\n", "HDF5, as Keras (.h5) writes it",
      "npz: h5py of Python reads this file, numpy.savez writes npz; Keras has kernels as [inputs, "
      "outputs], Tenon as [outputs, inputs]" },
    { ".keras", 4, 0, "PK\x03\x04", "a network of Keras",
      "npz: in Python, numpy.savez writes the arrays of keras.models.load_model(...).get_weights()"
      "; Keras has kernels as [inputs, outputs], Tenon as [outputs, inputs]" },
    { NULL, 4, 4, "TFL3", "a network of TensorFlow Lite",
      "the weights of the network that it was made from, as npz or safetensors, and the network as "
      "a spec" },
    { ".pb", 0, 0, "", "a graph of TensorFlow",
      "npz: in Python, numpy.savez writes the variables of tf.saved_model.load(...)" },
    { ".mlmodel", 0, 0, "", "a network of Core ML", SAVE_WEIGHTS },
    { ".pkl", 0, 0, "", "objects of Python (pickle)",
      "npz or safetensors: load it in Python, and save the arrays with numpy.savez" },
    { ".joblib", 0, 0, "", "objects of Python (joblib)",
      "npz or safetensors: load it in Python, and save the arrays with numpy.savez" },
    { NULL, 6, 0, "MATLAB", "a file of MATLAB",
      "npz: in Python, numpy.savez writes the arrays of scipy.io.loadmat" },
};

static bool fits(const struct other *other, const tn_source *source)
{
    char found[MARK];
    size_t length = strlen(source->path),
           tail = other->extension != NULL ? strlen(other->extension) : 0;

    if (tail > 0 &&
        (length <= tail || strcasecmp(source->path + length - tail, other->extension) != 0))
        return false;
    return other->length == 0 || (source->size >= (uint64_t)(other->at + other->length) &&
                                  source->read(source->user, (uint64_t)other->at, found,
                                               (size_t)other->length) == TN_OK &&
                                  memcmp(found, other->mark, (size_t)other->length) == 0);
}

static const struct other *find(const tn_source *source)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (fits(&others[i], source))
            return &others[i];
    return NULL;
}

static bool recognize(const tn_format_def *self, const tn_source *source)
{
    (void)self;
    return find(source) != NULL;
}

static tn_status load(const tn_format_def *self, const tn_source *source, tn_state *state)
{
    const struct other *other = find(source);

    (void)self;
    (void)state;
    if (other == NULL)
        return tn_fail(TN_ERR_FORMAT, "%s: not a file of another program that is known here",
                       source->path);
    return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: cannot be read, got %s; expected %s", source->path,
                   other->what, other->way);
}

const tn_format_def format_others = {
    TN_HEAD(tn_format_def),
    .name = "other-programs",
    .help = "files of other programs (GGUF, Keras, TensorFlow Lite, ...): says what they are, "
            "and how to get their weights; reads none of them",
    .recognize = recognize,
    .load = load,
};
