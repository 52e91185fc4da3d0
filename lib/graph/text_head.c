/* SPDX-License-Identifier: MIT
 *
 * Reads the first line of the text of a graph: inputs, version, what the graph is for. */
#include "lib/graph/text_read.h"
#include "core/base/spec.h"

enum { MOST_PATHS = 1 << 12 }; /* each is compared with all */

bool tn__graph_read_next_line(tn__reader *r)
{
    do {
        tn__graph_read_space(r);
        if (*r->at == '#')
            r->at += strcspn(r->at, "\n");
        if (*r->at == '\r')
            r->at++;
        if (*r->at != '\n')
            return *r->at != '\0';
        r->line = ++r->at;
        r->number++;
    } while (true);
}

/* Returns the first of the bytes `ends` that is not in quotes, or the end of the line. */
static const char *outside(const char *at, const char *ends)
{
    while (*at != '\0' && *at != '\n' && strchr(ends, *at) == NULL) {
        const struct tn__parser p = { .text = at };
        size_t quoted = tn__spec_after_string(&p, 0);

        at += quoted > 0 ? quoted : 1;
    }
    return at;
}

/* Reads the names of sizes at the end of the first line, such as ", N = 4 >= 1". This must be done
 * first, because the types at the beginning of the line contain the names. */
static tn_status read_names(tn__reader *r)
{
    const tn__reader start = *r;
    const char *end = r->at + strcspn(r->at, "\n");
    tn_status status = TN_OK;

    r->at = outside(r->at, "#");
    if (!tn__graph_read_take(r, "# tenon.graph "))
        r->at = start.at;
    while (status == TN_OK && r->at > start.at && r->at < end) {
        tn__symbol *symbol = &r->graph->symbols[r->graph->n_symbols];
        const char *name, *value, *least;

        r->at = outside(r->at, ",");
        if (!tn__graph_read_take(r, ","))
            continue;
        tn__graph_read_space(r);
        if (!tn__spec_starts_word(*r->at) ||
            (name = tn__graph_read_word(r, "", "a name")) == NULL || !tn__graph_read_take(r, "="))
            continue;
        value = tn__graph_read_word(r, "", "a size");
        least = value != NULL && tn__graph_read_take(r, ">=") ? tn__graph_read_word(r, "", "a size")
                                                              : NULL;
        if (least == NULL || r->graph->n_symbols >= TN__SYMBOLS ||
            strlen(name) >= sizeof symbol->name || !tn_read_int(value, &symbol->value) ||
            !tn_read_int(least, &symbol->least) || symbol->value < 1 || symbol->least < 1)
            status = tn__graph_read_wrong(r, "at most 8 names, each with a size, as in N = 4 >= 1");
        if (status == TN_OK)
            tn_snprint(symbol->name, sizeof symbol->name, "%s", name);
        r->graph->n_symbols += status == TN_OK;
    }
    if (status == TN_OK)
        r->at = start.at;
    return status;
}

/* Reads the paths of modules whose mode counts, such as ("1", "3"), if they follow. */
static tn_status read_paths(tn__reader *r, bool training)
{
    tn_status status = TN_OK;

    if (!tn__graph_read_take(r, "("))
        return TN_OK;
    do {
        const char *text = tn__graph_read_raw(r, ",)");
        tn_value path;

        status = text != NULL ? tn__spec_parse_value(text, r->arena, &path) : tn_error_last_code();
        if (status == TN_OK && path.kind != TN_VALUE_STRING)
            status = tn__graph_read_wrong(r, "paths of modules in quotes");
        if (status == TN_OK && r->graph->n_asked >= MOST_PATHS)
            status = tn__graph_read_most(r, MOST_PATHS, "modules");
        if (status == TN_OK)
            status = tn__graph_ask(r->graph, path.as.s, training);
    } while (status == TN_OK && tn__graph_read_take(r, ","));
    return status == TN_OK && !tn__graph_read_take(r, ")") ? tn__graph_read_wrong(r, ")") : status;
}

/* Reads the words that say what the graph is for, such as ", train, fixed". */
static tn_status read_words(tn__reader *r)
{
    static const char *const words[] = { "eval", "train", "fixed", "typed", "inference", "folded" };
    tn_status status = TN_OK;

    while (status == TN_OK && tn__graph_read_take(r, ",")) {
        const char *at = r->at, *word = tn__graph_read_word(r, "", "a word");
        int i = 0;

        if (word == NULL)
            return tn_error_last_code();
        if (tn__graph_read_take(r, "=")) /* read_names has read the names */
            break;
        while (i < tn__countof(words) && strcmp(words[i], word) != 0)
            i++;
        if (i == tn__countof(words)) {
            r->at = at;
            return tn__graph_read_wrong(r, "eval, train, fixed, typed, inference or folded");
        }
        if (i < 2 && r->graph->training < 0)
            r->graph->training = i;
        if (i < 2)
            status = read_paths(r, i == 1);
        else if (i < 4)
            r->graph->fixed = i == 2 ? TN__FIXED_BY_TRACE : "a pass";
        else if (i == 4)
            r->graph->inference = TN__GRAPH_OF_TEXT;
        else
            r->folded = true;
    }
    return status;
}

tn_status tn__graph_read_head(tn__reader *r)
{
    int64_t version = 0;
    const char *type, *text;
    tn_status status = TN_OK;

    tn__graph_read_next_line(r);
    r->code = tn__graph_read_take(r, "def ");
    if (r->code ? !tn__graph_read_take(r, "forward(self") : !tn__graph_read_take(r, "graph(%self"))
        return tn__graph_read_wrong(r,
                                    "graph(%self : Type, ...): or def forward(self : Type, ...):");
    if (tn__graph_read_take(r, ":")) {
        type = tn__graph_read_word(r, ".", "a type");
        status = type != NULL ? tn__graph_set_text(&r->graph->type, type) : tn_error_last_code();
    }
    tn__graph_read_take(r, ",");
    if (status == TN_OK)
        status = read_names(r);
    if (status == TN_OK)
        status = tn__graph_read_pack(r, TN__PLACE_HEAD, &r->graph->in);
    if (status == TN_OK && !tn__graph_read_take(r, ":"))
        status = tn__graph_read_wrong(r, ":");
    if (status == TN_OK &&
        (!tn__graph_read_take(r, "# tenon.graph ") ||
         (text = tn__graph_read_word(r, "", "a version")) == NULL || !tn_read_int(text, &version)))
        status = tn__graph_read_wrong(r, "# tenon.graph 1");
    if (status == TN_OK && version != 1)
        status = tn_fail(TN_ERR_VERSION,
                         "tn_graph_parse: version: newer than Tenon %s knows, got %lld; expected 1",
                         tn_version(), (long long)version);
    if (status == TN_OK)
        status = read_words(r);
    if (status == TN_OK)
        r->at += strcspn(r->at, "\n"); /* read_names has read the rest */
    return status;
}
