/* Small arrays of numbers: NumPy's own loops, called without NumPy's way to them, which takes most of the time there.

   A ufunc's loop for the operands' dtype is in its public struct (`functions`, `types`). Operands are arrays of one dtype and
   shape, or one is a number; an operation that raises one of the processor's flags is left to NumPy, which warns as the user
   wants it to. */
#pragma once
#include "arrays.hpp"
#include <numpy/ufuncobject.h>
#include <cfenv>

constexpr Py_ssize_t TWICE = 256;    /* elements up to which computing twice is no matter */
constexpr Py_ssize_t LARGEST = 16384; /* elements: more deserve that NumPy lets other threads run */
constexpr Py_ssize_t LARGEST_OF_FUNCTIONS = 1024; /* as functions are slower than operators */
constexpr int FLAGS = FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID;

enum Type { DOUBLE, FLOAT, INT64, BOOL, TYPES };
static PyArray_Descr *small_dtypes[TYPES];
static inline bool numpy_2() { return PyArray_RUNTIME_VERSION >= NPY_2_0_API_VERSION; }
constexpr int item_size(int type) { return type == FLOAT ? 4 : type == BOOL ? 1 : 8; }

struct Side { /* an operand: its elements lie `step` bytes apart, those of a number 0 */
    const char *p;
    npy_intp step;
    union {
        double d;
        float f;
        int64_t l;
        char out[8];
    } number;
};

/* Whether the elements of an array lie in one line, or are all the same one. */
static inline bool in_line(PyObject *a, Py_ssize_t size, npy_intp &step) {
    int nd = fields(a)->nd, flags = fields(a)->flags, moving = 0;
    while (moving < nd && fields(a)->strides[moving] == 0)
        moving++;
    step = moving == nd ? 0 : nd == 1 ? fields(a)->strides[0] : size;
    return (flags & NPY_ARRAY_ALIGNED) && (nd == 1 || moving == nd || (flags & NPY_ARRAY_C_CONTIGUOUS));
}

/* Whether x is a number beside elements of this type; a truth value is left to NumPy. */
static inline bool side_of_number(PyObject *x, int type, Side &s) {
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

/* Whether x is an operand beside array a of this type. */
static inline bool side_of(PyObject *x, PyObject *a, int type, Side &s) {
    if (is_host(x)) {
        if (x != a && (descr(x) != descr(a) || !same_shape(a, x)))
            return false;
        s.p = fields(x)->data;
        return in_line(x, item_size(type), s.step);
    }
    return side_of_number(x, type, s);
}

/* What is known of ufuncs and dtypes that were met: the number of a loop, and how many of the next, not so small calls are
   NumPy's, after one that raised a flag. Others may have the same place. */
struct Known {
    int loop;
    unsigned char left;
};

/* Whether a ufunc's i-th loop is for one or two operands of a dtype. */
static inline bool is_loop(const PyUFuncObject *f, int i, int type) {
    const char *types = f->types + i * f->nargs;
    return types[0] == type && types[f->nin - 1] == type && f->functions[i] != nullptr;
}

/* Find a ufunc's loop for a dtype; whether there is one. */
static inline bool find_loop(const PyUFuncObject *f, int type, Known &known) {
    int i = known.loop;
    if (i < f->ntypes && is_loop(f, i, type))
        return true;
    for (i = 0; i < f->ntypes; i++)
        if (is_loop(f, i, type))
            return known.loop = i, known.left = 0, true;
    return false;
}

static inline Known *loop_of(const PyUFuncObject *f, int type) {
    static Known table[64];
    Known &known = table[(((uintptr_t)f >> 5) + type) % 64];
    return find_loop(f, small_dtypes[type]->type_num, known) ? &known : nullptr;
}

/* The processor's flags, of both its units: NumPy's loops raise some in the old one. */
static inline int raised_flags() {
#if defined(__SSE2_MATH__) && defined(__GNUC__)
    unsigned short old;
    __asm__ volatile("fnstsw %0" : "=a"(old));
    return (old | __builtin_ia32_stmxcsr()) & FLAGS;
#else
    return fetestexcept(FLAGS);
#endif
}

/* Whether f is a ufunc of one or two numbers, with one result. */
static bool is_small(PyObject *f) {
    const PyUFuncObject *u = (PyUFuncObject *)f;
    return Py_IS_TYPE(f, Ufunc) && !u->core_enabled && u->nout == 1 && u->nin <= 2;
}

/* f(a), where b is a as well, or f(a, b), of NumPy's arrays and of numbers: a new array, or `into`, which is a; nothing where
   NumPy must do it. */
static Ref small(const PyUFuncObject *f, PyObject *a, PyObject *b, PyObject *into = nullptr, Py_ssize_t most = LARGEST) {
    PyObject *like = is_host(a) ? a : b;
    Side x, y;
    int type = 0;
    while (type < TYPES && descr(like) != small_dtypes[type])
        type++;
    Py_ssize_t n = size_of(like);
    if (type == TYPES || n > most || fields(like)->nd == 0 || !side_of(a, like, type, x) || !side_of(b, like, type, y))
        return {};
    Known *found = loop_of(f, type);
    if (found == nullptr)
        return {};
    Known &known = *found;
    if (n > TWICE && known.left > 0)
        return --known.left, Ref();
    int loop = known.loop, size = item_size(type);
    double memory[2048]; /* for an array that is written: what came before a flag must be unwritten */
    int result = f->types[loop * f->nargs + f->nin];
    if (into != nullptr && (n * size > (Py_ssize_t)sizeof memory || result != small_dtypes[type]->type_num))
        return {};
    Ref out;
    if (into == nullptr) {
        PyArray_Descr *dtype = result == small_dtypes[type]->type_num ? small_dtypes[type] : result == NPY_BOOL ? small_dtypes[BOOL] : nullptr;
        if (dtype == nullptr)
            return {};
        Py_INCREF(dtype);
        out = made(PyArray_NewFromDescr(Host, dtype, fields(like)->nd, fields(like)->dimensions, nullptr, nullptr, 0, nullptr));
    }
    char *to = into != nullptr ? (char *)memory : fields(out)->data, *operands[] = {(char *)x.p, (char *)y.p, to};
    npy_intp steps[] = {x.step, y.step, result == NPY_BOOL ? 1 : size}, count = n;
    if (f->nin == 1)
        operands[1] = to, steps[1] = steps[2];
    if (raised_flags())
        feclearexcept(FLAGS);
    f->functions[loop](operands, &count, steps, f->data != nullptr ? f->data[loop] : nullptr);
    bool raises = PyErr_Occurred() != nullptr;
    if (raises || raised_flags()) {
        if (raises)
            PyErr_Clear(); /* it will again, in NumPy's words */
        known.left = 100;
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

/* A ufunc that is_small of its operands, of which one must be an array; nothing where NumPy must do it. */
static inline Ref small_result(PyObject *f, PyObject *const *given, Py_ssize_t n) {
    const PyUFuncObject *u = (PyUFuncObject *)f;
    if (n != u->nin || !(is_host(given[0]) || is_host(given[n - 1])))
        return {};
    return small(u, given[0], given[n - 1], nullptr, LARGEST_OF_FUNCTIONS);
}

static void find_small_dtypes() {
    const int types[TYPES] = {NPY_DOUBLE, NPY_FLOAT, NPY_INT64, NPY_BOOL};
    for (int i = 0; i < TYPES; i++)
        small_dtypes[i] = (PyArray_Descr *)made((PyObject *)PyArray_DescrFromType(types[i])).release();
}
