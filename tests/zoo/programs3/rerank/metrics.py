import torch


class RunningNdcg:
    """Mean discounted gain of the lists seen in training."""

    def __init__(self):
        self.total = 0.0
        self.lists = 0

    def update(self, scores, gains):
        for row_scores, row_gains in zip(scores, gains):
            pairs = []
            for score, gain in zip(row_scores, row_gains):
                pairs.append((float(score), float(gain)))
            pairs.sort(key=lambda pair: -pair[0])
            ideal = sorted((gain for _, gain in pairs), reverse=True)
            found = best = 0.0
            for place, (_, gain) in enumerate(pairs):
                found += (2**gain - 1) / (place + 2)
                best += (2 ** ideal[place] - 1) / (place + 2)
            self.total += found / max(best, 1e-9)
            self.lists += 1

    def value(self):
        return self.total / max(self.lists, 1)


class TensorNdcg(RunningNdcg):
    def update(self, scores, gains):
        discount = 1 / (torch.arange(scores.shape[1]) + 2)
        worth = 2**gains - 1
        found = (worth.gather(1, scores.argsort(1, descending=True)) * discount).sum(1)
        best = (worth.sort(1, descending=True).values * discount).sum(1)
        self.total += (found / best.clamp(min=1e-9)).sum()
        self.lists += len(scores)
