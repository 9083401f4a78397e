"""The terms of the distillation loss."""

import torch
import torch.nn.functional as F


def softened(student, teacher, x, temperature=3.0):
    logits, _ = student(x)
    with torch.no_grad():
        wanted, _ = teacher(x)
    return F.kl_div(
        F.log_softmax(logits / temperature, 1),
        F.softmax(wanted / temperature, 1),
        reduction="batchmean",
    )


def hint(student, teacher, x):
    _, hidden = student(x)
    with torch.no_grad():
        _, wanted = teacher(x)
    return F.mse_loss(hidden, wanted)


def relation(student, teacher, x):
    _, hidden = student(x)
    with torch.no_grad():
        _, wanted = teacher(x)
    return F.mse_loss(
        F.normalize(hidden) @ F.normalize(hidden).T, F.normalize(wanted) @ F.normalize(wanted).T
    )


def separate(student, teacher, x):
    return softened(student, teacher, x) + hint(student, teacher, x) + relation(student, teacher, x)


def joint(student, teacher, x, temperature=3.0):
    logits, hidden = student(x)
    with torch.no_grad():
        goal, wanted = teacher(x)
    soft = F.kl_div(
        F.log_softmax(logits / temperature, 1),
        F.softmax(goal / temperature, 1),
        reduction="batchmean",
    )
    near, far = F.normalize(hidden), F.normalize(wanted)
    return soft + F.mse_loss(hidden, wanted) + F.mse_loss(near @ near.T, far @ far.T)
