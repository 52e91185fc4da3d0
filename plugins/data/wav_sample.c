/* SPDX-License-Identifier: MIT
 *
 * A sound as a sample: cut or padded, mixed down. */
#include "wav.h"

#include <string.h>

/* The first frame of the part that a sample has. */
static int64_t first_of(const struct wav_part *part, const struct wav *wav, int64_t length,
                        const tn_sample_args *args)
{
    int64_t spare = wav->frames - length;
    tn_random_key key = { args->seed, 0 };

    if (spare <= 0 || part->crop == WAV_START)
        return 0;
    if (part->crop == WAV_MIDDLE)
        return spare / 2;
    key.seed = tn_random_bits(&key) ^ (uint64_t)args->epoch * 0xD6E8FEB86659FD93u;
    key.seed = tn_random_bits(&key) ^ (uint64_t)args->index * 0xD6E8FEB86659FD93u;
    return tn_random_below(&key, spare + 1);
}

/* The mean of the channels, in the place of the first. */
static void mix_down(float *values, int64_t channels, int64_t length)
{
    for (int64_t i = 0; i < length; i++) {
        double sum = 0;

        for (int64_t c = 0; c < channels; c++)
            sum += (double)values[c * length + i];
        values[i] = (float)(sum / (double)channels);
    }
}

static tn_status add_sound(const struct wav_part *part, const struct wav *wav,
                           const tn_sample_args *args)
{
    int64_t length = part->length != INT64_MIN ? part->length : wav->frames, total;
    int64_t count = wav->frames < length ? wav->frames : length;
    int64_t channels = part->mono ? 1 : wav->channels;
    float *values;
    tn_status status;

    if (__builtin_mul_overflow(wav->channels, length, &total) || total > (int64_t)1 << 40)
        return tn_fail(
            TN_ERR_VALUE,
            "length: too large for %lld channels, got %lld; expected at most 2^40 values in all",
            (long long)wav->channels, (long long)length);
    values = tn_calloc((size_t)total + 1, sizeof *values);
    if (values == NULL)
        return TN_ERR_MEMORY;
    wav_read(wav, first_of(part, wav, length, args), count, values, length);
    if (part->mono && wav->channels > 1)
        mix_down(values, wav->channels, length);
    status = data_add_tensor(args->out, values, TN_F32, TN_SHAPE(channels, length));
    tn_free(values);
    return status;
}

tn_status wav_add(const struct wav_part *part, const char *path, const tn_sample_args *args)
{
    uint64_t size;
    unsigned char *bytes = data_load(path, &size);
    struct wav wav;
    tn_status status = bytes != NULL ? wav_open(&wav, path, bytes, size) : tn_error_last_code();

    if (status == TN_OK && part->rate != INT64_MIN && wav.rate != part->rate)
        status = tn_fail(TN_ERR_VALUE,
                         "%s: sample_rate: wrong rate, got %lld; expected %lld: resample the file",
                         path, (long long)wav.rate, (long long)part->rate);
    if (status == TN_OK)
        status = add_sound(part, &wav, args);
    tn_free(bytes);
    return status;
}
