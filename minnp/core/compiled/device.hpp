/* Rows on a device: its kernel for a row, and what that gives. */
#pragma once
#include "arrays.hpp"

/* What a device keeps for a row: the list that on_device.slot_of makes. */
enum { KERNEL, CALLS, PREPARED, PLAN, EXACT, BASIC, SHOWS, INTO, ORDERED, NUMBERS, SLOT_SIZE };
static const char *const OFFERED[] = {"prepared", "short", "exact", "basic", "shows", "into", "ordered"}; /* from PREPARED on */

static PyObject *getitem_row, *transpose_row, *multiply_row, *square_row, *write_row, *reshape_row;
static PyObject *dtypes; /* of devices' libraries -> NumPy's, as they were met */

/* Forget a refusal of what a kernel was given (on_device.REFUSALS): the general path has NumPy's words for it, or another way.
   Kernels do not write to their arguments, so it may start anew. A TypeError is one where no function was entered, or `anywhere`. */
static void forget_refusal(bool anywhere = false) {
    PyObject *type, *error, *frames;
    PyErr_Fetch(&type, &error, &frames);
    bool unbound = (anywhere || frames == nullptr) && PyErr_GivenExceptionMatches(type, PyExc_TypeError);
    bool refused = !PyErr_GivenExceptionMatches(type, no_refusals) && (unbound || PyErr_GivenExceptionMatches(type, refusals));
    if (!refused) {
        PyErr_Restore(type, error, frames);
        throw Raised{};
    }
    Py_XDECREF(type), Py_XDECREF(error), Py_XDECREF(frames);
}

/* Whether a capture sees every call of this context. */
static bool is_captured() {
    PyObject *watching = nullptr;
    check(PyContextVar_Get(capture, nullptr, &watching));
    Ref owned(watching);
    return watching != Py_None;
}

/* Whether nothing watches or redirects calls on a device: on_device.free, whose answer without a capture depends on the
   policy and the device alone, so that its last one is kept. */
static bool unwatched(PyObject *device) {
    static PyObject *last_device, *last_policy;
    if (!busy())
        return true;
    PyObject *inner = nullptr;
    check(PyContextVar_Get(policies, nullptr, &inner));
    Ref owned(inner);
    if (inner == nullptr || is_captured())
        return false;
    PyObject *policy = PyTuple_CheckExact(inner) ? PyTuple_GET_ITEM(inner, 0) : slot(state, state_policy);
    if (policy == last_policy && device == last_device)
        return true;
    Ref current = borrow(policy), answer = call(is_free, device);
    if (answer.get() != Py_True)
        return false;
    Ref before(std::exchange(last_device, Py_NewRef(device))), also(std::exchange(last_policy, current.release()));
    return true;
}

/* Put shape and dtype of a buffer into its slots, as Buffer.__getattr__ does. */
static void describe(PyObject *b) {
    if (slot(b, buffer_shape) != nullptr && slot(b, buffer_dtype) != nullptr)
        return;
    PyObject *data = slot(b, buffer_data);
    Ref theirs = attribute(data, word_dtype), dtype = borrow(found(dtypes, theirs)), shape;
    if (dtype)
        shape = attribute(data, word_shape), shape = made(PySequence_Tuple(shape));
    else {
        Ref both = call_method(word_meta, slot(b, buffer_backend), data);
        PyObject *s, *d;
        if (!PyArg_ParseTuple(both, "O!O", &PyTuple_Type, &s, &d))
            throw Raised{};
        shape = borrow(s), dtype = borrow(d);
        check(PyDict_SetItem(dtypes, theirs, dtype));
    }
    Ref old(std::exchange(slot(b, buffer_shape), shape.release())), older(std::exchange(slot(b, buffer_dtype), dtype.release()));
}

static inline PyObject *shape_of_buffer(PyObject *b) { return describe(b), slot(b, buffer_shape); }
static inline PyObject *dtype_of_buffer(PyObject *b) { return describe(b), slot(b, buffer_dtype); }

static inline Py_ssize_t axes_of_buffer(PyObject *b) { return PyTuple_GET_SIZE(shape_of_buffer(b)); }

static Py_ssize_t axes_of_data(PyObject *data) {
    Ref shape = attribute(data, word_shape);
    Py_ssize_t n = PyObject_Size(shape);
    check(n < 0 ? -1 : 0);
    return n;
}

