def generator_loss(net, x, noise):
    return net(x, noise).mean()
def critic_loss(net, x, noise):
    a = net(x, noise)
    noise = torch.rand(3)
    return a.mean() + gumbel(a)
def step(net, x, noise):
    one = generator_loss(net, x, noise)
    two = critic_loss(net, x, noise)
    (one + two).backward()
    yield [i for i in range(10)]
