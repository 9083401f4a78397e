import torch
from torch.utils.data import Dataset

VOCABULARY = 2000


def make_topics(count, length, generator):
    return torch.randint(1, VOCABULARY, (count, length), generator=generator)


class Questions(Dataset):
    def __init__(self, topics, count, length, generator):
        self.labels = torch.randint(0, len(topics), (count,), generator=generator)
        words = torch.randint(1, VOCABULARY, (count, length), generator=generator)
        hints = topics[self.labels][:, :length]
        take = torch.rand(words.shape, generator=generator) < 0.4
        take[:, hints.shape[1] :] = False
        padded = torch.nn.functional.pad(hints, (0, length - hints.shape[1]))
        self.input_ids = torch.where(take, padded, words)
        self.attention_mask = torch.ones_like(self.input_ids)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {
            "input_ids": self.input_ids[index],
            "attention_mask": self.attention_mask[index],
            "labels": self.labels[index],
        }
