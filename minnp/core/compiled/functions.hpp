/* Public functions and methods as objects that go straight to NumPy, or to a device's kernel. */
#pragma once
#include "indexing.hpp"
#include "operators.hpp"

struct FastFunction {
    PyObject_HEAD
    PyObject *general, *kernel, *entry; /* the function in Python, NumPy's callable, our entry */
    vectorcallfunc call;
    int kind;         /* what the first argument is, and what is returned: below */
    Py_ssize_t least; /* positional arguments from which this is NumPy's call; keywords are Python's if it is not 0 */
    int nin;          /* the operands of a ufunc, which then must be all the positional arguments; else -1 */
    Py_ssize_t limit; /* of an array from which Python may do better: bytes, or, negative, elements */
    PyObject *row, *words; /* what it is where arrays are traced or on a device, or null; the parameters that row takes */
    int form, arrays;      /* how that row takes NumPy's arguments: below; how many are arrays */
    bool small;            /* whether it is a ufunc that small_arrays.hpp may do */
    bool writes;           /* whether it writes to an argument */
    bool searched;         /* whether it is written in C and writes to nothing, and NumPy's own has a search for hooks */
    Py_ssize_t reads;      /* with how many positional arguments, at most, it writes to none; -1: not asked yet */
};

/* The first argument is an object of another class; it is what a public function is bound to. An array is returned as it
   is. The first array is a mask. */
enum { OF_OBJECT = 1, BOUND = 2, IDENTITY = 4, MASKED = 8 };

/* The arrays are in a list; parameters are numbers, or a tuple of them, in one; a parameter is a dtype; there must be one or
   two axes; traced arrays are not for this; a device does it in one call; an array as one axis; arrays side by side, or one
   below the other; a parameter may be a tuple of numbers; parts of one length along an axis; the number itself. */
enum {
    LIST = 1, SPREAD = 2, CASTS = 4, VECTORS = 8, UNTRACED = 16, WHOLE = 32, RAVELS = 64, SIDE_BY_SIDE = 128, BELOW = 256,
    SEVERAL = 512, PARTS = 1024, NUMBER = 2048,
};

/* ------------------------------------------------------------------ on a device */
static Py_ssize_t axes_of(const Value &v) {
    PyObject *x = v.object;
    while (x != nullptr && Py_IS_TYPE(x, Tracer))
        x = slot(x, tracer_value);
    return x == nullptr ? -1 : is_host(x) ? fields(x)->nd : Py_IS_TYPE(x, Buffer) ? axes_of_buffer(x) : -1;
}

/* numpy.dtype(x) for what programs say a dtype by; nothing for the rest. */
static Ref dtype_named(PyObject *x) {
    if (!(PyType_Check(x) || PyUnicode_CheckExact(x) || PyObject_TypeCheck(x, Dtype)))
        return {};
    PyArray_Descr *dtype = nullptr;
    if (PyArray_DescrConverter(x, &dtype) == NPY_SUCCEED)
        return Ref((PyObject *)dtype);
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
        throw Raised{};
    PyErr_Clear(); /* Python says it */
    return {};
}

/* Whether a row may be given x as a parameter of a function of this form. */
static bool is_parameter(const FastFunction *f, PyObject *x) {
    if (f->form & SPREAD && PyTuple_CheckExact(x))
        return PyTuple_GET_SIZE(x) == 0 || plain_axis(x);
    if (slot(f->row, row_view) != Py_True)
        return plain_axis(x) && (f->form & SEVERAL || !PyTuple_CheckExact(x));
    return PyLong_CheckExact(x) && (!(f->form & SPREAD) || f->row == reshape_row);
}

static Ref zero_axis() {
    Ref zero = number(0);
    return params_of(word_axis, zero);
}

/* A row's parameters for NumPy's arguments after the arrays; nothing where they are not that simple. */
static Ref row_params(const FastFunction *f, PyObject *const *given, Py_ssize_t n, PyObject *names) {
    Py_ssize_t k = names != nullptr ? PyTuple_GET_SIZE(names) : 0, positions = PyTuple_GET_SIZE(f->words);
    if (n + k == 0 && f->form & LIST)
        return zero_axis();
    if (n + k == 0)
        return borrow(no_params);
    Ref params = made(PyDict_New()), spread;
    if (f->form & SPREAD && n > 1) { /* numbers, which functions take in a tuple */
        if (f->kind != 0 || k != 0)
            return {};
        spread = made(PyTuple_New(n));
        for (Py_ssize_t i = 0; i < n; i++)
            PyTuple_SET_ITEM(spread.get(), i, Py_NewRef(given[i]));
        n = 1;
    }
    for (Py_ssize_t i = 0; i < n + k; i++) {
        PyObject *value = spread ? spread.get() : given[i], *name = nullptr;
        if (i >= n)
            name = PyTuple_GET_ITEM(names, i - n);
        else if (i < positions)
            name = PyTuple_GET_ITEM(f->words, i);
        if (name == nullptr || (i < n && name == word_keepdims) || PySequence_Contains(f->words, name) != 1 ||
            found(params, name) != nullptr)
            return {};
        Ref dtype = f->form & CASTS ? dtype_named(value) : Ref();
        if (!dtype && (f->form & CASTS || !is_parameter(f, value)))
            return {};
        check(PyDict_SetItem(params, name, dtype ? dtype.get() : value));
    }
    return params;
}

