/* The slots of operators and comparisons. */

typedef struct {
    const char *name;
    size_t at;        /* of the slot in the type's number methods */
    void *ours, *of_buffers; /* what handles have there, and buffers */
    void *in_values;  /* the slot of buffers that calls the Python method */
    void *python;     /* the slot that calls the Python method, where it takes one array */
    PyObject *entry, *reflected_entry;
    PyObject *forward, *reflected; /* the Python methods where there are two operands */
    PyObject *row;
    binaryfunc direct; /* NumPy's slot, where it takes two operands */
    Py_ssize_t limit;  /* bytes of an operand from which Python does better */
    int little;        /* of little arrays, little.h: 1 + which operation */
    int shortens;      /* whether NumPy takes another function where w is some number */
} Operator;

/* An operator under a tape, else its Python methods in the interpreter's order. */
static PyObject *otherwise(PyObject *v, PyObject *w, Operator *o) {
    PyObject *there[] = {v, w}, *back[] = {w, v}, *row = NULL, *h;
    if (o->shortens && is_python_number(w) && (buffer_in(v) != NULL || tracer_of(v) != NULL) &&
        (row = PyObject_Vectorcall(shortened, there, 2, NULL)) == NULL)
        return NULL;
    int short_one = row != NULL && row != Py_None;
    h = short_one ? on_tape(row, v, NULL) : on_tape(o->row, v, w);
    if (h == NULL && !PyErr_Occurred() && host_under(value_in(v)) != NULL)
        h = short_one ? on_place(row, there, 1, NULL, NULL) : o->shortens ? NULL : on_place(o->row, there, 2, NULL, NULL);
    else if (h == NULL && !PyErr_Occurred())
        h = on_place(short_one ? row : o->row, there, short_one ? 1 : 2, NULL, NULL);
    Py_XDECREF(row);
    if (h != NULL || PyErr_Occurred())
        return h;
    if (is_handle(v) || PyObject_TypeCheck(v, Handle)) /* or of a user's subclass */
        return PyObject_Vectorcall(o->forward, there, 2, NULL);
    return PyObject_Vectorcall(o->reflected, back, 2, NULL);
}

/* Whether a ** w is a square or a root, which takes NumPy no longer than a product. */
static int is_short_power(PyObject *w) {
    int beyond = 0;
    double x = PyFloat_CheckExact(w) ? PyFloat_AS_DOUBLE(w) : PyLong_CheckExact(w) ? PyLong_AsLongAndOverflow(w, &beyond) : 0;
    return x == 2 || x == 0.5;
}

static PyObject *two(PyObject *v, PyObject *w, Operator *o, binaryfunc kernel) {
    PyObject *a, *b;
    if (!busy() && (a = operand(v, PY_SSIZE_T_MAX)) != NULL && (b = operand(w, PY_SSIZE_T_MAX)) != NULL) {
        Py_ssize_t m = Py_IS_TYPE(a, Host) ? elements(a) : 0, n = Py_IS_TYPE(b, Host) ? elements(b) : 0;
        if (n >= SMALL / 16 || m >= SMALL / 16) {
            m = m ? bytes(a) : 0, n = n ? bytes(b) : 0;
            if (n < m)
                n = m;
            if (n >= (o->shortens && is_short_power(w) ? RECYCLED : o->limit))
                return otherwise(v, w, o);
        }
        count(is_handle(v) ? o->entry : o->reflected_entry);
        PyObject *out = o->little && m <= MIDDLING && n <= MIDDLING ? little(a, b, o->little - 1, little_arithmetic, NULL) : NULL;
        if (out != NULL)
            return handle_on(out, Py_None);
        Py_INCREF(a);
        Py_INCREF(b);
        if (o->direct != NULL && Py_IS_TYPE(a, Host)) { /* whose slot is the first that kernel would ask */
            if ((out = o->direct(a, b)) == Py_NotImplemented) {
                Py_DECREF(out);
                out = kernel(a, b);
            }
        } else
            out = kernel(a, b);
        Py_DECREF(a);
        Py_DECREF(b);
        return result_of(out);
    }
    return otherwise(v, w, o);
}

