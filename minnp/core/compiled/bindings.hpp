/* What of minnp and NumPy this extension reads: one table of Python objects, of where the slots of their classes lie, of
   limits that Python decides, and of words. `bind` reads it; whatever does not fit is an ImportError. */
#pragma once
#include "python.hpp"

/* ------------------------------------------------------------------ classes */
static PyTypeObject *Host, *Ours, *Virtual; /* numpy.ndarray; ndarray and VirtualArray, of ours */
static PyTypeObject *Tracer, *Tape, *Buffer, *Row, *Meta, *Lease, *Dtype, *Ufunc, *Int64, *FlatIterator;

/* ------------------------------------------------------------------ their slots, from the beginning of an instance */
static Py_ssize_t host_at, root_at, steps_at, seen_at, value_at;
static Py_ssize_t virtual_host_at, virtual_root_at, virtual_steps_at, virtual_seen_at, virtual_value_at;
static Py_ssize_t state_busy, state_raising, state_written, state_on_host, state_tapes, state_policy, state_device;
static Py_ssize_t tracer_trace, tracer_value, tracer_node, tracer_view, tape_alive, tape_nodes, tape_lent, tape_saved, tape_indexed;
static Py_ssize_t buffer_data, buffer_backend, buffer_view, buffer_computed, buffer_shape, buffer_dtype, buffer_copy;
static Py_ssize_t row_calls, row_numpy, row_elementwise, row_view, row_vjp, row_saves, row_fast, row_worth, row_accumulate, row_formulas;
static Py_ssize_t meta_shape, meta_dtype, flat_iterator, flat_base;

/* ------------------------------------------------------------------ objects */
static PyObject *state, *capture, *raises, *policies, *numbers, *plain, *no_params, *object_dtype, *operator_getitem;
static PyObject *wrap, *take_over, *set_host, *contexts, *defined, *only_reads, *number_of_buffer, *memory_of, *note_outside, *safe, *kept_params, *outside_memory, *owner;
static PyObject *unbroadcast, *restore, *buffer_of_parts, *formula, *numpy_array, *is_free, *slot_of_row, *refusals, *no_refusals, *shorter_power, *entries;
static PyObject *rows, *calls, *limits, *methods, *true_, *false_, *numpys_zeros;

/* ------------------------------------------------------------------ limits: elements, or bytes where the name says so */
static Py_ssize_t index_limit, recycled_bytes, heavy_bytes, compared_bytes, large, long_runs, cubes;

/* ------------------------------------------------------------------ words */
static PyObject *word_out, *word_overwrite, *word_device, *word_call, *word_slots, *word_dtype, *word_ndim, *word_shape, *word_size, *word_is_view;
static PyObject *word_meta, *word_recorded, *word_release, *word_fields, *word_base, *word_axis, *word_index, *word_name, *word_host, *word_like, *word_keepdims, *word_T;
static PyObject *word_steps, *word_layout, *word_makers;
static PyObject *word_address, *word_donate, *word_function, *word_general, *word_plan, *word_run, *word_tape, *word_capacity, *word_write_back;
static PyObject *word_holders, *word_views_refer;

#define ARRAYS "minnp.core.arrays."
#define ROWS "minnp.core.rows."
#define CPU "minnp.core.cpu."
#define TRANSFORMS "minnp.core.transforms."
#define API "minnp.core.api."
struct Binding {
    enum { OBJECT, CLASS, SLOT, LIMIT, WORD } kind;
    void *to;
    const char *module, *name; /* a word: itself, and nothing */
};

/* What arrays of ours need before there is one. */
static const Binding of_arrays[] = {
    {Binding::CLASS, &Host, "numpy", "ndarray"},
    {Binding::CLASS, &Ufunc, "numpy", "ufunc"},
    {Binding::CLASS, &Ours, ARRAYS "array", "ndarray"},
    {Binding::CLASS, &Virtual, ARRAYS "array", "VirtualArray"},
    {Binding::SLOT, &host_at, ARRAYS "array", "ndarray._array"},
    {Binding::SLOT, &root_at, ARRAYS "array", "ndarray._root"},
    {Binding::SLOT, &steps_at, ARRAYS "array", "ndarray._steps"},
    {Binding::SLOT, &seen_at, ARRAYS "array", "ndarray._seen"},
    {Binding::SLOT, &value_at, ARRAYS "array", "ndarray._value"},
    {Binding::SLOT, &virtual_host_at, ARRAYS "array", "VirtualArray._host"},
    {Binding::SLOT, &virtual_root_at, ARRAYS "array", "VirtualArray._root"},
    {Binding::SLOT, &virtual_steps_at, ARRAYS "array", "VirtualArray._steps"},
    {Binding::SLOT, &virtual_seen_at, ARRAYS "array", "VirtualArray._seen"},
    {Binding::SLOT, &virtual_value_at, ARRAYS "array", "VirtualArray._value"},
    {Binding::OBJECT, &set_host, ARRAYS "array", "ndarray._host.fset"},
    {Binding::OBJECT, &take_over, ARRAYS "array", "take_over"},
};

