/* Single numbers: where they lie in arrays, and what a gradient's tape keeps of operations on them. */
#pragma once
#include "device.hpp"
#include "small_arrays.hpp"

/* ------------------------------------------------------------------ where numbers lie in arrays
   Loops over elements spend most of their time in NumPy's finding out what an index is. A number that one integer for each
   axis picks is read and written where it lies. */
static inline void *in_scalar(PyObject *x) { return (char *)x + sizeof(PyObject); } /* of NumPy's classes, and of float */

/* Where x is an integer within an axis of n, perhaps a negative one, its position; else -1. */
static inline Py_ssize_t position(PyObject *x, Py_ssize_t n) {
    Py_ssize_t i;
    if (PyLong_CheckExact(x)) {
        int beyond;
        i = (Py_ssize_t)PyLong_AsLongLongAndOverflow(x, &beyond);
        if (beyond)
            return -1;
    } else if (Py_IS_TYPE(x, Int64))
        i = (Py_ssize_t) * (int64_t *)in_scalar(x);
    else
        return -1;
    i = i < 0 ? i + n : i;
    return i < n ? i : -1;
}

/* The memory of the one number that an index picks; null for another index. */
static inline char *number_at(PyObject *a, PyObject *index) {
    bool tuple = PyTuple_CheckExact(index);
    Py_ssize_t n = tuple ? PyTuple_GET_SIZE(index) : 1;
    char *p = fields(a)->data;
    if (n != fields(a)->nd || n == 0)
        return nullptr;
    for (Py_ssize_t k = 0; k < n; k++) {
        Py_ssize_t i = position(tuple ? PyTuple_GET_ITEM(index, k) : index, fields(a)->dimensions[k]);
        if (i < 0)
            return nullptr;
        p += i * fields(a)->strides[k];
    }
    return p;
}

/* The bytes of a number of array a where it lies as in an instance of NumPy's class; 0 where it does not, or is rare. */
static inline int scalar_size(PyObject *a) {
    PyArray_Descr *d = descr(a);
    if (!(fields(a)->flags & NPY_ARRAY_ALIGNED) || !PyArray_ISNBO(d->byteorder))
        return 0;
    switch (d->type_num) {
    case NPY_BYTE: case NPY_UBYTE: return 1;
    case NPY_SHORT: case NPY_USHORT: return 2;
    case NPY_FLOAT: case NPY_INT: case NPY_UINT: return 4;
    case NPY_LONG: case NPY_ULONG: return sizeof(long);
    case NPY_DOUBLE: case NPY_LONGLONG: case NPY_ULONGLONG: return 8;
    default: return 0;
    }
}

static inline void copy_scalar(void *to, const void *from, int size) {
    switch (size) { /* known to the compiler */
    case 1: memcpy(to, from, 1); break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    default: memcpy(to, from, 8);
    }
}

/* The number at p in array a, NumPy's; nothing where NumPy must make it. */
static inline Ref read_scalar(PyObject *a, const char *p) {
    int size = scalar_size(a);
    if (size == 0)
        return descr(a)->type_num == NPY_BOOL ? borrow(*p != 0 ? true_ : false_) : Ref();
    PyTypeObject *type = descr(a)->typeobj;
    Ref x = made(type->tp_alloc(type, 0));
    copy_scalar(in_scalar(x), p, size);
    return x;
}

/* Whether v was written at p in array a: where it is of the array's dtype, or Python's number of that kind. */
static inline bool write_scalar(PyObject *a, char *p, PyObject *v) {
    int size = scalar_size(a), beyond;
    PyArray_Descr *d = descr(a);
    if (size == 0 || !may_write(a))
        return false;
    if (Py_IS_TYPE(v, d->typeobj) || (d->type_num == NPY_DOUBLE && PyFloat_CheckExact(v)))
        copy_scalar(p, in_scalar(v), size);
    else if (d->typeobj == Int64 && PyLong_CheckExact(v)) {
        int64_t x = PyLong_AsLongLongAndOverflow(v, &beyond);
        if (beyond)
            return false;
        copy_scalar(p, &x, size);
    } else
        return false;
    return true;
}

/* ------------------------------------------------------------------ nodes of numbers
   A loop over elements makes a node for each operation, so those of NumPy's float64 and float32 have a short form: without
   tuples, dicts or objects for the numbers. What reads it as the tuple that other nodes are gets that tuple. */
enum { NODE_ROW, NODE_PARAMS, NODE_PARENTS, NODE_ARRAYS, NODE_Y, NODE_SHAPE, NODE_DTYPE };
enum class Given : unsigned char { traced, numpys, floats, integers };

