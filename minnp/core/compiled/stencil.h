/* Stages of a stencil, one behind the other over the same rows (core/llvm/tiles.py says what is computed).

   A chunk of the last stage's rows is computed on its own: some rows of the first stage, then of the second, which lags
   as many rows behind as it reads below its own, and so on. So a stage finds in the cache what the one before left there,
   nothing is computed twice within a chunk, and the stages take turns at two arrays: the rows that one writes have been
   read by the one between (time skewing: Wonnacott 2000). */

#define STAGES 64

/* A stage computes `rows` rows of a frame, from `top` on, `inner` bytes from their beginning; a row has `size` bytes. What
   it does not compute is zero, or as in array `old`. Behind it lie its inputs (an array, bytes to its first element,
   bytes a row) and the parts of a row that it does not compute (where, bytes). Arrays are numbered; -1 is the result of
   the stage before, -2 none. */
typedef struct { int64_t kernel, top, rows, inner, size, old, inputs, parts, more[]; } Stage;
typedef struct { int64_t first, end; } Needed;
typedef struct {
    int64_t stages, lag, block, half;
    const Stage *stage[STAGES];
    const Needed *rows; /* for each chunk, of each stage */
    char *out, *room, *given[STAGES];
} Stencil;

/* Rows [low, high) of a stage; row 0 of its frame would lie at `to`, that of the stage before at `before`. */
static void stage_rows(const Stencil *t, const Stage *s, char *to, char *before, int64_t low, int64_t high) {
    struct { PyObject_HEAD char *data; } arrays[STAGES]; /* as far as a kernel looks into an array of NumPy's */
    PyObject *passed[STAGES];
    const int64_t *input = s->more, *parts = s->more + 3 * s->inputs;
    const char *old = s->old == -1 ? before : s->old < 0 ? NULL : t->given[s->old];
    for (int64_t r = low; r < high; r++) {
        int whole = r < s->top || r >= s->top + s->rows;
        for (int64_t k = 0; k < (whole ? 1 : s->parts); k++) {
            int64_t at = r * s->size + (whole ? 0 : parts[2 * k]), n = whole ? s->size : parts[2 * k + 1];
            if (old)
                memcpy(to + at, old + at, n);
            else
                memset(to + at, 0, n);
        }
    }
    int64_t a = low > s->top ? low - s->top : 0, b = high - s->top < s->rows ? high - s->top : s->rows;
    if (a >= b)
        return;
    for (int64_t k = 0; k < s->inputs; k++, input += 3) {
        arrays[k].data = (input[0] < 0 ? before : t->given[input[0]]) + input[1] + a * input[2];
        passed[k] = (PyObject *)&arrays[k];
    }
    arrays[s->inputs].data = to + (s->top + a) * s->size + s->inner;
    passed[s->inputs] = (PyObject *)&arrays[s->inputs];
    ((Kernel)(uintptr_t)s->kernel)(passed, 0, b - a, 0);
}

static void stencil_chunk(void *what, int i) {
    const Stencil *t = what;
    const Needed *rows = t->rows + i * t->stages;
    int64_t last = t->stages - 1, top = rows[0].first, done[STAGES], next[STAGES];
    char *at[STAGES];
    for (int64_t s = 0; s <= last; s++)
        top = rows[s].first < top ? rows[s].first : top;
    for (int64_t s = 0; s <= last; s++) {
        done[s] = rows[s].first;
        at[s] = s == last ? t->out : t->room + (2 * i + s % 2) * t->half - top * t->stage[s]->size;
    }
    while (done[last] < rows[last].end) {
        next[last] = done[last] + t->block < rows[last].end ? done[last] + t->block : rows[last].end;
        for (int64_t s = last - 1; s >= 0; s--)
            next[s] = next[s + 1] + t->lag < rows[s].end ? next[s + 1] + t->lag : rows[s].end;
        for (int64_t s = 0; s <= last; done[s] = next[s] > done[s] ? next[s] : done[s], s++)
            stage_rows(t, t->stage[s], at[s], s ? at[s - 1] : NULL, done[s], next[s]);
    }
}

/* stencil(plan, rows, lag, block, threads, out, room, *given): int64 arrays `plan` (the stages) and `rows` [chunks,
   stages, 2] (from where to where each stage is needed), bytes `room` [chunks, 2, ...] for all results but the last. */
static PyObject *stencil(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    static const int arrays[] = {0, 1, 5, 6};
    Py_buffer at[STAGES + 4];
    int held = 0, many = (int)n - 3, good = n >= 7 && n - 7 <= STAGES;
    for (; good && held < many; held++)
        if (PyObject_GetBuffer(args[held < 4 ? arrays[held] : held + 3], at + held,
                               held == 2 || held == 3 ? PyBUF_STRIDES | PyBUF_WRITABLE : PyBUF_STRIDES) < 0)
            break;
    good = good && held == many && at[1].ndim == 3 && at[3].ndim == 3 && at[1].shape[1] <= STAGES;
    if (good) {
        Stencil t = {at[1].shape[1], PyLong_AsLongLong(args[2]), PyLong_AsLongLong(args[3]), at[3].strides[1],
                     .rows = at[1].buf, .out = at[2].buf, .room = at[3].buf};
        const int64_t *plan = at[0].buf;
        for (int64_t s = 0; s < t.stages; s++, plan += 8 + 3 * t.stage[s - 1]->inputs + 2 * t.stage[s - 1]->parts)
            t.stage[s] = (const Stage *)plan;
        for (int k = 4; k < held; k++)
            t.given[k - 4] = at[k].buf;
        int threads = (int)PyLong_AsLong(args[4]);
        if (!PyErr_Occurred()) {
            Py_BEGIN_ALLOW_THREADS
            share(stencil_chunk, &t, (int)at[1].shape[0], threads);
            Py_END_ALLOW_THREADS
        }
    } else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "stencil: arguments that do not fit");
    while (held-- > 0)
        PyBuffer_Release(at + held);
    return good && !PyErr_Occurred() ? Py_NewRef(Py_None) : NULL;
}
