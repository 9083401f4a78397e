from torch import nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(inputs, outputs, 7, stride=stride, padding=3, bias=False),
            nn.BatchNorm1d(outputs),
            nn.ReLU(),
            nn.Conv1d(outputs, outputs, 7, padding=3, bias=False),
            nn.BatchNorm1d(outputs),
        )
        self.skip = nn.Conv1d(inputs, outputs, 1, stride=stride)
        self.activation = nn.ReLU()

    def forward(self, signal):
        return self.activation(self.body(signal) + self.skip(signal))


class BeatNet(nn.Module):
    def __init__(self, leads, kinds, widths=(24, 40, 64)):
        super().__init__()
        blocks, inputs = [], leads
        for width in widths:
            blocks.append(Block(inputs, width, stride=2))
            inputs = width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, kinds)

    def forward(self, signal):
        return self.head(self.blocks(signal).mean(dim=2))
