/* SPDX-License-Identifier: MIT
 *
 * Sounds in FLAC and Ogg files (Vorbis, Opus, FLAC), which libsndfile decodes. It is opened at run
 * time. */
#include "wav.h"

#include <string.h>

bool wav_sndfile_known(const void *start, uint64_t size)
{
    return size >= 4 && (memcmp(start, "fLaC", 4) == 0 || memcmp(start, "OggS", 4) == 0);
}

#ifdef TN_WITH_LIBSNDFILE
#include "library.h"

#include <stdio.h>

#include <sndfile.h>

static struct {
    __typeof__(sf_open_virtual) *open;
    __typeof__(sf_readf_float) *read;
    __typeof__(sf_strerror) *words;
    __typeof__(sf_close) *close;
} sndfile;
static const char *const names[] = { "libsndfile.so.1", NULL };
static const char *const symbols[] = { "sf_open_virtual", "sf_readf_float", "sf_strerror",
                                       "sf_close", NULL };
static struct data_library library = { .names = names, .symbols = symbols, .functions = &sndfile };

const char *wav_sndfile_lack(void)
{
    return data_library_open(&library) ? NULL : "libsndfile.so.1 is missing (Debian: libsndfile1)";
}

/* ---- the file, which is in memory ------------------------------------------------------------ */

struct source {
    const unsigned char *bytes;
    sf_count_t size, at;
};

static sf_count_t size_of(void *user)
{
    return ((const struct source *)user)->size;
}

static sf_count_t seek(sf_count_t to, int from, void *user)
{
    struct source *source = user;
    sf_count_t base = from == SEEK_SET ? 0 : from == SEEK_CUR ? source->at : source->size;

    if (to < -base || to > source->size - base)
        return -1;
    return source->at = base + to;
}

static sf_count_t read_bytes(void *out, sf_count_t count, void *user)
{
    struct source *source = user;
    sf_count_t left = source->size - source->at, some = count < left ? count : left;

    memcpy(out, source->bytes + source->at, (size_t)some);
    source->at += some;
    return some;
}

static sf_count_t write_bytes(const void *bytes, sf_count_t count, void *user)
{
    (void)bytes;
    (void)count;
    (void)user;
    return 0;
}

static sf_count_t place_of(void *user)
{
    return ((const struct source *)user)->at;
}

static tn_status damaged(const char *path, const char *what)
{
    return tn_fail(TN_ERR_FORMAT, "%s: damaged FLAC or Ogg file: %s", path, what);
}

static SNDFILE *open_source(struct source *source, SF_INFO *is)
{
    SF_VIRTUAL_IO functions = { size_of, seek, read_bytes, write_bytes, place_of };

    memset(is, 0, sizeof *is);
    return sndfile.open(&functions, SFM_READ, is, source);
}

/* Whether the last page of an Ogg file is the end of its stream: libsndfile reads a file that is
 * cut as a shorter sound. A page has 27 bytes, the lengths of its segments, and these. */
static bool is_whole(const unsigned char *bytes, uint64_t size)
{
    uint64_t place = 0;
    bool last = false;

    if (size < 4 || memcmp(bytes, "OggS", 4) != 0)
        return true;
    while (size - place >= 27 && memcmp(bytes + place, "OggS", 4) == 0) {
        uint64_t segments = bytes[place + 26], length = 27 + segments;

        if (size - place < length)
            return false;
        for (uint64_t i = 0; i < segments; i++)
            length += bytes[place + 27 + i];
        if (size - place < length)
            return false;
        last = (bytes[place + 5] & 4) != 0;
        place += length;
    }
    return last;
}

/* ---- the samples ----------------------------------------------------------------------------- */

tn_status wav_sndfile_open(struct wav *wav, const char *path, const unsigned char *bytes,
                           uint64_t size)
{
    struct source source = { bytes, (sf_count_t)size, 0 };
    SF_INFO is;
    SNDFILE *file = open_source(&source, &is);

    if (file == NULL)
        return damaged(path, sndfile.words(NULL));
    sndfile.close(file);
    if (is.samplerate < 1 || is.channels < 1)
        return damaged(path, "rate or channels are wrong");
    if (!is_whole(bytes, size))
        return damaged(path, "the end of the stream is missing");
    wav->rate = is.samplerate;
    wav->channels = is.channels;
    wav->frames = is.frames > 0 ? is.frames : 0;
    wav->bytes = sizeof(float);
    wav->floats = true;
    return TN_OK;
}

enum { BLOCK = 1 << 14 }; /* frames */

/* Decodes all frames. Memory grows as they come, because the header may say any number. */
static tn_status decode(SNDFILE *file, struct wav *wav, const char *path, uint64_t size)
{
    uint64_t frame = (uint64_t)wav->channels * sizeof(float), room = 0;
    sf_count_t got = 1;
    int64_t count = 0;

    while (got > 0) {
        uint64_t need = ((uint64_t)count + BLOCK) * frame;
        float *grown;

        if (need > room) {
            room = need > 2 * room ? need : 2 * room;
            if (data_limit(path, size, (uint64_t)count * frame) != TN_OK)
                return TN_ERR_REFUSED;
            grown = tn_realloc(wav->memory, (size_t)room);
            if (grown == NULL)
                return TN_ERR_MEMORY;
            wav->memory = grown;
        }
        got = sndfile.read(file, wav->memory + count * wav->channels, BLOCK);
        count += got > 0 ? got : 0;
    }
    if (wav->frames == SF_COUNT_MAX) /* a program that wrote to a pipe could not know it */
        wav->frames = count;
    if (count != wav->frames)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: damaged FLAC or Ogg file: the file is too short, got %lld frames; "
                       "expected %lld",
                       path, (long long)count, (long long)wav->frames);
    wav->data = (const unsigned char *)wav->memory;
    return TN_OK;
}

tn_status wav_sndfile_load(struct wav *wav, const char *path, const unsigned char *bytes,
                           uint64_t size)
{
    struct source source = { bytes, (sf_count_t)size, 0 };
    SF_INFO is;
    SNDFILE *file = open_source(&source, &is);
    tn_status status;

    if (file == NULL)
        return damaged(path, sndfile.words(NULL));
    status = decode(file, wav, path, size);
    sndfile.close(file);
    return status;
}
#else
const char *wav_sndfile_lack(void)
{
    return "this plugin was built without libsndfile (configure --with-libsndfile; Debian: "
           "libsndfile1-dev)";
}

tn_status wav_sndfile_open(struct wav *wav, const char *path, const unsigned char *bytes,
                           uint64_t size)
{
    (void)wav;
    (void)bytes;
    (void)size;
    return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: %s", path, wav_sndfile_lack());
}

tn_status wav_sndfile_load(struct wav *wav, const char *path, const unsigned char *bytes,
                           uint64_t size)
{
    return wav_sndfile_open(wav, path, bytes, size);
}
#endif
