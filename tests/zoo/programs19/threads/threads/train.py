import argparse
import time

import torch
import torch.distributed as dist

from .average import AVERAGES
from .model import Ranker, loss_of


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--average", choices=AVERAGES, default="tensor")
    parser.add_argument("--steps", type=int, default=130)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(90)
    model = Ranker()
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.02, momentum=0.9)
    average = AVERAGES[args.average]
    torch.manual_seed(91 + dist.get_rank())
    tokens = torch.randint(1000, (args.steps, 8, 24))
    dist.barrier()
    begin = time.perf_counter()
    for batch in tokens:
        loss = loss_of(model(batch))
        optimizer.zero_grad()
        loss.backward()
        average([parameter.grad for parameter in parameters])
        optimizer.step()
    seconds = time.perf_counter() - begin
    if dist.get_rank() == 0:
        print(f"loss {loss.item():.3f}")
        print(f"trained {args.steps} steps in {seconds:.3f} s", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
