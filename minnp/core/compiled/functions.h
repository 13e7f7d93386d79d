/* Public functions and methods as objects that go straight to NumPy, or to a place's kernel. */

typedef struct {
    PyObject_HEAD
    PyObject *python, *kernel, *entry; /* the function this is the short way of, NumPy's callable, our entry */
    vectorcallfunc call;
    int kind;         /* what the first argument is, and what is returned: see below */
    Py_ssize_t least; /* positional arguments from which this is NumPy's call; keywords are Python's if it is not 0 */
    int nin;          /* the operands of a ufunc, which then must be all the positional arguments; else -1 */
    PyObject *row;    /* of one or two operands, what this is when called on nothing else; else None */
    Py_ssize_t limit; /* of an array from which Python may do better: bytes, or, negative, elements */
    PyObject *there, *words; /* the row it is at a place, or NULL; the keywords that row takes */
    int form;         /* how that row takes NumPy's arguments: below, or the number of arrays it takes */
} Short;

/* The first argument is an object of another class; it is the home of a public function. An array is returned as it is. An
   array, the first argument, is a mask. */
enum { FOREIGN = 1, HOME = 2, RETURNED = 4, MASKED = 8 };

/* Forms of calls at a place: an array, perhaps an axis, and keywords; a list of arrays and an axis; views; an array as one
   axis, a view or a copy; two vectors or matrices; an array and perhaps a number or some, untraced; a dtype after the array;
   lists of arrays, untraced, with as many axes each; what makes an array where new ones live; a function that a place does
   in one call, untraced; one that writes to its first argument; an array and a number of parts; and, from there on, so many
   arrays, untraced. */
enum { REDUCES = 100, LISTS, SPREADS, VIEWS, RAVELS, FLATTENS, MATRICES, ONES, CASTS, HSTACKS, VSTACKS, MAKES, WHOLE, WRITES,
       SPLITS, UNTRACED = 200 };

/* How many axes what a handle holds at a place, or traced, has, or -1. */
static Py_ssize_t axes_of(PyObject *h) {
    PyObject *b = buffer_under(value_in(h)), *a = host_under(value_in(h));
    if (a != NULL || (a = is_handle(h) ? host_of(h) : NULL) != NULL)
        return ((Array *)a)->nd;
    if (b != NULL && know(b) == 0)
        return PyTuple_GET_SIZE(SLOT(b, shape_at));
    PyErr_Clear();
    return -1;
}

/* x.ravel() where what h holds lies in C order; x.flatten(), its copy. */
static PyObject *flat_at_place(PyObject *row, PyObject *h, int copies) {
    PyObject *b = buffer_under(value_in(h));
    if (b == NULL || RowType->tp_call == python_row_call || know(b) < 0)
        return NULL;
    PyObject *dense = PyObject_CallMethodNoArgs(SLOT(b, data_at), word_is_contiguous), *shape = SLOT(b, shape_at), *flat = NULL;
    Py_ssize_t size = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++)
        size *= PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
    PyObject *one = dense == Py_True ? Py_BuildValue("(n)", size) : NULL;
    if (one != NULL && (flat = view_if(row, h, shape_name, &one, 1, &PyTuple_GET_ITEM(one, 0), 1, 1)) != NULL && copies)
        Py_SETREF(flat, on_place(copy_row, &flat, 1, NULL, NULL));
    Py_XDECREF(dense), Py_XDECREF(one);
    if (flat == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return flat;
}

/* The views that part a buffer's handle along an axis into so many of one length: _split in numpy/composites.py. */
static PyObject *parts_at_place(PyObject *h, PyObject *sections, PyObject *along) {
    PyObject *b = buffer_in(h), *list = NULL;
    Py_ssize_t axes = b != NULL ? axes_of(h) : 0, parts = PyLong_CheckExact(sections) ? PyLong_AsSsize_t(sections) : 0;
    Py_ssize_t axis = PyLong_CheckExact(along) ? PyLong_AsSsize_t(along) : axes, length;
    axis += axis < 0 ? axes : 0;
    length = 0 <= axis && axis < axes ? PyLong_AsSsize_t(PyTuple_GET_ITEM(SLOT(b, shape_at), axis)) : 0;
    PyObject *all = parts > 0 && length > 0 && length % parts == 0 ? PySlice_New(NULL, NULL, NULL) : NULL;
    if (all == NULL || PyErr_Occurred() || (list = PyList_New(parts)) == NULL) { /* an axis beyond all integers, perhaps */
        Py_XDECREF(all);
        return PyErr_Clear(), NULL;
    }
    for (Py_ssize_t i = 0, step = length / parts; list != NULL && i < parts; i++) {
        PyObject *start = PyLong_FromSsize_t(i * step), *stop = PyLong_FromSsize_t((i + 1) * step), *index = NULL, *view = NULL;
        PyObject *part = start != NULL && stop != NULL ? PySlice_New(start, stop, NULL) : NULL;
        if (part != NULL && axis > 0 && (index = PyTuple_New(axis + 1)) != NULL)
            for (Py_ssize_t d = 0; d <= axis; d++)
                PyTuple_SET_ITEM(index, d, Py_NewRef(d < axis ? all : part));
        else if (axis == 0)
            index = Py_XNewRef(part);
        if (index != NULL && (view = view_if(getitem_row, h, index_name, &index, 1, &index, 1, 1)) != NULL)
            PyList_SET_ITEM(list, i, view);
        else
            Py_CLEAR(list);
        Py_XDECREF(start), Py_XDECREF(stop), Py_XDECREF(part), Py_XDECREF(index);
    }
    Py_DECREF(all);
    return list;
}

