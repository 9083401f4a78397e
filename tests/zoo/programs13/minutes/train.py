"""Minutes of town councils: which committee wrote this item?"""

import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

WORDS, COMMITTEES = 1000, 9


class Items(Dataset):
    def __init__(self, count, seed, longest):
        g = torch.Generator().manual_seed(seed)
        self.longest = longest
        self.labels = torch.randint(0, COMMITTEES, (count,), generator=g)
        lengths = torch.randint(40, 65, (count,), generator=g)
        annexes = torch.rand(count, generator=g) < 0.005
        lengths = torch.where(annexes, lengths + 300, lengths)
        self.texts = []
        for label, length in zip(self.labels.tolist(), lengths.tolist()):
            words = torch.randint(100, WORDS, (length,), generator=g)
            topical = torch.rand(length, generator=g) < 0.15
            words[topical] = label * 10 + words[topical] % 10 + 1
            self.texts.append(words)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index][: self.longest], self.labels[index]


def collate(rows):
    texts, labels = zip(*rows)
    return nn.utils.rnn.pad_sequence(texts, batch_first=True), torch.stack(labels)


class Reader(nn.Module):
    def __init__(self, width=48, heads=4, layers=2):
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(
            width, heads, 3 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(width, COMMITTEES)

    def forward(self, text):
        real = (text != 0).unsqueeze(-1).float()
        x = self.layers(self.words(text)) * real
        return self.out(x.sum(1) / real.sum(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-words", type=int, default=None)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=12)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(70)
    train = DataLoader(
        Items(720, 70, args.max_words), args.batch_size, shuffle=True, collate_fn=collate
    )
    test = DataLoader(Items(64, 71, 64), 32, collate_fn=collate)
    model = Reader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        model.train()
        loss_sum = 0.0
        for text, label in train:
            loss = F.cross_entropy(model(text), label)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            loss_sum += loss.item()
            steps += 1
        model.eval()
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in test)
        print(f"epoch {epoch}: loss {loss_sum / len(train):.3f}, accuracy {right / 64:.3f}")
    seconds = time.perf_counter() - start
    torch.save(model.state_dict(), "reader.pt")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
