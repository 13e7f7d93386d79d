/* The short ways of host arrays, in C: operators, indexing, attributes, functions and methods of our ndarray.

   Optional: where no compiler was at hand the Python ones, which this file repeats step by step, do the same work. A
   handle that holds a NumPy array, and arguments that are handles, numbers or other plain things, go straight to
   NumPy, and the result is wrapped; on a handle that a gradient's tape watches, simple rows write their node there; on
   handles at a place, rows go to its kernels. Everything else (another tracer, an array so large that core/host does
   better, a trace or a policy that watches,
   a foreign class) is left to the Python function or slot that was there before; so nothing here decides what a call
   means. Installed by compiled.py. Needs no NumPy headers: of an array it reads the fields that every NumPy has. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#if defined(__GLIBC__) || defined(__APPLE__)
#include <execinfo.h>
#define WALK(stack, n) backtrace(stack, n)
#define OWN_FRAME __attribute__((noinline))
#else
#define WALK(stack, n) 0
#define OWN_FRAME
#endif

typedef struct { /* the first fields of PyArray_Descr in numpy/ndarraytypes.h, the same in NumPy 1 and 2 */
    PyObject_HEAD
    PyTypeObject *scalar;
    char kind, type;
} Dtype;

typedef struct { /* PyArrayObject_fields */
    PyObject_HEAD
    char *data;
    int nd;
    Py_ssize_t *dims, *strides;
    PyObject *base, *descr;
    int flags;
} Array;

#ifndef Py_SETREF
#define Py_SETREF(to, x) do { PyObject *old_ = (to); (to) = (x); Py_DECREF(old_); } while (0)
#define Py_XSETREF(to, x) do { PyObject *old_ = (to); (to) = (x); Py_XDECREF(old_); } while (0)
#endif
#define MOST 16           /* arguments, the longest call that goes the short way */
#define DEPTH 32          /* return addresses looked at, at most: host/temporaries.py */
#define SMALL (1 << 18)    /* bytes from which operators write into dying operands, as NumPy's */
#define MIDDLE (1 << 20)   /* bytes from which ufuncs of NumPy's may be shared by threads: host/elementwise.py */
#define COMPARED (1 << 22) /* bytes up to which NumPy compares as well as several threads */

static PyTypeObject *Handle, *Host;
static PyObject *state, *zero, *numbers, *plain, *wrapped, *object_dtype, *entries, *word_out, *word_device, *word_call;
static PyObject *pool, *mark, *learn, *written; /* of host/memory.py and host/temporaries.py */
static PyTypeObject *LeaseType;
static Py_ssize_t enabled_at, known_at, callers_at, depth_at, notes_at;
static Py_ssize_t host_at, root_at, busy_at, tapes_at, large;
static PyTypeObject *TracerType, *TapeType;
static PyObject *no_params;
static Py_ssize_t value_at, trace_at, traced_at, node_at, view_at, alive_at, nodes_at, small;
static Py_ssize_t row_calls_at, row_numpy_at, row_direct_at, row_elementwise_at, row_view_at;
static PyTypeObject *BufferType, *MetaType, *RowType;
static ternaryfunc python_row_call; /* NULL: rows have not been given their short way */
static PyObject *free_place, *word_slots, *word_dtype, *word_ndim, *word_shape, *word_is_view, *word_meta, *word_recorded, *word_T, *word_is_contiguous,
    *word_fields;
static PyObject *axis_name, *index_name, *keepdims_name, *getitem_row, *transpose_row, *multiply_row, *write_row, *copy_row, *shape_name;
static PyObject *last_home, *last_slots; /* of the place that was asked last */
static PyObject *captures, *policies, *calm_home, *calm_policy; /* context variables; what `free` was last true of */
static PyObject *dtypes;                 /* of a place's library -> NumPy's, as they were met */
static Py_ssize_t path_at, seen_at, data_at, backend_at, shown_at, computed_at, shape_at, dtype_at;
static Py_ssize_t meta_shape_at, meta_dtype_at, policy_at;
static Py_ssize_t row_vjp_at, row_saves_at, row_fast_at, row_worth_at;

#define SLOT(x, at) (*(PyObject **)((char *)(x) + (at)))

/* ------------------------------------------------------------------ what is asked first */
static inline int busy(void) { return SLOT(state, busy_at) != zero; }

static inline int taped(void) {
    PyObject *tapes = SLOT(state, tapes_at);
    return tapes == NULL || !PyDict_CheckExact(tapes) || PyDict_GET_SIZE(tapes) != 0;
}

/* The NumPy array a handle holds (borrowed), or NULL. */
static inline PyObject *host_of(PyObject *h) {
    PyObject *a = SLOT(h, host_at);
    return a != NULL && Py_IS_TYPE(a, Host) ? a : NULL;
}

static inline Py_ssize_t elements(PyObject *a) {
    Py_ssize_t n = 1;
    for (int i = 0; i < ((Array *)a)->nd; i++)
        n *= ((Array *)a)->dims[i];
    return n;
}

/* Bytes of an array of numbers (of others, for none of which it matters, a guess). */
static inline Py_ssize_t bytes(PyObject *a) {
    switch (((Dtype *)((Array *)a)->descr)->type) {
    case '?': case 'b': case 'B': return elements(a);
    case 'h': case 'H': case 'e': return elements(a) * 2;
    case 'i': case 'I': case 'f': return elements(a) * 4;
    case 'D': case 'g': case 'G': return elements(a) * 16;
    default: return elements(a) * 8;
    }
}

/* Whether x is of one of the types in a set; `last` is the one found last. */
static inline int among(PyObject *set, PyObject *x, PyTypeObject **last) {
    if (Py_IS_TYPE(x, *last))
        return 1;
    int found = PySet_Contains(set, (PyObject *)Py_TYPE(x));
    if (found < 0)
        PyErr_Clear();
    else if (found)
        *last = Py_TYPE(x);
    return found > 0;
}

static PyTypeObject *last_number, *last_plain;

static inline int is_number(PyObject *x) { return PyFloat_CheckExact(x) || PyLong_CheckExact(x) || among(numbers, x, &last_number); }

static inline int is_plain(PyObject *x) {
    return PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyBool_Check(x) || x == Py_None || PyUnicode_CheckExact(x) ||
           among(plain, x, &last_plain);
}

static inline int below(PyObject *a, Py_ssize_t limit) { return limit == PY_SSIZE_T_MAX || bytes(a) < limit; }

/* What NumPy is given for an operand (borrowed): the array of a small handle, an array or a number itself; else NULL. */
static inline PyObject *operand(PyObject *x, Py_ssize_t limit) {
    if (Py_IS_TYPE(x, Handle)) {
        PyObject *a = host_of(x);
        return a != NULL && below(a, limit) ? a : NULL;
    }
    if (Py_IS_TYPE(x, Host))
        return below(x, limit) ? x : NULL;
    return is_number(x) ? x : NULL;
}

typedef struct { /* what entries are */
    PyObject_HEAD
    Py_ssize_t calls;
} Counter;

static PyMemberDef counter_members[] = {{"calls", T_PYSSIZET, offsetof(Counter, calls), 0, NULL}, {NULL, 0, 0, 0, NULL}};
static PyTypeObject Counter_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minnp.core._quick.Counter",
    .tp_basicsize = sizeof(Counter),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_members = counter_members,
    .tp_new = PyType_GenericNew,
};

static inline void count(PyObject *entry) { ((Counter *)entry)->calls++; }

static inline void count_row(PyObject *row) {
    PyObject *calls = SLOT(row, row_calls_at);
    PyObject *more = calls != NULL ? PyNumber_Add(calls, Py_True) : NULL;
    if (more == NULL) {
        PyErr_Clear();
        return;
    }
    SLOT(row, row_calls_at) = more;
    Py_DECREF(calls);
}

/* Handles come and go with every operation, so some of those that went are kept for those that come. */
#define KEPT 64
static PyObject *gone[KEPT];
static int n_gone;
static allocfunc python_alloc;

static inline void let_go(PyObject *h) {
    PyObject *array = SLOT(h, host_at), *root = SLOT(h, root_at);
    SLOT(h, host_at) = SLOT(h, root_at) = NULL;
    if (n_gone < KEPT) /* with its reference to its type */
        gone[n_gone++] = h;
    else {
        PyObject_GC_Del(h);
        Py_DECREF(Handle);
    }
    Py_XDECREF(array);
    Py_XDECREF(root);
}

