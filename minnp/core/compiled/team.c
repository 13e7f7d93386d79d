/* Threads that share work in C, without the interpreter: matrix products in pieces, an LSTM through all its steps, stencils.

   Optional: without it core/cpu/products.py and npx/cells.py do the same in Python, where each piece
   waits for the interpreter. A piece is what its index says, whichever thread takes it. The caller works too, and waits
   only for helpers that have started. Arrays come as buffers, so this file knows nothing of NumPy. */

#define PY_SSIZE_T_CLEAN
#include <Python.h> /* which defines _GNU_SOURCE */
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define ERRORS (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW)
#define SPIN 200000     /* nanoseconds a thread looks for work, or for the last helper, before it sleeps: what Python takes from
                           one of these calls to the next, when its own memory left the cache meanwhile */
#define PATIENCE 1000000 /* nanoseconds of waiting for a helper that mean that others need its core */
#define MOST 63         /* helpers */
#define NARROW 192       /* columns of a transposed b below which MKL takes thrice the time */
#define OPEN (1 << 30)  /* in `gate`: helpers may still join */

/* ------------------------------------------------------------------ the team */
typedef void (*Work)(void *what, int i);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static atomic_flag busy = ATOMIC_FLAG_INIT;            /* one job at a time: a second caller works alone */
static atomic_int rings, sleeping, gate, next_index;    /* gate: how many helpers are inside, and OPEN */
static pthread_t hands[MOST];
static int hired, last_core; /* last_core: on which the caller was last seen */
static struct { Work work; void *what; int n, helpers; } job;
static int64_t resting_until, factor;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void drain(void) {
    for (int i; (i = atomic_fetch_add(&next_index, 1)) < job.n;)
        job.work(job.what, i);
}

static void *helper(void *unused) {
    for (int seen = 0;;) {
        int64_t until = now() + SPIN;
        while (atomic_load(&rings) == seen && now() < until)
            relax();
        if (atomic_load(&rings) == seen) {
            pthread_mutex_lock(&lock);
            atomic_fetch_add(&sleeping, 1);
            while (atomic_load(&rings) == seen)
                pthread_cond_wait(&bell, &lock);
            atomic_fetch_sub(&sleeping, 1);
            pthread_mutex_unlock(&lock);
        }
        seen = atomic_load(&rings);
        int inside = atomic_load(&gate), joined = 0;
        while (inside & OPEN && (inside & ~OPEN) < job.helpers &&
               !(joined = atomic_compare_exchange_weak(&gate, &inside, inside + 1)))
            ;
        if (!joined) /* the caller was done before this thread woke up */
            continue;
        drain();
        if (atomic_fetch_sub(&gate, 1) == 1) {
            pthread_mutex_lock(&lock);
            pthread_cond_signal(&done);
            pthread_mutex_unlock(&lock);
        }
    }
    return unused;
}

/* Helpers keep off the caller's core: a thread is woken where its waker runs, and it takes the system milliseconds to see
   that another core is idle. */
static void keep_off(void) {
#ifdef __linux__
    int cpu = sched_getcpu();
    cpu_set_t others;
    if (cpu == last_core || cpu < 0 || pthread_getaffinity_np(pthread_self(), sizeof others, &others))
        return;
    last_core = cpu;
    if (CPU_COUNT(&others) > 1)
        CPU_CLR(cpu, &others);
    for (int i = 0; i < hired; i++)
        pthread_setaffinity_np(hands[i], sizeof others, &others);
#endif
}

/* threads do not survive a fork */
static void alone_after_fork(void) {
    pthread_mutex_init(&lock, NULL), pthread_cond_init(&bell, NULL), pthread_cond_init(&done, NULL);
    hired = 0, atomic_store(&rings, 0), atomic_store(&sleeping, 0), atomic_store(&gate, 0), atomic_flag_clear(&busy);
}

