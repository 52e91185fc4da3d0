/* SPDX-License-Identifier: MIT
 *
 * A program for run.sh: each rank adds 1, and rank VICTIM does what is asked for.
 *
 *   run_program [ACTION [VICTIM [MARK]]]
 *
 * With a MARK, the action is done only if this file is absent; the program creates it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tenon/tenon.h>

static void act(const char *action)
{
    if (strcmp(action, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(action, "stop") == 0)
        raise(SIGSTOP);
    if (strcmp(action, "fail") == 0)
        exit(3);
    if (strcmp(action, "leave") == 0)
        exit(0);
    if (strcmp(action, "sleep") == 0)
        sleep(60);
}

int main(int count, char **arguments)
{
    const char *action = count > 1 ? arguments[1] : "none";
    const int victim = count > 2 ? atoi(arguments[2]) : -1;
    tn_comm *comm = tn_comm_new(NULL, NULL);
    double sum = 0;

    if (comm == NULL) {
        fprintf(stderr, "open: %s\n", tn_error_text());
        return 1;
    }
    printf("threads %d\n", (int)tn_num_threads());
    printf("half of ");
    fflush(stdout);
    if (tn_comm_rank(comm) == victim &&
        (count < 4 || open(arguments[3], O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0))
        act(action);
    for (int i = 0; i < 3; i++) {
        TN_SCOPE;
        tn_tensor *x = tn_ones(TN_SHAPE(5));

        tn_comm_all_reduce(comm, x, TN_REDUCTION_SUM);
        sum = tn_item(tn_sum(x));
    }
    if (!tn_failed())
        printf("a line\nrank %d of %d: sum %g\nno end", (int)tn_comm_rank(comm),
               (int)tn_comm_size(comm), sum);
    else
        fprintf(stderr, "%s\n", tn_error_text());
    tn_comm_drop(comm);
    return tn_failed() ? 4 : 0;
}
