"""Baseline wander and mains hum are removed before the network sees a lead."""

import math

import numpy as np

RATE = 250


class Biquad:
    """A second-order section, direct form II transposed."""

    def __init__(self, b, a):
        self.b = [value / a[0] for value in b]
        self.a = [value / a[0] for value in a]

    @classmethod
    def highpass(cls, cutoff, q=0.707):
        w = 2 * math.pi * cutoff / RATE
        alpha, c = math.sin(w) / (2 * q), math.cos(w)
        return cls([(1 + c) / 2, -(1 + c), (1 + c) / 2], [1 + alpha, -2 * c, 1 - alpha])

    @classmethod
    def notch(cls, center, q=8.0):
        w = 2 * math.pi * center / RATE
        alpha, c = math.sin(w) / (2 * q), math.cos(w)
        return cls([1, -2 * c, 1], [1 + alpha, -2 * c, 1 - alpha])

    def __call__(self, signal):
        b0, b1, b2 = self.b
        _, a1, a2 = self.a
        z1 = z2 = 0.0
        output = np.empty_like(signal)
        for n, x in enumerate(signal.tolist()):
            y = b0 * x + z1
            z1 = b1 * x - a1 * y + z2
            z2 = b2 * x - a2 * y
            output[n] = y
        return output


class Chain:
    def __init__(self, *sections):
        self.sections = sections

    def __call__(self, leads):
        cleaned = np.empty_like(leads)
        for i, lead in enumerate(leads):
            for section in self.sections:
                lead = section(lead)
            cleaned[i] = lead
        return cleaned


class Spectral:
    """The chain's response over one recording, applied to all leads."""

    def __init__(self, chain, length):
        impulse = np.zeros((1, length), dtype=np.float32)
        impulse[0, 0] = 1.0
        self.size = 2 * length
        self.response = np.fft.rfft(chain(impulse)[0], self.size)

    def __call__(self, leads):
        spectrum = np.fft.rfft(leads, self.size, axis=1) * self.response
        return np.fft.irfft(spectrum, axis=1)[:, : leads.shape[1]].astype(np.float32)


def standard_chain():
    return Chain(Biquad.highpass(0.5), Biquad.notch(50.0))
