import torch
from torch import nn


class ActorCritic(nn.Module):
    def __init__(self, features, actions, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.policy = nn.Linear(width, actions)
        self.value = nn.Linear(width, 1)

    def forward(self, observations):
        h = self.body(observations)
        return self.policy(h), self.value(h).squeeze(-1)

    def evaluate(self, observations, actions):
        logits, values = self(observations)
        log_probs = torch.log_softmax(logits, dim=-1)
        chosen = log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        entropy = -(log_probs.exp() * log_probs).sum(-1)
        return chosen, values, entropy


def evaluate_by_time(agent, batch):
    chosen, values, entropies = [], [], []
    for t in range(batch.actions.shape[1]):
        log_prob, value, entropy = agent.evaluate(batch.observations[:, t], batch.actions[:, t])
        chosen.append(log_prob)
        values.append(value)
        entropies.append(entropy)
    return torch.stack(chosen, 1), torch.stack(values, 1), torch.stack(entropies, 1)


def evaluate_together(agent, batch):
    return agent.evaluate(batch.observations, batch.actions)


EVALUATORS = {"time": evaluate_by_time, "together": evaluate_together}
