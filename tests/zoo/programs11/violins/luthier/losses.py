from torch.nn import functional as F


class DistillLoss:
    def __init__(self, temperature=3.0, weight=0.7):
        self.temperature, self.weight = temperature, weight

    def __call__(self, logits, teacher_logits, labels):
        t = self.temperature
        soft = F.kl_div(
            F.log_softmax(logits / t, dim=1),
            F.softmax(teacher_logits / t, dim=1),
            reduction="batchmean",
        )
        return self.weight * t * t * soft + (1 - self.weight) * F.cross_entropy(logits, labels)
