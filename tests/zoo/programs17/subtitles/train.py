import argparse
import time

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
PAD, VOCAB = 0, 2000


class Lines(Dataset):
    """Subtitle lines with the genre of the film."""

    def __init__(self, n):
        g = torch.Generator().manual_seed(5)
        lengths = torch.randint(60, 110, (n,), generator=g).tolist()
        self.lines = [torch.randint(1, VOCAB, (k,), generator=g).tolist() for k in lengths]
        self.genre = torch.randint(0, 8, (n,), generator=g).tolist()

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        return self.lines[i], self.genre[i]


def pad_batch(batch):
    longest = max(len(tokens) for tokens, _ in batch)
    ids = torch.full((len(batch), longest), PAD)
    mask = torch.zeros(len(batch), longest)
    for i, (tokens, _) in enumerate(batch):
        for j, token in enumerate(tokens):
            ids[i, j] = token
            mask[i, j] = 1.0
    return ids, mask, torch.tensor([g for _, g in batch])


def pad_batch_stacked(batch):
    ids = pad_sequence(
        [torch.tensor(tokens) for tokens, _ in batch], batch_first=True, padding_value=PAD
    )
    return ids, (ids != PAD).float(), torch.tensor([g for _, g in batch])


class TextCNN(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.convs = nn.ModuleList(nn.Conv1d(dim, 48, k, padding=k // 2) for k in (3, 5, 7))
        self.out = nn.Linear(3 * 48, 8)

    def forward(self, ids, mask):
        x = (self.emb(ids) * mask.unsqueeze(-1)).transpose(1, 2)
        return self.out(torch.cat([c(x).relu().amax(dim=2) for c in self.convs], dim=1))


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=110)
parser.add_argument("--pad", default="simple", choices=["simple", "stacked"])

if __name__ == "__main__":
    args = parser.parse_args()
    torch.manual_seed(0)
    batch_size = 32
    loader = DataLoader(
        Lines(args.steps * batch_size),
        batch_size=batch_size,
        shuffle=True,
        collate_fn=pad_batch if args.pad == "simple" else pad_batch_stacked,
    )
    net = TextCNN()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    loss_fn = nn.CrossEntropyLoss()
    t0 = time.perf_counter()
    running = 0.0
    for n, (ids, mask, genre) in enumerate(loader, 1):
        opt.zero_grad()
        loss = loss_fn(net(ids, mask), genre)
        loss.backward()
        opt.step()
        if n % 40 == 0:
            print("batch", n, "loss", round(loss.item(), 4))
    print(f"trained {n} steps in {time.perf_counter() - t0:.3f} s")
