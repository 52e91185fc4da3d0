/* SPDX-License-Identifier: MIT
 *
 * Sizes that may vary: the text of a graph (tn_graph_print) has their names, as sizes of values,
 * "float32[N, 3]", and in options, "reshape[shape=(N, 12)]". */
#include "export/graph.h"

#include <stdlib.h>
#include <string.h>

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* ---- the text -------------------------------------------------------------------------------- */

/* Reads "# tenon.graph 1, eval, N = 2 >= 1" in the first line. */
static tn_status read_symbols(struct export_graph *g, const char *line, const char *end)
{
    const char *at = strstr(line, "# tenon.graph ");

    if (at == NULL || at > end)
        return TN_OK;
    for (const char *sign; (sign = strstr(at, " >= ")) != NULL && sign < end; at = sign + 4) {
        const char *number = sign, *name, *last;

        while (number > at && number[-1] != '=')
            number--;
        last = number - 1;
        while (last > at && last[-1] == ' ')
            last--;
        for (name = last; name > at && is_word(name[-1]);)
            name--;
        if (g->n_symbols == EXPORT_SYMBOLS || name == last)
            return tn_fail(TN_ERR_VALUE, "%s: sizes that vary: too many; expected at most %d",
                           g->path, EXPORT_SYMBOLS);
        g->symbols[g->n_symbols++] = (struct export_symbol){
            arena_text(&g->arena, name, (size_t)(last - name)), strtoll(number, NULL, 10),
            strtoll(sign + 4, NULL, 10)
        };
        if (g->symbols[g->n_symbols - 1].name == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

static tn_status note(struct export_graph *g, struct names *to, const char *name, size_t length,
                      const char *at)
{
    const char *copy = arena_text(&g->arena, name, length);

    if (copy == NULL)
        return tn_error_last_code();
    return names_find(to, copy) < 0 ? names_add(to, copy, at - g->text) : TN_OK;
}

/* "%a : float32[N], %b : int64[] = op[options](...)": notes where the types and options begin. */
static tn_status read_line(struct export_graph *g, const char *at, const char *end)
{
    const char *first = NULL;
    size_t first_length = 0;
    tn_status status = TN_OK;

    while (status == TN_OK && at < end && *at == '%') {
        const char *name = ++at;
        size_t length;

        while (at < end && *at != ' ')
            at++;
        length = (size_t)(at - name);
        if (first == NULL) {
            first = name;
            first_length = length;
        }
        if (end - at > 3 && strncmp(at, " : ", 3) == 0) {
            status = note(g, &g->types, name, length, at + 3);
            for (at += 3; at < end && *at != ']' && *at != ' ';)
                at += strcspn(at, "] ,") + (at[strcspn(at, "] ,")] == ',' ? 2 : 0);
            at += at < end && *at == ']';
        }
        if (at < end && *at == ',')
            at += 2;
    }
    if (status != TN_OK || first == NULL || end - at < 4 || strncmp(at, " = ", 3) != 0)
        return status;
    for (at += 3; at < end && (is_word(*at) || *at == '@');)
        at++;
    return at < end && *at == '[' ? note(g, &g->options, first, first_length, at + 1) : TN_OK;
}

static tn_status read_text(struct export_graph *g)
{
    const char *line = g->text, *end = strchr(line, '\n'), *at;
    tn_status status = end != NULL ? read_symbols(g, line, end) : TN_OK;

    for (at = strchr(line, '%'); status == TN_OK && at != NULL && at < end;) {
        if (strncmp(at, "%self", 5) != 0)
            status = read_line(g, at, end);
        at = strchr(at + 1, '%');
    }
    for (line = end; status == TN_OK && line != NULL; line = end) {
        line++;
        end = strchr(line, '\n');
        if (end != NULL && strncmp(line, "  %", 3) == 0)
            status = read_line(g, line + 2, end);
    }
    return status;
}

tn_status export_sizes_read(struct export_graph *g)
{
    int64_t length = tn_graph_print(g->graph, "text", NULL, 0);
    tn_status status;

    tn_free(g->text);
    names_free(&g->types);
    names_free(&g->options);
    g->n_symbols = 0;
    g->text = length >= 0 ? tn_malloc((size_t)length + 1) : NULL;
    if (g->text == NULL)
        return length < 0 ? tn_error_last_code() : TN_ERR_MEMORY;
    if (tn_graph_print(g->graph, "text", g->text, (size_t)length + 1) < 0)
        return tn_error_last_code();
    status = read_text(g);
    if (status == TN_OK && g->n_symbols == 0) {
        tn_free(g->text);
        g->text = NULL;
    }
    return status;
}

/* ---- expressions ----------------------------------------------------------------------------- */

static int32_t symbol_at(const struct export_graph *g, const char **at)
{
    const char *end = *at;

    while (is_word(*end))
        end++;
    for (int32_t i = 0; i < g->n_symbols; i++) {
        const char *name = g->symbols[i].name;

        if (strlen(name) == (size_t)(end - *at) && strncmp(name, *at, (size_t)(end - *at)) == 0) {
            *at = end;
            return i;
        }
    }
    return -1;
}

/* Reads "3", "N", "2*N", "2*N*M+1"; a plain number if it has no symbols. */
static struct export_size size_at(const struct export_graph *g, const char **at, int64_t number)
{
    struct export_size size = { number, 1, 0, -1, -1 };
    char *end;

    if ((**at >= '0' && **at <= '9') || **at == '-') {
        size.times = strtoll(*at, &end, 10);
        *at = end;
        if (**at != '*')
            return export_sizes_number(number);
        ++*at;
    }
    size.a = symbol_at(g, at);
    if (size.a >= 0 && **at == '*') {
        ++*at;
        size.b = symbol_at(g, at);
    }
    if (size.a >= 0 && (**at == '+' || **at == '-')) {
        size.plus = strtoll(*at, &end, 10);
        *at = end;
    }
    return size.a >= 0 ? size : export_sizes_number(number);
}

int32_t export_sizes_of(const struct export_graph *g, const tn_node *value, struct export_size *out)
{
    int64_t place = g->text != NULL ? names_find(&g->types, tn_node_name(value)) : -1;
    const char *at = place >= 0 ? g->text + place : NULL;
    tn_meta meta;

    if (tn_node_meta(value, &meta) != TN_OK || meta.ndim < 0)
        return -1;
    if (at != NULL)
        at += strcspn(at, "[\n");
    for (int32_t i = 0; i < meta.ndim; i++) {
        out[i] = export_sizes_number(meta.shape[i]);
        if (at == NULL || (*at != '[' && *at != ','))
            continue;
        at++;
        at += strspn(at, " ");
        out[i] = size_at(g, &at, meta.shape[i]);
    }
    return meta.ndim;
}

/* Finds "name=" among options, outside of brackets and quotes. */
static const char *option_at(const char *at, const char *name)
{
    size_t length = strlen(name);
    int depth = 0;
    bool begins = true;

    for (; *at != '\n' && *at != '\0' && depth >= 0; at++) {
        if (begins && depth == 0 && strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
        begins = depth == 0 && (*at == ' ' || *at == ',');
        if (*at == '"' || *at == '\'') {
            const char *end = strchr(at + 1, *at);

            at = end != NULL ? end : at;
        }
        depth += *at == '(' || *at == '[' || *at == '{';
        depth -= *at == ')' || *at == ']' || *at == '}';
    }
    return NULL;
}

struct export_size export_sizes_option(const struct export_graph *g, const tn_node *node,
                                       const char *option, int64_t index, int64_t number)
{
    int64_t place = g->text != NULL ? names_find(&g->options, tn_node_name(node)) : -1;
    const char *at = place >= 0 ? option_at(g->text + place, option) : NULL;

    if (at == NULL)
        return export_sizes_number(number);
    if (*at == '(' || *at == '[')
        at++;
    for (; index > 0 && *at != '\n' && *at != ')' && *at != ']'; at++)
        index -= *at == ',';
    at += strspn(at, " ");
    return size_at(g, &at, number);
}

void export_sizes_text(const struct export_graph *g, const struct export_size *size, char *out,
                       size_t bytes)
{
    char times[24] = "", plus[24] = "";

    if (size->a < 0) {
        tn_snprint(out, bytes, "%lld", (long long)size->number);
        return;
    }
    if (size->times != 1)
        tn_snprint(times, sizeof times, "%lld*", (long long)size->times);
    if (size->plus != 0)
        tn_snprint(plus, sizeof plus, "%s%lld", size->plus > 0 ? "+" : "", (long long)size->plus);
    tn_snprint(out, bytes, "%s%s%s%s%s", times, g->symbols[size->a].name, size->b >= 0 ? "*" : "",
               size->b >= 0 ? g->symbols[size->b].name : "", plus);
}
