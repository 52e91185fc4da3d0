/* SPDX-License-Identifier: MIT
 *
 * A rule that a program uses: its text is read once, when the program is loaded. */
#ifndef TN_FOREIGN_RULES_BOUND_H
#define TN_FOREIGN_RULES_BOUND_H

#include "arena.h"
#include "rules.h"

enum { RULES_ARGUMENTS = 64 }; /* at most, of a function */

struct rules_argument {
    const char *name;
    bool required;
    bool unused;    /* any value will do */
    tn_value value; /* the default */
};

struct rules_form;

struct rules_bound {
    const struct rule *rule;
    struct rules_argument *arguments;
    const char **names; /* of the arguments */
    int64_t count;
    int64_t mode; /* the argument that was the mode of the module; -1: none */
    struct rules_form *forms;
    int64_t n_forms;
    int64_t absent; /* results at the end that nobody can use */
};

/* Finds the rule of a function; *in_place becomes true if it is the rule of a function that does
 * not work in place. Returns NULL, without an error, if there is none. */
TN_HIDDEN const struct rule *rules_find(const char *function, bool *in_place);
/* The rule at `index` of all rules; NULL after the last one. */
TN_HIDDEN const struct rule *rules_at(int64_t index);
/* The length of the name of a rule's function. */
TN_HIDDEN size_t rules_name_length(const struct rule *rule);
/* Reads the arguments and the text of a rule. */
TN_HIDDEN tn_status rules_bind(const struct rule *rule, struct arena *arena,
                               struct rules_bound *bound);
/* Whether an argument that no rule lists changes nothing here: device, layout and others. */
TN_HIDDEN bool rules_is_ignored(const char *argument);

/* rules_text.c: reads the text of a rule, and calls an operator by it. */
TN_HIDDEN tn_status rules_text_read(struct rules_bound *bound, struct arena *arena);
TN_HIDDEN tn_status rules_text_call(const struct rules_bound *bound, struct rule_call *call);

/* rules_literal.c: reads None, a number, a word in quotes or a list, and moves *at behind it. */
TN_HIDDEN tn_status rules_literal_read(const char **at, struct arena *arena, tn_value *out);
/* Whether two values are equal; 1, 1.0 and True are. Tensors are never equal. */
TN_HIDDEN bool rules_literal_equal(const tn_value *a, const tn_value *b);

/* rules_call.c: calls a rule. Afterwards the results are in the call; rules_call_end() frees what
 * it has. The tensors belong to the innermost scope. */
TN_HIDDEN tn_status rules_call_run(const struct rules_bound *bound, struct rule_call *call);
TN_HIDDEN void rules_call_end(struct rule_call *call);
/* A number as a tensor without dimensions, whose dtype does not change that of a result with
 * `like` (NULL: there is no other tensor). */
TN_HIDDEN tn_tensor *rules_number(const tn_value *value, const tn_tensor *like);
/* A scalar of a value; false if the value is not a number. */
TN_HIDDEN bool rules_scalar(const tn_value *value, tn_scalar *out);

#endif