/* work(what, i) for i in 0 ... n - 1, on at most so many threads. */
static void share(Work work, void *what, int n, int threads) {
    int helpers = (threads < n ? threads : n) - 1;
    if (helpers <= 0 || atomic_flag_test_and_set(&busy)) {
        for (int i = 0; i < n; i++)
            work(what, i);
        return;
    }
    if (now() < resting_until)
        helpers = 0;
    if (hired < helpers && hired < MOST) {
        sigset_t all, before; /* signals are the interpreter's */
        sigfillset(&all), pthread_sigmask(SIG_SETMASK, &all, &before);
        for (; hired < helpers && hired < MOST && !pthread_create(hands + hired, NULL, helper, NULL); hired++)
            pthread_detach(hands[hired]);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        last_core = -1;
    }
    job.work = work, job.what = what, job.n = n, job.helpers = helpers;
    atomic_store(&next_index, 0), atomic_store(&gate, OPEN);
    if (helpers) {
        keep_off();
        atomic_fetch_add(&rings, 1);
        if (atomic_load(&sleeping)) {
            pthread_mutex_lock(&lock);
            pthread_cond_broadcast(&bell);
            pthread_mutex_unlock(&lock);
        }
    }
    int64_t begun = now();
    drain();
    int64_t worked = now();
    atomic_fetch_and(&gate, ~OPEN);
    while (atomic_load(&gate) && now() < worked + SPIN)
        relax();
    if (atomic_load(&gate)) {
        pthread_mutex_lock(&lock);
        while (atomic_load(&gate))
            pthread_cond_wait(&done, &lock);
        pthread_mutex_unlock(&lock);
    }
    if (helpers) { /* as Patience in core/cpu/threads.py */
        int64_t waited = now() - worked;
        int late = waited > PATIENCE && waited > (worked - begun) / 2;
        factor = !late ? factor / 2 : !factor ? 4 : factor < 256 ? 2 * factor : 256;
        resting_until = late ? now() + factor * waited : 0;
    }
    atomic_flag_clear(&busy);
}

#include "vectors.h"
#define INLINE static inline __attribute__((always_inline))

/* ------------------------------------------------------------------ matrix products */
typedef void (*Gemm)(const char *, const char *, const int64_t *, const int64_t *, const int64_t *, const void *,
                     const void *, const int64_t *, const void *, const int64_t *, const void *, void *,
                     const int64_t *);
typedef int (*Local)(int); /* MKL_Set_Num_Threads_Local: how many threads a call from this one uses; 0: as ever */
typedef struct { char *data; int64_t rows, columns, lead; char flag; } Matrix; /* 'N': dense rows, 'T': dense columns */
typedef struct { Gemm gemm; Local local; int size; } Blas;

static Matrix part(Matrix a, int64_t row, int64_t rows, int64_t column, int64_t columns, int size) {
    a.data += (a.flag == 'N' ? row * a.lead + column : row + column * a.lead) * size;
    a.rows = rows, a.columns = columns;
    return a;
}

#define Real float
#define OF(name) name##_floats
#include "panels.h"
#undef Real
#undef OF
#define Real double
#define OF(name) name##_doubles
#include "panels.h"

/* p, for products with w; 0 if there is no memory. free(p->panels) when it is done with. */
static int pack(Packed_floats *p, Matrix w, int threads) {
    p->kernels = kernels_here_floats(), p->w = w;
    int64_t panels = (w.columns + p->kernels->wide - 1) / p->kernels->wide;
    p->panels = malloc(sizeof(float) * panels * p->kernels->wide * w.rows);
    if (p->panels)
        share(pack_panel_floats, p, (int)panels, threads);
    return p->panels != NULL;
}

/* c = scale * (a @ b) + keep * c on this thread. Fortran's matrices are ours transposed: c^T = b^T a^T. On the machines
   where products.py calls it (little-endian) a routine with short integers reads the lower half. */
static void multiply(Blas blas, Matrix a, Matrix b, Matrix c, double scale, double keep) {
    float scale_f = (float)scale, keep_f = (float)keep;
    if ((keep == 0 || keep == 1) && (blas.size == 4 ? multiply_packed_floats(a, b, c, scale_f, keep == 1)
                                                    : multiply_packed_doubles(a, b, c, scale, keep == 1)))
        return;
    blas.gemm(&b.flag, &a.flag, &c.columns, &c.rows, &a.columns, blas.size == 4 ? (void *)&scale_f : &scale, b.data,
              &b.lead, a.data, &a.lead, blas.size == 4 ? (void *)&keep_f : &keep, c.data, &c.lead);
}

/* Before the products of a piece, and after them: each uses one thread; floating point errors are noted. */
static int enter(Blas blas) {
    feclearexcept(ERRORS);
    return blas.local ? blas.local(1) : 0;
}

static void leave(Blas blas, int before, atomic_int *errors) {
    if (fetestexcept(ERRORS))
        atomic_store(errors, 1);
    if (blas.local)
        blas.local(before);
}

/* A matrix whose elements lie so many bytes apart; 0 if neither its rows nor its columns are dense. */
static int strided(char *data, int64_t rows, int64_t columns, int64_t down, int64_t across, int64_t size, Matrix *m) {
    if ((size != 4 && size != 8) || ((uintptr_t)data | (uintptr_t)down | (uintptr_t)across) % size)
        return 0;
    m->data = data, m->rows = rows, m->columns = columns;
    if (across == size && down >= columns * size)
        return m->lead = down / size, m->flag = 'N';
    if (down == size && across >= rows * size)
        return m->lead = across / size, m->flag = 'T';
    return 0;
}

