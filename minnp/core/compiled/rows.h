/* Rows called on values instead of handles: at a place, with or without a tape. */

/* Whether an axis, or a value of keepdims, means the same to every array library: a number, a tuple of some. */
static int plain_axis(PyObject *x) {
    Py_ssize_t n = PyTuple_CheckExact(x) ? PyTuple_GET_SIZE(x) : 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(x, i)))
            return 0;
    return n > 0 || PyLong_CheckExact(x) || PyBool_Check(x);
}

/* Whether params are an axis and keepdims as every array library takes them. */
static int plain_params(PyObject *params) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(params, &at, &name, &value))
        if ((name != PyTuple_GET_ITEM(axis_name, 0) && name != keepdims_name) || !plain_axis(value))
            return 0;
    return 1;
}

/* placed.on_place: what a row makes of what lies at one place (handles, buffers) and numbers: a buffer, or a tuple of
   some. NULL, without an exception unless it is the user's interrupt, where Python must do it. */
static PyObject *run_at_place(PyObject *row, PyObject *const *operands, Py_ssize_t n, PyObject *params) {
    PyObject *data[MOST], *home = gathered(operands, n, data), *kept, *run, *out = NULL, *result = NULL;
    if (home == NULL || (kept = kept_for(home, row)) == NULL)
        return NULL;
    int view = SLOT(row, row_view_at) == Py_True, bare = params == no_params || PyDict_GET_SIZE(params) == 0;
    PyObject *x = NULL, *basic = PyList_GET_ITEM(kept, BASIC), *index = NULL;
    if (n == 1 && view) {
        x = Py_IS_TYPE(operands[0], BufferType) ? operands[0] : buffer_in(operands[0]);
        if (is_numpys(kept, x))
            return NULL;
        Py_INCREF(x);
    }
    Py_INCREF(home), Py_INCREF(kept);
    for (Py_ssize_t i = 0; i < n; i++)
        Py_INCREF(data[i]); /* the handles may come to hold something else while the kernel runs */
    if (row == getitem_row && basic != Py_None)
        index = PyDict_GetItemWithError(params, PyTuple_GET_ITEM(index_name, 0));
    if (index != NULL && plain_index(index)) {
        PyObject *given[] = {data[0], index};
        out = PyObject_Vectorcall(basic, given, 2, NULL);
    } else { /* what is prepared for those that join a list takes a list */
        int prepares = view || (basic == Py_None && (bare || plain_params(params)));
        run = prepares ? prepared_for(kept, data, n) : Py_NewRef(PyList_GET_ITEM(kept, KERNEL));
        if (run != NULL) {
            out = PyObject_VectorcallDict(run, data, n, bare ? NULL : params);
            Py_DECREF(run);
        }
    }
    PyObject *more = out != NULL ? PyNumber_Add(PyList_GET_ITEM(kept, CALLS), Py_True) : NULL;
    if (more == NULL || PyList_SetItem(kept, CALLS, more) < 0)
        Py_CLEAR(out);
    if (out != NULL && (PyTuple_CheckExact(out) || PyList_CheckExact(out))) {
        Py_ssize_t size = PySequence_Fast_GET_SIZE(out);
        result = PyTuple_New(size);
        for (Py_ssize_t i = 0; result != NULL && i < size; i++) {
            PyObject *o = Py_NewRef(PySequence_Fast_GET_ITEM(out, i));
            if (o != Py_None && (o = buffer_at(home, o, Py_True)) == NULL)
                Py_CLEAR(result);
            else
                PyTuple_SET_ITEM(result, i, o);
        }
        Py_DECREF(out);
    } else if (out != NULL) {
        int shows = x != NULL ? shows_memory(kept, x, row, params, out) : 0;
        if (shows < 0)
            Py_DECREF(out);
        else
            result = buffer_at(home, out, PyList_GET_ITEM(kept, NUMBERS));
        if (result != NULL && shows) {
            PyObject *origin = PyTuple_Pack(3, x, row, params);
            if (origin != NULL)
                Py_SETREF(SLOT(result, shown_at), origin);
            else
                Py_CLEAR(result);
        }
    }
    for (Py_ssize_t i = 0; i < n; i++)
        Py_DECREF(data[i]);
    Py_XDECREF(x), Py_DECREF(kept), Py_DECREF(home);
    if (result == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return result;
}

/* A Meta of shape and dtype. */
static PyObject *meta_with(PyObject *shape, PyObject *dtype) {
    PyObject *meta = MetaType->tp_alloc(MetaType, 0);
    if (meta != NULL)
        SLOT(meta, meta_shape_at) = Py_NewRef(shape), SLOT(meta, meta_dtype_at) = Py_NewRef(dtype);
    return meta;
}

/* Shape and dtype of an array or a buffer, new references; -1 with an exception. */
static int described(PyObject *x, PyObject **shape, PyObject **dtype) {
    *shape = *dtype = NULL;
    if (Py_IS_TYPE(x, BufferType)) {
        if (know(x) == 0)
            *shape = Py_NewRef(SLOT(x, shape_at)), *dtype = Py_NewRef(SLOT(x, dtype_at));
    } else if ((*shape = shape_of(x)) != NULL) {
        *dtype = Py_IS_TYPE(x, Host) ? Py_NewRef(DESCR(x)) : PyObject_GetAttr(x, word_dtype);
        if (*dtype == NULL)
            Py_CLEAR(*shape);
    }
    return *shape == NULL ? -1 : 0;
}

/* What a tape keeps of an array that no rule reads. */
static PyObject *meta_of(PyObject *x) {
    PyObject *shape, *dtype, *meta;
    if (described(x, &shape, &dtype) < 0)
        return NULL;
    meta = meta_with(shape, dtype);
    Py_DECREF(shape), Py_DECREF(dtype);
    return meta;
}

/* What a node of a tape keeps of a row's arguments: themselves, else GradTrace._metas. */
static PyObject *kept_of(PyObject *const *raw, PyObject *parents, Py_ssize_t n, int whole, int all_traced) {
    if (!whole && all_traced)
        return Py_NewRef(Py_None);
    PyObject *arrays = PyTuple_New(n);
    for (Py_ssize_t i = 0; arrays != NULL && i < n; i++) {
        PyObject *x = raw[i];
        if (!whole && (Py_IS_TYPE(x, BufferType) || Py_IS_TYPE(x, Host))) {
            int traced = PyLong_AsLong(PyTuple_GET_ITEM(parents, i)) >= 0;
            x = traced ? Py_NewRef(Py_None) : meta_of(x);
        } else if (whole && !all_traced && PyLong_AsLong(PyTuple_GET_ITEM(parents, i)) < 0)
            x = safe_value(x);
        else
            Py_INCREF(x);
        if (x == NULL)
            Py_CLEAR(arrays);
        else
            PyTuple_SET_ITEM(arrays, i, x);
    }
    return arrays;
}

/* A row's kernel on NumPy's arrays and numbers, as GradTrace runs it. NULL, without an exception, where Python must do it:
   for large arrays, which threads share. */
static PyObject *run_on_host(PyObject *row, PyObject *const *raw, Py_ssize_t n, PyObject *params) {
    int alone = SLOT(row, row_elementwise_at) == Py_True && PyDict_GET_SIZE(params) == 0;
    PyObject *kernel = SLOT(row, alone ? row_numpy_at : row_fast_at);
    if (kernel == NULL || SLOT(row, row_worth_at) != Py_None)
        return NULL;
    for (Py_ssize_t i = 0; i < n && alone; i++)
        if (Py_IS_TYPE(raw[i], Host) && elements(raw[i]) >= COMBINED)
            return NULL;
    count_row(row);
    return PyObject_VectorcallDict(kernel, raw, n, PyDict_GET_SIZE(params) == 0 ? NULL : params);
}

/* Whether z, which a row made of the array x, shows x's memory: 1, 0, or -1 where Python must find out whose it is. */
static int shows_host(PyObject *z, PyObject *x) {
    PyObject *base = Py_IS_TYPE(z, Host) ? ((Array *)z)->base : NULL, *other = Py_IS_TYPE(x, Host) ? ((Array *)x)->base : NULL;
    if (z == x || (base != NULL && (base == x || base == other)))
        return 1;
    return base == NULL || !Py_IS_TYPE(x, Host) ? 0 : -1;
}

/* GradTrace.process where what the tape watches are NumPy's arrays, or lies at a place: a row of tracers, of arrays or
   buffers, handles on such, and numbers; a tracer, or what the tape does not watch. NULL where Python must do it. */
static PyObject *run_on_tape(PyObject *row, PyObject *const *operands, Py_ssize_t n, PyObject *params) {
    PyObject *values[MOST], *raw[MOST], *tape = NULL;
    int all_traced = 1, hosts = 0, placed = 0, by_user = 0; /* whose arrays of NumPy's own, unlike a rule's, may change */
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *v = operands[i];
        by_user |= is_handle(v);
        if (is_handle(v) && (v = value_in(v)) == NULL)
            v = host_of(operands[i]);
        if ((values[i] = v) == NULL)
            return NULL;
        if (Py_IS_TYPE(v, TracerType)) {
            if (tape != NULL && SLOT(v, trace_at) != tape)
                return NULL;
            tape = SLOT(v, trace_at), raw[i] = SLOT(v, traced_at);
            if (tape == NULL || raw[i] == NULL)
                return NULL;
        } else
            raw[i] = v, all_traced = 0;
        if (Py_IS_TYPE(raw[i], Host))
            hosts = 1;
        else if (Py_IS_TYPE(raw[i], BufferType))
            placed = 1;
        else if (!is_number(raw[i]))
            return NULL;
        else if (!is_python_number(raw[i]))
            hosts = 1; /* NumPy's */
    }
    if ((hosts && (placed || busy())) || tape == NULL || !Py_IS_TYPE(tape, TapeType) || SLOT(tape, alive_at) != Py_True || row == write_row)
        return NULL;
    for (Py_ssize_t i = 0; by_user && i < n; i++)
        if (Py_IS_TYPE(operands[i], Host) && note_outside(operands + i, 1, operands[i]) < 0)
            return NULL;
    PyObject *parents = PyTuple_New(n), *vjp = SLOT(row, row_vjp_at), *saves = SLOT(row, row_saves_at);
    PyObject *arrays = NULL, *node = NULL, *tracer = NULL, *origin = NULL;
    for (Py_ssize_t i = 0; parents != NULL && i < n; i++) {
        PyObject *p = Py_IS_TYPE(values[i], TracerType) ? Py_NewRef(SLOT(values[i], node_at)) : PyLong_FromLong(-1);
        if (p == NULL)
            Py_CLEAR(parents);
        else
            PyTuple_SET_ITEM(parents, i, p);
    }
    if (parents == NULL || (params = params_kept(params)) == NULL)
        return Py_XDECREF(parents), NULL;
    Py_INCREF(tape); /* a kernel that is Python may do anything */
    for (Py_ssize_t i = 0; i < n; i++)
        Py_INCREF(values[i]), Py_INCREF(raw[i]);
    PyObject *shape = NULL, *dtype = NULL, *nodes = SLOT(tape, nodes_at);
    PyObject *z = placed ? run_at_place(row, raw, n, params) : run_on_host(row, raw, n, params);
    if (z == NULL)
        goto done;
    if (PyUnicode_CheckExact(vjp)) { /* CONSTANT */
        tracer = Py_NewRef(z);
        goto done;
    }
    int shows = !placed && SLOT(row, row_view_at) == Py_True && Py_IS_TYPE(values[0], TracerType) ? shows_host(z, raw[0]) : 0;
    int single = placed ? Py_IS_TYPE(z, BufferType) : Py_IS_TYPE(z, Host) || (is_number(z) && !is_python_number(z));
    if (!single || shows < 0 || described(z, &shape, &dtype) < 0 || strchr("fc", ((Dtype *)dtype)->kind) == NULL ||
        !PyList_CheckExact(nodes)) { /* several results, integers */
        PyObject *given[] = {tape, row, PyTuple_New(n), params, parents, PyTuple_New(n), z};
        for (Py_ssize_t i = 0; given[2] != NULL && given[5] != NULL && i < n; i++) {
            PyTuple_SET_ITEM(given[2], i, Py_NewRef(values[i]));
            PyTuple_SET_ITEM(given[5], i, Py_NewRef(raw[i]));
        }
        if (!PyErr_Occurred())
            tracer = PyObject_VectorcallMethod(word_recorded, given, 7, NULL);
        Py_XDECREF(given[2]), Py_XDECREF(given[5]);
        goto done;
    }
    int in = PyUnicode_CompareWithASCIIString(saves, "in") == 0, out = PyUnicode_CompareWithASCIIString(saves, "out") == 0;
    int both = !in && !out && PyUnicode_CompareWithASCIIString(saves, "both") == 0;
    arrays = kept_of(raw, parents, n, in || both, all_traced);
    if (arrays == NULL ||
        (node = PyTuple_Pack(7, row, params, parents, arrays, out || both ? z : Py_None, shape, dtype)) == NULL)
        goto done;
    origin = Py_NewRef(Py_None);
    if (placed && SLOT(z, shown_at) != Py_None && Py_IS_TYPE(values[0], TracerType))
        shows = PyTuple_GET_ITEM(SLOT(z, shown_at), 0) == raw[0];
    if (shows)
        Py_SETREF(origin, PyTuple_Pack(3, values[0], row, params));
    if (origin == NULL || (tracer = TracerType->tp_alloc(TracerType, 0)) == NULL)
        goto done;
    SLOT(tracer, trace_at) = Py_NewRef(tape), SLOT(tracer, traced_at) = Py_NewRef(z);
    SLOT(tracer, view_at) = Py_NewRef(origin), SLOT(tracer, node_at) = PyLong_FromSsize_t(PyList_GET_SIZE(nodes));
    if (SLOT(tracer, node_at) == NULL || PyList_Append(nodes, node) < 0)
        Py_CLEAR(tracer);
done:
    for (Py_ssize_t i = 0; i < n; i++)
        Py_DECREF(values[i]), Py_DECREF(raw[i]);
    Py_XDECREF(z), Py_XDECREF(shape), Py_XDECREF(dtype), Py_XDECREF(arrays), Py_XDECREF(node), Py_XDECREF(origin), Py_DECREF(parents), Py_DECREF(tape), Py_DECREF(params);
    return tracer;
}

