/* Rows under a gradient's tape: a row's result and its node. A node is (row, params, parents, arrays, y, shape, dtype); see
   transforms/tape.py. */
#pragma once
#include "numbers.hpp"

/* Shape and dtype of an array, a number of NumPy's or a buffer. */
static std::pair<Ref, Ref> described(PyObject *x) {
    if (Py_IS_TYPE(x, Buffer))
        return {borrow(shape_of_buffer(x)), borrow(dtype_of_buffer(x))};
    return {shape_of(x), is_host(x) ? borrow(dtype_of_array(x)) : attribute(x, word_dtype)};
}

/* What a tape keeps of an array that no rule reads. */
static Ref meta_of(PyObject *shape, PyObject *dtype) {
    Ref meta = made(Meta->tp_alloc(Meta, 0));
    slot(meta, meta_shape) = Py_NewRef(shape), slot(meta, meta_dtype) = Py_NewRef(dtype);
    return meta;
}

/* Whether a parameter cannot change: what saved.FIXED names. */
static bool is_fixed(PyObject *x) {
    if (PySlice_Check(x)) {
        PySliceObject *s = (PySliceObject *)x;
        return is_fixed(s->start) && is_fixed(s->stop) && is_fixed(s->step);
    }
    if (!PyTuple_CheckExact(x))
        return x == Py_None || x == Py_Ellipsis || PyLong_Check(x) || PyFloat_CheckExact(x) || PyUnicode_CheckExact(x) ||
               PyType_Check(x) || PyObject_TypeCheck(x, Dtype);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(x); i++)
        if (!is_fixed(PyTuple_GET_ITEM(x, i)))
            return false;
    return true;
}

/* saved.kept_params: a row's parameters as a trace may keep them. */
static Ref params_to_keep(PyObject *params) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(params, &at, &name, &value))
        if (!is_fixed(value))
            return call(kept_params, params);
    return borrow(params);
}

/* saved.safe: a value as a tape may keep it, a copy where others may write to its memory. */
static Ref value_to_keep(PyObject *x) {
    if (!is_host(x))
        return borrow(x);
    PyObject *base = fields(last_base(x))->base;
    if ((base == nullptr || Py_IS_TYPE(base, Lease)) && PyDict_GET_SIZE(outside_memory) == 0)
        return borrow(x);
    return call(safe, x);
}

static inline bool is_traced(PyObject *parents, Py_ssize_t i) { return integer(PySequence_Fast_GET_ITEM(parents, i)) >= 0; }

/* What a node keeps of a row's arguments: themselves where rules read them, else GradTrace._metas. */
static Ref arguments_to_keep(PyObject *const *raw, PyObject *parents, Py_ssize_t n, bool whole, bool all_traced) {
    if (!whole && all_traced)
        return borrow(Py_None);
    Ref arrays = made(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = raw[i];
        Ref kept;
        if (is_traced(parents, i))
            kept = borrow(whole || !(Py_IS_TYPE(x, Buffer) || is_host(x)) ? x : Py_None);
        else if (whole)
            kept = value_to_keep(x);
        else if (Py_IS_TYPE(x, Buffer) || is_host(x)) {
            auto [shape, dtype] = described(x);
            kept = meta_of(shape, dtype);
        } else
            kept = borrow(x);
        PyTuple_SET_ITEM(arrays.get(), i, kept.release());
    }
    return arrays;
}

/* A row's kernel on NumPy's arrays and numbers, as GradTrace runs it; nothing for large arrays, which threads share. */
static Ref run_on_host(PyObject *row, PyObject *const *raw, Py_ssize_t n, PyObject *params) {
    bool bare = PyDict_GET_SIZE(params) == 0, elementwise = bare && slot(row, row_elementwise) == Py_True;
    if (slot(row, row_worth) != Py_None)
        return {};
    for (Py_ssize_t i = 0; i < n && elementwise; i++)
        if (is_host(raw[i]) && size_of(raw[i]) >= large)
            return {};
    count_row(row);
    PyObject *kernel = slot(row, elementwise ? row_numpy : row_fast);
    Ref out = elementwise && is_small(kernel) ? small_result(kernel, raw, n) : Ref();
    return out ? out : made(PyObject_VectorcallDict(kernel, raw, n, bare ? nullptr : params));
}

/* The one function that records a node: GradTrace.process where what a tape watches are NumPy's arrays, or buffers of one
   device. A tracer, or what the tape does not watch; nothing where Python must do it. `given`: what the user gave, who may
   change arrays of NumPy's own among them; null where a rule calls. */