/* The matrix in the axes from `first` on; 0 if neither its rows nor its columns are dense. */
static int layout(Py_buffer *at, int first, Matrix *m) {
    Py_ssize_t *dims = at->shape + first, *strides = at->strides + first;
    return strided(at->buf, dims[0], dims[1], strides[0], strides[1], at->itemsize, m);
}

static int matrix_of(PyObject *x, Py_buffer *at, Matrix *m, int flags) {
    if (PyObject_GetBuffer(x, at, flags) < 0)
        return 0;
    if (at->ndim == 2 && layout(at, 0, m))
        return 1;
    PyBuffer_Release(at);
    PyErr_SetString(PyExc_ValueError, "a matrix with dense rows or columns is needed");
    return 0;
}

/* keep_to_avx2(flag): that is what the BLAS does on this processor, which has AVX-512. */
static PyObject *keep_to_avx2(PyObject *self, PyObject *flag) {
    without_avx512 = flag == Py_True;
    return Py_NewRef(Py_None);
}

typedef struct { Blas blas; Matrix a, b, c; double scale, keep; int pieces; atomic_int errors; } Product;

static void product_piece(void *what, int i) {
    Product *p = what;
    int slow = p->blas.local && p->b.flag == 'T' && p->c.columns < NARROW * p->pieces && p->c.rows >= 8 * p->pieces;
    int along_rows = p->c.rows >= p->c.columns || slow, size = p->blas.size;
    int64_t length = along_rows ? p->c.rows : p->c.columns;
    int64_t start = i * length / p->pieces, many = (i + 1) * length / p->pieces - start;
    int before = enter(p->blas);
    if (along_rows)
        multiply(p->blas, part(p->a, start, many, 0, p->a.columns, size), p->b,
                 part(p->c, start, many, 0, p->c.columns, size), p->scale, p->keep);
    else
        multiply(p->blas, p->a, part(p->b, 0, p->b.rows, start, many, size),
                 part(p->c, 0, p->c.rows, start, many, size), p->scale, p->keep);
    leave(p->blas, before, &p->errors);
}

/* gemm(routine, local, a, b, c, scale, keep, pieces, threads): c = scale * (a @ b) + keep * c, cut into so many pieces;
   whether there were floating point errors. None, and nothing done, where BLAS does not take a or b as it lies. */
static PyObject *gemm(PyObject *self, PyObject *const *args, Py_ssize_t many) {
    if (many != 9)
        return PyErr_SetString(PyExc_TypeError, "gemm takes 9 arguments"), NULL;
    Product p = {.scale = PyFloat_AsDouble(args[5]), .keep = PyFloat_AsDouble(args[6]), .pieces = (int)PyLong_AsLong(args[7])};
    p.blas = (Blas){(Gemm)PyLong_AsVoidPtr(args[0]), (Local)PyLong_AsVoidPtr(args[1]), 0};
    int threads = (int)PyLong_AsLong(args[8]), held = 0, lies = 1;
    Py_buffer at[3];
    Matrix *m[] = {&p.a, &p.b, &p.c};
    for (; held < 3 && !PyErr_Occurred(); held++) {
        if (PyObject_GetBuffer(args[2 + held], at + held, held == 2 ? PyBUF_STRIDES | PyBUF_WRITABLE : PyBUF_STRIDES) < 0)
            break;
        int dense = at[held].ndim == 2 && layout(at + held, 0, m[held]);
        lies = lies && (dense || held == 2);
    }
    if (!PyErr_Occurred() && lies) {
        p.blas.size = (int)at[2].itemsize;
        if (p.c.flag == 'N' && p.a.rows == p.c.rows && p.b.columns == p.c.columns && p.a.columns == p.b.rows &&
            at[0].itemsize == at[2].itemsize && at[1].itemsize == at[2].itemsize && p.pieces > 0) {
            Py_BEGIN_ALLOW_THREADS
            share(product_piece, &p, p.pieces, threads);
            Py_END_ALLOW_THREADS
        } else
            PyErr_SetString(PyExc_ValueError, "gemm: matrices that do not fit");
    }
    while (held-- > 0)
        PyBuffer_Release(at + held);
    return PyErr_Occurred() ? NULL : lies ? PyBool_FromLong(atomic_load(&p.errors)) : Py_NewRef(Py_None);
}

static Matrix transposed(Matrix a) {
    return (Matrix){a.data, a.columns, a.rows, a.lead, a.flag == 'N' ? 'T' : 'N'};
}

