/* The way back through a tape, node by node: tape.sweep. */

static PyObject *unbroadcast, *restore; /* of cotangents.py */
static PyObject *sum_axes, *zeros; /* NumPy's add.reduce and zeros */
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
        Py_ssize_t p = a == Py_None && (arrays == Py_None || fills) ? PyLong_AsSsize_t(PySequence_Fast_GET_ITEM(parents, i)) : -1;
        given[++at] = p < 0 ? Py_NewRef(a) : p < PyList_GET_SIZE(nodes) ? meta_of_node(PyList_GET_ITEM(nodes, p)) : NULL;
    }
    if (given[at] != NULL)
        return at + 1;
    while (at-- > 0)
        Py_DECREF(given[at]);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_IndexError, "a node's parent is not on the tape");
    return -1;
}

/* g, a small array, summed over the axes along which an array of this shape was spread: unbroadcast. NULL, without an
   exception unless NumPy raised it, where Python must do it. */
static PyObject *summed(PyObject *g, PyObject *shape) {
    if (!Py_IS_TYPE(g, Host) || busy() || elements(g) > small)
        return NULL;
    Array *a = (Array *)g;
    Py_ssize_t extra = a->nd - PyTuple_GET_SIZE(shape), n = 0;
    PyObject *axes[MOST], *which, *out = NULL;
    if (extra < 0 || a->nd > MOST)
        return NULL;
    for (Py_ssize_t i = 0; i < a->nd; i++) {
        Py_ssize_t d = i < extra ? 1 : PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i - extra));
        if (d != 1 && a->dimensions[i] != d)
            break; /* the rule gave a smaller one, or a wrong one */
        if (i < extra || (d == 1 && a->dimensions[i] != 1))
            axes[n++] = PyLong_FromSsize_t(i);
        if (i == a->nd - 1 && (which = PyTuple_New(n)) != NULL) {
            for (; n > 0; n--)
                PyTuple_SET_ITEM(which, n - 1, Py_NewRef(axes[n - 1])), Py_DECREF(axes[n - 1]);
            PyObject *given[] = {g, which, DESCR(a)};
            out = PyObject_Vectorcall(sum_axes, given, 3, NULL);
            Py_DECREF(which);
            if (out != NULL)
                Py_SETREF(out, PyObject_CallMethodOneArg(out, word_reshape, shape));
        }
    }
    while (n-- > 0)
        Py_DECREF(axes[n]);
    return out;
}

/* A cotangent (whose reference it takes) in the shape and the dtype of node p, as argument i of a row. */
static PyObject *fitted(PyObject *g, PyObject *node, PyObject *row, Py_ssize_t i) {
    PyObject *shape = PyTuple_GET_ITEM(node, 5), *dtype = PyTuple_GET_ITEM(node, 6);
    for (int step = 0; g != NULL && step < 2; step++) {
        PyObject *want = step ? dtype : shape, *has, *args = NULL;
        if (Py_IS_TYPE(g, Host)) {
            Array *a = (Array *)g;
            int same = step ? DESCR(a) == dtype : a->nd == PyTuple_GET_SIZE(shape);
            for (int k = 0; same && !step && k < a->nd; k++)
                same = a->dimensions[k] == PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k));
            if (same)
                continue;
        }
        has = PyObject_GetAttr(g, step ? word_dtype : word_shape);
        int same = has == NULL ? -1 : has == want ? 1 : PyObject_RichCompareBool(has, want, Py_EQ);
        Py_XDECREF(has);
        PyObject *less = same == 0 && !step ? summed(g, shape) : NULL;
        if (same < 0 || PyErr_Occurred())
            Py_CLEAR(g);
        else if (less != NULL)
            Py_SETREF(g, less);
        else if (same == 0) {
            args = step ? Py_BuildValue("OOOn", g, dtype, row, i) : Py_BuildValue("OO", g, shape);
            Py_SETREF(g, args != NULL ? PyObject_Call(step ? restore : unbroadcast, args, NULL) : NULL);
        }
        Py_XDECREF(args);
    }
    return g;
}

