/* The slots of x[i], x[i] = v, iteration and len. */
#pragma once
#include "tape.hpp"

static PyObject *general_getitem; /* the Python method */
static objobjargproc general_setitem;
static ssizeargfunc general_item;
static getiterfunc general_iter;
static lenfunc general_len;

/* Whether a list or tuple holds numbers, or such lists, and no array. */
static bool holds_numbers(PyObject *x, int depth = 0) {
    if (!is_list(x) || depth > 8)
        return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(x); i++) {
        PyObject *e = PySequence_Fast_GET_ITEM(x, i);
        if (!(is_number(e) || holds_numbers(e, depth + 1)))
            return false;
    }
    return true;
}

/* Whether array a is a mask in long runs, judged by a sample at its middle (cpu/selection.py: irregular). */
static bool in_long_runs(PyObject *a) {
    Py_ssize_t n = size_of(a), changes = 0;
    if (descr(a)->type_num != NPY_BOOL || !(fields(a)->flags & NPY_ARRAY_C_CONTIGUOUS) || n < 2048 || n >= long_runs)
        return false;
    const char *p = fields(a)->data + n / 2 - 1024;
    for (int i = 1; i < 2048; i++)
        changes += !p[i] != !p[i - 1];
    return changes <= 128;
}

/* An index as NumPy takes it; nothing where Python must look at it. */
static Ref numpys_index(PyObject *index) {
    if (PyLong_CheckExact(index) || PySlice_Check(index))
        return borrow(index);
    if (!PyTuple_CheckExact(index)) {
        if (!is_ours(index))
            return is_plain(index) || holds_numbers(index) ? borrow(index) : Ref();
        PyObject *a = host_of(index);
        return a != nullptr && (size_of(a) < index_limit || in_long_runs(a)) ? borrow(a) : Ref();
    }
    Ref parts;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); i++) {
        PyObject *x = PyTuple_GET_ITEM(index, i), *a;
        if (!is_ours(x)) {
            if (!(PyLong_CheckExact(x) || PySlice_Check(x) || is_plain(x) || holds_numbers(x)))
                return {};
        } else if ((a = host_of(x)) == nullptr)
            return {};
        else {
            if (!parts)
                parts = made(PySequence_List(index));
            check(PyList_SetItem(parts, i, Py_NewRef(a)));
        }
    }
    return parts ? made(PyList_AsTuple(parts)) : borrow(index);
}

/* ------------------------------------------------------------------ slots */
/* What an index found in array a of `self`, in the user's form: a fancy one may give a view of its own copy. */
static Ref found_in(PyObject *self, PyObject *a, Ref out) {
    return is_host(out.get()) ? array_on(out, shows_array(out, a) ? root_of(self) : Py_None) : out;
}

static Ref get_item(PyObject *self, PyObject *index) {
    Value v = value_of(self);
    if (v.is_array() && !host_busy()) {
        char *p = number_at(v.object, index);
        if (p != nullptr)
            if (Ref x = read_scalar(v.object, p))
                return x;
        if (Ref i = numpys_index(index)) {
            Ref a = borrow(v.object);
            return found_in(self, a, made(PyObject_GetItem(a, i)));
        }
    } else if (!v.is_array() && simple_index(index, true)) {
        if (v.kind == Kind::traced)
            if (Ref x = record_read(v.object, index))
                return array_of(std::move(x));
        Ref params = params_of(word_index, index);
        if (Ref h = apply(getitem_row, &self, &v, 1, params))
            return h;
    } else if (v.kind == Kind::device)
        if (Ref h = chosen_on_device(v.object, index))
            return h;
    return call(general_getitem, self, index);
}

static PyObject *subscript(PyObject *self, PyObject *index) {
    return guarded([=] { return get_item(self, index); });
}

/* The i-th element along the first axis, as iteration asks for it: the IndexError at the end is set here, or handed on, for
   throwing one costs more than the loop. */
static PyObject *item(PyObject *self, Py_ssize_t i) {
    Value v = {Kind::other, nullptr};
    Ref x = Ref(guarded([&] {
        v = value_of(self);
        bool on_device = v.kind == Kind::device && axes_of_buffer(v.object) > 0;
        Py_ssize_t n = on_device ? integer(PyTuple_GET_ITEM(shape_of_buffer(v.object), 0)) : 0;
        if (on_device && (i < 0 || i >= n)) { /* asked of NumPy it would take a copy to the host */
            PyErr_Format(PyExc_IndexError, "index %zd is out of bounds for axis 0 with size %zd", i, n);
            return Ref();
        }
        if (busy()) {
            v = {Kind::other, nullptr};
            return Ref();
        }
        if (on_device) {
            Ref index = number(i);
            return get_item(self, index);
        }
        if (!v.is_array() || fields(v.object)->nd != 1 || i < 0 || i >= fields(v.object)->dimensions[0])
            return Ref();
        return read_scalar(v.object, fields(v.object)->data + i * fields(v.object)->strides[0]);
    }));
    if (x || PyErr_Occurred())
        return x.release();
    if (!v.is_array())
        return general_item(self, i);
    Ref owned = borrow(v.object), out = Ref(Host->tp_as_sequence->sq_item(v.object, i));
    return out ? guarded([&] { return found_in(self, v.object, std::move(out)); }) : nullptr;
}

