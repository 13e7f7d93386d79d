/* Attributes that NumPy's array tells, shape, dtype, T, real ..., and x.flat. */
#pragma once
#include "functions.hpp"

/* ------------------------------------------------------------------ x.flat: NumPy's iterator and the array it was taken from */
static PyObject *general_flat_getitem;
static objobjargproc general_flat_assign;

/* NumPy's iterator (borrowed) where its array is still what the array of ours holds, numbers, and nothing watches; else null. */
static PyObject *numpys_iterator(PyObject *self) {
    PyObject *flat = slot(self, flat_iterator), *h = slot(self, flat_base);
    PyObject *a = flat != nullptr && h != nullptr && is_ours(h) && !host_busy() ? host_of(h) : nullptr;
    if (a == nullptr || descr(a)->type_num == NPY_OBJECT)
        return nullptr;
    return attribute(flat, word_base).get() == a ? flat : nullptr;
}

static PyObject *flat_subscript(PyObject *self, PyObject *index) {
    return guarded([=] {
        if (PyObject *flat = numpys_iterator(self))
            if (Ref i = numpys_index(index)) {
                Ref owned = borrow(flat);
                return result_of(made(PyObject_GetItem(flat, i))); /* a number, or a copy */
            }
        return call(general_flat_getitem, self, index);
    });
}

static int flat_assign(PyObject *self, PyObject *index, PyObject *value) {
    return guarded_status([=] {
        PyObject *flat = value != nullptr && !taped() ? numpys_iterator(self) : nullptr;
        PyObject *v = flat == nullptr ? nullptr : is_ours(value) ? host_of(value) : is_plain(value) ? value : nullptr;
        if (v != nullptr)
            if (Ref i = numpys_index(index)) {
                Ref owned = borrow(flat), also = borrow(v);
                return PyObject_SetItem(flat, i, v);
            }
        return general_flat_assign(self, index, value);
    });
}

/* As getitem_call. */
static PyObject *flat_getitem_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    if (PyVectorcall_NARGS(nargsf) == 2 && names == nullptr && Py_IS_TYPE(args[0], FlatIterator))
        return flat_subscript(args[0], args[1]);
    return PyObject_Vectorcall(general_of(self), args, nargsf, names);
}

/* Put a fast function before a class's method; the method, for good. */
static PyObject *put_before(PyObject *type, const char *name, vectorcallfunc call) {
    Ref general = made(PyObject_GetAttrString(type, name)), fast = new_function(general, call);
    check(PyObject_SetAttrString(type, name, fast));
    return general.release();
}

static void give_flat_slots() {
    general_flat_getitem = put_before((PyObject *)FlatIterator, "__getitem__", flat_getitem_call);
    PyMappingMethods *mapping = FlatIterator->tp_as_mapping;
    mapping->mp_subscript = flat_subscript;
    general_flat_assign = std::exchange(mapping->mp_ass_subscript, flat_assign);
    PyType_Modified(FlatIterator);
}

/* ------------------------------------------------------------------ the others */
struct FastAttribute {
    PyObject_HEAD
    PyObject *general, *name; /* the property in Python; the attribute of NumPy's array */
    PyGetSetDef *numpys;      /* of NumPy's class, or null */
    int of_values;            /* tracers and buffers have it too */
};

/* The attribute of NumPy's array in the user's form; nothing where Python must find it. */
static Ref numpys_attribute(const FastAttribute *f, PyObject *h, PyObject *a) {
    Ref out = made(f->numpys != nullptr ? f->numpys->get(a, f->numpys->closure) : PyObject_GetAttr(a, f->name));
    if (Py_IS_TYPE(out.get(), &PyArrayIter_Type)) { /* x.flat */
        Ref flat = made(FlatIterator->tp_alloc(FlatIterator, 0));
        slot(flat, flat_iterator) = out.release(), slot(flat, flat_base) = Py_NewRef(h);
        return flat;
    }
    if (!is_host(out.get()))
        return out;
    if (Ref seen = seen_from(h, out))
        return seen;
    if (Py_REFCNT(out.get()) == 1 && fields(out)->base == nullptr) /* the zeros of x.imag */
        return array_on(std::move(out), Py_None);
    return {};
}

static PyObject *attribute_get(PyObject *self, PyObject *instance, PyObject *type) {
    FastAttribute *f = (FastAttribute *)self;
    return guarded([=] {
        if (instance == nullptr || instance == Py_None)
            return borrow(f->general);
        if (ready && is_ours(instance)) {
            Value v = value_of(instance);
            Ref out;
            if (v.is_array() && !host_busy())
                out = numpys_attribute(f, instance, v.object);
            else if (f->name == word_T && !v.on_host() && v.kind != Kind::other)
                out = apply(transpose_row, &instance, &v, 1, no_params);
            else if (f->of_values && v.kind == Kind::device && unwatched(slot(v.object, buffer_backend)))
                out = attribute(v.object, f->name);
            else if (f->of_values && v.kind == Kind::traced && !busy() && is_host(slot(v.object, tracer_value)) &&
                     Py_IS_TYPE(slot(v.object, tracer_trace), Tape))
                out = attribute(slot(v.object, tracer_value), f->name);
            if (out)
                return out;
        }
        return made(Py_TYPE(f->general)->tp_descr_get(f->general, instance, type));
    });
}

static int attribute_set(PyObject *self, PyObject *instance, PyObject *value) {
    PyObject *general = ((FastAttribute *)self)->general;
    return Py_TYPE(general)->tp_descr_set(general, instance, value);
}

static void attribute_dealloc(PyObject *self) {
    Py_XDECREF(((FastAttribute *)self)->general);
    Py_XDECREF(((FastAttribute *)self)->name);
    PyObject_Free(self);
}

static PyObject *attribute_getattr(PyObject *f, PyObject *name) { return PyObject_GetAttr(((FastAttribute *)f)->general, name); }

static PyTypeObject FastAttributeType = {PyVarObject_HEAD_INIT(nullptr, 0)};

static void ready_attributes() {
    FastAttributeType.tp_name = "minnp.core.compiled._fastpath.FastAttribute";
    FastAttributeType.tp_basicsize = sizeof(FastAttribute);
    FastAttributeType.tp_dealloc = attribute_dealloc;
    FastAttributeType.tp_getattro = attribute_getattr;
    FastAttributeType.tp_flags = Py_TPFLAGS_DEFAULT;
    FastAttributeType.tp_descr_get = attribute_get;
    FastAttributeType.tp_descr_set = attribute_set;
    check(PyType_Ready(&FastAttributeType));
}

/* attribute(property, name, of_values): a FastAttribute. */
static PyObject *make_attribute(PyObject *, PyObject *args) {
    return guarded([=] {
        PyObject *general, *name;
        int of_values;
        if (!PyArg_ParseTuple(args, "OUp", &general, &name, &of_values))
            throw Raised{};
        FastAttribute *f = PyObject_New(FastAttribute, &FastAttributeType);
        Ref owned = made((PyObject *)f);
        f->general = Py_NewRef(general), f->name = Py_NewRef(name), f->of_values = of_values;
        PyUnicode_InternInPlace(&f->name);
        PyObject *theirs = found(Host->tp_dict, name);
        bool getset = theirs != nullptr && Py_IS_TYPE(theirs, &PyGetSetDescr_Type);
        f->numpys = getset ? ((PyGetSetDescrObject *)theirs)->d_getset : nullptr;
        return owned;
    });
}