/* Whether x is a tracer or a buffer, or a tuple or list in which one is. */
static int beyond_host(PyObject *x) {
    int found = Py_IS_TYPE(x, TracerType) || Py_IS_TYPE(x, BufferType);
    for (Py_ssize_t i = 0; !found && (PyTuple_CheckExact(x) || PyList_CheckExact(x)) && i < PySequence_Fast_GET_SIZE(x); i++)
        found = beyond_host(PySequence_Fast_GET_ITEM(x, i));
    return found;
}

/* cotangents.accumulate: grads[p] += part (whose reference it takes), in place where the array is ours. */
static int added(PyObject *grads, PyObject *owned, PyObject *p, PyObject *part) {
    Py_ssize_t at = PyLong_AsSsize_t(p);
    PyObject *old = Py_NewRef(PyList_GET_ITEM(grads, at)), *total;
    int in_place = beyond_host(part) || !Py_IS_TYPE(old, Host) ? 0 : PySet_Contains(owned, p);
    total = in_place > 0 ? PyNumber_InPlaceAdd(old, part) : PyNumber_Add(old, part);
    Py_DECREF(part), Py_DECREF(old);
    if (total == NULL)
        return -1;
    int failed = Py_IS_TYPE(total, Host) ? PySet_Add(owned, p) : PySet_Discard(owned, p);
    return PyList_SetItem(grads, at, total) < 0 || failed < 0 ? -1 : 0;
}

/* state.watched: whether a capture sees every call of this context. */
static int watched(void) {
    PyObject *watching = NULL;
    int yes = busy() && (PyContextVar_Get(captures, NULL, &watching) < 0 || watching != Py_None);
    Py_XDECREF(watching);
    PyErr_Clear();
    return yes;
}

/* What GradTrace.backward does with a row whose cotangents are added in place: 1 where it did, 0 where g is the rule's to
   deal with, -1 with an exception. `given`: g, y and the arrays, `k` in all. */
static int added_in_place(PyObject *row, PyObject *grads, PyObject *owned, PyObject *p, PyObject *source, PyObject *const *given, Py_ssize_t k, PyObject *params) {
    PyObject *in_place = SLOT(row, row_accumulate_at), *g = given[0], *index = PyDict_GetItem(params, PyTuple_GET_ITEM(index_name, 0));
    Py_ssize_t at = PyLong_AsSsize_t(p);
    if (in_place == Py_None || !Py_IS_TYPE(g, Host) || watched() || DESCR(g) != PyTuple_GET_ITEM(source, 6) || (index != NULL && beyond_host(index)))
        return 0;
    for (Py_ssize_t i = 2; i < k; i++)
        if (beyond_host(given[i]))
            return 0;
    PyObject *old = PyList_GET_ITEM(grads, at), *both[] = {PyTuple_GET_ITEM(source, 5), PyTuple_GET_ITEM(source, 6)};
    int ours = PySet_Contains(owned, p);
    if (ours == 0 && !beyond_host(old)) {
        PyObject *made = old == Py_None ? PyObject_Vectorcall(zeros, both, 2, NULL) : PyObject_CallOneArg(numpy_array, old);
        if (made == NULL || PyList_SetItem(grads, at, made) < 0 || PySet_Add(owned, p) < 0)
            return -1;
        ours = 1, old = made;
    }
    if (ours <= 0)
        return ours;
    Py_INCREF(old);
    PyObject *call[MOST + 2] = {old, g}, *done = NULL;
    if (row == getitem_row && PyDict_GET_SIZE(params) == 1 && index != NULL && plain_index(index)) {
        PyObject *part = PyObject_GetItem(old, index), *sum = part != NULL ? PyNumber_InPlaceAdd(part, g) : NULL;
        if (sum != NULL && (sum == part && Py_IS_TYPE(sum, Host) ? 0 : PyObject_SetItem(old, index, sum)) == 0)
            done = Py_NewRef(Py_None);
        Py_XDECREF(part), Py_XDECREF(sum);
    } else {
        for (Py_ssize_t i = 2; i < k; i++)
            call[i] = given[i];
        done = PyObject_VectorcallDict(in_place, call, k, params);
    }
    Py_DECREF(old);
    Py_XDECREF(done);
    return done == NULL ? -1 : 1;
}

