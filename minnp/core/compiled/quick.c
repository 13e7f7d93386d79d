/* The short ways of host arrays, in C: operators, indexing, attributes, functions and methods of our ndarray.

   Optional: where no compiler was at hand the Python ones, which these files repeat step by step, do the same work. A
   handle that holds a NumPy array, and arguments that are handles, numbers or other plain things, go straight to
   NumPy, and the result is wrapped; on a handle that a gradient's tape watches, simple rows write their node there; on
   handles at a place, rows go to its kernels. Everything else (another tracer, an array so large that core/cpu does
   better, a trace or a policy that watches, a foreign class) is left to the Python function or slot that was there
   before; so nothing here decides what a call means. Installed by install.py.

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

/* exchange(a, b): each of two of NumPy's arrays, of any class, shows what the other one did. */
static PyObject *exchange(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "O!O!", Host, &a, Host, &b))
        return NULL;
    Array *mine = (Array *)a, *theirs = (Array *)b, were = *mine;
    const size_t from = offsetof(Array, data), to = offsetof(Array, weakreflist);
    memcpy((char *)mine + from, (char *)theirs + from, to - from);
    memcpy((char *)theirs + from, (char *)&were + from, to - from);
    mine->mem_handler = theirs->mem_handler, theirs->mem_handler = were.mem_handler;
    Py_RETURN_NONE;
}

/* on_host(a, root=None): array.on_host. */
static PyObject *on_host(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n) {
    if (n < 1 || n > 2 || !Py_IS_TYPE(args[0], Host))
        return PyErr_Format(PyExc_TypeError, "on_host() takes an array of NumPy's own class, and a root");
    return handle_on(Py_NewRef(args[0]), n == 2 ? args[1] : Py_None);
}

/* views_of(root): array.views_of. */
static PyObject *views_of(PyObject *Py_UNUSED(module), PyObject *root) {
    PyObject *views = PyList_New(0), *h = Py_IS_TYPE(root, Handle) ? links_of(root)->next : NULL;
    for (; views != NULL && h != NULL; h = links_of(h)->next)
        if (SLOT(h, host_at) != Py_None && PyList_Append(views, h) < 0)
            Py_CLEAR(views);
    return views;
}

static PyObject *python_set_host;

/* link(h, root): array.link. */
static PyObject *link_to(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *h, *root;
    if (!PyArg_ParseTuple(args, "O!O!", Handle, &h, Handle, &root))
        return NULL;
    if (links_of(h)->last == NULL && h != root)
        chain_view(h, root);
    Py_RETURN_NONE;
}

static int taken(PyObject *h) {
    PyObject *none = SLOT(h, host_at) == NULL ? PyObject_CallOneArg(python_take_over, h) : Py_NewRef(Py_None);
    Py_XDECREF(none);
    return none != NULL;
}

static PyObject *get_host(PyObject *h, void *Py_UNUSED(closure)) {
    return taken(h) ? Py_NewRef(SLOT(h, host_at)) : NULL;
}

/* tp_getattro: of an array that NumPy made, once more with what take_over gives it. */
static PyObject *attribute_of(PyObject *h, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr(h, name);
    if (found == NULL && SLOT(h, host_at) == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        if (taken(h))
            found = PyObject_GenericGetAttr(h, name);
    }
    return found;
}

static int set_host(PyObject *h, PyObject *a, void *Py_UNUSED(closure)) {
    PyObject *both[] = {h, a}, *none = a != NULL ? PyObject_Vectorcall(python_set_host, both, 2, NULL) : NULL;
    if (none == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_AttributeError, "_host");
    Py_XDECREF(none);
    return none == NULL ? -1 : 0;
}

static PyGetSetDef of_host = {"_host", get_host, set_host, NULL, NULL};

