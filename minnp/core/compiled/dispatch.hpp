/* Calls of what jit made: the guards on the arguments' leaves, and what a call does for its caller besides running the graph.

   A call that meets the guards of one of the entries, whose first path has a plan and raises nothing, needs no Python but the
   graph's. Every other one is Jitted.general's (jit/jit.py), which is told what a path raised. */
#pragma once
#include "device.hpp"
#include "loops.hpp"
#include <chrono>
#include <memory>

constexpr Py_ssize_t MOST_GUARDED = 256;  /* leaves of the arguments */
constexpr Py_ssize_t COPIED = 1 << 18; /* bytes: larger arrays are written back by Python, on several threads */

/* An array in this layout, of this shape; a number of this type, this one; an array of this shape on this device. */
enum GuardKind { LIES, SHAPED, TYPED, EQUAL, ON_DEVICE };
struct Guard {
    int kind, writeable;
    Ref object; /* an array's dtype, a number's type, the number, or (backend, shape, dtype) */
    std::vector<npy_intp> dimensions, strides;
};

struct Guarded {
    Ref structure; /* of the arguments, as open_tree describes it */
    std::vector<Guard> guards;
    Ref paths;
};

struct Dispatch { /* the base of Jitted */
    PyObject_HEAD
    Py_ssize_t calls;
    std::vector<std::shared_ptr<Guarded>> *entries; /* one may be let go of while it is looked at */
};
static Dispatch *dispatch(PyObject *self) { return (Dispatch *)self; }

static bool same_axes(const npy_intp *a, const std::vector<npy_intp> &b) {
    return b.empty() || memcmp(a, b.data(), b.size() * sizeof(npy_intp)) == 0;
}

static bool holds(const Guard &g, PyObject *x) {
    if (g.kind <= SHAPED) {
        if (!is_host(x) || dtype_of_array(x) != g.object.get() || fields(x)->nd != (int)g.dimensions.size() ||
            !same_axes(fields(x)->dimensions, g.dimensions))
            return false;
        return g.kind == SHAPED || (same_axes(fields(x)->strides, g.strides) &&
                                    g.writeable == ((fields(x)->flags & NPY_ARRAY_WRITEABLE) != 0));
    }
    if (g.kind == ON_DEVICE)
        return Py_IS_TYPE(x, Buffer) && slot(x, buffer_backend) == PyTuple_GET_ITEM(g.object.get(), 0) &&
               dtype_of_buffer(x) == PyTuple_GET_ITEM(g.object.get(), 2) &&
               PyObject_RichCompareBool(shape_of_buffer(x), PyTuple_GET_ITEM(g.object.get(), 1), Py_EQ) == 1;
    if (g.kind == TYPED)
        return (PyObject *)Py_TYPE(x) == g.object.get();
    PyObject *y = g.object;
    if (x == y || Py_TYPE(x) != Py_TYPE(y))
        return x == y;
    if (PyFloat_CheckExact(x)) { /* 0.0 is not -0.0, and nan is nan */
        double a = PyFloat_AS_DOUBLE(x), b = PyFloat_AS_DOUBLE(y);
        return memcmp(&a, &b, sizeof a) == 0;
    }
    int equal = PyObject_RichCompareBool(x, y, Py_EQ); /* of ints or texts */
    check(equal);
    return equal;
}

/* The leaves of a call's arguments: as its caller has them, and what they hold. */
struct Leaves {
    Objects<MOST_GUARDED> items, values;
};

static bool meets(PyObject *x, PyObject *structure, const std::vector<Guard> &guards, Leaves &leaves);

static bool meet(PyObject *const *items, PyObject *parts, const std::vector<Guard> &guards, Leaves &leaves) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts); i++)
        if (!meets(items[i], PyTuple_GET_ITEM(parts, i), guards, leaves))
            return false;
    return true;
}

