/* The short ways of host arrays, in C: operators, indexing, attributes, functions and methods of our ndarray.

   Optional: where no compiler was at hand the Python ones, which these files repeat step by step, do the same work. A
   handle that holds a NumPy array, and arguments that are handles, numbers or other plain things, go straight to
   NumPy, and the result is wrapped; on a handle that a gradient's tape watches, simple rows write their node there; on
   handles at a place, rows go to its kernels. Everything else (another tracer, an array so large that core/cpu does
   better, a trace or a policy that watches, a foreign class) is left to the Python function or slot that was there
   before; so nothing here decides what a call means. Installed by install.py. Needs no NumPy headers: of an array it
   reads the fields that every NumPy has.

   One unit of compilation, a header for each part: the short functions of one are inlined in another. */

#include "handles.h"
#include "little.h"
#include "tape.h"
#include "places.h"
#include "rows.h"
#include "backward.h"
#include "operators.h"
#include "indexing.h"
#include "conversions.h"
#include "functions.h"
#include "attributes.h"

/* ------------------------------------------------------------------ installing */
static Py_ssize_t slot_of(PyObject *type, const char *name) {
    PyObject *member = PyObject_GetAttrString(type, name);
    Py_ssize_t at = -1;
    if (member != NULL && Py_IS_TYPE(member, &PyMemberDescr_Type))
        at = ((PyMemberDescrObject *)member)->d_member->offset;
    else if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%R has no slot %s", type, name);
    Py_XDECREF(member);
    return at;
}

/* setup(handle, host, state, numbers, plain, wrapped, object_dtype, entries, large, pool, lease, mark, learn,
   written, memory_of): what is shared. */