static void handle_dealloc(PyObject *h) {
    PyObject_GC_UnTrack(h);
    if (*PyObject_GET_WEAKREFS_LISTPTR(h) != NULL)
        PyObject_ClearWeakRefs(h);
    PyObject *array = SLOT(h, host_at);
    char kind = array != NULL && Py_IS_TYPE(array, Host) ? ((Dtype *)((Array *)array)->descr)->kind : 'O';
    if (SLOT(h, value_at) == NULL && SLOT(h, path_at) == NULL && SLOT(h, seen_at) == NULL && kind != 'O' && kind != 'V') {
        let_go(h);
        return;
    }
    Py_TRASHCAN_BEGIN(h, handle_dealloc) /* what a tracer, or an array of objects, leads to can be long */
    Py_CLEAR(SLOT(h, value_at));
    Py_CLEAR(SLOT(h, path_at));
    Py_CLEAR(SLOT(h, seen_at));
    let_go(h);
    Py_TRASHCAN_END
}

static PyObject *handle_alloc(PyTypeObject *type, Py_ssize_t n) {
    if (n_gone == 0 || type != Handle)
        return python_alloc(type, n);
    PyObject *h = gone[--n_gone];
    Py_SET_REFCNT(h, 1);
    PyObject_GC_Track(h);
    return h;
}

/* A new handle on an array (whose reference it takes): a view of `root`'s memory, or a root where that is None. */
static PyObject *handle_on(PyObject *array, PyObject *root) {
    PyObject *h = Handle->tp_alloc(Handle, 0);
    if (h == NULL) {
        Py_DECREF(array);
        return NULL;
    }
    SLOT(h, host_at) = array;
    Py_INCREF(root);
    SLOT(h, root_at) = root;
    return h;
}

/* The result of an operator (whose reference it takes): an array lies in new memory. */
static inline PyObject *result_of(PyObject *out) {
    return out != NULL && Py_IS_TYPE(out, Host) ? handle_on(out, Py_None) : out;
}

/* The handle of `out` if it is what handle `s` holds, or a view of that; NULL if neither. */
static PyObject *seen_from(PyObject *s, PyObject *out) {
    PyObject *a = host_of(s), *base = ((Array *)out)->base;
    if (a == NULL)
        return NULL;
    if (a == out) {
        Py_DECREF(out);
        Py_INCREF(s);
        return s;
    }
    if (base != NULL && (base == a || base == ((Array *)a)->base)) {
        PyObject *root = SLOT(s, root_at);
        return handle_on(out, root == NULL || root == Py_None ? s : root);
    }
    return NULL;
}

/* ------------------------------------------------------------------ under a tape */
/* The tracer of a root handle (borrowed), or NULL. */
static inline PyObject *tracer_of(PyObject *h) {
    if (h == NULL || !Py_IS_TYPE(h, Handle) || SLOT(h, host_at) != Py_None || SLOT(h, root_at) != Py_None)
        return NULL;
    PyObject *t = SLOT(h, value_at);
    return t != NULL && Py_IS_TYPE(t, TracerType) ? t : NULL;
}

static inline char kind_of(PyObject *a) { return ((Dtype *)((Array *)a)->descr)->kind; }

/* What NumPy is given for an operand under a tape (borrowed): a small array of numbers, or a number; NULL otherwise. */
static inline PyObject *raw_of(PyObject *x, PyObject *tracer) {
    if (tracer != NULL)
        x = SLOT(tracer, traced_at);
    else if (Py_IS_TYPE(x, Handle))
        x = host_of(x);
    if (x == NULL || !Py_IS_TYPE(x, Host))
        return x != NULL && is_number(x) ? x : NULL;
    return elements(x) <= small && strchr(tracer != NULL ? "fc" : "fciub", kind_of(x)) != NULL ? x : NULL;
}

/* Whether what two operands come to is as small: one of them is a number or a row, or both have one shape. */
static inline int stays_small(PyObject *x, PyObject *y) {
    if (!Py_IS_TYPE(x, Host) || !Py_IS_TYPE(y, Host))
        return 1;
    Array *a = (Array *)x, *b = (Array *)y;
    if (a->nd == b->nd && memcmp(a->dims, b->dims, a->nd * sizeof(Py_ssize_t)) == 0)
        return 1;
    return (a->nd <= 1 && b->nd <= 1) || elements(x) * elements(y) <= small;
}

static PyObject *shape_of(PyObject *z) {
    int nd = Py_IS_TYPE(z, Host) ? ((Array *)z)->nd : 0;
    PyObject *shape = PyTuple_New(nd);
    for (int i = 0; shape != NULL && i < nd; i++) {
        PyObject *d = PyLong_FromSsize_t(((Array *)z)->dims[i]);
        if (d == NULL)
            Py_CLEAR(shape);
        else
            PyTuple_SET_ITEM(shape, i, d);
    }
    return shape;
}

/* GradTrace.unary and .binary: the handle of row(v) or row(v, w) and its node on the tape. NULL without an exception
   where Python must do it. */
static PyObject *on_tape(PyObject *row, PyObject *v, PyObject *w) {
    PyObject *t = tracer_of(v), *u = tracer_of(w), *first = t != NULL ? t : u;
    if (first == NULL || v == w || busy()) /* x * x has a row of its own */
        return NULL;
    PyObject *tape = SLOT(first, trace_at), *x, *y = NULL;
    if (tape == NULL || !Py_IS_TYPE(tape, TapeType) || SLOT(tape, alive_at) != Py_True ||
        (t != NULL && u != NULL && SLOT(u, trace_at) != tape) ||
        SLOT(row, w != NULL ? row_elementwise_at : row_direct_at) != Py_True || (x = raw_of(v, t)) == NULL ||
        (w != NULL && ((y = raw_of(w, u)) == NULL || !stays_small(x, y))))
        return NULL;
    PyObject *nodes = SLOT(tape, nodes_at), *kernel = SLOT(row, row_numpy_at), *given[] = {x, y};
    if (nodes == NULL || !PyList_CheckExact(nodes) || kernel == NULL)
        return NULL;
    PyObject *absent = PyLong_FromLong(-1), *p = t != NULL ? SLOT(t, node_at) : absent;
    PyObject *parents = w == NULL ? PyTuple_Pack(1, p) : PyTuple_Pack(2, p, u != NULL ? SLOT(u, node_at) : absent);
    PyObject *arrays = w == NULL ? PyTuple_Pack(1, x) : PyTuple_Pack(2, x, y);
    PyObject *z = NULL, *dtype = NULL, *shape = NULL, *node = NULL, *tracer = NULL, *h = NULL;
    Py_INCREF(tape), Py_INCREF(nodes); /* a kernel may warn, and a warning may do anything */
    if (absent == NULL || parents == NULL || arrays == NULL ||
        (z = PyObject_Vectorcall(kernel, given, w == NULL ? 1 : 2, NULL)) == NULL ||
        !(Py_IS_TYPE(z, Host) || is_number(z))) /* several results, for example */
        goto done;
    count_row(row);
    if (Py_IS_TYPE(z, Host)) {
        dtype = ((Array *)z)->descr;
        Py_INCREF(dtype);
    } else
        dtype = PyObject_GetAttrString(z, "dtype");
    if (dtype == NULL || (shape = shape_of(z)) == NULL ||
        (node = PyTuple_Pack(7, row, no_params, parents, arrays, z, shape, dtype)) == NULL ||
        (tracer = TracerType->tp_alloc(TracerType, 0)) == NULL)
        goto done;
    Py_INCREF(tape), Py_INCREF(z), Py_INCREF(Py_None);
    SLOT(tracer, trace_at) = tape, SLOT(tracer, traced_at) = z, SLOT(tracer, view_at) = Py_None;
    SLOT(tracer, node_at) = PyLong_FromSsize_t(PyList_GET_SIZE(nodes));
    if (SLOT(tracer, node_at) == NULL || (h = Handle->tp_alloc(Handle, 0)) == NULL)
        goto done;
    Py_INCREF(Py_None), Py_INCREF(Py_None), Py_INCREF(tracer);
    SLOT(h, host_at) = SLOT(h, root_at) = Py_None, SLOT(h, value_at) = tracer;
    if (PyList_Append(nodes, node) < 0)
        Py_CLEAR(h);
done:
    Py_DECREF(tape), Py_DECREF(nodes);
    Py_XDECREF(absent), Py_XDECREF(parents), Py_XDECREF(arrays), Py_XDECREF(z), Py_XDECREF(dtype), Py_XDECREF(shape);
    Py_XDECREF(node), Py_XDECREF(tracer);
    return h;
}

/* ------------------------------------------------------------------ on a place */
/* What a place keeps for a row, a list: see placed.slot_of. */
enum { KERNEL, CALLS, PREPARED, PLAN, EXACT, BASIC, SHOWS, NUMBERS, SLOT_SIZE };

/* The buffer or tracer a handle holds (borrowed); NULL where it holds neither, or is a view of what was written since. */
static inline PyObject *value_in(PyObject *h) {
    if (h == NULL || !Py_IS_TYPE(h, Handle) || SLOT(h, host_at) != Py_None)
        return NULL;
    PyObject *v = SLOT(h, value_at), *root = SLOT(h, root_at);
    if (v == NULL || root == NULL || !(Py_IS_TYPE(v, BufferType) || Py_IS_TYPE(v, TracerType)))
        return NULL;
    return root == Py_None || (SLOT(root, host_at) == Py_None && SLOT(h, seen_at) == SLOT(root, value_at)) ? v : NULL;
}

