/* Operators, views and lists of arrays at a place: a row's kernel there and what it gives back. */

/* What a place keeps for a row, a list: see placed.slot_of. */
enum { KERNEL, CALLS, PREPARED, PLAN, EXACT, BASIC, SHOWS, INTO, ORDERED, NUMBERS, SLOT_SIZE };

static inline PyObject *buffer_in(PyObject *h) {
    PyObject *v = value_in(h);
    return v != NULL && Py_IS_TYPE(v, BufferType) ? v : NULL;
}

/* What lies under a value's tracers, all of them live tapes' (borrowed), or NULL. */
static inline PyObject *under(PyObject *v) {
    while (v != NULL && Py_IS_TYPE(v, TracerType)) {
        PyObject *tape = SLOT(v, trace_at);
        v = tape != NULL && Py_IS_TYPE(tape, TapeType) && SLOT(tape, alive_at) == Py_True ? SLOT(v, traced_at) : NULL;
    }
    return v;
}

/* The same where it is a buffer, or an array of NumPy's. */
static inline PyObject *buffer_under(PyObject *v) { return (v = under(v)) != NULL && Py_IS_TYPE(v, BufferType) ? v : NULL; }
static inline PyObject *host_under(PyObject *v) { return (v = under(v)) != NULL && Py_IS_TYPE(v, Host) ? v : NULL; }

static inline int is_python_number(PyObject *x) {
    return PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyComplex_CheckExact(x) || PyBool_Check(x);
}

/* Whether nothing watches or redirects calls at home: placed.free, whose answer without a capture depends on the policy
   and home alone, so that its last one is kept. */
static int calm(PyObject *home) {
    PyObject *watching = NULL, *inner = NULL;
    if (!busy())
        return 1;
    int yes = PyContextVar_Get(captures, NULL, &watching) == 0 && watching == Py_None &&
              PyContextVar_Get(policies, NULL, &inner) == 0 && inner != NULL;
    if (yes) {
        PyObject *policy = PyTuple_CheckExact(inner) ? PyTuple_GET_ITEM(inner, 0) : SLOT(state, policy_at);
        if (policy != calm_policy || home != calm_home) {
            Py_INCREF(policy);
            PyObject *free_there = PyObject_CallOneArg(free_place, home);
            yes = free_there == Py_True;
            if (yes) {
                Py_XSETREF(calm_home, Py_NewRef(home));
                Py_XSETREF(calm_policy, Py_NewRef(policy));
            }
            Py_XDECREF(free_there), Py_DECREF(policy);
        }
    }
    Py_XDECREF(watching), Py_XDECREF(inner);
    if (PyErr_Occurred())
        PyErr_Clear();
    return yes;
}

