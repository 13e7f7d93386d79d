/* bool, int, float, index and memoryview of an array. */
#pragma once
#include "arrays.hpp"

static inquiry general_bool;
static unaryfunc general_int, general_float, general_index;

static int truth(PyObject *self) {
    return guarded_status([=] {
        PyObject *a = busy() ? nullptr : host_of(self);
        return a != nullptr ? PyObject_IsTrue(a) : general_bool(self);
    });
}

template <unaryfunc convert, unaryfunc &general> static PyObject *converted(PyObject *self) {
    return guarded([=] {
        PyObject *a = busy() ? nullptr : host_of(self);
        return made(a != nullptr ? convert(a) : general(self));
    });
}

/* memoryview(x): before Python 3.12 the Python slot cannot say why NumPy or we refuse (arrays/array.py). */
static int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    view->obj = nullptr; /* as the protocol has it where there is nothing to release */
    return guarded_status([=] {
        PyObject *memory = host_of(self);
        Ref a = memory != nullptr ? borrow(memory) : call(memory_of, self, number(flags));
        return PyObject_GetBuffer(a, view, flags);
    });
}
