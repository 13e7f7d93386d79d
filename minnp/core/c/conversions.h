/* len, bool, int, float, index and memoryview of a handle. */

static lenfunc python_len;
static inquiry python_bool;
static unaryfunc python_int, python_float, python_index;

static Py_ssize_t length(PyObject *self) {
    PyObject *a = host_of(self);
    return a != NULL && ((Array *)a)->nd > 0 ? ((Array *)a)->dims[0] : python_len(self);
}

static int truth(PyObject *self) {
    PyObject *a = busy() ? NULL : host_of(self);
    return a != NULL ? PyObject_IsTrue(a) : python_bool(self);
}

#define NUMBER(name, convert, python) \
    static PyObject *name(PyObject *self) { \
        PyObject *a = busy() ? NULL : host_of(self); \
        return a != NULL ? convert(a) : python(self); \
    }
NUMBER(as_int, PyNumber_Long, python_int)
NUMBER(as_float, PyNumber_Float, python_float)
NUMBER(as_index, PyNumber_Index, python_index)

/* memoryview(x): before Python 3.12 the Python slot cannot say why NumPy or we refuse (buffer.py). */
static PyObject *memory_of;

static int buffer_of(PyObject *self, Py_buffer *view, int flags) {
    PyObject *a = PyObject_CallOneArg(memory_of, self);
    if (a == NULL)
        return -1;
    int status = PyObject_GetBuffer(a, view, flags);
    Py_DECREF(a);
    return status;
}
