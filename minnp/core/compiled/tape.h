/* Operators under a gradient's tape on the host: a row's result and its node. */

/* The tracer a handle holds (borrowed), or NULL. */
static inline PyObject *tracer_of(PyObject *h) {
    PyObject *t = value_in(h);
    return t != NULL && Py_IS_TYPE(t, TracerType) ? t : NULL;
}

static inline char kind_of(PyObject *a) { return ((Dtype *)((Array *)a)->descr)->kind; }

/* What NumPy is given for an operand under a tape (borrowed): a small array of numbers, or a number; NULL otherwise. */
static inline PyObject *raw_of(PyObject *x, PyObject *tracer) {
    if (tracer != NULL)
        x = SLOT(tracer, traced_at);
    else if (is_handle(x))
        x = host_of(x);
    if (x == NULL || !Py_IS_TYPE(x, Host))
        return x != NULL && is_number(x) ? x : NULL;
    return elements(x) <= small && strchr(tracer != NULL ? "fc" : "fciub", kind_of(x)) != NULL ? x : NULL;
}

/* Whether what two operands come to is as small: one of them is a number or a row, or both have one shape. */
static inline int stays_small(PyObject *x, PyObject *y) {
    if (!Py_IS_TYPE(x, Host) || !Py_IS_TYPE(y, Host))
        return 1;
    Array *a = (Array *)x, *b = (Array *)y;
    if (same_shape(a, b))
        return 1;
    return (a->nd <= 1 && b->nd <= 1) || elements(x) * elements(y) <= small;
}

static PyObject *shape_of(PyObject *z) {
    int nd = Py_IS_TYPE(z, Host) ? ((Array *)z)->nd : 0;
    PyObject *shape = PyTuple_New(nd);
    for (int i = 0; shape != NULL && i < nd; i++) {
        PyObject *d = PyLong_FromSsize_t(((Array *)z)->dimensions[i]);
        if (d == NULL)
            Py_CLEAR(shape);
        else
            PyTuple_SET_ITEM(shape, i, d);
    }
    return shape;
}

static PyObject *python_kept_params, *python_safe, *outside_memory; /* of saved.py */
static PyTypeObject *LeaseType, *DtypeType;

/* Whether a parameter can be kept as it is: what keeping.FIXED names. */
static int is_fixed(PyObject *x) {
    if (x == Py_None || x == Py_Ellipsis || PyLong_Check(x) || PyFloat_CheckExact(x) || PyUnicode_CheckExact(x) || PyType_Check(x))
        return 1;
    if (PySlice_Check(x)) {
        PySliceObject *s = (PySliceObject *)x;
        return is_fixed(s->start) && is_fixed(s->stop) && is_fixed(s->step);
    }
    if (!PyTuple_CheckExact(x))
        return PyObject_TypeCheck(x, DtypeType);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(x); i++)
        if (!is_fixed(PyTuple_GET_ITEM(x, i)))
            return 0;
    return 1;
}

/* keeping.kept_params: a row's parameters as a trace may keep them (a new reference). */
static PyObject *params_kept(PyObject *params) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(params, &at, &name, &value))
        if (!is_fixed(value))
            return PyObject_CallOneArg(python_kept_params, params);
    return Py_NewRef(params);
}

/* keeping.safe: a value as a tape may keep it, a copy where others may write to its memory (a new reference). */
static PyObject *safe_value(PyObject *x) {
    if (!Py_IS_TYPE(x, Host))
        return Py_NewRef(x);
    PyObject *owner = x, *base;
    while ((base = ((Array *)owner)->base) != NULL && Py_IS_TYPE(base, Host))
        owner = base;
    if ((base == NULL || Py_IS_TYPE(base, LeaseType)) && PyDict_GET_SIZE(outside_memory) == 0)
        return Py_NewRef(x);
    return PyObject_CallOneArg(python_safe, x);
}

static PyObject *python_outside; /* of saved.py */

static PyObject *last_base(PyObject *a) {
    for (PyObject *base; (base = ((Array *)a)->base) != NULL && Py_IS_TYPE(base, Host);)
        a = base;
    return a;
}

