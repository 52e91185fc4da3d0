/* SPDX-License-Identifier: MIT
 *
 * The format "pytorch": files that torch.save() or torch.jit.save() wrote. Tenon reads them but
 * does not write them; to pass tensors to PyTorch, safetensors can be used. */
#include "pytorch.h"

#include <string.h>

#define PICKLE "data.pkl"
#define CONSTANTS "constants.pkl"
#define VERSION_MAX 10 /* of the archive; PyTorch 2 writes 3, no release wrote more than 10 */

/* Finds the pickle of the archive, "NAME/data.pkl". Returns NULL if there is none or there are
 * several. */
static const struct zip_member *find_pickle(const struct zip *zip)
{
    const struct zip_member *found = NULL;
    for (int64_t i = 0; i < zip->count; i++) {
        const char *slash = strchr(zip->at[i].name, '/');
        if (slash == NULL || strcmp(slash + 1, PICKLE) != 0)
            continue;
        if (found != NULL)
            return NULL;
        found = &zip->at[i];
    }
    return found;
}

static bool recognize(const tn_format_def *self, const tn_source *source)
{
    (void)self;
    struct zip zip;
    if (pytorch_legacy_recognize(source))
        return true;
    if (!zip_recognize(source) || zip_open(source, formats_unpacked, &zip) != TN_OK)
        return false;
    bool known = find_pickle(&zip) != NULL;
    zip_close(&zip);
    return known;
}

/* Reads a whole member to memory and appends a NUL. The caller frees *bytes with tn_free. */
static tn_status read_whole(struct zip *zip, const struct zip_member *member, uint64_t limit,
                            char **bytes)
{
    struct zip_reader reader;
    if (member->size > limit)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: member %q: too large, got %llu bytes; expected at most %llu",
                       zip->source->path, member->name, (unsigned long long)member->size,
                       (unsigned long long)limit);
    tn_status status = zip_reader_open(zip, member, &reader);
    if (status != TN_OK)
        return status;
    *bytes = tn_malloc((size_t)member->size + 1);
    status = *bytes != NULL
                 ? reader.source.read(reader.source.user, 0, *bytes, (size_t)member->size)
                 : TN_ERR_MEMORY;
    if (status == TN_OK)
        (*bytes)[member->size] = '\0';
    status = zip_reader_close(&reader, status);
    if (status == TN_OK)
        return TN_OK;
    tn_free(*bytes);
    *bytes = NULL;
    return status;
}

/* Reads a short member in the folder of the pickle to `out`; out becomes "" if there is none. */
static tn_status read_fact(struct pytorch_file *file, const char *name, char *out, size_t size)
{
    char *whole = NULL;
    size_t room = strlen(file->folder) + strlen(name) + 1;
    char *path = tn_malloc(room);
    if (path == NULL)
        return TN_ERR_MEMORY;
    tn_snprint(path, room, "%s%s", file->folder, name);
    const struct zip_member *member = zip_find(file->zip, path);
    tn_status status = member != NULL ? read_whole(file->zip, member, size - 1, &whole) : TN_OK;
    if (status == TN_OK)
        tn_snprint(out, size, "%s", whole != NULL ? whole : "");
    tn_free(whole);
    tn_free(path);
    return status;
}

static tn_status check_facts(struct pytorch_file *file)
{
    char order[16], version[16];
    tn_status status = read_fact(file, "byteorder", order, sizeof order);
    if (status == TN_OK)
        status = read_fact(file, "version", version, sizeof version);
    if (status != TN_OK)
        return status;
    if (order[0] != '\0' && strcmp(order, "little") != 0)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: wrong byte order, got %q; expected little; save the file again on a "
                       "little-endian machine",
                       file->source->path, order);
    int64_t number = 0;
    version[strcspn(version, "\n")] = '\0';
    if (version[0] != '\0' && (!tn_read_int(version, &number) || number > VERSION_MAX))
        return tn_fail(TN_ERR_VERSION,
                       "%s: PyTorch file: unknown version, got %q; expected at most %d",
                       file->source->path, version, VERSION_MAX);
    return TN_OK;
}

/* Reads a pickle of the archive and lets `fill` add its result to the state. */
static tn_status load_pickle(struct pytorch_file *file, const struct zip_member *pickle,
                             bool script,
                             tn_status (*fill)(struct pytorch_file *file, struct pickle *pk))
{
    struct pickle pk;
    char *bytes = NULL;
    tn_status status = read_whole(file->zip, pickle, PK_SIZE_MAX, &bytes);
    if (status != TN_OK)
        return status;
    status = pickle_read(&pk, file->source->path, bytes, (size_t)pickle->size, script);
    if (status == TN_OK && pk.at != pk.size)
        status = tn_fail(TN_ERR_FORMAT,
                         "%s: pickle: data after its end, got %zu more bytes; expected none",
                         file->source->path, pk.size - pk.at);
    if (status == TN_OK)
        status = fill(file, &pk);
    pytorch_storages_free(file);
    pickle_free(&pk);
    tn_free(bytes);
    return status;
}

/* Reads data.pkl. An archive of TorchScript (torch.jit.save) also has constants.pkl: a tuple of the
 * tensors that its code names. The code itself is not read. */
static tn_status load_archive(struct pytorch_file *file, const struct zip_member *pickle)
{
    size_t room = strlen(file->folder) + sizeof CONSTANTS;
    tn_status status = check_facts(file);
    char *name = status == TN_OK ? tn_malloc(room) : NULL;
    if (name == NULL)
        return status != TN_OK ? status : TN_ERR_MEMORY;
    tn_snprint(name, room, "%s%s", file->folder, CONSTANTS);
    const struct zip_member *constants = zip_find(file->zip, name);
    tn_free(name);
    file->members = "data";
    status = load_pickle(file, pickle, constants != NULL, pytorch_fill_state);
    if (status != TN_OK || constants == NULL)
        return status;
    file->members = "constants";
    return load_pickle(file, constants, true, pytorch_fill_constants);
}

static tn_status load(const tn_format_def *self, const tn_source *source, tn_state *state)
{
    (void)self;
    struct zip zip;
    if (pytorch_legacy_recognize(source))
        return pytorch_legacy_load(source, state);
    tn_status status = zip_open(source, formats_unpacked, &zip);
    if (status != TN_OK)
        return status;
    /* PyTorch has an option to write no checksums. */
    zip.crc_is_absent = true;
    const struct zip_member *pickle = find_pickle(&zip);
    struct pytorch_file file = { .source = source, .state = state, .zip = &zip };
    if (pickle == NULL) {
        status = tn_fail(
            TN_ERR_FORMAT,
            "%s: archive: no member NAME/data.pkl, or several; expected one, as PyTorch writes it",
            source->path);
    } else {
        size_t size = strlen(pickle->name) - strlen(PICKLE);
        char *folder = tn_strdup(pickle->name);
        status = folder != NULL ? TN_OK : TN_ERR_MEMORY;
        if (status == TN_OK) {
            folder[size] = '\0';
            file.folder = folder;
            status = load_archive(&file, pickle);
        }
        tn_free(folder);
    }
    zip_close(&zip);
    return status;
}

const tn_format_def format_pytorch = {
    TN_HEAD(tn_format_def),
    .name = "pytorch",
    .help = "the data that torch.save wrote: tensors, numbers, strings, dictionaries",
    .extensions = ".pt .pth .bin",
    .recognize = recognize,
    .load = load,
};
