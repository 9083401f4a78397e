from lightning.pytorch.callbacks import Callback


class EpochPrinter(Callback):
    def __init__(self):
        self.last = None

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.last = outputs["loss"]

    def on_train_epoch_end(self, trainer, pl_module):
        print(f"epoch {trainer.current_epoch} loss {self.last.item():.3f}")
