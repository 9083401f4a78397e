"""Items of a warehouse and, for each, others that are easily taken for it."""

import torch


def make_items(n, dim, generator):
    groups = torch.randn(n // 20, dim, generator=generator)
    group = torch.randint(len(groups), (n,), generator=generator)
    return groups[group] + 0.7 * torch.randn(n, dim, generator=generator), group


class HardNegatives:
    """The nearest item of another group, by what the network thinks now."""

    def __init__(self, items, group):
        self.items = items
        self.group = group
        self.nearest = torch.randint(len(items), (len(items),))

    @torch.no_grad()
    def refresh(self, net):
        codes = net(self.items)
        for i in range(len(codes)):
            distance = (codes - codes[i]).square().sum(1)
            distance[self.group == self.group[i]] = float("inf")
            self.nearest[i] = distance.argmin()

    @torch.no_grad()
    def refresh_together(self, net):
        codes = net(self.items)
        distance = torch.cdist(codes, codes)
        distance[self.group[:, None] == self.group] = float("inf")
        self.nearest = distance.argmin(1)
