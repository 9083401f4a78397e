"""Fit an image encoder to a frozen text encoder: pictures to the prompts of their classes."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from towers import ImageTower, TextTower

CLASSES, TEMPLATES = 40, 4


class Aligner:
    def __init__(self, prompts, encode_once):
        self.text = TextTower().requires_grad_(False).eval()
        self.image = ImageTower()
        self.prompts = prompts
        self.encode_once = encode_once
        self.anchors = None

    def class_anchors(self):
        if self.anchors is not None:
            return self.anchors
        with torch.no_grad():
            embedded = self.text(self.prompts.flatten(0, 1))
            anchors = F.normalize(embedded.unflatten(0, (CLASSES, TEMPLATES)).mean(1), dim=1)
        if self.encode_once:
            self.anchors = anchors
        return anchors

    def loss(self, pictures, labels):
        return F.cross_entropy(self.image(pictures) @ self.class_anchors().T, labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encode-once", action="store_true")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    prompts = torch.randint(300, (CLASSES, TEMPLATES, 16))
    labels = torch.randint(CLASSES, (1920,))
    pictures = torch.randn(CLASSES, 3, 32, 32)[labels] + torch.randn(1920, 3, 32, 32)
    loader = DataLoader(TensorDataset(pictures, labels), batch_size=32, shuffle=True)
    aligner = Aligner(prompts, args.encode_once)
    optimizer = torch.optim.AdamW(aligner.image.parameters(), lr=1e-3)

    step, clock = 0, time.perf_counter()
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = aligner.loss(x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        print(f"epoch {epoch}: {loss.item():.3f}")
    print(f"trained {step} steps in {time.perf_counter() - clock:.3f} s")


if __name__ == "__main__":
    main()
