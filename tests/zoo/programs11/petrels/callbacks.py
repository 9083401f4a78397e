from lightning.pytorch.callbacks import Callback
from torch.utils.tensorboard import SummaryWriter


class WeightBoard(Callback):
    def __init__(self, folder, every):
        self.folder, self.every = folder, every
        self.writer = None

    def on_fit_start(self, trainer, pl_module):
        self.writer = SummaryWriter(self.folder)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        step = trainer.global_step
        if step % self.every:
            return
        for name, parameter in pl_module.named_parameters():
            self.writer.add_histogram(f"weights/{name}", parameter.detach(), step)

    def on_fit_end(self, trainer, pl_module):
        self.writer.close()
