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

/* Reads more of the file behind what is in memory. Returns false if nothing is left, or on failure
 * with *why set. */
static bool read_more(conform_lines *lines, const char **why)
{
    const size_t most = (size_t)1 << 24; /* a file of /proc may have no end, and no line */
    size_t count;

    if (lines->used > 0 && lines->at > 0)
        memmove(lines->memory, lines->memory + lines->at, lines->used);
    lines->at = 0;
    if (lines->used + 1 >= lines->room) {
        size_t room = lines->room > 0 ? 2 * lines->room : 1 << 16;
        char *grown = room <= most ? realloc(lines->memory, room) : NULL;

        if (grown == NULL) {
            *why = room <= most ? "out of memory" : "no text; expected lines of at most 16 MiB";
            return false;
        }
        lines->memory = grown;
        lines->room = room;
    }
    /* one byte stays for the NUL of a last line without an end */
    count = fread(lines->memory + lines->used, 1, lines->room - lines->used - 1, lines->file);
    lines->used += count;
    if (ferror(lines->file))
        *why = strerror(errno);
    return count > 0 && *why == NULL;
}

bool conform_next_line(conform_lines *lines, char **line, const char **why)
{
    size_t seen = 0, length;
    char *end = NULL;

    *why = NULL;
    while (seen == lines->used ||
           (end = memchr(lines->memory + lines->at + seen, '\n', lines->used - seen)) == NULL) {
        seen = lines->used;
        if (read_more(lines, why))
            continue;
        if (*why != NULL || seen == 0)
            return false;
        break;
    }
    *line = lines->memory + lines->at;
    length = end != NULL ? (size_t)(end - *line) : lines->used;
    (*line)[length] = '\0';
    if (end != NULL)
        length++;
    lines->at += length;
    lines->used -= length;
    end = memchr(*line, '\r', length);
    if (end != NULL)
        *end = '\0';
    return true;
}

void conform_lines_end(conform_lines *lines)
{
    if (lines->file != NULL)
        fclose(lines->file);
    free(lines->memory);
}

/* Compares by bytes: the functions of strings take longer for words this short, and a check reads
 * each line of all files for each test. */
static bool has_word(const char *words, const char *word, size_t length)
{
    for (const char *at = words; *at != '\0';) {
        size_t here = 0;

        while (at[here] != ' ' && at[here] != '\0')
            here++;
        if (here == length && memcmp(at, word, length) == 0)
            return true;
        at += here;
        at += *at == ' ';
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
