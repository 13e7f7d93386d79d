/* The walk backwards through a tape, node by node: tape.sweep. */
#pragma once
#include "small_arrays.hpp"
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
static bool accumulated_in_place(PyObject *row, PyObject *nodes, PyObject *grads, PyObject *owned, PyObject *p,
                                 PyObject *source, const Arguments &given, PyObject *params) {
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
        old = call(buffer_of_parts, nodes, grads, owned, p);
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

/* ------------------------------------------------------------------ rules as formulas: transforms/formulas.py
   Of small arrays of one shape and dtype, and of Python's numbers. */
static PyObject *strong_functions[3]; /* a product or quotient in which a cotangent of 0 gives 0, whatever the slope */
static PyObject *weak_functions[3];   /* the ones without that */

static bool has_nan(PyObject *a) {
    Py_ssize_t n = size_of(a), i = 0;
    if (descr(a) == small_dtypes[DOUBLE])
        while (i < n && !std::isnan(((double *)fields(a)->data)[i]))
            i++;
    else
        while (i < n && !std::isnan(((float *)fields(a)->data)[i]))
            i++;
    return i < n;
}

/* A kernel of one or two operands, or of more. */
static Ref step_of_formula(PyObject *kernel, PyObject *const *given, Py_ssize_t n) {
    if (Ref out = is_small(kernel) ? small_result(kernel, given, n) : Ref())
        return out;
    for (int i = 0; i < 3; i++) /* a zero beside an infinity or a zero raises a flag; only NaN does not */
        if (kernel == strong_functions[i])
            if (Ref out = small_result(weak_functions[i], given, n))
                if (!has_nan(out))
                    return out;
    return made(PyObject_Vectorcall(kernel, given, n, nullptr));
}

/* The key of formulas for what a row's rules are given, g, y and the arrays; -1 where there are none for these. */
static int key_of_formula(PyObject *row, const Arguments &given) {
    PyObject *g = given.items[0];
    if (!is_host(g) || slot(row, row_elementwise) != Py_True || fields(g)->nd == 0 || size_of(g) > LARGEST_OF_FUNCTIONS || busy())
        return -1;
    int key = descr(g) == small_dtypes[FLOAT];
    if (!key && descr(g) != small_dtypes[DOUBLE])
        return -1;
    for (Py_ssize_t i = 1; i < given.n; i++) {
        PyObject *x = given.items[i];
        if (i > 1 && (PyFloat_CheckExact(x) || PyLong_CheckExact(x)))
            key |= 2 << (i - 2);
        else if (is_host(x) ? descr(x) != descr(g) || !same_shape(x, g)
                            : !Py_IS_TYPE(x, Meta) || slot(x, meta_dtype) != dtype_of_array(g) || !has_shape(g, slot(x, meta_shape)))
            return -1;
    }
    return key;
}

/* What a rule makes of what it is given, by its formula; nothing where it has none. */
static Ref by_formula(PyObject *row, PyObject *rule, int key, const Arguments &given) {
    Ref number_of_key = number(key);
    PyObject *known = found(slot(row, row_formulas), rule), *plan = known != nullptr ? found(known, number_of_key) : nullptr;
    if (plan == nullptr) {
        call(formula, row, rule, number_of_key);
        plan = found(found(slot(row, row_formulas), rule), number_of_key);
    }
    if (plan == Py_None)
        return {};
    Ref owned = borrow(plan);
    PyObject *constants = part(plan, 0), *steps = part(plan, 1), *values[3 * MOST], *operands[4];
    Arguments results;
    Py_ssize_t n = 0;
    for (Py_ssize_t i = 0; i < given.n; i++)
        values[n++] = given.items[i];
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++)
        values[n++] = PyTuple_GET_ITEM(constants, i);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(steps); i++) {
        PyObject *step = PyTuple_GET_ITEM(steps, i);
        for (Py_ssize_t k = 1; k < PyTuple_GET_SIZE(step); k++)
            operands[k - 1] = values[integer(PyTuple_GET_ITEM(step, k))];
        results.add(step_of_formula(PyTuple_GET_ITEM(step, 0), operands, PyTuple_GET_SIZE(step) - 1));
        values[n++] = results.items[i];
    }
    return borrow(values[integer(part(plan, 2))]);
}

