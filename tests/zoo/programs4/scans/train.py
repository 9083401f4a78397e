import argparse
import time

import torch
from data import ScanDataset
from torch import nn
from torch.utils.data import DataLoader
from tqdm import tqdm


class MiniPointNet(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.local = nn.Sequential(
            nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 128)
        )
        self.mix = nn.Sequential(
            nn.Linear(131, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)
        )
        self.head = nn.Sequential(
            nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, n_classes)
        )

    def forward(self, groups, centers):
        h = self.local(groups).amax(2)
        h = self.mix(torch.cat([h, centers], -1)).amax(1)
        return self.head(h)


def train(args):
    dataset = ScanDataset(args.steps * args.batch, sampler=args.sampler)
    loader = DataLoader(dataset, args.batch, shuffle=True, num_workers=2)
    net = MiniPointNet(len(ScanDataset.SHAPES))
    optim = torch.optim.AdamW(net.parameters(), 1e-3)
    right = seen = 0
    start = time.perf_counter()
    bar = tqdm(loader, mininterval=1.0)
    for i, (groups, centers, label) in enumerate(bar):
        logits = net(groups, centers)
        loss = nn.functional.cross_entropy(logits, label)
        optim.zero_grad()
        loss.backward()
        optim.step()
        right += (logits.argmax(1) == label).sum().item()
        seen += len(label)
        if i % 20 == 0:
            bar.set_postfix(loss=f"{loss.item():.3f}", acc=f"{right / seen:.2f}")
    print(f"last loss {loss.item():.5f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sampler", default="fps", choices=["fps", "fps-np"])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16)
    torch.manual_seed(11)
    torch.set_num_threads(1)
    train(parser.parse_args())
