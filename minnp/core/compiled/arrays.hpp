/* Arrays of ours as memory: their fields, how they are made and freed, and what a value is. */
#pragma once
#include "bindings.hpp"

/* The public struct of NumPy's headers. Its fields are set here: an array of ours is a view of the NumPy array it holds. */
using Fields = PyArrayObject_fields;
static inline Fields *fields(PyObject *a) { return (Fields *)a; }
static inline PyArray_Descr *descr(PyObject *a) { return fields(a)->descr; }
static inline PyObject *dtype_of_array(PyObject *a) { return (PyObject *)fields(a)->descr; }
static inline bool is_host(PyObject *x) { return Py_IS_TYPE(x, Host); }
static inline bool is_ours(PyObject *x) { return Py_IS_TYPE(x, Ours) || Py_IS_TYPE(x, Virtual); }

static inline PyObject *&slot(PyObject *x, Py_ssize_t at) { return *(PyObject **)((char *)x + at); }

/* A slot of an array of ours: those of a VirtualArray lie in the same order, but without NumPy's fields before them. */
static Py_ssize_t numpys_fields;
static inline PyObject *&field(PyObject *h, Py_ssize_t at) { return slot(h, at - (Py_IS_TYPE(h, Ours) ? 0 : numpys_fields)); }

static bool ready; /* whether all of minnp is there */

/* Whether something watches or redirects calls. */
static inline bool busy() { return slot(state, state_busy) != slot(state, state_written); }

/* Whether something watches or redirects calls of NumPy's functions on NumPy's memory, which a policy of NumPy alone does not. */
static inline bool host_busy() { return slot(state, state_busy) != slot(state, state_on_host); }

/* Whether there are tapes, which a write must ask. */
static inline bool taped() {
    PyObject *tapes = slot(state, state_tapes);
    return tapes == nullptr || !PyDict_CheckExact(tapes) || PyDict_GET_SIZE(tapes) != 0;
}

static inline Py_ssize_t size_of(PyObject *a) {
    Py_ssize_t n = 1;
    for (int i = 0; i < fields(a)->nd; i++)
        n *= fields(a)->dimensions[i];
    return n;
}
static inline Py_ssize_t bytes_of(PyObject *a) { return size_of(a) * PyDataType_ELSIZE(descr(a)); }

/* An array without axes may have no list of them, which memcmp does not take. */
static inline bool same_shape(PyObject *a, PyObject *b) {
    int nd = fields(a)->nd;
    return nd == fields(b)->nd &&
           (nd == 0 || memcmp(fields(a)->dimensions, fields(b)->dimensions, nd * sizeof(npy_intp)) == 0);
}

/* Whether an array is writeable. NumPy warns where it wants to; where that raises, it will again when it is asked to write. */
static inline bool may_write(PyObject *a) {
    if (!(fields(a)->flags & NPY_ARRAY_WRITEABLE))
        return false;
    bool writeable = PyArray_FailUnlessWriteable((PyArrayObject *)a, "assignment destination") == 0;
    if (!writeable)
        PyErr_Clear();
    return writeable;
}

/* Whether x is of one of the types in a set; `last` is the one found last. */
static inline bool among(PyObject *set, PyObject *x, PyTypeObject *&last) {
    if (Py_IS_TYPE(x, last))
        return true;
    int is = PySet_Contains(set, (PyObject *)Py_TYPE(x));
    check(is);
    if (is)
        last = Py_TYPE(x);
    return is;
}

static inline bool is_number(PyObject *x) {
    static PyTypeObject *last;
    return PyFloat_CheckExact(x) || PyLong_CheckExact(x) || among(numbers, x, last);
}

static inline bool is_python_number(PyObject *x) {
    return PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyComplex_CheckExact(x) || PyBool_Check(x);
}

/* Whether NumPy may be given x as it is. */
static inline bool is_plain(PyObject *x) {
    static PyTypeObject *last;
    return PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyBool_Check(x) || x == Py_None || PyUnicode_CheckExact(x) ||
           among(plain, x, last);
}

/* ------------------------------------------------------------------ what a value is, decided once per call */
enum class Kind { host, number, traced, device, other };

/* What an argument holds (borrowed): a NumPy array, a number, a tracer, a buffer of a device, or something else. */
struct Value {
    Kind kind;
    PyObject *object;
    bool on_host() const { return kind <= Kind::number; }
    bool is_array() const { return kind == Kind::host; }
    bool is_virtual() const { return kind == Kind::traced || kind == Kind::device || object == nullptr; }
};

/* The NumPy array of an array of ours (borrowed), also of a view of one that was written under a trace; or null. */
static INLINE PyObject *host_of(PyObject *h) {
    PyObject *a = field(h, host_at);
    if (a == nullptr && Py_IS_TYPE(h, Ours)) { /* NumPy made it */
        call(take_over, h);
        a = field(h, host_at);
    }
    PyObject *root = field(h, root_at);
    if (a == nullptr || !is_host(a))
        return nullptr;
    return root == nullptr || root == Py_None || field(root, host_at) != Py_None ? a : nullptr;
}