static Ref record(PyObject *row, const Value *values, Py_ssize_t n, PyObject *params, PyObject *const *given) {
    if (PyDict_GET_SIZE(params) == 0)
        if (Ref out = record_numbers(row, values, n))
            return out;
    PyObject *raw[MOST], *tape = nullptr;
    Value under[MOST];
    bool all_traced = true, host = false, device = false;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = values[i].object;
        if (values[i].kind == Kind::traced) {
            if (tape != nullptr && slot(x, tracer_trace) != tape)
                return {};
            tape = slot(x, tracer_trace), x = slot(x, tracer_value);
            if (tape == nullptr || x == nullptr)
                return {};
        } else
            all_traced = false;
        if (x == nullptr)
            return {};
        raw[i] = x, under[i] = value_of(x);
        if (under[i].kind == Kind::device)
            device = true;
        else if (!under[i].on_host())
            return {};
        else
            host = host || under[i].is_array() || !is_python_number(x);
    }
    if (tape == nullptr || !Py_IS_TYPE(tape, Tape) || slot(tape, tape_alive) != Py_True || row == write_row ||
        (host && (device || busy())))
        return {};
    PyObject *vjp = slot(row, row_vjp);
    Ref owned_tape = borrow(tape), parents = made(PyTuple_New(n)); /* a kernel that is Python may do anything */
    Arguments owned;
    for (Py_ssize_t i = 0; i < n; i++) {
        bool traced = values[i].kind == Kind::traced;
        if (given != nullptr && is_host(given[i]))
            call(note_outside, given[i]);
        PyTuple_SET_ITEM(parents.get(), i, traced ? Py_NewRef(slot(values[i].object, tracer_node)) : number(-1).release());
        owned.add(borrow(raw[i]));
    }
    Ref kept = params_to_keep(params);
    Ref z = device ? run_on_device(row, under, n, kept) : run_on_host(row, raw, n, kept);
    if (!z || PyUnicode_CheckExact(vjp)) /* CONSTANT */
        return z;
    bool single = device ? Py_IS_TYPE(z.get(), Buffer) : is_host(z.get()) || (is_number(z) && !is_python_number(z));
    bool view = slot(row, row_view) == Py_True && values[0].kind == Kind::traced, shows = false, known = single;
    Ref shape, dtype;
    if (single)
        std::tie(shape, dtype) = described(z);
    if (single && view && device)
        shows = slot(z, buffer_view) != Py_None && PyTuple_GET_ITEM(slot(z, buffer_view), 0) == raw[0];
    else if (single && view && is_host(z.get()) && is_host(raw[0])) {
        shows = z.get() == raw[0] || shows_array(z, raw[0]);
        known = shows || fields(z)->base == nullptr; /* else Python must find out whose memory it shows */
    }
    if (!known || strchr("fc", ((PyArray_Descr *)dtype.get())->kind) == nullptr) { /* several results, integers */
        Ref all = made(PyTuple_New(n)), all_raw = made(PyTuple_New(n));
        for (Py_ssize_t i = 0; i < n; i++) {
            PyTuple_SET_ITEM(all.get(), i, Py_NewRef(values[i].object));
            PyTuple_SET_ITEM(all_raw.get(), i, Py_NewRef(raw[i]));
        }
        return call_method(word_recorded, tape, row, all, kept, parents, all_raw, z);
    }
    Ref arrays = arguments_to_keep(raw, parents, n, saves_arguments(row), all_traced);
    Ref node = tuple_of(row, kept, parents, arrays, saves_result(row) ? z.get() : Py_None, shape, dtype);
    Ref tracer = traced_by(tape, node, std::move(z));
    if (shows) {
        Ref view = tuple_of(values[0].object, row, kept), none(std::exchange(slot(tracer, tracer_view), view.release()));
    }
    return tracer;
}

