"""Programs that the tests of the data loader run: datasets of several kinds, and what they give."""

from __future__ import annotations

# Put before each program. Workers that are spawned import it.
HEADER = '''
import hashlib, os, random, signal, sys, time, warnings
warnings.simplefilter("ignore")
import numpy
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, ConcatDataset


class Noise:
    """Draws from all that workers have seeds for."""

    def __call__(self, x):
        return x + random.random() + float(numpy.random.rand()) + torch.rand(())


class Named:
    def __init__(self, text):
        self.text = text

    def __call__(self, x):
        return x


class Flip(Named):
    def __call__(self, x):
        return -super().__call__(x)


class Part(torch.nn.Module):
    def forward(self, x):
        return x * 1.5


def scale(x):
    return x * 2


def named(x):
    return x


def shift(x, by):
    return x + by


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x


class Samples(Dataset):
    """A set that looks at its own transforms."""

    def __init__(self, count=24, transform=None):
        self.count, self.transform = count, transform
        self.expected = list(transform.transforms) if hasattr(transform, "transforms") else None

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        x = torch.full((4,), float(index))
        if self.transform is not None:
            if self.expected is not None:
                assert self.transform.transforms == self.expected
                assert list(map(repr, self.transform.transforms)) == list(map(repr, self.expected))
                assert isinstance(self.transform.transforms[0], Noise)
            x = self.transform(x)
        return x, index


class Several(Samples):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Stream(IterableDataset):
    def __init__(self, count=20, transform=None):
        self.count, self.transform = count, transform

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        for index in range(first, self.count, step):
            yield torch.full((4,), float(index)) + random.random()


class Failing(Samples):
    def __getitem__(self, index):
        if index == 9:
            raise KeyError("no sample 9")
        return super().__getitem__(index)


def chain():
    from functools import partial

    return Compose([Noise(), Flip("a"), scale, partial(shift, by=0.5), Part(), lambda x: x])


def stack(samples):
    return torch.stack([x for x, _ in samples]), [index for _, index in samples]


def seeded(worker):
    random.seed(worker * 7 + 1)


def digest(data, into=None):
    into = into or hashlib.sha256()
    if isinstance(data, torch.Tensor):
        into.update(data.detach().numpy().tobytes())
    elif isinstance(data, (list, tuple)):
        for each in data:
            digest(each, into)
    else:
        into.update(repr(data).encode())
    return into.hexdigest()[:16]


def states():
    return digest([torch.random.get_rng_state(), random.getstate(), numpy.random.get_state()])


def train(loader, passes=1, most=None):
    """Train a little; return what it came to."""
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(passes):
        for number, batch in enumerate(loader):
            if most is not None and number == most:
                break
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    return digest(list(model.state_dict().values()))
'''

# Every way to set a loader up; what it gives goes to stdout.
EVERYTHING = (
    HEADER
    + """

def main():
    transform = chain()
    ordered = [[3, 1], [2], [0, 5, 7]]
    ways = {
        "plain": (Samples(), dict(batch_size=5)),
        "shuffled": (Samples(transform=transform), dict(batch_size=4, shuffle=True)),
        "several": (Several(transform=transform), dict(batch_size=4, shuffle=True)),
        "last": (Samples(), dict(batch_size=5, drop_last=True)),
        "sampler": (Samples(), dict(batch_sampler=ordered)),
        "single": (Samples(6), dict(batch_size=None)),
        "collate": (Samples(transform=transform), dict(batch_size=4, collate_fn=stack)),
        "stream": (Stream(), dict(batch_size=3)),
        "stream single": (Stream(), dict(batch_size=None)),
        "subset": (
            Subset(ConcatDataset([Samples(9, transform), Samples(5)]), range(12)),
            dict(batch_size=4),
        ),
        "generator": (
            Samples(),
            dict(batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3)),
        ),
    }
    kinds = [
        {},
        dict(num_workers=2),
        dict(num_workers=2, persistent_workers=True, prefetch_factor=3),
        dict(num_workers=1, worker_init_fn=seeded),
    ]
    for name, (dataset, settings) in ways.items():
        for kind in kinds:
            torch.manual_seed(5)
            random.seed(6)
            numpy.random.seed(7)
            loader = DataLoader(dataset, **settings, **kind)
            batches = []
            for _ in range(2):
                for batch in loader:
                    batches.append(digest(batch))
            if not isinstance(dataset, Stream):
                batches.append(len(loader))
                batches.append(digest(next(iter(loader))))
            print(name, sorted(kind), digest(batches), len(batches), states())
            print(loader.worker_init_fn is kind.get("worker_init_fn"), loader.dataset is dataset,
                  sorted(vars(loader)), sorted(vars(dataset)))
    assert [type(each).__name__ for each in transform.transforms] == [
        "Noise", "Flip", "function", "partial", "Part", "function"]
    assert transform.transforms[2] is scale
    torch.manual_seed(1)
    print(train(DataLoader(Samples(transform=transform), batch_size=4, shuffle=True), 2), states())


if __name__ == "__main__":
    main()
"""
)
