class Net(nn.Module):
    @torch.no_grad()
    def forward(self, x, mask):
        parts = []
        for k in range(x.shape[1]):
            part = self.layer(x[:, k])
            parts.append(torch.relu(part) * 2)
        h = torch.stack(parts, 1)
        logits = self.head(
            h.flatten(0, 1),
        )[mask]
        last = self.head(h)[:, -1]
        return logits, last, {"a": 'it\'s', "b": """long
        text"""}
