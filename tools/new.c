/* SPDX-License-Identifier: MIT
 *
 * tenon new: writes the project of a new plugin. The files of a project are made from two folders
 * of templates, `common` and that of the kind of plugin, by replacing names. If both folders have a
 * file of the same name, that of the kind is used. */
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_NAME = 40 };

typedef struct kind {
    const char *name, *what;
} kind;

static const kind kinds[] = {
    { "layer", "a layer with a weight and two options" },
    { "backend", "a device with memory of the host, and kernels enough to train a Linear" },
    { "kernels", "a kernel for an operator on the device cpu" },
    { "op", "an operator with inference, derivative and decomposition" },
    { "optimizer", "an optimizer that keeps a state for each parameter" },
    { "format", "a reader and writer of files" },
    { "dataset", "a source of samples for training" },
    { "transform", "a random change of samples" },
    { "scheduler", "a rule for the learning rate" },
    { "init", "an initialization of parameters" },
    { "pruning", "a pruning method" },
    { "pass", "a pass, which changes graphs" },
    { "compiler", "a compiler of parts of graphs on the device cpu" },
    { "observer", "an observer, which counts calls and memory" },
    { "communicator", "a communicator for groups of processes" },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* What the files of a project in a language have in place of marks. */
typedef struct language {
    const char *name, *extension, *command;
    const char *compiler, *flags; /* names of variables of make */
    const char *cmake, *standard;
    /* g++ warns of members that designated initializers leave out; these are 0 on purpose. */
    const char *quiet;
} language;

static const language in_c = { "C", "c", "cc", "CC", "CFLAGS", "C", "", "" };
static const language in_cxx = {
    "C++", "cc", "c++", "CXX", "CXXFLAGS", "CXX", "-std=c++17 ", " -Wno-missing-field-initializers"
};

/* The three forms of the name of a plugin, for example "my_layer": as given; in small letters; and
 * as a type, "MyLayer". The language belongs to what replaces marks, too. */
typedef struct names {
    char given[MOST_NAME + 1], small[MOST_NAME + 1], type[MOST_NAME + 1];
    const language *language;
} names;

/* Returns the text that replaces the mark at `at`, such as @NAME@, and stores the length of the
 * mark; NULL if there is no mark. */
static const char *replacement(const names *n, const char *at, size_t *length)
{
    const struct {
        const char *mark, *text;
    } marks[] = {
        { "@NAME@", n->given },
        { "@name@", n->small },
        { "@Name@", n->type },
        { "@language@", n->language->name },
        { "@LANGUAGE@", n->language->cmake },
        { "@ext@", n->language->extension },
        { "@cc@", n->language->command },
        { "@CC@", n->language->compiler },
        { "@CFLAGS@", n->language->flags },
        { "@standard@", n->language->standard },
        { "@quiet@", n->language->quiet },
    };

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        *length = strlen(marks[i].mark);
        if (strncmp(at, marks[i].mark, *length) == 0)
            return marks[i].text;
    }
    return NULL;
}

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char small(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Checks the name of a plugin and makes its three forms. Returns false if it is not valid. */
static bool make_names(const char *given, names *out)
{
    size_t length = strlen(given), type = 0;
    bool begins = true;

    *out = (names){ "", "", "", NULL };
    if (length == 0 || length > MOST_NAME || !letter(given[0]))
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = given[i];
        if (!letter(c) && !(c >= '0' && c <= '9') && c != '_')
            return false;
        out->given[i] = c;
        out->small[i] = small(c);
        if (c != '_')
            out->type[type++] = begins && small(c) == c && letter(c) ? (char)(c - 'a' + 'A') : c;
        begins = c == '_';
    }
    /* every project has a file example.c */
    return strcmp(out->small, "example") != 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int refuse(tn_status code, const char *object, const char *what)
{
    char words[PATH_MAX + 512];
    tn_snprint(words, sizeof words, "%s: %s", object, what);
    return tool_refuse(code, words);
}

/* Writes the path of a file, whose name is `start` followed by `end`. A path that is too long
 * becomes "", which cannot be opened. */
static const char *join(char path[PATH_MAX], const char *folder, const char *start, const char *end)
{
    if (tn_snprint(path, PATH_MAX, "%s/%s%s", folder, start, end) >= PATH_MAX)
        path[0] = '\0';
    return path;
}

/* Returns the text of a template, which the caller frees. Returns NULL and sets errno on
 * failure. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    struct stat about;
    char *text = NULL;

    if (file == NULL)
        return NULL;
    if (fstat(fileno(file), &about) == 0 && (text = calloc(1, (size_t)about.st_size + 1)) != NULL &&
        fread(text, 1, (size_t)about.st_size, file) != (size_t)about.st_size) {
        free(text);
        text = NULL;
        errno = EIO;
    }
    fclose(file);
    return text;
}

/* Writes a new file with the text of a template, in which marks are replaced. Returns false and
 * sets errno on failure. */
static bool write_text(const char *path, const char *text, const names *n)
{
    FILE *file = fopen(path, "wx");

    if (file == NULL)
        return false;
    while (*text != '\0') {
        size_t mark, plain = strcspn(text, "@");
        fwrite(text, 1, plain, file);
        text += plain;
        const char *word = replacement(n, text, &mark);
        if (word != NULL)
            fputs(word, file);
        else if (*text != '\0')
            fputc(*text, file);
        text += word != NULL ? mark : *text != '\0';
    }
    bool good = !ferror(file);
    return fclose(file) == 0 && good;
}

/* Writes the file of one template. In the name of the template, NAME at the start is replaced, .in
 * at the end is removed, and then .c at the end becomes the extension of the language. */
static int write_file(const char *from, const char *entry, const char *to, const names *n)
{
    char source[PATH_MAX], target[PATH_MAX], end[NAME_MAX + 1];
    bool named = strncmp(entry, "NAME.", 5) == 0;

    tn_snprint(end, sizeof end, "%.*s", (int)strlen(entry) - 3 - 4 * named, entry + 4 * named);
    size_t length = strlen(end);
    if (length >= 2 && strcmp(end + length - 2, ".c") == 0)
        tn_snprint(end + length - 1, sizeof end - length + 1, "%s", n->language->extension);
    join(source, from, entry, "");
    join(target, to, named ? n->given : "", end);
    if (access(target, F_OK) == 0)
        return EXIT_OK; /* the folder of the kind, written first, has this file */
    char *text = read_text(source);
    if (text == NULL)
        return refuse(TN_ERR_IO, source, strerror(errno));
    bool good = write_text(target, text, n);
    int reason = errno;
    free(text);
    return good ? EXIT_OK : refuse(TN_ERR_IO, target, strerror(reason));
}

/* Writes the files of all templates in a folder. */
static int write_folder(const char *templates, const char *folder, const char *to, const names *n)
{
    char from[PATH_MAX];
    int code = EXIT_OK;
    DIR *list = opendir(join(from, templates, folder, ""));

    if (list == NULL)
        return refuse(
            TN_ERR_IO, from,
            "no templates; expected the templates of an installed Tenon, or --templates DIR");
    for (struct dirent *entry; code == EXIT_OK && (entry = readdir(list)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (length > 3 && strcmp(entry->d_name + length - 3, ".in") == 0)
            code = write_file(from, entry->d_name, to, n);
    }
    closedir(list);
    return code;
}

/* Removes a folder that this program created, with its files. */
static void remove_folder(const char *folder)
{
    char path[PATH_MAX];
    DIR *list = opendir(folder);

    for (struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(join(path, folder, entry->d_name, ""));
    }
    if (list != NULL)
        closedir(list);
    rmdir(folder);
}

/* Writes the project into a temporary folder next to `folder`, and renames that to `folder` when it
 * is complete. */
static int write_project(const kind *k, const names *n, const char *templates, const char *folder)
{
    char made[PATH_MAX];
    struct stat about;
    mode_t mask = umask(0);

    umask(mask);
    if (lstat(folder, &about) == 0)
        return refuse(TN_ERR_VALUE, folder, "exists already; expected the name of a new folder");
    if (tn_snprint(made, sizeof made, "%s.XXXXXX", folder) >= (int64_t)sizeof made)
        return refuse(TN_ERR_VALUE, folder, "the path is too long; expected at most 4088 bytes");
    if (mkdtemp(made) == NULL)
        return refuse(TN_ERR_IO, folder, strerror(errno));
    int code = write_folder(templates, k->name, made, n);
    if (code == EXIT_OK)
        code = write_folder(templates, "common", made, n);
    if (code == EXIT_OK && (chmod(made, 0777 & ~mask) != 0 || rename(made, folder) != 0))
        code = refuse(TN_ERR_IO, folder, strerror(errno));
    if (code != EXIT_OK)
        remove_folder(made);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int print_help(void)
{
    printf("\nKinds:\n");
    for (int i = 0; i < KINDS; i++)
        printf("  %-12s %s\n", kinds[i].name, kinds[i].what);
    printf("\nOptions:\n  --templates DIR  a folder of templates, instead of the installed one\n"
           "  --cxx            C++17 instead of C11\n"
           "  --json           JSON instead of text\n  --help           this text\n");
    return EXIT_OK;
}

/* Returns "layer, backend, ... or communicator". */
static const char *kind_names(void)
{
    static char text[256];
    int64_t at = 0;

    for (int i = 0; i < KINDS; i++)
        at += tn_snprint(text + at, sizeof text - (size_t)at, "%s%s",
                         i == 0           ? ""
                         : i == KINDS - 1 ? " or "
                                          : ", ",
                         kinds[i].name);
    return text;
}

static int usage(const char *what, const char *got, const char *expected)
{
    fprintf(stderr, "tenon new: %s", what);
    if (got != NULL)
        fprintf(stderr, ", got \"%s\"", got);
    fprintf(stderr, "; expected %s; `tenon new --help` lists its arguments\n", expected);
    return EXIT_USAGE;
}

static int answer(const kind *k, const names *n, const char *folder, bool json)
{
    if (json) {
        json_begin(NULL, '{');
        json_text("kind", k->name);
        json_text("name", n->given);
        json_text("folder", folder);
        json_end('}');
    } else {
        printf("%s: %s\nnext: cd %s && make check; its README.md says more\n", folder, k->what,
               folder);
    }
    return EXIT_OK;
}

static int run(int count, char **given, bool only_help)
{
    const char *words[3] = { NULL, NULL, NULL }, *templates = NULL;
    int found = 0, which = 0;
    bool json = false, cxx = false;
    names n;

    if (only_help)
        return print_help();
    for (int i = 0; i < count; i++) {
        if (strcmp(given[i], "--json") == 0)
            json = tool_json = true;
        else if (strcmp(given[i], "--cxx") == 0)
            cxx = true;
        else if (strcmp(given[i], "--templates") == 0 && i + 1 < count)
            templates = given[++i];
        else if (strcmp(given[i], "--templates") == 0)
            return usage("--templates: its value is missing", NULL, "--templates DIR");
        else if (given[i][0] == '-')
            return usage("unknown option", given[i], "--templates DIR, --cxx or --json");
        else if (found == 3)
            return usage("too many arguments", given[i], "KIND NAME [DIR]");
        else
            words[found++] = given[i];
    }
    if (found < 2)
        return usage("kind or name: missing", NULL, "KIND NAME [DIR]");
    while (which < KINDS && strcmp(kinds[which].name, words[0]) != 0)
        which++;
    if (which == KINDS)
        return usage("kind: unknown", words[0], kind_names());
    if (!make_names(words[1], &n))
        return usage(
            "name: not valid", words[1],
            "a letter, then letters, digits and _, at most 40 characters, not \"example\"");
    n.language = cxx ? &in_cxx : &in_c;
    if (templates == NULL)
        templates = installed_folder(TN_TEMPLATE_BESIDE, TN_TEMPLATE_DIR);
    char folder[PATH_MAX];
    tn_snprint(folder, sizeof folder, "%s", found == 3 ? words[2] : n.given);
    for (size_t end = strlen(folder); end > 1 && folder[end - 1] == '/';)
        folder[--end] = '\0';
    int code = write_project(&kinds[which], &n, templates, folder);
    return code == EXIT_OK ? answer(&kinds[which], &n, folder, json) : code;
}

const command new_command = {
    .name = "new",
    .arguments = "KIND NAME [DIR]",
    .summary = "begins a plugin: writes a project that builds and passes its tests",
    .help =
        "Writes a small, working plugin of a kind into the new folder DIR (NAME when not given), "
        "with a Makefile, files for Autotools and CMake, a program that uses the plugin, and a "
        "test. It builds with the installed headers alone: `make` builds it, `make check` tests "
        "it. With --cxx it is written in C++17. NAME is a letter, then letters, digits and `_`.",
    .run = run,
    .options = TOOL_OWN_OPTIONS,
};