union Number { /* as a ufunc's loop takes it */
    double d;
    float f;
};

struct NumberNode {
    PyObject_HEAD
    PyObject *row, *index, *shape; /* of a read and a write: where; of a write: the array's */
    Py_ssize_t parents[2];
    Number y, arguments[2];
    unsigned char n, type; /* how many arguments; DOUBLE or FLOAT */
    Given given[2];
};
static PyTypeObject NumberNodeType = {PyVarObject_HEAD_INIT(nullptr, 0)};
static inline bool is_number_node(PyObject *x) { return Py_IS_TYPE(x, &NumberNodeType); }

/* Which of its arguments and results a row's rules read: "in", "out", "both", "". */
static inline Py_ssize_t saves(PyObject *row) { return PyUnicode_GET_LENGTH(slot(row, row_saves)); }
static inline bool saves_arguments(PyObject *row) { return saves(row) == 2 || saves(row) == 4; }
static inline bool saves_result(PyObject *row) { return saves(row) >= 3; }

/* Of which type a number of NumPy's is: DOUBLE or FLOAT; -1: another. NumPy 1 computes with a float32 and Python's numbers in
   float64. */
static inline int type_of_number(PyObject *x) {
    if (Py_IS_TYPE(x, small_dtypes[DOUBLE]->typeobj))
        return DOUBLE;
    return Py_IS_TYPE(x, small_dtypes[FLOAT]->typeobj) && numpy_2() ? FLOAT : -1;
}

/* Whether arrays of this dtype hold numbers of a type: as type_of_number. */
static inline int type_of_elements(PyObject *a) {
    return descr(a) == small_dtypes[DOUBLE] ? DOUBLE : descr(a) == small_dtypes[FLOAT] && numpy_2() ? FLOAT : -1;
}

static inline Ref number_object(const Number &x, int type) {
    PyTypeObject *its = small_dtypes[type]->typeobj;
    Ref out = made(its->tp_alloc(its, 0));
    copy_scalar(in_scalar(out), &x, item_size(type));
    return out;
}

/* An argument of an operation on numbers of a type as a node keeps it: one of NumPy's, or one of Python's, as a double, that
   is the same beside those. Whether x is one. */
static inline bool take_number(PyObject *x, int type, Number &to, Given &given) {
    if (Py_IS_TYPE(x, small_dtypes[type]->typeobj)) {
        copy_scalar(&to, in_scalar(x), item_size(type));
        return given = Given::numpys, true;
    }
    Side side;
    if (!side_of_number(x, type, side))
        return false;
    given = PyFloat_CheckExact(x) ? Given::floats : Given::integers;
    to.d = given == Given::floats ? PyFloat_AS_DOUBLE(x) : (double)PyLong_AsLong(x);
    return true;
}

static inline Number as_taken(const Number &x, Given given, int type) {
    Number out = x;
    if (type == FLOAT && given >= Given::floats)
        out.f = (float)x.d;
    return out;
}

/* f(a), f(a, b) of single numbers, in `out`, and the result's type: that of the operands, or BOOL, for which out.d is 0 or 1.
   -1 where f has no such loop, or raises one of the processor's flags: NumPy must do it. */
static inline int number_result(PyObject *f, const Number *const *operands, Py_ssize_t n, int type, Number &out) {
    const PyUFuncObject *u = (PyUFuncObject *)f;
    Known *known = n == u->nin ? loop_of(u, type) : nullptr;
    if (known == nullptr)
        return -1;
    int i = known->loop, result = u->types[i * u->nargs + u->nin];
    if (result != small_dtypes[type]->type_num && result != NPY_BOOL)
        return -1;
    Number memory;
    char *data[] = {(char *)operands[0], n == 1 ? (char *)&memory : (char *)operands[1], (char *)&memory};
    npy_intp steps[] = {0, 0, 0}, count = 1;
    if (raised_flags())
        feclearexcept(FLAGS);
    u->functions[i](data, &count, steps, u->data != nullptr ? u->data[i] : nullptr);
    if (PyErr_Occurred() != nullptr)
        return PyErr_Clear(), -1; /* it will again, in NumPy's words */
    if (raised_flags())
        return -1;
    if (result == NPY_BOOL)
        return out.d = *(char *)&memory != 0, BOOL;
    return out = memory, type;
}

static Ref shape_of(PyObject *z) {
    int nd = is_host(z) ? fields(z)->nd : 0;
    Ref shape = made(PyTuple_New(nd));
    for (int i = 0; i < nd; i++)
        PyTuple_SET_ITEM(shape.get(), i, number(fields(z)->dimensions[i]).release());
    return shape;
}