static PyObject *one(PyObject *v, Operator *o, unaryfunc kernel) {
    PyObject *a;
    if (!busy() && (a = operand(v, o->limit)) != NULL) {
        count(o->entry);
        PyObject *out = o->little ? little(a, a, o->little - 1, little_arithmetic, NULL) : NULL;
        if (out != NULL)
            return handle_on(out, Py_None);
        Py_INCREF(a);
        out = kernel(a);
        Py_DECREF(a);
        return result_of(out);
    }
    PyObject *h = on_tape(o->row, v, NULL);
    if (h == NULL && !PyErr_Occurred())
        h = on_place(o->row, &v, 1, NULL, NULL);
    return h != NULL || PyErr_Occurred() ? h : ((unaryfunc)o->python)(v);
}

/* Whether an array at a place, or a traced one, has axes: torch takes some of one that has none. */
static int has_axes(PyObject *h) {
    PyObject *a = host_under(FIELD(h, value_at));
    if (a != NULL)
        return ((Array *)a)->nd > 0;
    PyObject *b = buffer_under(FIELD(h, value_at));
    return b != NULL && buffer_has_axes(b);
}

/* Whether a buffer has this shape, which it then knows. */
static int has_shape(PyObject *b, PyObject *shape) {
    PyObject *theirs = SLOT(b, shape_at) != NULL ? Py_NewRef(SLOT(b, shape_at)) : PyObject_GetAttr(SLOT(b, data_at), word_shape);
    int same = theirs != NULL && PyObject_RichCompareBool(theirs, shape, Py_EQ) == 1;
    if (same)
        Py_XSETREF(SLOT(b, shape_at), Py_NewRef(shape));
    PyErr_Clear();
    Py_XDECREF(theirs);
    return same;
}

/* v, a root that holds the buffer x, with what h (whose reference it takes) holds, the result of a row, from now on; NULL
   where they are not alike: Python runs it again, and counts it. */
static PyObject *becomes(PyObject *v, PyObject *x, PyObject *h, PyObject *row) {
    PyObject *y = FIELD(h, value_at);
    int alike = Py_IS_TYPE(y, BufferType) && FIELD(v, value_at) == x && SLOT(y, backend_at) == SLOT(x, backend_at) &&
                know(x) == 0 && SLOT(x, dtype_at) == dtype_of(y) && has_shape(y, SLOT(x, shape_at));
    if (alike) {
        Py_SETREF(SLOT(y, computed_at), Py_NewRef(SLOT(x, computed_at)));
        Py_SETREF(FIELD(v, value_at), Py_NewRef(y)); /* and with it x goes, so it comes last */
    } else {
        PyObject *kept = kept_for(SLOT(x, backend_at), row);
        PyObject *less = kept != NULL ? PyNumber_Subtract(PyList_GET_ITEM(kept, CALLS), Py_True) : NULL;
        if (less == NULL || PyList_SetItem(kept, CALLS, less) < 0 || PyErr_Occurred())
            PyErr_Clear();
    }
    Py_DECREF(h);
    return alike ? Py_NewRef(v) : NULL;
}

/* Whether v op= w was done in the memory of what v holds, the buffer x, which nothing else holds or shows: v is a root, or
   the only view of one, by an index. */
