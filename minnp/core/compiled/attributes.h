/* Attributes that NumPy's array tells: shape, dtype, T, real, flat. */

/* ------------------------------------------------------------------ x.flat, attributes.FlatIterator
   NumPy's iterator and the handle it was taken from; the short ways of numbers on the host. */
static PyTypeObject *Flat;
static PyObject *python_flat_getitem, *word_base;
static objobjargproc python_flat_assign;
static Py_ssize_t flat_at, flat_base_at;

/* A new FlatIterator of handle h on NumPy's iterator (whose reference it takes). */
static PyObject *flat_on(PyObject *h, PyObject *flat) {
    PyObject *f = Flat->tp_alloc(Flat, 0);
    if (f == NULL) {
        Py_DECREF(flat);
        return NULL;
    }
    SLOT(f, flat_at) = flat, SLOT(f, flat_base_at) = Py_NewRef(h);
    return f;
}

/* NumPy's iterator (borrowed) where its array is still what the handle holds, numbers, and nothing watches; else NULL. */
static PyObject *calm_flat(PyObject *self) {
    PyObject *flat = Py_IS_TYPE(self, Flat) ? SLOT(self, flat_at) : NULL, *h = flat != NULL ? SLOT(self, flat_base_at) : NULL;
    PyObject *a = h != NULL && is_handle(h) && !busy() ? host_of(h) : NULL;
    if (a == NULL || DESCR(a) == object_dtype)
        return NULL;
    PyObject *base = PyObject_GetAttr(flat, word_base);
    Py_XDECREF(base); /* which the iterator keeps */
    if (base == NULL)
        PyErr_Clear();
    return base == a ? flat : NULL;
}

static PyObject *flat_subscript(PyObject *self, PyObject *index) {
    PyObject *flat = calm_flat(self), *i = flat != NULL ? index_on_host(index) : NULL;
    if (i != NULL) {
        Py_INCREF(flat);
        PyObject *out = PyObject_GetItem(flat, i); /* a number, or a copy */
        Py_DECREF(flat), Py_DECREF(i);
        return result_of(out);
    }
    if (PyErr_Occurred())
        return NULL;
    PyObject *both[] = {self, index};
    return PyObject_Vectorcall(python_flat_getitem, both, 2, NULL);
}

static int flat_assign(PyObject *self, PyObject *index, PyObject *value) {
    PyObject *flat = value != NULL && !taped() ? calm_flat(self) : NULL;
    PyObject *v = flat == NULL ? NULL : is_handle(value) ? host_of(value) : is_plain(value) ? value : NULL;
    PyObject *i = v != NULL ? index_on_host(index) : NULL;
    if (i == NULL)
        return PyErr_Occurred() ? -1 : python_flat_assign(self, index, value);
    Py_INCREF(flat), Py_INCREF(v);
    int status = PyObject_SetItem(flat, i, v);
    Py_DECREF(flat), Py_DECREF(v), Py_DECREF(i);
    return status;
}

/* As getitem_call. */
static PyObject *flat_getitem_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    if (PyVectorcall_NARGS(nargsf) == 2 && kwnames == NULL && Py_IS_TYPE(args[0], Flat))
        return flat_subscript(args[0], args[1]);
    return PyObject_Vectorcall(((Short *)self)->python, args, nargsf, kwnames);
}

/* flat(FlatIterator): its short ways. */
static PyObject *flat_setup(PyObject *Py_UNUSED(module), PyObject *type) {
    flat_at = slot_of(type, "_flat"), flat_base_at = slot_of(type, "base");
    if (PyErr_Occurred() || (word_base = PyUnicode_InternFromString("base")) == NULL ||
        (python_flat_getitem = PyObject_GetAttrString(type, "__getitem__")) == NULL)
        return NULL;
    PyObject *getitem = new_short(python_flat_getitem, flat_getitem_call);
    int failed = getitem == NULL || PyObject_SetAttrString(type, "__getitem__", getitem) < 0;
    Py_XDECREF(getitem);
    if (failed)
        return NULL;
    Flat = (PyTypeObject *)Py_NewRef(type);
    Flat->tp_as_mapping->mp_subscript = flat_subscript;
    python_flat_assign = Flat->tp_as_mapping->mp_ass_subscript, Flat->tp_as_mapping->mp_ass_subscript = flat_assign;
    PyType_Modified(Flat);
    Py_RETURN_NONE;
}

