"""The pictures and captions of the captioning notebooks: two digits side by side, and a sentence about them."""

import minnp.numpy as np
from minnp import nn

NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
WORDS = ("<pad>", "<start>", "<end>", "a", "left", "of", "beside", "another", *NUMBERS)
INDEX = {word: i for i, word in enumerate(WORDS)}
LENGTH = 7  # "<start> a three left of a five <end>" has 8 tokens: 7 to read, 7 to predict


def sentence(left, right):
    """The caption of a picture: three words longer than it needs to be, so that order and agreement must be learned."""
    if left == right:
        return f"a {NUMBERS[left]} beside another"
    return f"a {NUMBERS[left]} left of a {NUMBERS[right]}"


def encode(text):
    """The 8 word numbers of a caption: start, words, end, padding."""
    words = ["<start>", *text.split(), "<end>"]
    return [INDEX[word] for word in words] + [0] * (LENGTH + 1 - len(words))


def decode(numbers):
    """The words up to the end."""
    words = [WORDS[int(i)] for i in numbers]
    return " ".join(words[: words.index("<end>")] if "<end>" in words else words)


def load(count, seed=0):
    """(pictures [count, 128] float32, captions [count, 8]), and 300 of each for testing, of other images of digits."""
    digits = nn.io.digits()
    rng = np.random.default_rng(seed)
    sets = []
    for images, labels, n in ((digits.x_train, digits.y_train, count), (digits.x_test, digits.y_test, 300)):
        pairs = rng.integers(0, len(labels), (n, 2))
        pictures = np.concatenate([images[pairs[:, 0], 0], images[pairs[:, 1], 0]], axis=2).reshape(n, 128)
        captions = np.array([encode(sentence(int(labels[i]), int(labels[j]))) for i, j in pairs])
        sets.append((pictures, captions))
    return sets
