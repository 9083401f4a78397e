"""Byte pairs, learned once and then applied."""

import random


def make_corpus(sentences, seed=0):
    rng = random.Random(seed)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randrange(3, 9))) for _ in range(300)]
    return [" ".join(rng.choices(words, k=12)) for _ in range(sentences)]


class Tokenizer:
    def __init__(self, pairs):
        self.pairs = pairs

    def encode(self, sentence):
        pieces = list(sentence)
        for pair in self.pairs:
            merged, n = [], 0
            while n < len(pieces):
                if n + 1 < len(pieces) and pieces[n] + pieces[n + 1] == pair:
                    merged.append(pair)
                    n += 2
                else:
                    merged.append(pieces[n])
                    n += 1
            pieces = merged
        return [hash_piece(piece) for piece in pieces]


def hash_piece(piece):
    value = 7
    for letter in piece:
        value = (value * 131 + ord(letter)) % 4093
    return value
