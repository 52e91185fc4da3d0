/* SPDX-License-Identifier: MIT
 *
 * Programs of other frameworks as modules (docs/guides/from-pytorch.md). tn_module_from_file opens
 * them, and tn_module_save(module, "net.pt2") (or "net.onnx", of a program in ONNX) writes the
 * program of a module with the values that its tensors have now. The first functions here call the
 * plugin tenon.foreign, which provides the interface tenon.foreign.programs; without the plugin
 * they fail and name the interface. The second part is for plugins that add rules for functions of
 * such programs.
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
    const char *(*extension)(tn_module *module);
} tn_program_api;

/* Returns the functions of the plugin; NULL and sets the error on failure. */
static inline const tn_program_api *tn_program_find(void)
{
    const struct tn_interface_need need = { "tenon.foreign.programs", 0, 0,
                                            (uint32_t)sizeof(tn_program_api), 0 };
    return (const tn_program_api *)tn_interface_find(NULL, &need, NULL);
}

/* Returns the text of the program that a module runs, as its file has it (of a `.pt2` file JSON, of
 * an `.onnx` file the model without the values of its initializers, in binary form), and its length
 * in bytes; a NUL follows. Modules with the same text compute the same from the same
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

/* Returns the extension of the files of a program, ".pt2" or ".onnx": that with which
 * tn_module_save writes the program. Fails as tn_program_text does. [static] */
