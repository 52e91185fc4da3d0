/* SPDX-License-Identifier: MIT
 *
 * Constants of a model that is written, and sizes, which are computed where they vary (onnx.h). */
#include "export/onnx.h"
#include "onnx/onnx.h"

#include <math.h>
#include <string.h>

enum { SHARED = 64 }; /* constants of at most that many bytes are made once */

static void fail(struct onnx_call *call, tn_status status)
{
    if (call->model->status == TN_OK)
        call->model->status = status;
}

/* ---- constants ------------------------------------------------------------------------------- */

static void key_of(uint64_t type, const int64_t *dims, int64_t ndim, const unsigned char *bytes,
                   size_t n_bytes, char *out, size_t size)
{
    size_t used;

    tn_snprint(out, size, "%d:%d", (int)type, (int)ndim);
    for (int64_t i = 0; i < ndim; i++) {
        used = strlen(out);
        tn_snprint(out + used, size - used, ",%lld", (long long)dims[i]);
    }
    for (size_t i = 0; i < n_bytes; i++) {
        used = strlen(out);
        tn_snprint(out + used, size - used, "%s%x", i == 0 ? ":" : ".", bytes[i]);
    }
}

/* Names that begin with a slash are made up: they are no parameters where the file is read. */
static struct onnx_initial *new_initial(struct onnx_call *call, uint64_t type, const int64_t *dims,
                                        int64_t ndim)
{
    struct onnx_model *m = call->model;
    struct onnx_initial *made = arena_new(&m->arena, 1, sizeof *made);
    struct onnx_value *value = arena_new(&m->arena, 1, sizeof *value);
    char name[40];

    tn_snprint(name, sizeof name, "/constants/%lld", (long long)m->constants.count);
    if (made != NULL && value != NULL)
        value->name = arena_text(&m->arena, name, strlen(name));
    if (made == NULL || value == NULL || value->name == NULL) {
        fail(call, TN_ERR_MEMORY);
        return NULL;
    }
    *made = (struct onnx_initial){ .value = value, .type = type, .ndim = ndim };
    if (ndim > 0)
        memcpy(made->dims, dims, (size_t)ndim * sizeof *dims);
    if (m->last_initial != NULL)
        m->last_initial->next = made;
    else
        m->initials = made;
    m->last_initial = made;
    return made;
}

/* Finds a constant that was made, or makes it. */
static struct onnx_value *find(const struct onnx_model *m, const char *key)
{
    int64_t at = names_find(&m->constants, key);
    struct onnx_initial *initial = m->initials;

    if (at < 0)
        return NULL;
    for (int64_t i = 0; initial != NULL; initial = initial->next)
        if (strncmp(initial->value->name, "/constants/", 11) == 0 && i++ == at)
            return (struct onnx_value *)(uintptr_t)initial->value;
    return NULL;
}

const struct onnx_value *onnx_make_constant(struct onnx_call *call, uint64_t type,
                                            const int64_t *dims, int64_t ndim, const void *bytes,
                                            size_t n_bytes)
{
    struct onnx_model *m = call->model;
    char key[24 * TN_MAX_DIMS + 4 * SHARED + 40];
    struct onnx_value *known;
    struct onnx_initial *made;
    void *copy;
    const char *name;

    if (m->status != TN_OK)
        return NULL;
    if (n_bytes <= SHARED)
        key_of(type, dims, ndim, bytes, n_bytes, key, sizeof key);
    else
        tn_snprint(key, sizeof key, "number %lld", (long long)m->constants.count);
    known = find(m, key);
    if (known != NULL)
        return known;
    made = new_initial(call, type, dims, ndim);
    copy = arena_new(&m->arena, n_bytes + 1, 1);
    name = arena_text(&m->arena, key, strlen(key));
    if (made == NULL || copy == NULL || name == NULL) {
        fail(call, TN_ERR_MEMORY);
        return NULL;
    }
    if (n_bytes > 0)
        memcpy(copy, bytes, n_bytes);
    made->bytes = copy;
    made->n_bytes = n_bytes;
    fail(call, names_add(&m->constants, name, (int64_t)m->constants.count));
    return made->value;
}

const struct onnx_value *onnx_make_list(struct onnx_call *call, const int64_t *at, int64_t count)
{
    return onnx_make_constant(call, ONNX_INT64, &count, 1, at, (size_t)count * sizeof *at);
}

const struct onnx_value *onnx_make_index(struct onnx_call *call, int64_t number)
{
    return onnx_make_constant(call, ONNX_INT64, NULL, 0, &number, sizeof number);
}

/* Makes a constant of a tensor on the host. */
static const struct onnx_value *of_tensor(struct onnx_call *call, tn_tensor *tensor)
{
    tn_tensor *host = tensor != NULL ? tn_copy(tn_tensor_detach(tensor)) : NULL;
    tn_dtype dtype = host != NULL ? tn_tensor_dtype(host) : TN_F32;
    uint64_t type = onnx_tensor_type(dtype);
    size_t bytes = host != NULL ? (size_t)tn_tensor_numel(host) * tn_dtype_size(dtype) : 0;
    const void *data = host != NULL ? tn_tensor_data(host) : NULL;

    if (host == NULL || (data == NULL && bytes > 0)) {
        fail(call, tn_error_last_code());
        return NULL;
    }
    if (type == 0) {
        onnx_make_fail(call, "it needs a constant of a dtype that ONNX does not have");
        return NULL;
    }
    return onnx_make_constant(call, type, tn_tensor_shape(host).at, tn_tensor_ndim(host), data,
                              bytes);
}

