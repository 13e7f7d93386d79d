# %% [markdown]
# # 3.2 Captions by an LSTM
#
# A plain recurrent net multiplies its state by the same matrix at every step, so gradients fade or explode. An LSTM keeps
# a cell that is only added to, behind gates (Hochreiter and Schmidhuber 1997).

# %%
import captions
from course import QUICK, check, check_at_least, todo

import minnp.numpy as np
from minnp import grad, nn
from minnp.nn import layers

(pictures, words), (test_pictures, test_words) = captions.load(2000 if QUICK else 3000)
rng = np.random.default_rng(0)
N, T, D, H = 2, 5, 3, 4
x, h0, c0 = rng.standard_normal((N, T, D)), rng.standard_normal((N, H)), rng.standard_normal((N, H))
wx, wh, b = rng.standard_normal((D, 4 * H)), rng.standard_normal((H, 4 * H)), rng.standard_normal(4 * H)

# %% [markdown]
# ## Exercise: one step
# `a = x wx + h wh + b`, [N, 4H], in four parts: `i, f, o = sigmoid` of the first three, `g = tanh` of the last;
# `c' = f c + i g`, `h' = o tanh(c')`.


# %% exercise: step
def step(x, h, c, wx, wh, b):
    """(h', c')."""
    return todo()


# %%
h, c = step(x[:, 0], h0, c0, wx, wh, b)
right_h, right_c = layers.lstm_step(x[:, 0], h0, c0, wx, wh, b)
check("c'", c, right_c, "np.split(a, 4, axis=1) gives the parts; layers.sigmoid is the sigmoid")
check("h'", h, right_h, "h' = o * tanh(c'), with the new cell")

# %% [markdown]
# ## Exercise: why it remembers
# The gradient of the last state's sum with respect to the first input, for T steps, is small in a plain net and need not
# be in an LSTM. Measure it: the norm of d sum(h_T) / d x_0 for both, with `grad`.


# %% exercise: memory
def memory(run, x):
    """The norm of d sum(run(x)[:, -1]) / d x[:, 0]; run maps x [N, T, D] to h [N, T, H]."""
    return todo()


# %%
x = rng.standard_normal((1, 3, 2))
check("memory of a sum", memory(lambda x: np.cumsum(3 * x, axis=1), x), 3 * 2**0.5, "take [:, 0] of the gradient")
long = 0.1 * rng.standard_normal((4, 40, D))
plain = memory(lambda x: layers.rnn_temporal(x, np.zeros((4, H)), 0.3 * wx[:, :H], 0.3 * wh[:, :H], np.zeros(H)), long)
open_gates = np.concatenate([np.zeros(H), np.full(H, 5.0), np.zeros(2 * H)])
lstm = memory(lambda x: layers.lstm_temporal(x, np.zeros((4, H)), 0.3 * wx, 0.3 * wh, open_gates), long)
print(f"after 40 steps: {float(plain):.2e} in a plain net, {float(lstm):.2e} in an LSTM with open forget gates")
check_at_least("how many times more the LSTM remembers", float(lstm / plain), 1000)

# %% [markdown]
# ## Exercise: the model
# The same captions as in the last notebook, with layers as objects. `forward_batch` gets batch.data = [pictures, words in]
# and returns scores [N, T, words]; the state before the first word is `self.picture(pictures)`.


# %%
class Captioner(nn.ModelBase):
    def __init__(self, hidden=96, vector=16):
        super().__init__()
        self.picture = nn.Linear(128, hidden)
        self.embedding = nn.Embedding(len(captions.WORDS), vector)
        self.lstm = nn.LSTM(vector, hidden)
        self.score = nn.Linear(hidden, len(captions.WORDS))

    def forward_batch(self, batch, mode):
        return scores(self, *batch.data)

    def loss_batch(self, batch, predict):
        return layers.temporal_softmax_loss(predict, batch.label[0], batch.label[0] != 0)


# %% exercise: scores
def scores(model, pictures, words):
    """Scores [N, T, words] of the next word after each of words [N, T]."""
    return todo()


# %%
model = Captioner(8).init(0)
check("shape of the scores", scores(model, pictures[:5], words[:5, :-1]).shape, (5, 7, len(captions.WORDS)))
moved = np.array(words[:5, :-1])
moved[:, 4:] = 3
check(
    "no look into the future",
    scores(model, pictures[:5], moved)[:, :4],
    scores(model, pictures[:5], words[:5, :-1])[:, :4],
)

# %% [markdown]
# ## Exercise: sampling
# The most likely word is not the only one. Draw each word from softmax(scores / temperature): near 0 this is the best
# word, at 1 the model's own distribution.


# %% exercise: sample
def sample(model, pictures, rng, temperature=1.0):
    """Word numbers [N, LENGTH]; model.lstm.step(x, h, c) is one step."""
    return todo()


# %%
model = Captioner()
epochs = 16 if QUICK else 25
batches = nn.io.NDArrayIter([pictures, words[:, :-1]], words[:, 1:], 50, shuffle=True, seed=0)
model.fit(batches, epochs=epochs, learning_rate=1e-2, clip_norm=5.0, verbose=False, metrics=(),
          lr_schedule=nn.optim.linear(epochs * len(batches)))  # fmt: skip
true = [captions.decode(s[1:]) for s in test_words]
accuracy = {}
for temperature in (0.01, 1.0):
    said = [captions.decode(s) for s in sample(model, test_pictures, rng, temperature)]
    accuracy[temperature] = sum(a == b for a, b in zip(said, true)) / len(true)
    print(f"temperature {temperature}: says {said[0]!r} where it is {true[0]!r}; {accuracy[temperature]:.3f} are right")
check_at_least("captions that are right in every word", accuracy[0.01], 0.6 if QUICK else 0.8)
