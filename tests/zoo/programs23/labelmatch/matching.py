"""Questions are matched with the descriptions of the topics that they may belong to."""

import torch
from torch import nn
from transformers import BertConfig, BertModel


def make_encoder(vocabulary, width, layers):
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=2 * width,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertModel(config, add_pooling_layer=False)


def mean_pool(hidden, mask):
    mask = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * mask).sum(1) / mask.sum(1)


class TopicMatcher(nn.Module):
    def __init__(self, topic_ids, vocabulary, width=128, index=False):
        super().__init__()
        self.questions = make_encoder(vocabulary, width, layers=2)
        self.topics = make_encoder(vocabulary, width, layers=2).requires_grad_(False)
        self.project = nn.Linear(width, width)
        self.register_buffer("topic_ids", topic_ids, persistent=False)
        self.index = self.embed_topics() if index else None

    @torch.no_grad()
    def embed_topics(self):
        mask = (self.topic_ids > 0).long()
        hidden = self.topics(input_ids=self.topic_ids, attention_mask=mask).last_hidden_state
        return mean_pool(hidden, mask)

    def forward(self, input_ids, attention_mask, labels=None):
        hidden = self.questions(input_ids=input_ids, attention_mask=attention_mask)
        query = self.project(mean_pool(hidden.last_hidden_state, attention_mask))
        topics = self.embed_topics() if self.index is None else self.index
        logits = query @ topics.T / query.shape[1] ** 0.5
        if labels is None:
            return {"logits": logits}
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}