static inline PyObject *buffer_in(PyObject *h) {
    PyObject *v = value_in(h);
    return v != NULL && Py_IS_TYPE(v, BufferType) ? v : NULL;
}

/* The buffer under a value's tracers, all of them live tapes' (borrowed), or NULL. */
static inline PyObject *buffer_under(PyObject *v) {
    while (v != NULL && Py_IS_TYPE(v, TracerType)) {
        PyObject *tape = SLOT(v, trace_at);
        v = tape != NULL && Py_IS_TYPE(tape, TapeType) && SLOT(tape, alive_at) == Py_True ? SLOT(v, traced_at) : NULL;
    }
    return v != NULL && Py_IS_TYPE(v, BufferType) ? v : NULL;
}

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

/* Shape and dtype of a buffer into their slots, as Buffer.__getattr__ does; -1 with an exception where that fails. */
static int know(PyObject *b) {
    if (SLOT(b, shape_at) != NULL && SLOT(b, dtype_at) != NULL)
        return 0;
    PyObject *data = SLOT(b, data_at), *theirs = PyObject_GetAttr(data, word_dtype);
    PyObject *dtype = theirs != NULL ? PyDict_GetItemWithError(dtypes, theirs) : NULL, *shape = NULL;
    PyErr_Clear();
    Py_XINCREF(dtype);
    if (dtype != NULL && (shape = PyObject_GetAttr(data, word_shape)) != NULL)
        Py_SETREF(shape, PySequence_Tuple(shape));
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

/* What home keeps for a row (borrowed); NULL where it has no kernel, or was never asked. */
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
    if (kept == NULL)
        PyErr_Clear();
    return kept != NULL && PyList_CheckExact(kept) && PyList_GET_SIZE(kept) == SLOT_SIZE &&
           PyList_GET_ITEM(kept, KERNEL) != Py_None ? kept : NULL;
}

/* Whether NumPy 1 promotes an array with axes and this number by their types: weak_in_numpy_1 in torch/dtypes.py. */
static int is_weak(PyObject *x, PyObject *array) {
    int beyond = 0;
    long n = PyLong_CheckExact(x) ? PyLong_AsLongAndOverflow(x, &beyond) : -1;
    if (PyFloat_CheckExact(x) ? !(-6e4 < PyFloat_AS_DOUBLE(x) && PyFloat_AS_DOUBLE(x) < 6e4) : n < 0 || n > 127)
        return 0;
    PyObject *ndim = PyObject_GetAttr(array, word_ndim);
    int axes = ndim != NULL && PyObject_IsTrue(ndim) == 1;
    Py_XDECREF(ndim);
    return axes;
}

/* The function a kernel runs for operands of these kinds, a new reference; the kernel itself where that depends on more
   than dtypes and Python's types of numbers. NULL with an exception where it refuses them. */
static PyObject *prepared_for(PyObject *kept, PyObject *const *data, Py_ssize_t n) {
    PyObject *prepared = PyList_GET_ITEM(kept, PREPARED), *kernel = PyList_GET_ITEM(kept, KERNEL), *run = NULL;
    PyObject *kinds = PyDict_CheckExact(prepared) ? PyTuple_New(n) : NULL;
    int direct = kinds != NULL;
    for (Py_ssize_t i = 0; direct && i < n; i++) {
        PyObject *kind, *x = data[i];
        if (PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyComplex_CheckExact(x)) {
            kind = (PyObject *)Py_TYPE(x);
            Py_INCREF(kind);
        } else
            kind = PyBool_Check(x) ? NULL : PyObject_GetAttr(x, word_dtype);
        direct = kind != NULL &&
                 (i == 0 || PyList_GET_ITEM(kept, EXACT) == Py_True || kind == PyTuple_GET_ITEM(kinds, 0) ||
                  (n == 2 && (is_weak(x, data[0]) || is_weak(data[0], x))));
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
        out = PyObject_Vectorcall(run, given, n, names);
        Py_DECREF(run);
    }
    if (out != NULL && (PyTuple_Check(out) || PyList_Check(out)))
        Py_CLEAR(out);
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
    PyObject *h = Handle->tp_alloc(Handle, 0);
    if (h == NULL) {
        Py_DECREF(value);
        return NULL;
    }
    SLOT(h, host_at) = Py_NewRef(Py_None), SLOT(h, root_at) = Py_NewRef(Py_None), SLOT(h, value_at) = value;
    return h;
}

/* A root handle on data (whose reference it takes) at home, with its buffer; `*made`: the buffer (borrowed). */
static PyObject *handle_at(PyObject *home, PyObject *data, PyObject **made) {
    PyObject *buffer = buffer_at(home, data, Py_True), *h = buffer != NULL ? handle_of(buffer) : NULL;
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
        } else if (is_python_number(x))
            data[i] = x;
        else
            return NULL;
    }
    return home != NULL && calm(home) ? home : NULL;
}

static PyObject *traced_at_place(PyObject *, PyObject *const *, Py_ssize_t, PyObject *const *, PyObject *);

/* A row of handles at one place, and numbers, as NumPy's function takes them, with k keywords whose values follow them.
   NULL where Python must do it. */
static PyObject *on_place(PyObject *row, PyObject *const *operands, Py_ssize_t n, PyObject *const *values,
                          PyObject *names) {
    PyObject *data[MOST];
    Py_ssize_t k = names != NULL ? PyTuple_GET_SIZE(names) : 0;
    if (n + k > MOST)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        if (Py_IS_TYPE(operands[i], Handle) && SLOT(operands[i], host_at) == Py_None && SLOT(operands[i], value_at) != NULL &&
            Py_IS_TYPE(SLOT(operands[i], value_at), TracerType))
            return traced_at_place(row, operands, n, values, names);
    PyObject *home = gathered(operands, n, data), *kept = home != NULL ? kept_for(home, row) : NULL;
    for (Py_ssize_t i = 0; i < k; i++)
        data[n + i] = values[i];
    if (kept == NULL)
        return NULL;
    Py_INCREF(home);
    for (Py_ssize_t i = 0; i < n; i++)
        Py_INCREF(data[i]); /* the handles may come to hold something else while the kernel runs */
    PyObject *out = computed(kept, prepared_for(kept, data, n), data, n, names);
    for (Py_ssize_t i = 0; i < n; i++)
        Py_DECREF(data[i]);
    PyObject *h = out != NULL ? handle_at(home, out, NULL) : NULL;
    Py_DECREF(home);
    return h;
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
    int alike = run == PyList_GET_ITEM(kept, BASIC);
    for (Py_ssize_t i = 0; alike && i < n; i++) { /* torch joins an empty vector to anything */
        PyObject *d = PyObject_GetAttr(data[i], word_ndim);
        alike = d != NULL && PyObject_IsTrue(d) == 1 && (ndim == NULL || ndim == d);
        Py_XSETREF(ndim, d);
    }
    PyObject *given[] = {list, axis};
    if (alike)
        out = computed(kept, Py_NewRef(run), given, at_zero ? 1 : 2, NULL);
    PyObject *h = out != NULL ? handle_at(home, out, NULL) : NULL;
    Py_XDECREF(run), Py_XDECREF(ndim), Py_DECREF(list), Py_DECREF(home);
    if (h == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return h;
}

/* Whether indices are such that every array library reads them alike: integers, whole slices, None and ... alone. */
static int plain_index(PyObject *i) {
    if (PyTuple_CheckExact(i)) {
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(i); k++)
            if (PyTuple_CheckExact(PyTuple_GET_ITEM(i, k)) || !plain_index(PyTuple_GET_ITEM(i, k)))
                return 0;
        return 1;
    }
    if (PySlice_Check(i)) {
        PySliceObject *s = (PySliceObject *)i;
        return (s->start == Py_None || PyLong_CheckExact(s->start)) && (s->stop == Py_None || PyLong_CheckExact(s->stop)) &&
               s->step == Py_None;
    }
    return PyLong_CheckExact(i) || i == Py_None || i == Py_Ellipsis;
}

/* Make handle `view` one of what h holds, by row(params). */
static int link_view(PyObject *view, PyObject *h, PyObject *row, PyObject *params) {
    PyObject *root = SLOT(h, root_at) == Py_None ? h : SLOT(h, root_at);
    PyObject *step = PyTuple_Pack(2, row, params), *one = step != NULL ? PyTuple_Pack(1, step) : NULL, *path = NULL;
    if (one != NULL)
        path = root == h ? Py_NewRef(one) : PySequence_Concat(SLOT(h, path_at), one);
    Py_XDECREF(step), Py_XDECREF(one);
    if (path == NULL)
        return -1;
    Py_SETREF(SLOT(view, root_at), Py_NewRef(root));
    SLOT(view, path_at) = path, SLOT(view, seen_at) = Py_NewRef(SLOT(root, value_at));
    return 0;
}

