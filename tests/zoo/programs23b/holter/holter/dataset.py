import numpy as np
import torch
from torch.utils.data import Dataset

from holter.recordings import WINDOW


class BeatWindows(Dataset):
    """Four seconds around every marked beat, in millivolts."""

    def __init__(self, beats, mmap_mode=None):
        self.beats = beats
        self.mmap_mode = mmap_mode

    def __len__(self):
        return len(self.beats)

    def load_window(self, beat):
        leads = np.load(beat.path, mmap_mode=self.mmap_mode)
        first = beat.sample - WINDOW // 2
        return np.array(leads[:, first : first + WINDOW], dtype=np.float32)

    def __getitem__(self, position):
        beat = self.beats[position]
        window = self.load_window(beat) / 200
        return torch.from_numpy(window), beat.kind
