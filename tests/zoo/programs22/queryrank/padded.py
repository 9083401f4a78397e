import torch
from torch.nn.utils.rnn import pad_sequence


def collate_lists(samples):
    features = pad_sequence([rows for rows, _ in samples], batch_first=True)
    grades = pad_sequence([labels for _, labels in samples], batch_first=True)
    lengths = torch.tensor([len(labels) for _, labels in samples])
    mask = torch.arange(grades.shape[1])[None, :] < lengths[:, None]
    return features, grades, mask
