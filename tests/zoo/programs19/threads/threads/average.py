import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors


def per_tensor(gradients):
    for gradient in gradients:
        dist.all_reduce(gradient)
        gradient /= dist.get_world_size()


def flat(gradients):
    together = _flatten_dense_tensors(gradients)
    dist.all_reduce(together)
    together /= dist.get_world_size()
    torch._foreach_copy_(gradients, _unflatten_dense_tensors(together, gradients))


AVERAGES = {"tensor": per_tensor, "flat": flat}