/* What calls need, once all of minnp is there. */
static const Binding of_calls[] = {
    {Binding::CLASS, &Tracer, ROWS "value", "Tracer"},
    {Binding::CLASS, &Buffer, ROWS "value", "Buffer"},
    {Binding::CLASS, &Row, ROWS "primitive", "Primitive"},
    {Binding::CLASS, &Meta, ROWS "primitive", "Meta"},
    {Binding::CLASS, &Tape, TRANSFORMS "tape", "GradTrace"},
    {Binding::CLASS, &Lease, CPU "memory", "Lease"},
    {Binding::CLASS, &Dtype, "numpy", "dtype"},
    {Binding::CLASS, &Int64, "numpy", "int64"},
    {Binding::CLASS, &FlatIterator, API "attributes", "FlatIterator"},
    {Binding::SLOT, &state_busy, ROWS "state", "State.busy"},
    {Binding::SLOT, &state_raising, ROWS "state", "State.raising"},
    {Binding::SLOT, &state_written, ROWS "state", "State.written"},
    {Binding::SLOT, &state_on_host, ROWS "state", "State.on_host"},
    {Binding::SLOT, &state_tapes, ROWS "state", "State.tapes"},
    {Binding::SLOT, &state_policy, ROWS "state", "State.policy"},
    {Binding::SLOT, &state_device, ROWS "state", "State.device"},
    {Binding::SLOT, &tracer_trace, ROWS "value", "Tracer.trace"},
    {Binding::SLOT, &tracer_value, ROWS "value", "Tracer.value"},
    {Binding::SLOT, &tracer_node, ROWS "value", "Tracer.node"},
    {Binding::SLOT, &tracer_view, ROWS "value", "Tracer.view"},
    {Binding::SLOT, &tape_alive, TRANSFORMS "tape", "GradTrace.alive"},
    {Binding::SLOT, &tape_nodes, TRANSFORMS "tape", "GradTrace.nodes"},
    {Binding::SLOT, &tape_lent, TRANSFORMS "trace", "Trace.lent"},
    {Binding::SLOT, &tape_saved, TRANSFORMS "tape", "GradTrace.saved"},
    {Binding::SLOT, &tape_indexed, TRANSFORMS "tape", "GradTrace.indexed"},
    {Binding::SLOT, &buffer_data, ROWS "value", "Buffer.data"},
    {Binding::SLOT, &buffer_backend, ROWS "value", "Buffer.backend"},
    {Binding::SLOT, &buffer_view, ROWS "value", "Buffer.view"},
    {Binding::SLOT, &buffer_computed, ROWS "value", "Buffer.computed"},
    {Binding::SLOT, &buffer_shape, ROWS "value", "Buffer.shape"},
    {Binding::SLOT, &buffer_dtype, ROWS "value", "Buffer.dtype"},
    {Binding::SLOT, &buffer_copy, ROWS "value", "Buffer._host"},
    {Binding::SLOT, &row_calls, ROWS "primitive", "Primitive.calls"},
    {Binding::SLOT, &row_numpy, ROWS "primitive", "Primitive.numpy"},
    {Binding::SLOT, &row_elementwise, ROWS "primitive", "Primitive.elementwise"},
    {Binding::SLOT, &row_view, ROWS "primitive", "Primitive.view"},
    {Binding::SLOT, &row_vjp, ROWS "primitive", "Primitive.vjp"},
    {Binding::SLOT, &row_saves, ROWS "primitive", "Primitive.saves"},
    {Binding::SLOT, &row_fast, ROWS "primitive", "Primitive.fast"},
    {Binding::SLOT, &row_worth, ROWS "primitive", "Primitive.worth"},
    {Binding::SLOT, &row_accumulate, ROWS "primitive", "Primitive.accumulate"},
    {Binding::SLOT, &row_formulas, ROWS "primitive", "Primitive.formulas"},
    {Binding::SLOT, &meta_shape, ROWS "primitive", "Meta.shape"},
    {Binding::SLOT, &meta_dtype, ROWS "primitive", "Meta.dtype"},
    {Binding::SLOT, &flat_iterator, API "attributes", "FlatIterator._flat"},
    {Binding::SLOT, &flat_base, API "attributes", "FlatIterator.base"},
    {Binding::OBJECT, &state, ROWS "state", "state"},
    {Binding::OBJECT, &capture, ROWS "state", "capture"},
    {Binding::OBJECT, &raises, ROWS "state", "raises"},
    {Binding::OBJECT, &policies, ROWS "policy", "chosen"},
    {Binding::OBJECT, &numbers, ROWS "value", "NUMBERS"},
    {Binding::OBJECT, &plain, API "functions", "STATIC"},
    {Binding::OBJECT, &no_params, ROWS "primitive", "NO_PARAMS"},
    {Binding::OBJECT, &object_dtype, ARRAYS "array", "OBJECT"},
    {Binding::OBJECT, &operator_getitem, "operator", "getitem"},
    {Binding::OBJECT, &wrap, API "install", "wrapped"},
    {Binding::OBJECT, &memory_of, ARRAYS "array", "_memory"},
    {Binding::OBJECT, &note_outside, ARRAYS "saved", "expose"},
    {Binding::OBJECT, &safe, ARRAYS "saved", "safe"},
    {Binding::OBJECT, &kept_params, ARRAYS "saved", "kept_params"},
    {Binding::OBJECT, &outside_memory, ARRAYS "saved", "EXPOSED"},
    {Binding::OBJECT, &owner, ROWS "value", "owner"},
    {Binding::OBJECT, &unbroadcast, TRANSFORMS "cotangents", "unbroadcast"},
    {Binding::OBJECT, &restore, TRANSFORMS "cotangents", "restore"},
    {Binding::OBJECT, &formula, TRANSFORMS "formulas", "formula"},
    {Binding::OBJECT, &buffer_of_parts, TRANSFORMS "cotangents", "buffer_of_parts"},
    {Binding::OBJECT, &numpy_array, "numpy", "array"},
    {Binding::OBJECT, &numpys_zeros, "numpy", "zeros"},
    {Binding::OBJECT, &true_, "numpy", "True_"},
    {Binding::OBJECT, &false_, "numpy", "False_"},
    {Binding::OBJECT, &contexts, ARRAYS "devices", "in_force"},
    {Binding::OBJECT, &defined, API "functions", "defined"},
    {Binding::OBJECT, &only_reads, API "functions", "only_reads"},
    {Binding::OBJECT, &number_of_buffer, ROWS "on_device", "number"},
    {Binding::OBJECT, &is_free, ROWS "on_device", "free"},
    {Binding::OBJECT, &slot_of_row, ROWS "on_device", "slot_of"},
    {Binding::OBJECT, &refusals, ROWS "on_device", "REFUSALS"},
    {Binding::OBJECT, &no_refusals, ROWS "on_device", "NO_REFUSALS"},
    {Binding::OBJECT, &shorter_power, API "operators", "simple_power"},
    {Binding::OBJECT, &entries, API "functions", "ENTRIES"},
    {Binding::OBJECT, &rows, ROWS "primitive", "TABLE"},
    {Binding::OBJECT, &calls, ROWS "report", "HOST_CALLS"},
    {Binding::OBJECT, &limits, API "install", "LIMITS"},
    {Binding::OBJECT, &methods, ARRAYS "array", "Array"},
    {Binding::LIMIT, &index_limit, "minnp.core.cpu", "INDEX"},
    {Binding::LIMIT, &recycled_bytes, CPU "memory", "LEAST"},
    {Binding::LIMIT, &heavy_bytes, CPU "elementwise", "HEAVY"},
    {Binding::LIMIT, &compared_bytes, CPU "elementwise", "CHEAP"},
    {Binding::LIMIT, &large, "minnp.core.cpu", "LARGE"},
    {Binding::LIMIT, &long_runs, CPU "selection", "LONG"},
    {Binding::LIMIT, &cubes, API "operators", "CUBES"},
    {Binding::WORD, &word_out, "out", nullptr},
    {Binding::WORD, &word_overwrite, "overwrite", nullptr},
    {Binding::WORD, &word_device, "device", nullptr},
    {Binding::WORD, &word_call, "__call__", nullptr},
    {Binding::WORD, &word_slots, "slots", nullptr},
    {Binding::WORD, &word_dtype, "dtype", nullptr},
    {Binding::WORD, &word_ndim, "ndim", nullptr},
    {Binding::WORD, &word_shape, "shape", nullptr},
    {Binding::WORD, &word_size, "size", nullptr},
    {Binding::WORD, &word_is_view, "is_view", nullptr},
    {Binding::WORD, &word_meta, "meta", nullptr},
    {Binding::WORD, &word_recorded, "recorded", nullptr},
    {Binding::WORD, &word_release, "release", nullptr},
    {Binding::WORD, &word_fields, "_fields", nullptr},
    {Binding::WORD, &word_base, "base", nullptr},
    {Binding::WORD, &word_axis, "axis", nullptr},
    {Binding::WORD, &word_index, "index", nullptr},
    {Binding::WORD, &word_name, "name", nullptr},
    {Binding::WORD, &word_host, "host", nullptr},
    {Binding::WORD, &word_like, "like", nullptr},
    {Binding::WORD, &word_steps, "steps", nullptr},
    {Binding::WORD, &word_layout, "layout", nullptr},
    {Binding::WORD, &word_makers, "makers", nullptr},
    {Binding::WORD, &word_keepdims, "keepdims", nullptr},
    {Binding::WORD, &word_T, "T", nullptr},
    {Binding::WORD, &word_address, "address", nullptr},
    {Binding::WORD, &word_donate, "donate", nullptr},
    {Binding::WORD, &word_function, "function", nullptr},
    {Binding::WORD, &word_general, "general", nullptr},
    {Binding::WORD, &word_write_back, "write_back", nullptr},
    {Binding::WORD, &word_plan, "plan", nullptr},
    {Binding::WORD, &word_run, "run", nullptr},
    {Binding::WORD, &word_tape, "tape", nullptr},
    {Binding::WORD, &word_capacity, "capacity", nullptr},
    {Binding::WORD, &word_holders, "holders", nullptr},
    {Binding::WORD, &word_views_refer, "views_refer", nullptr},
};