static PyObject *setup(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *handle, *host, *lease;
    if (!PyArg_ParseTuple(args, "O!O!OO!O!OOO!nOO!OOOO", &PyType_Type, &handle, &PyType_Type, &host, &state,
                          &PySet_Type, &numbers, &PySet_Type, &plain, &wrapped, &object_dtype, &PyDict_Type, &entries,
                          &large, &pool, &PyType_Type, &lease, &mark, &learn, &written, &memory_of))
        return NULL;
    host_at = slot_of(handle, "_host"), root_at = slot_of(handle, "_root");
    busy_at = slot_of((PyObject *)Py_TYPE(state), "busy"), written_at = slot_of((PyObject *)Py_TYPE(state), "written"), tapes_at = slot_of((PyObject *)Py_TYPE(state), "tapes");
    PyObject *of_mark = (PyObject *)Py_TYPE(mark);
    known_at = slot_of(of_mark, "known"), callers_at = slot_of(of_mark, "callers"), depth_at = slot_of(of_mark, "depth");
    notes_at = slot_of(of_mark, "notes"), learner_at = slot_of(of_mark, "learner"), enabled_at = slot_of((PyObject *)Py_TYPE(pool), "enabled");
    if (PyErr_Occurred())
        return NULL;
    Handle = (PyTypeObject *)handle, Host = (PyTypeObject *)host, LeaseType = (PyTypeObject *)lease;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        Py_INCREF(PyTuple_GET_ITEM(args, i)); /* for good */
    zero = PyLong_FromLong(0);
    word_out = PyUnicode_InternFromString("out"), word_device = PyUnicode_InternFromString("device");
    word_reshape = PyUnicode_InternFromString("reshape");
    word_call = PyUnicode_InternFromString("__call__"), word_slots = PyUnicode_InternFromString("slots");
    word_dtype = PyUnicode_InternFromString("dtype"), word_ndim = PyUnicode_InternFromString("ndim");
    word_shape = PyUnicode_InternFromString("shape"), word_is_view = PyUnicode_InternFromString("is_view");
    word_meta = PyUnicode_InternFromString("meta"), word_recorded = PyUnicode_InternFromString("recorded");
    keepdims_name = PyUnicode_InternFromString("keepdims"), word_T = PyUnicode_InternFromString("T");
    word_holders = PyUnicode_InternFromString("holders"), word_views_refer = PyUnicode_InternFromString("views_refer");
    word_is_contiguous = PyUnicode_InternFromString("is_contiguous");
    word_fields = PyUnicode_InternFromString("_fields"), word_makers = PyUnicode_InternFromString("makers");
    axis_name = Py_BuildValue("(N)", PyUnicode_InternFromString("axis"));
    shape_name = Py_BuildValue("(N)", PyUnicode_InternFromString("shape"));
    index_name = Py_BuildValue("(N)", PyUnicode_InternFromString("index"));
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *entry_named(PyObject *calls, const char *format, const char *name) {
    PyObject *key = PyUnicode_FromFormat(format, name), *entry = key != NULL ? PyDict_GetItemWithError(calls, key) : NULL;
    if (entry == NULL && key != NULL && !PyErr_Occurred())
        PyErr_SetObject(PyExc_KeyError, key);
    Py_XDECREF(key);
    Py_XINCREF(entry);
    return entry;
}

static PyObject *method_named(const char *format, const char *name) {
    PyObject *key = PyUnicode_FromFormat(format, name);
    PyObject *found = key != NULL ? PyObject_GetAttr((PyObject *)Handle, key) : NULL;
    Py_XDECREF(key);
    return found;
}

/* install(calls, rows, limits, tracer, tape, primitive, no_params, small, buffer, free, captures, policies, meta,
   unbroadcast, restore, sum_axes, zeros, array, owner, write_on_place, number, entry, before_out, as_handles,
   shortened, slot_of, numpys, contexts, lefts, false, true, kept_params, safe, outside memory, lease, dtype, outside): put the slots above into the type of handles, over those that call its Python methods, and before
   those of the classes of NumPy's in `lefts`.

   calls, rows, limits: by the method's name, the entries that count operators, the operators' rows, and the bytes from
   which Python does better. small: elements up to which a tape keeps all arrays. free: whether nothing watches calls at
   a place, which depends on two context variables, `captures` and `policies`, and the global policy. Setting a method later gives its slot back to Python. */
static PyObject *install(PyObject *Py_UNUSED(module), PyObject *args) {
    PyNumberMethods *number = Handle->tp_as_number;
    PyObject *calls, *rows, *limits, *tracer, *tape, *primitive, *buffer_type, *meta, *entry_type, *classes, *lease_type, *dtype_type;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!O!nO!OOOO!OOOOOOOOO!OOOOOOO!OOOOO!O!O!O", &PyDict_Type, &calls, &PyDict_Type, &rows, &PyDict_Type, &limits,
                          &PyType_Type, &tracer, &PyType_Type, &tape, &PyType_Type, &primitive, &PyDict_Type, &no_params,
                          &small, &PyType_Type, &buffer_type, &free_place, &captures, &policies, &PyType_Type, &meta, &unbroadcast, &restore,
                          &sum_axes, &zeros, &numpy_array, &python_owner, &write_there, &number_there, &PyType_Type, &entry_type, &before_out, &as_handles, &shortened, &slot_of_row, &as_numpys, &contexts,
                          &PyTuple_Type, &classes, &truths[0], &truths[1], &python_kept_params, &python_safe, &PyDict_Type, &outside_memory, &PyType_Type, &lease_type, &PyType_Type, &dtype_type, &python_outside))
        return NULL;
    path_at = slot_of((PyObject *)Handle, "_path"), seen_at = slot_of((PyObject *)Handle, "_seen");
    data_at = slot_of(buffer_type, "data"), backend_at = slot_of(buffer_type, "backend");
    shown_at = slot_of(buffer_type, "view"), computed_at = slot_of(buffer_type, "computed");
    value_at = slot_of((PyObject *)Handle, "_value"), trace_at = slot_of(tracer, "trace");
    traced_at = slot_of(tracer, "value"), node_at = slot_of(tracer, "node"), view_at = slot_of(tracer, "view");
    alive_at = slot_of(tape, "alive"), nodes_at = slot_of(tape, "nodes");
    row_calls_at = slot_of(primitive, "calls"), row_numpy_at = slot_of(primitive, "numpy");
    row_direct_at = slot_of(primitive, "direct"), row_elementwise_at = slot_of(primitive, "elementwise");
    row_view_at = slot_of(primitive, "view"), row_vjp_at = slot_of(primitive, "vjp");
    row_saves_at = slot_of(primitive, "saves"), row_fast_at = slot_of(primitive, "fast");
    row_worth_at = slot_of(primitive, "worth"), row_accumulate_at = slot_of(primitive, "accumulate");
    policy_at = slot_of((PyObject *)Py_TYPE(state), "policy"), new_home_at = slot_of((PyObject *)Py_TYPE(state), "device");
    shape_at = slot_of(buffer_type, "shape"), dtype_at = slot_of(buffer_type, "dtype");
    copied_at = slot_of(buffer_type, "_host");
    definition_at = slot_of(entry_type, "definition");
    meta_shape_at = slot_of(meta, "shape"), meta_dtype_at = slot_of(meta, "dtype");
    PyObject *library = PyImport_ImportModule("operator");
    subscription = library != NULL ? PyObject_GetAttrString(library, "getitem") : NULL;
    Py_XDECREF(library);
    if (PyErr_Occurred())
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        Py_INCREF(PyTuple_GET_ITEM(args, i)); /* for good */
    const int in_little[] = {ADD, SUB, MUL, TRUEDIV, NEG, ABS, AND, OR, XOR, INVERT}; /* in the order of little.h */
    for (int i = 0; i < OPERATORS; i++) {
        Operator *o = &operators[i];
        if (i < UNARIES && (o->entry = entry_named(calls, "__%s__", o->name)) == NULL)
            return NULL;
        if (i < BINARIES && ((o->reflected_entry = entry_named(calls, "__r%s__", o->name)) == NULL ||
                             (o->forward = method_named("__%s__", o->name)) == NULL ||
                             (o->reflected = method_named("__r%s__", o->name)) == NULL))
            return NULL;
        if ((o->row = i < IADD ? entry_named(rows, "__%s__", o->name) : operators[i - IADD].row) == NULL)
            return NULL;
        PyObject *limit = entry_named(limits, "__%s__", o->name);
        o->limit = limit != NULL ? PyLong_AsSsize_t(limit) : -1;
        Py_XDECREF(limit);
        if (PyErr_Occurred())
            return NULL;
        if (i < BINARIES && i != POW)
            o->direct = *(binaryfunc *)((char *)Host->tp_as_number + o->at);
        o->shortens = i == POW || i == IPOW;
        for (int k = 0; k < (int)(sizeof in_little / sizeof in_little[0]); k++)
            if (i == in_little[k] || (i >= IADD && i - IADD == in_little[k]))
                o->little = k + 1;
        if (i == ADD || i == SUB || i == MUL)
            o->kept = "fdFD?bBhHiIlLqQ";
        else if (i == TRUEDIV)
            o->kept = "fdFD";
        void **slot = (void **)((char *)number + o->at);
        o->python = *slot;
        if (o->python != NULL) /* a NumPy without matmul in place */
            *slot = o->ours;
    }
    for (int i = 0; i < 6; i++)
        if ((comparison_entries[i] = entry_named(calls, "%s", comparisons[i])) == NULL ||
            (comparison_rows[i] = entry_named(rows, "%s", comparisons[i])) == NULL)
            return NULL;
    if ((getitem_row = entry_named(rows, "%s", "getitem")) == NULL ||
        (transpose_row = entry_named(rows, "%s", "transpose")) == NULL ||
        (write_row = entry_named(rows, "%s", "write_view")) == NULL || (copy_row = entry_named(rows, "%s", "copy")) == NULL ||
        (reshape_row = entry_named(rows, "%s", "reshape")) == NULL || (dtypes = PyDict_New()) == NULL)
        return NULL;
    multiply_row = operators[MUL].row;
    PyObject *python_array_ufunc = PyObject_GetAttrString((PyObject *)Handle, "__array_ufunc__");
    python_getitem = PyObject_GetAttrString((PyObject *)Handle, "__getitem__");
    if (python_getitem == NULL || python_array_ufunc == NULL)
        return NULL;
    PyObject *getitem = new_short(python_getitem, getitem_call), *array_ufunc = new_short(python_array_ufunc, ufunc_call);
    int failed = getitem == NULL || array_ufunc == NULL || PyObject_SetAttrString((PyObject *)Handle, "__getitem__", getitem) < 0 ||
                 PyObject_SetAttrString((PyObject *)Handle, "__array_ufunc__", array_ufunc) < 0;
    Py_XDECREF(getitem), Py_XDECREF(array_ufunc), Py_DECREF(python_array_ufunc);
    if (failed)
        return NULL;
    python_compare = Handle->tp_richcompare, Handle->tp_richcompare = compare;
    install_lefts(classes);
    python_setitem = Handle->tp_as_mapping->mp_ass_subscript, Handle->tp_as_mapping->mp_ass_subscript = assign;
    python_len = Handle->tp_as_mapping->mp_length, Handle->tp_as_mapping->mp_length = length;
    Handle->tp_as_sequence->sq_length = length;
    Handle->tp_as_sequence->sq_concat = Host->tp_as_sequence->sq_concat; /* NumPy's refusal, for operator.concat */
    python_item = Handle->tp_as_sequence->sq_item, Handle->tp_as_sequence->sq_item = item;
    python_iter = Handle->tp_iter, Handle->tp_iter = iterator;
    Handle->tp_as_mapping->mp_subscript = subscript;
    python_bool = number->nb_bool, number->nb_bool = truth;
    python_int = number->nb_int, number->nb_int = as_int;
    python_float = number->nb_float, number->nb_float = as_float;
    python_index = number->nb_index, number->nb_index = as_index;
    Handle->tp_dealloc = handle_dealloc;
    python_alloc = Handle->tp_alloc, Handle->tp_alloc = handle_alloc;
    PyBufferProcs *buffer = Handle->tp_as_buffer;
    if (buffer != NULL && buffer->bf_getbuffer != NULL)
        buffer->bf_getbuffer = buffer_of;
    Handle->tp_name = "numpy.ndarray"; /* which the interpreter's messages tell, as they do for NumPy's class */
    PyType_Modified(Handle);
    TracerType = (PyTypeObject *)tracer, TapeType = (PyTypeObject *)tape, BufferType = (PyTypeObject *)buffer_type;
    LeaseType = (PyTypeObject *)lease_type, DtypeType = (PyTypeObject *)dtype_type;
    MetaType = (PyTypeObject *)meta, RowType = (PyTypeObject *)primitive;
    return short_values(NULL, Py_True);
}

