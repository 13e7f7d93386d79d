/* Part of team.c. Products of 8-bit integers, with the processor's instructions that add up four at a time (AVX512-VNNI).
   The matrix is packed once, in panels of 64 columns: [columns / 64, depth / 4, 64, 4]. Sums are exact. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(_WIN32)
#include <immintrin.h>
#define HAS_INTEGERS 1
#define VNNI __attribute__((target("avx512f,avx512vnni")))
#define ACROSS 64 /* columns of a panel */
#define DOWN 6    /* rows of a tile: with four registers each, all that there are */
#define QUADS 512 /* of the depth at a time: a panel of it stays in the second cache */

typedef struct {
    const uint8_t *q;
    const int8_t *panels;
    const int32_t *less; /* of each column, what the zero point added to it */
    const float *scales, *bias;
    float *y;
    int64_t rows, depth, columns;
    int relu;
    atomic_int failed;
} Integers;

/* sums [many, 64] = q [many, 4 quads] @ panel, added to what they were if keep */
static inline __attribute__((always_inline)) VNNI void dot_rows(const uint8_t *q, int64_t lead, const int8_t *panel, int64_t quads,
                                                               int32_t *sums, const int many, int keep) {
    __m512i sum[DOWN][4];
    _Pragma("GCC unroll 8")
    for (int i = 0; i < many; i++)
        for (int j = 0; j < 4; j++)
            sum[i][j] = keep ? _mm512_loadu_si512(sums + i * ACROSS + j * 16) : _mm512_setzero_si512();
    for (int64_t k = 0; k < quads; k++, panel += 4 * ACROSS) {
        __m512i right[4];
        for (int j = 0; j < 4; j++)
            right[j] = _mm512_loadu_si512(panel + 64 * j);
        _Pragma("GCC unroll 8")
        for (int i = 0; i < many; i++) {
            int32_t four;
            memcpy(&four, q + i * lead + 4 * k, 4);
            __m512i left = _mm512_set1_epi32(four);
            for (int j = 0; j < 4; j++)
                sum[i][j] = _mm512_dpbusd_epi32(sum[i][j], left, right[j]);
        }
    }
    _Pragma("GCC unroll 8")
    for (int i = 0; i < many; i++)
        for (int j = 0; j < 4; j++)
            _mm512_storeu_si512(sums + i * ACROSS + j * 16, sum[i][j]);
}

static VNNI void integers_panel(void *what, int index) { /* 64 columns of all rows */
    Integers *d = what;
    int32_t *sums = malloc(sizeof(int32_t) * ACROSS * d->rows);
    if (!sums) {
        atomic_store(&d->failed, 1);
        return;
    }
    for (int64_t first = 0; first < d->depth / 4; first += QUADS) {
        int64_t quads = d->depth / 4 - first < QUADS ? d->depth / 4 - first : QUADS, row = 0;
        const int8_t *panel = d->panels + (index * (d->depth / 4) + first) * 4 * ACROSS;
        const uint8_t *q = d->q + 4 * first;
        for (; row + DOWN <= d->rows; row += DOWN)
            dot_rows(q + row * d->depth, d->depth, panel, quads, sums + row * ACROSS, DOWN, first > 0);
        for (; row < d->rows; row++)
            dot_rows(q + row * d->depth, d->depth, panel, quads, sums + row * ACROSS, 1, first > 0);
    }
    __mmask16 there[4];
    __m512i less[4];
    __m512 scale[4], bias[4];
    int64_t column = (int64_t)index * ACROSS;
    for (int j = 0; j < 4; j++) {
        int64_t left = d->columns - column - 16 * j;
        there[j] = left >= 16 ? 0xffff : left > 0 ? (__mmask16)((1 << left) - 1) : 0;
        less[j] = _mm512_maskz_loadu_epi32(there[j], d->less + column + 16 * j);
        scale[j] = _mm512_maskz_loadu_ps(there[j], d->scales + column + 16 * j);
        bias[j] = d->bias ? _mm512_maskz_loadu_ps(there[j], d->bias + column + 16 * j) : _mm512_setzero_ps();
    }
    for (int64_t row = 0; row < d->rows; row++) /* whole rows of the panel: each may lie in a page of its own */
        for (int j = 0; j < 4; j++) {
            __m512i sum = _mm512_sub_epi32(_mm512_loadu_si512(sums + row * ACROSS + 16 * j), less[j]);
            __m512 y = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale[j]);
            __asm__("" : "+v"(y)); /* rounded, as NumPy's product is, before the sum */
            if (d->bias)
                y = _mm512_add_ps(y, bias[j]);
            if (d->relu)
                y = _mm512_max_ps(_mm512_setzero_ps(), y); /* NaN stays NaN */
            _mm512_mask_storeu_ps(d->y + row * d->columns + column + 16 * j, there[j], y);
        }
    free(sums);
}

/* integers(q, panels, less, scales, bias or None, y, relu, threads): y [rows, columns] = (q [rows, depth] @ panels - less)
   * scales + bias, all in C order. */
static PyObject *integers(PyObject *self, PyObject *args) {
    PyObject *x[6];
    int relu, threads, held = 0;
    if (!PyArg_ParseTuple(args, "OOOOOOii", x, x + 1, x + 2, x + 3, x + 4, x + 5, &relu, &threads))
        return NULL;
    Py_buffer at[6] = {{0}};
    static const int sizes[] = {1, 1, 4, 4, 4, 4};
    for (; held < 6; held++)
        if (x[held] != Py_None && PyObject_GetBuffer(x[held], at + held, PyBUF_C_CONTIGUOUS | (held == 5 ? PyBUF_WRITABLE : 0)) < 0)
            break;
    int good = held == 6 && at[0].ndim == 2 && at[5].ndim == 2;
    for (int k = 0; good && k < 6; k++)
        good = at[k].obj ? at[k].itemsize == sizes[k] : k == 4;
    Integers d = {.relu = relu};
    if (good) {
        d.q = at[0].buf, d.panels = at[1].buf, d.less = at[2].buf, d.scales = at[3].buf, d.bias = at[4].buf, d.y = at[5].buf;
        d.rows = at[0].shape[0], d.depth = at[0].shape[1], d.columns = at[5].shape[1];
        int64_t panels = (d.columns + ACROSS - 1) / ACROSS, vector = 4 * d.columns;
        good = at[5].shape[0] == d.rows && d.depth % 4 == 0 && at[1].len == panels * ACROSS * d.depth && at[2].len == vector &&
               at[3].len == vector && (!d.bias || at[4].len == vector);
        if (good) {
            Py_BEGIN_ALLOW_THREADS
            share(integers_panel, &d, (int)panels, threads);
            Py_END_ALLOW_THREADS
        }
    }
    for (int k = 0; k < 6; k++)
        if (at[k].obj)
            PyBuffer_Release(at + k);
    if (held == 6 && !good)
        PyErr_SetString(PyExc_ValueError, "integers: arrays that do not fit");
    else if (good && atomic_load(&d.failed))
        good = 0, PyErr_NoMemory();
    return good ? Py_NewRef(Py_None) : NULL;
}
#endif
