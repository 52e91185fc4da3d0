/* SPDX-License-Identifier: MIT
 *
 * Opens the files that the command line names, reads their lines, and checks that each line begins
 * with a known word. */
#include "conform.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *conform_open(const char *path, const char **why)
{
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *stream = NULL;

    if (file >= 0 && fstat(file, &about) == 0 && !S_ISREG(about.st_mode))
        *why = "it is not a regular file";
    else if (file >= 0 && (stream = fdopen(file, "r")) != NULL)
        return stream;
    else
        *why = strerror(errno);
    if (file >= 0)
        close(file);
    return NULL;
}

FILE *conform_create(const char *path, const char **why)
{
    /* A pipe without a reader would let open() wait. */
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    FILE *stream = file >= 0 && fcntl(file, F_SETFL, 0) == 0 ? fdopen(file, "w") : NULL;
    int number = errno;

    if (stream != NULL)
        return stream;
    *why = number == ENXIO ? "it is a pipe that nobody reads; start its reader first"
                           : strerror(number);
    if (file >= 0)
        close(file);
    errno = number;
    return NULL;
}

bool conform_next_line(FILE *file, char **line, size_t *size, const char **why)
{
    const size_t most = (size_t)1 << 24; /* a file of /proc may have no end, and no line */
    size_t length = 0;
    int byte;

    *why = NULL;
    while ((byte = getc_unlocked(file)) != EOF && byte != '\n') {
        if (length + 1 >= *size) {
            size_t room = *size > 0 ? 2 * *size : 256;
            char *grown = room <= most ? realloc(*line, room) : NULL;

            if (grown == NULL) {
                *why = room <= most ? "out of memory" : "no text; expected lines of at most 16 MiB";
                return false;
            }
            *line = grown;
            *size = room;
        }
        (*line)[length++] = (char)byte;
    }
    if (ferror(file))
        *why = strerror(errno);
    if (byte == EOF && (length == 0 || *why != NULL))
        return false;
    if (length == 0 && *line == NULL && (*line = malloc(*size = 256)) == NULL) {
        *why = "out of memory";
        return false;
    }
    (*line)[length] = '\0';
    return true;
}

static bool has_word(const char *words, const char *word, size_t length)
{
    for (const char *at = words; *at != '\0'; at += strspn(at, " ")) {
        size_t here = strcspn(at, " ");

        if (here == length && strncmp(at, word, length) == 0)
            return true;
        at += here;
    }
    return false;
}

bool conform_line_of_other(const char *line, const char *kind)
{
    size_t length = strcspn(line, " ");

    return line[length] == ' ' &&
           has_word("case op layer optimizer dataset transform prune", line, length) &&
           !has_word(kind, line, length);
}

bool conform_line_begins(const char *line, const char *words, char *why, size_t size)
{
    size_t length = strcspn(line, " ");
    char word[32];

    if (line[strspn(line, " \t")] == '\0' || line[0] == '#' || strcmp(line, "end") == 0 ||
        has_word(words, line, length))
        return true;
    if (length == 0) {
        tn_snprint(why, size, "the line begins with a space");
    } else {
        tn_snprint(word, sizeof word, "%.*s", (int)(length < 31 ? length : 31), line);
        tn_snprint(why, size, "unknown line, got %q; expected one of: %s", word, words);
    }
    return false;
}
