/* len, bool, int, float, index and memoryview of a handle. */

static lenfunc python_len;
static inquiry python_bool;
static unaryfunc python_int, python_float, python_index;

static Py_ssize_t length(PyObject *self) {
    PyObject *a = host_of(self);
    return a != NULL && ((Array *)a)->nd > 0 ? ((Array *)a)->dimensions[0] : python_len(self);
}

/* The number that the array of a handle at a place holds, of these kinds of dtype, with the copy counted: placed.number.
   NULL where Python must do it. */
static PyObject *number_on_place(PyObject *self, const char *kinds) {
    PyObject *x = buffer_in(self), *dtype;
    if (x == NULL || !calm(SLOT(x, backend_at)) || has_axes(self) || (dtype = dtype_of(x)) == NULL ||
        strchr(kinds, ((Dtype *)dtype)->kind) == NULL)
        return PyErr_Clear(), NULL;
    Py_INCREF(x);
    PyObject *number = PyObject_CallOneArg(number_there, x);
    Py_DECREF(x);
    return number;
}

static int truth(PyObject *self) {
    PyObject *a = busy() ? NULL : host_of(self), *n = a == NULL ? number_on_place(self, "biufc") : NULL;
    int yes = a != NULL ? PyObject_IsTrue(a) : n != NULL ? PyObject_IsTrue(n) : PyErr_Occurred() ? -1 : python_bool(self);
    Py_XDECREF(n);
    return yes;
}

#define NUMBER(name, convert, python, kinds) \
    static PyObject *name(PyObject *self) { \
        PyObject *a = busy() ? NULL : host_of(self), *n = a == NULL ? number_on_place(self, kinds) : NULL, *made; \
        if (n == NULL && PyErr_Occurred()) \
            return NULL; \
        made = a != NULL ? convert(a) : n != NULL ? convert(n) : python(self); \
        Py_XDECREF(n); \
        return made; \
    }
NUMBER(as_int, PyNumber_Long, python_int, "biuf")
NUMBER(as_float, PyNumber_Float, python_float, "biuf")
NUMBER(as_index, PyNumber_Index, python_index, "iu")

/* memoryview(x): before Python 3.12 the Python slot cannot say why NumPy or we refuse (buffer.py). */
static PyObject *memory_of;

static int buffer_of(PyObject *self, Py_buffer *view, int flags) {
    PyObject *a = host_of(self);
    a = a != NULL ? Py_NewRef(a) : PyObject_CallFunction(memory_of, "Oi", self, flags);
    if (a == NULL) {
        view->obj = NULL; /* as the protocol has it: there is nothing to release */
        return -1;
    }
    int status = PyObject_GetBuffer(a, view, flags);
    Py_DECREF(a);
    return status;
}
