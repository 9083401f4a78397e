import logging
import time
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class KelpAutoencoder(L.LightningModule):
    def __init__(self, bands=200, hidden=1024, code=32):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(
            nn.Linear(bands, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU()
        )
        self.code = nn.Linear(hidden, code)
        self.decoder = nn.Sequential(nn.Linear(code, hidden), nn.GELU(), nn.Linear(hidden, bands))

    def forward(self, x):
        return self.decoder(self.code(self.encoder(x)))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        return nn.functional.mse_loss(self(x), x)

    def validation_step(self, batch, batch_idx):
        (x,) = batch
        self.log("val_loss", nn.functional.mse_loss(self(x), x))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02, momentum=0.9)


class Timer(L.Callback):
    def on_train_start(self, *_):
        self.start = time.perf_counter()

    def on_train_end(self, *_):
        self.seconds = time.perf_counter() - self.start


def main():
    torch.set_num_threads(1)
    L.seed_everything(3, verbose=False)
    spectra = torch.rand(256 * 81, 200)
    train, val = TensorDataset(spectra[256:]), TensorDataset(spectra[:256])
    timer = Timer()
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        callbacks=[timer],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(KelpAutoencoder(), DataLoader(train, 256, shuffle=True), DataLoader(val, 256))
    print(f"trained {trainer.global_step} steps in {timer.seconds:.3f} s")


if __name__ == "__main__":
    main()