static PyObject *iterator(PyObject *self) {
    return guarded([=] {
        Value v = value_of(self);
        bool axes = v.is_array() ? fields(v.object)->nd > 0 : v.kind == Kind::device && axes_of_buffer(v.object) > 0;
        return made(axes ? PySeqIter_New(self) : general_iter(self));
    });
}

static Py_ssize_t length(PyObject *self) {
    return guarded_status([=] {
        Value v = value_of(self);
        if (v.is_array() && fields(v.object)->nd > 0)
            return (Py_ssize_t)fields(v.object)->dimensions[0];
        if (v.kind == Kind::device && axes_of_buffer(v.object) > 0)
            return integer(PyTuple_GET_ITEM(shape_of_buffer(v.object), 0));
        return general_len(self);
    });
}

/* Whether h is the view self[index], for this very index, of an array that is traced, or on a device and still what it was. */
static bool is_view_at(PyObject *h, PyObject *self, PyObject *index) {
    if (!is_ours(h) || field(h, root_at) != self || field(h, host_at) != Py_None)
        return false;
    PyObject *x = field(h, value_at);
    return x != nullptr && (Py_IS_TYPE(x, Tracer) || value_of(h).kind == Kind::device) && step_of_view(h) == index;
}

/* Whether a[index] has axes, as its form alone tells: then the elements of a value are written, never the value. */
static bool is_several(PyObject *a, PyObject *index) {
    if (!PyTuple_CheckExact(index))
        return PySlice_Check(index) || (PyLong_CheckExact(index) && fields(a)->nd > 1);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); i++)
        if (PySlice_Check(PyTuple_GET_ITEM(index, i)))
            return true;
    return false;
}

/* What NumPy may be given to write at an index of array a (borrowed): a number, an array; else null. An element of an array
   of objects is the array of ours it is given. */
static PyObject *value_to_write(PyObject *a, PyObject *index, PyObject *value) {
    if (is_ours(value))
        return descr(a)->type_num != NPY_OBJECT || is_several(a, index) ? host_of(value) : nullptr;
    return is_plain(value) || holds_numbers(value) ? value : nullptr;
}

/* Whether a library turns number v into an element of this dtype as NumPy does. */
static bool fits(PyObject *v, PyObject *dtype) {
    int beyond = 0, type = ((PyArray_Descr *)dtype)->type_num;
    if (PyFloat_CheckExact(v))
        return type == NPY_FLOAT || type == NPY_DOUBLE;
    long n = PyLong_Check(v) ? PyLong_AsLongAndOverflow(v, &beyond) : -1;
    return n >= 0 && n <= 127 && (type != NPY_BOOL || n <= 1);
}

/* writing.write_on_device where nothing else holds or shows the memory of the buffer x in `self`, which is no view: whether
   it was written there. */
static bool write_in_memory(PyObject *self, PyObject *x, PyObject *index, PyObject *value) {
    PyObject *device = slot(x, buffer_backend), *array = is_ours(index) ? index_array(index, device) : nullptr;
    PyObject *kept = kept_for(device, write_row);
    Value v = value_of(value);
    bool buffer = v.kind == Kind::device;
    if (kept == nullptr || !PyDict_CheckExact(PyList_GET_ITEM(kept, PREPARED)) || field(self, root_at) != Py_None ||
        !is_alone(x, 0, 0) || !unwatched(device) || (array != nullptr ? !has_elements(x) : !simple_index(index) || index == Py_Ellipsis) ||
        (buffer ? v.object == x || slot(v.object, buffer_backend) != device || dtype_of_buffer(v.object) != dtype_of_buffer(x)
                : !fits(value, dtype_of_buffer(x))) ||
        (buffer && array == nullptr && axes_left(x, index) == 0))
        return false;
    Ref data = borrow(slot(x, buffer_data)), what = borrow(buffer ? slot(v.object, buffer_data) : value), owned = borrow(kept);
    Ref at = borrow(array != nullptr ? array : index);
    try {
        prepared_for(kept, &slot(x, buffer_data), 1); /* refuses what was not verified */
        check(PyObject_SetItem(data, at, what));
    } catch (const Raised &) {
        forget_refusal();
        return false;
    }
    return count_call(kept), true;
}

static int assign(PyObject *self, PyObject *index, PyObject *value) {
    return guarded_status([=] {
        if (value == nullptr)
            return general_setitem(self, index, value);
        PyObject *a = host_of(self), *v;
        if (a == nullptr) {
            if (is_view_at(value, self, index)) /* x[index] += y ends so */
                return 0;
            PyObject *x = virtual_of(self);
            bool done = x != nullptr && (Py_IS_TYPE(x, Buffer) ? write_in_memory(self, x, index, value)
                                                               : write_on_tape(self, x, index, value_of(value)));
            return done ? 0 : general_setitem(self, index, value);
        }
        if (host_busy())
            return general_setitem(self, index, value);
        if (is_number(value)) {
            Ref owned = borrow(a);
            if (taped())
                release_memory(owner_of(a));
            char *p = number_at(a, index);
            if (p != nullptr && write_scalar(a, p, value))
                return 0;
        }
        if ((v = value_to_write(a, index, value)) != nullptr)
            if (Ref i = numpys_index(index)) {
                Ref owned = borrow(a), also = borrow(v);
                if (taped())
                    release_memory(owner_of(a));
                return PyObject_SetItem(a, i, v);
            }
        return general_setitem(self, index, value); /* which counts references to the memory */
    });
}
