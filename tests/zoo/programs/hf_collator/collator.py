"""From texts to batches for masked language modelling."""

import torch

WORDS = 300


def encode(text):
    """Number the words of a text by a rolling hash; the rest separates them."""
    ids, value = [], 0
    for letter in text.lower():
        if letter.isalpha():
            value = (value * 33 + ord(letter)) % 1000003
        elif value:
            ids.append(2 + value % (WORDS - 2))
            value = 0
    return ids


class Collator:
    def __init__(self, length, mask_id=1, rate=0.15):
        self.length, self.mask_id, self.rate = length, mask_id, rate

    def ids_of(self, text):
        return encode(text)[: self.length]

    def __call__(self, features):
        ids = torch.tensor([self.ids_of(feature["text"]) for feature in features])
        chosen = torch.rand(ids.shape) < self.rate
        labels = ids.masked_fill(~chosen, -100)
        return {"input_ids": ids.masked_fill(chosen, self.mask_id), "labels": labels}


class CroppingCollator(Collator):
    """Looks no further into a text than is used of it."""

    def ids_of(self, text):
        return encode(text[: 12 * self.length])[: self.length]