/* What compiled loops multiply with (products.Library): `get` and `set` the number of threads that calls use, where it is
   one number for all; `threads` is how many are ours. */
typedef struct { Gemm gemm; Local local; int (*get)(void); void (*set)(int); int64_t size, *threads; } Library;

/* c [m, n] += a [m, k] @ b [k, n], cut as products.count cuts it; floating point errors are flags as ever. 0, and nothing
   done, where BLAS does not take the matrices as they lie. */
static int64_t add_product(const Library *with, int64_t m, int64_t n, int64_t k, char *a, int64_t a_down,
                           int64_t a_across, char *b, int64_t b_down, int64_t b_across, char *c, int64_t c_down,
                           int64_t c_across) {
    static const int64_t steps[] = {1 << 21, 1 << 27, 1 << 30, 1LL << 32};
    Product p = {.blas = {with->gemm, with->local, (int)with->size}, .scale = 1, .keep = 1, .pieces = 1};
    if (!strided(a, m, k, a_down, a_across, with->size, &p.a) || !strided(b, k, n, b_down, b_across, with->size, &p.b) ||
        !strided(c, m, n, c_down, c_across, with->size, &p.c))
        return 0;
    if (p.c.flag == 'T') {
        Matrix left = p.a;
        p.a = transposed(p.b), p.b = transposed(left), p.c = transposed(p.c);
    }
    for (int i = 0; i < 4 && m * n * k >= steps[i]; i++)
        p.pieces *= 2;
    int64_t most = (m >= n ? m : n) / 8;
    p.pieces = p.pieces < most ? p.pieces : most ? (int)most : 1;
    int met = fetestexcept(ERRORS), before = with->get ? with->get() : 1;
    if (before != 1)
        with->set(1);
    share(product_piece, &p, p.pieces, (int)*with->threads);
    if (before != 1)
        with->set(before);
    if (met | atomic_load(&p.errors))
        feraiseexcept(FE_INVALID);
    return 1;
}

/* ------------------------------------------------------------------ stacks of products */
typedef struct { Blas blas; Matrix m[3]; Py_buffer at[3]; Py_ssize_t many; int pieces; atomic_int errors; } Stack; /* a, b, c */

static void stack_piece(void *what, int i) {
    Stack *s = what;
    int before = enter(s->blas);
    for (Py_ssize_t item = i * s->many / s->pieces; item < (i + 1) * s->many / s->pieces; item++) {
        Matrix m[3];
        for (int j = 0; j < 3; j++) {
            m[j] = s->m[j];
            Py_ssize_t rest = item;
            for (int axis = s->at[j].ndim - 3; axis >= 0; rest /= s->at[j].shape[axis--])
                m[j].data += rest % s->at[j].shape[axis] * s->at[j].strides[axis];
        }
        multiply(s->blas, m[0], m[1], m[2], 1, 0);
    }
    leave(s->blas, before, &s->errors);
}

/* stack(routine, local, a, b, c, pieces, threads): c = a @ b for stacks [..., m, k], [..., k, n] and [..., m, n] of the
   same shape; whether there were floating point errors. None, and nothing done, where BLAS does not take a matrix as it
   lies. */
static PyObject *stack(PyObject *self, PyObject *args) {
    Stack s = {.many = 1};
    PyObject *x[3];
    unsigned long long routine, local;
    int threads, good = 1, held = 0;
    if (!PyArg_ParseTuple(args, "KKOOOii", &routine, &local, x, x + 1, x + 2, &s.pieces, &threads))
        return NULL;
    for (; held < 3; held++) {
        Py_buffer *at = s.at + held;
        if (PyObject_GetBuffer(x[held], at, held == 2 ? PyBUF_STRIDES | PyBUF_WRITABLE : PyBUF_STRIDES) < 0)
            break;
        good = good && at->ndim > 2 && at->ndim == s.at[0].ndim && at->itemsize == s.at[0].itemsize &&
               !memcmp(at->shape, s.at[0].shape, (at->ndim - 2) * sizeof(Py_ssize_t)) &&
               layout(at, at->ndim - 2, s.m + held);
    }
    good = good && held == 3 && s.m[2].flag == 'N' && s.m[0].rows == s.m[2].rows && s.m[1].columns == s.m[2].columns &&
           s.m[0].columns == s.m[1].rows && s.pieces > 0;
    if (good) {
        for (int axis = s.at[0].ndim - 3; axis >= 0; axis--)
            s.many *= s.at[0].shape[axis];
        s.blas = (Blas){(Gemm)(uintptr_t)routine, (Local)(uintptr_t)local, (int)s.at[0].itemsize};
        Py_BEGIN_ALLOW_THREADS
        share(stack_piece, &s, s.pieces, threads);
        Py_END_ALLOW_THREADS
    }
    for (int i = 0; i < held; i++)
        PyBuffer_Release(s.at + i);
    if (PyErr_Occurred())
        return NULL;
    if (!good)
        Py_RETURN_NONE;
    return PyBool_FromLong(atomic_load(&s.errors));
}

