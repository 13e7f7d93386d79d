/* Attributes that NumPy's array tells: shape, dtype, T, real. */

typedef struct {
    PyObject_HEAD
    PyObject *python, *name; /* the property this is the short way of; the attribute of NumPy's array */
    PyGetSetDef *theirs;     /* of NumPy's class, or NULL */
    int transposes, told;    /* it is x.T; a buffer tells it too */
} Fact;

static PyObject *fact_get(PyObject *self, PyObject *instance, PyObject *type) {
    Fact *f = (Fact *)self;
    PyObject *a;
    if (instance == NULL || instance == Py_None) {
        Py_INCREF(f->python);
        return f->python;
    }
    if (Py_IS_TYPE(instance, Handle) && (a = host_of(instance)) != NULL && !busy()) {
        PyObject *out = f->theirs != NULL ? f->theirs->get(a, f->theirs->closure) : PyObject_GetAttr(a, f->name);
        if (out == NULL || !Py_IS_TYPE(out, Host))
            return out;
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
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minnp.core._quick.Fact",
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
    return (PyObject *)f;
}