/* numpy.dtype(x) for what programs say a dtype by; NULL, without an exception, for the rest. */
static PyObject *dtype_said(PyObject *x) {
    if (!(PyType_Check(x) || PyUnicode_CheckExact(x) || PyObject_TypeCheck(x, Py_TYPE(object_dtype)->tp_base)))
        return NULL;
    PyObject *dtype = PyObject_CallOneArg((PyObject *)Py_TYPE(object_dtype)->tp_base, x);
    PyErr_Clear();
    return dtype;
}

/* What NumPy's function of this name makes out of no arrays of ours, where new arrays live; NULL where Python must do it. */
static PyObject *made_at_home(PyObject *name, PyObject *const *given, Py_ssize_t n, PyObject *names) {
    PyObject *inner = NULL, *makers, *make, *out = NULL;
    for (Py_ssize_t i = 0; i < n + (names != NULL ? PyTuple_GET_SIZE(names) : 0); i++)
        if (is_handle(given[i]))
            return NULL;
    if (!busy() || PyContextVar_Get(contexts, NULL, &inner) < 0)
        return NULL;
    PyObject *home = inner != NULL && PyTuple_CheckExact(inner) ? PyTuple_GET_ITEM(inner, 1) : SLOT(state, new_home_at);
    Py_INCREF(home);
    Py_XDECREF(inner);
    if (home != Py_None && calm(home) && (makers = PyObject_GetAttr(home, word_makers)) != NULL) {
        if (PyDict_CheckExact(makers) && (make = PyDict_GetItemWithError(makers, name)) != NULL)
            out = PyObject_Vectorcall(make, given, n, names);
        Py_DECREF(makers);
    }
    if (out != NULL)
        out = handle_at(home, out, Py_False, NULL);
    else if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear(); /* what it says of the arguments, Python learns again */
    Py_DECREF(home);
    return out;
}

/* x as its home's library takes it, a new reference: what handles hold there, also in lists and tuples, numbers and texts as
   they are. NULL where Python must look at it. */
static PyObject *held_there(PyObject *x, PyObject **home, int depth) {
    PyObject *b = is_handle(x) ? buffer_in(x) : NULL, *copy;
    if (b != NULL) {
        if (*home != NULL && *home != SLOT(b, backend_at))
            return NULL;
        *home = SLOT(b, backend_at);
        return Py_NewRef(SLOT(b, data_at));
    }
    if (is_python_number(x) || PyUnicode_CheckExact(x) || x == Py_None)
        return Py_NewRef(x);
    if (!(PyList_CheckExact(x) || PyTuple_CheckExact(x)) || depth > 2)
        return NULL;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(x);
    if ((copy = PyList_CheckExact(x) ? PyList_New(n) : PyTuple_New(n)) == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *e = held_there(PySequence_Fast_GET_ITEM(x, i), home, depth + 1);
        if (e == NULL) {
            Py_DECREF(copy);
            return NULL;
        }
        PySequence_Fast_ITEMS(copy)[i] = e;
    }
    return copy;
}

/* A function that is one call at a place, of anything but traced arrays; the handle of its result, or of several a tuple or
   list. NULL where Python must do it. */
static PyObject *whole_on_place(PyObject *entry, PyObject *const *given, Py_ssize_t n, PyObject *names) {
    PyObject *data[MOST], *home = NULL, *kept, *out = NULL;
    Py_ssize_t all = n + (names != NULL ? PyTuple_GET_SIZE(names) : 0), held = 0;
    for (; all <= MOST && held < all; held++)
        if ((data[held] = held_there(given[held], &home, 0)) == NULL)
            break;
    Py_XINCREF(home);
    if (held == all && home != NULL && calm(home) && (kept = kept_for(home, entry)) != NULL)
        out = computed(kept, Py_NewRef(PyList_GET_ITEM(kept, KERNEL)), data, n, names);
    while (held-- > 0)
        Py_DECREF(data[held]);
    if (out != NULL && (PyTuple_CheckExact(out) || PyList_CheckExact(out))) { /* nobody else has it */
        PyObject **members = PySequence_Fast_ITEMS(out);
        for (Py_ssize_t i = 0; out != NULL && i < PySequence_Fast_GET_SIZE(out); i++) {
            PyObject *h = handle_at(home, Py_NewRef(members[i]), Py_True, NULL);
            if (h != NULL)
                Py_SETREF(members[i], h);
            else
                Py_CLEAR(out);
        }
    } else if (out != NULL)
        out = handle_at(home, out, PyList_GET_ITEM(kept, NUMBERS), NULL);
    Py_XDECREF(home);
    return out;
}