/* Whether each parent that is traced has a rule to call: one of a list, or a function that is told which parent it is. */
static int has_rules(PyObject *rules, PyObject *parents) {
    if (!PyList_CheckExact(rules))
        return PyFunction_Check(rules);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(parents); i++)
        if (PyLong_AsSsize_t(PySequence_Fast_GET_ITEM(parents, i)) >= 0 &&
            (i >= PyList_GET_SIZE(rules) || !PyCallable_Check(PyList_GET_ITEM(rules, i))))
            return 0;
    return 1;
}

/* sweep(nodes, grads, owned, n, least): GradTrace.backward for the nodes from n down whose rows have one result and a rule
   for each argument, and do not write; the number of the first that is another, or least - 1. */
static PyObject *sweep(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 5 || !PyList_CheckExact(args[0]) || !PyList_CheckExact(args[1]) || !PySet_CheckExact(args[2]))
        return PyErr_SetString(PyExc_TypeError, "sweep(nodes, grads, owned, n, least)"), NULL;
    PyObject *nodes = args[0], *grads = args[1], *owned = args[2], *which[MOST + 3], **given = which + 1;
    Py_ssize_t n = PyLong_AsSsize_t(args[3]), least = PyLong_AsSsize_t(args[4]);
    if (PyErr_Occurred())
        return NULL;
    for (; n >= least && n < PyList_GET_SIZE(nodes) && n < PyList_GET_SIZE(grads); n--) {
        PyObject *g = PyList_GET_ITEM(grads, n), *node = PyList_GET_ITEM(nodes, n), *row = PyTuple_GET_ITEM(node, 0);
        if (g == Py_None)
            continue;
        PyObject *params = PyTuple_GET_ITEM(node, 1), *parents = PyTuple_GET_ITEM(node, 2), *arrays = PyTuple_GET_ITEM(node, 3);
        if (!Py_IS_TYPE(row, RowType) || row == write_row || !PyDict_CheckExact(params) || PyTuple_GET_ITEM(node, 5) == Py_None ||
            PySequence_Fast_GET_SIZE(parents) > MOST || (arrays != Py_None && PySequence_Fast_GET_SIZE(arrays) > MOST) ||
            !has_rules(SLOT(row, row_vjp_at), parents))
            break;
        Py_INCREF(node);
        given[0] = Py_NewRef(g);
        PyList_SetItem(grads, n, Py_NewRef(Py_None));
        Py_ssize_t k = whole(nodes, node, given + 1), parts = PySequence_Fast_GET_SIZE(parents);
        int failed = k < 0;
        for (Py_ssize_t i = 0; !failed && i < parts; i++) {
            PyObject *at = PySequence_Fast_GET_ITEM(parents, i), *part;
            Py_ssize_t p = PyLong_AsSsize_t(at);
            if (p < 0)
                continue;
            if (p >= n) {
                PyErr_SetString(PyExc_IndexError, "a node's parent comes after it");
                failed = 1;
                break;
            }
            PyObject *source = Py_NewRef(PyList_GET_ITEM(nodes, p)); /* a rule that writes makes the tape replace nodes */
            int done = i == 0 ? added_in_place(row, grads, owned, at, source, given, k + 1, params) : 0;
            if (done != 0) {
                failed = done < 0;
                Py_DECREF(source);
                continue;
            }
            PyObject *rules = SLOT(row, row_vjp_at), *named = PyDict_GET_SIZE(params) != 0 ? params : NULL;
            if (PyList_CheckExact(rules))
                part = PyObject_VectorcallDict(PyList_GET_ITEM(rules, i), given, k + 1, named);
            else if ((which[0] = PyLong_FromSsize_t(i)) == NULL)
                part = NULL;
            else {
                part = PyObject_VectorcallDict(rules, which, k + 2, named);
                Py_DECREF(which[0]);
            }
            if (part == Py_None && !PyList_CheckExact(rules))
                Py_DECREF(part);
            else if (part == NULL || (part = fitted(part, source, row, i)) == NULL)
                failed = 1;
            else if (PyList_GET_ITEM(grads, p) == Py_None)
                PyList_SetItem(grads, p, part);
            else
                failed = added(grads, owned, at, part) < 0;
            Py_DECREF(source);
        }
        for (Py_ssize_t i = 0; i < (k < 0 ? 1 : k + 1); i++)
            Py_DECREF(given[i]);
        Py_DECREF(node);
        if (failed)
            return NULL;
    }
    return PyLong_FromSsize_t(n);
}
