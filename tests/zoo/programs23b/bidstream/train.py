import sys
import time

import torch
from ranker import ClickRanker
from settings import PRESETS
from shards import BUCKETS, FIELDS, NUMBERS, AuctionLog, export
from torch import nn
from torch.utils.data import DataLoader


def train(settings):
    torch.manual_seed(settings.seed)
    rows = settings.batches_per_hour * settings.loader.batch_size
    paths = export("auctions", settings.hours, rows, settings.seed)
    log = AuctionLog(paths, settings.loader.batch_size, settings.seed)
    loader = DataLoader(log, batch_size=None, **settings.loader.options)
    model = ClickRanker(BUCKETS, FIELDS, NUMBERS)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=settings.lr)
    criterion = nn.BCEWithLogitsLoss()

    steps, running = 0, torch.zeros(())
    start = time.perf_counter()
    for ids, numbers, clicked in loader:
        loss = criterion(model(ids, numbers), clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.detach()
        steps += 1
        if steps % 70 == 0:
            print(f"{steps:5d}  log loss {running.item() / 70:.4f}")
            running.zero_()
    return steps, time.perf_counter() - start


if __name__ == "__main__":
    torch.set_num_threads(1)
    preset = sys.argv[1] if len(sys.argv) > 1 else "production"
    steps, seconds = train(PRESETS[preset]())
    print(f"trained {steps} steps in {seconds:.3f} s")