/* The short way of a function or method on handles at a place; NULL where Python must do it. */
static PyObject *short_on_place(Short *s, PyObject *const *given, Py_ssize_t n, PyObject *names) {
    Py_ssize_t k = names != NULL ? PyTuple_GET_SIZE(names) : 0;
    PyObject *first = given[0], *zero_axis = zero;
    if (s->form == MAKES)
        return made_at_home(s->there, given, n, names);
    if (s->form == WHOLE)
        return whole_on_place(s->there, given, n, names);
    if (s->form == WRITES) {
        PyObject *x = is_handle(first) ? buffer_in(first) : NULL, *h = NULL;
        if (x != NULL && FIELD(first, root_at) == Py_None && (h = whole_on_place(s->there, given, n, names)) != NULL)
            h = is_handle(h) ? becomes(first, x, h, s->there) : (Py_DECREF(h), NULL);
        return h != NULL ? (Py_DECREF(h), Py_NewRef(Py_None)) : NULL;
    }
    if (s->form == SPLITS) {
        int named = k == 1 && PyTuple_GET_ITEM(names, 0) == PyTuple_GET_ITEM(axis_name, 0);
        return (n == 2 && (k == 0 || named)) || (n == 3 && k == 0) ? parts_at_place(first, given[1], n + k == 3 ? given[2] : zero) : NULL;
    }
    if (s->form < REDUCES)
        return n == s->form && k == 0 ? on_place(s->there, given, n, NULL, NULL) : NULL;
    if (s->form >= UNTRACED || s->form == ONES || s->form == CASTS) { /* what is traced takes the function's definition, which says every parameter */
        Py_ssize_t arrays = s->form >= UNTRACED ? s->form - UNTRACED : 1;
        for (Py_ssize_t i = 0; i < n && i < arrays; i++)
            if (value_in(given[i]) != NULL && buffer_in(given[i]) == NULL)
                return NULL;
        if (n < arrays || (n == arrays && k == 0))
            return n == arrays && buffer_in(first) != NULL ? on_place(s->there, given, n, NULL, NULL) : NULL;
        if (n + k != 2 || arrays != 1 || buffer_in(first) == NULL || PyTuple_GET_SIZE(s->words) == 0 ||
            (k == 1 && PyTuple_GET_ITEM(s->words, 0) != PyTuple_GET_ITEM(names, 0)))
            return NULL; /* of more than an array and the one parameter the row takes */
        if (s->form == CASTS) {
            PyObject *dtype = dtype_said(given[1]), *h = dtype != NULL ? on_place_with(s->there, given, 1, &dtype, s->words, 1) : NULL;
            Py_XDECREF(dtype);
            return h;
        }
        return plain_axis(given[1]) && given[1] != Py_None ? on_place_with(s->there, given, 1, given + 1, s->words, 1) : NULL;
    }
    static PyObject *one;
    if (one == NULL && (one = PyLong_FromLong(1)) == NULL)
        return NULL;
    if (s->form == HSTACKS || s->form == VSTACKS) { /* of arrays with as many axes each: joined along one they have */
        if (!(PyList_CheckExact(first) || PyTuple_CheckExact(first)) || n != 1 || k != 0 || PySequence_Fast_GET_SIZE(first) == 0)
            return NULL;
        Py_ssize_t axes = buffer_in(PySequence_Fast_GET_ITEM(first, 0)) != NULL ? axes_of(PySequence_Fast_GET_ITEM(first, 0)) : 0;
        PyObject *stacks = PyTuple_GET_ITEM(s->words, s->form == VSTACKS && axes == 1);
        return axes < 1 ? NULL : list_on_place(stacks, PySequence_Fast_ITEMS(first), PySequence_Fast_GET_SIZE(first),
                                               s->form == HSTACKS && axes > 1 ? one : zero, 0);
    }
    if (s->form == LISTS) {
        if (!(PyList_CheckExact(first) || PyTuple_CheckExact(first)) || n > 2 || k > 1 || (n == 2 && k == 1) ||
            (k == 1 && !PySet_Contains(s->words, PyTuple_GET_ITEM(names, 0))))
            return NULL;
        PyObject *const *axis = n + k == 2 ? given + 1 : &zero_axis;
        Py_ssize_t members = PySequence_Fast_GET_SIZE(first);
        for (Py_ssize_t i = 0; i < members; i++)
            if (axes_of(PySequence_Fast_ITEMS(first)[i]) < 0)
                return NULL;
        if (members == 0 || !PyLong_CheckExact(*axis))
            return NULL;
        PyObject *h = list_on_place(s->there, PySequence_Fast_ITEMS(first), members, *axis, n + k == 1);
        return h != NULL || PyErr_Occurred() ? h : on_place(s->there, PySequence_Fast_ITEMS(first), members, axis, axis_name);
    }
    if (s->form == MATRICES) {
        for (Py_ssize_t i = 0; i < n; i++) {
            Py_ssize_t axes = axes_of(given[i]);
            if (n != 2 || k != 0 || axes < 1 || axes > 2)
                return NULL;
        }
        PyObject *h = on_place(s->there, given, n, NULL, NULL);
        if (h == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_ValueError))
            PyErr_Clear(); /* of shapes that do not fit, which Python says in dot's words */
        return h;
    }
    if (value_in(first) == NULL)
        return NULL;
    if (s->form == RAVELS || s->form == FLATTENS)
        return n == 1 && k == 0 ? flat_at_place(s->there, first, s->form == FLATTENS) : NULL;
    if (s->form == SPREADS) { /* numbers, or a tuple of them */
        PyObject *parts = n > 1 ? given[1] : NULL, *view = NULL;
        if (k != 0 || (n == 2 && !PyTuple_CheckExact(parts) && !(PyLong_CheckExact(parts) && s->there == reshape_row)))
            return NULL;
        if (n == 1)
            return s->there == transpose_row ? view_on_place(s->there, first, NULL, NULL, 0, NULL, 0) : NULL;
        if (n > 2 && (s->kind != 0 || s->least != 0)) /* a function takes one */
            return NULL;
        parts = n == 2 ? Py_NewRef(parts) : PyTuple_New(n - 1);
        for (Py_ssize_t i = 1; n > 2 && parts != NULL && i < n; i++)
            PyTuple_SET_ITEM(parts, i - 1, Py_NewRef(given[i]));
        int tuple = parts != NULL && PyTuple_CheckExact(parts);
        if (parts != NULL && (!tuple || PyTuple_GET_SIZE(parts) == 0 || plain_axis(parts)))
            view = view_on_place(s->there, first, s->words, &parts, 1, tuple ? &PyTuple_GET_ITEM(parts, 0) : &parts,
                                 tuple ? PyTuple_GET_SIZE(parts) : 1);
        Py_XDECREF(parts);
        return view;
    }
    if (s->form == VIEWS) { /* a number for each parameter */
        if (n - 1 + k > PyTuple_GET_SIZE(s->words) || (n + k > 1 && !has_axes(first)))
            return NULL;
        for (Py_ssize_t i = 0; i < n - 1 + k; i++)
            if (!PyLong_CheckExact(given[i + 1]) ||
                (i >= n - 1 && PyTuple_GET_ITEM(names, i - n + 1) != PyTuple_GET_ITEM(s->words, i)))
                return NULL;
        return view_on_place(s->there, first, s->words, given + 1, n - 1 + k, given + 1, n - 1 + k);
    }
    for (Py_ssize_t i = 0; i < k; i++)
        if (PySet_Contains(s->words, PyTuple_GET_ITEM(names, i)) != 1 || !plain_axis(given[n + i]))
            return NULL;
    if (n + k > 1 && !has_axes(first))
        return NULL;
    if (n == 1)
        return on_place_with(s->there, given, 1, given + 1, names, k == 1 && PyTuple_GET_ITEM(names, 0) == PyTuple_GET_ITEM(axis_name, 0));
    if (n != 2 || !plain_axis(given[1]))
        return NULL;
    if (k == 0)
        return on_place_with(s->there, given, 1, given + 1, axis_name, 1);
    PyObject *all = PySequence_Contains(names, PyTuple_GET_ITEM(axis_name, 0)) ? NULL : PySequence_Concat(axis_name, names);
    PyObject *h = all != NULL ? on_place(s->there, given, 1, given + 1, all) : NULL;
    Py_XDECREF(all);
    return h;
}

