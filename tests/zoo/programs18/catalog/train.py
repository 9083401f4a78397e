import sys
import time

import torch
from model import Titles
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)

WORDS, LENGTH, CATEGORIES = 4000, 24, 40
ids = torch.randint(0, WORDS, (2560, LENGTH))
categories = ids.sum(dim=1) % CATEGORIES
loader = DataLoader(TensorDataset(ids, categories), batch_size=32, shuffle=True)

model = Titles(WORDS, 64, CATEGORIES, lookup="lookup" in sys.argv)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = torch.nn.CrossEntropyLoss()

steps = 0
tic = time.time()
for epoch in range(2):
    running = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
        steps += 1
    print(f"[{epoch + 1}] loss: {running / len(loader):.3f}")
print(f"trained {steps} steps in {time.time() - tic:.3f} s")
