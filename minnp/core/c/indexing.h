/* The slots of x[i], x[i] = v and iteration. */

/* Whether a list or tuple holds numbers, or such lists, and no array. */
static int of_numbers(PyObject *x, int depth) {
    if (!(PyList_CheckExact(x) || PyTuple_CheckExact(x)) || depth > 8)
        return 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(x); i++) {
        PyObject *e = PySequence_Fast_GET_ITEM(x, i);
        if (!(PyBool_Check(e) || is_number(e) || of_numbers(e, depth + 1)))
            return 0;
    }
    return 1;
}

/* An index as NumPy takes it, or NULL where Python must look at it. */
static PyObject *index_on_host(PyObject *index) {
    if (PyLong_CheckExact(index) || PySlice_Check(index)) {
        Py_INCREF(index);
        return index;
    }
    if (PyTuple_CheckExact(index)) {
        Py_ssize_t n = PyTuple_GET_SIZE(index);
        int handles = 0;
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *x = PyTuple_GET_ITEM(index, i);
            if (Py_IS_TYPE(x, Handle)) {
                if (host_of(x) == NULL)
                    return NULL;
                handles = 1;
            }
        }
        if (!handles) {
            Py_INCREF(index);
            return index;
        }
        PyObject *t = PyTuple_New(n);
        for (Py_ssize_t i = 0; t != NULL && i < n; i++) {
            PyObject *x = PyTuple_GET_ITEM(index, i);
            if (Py_IS_TYPE(x, Handle))
                x = host_of(x);
            Py_INCREF(x);
            PyTuple_SET_ITEM(t, i, x);
        }
        return t;
    }
    PyObject *i = Py_IS_TYPE(index, Handle) ? host_of(index) : is_plain(index) || of_numbers(index, 0) ? index : NULL;
    if (i == NULL || (Py_IS_TYPE(i, Host) && elements(i) >= large && !in_runs(i)))
        return NULL;
    Py_INCREF(i);
    return i;
}

static PyObject *python_getitem;
static objobjargproc python_setitem;

/* The user's form of what an index found in array a of handle `self` (both references it takes). */
static PyObject *found_in(PyObject *self, PyObject *a, PyObject *out) {
    if (out != NULL && Py_IS_TYPE(out, Host)) {
        PyObject *base = ((Array *)out)->base, *root = SLOT(self, root_at);
        /* a view of a has a as its base, or what a is a view of; a fancy index may give a view of its own copy */
        if (base != NULL && (base == a || base == ((Array *)a)->base))
            out = handle_on(out, root == NULL || root == Py_None ? self : root);
        else
            out = handle_on(out, Py_None);
    }
    Py_DECREF(a);
    return out;
}

static ssizeargfunc python_item;
static getiterfunc python_iter;

/* The i-th element along the first axis, as iteration asks for it. */
static PyObject *item(PyObject *self, Py_ssize_t i) {
    PyObject *a = busy() ? NULL : host_of(self);
    return a != NULL ? found_in(self, Py_NewRef(a), Host->tp_as_sequence->sq_item(a, i)) : python_item(self, i);
}

static PyObject *iterator(PyObject *self) {
    PyObject *a = host_of(self);
    return a != NULL && ((Array *)a)->nd > 0 ? PySeqIter_New(self) : python_iter(self);
}

/* The buffer of a handle that is a mask or an array of int64 with axes, which every library takes as NumPy does
   (borrowed); else NULL. */
static PyObject *chooser(PyObject *index) {
    PyObject *i = Py_IS_TYPE(index, Handle) ? buffer_in(index) : NULL;
    if (i == NULL)
        return NULL;
    if (know(i) == 0 && PyTuple_GET_SIZE(SLOT(i, shape_at)) > 0 && strchr("?lq", ((Dtype *)SLOT(i, dtype_at))->type) != NULL)
        return i;
    PyErr_Clear();
    return NULL;
}

/* x[index] of an index array, both at one place: a copy. NULL where Python must do it. */
static PyObject *chosen_on_place(PyObject *self, PyObject *index) {
    PyObject *x = buffer_in(self), *i = chooser(index), *home, *kept, *run, *h = NULL;
    if (i == NULL)
        return NULL;
    if (x == NULL)
        return traced_at_place(getitem_row, &self, 1, &i, index_name);
    home = SLOT(x, backend_at);
    if (home != SLOT(i, backend_at) || !calm(home) || (kept = kept_for(home, getitem_row)) == NULL ||
        PyList_GET_ITEM(kept, BASIC) == Py_None)
        return NULL;
    PyObject *given[] = {Py_NewRef(SLOT(x, data_at)), Py_NewRef(SLOT(i, data_at))}, *out = NULL;
    Py_INCREF(home);
    if ((run = prepared_for(kept, given, 1)) != NULL) {
        Py_SETREF(run, Py_NewRef(PyList_GET_ITEM(kept, BASIC)));
        out = computed(kept, run, given, 2, NULL);
    }
    if (out != NULL)
        h = handle_at(home, out, NULL);
    else if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    Py_DECREF(given[0]), Py_DECREF(given[1]), Py_DECREF(home);
    return h;
}

