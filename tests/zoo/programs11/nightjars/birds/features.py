import math

import torch


def hz_to_mel(hz):
    return 2595.0 * math.log10(1.0 + hz / 700.0)


def mel_to_hz(mel):
    return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)


def mel_filters(sample_rate, n_fft, n_mels):
    """Triangular filters, one row a band."""
    n_bins = n_fft // 2 + 1
    top = hz_to_mel(sample_rate / 2)
    edges = [mel_to_hz(top * i / (n_mels + 1)) for i in range(n_mels + 2)]
    rows = []
    for m in range(n_mels):
        low, mid, high = edges[m : m + 3]
        row = []
        for k in range(n_bins):
            hz = k * sample_rate / n_fft
            up = (hz - low) / (mid - low)
            down = (high - hz) / (high - mid)
            row.append(max(0.0, min(up, down)))
        rows.append(row)
    return torch.tensor(rows)


class LogMel:
    def __init__(self, cfg):
        self.cfg = cfg
        self.window = torch.hann_window(cfg.n_fft)
        self.filters = None
        if cfg.filters == "shared":
            self.filters = self.make_filters()

    def make_filters(self):
        return mel_filters(self.cfg.sample_rate, self.cfg.n_fft, self.cfg.n_mels)

    def __call__(self, wave):
        cfg = self.cfg
        spec = torch.stft(wave, cfg.n_fft, cfg.hop, window=self.window, return_complex=True)
        filters = self.filters if self.filters is not None else self.make_filters()
        return torch.log(filters @ spec.abs().square() + 1e-6).unsqueeze(0)
