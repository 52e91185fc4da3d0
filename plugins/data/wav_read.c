/* SPDX-License-Identifier: MIT
 *
 * Reads WAV files: PCM of 8, 16, 24 and 32 bits, IEEE floats of 32 and 64 bits. */
#include "wav.h"

#include <string.h>

enum { PCM = 1, IEEE = 3, EXTENSIBLE = 0xFFFE };
/* The size of data that a program could not know when it wrote the header. */
#define UNKNOWN 0xFFFFFFFFu

static uint32_t u16_at(const unsigned char *at)
{
    return (uint32_t)(at[0] | at[1] << 8);
}

static uint32_t u32_at(const unsigned char *at)
{
    return u16_at(at) | u16_at(at + 2) << 16;
}

/* ---- the header ------------------------------------------------------------------------------ */

static tn_status damaged(const char *path, const char *what)
{
    return tn_fail(TN_ERR_FORMAT, "%s: damaged WAV file: %s", path, what);
}

/* Returns the format of the samples, which an extensible header names later. */
static uint32_t format_of(const unsigned char *at, uint64_t size)
{
    static const unsigned char rest[14] = { 0, 0, 0,    0, 0x10, 0,    0x80,
                                            0, 0, 0xAA, 0, 0x38, 0x9B, 0x71 };
    uint32_t format = u16_at(at);

    if (format != EXTENSIBLE)
        return format;
    if (size < 40 || u16_at(at + 16) < 22 || memcmp(at + 26, rest, sizeof rest) != 0)
        return EXTENSIBLE;
    return u16_at(at + 24);
}

static tn_status read_format(struct wav *wav, const char *path, const unsigned char *at,
                             uint64_t size)
{
    uint32_t format, bits, block;

    if (size < 16)
        return damaged(path, "the format is too short");
    format = format_of(at, size);
    wav->channels = u16_at(at + 2);
    wav->rate = u32_at(at + 4);
    block = u16_at(at + 12);
    bits = u16_at(at + 14);
    if ((format != PCM && format != IEEE) ||
        (format == PCM && bits != 8 && bits != 16 && bits != 24 && bits != 32) ||
        (format == IEEE && bits != 32 && bits != 64))
        return tn_fail(
            TN_ERR_NOT_IMPLEMENTED,
            "%s: a kind of samples that is not known, got format %u of %u bits; expected "
            "PCM (1) of 8, 16, 24 or 32, or IEEE (3) of 32 or 64",
            path, format, bits);
    wav->floats = format == IEEE;
    wav->bytes = bits / 8;
    if (wav->rate == 0)
        return damaged(path, "the sample rate is 0");
    if (wav->channels == 0 || (int64_t)block != wav->channels * wav->bytes)
        return damaged(path, "channels and size of a frame do not agree");
    return TN_OK;
}

static tn_status read_data(struct wav *wav, const char *path, const unsigned char *at,
                           uint64_t size, uint64_t left)
{
    uint64_t frame = (uint64_t)(wav->channels * wav->bytes);

    if (frame == 0)
        return damaged(path, "the samples come before their format");
    if (size == UNKNOWN)
        size = left - left % frame;
    if (size > left)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: damaged WAV file: the file is too short, got %llu bytes of samples; "
                       "expected %llu",
                       path, (unsigned long long)left, (unsigned long long)size);
    if (size % frame != 0)
        return damaged(path, "the last frame is not complete");
    wav->data = at;
    wav->frames = (int64_t)(size / frame);
    return TN_OK;
}

bool wav_known(const void *start, uint64_t size)
{
    const char *text = start;

    return (size >= 12 && memcmp(text + 8, "WAVE", 4) == 0 &&
            (memcmp(text, "RIFF", 4) == 0 || memcmp(text, "RF64", 4) == 0 ||
             memcmp(text, "RIFX", 4) == 0)) ||
           wav_sndfile_known(start, size);
}

tn_status wav_open(struct wav *wav, const char *path, const unsigned char *bytes, uint64_t size)
{
    uint64_t at = 12;
    tn_status status = TN_OK;

    *wav = (struct wav){ 0 };
    if (wav_sndfile_known(bytes, size)) {
        const char *lack = wav_sndfile_lack();

        return lack == NULL
                   ? wav_sndfile_open(wav, path, bytes, size)
                   : tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: a FLAC or Ogg file, but %s", path, lack);
    }
    if (size >= 4 && (memcmp(bytes, "RF64", 4) == 0 || memcmp(bytes, "RIFX", 4) == 0))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: wrong kind of file, got %.4s; expected RIFF",
                       path, (const char *)bytes);
    if (size < 12 || memcmp(bytes, "RIFF", 4) != 0 || memcmp(bytes + 8, "WAVE", 4) != 0)
        return tn_fail(TN_ERR_FORMAT, "%s: no " WAV_FORMATS " file", path);
    while (status == TN_OK && wav->data == NULL) {
        uint64_t length, left;

        if (size - at < 8)
            return damaged(path, "there are no samples");
        length = u32_at(bytes + at + 4);
        left = size - at - 8;
        if (memcmp(bytes + at, "data", 4) == 0)
            return read_data(wav, path, bytes + at + 8, length, left);
        if (length + length % 2 > left)
            return damaged(path, "a part is longer than the file");
        if (memcmp(bytes + at, "fmt ", 4) == 0)
            status = read_format(wav, path, bytes + at + 8, length);
        at += 8 + length + length % 2;
    }
    return status;
}

tn_status wav_load(struct wav *wav, const char *path, const unsigned char *bytes, uint64_t size)
{
    return wav->data != NULL ? TN_OK : wav_sndfile_load(wav, path, bytes, size);
}

void wav_close(struct wav *wav)
{
    tn_free(wav->memory);
    wav->memory = NULL;
}

/* ---- the samples ----------------------------------------------------------------------------- */

static float sample_at(const struct wav *wav, const unsigned char *at)
{
    uint32_t bits;
    float f;
    double d;

    switch (wav->bytes) {
    case 1: return ((float)at[0] - 128) / 128;
    case 2: return (float)(int16_t)u16_at(at) / 32768;
    case 3: return (float)((int32_t)((u16_at(at) << 8) | (uint32_t)at[2] << 24) >> 8) / 8388608;
    case 4:
        bits = u32_at(at);
        memcpy(&f, &bits, sizeof f);
        return wav->floats ? f : (float)((double)(int32_t)bits / 2147483648.0);
    default: {
        uint64_t wide = u32_at(at) | (uint64_t)u32_at(at + 4) << 32;

        memcpy(&d, &wide, sizeof d);
        return (float)d;
    }
    }
}

void wav_read(const struct wav *wav, int64_t first, int64_t count, float *to, int64_t stride)
{
    const unsigned char *at = wav->data + first * wav->channels * wav->bytes;

    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < wav->channels; c++, at += wav->bytes)
            to[c * stride + i] = sample_at(wav, at);
}

void wav_read_mean(const struct wav *wav, int64_t first, int64_t count, float *to)
{
    const unsigned char *at = wav->data + first * wav->channels * wav->bytes;

    for (int64_t i = 0; i < count; i++) {
        double sum = 0;

        for (int64_t c = 0; c < wav->channels; c++, at += wav->bytes)
            sum += (double)sample_at(wav, at);
        to[i] = (float)(sum / (double)wav->channels);
    }
}
