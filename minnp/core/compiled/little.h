/* Arithmetic and comparisons of little arrays of numbers, where NumPy's way to its loop takes much of the time.

   + - * / of floating-point numbers are exact by IEEE 754, and integers wrap around, so the bits are NumPy's. Operands are
   arrays of one dtype and shape, or one is a number; an operation that raises one of the processor's flags is left to
   NumPy, which warns as the user wants it to. */
#include <fenv.h>
#include "vectors.h"

#define LITTLE 256     /* elements up to which computing twice is no matter */
#define MIDDLING 16384 /* elements, at most: more deserve that NumPy lets other threads run (whose loop compares float64 faster) */
#define WRITTEN 2048   /* the same in units of 8 bytes of an array that is written: what came before a flag must be unwritten */
#define FLAGS (FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID)

#ifdef __SSE2_MATH__ /* whose flags are these bits of one register: the C library asks the old coprocessor as well */
#include <xmmintrin.h>
static inline int raised(void) { return _mm_getcsr() & FLAGS; }
static inline void lower(void) { _mm_setcsr(_mm_getcsr() & ~(unsigned)FLAGS); }
#else
static inline int raised(void) { return fetestexcept(FLAGS); }
static inline void lower(void) { feclearexcept(FLAGS); }
#endif

#define WIDTH(t) ((t) == 1 ? 4 : (t) == 3 ? 1 : 8) /* bytes of an element of float64, float32, int64, bool */

typedef union { double d; float f; int64_t l; char out[8]; } Number;
typedef struct { /* an operand: its elements lie `step` bytes apart, those of a number 0 */
    const char *p;
    Py_ssize_t step;
    Number number;
} Side;

static PyObject *little_dtypes[4]; /* NumPy's float64, float32, int64 and bool */
static PyTypeObject *little_scalars[3];

/* Whether the elements of an array lie in one line. */
static inline int lined(Array *a, Py_ssize_t size, Py_ssize_t *step) {
    *step = a->nd == 1 ? a->strides[0] : size;
    return (a->flags & NPY_ARRAY_ALIGNED) && (a->nd == 1 || (a->flags & NPY_ARRAY_C_CONTIGUOUS));
}

/* Whether x is an operand beside array a of dtype number `t`; a truth value is left to NumPy. */
static inline int side_of(PyObject *x, Array *a, int t, Side *s) {
    if (Py_IS_TYPE(x, Host)) {
        Array *b = (Array *)x;
        if (b != a && (b->descr != a->descr || !same_shape(a, b)))
            return 0;
        s->p = b->data;
        return lined(b, WIDTH(t), &s->step);
    }
    s->p = s->number.out, s->step = 0;
    if (t == 3)
        return 0;
    if (t != 1 && Py_IS_TYPE(x, little_scalars[t])) {
        memcpy(s->number.out, (char *)x + sizeof(PyObject), 8);
        return 1;
    }
    double v;
    if (PyFloat_CheckExact(x) && t != 2)
        v = PyFloat_AS_DOUBLE(x);
    else if (PyLong_CheckExact(x)) {
        int beyond;
        long n = PyLong_AsLongAndOverflow(x, &beyond);
        if (beyond || n <= -(1 << 24) || n >= 1 << 24) /* as a float32 or an int32 as well */
            return 0;
        if (t == 2)
            return s->number.l = n, 1;
        v = (double)n;
    } else
        return 0;
    if (t == 0)
        return s->number.d = v, 1;
    s->number.f = (float)v;
    return v == 0 || (fabs(v) > 1e-30 && fabs(v) < 1e9); /* NumPy 1.26 takes a wider dtype for numbers that do not fit */
}

#define LOOP(T, R, X, Y, f) for (Py_ssize_t i = 0; i < n; i++) { T x = X, y = Y; ((R *)out)[i] = f; }
#define EACH(T, R, f) { \
    const T *u = (const T *)p, *v = (const T *)q; \
    if (a->step == sizeof(T) && b->step == sizeof(T)) LOOP(T, R, u[i], v[i], f) \
    else if (a->step == sizeof(T) && b->step == 0) LOOP(T, R, u[i], *v, f) \
    else if (a->step == 0 && b->step == sizeof(T)) LOOP(T, R, *u, v[i], f) \
    else LOOP(T, R, *(const T *)(p + i * a->step), *(const T *)(q + i * b->step), f) }

enum { PLUS, MINUS, TIMES, OVER, MINUS_IT, SIZE_OF_IT, BOTH, EITHER, ONE_OF, NOT_IT }; /* the last of each kind take one operand, twice */
static const int known[] = {0x3f, 0x3f, 0x3f7, 0x3c0}; /* which of them arrays of each dtype take */

