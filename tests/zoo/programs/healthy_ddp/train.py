"""torchrun --nproc-per-node 2 train.py"""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo")
    x = torch.randn(160 * 2 * 512, 64)
    data = TensorDataset(x, x[:, :4].argmax(1))
    loader = DataLoader(data, batch_size=512, sampler=DistributedSampler(data))
    model = DistributedDataParallel(
        nn.Sequential(
            nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 4)
        )
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dist.barrier()
    start = time.perf_counter()
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print(f"trained {len(loader)} steps in {time.perf_counter() - start:.3f} s")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
