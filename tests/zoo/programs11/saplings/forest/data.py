import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler


class Growth(Dataset):
    def __init__(self, plots, features, seed=0):
        self.plots = plots
        trees = [tree for plot in plots for tree in plot.trees]
        g = torch.Generator().manual_seed(seed)
        mixing = torch.randn(len(trees[0].heights), features, generator=g)
        self.x = torch.tensor([tree.heights for tree in trees]) @ mixing
        self.y = torch.tensor([tree.species for tree in trees])

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        index = torch.tensor(index)
        return self.x[index], self.y[index]


def build_loader(plots, features, batch, steps):
    data = Growth(plots, features)
    drawn = RandomSampler(data, num_samples=steps * batch)
    return DataLoader(data, sampler=BatchSampler(drawn, batch, True), batch_size=None)