/* What a device keeps for a row, or an entry that it does in one call (borrowed); null where it has no kernel. */
static PyObject *kept_for(PyObject *device, PyObject *row) {
    static PyObject *last_device, *last_slots;
    if (device != last_device) {
        Ref slots = attribute(device, word_slots);
        if (!PyDict_CheckExact(slots))
            return nullptr;
        Ref before(std::exchange(last_device, Py_NewRef(device))), also(std::exchange(last_slots, slots.release()));
    }
    PyObject *kept = found(last_slots, row);
    if (kept == nullptr) { /* it is asked for the first time */
        PyObject *slots = last_slots;
        call(slot_of_row, device, row);
        kept = found(slots, row);
    }
    return kept != nullptr && PyList_CheckExact(kept) && PyList_GET_SIZE(kept) == SLOT_SIZE &&
                   PyList_GET_ITEM(kept, KERNEL) != Py_None ? kept : nullptr;
}

/* Whether NumPy 1 promotes arrays with axes and this number by their types: weak_in_numpy_1 in torch/dtypes.py. */
static bool is_weak(PyObject *x) {
    int beyond = 0;
    if (PyFloat_CheckExact(x))
        return !(6e4 <= fabs(PyFloat_AS_DOUBLE(x)) && std::isfinite(PyFloat_AS_DOUBLE(x)));
    long n = PyLong_CheckExact(x) ? PyLong_AsLongAndOverflow(x, &beyond) : -1;
    return 0 <= n && n <= 127;
}

static bool fits_int(PyObject *n) {
    int beyond = 0;
    PyLong_AsLongLongAndOverflow(n, &beyond);
    return beyond == 0;
}

/* Whether every operand lies in C order. */
static bool in_c_order(PyObject *const *data, Py_ssize_t n) {
    static PyObject *word_is_contiguous = PyUnicode_InternFromString("is_contiguous");
    for (Py_ssize_t i = 0; i < n; i++)
        if (!is_python_number(data[i]) && call_method(word_is_contiguous, data[i]).get() == Py_False)
            return false;
    return true;
}

/* The function a kernel runs for operands of these kinds; the kernel itself where that depends on more than dtypes and
   Python's types of numbers, or on how the operands lie. Throws where it refuses them. */
static Ref prepared_for(PyObject *kept, PyObject *const *data, Py_ssize_t n) {
    PyObject *prepared = PyList_GET_ITEM(kept, PREPARED);
    Ref kernel = borrow(PyList_GET_ITEM(kept, KERNEL));
    bool exact = PyList_GET_ITEM(kept, EXACT) == Py_True;
    if (!PyDict_CheckExact(prepared) || (PyList_GET_ITEM(kept, ORDERED) == Py_True && !in_c_order(data, n)))
        return kernel;
    Py_ssize_t axes = 0, none = 0; /* NumPy 1 promotes by types where all have axes, or none has */
    for (Py_ssize_t i = 0; !exact && i < n; i++)
        if (is_python_number(data[i]))
            axes += is_weak(data[i]), none += !PyLong_Check(data[i]) || fits_int(data[i]);
        else
            axes_of_data(data[i]) > 0 ? axes++ : none++;
    Ref kinds = n == 1 && none == 0 ? Ref() : made(PyTuple_New(n + (none == n))), kind; /* of one operand: its kind */
    if (none == n)
        PyTuple_SET_ITEM(kinds.get(), n, Py_NewRef(Py_None));
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = data[i];
        if (PyBool_Check(x))
            return kernel;
        kind = is_python_number(x) ? borrow((PyObject *)Py_TYPE(x)) : attribute(x, word_dtype);
        if (i > 0 && !exact && axes != n && none != n && kind.get() != PyTuple_GET_ITEM(kinds.get(), 0))
            return kernel;
        if (kinds)
            PyTuple_SET_ITEM(kinds.get(), i, Py_NewRef(kind));
    }
    const Ref &key = kinds ? kinds : kind;
    Ref run = borrow(found(prepared, key));
    if (!run) {
        run = made(PyObject_Vectorcall(PyList_GET_ITEM(kept, PLAN), data, n, nullptr));
        check(PyDict_SetItem(prepared, key, run));
    }
    return run;
}

static void count_call(PyObject *kept, int calls = 1) {
    Ref more = number(integer(PyList_GET_ITEM(kept, CALLS)) + calls);
    check(PyList_SetItem(kept, CALLS, more.release()));
}

static Ref params_of(PyObject *name, PyObject *value) {
    Ref params = made(PyDict_New());
    check(PyDict_SetItem(params, name, value));
    return params;
}

/* A buffer of a device's data. */
static Ref buffer_of(PyObject *device, Ref data, bool computed) {
    Ref b = made(Buffer->tp_alloc(Buffer, 0));
    slot(b, buffer_data) = data.release(), slot(b, buffer_backend) = Py_NewRef(device);
    slot(b, buffer_view) = Py_NewRef(Py_None), slot(b, buffer_computed) = PyBool_FromLong(computed);
    return b;
}