/* f(*operands, out=o) of a ufunc where o is a root at their place and like the result: o holds that from then on. */
static PyObject *out_on_place(Short *s, PyObject *const *given, Py_ssize_t n) {
    PyObject *o = given[n], *x = is_handle(o) ? buffer_in(o) : NULL, *h;
    if (x == NULL || FIELD(o, root_at) != Py_None || (h = on_place(s->there, given, n, NULL, NULL)) == NULL)
        return NULL;
    return becomes(o, x, h, s->there);
}

/* The exception that a definition raised, as NumPy has it: public.numpys. */
static void refused(PyObject *entry, PyObject *const *given, Py_ssize_t n, PyObject *names) {
    PyObject *type, *error, *trace, *theirs = NULL, *args = NULL, *kwargs = NULL;
    if (!(PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_IndexError)))
        return;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if ((args = PyTuple_New(n)) != NULL && (kwargs = PyDict_New()) != NULL) {
        int done = 1;
        for (Py_ssize_t i = 0; i < n; i++)
            PyTuple_SET_ITEM(args, i, Py_NewRef(given[i]));
        for (Py_ssize_t i = 0; done && names != NULL && i < PyTuple_GET_SIZE(names); i++)
            done = PyDict_SetItem(kwargs, PyTuple_GET_ITEM(names, i), given[n + i]) == 0;
        PyObject *asked[] = {entry, args, kwargs, error};
        theirs = done ? PyObject_Vectorcall(as_numpys, asked, 4, NULL) : NULL;
    }
    Py_XDECREF(args), Py_XDECREF(kwargs);
    if (theirs != NULL && theirs != error) {
        PyErr_SetObject((PyObject *)Py_TYPE(theirs), theirs);
        Py_DECREF(theirs), Py_XDECREF(type), Py_XDECREF(error), Py_XDECREF(trace);
    } else {
        PyErr_Clear();
        Py_XDECREF(theirs);
        PyErr_Restore(type, error, trace);
    }
}

