/* SPDX-License-Identifier: MIT
 *
 * Runs a fuzz target over files and folders, in any compiler: fuzz_NAME FILE|FOLDER... */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

static int inputs;

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t size = 0, capacity = 1 << 16, got;
    uint8_t *data = malloc(capacity);

    if (!file || !data) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    while ((got = fread(data + size, 1, capacity - size, file)) > 0) {
        size += got;
        if (size == capacity) {
            uint8_t *more = realloc(data, 2 * capacity);
            if (!more)
                abort();
            data = more;
            capacity *= 2;
        }
    }
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    inputs++;
    return 0;
}

static int replay(const char *path)
{
    struct stat about;
    struct dirent *entry;
    int status = 0;

    if (stat(path, &about) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    if (!S_ISDIR(about.st_mode))
        return replay_file(path);
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        char inside[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
        status |= replay(inside);
    }
    if (folder)
        closedir(folder);
    return status;
}

int main(int argc, char **argv)
{
    int status = 0;

    for (int i = 1; i < argc; i++)
        status |= replay(argv[i]);
    printf("%d inputs\n", inputs);
    return status || inputs == 0;
}
