import torch
from torch import nn


class Retention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads, self.form = cfg.heads, cfg.form
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim, bias=False)
        self.out = nn.Linear(cfg.dim, cfg.dim, bias=False)
        gamma = 1.0 - 2.0 ** (-3.0 - torch.arange(cfg.heads).float())
        self.register_buffer("gamma", gamma.view(-1, 1, 1))
        at = torch.arange(cfg.length).float()
        gap = at[:, None] - at[None, :]
        decay = self.gamma ** gap.clamp(min=0) * (gap >= 0)
        self.register_buffer("decay", decay)

    def recurrent(self, q, k, v):
        b, h, _, d = q.shape
        state = q.new_zeros(b, h, d, d)
        outs = []
        for q_t, k_t, v_t in zip(q.unbind(2), k.unbind(2), v.unbind(2)):
            state = self.gamma * state + k_t[..., :, None] * v_t[..., None, :]
            outs.append(q_t[..., None, :] @ state)
        return torch.cat(outs, dim=2)

    def parallel(self, q, k, v):
        return (q @ k.transpose(2, 3) * self.decay) @ v

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mix = self.recurrent if self.form == "recurrent" else self.parallel
        y = mix(q * (c // self.heads) ** -0.5, k, v)
        return self.out(y.transpose(1, 2).reshape(b, t, c))
