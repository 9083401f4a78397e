import random

import numpy as np
import torch
from notes import CLS, FIRST_CONTINUATION, FIRST_WORD, MASK, PAD, SEP, VOCABULARY


class WholeWordCollator:
    """Masks whole words: of the chosen ones 80 % become [MASK], 10 % another piece.

    A piece sees those of its own section and [CLS]; [CLS] sees the note.
    """

    def __init__(self, length, probability=0.15, seed=0):
        self.length = length
        self.probability = probability
        self.random = random.Random(seed)

    def words_of(self, pieces):
        words = []
        for position, piece in enumerate(pieces):
            if piece < FIRST_WORD:
                continue
            if words and piece >= FIRST_CONTINUATION:
                words[-1].append(position)
            else:
                words.append([position])
        return words

    def choose(self, pieces):
        words = self.words_of(pieces)
        self.random.shuffle(words)
        wanted = max(1, round(self.probability * sum(len(word) for word in words)))
        chosen = []
        for word in words:
            if len(chosen) >= wanted:
                break
            chosen.extend(word)
        return chosen

    def sections_of(self, pieces):
        sections, current = [], 0
        for piece in pieces:
            sections.append(current)
            if piece == SEP or piece == CLS:
                current += 1
        return sections + [-1] * (self.length - len(pieces))

    def visible(self, pieces):
        sections = self.sections_of(pieces)
        rows = []
        for one in sections:
            row = []
            for other in sections:
                if one < 0 or other < 0:
                    row.append(other == 0)
                else:
                    row.append(one == other or one == 0 or other == 0)
            rows.append(row)
        return torch.tensor(rows)

    def __call__(self, examples):
        shape = (len(examples), self.length)
        inputs = torch.full(shape, PAD)
        labels = torch.full(shape, -100)
        attention = []
        for row, example in enumerate(examples):
            pieces = example["input_ids"]
            for column, piece in enumerate(pieces):
                inputs[row, column] = piece
            attention.append(self.visible(pieces))
            for column in self.choose(pieces):
                labels[row, column] = pieces[column]
                draw = self.random.random()
                if draw < 0.8:
                    inputs[row, column] = MASK
                elif draw < 0.9:
                    inputs[row, column] = self.random.randrange(FIRST_WORD, VOCABULARY)
        attention = torch.stack(attention).unsqueeze(1)
        return {"input_ids": inputs, "attention_mask": attention, "labels": labels}


class ArrayCollator:
    """The same choice, made for all notes of the batch at once."""

    def __init__(self, length, probability=0.15, seed=0):
        self.length = length
        self.probability = probability
        self.rng = np.random.default_rng(seed)

    def __call__(self, examples):
        pieces = np.full((len(examples), self.length), PAD)
        for row, example in enumerate(examples):
            note = example["input_ids"]
            pieces[row, : len(note)] = note
        ends = (pieces == SEP) | (pieces == CLS)
        sections = np.cumsum(ends, axis=1) - ends
        sections[pieces == PAD] = -1
        one, other = sections[:, :, None], sections[:, None, :]
        visible = (other == 0) | ((one >= 0) & (other >= 0) & ((one == other) | (one == 0)))
        starts = (pieces >= FIRST_WORD) & (pieces < FIRST_CONTINUATION)
        word = np.cumsum(starts, axis=1)
        chosen_words = self.rng.random(pieces.shape) < self.probability
        chosen = np.take_along_axis(chosen_words, word % self.length, axis=1)
        chosen &= pieces >= FIRST_WORD
        labels = np.where(chosen, pieces, -100)
        draw = self.rng.random(pieces.shape)
        other = self.rng.integers(FIRST_WORD, VOCABULARY, size=pieces.shape)
        inputs = np.where(chosen & (draw < 0.8), MASK, pieces)
        inputs = np.where(chosen & (draw >= 0.8) & (draw < 0.9), other, inputs)
        return {
            "input_ids": torch.from_numpy(inputs),
            "attention_mask": torch.from_numpy(visible[:, None]),
            "labels": torch.from_numpy(labels),
        }


COLLATORS = {"words": WholeWordCollator, "arrays": ArrayCollator}
