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

enum { ADD, SUB, MUL, TRUEDIV, FLOORDIV, MOD, MATMUL, AND, OR, XOR, LSHIFT, RSHIFT, POW, BINARIES };
enum { NEG = BINARIES, POS, ABS, INVERT, UNARIES };
enum { IADD = UNARIES, ISUB, IMUL, ITRUEDIV, IFLOORDIV, IMOD, IMATMUL, IAND, IOR, IXOR, ILSHIFT, IRSHIFT, IPOW, OPERATORS };
namespace {
extern Operator operators[OPERATORS];
}

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
        if (row.get() == Py_NotImplemented) /* of a number: operators._power */
            return Ref();
        if (row.get() != Py_None) {
            Value now = value_of(operands[0]); /* Python has read it, and may have replaced what it was */
            return apply(row, operands, &now, 1, no_params);
        }
    }
    bool python = values[0].kind == Kind::traced && (busy() || !is_python_number(operands[1]) || is_cube(operands[0], operands[1]));
    Value now[] = {value_of(operands[0]), value_of(operands[1])};
    return python ? Ref() : apply(o.row, operands, now, 2, no_params);
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

/* ------------------------------------------------------------------ temporaries
   Large results are written to the memory of v where v is a temporary that nobody can see any more, as NumPy does with its
   own arrays. Only where CPython says so officially: before 3.14 it says nothing. */
#if PY_VERSION_HEX >= 0x030E00F0 && PY_VERSION_HEX < 0x030F0000 && !defined(Py_GIL_DISABLED)
#include <opcode.h>

/* The instruction before the one at `at`, behind its inline caches. */
static int instruction_before(const unsigned char *code, int at) {
    while ((at -= 2) >= 0 && code[at] == CACHE)
        ;
    return at;
}

/* Whether the interpreter executes `v op w` here and v, its left operand, is held by the operand stack alone. Arguments of
   a C function lie on that stack, too, and one of Cython's may use v after it called an operator. So the instruction must
   be this one, and w its right operand for sure: then no other code is between the interpreter and this slot. */
static bool dies_here(PyObject *v, PyObject *w, int op) {
    PyFrameObject *frame = PyUnstable_Object_IsUniqueReferencedTemporary(v) ? PyEval_GetFrame() : nullptr;
    if (frame == nullptr)
        return false;
    Ref code((PyObject *)PyFrame_GetCode(frame));
    Ref bytes = made(PyCode_GetCode((PyCodeObject *)code.get()));
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(bytes.get());
    int here = PyFrame_GetLasti(frame);
    if (here < 0 || at[here] != BINARY_OP || at[here + 1] != op)
        return false;
    if (v != w && PyUnstable_Object_IsUniqueReferencedTemporary(w))
        return true;
    int load = instruction_before(at, here), before = load < 0 ? -1 : instruction_before(at, load);
    if (before < 0 || (at[before] != BINARY_OP && at[before] != CALL)) /* as in `v + (w if x else y)` */
        return false;
    if (at[load] == LOAD_CONST || at[load] == LOAD_SMALL_INT)
        return is_python_number(w);
    Ref right;
    if (at[load] == LOAD_FAST || at[load] == LOAD_FAST_BORROW) {
        Ref names = made(PyCode_GetVarnames((PyCodeObject *)code.get()));
        if (at[load + 1] >= PyTuple_GET_SIZE(names.get())) /* a cell */
            return false;
        right = made(PyFrame_GetVar(frame, PyTuple_GET_ITEM(names.get(), at[load + 1])));
    } else if (at[load] == LOAD_GLOBAL || at[load] == LOAD_NAME) {
        Ref names = made(PyObject_GetAttrString(code, "co_names")), global(PyFrame_GetGlobals(frame));
        bool in_module = at[load] == LOAD_NAME && made(PyFrame_GetLocals(frame)).get() == global.get();
        if (at[load] == LOAD_GLOBAL || in_module)
            right = borrow(found(global, PyTuple_GET_ITEM(names.get(), in_module ? at[load + 1] : at[load + 1] >> 1)));
    }
    return right.get() == w;
}

/* Whether v owns its memory, alone: it holds the only array on it, which owns it or has a lease of it. */
static bool owns_alone(PyObject *v, PyObject *array) {
    PyObject *base = fields(array)->base;
    return Py_IS_TYPE(v, Ours) && slot(v, root_at) == Py_None && fields(v)->base == array && Py_REFCNT(array) == 2 &&
           (base == nullptr ? (fields(array)->flags & NPY_ARRAY_OWNDATA) != 0 : Py_IS_TYPE(base, Lease) && Py_REFCNT(base) == 1);
}

/* Whether `array op w` has the dtype, shape and memory layout of the array. */
static bool is_like_result(PyObject *array, const Value &w, bool divides) {
    PyArray_Descr *dtype = descr(array);
    Ref native((PyObject *)PyArray_DescrFromType(dtype->type_num));
    if ((PyObject *)dtype != native.get() || !PyTypeNum_ISNUMBER(dtype->type_num) || !PyArray_ISCARRAY((PyArrayObject *)array) ||
        (divides && PyTypeNum_ISINTEGER(dtype->type_num)))
        return false;
    if (!w.is_array())
        return PyLong_CheckExact(w.object) || (PyFloat_CheckExact(w.object) && !PyTypeNum_ISINTEGER(dtype->type_num));
    int missing = fields(array)->nd - fields(w.object)->nd;
    bool fits = descr(w.object) == dtype && missing >= 0 && PyArray_ISCARRAY_RO((PyArrayObject *)w.object);
    for (int i = 0; fits && i < fields(w.object)->nd; i++)
        fits = fields(w.object)->dimensions[i] == 1 || fields(w.object)->dimensions[i] == fields(array)->dimensions[missing + i];
    return fits;
}

