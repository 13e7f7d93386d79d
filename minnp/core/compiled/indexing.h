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
            if (is_handle(x)) {
                if (host_of(x) == NULL)
                    return NULL;
                handles = 1;
            } else if (!(PyLong_CheckExact(x) || PySlice_Check(x) || is_plain(x) || of_numbers(x, 0)))
                return NULL;
        }
        if (!handles) {
            Py_INCREF(index);
            return index;
        }
        PyObject *t = PyTuple_New(n);
        for (Py_ssize_t i = 0; t != NULL && i < n; i++) {
            PyObject *x = PyTuple_GET_ITEM(index, i);
            if (is_handle(x))
                x = host_of(x);
            Py_INCREF(x);
            PyTuple_SET_ITEM(t, i, x);
        }
        return t;
    }
    PyObject *i = is_handle(index) ? host_of(index) : is_plain(index) || of_numbers(index, 0) ? index : NULL;
    if (i == NULL || (Py_IS_TYPE(i, Host) && elements(i) >= large && !in_runs(i)))
        return NULL;
    Py_INCREF(i);
    return i;
}

/* ------------------------------------------------------------------ one number
   Loops over elements spend most of their time in NumPy's finding out what an index is. A number that one integer for each
   axis picks is read and written where it lies. */
#define IN_SCALAR(x) ((char *)(x) + sizeof(PyObject)) /* the number in an instance of NumPy's classes, and in a float */

/* Where x is an integer within an axis of n, perhaps a negative one, its position; else -1. */
static inline Py_ssize_t position(PyObject *x, Py_ssize_t n) {
    Py_ssize_t i;
    if (PyLong_CheckExact(x)) {
        if ((i = PyLong_AsSsize_t(x)) == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return -1;
        }
    } else if (Py_IS_TYPE(x, Int64))
        i = (Py_ssize_t)*(int64_t *)IN_SCALAR(x);
    else
        return -1;
    i = i < 0 ? i + n : i;
    return i < n ? i : -1;
}

/* The memory of the one number that an index picks; NULL for another index. */
static inline char *number_at(Array *a, PyObject *index) {
    int tuple = PyTuple_CheckExact(index);
    Py_ssize_t n = tuple ? PyTuple_GET_SIZE(index) : 1, i;
    char *p = a->data;
    if (n != a->nd || n == 0)
        return NULL;
    for (Py_ssize_t k = 0; k < n; k++, p += i * a->strides[k - 1])
        if ((i = position(tuple ? PyTuple_GET_ITEM(index, k) : index, a->dimensions[k])) < 0)
            return NULL;
    return p;
}

/* The bytes of a number of array a where it lies as in an instance of NumPy's class; 0 where it does not, or is rare. */
static inline int number_size(Array *a) {
    Dtype *dtype = (Dtype *)a->descr;
    if (!(a->flags & NPY_ARRAY_ALIGNED) || !(dtype->byteorder == '=' || dtype->byteorder == '|') ||
        !(dtype->kind == 'f' || dtype->kind == 'i' || dtype->kind == 'u')) /* other libraries' dtypes are of kind V */
        return 0;
    switch (dtype->type) {
    case 'b': case 'B': return 1;
    case 'h': case 'H': return 2;
    case 'f': case 'i': case 'I': return 4;
    case 'l': case 'L': return sizeof(long);
    case 'd': case 'q': case 'Q': return 8;
    default: return 0;
    }
}

static inline void copy_number(void *to, const void *from, int size) {
    switch (size) { /* known to the compiler */
    case 1: memcpy(to, from, 1); break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    default: memcpy(to, from, 8);
    }
}

/* The number at p in array a, NumPy's; NULL, perhaps without an exception, where NumPy must make it. */
static inline PyObject *number_read(Array *a, const char *p) {
    int size = number_size(a);
    if (size == 0) {
        char type = ((Dtype *)a->descr)->type;
        return type == '?' ? Py_NewRef(truths[*p != 0]) : NULL;
    }
    PyTypeObject *scalar = ((Dtype *)a->descr)->typeobj;
    PyObject *x = scalar->tp_alloc(scalar, 0);
    if (x != NULL)
        copy_number(IN_SCALAR(x), p, size);
    return x;
}

