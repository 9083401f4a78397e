"""Byte pairs, learned on the recipes themselves."""

import random
from collections import Counter

SYLLABLES = "to ma ba sil on ion gar lic pep per oil salt but ter su gar flour egg milk".split()


def recipes(count, words, seed=0):
    rng = random.Random(seed)
    return [
        " ".join(
            "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(1, 3))) for _ in range(words)
        )
        for _ in range(count)
    ]


class Pairs:
    def __init__(self, texts, merges):
        words = Counter(w for t in texts for w in t.split())
        split = {w: list(w) for w in words}
        self.ranks = {}
        for rank in range(merges):
            pairs = Counter()
            for w, parts in split.items():
                for pair in zip(parts, parts[1:]):
                    pairs[pair] += words[w]
            if not pairs:
                break
            best = max(pairs, key=pairs.get)
            self.ranks[best] = rank
            split = {w: self.merge(parts, best) for w, parts in split.items()}
        letters = sorted({c for w in words for c in w})
        pieces = letters + ["".join(p) for p in self.ranks]
        self.ids = {p: k + 1 for k, p in enumerate(dict.fromkeys(pieces))}

    @staticmethod
    def merge(parts, pair):
        out, k = [], 0
        while k < len(parts):
            if k + 1 < len(parts) and (parts[k], parts[k + 1]) == pair:
                out.append(parts[k] + parts[k + 1])
                k += 2
            else:
                out.append(parts[k])
                k += 1
        return out

    def encode(self, text):
        ids = []
        for word in text.split():
            parts = list(word)
            while len(parts) > 1:
                pairs = set(zip(parts, parts[1:]))
                best = min(pairs, key=lambda p: self.ranks.get(p, 1 << 30))
                if best not in self.ranks:
                    break
                parts = self.merge(parts, best)
            ids.extend(self.ids[p] for p in parts)
        return ids
