import argparse
import time

import torch
from belief import AdaBelief
from torch import nn


class Seq2Points(nn.Module):
    """Strokes of handwriting to the next pen position."""

    def __init__(self, width=256, depth=6):
        super().__init__()
        self.embed = nn.Linear(3, width)
        layer = nn.TransformerEncoderLayer(width, 4, 3 * width, 0.0, batch_first=True)
        self.trunk = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.out = nn.Linear(width, 3)

    def forward(self, strokes):
        mask = nn.Transformer.generate_square_subsequent_mask(strokes.shape[1])
        return self.out(self.trunk(self.embed(strokes), mask=mask, is_causal=True))


parser = argparse.ArgumentParser()
parser.add_argument("--optimizer", choices=["adabelief", "adamw"], default="adabelief")
parser.add_argument("--steps", type=int, default=100)
args = parser.parse_args()
torch.manual_seed(1)
torch.set_num_threads(1)

strokes = torch.cat([torch.randn(800, 21, 2).cumsum(1) / 5, torch.rand(800, 21, 1).round()], 2)
model = Seq2Points()
if args.optimizer == "adamw":
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01, fused=True)
else:
    optimizer = AdaBelief(model.parameters(), lr=3e-4, weight_decay=0.01)

clock = time.perf_counter()
for step in range(args.steps):
    batch = strokes[torch.randint(len(strokes), (6,))]
    loss = nn.functional.mse_loss(model(batch[:, :-1]), batch[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print(f"trained {args.steps} steps in {time.perf_counter() - clock:.3f} s")