/* The handle of `out` (whose reference it takes), which row(params) made of what h holds, the buffer x: a view of h where
   it shows x's memory. */
static PyObject *view_at_place(PyObject *h, PyObject *x, PyObject *row, PyObject *params, PyObject *out, int shows) {
    PyObject *b, *view = handle_at(SLOT(x, backend_at), out, &b);
    if (view == NULL || !shows)
        return view;
    PyObject *origin = PyTuple_Pack(3, x, row, params);
    if (origin == NULL || link_view(view, h, row, params) < 0) {
        Py_XDECREF(origin), Py_DECREF(view);
        return NULL;
    }
    Py_SETREF(SLOT(b, shown_at), origin);
    return view;
}

/* Whether `out`, which row(params) made of the buffer x, shows x's memory as NumPy's result would; -1: ask NumPy. */
static int shows_memory(PyObject *kept, PyObject *x, PyObject *row, PyObject *params, PyObject *out) {
    PyObject *linked, *shows = PyList_GET_ITEM(kept, SHOWS), *home = SLOT(x, backend_at), *data = SLOT(x, data_at);
    PyObject *index = row == getitem_row ? PyDict_GetItemWithError(params, PyTuple_GET_ITEM(index_name, 0)) : NULL;
    if (index != NULL && plain_index(index))
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

/* short.on_view: a row that looks at its argument's memory, with k parameters, on a handle at a place. The kernel's basic
   function, if it offers one, gets `n` values for them instead. */
static PyObject *view_on_place(PyObject *row, PyObject *h, PyObject *names, PyObject *const *values, Py_ssize_t k,
                               PyObject *const *items, Py_ssize_t n) {
    PyObject *x = buffer_in(h), *home, *kept, *given[MOST], *run, *out, *view = NULL, *params = NULL;
    if (n >= MOST || k >= MOST || (row == getitem_row && !plain_index(values[0])))
        return NULL;
    if (x == NULL)
        return traced_at_place(row, &h, 1, values, k > 0 ? names : NULL);
    home = SLOT(x, backend_at);
    if (!calm(home) || (kept = kept_for(home, row)) == NULL)
        return NULL;
    Py_INCREF(x), Py_INCREF(kept); /* x keeps home and its data */
    given[0] = SLOT(x, data_at);
    run = prepared_for(kept, given, 1);
    int basic = run != NULL && n > 0 && PyList_GET_ITEM(kept, BASIC) != Py_None;
    if (basic)
        Py_SETREF(run, Py_NewRef(PyList_GET_ITEM(kept, BASIC)));
    for (Py_ssize_t i = 0; i < (basic ? n : k); i++)
        given[i + 1] = basic ? items[i] : values[i];
    out = computed(kept, run, given, basic ? n + 1 : 1, basic || k == 0 ? NULL : names);
    if (out != NULL)
        params = k == 0 ? Py_NewRef(no_params) : PyDict_New();
    for (Py_ssize_t i = 0; params != NULL && i < k; i++)
        if (PyDict_SetItem(params, PyTuple_GET_ITEM(names, i), values[i]) < 0)
            Py_CLEAR(params);
    int is = params != NULL ? shows_memory(kept, x, row, params, out) : -1;
    if (is >= 0)
        view = view_at_place(h, x, row, params, out, is);
    else
        Py_XDECREF(out);
    Py_XDECREF(params), Py_DECREF(kept), Py_DECREF(x);
    if (view == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return view;
}

/* ------------------------------------------------------------------ rows on values */
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
    Py_INCREF(home), Py_INCREF(kept);
    for (Py_ssize_t i = 0; i < n; i++)
        Py_INCREF(data[i]); /* the handles may come to hold something else while the kernel runs */
    int view = SLOT(row, row_view_at) == Py_True, bare = params == no_params || PyDict_GET_SIZE(params) == 0;
    PyObject *x = NULL, *basic = PyList_GET_ITEM(kept, BASIC), *index = NULL;
    if (n == 1 && view)
        x = Py_NewRef(Py_IS_TYPE(operands[0], BufferType) ? operands[0] : buffer_in(operands[0]));
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

/* A Meta of a buffer: what a tape keeps of an array that no rule reads. */
static PyObject *meta_of(PyObject *b) {
    return know(b) == 0 ? meta_with(SLOT(b, shape_at), SLOT(b, dtype_at)) : NULL;
}

/* What a node of a tape keeps of a row's arguments: themselves, else GradTrace._metas. */
static PyObject *kept_of(PyObject *const *raw, PyObject *parents, Py_ssize_t n, int whole, int all_traced) {
    if (!whole && all_traced)
        return Py_NewRef(Py_None);
    PyObject *arrays = PyTuple_New(n);
    for (Py_ssize_t i = 0; arrays != NULL && i < n; i++) {
        PyObject *x = raw[i];
        if (!whole && Py_IS_TYPE(x, BufferType)) {
            int traced = PyLong_AsLong(PyTuple_GET_ITEM(parents, i)) >= 0;
            x = traced ? Py_NewRef(Py_None) : meta_of(x);
        } else
            Py_INCREF(x);
        if (x == NULL)
            Py_CLEAR(arrays);
        else
            PyTuple_SET_ITEM(arrays, i, x);
    }
    return arrays;
}

/* GradTrace.process where what the tape watches lies at a place: a row of tracers and buffers, handles on such, and
   numbers; a tracer, or what the tape does not watch. NULL where Python must do it. */
static PyObject *run_on_tape(PyObject *row, PyObject *const *operands, Py_ssize_t n, PyObject *params) {
    PyObject *values[MOST], *raw[MOST], *tape = NULL;
    int all_traced = 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *v = values[i] = Py_IS_TYPE(operands[i], Handle) ? value_in(operands[i]) : operands[i];
        if (v == NULL)
            return NULL;
        if (Py_IS_TYPE(v, TracerType)) {
            if (tape != NULL && SLOT(v, trace_at) != tape)
                return NULL;
            tape = SLOT(v, trace_at), raw[i] = SLOT(v, traced_at);
            if (tape == NULL || raw[i] == NULL || !Py_IS_TYPE(raw[i], BufferType))
                return NULL;
        } else
            raw[i] = v, all_traced = 0;
    }
    if (tape == NULL || !Py_IS_TYPE(tape, TapeType) || SLOT(tape, alive_at) != Py_True || row == write_row)
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
    if (parents == NULL)
        return NULL;
    Py_INCREF(tape); /* a kernel that is Python may do anything */
    for (Py_ssize_t i = 0; i < n; i++)
        Py_INCREF(values[i]), Py_INCREF(raw[i]);
    PyObject *z = run_at_place(row, raw, n, params), *nodes = SLOT(tape, nodes_at);
    if (z == NULL)
        goto done;
    if (PyUnicode_CheckExact(vjp)) { /* CONSTANT */
        tracer = Py_NewRef(z);
        goto done;
    }
    if (!Py_IS_TYPE(z, BufferType) || know(z) < 0 || strchr("fc", ((Dtype *)SLOT(z, dtype_at))->kind) == NULL ||
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
        (node = PyTuple_Pack(7, row, params, parents, arrays, out || both ? z : Py_None, SLOT(z, shape_at), SLOT(z, dtype_at))) == NULL)
        goto done;
    origin = Py_NewRef(Py_None);
    if (SLOT(z, shown_at) != Py_None && Py_IS_TYPE(values[0], TracerType) && PyTuple_GET_ITEM(SLOT(z, shown_at), 0) == raw[0])
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
    Py_XDECREF(z), Py_XDECREF(arrays), Py_XDECREF(node), Py_XDECREF(origin), Py_DECREF(parents), Py_DECREF(tape);
    return tracer;
}

/* ------------------------------------------------------------------ the way back */
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
    if (!Py_IS_TYPE(value, BufferType) && !Py_IS_TYPE(value, TracerType))
        return value;
    PyObject *origin = SLOT(value, Py_IS_TYPE(value, BufferType) ? shown_at : view_at), *h = handle_of(value);
    if (h != NULL && origin != NULL && origin != Py_None && value_in(first) == PyTuple_GET_ITEM(origin, 0) &&
        link_view(h, first, PyTuple_GET_ITEM(origin, 1), PyTuple_GET_ITEM(origin, 2)) < 0)
        Py_CLEAR(h);
    return h;
}

