/* SPDX-License-Identifier: MIT
 *
 * A chain of elementwise operators, relu(x * w + b) * 0.5 + r on float32: eager calls, a plan, a
 * plan with compiled regions, and a loop in C, compiled with this program. The four take turns on
 * one thread; the program prints the shortest time of each, in nanoseconds per element.
 *   chain [--rounds N] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tenon/tenon.h>

enum { MOST = 10000000, WAYS = 4 };
static const char *const ways[WAYS] = { "eager", "plan", "compiled plan", "C" };

static tn_tensor *in[4];
static tn_plan *plans[2];
static float *to;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_PROCESSORS __attribute__((optimize("O3"), target_clones("avx512f", "avx2", "default")))
#else
#define FOR_PROCESSORS
#endif

FOR_PROCESSORS static void in_c(int64_t n, const float *x, const float *w, const float *b,
                                const float *r, float *y)
{
    for (int64_t i = 0; i < n; i++) {
        float sum = x[i] * w[i] + b[i];

        y[i] = (sum < 0 ? 0 : sum) * 0.5F + r[i];
    }
}

static void run(int way, int64_t n)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *y;

    if (way == 0)
        tn_add(tn_mul_scalar(tn_relu(tn_add(tn_mul(in[0], in[1]), in[2])), 0.5), in[3]);
    else if (way < 3)
        tn_plan_run(plans[way - 1], in, 4, &y, 1);
    else
        in_c(n, tn_tensor_data(in[0]), tn_tensor_data(in[1]), tn_tensor_data(in[2]),
             tn_tensor_data(in[3]), to);
    tn_scope_end(scope);
}

static tn_graph *make_graph(int64_t n)
{
    static const char *const names[] = { "x", "w", "b", "r" };
    tn_graph *graph = tn_graph_new();
    tn_node *node[4], *y;

    for (int i = 0; i < 4; i++)
        node[i] = tn_graph_input(graph, names[i], TN_SHAPE(n), TN_F32);
    y = tn_graph_add_op(graph, NULL, "mul()", node, 2);
    y = tn_graph_add_op(graph, NULL, "add()", (tn_node *[]){ y, node[2] }, 2);
    y = tn_graph_add_op(graph, NULL, "relu()", &y, 1);
    y = tn_graph_add_op(graph, NULL, "mul_scalar(value=0.5)", &y, 1);
    y = tn_graph_add_op(graph, NULL, "add()", (tn_node *[]){ y, node[3] }, 2);
    tn_graph_output(graph, &y, 1);
    return graph;
}

static void measure(int64_t n, int rounds)
{
    double least[WAYS] = { 0 };
    int64_t calls = MOST / n;
    tn_graph *graph = make_graph(n);

    for (int i = 0; i < 4; i++)
        in[i] = tn_keep(tn_rand(TN_SHAPE(n)));
    plans[0] = tn_plan_new(graph, NULL);
    tn_graph_compile(graph, tn_default_device(), NULL);
    plans[1] = tn_plan_new(graph, NULL);
    for (int k = 0; k < rounds; k++)
        for (int way = 0; way < WAYS; way++) {
            double start = now(), time;

            for (int64_t i = 0; i < calls; i++)
                run(way, n);
            time = (now() - start) / (double)(calls * n);
            least[way] = k == 0 || time < least[way] ? time : least[way];
        }
    printf("%9lld", (long long)n);
    for (int way = 0; way < WAYS; way++)
        printf(" %13.3f", least[way]);
    printf(" %6.2f %6.2f\n", least[1] / least[3], least[2] / least[3]);
    tn_plan_drop(plans[0]);
    tn_plan_drop(plans[1]);
    tn_graph_drop(graph);
    for (int i = 0; i < 4; i++)
        tn_tensor_drop(in[i]);
}

int main(int argc, char **argv)
{
    int rounds = 9;

    if (argc == 3 && strcmp(argv[1], "--rounds") == 0)
        rounds = atoi(argv[2]);
    else if (argc > 1)
        return fprintf(stderr, "usage: chain [--rounds N]\n"), 2;
    setenv("TENON_NUM_THREADS", "1", 1);
    to = malloc(MOST * sizeof *to);
    if (to == NULL)
        return 1;
    printf("%9s", "elements");
    for (int way = 0; way < WAYS; way++)
        printf(" %13s", ways[way]);
    printf("   plan, compiled plan / C\n");
    for (int64_t n = 10000; n <= MOST; n *= n == 10000 ? 100 : 10)
        measure(n, rounds);
    free(to);
    if (tn_failed())
        fprintf(stderr, "chain: %s\n", tn_error_text());
    return tn_failed();
}
