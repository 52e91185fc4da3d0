/* SPDX-License-Identifier: MIT
 *
 * Reads what launchers tell the processes that they start: rank and size in environment variables.
 * Launchers may run inside each other (srun starts tenon run); then all that speak of several
 * processes must agree. */
#include "world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 96 };

struct world world_given;

const tn_option world_options[] = {
    TN_OPTION_INT(struct world, rank, "-1", "number of this process; `tenon run` sets it"),
    TN_OPTION_INT(struct world, size, "0", "number of processes; `tenon run` sets it"),
    TN_OPTION_STRING(struct world, address, "''",
                     "where the processes meet: a path, or 127.0.0.1:PORT"),
    TN_OPTION_STRING(struct world, token, "''", "secret of the processes: 32 hexadecimal digits"),
    TN_OPTION_FLOAT(struct world, timeout, "300",
                    "most seconds that a call waits for other processes"),
    TN_OPTION_END
};

/* The variables of a launcher. */
struct launcher {
    const char *name;
    const char *rank, *size, *local; /* `local`: the number of processes on this host; NULL: none */
    const char *job; /* distinguishes jobs of one user; NULL: the parent process does */
};

static const struct launcher launchers[] = {
    { "torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT" },
    { "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
      NULL },
    { "PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", NULL },
    { "Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE",
      "SLURM_JOB_ID" },
};

/* What one launcher says. */
struct answer {
    const char *rank_name, *size_name; /* of the variables */
    int64_t rank, size, local;
};

/* Reads a variable that must be a whole number from `least` on. */
static tn_status read_number(const char *name, int64_t least, int64_t *out)
{
    const char *text = getenv(name);

    if (text != NULL && tn_read_int(text, out) && *out >= least && *out <= INT32_MAX)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "local: %s: wrong, got %q; expected a whole number from %lld on",
                   name, text, (long long)least);
}

/* Asks a launcher. The size 0: it has not started this process, or only this one. */
static tn_status ask(const struct launcher *launcher, struct answer *out)
{
    *out = (struct answer){ launcher->rank, launcher->size, 0, 0, 0 };
    if (getenv(launcher->size) == NULL || getenv(launcher->rank) == NULL)
        return TN_OK;
    if (read_number(launcher->size, 1, &out->size) != TN_OK ||
        read_number(launcher->rank, 0, &out->rank) != TN_OK)
        return tn_error_last_code();
    /* Slurm writes "2(x3)" for three hosts: not a number, and not the size */
    if (launcher->local != NULL && getenv(launcher->local) != NULL &&
        !tn_read_int(getenv(launcher->local), &out->local))
        out->local = -1;
    if (launcher->local == NULL || getenv(launcher->local) == NULL)
        out->local = out->size;
    if (out->size == 1)
        out->size = 0;
    return TN_OK;
}

static tn_status disagree(const struct answer *a, const struct answer *b)
{
    return tn_fail(TN_ERR_VALUE,
                   "local: two launchers disagree: %s=%lld and %s=%lld, %s=%lld and %s=%lld; "
                   "expected the variables of one launcher, unset the others",
                   a->rank_name, (long long)a->rank, a->size_name, (long long)a->size, b->rank_name,
                   (long long)b->rank, b->size_name, (long long)b->size);
}

/* Creates the folder of this user for addresses; stores its path. */
static tn_status make_folder(char *out)
{
    const char *base = secure_getenv("XDG_RUNTIME_DIR");
    struct stat facts;

    if (base == NULL || strlen(base) > 40)
        base = "/tmp";
    tn_snprint(out, PATH, "%s/tenon-%u", base, (unsigned)geteuid());
    if (mkdir(out, 0700) == 0 || errno == EEXIST) {
        if (lstat(out, &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() &&
            (facts.st_mode & 077) == 0)
            return TN_OK;
        return tn_fail(TN_ERR_REFUSED,
                       "local: %s: not a folder of this user alone; expected one "
                       "with mode 700, or TENON_COMM_ADDRESS",
                       out);
    }
    return tn_fail_native(TN_ERR_IO, errno,
                          "local: %s: cannot be created: %s; expected a folder "
                          "for sockets, or TENON_COMM_ADDRESS",
                          out, strerror(errno));
}

/* Makes an address for the processes of another launcher: a path that all of them find. */
static tn_status make_address(const struct launcher *launcher, const struct answer *answer,
                              tn_comm_args *args)
{
    static char address[2 * PATH]; /* always the same text in one process */
    const char *job = launcher->job != NULL ? getenv(launcher->job) : NULL;
    const char *attempt = getenv("TORCHELASTIC_RESTART_COUNT");
    char folder[PATH];
    int64_t number;

    if (answer->local != answer->size)
        return tn_fail(TN_ERR_VALUE,
                       "local: %s has started %lld processes on several hosts; this communicator "
                       "serves the processes of one host, and Tenon has none yet for several hosts",
                       launcher->name, (long long)answer->size);
    if (make_folder(folder) != TN_OK)
        return tn_error_last_code();
    if (job == NULL || !tn_read_int(job, &number))
        number = getppid();
    tn_snprint(address, sizeof address, "%s/%s-%lld-%s", folder, launcher->size, (long long)number,
               attempt != NULL && strlen(attempt) < 8 ? attempt : "0");
    args->address = address;
    return TN_OK;
}

/* Asks all launchers but `tenon run`; stores the one that answers. */
static tn_status ask_others(const struct launcher **found, struct answer *answer)
{
    struct answer next;

    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (ask(&launchers[i], &next) != TN_OK)
            return tn_error_last_code();
        if (next.size == 0)
            continue;
        if (answer->size > 0 && (answer->size != next.size || answer->rank != next.rank))
            return disagree(answer, &next);
        if (answer->size > 0)
            continue;
        *found = &launchers[i];
        *answer = next;
    }
    return TN_OK;
}

tn_status world_find(const tn_comm_def *self, tn_comm_args *args)
{
    const struct launcher *launcher = NULL;
    struct answer answer = { "TENON_COMM_RANK", "TENON_COMM_SIZE", world_given.rank,
                             world_given.size, world_given.size };

    (void)self;
    if (world_given.size < 0 || world_given.size > INT32_MAX ||
        (world_given.size > 0 && (world_given.rank < 0 || world_given.rank >= world_given.size)) ||
        (world_given.size == 0 && world_given.rank != -1))
        return tn_fail(TN_ERR_VALUE,
                       "local: wrong rank, got TENON_COMM_RANK=%lld and TENON_COMM_SIZE=%lld; "
                       "expected a size from 1 on, and a rank below it",
                       (long long)world_given.rank, (long long)world_given.size);
    if (ask_others(&launcher, &answer) != TN_OK)
        return tn_error_last_code();
    if (answer.size > 0 && answer.rank >= answer.size)
        return tn_fail(TN_ERR_VALUE,
                       "local: wrong rank, got %s=%lld and %s=%lld; expected a rank "
                       "below the size",
                       answer.rank_name, (long long)answer.rank, answer.size_name,
                       (long long)answer.size);
    args->rank = answer.size > 0 ? (int32_t)answer.rank : 0;
    args->size = (int32_t)answer.size;
    if (*world_given.address != '\0')
        args->address = world_given.address;
    else if (launcher != NULL)
        return make_address(launcher, &answer, args);
    return TN_OK;
}