/* array.wrap: the handles of what a row made (whose reference it takes) of `first`; a view of that where it shows it. */
static PyObject *wrapped_of(PyObject *value, PyObject *first) {
    if (PyTuple_CheckExact(value)) {
        Py_ssize_t n = PyTuple_GET_SIZE(value);
        PyObject *all = PyTuple_New(n);
        for (Py_ssize_t i = 0; all != NULL && i < n; i++) {
            PyObject *h = wrapped_of(Py_NewRef(PyTuple_GET_ITEM(value, i)), first);
            if (h == NULL)
                Py_CLEAR(all);
            else
                PyTuple_SET_ITEM(all, i, h);
        }
        Py_DECREF(value);
        return all;
    }
    if (Py_IS_TYPE(value, Host) || is_number(value))
        return result_of(value);
    if (!Py_IS_TYPE(value, BufferType) && !Py_IS_TYPE(value, TracerType)) {
        PyObject *args = PyTuple_Pack(1, first), *made = args != NULL ? PyObject_CallFunctionObjArgs(wrapped, value, args, NULL) : NULL;
        Py_XDECREF(args), Py_DECREF(value);
        return made;
    }
    PyObject *origin = SLOT(value, Py_IS_TYPE(value, BufferType) ? shown_at : view_at), *h = handle_of(value);
    if (h != NULL && origin != NULL && origin != Py_None && value_in(first) == PyTuple_GET_ITEM(origin, 0)) {
        PyObject *path = step_of(PyTuple_GET_ITEM(origin, 1), PyTuple_GET_ITEM(origin, 2));
        if (path == NULL || link_view(h, first, path) < 0)
            Py_CLEAR(h);
        Py_XDECREF(path);
    }
    return h;
}

