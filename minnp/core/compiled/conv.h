/* Part of team.c. Convolution of images of floats, and its gradients: the windows as rows of a matrix, and one product for
   some images at a time, which threads share. core/cpu/convolutions.py calls it. Images are [C, H, W]; here their channels
   come last, so that what a window sees of a row is one run of memory; so do the weights', [O, down, across, C]. */
typedef struct {
    Blas blas;
    int64_t n, channels, height, width, filters, down, across, rows, columns, by_row, by_column, above, before, skip_rows,
        skip_columns, block; /* rows, columns: of the result; block: so many images at a time */
    float *x, *w, *g, *y, *gx, *gw, *scratch; /* gw, scratch: one for each piece */
    Packed_floats weights, turned;            /* turned: from windows to results */
    int64_t room;
    int pieces;
    atomic_int errors;
} Conv;

/* Runs what follows for each run of a window's elements: `run` of them from `at` on in the image with its padding, and from
   `k` on in the windows' matrix. */
#define EACH_RUN(c, many)                                                                                                   \
    const int64_t across_ = (c)->skip_columns == 1 ? 1 : (c)->across, run = (c)->across / across_ * (c)->channels;            \
    const int64_t high = (c)->height + 2 * (c)->above, wide = (c)->width + 2 * (c)->before;                                  \
    for (int64_t image = 0, k = 0; image < (many); image++)                                                                 \
        for (int64_t i = 0; i < (c)->rows; i++)                                                                             \
            for (int64_t j = 0; j < (c)->columns; j++)                                                                      \
                for (int64_t p = 0; p < (c)->down; p++)                                                                     \
                    for (int64_t q = 0, at = ((image * high + i * (c)->by_row + p * (c)->skip_rows) * wide +                \
                                              j * (c)->by_column) * (c)->channels;                                          \
                         q < across_; q++, at += (c)->skip_columns * (c)->channels, k += run)

FOR_EACH_CPU static void gather(const Conv *c, int64_t many, const float *restrict padded, float *restrict windows) {
    EACH_RUN(c, many)
        INDEPENDENT
        for (int64_t e = 0; e < run; e++)
            windows[k + e] = padded[at + e];
}

FOR_EACH_CPU static void scatter(const Conv *c, int64_t many, const float *restrict windows, float *restrict padded) {
    EACH_RUN(c, many)
        INDEPENDENT
        for (int64_t e = 0; e < run; e++)
            padded[at + e] += windows[k + e];
}

/* Images into their padding, channels last, and back; the padding is left as it is. */
FOR_EACH_CPU static void pad(const Conv *c, int64_t many, float *images, float *padded, int back) {
    int64_t high = c->height + 2 * c->above, wide = c->width + 2 * c->before, size = c->height * c->width;
    for (int64_t image = 0; image < many; image++)
        for (int64_t i = 0; i < c->height; i++) {
            float *row = images + image * c->channels * size + i * c->width;
            float *there = padded + ((image * high + i + c->above) * wide + c->before) * c->channels;
            if (back)
                turn_floats(there, row, c->width, c->channels, c->channels, size);
            else
                turn_floats(row, there, c->channels, c->width, size, c->channels);
        }
}

FOR_EACH_CPU static void turn_images(int64_t many, int64_t rows, int64_t columns, const float *from, float *to) {
    for (int64_t image = 0; image < many; image++, from += rows * columns, to += rows * columns)
        turn_floats(from, to, rows, columns, columns, rows);
}

static Matrix dense(const float *a, int64_t rows, int64_t columns) {
    return (Matrix){(char *)a, rows, columns, columns, 'N'};
}