/* array.wrap: the user's form of what a row made of the array `first`, a view of that where it shows it. */
static Ref in_users_form(Ref value, PyObject *first) {
    if (PyTuple_CheckExact(value)) {
        Py_ssize_t n = PyTuple_GET_SIZE(value.get());
        Ref all = made(PyTuple_New(n));
        for (Py_ssize_t i = 0; i < n; i++)
            PyTuple_SET_ITEM(all.get(), i, in_users_form(borrow(PyTuple_GET_ITEM(value.get(), i)), first).release());
        return all;
    }
    if (is_host(value.get()) || is_number(value))
        return result_of(std::move(value));
    bool buffer = Py_IS_TYPE(value.get(), Buffer);
    if (!buffer && !Py_IS_TYPE(value.get(), Tracer)) {
        Ref args = tuple_of(first);
        return call(wrap, value, args);
    }
    Ref origin = borrow(slot(value, buffer ? buffer_view : tracer_view)), h = array_of(std::move(value));
    if (!origin || origin.get() == Py_None || !is_ours(first) || virtual_of(first) != PyTuple_GET_ITEM(origin.get(), 0))
        return h;
    PyObject *root = root_of(first);
    Ref step = tuple_of(PyTuple_GET_ITEM(origin.get(), 1), PyTuple_GET_ITEM(origin.get(), 2)), steps = tuple_of(step);
    if (root != first)
        steps = made(PySequence_Concat(field(first, steps_at), steps));
    Ref none(std::exchange(field(h, root_at), Py_NewRef(root)));
    field(h, steps_at) = steps.release(), field(h, seen_at) = Py_NewRef(field(root, value_at));
    return h;
}

/* The kind of dtype of a value that is traced, or lies on a device. */
static char kind_of(const Value &v) {
    PyObject *x = v.object;
    while (x != nullptr && Py_IS_TYPE(x, Tracer))
        x = slot(x, tracer_value);
    return x == nullptr ? 0 : ((PyArray_Descr *)described(x).second.get())->kind;
}

/* A row of what users hold, traced or on a device, with params: what they get. Nothing where Python must do it. */
static Ref apply(PyObject *row, PyObject *const *operands, const Value *values, Py_ssize_t n, PyObject *params,
                 bool positional = false) {
    bool traced = false, device = false;
    if (n >= MOST)
        return {};
    for (Py_ssize_t i = 0; i < n; i++)
        traced = traced || values[i].kind == Kind::traced, device = device || values[i].kind == Kind::device;
    if (traced && n == 2 && operands[0] == operands[1] && row == multiply_row && kind_of(values[0]) == 'f') {
        if (busy())
            return {};
        row = square_row, n = 1; /* operators._multiply */
    }
    Ref out = traced   ? record(row, values, n, params, operands)
              : device ? run_on_device(row, values, n, params, positional)
                       : Ref();
    return out ? in_users_form(std::move(out), operands[0]) : out;
}

static ternaryfunc general_row_call;

/* A row called, row(*args, **params): array._call, dispatch.bind. */
static Ref call_row(PyObject *row, PyObject *args, PyObject *params) {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject *const *operands = &PyTuple_GET_ITEM(args, 0);
    Value values[MOST];
    bool ours = false, traced = false, device = false, host = false;
    if (n == 0 || n >= MOST)
        return {};
    for (Py_ssize_t i = 0; i < n; i++) {
        ours = ours || is_ours(operands[i]);
        values[i] = value_of(operands[i]);
        switch (values[i].kind) {
        case Kind::traced: traced = true; break;
        case Kind::device: device = true; break;
        case Kind::other: return {};
        default: host = host || !is_python_number(values[i].object);
        }
    }
    if (host && device)
        return {};
    PyObject *given = params != nullptr ? params : no_params;
    if (traced || device) {
        Ref out = traced ? record(row, values, n, given, ours ? operands : nullptr) : run_on_device(row, values, n, given);
        return out && ours ? in_users_form(std::move(out), operands[0]) : out;
    }
    if (ours || busy() || slot(row, row_worth) != Py_None)
        return {};
    count_row(row);
    return made(PyObject_Call(slot(row, row_fast), args, params));
}

static PyObject *row_call(PyObject *row, PyObject *args, PyObject *params) {
    return guarded([=] {
        Ref out = call_row(row, args, params);
        return out ? out : made(general_row_call(row, args, params));
    });
}

/* ------------------------------------------------------------------ which nodes keep an owner's memory */
/* value.owner: the object whose memory an array shows. */
static Ref owner_of(PyObject *a) {
    PyObject *last = last_base(a);
    return fields(last)->base == nullptr ? borrow(last) : call(owner, last);
}

/* Add number `node` to by_owner's list for each owner of an array in x, which may be a list or a tuple of them. */
static void index_value(PyObject *x, PyObject *node, PyObject *by_owner) {
    if (is_list(x)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(x); i++)
            index_value(PySequence_Fast_GET_ITEM(x, i), node, by_owner);
        return;
    }
    while (Py_IS_TYPE(x, Tracer))
        x = slot(x, tracer_value);
    if (!PyObject_TypeCheck(x, Host))
        return;
    Ref own = owner_of(x), key = made(PyLong_FromVoidPtr(own));
    PyObject *known = found(by_owner, key);
    Ref list = known != nullptr ? borrow(known) : made(PyList_New(0));
    check(PyList_Append(list, node));
    check(PyDict_SetItem(by_owner, key, list));
}

