/* Arithmetic and comparisons of small arrays of numbers, where NumPy's way to its loop takes much of the time.

   + - * / of floating-point numbers are exact by IEEE 754, and integers wrap around, so the bits are NumPy's. Operands are
   arrays of one dtype and shape, or one is a number; an operation that raises one of the processor's flags is left to
   NumPy, which warns as the user wants it to. */
#pragma once
#include "arrays.hpp"
#include "vectors.h"
#include <cfenv>
#ifdef __GNUC__
#define OWN_FRAME __attribute__((noinline))
#else
#define OWN_FRAME
#endif

constexpr Py_ssize_t TWICE = 256;    /* elements up to which computing twice is no matter */
constexpr Py_ssize_t LARGEST = 16384; /* elements: more deserve that NumPy lets other threads run */
constexpr Py_ssize_t LARGEST_DOUBLES_COMPARED = LARGEST / 4; /* whose loop compares float64 faster */
constexpr int FLAGS = FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID;

#ifdef __SSE2_MATH__ /* whose flags are these bits of one register: the C library asks the old coprocessor as well */
#include <xmmintrin.h>
static inline int raised_flags() { return _mm_getcsr() & FLAGS; }
static inline void lower_flags() { _mm_setcsr(_mm_getcsr() & ~(unsigned)FLAGS); }
#else
static inline int raised_flags() { return fetestexcept(FLAGS); }
static inline void lower_flags() { feclearexcept(FLAGS); }
#endif

enum Type { DOUBLE, FLOAT, INT64, BOOL, TYPES };
static PyArray_Descr *small_dtypes[TYPES];
constexpr int item_size(int type) { return type == FLOAT ? 4 : type == BOOL ? 1 : 8; }

struct Side { /* an operand: its elements lie `step` bytes apart, those of a number 0 */
    const char *p;
    Py_ssize_t step;
    union {
        double d;
        float f;
        int64_t l;
        char out[8];
    } number;
};

/* Whether the elements of an array lie in one line, or are all the same one. */
static inline bool in_line(PyObject *a, Py_ssize_t size, Py_ssize_t &step) {
    int nd = fields(a)->nd, flags = fields(a)->flags, moving = 0;
    while (moving < nd && fields(a)->strides[moving] == 0)
        moving++;
    step = moving == nd ? 0 : nd == 1 ? fields(a)->strides[0] : size;
    return (flags & NPY_ARRAY_ALIGNED) && (nd == 1 || moving == nd || (flags & NPY_ARRAY_C_CONTIGUOUS));
}

/* Whether x is an operand beside array a of this type; a truth value is left to NumPy. */
static inline bool side_of(PyObject *x, PyObject *a, int type, Side &s) {
    if (is_host(x)) {
        if (x != a && (descr(x) != descr(a) || !same_shape(a, x)))
            return false;
        s.p = fields(x)->data;
        return in_line(x, item_size(type), s.step);
    }
    s.p = s.number.out, s.step = 0;
    if (type == BOOL)
        return false;
    if (type != FLOAT && Py_IS_TYPE(x, small_dtypes[type]->typeobj)) {
        memcpy(s.number.out, (char *)x + sizeof(PyObject), 8);
        return true;
    }
    double v;
    if (PyFloat_CheckExact(x) && type != INT64)
        v = PyFloat_AS_DOUBLE(x);
    else if (PyLong_CheckExact(x)) {
        int beyond;
        long n = PyLong_AsLongAndOverflow(x, &beyond);
        if (beyond || n <= -(1 << 24) || n >= 1 << 24) /* as a float32 or an int32 as well */
            return false;
        if (type == INT64)
            return s.number.l = n, true;
        v = (double)n;
    } else
        return false;
    if (type == DOUBLE)
        return s.number.d = v, true;
    s.number.f = (float)v;
    return v == 0 || (fabs(v) > 1e-30 && fabs(v) < 1e9); /* NumPy 1.26 takes a wider dtype for numbers that do not fit */
}

