/* What everything else here reads and makes: the fields of a NumPy array, the slots of our classes, handles. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <math.h>
#define NPY_NO_DEPRECATED_API NPY_1_25_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION /* NumPy 1.26's: built with NumPy 2's headers it serves both */
#include <numpy/arrayobject.h>
#if NPY_ABI_VERSION < 0x02000000
#error "build minnp with the headers of NumPy 2, which serve NumPy 1.26 as well"
#endif
#ifdef __GNUC__
#define OWN_FRAME __attribute__((noinline))
#else
#define OWN_FRAME
#endif

typedef PyArray_Descr Dtype;
typedef PyArrayObject_fields Array; /* the public struct: its fields are set here, in arrays that are views of others */
#define DESCR(a) ((PyObject *)PyArray_DESCR((PyArrayObject *)(a)))

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
#define SMALL (1 << 18)    /* bytes from which operators write into dying operands, as NumPy's */
#define MIDDLE (1 << 20)   /* bytes from which ufuncs of NumPy's may be shared by threads: cpu/elementwise.py */
#define COMPARED (1 << 24) /* bytes up to which NumPy compares as well as several threads: cpu/elementwise.py */
#define RECYCLED (1 << 22) /* bytes from which squares lie on recycled blocks: cpu/memory.py */
#define COMBINED (1 << 15) /* elements from which a trace hands elementwise operations to threads: host.MEDIUM */
#define RUNS (1 << 21)     /* elements of a mask in long runs up to which NumPy selects as well: cpu/selection.py */

static PyTypeObject *Handle, *Virtual, *Host, *Int64; /* ndarray, VirtualArray; NumPy's */
static PyObject *state, *zero, *numbers, *plain, *wrapped, *object_dtype, *entries, *word_out, *word_device, *word_call, *word_reshape;
static PyObject *truths[2];
static PyTypeObject *LeaseType;
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

/* A slot of an array of ours: those of virtual arrays lie `before` those of host arrays, in the same order. */
static Py_ssize_t before;
#define FIELD(h, at) SLOT(h, (at) - (Py_IS_TYPE(h, Handle) ? 0 : before))

static inline int is_handle(PyObject *x) { return Py_IS_TYPE(x, Handle) || Py_IS_TYPE(x, Virtual); }

static Py_ssize_t slot_of(PyObject *type, const char *name);

/* Whether something watches or redirects calls. */
static inline int busy(void) { return SLOT(state, busy_at) != SLOT(state, written_at); }

static inline int taped(void) {
    PyObject *tapes = SLOT(state, tapes_at);
    return tapes == NULL || !PyDict_CheckExact(tapes) || PyDict_GET_SIZE(tapes) != 0;
}

static PyObject *python_take_over; /* of array.py */

/* The NumPy array a handle holds (borrowed), or NULL; also for a view of an array that was written under a trace. */
static inline PyObject *host_of(PyObject *h) {
    PyObject *a = FIELD(h, host_at);
    if (a == NULL && Py_IS_TYPE(h, Handle)) { /* NumPy made it */
        PyObject *none = PyObject_CallOneArg(python_take_over, h);
        if (none == NULL)
            PyErr_Clear();
        Py_XDECREF(none);
        a = FIELD(h, host_at);
    }
    PyObject *root = FIELD(h, root_at);
    if (a == NULL || !Py_IS_TYPE(a, Host))
        return NULL;
    return root == NULL || root == Py_None || FIELD(root, host_at) != Py_None ? a : NULL;
}

/* The buffer or tracer a handle holds (borrowed); NULL where it holds neither, or is a view of what was written since. */
static inline PyObject *value_in(PyObject *h) {
    if (h == NULL || !is_handle(h) || FIELD(h, host_at) != Py_None)
        return NULL;
    PyObject *v = FIELD(h, value_at), *root = FIELD(h, root_at);
    if (v == NULL || root == NULL || !(Py_IS_TYPE(v, BufferType) || Py_IS_TYPE(v, TracerType)))
        return NULL;
    return root == Py_None || (FIELD(root, host_at) == Py_None && FIELD(h, seen_at) == FIELD(root, value_at)) ? v : NULL;
}

