/* SPDX-License-Identifier: MIT
 *
 * fork() for a process whose threads work. */
#ifndef TN_TESTS_IDLE_FORK_H
#define TN_TESTS_IDLE_FORK_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tenon/query.h>

/* Whether each thread but the caller's sleeps. */
static inline int others_sleep(void)
{
    DIR *threads = opendir("/proc/self/task");
    int sleep = threads != NULL;

    for (struct dirent *thread; sleep && (thread = readdir(threads)) != NULL;) {
        char path[300], text[600], *state;
        FILE *file;

        if (thread->d_name[0] == '.' || atoi(thread->d_name) == (int)getpid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", thread->d_name);
        file = fopen(path, "r");
        if (file == NULL)
            continue; /* it has ended */
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        state = strrchr(text, ')'); /* the name of the thread, then its state */
        sleep = state != NULL && strncmp(state, ") S", 3) == 0;
    }
    if (threads != NULL)
        closedir(threads);
    return sleep;
}

/* fork(), called by the first thread of the process. The allocator of AddressSanitizer has locks
 * that its fork() does not release in the child (clang 14): if another thread allocates at that
 * moment, the child waits for ever. There, the other threads must sleep first. */
static inline pid_t idle_fork(void)
{
#if TN_BUILD_ASAN
    for (int i = 0, asleep = 0; i < 10000 && asleep < 3; i++) {
        asleep = others_sleep() ? asleep + 1 : 0;
        usleep(1000);
    }
#endif
    return fork();
}

#endif
