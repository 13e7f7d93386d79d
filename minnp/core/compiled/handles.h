/* What everything else here reads and makes: the fields of a NumPy array, the slots of our classes, handles. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <math.h>
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
    char kind, type, order;
} Dtype;

typedef struct { /* PyArrayObject_fields */
    PyObject_HEAD
    char *data;
    int nd;
    Py_ssize_t *dims, *strides;
    PyObject *base, *descr;
    int flags;
} Array;

#ifdef _MSC_VER
#define PER_THREAD __declspec(thread)
#else
#define PER_THREAD __thread
#endif
#ifndef Py_SETREF
#define Py_SETREF(to, x) do { PyObject *old_ = (to); (to) = (x); Py_DECREF(old_); } while (0)
#define Py_XSETREF(to, x) do { PyObject *old_ = (to); (to) = (x); Py_XDECREF(old_); } while (0)
#endif
#define MOST 16           /* arguments, the longest call that goes the short way */
#define DEPTH 32          /* return addresses looked at, at most: cpu/temporaries.py */
#define SMALL (1 << 18)    /* bytes from which operators write into dying operands, as NumPy's */
#define MIDDLE (1 << 20)   /* bytes from which ufuncs of NumPy's may be shared by threads: cpu/elementwise.py */
#define COMPARED (1 << 24) /* bytes up to which NumPy compares as well as several threads: cpu/elementwise.py */
#define RECYCLED (1 << 22) /* bytes from which squares lie on recycled blocks: cpu/memory.py */
#define COMBINED (1 << 15) /* elements from which a trace hands elementwise operations to threads: host.MEDIUM */
#define RUNS (1 << 21)     /* elements of a mask in long runs up to which NumPy selects as well: cpu/selection.py */

static PyTypeObject *Handle, *Host;
static PyObject *state, *zero, *numbers, *plain, *wrapped, *object_dtype, *entries, *word_out, *word_device, *word_call, *word_reshape;
static PyObject *pool, *mark, *learn, *written, *truths[2]; /* of cpu/memory.py and cpu/temporaries.py */
static PyTypeObject *LeaseType;
static Py_ssize_t enabled_at, known_at, callers_at, depth_at, notes_at, learner_at;
static Py_ssize_t host_at, root_at, busy_at, written_at, tapes_at, large;
static PyTypeObject *TracerType, *TapeType;
static PyObject *no_params;
static Py_ssize_t value_at, trace_at, traced_at, node_at, view_at, alive_at, nodes_at, small;
static Py_ssize_t row_calls_at, row_numpy_at, row_direct_at, row_elementwise_at, row_view_at;
static PyTypeObject *BufferType, *MetaType, *RowType;
static ternaryfunc python_row_call; /* NULL: rows have not been given their short way */
static PyObject *free_place, *slot_of_row, *as_numpys, *word_slots, *word_dtype, *word_ndim, *word_shape, *word_is_view, *word_meta, *word_recorded, *word_T, *word_is_contiguous,
    *word_fields;
static PyObject *axis_name, *index_name, *keepdims_name, *getitem_row, *transpose_row, *multiply_row, *write_row, *copy_row, *reshape_row, *shape_name;
static PyObject *subscription; /* operator.getitem, which need not be called */
static PyObject *last_home, *last_slots; /* of the place that was asked last */
static PyObject *captures, *policies, *calm_home, *calm_policy; /* context variables; what `free` was last true of */
static PyObject *dtypes;                 /* of a place's library -> NumPy's, as they were met */
static Py_ssize_t path_at, seen_at, data_at, backend_at, shown_at, computed_at, shape_at, dtype_at;
static PyObject *contexts, *word_makers; /* the context variable of where new arrays live */
static Py_ssize_t meta_shape_at, meta_dtype_at, policy_at, new_home_at;
static PyObject *number_there, *before_out, *as_handles, *word_holders, *word_views_refer, *shortened; /* of on_device.py, functions.py, operators.py */
static Py_ssize_t definition_at, copied_at;
static Py_ssize_t row_vjp_at, row_saves_at, row_fast_at, row_worth_at, row_accumulate_at;

#define SLOT(x, at) (*(PyObject **)((char *)(x) + (at)))