/* x as its device's library takes it: what arrays hold there, also in lists and tuples, numbers and texts as they are. */
static Ref devices_own(PyObject *x, PyObject *&device, int depth = 0) {
    Value v = value_of(x);
    if (v.kind == Kind::device) {
        if (device != nullptr && device != slot(v.object, buffer_backend))
            return {};
        device = slot(v.object, buffer_backend);
        return borrow(slot(v.object, buffer_data));
    }
    if (is_python_number(x) || PyUnicode_CheckExact(x) || x == Py_None)
        return borrow(x);
    if (!is_list(x) || depth > 2)
        return {};
    Ref copy = made(PySequence_List(x));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(copy.get()); i++) {
        Ref e = devices_own(PyList_GET_ITEM(copy.get(), i), device, depth + 1);
        if (!e)
            return {};
        check(PyList_SetItem(copy, i, e.release()));
    }
    return PyList_CheckExact(x) ? copy : made(PyList_AsTuple(copy));
}

/* A function that a device does in one call, of anything but traced arrays: its result, or several in a tuple or list. */
static Ref whole_on_device(PyObject *entry, PyObject *const *given, Py_ssize_t n, PyObject *names) {
    Arguments data;
    PyObject *device = nullptr;
    for (Py_ssize_t i = 0; i < n + (names != nullptr ? PyTuple_GET_SIZE(names) : 0); i++) {
        Ref x = devices_own(given[i], device);
        if (!x)
            return {};
        data.add(std::move(x));
    }
    PyObject *kept = device != nullptr && unwatched(device) ? kept_for(device, entry) : nullptr;
    if (kept == nullptr)
        return {};
    Ref owned = borrow(device), owned_kept = borrow(kept), kernel = borrow(PyList_GET_ITEM(kept, KERNEL)), out;
    try {
        out = made(PyObject_Vectorcall(kernel, data.items, n, names));
    } catch (const Raised &) {
        forget_refusal();
        return {};
    }
    count_call(kept);
    if (!is_list(out))
        return array_of(buffer_of(device, out, PyList_GET_ITEM(kept, NUMBERS) == Py_True));
    Ref all = made(PySequence_List(out));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all.get()); i++)
        check(PyList_SetItem(all, i, array_of(buffer_of(device, borrow(PyList_GET_ITEM(all.get(), i)), true)).release()));
    return PyList_CheckExact(out) ? all : made(PyList_AsTuple(all));
}

/* The parameter with which reshape is ravel, of what lies in C order on a device; else nothing. */
static Ref one_axis(const Value &v) {
    PyObject *b = v.kind == Kind::traced ? slot(v.object, tracer_value) : v.object;
    if (!Py_IS_TYPE(b, Buffer))
        return {};
    try {
        if (!in_c_order(&slot(b, buffer_data), 1))
            return {};
    } catch (const Raised &) { /* a library that cannot tell */
        forget_refusal();
        return {};
    }
    Py_ssize_t size = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape_of_buffer(b)); i++)
        size *= integer(PyTuple_GET_ITEM(shape_of_buffer(b), i));
    Ref n = number(size), shape = tuple_of(n);
    return params_of(word_shape, shape);
}

/* The views that part an array on a device along an axis into parts of one length, in a list: _split in numpy/composites.py. */
static Ref parts_of(PyObject *row, PyObject *const *given, const Value &v, Py_ssize_t n, PyObject *names) {
    Py_ssize_t k = names != nullptr ? PyTuple_GET_SIZE(names) : 0, axes = v.kind == Kind::device ? axes_of_buffer(v.object) : 0;
    if (n + k < 2 || n + k > 3 || (k == 1 ? n != 2 || PyTuple_GET_ITEM(names, 0) != word_axis : k > 0) ||
        !PyLong_CheckExact(given[1]) || !PyLong_CheckExact(given[n + k - 1]))
        return {};
    Py_ssize_t parts = PyLong_AsSsize_t(given[1]), axis = n + k == 3 ? PyLong_AsSsize_t(given[2]) : 0;
    if (PyErr_Occurred())
        return PyErr_Clear(), Ref(); /* beyond all lengths */
    axis += axis < 0 ? axes : 0;
    Py_ssize_t length = 0 <= axis && axis < axes ? integer(PyTuple_GET_ITEM(shape_of_buffer(v.object), axis)) : 0;
    if (parts <= 0 || length == 0 || length % parts != 0)
        return {};
    Ref list = made(PyList_New(0)), all = made(PySlice_New(nullptr, nullptr, nullptr));
    for (Py_ssize_t step = length / parts, i = 0; i < length; i += step) {
        Ref start = number(i), stop = number(i + step), part = made(PySlice_New(start, stop, nullptr));
        Ref index = made(PyTuple_New(axis + 1));
        for (Py_ssize_t d = 0; d <= axis; d++)
            PyTuple_SET_ITEM(index.get(), d, Py_NewRef(d < axis ? all : part));
        Ref params = params_of(word_index, index), view = apply(row, given, &v, 1, params);
        if (!view)
            return {};
        check(PyList_Append(list, view));
    }
    return list;
}