/* Whether v was written at p in array a: where it is of the array's dtype, or Python's number of that kind. */
static inline int number_write(Array *a, char *p, PyObject *v) {
    int size = number_size(a), overflow;
    if (size == 0 || !may_write(a))
        return 0;
    Dtype *dtype = (Dtype *)a->descr;
    if (Py_IS_TYPE(v, dtype->typeobj) || (dtype->type == 'd' && PyFloat_CheckExact(v)))
        copy_number(p, IN_SCALAR(v), size);
    else if (dtype->typeobj == Int64 && PyLong_CheckExact(v)) {
        int64_t x = PyLong_AsLongLongAndOverflow(v, &overflow);
        if (overflow)
            return 0;
        copy_number(p, &x, size);
    } else
        return 0;
    return 1;
}

static PyObject *python_getitem;
static objobjargproc python_setitem;

/* The user's form of what an index found in array a of handle `self` (both references it takes). */
static PyObject *found_in(PyObject *self, PyObject *a, PyObject *out) {
    if (out != NULL && Py_IS_TYPE(out, Host)) {
        PyObject *base = ((Array *)out)->base, *root = FIELD(self, root_at);
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

/* The same at a place, where only a vector's elements are numbers. NULL, perhaps without an exception: ask Python. */
static PyObject *item_on_place(PyObject *self, Py_ssize_t i) {
    PyObject *b = buffer_in(self), *shape = b != NULL && know(b) == 0 ? SLOT(b, shape_at) : NULL, *index, *h;
    if (shape == NULL || PyTuple_GET_SIZE(shape) == 0)
        return NULL;
    if (i < 0 || i >= PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, 0)))
        return PyErr_Format(PyExc_IndexError, "index %zd is out of bounds for axis 0 with size %S", i, PyTuple_GET_ITEM(shape, 0));
    if ((index = PyLong_FromSsize_t(i)) == NULL)
        return NULL;
    h = view_if(getitem_row, self, index_name, &index, 1, &index, 1, PyTuple_GET_SIZE(shape) > 1);
    Py_DECREF(index);
    return h;
}

/* The i-th element along the first axis, as iteration asks for it. */
static PyObject *item(PyObject *self, Py_ssize_t i) {
    PyObject *a = busy() ? NULL : host_of(self), *x;
    if (a == NULL && ((x = item_on_place(self, i)) != NULL || PyErr_Occurred()))
        return x;
    if (a != NULL && ((Array *)a)->nd == 1 && 0 <= i && i < ((Array *)a)->dimensions[0] &&
        ((x = number_read((Array *)a, ((Array *)a)->data + i * ((Array *)a)->strides[0])) != NULL || PyErr_Occurred()))
        return x;
    return a != NULL ? found_in(self, Py_NewRef(a), Host->tp_as_sequence->sq_item(a, i)) : python_item(self, i);
}

static PyObject *iterator(PyObject *self) {
    PyObject *a = host_of(self);
    PyObject *b = a == NULL ? buffer_in(self) : NULL;
    Py_ssize_t axes = a != NULL ? ((Array *)a)->nd : b != NULL && know(b) == 0 ? PyTuple_GET_SIZE(SLOT(b, shape_at)) : 0;
    PyErr_Clear();
    return axes > 0 ? PySeqIter_New(self) : python_iter(self);
}

/* The buffer of a handle that is a mask or an array of int64 with axes, which every library takes as NumPy does
   (borrowed); else NULL. */
static PyObject *chooser(PyObject *index) {
    PyObject *i = is_handle(index) ? buffer_in(index) : NULL;
    if (i == NULL)
        return NULL;
    if (know(i) == 0 && PyTuple_GET_SIZE(SLOT(i, shape_at)) > 0 && strchr("?lq", ((Dtype *)SLOT(i, dtype_at))->type) != NULL)
        return i;
    PyErr_Clear();
    return NULL;
}

/* Whether an index is a list of Python's integers, which a library takes as NumPy does. */
static int is_list_of_integers(PyObject *index) {
    Py_ssize_t n = PyList_CheckExact(index) ? PyList_GET_SIZE(index) : 0, k = 0;
    while (k < n && PyLong_CheckExact(PyList_GET_ITEM(index, k)))
        k++;
    return n > 0 && k == n;
}

/* An index at home as its library takes it, a new reference: an array of `chooser`'s or a list of integers, a tuple of
   integers' ones, or one among whole slices. `data`: with what the arrays hold there, else with their buffers, and without
   lists. NULL where Python must look at it. */