/* Whether an index is made of integers, slices of such, None and one ... alone, as every array library reads it;
   `back`: also of slices that step backwards. */
static bool simple_index(PyObject *i, bool back = false) {
    if (PyTuple_CheckExact(i)) {
        int whole = 0;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(i); k++) {
            PyObject *part = PyTuple_GET_ITEM(i, k);
            if (PyTuple_CheckExact(part) || !simple_index(part, back) || (part == Py_Ellipsis && whole++ > 0))
                return false;
        }
        return true;
    }
    if (!PySlice_Check(i))
        return PyLong_CheckExact(i) || i == Py_None || i == Py_Ellipsis;
    PySliceObject *s = (PySliceObject *)i;
    int beyond = 0;
    return (s->start == Py_None || PyLong_CheckExact(s->start)) && (s->stop == Py_None || PyLong_CheckExact(s->stop)) &&
           (s->step == Py_None ||
            (PyLong_CheckExact(s->step) && (back || PyLong_AsLongAndOverflow(s->step, &beyond) > 0)));
}

/* Whether `...` stands in an index: NumPy's result is then a view also where it has no axes, and no number. */
static bool has_ellipsis(PyObject *i) {
    for (Py_ssize_t k = 0; PyTuple_CheckExact(i) && k < PyTuple_GET_SIZE(i); k++)
        if (PyTuple_GET_ITEM(i, k) == Py_Ellipsis)
            return true;
    return i == Py_Ellipsis;
}

/* The axes of x[index], of a buffer and an index that is simple. */
static Py_ssize_t axes_left(PyObject *x, PyObject *index) {
    Py_ssize_t axes = axes_of_buffer(x);
    for (Py_ssize_t i = 0, n = PyTuple_CheckExact(index) ? PyTuple_GET_SIZE(index) : 1; i < n; i++) {
        PyObject *part = PyTuple_CheckExact(index) ? PyTuple_GET_ITEM(index, i) : index;
        axes += part == Py_None ? 1 : PyLong_CheckExact(part) ? -1 : 0;
    }
    return axes;
}

/* Whether an axis, or a value of keepdims, means the same to every array library: a number, a tuple of some. */
static bool plain_axis(PyObject *x) {
    Py_ssize_t n = PyTuple_CheckExact(x) ? PyTuple_GET_SIZE(x) : 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(x, i)))
            return false;
    return n > 0 || PyLong_CheckExact(x) || PyBool_Check(x);
}

/* Whether params are an axis and keepdims as every array library takes them. */
static bool plain_params(PyObject *params) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(params, &at, &name, &value))
        if ((name != word_axis && name != word_keepdims) || !plain_axis(value))
            return false;
    return true;
}

/* Add the integers among params, in tuples as well, to what a view's basic function is given; false where there is
   something else, or none. */
static bool add_integers(PyObject *params, Arguments &given) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(params, &at, &name, &value)) {
        bool several = PyTuple_CheckExact(value);
        Py_ssize_t n = several ? PyTuple_GET_SIZE(value) : 1;
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *x = several ? PyTuple_GET_ITEM(value, i) : value;
            if (!PyLong_CheckExact(x) || given.n == MOST)
                return false;
            given.add(borrow(x));
        }
    }
    return given.n > 1;
}

/* Whether an index is a list of Python's integers, which a library takes as NumPy does. */
static bool is_list_of_integers(PyObject *index) {
    Py_ssize_t n = PyList_CheckExact(index) ? PyList_GET_SIZE(index) : 0, i = 0;
    while (i < n && PyLong_CheckExact(PyList_GET_ITEM(index, i)))
        i++;
    return n > 0 && i == n;
}

/* The device's own array (borrowed) in an array of ours of int64, or a mask, with axes; else null. */
static PyObject *index_array(PyObject *index, PyObject *device, bool mask = true) {
    PyObject *b = is_ours(index) ? virtual_of(index) : nullptr;
    if (b == nullptr || !Py_IS_TYPE(b, Buffer) || slot(b, buffer_backend) != device || axes_of_buffer(b) == 0)
        return nullptr;
    char type = ((PyArray_Descr *)dtype_of_buffer(b))->type;
    return type == 'l' || type == 'q' || (mask && type == '?') ? slot(b, buffer_data) : nullptr;
}

/* An index with arrays as a device's library takes it as NumPy does: a mask, an array or list of integers, a tuple of these, or
   one of these among whole slices; else nothing. */
