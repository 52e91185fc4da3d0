/* SPDX-License-Identifier: MIT
 *
 * Sounds in WAV files, and with libsndfile in FLAC and Ogg files. */
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
    float *memory; /* of a file that is decoded */
};

/* Finds the samples in a file. `path` is for messages. wav_close() must follow, also after a
 * failure. */
tn_status wav_open(struct wav *wav, const char *path, const unsigned char *bytes, uint64_t size);
/* Decodes the samples of a FLAC or Ogg file, which are needed by the functions below. */
tn_status wav_load(struct wav *wav, const char *path, const unsigned char *bytes, uint64_t size);
void wav_close(struct wav *wav);
/* Converts `count` frames from `first` on to floats from -1 to 1: `to` has `stride` floats for each
 * channel. */
void wav_read(const struct wav *wav, int64_t first, int64_t count, float *to, int64_t stride);
/* The same for the mean of the channels. */
void wav_read_mean(const struct wav *wav, int64_t first, int64_t count, float *to);

/* ---- another rate (wav_resample.c) ----------------------------------------------------------- */

/* The number of frames that so many frames of rate `from` become at rate `to`; -1 if it does not
 * fit. */
int64_t wav_resampled(int64_t frames, int64_t from, int64_t to);
/* Like wav_read, or with `mono` wav_read_mean, for `count` frames, at least one, from `first` on of
 * the sound at another rate. */
tn_status wav_resample(const struct wav *wav, int64_t rate, bool mono, int64_t first, int64_t count,
                       float *to, int64_t stride);

/* ---- a sound as a sample (wav_sample.c) ------------------------------------------------------ */

/* The part of a sound that is a sample. */
enum wav_crop { WAV_START, WAV_MIDDLE, WAV_RANDOM };
struct wav_part {
    int64_t length; /* frames of a sample; INT64_MIN: as many as the file has */
    int64_t rate;   /* to which other files are resampled; INT64_MIN: none is */
    int64_t common; /* then the rate that all files must have; 0: not known */
    enum wav_crop crop;
    bool mono;
    int64_t channels; /* the most that a file may have */
};

/* Appends the sound in a file to a sample, float32 [channels, length]. */
tn_status wav_add(const struct wav_part *part, const char *path, const tn_sample_args *args);
/* Whether a file with these first bytes is a WAV, FLAC or Ogg file. */
bool wav_known(const void *start, uint64_t size);

/* ---- FLAC and Ogg (wav_sndfile.c) ------------------------------------------------------------ */

bool wav_sndfile_known(const void *start, uint64_t size);
/* Returns what is missing to read such files, with its package; NULL: nothing. */
const char *wav_sndfile_lack(void);
/* Like wav_open() and wav_load(), for such a file; the library must be there. */
tn_status wav_sndfile_open(struct wav *wav, const char *path, const unsigned char *bytes,
                           uint64_t size);
tn_status wav_sndfile_load(struct wav *wav, const char *path, const unsigned char *bytes,
                           uint64_t size);

/* The endings of files of sounds. */
#define WAV_ENDINGS ".wav, .flac, .ogg, .oga or .opus"
#define WAV_FORMATS "WAV, FLAC or Ogg"

/* ---- datasets of WAV files (wav_common.c) ---------------------------------------------------- */

struct wav_dataset {
    struct data_folder folder;
    struct wav_part part;
};

/* The options of all datasets of sounds. The first one says where the files are. */
struct wav_options {
    union {
        const char *root; /* WAVFolder */
        tn_value paths;   /* WAVFiles */
    };
    int64_t length;
    const char *crop;
    bool mono;
    int64_t sample_rate;
    int64_t max_channels;
};
/* Returns a dataset whose options are checked and that has no files yet; NULL on failure. */
struct wav_dataset *wav_dataset_new(const struct wav_options *options);
/* Finds the rate that all files must have, unless they are resampled: that of the first one.
 * Gives the dataset to the host if `status`, that of finding the files, is TN_OK; else frees it.
 * Returns the status. */
tn_status wav_dataset_give(struct wav_dataset *dataset, tn_status status, tn_dataset_open *args);
void wav_dataset_close(void *handle);

#endif
