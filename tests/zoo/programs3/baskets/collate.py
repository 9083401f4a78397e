import numpy as np
import torch


def pad_lists(customers):
    """(customers, baskets, items) of item numbers, 0 where there is none; and what comes next."""
    most_baskets = max(len(history) for history, _ in customers)
    most_items = max(len(basket) for history, _ in customers for basket in history)
    padded, mask, wanted = [], [], []
    for history, following in customers:
        rows, present = [], []
        for basket in history:
            row = [int(item) for item in basket]
            flags = [1.0] * len(row)
            while len(row) < most_items:
                row.append(0)
                flags.append(0.0)
            rows.append(row)
            present.append(flags)
        while len(rows) < most_baskets:
            rows.append([0] * most_items)
            present.append([0.0] * most_items)
        padded.append(rows)
        mask.append(present)
        wanted.append(following)
    return torch.tensor(padded), torch.tensor(mask), torch.tensor(wanted)


def pad_arrays(customers):
    """The same, copied into place."""
    most_baskets = max(len(history) for history, _ in customers)
    most_items = max(len(basket) for history, _ in customers for basket in history)
    padded = np.zeros((len(customers), most_baskets, most_items), np.int64)
    for rows, (history, _) in zip(padded, customers):
        for row, basket in zip(rows, history):
            row[: len(basket)] = basket
    items = torch.from_numpy(padded)
    return items, (items > 0).float(), torch.tensor([following for _, following in customers])