static void conv_piece(void *what, int index) {
    Conv *c = what;
    int64_t first = index * c->n / c->pieces, end = (index + 1) * c->n / c->pieces;
    int64_t length = c->down * c->across * c->channels, pixels = c->rows * c->columns, size = c->height * c->width * c->channels;
    int64_t whole = (c->height + 2 * c->above) * (c->width + 2 * c->before) * c->channels;
    float *padded = c->scratch + index * c->room, *windows = padded + c->block * whole;
    float *results = windows + c->block * pixels * length, *gw = c->gw ? c->gw + index * c->filters * length : NULL;
    int before = enter(c->blas);
    memset(padded, 0, c->block * whole * 4);
    for (int64_t at = first, many; at < end; at += many) {
        many = end - at < c->block ? end - at : c->block;
        if (c->g)
            turn_images(many, c->filters, pixels, c->g + at * c->filters * pixels, results);
        if (c->y || gw) {
            if (c->gx)
                memset(padded, 0, many * whole * 4);
            pad(c, many, c->x + at * size, padded, 0);
            gather(c, many, padded, windows);
        }
        if (c->y) {
            times_packed_floats(&c->turned, windows, length, many * pixels, 1, 0, results, c->filters);
            turn_images(many, pixels, c->filters, results, c->y + at * c->filters * pixels);
        }
        if (gw)
            multiply(c->blas, (Matrix){(char *)results, c->filters, many * pixels, c->filters, 'T'},
                     dense(windows, many * pixels, length), dense(gw, c->filters, length), 1, at > first);
        if (c->gx) {
            times_packed_floats(&c->weights, results, c->filters, many * pixels, 1, 0, windows, length);
            memset(padded, 0, many * whole * 4);
            scatter(c, many, windows, padded);
            pad(c, many, c->gx + at * size, padded, 1);
        }
    }
    leave(c->blas, before, &c->errors);
}

/* conv(sizes, x, w, g, y, gx, gw, scratch): y is filled, or gx and gw from g; None where there is none. The sizes are
   (routine, local, threads, pieces, room of one's scratch, images at a time), then those of Conv from n on; whether there
   were floating point errors. */
static PyObject *conv(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    Conv c = {.n = 0};
    unsigned long long routine, local;
    int threads;
    if (n != 8)
        return PyErr_SetString(PyExc_TypeError, "conv takes 8 arguments"), NULL;
    if (!PyArg_ParseTuple(args[0], "KKiiLLLLLLLLLLLLLLLLL", &routine, &local, &threads, &c.pieces, &c.room, &c.block, &c.n,
                          &c.channels, &c.height, &c.width, &c.filters, &c.down, &c.across, &c.rows, &c.columns, &c.by_row,
                          &c.by_column, &c.above, &c.before, &c.skip_rows, &c.skip_columns))
        return NULL;
    c.blas = (Blas){(Gemm)(uintptr_t)routine, (Local)(uintptr_t)local, 4};
    int64_t length = c.down * c.across * c.channels, pixels = c.rows * c.columns;
    int64_t images = c.n * c.channels * c.height * c.width, results = c.n * c.filters * pixels;
    int64_t sizes[] = {images, c.filters * length, results, results, images, c.pieces * c.filters * length, c.pieces * c.room};
    int64_t whole = (c.height + 2 * c.above) * (c.width + 2 * c.before) * c.channels;
    int fits = c.pieces > 0 && c.block > 0 && c.room >= c.block * (whole + pixels * (length + c.filters)) &&
               (c.rows - 1) * c.by_row + (c.down - 1) * c.skip_rows < c.height + 2 * c.above &&
               (c.columns - 1) * c.by_column + (c.across - 1) * c.skip_columns < c.width + 2 * c.before;
    if (!fits)
        return PyErr_SetString(PyExc_ValueError, "conv: sizes that do not fit"), NULL;
    float *at[7];
    Py_buffer buffers[7] = {{0}};
    int good = floats(args + 1, 7, 3, sizes, buffers, at);
    if (good) {
        c.x = at[0], c.w = at[1], c.g = at[2], c.y = at[3], c.gx = at[4], c.gw = at[5], c.scratch = at[6];
        Py_BEGIN_ALLOW_THREADS
        good = (!c.gx || pack(&c.weights, dense(c.w, c.filters, length), threads)) &&
               (!c.y || pack(&c.turned, (Matrix){(char *)c.w, length, c.filters, length, 'T'}, threads));
        if (good)
            share(conv_piece, &c, c.pieces, threads);
        free(c.weights.panels), free(c.turned.panels);
        Py_END_ALLOW_THREADS
        if (!good)
            PyErr_NoMemory();
    }
    for (int i = 0; i < 7; i++)
        if (buffers[i].obj)
            PyBuffer_Release(buffers + i);
    return good ? PyBool_FromLong(atomic_load(&c.errors)) : NULL;
}