const struct onnx_value *onnx_make_scalar(struct onnx_call *call, tn_scalar scalar, tn_dtype dtype)
{
    TN_SCOPE;
    static const double zero = 0;
    tn_tensor *none = tn_tensor_from(&zero, TN_F64, TN_SHAPE());

    return of_tensor(call, tn_full(none, TN_SHAPE(), scalar, dtype));
}

const struct onnx_value *onnx_make_number(struct onnx_call *call, double number, tn_dtype dtype)
{
    bool whole = (TN_BIT(dtype) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)) == 0;

    return onnx_make_scalar(call, whole ? tn_scalar_int((int64_t)number) : tn_scalar_float(number),
                            dtype);
}

const struct onnx_value *onnx_make_table(struct onnx_call *call, const double *at,
                                         const int64_t *dims, int64_t ndim, tn_dtype dtype)
{
    TN_SCOPE;
    return of_tensor(call, tn_cast(tn_tensor_from(at, TN_F64, ((tn_ints){ dims, ndim })), dtype));
}

const struct onnx_value *onnx_make_filled(struct onnx_call *call, double number, tn_dtype dtype,
                                          int64_t count)
{
    TN_SCOPE;
    double zero = 0;
    tn_tensor *none = tn_tensor_from(&zero, TN_F64, TN_SHAPE());

    return of_tensor(call, tn_full(none, TN_SHAPE(count), tn_scalar_float(number), dtype));
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* The value of a symbol: a size of an input of the model, from which the expression is undone. */
static const struct onnx_value *symbol(struct onnx_call *call, int32_t index)
{
    struct onnx_model *m = call->model;
    struct export_size at[TN_MAX_DIMS];
    const struct onnx_value *size;

    if (m->symbols[index] != NULL)
        return m->symbols[index];
    for (const tn_node *node = tn_graph_first(m->graph.graph); node != NULL;
         node = tn_node_next(node)) {
        int32_t ndim = tn_node_kind_of(node) == TN_NODE_INPUT ? export_sizes_of(&m->graph, node, at)
                                                              : 0;

        for (int32_t i = 0; i < ndim; i++) {
            if (at[i].a != index || at[i].b >= 0 || at[i].times == 0)
                continue;
            onnx_make_begin(call, "Shape", 1);
            onnx_make_add(call, onnx_make_of(m, node));
            onnx_make_int(call, "start", i);
            onnx_make_int(call, "end", i + 1);
            size = onnx_make_end(call);
            if (at[i].plus != 0)
                size = onnx_make_2(call, "Sub", size, onnx_make_list(call, &at[i].plus, 1));
            if (at[i].times != 1)
                size = onnx_make_2(call, "Div", size, onnx_make_list(call, &at[i].times, 1));
            return m->symbols[index] = size;
        }
    }
    onnx_make_fail(call, "a size that varies is no size of an input of the model");
    return NULL;
}

static const struct onnx_value *one_size(struct onnx_call *call, const struct export_size *size)
{
    const struct onnx_value *value;

    if (size->a < 0)
        return onnx_make_list(call, &size->number, 1);
    value = symbol(call, size->a);
    if (size->b >= 0)
        value = onnx_make_2(call, "Mul", value, symbol(call, size->b));
    if (size->times != 1)
        value = onnx_make_2(call, "Mul", value, onnx_make_list(call, &size->times, 1));
    if (size->plus != 0)
        value = onnx_make_2(call, "Add", value, onnx_make_list(call, &size->plus, 1));
    return value;
}

const struct onnx_value *onnx_make_sizes(struct onnx_call *call, const struct export_size *at,
                                         int64_t count)
{
    const struct onnx_value *parts[TN_MAX_DIMS * 2];
    int64_t numbers[TN_MAX_DIMS * 2], first, n = 0;
    bool varies = false;

    for (int64_t i = 0; i < count; i++) {
        numbers[i] = at[i].number;
        varies |= at[i].a >= 0;
    }
    if (!varies)
        return onnx_make_list(call, numbers, count);
    for (int64_t i = 0; i < count; i++) {
        if (at[i].a >= 0) {
            parts[n++] = one_size(call, &at[i]);
            continue;
        }
        for (first = i; i + 1 < count && at[i + 1].a < 0;)
            i++;
        parts[n++] = onnx_make_list(call, numbers + first, i + 1 - first);
    }
    if (n == 1)
        return parts[0];
    onnx_make_begin(call, "Concat", 1);
    for (int64_t i = 0; i < n; i++)
        onnx_make_add(call, parts[i]);
    onnx_make_int(call, "axis", 0);
    return onnx_make_end(call);
}

const struct onnx_value *onnx_make_shape(struct onnx_call *call)
{
    struct export_size at[TN_MAX_DIMS];
    int32_t ndim = export_sizes_of(&call->model->graph, tn_node_item(call->node, 0), at);

    if (ndim < 0)
        onnx_make_fail(call, "its shape is known only in a run; expected a known one");
    return onnx_make_sizes(call, at, ndim);
}

int64_t onnx_make_shape_of(struct onnx_call *call, const char *input, struct export_size *out)
{
    tn_node *node = onnx_make_source(call, input);
    int32_t ndim = node != NULL ? export_sizes_of(&call->model->graph, node, out) : -1;

    if (ndim < 0)
        onnx_make_fail(call, "the shape of an input is known only in a run; expected a known one");
    return ndim < 0 ? 0 : ndim;
}
