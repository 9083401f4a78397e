"""Pairwise gradients of LambdaRank, for the documents of one query."""

import math

import numpy as np


def ideal_dcg(grades):
    best = np.sort(grades)[::-1]
    return float(np.sum((2.0**best - 1) / np.log2(np.arange(2, len(best) + 2)))) or 1.0


def lambdas_by_pair(scores, grades):
    count = len(scores)
    order = np.argsort(-scores)
    rank = np.empty(count, int)
    rank[order] = np.arange(count)
    norm = ideal_dcg(grades)
    s, g = scores.tolist(), grades.tolist()
    out = [0.0] * count
    loss = 0.0
    for i in range(count):
        for j in range(count):
            if g[i] <= g[j]:
                continue
            gain = 2.0 ** g[i] - 2.0 ** g[j]
            gap = abs(1 / math.log2(rank[i] + 2) - 1 / math.log2(rank[j] + 2))
            weight = gain * gap / norm
            odds = 1.0 / (1.0 + math.exp(min(s[i] - s[j], 50.0)))
            out[i] -= weight * odds
            out[j] += weight * odds
            loss += weight * math.log1p(math.exp(-max(min(s[i] - s[j], 50.0), -50.0)))
    return np.array(out, np.float32), loss


def lambdas_by_query(scores, grades):
    count = len(scores)
    order = np.argsort(-scores)
    rank = np.empty(count, int)
    rank[order] = np.arange(count)
    difference = scores[:, None] - scores[None]
    gain = 2.0 ** grades[:, None] - 2.0 ** grades[None]
    discount = 1 / np.log2(rank + 2)
    weight = np.maximum(gain, 0) * np.abs(discount[:, None] - discount[None]) / ideal_dcg(grades)
    clipped = np.clip(difference, -50, 50)
    pull = weight / (1.0 + np.exp(clipped))
    loss = float((weight * np.log1p(np.exp(-clipped))).sum())
    return (pull.sum(0) - pull.sum(1)).astype(np.float32), loss


METHODS = {"pair": lambdas_by_pair, "query": lambdas_by_query}