/* tell(type, name, value): set an attribute of a class written in C, whose slots follow (another library's: classes.py). */
static PyObject *tell(PyObject *Py_UNUSED(module), PyObject *args) {
    PyTypeObject *type;
    PyObject *name, *value;
    if (!PyArg_ParseTuple(args, "O!OO", &PyType_Type, &type, &name, &value))
        return NULL;
    unsigned long fixed = type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE;
    type->tp_flags &= ~fixed;
    int failed = PyObject_SetAttr((PyObject *)type, name, value);
    type->tp_flags |= fixed;
    if (failed < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"tell", tell, METH_VARARGS, NULL},
    {"little", little_setup, METH_VARARGS, NULL},
    {"setup", setup, METH_VARARGS, NULL},
    {"short", make_short, METH_VARARGS, NULL},
    {"at_places", at_places, METH_VARARGS, NULL},
    {"index_kept", index_kept, METH_VARARGS, NULL},
    {"values", short_values, METH_O, NULL},
    {"sweep", (PyCFunction)(void (*)(void))sweep, METH_FASTCALL, NULL},
    {"fact", make_fact, METH_VARARGS, NULL},
    {"flat", flat_setup, METH_O, NULL},
    {"install", install, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "minnp.core.compiled._quick", NULL, -1, functions};

PyMODINIT_FUNC PyInit__quick(void) {
#ifdef Py_GIL_DISABLED
    PyErr_SetString(PyExc_ImportError, "minnp.core.compiled._quick relies on the interpreter lock");
    return NULL;
#else
    if (PyType_Ready(&Counter_Type) < 0 || PyType_Ready(&Short_Type) < 0 || PyType_Ready(&Fact_Type) < 0 ||
        PyType_Ready(&Function_Type) < 0)
        return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && (PyModule_AddObjectRef(made, "Short", (PyObject *)&Short_Type) < 0 ||
                         PyModule_AddObjectRef(made, "Function", (PyObject *)&Function_Type) < 0 ||
                         PyModule_AddObjectRef(made, "Counter", (PyObject *)&Counter_Type) < 0 ||
                         PyModule_AddIntConstant(made, "SOURCE", SOURCE) < 0))
        Py_CLEAR(made);
    return made;
#endif
}