/* Note the memory of NumPy's own arrays among the arguments that `out` shows: the program may write to it unseen. -1 with
   an exception. */
static int note_outside(PyObject *const *args, Py_ssize_t n, PyObject *out) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (Py_IS_TYPE(args[i], Host) && last_base(args[i]) == last_base(out)) {
            PyObject *noted = PyObject_CallOneArg(python_outside, args[i]);
            if (noted == NULL)
                return -1;
            Py_DECREF(noted);
        }
    return 0;
}

static PyObject *numpy_array; /* NumPy's array */

/* An operand that no tape watches, as one may keep it: NumPy's own array is the program's, so it is copied. */
static PyObject *operand_kept(PyObject *operand, PyObject *raw) {
    return Py_IS_TYPE(operand, Host) ? PyObject_CallOneArg(numpy_array, raw) : safe_value(raw);
}

/* GradTrace.unary and .binary: the handle of row(v) or row(v, w) and its node on the tape. NULL without an exception
   where Python must do it. */
static PyObject *on_tape(PyObject *row, PyObject *v, PyObject *w) {
    PyObject *t = tracer_of(v), *u = tracer_of(w), *first = t != NULL ? t : u;
    if (first == NULL || v == w || busy()) /* x * x has a row of its own */
        return NULL;
    PyObject *tape = SLOT(first, trace_at), *x, *y = NULL;
    if (tape == NULL || !Py_IS_TYPE(tape, TapeType) || SLOT(tape, alive_at) != Py_True ||
        (t != NULL && u != NULL && SLOT(u, trace_at) != tape) ||
        SLOT(row, w != NULL ? row_elementwise_at : row_direct_at) != Py_True || (x = raw_of(v, t)) == NULL ||
        (w != NULL && ((y = raw_of(w, u)) == NULL || !stays_small(x, y))))
        return NULL;
    PyObject *nodes = SLOT(tape, nodes_at), *kernel = SLOT(row, row_numpy_at), *given[] = {x, y};
    if (nodes == NULL || !PyList_CheckExact(nodes) || kernel == NULL)
        return NULL;
    PyObject *absent = PyLong_FromLong(-1), *p = t != NULL ? SLOT(t, node_at) : absent;
    PyObject *parents = w == NULL ? PyTuple_Pack(1, p) : PyTuple_Pack(2, p, u != NULL ? SLOT(u, node_at) : absent);
    int whole = PyUnicode_GET_LENGTH(SLOT(row, row_saves_at)) > 0, other = t == NULL || (w != NULL && u == NULL);
    PyObject *constant = whole && other && parents != NULL ? operand_kept(t == NULL ? v : w, t == NULL ? x : y) : NULL; /* both cannot be */
    PyObject *first_kept = constant != NULL && t == NULL ? constant : x, *second = constant != NULL && t != NULL ? constant : y;
    PyObject *arrays = whole && other && constant == NULL ? NULL
                       : !whole && !other                 ? Py_NewRef(Py_None)
                       : w == NULL                        ? PyTuple_Pack(1, x)
                                   : PyTuple_Pack(2, whole || t == NULL ? first_kept : Py_None, whole || u == NULL ? second : Py_None);
    PyObject *z = NULL, *dtype = NULL, *shape = NULL, *node = NULL, *tracer = NULL, *h = NULL;
    Py_INCREF(tape), Py_INCREF(nodes); /* a kernel may warn, and a warning may do anything */
    if (absent == NULL || parents == NULL || arrays == NULL ||
        (z = PyObject_Vectorcall(kernel, given, w == NULL ? 1 : 2, NULL)) == NULL ||
        !(Py_IS_TYPE(z, Host) || is_number(z))) /* several results, for example */
        goto done;
    count_row(row);
    if (Py_IS_TYPE(z, Host)) {
        dtype = DESCR(z);
        Py_INCREF(dtype);
    } else
        dtype = PyObject_GetAttrString(z, "dtype");
    if (dtype == NULL || (shape = shape_of(z)) == NULL ||
        (node = PyTuple_Pack(7, row, no_params, parents, arrays, whole ? z : Py_None, shape, dtype)) == NULL ||
        (tracer = TracerType->tp_alloc(TracerType, 0)) == NULL)
        goto done;
    Py_INCREF(tape), Py_INCREF(z), Py_INCREF(Py_None);
    SLOT(tracer, trace_at) = tape, SLOT(tracer, traced_at) = z, SLOT(tracer, view_at) = Py_None;
    SLOT(tracer, node_at) = PyLong_FromSsize_t(PyList_GET_SIZE(nodes));
    if (SLOT(tracer, node_at) == NULL || (h = new_virtual()) == NULL)
        goto done;
    Py_INCREF(Py_None), Py_INCREF(Py_None), Py_INCREF(tracer);
    FIELD(h, host_at) = FIELD(h, root_at) = Py_None, FIELD(h, value_at) = tracer;
    if (PyList_Append(nodes, node) < 0)
        Py_CLEAR(h);
done:
    Py_DECREF(tape), Py_DECREF(nodes);
    Py_XDECREF(constant), Py_XDECREF(absent), Py_XDECREF(parents), Py_XDECREF(arrays), Py_XDECREF(z), Py_XDECREF(dtype), Py_XDECREF(shape);
    Py_XDECREF(node), Py_XDECREF(tracer);
    return h;
}

