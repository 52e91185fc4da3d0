/* SPDX-License-Identifier: MIT
 *
 * Passes: a pipeline of passes runs on a copy of the graph. If all of them succeed, the copy takes
 * the place of the graph. */
#include "core/base/vector.h"
#include "lib/graph/private.h"
#include "core/tensor/boundary.h"

/* One pass of a pipeline. */
struct stage {
    const tn__entry *entry;
    tn__spec *spec;
    void *data;
    tn__option_block *option_block;
};

struct pipeline {
    struct stage *stages;
    int64_t count, capacity;
    tn__text report;
};

static const tn_pass_def *def_of(const struct stage *stage)
{
    return (const tn_pass_def *)stage->entry->contribution;
}

/* ---- reading --------------------------------------------------------------------------------- */

static tn_status add_stage(struct pipeline *pipeline, const char *text)
{
    struct stage *stage;
    const tn_pass_def *def;
    char what[128];

    if (!tn__vector_room(&pipeline->stages, &pipeline->capacity, pipeline->count + 1,
                         sizeof *pipeline->stages))
        return TN_ERR_MEMORY;
    stage = &pipeline->stages[pipeline->count];
    *stage = (struct stage){ .spec = tn__spec_parse(text) };
    if (stage->spec == NULL)
        return tn_error_last_code();
    pipeline->count++;
    stage->entry = tn__registry_use(TN_KIND_tn_pass_def, stage->spec->type);
    if (stage->entry == NULL)
        return tn_error_last_code();
    def = def_of(stage);
    tn_snprint(what, sizeof what, "pass %s", def->name);
    if (def->options == NULL)
        return stage->spec->count == 0
                   ? TN_OK
                   : tn_fail(TN_ERR_VALUE, "%s: options: unknown, got %q; expected none", what,
                             text);
    stage->data = tn_calloc(1, def->data_size > 0 ? def->data_size : 1);
    if (stage->data == NULL)
        return TN_ERR_MEMORY;
    return tn__options_fill(def->options, stage->data, what, stage->spec->text, stage->spec->values,
                            stage->spec->names, stage->spec->columns, stage->spec->count,
                            &stage->option_block);
}

static tn_status read_stages(struct pipeline *pipeline, const tn__spec *list, const char *passes)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < list->count && status == TN_OK; i++) {
        const tn_value *value = &list->values[i];

        if (list->names[i] != NULL ||
            (value->kind != TN_VALUE_SPEC && value->kind != TN_VALUE_STRING))
            return tn_fail(TN_ERR_FORMAT,
                           "tn_graph_pass: wrong form, got %q; expected names of passes with their "
                           "options: first(x=1), second",
                           passes);
        status = add_stage(pipeline, value->as.s);
    }
    return status;
}

static bool is_named(const struct pipeline *pipeline, int64_t from, int64_t to, const char *name,
                     size_t length)
{
    for (int64_t i = from; i < to; i++) {
        const char *other = def_of(&pipeline->stages[i])->name;

        if (strncmp(other, name, length) == 0 && other[length] == '\0')
            return true;
    }
    return false;
}

/* Fails if a pass comes before another pass that it must follow, unless that one also comes
 * earlier. */
static tn_status check_order(const struct pipeline *pipeline)
{
    for (int64_t i = 0; i < pipeline->count; i++) {
        const tn_pass_def *def = def_of(&pipeline->stages[i]);
        const char *at = def->after != NULL ? def->after : "";

        while (*at != '\0') {
            size_t length = strcspn(at, " ");

            if (length > 0 && is_named(pipeline, i + 1, pipeline->count, at, length) &&
                !is_named(pipeline, 0, i, at, length))
                return tn_fail(TN_ERR_VALUE,
                               "tn_graph_pass: pass %s: wrong order; expected it "
                               "after pass %.*s",
                               def->name, (int)length, at);
            at += length + strspn(at + length, " ");
        }
    }
    return TN_OK;
}

static tn_status read_pipeline(struct pipeline *pipeline, const char *passes)
{
    tn__text text = { 0 };
    tn__spec *list;
    char *whole;
    tn_status status;

    tn__text_add(&text, "passes(%s)", passes);
    whole = tn__text_take(&text);
    list = whole != NULL ? tn__spec_parse(whole) : NULL;
    status = list != NULL ? read_stages(pipeline, list, passes) : tn_error_last_code();
    tn__spec_free(list);
    tn_free(whole);
    return status == TN_OK ? check_order(pipeline) : status;
}

static void free_pipeline(struct pipeline *pipeline)
{
    for (int64_t i = 0; i < pipeline->count; i++) {
        tn__spec_free(pipeline->stages[i].spec);
        tn__options_release(pipeline->stages[i].option_block);
        tn_free(pipeline->stages[i].data);
    }
    tn_free(pipeline->stages);
    tn__text_free(&pipeline->report);
}

/* ---- running --------------------------------------------------------------------------------- */

struct reporter {
    tn__text *text;
    const char *name;
};

static tn_status report(const tn_pass_args *args, const char *text)
{
    struct reporter *to;

    if (args == NULL || text == NULL)
        return tn__error_refuse_null(args == NULL ? "tn_pass_args.report: args"
                                                  : "tn_pass_args.report: text");
    to = args->host;
    tn__text_add(to->text, "%s: %s\n", to->name, text);
    return TN_OK;
}