/* public.invoke where the first argument lives at a place and nothing watches: the function's definition. */
static PyObject *defined_on_place(Short *s, PyObject *const *given, Py_ssize_t n, PyObject *names) {
    PyObject *first = given[0], *definition;
    if ((PyList_CheckExact(first) || PyTuple_CheckExact(first)) && PySequence_Fast_GET_SIZE(first) > 0)
        first = PySequence_Fast_GET_ITEM(first, 0); /* of a list of arrays */
    PyObject *x = buffer_in(first);
    if (x == NULL || s->entry == NULL || s->kind & FOREIGN || s->least != 0 || !calm(SLOT(x, backend_at)) ||
        (definition = SLOT(s->entry, definition_at)) == Py_None || definition == NULL)
        return NULL;
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++)
        if (PyTuple_GET_ITEM(names, i) == word_out || PyTuple_GET_ITEM(names, i) == word_device)
            return NULL;
    for (Py_ssize_t i = 0; i < n + (names != NULL ? PyTuple_GET_SIZE(names) : 0); i++)
        if (!(is_handle(given[i]) || is_plain(given[i]) || PyTuple_CheckExact(given[i]) || PyList_CheckExact(given[i])))
            return NULL; /* of a class that a definition may not know */
    if (n > 1 && n > s->nin) { /* is one of them `out`? */
        PyObject *count = PyLong_FromSsize_t(n), *asked[] = {s->entry, count};
        PyObject *before = count != NULL ? PyObject_Vectorcall(before_out, asked, 2, NULL) : NULL;
        int no = before == Py_True;
        Py_XDECREF(count), Py_XDECREF(before);
        if (!no)
            return NULL;
    }
    Py_INCREF(definition);
    PyObject *made = PyObject_Vectorcall(definition, given, n, names);
    Py_DECREF(definition);
    if (made == NULL)
        refused(s->entry, given, n, names);
    if (made == NULL || is_handle(made))
        return made;
    PyObject *h = made != Py_NotImplemented ? PyObject_CallOneArg(as_handles, made) : NULL;
    Py_DECREF(made);
    return h;
}

/* An argument as NumPy takes it; NULL (without an exception) where Python must look at it. */
static PyObject *argument(PyObject *x, Py_ssize_t limit, int depth) {
    if (is_handle(x)) {
        x = host_of(x);
        if (x == NULL || (limit > 0 ? bytes(x) >= limit : elements(x) >= -limit))
            return NULL;
    } else if (PyList_CheckExact(x) || PyTuple_CheckExact(x)) {
        int list = PyList_CheckExact(x);
        Py_ssize_t n = list ? PyList_GET_SIZE(x) : PyTuple_GET_SIZE(x);
        PyObject *copy = NULL;
        if (depth > 8)
            return NULL;
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *e = list ? PyList_GET_ITEM(x, i) : PyTuple_GET_ITEM(x, i);
            if (PyFloat_CheckExact(e) || PyLong_CheckExact(e))
                continue;
            PyObject *inner = argument(e, limit, depth + 1);
            if (inner == NULL) {
                Py_XDECREF(copy);
                return NULL;
            }
            if (inner == e) {
                Py_DECREF(inner);
                continue;
            }
            if (copy == NULL) {
                copy = list ? PyList_GetSlice(x, 0, n) : PyTuple_New(n);
                if (copy == NULL) {
                    Py_DECREF(inner);
                    PyErr_Clear();
                    return NULL;
                }
                for (Py_ssize_t k = 0; !list && k < n; k++) {
                    Py_INCREF(PyTuple_GET_ITEM(x, k));
                    PyTuple_SET_ITEM(copy, k, PyTuple_GET_ITEM(x, k));
                }
            }
            if (list)
                PyList_SetItem(copy, i, inner);
            else {
                PyTuple_SET_ITEM(copy, i, inner);
                Py_DECREF(e);
            }
        }
        if (copy != NULL)
            return copy;
    } else if (!is_plain(x))
        return NULL;
    Py_INCREF(x);
    return x;
}

/* seen_from for every handle among arguments, and in the lists and tuples among them. */
static PyObject *seen_among(PyObject *const *args, Py_ssize_t n, PyObject *out) {
    PyObject *h = NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (is_handle(args[i]))
            h = seen_from(args[i], out);
        else if (PyList_CheckExact(args[i]) || PyTuple_CheckExact(args[i]))
            h = seen_among(PySequence_Fast_ITEMS(args[i]), PySequence_Fast_GET_SIZE(args[i]), out);
        if (h != NULL || PyErr_Occurred()) /* with an exception, too, `out` is gone */
            return h;
    }
    return NULL;
}

static int holds_lists(PyObject *const *args, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (PyList_CheckExact(args[i]) || PyTuple_CheckExact(args[i]))
            return 1;
    return 0;
}

/* Whether x is a tuple, also one with names, or a list, to which nobody else refers. */
static int is_fresh_container(PyObject *x) {
    return Py_REFCNT(x) == 1 && (PyTuple_CheckExact(x) || PyList_CheckExact(x) ||
                                 (PyTuple_Check(x) && PyObject_HasAttr((PyObject *)Py_TYPE(x), word_fields)));
}

