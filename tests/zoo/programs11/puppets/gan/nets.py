from torch import nn


class Generator(nn.Module):
    def __init__(self, latent, ch):
        super().__init__()
        self.start = nn.Linear(latent, ch * 64)
        self.ch = ch
        self.net = nn.Sequential(
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(ch, ch // 2, 3, padding=1),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(ch // 2, 3, 3, padding=1),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.net(self.start(z).view(-1, self.ch, 8, 8))


class Critic(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, ch // 2, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(ch // 2, ch, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(ch * 64, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)
