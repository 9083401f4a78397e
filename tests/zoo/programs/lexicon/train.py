import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader
from words import Sentences, start_worker

EPOCHS = 8


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5000, 128)
        self.gru = nn.GRU(128, 128, batch_first=True)
        self.out = nn.Linear(128, 2)

    def forward(self, ids):
        _, h = self.gru(self.words(ids))
        return self.out(h[0])


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3)
    loader = DataLoader(
        Sentences(480),
        batch_size=32,
        shuffle=True,
        num_workers=2,
        worker_init_fn=start_worker,
    )
    model = Model()
    optimizer = torch.optim.Adam(model.parameters())
    steps = 0
    start = time.perf_counter()
    for _ in range(EPOCHS):
        for ids, labels in loader:
            loss = F.cross_entropy(model(ids), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
