/* SPDX-License-Identifier: MIT
 *
 * Parts of the text of a graph: names, types, values, packs. */
#include "core/base/spec.h"
#include "core/base/vector.h"
#include "lib/graph/text_read.h"

enum { DEEPEST = 32, MOST_ARGUMENTS = 1 << 16 };

/* ---- characters ------------------------------------------------------------------------------ */

tn_status tn__graph_read_wrong(tn__reader *r, const char *expected)
{
    char shown[64];
    size_t length = strcspn(r->at, "\n");

    tn_snprint(shown, sizeof shown, "%.*s", length < 24 ? (int)length : 24, r->at);
    return tn_fail(TN_ERR_FORMAT, "tn_graph_parse: line %lld, column %lld: got %q; expected %s",
                   (long long)r->number, (long long)(r->at - r->line + 1), shown, expected);
}

tn_status tn__graph_read_most(tn__reader *r, int most, const char *what)
{
    char expected[64];

    tn_snprint(expected, sizeof expected, "at most %d %s", most, what);
    return tn__graph_read_wrong(r, expected);
}

tn_status tn__graph_read_here(tn__reader *r)
{
    return tn_error_prefix("tn_graph_parse: line %lld: ", (long long)r->number);
}

void tn__graph_read_space(tn__reader *r)
{
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
}