static int into_memory(PyObject *v, PyObject *w, PyObject *x, PyObject *row) {
    PyObject *home = SLOT(x, backend_at), *kept = kept_for(home, row), *root = FIELD(v, root_at), *y = buffer_in(w), *whole = x;
    if (kept == NULL || !PyDict_CheckExact(PyList_GET_ITEM(kept, INTO)) || !calm(home) || !has_axes(v) ||
        (y != NULL ? SLOT(y, backend_at) != home || y == x : !(PyFloat_CheckExact(w) || PyLong_CheckExact(w))))
        return 0;
    if (root != Py_None) { /* the root, v itself and the view's own buffer refer to the root's */
        PyObject *shown = SLOT(x, shown_at);
        whole = FIELD(root, value_at);
        if (shown == Py_None || PyTuple_GET_ITEM(shown, 0) != whole || PyTuple_GET_ITEM(shown, 1) != getitem_row || Py_REFCNT(x) != 1 || Py_REFCNT(SLOT(x, data_at)) != 1 ||
            !is_alone(whole, 2, 1))
            return 0;
    } else if (!is_alone(x, 0, 0))
        return 0;
    PyObject *given[] = {Py_NewRef(SLOT(x, data_at)), Py_NewRef(y != NULL ? SLOT(y, data_at) : w)};
    PyObject *run = prepared_for(kept, given, 2), *into = run != NULL ? PyDict_GetItemWithError(PyList_GET_ITEM(kept, INTO), run) : NULL;
    PyObject *out = into != NULL ? computed(kept, Py_NewRef(into), given, 2, NULL) : NULL;
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    Py_XDECREF(run), Py_XDECREF(out), Py_DECREF(given[0]), Py_DECREF(given[1]);
    return out != NULL;
}

/* v op= w at a place where v is a root and the result is like it: values are immutable, so v holds the result's from now
   on, which views of v notice. */
static PyObject *into_on_place(PyObject *v, PyObject *w, Operator *o) {
    PyObject *operands[] = {v, w}, *x = buffer_in(v), *h;
    if (x != NULL && (into_memory(v, w, x, o->row) || PyErr_Occurred()))
        return PyErr_Occurred() ? NULL : Py_NewRef(v);
    if (x == NULL || FIELD(v, root_at) != Py_None || (value_in(w) != NULL && buffer_in(w) == NULL) || o->shortens || (h = on_place(o->row, operands, 2, NULL, NULL)) == NULL)
        return NULL;
    if (SLOT(x, computed_at) == Py_True && !has_axes(v))
        return h; /* a number, as x.sum() is in NumPy: there is another one now */
    return becomes(v, x, h, o->row);
}

static PyObject *into(PyObject *v, PyObject *w, Operator *o, binaryfunc kernel) {
    PyObject *a, *b;
    if (!busy() && !taped() && is_handle(v) && (a = operand(v, o->limit)) != NULL &&
        (b = operand(w, PY_SSIZE_T_MAX)) != NULL) {
        if (o->little && may_write((Array *)a) && little(a, b, o->little - 1, little_arithmetic, a) != NULL)
            return Py_NewRef(v);
        Py_INCREF(a);
        Py_INCREF(b);
        PyObject *out = kernel(a, b);
        Py_DECREF(a);
        Py_DECREF(b);
        if (out == NULL)
            return NULL;
        Py_DECREF(out);
        Py_INCREF(v);
        return v;
    }
    PyObject *h = into_on_place(v, w, o);
    return h != NULL || PyErr_Occurred() ? h : ((binaryfunc)o->python)(v, w);
}

/* An operator one of whose operands is a buffer: what its Python method does, which calls the row. */
static PyObject *of_buffers(Operator *o, PyObject *v, PyObject *w) {
    PyObject *there[] = {v, w}, *made = NULL;
    if ((Py_IS_TYPE(v, BufferType) || is_python_number(v)) &&
        (w == NULL || Py_IS_TYPE(w, BufferType) || is_python_number(w)))
        made = run_at_place(o->row, there, w != NULL ? 2 : 1, no_params);
    if (made != NULL || PyErr_Occurred())
        return made;
    PyObject *args = w != NULL ? PyTuple_Pack(2, v, w) : PyTuple_Pack(1, v);
    made = args != NULL ? python_row_call(o->row, args, NULL) : NULL;
    Py_XDECREF(args);
    return made;
}

static PyObject *power_of(PyObject *a, PyObject *b) { return PyNumber_Power(a, b, Py_None); }
static PyObject *power_into(PyObject *a, PyObject *b) { return PyNumber_InPlacePower(a, b, Py_None); }

