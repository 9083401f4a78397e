"""Log-mel features of a waveform. Both versions give the same numbers."""

import numpy as np

RATE = 8000
WINDOW = 200
HOP = 80
FFT = 256
MELS = 24


def mel(hz):
    return 2595.0 * np.log10(1.0 + hz / 700.0)


def filterbank():
    points = 700.0 * (10 ** (np.linspace(mel(60.0), mel(RATE / 2), MELS + 2) / 2595.0) - 1.0)
    bins = np.floor((FFT + 1) * points / RATE).astype(int)
    bank = np.zeros((MELS, FFT // 2 + 1), np.float32)
    for m in range(MELS):
        a, b, c = bins[m], bins[m + 1], bins[m + 2]
        bank[m, a : b + 1] = np.linspace(0, 1, b - a + 1)
        bank[m, b : c + 1] = np.linspace(1, 0, c - b + 1)
    return bank


BANK = filterbank()
HANN = np.hanning(WINDOW).astype(np.float32)


def log_mel_v1(wave):
    frames = 1 + (len(wave) - WINDOW) // HOP
    out = np.zeros((MELS, frames), np.float32)
    for t in range(frames):
        chunk = wave[t * HOP : t * HOP + WINDOW] * HANN
        power = np.abs(np.fft.rfft(chunk, FFT)) ** 2
        for m in range(MELS):
            energy = np.sum(power * BANK[m])
            out[m, t] = np.log(energy + 1e-6)
    return out


def log_mel_v2(wave):
    chunks = np.lib.stride_tricks.sliding_window_view(wave, WINDOW)[::HOP] * HANN
    power = np.abs(np.fft.rfft(chunks, FFT, axis=1)) ** 2
    return np.log(BANK @ power.T.astype(np.float32) + 1e-6)


FRONTENDS = {"v1": log_mel_v1, "v2": log_mel_v2}
