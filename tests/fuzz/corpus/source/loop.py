def train(model, loader, optimizer):
    history = []
    total = 0
    for epoch in range(3):
        for x, y in loader:
            out = model(x)
            again = model(x)
            loss = F.cross_entropy(out, y)  # "a string" in a comment
            history.append(loss)
            total += loss
            loss.backward()
            optimizer.step()
        while total > 0 and [f(z) for z in history]:
            total -= 1
    return history