/* A row of handles, one at least traced, with keywords whose values are given. NULL where Python must do it. */
static PyObject *traced_at_place(PyObject *row, PyObject *const *operands, Py_ssize_t n, PyObject *const *values,
                                 PyObject *names) {
    if (RowType->tp_call == python_row_call || (n == 2 && operands[0] == operands[1] && row == multiply_row))
        return NULL; /* given back to Python; x * x has a row of its own */
    for (Py_ssize_t i = 0; i < n; i++)
        if (value_in(operands[i]) == NULL && !is_python_number(operands[i]))
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
        if (Py_IS_TYPE(x, Handle)) {
            handles = 1;
            if ((x = value_in(x)) == NULL)
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
    if (n == 0 || n > MOST || (hosts && (traced || placed)))
        goto python;
    if (traced || placed) {
        PyObject *given = params != NULL ? params : no_params, *const *operands = &PyTuple_GET_ITEM(args, 0);
        PyObject *made = traced ? run_on_tape(row, operands, n, given) : run_at_place(row, operands, n, given);
        if (made != NULL || PyErr_Occurred())
            return made != NULL && handles ? wrapped_of(made, operands[0]) : made;
    } else if (!busy() && SLOT(row, row_worth_at) == Py_None) {
        count_row(row);
        return PyObject_Call(SLOT(row, row_fast_at), args, params);
    }
python:
    return python_row_call(row, args, params);
}

/* ------------------------------------------------------------------ operators */
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
    const char *kept;  /* the dtypes of which two arrays have a result of their own dtype, which may take their memory */
    Py_ssize_t limit;  /* bytes of an operand from which Python does better */
} Operator;

/* An operator under a tape, else its Python methods in the interpreter's order. */
static PyObject *otherwise(PyObject *v, PyObject *w, Operator *o) {
    PyObject *there[] = {v, w}, *back[] = {w, v}, *h = on_tape(o->row, v, w);
    if (h == NULL && !PyErr_Occurred())
        h = on_place(o->row, there, 2, NULL, NULL);
    if (h != NULL || PyErr_Occurred())
        return h;
    if (Py_IS_TYPE(v, Handle))
        return PyObject_Vectorcall(o->forward, there, 2, NULL);
    return PyObject_Vectorcall(o->reflected, back, 2, NULL);
}

/* The return addresses from the caller's caller outwards: the compiler may write out one call here several times. */
OWN_FRAME static PyObject *callers_now(Py_ssize_t depth) {
    void *stack[DEPTH + 2];
    int n = WALK(stack, (int)(depth < DEPTH ? depth : DEPTH) + 2);
    return PyBytes_FromStringAndSize((char *)(stack + 2), (n > 2 ? n - 2 : 0) * (Py_ssize_t)sizeof(void *));
}

/* Whether nobody but one stack refers to a handle, its array and the array's memory. */
static int dying(PyObject *h, PyObject *a) {
    if (!Py_IS_TYPE(h, Handle) || Py_REFCNT(h) != 1 || Py_REFCNT(a) != 1 || (((Array *)a)->flags & 0x500) != 0x500)
        return 0; /* 0x500: aligned and writeable */
    PyObject *base = ((Array *)a)->base, **weak = PyObject_GET_WEAKREFS_LISTPTR(h);
    return *weak == NULL && (base == NULL || (Py_IS_TYPE(base, LeaseType) && Py_REFCNT(base) == 1));
}

/* Whether the result of array t and the other operand has t's shape and dtype. */
static int takes(PyObject *t, PyObject *other, Operator *o) {
    Array *a = (Array *)t, *b = (Array *)other;
    if (bytes(t) < SMALL || strchr(o->kept, ((Dtype *)a->descr)->type) == NULL)
        return 0;
    if (Py_IS_TYPE(other, Host)) {
        if (b->descr != a->descr || b->nd > a->nd)
            return 0;
        for (int i = 1; i <= b->nd; i++)
            if (b->dims[b->nd - i] != a->dims[a->nd - i] && b->dims[b->nd - i] != 1)
                return 0;
        return 1;
    }
    if (strchr("fdFD", ((Dtype *)a->descr)->type) == NULL || !(PyFloat_CheckExact(other) || PyLong_CheckExact(other)))
        return 0;
    double x = PyFloat_AsDouble(other);
    if (PyErr_Occurred()) { /* an integer beyond all doubles */
        PyErr_Clear();
        return 0;
    }
    return -1e9 < x && x < 1e9; /* NumPy 1.26 takes a wider dtype for numbers that do not fit */
}

/* The handle of a dying operand, into whose memory the result was written: host/temporaries.py says when that may be.
   NULL, perhaps without an exception, where it may not. */
OWN_FRAME static PyObject *into_dying(PyObject *v, PyObject *w, PyObject *a, PyObject *b, Operator *o) {
    PyObject *notes = SLOT(mark, notes_at), *target = NULL, *memory = NULL;
    if (notes == Py_None) {
        if (Py_IS_TYPE(a, Host) && dying(v, a) && takes(a, b, o))
            target = v, memory = a;
        else if (Py_IS_TYPE(b, Host) && dying(w, b) && takes(b, a, o))
            target = w, memory = b;
        if (target == NULL || SLOT(pool, enabled_at) != Py_True)
            return NULL;
        if (SLOT(mark, known_at) != Py_True) {
            Py_XDECREF(PyObject_CallOneArg(learn, (PyObject *)Handle));
            return NULL;
        }
    }
    PyObject *from = callers_now(PyLong_AsSsize_t(SLOT(mark, depth_at)));
    if (from == NULL)
        return NULL;
    if (target == NULL) {
        PyObject *counts = Py_BuildValue("((nn)(nn)O)", Py_REFCNT(v), Py_REFCNT(a), Py_REFCNT(w), Py_REFCNT(b), from);
        if (counts != NULL && PyList_CheckExact(notes))
            PyList_Append(notes, counts);
        Py_XDECREF(counts);
    }
    int found = target != NULL ? PySequence_Contains(SLOT(mark, callers_at), from) : 0;
    Py_DECREF(from);
    if (found <= 0)
        return NULL;
    PyObject *given[] = {SLOT(o->row, row_numpy_at), a, b, memory}, *out;
    count(Py_IS_TYPE(v, Handle) ? o->entry : o->reflected_entry);
    Py_INCREF(a);
    Py_INCREF(b);
    if (bytes(memory) < o->limit)
        out = PyObject_Vectorcall(given[0], given + 1, 3, NULL);
    else
        out = PyObject_Vectorcall(written, given, 4, NULL);
    Py_DECREF(a);
    Py_DECREF(b);
    if (out == NULL)
        return NULL;
    Py_DECREF(out);
    Py_INCREF(target);
    return target;
}

static PyObject *two(PyObject *v, PyObject *w, Operator *o, binaryfunc kernel) {
    PyObject *a, *b;
    if (!busy() && (a = operand(v, PY_SSIZE_T_MAX)) != NULL && (b = operand(w, PY_SSIZE_T_MAX)) != NULL) {
        Py_ssize_t m = Py_IS_TYPE(a, Host) ? elements(a) : 0, n = Py_IS_TYPE(b, Host) ? elements(b) : 0;
        if (n >= SMALL / 16 || m >= SMALL / 16) {
            m = m ? bytes(a) : 0, n = n ? bytes(b) : 0;
            if (n < m)
                n = m;
            if (n >= SMALL && o->kept != NULL) {
                PyObject *h = into_dying(v, w, a, b, o);
                if (h != NULL || PyErr_Occurred())
                    return h;
            }
            if (n >= o->limit)
                return otherwise(v, w, o);
        }
        count(Py_IS_TYPE(v, Handle) ? o->entry : o->reflected_entry);
        Py_INCREF(a);
        Py_INCREF(b);
        PyObject *out = NULL;
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
        Py_INCREF(a);
        PyObject *out = kernel(a);
        Py_DECREF(a);
        return result_of(out);
    }
    PyObject *h = on_tape(o->row, v, NULL);
    if (h == NULL && !PyErr_Occurred())
        h = on_place(o->row, &v, 1, NULL, NULL);
    return h != NULL || PyErr_Occurred() ? h : ((unaryfunc)o->python)(v);
}

/* Whether an array at a place has axes: torch takes some of one that has none. */
static int has_axes(PyObject *h) {
    PyObject *b = buffer_under(SLOT(h, value_at)), *ndim = b != NULL ? PyObject_GetAttr(SLOT(b, data_at), word_ndim) : NULL;
    int some = ndim != NULL && PyObject_IsTrue(ndim) == 1;
    if (ndim == NULL)
        PyErr_Clear();
    Py_XDECREF(ndim);
    return some;
}

/* v op= w at a place where v is a root and the result is like it: values are immutable, so v holds the result's from now
   on, which views of v notice. */
