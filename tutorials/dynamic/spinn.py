# %% [markdown]
# # A net that parses while it reads
#
# Does "the small dog chases the cat" entail "the cat is chased by the dog"? To tell, one must know who does what to
# whom: the order of the words matters. SPINN (Bowman et al. 2016) builds the vector of a sentence along its parse tree.
# A shift-reduce parser keeps a stack of phrase vectors: SHIFT pushes the next word; REDUCE replaces the top two by one,
# made by a TreeLSTM; a second, small LSTM, the tracker, watches the sentence and the stack, and helps.
#
# Every sentence has a tree of its own, yet a batch is one array: a stack is a list of step numbers, and what the steps
# made is kept by step (Bowman's "thin stack"). `h[below, rows]` reads each sentence at its own place, `h[t][which] =
# ...` writes those that REDUCE. That is plain NumPy, and the gradient goes through it.
#
# A bag of words, trained on the same pairs, shows what the order of words is worth.

# %%
import os

import entailment  # the sentences, made by a grammar
import matplotlib.pyplot as plt

import minnp.numpy as np
from minnp import nn, npx
from minnp.nn import layers

QUICK = bool(os.environ.get("QUICK"))  # shorter sentences, for a test of this program

# %% [markdown]
# ## Where everything is on the stacks


# %%
def plan(words, moves):
    """Where everything is at each step, known before any vector is: a stack of step numbers for each sentence.

    (the word at the buffer's front [steps, N], the step that made what lies below the top of the stack [steps, N], the
    sentences that REDUCE [steps] of lists, the step that made the whole sentence [N]); -1 is an empty stack.
    """
    length = 2 * np.sum(words != 0, axis=1) - 1
    steps = int(length.max())
    belows = []
    for sentence in moves[:, :steps].tolist():
        stack, below = [-1, -1], []
        for t, move in enumerate(sentence):
            below.append(stack[-2])
            stack[len(stack) if move == entailment.SHIFT else -2 :] = [t]
        belows.append(below)
    moves, going = moves[:, :steps], np.arange(steps) < length[:, None]
    reducing = [np.flatnonzero(column) for column in ((moves == entailment.REDUCE) & going).T]
    shifts = moves == entailment.SHIFT
    fronts = np.minimum(np.cumsum(shifts, axis=1) - shifts, words.shape[1] - 1)
    return fronts.T, np.array(belows).T, reducing, length - 1


# %% [markdown]
# ## The net


# %%
class Spinn(nn.ModelBase):
    """Batches are [premise words [N, T], moves [N, 2T - 1], hypothesis words, hypothesis moves], labels [N]."""

    def __init__(self, hidden=64, tracking=32, vector=32, classes=3):
        super().__init__()
        self.hidden, self.tracking = hidden, tracking
        self.embedding = nn.Embedding(len(entailment.WORDS), vector)
        self.leaf, self.cell = nn.Linear(vector, hidden), nn.Linear(vector, hidden)
        self.front = nn.Linear(hidden, 4 * tracking)
        self.track = nn.Linear(2 * hidden + tracking, 4 * tracking, bias=False)
        self.compose = nn.Linear(2 * hidden + tracking, 5 * hidden)
        remembering = np.repeat(np.array([0.0, 1.0, 1.0, 0.0, 0.0]), hidden)  # at first both children are kept
        self.compose.param_configs["b"].update(init_rule="custom", init_config={"function": lambda shape: remembering})
        self.move = nn.Linear(tracking, 2)
        self.classify = nn.Sequential(nn.Linear(4 * hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes))

    def encode(self, words, moves):
        """(sentence vectors [N, H], the tracker's scores of each move [N, 2T - 1, 2])."""
        n, k = len(words), self.tracking
        fronts, belows, reducing, last = plan(words, moves)
        rows = np.arange(n)
        vectors = self.embedding(words)
        leaves = self.leaf(vectors)
        front = self.front(leaves)[rows, fronts]  # [steps, N, 4 K]: the tracker's view of the buffer
        # What each step puts on top: a word, until a REDUCE writes over it. The last place is an empty stack.
        empty = np.zeros((1, n, self.hidden), leaves.dtype)
        h = np.concatenate([leaves[rows, fronts], empty])
        c = np.concatenate([self.cell(vectors)[rows, fronts], empty])
        tracker, cell, trackers = np.zeros((n, k), leaves.dtype), np.zeros((n, k), leaves.dtype), []
        for t, (below, which) in enumerate(zip(belows, reducing)):
            seen = np.concatenate([h[below, rows], h[t - 1], tracker], axis=1)
            tracker, cell = npx.lstm_cell(front[t] + self.track(seen), cell)
            trackers.append(tracker)
            if len(which):
                below = below[which]
                pair = np.concatenate([h[below, which], h[t - 1, which], tracker[which]], axis=1)
                h[t][which], c[t][which] = npx.lstm_cell(self.compose(pair), c[below, which], c[t - 1, which])
        return h[last, rows], self.move(np.stack(trackers, axis=1))

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


# %% [markdown]
# ## A bag of words, to compare


# %%
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


# %% [markdown]
# ## The training


# %%
def accuracy(predict, y):
    return nn.metrics.accuracy(predict["scores"], y)


def train(model, count, epochs, length, rate, seed=0):
    """Accuracy on 500 new pairs, epoch by epoch."""
    data, labels = entailment.dataset(count, seed, length)
    test, test_labels = entailment.dataset(500, seed + 1000, length)
    batches = nn.io.NDArrayIter(data, labels, 64, shuffle=True, seed=seed, last_batch_handle="keep")
    solver = nn.Solver(model, batches, nn.io.NDArrayIter(test, test_labels, 100), update_rule="adam", seed=seed,
                       optim_config={"learning_rate": rate}, num_epochs=epochs, metrics=(accuracy,), clip_norm=5.0,
                       lr_schedule=nn.optim.cosine(epochs * len(batches), 0.05), train_acc_num_samples=None,
                       restore_best=False, print_every=0)  # fmt: skip
    return solver.train()["val_accuracy"]


if __name__ == "__main__":  # other programs import the models
    count, epochs, length, seed = (2500, 4, 10, 1) if QUICK else (3000, 5, 20, 0)
    bag = train(BagOfWords(), count, 3 * epochs, length, 2e-3, seed)
    spinn = train(Spinn(), count, epochs, length, 9e-3, seed)
    print(f"accuracy on new pairs: a bag of words {bag[-1]:.3f}, SPINN {spinn[-1]:.3f}")
    assert spinn[-1] > 0.9 > 0.75 > bag[-1]

    figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
    axis.plot(range(1, len(bag) + 1), bag, label="bag of words")
    axis.plot(range(1, len(spinn) + 1), spinn, label="SPINN")
    axis.axhline(1 / 3, linestyle="--", color="grey", label="guessing")
    axis.set(title="Accuracy on new pairs", xlabel="epoch", ylim=(0.3, 1.02))
    axis.legend(loc="center right")
    plt.show()