static PyObject *python_owner; /* of value.py */

/* value.owner: the object whose memory an array shows (a new reference). */
static PyObject *owner_of(PyObject *a) {
    PyObject *base;
    while ((base = ((Array *)a)->base) != NULL && Py_IS_TYPE(base, Host))
        a = base;
    return base == NULL ? Py_NewRef(a) : PyObject_CallOneArg(python_owner, a);
}

/* Add number `where` to by_owner's list for each owner of an array in x, which may be a list or a tuple of them. */
static int index_value(PyObject *x, PyObject *where, PyObject *by_owner) {
    if (PyTuple_CheckExact(x) || PyList_CheckExact(x)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(x); i++)
            if (index_value(PySequence_Fast_GET_ITEM(x, i), where, by_owner) < 0)
                return -1;
        return 0;
    }
    while (Py_IS_TYPE(x, TracerType))
        x = SLOT(x, traced_at);
    if (!PyObject_TypeCheck(x, Host))
        return 0;
    PyObject *owner = owner_of(x), *key = owner != NULL ? PyLong_FromVoidPtr(owner) : NULL, *list;
    int failed = key == NULL;
    if (!failed && (list = PyDict_GetItemWithError(by_owner, key)) != NULL)
        failed = PyList_Append(list, where) < 0;
    else if (!failed) {
        list = PyList_New(0);
        failed = list == NULL || PyList_Append(list, where) < 0 || PyDict_SetItem(by_owner, key, list) < 0;
        Py_XDECREF(list);
    }
    Py_XDECREF(owner), Py_XDECREF(key);
    return failed ? -1 : 0;
}

/* index_kept(nodes, n, by_owner): add to a dict, id of an owner -> list, the numbers of the nodes from n on that keep an
   array of its memory: among the arguments, the results or the parameters. */
static PyObject *index_kept(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *nodes, *by_owner;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "O!nO!", &PyList_Type, &nodes, &n, &PyDict_Type, &by_owner))
        return NULL;
    for (; n < PyList_GET_SIZE(nodes); n++) {
        PyObject *node = Py_NewRef(PyList_GET_ITEM(nodes, n)), *where = PyLong_FromSsize_t(n); /* another thread may replace it */
        PyObject *params = PyTuple_GET_ITEM(node, 1), *name, *value;
        Py_ssize_t at = 0;
        int failed = where == NULL || index_value(PyTuple_GET_ITEM(node, 3), where, by_owner) < 0 ||
                     index_value(PyTuple_GET_ITEM(node, 4), where, by_owner) < 0;
        while (!failed && PyDict_CheckExact(params) && PyDict_Next(params, &at, &name, &value))
            failed = index_value(value, where, by_owner) < 0;
        Py_XDECREF(where), Py_DECREF(node);
        if (failed)
            return NULL;
    }
    Py_RETURN_NONE;
}
