"""Is there a cow, a sheep or nothing on the pasture?"""

import argparse
import logging
import time
import warnings

import lightning as L
import numpy as np
import torch
import torchmetrics
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
ANIMALS, SIZE = 3, 40


class Pastures(Dataset):
    def __init__(self, count, seed, train):
        rng = np.random.default_rng(seed)
        self.train = train
        self.labels = rng.integers(0, ANIMALS, count)
        self.images = rng.integers(60, 140, (count, 3, SIZE, SIZE)).astype(np.uint8)
        for image, label in zip(self.images, self.labels):
            y, x = rng.integers(4, SIZE - 12, 2)
            image[label, y : y + 8, x : x + 8] += 80 if label else 0

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index]).float() / 255.0 - 0.4
        if self.train and torch.rand(()) < 0.5:
            image = image.flip(-1)
        return image, int(self.labels[index])


class Grazing(L.LightningModule):
    def __init__(self, lr=2e-3, width=12):
        super().__init__()
        self.save_hyperparameters()
        sizes = [3, width, 2 * width, 4 * width]
        layers = []
        for a, b in zip(sizes, sizes[1:]):
            layers += [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)]
        self.trunk = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.LazyLinear(ANIMALS))
        self.accuracy = torchmetrics.classification.MulticlassAccuracy(ANIMALS)
        self.example_input_array = torch.zeros(1, 3, SIZE, SIZE)

    def forward(self, x):
        return self.head(self.trunk(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y, label_smoothing=0.05)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.accuracy(self(x), y)
        self.log("val_acc", self.accuracy, on_epoch=True)

    def on_train_epoch_end(self):
        shown = {k: f"{v:.3f}" for k, v in self.trainer.callback_metrics.items()}
        print(f"epoch {self.current_epoch}: {shown}")

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9)
        steps = self.trainer.estimated_stepping_batches
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=steps)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(27, verbose=False)
    train = DataLoader(
        Pastures(1600, 27, True), 32, shuffle=True, num_workers=1, persistent_workers=True
    )
    valid = DataLoader(Pastures(128, 28, False), 64)
    model = Grazing()
    model(model.example_input_array)
    trainer = L.Trainer(
        max_epochs=args.epochs,
        accelerator="cpu",
        gradient_clip_val=1.0,
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(model, train, valid)
    seconds = time.perf_counter() - start
    trainer.save_checkpoint("grazing.ckpt")
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")
