/* SPDX-License-Identifier: MIT
 *
 * Values and nodes of a model that is written (onnx.h). */
#include "export/onnx.h"
#include "onnx/onnx.h"

#include <string.h>

static const struct onnx_value nothing = { "", false };

static void fail(struct onnx_model *m, tn_status status)
{
    if (m->status == TN_OK)
        m->status = status;
}

void onnx_make_fail(struct onnx_call *call, const char *what)
{
    if (call->model->status == TN_OK)
        call->model->status = tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: node %s (%s): %s",
                                      call->model->graph.path, tn_node_name(call->node),
                                      call->def->name, what);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A name that no value has yet, made of this one. */
static const char *free_name(struct onnx_model *m, const char *wanted)
{
    const char *name = wanted;
    char text[700];

    for (int64_t i = 1; names_find(&m->taken, name) >= 0; i++) {
        tn_snprint(text, sizeof text, "%.600s_%lld", wanted, (long long)i);
        name = text;
    }
    name = arena_text(&m->arena, name, strlen(name));
    if (name == NULL || names_add(&m->taken, name, 0) != TN_OK)
        fail(m, TN_ERR_MEMORY);
    return name;
}

static struct onnx_value *new_value(struct onnx_model *m, const char *name)
{
    struct onnx_value *value = arena_new(&m->arena, 1, sizeof *value);
    const char *made = free_name(m, name);

    if (value == NULL)
        fail(m, TN_ERR_MEMORY);
    else
        *value = (struct onnx_value){ made, true };
    return value;
}

const struct onnx_value *onnx_make_of(struct onnx_model *m, const tn_node *node)
{
    int64_t at = node == TN_NODE_NONE ? -1 : names_find(&m->values, tn_node_name(node));

    if (node == TN_NODE_NONE)
        return NULL;
    return at >= 0 ? m->at[at] : &nothing;
}

void onnx_make_set(struct onnx_model *m, const tn_node *node, const struct onnx_value *value)
{
    struct onnx_value **more;

    if (m->status != TN_OK)
        return;
    if (m->n_at == m->at_capacity) {
        more = tn_realloc(m->at, (size_t)(2 * m->at_capacity + 64) * sizeof(*more));
        if (more == NULL) {
            m->status = TN_ERR_MEMORY;
            return;
        }
        m->at = more;
        m->at_capacity = 2 * m->at_capacity + 64;
    }
    m->at[m->n_at] = (struct onnx_value *)(uintptr_t)value;
    fail(m, names_add(&m->values, tn_node_name(node), m->n_at++));
}

/* ---- inputs of the call ---------------------------------------------------------------------- */

static int64_t index_of(const struct onnx_call *call, const char *name)
{
    for (int32_t i = 0; i < call->def->n_inputs; i++)
        if (strcmp(call->def->inputs[i].name, name) == 0)
            return i;
    return -1;
}

tn_node *onnx_make_source(const struct onnx_call *call, const char *name)
{
    int64_t i = index_of(call, name);
    tn_node *node = i >= 0 && i < tn_node_input_count(call->node) ? tn_node_input(call->node, i)
                                                                  : TN_NODE_NONE;

    return node != TN_NODE_NONE ? node : NULL;
}

tn_meta onnx_make_meta(struct onnx_call *call, const char *name)
{
    tn_node *node = onnx_make_source(call, name);
    tn_meta meta = { .ndim = 0 };

    if (node == NULL || tn_node_meta(node, &meta) != TN_OK || meta.ndim < 0)
        onnx_make_fail(call, "an input has a shape that only a run can tell; expected a known one");
    return meta;
}

const struct onnx_value *onnx_make_input(struct onnx_call *call, int64_t index)
{
    return onnx_make_of(call->model, tn_node_input(call->node, index));
}

const struct onnx_value *onnx_make_in(struct onnx_call *call, const char *name)
{
    int64_t i = index_of(call, name);
    tn_node *node = onnx_make_source(call, name);
    tn_meta meta;

    if (node == NULL)
        return NULL;
    if ((call->def->inputs[i].flags & TN_OPERAND_NO_PROMOTE) != 0 ||
        call->compute == TN_DTYPE_AUTO || tn_node_meta(node, &meta) != TN_OK ||
        meta.dtype == call->compute)
        return onnx_make_of(call->model, node);
    return onnx_make_cast(call, onnx_make_of(call->model, node), call->compute);
}

