"""From a waveform to a log-mel picture."""

import numpy as np

RATE = 8000


def synthesize(rng, word, seconds=0.5):
    """A made-up word: a few gliding tones."""
    t = np.arange(int(RATE * seconds)) / RATE
    wave = np.zeros_like(t)
    for harmonic in range(1, 4):
        pitch = (180 + 60 * word) * harmonic * (1 + 0.1 * np.sin(2 * np.pi * 3 * t))
        wave += np.sin(2 * np.pi * np.cumsum(pitch) / RATE) / harmonic
    return wave * rng.uniform(0.5, 1.0)


def change_speed(wave, factor):
    old = np.arange(len(wave))
    new = np.clip(np.arange(len(wave)) * factor, 0, len(wave) - 1)
    return np.interp(new, old, wave)


def add_room(wave, rng):
    echo = np.zeros_like(wave)
    for _ in range(6):
        delay = rng.integers(50, 900)
        echo[delay:] += rng.uniform(0, 0.4) * wave[:-delay]
    return wave + echo + rng.normal(0, 0.05, len(wave))


def mel_matrix(bins, bands):
    centers = np.linspace(0, bins - 1, bands + 2)
    k = np.arange(bins)[None]
    left, mid, right = centers[:-2, None], centers[1:-1, None], centers[2:, None]
    return np.maximum(0, np.minimum((k - left) / (mid - left), (right - k) / (right - mid)))


def log_mel(wave, mel, frame=256, hop=96):
    frames = np.lib.stride_tricks.sliding_window_view(wave, frame)[::hop] * np.hanning(frame)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    return np.log(power @ mel.T + 1e-6)
