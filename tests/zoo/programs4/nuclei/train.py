import argparse
import time

import torch
import torch.nn.functional as F
from data import Nuclei, weight_map
from torch.utils.data import DataLoader
from unet import UNet


class Trainer:
    def __init__(self, args):
        self.args = args
        self.model = UNet()
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=0.05, momentum=0.95, nesterov=True
        )
        self.loader = DataLoader(
            Nuclei(args.images, with_weights=args.weights_in_dataset),
            args.batch_size,
            shuffle=True,
            drop_last=True,
            num_workers=args.workers,
            persistent_workers=True,
        )
        self.step = 0

    def prepare(self, batch):
        """Images, masks and weights as the loss wants them."""
        if len(batch) == 3:
            return batch
        image, mask = batch
        return image, mask, weight_map(mask)

    def train_epoch(self):
        total = 0.0
        for batch in self.loader:
            image, mask, weight = self.prepare(batch)
            logits = self.model(image)
            loss = F.binary_cross_entropy_with_logits(logits, mask.float(), weight)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
            self.step += 1
        return total / len(self.loader)

    def fit(self):
        start = time.perf_counter()
        for epoch in range(self.args.epochs):
            print(f"epoch {epoch}: loss {self.train_epoch():.4f}")
        print(f"trained {self.step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--images", type=int, default=320)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--weights-in-dataset", action="store_true")
    torch.manual_seed(9)
    torch.set_num_threads(1)
    Trainer(parser.parse_args()).fit()