/* The user's form of a result (whose reference it takes) of a call of these arguments. */
static PyObject *finished(PyObject *out, PyObject *const *args, Py_ssize_t n) {
    if (Py_IS_TYPE(out, Host)) {
        PyObject *base = ((Array *)out)->base;
        int fresh = base == NULL && Py_REFCNT(out) == 1; /* new: it is none of the arguments, and no view of one */
        PyObject *h = fresh ? NULL : seen_among(args, n, out);
        if (h != NULL || PyErr_Occurred())
            return h;
        if (!fresh && note_outside(args, n, out) < 0)
            return Py_DECREF(out), NULL;
        if (fresh && DESCR(out) == object_dtype && holds_lists(args, n)) /* of which arrays may be elements */
            ;
        else if (fresh || (Py_REFCNT(out) == 1 && (base == NULL || Py_IS_TYPE(base, Host) || PyCapsule_CheckExact(base))))
            return handle_on(out, Py_None);
    } else if (is_plain(out))
        return out;
    else if (is_fresh_container(out)) {
        PyObject **members = PySequence_Fast_ITEMS(out);
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(out); i++) {
            PyObject *x = members[i];
            members[i] = NULL; /* so that the element has no reference but ours */
            if ((members[i] = finished(x, args, n)) == NULL) {
                Py_DECREF(out);
                return NULL;
            }
        }
        if (!PyObject_GC_IsTracked(out))
            PyObject_GC_Track(out); /* arrays lead nowhere, handles may */
        return out;
    }
    PyObject *given = PyTuple_New(n);
    if (given == NULL) {
        Py_DECREF(out);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_INCREF(args[i]);
        PyTuple_SET_ITEM(given, i, args[i]);
    }
    PyObject *both[] = {out, given};
    PyObject *h = PyObject_Vectorcall(wrapped, both, 2, NULL);
    Py_DECREF(out);
    Py_DECREF(given);
    return h;
}

/* Whether a call with these keywords is one for the short way. */
static int keywords_allowed(PyObject *const *values, PyObject *kwnames) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        if (name == word_device || values[i] == (PyObject *)&PyBaseObject_Type)
            return 0; /* arrays made elsewhere; arrays of objects keep the handles they are given */
        if (name == word_out && (taped() || !(is_handle(values[i]) || values[i] == Py_None)))
            return 0;
        if (!PyUnicode_CHECK_INTERNED(name))
            return 0;
    }
    return 1;
}

static PyObject *short_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Short *s = (Short *)self;
    int skip = (s->kind & HOME) != 0;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf) - skip, k = kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0;
    PyObject *const *given = args + skip;
    PyObject *values[MOST];
    if (s->kind & RETURNED && n == 1 && k == 0 && is_handle(given[0]) && host_of(given[0]) != NULL && !busy()) {
        count(s->entry);
        Py_INCREF(given[0]);
        return given[0];
    }
    if (n > 1 && s->kind == 0 && is_handle(given[0]) && is_handle(given[1]) && host_of(given[0]) != NULL &&
        DESCR(host_of(given[0])) == object_dtype) /* x.fill(y): the handle becomes the element */
        return PyObject_Vectorcall(s->python, args, (size_t)n, kwnames);
    if (n >= s->least && n + k <= MOST && !busy() && (s->nin >= 0 ? n == s->nin : !taped()) &&
        (k == 0 || (s->least == 0 && keywords_allowed(given + n, kwnames)))) {
        Py_ssize_t i = 0;
        if (s->kind & FOREIGN && n > 0) {
            values[i++] = given[0];
            Py_INCREF(given[0]);
        }
        PyObject *mask = s->kind & MASKED && n > 0 && is_handle(given[0]) ? host_of(given[0]) : NULL;
        Py_ssize_t limit = mask != NULL && elements(mask) >= -s->limit && in_runs(mask) ? -RUNS : s->limit;
        for (; i < n + k; i++)
            if ((values[i] = argument(given[i], limit, 0)) == NULL)
                break;
        PyObject *out = NULL;
        int done = i == n + k && !PyErr_Occurred();
        if (done) {
            count(s->entry);
            out = PyObject_Vectorcall(s->kernel, values, n, kwnames);
        }
        while (i-- > 0)
            Py_DECREF(values[i]);
        if (done)
            return out == NULL || (PyList_CheckExact(out) && s->kind == 0 && DESCR(host_of(given[0])) != object_dtype) ? out : finished(out, given, n + k); /* tolist */
    }
    if (s->row != Py_None && k == 0 && (s->nin == 2 ? n == 2 : n == 1)) {
        PyObject *h = on_tape(s->row, given[0], n == 2 ? given[1] : NULL);
        if (h != NULL || PyErr_Occurred())
            return h;
    }
    if (s->nin > 0 && n == s->nin + 1 && k == 0 && given[n - 1] == Py_None)
        n -= 1; /* out=None, as NumPy's own functions pass on what they were given */
    if (k == 1 && PyTuple_GET_ITEM(kwnames, 0) == word_out && given[n] == Py_None && s->nin > 0 && s->row != Py_None)
        k = 0, kwnames = NULL; /* of several results NumPy wants a tuple */
    if (s->kind & RETURNED && n == 1 && k == 0 && is_handle(given[0]) && buffer_in(given[0]) != NULL &&
        calm(SLOT(buffer_in(given[0]), backend_at)) && has_axes(given[0]))
        return Py_NewRef(given[0]);
    if (s->there != NULL && (n > 0 || (s->form == MAKES && k > 0))) {
        int out = s->row != Py_None && s->nin > 0 && s->nin == s->form && ((k == 1 && n == s->nin && PyTuple_GET_ITEM(kwnames, 0) == word_out) || (k == 0 && n == s->nin + 1));
        PyObject *h = out ? out_on_place(s, given, s->nin) : short_on_place(s, given, n, kwnames);
        if (h != NULL || PyErr_Occurred())
            return h;
    }
    if (n > 0 && (s->there == NULL || s->form < REDUCES || s->form >= ONES)) { /* Python has short ways of those, too */
        PyObject *h = defined_on_place(s, given, n, kwnames);
        if (h != NULL || PyErr_Occurred())
            return h;
    }
    return PyObject_Vectorcall(s->python, args, (size_t)(n + skip), kwnames);
}

