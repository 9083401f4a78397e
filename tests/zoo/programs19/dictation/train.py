"""Dictated notes: frames to letters, with a recurrent net and CTC."""

import argparse
import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler


@dataclass(frozen=True)
class Config:
    bands: int = 32
    letters: int = 28
    hidden: int = 160
    batch: int = 8
    notes: int = 960
    short: int = 48
    long: int = 600
    long_share: float = 0.02


class Notes(Dataset):
    def __init__(self, cfg):
        generator = torch.Generator().manual_seed(70)
        lengths = torch.randint(cfg.short - 12, cfg.short + 1, (cfg.notes,), generator=generator)
        count = int(cfg.long_share * cfg.notes)
        which = torch.randperm(cfg.notes, generator=generator)[:count]
        lengths[which] = torch.randint(cfg.long - 20, cfg.long + 1, (count,), generator=generator)
        self.lengths = lengths.tolist()
        self.frames = [torch.randn(n, cfg.bands, generator=generator) for n in self.lengths]
        self.texts = torch.randint(1, cfg.letters, (cfg.notes, 10), generator=generator)

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        return self.frames[index], self.texts[index]


class ByLength(Sampler):
    """Batches of notes that are alike in length, in random order."""

    def __init__(self, lengths, batch):
        self.lengths, self.batch = torch.tensor(lengths), batch

    def __len__(self):
        return len(self.lengths) // self.batch

    def __iter__(self):
        shuffled = torch.randperm(len(self.lengths))
        ordered = shuffled[self.lengths[shuffled].argsort(stable=True)]
        batches = ordered.split(self.batch)
        for k in torch.randperm(len(batches)).tolist():
            yield batches[k].tolist()


def pad(notes):
    frames, texts = zip(*notes)
    lengths = torch.tensor([len(f) for f in frames])
    return nn.utils.rnn.pad_sequence(frames, batch_first=True), lengths, torch.stack(texts)


class Listener(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.enter = nn.Conv1d(cfg.bands, cfg.hidden, 5, padding=2)
        self.mixing = nn.TransformerEncoderLayer(
            cfg.hidden, 4, 3 * cfg.hidden, dropout=0.0, batch_first=True
        )
        self.out = nn.Linear(cfg.hidden, cfg.letters)

    def forward(self, frames):
        x = torch.relu(self.enter(frames.transpose(1, 2))).transpose(1, 2)
        return self.out(self.mixing(x)).log_softmax(dim=2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--order", choices=["random", "length"], default="random")
    args = parser.parse_args()
    cfg = Config()
    torch.manual_seed(70)
    torch.set_num_threads(1)
    notes = Notes(cfg)
    if args.order == "random":
        loader = DataLoader(notes, cfg.batch, shuffle=True, collate_fn=pad)
    else:
        loader = DataLoader(notes, batch_sampler=ByLength(notes.lengths, cfg.batch), collate_fn=pad)
    model = Listener(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CTCLoss()
    text_lengths = torch.full((cfg.batch,), 10)
    steps = 0
    begin = time.perf_counter()
    for frames, lengths, texts in loader:
        loss = criterion(model(frames).transpose(0, 1), texts, lengths, text_lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.3f}")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