static Py_ssize_t slot_of(PyObject *type, const char *name);

/* Whether something watches or redirects calls. */
static inline int busy(void) { return SLOT(state, busy_at) != SLOT(state, written_at); }

static inline int taped(void) {
    PyObject *tapes = SLOT(state, tapes_at);
    return tapes == NULL || !PyDict_CheckExact(tapes) || PyDict_GET_SIZE(tapes) != 0;
}

/* The NumPy array a handle holds (borrowed), or NULL; also for a view of an array that was written under a trace. */
static inline PyObject *host_of(PyObject *h) {
    PyObject *a = SLOT(h, host_at), *root = SLOT(h, root_at);
    if (a == NULL || !Py_IS_TYPE(a, Host))
        return NULL;
    return root == NULL || root == Py_None || SLOT(root, host_at) != Py_None ? a : NULL;
}

/* The buffer or tracer a handle holds (borrowed); NULL where it holds neither, or is a view of what was written since. */
static inline PyObject *value_in(PyObject *h) {
    if (h == NULL || !Py_IS_TYPE(h, Handle) || SLOT(h, host_at) != Py_None)
        return NULL;
    PyObject *v = SLOT(h, value_at), *root = SLOT(h, root_at);
    if (v == NULL || root == NULL || !(Py_IS_TYPE(v, BufferType) || Py_IS_TYPE(v, TracerType)))
        return NULL;
    return root == Py_None || (SLOT(root, host_at) == Py_None && SLOT(h, seen_at) == SLOT(root, value_at)) ? v : NULL;
}

static inline Py_ssize_t elements(PyObject *a) {
    Py_ssize_t n = 1;
    for (int i = 0; i < ((Array *)a)->nd; i++)
        n *= ((Array *)a)->dims[i];
    return n;
}

/* Whether two arrays have one shape. An array without axes may have no list of them, which memcmp does not take. */
static inline int same_shape(Array *a, Array *b) {
    return a->nd == b->nd && (a->nd == 0 || memcmp(a->dims, b->dims, a->nd * sizeof(Py_ssize_t)) == 0);
}

/* Whether an array is writeable, and NumPy does not warn of that. */
static inline int may_write(Array *a) { return (a->flags & 0x80000400) == 0x400; }

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

/* Whether array a is a mask in long runs, judged by a sample at its middle (cpu/selection.py: irregular). */
static inline int in_runs(PyObject *a) {
    Array *m = (Array *)a;
    Py_ssize_t n = elements(a), changes = 0;
    if (((Dtype *)m->descr)->type != '?' || !(m->flags & 1 /* NPY_ARRAY_C_CONTIGUOUS */) || n < 2048 || n >= RUNS)
        return 0;
    const char *p = m->data + n / 2 - 1024;
    for (int i = 1; i < 2048; i++)
        changes += !p[i] != !p[i - 1];
    return changes <= 128;
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
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minnp.core.compiled._quick.Counter",
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

static void let_all_go(PyObject *h) {
    Py_CLEAR(SLOT(h, value_at));
    Py_CLEAR(SLOT(h, path_at));
    Py_CLEAR(SLOT(h, seen_at));
    let_go(h);
}

/* What a tracer, or an array of objects, leads to can be a chain of any length, each link of which takes some of the C
   stack: behind so many, handles wait until the first is through. The interpreter's own way for this, Py_TRASHCAN_BEGIN,
   knows nothing of the stack that NumPy's arrays between the handles take, and so lets the stack overflow (3.13). */
#define NESTED 50
static PER_THREAD int nesting;
static PER_THREAD PyObject *waiting; /* one leads to the next by its list of weak references, which is done with */

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
    if (nesting == NESTED) {
        *PyObject_GET_WEAKREFS_LISTPTR(h) = waiting, waiting = h;
        return;
    }
    nesting++;
    let_all_go(h);
    while (nesting == 1 && (h = waiting) != NULL) {
        waiting = *PyObject_GET_WEAKREFS_LISTPTR(h), *PyObject_GET_WEAKREFS_LISTPTR(h) = NULL;
        let_all_go(h);
    }
    nesting--;
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
