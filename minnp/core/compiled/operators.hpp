/* The slots of operators and comparisons. */
#pragma once
#include "tape.hpp"

struct Operator {
    const char *name;
    size_t at;            /* of the slot in a class's number methods */
    void *fast;           /* what our classes have there */
    void *general;        /* the slot that calls the Python method, where it takes one array */
    PyObject *entry, *reflected_entry;
    PyObject *forward, *reflected; /* the Python methods where there are two operands */
    PyObject *row;
    PyUFuncObject *ufunc; /* what it is of small arrays, or null */
    binaryfunc numpys;    /* NumPy's slot, where it takes two operands */
    Py_ssize_t limit;     /* bytes of an operand from which Python does better */
};

/* Whether NumPy may be given an operand, of fewer bytes than that. */
static INLINE bool is_below(const Value &v, Py_ssize_t limit) {
    return v.kind == Kind::number || (v.kind == Kind::host && (limit == PY_SSIZE_T_MAX || bytes_of(v.object) < limit));
}

/* Whether a ** w is a square or a root, which takes NumPy no longer than a product. */
static bool is_short_power(PyObject *w) {
    int beyond = 0;
    double x = PyFloat_CheckExact(w) ? PyFloat_AS_DOUBLE(w) : PyLong_CheckExact(w) ? PyLong_AsLongAndOverflow(w, &beyond) : 0;
    return x == 2 || x == 0.5;
}

/* Whether a ** w is the cube of a large array, in three products: operators._power. */
static bool is_cube(PyObject *a, PyObject *w) {
    int beyond = 0;
    if (!PyLong_CheckExact(w) || PyLong_AsLongAndOverflow(w, &beyond) != 3)
        return false;
    Ref size = attribute(a, word_size);
    return integer(size) >= cubes;
}

/* v op w of traced arrays, or on a device. Nothing where Python must do it. */
static Ref apply_operator(const Operator &o, PyObject *const *operands, const Value *values, bool power) {
    if (!power)
        return apply(o.row, operands, values, 2, no_params);
    if (is_python_number(operands[1]) && !values[0].on_host() && values[0].kind != Kind::other) {
        Ref row = call(shorter_power, operands[0], operands[1]); /* a square, a root */
        if (row.get() != Py_None)
            return apply(row, operands, values, 1, no_params);
    }
    bool python = values[0].kind == Kind::traced && (busy() || !is_python_number(operands[1]) || is_cube(operands[0], operands[1]));
    return python ? Ref() : apply(o.row, operands, values, 2, no_params);
}

/* What NumPy makes of two operands, arrays and numbers. */
static inline Ref numpys_result(const Operator &o, const Value &a, const Value &b, binaryfunc kernel) {
    Ref x = borrow(a.object), y = borrow(b.object);
    if (o.numpys != nullptr && a.is_array()) { /* whose slot is the first that kernel would ask */
        Ref out = made(o.numpys(x, y));
        if (out.get() != Py_NotImplemented)
            return out;
    }
    return made(kernel(x, y));
}

static inline PyObject *binary(PyObject *v, PyObject *w, const Operator &o, binaryfunc kernel, bool power = false) {
    return guarded([&] {
        Value values[] = {value_of(v), value_of(w)}, &a = values[0], &b = values[1];
        PyObject *operands[] = {v, w};
        if (a.on_host() && b.on_host()) {
            Py_ssize_t m = a.is_array() ? size_of(a.object) : 0, n = b.is_array() ? size_of(b.object) : 0, limit = o.limit;
            if (power && is_short_power(w))
                limit = recycled_bytes;
            bool small_ones = m <= LARGEST && n <= LARGEST;
            if (!busy() && (small_ones || (is_below(a, limit) && is_below(b, limit)))) {
                count(is_ours(v) ? o.entry : o.reflected_entry);
                if (o.ufunc != nullptr && small_ones)
                    if (Ref out = small(o.ufunc, a.object, b.object))
                        return array_on(std::move(out), Py_None);
                return result_of(numpys_result(o, a, b, kernel));
            }
        } else if (Ref out = apply_operator(o, operands, values, power))
            return out;
        bool ours = is_ours(v) || PyObject_TypeCheck(v, Ours); /* or of a user's subclass */
        return ours ? call(o.forward, v, w) : call(o.reflected, w, v);
    });
}

