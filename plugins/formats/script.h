/* SPDX-License-Identifier: MIT
 *
 * Shared by the two files of the format "script". The text "tenon.script" is
 *
 *   {"version": 1, "training": false,
 *    "modules": [["", "Net"], ["a", "Linear"], ["b", "Linear", "a"]],  path, type, same module
 *    "modes": [["", true], ["a", false]],   only if not all modules have the mode "training"
 *    "slots": [SLOT...], "constants": [SLOT...], "files": [["notes.txt", true]]}  name, is a text
 *
 * with modules in the order in which they are made, parents first, and slots
 *
 *   {"path": "a.weight", "parameter": true, "grad": true, "flags": 1,
 *    "same": "b.weight",      the same tensor object; nothing else follows
 *    "data": "a.weight",      the tensor of the file; without it, the one with this path
 *    "strides": [1, 3],       of the values, which the file has in row-major order
 *    "offset": 0, "shape": [2, 3], "strides": [3, 1]}   a view of "data", which has one dimension
 *
 * The text "tenon.requires" has a revision and a plugin for each operator, and the versions of
 * these plugins; `true` is there for an operator that only decompositions call. The text
 * "tenon.functions" has the decompositions; one that another uses comes before it:
 *
 *   {"operators": {"relu": [1, "tenon.ops"], "mul": [1, "tenon.ops", true]},
 *    "plugins": {"tenon.ops": "0.1.0"}}
 *   [["org.scale[by=2](float32[2, 3])", "graph(%self : org.scale, %x : float32[2, 3]):..."]]
 */
#ifndef TN_FORMATS_SCRIPT_H
#define TN_FORMATS_SCRIPT_H

#include "formats.h"

#include "json.h"

#define SCRIPT_VERSION 1
#define SCRIPT_KEY "tenon.script"
#define SCRIPT_GRAPH "tenon.graph"
#define SCRIPT_GRAPH_EVAL "tenon.graph.eval"
#define SCRIPT_GRAPH_TRAIN "tenon.graph.train"
#define SCRIPT_GRAPH_MIXED "tenon.graph.mixed"
#define SCRIPT_REQUIRES "tenon.requires"
#define SCRIPT_FUNCTIONS "tenon.functions"
#define SCRIPT_CONSTANTS "_constants"
#define SCRIPT_STORAGES "_storages."
#define SCRIPT_FILES "_files/"
#define SCRIPT_FILE_NAME 900 /* bytes of the longest name of a file */

/* script_read.c: makes the script of a file. */
TN_HIDDEN tn_module *script_load_module(const tn_format_def *self, const tn_source *source);
/* script_requires.c: parses a text of the metadata. Returns NULL and sets the error on failure; the
 * caller drops it. */
TN_HIDDEN json_t *script_parse(const char *path, const tn_state *state, const char *key);
/* Checks the operators before the graphs are read, to name the plugin of one that is missing.
 * `operators` gets what tn_graph_parse_with needs. */
TN_HIDDEN tn_status script_check_requires(const char *path, const tn_state *state,
                                          tn_state *operators);

#endif
