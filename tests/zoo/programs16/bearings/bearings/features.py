import numpy as np


def log_spectrogram(signals, window=512, hop=24):
    """(batch, samples) -> (batch, 1, frequencies, frames), each clip normalised."""
    frames = np.lib.stride_tricks.sliding_window_view(signals, window, axis=1)[:, ::hop]
    spectrum = np.abs(np.fft.rfft(frames * np.hanning(window).astype(np.float32), axis=2))
    power = np.log1p(spectrum[:, :, :64].astype(np.float32) ** 2)
    power -= power.mean(axis=(1, 2), keepdims=True)
    power /= power.std(axis=(1, 2), keepdims=True) + 1e-5
    return np.ascontiguousarray(power.transpose(0, 2, 1)[:, None])
