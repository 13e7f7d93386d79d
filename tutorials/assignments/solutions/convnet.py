# %% exercise: convolve
def convolve(x, w, b, stride=1, pad=0):
    """x [N, C, H, W], w [F, C, K, K], b [F] -> [N, F, (H + 2 pad - K) // stride + 1, ...]."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    k = w.shape[2]
    height, width = ((x.shape[axis] - k) // stride + 1 for axis in (2, 3))
    y = np.zeros((len(x), len(w), height, width))
    for i in range(height):
        for j in range(width):
            window = x[:, :, i * stride : i * stride + k, j * stride : j * stride + k]
            y[:, :, i, j] = np.tensordot(window, w, ((1, 2, 3), (1, 2, 3))) + b
    return y


# %% exercise: pool
def pool(x, size=2):
    """The largest of each size x size window, windows side by side: [N, C, H // size, W // size]."""
    n, c, h, w = x.shape
    y = np.zeros((n, c, h // size, w // size))
    for i in range(h // size):
        for j in range(w // size):
            y[:, :, i, j] = x[:, :, i * size : (i + 1) * size, j * size : (j + 1) * size].max(axis=(2, 3))
    return y


# %% exercise: build
def build(channels, size):
    """The net, not yet trained."""
    steps = []
    for inputs, filters in ((channels, 32), (32, 64)):
        steps += [nn.Conv2D(inputs, filters, 3, pad="same"), nn.BatchNorm(filters), nn.ReLU(), nn.MaxPool2D()]
    return nn.Sequential(*steps, nn.Flatten(), nn.Linear(64 * (size // 4) ** 2, 10))
