"""Log-mel pictures of clips."""

import numpy as np

RATE, WINDOW, HOP, BANDS = 8000, 256, 64, 40


def filterbank():
    top = 2595 * np.log10(1 + RATE / 2 / 700)
    hertz = 700 * (10 ** (np.linspace(0, top, BANDS + 2) / 2595) - 1)
    bins = hertz / (RATE / 2) * (WINDOW // 2)
    k = np.arange(WINDOW // 2 + 1)[None]
    left, mid, right = (bins[i : i + BANDS, None] for i in range(3))
    return np.maximum(0, np.minimum((k - left) / (mid - left), (right - k) / (right - mid)))


FILTERS = filterbank().T.astype(np.float32)
TAPER = np.hanning(WINDOW).astype(np.float32)


def log_mel(clip):
    """Return frames by bands for one clip."""
    frames = []
    for at in range(0, len(clip) - WINDOW + 1, HOP):
        spectrum = np.abs(np.fft.rfft(clip[at : at + WINDOW] * TAPER)) ** 2
        frames.append(np.log(spectrum @ FILTERS + 1e-5))
    return np.stack(frames).astype(np.float32)
