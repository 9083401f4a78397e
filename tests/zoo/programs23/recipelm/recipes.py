import random

import torch
from torch.utils.data import Dataset

VERBS = "chop stir fry boil bake whisk knead rest season serve".split()
THINGS = "onion garlic flour egg butter rice tomato basil milk salt pepper bean leek".split()
TOOLS = "pan pot bowl oven board tray".split()


def write_recipe(rng):
    words = []
    for _ in range(rng.randint(4, 9)):
        words += [rng.choice(VERBS), "the", rng.choice(THINGS), "in", "a", rng.choice(TOOLS), "."]
    return words


class Recipes(Dataset):
    """One long text of recipes, cut into blocks."""

    def __init__(self, blocks, length, seed):
        rng = random.Random(seed)
        words = ["<end>", "the", "in", "a", ".", *VERBS, *THINGS, *TOOLS]
        self.index = {word: i for i, word in enumerate(words)}
        stream = []
        while len(stream) < blocks * length:
            stream += [self.index[word] for word in [*write_recipe(rng), "<end>"]]
        self.blocks = torch.tensor(stream[: blocks * length]).view(blocks, length)

    def __len__(self):
        return len(self.blocks)

    def __getitem__(self, i):
        return {"input_ids": self.blocks[i], "labels": self.blocks[i]}
