import torch
from padded import collate_lists
from clicks import ResultLists
from ranker import Ranker, Trainer
from torch.utils.data import DataLoader


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    loader = DataLoader(
        ResultLists(queries=2560, seed=3),
        batch_size=64,
        shuffle=True,
        drop_last=True,
        collate_fn=collate_lists,
        num_workers=2,
        persistent_workers=True,
    )
    Trainer(Ranker(), loader, epochs=3).fit()


if __name__ == "__main__":
    main()
