/* The way back through a tape, node by node: tape.sweep. */

static PyObject *unbroadcast, *restore, *accumulate; /* of cotangents.py */
static PyObject *write_there;                        /* of writing.py */

static inline PyObject *meta_of_node(PyObject *node) { return meta_with(PyTuple_GET_ITEM(node, 5), PyTuple_GET_ITEM(node, 6)); }

/* What a node's rules are given after the cotangent: y and the arrays, as cotangents.whole has them, into `given`; how
   many, or -1 with an exception. */
static Py_ssize_t whole(PyObject *nodes, PyObject *node, PyObject **given) {
    PyObject *parents = PyTuple_GET_ITEM(node, 2), *arrays = PyTuple_GET_ITEM(node, 3), *y = PyTuple_GET_ITEM(node, 4);
    Py_ssize_t n = arrays != Py_None ? PySequence_Fast_GET_SIZE(arrays) : PySequence_Fast_GET_SIZE(parents), at = 0;
    int fills = (arrays == Py_None || y == Py_None) && PyUnicode_CompareWithASCIIString(SLOT(PyTuple_GET_ITEM(node, 0), row_saves_at), "in") != 0 &&
                PyUnicode_CompareWithASCIIString(SLOT(PyTuple_GET_ITEM(node, 0), row_saves_at), "both") != 0;
    given[at] = y == Py_None ? meta_of_node(node) : Py_NewRef(y);
    for (Py_ssize_t i = 0; given[at] != NULL && i < n; i++) {
        PyObject *a = arrays != Py_None ? PySequence_Fast_GET_ITEM(arrays, i) : Py_None;
        if (a == Py_None && (arrays == Py_None || fills)) {
            Py_ssize_t p = PyLong_AsSsize_t(PySequence_Fast_GET_ITEM(parents, i));
            given[++at] = p < 0 || p >= PyList_GET_SIZE(nodes) ? NULL : meta_of_node(PyList_GET_ITEM(nodes, p));
        } else
            given[++at] = Py_NewRef(a);
    }
    if (given[at] != NULL)
        return at + 1;
    while (at-- > 0)
        Py_DECREF(given[at]);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_IndexError, "a node's parent is not on the tape");
    return -1;
}

/* A cotangent (whose reference it takes) in the shape and the dtype of node p, as argument i of a row. */
static PyObject *fitted(PyObject *g, PyObject *node, PyObject *row, Py_ssize_t i) {
    PyObject *shape = PyTuple_GET_ITEM(node, 5), *dtype = PyTuple_GET_ITEM(node, 6);
    for (int step = 0; g != NULL && step < 2; step++) {
        PyObject *want = step ? dtype : shape, *has = PyObject_GetAttr(g, step ? word_dtype : word_shape);
        int same = has == NULL ? -1 : has == want ? 1 : PyObject_RichCompareBool(has, want, Py_EQ);
        Py_XDECREF(has);
        PyObject *args = same != 0 ? NULL : step ? Py_BuildValue("OOOn", g, dtype, row, i) : Py_BuildValue("OO", g, shape);
        if (same < 0 || (same == 0 && args == NULL))
            Py_CLEAR(g);
        else if (same == 0)
            Py_SETREF(g, PyObject_Call(step ? restore : unbroadcast, args, NULL));
        Py_XDECREF(args);
    }
    return g;
}

/* sweep(nodes, grads, owned, n, least): GradTrace.backward for the simple nodes from n down, whose rows are direct and
   have no params; the number of the first that is not, or least - 1. */
static PyObject *sweep(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 5 || !PyList_CheckExact(args[0]) || !PyList_CheckExact(args[1]) || !PySet_CheckExact(args[2]))
        return PyErr_SetString(PyExc_TypeError, "sweep(nodes, grads, owned, n, least)"), NULL;
    PyObject *nodes = args[0], *grads = args[1], *owned = args[2], *given[MOST + 2];
    Py_ssize_t n = PyLong_AsSsize_t(args[3]), least = PyLong_AsSsize_t(args[4]);
    for (; n >= least && n < PyList_GET_SIZE(nodes) && n < PyList_GET_SIZE(grads); n--) {
        PyObject *g = PyList_GET_ITEM(grads, n), *node = PyList_GET_ITEM(nodes, n), *row = PyTuple_GET_ITEM(node, 0);
        if (g == Py_None)
            continue;
        PyObject *params = PyTuple_GET_ITEM(node, 1), *parents = PyTuple_GET_ITEM(node, 2), *arrays = PyTuple_GET_ITEM(node, 3);
        if (!Py_IS_TYPE(row, RowType) || !PyDict_CheckExact(params) || PyDict_GET_SIZE(params) != 0 || SLOT(row, row_direct_at) != Py_True ||
            PyTuple_GET_ITEM(node, 5) == Py_None || PySequence_Fast_GET_SIZE(parents) > MOST ||
            (arrays != Py_None && PySequence_Fast_GET_SIZE(arrays) > MOST) || !PyList_CheckExact(SLOT(row, row_vjp_at)))
            break;
        Py_INCREF(node);
        given[0] = Py_NewRef(g);
        PyList_SetItem(grads, n, Py_NewRef(Py_None));
        Py_ssize_t k = whole(nodes, node, given + 1), parts = PySequence_Fast_GET_SIZE(parents);
        int failed = k < 0;
        for (Py_ssize_t i = 0; !failed && i < parts; i++) {
            Py_ssize_t p = PyLong_AsSsize_t(PySequence_Fast_GET_ITEM(parents, i));
            if (p < 0)
                continue;
            PyObject *rules = SLOT(row, row_vjp_at), *part = NULL, *old, *total;
            if (i < PyList_GET_SIZE(rules) && p < PyList_GET_SIZE(grads))
                part = PyObject_Vectorcall(PyList_GET_ITEM(rules, i), given, k + 1, NULL);
            else
                PyErr_SetString(PyExc_IndexError, "a row has fewer rules than a node has parents");
            if (part == NULL || (part = fitted(part, PyList_GET_ITEM(nodes, p), row, i)) == NULL)
                failed = 1;
            else if ((old = PyList_GET_ITEM(grads, p)) == Py_None)
                PyList_SetItem(grads, p, part);
            else if (Py_IS_TYPE(part, BufferType) && Py_IS_TYPE(old, BufferType)) { /* immutable: never owned */
                total = PyNumber_Add(old, part);
                Py_DECREF(part);
                if (total == NULL)
                    failed = 1;
                else
                    PyList_SetItem(grads, p, total);
            } else {
                PyObject *add[] = {grads, PySequence_Fast_GET_ITEM(parents, i), part, owned};
                total = PyObject_Vectorcall(accumulate, add, 4, NULL);
                failed = total == NULL;
                Py_XDECREF(total), Py_DECREF(part);
            }
        }
        for (Py_ssize_t i = 0; i < (k < 0 ? 1 : k + 1); i++)
            Py_DECREF(given[i]);
        Py_DECREF(node);
        if (failed)
            return NULL;
    }
    return PyLong_FromSsize_t(n);
}
