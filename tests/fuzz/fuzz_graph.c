/* SPDX-License-Identifier: MIT
 *
 * The text form of graphs, with any text: the parser must read a text or refuse it with a message.
 * A graph that was read is printed, and must be the same when it is read from the printed text.
 *
 *     configure --enable-fuzzers CC=clang && make fuzzers
 *     tests/fuzz/fuzz_graph new/ tests/fuzz/corpus/graph */
#include "tests/fuzz/fuzz.h"

#include "core/base/internal.h"

#include <tenon/tenon.h>

static char *print(const tn_graph *graph, const char *form)
{
    int64_t length = tn_graph_print(graph, form, NULL, 0);
    char *text;

    fuzz_require(length >= 0);
    text = malloc((size_t)length + 1);
    fuzz_require(text != NULL);
    fuzz_require(tn_graph_print(graph, form, text, (size_t)length + 1) == length);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tn_module *root;
    char *text = fuzz_text(data, size);
    tn_state *constants;
    tn_graph *graph;

    if (root == NULL)
        root = tn_module_new("Sequential(Linear(3, 3), ReLU())");
    fuzz_require(root != NULL);
    graph = tn_graph_parse(text, root, NULL);
    if (graph == NULL) {
        fuzz_require(tn_error_text()[0] != '\0');
    } else {
        static const char *const forms[] = { "text", "code" };
        char *first = print(graph, "text");

        constants = tn_graph_constants(graph);
        for (int i = 0; i < 2; i++) {
            char *form = print(graph, forms[i]), *again;
            tn_graph *read = tn_graph_parse(form, root, constants);

            fuzz_require(read != NULL);
            again = print(read, "text");
            fuzz_require(strcmp(first, again) == 0);
            free(again);
            free(form);
            tn_graph_drop(read);
        }
        free(print(graph, "json"));
        free(print(graph, "table"));
        tn_state_drop(constants);
        free(first);
    }
    tn_graph_drop(graph);
    tn_error_clear();
    free(text);
    return 0;
}