/* Whether a library turns number v into an element of this dtype as NumPy does. */
static int fits(PyObject *v, PyObject *dtype) {
    int beyond = 0;
    char type = ((Dtype *)dtype)->type;
    if (PyFloat_CheckExact(v))
        return type == 'f' || type == 'd';
    long n = PyLong_Check(v) ? PyLong_AsLongAndOverflow(v, &beyond) : -1;
    return n >= 0 && n <= 127 && (type != '?' || n <= 1);
}

/* writing.write_on_place where nothing else holds or shows what `self`, a root, holds, the buffer x: written there.
   0: Python must do it; -1: an exception. */
static int written_on_place(PyObject *self, PyObject *x, PyObject *index, PyObject *value) {
    PyObject *home = SLOT(x, backend_at), *kept = kept_for(home, write_row), *v = buffer_in(value), *run;
    PyObject *i = Py_IS_TYPE(index, Handle) ? chooser(index) : NULL;
    if (Py_REFCNT(x) != 1 || Py_REFCNT(SLOT(x, data_at)) != 1 || SLOT(x, copied_at) != NULL || kept == NULL || !PyDict_CheckExact(PyList_GET_ITEM(kept, PREPARED)) || know(x) < 0 ||
        (v != NULL ? know(v) < 0 || SLOT(v, dtype_at) != SLOT(x, dtype_at) : !fits(value, SLOT(x, dtype_at))) ||
        (i != NULL && SLOT(i, backend_at) != home) || index == Py_Ellipsis)
        return PyErr_Clear(), 0;
    PyObject *asked[] = {home, x}, *alone = PyObject_VectorcallMethod(word_alone, asked, 2, NULL);
    int done = alone == Py_True;
    Py_XDECREF(alone);
    PyObject *data = Py_NewRef(SLOT(x, data_at)), *what = Py_NewRef(v != NULL ? SLOT(v, data_at) : value);
    PyObject *at = Py_NewRef(i != NULL ? SLOT(i, data_at) : index);
    if (done && (done = (run = prepared_for(kept, &data, 1)) != NULL)) {
        Py_DECREF(run);
        Py_INCREF(kept);
        done = PyObject_SetItem(data, at, what) == 0;
        PyObject *more = done ? PyNumber_Add(PyList_GET_ITEM(kept, CALLS), Py_True) : NULL;
        if (more != NULL)
            PyList_SetItem(kept, CALLS, more);
        Py_DECREF(kept);
    }
    Py_DECREF(data), Py_DECREF(what), Py_DECREF(at);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return PyErr_Occurred() ? -1 : done;
}

static PyObject *subscript(PyObject *self, PyObject *index) {
    PyObject *a = host_of(self), *i;
    if (a != NULL && !busy() && (i = index_on_host(index)) != NULL) {
        Py_INCREF(a);
        PyObject *out = PyObject_GetItem(a, i);
        Py_DECREF(i);
        return found_in(self, a, out);
    }
    if (a == NULL && !PyErr_Occurred()) {
        PyObject *h = Py_IS_TYPE(index, Handle) ? chosen_on_place(self, index)
                                                : view_on_place(getitem_row, self, index_name, &index, 1, &index, 1);
        if (h != NULL)
            return h;
    }
    if (PyErr_Occurred())
        return NULL;
    PyObject *both[] = {self, index};
    return PyObject_Vectorcall(python_getitem, both, 2, NULL);
}

static int assign(PyObject *self, PyObject *index, PyObject *value) {
    PyObject *a = host_of(self), *v = NULL, *i;
    if (a != NULL && value != NULL && !busy() && !taped()) {
        if (Py_IS_TYPE(value, Handle)) /* an array of objects keeps the handles it is given */
            v = ((Array *)a)->descr != object_dtype ? host_of(value) : NULL;
        else if (is_plain(value) || of_numbers(value, 0))
            v = value;
        if (v != NULL && (i = index_on_host(index)) != NULL) {
            Py_INCREF(a);
            Py_INCREF(v);
            int status = PyObject_SetItem(a, i, v);
            Py_DECREF(a);
            Py_DECREF(v);
            Py_DECREF(i);
            return status;
        }
        if (PyErr_Occurred())
            return -1;
    }
    PyObject *x = a == NULL && value != NULL && SLOT(self, root_at) == Py_None ? buffer_in(self) : NULL;
    if (x != NULL && (plain_index(index) || Py_IS_TYPE(index, Handle)) && calm(SLOT(x, backend_at)) &&
        (is_python_number(value) || ((v = buffer_in(value)) != NULL && SLOT(v, backend_at) == SLOT(x, backend_at)))) {
        int done = written_on_place(self, x, index, value);
        if (done != 0)
            return done < 0 ? -1 : 0;
        if (!plain_index(index))
            return python_setitem(self, index, value);
        PyObject *given[] = {self, index, v != NULL ? v : value}, *none;
        Py_XINCREF(v);
        none = PyObject_Vectorcall(write_there, given, 3, NULL);
        Py_XDECREF(none), Py_XDECREF(v);
        return none == NULL ? -1 : 0;
    }
    return python_setitem(self, index, value);
}
