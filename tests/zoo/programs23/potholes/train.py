import time

import torch
from config import Config
from dashcam import CLASSES, Dashcam, make_frames
from network import RoadNet
from torch.nn import functional as F
from torch.utils.data import DataLoader


def make_loader(config):
    frames, labels = make_frames(config.frames, config.seed)
    dataset = Dashcam(frames, labels, config.crop, config.seed)
    return DataLoader(
        dataset,
        batch_size=config.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=config.workers,
        persistent_workers=config.workers > 0,
    )


def main():
    config = Config.from_command_line()
    torch.manual_seed(config.seed)
    torch.set_num_threads(1)

    loader = make_loader(config)
    model = RoadNet(len(CLASSES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, config.lr, total_steps=config.epochs * len(loader)
    )

    step = 0
    began = time.perf_counter()
    for epoch in range(config.epochs):
        right = torch.zeros((), dtype=torch.long)
        seen = 0
        for images, labels in loader:
            logits = model(images)
            loss = F.cross_entropy(logits, labels, label_smoothing=0.05)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            right += (logits.detach().argmax(1) == labels).sum()
            seen += len(labels)
            step += 1
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {right.item() / seen:.3f}")
    elapsed = time.perf_counter() - began
    torch.save(model.state_dict(), "roadnet.pt")
    print(f"trained {step} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
