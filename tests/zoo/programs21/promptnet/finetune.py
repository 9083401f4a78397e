"""Adapt a contrastive image/text model to our bird list.

The text side stays as it was; of the image side only the last two blocks are trained.
"""

import argparse
import time
import zlib

import torch
import torch.nn.functional as F
from torch import nn

from towers import ImageTower, TextTower

COLOURS = ["red", "blue", "grey", "olive", "black", "white", "golden", "rufous", "green", "pied"]
KINDS = ["finch", "tit", "warbler", "heron", "gull", "owl", "wren", "plover", "thrush", "crake"]
PROMPT = "a photo of a {} {} , a type of bird in the wild"


def tokenize(text, length=16, vocab=512):
    ids = [1 + zlib.crc32(w.encode()) % (vocab - 1) for w in text.split()][:length]
    return ids + [0] * (length - len(ids))


class BirdClip(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.image = ImageTower()
        self.text = TextTower()
        self.scale = nn.Parameter(torch.tensor(2.3))
        ids = torch.tensor([tokenize(PROMPT.format(*n)) for n in names])
        self.register_buffer("prompt_ids", ids)

    def freeze(self):
        self.text.requires_grad_(False).eval()
        self.image.requires_grad_(False)
        self.image.blocks[-2:].requires_grad_(True)
        self.image.out.requires_grad_(True)

    @torch.no_grad()
    def class_vectors(self):
        return F.normalize(self.text(self.prompt_ids), dim=-1)

    def forward(self, images):
        vectors = self.class_vectors()
        features = F.normalize(self.image(images), dim=-1)
        return self.scale.exp() * features @ vectors.T


def make_birds(n, classes, size, seed):
    g = torch.Generator().manual_seed(seed)
    protos = F.interpolate(torch.randn(classes, 3, 6, 6, generator=g), size=size, mode="bilinear")
    labels = torch.randint(classes, (n,), generator=g)
    return protos[labels] + 0.5 * torch.randn(n, 3, size, size, generator=g), labels


def augment(images, size):
    dy, dx = torch.randint(images.shape[-1] - size + 1, (2,)).tolist()
    images = images[..., dy : dy + size, dx : dx + size]
    if torch.rand(()) < 0.5:
        images = images.flip(-1)
    return images * (0.8 + 0.4 * torch.rand(len(images), 1, 1, 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--lr", type=float, default=5e-4)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    names = [(c, k) for c in COLOURS for k in KINDS]
    images, labels = make_birds(1200, len(names), 56, seed=3)
    model = BirdClip(names)
    model.freeze()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=args.lr)

    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        picked = torch.randint(len(labels), (args.batch_size,))
        logits = model(augment(images[picked], 48))
        loss = F.cross_entropy(logits, labels[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