enum { ADD, SUB, MUL, TRUEDIV, FLOORDIV, MOD, MATMUL, AND, OR, XOR, LSHIFT, RSHIFT, POW, BINARIES };
enum { NEG = BINARIES, POS, ABS, INVERT, UNARIES };
enum { IADD = UNARIES, ISUB, IMUL, ITRUEDIV, IFLOORDIV, IMOD, IMATMUL, IAND, IOR, IXOR, ILSHIFT, IRSHIFT, IPOW, OPERATORS };
static Operator operators[OPERATORS];

#define TWO(NAME, f) \
    static PyObject *do_##NAME(PyObject *v, PyObject *w) { return two(v, w, &operators[NAME], f); } \
    static PyObject *of_##NAME(PyObject *v, PyObject *w) { return of_buffers(&operators[NAME], v, w); }
#define ONE(NAME, f) \
    static PyObject *do_##NAME(PyObject *v) { return one(v, &operators[NAME], f); } \
    static PyObject *of_##NAME(PyObject *v) { return of_buffers(&operators[NAME], v, NULL); }
#define INTO(NAME, f) static PyObject *do_##NAME(PyObject *v, PyObject *w) { return into(v, w, &operators[NAME], f); }
TWO(ADD, PyNumber_Add) TWO(SUB, PyNumber_Subtract) TWO(MUL, PyNumber_Multiply) TWO(TRUEDIV, PyNumber_TrueDivide)
TWO(FLOORDIV, PyNumber_FloorDivide) TWO(MOD, PyNumber_Remainder) TWO(MATMUL, PyNumber_MatrixMultiply)
TWO(AND, PyNumber_And) TWO(OR, PyNumber_Or) TWO(XOR, PyNumber_Xor) TWO(LSHIFT, PyNumber_Lshift)
TWO(RSHIFT, PyNumber_Rshift)
ONE(NEG, PyNumber_Negative) ONE(POS, PyNumber_Positive) ONE(ABS, PyNumber_Absolute) ONE(INVERT, PyNumber_Invert)
INTO(IADD, PyNumber_InPlaceAdd) INTO(ISUB, PyNumber_InPlaceSubtract) INTO(IMUL, PyNumber_InPlaceMultiply)
INTO(ITRUEDIV, PyNumber_InPlaceTrueDivide) INTO(IFLOORDIV, PyNumber_InPlaceFloorDivide)
INTO(IMOD, PyNumber_InPlaceRemainder) INTO(IMATMUL, PyNumber_InPlaceMatrixMultiply) INTO(IAND, PyNumber_InPlaceAnd)
INTO(IOR, PyNumber_InPlaceOr) INTO(IXOR, PyNumber_InPlaceXor) INTO(ILSHIFT, PyNumber_InPlaceLshift)
INTO(IRSHIFT, PyNumber_InPlaceRshift)

