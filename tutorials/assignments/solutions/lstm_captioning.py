# %% exercise: step
def step(x, h, c, wx, wh, b):
    """(h', c')."""
    i, f, o, g = np.split(x @ wx + h @ wh + b, 4, axis=1)
    c = layers.sigmoid(f) * c + layers.sigmoid(i) * np.tanh(g)
    return layers.sigmoid(o) * np.tanh(c), c


# %% exercise: memory
def memory(run, x):
    """The norm of d sum(run(x)[:, -1]) / d x[:, 0]; run maps x [N, T, D] to h [N, T, H]."""
    g = grad(lambda x: np.sum(run(x)[:, -1]))(x)
    return np.linalg.norm(g[:, 0])


# %% exercise: scores
def scores(model, pictures, words):
    """Scores [N, T, words] of the next word after each of words [N, T]."""
    return model.score(model.lstm(model.embedding(words), h0=model.picture(pictures)))


# %% exercise: sample
def sample(model, pictures, rng, temperature=1.0):
    """Word numbers [N, LENGTH]; model.lstm.step(x, h, c) is one step."""
    h = model.picture(pictures)
    c, word, said = np.zeros_like(h), np.full(len(pictures), captions.INDEX["<start>"]), []
    for _ in range(captions.LENGTH):
        h, c = model.lstm.step(model.embedding(word), h, c)
        p = layers.softmax(model.score(h) / temperature)
        # the first word whose cumulated probability passes a uniform random number
        word = np.argmax(np.cumsum(p, axis=1) > rng.random((len(p), 1)), axis=1)
        said.append(word)
    return np.stack(said, axis=1)