static PyObject *choice(PyObject *index, PyObject *home, int data) {
    PyObject *i, *parts;
    if (data && is_list_of_integers(index))
        return Py_NewRef(index);
    if (!PyTuple_CheckExact(index)) {
        if ((i = chooser(index)) == NULL || SLOT(i, backend_at) != home)
            return NULL;
        return Py_NewRef(data ? SLOT(i, data_at) : i);
    }
    Py_ssize_t n = PyTuple_GET_SIZE(index), arrays = 0;
    if ((parts = PyTuple_New(n)) == NULL)
        return PyErr_Clear(), NULL;
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *part = PyTuple_GET_ITEM(index, k);
        if ((i = chooser(part)) != NULL && SLOT(i, backend_at) == home && ((Dtype *)SLOT(i, dtype_at))->type != '?')
            part = data ? SLOT(i, data_at) : i, arrays++;
        else if (data && is_list_of_integers(part))
            arrays++;
        else if (!PySlice_Check(part) || !plain_index(part)) {
            arrays = 0;
            break;
        }
        PyTuple_SET_ITEM(parts, k, Py_NewRef(part));
    }
    if (arrays != 1 && arrays != n)
        Py_CLEAR(parts);
    return parts;
}

/* Whether a buffer has elements: torch looks for none of those that an index names where there are none. */
static int has_elements(PyObject *b) {
    int some = know(b) == 0;
    for (Py_ssize_t k = 0; some && k < PyTuple_GET_SIZE(SLOT(b, shape_at)); k++)
        some = PyObject_IsTrue(PyTuple_GET_ITEM(SLOT(b, shape_at), k));
    PyErr_Clear();
    return some;
}

