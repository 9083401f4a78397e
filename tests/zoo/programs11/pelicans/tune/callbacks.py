import os

import torch

from .lora import adapter_state


class Callback:
    def on_step_end(self, trainer):
        pass


class Checkpointer(Callback):
    def __init__(self, cfg):
        self.cfg = cfg
        os.makedirs(cfg.out, exist_ok=True)

    def collect(self, model):
        if self.cfg.save == "adapter":
            return adapter_state(model)
        return model.state_dict()

    def on_step_end(self, trainer):
        if trainer.step % self.cfg.save_every:
            return
        path = os.path.join(self.cfg.out, "last.pt")
        state = {"step": trainer.step, "model": self.collect(trainer.model)}
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)


class Progress(Callback):
    def on_step_end(self, trainer):
        if trainer.step % 30 == 0:
            print(f"step {trainer.step} loss {trainer.loss.item():.3f}")
