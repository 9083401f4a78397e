"""From lists of sessions to tensors."""

import numpy as np
import torch


def pad_sessions(sessions):
    longest = max(len(s["items"]) for s in sessions)
    items = torch.zeros(len(sessions), longest, dtype=torch.long)
    dwell = torch.zeros(len(sessions), longest)
    price = torch.zeros(len(sessions), longest)
    group = torch.zeros(len(sessions), longest, dtype=torch.long)
    target = torch.zeros(len(sessions), longest, dtype=torch.long)
    for row, session in enumerate(sessions):
        count = len(session["items"])
        for column in range(count):
            items[row, column] = int(session["items"][column])
            dwell[row, column] = float(session["dwell"][column])
            price[row, column] = float(session["price"][column])
            group[row, column] = int(session["group"][column])
            if column + 1 < count:
                target[row, column] = int(session["items"][column + 1])
    return {"items": items, "dwell": dwell, "price": price, "group": group, "target": target}


def pack_sessions(sessions):
    lengths = [len(s["items"]) for s in sessions]
    shape = (len(sessions), max(lengths))
    items = np.zeros(shape, np.int64)
    dwell = np.zeros(shape, np.float32)
    price = np.zeros(shape, np.float32)
    group = np.zeros(shape, np.int64)
    target = np.zeros(shape, np.int64)
    for row, (session, count) in enumerate(zip(sessions, lengths)):
        items[row, :count] = session["items"]
        dwell[row, :count] = session["dwell"]
        price[row, :count] = session["price"]
        group[row, :count] = session["group"]
        target[row, : count - 1] = session["items"][1:]
    batch = {"items": items, "dwell": dwell, "price": price, "group": group, "target": target}
    return {key: torch.from_numpy(value) for key, value in batch.items()}
