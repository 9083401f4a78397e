import sys
import time

import torch
import torch.nn.functional as F
from targets import assign, assign_batched, make_anchors
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
torch.set_num_threads(1)

match = assign_batched if "--batched" in sys.argv[1:] else assign
EPOCHS = 6
CELLS = 8
anchors = make_anchors(CELLS)

# Pictures with six bright rectangles each.
corner = torch.rand(640, 6, 2) * 0.6
boxes = torch.cat([corner, corner + 0.15 + torch.rand(640, 6, 2) * 0.25], -1)
pixel = (torch.arange(64) + 0.5) / 64
inside_x = (pixel > boxes[..., 0:1]) & (pixel < boxes[..., 2:3])
inside_y = (pixel > boxes[..., 1:2]) & (pixel < boxes[..., 3:4])
pictures = (inside_y[..., :, None] & inside_x[..., None, :]).float().sum(1, keepdim=True)
pictures += 0.3 * torch.randn_like(pictures)
loader = DataLoader(TensorDataset(pictures, boxes), batch_size=16, shuffle=True)


class Detector(nn.Module):
    def __init__(self, per_cell=5):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 48, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.score = nn.Conv2d(48, per_cell, 1)
        self.offset = nn.Conv2d(48, 4 * per_cell, 1)

    def forward(self, x):
        h = self.backbone(x)
        score = self.score(h).permute(0, 2, 3, 1).flatten(1)
        offset = self.offset(h).permute(0, 2, 3, 1).reshape(len(x), -1, 4)
        return score, offset


model = Detector()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=2e-3, total_steps=EPOCHS * len(loader)
)

step = 0
tic = time.perf_counter()
for epoch in range(EPOCHS):
    for x, truth in loader:
        score, offset = model(x)
        matched = match(anchors, truth)
        positive = matched >= 0
        rows = torch.arange(len(x))[:, None]
        wanted = truth[rows, matched.clamp(min=0)] - anchors
        loss = F.binary_cross_entropy_with_logits(score, positive.float())
        loss = loss + F.smooth_l1_loss(offset[positive], wanted[positive])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        step += 1
    print(f"epoch {epoch}: loss {loss.item():.4f}, {int(positive.sum())} positive")
print(f"trained {step} steps in {time.perf_counter() - tic:.3f} s")
