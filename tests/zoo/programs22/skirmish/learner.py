import torch
from replay import BOARD, MOVES
from torch import nn
from torch.nn import functional as F


def value_network(width):
    return nn.Sequential(
        nn.Linear(BOARD, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, MOVES),
    )


class Learner:
    def __init__(self, width=512, discount=0.95, lr=5e-4):
        self.online = value_network(width)
        self.target = value_network(width)
        self.target.load_state_dict(self.online.state_dict())
        self.discount = discount
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=lr, fused=True)

    def act(self, board):
        with torch.no_grad():
            return int(self.online(torch.from_numpy(board)).argmax())

    def update(self, batch):
        board, action, reward, following, over = (torch.from_numpy(part) for part in batch)
        with torch.no_grad():
            future = self.target(following).max(dim=1).values
            wanted = reward + self.discount * (1 - over) * future
        values = self.online(board).gather(1, action[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(values, wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def sync_target(self):
        self.target.load_state_dict(self.online.state_dict())