void onnx_make_give(struct onnx_call *call, int64_t index, const struct onnx_value *value)
{
    onnx_make_set(call->model, tn_node_item(call->node, index), value);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

void onnx_make_begin(struct onnx_call *call, const char *op, int64_t n_out)
{
    struct onnx_model *m = call->model;
    struct onnx_node *node = arena_new(&m->arena, 1, sizeof *node);

    if (node == NULL) {
        fail(m, TN_ERR_MEMORY);
        return;
    }
    node->op = op;
    node->path = tn_node_path(call->node);
    node->n_out = n_out;
    node->outer = call->open;
    call->open = node;
}

void onnx_make_add(struct onnx_call *call, const struct onnx_value *value)
{
    struct onnx_node *node = call->open;
    const struct onnx_value **more;

    if (call->model->status != TN_OK)
        return;
    if (node->n_in == node->capacity) {
        node->capacity = 2 * node->capacity + 4;
        more = arena_new(&call->model->arena, (uint64_t)node->capacity, sizeof(*more));
        if (more == NULL) {
            fail(call->model, TN_ERR_MEMORY);
            return;
        }
        if (node->n_in > 0)
            memcpy((void *)more, (const void *)node->in, (size_t)node->n_in * sizeof(*more));
        node->in = more;
    }
    node->in[node->n_in++] = value != NULL ? value : &nothing;
}

/* Types of attributes in ONNX. */
enum {
    ATTRIBUTE_FLOAT = 1,
    ATTRIBUTE_INT = 2,
    ATTRIBUTE_TEXT = 3,
    ATTRIBUTE_INTS = 7,
    ATTRIBUTE_TEXTS = 8
};

static void add_attribute(struct onnx_call *call, struct buffer *attribute, const char *name,
                          uint64_t type)
{
    buffer_text(attribute, 1, name);
    buffer_int(attribute, 20, type);
    if (call->model->status == TN_OK)
        buffer_message(&call->open->attributes, 5, attribute);
    buffer_free(attribute);
}

void onnx_make_int(struct onnx_call *call, const char *name, int64_t number)
{
    struct buffer attribute = { .status = TN_OK };

    buffer_int(&attribute, 3, (uint64_t)number);
    add_attribute(call, &attribute, name, ATTRIBUTE_INT);
}

void onnx_make_float(struct onnx_call *call, const char *name, double number)
{
    struct buffer attribute = { .status = TN_OK };

    buffer_float(&attribute, 2, (float)number);
    add_attribute(call, &attribute, name, ATTRIBUTE_FLOAT);
}

void onnx_make_word(struct onnx_call *call, const char *name, const char *text)
{
    struct buffer attribute = { .status = TN_OK };

    buffer_text(&attribute, 4, text);
    add_attribute(call, &attribute, name, ATTRIBUTE_TEXT);
}

void onnx_make_words(struct onnx_call *call, const char *name, const char *const *at, int64_t count)
{
    struct buffer attribute = { .status = TN_OK };

    for (int64_t i = 0; i < count; i++)
        buffer_text(&attribute, 9, at[i]);
    add_attribute(call, &attribute, name, ATTRIBUTE_TEXTS);
}

void onnx_make_ints(struct onnx_call *call, const char *name, const int64_t *at, int64_t count)
{
    struct buffer attribute = { .status = TN_OK };

    for (int64_t i = 0; i < count; i++)
        buffer_int(&attribute, 8, (uint64_t)at[i]);
    add_attribute(call, &attribute, name, ATTRIBUTE_INTS);
}

const struct onnx_value *onnx_make_end(struct onnx_call *call)
{
    struct onnx_model *m = call->model;
    struct onnx_node *node = call->open;

    if (m->status != TN_OK)
        return &nothing;
    call->open = node->outer;
    call->done = node;
    if (m->last != NULL)
        m->last->next = node;
    else
        m->nodes = node;
    m->last = node;
    while (node->n_in > 0 && node->in[node->n_in - 1] == &nothing)
        node->n_in--;
    for (int64_t i = 0; i < node->n_out; i++) {
        node->out[i] = new_value(m, tn_node_name(call->node));
        if (node->out[i] == NULL)
            return &nothing;
    }
    return node->out[0];
}

const struct onnx_value *onnx_make_output(struct onnx_call *call, int64_t index)
{
    return call->model->status == TN_OK ? call->done->out[index] : &nothing;
}

const struct onnx_value *onnx_make_node(struct onnx_call *call, const char *op,
                                        const struct onnx_value *a, const struct onnx_value *b,
                                        const struct onnx_value *c)
{
    onnx_make_begin(call, op, 1);
    onnx_make_add(call, a);
    onnx_make_add(call, b);
    onnx_make_add(call, c);
    return onnx_make_end(call);
}

const struct onnx_value *onnx_make_cast(struct onnx_call *call, const struct onnx_value *value,
                                        tn_dtype dtype)
{
    uint64_t type = onnx_tensor_type(dtype);

    if (type == 0)
        onnx_make_fail(call, "it needs a dtype that ONNX does not have");
    onnx_make_begin(call, "Cast", 1);
    onnx_make_add(call, value);
    onnx_make_int(call, "to", (int64_t)type);
    return onnx_make_end(call);
}

const struct onnx_value *onnx_make_split(struct onnx_call *call, const struct onnx_value *x,
                                         int64_t dim, int64_t parts)
{
    onnx_make_begin(call, "Split", parts);
    onnx_make_add(call, x);
    onnx_make_int(call, "axis", dim);
    if (call->model->opset >= 18)
        onnx_make_int(call, "num_outputs", parts);
    return onnx_make_end(call);
}

void onnx_make_opset(struct onnx_call *call, int64_t opset)
{
    if (call->model->opset < opset)
        call->model->opset = opset;
}
