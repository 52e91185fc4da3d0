/* SPDX-License-Identifier: MIT
 *
 * Lists each damaged sample once: a loader logs it again in each epoch. */
#include "train.h"

#include <stdlib.h>
#include <string.h>

static const char begin[] = "loader: ";

/* The messages that were written, sorted. The library never calls a sink from two threads at once.
 */
static struct {
    char **at;
    int64_t count, capacity;
} said;

/* Returns whether the message is new, and keeps it. Without memory each message is new. */
static bool is_new(const char *text)
{
    int64_t low = 0, high = said.count;
    char *copy;

    while (low < high) {
        int64_t middle = (low + high) / 2;

        if (strcmp(said.at[middle], text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < said.count && strcmp(said.at[low], text) == 0)
        return false;
    if (said.count == said.capacity) {
        int64_t capacity = said.capacity > 0 ? 2 * said.capacity : 64;
        char **grown = realloc(said.at, (size_t)capacity * sizeof *grown);

        if (grown == NULL)
            return true;
        said.at = grown;
        said.capacity = capacity;
    }
    copy = strdup(text);
    if (copy == NULL)
        return true;
    memmove(said.at + low + 1, said.at + low, (size_t)(said.count - low) * sizeof *said.at);
    said.at[low] = copy;
    said.count++;
    return true;
}

/* Called inside the sink, tn_log_text() writes to the default destination. */
static void write_once(void *user, int level, const char *plugin, const char *text)
{
    (void)user, (void)plugin;
    if (strncmp(text, begin, sizeof begin - 1) != 0 || is_new(text))
        tn_log_text(level, text);
}

void left_out_watch(void)
{
    tn_set_log_sink(write_once, NULL);
}

void left_out_end(void)
{
    tn_set_log_sink(NULL, NULL);
    for (int64_t i = 0; i < said.count; i++)
        free(said.at[i]);
    free(said.at);
    memset(&said, 0, sizeof said);
}
