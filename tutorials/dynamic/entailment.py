"""Natural language inference from a grammar: pairs of sentences, and whether the first entails the second.

    premise      the small dog that sees a bird chases the cat
    hypothesis   the cat is chased by the dog                      entailment
                 the dog does not chase the cat                    contradiction
                 the cat chases the dog                            neutral

Which words occur says little: who does what to whom, and what a "not" belongs to, is in the order. Sentences are binary
trees, nested pairs of words, so that the parse is known.
"""

from __future__ import annotations

from typing import Any

import minnp.numpy as np

NOUNS = ("dog", "cat", "bird", "fox", "child", "horse")
ADJECTIVES = ("small", "old", "brown", "happy")
VERBS = ("chases", "sees", "likes", "follows")
BASE = dict(zip(VERBS, ("chase", "see", "like", "follow")))
PARTICIPLE = dict(zip(VERBS, ("chased", "seen", "liked", "followed")))
LABELS = ("entailment", "contradiction", "neutral")
WORDS = (
    "<pad>",
    "the",
    "a",
    "that",
    "does",
    "not",
    "is",
    "by",
    *NOUNS,
    *ADJECTIVES,
    *VERBS,
    *BASE.values(),
    *PARTICIPLE.values(),
)
INDEX = {word: i for i, word in enumerate(WORDS)}
SHIFT, REDUCE = 0, 1

Tree = Any  # a word, or a pair of trees


def phrase(rng: Any, noun: str) -> dict:
    """Something that can be talked about: a noun, perhaps with an adjective, perhaps with what it does."""
    clause = (str(rng.choice(VERBS)), str(rng.choice(NOUNS))) if rng.random() < 0.25 else None
    return {"noun": noun, "adjective": str(rng.choice(ADJECTIVES)) if rng.random() < 0.5 else None, "clause": clause}


def said(about: dict, short: bool = False) -> Tree:
    """The tree of a phrase; short leaves out all but its noun."""
    noun: Tree = about["noun"]
    if about["adjective"] and not short:
        noun = (about["adjective"], noun)
    if about["clause"] and not short:
        verb, other = about["clause"]
        noun = (noun, ("that", (verb, ("a", other))))
    return ("the", noun)


def sentence(subject: Tree, verb: str, target: Tree, passive: bool, negated: bool) -> Tree:
    if passive:
        agent = ("by", subject)
        return (target, ("is", ("not", (PARTICIPLE[verb], agent)) if negated else (PARTICIPLE[verb], agent)))
    return (subject, (("does", "not"), (BASE[verb], target)) if negated else (verb, target))


def pair(rng: Any) -> tuple[Tree, Tree, int]:
    """(premise, hypothesis, label), each label as likely as the others."""
    first, second = (str(noun) for noun in rng.choice(NOUNS, 2, replace=False))
    verb, label = str(rng.choice(VERBS)), int(rng.integers(3))
    subject, target = phrase(rng, first), phrase(rng, second)
    passive, premise_passive = rng.random(2) < 0.5
    premise_negated = bool(rng.random() < 0.5)
    premise = sentence(said(subject), verb, said(target), bool(premise_passive), premise_negated)
    # "the dog" is always the dog of the premise, so that leaving words out changes nothing, "not" or no "not".
    negated = premise_negated == (label != 1)
    if label == 2:
        subject, target = target, subject
        negated = bool(rng.random() < 0.5)
    short = rng.random(2) < 0.5
    hypothesis = sentence(said(subject, bool(short[0])), verb, said(target, bool(short[1])), bool(passive), negated)
    return premise, hypothesis, label


def words(tree: Tree) -> list[str]:
    return [tree] if isinstance(tree, str) else words(tree[0]) + words(tree[1])


def transitions(tree: Tree) -> list[int]:
    """How a shift-reduce parser builds the tree: SHIFT takes the next word, REDUCE joins the last two things."""
    return [SHIFT] if isinstance(tree, str) else [*transitions(tree[0]), *transitions(tree[1]), REDUCE]


def encoded(trees: list[Tree], length: int) -> tuple[Any, Any]:
    """(word numbers [N, length], transitions [N, 2 length - 1]), padded with <pad> and SHIFT."""
    tokens = np.zeros((len(trees), length), int)
    moves = np.full((len(trees), 2 * length - 1), SHIFT)
    for i, tree in enumerate(trees):
        text, plan = words(tree), transitions(tree)
        tokens[i, : len(text)] = [INDEX[word] for word in text]
        moves[i, : len(plan)] = plan
    return tokens, moves


def dataset(count: int, seed: int = 0, length: int = 20) -> tuple[list, Any]:
    """([premise words, premise moves, hypothesis words, hypothesis moves], labels); sentences of at most `length`."""
    rng = np.random.default_rng(seed)
    pairs = []
    while len(pairs) < count:
        premise, hypothesis, label = pair(rng)
        if max(len(words(premise)), len(words(hypothesis))) <= length:
            pairs.append((premise, hypothesis, label))
    premises, hypotheses, labels = zip(*pairs)
    return [*encoded(list(premises), length), *encoded(list(hypotheses), length)], np.array(labels)
