import torch


def payment_graph(accounts, payments, seed):
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(accounts, (2, payments), generator=generator)
    adjacency = torch.zeros(accounts, accounts)
    adjacency[pairs[0], pairs[1]] = 1.0
    adjacency[pairs[1], pairs[0]] = 1.0
    return adjacency


def normalise(adjacency):
    """Symmetric normalisation, with self-loops."""
    with_loops = adjacency + torch.eye(len(adjacency))
    inverse_root = with_loops.sum(dim=1).rsqrt()
    return inverse_root[:, None] * with_loops * inverse_root[None, :]
