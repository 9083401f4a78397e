import time

import torch
import torch.nn.functional as F

from .config import Config
from .data import Recordings
from .model import SleepTransformer
from .state import Snapshots


def train(cfg):
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)
    data = Recordings(cfg)
    model = SleepTransformer(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)
    snapshots = Snapshots(cfg)

    begin = time.perf_counter()
    for step, (x, y) in enumerate(data.batches(cfg.batch_size, cfg.steps), 1):
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            accuracy = (logits.argmax(1) == y).float().mean()
            print(f"step {step:4d}  loss {loss.item():.3f}  accuracy {accuracy.item():.2f}")
        if step % cfg.save_every == 0:
            snapshots.write(step, model, optimizer, loss.item())
    print(f"trained {cfg.steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    train(Config.from_args())