/* A function or method where its arrays are traced or on a device; nothing where Python must do it. */
static Ref call_row_of(const FastFunction *f, PyObject *const *given, const Value *values, Py_ssize_t n, PyObject *names) {
    if (f->form & WHOLE) {
        if (f->writes && !(is_ours(given[0]) && values[0].kind == Kind::device && field(given[0], root_at) == Py_None))
            return {};
        Ref out = whole_on_device(f->row, given, n, names);
        if (!out || !f->writes)
            return out;
        return is_ours(out) && takes_value(given[0], out, f->row) ? borrow(Py_None) : Ref();
    }
    if (f->form & PARTS)
        return parts_of(f->row, given, values[0], n, names);
    if (f->form & NUMBER) {
        bool alone = n == 1 && names == nullptr && values[0].kind == Kind::device && axes_of(values[0]) == 0;
        return alone && unwatched(slot(values[0].object, buffer_backend)) ? call(number_of_buffer, values[0].object) : Ref();
    }
    Value members[MOST];
    PyObject *const *operands = given;
    Py_ssize_t arrays = f->arrays, k = names != nullptr ? PyTuple_GET_SIZE(names) : 0, skip = arrays;
    if (f->form & LIST) {
        if (!is_list(given[0]) || PySequence_Fast_GET_SIZE(given[0]) >= MOST)
            return {};
        operands = PySequence_Fast_ITEMS(given[0]), arrays = PySequence_Fast_GET_SIZE(given[0]), skip = 1;
        for (Py_ssize_t i = 0; i < arrays; i++)
            members[i] = value_of(operands[i]);
        values = members;
    }
    if (n < skip || arrays == 0)
        return {};
    bool bare_view = n == skip && k == 0 && f->row != transpose_row && slot(f->row, row_view) == Py_True;
    bool untraced = f->form & UNTRACED || bare_view;
    for (Py_ssize_t i = 0; i < arrays; i++) {
        bool traced = values[i].kind == Kind::traced;
        if (!traced && values[i].kind != Kind::device && !(is_python_number(operands[i]) || (is_ours(operands[i]) && values[i].is_array())))
            return {};
        Py_ssize_t axes = f->form & (VECTORS | LIST) ? axes_of(values[i]) : 1;
        if ((traced && untraced) || axes < 0 || (f->form & VECTORS && (axes < 1 || axes > 2)))
            return {};
    }
    PyObject *row = f->row;
    Ref params;
    if (f->form & (SIDE_BY_SIDE | BELOW)) { /* words: the rows that join along an axis, and along a new one */
        Py_ssize_t axes = axes_of(values[0]);
        for (Py_ssize_t i = 1; i < arrays; i++)
            if (axes_of(values[i]) != axes)
                return {}; /* those with fewer axes are given more, in Python */
        row = PyTuple_GET_ITEM(f->words, f->form & BELOW && axes == 1);
        Ref axis = number(f->form & SIDE_BY_SIDE && axes > 1);
        params = n == 1 && k == 0 && axes > 0 ? params_of(word_axis, axis) : Ref();
    } else if (f->form & RAVELS)
        params = n == 1 && k == 0 ? one_axis(values[0]) : Ref();
    else
        params = row_params(f, given + skip, n - skip, names);
    if (!params || (n + k > skip && !(f->form & (LIST | SPREAD | UNTRACED)) && axes_of(values[0]) < 1))
        return {};
    bool positional = PyDict_GET_SIZE(params.get()) == 1 && !(f->form & (LIST | SPREAD | RAVELS)) &&
                      slot(f->row, row_view) != Py_True && found(params, PyTuple_GET_ITEM(f->words, 0)) != nullptr;
    try {
        Ref out = apply(row, operands, values, arrays, params, positional);
        if (!out || !(f->form & RAVELS) || PyTuple_GET_SIZE(f->words) < 2)
            return out;
        Value flat = value_of(out); /* flatten, which copies */
        PyObject *operand = out;
        return apply(PyTuple_GET_ITEM(f->words, 1), &operand, &flat, 1, no_params);
    } catch (const Raised &) {
        if (!(f->form & VECTORS) || !PyErr_ExceptionMatches(PyExc_ValueError))
            throw;
        PyErr_Clear(); /* of shapes that do not fit, which Python says in dot's words */
        return {};
    }
}

