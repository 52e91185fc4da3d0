/* SPDX-License-Identifier: MIT
 *
 * Writes the file of a model (onnx.h): all messages but the data of the tensors are made first, so
 * that their lengths are known; then the data follows from the tensors. Files of protobuf have less
 * than 2 GiB, so the data of large models is in a file beside. */
#include "export/onnx.h"
#include "foreign.h"
#include "onnx/onnx.h"

#include <string.h>

enum {
    SMALL = 1024,    /* bytes of a tensor that stays in the model */
    ALIGNMENT = 4096 /* of tensors in the other file, so that it can be mapped */
};

struct file {
    struct onnx_model *m;
    const tn_sink *sink, *beside; /* NULL: all data is in the model */
    char name[300];               /* of the file beside */
    struct buffer head, tail;     /* the graph before and after the tensors */
    struct names used;            /* of nodes */
    uint64_t offset;              /* in the file beside */
};

/* ---- types ----------------------------------------------------------------------------------- */

static void put_value(struct file *f, struct buffer *to, uint32_t field, const char *name,
                      const tn_node *node)
{
    struct buffer info = { .status = TN_OK }, type = { .status = TN_OK };
    struct buffer tensor = { .status = TN_OK }, shape = { .status = TN_OK };
    struct buffer dim = { .status = TN_OK };
    struct export_size sizes[TN_MAX_DIMS];
    int32_t ndim = export_sizes_of(&f->m->graph, node, sizes);
    tn_meta meta;

    if (tn_node_meta(node, &meta) != TN_OK)
        meta.dtype = TN_F32;
    for (int32_t i = 0; i < ndim; i++) {
        char text[200];

        export_sizes_text(&f->m->graph, &sizes[i], text, sizeof text);
        if (sizes[i].a < 0)
            buffer_int(&dim, 1, (uint64_t)sizes[i].number);
        else
            buffer_text(&dim, 2, text);
        buffer_message(&shape, 1, &dim);
    }
    buffer_int(&tensor, 1, onnx_tensor_type(meta.dtype));
    if (ndim >= 0)
        buffer_message(&tensor, 2, &shape);
    buffer_message(&type, 1, &tensor);
    buffer_text(&info, 1, name);
    buffer_message(&info, 2, &type);
    buffer_message(to, field, &info);
    buffer_free(&info);
    buffer_free(&type);
    buffer_free(&tensor);
    buffer_free(&shape);
    buffer_free(&dim);
}

