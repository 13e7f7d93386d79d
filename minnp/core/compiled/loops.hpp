/* Calls of compiled loops: what Code.once (loops/compiled.py) does where the loop ends as it should, without Python.

   The loop reads its arrays' fields and writes its status and numbers into slots of 8 bytes. What does not end so, or is given
   what only Python takes, leaves its arrays as they were and is run once more by Code.run, which says what went wrong. */
#pragma once
#include "arrays.hpp"
#include <algorithm>
#include <vector>

using Machine = PyObject *(*)(PyObject *, PyObject *const *, Py_ssize_t);
constexpr Py_ssize_t SLOTS = 256;
constexpr size_t ARRAYS_OF_LOOP = 62;
constexpr int MET = 4; /* the slot of what the processor met (lowering.py) */
enum Sort { ARRAY, ZEROS, TAPE, REAL, COMPLEX, TRUTH, INTEGER, NATURAL, CAPACITY }; /* of an input, or what an output is in its slot */

struct Input {
    int sort;
    bool written, result; /* of an array */
    Py_ssize_t like; /* of zeros: which array's shape they have */
    PyArray_Descr *dtype;
};

struct Alternative { /* how a number comes out if its kind is this one */
    int64_t kind;
    PyObject *maker, *tag;
};

struct Output {
    int sort;
    bool tagged, flagged;
    std::vector<Alternative> kinds;
};

struct Array { /* one that the loop makes */
    Py_ssize_t at; /* its first slot: which input it is, where it lies, its owner, its shape and strides */
    int ndim;
    PyArray_Descr *dtype;
};

struct Loop {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *code;
    bool late, repeats, warns; /* Code's */
    bool met; /* whether NumPy may have warned once: Python makes the calls from then on */
    Py_ssize_t given, first_input, first_output, size;
    std::vector<Input> *inputs;
    std::vector<Output> *outputs;
    std::vector<Array> *results;
    void (*let_go)(void *); /* of memory that machine code allocated */
    std::vector<std::pair<uint64_t, Machine>> *built; /* for arrays of which these lie in C order */
};

/* Where the number that is the next input goes; whether it is one that fits there. */
static bool put_number(PyObject *x, int sort, int64_t *&to) {
    auto put = [&](double v) { memcpy(to++, &v, sizeof v); };
    if (sort == REAL)
        put(PyFloat_CheckExact(x) ? PyFloat_AS_DOUBLE(x) : PyFloat_AsDouble(x));
    else if (sort == COMPLEX) {
        Py_complex v = PyComplex_AsCComplex(x);
        put(v.real), put(v.imag);
    } else if (sort == TRUTH)
        *to++ = truth_of(x);
    else {
        Ref whole = made(PyNumber_Index(x));
        if (sort != NATURAL)
            *to++ = PyLong_AsLongLong(whole);
        else
            *to++ = (int64_t)PyLong_AsUnsignedLongLong(whole);
    }
    return !PyErr_Occurred();
}

static Ref number_at(const int64_t *from, int sort) {
    double v[2];
    memcpy(v, from, sort == COMPLEX ? sizeof v : sizeof *v);
    return made(sort == REAL      ? PyFloat_FromDouble(v[0])
                : sort == COMPLEX ? PyComplex_FromDoubles(v[0], v[1])
                : sort == NATURAL ? PyLong_FromUnsignedLongLong((uint64_t)*from)
                                  : PyLong_FromLongLong(*from));
}

static Ref made_number(const int64_t *from, int sort, PyObject *maker) {
    static PyObject *float64 = (PyObject *)small_dtypes[DOUBLE]->typeobj;
    if (maker == float64 && sort == REAL)
        return made(PyArray_Scalar((void *)from, (PyArray_Descr *)small_dtypes[DOUBLE], nullptr));
    PyTypeObject *type = (PyTypeObject *)maker;
    if (sort == COMPLEX && type != &PyComplex_Type && !PyType_IsSubtype(type, &PyComplexFloatingArrType_Type))
        sort = REAL; /* a variable that is complex on another way */
    Ref x = number_at(from, sort);
    return (PyObject *)Py_TYPE(x.get()) == maker ? x : call(maker, x);
}