/* ------------------------------------------------------------------ on the host */
static PyObject *copy_of_tuple(PyObject *x) {
    PyObject *copy = PyTuple_New(PyTuple_GET_SIZE(x));
    for (Py_ssize_t i = 0; copy != nullptr && i < PyTuple_GET_SIZE(x); i++)
        PyTuple_SET_ITEM(copy, i, Py_NewRef(PyTuple_GET_ITEM(x, i)));
    return copy;
}

/* An argument as NumPy takes it; nothing where Python must look at it. */
static Ref numpys_argument(PyObject *x, const Value &v, Py_ssize_t limit, int depth = 0) {
    if (v.kind == Kind::number)
        return borrow(x);
    if (is_ours(x))
        return v.is_array() && (limit > 0 ? bytes_of(v.object) < limit : size_of(v.object) < -limit) ? borrow(v.object) : Ref();
    if (!is_list(x))
        return is_plain(x) ? borrow(x) : Ref();
    Ref copy;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(x); i++) {
        PyObject *e = PySequence_Fast_GET_ITEM(x, i);
        if (PyFloat_CheckExact(e) || PyLong_CheckExact(e))
            continue;
        Ref inner = depth < 8 ? numpys_argument(e, value_of(e), limit, depth + 1) : Ref();
        if (!inner)
            return {};
        if (inner.get() == e)
            continue;
        if (!copy)
            copy = made(PyList_CheckExact(x) ? PySequence_List(x) : copy_of_tuple(x));
        PyObject *&place = PySequence_Fast_ITEMS(copy.get())[i];
        Ref before(std::exchange(place, inner.release()));
    }
    return copy ? copy : borrow(x);
}

/* seen_from for every array of ours among arguments, and in the lists and tuples among them. */
static Ref seen_among(PyObject *const *args, Py_ssize_t n, const Ref &out) {
    for (Py_ssize_t i = 0; i < n; i++) /* `out=` itself, which may be a view of another argument */
        if (is_ours(args[i]) && host_of(args[i]) == out.get())
            return borrow(args[i]);
    for (Py_ssize_t i = 0; i < n; i++) {
        Ref h;
        if (is_ours(args[i]))
            h = seen_from(args[i], out);
        else if (is_list(args[i]))
            h = seen_among(PySequence_Fast_ITEMS(args[i]), PySequence_Fast_GET_SIZE(args[i]), out);
        if (h)
            return h;
    }
    return {};
}

static bool holds_lists(PyObject *const *args, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (is_list(args[i]))
            return true;
    return false;
}

/* Whether x is a tuple, also one with names, or a list, to which nobody else refers. */
static bool is_fresh_container(PyObject *x) {
    return Py_REFCNT(x) == 1 &&
           (is_list(x) || (PyTuple_Check(x) && PyObject_HasAttr((PyObject *)Py_TYPE(x), word_fields)));
}

/* The user's form of a result of a call of these arguments. */
static Ref finished(Ref out, PyObject *const *args, Py_ssize_t n) {
    if (is_host(out.get())) {
        PyObject *base = fields(out)->base;
        bool fresh = base == nullptr && Py_REFCNT(out.get()) == 1; /* it is none of the arguments, and no view of one */
        if (!fresh) {
            bool only = Py_REFCNT(out.get()) == 1;
            if (Ref h = seen_among(args, n, out))
                return h;
            note_shown(args, n, out);
            if (only && (base == nullptr || is_host(base) || PyCapsule_CheckExact(base)))
                return array_on(std::move(out), Py_None);
        } else if (descr(out)->type_num != NPY_OBJECT || !holds_lists(args, n)) /* of which arrays may be elements */
            return array_on(std::move(out), Py_None);
    } else if (is_plain(out))
        return out;
    else if (is_fresh_container(out)) {
        PyObject **members = PySequence_Fast_ITEMS(out.get());
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(out.get()); i++) /* so that an element has no reference but ours */
            members[i] = finished(Ref(std::exchange(members[i], nullptr)), args, n).release();
        if (!PyObject_GC_IsTracked(out))
            PyObject_GC_Track(out); /* arrays lead nowhere, ours may */
        return out;
    }
    Ref given = made(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(given.get(), i, Py_NewRef(args[i]));
    return call(wrap, out, given);
}