static inline PyObject *unary(PyObject *v, const Operator &o, unaryfunc kernel) {
    return guarded([&] {
        Value a = value_of(v);
        if (a.is_array() && !busy() && is_below(a, o.limit)) {
            count(o.entry);
            if (o.ufunc != nullptr)
                if (Ref out = small(o.ufunc, a.object, a.object))
                    return array_on(std::move(out), Py_None);
            Ref x = borrow(a.object);
            return result_of(made(kernel(x)));
        }
        Ref out = a.is_array() ? Ref() : apply(o.row, &v, &a, 1, no_params);
        return out ? out : made(((unaryfunc)o.general)(v));
    });
}

/* v, an array on a device that is no view, holds from now on what `made` does, the result of a row that is like it. Values
   are immutable, so views of v notice. False where it is not like it: Python runs the row again, and counts it. */
static bool takes_value(PyObject *v, const Ref &made, PyObject *row) {
    PyObject *x = virtual_of(v), *y = virtual_of(made);
    int same = 0;
    if (Py_IS_TYPE(y, Buffer) && field(v, root_at) == Py_None && slot(x, buffer_backend) == slot(y, buffer_backend) &&
        dtype_of_buffer(x) == dtype_of_buffer(y))
        check(same = PyObject_RichCompareBool(shape_of_buffer(x), shape_of_buffer(y), Py_EQ));
    if (!same)
        return count_call(kept_for(slot(x, buffer_backend), row), -1), false;
    Ref computed(std::exchange(slot(y, buffer_computed), Py_NewRef(slot(x, buffer_computed))));
    Ref before(std::exchange(field(v, value_at), Py_NewRef(y)));
    return true;
}

/* Whether v op= w was done in the memory of what v holds, the buffer x of a device, which nothing else holds or shows: v is no
   view, or the only one of its root, by an index. */
static bool write_on_device(PyObject *v, PyObject *w, PyObject *x, const Operator &o) {
    PyObject *device = slot(x, buffer_backend), *kept = kept_for(device, o.row);
    PyObject *root = field(v, root_at), *origin = slot(x, buffer_view);
    Value b = value_of(w);
    bool of_device = b.kind == Kind::device && slot(b.object, buffer_backend) == device && b.object != x;
    if (kept == nullptr || !PyDict_CheckExact(PyList_GET_ITEM(kept, INTO)) || !unwatched(device) ||
        !(of_device || PyFloat_CheckExact(w) || PyLong_CheckExact(w)) || axes_of_buffer(x) == 0)
        return false;
    if (root == Py_None ? !is_alone(x, 0, 0) : /* the root, v itself and the view's own buffer refer to the root's */
            origin == Py_None || PyTuple_GET_ITEM(origin, 0) != field(root, value_at) || PyTuple_GET_ITEM(origin, 1) != getitem_row ||
            Py_REFCNT(x) != 1 || Py_REFCNT(slot(x, buffer_data)) != 1 || !is_alone(field(root, value_at), 2, 1))
        return false;
    Ref data = borrow(slot(x, buffer_data)), other = borrow(of_device ? slot(b.object, buffer_data) : w), owned = borrow(kept);
    PyObject *given[] = {data, other};
    try {
        Ref run = prepared_for(kept, given, 2), into = borrow(found(PyList_GET_ITEM(kept, INTO), run));
        if (into)
            call(into, data, other), count_call(kept);
        return bool(into);
    } catch (const Raised &) {
        forget_refusal();
        return false;
    }
}

/* Whether a tape watches a number, which cannot be written to. */
static bool is_traced_number(const Value &v) {
    PyObject *x = v.kind == Kind::traced ? slot(v.object, tracer_value) : nullptr;
    return x != nullptr && is_number(x) && Py_IS_TYPE(slot(v.object, tracer_trace), Tape);
}

static inline PyObject *in_place(PyObject *v, PyObject *w, const Operator &o, binaryfunc kernel, bool power = false) {
    return guarded([&] {
        Value a = value_of(v), b = value_of(w);
        if (a.is_array() && is_ours(v) && b.on_host() && !busy() && !taped() && is_below(a, o.limit)) {
            if (o.ufunc != nullptr && may_write(a.object))
                if (small(o.ufunc, a.object, b.object, a.object))
                    return borrow(v);
            Ref x = borrow(a.object), y = borrow(b.object);
            made(kernel(x, y));
            return borrow(v);
        }
        if (!power && a.kind == Kind::device && is_ours(v) && write_on_device(v, w, a.object, o))
            return borrow(v);
        if (is_traced_number(a)) /* as NumPy's numbers: `s += 1` makes another one (operators._assigned) */
            return borrow(Py_NotImplemented);
        return made(power ? ((ternaryfunc)o.general)(v, w, Py_None) : ((binaryfunc)o.general)(v, w));
    });
}

static PyObject *power(PyObject *a, PyObject *b) { return PyNumber_Power(a, b, Py_None); }
static PyObject *power_in_place(PyObject *a, PyObject *b) { return PyNumber_InPlacePower(a, b, Py_None); }