static PyObject *into_on_place(PyObject *v, PyObject *w, PyObject *row) {
    PyObject *operands[] = {v, w}, *x = buffer_in(v), *h;
    if (x == NULL || SLOT(v, root_at) != Py_None || (value_in(w) != NULL && buffer_in(w) == NULL) || (h = on_place(row, operands, 2, NULL, NULL)) == NULL)
        return NULL;
    if (SLOT(x, computed_at) == Py_True && !has_axes(v))
        return h; /* a number, as x.sum() is in NumPy: there is another one now */
    PyObject *y = SLOT(h, value_at), *words[] = {word_dtype, word_shape};
    int alike = SLOT(v, value_at) == x;
    for (int i = 0; alike && i < 2; i++) {
        PyObject *a = PyObject_GetAttr(SLOT(x, data_at), words[i]), *b = PyObject_GetAttr(SLOT(y, data_at), words[i]);
        alike = a != NULL && b != NULL && PyObject_RichCompareBool(a, b, Py_EQ) == 1;
        Py_XDECREF(a), Py_XDECREF(b);
    }
    if (alike) {
        Py_SETREF(SLOT(y, computed_at), Py_NewRef(SLOT(x, computed_at)));
        Py_SETREF(SLOT(v, value_at), Py_NewRef(y)); /* and with it x goes, so it comes last */
    } else { /* Python runs it again, and counts it */
        PyObject *kept = kept_for(SLOT(x, backend_at), row);
        PyObject *less = kept != NULL ? PyNumber_Subtract(PyList_GET_ITEM(kept, CALLS), Py_True) : NULL;
        if (less == NULL || PyList_SetItem(kept, CALLS, less) < 0 || PyErr_Occurred())
            PyErr_Clear();
    }
    Py_DECREF(h);
    return alike ? Py_NewRef(v) : NULL;
}

static PyObject *into(PyObject *v, PyObject *w, Operator *o, binaryfunc kernel) {
    PyObject *a, *b;
    if (!busy() && !taped() && Py_IS_TYPE(v, Handle) && (a = operand(v, o->limit)) != NULL &&
        (b = operand(w, PY_SSIZE_T_MAX)) != NULL) {
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
    PyObject *h = into_on_place(v, w, o->row);
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
    if (!busy() && (a = operand(v, COMPARED)) != NULL && (b = operand(w, COMPARED)) != NULL) {
        count(comparison_entries[op]);
        Py_INCREF(a);
        Py_INCREF(b);
        PyObject *out = PyObject_RichCompare(a, b, op);
        Py_DECREF(a);
        Py_DECREF(b);
        return result_of(out);
    }
    PyObject *there[] = {v, w}, *h = on_place(comparison_rows[op], there, 2, NULL, NULL);
    return h != NULL || PyErr_Occurred() ? h : python_compare(v, w, op);
}

/* ------------------------------------------------------------------ indexing */
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
    if (i == NULL || (Py_IS_TYPE(i, Host) && elements(i) >= large))
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

static PyObject *subscript(PyObject *self, PyObject *index) {
    PyObject *a = host_of(self), *i;
    if (a != NULL && !busy() && (i = index_on_host(index)) != NULL) {
        Py_INCREF(a);
        PyObject *out = PyObject_GetItem(a, i);
        Py_DECREF(i);
        return found_in(self, a, out);
    }
    if (a == NULL && !PyErr_Occurred()) {
        PyObject *h = view_on_place(getitem_row, self, index_name, &index, 1, &index, 1);
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
    if (x != NULL && plain_index(index) && calm(SLOT(x, backend_at)) &&
        (is_python_number(value) || ((v = buffer_in(value)) != NULL && SLOT(v, backend_at) == SLOT(x, backend_at)))) {
        PyObject *given[] = {self, index, v != NULL ? v : value}, *none;
        Py_XINCREF(v);
        none = PyObject_Vectorcall(write_there, given, 3, NULL);
        Py_XDECREF(none), Py_XDECREF(v);
        return none == NULL ? -1 : 0;
    }
    return python_setitem(self, index, value);
}

/* ------------------------------------------------------------------ Python's conversions */
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

/* ------------------------------------------------------------------ functions and methods */
typedef struct {
    PyObject_HEAD
    PyObject *python, *kernel, *entry; /* the function this is the short way of, NumPy's callable, our entry */
    vectorcallfunc call;
    int kind;         /* what the first argument is, and what is returned: see below */
    Py_ssize_t least; /* positional arguments from which this is NumPy's call; keywords are Python's if it is not 0 */
    int nin;          /* the operands of a ufunc, which then must be all the positional arguments; else -1 */
    PyObject *row;    /* of one or two operands, what this is when called on nothing else; else None */
    Py_ssize_t limit; /* of an array from which Python may do better: bytes for a ufunc, else elements */
    PyObject *there, *words; /* the row it is at a place, or NULL; the keywords that row takes */
    int form;         /* how that row takes NumPy's arguments: below, or the number of arrays it takes */
} Short;

/* The first argument is an object of another class; it is the home of a public function. An array is returned as it is. */
enum { FOREIGN = 1, HOME = 2, RETURNED = 4 };

/* Forms of calls at a place: an array, perhaps an axis, and keywords; a list of arrays and an axis; views; an array as one
   axis, a view or a copy; two vectors or matrices. */
enum { REDUCES = 100, LISTS, SPREADS, VIEWS, RAVELS, FLATTENS, MATRICES };

/* How many axes what a handle holds at a place has, or -1. */
static Py_ssize_t axes_of(PyObject *h) {
    PyObject *b = buffer_under(value_in(h));
    if (b != NULL && know(b) == 0)
        return PyTuple_GET_SIZE(SLOT(b, shape_at));
    PyErr_Clear();
    return -1;
}

/* x.ravel() where what h holds lies in C order; x.flatten(), its copy. */
static PyObject *flat_at_place(PyObject *row, PyObject *h, int copies) {
    PyObject *b = buffer_under(value_in(h)), *value = NULL, *params = NULL;
    if (b == NULL || RowType->tp_call == python_row_call || know(b) < 0)
        return NULL;
    PyObject *dense = PyObject_CallMethodNoArgs(SLOT(b, data_at), word_is_contiguous), *shape = SLOT(b, shape_at);
    Py_ssize_t size = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++)
        size *= PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
    if (dense == Py_True)
        params = Py_BuildValue("{O(n)ss}", PyTuple_GET_ITEM(shape_name, 0), size, "order", "C");
    Py_XDECREF(dense);
    PyObject *(*run)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *) =
        Py_IS_TYPE(value_in(h), TracerType) ? run_on_tape : run_at_place;
    if (params != NULL && (value = run(row, &h, 1, params)) != NULL && copies)
        Py_SETREF(value, run(copy_row, &value, 1, no_params));
    Py_XDECREF(params);
    if (value != NULL)
        return wrapped_of(value, h);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return NULL;
}