/* Whether a call with these keywords is one for the fast path. */
static bool keywords_allowed(PyObject *const *values, PyObject *names) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (name == word_device || values[i] == (PyObject *)&PyBaseObject_Type)
            return false; /* arrays made elsewhere; arrays of objects keep the arrays they are given */
        if (name == word_out && (taped() || !(is_ours(values[i]) || values[i] == Py_None)))
            return false;
        if (!PyUnicode_CHECK_INTERNED(name) || (taped() && PyUnicode_Tailmatch(name, word_overwrite, 0, PY_SSIZE_T_MAX, -1) == 1))
            return false;
    }
    return true;
}

/* Whether a function that is no ufunc writes to none of its first n arguments. */
static bool reads_only(FastFunction *f, Py_ssize_t n) {
    if (f->reads < 0) {
        Ref count = call(only_reads, f->entry);
        f->reads = integer(count);
    }
    return n <= f->reads;
}

/* What NumPy's own function does where the one behind its search for hooks raised: the search looks at the arguments
   first, in other words. No function of the user's runs twice, for in C none is called. */
static PyObject *refused(const FastFunction *f, PyObject *const *given, Py_ssize_t n, PyObject *names) {
    if (!f->searched || !PyErr_ExceptionMatches(PyExc_TypeError))
        return nullptr;
    PyErr_Clear();
    Ref host = attribute(f->entry, word_host);
    return PyObject_Vectorcall(host, given, n, names);
}

/* NumPy's call; nothing where Python must do it. */
static Ref call_numpy(FastFunction *f, PyObject *const *given, const Value *values, Py_ssize_t n, PyObject *names) {
    Py_ssize_t k = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
    if (n < f->least || host_busy() || !(f->nin >= 0 ? n == f->nin : !taped() || reads_only(f, n)) ||
        (k > 0 && (f->least != 0 || !keywords_allowed(given + n, names))))
        return {};
    bool of_objects = n > 0 && values[0].is_array() && descr(values[0].object)->type_num == NPY_OBJECT;
    if (n > 1 && f->kind == 0 && of_objects && is_ours(given[1]))
        return {}; /* x.fill(y): the array becomes the element */
    Py_ssize_t limit = f->limit;
    if (f->kind & MASKED && n > 0 && is_ours(given[0]) && size_of(values[0].object) >= -limit && in_long_runs(values[0].object))
        limit = -long_runs;
    Arguments arguments;
    for (Py_ssize_t i = 0; i < n + k; i++) {
        Ref x = i == 0 && f->kind & OF_OBJECT ? borrow(given[0]) : numpys_argument(given[i], values[i], limit);
        if (!x)
            return {};
        arguments.add(std::move(x));
    }
    count(f->entry);
    Ref out(PyObject_Vectorcall(f->kernel, arguments.items, n, names));
    if (!out)
        out = made(refused(f, arguments.items, n, names));
    if (f->kind == 0 && PyList_CheckExact(out) && !of_objects)
        return out; /* tolist */
    return finished(std::move(out), given, n + k);
}

/* What a call of numbers makes on the default device, by the device's own function for it; nothing where Python must do it. */
static Ref call_creation(const FastFunction *f, PyObject *const *given, const Value *values, Py_ssize_t n, PyObject *names) {
    Py_ssize_t k = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
    PyObject *inner = nullptr;
    if (!(f->kind & BOUND) || (k > 0 && !keywords_allowed(given + n, names)))
        return {};
    for (Py_ssize_t i = 0; i < n + k; i++)
        if (!(values[i].kind == Kind::number || is_plain(given[i]) || holds_numbers(given[i])) ||
            (i >= n && PyTuple_GET_ITEM(names, i - n) == word_like))
            return {};
    check(PyContextVar_Get(contexts, nullptr, &inner));
    Ref context(inner), device = borrow(PyTuple_CheckExact(inner) ? PyTuple_GET_ITEM(inner, 1) : slot(state, state_device));
    if (device.get() == Py_None || !unwatched(device))
        return {};
    Ref makers = attribute(device, word_makers), name = attribute(f->entry, word_name), make = borrow(found(makers, name)), data;
    try {
        data = make ? made(PyObject_Vectorcall(make, given, n, names)) : make;
    } catch (const Raised &) {
        forget_refusal(true);
    }
    return data ? array_of(buffer_of(device, data, false)) : data;
}