static NumberNode *number_node(PyObject *row, int type) {
    NumberNode *node = PyObject_New(NumberNode, &NumberNodeType);
    if (node == nullptr)
        throw Raised{};
    node->row = Py_NewRef(row), node->index = node->shape = nullptr;
    node->n = 0, node->type = type;
    return node;
}

static void number_node_dealloc(PyObject *x) {
    NumberNode *node = (NumberNode *)x;
    Py_DECREF(node->row);
    Py_XDECREF(node->index);
    Py_XDECREF(node->shape);
    PyObject_Free(x);
}

/* An argument of a node, as it was given. */
static Ref argument_of(const NumberNode *node, Py_ssize_t i) {
    const Number &x = node->arguments[i];
    switch (node->given[i]) {
    case Given::floats: return made(PyFloat_FromDouble(x.d));
    case Given::integers: return number((Py_ssize_t)x.d);
    default: return number_object(x, node->type);
    }
}

static inline PyObject *dtype_of_number_node(PyObject *x) { return (PyObject *)small_dtypes[((NumberNode *)x)->type]; }

/* The parameters of x[index] = v, of an array that is no view. */
static Ref params_of_write(PyObject *index) {
    Ref params = made(PyDict_New()), nothing = made(PyTuple_New(0));
    check(PyDict_SetItem(params, word_steps, nothing));
    check(PyDict_SetItem(params, word_index, index));
    check(PyDict_SetItem(params, word_layout, Py_None));
    return params;
}

/* A node of numbers as the tuple that other nodes are. */
static Ref whole_node(PyObject *x) {
    NumberNode *node = (NumberNode *)x;
    PyObject *row = node->row;
    Ref params = borrow(no_params), arrays = borrow(Py_None), y = borrow(Py_None), parents = made(PyTuple_New(node->n));
    Ref nothing = made(PyTuple_New(0)), shape = borrow(node->shape != nullptr ? node->shape : nothing.get());
    bool all_traced = true;
    for (Py_ssize_t i = 0; i < node->n; i++) {
        PyTuple_SET_ITEM(parents.get(), i, number(node->parents[i]).release());
        all_traced = all_traced && node->parents[i] >= 0;
    }
    if (node->index != nullptr)
        params = row == write_row ? params_of_write(node->index) : params_of(word_index, node->index);
    else if (saves_result(row))
        y = number_object(node->y, node->type);
    bool kept = node->index == nullptr && saves_arguments(row);
    if (kept || !all_traced) {
        arrays = made(PyTuple_New(node->n));
        for (Py_ssize_t i = 0; i < node->n; i++)
            PyTuple_SET_ITEM(arrays.get(), i, (kept || node->parents[i] < 0 ? argument_of(node, i) : borrow(Py_None)).release());
    }
    return tuple_of(row, params, parents, arrays, y, shape, dtype_of_number_node(x));
}

static PyObject *part_of_number_node(PyObject *x, PyObject *at) {
    return guarded([=] {
        Ref whole = whole_node(x);
        return made(PyObject_GetItem(whole, at));
    });
}

static PyObject *parts_of_number_node(PyObject *x) {
    return guarded([=] {
        Ref whole = whole_node(x);
        return made(PyObject_GetIter(whole));
    });
}

static void ready_number_node() {
    static PyMappingMethods parts = {nullptr, part_of_number_node, nullptr};
    NumberNodeType.tp_name = "minnp.core.compiled._fastpath.NumberNode";
    NumberNodeType.tp_basicsize = sizeof(NumberNode);
    NumberNodeType.tp_flags = Py_TPFLAGS_DEFAULT;
    NumberNodeType.tp_dealloc = number_node_dealloc;
    NumberNodeType.tp_as_mapping = &parts;
    NumberNodeType.tp_iter = parts_of_number_node;
    check(PyType_Ready(&NumberNodeType));
}

/* ------------------------------------------------------------------ recording them */
/* Whether a tape follows operations on NumPy's numbers and arrays now, and nothing else does. */
static inline bool is_recording(PyObject *tape) {
    return tape != nullptr && Py_IS_TYPE(tape, Tape) && slot(tape, tape_alive) == Py_True && !busy();
}

/* The tracer of what a new node of a tape computed. */
static Ref traced_by(PyObject *tape, Ref node, Ref value) {
    PyObject *nodes = slot(tape, tape_nodes);
    Ref tracer = made(Tracer->tp_alloc(Tracer, 0)), at = number(PyList_GET_SIZE(nodes));
    check(PyList_Append(nodes, node));
    slot(tracer, tracer_view) = Py_NewRef(Py_None), slot(tracer, tracer_node) = at.release();
    slot(tracer, tracer_trace) = Py_NewRef(tape), slot(tracer, tracer_value) = value.release();
    return tracer;
}

