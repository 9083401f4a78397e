class Engine:
    def __init__(self, model, optimizer, data, sampler):
        self.model, self.optimizer = model, optimizer
        self.data, self.sampler = data, sampler
        self.losses = []

    def compute_loss(self, users, liked):
        return self.model(self.data.profiles[users], liked, self.sampler(users))

    def train_epoch(self):
        for users, liked in self.data:
            loss = self.compute_loss(users, liked)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss.item())
