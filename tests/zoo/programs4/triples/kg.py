"""A made-up knowledge graph and corrupted triples for training on it."""

import random

import numpy as np


def make_graph(n_entities, n_relations, n_triples, seed):
    rng = np.random.default_rng(seed)
    heads = rng.integers(0, n_entities, n_triples)
    relations = rng.integers(0, n_relations, n_triples)
    tails = (heads * (relations + 3) + rng.integers(0, 5, n_triples)) % n_entities
    return np.unique(np.stack([heads, relations, tails], 1), axis=0)


class Corruptor:
    """Replaces tails; never gives a triple that is in the graph."""

    def __init__(self, triples, n_entities, n_negatives, seed=0):
        self.n_entities, self.n_negatives = n_entities, n_negatives
        self.known = {}
        for h, r, t in triples.tolist():
            self.known.setdefault((h, r), set()).add(t)
        self.random = random.Random(seed)

    def __call__(self, batch):
        negatives = []
        for h, r, _ in batch.tolist():
            true_tails = self.known[h, r]
            row = []
            while len(row) < self.n_negatives:
                candidate = self.random.randrange(self.n_entities)
                if candidate not in true_tails:
                    row.append(candidate)
            negatives.append(row)
        return np.array(negatives, np.int32)


class FastCorruptor:
    """The same with sorted keys: draw all, draw again what is in the graph."""

    def __init__(self, triples, n_entities, n_negatives, seed=0):
        self.n_entities, self.n_negatives = n_entities, n_negatives
        self.n_relations = int(triples[:, 1].max()) + 1
        self.keys = np.sort(self.key(triples[:, 0], triples[:, 1], triples[:, 2]))
        self.rng = np.random.default_rng(seed)

    def key(self, h, r, t):
        return (h * self.n_relations + r) * self.n_entities + t

    def __call__(self, batch):
        shape = (len(batch), self.n_negatives)
        h, r = (np.broadcast_to(batch[:, i, None], shape) for i in (0, 1))
        tails = self.rng.integers(0, self.n_entities, shape)
        while True:
            keys = self.key(h, r, tails)
            at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            bad = self.keys[at] == keys
            if not bad.any():
                return tails.astype(np.int32)
            tails[bad] = self.rng.integers(0, self.n_entities, int(bad.sum()))
