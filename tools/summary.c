/* SPDX-License-Identifier: MIT
 *
 * tenon summary MODEL --input SHAPE: lists the modules of a network in the order in which a call
 * runs them, on a device without memory. The command knows no layer types: names, calls and results
 * come from the module tree, hooks and an observer. */
#include "summary.h"

#include <stdlib.h>
#include <string.h>

#include "train/model.h"

/* ---- calls ----------------------------------------------------------------------------------- */

void summary_settle(summary *s)
{
    if (s->depth > 0 && s->depth <= LEVELS)
        s->rows[s->stack[s->depth - 1]].macs += s->ops.macs - s->macs;
    s->macs = s->ops.macs;
}

struct search {
    tn_module *wanted;
    char *name;
};

static tn_status is_it(void *user, const char *path, tn_module *module)
{
    struct search *search = user;
    if (module == search->wanted && *search->name == '\0')
        snprintf(search->name, NAME_SIZE, "%s", path);
    return TN_OK;
}

tn_status summary_add_own(void *user, const char *path, tn_tensor *tensor)
{
    if (strchr(path, '.') == NULL)
        *(int64_t *)user += tn_tensor_numel(tensor);
    return TN_OK;
}

static bool was_there(const summary *s, const tn_module *module)
{
    for (int64_t i = 0; i < s->count; i++)
        if (s->rows[i].module == module)
            return true;
    return false;
}

void summary_grow(summary *s)
{
    int64_t capacity = s->capacity > 0 ? s->capacity * 2 : 64;
    row *grown;

    if (s->count < s->capacity)
        return;
    grown = realloc(s->rows, (size_t)capacity * sizeof *grown);
    if (grown == NULL)
        s->failed = true;
    else
        s->rows = grown, s->capacity = capacity;
}

static uint64_t module_begin(void *user, const tn_module_event *event)
{
    summary *s = user;
    tn_module *module = event->module;

    summary_settle(s);
    summary_grow(s);
    if (s->count < s->capacity) {
        row *r = &s->rows[s->count];
        memset(r, 0, sizeof *r);
        r->again = was_there(s, module);
        r->module = module;
        r->type = tn_module_type(module);
        r->depth = s->depth;
        r->leaf = tn_module_child_count(module) == 0;
        if (s->depth > 0 && s->depth <= LEVELS) {
            struct search search = { module, r->name };
            tn_module_each(s->rows[s->stack[s->depth - 1]].module, true, is_it, &search);
        }
        if (!r->again)
            tn_module_each_tensor(module, TN_SLOT_PARAMETER, false, summary_add_own,
                                  &r->parameters);
        if (s->depth < LEVELS)
            s->stack[s->depth] = s->count;
        s->count++;
    } else if (s->depth < LEVELS) {
        s->stack[s->depth] = 0;
    }
    s->depth++;
    return 0;
}

static void module_end(void *user, uint64_t token, const tn_module_event *event)
{
    summary *s = user;
    (void)token, (void)event;
    summary_settle(s);
    s->depth--;
}

/* ---- results --------------------------------------------------------------------------------- */

static size_t put(char *out, size_t at, const char *text)
{
    return at + (size_t)snprintf(out + (at < SHAPE_SIZE ? at : SHAPE_SIZE - 1),
                                 at < SHAPE_SIZE ? SHAPE_SIZE - at : 1, "%s", text);
}

void summary_add_result(row *r, size_t *at, const tn_value *value)
{
    for (uint32_t i = 0; i < tn_value_size(value); i++)
        summary_add_result(r, at, tn_value_item(value, i));
    if (value->kind != TN_VALUE_TENSOR || value->as.tensor == TN_NONE)
        return;
    tn_ints shape = tn_tensor_shape(value->as.tensor);
    char number[32];
    *at = put(r->shape, *at, *at > 0 ? ", [" : "[");
    for (int64_t i = 0; i < shape.count; i++) {
        snprintf(number, sizeof number, "%s%lld", i > 0 ? ", " : "", (long long)shape.at[i]);
        *at = put(r->shape, *at, number);
    }
    *at = put(r->shape, *at, "]");
    r->bytes += tn_tensor_numel(value->as.tensor) *
                (int64_t)tn_dtype_size(tn_tensor_dtype(value->as.tensor));
}

