"""Masks tokens for masked language modelling."""

import random

import torch


class MaskingCollator:
    def __init__(self, vocabulary, mask_id=1, rate=0.15):
        self.vocabulary, self.mask_id, self.rate = vocabulary, mask_id, rate
        self.random = random.Random(0)

    def __call__(self, features):
        longest = max(len(f["input_ids"]) for f in features)
        ids, labels, attention = [], [], []
        for feature in features:
            row, targets = [], []
            for token in feature["input_ids"]:
                token = int(token)
                if self.random.random() < self.rate:
                    targets.append(token)
                    draw = self.random.random()
                    if draw < 0.8:
                        row.append(self.mask_id)
                    elif draw < 0.9:
                        row.append(self.random.randrange(2, self.vocabulary))
                    else:
                        row.append(token)
                else:
                    targets.append(-100)
                    row.append(token)
            missing = longest - len(row)
            ids.append(row + [0] * missing)
            labels.append(targets + [-100] * missing)
            attention.append([1] * len(row) + [0] * missing)
        return {
            "input_ids": torch.tensor(ids),
            "labels": torch.tensor(labels),
            "attention_mask": torch.tensor(attention),
        }


class TensorMaskingCollator(MaskingCollator):
    def __call__(self, features):
        rows = [f["input_ids"] for f in features]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        attention = (ids != 0).long()
        chosen = (torch.rand(ids.shape) < self.rate) & (attention == 1)
        labels = ids.masked_fill(~chosen, -100)
        draw = torch.rand(ids.shape)
        ids = ids.masked_fill(chosen & (draw < 0.8), self.mask_id)
        swap = chosen & (draw >= 0.8) & (draw < 0.9)
        ids = torch.where(swap, torch.randint(2, self.vocabulary, ids.shape), ids)
        return {"input_ids": ids, "labels": labels, "attention_mask": attention}