/* v op w in the memory of v, where that is possible and v dies with this operator; else nothing. */
static Ref in_memory_of_temporary(PyObject *v, PyObject *w, const Value &a, const Value &b, const Operator &o) {
    constexpr Py_ssize_t least = 1 << 18; /* bytes; below, finding out costs more than it gains */
    static const int instructions[] = {NB_ADD, NB_SUBTRACT, NB_MULTIPLY, NB_TRUE_DIVIDE};
    ptrdiff_t which = &o - operators;
    if (which > TRUEDIV || !a.is_array() || bytes_of(a.object) < least || !owns_alone(v, a.object) ||
        !is_like_result(a.object, b, which == TRUEDIV) || !dies_here(v, w, instructions[which]))
        return {};
    const Operator &in_place = operators[IADD + which];
    count(o.entry);
    if (is_below(a, in_place.limit)) {
        Ref x = borrow(a.object), y = borrow(b.object);
        made((*(binaryfunc *)((char *)Host->tp_as_number + in_place.at))(x, y));
    } else
        made(((binaryfunc)in_place.general)(v, w));
    return array_on(borrow(a.object), Py_None);
}
#else
static Ref in_memory_of_temporary(PyObject *, PyObject *, const Value &, const Value &, const Operator &) { return {}; }
#endif

static inline PyObject *binary(PyObject *v, PyObject *w, const Operator &o, binaryfunc kernel, bool power = false) {
    return guarded([&] {
        Value values[] = {value_of(v), value_of(w)}, &a = values[0], &b = values[1];
        PyObject *operands[] = {v, w};
        if (a.on_host() && b.on_host()) {
            Py_ssize_t m = a.is_array() ? size_of(a.object) : 0, n = b.is_array() ? size_of(b.object) : 0, limit = o.limit;
            if (power && is_short_power(w))
                limit = recycled_bytes;
            bool small_ones = m <= LARGEST && n <= LARGEST;
            if (!small_ones && !host_busy() && !taped())
                if (Ref out = in_memory_of_temporary(v, w, a, b, o))
                    return out;
            if (!host_busy() && (small_ones || (is_below(a, limit) && is_below(b, limit)))) {
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
        if (a.is_array() && !host_busy() && is_below(a, o.limit)) {
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
        if (a.is_array() && is_ours(v) && b.on_host() && !host_busy() && is_below(a, o.limit)) {
            Ref owned = borrow(a.object);
            if (taped())
                release_memory(owner_of(owned));
            if (o.ufunc != nullptr && may_write(a.object))
                if (small(o.ufunc, a.object, b.object, a.object))
                    return borrow(v);
            Ref y = borrow(b.object);
            made(kernel(owned, y));
            return borrow(v);
        }
        if (!power && a.kind == Kind::device && is_ours(v) && write_on_device(v, w, a.object, o))
            return borrow(v);
        if (a.kind == Kind::traced && o.ufunc != nullptr && is_ours(v)) {
            Value values[] = {a, b};
            if (assign_on_tape(v, w, values, o.row))
                return borrow(v);
        }
        if (is_traced_number(a)) /* as NumPy's numbers: `s += 1` makes another one (operators._assigned) */
            return borrow(Py_NotImplemented);
        return made(power ? ((ternaryfunc)o.general)(v, w, Py_None) : ((binaryfunc)o.general)(v, w));
    });
}

static PyObject *power(PyObject *a, PyObject *b) { return PyNumber_Power(a, b, Py_None); }
static PyObject *power_in_place(PyObject *a, PyObject *b) { return PyNumber_InPlacePower(a, b, Py_None); }

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

/* Whether an array on the host has numbers: a comparison with texts, or dates, is another row's. */
static bool of_numbers(const Value &x) {
    if (!x.is_array())
        return true;
    int type = fields(x.object)->descr->type_num;
    return PyTypeNum_ISNUMBER(type) || PyTypeNum_ISBOOL(type);
}

static PyObject *compare(PyObject *v, PyObject *w, int op) {
    return guarded([&] {
        Value values[] = {value_of(v), value_of(w)}, &a = values[0], &b = values[1];
        PyObject *operands[] = {v, w};
        bool text = PyUnicode_CheckExact(w); /* `names == "x"` */
        if (a.on_host() && (text || b.on_host())) {
            if (!host_busy() && is_below(a, compared_bytes) && (text || is_below(b, compared_bytes))) {
                count(comparison_entries[op]);
                if (!text)
                    if (Ref out = small((PyUFuncObject *)slot(comparison_rows[op], row_numpy), a.object, b.object))
                        return array_on(std::move(out), Py_None);
                Ref x = borrow(a.object), y = borrow(text ? w : b.object);
                return result_of(made(PyObject_RichCompare(x, y, op)));
            }
        } else if (!text && of_numbers(a) && of_numbers(b))
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
