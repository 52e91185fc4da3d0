#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# make_spectra.py FOLDER: a sound as WAV, FLAC, Ogg Vorbis and Opus below FOLDER/files/sounds, and
# spectra.h: what libsndfile makes of the Ogg file, and torchaudio of the sound, in float64.
import os
import sys
import textwrap

import numpy
import soundfile
import torch
import torchaudio

RATE, FRAMES = 8000, 700


def fill(values):
    return textwrap.fill(", ".join(f"{v:.9g}" for v in values), 92, initial_indent=" " * 8,
                         subsequent_indent=" " * 8)


def main():
    torch.set_default_dtype(torch.float64)  # also of the windows and bands that it makes
    top = sys.argv[1]
    folder = os.path.join(top, "files/sounds")
    os.makedirs(folder, exist_ok=True)
    i = numpy.arange(FRAMES)
    sound = numpy.stack([numpy.sin(0.05 * i + 4e-4 * i * i) / 2, (37 * i % 251 - 125) / 600], 1)
    sound = numpy.round(sound * 32767).astype(numpy.int16)
    for name, options in (("tone.wav", {"subtype": "PCM_16"}), ("tone.flac", {}),
                          ("tone.ogg", {"subtype": "VORBIS"}), ("tone.opus", {"format": "OGG",
                                                                              "subtype": "OPUS"})):
        soundfile.write(os.path.join(folder, name), sound, RATE, **options)
    x = torch.from_numpy(sound.T.copy()).double() / 32768
    transforms = torchaudio.transforms
    mel = {"n_fft": 60, "hop_length": 25, "n_mels": 9}

    def mfcc(**options):
        return transforms.MFCC(RATE, **options)

    cases = [
        ("MelSpectrogram(8000, n_fft=64, n_mels=8)",
         transforms.MelSpectrogram(RATE, n_fft=64, n_mels=8)),
        ("MelSpectrogram(8000, n_fft=60, win_length=41, hop_length=100, n_mels=7, power=1.0, "
         "norm='slaney', mel_scale='slaney', f_min=100.0, f_max=3000.0)",
         transforms.MelSpectrogram(RATE, n_fft=60, win_length=41, hop_length=100, n_mels=7,
                                   power=1.0, norm="slaney", mel_scale="slaney", f_min=100.0,
                                   f_max=3000.0)),
        ("MelSpectrogram(8000, n_fft=131, hop_length=200, n_mels=6, center=False)",
         transforms.MelSpectrogram(RATE, n_fft=131, hop_length=200, n_mels=6, center=False)),
        ("[MelSpectrogram(8000, n_fft=60, hop_length=100, n_mels=9), AmplitudeToDB(top_db=30.0)]",
         torch.nn.Sequential(transforms.MelSpectrogram(RATE, n_fft=60, hop_length=100, n_mels=9),
                             transforms.AmplitudeToDB(top_db=30))),
        ("[MelSpectrogram(8000, n_fft=60, hop_length=100, n_mels=9, power=1.0), "
         "AmplitudeToDB('magnitude')]",
         torch.nn.Sequential(transforms.MelSpectrogram(RATE, n_fft=60, hop_length=100, n_mels=9,
                                                       power=1.0),
                             transforms.AmplitudeToDB("magnitude"))),
        ("MFCC(8000, n_fft=60, hop_length=25, n_mels=9, n_mfcc=5)", mfcc(n_mfcc=5, melkwargs=mel)),
        ("MFCC(8000, n_fft=60, hop_length=25, n_mels=9, n_mfcc=5, log_mels=True)",
         mfcc(n_mfcc=5, log_mels=True, melkwargs=mel)),
    ]
    with open(os.path.join(top, "spectra.h"), "w", encoding="utf-8") as out:
        version = torchaudio.__version__.split("+")[0]
        out.write("/* SPDX-License-Identifier: MIT\n *\n"
                  f" * Numbers of torchaudio {version} and libsndfile, written by make_spectra.py."
                  " */\n\n/* The first frames of tone.ogg and tone.opus, one channel after the"
                  " other. */\nenum { DECODED = 40 };\n"
                  "static const struct decoded {\n    const char *name;\n"
                  "    int64_t rate, frames;\n    double values[2 * DECODED];\n} decoded[] = {\n")
        for name in ("tone.ogg", "tone.opus"):
            values, rate = soundfile.read(os.path.join(folder, name), dtype="float32")
            out.write(f'    {{ "{name}",\n      {rate},\n      {len(values)},\n'
                      f"      {{\n{fill(values[100:140].T.flatten().tolist())} }} }},\n")
        out.write("};\n\nstatic const struct spectra {\n    const char *spec;\n"
                  "    int64_t bands, frames;\n    double values[2 * 9 * 40];\n} spectra[] = {\n")
        for spec, transform in cases:
            values = transform.double()(x)
            assert values.numel() <= 720
            text = '"\n      "'.join(textwrap.wrap(spec, 84, drop_whitespace=False))
            out.write(f'    {{ "{text}",\n      {values.shape[1]},\n      {values.shape[2]},\n'
                      f"      {{\n{fill(values.flatten().tolist())} }} }},\n")
        out.write("};\n")


main()