static Ref devices_index(PyObject *index, PyObject *device) {
    if (!PyTuple_CheckExact(index))
        return borrow(is_list_of_integers(index) ? index : index_array(index, device));
    Py_ssize_t n = PyTuple_GET_SIZE(index), arrays = 0;
    Ref parts = made(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = PyTuple_GET_ITEM(index, i), *a = is_list_of_integers(x) ? x : index_array(x, device, false);
        arrays += a != nullptr;
        if (a == nullptr && !(PySlice_Check(x) && simple_index(x)))
            return {};
        PyTuple_SET_ITEM(parts.get(), i, Py_NewRef(a != nullptr ? a : x));
    }
    return arrays == 1 || arrays == n ? parts : Ref();
}

/* Whether a buffer has elements: torch looks for none of those that an index names where there are none. */
static bool has_elements(PyObject *b) {
    PyObject *shape = shape_of_buffer(b);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++)
        if (integer(PyTuple_GET_ITEM(shape, i)) == 0)
            return false;
    return true;
}

/* x[index] of a buffer and an index with arrays: a copy. Nothing where Python must do it. */
static Ref chosen_on_device(PyObject *x, PyObject *index) {
    Ref device = borrow(slot(x, buffer_backend)), owned = borrow(x), i = devices_index(index, device);
    PyObject *kept = i && unwatched(device) && has_elements(x) ? kept_for(device, getitem_row) : nullptr;
    if (kept == nullptr || PyList_GET_ITEM(kept, BASIC) == Py_None)
        return {};
    Ref kernel = borrow(kept), data = borrow(slot(x, buffer_data)), out;
    try {
        Ref run = prepared_for(kept, &slot(x, buffer_data), 1);
        if (PyTuple_CheckExact(i) && PySlice_Check(PyTuple_GET_ITEM(i.get(), 0))) { /* NumPy's order differs from the library's */
            Ref params = params_of(word_index, i);
            out = made(PyObject_VectorcallDict(run, &slot(x, buffer_data), 1, params));
        } else
            out = made(PyObject_GetItem(data, i));
    } catch (const Raised &) {
        forget_refusal();
        return {};
    }
    count_call(kept);
    return array_of(buffer_of(device, out, true));
}

/* Whether x is a number, or a view, and the row's kernel asks its results what they show: x may be a copy where NumPy
   stepped backwards. Python knows what NumPy would make of these (on_device.shows). */
static bool ask_numpy(PyObject *kept, PyObject *x) {
    PyObject *shows = PyList_GET_ITEM(kept, SHOWS);
    bool view = slot(x, buffer_view) != Py_None;
    if (!view && slot(x, buffer_computed) == Py_True && axes_of_buffer(x) == 0)
        return true;
    return view && shows != Py_None && shows != Py_True;
}

/* Whether `out`, which row(params) made of the buffer x, shows x's memory as NumPy's result would: 1 or 0; -1: ask NumPy. */
static int shows_memory(PyObject *kept, PyObject *x, PyObject *row, PyObject *params, PyObject *out) {
    PyObject *shows = PyList_GET_ITEM(kept, SHOWS), *data = slot(x, buffer_data);
    PyObject *index = row == getitem_row ? found(params, word_index) : nullptr;
    if (index != nullptr && simple_index(index))
        return has_ellipsis(index) || axes_left(x, index) > 0; /* without axes: a number, as NumPy has it */
    if (shows == Py_True || (shows != Py_None && out == data) || (index != nullptr && simple_index(index, true)))
        return 1;
    Ref linked = shows != Py_None ? call(shows, out) : call_method(word_is_view, slot(x, buffer_backend), row, data, out, params);
    return linked.get() == Py_None ? -1 : truth_of(linked);
}

/* What joins a list of arrays that are alike, where the kernel offers a function (list, axis) for that; else nothing. */
static Ref joined(PyObject *kept, const Value *values, const Arguments &given, PyObject *params) {
    PyObject *axis = PyDict_GET_SIZE(params) == 1 ? found(params, word_axis) : nullptr, *basic = PyList_GET_ITEM(kept, BASIC);
    if (basic == Py_None || axis == nullptr || !PyLong_CheckExact(axis))
        return {};
    Py_ssize_t at = integer(axis), axes = -1;
    Ref list = made(PyTuple_New(given.n));
    for (Py_ssize_t i = 0; i < given.n; i++) { /* torch joins an empty vector to anything */
        Py_ssize_t n = values[i].kind == Kind::device ? axes_of_buffer(values[i].object) : 0;
        if ((i > 0 && n != axes) || at >= n || at <= -n)
            return {};
        axes = n;
        PyTuple_SET_ITEM(list.get(), i, Py_NewRef(given.items[i]));
    }
    Ref run = prepared_for(kept, given.items, given.n);
    return run.get() == basic ? call(basic, list, axis) : Ref();
}