static tn_status after_forward(void *user, tn_module *module, const tn_pack *input,
                               const tn_pack *output, tn_pack *replacement,
                               tn_hook_outcome *outcome)
{
    summary *s = user;
    size_t at = 0;
    (void)module, (void)input, (void)replacement, (void)outcome;
    if (s->depth < 1 || s->depth > LEVELS || s->failed)
        return TN_OK;
    row *r = &s->rows[s->stack[s->depth - 1]];
    for (int64_t i = 0; i < tn_pack_count(output); i++) {
        tn_value value = tn_pack_at(output, i);
        summary_add_result(r, &at, &value);
    }
    return TN_OK;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

typedef struct request {
    const char *model;
    input_list inputs;
    bool json, train;
} request;

static int64_t bytes_of(const tn_pack *pack)
{
    int64_t bytes = 0;

    for (int64_t i = 0; i < tn_pack_count(pack); i++) {
        const tn_tensor *tensor = tn_pack_at(pack, i).as.tensor;

        bytes += tn_tensor_numel(tensor) * (int64_t)tn_dtype_size(tn_tensor_dtype(tensor));
    }
    return bytes;
}

/* ---- the answer ------------------------------------------------------------------------------ */

typedef struct totals {
    int64_t parameters, trainable, buffers, parameter_bytes, buffer_bytes, input_bytes,
        result_bytes;
} totals;

static tn_status add_parameter(void *user, const char *path, tn_tensor *tensor)
{
    totals *t = user;
    (void)path;
    t->parameters += tn_tensor_numel(tensor);
    t->trainable += tn_tensor_requires_grad(tensor) ? tn_tensor_numel(tensor) : 0;
    t->parameter_bytes += tn_tensor_numel(tensor) * (int64_t)tn_dtype_size(tn_tensor_dtype(tensor));
    return TN_OK;
}

static tn_status add_buffer(void *user, const char *path, tn_tensor *tensor)
{
    totals *t = user;
    (void)path;
    t->buffers += tn_tensor_numel(tensor);
    t->buffer_bytes += tn_tensor_numel(tensor) * (int64_t)tn_dtype_size(tn_tensor_dtype(tensor));
    return TN_OK;
}

static void add_up(const summary *s, tn_module *module, totals *t)
{
    tn_module_each_tensor(module, TN_SLOT_PARAMETER, false, add_parameter, t);
    tn_module_each_tensor(module, TN_SLOT_BUFFER, false, add_buffer, t);
    for (int64_t i = 0; i < s->count; i++)
        t->result_bytes += s->rows[i].leaf ? s->rows[i].bytes : 0;
}

static void answer_json(const summary *s, const totals *t)
{
    json_begin(NULL, '{');
    json_begin("layers", '[');
    for (int64_t i = 0; i < s->count; i++) {
        const row *r = &s->rows[i];
        json_begin(NULL, '{');
        json_text("name", r->name);
        json_text("type", r->type);
        json_int("depth", r->depth);
        json_text("output", r->shape);
        json_int("output_bytes", r->bytes);
        json_int("parameters", r->parameters);
        json_int("multiply_adds", r->macs);
        json_bool("called_before", r->again);
        json_end('}');
    }
    json_end(']');
    json_int("parameters", t->parameters);
    json_int("trainable", t->trainable);
    json_int("buffers", t->buffers);
    json_int("multiply_adds", s->ops.macs);
    json_int("flops", 2 * s->ops.macs);
    json_int("parameter_bytes", t->parameter_bytes);
    json_int("buffer_bytes", t->buffer_bytes);
    json_int("input_bytes", t->input_bytes);
    json_int("output_bytes", t->result_bytes);
    json_begin("not_counted", '{');
    for (int64_t i = 0; i < s->ops.name_count; i++)
        json_int(s->ops.names[i], s->ops.calls[i]);
    json_end('}');
    json_end('}');
}

/* Writes a number with commas, such as 11,689,512, to `out`. Returns `out`, or "-" for 0. */
static const char *grouped(int64_t number, char *out, size_t size)
{
    char digits[32];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number), at = 0;
    for (size_t i = 0; i < length && at + 2 < size; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return number != 0 ? out : "-";
}

static void print_layers(const summary *s)
{
    table t = { .columns = 4 };
    char name[NAME_SIZE + 96], parameters[48], macs[48];
    table_row(&t, "LAYER", "OUTPUT", "PARAMETERS", "MULTIPLY-ADDS");
    for (int64_t i = 0; i < s->count; i++) {
        const row *r = &s->rows[i];
        snprintf(name, sizeof name, "%*s%s%s%s%.64s", 2 * (r->depth < 20 ? r->depth : 20), "",
                 *r->name ? "(" : "", r->name, *r->name ? "): " : "", r->type);
        table_row(&t, name, *r->shape ? r->shape : "-",
                  r->again ? "as above" : grouped(r->parameters, parameters, sizeof parameters),
                  grouped(r->macs, macs, sizeof macs));
    }
    table_print(&t);
}

static void answer_text(const summary *s, const totals *t)
{
    char a[48], b[48], c[48], d[48], text[256];
    print_layers(s);
    putchar('\n');
    snprintf(text, sizeof text, "%s, of them %s trainable; buffers: %s",
             grouped(t->parameters, a, sizeof a), grouped(t->trainable, b, sizeof b),
             grouped(t->buffers, c, sizeof c));
    print_wrapped("parameters", 15, text);
    snprintf(text, sizeof text, "%s (%.3g G), which are %s FLOPs",
             grouped(s->ops.macs, a, sizeof a), (double)s->ops.macs / 1e9,
             grouped(2 * s->ops.macs, b, sizeof b));
    print_wrapped("multiply-adds", 15, text);
    snprintf(text, sizeof text, "parameters %s, buffers %s, input %s, results of all layers %s",
             bytes_text(t->parameter_bytes, a, sizeof a), bytes_text(t->buffer_bytes, b, sizeof b),
             bytes_text(t->input_bytes, c, sizeof c), bytes_text(t->result_bytes, d, sizeof d));
    print_wrapped("memory", 15, text);
    size_t size = 16;
    for (int64_t i = 0; i < s->ops.name_count; i++)
        size += strlen(s->ops.names[i]) + 2;
    char *names = calloc(1, size);
    for (int64_t i = 0; names != NULL && i < s->ops.name_count; i++) {
        strcat(names, i > 0 ? ", " : "");
        strcat(names, s->ops.names[i]);
    }
    print_wrapped("not counted", 15, names != NULL && *names ? names : "nothing");
    free(names);
}

/* ---- networks that cannot be called ---------------------------------------------------------- */

typedef struct tree {
    table table;
    bool json;
} tree;

/* The parameters of a module, such as "weight [16, 4], bias [16]", and the count of elements. */
typedef struct own {
    char text[512];
    size_t used;
    int64_t count;
} own;

static tn_status add_shape(void *user, const char *path, tn_tensor *tensor)
{
    own *o = user;
    tn_ints shape = tn_tensor_shape(tensor);
    if (strchr(path, '.') != NULL)
        return TN_OK;
    o->count += tn_tensor_numel(tensor);
    for (int64_t i = -1; i <= shape.count && o->used < sizeof o->text; i++) {
        char *at = o->text + o->used;
        size_t room = sizeof o->text - o->used;
        if (i < 0)
            o->used += (size_t)snprintf(at, room, "%s%s [", o->used > 0 ? ", " : "", path);
        else if (i == shape.count)
            o->used += (size_t)snprintf(at, room, "]");
        else
            o->used += (size_t)snprintf(at, room, "%s%lld", i > 0 ? ", " : "",
                                        (long long)shape.at[i]);
    }
    return TN_OK;
}

static tn_status add_module(void *user, const char *path, tn_module *module)
{
    tree *to = user;
    own o = { .used = 0 };
    int depth = *path != '\0';
    const char *last = strrchr(path, '.');
    char name[NAME_SIZE + 96], number[48];
    for (const char *at = path; *at != '\0'; at++)
        depth += *at == '.';
    last = last != NULL ? last + 1 : path;
    tn_module_each_tensor(module, TN_SLOT_PARAMETER, false, add_shape, &o);
    if (to->json) {
        json_begin(NULL, '{');
        json_text("name", last);
        json_text("type", tn_module_type(module));
        json_int("depth", depth);
        json_text("parameter_shapes", o.text);
        json_int("parameters", o.count);
        json_end('}');
        return TN_OK;
    }
    snprintf(name, sizeof name, "%*s%s%.*s%s%.64s", 2 * (depth < 20 ? depth : 20), "",
             *path ? "(" : "", NAME_SIZE, last, *path ? "): " : "", tn_module_type(module));
    table_row(&to->table, name, o.used > 0 ? o.text : "-", grouped(o.count, number, sizeof number));
    return TN_OK;
}

/* Prints the parameters of a network that is not called, or cannot be: then also the error. */
static int answer_tree(tn_module *module, bool json)
{
    tree to = { .table = { .columns = 3 }, .json = json };
    totals t = { 0 };
    char words[1200], a[48], b[48], c[48];
    tn_status code = tn_error_code();
    snprintf(words, sizeof words, "%s", tn_error_text());
    if (json) {
        json_begin(NULL, '{');
        json_begin("layers", '[');
    } else {
        table_row(&to.table, "LAYER", "PARAMETERS", "COUNT");
    }
    tn_module_each(module, true, add_module, &to);
    tn_module_each_tensor(module, TN_SLOT_PARAMETER, false, add_parameter, &t);
    tn_module_each_tensor(module, TN_SLOT_BUFFER, false, add_buffer, &t);
    if (json) {
        json_end(']');
        json_int("parameters", t.parameters);
        json_int("trainable", t.trainable);
        json_int("buffers", t.buffers);
        if (code != TN_OK)
            json_error(code, words);
        json_end('}');
    } else {
        table_print(&to.table);
        printf("\nparameters     %s, of them %s trainable; buffers: %s\n",
               grouped(t.parameters, a, sizeof a), grouped(t.trainable, b, sizeof b),
               grouped(t.buffers, c, sizeof c));
        fflush(stdout);
    }
    if (code == TN_OK)
        return EXIT_OK;
    fprintf(stderr, "tenon: the network cannot be called, so results and cost are unknown: %s\n",
            words);
    return EXIT_NOT_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool is_script(tn_module *module)
{
    uint64_t mark = tn_error_mark();
    bool script = tn_script_graph(module, tn_module_is_training(module)) != NULL;

    tn_error_restore(mark);
    return script;
}

static tn_status call(tn_module *module, tn_pack *input, summary *s)
{
    static tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = "summary" };
    observer.user = s;
    observer.module_begin = module_begin;
    observer.module_end = module_end;
    tn_pack *output = tn_pack_new();
    tn_status status = output != NULL ? input_prepare(module, input) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = count_operators(&s->ops);
    if (status == TN_OK && is_script(module)) {
        tn_pack_drop(output);
        return summary_of_script(module, input, s);
    }
    if (status == TN_OK)
        status = tn_register(&observer);
    if (status == TN_OK && tn_global_hook_forward(after_forward, 0, s, NULL) == 0)
        status = tn_error_last_code();
    if (status == TN_OK)
        status = tn_module_call_pack(module, input, output);
    tn_pack_drop(output);
    if (status == TN_OK && s->failed)
        status = tn_fail(TN_ERR_MEMORY, "table: out of memory");
    return status;
}

static int summarize(const request *wanted)
{
    TN_SCOPE;
    summary s = { .rows = NULL };
    totals t = { 0 };
    model_notes notes = { 0 };
    if (tn_set_default_device("meta") != TN_OK)
        return tool_fail(NULL);
    tn_module *module = model_open(wanted->model, NULL, MODEL_ASSIGN, &notes);
    if (module != NULL && notes.loaded && tn_module_to_device(module, "meta") != TN_OK) {
        tn_module_drop(module);
        module = NULL;
    }
    model_notes_free(&notes);
    tn_pack *input = module != NULL ? tn_pack_new() : NULL;
    bool good = input != NULL && tn_module_train(module, wanted->train) == TN_OK;
    tn_grad_begin(false);
    good = good && inputs_add(&wanted->inputs, input) == TN_OK;
    t.input_bytes = good ? bytes_of(input) : 0;
    bool called = good && wanted->inputs.count > 0 && call(module, input, &s) == TN_OK;
    tn_grad_end();
    if (called) {
        add_up(&s, module, &t);
        if (wanted->json)
            answer_json(&s, &t);
        else
            answer_text(&s, &t);
    }
    int code = called ? EXIT_OK : good ? answer_tree(module, wanted->json) : tool_fail(NULL);
    tn_pack_drop(input);
    for (int64_t i = 0; i < s.count; i++)
        free(s.rows[i].path);
    free(s.rows);
    tn_module_drop(module);
    return code;
}

static int usage(const char *words, const char *what)
{
    fprintf(stderr, "tenon summary: %s%s; `tenon summary --help` lists its arguments\n", words,
            what);
    return EXIT_USAGE;
}

static int run(int count, char **given, bool only_help)
{
    request wanted = { .inputs = { .dtype = TN_F32 } };
    if (only_help) {
        printf(
            "\nOptions:\n"
            "  --input SHAPE[:DTYPE]  an input, 1,3,224,224 or 8,20:int64; repeat it for each\n"
            "  --dtype DTYPE          dtype of inputs given without one; default: float32\n"
            "  --train                in training mode; default: evaluation\n"
            "  --json                 JSON instead of text\n  --help                 this text\n");
        return EXIT_OK;
    }
    for (int i = 0; i < count; i++) {
        bool input = strcmp(given[i], "--input") == 0, dtype = strcmp(given[i], "--dtype") == 0;
        if ((input || dtype) && i + 1 == count)
            return usage("a value is missing after ", given[i]);
        if (input && !inputs_take(&wanted.inputs, given[i + 1]))
            return usage("too many inputs; expected at most 8; also got ", given[i + 1]);
        if (input)
            i++;
        else if (dtype && tn_dtype_parse(given[i + 1], &wanted.inputs.dtype) != TN_OK)
            return usage("--", tn_error_last()->message);
        else if (dtype)
            i++;
        else if (strcmp(given[i], "--json") == 0)
            wanted.json = tool_json = true;
        else if (strcmp(given[i], "--train") == 0)
            wanted.train = true;
        else if (given[i][0] == '-')
            return usage("unknown option ", given[i]);
        else if (wanted.model != NULL)
            return usage("too many arguments: ", given[i]);
        else
            wanted.model = given[i];
    }
    if (wanted.model == NULL)
        return usage("expected a model", "");
    return summarize(&wanted);
}

const command summary_command = {
    "summary",
    "MODEL [--input SHAPE]",
    "prints layers, shapes, parameters and cost of a network",
    "Calls a network once on a device without memory, and prints every module in the order of the "
    "calls: the shape of its result, its own parameters and multiply-adds; then totals, and the "
    "memory of parameters, buffers, input and the results of all layers (which training keeps). "
    "Without --input, prints the tree with the parameters and calls nothing. If it cannot be "
    "called, because no plugin provides one of its types, it prints the parameters and the reason; "
    "the exit status is 1.\n\nOnly the multiply-adds of products are counted: linear, matmul, "
    "convolutions and attention, alone or inside recurrent layers, bilinear and einsum. Operators "
    "that ran and are not counted are listed at the end.\n\n" MODEL_HELP,
    .run = run,
    .options = TOOL_OWN_OPTIONS,
};
