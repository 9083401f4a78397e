import torch
from torch.utils.data import DataLoader, Dataset

from .kaldi_io import read_scp, read_wave


class Utterances(Dataset):
    def __init__(self, scp):
        self.entries = read_scp(scp)

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, i):
        utt, rx = self.entries[i]
        wave = torch.from_numpy(read_wave(rx).astype("float32")) / 32768.0
        return wave.unsqueeze(0), int(utt[3:5])


def build_loader(scp, batch_size):
    return DataLoader(Utterances(scp), batch_size=batch_size, shuffle=True, drop_last=True)