static void index_nodes(PyObject *nodes, Py_ssize_t n, PyObject *by_owner) {
    for (; n < PyList_GET_SIZE(nodes); n++) {
        Ref node = borrow(PyList_GET_ITEM(nodes, n)); /* another thread may replace it */
        if (is_number_node(node))
            continue;
        Ref at = number(n);
        PyObject *params = PyTuple_GET_ITEM(node.get(), NODE_PARAMS), *name, *value;
        index_value(PyTuple_GET_ITEM(node.get(), NODE_ARRAYS), at, by_owner);
        index_value(PyTuple_GET_ITEM(node.get(), NODE_Y), at, by_owner);
        Py_ssize_t k = 0;
        while (PyDict_CheckExact(params) && PyDict_Next(params, &k, &name, &value))
            index_value(value, at, by_owner);
    }
}

/* index_kept(nodes, n, by_owner): tape.index_kept. */
static PyObject *index_kept(PyObject *, PyObject *args) {
    return guarded([=] {
        PyObject *nodes, *by_owner;
        Py_ssize_t n;
        if (!PyArg_ParseTuple(args, "O!nO!", &PyList_Type, &nodes, &n, &PyDict_Type, &by_owner))
            throw Raised{};
        index_nodes(nodes, n, by_owner);
        return borrow(Py_None);
    });
}

/* writing.release of the memory of an owner: what tapes saved of it is copied, where they saved some. */
static void release_memory(const Ref &memory) {
    Ref tapes = made(PyDict_Values(slot(state, state_tapes))), key = made(PyLong_FromVoidPtr(memory));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tapes.get()); i++) {
        PyObject *tape = PyList_GET_ITEM(tapes.get(), i), *saved = Py_IS_TYPE(tape, Tape) ? slot(tape, tape_saved) : Py_None;
        if (saved != Py_None) {
            Ref nodes = borrow(slot(tape, tape_nodes)), by_owner = borrow(saved);
            index_nodes(nodes, integer(slot(tape, tape_indexed)), by_owner);
            Ref before(std::exchange(slot(tape, tape_indexed), number(PyList_GET_SIZE(nodes.get())).release()));
            if (found(by_owner, key) == nullptr)
                continue;
        }
        call_method(word_release, tape, memory);
    }
}

/* ------------------------------------------------------------------ writes */
/* The index of the one step that leads from its root to the view h (borrowed), where that is x[index]; else null. */
static PyObject *step_of_view(PyObject *h) {
    PyObject *steps = field(h, steps_at);
    if (steps == nullptr || !PyTuple_CheckExact(steps) || PyTuple_GET_SIZE(steps) != 1)
        return nullptr;
    PyObject *step = PyTuple_GET_ITEM(steps, 0), *params = PyTuple_GET_ITEM(step, 1);
    return PyTuple_GET_ITEM(step, 0) == getitem_row && PyDict_CheckExact(params) ? found(params, word_index) : nullptr;
}

/* Whether x, the tracer in `self`, which is no view, has memory of floats that is the tape's own, and may be written. */
static bool is_writable_on_tape(PyObject *self, PyObject *x) {
    PyObject *tape = slot(x, tracer_trace), *base = slot(x, tracer_value);
    if (field(self, root_at) != Py_None || !is_recording(tape) || base == nullptr || !is_host(base) ||
        fields(base)->base != nullptr || descr(base)->kind != 'f' || !(fields(base)->flags & NPY_ARRAY_WRITEABLE))
        return false;
    PyObject *lent = slot(tape, tape_lent);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lent); i++) {
        PyObject *given = PyList_GET_ITEM(lent, i);
        while (Py_IS_TYPE(given, Tracer))
            given = slot(given, tracer_value);
        if (is_host(given) && last_base(given) == base)
            return false;
    }
    return true;
}

/* writing.write where all that is written is a number, or what the tape of `self` follows: the memory is written, and the tape
   has a node more. Whether that was done. */
