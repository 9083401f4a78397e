"""Question 13b, Lightning: keep a diary of the weights while digits are learned."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl


class Diary(pl.Callback):
    """Writes the weights of the last layers to a text file."""

    def __init__(self, path, every):
        self.file = open(path, "w")
        self.every = every

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step % self.every == 0:
            self.write(trainer.global_step, module.watched)

    def write(self, step, layers):
        for name, parameter in layers.named_parameters():
            values = " ".join(f"{value:.6f}" for value in parameter.detach().flatten().tolist())
            self.file.write(f"{step} {name} {values}\n")
        self.file.flush()


class Digits(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(784, 640), nn.ReLU(), nn.Linear(640, 512), nn.ReLU())
        self.watched = nn.Sequential(nn.Linear(512, 160), nn.ReLU(), nn.Linear(160, 10))

    def training_step(self, batch, _):
        images, digits = batch
        return nn.functional.cross_entropy(self.watched(self.body(images)), digits)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--diary-every", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    pl.seed_everything(13)
    images = torch.rand(2560, 784)
    digits = torch.randint(0, 10, (2560,))
    data = TensorDataset(images, digits)
    batches = BatchSampler(RandomSampler(data), 256, drop_last=True)
    loader = DataLoader(data, batch_size=None, sampler=batches)
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=args.epochs,
        callbacks=[Diary("diary.txt", args.diary_every)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(Digits(), loader)
    seconds = time.perf_counter() - start
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