/* ------------------------------------------------------------------ functions of a float, in vectors
   As in Cephes (Moshier 1989): at most 2 units in the last place from the true value. */
INLINE float exp_parts(float x, float *power) { /* of |x| <= 88: y with exp(x) = (y + 1) power */
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number, in the lowest bits */
    float n = x * 1.44269504088896341f + shift;
    int32_t bits;
    memcpy(&bits, &n, 4);
    n -= shift;
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float y = 1.9875691500e-4f;
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    int32_t scale = (int32_t)(((uint32_t)bits << 23) + 0x3f800000u);
    memcpy(power, &scale, 4);
    return y * (r * r) + r;
}

INLINE float exp_of(float x) { /* of |x| <= 88 */
    float power, y = exp_parts(x, &power);
    return (y + 1.0f) * power;
}

INLINE float clamped(float x) { return x < -87.0f ? -87.0f : x > 87.0f ? 87.0f : x; } /* NaN stays */
INLINE float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(clamped(-x))); }

INLINE float tanh_of(float x) {
    float size = x < 0 ? -x : x, s = x * x;
    float far = 1.0f - 2.0f / (exp_of(size > 10.0f ? 20.0f : 2.0f * size) + 1.0f);
    float near = -5.70498872745e-3f;
    near = near * s + 2.06390887954e-2f;
    near = near * s - 5.37397155531e-2f;
    near = near * s + 1.33314422036e-1f;
    near = near * s - 3.33332819422e-1f;
    near = near * s * x + x;
    return size < 0.625f ? near : x < 0 ? -far : x != x ? x : far;
}

/* ------------------------------------------------------------------ the LSTM of npx/cells.py, float
   States are [N, H], x [T, N, I], w_h [4 H, H] and w_x [4 H, I], a step's sums before the gates [N, 4 H] and all their
   cotangents d [T, N, 4 H] in the order i, f, g, o; gates [T, 4, N, H] in the order i, f, o, g. */
typedef struct {
    int64_t steps, n, inputs, hidden, lead; /* lead: from row to row of d */
    Packed_floats w_h, w_x;                 /* transposed, but on the way back */
    const float *x, *h0, *c0, *b, *ghs, *gcs;
    float *sums, *hs, *cs, *gates, *tanh_cs, *d, *dh, *dc, *gb, *gx;
    int pieces;
    atomic_int errors;
} Lstm;

FOR_EACH_CPU static void lstm_row(int64_t size, int64_t gap, const float *restrict a, const float *restrict b,
                                  const float *restrict c, float *restrict gate, float *restrict c_next,
                                  float *restrict tanh_c, float *restrict h) {
    INDEPENDENT
    for (int64_t k = 0; k < size; k++) {
        float i = sigmoid_of(a[k] + b[k]), f = sigmoid_of(a[size + k] + b[size + k]);
        float g = tanh_of(a[2 * size + k] + b[2 * size + k]), o = sigmoid_of(a[3 * size + k] + b[3 * size + k]);
        float cell = f * c[k] + i * g, t = tanh_of(cell);
        gate[k] = i, gate[gap + k] = f, gate[2 * gap + k] = o, gate[3 * gap + k] = g;
        c_next[k] = cell, tanh_c[k] = t, h[k] = o * t;
    }
}

static void lstm_piece(void *what, int index) {
    Lstm *l = what;
    int64_t first = index * l->n / l->pieces, many = (index + 1) * l->n / l->pieces - first;
    int64_t size = l->hidden, state = l->n * size;
    const float *h = l->h0 + first * size, *c = l->c0 + first * size;
    feclearexcept(ERRORS);
    for (int64_t t = 0; t < l->steps; t++) {
        int64_t at = t * state + first * size;
        float *sums = l->sums + first * 4 * size;
        times_packed_floats(&l->w_x, l->x + (t * l->n + first) * l->inputs, l->inputs, many, 1, 0, sums, 4 * size);
        times_packed_floats(&l->w_h, h, size, many, 1, 1, sums, 4 * size);
        for (int64_t j = 0; j < many; j++)
            lstm_row(size, state, sums + j * 4 * size, l->b, c + j * size,
                     l->gates + t * 4 * state + (first + j) * size, l->cs + at + j * size, l->tanh_cs + at + j * size,
                     l->hs + at + j * size);
        h = l->hs + at, c = l->cs + at;
    }
    if (fetestexcept(ERRORS))
        atomic_store(&l->errors, 1);
}

