import torch


def strokes(count, seed):
    """Pictures of 32x32 with three strokes each."""
    g = torch.Generator().manual_seed(seed)
    grid = torch.linspace(-1, 1, 32)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    out = torch.zeros(count, 32, 32)
    for _ in range(3):
        angle = torch.rand(count, 1, 1, generator=g) * 3.14
        shift = torch.rand(count, 1, 1, generator=g) - 0.5
        distance = (x * angle.cos() + y * angle.sin() - shift).abs()
        out = torch.maximum(out, torch.exp(-((distance / 0.08) ** 2)))
    return out[:, None]
