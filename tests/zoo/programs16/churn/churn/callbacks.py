import gc


class Callback:
    def on_step_end(self, trainer, loss):
        pass

    def on_train_end(self, trainer):
        pass


class LossLog(Callback):
    def __init__(self, every):
        self.every = every

    def on_step_end(self, trainer, loss):
        if trainer.step % self.every == 0:
            trainer.accelerator.print(f"step {trainer.step}: loss {loss.item():.4f}")


class Housekeeping(Callback):
    """Keeps the footprint of long runs flat."""

    def __init__(self, every):
        self.every = every

    def on_step_end(self, trainer, loss):
        if trainer.step % self.every == 0:
            gc.collect()
