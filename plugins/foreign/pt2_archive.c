/* SPDX-License-Identifier: MIT
 *
 * The archive of a `.pt2` file: finding the program in it, and saying what else a zip archive of
 * PyTorch can be. The file is not trusted. */
#include "foreign.h"
#include "pt2.h"

#include <stdarg.h>
#include <string.h>

#define FLAT_PROGRAM "serialized_exported_program.json"
#define JSON_MOST (UINT64_C(256) << 20)
#define JSON_VALUE UINT64_C(128) /* bytes of memory for a value, at most */

enum { SCHEMA_MAJOR = 8 };

/* ---- members --------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), size = strlen(end);

    return length >= size && strcmp(text + length - size, end) == 0;
}

/* Where "models/" begins in the name of a program's member, "NAME/models/model.json"; NULL if it is
 * none. */
static const char *model_name(const char *member)
{
    const char *slash = strchr(member, '/');
    const char *models = strncmp(member, "models/", 7) == 0 ? member
                         : slash != NULL                    ? slash + 1
                                                            : NULL;

    return models != NULL && strncmp(models, "models/", 7) == 0 &&
                   strchr(models + 7, '/') == NULL && ends_with(models, ".json")
               ? models
               : NULL;
}

/* The number of programs in the archive; *found becomes the first one. */
static int64_t count_programs(const struct zip *zip, const struct zip_member **found)
{
    int64_t count = 0;

    for (int64_t i = 0; i < zip->count; i++) {
        const char *name = zip->at[i].name;

        if (model_name(name) == NULL && strcmp(name, FLAT_PROGRAM) != 0)
            continue;
        if (count++ == 0)
            *found = &zip->at[i];
    }
    return count;
}

/* Whether a member's name has this text in it: what other archives of PyTorch have. */
static bool has_member(const struct zip *zip, const char *part)
{
    for (int64_t i = 0; i < zip->count; i++)
        if (strstr(zip->at[i].name, part) != NULL)
            return true;
    return false;
}

const struct zip_member *pt2_archive_find(struct pt2_file *file, const char *format, ...)
{
    char name[PROGRAM_PATH];
    va_list args;
    int64_t length;

    va_start(args, format);
    length = tn_snprintv(name, sizeof name, format, args);
    va_end(args);
    return length >= 0 && (size_t)length < sizeof name ? zip_find(&file->zip, name) : NULL;
}

bool pt2_archive_recognize(const tn_source *source)
{
    struct zip zip;
    const struct zip_member *found;
    bool known;

    if (!zip_recognize(source) || zip_open(source, foreign_unpacked, &zip) != TN_OK)
        return false;
    known = count_programs(&zip, &found) > 0 || has_member(&zip, "data/aotinductor/");
    zip_close(&zip);
    return known;
}

/* ---- texts ----------------------------------------------------------------------------------- */

tn_status pt2_wrong(const char *what, const char *expected)
{
    return tn_fail(TN_ERR_FORMAT, "%s: missing or wrong; expected %s", what, expected);
}

/* Reads a member of at most `most` bytes, and ends it with a NUL. */
static tn_status read_bytes(struct pt2_file *file, const struct zip_member *member, uint64_t most,
                            char **bytes)
{
    struct zip_reader reader;
    tn_status status;

    *bytes = NULL;
    if (member->size > most)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: pt2: member %q: too large, got %llu bytes; expected at most %llu",
                       file->source->path, member->name, (unsigned long long)member->size,
                       (unsigned long long)most);
    status = zip_reader_open(&file->zip, member, &reader);
    if (status != TN_OK)
        return status;
    *bytes = tn_malloc((size_t)member->size + 1);
    status = *bytes != NULL
                 ? reader.source.read(reader.source.user, 0, *bytes, (size_t)member->size)
                 : TN_ERR_MEMORY;
    status = zip_reader_close(&reader, status);
    if (status == TN_OK)
        (*bytes)[member->size] = '\0';
    if (status != TN_OK) {
        tn_free(*bytes);
        *bytes = NULL;
    }
    return status;
}

