import torch
import torch.distributed as dist


def average_gradients(model):
    world = float(dist.get_world_size())
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
        parameter.grad /= world


def average_gradients_flat(model):
    gradients = [p.grad for p in model.parameters()]
    flat = torch.cat([g.flatten() for g in gradients])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients])):
        gradient.copy_(part.view_as(gradient))