/* module.name, or module.name.name ... */
static Ref imported(const char *module, const char *name) {
    Ref x = made(PyImport_ImportModule(module)), parts = made(PyUnicode_FromString(name)), dot = made(PyUnicode_FromString("."));
    Ref names = made(PyUnicode_Split(parts, dot, -1));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); i++)
        x = attribute(x, PyList_GET_ITEM(names.get(), i));
    return x;
}

/* Read a row of the table; throws with another exception than ImportError's where it does not fit. */
static void resolve(const Binding &b) {
    if (b.kind == Binding::WORD) {
        *(PyObject **)b.to = made(PyUnicode_InternFromString(b.module)).release();
        return;
    }
    Ref x = imported(b.module, b.name);
    if (b.kind == Binding::LIMIT)
        *(Py_ssize_t *)b.to = integer(x);
    else if (b.kind == Binding::SLOT) {
        if (!Py_IS_TYPE(x.get(), &PyMemberDescr_Type))
            fail(PyExc_TypeError, "it is no slot");
        *(Py_ssize_t *)b.to = ((PyMemberDescrObject *)x.get())->d_member->offset;
    } else {
        if (b.kind == Binding::CLASS && !PyType_Check(x))
            fail(PyExc_TypeError, "it is no class");
        *(PyObject **)b.to = x.release(); /* for good */
    }
}

template <size_t N> static void bind(const Binding (&table)[N]) {
    for (const Binding &b : table)
        try {
            resolve(b);
        } catch (const Raised &) {
            PyObject *type, *error, *trace;
            PyErr_Fetch(&type, &error, &trace);
            PyErr_Format(PyExc_ImportError, "minnp's C part does not fit its Python part: %s.%s: %S", b.module,
                         b.name != nullptr ? b.name : "", error != nullptr ? error : Py_None);
            Py_XDECREF(type), Py_XDECREF(error), Py_XDECREF(trace);
            throw;
        }
}
