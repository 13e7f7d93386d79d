"""SPINN: a sentence encoder that parses as it reads (Bowman et al. 2016), for natural language inference.

    python tutorials/dynamic/spinn.py

A shift-reduce parser keeps a stack of phrase vectors. SHIFT pushes the next word; REDUCE replaces the top two by one,
made by a TreeLSTM; a second, small LSTM, the tracker, watches the buffer and the stack, and helps. Every sentence has a
tree of its own, yet a batch is one array: `stack[depth, rows]` reads and writes each sentence at its own depth. Writing
into the stack is plain NumPy, and the gradient goes through it.

A bag of words, trained on the same pairs, shows what the order of words is worth.
"""

import argparse

import entailment

import minnp.numpy as np
from minnp import nn
from minnp.nn import layers


class Spinn(nn.ModelBase):
    """Batches are [premise words [N, T], moves [N, 2T - 1], hypothesis words, hypothesis moves], labels [N]."""

    def __init__(self, hidden=64, tracking=32, vector=32, classes=3):
        super().__init__()
        self.hidden, self.tracking = hidden, tracking
        self.embedding = nn.Embedding(len(entailment.WORDS), vector)
        self.leaf = nn.Linear(vector, 2 * hidden)
        self.track = nn.Linear(3 * hidden + tracking, 4 * tracking)
        self.compose = nn.Linear(2 * hidden + tracking, 5 * hidden)
        remembering = np.repeat(np.array([0.0, 1.0, 1.0, 0.0, 0.0]), hidden)  # at first both children are kept
        self.compose.param_configs["b"].update(init_rule="custom", init_config={"function": lambda shape: remembering})
        self.move = nn.Linear(tracking, 2)
        self.classify = nn.Sequential(nn.Linear(4 * hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes))

    def reduce(self, left, right, tracker):
        """TreeLSTM: i, f_l, f_r, o = sigmoid, g = tanh of an affine map of (h_l, h_r, tracker);
        c = i g + f_l c_l + f_r c_r, h = o tanh(c). Phrases are (h, c) side by side, [N, 2H]."""
        n = self.hidden
        a = self.compose(np.concatenate([left[:, :n], right[:, :n], tracker], axis=1))
        gates = layers.sigmoid(a[:, : 4 * n])
        i, fl, fr, o = (gates[:, k * n : (k + 1) * n] for k in range(4))
        c = i * np.tanh(a[:, 4 * n :]) + fl * left[:, n:] + fr * right[:, n:]
        return np.concatenate([o * np.tanh(c), c], axis=1)

    def encode(self, words, moves):
        """(sentence vectors [N, H], the tracker's scores of each move [N, 2T - 1, 2])."""
        n, h, k = len(words), self.hidden, self.tracking
        rows = np.arange(n)
        reducing = moves == entailment.REDUCE
        length = 2 * np.sum(words != 0, axis=1) - 1  # how many steps each sentence takes
        steps = int(length.max())
        going = np.arange(moves.shape[1]) < length[:, None]
        depth = np.cumsum(np.where(reducing, -1, 1), axis=1) * going  # of each stack after each step
        taken = np.cumsum(~reducing, axis=1) - ~reducing  # words taken before each step

        leaves = self.leaf(self.embedding(words))
        buffer = leaves[rows, np.minimum(taken.T[:steps], words.shape[1] - 1)]  # [steps, N, 2H]: the word at its front
        stack = np.zeros((int(depth.max()) + 2, n, 2 * h), leaves.dtype)  # with two empty places below, to look at
        tracker, cell, trackers = np.zeros((n, k), leaves.dtype), np.zeros((n, k), leaves.dtype), []
        top = np.ones(n, int)
        for t in range(steps):
            left, right = stack[[top - 1, top], rows]
            seen = np.concatenate([buffer[t, :, :h], right[:, :h], left[:, :h], tracker], axis=1)
            tracker, cell = layers.lstm_gates(self.track(seen), cell)
            trackers.append(tracker)
            top = depth[:, t] + 1  # a finished sentence, of depth 0, goes on reading and writing below its stack
            stack[top, rows] = buffer[t]
            which = np.flatnonzero(reducing[:, t])
            if len(which):
                stack[top[which], which] = self.reduce(left[which], right[which], tracker[which])
        return stack[2, :, :h], self.move(np.stack(trackers, axis=1))

    def forward_batch(self, batch, mode):
        first, first_moves, second, second_moves = batch.data
        sentences, moves = self.encode(np.concatenate([first, second]), np.concatenate([first_moves, second_moves]))
        p, q = sentences[: len(first)], sentences[len(first) :]
        return {"scores": self.classify(np.concatenate([p, q, np.abs(p - q), p * q], axis=1)), "moves": moves}

    def loss_batch(self, batch, predict):
        """Of the label, and a little of the tracker's guesses of the next move."""
        guesses = predict["moves"]
        moves = np.concatenate([batch.data[1], batch.data[3]])[:, : guesses.shape[1]]
        return layers.softmax_loss(predict["scores"], batch.label[0]) + 0.1 * layers.softmax_loss(
            guesses.reshape(-1, 2), moves.reshape(-1)
        )


class BagOfWords(nn.ModelBase):
    """The same classifier on sums of word vectors: it cannot know the order."""

    def __init__(self, hidden=64, vector=64, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(len(entailment.WORDS), vector)
        self.classify = nn.Sequential(nn.Linear(4 * vector, hidden), nn.ReLU(), nn.Linear(hidden, classes))

    def forward_batch(self, batch, mode):
        p, q = (np.sum(self.embedding(words) * (words != 0)[:, :, None], axis=1) for words in batch.data[::2])
        return {"scores": self.classify(np.concatenate([p, q, np.abs(p - q), p * q], axis=1))}

    def loss_batch(self, batch, predict):
        return layers.softmax_loss(predict["scores"], batch.label[0])


def accuracy(predict, y):
    return nn.metrics.accuracy(predict["scores"], y)


def train(model, count, epochs, length, rate, seed=0):
    """Accuracy on 500 new pairs."""
    data, labels = entailment.dataset(count, seed, length)
    test, test_labels = entailment.dataset(500, seed + 1000, length)
    batches = nn.io.NDArrayIter(data, labels, 32, shuffle=True, seed=seed, last_batch_handle="keep")
    solver = nn.Solver(model, batches, nn.io.NDArrayIter(test, test_labels, 100), update_rule="adam", seed=seed,
                       optim_config={"learning_rate": rate}, num_epochs=epochs, metrics=(accuracy,), clip_norm=5.0,
                       lr_schedule=nn.optim.cosine(epochs * len(batches), 0.05), train_acc_num_samples=None,
                       restore_best=False, print_every=0)  # fmt: skip
    return solver.train()["val_accuracy"][-1]


def main(count=3000, epochs=5, length=20, hidden=64):
    bag = train(BagOfWords(), count, 3 * epochs, length, 2e-3)
    spinn = train(Spinn(hidden), count, epochs, length, 3e-3)
    print(f"accuracy on new pairs: a bag of words {bag:.3f}, SPINN {spinn:.3f}")
    return {"bag": bag, "spinn": spinn}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--hidden", type=int, default=64)
    main(**vars(parser.parse_args()))