/* Checks what a pass must not change: the inputs, and the number of outputs. */
static tn_status check_ends(const tn_graph *before, const tn_graph *after)
{
    const tn_node *a = before->first, *b = after->first;

    if (before->n_inputs != after->n_inputs || after->output == NULL ||
        before->output->n_in != after->output->n_in)
        return tn_fail(TN_ERR_REFUSED,
                       "it changed the number of inputs or outputs, got %lld and %lld; expected "
                       "%lld and %lld",
                       (long long)after->n_inputs,
                       (long long)(after->output != NULL ? after->output->n_in : 0),
                       (long long)before->n_inputs, (long long)before->output->n_in);
    for (int64_t i = 0; i < before->n_inputs; i++, a = a->next, b = b->next) {
        while (a->kind != TN_NODE_INPUT)
            a = a->next;
        while (b->kind != TN_NODE_INPUT)
            b = b->next;
        if (strcmp(a->name, b->name) != 0 || memcmp(a->meta, b->meta, sizeof *a->meta) != 0)
            return tn_fail(TN_ERR_REFUSED,
                           "it changed input %s; expected the same name, dtype and shape as before",
                           a->name);
    }
    return TN_OK;
}

/* Records, before the pass runs, what it relies on according to its flags. */
static tn_status note_flags(tn_graph *graph, const tn_pass_def *def)
{
    if (def->flags & TN_PASS_SHAPES)
        graph->fixed = def->name;
    if (def->flags & TN_PASS_INFERENCE)
        graph->inference = def->name;
    return (def->flags & TN_PASS_WEIGHTS) != 0 ? tn__graph_guard_slots(graph, def->name) : TN_OK;
}

static tn_status call_pass(const struct stage *stage, tn_graph *graph, tn__text *text)
{
    const tn_pass_def *def = def_of(stage);
    struct reporter reporter = { text, def->name };
    tn_pass_args args = { TN_HEAD(tn_pass_args), .graph = graph, .data = stage->data,
                          .report = report, .host = &reporter };
    const char *id = stage->entry->plugin->id != NULL ? stage->entry->plugin->id : "";
    const char *before = tn__error_plugin(id);
    uint64_t scope = tn_scope_begin();
    tn__boundary_thread thread;
    tn_status status;

    tn__boundary_enter(&thread);
    status = tn__error_status_of(def->run(def, &args), def->name);
    status = tn__boundary_leave(&thread, id, def->name, status);
    tn_scope_end(scope);
    tn__error_plugin(before);
    return status;
}

/* Calls a pass, and checks that it has not kept or dropped a reference to the graph. */
static tn_status call_counted(const struct stage *stage, tn_graph *graph, tn__text *text)
{
    tn_status status;
    int32_t refs;

    tn_graph_keep(graph); /* in case the pass drops the graph, it is not freed */
    status = call_pass(stage, graph, text);
    refs = atomic_load_explicit(&graph->refs, memory_order_relaxed);
    if (refs > 1)
        tn_graph_drop(graph);
    if (status == TN_OK && refs > 2)
        return tn_fail(TN_ERR_REFUSED, "it kept a reference to the graph");
    if (status == TN_OK && refs < 2)
        return tn_fail(TN_ERR_REFUSED,
                       "it dropped the graph, to which it has no reference of its own");
    return status;
}

/* Returns whether a call of the graph uses something that the pass does not know. The pass could
 * lose it. */
static bool is_too_new(const struct stage *stage, const tn_graph *graph, char *reason, size_t size)
{
    for (const tn_node *node = graph->first; node != NULL; node = node->next) {
        if (tn__node_uses_newer(node, &def_of(stage)->head, stage->entry->plugin, reason, size))
            return true;
        for (int i = 0; i < 2; i++)
            if (node->blocks[i] != NULL && is_too_new(stage, node->blocks[i], reason, size))
                return true;
    }
    return false;
}

static tn_status run_stage(const struct stage *stage, const tn_graph *original, tn_graph *graph,
                           tn__text *text)
{
    char reason[160];
    tn_status status;

    if (is_too_new(stage, graph, reason, sizeof reason)) {
        tn__text_add(text, "%s: not run, because %s\n", def_of(stage)->name, reason);
        return TN_OK;
    }
    status = note_flags(graph, def_of(stage));
    if (status == TN_OK)
        status = call_counted(stage, graph, text);
    if (status == TN_OK)
        status = check_ends(original, graph);
    if (status == TN_OK)
        status = tn_graph_lint(graph);
    return status == TN_OK ? TN_OK : tn_error_prefix("pass %s: ", def_of(stage)->name);
}

static tn_status run_pipeline(struct pipeline *pipeline, tn_graph *graph)
{
    tn_graph *copy = tn_graph_copy(graph);
    tn_status status = copy != NULL ? TN_OK : tn_error_last_code();

    for (int64_t i = 0; i < pipeline->count && status == TN_OK; i++)
        status = run_stage(&pipeline->stages[i], graph, copy, &pipeline->report);
    if (status == TN_OK) {
        tn_free(copy->report);
        copy->report = NULL;
        if (pipeline->report.failed || pipeline->report.length > 0) {
            copy->report = tn__text_take(&pipeline->report);
            status = copy->report != NULL ? TN_OK : TN_ERR_MEMORY;
        }
    }
    if (status == TN_OK)
        tn__graph_take(graph, copy);
    else
        tn_graph_drop(copy);
    return status;
}

tn_status tn_graph_pass(tn_graph *graph, const char *passes)
{
    struct pipeline pipeline = { 0 };
    tn_status status;

    if (!tn__not_null(graph, "tn_graph_pass: graph"))
        return tn_error_last_code();
    if (!tn__given(passes != NULL, "tn_graph_pass: passes"))
        return TN_ERR_VALUE;
    status = tn_graph_lint(graph);
    if (status == TN_OK)
        status = read_pipeline(&pipeline, passes);
    if (status == TN_OK)
        status = run_pipeline(&pipeline, graph);
    free_pipeline(&pipeline);
    return status;
}