/* functions.defined of arrays that are traced or on a device, numbers and other plain things; nothing where Python must do it. */
static Ref call_definition(const FastFunction *f, PyObject *const *given, const Value *values, Py_ssize_t n) {
    bool known = false;
    for (Py_ssize_t i = 0; i < n; i++) {
        known = known || values[i].kind == Kind::traced || values[i].kind == Kind::device;
        if (is_host(given[i]) || !(is_ours(given[i]) || is_plain(given[i]) || holds_numbers(given[i])))
            return {};
    }
    bool general = f->kind & BOUND || (f->kind == 0 && f->least == 0); /* calls functions.invoke */
    if (!known || !general || f->writes || (busy() && is_captured()))
        return {};
    Ref args = made(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(args.get(), i, Py_NewRef(given[i]));
    Ref out = call(defined, f->entry, args);
    return out.get() == Py_NotImplemented ? Ref() : out;
}

/* call_row_of, or that into `out`, of a ufunc. */
static Ref call_row_into(const FastFunction *f, PyObject *const *given, const Value *values, Py_ssize_t n, PyObject *names) {
    Py_ssize_t k = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
    bool named = k == 1 && PyTuple_GET_ITEM(names, 0) == word_out && n == f->nin, placed = k == 0 && n == f->nin + 1;
    if (f->nin <= 0 || !(named || placed))
        return call_row_of(f, given, values, n, names);
    PyObject *out = given[f->nin];
    if (out != Py_None && ((PyUFuncObject *)f->kernel)->nout != 1)
        return {};
    for (int i = 0; i <= f->nin && out != Py_None; i++) /* out=None: NumPy's own functions pass on what they were given */
        if (i == f->nin ? !is_ours(out) || values[i].kind != Kind::device
                        : values[i].kind != Kind::device && !is_python_number(given[i]))
            return {};
    Ref made = call_row_of(f, given, values, f->nin, nullptr);
    if (!made || out == Py_None)
        return made;
    return takes_value(out, made, f->row) ? borrow(out) : Ref();
}

static Ref fast_call(FastFunction *f, PyObject *const *given, Py_ssize_t n, PyObject *names) {
    Py_ssize_t k = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
    Value values[MOST];
    bool is_virtual = false;
    if (n + k > MOST)
        return {};
    for (Py_ssize_t i = 0; i < n + k; i++) {
        values[i] = value_of(given[i]);
        is_virtual = is_virtual || values[i].is_virtual();
    }
    if (!is_virtual) {
        if (f->kind & IDENTITY && n == 1 && k == 0 && is_ours(given[0]) && !host_busy()) {
            count(f->entry);
            return borrow(given[0]);
        }
        if (Ref out = call_numpy(f, given, values, n, names))
            return out;
        if (busy())
            return call_creation(f, given, values, n, names);
    }
    if (n == 0 || !(is_virtual || is_list(given[0])))
        return {};
    Ref out = f->row != nullptr ? call_row_into(f, given, values, n, names) : Ref();
    return out || !is_virtual || k > 0 ? out : call_definition(f, given, values, n);
}
static PyObject *function_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    FastFunction *f = (FastFunction *)self;
    Py_ssize_t skip = (f->kind & BOUND) != 0, n = PyVectorcall_NARGS(nargsf) - skip;
    return guarded([=] {
        Ref out = ready && n >= 0 ? fast_call(f, args + skip, n, names) : Ref();
        return out ? out : made(PyObject_Vectorcall(f->general, args, n + skip, names));
    });
}

/* __array_ufunc__(self, ufunc, method, *inputs, **kwargs): numpy.f(minnp array), and number * array. */
static PyObject *ufunc_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    return guarded([=] {
        Py_ssize_t n = PyVectorcall_NARGS(nargsf) - 3;
        PyObject *entry;
        if (n > 0 && n <= MOST && names == nullptr && !host_busy() && PyUnicode_CheckExact(args[2]) &&
            PyUnicode_Compare(args[2], word_call) == 0 && (entry = found(entries, args[1])) != nullptr) {
            Arguments arguments;
            for (Value v; arguments.n < n && is_below(v = value_of(args[arguments.n + 3]), heavy_bytes);)
                arguments.add(borrow(v.object));
            if (arguments.n == n) {
                count(entry);
                return finished(made(PyObject_Vectorcall(args[1], arguments.items, n, nullptr)), args + 3, n);
            }
        }
        return made(PyObject_Vectorcall(((FastFunction *)self)->general, args, nargsf, names));
    });
}

/* __getitem__: not a Python function, for the interpreter would call one in place of the slot. */
static PyObject *getitem_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    if (PyVectorcall_NARGS(nargsf) == 2 && names == nullptr && is_ours(args[0]))
        return subscript(args[0], args[1]);
    return PyObject_Vectorcall(((FastFunction *)self)->general, args, nargsf, names);
}

/* ------------------------------------------------------------------ the object: whoever looks at it sees the Python function */
static void function_dealloc(PyObject *self) {
    FastFunction *f = (FastFunction *)self;
    for (PyObject *x : {f->general, f->kernel, f->entry, f->row, f->words})
        Py_XDECREF(x);
    PyObject_Free(self);
}
static PyObject *general_of(PyObject *f) { return ((FastFunction *)f)->general; }
static PyObject *function_getattr(PyObject *f, PyObject *name) { return PyObject_GetAttr(general_of(f), name); }
static int function_setattr(PyObject *f, PyObject *name, PyObject *x) { return PyObject_SetAttr(general_of(f), name, x); }
static PyObject *function_repr(PyObject *f) { return PyObject_Repr(general_of(f)); }
static PyObject *function_get(PyObject *f, PyObject *instance, PyObject *) {
    return instance != nullptr && instance != Py_None ? PyMethod_New(f, instance) : Py_NewRef(f);
}

