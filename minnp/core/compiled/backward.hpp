/* The walk backwards through a tape, node by node: tape.sweep. */
#pragma once
#include "small_arrays.hpp"
#include "tape.hpp"

static inline PyObject *part(PyObject *node, int at) { return PyTuple_GET_ITEM(node, at); }
static inline Ref shape_of_node(PyObject *node) {
    if (!is_number_node(node))
        return borrow(part(node, NODE_SHAPE));
    PyObject *shape = ((NumberNode *)node)->shape;
    return shape != nullptr ? borrow(shape) : made(PyTuple_New(0));
}
static inline PyObject *dtype_of_node(PyObject *node) {
    return is_number_node(node) ? dtype_of_number_node(node) : part(node, NODE_DTYPE);
}
static inline Ref meta_of_node(PyObject *node) {
    Ref shape = shape_of_node(node);
    return meta_of(shape, dtype_of_node(node));
}

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
    PyObject *dtype = dtype_of_node(node);
    Ref shape = shape_of_node(node);
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
    PyObject *in_place = slot(row, row_accumulate), *g = given.items[0], *dtype = dtype_of_node(source);
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
            key |= 4 << (i - 2);
        else if (is_host(x) ? descr(x) != descr(g) || !same_shape(x, g)
                            : !Py_IS_TYPE(x, Meta) || slot(x, meta_dtype) != dtype_of_array(g) || !has_shape(g, slot(x, meta_shape)))
            return -1;
    }
    return key;
}

/* The formula of a rule (transforms/formulas.py); nothing where it has none. */
static Ref formula_of(PyObject *row, PyObject *rule, int key) {
    Ref number_of_key = number(key);
    PyObject *known = found(slot(row, row_formulas), rule), *plan = known != nullptr ? found(known, number_of_key) : nullptr;
    if (plan == nullptr) {
        call(formula, row, rule, number_of_key);
        plan = found(found(slot(row, row_formulas), rule), number_of_key);
    }
    return plan == Py_None ? Ref() : borrow(plan);
}

/* What a rule makes of what it is given, by its formula; nothing where it has none. */
static Ref by_formula(PyObject *row, PyObject *rule, int key, const Arguments &given) {
    Ref plan = formula_of(row, rule, key);
    if (!plan)
        return {};
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

/* ------------------------------------------------------------------ nodes of numbers */
/* A cotangent that is a number of this type, in `to`. */
static inline bool number_of(PyObject *g, int type, Number &to) {
    if (!Py_IS_TYPE(g, small_dtypes[type]->typeobj))
        return false;
    copy_scalar(&to, in_scalar(g), item_size(type));
    return true;
}

/* A step of a formula of numbers; false where NumPy, or the rule, must do it. */
static inline bool number_step(PyObject *kernel, const Number **operands, Py_ssize_t n, int type, Number &out) {
    if (is_small(kernel))
        return number_result(kernel, operands, n, type, out) == type;
    auto is_zero = [=](const Number &x) { return type == DOUBLE ? x.d == 0 : x.f == 0; };
    auto is_finite = [=](const Number &x) { return type == DOUBLE ? std::isfinite(x.d) : std::isfinite(x.f); };
    Number one;
    type == DOUBLE ? void(one.d = 1) : void(one.f = 1);
    int which = 0;
    while (which < 3 && kernel != strong_functions[which])
        which++;
    if (which == 3)
        return false;
    const Number *a = operands[0], *b = operands[1];
    if (which == 2 && !is_finite(*a) && is_zero(*b))
        a = &one;
    if (is_zero(*a) && (which == 1 ? is_zero(*b) || !(is_finite(*b) || (type == DOUBLE ? b->d == b->d : b->f == b->f)) : !is_finite(*b)))
        b = &one;
    const Number *both[] = {a, b};
    return number_result(weak_functions[which], both, 2, type, out) == type;
}

/* What a rule makes of numbers, by its formula. `values`: g, y, the arguments. */
static bool number_by_formula(PyObject *row, PyObject *rule, int key, const Number *given, Py_ssize_t n, int type, Number &out) {
    Ref plan = formula_of(row, rule, key);
    if (!plan)
        return false;
    PyObject *constants = part(plan, 0), *steps = part(plan, 1);
    Number values[3 * MOST];
    for (Py_ssize_t i = 0; i < n; i++)
        values[i] = given[i];
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++) {
        Number taken;
        Given kind;
        if (!take_number(PyTuple_GET_ITEM(constants, i), type, taken, kind))
            return false;
        values[n++] = as_taken(taken, kind, type);
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(steps); i++) {
        PyObject *step = PyTuple_GET_ITEM(steps, i);
        Py_ssize_t operands = PyTuple_GET_SIZE(step) - 1;
        const Number *x[2];
        if (operands > 2)
            return false;
        for (Py_ssize_t k = 0; k < operands; k++)
            x[k] = &values[integer(PyTuple_GET_ITEM(step, k + 1))];
        if (!number_step(PyTuple_GET_ITEM(step, 0), x, operands, type, values[n++]))
            return false;
    }
    return out = values[integer(part(plan, 2))], true;
}