typedef struct {
    PyObject_HEAD
    PyObject *python, *name; /* the property this is the short way of; the attribute of NumPy's array */
    PyGetSetDef *theirs;     /* of NumPy's class, or NULL */
    int transposes, flattens, told; /* it is x.T; it is x.flat; a buffer tells it too */
} Fact;

static PyObject *fact_get(PyObject *self, PyObject *instance, PyObject *type) {
    Fact *f = (Fact *)self;
    PyObject *a;
    if (instance == NULL || instance == Py_None) {
        Py_INCREF(f->python);
        return f->python;
    }
    if (is_handle(instance) && (a = host_of(instance)) != NULL && !busy()) {
        PyObject *out = f->theirs != NULL ? f->theirs->get(a, f->theirs->closure) : PyObject_GetAttr(a, f->name);
        if (out == NULL || !Py_IS_TYPE(out, Host))
            return out != NULL && f->flattens && Flat != NULL ? flat_on(instance, out) : out;
        PyObject *h = seen_from(instance, out);
        if (h != NULL || PyErr_Occurred())
            return h;
        if (Py_REFCNT(out) == 1 && ((Array *)out)->base == NULL) /* the zeros of x.imag */
            return handle_on(out, Py_None);
        Py_DECREF(out);
    }
    PyObject *b = f->transposes || f->told ? under(value_in(instance)) : NULL;
    if (b != NULL && Py_IS_TYPE(b, Host) && f->told && !busy())
        return PyObject_GetAttr(b, f->name);
    if (b != NULL && f->transposes) {
        PyObject *h = view_on_place(transpose_row, instance, NULL, NULL, 0, NULL, 0);
        if (h != NULL || PyErr_Occurred())
            return h;
    } else if (b != NULL && Py_IS_TYPE(b, BufferType) && calm(SLOT(b, backend_at)))
        return PyObject_GetAttr(b, f->name);
    return Py_TYPE(f->python)->tp_descr_get(f->python, instance, type);
}

static int fact_set(PyObject *self, PyObject *instance, PyObject *value) {
    PyObject *python = ((Fact *)self)->python;
    return Py_TYPE(python)->tp_descr_set(python, instance, value);
}

static void fact_dealloc(Fact *f) {
    Py_XDECREF(f->python);
    Py_XDECREF(f->name);
    PyObject_Free(f);
}

static PyObject *fact_getattr(PyObject *f, PyObject *name) { return PyObject_GetAttr(((Fact *)f)->python, name); }

static PyTypeObject Fact_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minnp.core.compiled._quick.Fact",
    .tp_basicsize = sizeof(Fact),
    .tp_dealloc = (destructor)fact_dealloc,
    .tp_getattro = fact_getattr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_descr_get = fact_get,
    .tp_descr_set = fact_set,
};

/* fact(property, name, told) */
static PyObject *make_fact(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *python, *name;
    int told;
    if (!PyArg_ParseTuple(args, "OUp", &python, &name, &told))
        return NULL;
    Fact *f = PyObject_New(Fact, &Fact_Type);
    if (f == NULL)
        return NULL;
    Py_INCREF(python);
    Py_INCREF(name);
    PyObject *theirs = PyDict_GetItem(Host->tp_dict, name);
    f->theirs = theirs != NULL && Py_IS_TYPE(theirs, &PyGetSetDescr_Type) ? ((PyGetSetDescrObject *)theirs)->d_getset : NULL;
    f->python = python, f->name = name, f->told = told;
    f->transposes = PyUnicode_CompareWithASCIIString(name, "T") == 0;
    f->flattens = PyUnicode_CompareWithASCIIString(name, "flat") == 0;
    return (PyObject *)f;
}