bool tn__graph_read_take(tn__reader *r, const char *word)
{
    size_t length = strlen(word);

    tn__graph_read_space(r);
    if (strncmp(r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

static bool is_letter(char c)
{
    return tn__spec_starts_word(c) || tn__spec_is_digit(c);
}

/* Reads a name of letters, digits, `_` and the characters in `more`; NULL and sets the error if
 * there is none. */
const char *tn__graph_read_word(tn__reader *r, const char *more, const char *expected)
{
    const char *from;

    tn__graph_read_space(r);
    from = r->at;
    while (is_letter(*r->at) || (*r->at != '\0' && strchr(more, *r->at) != NULL))
        r->at++;
    if (r->at > from)
        return tn__arena_text(r->arena, from, (size_t)(r->at - from));
    tn__graph_read_wrong(r, expected);
    return NULL;
}

/* Returns the position after the text in quotes that comes next; r->at if none does. */
static const char *after_quotes(const tn__reader *r)
{
    const struct tn__parser p = { .text = r->at };

    return r->at + tn__spec_after_string(&p, 0);
}

/* Reads a text in quotes; NULL and sets the error if there is none. */
static const char *read_quoted(tn__reader *r)
{
    const char *end = after_quotes(r), *text;
    tn_value value;

    if (end == r->at) {
        tn__graph_read_wrong(r, "a text in quotes");
        return NULL;
    }
    text = tn__arena_text(r->arena, r->at, (size_t)(end - r->at));
    if (text == NULL || tn__spec_parse_value(text, r->arena, &value) != TN_OK)
        return NULL;
    r->at = end;
    return value.as.s;
}

const char *tn__graph_read_path(tn__reader *r, const char *of)
{
    const char *path;
    char *whole;
    size_t size;

    if (!r->code || of == NULL || *r->at != '[' ||
        (strcmp(of, "self") != 0 && strcmp(of, "CONSTANTS") != 0))
        return of;
    r->at++;
    path = read_quoted(r);
    if (path != NULL && !tn__graph_read_take(r, "]")) {
        tn__graph_read_wrong(r, "]");
        return NULL;
    }
    if (path == NULL)
        return NULL;
    size = strlen(of) + strlen(path) + 2;
    whole = tn__arena_alloc(r->arena, size);
    if (whole != NULL)
        tn_snprint(whole, size, "%s.%s", of, path);
    return whole;
}

/* Whether `name =` comes next, which names an argument. */
bool tn__graph_read_named(const tn__reader *r)
{
    const char *at = after_quotes(r);
    bool quoted = at != r->at;

    if (!quoted && !tn__spec_starts_word(*at))
        return false;
    while (!quoted && (is_letter(*at) || *at == '.'))
        at++;
    while (*at == ' ')
        at++;
    return *at == '=';
}

/* Finds the end of a text that stops at one of the bytes of `ends`, outside of quotes and
 * brackets. */
static const char *text_end(const tn__reader *r, const char *ends)
{
    const char *at = r->at;
    int depth = 0;

    for (; *at != '\0' && *at != '\n'; at++) {
        if (depth == 0 && strchr(ends, *at) != NULL)
            return at;
        if (*at == '"' || *at == '\'') {
            char mark = *at++;

            while (*at != '\0' && *at != '\n' && *at != mark)
                at += *at == '\\' && at[1] != '\0' ? 2 : 1;
            if (*at != mark)
                break;
        }
        depth += *at == '(' || *at == '[' || *at == '{';
        depth -= *at == ')' || *at == ']' || *at == '}';
    }
    return NULL;
}

const char *tn__graph_read_raw(tn__reader *r, const char *ends)
{
    const char *end = text_end(r, ends), *text;

    if (end == NULL) {
        tn__graph_read_wrong(r, "a value that ends on this line");
        return NULL;
    }
    text = tn__arena_text(r->arena, r->at, (size_t)(end - r->at));
    r->at = end;
    return text;
}

/* ---- types --------------------------------------------------------------------------------------
 */

static tn_status read_shape(tn__reader *r, tn__left *left)
{
    tn_meta *meta = &left->meta;

    meta->ndim = 0;
    while (!tn__graph_read_take(r, "]")) {
        const char *text, *end;
        int64_t size;

        if (meta->ndim > 0 && !tn__graph_read_take(r, ","))
            return tn__graph_read_wrong(r, "a comma or ]");
        if (meta->ndim >= TN_MAX_DIMS)
            return tn__graph_read_most(r, TN_MAX_DIMS, "dimensions");
        tn__graph_read_space(r);
        end = tn__symbols_read(r->graph, r->at, &left->dims[meta->ndim]);
        if (end != NULL) {
            size = tn__symbols_now(r->graph, &left->dims[meta->ndim]);
            left->symbolic |= 1u << meta->ndim;
            r->at = end;
        } else {
            text = tn__graph_read_word(r, "", "a size");
            if (text == NULL)
                return tn_error_last_code();
            if (!tn_read_int(text, &size))
                size = -1;
        }
        if (size < 0)
            return tn__graph_read_wrong(r, "sizes of 0 or more");
        meta->shape[meta->ndim++] = size;
    }
    return TN_OK;
}

tn_status tn__graph_read_symbols(tn_node *node, int32_t output, const tn__left *left)
{
    tn_status status = TN_OK;

    for (int32_t d = 0; d < left->meta.ndim && left->typed && status == TN_OK; d++)
        if ((left->symbolic >> d & 1) != 0) {
            tn__expr expr = left->dims[d];

            expr.row = -1 - output;
            expr.item = d;
            status = tn__symbols_add(node, &expr);
        }
    return status;
}

tn_status tn__graph_read_type(tn__reader *r, tn__left *left)
{
    const char *text;
    uint64_t bytes, mark;
    tn_status status;

    if (!tn__graph_read_take(r, ":"))
        return TN_OK;
    text = tn__graph_read_word(r, ".", "a type");
    if (text == NULL)
        return tn_error_last_code();
    left->typed = true;
    left->meta = (tn_meta){ .dtype = TN_DTYPE_AUTO, .ndim = -1 };
    if (strcmp(text, "Tensor") == 0)
        return TN_OK;
    if (*r->at != '[') {
        left->is_module = true;
        return TN_OK;
    }
    r->at++;
    mark = tn_error_mark();
    if (tn_dtype_parse(text, &left->meta.dtype) != TN_OK) {
        tn_error_restore(mark);
        return tn__graph_read_wrong(r, "the name of a dtype before the sizes");
    }
    status = read_shape(r, left);
    if (status == TN_OK && tn__tensor_meta_bytes(&left->meta, &bytes) != TN_OK)
        status = tn__graph_read_here(r);
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

tn_node *tn__graph_read_leaf(tn__reader *r, tn_node_kind kind, const char *path, const char *name)
{
    uint64_t mark = tn_error_mark();
    tn_tensor *tensor;

    for (tn_node *node = r->graph->first; name == NULL && node != NULL && tn__graph_is_leaf(node);
         node = node->next)
        if (node->kind == kind && strcmp(tn__graph_target(node), path) == 0)
            return node;
    if (kind == TN_NODE_CONSTANT)
        tensor = r->constants != NULL ? tn_state_get(r->constants, path) : NULL;
    else
        tensor = r->root != NULL ? tn_module_find_tensor(r->root, path) : NULL;
    if (!tn__tensor_ok(tensor)) {
        if (tn_error_mark() != mark && tn_error_last_code() == TN_ERR_MEMORY)
            return NULL;
        tn_error_restore(mark);
        tn_fail(TN_ERR_KEY, "tn_graph_parse: line %lld: %q: not found among the %s",
                (long long)r->number, path,
                kind == TN_NODE_CONSTANT ? "given constants" : "tensors of the module");
        return NULL;
    }
    return tn__build_held(r->graph, kind, path, name, tensor);
}

tn_node *tn__graph_read_find(tn__reader *r, const char *name)
{
    tn_node *node;

    if (r->code && strncmp(name, "self.", 5) == 0)
        return tn__graph_read_leaf(r, TN_NODE_SLOT, name + 5, NULL);
    if (r->code && strncmp(name, "CONSTANTS.", 10) == 0)
        return tn__graph_read_leaf(r, TN_NODE_CONSTANT, name + 10, NULL);
    node = tn_graph_find(r->graph, name);
    if (node == NULL)
        tn__graph_read_here(r);
    return node;
}

tn_status tn__graph_read_add(tn__reader *r, tn_node *node)
{
    if (node == NULL)
        return tn_error_last_code();
    if (r->n_nodes >= MOST_ARGUMENTS)
        return tn__graph_read_most(r, MOST_ARGUMENTS, "arguments");
    if (!tn__vector_room(&r->nodes, &r->nodes_capacity, r->n_nodes + 1, sizeof(tn_node *)))
        return TN_ERR_MEMORY;
    r->nodes[r->n_nodes++] = node;
    return TN_OK;
}

/* Whether a value of the graph comes next, and not a number, a text or the like. */
bool tn__graph_read_at_value(const tn__reader *r)
{
    static const char *const words[] = { "True", "False", "None", "none", "inf", "nan" };

    if (!r->code)
        return *r->at == '%';
    for (size_t i = 0; i < tn__countof(words); i++)
        if (strncmp(r->at, words[i], strlen(words[i])) == 0 && !is_letter(r->at[strlen(words[i])]))
            return false;
    return tn__spec_starts_word(*r->at);
}

const char *tn__graph_read_name(tn__reader *r)
{
    if (!r->code && !tn__graph_read_take(r, "%")) {
        tn__graph_read_wrong(r, "%name");
        return NULL;
    }
    return tn__graph_read_word(r, ".", "a name");
}

const char *tn__graph_read_reference(tn__reader *r)
{
    return tn__graph_read_path(r, tn__graph_read_name(r));
}

/* Reads an input in the head of the text: its name and type. */
static tn_status read_input(tn__reader *r)
{
    tn__left left = { .name = tn__graph_read_name(r) };
    tn_status status = left.name != NULL ? tn__graph_read_type(r, &left) : tn_error_last_code();
    tn_node *node;

    if (status != TN_OK)
        return status;
    if (!left.typed || left.is_module)
        return tn__graph_read_wrong(r, "a type such as float32[2, 3]");
    tn__op_meta_strides(&left.meta);
    node = tn__build_input(r->graph, left.name, &left.meta);
    return node != NULL && tn__graph_read_symbols(node, 0, &left) == TN_OK ? TN_OK
                                                                           : tn__graph_read_here(r);
}

/* Reads a value of a pack: a node, a list or a constant. */
static tn_status read_form(tn__reader *r, tn__place place, tn_value *out)
{
    static const char opens[] = "([{", closes[] = ")]}";
    const uint32_t kinds[] = { TN_VALUE_TUPLE, TN_VALUE_LIST, TN_VALUE_DICT };
    tn_status status = TN_OK;
    const char *open, *text;
    tn_value *items = NULL;
    int64_t count = 0, capacity = 0;

    tn__graph_read_space(r);
    if (tn__graph_read_at_value(r)) {
        *out = tn_value_tensor(r->mark);
        if (place == TN__PLACE_HEAD)
            return read_input(r);
        text = tn__graph_read_reference(r);
        if (text != NULL && place == TN__PLACE_RESULTS) /* these nodes do not exist yet */
            return TN_OK;
        return text != NULL ? tn__graph_read_add(r, tn__graph_read_find(r, text))
                            : tn_error_last_code();
    }
    open = *r->at != '\0' ? strchr(opens, *r->at) : NULL;
    if (open == NULL) {
        text = tn__graph_read_raw(r, ",)]}:");
        if (text != NULL && strcmp(text, "none") == 0)
            text = "None";
        return text != NULL ? tn__spec_parse_value(text, r->arena, out) : tn_error_last_code();
    }
    if (++r->depth > DEEPEST)
        return tn__graph_read_most(r, DEEPEST, "levels of lists");
    r->at++;
    while (status == TN_OK && !tn__graph_read_take(r, (char[2]){ closes[open - opens], '\0' })) {
        bool key = kinds[open - opens] == TN_VALUE_DICT && count % 2 == 1;

        if (count > 0 && !tn__graph_read_take(r, key ? ":" : ","))
            status = tn__graph_read_wrong(r, key ? ":" : "a comma or the end of the list");
        else if (count > 0 && !key &&
                 tn__graph_read_take(r, (char[2]){ closes[open - opens], '\0' }))
            break;
        else if (count >= MOST_ARGUMENTS)
            status = tn__graph_read_most(r, MOST_ARGUMENTS, "values");
        else if (!tn__vector_room(&items, &capacity, count + 1, sizeof *items))
            status = TN_ERR_MEMORY;
        else
            status = read_form(r, place, &items[count++]);
    }
    r->depth--;
    *out = (tn_value){ .kind = kinds[open - opens], .count = (uint32_t)count };
    if (status == TN_OK && count > 0) {
        tn_value *kept = tn__arena_alloc(r->arena, (size_t)count * sizeof *kept);

        if (kept == NULL)
            status = TN_ERR_MEMORY;
        else
            out->as.list = memcpy(kept, items, (size_t)count * sizeof *kept);
    }
    tn_free(items);
    return status;
}

tn_status tn__graph_read_pack(tn__reader *r, tn__place place, tn_pack **out)
{
    tn_pack *pack = tn_pack_new();
    tn_status status = pack != NULL ? TN_OK : TN_ERR_MEMORY;
    bool plain = true, first = true;

    *out = NULL;
    while (status == TN_OK && !tn__graph_read_take(r, ")")) {
        const char *name = NULL;
        tn_value value = tn_value_none();

        if (!first && !tn__graph_read_take(r, ","))
            status = tn__graph_read_wrong(r, "a comma or )");
        tn__graph_read_space(r);
        if (status == TN_OK && tn__graph_read_named(r)) {
            name = tn__spec_starts_word(*r->at) ? tn__graph_read_word(r, ".", "a name")
                                                : read_quoted(r);
            status = name != NULL ? TN_OK : tn_error_last_code();
            tn__graph_read_take(r, "=");
        }
        if (status == TN_OK)
            status = read_form(r, place, &value);
        if (status == TN_OK)
            status = tn_pack_add(pack, name, value);
        plain &= name == NULL && value.kind == TN_VALUE_TENSOR;
        first = false;
    }
    if (status == TN_OK && (!plain || (place != TN__PLACE_HEAD && place != TN__PLACE_ENDS &&
                                       tn_pack_count(pack) != 1)))
        *out = pack;
    else
        tn_pack_drop(pack);
    return status;
}

/* ---- comments -------------------------------------------------------------------------------- */

/* Reads the path before the type in a comment; it has quotes if it does not consist of names. */
static const char *read_place(tn__reader *r)
{
    const char *from = r->at;

    if (after_quotes(r) != from)
        return read_quoted(r);
    r->at += strcspn(from, "(\n");
    return tn__arena_text(r->arena, from,
                          r->at > from && r->at[-1] == ' ' ? (size_t)(r->at - from - 1) : 0);
}

/* Notes the module of a node: its path, and the type in brackets up to `end`. */
static tn_status set_module(tn__reader *r, tn_node *node, const char *path, const char *end)
{
    const char *type = tn__arena_text(r->arena, r->at + 1, (size_t)(end - r->at - 2));
    tn_status status = type != NULL ? tn__graph_set_text(&node->path, path) : TN_ERR_MEMORY;

    return status == TN_OK ? tn__graph_set_text(&node->type, type) : status;
}

tn_status tn__graph_read_comment(tn__reader *r, tn_node *node)
{
    const char *end, *path;
    tn_status status = TN_OK;

    tn__graph_read_space(r);
    if (*r->at != '#' && *r->at != '\n' && *r->at != '\0')
        return tn__graph_read_wrong(r, "the end of the line");
    end = r->at + strcspn(r->at, "\n");
    if (node != NULL && strncmp(r->at, "# ", 2) == 0 && end[-1] == ')') {
        r->at += 2;
        path = read_place(r);
        if (path == NULL)
            return tn_error_last_code();
        tn__graph_read_space(r);
        if (*r->at == '(' && end - r->at > 2)
            status = set_module(r, node, path, end);
    }
    r->at = end;
    return status;
}
