/* The walk backwards through a tape, node by node: tape.sweep. */
#pragma once
#include "tape.hpp"

static inline PyObject *part(PyObject *node, int at) { return PyTuple_GET_ITEM(node, at); }
static inline Ref meta_of_node(PyObject *node) { return meta_of(part(node, NODE_SHAPE), part(node, NODE_DTYPE)); }

/* cotangents.whole: add what a node's rules are given after the cotangent, y and the arrays. */
static void add_whole(PyObject *nodes, PyObject *node, Arguments &given) {
    PyObject *parents = part(node, NODE_PARENTS), *arrays = part(node, NODE_ARRAYS), *y = part(node, NODE_Y);
    bool none = arrays == Py_None, fills = none || !saves_arguments(part(node, NODE_ROW));
    given.add(y == Py_None ? meta_of_node(node) : borrow(y));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(none ? parents : arrays); i++) {
        PyObject *a = none ? Py_None : PySequence_Fast_GET_ITEM(arrays, i);
        Py_ssize_t p = a == Py_None && fills ? integer(PySequence_Fast_GET_ITEM(parents, i)) : -1;
        if (p >= PyList_GET_SIZE(nodes))
            fail(PyExc_IndexError, "a node's parent is not on the tape");
        given.add(p < 0 ? borrow(a) : meta_of_node(PyList_GET_ITEM(nodes, p)));
    }
}

/* Whether a cotangent has this shape. */
static bool has_shape(PyObject *g, PyObject *shape) {
    if (!is_host(g)) {
        Ref its = attribute(g, word_shape);
        int same = PyObject_RichCompareBool(its, shape, Py_EQ);
        return check(same), same;
    }
    if (fields(g)->nd != PyTuple_GET_SIZE(shape))
        return false;
    for (int i = 0; i < fields(g)->nd; i++)
        if (fields(g)->dimensions[i] != PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)))
            return false;
    return true;
}

/* A cotangent in the shape and the dtype of a node, as argument i of a row. */
static Ref fitted(Ref g, PyObject *node, PyObject *row, Py_ssize_t i) {
    PyObject *shape = part(node, NODE_SHAPE), *dtype = part(node, NODE_DTYPE);
    if (!has_shape(g, shape))
        g = call(unbroadcast, g, shape);
    if (is_host(g.get()) && dtype_of_array(g) == dtype)
        return g;
    Ref its = attribute(g, word_dtype);
    int same = its.get() == dtype ? 1 : PyObject_RichCompareBool(its, dtype, Py_EQ);
    check(same);
    return same ? g : call(restore, g, dtype, row, number(i));
}

/* Whether x is a tracer or a buffer, or a tuple or list in which one is. */
static bool beyond_host(PyObject *x) {
    if (Py_IS_TYPE(x, Tracer) || Py_IS_TYPE(x, Buffer))
        return true;
    for (Py_ssize_t i = 0; is_list(x) && i < PySequence_Fast_GET_SIZE(x); i++)
        if (beyond_host(PySequence_Fast_GET_ITEM(x, i)))
            return true;
    return false;
}

/* state.watched: whether a capture sees every call of this context. */
static bool watched() {
    PyObject *watching = nullptr;
    if (!busy())
        return false;
    check(PyContextVar_Get(capture, nullptr, &watching));
    Ref owned(watching);
    return watching != Py_None;
}

/* cotangents.accumulate: grads[p] += g, in place where the array is ours. */
static void accumulate(PyObject *grads, PyObject *owned, PyObject *p, Ref g) {
    Py_ssize_t at = integer(p);
    Ref old = borrow(PyList_GET_ITEM(grads, at));
    if (old.get() == Py_None) {
        check(PyList_SetItem(grads, at, g.release()));
        return;
    }
    int in_place = beyond_host(g) || !is_host(old.get()) ? 0 : PySet_Contains(owned, p);
    check(in_place);
    Ref total = made(in_place ? PyNumber_InPlaceAdd(old, g) : PyNumber_Add(old, g));
    check(is_host(total.get()) ? PySet_Add(owned, p) : PySet_Discard(owned, p));
    check(PyList_SetItem(grads, at, total.release()));
}

/* What GradTrace.backward does with a row whose cotangents are added in place; false where they are the rule's to deal
   with. `given`: g, y and the arrays. */