/* A row of handles, one at least traced, with keywords whose values are given. NULL where Python must do it. */
static PyObject *traced_at_place(PyObject *row, PyObject *const *operands, Py_ssize_t n, PyObject *const *values,
                                 PyObject *names) {
    if (RowType->tp_call == python_row_call || (n == 2 && operands[0] == operands[1] && row == multiply_row))
        return NULL; /* given back to Python; x * x has a row of its own */
    for (Py_ssize_t i = 0; i < n; i++)
        if (value_in(operands[i]) == NULL && !is_python_number(operands[i]) &&
            !(is_handle(operands[i]) && host_of(operands[i]) != NULL))
            return NULL;
    PyObject *params = names == NULL ? Py_NewRef(no_params) : PyDict_New(), *made = NULL;
    for (Py_ssize_t i = 0; params != NULL && names != NULL && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(params, PyTuple_GET_ITEM(names, i), values[i]) < 0)
            Py_CLEAR(params);
    if (params != NULL)
        made = run_on_tape(row, operands, n, params);
    Py_XDECREF(params);
    return made != NULL ? wrapped_of(made, operands[0]) : NULL;
}

/* A row called, row(*args, **params): on handles and values at a place, a tape's or not, and on NumPy's own arrays where
   nothing watches: array._call, dispatch.bind. */