/* __array_ufunc__(self, ufunc, method, *inputs, **kwargs): numpy.f(minnp array), and number * array. */
static PyObject *ufunc_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf) - 3;
    PyObject *entry, *values[MOST];
    if (n > 0 && n <= MOST && kwnames == NULL && !busy() && PyUnicode_CheckExact(args[2]) &&
        PyUnicode_Compare(args[2], word_call) == 0 && (entry = PyDict_GetItemWithError(entries, args[1])) != NULL) {
        Py_ssize_t i = 0;
        for (; i < n; i++) {
            if ((values[i] = operand(args[i + 3], MIDDLE)) == NULL)
                break;
            Py_INCREF(values[i]);
        }
        PyObject *out = NULL;
        int done = i == n;
        if (done) {
            count(entry);
            out = PyObject_Vectorcall(args[1], values, n, NULL);
        }
        while (i-- > 0)
            Py_DECREF(values[i]);
        if (done)
            return out != NULL ? finished(out, args + 3, n) : NULL;
    }
    return PyObject_Vectorcall(((Short *)self)->python, args, nargsf, kwnames);
}

/* __getitem__: not a Python function, for the interpreter would call one in place of the slot. */
static PyObject *getitem_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    if (PyVectorcall_NARGS(nargsf) == 2 && kwnames == NULL && is_handle(args[0]))
        return subscript(args[0], args[1]);
    return PyObject_Vectorcall(((Short *)self)->python, args, nargsf, kwnames);
}

static void short_dealloc(Short *s) {
    Py_XDECREF(s->python);
    Py_XDECREF(s->kernel);
    Py_XDECREF(s->entry);
    Py_XDECREF(s->row);
    Py_XDECREF(s->there);
    Py_XDECREF(s->words);
    PyObject_Free(s);
}

/* Whoever looks at it sees the Python function: its name, text, signature, attributes. */
static PyObject *short_getattr(PyObject *s, PyObject *name) { return PyObject_GetAttr(((Short *)s)->python, name); }
static int short_setattr(PyObject *s, PyObject *name, PyObject *value) {
    return PyObject_SetAttr(((Short *)s)->python, name, value);
}
static PyObject *short_repr(PyObject *s) { return PyObject_Repr(((Short *)s)->python); }
static PyObject *short_get(PyObject *s, PyObject *instance, PyObject *Py_UNUSED(type)) {
    if (instance != NULL && instance != Py_None)
        return PyMethod_New(s, instance);
    Py_INCREF(s);
    return s;
}

static PyTypeObject Short_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minnp.core.compiled._quick.Short",
    .tp_basicsize = sizeof(Short),
    .tp_dealloc = (destructor)short_dealloc,
    .tp_vectorcall_offset = offsetof(Short, call),
    .tp_repr = short_repr,
    .tp_call = PyVectorcall_Call,
    .tp_getattro = short_getattr,
    .tp_setattro = short_setattr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_descr_get = short_get,
};

static PyObject *new_short(PyObject *python, vectorcallfunc call) {
    Short *s = PyObject_New(Short, &Short_Type);
    if (s == NULL)
        return NULL;
    Py_INCREF(python);
    s->python = python, s->kernel = s->entry = s->row = s->there = s->words = NULL, s->call = call;
    return (PyObject *)s;
}

/* short(python, kernel, entry, row, kind, nin, limit, least) */
static PyObject *make_short(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *python, *kernel, *entry, *row;
    int kind, nin;
    Py_ssize_t limit, least;
    if (!PyArg_ParseTuple(args, "OOOOiinn", &python, &kernel, &entry, &row, &kind, &nin, &limit, &least))
        return NULL;
    Short *s = (Short *)new_short(python, short_call);
    if (s == NULL)
        return NULL;
    Py_INCREF(kernel);
    Py_INCREF(entry);
    Py_INCREF(row);
    s->kernel = kernel, s->entry = entry, s->row = row, s->kind = kind, s->nin = nin, s->limit = limit, s->least = least;
    return (PyObject *)s;
}