/* d: the cotangents of a step's sums; dc and gb are added to, dc becomes the step before's. */
FOR_EACH_CPU static void lstm_back_row(int64_t size, int64_t gap, const float *restrict gate,
                                       const float *restrict tanh_c, const float *restrict before,
                                       const float *restrict dh, float *restrict dc, float *restrict d,
                                       float *restrict gb) {
    INDEPENDENT
    for (int64_t k = 0; k < size; k++) {
        float i = gate[k], f = gate[gap + k], o = gate[2 * gap + k], g = gate[3 * gap + k], t = tanh_c[k];
        float u = dc[k] + dh[k] * o * (1.0f - t * t);
        float di = u * g * i * (1.0f - i), df = u * before[k] * f * (1.0f - f);
        float dg = u * i * (1.0f - g * g), dout = dh[k] * t * o * (1.0f - o);
        d[k] = di, d[size + k] = df, d[2 * size + k] = dg, d[3 * size + k] = dout;
        gb[k] += di, gb[size + k] += df, gb[2 * size + k] += dg, gb[3 * size + k] += dout;
        dc[k] = u * f;
    }
}

FOR_EACH_CPU static void add_to(int64_t size, float *restrict a, const float *restrict b) {
    INDEPENDENT
    for (int64_t k = 0; k < size; k++)
        a[k] += b[k];
}

static void lstm_back_piece(void *what, int index) {
    Lstm *l = what;
    int64_t first = index * l->n / l->pieces, many = (index + 1) * l->n / l->pieces - first;
    int64_t size = l->hidden, state = l->n * size;
    float *dh = l->dh + first * size, *dc = l->dc + first * size;
    feclearexcept(ERRORS);
    for (int64_t t = l->steps - 1; t >= 0; t--) {
        int64_t at = t * state + first * size;
        if (l->ghs)
            add_to(many * size, dh, l->ghs + at);
        if (l->gcs)
            add_to(many * size, dc, l->gcs + at);
        float *d = l->d + (t * l->n + first) * l->lead;
        const float *c = t ? l->cs + at - state : l->c0 + first * size;
        for (int64_t j = 0; j < many; j++)
            lstm_back_row(size, state, l->gates + t * 4 * state + (first + j) * size, l->tanh_cs + at + j * size,
                          c + j * size, dh + j * size, dc + j * size, d + j * l->lead,
                          l->gb + index * 4 * size);
        times_packed_floats(&l->w_h, d, l->lead, many, 1, 0, dh, size);
        if (l->gx)
            times_packed_floats(&l->w_x, d, l->lead, many, 1, 0, l->gx + (t * l->n + first) * l->inputs, l->inputs);
    }
    if (fetestexcept(ERRORS))
        atomic_store(&l->errors, 1);
}

/* Buffers of floats in C order, of so many each; None is no buffer. Those from `written` on are written to. */
static int floats(PyObject *const *args, int n, int written, const int64_t *sizes, Py_buffer *buffers, float **at) {
    for (int i = 0; i < n; i++) {
        if (args[i] == Py_None) {
            at[i] = NULL;
            continue;
        }
        if (PyObject_GetBuffer(args[i], buffers + i, PyBUF_C_CONTIGUOUS | (i >= written ? PyBUF_WRITABLE : 0)) < 0)
            return 0;
        at[i] = buffers[i].buf;
        if (buffers[i].itemsize != 4 || buffers[i].len != sizes[i] * 4) {
            PyErr_SetString(PyExc_ValueError, "an array of another size");
            return 0;
        }
    }
    return 1;
}

