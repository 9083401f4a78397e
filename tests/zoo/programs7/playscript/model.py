import torch
from torch import nn

SPEAKER, CUE = 1, 2


def turns_of(tokens):
    """For every token, the number of the speech it belongs to and its place within it."""
    speech, place = [], []
    for row in tokens.tolist():
        number, position = 0, 0
        numbers, positions = [], []
        for token in row:
            if token == SPEAKER:
                number += 1
                position = 0
            numbers.append(min(number, 63))
            positions.append(min(position, 127))
            if token != CUE:
                position += 1
        speech.append(numbers)
        place.append(positions)
    return torch.tensor(speech), torch.tensor(place)


def turns_by_scan(tokens):
    starts = tokens == SPEAKER
    number = starts.cumsum(1)
    counted = (tokens != CUE).cumsum(1)
    before = counted - (tokens != CUE).long()
    origin = torch.where(starts, before, torch.zeros_like(before)).cummax(1).values
    return number.clamp(max=63), (before - origin).clamp(max=127)


class ScriptModel(nn.Module):
    def __init__(self, vocabulary=1000, width=96, heads=4, turns=turns_of):
        super().__init__()
        self.turns = turns
        self.words = nn.Embedding(vocabulary, width)
        self.speech = nn.Embedding(64, width)
        self.place = nn.Embedding(128, width)
        self.block = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.out = nn.Linear(width, 200)

    def forward(self, tokens):
        speech, place = self.turns(tokens)
        x = self.words(tokens) + self.speech(speech) + self.place(place)
        return self.out(self.block(x)[:, ::4])