/* Whether x has this structure, and its leaves, of which there are more in `leaves` then, meet the next of the guards. */
static bool meets(PyObject *x, PyObject *structure, const std::vector<Guard> &guards, Leaves &leaves) {
    if (!PyTuple_CheckExact(structure)) { /* a leaf's */
        Value v = value_of(x);
        if (v.is_virtual() && (v.kind != Kind::device || field(x, root_at) != Py_None))
            return false;
        leaves.items.add(borrow(x)), leaves.values.add(borrow(v.object));
        return holds(guards[leaves.values.n - 1], v.object);
    }
    PyObject *names = PyTuple_GET_ITEM(structure, 1), *parts = PyTuple_GET_ITEM(structure, 2);
    if ((PyObject *)Py_TYPE(x) != PyTuple_GET_ITEM(structure, 0))
        return false;
    if (is_list(x))
        return PySequence_Fast_GET_SIZE(x) == PyTuple_GET_SIZE(parts) && meet(PySequence_Fast_ITEMS(x), parts, guards, leaves);
    if (!PyDict_CheckExact(x))
        return true; /* None */
    if (PyDict_GET_SIZE(x) != PyTuple_GET_SIZE(parts))
        return false;
    PyObject *key, *item;
    for (Py_ssize_t at = 0, i = 0; PyDict_Next(x, &at, &key, &item); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (key != name && !(PyUnicode_CheckExact(key) && PyUnicode_Compare(key, name) == 0))
            return false;
        if (!meets(item, PyTuple_GET_ITEM(parts, i), guards, leaves))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------ what a path does for its caller */
struct Part { /* of a result: a result of the graph, as a scalar or an array, or, below 0, the input -1 - at */
    Py_ssize_t at;
    bool scalar;
};

struct Plan {
    PyObject_HEAD
    PyObject *run, *finish, *constants;
    PyObject *form; /* of a result: a tree with the number of a part at each leaf; null: what `finish` makes */
    std::vector<Py_ssize_t> *inputs, *written, *overwrites;
    std::vector<Part> *parts;
    Py_ssize_t rest; /* in how many calls to come the function is called as it is, as long as none takes so many seconds */
    double brief;
};

/* From where to where an array may have elements. */
static std::pair<char *, char *> extent(PyObject *a) {
    char *low = fields(a)->data, *high = low + PyDataType_ELSIZE(descr(a));
    for (int i = 0; i < fields(a)->nd; i++) {
        npy_intp n = fields(a)->dimensions[i], span = (n - 1) * fields(a)->strides[i];
        if (n == 0)
            return {low, low};
        (span < 0 ? low : high) += span;
    }
    return {low, high};
}

static bool overlap(PyObject *a, PyObject *b) {
    auto [low, high] = extent(a);
    auto [from, to] = extent(b);
    return low < to && from < high;
}

/* Whether what a path writes may be written, and shows no memory of what else it reads. */
static bool apart(const Plan *plan, PyObject *const *given, Py_ssize_t n) {
    for (Py_ssize_t i : *plan->overwrites)
        if (!is_host(given[i]) || !(fields(given[i])->flags & NPY_ARRAY_C_CONTIGUOUS))
            return false;
    for (Py_ssize_t i : *plan->written) {
        if (!is_host(given[i]) || !may_write(given[i]))
            return false;
        for (Py_ssize_t j = 0; j < n; j++)
            if (j != i && is_host(given[j]) && overlap(given[i], given[j]))
                return false;
        PyObject *key, *x;
        for (Py_ssize_t at = 0; PyDict_Next(plan->constants, &at, &key, &x);) {
            Value v = value_of(x);
            if (v.is_virtual() || v.kind == Kind::other || (v.is_array() && overlap(given[i], v.object)))
                return false;
        }
    }
    return true;
}

/* A part of a result as the user has it; nothing where it is no array of NumPy's and no number. */
static Ref part_of(PyObject *v, bool scalar) {
    if (is_host(v)) {
        if (!scalar)
            return array_on(borrow(v), Py_None);
        return fields(v)->nd == 0 ? made(PyArray_Scalar(fields(v)->data, descr(v), v)) : Ref();
    }
    if (Py_IS_TYPE(v, Buffer))
        return scalar ? Ref() : array_of(borrow(v));
    return is_number(v) && (scalar || is_python_number(v)) ? borrow(v) : Ref();
}

/* The result in this form; nothing where `finish` must make it. */
static Ref in_form(PyObject *form, const Plan *plan, PyObject *out, PyObject *const *items) {
    if (form == nullptr || form == Py_None)
        return borrow(form);
    if (PyLong_CheckExact(form)) {
        const Part &p = (*plan->parts)[PyLong_AsSsize_t(form)];
        return p.at < 0 ? borrow(items[(*plan->inputs)[-1 - p.at]]) : part_of(PyTuple_GET_ITEM(out, p.at), p.scalar);
    }
    if (PyDict_CheckExact(form)) {
        Ref all = made(PyDict_New());
        PyObject *key, *part;
        for (Py_ssize_t at = 0; PyDict_Next(form, &at, &key, &part);) {
            Ref x = in_form(part, plan, out, items);
            if (!x)
                return {};
            check(PyDict_SetItem(all, key, x));
        }
        return all;
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(form);
    Ref all = made(PyTuple_CheckExact(form) ? PyTuple_New(n) : PyList_New(n));
    for (Py_ssize_t i = 0; i < n; i++) {
        Ref x = in_form(PySequence_Fast_GET_ITEM(form, i), plan, out, items);
        if (!x)
            return {};
        PySequence_Fast_ITEMS(all.get())[i] = x.release();
    }
    return all;
}

static void write_back(PyObject *self, PyObject *target, PyObject *a, PyObject *final_) {
    if (final_ == a)
        return;
    bool plain = is_host(final_) && descr(final_) == descr(a) && same_shape(final_, a) && descr(a)->kind != 'O';
    if (plain && bytes_of(a) <= COPIED && !taped() && !busy())
        check(PyArray_CopyInto((PyArrayObject *)a, (PyArrayObject *)final_));
    else
        call_method(word_write_back, self, target, final_);
}

/* Whether floating-point errors are to be raised in this context: of them compiled code tells nothing. */
static bool raises_here() {
    PyObject *now = nullptr;
    check(PyContextVar_Get(raises, nullptr, &now));
    Ref owned(now);
    return now == Py_True;
}

/* What a call returns; nothing where Jitted.general must be asked, with what a path raised in `failed`. */
static Ref dispatched(PyObject *self, PyObject *args, Ref &failed) {
    if (dispatch(self)->entries->empty() || !ready)
        return {};
    if (PyLong_AsLong(slot(state, state_busy)) != 0 || (slot(state, state_raising) == Py_True && raises_here()))
        return {};
    Leaves leaves;
    Ref path;
    for (size_t at = 0; at < dispatch(self)->entries->size(); at++) {
        std::shared_ptr<Guarded> entry = (*dispatch(self)->entries)[at];
        leaves.items.clear(), leaves.values.clear();
        if (!meets(args, entry->structure, entry->guards, leaves))
            continue;
        if (PyList_GET_SIZE(entry->paths.get()) > 0)
            path = borrow(PyList_GET_ITEM(entry->paths.get(), 0));
        break;
    }
    if (!path)
        return {};
    Ref kept = attribute(path, word_plan);
    if (kept.get() == Py_None)
        return {};
    Plan *plan = (Plan *)kept.get();
    if (plan->rest > 0) {
        auto began = std::chrono::steady_clock::now();
        Ref function = attribute(self, word_function), x = made(PyObject_Call(function, args, nullptr));
        std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
        plan->rest = seconds.count() < plan->brief ? plan->rest - 1 : 0;
        return x;
    }
    PyObject *given[MOST_GUARDED];
    Py_ssize_t count = 0;
    for (Py_ssize_t i : *plan->inputs) {
        if (i >= leaves.values.n)
            return {};
        given[count++] = leaves.values.items[i];
    }
    if (!plan->written->empty() && (taped() || !apart(plan, given, count)))
        return {};
    Ref out(PyObject_Vectorcall(plan->run, given, count, nullptr));
    if (!out) {
        PyObject *type, *error, *trace;
        PyErr_Fetch(&type, &error, &trace);
        PyErr_NormalizeException(&type, &error, &trace);
        if (trace != nullptr)
            PyException_SetTraceback(error, trace);
        Ref t(type), e(error), b(trace);
        if (!PyErr_GivenExceptionMatches(e, PyExc_Exception)) { /* KeyboardInterrupt */
            PyErr_SetObject(t, e);
            throw Raised{};
        }
        failed = tuple_of(path, e);
        return {};
    }
    dispatch(self)->calls++;
    Py_ssize_t results = PyTuple_GET_SIZE(out.get()) - plan->written->size();
    for (size_t k = 0; k < plan->written->size(); k++) {
        Py_ssize_t i = (*plan->written)[k];
        write_back(self, leaves.items.items[(*plan->inputs)[i]], given[i], PyTuple_GET_ITEM(out.get(), results + k));
    }
    if (Ref x = in_form(plan->form, plan, out, leaves.items.items))
        return x;
    Ref own = made(PyTuple_GetSlice(out, 0, results)), inputs = made(PyList_New(count)), nothing = made(PyDict_New());
    for (Py_ssize_t k = 0; k < count; k++)
        PyList_SET_ITEM(inputs.get(), k, Py_NewRef(leaves.items.items[(*plan->inputs)[k]]));
    Ref arguments = tuple_of(args, nothing.get());
    return call(plan->finish, own, inputs, arguments);
}

static PyObject *dispatch_call(PyObject *self, PyObject *args, PyObject *keywords) {
    return guarded([=] {
        Ref failed;
        if (keywords == nullptr || PyDict_GET_SIZE(keywords) == 0)
            if (Ref out = dispatched(self, args, failed))
                return out;
        Ref named = keywords != nullptr ? borrow(keywords) : made(PyDict_New());
        return call_method(word_general, self, args, named, failed ? failed.get() : Py_None);
    });
}

/* ------------------------------------------------------------------ the objects */
static std::vector<npy_intp> axes_of(PyObject *tuple) {
    std::vector<npy_intp> found;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        found.push_back(integer(PyTuple_GET_ITEM(tuple, i)));
    return found;
}

/* remember(structure, guards, paths): of the arguments, and for each of their leaves (kind, dtype, type or number, shape,
   strides, writeable). */
static PyObject *dispatch_remember(PyObject *self, PyObject *args) {
    return guarded([=] {
        PyObject *structure, *guards, *paths;
        if (!PyArg_ParseTuple(args, "O!O!O!", &PyTuple_Type, &structure, &PyList_Type, &guards, &PyList_Type, &paths))
            throw Raised{};
        std::vector<std::shared_ptr<Guarded>> &entries = *dispatch(self)->entries;
        for (const auto &e : entries)
            if (e->paths.get() == paths)
                return borrow(Py_None);
        auto entry = std::make_shared<Guarded>();
        entry->structure = borrow(structure), entry->paths = borrow(paths);
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(guards); i++) {
            int kind, writeable;
            PyObject *object, *shape, *strides;
            if (!PyArg_ParseTuple(PyList_GET_ITEM(guards, i), "iOO!O!p", &kind, &object, &PyTuple_Type, &shape, &PyTuple_Type,
                                  &strides, &writeable))
                throw Raised{};
            entry->guards.push_back({kind, writeable, borrow(object), axes_of(shape), axes_of(strides)});
        }
        entries.push_back(std::move(entry));
        return borrow(Py_None);
    });
}

/* forget(): every entry. */
static PyObject *dispatch_forget(PyObject *self, PyObject *) {
    std::vector<std::shared_ptr<Guarded>> entries; /* what goes may call Python */
    std::swap(entries, *dispatch(self)->entries);
    Py_RETURN_NONE;
}

static PyObject *dispatch_new(PyTypeObject *type, PyObject *, PyObject *) {
    PyObject *self = PyType_GenericAlloc(type, 0);
    if (self != nullptr)
        dispatch(self)->entries = new std::vector<std::shared_ptr<Guarded>>;
    return self;
}

static int dispatch_traverse(PyObject *self, visitproc visit, void *arg) {
    for (const auto &e : *dispatch(self)->entries)
        Py_VISIT(e->paths.get());
    return 0;
}

static int dispatch_clear(PyObject *self) {
    Ref none(dispatch_forget(self, nullptr));
    return 0;
}

static void dispatch_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    dispatch_clear(self);
    delete dispatch(self)->entries;
    Py_TYPE(self)->tp_free(self);
}

static int plan_traverse(PyObject *self, visitproc visit, void *arg) {
    Plan *plan = (Plan *)self;
    Py_VISIT(plan->run);
    Py_VISIT(plan->finish);
    Py_VISIT(plan->constants);
    Py_VISIT(plan->form);
    return 0;
}

static int plan_clear(PyObject *self) {
    Plan *plan = (Plan *)self;
    Py_CLEAR(plan->run);
    Py_CLEAR(plan->finish);
    Py_CLEAR(plan->constants);
    Py_CLEAR(plan->form);
    return 0;
}

static void plan_dealloc(PyObject *self) {
    Plan *plan = (Plan *)self;
    PyObject_GC_UnTrack(self);
    plan_clear(self);
    delete plan->inputs;
    delete plan->written;
    delete plan->overwrites;
    delete plan->parts;
    PyObject_GC_Del(self);
}

static PyTypeObject DispatchType = {PyVarObject_HEAD_INIT(nullptr, 0)}, PlanType = {PyVarObject_HEAD_INIT(nullptr, 0)};

/* plan(run, finish, constants, inputs, written, overwrites, form, parts, scalars): what Specialisation has of these; the form
   of the result, or Ellipsis; its parts, and which of them are scalars. */
static PyObject *make_plan(PyObject *, PyObject *args) {
    return guarded([=] {
        PyObject *run, *finish, *constants, *inputs, *written, *overwrites, *form, *parts, *scalars;
        if (!PyArg_ParseTuple(args, "OOO!O!O!O!OO!O!", &run, &finish, &PyDict_Type, &constants, &PyTuple_Type, &inputs, &PyTuple_Type,
                              &written, &PyTuple_Type, &overwrites, &form, &PyTuple_Type, &parts, &PyTuple_Type, &scalars))
            throw Raised{};
        if (PyTuple_GET_SIZE(inputs) > MOST_GUARDED)
            return borrow(Py_None);
        Plan *plan = PyObject_GC_New(Plan, &PlanType);
        Ref owned = made((PyObject *)plan);
        plan->run = Py_NewRef(run), plan->finish = Py_NewRef(finish), plan->constants = Py_NewRef(constants);
        plan->rest = 0, plan->brief = 0;
        plan->form = form == Py_Ellipsis ? nullptr : Py_NewRef(form);
        plan->inputs = new std::vector<Py_ssize_t>, plan->written = new std::vector<Py_ssize_t>;
        plan->overwrites = new std::vector<Py_ssize_t>, plan->parts = new std::vector<Part>;
        *plan->inputs = axes_of(inputs), *plan->written = axes_of(written), *plan->overwrites = axes_of(overwrites);
        for (Py_ssize_t at : axes_of(parts))
            plan->parts->push_back({at, false});
        for (Py_ssize_t k : axes_of(scalars))
            (*plan->parts)[k].scalar = true;
        PyObject_GC_Track(owned.get());
        return owned;
    });
}

static PyMethodDef dispatch_methods[] = {{"remember", dispatch_remember, METH_VARARGS, nullptr},
                                         {"forget", dispatch_forget, METH_NOARGS, nullptr},
                                         {nullptr, nullptr, 0, nullptr}};
static PyMemberDef dispatch_members[] = {{"calls", T_PYSSIZET, offsetof(Dispatch, calls), 0, nullptr}, {nullptr, 0, 0, 0, nullptr}};
static PyMemberDef plan_members[] = {{"rest", T_PYSSIZET, offsetof(Plan, rest), 0, nullptr},
                                     {"brief", T_DOUBLE, offsetof(Plan, brief), 0, nullptr},
                                     {nullptr, 0, 0, 0, nullptr}};

static void ready_dispatch() {
    DispatchType.tp_name = "minnp.core.compiled._fastpath.Dispatch";
    DispatchType.tp_basicsize = sizeof(Dispatch);
    DispatchType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
    DispatchType.tp_call = dispatch_call;
    DispatchType.tp_new = dispatch_new, DispatchType.tp_dealloc = dispatch_dealloc;
    DispatchType.tp_traverse = dispatch_traverse, DispatchType.tp_clear = dispatch_clear;
    DispatchType.tp_methods = dispatch_methods, DispatchType.tp_members = dispatch_members;
    check(PyType_Ready(&DispatchType));
    PlanType.tp_name = "minnp.core.compiled._fastpath.Plan";
    PlanType.tp_basicsize = sizeof(Plan);
    PlanType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
    PlanType.tp_members = plan_members;
    PlanType.tp_dealloc = plan_dealloc, PlanType.tp_traverse = plan_traverse, PlanType.tp_clear = plan_clear;
    check(PyType_Ready(&PlanType));
}