/* arrays(ndarray, VirtualArray, numpy.ndarray, set_host, take_over): before an instance of either is made. */
static PyObject *arrays(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *handle, *virtual_, *host;
    if (!PyArg_ParseTuple(args, "O!O!O!OO", &PyType_Type, &handle, &PyType_Type, &virtual_, &PyType_Type, &host, &python_set_host, &python_take_over))
        return NULL;
    host_at = slot_of(handle, "_array"), root_at = slot_of(handle, "_root"), path_at = slot_of(handle, "_path");
    seen_at = slot_of(handle, "_seen"), value_at = slot_of(handle, "_value"), before = host_at - slot_of(virtual_, "_host");
    int alike = root_at - before == slot_of(virtual_, "_root") && path_at - before == slot_of(virtual_, "_path") &&
                seen_at - before == slot_of(virtual_, "_seen") && value_at - before == slot_of(virtual_, "_value");
    Handle = (PyTypeObject *)handle, Virtual = (PyTypeObject *)virtual_, Host = (PyTypeObject *)host;
    if (!PyErr_Occurred() && (!alike || Host->tp_basicsize != (Py_ssize_t)sizeof(Array)))
        PyErr_SetString(PyExc_ImportError, "the fields of arrays do not lie where minnp's C part expects them");
    if (PyErr_Occurred())
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        Py_INCREF(PyTuple_GET_ITEM(args, i)); /* for good */
    links_at = Handle->tp_basicsize, Handle->tp_basicsize += sizeof(Links);
    Handle->tp_dealloc = Virtual->tp_dealloc = handle_dealloc;
    Handle->tp_alloc = Virtual->tp_alloc = handle_alloc;
    Handle->tp_getattro = attribute_of;
    PyObject *descriptor = PyDescr_NewGetSet(Handle, &of_host);
    int failed = descriptor == NULL || PyObject_SetAttrString(handle, "_host", descriptor) < 0;
    Py_XDECREF(descriptor);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* setup(state, numbers, plain, wrapped, object_dtype, entries, large, lease, memory_of): what is shared. */
static PyObject *setup(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *lease;
    if (!PyArg_ParseTuple(args, "OO!O!OOO!nO!O", &state,
                          &PySet_Type, &numbers, &PySet_Type, &plain, &wrapped, &object_dtype, &PyDict_Type, &entries,
                          &large, &PyType_Type, &lease, &memory_of))
        return NULL;
    busy_at = slot_of((PyObject *)Py_TYPE(state), "busy"), written_at = slot_of((PyObject *)Py_TYPE(state), "written"), tapes_at = slot_of((PyObject *)Py_TYPE(state), "tapes");
    if (PyErr_Occurred())
        return NULL;
    LeaseType = (PyTypeObject *)lease;
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

/* Put the slots of this file into a class of arrays of ours. */
static void give_slots(PyTypeObject *type) {
    PyNumberMethods *number = type->tp_as_number;
    for (int i = 0; i < OPERATORS; i++)
        if (operators[i].python != NULL)
            *(void **)((char *)number + operators[i].at) = operators[i].ours;
    type->tp_richcompare = compare, type->tp_iter = iterator;
    type->tp_as_mapping->mp_ass_subscript = assign, type->tp_as_mapping->mp_subscript = subscript;
    type->tp_as_mapping->mp_length = type->tp_as_sequence->sq_length = length;
    type->tp_as_sequence->sq_item = item;
    type->tp_as_sequence->sq_concat = Host->tp_as_sequence->sq_concat; /* NumPy's refusal, for operator.concat */
    number->nb_bool = truth, number->nb_int = as_int, number->nb_float = as_float, number->nb_index = as_index;
    if (type == Handle)
        type->tp_name = "numpy.ndarray"; /* which the interpreter's messages tell, as they do for NumPy's class */
    PyType_Modified(type);
}

/* install(calls, rows, limits, tracer, tape, primitive, no_params, small, buffer, free, captures, policies, meta,
   unbroadcast, restore, sum_axes, zeros, array, owner, write_on_place, number, entry, before_out, as_handles,
   shortened, slot_of, numpys, contexts, int64, false, true, kept_params, safe, outside memory, lease, dtype, outside, methods): put the slots above into the
   classes of arrays, over those that call the Python methods of `methods`, the class they derive from.

   calls, rows, limits: by the method's name, the entries that count operators, the operators' rows, and the bytes from
   which Python does better. small: elements up to which a tape keeps all arrays. free: whether nothing watches calls at
   a place, which depends on two context variables, `captures` and `policies`, and the global policy. Setting a method later gives its slot back to Python. */
static PyObject *install(PyObject *Py_UNUSED(module), PyObject *args) {
    PyNumberMethods *number = Virtual->tp_as_number;
    PyObject *calls, *rows, *limits, *tracer, *tape, *primitive, *buffer_type, *meta, *entry_type, *int64, *methods, *lease_type, *dtype_type;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!O!nO!OOOO!OOOOOOOOO!OOOOOOO!OOOOO!O!O!OO", &PyDict_Type, &calls, &PyDict_Type, &rows, &PyDict_Type, &limits,
                          &PyType_Type, &tracer, &PyType_Type, &tape, &PyType_Type, &primitive, &PyDict_Type, &no_params,
                          &small, &PyType_Type, &buffer_type, &free_place, &captures, &policies, &PyType_Type, &meta, &unbroadcast, &restore,
                          &sum_axes, &zeros, &numpy_array, &python_owner, &write_there, &number_there, &PyType_Type, &entry_type, &before_out, &as_handles, &shortened, &slot_of_row, &as_numpys, &contexts,
                          &PyType_Type, &int64, &truths[0], &truths[1], &python_kept_params, &python_safe, &PyDict_Type, &outside_memory, &PyType_Type, &lease_type, &PyType_Type, &dtype_type, &python_outside, &methods))
        return NULL;
    data_at = slot_of(buffer_type, "data"), backend_at = slot_of(buffer_type, "backend");
    shown_at = slot_of(buffer_type, "view"), computed_at = slot_of(buffer_type, "computed");
    trace_at = slot_of(tracer, "trace");
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
        o->python = *(void **)((char *)number + o->at); /* NULL: a NumPy without matmul in place */
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
    PyObject *python_array_ufunc = PyObject_GetAttrString(methods, "__array_ufunc__");
    python_getitem = PyObject_GetAttrString(methods, "__getitem__");
    if (python_getitem == NULL || python_array_ufunc == NULL)
        return NULL;
    PyObject *getitem = new_short(python_getitem, getitem_call), *array_ufunc = new_short(python_array_ufunc, ufunc_call);
    int failed = getitem == NULL || array_ufunc == NULL || PyObject_SetAttrString(methods, "__getitem__", getitem) < 0 ||
                 PyObject_SetAttrString(methods, "__array_ufunc__", array_ufunc) < 0;
    Py_XDECREF(getitem), Py_XDECREF(array_ufunc), Py_DECREF(python_array_ufunc);
    if (failed)
        return NULL;
    python_compare = Virtual->tp_richcompare, python_setitem = Virtual->tp_as_mapping->mp_ass_subscript;
    python_len = Virtual->tp_as_mapping->mp_length, python_item = Virtual->tp_as_sequence->sq_item, python_iter = Virtual->tp_iter;
    python_bool = number->nb_bool, python_int = number->nb_int, python_float = number->nb_float, python_index = number->nb_index;
    give_slots(Handle), give_slots(Virtual);
    if (Handle->tp_as_buffer != NULL)
        Handle->tp_as_buffer->bf_getbuffer = buffer_of;
    if (Virtual->tp_as_buffer != NULL)
        Virtual->tp_as_buffer->bf_getbuffer = buffer_of;
    TracerType = (PyTypeObject *)tracer, TapeType = (PyTypeObject *)tape, BufferType = (PyTypeObject *)buffer_type;
    Int64 = (PyTypeObject *)int64, LeaseType = (PyTypeObject *)lease_type, DtypeType = (PyTypeObject *)dtype_type;
    MetaType = (PyTypeObject *)meta, RowType = (PyTypeObject *)primitive;
    return short_values(NULL, Py_True);
}

static PyMethodDef functions[] = {
    {"arrays", arrays, METH_VARARGS, NULL},
    {"exchange", exchange, METH_VARARGS, NULL},
    {"link", link_to, METH_VARARGS, NULL},
    {"on_host", (PyCFunction)(void (*)(void))on_host, METH_FASTCALL, NULL},
    {"views_of", views_of, METH_O, NULL},
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
    import_array();
    if (little_setup() < 0 || PyType_Ready(&Counter_Type) < 0 || PyType_Ready(&Short_Type) < 0 || PyType_Ready(&Fact_Type) < 0 ||
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