static bool accumulated_in_place(PyObject *row, PyObject *grads, PyObject *owned, PyObject *p, PyObject *source,
                                 const Arguments &given, PyObject *params) {
    PyObject *in_place = slot(row, row_accumulate), *g = given.items[0], *dtype = part(source, NODE_DTYPE);
    bool fits = is_host(g) ? dtype_of_array(g) == dtype : Py_IS_TYPE(g, ((PyArray_Descr *)dtype)->typeobj); /* or a number */
    if (in_place == Py_None || !fits || watched())
        return false;
    PyObject *index = found(params, word_index);
    if (index != nullptr && beyond_host(index))
        return false;
    for (Py_ssize_t i = 2; i < given.n; i++)
        if (beyond_host(given.items[i]))
            return false;
    Py_ssize_t at = integer(p);
    Ref old = borrow(PyList_GET_ITEM(grads, at));
    int ours = PySet_Contains(owned, p);
    check(ours);
    if (!ours) {
        if (beyond_host(old))
            return false;
        old = old.get() == Py_None ? call(zeros, part(source, NODE_SHAPE), part(source, NODE_DTYPE)) : call(numpy_array, old);
        check(PyList_SetItem(grads, at, Py_NewRef(old)));
        check(PySet_Add(owned, p));
    }
    if (row == getitem_row && PyDict_GET_SIZE(params) == 1 && index != nullptr && simple_index(index)) {
        Ref view = made(PyObject_GetItem(old, index)), sum = made(PyNumber_InPlaceAdd(view, g));
        if (sum.get() != view.get() || !is_host(sum.get())) /* a number */
            check(PyObject_SetItem(old, index, sum));
        return true;
    }
    PyObject *arguments[MOST + 2] = {old, g};
    for (Py_ssize_t i = 2; i < given.n; i++)
        arguments[i] = given.items[i];
    made(PyObject_VectorcallDict(in_place, arguments, given.n, params));
    return true;
}

/* Whether each parent that is traced has a rule to call: one of a list, or a function that is told which parent it is. */
static bool has_rules(PyObject *rules, PyObject *parents) {
    if (!PyList_CheckExact(rules))
        return PyFunction_Check(rules);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(parents); i++)
        if (is_traced(parents, i) && (i >= PyList_GET_SIZE(rules) || !PyCallable_Check(PyList_GET_ITEM(rules, i))))
            return false;
    return true;
}

/* Whether `step_back` knows how: one result, a rule for each argument, and not a write. */
static bool is_simple(PyObject *node) {
    PyObject *row = part(node, NODE_ROW), *parents = part(node, NODE_PARENTS), *arrays = part(node, NODE_ARRAYS);
    return Py_IS_TYPE(row, Row) && row != write_row && PyDict_CheckExact(part(node, NODE_PARAMS)) &&
           part(node, NODE_SHAPE) != Py_None && PySequence_Fast_GET_SIZE(parents) < MOST - 2 &&
           (arrays == Py_None || PySequence_Fast_GET_SIZE(arrays) < MOST - 2) && has_rules(slot(row, row_vjp), parents);
}

/* The one function that steps backwards: the cotangent g of node n to those of its parents. */
static void step_back(PyObject *nodes, PyObject *grads, PyObject *owned, Py_ssize_t n, Ref g) {
    Ref node = borrow(PyList_GET_ITEM(nodes, n)); /* a rule that writes makes the tape replace nodes */
    PyObject *row = part(node, NODE_ROW), *params = part(node, NODE_PARAMS), *parents = part(node, NODE_PARENTS);
    PyObject *rules = slot(row, row_vjp), *keywords = PyDict_GET_SIZE(params) != 0 ? params : nullptr;
    Arguments given;
    given.add(std::move(g));
    add_whole(nodes, node, given);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(parents); i++) {
        PyObject *at = PySequence_Fast_GET_ITEM(parents, i);
        Py_ssize_t p = integer(at);
        if (p < 0)
            continue;
        if (p >= n)
            fail(PyExc_IndexError, "a node's parent comes after it");
        Ref source = borrow(PyList_GET_ITEM(nodes, p)), out;
        if (i == 0 && accumulated_in_place(row, grads, owned, at, source, given, params))
            continue;
        if (PyList_CheckExact(rules))
            out = made(PyObject_VectorcallDict(PyList_GET_ITEM(rules, i), given.items, given.n, keywords));
        else {
            Ref which = number(i);
            PyObject *arguments[MOST + 1] = {which};
            memcpy(arguments + 1, given.items, given.n * sizeof(PyObject *));
            out = made(PyObject_VectorcallDict(rules, arguments, given.n + 1, keywords));
            if (out.get() == Py_None)
                continue;
        }
        accumulate(grads, owned, at, fitted(std::move(out), source, row, i));
    }
}

/* sweep(nodes, grads, owned, n, least): GradTrace.backward for the nodes from n down that are simple; the number of the first
   that is not, or least - 1. */
static PyObject *sweep(PyObject *, PyObject *args) {
    return guarded([=] {
        PyObject *nodes, *grads, *owned;
        Py_ssize_t n, least;
        if (!PyArg_ParseTuple(args, "O!O!O!nn", &PyList_Type, &nodes, &PyList_Type, &grads, &PySet_Type, &owned, &n, &least))
            throw Raised{};
        for (; n >= least && n < PyList_GET_SIZE(nodes) && n < PyList_GET_SIZE(grads); n--) {
            Ref g = borrow(PyList_GET_ITEM(grads, n));
            if (g.get() == Py_None)
                continue;
            if (!is_simple(PyList_GET_ITEM(nodes, n)))
                break;
            check(PyList_SetItem(grads, n, Py_NewRef(Py_None)));
            step_back(nodes, grads, owned, n, std::move(g));
        }
        return number(n);
    });
}
