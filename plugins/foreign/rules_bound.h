/* SPDX-License-Identifier: MIT
 *
 * Bound rules: rules that a loaded program uses. The arguments and the text of such a rule are
 * parsed once, when the program is loaded. */
#ifndef TN_FOREIGN_RULES_BOUND_H
#define TN_FOREIGN_RULES_BOUND_H

#include "arena.h"
#include "rules.h"

enum { RULES_ARGUMENTS = 64 }; /* at most, of a function */

struct rules_argument {
    const char *name;
    bool required;
    bool unused;    /* any value will do */
    bool rest;      /* all further arguments without a name, as a list */
    tn_value value; /* the default */
};

struct rules_form;

struct rules_bound {
    const tn_rule_def *rule;
    struct rules_argument *arguments;
    const char **names; /* of the arguments */
    int64_t count;
    int64_t mode; /* the argument that was the mode of the module; -1: none */
    struct rules_form *forms;
    int64_t n_forms;
    int64_t absent; /* results at the end that nobody can use */
};

/* What the functions of a file are named after. */
enum rules_of { RULES_ATEN, RULES_ONNX };

struct rules_dialect {
    const char *name;
    const tn_rule_list *lists; /* Tenon's own */
    int64_t count;
    bool overloads;    /* names have overloads and in-place forms, as those of ATen */
    const char *guide; /* the page for its users */
};

/* The lists of rules of a dialect: Tenon's own, and those of other plugins. */
struct rules_set {
    const struct rules_dialect *dialect;
    const tn_rule_list **lists;
    int64_t count, own, capacity;
};

/* Collects the lists; rules_set_close() must be called, also after a failure. */
TN_HIDDEN tn_status rules_set_open(struct rules_set *set, enum rules_of of);
TN_HIDDEN void rules_set_close(struct rules_set *set);
/* Finds the rule of a function in this version of its operator set; *in_place becomes true if it is
 * the rule of a function that does not work in place. Returns NULL, without an error, if there is
 * none. */
TN_HIDDEN const tn_rule_def *rules_find(const struct rules_set *set, const char *function,
                                        int64_t version, bool *in_place);
/* Reads the arguments and the text of a rule. */
TN_HIDDEN tn_status rules_bind(const tn_rule_def *rule, struct arena *arena,
                               struct rules_bound *bound);
/* Whether an argument that no rule lists changes nothing here: device, layout and others. */
TN_HIDDEN bool rules_is_ignored(const char *argument);

/* rules_text.c: reads the text of a rule, and calls an operator by it. */
TN_HIDDEN tn_status rules_text_read(struct rules_bound *bound, struct arena *arena);
TN_HIDDEN tn_status rules_text_call(const struct rules_bound *bound, tn_rule_call *call);

/* rules_literal.c: reads None, a number, a word in quotes or a list, and moves *at behind it. */
TN_HIDDEN tn_status rules_literal_read(const char **at, struct arena *arena, tn_value *out);
/* Whether two values are equal; 1, 1.0 and True are. Tensors are never equal. */
TN_HIDDEN bool rules_literal_equal(const tn_value *a, const tn_value *b);

/* rules_call.c: calls a rule. Afterwards the results are in the call; rules_call_end() frees what
 * it has. The tensors belong to the innermost scope. */
TN_HIDDEN tn_status rules_call_run(const struct rules_bound *bound, tn_rule_call *call);
TN_HIDDEN void rules_call_end(tn_rule_call *call);
/* A number as a tensor without dimensions, whose dtype does not change that of a result with
 * `like` (NULL: there is no other tensor). */
TN_HIDDEN tn_tensor *rules_number(const tn_value *value, const tn_tensor *like);
/* Makes integers of the host (ONNX) an int64 tensor; other values stay, and so do lists of
 * tensors. */
TN_HIDDEN tn_status host_tensor(tn_value *value);
/* Makes a tensor with at most one dimension numbers of the host. */
TN_HIDDEN tn_status host_numbers(tn_rule_call *call, tn_value *value);
/* A scalar of a value; false if the value is not a number. */
TN_HIDDEN bool rules_scalar(const tn_value *value, tn_scalar *out);

#endif
