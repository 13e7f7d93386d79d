"""Conway's game of life on a torus: sums of shifted boolean boards."""

SMALL, MODERATE = 20, 600


def run(np, size):
    rng = np.random.default_rng(7)
    board = rng.random((size, size)) < 0.3
    population = []
    for _ in range(30):
        padded = np.pad(board.astype(np.uint8), 1, mode="wrap")
        around = sum(
            padded[1 + dy : 1 + dy + size, 1 + dx : 1 + dx + size]
            for dy in (-1, 0, 1)
            for dx in (-1, 0, 1)
            if (dy, dx) != (0, 0)
        )
        board = (around == 3) | (board & (around == 2))
        population.append(np.count_nonzero(board))
    return board, population, np.packbits(board, axis=1)