static PyTypeObject FastFunctionType = {PyVarObject_HEAD_INIT(nullptr, 0)};

static Ref new_function(PyObject *general, vectorcallfunc call) {
    FastFunction *f = PyObject_New(FastFunction, &FastFunctionType);
    Ref owned = made((PyObject *)f);
    memset((char *)f + sizeof(PyObject), 0, sizeof *f - sizeof(PyObject));
    f->general = Py_NewRef(general), f->call = call;
    return owned;
}

/* fast(general, kernel, entry, kind, nin, limit, least): a FastFunction. */
static PyObject *make_function(PyObject *, PyObject *args) {
    return guarded([=] {
        FastFunction given;
        if (!PyArg_ParseTuple(args, "OOOiinn", &given.general, &given.kernel, &given.entry, &given.kind, &given.nin,
                              &given.limit, &given.least))
            throw Raised{};
        Ref owned = new_function(given.general, function_call);
        FastFunction *f = (FastFunction *)owned.get();
        f->kernel = Py_NewRef(given.kernel), f->entry = Py_NewRef(given.entry);
        f->kind = given.kind, f->nin = given.nin, f->limit = given.limit, f->least = given.least;
        f->small = is_small(f->kernel);
        Ref writes = made(PyObject_GetAttrString(f->entry, "writes")), host = made(PyObject_GetAttrString(f->entry, "host"));
        f->writes = truth_of(writes), f->reads = -1;
        f->searched = !f->writes && PyCFunction_Check(f->kernel) && host.get() != f->kernel;
        return owned;
    });
}

/* set_row(function, row, arrays, words, form): what a call of a FastFunction is where arrays are traced or on a device. */
static PyObject *set_row(PyObject *, PyObject *args) {
    FastFunction *f;
    PyObject *row, *words;
    int arrays, form;
    if (!PyArg_ParseTuple(args, "O!OiO!i", &FastFunctionType, &f, &row, &arrays, &PyTuple_Type, &words, &form))
        return nullptr;
    Ref before(std::exchange(f->row, Py_NewRef(row))), also(std::exchange(f->words, Py_NewRef(words)));
    f->arrays = arrays, f->form = form;
    return Py_NewRef(Py_None);
}

/* ------------------------------------------------------------------ public functions
   A bound method, of a FastFunction and what it is bound to, that takes attributes (`np.max.__name__ = ...`) and is shown as
   NumPy's. */
static PyTypeObject PublicFunctionType = {PyVarObject_HEAD_INIT(nullptr, 0)};
/* classobject.h's macros refuse a subclass in a debug build */
static PyMethodObject *method(PyObject *f) { return (PyMethodObject *)f; }

static void public_dealloc(PyObject *f) {
    PyObject_GC_UnTrack(f);
    if (method(f)->im_weakreflist != nullptr)
        PyObject_ClearWeakRefs(f);
    Py_DECREF(method(f)->im_func);
    Py_DECREF(method(f)->im_self);
    PyObject_GC_Del(f);
}

static Ref facts_of(PyObject *f) { return made(PyObject_GetAttrString(method(f)->im_func, "__dict__")); }

static int public_setattr(PyObject *f, PyObject *name, PyObject *x) {
    return guarded_status([=] {
        if (PyUnicode_CompareWithASCIIString(name, "__doc__") != 0)
            return PyObject_SetAttr(method(f)->im_func, name, x);
        Ref facts = facts_of(f); /* a text of the user's, over ours */
        int status = x != nullptr ? PyObject_SetItem(facts, name, x) : PyObject_DelItem(facts, name);
        if (status < 0 && PyErr_ExceptionMatches(PyExc_KeyError)) /* NumPy's text, which is not the user's to delete */
            PyErr_SetString(PyExc_AttributeError, "attribute '__doc__' is not set");
        return status;
    });
}

static PyObject *public_repr(PyObject *f) {
    PyObject *bound_to = method(f)->im_self;
    return Py_IS_TYPE(bound_to, &PublicFunctionType) ? PyMethod_Type.tp_repr(f) : PyObject_Repr(bound_to); /* a ufunc's method */
}