static inline Py_ssize_t elements(PyObject *a) {
    Py_ssize_t n = 1;
    for (int i = 0; i < ((Array *)a)->nd; i++)
        n *= ((Array *)a)->dimensions[i];
    return n;
}

/* Whether two arrays have one shape. An array without axes may have no list of them, which memcmp does not take. */
static inline int same_shape(Array *a, Array *b) {
    return a->nd == b->nd && (a->nd == 0 || memcmp(a->dimensions, b->dimensions, a->nd * sizeof(Py_ssize_t)) == 0);
}

/* Whether an array is writeable; NumPy warns where it wants to, and where that raises, again when it is asked to write. */
static inline int may_write(Array *a) {
    if (!(a->flags & NPY_ARRAY_WRITEABLE))
        return 0;
    int writeable = PyArray_FailUnlessWriteable((PyArrayObject *)a, "assignment destination") == 0;
    if (!writeable)
        PyErr_Clear();
    return writeable;
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

/* Whether array a is a mask in long runs, judged by a sample at its middle (cpu/selection.py: irregular). */
static inline int in_runs(PyObject *a) {
    Array *m = (Array *)a;
    Py_ssize_t n = elements(a), changes = 0;
    if (((Dtype *)m->descr)->type != '?' || !(m->flags & NPY_ARRAY_C_CONTIGUOUS) || n < 2048 || n >= RUNS)
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
    if (is_handle(x)) {
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

/* ------------------------------------------------------------------ host arrays: a numpy.ndarray on the memory of another
   They come and go with every operation, so some of those that went are kept for those that come, with the list of
   their dimensions where there is one. */
#define KEPT 64
typedef struct {
    PyObject *kept[KEPT];
    int n;
} Gone;
static Gone gone[3], gone_virtual; /* host arrays by their number of axes; with three and more as with none */

/* The views of an array, all that are alive: a list that begins at their root. */
typedef struct {
    PyObject *next, *last;
} Links;
static Py_ssize_t links_at;
static inline Links *links_of(PyObject *h) { return (Links *)((char *)h + links_at); }

static inline void chain_view(PyObject *h, PyObject *root) {
    Links *mine = links_of(h), *first = links_of(root);
    mine->next = first->next, mine->last = root;
    if (first->next != NULL)
        links_of(first->next)->last = h;
    first->next = h;
}

static inline void unchain_view(PyObject *h) {
    Links *mine = links_of(h);
    if (mine->last != NULL)
        links_of(mine->last)->next = mine->next;
    if (mine->next != NULL)
        links_of(mine->next)->last = mine->last;
    mine->next = mine->last = NULL;
}

static inline void let_host_go(PyObject *h) {
    Array *fields = (Array *)h;
    unchain_view(h);
    PyObject *array = SLOT(h, host_at), *root = SLOT(h, root_at), *base = fields->base, *descr = (PyObject *)fields->descr;
    SLOT(h, host_at) = SLOT(h, root_at) = NULL;
    if (fields->_buffer_info != NULL || (fields->flags & (NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEBACKIFCOPY)) != 0) {
        Host->tp_dealloc(h);
        Py_DECREF(Handle);
        base = descr = NULL;
    } else {
        fields->base = NULL, fields->descr = NULL;
        int axes = fields->nd <= 2 ? fields->nd : 0;
        if (axes == 0)
            PyMem_RawFree(fields->dimensions), fields->dimensions = NULL;
        if (gone[axes].n < KEPT) /* with its reference to its type */
            gone[axes].kept[gone[axes].n++] = h;
        else {
            PyMem_RawFree(fields->dimensions);
            PyObject_GC_Del(h);
            Py_DECREF(Handle);
        }
    }
    Py_XDECREF(array), Py_XDECREF(root), Py_XDECREF(base), Py_XDECREF(descr);
}

static inline void let_go(PyObject *h) {
    if (Py_IS_TYPE(h, Handle)) {
        let_host_go(h);
        return;
    }
    PyObject *array = FIELD(h, host_at), *root = FIELD(h, root_at);
    FIELD(h, host_at) = FIELD(h, root_at) = NULL;
    if (gone_virtual.n < KEPT)
        gone_virtual.kept[gone_virtual.n++] = h;
    else {
        PyObject_GC_Del(h);
        Py_DECREF(Virtual);
    }
    Py_XDECREF(array), Py_XDECREF(root);
}

static void let_all_go(PyObject *h) {
    Py_CLEAR(FIELD(h, value_at));
    Py_CLEAR(FIELD(h, path_at));
    Py_CLEAR(FIELD(h, seen_at));
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
    PyTypeObject *type = Py_TYPE(h);
    if (type != Handle && type != Virtual) { /* a user's subclass: NumPy's array with our fields, which are not used */
        const Py_ssize_t ours[] = {host_at, root_at, value_at, path_at, seen_at};
        for (int i = 0; i < 5; i++)
            Py_CLEAR(SLOT(h, ours[i]));
        Host->tp_dealloc(h);
        Py_DECREF(type); /* the interpreter leaves that to the first class that is not its own */
        return;
    }
    PyObject *array = FIELD(h, host_at);
    char kind = array != NULL && Py_IS_TYPE(array, Host) ? ((Dtype *)((Array *)array)->descr)->kind : 'O';
    if (FIELD(h, value_at) == NULL && FIELD(h, path_at) == NULL && FIELD(h, seen_at) == NULL && kind != 'O' && kind != 'V') {
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

/* An instance of one of our classes; a host array's fields are still to be set. */
static inline PyObject *instance(PyTypeObject *type, Gone *from) {
    if (from->n == 0)
        return PyType_GenericAlloc(type, 0);
    PyObject *h = from->kept[--from->n];
    Py_SET_REFCNT(h, 1);
    PyObject_GC_Track(h);
    return h;
}

static PyObject *new_virtual(void) { return instance(Virtual, &gone_virtual); }

/* tp_alloc, which NumPy calls too. */
static PyObject *handle_alloc(PyTypeObject *type, Py_ssize_t n) {
    if (type == Virtual)
        return new_virtual();
    PyObject *h = type == Handle ? instance(Handle, &gone[0]) : PyType_GenericAlloc(type, n);
    if (h != NULL && type == Handle)
        memset((char *)h + sizeof(PyObject), 0, sizeof(Array) - sizeof(PyObject));
    return h;
}

/* A new host array of ours on NumPy's (whose reference it takes): a view of `root`'s memory, or a root where that is None. */
static PyObject *handle_on(PyObject *array, PyObject *root) {
    Array *from = (Array *)array;
    int nd = from->nd;
    PyObject *h = instance(Handle, &gone[nd <= 2 ? nd : 0]);
    Array *to = (Array *)h;
    if (h != NULL && nd > 0 && to->dimensions == NULL && (to->dimensions = PyMem_RawMalloc(2 * nd * sizeof(Py_ssize_t))) == NULL) {
        PyErr_NoMemory();
        Py_CLEAR(h);
    }
    if (h == NULL) {
        Py_DECREF(array);
        return NULL;
    }
    to->strides = to->dimensions + nd;
    for (int i = 0; i < nd; i++)
        to->dimensions[i] = from->dimensions[i], to->strides[i] = from->strides[i];
    to->nd = nd, to->data = from->data, to->flags = from->flags & ~(NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEBACKIFCOPY);
    to->base = Py_NewRef(array), to->descr = (PyArray_Descr *)Py_NewRef(from->descr);
    SLOT(h, host_at) = array, SLOT(h, root_at) = Py_NewRef(root);
    if (Py_IS_TYPE(root, Handle))
        chain_view(h, root);
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
        PyObject *root = FIELD(s, root_at);
        return handle_on(out, root == NULL || root == Py_None ? s : root);
    }
    return NULL;
}