/* The tracer or buffer of an array of ours (borrowed); null where it has neither, or its root was written since. */
static inline PyObject *virtual_of(PyObject *h) {
    if (field(h, host_at) != Py_None)
        return nullptr;
    PyObject *v = field(h, value_at), *root = field(h, root_at);
    if (v == nullptr || root == nullptr || !(Py_IS_TYPE(v, Buffer) || Py_IS_TYPE(v, Tracer)))
        return nullptr;
    return root == Py_None || (field(root, host_at) == Py_None && field(h, seen_at) == field(root, value_at)) ? v : nullptr;
}

static INLINE Value value_of(PyObject *x) {
    if (is_ours(x)) {
        if (PyObject *a = host_of(x))
            return {Kind::host, a};
        x = virtual_of(x);
        return x == nullptr ? Value{Kind::other, x} : Value{Py_IS_TYPE(x, Tracer) ? Kind::traced : Kind::device, x};
    }
    if (is_host(x))
        return {Kind::host, x};
    if (x == Py_None || is_list(x) || PyUnicode_CheckExact(x))
        return {Kind::other, x};
    if (is_number(x))
        return {Kind::number, x};
    return {Py_IS_TYPE(x, Tracer) ? Kind::traced : Py_IS_TYPE(x, Buffer) ? Kind::device : Kind::other, x};
}

/* ------------------------------------------------------------------ counting calls */
struct Counter { /* the base of entries */
    PyObject_HEAD
    Py_ssize_t calls;
};
static PyTypeObject CounterType = {PyVarObject_HEAD_INIT(nullptr, 0)};
static inline void count(PyObject *entry) { ((Counter *)entry)->calls++; }

static inline void count_row(PyObject *row) {
    PyObject *&n = slot(row, row_calls);
    Ref more = made(PyNumber_Add(n, Py_True)), before(std::exchange(n, more.release()));
}

/* ------------------------------------------------------------------ the views of an array, a list that begins at their root */
struct Links {
    PyObject *next, *last;
};
static Py_ssize_t links_at;
static inline Links &links(PyObject *h) { return *(Links *)((char *)h + links_at); }

static inline void link_view(PyObject *h, PyObject *root) {
    Links &mine = links(h), &first = links(root);
    mine = {first.next, root};
    if (first.next != nullptr)
        links(first.next).last = h;
    first.next = h;
}

static inline void unlink_view(PyObject *h) {
    Links &mine = links(h);
    if (mine.last != nullptr)
        links(mine.last).next = mine.next;
    if (mine.next != nullptr)
        links(mine.next).last = mine.last;
    mine = {nullptr, nullptr};
}

/* ------------------------------------------------------------------ making and freeing
   Arrays come and go with every operation, so some of those that went are kept for those that come, with their reference
   to their class and, where there are one or two axes, the list of dimensions. */
struct FreeList {
    PyObject *items[64];
    int n;
    bool keep(PyObject *h) { return n < 64 && (items[n++] = h, true); }
};
static FreeList free_arrays[3], free_virtual; /* by the number of axes; with three and more as with none */
static inline int list_for(int nd) { return nd <= 2 ? nd : 0; }

static inline void free_object(PyObject *h) {
    PyTypeObject *type = Py_TYPE(h);
    PyObject_GC_Del(h);
    Py_DECREF(type);
}

static void free_host_array(PyObject *h) {
    Fields *f = fields(h);
    unlink_view(h);
    Py_CLEAR(slot(h, root_at));
    Py_CLEAR(slot(h, host_at));
    if (f->_buffer_info != nullptr || (f->flags & (NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEBACKIFCOPY)) != 0) {
        Host->tp_dealloc(h);
        Py_DECREF(Ours);
        return;
    }
    Py_CLEAR(f->base);
    Py_CLEAR(f->descr);
    int axes = list_for(f->nd);
    if (axes == 0)
        PyMem_RawFree(std::exchange(f->dimensions, nullptr));
    if (!free_arrays[axes].keep(h)) {
        PyMem_RawFree(f->dimensions);
        free_object(h);
    }
}

static void free_array(PyObject *h) {
    Py_CLEAR(field(h, value_at));
    Py_CLEAR(field(h, steps_at));
    Py_CLEAR(field(h, seen_at));
    if (Py_IS_TYPE(h, Ours))
        return free_host_array(h);
    Ref array(std::exchange(field(h, host_at), nullptr)), root(std::exchange(field(h, root_at), nullptr));
    if (!free_virtual.keep(h))
        free_object(h);
}

/* What a tracer, or an array of objects, leads to can be a chain of any length, each link of which takes some of the C
   stack: behind so many, arrays wait until the first is through. The interpreter's own way for this, Py_TRASHCAN_BEGIN,
   knows nothing of the stack that NumPy's arrays between ours take, and so lets the stack overflow (3.13). */
constexpr int NESTED = 50;
static thread_local int nesting;
static thread_local PyObject *waiting; /* one leads to the next by its list of weak references, which is done with */