/* The memory that the values of a text need, at most: each has a comma, a colon or a bracket. */
static uint64_t memory_of(const char *text, size_t length)
{
    uint64_t count = 1;

    for (size_t i = 0; i < length; i++)
        count += text[i] == ',' || text[i] == ':' || text[i] == '[' || text[i] == '{';
    return count * JSON_VALUE;
}

json_t *pt2_archive_parse(struct pt2_file *file, const char *text, size_t length,
                          json_error_t *error)
{
    *error = (json_error_t){ .line = 0 };
    if (foreign_unpacked(file->source, &file->zip.unpacked, memory_of(text, length)) != TN_OK)
        return NULL;
    return json_loadb(text, length, JSON_REJECT_DUPLICATES, error);
}

static json_t *parse(struct pt2_file *file, const struct zip_member *member, const char *bytes)
{
    json_error_t error;
    json_t *json = pt2_archive_parse(file, bytes, (size_t)member->size, &error);

    if (json == NULL && error.text[0] != '\0')
        tn_fail(TN_ERR_FORMAT, "%s: pt2: member %q: line %d: %s", file->source->path, member->name,
                error.line, error.text);
    return json;
}

json_t *pt2_archive_json(struct pt2_file *file, const struct zip_member *member)
{
    char *bytes;
    json_t *json = read_bytes(file, member, JSON_MOST, &bytes) == TN_OK ? parse(file, member, bytes)
                                                                        : NULL;

    tn_free(bytes);
    return json;
}

tn_status pt2_archive_extra(struct pt2_file *file, tn_state *files)
{
    char before[PROGRAM_PATH];
    tn_status status = TN_OK;
    int64_t length = tn_snprint(before, sizeof before, "%s%s", file->folder,
                                file->layout == PT2_FLAT ? "extra_files/" : "extra/");

    if (length < 0 || length >= (int64_t)sizeof before)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: pt2: the name of its folder is too long, got %zu bytes; expected fewer "
                       "than %d",
                       file->source->path, strlen(file->folder), PROGRAM_PATH);
    for (int64_t i = 0; i < file->zip.count && status == TN_OK; i++) {
        const struct zip_member *member = &file->zip.at[i];
        char *bytes;

        if (strncmp(member->name, before, (size_t)length) != 0 || member->name[length] == '\0')
            continue;
        status = read_bytes(file, member, UINT32_MAX, &bytes);
        if (status != TN_OK)
            return status;
        status = tn_state_set_value(files, member->name + length,
                                    memchr(bytes, '\0', (size_t)member->size) == NULL
                                        ? tn_value_string(bytes)
                                        : tn_value_bytes(bytes, (uint32_t)member->size));
        tn_free(bytes);
    }
    return status;
}

const json_t *pt2_member(const json_t *object, const char *name, json_type type)
{
    const json_t *value = json_object_get(object, name);
    static const char *const names[] = { "an object",  "a list",        "a string",
                                         "an integer", "a real number", "true" };

    if (value != NULL && json_typeof(value) == type)
        return value;
    pt2_wrong(name, type <= JSON_REAL ? names[type] : "a bool");
    return NULL;
}

const char *pt2_text(struct pt2_file *file, const char *text)
{
    return arena_text(&file->program->arena, text, strlen(text));
}

