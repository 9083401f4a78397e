"""Words to pieces to numbers."""

import random
import re

import torch

WORD = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")
PAD, UNKNOWN = 0, 1


class Tokenizer:
    """Greedy longest-match pieces, the way WordPiece does it."""

    def __init__(self, texts, size=3000, longest=6):
        counts = {}
        for text in texts:
            for word in WORD.findall(text.lower()):
                for i in range(len(word)):
                    for n in range(1, longest + 1):
                        piece = word[i : i + n]
                        counts[piece] = counts.get(piece, 0) + 1
        best = sorted(counts, key=lambda piece: -counts[piece] * len(piece))[: size - 2]
        self.ids = {piece: i + 2 for i, piece in enumerate(best)}
        self.longest = longest

    def __len__(self):
        return len(self.ids) + 2

    def pieces(self, word):
        found, start = [], 0
        while start < len(word):
            for end in range(min(len(word), start + self.longest), start, -1):
                number = self.ids.get(word[start:end])
                if number is not None:
                    break
            else:
                number, end = UNKNOWN, start + 1
            found.append(number)
            start = end
        return found

    def encode(self, text, limit):
        ids = []
        for word in WORD.findall(text.lower()):
            ids.extend(self.pieces(word))
            if len(ids) >= limit:
                break
        return ids[:limit]


def pad(sequences, length):
    out = torch.zeros(len(sequences), length, dtype=torch.long)
    for row, ids in zip(out, sequences):
        row[: len(ids)] = torch.as_tensor(ids)
    return out


class TextBatch:
    def __init__(self, tokenizer, length):
        self.tokenizer, self.length = tokenizer, length

    def __call__(self, samples):
        texts, labels = zip(*samples)
        ids = [self.tokenizer.encode(text, self.length) for text in texts]
        return pad(ids, self.length), torch.tensor(labels)


class IdBatch:
    def __init__(self, length):
        self.length = length

    def __call__(self, samples):
        ids, labels = zip(*samples)
        return pad(ids, self.length), torch.tensor(labels)


def make_dockets(count, subjects, seed=5):
    rng = random.Random(seed)
    syllables = [a + b for a in "bcdfglmnprstv" for b in ("a", "e", "io", "u", "ant", "er")]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(1500)]
    dockets = []
    for _ in range(count):
        subject = rng.randrange(subjects)
        common = words[subject * 100 : subject * 100 + 100]
        body = [rng.choice(common if rng.random() < 0.3 else words) for _ in range(400)]
        body.insert(3, f"no. {rng.randint(100, 9999)}/{rng.randint(70, 99)}")
        dockets.append((" ".join(body), subject))
    return dockets
