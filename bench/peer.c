/* SPDX-License-Identifier: MIT */
#include "peer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

bool bench_peer_start(bench_peer *peer, const char *python, const char *script, const char *threads,
                      const char *word)
{
    int to[2], from[2];

    /* a second peer must not hold the first one's input open */
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        return false;
    peer->process = fork();
    if (peer->process == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        setenv("OMP_NUM_THREADS", threads, 1);
        execlp(python, python, script, threads, word, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    peer->ask = fdopen(to[1], "wb");
    peer->answer = fdopen(from[0], "rb");
    return peer->process > 0 && peer->ask != NULL && peer->answer != NULL;
}

bool bench_peer_give(bench_peer *peer, const char *words, tn_tensor *tensor)
{
    tn_ints shape = tn_tensor_shape(tensor);
    size_t bytes = (size_t)tn_tensor_numel(tensor) * tn_dtype_size(tn_tensor_dtype(tensor));
    char *data = malloc(bytes + 1);
    bool done = data != NULL && tn_tensor_copy_out(tensor, data, bytes) == TN_OK;

    if (done) {
        fprintf(peer->ask, "%s %s %zu", words, tn_dtype_name(tn_tensor_dtype(tensor)), bytes);
        for (int64_t i = 0; i < shape.count; i++)
            fprintf(peer->ask, " %lld", (long long)shape.at[i]);
        fputc('\n', peer->ask);
        done = fwrite(data, 1, bytes, peer->ask) == bytes;
    }
    free(data);
    return done;
}

bool bench_peer_ask(bench_peer *peer, const char *words, char *line, int size)
{
    fprintf(peer->ask, "%s\n", words);
    fflush(peer->ask);
    return fgets(line, size, peer->answer) != NULL;
}

void bench_peer_end(bench_peer *peer)
{
    if (peer->ask == NULL)
        return;
    fclose(peer->ask);
    waitpid(peer->process, NULL, 0);
    fclose(peer->answer);
}
