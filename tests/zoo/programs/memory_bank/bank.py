"""A bank of embeddings of the whole set, for negatives."""

import torch


class Bank:
    def __init__(self, model, data):
        self.model = model
        self.data = data
        self.vectors = None

    @torch.no_grad()
    def rebuild(self):
        vectors = []
        for chunk in self.data.split(64):
            vectors.append(torch.nn.functional.normalize(self.model(chunk), dim=1))
        self.vectors = torch.cat(vectors)
        similar = self.vectors @ self.vectors.T
        self.neighbours = similar.topk(8).indices

    @torch.no_grad()
    def refresh(self, indices, vectors):
        self.vectors[indices] = vectors
        self.neighbours[indices] = (vectors @ self.vectors.T).topk(8).indices
