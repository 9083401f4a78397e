"""Raw card transactions, as the acquirer delivers them: a JSON document per line."""

import json
import random
import re
import zlib
from datetime import datetime

import torch
from torch.utils.data import Dataset

MERCHANT = re.compile(
    r"^(?P<channel>[A-Z]{2,4}) \*(?P<name>[A-Z' ]+?) +#(?P<store>\d{3,5}) "
    r"(?P<city>[A-Z ]+?) (?P<country>[A-Z]{2})$"
)
AMOUNT = re.compile(r"^(?P<currency>[A-Z]{3}) (?P<value>-?\d+(?:\.\d{2})?)$")
AGENT = re.compile(r"(?P<product>[A-Za-z]+)/(?P<major>\d+)\.(?P<minor>\d+) \((?P<system>[^;)]+)")

RATES = {"EUR": 1.0, "USD": 0.92, "GBP": 1.17, "SEK": 0.088}
CHANNELS = ["SQ", "POS", "ECOM", "ATM"]
SHOPS = ["CORNER BAKERY", "FUEL STOP", "O'NEILL BOOKS", "GREEN GROCER", "CITY CABS", "HOME DEPOT"]
CITIES = ["BERLIN DE", "LYON FR", "SAN JOSE US", "LEEDS GB", "UPPSALA SE", "PORTO PT"]
AGENTS = ["Safari/17.2 (iPhone; U)", "Chrome/121.0 (Linux; x86)", "Terminal/3.8 (Verifone)"]

HISTORY = 32
BUCKETS = 2048
NUMERIC = 8


def make_line(rng, day, risky):
    amount = rng.expovariate(1 / (180.0 if risky else 35.0))
    document = {
        "id": f"{rng.getrandbits(64):016x}",
        "time": f"2023-{1 + day // 28 % 12:02d}-{1 + day % 28:02d}T"
        f"{rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}",
        "amount": f"{rng.choice(list(RATES))} {amount:.2f}",
        "merchant": f"{rng.choice(CHANNELS)} *{rng.choice(SHOPS)} "
        f"#{rng.randrange(100, 9999)} {rng.choice(CITIES)}",
        "agent": rng.choice(AGENTS),
        "entry": {"chip": rng.random() < 0.7, "pin": rng.random() < 0.5, "retries": 0},
    }
    return json.dumps(document)


def make_cards(count, seed):
    """Lists of lines, a card's latest transactions each, and whether the card was abused."""
    rng = random.Random(seed)
    cards, labels = [], []
    for _ in range(count):
        risky = rng.random() < 0.2
        start = rng.randrange(300)
        cards.append([make_line(rng, start + i, risky) for i in range(HISTORY)])
        labels.append(float(risky))
    return cards, labels


def bucket(text):
    return zlib.crc32(text.encode()) % BUCKETS


def parse_transaction(line):
    document = json.loads(line)
    merchant = MERCHANT.match(document["merchant"])
    amount = AMOUNT.match(document["amount"])
    agent = AGENT.match(document["agent"])
    time = datetime.fromisoformat(document["time"])
    entry = document["entry"]
    value = float(amount["value"]) * RATES[amount["currency"]]
    tokens = (bucket(merchant["name"]), bucket(merchant["city"] + merchant["country"]))
    numbers = (
        value / 100.0,
        time.hour / 24.0,
        time.weekday() / 7.0,
        float(entry["chip"]),
        float(entry["pin"]),
        float(merchant["channel"] == "ECOM"),
        int(agent["major"]) / 100.0,
        float(agent["system"] == "iPhone"),
    )
    return tokens, numbers


def parse_card(lines):
    rows = [parse_transaction(line) for line in lines]
    tokens = torch.tensor([row[0] for row in rows])
    numbers = torch.tensor([row[1] for row in rows])
    return tokens, numbers


class Cards(Dataset):
    def __init__(self, cards, labels):
        self.cards = cards
        self.labels = torch.tensor(labels)

    def __len__(self):
        return len(self.cards)

    def __getitem__(self, index):
        tokens, numbers = parse_card(self.cards[index])
        return tokens, numbers, self.labels[index]


class CardTable(Dataset):
    def __init__(self, cards, labels):
        parsed = [parse_card(lines) for lines in cards]
        self.tokens = torch.stack([tokens for tokens, _ in parsed])
        self.numbers = torch.stack([numbers for _, numbers in parsed])
        self.labels = torch.tensor(labels)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.tokens[index], self.numbers[index], self.labels[index]
