"""Cars from above: a one-stage detector with anchors on a grid."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 96
GRID = 24
CARS = 18


def make_anchors():
    centre = (np.arange(GRID) + 0.5) / GRID
    cy, cx = np.meshgrid(centre, centre, indexing="ij")
    shapes = [(0.08, 0.16), (0.16, 0.08), (0.12, 0.12), (0.2, 0.2)]
    boxes = [np.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], axis=-1) for w, h in shapes]
    return np.stack(boxes, axis=2).reshape(-1, 4).astype(np.float32)


class Assigner:
    """Gives each anchor the car that it overlaps most, as objectness and offsets."""

    def __init__(self, anchors):
        self.anchors = anchors
        self.area = (anchors[:, 2] - anchors[:, 0]) * (anchors[:, 3] - anchors[:, 1])

    def overlap(self, cars):
        low = np.maximum(self.anchors[:, None, :2], cars[None, :, :2])
        high = np.minimum(self.anchors[:, None, 2:], cars[None, :, 2:])
        shared = np.clip(high - low, 0, None).prod(axis=-1)
        area = (cars[..., 2] - cars[..., 0]) * (cars[..., 3] - cars[..., 1])
        return shared / (self.area[:, None] + area[None, :] - shared)

    def __call__(self, cars):
        iou = self.overlap(cars)
        objectness = (iou.max(axis=1) > 0.4).astype(np.float32)
        return objectness, cars[iou.argmax(axis=1)] - self.anchors

    def batch(self, lots):
        objectness, offsets = zip(*map(self, lots))
        return torch.from_numpy(np.stack(objectness)), torch.from_numpy(np.stack(offsets))


class Lots(Dataset):
    def __init__(self, length):
        rng = np.random.default_rng(14)
        corner = rng.uniform(0.02, 0.8, (64, CARS, 2))
        size = rng.uniform(0.06, 0.18, (64, CARS, 2))
        self.cars = np.concatenate([corner, corner + size], axis=-1).astype(np.float32)
        self.images = rng.standard_normal((64, 3, SIDE, SIDE), dtype=np.float32)
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.images[index % 64], self.cars[index % 64]


class Collate:
    def __init__(self, assign=None):
        self.assign = assign

    def __call__(self, samples):
        images = torch.from_numpy(np.stack([image for image, _ in samples]))
        cars = np.stack([cars for _, cars in samples])
        return images, self.assign.batch(cars) if self.assign else cars


class Detector(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Conv2d(width, 4 * 5, 1)

    def forward(self, images):
        out = self.head(self.body(images))
        out = out.permute(0, 2, 3, 1).reshape(len(images), -1, 5)
        return out[..., 0], out[..., 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assign-in", choices=["loop", "collate"], default="loop")
    args = parser.parse_args()
    torch.manual_seed(14)
    torch.set_num_threads(1)
    steps, batch = 110, 12
    assign = Assigner(make_anchors())
    inside = args.assign_in == "collate"
    loader = DataLoader(
        Lots(steps * batch),
        batch,
        shuffle=True,
        num_workers=1,
        collate_fn=Collate(assign if inside else None),
        worker_init_fn=lambda _: torch.set_num_threads(1),
    )
    model = Detector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    begin = time.perf_counter()
    for images, cars in loader:
        objectness, offsets = cars if inside else assign.batch(cars)
        scores, boxes = model(images)
        loss = nn.functional.binary_cross_entropy_with_logits(scores, objectness)
        error = nn.functional.smooth_l1_loss(boxes, offsets, reduction="none").mean(dim=2)
        loss = loss + (error * objectness).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.3f}")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