static bool write_on_tape(PyObject *self, PyObject *x, PyObject *index, const Value &v) {
    PyObject *base = slot(x, tracer_value), *what = v.object;
    bool traced = v.kind == Kind::traced, all = index == Py_Ellipsis;
    if (!is_writable_on_tape(self, x) || !simple_index(index, true) || what == nullptr || (all && !traced))
        return false;
    if (traced) {
        if (slot(what, tracer_trace) != slot(x, tracer_trace))
            return false;
        what = slot(what, tracer_value);
    }
    if (traced && is_host(what) ? descr(what) != descr(base) || last_base(what) == base
                                : !Py_IS_TYPE(what, descr(base)->typeobj) &&
                                      (traced || !(PyFloat_CheckExact(what) || PyLong_CheckExact(what))))
        return false;
    Ref owned_x = borrow(x), owned_base = borrow(base), owned_what = borrow(what), tape = borrow(slot(x, tracer_trace));
    Ref owned_value = borrow(v.object), node = all ? Ref() : number_written(x, index, v);
    release_memory(owned_base);
    check(PyObject_SetItem(base, index, what));
    if (!node) {
        auto [shape, dtype] = described(base);
        Ref none = number(-1), before = all ? none : borrow(slot(x, tracer_node));
        Ref parents = tuple_of(before, traced ? slot(v.object, tracer_node) : none.get()), params = params_of_write(index);
        Ref arrays = borrow(Py_None), meta;
        if (all)
            meta = meta_of(shape, dtype), arrays = tuple_of(meta, Py_None);
        else if (!traced)
            arrays = tuple_of(Py_None, what);
        node = tuple_of(write_row, params, parents, arrays, Py_None, shape, dtype);
    }
    count_row(write_row);
    Ref old(std::exchange(field(self, value_at), traced_by(tape, node, owned_base).release()));
    return true;
}

/* Whether an array broadcasts to the shape of array a. */
static bool broadcasts_to(PyObject *x, PyObject *a) {
    int extra = fields(a)->nd - fields(x)->nd;
    for (int i = 0; extra >= 0 && i < fields(x)->nd; i++)
        if (fields(x)->dimensions[i] != 1 && fields(x)->dimensions[i] != fields(a)->dimensions[i + extra])
            return false;
    return extra >= 0;
}

/* operators._assigned, v op= w, where v is an array that a tape follows, or x[index] of one, and w is a number or has v's
   dtype: what the row makes of them is written. Whether that was done. */
static bool assign_on_tape(PyObject *v, PyObject *w, const Value *values, PyObject *row) {
    PyObject *x = values[0].object, *a = slot(x, tracer_value), *root = field(v, root_at), *target = v, *index = Py_Ellipsis;
    PyObject *other = values[1].object;
    if (v == w || a == nullptr || !is_host(a) || fields(a)->nd == 0 || descr(a)->kind != 'f' || other == nullptr)
        return false;
    if (!(fields(a)->flags & NPY_ARRAY_WRITEABLE)) /* Python raises NumPy's exception */
        return false;
    if (values[1].kind == Kind::traced && (slot(other, tracer_trace) != slot(x, tracer_trace) || (other = slot(other, tracer_value)) == nullptr))
        return false;
    if (is_host(other) ? descr(other) != descr(a) || !broadcasts_to(other, a)
                       : !(PyFloat_CheckExact(other) || PyLong_CheckExact(other) || Py_IS_TYPE(other, descr(a)->typeobj)))
        return false;
    if (root != Py_None) {
        target = root, index = step_of_view(v);
        if (index == nullptr || !simple_index(index, true) || index == Py_Ellipsis || field(root, host_at) != Py_None)
            return false;
        x = field(root, value_at); /* which it is of: virtual_of */
    }
    if (x == nullptr || !Py_IS_TYPE(x, Tracer) || slot(x, tracer_trace) != slot(values[0].object, tracer_trace))
        return false;
    bool whole = root == Py_None && Py_IS_TYPE(v, Virtual); /* which holds what it is given, and no view of NumPy's sees it */
    if (whole ? !is_recording(slot(x, tracer_trace)) : !is_writable_on_tape(target, x))
        return false;
    PyObject *operands[] = {v, w};
    Ref owned_x = borrow(x), owned_index = borrow(index), owned_a = borrow(a), owned_target = borrow(target);
    Ref out = record(row, values, 2, no_params, operands);
    if (!out || !Py_IS_TYPE(out.get(), Tracer))
        return false;
    PyObject *result = slot(out, tracer_value);
    if (!is_host(result) || descr(result) != descr(a) || !same_shape(result, a))
        return false;
    if (!whole)
        return write_on_tape(target, x, index, {Kind::traced, out});
    if (memcmp(fields(result)->strides, fields(a)->strides, fields(a)->nd * sizeof(npy_intp)) != 0)
        return false;
    Ref before(std::exchange(field(v, value_at), out.release()));
    return true;
}