enum { ADD, SUB, MUL, TRUEDIV, FLOORDIV, MOD, MATMUL, AND, OR, XOR, LSHIFT, RSHIFT, POW, BINARIES };
enum { NEG = BINARIES, POS, ABS, INVERT, UNARIES };
enum { IADD = UNARIES, ISUB, IMUL, ITRUEDIV, IFLOORDIV, IMOD, IMATMUL, IAND, IOR, IXOR, ILSHIFT, IRSHIFT, IPOW, OPERATORS };
namespace {
extern Operator operators[OPERATORS];
}

template <int I, binaryfunc kernel> static PyObject *binary_slot(PyObject *v, PyObject *w) {
    return binary(v, w, operators[I], kernel);
}
template <int I, unaryfunc kernel> static PyObject *unary_slot(PyObject *v) { return unary(v, operators[I], kernel); }
template <int I, binaryfunc kernel> static PyObject *in_place_slot(PyObject *v, PyObject *w) {
    return in_place(v, w, operators[I], kernel);
}

static PyObject *power_slot(PyObject *v, PyObject *w, PyObject *modulus) {
    return modulus != Py_None ? Py_NewRef(Py_NotImplemented) : binary(v, w, operators[POW], power, true);
}

static PyObject *in_place_power_slot(PyObject *v, PyObject *w, PyObject *modulus) {
    if (modulus != Py_None)
        return ((ternaryfunc)operators[IPOW].general)(v, w, modulus);
    return in_place(v, w, operators[IPOW], power_in_place, true);
}

#define AT(slot) offsetof(PyNumberMethods, slot)
#define BINARY(I, name, slot, f) {name, AT(slot), (void *)binary_slot<I, f>}
#define UNARY(I, name, slot, f) {name, AT(slot), (void *)unary_slot<I, f>}
#define IN_PLACE(I, name, slot, f) {name, AT(slot), (void *)in_place_slot<I, f>}
namespace {
Operator operators[OPERATORS] = { /* in the order of their numbers */
    BINARY(ADD, "add", nb_add, PyNumber_Add),
    BINARY(SUB, "sub", nb_subtract, PyNumber_Subtract),
    BINARY(MUL, "mul", nb_multiply, PyNumber_Multiply),
    BINARY(TRUEDIV, "truediv", nb_true_divide, PyNumber_TrueDivide),
    BINARY(FLOORDIV, "floordiv", nb_floor_divide, PyNumber_FloorDivide),
    BINARY(MOD, "mod", nb_remainder, PyNumber_Remainder),
    BINARY(MATMUL, "matmul", nb_matrix_multiply, PyNumber_MatrixMultiply),
    BINARY(AND, "and", nb_and, PyNumber_And),
    BINARY(OR, "or", nb_or, PyNumber_Or),
    BINARY(XOR, "xor", nb_xor, PyNumber_Xor),
    BINARY(LSHIFT, "lshift", nb_lshift, PyNumber_Lshift),
    BINARY(RSHIFT, "rshift", nb_rshift, PyNumber_Rshift),
    {"pow", AT(nb_power), (void *)power_slot},
    UNARY(NEG, "neg", nb_negative, PyNumber_Negative),
    UNARY(POS, "pos", nb_positive, PyNumber_Positive),
    UNARY(ABS, "abs", nb_absolute, PyNumber_Absolute),
    UNARY(INVERT, "invert", nb_invert, PyNumber_Invert),
    IN_PLACE(IADD, "iadd", nb_inplace_add, PyNumber_InPlaceAdd),
    IN_PLACE(ISUB, "isub", nb_inplace_subtract, PyNumber_InPlaceSubtract),
    IN_PLACE(IMUL, "imul", nb_inplace_multiply, PyNumber_InPlaceMultiply),
    IN_PLACE(ITRUEDIV, "itruediv", nb_inplace_true_divide, PyNumber_InPlaceTrueDivide),
    IN_PLACE(IFLOORDIV, "ifloordiv", nb_inplace_floor_divide, PyNumber_InPlaceFloorDivide),
    IN_PLACE(IMOD, "imod", nb_inplace_remainder, PyNumber_InPlaceRemainder),
    IN_PLACE(IMATMUL, "imatmul", nb_inplace_matrix_multiply, PyNumber_InPlaceMatrixMultiply),
    IN_PLACE(IAND, "iand", nb_inplace_and, PyNumber_InPlaceAnd),
    IN_PLACE(IOR, "ior", nb_inplace_or, PyNumber_InPlaceOr),
    IN_PLACE(IXOR, "ixor", nb_inplace_xor, PyNumber_InPlaceXor),
    IN_PLACE(ILSHIFT, "ilshift", nb_inplace_lshift, PyNumber_InPlaceLshift),
    IN_PLACE(IRSHIFT, "irshift", nb_inplace_rshift, PyNumber_InPlaceRshift),
    {"ipow", AT(nb_inplace_power), (void *)in_place_power_slot},
};
}