/* The machine code for arrays that lie so, and whether it is kept: other code may end early, with arrays half written. */
static std::pair<Machine, bool> machine_for(Loop *loop, uint64_t ordered, Py_ssize_t arrays) {
    for (auto &[key, machine] : *loop->built)
        if (key == ordered)
            return {machine, true};
    Ref key = made(PyTuple_New(arrays));
    for (Py_ssize_t i = 0; i < arrays; i++)
        PyTuple_SET_ITEM(key.get(), i, PyBool_FromLong(ordered >> i & 1));
    Ref found = call_method(word_address, loop->code, key);
    unsigned long long address;
    int kept;
    if (!PyArg_ParseTuple(found, "Kp", &address, &kept))
        throw Raised{};
    if (kept)
        loop->built->push_back({ordered, (Machine)address});
    return {(Machine)address, kept};
}

/* As Code.arrays_of: of each array that comes out, (a copy, "new") or (None, which other it is). None of them where one is a part
   of another. Lets go of their memory. */
static std::vector<std::pair<Ref, Ref>> arrays_made(Loop *loop, const int64_t *slots, PyObject *const *given) {
    std::vector<std::pair<Ref, Ref>> out;
    bool parts = false;
    size_t n = loop->results->size();
    auto word = [](const char *text, int64_t k) { return made(PyUnicode_FromFormat(text, (int)k)); };
    for (size_t k = 0; k < n; k++) {
        const Array &a = (*loop->results)[k];
        const int64_t *from = slots + a.at, *shape = from + 3, *strides = shape + a.ndim;
        bool empty = std::find(shape, strides, 0) != strides;
        if (from[0] == -2) {
            out.emplace_back(borrow(Py_None), word("unbound", 0));
        } else if (from[0] >= 0) {
            const Fields *x = fields(given[from[0]]);
            bool same = (int64_t)x->data == from[1] && x->nd == a.ndim && std::equal(shape, strides, x->dimensions)
                        && (empty || std::equal(strides, strides + a.ndim, x->strides)) && PyArray_EquivTypes(x->descr, a.dtype);
            parts |= !same;
            out.emplace_back(borrow(Py_None), word("%d", from[0]));
        } else {
            size_t j = 0;
            auto begin = [&](size_t i) { return slots + (*loop->results)[i].at; };
            while (j < k && (begin(j)[0] != -1 || begin(j)[2] != from[2]))
                j++;
            if (j < k) {
                const Array &b = (*loop->results)[j];
                parts |= b.ndim != a.ndim || begin(j)[1] != from[1] || !std::equal(shape, empty ? strides : strides + a.ndim, begin(j) + 3);
                out.emplace_back(borrow(Py_None), word("=%d", j));
                continue;
            }
            Py_INCREF(a.dtype);
            Ref there = made(PyArray_NewFromDescr(&PyArray_Type, a.dtype, a.ndim, (npy_intp *)shape,
                                                  (npy_intp *)strides, (void *)from[1], NPY_ARRAY_CARRAY, nullptr));
            out.emplace_back(made(PyArray_NewCopy((PyArrayObject *)there.get(), NPY_KEEPORDER)), word("new", 0));
        }
    }
    for (const Array &a : *loop->results)
        if (int64_t *owner = (int64_t *)slots[a.at + 2]; slots[a.at] == -1 && --*owner == 0)
            loop->let_go(owner);
    if (parts)
        out.clear();
    return out;
}