static PyObject *row_call(PyObject *row, PyObject *args, PyObject *params) {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    int handles = 0, traced = 0, placed = 0, hosts = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = PyTuple_GET_ITEM(args, i);
        if (is_handle(x)) {
            handles = 1;
            if ((x = value_in(x)) == NULL && (x = host_of(PyTuple_GET_ITEM(args, i))) == NULL)
                goto python;
        }
        if (Py_IS_TYPE(x, TracerType))
            traced = 1;
        else if (Py_IS_TYPE(x, BufferType))
            placed = 1;
        else if (!is_python_number(x)) {
            if (!Py_IS_TYPE(x, Host) && !is_number(x))
                goto python;
            hosts = 1;
        }
    }
    if (n == 0 || n > MOST || (hosts && placed))
        goto python;
    if (traced || placed) {
        PyObject *given = params != NULL ? params : no_params, *const *operands = &PyTuple_GET_ITEM(args, 0);
        PyObject *made = traced ? run_on_tape(row, operands, n, given) : run_at_place(row, operands, n, given);
        if (made != NULL || PyErr_Occurred())
            return made != NULL && handles ? wrapped_of(made, operands[0]) : made;
    } else if (!handles && !busy() && SLOT(row, row_worth_at) == Py_None) {
        count_row(row);
        return PyObject_Call(SLOT(row, row_fast_at), args, params);
    }
python:
    return python_row_call(row, args, params);
}
