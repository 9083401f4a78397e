import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 5, stride=2, padding=2)
        self.conv2 = nn.Conv2d(32, 48, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(48, 48, 3, padding=1)
        self.fc = nn.Linear(48, 10)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        x = torch.relu(self.conv3(x))
        return self.fc(x.mean((2, 3)))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = TensorDataset(torch.rand(2560, 1, 56, 56), torch.randint(10, (2560,)))
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    model = DDP(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    steps, start = 0, time.perf_counter()
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            steps += 1
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    seconds = time.perf_counter() - start
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print(f"trained {steps} steps in {seconds:.3f} s", flush=True)


if __name__ == "__main__":
    main()
