/* Operators under a gradient's tape on the host: a row's result and its node. */

/* The tracer of a root handle (borrowed), or NULL. */
static inline PyObject *tracer_of(PyObject *h) {
    if (h == NULL || !Py_IS_TYPE(h, Handle) || SLOT(h, host_at) != Py_None || SLOT(h, root_at) != Py_None)
        return NULL;
    PyObject *t = SLOT(h, value_at);
    return t != NULL && Py_IS_TYPE(t, TracerType) ? t : NULL;
}

static inline char kind_of(PyObject *a) { return ((Dtype *)((Array *)a)->descr)->kind; }

/* What NumPy is given for an operand under a tape (borrowed): a small array of numbers, or a number; NULL otherwise. */
static inline PyObject *raw_of(PyObject *x, PyObject *tracer) {
    if (tracer != NULL)
        x = SLOT(tracer, traced_at);
    else if (Py_IS_TYPE(x, Handle))
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
    if (a->nd == b->nd && memcmp(a->dims, b->dims, a->nd * sizeof(Py_ssize_t)) == 0)
        return 1;
    return (a->nd <= 1 && b->nd <= 1) || elements(x) * elements(y) <= small;
}

static PyObject *shape_of(PyObject *z) {
    int nd = Py_IS_TYPE(z, Host) ? ((Array *)z)->nd : 0;
    PyObject *shape = PyTuple_New(nd);
    for (int i = 0; shape != NULL && i < nd; i++) {
        PyObject *d = PyLong_FromSsize_t(((Array *)z)->dims[i]);
        if (d == NULL)
            Py_CLEAR(shape);
        else
            PyTuple_SET_ITEM(shape, i, d);
    }
    return shape;
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
    PyObject *arrays = w == NULL ? PyTuple_Pack(1, x) : PyTuple_Pack(2, x, y);
    PyObject *z = NULL, *dtype = NULL, *shape = NULL, *node = NULL, *tracer = NULL, *h = NULL;
    Py_INCREF(tape), Py_INCREF(nodes); /* a kernel may warn, and a warning may do anything */
    if (absent == NULL || parents == NULL || arrays == NULL ||
        (z = PyObject_Vectorcall(kernel, given, w == NULL ? 1 : 2, NULL)) == NULL ||
        !(Py_IS_TYPE(z, Host) || is_number(z))) /* several results, for example */
        goto done;
    count_row(row);
    if (Py_IS_TYPE(z, Host)) {
        dtype = ((Array *)z)->descr;
        Py_INCREF(dtype);
    } else
        dtype = PyObject_GetAttrString(z, "dtype");
    if (dtype == NULL || (shape = shape_of(z)) == NULL ||
        (node = PyTuple_Pack(7, row, no_params, parents, arrays, z, shape, dtype)) == NULL ||
        (tracer = TracerType->tp_alloc(TracerType, 0)) == NULL)
        goto done;
    Py_INCREF(tape), Py_INCREF(z), Py_INCREF(Py_None);
    SLOT(tracer, trace_at) = tape, SLOT(tracer, traced_at) = z, SLOT(tracer, view_at) = Py_None;
    SLOT(tracer, node_at) = PyLong_FromSsize_t(PyList_GET_SIZE(nodes));
    if (SLOT(tracer, node_at) == NULL || (h = Handle->tp_alloc(Handle, 0)) == NULL)
        goto done;
    Py_INCREF(Py_None), Py_INCREF(Py_None), Py_INCREF(tracer);
    SLOT(h, host_at) = SLOT(h, root_at) = Py_None, SLOT(h, value_at) = tracer;
    if (PyList_Append(nodes, node) < 0)
        Py_CLEAR(h);
done:
    Py_DECREF(tape), Py_DECREF(nodes);
    Py_XDECREF(absent), Py_XDECREF(parents), Py_XDECREF(arrays), Py_XDECREF(z), Py_XDECREF(dtype), Py_XDECREF(shape);
    Py_XDECREF(node), Py_XDECREF(tracer);
    return h;
}