/* What Code.run returns; nothing where it must be asked. `donate` as it has it, or null. */
static Ref run_loop(Loop *loop, PyObject *const *values, Py_ssize_t n, PyObject *donate) {
    if (loop->met || n != loop->given || loop->size > SLOTS || loop->inputs->size() > ARRAYS_OF_LOOP)
        return {};
    int64_t slots[SLOTS], *number = slots + loop->first_input;
    Ref arrays[ARRAYS_OF_LOOP];
    std::vector<std::pair<Ref, Ref>> restored;
    uint64_t donated = 0, ordered = 0;
    PyObject *key, *how;
    for (Py_ssize_t at = 0; donate != nullptr && PyDict_Next(donate, &at, &key, &how);) {
        Py_ssize_t place = integer(PyTuple_GET_ITEM(how, 0));
        if (!is_host(values[place]))
            return {};
        donated |= (uint64_t)1 << place;
    }
    Py_ssize_t value = 0, count = 0, written = 0;
    Fields head; /* an array of the slots, of which the loop reads where they lie */
    head.data = (char *)slots;
    PyObject *given[ARRAYS_OF_LOOP + 1] = {(PyObject *)&head};
    PyObject *results[ARRAYS_OF_LOOP];
    for (const Input &input : *loop->inputs) {
        if (input.sort >= REAL) {
            Ref x = input.sort == CAPACITY ? attribute(loop->code, word_capacity) : borrow(values[value++]);
            if (!put_number(x, input.sort, number))
                return PyErr_Clear(), Ref();
            continue;
        }
        Ref a;
        if (input.sort == ARRAY) {
            PyObject *x = values[value];
            if (!is_host(x))
                return {};
            bool copied = input.written && !(donated >> value & 1);
            a = copied ? made(PyArray_NewCopy((PyArrayObject *)x, NPY_KEEPORDER)) : borrow(x);
            value++;
        } else if (input.sort == ZEROS) {
            PyObject *like = arrays[input.like];
            Py_INCREF(input.dtype);
            a = made(PyArray_Zeros(fields(like)->nd, fields(like)->dimensions, input.dtype, 0));
        } else {
            a = call_method(word_tape, loop->code);
        }
        ordered |= (uint64_t)((fields(a)->flags & NPY_ARRAY_C_CONTIGUOUS) != 0) << count;
        if (input.result)
            results[written++] = a;
        given[count + 1] = a;
        arrays[count++] = std::move(a);
    }
    auto [machine, kept] = machine_for(loop, ordered, count);
    for (Py_ssize_t at = 0; donate != nullptr && PyDict_Next(donate, &at, &key, &how);)
        if (!kept || loop->warns || (loop->late && (loop->repeats || truth_of(PyTuple_GET_ITEM(how, 1))))) {
            PyObject *a = values[integer(PyTuple_GET_ITEM(how, 0))];
            restored.emplace_back(borrow(a), made(PyArray_NewCopy((PyArrayObject *)a, NPY_KEEPORDER)));
        }
    slots[0] = slots[MET] = 0;
    Ref none = made(machine(nullptr, given, count + 1)); /* which fails where the handler of a signal raises */
    std::vector<std::pair<Ref, Ref>> arrays_out;
    if (slots[0] == 0)
        arrays_out = arrays_made(loop, slots, given + 1);
    size_t made_count = loop->results->size();
    loop->met = loop->warns && slots[MET] != 0;
    if (slots[0] != 0 || loop->met || arrays_out.size() < made_count) {
        for (auto &[a, was] : restored)
            check(PyArray_CopyInto((PyArrayObject *)a.get(), (PyArrayObject *)was.get()));
        return {};
    }
    Py_ssize_t flags = 0, tags = 0;
    for (const Output &o : *loop->outputs)
        flags += o.flagged, tags += o.tagged;
    Py_ssize_t numbers = loop->outputs->size(), at = written + made_count;
    Ref out = made(PyTuple_New(at + numbers + flags + tags + made_count));
    auto put = [&](Py_ssize_t i, Ref x) { PyTuple_SET_ITEM(out.get(), i, x.release()); };
    for (Py_ssize_t i = 0; i < written; i++)
        put(i, borrow(results[i]));
    for (size_t i = 0; i < made_count; i++) {
        put(written + i, std::move(arrays_out[i].first));
        put(at + numbers + flags + tags + i, std::move(arrays_out[i].second));
    }
    Py_ssize_t flag = at + numbers, tag = flag + flags;
    const int64_t *from = slots + loop->first_output;
    for (const Output &o : *loop->outputs) {
        const int64_t *kind = from + (o.sort == COMPLEX ? 2 : 1);
        const Alternative *chosen = &o.kinds[0]; /* also where it was not bound */
        for (const Alternative &a : o.kinds)
            if (o.tagged && a.kind == *kind)
                chosen = &a;
        put(at++, made_number(from, o.sort, chosen->maker));
        if (o.flagged)
            put(flag++, borrow(kind[1] ? Py_True : Py_False));
        if (o.tagged)
            put(tag++, borrow(chosen->tag));
        from = kind + 2;
    }
    return out;
}

/* loop(*values, donate={}) */
static PyObject *loop_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Loop *loop = (Loop *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    return guarded([=] {
        PyObject *donate = nullptr;
        if (names != nullptr && PyTuple_GET_SIZE(names) > 0) {
            if (PyTuple_GET_SIZE(names) > 1 || PyTuple_GET_ITEM(names, 0) != word_donate || !PyDict_CheckExact(args[n]))
                fail(PyExc_TypeError, "a compiled loop takes its values, and donate");
            donate = args[n];
        }
        Ref out = run_loop(loop, args, n, donate);
        if (out)
            return out;
        Ref values = made(PyTuple_New(n)), nothing = made(PyDict_New());
        for (Py_ssize_t i = 0; i < n; i++)
            PyTuple_SET_ITEM(values.get(), i, Py_NewRef(args[i]));
        return call_method(word_run, loop->code, values, donate != nullptr ? donate : nothing.get());
    });
}

static int loop_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((Loop *)self)->code);
    return 0;
}