const json_t *pt2_union(const json_t *object, const char **name)
{
    void *at = json_object_iter((json_t *)object);

    for (; at != NULL; at = json_object_iter_next((json_t *)object, at))
        if (!json_is_null(json_object_iter_value(at))) {
            *name = json_object_iter_key(at);
            return json_object_iter_value(at);
        }
    return NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* An archive without a program: says what it is. */
static tn_status no_program(const struct pt2_file *file)
{
    if (has_member(&file->zip, "data/aotinductor/"))
        return tn_fail(
            TN_ERR_REFUSED,
            "%s: pt2: compiled code of AOTInductor, without a program; expected the file "
            "that torch.export.save(torch.export.export(net, inputs), path) writes",
            file->source->path);
    if (has_member(&file->zip, "/code/"))
        return tn_fail(TN_ERR_REFUSED,
                       "%s: pt2: a TorchScript program, which is not read; expected the file that "
                       "torch.export.save(torch.export.export(net, inputs), path) writes",
                       file->source->path);
    return tn_fail(TN_ERR_FORMAT,
                   "%s: pt2: no program; expected NAME/models/model.json or %s in the archive",
                   file->source->path, FLAT_PROGRAM);
}

static tn_status find_program(struct pt2_file *file, const struct zip_member **found)
{
    int64_t count = count_programs(&file->zip, found);
    const char *models;

    if (count == 0)
        return no_program(file);
    if (count > 1)
        return tn_fail(
            TN_ERR_REFUSED,
            "%s: pt2: several programs in one archive, got %lld; expected one: save each "
            "to a file of its own",
            file->source->path, (long long)count);
    models = model_name((*found)->name);
    file->layout = models != NULL ? PT2_ARCHIVE : PT2_FLAT;
    file->folder = tn_strdup(models != NULL ? (*found)->name : "");
    file->model = tn_strdup(models != NULL ? models + 7 : "");
    if (file->folder == NULL || file->model == NULL)
        return TN_ERR_MEMORY;
    if (models != NULL) {
        file->folder[models - (*found)->name] = '\0';
        file->model[strlen(file->model) - 5] = '\0';
    }
    return TN_OK;
}

static tn_status check_version(const struct pt2_file *file)
{
    const json_t *version = json_object_get(file->json, "schema_version");
    const json_t *major = json_object_get(version, "major");

    if (!json_is_integer(major))
        return pt2_wrong("schema_version", "an object with the integer `major`");
    if (json_integer_value(major) == SCHEMA_MAJOR)
        return TN_OK;
    return tn_fail(TN_ERR_VERSION,
                   "%s: pt2: schema_version: major version unknown, got %lld; expected %d, which "
                   "PyTorch 2.6 to 2.15 write: save the program with one of these",
                   file->source->path, (long long)json_integer_value(major), SCHEMA_MAJOR);
}

static tn_status check_order(struct pt2_file *file)
{
    const struct zip_member *member = pt2_archive_find(file, "%sbyteorder", file->folder);
    char *bytes = NULL;
    tn_status status = member != NULL ? read_bytes(file, member, JSON_MOST, &bytes) : TN_OK;

    if (status == TN_OK && member != NULL && (member->size < 6 || memcmp(bytes, "little", 6) != 0))
        status = pt2_wrong("byteorder", "little");
    tn_free(bytes);
    return status;
}

tn_status pt2_archive_open(const tn_source *source, struct pt2_file *file)
{
    const struct zip_member *member = NULL;
    tn_status status;

    *file = (struct pt2_file){ .source = source };
    status = zip_open(source, foreign_unpacked, &file->zip);
    if (status != TN_OK)
        return status;
    file->zip.crc_is_absent = true;
    status = find_program(file, &member);
    if (status == TN_OK)
        status = check_order(file);
    if (status != TN_OK)
        return status;
    status = read_bytes(file, member, JSON_MOST, &file->text);
    if (status != TN_OK)
        return status;
    file->text_size = (size_t)member->size;
    file->json = parse(file, member, file->text);
    return file->json != NULL ? check_version(file) : tn_error_last_code();
}

void pt2_archive_close(struct pt2_file *file)
{
    json_decref(file->json);
    tn_free(file->text);
    tn_free(file->folder);
    tn_free(file->model);
    names_free(&file->slots);
    names_free(&file->parts);
    names_free(&file->inputs);
    zip_close(&file->zip);
}