/* The one function that calls a device's kernel: a row of buffers of a device, and numbers, with params. A buffer, or a
   tuple of some; of a view, the buffer says so. Nothing where Python must do it. `positional`: the one param is what
   follows the arrays, whatever a device's library calls it. */
static Ref run_on_device(PyObject *row, const Value *values, Py_ssize_t n, PyObject *params, bool positional = false) {
    PyObject *device = nullptr;
    Arguments given;
    if (n >= MOST)
        return {};
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = values[i].object;
        if (values[i].kind == Kind::device) {
            if (device != nullptr && device != slot(x, buffer_backend))
                return {};
            device = slot(x, buffer_backend), x = slot(x, buffer_data);
        } else if (x == nullptr || !is_python_number(x))
            return {};
        given.add(borrow(x));
    }
    PyObject *kept = device != nullptr && unwatched(device) ? kept_for(device, row) : nullptr;
    if (kept == nullptr)
        return {};
    bool view = n == 1 && Py_IS_TYPE(row, Row) && slot(row, row_view) == Py_True;
    PyObject *x = values[0].object, *basic = PyList_GET_ITEM(kept, BASIC);
    Ref owned_device = borrow(device), owned_kept = borrow(kept), owned_x = borrow(x), out; /* a kernel may do anything */
    try {
        if (view && ask_numpy(kept, x))
            return {};
        PyObject *index = row == getitem_row ? found(params, word_index) : nullptr, *shape = found(params, word_shape);
        bool bare = PyDict_GET_SIZE(params) == 0, prepare = view || positional || (basic == Py_None && plain_params(params));
        if (!view)
            out = joined(kept, values, given, params);
        Ref run = prepare ? prepared_for(kept, given.items, n) : borrow(PyList_GET_ITEM(kept, KERNEL));
        if (view && basic != Py_None && index != nullptr && simple_index(index))
            out = basic == operator_getitem ? made(PyObject_GetItem(given.items[0], index)) : call(basic, given.items[0], index);
        else if (view && basic != Py_None && index == nullptr && (shape != nullptr || axes_of_buffer(x) > 0) &&
                 add_integers(params, given))
            out = made(PyObject_Vectorcall(basic, given.items, given.n, nullptr));
        else if (positional) {
            PyObject *name, *value;
            Py_ssize_t at = 0;
            PyDict_Next(params, &at, &name, &value);
            given.add(borrow(value));
            out = made(PyObject_Vectorcall(run, given.items, given.n, nullptr));
        } else if (!out)
            out = made(PyObject_VectorcallDict(run, given.items, n, bare ? nullptr : params));
    } catch (const Raised &) {
        forget_refusal();
        return {};
    }
    if (is_list(out)) {
        count_call(kept);
        Py_ssize_t size = PySequence_Fast_GET_SIZE(out.get());
        Ref all = made(PyTuple_New(size));
        for (Py_ssize_t i = 0; i < size; i++) {
            Ref one = borrow(PySequence_Fast_GET_ITEM(out.get(), i));
            PyTuple_SET_ITEM(all.get(), i, (one.get() == Py_None ? one : buffer_of(device, one, true)).release());
        }
        return all;
    }
    int shows = view ? shows_memory(kept, x, row, params, out) : 0;
    if (shows < 0)
        return {};
    count_call(kept);
    Ref b = buffer_of(device, out, PyList_GET_ITEM(kept, NUMBERS) == Py_True);
    if (shows) {
        Ref origin = tuple_of(x, row, params), none(std::exchange(slot(b, buffer_view), origin.release()));
    }
    if (view && basic != Py_None) /* it is asked of x once, and of none of its views */
        slot(b, buffer_dtype) = Py_XNewRef(slot(x, buffer_dtype));
    return b;
}

/* Whether nothing but `views` views of it, with `held` references, holds or shows the buffer x: writing.py. */
static bool is_alone(PyObject *x, Py_ssize_t held, Py_ssize_t views) {
    PyObject *device = slot(x, buffer_backend), *data = slot(x, buffer_data);
    if (Py_REFCNT(x) != 1 + held || slot(x, buffer_copy) != nullptr || slot(x, buffer_view) != Py_None)
        return false;
    /* a view's data may refer to what it is of */
    Py_ssize_t refer = views > 0 && truth_of(attribute(device, word_views_refer).get()) ? views : 0;
    return Py_REFCNT(data) == 1 + refer && integer(call_method(word_holders, device, data).get()) == 1 + views;
}
