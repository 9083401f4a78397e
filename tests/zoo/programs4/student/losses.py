import torch
import torch.nn.functional as F
from torch import nn


class DistillationLoss(nn.Module):
    """Hinton et al. 2015, with the teacher inside."""

    def __init__(self, teacher, temperature=3.0, alpha=0.7):
        super().__init__()
        self.teacher = teacher.eval()
        self.temperature, self.alpha = temperature, alpha

    def teacher_logits(self, images):
        return self.teacher(images)

    def forward(self, student_logits, images, labels):
        t = self.temperature
        soft = F.softmax(self.teacher_logits(images) / t, 1)
        distill = -(soft * F.log_softmax(student_logits / t, 1)).sum(1).mean() * t**2
        hard = F.cross_entropy(student_logits, labels)
        return self.alpha * distill + (1 - self.alpha) * hard


class FrozenDistillationLoss(DistillationLoss):
    @torch.no_grad()
    def teacher_logits(self, images):
        return self.teacher(images)
