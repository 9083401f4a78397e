from dataclasses import dataclass

import torch

COLLATORS = {}


def register(cls):
    COLLATORS[cls.name] = cls
    return cls


@register
@dataclass
class StoryCollator:
    max_len: int
    pad_id: int = 0
    name = "story"

    def __call__(self, rows):
        n = len(rows)
        ids = torch.full((n, self.max_len), self.pad_id)
        mask = torch.zeros(n, self.max_len, dtype=torch.long)
        kinds = torch.zeros(n, self.max_len, dtype=torch.long)
        places = torch.zeros(n, self.max_len, dtype=torch.long)
        for i, row in enumerate(rows):
            for j, token in enumerate(row["ids"]):
                ids[i, j] = token
                mask[i, j] = 1
                kinds[i, j] = int(j >= row["title"])
                places[i, j] = j
        labels = torch.tensor([row["desk"] for row in rows])
        return {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": kinds,
            "position_ids": places,
            "labels": labels,
        }


@register
@dataclass
class BlockCollator:
    max_len: int
    pad_id: int = 0
    name = "block"

    def __call__(self, rows):
        lengths = torch.tensor([len(row["ids"]) for row in rows])[:, None]
        titles = torch.tensor([row["title"] for row in rows])[:, None]
        at = torch.arange(self.max_len).expand(len(rows), -1)
        mask = (at < lengths).long()
        padded = [row["ids"] + [self.pad_id] * (self.max_len - len(row["ids"])) for row in rows]
        return {
            "input_ids": torch.tensor(padded),
            "attention_mask": mask,
            "token_type_ids": (at >= titles).long() * mask,
            "position_ids": at * mask,
            "labels": torch.tensor([row["desk"] for row in rows]),
        }