static int loop_clear(PyObject *self) {
    Py_CLEAR(((Loop *)self)->code);
    return 0;
}

static void loop_dealloc(PyObject *self) {
    Loop *loop = (Loop *)self;
    PyObject_GC_UnTrack(self);
    for (Input &i : *loop->inputs)
        Py_XDECREF(i.dtype);
    for (Output &o : *loop->outputs)
        for (Alternative &a : o.kinds)
            Py_XDECREF(a.maker), Py_XDECREF(a.tag);
    for (Array &a : *loop->results)
        Py_XDECREF(a.dtype);
    delete loop->results;
    delete loop->inputs;
    delete loop->outputs;
    delete loop->built;
    Py_CLEAR(loop->code);
    PyObject_GC_Del(self);
}

static PyTypeObject LoopType = {PyVarObject_HEAD_INIT(nullptr, 0)};

/* loop(code, inputs, outputs, layout, results, free): a callable that runs a Code. inputs: (sort, written, result, like, dtype) of each; outputs:
   (sort, tagged, flagged, (kind, maker, tag) of each kind); layout: (values, first input, first output, size, late, repeats,
   warns); results: (first slot, number of axes, dtype) of each array that is made; free: the address of what lets go of
   their memory. */
static PyObject *make_loop(PyObject *, PyObject *args) {
    return guarded([=] {
        PyObject *code, *inputs, *outputs, *results;
        Py_ssize_t given, first_input, first_output, size;
        unsigned long long let_go;
        int late, repeats, warns;
        if (!PyArg_ParseTuple(args, "OO!O!(nnnnppp)O!K", &code, &PyList_Type, &inputs, &PyList_Type, &outputs, &given, &first_input,
                              &first_output, &size, &late, &repeats, &warns, &PyList_Type, &results, &let_go))
            throw Raised{};
        Loop *loop = PyObject_GC_New(Loop, &LoopType);
        Ref owned = made((PyObject *)loop);
        loop->call = loop_call, loop->code = Py_NewRef(code);
        loop->given = given, loop->first_input = first_input, loop->first_output = first_output, loop->size = size;
        loop->late = late, loop->repeats = repeats, loop->let_go = (void (*)(void *))let_go;
        loop->warns = warns, loop->met = false;
        loop->inputs = new std::vector<Input>, loop->outputs = new std::vector<Output>, loop->results = new std::vector<Array>;
        loop->built = new std::vector<std::pair<uint64_t, Machine>>;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); i++) {
            Input input;
            int written, result;
            PyObject *dtype;
            if (!PyArg_ParseTuple(PyList_GET_ITEM(inputs, i), "ippnO!", &input.sort, &written, &result, &input.like, Dtype, &dtype))
                throw Raised{};
            input.written = written, input.result = result, input.dtype = (PyArray_Descr *)Py_NewRef(dtype);
            loop->inputs->push_back(input);
        }
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); i++) {
            Output &output = loop->outputs->emplace_back();
            int tagged, flagged;
            PyObject *kinds;
            if (!PyArg_ParseTuple(PyList_GET_ITEM(outputs, i), "ippO!", &output.sort, &tagged, &flagged, &PyList_Type, &kinds))
                throw Raised{};
            output.tagged = tagged, output.flagged = flagged;
            for (Py_ssize_t k = 0; k < PyList_GET_SIZE(kinds); k++) {
                Alternative a;
                long long kind;
                if (!PyArg_ParseTuple(PyList_GET_ITEM(kinds, k), "LOO", &kind, &a.maker, &a.tag))
                    throw Raised{};
                a.kind = kind;
                Py_INCREF(a.maker), Py_INCREF(a.tag);
                output.kinds.push_back(a);
            }
        }
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(results); i++) {
            Array a;
            if (!PyArg_ParseTuple(PyList_GET_ITEM(results, i), "niO!", &a.at, &a.ndim, Dtype, &a.dtype))
                throw Raised{};
            Py_INCREF(a.dtype);
            loop->results->push_back(a);
        }
        PyObject_GC_Track(owned.get());
        return owned;
    });
}

static void ready_loops() {
    LoopType.tp_name = "minnp.core.compiled._fastpath.Loop";
    LoopType.tp_basicsize = sizeof(Loop);
    LoopType.tp_dealloc = loop_dealloc;
    LoopType.tp_vectorcall_offset = offsetof(Loop, call);
    LoopType.tp_call = PyVectorcall_Call;
    LoopType.tp_traverse = loop_traverse, LoopType.tp_clear = loop_clear;
    LoopType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC;
    check(PyType_Ready(&LoopType));
}