/* The short way of a function or method on handles at a place; NULL where Python must do it. */
static PyObject *short_on_place(Short *s, PyObject *const *given, Py_ssize_t n, PyObject *names) {
    Py_ssize_t k = names != NULL ? PyTuple_GET_SIZE(names) : 0;
    PyObject *first = given[0], *zero_axis = zero;
    if (s->form < REDUCES)
        return n == s->form && k == 0 ? on_place(s->there, given, n, NULL, NULL) : NULL;
    if (s->form == LISTS) {
        if (!(PyList_CheckExact(first) || PyTuple_CheckExact(first)) || n > 2 || k > 1 || (n == 2 && k == 1) ||
            (k == 1 && !PySet_Contains(s->words, PyTuple_GET_ITEM(names, 0))))
            return NULL;
        PyObject *const *axis = n + k == 2 ? given + 1 : &zero_axis;
        Py_ssize_t members = PySequence_Fast_GET_SIZE(first);
        for (Py_ssize_t i = 0; i < members; i++)
            if (value_in(PySequence_Fast_ITEMS(first)[i]) == NULL)
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
        return on_place(s->there, given, n, NULL, NULL);
    }
    if (value_in(first) == NULL)
        return NULL;
    if (s->form == RAVELS || s->form == FLATTENS)
        return n == 1 && k == 0 ? flat_at_place(s->there, first, s->form == FLATTENS) : NULL;
    if (s->form == SPREADS) { /* numbers, or a tuple of them */
        PyObject *parts = n > 1 ? given[1] : NULL, *view = NULL;
        if (k != 0 || (n == 2 && !PyTuple_CheckExact(parts) && !(PyLong_CheckExact(parts) && s->there != transpose_row)))
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
        return on_place(s->there, given, 1, given + 1, names);
    if (n != 2 || !plain_axis(given[1]))
        return NULL;
    if (k == 0)
        return on_place(s->there, given, 1, given + 1, axis_name);
    PyObject *all = PySequence_Contains(names, PyTuple_GET_ITEM(axis_name, 0)) ? NULL : PySequence_Concat(axis_name, names);
    PyObject *h = all != NULL ? on_place(s->there, given, 1, given + 1, all) : NULL;
    Py_XDECREF(all);
    return h;
}

/* An argument as NumPy takes it; NULL (without an exception) where Python must look at it. */
static PyObject *argument(PyObject *x, int elementwise, Py_ssize_t limit, int depth) {
    if (Py_IS_TYPE(x, Handle)) {
        x = host_of(x);
        if (x == NULL || (elementwise ? bytes(x) : elements(x)) >= limit)
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
            PyObject *inner = argument(e, elementwise, limit, depth + 1);
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
    for (Py_ssize_t i = 0; h == NULL && i < n; i++)
        if (Py_IS_TYPE(args[i], Handle))
            h = seen_from(args[i], out);
        else if (PyList_CheckExact(args[i]) || PyTuple_CheckExact(args[i]))
            h = seen_among(PySequence_Fast_ITEMS(args[i]), PySequence_Fast_GET_SIZE(args[i]), out);
    return h;
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
        if (fresh || (Py_REFCNT(out) == 1 && (base == NULL || Py_IS_TYPE(base, Host))))
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
        if (name == word_out && (taped() || !(Py_IS_TYPE(values[i], Handle) || values[i] == Py_None)))
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
    if (s->kind & RETURNED && n == 1 && k == 0 && Py_IS_TYPE(given[0], Handle) && host_of(given[0]) != NULL && !busy()) {
        count(s->entry);
        Py_INCREF(given[0]);
        return given[0];
    }
    if (n >= s->least && n + k <= MOST && !busy() && (s->nin >= 0 ? n == s->nin : !taped()) &&
        (k == 0 || (s->least == 0 && keywords_allowed(given + n, kwnames)))) {
        Py_ssize_t i = 0;
        if (s->kind & FOREIGN && n > 0) {
            values[i++] = given[0];
            Py_INCREF(given[0]);
        }
        for (; i < n + k; i++)
            if ((values[i] = argument(given[i], s->nin >= 0, s->limit, 0)) == NULL)
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
            return out == NULL || (PyList_CheckExact(out) && s->kind == 0) ? out : finished(out, given, n + k); /* tolist */
    }
    if (s->row != Py_None && k == 0 && (s->nin == 2 ? n == 2 : n == 1)) {
        PyObject *h = on_tape(s->row, given[0], n == 2 ? given[1] : NULL);
        if (h != NULL || PyErr_Occurred())
            return h;
    }
    if (s->there != NULL && n > 0) {
        PyObject *h = short_on_place(s, given, n, kwnames);
        if (h != NULL || PyErr_Occurred())
            return h;
    }
    return PyObject_Vectorcall(s->python, args, nargsf, kwnames);
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
    if (PyVectorcall_NARGS(nargsf) == 2 && kwnames == NULL && Py_IS_TYPE(args[0], Handle))
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
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minnp.core._quick.Short",
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

/* ------------------------------------------------------------------ attributes */
typedef struct {
    PyObject_HEAD
    PyObject *python, *name; /* the property this is the short way of; the attribute of NumPy's array */
    int transposes, told;    /* it is x.T; a buffer tells it too */
} Fact;

static PyObject *fact_get(PyObject *self, PyObject *instance, PyObject *type) {
    Fact *f = (Fact *)self;
    PyObject *a;
    if (instance == NULL || instance == Py_None) {
        Py_INCREF(f->python);
        return f->python;
    }
    if (Py_IS_TYPE(instance, Handle) && (a = host_of(instance)) != NULL && !busy()) {
        PyObject *out = PyObject_GetAttr(a, f->name);
        if (out == NULL || !Py_IS_TYPE(out, Host))
            return out;
        PyObject *h = seen_from(instance, out);
        if (h != NULL || PyErr_Occurred())
            return h;
        Py_DECREF(out);
    }
    PyObject *b = f->transposes || f->told ? buffer_under(value_in(instance)) : NULL;
    if (b != NULL && f->transposes) {
        PyObject *h = view_on_place(transpose_row, instance, NULL, NULL, 0, NULL, 0);
        if (h != NULL || PyErr_Occurred())
            return h;
    } else if (b != NULL && calm(SLOT(b, backend_at)))
        return PyObject_GetAttr(b, f->name);
    return Py_TYPE(f->python)->tp_descr_get(f->python, instance, type);
}

static int fact_set(PyObject *self, PyObject *instance, PyObject *value) {
    PyObject *python = ((Fact *)self)->python;
    return Py_TYPE(python)->tp_descr_set(python, instance, value);
}

static void fact_dealloc(Fact *f) {
    Py_XDECREF(f->python);
    Py_XDECREF(f->name);
    PyObject_Free(f);
}

static PyObject *fact_getattr(PyObject *f, PyObject *name) { return PyObject_GetAttr(((Fact *)f)->python, name); }

static PyTypeObject Fact_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minnp.core._quick.Fact",
    .tp_basicsize = sizeof(Fact),
    .tp_dealloc = (destructor)fact_dealloc,
    .tp_getattro = fact_getattr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_descr_get = fact_get,
    .tp_descr_set = fact_set,
};

/* fact(property, name, told) */
static PyObject *make_fact(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *python, *name;
    int told;
    if (!PyArg_ParseTuple(args, "OUp", &python, &name, &told))
        return NULL;
    Fact *f = PyObject_New(Fact, &Fact_Type);
    if (f == NULL)
        return NULL;
    Py_INCREF(python);
    Py_INCREF(name);
    f->python = python, f->name = name, f->told = told;
    f->transposes = PyUnicode_CompareWithASCIIString(name, "T") == 0;
    return (PyObject *)f;
}

/* ------------------------------------------------------------------ installing */
static Py_ssize_t slot_of(PyObject *type, const char *name) {
    PyObject *member = PyObject_GetAttrString(type, name);
    Py_ssize_t at = -1;
    if (member != NULL && Py_IS_TYPE(member, &PyMemberDescr_Type))
        at = ((PyMemberDescrObject *)member)->d_member->offset;
    else if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%R has no slot %s", type, name);
    Py_XDECREF(member);
    return at;
}

/* setup(handle, host, state, numbers, plain, wrapped, object_dtype, entries, large, pool, lease, mark, learn,
   written, memory_of): what is shared. */
static PyObject *setup(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *handle, *host, *lease;
    if (!PyArg_ParseTuple(args, "O!O!OO!O!OOO!nOO!OOOO", &PyType_Type, &handle, &PyType_Type, &host, &state,
                          &PySet_Type, &numbers, &PySet_Type, &plain, &wrapped, &object_dtype, &PyDict_Type, &entries,
                          &large, &pool, &PyType_Type, &lease, &mark, &learn, &written, &memory_of))
        return NULL;
    host_at = slot_of(handle, "_host"), root_at = slot_of(handle, "_root");
    busy_at = slot_of((PyObject *)Py_TYPE(state), "busy"), tapes_at = slot_of((PyObject *)Py_TYPE(state), "tapes");
    PyObject *of_mark = (PyObject *)Py_TYPE(mark);
    known_at = slot_of(of_mark, "known"), callers_at = slot_of(of_mark, "callers"), depth_at = slot_of(of_mark, "depth");
    notes_at = slot_of(of_mark, "notes"), enabled_at = slot_of((PyObject *)Py_TYPE(pool), "enabled");
    if (PyErr_Occurred())
        return NULL;
    Handle = (PyTypeObject *)handle, Host = (PyTypeObject *)host, LeaseType = (PyTypeObject *)lease;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        Py_INCREF(PyTuple_GET_ITEM(args, i)); /* for good */
    zero = PyLong_FromLong(0);
    word_out = PyUnicode_InternFromString("out"), word_device = PyUnicode_InternFromString("device");
    word_call = PyUnicode_InternFromString("__call__"), word_slots = PyUnicode_InternFromString("slots");
    word_dtype = PyUnicode_InternFromString("dtype"), word_ndim = PyUnicode_InternFromString("ndim");
    word_shape = PyUnicode_InternFromString("shape"), word_is_view = PyUnicode_InternFromString("is_view");
    word_meta = PyUnicode_InternFromString("meta"), word_recorded = PyUnicode_InternFromString("recorded");
    keepdims_name = PyUnicode_InternFromString("keepdims"), word_T = PyUnicode_InternFromString("T");
    word_is_contiguous = PyUnicode_InternFromString("is_contiguous");
    word_fields = PyUnicode_InternFromString("_fields");
    axis_name = Py_BuildValue("(N)", PyUnicode_InternFromString("axis"));
    shape_name = Py_BuildValue("(N)", PyUnicode_InternFromString("shape"));
    index_name = Py_BuildValue("(N)", PyUnicode_InternFromString("index"));
    Py_RETURN_NONE;
}

static PyObject *entry_named(PyObject *calls, const char *format, const char *name) {
    PyObject *key = PyUnicode_FromFormat(format, name), *entry = key != NULL ? PyDict_GetItemWithError(calls, key) : NULL;
    if (entry == NULL && key != NULL && !PyErr_Occurred())
        PyErr_SetObject(PyExc_KeyError, key);
    Py_XDECREF(key);
    Py_XINCREF(entry);
    return entry;
}

static PyObject *method_named(const char *format, const char *name) {
    PyObject *key = PyUnicode_FromFormat(format, name);
    PyObject *found = key != NULL ? PyObject_GetAttr((PyObject *)Handle, key) : NULL;
    Py_XDECREF(key);
    return found;
}

/* install(calls, rows, limits, tracer, tape, primitive, no_params, small, buffer, free, captures, policies, meta,
   unbroadcast, restore, accumulate, write_on_place): put the slots above into the type
   of handles, over those that call its Python methods.

   calls, rows, limits: by the method's name, the entries that count operators, the operators' rows, and the bytes from
   which Python does better. small: elements up to which a tape keeps all arrays. free: whether nothing watches calls at
   a place, which depends on two context variables, `captures` and `policies`, and the global policy. Setting a method later gives its slot back to Python. */
static PyObject *install(PyObject *Py_UNUSED(module), PyObject *args) {
    PyNumberMethods *number = Handle->tp_as_number;
    PyObject *calls, *rows, *limits, *tracer, *tape, *primitive, *buffer_type, *meta;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!O!nO!OOOO!OOOO", &PyDict_Type, &calls, &PyDict_Type, &rows, &PyDict_Type, &limits,
                          &PyType_Type, &tracer, &PyType_Type, &tape, &PyType_Type, &primitive, &PyDict_Type, &no_params,
                          &small, &PyType_Type, &buffer_type, &free_place, &captures, &policies, &PyType_Type, &meta, &unbroadcast, &restore,
                          &accumulate, &write_there))
        return NULL;
    path_at = slot_of((PyObject *)Handle, "_path"), seen_at = slot_of((PyObject *)Handle, "_seen");
    data_at = slot_of(buffer_type, "data"), backend_at = slot_of(buffer_type, "backend");
    shown_at = slot_of(buffer_type, "view"), computed_at = slot_of(buffer_type, "computed");
    value_at = slot_of((PyObject *)Handle, "_value"), trace_at = slot_of(tracer, "trace");
    traced_at = slot_of(tracer, "value"), node_at = slot_of(tracer, "node"), view_at = slot_of(tracer, "view");
    alive_at = slot_of(tape, "alive"), nodes_at = slot_of(tape, "nodes");
    row_calls_at = slot_of(primitive, "calls"), row_numpy_at = slot_of(primitive, "numpy");
    row_direct_at = slot_of(primitive, "direct"), row_elementwise_at = slot_of(primitive, "elementwise");
    row_view_at = slot_of(primitive, "view"), row_vjp_at = slot_of(primitive, "vjp");
    row_saves_at = slot_of(primitive, "saves"), row_fast_at = slot_of(primitive, "fast");
    row_worth_at = slot_of(primitive, "worth"), policy_at = slot_of((PyObject *)Py_TYPE(state), "policy");
    shape_at = slot_of(buffer_type, "shape"), dtype_at = slot_of(buffer_type, "dtype");
    meta_shape_at = slot_of(meta, "shape"), meta_dtype_at = slot_of(meta, "dtype");
    if (PyErr_Occurred())
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        Py_INCREF(PyTuple_GET_ITEM(args, i)); /* for good */
    for (int i = 0; i < OPERATORS; i++) {
        Operator *o = &operators[i];
        if (i < UNARIES && (o->entry = entry_named(calls, "__%s__", o->name)) == NULL)
            return NULL;
        if (i < BINARIES && ((o->reflected_entry = entry_named(calls, "__r%s__", o->name)) == NULL ||
                             (o->forward = method_named("__%s__", o->name)) == NULL ||
                             (o->reflected = method_named("__r%s__", o->name)) == NULL))
            return NULL;
        if ((o->row = i < IADD ? entry_named(rows, "__%s__", o->name) : operators[i - IADD].row) == NULL)
            return NULL;
        PyObject *limit = entry_named(limits, "__%s__", o->name);
        o->limit = limit != NULL ? PyLong_AsSsize_t(limit) : -1;
        Py_XDECREF(limit);
        if (PyErr_Occurred())
            return NULL;
        if (i < BINARIES && i != POW)
            o->direct = *(binaryfunc *)((char *)Host->tp_as_number + o->at);
        if (i == ADD || i == SUB || i == MUL)
            o->kept = "fdFD?bBhHiIlLqQ";
        else if (i == TRUEDIV)
            o->kept = "fdFD";
        void **slot = (void **)((char *)number + o->at);
        o->python = *slot;
        if (o->python != NULL) /* a NumPy without matmul in place */
            *slot = o->ours;
    }
    for (int i = 0; i < 6; i++)
        if ((comparison_entries[i] = entry_named(calls, "%s", comparisons[i])) == NULL ||
            (comparison_rows[i] = entry_named(rows, "%s", comparisons[i])) == NULL)
            return NULL;
    if ((getitem_row = entry_named(rows, "%s", "getitem")) == NULL ||
        (transpose_row = entry_named(rows, "%s", "transpose")) == NULL ||
        (write_row = entry_named(rows, "%s", "write_view")) == NULL || (copy_row = entry_named(rows, "%s", "copy")) == NULL || (dtypes = PyDict_New()) == NULL)
        return NULL;
    multiply_row = operators[MUL].row;
    PyObject *python_array_ufunc = PyObject_GetAttrString((PyObject *)Handle, "__array_ufunc__");
    python_getitem = PyObject_GetAttrString((PyObject *)Handle, "__getitem__");
    if (python_getitem == NULL || python_array_ufunc == NULL)
        return NULL;
    PyObject *getitem = new_short(python_getitem, getitem_call), *array_ufunc = new_short(python_array_ufunc, ufunc_call);
    if (getitem == NULL || array_ufunc == NULL || PyObject_SetAttrString((PyObject *)Handle, "__getitem__", getitem) < 0 ||
        PyObject_SetAttrString((PyObject *)Handle, "__array_ufunc__", array_ufunc) < 0)
        return NULL;
    Py_DECREF(getitem);
    Py_DECREF(array_ufunc);
    Py_DECREF(python_array_ufunc);
    python_compare = Handle->tp_richcompare, Handle->tp_richcompare = compare;
    python_setitem = Handle->tp_as_mapping->mp_ass_subscript, Handle->tp_as_mapping->mp_ass_subscript = assign;
    python_len = Handle->tp_as_mapping->mp_length, Handle->tp_as_mapping->mp_length = length;
    Handle->tp_as_sequence->sq_length = length;
    python_item = Handle->tp_as_sequence->sq_item, Handle->tp_as_sequence->sq_item = item;
    python_iter = Handle->tp_iter, Handle->tp_iter = iterator;
    Handle->tp_as_mapping->mp_subscript = subscript;
    python_bool = number->nb_bool, number->nb_bool = truth;
    python_int = number->nb_int, number->nb_int = as_int;
    python_float = number->nb_float, number->nb_float = as_float;
    python_index = number->nb_index, number->nb_index = as_index;
    Handle->tp_dealloc = handle_dealloc;
    python_alloc = Handle->tp_alloc, Handle->tp_alloc = handle_alloc;
    PyBufferProcs *buffer = Handle->tp_as_buffer;
    if (buffer != NULL && buffer->bf_getbuffer != NULL)
        buffer->bf_getbuffer = buffer_of;
    Handle->tp_name = "numpy.ndarray"; /* which the interpreter's messages tell, as they do for NumPy's class */
    PyType_Modified(Handle);
    TracerType = (PyTypeObject *)tracer, TapeType = (PyTypeObject *)tape, BufferType = (PyTypeObject *)buffer_type;
    MetaType = (PyTypeObject *)meta, RowType = (PyTypeObject *)primitive;
    return short_values(NULL, Py_True);
}

static PyMethodDef functions[] = {
    {"setup", setup, METH_VARARGS, NULL},
    {"short", make_short, METH_VARARGS, NULL},
    {"at_places", at_places, METH_VARARGS, NULL},
    {"values", short_values, METH_O, NULL},
    {"sweep", (PyCFunction)(void (*)(void))sweep, METH_FASTCALL, NULL},
    {"fact", make_fact, METH_VARARGS, NULL},
    {"install", install, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "minnp.core._quick", NULL, -1, functions};

PyMODINIT_FUNC PyInit__quick(void) {
#ifdef Py_GIL_DISABLED
    PyErr_SetString(PyExc_ImportError, "minnp.core._quick relies on the interpreter lock");
    return NULL;
#else
    if (PyType_Ready(&Counter_Type) < 0 || PyType_Ready(&Short_Type) < 0 || PyType_Ready(&Fact_Type) < 0)
        return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && (PyModule_AddObjectRef(made, "Short", (PyObject *)&Short_Type) < 0 ||
                         PyModule_AddObjectRef(made, "Counter", (PyObject *)&Counter_Type) < 0 ||
                         PyModule_AddIntConstant(made, "SOURCE", SOURCE) < 0))
        Py_CLEAR(made);
    return made;
#endif
}
