/* SPDX-License-Identifier: MIT
 *
 * Reads a printed network and a file of its weights, and compares both with what it gets back:
 *
 *     printed MODEL.txt WEIGHTS
 *     printed MODEL.txt WEIGHTS load
 *
 * The text must be printed again as it was, the load is strict, and the state of the module must
 * have the tensors of the file: names, dtypes, shapes, and the first and the last element. With
 * `load` it only loads, and reads a byte of each page of the weights: networks.py measures its
 * memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

static char *whole_file(const char *path)
{
    enum { MOST = 1 << 20 };
    char *text = calloc(1, MOST + 1);
    FILE *file = fopen(path, "r");

    if (file == NULL || text == NULL || fread(text, 1, MOST, file) == 0) {
        fprintf(stderr, "%s: cannot be read\n", path);
        free(text);
        text = NULL;
    }
    if (file != NULL)
        fclose(file);
    return text;
}

/* Says where two texts differ first. Returns whether they do. */
static bool texts_differ(const char *got, const char *wanted)
{
    size_t line = 0;

    if (strcmp(got, wanted) == 0)
        return false;
    for (size_t i = 0; got[i] != 0 && got[i] == wanted[i]; i++)
        if (got[i] == '\n')
            line = i + 1;
    fprintf(stderr, "printed as '%.*s'; expected '%.*s'\n", (int)strcspn(got + line, "\n"),
            got + line, (int)strcspn(wanted + line, "\n"), wanted + line);
    return true;
}

static bool tensors_differ(tn_tensor *got, tn_tensor *wanted)
{
    size_t size = tn_dtype_size(tn_tensor_dtype(wanted));
    int64_t count = tn_tensor_numel(wanted);
    const char *a, *b;

    if (tn_tensor_dtype(got) != tn_tensor_dtype(wanted) ||
        tn_tensor_ndim(got) != tn_tensor_ndim(wanted) || !tn_tensor_is_contiguous(got))
        return true;
    for (int64_t i = 0; i < tn_tensor_ndim(wanted); i++)
        if (tn_tensor_size(got, i) != tn_tensor_size(wanted, i))
            return true;
    a = tn_tensor_data(got);
    b = tn_tensor_data(wanted);
    return count > 0 &&
           (memcmp(a, b, size) != 0 ||
            memcmp(a + size * (size_t)(count - 1), b + size * (size_t)(count - 1), size) != 0);
}

/* The file may have a tensor once that the module has under several names. */
static int states_differ(const tn_state *got, const tn_state *wanted)
{
    int bad = 0;

    for (int64_t i = 0; i < tn_state_count(wanted); i++) {
        const char *name = tn_state_name(wanted, i);
        int64_t at = tn_state_find(got, name);

        if (at < 0 || tensors_differ(tn_state_tensor(got, at), tn_state_tensor(wanted, i))) {
            fprintf(stderr, "%s: %s\n", name, at < 0 ? "not in the module" : "another tensor");
            bad++;
        }
    }
    return bad;
}

static bool read_back(const char *text, const char *weights)
{
    tn_module *net = tn_module_parse_skip_init(NULL, text);
    tn_state *file = tn_state_load_as(weights, TN_FILE_MAP), *state = NULL;
    char *again = NULL;
    bool good = false;

    if (net != NULL && file != NULL && tn_module_load(net, weights) == TN_OK &&
        (state = tn_module_state(net)) != NULL) {
        size_t size = (size_t)tn_module_repr(net, NULL, 0) + 1;

        again = calloc(1, size);
        good = again != NULL && tn_module_repr(net, again, size) > 0 &&
               !texts_differ(again, text) && states_differ(state, file) == 0;
    }
    if (tn_failed())
        fprintf(stderr, "%s\n", tn_error_text());
    free(again);
    tn_state_drop(state);
    tn_state_drop(file);
    tn_module_drop(net);
    return good && !tn_failed();
}

/* Loads the weights as tn_module_load does, and reads a byte of each page, so that all of them are
 * in memory. Not strict: a tie that the text does not show, such as GPT-2's, is missing. */
static bool load_only(const char *text, const char *weights)
{
    tn_module *net = tn_module_parse_skip_init(NULL, text);
    tn_state *file = tn_state_load_as(weights, TN_FILE_MAP), *state = NULL;

    if (net != NULL && file != NULL &&
        tn_module_load_report(net, file, TN_LOAD_WHOLE | TN_LOAD_TAKE, NULL) == TN_OK)
        state = tn_module_state(net);
    tn_state_drop(file);
    for (int64_t i = 0; state != NULL && i < tn_state_count(state); i++) {
        tn_tensor *tensor = tn_state_tensor(state, i);
        const volatile char *at = tn_tensor_data(tensor);
        size_t bytes = (size_t)tn_tensor_numel(tensor) * tn_dtype_size(tn_tensor_dtype(tensor));

        for (size_t byte = 0; byte < bytes; byte += 4096)
            (void)at[byte];
    }
    if (tn_failed())
        fprintf(stderr, "%s\n", tn_error_text());
    tn_state_drop(state);
    tn_module_drop(net);
    return !tn_failed();
}

int main(int count, char **arguments)
{
    bool load = count == 4 && strcmp(arguments[3], "load") == 0, right = count == 3 || load;
    char *text = right ? whole_file(arguments[1]) : NULL;
    bool good = text != NULL && (load ? load_only : read_back)(text, arguments[2]);

    if (!right)
        fprintf(stderr, "usage: printed MODEL.txt WEIGHTS [load]\n");
    free(text);
    return good ? 0 : right ? 1 : 2;
}