static PyObject *run_at_place(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

static int know(PyObject *b);

/* The dtype of a buffer (borrowed), put into its slot; NULL with an exception where its home cannot tell. */
static PyObject *dtype_of(PyObject *b) {
    if (SLOT(b, dtype_at) != NULL)
        return SLOT(b, dtype_at);
    PyObject *theirs = PyObject_GetAttr(SLOT(b, data_at), word_dtype);
    PyObject *dtype = theirs != NULL ? PyDict_GetItemWithError(dtypes, theirs) : NULL;
    PyErr_Clear();
    Py_XDECREF(theirs);
    if (dtype == NULL) /* it was not met before */
        return know(b) == 0 ? SLOT(b, dtype_at) : NULL;
    return SLOT(b, dtype_at) = Py_NewRef(dtype);
}

/* Shape and dtype of a buffer into their slots, as Buffer.__getattr__ does; -1 with an exception where that fails. */
static int know(PyObject *b) {
    if (SLOT(b, shape_at) != NULL && SLOT(b, dtype_at) != NULL)
        return 0;
    PyObject *data = SLOT(b, data_at), *theirs = PyObject_GetAttr(data, word_dtype);
    PyObject *dtype = theirs != NULL ? PyDict_GetItemWithError(dtypes, theirs) : NULL, *shape = NULL;
    PyErr_Clear();
    Py_XINCREF(dtype);
    if (dtype != NULL && (shape = PyObject_GetAttr(data, word_shape)) != NULL)
        Py_SETREF(shape, PyTuple_Check(shape) ? PyTuple_GetSlice(shape, 0, PyTuple_GET_SIZE(shape)) : PySequence_Tuple(shape));
    else {
        PyErr_Clear();
        PyObject *asked[] = {SLOT(b, backend_at), data}, *both = PyObject_VectorcallMethod(word_meta, asked, 2, NULL);
        Py_CLEAR(dtype);
        if (both != NULL && PyArg_ParseTuple(both, "O!O", &PyTuple_Type, &shape, &dtype)) {
            Py_INCREF(shape), Py_INCREF(dtype);
            if (theirs != NULL && PyDict_SetItem(dtypes, theirs, dtype) < 0)
                Py_CLEAR(shape);
        }
        Py_XDECREF(both);
    }
    Py_XDECREF(theirs);
    if (shape == NULL) {
        Py_XDECREF(dtype);
        return -1;
    }
    Py_XSETREF(SLOT(b, shape_at), shape);
    Py_XSETREF(SLOT(b, dtype_at), dtype);
    return 0;
}

static getattrofunc python_buffer_getattr;

static PyObject *buffer_getattr(PyObject *b, PyObject *name) {
    if ((name == word_shape || name == word_dtype) && Py_IS_TYPE(b, BufferType))
        return know(b) == 0 ? Py_NewRef(SLOT(b, name == word_shape ? shape_at : dtype_at)) : NULL;
    if (name == word_ndim)
        return know(b) == 0 ? PyLong_FromSsize_t(PyTuple_GET_SIZE(SLOT(b, shape_at))) : NULL;
    PyObject *turned = name == word_T ? run_at_place(transpose_row, &b, 1, no_params) : NULL;
    return turned != NULL || PyErr_Occurred() ? turned : python_buffer_getattr(b, name);
}

/* What home keeps for a row (borrowed); NULL where it has no kernel. */
static PyObject *kept_for(PyObject *home, PyObject *row) {
    if (home != last_home) {
        PyObject *slots = PyObject_GetAttr(home, word_slots);
        if (slots == NULL || !PyDict_CheckExact(slots)) {
            PyErr_Clear();
            Py_XDECREF(slots);
            return NULL;
        }
        Py_INCREF(home);
        Py_XSETREF(last_home, home);
        Py_XSETREF(last_slots, slots);
    }
    PyObject *kept = PyDict_GetItemWithError(last_slots, row);
    if (kept == NULL && !PyErr_Occurred()) { /* it is asked for the first time */
        PyObject *asked[] = {home, row};
        Py_XDECREF(PyObject_Vectorcall(slot_of_row, asked, 2, NULL));
        kept = PyErr_Occurred() ? NULL : PyDict_GetItemWithError(last_slots, row);
    }
    if (kept == NULL)
        PyErr_Clear();
    return kept != NULL && PyList_CheckExact(kept) && PyList_GET_SIZE(kept) == SLOT_SIZE &&
           PyList_GET_ITEM(kept, KERNEL) != Py_None ? kept : NULL;
}

/* Whether NumPy 1 promotes arrays with axes and this number by their types: weak_in_numpy_1 in torch/dtypes.py. */
static int is_weak(PyObject *x) {
    int beyond = 0;
    long n = PyLong_CheckExact(x) ? PyLong_AsLongAndOverflow(x, &beyond) : -1;
    return PyFloat_CheckExact(x) ? !(6e4 <= fabs(PyFloat_AS_DOUBLE(x)) && isfinite(PyFloat_AS_DOUBLE(x))) : 0 <= n && n <= 127;
}

static int fits_int(PyObject *n) {
    int beyond = 0;
    PyLong_AsLongLongAndOverflow(n, &beyond);
    return beyond == 0;
}

/* Whether an operand does not lie in C order. */
static int is_turned(PyObject *const *data, Py_ssize_t n) {
    int turned = 0;
    for (Py_ssize_t i = 0; !turned && i < n; i++) {
        PyObject *plain = is_python_number(data[i]) ? NULL : PyObject_CallMethodNoArgs(data[i], word_is_contiguous);
        turned = plain == Py_False;
        Py_XDECREF(plain);
        PyErr_Clear();
    }
    return turned;
}

/* The function a kernel runs for operands of these kinds, a new reference; the kernel itself where that depends on more
   than dtypes and Python's types of numbers, or on how the operands lie. NULL with an exception where it refuses them. */
static PyObject *prepared_for(PyObject *kept, PyObject *const *data, Py_ssize_t n) {
    PyObject *prepared = PyList_GET_ITEM(kept, PREPARED), *kernel = PyList_GET_ITEM(kept, KERNEL), *run = NULL;
    int exact = PyList_GET_ITEM(kept, EXACT) == Py_True, axes = 0, none = 0;
    if (PyList_GET_ITEM(kept, ORDERED) == Py_True && is_turned(data, n))
        return Py_NewRef(kernel);
    for (Py_ssize_t i = 0; !exact && i < n; i++) { /* NumPy 1 promotes by types where all have axes, or none has */
        int number = is_python_number(data[i]);
        PyObject *ndim = number ? NULL : PyObject_GetAttr(data[i], word_ndim);
        if (ndim == NULL && !number)
            return NULL;
        int some = ndim != NULL && PyObject_IsTrue(ndim) == 1;
        axes += some || (number && is_weak(data[i])), none += !some && (ndim != NULL || !PyLong_Check(data[i]) || fits_int(data[i]));
        Py_XDECREF(ndim);
    }
    PyObject *kinds = PyDict_CheckExact(prepared) ? PyTuple_New(n + (none == n)) : NULL;
    int direct = kinds != NULL, by_type = exact || axes == n || none == n;
    if (direct && none == n)
        PyTuple_SET_ITEM(kinds, n, Py_NewRef(Py_None));
    for (Py_ssize_t i = 0; direct && i < n; i++) {
        PyObject *kind, *x = data[i];
        if (PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyComplex_CheckExact(x)) {
            kind = (PyObject *)Py_TYPE(x);
            Py_INCREF(kind);
        } else
            kind = PyBool_Check(x) ? NULL : PyObject_GetAttr(x, word_dtype);
        direct = kind != NULL && (i == 0 || by_type || kind == PyTuple_GET_ITEM(kinds, 0));
        if (kind != NULL)
            PyTuple_SET_ITEM(kinds, i, kind);
    }
    if (direct && (run = PyDict_GetItemWithError(prepared, kinds)) != NULL)
        Py_INCREF(run);
    else if (direct && !PyErr_Occurred() &&
             (run = PyObject_Vectorcall(PyList_GET_ITEM(kept, PLAN), data, n, NULL)) != NULL &&
             PyDict_SetItem(prepared, kinds, run) < 0)
        Py_CLEAR(run);
    Py_XDECREF(kinds);
    if (run == NULL && !PyErr_Occurred()) {
        Py_INCREF(kernel);
        run = kernel;
    }
    return run;
}

/* What a kernel makes of data and keywords. NULL, without an exception unless it is the user's interrupt, where Python
   must do it: kernels do not write to their arguments, so it may start anew, and says what is wrong. */
static PyObject *computed(PyObject *kept, PyObject *run, PyObject *const *given, Py_ssize_t n, PyObject *names) {
    PyObject *out = NULL;
    Py_INCREF(kept);
    if (run != NULL) {
        out = run == subscription ? PyObject_GetItem(given[0], given[1]) : PyObject_Vectorcall(run, given, n, names);
        Py_DECREF(run);
    }
    if (out != NULL) {
        PyObject *more = PyNumber_Add(PyList_GET_ITEM(kept, CALLS), Py_True);
        if (more == NULL || PyList_SetItem(kept, CALLS, more) < 0)
            Py_CLEAR(out);
    }
    Py_DECREF(kept);
    if (out == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return out;
}

/* A buffer of data (whose reference it takes) at home. */
static PyObject *buffer_at(PyObject *home, PyObject *data, PyObject *number) {
    PyObject *buffer = BufferType->tp_alloc(BufferType, 0);
    if (buffer == NULL) {
        Py_DECREF(data);
        return NULL;
    }
    SLOT(buffer, data_at) = data, SLOT(buffer, backend_at) = Py_NewRef(home);
    SLOT(buffer, shown_at) = Py_NewRef(Py_None), SLOT(buffer, computed_at) = Py_NewRef(number);
    return buffer;
}

/* A root handle on a buffer or tracer (whose reference it takes). */
static PyObject *handle_of(PyObject *value) {
    PyObject *h = new_virtual();
    if (h == NULL) {
        Py_DECREF(value);
        return NULL;
    }
    FIELD(h, host_at) = Py_NewRef(Py_None), FIELD(h, root_at) = Py_NewRef(Py_None), FIELD(h, value_at) = value;
    return h;
}

/* A root handle on data (whose reference it takes) at home, with its buffer; `*made`: the buffer (borrowed). */
static PyObject *handle_at(PyObject *home, PyObject *data, PyObject *number, PyObject **made) {
    PyObject *buffer = buffer_at(home, data, number), *h = buffer != NULL ? handle_of(buffer) : NULL;
    if (h != NULL && made != NULL)
        *made = buffer;
    return h;
}

/* Where handles and buffers live that are all at one place (borrowed), and numbers beside them, with what they hold
   there; else NULL. */
static PyObject *gathered(PyObject *const *operands, Py_ssize_t n, PyObject **data) {
    PyObject *home = NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = operands[i], *b = Py_IS_TYPE(x, BufferType) ? x : buffer_in(x);
        if (b != NULL) {
            if (home != NULL && home != SLOT(b, backend_at))
                return NULL;
            home = SLOT(b, backend_at), data[i] = SLOT(b, data_at);
        } else if (is_python_number(x) || PyUnicode_CheckExact(x)) /* subscripts */
            data[i] = x;
        else
            return NULL;
    }
    return home != NULL && calm(home) ? home : NULL;
}

static PyObject *traced_at_place(PyObject *, PyObject *const *, Py_ssize_t, PyObject *const *, PyObject *);

/* A row of handles at one place, and numbers, as NumPy's function takes them, with k keywords whose values follow them.
   NULL where Python must do it. A name that is `given` is that of the kernel's first parameter after the arrays, which it
   takes in its place: torch's functions know some by another name. */
static PyObject *on_place_with(PyObject *row, PyObject *const *operands, Py_ssize_t n, PyObject *const *values,
                               PyObject *names, int given) {
    PyObject *data[MOST];
    Py_ssize_t k = names != NULL ? PyTuple_GET_SIZE(names) : 0;
    if (n + k > MOST)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        if (is_handle(operands[i]) && FIELD(operands[i], host_at) == Py_None && FIELD(operands[i], value_at) != NULL &&
            Py_IS_TYPE(FIELD(operands[i], value_at), TracerType))
            return traced_at_place(row, operands, n, values, names);
    PyObject *home = gathered(operands, n, data), *kept = home != NULL ? kept_for(home, row) : NULL;
    for (Py_ssize_t i = 0; i < k; i++)
        data[n + i] = values[i];
    if (kept == NULL)
        return NULL;
    Py_INCREF(home);
    for (Py_ssize_t i = 0; i < n; i++)
        Py_INCREF(data[i]); /* the handles may come to hold something else while the kernel runs */
    PyObject *number = Py_NewRef(PyList_GET_ITEM(kept, NUMBERS));
    PyObject *out = computed(kept, prepared_for(kept, data, n), data, given ? n + 1 : n, given ? NULL : names);
    for (Py_ssize_t i = 0; i < n; i++)
        Py_DECREF(data[i]);
    PyObject *h = out == NULL || PyTuple_CheckExact(out) ? out : handle_at(home, out, number, NULL);
    if (out != NULL && h == out) { /* of several results */
        h = PyTuple_New(PyTuple_GET_SIZE(out));
        for (Py_ssize_t i = 0; h != NULL && i < PyTuple_GET_SIZE(out); i++) {
            PyObject *one = handle_at(home, Py_NewRef(PyTuple_GET_ITEM(out, i)), number, NULL);
            if (one == NULL)
                Py_CLEAR(h);
            else
                PyTuple_SET_ITEM(h, i, one);
        }
        Py_DECREF(out);
    }
    Py_DECREF(home), Py_DECREF(number);
    return h;
}

static PyObject *on_place(PyObject *row, PyObject *const *operands, Py_ssize_t n, PyObject *const *values, PyObject *names) {
    return on_place_with(row, operands, n, values, names, 0);
}

/* The same for a list of arrays and an axis, where the kernel offers a function (data, axis) for arrays that are alike. */
static PyObject *list_on_place(PyObject *row, PyObject *const *operands, Py_ssize_t n, PyObject *axis, int at_zero) {
    PyObject *data[MOST], *home = n <= MOST ? gathered(operands, n, data) : NULL;
    PyObject *kept = home != NULL ? kept_for(home, row) : NULL, *run = NULL, *list = NULL, *out = NULL, *ndim = NULL;
    if (kept == NULL || PyList_GET_ITEM(kept, BASIC) == Py_None || (list = PyTuple_New(n)) == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(list, i, Py_NewRef(data[i]));
    Py_INCREF(home);
    run = prepared_for(kept, data, n);
    int alike = run == PyList_GET_ITEM(kept, BASIC), beyond = 0;
    long at = PyLong_AsLongAndOverflow(axis, &beyond);
    for (Py_ssize_t i = 0; alike && i < n; i++) { /* torch joins an empty vector to anything */
        PyObject *d = PyObject_GetAttr(data[i], word_ndim);
        alike = d != NULL && PyObject_IsTrue(d) == 1 && (ndim == NULL || ndim == d) && !beyond && labs(at) < PyLong_AsLong(d);
        Py_XSETREF(ndim, d);
    }
    PyObject *given[] = {list, axis};
    if (alike)
        out = computed(kept, Py_NewRef(run), given, at_zero ? 1 : 2, NULL);
    PyObject *h = out != NULL ? handle_at(home, out, Py_True, NULL) : NULL;
    Py_XDECREF(run), Py_XDECREF(ndim), Py_DECREF(list), Py_DECREF(home);
    if (h == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return h;
}

/* Whether nothing but `others` views of it, `held` references from them, holds or shows the buffer x: writing.py. */
static int is_alone(PyObject *x, Py_ssize_t held, Py_ssize_t others) {
    Py_ssize_t refer = 0;
    if (Py_REFCNT(x) != 1 + held || SLOT(x, copied_at) != NULL || SLOT(x, shown_at) != Py_None)
        return 0;
    if (others > 0) { /* a view's data may refer to what it is of */
        PyObject *does = PyObject_GetAttr(SLOT(x, backend_at), word_views_refer);
        refer = does == Py_True ? others : 0;
        if (does == NULL)
            PyErr_Clear();
        Py_XDECREF(does);
    }
    if (Py_REFCNT(SLOT(x, data_at)) != 1 + refer)
        return PyErr_Clear(), 0;
    PyObject *holders = PyObject_GetAttr(SLOT(x, backend_at), word_holders), *n = NULL;
    if (holders != NULL)
        n = PyObject_CallOneArg(holders, SLOT(x, data_at));
    int alone = n != NULL && PyLong_CheckExact(n) && PyLong_AsSsize_t(n) == 1 + others;
    PyErr_Clear();
    Py_XDECREF(holders), Py_XDECREF(n);
    return alone;
}

/* Whether an index is made of integers, slices of such, None and ... alone; `back`: also slices that step backwards. */
static int simple_index(PyObject *i, int back) {
    if (PyTuple_CheckExact(i)) {
        int whole = 0;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(i); k++)
            if (PyTuple_CheckExact(PyTuple_GET_ITEM(i, k)) || !simple_index(PyTuple_GET_ITEM(i, k), back) ||
                (PyTuple_GET_ITEM(i, k) == Py_Ellipsis && whole++ > 0))
                return 0;
        return 1;
    }
    if (PySlice_Check(i)) {
        PySliceObject *s = (PySliceObject *)i;
        int beyond = 0, steps = s->step == Py_None;
        if (!steps && PyLong_CheckExact(s->step))
            steps = back || PyLong_AsLongAndOverflow(s->step, &beyond) > 0;
        return (s->start == Py_None || PyLong_CheckExact(s->start)) && (s->stop == Py_None || PyLong_CheckExact(s->stop)) && steps;
    }
    return PyLong_CheckExact(i) || i == Py_None || i == Py_Ellipsis;
}

/* Whether every array library reads an index alike. */
static inline int plain_index(PyObject *i) { return simple_index(i, 0); }

/* Whether `...` stands in an index: NumPy's result is then a view also where it has no axes, and no number. */
static int has_ellipsis(PyObject *i) {
    for (Py_ssize_t k = 0; PyTuple_CheckExact(i) && k < PyTuple_GET_SIZE(i); k++)
        if (PyTuple_GET_ITEM(i, k) == Py_Ellipsis)
            return 1;
    return i == Py_Ellipsis;
}

/* ((row, params),), the path to a view that row(params) makes of a root: a new reference. Loops over x[i] take the first
   integers' from here. */
static PyObject *step_of(PyObject *row, PyObject *params) {
    PyObject *step = PyTuple_Pack(2, row, params), *path = step != NULL ? PyTuple_Pack(1, step) : NULL;
    Py_XDECREF(step);
    return path;
}

static PyObject *step_with(PyObject *row, PyObject *names, PyObject *const *values, Py_ssize_t k) {
    static PyObject *items[64];
    int beyond = 0;
    long i = row == getitem_row && PyLong_CheckExact(values[0]) ? PyLong_AsLongAndOverflow(values[0], &beyond) : -1;
    if (0 <= i && i < 64 && items[i] != NULL)
        return Py_NewRef(items[i]);
    PyObject *params = k == 0 ? Py_NewRef(no_params) : PyDict_New();
    for (Py_ssize_t j = 0; params != NULL && j < k; j++)
        if (PyDict_SetItem(params, PyTuple_GET_ITEM(names, j), values[j]) < 0)
            Py_CLEAR(params);
    PyObject *path = params != NULL ? step_of(row, params) : NULL;
    if (path != NULL && 0 <= i && i < 64)
        items[i] = Py_NewRef(path);
    Py_XDECREF(params);
    return path;
}

/* Make handle `view` one of what h holds, by the one step of `path`. */
static int link_view(PyObject *view, PyObject *h, PyObject *path) {
    PyObject *root = FIELD(h, root_at) == Py_None ? h : FIELD(h, root_at);
    path = root == h ? Py_NewRef(path) : PySequence_Concat(FIELD(h, path_at), path);
    if (path == NULL)
        return -1;
    Py_SETREF(FIELD(view, root_at), Py_NewRef(root));
    FIELD(view, path_at) = path, FIELD(view, seen_at) = Py_NewRef(FIELD(root, value_at));
    return 0;
}

/* The handle of `out` (whose reference it takes), which the one step of `path` made of what h holds, the buffer x: a view
   of h where it shows x's memory. */
static PyObject *view_at_place(PyObject *h, PyObject *x, PyObject *path, PyObject *out, int shows) {
    PyObject *b, *view = handle_at(SLOT(x, backend_at), out, Py_True, &b), *step = PyTuple_GET_ITEM(path, 0);
    if (view == NULL || !shows)
        return view;
    PyObject *origin = PyTuple_Pack(3, x, PyTuple_GET_ITEM(step, 0), PyTuple_GET_ITEM(step, 1));
    if (origin == NULL || link_view(view, h, path) < 0) {
        Py_XDECREF(origin), Py_DECREF(view);
        return NULL;
    }
    Py_SETREF(SLOT(b, shown_at), origin);
    return view;
}

static int buffer_has_axes(PyObject *b) {
    PyObject *ndim = PyObject_GetAttr(SLOT(b, data_at), word_ndim);
    int some = ndim != NULL && PyObject_IsTrue(ndim) == 1;
    if (ndim == NULL) { /* MXNet's data has none to ask for */
        PyErr_Clear();
        some = know(b) == 0 && PyTuple_GET_SIZE(SLOT(b, shape_at)) > 0;
        PyErr_Clear();
    }
    Py_XDECREF(ndim);
    return some;
}

/* Whether x is a number, or a view, and the row's kernel asks its results what they show: x may be a copy where NumPy
   stepped backwards. Python knows what NumPy would make of these (placed.shows). */
static int is_numpys(PyObject *kept, PyObject *x) {
    PyObject *shows = PyList_GET_ITEM(kept, SHOWS), *source = SLOT(x, shown_at);
    if (SLOT(x, computed_at) == Py_True && (source == NULL || source == Py_None) && !buffer_has_axes(x))
        return 1;
    return shows != Py_None && shows != Py_True && source != NULL && source != Py_None;
}

/* Whether `out`, which row(params) made of the buffer x, shows x's memory as NumPy's result would; -1: ask NumPy. */
static int shows_memory(PyObject *kept, PyObject *x, PyObject *row, PyObject *params, PyObject *out) {
    PyObject *linked, *shows = PyList_GET_ITEM(kept, SHOWS), *home = SLOT(x, backend_at), *data = SLOT(x, data_at);
    PyObject *index = row == getitem_row ? PyDict_GetItemWithError(params, PyTuple_GET_ITEM(index_name, 0)) : NULL;
    if (index != NULL && plain_index(index) && has_ellipsis(index))
        return 1;
    else if (index != NULL && plain_index(index))
        linked = PyObject_GetAttr(out, word_ndim); /* of no axes: a number, as NumPy has it */
    else if (shows == Py_True || (shows != Py_None && out == data))
        return 1;
    else if (shows != Py_None)
        linked = PyObject_CallOneArg(shows, out);
    else {
        PyObject *asked[] = {home, row, data, out, params};
        linked = PyObject_VectorcallMethod(word_is_view, asked, 5, NULL);
    }
    int is = linked == NULL || linked == Py_None ? -1 : PyObject_IsTrue(linked);
    Py_XDECREF(linked);
    return is;
}

/* What a view row runs on the buffer x, a new reference: its basic function, where x's dtype was verified last time too. */
static PyObject *looking(PyObject *kept, PyObject *x, int basic) {
    static PyObject *known_kept, *known_dtype;
    PyObject *dtype = basic ? dtype_of(x) : NULL;
    PyErr_Clear();
    if (dtype == NULL || kept != known_kept || dtype != known_dtype) {
        PyObject *run = prepared_for(kept, &SLOT(x, data_at), 1);
        if (run == NULL || !basic)
            return run;
        Py_DECREF(run);
        if (dtype != NULL) {
            Py_XSETREF(known_kept, Py_NewRef(kept));
            Py_XSETREF(known_dtype, Py_NewRef(dtype));
        }
    }
    return Py_NewRef(PyList_GET_ITEM(kept, BASIC));
}

/* short.on_view: a row that looks at its argument's memory, with k parameters, on a handle at a place. The kernel's basic
   function, if it offers one, gets `n` values for them instead. is: whether its result shows x's memory; -1: not known. */
static PyObject *view_if(PyObject *row, PyObject *h, PyObject *names, PyObject *const *values, Py_ssize_t k,
                         PyObject *const *items, Py_ssize_t n, int is) {
    PyObject *x = buffer_in(h), *home, *kept, *given[MOST], *out, *view = NULL, *path = NULL;
    int back = row == getitem_row && !plain_index(values[0]); /* the kernel itself knows what that is, and it has axes */
    if (n >= MOST || k >= MOST || (back && (x == NULL || !simple_index(values[0], 1))))
        return NULL;
    if (x == NULL)
        return traced_at_place(row, &h, 1, values, k > 0 ? names : NULL);
    home = SLOT(x, backend_at);
    if (!calm(home) || (kept = kept_for(home, row)) == NULL || is_numpys(kept, x))
        return NULL;
    Py_INCREF(x), Py_INCREF(kept); /* x keeps home and its data */
    given[0] = SLOT(x, data_at);
    int basic = !back && n > 0 && PyList_GET_ITEM(kept, BASIC) != Py_None;
    is = back ? 1 : is;
    for (Py_ssize_t i = 0; i < (basic ? n : k); i++)
        given[i + 1] = basic ? items[i] : values[i];
    out = computed(kept, looking(kept, x, basic), given, basic ? n + 1 : 1, basic || k == 0 ? NULL : names);
    if (out != NULL && (path = step_with(row, names, values, k)) != NULL && is < 0)
        is = shows_memory(kept, x, row, PyTuple_GET_ITEM(PyTuple_GET_ITEM(path, 0), 1), out);
    if (path != NULL && is >= 0) {
        view = view_at_place(h, x, path, out, is);
        if (view != NULL && SLOT(x, dtype_at) != NULL) /* asked of x once, and of none of its views */
            SLOT(FIELD(view, value_at), dtype_at) = Py_NewRef(SLOT(x, dtype_at));
    } else
        Py_XDECREF(out);
    Py_XDECREF(path), Py_DECREF(kept), Py_DECREF(x);
    if (view == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return view;
}

static PyObject *view_on_place(PyObject *row, PyObject *h, PyObject *names, PyObject *const *values, Py_ssize_t k,
                               PyObject *const *items, Py_ssize_t n) {
    return view_if(row, h, names, values, k, items, n, -1);
}