/* Parses (threads, pieces, steps, n, inputs, hidden, lead), and runs the work without the interpreter. */
static PyObject *lstm_run(Lstm *l, PyObject *const *args, int backwards) {
    int threads;
    if (!PyArg_ParseTuple(args[0], "iiLLLLL", &threads, &l->pieces, &l->steps, &l->n, &l->inputs, &l->hidden, &l->lead))
        return NULL;
    atomic_init(&l->errors, 0);
    int64_t state = l->n * l->hidden, all = l->steps * state, four = 4 * l->hidden, given = l->steps * l->n * l->inputs;
    int64_t forth[] = {given, state, state, four, 4 * state, all, all, 4 * all, all};
    int64_t back[] = {all, all, state, all, 4 * all, all, l->steps * l->n * l->lead, state, state, l->pieces * four, given};
    float *at[11];
    Py_buffer buffers[13] = {{0}};
    Matrix w_h, w_x;
    int good = floats(args + 3, backwards ? 11 : 9, backwards ? 6 : 4, backwards ? back : forth, buffers, at) &&
               matrix_of(args[1], buffers + 11, &w_h, PyBUF_STRIDES) && matrix_of(args[2], buffers + 12, &w_x, PyBUF_STRIDES);
    if (good && (w_h.rows * w_h.columns != four * l->hidden || w_x.rows * w_x.columns != four * l->inputs)) {
        PyErr_SetString(PyExc_ValueError, "weights of another size");
        good = 0;
    }
    if (good) {
        if (backwards)
            l->ghs = at[0], l->gcs = at[1], l->c0 = at[2], l->cs = at[3], l->gates = at[4], l->tanh_cs = at[5],
            l->d = at[6], l->dh = at[7], l->dc = at[8], l->gb = at[9], l->gx = at[10];
        else
            l->x = at[0], l->h0 = at[1], l->c0 = at[2], l->b = at[3], l->sums = at[4], l->hs = at[5], l->cs = at[6],
            l->gates = at[7], l->tanh_cs = at[8];
        Py_BEGIN_ALLOW_THREADS
        if ((good = pack(&l->w_h, w_h, threads) && pack(&l->w_x, w_x, threads)))
            share(backwards ? lstm_back_piece : lstm_piece, l, l->pieces, threads);
        free(l->w_h.panels), free(l->w_x.panels);
        Py_END_ALLOW_THREADS
        if (!good)
            PyErr_NoMemory();
    }
    for (int i = 0; i < 13; i++)
        if (buffers[i].obj)
            PyBuffer_Release(buffers + i);
    return good ? PyBool_FromLong(atomic_load(&l->errors)) : NULL;
}

/* lstm(sizes, w_h^T, w_x^T, x, h0, c0, b, sums, hs, cs, gates, tanh_cs): `sums` is scratch, and the four behind it are
   filled; whether there were floating point errors. */
static PyObject *lstm(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    Lstm l = {.steps = 0};
    return n == 12 ? lstm_run(&l, args, 0) : (PyErr_SetString(PyExc_TypeError, "lstm takes 12 arguments"), NULL);
}

/* lstm_back(sizes, w_h, w_x, ghs, gcs, c0, cs, gates, tanh_cs, d, dh, dc, gb, gx): d and gx are filled; dh, dc and gb, one
   for each piece, are added to. None is no cotangent, and no gx wanted. */
static PyObject *lstm_back(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    Lstm l = {.steps = 0};
    return n == 14 ? lstm_run(&l, args, 1) : (PyErr_SetString(PyExc_TypeError, "lstm_back takes 14 arguments"), NULL);
}

#include "kernels.h"

#include "conv.h"

/* ------------------------------------------------------------------ compiled kernels */
typedef void (*Kernel)(PyObject *const *arrays, int64_t begin, int64_t end, int64_t part);
typedef struct { Kernel kernel; PyObject *const *arrays; int64_t step, length; } Ranges;

static void range(void *what, int i) {
    Ranges *r = what;
    int64_t begin = i * r->step, end = begin + r->step;
    r->kernel(r->arrays, begin, end < r->length ? end : r->length, i);
}

/* run(address, step, length, threads, *arrays): the machine code there for each range of `step` of `length`. It finds the
   arrays' data itself, and needs no interpreter. */
static PyObject *run(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n < 4)
        return PyErr_SetString(PyExc_TypeError, "run takes 4 arguments, and arrays"), NULL;
    Ranges r = {(Kernel)PyLong_AsVoidPtr(args[0]), args + 4, PyLong_AsLongLong(args[1]), PyLong_AsLongLong(args[2])};
    long threads = PyLong_AsLong(args[3]);
    if (PyErr_Occurred())
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    share(range, &r, (int)((r.length + r.step - 1) / r.step), (int)threads);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

#include "stencil.h"
#include "integers.h"

/* ------------------------------------------------------------------ adding at an index */
typedef struct { char *to, *rows; const int64_t *index; int64_t cells, many, width, size; int pieces; atomic_int errors; } Added;

#define ADD_ROWS(number)                                                                                               \
    for (int64_t i = 0; i < d->many; i++) {                                                                            \
        int64_t cell = d->index[i] < 0 ? d->index[i] + d->cells : d->index[i];                                         \
        number *restrict to = (number *)d->to + cell * d->width + first;                                               \
        const number *restrict from = (const number *)d->rows + i * d->width + first;                                  \
        for (int64_t k = 0; k < n; k++)                                                                                \
            to[k] += from[k];                                                                                          \
    }