static inline const char *tn_program_extension(tn_module *module)
{
    const tn_program_api *api = tn_program_find();
    return api != NULL ? api->extension(module) : NULL;
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* A rule says what a function of a foreign program is in Tenon's operators. A plugin with the id ID
 * adds rules by an interface (tn_plugin.interfaces) whose table is a tn_rule_list:
 *
 *     ID.rules.aten    for functions in programs of PyTorch: "acme.scale.default(x, factor=2.0)"
 *     ID.rules.onnx    for operators of ONNX: "com.acme.Scale(x, factor=2.0)"; those of the default
 *                      domain have no domain in front of their names
 *
 * The plugin tenon.foreign looks for them when it opens a file. Its own rules come first, then
 * those of other plugins in the order of the load report. docs/guides/from-pytorch.md has an
 * example. A script of a program (tn_module_script) needs no rules. */

struct tn_rule_call;

enum {
    TN_RULE_HOST_NEVER = 0,
    TN_RULE_HOST_KEEPS = 1, /* if all tensors among the arguments are */
    TN_RULE_HOST_ALWAYS = 2
};

typedef struct tn_rule_def {
    /* The function and its arguments: names, and defaults of those that files may leave out: None,
     * True, False, numbers, 'texts', [lists]. Arguments of the file that the rule does not have are
     * refused. "*rest" takes all further arguments without a name, as a list. */
    const char *function;
    /* A call of an operator, with the arguments: "mul_scalar(x, value=factor)". Forms for different
     * kinds of arguments are separated by |; the first one that fits is called. NULL: `call`. */
    const char *text;
    /* Reads arguments and gives results with the functions below. Tensors that operators return
     * belong to the scope of the call. */
    tn_status (*call)(struct tn_rule_call *call);
    /* The argument that was the mode of the module when the program was exported: a bool
     * ("training"), or a probability, which is 0 in evaluation ("dropout_p"). NULL: none. */
    const char *mode;
    /* The first version of the operator set of ONNX for which the rule is right. Of several rows
     * for one operator that with the largest version up to the file's counts. 0: any. */
    int32_t since;
    bool copies; /* the results are copied, because they may be views of arguments */
    /* TN_RULE_HOST_*: when the results are integers of the host: of ONNX, whose programs compute
     * shapes with tensors. */
    uint32_t host;
} tn_rule_def;

/* The table of an interface with rules. */
typedef struct tn_rule_list {
    uint32_t row_size;       /* sizeof(tn_rule_def) */
    uint32_t reserved;       /* 0 */
    const tn_rule_def *rows; /* the last row has no function */
} tn_rule_list;

/* What tn_rule_def.call may do; see the functions below. Grows at its end. */
typedef struct tn_rule_api {
    const tn_value *(*value)(struct tn_rule_call *call, const char *name);
    tn_tensor *(*tensor)(struct tn_rule_call *call, const char *name);
    tn_tensor *(*optional)(struct tn_rule_call *call, const char *name);
    tn_tensor *(*operand)(struct tn_rule_call *call, const char *name, const tn_tensor *like);
    tn_tensor **(*tensors)(struct tn_rule_call *call, const char *name, int64_t *count);
    int64_t (*to_int)(struct tn_rule_call *call, const char *name);
    double (*to_float)(struct tn_rule_call *call, const char *name);
    bool (*to_bool)(struct tn_rule_call *call, const char *name);
    tn_scalar (*scalar)(struct tn_rule_call *call, const char *name);
    const char *(*text)(struct tn_rule_call *call, const char *name);
    tn_dtype (*dtype)(struct tn_rule_call *call, const char *name);
    tn_ints (*ints)(struct tn_rule_call *call, const char *name);
    tn_floats (*floats)(struct tn_rule_call *call, const char *name);
    void *(*memory)(struct tn_rule_call *call, int64_t count, size_t size);
    tn_status (*give)(struct tn_rule_call *call, tn_tensor *tensor);
    tn_status (*give_list)(struct tn_rule_call *call, tn_tensor *const *tensors, int64_t n);
    tn_status (*give_value)(struct tn_rule_call *call, tn_value value);
} tn_rule_api;

/* A call of a function. Only the plugin that runs the program makes such structs; they grow at
 * their end. */
typedef struct tn_rule_call {
    const tn_rule_api *api;
    const char *name;         /* of the function in the file, for messages */
    const char *const *names; /* of the arguments, as in the rule */
    const tn_value *values;   /* one for each name, defaults included */
    int64_t count;
    tn_tensor *into;  /* the tensor that an in-place function writes; else NULL */
    bool training;    /* mode of the module to which the call belongs, for rules with `mode` */
    tn_status status; /* the first failure of the functions below */
    int64_t wanted;   /* number of results up to the last one that the program uses */
    bool host;        /* of ONNX: integers and lists of them can stand for tensors, and tensors for
                       * numbers; the functions below convert them */
    /* For the functions below. */
    tn_value *results;
    int64_t n_results, capacity;
    void *memory;
    int64_t n_outputs; /* number of results that the program lists, used or not */
} tn_rule_call;

/* These read an argument. If it has another kind, call->status becomes the failure, whose message
 * names the function and the argument, and the result is NULL, 0, or a list without elements.
 * tn_rule_give() returns that failure, so that most rules need no test; where a value decides what
 * is done next, test with `if (call->status != TN_OK) return call->status;`. The name must be in
 * the rule. Lists live as long as the call. */
static inline const tn_value *tn_rule_value(tn_rule_call *call, const char *name)
{
    return call->api->value(call, name);
}

/* A tensor. tn_rule_optional also accepts None, and then returns TN_NONE. tn_rule_operand also
 * accepts a number, and makes a tensor of it whose dtype does not change that of a result with
 * `like`. [null-ok: like] */
static inline tn_tensor *tn_rule_tensor(tn_rule_call *call, const char *name)
{
    return call->api->tensor(call, name);
}

static inline tn_tensor *tn_rule_optional(tn_rule_call *call, const char *name)
{
    return call->api->optional(call, name);
}

static inline tn_tensor *tn_rule_operand(tn_rule_call *call, const char *name,
                                         const tn_tensor *like)
{
    return call->api->operand(call, name, like);
}

/* A list of tensors, TN_NONE for None. */
static inline tn_tensor **tn_rule_tensors(tn_rule_call *call, const char *name, int64_t *count)
{
    return call->api->tensors(call, name, count);
}

/* Numbers and texts. tn_rule_float also accepts an integer. The dtype of None is
 * TN_DTYPE_AUTO. */
static inline int64_t tn_rule_int(tn_rule_call *call, const char *name)
{
    return call->api->to_int(call, name);
}

static inline double tn_rule_float(tn_rule_call *call, const char *name)
{
    return call->api->to_float(call, name);
}

static inline bool tn_rule_bool(tn_rule_call *call, const char *name)
{
    return call->api->to_bool(call, name);
}

static inline tn_scalar tn_rule_scalar(tn_rule_call *call, const char *name)
{
    return call->api->scalar(call, name);
}

static inline const char *tn_rule_text(tn_rule_call *call, const char *name)
{
    return call->api->text(call, name);
}

static inline tn_dtype tn_rule_dtype(tn_rule_call *call, const char *name)
{
    return call->api->dtype(call, name);
}

/* A list of numbers; one integer is a list of one; None has count -1. */
static inline tn_ints tn_rule_ints(tn_rule_call *call, const char *name)
{
    return call->api->ints(call, name);
}

static inline tn_floats tn_rule_floats(tn_rule_call *call, const char *name)
{
    return call->api->floats(call, name);
}

/* Memory, filled with zeros, that is freed after the call. NULL: the call has failed. */
static inline void *tn_rule_memory(tn_rule_call *call, int64_t count, size_t size)
{
    return call->api->memory(call, count, size);
}

/* Adds a result, in the order of the function's results. NULL: an operator has failed; TN_NONE: a
 * result that no program can use. Returns the first failure of the call. [null-ok: tensor] */
static inline tn_status tn_rule_give(tn_rule_call *call, tn_tensor *tensor)
{
    return call->api->give(call, tensor);
}

/* Adds one result that is a list of tensors. */
static inline tn_status tn_rule_give_list(tn_rule_call *call, tn_tensor *const *tensors, int64_t n)
{
    return call->api->give_list(call, tensors, n);
}

/* Adds a number. */
static inline tn_status tn_rule_give_value(tn_rule_call *call, tn_value value)
{
    return call->api->give_value(call, value);
}

TN_END_DECLS
#endif