/* out[i] = f, of x and y of type T, the i-th elements of the sides a and b; the common ways to lie are loops of their own. */
#define LOOP(T, R, X, Y, f) for (Py_ssize_t i = 0; i < n; i++) { T x = X, y = Y; ((R *)out)[i] = f; }
#define EACH(T, R, f) { \
    const char *p = a.p, *q = b.p; \
    const T *u = (const T *)p, *v = (const T *)q; \
    if (a.step == sizeof(T) && b.step == sizeof(T)) LOOP(T, R, u[i], v[i], f) \
    else if (a.step == sizeof(T) && b.step == 0) LOOP(T, R, u[i], *v, f) \
    else if (a.step == 0 && b.step == sizeof(T)) LOOP(T, R, *u, v[i], f) \
    else LOOP(T, R, *(const T *)(p + i * a.step), *(const T *)(q + i * b.step), f) }

/* NEGATIVE, SIZE, BITS_NOT: of one operand, given twice */
enum SmallOperation { PLUS, MINUS, TIMES, OVER, NEGATIVE, SIZE, BITS_AND, BITS_OR, BITS_XOR, BITS_NOT, NONE };
static const int known[TYPES] = {0x3f, 0x3f, 0x3f7, 0x3c0}; /* which of them arrays of each type take */

/* An operation into `out`; whether that is NumPy's result. */
OWN_FRAME FOR_EACH_CPU static bool arithmetic(int op, int type, Py_ssize_t n, const Side &a, const Side &b, char *out) {
    if (type < INT64 && raised_flags())
        lower_flags();
    switch (16 * type + op) {
    case PLUS: EACH(double, double, x + y) break;
    case MINUS: EACH(double, double, x - y) break;
    case TIMES: EACH(double, double, x * y) break;
    case OVER: EACH(double, double, x / y) break;
    case NEGATIVE: EACH(double, double, ((void)y, -x)) break;
    case SIZE: EACH(double, double, ((void)y, fabs(x))) break;
    case 16 + PLUS: EACH(float, float, x + y) break;
    case 16 + MINUS: EACH(float, float, x - y) break;
    case 16 + TIMES: EACH(float, float, x * y) break;
    case 16 + OVER: EACH(float, float, x / y) break;
    case 16 + NEGATIVE: EACH(float, float, ((void)y, -x)) break;
    case 16 + SIZE: EACH(float, float, ((void)y, fabsf(x))) break;
    case 32 + PLUS: EACH(uint64_t, uint64_t, x + y) break; /* whose bits are the signed one's */
    case 32 + MINUS: EACH(uint64_t, uint64_t, x - y) break;
    case 32 + TIMES: EACH(uint64_t, uint64_t, x * y) break;
    case 32 + NEGATIVE: EACH(uint64_t, uint64_t, ((void)y, 0 - x)) break;
    case 32 + SIZE: EACH(uint64_t, uint64_t, ((void)y, x >> 63 ? 0 - x : x)) break;
    case 32 + BITS_AND: EACH(uint64_t, uint64_t, x & y) break;
    case 32 + BITS_OR: EACH(uint64_t, uint64_t, x | y) break;
    case 32 + BITS_XOR: EACH(uint64_t, uint64_t, x ^ y) break;
    case 32 + BITS_NOT: EACH(uint64_t, uint64_t, ((void)y, ~x)) break;
    case 48 + BITS_AND: EACH(char, char, (x != 0) & (y != 0)) break;
    case 48 + BITS_OR: EACH(char, char, (x | y) != 0) break;
    case 48 + BITS_XOR: EACH(char, char, (x != 0) != (y != 0)) break;
    default: EACH(char, char, ((void)y, x == 0)) /* not, of truth values */
    }
    return type >= INT64 || !raised_flags();
}

/* The loops of comparisons; of floats with functions that raise no flags of NaN. */
#define COMPARE(T, LESS, LESS_EQUAL, MORE, MORE_EQUAL, x_, y_) \
    switch (op) { \
    case Py_LT: EACH(T, char, LESS(x_, y_)) break; \
    case Py_LE: EACH(T, char, LESS_EQUAL(x_, y_)) break; \
    case Py_EQ: EACH(T, char, x_ == y_) break; \
    case Py_NE: EACH(T, char, x_ != y_) break; \
    case Py_GT: EACH(T, char, MORE(x_, y_)) break; \
    default: EACH(T, char, MORE_EQUAL(x_, y_)) \
    }
#define BELOW(x, y) (x) < (y)
#define UP_TO(x, y) (x) <= (y)
#define ABOVE(x, y) (x) > (y)
#define FROM(x, y) (x) >= (y)