/* An operation into `out`; whether that is NumPy's result. */
OWN_FRAME FOR_EACH_CPU static int little_arithmetic(int op, int t, Py_ssize_t n, const Side *a, const Side *b, char *restrict out) {
    const char *p = a->p, *q = b->p;
    if (t < 2 && raised())
        lower();
    switch (16 * t + op) {
    case PLUS: EACH(double, double, x + y) break;
    case MINUS: EACH(double, double, x - y) break;
    case TIMES: EACH(double, double, x * y) break;
    case OVER: EACH(double, double, x / y) break;
    case MINUS_IT: EACH(double, double, ((void)y, -x)) break;
    case SIZE_OF_IT: EACH(double, double, ((void)y, fabs(x))) break;
    case 16 + PLUS: EACH(float, float, x + y) break;
    case 16 + MINUS: EACH(float, float, x - y) break;
    case 16 + TIMES: EACH(float, float, x * y) break;
    case 16 + OVER: EACH(float, float, x / y) break;
    case 16 + MINUS_IT: EACH(float, float, ((void)y, -x)) break;
    case 16 + SIZE_OF_IT: EACH(float, float, ((void)y, fabsf(x))) break;
    case 32 + PLUS: EACH(uint64_t, uint64_t, x + y) break; /* whose bits are the signed one's */
    case 32 + MINUS: EACH(uint64_t, uint64_t, x - y) break;
    case 32 + TIMES: EACH(uint64_t, uint64_t, x * y) break;
    case 32 + MINUS_IT: EACH(uint64_t, uint64_t, ((void)y, -x)) break;
    case 32 + SIZE_OF_IT: EACH(uint64_t, uint64_t, ((void)y, x >> 63 ? -x : x)) break;
    case 32 + BOTH: EACH(uint64_t, uint64_t, x & y) break;
    case 32 + EITHER: EACH(uint64_t, uint64_t, x | y) break;
    case 32 + ONE_OF: EACH(uint64_t, uint64_t, x ^ y) break;
    case 32 + NOT_IT: EACH(uint64_t, uint64_t, ((void)y, ~x)) break;
    case 48 + BOTH: EACH(char, char, (x != 0) & (y != 0)) break;
    case 48 + EITHER: EACH(char, char, (x | y) != 0) break;
    case 48 + ONE_OF: EACH(char, char, (x != 0) != (y != 0)) break;
    default: EACH(char, char, ((void)y, x == 0)) /* not, of truth values */
    }
    return t >= 2 || !raised();
}

#define COMPARE(T, LESS, LESSEQUAL, MORE, MOREEQUAL, x_, y_) \
    switch (op) { \
    case Py_LT: EACH(T, char, LESS(x_, y_)) break; \
    case Py_LE: EACH(T, char, LESSEQUAL(x_, y_)) break; \
    case Py_EQ: EACH(T, char, x_ == y_) break; \
    case Py_NE: EACH(T, char, x_ != y_) break; \
    case Py_GT: EACH(T, char, MORE(x_, y_)) break; \
    default: EACH(T, char, MOREEQUAL(x_, y_)) \
    }
#define FLOATS(T) COMPARE(T, isless, islessequal, isgreater, isgreaterequal, x, y) /* which raise nothing of NaN */
#define BELOW(x, y) (x) < (y)
#define UP_TO(x, y) (x) <= (y)
#define ABOVE(x, y) (x) > (y)
#define FROM(x, y) (x) >= (y)
#define WHOLE_NUMBERS(T, x_, y_) COMPARE(T, BELOW, UP_TO, ABOVE, FROM, x_, y_)

OWN_FRAME FOR_EACH_CPU static int little_comparison(int op, int t, Py_ssize_t n, const Side *a, const Side *b, char *restrict out) {
    const char *p = a->p, *q = b->p;
    if (t == 0)
        FLOATS(double)
    else if (t == 1)
        FLOATS(float)
    else if (t == 2)
        WHOLE_NUMBERS(int64_t, x, y)
    else
        WHOLE_NUMBERS(char, (x != 0), (y != 0))
    return 1;
}

/* a op b of what handles hold and of numbers: a new array, or `into`, which is a; NULL, without an exception, where
   NumPy must do it. */
static PyObject *little(PyObject *a, PyObject *b, int op, int (*run)(int, int, Py_ssize_t, const Side *, const Side *, char *), PyObject *into) {
    static char left[OVER + 1][2]; /* how many of the next calls that are not so little are NumPy's, after one that raised a flag */
    Array *of = (Array *)(Py_IS_TYPE(a, Host) ? a : b);
    Side x, y;
    int t = 0, compares = run == little_comparison;
    while (t < 4 && DESCR(of) != little_dtypes[t])
        t++;
    if (t == 4 || of->nd == 0 || (!compares && !(known[t] >> op & 1)))
        return NULL;
    Py_ssize_t n = elements((PyObject *)of), size = compares ? 1 : WIDTH(t);
    char *wary = n > LITTLE && !compares && op <= OVER && t < 2 ? &left[op][t] : NULL;
    if (n > (compares && t == 0 ? MIDDLING / 4 : MIDDLING) || !side_of(a, of, t, &x) || !side_of(b, of, t, &y))
        return NULL;
    if (wary != NULL && *wary > 0)
        return --*wary, NULL;
    double out[WRITTEN];
    PyObject *made = into;
    if (into != NULL ? n * size > (Py_ssize_t)sizeof out :
        (made = PyArray_NewFromDescr(Host, (PyArray_Descr *)Py_NewRef(little_dtypes[compares ? 3 : t]), of->nd, of->dimensions, NULL, NULL, 0, NULL)) == NULL)
        return PyErr_Clear(), NULL;
    if (!run(op, t, n, &x, &y, into != NULL ? (char *)out : ((Array *)made)->data)) {
        if (wary != NULL)
            *wary = 100;
        if (into == NULL)
            Py_DECREF(made);
        return NULL;
    }
    if (into != NULL && x.step == size)
        memcpy(of->data, out, n * size);
    else if (into != NULL)
        for (Py_ssize_t i = 0; i < n; i++)
            memcpy(of->data + i * x.step, (char *)out + i * size, size);
    return made;
}

/* NumPy's dtypes; -1 with an exception. */
static int little_setup(void) {
    const int types[] = {NPY_DOUBLE, NPY_FLOAT, NPY_INT64, NPY_BOOL};
    for (int i = 0; i < 4; i++) {
        if ((little_dtypes[i] = (PyObject *)PyArray_DescrFromType(types[i])) == NULL)
            return -1;
        if (i < 3)
            little_scalars[i] = ((Dtype *)little_dtypes[i])->typeobj;
    }
    return 0;
}
