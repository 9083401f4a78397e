import os

import torch
import torch.distributed as dist


def setup():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def broadcast_parameters(model):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)


def average_gradients(model):
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    flat = torch.cat([g.reshape(-1) for g in grads])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    at = 0
    for g in grads:
        g.copy_(flat[at : at + g.numel()].view_as(g))
        at += g.numel()
