import argparse
import time

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader

from .data import Lots, heatmap_collate, splat_collate
from .model import CentreNet

COLLATE = {"reference": heatmap_collate, "outer": splat_collate}


def main():
    parser = argparse.ArgumentParser(prog="parking")
    parser.add_argument("--targets", choices=COLLATE, default="reference")
    parser.add_argument("--scenes", type=int, default=1760)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)

    loader = DataLoader(
        Lots(options.scenes),
        batch_size=16,
        shuffle=True,
        num_workers=2,
        collate_fn=COLLATE[options.targets],
    )
    model = CentreNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for step, (images, targets) in enumerate(loader, 1):
        logits = model(images)
        loss = F.binary_cross_entropy_with_logits(logits, targets, pos_weight=torch.tensor(8.0))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step} bce {loss.item():.4f}")
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")


main()
