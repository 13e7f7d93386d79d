/* Arithmetic and comparisons of little arrays of numbers, where NumPy's way to its loop takes most of the time.

   + - * / of floating-point numbers are exact by IEEE 754, and integers wrap around, so the bits are NumPy's. Operands are
   arrays of one dtype and shape, or one is a number; an operation that raises one of the processor's flags is left to
   NumPy, which warns as the user wants it to. */
#include <fenv.h>

#define LITTLE 256 /* elements, at most */
#define FLAGS (FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID)

typedef union { double d; float f; int64_t l; char out[8]; } Number;
typedef struct { /* an operand: its elements lie `step` bytes apart, those of a number 0 */
    const char *p;
    Py_ssize_t step;
    Number number;
} Side;

static PyObject *(*array_from)(PyTypeObject *, PyObject *, int, const Py_ssize_t *, const Py_ssize_t *, void *, int, PyObject *);
static PyObject *little_dtypes[4]; /* NumPy's float64, float32, int64 and bool */
static PyTypeObject *little_scalars[3];

/* Whether the elements of an array lie in one line. */
static inline int lined(Array *a, Py_ssize_t size, Py_ssize_t *step) {
    *step = a->nd == 1 ? a->strides[0] : size;
    return (a->flags & 0x100 /* NPY_ARRAY_ALIGNED */) && (a->nd == 1 || (a->flags & 1 /* NPY_ARRAY_C_CONTIGUOUS */));
}

/* Whether x is an operand beside array a of dtype number `t`. */
static inline int side_of(PyObject *x, Array *a, int t, Side *s) {
    if (Py_IS_TYPE(x, Host)) {
        Array *b = (Array *)x;
        if (b != a && (b->descr != a->descr || b->nd != a->nd || memcmp(b->dims, a->dims, a->nd * sizeof(Py_ssize_t)) != 0))
            return 0;
        s->p = b->data;
        return lined(b, t == 1 ? 4 : 8, &s->step);
    }
    s->p = s->number.out, s->step = 0;
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

#define EACH(T, R, f) for (Py_ssize_t i = 0; i < n; i++, p += a->step, q += b->step) { T x = *(const T *)p, y = *(const T *)q; ((R *)out)[i] = f; }
#define INTEGERS(op) EACH(int64_t, int64_t, (int64_t)((uint64_t)x op (uint64_t)y))

/* op 0 to 3, + - * /, into `out`; whether that is NumPy's result. */
OWN_FRAME static int little_arithmetic(int op, int t, Py_ssize_t n, const Side *a, const Side *b, char *out) {
    const char *p = a->p, *q = b->p;
    if (t != 2 && fetestexcept(FLAGS))
        feclearexcept(FLAGS);
    switch (4 * t + op) {
    case 0: EACH(double, double, x + y) break;
    case 1: EACH(double, double, x - y) break;
    case 2: EACH(double, double, x * y) break;
    case 3: EACH(double, double, x / y) break;
    case 4: EACH(float, float, x + y) break;
    case 5: EACH(float, float, x - y) break;
    case 6: EACH(float, float, x * y) break;
    case 7: EACH(float, float, x / y) break;
    case 8: INTEGERS(+) return 1;
    case 9: INTEGERS(-) return 1;
    case 10: INTEGERS(*) return 1;
    default: return 0;
    }
    return !fetestexcept(FLAGS);
}

#define COMPARE(T) \
    switch (op) { \
    case Py_LT: EACH(T, char, isless(x, y)) break; \
    case Py_LE: EACH(T, char, islessequal(x, y)) break; \
    case Py_EQ: EACH(T, char, x == y) break; \
    case Py_NE: EACH(T, char, x != y) break; \
    case Py_GT: EACH(T, char, isgreater(x, y)) break; \
    default: EACH(T, char, isgreaterequal(x, y)) \
    }

OWN_FRAME static int little_comparison(int op, int t, Py_ssize_t n, const Side *a, const Side *b, char *out) {
    const char *p = a->p, *q = b->p;
    if (t == 0)
        COMPARE(double)
    else if (t == 1)
        COMPARE(float)
    else
        switch (op) {
        case Py_LT: EACH(int64_t, char, x < y) break;
        case Py_LE: EACH(int64_t, char, x <= y) break;
        case Py_EQ: EACH(int64_t, char, x == y) break;
        case Py_NE: EACH(int64_t, char, x != y) break;
        case Py_GT: EACH(int64_t, char, x > y) break;
        default: EACH(int64_t, char, x >= y)
        }
    return 1;
}

/* a op b of what handles hold and of numbers: a new array, or `into`, which is a; NULL, without an exception, where
   NumPy must do it. */
static PyObject *little(PyObject *a, PyObject *b, int op, int (*run)(int, int, Py_ssize_t, const Side *, const Side *, char *), PyObject *into) {
    Array *of = (Array *)(Py_IS_TYPE(a, Host) ? a : b);
    Side x, y;
    int t = of->descr == little_dtypes[0] ? 0 : of->descr == little_dtypes[1] ? 1 : of->descr == little_dtypes[2] ? 2 : 3;
    Py_ssize_t n = t < 3 && of->nd > 0 ? elements((PyObject *)of) : LITTLE + 1;
    double out[LITTLE];
    if (n > LITTLE || !side_of(a, of, t, &x) || !side_of(b, of, t, &y) || !run(op, t, n, &x, &y, (char *)out))
        return NULL;
    int size = run == little_comparison ? 1 : t == 1 ? 4 : 8;
    PyObject *made = into;
    if (into == NULL) {
        PyObject *dtype = little_dtypes[run == little_comparison ? 3 : t];
        if ((made = array_from(Host, Py_NewRef(dtype), of->nd, of->dims, NULL, NULL, 0, NULL)) == NULL)
            return PyErr_Clear(), NULL;
        memcpy(((Array *)made)->data, out, n * size);
        return made;
    }
    char *p = of->data;
    for (Py_ssize_t i = 0; i < n; i++, p += x.step)
        memcpy(p, (char *)out + i * size, size);
    return made;
}

/* little(NumPy's table of functions, (float64, float32, int64, bool)) */
static PyObject *little_setup(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *table, *d[4];
    if (!PyArg_ParseTuple(args, "O(OOOO)", &table, &d[0], &d[1], &d[2], &d[3]))
        return NULL;
    void **functions = PyCapsule_GetPointer(table, NULL);
    if (functions == NULL)
        return NULL;
    for (int i = 0; i < 4; i++) {
        little_dtypes[i] = Py_NewRef(d[i]);
        if (i < 3)
            little_scalars[i] = ((Dtype *)d[i])->scalar;
    }
    array_from = functions[94]; /* PyArray_NewFromDescr, in every NumPy */
    Py_RETURN_NONE;
}
