def f(
    x,
