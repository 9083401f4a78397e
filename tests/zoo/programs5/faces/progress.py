import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch


class Gallery:
    """Shows how far the painter is: always the same latents."""

    def __init__(self, folder, latent=32):
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        self.z = torch.randn(16, latent)
        self.history = []

    def add(self, judge_loss, painter_loss):
        self.history.append((judge_loss, painter_loss))

    @torch.no_grad()
    def save(self, painter, step):
        painter.eval()
        images = painter(self.z)[:, 0].numpy()
        painter.train()
        figure, axes = plt.subplots(4, 5, figsize=(7, 5))
        for ax, image in zip(axes[:, :4].flat, images):
            ax.imshow(image, cmap="gray", vmin=-1, vmax=1)
            ax.axis("off")
        axes[0, 4].plot(torch.tensor(self.history))
        figure.savefig(self.folder / f"step-{step:05d}.png")
        plt.close(figure)
