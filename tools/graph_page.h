/* SPDX-License-Identifier: MIT
 *
 * The page of `tenon graph --format html`. */
#ifndef TN_TOOLS_GRAPH_PAGE_H
#define TN_TOOLS_GRAPH_PAGE_H

#include "tool.h"

/* What the page says above the graph. */
typedef struct graph_page {
    const char *model, *passes; /* `passes` may be NULL */
    const char *inputs;         /* words */
    bool train;
} graph_page;

/* Runs the graph with these inputs, for the times, and writes the page to standard output. */
tn_status graph_page_write(const graph_page *page, tn_graph *graph, tn_tensor *const *in,
                           int64_t n_in);

#endif