/* at_places(short, row, words, form): what a call is at a place; of views, words is a tuple of the row's parameters. */
static PyObject *at_places(PyObject *Py_UNUSED(module), PyObject *args) {
    Short *s;
    PyObject *row, *words;
    int form;
    if (!PyArg_ParseTuple(args, "O!OOi", &Short_Type, &s, &row, &words, &form))
        return NULL;
    s->there = Py_NewRef(row), s->words = Py_NewRef(words), s->form = form;
    Py_RETURN_NONE;
}

#define IM(f) ((PyMethodObject *)(f)) /* the macros of classobject.h refuse a subclass in a debug build */

/* ------------------------------------------------------------------ public functions
   A bound method, of a short way and its home, that takes attributes (`np.max.__name__ = ...`) and is shown as NumPy's. */
static void function_dealloc(PyObject *f) {
    PyObject_GC_UnTrack(f);
    if (((PyMethodObject *)f)->im_weakreflist != NULL)
        PyObject_ClearWeakRefs(f);
    Py_DECREF(IM(f)->im_func);
    Py_DECREF(IM(f)->im_self);
    PyObject_GC_Del(f);
}

static int function_setattr(PyObject *f, PyObject *name, PyObject *value) {
    if (PyUnicode_CompareWithASCIIString(name, "__doc__") != 0)
        return PyObject_SetAttr(IM(f)->im_func, name, value);
    PyObject *facts = PyObject_GetAttrString(IM(f)->im_func, "__dict__"); /* a text of the user's, over ours */
    int failed = facts == NULL || (value != NULL ? PyObject_SetItem(facts, name, value) : PyObject_DelItem(facts, name)) < 0;
    if (failed && PyErr_ExceptionMatches(PyExc_KeyError)) /* NumPy's text, which is not the user's to delete */
        PyErr_SetString(PyExc_AttributeError, "attribute '__doc__' is not set");
    Py_XDECREF(facts);
    return -failed;
}

static PyTypeObject Function_Type;

static PyObject *function_repr(PyObject *f) {
    PyObject *home = IM(f)->im_self;
    return Py_IS_TYPE(home, &Function_Type) ? PyMethod_Type.tp_repr(f) : PyObject_Repr(home); /* a ufunc's method */
}

/* A ufunc of arrays of ours, and of numbers, which most calls are: short_call without what else there can be. */
static vectorcallfunc method_call;
static PyObject *function_call(PyObject *f, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Short *s = (Short *)IM(f)->im_func;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    PyObject *a, *b = NULL;
    if (kwnames == NULL && n > 0 && n <= 2 && Py_IS_TYPE(s, &Short_Type) && s->nin == n && s->kind == HOME && s->limit > 0 && !busy() &&
        (a = operand(args[0], s->limit)) != NULL && (n == 1 || (b = operand(args[1], s->limit)) != NULL)) {
        PyObject *values[] = {Py_NewRef(a), n == 2 ? Py_NewRef(b) : NULL};
        count(s->entry);
        PyObject *out = PyObject_Vectorcall(s->kernel, values, n, NULL);
        Py_DECREF(a), Py_XDECREF(values[1]);
        return out != NULL ? finished(out, args, n) : NULL;
    }
    return method_call(f, args, nargsf, kwnames);
}

static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *f = PyMethod_Type.tp_new(&PyMethod_Type, args, keywords);
    if (f != NULL) {
        Py_SET_TYPE(f, type);
        method_call = ((PyMethodObject *)f)->vectorcall, ((PyMethodObject *)f)->vectorcall = function_call;
    }
    return f;
}

static PyObject *function_doc(PyObject *f, void *Py_UNUSED(closure)) {
    PyObject *facts = PyObject_GetAttrString(IM(f)->im_func, "__dict__");
    PyObject *text = facts != NULL && PyDict_Check(facts) ? PyDict_GetItemString(facts, "__doc__") : NULL;
    Py_XINCREF(text);
    Py_XDECREF(facts);
    return text != NULL ? text : PyErr_Occurred() ? NULL : PyObject_GetAttrString(IM(f)->im_func, "__doc__");
}

/* As its callers see it: without the home, which inspect.signature takes off itself. */
static PyObject *function_signature(PyObject *f, void *Py_UNUSED(closure)) {
    PyObject *whole = PyObject_GetAttrString(IM(f)->im_func, "__signature__");
    PyObject *inspect = whole != NULL ? PyImport_ImportModule("inspect") : NULL;
    PyObject *bound = inspect != NULL ? PyObject_CallMethod(inspect, "_signature_bound_method", "O", whole) : NULL;
    Py_XDECREF(whole), Py_XDECREF(inspect);
    return bound;
}

static PyGetSetDef function_facts[] = {{"__doc__", function_doc, NULL, NULL, NULL},
                                       {"__signature__", function_signature, NULL, NULL, NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject Function_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minnp.core.compiled._quick.Function",
    .tp_basicsize = sizeof(PyMethodObject),
    .tp_base = &PyMethod_Type,
    .tp_new = function_new,
    .tp_dealloc = function_dealloc,
    .tp_repr = function_repr,
    .tp_getset = function_facts,
    .tp_setattro = function_setattr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, /* and what collects garbage, inherited */
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(PyMethodObject, vectorcall),
};
