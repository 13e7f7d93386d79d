/* References that own, and Python's exceptions as C++ has them.

   A function that returns a `Ref` gives a value, or nothing: that this is not a call for the fast path, and the general
   path in Python must do it. Where a Python exception is set it throws `Raised`. `guarded` stands where the interpreter
   calls: no exception of C++ leaves it. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#define NPY_NO_DEPRECATED_API NPY_1_25_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION /* NumPy 1.26's: built with NumPy 2's headers it serves both */
#include <numpy/arrayobject.h>
#if NPY_ABI_VERSION < 0x02000000
#error "build minnp with the headers of NumPy 2, which serve NumPy 1.26 as well"
#endif
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

struct Raised {}; /* a Python exception is set */

#ifdef __GNUC__ /* what every call does many times */
#define INLINE inline __attribute__((always_inline))
#else
#define INLINE inline
#endif

/* Whether the interpreter ends. A thread that still computes is then taken off its stack (pthread_exit) where it asks for
   the interpreter's lock: destructors run without the lock, so what they hold stays, and no function on the way may be
   noexcept. `near_end`: it may; set by `atexit`, before the interpreter says so. */
static bool near_end;
static INLINE bool ending() {
    if (!near_end)
        return false;
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

/* A reference to an object, or none. */
class Ref {
    PyObject *object = nullptr;

public:
    Ref() = default;
    explicit Ref(PyObject *owned) : object(owned) {}
    Ref(const Ref &other) : object(other.object) { Py_XINCREF(object); }
    Ref(Ref &&other) noexcept : object(std::exchange(other.object, nullptr)) {}
    Ref &operator=(Ref other) noexcept {
        std::swap(object, other.object);
        return *this;
    }
    INLINE ~Ref() {
        if (object != nullptr && !ending())
            Py_DECREF(object);
    }
    operator PyObject *() const & { return object; }
    operator PyObject *() const && = delete; /* it would dangle */
    explicit operator bool() const { return object != nullptr; }
    PyObject *get() const { return object; }
    PyObject *release() { return std::exchange(object, nullptr); }
};

static inline Ref borrow(PyObject *x) {
    Py_XINCREF(x);
    return Ref(x);
}

/* A new reference that an API function gave. */
static inline Ref made(PyObject *x) {
    if (x == nullptr)
        throw Raised{};
    return Ref(x);
}

static inline void check(int status) {
    if (status < 0)
        throw Raised{};
}

static inline bool truth_of(PyObject *x) {
    int yes = PyObject_IsTrue(x);
    check(yes);
    return yes;
}

[[noreturn]] static void fail(PyObject *type, const char *text) {
    PyErr_SetString(type, text);
    throw Raised{};
}

static inline Py_ssize_t integer(PyObject *x) {
    Py_ssize_t n = PyLong_AsSsize_t(x);
    if (n == -1 && PyErr_Occurred())
        throw Raised{};
    return n;
}

/* An element of a dict (borrowed), or null. */
static inline PyObject *found(PyObject *dict, PyObject *key) {
    PyObject *x = PyDict_GetItemWithError(dict, key);
    if (x == nullptr && PyErr_Occurred())
        throw Raised{};
    return x;
}

template <class... Args> static inline Ref call(PyObject *f, const Args &...args) {
    PyObject *const given[] = {static_cast<PyObject *>(args)...};
    return made(PyObject_Vectorcall(f, given, sizeof...(args), nullptr));
}

template <class... Args> static inline Ref call_method(PyObject *name, const Args &...args) {
    PyObject *const given[] = {static_cast<PyObject *>(args)...};
    return made(PyObject_VectorcallMethod(name, given, sizeof...(args), nullptr));
}

template <class... Args> static inline Ref tuple_of(const Args &...args) {
    return made(PyTuple_Pack(sizeof...(args), static_cast<PyObject *>(args)...));
}

static inline Ref attribute(PyObject *x, PyObject *name) { return made(PyObject_GetAttr(x, name)); }
static inline Ref number(Py_ssize_t n) { return made(PyLong_FromSsize_t(n)); }
static inline bool is_list(PyObject *x) { return PyList_CheckExact(x) || PyTuple_CheckExact(x); }

/* Up to LIMIT objects, owned, in a row, as calls take them. */
template <Py_ssize_t LIMIT> struct Objects {
    PyObject *items[LIMIT];
    Py_ssize_t n = 0;
    Objects() = default;
    Objects(const Objects &) = delete;
    ~Objects() { clear(); }
    void add(Ref x) { items[n++] = x.release(); }
    void clear() {
        while (n > 0 && !ending())
            Py_DECREF(items[--n]);
    }
};
constexpr Py_ssize_t MOST = 16;
using Arguments = Objects<MOST>;

template <class F> static inline PyObject *guarded(F &&body) {
    try {
        return body().release();
    } catch (const Raised &) {
        return nullptr;
    }
}

template <class F> static inline auto guarded_status(F &&body) -> decltype(body()) {
    try {
        return body();
    } catch (const Raised &) {
        return -1;
    }
}
