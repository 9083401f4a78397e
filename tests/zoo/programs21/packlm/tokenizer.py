"""Byte-pair encoding, just enough of it."""

from collections import Counter


class BPE:
    def __init__(self):
        self.merges = {}
        self.vocab = {"<pad>": 0, "<eos>": 1}

    @staticmethod
    def _merge(symbols, pair):
        out, i = [], 0
        while i < len(symbols):
            if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == pair:
                out.append(symbols[i] + symbols[i + 1])
                i += 2
            else:
                out.append(symbols[i])
                i += 1
        return out

    def fit(self, texts, n_merges):
        words = Counter(w for t in texts for w in t.split())
        split = {w: ["_", *w] for w in words}
        for symbol in sorted({s for symbols in split.values() for s in symbols}):
            self.vocab[symbol] = len(self.vocab)
        for rank in range(n_merges):
            pairs = Counter()
            for w, symbols in split.items():
                for pair in zip(symbols, symbols[1:]):
                    pairs[pair] += words[w]
            if not pairs:
                break
            best = max(pairs, key=lambda p: (pairs[p], p))
            self.merges[best] = rank
            self.vocab["".join(best)] = len(self.vocab)
            split = {w: self._merge(symbols, best) for w, symbols in split.items()}
        self.words = {w: [self.vocab[s] for s in symbols] for w, symbols in split.items()}
        return self

    def encode(self, text):
        return [i for w in text.split() for i in self.words[w]] + [self.vocab["<eos>"]]