static void put_values(struct file *f)
{
    const struct onnx_model *m = f->m;

    for (const tn_node *node = tn_graph_first(m->graph.graph); node; node = tn_node_next(node)) {
        if (tn_node_kind_of(node) == TN_NODE_INPUT)
            put_value(f, &f->tail, 11, onnx_make_of(f->m, node)->name, node);
        for (int64_t i = 0; tn_node_kind_of(node) == TN_NODE_OUTPUT && i < m->n_outputs; i++)
            put_value(f, &f->tail, 12, m->outputs[i]->name, tn_node_input(node, i));
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* "/layer1/layer1.0/conv1/Conv", as PyTorch names them, with a number if it is taken. */
static const char *node_name(struct file *f, const struct onnx_node *node)
{
    char text[1200] = "/", word[300] = "", name[1300];
    const char *path = node->path != NULL ? node->path : "", *copy;

    while (*path != '\0') {
        size_t length = strcspn(path, "."), used = strlen(text), last = strlen(word);

        if (used + last + length + 4 >= sizeof text || last + length + 2 >= sizeof word)
            break;
        if (*path < '0' || *path > '9' || last == 0)
            tn_snprint(word, sizeof word, "%.*s", (int)length, path);
        else
            tn_snprint(word + last, sizeof word - last, ".%.*s", (int)length, path);
        tn_snprint(text + used, sizeof text - used, "%s/", word);
        path += length + (path[length] == '.');
    }
    tn_snprint(name, sizeof name, "%s%s", text, node->op);
    for (int64_t i = 1; names_find(&f->used, name) >= 0; i++)
        tn_snprint(name, sizeof name, "%s%s_%lld", text, node->op, (long long)i);
    copy = arena_text(&f->m->arena, name, strlen(name));
    if (copy == NULL || names_add(&f->used, copy, 0) != TN_OK)
        f->head.status = TN_ERR_MEMORY;
    return copy != NULL ? copy : "";
}

static void put_pair(struct buffer *to, uint32_t field, const char *key, const char *text)
{
    struct buffer pair = { .status = TN_OK };

    buffer_text(&pair, 1, key);
    buffer_text(&pair, 2, text);
    buffer_message(to, field, &pair);
    buffer_free(&pair);
}

static void add_text(struct buffer *to, const char *begin, const char *text, size_t length,
                     const char *end)
{
    buffer_put(to, begin, strlen(begin));
    buffer_put(to, text, length);
    buffer_put(to, end, strlen(end));
}

/* The paths and types of the modules around a node, as PyTorch's exporter writes them. */
static void put_modules(struct file *f, struct buffer *to, const struct onnx_node *node)
{
    struct buffer scopes = { .status = TN_OK }, classes = { .status = TN_OK };
    const char *path = node->path, *type = tn_script_original(f->m->graph.script);

    if (path == NULL)
        return;
    add_text(&scopes, "['", "", 0, "', ");
    add_text(&classes, "['", type, strlen(type), "', ");
    for (size_t at = 0; path[at] != '\0';) {
        char part[700];
        uint64_t mark = tn_error_mark();
        tn_module *module;

        at += strcspn(path + at, ".");
        tn_snprint(part, sizeof part, "%.*s", (int)(at < 600 ? at : 600), path);
        module = tn_module_find(f->m->graph.script, part);
        type = module != NULL ? tn_script_original(module) : "";
        tn_error_restore(mark);
        add_text(&scopes, "'", part, strlen(part), "', ");
        add_text(&classes, "'", type != NULL ? type : "", type != NULL ? strlen(type) : 0, "', ");
        at += path[at] == '.';
    }
    add_text(&scopes, "'", node->out[0]->name, strlen(node->out[0]->name), "']");
    add_text(&classes, "'", node->op, strlen(node->op), "']");
    buffer_put(&scopes, "", 1);
    buffer_put(&classes, "", 1);
    if (scopes.status != TN_OK || classes.status != TN_OK) {
        to->status = TN_ERR_MEMORY;
    } else {
        put_pair(to, 9, "pkg.torch.onnx.name_scopes", (const char *)scopes.at);
        put_pair(to, 9, "pkg.torch.onnx.class_hierarchy", (const char *)classes.at);
    }
    buffer_free(&scopes);
    buffer_free(&classes);
}

static void put_nodes(struct file *f)
{
    struct buffer message = { .status = TN_OK };

    for (const struct onnx_node *node = f->m->nodes; node != NULL; node = node->next) {
        for (int64_t i = 0; i < node->n_in; i++)
            buffer_text(&message, 1, node->in[i]->name);
        for (int64_t i = 0; i < node->n_out; i++)
            buffer_text(&message, 2, node->out[i]->name);
        buffer_text(&message, 3, node_name(f, node));
        buffer_text(&message, 4, node->op);
        if (node->attributes.status != TN_OK)
            message.status = node->attributes.status;
        buffer_put(&message, node->attributes.at, node->attributes.count);
        put_modules(f, &message, node);
        buffer_message(&f->head, 1, &message);
    }
    buffer_free(&message);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct onnx_initial *initial)
{
    if (initial->tensor == NULL)
        return initial->n_bytes;
    return (uint64_t)tn_tensor_numel(initial->tensor) *
           tn_dtype_size(tn_tensor_dtype(initial->tensor));
}

static bool is_beside(const struct file *f, const struct onnx_initial *initial)
{
    return f->beside != NULL && bytes_of(initial) > SMALL;
}

/* The message of a tensor without its data inside; `inside` is then the length of the data. */
static void put_tensor(struct file *f, struct buffer *to, struct onnx_initial *initial,
                       uint64_t *inside)
{
    struct buffer message = { .status = TN_OK };
    uint64_t bytes = bytes_of(initial);
    char number[24];

    for (int64_t i = 0; i < initial->ndim; i++)
        buffer_int(&message, 1, (uint64_t)initial->dims[i]);
    buffer_int(&message, 2, initial->type);
    buffer_text(&message, 8, initial->value->name);
    *inside = is_beside(f, initial) ? 0 : bytes;
    if (is_beside(f, initial)) {
        initial->offset = (f->offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        f->offset = initial->offset + bytes;
        put_pair(&message, 13, "location", f->name);
        tn_snprint(number, sizeof number, "%llu", (unsigned long long)initial->offset);
        put_pair(&message, 13, "offset", number);
        tn_snprint(number, sizeof number, "%llu", (unsigned long long)bytes);
        put_pair(&message, 13, "length", number);
        buffer_int(&message, 14, 1);
    } else {
        buffer_number(&message, 9 << 3 | WIRE_BYTES);
        buffer_number(&message, bytes);
    }
    buffer_number(to, 5 << 3 | WIRE_BYTES);
    buffer_number(to, message.count + *inside);
    if (message.status != TN_OK)
        to->status = message.status;
    buffer_put(to, message.at, message.count);
    buffer_free(&message);
}

static tn_status send(const tn_sink *sink, const void *from, size_t count)
{
    return count > 0 ? sink->write(sink->user, from, count) : TN_OK;
}

static tn_status send_data(const tn_sink *sink, const struct onnx_initial *initial)
{
    size_t bytes = (size_t)bytes_of(initial);
    void *data;
    tn_status status;

    if (initial->tensor == NULL)
        return send(sink, initial->bytes, bytes);
    data = tn_malloc(bytes + 1);
    status = data != NULL ? tn_tensor_copy_out(initial->tensor, data, bytes) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = send(sink, data, bytes);
    tn_free(data);
    return status;
}

static tn_status send_beside(struct file *f)
{
    static const char zeros[ALIGNMENT];
    uint64_t at = 0;
    tn_status status = TN_OK;

    for (const struct onnx_initial *i = f->m->initials; i != NULL && status == TN_OK; i = i->next) {
        if (!is_beside(f, i))
            continue;
        status = send(f->beside, zeros, (size_t)(i->offset - at));
        if (status == TN_OK)
            status = send_data(f->beside, i);
        at = i->offset + bytes_of(i);
    }
    return status;
}

static uint64_t all_bytes(const struct onnx_model *m)
{
    uint64_t sum = 0;

    for (const struct onnx_initial *i = m->initials; i != NULL; i = i->next)
        sum += bytes_of(i);
    return sum;
}

static tn_status open_beside(struct file *f)
{
    const char *name = strrchr(f->sink->path, '/');

    name = name != NULL ? name + 1 : f->sink->path;
    if (strlen(name) + 6 > sizeof f->name)
        return tn_fail(TN_ERR_VALUE, "%s: its name is too long; expected at most %d characters",
                       f->sink->path, (int)sizeof f->name - 6);
    tn_snprint(f->name, sizeof f->name, "%s.data", name);
    f->beside = tn_sink_sibling(f->sink, f->name);
    return f->beside != NULL ? TN_OK : tn_error_last_code();
}

/* ---- the model ------------------------------------------------------------------------------- */

/* The version of the file format that came with a version of the operators. */
static uint64_t format_version(int64_t opset)
{
    return opset >= 23 ? 11 : opset >= 21 ? 10 : opset >= 20 ? 9 : 8;
}

static tn_status send_head(struct file *f, uint64_t graph)
{
    struct buffer b = { .status = TN_OK }, import = { .status = TN_OK };
    tn_status status;

    buffer_int(&b, 1, format_version(f->m->opset));
    buffer_text(&b, 2, "tenon");
    buffer_text(&b, 3, FOREIGN_VERSION);
    buffer_text(&import, 1, "");
    buffer_int(&import, 2, (uint64_t)f->m->opset);
    buffer_message(&b, 8, &import);
    buffer_number(&b, 7 << 3 | WIRE_BYTES);
    buffer_number(&b, graph);
    status = b.status == TN_OK ? send(f->sink, b.at, b.count) : b.status;
    buffer_free(&b);
    buffer_free(&import);
    return status;
}

/* The texts among the files of the script, as metadata. */
static tn_status send_texts(const struct file *f)
{
    const tn_state *files = tn_script_files(f->m->graph.script);
    struct buffer b = { .status = TN_OK };
    tn_status status;

    for (int64_t i = 0; files != NULL && i < tn_state_count(files); i++)
        if (tn_state_value(files, i).kind == TN_VALUE_STRING)
            put_pair(&b, 14, tn_state_name(files, i), tn_state_value(files, i).as.s);
    status = b.status == TN_OK ? send(f->sink, b.at, b.count) : b.status;
    buffer_free(&b);
    return status;
}

/* The messages of all tensors, one after the other; ends[i] is where that of tensor i ends. */
static tn_status send_graph(struct file *f)
{
    struct buffer tensors = { .status = TN_OK };
    uint64_t total, inside, sum = 0;
    int64_t count = 0, k = 0;
    size_t *ends, first = 0;
    tn_status status = TN_OK;

    for (const struct onnx_initial *i = f->m->initials; i != NULL; i = i->next)
        count++;
    ends = tn_calloc((size_t)count + 1, sizeof *ends);
    if (ends == NULL)
        return TN_ERR_MEMORY;
    for (struct onnx_initial *i = f->m->initials; i != NULL; i = i->next) {
        put_tensor(f, &tensors, i, &inside);
        ends[k++] = tensors.count;
        sum += inside;
    }
    total = f->head.count + tensors.count + sum + f->tail.count;
    if (f->head.status != TN_OK || tensors.status != TN_OK || f->tail.status != TN_OK)
        status = TN_ERR_MEMORY;
    else if (total > INT32_MAX - (1 << 20))
        status = tn_fail(TN_ERR_VALUE, "the model has %llu bytes; expected less than 2^31",
                         (unsigned long long)total);
    if (status == TN_OK)
        status = send_head(f, total);
    if (status == TN_OK)
        status = send(f->sink, f->head.at, f->head.count);
    k = 0;
    for (const struct onnx_initial *i = f->m->initials; i != NULL && status == TN_OK; i = i->next) {
        status = send(f->sink, tensors.at + first, ends[k] - first);
        first = ends[k++];
        if (status == TN_OK && !is_beside(f, i))
            status = send_data(f->sink, i);
    }
    if (status == TN_OK)
        status = send(f->sink, f->tail.at, f->tail.count);
    tn_free(ends);
    buffer_free(&tensors);
    return status;
}

tn_status onnx_file_write(struct onnx_model *m, const tn_sink *sink)
{
    struct file f = { .m = m, .sink = sink };
    const char *type = tn_script_original(m->graph.script);
    tn_status status = TN_OK;

    if (all_bytes(m) > (uint64_t)foreign_onnx_inside())
        status = open_beside(&f);
    put_nodes(&f);
    buffer_text(&f.head, 2, type != NULL && type[0] != '\0' ? type : "graph");
    put_values(&f);
    if (status == TN_OK)
        status = send_graph(&f);
    if (status == TN_OK)
        status = send_texts(&f);
    if (status == TN_OK && f.beside != NULL)
        status = send_beside(&f);
    buffer_free(&f.head);
    buffer_free(&f.tail);
    names_free(&f.used);
    return status;
}
