/* bool, int, float, index and memoryview of an array. */
#pragma once
#include "device.hpp"

static inquiry general_bool;
static unaryfunc general_int, general_float, general_index;

/* NumPy's array, or the number that an array on a device without axes is, of these kinds; nothing where Python must do it. */
static Ref convertible(PyObject *self, const char *kinds) {
    Value v = value_of(self);
    if (v.is_array())
        return host_busy() ? Ref() : borrow(v.object);
    if (v.kind != Kind::device || !unwatched(slot(v.object, buffer_backend)) || axes_of_buffer(v.object) != 0 ||
        strchr(kinds, ((PyArray_Descr *)dtype_of_buffer(v.object))->kind) == nullptr)
        return {};
    return call(number_of_buffer, v.object);
}

static int truth(PyObject *self) {
    return guarded_status([=] {
        Ref x = convertible(self, "biuf");
        return x ? PyObject_IsTrue(x) : general_bool(self);
    });
}

template <unaryfunc convert, unaryfunc &general> static PyObject *converted(PyObject *self) {
    return guarded([=] {
        Ref x = convertible(self, convert == PyNumber_Index ? "iu" : "biuf");
        return made(x ? convert(x) : general(self));
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