/* Whether node p has a number of this type, as whose cotangent one may be added. */
static inline bool has_number(PyObject *nodes, Py_ssize_t p, int type) {
    PyObject *node = PyList_GET_ITEM(nodes, p);
    if (is_number_node(node))
        return ((NumberNode *)node)->type == type && ((NumberNode *)node)->shape == nullptr;
    PyObject *shape = part(node, NODE_SHAPE);
    return PyTuple_CheckExact(shape) && PyTuple_GET_SIZE(shape) == 0 && part(node, NODE_DTYPE) == (PyObject *)small_dtypes[type];
}

/* `accumulate` of a number. */
static void accumulate_number(PyObject *nodes, PyObject *grads, PyObject *owned, PyObject *row, Py_ssize_t i, Py_ssize_t p,
                              const Number &x, int type) {
    if (has_number(nodes, p, type)) {
        PyObject *old = PyList_GET_ITEM(grads, p);
        Number sum;
        if (old == Py_None)
            return check(PyList_SetItem(grads, p, number_object(x, type).release()));
        if (number_of(old, type, sum)) {
            type == DOUBLE ? void(sum.d += x.d) : void(sum.f += x.f);
            if (type == DOUBLE ? std::isfinite(sum.d) : std::isfinite(sum.f)) /* else NumPy may warn */
                return check(PyList_SetItem(grads, p, number_object(sum, type).release()));
        }
    }
    Ref source = borrow(PyList_GET_ITEM(nodes, p)), at = number(p);
    accumulate(grads, owned, at, fitted(number_object(x, type), source, row, i));
}

/* The arrays that parts of a cotangent were added to last: what `buffer_of_parts` gave for a node, which holds as long as the
   array that owns the memory is still the cotangent, of node `root`. */
struct Parts {
    static constexpr int PLACES = 8;
    struct Place {
        Py_ssize_t node = -1, root;
        Ref buffer, owner;
    } places[PLACES];

    /* The array for node p (borrowed); null where there is none for parts alone. */
    PyObject *of(PyObject *nodes, PyObject *grads, PyObject *owned, Py_ssize_t p) {
        Place &place = places[p % PLACES];
        if (place.node == p && PyList_GET_ITEM(grads, place.root) == place.owner.get() &&
            (place.root == p || PyList_GET_ITEM(grads, p) == Py_None))
            return place.buffer;
        Ref at = number(p);
        if (beyond_host(PyList_GET_ITEM(grads, p)))
            return nullptr;
        place.node = -1, place.buffer = call(buffer_of_parts, nodes, grads, owned, at), place.root = p;
        if (!is_host(place.buffer.get()))
            return nullptr;
        while (PyList_GET_ITEM(grads, place.root) == Py_None) {
            Ref parents = is_number_node(PyList_GET_ITEM(nodes, place.root)) ? Ref() : borrow(part(PyList_GET_ITEM(nodes, place.root), NODE_PARENTS));
            Py_ssize_t q = parents && PySequence_Fast_GET_SIZE(parents.get()) > 0 ? integer(PySequence_Fast_GET_ITEM(parents.get(), 0)) : -1;
            if (q < 0 || q >= place.root)
                return place.buffer; /* not kept */
            place.root = q;
        }
        place.owner = borrow(PyList_GET_ITEM(grads, place.root));
        if (last_base(place.buffer) == last_base(place.owner))
            place.node = p;
        return place.buffer;
    }
};

static inline void add_number(char *p, const Number &x, int type) {
    if (type == DOUBLE)
        *(double *)p += x.d;
    else
        *(float *)p += x.f;
}