static const char *const comparisons[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
static PyObject *comparison_entries[6], *comparison_rows[6];
static richcmpfunc general_compare;

static PyObject *compare(PyObject *v, PyObject *w, int op) {
    return guarded([&] {
        Value values[] = {value_of(v), value_of(w)}, &a = values[0], &b = values[1];
        PyObject *operands[] = {v, w};
        bool text = PyUnicode_CheckExact(w); /* `names == "x"` */
        if (a.on_host() && (text || b.on_host())) {
            if (!busy() && is_below(a, compared_bytes) && (text || is_below(b, compared_bytes))) {
                count(comparison_entries[op]);
                if (!text)
                    if (Ref out = small((PyUFuncObject *)slot(comparison_rows[op], row_numpy), a.object, b.object))
                        return array_on(std::move(out), Py_None);
                Ref x = borrow(a.object), y = borrow(text ? w : b.object);
                return result_of(made(PyObject_RichCompare(x, y, op)));
            }
        } else if (!text)
            if (Ref out = apply(comparison_rows[op], operands, values, 2, no_params))
                return out;
        return made(general_compare(v, w, op));
    });
}

/* Put the slots of this file into a class of arrays of ours. */
static void give_operators(PyTypeObject *type) {
    for (Operator &o : operators)
        if (o.general != nullptr)
            *(void **)((char *)type->tp_as_number + o.at) = o.fast;
    type->tp_richcompare = compare;
}

/* An element of a dict by a name that is made (a new reference, for good). */
static PyObject *named(PyObject *dict, const char *format, const char *name) {
    Ref key = made(PyUnicode_FromFormat(format, name));
    PyObject *x = found(dict, key);
    if (x == nullptr) {
        PyErr_SetObject(PyExc_KeyError, key);
        throw Raised{};
    }
    return Py_NewRef(x);
}

/* The rows of operators, by the names of their methods: value.BINARY, .UNARY and .COMPARISON. */
static void find_operators() {
    Ref row_names = imported(API "install", "OPERATORS");
    auto row_of = [&](const char *name) {
        Ref key(named(row_names, "%s", name));
        PyObject *row = found(rows, key);
        if (row == nullptr)
            fail(PyExc_KeyError, name);
        return Py_NewRef(row);
    };
    for (int i = 0; i < OPERATORS; i++) {
        Operator &o = operators[i];
        o.general = *(void **)((char *)Virtual->tp_as_number + o.at); /* null: a NumPy without matmul in place */
        Ref limit(named(limits, "%s", o.name));
        o.limit = integer(limit);
        o.row = i < IADD ? row_of(o.name) : operators[i - IADD].row;
        PyObject *kernel = slot(o.row, row_numpy); /* NumPy's ** is more than its power */
        o.ufunc = is_small(kernel) && i != POW && i != IPOW ? (PyUFuncObject *)kernel : nullptr;
        if (i < UNARIES)
            o.entry = named(calls, "__%s__", o.name);
        if (i >= BINARIES)
            continue;
        o.reflected_entry = named(calls, "__r%s__", o.name);
        Ref there = made(PyUnicode_FromFormat("__%s__", o.name)), back = made(PyUnicode_FromFormat("__r%s__", o.name));
        o.forward = attribute((PyObject *)Ours, there).release();
        o.reflected = attribute((PyObject *)Ours, back).release();
        if (i != POW)
            o.numpys = *(binaryfunc *)((char *)Host->tp_as_number + o.at);
    }
    for (int i = 0; i < 6; i++) {
        char name[] = {comparisons[i][2], comparisons[i][3], 0};
        comparison_entries[i] = named(calls, "%s", comparisons[i]), comparison_rows[i] = row_of(name);
        if (!is_small(slot(comparison_rows[i], row_numpy)))
            fail(PyExc_TypeError, "a comparison is no ufunc");
    }
    getitem_row = named(rows, "%s", "getitem"), transpose_row = named(rows, "%s", "transpose");
    multiply_row = named(rows, "%s", "multiply"), square_row = named(rows, "%s", "square");
    write_row = named(rows, "%s", "write_view");
    reshape_row = named(rows, "%s", "reshape");
    general_compare = Virtual->tp_richcompare;
}
