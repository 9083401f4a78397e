import torch


def collate_lists(samples):
    longest = max(len(grades) for _, grades in samples)
    features, grades, mask = [], [], []
    for rows, labels in samples:
        rows = rows.tolist()
        labels = labels.tolist()
        present = [True] * len(rows)
        width = len(rows[0])
        while len(rows) < longest:
            rows.append([0.0] * width)
            labels.append(0.0)
            present.append(False)
        features.append([[float(value) for value in row] for row in rows])
        grades.append(labels)
        mask.append(present)
    return torch.tensor(features), torch.tensor(grades), torch.tensor(mask)
