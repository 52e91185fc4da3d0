/* SPDX-License-Identifier: MIT
 *
 * States to files and back: 10,000 small tensors, and 80 MB in a few. Seconds of saving, of loading
 * into memory, of mapping, and the ratio to the reference library for safetensors in Python, in the
 * same run on the same folder.
 *   state [--peer PYTHON SCRIPT] [--rounds N] [--folder DIR]
 * Saving brings the file to the disk (fsync), and so does the peer here. The library's load maps
 * the file; "in memory" is its load with a copy of every tensor. DIR is the folder for the files,
 * by default the current one: /dev/shm leaves the disk out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tenon/tenon.h>

enum { SAVE, LOAD, MAP, ACTIONS };
static const char *const actions[ACTIONS] = { "save", "load in memory", "load mapped" };

static const struct {
    const char *name;
    int count;
    int64_t size; /* elements, float32 */
} cases[] = { { "many", 10000, 64 }, { "large", 20, 1000000 } };
enum { CASES = sizeof cases / sizeof *cases };

static double ours[CASES][ACTIONS], peers[CASES][ACTIONS];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void keep_least(double *least, double seconds)
{
    if (*least == 0 || seconds < *least)
        *least = seconds;
}

static tn_state *fill(int which)
{
    TN_SCOPE;
    tn_state *state = tn_state_new();
    char name[64];
    for (int i = 0; i < cases[which].count; i++) {
        tn_snprint(name, sizeof name, "encoder.layers.%d.attention.weight", i);
        tn_state_set(state, name, tn_tensor_full(TN_SHAPE(cases[which].size), i, TN_F32, NULL));
    }
    return state;
}

/* Whether every tensor has its number; that reads all of it. */
static int check(const tn_state *state, int which)
{
    for (int i = 0; i < cases[which].count; i++) {
        const float *values = tn_tensor_data(tn_state_tensor(state, i));
        if (values == NULL || values[0] != (float)i || values[cases[which].size - 1] != (float)i)
            return -1;
    }
    return 0;
}

static int round_of(int which, const tn_state *state, const char *path)
{
    double start = now();
    if (tn_state_save(state, path) != TN_OK)
        return -1;
    keep_least(&ours[which][SAVE], now() - start);
    for (int action = LOAD; action <= MAP; action++) {
        start = now();
        tn_state *got = tn_state_load_as(path, action == MAP ? TN_FILE_MAP : 0);
        double seconds = now() - start;
        if (got == NULL || check(got, which) != 0)
            return -1;
        keep_least(&ours[which][action], seconds);
        start = now();
        tn_state_drop(got);
    }
    return 0;
}

/* One line for each case and action: "many save 0.0123". */
static int ask_peer(const char *python, const char *script, const char *folder, int rounds)
{
    char command[1024], name[16], action[16];
    double seconds;
    snprintf(command, sizeof command, "'%s' '%s' '%s' %d", python, script, folder, rounds);
    FILE *peer = popen(command, "r");
    if (peer == NULL)
        return -1;
    while (fscanf(peer, "%15s %15s %lf", name, action, &seconds) == 3)
        for (int c = 0; c < CASES; c++)
            for (int a = 0; a < ACTIONS; a++)
                if (strcmp(name, cases[c].name) == 0 &&
                    action[0] == (a == MAP ? 'm' : actions[a][0]))
                    keep_least(&peers[c][a], seconds);
    return pclose(peer) == 0 ? 0 : -1;
}

static void print_table(void)
{
    printf("%-6s %-15s %10s %10s %7s %10s\n", "case", "action", "ours ms", "peer ms", "ratio",
           "MB/s");
    for (int c = 0; c < CASES; c++)
        for (int a = 0; a < ACTIONS; a++) {
            double bytes = (double)cases[c].count * (double)cases[c].size * 4;
            printf("%-6s %-15s %10.2f ", cases[c].name, actions[a], ours[c][a] * 1e3);
            if (peers[c][a] > 0)
                printf("%10.2f %7.2f ", peers[c][a] * 1e3, ours[c][a] / peers[c][a]);
            else
                printf("%10s %7s ", "-", "-");
            printf("%10.0f\n", bytes / ours[c][a] / 1e6);
        }
}

int main(int count, char **arguments)
{
    const char *python = NULL, *script = NULL, *folder = ".";
    int rounds = 5, status = 0;
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--peer") == 0 && i + 2 < count) {
            python = arguments[++i];
            script = arguments[++i];
        } else if (strcmp(arguments[i], "--rounds") == 0 && i + 1 < count) {
            rounds = atoi(arguments[++i]);
        } else if (strcmp(arguments[i], "--folder") == 0 && i + 1 < count) {
            folder = arguments[++i];
        } else {
            fprintf(stderr,
                    "state: %s is not known; usage: state [--peer PYTHON SCRIPT] [--rounds N] "
                    "[--folder DIR]\n",
                    arguments[i]);
            return 2;
        }
    }
    for (int c = 0; c < CASES && status == 0; c++) {
        char path[512];
        tn_state *state = fill(c);
        snprintf(path, sizeof path, "%s/bench-%s.safetensors", folder, cases[c].name);
        for (int r = 0; r < rounds && status == 0; r++)
            status = round_of(c, state, path);
        tn_state_drop(state);
    }
    if (tn_failed())
        fprintf(stderr, "state: %s\n", tn_error_text());
    if (status == 0 && python != NULL && ask_peer(python, script, folder, rounds) != 0) {
        fprintf(stderr, "state: the peer did not answer\n");
        status = 1;
    }
    if (status == 0)
        print_table();
    for (int c = 0; c < CASES; c++) {
        char path[512];
        snprintf(path, sizeof path, "%s/bench-%s.safetensors", folder, cases[c].name);
        unlink(path);
    }
    return status != 0;
}