/* A ufunc of arrays of ours, and of numbers, which most calls are: fast_call without what else there can be. */
static Ref call_ufunc(const FastFunction *f, PyObject *const *args, Py_ssize_t n) {
    Value a = value_of(args[0]), b = n == 2 ? value_of(args[1]) : a;
    if (host_busy() || !is_below(a, f->limit) || !is_below(b, f->limit))
        return {};
    Ref first = borrow(a.object), second = borrow(b.object);
    PyObject *given[] = {first, second};
    count(f->entry);
    if (Ref out = f->small ? small_result(f->kernel, given, n) : Ref())
        return array_on(std::move(out), Py_None);
    return finished(made(PyObject_Vectorcall(f->kernel, given, n, nullptr)), args, n);
}

/* function_call, without a list of the arguments and what the function is bound to. */
static vectorcallfunc method_call;
/* np.zeros(n) by NumPy's C function, which need not read arguments; nothing where n is no length. */
static __attribute__((noinline)) Ref zeros(const FastFunction *f, PyObject *n) {
    npy_intp length = PyLong_CheckExact(n) && !host_busy() ? PyLong_AsSsize_t(n) : -1;
    if (length < 0) /* perhaps beyond all integers */
        return PyErr_Clear(), Ref();
    count(f->entry);
    return array_on(made(PyArray_Zeros(1, &length, nullptr, 0)), Py_None);
}

static PyObject *public_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    FastFunction *f = (FastFunction *)method(self)->im_func;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), k = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
    if (!ready || !Py_IS_TYPE(f, &FastFunctionType) || !(f->kind & BOUND) || n + k > MOST)
        return method_call(self, args, nargsf, names);
    return guarded([=] {
        bool plain = k == 0 && n > 0 && n <= 2 && f->nin == n && f->kind == BOUND && f->limit > 0;
        Ref out = plain ? call_ufunc(f, args, n) : n == 1 && k == 0 && f->kernel == numpys_zeros ? zeros(f, args[0]) : Ref();
        if (!out)
            out = fast_call(f, args, n, names);
        if (out)
            return out;
        PyObject *given[MOST + 1] = {method(self)->im_self};
        if (n + k > 0)
            memcpy(given + 1, args, (n + k) * sizeof(PyObject *));
        return made(PyObject_Vectorcall(f->general, given, n + 1, names));
    });
}

static PyObject *public_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *f = PyMethod_Type.tp_new(&PyMethod_Type, args, keywords);
    if (f != nullptr) {
        Py_SET_TYPE(f, type);
        method_call = std::exchange(method(f)->vectorcall, public_call);
    }
    return f;
}

static PyObject *public_doc(PyObject *f, void *) {
    return guarded([=] {
        Ref facts = facts_of(f), name = made(PyUnicode_InternFromString("__doc__"));
        PyObject *text = PyDict_Check(facts) ? found(facts, name) : nullptr;
        return text != nullptr ? borrow(text) : attribute(method(f)->im_func, name);
    });
}

static PyObject *public_signature(PyObject *f, void *) {
    return guarded([=] {
        Ref whole = made(PyObject_GetAttrString(method(f)->im_func, "__signature__"));
        Ref shown = imported(API "public", "without_receiver");
        return call(shown, whole);
    });
}

static PyGetSetDef public_facts[] = {{"__doc__", public_doc, nullptr, nullptr, nullptr},
                                     {"__signature__", public_signature, nullptr, nullptr, nullptr},
                                     {nullptr, nullptr, nullptr, nullptr, nullptr}};

static void ready_functions() {
    FastFunctionType.tp_name = "minnp.core.compiled._fastpath.FastFunction";
    FastFunctionType.tp_basicsize = sizeof(FastFunction);
    FastFunctionType.tp_dealloc = function_dealloc;
    FastFunctionType.tp_vectorcall_offset = offsetof(FastFunction, call);
    FastFunctionType.tp_repr = function_repr;
    FastFunctionType.tp_call = PyVectorcall_Call;
    FastFunctionType.tp_getattro = function_getattr;
    FastFunctionType.tp_setattro = function_setattr;
    FastFunctionType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
    FastFunctionType.tp_descr_get = function_get;
    check(PyType_Ready(&FastFunctionType));
    PublicFunctionType.tp_name = "minnp.core.compiled._fastpath.Function";
    PublicFunctionType.tp_basicsize = sizeof(PyMethodObject);
    PublicFunctionType.tp_base = &PyMethod_Type;
    PublicFunctionType.tp_new = public_new;
    PublicFunctionType.tp_dealloc = public_dealloc;
    PublicFunctionType.tp_repr = public_repr;
    PublicFunctionType.tp_getset = public_facts;
    PublicFunctionType.tp_setattro = public_setattr;
    PublicFunctionType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL; /* and what collects garbage, inherited */
    PublicFunctionType.tp_call = PyVectorcall_Call;
    PublicFunctionType.tp_vectorcall_offset = offsetof(PyMethodObject, vectorcall);
    check(PyType_Ready(&PublicFunctionType));
}
