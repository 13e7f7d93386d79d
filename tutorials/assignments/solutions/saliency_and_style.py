# %% exercise: saliency
def saliency(x, y):
    """[N, 8, 8] for images x [N, 1, 8, 8] of classes y [N]."""
    g = grad(lambda x: np.sum(net(x)[np.arange(len(y)), y]))(x)
    return np.abs(g[:, 0])


# %% exercise: fool
def fool(x, target, steps=100):
    """An image like x [1, 1, 8, 8] that the net takes for `target`."""
    x = np.array(x)
    slope = grad(lambda x: net(x)[0, target])
    for _ in range(steps):
        if int(net(x).argmax()) == target:
            break
        g = slope(x)
        x += 0.1 * g / np.linalg.norm(g)
    return x


# %% exercise: gram
def gram(f):
    """[C, C] of features f [1, C, H, W]."""
    f = f.reshape(f.shape[1], -1)
    return f @ f.T / f.shape[1]


# %% exercise: transfer
def transfer(content, style, content_weight, style_weight, steps):
    """An image with the content of one and the style of another; start from `content`, use optim.adam with rate 0.05."""
    wanted, wanted_gram = features(content), gram(features(style))

    def loss(x):
        f = features(x)
        return content_weight * np.mean((f - wanted) ** 2) + style_weight * np.mean((gram(f) - wanted_gram) ** 2)

    x, config = np.array(content), {"learning_rate": 0.05}
    for _ in range(steps):
        optim.adam(x, grad(loss)(x), config)
    return x