/* `record` where a ufunc's operands are NumPy's numbers, of one type, that a tape follows, and others that are constant; nothing
   where they are anything else. */
static Ref record_numbers(PyObject *row, const Value *values, Py_ssize_t n) {
    PyObject *tape = nullptr, *kernel = slot(row, row_numpy), *rules = slot(row, row_vjp);
    Number arguments[2], out;
    const Number *operands[2];
    Given given[2];
    int type = -1;
    if (n > 2 || slot(row, row_elementwise) != Py_True || slot(row, row_worth) != Py_None || !is_small(kernel))
        return {};
    for (Py_ssize_t i = 0; i < n; i++) {
        if (values[i].kind != Kind::traced)
            continue;
        PyObject *its = slot(values[i].object, tracer_trace), *x = slot(values[i].object, tracer_value);
        if (its == nullptr || x == nullptr || (tape != nullptr && its != tape))
            return {};
        tape = its;
        if (type < 0)
            type = type_of_number(x);
        if (type < 0 || !Py_IS_TYPE(x, small_dtypes[type]->typeobj))
            return {};
        copy_scalar(&arguments[i], in_scalar(x), item_size(type)), given[i] = Given::traced;
    }
    if (!is_recording(tape))
        return {};
    Number taken[2];
    for (Py_ssize_t i = 0; i < n; i++) {
        if (values[i].kind != Kind::traced && !(values[i].kind == Kind::number && take_number(values[i].object, type, arguments[i], given[i])))
            return {};
        taken[i] = as_taken(arguments[i], given[i], type), operands[i] = &taken[i];
    }
    bool constant = PyUnicode_CheckExact(rules);
    int result = constant || PyList_CheckExact(rules) ? number_result(kernel, operands, n, type, out) : -1;
    if (result < 0 || (result == BOOL && !constant))
        return {};
    count_row(row);
    if (constant)
        return result == BOOL ? borrow(out.d != 0 ? true_ : false_) : number_object(out, type);
    NumberNode *node = number_node(row, type);
    Ref owned((PyObject *)node);
    node->n = n, node->y = out;
    for (Py_ssize_t i = 0; i < n; i++) {
        node->arguments[i] = arguments[i], node->given[i] = given[i];
        node->parents[i] = given[i] == Given::traced ? integer(slot(values[i].object, tracer_node)) : -1;
    }
    Ref keeps = borrow(tape);
    return traced_by(tape, owned, number_object(out, type));
}

/* x[index] of an array that a tape follows, where that is one number; else nothing. */
static Ref record_read(PyObject *x, PyObject *index) {
    PyObject *tape = slot(x, tracer_trace), *a = slot(x, tracer_value);
    if (a == nullptr || !is_host(a) || !is_recording(tape))
        return {};
    int type = type_of_elements(a);
    const char *p = type >= 0 && (fields(a)->flags & NPY_ARRAY_ALIGNED) ? number_at(a, index) : nullptr;
    if (p == nullptr)
        return {};
    Number value;
    copy_scalar(&value, p, item_size(type));
    NumberNode *node = number_node(getitem_row, type);
    Ref owned((PyObject *)node), keeps = borrow(tape);
    node->index = Py_NewRef(index), node->n = 1;
    node->parents[0] = integer(slot(x, tracer_node)), node->given[0] = Given::traced;
    count_row(getitem_row);
    return traced_by(tape, owned, number_object(value, type));
}

/* The node of x[index] = v, of an array that a tape follows and a number; nothing where it is more than that. */
static Ref number_written(PyObject *x, PyObject *index, const Value &v) {
    PyObject *a = slot(x, tracer_value), *what = v.kind == Kind::traced ? slot(v.object, tracer_value) : v.object;
    int type = type_of_elements(a);
    Number value;
    Given given;
    if (type < 0 || number_at(a, index) == nullptr || !take_number(what, type, value, given))
        return {};
    NumberNode *node = number_node(write_row, type);
    Ref owned((PyObject *)node);
    node->index = Py_NewRef(index), node->shape = shape_of(a).release(), node->n = 2;
    node->parents[0] = integer(slot(x, tracer_node)), node->given[0] = Given::traced;
    node->arguments[1] = value, node->given[1] = given;
    node->parents[1] = v.kind == Kind::traced ? integer(slot(v.object, tracer_node)) : -1;
    return owned;
}