static void array_dealloc(PyObject *h) {
    PyObject_GC_UnTrack(h);
    if (*PyObject_GET_WEAKREFS_LISTPTR(h) != nullptr)
        PyObject_ClearWeakRefs(h);
    PyTypeObject *type = Py_TYPE(h);
    if (type != Ours && type != Virtual) { /* a user's subclass: NumPy's array with our slots, which are not used */
        for (Py_ssize_t at : {host_at, root_at, value_at, steps_at, seen_at})
            Py_CLEAR(slot(h, at));
        Host->tp_dealloc(h);
        Py_DECREF(type); /* the interpreter leaves that to the first class that is not its own */
        return;
    }
    PyObject *a = field(h, host_at);
    char kind = a != nullptr && is_host(a) ? descr(a)->kind : 'O';
    bool bare = field(h, value_at) == nullptr && field(h, steps_at) == nullptr && field(h, seen_at) == nullptr;
    if (bare && kind != 'O' && kind != 'V')
        return type == Ours ? free_host_array(h) : free_array(h);
    if (nesting == NESTED) {
        *PyObject_GET_WEAKREFS_LISTPTR(h) = waiting, waiting = h;
        return;
    }
    nesting++;
    free_array(h);
    while (nesting == 1 && (h = waiting) != nullptr) {
        waiting = std::exchange(*PyObject_GET_WEAKREFS_LISTPTR(h), nullptr);
        free_array(h);
    }
    nesting--;
}

/* An instance of one of our classes; a host array's fields are still to be set. */
static inline PyObject *instance(PyTypeObject *type, FreeList &from) {
    if (from.n == 0)
        return PyType_GenericAlloc(type, 0);
    PyObject *h = from.items[--from.n];
    Py_SET_REFCNT(h, 1);
    PyObject_GC_Track(h);
    return h;
}

/* tp_alloc, which NumPy calls too. */
static PyObject *array_alloc(PyTypeObject *type, Py_ssize_t n) {
    if (type == Virtual)
        return instance(Virtual, free_virtual);
    if (type != Ours)
        return PyType_GenericAlloc(type, n);
    PyObject *h = instance(Ours, free_arrays[0]);
    if (h != nullptr)
        memset((char *)h + sizeof(PyObject), 0, sizeof(Fields) - sizeof(PyObject));
    return h;
}

/* A new array of ours on NumPy's: a view of the array `root`, or one that owns its memory where that is None. */
static INLINE Ref array_on(Ref array, PyObject *root) {
    Fields *from = fields(array);
    int nd = from->nd;
    Ref h = made(instance(Ours, free_arrays[list_for(nd)]));
    Fields *to = fields(h);
    if (nd > 0 && to->dimensions == nullptr) {
        to->dimensions = (npy_intp *)PyMem_RawMalloc(2 * nd * sizeof(npy_intp));
        if (to->dimensions == nullptr) {
            PyErr_NoMemory();
            throw Raised{};
        }
    }
    to->strides = to->dimensions + nd;
    for (int i = 0; i < nd; i++)
        to->dimensions[i] = from->dimensions[i], to->strides[i] = from->strides[i];
    to->nd = nd, to->data = from->data, to->flags = from->flags & ~(NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEBACKIFCOPY);
    to->base = Py_NewRef(array), to->descr = (PyArray_Descr *)Py_NewRef(from->descr);
    slot(h, root_at) = Py_NewRef(root), slot(h, host_at) = array.release();
    if (Py_IS_TYPE(root, Ours))
        link_view(h, root);
    return h;
}

/* The array of ours on a tracer or a buffer, which is no view. */
static inline Ref array_of(Ref value) {
    Ref h = made(instance(Virtual, free_virtual));
    field(h, host_at) = Py_NewRef(Py_None), field(h, root_at) = Py_NewRef(Py_None), field(h, value_at) = value.release();
    return h;
}

static inline PyObject *root_of(PyObject *h) {
    PyObject *root = field(h, root_at);
    return root == nullptr || root == Py_None ? h : root;
}

/* An operator's result in the user's form: an array lies in new memory. */
static inline Ref result_of(Ref out) { return is_host(out.get()) ? array_on(std::move(out), Py_None) : out; }

/* Whether `out`, which shows memory of another array, shows that of array a. */
static inline bool shows_array(PyObject *out, PyObject *a) {
    PyObject *base = fields(out)->base;
    return base != nullptr && (base == a || base == fields(a)->base);
}

/* The array of ours for `out` if it is what `h` holds, or a view of that; else nothing. */
static Ref seen_from(PyObject *h, const Ref &out) {
    PyObject *a = host_of(h);
    if (a == nullptr)
        return {};
    if (a == out.get())
        return borrow(h);
    return shows_array(out, a) ? array_on(out, root_of(h)) : Ref();
}

static inline PyObject *last_base(PyObject *a) {
    for (PyObject *base; (base = fields(a)->base) != nullptr && is_host(base);)
        a = base;
    return a;
}

/* Note the memory of NumPy's own arrays among the arguments that `out` shows: the program may write to it unseen. */
static void note_shown(PyObject *const *args, Py_ssize_t n, PyObject *out) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (is_host(args[i]) && last_base(args[i]) == last_base(out))
            call(note_outside, args[i]);
}
