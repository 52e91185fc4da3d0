/* SPDX-License-Identifier: MIT
 *
 * Sounds in WAV files. */
#ifndef TN_DATA_WAV_H
#define TN_DATA_WAV_H

#include "data.h"

/* The samples of a file that is in memory. */
struct wav {
    int64_t channels, rate;
    int64_t frames; /* samples of each channel */
    int64_t bytes;  /* of one sample of one channel */
    bool floats;    /* IEEE numbers; else integers */
    const unsigned char *data;
};

/* Finds the samples in a file. `path` is for messages. */
tn_status wav_open(struct wav *wav, const char *path, const unsigned char *bytes, uint64_t size);
/* Converts `count` frames from `first` on to floats from -1 to 1: `to` has `stride` floats for each
 * channel. */
void wav_read(const struct wav *wav, int64_t first, int64_t count, float *to, int64_t stride);

/* ---- a sound as a sample (wav_sample.c) ------------------------------------------------------ */

/* The part of a sound that is a sample. */
enum wav_crop { WAV_START, WAV_MIDDLE, WAV_RANDOM };
struct wav_part {
    int64_t length; /* frames of a sample; INT64_MIN: as many as the file has */
    int64_t rate;   /* INT64_MIN: any */
    enum wav_crop crop;
    bool mono;
};

/* Checks the options of a dataset, and sets `crop` from its name. */
tn_status wav_part_check(struct wav_part *part, const char *crop);
/* Appends the sound in a file to a sample, float32 [channels, length]. */
tn_status wav_add(const struct wav_part *part, const char *path, const tn_sample_args *args);
/* Whether a file with these first bytes is a WAV file. */
bool wav_known(const void *start, uint64_t size);

#endif
