"""Tickets of a help desk, and how they become numbers."""

import random
import re
import unicodedata
import zlib

WORDS = [
    "printer", "password", "screen", "login", "invoice", "Rechnung", "café", "network", "slow",
    "broken", "update", "e-mail", "VPN", "server", "please", "urgent", "thanks", "naïve", "error",
    "0x80070057", "https://help.example/kb/12", "monitor", "keyboard", "since", "yesterday",
]  # fmt: skip
PIECE = re.compile(r"https?://\S+|0x[0-9a-f]+|[a-z]+|\d|[^\sa-z\d]")


def make_tickets(n, seed=0):
    rng = random.Random(seed)
    tickets = []
    for _ in range(n):
        words = rng.choices(WORDS, k=rng.randint(200, 400))
        topic = sum(word in ("VPN", "network", "server", "login") for word in words) > 48
        tickets.append((" ".join(words) + "!", int(topic)))
    return tickets


class Tokenizer:
    def __init__(self, size=4096, longest=96):
        self.size = size
        self.longest = longest

    def pieces(self, text):
        text = unicodedata.normalize("NFKD", text.lower())
        text = "".join(c for c in text if not unicodedata.combining(c))
        for piece in PIECE.findall(text):
            if len(piece) <= 4 or not piece.isalpha():
                yield piece
                continue
            yield from (piece[i : i + 4] for i in range(0, len(piece), 4))

    def encode(self, text):
        ids = [zlib.crc32(piece.encode()) % (self.size - 1) + 1 for piece in self.pieces(text)]
        return (ids + [0] * self.longest)[: self.longest]
