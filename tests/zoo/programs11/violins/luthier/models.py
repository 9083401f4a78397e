from torch import nn
from torch.nn import functional as F

MODELS = {}


def register(fn):
    MODELS[fn.__name__] = fn
    return fn


class ConvNet(nn.Module):
    def __init__(self, widths, classes):
        super().__init__()
        a, b, c = widths
        self.conv1 = nn.Conv2d(3, a, 3, padding=1)
        self.conv2 = nn.Conv2d(a, b, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(b, c, 3, padding=1)
        self.head = nn.Linear(c, classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.relu(self.conv3(x))
        return self.head(x.mean(dim=(2, 3)))


@register
def teacher(classes):
    return ConvNet((48, 80, 80), classes).requires_grad_(False).eval()


@register
def student(classes):
    return ConvNet((32, 64, 48), classes)
