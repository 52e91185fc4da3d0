/* SPDX-License-Identifier: MIT
 *
 * The layers of the plugin as tests/oracle/layers.txt builds and calls them, one after the other.
 */
#ifndef TN_TESTS_MODULE_EACH_ORACLE_LAYER_H
#define TN_TESTS_MODULE_EACH_ORACLE_LAYER_H

#include "tests/module/layer_inputs.h"

enum { LINE = 1 << 16, MOST = 6 };

static char spec[512];

/* The inputs of a call; none: the layer is built only. */
struct subject {
    tn_tensor *in[MOST];
    int64_t n_in;
};

/* Calls `ask` for each layer, with the layer's text in `spec`. Returns the number of layers. */
static int each_layer(void (*ask)(const struct subject *s))
{
    static char line[LINE];
    FILE *file = fopen(TN_TEST_SRCDIR "/tests/oracle/layers.txt", "r");
    struct subject s = { .n_in = 0 };
    int seen = 0;
    ck_assert_ptr_nonnull(file);
    while (fgets(line, LINE, file) != NULL) {
        TN_SCOPE;
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "layer ", 6) == 0 || strcmp(line, "end") == 0) {
            if (spec[0] != '\0') {
                ask(&s);
                seen++;
            }
            for (int64_t i = 0; i < s.n_in; i++)
                tn_tensor_drop(s.in[i]);
            s.n_in = 0;
            tn_snprint(spec, sizeof spec, "%s", line[0] == 'l' ? line + 6 : "");
        } else if (strncmp(line, "in ", 3) == 0) {
            s.in[s.n_in++] = layer_input(line + 3);
        }
    }
    fclose(file);
    return seen;
}

#endif