static void added_piece(void *what, int i) { /* some columns of all rows: each number is added to in NumPy's order */
    Added *d = what;
    int64_t first = i * d->width / d->pieces, n = (i + 1) * d->width / d->pieces - first;
    feclearexcept(ERRORS);
    if (d->size == 4) {
        ADD_ROWS(float)
    } else {
        ADD_ROWS(double)
    }
    int errors = fetestexcept(ERRORS);
    if (errors)
        atomic_fetch_or(&d->errors, (errors & FE_OVERFLOW ? 1 : 0) | (errors & FE_INVALID ? 2 : 0));
}

/* add_at(to, index, rows, threads): to[index[i]] += rows[i], in this order, of floats to [cells, width], int64 index [n]
   and rows [n, width] in C order; 1 if a sum overflowed, plus 2 if one was invalid. None, and nothing done, for an
   index out of bounds or memory that is shared. */
static PyObject *add_at(PyObject *self, PyObject *args) {
    PyObject *x[3];
    int threads, held = 0;
    if (!PyArg_ParseTuple(args, "OOOi", x, x + 1, x + 2, &threads))
        return NULL;
    Py_buffer at[3];
    for (; held < 3; held++)
        if (PyObject_GetBuffer(x[held], at + held, PyBUF_C_CONTIGUOUS | (held ? 0 : PyBUF_WRITABLE)) < 0)
            break;
    int good = held == 3 && at[0].ndim == 2 && at[1].ndim == 1 && at[2].ndim == 2 && at[1].itemsize == 8 &&
               at[2].shape[0] == at[1].shape[0] && at[2].shape[1] == at[0].shape[1] && at[0].itemsize == at[2].itemsize &&
               (at[0].itemsize == 4 || at[0].itemsize == 8);
    Added d = {.pieces = 1};
    int done = good;
    if (good) {
        d = (Added){at[0].buf, at[2].buf, at[1].buf, at[0].shape[0], at[1].shape[0], at[0].shape[1], at[0].itemsize, 1};
        for (int k = 1; k < 3; k++)
            done = done && ((char *)at[k].buf + at[k].len <= d.to || d.to + at[0].len <= (char *)at[k].buf);
        for (int64_t i = 0; done && i < d.many; i++)
            done = -d.cells <= d.index[i] && d.index[i] < d.cells;
        int64_t most = d.many * d.width >= 1 << 16 ? d.width / 16 : 1;
        d.pieces = most < 1 ? 1 : most < 8 ? (int)most : 8;
    } else if (held == 3)
        PyErr_SetString(PyExc_ValueError, "add_at: arrays that do not fit");
    if (done) {
        Py_BEGIN_ALLOW_THREADS
        share(added_piece, &d, d.pieces, threads);
        Py_END_ALLOW_THREADS
    }
    while (held-- > 0)
        PyBuffer_Release(at + held);
    return !good ? NULL : done ? PyLong_FromLong(atomic_load(&d.errors)) : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"add_at", add_at, METH_VARARGS, NULL},
    {"gemm", (PyCFunction)(void (*)(void))gemm, METH_FASTCALL, NULL},
    {"keep_to_avx2", keep_to_avx2, METH_O, NULL},
    {"stack", stack, METH_VARARGS, NULL},
    {"lstm", (PyCFunction)(void (*)(void))lstm, METH_FASTCALL, NULL},
    {"kernel", (PyCFunction)(void (*)(void))kernel, METH_FASTCALL, NULL},
    {"conv", (PyCFunction)(void (*)(void))conv, METH_FASTCALL, NULL},
    {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, NULL},
    {"stencil", (PyCFunction)(void (*)(void))stencil, METH_FASTCALL, NULL},
#ifdef HAS_INTEGERS
    {"integers", integers, METH_VARARGS, NULL},
#endif
    {"lstm_back", (PyCFunction)(void (*)(void))lstm_back, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "minnp.core.compiled._team", NULL, -1, functions};

PyMODINIT_FUNC PyInit__team(void) {
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && PyModule_AddIntConstant(made, "SOURCE", SOURCE) < 0)
        Py_CLEAR(made);
#ifdef HAS_INTEGERS
    int dots = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512f");
#else
    int dots = 0;
#endif
    if (made != NULL && (PyModule_AddIntConstant(made, "INTEGERS", dots != 0) < 0 ||
                         PyModule_AddObject(made, "add_product", PyLong_FromVoidPtr((void *)add_product)) < 0))
        Py_CLEAR(made);
#ifdef Py_GIL_DISABLED
    if (made != NULL)
        PyUnstable_Module_SetGIL(made, Py_MOD_GIL_NOT_USED);
#endif
    pthread_atfork(NULL, NULL, alone_after_fork);
    return made;
}
