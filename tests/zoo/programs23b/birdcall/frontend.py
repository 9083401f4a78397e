import math

import torch


def mel_filters(bands, bins, rate):
    def to_mel(hertz):
        return 2595 * math.log10(1 + hertz / 700)

    mels = torch.linspace(to_mel(50), to_mel(rate / 2), bands + 2)
    edges = 700 * (10 ** (mels / 2595) - 1)
    hertz = torch.linspace(0, rate / 2, bins)
    rising = (hertz[None] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - hertz[None]) / (edges[2:] - edges[1:-1])[:, None]
    return torch.minimum(rising, falling).clamp(min=0)


class LogMel:
    """Random gain and shift, then a log-mel spectrogram with its noise floor taken off."""

    def __init__(self, rate, bands=48, window=2048, hop=160):
        self.window = torch.hann_window(window)
        self.hop = hop
        self.filters = mel_filters(bands, window // 2 + 1, rate)

    def __call__(self, wave):
        shift = int(torch.randint(len(wave), ()))
        wave = torch.roll(wave, shift) * (0.5 + torch.rand(()))
        spectrum = torch.stft(
            wave, len(self.window), self.hop, window=self.window, return_complex=True
        )
        mel = torch.log1p(100 * (self.filters @ spectrum.abs().square()))
        floor = mel.quantile(0.2, dim=1, keepdim=True)
        mel = (mel - floor).clamp(min=0)
        return (mel - mel.mean()) / (mel.std() + 1e-5)