/* The one function that steps backwards: the cotangent g of node n to those of its parents. */
static void step_back(PyObject *nodes, PyObject *grads, PyObject *owned, Py_ssize_t n, Ref g) {
    Ref node = borrow(PyList_GET_ITEM(nodes, n)); /* a rule that writes makes the tape replace nodes */
    PyObject *row = part(node, NODE_ROW), *params = part(node, NODE_PARAMS), *parents = part(node, NODE_PARENTS);
    PyObject *rules = slot(row, row_vjp), *keywords = PyDict_GET_SIZE(params) != 0 ? params : nullptr;
    Arguments given;
    given.add(std::move(g));
    add_whole(nodes, node, given);
    int key = keywords == nullptr && PyList_CheckExact(rules) ? key_of_formula(row, given) : -1;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(parents); i++) {
        PyObject *at = PySequence_Fast_GET_ITEM(parents, i);
        Py_ssize_t p = integer(at);
        if (p < 0)
            continue;
        if (p >= n)
            fail(PyExc_IndexError, "a node's parent comes after it");
        Ref source = borrow(PyList_GET_ITEM(nodes, p)), out;
        if (i == 0 && accumulated_in_place(row, nodes, grads, owned, at, source, given, params))
            continue;
        if (key >= 0)
            out = by_formula(row, PyList_GET_ITEM(rules, i), key, given);
        if (out)
            ;
        else if (PyList_CheckExact(rules))
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

/* cotangents.split_write, where what was written to is an array and not a view of it: g goes to the array before the write,
   with zeros in the part, and that part of it to what was written. Whether that was done. */
static bool written_back(PyObject *nodes, PyObject *grads, PyObject *owned, Py_ssize_t n, PyObject *g) {
    Ref node = borrow(PyList_GET_ITEM(nodes, n)), cotangent = borrow(g);
    PyObject *params = part(node, NODE_PARAMS), *parents = part(node, NODE_PARENTS), *arrays = part(node, NODE_ARRAYS);
    if (part(node, NODE_ROW) != write_row || !is_host(g) || fields(g)->nd == 0 || watched())
        return false;
    PyObject *steps = found(params, word_steps), *index = found(params, word_index);
    if (index == nullptr || !simple_index(index, true) || steps == nullptr || !PyTuple_CheckExact(steps) ||
        PyTuple_GET_SIZE(steps) != 0 || (arrays != Py_None && beyond_host(arrays)))
        return false;
    PyObject *array = PySequence_Fast_GET_ITEM(parents, 0), *value = PySequence_Fast_GET_ITEM(parents, 1);
    Py_ssize_t p = integer(array), q = integer(value);
    if (p >= n || q >= n)
        fail(PyExc_IndexError, "a node's parent comes after it");
    if (p >= 0 && PyList_GET_ITEM(grads, p) != Py_None)
        return false;
    Ref at = number(n), out;
    int ours = PySet_Contains(owned, at);
    check(ours);
    if (q >= 0) {
        out = made(PyObject_GetItem(g, index));
        if (ours && p >= 0 && is_host(out.get()))
            out = made(PyArray_NewCopy((PyArrayObject *)out.get(), NPY_CORDER));
    }
    if (p >= 0) {
        Ref kept = ours ? borrow(g) : made(PyArray_NewCopy((PyArrayObject *)g, NPY_KEEPORDER)), zero = number(0);
        check(PyObject_SetItem(kept, index, zero));
        check(PyList_SetItem(grads, p, kept.release()));
        check(PySet_Add(owned, array));
    }
    check(PyList_SetItem(grads, n, Py_NewRef(Py_None)));
    if (q >= 0) {
        Ref source = borrow(PyList_GET_ITEM(nodes, q));
        accumulate(grads, owned, value, fitted(std::move(out), source, write_row, 1));
    }
    return true;
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
            PyObject *row = part(PyList_GET_ITEM(nodes, n), NODE_ROW);
            if (Py_IS_TYPE(g.get(), Tracer) && Py_IS_TYPE(row, Row) && slot(row, row_accumulate) != Py_None)
                break; /* a part that an outer tape follows */
            if (!is_simple(PyList_GET_ITEM(nodes, n))) {
                if (written_back(nodes, grads, owned, n, g))
                    continue;
                break;
            }
            check(PyList_SetItem(grads, n, Py_NewRef(Py_None)));
            step_back(nodes, grads, owned, n, std::move(g));
        }
        return number(n);
    });
}

/* ------------------------------------------------------------------ strong zeros */
/* Whether nothing in n numbers makes a zero NaN: a divisor that is zero or NaN, a factor that is infinite or NaN. */
template <class T> static bool none_singular(const char *data, Py_ssize_t n, bool divides) {
    const T *x = (const T *)data;
    bool fine = true;
    if (divides)
        for (Py_ssize_t i = 0; i < n; i++)
            fine &= (x[i] < 0) | (x[i] > 0);
    else
        for (Py_ssize_t i = 0; i < n; i++)
            fine &= std::fabs(x[i]) <= std::numeric_limits<T>::max();
    return fine;
}

static bool is_regular(PyObject *s, bool divides) {
    if (is_host(s)) {
        if (!(fields(s)->flags & NPY_ARRAY_ALIGNED) || !(fields(s)->flags & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS)))
            return false;
        return descr(s) == small_dtypes[DOUBLE]  ? none_singular<double>(fields(s)->data, size_of(s), divides)
               : descr(s) == small_dtypes[FLOAT] ? none_singular<float>(fields(s)->data, size_of(s), divides)
                                                 : false;
    }
    if (!PyFloat_Check(s) && !PyLong_CheckExact(s))
        return false;
    double x = PyFloat_AsDouble(s);
    if (x == -1.0 && PyErr_Occurred())
        return PyErr_Clear(), false;
    return none_singular<double>((const char *)&x, 1, divides);
}

/* A cotangent times, or over, what stands beside it; `general` where a zero may meet something infinite. */
template <bool divides> static PyObject *strong(PyObject *general, PyObject *const *args, Py_ssize_t n) {
    return guarded([=] {
        if (n == 2 && (is_host(args[0]) || PyFloat_Check(args[0])) && is_regular(args[1], divides)) {
            Ref out;
            if (is_host(args[0]) && weak_functions[divides] != nullptr)
                out = small((PyUFuncObject *)weak_functions[divides], args[0], args[1]);
            return out ? std::move(out) : made((divides ? PyNumber_TrueDivide : PyNumber_Multiply)(args[0], args[1]));
        }
        return made(PyObject_Vectorcall(general, args, n, nullptr));
    });
}

/* strong(divides, general): slopes.times or slopes.over, with `general` for what the fast path does not take. */
static PyObject *make_strong(PyObject *, PyObject *args) {
    static PyMethodDef times = {"times", (PyCFunction)(void (*)(void))strong<false>, METH_FASTCALL, nullptr};
    static PyMethodDef over = {"over", (PyCFunction)(void (*)(void))strong<true>, METH_FASTCALL, nullptr};
    int divides;
    PyObject *general;
    if (!PyArg_ParseTuple(args, "pO", &divides, &general))
        return nullptr;
    return PyCFunction_New(divides ? &over : &times, general);
}