/* What `step_back` and `written_back` do, for a node of numbers; false where one of them must, on the node as a tuple. */
static bool number_back(PyObject *nodes, PyObject *grads, PyObject *owned, Py_ssize_t n, PyObject *g, Parts &parts) {
    Ref held = borrow(PyList_GET_ITEM(nodes, n));
    NumberNode *node = (NumberNode *)held.get();
    PyObject *rules = slot(node->row, row_vjp);
    int type = node->type;
    Number values[4];
    if (busy())
        return false;
    for (int i = 0; i < node->n; i++)
        if (node->parents[i] >= n)
            fail(PyExc_IndexError, "a node's parent comes after it");
    if (node->row == write_row) {
        Py_ssize_t p = node->parents[0], q = node->parents[1];
        if (!is_host(g) || type_of_elements(g) != type || !(fields(g)->flags & NPY_ARRAY_ALIGNED) ||
            number_at(g, node->index) == nullptr || PyList_GET_ITEM(grads, p) != Py_None)
            return false;
        Ref at = number(n), kept = borrow(g), array = number(p);
        int ours = PySet_Contains(owned, at);
        check(ours);
        if (!ours)
            kept = made(PyArray_NewCopy((PyArrayObject *)g, NPY_KEEPORDER));
        check(PySet_Add(owned, array));
        char *element = number_at(kept, node->index);
        Number part;
        copy_scalar(&part, element, item_size(type));
        memset(element, 0, item_size(type));
        check(PyList_SetItem(grads, p, kept.release()));
        check(PyList_SetItem(grads, n, Py_NewRef(Py_None)));
        if (q >= 0)
            accumulate_number(nodes, grads, owned, write_row, 1, q, part, type);
        return true;
    }
    if (!number_of(g, type, values[0]))
        return false;
    if (node->row == getitem_row) {
        Py_ssize_t p = node->parents[0];
        PyObject *buffer = dtype_of_node(PyList_GET_ITEM(nodes, p)) == dtype_of_number_node(held) ? parts.of(nodes, grads, owned, p) : nullptr;
        char *element = buffer != nullptr && type_of_elements(buffer) == type && (fields(buffer)->flags & NPY_ARRAY_ALIGNED) &&
                                (fields(buffer)->flags & NPY_ARRAY_WRITEABLE)
                            ? number_at(buffer, node->index)
                            : nullptr;
        if (element == nullptr)
            return false;
        add_number(element, values[0], type);
        check(PyList_SetItem(grads, n, Py_NewRef(Py_None)));
        return true;
    }
    if (!PyList_CheckExact(rules) || PyList_GET_SIZE(rules) < node->n)
        return false;
    int key = 2 | (type == FLOAT);
    Number made_of[2];
    values[1] = node->y;
    for (int i = 0; i < node->n; i++) {
        values[2 + i] = as_taken(node->arguments[i], node->given[i], type);
        if (node->given[i] >= Given::floats)
            key |= 4 << i;
    }
    for (int i = 0; i < node->n; i++)
        if (node->parents[i] >= 0 &&
            !number_by_formula(node->row, PyList_GET_ITEM(rules, i), key, values, 2 + node->n, type, made_of[i]))
            return false;
    check(PyList_SetItem(grads, n, Py_NewRef(Py_None)));
    for (int i = 0; i < node->n; i++)
        if (node->parents[i] >= 0)
            accumulate_number(nodes, grads, owned, node->row, i, node->parents[i], made_of[i], type);
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
        Parts parts;
        for (; n >= least && n < PyList_GET_SIZE(nodes) && n < PyList_GET_SIZE(grads); n--) {
            Ref g = borrow(PyList_GET_ITEM(grads, n));
            if (g.get() == Py_None)
                continue;
            if (is_number_node(PyList_GET_ITEM(nodes, n))) {
                if (number_back(nodes, grads, owned, n, g, parts))
                    continue;
                check(PyList_SetItem(nodes, n, whole_node(PyList_GET_ITEM(nodes, n)).release()));
            }
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
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>; /* of its width, so that the loops are vectors */
    constexpr Bits top = Bits(1) << (8 * sizeof(T) - 1), last = Bits(1) << (std::numeric_limits<T>::digits - 1);
    constexpr Bits infinite = top - last; /* the bits of infinity; greater ones are NaN's */
    Bits found = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        Bits x;
        memcpy(&x, data + i * sizeof(T), sizeof(T));
        x &= ~top;
        found |= divides ? (x - 1) | (infinite - x) : x + last;
    }
    return !(found & top);
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