/* x[index] of index arrays, all at one place: a copy. NULL where Python must do it. */
static PyObject *chosen_on_place(PyObject *self, PyObject *index) {
    PyObject *v = value_in(self), *x = buffer_in(self), *b = buffer_under(v), *home, *kept, *run, *i, *h = NULL;
    if (b == NULL || !has_elements(b) || (i = choice(index, home = SLOT(b, backend_at), x != NULL)) == NULL)
        return NULL;
    if (x == NULL) {
        h = traced_at_place(getitem_row, &self, 1, &i, index_name);
        Py_DECREF(i);
        return h;
    }
    if (!calm(home) || (kept = kept_for(home, getitem_row)) == NULL || PyList_GET_ITEM(kept, BASIC) == Py_None) {
        Py_DECREF(i);
        return NULL;
    }
    PyObject *given[] = {Py_NewRef(SLOT(x, data_at)), i}, *out = NULL;
    Py_INCREF(home);
    if ((run = prepared_for(kept, given, 1)) != NULL) {
        int front = !PyTuple_CheckExact(i) || !PySlice_Check(PyTuple_GET_ITEM(i, 0)); /* elsewhere NumPy's order differs */
        if (front)
            Py_SETREF(run, Py_NewRef(PyList_GET_ITEM(kept, BASIC)));
        out = computed(kept, run, given, front ? 2 : 1, front ? NULL : index_name);
    }
    if (out != NULL)
        h = handle_at(home, out, Py_True, NULL);
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

/* Whether an index is of integers alone. */
static int is_element(PyObject *index) {
    for (Py_ssize_t k = 0; PyTuple_CheckExact(index) && k < PyTuple_GET_SIZE(index); k++)
        if (!PyLong_Check(PyTuple_GET_ITEM(index, k)))
            return 0;
    return PyTuple_CheckExact(index) || PyLong_Check(index);
}

/* writing.write_on_place where nothing else holds or shows what `self`, a root, holds, the buffer x: written there.
   0: Python must do it; -1: an exception. */
static int written_on_place(PyObject *self, PyObject *x, PyObject *index, PyObject *value) {
    PyObject *home = SLOT(x, backend_at), *kept = kept_for(home, write_row), *v = buffer_in(value), *run;
    PyObject *i = is_handle(index) ? chooser(index) : NULL;
    if (kept == NULL || v == x || !PyDict_CheckExact(PyList_GET_ITEM(kept, PREPARED)) || know(x) < 0 ||
        (v != NULL ? dtype_of(v) != SLOT(x, dtype_at) : !fits(value, SLOT(x, dtype_at))) ||
        (i != NULL && (SLOT(i, backend_at) != home || !has_elements(x))) || index == Py_Ellipsis || (v != NULL && is_element(index) && has_axes(value) && PyTuple_GET_SIZE(SLOT(x, shape_at)) == (PyTuple_CheckExact(index) ? PyTuple_GET_SIZE(index) : 1)))
        return PyErr_Clear(), 0;
    int done = is_alone(x, 0, 0);
    PyObject *data = Py_NewRef(SLOT(x, data_at)), *what = Py_NewRef(v != NULL ? SLOT(v, data_at) : value);
    PyObject *at = Py_NewRef(i != NULL ? SLOT(i, data_at) : index);
    static PyObject *written_home, *written_dtype; /* which was verified last */
    if (done && (written_home != home || written_dtype != SLOT(x, dtype_at))) {
        if ((done = (run = prepared_for(kept, &data, 1)) != NULL)) {
            Py_XSETREF(written_home, Py_NewRef(home));
            Py_XSETREF(written_dtype, Py_NewRef(SLOT(x, dtype_at)));
        }
        Py_XDECREF(run);
    }
    if (done) {
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
    char *p = a != NULL && !busy() ? number_at((Array *)a, index) : NULL;
    if (p != NULL && ((i = number_read((Array *)a, p)) != NULL || PyErr_Occurred()))
        return i;
    if (a != NULL && !busy() && (i = index_on_host(index)) != NULL) {
        Py_INCREF(a);
        PyObject *out = PyObject_GetItem(a, i);
        Py_DECREF(i);
        return found_in(self, a, out);
    }
    if (a == NULL && !PyErr_Occurred()) {
        int chooses = is_handle(index) || PyList_CheckExact(index);
        for (Py_ssize_t k = 0; !chooses && PyTuple_CheckExact(index) && k < PyTuple_GET_SIZE(index); k++)
            chooses = is_handle(PyTuple_GET_ITEM(index, k)) || PyList_CheckExact(PyTuple_GET_ITEM(index, k));
        PyObject *h = chooses ? chosen_on_place(self, index)
                              : view_on_place(getitem_row, self, index_name, &index, 1, &index, 1);
        if (h != NULL)
            return h;
    }
    if (PyErr_Occurred())
        return NULL;
    PyObject *both[] = {self, index};
    return PyObject_Vectorcall(python_getitem, both, 2, NULL);
}

/* Whether h is the view self[index], for this very index, of an array at a place that is still what it was. */
static int is_view_at(PyObject *h, PyObject *self, PyObject *index) {
    PyObject *path = buffer_in(h) != NULL && FIELD(h, root_at) == self ? FIELD(h, path_at) : NULL;
    if (path == NULL || PyTuple_GET_SIZE(path) != 1)
        return 0;
    PyObject *step = PyTuple_GET_ITEM(path, 0), *params = PyTuple_GET_ITEM(step, 1);
    return PyTuple_GET_ITEM(step, 0) == getitem_row && PyDict_CheckExact(params) &&
           PyDict_GetItem(params, PyTuple_GET_ITEM(index_name, 0)) == index;
}

/* Whether a[index] has axes, as its form alone tells: then the elements of a value are written, never the value. */
static int is_several(PyObject *a, PyObject *index) {
    if (PyTuple_CheckExact(index)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); i++)
            if (PySlice_Check(PyTuple_GET_ITEM(index, i)))
                return 1;
        return 0;
    }
    return PySlice_Check(index) || (PyLong_CheckExact(index) && ((Array *)a)->nd > 1);
}

static int assign(PyObject *self, PyObject *index, PyObject *value) {
    PyObject *a = host_of(self), *v = NULL, *i;
    if (a != NULL && value != NULL && !busy() && !taped()) {
        char *p = number_at((Array *)a, index);
        if (p != NULL && number_write((Array *)a, p, value))
            return 0;
        if (is_handle(value)) /* an element of an array of objects is the handle it is given */
            v = DESCR(a) != object_dtype || is_several(a, index) ? host_of(value) : NULL;
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
    if (a == NULL && value != NULL && is_view_at(value, self, index))
        return 0; /* the end of x[index] += y, where x[index] is a view */
    PyObject *x = a == NULL && value != NULL && FIELD(self, root_at) == Py_None ? buffer_in(self) : NULL;
    if (x != NULL && (plain_index(index) || is_handle(index)) && calm(SLOT(x, backend_at)) &&
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
