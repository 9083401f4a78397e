"""Parts of speech with a bidirectional LSTM; sentences of like length share a batch."""

import logging
import random
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

WORDS, TAGS = 1500, 12
logging.basicConfig(level=logging.INFO, format="%(message)s")


def make_sentences(count):
    sentences = []
    for length in torch.randint(14, 31, (count,)).tolist():
        words = torch.randint(1, WORDS, (length,))
        tags = (words + words.roll(1)) % TAGS
        sentences.append((words, tags))
    return sentences


class Buckets:
    """Batches of neighbours in the order of length, in random order."""

    def __init__(self, sentences, size):
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i][0]))
        self.batches = [order[i : i + size] for i in range(0, len(order), size)]

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        return iter(random.sample(self.batches, len(self.batches)))


def collate(samples):
    words, tags = zip(*samples)
    return pad_sequence(words, True), pad_sequence(tags, True, padding_value=-100)


class Tagger(nn.Module):
    def __init__(self, width=96, hidden=128):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width, padding_idx=0)
        self.drop = nn.Dropout(0.2)
        self.lstm = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, TAGS)

    def forward(self, words):
        hidden, _ = self.lstm(self.drop(self.embed(words)))
        return self.out(self.drop(hidden))


def main():
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sentences = make_sentences(2400)
    loader = DataLoader(sentences, batch_sampler=Buckets(sentences, 32), collate_fn=collate)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=-100)

    step = 0
    begin = time.perf_counter()
    for epoch in range(4):
        for words, tags in loader:
            loss = criterion(model(words).flatten(0, 1), tags.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            step += 1
            if step % 50 == 0:
                logging.info("epoch %d step %d loss %.4f", epoch, step, loss.item())
    print(f"trained {step} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