OWN_FRAME FOR_EACH_CPU static bool comparison(int op, int type, Py_ssize_t n, const Side &a, const Side &b, char *out) {
    switch (type) {
    case DOUBLE: COMPARE(double, std::isless, std::islessequal, std::isgreater, std::isgreaterequal, x, y) break;
    case FLOAT: COMPARE(float, std::isless, std::islessequal, std::isgreater, std::isgreaterequal, x, y) break;
    case INT64: COMPARE(int64_t, BELOW, UP_TO, ABOVE, FROM, x, y) break;
    default: COMPARE(char, BELOW, UP_TO, ABOVE, FROM, (x != 0), (y != 0))
    }
    return true;
}

/* a op b of NumPy's arrays and of numbers: a new array, or `into`, which is a; nothing where NumPy must do it. */
template <bool COMPARES> static Ref small(PyObject *a, PyObject *b, int op, PyObject *into = nullptr) {
    static char left[OVER + 1][2]; /* how many of the next, not so small calls are NumPy's, after one that raised a flag */
    PyObject *like = is_host(a) ? a : b;
    Side x, y;
    int type = 0;
    while (type < TYPES && descr(like) != small_dtypes[type])
        type++;
    if (type == TYPES || fields(like)->nd == 0 || (!COMPARES && !(known[type] >> op & 1)))
        return {};
    Py_ssize_t n = size_of(like), size = COMPARES ? 1 : item_size(type);
    char *wary = n > TWICE && !COMPARES && op <= OVER && type < INT64 ? &left[op][type] : nullptr;
    if (n > (COMPARES && type == DOUBLE ? LARGEST_DOUBLES_COMPARED : LARGEST) || !side_of(a, like, type, x) ||
        !side_of(b, like, type, y))
        return {};
    if (wary != nullptr && *wary > 0)
        return --*wary, Ref();
    double memory[2048]; /* for an array that is written: what came before a flag must be unwritten */
    if (into != nullptr && n * size > (Py_ssize_t)sizeof memory)
        return {};
    Ref out;
    if (into == nullptr) {
        PyArray_Descr *dtype = small_dtypes[COMPARES ? (int)BOOL : type];
        Py_INCREF(dtype);
        out = made(PyArray_NewFromDescr(Host, dtype, fields(like)->nd, fields(like)->dimensions, nullptr, nullptr, 0, nullptr));
    }
    char *to = into != nullptr ? (char *)memory : fields(out)->data;
    if (!(COMPARES ? comparison(op, type, n, x, y, to) : arithmetic(op, type, n, x, y, to))) {
        if (wary != nullptr)
            *wary = 100;
        return {};
    }
    if (into == nullptr)
        return out;
    if (x.step == size)
        memcpy(fields(into)->data, to, n * size);
    else
        for (Py_ssize_t i = 0; i < n; i++)
            memcpy(fields(into)->data + i * x.step, to + i * size, size);
    return borrow(into);
}

/* The operations by NumPy's functions: ufuncs, which rows have as their kernels; comparisons follow NONE. */
constexpr int FUNCTIONS = NONE + 1 + Py_GE + 1;
static const char *const small_names[FUNCTIONS] = {"add", "subtract", "multiply", "divide", "negative", "absolute", "bitwise_and",
                                                   "bitwise_or", "bitwise_xor", "invert", "",
                                                   "less", "less_equal", "equal", "not_equal", "greater", "greater_equal"};
static PyObject *small_functions[FUNCTIONS];

static inline int small_operation(PyObject *function) {
    int op = 0;
    while (op < FUNCTIONS && small_functions[op] != function)
        op++;
    return op == FUNCTIONS ? NONE : op;
}

/* A function of NumPy's of one array, or of two and of numbers, by its operation; nothing where NumPy must do it. */
static Ref small_result(int op, PyObject *const *given, Py_ssize_t n) {
    if (op == NONE || n == 0 || !(is_host(given[0]) || is_host(given[n - 1])))
        return {};
    return op < NONE ? small<false>(given[0], given[n - 1], op) : small<true>(given[0], given[n - 1], op - NONE - 1);
}

static void find_small_operations() {
    const int types[TYPES] = {NPY_DOUBLE, NPY_FLOAT, NPY_INT64, NPY_BOOL};
    for (int i = 0; i < TYPES; i++)
        small_dtypes[i] = (PyArray_Descr *)made((PyObject *)PyArray_DescrFromType(types[i])).release();
    for (int i = 0; i < FUNCTIONS; i++)
        if (i != NONE)
            small_functions[i] = imported("numpy", small_names[i]).release();
}
