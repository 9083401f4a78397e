import sys
import time

import torch
from records import parse_line, split_line, write_log
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

SESSION, VISIT = 32, 7


class Sessions(IterableDataset):
    """Runs of consecutive visits, which are means of a few lines; each worker has its files."""

    def __init__(self, files, parse, passes):
        self.files = files * passes
        self.parse = parse

    def __iter__(self):
        info = get_worker_info()
        mine = self.files[info.id :: info.num_workers] if info else self.files
        for file in mine:
            with open(file) as log:
                rows, bots = [], []
                for line in log:
                    row, bot = self.parse(line)
                    rows.append(row)
                    bots.append(bot)
                    if len(rows) == SESSION * VISIT:
                        visits = torch.tensor(rows).view(SESSION, VISIT, -1)
                        yield visits.mean(1), torch.tensor(bots)[::VISIT]
                        rows, bots = [], []


class BotNet(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.embed = nn.Linear(7, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True) for _ in range(2)
        )
        self.head = nn.Linear(width, 1)

    def forward(self, rows):
        h = self.embed(rows)
        for block in self.blocks:
            h = block(h)
        return self.head(h).squeeze(-1)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    files = [f"access.{n}.log" for n in range(2)]
    for n, file in enumerate(files):
        write_log(file, 20 * 16 * SESSION * VISIT, seed=n)
    parse = split_line if "--split" in sys.argv else parse_line
    loader = DataLoader(Sessions(files, parse, passes=4), batch_size=16, num_workers=2)
    model = BotNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    criterion = nn.BCEWithLogitsLoss()

    step, begin = 0, time.perf_counter()
    for rows, bots in loader:
        loss = criterion(model(rows), bots)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 40 == 0:
            print("step", step, "loss", round(loss.item(), 4))
    print(f"trained {step} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