static PyObject *do_POW(PyObject *v, PyObject *w, PyObject *modulus) {
    if (modulus != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    return two(v, w, &operators[POW], power_of);
}

static PyObject *python_ipow(PyObject *v, PyObject *w) { return ((ternaryfunc)operators[IPOW].python)(v, w, Py_None); }

static PyObject *do_IPOW(PyObject *v, PyObject *w, PyObject *modulus) {
    Operator here = operators[IPOW];
    if (modulus != Py_None)
        return ((ternaryfunc)here.python)(v, w, modulus);
    here.python = (void *)python_ipow;
    return into(v, w, &here, power_into);
}

static PyObject *of_POW(PyObject *v, PyObject *w, PyObject *modulus) {
    if (modulus != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    return of_buffers(&operators[POW], v, w);
}

#define INTO_ROW(NAME, text, slot) [NAME] = {text, offsetof(PyNumberMethods, slot), (void *)do_##NAME}
#define ROW(NAME, text, slot) [NAME] = {text, offsetof(PyNumberMethods, slot), (void *)do_##NAME, (void *)of_##NAME}
static Operator operators[OPERATORS] = {
    ROW(ADD, "add", nb_add), ROW(SUB, "sub", nb_subtract), ROW(MUL, "mul", nb_multiply),
    ROW(TRUEDIV, "truediv", nb_true_divide), ROW(FLOORDIV, "floordiv", nb_floor_divide), ROW(MOD, "mod", nb_remainder),
    ROW(MATMUL, "matmul", nb_matrix_multiply), ROW(AND, "and", nb_and), ROW(OR, "or", nb_or), ROW(XOR, "xor", nb_xor),
    ROW(LSHIFT, "lshift", nb_lshift), ROW(RSHIFT, "rshift", nb_rshift), ROW(POW, "pow", nb_power),
    ROW(NEG, "neg", nb_negative), ROW(POS, "pos", nb_positive), ROW(ABS, "abs", nb_absolute),
    ROW(INVERT, "invert", nb_invert),
    INTO_ROW(IADD, "iadd", nb_inplace_add), INTO_ROW(ISUB, "isub", nb_inplace_subtract), INTO_ROW(IMUL, "imul", nb_inplace_multiply),
    INTO_ROW(ITRUEDIV, "itruediv", nb_inplace_true_divide), INTO_ROW(IFLOORDIV, "ifloordiv", nb_inplace_floor_divide),
    INTO_ROW(IMOD, "imod", nb_inplace_remainder), INTO_ROW(IMATMUL, "imatmul", nb_inplace_matrix_multiply),
    INTO_ROW(IAND, "iand", nb_inplace_and), INTO_ROW(IOR, "ior", nb_inplace_or), INTO_ROW(IXOR, "ixor", nb_inplace_xor),
    INTO_ROW(ILSHIFT, "ilshift", nb_inplace_lshift), INTO_ROW(IRSHIFT, "irshift", nb_inplace_rshift),
    INTO_ROW(IPOW, "ipow", nb_inplace_power),
};

/* values(on): give rows and buffers their short ways, or give them back to Python. */
static PyObject *short_values(PyObject *Py_UNUSED(module), PyObject *on) {
    if (python_row_call == NULL) {
        python_buffer_getattr = BufferType->tp_getattro, python_row_call = RowType->tp_call;
        for (int i = 0; i < UNARIES; i++)
            operators[i].in_values = *(void **)((char *)BufferType->tp_as_number + operators[i].at);
    }
    RowType->tp_call = on == Py_True ? row_call : python_row_call;
    BufferType->tp_getattro = on == Py_True ? buffer_getattr : python_buffer_getattr;
    for (int i = 0; i < UNARIES; i++)
        *(void **)((char *)BufferType->tp_as_number + operators[i].at) = on == Py_True ? operators[i].of_buffers : operators[i].in_values;
    PyType_Modified(RowType), PyType_Modified(BufferType);
    Py_RETURN_NONE;
}

static const char *comparisons[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
static PyObject *comparison_entries[6], *comparison_rows[6];
static richcmpfunc python_compare;

static PyObject *compare(PyObject *v, PyObject *w, int op) {
    PyObject *a, *b;
    int text = PyUnicode_CheckExact(w); /* `names == "x"` */
    if (!busy() && (a = operand(v, COMPARED)) != NULL && (b = text ? w : operand(w, COMPARED)) != NULL) {
        count(comparison_entries[op]);
        PyObject *out = text ? NULL : little(a, b, op, little_comparison, NULL);
        if (out != NULL)
            return handle_on(out, Py_None);
        Py_INCREF(a);
        Py_INCREF(b);
        out = PyObject_RichCompare(a, b, op);
        Py_DECREF(a);
        Py_DECREF(b);
        return result_of(out);
    }
    PyObject *there[] = {v, w}, *h = on_place(comparison_rows[op], there, 2, NULL, NULL);
    return h != NULL || PyErr_Occurred() ? h : python_compare(v, w, op);
}
